"""Counts: categories in columns and words in documents, beside scikit-learn's naive Bayes."""

from __future__ import annotations

from collections.abc import Iterator

from sklearn.naive_bayes import CategoricalNB, MultinomialNB

from harness import Row, at_least, benchmark
from side_by_side import Peer, fit_and_scores
from workloads import CATEGORICAL, MULTINOMIAL


@benchmark("categorical")
def categorical(share: float) -> Iterator[Row | str]:
    """Twenty columns of fifty categories, beside CategoricalNB."""
    yield from fit_and_scores(CATEGORICAL, share, Peer("CategoricalNB", CategoricalNB(), at_least(50), at_least(8)))


@benchmark("multinomial")
def multinomial(share: float) -> Iterator[Row | str]:
    """Words of documents as CSR, beside MultinomialNB."""
    yield from fit_and_scores(MULTINOMIAL, share, Peer("MultinomialNB", MultinomialNB(), at_least(3), at_least(3)))
