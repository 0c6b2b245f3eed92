"""Leave-one-out scores of documents: in its own class, a document is scored by counts without its own words.

The numpy version is in `deciban.text.leave_one_out`.
"""

from __future__ import annotations

import numpy as np

from deciban.kernels.choice import Array
from deciban.kernels.intrinsics import prefetch, sum_rows
from deciban.kernels.jit import kernel

DISTANCE = 16  # entries between the prefetch of a count and its use
LEAST, MOST = 1e-100, 1e100  # products stay between these, so that they neither underflow nor overflow


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
