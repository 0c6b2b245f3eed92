"""A classifier that learns from rows with and without labels."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from deciban.errors import HyperparameterError, InputError, NotAvailableError
from deciban.evidence import decisions as decide
from deciban.families.protocol import Rule
from deciban.latent.expectation import Rows
from deciban.latent.semi_supervised import Labelling, PartlyLabelled
from deciban.model import model
from deciban.read.labels import place_labels
from deciban.read.numbers import row_weights
from deciban.read.tables import Table
from deciban.statistics import Array, Members

FACTORS = (0.0, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)  # tried by "loo"


class SemiSupervised(ClassifierMixin, BaseEstimator):
    """Rows without a label (None or NaN in y) join the EM of a classifier; labelled rows keep their labels.

    classifier        : a GenerativeClassifier; its family, rule and prior are used
    unlabelled_weight : what one unlabelled row weighs; or "loo", the weight whose labelled rows, each left out of the
                        sums, are most often right (their influence on the unlabelled rows' shares remains)
    missing           : another value of y that means "no label", such as -1

    >>> import numpy as np
    >>> from deciban import Gaussian, GenerativeClassifier, SemiSupervised
    >>> rng = np.random.default_rng(0)
    >>> X = np.r_[rng.normal(0, 1, (200, 2)), rng.normal(3, 1, (200, 2))]
    >>> y = np.full(400, None)
    >>> y[[0, 1, 2, 3]], y[[200, 201, 202, 203]] = "a", "b"
    >>> model = SemiSupervised(GenerativeClassifier(Gaussian("tied"))).fit(X, y)
    >>> float((model.predict(X) == np.repeat(["a", "b"], 200)).mean()) > 0.97
    True
    """

    def __init__(
        self,
        classifier: Any = None,
        *,
        unlabelled_weight: Any = 1.0,
        missing: Any = None,
        max_iter: int = 100,
        tol: float = 1e-5,
        progress: bool = False,
    ) -> None:
        self.classifier = classifier
        self.unlabelled_weight = unlabelled_weight
        self.missing = missing
        self.max_iter = max_iter
        self.tol = tol
        self.progress = progress

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """EM over all rows, from a fit of the labelled ones."""
        self._check_weight()
        y = np.asarray(y, dtype=object)
        weight = row_weights(sample_weight, len(y))
        weight = np.ones(len(y)) if weight is None else weight
        none = np.array([_absent(label, self.missing) for label in y], dtype=bool)
        if none.all():
            raise InputError("every label is missing. Label some rows, or use MixtureModel, which needs none.")
        have, lack = np.flatnonzero(~none & (weight > 0)), np.flatnonzero(none & (weight > 0))
        clf = self._made()
        clf.fit(_safe_indexing(X, have), y[have].tolist(), weight[have])
        task = self._task(clf, X, y, weight, have, lack)
        guess, self.trace_, self.unlabelled_weight_ = self._best(task)
        stats = clf.stats_
        clf._set(model.ModelStats(stats.labels, guess.counts, guess.sums))
        clf.calibration_ = None  # it belonged to the labelled rows' densities
        self.classifier_, self.classes_, self.n_features_in_ = clf, clf.classes_, clf.n_features_in_
        if hasattr(clf, "feature_names_in_"):
            self.feature_names_in_ = clf.feature_names_in_
        return self

    def _made(self) -> Any:
        from deciban.estimators.classifier import GenerativeClassifier

        return GenerativeClassifier() if self.classifier is None else clone(self.classifier)

    def _task(self, clf: Any, X: Any, y: Array, weight: Array, have: Array, lack: Array) -> PartlyLabelled:
        known = clf.stats_.family
        block = model.encode(clf.family_, Table.of(_safe_indexing(X, have)), known)
        codes = place_labels(y[have].tolist(), len(have), clf.stats_.classes)
        members = Members.hard(codes, clf.stats_.axis, weight[have])
        # without unlabelled rows the labelled ones stand in their place, with no weight in the answer
        rest = model.encode(clf.family_, Table.of(_safe_indexing(X, lack if len(lack) else have[:1])), known)
        rows = Rows(clf.family_, rest if len(lack) else rest[:0], weight[lack])
        if len(lack):
            clf.family_.check(rest, [str(name) for name in clf.columns_], learning=True)
        learnt = isinstance(clf.prior, str) and clf.prior == "learnt"
        prior = None if learnt else decide.resolve_prior(clf.prior, clf.classes_, clf.stats_.rows)
        rule: Rule = "mean" if clf.rule == "predictive" else clf.rule
        return PartlyLabelled(clf.family_, block, members, rows, rule, prior)

    def _best(self, task: PartlyLabelled) -> tuple[Labelling, Any, float]:
        """EM at the weight asked for, or at the one that leaving labelled rows out prefers."""
        label = "EM with unlabelled rows" if self.progress else None
        if self.unlabelled_weight != "loo":
            return *task.run(self.unlabelled_weight, self.max_iter, self.tol, label), float(self.unlabelled_weight)
        self.criteria_ = {}
        best: Any = None
        for factor in FACTORS:
            guess, trace = task.run(factor, self.max_iter, self.tol, label, warn=False)
            self.criteria_[factor] = task.judge(guess)
            if best is None or self.criteria_[factor] < self.criteria_[best[2]]:
                best = guess, trace, factor
        return best

    def _check_weight(self) -> None:
        given = self.unlabelled_weight
        if given != "loo" and not (isinstance(given, (int, float)) and 0 <= given < np.inf):
            raise HyperparameterError(f"unlabelled_weight={given!r} is neither a number ≥ 0 nor 'loo'.")

    # -- answers: the classifier's ------------------------------------------------------------------------------------
    def predict(self, X: Any, **options: Any) -> Array:
        """(n,) the class of least expected cost."""
        return self._fitted.predict(X, **options)

    def predict_proba(self, X: Any, **options: Any) -> Array:
        """(n, K) P(class|x)."""
        return self._fitted.predict_proba(X, **options)

    def predict_log_proba(self, X: Any, **options: Any) -> Array:
        """(n, K) log P(class|x)."""
        return self._fitted.predict_log_proba(X, **options)

    def decision_function(self, X: Any, **options: Any) -> Array:
        """Posterior log-odds of two classes, else log posteriors."""
        return self._fitted.decision_function(X, **options)

    def llr(self, X: Any, *names: Any, **options: Any) -> Array:
        """(n,) the weight of evidence for a class over another."""
        return self._fitted.llr(X, *names, **options)

    def unlearn(self, *_: Any, **__: Any) -> None:
        """Refused: a label that is taken back has shaped the shares of unlabelled rows."""
        raise NotAvailableError(
            "unlabelled rows were shared out by what the labelled ones said, so neither can be unlearnt exactly, nor "
            "left one out: refit without them."
        )

    @property
    def _fitted(self) -> Any:
        check_is_fitted(self)
        return self.classifier_


def _absent(label: Any, missing: Any) -> bool:
    """None, NaN, pandas' NA, or the value that stands for them."""
    if label is None or type(label).__name__ == "NAType":
        return True
    return bool(label != label) or (missing is not None and bool(label == missing))
