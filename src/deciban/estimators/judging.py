"""Honest answers about learnt rows: each scored as if it had never been learnt, without refitting."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from deciban.errors import DecibanError, InputError, NotLearntError
from deciban.estimators.answers import Answers
from deciban.evidence import decisions as decide
from deciban.evidence import scores as score
from deciban.model import model
from deciban.read.labels import encode_labels, place_labels
from deciban.read.numbers import row_weights
from deciban.statistics import Array, Members, all_but_one


class Judging(Answers):
    """Leave-one-out, leave-group-out and k-fold from sums."""

    def leave_one_out(
        self,
        X: Any,
        y: Any,
        groups: Any = None,
        method: str = "predict_proba",
        *,
        sample_weight: Any = None,
        prior: Any = None,
        cost: Any = None,
        raw: bool = False,
    ) -> Array:
        """What the model says of each learnt row without having learnt it; `groups` leaves out a whole group at a time.

        The answer is exact, given the frozen choices. Rows that were never learnt are refused.
        """
        scores, _, log_prior = self._left_out(X, y, groups, sample_weight, raw)
        given = self.prior if prior is None else prior
        learnt = isinstance(given, str) and given == "learnt"
        return self._answer(method, scores, log_prior if learnt else self._log_prior(given), cost)

    def _left_out(
        self, X: Any, y: Any, groups: Any, sample_weight: Any, raw: bool = False
    ) -> tuple[Array, Array, Array]:
        """(n, K) scores without each row or its group, (n,) its class, and (n, K) the learnt log prior without it."""
        scores, codes, log_prior, block = self._left_out_blocks(X, y, groups, sample_weight)
        return self._calibrated(scores, block, raw), codes, log_prior

    def _left_out_blocks(
        self, X: Any, y: Any, groups: Any, sample_weight: Any
    ) -> tuple[list[Array], Array, Array, Any]:
        """The same with the scores of each block, not calibrated; and the rows as the family takes them."""
        check_is_fitted(self)
        X, y = self._labelled(X, y)
        table = self._table(X)
        n = len(table)
        codes = self._learnt_codes(y, n)
        if self.ledger_ is not None:
            sample_weight = self._struck(X, y, sample_weight)[1]  # refuses strangers; weights as they are by now
        members = Members.hard(codes, self.stats_.axis, row_weights(sample_weight, n))
        block = model.encode(self.family_, table, self.stats_.family)
        self.stats_.require(model.collect(self.family_, block, members, self.columns_, footprint=True), NotLearntError)
        if groups is None:
            sums = self.stats_.family
            scores = model.left_out_scores(self.family_, self.density, sums, block, members, self.rule)
            log_prior = model.left_out_prior(self.stats_.rows, codes, members.row_weights())
        else:
            scores, log_prior = self._leave_groups_out(block, members, groups)
        return scores, codes, log_prior, block

    def cross_val_predict(
        self,
        X: Any,
        y: Any,
        cv: Any = 5,
        method: str = "predict_proba",
        *,
        groups: Any = None,
        sample_weight: Any = None,
        prior: Any = None,
        cost: Any = None,
    ) -> Array:
        """k-fold answers from all-but-one sums: one pass, k estimates, no refits; frozen choices are kept.

        An unfitted classifier takes its choices from these rows first.
        """
        from sklearn.model_selection import check_cv  # a tenth of a second that other methods need not wait for

        judge = self if hasattr(self, "stats_") else clone(self).fit(X, y, sample_weight)
        X, y = judge._labelled(X, y)
        table = judge._table(X)
        names, codes = encode_labels(y, len(table))
        block = model.encode(judge.family_, table, judge.stats_.family)
        splitter = check_cv(cv, np.asarray(y), classifier=True)
        tests = [test for _, test in splitter.split(np.zeros(len(table)), codes, groups)]
        if sorted(np.concatenate(tests).tolist()) != list(range(len(table))):
            raise InputError("cross_val_predict needs folds that cover each row once. Use KFold or StratifiedKFold.")
        members = Members.hard(codes, model.class_axis(names, names), row_weights(sample_weight, len(table)))
        parts = [model.collect(judge.family_, block[test], members.take(test), judge.columns_) for test in tests]
        reader = judge.reestimate()
        reader.classes_ = np.array(names)
        answers: list[Any] = []
        for rest, test in zip(all_but_one(parts), tests):
            density = model.estimate(judge.family_, rest, judge.rule, judge.columns_)  # type: ignore[arg-type]
            scores = density.log_density(block[test])
            wanted = decide.resolve_prior(self.prior if prior is None else prior, names, rest.rows)  # type: ignore[attr-defined]
            answers.append(reader._answer(method, scores, score.log_probability(wanted), cost))
        return np.concatenate(answers)[np.argsort(np.concatenate(tests), kind="stable")]

    def _learnt_codes(self, y: Any, n: int) -> Array:
        try:
            return place_labels(y, n, self.stats_.classes)
        except InputError as error:
            if "does not know" in str(error):
                raise NotLearntError(str(error)) from None
            raise

    def _leave_groups_out(self, block: Any, members: Members, groups: Any) -> tuple[list[Array], Array]:
        """Each group scored by the sums without it, block by block; and the log prior without it."""
        groups = np.asarray(groups)
        if groups.shape != (len(members),):
            raise InputError(f"groups has shape {groups.shape}, but there are {len(members)} rows. Give one a row.")
        _, codes = np.unique(groups, return_inverse=True)
        scores = [np.empty((len(members), members.K)) for _ in self.family_.split()]
        prior = np.empty((len(members), members.K))
        for group in range(codes.max() + 1):
            rows = np.flatnonzero(codes == group)
            left = self.stats_ - model.collect(self.family_, block[rows], members.take(rows), self.columns_)
            try:
                density = model.estimate(self.family_, left, self.rule, self.columns_)
                for part, found in zip(scores, model.block_scores(self.family_, density, block[rows])):
                    part[rows] = found
            except DecibanError as error:
                name = groups[rows[0]]
                raise type(error)(f"without group {name!r}: {error}") from None
            prior[rows] = score.log_probability(np.maximum(left.rows, 0) / np.maximum(left.rows, 0).sum())
        return scores, prior
