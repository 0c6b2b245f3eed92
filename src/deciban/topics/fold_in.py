"""Topic shares of new documents under fixed topics, and their uncertainty.

The posterior of a short document is computed exactly. Given the topics z of its tokens, θ is Dirichlet(α + n), and n
holds the number of tokens of each topic:

    p(n | words)  ∝  Π_k Γ(α_k + n_k) · Σ_{z with counts n} Π_i p(w_i|z_i)

The inner sum is accumulated token by token over all vectors n. There are C(N + K, N) of them up to N tokens, so long
documents get approximate moments: CVB0 for the mean, and linear response for the variance.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import gammaln

from deciban.errors import HyperparameterError
from deciban.kernels import softmax
from deciban.kernels.choice import Array
from deciban.kernels.rows import distinct_rows
from deciban.topics.kernels.layout import Rows, ThreadPool, used_words
from deciban.topics.kernels.passes import fold_in

STEPS, TOLERANCE = 200, 1e-5  # of fold-in
ENTRY_STEPS = 10  # fixed-point steps of γ given the counts
CHUNK = 2**21  # numbers held at a time
MOST_STATES = 2**14  # vectors of counts up to which a posterior is exact: 4 tokens with 20 topics, 6 with 10


@dataclass(frozen=True, eq=False)
class TopicShares:
    """Posterior of the topic shares θ of documents.

    The topics themselves, p(w|t), are taken as known. Short documents have exact moments; those of longer ones are
    approximate, which `exact` tells: the mean by CVB0, the variance by linear response. Where words fit several topics
    alike, an approximate standard deviation may be off by a quarter.

    Attributes
    ----------
    mean : ndarray of shape (n_documents, n_components)
        Expected shares.
    sd : ndarray of shape (n_documents, n_components)
        Standard deviations of the shares.
    exact : ndarray of bool of shape (n_documents,)
        Whether mean and standard deviation of a document are exact, given the topics.
    """

    mean: Array
    sd: Array
    exact: Array

    def interval(self, level: float = 0.95) -> tuple[Array, Array]:
        """Lower and upper bounds of each share: quantiles of the Beta distribution with this mean and variance."""
        from scipy.stats import beta

        if not 0 < level < 1:
            raise HyperparameterError(f"level={level} must lie between 0 and 1.")
        mean = np.clip(self.mean, 1e-12, 1 - 1e-12)
        size = np.maximum(mean * (1 - mean) / np.maximum(self.sd, 1e-9) ** 2 - 1, 1e-9)
        tail = (1 - level) / 2
        return beta.ppf(tail, mean * size, (1 - mean) * size), beta.ppf(1 - tail, mean * size, (1 - mean) * size)

    def __repr__(self) -> str:
        n, K = self.mean.shape
        exact = int(self.exact.sum())
        return f"TopicShares({n} documents, {K} topics; {exact} exact, {n - exact} approximate)"


class FoldedIn(NamedTuple):
    """Documents and their expected counts under fixed topics."""

    rows: Rows
    table: Array  # (words used, K) p(w|t)
    counts: Array  # (n, K) Σ c γ


def fold_in_documents(X: sp.csr_array, counts: Array, alpha: Array, beta: float, pool: ThreadPool) -> FoldedIn:
    """Fold documents in by CVB0 with p(w|t) = (n_wk + β)/(n_k + Vβ) fixed."""
    words, rows = used_words(X)
    table = (counts[words].astype(float) + beta) / (counts.sum(axis=0, dtype=float) + len(counts) * beta)
    return FoldedIn(rows, table, fold_in(rows, table, alpha, STEPS, TOLERANCE, pool))


def expected_shares(counts: Array, alpha: Array) -> Array:
    """E θ, shape (n, K)."""
    return (counts + alpha) / (counts + alpha).sum(axis=1, keepdims=True)


def shares_of(found: FoldedIn, alpha: Array) -> TopicShares:
    """Mean and standard deviation of the shares: exact for short documents, else by the law of total variance."""
    mean, variance = np.empty_like(found.counts), np.empty_like(found.counts)
    rows, K = found.rows, len(alpha)
    tokens = rows.lengths()
    most = 1
    while comb(most + 1 + K, K) <= MOST_STATES:
        most += 1
    whole = np.bincount(rows.owners(), rows.data % 1 > 0, len(rows)) == 0
    exact = whole & (tokens <= most)
    short, long = np.flatnonzero(exact), np.flatnonzero(~exact)
    mean[short], variance[short] = _exact_moments(found, alpha, short, tokens[short].astype(int))
    a = found.counts[long] + alpha
    size, spread = a.sum(axis=1, keepdims=True), count_variances(found, alpha, long)
    within = np.maximum(a * size - a**2 - spread, 0.0) / (size**2 * (size + 1))
    mean[long], variance[long] = a / size, within + spread / size**2
    return TopicShares(mean, np.sqrt(variance), exact)


def _exact_moments(found: FoldedIn, alpha: Array, documents: Array, tokens: Array) -> tuple[Array, Array]:
    """Mean and variance of the shares of some documents with these numbers of tokens, by summing over all topics."""
    rows, K = found.rows, len(alpha)
    mean, variance = np.empty((2, len(documents), K))
    states: list[Array] = [np.zeros((1, K), dtype=np.int64)]
    moves: list[Array] = []
    for _ in range(int(tokens.max(initial=0))):  # states[i]: counts of i tokens; moves[i]: their successors, by topic
        successors = (states[-1][:, None] + np.eye(K, dtype=np.int64)).reshape(-1, K)
        distinct, place = distinct_rows(successors)
        states.append(distinct)
        moves.append(place.reshape(-1, K))
    for n in np.unique(tokens):
        log_prior = gammaln(alpha + states[n]).sum(axis=1)
        a, size = alpha + states[n], alpha.sum() + n
        here = np.flatnonzero(tokens == n)
        for some in np.array_split(here, 1 + len(here) * len(states[n]) * K // CHUNK):
            entry = [np.arange(rows.indptr[d], rows.indptr[d + 1]) for d in documents[some]]
            each = [np.repeat(at, rows.data[at].astype(int)) for at in entry]
            p = found.table[rows.indices[np.concatenate(each, dtype=int)]].reshape(len(some), n, K)
            weight = np.ones((len(some), 1))  # Σ Π p(w|z) over topics z with these counts
            for i in range(n):
                grown = np.zeros((len(some), len(states[i + 1])))
                likelihood = p[:, i] / p[:, i].max(axis=1, keepdims=True)
                for k in range(K):
                    grown[:, moves[i][:, k]] += weight * likelihood[:, k : k + 1]
                weight = grown
            with np.errstate(divide="ignore"):
                share = softmax(np.log(weight) + log_prior)
            mean[some] = share @ a / size
            variance[some] = np.maximum(share @ (a * (a + 1)) / (size * (size + 1)) - mean[some] ** 2, 0.0)
    return mean, variance


def count_variances(found: FoldedIn, alpha: Array, documents: Array) -> Array:
    """Variance of the number of tokens of each topic, shape (documents, K).

    If the topics of tokens were independent, the covariance would be S = Σ c (diag γ − γγᵀ). They are not; the response
    of the fixed point of γ to a change of the counts (linear response) gives

        Cov(n) = (I − S D⁻¹)⁻¹ S,   D = diag(n + α)

    Reference: Opper and Saad, eds, Advanced mean field methods, 2001, on linear response.
    """
    K, lengths = len(alpha), np.diff(found.rows.indptr)[documents]
    variances, order, at = np.zeros((len(documents), K)), np.argsort(lengths, kind="stable"), 0
    while at < len(order):
        few = max(1, CHUNK // (K * max(K, int(lengths[order[at]]))))
        here = order[at : at + few]
        variances[here] = _responses(found, alpha, documents[here])
        at += few
    return variances


def _responses(found: FoldedIn, alpha: Array, documents: Array) -> Array:
    rows, n = found.rows, found.counts[documents]
    a, lengths = n + alpha, np.diff(rows.indptr)[documents]
    place = np.arange(lengths.max())
    valid = place < lengths[:, None]
    entry = np.where(valid, rows.indptr[documents][:, None] + place, 0)
    c, p = np.where(valid, rows.data[entry], 0.0), found.table[rows.indices[entry]]
    g = np.zeros_like(p)
    for _ in range(ENTRY_STEPS):  # γ of each entry, given the counts
        g = (np.maximum(n[:, None] - g, 0.0) + alpha) * p
        g /= g.sum(axis=2, keepdims=True)
    S = -np.matmul((g * c[:, :, None]).transpose(0, 2, 1), g)
    diagonal = np.arange(S.shape[1])
    S[:, diagonal, diagonal] += (g * c[:, :, None]).sum(axis=1)
    root = np.sqrt(a)
    B = S / (root[:, :, None] * root[:, None, :])
    inverse = np.linalg.inv(np.eye(len(alpha)) - B)  # exists, because S ≤ diag n
    response = a * (inverse[:, diagonal, diagonal] - 1)
    whole = n.sum(axis=1, keepdims=True)
    return np.clip(response, 0.0, n * np.maximum(whole - n, 0.0))  # the largest possible variance
