"""Scales of a nomogram: the calibrated evidence of each value of a column, of pairs, and of several columns together.

    log f'(x|c) = Σ_j e_j(x_j|c) + Σ_p w_p·I_p(x_a, x_b|c) + w·log mean_i exp Σ_{j≠i} I_ij(x_i, x_j|c)
                  + Σ_t T_t(x|c) + b_c

A table holds one value of every column in each of its rows; one pass over it gives all columns of all blocks whose log
density is a sum over columns. Experts that belong to one column, and whether a value is missing, are parts of e_j.

The terms T_t are functions of several columns, as short formulas that a page can compute by itself:

    cosines      T_c(x) = w·(c_c + b_c·φ(x)),   φ_m(x) = √2·cos(β_m + Σ_j ω_jm·z_j(x_j)), rounded to multiples of 1/1024
    polynomials  T_c(x) = w·(c_c + b_c·t + tᵀ·A_c·t),   t_j = t_j(x_j) mapped and on a common scale

Each formula is written over the same table: a row of evidence is a choice of one place of the table for each column, −1
for a missing value.

Reference: Možina et al., Nomograms for visualization of naive Bayesian classifier, PKDD 2004.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from deciban.errors import DecibanError
from deciban.evaluate.calibration import Affine, Blockwise, LengthAware, Offsets
from deciban.families.abilities import HasDiscriminant, HasNamedParts, HasParts, HasSelection, SeveralParts, ability
from deciban.families.bernoulli import Gaps, missing
from deciban.families.cosine_features import STEPS, CosineFeatures
from deciban.families.fixed import Released
from deciban.families.interactions import InteractionDensity, Interactions
from deciban.families.product import Product, blocks_of, experts_of
from deciban.families.transformed import MappedDensity
from deciban.model.explain import expert_label
from deciban.model.predictor import Predictor
from deciban.read.tables import Columns, Table
from deciban.statistics import Array


# -- terms of several columns ------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class Waves:
    """The arguments of cosines, a sum over columns: for each column, numbers times vectors, or a vector per value."""

    numbers: dict[int, Array]  # position → (m,) numbers z of a column, NaN where missing
    vectors: dict[int, Array]  # position → (1, M) the vector that z is multiplied by, or (m, M) one for each value

    def of(self, position: int, places: Array) -> Array:
        """Return the vectors of some values of a column, shape (n, M); NaN where they are missing."""
        vectors = self.vectors[position]
        found = self.numbers[position][places, None] * vectors if position in self.numbers else vectors[places]
        return np.where(places[:, None] < 0, np.nan, found)


@dataclass(frozen=True, eq=False)
class CosineTerm:
    """A discriminant that is linear in cosines of all columns; it has no evidence if all of them are missing."""

    label: str
    columns: tuple[int, ...]  # positions
    waves: Waves  # may be shared by terms whose frequencies differ by a factor
    factor: float  # of the waves
    phases: Array  # (M,)
    linear: Array  # (K, M) nats
    constant: Array  # (K,) nats

    def evidence(self, places: Array) -> Array:
        """Return the evidence of rows in nats.

        Parameters
        ----------
        places : ndarray of int of shape (n, D)
            Place of each value in the table, by the positions of columns; below 0 where a value is missing.

        Returns
        -------
        ndarray of shape (n, K)
            Evidence.
        """
        each = np.stack([self.waves.of(j, places[:, j]) for j in self.columns if j in self.waves.vectors])
        empty = np.isnan(each).all(axis=(0, 2))
        phi = np.rint(np.cos(self.factor * np.nansum(each, axis=0) + self.phases) * (np.sqrt(2.0) * STEPS)) / STEPS
        return np.where(empty[:, None], 0.0, phi @ self.linear.T + self.constant)


@dataclass(frozen=True, eq=False)
class PolynomialTerm:
    """A polynomial of degree two of several columns; it has no evidence if one of them is missing."""

    label: str
    columns: tuple[int, ...]  # positions
    numbers: Array  # (m, D) mapped values on a common scale
    quadratic: Array  # (K, D, D) nats
    linear: Array  # (K, D) nats
    constant: Array  # (K,) nats
    gaps: bool  # whether values may be missing

    def evidence(self, places: Array) -> Array:
        """Return the evidence of rows in nats.

        Parameters
        ----------
        places : ndarray of int of shape (n, D)
            Place of each value in the table, by the positions of columns; below 0 where a value is missing.

        Returns
        -------
        ndarray of shape (n, K)
            Evidence.
        """
        at = places[:, self.columns]
        t = np.where(at < 0, np.nan, np.take_along_axis(self.numbers, np.maximum(at, 0), axis=0))
        scores = self.constant + t @ self.linear.T + np.einsum("nd,kde,ne->nk", t, self.quadratic, t)
        return np.where(np.isnan(t).any(axis=1, keepdims=True), 0.0, scores)


JointTerm = CosineTerm | PolynomialTerm


def cosine_term(
    label: str, family: CosineFeatures, density: Any, weight: float, at: list[int], table: Table, known: Collection[int]
) -> CosineTerm | None:
    """Return the formula of an expert of cosine features; None if it is not linear in them (rule "predictive").

    Columns that are not in `known` are missing.
    """
    coefficients = coefficients_of(density)
    if coefficients is None or coefficients[0] is not None:
        return None
    numbers: dict[int, Array] = {}
    vectors: dict[int, Array] = {}
    start = 0
    frequencies = family.frequencies
    for ramp, j in zip(family.ramps, at):
        own = frequencies[start : start + ramp.width]
        start += ramp.width
        if j not in known:
            continue
        z = ramp.apply(table, j, str(table.columns[j]))
        if ramp.names:
            vectors[j] = z @ own  # NaN where the category is not among the frequent ones
        else:
            numbers[j], vectors[j] = z[:, 0], own
    _, b, c = coefficients
    waves = Waves(numbers, vectors)
    return CosineTerm(label, tuple(at), waves, 1.0, family.phases, weight * (b - b[0]), weight * (c - c[0]))


def share_waves(terms: list[JointTerm], bandwidths: dict[str, float]) -> list[JointTerm]:
    """Let terms that differ in the bandwidth alone have the same waves, times a factor; bandwidths by label."""
    found: list[JointTerm] = []
    for term in terms:
        first = next((one for one in found if isinstance(one, CosineTerm)), None)
        if isinstance(term, CosineTerm) and first is not None and _same_shapes(term, first):
            factor = float(np.sqrt(bandwidths[term.label] / bandwidths[first.label]))
            if all(np.allclose(term.waves.vectors[j], factor * v, rtol=1e-12, atol=1e-14, equal_nan=True)
                   for j, v in first.waves.vectors.items()):  # fmt: skip
                term = replace(term, waves=first.waves, factor=factor)
        found.append(term)
    return found


def _same_shapes(one: CosineTerm, two: CosineTerm) -> bool:
    a, b = one.waves.vectors, two.waves.vectors
    return a.keys() == b.keys() and all(a[j].shape == b[j].shape for j in a)


def polynomial_term(label: str, density: Any, X: Array, weight: float, at: list[int], gaps: bool) -> JointTerm | None:
    """Return the formula of a Gaussian of several columns, of mapped values, too; None if it is no polynomial.

    `X` are the values of the table as the density takes them, shape (m, D).
    """
    density, X, _ = unmapped(density, X)
    coefficients = coefficients_of(density)
    if coefficients is None or not isinstance(X, np.ndarray) or (not gaps and np.isnan(X).any()):
        return None
    A, b, c = coefficients
    A = np.zeros((*b.shape, b.shape[1])) if A is None else A
    centre, unit = np.nanmean(X, axis=0), np.nanstd(X, axis=0)
    unit = np.where(unit > 0, unit, 1.0)
    turned = A @ centre  # (K, D)
    constant = c + b @ centre + turned @ centre
    linear, quadratic = (b + 2 * turned) * unit, A * np.multiply.outer(unit, unit)
    A, b, c = (weight * (part - part[0]) for part in (quadratic, linear, constant))
    return PolynomialTerm(label, tuple(at), (X - centre) / unit, A, b, c, gaps)


def unmapped(density: Any, X: Any) -> tuple[Any, Any, Array | float]:
    """Return the density of mapped values, these values, and the log slopes (m, 1, D), the same for all classes."""
    slope: Array | float = 0.0
    while isinstance(density, MappedDensity):
        slope = slope + density.family.log_slope(X, density.map)[:, None, :]
        X, density = density.family.mapped(X, density.map), density.inner
    return density, X, slope


def coefficients_of(density: Any) -> tuple[Array | None, Array, Array] | None:
    """Return the polynomial of the log densities of classes, without common terms; None if they are none."""
    linear = ability(density, HasDiscriminant)
    try:
        return None if linear is None else linear.polynomial()
    except DecibanError:  # under rule "predictive" the llr is no polynomial
        return None


# -- scales of columns and pairs ---------------------------------------------------------------------------------------
MOST_COLUMNS = 1000  # of a block; sparse counts of more columns have no scales


@dataclass(frozen=True, eq=False)
class Pairs:
    """Evidence of pairs of columns beyond that of each of them: tables over levels of their values."""

    columns: tuple[int, ...]  # (C,) positions of the columns that have levels
    levels: Array  # (m, C) level of each value of the given table; below 0 where it is missing
    pairs: Array  # (P, 2) positions within `columns`
    tables: list[Array]  # (P,) of (L_a, L_b, K), nats
    weights: Array  # (P,)
    averaged: float  # weight of averaged one-dependence estimators

    def evidence(self, levels: Array) -> Array:
        """Return the evidence of rows of levels (n, C), shape (n, K).

        Parameters
        ----------
        levels : ndarray of int of shape (n, C)
            Level of each row in each column; below 0 where a value is missing.

        Returns
        -------
        ndarray of shape (n, K)
            Evidence in nats.
        """
        each = np.stack([
            np.where(((levels[:, a] >= 0) & (levels[:, b] >= 0))[:, None], table[levels[:, a], levels[:, b]], 0.0)
            for (a, b), table in zip(self.pairs, self.tables)
        ])  # fmt: skip
        found = np.tensordot(self.weights, each, 1)
        if not self.averaged:
            return np.asarray(found)
        of_parent = np.zeros((len(self.columns), *each.shape[1:]))
        for (a, b), scores in zip(self.pairs, each):
            of_parent[a] += scores
            of_parent[b] += scores
        return np.asarray(found + self.averaged * np.logaddexp.reduce(of_parent, axis=0)) - self.averaged * np.log(
            len(self.columns)
        )


@dataclass(frozen=True, eq=False)
class Nomogram:
    """Evidence of the values of a table, column by column, in nats."""

    marginal: dict[int, Array]  # position → (m, K) marginal log density, not calibrated
    evidence: dict[int, Array]  # position → (m, K) calibrated evidence; only columns whose evidence can be added
    missing: Array  # (D, K) evidence of a missing value
    pairs: Pairs | None
    offsets: Array  # (K,) added where at least one column has evidence
    base: Array  # (K,) evidence of the mean values, of an llr that is linear
    left_out: list[int]  # columns without a scale
    reason: str  # why there is no nomogram; empty if there is one
    beyond: bool  # whether functions of several columns, other than pairs and terms, add evidence
    terms: list[JointTerm]  # evidence of several columns together
    complete: frozenset[int]  # columns of which no value may be missing


def nomogram(predictor: Predictor, table: Table, known: Collection[int], joint: bool = False) -> Nomogram:
    """Compute the evidence of each value of a table.

    Parameters
    ----------
    predictor : Predictor
        A model and its density.
    table : Table
        One value of each column in each row; the values in a row are independent of each other.
    known : collection of int
        Positions of columns of which the table has values.
    joint : bool, default=False
        Also return the evidence of several columns together, as formulas.

    Returns
    -------
    Nomogram
        Evidence of all columns, and the constants.
    """
    model, density = predictor.model, predictor.density
    K, names = len(model.classes), model.reader.labels
    scales, offsets, reason = _calibration_terms(predictor)
    marginal: dict[int, Array] = {}
    evidence: dict[int, Array] = {}
    base, left_out = np.zeros(K), []
    terms: list[JointTerm] = []
    complete: set[int] = set()
    blocks = zip(blocks_of(model.family, density, model.stats.family), model.positions)
    for place, ((family, block, sums), at) in enumerate(blocks):
        if ability(block, HasNamedParts) is not None or not all(j in known for j in at):
            left_out += list(at)
            continue
        scale = float(scales[place if len(scales) > 1 else 0])
        X = family.encode(Columns(table, at), [names[j] for j in at], sums)
        logs, parts = _block_logs(block, X, len(at))
        if logs is not None:
            marginal |= {j: logs[:, :, d] for d, j in enumerate(at)}
            if parts is None:
                parts, constant = _linear(block, X)
                base = base + scale * constant
                complete |= set(at)
        if parts is not None:
            evidence |= {j: scale * parts[:, :, d] for d, j in enumerate(at)}
            continue
        label = f"{len(at)} columns together" if isinstance(model.family, Product) else "all columns together"
        term = polynomial_term(label, block, X, scale, at, gaps=False) if joint and logs is not None else None
        if term is None:
            left_out += list(at)
        else:
            terms.append(term)
            evidence |= {j: np.zeros((len(table), K)) for j in at}
    absent, pairs, beyond = np.zeros((len(names), K)), None, False
    if not reason and model.calibration is not None and model.calibration.uses_experts:
        pairs, more, beyond = _add_experts(predictor, table, evidence, absent, joint)
        terms += more
        complete |= {j for term in more if not getattr(term, "gaps", True) for j in term.columns}
    if not reason and not evidence:
        reason = "the evidence of this model is not a sum over columns"
    if reason:
        evidence = {}
    return Nomogram(
        marginal, evidence, absent, pairs, offsets, base, left_out, reason, beyond, terms, frozenset(complete)
    )


def _calibration_terms(predictor: Predictor) -> tuple[Array, Array, str]:
    """Return the scale of each block (B,) or (1,), the offset of each class (K,), and why there are none, or ''."""
    model = predictor.model
    calibration: Any = model.calibration
    fitted, zero = getattr(calibration, "calibrator", None), np.zeros(len(model.classes))
    if fitted is None:
        return np.ones(1), zero, ""
    if isinstance(fitted, Affine):
        return np.array([fitted.a]), np.array([0.0, fitted.b]), ""
    if isinstance(fitted, Offsets) and not isinstance(fitted, LengthAware):
        return np.array([fitted.scale]), calibration.offsets(model.classes), ""
    if isinstance(fitted, Blockwise):  # a scale depends on the row only in blocks that count words
        return np.exp(fitted.log_scales), calibration.offsets(model.classes), ""
    return np.ones(1), zero, "the scale of this calibration depends on the row"


def _block_logs(density: Any, X: Any, D: int) -> tuple[Array | None, Array | None]:
    """Return the marginal log densities (m, K, D) of a block, and its parts if it is a sum over columns."""
    density, X, slope = unmapped(density, X)
    parts, selection = ability(density, HasParts), ability(density, HasSelection)
    if parts is not None:
        each = parts.parts(X)
        if each.shape[2] == D:
            return each + slope, each
    if selection is None:
        return None, None
    marginal = [selection.select(np.array([d])).log_density(X[:, [d]]) for d in range(D)]
    return np.stack(marginal, axis=2) + slope, None


def _linear(density: Any, X: Any) -> tuple[Array | None, Array]:
    """Return the parts (m, K, D) of linear log densities around mean values, and constants (K,); None if not linear."""
    density, X, _ = unmapped(density, X)
    found = coefficients_of(density)
    if found is None or found[0] is not None:
        return None, np.zeros(density.K)
    _, b, c = found
    centre = np.nanmean(X, axis=0)
    return (X - centre)[:, None, :] * b[None], c + b @ centre


def _add_experts(
    predictor: Predictor, table: Table, evidence: dict[int, Array], absent: Array, joint: bool
) -> tuple[Pairs | None, list[JointTerm], bool]:
    """Add experts of single columns to the evidence; return the pairs, other terms, and whether there are others."""
    model = predictor.model
    weights: Array = model.calibration.calibrator.weights  # type: ignore[union-attr]  # the calibration uses experts
    position = {name: j for j, name in enumerate(model.reader.columns)}
    pairs, beyond, start = None, False, 0
    terms: list[JointTerm] = []
    term: JointTerm | None
    bandwidths: dict[str, float] = {}
    named = model.family.experts.values()  # type: ignore[attr-defined]  # only products have experts
    for given, (expert, density) in zip(named, experts_of(model.family, predictor.density)):
        family: Any = expert.family if isinstance(expert, Released) else expert
        at = [position[name] for name in given.columns]
        several = ability(family, SeveralParts)
        own = weights[start : start + (1 if several is None else len(several.part_columns))]
        start += len(own)
        if not own.any():
            continue
        if isinstance(family, Interactions):
            pairs = _pairs(family, density, own, at, table, evidence)
        elif isinstance(family, Gaps):
            _add_gaps(density, own[0], at, table, evidence, absent)
        elif len(at) == 1 and at[0] in evidence:
            X = family.encode(Columns(table, at), [str(given.columns[0])])
            evidence[at[0]] = evidence[at[0]] + own[0] * density.log_density(X)
        else:
            label, term = expert_label(family, given.columns), None
            if joint and isinstance(family, CosineFeatures):
                bandwidths[label] = family.bandwidth
                term = cosine_term(label, family, density, float(own[0]), at, table, evidence)
            elif joint and all(j in evidence for j in at):
                X = family.encode(Columns(table, at), [str(name) for name in given.columns])
                term = polynomial_term(label, density, X, float(own[0]), at, given.whole_rows)
            if term is None:
                beyond = True
            else:
                terms.append(term)
    return pairs, share_waves(terms, bandwidths), beyond


def _pairs(
    family: Interactions,
    density: InteractionDensity,
    weights: Array,
    at: list[int],
    table: Table,
    evidence: dict[int, Array],
) -> Pairs:
    """Return the tables of pairs that have a weight; of all pairs where one-dependence estimators have one."""
    names = [str(table.columns[j]) for j in at]
    levels = family.encode(Columns(table, at), names).astype(np.intp)
    levels[:, [j not in evidence for j in at]] = -1  # columns without a scale are missing
    layout, P = family.layout, len(family.pairs)
    averaged = float(weights[P]) if len(weights) > P else 0.0
    used = [p for p in range(P) if averaged or weights[p] > 0]
    tables = []
    for p in used:
        (a, b), start = layout.pairs[p], layout.starts[p]
        shape = layout.levels[a], layout.levels[b], density.K
        tables.append(density.table[start : start + layout.sizes[p]].reshape(shape))
    return Pairs(tuple(at), levels, layout.pairs[used], tables, weights[used], averaged)


def _add_gaps(
    density: Any, weight: float, at: list[int], table: Table, evidence: dict[int, Array], absent: Array
) -> None:
    """Add the evidence of having a value, and note that of having none."""
    present, gap = (weight * density.parts(np.full((1, len(at)), x))[0].T for x in (0.0, 1.0))  # (D, K)
    for d, j in enumerate(at):
        absent[j] = gap[d]
        if j in evidence:
            evidence[j] = evidence[j] + np.where(missing(table, j)[:, None], gap[d], present[d])


def sampled_columns(predictor: Predictor, n: int) -> dict[int, Array]:
    """Draw values of each column from the model, with equal class priors.

    Parameters
    ----------
    predictor : Predictor
        A model and its density.
    n : int
        Number of values.

    Returns
    -------
    dict of {int: ndarray of shape (n,)}
        Numbers or names by the position of the column; columns of words are left out.
    """
    model, rng = predictor.model, np.random.default_rng(0)
    codes = np.arange(n) % len(model.classes)
    found: dict[int, Array] = {}
    for (_, density), at in zip(blocks_of(model.family, predictor.density), model.positions):
        if ability(density, HasNamedParts) is not None or len(at) > MOST_COLUMNS:
            continue
        part = density.sample(codes, rng)
        cells = part.toarray() if hasattr(part, "toarray") else np.asarray(part)
        found |= {j: cells[:, d] for d, j in enumerate(at)}
    return found
