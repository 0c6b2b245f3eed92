"""Classifier of whole sequences: one hidden Markov model for each class.

The forward recursion gives log f(x_1 … x_T | class); likelihood ratios and posteriors follow as in every classifier.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from deciban.errors import InputError, NotAvailableError
from deciban.estimators.hidden_markov import Check, HiddenMarkovModel, StoredHMM, as_family, set_sequence_tags
from deciban.estimators.parameters import FamilyParameters
from deciban.evidence.explanation import Explanation
from deciban.evidence.scores import log_ratio
from deciban.families.categorical import Categorical
from deciban.families.parameters import Ranges
from deciban.families.protocol import Family, Rule, set_input_tags
from deciban.latent.hmm import choose_family
from deciban.latent.sequences import SequenceInput, SequenceRows, Sequences, read_rows
from deciban.model.answers import Answers, one_model
from deciban.model.model import label_array
from deciban.read.codes import encode_labels
from deciban.statistics import Array, Members
from deciban.store import save
from deciban.store.checks import require
from deciban.store.estimators import check_parameters, unfitted

OWN_PARAMETERS = ("prior", "cost", "family", "n_states")  # not passed on to the models of the classes

Prior = str | Mapping[Any, float] | ArrayLike
Cost = Mapping[tuple[Any, Any], float] | ArrayLike


class HMMClassifier(Answers, ClassifierMixin, FamilyParameters):
    """Classifier of whole sequences, with one hidden Markov model for each class.

    Parameters
    ----------
    family : Family or dict of {column: Family}
        Family of the emissions. Its choices are made from all sequences and shared by the classes.
    n_states : int or dict of {class: int}, default=2
        Number of states, for all classes or for each.
    rule : {"ml", "map", "mean", "predictive"}, default="mean"
        How parameters are obtained from the sums, as in `HiddenMarkovModel`.
    prior : {"learnt", "uniform"}, dict or array-like, default="learnt"
        Class prior; "learnt" is the share of each class among the sequences.
    cost : dict or array-like, optional
        Cost of each wrong decision; 1 if None.
    start_pseudo_count : float or array-like, default=1.0
        Dirichlet prior of the first state.
    transition_pseudo_count : float or array-like, default=1.0
        Dirichlet prior of each state's successor.
    n_starts : int, default=10
        Number of short runs of EM from different starts; the best one is continued.
    max_iter : int, default=200
        Largest number of iterations of EM.
    tol : float, default=1e-6
        EM stops when an iteration gains less than this per row.
    random_state : int, numpy.random.Generator or None, default=None
        Source of the random starts.
    n_jobs : int, optional
        Number of threads, `deciban.get_threads()` if None; results do not depend on it.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels, in the order of the columns of `predict_proba`.
    models_ : dict of {class: HiddenMarkovModel}
        The model of each class.
    rows_ : ndarray of shape (n_classes,)
        Weighted number of sequences of each class.

    Examples
    --------
    >>> from deciban import Categorical, HMMClassifier
    >>> runs, turns = [[0, 0, 0, 1, 1, 1], [1, 1, 0, 0, 0, 0]] * 9, [[0, 1, 0, 1, 0, 1], [1, 0, 1, 0, 1, 0]] * 9
    >>> clf = HMMClassifier(Categorical(), 2, random_state=0).fit(runs + turns, ["runs"] * 18 + ["turns"] * 18)
    >>> clf.predict([[0, 0, 1, 1, 1, 1], [1, 0, 1, 0, 1, 0, 1]])
    array(['runs', 'turns'], dtype='<U5')
    """

    classes_: Array
    models_: dict[Any, HiddenMarkovModel]
    rows_: Array

    RANGES: ClassVar[Ranges] = HiddenMarkovModel.RANGES

    def __init__(
        self,
        family: Family | Mapping[Any, Family],
        n_states: int | Mapping[Any, int] = 2,
        *,
        rule: Rule = "mean",
        prior: Prior = "learnt",
        cost: Cost | None = None,
        start_pseudo_count: ArrayLike = 1.0,
        transition_pseudo_count: ArrayLike = 1.0,
        n_starts: int = 10,
        max_iter: int = 200,
        tol: float = 1e-6,
        random_state: np.random.Generator | int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.family = family
        self.n_states = n_states
        self.rule = rule
        self.prior = prior
        self.cost = cost
        self.start_pseudo_count = start_pseudo_count
        self.transition_pseudo_count = transition_pseudo_count
        self.n_starts = n_starts
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(
        self,
        X: SequenceInput,
        y: ArrayLike,
        lengths: ArrayLike | None = None,
        *,
        sequence_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit one hidden Markov model for each class.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, or list of these
            One row for each step.
        y : array-like of shape (n_sequences,)
            Label of each sequence.
        lengths : array-like of int, optional
            Length of each sequence; not needed for a list of sequences.
        sequence_weight : array-like of shape (n_sequences,), optional
            Weight of each sequence.

        Returns
        -------
        HMMClassifier
            The fitted classifier.
        """
        check_parameters(self)
        rows, _ = read_rows(as_family(self.family), X, lengths)
        names, codes = encode_labels(y, len(rows.sequences.ends))
        weight = Sequences.of(rows.sequences.lengths, rows.n, sequence_weight).weight
        rows.check()
        family = self._shared_family(rows)
        parameters = {name: value for name, value in self.get_params(deep=False).items() if name not in OWN_PARAMETERS}
        models = {}
        for k, name in enumerate(names):
            own = (codes == k) & (weight > 0)
            if not own.any():
                raise InputError(f"class {name!r} has no sequence of positive weight. Give it some, or leave it out.")
            at = np.flatnonzero(np.repeat(own, rows.sequences.lengths))
            states = self.n_states[name] if isinstance(self.n_states, Mapping) else self.n_states
            model = HiddenMarkovModel(**{**parameters, "family": family, "n_states": states})
            models[name] = model.fit(rows.X[at], lengths=rows.sequences.lengths[own], sequence_weight=weight[own])
        return self._set(names, models, np.bincount(codes, weight, len(names)))

    def log_likelihood(  # type: ignore[override]
        self, X: SequenceInput, lengths: ArrayLike | None = None, *, constant: bool = True
    ) -> Array:
        """Return log f(sequence|class), every constant included.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, or list of these
            One row for each step.
        lengths : array-like of int, optional
            Length of each sequence; not needed for a list of sequences.
        constant : bool, default=True
            Ignored: there are no terms that all classes share.

        Returns
        -------
        ndarray of shape (n_sequences, n_classes)
            Log-likelihoods; -inf for an impossible sequence.
        """
        check_is_fitted(self, "models_")
        rows, _ = read_rows(as_family(self.family), X, lengths)
        each = [model.score_samples(rows.X, rows.sequences.lengths) for model in self.models_.values()]
        return np.column_stack(each)

    @one_model
    def explain(
        self,
        X: SequenceInput,
        over: Any = None,
        against: Any = None,
        *,
        lengths: ArrayLike | None = None,
        prior: Prior | None = None,
    ) -> Explanation:
        """Explain the evidence: how much each step of a sequence contributed, given the steps before it.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, or list of these
            One row for each step.
        over : class label, optional
            Class that the evidence is for; if None, with two classes ``classes_[1]``, else the predicted class.
        against : class label, optional
            Class to compare with; the most probable other class of each sequence if None.
        lengths : array-like of int, optional
            Length of each sequence; not needed for a list of sequences.
        prior : {"learnt", "uniform"}, dict or array-like, optional
            Class prior; the classifier's own if None.

        Returns
        -------
        Explanation
            One part for each step, 0 after the end of a shorter sequence; parts and prior add up to the answer.
        """
        check_is_fitted(self, "models_")
        rows, _ = read_rows(as_family(self.family), X, lengths)
        sequences = rows.sequences
        steps = np.stack([model.step_scores(rows.X, sequences.lengths) for model in self.models_.values()], axis=1)
        log_prior = self.log_prior(prior)
        joint = np.add.reduceat(steps, sequences.begins) + log_prior
        each, classes = np.arange(len(joint)), self.classes_.tolist()
        if over is None and len(classes) > 2:
            one = joint.argmax(axis=1)
        else:
            one = np.full(len(joint), self.class_pair(over, against)[0])
        joint[each, one] = -np.inf
        other = joint.argmax(axis=1) if against is None else np.full(len(joint), classes.index(against))
        owner = np.repeat(each, sequences.lengths)
        step, at = np.arange(rows.n) - sequences.begins[owner], np.arange(rows.n)
        parts = np.zeros((len(joint), int(sequences.lengths.max())))
        parts[owner, step] = log_ratio(steps[at, one[owner]], steps[at, other[owner]])
        names = [f"step {t}" for t in range(parts.shape[1])]
        sides = [classes[k] for k in one], [classes[k] for k in other]
        odds = log_ratio(log_prior[one], log_prior[other])
        return Explanation(names, parts, *sides, prior_part=odds, exhaustive=len(classes) == 2)

    @property
    def class_count_(self) -> Array:
        """Weight of the sequences learnt of each class, shape (n_classes,)."""
        check_is_fitted(self, "models_")
        return self.rows_

    def score(self, X: SequenceInput, y: ArrayLike, lengths: ArrayLike | None = None) -> float:
        """Return the accuracy.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, or list of these
            One row for each step.
        y : array-like of shape (n_sequences,)
            True label of each sequence.
        lengths : array-like of int, optional
            Length of each sequence; not needed for a list of sequences.

        Returns
        -------
        float
            Share of the sequences that are predicted correctly.
        """
        return float(np.mean(self.predict(X, lengths=lengths) == np.asarray(y)))

    def unlearn(self, *_: object) -> None:
        """Raise NotAvailableError: expected counts depend on the estimate under which they were collected.

        Parameters
        ----------
        *_ : object
            Ignored.
        """
        raise NotAvailableError("hidden Markov models fitted by EM cannot be unlearnt exactly: refit without the rows.")

    # -- files -------------------------------------------------------------------------------------------------------
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

    def stored(self) -> StoredHMMClassifier:
        """Return the dataclass that stands for the classifier in a file.

        Returns
        -------
        StoredHMMClassifier
            Parameters, classes and their models.
        """
        check_is_fitted(self, "classes_")
        check_parameters(self)
        models = tuple(model.stored() for model in self.models_.values())
        return StoredHMMClassifier(self.get_params(deep=False), tuple(self.classes_.tolist()), models, self.rows_)

    # -- internals ---------------------------------------------------------------------------------------------------
    def _set(self, names: tuple[Any, ...], models: dict[Any, HiddenMarkovModel], rows: Array) -> Self:
        self.classes_, self.models_, self.rows_ = label_array(names), models, rows
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        set_input_tags(tags, self.family)
        set_sequence_tags(tags)
        return tags

    def _shared_family(self, rows: SequenceRows) -> Family:
        """Return the family with the choices that all classes share: the scale of the prior, and the categories."""
        family = choose_family(rows, None, self.rule)
        if isinstance(family, Categorical) and family.categories is None and not family.joint:
            axis: Any = family.collect(rows.X, Members.one_group(rows.n)).labels["category"]
            family = replace(family, categories=tuple(tuple(part.names) for part in axis.parts))
        return family


@dataclass(frozen=True, eq=False)
class StoredHMMClassifier:
    """A sequence classifier in a file: one stored model for each class."""

    parameters: dict[str, Any]
    names: Any
    models: Any
    weights: Any  # (K,)

    @property
    def rows(self) -> float:
        """Weighted number of sequences learnt."""
        return float(np.sum(self.weights))

    def restored(self, check: Check | None, key: bytes | None = None) -> HMMClassifier:
        """Return the classifier."""
        if check is not None:
            check()
        whole = isinstance(self.names, tuple) and isinstance(self.models, tuple)
        require(whole and all(isinstance(model, StoredHMM) for model in self.models), "models", "one for each class")
        fits = len(self.names) == len(self.models) and np.shape(self.weights) == (len(self.names),)
        require(fits, "models", "as many as there are classes")
        classifier = unfitted(HMMClassifier, self.parameters)
        models = [model.restored(None) for model in self.models]
        classifier._set(self.names, dict(zip(self.names, models)), np.asarray(self.weights, dtype=float))
        return classifier
