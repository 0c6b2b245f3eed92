"""Checks of the scores, labels and priors given to every figure."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deciban.errors import InputError, PriorError
from deciban.evidence.scores import Array

Codes = NDArray[np.intp]
Flags = NDArray[np.bool_]
SUM_TOLERANCE = 1e-6  # how far the sum of a given prior may be from 1


def two_class_scores(llr: ArrayLike, is_h1: ArrayLike) -> tuple[Array, Flags]:
    """The llrs (n,) and whether h1 is true for each row; both classes have rows, and ±inf is allowed.

    >>> two_class_scores([1.5, -np.inf], [1, 0])
    (array([ 1.5, -inf]), array([ True, False]))
    """
    scores, flags = score_column(llr), np.asarray(is_h1)
    if flags.shape != scores.shape:
        raise InputError(f"{len(scores):,} llrs, but is_h1 has shape {flags.shape}. Give one flag a row.")
    if flags.dtype != bool:
        flags = _as_flags(flags)
    if not flags.any() or flags.all():
        held, missing = ("h1", "h0") if len(flags) and flags[0] else ("h0", "h1")
        raise InputError(
            f"no row is of {missing}: {len(flags):,} rows, all of {held}. Figures of llrs need rows of both classes; "
            "add some, or check is_h1."
        )
    return scores, flags


def score_column(llr: ArrayLike) -> Array:
    """The llrs (n,), none of which is NaN."""
    scores = _numbers(llr, "llr")
    if scores.ndim != 1:
        raise InputError(f"llr has shape {scores.shape}. Give one number a row, shape (n,).")
    _refuse_nan(scores, "llr")
    return scores


def score_table(log_likelihood: ArrayLike) -> Array:
    """The log-likelihoods (n, K), none of which is NaN or +inf."""
    table = _numbers(log_likelihood, "log_likelihood")
    if table.ndim != 2 or not table.shape[1]:
        raise InputError(f"log_likelihood has shape {table.shape}. Give a row per case and a column per class, (n, K).")
    _refuse_nan(table, "log_likelihood")
    if table.size and table.max() == np.inf:
        row, column = np.argwhere(np.isposinf(table))[0].tolist()
        raise InputError(
            f"log_likelihood is +inf in row {row}, class {column}: infinite densities cannot be compared. Give that "
            "class a finite density, such as a Gaussian with a prior on its variance."
        )
    return table


def class_scores(log_likelihood: ArrayLike, codes: ArrayLike) -> tuple[Array, Codes]:
    """The log-likelihoods (n, K) and the class number (n,) of at least one row.

    >>> class_scores([[-2.9, -4.4]], [0])
    (array([[-2.9, -4.4]]), array([0]))
    """
    table, numbers = score_table(log_likelihood), np.asarray(codes)
    n, K = table.shape
    if not n:
        raise InputError("there are no rows to judge. Give at least one.")
    if numbers.shape != (n,):
        raise InputError(f"{n:,} rows of log-likelihoods, but codes has shape {numbers.shape}. Give one code a row.")
    if numbers.dtype.kind not in "iu":
        raise InputError(f"codes are {numbers.dtype}, not class numbers. Give whole numbers from 0 to {K - 1}.")
    if (strange := (numbers < 0) | (numbers >= K)).any():
        row = int(strange.argmax())
        raise InputError(
            f"code {numbers[row]} (row {row}) is no class: there are {K}. Give whole numbers from 0 to {K - 1}."
        )
    return table, numbers.astype(np.intp, copy=False)


def class_prior(prior: ArrayLike | None, K: int) -> Array:
    """K prior probabilities; equal if not given.

    >>> class_prior(None, 2).tolist()
    [0.5, 0.5]
    """
    if prior is None:
        return np.full(K, 1 / K)
    values = np.asarray(prior, dtype=float)
    if values.shape != (K,):
        raise PriorError(
            f"the prior has shape {values.shape}, but there are {K} classes. Give one probability a class."
        )
    if not (values >= 0).all() or not abs(values.sum() - 1) <= SUM_TOLERANCE:
        raise PriorError(f"the prior is {values.tolist()}. Probabilities are ≥ 0 and sum to 1.")
    return values / values.sum()


def class_log_prior(log_prior: ArrayLike, K: int, n: int | None = None) -> Array:
    """Log prior probabilities, (K,), or (n, K) where each of n rows may have its own.

    >>> class_log_prior([0.0, -np.inf], 2).tolist()
    [0.0, -inf]
    """
    values = np.asarray(log_prior, dtype=float)
    if values.shape not in ((K,), (n, K)):
        by_row = "" if n is None else f", or one set a row, ({n}, {K})"
        raise PriorError(f"log_prior has shape {values.shape}. Give one log probability a class, ({K},){by_row}.")
    if not (abs(np.exp(values).sum(axis=-1) - 1) <= SUM_TOLERANCE).all():
        raise PriorError("log_prior is not the log of probabilities that sum to 1. Give np.log(prior).")
    return values


def interval_tail(level: float) -> float:
    """Half of the probability outside an interval."""
    if not 0 < level < 1:
        raise InputError(f"level is {level!r}; it is the probability of the interval. Give a number between 0 and 1.")
    return (1 - level) / 2


def number_or_array(values: Any) -> Any:
    """A float where there is one number."""
    return values if np.ndim(values) else float(values)


def row_lengths(lengths: ArrayLike | None, n: int) -> Array:
    """Number of tokens (n,) of each row, at least 1: an empty row counts as one token.

    >>> row_lengths([0, 7], 2).tolist()
    [1.0, 7.0]
    """
    if lengths is None:
        raise InputError(
            "this calibration depends on each row's length. Give lengths=, the number of tokens of each row."
        )
    counts = _numbers(lengths, "lengths")
    if counts.shape != (n,):
        raise InputError(f"{n:,} rows of scores, but lengths has shape {counts.shape}. Give one length a row.")
    if (strange := ~((counts >= 0) & (counts < np.inf))).any():
        row = int(strange.argmax())
        raise InputError(f"the length of row {row} is {counts[row]:g}. Lengths count tokens: finite and ≥ 0.")
    return np.maximum(counts, 1.0)


def _as_flags(flags: NDArray[Any]) -> Flags:
    strange = ~np.isin(flags, (0, 1))
    if strange.any():
        row = int(strange.argmax())
        raise InputError(
            f"is_h1 holds {flags[row].item()!r} (row {row}). Give True where the row is of h1, else False."
        )
    return flags.astype(bool)


def _numbers(given: ArrayLike, what: str) -> Array:
    try:
        return np.asarray(given, dtype=float)
    except (TypeError, ValueError) as error:
        raise InputError(f"{what} must be numbers ({error}).") from None


def _refuse_nan(scores: Array, what: str) -> None:
    missing = np.isnan(scores)
    if missing.any():
        rows = np.flatnonzero(missing.any(axis=1) if scores.ndim == 2 else missing)
        raise InputError(
            f"{what} is NaN in {len(rows):,} of {len(scores):,} rows, first in row {rows[0]}. Leave these rows out, or "
            "correct the model that scored them; ±inf is allowed, NaN is not."
        )
