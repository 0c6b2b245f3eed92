"""Rows as 16 bytes: equal rows have equal hashes, and nothing can be read back from them.

    hash(row)  = BLAKE2b-128, keyed, of  columns ‖ label ‖ weight ‖ cells
    columns    = 16 bytes: BLAKE2b-128, keyed, of the model's column names in order, each as a label is written
    label      = 1 byte, its kind, and 16 bytes: a number and 8 zeros, or the digest of a text
    weight     = 8 bytes
    cells      = 13 bytes each, by column: the column's position (4 bytes), a kind (1 byte), 8 bytes of value

Numbers are IEEE doubles, little-endian. An integer is the double it equals, true and false are 1 and 0, −0 is 0, and a
cell that is 0 is left out: so a sparse row and the same row written densely have one hash. Kinds: 0 number; 1 and 2 the
first and second half of a text's digest (BLAKE2b-128, keyed, of its UTF-8 as given, not normalised); 3 missing (None,
NaN, NaT, NA); 4 and 5 as 1 and 2, of the decimal digits of an integer that no double equals.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from struct import pack
from typing import Any

import numpy as np
import scipy.sparse as sp

from deciban.errors import HERE, Argument, InputError, MergeError, NotAvailableError, NotLearntError, Remedy
from deciban.read.batches import Batch
from deciban.read.labels import encode_labels
from deciban.read.tables import Table
from deciban.statistics import Array

CELL = np.dtype([("column", "<u4"), ("kind", "u1"), ("value", "<u8")])
NUMBER, TEXT, MISSING, DIGITS = 0, 1, 3, 4
HASH = "S16"
BLOCK = 2**20  # cells worked on at a time
EXACT = 2**53  # integers up to here are doubles


class Key:
    """A secret, and a short name by which two ledgers tell whether they share it.

    >>> Key("our secret")
    Key(id '071bf5dbc83e37cc')
    """

    def __init__(self, secret: Any = None) -> None:
        if secret is None or secret is True:
            secret = b"deciban"  # public: hashes are then no secret
        if isinstance(secret, str):
            secret = secret.encode()
        if not isinstance(secret, bytes) or not secret:
            raise InputError("the key of a ledger is text or bytes, and not empty. Give one, or True for none.")
        self.secret = secret if len(secret) <= 64 else blake2b(secret).digest()

    @classmethod
    def of(cls, value: Any) -> Key:
        """A key, or what makes one."""
        return value if isinstance(value, Key) else cls(value)

    @property
    def id(self) -> str:
        return blake2b(b"key id", key=self.secret, digest_size=8).hexdigest()

    def digest(self, data: bytes) -> bytes:
        """16 bytes that stand for some."""
        return blake2b(data, key=self.secret, digest_size=16).digest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Key) and self.secret == other.secret

    def __hash__(self) -> int:
        return hash(self.secret)

    def __repr__(self) -> str:
        return f"Key(id {self.id!r})"


def row_hashes(
    table: Table, columns: Sequence[Any], names: Sequence[Any], codes: Array, weight: Array | None, key: Key
) -> Array:
    """(n,) the hash of each row; its label is names[codes[i]]."""
    head = key.digest(b"".join(_name(column, key) for column in columns))
    labels = [head + _name(name, key) for name in names]
    n, hashes = len(table), np.empty(len(table), HASH)
    each = np.ones(n) if weight is None else weight
    kinds, which = np.unique(codes + 1j * each, return_inverse=True)
    starts = [blake2b(labels[int(kind.real)] + pack("<d", kind.imag), key=key.secret, digest_size=16) for kind in kinds]
    step = max(1, BLOCK // max(table.shape[1], 1))
    for at in range(0, n, step):
        rows = slice(at, min(at + step, n))
        hashes[rows] = list(_digests(table.take(rows), [starts[k] for k in which[rows]], key))
    return hashes


def _digests(table: Table, starts: Sequence[Any], key: Key) -> Iterator[bytes]:
    rows, cells = _cells(table, key)
    ends = np.cumsum(np.bincount(rows, minlength=len(table))) * CELL.itemsize
    data, at = np.ascontiguousarray(cells).view(np.uint8).data, 0
    for start, end in zip(starts, ends.tolist()):
        digest = start.copy()
        digest.update(data[at:end])
        at = end
        yield digest.digest()


def _cells(table: Table, key: Key) -> tuple[Array, Array]:
    """The row of each cell, and the cells, row by row."""
    if table.sparse:
        X = sp.csr_array(table.data, copy=True)
        X.sum_duplicates()
        return _numbers(np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)), X.indices, X.data, key)
    if not table.framed and table.data.dtype.kind in "biuf":
        row, column = np.nonzero(table.data)
        return _numbers(row, column, table.data[row, column], key)
    parts = [_column(table.pick([j])[:, 0], j, key) for j in range(table.shape[1])]
    rows, cells = (np.concatenate(each) for each in zip(*parts))
    order = np.argsort(rows, kind="stable")
    return rows[order], cells[order]


def _column(values: Array, column: int, key: Key) -> tuple[Array, Array]:
    if values.dtype.kind in "biuf":
        row = np.flatnonzero(values)
        return _numbers(row, np.full(len(row), column), values[row], key)
    places: dict[Any, int] = {}
    which = np.array([places.setdefault((type(v), v), len(places)) for v in values.tolist()], dtype=np.intp)
    return _values(np.arange(len(which)), np.full(len(which), column), [value for _, value in places], which, key)


def _values(rows: Array, columns: Array, values: Sequence[Any], which: Array, key: Key) -> tuple[Array, Array]:
    """Cells of any values, values[which[i]] in each: none for zero, two for a text."""
    written = [_cell(value, key) for value in values]
    kind = np.array([kind for kind, _ in written], dtype=np.uint8)
    halves = np.frombuffer(b"".join(digest for _, digest in written), "<u8").reshape(-1, 2)
    number, zero = kind == NUMBER, halves[:, 0] == 0
    size = np.where(number | (kind == MISSING), np.where(number & zero, 0, 1), 2)[which]
    at = np.repeat(np.arange(len(which)), size)
    second = np.concatenate([[False], at[1:] == at[:-1]]).astype(np.intp)[: len(at)]
    cells = np.zeros(len(at), CELL)
    cells["column"], cells["kind"], cells["value"] = columns[at], kind[which[at]] + second, halves[which[at], second]
    return rows[at], cells


def _numbers(rows: Array, columns: Array, values: Array, key: Key) -> tuple[Array, Array]:
    """Cells of numbers, zeros left out."""
    numbers = values.astype(np.float64)
    if values.dtype.kind in "iu" and values.itemsize == 8 and (np.abs(numbers) >= EXACT).any():
        return _values(rows, columns, values.tolist(), np.arange(len(values)), key)  # some are no doubles
    kept = numbers != 0
    cells = np.zeros(int(kept.sum()), CELL)
    cells["column"], numbers, rows = columns[kept], numbers[kept], rows[kept]
    gaps = np.isnan(numbers)
    cells["kind"], cells["value"] = np.where(gaps, MISSING, NUMBER), np.where(gaps, 0.0, numbers).view(np.uint64)
    return rows, cells


def _cell(value: Any, key: Key) -> tuple[int, bytes]:
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or type(value).__name__ in ("NAType", "NaTType") or value != value:
        return MISSING, bytes(16)
    return _plain(value, key)


def _name(name: Any, key: Key) -> bytes:
    """A label or the name of a column: 17 bytes."""
    kind, written = _plain(name.item() if isinstance(name, np.generic) else name, key)
    return bytes([kind]) + written


def _plain(value: Any, key: Key) -> tuple[int, bytes]:
    if isinstance(value, bool | int | float):
        try:
            number = float(value)
        except OverflowError:
            number = float("nan")
        if number == value:
            return NUMBER, pack("<d", number + 0.0) + bytes(8)
        return DIGITS, key.digest(str(value).encode())
    if isinstance(value, str):
        return TEXT, key.digest(value.encode("utf-8", "surrogatepass"))
    if isinstance(value, tuple):
        return TEXT, key.digest(b"(" + b"".join(_name(part, key) for part in value))
    raise InputError(
        f"a ledger cannot hold {repr(value)[:60]} of type {type(value).__name__}: rows are numbers, text and gaps. "
        "Turn it into text."
    )


# -- ledger ----------
# The ledger: which rows a model has learnt, as keyed hashes, and how much each has decayed since.
#
# A multiset: a row learnt twice can be unlearnt twice, and no more. It never holds the rows themselves; but whoever has
# the key, or a ledger without a key of its own, can test whether a row that they hold was learnt.


@dataclass(frozen=True, eq=False, repr=False)
class Ledger:
    """Rows as hashes; a value: learning gives another one.

    >>> hashes = np.array([b"a" * 16, b"b" * 16, b"a" * 16])
    >>> ledger = Ledger.of("our secret").learn(hashes)
    >>> ledger
    Ledger(3 rows, key '071bf5dbc83e37cc')
    >>> ledger.decay(0.5).unlearn(hashes[:2])
    (Ledger(1 rows, key '071bf5dbc83e37cc'), array([0.5, 0.5]))
    """

    key_id: str
    rows: Array = field(
        default_factory=lambda: np.zeros((0, 16), np.uint8)
    )  # (m, 16)  hashes, in order; of one hash, the least decayed first
    level: Array = field(default_factory=lambda: np.zeros(0, np.int32))  # (m,)     which of `since`
    count: Array = field(default_factory=lambda: np.zeros(0, np.int64))  # (m,)     how often
    since: Array = field(default_factory=lambda: np.zeros(0, np.float64))  # (L,)     decay since learning, falling

    def __post_init__(self) -> None:
        m, L = len(self.rows), len(self.since)
        fits = self.rows.shape == (m, 16) and self.level.shape == self.count.shape == (m,) and self.since.shape == (L,)
        kinds = [array.dtype.str[1:] for array in (self.rows, self.level, self.count, self.since)]
        if not fits or kinds != ["u1", "i4", "i8", "f8"] or not isinstance(self.key_id, str):
            raise NotLearntError("this is not a ledger: its arrays do not belong together. Refit the model.")

    @classmethod
    def of(cls, key: Any = None) -> Ledger:
        """An empty ledger; without a key its hashes are no secret."""
        return cls(Key.of(key).id)

    def __len__(self) -> int:
        return int(self.count.sum())

    def learn(self, hashes: Array, since: Array | None = None) -> Ledger:
        """Add rows; `since` where they have decayed already."""
        each = np.ones(len(hashes)) if since is None else since
        return self._with(np.asarray(hashes, HASH), each, np.ones(len(hashes), np.int64))

    def unlearn(self, hashes: Array, numbers: Array | None = None) -> tuple[Ledger, Array]:
        """Take rows out, of equal ones the least decayed first, and say how much each has decayed.

        `numbers` is what errors call the rows.
        """
        names, batch = self._names(), np.asarray(hashes, HASH)
        found, which, wanted = np.unique(batch, return_inverse=True, return_counts=True)
        order = np.argsort(which, kind="stable")
        rank = np.empty(len(batch), np.int64)  # how many equal rows come before, in the batch
        rank[order] = np.arange(len(batch)) - np.repeat(np.cumsum(wanted) - wanted, wanted)
        before = np.concatenate([[0], np.cumsum(self.count)])
        first = np.searchsorted(names, found, side="left")
        there = before[np.searchsorted(names, found, side="right")] - before[first]
        short = np.flatnonzero(rank >= there[which])
        if len(short):
            self._refuse(
                int(short[0] if numbers is None else numbers[short[0]]), int(there[which][short[0]]), len(short)
            )
        entry = np.searchsorted(before, before[first][which] + rank, side="right") - 1
        left = self.count - np.bincount(entry, minlength=len(self.count))
        return replace(self, count=left)._tidy(), self.since[self.level[entry]]

    def _refuse(self, row: int, times: int, more: int) -> None:
        why = f"was learnt {times} times, and would be taken out once more" if times else "was never learnt"
        others = f", and {more - 1} more rows with it" if more > 1 else ""
        raise NotLearntError(
            HERE,
            f" {why} by this model (with this label and weight){others}. Nothing was changed.",
            row=row,
            remedy="Unlearn only rows that were learnt, with the labels and weights that they were learnt with.",
        )

    def decay(self, factor: float) -> Ledger:
        """All rows so far count `factor` times."""
        faded = replace(self, since=self.since * factor)
        same = len(np.unique(faded.since)) == len(faded.since)
        return faded if same else Ledger(self.key_id)._joined(faded)

    def merge(self, other: Ledger) -> Ledger:
        """The rows of both."""
        if self.key_id != other.key_id:
            raise MergeError(
                f"the ledgers have different keys ({self.key_id} and {other.key_id}), so equal rows cannot be "
                "recognised. Fit both models with the same key."
            )
        return self._joined(other)

    # -- the machinery ---------------------------------------------------------------------------------------------
    def _joined(self, other: Ledger) -> Ledger:
        return self._with(other._names(), other.since[other.level], other.count)

    def _names(self) -> Array:
        return np.ascontiguousarray(self.rows).view(HASH).reshape(-1)

    def _with(self, names: Array, since: Array, count: Array) -> Ledger:
        """More rows, each in its place; those that are there already count more."""
        every = np.unique(np.concatenate([self.since, since]))[::-1]
        mine = _keys(self._names(), _level(every, self.since)[self.level] if len(self.level) else self.level)
        theirs, which = np.unique(_keys(names, _level(every, since)), return_inverse=True)
        more = np.bincount(which, count, len(theirs)).astype(np.int64)
        at = np.searchsorted(mine, theirs)
        known = mine[np.minimum(at, len(mine) - 1)] == theirs if len(mine) else np.zeros(len(theirs), bool)
        counts = self.count.copy()
        counts[at[known]] += more[known]
        keys = np.insert(mine, at[~known], theirs[~known])
        both = np.insert(counts, at[~known], more[~known])
        split = keys.view(np.uint8).reshape(-1, 20)
        level = np.ascontiguousarray(split[:, 16:]).view(">u4").reshape(-1).astype(np.int32)
        return Ledger(self.key_id, np.ascontiguousarray(split[:, :16]), level, both, every)._tidy()

    def _tidy(self) -> Ledger:
        """Without rows that are gone, and levels that nothing is at."""
        kept = self.count > 0
        used = np.unique(self.level[kept])
        if kept.all() and len(used) == len(self.since):
            return self
        level = np.searchsorted(used, self.level[kept]).astype(np.int32)
        return Ledger(self.key_id, self.rows[kept], level, self.count[kept], self.since[used])

    def __repr__(self) -> str:
        return f"Ledger({len(self):,} rows, key {self.key_id!r})"


def _level(every: Array, since: Array) -> Array:
    """Where numbers stand among falling ones."""
    return (len(every) - 1 - np.searchsorted(every[::-1], since)).astype(np.int32)


def _keys(names: Array, level: Array) -> Array:
    """Hash and level as one text of 20 bytes, in whose order both are."""
    made = np.empty((len(names), 20), np.uint8)
    made[:, :16] = np.ascontiguousarray(names).view(np.uint8).reshape(-1, 16)
    made[:, 16:] = np.ascontiguousarray(level.astype(">u4")).view(np.uint8).reshape(-1, 4)
    return made.view("S20").reshape(-1)


# -- the rows of a batch in a ledger ---------------------------------------------------------------------------------
def started(batch: Batch, key: Any) -> Ledger:
    """Return a ledger of the rows of a first batch."""
    return Ledger.of(key).learn(_batch_hashes(batch, batch.table.columns, batch.labels, Key.of(key)))


def added(ledger: Ledger, batch: Batch, columns: Sequence[Any], key: Any) -> Ledger:
    """Return the ledger with the rows of a batch."""
    return ledger.learn(_batch_hashes(batch, columns, batch.labels, checked_key(ledger, key)))


def removed(ledger: Ledger, batch: Batch, columns: Sequence[Any], key: Any, labels: Any = None) -> tuple[Ledger, Batch]:
    """Return the ledger without the rows of a batch, and the batch with the weights that its rows have by now.

    With `labels`, the rows are in the ledger again under these labels.
    """
    secret = checked_key(ledger, key)
    with batch.table.located():
        left, since = ledger.unlearn(_batch_hashes(batch, columns, batch.labels, secret))
    if labels is not None:
        left = left.learn(_batch_hashes(batch, columns, labels, secret), since)
    if (since == 1).all():
        return left, batch
    return left, replace(batch, weight=since if batch.weight is None else since * batch.weight)


def checked_key(ledger: Ledger, key: Any) -> Key:
    """Return the key, if it is the ledger's."""
    secret = Key.of(key)
    if secret.id != ledger.key_id:
        raise NotAvailableError(
            f"this model keeps a ledger under a key (id {ledger.key_id}) that it was not given.",
            remedy=Remedy("Load it with its key: ", Argument("key", python="deciban.load(path, key=…)"), "."),
        )
    return secret


def _batch_hashes(batch: Batch, columns: Sequence[Any], labels: Any, key: Key) -> Array:
    names, codes = encode_labels(labels, len(batch.table))
    return row_hashes(batch.table, columns, names, codes, batch.weight, key)
