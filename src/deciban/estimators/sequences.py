"""Sequences whose states are known are counted: what was learnt can be added to, merged and taken back."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs  # type: ignore[import-untyped]
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from deciban.errors import HyperparameterError, InputError, MergeError, NotAvailableError, NotLearntError
from deciban.estimators.learning import _array
from deciban.families.known import KnownDensities
from deciban.families.product import Blocks
from deciban.families.protocol import Density, Family, Rule, check_rule
from deciban.latent import em
from deciban.latent.em import Trace
from deciban.latent.hmm import HMM, HMMDensity, HMMStats
from deciban.latent.hmm_fit import Task, choose, read_rows
from deciban.latent.hmm_passes import Passes
from deciban.latent.sequences import Sequences
from deciban.statistics import Array, Axis
from deciban.store import save
from deciban.store.checks import require


class Counting:
    """What a hidden Markov model can do with sequences of known states: + and −."""

    family_: Any
    stats_: HMMStats | None
    exact_: bool  # learnt by counting: can be taken back
    # the model's own
    fit: Any
    _model: Any
    _set: Any

    def learn(
        self, X: Any, y: Any, lengths: Any = None, *, sample_weight: Any = None, sequence_weight: Any = None
    ) -> Self:
        """Add sequences whose states are known; new states may arrive. The first call is `fit`."""
        if not hasattr(self, "stats_"):
            return self.fit(X, y, lengths, sample_weight=sample_weight, sequence_weight=sequence_weight)
        return self._set(self._sums("learnt") + self._batch(X, y, lengths, sample_weight, sequence_weight))

    def unlearn(
        self, X: Any, y: Any, lengths: Any = None, *, sample_weight: Any = None, sequence_weight: Any = None
    ) -> Self:
        """Take sequences back, as if they had never been learnt; refused where the sums show that they were not."""
        batch = self._batch(X, y, lengths, sample_weight, sequence_weight)
        return self._set(self._sums("unlearnt").without(batch, NotLearntError))

    def merge(self, other: Self) -> Self:
        """A model that has learnt the sequences of both."""
        if not isinstance(other, Counting) or self.family_ != other.family_:
            raise MergeError("the models show different families, or froze different choices at their first fit.")
        return copy(self)._set(self._sums("merged") + other._sums("merged"))

    __add__ = merge

    # -- the machinery -------------------------------------------------------------------------------------------------
    def _batch(self, X: Any, y: Any, lengths: Any, sample_weight: Any, sequence_weight: Any) -> HMMStats:
        stats = self._sums("learnt")
        rows, found = read_rows(self.family_, X, lengths, y, sample_weight, sequence_weight, stats.emissions)
        if rows.states is None or (rows.states < 0).any():
            raise NotAvailableError("steps whose states are not known need EM, which is not a sum: use fit.")
        return self._model(self.family_).collect(rows, Axis(found))

    def _sums(self, done: str) -> HMMStats:
        """The counts; refused where they are expectations."""
        check_is_fitted(self, "classes_")
        if not self.exact_ or self.stats_ is None:
            raise NotAvailableError(
                f"a model fitted by EM cannot be {done} exactly: its sums depend on the guess they were collected "
                "with. Refit it; or give `fit` every state, and it is a sum."
            )
        return self.stats_


# -- sequence files ----------
# Hidden Markov models as files: what is stored of one, and how it is put together again.

Check = Callable[[], None]


@dataclass(frozen=True, eq=False)
class StoredHMM:
    """A hidden Markov model as a file holds it: sums, or the density where its parameters were given."""

    parameters: dict[str, Any]
    family: Any
    stats: Any
    density: Any
    trace: Any
    exact: Any
    names: Any  # of the states

    @property
    def rows(self) -> float:
        """Σ w of the steps learnt."""
        return 0.0 if self.stats is None else float(self.stats.rows.sum())

    def restored(self, check: Check | None, key: Any = None) -> Any:
        """The model, estimated at once, so that sums and family that do not belong together are noticed."""
        if check is not None:
            check()
        _parameters(HiddenMarkovModel, self.parameters)
        require(isinstance(self.family, Family) and isinstance(self.names, tuple), "a model", "a family and states")
        require(self.trace is None or isinstance(self.trace, Trace), "trace", "to be one")
        model = HiddenMarkovModel(**self.parameters)
        model.family_, model.trace_, model.exact_ = self.family, self.trace, bool(self.exact)
        if self.stats is not None:
            right = isinstance(self.stats, HMMStats) and self.stats.labels.get("next") == self.stats.axis
            require(right and tuple(self.stats.axis.names) == self.names, "stats", "the sums of the states")
            model._set(self.stats)
        else:
            model._known(self.names, self.density)
        _chain(model.density, len(self.names))
        return model


@dataclass(frozen=True, eq=False)
class StoredHMMClassifier:
    """One stored model for each class."""

    parameters: dict[str, Any]
    names: Any
    models: Any
    weights: Any  # (K,)

    @property
    def rows(self) -> float:
        """Σ w of the sequences learnt."""
        return float(np.sum(self.weights))

    def restored(self, check: Check | None, key: Any = None) -> Any:
        """The classifier."""
        from deciban.estimators.sequence_classifier import HMMClassifier

        if check is not None:
            check()
        _parameters(HMMClassifier, self.parameters)
        whole = isinstance(self.names, tuple) and isinstance(self.models, tuple)
        require(whole and all(isinstance(model, StoredHMM) for model in self.models), "models", "one for each class")
        require(len(self.names) == len(self.models) == np.size(self.weights), "models", "as many as there are classes")
        classifier = HMMClassifier(**self.parameters)
        models = [model.restored(None) for model in self.models]
        classifier._set(self.names, dict(zip(self.names, models)), np.asarray(self.weights, dtype=float))
        return classifier


class SavedSequences:
    """What models of sequences can do with files."""

    def save(self, path: str | os.PathLike[str], *, note: str = "") -> None:
        """Write the model to a file, whole or not at all; `deciban.load` reads it."""
        save(self, path, note=note)

    def stored(self) -> StoredHMM | StoredHMMClassifier:
        """As a file holds it."""
        model: Any = self
        check_is_fitted(model, "classes_")
        parameters, names = model.get_params(deep=False), tuple(model.classes_.tolist())
        if hasattr(model, "models_"):
            each = tuple(part.stored() for part in model.models_.values())
            return StoredHMMClassifier(parameters, names, each, model.rows_)
        density = model.density if model.stats_ is None else None
        return StoredHMM(parameters, model.family_, model.stats_, density, model.trace_, model.exact_, names)


def _parameters(cls: Any, given: Any) -> None:
    known = set(cls._get_param_names())
    require(isinstance(given, dict) and set(given) <= known, cls.__name__, "parameters that it has")
    check_rule(str(given.get("rule", "mean")))


def _chain(density: Any, S: int) -> None:
    right = isinstance(density, HMMDensity) and isinstance(density.emissions, Density) and density.emissions.K == S
    shapes = right and density.log_start.shape == (S,) and density.log_transitions.shape == (S, S)
    require(shapes, "a density", f"{S} states")
    sums = [np.exp(part).sum(axis=-1) for part in (density.log_start, density.log_transitions)]
    require(all(np.allclose(part, 1.0) for part in sums), "a density", "probabilities that sum to 1")


# -- sequences ----------
# Hidden Markov models as scikit-learn users expect them.
#
# Sequences come as one table X with `lengths`, or as a list of sequences. A list is always a list of sequences when its
# items are lists or arrays; one sequence is an array, or a list of plain values.


class HiddenMarkovModel(Counting, SavedSequences, BaseEstimator):
    """Sequences that move between hidden states, each of which shows rows of some family.

    family                  : what a state shows: `Categorical()`, `Gaussian()`, a `Product`, any family
    n_states                : how many; not needed where `fit` is given the states
    rule                    : "ml", "map", "mean" or "predictive"; EM climbs under "ml", else under "map", and the
                              other two are readings of the sums it ends with
    start_pseudo_count      : Dirichlet prior of the first state, a number or (S,); 0 in an array forbids
    transition_pseudo_count : of each state's successor, a number or (S, S)
    n_starts, max_iter, tol : short runs that compete, EM steps at most, gain a row at which EM has converged
    random_state, n_jobs    : seed of the starts; threads, which change no bit of the answer

    The occasionally dishonest casino switches to a die that shows six every other time:

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

    classes_: Array
    family_: Any
    stats_: HMMStats | None
    trace_: em.Trace | None
    exact_: bool  # learnt by counting: can be taken back
    _density: HMMDensity | None  # None until it is needed after a change

    def __init__(
        self,
        family: Family,
        n_states: int | None = None,
        *,
        rule: Rule = "mean",
        start_pseudo_count: Any = 1.0,
        transition_pseudo_count: Any = 1.0,
        n_starts: int = 10,
        max_iter: int = 200,
        tol: float = 1e-6,
        random_state: Any = None,
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
    def from_densities(cls, densities: Mapping[Any, Density], start: Any, transitions: Any) -> Self:
        """A model whose parameters are known: a density for each state, where it starts, and how it moves."""
        names, family = tuple(densities), KnownDensities(tuple(densities.values()))
        S, chain = len(names), [np.asarray(p, dtype=float) for p in (start, transitions)]
        if [p.shape for p in chain] != [(S,), (S, S)]:
            raise InputError(f"{S} states have {S} start probabilities and {S} × {S} transitions.")
        if any((p < 0).any() or not np.allclose(p.sum(axis=-1), 1.0) for p in chain):
            raise InputError("start probabilities, and the transitions from each state, are ≥ 0 and sum to 1.")
        model = cls(family, S)
        model.family_, model.trace_, model.exact_ = family, None, False
        emissions = family.estimate(family.no_sums(Axis.of(S)), "ml")
        return model._known(names, HMMDensity.of(chain[0], chain[1], emissions))

    # -- learning ------------------------------------------------------------------------------------------------------
    def fit(
        self,
        X: Any,
        y: Any = None,
        lengths: Any = None,
        *,
        sample_weight: Any = None,
        sequence_weight: Any = None,
        start: Any = None,
    ) -> Self:
        """Learn from sequences: by counting where `y` names every state, by EM where states are missing.

        y               : the state at each step; None, NaN or the integer −1 where it is not known
        sample_weight   : one number a row: how much what it shows counts; 0 makes a gap of it
        sequence_weight : one number a sequence
        start           : where EM starts: responsibilities (n, S), or another model
        """
        check_rule(self.rule)
        rows, found = read_rows(self.family, X, lengths, y, sample_weight, sequence_weight)
        states = self._states(found, rows.n)
        rows.check()
        family = choose(rows, states, self.rule)
        rows, model = replace(rows, family=family), self._model(family)
        model.priors(states.size)
        exact, trace = rows.states is not None and bool((rows.states >= 0).all()), None
        if exact:
            stats = model.collect(rows, states)
        else:
            task = Task(model, rows, states, "ml" if self.rule == "ml" else "map", self.max_iter, self._threads)
            start = getattr(start, "density", start)
            guess, trace = task.run(start, self.n_starts, self.tol, np.random.default_rng(self.random_state))
            stats = guess.stats if start is not None or found else model.sorted(guess.stats)
        density = model.estimate(stats, self.rule)
        self.family_, self.exact_, self.trace_ = family, exact, trace
        self._set(stats)._density = density
        return self

    # -- answers -------------------------------------------------------------------------------------------------------
    def predict(self, X: Any, lengths: Any = None) -> Array:
        """(n,) the most probable states of each sequence as a whole (Viterbi)."""
        return self.classes_[self._passes(X, lengths).paths()]

    def predict_proba(self, X: Any, lengths: Any = None) -> Array:
        """(n, S) the probability of each state at each step, given the whole sequence."""
        return self._passes(X, lengths).posteriors()

    def score_samples(self, X: Any, lengths: Any = None) -> Array:
        """(B,) the log-likelihood of each sequence; −inf where it is impossible."""
        return self._passes(X, lengths).likelihoods()

    def score(self, X: Any, lengths: Any = None) -> float:
        """The log-likelihood of all sequences together."""
        return float(self.score_samples(X, lengths).sum())

    def sample(self, lengths: Any = 1, random_state: Any = None) -> tuple[Any, Array]:
        """Rows and states of new sequences: a length, or one for each."""
        each = np.atleast_1d(lengths)
        sequences = Sequences.of(each, int(each.sum()))
        rng = np.random.default_rng(random_state)
        codes = self.density.sample_states(sequences, rng)
        rows = self.density.emissions.sample(codes, rng)
        if isinstance(rows, Blocks):  # columns side by side, in the order of the blocks
            rows = np.column_stack([part.toarray() if sp.issparse(part) else part for part in rows.parts.values()])
        return rows, self.classes_[codes]

    def reestimate(self, rule: Rule) -> Self:
        """The same sums read by another rule."""
        check_rule(rule)
        other = copy(self)
        other.rule, other._density = rule, None
        return other

    @property
    def density(self) -> HMMDensity:
        """Start, transitions and emissions under the rule."""
        check_is_fitted(self, "classes_")
        if self._density is None:
            if not len(self.classes_):
                raise InputError("the model holds no sequences and no states any more. Learn some.")
            self._density = self._model(self.family_).estimate(self.stats_, self.rule)  # type: ignore[arg-type]
        return self._density

    @property
    def startprob_(self) -> Array:
        """(S,) the probability that a sequence begins in each state."""
        return np.exp(self.density.log_start)

    @property
    def transmat_(self) -> Array:
        """(S, S) the probability of each state after each, from row to column."""
        return np.exp(self.density.log_transitions)

    # -- the machinery -------------------------------------------------------------------------------------------------
    @property
    def _threads(self) -> int:
        return int(effective_n_jobs(self.n_jobs))

    def _model(self, family: Any) -> HMM:
        return HMM(family, self.start_pseudo_count, self.transition_pseudo_count)

    def _states(self, found: tuple[Any, ...], n: int) -> Axis:
        if found:
            if self.n_states not in (None, len(found)):
                raise InputError(f"n_states={self.n_states}, but y names {len(found)} states. Leave n_states out.")
            return Axis(found)
        if self.n_states is None or self.n_states < 1:
            raise HyperparameterError(f"n_states={self.n_states}: say how many states to look for, or give y.")
        if n < self.n_states:
            raise InputError(f"{self.n_states} states in {n} rows: there are not enough rows. Ask for fewer.")
        return Axis.of(self.n_states)

    def _passes(self, X: Any, lengths: Any) -> Passes:
        density = self.density
        rows, _ = read_rows(self.family_, X, lengths, stats=None if self.stats_ is None else self.stats_.emissions)
        return Passes(density, rows, threads=self._threads)

    def _known(self, names: tuple[Any, ...], density: HMMDensity) -> Self:
        self.stats_, self._density, self.classes_ = None, density, _array(names)
        return self

    def _set(self, stats: HMMStats) -> Self:
        self.stats_, self._density = stats, None
        self.classes_ = _array(tuple(stats.axis.names))
        return self
