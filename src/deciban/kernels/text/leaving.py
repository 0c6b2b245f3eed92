"""Documents scored without themselves: of their words' logarithms, those of their own class move, and some words go.

The twin is `families.text.left_words.plain_words`, which does the same for whatever a word may count.
"""

from __future__ import annotations

import numpy as np

from ..choice import Array
from ..intrinsics import prefetch
from ..jit import kernel
from ..register_sums import sum_scaled_rows_of

AHEAD = 16  # entries between asking for a count and using it
LEAST, MOST = 1e-100, 1e100  # products of numbers between these are cut before they leave the range of floats


@kernel
def words_left(
    times: Array,
    indices: Array,
    indptr: Array,
    codes: Array,
    weight: Array,
    amounts: Array,
    factors: Array,
    counts: Array,
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

    A word that occurs t times counts x = amounts[t], times its factor where there are any. If the row takes
    limits[word] or more of it, it is passed over and counted in gone[i]. length[i] is Σ x of the others, lost[i] all
    that the own class loses. counts and logs are (V, K), a word's numbers side by side. Words that count the same share
    logarithms: `products` is room for their products, `words` and `kept` for a row.
    """
    K = counts.shape[1]
    grouped = np.uint64(0 if factors.size else products.size)
    for i in range(codes.size):
        c, w = codes[i], (weight[i] if weight.size else 1.0)
        begin, end = indptr[i], indptr[i + 1]
        for p in range(begin, min(begin + AHEAD, end)):
            prefetch(counts, indices[p] * K + c)
        m, own, long, less, left_words = 0, 0.0, 0.0, 0.0, 0
        products[:] = 1.0
        for p in range(begin, end):
            prefetch(counts, indices[min(p + AHEAD, indices.size - 1)] * K + c)
            word, t = np.uint64(indices[p]), np.uint64(times[p])
            x = amounts[t] * factors[word] if factors.size else amounts[t]
            removed = x * w
            less += removed
            if removed >= limits[word]:
                left_words += 1
                continue
            words[m], kept[m] = indices[p], x
            m += 1
            long += x
            count = counts[word, np.uint64(c)]
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
