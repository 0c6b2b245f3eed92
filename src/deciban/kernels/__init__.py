"""Numeric loops that several packages use: sums, counts and scores of plain numpy arrays.

Each function has two versions that give the same answer: one in numpy, in the module of its subject (`dense`, `sparse`,
`rows`, `latent`), and one compiled by numba, in the module of the same name with `_compiled`. The numpy version runs on
small inputs, and on dense tables of up to about two million numbers, so that these do not wait for a compiler. It is
the reference in tests of the compiled version. The amount of work alone decides which version runs, so that the same
input always gives the same answer; where both versions have the same bits, it may also depend on the machine code at
hand (`choice.at_hand`). `forced` overrides the choice in tests. numba is imported when the first large input arrives,
never before.

Conventions: n rows, D features, K classes, V words (columns of sparse rows). `codes` are class codes in [0, K); any
other value raises IndexError. `weight` is None or (n,) with weights ≥ 0; a row of weight 0 is skipped, even if it holds
NaN. Sums are float64. Inputs are never written to.
"""

from deciban.kernels.choice import SMALL_WORK, forced
from deciban.kernels.dense import (
    class_moments,
    class_moments_with_gaps,
    class_moments_within,
    class_scatter,
    class_scatter_within,
    class_weights,
    diagonal_left_out,
    diagonal_scores,
    linear_scores,
    rows_beyond,
    whitened_distances,
)
from deciban.kernels.rows import (
    add_row,
    all_finite,
    encode_integers,
    log_softmax,
    log_sum_exp,
    row_all,
    row_any,
    row_max,
    row_sum,
    rows_equal,
    softmax,
)
from deciban.kernels.sparse import (
    CategoryError,
    category_counts,
    category_counts_growing,
    category_scores,
    row_lookups,
    sparse_class_lookups,
    sparse_class_moments,
    sparse_class_sums,
    sparse_left_over,
    sparse_scores,
)
