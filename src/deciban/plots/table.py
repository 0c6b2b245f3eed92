"""Rows that hold some features only, for pictures of one feature or of two; what they lack is integrated out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from deciban.errors import InputError, NotAvailableError, shortlist
from deciban.estimators import model
from deciban.read.tables import Table
from deciban.statistics import Array

DRAWS = 4000  # rows from which the model's own range is read


def position(clf: Any, feature: Any) -> int:
    """Where a column stands, by name or number."""
    columns = list(clf.columns_)
    if feature in columns:
        return columns.index(feature)
    if isinstance(feature, int) and 0 <= feature < len(columns):
        return feature
    raise InputError(f"no such feature: {feature!r}; the model knows {shortlist(columns, 10)}.")


def axis_name(clf: Any, at: int) -> str:
    """What to write beside an axis."""
    name = clf.columns_[at]
    return str(name) if isinstance(name, str) else f"feature {name}"


def scores(clf: Any, features: list[int], values: Array) -> Array:
    """(n, K) calibrated log f(x|class) of rows (n, len(features)) in which all other features are missing."""
    rows = np.full((len(values), len(clf.columns_)), np.nan)
    rows[:, features] = values
    table = Table(rows, clf.columns_, all(isinstance(name, str) for name in clf.columns_))
    return clf._evidence(model.encode(clf.family_, table, clf.stats_.family))


def column(X: Any, at: int) -> Array:
    """One column of a table as numbers."""
    return np.asarray(Table.of(X).pick([at]), dtype=float).ravel()


def drawn(clf: Any, at: int) -> Array:
    """Values of one feature as the model produces them, classes equally frequent."""
    rows, _ = clf.sample(DRAWS, 0, prior="uniform")
    order = [j for places in clf._places().values() for j in places]
    values = np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows)[:, order.index(at)]
    try:
        return values.astype(float)
    except (TypeError, ValueError):
        raise NotAvailableError(
            f"feature {clf.columns_[at]!r} holds {values[0]!r}: only numbers have a place on an axis."
        ) from None


def span_of(values: Array, given: ArrayLike | None, margin: float = 0.08) -> tuple[float, float]:
    """The range to draw: as given, or that of the values and a little more; far outliers do not count."""
    if given is not None:
        low, high = np.asarray(given, dtype=float)
        return float(low), float(high)
    low, high = np.nanquantile(values, [0.001, 0.999])
    extra = margin * (high - low) or 1.0
    return float(low - extra), float(high + extra)
