"""State of topic inference: batches of documents, expected counts, priors, and the counts to start from.

A batch holds only the words that it uses, so that its tables stay in the cache.

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

References: Minka, Estimating a Dirichlet distribution, 2000; Teh, Newman and Welling, A collapsed variational Bayesian
inference algorithm for latent Dirichlet allocation, 2006; Arthur and Vassilvitskii, k-means++: the advantages of
careful seeding, 2007.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.special import psi

from deciban.errors import HyperparameterError
from deciban.kernels.choice import Array
from deciban.topics.held_out import document_prior
from deciban.topics.kernels.layout import SINGLE_THREAD, Columns, Rows, ThreadPool, by_word, used_words
from deciban.topics.kernels.passes import add_rows, word_rows

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
    """Some documents, and the expected counts of their topics."""

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
    """E ψ(n + prior) − ψ(prior) of expected counts, or of exact ones.

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
    """A sample of the documents that hold words."""
    with_words = np.flatnonzero(np.diff(X.indptr) > 0)
    return X[np.sort(rng.permutation(with_words)[: min(MOST_SEEDS, max(SEEDS_PER_TOPIC * K, 500))])]


def _nearest(sample: sp.csr_array, K: int, rng: np.random.Generator) -> Array:
    """The centre closest to each document, shape (n,): k-means++ and some rounds of k-means."""
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
