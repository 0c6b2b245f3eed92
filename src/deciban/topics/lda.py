"""Inference for latent Dirichlet allocation: stochastic CVB0 (the default), exact CVB0, and collapsed Gibbs sampling.

All three exclude a token from the counts by which its topic is inferred. Without that, topics supported only by the
tokens of one document never vanish (decision 0012).

**Stochastic CVB0** takes a batch of documents at a time,

    γ_dwk ∝ (n_dk − γ + α_k) (n_wk − γ + β) / (n_k − γ + Vβ)        a pass over documents
    m_wk  = Σ_d c_dw γ_dwk                                          a pass over words
    n_wk  ← (1 − ρ) n_wk + ρ (N/N_batch) m_wk                       ρ = max((τ + t)^−½, 1/batches)

γ is computed again in each pass rather than kept, so the state is one V × K matrix, and D × K numbers from which the
next pass over a document starts. These are extrapolated by half of their last change, which gains as much as a second
pass over the documents. ρ is at least 1/batches: n is then about the sum over the last pass of each batch, without
keeping what each pass had added.

**Exact CVB0**, for small corpora, keeps the γ of every entry. All entries are updated at once, then all counts, so the
result does not depend on the order of documents.

**Gibbs sampling** draws states from the posterior,

    p(z_i = k | all other z) ∝ (n_dk + α_k) (n_wk + β) / (n_k + Vβ)        counts without token i

in one thread; the random numbers depend on the seed and the number of the sweep alone.

The concentrations α and β are learnt by Minka's fixed point. For counts n_dk drawn with weights θ_d ~ Dirichlet(α),

    α_k ← α_k Σ_d [ψ(n_dk + α_k) − ψ(α_k)] / Σ_d [ψ(n_d + Σα) − ψ(Σα)]

Expected counts are not counts: an expected count of 0.01 means no token in 99 documents of 100, and the concave ψ would
overestimate it. So, as in collapsed variational Bayes, ψ is taken given at least one token, P = 1 − exp(−n):

    E ψ(n + α) − ψ(α)  ≈  P · [ψ(n/P + α) − ψ(α)]

Topics start around documents that are far apart, so that no two topics start with the same words. From random counts
alone, 4 runs in 10 on 2,000 simulated documents ended with two topics for one subject and one topic for two, and none
of 10 from here; with 500 documents it was 2 and 3 (decision 0012). Documents are picked as k-means++ picks them, by the
angle between the square roots of their counts; the documents closest to a picked one start its topic, mixed with random
counts, so that every topic has every word.

References: Foulds, Boyles, DuBois, Smyth and Welling, Stochastic collapsed variational Bayesian inference for latent
Dirichlet allocation, 2013; Asuncion, Welling, Smyth and Teh, On smoothing and inference for topic models, 2009;
Griffiths and Steyvers, Finding scientific topics, 2004; Minka, Estimating a Dirichlet distribution, 2000; Teh, Newman
and Welling, A collapsed variational Bayesian inference algorithm for latent Dirichlet allocation, 2006; Arthur and
Vassilvitskii, k-means++: the advantages of careful seeding, 2007.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.special import psi

from deciban.errors import DomainError, HyperparameterError
from deciban.families.protocol import Passes
from deciban.kernels.choice import Array
from deciban.topics.documents import document_prior, size_of_part
from deciban.topics.kernels import (
    SINGLE_THREAD,
    Columns,
    Rows,
    ThreadPool,
    TokenTopics,
    WordTopics,
    add_rows,
    by_word,
    exact_pass,
    excluding_documents,
    excluding_words,
    gibbs_sweep,
    used_words,
    word_rows,
)

LEAST_DOCUMENTS, MOST_DOCUMENTS = 128, 512  # documents in a batch
BATCHES = 32  # number of batches, if they are not too small then
SMALLEST = 1e-6  # scale below which the counts themselves are scaled
LEAST, MOST = 1e-5, 1e3  # bounds of learnt concentrations: that of a topic without words would go to 0
START_BETA = 0.01
BETA_COUNTS = 300_000  # counts from which β is learnt, evenly over the words
MOST_SEEDS, SEEDS_PER_TOPIC = 2000, 20  # documents among which starts are picked
SEEDED = 0.5  # share of the starting counts that comes from documents
ROUNDS = 2  # of k-means


# -- batches -----------------------------------------------------------------------------------------------------------
@dataclass
class DocumentBatch:
    """Some documents, and the expected counts of their topics.

    A batch holds only the words that it uses, so that its tables stay in the cache.
    """

    words: Array  # columns of the whole vocabulary, ascending
    rows: Rows
    columns: Columns
    tokens: float
    counts: Array | None = None  # (n, K) Σ c γ after the last pass
    near: Array | None = None  # (nnz,) see `excluding_documents`

    @classmethod
    def of(cls, X: sp.csr_array) -> DocumentBatch:
        """Make a batch of the rows of a CSR matrix."""
        words, rows = used_words(X, np.float32)
        return cls(words, rows, by_word(rows, len(words)), float(X.data.sum()))


def batches_of(X: sp.csr_array, order: Array, size: int | None = None) -> list[DocumentBatch]:
    """Return the documents that hold words, in a given order, as batches."""
    order = order[np.diff(X.indptr)[order] > 0]
    if size is None:
        size = int(np.clip(len(order) // BATCHES, LEAST_DOCUMENTS, MOST_DOCUMENTS))
    return [DocumentBatch.of(X[order[at : at + size]]) for at in range(0, len(order), size)]


# -- expected counts ---------------------------------------------------------------------------------------------------
class TopicSums:
    """Expected counts n_wk and totals n_k = Σ_w n_wk; a common factor is kept apart, so that scaling is cheap."""

    def __init__(self, counts: Array) -> None:
        self.counts = np.ascontiguousarray(counts, dtype=np.float32)  # (V, K), times scale
        self.scale = 1.0
        self.totals = self.counts.sum(axis=0, dtype=float)

    @property
    def V(self) -> int:
        return len(self.counts)

    def inverse(self, beta: float) -> Array:
        """Return 1/(n_k + Vβ), shape (K,)."""
        return (1.0 / (np.maximum(self.totals, 0.0) + self.V * beta)).astype(np.float32)

    def table(self, words: Array, beta: float, pool: ThreadPool = SINGLE_THREAD) -> Array:
        """Return p(w|t) = (n_wk + β)/(n_k + Vβ) of some words, shape (words, K)."""
        return word_rows(words, self.counts, self.scale, beta, self.inverse(beta), pool)

    def move(
        self, words: Array, found: Array, totals: Array, rate: float, times: float, pool: ThreadPool = SINGLE_THREAD
    ) -> None:
        """Replace the counts by (1 − rate) of them plus rate · times of the counts found."""
        if rate == 1.0:  # the old counts have weight 0
            self.counts[:] = 0
            self.scale, keep = 1.0, 0.0
        else:
            keep = 1.0 - rate
            self.scale *= keep
        add_rows(words, found, rate * times / self.scale, self.counts, pool)
        self.totals = keep * self.totals + rate * times * totals
        if self.scale < SMALLEST:
            self._scale_counts()

    def stretch(self, times: float) -> None:
        """Multiply all counts by a factor."""
        self.scale *= times
        self.totals = self.totals * times

    def add(self, words: Array, found: Array, totals: Array) -> None:
        """Add the counts found."""
        add_rows(words, found, 1.0 / self.scale, self.counts)
        self.totals = self.totals + totals

    def grow(self, V: int) -> None:
        """Append new words with counts of 0."""
        more: Any = np.zeros((V - self.V, self.counts.shape[1]), np.float32)
        self.counts = np.concatenate([self.counts, more])

    def _scale_counts(self) -> None:
        self.counts *= np.float32(self.scale)
        self.scale = 1.0

    def final(self) -> Array:
        """Return the counts, shape (V, K)."""
        self._scale_counts()
        return self.counts


# -- priors ------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Priors:
    """Concentrations: α of each topic in a document, β of each word in a topic, and whether each is learnt."""

    alpha: Array  # (K,)
    beta: float
    learn_alpha: bool = True
    learn_beta: bool = True

    @classmethod
    def given(cls, alpha: ArrayLike, beta: float | str, K: int) -> Self:
        """Read parameters: "learnt", a number, or an array for α."""
        for name, value in (("alpha", alpha), ("beta", beta)):
            if isinstance(value, str) and value != "learnt":
                raise HyperparameterError(f"{name}={value!r} must be 'learnt' or a number above 0.")
        learn_alpha, learn_beta = isinstance(alpha, str), isinstance(beta, str)
        start: Any = START_BETA if learn_beta else beta
        if not (isinstance(start, (int, float, np.number)) and 0 < float(start) < np.inf):
            raise HyperparameterError(f"beta={beta!r} must be 'learnt' or a number above 0.")
        return cls(document_prior(None if learn_alpha else alpha, K), float(start), learn_alpha, learn_beta)

    def learn_alpha_from(self, counts: Array, steps: int = 5, exact: bool = False) -> Self:
        """Take fixed-point steps of α on the expected, or exact, counts of some documents, shape (n, K)."""
        if not self.learn_alpha or not counts.size:
            return self
        counts = counts.astype(float)
        lengths, alpha = counts.sum(axis=1), self.alpha
        for _ in range(steps):
            gain = digamma_rise(counts, alpha, exact).sum(axis=0)
            alpha = np.clip(
                alpha * gain / max(digamma_rise(lengths, alpha.sum(), exact=True).sum(), 1e-300), LEAST, MOST
            )
        return replace(self, alpha=alpha)

    def learn_beta_from(self, counts: Array, steps: int = 5, exact: bool = False) -> Self:
        """Take fixed-point steps of β on the expected, or exact, counts of words in topics, shape (V, K)."""
        if not self.learn_beta:
            return self
        V, totals, beta = len(counts), counts.sum(axis=0, dtype=float), self.beta
        some = counts[:: max(1, counts.size // BETA_COUNTS)]
        positive = some[some > 1e-6].astype(float)  # smaller counts are negligible
        for _ in range(steps):
            below = len(some) * digamma_rise(totals, V * beta, exact=True).sum()
            beta = float(np.clip(beta * digamma_rise(positive, beta, exact).sum() / max(below, 1e-300), LEAST, MOST))
        return replace(self, beta=beta)


def digamma_rise(counts: Array, prior: Array | float, exact: bool = False) -> Array:
    """Return E ψ(n + prior) − ψ(prior) of expected counts, or of exact ones.

    >>> float(digamma_rise(np.array([3.0]), 0.5, exact=True)[0].round(6)) == round(1 / 0.5 + 1 / 1.5 + 1 / 2.5, 6)
    True
    >>> float(digamma_rise(np.array([0.01]), 0.5)[0].round(4))  # about 0.01 · 1/0.5
    0.0199
    """
    if exact:
        return psi(counts + prior) - psi(prior)
    present = -np.expm1(-np.maximum(counts, 1e-12))
    return present * (psi(counts / present + prior) - psi(prior))


# -- starts ------------------------------------------------------------------------------------------------------------
def start_counts(X: sp.csr_array, K: int, rng: np.random.Generator) -> Array:
    """Return counts to start from, float32 of shape (V, K); they sum to the tokens of X."""
    frequency = np.bincount(X.indices, X.data, X.shape[1])
    counts = rng.standard_gamma(1.0, (X.shape[1], K), dtype=np.float32)
    counts *= (frequency / K).astype(np.float32)[:, None]
    sample = _sample(X, K, rng)
    if K == 1 or sample.shape[0] < 2 * K:
        return counts
    own = _nearest(sample, K, rng)
    members = sp.csr_array((np.ones(len(own)), (own, np.arange(len(own)))), (K, len(own)))
    found = (members @ sample).tocoo()
    size = np.maximum(np.bincount(found.row, found.data, K), 1.0)
    counts *= np.float32(1 - SEEDED)
    counts[found.col, found.row] += (SEEDED * X.data.sum() / K * found.data / size[found.row]).astype(np.float32)
    return counts


def _sample(X: sp.csr_array, K: int, rng: np.random.Generator) -> sp.csr_array:
    """Return a sample of the documents that hold words."""
    with_words = np.flatnonzero(np.diff(X.indptr) > 0)
    return X[np.sort(rng.permutation(with_words)[: min(MOST_SEEDS, max(SEEDS_PER_TOPIC * K, 500))])]


def _nearest(sample: sp.csr_array, K: int, rng: np.random.Generator) -> Array:
    """Return the number of the centre closest to each document, (n,), by k-means++ and some rounds of k-means."""
    words, (_, local, data) = used_words(sample)
    unit = sp.csr_array((np.sqrt(data), local, sample.indptr), (sample.shape[0], len(words)))  # length √tokens
    unit = sp.csr_array(sp.diags_array(1 / np.sqrt(np.asarray(sample.sum(axis=1)).ravel())) @ unit).astype(np.float32)
    n, tries = unit.shape[0], 2 + int(np.log(K))
    picked = [int(rng.integers(n))]
    distance = 1 - unit @ unit[[picked[0]]].toarray()[0]
    for _ in range(K - 1):
        probability = np.maximum(distance, 0.0).astype(float) + 1e-12
        some = rng.choice(n, tries, p=probability / probability.sum())
        left = np.minimum(distance[:, None], 1 - np.asarray(unit @ unit[some].toarray().T))
        best = int(left.sum(axis=0).argmin())  # greedy variant: of several, the one that reduces distances most
        picked.append(int(some[best]))
        distance = left[:, best]
    centres = unit[picked].toarray().T
    for _ in range(ROUNDS):
        own = np.asarray(unit @ centres).argmax(axis=1)
        members = sp.csr_array((np.ones(n, np.float32), (own, np.arange(n))), (K, n))
        middle = (members @ unit).toarray()
        length = np.linalg.norm(middle, axis=1, keepdims=True)
        centres = np.where(length > 0, middle / np.where(length > 0, length, 1), centres.T).T
    return np.asarray(unit @ centres).argmax(axis=1)


# -- inference: stochastic CVB0, exact CVB0 and Gibbs sampling ---------------------------------------------------------
# stochastic CVB0
FIRST_PASSES = 5  # over documents that are new
OVER_RELAXATION = 0.5  # of documents' counts; stable up to 1
DELAY = 10.0  # τ
POWER = 0.5
WARM_UP = 5  # epochs before α and β are learnt
BETA_EVERY = 5  # epochs: learning β takes all V × K counts
ALPHA_DOCUMENTS = 500  # documents from which α is learnt
# exact CVB0
SMALL = 2**22  # entries × topics up to which method "auto" keeps every γ: 16 MB
EXACT_WARM_UP = 10  # steps before α and β are learnt
PRIORS_EVERY = 2  # steps
EXACT_ALPHA_DOCUMENTS = 2000
# Gibbs sampling
SWEEPS = 5  # in a step, which then gains about as much as a step of the other methods
THIN = 5  # steps between kept samples
CHUNK = 2**14  # tokens that get their first topic together
GIBBS_WARM_UP = 10  # steps before α and β are learnt


class StochasticCVB0:
    """Stochastic CVB0: batches of documents, and the expected counts that they move."""

    excluding = True  # benchmarks set False, which shows the effect of excluding tokens

    def __init__(
        self, X: sp.csr_array, K: int, priors: Priors, seed: int, pool: ThreadPool, batch: int | None = None
    ) -> None:
        rng = np.random.default_rng(seed)
        self.batches = batches_of(X, rng.permutation(X.shape[0]), batch)
        self.tokens = float(X.data.sum())
        self.sums = TopicSums(start_counts(X, K, rng))
        self.priors, self.seed, self.pool = priors, seed, pool
        self.epochs, self.steps = 0, 0

    def step(self) -> None:
        """Make one epoch: all batches in a random order, then α and β."""
        order = np.random.default_rng([self.seed, 1 + self.epochs]).permutation(len(self.batches))
        for at in order:
            batch = self.batches[at]
            if not self.excluding:
                batch.near = np.zeros(batch.rows.size, np.float32)
            words, found, totals = expect(batch, self.sums, self.priors, self.pool)
            self.steps += 1
            rate = max(learning_rate(self.steps), 1 / len(self.batches))
            self.sums.move(words, found, totals, min(rate, 1.0), self.tokens / batch.tokens, self.pool)
        self.epochs += 1
        if self.epochs > WARM_UP:
            self._learn_priors(order)

    def _learn_priors(self, order: Array) -> None:
        number = max(1, round(ALPHA_DOCUMENTS / max(len(self.batches[0].rows), 1)))
        seen = [counts for at in order[-number:] if (counts := self.batches[at].counts) is not None]
        self.priors = self.priors.learn_alpha_from(np.concatenate(seen), steps=2)
        if self.epochs % BETA_EVERY == 0 and self.priors.learn_beta:
            self.priors = self.priors.learn_beta_from(self.sums.final())

    def whole(self) -> TopicSums:
        """Return the expected counts of all documents under the present topics, each token counted once."""
        everything = TopicSums(np.zeros_like(self.sums.counts))
        for batch in self.batches:
            everything.add(*expect(batch, self.sums, self.priors, self.pool))
        return everything

    def table(self, words: Array) -> Array:
        """Return p(w|t) of some words, shape (words, K)."""
        return self.sums.table(words, self.priors.beta, self.pool)

    def snapshot(self) -> Any:
        """Return a copy of the state."""
        return self.sums.counts.copy(), self.sums.scale, self.sums.totals.copy(), self.priors

    def restore(self, kept: Any) -> None:
        """Return to a snapshot."""
        self.sums.counts, self.sums.scale, self.sums.totals, self.priors = kept


def add_documents(sums: TopicSums, X: sp.csr_array, priors: Priors, pool: ThreadPool) -> None:
    """Add the expected counts of documents that were held out."""
    for batch in batches_of(X, np.arange(X.shape[0])):
        sums.add(*expect(batch, sums, priors, pool))


def learning_rate(step: int) -> float:
    """Return ρ of the batch with this number."""
    return (DELAY + step) ** -POWER


def expect(batch: DocumentBatch, sums: TopicSums, priors: Priors, pool: ThreadPool) -> tuple[Array, Array, Array]:
    """Return a batch's words, their expected counts in topics, and the totals; `batch` keeps those of documents."""
    alpha, inverse = priors.alpha.astype(np.float32), sums.inverse(priors.beta)
    floor = np.float32(priors.beta * inverse.min())
    topics = WordTopics(sums.table(batch.words, priors.beta, pool), inverse, alpha.min(), floor)
    passes, before = 1, batch.counts
    if batch.counts is None or batch.near is None:
        lengths = batch.rows.lengths().astype(np.float32)
        batch.counts = np.repeat((lengths / len(alpha))[:, None], len(alpha), axis=1)
        batch.near = np.zeros(batch.rows.size, np.float32)
        passes = FIRST_PASSES
    for _ in range(passes):
        near, shares = batch.near, batch.counts + alpha
        batch.counts, batch.near, scale = excluding_documents(batch.rows, topics, shares, near, pool)
    found = excluding_words(batch.columns, topics, shares, near, scale, pool)
    totals = batch.counts.sum(axis=0, dtype=float)
    if before is not None:
        batch.counts = extrapolate(batch.counts, before)
    return batch.words, found, totals


def extrapolate(counts: Array, before: Array) -> Array:
    """Extrapolate counts by OVER_RELAXATION of their last change, at least 0."""
    moved = counts - before
    moved *= np.float32(OVER_RELAXATION)
    moved += counts
    return np.maximum(moved, 0, out=moved)


class AllCounts:
    """Counts of all documents at once: of topics in documents and in words, and of topics."""

    counts: tuple[Array, Array, Array]  # (n, K), (V, K), (K,)
    priors: Priors

    @property
    def sums(self) -> TopicSums:
        """Counts of words in topics."""
        return TopicSums(self.counts[1])

    def table(self, words: Array) -> Array:
        """Return p(w|t) of some words, shape (words, K)."""
        return self.sums.table(words, self.priors.beta)


class CVB0(AllCounts):
    """Exact CVB0: the γ of every entry, and their sums."""

    def __init__(self, X: sp.csr_array, K: int, priors: Priors, seed: int, pool: ThreadPool) -> None:
        rng = np.random.default_rng(seed)
        self.rows = Rows.of(X)
        self.columns = by_word(self.rows, X.shape[1])
        gamma = start_counts(X, K, rng)[X.indices] + np.float32(1e-6)
        self.gamma = gamma / gamma.sum(axis=1, keepdims=True)
        self.counts = self._sums(X, K)
        self.priors, self.pool, self.steps = priors, pool, 0

    def _sums(self, X: sp.csr_array, K: int) -> tuple[Array, Array, Array]:
        of_document, of_word = np.zeros((X.shape[0], K), np.float32), np.zeros((X.shape[1], K), np.float32)
        weighted = self.rows.data[:, None] * self.gamma
        np.add.at(of_document, self.rows.owners(), weighted)
        np.add.at(of_word, self.rows.indices, weighted)
        return of_document, of_word, of_word.sum(axis=0)

    def step(self) -> None:
        """Make one pass over all entries; every PRIORS_EVERY steps also α and β."""
        alpha = self.priors.alpha.astype(np.float32)
        self.gamma, self.counts = exact_pass(
            self.rows, self.columns, alpha, self.priors.beta, self.counts, self.gamma, self.pool
        )
        self.steps += 1
        if self.steps > EXACT_WARM_UP and self.steps % PRIORS_EVERY == 0:
            self.priors = self.priors.learn_alpha_from(self.counts[0][:EXACT_ALPHA_DOCUMENTS])
            self.priors = self.priors.learn_beta_from(self.counts[1])

    def snapshot(self) -> Any:
        """Return a copy of the state."""
        return self.gamma.copy(), tuple(part.copy() for part in self.counts), self.priors

    def restore(self, kept: Any) -> None:
        """Return to a snapshot."""
        self.gamma, self.counts, self.priors = kept


class Gibbs(AllCounts):
    """Collapsed Gibbs sampling: the topic of every token, and the counts."""

    def __init__(self, X: sp.csr_array, K: int, priors: Priors, seed: int) -> None:
        whole = X.data.astype(np.int64)
        if (whole != X.data).any():
            at = int(np.argmax(whole != X.data))
            raise DomainError(
                f"an entry of column {int(X.indices[at])} is {X.data[at]:.6g}; Gibbs sampling draws a topic for each "
                "token, so counts must be whole numbers. Use method='scvb0' for weights."
            )
        rng = np.random.default_rng(seed)
        lengths = np.add.reduceat(np.append(whole, 0), X.indptr[:-1]) * (np.diff(X.indptr) > 0)
        words = np.repeat(X.indices, whole).astype(np.int64)
        cumulative = np.cumsum(start_counts(X, K, rng) + np.float32(1e-6), axis=1, dtype=float)
        draws = rng.random(len(words)) * cumulative[words, -1]
        topics = np.empty(len(words), np.int64)
        for at in range(0, len(draws), CHUNK):
            here = slice(at, at + CHUNK)
            topics[here] = np.minimum((cumulative[words[here]] <= draws[here, None]).sum(axis=1), K - 1)
        self.tokens = TokenTopics(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64), words, topics)
        of_document, of_word = np.zeros((X.shape[0], K)), np.zeros((X.shape[1], K))
        np.add.at(of_document, (np.repeat(np.arange(X.shape[0]), lengths), topics), 1.0)
        np.add.at(of_word, (words, topics), 1.0)
        self.counts = of_document, of_word, of_word.sum(axis=0)
        self.priors, self.seed, self.steps = priors, seed, 0

    def step(self) -> None:
        """Make SWEEPS sweeps over all tokens; after GIBBS_WARM_UP steps also α and β."""
        for sweep in range(SWEEPS):
            draws = np.random.default_rng([self.seed, 1 + self.steps, sweep]).random(len(self.tokens.words))
            gibbs_sweep(self.tokens, self.counts, self.priors.alpha, self.priors.beta, draws)
        self.steps += 1
        if self.steps > GIBBS_WARM_UP:
            self.priors = self.priors.learn_alpha_from(self.counts[0], exact=True)
            self.priors = self.priors.learn_beta_from(self.counts[1], exact=True)

    def samples(self, number: int) -> Array:
        """Return the counts of states THIN steps apart, shape (S, V, K)."""
        states = []
        for _ in range(number):
            for _ in range(THIN):
                self.step()
            states.append(self.counts[1].astype(np.float32))
        return np.array(states)

    def snapshot(self) -> None:
        """Return None: the states of a sampler are not compared."""

    def restore(self, kept: None) -> None:
        """Do nothing."""


# -- documents in parts ------------------------------------------------------------------------------------------------
def _batches(X: sp.csr_array) -> list[DocumentBatch]:
    return batches_of(X, np.arange(X.shape[0]))


@dataclass(frozen=True, eq=False)
class TopicExpectation:
    """Returns the expected counts of words in topics, of the documents of a part, under the present topics."""

    counts: Array  # (V, K)
    priors: Priors

    def __call__(self, batches: Sequence[DocumentBatch]) -> tuple[Array]:
        found, present = TopicSums(np.zeros_like(self.counts)), TopicSums(self.counts)
        for batch in batches:
            found.add(*expect(replace(batch, counts=None, near=None), present, self.priors, SINGLE_THREAD))
        return (found.final(),)


class PartedTopics:
    """CVB0 of documents in parts; every pass takes all documents under the topics of the pass before.

    Nothing is kept of a document between passes, so that a pass which runs twice gives the same counts: the topics of a
    document are found again by FIRST_PASSES steps. The first topics and α are those of the first documents.
    """

    def __init__(self, passes: Passes, first: sp.csr_array, K: int, priors: Priors, seed: int) -> None:
        self.documents, self.tokens = passes.total(size_of_part)
        self.parts = passes.kept(_batches)
        self.sums = TopicSums(start_counts(first, K, np.random.default_rng(seed)))
        self.some = DocumentBatch.of(first[:ALPHA_DOCUMENTS])
        self.priors, self.steps = priors, 0

    def step(self) -> None:
        """Make one pass over all parts, then α and β."""
        (counts,) = self.parts.total(TopicExpectation(self.sums.final(), self.priors))
        self.sums = TopicSums(counts)
        self.steps += 1
        if self.steps > WARM_UP:
            some = replace(self.some, counts=None, near=None)
            expect(some, self.sums, self.priors, SINGLE_THREAD)
            assert some.counts is not None
            self.priors = self.priors.learn_alpha_from(some.counts, steps=2)
            if self.steps % BETA_EVERY == 0 and self.priors.learn_beta:
                self.priors = self.priors.learn_beta_from(self.sums.final())

    def table(self, words: Array) -> Array:
        """Return p(w|t) of some words, shape (words, K)."""
        return self.sums.table(words, self.priors.beta)

    def snapshot(self) -> Any:
        """Return the state."""
        return self.sums, self.priors

    def restore(self, kept: Any) -> None:
        """Return to a snapshot."""
        self.sums, self.priors = kept
