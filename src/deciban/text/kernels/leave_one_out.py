"""Documents scored without themselves: of their words' logarithms, those of their own class move, and some words go.

The twin is `families.text.left_words.plain_words`, which does the same for whatever a word may count.
"""

from __future__ import annotations

import numpy as np

from deciban.kernels.choice import Array
from deciban.kernels.intrinsics import prefetch
from deciban.kernels.jit import kernel
from deciban.kernels.words_compiled import sum_scaled_rows_of

AHEAD = 16  # entries between asking for a count and using it
LEAST, MOST = 1e-100, 1e100  # products of numbers between these are cut before they leave the range of floats


@kernel
def number_words(columns: Array, place: Array, used: Array, places: Array) -> int:
    """Number words as they come, the frequent ones soon: write each entry's number, and the columns of the U numbered.

    `place` is (V,), −1 before and each word's number after; the answer is U.
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
def shifted_counts(counts: Array, by_class: int, by_word: int, place: Array, shift: Array, out: Array) -> None:
    """Write the counts of words that have a place, plus the shift of each, to (U, K): side by side for all classes."""
    for column in range(place.size):
        if place[column] >= 0:
            u, start = np.uint64(place[column]), column * by_word
            for k in range(out.shape[1]):
                out[u, k] = counts[np.uint64(start + k * by_class)] + shift[u]


@kernel
def words_left(
    times: Array,
    columns: Array,
    places: Array,
    indptr: Array,
    codes: Array,
    weight: Array,
    amounts: Array,
    factors: Array,
    counts: Array,
    by_class: int,
    by_word: int,
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
    """For each row i write Σ x·logs[word] to out[i], its own class by what the row leaves of counts + shift.

    An entry's word has a column among all V words, whose counts are steps of `by_class` and `by_word` apart, and a
    place among the U that are used; logs are (U, K), factors, limits and shift (U,). A word that occurs t times counts
    x = amounts[t], times its factor where there are any. If the row takes its limit or more, it is passed over and
    counted in gone[i]. length[i] is Σ x of the others, lost[i] all that the own class loses. Words that count the same
    share logarithms: `products` is room for their products, `words` and `kept` for a row.
    """
    last = columns.size - 1
    grouped = np.uint64(0 if factors.size else products.size)
    for i in range(codes.size):
        c, w = codes[i], (weight[i] if weight.size else 1.0)
        begin, end, start = indptr[i], indptr[i + 1], c * by_class
        for p in range(begin, min(begin + AHEAD, end)):
            prefetch(counts, start + columns[p] * by_word)
        m, own, long, less, left_words = 0, 0.0, 0.0, 0.0, 0
        products[:] = 1.0
        for p in range(begin, end):
            prefetch(counts, start + columns[min(p + AHEAD, last)] * by_word)
            word, t = np.uint64(places[p]), np.uint64(times[p])
            x = amounts[t] * factors[word] if factors.size else amounts[t]
            removed = x * w
            less += removed
            if removed >= limits[word]:
                left_words += 1
                continue
            words[m], kept[m] = places[p], x
            m += 1
            long += x
            count = counts[np.uint64(start + columns[p] * by_word)]
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
        sum_scaled_rows_of(logs, words, kept, zero, out, 0, m, words.size - 1, i)
        out[i, np.uint64(c)] = own
        length[i], lost[i], gone[i] = long, less, left_words
