"""The ledger: which rows a model has learnt, as keyed hashes of 16 bytes, and by how much each row has decayed.

The ledger is a multiset: a row learnt twice can be unlearnt twice, and no more. It never holds the rows themselves, and
rows cannot be computed from their hashes. With the key, the hash of a given row can be computed, which shows whether
the row was learnt. The default key is public.

Equal rows have equal hashes:

    hash(row)  = BLAKE2b-128, keyed, of  columns ‖ label ‖ weight ‖ cells
    columns    = 16 bytes: BLAKE2b-128, keyed, of the model's column names in order, each encoded like a label
    label      = 1 byte, its kind, and 16 bytes: a number and 8 zeros, or the digest of a text
    weight     = 8 bytes
    cells      = 13 bytes each, by column: the column's position (4 bytes), a kind (1 byte), 8 bytes of value

Numbers are IEEE doubles, little-endian. An integer is the double it equals, true and false are 1 and 0, −0 is 0, and a
cell that is 0 is left out: a sparse row and the same row written densely have the same hash. Kinds: 0 number; 1 and 2
the first and second half of a text's digest (BLAKE2b-128, keyed, of its UTF-8 as given, not normalised); 3 missing
(None, NaN, NaT, NA); 4 and 5 as 1 and 2, of the decimal digits of an integer that no double equals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from struct import pack
from typing import Any, NoReturn, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from deciban.errors import HERE, Argument, InputError, MergeError, NotAvailableError, NotLearntError, Remedy
from deciban.read.batches import Batch
from deciban.read.codes import Labels, encode_labels, is_missing
from deciban.read.tables import Table, TypedTable
from deciban.statistics import Array

CELL = np.dtype([("column", "<u4"), ("kind", "u1"), ("value", "<u8")])
NUMBER, TEXT, MISSING, DIGITS = 0, 1, 3, 4
HASH = "S16"
BLOCK = 2**20  # cells hashed at a time
FEWEST_WAITING = 2**20  # hashes that are inserted into a ledger at a time
EXACT = 2**53  # every integer up to here is a double

Secret: TypeAlias = "Key | str | bytes | bool | None"  # what a user gives as key; True and None mean the public key


class Key:
    """The key of a ledger's hashes, and an id that shows whether two ledgers have the same key.

    >>> Key("our secret")
    Key(id '071bf5dbc83e37cc')
    """

    def __init__(self, secret: str | bytes | bool | None = None) -> None:
        if secret is None or secret is True:
            secret = b"deciban"  # the public key
        if isinstance(secret, str):
            secret = secret.encode("utf-8", "surrogatepass")
        if not isinstance(secret, bytes) or not secret:
            raise InputError(
                "the key of a ledger must be text or bytes, and not empty. Give one, or True for the public key."
            )
        self.secret = secret if len(secret) <= 64 else blake2b(secret).digest()

    @classmethod
    def of(cls, value: Secret) -> Key:
        """Return a key as it is, or make one of a secret."""
        return value if isinstance(value, Key) else cls(value)

    @property
    def id(self) -> str:
        """16 hexadecimal digits that tell keys apart."""
        return blake2b(b"key id", key=self.secret, digest_size=8).hexdigest()

    def digest(self, data: bytes) -> bytes:
        """Return the keyed BLAKE2b-128 of some bytes."""
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
    """Return the hash of each row, shape (n,); the label of row i is names[codes[i]]."""
    head = key.digest(b"".join(_name(column, key) for column in columns))
    labels = [head + _name(name, key) for name in names]
    n, width = table.shape
    if weight is None:
        kinds, which = [(code, 1.0) for code in range(len(labels))], codes
    else:
        each, which = np.unique(codes + 1j * weight, return_inverse=True)
        kinds = [(int(kind.real), kind.imag) for kind in each]
    starts = [blake2b(labels[code] + pack("<d", each), key=key.secret, digest_size=16) for code, each in kinds]
    step = max(1, BLOCK // max(width, 1))
    parts: list[bytes] = []
    for at in range(0, n, step):
        rows = slice(at, min(at + step, n))
        parts += _digests(table if n <= step else table.take(rows), [start.copy for start in starts], which[rows], key)
    return np.frombuffer(bytearray().join(parts), HASH)


def _digests(table: Table, copies: Sequence[Callable[[], blake2b]], which: Array, key: Key) -> list[bytes]:
    """Return the digest of each row; copies[which[i]] makes one that has been fed what precedes the cells of row i."""
    sizes, cells = _cells(table, key)
    ends, data, at, found = np.cumsum(sizes) * CELL.itemsize, cells.tobytes(), 0, []
    for kind, end in zip(which.tolist(), ends.tolist()):
        digest = copies[kind]()
        digest.update(data[at:end])
        found.append(digest.digest())
        at = end
    return found


def _cells(table: Table, key: Key) -> tuple[Array, Array]:
    """Return the number of cells of each row, and the cells in the order of the rows."""
    n, width = table.shape
    if table.sparse:
        X = sp.csr_array(table.data, copy=True)
        X.sum_duplicates()
        rows, cells = _numbers(np.repeat(np.arange(n), np.diff(X.indptr)), X.indices, X.data, key)
        return np.bincount(rows, minlength=n), cells
    if not table.framed and table.data.dtype.kind in "biuf":
        row, column = np.nonzero(table.data)
        rows, cells = _numbers(row, column, table.data[row, column], key)
        return np.bincount(rows, minlength=n), cells
    parts = [_column(table, j, key) for j in range(width)]
    ends = np.cumsum([0, *(kind.shape[1] for kind, _, _ in parts)])
    grid, there = np.empty((n, ends[-1]), CELL), np.empty((n, ends[-1]), bool)
    for j, (kind, value, present) in enumerate(parts):
        at = slice(ends[j], ends[j + 1])
        grid["column"][:, at], grid["kind"][:, at], grid["value"][:, at], there[:, at] = j, kind, value, present
    return there.sum(axis=1), grid if there.all() else grid[there]


def _column(table: Table, position: int, key: Key) -> tuple[Array, Array, Array]:
    """Return kind and value of the cells of one column, and which there are, (n, 1) or (n, 2)."""
    if isinstance(table, TypedTable) and table.kind(position) == "category":
        codes, names = table.data.values[position]
        return _coded([*names, None], codes, key)  # −1, the code of what is missing, is the place of None
    values = table.pick([position])[:, 0]
    if values.dtype.kind in "biuf" and not _has_large_integers(values):
        return tuple(part[:, None] for part in _of_doubles(values.astype(np.float64)))  # type: ignore[return-value]
    places: dict[Any, int] = {}
    which = np.array([places.setdefault((type(v), v), len(places)) for v in values.tolist()], dtype=np.intp)
    return _coded([value for _, value in places], which, key)


def _coded(values: Sequence[Any], which: Array, key: Key) -> tuple[Array, Array, Array]:
    """Return kind and value of the cells of values[which[i]], and which there are: none for zero, two for a text."""
    written = [_cell(value, key) for value in values]
    kind = np.array([kind for kind, _ in written], dtype=np.uint8)[:, None]
    halves = np.frombuffer(bytearray().join(digest for _, digest in written), "<u8").reshape(-1, 2)
    there = np.hstack([(kind != NUMBER) | (halves[:, :1] != 0), (kind != NUMBER) & (kind != MISSING)])
    most = 1 + bool(there[:, 1].any())
    return (kind + np.arange(most, dtype=np.uint8))[which], halves[which, :most], there[which, :most]


def _has_large_integers(values: Array) -> bool:
    """Whether there are 64-bit integers that a double may not represent."""
    return values.dtype.kind in "iu" and values.itemsize == 8 and bool((np.abs(values.astype(float)) >= EXACT).any())


def _of_doubles(numbers: Array) -> tuple[Array, Array, Array]:
    """Return kind and value of the cells of numbers, and which there are: none for zero."""
    gaps = np.isnan(numbers)
    return np.where(gaps, MISSING, NUMBER), np.where(gaps, 0.0, numbers).view(np.uint64), numbers != 0


def _numbers(rows: Array, columns: Array, values: Array, key: Key) -> tuple[Array, Array]:
    """Return rows and cells of numbers, zeros left out."""
    if _has_large_integers(values):
        kind, value, there = _coded(values.tolist(), np.arange(len(values)), key)
        at, _ = np.nonzero(there)
        kind, value = kind[there], value[there]
    else:
        kind, value, there = _of_doubles(values.astype(np.float64))
        at = np.flatnonzero(there)
        kind, value = kind[at], value[at]
    cells = np.empty(len(at), CELL)
    cells["column"], cells["kind"], cells["value"] = columns[at], kind, value
    return rows[at], cells


def _cell(value: object, key: Key) -> tuple[int, bytes]:
    """Return kind and 16 bytes of a value, which may be missing."""
    value = value.item() if isinstance(value, np.generic) else value
    if is_missing(value):
        return MISSING, bytes(16)
    return _plain(value, key)


def _name(name: object, key: Key) -> bytes:
    """Encode a label or the name of a column in 17 bytes."""
    kind, written = _plain(name.item() if isinstance(name, np.generic) else name, key)
    return bytes([kind]) + written


def _plain(value: object, key: Key) -> tuple[int, bytes]:
    """Return kind and 16 bytes of a number, a text, or a tuple of these."""
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


# -- the multiset ----------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False, repr=False)
class Ledger:
    """The hashes of the rows learnt. Immutable: `learn`, `unlearn`, `decay` and `merge` return another ledger.

    >>> hashes = np.array([b"a" * 16, b"b" * 16, b"a" * 16])
    >>> ledger = Ledger.of("our secret").learn(hashes)
    >>> ledger
    Ledger(3 rows, key '071bf5dbc83e37cc')
    >>> ledger.decay(0.5).unlearn(hashes[:2])
    (Ledger(1 rows, key '071bf5dbc83e37cc'), array([0.5, 0.5]))
    """

    key_id: str
    # (m, 16)  hashes, sorted; equal hashes from the least to the most decayed
    rows: Array = field(default_factory=lambda: np.zeros((0, 16), np.uint8))
    level: Array = field(default_factory=lambda: np.zeros(0, np.int32))  # (m,)  position in `since`
    count: Array = field(default_factory=lambda: np.zeros(0, np.int64))  # (m,)  number of such rows
    since: Array = field(default_factory=lambda: np.zeros(0, np.float64))  # (L,)  decay since learning, decreasing

    def __post_init__(self) -> None:
        m, L = len(self.rows), len(self.since)
        fits = self.rows.shape == (m, 16) and self.level.shape == self.count.shape == (m,) and self.since.shape == (L,)
        kinds = [array.dtype.str[1:] for array in (self.rows, self.level, self.count, self.since)]
        if not fits or kinds != ["u1", "i4", "i8", "f8"] or not isinstance(self.key_id, str):
            raise NotLearntError("the arrays of this ledger do not fit together. Fit the model again.")

    def validate(self) -> None:
        """Raise NotLearntError if the entries contradict each other, as in a file that was changed."""
        m, L, keys = len(self.rows), len(self.since), _keys(self._names(), self.level)
        right = (
            bool((self.count > 0).all())
            and float(self.count.sum(dtype=np.float64)) < 2**62
            and bool(((self.level >= 0) & (self.level < L)).all())
            and bool(((self.since > 0) & (self.since <= 1)).all())
            and bool((np.diff(self.since) < 0).all())
            and len(np.unique(self.level)) == L
            and (m < 2 or bool((keys[1:] > keys[:-1]).all()))
        )
        if not right:
            raise NotLearntError("the entries of this ledger contradict each other. Fit the model again.")

    @classmethod
    def of(cls, key: Secret = None) -> Ledger:
        """Return an empty ledger; without a key, under the public key."""
        return cls(Key.of(key).id)

    def __len__(self) -> int:
        return int(self.count.sum())

    def learn(self, hashes: Array, since: Array | None = None) -> Ledger:
        """Add rows; `since` is their decay so far, 1 for each if None."""
        each = np.ones(len(hashes)) if since is None else since
        return self._with(np.asarray(hashes, HASH), each, np.ones(len(hashes), np.int64))

    def unlearn(self, hashes: Array, numbers: Array | None = None) -> tuple[Ledger, Array]:
        """Remove rows, of equal ones the least decayed first; return also the decay of each, shape (n,).

        `numbers` are the row numbers used in errors.
        """
        entry = self._entries(hashes, numbers)
        left = self.count - np.bincount(entry, minlength=len(self.count))
        return replace(self, count=left)._tidy(), self.since[self.level[entry]]

    def decay_of(self, hashes: Array) -> Array:
        """Return the decay of rows, as `unlearn` does; NotLearntError if one was not learnt."""
        return self.since[self.level[self._entries(hashes)]]

    def _entries(self, hashes: Array, numbers: Array | None = None) -> Array:
        """Return the entry of each row, of equal ones the least decayed first; NotLearntError if there is none."""
        names, batch = self._names(), np.asarray(hashes, HASH)
        found, which, wanted = np.unique(batch, return_inverse=True, return_counts=True)
        order = np.argsort(which, kind="stable")
        rank = np.empty(len(batch), np.int64)  # number of equal rows before it in the batch
        rank[order] = np.arange(len(batch)) - np.repeat(np.cumsum(wanted) - wanted, wanted)
        before = np.concatenate([[0], np.cumsum(self.count)])
        first = np.searchsorted(names, found, side="left")
        several = len(self.since) > 1  # a hash may have several entries
        if several or not len(names):
            last = np.searchsorted(names, found, side="right")
        else:
            last = first + (names[np.minimum(first, len(names) - 1)] == found)
        there = before[last] - before[first]
        short = np.flatnonzero(rank >= there[which])
        if len(short):
            self._refuse(
                int(short[0] if numbers is None else numbers[short[0]]), int(there[which][short[0]]), len(short)
            )
        if not several:
            return first[which]
        return np.searchsorted(before, before[first][which] + rank, side="right") - 1

    def _refuse(self, row: int, times: int, more: int) -> NoReturn:
        why = f"was learnt {times} times and is to be unlearnt once more" if times else "was never learnt"
        others = f"; the same holds for {more - 1} more rows" if more > 1 else ""
        raise NotLearntError(
            HERE,
            f" {why} by this model (with this label and weight){others}. Nothing was changed.",
            row=row,
            remedy="Unlearn only rows that were learnt, with the labels and weights that they were learnt with.",
        )

    def decay(self, factor: float) -> Ledger:
        """Return the ledger after all its rows were weighed by a factor."""
        faded = replace(self, since=self.since * factor)
        same = len(np.unique(faded.since)) == len(faded.since)
        return faded if same else Ledger(self.key_id)._joined(faded)

    def merge(self, other: Ledger) -> Ledger:
        """Return the ledger of the rows of both."""
        if self.key_id != other.key_id:
            raise MergeError(
                f"the ledgers have different keys ({self.key_id} and {other.key_id}), so equal rows cannot be "
                "recognised. Fit both models with the same key."
            )
        return self._joined(other)

    def _joined(self, other: Ledger) -> Ledger:
        return self._with(other._names(), other.since[other.level], other.count)

    def _names(self) -> Array:
        return np.ascontiguousarray(self.rows).view(HASH).reshape(-1)

    def _with(self, names: Array, since: Array, count: Array) -> Ledger:
        """Insert rows at their sorted positions; the counts of entries that exist are increased."""
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
        """Drop entries whose count is 0, and levels without entries."""
        kept = self.count > 0
        used = np.flatnonzero(np.bincount(self.level[kept], minlength=len(self.since)))
        if kept.all() and len(used) == len(self.since):
            return self
        level = np.searchsorted(used, self.level[kept]).astype(np.int32)
        return Ledger(self.key_id, self.rows[kept], level, self.count[kept], self.since[used])

    def __repr__(self) -> str:
        return f"Ledger({len(self):,} rows, key {self.key_id!r})"


def _level(every: Array, since: Array) -> Array:
    """Return the positions of numbers among decreasing ones."""
    return (len(every) - 1 - np.searchsorted(every[::-1], since)).astype(np.int32)


def _keys(names: Array, level: Array) -> Array:
    """Join hash and level to keys of 20 bytes, which sort by hash, then by level."""
    made = np.empty((len(names), 20), np.uint8)
    made[:, :16] = np.ascontiguousarray(names).view(np.uint8).reshape(-1, 16)
    made[:, 16:] = np.ascontiguousarray(level.astype(">u4")).view(np.uint8).reshape(-1, 4)
    return made.view("S20").reshape(-1)


# -- the rows of a batch in a ledger ---------------------------------------------------------------------------------
def ledger_of(batch: Batch, key: Secret) -> Ledger:
    """Return the ledger of a first batch."""
    return Ledger.of(key).learn(_batch_hashes(batch, batch.table.columns, batch.labels, Key.of(key)))


class LedgerSums:
    """The ledger of batches that are learnt one after the other; mutable, with one owner.

    Their hashes wait until they are as many as the entries of the ledger: inserting those of each batch would copy the
    whole ledger every time.
    """

    def __init__(self, ledger: Ledger, columns: Sequence[Any], key: Secret) -> None:
        self._ledger, self._columns, self._key = ledger, columns, checked_key(ledger, key)
        self._waiting: list[Array] = []
        self._rows = 0  # that wait

    def add(self, batch: Batch) -> None:
        """Add the rows of a batch."""
        self._waiting.append(_batch_hashes(batch, self._columns, batch.labels, self._key))
        self._rows += len(self._waiting[-1])
        if self._rows > max(FEWEST_WAITING, len(self._ledger.rows)):
            self.ledger()

    def ledger(self) -> Ledger:
        """Return the ledger of all rows."""
        if self._waiting:
            self._ledger, self._waiting, self._rows = self._ledger.learn(np.concatenate(self._waiting)), [], 0
        return self._ledger


def learn_batch(ledger: Ledger, batch: Batch, columns: Sequence[Any], key: Secret) -> Ledger:
    """Return the ledger with the rows of a batch added."""
    return ledger.learn(_batch_hashes(batch, columns, batch.labels, checked_key(ledger, key)))


def unlearn_batch(
    ledger: Ledger, batch: Batch, columns: Sequence[Any], key: Secret, labels: ArrayLike | Labels | None = None
) -> tuple[Ledger, Batch]:
    """Return the ledger without the rows of a batch, and the batch with its weights times the decay of its rows.

    With `labels`, the rows are added again under these labels.
    """
    secret = checked_key(ledger, key)
    with batch.table.located():
        left, since = ledger.unlearn(_batch_hashes(batch, columns, batch.labels, secret))
    if labels is not None:
        left = left.learn(_batch_hashes(batch, columns, labels, secret), since)
    return left, _decayed(batch, since)


def check_batch(ledger: Ledger, batch: Batch, columns: Sequence[Any], key: Secret) -> Batch:
    """Return a batch whose rows were all learnt with its weights times the decay of its rows; otherwise an error."""
    secret = checked_key(ledger, key)
    with batch.table.located():
        return _decayed(batch, ledger.decay_of(_batch_hashes(batch, columns, batch.labels, secret)))


def checked_key(ledger: Ledger, key: Secret) -> Key:
    """Return the key if it is that of the ledger; NotAvailableError if not."""
    secret = Key.of(key)
    if secret.id != ledger.key_id:
        raise NotAvailableError(
            f"the ledger of this model has a key (id {ledger.key_id}) that was not given.",
            remedy=Remedy("Load it with its key: ", Argument("key", python="deciban.load(path, key=…)"), "."),
        )
    return secret


def _decayed(batch: Batch, since: Array) -> Batch:
    if (since == 1).all():
        return batch
    return replace(batch, weight=since if batch.weight is None else since * batch.weight)


def _batch_hashes(batch: Batch, columns: Sequence[Any], labels: ArrayLike | Labels | None, key: Key) -> Array:
    names, codes = encode_labels(labels, len(batch.table))
    return row_hashes(batch.table, columns, names, codes, batch.weight, key)
