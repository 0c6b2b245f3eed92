"""Dense tables: sums per class, and Gaussian scores.

X may be of any numeric type and layout; float64, float32 and common integers in C order are read where they lie.
"""

from __future__ import annotations

import numpy as np

from deciban.kernels import reference
from deciban.kernels.choice import Array, class_codes, compiled, or_unweighted, pieces, readable, row_weights

# Types that kernels read as they are; anything else is converted to float64.
NATIVE = ("float64", "float32", "int64", "int32", "uint8")


def _floats(X: Array) -> Array:
    return np.asarray(X, dtype=np.float64)


def class_moments(X: Array, codes: Array, weight: Array | None, origin: Array, K: int) -> tuple[Array, Array]:
    """Σ w (x−o) and Σ w (x−o)² per class: (K, D) each.

    NaN and inf reach the sums of their own class and feature only, so finite sums show that the data were finite.
    """
    codes, weight, origin = class_codes(codes, K), row_weights(weight), readable(origin, np.float64)
    if not compiled(X.size):
        return reference.class_moments(_floats(X), codes, weight, origin, K)
    from deciban.kernels.dense_compiled import add_moments

    first, second = np.zeros((2, K, len(origin)))
    for rows, part in pieces(X, NATIVE, np.float64):
        add_moments(part, codes[rows], or_unweighted(weight, rows), origin, first, second)
    return first, second


def class_moments_with_gaps(
    X: Array, codes: Array, weight: Array | None, origin: Array, K: int
) -> tuple[Array, Array, Array]:
    """Σ w, Σ w (x−o) and Σ w (x−o)² per class over the values that are not NaN: (K, D) each. inf propagates."""
    codes, weight, origin = class_codes(codes, K), row_weights(weight), readable(origin, np.float64)
    if not compiled(X.size):
        return reference.class_moments_with_gaps(_floats(X), codes, weight, origin, K)
    from deciban.kernels.dense_compiled import add_moments_with_gaps

    seen, first, second = np.zeros((3, K, len(origin)))
    for rows, part in pieces(X, NATIVE, np.float64):
        add_moments_with_gaps(part, codes[rows], or_unweighted(weight, rows), origin, seen, first, second)
    return seen, first, second


def class_scatter(X: Array, codes: Array, weight: Array | None, origin: Array, K: int) -> tuple[Array, Array]:
    """Σ w (x−o) and Σ w (x−o)(x−o)ᵀ per class: (K, D) and (K, D, D), the latter symmetric to the bit.

    NaN and inf propagate, within their class, into first[d] and into the row and column d of second.
    """
    codes, weight, origin = class_codes(codes, K), row_weights(weight), readable(origin, np.float64)
    if not compiled(X.size):
        return reference.class_scatter(_floats(X), codes, weight, origin, K)
    from deciban.kernels import dense_compiled as scatter

    return scatter.class_scatter(pieces(X, NATIVE, np.float64), codes, weight, origin, K)


def diagonal_scores(X: Array, mean: Array, half_precision: Array, log_norm: Array) -> Array:
    """Σ over d of log_norm[k, d] − half_precision[k, d] (x[d] − mean[k, d])², leaving out what is NaN in x: (n, K).

    With half_precision = 1/(2σ²) and log_norm = −½ log(2πσ²) this is a diagonal Gaussian's log density of what was
    seen. Differences are squared, not expanded: no digits are lost far from zero.
    """
    mean, half_precision, log_norm = (readable(each, np.float64) for each in (mean, half_precision, log_norm))
    if not compiled(X.size * len(mean)):
        return reference.diagonal_scores(_floats(X), mean, half_precision, log_norm)
    from deciban.kernels import dense_compiled as gaussian

    scores = np.empty((len(X), len(mean)))
    for rows, part in pieces(X, NATIVE, np.float64):
        gaussian.diagonal_scores(part, mean, half_precision, log_norm, scores[rows])
    return scores


def diagonal_left_out(
    X: Array, codes: Array, origin: Array, mean: Array, precision: Array, share: Array, least: float
) -> tuple[Array, Array, Array]:
    """What a row leaves of its class's variances: Σ v/f, Σ log f and the smallest f over its features, (n,) each.

    With v = ((x − origin) − mean[k])² · precision[k] of the row's class k, f = 1 − share·v is the part of a variance
    that stays when the row takes its share, (n,), away; it is taken to be `least` where it would be less. A NaN in the
    row makes its first answer NaN.
    """
    mean, precision, origin = (readable(each, np.float64) for each in (mean, precision, origin))
    codes, share = class_codes(codes, len(mean)), readable(share, np.float64)
    if not compiled(X.size * len(mean)):  # as much as scoring the rows, to which this is the next step
        return reference.diagonal_left_out(_floats(X), codes, origin, mean, precision, share, least)
    from deciban.kernels import dense_compiled as gaussian

    answers = np.empty((3, len(X)))
    for rows, part in pieces(X, NATIVE, np.float64):
        gaussian.diagonal_left_out(
            part,
            codes[rows],
            origin,
            mean,
            precision,
            share[rows],
            least,
            answers[0, rows],
            answers[1, rows],
            answers[2, rows],
        )
    return answers[0], answers[1], answers[2]


def whitened_distances(X: Array, mean: Array, whitener: Array, origin: Array) -> Array:
    """Squared Mahalanobis distances ‖(x − mean[k]) @ whitener[k]‖²: (n, K).

    `whitener` is (K, D, D), or (1, D, D) if all classes share it, with whitener @ whitenerᵀ the precision matrix. Any
    square root will do; an upper triangular one (the transposed inverse of the lower Cholesky factor of the covariance)
    spares a quarter of the time. `origin` is a point near the data: x and mean are both taken relative to it before
    they are multiplied.
    """
    mean, whitener, origin = (readable(each, np.float64) for each in (mean, whitener, origin))
    if not compiled(X.size * len(mean)):
        return reference.whitened_distances(_floats(X), mean, whitener, origin)
    from deciban.kernels import dense_compiled as whitened

    return whitened.distances(pieces(X, NATIVE, np.float64), len(X), mean, whitener, origin)
