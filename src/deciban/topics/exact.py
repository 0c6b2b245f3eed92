"""Exact CVB0, for small corpora: the γ of every entry is kept, entries × K numbers.

    γ_dwk ∝ (n_dk − γ_dwk + α_k) (n_wk − γ_dwk + β) / (n_k − γ_dwk + Vβ)

All entries at once, then all counts: no entry depends on the order of documents.

Reference: Asuncion, Welling, Smyth and Teh, On smoothing and inference for topic models, 2009.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from deciban.kernels.choice import Array
from deciban.kernels.topics import Crew, Rows, by_word, entry_shares
from deciban.topics.priors import Priors
from deciban.topics.starts import start_counts
from deciban.topics.sums import TopicSums

SMALL = 2**22  # entries × topics up to which "auto" keeps every γ: 16 MB
WARM_UP = 10  # steps before α and β are learnt
PRIORS_EVERY = 2
JUDGED = 2000  # documents that α is learnt from


class Exact:
    """Every γ, and their sums."""

    def __init__(self, X: Any, K: int, priors: Priors, seed: int, crew: Crew) -> None:
        rng = np.random.default_rng(seed)
        self.rows = Rows.of(X)
        self.columns = by_word(self.rows, X.shape[1])
        held = start_counts(X, K, rng)[X.indices] + np.float32(1e-6)
        self.held = held / held.sum(axis=1, keepdims=True)
        self.counts = self._sums(X, K)
        self.priors, self.crew, self.steps = priors, crew, 0

    def _sums(self, X: Any, K: int) -> tuple[Array, Array, Array]:
        of_document, of_word = np.zeros((X.shape[0], K), np.float32), np.zeros((X.shape[1], K), np.float32)
        weighted = self.rows.data[:, None] * self.held
        np.add.at(of_document, self.rows.owners(), weighted)
        np.add.at(of_word, self.rows.indices, weighted)
        return of_document, of_word, of_word.sum(axis=0)

    def step(self) -> None:
        """One pass over all entries; now and then α and β."""
        alpha = self.priors.alpha.astype(np.float32)
        self.held, self.counts = entry_shares(
            self.rows, self.columns, alpha, self.priors.beta, self.counts, self.held, self.crew
        )
        self.steps += 1
        if self.steps > WARM_UP and self.steps % PRIORS_EVERY == 0:
            self.priors = self.priors.for_documents(self.counts[0][:JUDGED]).for_words(self.counts[1])

    @property
    def sums(self) -> TopicSums:
        """The counts of words in topics."""
        return TopicSums(self.counts[1])

    def table(self, words: Array) -> Array:
        """p(w|t) of some words."""
        return self.sums.table(words, self.priors.beta)

    def snapshot(self) -> Any:
        """What to go back to."""
        return self.held.copy(), tuple(part.copy() for part in self.counts), self.priors

    def restore(self, kept: Any) -> None:
        """Back to a snapshot."""
        self.held, self.counts, self.priors = kept
