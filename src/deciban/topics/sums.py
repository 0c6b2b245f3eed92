"""The state of a topic model: expected counts of words in topics, which add."""

from __future__ import annotations

from typing import Any

import numpy as np

from deciban.kernels.choice import Array
from deciban.kernels.topics import Crew, add_rows, word_rows
from deciban.kernels.topics.crew import ALONE

SMALLEST = 1e-6  # scale below which the counts themselves are scaled


class TopicSums:
    """n_wk, and n_k = Σ_w n_wk. A factor is kept apart, so that forgetting costs nothing."""

    def __init__(self, counts: Array) -> None:
        self.counts = np.ascontiguousarray(counts, dtype=np.float32)  # (V, K), times scale
        self.scale = 1.0
        self.totals = self.counts.sum(axis=0, dtype=float)

    @property
    def V(self) -> int:
        return len(self.counts)

    def inverse(self, beta: float) -> Array:
        """(K,) 1/(n_k + Vβ)."""
        return (1.0 / (np.maximum(self.totals, 0.0) + self.V * beta)).astype(np.float32)

    def table(self, words: Array, beta: float, crew: Crew = ALONE) -> Array:
        """p(w|t) = (n_wk + β)/(n_k + Vβ) of some words, (words, K)."""
        return word_rows(words, self.counts, self.scale, beta, self.inverse(beta), crew)

    def move(self, words: Array, found: Array, totals: Array, rate: float, times: float, crew: Crew = ALONE) -> None:
        """(1 − rate) of what was, and rate · times of what was found."""
        if rate == 1.0:  # nothing of the past is left
            self.counts[:] = 0
            self.scale, keep = 1.0, 0.0
        else:
            keep = 1.0 - rate
            self.scale *= keep
        add_rows(words, found, rate * times / self.scale, self.counts, crew)
        self.totals = keep * self.totals + rate * times * totals
        if self.scale < SMALLEST:
            self._settle()

    def stretch(self, times: float) -> None:
        """All counts times a factor."""
        self.scale *= times
        self.totals = self.totals * times

    def add(self, words: Array, found: Array, totals: Array) -> None:
        """What was found joins what is there."""
        add_rows(words, found, 1.0 / self.scale, self.counts)
        self.totals = self.totals + totals

    def grow(self, V: int) -> None:
        """Room for new words, of which nothing has been counted."""
        more: Any = np.zeros((V - self.V, self.counts.shape[1]), np.float32)
        self.counts = np.concatenate([self.counts, more])

    def _settle(self) -> None:
        self.counts *= np.float32(self.scale)
        self.scale = 1.0

    def final(self) -> Array:
        """(V, K) the counts."""
        self._settle()
        return self.counts
