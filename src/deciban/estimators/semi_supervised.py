"""Classifier that learns from rows with and without labels, by EM.

    E   γ_nc ∝ P(c) f(x_n|c)^s for rows without a label; a row with a label keeps it
    M   the family's `estimate` on  Σ over labelled rows  +  λ · Σ over unlabelled rows, weighted by γ

s is 1, or the common scale of calibrated scores where the classifier is calibrated: densities of dependent features are
overconfident, and then EM assigns every unlabelled row to one class with certainty, often all to the same class.

The classes are the components of a mixture, and the sums of unlabelled rows come from the mixture's E-step. λ is the
weight of an unlabelled row relative to a labelled one. The objective, Σ log P(y)f(x|y) + λ Σ log Σ_c P(c)f(x|c), with
the log prior under "map", never decreases under "ml" and "map" if s is 1; else the loop stops when it changes little.

Reference: Nigam, McCallum, Thrun & Mitchell, Text classification from labeled and unlabeled documents using EM, 2000.
"""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.validation import _num_samples, check_is_fitted, column_or_1d

from deciban.errors import (
    DecibanError,
    EmptyComponentWarning,
    HyperparameterError,
    InputError,
    MissingValueError,
    NotAvailableError,
    shortlist,
)
from deciban.estimators.parameters import FamilyParameters
from deciban.evaluate.calibration import Offsets
from deciban.evaluate.scale_fit import informative_penalty
from deciban.evidence.decisions import PriorLike, resolve_prior
from deciban.evidence.explanation import Explanation
from deciban.evidence.scores import log_posterior
from deciban.families.parameters import COUNT, TOLERANCE, Ranges
from deciban.families.protocol import Density, Family, Rows, Rule
from deciban.kernels.choice import one_thread
from deciban.latent import em
from deciban.latent.components import MixtureDensity, WeightedRows
from deciban.latent.gaussian_missing import with_gaps
from deciban.model import model
from deciban.model.answers import Answers
from deciban.model.calibration import Calibration, total
from deciban.model.cross_fit import distinct, fit_calibration
from deciban.model.judge import FOLDS, first_of_near_equals, left_out_blocks, stratified
from deciban.model.predictor import Predictor
from deciban.read.arrays import row_weights
from deciban.read.batches import Batch
from deciban.read.codes import place_labels
from deciban.read.tables import Table, in_memory
from deciban.statistics import Array, Members, Stats
from deciban.store import save
from deciban.store.checks import require
from deciban.store.estimators import check_parameters

if TYPE_CHECKING:
    from deciban.estimators.classifier import GenerativeClassifier

WEIGHTS = (0.0, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)  # of unlabelled rows, tried by unlabelled_weight="loo"
COLLAPSED = 0.05  # share of a class, relative to its share of the labels, below which EM has emptied it
IMPOSSIBLE = 1e6  # log loss of a row whose class has density 0


class SemiSupervised(Answers, ClassifierMixin, FamilyParameters):
    """Generative classifier that also learns from rows without a label.

    Rows whose label is None or NaN take part in EM; labelled rows keep their labels.

    Parameters
    ----------
    classifier : GenerativeClassifier or Family, optional
        Its family, rule and prior are used; `GenerativeClassifier()` if None.
    unlabelled_weight : float or "loo", default=1.0
        Weight of an unlabelled row relative to a labelled one. With "loo", the weight of lowest log loss of labelled
        rows that are left out in five folds, for each of which EM runs again; 0 if none is better than that by a
        standard error.
    missing : object, optional
        Another value of y that means "no label", such as -1.
    max_iter : int, default=100
        Largest number of iterations of EM.
    tol : float, default=1e-5
        EM stops when an iteration gains less than this per row.
    progress : bool, default=False
        Whether to show a progress bar on a terminal.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels, in the order of the columns of `predict_proba`.
    classifier_ : GenerativeClassifier
        The fitted classifier.
    trace_ : Trace
        Objective after each iteration.
    unlabelled_weight_ : float
        Weight of an unlabelled row.
    criteria_ : dict of {float: (float, float)}
        With "loo", log loss, after calibration, and error rate of the labelled rows left out, for each weight.
    n_iter_ : int
        Number of iterations of EM, at least 1.
    n_features_in_ : int
        Number of columns.

    Examples
    --------
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

    RANGES: ClassVar[Ranges] = {"unlabelled_weight": TOLERANCE, "max_iter": COUNT, "tol": TOLERANCE}

    classes_: Array
    classifier_: GenerativeClassifier
    trace_: em.Trace
    unlabelled_weight_: float
    criteria_: dict[float, tuple[float, float]]
    n_iter_: int
    n_features_in_: int
    feature_names_in_: Array

    def __init__(
        self,
        classifier: GenerativeClassifier | Family | None = None,
        *,
        unlabelled_weight: float | Literal["loo"] = 1.0,
        missing: object = None,
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

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Run EM over all rows, from a fit of the labelled ones.

        Parameters
        ----------
        X : array-like, sparse matrix, frame or list of str
            Rows, as the classifier takes them.
        y : array-like of shape (n_samples,)
            Labels; None or NaN where there is none.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row.

        Returns
        -------
        SemiSupervised
            The fitted classifier.
        """
        check_parameters(self)
        if y is None:
            raise InputError("requires y to be passed, but the target y is None.", remedy="Give labels to some rows.")
        rows: Any = in_memory(X)
        if sp.issparse(rows):
            rows = rows.tocsr()
        X = rows if hasattr(rows, "shape") or hasattr(rows, "__len__") else np.asarray(rows)
        labels = np.asarray(in_memory(y), dtype=object)
        labels = column_or_1d(labels, warn=True) if labels.ndim == 2 and labels.shape[1] == 1 else labels
        n = _num_samples(X)
        if labels.shape != (n,):
            raise InputError(
                f"X has {n} rows, but y has shape {labels.shape}. Give each row a label, or None where there is none."
            )
        weight = row_weights(sample_weight, len(labels))
        weight = np.ones(len(labels)) if weight is None else weight
        unlabelled = np.array([_is_missing(label, self.missing) for label in labels], dtype=bool)
        if unlabelled.all():
            raise InputError("every label is missing. Label some rows, or use MixtureModel, which needs none.")
        have, lack = np.flatnonzero(~unlabelled & (weight > 0)), np.flatnonzero(unlabelled & (weight > 0))
        try:
            return self._fit(self._new_classifier(), X, labels, weight, have, lack)
        except MissingValueError:
            clf = self._new_classifier()
            by_em = with_gaps(getattr(clf, "families", None), clf.rule)
            if by_em is None:
                raise
            return self._fit(clf.set_params(families=by_em), X, labels, weight, have, lack)

    def _fit(self, clf: Any, X: Any, labels: Array, weight: Array, have: Array, lack: Array) -> Self:
        """Fit the labelled rows, then run EM over all rows."""
        clf.fit(_safe_indexing(X, have), labels[have].tolist(), weight[have])
        task = _task(clf, X, labels, weight, have, lack)
        estimate, self.trace_, self.unlabelled_weight_ = self._run(task)
        stats = model.ModelStats(clf.stats_.labels, estimate.counts, estimate.sums)
        self.n_iter_ = max(1, self.trace_.iterations)
        self._warn_of_collapse(estimate.counts, task)
        batch = Batch(Table.of(_safe_indexing(X, have)), labels[have].tolist(), weight[have])
        clf.use(_recalibrated(clf, Predictor(replace(clf.model_, stats=stats, calibration=None)), task, batch))
        self.classifier_, self.classes_, self.n_features_in_ = clf, clf.classes_, clf.n_features_in_
        if hasattr(clf, "feature_names_in_"):
            self.feature_names_in_ = clf.feature_names_in_
        return self

    def _new_classifier(self) -> Any:
        from deciban.estimators.classifier import GenerativeClassifier

        if self.classifier is None or isinstance(self.classifier, Family):
            return GenerativeClassifier("auto" if self.classifier is None else self.classifier)
        return clone(self.classifier)

    def _run(self, task: SemiSupervisedEM) -> tuple[Estimate, em.Trace, float]:
        """Run EM at the weight given, or at the weight of lowest leave-one-out error."""
        label = "EM with unlabelled rows" if self.progress else None
        if self.unlabelled_weight != "loo":
            return *task.run(self.unlabelled_weight, self.max_iter, self.tol, label), float(self.unlabelled_weight)
        judged = {weight: task.left_out_losses(weight, self.max_iter, self.tol) for weight in WEIGHTS}
        self.criteria_ = {weight: (float(loss.mean()), float(wrong.mean())) for weight, (loss, wrong) in judged.items()}
        best = min(WEIGHTS, key=lambda weight: self.criteria_[weight])
        chosen = first_of_near_equals((0.0, best), [judged[0.0][0], judged[best][0]])
        return *task.run(chosen, self.max_iter, self.tol, label), chosen

    def _warn_of_collapse(self, counts: Array, task: SemiSupervisedEM) -> None:
        """Warn of classes that EM has emptied: most of the share that the labels gave them is gone."""
        before, after = task.members.weights(), counts / counts.sum()
        lost = after < COLLAPSED * before / before.sum()
        if lost.any() and task.prior is None:
            names = shortlist([repr(name) for name, gone in zip(task.members.classes.names, lost) if gone])
            warnings.warn(
                f"unlabelled rows of weight {self.unlabelled_weight_:g} have emptied the class {names}: it has less "
                f"than {COLLAPSED:.0%} of its share of the labels. Use unlabelled_weight='loo', or a smaller weight.",
                EmptyComponentWarning,
                stacklevel=3,
            )

    def check_parameters(self) -> None:
        """Check the classifier and the weight; numbers are checked by their ranges.

        Raises
        ------
        HyperparameterError
            If `fit` would refuse a parameter.
        """
        if not isinstance(self.classifier, BaseEstimator | Family | None):
            raise HyperparameterError(
                f"classifier={self.classifier!r:.80} must be a GenerativeClassifier, a family or None."
            )
        given = self.unlabelled_weight
        if given != "loo" and not isinstance(given, (int, float)):
            raise HyperparameterError(f"unlabelled_weight={given!r} is neither a number ≥ 0 nor 'loo'.")

    # -- answers -----------------------------------------------------------------------------------------------------
    def log_likelihood(self, X: ArrayLike, *, constant: bool = True) -> Array:  # type: ignore[override]
        """Return log f(x|class).

        Parameters
        ----------
        X : array-like, sparse matrix, frame or list of str
            Rows, as the classifier takes them.
        constant : bool, default=True
            Whether to include terms that all classes share.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Log-likelihoods.
        """
        return self._fitted.log_likelihood(X, constant=constant)

    def explain(self, X: ArrayLike, over: Any = None, against: Any = None, **options: Any) -> Explanation:
        """Explain the evidence: which feature, block or word contributed how much.

        Parameters
        ----------
        X : array-like, sparse matrix, frame or list of str
            Rows, as the classifier takes them.
        over : class label, optional
            Class that the evidence is for.
        against : class label, optional
            Class to compare with.
        **options : dict
            Options of `GenerativeClassifier.explain`.

        Returns
        -------
        Explanation
            The parts, which add up to the answer; prints as bars.
        """
        return self._fitted.explain(X, over, against, **options)

    def log_prior(self, prior: PriorLike | None = None) -> Array:
        """Return the log prior of the classes.

        Parameters
        ----------
        prior : "learnt", "uniform", dict or array-like, optional
            Class prior; the classifier's own if None.

        Returns
        -------
        ndarray of shape (n_classes,)
            Log probabilities.
        """
        return self._fitted.log_prior(prior)

    @property
    def prior(self) -> Any:
        """Class prior of the classifier."""
        return self._fitted.prior

    @property
    def cost(self) -> Any:
        """Costs of the classifier."""
        return self._fitted.cost

    @property
    def class_count_(self) -> Array:
        """Weight of the rows of each class, unlabelled ones by their responsibilities, shape (n_classes,)."""
        return self._fitted.class_count_

    def save(self, path: str | os.PathLike[str], *, note: str = "") -> None:
        """Write the model to a file, which `deciban.load` reads.

        Parameters
        ----------
        path : str or path-like
            Where to write. An existing file is replaced, or left unchanged if writing fails.
        note : str, default=""
            Text kept in the file.
        """
        save(self, path, note=note)

    def unlearn(self, *_: Any, **__: Any) -> None:
        """Raise NotAvailableError: labelled rows influenced the responsibilities of unlabelled ones.

        Parameters
        ----------
        *_ : object
            Ignored.
        **__ : object
            Ignored.
        """
        raise NotAvailableError(
            "the responsibilities of unlabelled rows depend on the labelled rows, so neither can be unlearnt exactly, "
            "and there is no exact leave-one-out: refit without them."
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self._new_classifier()).input_tags
        return tags

    def check_fitted(self) -> None:
        """Raise ModelFileError if fitted attributes that were read from a file contradict the classifier."""
        require(self.classifier_.__sklearn_is_fitted__(), "classifier_", "to be fitted")
        for name in ("classes_", "n_features_in_", "feature_names_in_"):
            own, its = (np.asarray(getattr(each, name, None)) for each in (self, self.classifier_))
            require(np.array_equal(own, its), name, "the value that the classifier has")

    @property
    def _fitted(self) -> Any:
        check_is_fitted(self)
        return self.classifier_


def _is_missing(label: Any, missing: object) -> bool:
    """Whether a label is None, NaN, pandas' NA, or the value that means "no label"."""
    if label is None or type(label).__name__ == "NAType":
        return True
    return bool(label != label) or (missing is not None and bool(label == missing))


# -- EM ----------------------------------------------------------------------------------------------------------------
class Estimate(NamedTuple):
    """The state of EM: densities and prior of the classes, and the sums from which they were estimated."""

    density: Density
    log_prior: Array  # (K,)
    counts: Array  # (K,) Σ w, with unlabelled rows by their responsibilities
    sums: Any  # of the family


class Tempered(Density):
    """A density raised to a power, not normalised: f(x|c)^s; used within EM, never stored."""

    def __init__(self, inner: Density, scale: float) -> None:
        self.inner, self.scale = inner, scale

    @property
    def K(self) -> int:
        return self.inner.K

    def log_density(self, X: Rows) -> Array:
        return self.scale * self.inner.log_density(X)

    def log_base(self, X: Rows) -> Array | float:
        return self.inner.log_base(X)

    def sample(self, codes: Array, rng: np.random.Generator) -> Rows:
        return self.inner.sample(codes, rng)


@dataclass(eq=False)
class SemiSupervisedEM:
    """EM over labelled and unlabelled rows."""

    family: Family  # with its choices made on the labelled rows
    X: Rows  # with labels
    members: Members
    unlabelled: WeightedRows
    rule: Rule
    prior: Array | None = None  # (K,) if it is given, not learnt
    scale: float = 1.0  # s
    labelled: Stats = field(init=False)  # sums of the labelled rows, which no estimate changes

    def __post_init__(self) -> None:
        self.labelled = self.family.collect(self.X, self.members)

    def run(
        self, factor: float, max_iter: int, tol: float, label: str | None = None, warn: bool = True
    ) -> tuple[Estimate, em.Trace]:
        """Run EM with unlabelled rows of weight `factor`, from the estimate of the labelled rows."""
        start = self.estimate(self.labelled, self.members.weights())
        if factor == 0 or not len(self.unlabelled):
            return start, em.Trace([], True)
        weight = float(self.members.weights().sum()) + factor * self.unlabelled.total_weight
        monotone = self.rule in ("ml", "map") and self.scale == 1
        with one_thread(0):
            return em.run(
                lambda estimate: self.step(estimate, factor),
                start,
                weight,
                max_iter,
                tol,
                warn,
                monotone=monotone,
                label=label,
            )

    def step(self, estimate: Estimate, factor: float) -> tuple[Estimate, float]:
        """Make one EM step; return the next estimate and the objective of the given one."""
        density = estimate.density if self.scale == 1 else Tempered(estimate.density, self.scale)
        mixture = MixtureDensity(estimate.log_prior, density)
        found, total = self.unlabelled.expect(mixture, self.members.classes)
        if found is None:
            raise DecibanError(
                "some unlabelled rows have density 0 in every class. Use rule 'mean', whose prior makes every value "
                "possible, or drop these rows."
            )
        objective = factor * total + self._labelled_log_likelihood(estimate)
        if self.rule == "map":
            objective += self.family.log_prior(estimate.density)  # type: ignore[attr-defined]
        counts = self.members.weights() + factor * found.counts
        return self.estimate(self.labelled + found.components * factor, counts), objective

    def estimate(self, sums: Stats, counts: Array) -> Estimate:
        """Estimate densities and prior from sums."""
        prior = counts / counts.sum() if self.prior is None else self.prior
        with np.errstate(divide="ignore"):
            return Estimate(self.family.estimate(sums, self.rule), np.log(prior), counts, sums)

    def _labelled_log_likelihood(self, estimate: Estimate) -> float:
        """Return Σ w log P(y) f(x|y) of the labelled rows."""
        own, w = self.members.codes, self.members.row_weights()
        scores = estimate.density.log_density(self.X)[np.arange(len(own)), own] + estimate.density.log_base(self.X)
        return float(w @ (scores + estimate.log_prior[own]))

    def left_out_losses(self, factor: float, max_iter: int, tol: float) -> tuple[Array, Array]:
        """Return log losses and errors of labelled rows, (n,) each, by EM without the labelled rows of their folds.

        One scale and offsets are fitted to the scores first, because densities of dependent columns are overconfident.
        """
        own, n = np.asarray(self.members.codes), len(self.members)
        fold = stratified(own, min(FOLDS, n))
        scores = np.full((n, self.members.K), np.nan)
        for k in np.unique(fold):
            train, test = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
            try:
                part = replace(self, X=self.X[train], members=self.members.take(train))
                estimate, _ = part.run(factor, max_iter, tol, warn=False)
                scores[test] = estimate.density.log_density(self.X[test]) + estimate.log_prior
            except DecibanError:  # a class without rows outside the fold, under rule "ml"
                continue
        judged = np.isfinite(scores).all(axis=1)
        loss, wrong = np.full(n, IMPOSSIBLE), scores.argmax(axis=1) != own
        if judged.any():
            given = [scores[judged]], own[judged], [None], tuple(range(self.members.K))
            try:
                made = Calibration.fit("offsets", *given, float(n)).apply(given[0], [None], given[3])
            except DecibanError:  # a class without a row
                made = given[0][0]
            loss[judged] = -log_posterior(made, np.zeros(self.members.K))[np.arange(judged.sum()), own[judged]]
        return loss, wrong


def _recalibrated(clf: Any, predictor: Predictor, task: SemiSupervisedEM, batch: Batch) -> Predictor:
    """Fit the calibration again to labelled rows, each left out of the new sums, if the first model had one."""
    before = clf.model_.calibration
    if before is None:
        return predictor
    lesson = model.Lesson(batch, task.X, task.members)
    try:
        calibration = fit_calibration(predictor, lesson, before.method, clf.calibrate == "auto")
    except DecibanError:  # too few labelled rows
        return predictor
    return Predictor(replace(predictor.model, calibration=calibration), predictor.density)


def _task(clf: Any, X: ArrayLike, labels: Array, weight: Array, have: Array, lack: Array) -> SemiSupervisedEM:
    """Return EM with the family, rule and prior of a classifier that was fitted to the labelled rows `have`."""
    known = clf.stats_.family
    family = clf.family_.resolve(known)  # EM holds the prior that the labelled rows gave
    table = Table.of(_safe_indexing(X, have))
    block = model.encode(family, table, known)
    codes = place_labels(labels[have].tolist(), len(have), clf.stats_.classes)
    members = Members.hard(codes, clf.stats_.axis, weight[have])
    # without unlabelled rows, no rows of the same kind
    rest = model.encode(family, Table.of(_safe_indexing(X, lack if len(lack) else have[:1])), known)
    rows = WeightedRows(family, rest if len(lack) else rest[:0], weight[lack])
    if len(lack):
        family.check(rest, [str(name) for name in clf.columns_], learning=True)
    learnt = isinstance(clf.prior, str) and clf.prior == "learnt"
    prior = None if learnt else resolve_prior(clf.prior, clf.classes_, clf.stats_.rows)
    rule: Rule = "mean" if clf.rule == "predictive" else clf.rule
    return SemiSupervisedEM(family, block, members, rows, rule, prior, _common_scale(clf, table, block, members))


def _common_scale(clf: Any, table: Table, rows: Rows, members: Members) -> float:
    """Return the scale of the labelled rows' leave-one-out scores, at most 1; 1 if the classifier is not calibrated."""
    if clf.model_.calibration is None:
        return 1.0
    lesson = distinct(model.Lesson(Batch(table, None, members.weight), rows, members))
    scores = total(left_out_blocks(clf.predictor_, lesson.rows, lesson.members)[: len(clf.model_.positions)])
    try:
        found = Offsets.fit(scores, np.asarray(lesson.members.codes), penalty=informative_penalty)
    except DecibanError:  # too few labelled rows
        return 1.0
    return min(1.0, float(found.scale))
