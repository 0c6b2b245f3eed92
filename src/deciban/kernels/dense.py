"""Dense tables: weights and sums per class, scores and leave-one-out terms of Gaussians.

X may have any numeric type and layout; float64, float32 and common integers in C order are read in place.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from deciban.kernels.choice import (
    SMALL_WORK,
    Array,
    at_hand,
    compiled,
    numpy_work,
    quiet,
    readable,
    readable_floats,
    row_blocks,
    row_weights,
    weights_or_empty,
)
from deciban.kernels.parallel import added, each, row_chunks
from deciban.kernels.rows import add_row, row_any, row_sum

# Types that kernels read as they are; any other is converted to float64.
NATIVE = ("float64", "float32", "int64", "int32", "uint8")
CACHED_CELLS = 2**14  # numbers of an array that stays in the cache
BLOCK_CELLS = 2**16  # numbers of a block of rows of a table that is summed or scored block by block

THREADED_CELLS = 2**21  # numbers × classes from which the numpy versions of scores use threads: about 2 ms
MOST_PRODUCTS = 32  # classes up to which sums per class are matrix products with their members

# Work of one number of a table, and of one number for one class, as `numpy_work` counts it. A table of 100,000 × 20 in
# five classes is summed and scored by numpy, 10 to 20 ms slower than by compiled code; compiling takes two seconds.
SUM_WORK = 0.4
SCORE_WORK = 0.08

MOMENT_ROWS = 512  # rows of a block; the size of its sums shows whether a value is beyond reach
NEAR_ZERO = 1e3  # largest sum of products with the origin that is rounded to about 1e-13
LINEAR_ROWS = 1024  # rows that are multiplied at a time: with 50 columns, they fit in the second-level cache
SCORED_ROWS = 64  # rows of a block of diagonal scores: with 50 columns, it fits in the first-level cache
PLAIN_WORK = 2**26  # numbers × classes for which a process without machine code computes leave-one-out terms in numpy

# Products of numbers from 1e-16 to 1: of so many, one of at least SMALL_PRODUCT times them does not underflow.
FACTORS = 16
SMALL_PRODUCT = 2.0**-64

WEIGHT_WORK = 5  # elementary operations of adding one weight to its class


def class_codes(codes: Array, K: int) -> Array:
    """Return class codes as intp that kernels can read; IndexError if one is outside [0, K)."""
    if type(codes) is not np.ndarray or codes.dtype != np.intp or not codes.flags.carray:
        codes = readable(codes, np.intp)
    # As unsigned integers, negative codes are large: one comparison checks both bounds.
    if codes.size and codes.view(np.uintp).max() >= K:
        raise IndexError(f"class codes run from {codes.min()} to {codes.max()}; they must lie in [0, {K})")
    return codes


def class_weights(codes: Array, weight: Array | None, K: int) -> Array:
    """Sum w per class: (K,)."""
    codes = class_codes(codes, K)
    if WEIGHT_WORK * codes.size <= numpy_work.get():
        return np.bincount(codes, weight, minlength=K).astype(np.float64)  # without rows bincount returns integers
    from deciban.kernels.dense_compiled import add_class_weights

    weight = row_weights(weight)

    def weigh(chunk: slice) -> tuple[Array]:
        sums = np.zeros((K, 8))
        add_class_weights(codes[chunk], weights_or_empty(weight, chunk), sums)
        return (sums,)

    (sums,) = added(weigh, row_chunks(len(codes), 4, 8 * K, multiple=8))
    return np.asarray(sums.sum(axis=1))


def class_moments(X: Array, codes: Array, weight: Array | None, origin: Array, K: int) -> tuple[Array, Array]:
    """Sum w (x−o) and w (x−o)² per class: (K, D) each.

    NaN and inf affect only the sums of their own class and feature, so finite sums show that the data were finite.
    """
    codes = class_codes(codes, K)
    if X.size <= numpy_work.get():
        return _class_moments(_floats(X), codes, weight, origin, K)
    first, second = _compiled_moments(X, codes, weight, origin, K, gaps=False)
    return first, second


def class_moments_with_gaps(
    X: Array, codes: Array, weight: Array | None, origin: Array, K: int
) -> tuple[Array, Array, Array]:
    """Sum w, w (x−o) and w (x−o)² per class over the values that are not NaN: (K, D) each. inf propagates."""
    codes = class_codes(codes, K)
    if X.size <= numpy_work.get():
        return _class_moments_with_gaps(_floats(X), codes, weight, origin, K)
    seen, first, second = _compiled_moments(X, codes, weight, origin, K, gaps=True)
    return seen, first, second


def _compiled_moments(
    X: Array, codes: Array, weight: Array | None, origin: Array, K: int, gaps: bool
) -> tuple[Array, ...]:
    from deciban.kernels.dense_compiled import add_moments

    weight, origin = row_weights(weight), readable(origin, np.float64)

    def sums(chunk: slice) -> tuple[Array, ...]:
        seen, first, second = np.zeros((3, K, len(origin)))
        for rows, block in row_blocks(X, chunk, NATIVE, np.float64):
            out = seen if gaps else None, first, second
            add_moments(block, codes[rows], weights_or_empty(weight, rows), origin, *out)
        return (seen, first, second) if gaps else (first, second)

    return added(sums, _moment_chunks(X, K))


def _moment_chunks(X: Array, K: int) -> list[slice]:
    return row_chunks(len(X), 6 * X.shape[1], 3 * K * X.shape[1], multiple=MOMENT_ROWS)


def class_scatter(X: Array, codes: Array, weight: Array | None, origin: Array, K: int) -> tuple[Array, Array]:
    """Sum w (x−o) and w (x−o)(x−o)ᵀ per class: (K, D) and (K, D, D), the latter symmetric to the bit.

    Within their class, NaN and inf propagate to first[d] and to row and column d of second.
    """
    codes = class_codes(codes, K)
    if X.size <= numpy_work.get():
        return _class_scatter(_floats(X), codes, weight, origin, K)
    from deciban.kernels.dense_compiled import class_scatter as run

    weight, origin, reach = row_weights(weight), readable(origin, np.float64), np.full(len(origin), np.inf)
    return run(X, codes, weight, origin, reach, K)[:2]


def class_moments_within(
    X: Array, codes: Array, weight: Array | None, origin: Array, reach: Array, K: int
) -> tuple[Array, Array, Array, Array]:
    """Sum w, w (x−o) and w (x−o)² per class, (K, D) each, of the rows with all |x−o| ≤ reach; list the other rows.

    NaN is a missing value: it adds nothing, and is within reach.
    """
    codes = class_codes(codes, K)
    if SUM_WORK * X.size <= numpy_work.get():
        return _moments_in_blocks(X, codes, weight, origin, reach, K)
    from deciban.kernels.dense_compiled import class_moments_within as run

    weight, (origin, reach) = row_weights(weight), readable_floats(origin, reach)
    chunks = _moment_chunks(X, K)
    complete = run(X, chunks, codes, weight, origin, reach, K, False)
    return run(X, chunks, codes, weight, origin, reach, K, True) if complete is None else complete  # type: ignore[return-value]


def class_scatter_within(
    X: Array, codes: Array, weight: Array | None, origin: Array, reach: Array, K: int
) -> tuple[Array, Array, Array]:
    """Sum w (x−o) and w (x−o)(x−o)ᵀ per class of the rows with all |x−o| ≤ reach; list the positions of the others.

    NaN is within reach: it propagates as in `class_scatter`.
    """
    codes = class_codes(codes, K)
    if SUM_WORK * X.size <= numpy_work.get():
        return _scatter_in_blocks(X, codes, weight, origin, reach, K)
    from deciban.kernels.dense_compiled import class_scatter as run

    weight, (origin, reach) = row_weights(weight), readable_floats(origin, reach)
    return run(X, codes, weight, origin, reach, K)


@quiet
def rows_beyond(X: Array, origin: Array, reach: Array) -> Array:
    """Return the positions of the rows with some |x−o| > reach; NaN is within reach.

    Usually there is none. The smallest and the largest number of the table show this, or those of each column.
    """
    if not X.size or _ends_within(np.stack([X.min(), X.max()])[:, None], origin, reach):
        return np.empty(0, np.intp)
    if _ends_within(np.stack([X.min(axis=0), X.max(axis=0)]), origin, reach):
        return np.empty(0, np.intp)
    return np.flatnonzero(row_any(np.abs(X - origin) > reach))


def _ends_within(ends: Array, origin: Array, reach: Array) -> bool:
    return bool((np.abs(ends - origin) <= reach).all())


def diagonal_scores(X: Array, mean: Array, half_precision: Array, log_norm: Array, gaps: bool = True) -> Array:
    """Sum log_norm[k, d] − half_precision[k, d] (x[d] − mean[k, d])² over the d where x is not NaN: (n, K).

    Without `gaps`, the scores of a row with NaN are NaN.

    With half_precision = 1/(2σ²) and log_norm = −½ log(2πσ²) this is the log density of a diagonal Gaussian over the
    features that are not missing. Differences are squared, not expanded, so no digits are lost far from zero.
    """
    if SCORE_WORK * X.size * len(mean) <= numpy_work.get():
        return _diagonal_scores(X, mean, half_precision, log_norm, gaps)
    from deciban.kernels.dense_compiled import diagonal_scores as run

    mean, half_precision, log_norm = readable_floats(mean, half_precision, log_norm)
    scores = np.empty((len(X), len(mean)))

    def score(chunk: slice) -> None:
        for rows, block in row_blocks(X, chunk, NATIVE, np.float64):
            run(block, mean, half_precision, log_norm, scores[rows], gaps)

    each(score, row_chunks(len(X), 3 * mean.size, multiple=SCORED_ROWS))
    return scores


class _PlainWork:
    """Numbers × classes that this process has left out in numpy for lack of machine code; it changes no answer."""

    done = 0


plain_work = _PlainWork()


def diagonal_left_out(
    X: Array,
    codes: Array,
    origin: Array,
    mean: Array,
    half_precision: Array,
    log_norm: Array,
    precision: Array,
    share: Array,
    least: float,
) -> tuple[Array, Array, Array, Array] | None:
    """Return scores of complete rows, (n, K), and terms of the score of each row in its own class without the row.

    The scores are those of `diagonal_scores`, with means from the origin. The terms are Σ v/f, Σ log f and min f over
    features, (n,) each: v = ((x − origin) − mean[k])² · precision[k] for the row's class k, and
    f = max(1 − share·v, least) is the factor by which a variance shrinks if the row, of this share (n,), is removed.
    None if a value is missing.
    """
    codes, (n, D), K = class_codes(codes, len(mean)), X.shape, len(mean)
    if X.size * K <= numpy_work.get():
        Z = _floats(X) - origin
        own = _diagonal_left_out(Z, codes, mean, precision, share, least)
        return None if np.isnan(own[0]).any() else (_diagonal_scores(Z, mean, half_precision, log_norm), *own)
    ready = plain_work.done + X.size * K >= PLAIN_WORK or at_hand("deciban.kernels.dense_compiled", "diagonal_left_out")
    run: Callable[..., bool] = _left_out_in_blocks
    if compiled(SMALL_WORK if ready else 0):
        from deciban.kernels.dense_compiled import diagonal_left_out

        run = diagonal_left_out
    else:
        plain_work.done += X.size * K
    mean, half_precision, norms = readable_floats(mean, half_precision, log_norm.sum(axis=1))
    precision, origin, share = readable_floats(precision, origin, share)
    scores, terms = np.empty((n, K)), np.empty((4, n))

    def score(chunk: slice) -> bool:
        for rows, block in row_blocks(X, chunk, NATIVE, np.float64):
            given = origin, mean, half_precision, norms, precision
            if not run(block, codes[rows], *given, share[rows], least, scores[rows], terms[:, rows]):
                return False
        return True

    if not all(each(score, row_chunks(n, (3 * K + 12) * D, multiple=SCORED_ROWS))):
        return None
    distance, smallest, product, power = terms
    return scores, distance, np.log(product) + np.log(2) * power, smallest


def whitened_distances(X: Array, mean: Array, whitener: Array, origin: Array) -> Array:
    """Return squared Mahalanobis distances ‖(x − mean[k]) @ whitener[k]‖², (n, K).

    `whitener` is (K, D, D), or (1, D, D) if all classes share it, with whitener @ whitenerᵀ the precision matrix. Any
    square root is allowed; an upper triangular one (the transposed inverse of the lower Cholesky factor of the
    covariance) saves a quarter of the time. `origin` is a point near the data: x and mean are taken relative to it
    before they are multiplied.
    """
    if SCORE_WORK * X.size * len(mean) <= numpy_work.get():
        return _whitened_distances(X, mean, whitener, origin)
    from deciban.kernels.dense_compiled import whitened_distances as run

    mean, whitener, origin = readable_floats(mean, whitener, origin)
    return run(X, mean, whitener, origin)


def linear_scores(
    X: Array, weights: Array, bias: Array, origin: Array | None = None, limit: Array | None = None
) -> Array:
    """Return bias[k] + (x − origin) · weights[:, k], (n, K). `weights` is (D, K); without origin, x is multiplied.

    The scores of a row with a value of larger absolute value than its limit are NaN.

    There is one version, by BLAS; large tables are multiplied in chunks, at one thread of BLAS each. An origin so near
    zero that no digits are lost is subtracted from the bias instead.
    """
    n, (D, K) = len(X), weights.shape
    if X.size * K <= numpy_work.get():
        scores = np.asarray((X if origin is None else X - origin) @ weights + bias, dtype=np.float64)
        if limit is not None:
            scores[(np.abs(X) > limit).any(axis=1)] = np.nan
        return scores
    if origin is not None and (np.abs(origin) @ np.abs(weights)).max(initial=0.0) < NEAR_ZERO:
        bias, origin = bias - origin @ weights, None
    as_is = origin is None and X.dtype == np.float64
    scores = np.empty((n, K))
    smallest = None if limit is None else limit.min(initial=np.inf)

    def score(chunk: slice) -> None:
        moved = np.empty((0 if as_is else LINEAR_ROWS, D))
        for start in range(chunk.start, chunk.stop, LINEAR_ROWS):
            rows = slice(start, min(start + LINEAR_ROWS, chunk.stop))
            Z = X[rows]
            if not as_is:
                Z = np.subtract(Z, 0.0 if origin is None else origin, out=moved[: len(Z)])
            np.matmul(Z, weights, out=scores[rows])
            if smallest is not None:
                given = X[rows]
                if not _all_within(given, smallest):
                    scores[rows][(np.abs(given) > limit).any(axis=1)] = np.nan
        add_row(scores[chunk], bias, scores[chunk])

    each(score, row_chunks(n, (K / 2 + 4) * D, multiple=LINEAR_ROWS), blas=True)
    return scores


@quiet
def _all_within(X: Array, limit: float) -> bool:
    """Whether no number is NaN, and none of larger absolute value than the limit: usually by the sum of the squares."""
    if X.dtype == np.float64 and X.flags.c_contiguous:
        flat = X.reshape(-1)
        if flat @ flat <= 0.99 * limit * limit:
            return True
    return bool(X.max() <= limit and X.min() >= -limit)


# -- numpy versions ----------------------------------------------------------------------------------------------------
def _floats(X: Array) -> Array:
    return np.asarray(X, dtype=np.float64)


def group_sums(rows: Array, codes: Array, K: int) -> Array:
    """Sum rows per group, in the order of the rows; the sum of an empty group is 0."""
    n = len(rows)
    return np.asarray(sp.csc_array((np.ones(n), codes, np.arange(n + 1)), shape=(K, n)) @ rows)


def drop_zero_weights(weight: Array | None, *arrays: Array) -> tuple[Array | None, tuple[Array, ...]]:
    """Drop rows of weight 0: they count as absent, even if they hold NaN."""
    if weight is None or weight.all():
        return weight, arrays
    keep = weight != 0
    return weight[keep], tuple(array[keep] for array in arrays)


@quiet
def _class_moments(X: Array, codes: Array, weight: Array | None, origin: Array, K: int) -> tuple[Array, Array]:
    weight, (X, codes) = drop_zero_weights(weight, X, codes)
    Z = X - origin
    if weight is None:
        return group_sums(Z, codes, K), group_sums(np.multiply(Z, Z, out=Z), codes, K)
    weighted = Z * weight[:, None]
    return group_sums(weighted, codes, K), group_sums(np.multiply(weighted, Z, out=Z), codes, K)


@quiet
def _class_moments_with_gaps(
    X: Array, codes: Array, weight: Array | None, origin: Array, K: int
) -> tuple[Array, Array, Array]:
    weight, (X, codes) = drop_zero_weights(weight, X, codes)
    seen = ~np.isnan(X)
    counted = seen * (1.0 if weight is None else weight[:, None])
    Z = np.where(seen, X - origin, 0.0)
    return group_sums(counted, codes, K), group_sums(counted * Z, codes, K), group_sums(counted * Z * Z, codes, K)


def _blocks(X: Array) -> list[slice]:
    """Return blocks of rows that stay in the cache; one block for a small table."""
    return [slice(0, len(X))] if X.size <= SMALL_WORK else _blocks_of(X, max(1, BLOCK_CELLS // X.shape[1]))


def _blocks_of(X: Array, step: int) -> list[slice]:
    return [slice(at, min(at + step, len(X))) for at in range(0, len(X), step)]


def _moments_in_blocks(
    X: Array, codes: Array, weight: Array | None, origin: Array, reach: Array, K: int
) -> tuple[Array, Array, Array, Array]:
    limit, blocks = 0.99 * reach * np.minimum(reach, 1e150), _blocks(X)

    def sums(rows: slice) -> tuple[Array, Array, Array, Array]:
        Z, own, some = _floats(X[rows]), codes[rows], None if weight is None else weight[rows]
        if len(blocks) > 1 and some is None and K <= MOST_PRODUCTS:
            first, second = _moments_by_products(Z - origin, own, K)
            # A value beyond reach makes a sum of squares larger than the limit; NaN is not within it either.
            if (second <= limit).all():
                seen = np.repeat(np.bincount(own, minlength=K).astype(float)[:, None], len(origin), axis=1)
                return seen, first, second, np.empty(0, np.intp)
        *parts, far = _class_moments_within(Z, own, some, origin, reach, K)
        return *parts, far + rows.start

    seen, first, second, far = _added_blocks(sums, blocks)
    return seen, first, second, far


@quiet
def _moments_by_products(Z: Array, codes: Array, K: int) -> tuple[Array, Array]:
    """Sum z and z² per class by matrix products; `Z` is overwritten. NaN and inf reach the sums of all classes."""
    members = np.zeros((K, len(Z)))
    members[codes, np.arange(len(Z))] = 1.0
    first = members @ Z
    return first, members @ np.multiply(Z, Z, out=Z)


def _scatter_in_blocks(
    X: Array, codes: Array, weight: Array | None, origin: Array, reach: Array, K: int
) -> tuple[Array, Array, Array]:
    limit, blocks = 0.99 * reach * np.minimum(reach, 1e150), _blocks(X)

    def sums(rows: slice) -> tuple[Array, Array, Array]:
        Z, own, some = _floats(X[rows]), codes[rows], None if weight is None else weight[rows]
        if some is None:
            first, second = _scatter_by_class(Z, own, origin, K)
            if (np.einsum("kdd->kd", second) <= limit).all():
                return first, second, np.empty(0, np.intp)
        far = _beyond(Z, some, origin, reach)
        return *_class_scatter(Z, own, _zero_at(some, far, len(Z)), origin, K), far + rows.start

    first, second, far = _added_blocks(sums, blocks)
    return first, second, far


@quiet
def _scatter_by_class(X: Array, codes: Array, origin: Array, K: int) -> tuple[Array, Array]:
    """Sum z and z zᵀ per class, z = x − origin, of rows without weights, which are sorted by class."""
    first, second = np.zeros((K, X.shape[1])), np.zeros((K, X.shape[1], X.shape[1]))
    Z = X[np.argsort(codes.astype(np.int16) if K < 2**15 else codes, kind="stable")]  # radix sort
    Z -= origin
    ends = np.cumsum(np.bincount(codes, minlength=K)).tolist()
    for k, (begin, end) in enumerate(pairwise([0, *ends])):
        z = Z[begin:end]
        if len(z):
            first[k], second[k] = z.sum(axis=0), z.T @ z  # numpy computes one triangle and copies it to the other
    return first, second


def _added_blocks(sums: Callable[[slice], tuple[Array, ...]], blocks: list[slice]) -> tuple[Array, ...]:
    """Add the sums of all blocks of rows, and join the positions of rows beyond reach, which come last."""
    if len(blocks) == 1:
        return sums(blocks[0])
    *parts, far = zip(*each(sums, blocks, blas=True))
    return *(sum(part[1:], start=part[0]) for part in parts), np.concatenate(far)


@quiet
def _class_moments_within(
    X: Array, codes: Array, weight: Array | None, origin: Array, reach: Array, K: int
) -> tuple[Array, Array, Array, Array]:
    far = _beyond(X, weight, origin, reach)
    weight = _zero_at(weight, far, len(X))
    first, second = _class_moments(X, codes, weight, origin, K)
    if np.isnan(first).any():
        return *_class_moments_with_gaps(X, codes, weight, origin, K), far
    seen = np.bincount(codes, weight, K).astype(float)
    return np.repeat(seen[:, None], len(origin), axis=1), first, second, far


@quiet
def _beyond(X: Array, weight: Array | None, origin: Array, reach: Array) -> Array:
    """Return the positions of the rows with a value beyond reach."""
    far = rows_beyond(X, origin, reach)
    return far if weight is None or not len(far) else far[weight[far] != 0]


def _zero_at(weight: Array | None, rows: Array, n: int) -> Array | None:
    """Return the weights with 0 for some rows."""
    if not len(rows):
        return weight
    weight = np.ones(n) if weight is None else weight.copy()
    weight[rows] = 0.0
    return weight


@quiet
def _class_scatter(X: Array, codes: Array, weight: Array | None, origin: Array, K: int) -> tuple[Array, Array]:
    if weight is not None:
        weight, (X, codes) = drop_zero_weights(weight, X, codes)
    Z = X - origin
    first, second = np.zeros((K, Z.shape[1])), np.zeros((K, Z.shape[1], Z.shape[1]))
    for k in np.unique(codes):
        z = Z[codes == k]
        wz = z if weight is None else z * weight[codes == k, None]
        first[k], second[k] = wz.sum(axis=0), wz.T @ z
    return first, (second + second.transpose(0, 2, 1)) / 2


@quiet
def _diagonal_scores(X: Array, mean: Array, half_precision: Array, log_norm: Array, gaps: bool = True) -> Array:
    if X.size * len(mean) <= CACHED_CELLS:
        return _diagonal_block(_floats(X), mean, half_precision, log_norm, gaps)
    scores, norms = np.empty((len(X), len(mean))), log_norm.sum(axis=1)

    @quiet
    def score(rows: slice) -> None:
        Z, out = _floats(X[rows]), scores[rows]
        terms = np.empty_like(Z)
        for k, (m, h) in enumerate(zip(mean, half_precision)):
            np.subtract(Z, m, out=terms)
            np.multiply(terms, terms, out=terms)
            np.matmul(terms, h, out=out[:, k])
        np.subtract(norms, out, out=out)
        odd = np.flatnonzero(row_any(np.isnan(out))) if gaps else ()
        if len(odd):
            out[odd] = _diagonal_block(Z[odd], mean, half_precision, log_norm, gaps)

    each(score, _score_blocks(X), threads=_threads(X, len(mean)), blas=True)
    return scores


def _diagonal_block(X: Array, mean: Array, half_precision: Array, log_norm: Array, gaps: bool) -> Array:
    terms = X[:, None, :] - mean
    terms *= terms
    terms *= -half_precision
    terms += log_norm
    missing = np.isnan(X)
    if gaps and missing.any():
        terms[np.repeat(missing[:, None, :], len(mean), axis=1)] = 0.0
    return np.asarray(terms.sum(axis=2))


@quiet
def _diagonal_left_out(
    Z: Array, codes: Array, mean: Array, precision: Array, share: Array, least: float
) -> tuple[Array, Array, Array]:
    v = (Z - mean[codes]) ** 2 * precision[codes]
    f = np.maximum(1 - share[:, None] * v, least)
    return row_sum(v / f), row_sum(np.log(f)), f.min(axis=1, initial=1.0)


@quiet
def _left_out_in_blocks(
    X: Array,
    codes: Array,
    origin: Array,
    mean: Array,
    half_precision: Array,
    norms: Array,
    precision: Array,
    share: Array,
    least: float,
    out: Array,
    terms: Array,
) -> bool:
    """Do the same as the compiled `diagonal_left_out`, to the bit."""
    K, D = mean.shape
    for rows in _blocks_of(X, max(1, CACHED_CELLS // K)):
        columns = np.subtract(X[rows].T, origin[:, None], order="C")
        if np.isnan(columns).any():
            return False
        own, w = codes[rows], share[rows]
        total, low, product, power = terms[:, rows]
        total[:], low[:], product[:], power[:] = 0.0, 1.0, 1.0, 0.0
        scores = np.repeat(norms[:, None], len(own), axis=1)
        z, v, f = np.empty_like(scores), np.empty(len(own)), np.empty(len(own))
        for d, x in enumerate(columns):
            np.subtract(x, mean[:, d, None], out=z)
            np.multiply(z, z, out=z)
            np.multiply(z[own, np.arange(len(own))], precision[own, d], out=v)
            z *= half_precision[:, d, None]
            scores -= z
            np.subtract(1.0, np.multiply(w, v, out=f), out=f)
            np.fmax(f, least, out=f)
            np.minimum(low, f, out=low)
            product *= f
            total += np.divide(v, f, out=v)
            if (d + 1) % FACTORS == 0 or d + 1 == D:
                small = np.flatnonzero(product < SMALL_PRODUCT)
                product[small], exponent = np.frexp(product[small])
                power[small] += exponent
        out[rows] = scores.T
    return True


@quiet
def _whitened_distances(X: Array, mean: Array, whitener: Array, origin: Array) -> Array:
    """Measure few rows from each mean directly, which needs no origin, and more rows relative to the origin."""
    if X.size * len(mean) <= CACHED_CELLS:
        return _distance_block(_floats(X), mean, whitener)
    distances = np.empty((len(X), len(mean)))
    if X.size * len(mean) <= SMALL_WORK:
        for rows in _blocks_of(X, max(1, 2 * CACHED_CELLS // mean.size)):
            _write_distances(_floats(X[rows]) - origin, mean - origin, whitener, distances[rows])
        return distances

    @quiet
    def measure(rows: slice) -> None:
        Z = _floats(X[rows])
        moved, z = np.empty_like(Z), np.empty_like(Z)
        for k, m in enumerate(mean):
            np.subtract(Z, m, out=moved)
            np.matmul(moved, whitener[min(k, len(whitener) - 1)], out=z)
            np.einsum("nd,nd->n", z, z, out=distances[rows, k])

    each(measure, _score_blocks(X), threads=_threads(X, len(mean)), blas=True)
    return distances


def _threads(X: Array, K: int) -> int | None:
    """Return 1 where scores take less than some milliseconds, which threads would make longer."""
    return 1 if X.size * K < THREADED_CELLS else None


def _score_blocks(X: Array) -> list[slice]:
    """Return blocks of rows that stay in the cache, each with a copy or two."""
    return _blocks_of(X, max(1, BLOCK_CELLS // 2 // X.shape[1]))


def _distance_block(X: Array, mean: Array, whitener: Array) -> Array:
    residuals = X - mean[:, None, :]
    if len(whitener) == 1:
        z = (residuals.reshape(-1, X.shape[1]) @ whitener[0]).reshape(residuals.shape)
    else:
        z = residuals @ whitener
    return np.ascontiguousarray(np.einsum("knd,knd->kn", z, z).T)


def _write_distances(Z: Array, mean: Array, whitener: Array, out: Array) -> None:
    """Multiply rows by the whiteners of all classes side by side; rows and means are from the origin."""
    S, D, _ = whitener.shape
    z = (Z @ whitener.transpose(1, 0, 2).reshape(D, -1)).reshape(-1, S, D)
    z = z - (mean[:, None] @ whitener)[:, 0]
    np.einsum("nkd,nkd->nk", z, z, out=out)
