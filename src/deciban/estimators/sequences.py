"""Hidden Markov models as scikit-learn users expect them.

Sequences come as one table X with `lengths`, or as a list of sequences. A list is always a list of sequences when its
items are lists or arrays; one sequence is an array, or a list of plain values.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs  # type: ignore[import-untyped]

from deciban.conventions import BaseEstimator, check_is_fitted
from deciban.errors import HyperparameterError, InputError
from deciban.estimators.known import KnownDensities
from deciban.estimators.learning import _array
from deciban.estimators.sequence_counting import Counting
from deciban.estimators.sequence_files import SavedSequences
from deciban.families.blocks import Blocks
from deciban.families.protocol import Density, Family, Rule, check_rule
from deciban.latent import em
from deciban.latent.hmm import HMM, HMMDensity, HMMStats
from deciban.latent.hmm_fit import Task, choose
from deciban.latent.hmm_passes import Passes
from deciban.latent.hmm_reading import read_rows
from deciban.latent.hmm_sequences import Sequences
from deciban.statistics import Array, Axis


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
