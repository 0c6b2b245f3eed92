"""Probabilistic latent semantic analysis by EM, without ever holding p(t|d,w).

    p(w|d) = Σ_t p(w|t) p(t|d)                    γ = p(t|d,w) ∝ [p(w|t) p(t|d)]^b

    p(t|d) ∝ Σ_w c_dw γ                           then, with the new p(t|d),
    p(w|t) ∝ Σ_d c_dw γ

With b = 1 the likelihood never falls. b < 1 is tempered EM: flatter γ, which over-fit less.

Reference: Hofmann, Unsupervised learning by probabilistic latent semantic analysis, 2001.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from deciban.errors import HyperparameterError
from deciban.kernels.choice import Array
from deciban.topics.course import Watch, run
from deciban.topics.face import StoredTopics, TopicFace
from deciban.topics.judging import prior_of
from deciban.topics.kernels import Rows, ThreadPool, plain_counts, row_log_likelihoods, transposed
from deciban.topics.kernels.layout import SINGLE_THREAD
from deciban.topics.state import Priors, start_counts

LEAST = 1e-19  # a share that is taken for 0: products of two smaller ones would be denormal, at ten times the cost
SMOOTHING = 1e-4  # of each topic, when it predicts documents that were not learnt: ML gives words probability 0


class Aspects:
    """p(t|d) and p(w|t), and how likely they make the data."""

    def __init__(
        self, X: Any, K: int, priors: Priors, seed: int, pool: ThreadPool = SINGLE_THREAD, power: float = 1.0
    ) -> None:
        rng = np.random.default_rng(seed)
        self.rows = Rows.of(X)
        self.by_word = transposed(self.rows, X.shape[1])
        self.documents = np.full((X.shape[0], K), 1 / K, np.float32)  # p(t|d)
        words = start_counts(X, K, rng)
        self.words = words / words.sum(axis=0)  # p(w|t)
        self.weights = np.full(K, 1 / K)  # p(t)
        self.priors, self.pool, self.power = priors, pool, power

    def step(self) -> None:
        """p(t|d), then p(w|t)."""
        table, shares = self._powered(self.words), self._powered(self.documents)
        counts = plain_counts(self.rows, table, shares, self.pool)
        self.documents = normalised(counts, counts.sum(axis=1, keepdims=True), self.documents)
        shares = self._powered(self.documents)
        sums = plain_counts(self.by_word, shares, table, self.pool)
        totals = sums.sum(axis=0, dtype=float)
        self.weights = totals / totals.sum()
        self.words = normalised(sums, totals, self.words)

    def log_likelihood(self) -> float:
        """Of a token that was learnt: the mean of log p(w|d)."""
        rows = Rows(self.rows.indptr, self.rows.indices, self.rows.data.astype(float))
        each = row_log_likelihoods(rows, self.words.astype(float), self.documents.astype(float), self.pool)
        return float(each.sum() / rows.data.sum())

    def _powered(self, probabilities: Array) -> Array:
        return probabilities if self.power == 1 else probabilities ** np.float32(self.power)

    def table(self, words: Array) -> Array:
        """p(w|t) of some words, smoothed."""
        return (1 - SMOOTHING) * self.words[words] + SMOOTHING / len(self.words)

    def snapshot(self) -> Any:
        """What to go back to."""
        return self.documents, self.words, self.weights

    def restore(self, kept: Any) -> None:
        """Back to a snapshot."""
        self.documents, self.words, self.weights = kept


def normalised(counts: Array, totals: Array, otherwise: Array) -> Array:
    """Rows, or columns, divided by their totals; those without counts stay as they were, and shares below LEAST end."""
    totals = totals.astype(counts.dtype)
    if not totals.all():
        counts = np.where(totals > 0, counts, otherwise)
        totals = np.where(totals > 0, totals, 1)
    shares = counts / totals
    shares *= shares >= LEAST
    return shares


def folded(X: Any, words: Array, steps: int, pool: ThreadPool) -> Array:
    """(n, K) p(t|d) of new documents, p(w|t) fixed: EM from equal shares."""
    rows = Rows.of(X)
    shares = np.full((X.shape[0], words.shape[1]), 1 / words.shape[1], np.float32)
    for _ in range(steps):
        counts = plain_counts(rows, words, shares, pool)
        shares = normalised(counts, counts.sum(axis=1, keepdims=True), shares)
    return shares


# -- plsa ----------
# Probabilistic latent semantic analysis as an estimator.

FOLD_STEPS = 50
COOLER, COOLEST = 0.9, 0.5  # tempering: each step flattens γ by this, down to this


class PLSA(TopicFace):
    """Topics by maximum likelihood: p(w|d) = Σ_t p(w|t) p(t|d), fitted by EM on sparse counts.

    n_topics  : how many; or several numbers, of which held-out documents choose
    temper    : b in γ ∝ [p(w|t) p(t|d)]^b; "auto" lowers it while that helps held-out documents
    max_iter  : passes over all documents, at most; they end when five gain less than a share `tol` of perplexity
    held_out  : the share of documents that are not learnt but watch for over-fitting; "auto" is 5 %, of 100 or more

    Texts are counted here (ngrams, stop_words, stem, min_df, max_df, max_words), or X is a table of counts, best CSR;
    fractions count as weights. For new documents p(w|t) stays as it is.

    >>> from deciban import PLSA
    >>> texts = ["cats purr and cats sleep", "dogs bark and dogs run", "a cat may purr", "some dogs bark"] * 5
    >>> model = PLSA(2, stop_words=["and", "may", "some"], random_state=0).fit(texts)
    >>> sorted(sorted(words) for words in model.top_words(2))
    [['bark', 'dogs'], ['cats', 'purr']]
    >>> model.transform(["dogs bark", "cats purr", "dogs and cats"]).max(axis=1).round(1).tolist()
    [1.0, 1.0, 0.5]
    """

    def __init__(
        self,
        n_topics: Any = 20,
        *,
        temper: Any = 1.0,
        max_iter: int = 100,
        tol: float = 1e-3,
        held_out: Any = "auto",
        ngrams: tuple[int, int] = (1, 1),
        stop_words: Any = "english",
        stem: str | None = None,
        min_df: float = 1,
        max_df: float = 1.0,
        max_words: int | None = None,
        random_state: Any = None,
        threads: int | None = None,
        progress: bool = False,
    ) -> None:
        self.n_topics = n_topics
        self.temper = temper
        self.max_iter = max_iter
        self.tol = tol
        self.held_out = held_out
        self.ngrams = ngrams
        self.stop_words = stop_words
        self.stem = stem
        self.min_df = min_df
        self.max_df = max_df
        self.max_words = max_words
        self.random_state = random_state
        self.threads = threads
        self.progress = progress

    def fit(self, X: Any, y: Any = None, *, words: Any = None, watch: Watch | None = None) -> Self:
        """Find the topics of documents.

        words : names of X's columns, if it is a table without any
        watch : called after each pass with a `Moment`: its number, the perplexity, and the state
        """
        sizes, power = self._sizes(), self._power()
        X, seed = self._learn_counts(X, words), self._seed()
        learnt, held = self._parted(X, seed, len(sizes) > 1)
        judge = self._judge(learnt, held, seed)
        best = None
        self.criteria_ = {}
        with self._pool() as pool:
            for K in sizes:
                found = Aspects(learnt, K, Priors(prior_of(None, K), 0.0, False, False), seed, pool, power)
                relax = None if self.temper != "auto" else lambda found=found: _cool(found)
                label = f"PLSA, {K} topics" if self.progress else None
                trace = run(found, judge, self.max_iter, self.tol, label, watch, relax)
                self.criteria_[K] = float(np.exp(-max(trace.objective, default=-np.inf)))
                if best is None or self.criteria_[K] < min(
                    self.criteria_[size] for size in self.criteria_ if size != K
                ):
                    best = found, trace
                if trace.interrupted:
                    break
        assert best is not None
        self._set(*best, held is not None)
        self.documents_, self.tokens_ = learnt.shape[0], float(learnt.data.sum())
        return self

    def _set(self, found: Aspects, trace: Any, honest: bool) -> None:
        self.components_ = np.ascontiguousarray(found.words.T)  # (K, V) p(w|t)
        self.weights_, self.power_ = found.weights, found.power
        self.n_topics_, self.n_iter_, self.trace_ = len(found.weights), max(trace.iterations, 1), trace
        self.log_likelihood_ = found.log_likelihood()
        self.perplexity_ = float(np.exp(-max(trace.objective, default=-np.inf)))
        self.held_out_ = honest

    def _power(self) -> float:
        power = 1.0 if self.temper == "auto" else self.temper
        if isinstance(power, str) or not 0 < power <= 1:
            raise HyperparameterError(f"temper={self.temper!r} must be 'auto' or above 0 and at most 1.")
        return float(power)

    def transform(self, X: Any) -> Array:
        """(n, K) p(t|d) of documents, folded in with p(w|t) fixed; equal shares where no word is known."""
        counts = self._counts(X)
        with self._pool() as pool:
            return folded(counts, np.ascontiguousarray(self.components_.T), FOLD_STEPS, pool)

    def _topics(self) -> Array:
        topics = self.components_.astype(float)
        return (1 - SMOOTHING) * topics / topics.sum(axis=1, keepdims=True) + SMOOTHING / topics.shape[1]

    def _weights(self) -> Array:
        return self.weights_

    def _prior(self) -> Array:
        return prior_of(None, self.n_topics_)

    def stored(self) -> StoredTopics:
        """As a file holds it."""
        return StoredTopics.of(self)


def _cool(found: Aspects) -> bool:
    """Flatter γ, unless they are flat enough."""
    found.power *= COOLER
    return found.power >= COOLEST
