"""The classifier: one family, or one for each column, for every class; a scikit-learn estimator."""

from __future__ import annotations

import os
import threading
from collections.abc import Hashable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from types import ModuleType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from deciban.engines import elsewhere, over_frames
from deciban.errors import (
    Argument,
    InputError,
    MergeError,
    MissingValueError,
    ModelFileError,
    NotAvailableError,
    Remedy,
)
from deciban.estimators.parameters import FamilyParameters
from deciban.evidence import decisions, scores
from deciban.evidence.decisions import ClassWeightLike, CostLike, PriorLike
from deciban.families.abilities import HasCandidates, ability, needs_all_rows
from deciban.families.product import BlockRows, Product, blocks_of, expert_columns
from deciban.families.protocol import Density, Family, Posterior, Rule, brief, set_input_tags
from deciban.model import judge
from deciban.model.answers import Answers, LabelsLike, RowsLike, answer, one_model
from deciban.model.calibration import Calibration
from deciban.model.fit import Request, automatic_method, fit, rechosen
from deciban.model.ledger import Key, Ledger
from deciban.model.model import InteractionsLike, Model, ModelStats, Prequential, Reader, Reason, class_axis
from deciban.model.predictor import Predictor, block_lengths
from deciban.read.arrays import row_weights
from deciban.read.batches import Batch, Rows, split_label, typed_rows
from deciban.read.codes import Labels, place_labels
from deciban.read.files import PLACES
from deciban.read.tables import Table, TypedTable, in_memory
from deciban.statistics import Additive, Array

if TYPE_CHECKING:
    import pandas

    from deciban.evaluate.report import Evaluation
    from deciban.evidence.explanation import Explanation
    from deciban.families.protocol import Posterior
    from deciban.model.evaluation import FitReport
    from deciban.model.explain import Discriminant
    from deciban.model.prediction_sets import Conformity, PredictionSets
    from deciban.model.row_reader import Row
    from deciban.model.single_rows import RowAccumulator, RowScorer
    from deciban.read.schema import Schema
    from deciban.store.classifier import Stored

BY_EM = "rows with gaps: fitted by EM, so that rows cannot be unlearnt; Gaussian('diagonal') could unlearn them"


class GenerativeClassifier(Answers, ClassifierMixin, FamilyParameters):
    """Classifier that models how each class produces its rows.

    It answers with the weight of evidence for every class, to which priors and costs are applied afterwards. The model
    is a sum of statistics of its rows, so rows can be added, removed and merged without a refit.

    Parameters
    ----------
    families : Family, dict of {column: Family} or "auto", default="auto"
        Distribution of the features given the class. With "auto", a family is chosen for each column of a frame; a
        dense array is one Gaussian block, a sparse matrix is multinomial, a list of str is text. If `fit` finds missing
        values, `GaussianWithGaps`, which learns by EM, takes the place of a full or tied `Gaussian`.
    rule : {"ml", "map", "mean", "predictive"}, default="mean"
        How parameters are obtained: maximum likelihood, posterior mode, posterior mean, or integrated out.
    prior : "learnt", "uniform", dict or array-like, default="learnt"
        Class prior; the `prior` argument of each call overrides it.
    cost : dict of {(true, decided): cost} or array-like of shape (n_classes, n_classes), optional
        Costs of wrong decisions; 0 for right and 1 for wrong ones where not given.
    classes : sequence, optional
        Class labels declared before they are seen, in this order.
    calibrate : {"offsets", "length", "blocks", "features", "affine", "pav", "auto"} or None, default="auto"
        How log-likelihoods are calibrated on leave-one-out scores. "auto" calibrates text, and families that were
        chosen automatically, unless it would lose; arrays whose first rows come by `partial_fit` are not calibrated.
    ledger : bool, str or bytes, default=False
        Whether to keep a digest of every row, so that only rows that were learnt can be unlearnt; or the secret key
        of the digests.
    kinds : dict of {column: kind or Family}, optional
        Kinds of columns under "auto", such as "category" or "identifier", or their families. For the label column of a
        file, a number: the label holds numbers, which are split into this many ranges, the classes.
    interactions : "auto", int or list of pairs of columns, default="auto"
        Pairs of columns whose counts are summed beside the families of the columns: evidence of a pair beyond that of
        its columns, weighed when the model is calibrated. "auto" takes pairs of a table whose families are chosen
        automatically; a number is the most pairs to take, 0 for none.
    class_weight : dict of {class: weight} or "balanced", optional
        Changes the learnt prior: learnt proportions times these weights, or equal probabilities. Rows keep their
        weights, so densities and log-likelihood ratios do not change. Not together with `prior`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels, in the order of the columns of `predict_proba`.
    class_count_ : ndarray of shape (n_classes,)
        Weight of the rows learnt of each class.
    class_prior_ : ndarray of shape (n_classes,)
        Class probabilities of the answers: `prior`, changed by `class_weight`.
    means_, variances_ : ndarray of shape (n_classes, n_features)
        Moments of the columns in each class, in the units of the data; NaN for columns without moments.
    covariances_ : ndarray of shape (n_classes, n_features, n_features)
        Covariances of the columns in each class; 0 between blocks, which are independent.
    feature_log_prob_ : ndarray of shape (n_classes, n_features), list of ndarray, or dict
        Log probabilities of words or of ones; of categories, an array (n_classes, n_categories) for each column. With
        several families, a dict of these by column.
    categories_ : ndarray, list of ndarray, or dict
        Words or categories along the last axis of `feature_log_prob_`, in the same form.
    model_ : Model
        The fitted model, an immutable value.
    n_features_in_ : int
        Number of columns seen during fit.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, where all are strings.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from deciban import Gaussian, GenerativeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = GenerativeClassifier(Gaussian("tied")).fit(X, y)
    >>> clf.predict(X[:2])
    array([0, 0])
    >>> int((clf.leave_one_out(X, y, method="predict") != y).sum())    # equals 150 refits, without refitting
    3
    """

    def __init__(
        self,
        families: Family[Any] | Mapping[Any, Any] | str = "auto",
        *,
        rule: Rule = "mean",
        prior: PriorLike = "learnt",
        cost: CostLike = None,
        classes: Sequence[Any] | None = None,
        calibrate: str | None = "auto",
        ledger: bool | str | bytes = False,
        kinds: Mapping[Any, Any] | None = None,
        interactions: InteractionsLike = "auto",
        class_weight: ClassWeightLike | None = None,
    ) -> None:
        self.families = families
        self.rule = rule
        self.prior = prior
        self.cost = cost
        self.classes = classes
        self.calibrate = calibrate
        self.ledger = ledger
        self.kinds = kinds
        self.interactions = interactions
        self.class_weight = class_weight

    @classmethod
    def from_densities(
        cls, densities: Mapping[Any, Density], prior: PriorLike = "uniform", cost: CostLike = None
    ) -> Self:
        """Make a classifier of known densities; nothing is learnt.

        Parameters
        ----------
        densities : dict of {class label: Density}
            One density per class, such as ``Gaussian.of(0, 1)``.
        prior : "uniform", dict or array-like, default="uniform"
            Class prior.
        cost : dict of {(true, decided): cost} or array-like, optional
            Costs of wrong decisions.

        Returns
        -------
        GenerativeClassifier
            A fitted classifier.

        Examples
        --------
        >>> from deciban import Gaussian, GenerativeClassifier
        >>> men, women = Gaussian.of(175.33, 52.89), Gaussian.of(161.82, 46.89)
        >>> clf = GenerativeClassifier.from_densities({"m": men, "f": women})
        >>> round(float(np.exp(clf.llr([[174.0]], "m", "f"))[0]), 3)
        4.504
        """
        from deciban.families.fixed import KnownDensities

        for name, density in densities.items():
            if not isinstance(density, Density) or density.K != 1:
                raise InputError(f"{name!r}: {density!r} is not one known density. Use for example Gaussian.of(0, 1).")
        family = KnownDensities(tuple(densities.values()))
        axis = class_axis((), list(densities))
        stats = ModelStats({"class": axis}, np.zeros(axis.size), family.no_sums(axis))
        D = family.densities[0].sample(np.zeros(1, dtype=np.intp), np.random.default_rng(0)).shape[1]
        clf = cls(family, prior=prior, cost=cost)
        clf.n_features_in_ = D
        model = Model(family, stats, Reader(range(D)), clf.rule, family, (Reason("known densities"),))
        return clf.use(Predictor(model, model.density()))

    # -- what was learnt -------------------------------------------------------------------------------------------
    @property
    def predictor_(self) -> Predictor:
        """The fitted model with its density; a model from a file is checked when it is first used."""
        if "_predictor" not in self.__dict__:
            check_is_fitted(self)
        predictor = self._predictor
        if predictor.check is not None:
            predictor.verify()
        return predictor

    @property
    def model_(self) -> Model:
        """The fitted model."""
        return self.predictor_.model

    @property
    def stats_(self) -> ModelStats:
        """The sums of all rows learnt."""
        return self.model_.stats

    @property
    def family_(self) -> Family[Any]:
        """The family with its choices made."""
        return self.model_.family

    @property
    def density(self) -> Density:
        """The densities of all classes under the rule."""
        return self.predictor_.density

    @property
    def class_count_(self) -> Array:
        """Weight of the rows learnt of each class, shape (n_classes,)."""
        return self.model_.stats.rows

    @property
    def class_prior_(self) -> Array:
        """Class probabilities of the answers, shape (n_classes,)."""
        return np.exp(self.log_prior())

    @property
    def means_(self) -> Array:
        """Mean of each column in each class, shape (n_classes, n_features); NaN where the family has none."""
        return _parameters().moments(self.model_, self.density).means

    @property
    def variances_(self) -> Array:
        """Variance of each column in each class, shape (n_classes, n_features); NaN where the family has none."""
        return _parameters().moments(self.model_, self.density).variances

    @property
    def covariances_(self) -> Array:
        """Covariances in each class, shape (n_classes, n_features, n_features); NaN where the family has none."""
        return _parameters().covariances(self.model_, self.density)

    @property
    def feature_log_prob_(self) -> Array | list[Array] | dict[Any, Any]:
        """Log probabilities of words, ones or categories: (n_classes, n_features), or an array for each column."""
        return _parameters().log_probabilities(self.density)

    @property
    def categories_(self) -> Array | list[Array] | dict[Any, Any]:
        """Words or categories along the last axis of `feature_log_prob_`, in the same form."""
        return _parameters().category_names(self.density)

    def posterior(self) -> Posterior:
        """Describe the posterior of every parameter.

        Returns
        -------
        Posterior
            Mean, mode, standard deviation and credible intervals, by the name of the parameter; arrays have the classes
            along their first axis.

        Examples
        --------
        >>> from deciban import GenerativeClassifier, Poisson
        >>> clf = GenerativeClassifier(Poisson()).fit([[3], [5], [0], [1]], ["a", "a", "b", "b"])
        >>> clf.posterior()["rate"].mean.ravel().round(2)
        array([3.42, 1.08])
        """
        from deciban.families.fitted import Fitted

        model = self.model_
        return Fitted(model.family, model.stats.family).posterior()

    def to_frame(self, level: float = 0.9) -> pandas.DataFrame:
        """Return every parameter with its credible interval as a pandas frame.

        Parameters
        ----------
        level : float, default=0.9
            Probability of the intervals.

        Returns
        -------
        pandas.DataFrame
            One row for each feature (column, category or word), parameter and class: posterior mean, ends of the
            interval, and for probabilities the evidence for the class in decibans.

        Examples
        --------
        >>> from deciban import GenerativeClassifier, Poisson
        >>> clf = GenerativeClassifier(Poisson()).fit([[3], [5], [0], [1]], ["a", "a", "b", "b"])
        >>> clf.to_frame()[["parameter", "class", "mean"]].round(2)
          parameter class  mean
        0      rate     a  3.42
        1      rate     b  1.08
        """
        import pandas

        found = _parameters()
        lines = list(found.posterior_parameters(self.model_, level))
        frame = pandas.DataFrame(lines, columns=found.Parameter._fields)[[*found.SHOWN]]
        return frame.rename(columns={"label": "class"}).astype({"evidence": float})

    @property
    def columns_(self) -> Any:
        """Columns of the model: names, or a range where there are none."""
        return self.model_.reader.columns

    @property
    def schema_(self) -> Schema | None:
        """How frames and files are typed; None where rows are taken as they are."""
        return self.model_.reader.schema

    @property
    def calibration_(self) -> Calibration | None:
        """The calibration of the log-likelihoods."""
        return self.model_.calibration

    @property
    def ledger_(self) -> Ledger | None:
        """Digests of the rows learnt."""
        return self.model_.ledger

    @property
    def prequential_(self) -> Prequential | None:
        """Log loss of batches that were scored before they were learnt."""
        return self.model_.prequential

    @property
    def families_(self) -> dict[Any, str]:
        """For each block its family, and why; keys are a column, or a tuple of columns."""
        model = self.model_
        if isinstance(model.family, Product):
            keys: list[Any] = [key[0] if len(key) == 1 else key for key in model.family.keys]
        else:
            texts = ability(model.family, HasCandidates) is not None
            keys = ["all texts" if texts else f"all {len(model.reader.columns)} columns"]
        blocks = zip(keys, blocks_of(model.family), model.reasons)
        return {key: f"{brief(family)}: {reason.text}" for key, (family,), reason in blocks}

    @property
    def interactions_(self) -> dict[tuple[Any, ...], float]:
        """For each pair of columns that was summed its weight in calibrated scores; 0 where it is not used.

        A key with more than two columns is that of averaged one-dependence estimators, which have one weight.
        """
        from deciban.families.interactions import Interactions

        model = self.model_
        parts = expert_columns(model.family)
        used = model.calibration is not None and model.calibration.uses_experts
        weights = model.calibration.calibrator.weights if used else np.zeros(len(parts))  # type: ignore[union-attr]
        each = zip(parts, weights)
        return {key: float(weight) for (family, key), weight in each if isinstance(family, Interactions)}

    @property
    def choices_(self) -> str:
        """When the frozen choices were made, and whether they are out of date."""
        if self.model_.unlearnt:
            return "frozen at the first fit, partly from rows unlearnt since; rechoose() makes them again"
        return "frozen at the first fit"

    @property
    def calibration_state_(self) -> str:
        """Whether the model is calibrated, and whether the calibration is out of date."""
        calibration = self.model_.calibration
        return f"calibration: {'none' if calibration is None else calibration.state(self.model_.weight)}"

    @property
    def standing_(self) -> str:
        """One line: what `unlearn` can check, and whether choices and calibration are up to date."""
        if needs_all_rows(self.model_.family):
            checked = "rows cannot be unlearnt: the model was fitted by EM; fit again without them"
        elif self.model_.ledger is not None:
            checked = "unlearn checks rows by the ledger"
        else:
            checked = "unlearn cannot check rows: there is no ledger, only impossible sums are refused"
        return f"{checked}; choices {self.choices_}; {self.calibration_state_}"

    # -- learning --------------------------------------------------------------------------------------------------
    def fit(self, X: RowsLike, y: LabelsLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model; rows learnt before are discarded.

        Open choices are made from the first rows and frozen; the sums are taken over all rows.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, list of str, or path of a file or folder
            Rows to learn. A path may be a pattern of files, such as ``logs/2026-*/*.parquet``, or an address. A frame
            of Dask is summed where its partitions are.
        y : array-like of shape (n_samples,) or str
            Labels, or the name of the column that holds them.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row; 1 if None. Rows of weight 0 have no effect.

        Returns
        -------
        GenerativeClassifier
            The fitted classifier itself.
        """
        return self._fit(X, y, sample_weight, self.classes)

    def partial_fit(
        self, X: RowsLike, y: LabelsLike, classes: Sequence[Any] | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn rows; scikit-learn's name for `learn`.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, list of str, or path of a file or folder
            Rows to learn.
        y : array-like of shape (n_samples,) or str
            Labels, or the name of the column that holds them.
        classes : sequence, optional
            Declares class labels at the first call.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row; 1 if None.

        Returns
        -------
        GenerativeClassifier
            The classifier itself.
        """
        if not self.__sklearn_is_fitted__():
            declared = self.classes if classes is None else classes
            return self._fit(X, y, sample_weight, declared, first_of_many=True)
        return self.learn(X, y, sample_weight)

    def learn(self, X: RowsLike, y: LabelsLike, sample_weight: ArrayLike | None = None) -> Self:
        """Add rows; new classes may arrive. The first call is `fit`.

        A model of texts scores each batch before it learns it: `prequential_` is the running log loss. Calls from
        several threads are carried out one after the other; if a batch is refused, nothing has changed.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, list of str, or path of a file or folder
            Rows to learn.
        y : array-like of shape (n_samples,) or str
            Labels, or the name of the column that holds them.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row; 1 if None.

        Returns
        -------
        GenerativeClassifier
            The classifier itself.
        """
        if not self.__sklearn_is_fitted__():
            return self.fit(X, y, sample_weight)
        with self._writing():
            predictor = self._predictor
            for batch in self._rows(X, y, sample_weight).batches():
                with batch.located():
                    lesson = predictor.model.lesson(batch)
                    loss = None
                    if predictor.scores_batches_first:
                        loss = predictor.prequential(
                            lesson, self._log_prior_for(predictor.model.stats.rows, np.array(predictor.model.classes))
                        )
                    model = predictor.model.learn(lesson, self._key())
                predictor = predictor.next(replace(model, prequential=loss))
            return self.use(predictor)

    def accumulator(self) -> RowAccumulator:
        """Return an accumulator that learns and answers one row at a time, beginning with the rows learnt so far.

        The classifier itself does not change; ``clf.use(Predictor(lessons.model()))`` gives it the lessons.

        Returns
        -------
        RowAccumulator
            Has `learn_one`, `unlearn_one`, `predict_one`, `predict_proba_one` and `model`; for one thread.

        Examples
        --------
        >>> from deciban import GenerativeClassifier
        >>> clf = GenerativeClassifier().fit(["free prize", "lunch at noon"] * 9, ["spam", "ham"] * 9)
        >>> clf.accumulator().learn_one("noon is fine", "ham").model().weight
        19.0
        """
        from deciban.model.single_rows import RowAccumulator

        return RowAccumulator(self.model_, self._key())

    def learn_one(self, row: Row, label: Any) -> Self:
        """Learn a single row; `accumulator` learns many of them faster.

        Parameters
        ----------
        row : dict, sequence or str
            A value for each column by its name; numbers in the order of the columns, for a model of an array; or a
            text, for a model of texts.
        label : object
            Its class, which may be new.

        Returns
        -------
        GenerativeClassifier
            The classifier itself.
        """
        return self.learn([row], [label])

    def unlearn_one(self, row: Row, label: Any) -> Self:
        """Remove a single row that was learnt.

        Parameters
        ----------
        row : dict, sequence or str
            The row, as it was learnt.
        label : object
            The class that it was learnt with.

        Returns
        -------
        GenerativeClassifier
            The classifier itself.

        Raises
        ------
        NotLearntError
            If the ledger, or the sums, show that the row was never learnt. The model is unchanged.
        """
        return self.unlearn([row], [label])

    def predict_proba_one(self, row: Row) -> dict[Any, float]:
        """Return the posterior probability of each class for a single row; `scorer` answers many of them faster.

        Parameters
        ----------
        row : dict, sequence or str
            A row as `learn_one` takes it.

        Returns
        -------
        dict of {object: float}
            Class label → P(class|row).
        """
        return dict(zip(self.classes_.tolist(), self.predict_proba([row])[0].tolist()))

    def predict_one(self, row: Row) -> Any:
        """Return the most probable class of a single row; `scorer` answers many of them faster.

        Parameters
        ----------
        row : dict, sequence or str
            A row as `learn_one` takes it.

        Returns
        -------
        object
            A class label.
        """
        return self.predict([row]).tolist()[0]

    def unlearn(self, X: RowsLike, y: LabelsLike, sample_weight: ArrayLike | None = None) -> Self:
        """Remove rows that were learnt before; the result equals a model fitted without them.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, list of str, or path of a file or folder
            Rows that were learnt.
        y : array-like of shape (n_samples,) or str
            The labels they were learnt with, or the name of the column that holds them.
        sample_weight : array-like of shape (n_samples,), optional
            The weights they were learnt with.

        Returns
        -------
        GenerativeClassifier
            The classifier itself.

        Raises
        ------
        NotLearntError
            If the ledger, or the sums, show that a row was never learnt. The model is unchanged.
        """
        check_is_fitted(self)
        with self._writing():
            batch = self._batch(X, y, sample_weight)
            return self.use(self._predictor.next(self.model_.unlearn(batch, self._key())))

    def correct(self, X: RowsLike, was: LabelsLike, now: LabelsLike, sample_weight: ArrayLike | None = None) -> Self:
        """Move rows from one label to another.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, list of str, or path of a file or folder
            Rows that were learnt.
        was : array-like of shape (n_samples,) or str
            The labels they were learnt with, or the name of the column that holds them.
        now : array-like of shape (n_samples,) or str
            The right labels, or the name of the column that holds them.
        sample_weight : array-like of shape (n_samples,), optional
            The weights they were learnt with.

        Returns
        -------
        GenerativeClassifier
            The classifier itself.
        """
        check_is_fitted(self)
        with self._writing():
            _, labels = self._labelled(X, now)
            rows, before = self._labelled(X, was)
            batch = self._batch(rows, before, sample_weight)
            after = self._batch(rows, labels, sample_weight)
            return self.use(self._predictor.next(self.model_.correct(batch, after.labels, self._key())))

    def decay(self, factor: float) -> Self:
        """Multiply the weight of all rows learnt so far by a factor.

        Parameters
        ----------
        factor : float
            Greater than 0 and at most 1.

        Returns
        -------
        GenerativeClassifier
            The classifier itself.
        """
        check_is_fitted(self)
        with self._writing():
            return self.use(self._predictor.next(self.model_ * factor))

    # -- other classifiers from the same sums ----------------------------------------------------------------------
    def merge(self, other: GenerativeClassifier, keep: str | None = None) -> Self:
        """Return a classifier that has learnt the rows of both.

        Parameters
        ----------
        other : GenerativeClassifier
            A classifier of the same kind. A column that only one of them has was missing from every row of the other,
            where both were read by a schema.
        keep : {"left", "right"}, optional
            The classifier whose frozen choices are kept where they differ.

        Returns
        -------
        GenerativeClassifier
            A new classifier.
        """
        check_is_fitted(self)
        if not isinstance(other, GenerativeClassifier):
            raise MergeError(f"{type(other).__name__} is not a classifier of this kind.")
        check_is_fitted(other)
        model = self.model_.merge(other.model_, keep)
        return self._another(model) if keep != "right" else other._another(model)

    __add__ = merge
    __radd__ = Additive.__radd__  # `sum([a, b, c])` begins with 0 + a

    def blank(self) -> Self:
        """Return a classifier with the same choices and no rows.

        Another site or machine can learn with it; its model can then be added to this one.

        Returns
        -------
        GenerativeClassifier
            A new classifier.
        """
        return self._another(self.model_.blank())

    def reestimate(
        self,
        *,
        rule: Rule | None = None,
        classes: Sequence[Any] | None = None,
        columns: Sequence[Any] | None = None,
        interactions: int | Sequence[tuple[Any, Any]] | None = None,
        **hyper: Any,
    ) -> Self:
        """Return another classifier from the same sums, without data.

        Parameters
        ----------
        rule : {"ml", "map", "mean", "predictive"}, optional
            Another rule.
        classes : sequence, optional
            Some of the classes.
        columns : sequence, optional
            Some of the columns.
        interactions : int or list of pairs of columns, optional
            Some of the pairs of columns that were summed: a number of them, the greatest weights first, or a list.
            Pairs have weights again after `recalibrate`.
        **hyper : dict
            Other values for hyper-parameters of the family, such as ``structure="tied"``.

        Returns
        -------
        GenerativeClassifier
            A new classifier, not calibrated.
        """
        given = {} if interactions is None else {"interactions": interactions}
        model = self.model_.reestimate(rule=rule, classes=classes, columns=columns, **given, **hyper)
        other = self._another(model, Predictor(model, model.density()))
        other.rule = model.rule
        return other

    def rechoose(self, X: RowsLike | None = None, y: LabelsLike = None, sample_weight: ArrayLike | None = None) -> Self:
        """Make the frozen choices again from the current sums.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, list of str, or path of a file or folder, optional
            Learnt rows; needed for choices that leave rows out, such as a structure.
        y : array-like of shape (n_samples,) or str, optional
            Their labels.
        sample_weight : array-like of shape (n_samples,), optional
            Their weights.

        Returns
        -------
        GenerativeClassifier
            The classifier itself.
        """
        check_is_fitted(self)
        with self._writing():
            model = self.model_
            if X is None:
                return self.use(self._predictor.next(model.rechosen_from_sums()))
            lesson = model.lesson(self._batch(X, y, sample_weight))
            return self.use(self._predictor.next(model.rechoose(rechosen(model, lesson))))

    def recalibrate(
        self,
        X: RowsLike,
        y: LabelsLike,
        method: str | None = "auto",
        *,
        learnt: bool = True,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit the calibration again.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, list of str, or path of a file or folder
            Learnt rows, which are scored by exact leave-one-out; or new rows.
        y : array-like of shape (n_samples,) or str
            Their labels, or the name of the column that holds them.
        method : {"offsets", "length", "blocks", "features", "affine", "pav", "auto"} or None, default="auto"
            The calibrator; None removes it. "auto" takes "blocks" for several blocks, "features" for texts, "length"
            for other counts, and "offsets" otherwise.
        learnt : bool, default=True
            Whether the rows were learnt.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of learnt rows.

        Returns
        -------
        GenerativeClassifier
            The classifier itself.
        """
        from deciban.model.cross_fit import fit_calibration, select_calibration

        check_is_fitted(self)
        with self._writing():
            predictor, calibration = self._predictor, None
            model = predictor.model
            if method is not None:
                automatic = method == "auto" and self.calibrate in ("auto", None)
                method = automatic_method(model) if method == "auto" else method
                if learnt:
                    left = judge.leave_out(predictor, self._batch(X, y, sample_weight), None, self._key())
                    calibration = fit_calibration(predictor, left.lesson, method, automatic)
                else:
                    X, y = self._labelled(X, y)
                    table = self._table(X)
                    rows = model.encode(table)
                    blocks, codes = predictor.block_scores(rows), place_labels(y, len(table), model.classes)
                    lengths = block_lengths(model.family, rows)
                    given = model.classes, model.weight
                    calibration = select_calibration(method, blocks, codes, lengths, *given, simplify=automatic)
            model = replace(model, calibration=calibration)
            return self.use(Predictor(model, predictor.density, learnt=predictor.learnt))

    def without_ledger(self) -> Self:
        """Return the same classifier without its ledger.

        Returns
        -------
        GenerativeClassifier
            A new classifier that can be merged with one that keeps no ledger.
        """
        other = self._another(replace(self.model_, ledger=None))
        other.ledger = False
        return other

    # -- answers ---------------------------------------------------------------------------------------------------
    @one_model
    def log_likelihood(self, X: RowsLike, *, raw: bool = False, constant: bool = True) -> Array:  # type: ignore[override]
        """Return the log-likelihood of every class.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, list of str, or path of a file or folder
            Rows to judge.
        raw : bool, default=False
            Whether to leave out the calibration.
        constant : bool, default=True
            Whether to include terms that all classes share, such as a multinomial coefficient.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Values of log f(x|class).
        """
        predictor = self.predictor_
        rows = predictor.model.encode(self._table(X))
        return predictor.log_likelihood(rows, raw) if constant else predictor.scores(rows, raw, contrast=True)

    predict = over_frames(Answers.predict)
    predict_proba = over_frames(Answers.predict_proba)
    predict_log_proba = over_frames(Answers.predict_log_proba)
    decision_function = over_frames(Answers.decision_function)

    def log_marginal(self, X: RowsLike, prior: PriorLike | None = None) -> Array:  # type: ignore[override]
        """Return log Σ_c P(c) f(x|c): how well the model as a whole explains each row.

        The densities are not calibrated: calibrated log-likelihoods compare classes, and do not integrate to one.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, list of str, or path of a file or folder
            Rows to judge.
        prior : "learnt", "uniform", dict or array-like, optional
            Class prior; the classifier's own if None.

        Returns
        -------
        ndarray of shape (n_samples,)
            Log densities of the rows.
        """
        return super().log_marginal(X, prior, raw=True)

    def log_prior(self, prior: PriorLike | None = None) -> Array:
        """Return the log prior of the classes.

        Parameters
        ----------
        prior : "learnt", "uniform", dict or array-like, optional
            Class prior; the classifier's own if None. Classes that a dict does not name share the rest.

        Returns
        -------
        ndarray of shape (n_classes,)
            Log probabilities.
        """
        given = self.prior if prior is None else prior
        if isinstance(given, str) and given == "learnt" and (prior is not None or self.class_weight is None):
            return self.predictor_.learnt_log_prior.copy()
        return self._log_prior_for(self.class_count_) if prior is None else super().log_prior(prior)

    @one_model
    def score(self, X: RowsLike, y: LabelsLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the share of rows whose label is predicted.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, list of str, or path of a file or folder
            Rows.
        y : array-like of shape (n_samples,) or str
            Their labels, or the name of the column that holds them.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row.

        Returns
        -------
        float
            Accuracy.
        """
        X, y = self._labelled(X, y)
        return float(super().score(X, np.asarray(y) if isinstance(y, Labels) else y, sample_weight))

    @one_model
    def explain(
        self,
        X: RowsLike,
        over: Hashable = None,
        against: Hashable = None,
        *,
        prior: PriorLike | None = None,
        chain: bool = False,
    ) -> Explanation:
        """Explain the evidence: which feature, block or word contributed how much.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, list of str, or path of a file or folder
            Rows to explain.
        over : class label, optional
            Class that the evidence is for. With two classes the default is ``classes_[1]`` over ``classes_[0]``, else
            each row's most probable class over the next.
        against : class label, optional
            Class to compare with.
        prior : "learnt", "uniform", dict or array-like, optional
            Class prior; the classifier's own if None.
        chain : bool, default=False
            Whether to split a block of correlated features: each feature given those before it.

        Returns
        -------
        Explanation
            The parts, which add up to the answer; prints as bars.
        """
        ranked = over is None and len(self.classes_) > 2
        pair = None if ranked else self.class_pair(over, against)
        from deciban.model.explain import explain

        return explain(self.predictor_, self._table(X), pair, self.log_prior(prior), chain)

    @one_model
    def discriminant(self, over: Hashable = None, against: Hashable = None) -> Discriminant:
        """Return the llr as a linear or quadratic formula of x.

        Parameters
        ----------
        over : class label, optional
            Class that the evidence is for; with two classes the default is ``classes_[1]``.
        against : class label, optional
            Class to compare with.

        Returns
        -------
        Discriminant
            A, b and c with llr(x) = xᵀA x + xᵀb + c; A is None where it is linear.
        """
        from deciban.model.explain import discriminant

        return discriminant(self.predictor_, *self.class_pair(over, against))

    @one_model
    def scorer(self, prior: PriorLike | None = None) -> RowScorer:
        """Return a function that scores one row at a time: a dict, a sequence of numbers, or a text.

        Everything that does not depend on the row is computed once; a text takes microseconds.

        Parameters
        ----------
        prior : "learnt", "uniform", dict or array-like, optional
            Class prior; the classifier's own if None.

        Returns
        -------
        RowScorer
            Scores rows as the classifier does now; learning makes it out of date.

        Examples
        --------
        >>> from deciban import GenerativeClassifier
        >>> clf = GenerativeClassifier().fit(["free prize", "lunch at noon"] * 9, ["spam", "ham"] * 9)
        >>> clf.scorer().predict("a prize at lunch? free!")
        'spam'
        """
        predictor = self.predictor_
        from deciban.model.single_rows import scorer_of

        return scorer_of(predictor, self.log_prior(prior))

    @one_model
    def sample(
        self, n: int = 1, random_state: np.random.Generator | int | None = None, *, prior: PriorLike | None = None
    ) -> tuple[Any, Array]:
        """Draw rows like the ones learnt.

        Parameters
        ----------
        n : int, default=1
            Number of rows.
        random_state : int or Generator, optional
            Seed.
        prior : "learnt", "uniform", dict or array-like, optional
            Class prior; the classifier's own if None.

        Returns
        -------
        tuple of (rows, labels)
            The rows, with the columns that the model uses in their order, and their labels.
        """
        rng = np.random.default_rng(random_state)
        codes = rng.choice(len(self.classes_), size=n, p=np.exp(self.log_prior(prior)))
        rows = self.density.sample(codes, rng)
        if isinstance(rows, BlockRows):
            rows = rows.side_by_side(self.model_.positions)
        return rows, self.classes_[codes]

    @one_model
    def to_sql(
        self,
        dialect: str = "duckdb",
        *,
        table: str = "rows",
        keep: Sequence[str] | None = None,
        prior: PriorLike | None = None,
    ) -> str:
        """Write the model as a query that answers for every row of a table in a database.

        NULL is a missing value. Columns are those of the model, with values as in the rows learnt. Texts, dates and
        counts of words have no such query.

        Parameters
        ----------
        dialect : str, default="duckdb"
            Dialect of SQL, by sqlglot's name, such as "sqlite", "postgres", "bigquery" or "snowflake".
        table : str, default="rows"
            Name of the table.
        keep : sequence of str, optional
            Columns of the table to return beside the answers; those of the model if None.
        prior : "learnt", "uniform", dict or array-like, optional
            Class prior; the classifier's own if None.

        Returns
        -------
        str
            A query with the columns `prediction` and `P(class)` for each class.

        Raises
        ------
        NotAvailableError
            If a part of the model cannot be written as SQL.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from deciban import Categorical, GenerativeClassifier
        >>> wines = pa.table({"colour": ["red", "white"]})
        >>> clf = GenerativeClassifier({"colour": Categorical()}).fit(wines, ["a", "b"])
        >>> print(clf.to_sql(table="wines", keep=["id"]).split("FROM")[-1].strip())
        step2
        """
        from deciban.engines.sql_scores import to_sql

        return to_sql(self.model_, self.density, self.log_prior(prior), table, dialect, keep)

    # -- judging ---------------------------------------------------------------------------------------------------
    @one_model
    def leave_one_out(
        self,
        X: RowsLike,
        y: LabelsLike,
        groups: ArrayLike | None = None,
        method: str = "predict_proba",
        *,
        sample_weight: ArrayLike | None = None,
        prior: PriorLike | None = None,
        cost: CostLike = None,
        raw: bool = False,
    ) -> Array:
        """Answer for each learnt row as if it had never been learnt; exact, without refits.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, list of str, or path of a file or folder
            Rows that were learnt.
        y : array-like of shape (n_samples,) or str
            Their labels, or the name of the column that holds them.
        groups : array-like of shape (n_samples,), optional
            Leave out a whole group at a time.
        method : str, default="predict_proba"
            One of predict, predict_proba, predict_log_proba, decision_function, log_likelihood and llr.
        sample_weight : array-like of shape (n_samples,), optional
            The weights they were learnt with.
        prior : "learnt", "uniform", dict or array-like, optional
            Class prior; the classifier's own if None. "learnt" is learnt without the row, too.
        cost : dict of {(true, decided): cost} or array-like, optional
            Costs of wrong decisions; the classifier's own if None.
        raw : bool, default=False
            Whether to leave out the calibration.

        Returns
        -------
        ndarray
            What `method` returns.
        """
        likelihood, _, log_prior = self._left_out(X, y, groups, sample_weight, raw, method == "log_likelihood")
        given = self.prior if prior is None and self.class_weight is None else prior
        if not (isinstance(given, str) and given == "learnt"):
            log_prior = self._log_prior_for(np.exp(log_prior)) if prior is None else self.log_prior(prior)
        return self.answer(method, likelihood, log_prior, cost)

    @one_model
    def cross_val_predict(
        self,
        X: RowsLike,
        y: LabelsLike,
        cv: Any = 5,
        method: str = "predict_proba",
        *,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        prior: PriorLike | None = None,
        cost: CostLike = None,
    ) -> Array:
        """Answer by k-fold cross-validation: one pass, k estimates, no refits; frozen choices are kept.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, list of str, or path of a file or folder
            Rows. An unfitted classifier takes its choices from them first.
        y : array-like of shape (n_samples,) or str
            Their labels, or the name of the column that holds them.
        cv : int or cross-validation generator, default=5
            Folds that cover each row once.
        method : str, default="predict_proba"
            One of predict, predict_proba, predict_log_proba, decision_function, log_likelihood and llr.
        groups : array-like of shape (n_samples,), optional
            Groups for the folds.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows.
        prior : "learnt", "uniform", dict or array-like, optional
            Class prior; the classifier's own if None.
        cost : dict of {(true, decided): cost} or array-like, optional
            Costs of wrong decisions; the classifier's own if None.

        Returns
        -------
        ndarray
            What `method` returns.
        """
        from sklearn.model_selection import check_cv  # slow to import

        fitted = self if self.__sklearn_is_fitted__() else clone(self).fit(X, y, sample_weight)
        X, y = fitted._labelled(X, y)
        lesson = fitted.model_.lesson(fitted._given(X, y, sample_weight))
        names = np.array(lesson.members.classes.names)
        n, codes = len(lesson.members), lesson.members.codes
        folds = [test for _, test in check_cv(cv, np.asarray(y), classifier=True).split(np.zeros(n), codes, groups)]
        if sorted(np.concatenate(folds).tolist()) != list(range(n)):
            raise InputError("cross_val_predict needs folds that cover each row once. Use KFold or StratifiedKFold.")
        costs = self.cost if cost is None else cost

        def answered(likelihood: Array, rows_per_class: Array) -> Array:
            if prior is None:
                wanted = self._log_prior_for(rows_per_class, names)
            else:
                wanted = scores.log_probability(decisions.resolve_prior(prior, names, rows_per_class))
            return answer(method, likelihood, wanted, names, costs)

        return judge.cross_validate(fitted.model_, lesson, folds, answered, method == "log_likelihood")

    @one_model
    def check_learnt(self, X: RowsLike, y: LabelsLike) -> None:
        """Refuse rows that were not learnt, as far as the ledger or the sums show it.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, list of str, or path of a file or folder
            Rows.
        y : array-like of shape (n_samples,) or str
            Their labels, or the name of the column that holds them.

        Raises
        ------
        NotLearntError
            If the ledger, or the sums, show that a row was never learnt.
        """
        judge.learnt_lesson(self.model_, self._given(*self._labelled(X, y), None), self._key())

    @one_model
    def evaluate(  # type: ignore[override]
        self,
        X: RowsLike,
        y: LabelsLike,
        *,
        learnt: bool = False,
        groups: ArrayLike | None = None,
        time: ArrayLike | None = None,
        rechoose: Any = None,
        sample_weight: ArrayLike | None = None,
        prior: PriorLike | None = None,
        cost: CostLike = None,
        raw: bool = False,
        progress: bool = False,
    ) -> Evaluation:
        """Evaluate the answers: error, log loss, Cllr and its calibration loss, confusion and more.

        Learnt rows are judged by 5-fold cross-validation of the whole fit: for each fold, the sums without its rows,
        the choices that labels make, and the calibrator are obtained from the other rows. At most 10,000 rows are
        judged. Folds have equal shares of each class; copies of a row are in the same fold. Figures are those of a
        model of four fifths of the rows, or, with more than 10,000 rows, of all but 2,000.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, list of str, or path of a file or folder
            New rows, or learnt ones.
        y : array-like of shape (n_samples,) or str
            Their labels, or the name of the column that holds them.
        learnt : bool, default=False
            Whether the rows were learnt: each is then scored by a model without the rows of its fold. The prior is that
            of all rows.
        groups : array-like of shape (n_samples,), optional
            Of learnt rows, rows of a group are in the same fold.
        time : array-like of shape (n_samples,), optional
            Of learnt rows, the time of each row: rows are judged by models of earlier rows, in five steps. The first
            sixth of the rows is not judged.
        rechoose : int or cross-validation generator, optional
            For learnt rows: number of folds, or a splitter. All rows are judged, by complete fits of the other folds.
        sample_weight : array-like of shape (n_samples,), optional
            Of learnt rows, the weights with which they were learnt, and with which they are left out. Each row of a
            weight above 0 counts once in the figures.
        prior : "learnt", "uniform", dict or array-like, optional
            Class prior; the classifier's own if None.
        cost : dict of {(true, decided): cost} or array-like, optional
            Costs of wrong decisions; the classifier's own if None.
        raw : bool, default=False
            Whether to leave out the calibration.
        progress : bool, default=False
            Whether to show the number of the fold, on a terminal, if judging takes longer than a second.

        Returns
        -------
        Evaluation
            All figures with their intervals; prints as a report. It names choices that were made by the labels of the
            same rows and could not be made again.
        """
        check_is_fitted(self)
        if groups is not None and time is not None:
            raise InputError("groups and time were both given. Give one of them.")
        if sample_weight is not None and (rechoose or not learnt):
            raise InputError(
                "sample_weight= is for learnt rows without rechoose=: others count once each. Leave it out."
            )
        X, y = self._labelled(X, y)
        if not learnt:
            return super().evaluate(X, y, prior=prior, cost=cost, raw=raw)
        kept: list[str] = []
        unit = None
        if rechoose:
            likelihood, codes = self._rechosen_scores(X, y, rechoose, raw)
        else:
            from deciban.model.evaluation import holds_all_rows, nested_scores
            from deciban.model.judge import FOLDS, folds_in_time, k_folds, units
            from deciban.terminal import progress_bar

            given = self._given(X, y, sample_weight)
            if needs_all_rows(self.model_.family):  # its sums do not show what was learnt
                lesson = judge.known_lesson(self.model_, given)
            else:
                lesson = judge.learnt_lesson(self.model_, given, self._key())
            table, codes = lesson.batch.table, lesson.members.codes
            if time is None:
                unit = units(table, codes, groups)
                splits = list(k_folds(codes, FOLDS, unit))
            elif holds_all_rows(self.model_, lesson):
                splits = list(folds_in_time(time, len(codes)))
            else:
                raise InputError("time= needs all rows of the model: the time of the others is not known.")
            if given.weight is not None:
                splits = [split._replace(test=split.test[given.weight[split.test] > 0]) for split in splits]
            with progress_bar("judging" if progress else None, len(splits)) as update:
                found = nested_scores(self.predictor_, self._request(self.classes), lesson, splits, raw, update)
            likelihood, codes, kept = found.scores, codes[found.rows], found.kept
            unit = None if unit is None else unit[found.rows]
        wanted = np.exp(self.log_prior(prior))
        from deciban.evaluate.report import Evaluation

        classes, costs = self.model_.classes, self.cost_matrix(cost)
        return Evaluation(likelihood, codes, classes, wanted, costs, True, kept, unit)

    @one_model
    def llr_interval(
        self,
        X: RowsLike,
        over: Hashable = None,
        against: Hashable = None,
        *,
        level: float = 0.9,
        draws: int = 400,
        unit: str = "nats",
        random_state: np.random.Generator | int | None = 0,
    ) -> judge.LLRInterval:
        """Return credible intervals of the llrs, by drawing the parameters from their posterior.

        They show how far an answer may be off because few rows were learnt, not because the family is wrong. The
        calibration is kept fixed: its uncertainty is not in the intervals.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, list of str, or path of a file or folder
            Rows to judge.
        over : class label, optional
            Class that the evidence is for; with two classes the default is ``classes_[1]``.
        against : class label, optional
            Class to compare with.
        level : float, default=0.9
            Probability that the interval covers.
        draws : int, default=400
            Number of draws.
        unit : {"nats", "bits", "bans", "decibans"}, default="nats"
            Unit of the result.
        random_state : int or Generator, default=0
            Seed.

        Returns
        -------
        LLRInterval
            The fields median, low and high, each of shape (n_samples,).
        """
        pair = self.class_pair(over, against)
        predictor, rng = self.predictor_, np.random.default_rng(random_state)
        rows = predictor.model.encode(self._table(X))
        ends = judge.llr_interval(predictor, rows, pair, self.log_prior(), level, draws, rng)
        return judge.LLRInterval(*(scores.convert(end, unit) for end in ends))

    @one_model
    def predict_set(
        self,
        X: RowsLike,
        coverage: float = 0.9,
        method: str = "cv+",
        by_class: bool = False,
        allow_empty: bool = True,
        *,
        learnt: tuple[RowsLike, LabelsLike] | None = None,
    ) -> PredictionSets:
        """Return for each row the set of classes that contains the true one with a given probability.

        The guarantee holds on average over new rows that are exchangeable with the learnt ones, whether or not the
        families are right; it does not hold for each kind of row, nor where the data drift.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, list of str, or path of a file or folder
            Rows to judge.
        coverage : float, default=0.9
            Probability 1 − α that a set contains the true class.
        method : {"cv+", "jackknife", "full"}, default="cv+"
            "cv+" compares with 10 models, each fitted without a tenth of the learnt rows: coverage at least
            1 − 2α − √(2/n), about 1 − α in practice. "jackknife" compares leave-one-out scores that are not calibrated:
            one pass, no guarantee. "full" adds each row with each class to the sums: at least 1 − α, for small tables.
        by_class : bool, default=False
            Whether the coverage holds for the rows of each class. A class with fewer than 1/α − 1 rows is in every set.
        allow_empty : bool, default=True
            Whether a set may be empty. If False, an empty set gets the most probable class.
        learnt : tuple of (rows, labels), optional
            The rows that were learnt. If None, those that `fit` was given in memory, if the model has not changed
            since; files and pickles do not contain them. More than 10,000 rows are sampled.

        Returns
        -------
        PredictionSets
            The sets, their sizes, and the p-value of each class.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from deciban import GenerativeClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> clf = GenerativeClassifier().fit(X[::2], y[::2])
        >>> sets = clf.predict_set(X[1::2], coverage=0.95)
        >>> sets[0], sets.size.mean().round(2)
        ((0,), np.float64(1.0))
        """
        from deciban.model.prediction_sets import prediction_sets

        table = self._table(X)
        fill = None if allow_empty else lambda: self._most_probable(table)
        return prediction_sets(self.conformity(method, by_class, learnt=learnt), table, coverage, fill)

    @one_model
    def conformity(
        self, method: str = "cv+", by_class: bool = False, *, learnt: tuple[RowsLike, LabelsLike] | None = None
    ) -> Conformity:
        """Prepare prediction sets, for rows that arrive in several batches.

        Parameters
        ----------
        method : {"cv+", "jackknife", "full"}, default="cv+"
            As in `predict_set`.
        by_class : bool, default=False
            As in `predict_set`.
        learnt : tuple of (rows, labels), optional
            As in `predict_set`.

        Returns
        -------
        Conformity
            Computes p-values of classes for tables of rows.
        """
        from deciban.model.prediction_sets import conformity_of

        request = Request(self.families, self.rule, None, self.calibrate, None, self.kinds)
        return conformity_of(method, self.predictor_, self._learnt(learnt), request, self._log_prior_for, by_class)

    @one_model
    def p_values(self, X: RowsLike, *, learnt: tuple[RowsLike, LabelsLike] | None = None) -> Array:
        """Return how usual each row is among the rows of each class; small values for all classes mean "none of these".

        The value is the share of the class's learnt rows whose density log f(x|class), by models that have not learnt
        them, is as low as that of the row. If the row is one of the class, it is at most α with a probability of at
        most about α. Priors and the other classes do not matter.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, list of str, or path of a file or folder
            Rows to judge.
        learnt : tuple of (rows, labels), optional
            The rows that were learnt, as in `predict_set`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            P-values.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from deciban import GenerativeClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> clf = GenerativeClassifier().fit(X, y)
        >>> clf.p_values(np.array([[5.0, 3.4, 1.5, 0.2], [9.0, 9.0, 9.0, 9.0]])).round(2)
        array([[1.  , 0.02, 0.02],
               [0.02, 0.02, 0.02]])
        """
        from deciban.model.prediction_sets import class_conformity

        request = Request(self.families, self.rule, None, self.calibrate, None, self.kinds)
        made = class_conformity(self.predictor_, self._learnt(learnt), request, self._log_prior_for)
        return made.p_values(self._table(X))

    @one_model
    def influence(
        self,
        row: RowsLike,
        X: RowsLike,
        y: LabelsLike,
        over: Hashable = None,
        against: Hashable = None,
        *,
        sample_weight: ArrayLike | None = None,
    ) -> Array:
        """Return by how much the llr of one row would change if each learnt row were unlearnt; exact.

        Parameters
        ----------
        row : array-like, frame or list of str
            One row.
        X : array-like, sparse matrix, frame, list of str, or path of a file or folder
            Rows that were learnt.
        y : array-like of shape (n_samples,)
            Their labels.
        over : class label, optional
            Class that the evidence is for; with two classes the default is ``classes_[1]``.
        against : class label, optional
            Class to compare with.
        sample_weight : array-like of shape (n_samples,), optional
            The weights they were learnt with.

        Returns
        -------
        ndarray of shape (n_samples,)
            Changes of the llr, in nats.
        """
        one, other = self.class_pair(over, against)
        if other is None:
            raise InputError("influence on the evidence against all the rest is not defined. Name two classes.")
        predictor = self.predictor_
        model = predictor.model
        target = model.encode(self._table(row))
        if target.shape[0] != 1:
            raise InputError(f"influence is on one row's answer, and {target.shape[0]} were given.")
        return judge.influence(
            predictor, target, judge.known_lesson(model, self._given(X, y, sample_weight)), one, other
        )

    @one_model
    def check_fit(self, X: RowsLike, y: LabelsLike, *, random_state: np.random.Generator | int | None = 0) -> FitReport:
        """Compare data with data drawn from the model, column by column and class by class.

        Parameters
        ----------
        X : array-like, frame or path of a file
            Rows.
        y : array-like of shape (n_samples,)
            Their labels.
        random_state : int or Generator, default=0
            Seed.

        Returns
        -------
        FitReport
            The differences of the data from the model as text, each with a remedy.
        """
        from deciban.model.evaluation import check_fit

        return check_fit(self.predictor_, self._table(X), y, random_state)

    @one_model
    def report(
        self,
        path: str | os.PathLike[str],
        X: RowsLike | None = None,
        y: LabelsLike = None,
        *,
        learnt: bool | None = None,
        other: tuple[RowsLike, LabelsLike] | None = None,
        title: str = "",
    ) -> None:
        """Write a report of the model as one self-contained page of at most 1 MB.

        Parameters
        ----------
        path : str or path
            File to write, such as "report.html"; it is written whole or not at all.
        X : array-like, sparse matrix, frame, list of str, or path of a file or folder, optional
            Labelled rows to judge the model by; figures and rows are left out if None.
        y : array-like of shape (n_samples,) or str, optional
            Their labels, or the name of the column that holds them.
        learnt : bool, optional
            Whether the rows were learnt, as in `evaluate`. If None, this is looked up in the ledger;
            without a ledger they are taken as new.
        other : tuple of (rows, labels), optional
            Labelled rows to compare with those learnt: drift of each column, in decibans.
        title : str, optional
            Heading of the page.

        Examples
        --------
        >>> import os, tempfile
        >>> from sklearn.datasets import load_iris
        >>> from deciban import Gaussian, GenerativeClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> path = os.path.join(tempfile.mkdtemp(), "report.html")
        >>> GenerativeClassifier(Gaussian("tied")).fit(X, y).report(path, X, y, learnt=True)
        >>> os.path.getsize(path) < 1_000_000
        True
        """
        check_is_fitted(self)
        from deciban.report.page import write_report

        batches = None if X is None else self._rows(X, y, None).batches()
        write_report(self, path, batches, learnt, other, title)

    # -- files -----------------------------------------------------------------------------------------------------
    def save(self, path: str | os.PathLike[str], *, note: str = "") -> None:
        """Write the model to a file, whole or not at all; `deciban.load` reads it.

        Parameters
        ----------
        path : str or path
            File to write.
        note : str, default=""
            A remark that is kept in the file.
        """
        from deciban.store import save

        save(self, path, note=note)

    def stored(self) -> Stored:
        """Return the record that a file holds.

        Returns
        -------
        Stored
            Parameters and model.
        """
        from deciban.store.classifier import record_of

        return record_of(self)

    def released(self) -> Self:
        """Return the same classifier without its sums: it answers as before, to the bit, and cannot learn.

        Returns
        -------
        GenerativeClassifier
            A new classifier.
        """
        density = self.density
        model = self.model_.released(density)
        return self._another(model, Predictor(model, density))

    # -- internals ------------------------------------------------------------------------------------------------
    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_predictor")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        set_input_tags(tags, self.families)
        tags.input_tags.allow_nan |= self._family_by_em() is not None
        return tags

    def _family_by_em(self) -> Family | None:
        """Return the family that learns rows with missing values by EM, in the place of a full or tied Gaussian."""
        from deciban.latent.gaussian_missing import with_gaps

        return with_gaps(self.families, self.rule)

    def __getstate__(self) -> Any:
        if self.__sklearn_is_fitted__():
            self._predictor.verify()  # copies are checked now, while the file exists
        state = dict(super().__getstate__())
        state.pop("_lock", None)
        if "_predictor" in state:
            state["_predictor"] = replace(self._predictor, learnt=None)  # copies hold no rows
        return state

    def _fit(self, X: Any, y: Any, sample_weight: Any, declared: Any, first_of_many: bool = False) -> Self:
        key = None if self.ledger is False or self.ledger is None else Key.of(self.ledger)
        X, y = _in_memory(X, y)
        with self._writing():
            request = replace(self._request(declared), key=key, first_of_many=first_of_many)
            backend = None if isinstance(X, np.ndarray) else elsewhere(X)
            fitted = None if backend is None else backend.fit(request, X, y, sample_weight)
            if fitted is not None:  # by an engine, whose rows are not in memory
                self._check_class_weight(fitted[0].model)
                self._note_names(fitted[0].model.reader.given)
                return self.use(fitted[0])
            try:
                predictor, given = fit(request, X, y, sample_weight)
            except MissingValueError:
                by_em = self._family_by_em()
                if by_em is None:
                    raise
                predictor, given = fit(replace(request, families=by_em), X, y, sample_weight)
                model = replace(predictor.model, reasons=(Reason(BY_EM),))
                predictor = replace(predictor, model=model)
            self._check_class_weight(predictor.model)
            self._note_columns(X, given, predictor.model.reader)
            return self.use(predictor)

    def _check_class_weight(self, model: Model) -> None:
        if self.class_weight is not None:
            decisions.check_class_weight(self.class_weight, model.classes, self.prior)

    def _request(self, declared: Sequence[Any] | None) -> Request:
        """Return the parameters of a fit."""
        return Request(self.families, self.rule, declared, self.calibrate, None, self.kinds, self.interactions)

    def use(self, predictor: Predictor) -> Self:
        """Use a fitted model: one assignment, so that readers see the old pair of model and density or the new one.

        Parameters
        ----------
        predictor : Predictor
            A model and its density.

        Returns
        -------
        GenerativeClassifier
            The classifier itself.
        """
        self._predictor = predictor
        return self

    @property
    def classes_(self) -> Array:
        """Class labels, shape (n_classes,)."""
        return self.predictor_.labels.copy()

    def _writing(self) -> threading.RLock:
        """Return the lock under which the model is replaced; one writer at a time.

        A forked process has a lock of its own: a thread that held the lock at the fork does not exist there.
        """
        locks: dict[int, threading.RLock] = self.__dict__.setdefault("_lock", {})
        return locks.setdefault(os.getpid(), threading.RLock())

    def _another(self, model: Model, predictor: Predictor | None = None) -> Self:
        """Return a classifier with the same parameters and another model."""
        other = copy(self)
        other.__dict__.pop("_lock", None)
        names = model.reader.given
        other.n_features_in_ = len(names)
        if hasattr(self, "feature_names_in_"):
            other.feature_names_in_ = np.array(names, dtype=object)
        return other.use(predictor or self._predictor.next(model))

    def _key(self) -> Key:
        return Key.of(self.ledger or None)

    def with_key(self, key: Any) -> Self:
        """Return the same classifier with the key of its ledger.

        Parameters
        ----------
        key : str or bytes
            The key that the ledger was made with.

        Returns
        -------
        GenerativeClassifier
            The classifier itself.
        """
        ledger = self.model_.ledger
        if ledger is None:
            raise ModelFileError("a key was given, but the model keeps no ledger. Load it without one.")
        if Key.of(key).id != ledger.key_id:
            raise ModelFileError(f"the key given is not the one of the ledger (id {ledger.key_id}).")
        self.ledger = key
        return self

    def _most_probable(self, table: Table) -> Array:
        return np.argmax(self.predict_log_proba(table), axis=1)

    def _learnt(self, learnt: tuple[Any, Any] | None) -> Batch:
        """Return the learnt rows: as given, or as the fit has kept them."""
        if learnt is not None:
            X, y = self._labelled(*learnt)
            return self._given(X, y, None)
        kept = self.predictor_.learnt
        if kept is None:
            raise NotAvailableError(
                "this model does not hold the rows it has learnt: it was read from a file, fitted from one, or changed "
                "since.",
                remedy=Remedy("Give the rows: ", Argument("learnt", "FILE", "learnt=(X, y)"), "."),
            )
        batch = kept.whole()
        return replace(batch, weight=row_weights(batch.weight, len(batch.table)))

    def _log_prior_for(self, rows: Array, classes: Array | None = None) -> Array:
        """Return the log of the classifier's own prior, given the rows of each class (K,) or (n, K); the same shape."""
        names = self.classes_ if classes is None else classes
        if self.class_weight is not None:
            return scores.log_probability(decisions.weighted_prior(self.class_weight, names.tolist(), rows))
        learnt = isinstance(self.prior, str) and self.prior == "learnt"
        if learnt and rows.ndim == 2:
            return scores.log_probability(rows / rows.sum(axis=1, keepdims=True))
        each = decisions.resolve_prior(self.prior, names, rows if rows.ndim == 1 else self.class_count_)
        return scores.log_probability(each)

    def _note_columns(self, X: Any, given: Rows, reader: Reader) -> None:
        """Set n_features_in_ and feature_names_in_ as scikit-learn does; keep the name of the column of labels."""
        self._label = given.label
        array = isinstance(X, np.ndarray) and X.ndim == 2
        if not array and not isinstance(X, (*PLACES, Table)):
            validate_data(self, _as_given(X, given.X), reset=True, skip_check_array=True)
            return
        self._note_names(reader.given if given.schema is not None else given.X.columns)

    def _note_names(self, names: Sequence[Any]) -> None:
        self.__dict__.pop("feature_names_in_", None)
        self.n_features_in_ = len(names)
        if all(isinstance(name, str) for name in names):
            self.feature_names_in_ = np.array(names, dtype=object)

    def _table(self, X: Any) -> Table:
        """Return rows as a table with the columns of the model, typed where it has a schema."""
        schema = self.schema_
        if isinstance(X, TypedTable) or (schema is None and isinstance(X, Table)):
            return X
        if schema is not None and isinstance(X, (*PLACES, Table)):
            return typed_rows(X, schema)
        if isinstance(X, list) and X and isinstance(X[0], Mapping):
            from deciban.model.row_reader import reader_of

            return reader_of(self.model_).table(X)
        X, _ = _in_memory(X)
        table = Table.of(X)
        label = getattr(self, "_label", None) if schema is None else schema.label
        names = getattr(self, "feature_names_in_", ()) if schema is None else schema.names
        if label is not None and table.framed and label in table.columns and label not in names:
            table, _ = split_label(table, str(label))
        arranged = self._arranged(table)
        if arranged is not None:
            table = arranged
        elif not self._has_columns_of(table):
            validate_data(self, _as_given(X, table), reset=False, skip_check_array=True)
        if schema is None:
            return table
        from deciban.read.schema import typed_table

        return typed_table(table, schema)

    def _has_columns_of(self, table: Table) -> bool:
        """Whether the columns are those of the fit, so that scikit-learn's check, which takes longer, would pass."""
        if table.shape[1] != self.n_features_in_:
            return False
        names = getattr(self, "feature_names_in_", None)
        if table.texts or names is None:
            return table.texts or not table.framed
        return table.named and names.tolist() == [*table.columns]

    def _arranged(self, table: Table) -> Table | None:
        """Return a frame with its columns in the order of the fit; None if scikit-learn should check the names.

        A column that no family uses may be absent.
        """
        names = getattr(self, "feature_names_in_", None)
        if names is None or not table.framed or not table.named or tuple(table.columns) == tuple(names):
            return None
        given = [name for name in names if name in table.columns]
        absent = [name for name in names if name not in table.columns]
        if len(given) < len(table.columns) or self.model_.uses(absent):
            return None
        return table.arranged(given, absent if self.schema_ is not None else ())

    def _rows(self, X: Any, y: Any, sample_weight: Any) -> Rows:
        """Return rows with labels, in batches that are read as the first ones were."""
        schema, (X, y) = self.schema_, _in_memory(X, y)
        if isinstance(y, str) and schema is not None:
            return Rows(X, y, sample_weight, lambda table, label: replace(schema, label=label))
        if isinstance(y, str):
            table, y = split_label(Table.of(X), y)
            X = table.data.to_native()
        return Rows(self._table(X), y, sample_weight)

    def _batch(self, X: Any, y: Any, sample_weight: Any) -> Batch:
        """Return all rows with labels as one batch."""
        return self._rows(X, y, sample_weight).whole()

    def _labelled(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Return rows and labels apart, where y is the name of a column."""
        if not isinstance(y, str):
            return X, y
        batch = self._batch(X, y, None)
        return batch.table, batch.labels

    def _given(self, X: Any, y: Any, sample_weight: Any) -> Batch:
        """Return rows with labels as one batch, including rows of weight 0."""
        table = self._table(X)
        return Batch(table, y, row_weights(sample_weight, len(table)))

    def _left_out(
        self, X: Any, y: Any, groups: Any, sample_weight: Any, raw: bool = False, constant: bool = False
    ) -> tuple[Array, Array, Array]:
        """Return scores without each row or its group (n, K), its class (n,), and the log prior without it (n, K)."""
        predictor = self.predictor_
        batch = self._given(*self._labelled(X, y), sample_weight)
        left = judge.leave_out(predictor, batch, groups, self._key())
        likelihood = predictor.calibrated(left.blocks, left.lesson.rows, raw)
        if constant:  # terms that no parameter changes, such as the coefficient of a multinomial
            likelihood = likelihood + np.reshape(predictor.density.log_base(left.lesson.rows), (-1, 1))
        return likelihood, left.lesson.members.codes, left.log_prior

    def _rechosen_scores(self, X: Any, y: Any, cv: Any, raw: bool) -> tuple[Array, Array]:
        """Return k-fold scores with every choice made again from the other folds."""
        from sklearn.model_selection import StratifiedKFold, check_cv  # slow to import

        if isinstance(cv, int):
            cv = StratifiedKFold(cv, shuffle=True, random_state=0)  # rows may be sorted
        table = self._table(X)
        codes = judge.learnt_codes(self.model_, y, len(table))
        labels = np.asarray(self.classes_)[codes]
        likelihood = np.empty((len(table), len(self.classes_)))
        for train, test in check_cv(cv, codes, classifier=True).split(np.zeros(len(table)), codes):
            again = clone(self).set_params(classes=list(self.model_.classes))
            again.fit(_take(X, train), labels[train])
            if again.model_.classes != self.model_.classes:
                raise NotAvailableError(
                    "a fold lacks a class, so that its choices cannot be made again. Use fewer folds."
                )
            likelihood[test] = again.log_likelihood(_take(X, test), raw=raw)
        return likelihood, codes


def _parameters() -> ModuleType:
    """Return the module that reads parameters from a model; it is imported late, because a fit does not need it."""
    from deciban.model import explain

    return explain


def _in_memory(X: Any, y: Any = None) -> tuple[Any, Any]:
    """Return rows and labels that may be iterators, or a lazy frame, so that they can be read several times."""
    return tuple(each if isinstance(each, np.ndarray) else in_memory(each) for each in (X, y))  # type: ignore[return-value]


def _as_given(X: Any, table: Table) -> Any:
    """Return a frame without its column of labels, where that was one of its own; a list of texts as a column."""
    if isinstance(X, np.ndarray) and X.ndim == 2:
        return X
    if table.texts:
        return table.data
    changed = table.framed and (isinstance(X, (list, dict)) or np.shape(X)[1] != table.shape[1])
    return table.data.to_native() if changed else X


def _take(X: Any, rows: Array) -> Any:
    if isinstance(X, Table):
        return X.take(rows)
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    return X[rows] if hasattr(X, "shape") else [X[i] for i in rows]
