"""Evidence of documents word by word, and the fit of a factor for each word.

    log f(x|c) = Σ_w x_w·(t_wc − d_c)    t: log of a word's count and pseudo-count, d: log of the total of the class

A document that is left out has other t in its own class, and other d; words that leave the vocabulary with it have no
evidence. A factor u_w ≥ 0 multiplies the evidence of word w for all classes. Terms that all classes share have no
effect on answers.

The fit of the factors:

    minimise  − Σ_i log P(c_i|x_i)  +  Σ_w λ_w/2·(u_w − 1)²  +  Σ_c b_c²/(2·sd²),      u ≥ 0
    P(c|x) = softmax_c( Σ_b s_b·Σ_w u_bw·e_bwc(x) + b_c + log π_c )        e: evidence of word w for class c

The objective is strictly convex, so that its minimum does not depend on the method. Few documents are fitted by L-BFGS
with bounds, in coordinates in which the diagonal curvature of the objective is about 1: each step is a few sparse
products. So are documents of two classes, for which these products have one number for each word of a document. Many
documents of more classes are fitted by dual coordinate ascent in a compiled loop (`kernels/word_evidence_compiled.py`),
which needs fewer passes over the documents.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from deciban.errors import InputError, NotAvailableError
from deciban.families.dirichlet import log_in_place
from deciban.families.protocol import Rule
from deciban.kernels.choice import compiled
from deciban.kernels.parallel import each
from deciban.read.arrow import taken
from deciban.statistics import Array, LazyNames, Members
from deciban.text.counting import TextRows
from deciban.text.leave_one_out import LeaveOneOut, LeftOutEntries
from deciban.text.stats import UNK, TextStats
from deciban.text.tokens import Tokens
from deciban.text.vocabulary import Vocabulary, in_order, text_array

if TYPE_CHECKING:
    from deciban.text.density import TextDensity
    from deciban.text.family import Text

NEAR_ONE = 1e-3  # factors that differ from 1 by less are not kept
MAX_STEPS = 20  # of L-BFGS
MEMORY = 6  # past steps that L-BFGS uses
TOLERANCE = 1e-3  # relative decrease of the objective in the last step of L-BFGS
SUFFICIENT = 1e-4  # share of the expected decrease that a step must reach
SHORTEST_STEP = 1e-6
MAX_PASSES = 30  # of dual coordinate ascent
GAP = 1e-2  # duality gap over cross-entropy, in the last pass
MANY = 20_000  # documents from which a larger gap is accepted: its effect is below the sampling noise
GAP_OF_MANY = 2e-1  # likewise for so many documents; a document that is skipped counts as at its last visit
NEGLIGIBLE = 0.2  # share of the wanted gap of a document below which it takes no step
NEGLIGIBLE_OF_MANY = 0.1  # likewise for many documents; below it, the next pass leaves the document out
GROUPS = 2  # groups of documents that ascend at the same time, where there are many
TIMES = 1.5  # how often a group counts its moves; above GROUPS / 2, or moves that both groups make do not converge
LARGE = 2**20  # entries of documents times classes from which a fit is worth a thread


@dataclass(frozen=True, eq=False)
class WordEvidence:
    """Evidence of n documents, by the U words that occur in them, for K classes.

    score[i, c] = Σ_w u_w·x_iw·(t_wc − d_ic) + [c is the class of i]·Σ_w u_w·e_iw
    """

    vocabulary: Vocabulary | None  # None where words have numbers alone
    at: Array  # (U,) columns of the words in the vocabulary
    rows: sp.csr_array  # (n, U) x
    table: Array  # (U, K) t
    totals: Array  # (n, K) d
    own: sp.csr_array | None = None  # (n, U) e: difference for the own class where the document is left out
    codes: Array | None = None  # (n,) its own class
    contrast: sp.csr_array | None = None  # (n, U) evidence for the second of two classes over the first

    def between_classes(self) -> WordEvidence:
        """Return the evidence in single precision and without the terms that all classes share, for a faster fit."""
        single = np.float32
        table = (self.table - self.table.mean(axis=1, keepdims=True)).astype(single)
        totals = (self.totals - self.totals.mean(axis=1, keepdims=True)).astype(single)
        width = np.int32 if self.rows.nnz <= np.iinfo(np.int32).max else np.int64
        places = self.rows.indices.astype(width, copy=False), self.rows.indptr.astype(width, copy=False)
        rows = sp.csr_array((self.rows.data.astype(single, copy=False), *places), self.rows.shape)
        own = None if self.own is None else _like(rows, self.own.data.astype(single, copy=False))
        found = replace(self, rows=rows, table=table, totals=totals, own=own)
        return replace(found, contrast=found._llr()) if table.shape[1] == 2 else found

    def _llr(self) -> sp.csr_array:
        """Return the evidence of each word for the second of two classes over the first, shape (n, U)."""
        lengths = np.diff(self.rows.indptr)
        by_word, by_row = self.table[:, 1] - self.table[:, 0], self.totals[:, 1] - self.totals[:, 0]
        llr = self.rows.data * (by_word[self.rows.indices] - np.repeat(by_row, lengths))
        if self.own is not None and self.codes is not None:
            sign = np.where(self.codes == 1, 1.0, -1.0).astype(llr.dtype)
            llr += self.own.data * np.repeat(sign, lengths)
        return _like(self.rows, llr)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Numbers of documents, words and classes."""
        return (*self.rows.shape, self.table.shape[1])

    def scores(self, factors: Array) -> Array:
        """Return the scores of the documents by factors (U,) of the words, shape (n, K)."""
        u = factors.astype(self.table.dtype, copy=False)
        if self.contrast is not None:
            llr = self.contrast @ u
            return np.column_stack([np.zeros(len(llr)), llr])
        weighted = _like(self.rows, self.rows.data * u[self.rows.indices])
        found = (weighted @ self.table - (self.rows @ u)[:, None] * self.totals).astype(float)
        if self.own is not None and self.codes is not None:
            found[np.arange(len(found)), self.codes] += self.own @ u
        return found

    def gradient(self, residuals: Array) -> Array:
        """Return Σ_ic r_ic ∂score[i, c]/∂u, shape (U,), for residuals r (n, K)."""
        r = residuals.astype(self.table.dtype, copy=False)
        if self.contrast is not None:
            return np.asarray(self.contrast.T @ r[:, 1], dtype=float)
        found = np.einsum("uk,uk->u", self.rows.T @ r, self.table, dtype=float)
        found -= self.rows.T @ np.einsum("nk,nk->n", r, self.totals)
        if self.own is not None and self.codes is not None:
            found += self.own.T @ r[np.arange(len(r)), self.codes]
        return found

    def curvature(self, weights: Array) -> Array:
        """Return Σ_ic v_ic·(evidence of the word)², shape (U,), for v (n, K); left-out counts are neglected."""
        if self.contrast is not None:
            squares = _like(self.contrast, self.contrast.data**2)
            return np.asarray(squares.T @ weights[:, 1].astype(squares.dtype), dtype=float)
        squares = _like(self.rows, self.rows.data**2)
        centre = self.table - self.totals.mean(axis=0)
        centre -= centre.mean(axis=1, keepdims=True)
        return np.einsum("uk,uk->u", squares.T @ weights.astype(self.table.dtype), centre**2, dtype=float)


def between_classes(vocabulary: Vocabulary | None, found: LeftOutEntries) -> WordEvidence:
    """Return evidence of left-out documents for a fit; without terms that all classes share."""
    return _left_out_evidence(vocabulary, found).between_classes()


def _left_out_evidence(vocabulary: Vocabulary | None, found: LeftOutEntries) -> WordEvidence:
    totals = log_in_place(np.where(found.totals > 0, found.totals, 1.0))
    if not (np.isfinite(found.table.sum()) and np.isfinite(found.own.sum())):
        raise NotAvailableError(
            "a word has probability zero in a class, so its evidence is infinite and has no scale. Use rule 'mean'."
        )
    own = sp.csr_array((found.own, found.rows.indices, found.rows.indptr), found.rows.shape)
    return WordEvidence(vocabulary, found.used, found.rows, found.table, totals, own, found.codes)


def evidence_of(vocabulary: Vocabulary, terms: sp.csr_array, logs: Array, totals: Array) -> WordEvidence:
    """Return evidence from terms (n, V), logs t (V, K) and totals d (n, K)."""
    occurs = np.zeros(terms.shape[1], bool)
    occurs[terms.indices] = True
    at = np.flatnonzero(occurs)
    place = np.cumsum(occurs, dtype=np.int32) - 1
    rows = sp.csr_array((terms.data, place[terms.indices], terms.indptr), (terms.shape[0], len(at)))
    return WordEvidence(vocabulary, at, rows, logs[at], totals)


def by_word(text: Text, rule: Rule) -> bool:
    """Whether scores are sums over words with a probability each."""
    return text.reading == "multinomial" and rule == "mean"


# -- factors -----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class WordFactors:
    """A factor ≥ 0 for the evidence of each word.

    >>> WordFactors(("good", "the"), np.array([1.5, 0.2])).of(Vocabulary.of(["bad", "good"], "learnt"))
    array([1. , 1.5])
    """

    words: Sequence[str]  # sorted
    factors: Array  # of these words; 1 for all others
    unk: float = 1.0  # of words outside the vocabulary, where they are counted

    def __post_init__(self) -> None:
        """Check the numbers, and hold the words as a `Vocabulary`."""
        if not isinstance(self.words, LazyNames):
            object.__setattr__(self, "words", LazyNames(Vocabulary(text_array(list(self.words)), "learnt")))
        numbers = np.append(self.factors, self.unk)
        if np.shape(self.factors) != (len(self.words),) or not ((numbers >= 0) & (numbers < np.inf)).all():
            raise InputError(f"{len(self.words)} words need as many factors ≥ 0.")

    @classmethod
    def kept(cls, vocabulary: Vocabulary, at: Array, factors: Array) -> WordFactors:
        """Keep the factors of the words at these columns of a vocabulary that differ from 1."""
        outside = at == len(vocabulary)
        unk = float(factors[outside][0]) if outside.any() else 1.0
        changed = np.flatnonzero((np.abs(factors - 1.0) >= NEAR_ONE) & ~outside)
        changed = changed[np.argsort(at[changed])]
        names = vocabulary.take(at[changed]).names
        if vocabulary.kind == "given":  # in any order; others are sorted
            order = in_order(names)
            names, changed = taken(names, order), changed[order]
        return cls(LazyNames(Vocabulary(names, "learnt")), factors[changed], unk)  # type: ignore[arg-type]

    def of(self, vocabulary: Vocabulary) -> Array:
        """Return the factor of each column of a vocabulary, that of `unk` included."""
        at = self._known().positions(vocabulary)
        found = np.where(at < 0, 1.0, np.append(self.factors, 1.0)[at])
        return np.append(found, self.unk) if vocabulary.unk else found

    def _known(self) -> Vocabulary:
        """Return the words; a copy through pickle holds them as a tuple."""
        words = self.words.source if isinstance(self.words, LazyNames) else None
        return words if isinstance(words, Vocabulary) else Vocabulary(text_array(list(self.words)), "learnt")

    def of_words(self, words: Sequence[str]) -> Array:
        """Return the factor of each word, shape (P,)."""
        at = self._known().ids(words)
        unk = np.array([word == UNK for word in words], dtype=bool)
        return np.where(unk, self.unk, np.where(at < 0, 1.0, np.append(self.factors, 1.0)[at]))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, WordFactors):
            return NotImplemented
        same = tuple(self.words) == tuple(other.words) and self.unk == other.unk
        return same and np.array_equal(self.factors, other.factors)

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True, eq=False)
class ColumnFactors:
    """A factor ≥ 0 for the evidence of each word, by the number of the word; for words without names, as in folds.

    >>> ColumnFactors(np.array([1, 3]), np.array([0.5, 2.0])).of_columns(np.array([0, 1, 3]))
    array([1. , 0.5, 2. ])
    """

    at: Array  # (P,) ascending numbers of words
    factors: Array  # of these words; 1 for all others

    def of_columns(self, used: Array) -> Array:
        """Return the factors of words, by their numbers."""
        factors = np.ones(max(self.at.max(initial=0), used.max(initial=0)) + 1)
        factors[self.at] = self.factors
        return factors[used]


BlockFactors: TypeAlias = WordFactors | ColumnFactors | None  # None for a block without words


def factors_of(evidence: WordEvidence, factors: Array) -> WordFactors | ColumnFactors:
    """Return the factors that differ from 1 of the words of evidence, by name if they have names."""
    if evidence.vocabulary is not None:
        return WordFactors.kept(evidence.vocabulary, evidence.at, factors)
    changed = np.flatnonzero(np.abs(factors - 1.0) >= NEAR_ONE)
    return ColumnFactors(evidence.at[changed], factors[changed])


# -- fit of the factors ------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class FactorProblem:
    """The data of the fit of factors: n rows, K classes, and U words of all blocks together."""

    blocks: Sequence[WordEvidence | None]  # of each block; None for a block without words
    evidence: list[tuple[WordEvidence, Array]]  # of each block with words, and the common scale of its rows (n,)
    rest: Array  # (n, K) scaled scores of the other blocks, and the log prior
    codes: Array  # (n,)
    weight: Array  # (n,) 1, or 0 for rows that are left out
    strengths: Array  # (B,) λ s̄² of each block with words
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
    ) -> FactorProblem:
        """Collect the data that do not depend on the factors."""
        n, K = scores[0].shape
        rest = np.repeat(log_prior[None, :], n, axis=0)
        for score, scale, words in zip(scores, scales, found):
            if words is None:
                rest += scale[:, None] * np.asarray(score)
        usable = (np.bincount(codes, minlength=K)[codes] > 1) & np.isfinite(rest[np.arange(n), codes])
        rest[~usable] = 0.0
        evidence = [(words, scale) for words, scale in zip(found, scales) if words is not None]
        strengths = np.array([penalty * np.mean(scale**2) for _, scale in evidence])
        return cls(found, evidence, rest, codes, usable.astype(float), strengths, offset_sd)

    def fits(self, offsets: Array, penalties: Sequence[float]) -> list[tuple[tuple[BlockFactors, ...], Array]]:
        """Return the factors of each block and the offsets at the minimum, for each multiple of the penalty.

        Offsets of classes without rows stay as given.
        """
        problems = [replace(self, strengths=penalty * self.strengths) for penalty in penalties]
        large = sum(found.rows.nnz for found, _ in self.evidence) * self.rest.shape[1] >= LARGE
        minima = (
            each(lambda one: one.minimum(offsets), problems) if large else [one.minimum(offsets) for one in problems]
        )
        return [(self._by_block(factors), fitted) for factors, fitted in minima]

    def _by_block(self, factors: Array) -> tuple[BlockFactors, ...]:
        """Return the factors (U,) of the words of all blocks, block by block."""
        limits = np.cumsum([0, *(0 if words is None else len(words.at) for words in self.blocks)])
        return tuple(
            None if words is None else factors_of(words, factors[start:end])
            for words, (start, end) in zip(self.blocks, pairwise(limits))
        )

    @property
    def strength(self) -> Array:
        """Return λ_w of each word, shape (U,)."""
        return np.repeat(self.strengths, [len(found.at) for found, _ in self.evidence])

    def objective(self, factors: Array, offsets: Array) -> tuple[float, Array, Array]:
        """Return the penalised cross-entropy, and its gradients by factors and offsets."""
        log_p, own = self._log_posterior(factors, offsets), (np.arange(len(self.codes)), self.codes)
        away, residual = factors - 1.0, np.exp(log_p)
        pulled = self.strength * away
        residual[own] -= 1.0
        residual *= self.weight[:, None]
        loss = -self.weight @ log_p[own]
        loss += (away @ pulled + offsets @ offsets / self.offset_sd**2) / 2
        by_factor = [found.gradient(scale[:, None] * residual) for found, scale in self.evidence]
        by_offset = residual.sum(axis=0) + offsets / self.offset_sd**2
        return float(loss), np.concatenate(by_factor) + pulled, by_offset

    def _log_posterior(self, factors: Array, offsets: Array) -> Array:
        """Return log posteriors of the documents, shape (n, K)."""
        logits, start = self.rest + offsets, 0
        for found, scale in self.evidence:
            logits += scale[:, None] * found.scores(factors[start : start + len(found.at)])
            start += len(found.at)
        logits -= reduce(np.maximum, logits.T)[:, None]  # by class: numpy is slow along short rows
        return np.asarray(logits - np.log(reduce(np.add, np.exp(logits).T))[:, None])

    def curvature(self, factors: Array, offsets: Array) -> tuple[Array, Array]:
        """Return the approximate diagonal of the curvature, by factors and by offsets."""
        p = np.exp(self._log_posterior(factors, offsets))
        spread = self.weight[:, None] * p * (1 - p)
        by_factor = [found.curvature((scale**2)[:, None] * spread) for found, scale in self.evidence]
        return np.concatenate(by_factor) + self.strength, spread.sum(axis=0) + 1 / self.offset_sd**2

    def minimum(self, offsets: Array) -> tuple[Array, Array]:
        """Return the factors (U,) and offsets (K,) of the minimum; offsets of classes without rows stay."""
        entries = sum(found.rows.nnz for found, _ in self.evidence)
        many = len(offsets) > 2 and compiled(entries * len(offsets))
        factors, made = self._by_documents() if many else self._by_steps(offsets)
        has_rows = np.bincount(self.codes, self.weight, len(offsets)) > 0
        made = np.where(has_rows, made - made[has_rows].mean(), offsets)
        return np.maximum(factors, 0.0), made

    def _by_steps(self, offsets: Array) -> tuple[Array, Array]:
        """Return factors and offsets of the minimum by L-BFGS, which starts at factors of 1 and these offsets."""
        U = sum(len(found.at) for found, _ in self.evidence)
        unit = 1 / np.sqrt(np.concatenate(self.curvature(np.ones(U), offsets)))

        def value(x: Array) -> tuple[float, Array]:
            parameters = x * unit
            loss, by_factor, by_offset = self.objective(parameters[:U], parameters[U:])
            return loss, np.concatenate([by_factor, by_offset]) * unit

        found = _least(value, np.concatenate([np.ones(U), offsets]) / unit, U) * unit
        return found[:U], found[U:]

    def _by_documents(self) -> tuple[Array, Array]:
        """Return factors and offsets of the minimum by dual coordinate ascent, from factors of 1 and offsets of 0.

        Each pass takes the documents in another order, drawn with a fixed seed; in one order for all passes the gap
        falls much more slowly. Many documents are divided into two groups, which do not depend on the number of
        threads. In a pass each group ascends by itself and counts its moves more than once, because the other group
        makes similar ones. Factors and offsets then follow from the moves of both, each counted once.
        """
        from deciban.text.kernels.word_evidence_compiled import ascend

        entries = self._stacked()
        indptr, table = entries[0], entries[4]
        (n, K), columns = self.rest.shape, table.shape[1]
        longest = np.diff(indptr).reshape(-1, n).sum(axis=0).max()
        factors, offsets, dual = np.ones(len(table)), np.zeros(K), np.zeros((n, K))
        used, rng, negligible = np.flatnonzero(self.weight), np.random.default_rng(0), 0.0
        gaps, losses = np.zeros((2, n))
        many = len(used) >= MANY
        wanted, share, taken = (GAP_OF_MANY, NEGLIGIBLE_OF_MANY, used) if many else (GAP, NEGLIGIBLE, used)
        groups = GROUPS if many else 1
        times = TIMES if many else 1.0
        data = *entries, self.rest, self.codes, times / self.strengths, times * self.offset_sd**2

        def ascended(order: Array) -> tuple[Array, Array, Array]:
            """Take a step for each of these documents; return the factors, the offsets and sums of offsets."""
            own = factors.copy(), offsets.copy(), np.zeros(K)
            buffers = np.zeros((1, columns), np.float32), np.zeros(columns, np.float32), np.zeros(longest, np.float32)
            ascend(order, *data, negligible, *own, dual, gaps, losses, *buffers)
            return own

        for _ in range(MAX_PASSES):
            order = rng.permutation(taken)
            each_group = each(ascended, np.array_split(order, groups))
            found, moved, sums = (sum(parts[1:], start=parts[0]) for parts in zip(*each_group))
            factors = factors + (found - groups * factors) / times
            offsets = offsets + (moved - groups * offsets) / times
            gap, loss = gaps.sum(), losses.sum()
            if gap <= wanted * loss:
                break
            negligible = share * wanted * loss / len(used)
            if many:  # skip documents whose gap is negligible
                taken = used[gaps[used] > negligible]
        # offsets move with each document: at a large gap, their mean over a pass is nearer to the minimum than the last
        return factors, sums / len(order) if many else offsets

    def _stacked(self) -> tuple[Array, ...]:
        """Return the evidence of all blocks as one, as `ascend` reads it.

        Row limits, words, terms and own of the entries; table (U, C), totals (B·n, K) and scales (B·n,).
        """
        K, single = self.rest.shape[1], np.float32
        U = sum(len(found.at) for found, _ in self.evidence)
        table = np.zeros((U, 4 if K <= 4 else -(-K // 8) * 8), single)
        indptr, words, terms, own, totals, start = [np.zeros(1, np.int64)], [], [], [], [], 0
        for found, _ in self.evidence:
            rows, U = found.rows, len(found.at)
            table[start : start + U, :K] = found.table
            indptr.append(rows.indptr[1:] + indptr[-1][-1])
            indices = rows.indices.astype(np.int32, copy=False)
            words.append(indices + np.int32(start) if start else indices)
            terms.append(rows.data.astype(single, copy=False))
            own.append(np.zeros_like(terms[-1]) if found.own is None else found.own.data.astype(single, copy=False))
            totals.append(found.totals.astype(single, copy=False))
            start += U
        scales = _joined([np.asarray(scale, float) for _, scale in self.evidence])
        entries = (np.concatenate(indptr), *map(_joined, (words, terms, own)))
        return *entries, table, _joined(totals), np.ascontiguousarray(scales)


def _joined(parts: list[Array]) -> Array:
    """Concatenate arrays; a single array is not copied."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _like(matrix: sp.csr_array, data: Array) -> sp.csr_array:
    """Return a sparse matrix with other entries at the same places; the arrays of places are shared."""
    return sp.csr_array((data, matrix.indices, matrix.indptr), matrix.shape)


def _least(value: Callable[[Array], tuple[float, Array]], start: Array, U: int) -> Array:
    """Minimise by L-BFGS with the first U numbers ≥ 0; a number at 0 with a positive gradient is held in a step."""
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


# -- sources -----------------------------------------------------------------------------------------------------------
class LeftOutWords:
    """Learnt documents, each scored by a model without it; mutable: evidence is kept once it was computed."""

    def __init__(self, text: Text, stats: TextStats, X: TextRows, members: Members, rule: Rule) -> None:
        self.text, self.stats, self.X, self.members, self.rule = text, stats, X, members, rule
        self._scorer: LeaveOneOut | None = None  # until evidence is computed, to free its memory
        self._exact: WordEvidence | None = None
        self._between_classes: WordEvidence | None = None  # in single precision, without terms that all classes share

    def take(self, rows: Any) -> LeftOutWords:
        """Return some of the documents; the model still has learnt all."""
        return LeftOutWords(self.text, self.stats, self.X[rows], self.members.take(rows), self.rule)

    def scores(self, rows: Array | None = None) -> Array:
        """Return the leave-one-out scores of these documents, or of all, shape (m, K)."""
        scorer = self._left_out()
        return scorer.all_scores(self.text) if rows is None else scorer(self.text, rows)

    def _left_out(self) -> LeaveOneOut:
        if self._scorer is None:
            self._scorer = LeaveOneOut(self.text, self.stats, self.X, self.members, self.rule)
        return self._scorer

    def _words(self, dtype: Any) -> WordEvidence:
        vocabulary, found = self._left_out().entries(self.text, dtype)
        self._scorer = None
        return _left_out_evidence(vocabulary, found)

    def evidence(self) -> WordEvidence:
        """Return the evidence of each word in each document, without terms that all classes share."""
        if self._between_classes is None:
            self._between_classes = self._words(np.float32).between_classes()
        return self._between_classes

    def rescaled(self, factors: WordFactors) -> Array:
        """Return leave-one-out scores with the evidence of each word multiplied by its factor, shape (n, K)."""
        found = self.exact_evidence()
        vocabulary: Any = found.vocabulary
        return found.scores(factors.of(vocabulary)[found.at])

    def exact_evidence(self) -> WordEvidence:
        """Return the evidence of each word in each document in double precision, with terms that all classes share."""
        if self._exact is None:
            self._exact = self._words(np.float64)
        return self._exact


@dataclass(frozen=True, eq=False)
class NewWords:
    """Documents scored by a density."""

    density: TextDensity
    X: TextRows

    def take(self, rows: Any) -> NewWords:
        """Return some of the documents."""
        return NewWords(self.density, self.X[rows])

    def evidence(self) -> WordEvidence:
        """Return the evidence of each word in each document, without terms that all classes share."""
        return self.density.word_evidence(self.X).between_classes()

    def rescaled(self, factors: WordFactors) -> Array:
        """Return the scores with the evidence of each word multiplied by its factor, shape (n, K)."""
        return self.density.rescaled(self.X, factors)


# -- evidence of words from that of runs of characters -----------------------------------------------------------------
def parts_by_word(
    tokens: Tokens, texts: Sequence[str], names: Sequence[str], parts: Array
) -> tuple[list[str], Array, Array]:
    """Return words (W,), their parts (n, K, W) and counts (n, W), from parts (n, K, P) of runs of characters.

    >>> tokens, runs = Tokens("char_wb", (3, 3)), [" to", "be ", "to "]
    >>> words, parts, counts = parts_by_word(tokens, ["To be to"], runs, np.array([[[2.0, 1.0, 0.5]]]))
    >>> words, parts.tolist(), counts.tolist()
    (['be', 'to'], [[[1.0, 2.5]]], [[1, 2]])
    """
    place = {name: at for at, name in enumerate(names)}
    found, runs = tokens.words_with_runs(texts)
    words = sorted(runs)
    column = {word: at for at, word in enumerate(words)}
    made, counts = np.zeros((*parts.shape[:2], len(words))), np.zeros((len(texts), len(words)), dtype=object)
    for i, document in enumerate(found):
        often = Counter(run for word in document for run in runs[word])
        for word in document:
            counts[i, column[word]] += 1
            for run in runs[word]:
                if run in place:
                    made[i, :, column[word]] += parts[i, :, place[run]] / often[run]
    counts[counts == 0] = None
    return words, made, counts
