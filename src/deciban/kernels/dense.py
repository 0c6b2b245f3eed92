"""Dense tables: sums per class, scores and leave-one-out terms of Gaussians.

X may have any numeric type and layout; float64, float32 and common integers in C order are read in place.
"""

from __future__ import annotations

import numpy as np

from deciban.kernels.choice import (
    Array,
    numpy_work,
    quiet,
    readable,
    readable_floats,
    row_blocks,
    row_weights,
    weights_or_empty,
)
from deciban.kernels.rows import class_codes, drop_zero_weights, group_sums

# Types that kernels read as they are; any other is converted to float64.
NATIVE = ("float64", "float32", "int64", "int32", "uint8")


def class_moments(X: Array, codes: Array, weight: Array | None, origin: Array, K: int) -> tuple[Array, Array]:
    """Σ w (x−o) and Σ w (x−o)² per class: (K, D) each.

    NaN and inf affect only the sums of their own class and feature, so finite sums show that the data were finite.
    """
    codes = class_codes(codes, K)
    if X.size <= numpy_work.get():
        return _class_moments(_floats(X), codes, weight, origin, K)
    from deciban.kernels.dense_compiled import add_moments

    weight, origin = row_weights(weight), readable(origin, np.float64)
    first, second = np.zeros((2, K, len(origin)))
    for rows, block in row_blocks(X, NATIVE, np.float64):
        add_moments(block, codes[rows], weights_or_empty(weight, rows), origin, None, first, second)
    return first, second


def class_moments_with_gaps(
    X: Array, codes: Array, weight: Array | None, origin: Array, K: int
) -> tuple[Array, Array, Array]:
    """Σ w, Σ w (x−o) and Σ w (x−o)² per class over the values that are not NaN: (K, D) each. inf propagates."""
    codes = class_codes(codes, K)
    if X.size <= numpy_work.get():
        return _class_moments_with_gaps(_floats(X), codes, weight, origin, K)
    from deciban.kernels.dense_compiled import add_moments

    weight, origin = row_weights(weight), readable(origin, np.float64)
    seen, first, second = np.zeros((3, K, len(origin)))
    for rows, block in row_blocks(X, NATIVE, np.float64):
        add_moments(block, codes[rows], weights_or_empty(weight, rows), origin, seen, first, second)
    return seen, first, second


def class_scatter(X: Array, codes: Array, weight: Array | None, origin: Array, K: int) -> tuple[Array, Array]:
    """Σ w (x−o) and Σ w (x−o)(x−o)ᵀ per class: (K, D) and (K, D, D), the latter symmetric to the bit.

    Within their class, NaN and inf propagate to first[d] and to row and column d of second.
    """
    codes = class_codes(codes, K)
    if X.size <= numpy_work.get():
        return _class_scatter(_floats(X), codes, weight, origin, K)
    from deciban.kernels.dense_compiled import class_scatter as run

    weight, origin, reach = row_weights(weight), readable(origin, np.float64), np.full(len(origin), np.inf)
    return run(row_blocks(X, NATIVE, np.float64), codes, weight, origin, reach, K)[:2]


def class_moments_within(
    X: Array, codes: Array, weight: Array | None, origin: Array, reach: Array, K: int
) -> tuple[Array, Array, Array, Array]:
    """Σ w, Σ w (x−o) and Σ w (x−o)² per class, (K, D) each, of the rows with all |x−o| ≤ reach; and the other rows.

    NaN is a missing value: it adds nothing, and is within reach.
    """
    codes = class_codes(codes, K)
    if X.size <= numpy_work.get():
        return _class_moments_within(_floats(X), codes, weight, origin, reach, K)
    from deciban.kernels.dense_compiled import class_moments_within as run

    weight, (origin, reach) = row_weights(weight), readable_floats(origin, reach)
    complete = run(row_blocks(X, NATIVE, np.float64), len(X), codes, weight, origin, reach, K, False)
    if complete is not None:
        return complete
    return run(row_blocks(X, NATIVE, np.float64), len(X), codes, weight, origin, reach, K, True)  # type: ignore[return-value]


def class_scatter_within(
    X: Array, codes: Array, weight: Array | None, origin: Array, reach: Array, K: int
) -> tuple[Array, Array, Array]:
    """Σ w (x−o) and Σ w (x−o)(x−o)ᵀ per class of the rows with all |x−o| ≤ reach, and the positions of the others.

    NaN is within reach: it propagates as in `class_scatter`.
    """
    codes = class_codes(codes, K)
    if X.size <= numpy_work.get():
        X = _floats(X)
        far = _beyond(X, weight, origin, reach)
        return *_class_scatter(X, codes, _zero_at(weight, far, len(X)), origin, K), far
    from deciban.kernels.dense_compiled import class_scatter as run

    weight, (origin, reach) = row_weights(weight), readable_floats(origin, reach)
    return run(row_blocks(X, NATIVE, np.float64), codes, weight, origin, reach, K)


def diagonal_scores(X: Array, mean: Array, half_precision: Array, log_norm: Array) -> Array:
    """Σ of log_norm[k, d] − half_precision[k, d] (x[d] − mean[k, d])² over the d where x is not NaN: (n, K).

    With half_precision = 1/(2σ²) and log_norm = −½ log(2πσ²) this is the log density of a diagonal Gaussian over the
    features that are not missing. Differences are squared, not expanded, so no digits are lost far from zero.
    """
    if X.size * len(mean) <= numpy_work.get():
        return _diagonal_scores(_floats(X), mean, half_precision, log_norm)
    from deciban.kernels.dense_compiled import diagonal_scores as run

    mean, half_precision, log_norm = readable_floats(mean, half_precision, log_norm)
    scores = np.empty((len(X), len(mean)))
    for rows, block in row_blocks(X, NATIVE, np.float64):
        run(block, mean, half_precision, log_norm, scores[rows])
    return scores


def diagonal_left_out(
    X: Array, codes: Array, origin: Array, mean: Array, precision: Array, share: Array, least: float
) -> tuple[Array, Array, Array]:
    """Terms of the leave-one-out score of each row in its own class: Σ v/f, Σ log f and min f over features, (n,) each.

    v = ((x − origin) − mean[k])² · precision[k] for the row's class k, and f = max(1 − share·v, least) is the factor by
    which a variance shrinks if the row, of this share (n,), is removed. NaN in the row makes the first result NaN.
    """
    codes = class_codes(codes, len(mean))
    if X.size * len(mean) <= numpy_work.get():  # counted as for scores of the rows, which are needed too
        return _diagonal_left_out(_floats(X), codes, origin, mean, precision, share, least)
    from deciban.kernels.dense_compiled import diagonal_left_out as run

    mean, precision, origin, share = readable_floats(mean, precision, origin, share)
    distance, log_factor, smallest = np.empty((3, len(X)))
    for rows, block in row_blocks(X, NATIVE, np.float64):
        out = distance[rows], log_factor[rows], smallest[rows]
        run(block, codes[rows], origin, mean, precision, share[rows], least, *out)
    return distance, log_factor, smallest


def whitened_distances(X: Array, mean: Array, whitener: Array, origin: Array) -> Array:
    """Squared Mahalanobis distances ‖(x − mean[k]) @ whitener[k]‖²: (n, K).

    `whitener` is (K, D, D), or (1, D, D) if all classes share it, with whitener @ whitenerᵀ the precision matrix. Any
    square root is allowed; an upper triangular one (the transposed inverse of the lower Cholesky factor of the
    covariance) saves a quarter of the time. `origin` is a point near the data: x and mean are taken relative to it
    before they are multiplied.
    """
    if X.size * len(mean) <= numpy_work.get():
        return _whitened_distances(_floats(X), mean, whitener)
    from deciban.kernels.dense_compiled import whitened_distances as run

    mean, whitener, origin = readable_floats(mean, whitener, origin)
    return run(row_blocks(X, NATIVE, np.float64), len(X), mean, whitener, origin)


# -- numpy versions ----------------------------------------------------------------------------------------------------
def _floats(X: Array) -> Array:
    return np.asarray(X, dtype=np.float64)


@quiet
def _class_moments(X: Array, codes: Array, weight: Array | None, origin: Array, K: int) -> tuple[Array, Array]:
    weight, (X, codes) = drop_zero_weights(weight, X, codes)
    Z = X - origin
    weighted = Z if weight is None else Z * weight[:, None]
    return group_sums(weighted, codes, K), group_sums(weighted * Z, codes, K)


@quiet
def _class_moments_with_gaps(
    X: Array, codes: Array, weight: Array | None, origin: Array, K: int
) -> tuple[Array, Array, Array]:
    weight, (X, codes) = drop_zero_weights(weight, X, codes)
    seen = ~np.isnan(X)
    counted = seen * (1.0 if weight is None else weight[:, None])
    Z = np.where(seen, X - origin, 0.0)
    return group_sums(counted, codes, K), group_sums(counted * Z, codes, K), group_sums(counted * Z * Z, codes, K)


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
    """Positions of the rows with a value beyond reach."""
    beyond = np.abs(X - origin) > reach
    if not beyond.any():  # the usual case, faster than by rows
        return np.empty(0, np.intp)
    far = np.flatnonzero(beyond.any(axis=1))
    return far if weight is None or not len(far) else far[weight[far] != 0]


def _zero_at(weight: Array | None, rows: Array, n: int) -> Array | None:
    """Weights with 0 for some rows."""
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
def _diagonal_scores(X: Array, mean: Array, half_precision: Array, log_norm: Array) -> Array:
    scores = np.empty((len(X), len(mean)))
    seen = ~np.isnan(X)
    for k in range(len(mean)):
        terms = log_norm[k] - half_precision[k] * (X - mean[k]) ** 2
        scores[:, k] = np.where(seen, terms, 0.0).sum(axis=1)
    return scores


@quiet
def _diagonal_left_out(
    X: Array, codes: Array, origin: Array, mean: Array, precision: Array, share: Array, least: float
) -> tuple[Array, Array, Array]:
    v = ((X - origin) - mean[codes]) ** 2 * precision[codes]
    f = np.maximum(1 - share[:, None] * v, least)
    return (v / f).sum(axis=1), np.log(f).sum(axis=1), f.min(axis=1, initial=1.0)


@quiet
def _whitened_distances(X: Array, mean: Array, whitener: Array) -> Array:
    """Distances from each mean directly, which needs no origin."""
    distances = np.empty((len(X), len(mean)))
    for k in range(len(mean)):
        z = (X - mean[k]) @ whitener[k if len(whitener) > 1 else 0]
        distances[:, k] = np.einsum("nd,nd->n", z, z)
    return distances
