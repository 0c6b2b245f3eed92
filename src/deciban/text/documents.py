"""Documents read in one pass: as given, as UTF-8 a chunk at a time, and as streams of feature numbers.

Documents are lists, arrays, or columns of pandas, polars and pyarrow. Arrow columns are read where they are. Everything
else is converted chunk by chunk, so that a chunk is still in the cache when its words are counted, and a corpus is
never held twice. Readers are compiled, or plain Python for small inputs and for installations without compiled code;
large inputs are read by several threads.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise, repeat
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa

from deciban.errors import InputError
from deciban.kernels.choice import SMALL_WORK, at_hand, compiled
from deciban.kernels.parallel import each, get_threads
from deciban.read.arrow import taken
from deciban.statistics import Array
from deciban.text.kernels.streams import (
    Chunk,
    InvalidTextError,
    Stream,
    document_of_token,
    interleaved,
    relabelled,
    without_id,
)
from deciban.text.tokens import Tokens
from deciban.text.vocabulary import DeltaNumbers, NewerBase, Vocabulary, encoded, name_buffers, text_array

if TYPE_CHECKING:
    from deciban.text.kernels.readers import NgramReader

Result = TypeVar("Result")
Reader: TypeAlias = "PlainReader | NgramReader"

CHUNK_BYTES = 2**20  # of text read at a time: large beside the cost of a call, small enough for the cache
PLAIN_CHUNK = 2**17  # likewise where plain Python reads: about two runs of characters for each byte, of eight bytes
FIRST_DOCUMENTS = 256  # documents in the first chunk of a list, whose lengths are not known yet
PLAIN_WORDS, PLAIN_CHARACTERS = 2**24, 2**22  # bytes that plain Python reads where nothing is compiled, by the unit
PLAIN_TOTAL = 2**26  # bytes that a process reads so before it compiles: longer than the compiler takes
WORK_PER_BYTE = 10  # elementary operations per byte of text in plain Python
BYTES_PER_RANGE = 2**22  # of documents that one thread reads; fewer are not worth a thread
MOST_RANGES = 16  # each has a table of the words found, and the tables are merged in one thread
ROUNDED_RANGES = 4  # ranges where sums are rounded: their number must not depend on the number of threads
TEXTS_AT_A_TIME = 2**12  # texts whose sizes are summed in one step
WORDS_AT_A_TIME = 2**12  # put into a dict in one step
BYTES_PER_WORD = 2  # of text that plain Python reads while one word is put into the table of a compiled reader


@dataclass(frozen=True)
class Documents:
    """n texts.

    >>> [chunk.text.tobytes() for chunk in Documents.of(["to be", "or not"]).chunks()]
    [b'to beor not']
    """

    texts: Any  # a list of str, or a pyarrow ChunkedArray of strings

    @classmethod
    def of(cls, texts: Any, encoding: str = "utf-8", decode_error: str = "strict") -> Documents:
        """Take a list, an array or a column of a frame; bytes are decoded."""
        if isinstance(texts, Documents):
            return texts
        if isinstance(texts, str | bytes):
            raise InputError("Iterable over raw text documents expected, string object received. Put it into a list.")
        if hasattr(texts, "__arrow_c_stream__") or hasattr(texts, "__arrow_c_array__"):
            return cls(_arrow_column(texts))
        if isinstance(texts, np.ndarray):
            if texts.ndim != 1:
                raise InputError(f"texts must be one column, but have shape {texts.shape}. Select one column.")
            texts = texts.tolist()
        texts = texts if isinstance(texts, list) else list(texts)
        if bytes in set(map(type, texts)):
            texts = [_decoded(text, row, encoding, decode_error) for row, text in enumerate(texts)]
        return cls(texts)

    @classmethod
    def joined(cls, parts: Sequence[Documents]) -> Documents:
        """Concatenate the documents of several."""
        if any(isinstance(part.texts, list) for part in parts):
            return cls([part[row] for part in parts for row in range(len(part))])
        return cls(pa.chunked_array([chunk for part in parts for chunk in part.texts.chunks]))

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, row: int) -> str:
        return self.texts[row] if isinstance(self.texts, list) else self.texts[row].as_py()

    def take(self, rows: Array) -> Documents:
        """Return the documents at these positions."""
        if isinstance(self.texts, list):
            return Documents([self.texts[row] for row in rows.tolist()])
        first, last = (int(rows[0]), int(rows[-1])) if len(rows) else (0, -1)
        if last - first + 1 == len(rows) and (np.diff(rows) == 1).all():
            return Documents(self.texts.slice(first, len(rows)))  # without a copy
        return Documents(taken(self.texts, rows))

    def at_least(self, size: int) -> bool:
        """Whether there are at least so many bytes of text; in a list, characters are counted instead of bytes."""
        if not isinstance(self.texts, list):
            return sum(_size(part) for part in self.texts.chunks) >= size
        total = 0
        for start in range(0, len(self.texts), TEXTS_AT_A_TIME):
            some = self.texts[start : start + TEXTS_AT_A_TIME]
            try:
                total += sum(map(len, some))
            except TypeError:  # not a text; refused when it is read
                total += sum(len(text) for text in some if isinstance(text, str))
            if total >= size:
                return True
        return total >= size

    def chunks(self, first: int = 0, last: int | None = None, size: int | None = None) -> Iterator[Chunk]:
        """Yield documents `first` to `last`, about `size` bytes at a time, by default `CHUNK_BYTES`."""
        last, size = len(self) if last is None else last, CHUNK_BYTES if size is None else size
        if isinstance(self.texts, list):
            yield from _converted(self.texts, first, last, size)
        else:
            row = first
            for part in self.texts.slice(first, last - first).chunks:
                yield from _cut(part, row, size)
                row += len(part)

    def ranges(self, number: int) -> list[tuple[int, int]]:
        """Cut the rows into so many ranges with about the same number of bytes each."""
        if number == 1:
            return [(0, len(self))]
        if isinstance(self.texts, list):
            sizes = np.fromiter(map(len, self.texts), np.int64, len(self))
        else:
            sizes = np.concatenate([np.diff(_buffers(part)[1]) for part in self.texts.chunks] or [np.zeros(0, int)])
        ends = np.cumsum(sizes)
        total = int(ends[-1]) if len(ends) else 0
        cuts = [0, *(int(np.searchsorted(ends, total * i // number)) for i in range(1, number)), len(self)]
        return list(pairwise(cuts))


def _decoded(text: Any, row: int, encoding: str, errors: str) -> Any:
    if not isinstance(text, bytes):
        return text
    try:
        return text.decode(encoding, errors)
    except UnicodeDecodeError as error:
        raise InputError(
            f"document {row} is not valid {encoding}: {error.reason} at byte {error.start}. "
            "Give its encoding, or decode_error='replace' or 'ignore'."
        ) from error


def _arrow_column(texts: Any) -> Any:
    """Return a ChunkedArray of strings without gaps; plain strings are not copied."""
    try:
        column = texts if isinstance(texts, pa.ChunkedArray) else pa.chunked_array(texts)
    except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeEncodeError):
        return list(texts)  # a column of Python objects, which are examined one by one
    if pa.types.is_null(column.type) and len(column):
        _refuse_missing(column)
    if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
        raise InputError("the column holds bytes. Decode it, or cast it to strings if it is UTF-8.")
    if pa.types.is_dictionary(column.type):
        spelt = [part.dictionary.cast(pa.large_string()).take(part.indices) for part in column.chunks]
        column = pa.chunked_array(spelt, pa.large_string())
    if pa.types.is_string_view(column.type):
        column = column.cast(pa.large_string())
    if not (pa.types.is_large_string(column.type) or pa.types.is_string(column.type)):
        raise InputError(f"texts must be strings, but the column holds {column.type}.")
    if column.null_count:
        _refuse_missing(column)
    return column


def _refuse_missing(column: pa.ChunkedArray) -> None:
    row = int(np.flatnonzero(column.is_null().to_numpy())[0])
    raise InputError(f"document {row} is missing (None). Drop the row, or give an empty text.")


def _buffers(part: pa.Array) -> tuple[Array, Array]:
    """Return the text and the offsets of an Arrow array of strings; the offsets are checked, the text is not."""
    width = np.int64 if pa.types.is_large_string(part.type) else np.int32
    _, starts, text = part.buffers()
    if not len(part) or starts is None:
        return np.zeros(0, np.uint8), np.zeros(1, np.int64)
    offsets = np.frombuffer(starts, width)[part.offset : part.offset + len(part) + 1].astype(np.int64, copy=False)
    letters = np.zeros(0, np.uint8) if text is None else np.frombuffer(text, np.uint8)
    if offsets[0] < 0 or offsets[-1] > len(letters) or np.any(offsets[1:] < offsets[:-1]):
        raise InputError("the Arrow column is broken: its offsets do not lie within its text.")
    return letters, offsets


def _size(part: pa.Array) -> int:
    _, offsets = _buffers(part)
    return int(offsets[-1] - offsets[0])


def _cut(part: pa.Array, row: int, size: int) -> Iterator[Chunk]:
    """Cut an Arrow array into chunks; its first document has the number `row`."""
    text, offsets = _buffers(part)
    begin = 0
    while begin < len(part):
        end = int(np.searchsorted(offsets, offsets[begin] + size, side="right")) - 1
        end = min(max(end, begin + 1), len(part))
        yield Chunk(text, offsets[begin : end + 1], row + begin)
        begin = end


def _converted(texts: list[Any], first: int, last: int, size: int) -> Iterator[Chunk]:
    """Encode a list chunk by chunk; the size of a chunk follows from the mean length in the one before."""
    begin, number = first, FIRST_DOCUMENTS
    while begin < last:
        end = min(begin + number, last)
        try:
            text, offsets = encoded(texts[begin:end])
        except (TypeError, UnicodeEncodeError):
            _refuse_first_bad(texts, begin, end)
            raise
        yield Chunk(text, offsets, begin)
        number = int(np.clip(size * (end - begin) // max(len(text), 1), 1, 2**16))
        begin = end


def _refuse_first_bad(texts: list[Any], begin: int, end: int) -> None:
    """Name the first document that is missing, not a text, or holds half a surrogate pair."""
    for row in range(begin, end):
        text = texts[row]
        if text is None or text != text:
            raise InputError(f"document {row} is missing ({text}). Drop the row, or give an empty text.")
        if not isinstance(text, str):
            raise InputError(f"document {row} is not a text but {type(text).__name__}: {text!r:.60}.")
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InputError(
                f"document {row} holds half a surrogate pair, {text[error.start]!r}, at character {error.start}. "
                "Decode it anew with errors='replace'."
            ) from None


def is_large(documents: Documents, words: int = 0) -> bool:
    """Whether the text is long enough for compiled kernels, if a table of so many words must be made first."""
    large = documents.at_least(SMALL_WORK // WORK_PER_BYTE + BYTES_PER_WORD * words)
    return compiled(SMALL_WORK if large else 0)


def read_compiled(documents: Documents, tokens: Tokens) -> bool:
    """Whether compiled kernels read the documents.

    Up to `PLAIN_WORDS` bytes (`PLAIN_CHARACTERS` for runs of characters) they are used only if their machine code is
    loaded or on disk, or if this process has read `PLAIN_TOTAL` bytes in plain Python: compiling takes longer than a
    few fits and answers. Both return the same numbers to the bit.
    """
    if not is_large(documents):
        return False
    kernel, most = ("read_words", PLAIN_WORDS) if tokens.unit == "word" else ("read_characters", PLAIN_CHARACTERS)
    ready = plain_bytes.read >= PLAIN_TOTAL or documents.at_least(most)
    return compiled(SMALL_WORK if ready or at_hand("deciban.text.kernels.readers", kernel) else 0)


class _PlainBytes:
    """How many bytes of text this process has read in plain Python."""

    read = 0


plain_bytes = _PlainBytes()


# -- plain reader: Python and numpy ------------------------------------------------------------------------------------
# Loops over tokens run inside functions of Python's library (`map`, `re.findall`, dicts) and numpy; no statement of
# Python runs for each token, except for the runs of characters of each different word.
class PlainReader:
    r"""Reads documents into feature numbers in plain Python; features are numbered in the order of their arrival.

    >>> reader = PlainReader(Tokens(pattern=r"\S+"))
    >>> text = np.frombuffer(b"to be or not to be", np.uint8)
    >>> reader.read(Chunk(text, np.array([0, 8, 18])))
    [Stream(ids=array([0, 1, 2, 3, 0, 1], dtype=int32), lengths=array([3, 3]))]
    """

    in_order = True

    def __init__(self, tokens: Tokens, known: dict[str, int] | DeltaNumbers | None = None) -> None:
        """With `known` numbers, no others are given."""
        self.tokens, self.grow, self.columns = tokens, known is None, None
        self.number: Any = _numbering() if known is None else known

    @property
    def sizes(self) -> list[int]:
        """The number of features at each level, of which there is one."""
        return [len(self.number)]

    def read(self, chunk: Chunk) -> list[Stream]:
        """Return the numbers of each document's features; without `grow`, new features have the number len(number)."""
        texts, tokens = _texts(chunk), self.tokens
        plain_bytes.read += int(chunk.offsets[-1] - chunk.offsets[0])
        if tokens.unit == "char_wb" and tokens.analyser is None:
            return [self._within_words(texts)]
        if tokens.unit == "word" and tokens.analyser is None and tokens.ngrams[1] > 1:
            return [self._runs_of_words(texts)]
        each = tokens.analyse_all(texts)
        return [Stream(self._numbers(chain.from_iterable(each)), _sizes(each))]

    def _numbers(self, names: Iterable[str]) -> Array:
        """Return the numbers of features, which get new ones if `grow`."""
        if self.grow:
            return np.fromiter(map(self.number.__getitem__, names), np.int32)
        return np.fromiter(map(self.number.get, names, repeat(len(self.number))), np.int32)

    def _within_words(self, texts: list[str]) -> Stream:
        """Return the numbers of each text's runs of characters within words; a word's runs are found once."""
        words = self.tokens.spaced_words(texts)
        codes, names = _numbered(chain.from_iterable(words))
        runs, spelt, sizes = runs_within(names, *self.tokens.ngrams)
        found = self._numbers(spelt)[runs]
        of_word = sizes[codes]  # of each word of the texts: how many runs it has
        before = np.cumsum(sizes) - sizes
        place = np.repeat(before[codes] - (np.cumsum(of_word) - of_word), of_word) + np.arange(of_word.sum())
        limits = np.concatenate([[0], np.cumsum(of_word)])[np.concatenate([[0], np.cumsum(_sizes(words))])]
        return Stream(found[place], np.diff(limits))

    def _runs_of_words(self, texts: list[str]) -> Stream:
        """Return the numbers of each text's runs of words; each different run is spelt once."""
        low, high = self.tokens.ngrams
        words = self.tokens.words_of(texts)
        lengths = _sizes(words)
        first, names = _numbered(chain.from_iterable(words))
        left = np.cumsum(lengths)[document_of_token(Stream(first, lengths))] - np.arange(len(first))  # to the end
        codes, spelt = first.astype(np.int64), names  # of the run that begins at each word, and how it is spelt
        levels, features = [], list[str]()
        for n in range(1, high + 1):
            if n > 1:
                starts = np.flatnonzero(left >= n)
                pairs, keys = _numbered((codes[starts] * len(names) + first[starts + n - 1]).tolist())
                spelt = [f"{spelt[key // len(names)]} {names[key % len(names)]}" for key in keys]
                codes[starts] = pairs
            if n >= low:
                levels.append(Stream(codes[left >= n] + len(features), np.maximum(lengths - (n - 1), 0)))
                features += spelt
        ids, lengths = interleaved(levels)
        order = np.arange(len(features)) if len(levels) == 1 else _by_first_occurrence(ids, len(features))
        number = np.empty(len(features), np.int32)
        number[order] = self._numbers(map(features.__getitem__, order.tolist()))
        return Stream(number[ids], lengths)


def runs_within(words: Sequence[str], low: int, high: int) -> tuple[Array, Sequence[str], Array]:
    """Return the runs of characters within all words, the different runs in the order of arrival, and sizes by word.

    A word stands between spaces; a word that is too short for a run counts once, as a whole.

    >>> runs_within(["to", "not"], 3, 4)
    (array([0, 1, 2, 3, 4, 5, 6, 7]), [' to', 'to ', ' to ', ' no', 'not', 'ot ', ' not', 'not '], array([3, 5]))
    """
    joined = "".join([f" {word} " for word in words])
    lengths = np.fromiter(map(len, words), np.int64, len(words)) + 2
    counts = np.maximum(lengths - np.arange(low, high + 1)[:, None] + 1, 0)  # (n, words)
    counts[0] = np.maximum(counts[0], 1)
    before = np.cumsum(counts, axis=0) - counts  # runs of the word with fewer characters
    sizes = counts.sum(axis=0)
    starts, firsts = np.cumsum(lengths) - lengths, np.cumsum(sizes) - sizes
    begin, end = np.empty((2, sizes.sum()), np.int64)
    for n, number, earlier in zip(range(low, high + 1), counts, before):
        place = np.arange(number.sum()) - np.repeat(np.cumsum(number) - number, number)
        to, at = np.repeat(firsts + earlier, number) + place, np.repeat(starts, number) + place
        begin[to], end[to] = at, np.minimum(at + n, np.repeat(starts + lengths, number))
    keys = _keys(joined, begin, end, high)
    if keys is None:
        runs, spelt = _numbered(map(joined.__getitem__, map(slice, begin.tolist(), end.tolist())))
        return runs, spelt, sizes
    different, found = np.unique(keys, return_inverse=True)
    order = _by_first_occurrence(found, len(different))
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order))
    runs = number[found]
    at = np.empty(len(order), np.int64)
    at[runs] = np.arange(len(runs))  # a position at which each run occurs
    return runs, [joined[a:b] for a, b in zip(begin[at].tolist(), end[at].tolist())], sizes


def _keys(text: str, begin: Array, end: Array, longest: int) -> Array | None:
    """Return a number for each part of a text, the same for equal parts; None if 63 bits are too few for them."""
    points: Array = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    bits = int(points.max(initial=0) + 1).bit_length()
    if bits * longest > 63:
        letters, points = np.unique(points, return_inverse=True)
        bits = len(letters).bit_length()
        if bits * longest > 63:
            return None
    points = np.append(points.astype(np.int64) + 1, 0)  # no letter has the number 0
    keys = np.zeros(len(begin), np.int64)
    for n in range(longest):
        at = begin + n
        keys |= np.where(at < end, points[np.minimum(at, len(points) - 1)], 0) << (n * bits)
    return keys


def _numbering() -> defaultdict[Any, int]:
    """Return a dict that gives each new key the next number."""
    number: defaultdict[Any, int] = defaultdict()
    number.default_factory = number.__len__
    return number


def _numbered(items: Iterable[Any]) -> tuple[Array, list[Any]]:
    """Return the number of each item, and the different items in the order of their first occurrence."""
    number = _numbering()
    return np.fromiter(map(number.__getitem__, items), np.int32), list(number)


def _by_first_occurrence(ids: Array, size: int) -> Array:
    """Return the numbers 0 … size − 1, each of which occurs, in the order of their first occurrence."""
    first = np.empty(size, np.int64)
    first[ids[::-1]] = np.arange(len(ids))[::-1]  # written in reverse, so that the first of equal numbers stays
    return np.argsort(first)


def _sizes(each: list[list[str]]) -> Array:
    return np.fromiter(map(len, each), np.int64, len(each))


def _texts(chunk: Chunk) -> list[str]:
    """Decode the documents of a chunk."""
    begin = int(chunk.offsets[0])
    raw, ends = chunk.text[begin : chunk.offsets[-1]].tobytes(), (chunk.offsets - begin).tolist()
    if raw.isascii():
        whole = raw.decode("ascii")
        return [whole[start:end] for start, end in pairwise(ends)]
    texts: list[str] = []
    try:
        for start, end in pairwise(ends):
            texts.append(raw[start:end].decode())
    except UnicodeDecodeError:
        raise InvalidTextError(chunk.first + len(texts)) from None
    return texts


# -- readers -----------------------------------------------------------------------------------------------------------
def make_reader(tokens: Tokens, vocabulary: Vocabulary | None, fast: bool) -> Reader:
    """Make a reader of new features, or of the features of a vocabulary; `fast` asks for a compiled one."""
    if not (fast and tokens.compiled):
        return PlainReader(tokens, None if vocabulary is None else _numbers(tokens, vocabulary))
    from deciban.text.kernels.hash_tables import WordTable
    from deciban.text.kernels.readers import CharacterReader, NgramReader, WordReader

    options: dict[str, Any] = {
        "lowercase": tokens.lowercase,
        "prepare": tokens.prepare,
        "strip_accents": tokens.strip_accents is not None,
        "grow": vocabulary is None,
        "by_script": tokens.by_script,
    }
    words = WordTable(0 if vocabulary is None else len(vocabulary))
    low, high = tokens.ngrams
    if tokens.unit != "word":
        reader = NgramReader(CharacterReader(words, low, high, tokens.unit == "char_wb", **options))
    else:
        labelled = tokens.stem is not None or tokens.stop_words is not None
        reader = NgramReader(WordReader(words, **options), low, high, tokens.labels if labelled else None)
    if vocabulary is not None:
        _fill(reader, vocabulary)
    return reader


def _numbers(tokens: Tokens, vocabulary: Vocabulary) -> dict[str, int] | DeltaNumbers:
    """Return the column of each word; for a vocabulary with a base, by the dict of the base, which is kept."""
    delta = vocabulary.delta
    if delta is None:
        return {name: at for at, name in enumerate(vocabulary)}
    kind, readers = (tokens, False, False), delta.base.readers
    reader = readers.take(kind, lambda: PlainReader(tokens, _numbers(tokens, delta.base)))
    readers.put(kind, reader)  # a plain reader of a vocabulary does not change while it reads
    return DeltaNumbers(reader.number, delta)


def steps_to_base(vocabulary: Vocabulary, tokens: Tokens) -> Iterator[None]:
    """Make a vocabulary with many changes the base of later changes, with its reader, in steps of a few milliseconds.

    Without these steps, the lesson that reaches `MOST_CHANGES` makes the base at once: 0.15 s for 200,000 words.
    """
    delta = vocabulary.delta
    if delta is None or delta.base.readers.newer is not None or not delta.is_long:
        return
    base, number = Vocabulary(vocabulary.names, vocabulary.kind), dict[str, int]()
    for start in range(0, len(base), WORDS_AT_A_TIME):
        names = base.names[start : start + WORDS_AT_A_TIME].to_pylist()
        number.update(zip(names, range(start, start + len(names))))
        yield
    base.readers.put((tokens, False, False), PlainReader(tokens, number))
    delta.base.readers.newer = NewerBase(base, delta)


def _fill(reader: NgramReader, vocabulary: Vocabulary) -> None:
    """Give a new compiled reader a vocabulary's features; `columns` maps numbers to columns where they differ."""
    if not reader.tables and reader.lowest == 1:
        reader.words.look_up(*_padded(vocabulary.names), grow=True)
        return
    import pyarrow.compute as pc

    parts = pc.split_pattern(vocabulary.names, " ")
    number = pc.list_value_length(parts).to_numpy()
    coded = parts.flatten().dictionary_encode()
    reader.words.look_up(*_padded(text_array(coded.dictionary)), grow=True)
    words = coded.indices.to_numpy()
    starts = np.cumsum(number) - number
    other = len(vocabulary) if vocabulary.unk else -1  # the column of features outside
    found_columns = []
    runs = words[starts]  # of each feature, the number of its first words
    for n in range(1, len(reader.tables) + 2):
        if n > 1:
            longer = np.flatnonzero(number >= n)
            runs[longer] = reader.tables[n - 2].add_pairs(runs[longer], words[starts[longer] + n - 1])
        if n >= reader.lowest:
            whole = np.flatnonzero(number == n)
            # runs that are only the beginning of a longer feature are outside, too
            level = np.full(len(reader.words) if n == 1 else len(reader.tables[n - 2]), other, np.int32)
            level[runs[whole]] = whole
            found_columns.append(np.append(level, other).astype(np.int32))
    reader.columns = found_columns


def _padded(names: pa.LargeStringArray) -> tuple[Array, Array]:
    """Return the text and the offsets of names, with the sixteen bytes after the last that kernels may read."""
    letters, offsets = name_buffers(names)
    return np.append(letters[offsets[0] : offsets[-1]], np.zeros(16, np.uint8)), offsets - offsets[0]


def _found(readers: Sequence[Any]) -> tuple[pa.LargeStringArray, list[list[Array]]]:
    """Return the sorted names of all features found; and for each reader and level the position of each number."""
    if isinstance(readers[0], PlainReader):
        (reader,) = readers
        words = sorted(reader.number)
        place = dict(zip(words, range(len(words))))
        return text_array(words), [[np.fromiter(map(place.__getitem__, reader.number), np.int32, len(words))]]
    from deciban.text.kernels.streams_compiled import merged

    text, offsets, places = merged(readers)
    return pa.LargeStringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(text)), places


# -- passes ------------------------------------------------------------------------------------------------------------
class DocumentPass:
    """Reads documents into streams of feature numbers.

    With a vocabulary there is one stream per chunk, of columns. Without, there is one stream for each length of run,
    and `places` gives the column of each number afterwards.
    """

    def __init__(
        self,
        documents: Documents,
        tokens: Tokens,
        vocabulary: Vocabulary | None = None,
        threads: int | None = None,
        fast: bool = False,
        rounded: bool = False,
    ) -> None:
        """With `rounded` sums, the ranges and the kind of reader depend on the documents alone.

        Rounded sums differ with the ranges and with the kind of reader, and must not depend on the number of threads or
        on machine code on disk.
        """
        self.documents, self.tokens, self.vocabulary, self.threads = documents, tokens, vocabulary, threads
        if fast:
            self.fast = compiled(SMALL_WORK)
        else:
            self.fast = is_large(documents) if rounded else read_compiled(documents, tokens)
        self.ranges = documents.ranges(self._number(rounded))

    def _number(self, rounded: bool) -> int:
        """Return the number of ranges."""
        if not (self.fast and self.tokens.compiled) or len(self.documents) < 2:
            return 1
        if self.threads is not None and not rounded:
            return min(self.threads, len(self.documents))
        number = ROUNDED_RANGES if rounded else min(get_threads(), MOST_RANGES)
        while number > 1 and not self.documents.at_least(number * BYTES_PER_RANGE):
            number -= 1
        return number

    def chunks(self, first: int, last: int) -> Iterator[Chunk]:
        """Yield documents `first` to `last` in chunks that fit into the processor cache."""
        return self.documents.chunks(first, last, CHUNK_BYTES if self.fast else PLAIN_CHUNK)

    def run(self, act: Callable[[int, int], Result]) -> list[Result]:
        """Return act(first, last) for each range of documents, in threads."""
        return self.checked(lambda: each(lambda ends: act(*ends), self.ranges, threads=self.threads))

    def checked(self, act: Callable[[], Result]) -> Result:
        """Return act(), or raise an error that names the document which is not UTF-8."""
        try:
            return act()
        except InvalidTextError as error:
            raise InputError(
                f"document {error.document} is not valid UTF-8. Decode the column with its own encoding first."
            ) from None

    def reader(self, frequency: Callable[[], Array] | None = None) -> Any:
        """Return a reader: a new one, or an idle one of the vocabulary.

        A compiled one can be arranged by `frequency`, (V,), which grows with the frequency of a word: it is then a
        quarter faster.
        """
        if self.vocabulary is None:
            return make_reader(self.tokens, None, self.fast)
        kind = self._kind(frequency is not None)
        return self.vocabulary.readers.take(kind, lambda: self._made(frequency))

    def done(self, reader: Any, arranged: bool = False) -> None:
        """Return a reader of a vocabulary to the pool of the vocabulary."""
        if self.vocabulary is not None:
            self.vocabulary.readers.put(self._kind(arranged), reader)

    def _made(self, frequency: Callable[[], Array] | None) -> Reader:
        reader = make_reader(self.tokens, self.vocabulary, self.fast)
        if frequency is not None and not isinstance(reader, PlainReader) and not reader.tables:
            reader.words.arrange(np.argsort(-frequency()))
        return reader

    def _kind(self, arranged: bool) -> tuple[Tokens, bool, bool]:
        return self.tokens, self.fast, self.fast and arranged

    def read(self, reader: Any, chunk: Chunk) -> tuple[list[Stream], Array]:
        """Return the streams of a chunk, and the number of features of each document, outside the vocabulary or not."""
        streams = reader.read(chunk)
        lengths = np.sum([stream.lengths for stream in streams], axis=0)  # a copy: relabelling may overwrite them
        if self.vocabulary is None:
            return streams, lengths
        if reader.columns is None:  # numbers are columns; features outside have the number after the last
            known = streams if self.vocabulary.unk else [without_id(streams[0], len(self.vocabulary), self.fast)]
            return known, lengths
        known = [relabelled(stream, level, self.fast) for stream, level in zip(streams, reader.columns)]
        return [interleaved(known)], lengths

    def sizes(self, reader: Any) -> list[int]:
        """Return a bound for the numbers of each stream."""
        return reader.sizes if self.vocabulary is None else [self.vocabulary.columns]

    def places(self, readers: Sequence[Any]) -> tuple[Vocabulary, list[list[Array]]]:
        """Return the vocabulary, and for each reader and stream the column of each number."""
        if self.vocabulary is not None:
            return self.vocabulary, [[np.arange(self.vocabulary.columns, dtype=np.int32)]] * len(readers)
        names, places = _found(readers)
        return Vocabulary(names, "learnt"), places
