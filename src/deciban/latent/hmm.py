"""Hidden Markov models over any family: which of the look-alike dice was rolled at each step?

    z_1 ~ Categorical(π)        z_t | z_{t−1} = j  ~  Categorical(A_j)        x_t | z_t = k  ~  f(·|k)
    π   ~ Dirichlet(α)          A_j ~ Dirichlet(α′), each state's own

The sums of labelled sequences are counts: how often a sequence began in a state, how often one state followed another,
and the family's own sums of the rows seen in each state. They add, merge and can be taken back. Hidden states replace
counts by expectations (Baum–Welch), which depend on a guess and cannot be taken back exactly.

Reference: Rabiner, A tutorial on hidden Markov models, Proceedings of the IEEE 77 (1989).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from deciban.errors import HyperparameterError, NoModeError, NotAvailableError
from deciban.families.dirichlet import log_prior
from deciban.families.protocol import Family, Rule
from deciban.latent.sequences import Rows, Sequences
from deciban.statistics import Array, Axis, Stats, nested, summed


@dataclass(frozen=True, eq=False, repr=False)
class HMMStats(Stats):
    """What a hidden Markov model needs of sequences whose states are known, or expected."""

    start: Array = summed("class", floor=True)  # Σ w     sequences that began in the state
    transition: Array = summed("class", "next", floor=True)  # Σ w     steps from one state to the next
    rows: Array = summed("class", floor=True)  # Σ w     steps in the state, with or without values
    emissions: Any = nested()

    @property
    def axis(self) -> Axis:
        """The states."""
        return self.labels["class"]  # type: ignore[return-value]

    def select(self, axis: str, index: Array) -> Self:
        """Selecting states selects where they lead to, too."""
        chosen = super().select(axis, index)
        return super(HMMStats, chosen).select("next", index) if axis == "class" else chosen

    def pruned(self) -> Self:
        """Without the undeclared states that were never visited; names within the emissions go likewise."""
        kept = self.map_fields(lambda part, _: part.pruned(), kinds=("nested",))
        doomed = (self.rows == 0) & (np.arange(self.axis.size) >= self.axis.declared)
        return kept.select("class", np.flatnonzero(~doomed)) if doomed.any() else kept


@dataclass(frozen=True, eq=False)
class HMMDensity:
    """Known start and transition probabilities, and the densities of what each state shows."""

    log_start: Array  # (S,)
    log_transitions: Array  # (S, S)  from row to column
    emissions: Any  # a Density of S groups

    @property
    def S(self) -> int:
        """How many states."""
        return len(self.log_start)

    @classmethod
    def of(cls, start: Any, transitions: Any, emissions: Any) -> HMMDensity:
        """From probabilities.

        >>> import numpy as np
        >>> HMMDensity.of([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], None).S
        2
        """
        with np.errstate(divide="ignore"):
            return cls(np.log(np.asarray(start, dtype=float)), np.log(np.asarray(transitions, dtype=float)), emissions)

    def sample_states(self, sequences: Sequences, rng: np.random.Generator) -> Array:
        """(n,) a state for every step of every sequence, all sequences a step at a time."""
        states, lengths, begins = np.empty(sequences.n, dtype=np.intp), sequences.lengths, sequences.begins
        bounds = np.cumsum(np.exp(np.vstack([self.log_transitions, self.log_start])), axis=1)
        current = np.full(len(lengths), self.S)
        for t in range(int(lengths.max(initial=0))):
            going = np.flatnonzero(lengths > t)
            row = bounds[current[going]]
            drawn = (rng.random(len(going))[:, None] * row[:, -1:] >= row).sum(axis=1)
            current[going] = states[begins[going] + t] = drawn
        return states


@dataclass(frozen=True, eq=False)
class HMM:
    """Hyper-parameters: the family of the emissions, and Dirichlet pseudo-counts, a number or one for each place.

    A pseudo-count of 0 in an array forbids: a model whose states only move on has zeros below the diagonal.
    """

    family: Family
    start_pseudo_count: Any = 1.0
    transition_pseudo_count: Any = 1.0

    def __post_init__(self) -> None:
        for name in ("start_pseudo_count", "transition_pseudo_count"):
            value = np.asarray(getattr(self, name), dtype=float)
            if not np.isfinite(value).all() or (value < 0).any() or not (value > 0).any(axis=-1).all():
                raise HyperparameterError(
                    f"{name}={value.tolist()}: pseudo-counts are finite and ≥ 0, and not all 0 (0 forbids)."
                )

    def priors(self, S: int) -> tuple[Array, Array]:
        """α as (S,) and (S, S)."""
        shapes = {"start_pseudo_count": (S,), "transition_pseudo_count": (S, S)}
        for name, shape in shapes.items():
            given = np.shape(getattr(self, name))
            if given not in ((), shape):
                raise HyperparameterError(f"{name} has shape {given}, but there are {S} states: it must be {shape}.")
        start, transition = (np.asarray(getattr(self, name), dtype=float) for name in shapes)
        return np.broadcast_to(start, (S,)), np.broadcast_to(transition, (S, S))

    def collect(self, rows: Rows, states: Axis) -> HMMStats:
        """The sums of steps whose states are known; an unknown state breaks the chain."""
        sequences, S = rows.sequences, states.size
        codes: Array = rows.states  # type: ignore[assignment]
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

    def sorted(self, stats: HMMStats) -> HMMStats:
        """States by how often they are visited, the most visited first; as they are where a prior tells them apart."""
        if np.ndim(self.start_pseudo_count) or np.ndim(self.transition_pseudo_count):
            return stats
        return stats.select("class", np.argsort(-stats.rows, kind="stable"))

    def estimate(self, stats: HMMStats, rule: Rule) -> HMMDensity:
        """Probabilities by a rule, and the family's density; the predictive of one step is the posterior mean."""
        start, transition = self.priors(stats.axis.size)
        return HMMDensity(
            _log_shares(stats.start, start, rule, "start"),
            _log_shares(stats.transition, transition, rule, "transition"),
            self.family.estimate(stats.emissions, rule),
        )

    def log_prior(self, density: HMMDensity) -> float:
        """What `map` adds to the log-likelihood, up to a constant."""
        start, transition = (np.where(alpha > 0, alpha, 1.0) for alpha in self.priors(density.S))
        chain = log_prior(density.log_start, start) + log_prior(density.log_transitions, transition)
        if not hasattr(self.family, "log_prior"):
            raise NotAvailableError(
                f"{type(self.family).__name__} has no log_prior, which EM under 'map' needs. Use rule='ml'."
            )
        return chain + self.family.log_prior(density.emissions)


def _log_shares(counts: Array, alpha: Array, rule: Rule, what: str) -> Array:
    """Log probabilities along the last axis; where nothing was counted and the prior is flat, all alike."""
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
