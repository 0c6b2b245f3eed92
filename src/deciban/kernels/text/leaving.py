"""Documents scored without themselves: of their words' logarithms, those of their own class move, and some words go.

The twin is `families.text.left_out`, which does the same for whatever a word may count.
"""

from __future__ import annotations

import numpy as np

from ..choice import Array
from ..intrinsics import prefetch
from ..jit import kernel
from ..register_sums import sum_scaled_rows_of

AHEAD = 16  # entries between asking for a count and using it


@kernel
def words_left(
    data: Array,
    indices: Array,
    indptr: Array,
    codes: Array,
    weight: Array,
    counts: Array,
    logs: Array,
    totals: Array,
    prunable: Array,
    shift: Array,
    rounding: float,
    words: Array,
    amounts: Array,
    zero: Array,
    out: Array,
    length: Array,
    lost: Array,
    gone: Array,
) -> None:
    """For each row i write Σ x·logs[word] to out[i], its own class by what the row leaves of counts + shift.

    A prunable word of which the row leaves nothing, in all classes together, is passed over and counted in gone[i].
    length[i] is Σ x of the others, lost[i] all that the own class loses. counts and logs are (V, K), a word's numbers
    side by side. `words` and `amounts` are room for a row.
    """
    K = counts.shape[1]
    for i in range(codes.size):
        c, w = codes[i], (weight[i] if weight.size else 1.0)
        begin, end = indptr[i], indptr[i + 1]
        for p in range(begin, min(begin + AHEAD, end)):
            prefetch(counts, indices[p] * K + c)
        m, own, long, less, left_words = 0, 0.0, 0.0, 0.0, 0
        for p in range(begin, end):
            prefetch(counts, indices[min(p + AHEAD, indices.size - 1)] * K + c)
            word, x = np.uint64(indices[p]), data[p]
            removed = x * w
            less += removed
            if prunable[word] and totals[word] - removed <= rounding * totals[word]:
                left_words += 1
                continue
            words[m], amounts[m] = indices[p], x
            m += 1
            long += x
            count = counts[word, np.uint64(c)]
            left = count - removed
            top = (0.0 if left <= rounding * count else left) + shift[word]
            own += x * (np.log(top) if top > 0 else (-np.inf if top == 0 else np.nan))
        sum_scaled_rows_of(logs, words, amounts, zero, out, 0, m, words.size - 1, i)
        out[i, np.uint64(c)] = own
        length[i], lost[i], gone[i] = long, less, left_words
