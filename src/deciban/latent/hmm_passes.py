"""Forward and backward over sequences of any length in bounded memory: expected sums, posteriors, likelihoods, paths.

Whole sequences that fit one piece are done at once. A long one is cut: the forward pass keeps the message at each cut,
the backward pass makes a piece's messages anew from there. So a sequence of any length needs one piece's room and one
message for each cut. Parts run on threads; what is added up is added in the order of the parts.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from contextvars import copy_context
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from deciban.errors import DecibanError
from deciban.kernels import forced
from deciban.kernels.chains import Messages, Paths, piece_rows, worth_compiling
from deciban.kernels.choice import compiled as worth
from deciban.kernels.choice import one_thread
from deciban.latent.hmm import HMMDensity, HMMStats
from deciban.latent.sequences import Group, Rows
from deciban.statistics import Array, Axis

Take = Callable[[int, int, Array], None]  # what is done with the posteriors of rows lo … hi


@dataclass(frozen=True, eq=False)
class Passes:
    """One model over one set of sequences."""

    density: HMMDensity
    rows: Rows
    times: int = 1  # how often passes over these rows will be made: many are worth the compiler
    threads: int = 1

    # -- what can be asked -------------------------------------------------------------------------------------------
    def expected(self, states: Axis) -> tuple[HMMStats, float]:
        """The sums that complete data would have had on average, and the log-likelihood: Baum and Welch's E-step."""
        parts = self._each(lambda groups: self._expected(groups, states))
        stats, evidence = parts[0]
        for more, found in parts[1:]:
            stats, evidence = stats + more, evidence + found
        return stats, evidence

    def posteriors(self) -> Array:
        """(n, S) the probability of every state at every step, given the whole sequence."""
        out = np.empty((self.rows.n, self.density.S))

        def keep(lo: int, hi: int, shares: Array) -> None:
            out[lo:hi] = shares

        def act(groups: list[Group]) -> None:
            chain = _Chain(self, lookup=False)
            for group in groups:
                chain.add(group, np.ones(len(group.ends)), keep)

        self._each(act)
        return out

    def likelihoods(self) -> Array:
        """(B,) the log-likelihood of every sequence; −inf where it is impossible."""

        def act(groups: list[Group]) -> list[Array]:
            chain = _Chain(self)
            return [chain.evidence(group) for group in groups]

        return np.concatenate([found for part in self._each(act) for found in part])

    def paths(self) -> Array:
        """(n,) the most probable states of every sequence as a whole: Viterbi's."""
        out = np.empty(self.rows.n, dtype=np.intp)

        def act(groups: list[Group]) -> None:
            best = _Best(self)
            for group in groups:
                best.write(group, out)

        self._each(act)
        return out

    # -- how ---------------------------------------------------------------------------------------------------------
    @cached_property
    def compiled(self) -> bool:
        """Whether kernels run, or their twins."""
        return worth_compiling(self.rows.n * self.times)

    @cached_property
    def table(self) -> tuple[Array, Array]:
        """Scores of every category, where rows are one column of them."""
        return self.rows.table(self.density.emissions)

    def impossible(self, row: int) -> DecibanError:
        """The error for a step that no state explains."""
        return DecibanError(
            f"{self.rows.sequences.where(row)} is impossible under the model: no state that can be reached there gives "
            "it a probability above zero. Use rule 'mean', or pseudo-counts > 0; score_samples says -inf."
        )

    def _each(self, act: Callable[[list[Group]], Any]) -> list[Any]:
        parts = self.rows.sequences.parts(piece_rows(self.density.S))
        if self.rows.symbols is not None:
            _ = self.table  # once, not in every thread
        # a piece is small, all of them together are not: the family's kernels are chosen by the whole
        whole = forced("numba") if worth(self.rows.n * self.density.S) else nullcontext()
        if self.threads == 1 or len(parts) == 1:
            with whole, one_thread(0):
                return [act(part) for part in parts]
        with ThreadPoolExecutor(self.threads) as pool, whole, one_thread(0):
            return [done.result() for done in [pool.submit(copy_context().run, act, part) for part in parts]]

    def _expected(self, groups: list[Group], states: Axis) -> tuple[HMMStats, float]:
        chain, visited = _Chain(self), np.zeros(self.density.S)
        sums: list[Any] = []

        def take(lo: int, hi: int, shares: Array) -> None:
            nonlocal visited
            visited = visited + shares.sum(axis=0)
            found = self.rows.collect(shares, states, lo, hi)
            sums[:] = [sums[0] + found] if sums else [found]

        weight, evidence = self.rows.sequences.weight, 0.0
        for group in groups:
            own = weight[group.first : group.first + len(group.ends)]
            evidence += float(own @ chain.add(group, own, take))
        visits, joint, first = chain.found()
        if chain.lookup:
            visited, sums = visits.sum(axis=0), [self.rows.collect_visits(visits, states)]
        return HMMStats({"class": states, "next": states}, first, joint, visited, sums[0]), evidence


class _Chain:
    """Messages in plain numbers, and in logarithms for the groups that need them; sums over the groups of one part."""

    def __init__(self, passes: Passes, lookup: bool = True) -> None:
        self.passes, self.rows, density = passes, passes.rows, passes.density
        self.lookup = lookup and self.rows.symbols is not None
        kinds = (True, False) if passes.compiled else (False,)
        parameters = density.log_start, density.log_transitions, passes.compiled
        self.kinds = [Messages(*parameters, scaled) for scaled in kinds]
        self.tables = [kind.table(*passes.table) for kind in self.kinds] if self.lookup else []
        self.sums = [kind.sums(len(passes.table[0]) if self.lookup else 0) for kind in self.kinds]
        self.steps = np.arange(piece_rows(density.S))
        self.at_hand: Any = None  # the piece that was scored last, and what its scores were

    def found(self) -> tuple[Array, Array, Array]:
        """Visits per category, transitions and starts."""
        each = [kind.crop(*sums) for kind, sums in zip(self.kinds, self.sums)]
        visits, joint, first = (sum(parts[1:], parts[0]) for parts in zip(*each))
        return visits, joint, first

    def piece(self, at: int, lo: int, hi: int) -> tuple[Array, Any]:
        """Places of the rows in a table, and the table."""
        if self.lookup:
            symbols: Any = self.rows.symbols
            return symbols.index[lo:hi], self.tables[at]
        if self.at_hand is None or self.at_hand[:2] != (at, lo):
            scores = self.rows.scores(self.passes.density.emissions, lo, hi)
            self.at_hand = at, lo, self.kinds[at].table(*scores)
        return self.steps[: hi - lo], self.at_hand[2]

    def forward(self, at: int, group: Group, cuts: list[Array] | None = None) -> tuple[Array, int]:
        """Log-likelihoods of the group's sequences; the first row that cannot be explained, or −1."""
        kind, evidence = self.kinds[at], np.zeros(len(group.ends))
        carry = kind.carry()
        for number, (lo, hi) in enumerate(group.pieces):
            if cuts is not None:
                cuts.append(carry.copy())
            index, table = self.piece(at, lo, hi)
            ends = _ends(group, number)
            done = kind.forward(index, table, ends, number == 0, carry, evidence)
            if done < (len(ends) if kind.scaled else hi - lo):
                return evidence, lo + done
        return evidence, -1

    def evidence(self, group: Group) -> Array:
        """(B,) log-likelihoods."""
        for at in range(len(self.kinds)):
            evidence, bad = self.forward(at, group)
            if bad < 0:
                break
        return evidence

    def add(self, group: Group, weight: Array, take: Take) -> Array:
        """Add a group's sums, hand out its posteriors where there is no table; (B,) log-likelihoods."""
        for at in range(len(self.kinds)):
            cuts: list[Array] = []
            evidence, bad = self.forward(at, group, cuts)
            if bad < 0:
                self.backward(at, group, weight, cuts, take)
                return evidence
        raise self.passes.impossible(bad)

    def backward(self, at: int, group: Group, weight: Array, cuts: list[Array], take: Take) -> None:
        """From the last piece to the first; all but the last, still at hand, are made anew."""
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
                take(lo, hi, own[:, : kind.S])


class _Best:
    """Best paths, a group at a time."""

    def __init__(self, passes: Passes) -> None:
        self.passes, self.rows, density = passes, passes.rows, passes.density
        self.kind = Paths(density.log_start, density.log_transitions, passes.compiled)
        self.steps = np.arange(piece_rows(density.S))

    def piece(self, lo: int, hi: int) -> tuple[Array, Array]:
        """Places of the rows in a table of log densities, and the table."""
        symbols = self.rows.symbols
        if symbols is not None:
            return symbols.index[lo:hi], self.passes.table[0]
        return self.steps[: hi - lo], self.rows.scores(self.passes.density.emissions, lo, hi)[0]

    def write(self, group: Group, out: Array) -> None:
        """The paths of a group's sequences."""
        carry, final = np.zeros(self.passes.density.S), len(group.pieces) - 1
        cuts: list[Array] = []
        for number, (lo, hi) in enumerate(group.pieces):
            cuts.append(carry.copy())
            last = self.kind.best(*self.piece(lo, hi), _ends(group, number), number == 0, carry)
            if (last < 0).any():
                raise self.passes.impossible(_Chain(self.passes).forward(-1, group)[1])
            carry -= carry.max()  # a path of millions of steps keeps its digits
        for number in range(final, -1, -1):
            (lo, hi), ends = group.pieces[number], _ends(group, number)
            if number < final:
                self.kind.best(*self.piece(lo, hi), ends, number == 0, cuts[number])
            last = np.array([self.kind.follow(ends, last, out[lo:hi])])  # the state before is the last one there


def _ends(group: Group, number: int) -> Array:
    """Where sequences end within a piece, counted from its first row."""
    lo, hi = group.pieces[number]
    return group.ends if len(group.pieces) == 1 else np.array([hi - lo])
