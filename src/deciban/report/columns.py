"""Columns of a model: densities of each class over typical values, and scales of evidence for a nomogram.

Typical values come from samples of the model, so that no rows are needed. A table holds one typical value of every
column in each of its rows; one pass over it gives all columns of all blocks whose log density is a sum over columns.

Reference: Možina et al., Nomograms for visualization of naive Bayesian classifier, PKDD 2004.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from deciban.errors import DecibanError
from deciban.evaluate.calibration import Affine, Blockwise, LengthAware, Offsets
from deciban.evidence.scores import convert
from deciban.families.abilities import HasDiscriminant, HasNamedParts, HasParts, HasSelection, ability
from deciban.families.product import Product, blocks_of
from deciban.model.predictor import Predictor
from deciban.read.tables import Columns
from deciban.read.typed import TypedColumns, TypedTable
from deciban.statistics import Array

SAMPLES = 3000  # drawn from the model, with equal class priors
RANGE = (0.002, 0.998)  # quantiles of the samples between which numbers are drawn
MOST_CATEGORIES = 12  # of a column
MOST_COLUMNS = 1000  # of a block; sparse counts of more columns are not drawn
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


@dataclass(frozen=True, eq=False)
class Scales:
    """The columns of a model, and the constants of its nomogram."""

    columns: list[ColumnScale]
    offsets: Array  # (K,) decibans, added where at least one column has a value
    base: Array  # (K,) decibans, of the typical values of a linear llr
    left_out: list[str]  # columns without a scale of evidence
    reason: str  # why there is no nomogram; empty if there is one


def column_scales(predictor: Predictor, points: int) -> Scales:
    """Compute densities and scales of all columns that are numbers or categories, at most `points` values each."""
    model, density = predictor.model, predictor.density
    K, names = len(model.classes), model.reader.labels
    sampled = _samples(predictor)
    chosen = {j: _typical(values, points) for j, values in sampled.items()}
    if not chosen:
        return Scales([], np.zeros(K), np.zeros(K), names, "no column is a number or a category")
    table = _table(predictor, chosen)
    scales, offsets, reason = calibration_terms(predictor)
    found: dict[int, ColumnScale] = {}
    base, left_out = np.zeros(K), []
    blocks = zip(blocks_of(model.family, density, model.stats.family), model.positions)
    for place, ((family, block, sums), at) in enumerate(blocks):
        if ability(block, HasNamedParts) is not None or not all(j in chosen for j in at):
            left_out += [names[j] for j in at]
            continue
        X = family.encode(Columns(table, at), [names[j] for j in at], sums)
        logs, evidence = _block_logs(block, X, len(at))
        if logs is None:
            left_out += [names[j] for j in at]
            continue
        if evidence is None and not isinstance(model.family, Product):
            evidence, base = _linear(block, chosen, at, K)
        if evidence is None:
            left_out += [names[j] for j in at]
        factor = convert(1.0, "decibans") * scales[place if len(scales) > 1 else 0]
        if not reason and len(at) == len(names):
            base = factor * base
        for d, j in enumerate(at):
            kind, values = chosen[j]
            m = len(values)
            own = None if evidence is None or reason else factor * evidence[:m, :, d]
            found[j] = ColumnScale(names[j], kind, values, logs[:m, :, d], own, _middle(sampled[j], kind, values))
    columns = [found[j] for j in sorted(found)]
    if not reason and all(column.decibans is None for column in columns):
        reason = "the evidence of this model is not a sum over columns"
    return Scales(columns, convert(1.0, "decibans") * offsets, base, left_out, reason)


def calibration_terms(predictor: Predictor) -> tuple[Array, Array, str]:
    """Return the scale of each block (B,) or (1,), the offset of each class (K,), and why there are none, or ''."""
    model = predictor.model
    calibration: Any = model.calibration
    fitted, zero = getattr(calibration, "calibrator", None), np.zeros(len(model.classes))
    if fitted is not None and isinstance(model.family, Product) and model.family.experts:
        return np.ones(1), zero, "pairs of columns add evidence of their own"
    if fitted is None:
        return np.ones(1), zero, ""
    if isinstance(fitted, Affine):
        return np.array([fitted.a]), np.array([0.0, fitted.b]), ""
    if isinstance(fitted, Offsets) and not isinstance(fitted, LengthAware):
        return np.array([fitted.scale]), calibration.offsets(model.classes), ""
    if isinstance(fitted, Blockwise):  # a scale depends on the row only in blocks that count words
        return np.exp(fitted.log_scales), calibration.offsets(model.classes), ""
    return np.ones(1), zero, "the scale of this calibration depends on the row"


def _samples(predictor: Predictor) -> dict[int, Array]:
    """Values of each column drawn from the model, (SAMPLES,) floats or names; columns of texts are left out."""
    model, rng = predictor.model, np.random.default_rng(0)
    codes = np.arange(SAMPLES) % len(model.classes)
    found: dict[int, Array] = {}
    for (_, density), at in zip(blocks_of(model.family, predictor.density), model.positions):
        if ability(density, HasNamedParts) is not None or len(at) > MOST_COLUMNS:
            continue
        part = density.sample(codes, rng)
        cells = part.toarray() if hasattr(part, "toarray") else np.asarray(part)
        found |= {j: cells[:, d] for d, j in enumerate(at)}
    return found


def _typical(values: Array, points: int) -> tuple[str, list[Any]]:
    """The kind of a column and its typical values."""
    if values.dtype == object:
        names, counts = np.unique([str(value) for value in values if value is not None], return_counts=True)
        return "category", names[np.argsort(-counts, kind="stable")][:MOST_CATEGORIES].tolist()
    low, high = np.nanquantile(values, RANGE)
    if (values == np.rint(values)).all() and high - low <= MOST_COUNTS:
        return "count", np.arange(np.floor(low), high + 1).tolist()
    margin = 0.04 * (high - low) or 1.0
    low = low if low >= 0 > low - margin else low - margin
    return "number", np.linspace(low, high + margin, points).tolist()


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


def _block_logs(density: Any, X: Any, D: int) -> tuple[Array | None, Array | None]:
    """Marginal log densities (m, K, D) of a block, and the parts of its log density, where it is a sum over columns."""
    parts, selection = ability(density, HasParts), ability(density, HasSelection)
    if parts is not None:
        each = parts.parts(X)
        if each.shape[2] == D:
            return each, each
    if selection is None:
        return None, None
    marginal = [selection.select(np.array([d])).log_density(X[:, [d]]) for d in range(D)]
    return np.stack(marginal, axis=2), None


def _linear(
    density: Any, chosen: dict[int, tuple[str, list[Any]]], at: list[int], K: int
) -> tuple[Array | None, Array]:
    """Parts (m, K, D) of linear log densities around typical values, and the constants (K,); None if not linear."""
    linear = ability(density, HasDiscriminant)
    try:
        A, b, c = (None, None, None) if linear is None else linear.polynomial()
    except DecibanError:  # under rule "predictive" the llr is no polynomial
        b = None
    if b is None or A is not None:
        return None, np.zeros(K)
    m = max(len(chosen[j][1]) for j in at)
    centre = np.array([float(np.mean(chosen[j][1])) for j in at])
    values = np.stack([np.resize(np.array(chosen[j][1], dtype=float), m) for j in at], axis=1)  # (m, D)
    return (values - centre)[:, None, :] * b[None], c + b @ centre
