"""Self-excluding stochastic CVB0: the default way to find topics.

A batch of documents at a time,

    γ_dwk ∝ (n_dk − γ + α_k) (n_wk − γ + β) / (n_k − γ + Vβ)        a pass over documents
    m_wk  = Σ_d c_dw γ_dwk                                          a pass over words
    n_wk  ← (1 − ρ) n_wk + ρ (N/N_batch) m_wk                       ρ = max((τ + t)^−½, 1/batches)

The token's own γ is taken out of all counts; without that, topics that only a document's own words hold up never die
(docs/decisions). It is computed anew in each pass rather than kept, so the state is one V × K matrix, and D × K numbers
to start the next visit of a document from: half as far again in the direction it moved, which gains what a second pass
over the documents would. ρ does not fall below one batch in all: N is then about the sum of the last visit of each
batch, with no need to keep what each visit had added.

Reference: Foulds, Boyles, DuBois, Smyth and Welling, Stochastic collapsed variational Bayesian inference for latent
Dirichlet allocation, 2013; self-exclusion as in Asuncion, Welling, Smyth and Teh, On smoothing and inference for topic
models, 2009.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from deciban.errors import DomainError
from deciban.kernels.choice import Array
from deciban.topics.kernels import (
    Rows,
    ThreadPool,
    by_word,
    exact_pass,
    excluding_documents,
    excluding_words,
    gibbs_sweep,
)
from deciban.topics.state import DocumentBatch, Priors, TopicSums, batches_of, start_counts

FIRST_PASSES = 5  # over documents that were never seen
OVER = 0.5  # over-relaxation of documents; 1 is the limit of what is stable, and 1.5 beyond it
DELAY = 10.0  # τ
POWER = 0.5
WARM_UP = 5  # epochs before α and β are learnt
BETA_EVERY = 5  # epochs: it takes all V × K counts
JUDGED = 500  # documents that α is learnt from


class Stochastic:
    """Batches, and the sums they move."""

    excluding = True  # False: tokens speak for themselves, to show what comes of it

    def __init__(self, X: Any, K: int, priors: Priors, seed: int, pool: ThreadPool, batch: int | None = None) -> None:
        rng = np.random.default_rng(seed)
        self.batches = batches_of(X, rng.permutation(X.shape[0]), batch)
        self.tokens = float(X.data.sum())
        self.sums = TopicSums(start_counts(X, K, rng))
        self.priors, self.seed, self.pool = priors, seed, pool
        self.epochs, self.steps = 0, 0

    def step(self) -> None:
        """All batches once, in an order of this epoch's own; then α and β."""
        order = np.random.default_rng([self.seed, 1 + self.epochs]).permutation(len(self.batches))
        for at in order:
            batch = self.batches[at]
            if not self.excluding:
                batch.near = np.zeros(batch.rows.size, np.float32)
            words, found, totals = share_out(batch, self.sums, self.priors, self.pool)
            self.steps += 1
            rate = max(falling_rate(self.steps), 1 / len(self.batches))
            self.sums.move(words, found, totals, min(rate, 1.0), self.tokens / batch.tokens, self.pool)
        self.epochs += 1
        if self.epochs > WARM_UP:
            self._learn_priors(order)

    def _learn_priors(self, order: Array) -> None:
        few = max(1, round(JUDGED / max(len(self.batches[0].rows), 1)))
        seen = [counts for at in order[-few:] if (counts := self.batches[at].counts) is not None]
        self.priors = self.priors.for_documents(np.concatenate(seen), steps=2)
        if self.epochs % BETA_EVERY == 0 and self.priors.learn_beta:
            self.priors = self.priors.for_words(self.sums.final())

    def whole(self) -> TopicSums:
        """The sum of what every document says under the present topics: each token once, not more of late ones."""
        everything = TopicSums(np.zeros_like(self.sums.counts))
        for batch in self.batches:
            everything.add(*share_out(batch, self.sums, self.priors, self.pool))
        return everything

    def table(self, words: Array) -> Array:
        """p(w|t) of some words."""
        return self.sums.table(words, self.priors.beta, self.pool)

    def snapshot(self) -> Any:
        """What to go back to."""
        return self.sums.counts.copy(), self.sums.scale, self.sums.totals.copy(), self.priors

    def restore(self, kept: Any) -> None:
        """Back to a snapshot."""
        self.sums.counts, self.sums.scale, self.sums.totals, self.priors = kept


def absorb(sums: TopicSums, X: Any, priors: Priors, pool: ThreadPool) -> None:
    """Add documents that were held out until now."""
    for batch in batches_of(X, np.arange(X.shape[0])):
        sums.add(*share_out(batch, sums, priors, pool))


def falling_rate(step: int) -> float:
    """ρ of a stream's batch."""
    return (DELAY + step) ** -POWER


def share_out(batch: DocumentBatch, sums: TopicSums, priors: Priors, pool: ThreadPool) -> tuple[Array, Array, Array]:
    """The words of a batch, their expected counts in topics, and the totals; the batch remembers its documents'."""
    alpha = priors.alpha.astype(np.float32)
    table, inverse = sums.table(batch.words, priors.beta, pool), sums.inverse(priors.beta)
    low, floor = float(alpha.min()), float(priors.beta * inverse.min())
    passes, before = 1, batch.counts
    if batch.counts is None or batch.near is None:
        lengths = batch.rows.lengths().astype(np.float32)
        batch.counts = np.repeat((lengths / len(alpha))[:, None], len(alpha), axis=1)
        batch.near = np.zeros(batch.rows.size, np.float32)
        passes = FIRST_PASSES
    for _ in range(passes):
        near, shares = batch.near, batch.counts + alpha
        batch.counts, batch.near, scale = excluding_documents(
            batch.rows, table, inverse, shares, low, floor, near, pool
        )
    found = excluding_words(batch.columns, shares, near, scale, table, inverse, low, floor, pool)
    totals = batch.counts.sum(axis=0, dtype=float)
    if before is not None:
        batch.counts = further(batch.counts, before)
    return batch.words, found, totals


def further(counts: Array, before: Array) -> Array:
    """Counts that have moved, moved on by OVER of that; none below 0."""
    moved = counts - before
    moved *= np.float32(OVER)
    moved += counts
    return np.maximum(moved, 0, out=moved)


# -- exact ----------
# Exact CVB0, for small corpora: the γ of every entry is kept, entries × K numbers.
#
#     γ_dwk ∝ (n_dk − γ_dwk + α_k) (n_wk − γ_dwk + β) / (n_k − γ_dwk + Vβ)
#
# All entries at once, then all counts: no entry depends on the order of documents.
#
# Reference: Asuncion, Welling, Smyth and Teh, On smoothing and inference for topic models, 2009.

SMALL = 2**22  # entries × topics up to which "auto" keeps every γ: 16 MB
EXACT_WARM_UP = 10  # steps before α and β are learnt
PRIORS_EVERY = 2
EXACT_JUDGED = 2000  # documents that α is learnt from


class Exact:
    """Every γ, and their sums."""

    def __init__(self, X: Any, K: int, priors: Priors, seed: int, pool: ThreadPool) -> None:
        rng = np.random.default_rng(seed)
        self.rows = Rows.of(X)
        self.columns = by_word(self.rows, X.shape[1])
        held = start_counts(X, K, rng)[X.indices] + np.float32(1e-6)
        self.held = held / held.sum(axis=1, keepdims=True)
        self.counts = self._sums(X, K)
        self.priors, self.pool, self.steps = priors, pool, 0

    def _sums(self, X: Any, K: int) -> tuple[Array, Array, Array]:
        of_document, of_word = np.zeros((X.shape[0], K), np.float32), np.zeros((X.shape[1], K), np.float32)
        weighted = self.rows.data[:, None] * self.held
        np.add.at(of_document, self.rows.owners(), weighted)
        np.add.at(of_word, self.rows.indices, weighted)
        return of_document, of_word, of_word.sum(axis=0)

    def step(self) -> None:
        """One pass over all entries; now and then α and β."""
        alpha = self.priors.alpha.astype(np.float32)
        self.held, self.counts = exact_pass(
            self.rows, self.columns, alpha, self.priors.beta, self.counts, self.held, self.pool
        )
        self.steps += 1
        if self.steps > EXACT_WARM_UP and self.steps % PRIORS_EVERY == 0:
            self.priors = self.priors.for_documents(self.counts[0][:EXACT_JUDGED]).for_words(self.counts[1])

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


# -- gibbs ----------
# Collapsed Gibbs sampling: states drawn from the posterior, where samples are wanted.
#
#     p(z_i = k | all other z) ∝ (n_dk + α_k) (n_wk + β) / (n_k + Vβ)        counts without token i
#
# Tokens follow each other, so one thread does it; the numbers drawn depend on seed and sweep alone.
#
# Reference: Griffiths and Steyvers, Finding scientific topics, 2004.

SWEEPS = 5  # in a step, so that a step gains about what one of the other methods gains
THIN = 5  # steps between samples that are kept
CHUNK = 2**14  # tokens that get their first topic at a time
GIBBS_WARM_UP = 10  # steps before α and β are learnt


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
        if self.steps > GIBBS_WARM_UP:
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
