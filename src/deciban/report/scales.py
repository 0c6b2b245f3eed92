"""Columns of a model: densities of each class over typical values, and scales of evidence for a nomogram.

Typical values come from samples of the model, so that no rows are needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from deciban.evidence.scores import convert
from deciban.families.binned import Binned
from deciban.families.product import blocks_of
from deciban.model.model import Model
from deciban.model.nomogram import JointTerm, Pairs, nomogram, sampled_columns
from deciban.model.predictor import Predictor
from deciban.read.tables import TypedColumns, TypedTable
from deciban.statistics import Array

SAMPLES = 3000  # drawn from the model, with equal class priors
RANGE = (0.002, 0.998)  # quantiles of the samples between which numbers are drawn
MOST_CATEGORIES = 12  # of a column
MOST_COUNTS = 40  # different whole numbers that are drawn one by one


@dataclass(frozen=True, eq=False)
class ColumnScale:
    """One column: typical values, the log density of each class there, and the evidence for a nomogram."""

    name: str
    kind: str  # "number", "count" or "category"
    values: list[Any]  # (m,) rising numbers, or names
    log_density: Array  # (m, K) marginal, not calibrated
    decibans: Array | None  # (m, K) calibrated evidence of each class; None where it is not a sum over columns
    middle: int  # position of the typical value that a nomogram starts with
    position: int  # of the column in the model
    missing: Array | None  # (K,) decibans of a missing value; None if none may be missing
    edges: tuple[float, ...] = ()  # of bins with constant density, each of which holds one of `values`


@dataclass(frozen=True, eq=False)
class Scales:
    """The columns of a model, and the constants of its nomogram."""

    columns: list[ColumnScale]
    offsets: Array  # (K,) decibans, added where at least one column has a value
    base: Array  # (K,) decibans, of the typical values of a linear llr, and of columns without a scale
    left_out: list[str]  # columns without a scale of evidence
    reason: str  # why there is no nomogram; empty if there is one
    pairs: Pairs | None = None  # evidence of pairs of columns, in nats
    terms: tuple[JointTerm, ...] = ()  # evidence of several columns together, in nats


def column_scales(predictor: Predictor, points: int) -> Scales:
    """Compute densities and scales of all columns that are numbers or categories, at most `points` values each."""
    model = predictor.model
    K, names = len(model.classes), model.reader.labels
    sampled = sampled_columns(predictor, SAMPLES)
    counts = () if model.reader.schema is None else model.reader.schema.columns
    whole = {name for one in counts if one.kind == "count" for name in one.features}
    edges = _edges(model)
    chosen = {
        j: _binned(np.array(edges[j]), points, names[j] in whole)
        if j in edges and len(edges[j]) <= points // 2
        else _typical(values, points, names[j] in whole)
        for j, values in sampled.items()
    }
    if not chosen:
        return Scales([], np.zeros(K), np.zeros(K), names, "no column is a number or a category")
    found = nomogram(predictor, _table(predictor, chosen), chosen, joint=True)
    unit = convert(1.0, "decibans")
    reason = found.reason or (
        "functions of several columns add evidence that has no short formula" if found.beyond else ""
    )
    columns = []
    for j, logs in sorted(found.marginal.items()):
        kind, values = chosen[j]
        m = len(values)
        own = unit * found.evidence[j][:m] if j in found.evidence and not reason else None
        gap = None if j in found.complete else unit * found.missing[j]
        middle = _middle(sampled[j], kind, values)
        bins = edges[j] if j in edges and kind == "number" and _each_has_a_value(edges[j], values) else ()
        columns.append(ColumnScale(names[j], kind, values, logs[:m], own, middle, j, gap, bins))
    left_out = [names[j] for j in found.left_out]
    base = unit * (found.base + found.missing[found.left_out].sum(axis=0))  # columns without a scale are missing
    return Scales(columns, unit * found.offsets, base, left_out, reason, found.pairs, tuple(found.terms))


def _typical(values: Array, points: int, whole: bool) -> tuple[str, list[Any]]:
    """The kind of a column and its typical values, which are whole numbers ≥ 0 in a column of counts."""
    if values.dtype == object:
        names, counts = np.unique([str(value) for value in values if value is not None], return_counts=True)
        return "category", names[np.argsort(-counts, kind="stable")][:MOST_CATEGORIES].tolist()
    low, high = np.nanquantile(values, RANGE)
    if (values == np.rint(values)).all() and high - low <= MOST_COUNTS:
        return "count", np.arange(np.floor(low), high + 1).tolist()
    if whole:
        ends = max(0.0, np.floor(low)), max(1.0, np.ceil(high))
        return "number", np.unique(np.rint(np.linspace(*ends, points))).tolist()
    margin = 0.04 * (high - low) or 1.0
    low = low if low >= 0 > low - margin else low - margin
    return "number", np.linspace(low, high + margin, points).tolist()


def _edges(model: Model) -> dict[int, tuple[float, ...]]:
    """The edges of the bins of each column that is a histogram."""
    found: dict[int, tuple[float, ...]] = {}
    for (family,), at in zip(blocks_of(model.family), model.positions):
        if isinstance(family, Binned) and family.edges is not None:
            found.update(zip((int(j) for j in at), map(tuple, family.edges)))
    return found


def _binned(edges: Array, points: int, whole: bool) -> tuple[str, list[Any]]:
    """The kind of a histogram and its values: evenly spaced between the outermost edges, and one within each bin."""
    whole = whole or bool((edges % 1 == 0.5).all())  # bins of whole numbers end halfway between two
    if whole and edges[-1] - edges[0] <= MOST_COUNTS:
        return "count", (np.arange(np.ceil(edges[0]), edges[-1]) + 0.0).tolist()
    middles = edges[1:] / 2 + edges[:-1] / 2
    last = np.nextafter(edges[-1], -np.inf)  # the edge itself is in the tail
    values = np.r_[np.linspace(edges[0], last, points - len(middles)), middles]
    return "number", np.unique(np.rint(values) + 0.0 if whole else values).tolist()


def _each_has_a_value(edges: tuple[float, ...], values: list[Any]) -> bool:
    at = np.searchsorted(edges, values, side="right")
    return set(range(1, len(edges))) <= set(at.tolist())


def _middle(sampled: Array, kind: str, values: list[Any]) -> int:
    """The position of the median, or of the most frequent category."""
    return 0 if kind == "category" else int(np.abs(np.array(values) - np.nanmedian(sampled)).argmin())


def _table(predictor: Predictor, chosen: dict[int, tuple[str, list[Any]]]) -> TypedTable:
    """A table with one typical value of every column in each row; shorter columns repeat their last value."""
    import pyarrow as pa

    columns = predictor.model.reader.columns
    n = max(len(values) for _, values in chosen.values())
    filled: list[Any] = []
    for j in range(len(columns)):
        if j not in chosen:
            filled.append(pa.chunked_array([pa.nulls(n, pa.string())]))
            continue
        kind, values = chosen[j]
        at = np.minimum(np.arange(n), len(values) - 1)
        filled.append((at, tuple(values)) if kind == "category" else np.array(values)[at])
    return TypedTable(TypedColumns(n, tuple(filled)), columns, all(isinstance(name, str) for name in columns))
