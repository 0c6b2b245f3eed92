"""Sequences laid end to end: where each begins, how much it counts, and pieces of bounded size to work on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from deciban.errors import InputError, WeightError
from deciban.families.fitted import collect_checked
from deciban.families.protocol import Family
from deciban.kernels.choice import readable
from deciban.read.categories import Codes, refuse_negative
from deciban.statistics import Array, Axis, Members

PARTS = 16  # into which the groups are dealt, for as many threads at most; sums are added in their order
PART_ROWS = 2**15  # fewer rows are not worth a part of their own


@dataclass(frozen=True)
class Group:
    """Whole sequences that fit one piece, or one long sequence cut into several."""

    first: int  # the number of its first sequence
    ends: Array  # (B,) rows where its sequences end, counted from `pieces[0][0]`
    pieces: tuple[tuple[int, int], ...]  # consecutive (from, to) rows


@dataclass(frozen=True, eq=False)
class Sequences:
    """B sequences of n rows in all.

    >>> Sequences.of([3, 2], 5).begins
    array([0, 3])
    """

    ends: Array  # (B,)
    weight: Array  # (B,)

    @classmethod
    def of(cls, lengths: Any, n: int, weight: Any = None) -> Sequences:
        """Checked: lengths are at least 1 and sum to n; without lengths all rows are one sequence."""
        if n == 0:
            raise InputError("there are no rows: a sequence has at least one step.")
        each = np.asarray([n] if lengths is None else lengths)
        if each.ndim != 1 or each.dtype.kind not in "iu":
            raise InputError(f"lengths={lengths!r} must be whole numbers, one for each sequence.")
        if len(each) == 0 or each.min() < 1:
            empty = int(np.argmax(each < 1)) if len(each) else 0
            raise InputError(f"sequence {empty} is empty: every sequence has at least one step. Leave it out.")
        if each.sum() != n:
            raise InputError(f"lengths sum to {each.sum()}, but X has {n} rows. Give the length of every sequence.")
        return cls(np.cumsum(each, dtype=np.int64), _weights(weight, len(each)))

    @property
    def n(self) -> int:
        return int(self.ends[-1]) if len(self.ends) else 0

    @property
    def begins(self) -> Array:
        """(B,) the first row of each."""
        return np.r_[0, self.ends[:-1]]

    @property
    def lengths(self) -> Array:
        """(B,) how many rows each has."""
        return np.diff(self.ends, prepend=0)

    @property
    def weighted(self) -> bool:
        """Whether some sequence counts other than once."""
        return bool((self.weight != 1).any())

    def where(self, row: int) -> str:
        """A row in words: step 3 of sequence 7 (row 105)."""
        b = int(np.searchsorted(self.ends, row, side="right"))
        return f"step {row - int(self.begins[b])} of sequence {b} (row {row})"

    def head(self, most: int) -> Sequences:
        """The first sequences, cut off after this many rows."""
        if self.n <= most:
            return self
        count = int(np.searchsorted(self.ends, most)) + 1
        return Sequences(np.minimum(self.ends[:count], most), self.weight[:count])

    def parts(self, rows: int) -> list[list[Group]]:
        """Groups of pieces of at most so many rows, dealt into parts by position alone, whatever the threads."""
        groups = self._groups(rows)
        count = max(1, min(PARTS, self.n // PART_ROWS, len(groups)))
        cuts = np.linspace(0, self.n, count + 1)[1:-1]
        starts = np.searchsorted([group.pieces[0][0] for group in groups], cuts)
        edges = [0, *starts.tolist(), len(groups)]
        return [groups[a:b] for a, b in pairwise(edges) if b > a]

    def _groups(self, rows: int) -> list[Group]:
        if rows in self._kept:
            return self._kept[rows]
        groups, b, begin = [], 0, 0
        while b < len(self.ends):
            stop = max(b + 1, int(np.searchsorted(self.ends, begin + rows, side="right")))
            end = int(self.ends[stop - 1])
            cuts = [*range(begin, end, rows), end]
            groups.append(Group(b, self.ends[b:stop] - begin, tuple(pairwise(cuts))))
            b, begin = stop, end
        self._kept[rows] = groups
        return groups

    @cached_property
    def _kept(self) -> dict[int, list[Group]]:
        return {}


def join(X: Any, lengths: Any) -> tuple[Any, Any]:
    """A list of sequences end to end, with their lengths; anything else as it is.

    >>> join([[1, 2, 3], [4]], None)
    ([1, 2, 3, 4], [3, 1])
    """
    if lengths is not None or not is_list_of_sequences(X):
        return X, lengths
    sizes = [x.shape[0] if hasattr(x, "shape") else len(x) for x in X]
    if all(sp.issparse(x) for x in X):
        return sp.vstack(X, format="csr"), sizes
    if all(isinstance(x, list | tuple) for x in X):
        return [step for x in X for step in x], sizes
    arrays = [np.asarray(x) for x in X]
    if len({array.ndim for array in arrays}) > 1 or len({array.shape[1:] for array in arrays}) > 1:
        raise InputError(f"the sequences differ in columns: {sorted({array.shape[1:] for array in arrays})}.")
    return np.concatenate(arrays), sizes


def is_list_of_sequences(X: Any) -> bool:
    """Whether X is a list whose items are sequences themselves; a name is not a sequence."""
    if not isinstance(X, list | tuple) or not X:
        return False
    return sp.issparse(X[0]) or (isinstance(X[0], Sequence | np.ndarray) and not isinstance(X[0], str | bytes))


def _weights(weight: Any, B: int) -> Array:
    if weight is None:
        return np.ones(B)
    weight = np.asarray(weight, dtype=float)
    if weight.shape != (B,) or not (np.isfinite(weight) & (weight >= 0)).all() or not weight.any():
        raise WeightError(f"sequence_weight must be {B} finite numbers ≥ 0, not all 0: one for each sequence.")
    return weight


# -- hmm rows ----------
# What is seen at each step: log densities of rows a piece at a time, and the sums of rows shared out among states.
#
# Where rows are one column of categories, each category is scored once and looked up at every step; the expected visits
# are then counted per category, which is all that the family's sums need.

NATIVE = ("int64", "int32", "int16", "int8", "uint8")
MOST_SYMBOLS = 2**18  # a longer table of probabilities would leave the cache
BLOCK = 2**16  # rows looked at together


@dataclass(frozen=True, eq=False)
class Symbols:
    """One column of categories: the place of each row in a table, and the rows that occur."""

    index: Array  # (n,)  −1 is missing
    places: Array  # (P,)  those that occur
    size: int
    rows: Codes  # (P, 1)  a row for each

    def spread(self, values: Array) -> Array:
        """(size + 1, …) values on their places; 0 elsewhere and, at the end, for missing."""
        table = np.zeros((self.size + 1, *values.shape[1:]))
        table[self.places] = values
        return table


@dataclass(frozen=True, eq=False)
class Rows:
    """The encoded rows of sequences, and what is known of them."""

    family: Family
    X: Any
    sequences: Sequences
    weight: Array | None = None  # (n,)  how much each observation counts; 0 makes a gap of it
    states: Array | None = None  # (n,)  the state where it is known, else −1

    @property
    def n(self) -> int:
        return self.sequences.n

    def head(self, most: int) -> Rows:
        """The first rows."""
        if self.n <= most:
            return self
        weight, states = (None if part is None else part[:most] for part in (self.weight, self.states))
        return Rows(self.family, self.X[:most], self.sequences.head(most), weight, states)

    def pick(self, at: Array, codes: Array) -> Rows:
        """Some rows whose states are taken for known."""
        weight = None if self.weight is None else self.weight[at]
        return Rows(self.family, self.X[at], Sequences.of(None, len(at)), weight, codes)

    def check(self) -> None:
        """Let the family name the first value it cannot learn; rows that are all gaps teach nothing."""
        some = False
        for lo in range(0, self.n, BLOCK):
            block = self.X[lo : lo + BLOCK]
            absent = _absent(block)
            some = some or absent is None or not absent.all()
            self.family.check(block if absent is None else block[~absent], (), learning=True)
        if not some or (self.weight is not None and not self.weight.any()):
            raise InputError("every row is missing, so there is nothing to learn from. Give rows with values.")

    # -- scores ----------------------------------------------------------------------------------------------------
    @cached_property
    def symbols(self) -> Symbols | None:
        """The table of categories, where one serves."""
        X = self.X
        if not isinstance(X, Codes) or X.shape[1] != 1 or self.weight is not None or self.states is not None:
            return None
        refuse_negative(X, ())
        if int(X.values.max(initial=0)) >= max(self.n, 4096):
            X = X.named()
        size = int(X.values.max(initial=-1)) + 1
        if size > MOST_SYMBOLS:
            return None
        index = readable(X.values[:, 0], None if X.dtype.name in NATIVE else np.int64)
        seen = np.zeros(size + 1, dtype=bool)
        for lo in range(0, self.n, BLOCK):
            seen[index[lo : lo + BLOCK]] = True  # −1, missing, falls on the last
        places = np.flatnonzero(seen[:-1])
        return Symbols(index, places, size, Codes(places[:, None], X.names))

    def table(self, emissions: Any) -> tuple[Array, Array]:
        """Log densities (M, S) and their base (M,) of every category."""
        symbols: Any = self.symbols
        logs, base = _scores(emissions, symbols.rows)
        return symbols.spread(logs), symbols.spread(base)

    def scores(self, emissions: Any, lo: int, hi: int) -> tuple[Array, Array]:
        """Log densities (hi − lo, S) and their base, tempered by the rows' weights; states known to be others −inf."""
        X = self.X[lo:hi]
        absent = _absent(X)
        if absent is None:
            logs, base = _scores(emissions, X)
        else:
            logs, base = np.zeros((hi - lo, emissions.K)), np.zeros(hi - lo)
            if not absent.all():
                logs[~absent], base[~absent] = _scores(emissions, X[~absent])
        if np.isnan(logs).any():
            self.family.check(X, ())
            raise InputError(f"{self.sequences.where(lo)} and following cannot be scored: a score is not a number.")
        if self.weight is not None:
            w = self.weight[lo:hi]
            logs, base = np.where(w[:, None] > 0, logs, 0.0) * w[:, None], base * w
        if self.states is not None:
            known = self.states[lo:hi]
            logs[(known >= 0)[:, None] & (np.arange(emissions.K) != known[:, None])] = -np.inf
        return logs, base

    # -- sums ------------------------------------------------------------------------------------------------------
    def collect(self, shares: Array, states: Axis, lo: int, hi: int) -> Any:
        """The family's sums of some rows, shared out among the states."""
        X = self.X[lo:hi]
        if self.weight is not None:
            shares = shares * self.weight[lo:hi, None]
        absent = _absent(X)
        if absent is not None:
            X, shares = X[~absent], shares[~absent]
        return self.family.collect(X, Members.soft(shares, states))

    def known(self, states: Axis) -> tuple[Any, Members]:
        """The rows whose states are known and that have some value, and who they are."""
        codes: Any = self.states
        kept = codes >= 0
        absent = _absent(self.X)
        if absent is not None:
            kept &= ~absent
        weight = self.weight
        if self.sequences.weighted:
            own = np.repeat(self.sequences.weight, self.sequences.lengths)
            weight = own if weight is None else own * weight
        if kept.all():
            return self.X, Members.hard(codes, states, weight)
        return self.X[np.flatnonzero(kept)], Members.hard(codes[kept], states, None if weight is None else weight[kept])

    def collect_known(self, states: Axis) -> Any:
        """The family's sums of the rows whose states are known."""
        return collect_checked(self.family, *self.known(states), ())

    def collect_visits(self, visits: Array, states: Axis) -> Any:
        """The family's sums from the expected visits (M, S) of every category."""
        symbols: Any = self.symbols
        return self.family.collect(symbols.rows, Members.soft(visits[symbols.places], states))


def _scores(emissions: Any, X: Any) -> tuple[Array, Array]:
    with np.errstate(invalid="ignore", over="ignore"):
        return emissions.log_density(X), np.broadcast_to(emissions.log_base(X), X.shape[:1]).astype(float)


def _absent(X: Any) -> Array | None:
    """Which rows have no value at all, or None where every row has some."""
    if isinstance(X, Codes):
        gaps = X.values < 0
    elif isinstance(X, np.ndarray) and X.dtype.kind == "f":
        with np.errstate(invalid="ignore", over="ignore"):
            if not np.isnan(X.sum()):  # the quick way to see that nothing is missing
                return None
        gaps = np.isnan(X)
    else:
        return None
    whole: Array = np.asarray(gaps.all(axis=1)) if X.shape[1] else np.zeros(len(X), dtype=bool)
    return whole if whole.any() else None
