"""Digests of sums, for receipts: of a large table of words, only what a lesson changed is read again.

The words of a learnt vocabulary are sorted. They are cut into chunks of about 64 words: a chunk begins with each word
of which a hash has a certain value, so that a word that comes or goes changes one chunk, or two. The digest of a chunk
is the BLAKE2b-256 of its words and their counts; the digest of the sums is the BLAKE2b-256 of the digests of all chunks
and of everything else. It depends on names and numbers alone: sums that are computed another way have the same digest.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from json import dumps
from typing import TYPE_CHECKING, Any

import numpy as np

from deciban.model.model import Model
from deciban.statistics import Array, Stats
from deciban.statistics.changed_columns import ChangedColumns
from deciban.store.codec import Encoder

if TYPE_CHECKING:
    from deciban.text.stats import TextStats
    from deciban.text.vocabulary import Vocabulary

BYTES_AT_A_TIME = 2**20  # of an array, fed to a digest in one step
CHUNK_WORDS = 64  # words of a chunk, about
CHUNKS_AT_A_TIME = 128  # whose columns are read in one step
FIRST = ""  # name of the chunk of the words before the first word that begins one; it may be empty


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
    """Return the digest of sums. Peaks, which remember the largest value that a sum ever had, are left out."""
    steps = SumsDigests().stats_steps(stats)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return str(end.value)


def former_sums_digest(stats: Stats) -> str:
    """Return the digest of sums as receipts of the first form have it: of all arrays, one after the other."""
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
    """Computes digests of the sums of models; what belongs to the last model is kept, because the next is like it."""

    def __init__(self) -> None:
        self._last: tuple[Model, str] | None = None
        self._tables: list[WordChunks] = []  # of the last sums, in their order

    def of(self, model: Model) -> str:
        """Return the digest of the sums of a model."""
        for _ in self.steps(model):
            pass
        return self._last[1]  # type: ignore[index]  # the last step has set it

    def steps(self, model: Model) -> Iterator[None]:
        """Compute the digest of a model in steps of about a millisecond, so that it is there for the next receipt."""
        if self._last is None or self._last[0] is not model:
            made = yield from self.stats_steps(model.stats)
            self._last = model, made

    def stats_steps(self, stats: Stats) -> Generator[None, None, str]:
        """Compute the digest of sums in steps of about a millisecond; it is the value of the iteration."""
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
        from deciban.text.stats import TextStats, word_axis  # a model of other columns needs no modules of texts
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
    digests: dict[str, bytes]  # of the chunk that a word begins, and of the first

    def joined(self) -> Array:
        """Return the digests of all chunks in the order of their words, as bytes."""
        return np.frombuffer(b"".join(self.digests[name] for name in (FIRST, *self.starts)), np.uint8)


def _chunk_steps(table: TextStats, known: WordChunks | None) -> Generator[None, None, WordChunks]:
    """Compute the digests of the chunks of a table; those that are the same as in a known one are taken from it."""
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

    The words that begin chunks, and the digests of chunks that there are no more, are brought up to date.
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
    touched.update(bisect_left(starts, word) for word in before)  # the chunk before has other words, too
    for at in sorted(touched):
        first = 0 if at == 0 else insertion_point(words.names, names[at])
        yield names[at], first, len(words) if at + 1 == len(names) else insertion_point(words.names, names[at + 1])
