"""Hidden variables: E-steps of mixtures and of latent Dirichlet allocation, messages and paths of hidden Markov chains.

**Mixtures** whose log density is linear in features φ of a row: scores s, responsibilities r and sums.

    s[k] = bias[k] + weights[k] · φ(x − o)        r ∝ exp(s)        Σ w r,  Σ w r φ,  Σ w log Σ exp(s)

φ holds the row and its squares (diagonal Gaussians) or all products of its values (full ones). Blocks of rows stay in
the cache, and no array is as long as the table. BLAS uses one thread, so that results are the same to the bit.

**Latent Dirichlet allocation** by variational Bayes: topic shares of documents, and expected word counts.

    γ_dk = α + e_dk Σ_w c_dw B_wk / (e_d · B_w + ε)        e_d = exp(ψ(γ_d) − ψ(Σ_k γ_dk))

with B = exp E[log p(w|k)], repeated for each document until γ changes little. The expected counts of word w and topic k
are B_wk Σ_d e_dk c_dw / (e_d · B_w + ε).

**Hidden Markov chains**, a piece of consecutive rows at a time.

    forward    log α_t(k) = log Σ_j α_{t−1}(j) A(j,k) + log f(x_t|k) − log s_t       s_t makes α_t sum to one
    backward   log β_t(j) = log Σ_k A(j,k) w_{t+1}(k),    w_t(k) = f(x_t|k) β_t(k)/s_t
    posterior  γ_t(k) = α_t(k) β_t(k),    ξ_t(j,k) = α_t(j) A(j,k) w_{t+1}(k),    log-likelihood Σ log s_t
    best path  δ_t(k) = max_j δ_{t−1}(j) + log A(j,k) + log f(x_t|k)

The compiled versions compute messages either in logarithms or as probabilities, scaled by s_t. Scaled messages are an
order of magnitude faster and as exact, unless the probability of a state underflows and no later transition restores
it: `Messages.forward` detects this, and the caller starts again in logarithms.

Arguments of all versions: a piece is (index, table, base, ends), a chain is (start, A, A transposed), messages are
(alpha, scale), and counts are (weight, visits, joint, first). `ends` are the ends of the sequences within a piece. The
first row of a piece begins a sequence if `fresh`; otherwise alpha[0] is the message of the row before. Its last row
ends a sequence if `final`; otherwise `carry` is w of the row after. Row t is described by row index[t] of a table of
densities, by the last row of the table if index[t] is −1 (missing). `alpha` (n + 1, S) and `scale` (n,) keep the
messages of a piece for the backward pass, those of row t in alpha[t + 1].

Reference: Hoffman, Blei & Bach, Online learning for latent Dirichlet allocation, 2010; Rabiner, A tutorial on hidden
Markov models, 1989.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp

from deciban.kernels.choice import (
    Array,
    compiled,
    one_thread,
    quiet,
    readable,
    row_blocks,
    row_weights,
    weights_or_empty,
)
from deciban.kernels.dense import NATIVE
from deciban.kernels.parallel import added, entry_chunks, row_chunks
from deciban.kernels.rows import EXP_UNITS, numpy_log_sum_exp, numpy_softmax
from deciban.kernels.sparse import checked_csr, numpy_sparse_scores, without_stored_zeros

# -- mixtures ----------------------------------------------------------------------------------------------------------
# Features of a block, and its rows: threads take the lock of the interpreter a few times in each block, so that larger
# blocks than the second-level cache are faster with two threads, and as fast with one.
BLOCK_BYTES = 2**20
LEAST_ROWS, MOST_ROWS = 64, 4096
ITERATIONS = 20  # of a document of latent Dirichlet allocation, for the choice of chunks


class Pass(NamedTuple):
    """Sums of an E-step."""

    counts: Array  # (K,) Σ w r
    sums: Array  # (K, F) Σ w r φ
    total: float  # Σ w log Σ exp(s); −inf or NaN if a row has no density


def feature_count(D: int, products: bool) -> int:
    """Return the number of features in φ: D values, then D squares, or D(D+1)/2 products u ≤ v.

    >>> feature_count(3, False), feature_count(3, True)
    (6, 9)
    """
    return D + (D * (D + 1) // 2 if products else D)


def features(Z: Array, products: bool) -> Array:
    """Return φ of centred rows, (n, F).

    >>> features(np.array([[2.0, 3.0]]), True)
    array([[2., 3., 4., 6., 9.]])
    """
    if not products:
        return np.concatenate([Z, Z * Z], axis=1)
    u, v = np.triu_indices(Z.shape[1])
    return np.concatenate([Z, Z[:, u] * Z[:, v]], axis=1)


def mixture_pass(X: Array, weight: Array | None, origin: Array, weights: Array, bias: Array, products: bool) -> Pass:
    """Compute an E-step of a dense table. `weights` is (K, F), or (K, D) if components differ in linear terms only."""
    weight, origin = row_weights(weight), readable(origin, np.float64)
    weights, bias = readable(weights, np.float64), readable(bias, np.float64)
    n, D = X.shape
    F = feature_count(D, products)
    if not compiled(n * F * len(bias)):
        return _mixture_pass(features(np.asarray(X, dtype=float) - origin, products), weight, weights, bias)
    from deciban.kernels.latent_compiled import fill_products, fill_squares, responsibilities

    fill = fill_products if products else fill_squares
    # Rows of φ take an odd number of cache lines: with a power of two, they would share the same places in the cache.
    most = min(MOST_ROWS, max(LEAST_ROWS, n))
    size = (int(np.clip(BLOCK_BYTES // (8 * F), LEAST_ROWS, most)) // 8 - 1 | 1) * 8
    K, scored = len(bias), weights.shape[1]

    def expect(chunk: slice) -> tuple[Array, Array, Array]:
        phi, shares, block_sums = np.zeros((F, size)), np.empty((K, size)), np.empty((K, F))
        top, norm, counts, sums, total = np.empty(size), np.empty(size), np.zeros(K), np.zeros((K, F)), np.zeros(1)
        for rows, block in row_blocks(X, chunk, NATIVE, np.float64):
            block_weight = weights_or_empty(weight, rows)
            for start in range(0, len(block), size):
                fill(block, start, origin, phi)
                np.matmul(weights, phi[:scored], out=shares)
                total += responsibilities(shares, bias, block_weight, start, len(block), top, norm, counts)
                np.matmul(shares, phi.T, out=block_sums)
                sums += block_sums
        return counts, sums, total

    with one_thread(0):
        counts, sums, total = added(expect, row_chunks(n, K * (F + EXP_UNITS), K * F, multiple=size))
    return Pass(counts, sums, float(total[0]))


def sparse_mixture_pass(
    data: Array, indices: Array, indptr: Array, weight: Array | None, table: Array, bias: Array, extra: Array
) -> tuple[Array, Array, Array, float]:
    """Compute an E-step over CSR rows with scores bias + Σ x table[column]; `table` is (V, K), `extra` (n, E).

    Returns Σ w r (K,), Σ w r x (V, K), Σ w r extra (K, E) and Σ w log Σ exp(s).
    """
    table, bias, extra = readable(table, np.float64), readable(bias, np.float64), readable(extra, np.float64)
    V, K = table.shape
    data, indices, indptr = checked_csr(data, indices, indptr, V)
    weight = row_weights(weight)
    if table.min(initial=0.0) == -np.inf:
        data, indices, indptr = without_stored_zeros(data, indices, indptr)
    if not compiled((indptr[-1] - indptr[0]) * K):
        return _sparse_mixture_pass(data, indices, indptr, weight, table, bias, extra)
    from deciban.kernels.latent_compiled import sparse_pass

    def expect(rows: slice) -> tuple[Array, Array, Array, Array]:
        counts, sums, extra_sums = np.zeros(K), np.zeros((V, K)), np.zeros((K, extra.shape[1]))
        entries = data, indices, indptr[rows.start : rows.stop + 1], weights_or_empty(weight, rows)
        total = sparse_pass(*entries, table, bias, extra[rows], np.empty((1, K)), counts, sums, extra_sums)
        return counts, sums, extra_sums, np.array([total])

    counts, sums, extra_sums, total = added(expect, entry_chunks(indptr, 8 + 4 * K, V * K))
    return counts, sums, extra_sums, float(total[0])


# numpy versions
@quiet
def _mixture_pass(phi: Array, weight: Array | None, weights: Array, bias: Array) -> Pass:
    scores = phi[:, : weights.shape[1]] @ weights.T + bias
    w = np.ones(len(phi)) if weight is None else weight
    shares = numpy_softmax(scores) * w[:, None]
    return Pass(shares.sum(axis=0), shares.T @ phi, float(w @ numpy_log_sum_exp(scores)))


@quiet
def _sparse_mixture_pass(
    data: Array, indices: Array, indptr: Array, weight: Array | None, table: Array, bias: Array, extra: Array
) -> tuple[Array, Array, Array, float]:
    X = sp.csr_array((data, indices, indptr), (len(indptr) - 1, len(table)))
    scores = numpy_sparse_scores(data, indices, indptr, table, bias)
    w = np.ones(len(scores)) if weight is None else weight
    shares = numpy_softmax(scores) * w[:, None]
    return shares.sum(axis=0), np.asarray(X.T @ shares), shares.T @ extra, float(w @ numpy_log_sum_exp(scores))


# -- latent Dirichlet allocation ---------------------------------------------------------------------------------------
def variational_shares(
    data: Array,
    indices: Array,
    indptr: Array,
    words: Array,
    gamma: Array,
    prior: float,
    most: int,
    tolerance: float,
    eps: float,
    learn: bool,
) -> Array:
    """Update γ (n, K) in place for documents as CSR rows; return Σ_d e_dk c_dw / (e_d · B_w + ε), (V, K), or zeros.

    `words` is B, (V, K); `most` is the largest number of iterations, and `learn` whether sums are wanted.
    """
    from deciban.kernels.latent_compiled import document_shares

    words = readable(words, np.float64)
    V, K = words.shape
    data, indices, indptr = checked_csr(data, indices, indptr, V)
    data = readable(data, np.float64)

    def expect(rows: slice) -> tuple[Array]:
        sums = np.zeros((V if learn else 0, K))
        limits = indptr[rows.start : rows.stop + 1]
        document_shares(data, indices, limits, words, gamma[rows], prior, most, tolerance, eps, sums)
        return (sums,)

    return added(expect, entry_chunks(indptr, ITERATIONS * 4 * K, V * K if learn else 0))[0]


# -- hidden Markov chains ----------------------------------------------------------------------------------------------
Arrays: TypeAlias = tuple[Array, ...]

# Elementary operations of one step of the numpy version: 20,000 steps take half a second.
STEP_WORK = 50

# Numbers in the messages of a piece: they stay in the cache between the two passes.
PIECE_SIZE = 2**15

# If all transition probabilities are at least this, the next step restores any state that underflowed.
RESTORING = 1e-30
UNDERFLOW = 1e-200  # smaller scaled messages may have lost states


def piece_rows(S: int) -> int:
    """Return the number of rows in a piece."""
    return max(256, PIECE_SIZE // max(S, 8))


def worth_compiling(steps: int) -> bool:
    """Whether the compiled version runs for this many steps, over all sequences and passes."""
    return compiled(steps * STEP_WORK)


class Messages:
    """Messages of one chain, for one piece at a time.

    `logs` is the (M, S) table of log densities that index[t] refers to; `base` (M,) is a term that all states share.
    """

    def __init__(self, log_start: Array, log_transitions: Array, use_kernel: bool, scaled: bool) -> None:
        self.S = len(log_start)
        self.scaled = scaled and use_kernel
        self.width = self.S
        self._forward: Callable[..., int] = _forward
        self._backward: Callable[..., None] = _backward
        if use_kernel:
            from deciban.kernels import latent_compiled as kernels

            self._forward = kernels.scaled_forward if self.scaled else kernels.log_forward
            self._backward = kernels.scaled_backward if self.scaled else kernels.log_backward
        if self.scaled:
            self.width = -(-self.S // 4) * 4  # padded to whole vectors with states of probability 0
            self.start, self.A = _padded(np.exp(log_start), self.width), _padded(np.exp(log_transitions), self.width)
            self.restoring = float(np.exp(log_transitions.min())) >= RESTORING
        else:
            self.start, self.A = readable(log_start, np.float64), readable(log_transitions, np.float64)
        self._chain = self.start, self.A, np.ascontiguousarray(self.A.T)
        rows = piece_rows(self.S)
        self.alpha, self.scale = np.empty((rows + 1, self.width)), np.empty(rows)
        self._densities, self._offset = np.empty((0, self.width)), np.empty(0)

    def table(self, logs: Array, base: Array) -> tuple[Array, Array, bool]:
        """Return what `forward` and `backward` take instead of logs and base, and whether a scaled density underflows.

        The result is valid until the next call with as many rows or fewer.
        """
        if not self.scaled:
            return logs, base, False
        from deciban.kernels.latent_compiled import scaled_densities

        if len(self._densities) < len(logs):
            self._densities, self._offset = np.empty((len(logs), self.width)), np.empty(len(logs))
        densities, offset = self._densities[: len(logs)], self._offset[: len(logs)]
        underflow = scaled_densities(readable(logs, np.float64), readable(base, np.float64), densities, offset)
        return densities, offset, bool(underflow)

    def sums(self, M: int) -> tuple[Array, Array, Array]:
        """Return zeros for `backward` to add to: visits (M, ·), joint and first, all as wide as the messages."""
        return np.zeros((M, self.width)), np.zeros((self.width, self.width)), np.zeros(self.width)

    def crop(self, visits: Array, joint: Array, first: Array) -> tuple[Array, Array, Array]:
        """Return the sums without padding: (M, S) visits, (S, S) transitions and (S,) starts."""
        return visits[:, : self.S], joint[: self.S, : self.S], first[: self.S]

    def carry(self) -> Array:
        """Return an array for a message from one piece to the next."""
        return np.zeros(self.width)

    def forward(
        self, index: Array, table: tuple[Array, Array, bool], ends: Array, fresh: bool, carry: Array, evidence: Array
    ) -> int:
        """Compute the messages of a piece, and add log-likelihoods to `evidence`.

        `carry` is replaced: the message of the row before by that of the last row. Returns the number of rows before
        the first impossible one; of scaled messages, the number of sequences before the first that underflows.
        """
        n = len(index)
        self.alpha[0] = carry
        done = self._forward((index, *table[:2], ends), fresh, self._chain, (self.alpha, self.scale), evidence)
        carry[:] = self.alpha[n] * self.scale[n - 1] if self.scaled else self.alpha[n]
        if self.scaled and not self.restoring and done == len(ends):
            from deciban.kernels.latent_compiled import smallest_positive

            if table[2] or smallest_positive(self.alpha, n) < UNDERFLOW:
                return 0
        return int(done)

    def backward(
        self,
        index: Array,
        table: tuple[Array, Array, bool],
        ends: Array,
        fresh: bool,
        final: bool,
        carry: Array,
        weight: Array,
        visits: Array,
        joint: Array,
        first: Array,
    ) -> None:
        """Add the expected counts of the piece that `forward` saw last."""
        piece, messages, counts = (index, *table[:2], ends), (self.alpha, self.scale), (weight, visits, joint, first)
        self._backward(piece, fresh, final, self._chain, messages, carry, counts)


class Paths:
    """Most probable paths through one chain, for one piece at a time."""

    def __init__(self, log_start: Array, log_transitions: Array, use_kernel: bool) -> None:
        self.start, self.A = readable(log_start, np.float64), readable(log_transitions, np.float64)
        self._best: Callable[..., None] = _best_states
        self._follow: Callable[..., int] = _follow_pointers
        if use_kernel:
            from deciban.kernels import latent_compiled as kernels

            self._best, self._follow = kernels.best_states, kernels.follow_pointers
        S = len(log_start)
        kind = np.uint8 if S <= 256 else np.uint16 if S <= 65536 else np.int64
        self.pointers = np.empty((piece_rows(S), S), dtype=kind)

    def best(self, index: Array, logs: Array, ends: Array, fresh: bool, carry: Array) -> Array:
        """Return the best last state of each sequence in the piece, (B,); −1 if all are impossible."""
        last = np.empty(len(ends), dtype=np.int64)
        self._best((index, logs, ends), fresh, (self.start, self.A), carry, self.pointers, last)
        return last

    def follow(self, ends: Array, last: Array, path: Array) -> int:
        """Write the path of the piece that `best` saw last; returns the state before it."""
        return int(self._follow(self.pointers, ends, last, path))


def _padded(values: Array, width: int) -> Array:
    padded = np.zeros((width,) * values.ndim)
    padded[tuple(slice(0, size) for size in values.shape)] = values
    return padded


# numpy versions of messages and paths
def _log_sum(values: Array) -> Array:
    """Return log Σ exp over the first axis; −inf if all values are."""
    top = values.max(axis=0)
    top = np.where(np.isneginf(top), 0.0, top)
    return np.log(np.exp(values - top).sum(axis=0)) + top


@quiet
def _forward(piece: Arrays, fresh: bool, chain: Arrays, messages: Arrays, evidence: Array) -> int:
    """Write log messages, and add log-likelihoods to `evidence`; the first impossible row, or the number of rows."""
    (index, logs, base, ends), (start, A, _), (alpha, scale) = piece, chain, messages
    begin, impossible = 0, len(index)
    for b, end in enumerate(ends):
        for t in range(begin, end):
            if t == begin and (fresh or b > 0):
                message = start
            else:
                message = _log_sum(alpha[t][:, None] + A)
            message = message + logs[index[t]]
            scale[t] = _log_sum(message)
            evidence[b] += scale[t] + base[index[t]]
            if np.isneginf(scale[t]):
                impossible = min(impossible, t)
                break
            alpha[t + 1] = message - scale[t]
        begin = end
    return impossible


@quiet
def _backward(
    piece: Arrays, fresh: bool, final: bool, chain: Arrays, messages: Arrays, carry: Array, counts: Arrays
) -> None:
    """Add weighted expected counts: `visits` per row of the table and state, `joint` per pair, `first` per state."""
    (index, logs, _, ends), (_, A, AT), (alpha, scale) = piece, chain, messages
    weight, visits, joint, first = counts
    for b in range(len(ends) - 1, -1, -1):
        begin = 0 if b == 0 else ends[b - 1]
        for t in range(ends[b] - 1, begin - 1, -1):
            beta = np.zeros(len(first))
            if t < ends[b] - 1 or not (final or b < len(ends) - 1):
                beta = _log_sum(carry[:, None] + AT)
                joint += weight[b] * np.exp(alpha[t + 1][:, None] + A + carry)
            share = weight[b] * np.exp(alpha[t + 1] + beta)
            visits[index[t]] += share
            carry[:] = logs[index[t]] + beta - scale[t]
        if fresh or b > 0:
            first += share


def _best_states(piece: Arrays, fresh: bool, chain: Arrays, carry: Array, pointers: Array, last: Array) -> None:
    """Write the best predecessor of every row and state, and the best last state of each sequence, or −1."""
    (index, logs, ends), (start, A), begin = piece, chain, 0
    for b, end in enumerate(ends):
        for t in range(begin, end):
            if t == begin and (fresh or b > 0):
                reached, pointers[t] = start, 0
            else:
                each = carry[:, None] + A
                reached, pointers[t] = each.max(axis=0), each.argmax(axis=0)
            carry[:] = reached + logs[index[t]]
        last[b] = carry.argmax() if carry.max() > -np.inf else -1
        begin = end


def _follow_pointers(pointers: Array, ends: Array, last: Array, path: Array) -> int:
    """Follow the pointers back from the last state of each sequence; the state before the piece."""
    state = 0
    for b in range(len(ends) - 1, -1, -1):
        begin = 0 if b == 0 else ends[b - 1]
        state = last[b]
        for t in range(ends[b] - 1, begin - 1, -1):
            path[t] = state
            state = pointers[t, state]
    return state
