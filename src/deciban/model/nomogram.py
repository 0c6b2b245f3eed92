"""Scales of a nomogram: the calibrated evidence of each value of each column, and of pairs of columns.

    log f'(x|c) = Σ_j e_j(x_j|c) + Σ_p w_p·I_p(x_a, x_b|c) + w·log mean_i exp Σ_{j≠i} I_ij(x_i, x_j|c)
                  + Σ_t T_t(x|c) + b_c

A table holds one value of every column in each of its rows; one pass over it gives all columns of all blocks whose log
density is a sum over columns. Experts that belong to one column, and whether a value is missing, are parts of e_j. The
terms T_t are functions of several columns (module joint_evidence).

Reference: Možina et al., Nomograms for visualization of naive Bayesian classifier, PKDD 2004.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from deciban.evaluate.calibration import Affine, Blockwise, LengthAware, Offsets
from deciban.families.abilities import HasNamedParts, HasParts, HasSelection, SeveralParts, ability
from deciban.families.cosine_features import CosineFeatures
from deciban.families.gaps import Gaps, missing
from deciban.families.interactions import InteractionDensity, Interactions
from deciban.families.product import Product, blocks_of, experts_of
from deciban.families.released import Released
from deciban.model.explain import expert_label
from deciban.model.joint_evidence import (
    JointTerm,
    coefficients_of,
    cosine_term,
    polynomial_term,
    share_waves,
    unmapped,
)
from deciban.model.predictor import Predictor
from deciban.read.tables import Columns, Table
from deciban.statistics import Array

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
        One value of each column in each row; values of different columns that share a row have nothing to do with each
        other.
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
    """Marginal log densities (m, K, D) of a block, and the parts of its log density, where it is a sum over columns."""
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
    """Parts (m, K, D) of linear log densities around mean values, and the constants (K,); None if not linear."""
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
    """The tables of pairs that have a weight; of all pairs where one-dependence estimators have one."""
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
