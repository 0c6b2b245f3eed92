"""The fit of a factor for every word, by L-BFGS with bounds.

    minimise  − Σ_i log P(c_i|x_i)  +  Σ_w λ_w/2·(u_w − 1)²  +  Σ_c b_c²/(2·sd²),      u ≥ 0
    P(c|x) = softmax_c( Σ_b s_b·Σ_w u_bw·e_bwc(x) + b_c + log π_c )        e: evidence of word w for class c

The objective is convex. It is minimised in coordinates in which its diagonal curvature is about 1.

Sums over the words of documents, and sums over the documents of words, are computed in threads, in chunks of documents
and of words. The evidence is kept in both orders.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
import scipy.sparse as sp

from deciban.kernels.parallel import each, entry_chunks, row_chunks
from deciban.statistics import Array
from deciban.text.vocabulary import Vocabulary

MAX_STEPS = 20
MEMORY = 6  # past steps that L-BFGS uses
TOLERANCE = 1e-3  # relative decrease of the objective in the last step
SUFFICIENT = 1e-4  # share of the expected decrease that a step must reach
SHORTEST_STEP = 1e-6
COARSE = 4  # a large problem starts at the minimum of every so many documents
FEWEST_ROWS = 4_000  # of the smaller problem
ENTRY_WORK = 8  # elementary operations of a word of a document, and one for each class
CLASS_WORK = 60  # elementary operations of a class of a document: logarithms and powers


@dataclass(frozen=True, eq=False)
class WordEvidence:
    """Evidence of n documents, by the U words that occur in them, for K classes.

    score[i, c] = Σ_w u_w·x_iw·(t_wc − d_ic) + [c is the class of i]·Σ_w u_w·e_iw
    """

    vocabulary: Vocabulary
    at: Array  # (U,) columns of the words in the vocabulary
    rows: sp.csr_array  # (n, U) x
    table: Array  # (U, K) t
    totals: Array  # (n, K) d
    own: sp.csr_array | None = None  # (n, U) e: what a document that is left out changes, in its own class
    codes: Array | None = None  # (n,) its own class
    contrast: sp.csr_array | None = None  # (n, U) evidence for the second of two classes over the first
    documents: tuple[sp.csr_array, ...] = ()  # what `_turned` returns, where it is kept

    def between_classes(self) -> WordEvidence:
        """Return the same evidence in single precision, without the terms that all classes share: faster to fit to."""
        single = np.float32
        table = (self.table - self.table.mean(axis=1, keepdims=True)).astype(single)
        totals = (self.totals - self.totals.mean(axis=1, keepdims=True)).astype(single)
        width = np.int32 if self.rows.nnz <= np.iinfo(np.int32).max else np.int64
        places = self.rows.indices.astype(width), self.rows.indptr.astype(width)
        rows = sp.csr_array((self.rows.data.astype(single), *places), self.rows.shape)
        own = None if self.own is None else _like(rows, self.own.data.astype(single))
        contrast = None
        if table.shape[1] == 2:
            apart = np.repeat(totals[:, 1] - totals[:, 0], np.diff(rows.indptr))
            llr = rows.data * ((table[:, 1] - table[:, 0])[rows.indices] - apart)
            if own is not None and self.codes is not None:
                llr += own.data * np.repeat(np.where(self.codes == 1, single(1.0), single(-1.0)), np.diff(rows.indptr))
            contrast = _like(rows, llr)
        found = replace(self, rows=rows, table=table, totals=totals, own=own, contrast=contrast)
        return replace(found, documents=found._turned())

    def thinned(self, step: int) -> WordEvidence:
        """Return the evidence of every step-th document."""
        some = slice(None, None, step)
        rows, own, contrast = (
            None if given is None else given[some].tocsr() for given in (self.rows, self.own, self.contrast)
        )
        codes = None if self.codes is None else self.codes[some]
        found = replace(self, rows=rows, totals=self.totals[some], own=own, codes=codes, contrast=contrast)
        return replace(found, documents=found._turned())

    def _turned(self) -> tuple[sp.csr_array, ...]:
        """Return the evidence by word, (U, n): `contrast`, or `rows` and `own`, which share their places."""
        turned = (self.rows if self.contrast is None else self.contrast).T.tocsr()
        if self.contrast is not None or self.own is None:
            return (turned,)
        return turned, _like(turned, self.own.T.tocsr().data)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Numbers of documents, words and classes."""
        return (*self.rows.shape, self.table.shape[1])

    @property
    def work(self) -> float:
        """Elementary operations of the scores of a document."""
        n, _, K = self.shape
        return self.rows.nnz * (ENTRY_WORK + K) / max(n, 1)

    def scores(self, factors: Array, some: slice = slice(None)) -> Array:
        """Return the scores of some documents by factors (U,) of the words, shape (n, K)."""
        u = factors.astype(self.table.dtype, copy=False)
        if self.contrast is not None:
            llr = _part(self.contrast, some) @ u
            return np.column_stack([np.zeros(len(llr)), llr])
        rows = _part(self.rows, some)
        weighted = _like(rows, rows.data * u[rows.indices])
        found = (weighted @ self.table - (rows @ u)[:, None] * self.totals[some]).astype(float)
        if self.own is not None and self.codes is not None:
            found[np.arange(len(found)), self.codes[some]] += _part(self.own, some) @ u
        return found

    def gradient(self, residuals: Array) -> Array:
        """Return Σ_ic r_ic ∂score[i, c]/∂u, shape (U,), for residuals r (n, K)."""
        r, out = residuals.astype(self.table.dtype, copy=False), np.empty(len(self.at))
        used, *own = self.documents or self._turned()
        right = np.ascontiguousarray(r[:, 1]) if self.contrast is not None else r
        by_total = None if self.contrast is not None else np.einsum("nk,nk->n", r, self.totals)
        mine = r[np.arange(len(r)), self.codes] if own else None

        def of_words(words: slice) -> None:
            part = _part(used, words)
            if by_total is None:
                out[words] = part @ right
                return
            found = np.einsum("uk,uk->u", part @ right, self.table[words], dtype=float) - part @ by_total
            out[words] = found if mine is None else found + _part(own[0], words) @ mine

        each(of_words, entry_chunks(used.indptr, ENTRY_WORK + self.shape[2]))
        return out

    def curvature(self, weights: Array) -> Array:
        """Return Σ_ic v_ic·(evidence of the word)², shape (U,), for v (n, K); left-out counts are neglected."""
        v = weights.astype(self.table.dtype)
        if self.contrast is not None:
            squares = _like(self.rows, self.contrast.data**2)
            return (squares.T @ v[:, 1]).astype(float)
        squares = _like(self.rows, self.rows.data**2)
        centre = self.table - self.totals.mean(axis=0)
        centre -= centre.mean(axis=1, keepdims=True)
        return np.einsum("uk,uk->u", squares.T @ v, centre**2, dtype=float)


@dataclass(frozen=True, eq=False)
class Problem:
    """The data of the objective: n rows, K classes, and U words of all blocks together."""

    evidence: list[tuple[WordEvidence, Array]]  # of each block with words, and the common scale of its rows (n,)
    rest: Array  # (n, K) scaled scores of the other blocks, and the log prior
    codes: Array  # (n,)
    weight: Array  # (n,) 1, or 0 for rows that are left out
    strength: Array  # (U,) λ s̄² of the word's block
    offset_sd: float  # nats; standard deviation of the offsets in their prior

    @classmethod
    def of(
        cls,
        found: Sequence[WordEvidence | None],
        scales: Array,
        scores: Sequence[Array],
        codes: Array,
        log_prior: Array,
        penalty: float,
        offset_sd: float,
    ) -> Problem:
        """Collect what does not depend on the factors."""
        n, K = scores[0].shape
        rest = np.repeat(log_prior[None, :], n, axis=0)
        for score, scale, words in zip(scores, scales, found):
            if words is None:
                rest += scale[:, None] * np.asarray(score)
        usable = (np.bincount(codes, minlength=K)[codes] > 1) & np.isfinite(rest[np.arange(n), codes])
        rest[~usable] = 0.0
        evidence = [(words, scale) for words, scale in zip(found, scales) if words is not None]
        strength = np.concatenate([np.full(len(e.at), penalty * np.mean(scale**2)) for e, scale in evidence])
        return cls(evidence, rest, codes, usable.astype(float), strength, offset_sd)

    def _chunks(self) -> list[slice]:
        """Return chunks of the documents, which depend on the data alone."""
        n, K = self.rest.shape
        return row_chunks(n, CLASS_WORK * K + sum(found.work for found, _ in self.evidence))

    def objective(self, factors: Array, offsets: Array) -> tuple[float, Array, Array]:
        """Return the penalised cross-entropy, and its gradients by factors and offsets."""
        residual = np.empty(self.rest.shape)

        def add(rows: slice) -> tuple[float, Array]:
            log_p = self._log_posterior(factors, offsets, rows)
            own = np.arange(len(log_p)), self.codes[rows]
            loss = -self.weight[rows] @ log_p[own]
            left = np.exp(log_p, out=residual[rows])
            left[own] -= 1.0
            left *= self.weight[rows][:, None]
            return float(loss), left.sum(axis=0)

        losses, sums = zip(*each(add, self._chunks(), blas=True))
        by_offset = reduce(np.add, sums) + offsets / self.offset_sd**2
        by_factor = [found.gradient(scale[:, None] * residual) for found, scale in self.evidence]
        away = factors - 1.0
        pulled = self.strength * away
        loss = sum(losses) + (away @ pulled + offsets @ offsets / self.offset_sd**2) / 2
        return float(loss), np.concatenate(by_factor) + pulled, by_offset

    def _log_posterior(self, factors: Array, offsets: Array, rows: slice) -> Array:
        """Return log posteriors of some documents, shape (n, K)."""
        logits, start = self.rest[rows] + offsets, 0
        for found, scale in self.evidence:
            logits += scale[rows][:, None] * found.scores(factors[start : start + len(found.at)], rows)
            start += len(found.at)
        logits -= reduce(np.maximum, logits.T)[:, None]  # by class: numpy is slow along short rows
        return np.asarray(logits - np.log(reduce(np.add, np.exp(logits).T))[:, None])

    def curvature(self, factors: Array, offsets: Array) -> tuple[Array, Array]:
        """Return the approximate diagonal of the curvature, by factors and by offsets."""
        parts = each(lambda rows: np.exp(self._log_posterior(factors, offsets, rows)), self._chunks(), blas=True)
        p = np.concatenate(parts)
        spread = self.weight[:, None] * p * (1 - p)
        by_factor = [found.curvature((scale**2)[:, None] * spread) for found, scale in self.evidence]
        return np.concatenate(by_factor) + self.strength, spread.sum(axis=0) + 1 / self.offset_sd**2

    def thinned(self, step: int) -> Problem:
        """Return the problem of every step-th document; the penalty stays, so that few documents move factors less."""
        some = slice(None, None, step)
        return Problem(
            [(found.thinned(step), scale[some]) for found, scale in self.evidence],
            self.rest[some],
            self.codes[some],
            self.weight[some],
            self.strength,
            self.offset_sd,
        )

    def minimum(self, offsets: Array) -> tuple[Array, Array]:
        """Return the factors (U,) and offsets (K,) of the minimum; offsets of classes without rows stay."""
        U = len(self.strength)
        factors, begin = np.ones(U), offsets
        if len(self.codes) >= COARSE * FEWEST_ROWS:
            factors, begin = self.thinned(COARSE).minimum(offsets)
        unit = 1 / np.sqrt(np.concatenate(self.curvature(factors, begin)))

        def value(x: Array) -> tuple[float, Array]:
            parameters = x * unit
            loss, by_factor, by_offset = self.objective(parameters[:U], parameters[U:])
            return loss, np.concatenate([by_factor, by_offset]) * unit

        start = np.concatenate([factors, begin]) / unit
        found = _least(value, start, U) * unit
        factors, made = found[:U], found[U:]
        has_rows = np.bincount(self.codes, self.weight, len(offsets)) > 0
        made = np.where(has_rows, made - made[has_rows].mean(), offsets)
        return np.maximum(factors, 0.0), made


def _like(matrix: sp.csr_array, data: Array) -> sp.csr_array:
    """Return a sparse matrix with other entries at the same places, which both share."""
    return sp.csr_array((data, matrix.indices, matrix.indptr), matrix.shape)


def _part(matrix: sp.csr_array, rows: slice) -> sp.csr_array:
    """Return consecutive rows of a sparse matrix, without a copy of their entries."""
    begin, end, _ = rows.indices(matrix.shape[0])
    if (begin, end) == (0, matrix.shape[0]):
        return matrix
    limits = matrix.indptr[begin : end + 1]
    entries = slice(limits[0], limits[-1])
    part = sp.csr_array((end - begin, matrix.shape[1]), dtype=matrix.dtype)
    # set one by one: the constructor copies views of larger arrays
    part.data, part.indices, part.indptr = matrix.data[entries], matrix.indices[entries], limits - limits[0]
    return part


def _least(value: Callable[[Array], tuple[float, Array]], start: Array, U: int) -> Array:
    """Minimise by L-BFGS with the first U numbers ≥ 0; numbers that are 0 and would fall stay there in a step."""
    x, (loss, gradient) = start, value(start)
    memory: list[tuple[Array, Array, float]] = []  # steps, changes of the gradient, and 1 / their product
    for _ in range(MAX_STEPS):
        held = np.zeros(len(x), bool)
        held[:U] = (x[:U] <= 0) & (gradient[:U] > 0)
        direction = -_times_inverse(memory, np.where(held, 0.0, gradient))
        direction[held] = 0.0
        step = 1.0
        while True:
            further = x + step * direction
            np.maximum(further[:U], 0.0, out=further[:U])
            least, slope = value(further)
            expected = gradient @ (further - x)
            if least <= loss + SUFFICIENT * expected or step < SHORTEST_STEP:
                break
            step /= 4
        if not least < loss:
            return x
        moved, turned = further - x, slope - gradient
        product = moved @ turned
        if product > 0:
            memory = [*memory[1 - MEMORY :], (moved, turned, 1 / float(product))]
        gain, x, loss, gradient = loss - least, further, least, slope
        if gain < TOLERANCE * loss:
            return x
    return x


def _times_inverse(memory: Sequence[tuple[Array, Array, float]], gradient: Array) -> Array:
    """Multiply by the inverse curvature that past steps show (two-loop recursion)."""
    left, shares = gradient, []
    for moved, turned, inverse in reversed(memory):
        share = inverse * (moved @ left)
        left = left - share * turned
        shares.append(share)
    if memory:
        moved, turned, inverse = memory[-1]
        left = left / (inverse * (turned @ turned))
    for (moved, turned, inverse), share in zip(memory, reversed(shares)):
        left = left + (share - inverse * (turned @ left)) * moved
    return left
