"""What is left open in text, and what it could become.

The vocabulary (where it is limited) and the idf are counted in the first documents. Transforms, pseudo-counts and runs
of words are offered to whoever can judge them by labels; nobody judging, it is the textbook's: counts, and 1.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from deciban.statistics import Members
from deciban.text.rows import TextRows
from deciban.text.stats import UNK
from deciban.text.terms import Idf

if TYPE_CHECKING:
    from deciban.text.family import Text

STRENGTHS = (1.0, 0.3, 0.1, 0.03, 0.01)
TRANSFORMS = {"multinomial": ("log", "counts"), "polya": ("log", "counts"), "bernoulli": ("binary",)}
WITH_PAIRS = ("log", "binary", "log+idf+unit")  # worth trying where pairs of words are counted too


def is_open(text: Text) -> bool:
    """Whether the first documents must be looked at before any are summed."""
    asked = text.pseudo_count == "auto" or text.ngrams == "auto"
    asked = asked or (text.transform == "auto" and text.reading != "bernoulli")
    return asked or _limited(text) or (text.terms.idf and text.idf is None)


def _limited(text: Text) -> bool:
    return text.words is None and not isinstance(text.vocabulary, tuple) and not text.limits.none


def textbook(text: Text) -> Text:
    """What is left open, as textbooks have it."""
    plain = replace(text, ngrams=(1, 1)) if text.ngrams == "auto" else text
    if plain.transform == "auto":
        plain = replace(plain, transform="binary" if plain.reading == "bernoulli" else "counts")
    return replace(plain, pseudo_count=1.0) if plain.pseudo_count == "auto" else plain


def candidates(text: Text, X: TextRows, members: Members) -> list[list[Text]]:
    """A line of pseudo-counts for every transform and length of run to choose from."""
    offered: list[list[Text]] = []
    for runs in _runs(text):
        transforms: Any = (runs.transform,)
        if runs.transform == "auto":
            paired = text.ngrams == "auto" and runs.tokens.ngrams[1] > 1
            transforms = WITH_PAIRS if paired and text.reading == "multinomial" else TRANSFORMS[text.reading]
        strengths = STRENGTHS if runs.pseudo_count == "auto" else (runs.pseudo_count,)
        limited = with_words(runs, X, members)
        for transform in transforms:
            made = with_idf(replace(limited, transform=transform, pseudo_count=strengths[0]), X, members)
            offered.append([made, *(replace(made, pseudo_count=strength) for strength in strengths[1:])])
    return offered


def _runs(text: Text) -> list[Text]:
    if text.ngrams != "auto":
        return [text]
    return [replace(text, ngrams=(1, 1)), replace(text, ngrams=(1, 2))]


def with_words(text: Text, X: TextRows, members: Members) -> Text:
    """The vocabulary that the limits leave of the first documents, frozen."""
    if not _limited(text):
        return text
    here, at = X.there()
    members = members if at is None else members.take(at)
    done = here.count_openly(text.tokens)
    present = done.matrix.astype(bool).astype(float)
    rows, documents = members.weights(), members.total(present)
    kept = text.limits.kept(rows.sum(), members.total(done.matrix.astype(float)).sum(axis=0), documents, rows)
    return replace(text, words=tuple(word for word in done.vocabulary.take(kept) if word != UNK))


def with_idf(text: Text, X: TextRows, members: Members) -> Text:
    """How rare each word is among the first documents, frozen."""
    if not text.terms.idf or text.idf is not None:
        return text
    here, at = X.there()
    members = members if at is None else members.take(at)
    done = here.count_openly(text.tokens)
    weight = members.row_weights()
    documents = np.bincount(done.matrix.indices, np.repeat(weight, np.diff(done.matrix.indptr)), len(done.vocabulary))
    return replace(text, idf=Idf.of(done.vocabulary, documents, float(weight.sum())))
