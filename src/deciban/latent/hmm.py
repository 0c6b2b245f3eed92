"""Hidden Markov models over any family: the model, and inference in bounded memory.

    z_1 ~ Categorical(π)        z_t | z_{t−1} = j  ~  Categorical(A_j)        x_t | z_t = k  ~  f(·|k)
    π   ~ Dirichlet(α)          A_j ~ Dirichlet(α′), independent for each state

The sums of sequences with known states are counts: sequences that begin in a state, steps from one state to another,
and the family's own sums of the rows of each state. They add, merge and can be unlearnt. If states are hidden, the
counts are replaced by expectations (Baum–Welch), which depend on the estimate and cannot be unlearnt exactly. The
objective of Baum–Welch, the log-likelihood under "ml", with the log prior under "map", never decreases.

Whole sequences that fit one piece are processed at once. A long sequence is cut into pieces: the forward pass keeps the
message at each cut, and the backward pass computes the messages of a piece again from there. So a sequence of any
length needs memory for one piece and one message per cut. Parts run on threads; results are added in the order of the
parts, so they do not depend on the number of threads.

Reference: Rabiner, A tutorial on hidden Markov models, Proceedings of the IEEE 77 (1989).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from deciban.errors import DomainError, HyperparameterError, InputError, NoModeError, NotAvailableError
from deciban.families.abilities import HasLogPrior, ability
from deciban.families.dirichlet import log_prior
from deciban.families.protocol import Density, Family, Passes, Rule
from deciban.kernels import forced, log_sum_exp
from deciban.kernels.choice import compiled as worth
from deciban.kernels.choice import one_thread
from deciban.kernels.latent import Messages, Paths, piece_rows, worth_compiling
from deciban.kernels.parallel import each
from deciban.latent import em
from deciban.latent.components import (
    MixtureStats,
    MixtureSums,
    choose_component,
    choose_within,
    component_axis,
    describe,
)
from deciban.latent.mixture import Mixture
from deciban.latent.sequences import Group, SequenceRows, Sequences
from deciban.read.tables import HEAD
from deciban.statistics import Array, Axis, Stats, nested, summed
from deciban.statistics.members import collect_checked


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
        """Return the pseudo-counts as arrays of shape (S,) and (S, S)."""
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
        """Return the log prior that rule "map" adds to the log-likelihood, up to a constant."""
        start, transition = (np.where(alpha > 0, alpha, 1.0) for alpha in self.priors(density.S))
        chain = log_prior(density.log_start, start) + log_prior(density.log_transitions, transition)
        family = ability(self.family, HasLogPrior)
        if family is None:
            raise NotAvailableError(
                f"{type(self.family).__name__} has no log_prior, which EM under 'map' needs. Use rule='ml'."
            )
        return chain + family.log_prior(density.emissions)


def _log_probabilities(counts: Array, alpha: Array, rule: Rule, what: str) -> Array:
    """Return the log probabilities along the last axis; equal ones if nothing was counted and the prior is flat."""
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


SHORT = 15  # iterations of each competing start
START_KINDS = ((1, 0.5), (1, 0.0), (8, 0.8), (1, 0.2), (32, 0.5), (4, 0.0))  # (rows in a window, weight of staying)
WINDOW_WEIGHT = 4.0  # of the rows of a window against the prior, so that states differ

T = TypeVar("T")
Receive = Callable[[int, int, Array], None]  # called with posteriors of rows lo … hi


# -- forward–backward and Viterbi --------------------------------------------------------------------------------------
class Inference:
    """Forward–backward and Viterbi passes of one density over one set of sequences.

    n_passes : number of passes that will be made over these rows; many justify compiling
    """

    def __init__(self, density: HMMDensity, rows: SequenceRows, n_passes: int = 1, threads: int | None = None) -> None:
        self.density, self.rows, self.threads = density, rows, threads
        self.compiled = worth_compiling(rows.n * n_passes)  # whether compiled kernels run, or their numpy twins

    @cached_property
    def table(self) -> tuple[Array, Array]:
        """Scores of every category, if rows are one column of categories."""
        return self.rows.table(self.density.emissions)

    def piece(self, lo: int, hi: int, lookup: bool = True) -> tuple[Array, tuple[Array, Array]]:
        """Return the position of each row in a table of scores, and the table: log densities and their base."""
        if lookup and self.rows.symbols is not None:
            return self.rows.symbols.index[lo:hi], self.table
        return np.arange(hi - lo), self.rows.scores(self.density.emissions, lo, hi)

    def expected(self, states: Axis) -> tuple[HMMStats, float]:
        """Return the expected sums of the complete data, and the log-likelihood: the E-step of Baum–Welch."""
        parts = self._each_part(lambda groups: self._expected(groups, states))
        stats, total = parts[0]
        for more, found in parts[1:]:
            stats, total = stats + more, total + found
        return stats, total

    def posteriors(self) -> Array:
        """Return the probability of every state at every step given the whole sequence, shape (n, S)."""
        out = np.empty((self.rows.n, self.density.S))

        def store(lo: int, hi: int, shares: Array) -> None:
            out[lo:hi] = shares

        def act(groups: list[Group]) -> None:
            chain = _ForwardBackward(self, lookup=False)
            for group in groups:
                chain.add(group, np.ones(len(group.ends)), store)

        self._each_part(act)
        return out

    def log_likelihoods(self) -> Array:
        """Return the log-likelihood of every sequence, shape (B,); −inf if it is impossible."""

        def act(groups: list[Group]) -> list[Array]:
            chain = _ForwardBackward(self)
            return [chain.log_likelihoods(group) for group in groups]

        return np.concatenate([found for part in self._each_part(act) for found in part])

    def increments(self) -> Array:
        """Return log p(x_t | steps before it) of every step, shape (n,); they sum to the log-likelihood."""
        out = np.empty(self.rows.n)
        for begin, end in zip(self.rows.sequences.begins, self.rows.sequences.ends):
            index, (logs, base) = self.piece(begin, end)
            state = self.density.log_start  # log p(z_t | steps before)
            for t, row in enumerate(index, begin):
                joint = state + logs[row]
                total = log_sum_exp(joint[None])[0]
                out[t] = total + base[row]
                state = log_sum_exp((joint - total if np.isfinite(total) else joint) + self.density.log_transitions.T)
        return out

    def paths(self) -> Array:
        """Return the most probable path of every sequence, shape (n,)."""
        out = np.empty(self.rows.n, dtype=np.intp)

        def act(groups: list[Group]) -> None:
            kind = Paths(self.density.log_start, self.density.log_transitions, self.compiled)
            for group in groups:
                self._write_paths(kind, group, out)

        self._each_part(act)
        return out

    def _write_paths(self, kind: Paths, group: Group, out: Array) -> None:
        """Write the most probable paths of a group's sequences to `out`."""

        def best(number: int, carry: Array) -> Array:
            index, (logs, _) = self.piece(*group.pieces[number])
            return kind.best(index, logs, _ends(group, number), number == 0, carry)

        carry, final = np.zeros(self.density.S), len(group.pieces) - 1
        cuts: list[Array] = []
        for number in range(final + 1):
            cuts.append(carry.copy())
            last = best(number, carry)
            if (last < 0).any():
                raise self.impossible(_ForwardBackward(self).forward(-1, group)[1])
            carry -= carry.max()  # keeps the digits of paths of millions of steps
        for number in range(final, -1, -1):
            if number < final:
                best(number, cuts[number])
            here = out[slice(*group.pieces[number])]
            last = np.array([kind.follow(_ends(group, number), last, here)])  # the last state of the piece before

    def path_score(self, path: Array) -> float:
        """Return the log of the joint density of the rows and states given as codes, shape (n,), of all sequences."""
        first = self.rows.sequences.begins
        later = np.ones(self.rows.n, dtype=bool)
        later[first] = False
        after = np.flatnonzero(later)
        chain = (
            self.density.log_start[path[first]].sum() + self.density.log_transitions[path[after - 1], path[after]].sum()
        )
        index, (logs, base) = self.piece(0, self.rows.n)
        return float(chain + (logs[index, path] + base[index]).sum())

    def impossible(self, row: int) -> DomainError:
        """Return the error for a step that has probability 0 in every reachable state."""
        return DomainError(
            f"{self.rows.sequences.describe(row)} is impossible under the model: it has probability 0 in every "
            "state that can be reached there. Use rule 'mean', or pseudo-counts > 0; score_samples returns -inf for it."
        )

    def _each_part(self, act: Callable[[list[Group]], T]) -> list[T]:
        """Call `act` for each part, on threads; results in the order of the parts."""
        parts = self.rows.parts(piece_rows(self.density.S))
        if self.rows.symbols is not None:
            _ = self.table  # computed here, so that no two threads compute it
        # the family's kernels are chosen by the size of all pieces together
        whole = forced("numba") if worth(self.rows.n * self.density.S) else nullcontext()
        with whole, one_thread(0):
            return each(act, parts, threads=self.threads)

    def _expected(self, groups: list[Group], states: Axis) -> tuple[HMMStats, float]:
        chain, visited = _ForwardBackward(self), np.zeros(self.density.S)
        sums: Any = None

        def collect(lo: int, hi: int, shares: Array) -> None:
            nonlocal visited, sums
            visited = visited + shares.sum(axis=0)
            found = self.rows.collect(shares, states, lo, hi, self.density.emissions)
            sums = found if sums is None else sums + found

        weight, total = self.rows.sequences.weight, 0.0
        for group in groups:
            own = weight[group.first : group.first + len(group.ends)]
            total += float(own @ chain.add(group, own, collect))
        visits, joint, first = chain.found()
        if chain.lookup:
            visited, sums = visits.sum(axis=0), self.rows.collect_visits(visits, states, self.density.emissions)
        return HMMStats({"class": states, "next": states}, first, joint, visited, sums), total


class _ForwardBackward:
    """Forward–backward over the groups of one part, and their sums.

    Messages are plain numbers, scaled at each step; groups in which they underflow are repeated in logarithms.
    """

    def __init__(self, inference: Inference, lookup: bool = True) -> None:
        self.inference, self.rows, density = inference, inference.rows, inference.density
        self.lookup = lookup and self.rows.symbols is not None
        kinds = (True, False) if inference.compiled else (False,)
        parameters = density.log_start, density.log_transitions, inference.compiled
        self.kinds = [Messages(*parameters, scaled) for scaled in kinds]
        self.tables = [kind.table(*inference.table) for kind in self.kinds] if self.lookup else []
        self.sums = [kind.sums(len(inference.table[0]) if self.lookup else 0) for kind in self.kinds]
        self.last_piece: Any = None  # (kind, first row), (positions, table) of the piece scored last

    def found(self) -> tuple[Array, Array, Array]:
        """Return the expected visits per category, transitions and starts."""
        each = [kind.crop(*sums) for kind, sums in zip(self.kinds, self.sums)]
        visits, joint, first = (sum(parts[1:], parts[0]) for parts in zip(*each))
        return visits, joint, first

    def piece(self, at: int, lo: int, hi: int) -> tuple[Array, Any]:
        """Return the position of each row in a table, and the table."""
        if self.lookup:
            return self.inference.piece(lo, hi)[0], self.tables[at]
        if self.last_piece is None or self.last_piece[0] != (at, lo):
            index, scores = self.inference.piece(lo, hi, lookup=False)
            self.last_piece = (at, lo), (index, self.kinds[at].table(*scores))
        return self.last_piece[1]

    def forward(self, at: int, group: Group, cuts: list[Array] | None = None) -> tuple[Array, int]:
        """Return the log-likelihoods of the group's sequences, and the first impossible row, or −1."""
        kind, totals = self.kinds[at], np.zeros(len(group.ends))
        carry = kind.carry()
        for number, (lo, hi) in enumerate(group.pieces):
            if cuts is not None:
                cuts.append(carry.copy())
            index, table = self.piece(at, lo, hi)
            ends = _ends(group, number)
            done = kind.forward(index, table, ends, number == 0, carry, totals)
            if done < (len(ends) if kind.scaled else hi - lo):
                return totals, lo + done
        return totals, -1

    def log_likelihoods(self, group: Group) -> Array:
        """Return the log-likelihoods of the group's sequences, shape (B,)."""
        for at in range(len(self.kinds)):
            totals, bad = self.forward(at, group)
            if bad < 0:
                break
        return totals

    def add(self, group: Group, weight: Array, receive: Receive) -> Array:
        """Add a group's sums and return its log-likelihoods (B,); without a table, `receive` gets the posteriors."""
        for at in range(len(self.kinds)):
            cuts: list[Array] = []
            totals, bad = self.forward(at, group, cuts)
            if bad < 0:
                self.backward(at, group, weight, cuts, receive)
                return totals
        raise self.inference.impossible(bad)

    def backward(self, at: int, group: Group, weight: Array, cuts: list[Array], receive: Receive) -> None:
        """Go from the last piece to the first; the forward messages of all but the last are computed again."""
        kind, (visits, joint, first) = self.kinds[at], self.sums[at]
        back, last = kind.carry(), len(group.pieces) - 1
        for number in range(last, -1, -1):
            lo, hi = group.pieces[number]
            index, table = self.piece(at, lo, hi)
            ends = _ends(group, number)
            if number < last:
                kind.forward(index, table, ends, number == 0, cuts[number], np.zeros(len(ends)))
            own = visits if self.lookup else np.zeros((hi - lo, kind.width))
            kind.backward(index, table, ends, number == 0, number == last, back, weight, own, joint, first)
            if not self.lookup:
                receive(lo, hi, own[:, : kind.S])


def _ends(group: Group, number: int) -> Array:
    """Return the ends of sequences within a piece, counted from its first row."""
    lo, hi = group.pieces[number]
    return group.ends if len(group.pieces) == 1 else np.array([hi - lo])


# -- Baum–Welch --------------------------------------------------------------------------------------------------------
class Estimate(NamedTuple):
    """The state of EM: a density, and the sums of the E-step from which it was estimated."""

    density: HMMDensity
    stats: HMMStats | None = None
    model: HMM | None = None  # with the choices made within states


@dataclass(frozen=True, eq=False)
class PartExpectation:
    """The E-step of some sequences."""

    density: HMMDensity
    states: Axis
    passes: int
    threads: int | None

    def __call__(self, rows: SequenceRows) -> tuple[HMMStats | None, float]:
        if not rows.n:
            return None, 0.0
        return Inference(self.density, rows, self.passes, self.threads).expected(self.states)


def _weight_of(rows: SequenceRows) -> tuple[float]:
    return (float(rows.sequences.weight @ rows.sequences.lengths),)


@dataclass(frozen=True, eq=False)
class BaumWelch:
    """EM for one model and one set of sequences.

    EM finds a local maximum, so several short runs on the first rows compete. Each starts from emissions learnt from
    windows of consecutive rows, which may share a state, and from random transitions with more or less weight on
    staying in a state.
    """

    model: HMM
    rows: SequenceRows
    states: Axis
    rule: Rule  # "ml" or "map"
    asked: Family  # of the emissions, before choices were made
    max_iter: int = 200
    threads: int | None = None
    parts: Passes | None = None  # of sequences in other places, over which EM runs; `rows` are the first of them

    def step(self, estimate: Estimate) -> tuple[Estimate, float]:
        """Make one EM step; return the next estimate and the objective of the given one."""
        expected = PartExpectation(estimate.density, self.states, self.max_iter, self.threads)
        stats, objective = expected(self.rows) if self.parts is None else self.parts.total(expected)
        if self.rule == "map":
            objective += (estimate.model or self.model).log_prior(estimate.density)
        assert stats is not None  # there are rows
        return self._estimate(stats), objective

    def _estimate(self, stats: HMMStats) -> Estimate:
        family = choose_within(self.asked, self.model.family, stats.emissions, self.rule)
        model = replace(self.model, family=family)
        return Estimate(model.estimate(stats, self.rule), stats, model)

    @property
    def weight(self) -> float:
        """Weighted number of rows, which gains are divided by."""
        return _weight_of(self.rows)[0] if self.parts is None else float(self.parts.total(_weight_of)[0])

    def run(
        self, start: HMMDensity | ArrayLike | None, n_starts: int, tol: float, rng: np.random.Generator
    ) -> tuple[Estimate, em.Trace]:
        """Run EM from a density, responsibilities (n, S), the known states, or the best of several short runs."""
        reached: list[float] = []
        if isinstance(start, HMMDensity):
            first = Estimate(start)
        elif start is not None:
            first = self._from_shares(np.asarray(start, dtype=float))
        elif self.rows.states is not None:
            stats = self.model.collect(self.rows, self.states)
            first = Estimate(self.model.estimate(stats, "mean"), stats)
        else:
            first, reached = self._best_start(n_starts, rng)
        last, trace = em.run(self.step, first, self.weight, self.max_iter, tol, label="EM")
        trace.starts = reached
        return last, trace

    # -- starts ------------------------------------------------------------------------------------------------------
    def _from_shares(self, shares: Array) -> Estimate:
        """Estimate from responsibilities, with successive states taken as independent."""
        S, sequences = self.states.size, self.rows.sequences
        if shares.shape != (self.rows.n, S) or not np.allclose(shares.sum(axis=1), 1.0) or shares.min() < 0:
            raise InputError(
                f"start has shape {shares.shape}; responsibilities are {(self.rows.n, S)}, ≥ 0, and each row sums to 1."
            )
        weight = np.repeat(sequences.weight, sequences.lengths)[:, None]
        follows = np.setdiff1d(np.arange(1, self.rows.n), sequences.begins)
        emissions = self.rows.collect(shares * weight, self.states, 0, self.rows.n)
        stats = HMMStats(
            {"class": self.states, "next": self.states},
            (shares * weight)[sequences.begins].sum(axis=0),
            (shares * weight)[follows - 1].T @ shares[follows],
            (shares * weight).sum(axis=0),
            emissions,
        )
        return self._estimate(stats)

    def _best_start(self, n_starts: int, rng: np.random.Generator) -> tuple[Estimate, list[float]]:
        """Return the best of several short runs on the first rows."""
        sample = replace(self, rows=self.rows.head(HEAD), parts=None)

        def attempt(turn: int) -> tuple[Estimate, em.Trace]:
            first = sample._random_start(*START_KINDS[turn % len(START_KINDS)], rng)
            return em.run(sample.step, first, sample.weight, SHORT, 0.0, warn=False)

        return em.best_of(partial(attempt, turn) for turn in range(max(n_starts, 1)))

    def _random_start(self, width: int, stay: float, rng: np.random.Generator) -> Estimate:
        """Return the emissions of each state from the prior and a random window of rows; random transitions."""
        S, n = self.states.size, self.rows.n
        family = self.rows.family
        M = family.n_components if isinstance(family, Mixture) else 1
        width = max(1, min(width, n // (S * M)))
        begins = rng.choice(n // width, S * M, replace=n < S * M) * width
        rows, codes = (begins[:, None] + np.arange(width)).ravel(), np.repeat(np.arange(S * M), width)
        some = self.rows.take(rows, codes)
        if isinstance(family, Mixture):  # one window for each component of each state
            parts = component_axis(self.states.names, S, M)
            seeds: Any = replace(some, family=family.component).collect_known(parts) * WINDOW_WEIGHT
            mixing = MixtureSums({"class": parts}, np.ones(S * M), seeds)
            seeds = MixtureStats({"class": self.states}, np.full(S, float(M)), mixing)
        else:
            seeds = some.collect_known(self.states) * WINDOW_WEIGHT
        start, transition = (alpha > 0 for alpha in self.model.priors(S))
        moves = transition * (rng.dirichlet(np.ones(S), S) * (1 - stay) + stay * np.eye(S))
        moves = np.where(moves.sum(axis=1, keepdims=True) > 0, moves, transition)
        moves /= moves.sum(axis=1, keepdims=True)
        return Estimate(HMMDensity.of(start / start.sum(), moves, self.rows.family.estimate(seeds, "mean")))


def choose_family(rows: SequenceRows, states: Axis | None, rule: Rule) -> Family:
    """Return the family with its choices made from the first rows; by state, if all of their states are known."""
    head, family = rows.head(HEAD), rows.family
    known = head.states is not None and (head.states >= 0).all()
    if not known or states is None:
        head, states = replace(head, states=np.zeros(head.n, dtype=np.intp)), Axis.of(1)
        if isinstance(family, Mixture):  # its estimate is made by EM over the sequences
            return replace(family, component=choose_family(replace(rows, family=family.component), None, rule))
        block, members = head.known(states)
        return choose_component(family, collect_checked(family, block, members, ()), (block, members), rule)
    block, members = head.known(states)
    sums = collect_checked(family, block, members, ()).whole()
    return family.choose(sums, (block, members), rule).resolve(sums)
