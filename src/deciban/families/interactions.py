"""Interactions of columns: class × pair counts of levels, which are categories or ranges of numbers.

    N_ab     rows of a class with level a in one column and b in the other, both present
    n_ab     N_ab + α/(L_a·L_b)                            α pseudo-rows, spread over the table; L levels
    p_a      Σ_b n_ab / n,   p_b = Σ_a n_ab / n,           n = Σ n_ab
    q_ab     (n_ab + s·p_a·p_b)/(n + s)                    s pseudo-rows of independence; its marginals are p_a and p_b
    I_ab     log q_ab − log p_a − log p_b                  evidence of the pair beyond that of its columns

P(b|a) = q_ab/p_a sums to one, so Σ_j log p_j plus the interactions of a forest of pairs is a density. The sum over all
pairs is not: with m columns that repeat each other it counts their evidence (m−1) times too often. The interactions are
therefore parts of a calibrated score, with weights ≥ 0, and not of the density of a model. One further part is that of
averaged one-dependence estimators, in which each column in turn is the parent of all others; less Σ_j log p_j it is

    log mean_i exp Σ_{j≠i} I_ij

Counts are sums, and leaving a row out subtracts it from four of them, in its own class.

Reference: Webb, Boughton & Wang, Not so naive Bayes: aggregating one-dependence estimators, Machine Learning 58, 2005.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from deciban.errors import HyperparameterError, InputError, NotAvailableError
from deciban.families import limits
from deciban.families.abilities import HasFoldScores, SeveralParts
from deciban.families.dirichlet import left_over
from deciban.families.protocol import Density, Family, Input, Rule
from deciban.read.arrays import encode_categories
from deciban.read.codes import MISSING
from deciban.read.tables import Columns, Table, dense_numbers
from deciban.statistics import Array, Axis, Members, Ragged, Stats, summed

CACHED_CELLS = 2**15  # positions that are computed at a time


@dataclass(frozen=True)
class Cut:
    """Map of the values of a column to levels: by edges between numbers, or by the names of categories."""

    edges: tuple[float, ...] | None = None  # level of a number: how many edges are at most as large
    names: tuple[Any, ...] = ()  # level of a category: its position; all other categories have the last level
    limit: float | None = None  # numbers of larger absolute value count as missing

    def __post_init__(self) -> None:
        try:
            hash(tuple(self.names))
        except TypeError:
            raise HyperparameterError(f"Cut(names={self.names}): the names of categories must be hashable.") from None
        if self.limit is not None:
            limits.checked(self.limit, "limit")

    @property
    def levels(self) -> int:
        """Number of levels."""
        return len(self.names if self.edges is None else self.edges) + 1

    def codes(self, table: Table, column: int, name: str) -> Array:
        """Return the level of each row in a column of a table, shape (n,); −1 where missing."""
        values = Columns(table, [column])
        if self.edges is not None:
            x = limits.within(dense_numbers(values, [name])[:, 0], self.limit)
            return np.where(np.isnan(x), MISSING, np.searchsorted(self.edges, x, side="right"))
        return encode_categories(values, [name]).on([{name: at for at, name in enumerate(self.names)}])[:, 0]


@dataclass(frozen=True, eq=False, repr=False)
class InteractionStats(Stats):
    """Counts of each pair of levels of each pair of columns."""

    counts: Array = summed("class", "cell", floor=True)  # Σ w


@dataclass(frozen=True, eq=False)
class Interactions(Family[InteractionStats], SeveralParts, HasFoldScores):
    """Pairs of columns, for calibrated scores; an expert beside the families of the columns.

    Parameters
    ----------
    cuts : sequence of Cut
        How each column becomes levels.
    pairs : sequence of (int, int)
        Positions of the columns of each pair that is summed.
    strength : float, default=3.0
        Pseudo-rows of independence.
    pseudo_count : float, default=1.0
        Pseudo-rows that are spread evenly over each table.

    Examples
    --------
    >>> both = Interactions((Cut(names=("no",)), Cut(edges=(0.5,))), ((0, 1),))
    >>> rows = both.encode(Table.of([["no", 1.0], ["yes", 0.0], ["yes", None]]), ["a", "b"])
    >>> rows.tolist()
    [[0, 1], [1, 0], [1, -1]]
    """

    cuts: tuple[Cut, ...]
    pairs: tuple[tuple[int, int], ...]
    _: KW_ONLY
    strength: float = 3.0  # s
    pseudo_count: float = 1.0  # α

    def __post_init__(self) -> None:
        object.__setattr__(self, "cuts", tuple(self.cuts))
        object.__setattr__(self, "pairs", tuple((int(i), int(j)) for i, j in self.pairs))
        D = len(self.cuts)
        if not self.pairs or not all(0 <= i < D and 0 <= j < D and i != j for i, j in self.pairs):
            raise HyperparameterError(f"Interactions(pairs={self.pairs}): give pairs of different columns of {D}.")
        if not (self.strength > 0 and self.pseudo_count > 0):
            raise HyperparameterError("Interactions: strength and pseudo_count must be > 0.")

    def __repr__(self) -> str:
        return f"Interactions({len(self.pairs)} pairs of {len(self.cuts)} columns)"

    @property
    def averaged(self) -> bool:
        """Whether all pairs are summed, so that averaged one-dependence estimators are a part."""
        D = len(self.cuts)
        every = len(self.pairs) > 1 and 2 * len(self.pairs) >= D * (D - 1)
        return every and set(self.pairs) == set(combinations(range(D), 2))

    # -- rows and sums ---------------------------------------------------------------------------------------------
    def encode(self, X: Input, columns: Sequence[str], stats: InteractionStats | None = None) -> Array:
        if isinstance(X, np.ndarray) and X.dtype == np.int16:
            return X
        table, at = (X.table, X.positions) if isinstance(X, Columns) else (Table.of(X), None)
        at = range(table.shape[1]) if at is None else at
        if len(at) != len(self.cuts):
            raise InputError(f"the table has {len(at)} columns, the model {len(self.cuts)}. Give the same columns.")
        codes = [cut.codes(table, j, str(table.columns[j])) for cut, j in zip(self.cuts, at)]
        return np.stack(codes, axis=1).astype(np.int16)

    @property
    def layout(self) -> Layout:
        """Where the counts of each pair stand."""
        return Layout(np.array([cut.levels for cut in self.cuts]), np.array(self.pairs, dtype=np.intp))

    def collect(self, X: Array, members: Members) -> InteractionStats:
        layout = self.layout
        return InteractionStats({"class": members.classes, "cell": layout.axis}, layout.counts(X, members))

    def estimate(self, stats: InteractionStats, rule: Rule) -> InteractionDensity:
        # the same under every rule: experts enter calibrated scores only
        return InteractionDensity(self.layout.levels, self.layout.pairs, self._table(stats.counts.T))

    def leave_one_out(
        self, stats: InteractionStats, X: Array, members: Members, rule: Rule, density: Density | None = None
    ) -> Array:
        return self.layout.one_dependence(self._left_out(stats.counts, self.layout.positions(X), members, density))

    def left_out_parts(
        self, stats: InteractionStats, X: Array, members: Members, rule: Rule, density: Density | None = None
    ) -> list[Array]:
        return self._parts(self._left_out(stats.counts, self.layout.positions(X), members, density))

    def fold_scores(
        self, stats: InteractionStats, X: Array, members: Members, fold: Array, rule: Rule
    ) -> Iterator[list[Array]]:
        layout, K, F = self.layout, members.K, int(fold.max()) + 1
        of_fold = layout.counts(X, Members.hard(members.own_codes() * F + fold, K * F, members.weight))
        others, cells = stats.counts[:, None] - of_fold.reshape(K, F, -1), layout.positions(X)
        for f in range(F):
            yield self._parts(self._left_out(others[:, f], cells, members, None, np.flatnonzero(fold != f)))

    def part_scores(self, density: InteractionDensity, X: Array) -> list[Array]:
        return self._parts(density.pair_scores(X))

    @property
    def part_columns(self) -> list[tuple[int, ...]]:
        """Positions of the columns of each part: those of each pair, then all for averaged one-dependence."""
        return [*self.pairs, *([tuple(range(len(self.cuts)))] if self.averaged else [])]

    def among(self, stats: InteractionStats, kept: Sequence[int]) -> tuple[Interactions, InteractionStats]:
        """Keep some of the pairs.

        Parameters
        ----------
        stats : InteractionStats
            Sums of the rows of each class.
        kept : sequence of int
            Positions of the pairs to keep.

        Returns
        -------
        family : Interactions
            The family of these pairs.
        stats : InteractionStats
            Their sums.
        """
        return replace(self, pairs=tuple(self.pairs[p] for p in kept)), stats.select("feature", np.array(kept))

    def restricted(self, stats: InteractionStats, features: Array) -> tuple[Interactions, InteractionStats] | None:
        place = {int(j): at for at, j in enumerate(features)}
        kept = [p for p, (i, j) in enumerate(self.pairs) if i in place and j in place]
        if not kept:
            return None
        family, sums = self.among(stats, kept)
        pairs = [tuple(sorted((place[i], place[j]))) for i, j in family.pairs]
        if any((place[i] < place[j]) != (i < j) for i, j in family.pairs):
            return None  # the order of the columns, and so of the cells, changes
        return replace(family, cuts=tuple(self.cuts[j] for j in features), pairs=tuple(pairs)), sums  # type: ignore[arg-type]

    # -- internals ------------------------------------------------------------------------------------------------
    def _parts(self, pairs: Array) -> list[Array]:
        """Return scores of pairs (P, n, K) and of averaged one-dependence estimators, shape (n, K) each."""
        return [*pairs, self.layout.one_dependence(pairs)] if self.averaged else list(pairs)

    def _left_out(
        self, sums: Array, cells: Array, members: Members, density: Density | None, learnt: Array | None = None
    ) -> Array:
        """Return the interactions of each row by the sums without it, shape (P, n, K): its own class differs.

        `sums` (K, M) hold the rows `learnt`, by default all; other rows are scored by the unchanged sums.
        `cells` (P, n) are the positions of the rows' cells.
        """
        layout, counts = self.layout, sums.T
        table = density.table if isinstance(density, InteractionDensity) else self._table(counts)
        scores = _of_cells(table, cells)
        rows = np.arange(len(members)) if learnt is None else learnt
        codes, at = members.own_codes()[rows], cells[:, rows]
        if members.weight is None:  # the same change for all rows of one class and cell
            less = layout.interactions(counts, self.strength, self.pseudo_count, 1.0)
            own = np.concatenate([less, np.zeros((1, members.K))])[at, codes]
        else:
            tables = counts, *layout.marginals(counts)
            left = [left_over(table[at, codes], members.weight[rows]) for table in tables]
            each = _interaction(left, [share[at] for share in layout.shares], self.strength, self.pseudo_count)
            own = np.where(at >= 0, each, 0.0)
        scores[:, rows, codes] = own
        return scores

    def _table(self, counts: Array) -> Array:
        """Return I of each cell, shape (M, K), from counts of this shape."""
        return self.layout.interactions(counts, self.strength, self.pseudo_count)


@dataclass(frozen=True, eq=False)
class InteractionDensity(Density):
    """Interactions of P pairs of columns with M cells in all, K classes."""

    levels: Array  # (D,) number of levels of each column
    pairs: Array  # (P, 2) columns of each pair
    table: Array  # (M, K) I_ab

    @property
    def K(self) -> int:
        return int(self.table.shape[1])

    @property
    def layout(self) -> Layout:
        """Where the cells of each pair stand."""
        return Layout(self.levels, self.pairs)

    def pair_scores(self, X: Array) -> Array:
        """Return the interaction of each pair, shape (P, n, K); 0 where a value is missing."""
        return _of_cells(self.table, self.layout.positions(X))

    def log_density(self, X: Array) -> Array:
        """Return the evidence of averaged one-dependence estimators beyond that of the columns; not a density."""
        return self.layout.one_dependence(self.pair_scores(X))

    def sample(self, codes: Array, rng: np.random.Generator) -> Array:
        """Refuse: rows are drawn from the families of the columns."""
        raise NotAvailableError(
            "interactions are evidence beside the densities of a model: no rows are drawn from them."
        )


@dataclass(frozen=True, eq=False)
class Layout:
    """Positions of the cells of P pairs of columns on one axis: pair by pair, the levels of its first column outer."""

    levels: Array  # (D,)
    pairs: Array  # (P, 2)

    @property
    def sizes(self) -> Array:
        """Cells of each pair, shape (P,)."""
        return np.asarray(self.levels[self.pairs].prod(axis=1))

    @property
    def starts(self) -> Array:
        """Position of the first cell of each pair, shape (P,)."""
        return np.asarray(np.cumsum(self.sizes) - self.sizes)

    @property
    def cells(self) -> int:
        """Number of cells in all."""
        return int(self.sizes.sum())

    @property
    def axis(self) -> Ragged:
        """The axis of the counts."""
        return Ragged(tuple(Axis.of(int(size)) for size in self.sizes))

    @property
    def shares(self) -> tuple[Array, Array]:
        """1/L_a and 1/L_b of the pair of each cell, shape (M,) each."""
        each = np.repeat(1.0 / self.levels[self.pairs], self.sizes, axis=0)
        return each[:, 0], each[:, 1]

    def pair_codes(self, X: Array, pair: Array) -> Array:
        """Return the cell of each row within a pair, shape (n,); below 0 where a value is missing."""
        a, b = X[:, pair[0]].astype(np.intp), X[:, pair[1]]
        return np.where(b < 0, MISSING, a * self.levels[pair[1]] + b)

    def counts(self, X: Array, members: Members) -> Array:
        """Return Σ w per class and cell, shape (K, M)."""
        counts = np.zeros((members.K, self.cells))
        gaps = (X < 0).any()
        for pair, start, size in zip(self.pairs, self.starts, self.sizes):
            cells = self.pair_codes(X, pair)
            seen = cells >= 0 if gaps else slice(None)
            counts[:, start : start + size] = _counted(cells[seen], members, seen, int(size))
        return counts

    def positions(self, X: Array) -> Array:
        """Return the position of each row's cell on the axis, shape (P, n); −1 where a value is missing."""
        found = np.empty((len(self.pairs), len(X)), dtype=np.intp)
        columns, (one, two) = X.T.astype(np.intp), self.pairs.T
        gaps, levels, starts = columns.min(initial=0) < 0, self.levels[two][:, None], self.starts[:, None]
        step = max(1, CACHED_CELLS // max(1, len(self.pairs)))
        for at in range(0, len(X), step):
            rows, cells = columns[:, at : at + step], found[:, at : at + step]
            first, second = rows[one], rows[two]
            np.multiply(first, levels, out=cells)
            cells += second
            cells += starts
            if gaps:
                cells[(first < 0) | (second < 0)] = MISSING
        return found

    def marginals(self, counts: Array) -> tuple[Array, Array, Array]:
        """Return, for each cell of counts (M, K), the sum of its row, of its column and of its table."""
        first, second, totals = np.empty_like(counts), np.empty_like(counts), np.empty_like(counts)
        for (one, two), start, size in zip(self.pairs, self.starts, self.sizes):
            shape, cells = (self.levels[one], self.levels[two], counts.shape[1]), slice(start, start + size)
            table = counts[cells].reshape(shape)
            first.reshape(-1, shape[2])[cells] = np.repeat(table.sum(axis=1), shape[1], axis=0)
            second.reshape(-1, shape[2])[cells] = np.tile(table.sum(axis=0), (shape[0], 1))
            totals[cells] = table.sum(axis=(0, 1))
        return first, second, totals

    def interactions(self, counts: Array, strength: float, pseudo_count: float, less: float = 0.0) -> Array:
        """Return I of each cell from counts (M, K), with `less` subtracted from the count of the cell itself."""
        tables = counts, *self.marginals(counts)
        left = [left_over(table, less) for table in tables] if less else tables
        return _interaction(left, [share[:, None] for share in self.shares], strength, pseudo_count)

    def one_dependence(self, pairs: Array) -> Array:
        """Return log mean_i exp Σ_{j≠i} I_ij of interactions (P, n, K), shape (n, K)."""
        of_parent = np.zeros((len(self.levels), *pairs.shape[1:]))
        for (one, two), scores in zip(self.pairs, pairs):
            of_parent[one] += scores
            of_parent[two] += scores
        most = of_parent.max(axis=0)
        return np.asarray(np.log(np.mean(np.exp(of_parent - most), axis=0)) + most)


def _of_cells(table: Array, cells: Array) -> Array:
    """Return the values (…, K) of cells, by their positions in a table (M, K); 0 for position −1."""
    if cells.min(initial=0) < 0:
        table = np.concatenate([table, np.zeros((1, table.shape[1]))])  # position −1 is the last
    return table.take(cells, axis=0)


def _interaction(counts: Sequence[Array], shares: Sequence[Array], strength: float, alpha: float) -> Array:
    """Return I_ab from the counts of a cell, its row, its column and its table, and from 1/L_a and 1/L_b."""
    (cell, first, second, n), (share_a, share_b) = counts, shares
    total = n + alpha
    independent = (first + alpha * share_a) * (second + alpha * share_b) / total**2
    joint = (cell + alpha * share_a * share_b + strength * independent) / (total + strength)
    return np.asarray(np.log(joint / independent))


def _counted(cells: Array, members: Members, rows: Array | slice, size: int) -> Array:
    """Return Σ w per class and cell, shape (K, size), of the cells of some of the rows."""
    if members.shares is not None:
        return np.stack([np.bincount(cells, shares, size) for shares in members.shares[rows].T])
    weight = None if members.weight is None else members.weight[rows]
    flat = np.bincount(members.codes[rows] * size + cells, weight, members.K * size)
    return flat.reshape(members.K, size).astype(float)
