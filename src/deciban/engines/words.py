"""Large vocabularies in parts: sums of words are added by the hash of the word, then sorted by ranges of words.

A sum of texts is as large as its vocabulary. With P parts, part p has the words whose hash is p, so that no process
that adds sums holds more than its share, however the words are distributed. The words of one part are a random sample
of all words: its quantiles cut the vocabulary into ranges of nearly equal size. Each range is sorted by one process;
the concatenated ranges are the vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil
from typing import Any

import numpy as np
import pyarrow as pa

from deciban.families.product import ProductStats
from deciban.model.model import ModelStats
from deciban.read.arrow import taken
from deciban.statistics import LazyNames
from deciban.text.stats import TextStats, TextStatsWithDocuments, word_axis
from deciban.text.vocabulary import NameBuffer, Vocabulary, in_order

WORDS_OF_PART = 2**18  # words that are added by one process
MOST_PARTS = 64
GROWTH = 0.85  # upper limit of the exponent of Heaps' law in predictions; that of most texts is smaller

Key = Any  # of a block of texts: its columns; () where the model has no other columns
Size = Mapping[Key, tuple[int, int]]  # number of words and of their bytes, by block


@dataclass(frozen=True, eq=False)
class Words:
    """The sums of some of the words, for each block of texts."""

    blocks: Mapping[Key, TextStats]

    def __add__(self, other: Words) -> Words:
        return Words({key: sums + other.blocks[key] for key, sums in self.blocks.items()})


def text_blocks(stats: ModelStats) -> dict[Key, TextStats]:
    """Return the sums of texts whose words are learnt, by block."""
    blocks = stats.family.blocks if isinstance(stats.family, ProductStats) else {(): stats.family}
    return {key: sums for key, sums in blocks.items() if isinstance(sums, TextStats) and _vocabulary(sums) is not None}


def with_text_blocks(stats: ModelStats, blocks: Mapping[Key, TextStats]) -> ModelStats:
    """Return the sums with other sums of texts."""
    if not isinstance(stats.family, ProductStats):
        return replace(stats, family=blocks[()]) if blocks else stats
    return replace(stats, family=replace(stats.family, blocks={**stats.family.blocks, **blocks}))


def _vocabulary(sums: TextStats) -> Vocabulary | None:
    """Return the words of sums that can be split; None for words that are given, and for sums with documents."""
    if isinstance(sums, TextStatsWithDocuments):
        return None
    names: Any = sums.labels["word"].names  # type: ignore[union-attr]
    source = names.source if isinstance(names, LazyNames) else None
    return source if isinstance(source, Vocabulary) and source.kind == "learnt" else None


def parts_needed(stats: ModelStats, growth: float) -> int:
    """Return the number of parts for sums whose rows will become `growth` times as many."""
    words = max((predicted_words(sums, growth) for sums in text_blocks(stats).values()), default=0.0)
    return min(MOST_PARTS, max(1, ceil(words / WORDS_OF_PART)))


def predicted_words(sums: TextStats, growth: float) -> float:
    """Predict the number of words if the rows become `growth` times as many, by Heaps' law: V·growth^β.

    The next token is a new word with the probability V₁/n, where V₁ words occurred once among n tokens (Good and
    Turing), and so β, the slope of log V against log n, is V₁/V. Words whose total is at most 1 occurred once, or more
    often if documents count a word once or have unit length; the prediction is then too large.
    """
    words = sums.counts.shape[1]
    once = np.count_nonzero(sums.counts.sum(axis=0) <= 1)
    return words * growth ** min(GROWTH, once / max(1, words))


# -- by hash -----------------------------------------------------------------------------------------------------------
def parted(stats: ModelStats, parts: int) -> list[Any]:
    """Split sums into parts; the first has everything but words, and its share of the words."""
    if parts == 1:
        return [stats]
    found: list[dict[Key, TextStats]] = [{} for _ in range(parts)]
    for key, sums in text_blocks(stats).items():
        part = _known(sums).parts(parts)
        order = np.argsort(part, kind="stable")
        for at, words in enumerate(np.split(order, np.searchsorted(part[order], np.arange(1, parts)))):
            some = sums.select("word", words)
            found[at][key] = some if at == 0 else replace(some, rows=0 * some.rows, tokens=0 * some.tokens)
    return [with_text_blocks(stats, found[0]), *(Words(each) for each in found[1:])]


# -- by range ----------------------------------------------------------------------------------------------------------
def cuts(first: Any, parts: int) -> dict[Key, list[str]]:
    """Return the first words of all ranges but the first, as quantiles of the words of one part."""
    found = {}
    for key, sums in _blocks(first).items():
        names = _known(sums).names
        at = np.linspace(0, len(names), parts + 1)[1:-1].astype(np.int64)
        found[key] = [names[int(place)].as_py() for place in at] if len(names) else [""] * (parts - 1)
    return found


def ranged(some: Any, cuts: Mapping[Key, Sequence[str]]) -> list[Any]:
    """Split the sums of a part at the cuts; the first range has everything but words."""
    parts = 1 + max(map(len, cuts.values()))
    found: list[dict[Key, TextStats]] = [{} for _ in range(parts)]
    for key, sums in _blocks(some).items():
        names = _known(sums).names
        places = [0, *(_place(names, word) for word in cuts[key]), len(names)]
        for at, (begin, end) in enumerate(pairwise(places)):
            piece = sums.select("word", np.arange(begin, max(begin, end)))
            found[at][key] = piece if at == 0 else replace(piece, rows=0 * piece.rows, tokens=0 * piece.tokens)
    first = with_text_blocks(some, found[0]) if isinstance(some, ModelStats) else Words(found[0])
    return [first, *(Words(each) for each in found[1:])]


def joined(pieces: Sequence[Any]) -> Any:
    """Join the pieces of one range, one from each part: no word is in two of them. The classes may differ."""
    whole = next((piece for piece in pieces if isinstance(piece, ModelStats)), None)
    blocks = {}
    for key in _blocks(pieces[0]):
        each = [_blocks(piece)[key] for piece in pieces]
        rest = _without_words(each)
        names = pa.concat_arrays([_known(sums).names for sums in each])
        counts = np.concatenate([_counts(sums, rest) for sums in each], axis=1)
        order = in_order(names)
        blocks[key] = _with_words(rest, Vocabulary(taken(names, order), "learnt"), counts[:, order])
    return Words(blocks) if whole is None else with_text_blocks(whole, blocks)


def size(some: Any) -> Size:
    """Return the number of words, and of their bytes, in the sums of a part, by block."""
    known = {key: _known(sums) for key, sums in _blocks(some).items()}
    return {key: (len(vocabulary), vocabulary.letters) for key, vocabulary in known.items()}


def size_of_all(sizes: Sequence[Size]) -> Size:
    """Return the sum of the sizes of all parts, which have no word in common."""
    return {key: (sum(each[key][0] for each in sizes), sum(each[key][1] for each in sizes)) for key in sizes[0]}


def together(first: ModelStats, others: Iterable[Any], size: Size) -> ModelStats:
    """Concatenate the sums of all ranges; of `others`, one range is held at a time."""
    whole = {key: _Filled(sums, *size[key]) for key, sums in text_blocks(first).items()}
    for some in others:
        for key, sums in _blocks(some).items():
            whole[key].add(sums)
        del some, sums
    return with_text_blocks(first, {key: filled.done() for key, filled in whole.items()})


class _Filled:
    """The sums of all words of a block, filled range by range; mutable."""

    def __init__(self, first: TextStats, words: int, letters: int) -> None:
        self.rest = _without_words([first])
        self.names = NameBuffer(words, letters)
        self.counts = np.empty((len(first.counts), words))
        self.add(first)

    def add(self, sums: TextStats) -> None:
        """Append the next range."""
        start = self.names.count
        self.names.add(_known(sums).names)
        self.counts[:, start : self.names.count] = _counts(sums, self.rest)

    def done(self) -> TextStats:
        return _with_words(self.rest, Vocabulary(self.names.done(), "learnt"), self.counts)


def _without_words(pieces: Sequence[TextStats]) -> TextStats:
    """Return the sums of pieces but for words: classes, documents and tokens."""
    none = np.zeros(0, np.intp)
    rest = pieces[0].select("word", none)
    for sums in pieces[1:]:
        rest = rest + sums.select("word", none)
    return rest


def _counts(sums: TextStats, rest: TextStats) -> Any:
    """Return the counts of words with the classes of `rest`, shape (K, V)."""
    if sums.labels["class"] == rest.labels["class"]:
        return sums.counts
    counts = np.zeros((len(rest.counts), sums.counts.shape[1]))
    counts[rest.labels["class"].positions(sums.labels["class"])] = sums.counts  # type: ignore[arg-type]
    return counts


def _with_words(rest: TextStats, words: Vocabulary, counts: Any) -> TextStats:
    labels = {**rest.labels, "word": word_axis(words, "learnt")}
    return TextStats(labels, counts, rest.rows, rest.tokens)


def _blocks(some: Any) -> Mapping[Key, TextStats]:
    return text_blocks(some) if isinstance(some, ModelStats) else some.blocks


def _known(sums: TextStats) -> Vocabulary:
    found = _vocabulary(sums)
    assert found is not None  # only such sums are split
    return found


def _place(names: pa.LargeStringArray, word: str) -> int:
    """Return the number of names before a word; names are sorted by code points."""
    low, high = 0, len(names)
    while low < high:
        middle = (low + high) // 2
        if names[middle].as_py() < word:
            low = middle + 1
        else:
            high = middle
    return low
