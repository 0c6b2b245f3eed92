"""Reader of documents in plain Python and numpy, for installations without compiled code and for few documents.

Loops over tokens run inside functions of Python's library (`map`, `re.findall`, dicts) and numpy; no statement of
Python runs for each token, except for the runs of characters of each different word.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain, pairwise, repeat
from typing import Any

import numpy as np

from deciban.statistics import Array
from deciban.text.kernels.streams import Chunk, InvalidTextError, Stream, document_of_token, interleaved
from deciban.text.tokens import Tokens
from deciban.text.word_delta import DeltaNumbers


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
    at[runs] = np.arange(len(runs))  # a place where each of them occurs
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
    first[ids[::-1]] = np.arange(len(ids))[::-1]  # of equal numbers, the first one is written last
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
