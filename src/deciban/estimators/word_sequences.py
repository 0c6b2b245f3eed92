"""Sequences of words for a hidden Markov model: each word as itself, or by its ending and shape."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from deciban.families.categorical import Categorical
from deciban.families.protocol import Family
from deciban.latent.sequences import SequenceInput, Sequences, join
from deciban.text.word_shapes import MANY_WORDS, WordFeatures


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
