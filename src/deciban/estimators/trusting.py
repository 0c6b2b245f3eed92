"""Whether the numbers can be trusted: evaluation, calibration, and the proportions of a batch."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from deciban.errors import NotAvailableError
from deciban.estimators.judging import Judging
from deciban.evaluate.report import Evaluation
from deciban.evidence import decisions as decide
from deciban.evidence import shift
from deciban.model import model
from deciban.model.calibration import Calibration
from deciban.read.labels import place_labels
from deciban.read.tables import Table


class Trusting(Judging):
    """Judging answers by the rows themselves, without a hold-out."""

    def evaluate(
        self,
        X: Any,
        y: Any,
        *,
        learnt: bool = False,
        groups: Any = None,
        rechoose: Any = None,
        prior: Any = None,
        cost: Any = None,
        raw: bool = False,
    ) -> Evaluation:
        """Every figure about these rows: error, log loss, Cllr and its calibration loss, confusion, …

        Rows are new, unless `learnt`: then each is scored as if it had never been learnt, exactly, alone or with its
        group. Choices that looked at labels are kept, and the figures say so; `rechoose=5` makes them again inside five
        folds instead, which costs five fits.
        """
        check_is_fitted(self)
        X, y = self._labelled(X, y)
        if not learnt:
            scores = self.log_likelihood(X, raw=raw)
            wanted: Any = np.exp(self._log_prior(prior))
            return Evaluation(
                scores, place_labels(y, len(scores), self.stats_.classes), self.stats_.classes, wanted, self._cost(cost)
            )
        selected = [] if rechoose else self._selected_on(raw)
        if rechoose:
            scores, codes = self._rechosen(X, y, rechoose, raw)
            wanted = np.exp(self._log_prior(prior))
        else:
            scores, codes, log_prior = self._left_out(X, y, groups, None, raw)
            given = self.prior if prior is None else prior
            one_each = isinstance(given, str) and given == "learnt"
            wanted = np.exp(log_prior) if one_each else decide.resolve_prior(given, self.classes_, self.stats_.rows)
        return Evaluation(scores, codes, self.stats_.classes, wanted, self._cost(cost), True, selected)

    def recalibrate(
        self, X: Any, y: Any, method: str = "auto", *, learnt: bool = True, sample_weight: Any = None
    ) -> Self:
        """Fit the calibration anew, on exact leave-one-out scores of learnt rows, or on new rows; None takes it off.

        "auto" takes "blocks" for several blocks, "length" for counts of words, and "offsets" otherwise.
        """
        check_is_fitted(self)
        if method is None:
            self.calibration_ = None
            return self
        X, y = self._labelled(X, y)
        table = self._table(X)
        block = model.encode(self.family_, table, self.stats_.family)
        lengths = model.block_lengths(self.family_, block)
        if method == "auto":
            method = "blocks" if len(lengths) > 1 else "offsets" if lengths[0] is None else "length"
        if learnt:
            scores, codes, *_ = self._left_out_blocks(X, y, None, sample_weight)
        else:
            scores = model.block_scores(self.family_, self.density, block)
            codes = place_labels(y, len(table), self.stats_.classes)
        rows = float(self.stats_.rows.sum())
        self.calibration_ = Calibration.fit(method, scores, codes, lengths, self.stats_.classes, rows)
        return self

    def estimate_prior(self, X: Any, *, raw: bool = False) -> shift.EstimatedPrior:
        """The class proportions of an unlabelled batch, with standard errors; plug them in as `prior=`."""
        return shift.estimate_prior(self._evidence(self._block(X), raw))

    @property
    def calibration_state_(self) -> str:
        """What the model's calibration is, and whether it is stale."""
        check_is_fitted(self)
        if self.calibration_ is None:
            return "calibration: none"
        return f"calibration: {self.calibration_.state(float(self.stats_.rows.sum()))}"

    def _selected_on(self, raw: bool) -> list[str]:
        """What was chosen by looking at the labels of the rows that are judged."""
        calibrated = [] if raw or self.calibration_ is None else ["calibration"]
        return self.asked_.chosen_by_labels() + calibrated

    def _rechosen(self, X: Any, y: Any, cv: Any, raw: bool) -> tuple[Any, Any]:
        """k-fold scores with every choice made again from the other folds."""
        from sklearn.model_selection import check_cv

        table = self._table(X)
        codes = self._learnt_codes(y, len(table))
        labels = np.asarray(self.classes_)[codes]
        scores = np.empty((len(table), len(self.classes_)))
        for train, test in check_cv(cv, codes, classifier=True).split(np.zeros(len(table)), codes):
            again = clone(self).set_params(classes=list(self.stats_.classes))
            again.fit(_rows(X, train), labels[train])
            if tuple(again.stats_.classes) != self.stats_.classes:
                raise NotAvailableError(
                    "a fold lacks a class, so that its choices cannot be made again. Use fewer folds."
                )
            scores[test] = again.log_likelihood(_rows(X, test), raw=raw)
        return scores, codes


def _rows(X: Any, rows: Any) -> Any:
    if isinstance(X, Table):
        return X.take(rows)
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    return X[rows] if hasattr(X, "shape") else [X[i] for i in rows]
