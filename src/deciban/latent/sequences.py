"""Sequences laid end to end: their limits and weights, and the encoded rows observed at each step.

Sequences come as one table with `lengths`, or as a list of sequences; states are known, unknown or partly known. Passes
over them work on pieces of bounded size. If rows are one column of categories, each category is scored once and looked
up at every step, and expected visits are counted per category, which is all that the family's sums need.

Words that are many and different are read as themselves, or by their ending and shape.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeAlias

import narwhals as nw
import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from deciban.errors import InputError, WeightError, shortlist
from deciban.families.categorical import Categorical
from deciban.families.protocol import Density, Family, Rows
from deciban.kernels.choice import readable
from deciban.latent.components import collect_under
from deciban.read.arrays import refuse_negative, row_weights
from deciban.read.codes import Codes, encode_labels
from deciban.read.tables import in_memory
from deciban.statistics import Array, Axis, Members, Stats
from deciban.statistics.members import collect_checked
from deciban.text.word_shapes import MANY_WORDS, WordFeatures

SequenceInput: TypeAlias = ArrayLike | Sequence[ArrayLike]  # one table, or a list of sequences

PARTS = 16  # parts for as many threads at most; sums are added in their order
PART_ROWS = 2**15  # least number of rows in a part
NATIVE = ("int64", "int32", "int16", "int8", "uint8")  # types of codes that kernels read
MOST_SYMBOLS = 2**18  # categories up to which a table of probabilities stays in the cache
BLOCK = 2**16  # rows checked together


@dataclass(frozen=True)
class Group:
    """Whole sequences that fit one piece, or one long sequence cut into several pieces."""

    first: int  # number of its first sequence
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
    def of(cls, lengths: ArrayLike | None, n: int, weight: ArrayLike | None = None) -> Sequences:
        """Check that lengths are at least 1 and sum to n; without lengths all rows are one sequence."""
        if n == 0:
            raise InputError("there are no rows; a sequence has at least one step.")
        each = np.asarray([n] if lengths is None else lengths)
        if each.ndim != 1 or each.dtype.kind not in "iu":
            raise InputError(f"lengths={lengths!r} must be whole numbers, one for each sequence.")
        if len(each) == 0 or each.min() < 1:
            empty = int(np.argmax(each < 1)) if len(each) else 0
            raise InputError(f"sequence {empty} is empty; every sequence has at least one step. Leave it out.")
        if each.sum() != n:
            raise InputError(f"lengths sum to {each.sum()}, but X has {n} rows. Give the length of every sequence.")
        return cls(np.cumsum(each, dtype=np.int64), _weights(weight, len(each)))

    @property
    def n(self) -> int:
        return int(self.ends[-1]) if len(self.ends) else 0

    @property
    def begins(self) -> Array:
        """First row of each sequence, shape (B,)."""
        return np.r_[0, self.ends[:-1]]

    @property
    def lengths(self) -> Array:
        """Number of rows of each sequence, shape (B,)."""
        return np.diff(self.ends, prepend=0)

    @property
    def weighted(self) -> bool:
        """Whether a sequence has a weight other than 1."""
        return bool((self.weight != 1).any())

    def describe(self, row: int) -> str:
        """Return the position of a row as text: step 3 of sequence 7 (row 105)."""
        b = int(np.searchsorted(self.ends, row, side="right"))
        return f"step {row - int(self.begins[b])} of sequence {b} (row {row})"

    def head(self, most: int) -> Sequences:
        """Return the first sequences, cut off after this many rows."""
        if self.n <= most:
            return self
        count = int(np.searchsorted(self.ends, most)) + 1
        return Sequences(np.minimum(self.ends[:count], most), self.weight[:count])

    def parts(self, size: int) -> list[list[Group]]:
        """Return the groups of pieces of at most `size` rows, divided into parts by position alone."""
        groups = self._groups(size)
        count = max(1, min(PARTS, self.n // PART_ROWS, len(groups)))
        cuts = np.linspace(0, self.n, count + 1)[1:-1]
        starts = np.searchsorted([group.pieces[0][0] for group in groups], cuts)
        edges = [0, *starts.tolist(), len(groups)]
        return [groups[a:b] for a, b in pairwise(edges) if b > a]

    def _groups(self, size: int) -> list[Group]:
        groups, b, begin = [], 0, 0
        while b < len(self.ends):
            stop = max(b + 1, int(np.searchsorted(self.ends, begin + size, side="right")))
            end = int(self.ends[stop - 1])
            cuts = [*range(begin, end, size), end]
            groups.append(Group(b, self.ends[b:stop] - begin, tuple(pairwise(cuts))))
            b, begin = stop, end
        return groups


def _weights(weight: ArrayLike | None, B: int) -> Array:
    if weight is None:
        return np.ones(B)
    weight = np.asarray(weight, dtype=float)
    if weight.shape != (B,) or not (np.isfinite(weight) & (weight >= 0)).all() or not weight.any():
        raise WeightError(f"sequence_weight must be {B} finite numbers ≥ 0, not all 0: one for each sequence.")
    return weight


# -- reading -----------------------------------------------------------------------------------------------------------
def join(given: SequenceInput, lengths: ArrayLike | None) -> tuple[Any, Any]:
    """Concatenate a list of sequences and return their lengths; an iterator is read, other input is returned unchanged.

    >>> join([[1, 2, 3], [4]], None)
    ([1, 2, 3, 4], [3, 1])
    """
    X: Any = in_memory(given)
    if not hasattr(X, "shape") and hasattr(X, "__array__"):
        X = np.asarray(X)
    if isinstance(X, np.ndarray) and X.ndim == 3 and lengths is None:  # sequences of the same length
        return X.reshape(-1, X.shape[2]), [X.shape[1]] * len(X)
    if lengths is not None or not is_list_of_sequences(X):
        return X, lengths
    sizes = [x.shape[0] if hasattr(x, "shape") else len(x) for x in X]
    if all(sp.issparse(x) for x in X):
        return sp.vstack(X, format="csr"), sizes
    if hasattr(X[0], "columns"):
        return nw.concat([nw.from_native(x, eager_only=True) for x in X]).to_native(), sizes
    if all(isinstance(x, list | tuple) for x in X):
        return [step for x in X for step in x], sizes
    arrays = [np.asarray(x) for x in X]
    if len({array.ndim for array in arrays}) > 1 or len({array.shape[1:] for array in arrays}) > 1:
        raise InputError(f"the sequences differ in columns: {sorted({array.shape[1:] for array in arrays})}.")
    return np.concatenate(arrays), sizes


def is_list_of_sequences(X: object) -> bool:
    """Whether X is a list whose items are sequences; a string is not a sequence."""
    if not isinstance(X, list | tuple) or not X:
        return False
    if sp.issparse(X[0]) or (hasattr(X[0], "columns") and hasattr(X[0], "shape")):  # frames
        return True
    return isinstance(X[0], Sequence | np.ndarray) and not isinstance(X[0], str | bytes)


def read_rows(
    family: Family,
    X: SequenceInput,
    lengths: ArrayLike | None,
    y: SequenceInput | None = None,
    sample_weight: ArrayLike | None = None,
    sequence_weight: ArrayLike | None = None,
    stats: Stats | None = None,
) -> tuple[SequenceRows, tuple[Any, ...]]:
    """Encode rows; returns them and the names of the known states. Sequences of weight 0 are left out."""
    table, sizes = join(X, lengths)
    y = in_memory(y)
    block = family.encode(table, (), stats)
    require_columns(block)
    sequences = Sequences.of(sizes, block.shape[0], sequence_weight)
    if y is not None and is_list_of_sequences(y):
        y, sizes = join(y, None)
        if list(sizes) != sequences.lengths.tolist():
            raise InputError("the sequences of y are not as long as those of X. Give one state for each step.")
    weight = row_weights(sample_weight, sequences.n)
    names, states = ((), None) if y is None else read_states(y, sequences.n)
    if not sequences.weight.all():
        kept = np.repeat(sequences.weight > 0, sequences.lengths)
        block, some = block[np.flatnonzero(kept)], sequences.weight > 0
        sequences = Sequences(np.cumsum(sequences.lengths[some]), sequences.weight[some])
        weight = None if weight is None else weight[kept]
        if states is not None:
            used = np.unique(states[kept & (states >= 0)])
            states = np.where(states >= 0, np.searchsorted(used, states), -1)[kept]
            names = tuple(names[at] for at in used)
    return SequenceRows(family, block, sequences, weight, states), names


@dataclass(frozen=True, eq=False)
class SequencesOfPart:
    """Reads the sequences of a part, whose rows with one value in a column are a sequence, by a chosen family."""

    family: Family
    column: str

    def __call__(self, part: Any) -> SequenceRows:
        rows, lengths = runs_of(part, self.column)
        return read_rows(self.family, rows, lengths)[0]


@dataclass(frozen=True)
class EndsOfPart:
    """Returns the first and the last value of a column of a part; none of a part without rows."""

    column: str

    def __call__(self, part: Any) -> tuple[Any, ...]:
        values = nw.from_native(part, eager_only=True)[self.column]
        return (values[0], values[-1]) if len(values) else ()


def runs_of(part: Any, column: str) -> tuple[Any, Array]:
    """Return a frame without a column, and the lengths of the runs of equal values in it."""
    frame = nw.from_native(part, eager_only=True)
    if column not in frame.columns:
        raise InputError(f"the table has no column {column!r}; it has {', '.join(frame.columns)[:300]}.")
    values = frame[column].to_numpy()
    begins = np.flatnonzero(np.r_[True, values[1:] != values[:-1]])
    return frame.drop(column).to_native(), np.diff(np.r_[begins, len(values)])


def check_ends(ends: Sequence[tuple[Any, ...]], names: Sequence[str], column: str) -> None:
    """Refuse a sequence that is in two parts."""
    last: tuple[Any, str] | None = None
    for found, name in zip(ends, names):
        if found and last is not None and found[0] == last[0]:
            raise InputError(
                f"{name}: the sequence {column} = {found[0]} began in {last[1]}.",
                remedy="Divide the rows so that each sequence is in one partition, such as by set_index.",
            )
        last = (found[1], name) if found else last


def are_lengths(y: Any, X: SequenceInput) -> bool:
    """Whether y, which should be the state of each step, can only be the lengths of sequences of one table.

    >>> are_lengths([2, 1], np.array([[0.5], [1.5], [2.5]])), are_lengths([0, 1, 1], np.array([[0.5], [1.5], [2.5]]))
    (True, False)
    """
    if y is None or is_list_of_sequences(y) or not hasattr(X, "shape"):
        return False
    given, n = np.asarray(y), X.shape[0]
    fits = given.ndim == 1 and given.dtype.kind in "iu" and len(given) < n
    return fits and bool((given > 0).all()) and int(given.sum()) == n


def number_of_columns(table: Any) -> int:
    """Return the number of columns of the rows of all sequences; 1 for plain values."""
    if hasattr(table, "shape"):
        return int(table.shape[1]) if len(table.shape) > 1 else 1
    first = next(iter(table), None)
    return len(first) if isinstance(first, Sequence) and not isinstance(first, str | bytes) else 1


def names_of(table: Any) -> list[str] | None:
    """Return the names of the columns of a frame; None of other input, or where a name is no text."""
    frame = nw.from_native(table, eager_only=True, pass_through=True)
    names = list(frame.columns) if isinstance(frame, nw.DataFrame) else []
    return names if names and all(isinstance(name, str) for name in names) else None


def arranged(table: Any, names: list[str]) -> Any:
    """Return a frame with its columns in this order; other input is returned unchanged."""
    given = names_of(table)
    if given is None or given == names:
        return table
    if sorted(given) != sorted(names):
        raise InputError(
            f"the frame has the columns {shortlist(given, 10)}, but the model reads {shortlist(names, 10)}.",
            remedy="Select these.",
        )
    return nw.from_native(table, eager_only=True).select(names).to_native()


def check_columns(table: Any, expected: int, name: str) -> None:
    """Refuse an array with another number of columns than the estimator of this name has learnt."""
    if not isinstance(table, np.ndarray) or (found := number_of_columns(table)) == expected:
        return
    if table.ndim == 1:
        raise InputError(f"X is one-dimensional, but rows have {expected} columns. Reshape your data: one row a step.")
    raise InputError(f"X has {found} features, but {name} is expecting {expected} features as input.")


def require_columns(block: Rows) -> None:
    """Refuse rows without columns."""
    if len(block.shape) > 1 and block.shape[1] == 0:
        raise InputError(f"Found array with 0 feature(s) (shape={block.shape}) while a minimum of 1 is required.")


def read_states(y: SequenceInput, n: int) -> tuple[tuple[Any, ...], Array]:
    """Return the sorted names of the known states, and the code of each step's state, −1 where it is unknown.

    >>> read_states(["b", None, "a"], 3)
    (('a', 'b'), array([ 1, -1,  0]))
    """
    steps: Any = y
    given = np.asarray(y) if hasattr(y, "dtype") or hasattr(y, "__array__") else np.asarray(list(steps), dtype=object)
    if given.shape != (n,):
        raise InputError(
            f"y has shape {given.shape}, but there are {n} steps: give one state for each step, None if unknown. "
            "Lengths are passed by name: fit(X, lengths=…)."
        )
    if given.dtype.kind == "f":
        unknown = np.isnan(given)
    elif given.dtype.kind in "iu":
        unknown = given == -1
    else:
        unknown = np.array([name is None or name != name or (type(name) is int and name == -1) for name in given])
    codes = np.full(n, -1, dtype=np.intp)
    if unknown.all():
        raise InputError("y names no state at all. Leave y out to find the states by EM.")
    names, codes[~unknown] = encode_labels(given[~unknown].tolist(), int((~unknown).sum()))
    return names, codes


# -- observations ------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class Symbols:
    """One column of categories: the position of each row in a table, and the categories that occur."""

    index: Array  # (n,)  −1 is missing
    positions: Array  # (P,)  those that occur
    size: int
    rows: Codes  # (P, 1)  one row for each

    def spread(self, values: Array) -> Array:
        """Return a table (size + 1, …) of values at their positions; 0 elsewhere, and in the last row, for missing."""
        table = np.zeros((self.size + 1, *values.shape[1:]))
        table[self.positions] = values
        return table


@dataclass(eq=False)
class SequenceRows:
    """Encoded rows of sequences and their known states; it caches what does not depend on estimates."""

    family: Family
    X: Rows
    sequences: Sequences
    weight: Array | None = None  # (n,)  weight of each observation; 0 makes it missing
    states: Array | None = None  # (n,)  code of the state, −1 where it is unknown
    _parts: tuple[int, list[list[Group]]] | None = field(default=None, init=False, repr=False)

    @property
    def n(self) -> int:
        return self.sequences.n

    def parts(self, size: int) -> list[list[Group]]:
        """Return parts of pieces of at most `size` rows; the last division is cached for the next iteration."""
        if self._parts is None or self._parts[0] != size:
            self._parts = size, self.sequences.parts(size)
        return self._parts[1]

    def head(self, most: int) -> SequenceRows:
        """Return the first rows."""
        if self.n <= most:
            return self
        weight, states = (None if part is None else part[:most] for part in (self.weight, self.states))
        return SequenceRows(self.family, self.X[:most], self.sequences.head(most), weight, states)

    def take(self, rows: Array, states: Array) -> SequenceRows:
        """Return some rows, as one sequence with these states."""
        weight = None if self.weight is None else self.weight[rows]
        return SequenceRows(self.family, self.X[rows], Sequences.of(None, len(rows)), weight, states)

    def check(self) -> None:
        """Have the family report the first value that it cannot learn; refuse rows that are all missing."""
        some = False
        for lo in range(0, self.n, BLOCK):
            block = self.X[lo : lo + BLOCK]
            missing = _missing(block)
            some = some or missing is None or not missing.all()
            self.family.check(block if missing is None else block[~missing], (), learning=True)
        if not some or (self.weight is not None and not self.weight.any()):
            raise InputError("every row is missing, so there is nothing to learn from. Give rows with values.")

    # -- scores ------------------------------------------------------------------------------------------------------
    @cached_property
    def symbols(self) -> Symbols | None:
        """The table of categories, if rows are one column of few enough categories; otherwise None."""
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
            seen[index[lo : lo + BLOCK]] = True  # −1, missing, is the last position
        positions = np.flatnonzero(seen[:-1])
        return Symbols(index, positions, size, Codes(positions[:, None], X.names))

    def table(self, emissions: Density) -> tuple[Array, Array]:
        """Return the log densities (size + 1, S) and their base (size + 1,) of every category."""
        assert self.symbols is not None
        logs, base = _scores(emissions, self.symbols.rows)
        return self.symbols.spread(logs), self.symbols.spread(base)

    def scores(self, emissions: Density, lo: int, hi: int) -> tuple[Array, Array]:
        """Return weighted log densities (hi − lo, S) and their base; −inf for states that are known to be wrong."""
        X = self.X[lo:hi]
        missing = _missing(X)
        if missing is None:
            logs, base = _scores(emissions, X)
        else:
            logs, base = np.zeros((hi - lo, emissions.K)), np.zeros(hi - lo)
            if not missing.all():
                logs[~missing], base[~missing] = _scores(emissions, X[~missing])
        if np.isnan(logs).any():
            self.family.check(X, ())
            raise InputError(f"a row at or after {self.sequences.describe(lo)} has a score that is not a number.")
        if self.weight is not None:
            w = self.weight[lo:hi]
            logs, base = np.where(w[:, None] > 0, logs, 0.0) * w[:, None], base * w
        if self.states is not None:
            known = self.states[lo:hi]
            logs[(known >= 0)[:, None] & (np.arange(emissions.K) != known[:, None])] = -np.inf
        return logs, base

    # -- sums --------------------------------------------------------------------------------------------------------
    def collect(self, shares: Array, states: Axis, lo: int, hi: int, emissions: Density | None = None) -> Stats:
        """Return the family's sums of rows lo … hi under the posteriors of their states, and under their emissions."""
        X = self.X[lo:hi]
        if self.weight is not None:
            shares = shares * self.weight[lo:hi, None]
        missing = _missing(X)
        if missing is not None:
            X, shares = X[~missing], shares[~missing]
        return collect_under(self.family, X, Members.soft(shares, states), emissions)

    def known(self, states: Axis) -> tuple[Rows, Members]:
        """Return the rows that have a known state and some value, and their states."""
        codes = self.states
        assert codes is not None
        kept = codes >= 0
        missing = _missing(self.X)
        if missing is not None:
            kept &= ~missing
        weight = self.weight
        if self.sequences.weighted:
            own = np.repeat(self.sequences.weight, self.sequences.lengths)
            weight = own if weight is None else own * weight
        if kept.all():
            return self.X, Members.hard(codes, states, weight)
        return self.X[np.flatnonzero(kept)], Members.hard(codes[kept], states, None if weight is None else weight[kept])

    def collect_known(self, states: Axis) -> Stats:
        """Return the family's sums of the rows with known states."""
        return collect_checked(self.family, *self.known(states), ())

    def collect_visits(self, visits: Array, states: Axis, emissions: Density) -> Stats:
        """Return the family's sums from the expected visits of every category, shape (size + 1, S)."""
        assert self.symbols is not None
        members = Members.soft(visits[self.symbols.positions], states)
        return collect_under(self.family, self.symbols.rows, members, emissions)


def _scores(emissions: Density, X: Rows) -> tuple[Array, Array]:
    with np.errstate(invalid="ignore", over="ignore"):
        return emissions.log_density(X), np.broadcast_to(emissions.log_base(X), X.shape[:1]).astype(float)


def _missing(X: Rows) -> Array | None:
    """Return which rows have no value, shape (n,); None if every row has one."""
    if isinstance(X, Codes):
        gaps = X.values < 0
    elif isinstance(X, np.ndarray) and X.dtype.kind == "f":
        with np.errstate(invalid="ignore", over="ignore"):
            if not np.isnan(X.sum()):  # the fast test for a table without missing values
                return None
        gaps = np.isnan(X)
    else:
        return None
    whole: Array = np.asarray(gaps.all(axis=1)) if X.shape[1] else np.zeros(len(X), dtype=bool)
    return whole if whole.any() else None


# -- sequences of words ------------------------------------------------------------------------------------------------
def features_of(
    family: Family | Mapping[Any, Family], X: SequenceInput, lengths: ArrayLike | None
) -> WordFeatures | None:
    """Return the features of words, if X holds many different words and the family is a plain Categorical."""
    if type(family) is not Categorical or repr(family) != repr(Categorical()):
        return None
    words, sizes = _words(X, lengths)
    if not isinstance(words, list | np.ndarray) or any(not isinstance(word, str) for word in words):
        return None
    return WordFeatures.of(_sentences(words, sizes)) if len(set(words)) >= MANY_WORDS else None


def read_words(features: WordFeatures | None, X: SequenceInput, lengths: ArrayLike | None) -> tuple[Any, Any]:
    """Return rows of word, ending and shape in the place of words, and the lengths; all as given without features."""
    if features is None:
        return X, lengths
    words, sizes = _words(X, lengths)
    return features.rows(_sentences(words, sizes)), sizes


def _words(X: SequenceInput, lengths: ArrayLike | None) -> tuple[Any, Any]:
    """Return the words of all sequences, one after the other, and their lengths."""
    table, sizes = join(X, lengths)
    one_column = isinstance(table, np.ndarray) and table.ndim == 2 and table.shape[1] == 1
    return table[:, 0] if one_column else table, sizes


def _sentences(words: Any, sizes: ArrayLike | None) -> list[Any]:
    """Return the words of each sequence."""
    ends = Sequences.of(sizes, len(words)).ends.tolist() if len(words) else []
    return [words[a:b] for a, b in pairwise([0, *ends])]
