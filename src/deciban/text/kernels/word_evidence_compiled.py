"""Evidence of words in documents: leave-one-out scores and entries, and the fit of a factor for each word.

Leave-one-out: in its own class, a document is scored by counts without its own words. The numpy version is in
`deciban.text.leave_one_out`.

Factors: dual coordinate ascent for the problem of `deciban.text.word_evidence`; one document after the other moves the
factors of its words. The dual has a distribution q_i over the classes for each document i. The distributions determine
factors and offsets,

    u_w = max(0, 1 + Σ_ic ([c is the class of i] − q_ic)·e_iwc/λ_w)        b_c = sd²·Σ_i ([c is the class of i] − q_ic)

and at the maximum each q_i is the posterior p_i. A document moves its q by a step towards p, with d = q − p:

    step = (KL(q‖p) + |d|²) / (2|d|² + Σ_w (Σ_c d_c·e_iwc)²/λ_w + sd²·|d|²)         at most 1

This raises the dual, because the second derivatives of the cross-entropy by the scores are at most ½. Σ_i KL(q_i‖p_i)
is the duality gap: no other factors have an objective that is lower by more.

Reference: Shalev-Shwartz and Zhang, Accelerated proximal stochastic dual coordinate ascent, 2016, section 3.
"""

from __future__ import annotations

import numpy as np

from deciban.kernels.choice import Array
from deciban.kernels.intrinsics import exp, prefetch, row_products, sum_rows
from deciban.kernels.jit import inline, kernel

DISTANCE = 16  # entries between the prefetch of a count and its use
LEAST, MOST = 1e-100, 1e100  # products stay between these, so that they neither underflow nor overflow
LINE = 16  # numbers of 32 bits in a cache line
NEAR = 32  # words of a document whose rows `sum_rows` does not prefetch


# -- leave-one-out -----------------------------------------------------------------------------------------------------
@kernel
def number_words(columns: Array, place: Array, used: Array, places: Array) -> int:
    """Number the words that occur in order of first occurrence; the number of words U.

    Writes the number of each entry's word to `places`, and the column of each numbered word to `used`. `place` is (V,),
    −1 before the call, and the number of each word afterwards.
    """
    U = 0
    for p in range(columns.size):
        column = np.uint64(columns[p])
        if place[column] < 0:
            place[column] = U
            used[U] = columns[p]
            U += 1
        places[p] = place[column]
    return U


@kernel
def shifted_counts(counts: Array, class_stride: int, word_stride: int, place: Array, shift: Array, out: Array) -> None:
    """Write the counts of numbered words, plus the shift of each, to (U, K). `counts` is flat, with these strides."""
    for column in range(place.size):
        if place[column] >= 0:
            u, start = np.uint64(place[column]), column * word_stride
            for k in range(out.shape[1]):
                out[u, k] = counts[np.uint64(start + k * class_stride)] + shift[u]


@kernel
def leave_one_out_scores(
    times: Array,
    columns: Array,
    places: Array,
    indptr: Array,
    codes: Array,
    weight: Array,
    amounts: Array,
    factors: Array,
    counts: Array,
    class_stride: int,
    word_stride: int,
    logs: Array,
    limits: Array,
    shift: Array,
    rounding: float,
    products: Array,
    words: Array,
    kept: Array,
    zero: Array,
    out: Array,
    length: Array,
    lost: Array,
    gone: Array,
) -> None:
    """Write Σ x·logs[word] of each row i to out[i]; for the row's own class, with logs of counts − w x + shift.

    An entry's word has a column among all V words, whose counts are flat with the strides given, and a number among the
    U words that occur; logs is (U, K), factors, limits and shift are (U,). A word that occurs t times counts x =
    amounts[t], times its factor if there are factors. If w x reaches the limit of a word, removing the row deletes the
    word: it is skipped, and its shift is added to gone[i]. length[i] is Σ x of the other words, lost[i] is Σ w x of all
    words.

    The logarithm is taken of products of counts with the same x. `products` is a buffer for these, `words` and `kept`
    are buffers for a row.
    """
    last = columns.size - 1
    grouped = np.uint64(0 if factors.size else products.size)
    for i in range(codes.size):
        c, w = codes[i], (weight[i] if weight.size else 1.0)
        begin, end, start = indptr[i], indptr[i + 1], c * class_stride
        for p in range(begin, min(begin + DISTANCE, end)):
            prefetch(counts, start + columns[p] * word_stride)
        m, own, long, less, deleted = 0, 0.0, 0.0, 0.0, 0.0
        products[:] = 1.0
        for p in range(begin, end):
            prefetch(counts, start + columns[min(p + DISTANCE, last)] * word_stride)
            word, t = np.uint64(places[p]), np.uint64(times[p])
            x = amounts[t] * factors[word] if factors.size else amounts[t]
            removed = x * w
            less += removed
            if removed >= limits[word]:
                deleted += shift[word]
                continue
            words[m], kept[m] = places[p], x
            m += 1
            long += x
            count = counts[np.uint64(start + columns[p] * word_stride)]
            left = count - removed
            top = (0.0 if left <= rounding * count else left) + shift[word]
            if t < grouped and LEAST < top < MOST:
                product = products[t] * top
                if not LEAST < product < MOST:
                    own += x * np.log(product)
                    product = 1.0
                products[t] = product
            else:
                own += x * (np.log(top) if top > 0 else (-np.inf if top == 0 else np.nan))
        for g in range(min(products.size, amounts.size)):
            if products[g] != 1.0:
                own += amounts[g] * np.log(products[g])
        sum_rows(logs, words, kept, zero, out, 0, m, words.size - 1, i)
        out[i, np.uint64(c)] = own
        length[i], lost[i], gone[i] = long, less, deleted


@kernel
def count_left_out(
    times: Array,
    columns: Array,
    places: Array,
    indptr: Array,
    codes: Array,
    weight: Array,
    amounts: Array,
    factors: Array,
    limits: Array,
    kept: Array,
    stays: Array,
) -> None:
    """Write the number of words that stay when row i is left out to kept[i], and True to stays[word] for each of them.

    Arguments are those of `leave_one_out_scores`.
    """
    for i in range(codes.size):
        m, w = 0, (weight[i] if weight.size else 1.0)
        for p in range(indptr[i], indptr[i + 1]):
            word, t = np.uint64(places[p]), np.uint64(times[p])
            if (amounts[t] * factors[word] if factors.size else amounts[t]) * w < limits[word]:
                stays[word] = True
                m += 1
        kept[i] = m


@kernel
def left_out_entries(
    times: Array,
    columns: Array,
    places: Array,
    indptr: Array,
    codes: Array,
    weight: Array,
    amounts: Array,
    factors: Array,
    counts: Array,
    class_stride: int,
    word_stride: int,
    limits: Array,
    shift: Array,
    rounding: float,
    starts: Array,
    number: Array,
    words: Array,
    terms: Array,
    own: Array,
    lost: Array,
    gone: Array,
) -> None:
    """Write the words that stay when row i is left out: number[word], x, and what its own class loses of its evidence.

    That is x·log((count − w x + shift) / (count + shift)). Arguments are those of `leave_one_out_scores`. The entries
    of row i begin at starts[i]. lost[i] is Σ w x of all its words, gone[i] the sum of the shifts of words that leave.
    """
    last = columns.size - 1
    for i in range(codes.size):
        c, w, m = codes[i], (weight[i] if weight.size else 1.0), starts[i]
        start, less, deleted = c * class_stride, 0.0, 0.0
        for p in range(indptr[i], indptr[i + 1]):
            prefetch(counts, start + columns[min(p + DISTANCE, last)] * word_stride)
            word, t = np.uint64(places[p]), np.uint64(times[p])
            x = amounts[t] * factors[word] if factors.size else amounts[t]
            removed = x * w
            less += removed
            if removed >= limits[word]:
                deleted += shift[word]
                continue
            count = counts[np.uint64(start + columns[p] * word_stride)]
            left = count - removed
            words[m], terms[m] = number[word], x
            own[m] = x * np.log(((0.0 if left <= rounding * count else left) + shift[word]) / (count + shift[word]))
            m += 1
        lost[i], gone[i] = less, deleted


# -- factors of words --------------------------------------------------------------------------------------------------
@inline
def _prefetch_document(
    i: int, indptr: Array, words: Array, terms: Array, own: Array, totals: Array, rest: Array, dual: Array
) -> None:
    """Prefetch the entries of document i and its rows of other arrays: documents come in random order."""
    n, K = rest.shape
    for c in range(0, K, LINE // 2):
        prefetch(rest, i * K + c)
        prefetch(dual, i * K + c)
    for r in range(i, indptr.size - 1, n):
        for p in range(indptr[r], indptr[r + 1] + LINE - 1, LINE):
            prefetch(words, p)
            prefetch(terms, p)
            prefetch(own, p)
        for c in range(0, totals.shape[1], LINE):
            prefetch(totals, r * totals.shape[1] + c)


@kernel
def ascend(
    order: Array,
    indptr: Array,
    words: Array,
    terms: Array,
    own: Array,
    table: Array,
    totals: Array,
    scales: Array,
    rest: Array,
    codes: Array,
    inverse: Array,
    variance: float,
    negligible: float,
    factors: Array,
    offsets: Array,
    offset_sums: Array,
    dual: Array,
    gaps: Array,
    losses: Array,
    scores: Array,
    away: Array,
    moved: Array,
) -> None:
    """Take one step for each of the documents in `order`; write its part of the duality gap and of the cross-entropy.

    The entries of document i in block b are those of row b·n + i: word, term x and own e. For the class c, a word w of
    the table (U, C) has the evidence scales[b·n + i]·x·(table[w, c] − totals[b·n + i, c]), plus scales[b·n + i]·e in
    the document's own class. C is K rounded up to a multiple of 4 or 8, and the further columns are 0. Terms, own,
    table and totals are float32. `inverse` is 1/λ of each block, `variance` is sd². A document whose part of the gap is
    below `negligible` takes no step.

    Changed in place: factors before the limit at 0, (U,), offsets (K,), and dual (n, K), which holds [c is the class of
    i] − q_ic. The offsets by which each document was scored are added to `offset_sums`, (K,). Written: gaps and losses,
    (n,). Buffers: scores (1, C), away (C,), and moved, as long as the longest document.
    """
    n, K = rest.shape
    log_p, posterior = np.empty(K), np.empty(K)
    for position in range(order.size):
        i, y, mine, at = order[position], codes[order[position]], 0.0, 0
        if position + 1 < order.size:
            _prefetch_document(order[position + 1], indptr, words, terms, own, totals, rest, dual)
        prefetch(indptr, order[min(position + 3, order.size - 1)])
        scores[:] = 0.0
        for r in range(i, indptr.size - 1, n):
            begin, end, mass, scale = indptr[r], indptr[r + 1], 0.0, scales[r]
            weighted = moved[: end - begin]
            for p in range(begin, min(begin + NEAR, end)):
                for c in range(0, table.shape[1], LINE):
                    prefetch(table, words[p] * table.shape[1] + c)
            for p in range(begin, end):
                u = scale * max(factors[words[p]], 0.0)
                weighted[p - begin] = u * terms[p]
                mass += u * terms[p]
                mine += u * own[p]
            sum_rows(table, words[begin:end], weighted, scores[0], scores, 0, end - begin, end - begin - 1, 0)
            for c in range(K):
                scores[0, c] -= mass * totals[r, c]
        scores[0, y] += mine
        top, total = -np.inf, 0.0
        for c in range(K):
            log_p[c] = scores[0, c] + rest[i, c] + offsets[c]
            offset_sums[c] += offsets[c]
            top = max(top, log_p[c])
        for c in range(K):
            posterior[c] = exp(log_p[c] - top)
        for c in range(K):
            total += posterior[c]
        top += np.log(total)
        divergence, distance = 0.0, 0.0
        for c in range(K):
            log_p[c] -= top
            q = (1.0 if c == y else 0.0) - dual[i, c]
            if q > 0.0:
                divergence += q * (np.log(q) - log_p[c])
            away[c] = q - posterior[c] / total
            distance += away[c] * away[c]
        losses[i], gaps[i] = -log_p[y], divergence
        if not divergence > negligible:
            continue
        curvature = variance * distance
        for r in range(i, indptr.size - 1, n):
            begin, end, by_total, scale = indptr[r], indptr[r + 1], 0.0, scales[r]
            for c in range(K):
                by_total += away[c] * totals[r, c]
            slope, squares = moved[at:], 0.0
            row_products(table, words, away, slope, begin, end)
            for p in range(begin, end):
                g = scale * (terms[p] * (slope[p - begin] - by_total) + away[y] * own[p])
                slope[p - begin] = g
                squares += g * g
            curvature += squares * inverse[r // n]
            at += end - begin
        step = min(1.0, (divergence + distance) / (2 * distance + curvature))
        at = 0
        for r in range(i, indptr.size - 1, n):
            for p in range(indptr[r], indptr[r + 1]):
                factors[words[p]] += step * inverse[r // n] * moved[at]
                at += 1
        for c in range(K):
            dual[i, c] += step * away[c]
            offsets[c] += variance * step * away[c]
