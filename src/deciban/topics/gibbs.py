"""Collapsed Gibbs sampling: states drawn from the posterior, where samples are wanted.

    p(z_i = k | all other z) ∝ (n_dk + α_k) (n_wk + β) / (n_k + Vβ)        counts without token i

Tokens follow each other, so one thread does it; the numbers drawn depend on seed and sweep alone.

Reference: Griffiths and Steyvers, Finding scientific topics, 2004.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from deciban.errors import DomainError
from deciban.kernels.choice import Array
from deciban.kernels.topics import gibbs_sweep
from deciban.topics.priors import Priors
from deciban.topics.starts import start_counts
from deciban.topics.sums import TopicSums

SWEEPS = 5  # in a step, so that a step gains about what one of the other methods gains
THIN = 5  # steps between samples that are kept
CHUNK = 2**14  # tokens that get their first topic at a time
WARM_UP = 10  # steps before α and β are learnt


class Gibbs:
    """The topic of every token, and the counts that follow."""

    def __init__(self, X: Any, K: int, priors: Priors, seed: int) -> None:
        whole = X.data.astype(np.int64)
        if (whole != X.data).any():
            at = int(np.argmax(whole != X.data))
            raise DomainError(
                f"an entry of column {int(X.indices[at])} is {X.data[at]:.6g}; Gibbs sampling draws a topic for each "
                "token, so counts must be whole numbers. Use method='scvb0' for weights."
            )
        rng = np.random.default_rng(seed)
        lengths = np.add.reduceat(np.append(whole, 0), X.indptr[:-1]) * (np.diff(X.indptr) > 0)
        self.limits = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        self.words = np.repeat(X.indices, whole).astype(np.int64)
        chances = np.cumsum(start_counts(X, K, rng) + np.float32(1e-6), axis=1, dtype=float)
        draws = rng.random(len(self.words)) * chances[self.words, -1]
        self.topics = np.empty(len(self.words), np.int64)
        for at in range(0, len(draws), CHUNK):
            here = slice(at, at + CHUNK)
            below = (chances[self.words[here]] <= draws[here, None]).sum(axis=1)
            self.topics[here] = np.minimum(below, K - 1)
        owner = np.repeat(np.arange(X.shape[0]), lengths)
        self.of_document, self.of_word = np.zeros((X.shape[0], K)), np.zeros((X.shape[1], K))
        np.add.at(self.of_document, (owner, self.topics), 1.0)
        np.add.at(self.of_word, (self.words, self.topics), 1.0)
        self.of_all = self.of_word.sum(axis=0)
        self.priors, self.seed, self.steps = priors, seed, 0

    def step(self) -> None:
        """Some sweeps over all tokens; α and β after a while."""
        for sweep in range(SWEEPS):
            draws = np.random.default_rng([self.seed, 1 + self.steps, sweep]).random(len(self.words))
            counts = (self.of_document, self.of_word, self.of_all)
            gibbs_sweep(self.limits, self.words, self.topics, *counts, self.priors.alpha, self.priors.beta, draws)
        self.steps += 1
        if self.steps > WARM_UP:
            self.priors = self.priors.for_documents(self.of_document, sure=True).for_words(self.of_word, sure=True)

    def samples(self, number: int) -> Array:
        """(S, V, K) counts of states THIN steps apart."""
        states = []
        for _ in range(number):
            for _ in range(THIN):
                self.step()
            states.append(self.of_word.astype(np.float32))
        return np.array(states)

    @property
    def sums(self) -> TopicSums:
        """The counts of words in topics."""
        return TopicSums(self.of_word)

    def table(self, words: Array) -> Array:
        """p(w|t) of some words, in this state."""
        return self.sums.table(words, self.priors.beta)

    def snapshot(self) -> None:
        """Nothing: one state of a sampler is not better than another."""

    def restore(self, kept: None) -> None:
        """Nothing to go back to."""
