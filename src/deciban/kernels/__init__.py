"""The hot loops: each sums, scores or counts plain numpy arrays.

Every function has two bodies that give the same answer: a readable numpy twin (`reference`) for small inputs, which
must not wait for a compiler, and a numba kernel for large ones. Which one runs depends on the amount of work alone, so
the same input always gives the same answer; `forced` overrides the choice in tests. numba is imported when the first
large input arrives, never before.

What holds throughout: n rows, D features, K classes, V words. `codes` are class numbers in [0, K) (IndexError
otherwise). `weight` is None or (n,) with weights ≥ 0; a row of weight 0 is skipped whatever it holds, NaN included.
Sums are float64. No input is ever written to.
"""

from deciban.kernels.categories import CategoryError, category_counts, category_counts_growing, category_scores
from deciban.kernels.choice import SMALL_WORK, forced
from deciban.kernels.dense import (
    class_moments,
    class_moments_with_gaps,
    class_scatter,
    diagonal_left_out,
    diagonal_scores,
    whitened_distances,
)
from deciban.kernels.rows import class_weights, encode_integers, log_softmax, log_sum_exp, softmax
from deciban.kernels.words import (
    row_lookups,
    sparse_class_lookups,
    sparse_class_moments,
    sparse_class_sums,
    sparse_left_over,
    sparse_scores,
)

__all__ = [
    "SMALL_WORK",
    "CategoryError",
    "category_counts",
    "category_counts_growing",
    "category_scores",
    "class_moments",
    "class_moments_with_gaps",
    "class_scatter",
    "class_weights",
    "diagonal_left_out",
    "diagonal_scores",
    "encode_integers",
    "forced",
    "log_softmax",
    "log_sum_exp",
    "row_lookups",
    "softmax",
    "sparse_class_lookups",
    "sparse_class_moments",
    "sparse_class_sums",
    "sparse_left_over",
    "sparse_scores",
    "whitened_distances",
]
