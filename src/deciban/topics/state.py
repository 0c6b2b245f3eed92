"""Documents cut into batches, each with only the words it uses: small tables stay in the cache."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from scipy.special import psi

from deciban.errors import HyperparameterError
from deciban.kernels.choice import Array
from deciban.topics.judging import prior_of
from deciban.topics.kernels import Columns, Rows, ThreadPool, add_rows, by_word, word_rows
from deciban.topics.kernels.layout import SINGLE_THREAD

LEAST_DOCUMENTS, MOST_DOCUMENTS = 128, 512  # documents in a batch
BATCHES = 32  # that there should be, if they are not too small then
WIDE = 20  # times as many words as entries: sorting the entries is then less work than looking through the words


@dataclass
class DocumentBatch:
    """Some documents, and what is known of their topics."""

    words: Array  # columns of the whole vocabulary, rising
    rows: Rows
    columns: Columns
    tokens: float
    counts: Array | None = None  # (n, K) Σ c γ at the last visit
    near: Array | None = None  # (nnz,) see `excluding_documents`

    @classmethod
    def of(cls, X: Any) -> DocumentBatch:
        """The rows of a CSR matrix."""
        words, local = local_columns(X.indices, X.shape[1])
        rows = Rows(X.indptr.astype(np.int64), local, X.data.astype(np.float32))
        return cls(words, rows, by_word(rows, len(words)), float(X.data.sum()))


def batches_of(X: Any, order: Array, size: int | None = None) -> list[DocumentBatch]:
    """All rows of X that hold words, in a given order, a batch at a time."""
    order = order[np.diff(X.indptr)[order] > 0]
    if size is None:
        size = int(np.clip(len(order) // BATCHES, LEAST_DOCUMENTS, MOST_DOCUMENTS))
    return [DocumentBatch.of(X[order[at : at + size]]) for at in range(0, len(order), size)]


def local_columns(indices: Array, V: int) -> tuple[Array, Array]:
    """The columns in use, and indices among them."""
    if WIDE * len(indices) < V:
        words, local = np.unique(indices, return_inverse=True)
        return words.astype(np.int64), local.astype(np.int32)
    used = np.zeros(V, dtype=bool)
    used[indices] = True
    place = np.cumsum(used, dtype=np.int32) - np.int32(1)
    return np.flatnonzero(used), place[indices]


# -- sums ----------
# The state of a topic model: expected counts of words in topics, which add.

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

    def table(self, words: Array, beta: float, pool: ThreadPool = SINGLE_THREAD) -> Array:
        """p(w|t) = (n_wk + β)/(n_k + Vβ) of some words, (words, K)."""
        return word_rows(words, self.counts, self.scale, beta, self.inverse(beta), pool)

    def move(
        self, words: Array, found: Array, totals: Array, rate: float, times: float, pool: ThreadPool = SINGLE_THREAD
    ) -> None:
        """(1 − rate) of what was, and rate · times of what was found."""
        if rate == 1.0:  # nothing of the past is left
            self.counts[:] = 0
            self.scale, keep = 1.0, 0.0
        else:
            keep = 1.0 - rate
            self.scale *= keep
        add_rows(words, found, rate * times / self.scale, self.counts, pool)
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


# -- priors ----------
# The concentrations α and β, learnt from expected counts.
#
# Minka's fixed point for counts n_dk drawn with weights θ_d ~ Dirichlet(α) is
#
#     α_k ← α_k Σ_d [ψ(n_dk + α_k) − ψ(α_k)] / Σ_d [ψ(n_d + Σα) − ψ(Σα)]
#
# Expected counts are not counts: 0.01 tokens are no token in 99 documents of 100, and ψ, concave, would make far too
# much
# of them. So, as in collapsed variational Bayes, ψ is taken where there is a token at all, P = 1 − exp(−n):
#
#     E ψ(n + α) − ψ(α)  ≈  P · [ψ(n/P + α) − ψ(α)]
#
# References: Minka, Estimating a Dirichlet distribution, 2000; Teh, Newman and Welling, A collapsed variational
# Bayesian
# inference algorithm for latent Dirichlet allocation, 2006.

LEAST, MOST = 1e-5, 1e3  # bounds of what is learnt: a topic that lost all its words would go to 0
START_BETA = 0.01
ENOUGH = 300_000  # counts that β is learnt from, evenly over the words


@dataclass(frozen=True)
class Priors:
    """α of each topic in a document, β of each word in a topic, and which of them are learnt."""

    alpha: Array  # (K,)
    beta: float
    learn_alpha: bool = True
    learn_beta: bool = True

    @classmethod
    def asked(cls, alpha: Any, beta: Any, K: int) -> Self:
        """What "learnt", a number, or for α an array says."""
        for name, value in (("alpha", alpha), ("beta", beta)):
            if isinstance(value, str) and value != "learnt":
                raise HyperparameterError(f"{name}={value!r} must be 'learnt' or a number above 0.")
        learn_alpha, learn_beta = isinstance(alpha, str), isinstance(beta, str)
        start = START_BETA if learn_beta else beta
        if not (np.isscalar(start) and 0 < float(start) < np.inf):  # type: ignore[arg-type]
            raise HyperparameterError(f"beta={beta!r} must be 'learnt' or a number above 0.")
        return cls(prior_of(None if learn_alpha else alpha, K), float(start), learn_alpha, learn_beta)  # type: ignore[arg-type]

    def for_documents(self, counts: Array, steps: int = 5, sure: bool = False) -> Self:
        """α after some fixed-point steps on the expected, or `sure`, counts of some documents, (n, K)."""
        if not self.learn_alpha or not counts.size:
            return self
        counts = counts.astype(float)
        lengths, alpha = counts.sum(axis=1), self.alpha
        for _ in range(steps):
            gain = rises(counts, alpha, sure).sum(axis=0)
            alpha = np.clip(alpha * gain / max(rises(lengths, alpha.sum(), sure=True).sum(), 1e-300), LEAST, MOST)
        return replace(self, alpha=alpha)

    def for_words(self, counts: Array, steps: int = 5, sure: bool = False) -> Self:
        """β after some fixed-point steps on the expected, or `sure`, counts of words in topics, (V, K)."""
        if not self.learn_beta:
            return self
        V, totals, beta = len(counts), counts.sum(axis=0, dtype=float), self.beta
        some = counts[:: max(1, counts.size // ENOUGH)]
        there = some[some > 1e-6].astype(float)  # less adds nothing that could be seen
        for _ in range(steps):
            below = len(some) * rises(totals, V * beta, sure=True).sum()
            beta = float(np.clip(beta * rises(there, beta, sure).sum() / max(below, 1e-300), LEAST, MOST))
        return replace(self, beta=beta)


def rises(counts: Array, prior: Any, sure: bool = False) -> Array:
    """E ψ(n + prior) − ψ(prior) of expected counts; `sure` counts are no expectations.

    >>> float(rises(np.array([3.0]), 0.5, sure=True)[0].round(6)) == round(1 / 0.5 + 1 / 1.5 + 1 / 2.5, 6)
    True
    >>> float(rises(np.array([0.01]), 0.5)[0].round(4))  # about 0.01 · 1/0.5
    0.0199
    """
    if sure:
        return psi(counts + prior) - psi(prior)
    present = -np.expm1(-np.maximum(counts, 1e-12))
    return present * (psi(counts / present + prior) - psi(prior))


# -- starts ----------
# Where topics start: around documents that are far apart, so that no two topics start with the same words.
#
# From random counts alone, 4 runs in 10 on 2,000 simulated documents ended with two topics for one subject and one
# topic
# for two, and none of 10 from here; with 500 documents it was 2 and 3 (decision 0012). Documents are picked as
# k-means++
# picks them, by the angle between the roots of their counts; all that are closest to a picked one
# are its topic's start, with random counts mixed in, so that every topic has every word.
#
# Reference: Arthur and Vassilvitskii, k-means++: the advantages of careful seeding, 2007.

MOST_SEEDS, EACH = 2000, 20  # documents looked at: this many a topic, but no more than that in all
SEEDED = 0.5  # share of the start that comes from documents
ROUNDS = 2  # of moving to the middle of one's documents


def start_counts(X: Any, K: int, rng: np.random.Generator) -> Array:
    """(V, K) float32 counts that sum to the tokens of X."""
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


def _sample(X: Any, K: int, rng: np.random.Generator) -> Any:
    """Documents that hold words."""
    there = np.flatnonzero(np.diff(X.indptr) > 0)
    return X[np.sort(rng.permutation(there)[: min(MOST_SEEDS, max(EACH * K, 500))])]


def _nearest(sample: Any, K: int, rng: np.random.Generator) -> Array:
    """(n,) which of K picked documents each document is closest to, after some rounds of k-means."""
    words, local = local_columns(sample.indices, sample.shape[1])
    unit = sp.csr_array((np.sqrt(sample.data), local, sample.indptr), (sample.shape[0], len(words)))  # length √tokens
    unit = sp.csr_array(sp.diags_array(1 / np.sqrt(np.asarray(sample.sum(axis=1)).ravel())) @ unit).astype(np.float32)
    n, tries = unit.shape[0], 2 + int(np.log(K))
    picked = [int(rng.integers(n))]
    apart = 1 - unit @ unit[[picked[0]]].toarray()[0]
    for _ in range(K - 1):
        chance = np.maximum(apart, 0.0).astype(float) + 1e-12
        some = rng.choice(n, tries, p=chance / chance.sum())
        left = np.minimum(apart[:, None], 1 - np.asarray(unit @ unit[some].toarray().T))
        best = int(left.sum(axis=0).argmin())  # the greedy variant: of several, the one that explains most
        picked.append(int(some[best]))
        apart = left[:, best]
    centres = unit[picked].toarray().T
    for _ in range(ROUNDS):
        own = np.asarray(unit @ centres).argmax(axis=1)
        members = sp.csr_array((np.ones(n, np.float32), (own, np.arange(n))), (K, n))
        middle = (members @ unit).toarray()
        length = np.linalg.norm(middle, axis=1, keepdims=True)
        centres = np.where(length > 0, middle / np.where(length > 0, length, 1), centres.T).T
    return np.asarray(unit @ centres).argmax(axis=1)
