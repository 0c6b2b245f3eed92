"""Choices of a family of texts: the candidates among which labels choose, and the usual choices without labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from deciban.statistics import Members
from deciban.text.counting import TextRows
from deciban.text.stats import UNK, Idf

if TYPE_CHECKING:
    from deciban.text.family import Text

PSEUDO_COUNTS = (1.0, 0.3, 0.1, 0.03, 0.01)  # candidates, the strongest prior first
POOLED_COUNTS = (3.0, 1.0, 0.3, 0.1, 0.03)  # likewise, where they are spread as the words of all classes are
TRANSFORMS = {"multinomial": ("log", "counts"), "polya": ("log", "counts"), "bernoulli": ("binary",)}
CHARACTERS = (2, 4)  # lengths of runs of characters
SHORT = 200  # mean number of characters of documents, up to which runs of characters are a candidate
ENOUGH_ROWS = 100  # fewer do not show that characters are better
ENOUGH_FOR_PAIRS = 1_000  # of short documents; fewer do not show that pairs of words are better


def lines(text: Text, X: TextRows, members: Members) -> list[list[Text]]:
    """Return a line of pseudo-counts for each transform, each spread of them, and each kind of features."""
    made: list[list[Text]] = []
    for features, transforms, bases in _features(text, X):
        features = with_words(features, X, members)
        for transform in transforms if text.transform == "auto" else (text.transform,):
            chosen = with_idf(replace(features, transform=transform), X, members)
            made += [_line(chosen, base) for base in bases]
    return made


def _features(text: Text, X: TextRows) -> Iterator[tuple[Text, Sequence[str], Sequence[str]]]:
    """Yield the family with each kind of features, the transforms and the spreads of pseudo-counts to try with it."""
    transforms, bases = TRANSFORMS[text.reading], _bases(text)
    words: dict[str, Any] = {"unit": "word"} if text.unit == "auto" else {}
    short = text.unit == "auto" and len(X) >= ENOUGH_ROWS and not X.documents.at_least(SHORT * len(X))
    pairs = text.ngrams == "auto" or (short and len(X) >= ENOUGH_FOR_PAIRS)
    by_word = replace(text, **words) if words else text
    yield replace(by_word, ngrams=(1, 1)) if pairs else by_word, transforms, bases
    if pairs:
        yield replace(by_word, ngrams=(1, 2)), transforms[:1], bases
    if short:
        yield replace(text, unit="char_wb", ngrams=CHARACTERS), transforms[:1], bases


def _bases(text: Text) -> tuple[str, ...]:
    """Return the candidates for how pseudo-counts are spread."""
    if text.base != "auto":
        return (text.base,)
    return ("flat", "pooled") if text.pseudo_count == "auto" and text.reading != "bernoulli" else ("flat",)


def _line(text: Text, base: Any) -> list[Text]:
    """Return candidates that differ in the pseudo-count, the strongest prior first."""
    if text.pseudo_count != "auto":
        return [replace(text, base=base)]
    first, *others = POOLED_COUNTS if base == "pooled" else PSEUDO_COUNTS
    made = replace(text, base=base, pseudo_count=first)
    return [made, *(_with_pseudo_count(made, strength) for strength in others)]


def _with_pseudo_count(text: Text, pseudo_count: float) -> Text:
    """Copy with another pseudo-count; the other options were checked."""
    other = copy(text)
    object.__setattr__(other, "pseudo_count", pseudo_count)
    return other


def usual(text: Text) -> Text:
    """Return the family with the usual choices for what is open, except words and idf."""
    transform = "binary" if text.reading == "bernoulli" else "counts"
    each = {"ngrams": (1, 1), "unit": "word", "transform": transform, "pseudo_count": 1.0, "base": "flat"}
    left_open: dict[str, Any] = {name: value for name, value in each.items() if getattr(text, name) == "auto"}
    return replace(text, **left_open) if left_open else text


def with_words(text: Text, X: TextRows, members: Members) -> Text:
    """Freeze the vocabulary that the limits leave of the first documents."""
    if text.fixed_vocabulary is not None or text.limits.none:
        return text
    X, members = X.with_members(members)
    done = X.count(text.tokens)
    present = done.matrix.astype(bool).astype(float)
    rows, documents = members.weights(), members.total(present)
    kept = text.limits.kept(rows.sum(), members.total(done.matrix.astype(float)).sum(axis=0), documents, rows)
    return replace(text, words=tuple(word for word in done.vocabulary.take(kept) if word != UNK))


def with_idf(text: Text, X: TextRows, members: Members) -> Text:
    """Freeze the inverse document frequencies of the first documents, where they decide what is summed."""
    if not (text.terms.idf and text.terms.unit) or text.idf is not None:
        return text
    X, members = X.with_members(members)
    done, weight = X.count(text.tokens), members.row_weights()
    entry = np.repeat(weight, np.diff(done.matrix.indptr))
    documents = np.bincount(done.matrix.indices, entry, len(done.vocabulary))
    return replace(text, idf=Idf.of(done.vocabulary, documents, float(weight.sum())))
