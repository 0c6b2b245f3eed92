"""The running sums of a topic model: totals stay the sums of the counts, whatever is done to them."""

import numpy as np
import pytest

from deciban.topics.lda import TopicSums

rng = np.random.default_rng(0)
V, K, BETA = 12, 3, 0.01
WORDS = np.arange(V, dtype=np.int32)


def counts(rows=V):
    return rng.uniform(0.5, 3.0, (rows, K)).astype(np.float32)


def found(words):
    """Counts of some words, and their totals."""
    some = counts(len(words))
    return words, some, some.sum(axis=0, dtype=float)


CHANGES = {
    "stretch": lambda sums: sums.stretch(1.75),
    "shrink": lambda sums: sums.stretch(1e-9),
    "move": lambda sums: sums.move(*found(WORDS[3:7]), 0.25, 4.0),
    "move away": lambda sums: sums.move(*found(WORDS[3:7]), 1.0, 4.0),
    "add": lambda sums: sums.add(*found(WORDS[::3])),
    "stretch and add": lambda sums: (sums.stretch(2.5), sums.add(*found(WORDS[::3]))),
    "stretch and move": lambda sums: (sums.stretch(2.5), sums.move(*found(WORDS[3:7]), 0.25, 4.0)),
    "grow": lambda sums: (sums.stretch(2.0), sums.grow(V + 5)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_totals_are_the_sums_of_the_counts(change):
    sums = TopicSums(counts())
    CHANGES[change](sums)
    totals = sums.totals
    np.testing.assert_allclose(totals, sums.final().sum(axis=0, dtype=float), rtol=1e-5)


@pytest.mark.parametrize("change", CHANGES)
def test_the_words_of_a_topic_have_probabilities_that_sum_to_one(change):
    sums = TopicSums(counts())
    CHANGES[change](sums)
    table = sums.table(np.arange(sums.V, dtype=np.int32), BETA)
    np.testing.assert_allclose(table.sum(axis=0), 1.0, rtol=1e-4)


def test_a_factor_scales_every_count():
    held = counts()
    sums = TopicSums(held.copy())
    sums.stretch(1.75)
    np.testing.assert_allclose(sums.final(), 1.75 * held, rtol=1e-6)
