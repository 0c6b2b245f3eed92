"""Limits beyond which numbers are absurd, such as 99999999 for an unknown age, and count as missing.

    limit  =  the next power of 16 above  max(|m| + 2¹⁰·s,  2^(m' + 8·s'))

m and s are the median and a robust scale of the first rows, m' and s' those of the binary logarithms of a column of
positive numbers, so that long tails are not cut. Whether a number is absurd depends on the number alone, so that rows
can be unlearnt and merged. Powers of 16 are so far apart that independent fits mostly have the same limits.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from deciban.errors import AbsurdNumbersWarning, HyperparameterError
from deciban.read.batches import chosen_rows
from deciban.statistics import Array, Members

SCALES = 2.0**10  # robust scales from the median beyond which numbers are absurd
LOG_SCALES = 8.0  # the same for the logarithms of positive numbers
WIDEN = 2.0**10  # largest factor of a scale for values that more than 1.5 % of the rows have
WIDEN_LOG = 4.0  # the same for a scale of logarithms
GRID = 4  # limits are powers of 2^GRID
NO_LIMIT = 2.0**1000
FEWEST_ROWS = 32  # rows from which a limit is computed
ROWS_OF_SCALE = 1024  # most rows from which the scale of a column is computed
QUANTILES = (0.015, 0.16, 0.5, 0.84, 0.985)
MANY = 0.05  # share of the rows of a batch with absurd numbers above which a warning is given
SMALL = 2**14  # numbers of a table up to which each is compared with its limit; in larger ones, distances are
NONE = np.zeros((1, 1), dtype=bool)  # no number is absurd


def limits_of(X: Array) -> Array | None:
    """Return the limit of each column by its first rows, shape (D,); None if there are too few rows.

    At most 1.5 % of the rows, or a single one, may have absurd numbers: they do not move the limit.

    >>> limits_of(np.append(np.linspace(3, 5, 100), 99999999.0)[:, None])
    array([4096.])
    """
    if X.dtype.kind not in "fiub" or len(X) < FEWEST_ROWS:
        return None  # numbers that cannot be read are refused where the rows are encoded
    some = np.sort(np.asarray(X[chosen_rows(len(X), ROWS_OF_SCALE)], dtype=float), axis=0)  # missing values last
    seen, each = len(some) - np.isnan(some).sum(axis=0), np.arange(X.shape[1])
    at = np.multiply.outer(QUANTILES, np.maximum(seen - 1, 0))
    at = np.concatenate([np.ceil(at[:2]), np.floor(at[2:])]).astype(np.intp)  # without the largest and the smallest
    quantiles = some[at, each]
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        limit = np.log2(np.abs(quantiles[2]) + SCALES * _scales(some, quantiles, WIDEN))
        positive = (some[0] > 0) if len(some) else seen > 0
        logs, tails = np.log2(np.where(positive, some, 1.0)), np.log2(np.where(positive, quantiles, 1.0))
        tail = tails[2] + LOG_SCALES * _scales(logs, tails, WIDEN_LOG)
        limit = np.where(positive, np.fmax(limit, tail), limit)
        limit = np.exp2(GRID * np.ceil(limit / GRID))
    return np.where((seen >= FEWEST_ROWS) & (limit < NO_LIMIT), limit, NO_LIMIT)


def limit_of(x: Array) -> float | None:
    """Return the limit of one column, shape (n,), by its first rows; None if it has none."""
    found = limits_of(x[:, None])
    return None if found is None or found[0] == NO_LIMIT else float(found[0])


def _scales(rows: Array, quantiles: Array, widen: float) -> Array:
    """Return robust scales by the quantiles of sorted rows, shape (D,).

    Half the distance between the quantiles of one standard deviation, and up to `widen` times as much if the values
    between the outer quantiles are wider than a normal distribution's. If two thirds of the values are equal, it is the
    median distance of the others from them. It is never 0.
    """
    low, one, middle, other, high = quantiles
    scale, wide = other / 2 - one / 2, high / 4.34 - low / 4.34
    for j in np.flatnonzero(scale == 0):
        away = np.abs(rows[:, j] - middle[j])
        away = away[away > 0]  # False for NaN
        scale[j] = np.median(away) if len(away) else 1.0
    return np.asarray(np.clip(wide, scale, widen * scale))


def checked(limit: object, name: str) -> Array:
    """Return limits that were given as an array; HyperparameterError if one is not above 0."""
    found = np.atleast_1d(np.asarray(limit, dtype=float))
    if not (found > 0).all():
        raise HyperparameterError(f"{name}={found.tolist()}: must be above 0.")
    return found


def within(x: Array, limit: float | None) -> Array:
    """Return the numbers of one column, shape (n,), with NaN in place of absurd ones."""
    return x if limit is None else masked(x[:, None], np.array([limit]))[:, 0]


def beyond(X: Array, limit: Array | None) -> Array:
    """Return whether numbers are absurd, (n, D), or one False if none is; missing and infinite values are not."""
    if limit is None:
        return NONE
    if len(limit) != X.shape[1]:
        raise HyperparameterError(f"there are {X.shape[1]} features, but limits of {len(limit)}. Give one per feature.")
    with np.errstate(invalid="ignore"):
        size = np.abs(X)
        found = size > limit
        return np.asarray(found & np.isfinite(size)) if found.any() else NONE


def any_beyond(X: Array, limit: Array) -> bool:
    """Whether a number is absurd, by the largest and the smallest of each column: for large tables."""
    ends = np.fmax.reduce(X, axis=0, initial=0), np.fmin.reduce(X, axis=0, initial=0)
    largest = np.max(np.abs(np.asarray(ends, dtype=float)), axis=0)
    return bool((largest > limit).any())


def masked(X: Array, limit: Array | None) -> Array:
    """Return numbers with NaN in place of absurd ones; a sparse table as it is."""
    if limit is None or not isinstance(X, np.ndarray):
        return X
    absurd = beyond(X, limit)
    return X if absurd is NONE else np.where(absurd, np.nan, X)


def without_absurd_counts(X: Any, limit: float | None) -> Any:
    """Return counts, dense or sparse, with 0 in place of absurd ones, with a warning if many rows have some."""
    counts = X if isinstance(X, np.ndarray) else X.data
    if limit is None or not counts.max(initial=0) > limit:
        return X
    absurd = limit < X
    warn_if_many(int(np.count_nonzero(absurd.sum(axis=1))), X.shape[0])
    if isinstance(X, np.ndarray):
        return np.where(absurd, 0, X)
    kept = X.copy()
    kept.data[kept.data > limit] = 0
    kept.eliminate_zeros()
    return kept


def least_square(limit: Array, mean: Array, variance: Array) -> float:
    """Return a squared distance, in variances, that every row with an absurd number has at least from the mean.

    A squared distance in all columns is at least that in one of them, (x − m)²/v, also with covariances
    (Cauchy–Schwarz). Distances are computed anyway; comparing all numbers with their limits would cost more.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        least = np.min(np.maximum(limit - np.abs(mean), 0.0) ** 2 / variance, initial=np.inf)
    return float(least) * (1 - 1e-9)  # rounding


def warn_if_many(absurd: int, rows: int) -> None:
    """Warn that more than a twentieth of the rows to be learnt have absurd numbers: these numbers may be right."""
    if rows >= FEWEST_ROWS and absurd > MANY * rows:
        warnings.warn(
            f"{absurd:,} of {rows:,} rows have numbers beyond the limits that the first rows set, which count as "
            "missing (counts of events: as 0). If they are right, fit again with these rows among the first, or name "
            "the family.",
            AbsurdNumbersWarning,
            stacklevel=2,
        )


def rows_within(X: Array, limit: Array | None) -> Array | None:
    """Return the positions of the rows without an absurd number; None if these are all rows."""
    absurd = beyond(X, limit)
    return None if absurd is NONE else np.flatnonzero(~absurd.any(axis=1))


def taken(X: Array, members: Members, rows: Array | None) -> tuple[Array, Members]:
    """Return some of the rows with their members; all if `rows` is None."""
    return (X, members) if rows is None else (X[rows], members.take(rows))


def learnt_values(X: Array, limit: Array | None) -> Array:
    """Return the numbers that are learnt: as `masked`, with a warning if many are absurd."""
    kept = masked(X, limit)
    if kept is not X:
        warn_if_many(int((np.isnan(kept) & ~np.isnan(X)).any(axis=1).sum()), len(X))
    return kept


def learnt_rows(X: Array, members: Members, limit: Array | None) -> tuple[Array, Members]:
    """Return the rows without an absurd number and their members, with a warning if many are left out."""
    rows = rows_within(X, limit)
    if rows is not None:
        warn_if_many(len(X) - len(rows), len(X))
    return taken(X, members, rows)
