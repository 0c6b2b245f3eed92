"""Hidden Markov models over any family.

    z_1 ~ Categorical(π)        z_t | z_{t−1} = j  ~  Categorical(A_j)        x_t | z_t = k  ~  f(·|k)
    π   ~ Dirichlet(α)          A_j ~ Dirichlet(α′), independent for each state

The sums of sequences with known states are counts: sequences that begin in a state, steps from one state to another,
and the family's own sums of the rows of each state. They add, merge and can be unlearnt. If states are hidden, the
counts are replaced by expectations (Baum–Welch), which depend on the estimate and cannot be unlearnt exactly.

Reference: Rabiner, A tutorial on hidden Markov models, Proceedings of the IEEE 77 (1989).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from deciban.errors import HyperparameterError, InputError, NoModeError, NotAvailableError
from deciban.families.abilities import HasLogPrior, ability
from deciban.families.dirichlet import log_prior
from deciban.families.protocol import Density, Family, Rule
from deciban.latent.components import describe
from deciban.latent.sequences import SequenceRows, Sequences
from deciban.statistics import Array, Axis, Stats, nested, summed


@dataclass(frozen=True, eq=False, repr=False)
class HMMStats(Stats):
    """Counts, or expected counts, of states, transitions and emissions."""

    start: Array = summed("class", floor=True)  # Σ w     sequences that begin in the state
    transition: Array = summed("class", "next", floor=True)  # Σ w     steps from one state to the next
    rows: Array = summed("class", floor=True)  # Σ w     steps in the state, with or without values
    emissions: Any = nested()

    @property
    def axis(self) -> Axis:
        """The axis of the states."""
        return self.labels["class"]  # type: ignore[return-value]

    def select(self, axis: str, index: Array) -> Self:
        """Select states, as origins and as destinations of transitions."""
        chosen = super().select(axis, index)
        return super(HMMStats, chosen).select("next", index) if axis == "class" else chosen

    def pruned(self) -> Self:
        """Return the sums without undeclared states that were never visited, and with the emissions pruned."""
        kept = replace(self, emissions=self.emissions.pruned())
        unused = (self.rows == 0) & (np.arange(self.axis.size) >= self.axis.declared)
        return kept.select("class", np.flatnonzero(~unused)) if unused.any() else kept


@dataclass(frozen=True, eq=False, repr=False)
class HMMDensity:
    """Start and transition probabilities, and the emission density of each state."""

    shapes: ClassVar = {"log_start": "K log", "log_transitions": "K K log"}

    log_start: Array  # (S,)
    log_transitions: Array  # (S, S)  from row to column
    emissions: Density  # of S groups

    @property
    def S(self) -> int:
        """Number of states."""
        return len(self.log_start)

    def validate(self) -> None:
        """Raise InputError if the probabilities do not have the shapes of S states."""
        S = self.emissions.K
        if self.log_start.shape != (S,) or self.log_transitions.shape != (S, S):
            raise InputError("the start, the transitions and the emissions have different numbers of states.")

    def __repr__(self) -> str:
        return f"HMMDensity({self.S} states, {describe(self.emissions)})"

    @classmethod
    def of(cls, start: ArrayLike, transitions: ArrayLike, emissions: Density) -> HMMDensity:
        """Make a density from probabilities.

        >>> import numpy as np
        >>> HMMDensity.of([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], None).S
        2
        """
        with np.errstate(divide="ignore"):
            return cls(np.log(np.asarray(start, dtype=float)), np.log(np.asarray(transitions, dtype=float)), emissions)

    def sample_states(self, sequences: Sequences, rng: np.random.Generator) -> Array:
        """Draw a state for every step of every sequence, shape (n,)."""
        states, lengths, begins = np.empty(sequences.n, dtype=np.intp), sequences.lengths, sequences.begins
        bounds = np.cumsum(np.exp(np.vstack([self.log_transitions, self.log_start])), axis=1)
        current = np.full(len(lengths), self.S)
        for t in range(int(lengths.max(initial=0))):  # all sequences together
            active = np.flatnonzero(lengths > t)
            row = bounds[current[active]]
            drawn = (rng.random(len(active))[:, None] * row[:, -1:] >= row).sum(axis=1)
            current[active] = states[begins[active] + t] = drawn
        return states


@dataclass(frozen=True, eq=False)
class HMM:
    """Hyper-parameters: the family of the emissions, and Dirichlet pseudo-counts as numbers or arrays.

    A pseudo-count of 0 in an array excludes that start or transition: a left-to-right model has zeros below the
    diagonal.
    """

    family: Family
    start_pseudo_count: ArrayLike = 1.0
    transition_pseudo_count: ArrayLike = 1.0

    def __post_init__(self) -> None:
        for name in ("start_pseudo_count", "transition_pseudo_count"):
            value = np.asarray(getattr(self, name), dtype=float)
            if not np.isfinite(value).all() or (value < 0).any() or not (value > 0).any(axis=-1).all():
                raise HyperparameterError(
                    f"{name}={value.tolist()}: pseudo-counts must be finite, ≥ 0 and not all 0 (0 excludes a state)."
                )

    def priors(self, S: int) -> tuple[Array, Array]:
        """Pseudo-counts as arrays of shape (S,) and (S, S)."""
        shapes = {"start_pseudo_count": (S,), "transition_pseudo_count": (S, S)}
        for name, shape in shapes.items():
            given = np.shape(getattr(self, name))
            if given not in ((), shape):
                raise HyperparameterError(f"{name} has shape {given}, but there are {S} states: it must be {shape}.")
        start, transition = (np.asarray(getattr(self, name), dtype=float) for name in shapes)
        return np.broadcast_to(start, (S,)), np.broadcast_to(transition, (S, S))

    def collect(self, rows: SequenceRows, states: Axis) -> HMMStats:
        """Count starts, transitions and emissions of known states; transitions need two known states."""
        sequences, S = rows.sequences, states.size
        codes = rows.states
        assert codes is not None
        weight = np.repeat(sequences.weight, sequences.lengths)
        seen = codes >= 0
        begins = sequences.begins[seen[sequences.begins]]
        follows = seen[:-1] & seen[1:]
        follows[sequences.begins[1:] - 1] = False
        before = np.flatnonzero(follows)
        pairs = np.bincount(codes[before] * S + codes[before + 1], weight[before], S * S)
        return HMMStats(
            {"class": states, "next": states},
            np.bincount(codes[begins], weight[begins], S),
            pairs.reshape(S, S),
            np.bincount(codes[seen], weight[seen], S),
            rows.collect_known(states),
        )

    def sort_states(self, stats: HMMStats) -> HMMStats:
        """Order states by visits, the most visited first; states with priors of their own keep their order."""
        if np.ndim(self.start_pseudo_count) or np.ndim(self.transition_pseudo_count):
            return stats
        return stats.select("class", np.argsort(-stats.rows, kind="stable"))

    def estimate(self, stats: HMMStats, rule: Rule) -> HMMDensity:
        """Estimate under a rule; the predictive probability of one step is the posterior mean."""
        start, transition = self.priors(stats.axis.size)
        return HMMDensity(
            _log_probabilities(stats.start, start, rule, "start"),
            _log_probabilities(stats.transition, transition, rule, "transition"),
            self.family.estimate(stats.emissions, rule),
        )

    def log_prior(self, density: HMMDensity) -> float:
        """Log prior that rule "map" adds to the log-likelihood, up to a constant."""
        start, transition = (np.where(alpha > 0, alpha, 1.0) for alpha in self.priors(density.S))
        chain = log_prior(density.log_start, start) + log_prior(density.log_transitions, transition)
        family = ability(self.family, HasLogPrior)
        if family is None:
            raise NotAvailableError(
                f"{type(self.family).__name__} has no log_prior, which EM under 'map' needs. Use rule='ml'."
            )
        return chain + family.log_prior(density.emissions)


def _log_probabilities(counts: Array, alpha: Array, rule: Rule, what: str) -> Array:
    """Log probabilities along the last axis; equal ones if nothing was counted and the prior is flat."""
    top = counts + {"ml": 0.0, "map": alpha - 1.0}.get(rule, alpha)
    top = np.where(alpha > 0, top, 0.0)
    if top.min() < -1e-9:
        raise NoModeError(
            f"the {what} probabilities have no posterior mode: a pseudo-count plus its count is below 1. "
            f"Use rule 'mean', or {what}_pseudo_count ≥ 1."
        )
    top = np.maximum(top, 0.0)
    total = top.sum(axis=-1, keepdims=True)
    with np.errstate(divide="ignore"):
        return np.log(np.where(total > 0, top, alpha > 0)) - np.log(
            np.where(total > 0, total, (alpha > 0).sum(axis=-1, keepdims=True))
        )
