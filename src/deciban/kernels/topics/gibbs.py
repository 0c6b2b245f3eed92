"""Collapsed Gibbs sampling, one token after the other."""

from __future__ import annotations

from ..choice import Array, compiled
from . import twins

PYTHON = 1000  # elementary operations that take as long as a token in plain Python


def gibbs_sweep(
    limits: Array,
    words: Array,
    topics: Array,
    of_document: Array,
    of_word: Array,
    of_all: Array,
    alpha: Array,
    beta: float,
    draws: Array,
) -> None:
    """Draw the topic of each token given all others; topics and counts change in place.

    Tokens of document d are words[limits[d] : limits[d + 1]]; draws are uniform numbers, one a token.
    """
    if not compiled(len(words) * PYTHON):
        twins.gibbs_sweep(limits, words, topics, of_document, of_word, of_all, alpha, beta, draws)
        return
    from .compiled import gibbs_sweep as run

    run(limits, words, topics, of_document, of_word, of_all, alpha, beta, draws)
