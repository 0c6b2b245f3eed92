"""Hidden Markov models with scikit-learn's conventions, and their files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from joblib import effective_n_jobs  # type: ignore[import-untyped]
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from deciban.engines import parted
from deciban.errors import HyperparameterError, InputError, MergeError, NotAvailableError, NotLearntError
from deciban.estimators.parameters import FamilyParameters
from deciban.families.abilities import HasMoments, ability
from deciban.families.fixed import KnownDensities
from deciban.families.moments import column_covariances, column_moments
from deciban.families.parameters import COUNT, JOBS, TOLERANCE, Ranges
from deciban.families.product import BlockRows, Product
from deciban.families.protocol import Density, Family, Rows, Rule, check_rule, set_input_tags
from deciban.latent.components import choose_within, free_parameters
from deciban.latent.em import Trace
from deciban.latent.hmm import HMM, BaumWelch, HMMDensity, HMMStats, Inference, choose_family
from deciban.latent.sequences import (
    EndsOfPart,
    SequenceInput,
    Sequences,
    SequencesOfPart,
    are_lengths,
    arranged,
    check_columns,
    check_ends,
    features_of,
    join,
    names_of,
    number_of_columns,
    read_rows,
    read_words,
    runs_of,
)
from deciban.model.model import label_array
from deciban.read.tables import in_memory
from deciban.statistics import Additive, Array, Axis
from deciban.store import save
from deciban.store.checks import require
from deciban.store.estimators import check_parameters, unfitted
from deciban.text.word_shapes import WordFeatures, word_family


class HiddenMarkovModel(Additive, FamilyParameters):
    """Hidden Markov model whose states emit rows of any family.

    Sequences are given as one table X with `lengths`, as a list of sequences, or as a three-dimensional array. A list
    whose items are lists or arrays is a list of sequences; one sequence is an array, or a list of plain values.

    If `fit` is given all states, the model is a sum of counts: it can learn more, be merged, and be unlearnt exactly.
    Otherwise the states are found by EM (Baum–Welch).

    Sequences of a hundred or more different words with known states, such as tagged sentences, are read word by word
    under a plain `Categorical()`: a frequent word as itself, a rare or unknown one by its ending and shape. Which words
    are frequent is frozen at the first fit.

    Parameters
    ----------
    family : Family or dict of {column: Family}
        Family of the emissions, such as `Categorical()`, `Gaussian()` or a `Mixture`; a dict gives columns of a frame
        families of their own.
    n_states : int or iterable of int, optional
        Number of states, or several numbers among which the Bayesian information criterion chooses; not needed if
        `fit` is given the states.
    rule : {"ml", "map", "mean", "predictive"}, default="mean"
        How parameters are obtained from the sums. EM maximises under "ml" if that is the rule, otherwise under "map".
    start_pseudo_count : float or array-like of shape (n_states,), default=1.0
        Dirichlet prior of the first state; 0 in an array excludes a state.
    transition_pseudo_count : float or array-like of shape (n_states, n_states), default=1.0
        Dirichlet prior of each state's successor; 0 in an array excludes a transition.
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
    classes_ : ndarray of shape (n_states,)
        Names of the states; 0, 1, … ordered by visits if they were found by EM.
    n_states_ : int
        Number of states.
    criteria_ : dict of {int: float}
        Criterion for each number of states; empty for a single number.
    family_ : Family
        The family with its choices made.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns of a frame, except for a dict of families; later frames are read by these names.
    stats_ : HMMStats or None
        Counts, or expected counts; None for a model of known densities.
    words_ : WordFeatures or None
        Frequent words and known endings, where sequences are words.
    exact_ : bool
        Whether all states were given, so that the sums are counts.
    trace_ : Trace or None
        Objective after each iteration of EM.
    startprob_ : ndarray of shape (n_states,)
        Probability of each state at the first step.
    transmat_ : ndarray of shape (n_states, n_states)
        Transition probabilities, from row to column.
    means_ : ndarray of shape (n_states, n_features)
        Means of emissions, in the units of the data; NaN for columns whose family has none.
    covariances_ : ndarray of shape (n_states, n_features, n_features)
        Covariances of emissions.
    feature_log_prob_ : ndarray, list or dict
        Log probabilities of words, ones or categories, in the form that `GenerativeClassifier` has.
    categories_ : ndarray, list or dict
        Names along the last axis of `feature_log_prob_`.

    Examples
    --------
    A casino sometimes switches to a die that shows six every other time.

    >>> from deciban import Categorical, HiddenMarkovModel
    >>> dice = {"fair": Categorical.of([1 / 6] * 6), "loaded": Categorical.of([0.1] * 5 + [0.5])}
    >>> casino = HiddenMarkovModel.from_densities(dice, [0.5, 0.5], [[0.98, 0.02], [0.05, 0.95]])
    >>> rolls, rolled = casino.sample(3000, random_state=3)
    >>> found = HiddenMarkovModel(Categorical(), 2, random_state=0).fit(rolls)
    >>> found.transmat_.round(2)
    array([[0.98, 0.02], [0.06, 0.94]])
    >>> bool((casino.predict(rolls) == rolled).mean() > 0.8)
    True
    """

    RANGES: ClassVar[Ranges] = {
        "n_states": COUNT,
        "n_starts": COUNT,
        "max_iter": COUNT,
        "tol": TOLERANCE,
        "n_jobs": JOBS,
    }

    classes_: Array
    family_: Family
    stats_: HMMStats | None
    trace_: Trace | None
    exact_: bool
    words_: WordFeatures | None
    criteria_: dict[int, float]
    n_features_in_: int
    _density: HMMDensity | None  # None after a change, until it is needed

    def __init__(
        self,
        family: Family | Mapping[Any, Family],
        n_states: int | Iterable[int] | None = None,
        *,
        rule: Rule = "mean",
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
        self.start_pseudo_count = start_pseudo_count
        self.transition_pseudo_count = transition_pseudo_count
        self.n_starts = n_starts
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs

    @classmethod
    def from_densities(cls, densities: Mapping[Any, Density], start: ArrayLike, transitions: ArrayLike) -> Self:
        """Make a model with known parameters.

        Parameters
        ----------
        densities : dict of {state: Density}
            Emission density of each state.
        start : array-like of shape (n_states,)
            Probability of each state at the first step.
        transitions : array-like of shape (n_states, n_states)
            Transition probabilities, from row to column.

        Returns
        -------
        HiddenMarkovModel
            A fitted model, which cannot learn.
        """
        names, family = tuple(densities), KnownDensities(tuple(densities.values()))
        S, chain = len(names), [np.asarray(p, dtype=float) for p in (start, transitions)]
        if [p.shape for p in chain] != [(S,), (S, S)]:
            raise InputError(f"{S} states have {S} start probabilities and {S} × {S} transitions.")
        if any((p < 0).any() or not np.allclose(p.sum(axis=-1), 1.0) for p in chain):
            raise InputError("start probabilities, and the transitions from each state, must be ≥ 0 and sum to 1.")
        model = cls(family, S)
        model.criteria_ = {}
        model.family_, model.trace_, model.exact_, model.words_ = family, None, False, None
        emissions = family.estimate(family.no_sums(Axis.of(S)), "ml")
        return model._set_density(names, HMMDensity.of(chain[0], chain[1], emissions))

    def check_parameters(self) -> None:
        """Check the rule and the pseudo-counts; numbers are checked by their ranges.

        Raises
        ------
        HyperparameterError
            If `fit` would refuse a parameter.
        """
        check_rule(self.rule)
        self._model(as_family(self.family))

    # -- learning ----------------------------------------------------------------------------------------------------
    def fit(
        self,
        X: SequenceInput,
        y: SequenceInput | None = None,
        lengths: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        sequence_weight: ArrayLike | None = None,
        start: HiddenMarkovModel | HMMDensity | ArrayLike | None = None,
    ) -> Self:
        """Learn from sequences: by counting if `y` gives every state, otherwise by EM.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, or list of these
            One row for each step. Rows of a Dask frame stay on its workers, and every pass of EM returns sums.
        y : array-like of shape (n_samples,), or list of these, optional
            State at each step; None, NaN or the integer -1 where it is unknown. Whole numbers that are fewer than
            the rows and sum to their number are taken as `lengths`, as in ``fit(X, lengths)`` of hmmlearn.
        lengths : array-like of int, or str, optional
            Length of each sequence; one sequence if None. Of a Dask frame, the name of a column whose value is the same
            in all rows of a sequence, which must be in one partition.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each observation; 0 makes it missing.
        sequence_weight : array-like of shape (n_sequences,), optional
            Weight of each sequence.
        start : HiddenMarkovModel, HMMDensity or array-like of shape (n_samples, n_states), optional
            Model or responsibilities from which EM starts.

        Returns
        -------
        HiddenMarkovModel
            The fitted model.
        """
        check_parameters(self)
        X, passes = parted(X)
        column = ""
        if passes is not None:
            column = self._column(lengths, y, sample_weight, sequence_weight)
            check_ends(passes.each(EndsOfPart(column)), passes.names(), column)
            X, lengths = runs_of(X, column)
        X = in_memory(X)
        if lengths is None and are_lengths(y, X):
            y, lengths = None, y
        if isinstance(self.n_states, Iterable) and not isinstance(self.n_states, str):
            weights = {"sample_weight": sample_weight, "sequence_weight": sequence_weight}
            return self._fit_best(list(self.n_states), X, y, lengths, start=start, **weights)
        self.criteria_ = {}
        X, lengths = join(X, lengths)
        words = None if y is None else features_of(self.family, X, lengths)
        asked = as_family(self.family) if words is None else word_family()
        named = None if isinstance(asked, Product) else names_of(X)  # a product finds its columns itself
        columns = number_of_columns(X)
        X, lengths = read_words(words, X, lengths)
        rows, found = read_rows(asked, X, lengths, y, sample_weight, sequence_weight)
        states = self._states(self.n_states, found, rows.n)
        rows.check()
        exact, trace = rows.states is not None and bool((rows.states >= 0).all()), None
        rule: Rule = self.rule if exact else "ml" if self.rule == "ml" else "map"
        family = choose_family(rows, states, rule)
        rows, model = replace(rows, family=family), self._model(family)
        model.priors(states.size)
        if exact:
            stats = model.collect(rows, states)
        else:
            parts = None if passes is None else passes.kept(SequencesOfPart(family, column))
            em = BaumWelch(model, rows, states, rule, asked, self.max_iter, self._threads, parts)
            first = start.density if isinstance(start, HiddenMarkovModel) else start
            estimate, trace = em.run(first, self.n_starts, self.tol, np.random.default_rng(self.random_state))
            assert estimate.stats is not None
            family = choose_within(asked, family, estimate.stats.emissions, rule)
            model = self._model(family)
            stats = estimate.stats if first is not None or found else model.sort_states(estimate.stats)
        density = model.estimate(stats, self.rule)
        self.family_, self.exact_, self.trace_, self.words_ = family, exact, trace, words
        self.n_features_in_ = columns
        self._note_names(named)
        self._set(stats)._density = density
        return self

    def _column(self, lengths: Any, y: Any, sample_weight: Any, sequence_weight: Any) -> str:
        """Return the column that tells the sequences of a Dask frame apart; refuse what partitions do not take."""
        given = {"y": y, "sample_weight": sample_weight, "sequence_weight": sequence_weight}
        wrong = [name for name, value in given.items() if value is not None]
        if isinstance(self.n_states, Iterable):
            wrong.append("several n_states")
        if wrong:
            raise NotAvailableError(
                f"sequences in partitions are fitted without {' and '.join(wrong)}.", remedy="Load them into a frame."
            )
        if not isinstance(lengths, str):
            raise InputError(
                "sequences in partitions are told apart by a column.", remedy="For lengths, give its name."
            )
        return lengths

    def _fit_best(self, sizes: Sequence[int], X: SequenceInput, y: Any, lengths: Any, **options: Any) -> Self:
        """Fit each number of states, and keep the model of lowest BIC."""
        if not sizes:
            raise HyperparameterError("n_states is empty. Give a number, or several such as range(1, 6).")
        fitted = [copy(self).set_params(n_states=size).fit(X, y, lengths, **options) for size in sizes]
        criteria = {size: each.bic(X, lengths) for size, each in zip(sizes, fitted)}
        best, own = fitted[int(np.argmin(list(criteria.values())))], self.get_params(deep=False)
        self.__dict__.update({**vars(best), **own, "criteria_": criteria})
        return self

    def learn(
        self,
        X: SequenceInput,
        y: SequenceInput,
        lengths: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        sequence_weight: ArrayLike | None = None,
    ) -> Self:
        """Add sequences with known states; new states may occur. The first call is `fit`.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, or list of these
            One row for each step.
        y : array-like of shape (n_samples,), or list of these
            State at each step.
        lengths : array-like of int, optional
            Length of each sequence; one sequence if None.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each observation.
        sequence_weight : array-like of shape (n_sequences,), optional
            Weight of each sequence.

        Returns
        -------
        HiddenMarkovModel
            The model itself.

        Raises
        ------
        NotAvailableError
            If the model was fitted by EM, or a state is unknown. The model is unchanged.
        """
        if not hasattr(self, "stats_"):
            return self.fit(X, y, lengths, sample_weight=sample_weight, sequence_weight=sequence_weight)
        counts = self._counts("extended")
        return self._set(counts + self._collect(counts, X, y, lengths, sample_weight, sequence_weight))

    def unlearn(
        self,
        X: SequenceInput,
        y: SequenceInput,
        lengths: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        sequence_weight: ArrayLike | None = None,
    ) -> Self:
        """Remove sequences that were learnt before; the result equals a model fitted without them.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, or list of these
            One row for each step.
        y : array-like of shape (n_samples,), or list of these
            State at each step.
        lengths : array-like of int, optional
            Length of each sequence; one sequence if None.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each observation.
        sequence_weight : array-like of shape (n_sequences,), optional
            Weight of each sequence.

        Returns
        -------
        HiddenMarkovModel
            The model itself.

        Raises
        ------
        NotLearntError
            If the counts show that a sequence was never learnt. The model is unchanged.
        NotAvailableError
            If the model was fitted by EM, or a state is unknown. The model is unchanged.
        """
        counts = self._counts("unlearnt")
        batch = self._collect(counts, X, y, lengths, sample_weight, sequence_weight)
        return self._set(counts.without(batch, NotLearntError))

    def merge(self, other: HiddenMarkovModel) -> Self:
        """Return a model that has learnt the sequences of both models; also written `a + b`.

        Parameters
        ----------
        other : HiddenMarkovModel
            A model of the same family, with known states.

        Returns
        -------
        HiddenMarkovModel
            A new model.
        """
        check_is_fitted(self, "classes_")
        if not isinstance(other, HiddenMarkovModel):
            raise MergeError(f"a hidden Markov model cannot be merged with a {type(other).__name__}.")
        check_is_fitted(other, "classes_")
        if self.family_ != other.family_ or self.words_ != other.words_:
            raise MergeError("the models have different families, or made different choices at their first fit.")
        return copy(self)._set(self._counts("merged") + other._counts("merged"))

    __add__ = merge

    # -- answers -----------------------------------------------------------------------------------------------------
    def predict(self, X: SequenceInput, lengths: ArrayLike | None = None) -> Array:
        """Return the most probable path of each sequence (Viterbi).

        Parameters
        ----------
        X : array-like, sparse matrix, frame, or list of these
            One row for each step.
        lengths : array-like of int, optional
            Length of each sequence; one sequence if None.

        Returns
        -------
        ndarray of shape (n_samples,)
            State at each step.
        """
        paths = self._inference(X, lengths).paths()
        return self.classes_[paths]

    def decode(
        self, X: SequenceInput, lengths: ArrayLike | None = None, algorithm: Literal["viterbi", "map"] = "viterbi"
    ) -> tuple[float, Array]:
        """Return states and their log probability, as hmmlearn does.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, or list of these
            One row for each step.
        lengths : array-like of int, optional
            Length of each sequence; one sequence if None.
        algorithm : {"viterbi", "map"}, default="viterbi"
            The most probable path, or the most probable state of each step.

        Returns
        -------
        log_prob : float
            Log of the joint density of rows and path; for "map" the sum of the states' posterior probabilities.
        states : ndarray of shape (n_samples,)
            State at each step.
        """
        inference = self._inference(X, lengths)
        if algorithm == "map":
            posterior = inference.posteriors()
            return float(posterior.max(axis=1).sum()), self.classes_[posterior.argmax(axis=1)]
        if algorithm != "viterbi":
            raise HyperparameterError(f"algorithm={algorithm!r} is neither 'viterbi' nor 'map'.")
        paths = inference.paths()
        return inference.path_score(paths), self.classes_[paths]

    def predict_proba(self, X: SequenceInput, lengths: ArrayLike | None = None) -> Array:
        """Return the probability of each state at each step, given the whole sequence.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, or list of these
            One row for each step.
        lengths : array-like of int, optional
            Length of each sequence; one sequence if None.

        Returns
        -------
        ndarray of shape (n_samples, n_states)
            Posterior probabilities.
        """
        return self._inference(X, lengths).posteriors()

    def score_samples(self, X: SequenceInput, lengths: ArrayLike | None = None) -> Array:
        """Return the log-likelihood of each sequence.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, or list of these
            One row for each step.
        lengths : array-like of int, optional
            Length of each sequence; one sequence if None.

        Returns
        -------
        ndarray of shape (n_sequences,)
            Log-likelihoods, every constant included; -inf for an impossible sequence.
        """
        return self._inference(X, lengths).log_likelihoods()

    def step_scores(self, X: SequenceInput, lengths: ArrayLike | None = None) -> Array:
        """Return the log-likelihood of each step, given the steps before it.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, or list of these
            One row for each step.
        lengths : array-like of int, optional
            Length of each sequence; one sequence if None.

        Returns
        -------
        ndarray of shape (n_samples,)
            Those of a sequence sum to its `score_samples`.
        """
        return self._inference(X, lengths).increments()

    def score(self, X: SequenceInput, y: object = None, lengths: ArrayLike | None = None) -> float:
        """Return the total log-likelihood of all sequences.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, or list of these
            One row for each step.
        y : array-like of shape (n_samples,), or list of these, optional
            States, which are ignored, as pipelines pass them. Whole numbers that sum to the number of rows are taken
            as `lengths`, as in ``score(X, lengths)`` of hmmlearn.
        lengths : array-like of int, optional
            Length of each sequence; one sequence if None.

        Returns
        -------
        float
            Sum of `score_samples`.
        """
        if lengths is None and y is not None:
            X, lengths = join(X, None)
            if lengths is None and not names_every_step(y, X):
                lengths = y  # type: ignore[assignment]
        return float(self.score_samples(X, lengths).sum())

    def bic(self, X: SequenceInput, lengths: ArrayLike | None = None) -> float:
        """Return the Bayesian information criterion −2 log L + p log n; lower is better.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, or list of these
            One row for each step.
        lengths : array-like of int, optional
            Length of each sequence; one sequence if None.

        Returns
        -------
        float
            The criterion, with n the number of steps.
        """
        inference = self._inference(X, lengths)
        return float(-2 * inference.log_likelihoods().sum() + self._parameters() * np.log(inference.rows.n))

    def aic(self, X: SequenceInput, lengths: ArrayLike | None = None) -> float:
        """Return the Akaike information criterion −2 log L + 2p; lower is better.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, or list of these
            One row for each step.
        lengths : array-like of int, optional
            Length of each sequence; one sequence if None.

        Returns
        -------
        float
            The criterion.
        """
        return -2 * self.score(X, lengths=lengths) + 2 * self._parameters()

    def sample(
        self, lengths: ArrayLike = 1, random_state: np.random.Generator | int | None = None
    ) -> tuple[Rows, Array]:
        """Draw new sequences.

        Parameters
        ----------
        lengths : int or array-like of int, default=1
            Length of one sequence, or of each.
        random_state : int, numpy.random.Generator or None, default=None
            Source of the random numbers.

        Returns
        -------
        X : ndarray or sparse matrix of shape (n_samples, n_features)
            Rows of all sequences.
        states : ndarray of shape (n_samples,)
            State at each step.
        """
        each = np.atleast_1d(lengths)
        sequences = Sequences.of(each, int(each.sum()))
        rng = np.random.default_rng(random_state)
        codes = self.density.sample_states(sequences, rng)
        rows = self.density.emissions.sample(codes, rng)
        if isinstance(rows, BlockRows):
            rows = rows.side_by_side(self._places()[0])
        return rows, self.classes_[codes]

    def reestimate(self, rule: Rule) -> Self:
        """Return a model with the same sums under another rule.

        Parameters
        ----------
        rule : {"ml", "map", "mean", "predictive"}
            The new rule.

        Returns
        -------
        HiddenMarkovModel
            A new model.
        """
        check_is_fitted(self, "classes_")
        check_rule(rule)
        other = copy(self)
        other.rule, other._density = rule, None
        return other

    @property
    def density(self) -> HMMDensity:
        """Start, transition and emission densities under the rule."""
        check_is_fitted(self, "classes_")
        if self._density is None:
            if not len(self.classes_):
                raise InputError("the model has no sequences and no states any more. Learn some.")
            assert self.stats_ is not None
            self._density = self._model(self.family_).estimate(self.stats_, self.rule)
        return self._density

    @property
    def n_states_(self) -> int:
        """Number of states."""
        return len(self.classes_)

    @property
    def startprob_(self) -> Array:
        """Probability of each state at the first step, shape (n_states,)."""
        return np.exp(self.density.log_start)

    @property
    def transmat_(self) -> Array:
        """Transition probabilities, from row to column, shape (n_states, n_states)."""
        return np.exp(self.density.log_transitions)

    @property
    def means_(self) -> Array:
        """Mean of each state's emissions in the units of the data, shape (n_states, n_features); NaN where none is.

        Columns of a dict of families are in its order. The mean of a mixture is that of all its components.
        """
        return column_moments(self.density.emissions, *self._places()).means

    @property
    def covariances_(self) -> Array:
        """Covariance of each state's emissions, shape (n_states, n_features, n_features), as `means_` has them."""
        return column_covariances(self.density.emissions, *self._places())

    @property
    def feature_log_prob_(self) -> Array | list[Array] | dict[Any, Any]:
        """Log probabilities of words, ones or categories: (n_states, n_features), or an array for each column."""
        from deciban.model.explain import log_probabilities  # lazy: a fit does not need it

        return log_probabilities(self.density.emissions)

    @property
    def categories_(self) -> Array | list[Array] | dict[Any, Any]:
        """Words or categories along the last axis of `feature_log_prob_`, in the same form."""
        from deciban.model.explain import category_names  # lazy: a fit does not need it

        return category_names(self.density.emissions)

    def _places(self) -> tuple[list[list[int]], int]:
        """Return the positions of the columns of each block of emissions, and the number of columns."""
        if isinstance(self.family_, Product):
            sizes = [len(key) for key in self.family_.keys]
        else:
            described = ability(self.density.emissions, HasMoments)
            sizes = [1 if described is None else described.moments()[0].shape[1]]
        ends = np.cumsum(sizes).tolist()
        return [list(range(end - size, end)) for size, end in zip(sizes, ends)], ends[-1]

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

    def stored(self) -> StoredHMM:
        """Return the dataclass that stands for the model in a file.

        Returns
        -------
        StoredHMM
            Parameters, family, sums and trace.
        """
        check_is_fitted(self, "classes_")
        check_parameters(self)
        density = self.density if self.stats_ is None else None
        names = tuple(self.classes_.tolist())
        parameters = self.get_params(deep=False)
        given = self.words_
        words = None if given is None else (tuple(sorted(given.frequent)), tuple(sorted(given.endings)))
        columns = getattr(self, "n_features_in_", None)
        return StoredHMM(
            parameters,
            self.family_,
            self.stats_,
            density,
            self.trace_,
            self.exact_,
            names,
            words,
            columns,
            tuple(getattr(self, "feature_names_in_", ())) or None,
        )

    # -- internals ---------------------------------------------------------------------------------------------------
    @property
    def _threads(self) -> int | None:
        return None if self.n_jobs is None else int(effective_n_jobs(self.n_jobs))

    def _model(self, family: Family) -> HMM:
        return HMM(family, self.start_pseudo_count, self.transition_pseudo_count)

    def _states(self, asked: int | None, found: tuple[Any, ...], n: int) -> Axis:
        """Return the axis of the states: those found in y, or the numbers below `asked`."""
        if found:
            if asked not in (None, len(found)):
                raise InputError(f"n_states={asked}, but y names {len(found)} states. Leave n_states out.")
            return Axis(found)
        if asked is None or isinstance(asked, str) or asked < 1:
            raise HyperparameterError(
                f"n_states={asked!r}: give the number of states, several such as range(1, 6), or the states as y."
            )
        if n < asked:
            raise InputError(f"{asked} states in {n} rows: there are not enough rows. Ask for fewer.")
        return Axis.of(asked)

    def _parameters(self) -> int:
        """Return the number of free parameters: start, transitions that are possible, and emissions."""
        density = self.density
        if self.stats_ is None:
            return 0  # all are known
        possible = np.isfinite(density.log_transitions)
        chain = int(np.isfinite(density.log_start).sum()) - 1 + int((possible.sum(axis=1) - 1).sum())
        return chain + free_parameters(self.family_, self.stats_.emissions)

    def _counts(self, action: str) -> HMMStats:
        """Return the counts; NotAvailableError if they are expectations."""
        check_is_fitted(self, "classes_")
        if not self.exact_ or self.stats_ is None:
            raise NotAvailableError(
                f"a model fitted by EM cannot be {action} exactly, because its sums depend on the estimate under which "
                "they were collected. Refit it, or give `fit` every state."
            )
        return self.stats_

    def _collect(
        self,
        counts: HMMStats,
        X: SequenceInput,
        y: SequenceInput,
        lengths: ArrayLike | None,
        sample_weight: ArrayLike | None,
        sequence_weight: ArrayLike | None,
    ) -> HMMStats:
        """Return the counts of a batch with known states."""
        X, lengths = join(X, lengths)
        X, lengths = read_words(self.words_, self._arranged(X), lengths)
        rows, found = read_rows(self.family_, X, lengths, y, sample_weight, sequence_weight, counts.emissions)
        if rows.states is None or (rows.states < 0).any():
            raise NotAvailableError("steps whose states are not known need EM, which is not a sum. Use fit.")
        return self._model(self.family_).collect(rows, Axis(found))

    def _inference(self, X: SequenceInput, lengths: ArrayLike | None) -> Inference:
        density = self.density
        X, lengths = join(X, lengths)
        if hasattr(self, "n_features_in_"):
            check_columns(X, self.n_features_in_, type(self).__name__)
        X, lengths = read_words(self.words_, self._arranged(X), lengths)
        rows, _ = read_rows(self.family_, X, lengths, stats=None if self.stats_ is None else self.stats_.emissions)
        return Inference(density, rows, threads=self._threads)

    def _note_names(self, names: Sequence[str] | None) -> None:
        """Set the names of the columns, if they have some."""
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _arranged(self, X: Any) -> Any:
        """Return a frame with the columns of the fit, found by name; other input unchanged."""
        names = getattr(self, "feature_names_in_", None)
        return X if names is None else arranged(X, names.tolist())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        set_input_tags(tags, self.family)
        set_sequence_tags(tags)
        return tags

    def _set_density(self, names: tuple[Any, ...], density: HMMDensity) -> Self:
        self.stats_, self._density, self.classes_ = None, density, label_array(names)
        return self

    def _set(self, stats: HMMStats) -> Self:
        self.stats_, self._density = stats, None
        self.classes_ = label_array(tuple(stats.axis.names))
        return self


def names_every_step(y: Any, X: Any) -> bool:
    """Whether y has one entry for each row of a table, and is not the lengths of sequences of one step."""
    given = np.asarray(y)
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    return given.shape == (n,) and not (given.dtype.kind in "iu" and bool((given == 1).all()))


def set_sequence_tags(tags: Any) -> None:
    """Set scikit-learn's tags of estimators whose samples are sequences, not the rows of a table."""
    tags.input_tags.two_d_array, tags.input_tags.three_d_array = False, True


def as_family(given: Family | Mapping[Any, Family]) -> Family:
    """Return the family of the emissions; a dict of families by column is a product."""
    return Product(dict(given)) if isinstance(given, Mapping) else given


# -- files -------------------------------------------------------------------------------------------------------------
Check = Callable[[], None]


@dataclass(frozen=True, eq=False)
class StoredHMM:
    """A hidden Markov model in a file: its sums, or its density if the parameters were given."""

    parameters: dict[str, Any]
    family: Any
    stats: Any
    density: Any
    trace: Any
    exact: Any
    names: Any  # of the states
    words: Any = None  # frequent words and known endings, where sequences are words
    columns: Any = None  # their number; None in older files, and where densities were given
    feature_names: Any = None  # names of the columns of a frame

    @property
    def rows(self) -> float:
        """Weighted number of steps learnt."""
        return 0.0 if self.stats is None else float(self.stats.rows.sum())

    def restored(self, check: Check | None, key: bytes | None = None) -> HiddenMarkovModel:
        """Return the model, with its density estimated, so that sums that do not fit the family are noticed."""
        if check is not None:
            check()
        require(isinstance(self.family, Family) and isinstance(self.names, tuple), "a model", "a family and states")
        require(self.trace is None or isinstance(self.trace, Trace), "trace", "to be one")
        model = unfitted(HiddenMarkovModel, self.parameters)
        model.criteria_ = {}
        model.family_, model.trace_, model.exact_ = self.family, self.trace, bool(self.exact)
        model.words_ = self._word_features()
        if self.columns is not None:
            require(isinstance(self.columns, int) and self.columns > 0, "columns", "to be a number above 0")
            model.n_features_in_ = self.columns
        if self.feature_names is not None:
            right = isinstance(self.feature_names, tuple) and all(isinstance(each, str) for each in self.feature_names)
            require(right and len(self.feature_names) == self.columns, "feature_names", "a name for each column")
            model._note_names(self.feature_names)
        if self.stats is not None:
            right = isinstance(self.stats, HMMStats) and self.stats.labels.get("next") == self.stats.axis
            require(right and tuple(self.stats.axis.names) == self.names, "stats", "the sums of the states")
            model._set(self.stats)
        else:
            model._set_density(self.names, self.density)
        _check_density(model.density, len(self.names))
        return model

    def _word_features(self) -> WordFeatures | None:
        if self.words is None:
            return None
        right = isinstance(self.words, tuple) and len(self.words) == 2
        right = right and all(isinstance(each, str) for part in self.words for each in part)
        require(right, "words", "to be frequent words and endings")
        return WordFeatures(*map(frozenset, self.words))


def _check_density(density: HMMDensity, S: int) -> None:
    right = isinstance(density, HMMDensity) and isinstance(density.emissions, Density) and density.emissions.K == S
    shapes = right and density.log_start.shape == (S,) and density.log_transitions.shape == (S, S)
    require(shapes, "a density", f"{S} states")
    sums = [np.exp(part).sum(axis=-1) for part in (density.log_start, density.log_transitions)]
    require(all(np.allclose(part, 1.0) for part in sums), "a density", "probabilities that sum to 1")
