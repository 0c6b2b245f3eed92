"""Receipts of unlearning: what was removed, and digests by which it can be checked later.

    rows            keyed BLAKE2b-128 of each row with its label, as in the ledger; the row cannot be computed from it
    sums            BLAKE2b-256 of the statistics before and after
    calibration     BLAKE2b-256 of the calibration, which unlearning does not change until it is fitted again
    seal            keyed BLAKE2b-256 of all other fields of the receipt

Digests of sums: of a large table of words, only the part that a lesson changed is read again. The words of a learnt
vocabulary are sorted and cut into chunks of about 64 words. Words with a certain hash value begin a chunk, so that
adding or removing a word changes one or two chunks. The digest of a chunk is the BLAKE2b-256 of its words and their
counts; the digest of the sums is the BLAKE2b-256 of the digests of all chunks and of all other statistics. It depends
on names and numbers alone, not on how the sums were computed.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right, insort
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import blake2b
from hmac import compare_digest
from json import dumps
from typing import TYPE_CHECKING, Any

import numpy as np

from deciban.errors import InputError
from deciban.model.ledger import Key, row_hashes
from deciban.model.model import Model
from deciban.read.batches import Batch
from deciban.read.codes import encode_labels
from deciban.read.tables import Table
from deciban.statistics import Array, Stats
from deciban.statistics.changed_columns import ChangedColumns
from deciban.store.codec import Encoder

if TYPE_CHECKING:
    from deciban.text.stats import TextStats
    from deciban.text.vocabulary import Vocabulary

# -- digests of sums ---------------------------------------------------------------------------------------------------
BYTES_AT_A_TIME = 2**20  # bytes of an array that one step adds to a digest
CHUNK_WORDS = 64  # words of a chunk on average
CHUNKS_AT_A_TIME = 128  # chunks whose columns are read in one step
FIRST = ""  # name of the first chunk, which no word begins; it may be empty


def digest_of(value: Any) -> str:
    """Return the BLAKE2b-256 of a value that model files can hold, by its names and numbers."""
    digest = blake2b(digest_size=32)
    for _ in _digest_steps(value, digest):
        pass
    return digest.hexdigest()


def _digest_steps(value: Any, digest: blake2b) -> Iterator[None]:
    """Feed a value to a digest, in steps of about a millisecond."""
    encoder = Encoder()
    node = encoder.encode(value, "")
    digest.update(dumps(node, sort_keys=True, separators=(",", ":")).encode())
    for name in sorted(encoder.arrays):
        array = np.ascontiguousarray(encoder.arrays[name])
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        content = array.reshape(-1).view(np.uint8).data
        for start in range(0, len(content), BYTES_AT_A_TIME):
            digest.update(content[start : start + BYTES_AT_A_TIME])
            yield


def sums_digest(stats: Stats) -> str:
    """Return the digest of sums. Peaks, the largest values that sums ever had, are left out."""
    steps = SumsDigests().stats_steps(stats)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return str(end.value)


def former_sums_digest(stats: Stats) -> str:
    """Return the digest of sums that receipts of the first form hold: of all arrays, one after the other."""
    return digest_of(without_peaks(stats))


def without_peaks(stats: Any) -> Any:
    """Return statistics without their peaks."""
    if isinstance(stats, dict):
        return {name: without_peaks(part) for name, part in stats.items()}
    if not isinstance(stats, Stats):
        return stats
    bare = stats.map_fields(lambda values, _: None, kinds=("peak",))
    return bare.map_fields(lambda values, _: without_peaks(values), kinds=("nested",))


class SumsDigests:
    """Computes digests of the sums of models; keeps those of the last model, as the next differs in few words."""

    def __init__(self) -> None:
        self._last: tuple[Model, str] | None = None
        self._tables: list[WordChunks] = []  # chunks of each table in the last sums

    def of(self, model: Model) -> str:
        """Return the digest of the sums of a model."""
        for _ in self.steps(model):
            pass
        return self._last[1]  # type: ignore[index]  # the last step has set it

    def steps(self, model: Model) -> Iterator[None]:
        """Compute the digest of a model in steps of about a millisecond, and keep it for the next receipt."""
        if self._last is None or self._last[0] is not model:
            made = yield from self.stats_steps(model.stats)
            self._last = model, made

    def stats_steps(self, stats: Stats) -> Generator[None, None, str]:
        """Compute the digest of sums in steps of about a millisecond; the generator returns it."""
        tables: list[TextStats] = []
        rest = without_peaks(_without_tables(stats, tables))
        chunks = []
        for at, table in enumerate(tables):
            known = self._tables[at] if at < len(self._tables) else None
            chunks.append((yield from _chunk_steps(table, known)))
        digest = blake2b(digest_size=32)
        yield from _digest_steps({"rest": rest, "chunks": [each.joined() for each in chunks]}, digest)
        self._tables = chunks
        return digest.hexdigest()


def _without_tables(stats: Any, tables: list[TextStats]) -> Any:
    """Return statistics without the words and counts of learnt vocabularies; these are added to `tables`."""
    if isinstance(stats, dict):
        return {name: _without_tables(part, tables) for name, part in stats.items()}
    if not isinstance(stats, Stats):
        return stats
    if "word" in stats.labels:
        from deciban.text.stats import (
            TextStats,
            word_axis,
        )  # lazy: a model without texts does not load the modules of texts
        from deciban.text.vocabulary import Vocabulary

        axis = stats.labels["word"]
        if type(stats) is TextStats and not getattr(axis, "declared", 1):
            tables.append(stats)
            labels = {**stats.labels, "word": word_axis(Vocabulary.of((), "learnt"), "learnt")}
            return TextStats(labels, np.zeros((len(stats.rows), 0)), stats.rows, stats.tokens)
    return stats.map_fields(lambda values, _: _without_tables(values, tables), kinds=("nested",))


# -- chunks of words ---------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class WordChunks:
    """The digests of the chunks of one table of words."""

    table: TextStats
    starts: list[str]  # words that begin a chunk, sorted
    digests: dict[str, bytes]  # digest of each chunk, by the word that begins it; of the first, by `FIRST`

    def joined(self) -> Array:
        """Return the digests of all chunks in the order of their words, as bytes."""
        return np.frombuffer(b"".join(self.digests[name] for name in (FIRST, *self.starts)), np.uint8)


def _chunk_steps(table: TextStats, known: WordChunks | None) -> Generator[None, None, WordChunks]:
    """Compute the digests of the chunks of a table; equal chunks of a known table are not computed again."""
    words = _vocabulary(table)
    changed = None if known is None else _changed_words(known.table, table)
    if known is None or changed is None:
        at = np.flatnonzero(words.parts(CHUNK_WORDS) == 0)
        starts, digests = list(words.take(at)), dict[str, bytes]()
        edges = [0, *at.tolist(), len(words)]
        runs = list(zip([FIRST, *starts], edges, edges[1:]))
    else:
        starts, digests = list(known.starts), dict(known.digests)
        runs = list(_changed_runs(words, starts, digests, changed))
    for begin in range(0, len(runs), CHUNKS_AT_A_TIME):
        some = runs[begin : begin + CHUNKS_AT_A_TIME]
        columns = np.concatenate([np.arange(first, end) for _, first, end in some])
        held = table.table
        cells = held.take(columns) if isinstance(held, ChangedColumns) else held[:, columns]
        done = 0
        for name, first, end in some:
            digests[name] = _chunk_digest(words, first, end, cells[:, done : done + end - first])
            done += end - first
        yield
    return WordChunks(table, starts, digests)


def _vocabulary(table: TextStats) -> Vocabulary:
    from deciban.text.stats import vocabulary_of

    return vocabulary_of(table.labels["word"], "learnt")  # type: ignore[arg-type]  # words have one axis


def _chunk_digest(words: Vocabulary, first: int, end: int, cells: Array) -> bytes:
    """Return the digest of consecutive words and their counts."""
    text, ends = type(words)(words.names.slice(first, end - first), words.kind).utf8()
    digest = blake2b(digest_size=32)
    for array in (ends.astype("<i8"), text, cells.astype("<f8")):
        digest.update(f"{array.shape}".encode() + array.tobytes())
    return digest.digest()


def _changed_words(before: TextStats, now: TextStats) -> tuple[set[str], set[str]] | None:
    """Return the words whose columns differ, in a table and in a later one; None if all must be compared."""
    one, other = before.table, now.table
    if before.labels["class"] != now.labels["class"]:
        return None
    if not isinstance(one, ChangedColumns) or not isinstance(other, ChangedColumns):
        return (set(), set()) if one is other else None
    found = other.unlike(one)
    if found is None:
        return None
    here, there = (_columns(table, at) for table, at in zip((now, before), found))
    same = {word for word in here.keys() & there.keys() if np.array_equal(here[word], there[word])}
    return there.keys() - same, here.keys() - same


def _columns(table: TextStats, at: Array) -> dict[str, Array]:
    """Return the counts of some words, by word."""
    return dict(zip(_vocabulary(table).take(at), table.table.take(at).T))


def _changed_runs(
    words: Vocabulary, starts: list[str], digests: dict[str, bytes], changed: tuple[set[str], set[str]]
) -> Iterator[tuple[str, int, int]]:
    """Yield the chunks that hold changed words: their names, and their first column and the one after the last.

    `starts` and `digests` are changed: words that begin chunks are added and removed.
    """
    from deciban.text.vocabulary import insertion_point

    were, are = changed
    some = sorted(were | are)
    parts = type(words).of(some, "learnt").parts(CHUNK_WORDS) if some else np.zeros(0)
    before = [word for word, part in zip(some, parts) if part == 0 and (word in were) != (word in are)]
    for word in before:
        if word in are:
            insort(starts, word)
        else:
            starts.remove(word)
            del digests[word]
    names = [FIRST, *starts]
    touched = {bisect_right(starts, word) for word in some}
    touched.update(bisect_left(starts, word) for word in before)  # the chunk before it changes, too
    for at in sorted(touched):
        first = 0 if at == 0 else insertion_point(words.names, names[at])
        yield names[at], first, len(words) if at + 1 == len(names) else insertion_point(words.names, names[at + 1])


# -- receipts ----------------------------------------------------------------------------------------------------------
FORM = "deciban receipt 2"
FORMER = "deciban receipt 1"  # its digests of sums are those of `former_sums_digest`


def row_digests(table: Table, columns: Sequence[Any], labels: Sequence[Any], key: Key) -> list[str]:
    """Return the keyed digest of each row with its label, 32 hexadecimal digits each."""
    names, codes = encode_labels(list(labels), len(table))
    return [bytes(each).ljust(16, b"\0").hex() for each in row_hashes(table, columns, names, codes, None, key).tolist()]


@dataclass(frozen=True)
class Receipt:
    """Proof of an unlearning: digests of the removed rows, and of the sums before and after."""

    lesson: int
    kind: str  # unlearn, correct or erase
    time: str  # ISO 8601, UTC
    rows: tuple[str, ...]  # keyed digests
    key: str  # id of the key
    sums_before: str
    sums_after: str
    calibration: str | None
    undoes: int | None = None
    purged: tuple[int, ...] | None = None  # lessons from which an erasure removed the row
    form: str = FORM
    seal: str = ""

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> Receipt:
        """Read a receipt from JSON."""
        names = set(cls.__dataclass_fields__)
        if not isinstance(content, Mapping) or content.get("form") not in (FORM, FORMER) or set(content) != names:
            raise InputError("this is not a receipt of deciban.", remedy="Give the JSON that the service returned.")
        rows, purged = content["rows"], content["purged"]
        if not isinstance(rows, list | tuple) or not isinstance(purged, list | tuple | None):
            raise InputError("this receipt is not complete.", remedy="Give the JSON that the service returned.")
        return cls(**{**content, "rows": tuple(rows), "purged": None if purged is None else tuple(purged)})

    def content(self) -> dict[str, Any]:
        """Return the receipt as JSON has it."""
        return {name: _plain(getattr(self, name)) for name in self.__dataclass_fields__}

    def sealed(self, key: Key) -> Receipt:
        """Return the receipt with its seal."""
        return Receipt(**{**vars(self), "seal": self.expected_seal(key)})

    def expected_seal(self, key: Key) -> str:
        """Return the seal that the other fields must have."""
        rest = {name: value for name, value in self.content().items() if name != "seal"}
        text = dumps(rest, sort_keys=True, separators=(",", ":"))
        return blake2b(text.encode(), key=key.secret, digest_size=32).hexdigest()

    def is_sealed_by(self, key: Key) -> bool:
        """Return whether no field was changed since the receipt was sealed."""
        return compare_digest(self.seal, self.expected_seal(key))


def timestamp(seconds: float) -> str:
    """Return a time in ISO 8601.

    >>> timestamp(0)
    '1970-01-01T00:00:00Z'
    """
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


# -- verification ------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Check:
    """One statement about a receipt, and whether it holds; None where it could not be checked."""

    what: str
    holds: bool | None


def verify(receipt: Receipt, journal: Any, key: Key) -> Iterator[Check]:
    """Check a receipt against the journal of the service that issued it."""
    yield Check("the receipt is unchanged since it was issued", receipt.is_sealed_by(key))
    entry = journal.entry(receipt.lesson)
    kept = entry is not None and entry.receipt is not None
    yield Check(
        f"the journal holds the same receipt for lesson {receipt.lesson}",
        kept and json.loads(dumps(entry.receipt)) == json.loads(dumps(receipt.content())),
    )
    if receipt.kind == "erase":
        held = [journal.entry(id) for id in (receipt.lesson, *(receipt.purged or ()))]
        purged = all(each is not None and (each.rows is None or None in each.rows) for each in held)
        yield Check("the erased rows are no longer in the journal", purged)


def verify_by_file(receipt: Receipt, model: Model) -> Iterator[Check]:
    """Check the sums of a model file that contains the lesson of a receipt and no later one."""
    digest = former_sums_digest if receipt.form == FORMER else sums_digest
    yield Check("the model file has the sums that the receipt states", digest(model.stats) == receipt.sums_after)


def verify_by_refit(receipt: Receipt, model: Model, batches: Iterable[Batch], key: Key) -> Iterator[Check]:
    """Check that the model equals a fit to the rows that the owner kept, and that no removed row is among them."""
    fitted = replace(model.blank(), ledger=None)
    kept: set[str] = set()
    for batch in batches:
        fitted = fitted.learn(fitted.lesson(batch))
        kept.update(row_digests(batch.table, model.reader.columns, np.asarray(batch.labels).tolist(), key))
    yield Check("no removed row is among the kept rows", not kept.intersection(receipt.rows))
    yield Check("the model has the sums of the kept rows alone, to nine digits", same_sums(fitted.stats, model.stats))


def same_sums(one: Stats, two: Stats) -> bool:
    """Return whether two statistics have the same names, and sums that agree to nine digits of the largest."""
    first, second = Encoder(), Encoder()
    if first.encode(without_peaks(one), "") != second.encode(without_peaks(two), ""):
        return False
    for name, array in first.arrays.items():
        other = second.arrays[name]
        if array.shape != other.shape or array.dtype != other.dtype:
            return False
        if array.dtype.kind != "f":
            if not np.array_equal(array, other):
                return False
        elif not np.allclose(array, other, rtol=1e-9, atol=1e-9 * np.abs(other).max(initial=0.0), equal_nan=True):
            return False
    return True
