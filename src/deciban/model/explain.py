"""Explanations: which feature, block or word contributed how much, and the llr as a formula."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from deciban.errors import InputError, NotAvailableError
from deciban.evidence.explanation import Explanation
from deciban.evidence.scores import log_joint, log_ratio
from deciban.families.abilities import HasDiscriminant, HasNamedParts, HasParts, HasSelection, HasWordParts, ability
from deciban.families.fixed import Released
from deciban.families.interactions import Interactions
from deciban.families.product import Product, blocks_of
from deciban.families.protocol import Density, Family, Rows
from deciban.model.calibration import total
from deciban.model.predictor import Predictor, block_lengths
from deciban.read.tables import Table
from deciban.statistics import Array


class Discriminant(NamedTuple):
    """llr(x) = xᵀA x + xᵀb + c; A is None where it is linear."""

    A: Array | None
    b: Array
    c: float


class Parts(NamedTuple):
    """The terms that a log density is a sum of."""

    names: list[str]  # (P,)
    log_density: Array  # (n, K, P)
    values: Array  # (n, P)
    block: Array  # (P,) which block each belongs to
    factors: Array  # (P,) of words, where the calibration has them; 1 for all others


@dataclass(frozen=True, eq=False)
class Chained:
    """The density of correlated features, one at a time: log f(x) = Σ_d log f(x_d | x_1 … x_{d−1})."""

    density: Any

    def parts(self, X: Array) -> Array:
        """Return differences of the log densities of marginals, shape (n, K, D)."""
        D = X.shape[1]
        sums = [self.density.select(np.arange(d + 1)).log_density(X[:, : d + 1]) for d in range(D)]
        return np.diff(np.stack([np.zeros_like(sums[0]), *sums], axis=2), axis=2)


def explain(
    predictor: Predictor, table: Table, pair: tuple[int, int | None] | None, log_prior: Array, chain: bool = False
) -> Explanation:
    """Explain the evidence for one class over another; without a pair, for each row's most probable class."""
    model = predictor.model
    classes = np.array(model.classes)
    rows = model.encode(table)
    blocks = predictor.block_scores(rows)
    B = len(model.positions)
    scores, raw = predictor.calibrated(blocks, rows), total(blocks[:B])
    each = np.arange(len(scores))
    if pair is None:
        ranked = np.argsort(-log_joint(scores, log_prior), axis=1, kind="stable")
        one, other = ranked[:, 0], ranked[:, 1]
    elif pair[1] is None:
        raise InputError(
            "the evidence against all other classes together is not a sum over features. Name a class to compare with."
        )
    else:
        one, other = (np.full(len(scores), k) for k in pair)
    parts = parts_of(predictor, table, rows, chain)
    if model.calibration is not None and model.calibration.uses_experts:
        parts = joined([parts, expert_parts(predictor, table, blocks[B:])])
    evidence = log_ratio(parts.log_density[each, one], parts.log_density[each, other])
    impossible = np.isneginf(raw[each, one]) & np.isneginf(raw[each, other])
    evidence[impossible] = 0.0  # both classes give these rows probability zero
    extra: dict[str, Array] = {}
    if model.calibration is not None:
        if hasattr(model.calibration.calibrator, "offsets"):
            scales = model.calibration.scales(block_lengths(model.family, rows), len(evidence))
            evidence = evidence * (scales if len(scales) == 1 else scales[parts.block]).T * parts.factors
        whole = log_ratio(scores[each, one], scores[each, other])
        tamed = np.isfinite(whole) & np.isinf(evidence).any(axis=1)  # a PAV calibration makes infinite evidence finite
        evidence[tamed] = np.where(np.isinf(evidence[tamed]), 0.0, evidence[tamed])
        summed = evidence.sum(axis=1)
        extra = {"calibration": np.subtract(whole, summed, out=np.zeros(len(whole)), where=whole != summed)}
    return Explanation(
        parts.names,
        evidence,
        classes[one],
        classes[other],
        values=parts.values,
        prior_part=log_ratio(log_prior[one], log_prior[other]),
        other=extra,
        exhaustive=len(classes) == 2,
    )


def discriminant(predictor: Predictor, one: int, other: int | None) -> Discriminant:
    """Return the llr of one class over another as a linear or quadratic formula of x."""
    density = ability(predictor.density, HasDiscriminant)
    if other is None or density is None:
        raise NotAvailableError(
            "a discriminant is the llr of one class over another, for families whose log density is linear or "
            "quadratic in x. Name two classes, and use rule 'ml', 'map' or 'mean'."
        )
    A, b, c = density.polynomial()
    return Discriminant(None if A is None else A[one] - A[other], b[one] - b[other], float(c[one] - c[other]))


def parts_of(predictor: Predictor, table: Table, rows: Rows, chain: bool = False) -> Parts:
    """Split the log densities of encoded rows into the parts of each block."""
    model = predictor.model
    product = isinstance(model.family, Product)
    found: list[Parts] = []
    blocks = zip(blocks_of(model.family, predictor.density, rows), model.block_names, model.positions)
    for place, ((_, density, X), name, at) in enumerate(blocks):
        named = ability(density, HasNamedParts)
        if named is not None:
            words, terms, counts = named.named_parts(X)
            factors = np.ones(len(words)) if model.calibration is None else model.calibration.factors_of(place, words)
            grouped = ability(density, HasWordParts)
            whole_words = None if grouped is None else grouped.parts_by_word(X, words, terms * factors)
            if whole_words is not None:
                words, terms, counts = whole_words
                factors = np.ones(len(words))
            names = [f"{name}: {word}" for word in words] if len(model.positions) > 1 else words
            found.append(Parts(names, terms, counts, np.full(len(words), place), factors))
        else:
            columns = [str(model.reader.columns[j]) for j in at]
            whole = name if product else "all features together"
            found.append(_column_parts(density, X, table, at, columns, (whole, f"{name}: all else"), place, chain))
    return joined(found)


def expert_parts(predictor: Predictor, table: Table, scores: Sequence[Array]) -> Parts:
    """Return the parts of experts that have a weight, by their scores (n, K) of each part."""
    model, calibration = predictor.model, predictor.model.calibration
    B = len(model.positions)
    weights = calibration.calibrator.weights  # type: ignore[union-attr]  # the calibration uses experts
    columns = [str(name) for name in model.reader.columns]
    used = np.flatnonzero(weights > 0)
    names, values = [], np.full((len(table), len(used)), None, dtype=object)
    for place, e in enumerate(used):
        family, key = predictor.weighted_parts()[e]
        expert = family.family if isinstance(family, Released) else family
        names.append(expert_label(expert, key))
        if isinstance(expert, Interactions) and len(key) == 2:
            both = [np.asarray(table.pick([columns.index(str(name))])).astype(object)[:, 0] for name in key]
            values[:, place] = [f"{_shown(one)}, {_shown(other)}" for one, other in zip(*both)]
    return Parts(names, np.stack([scores[int(e)] for e in used], axis=2), values, B + used, np.ones(len(used)))


def expert_label(expert: Family[Any], key: Sequence[Any]) -> str:
    """Return what the part of an expert is called: "age with occupation"."""
    from deciban.families.bernoulli import Gaps
    from deciban.families.cosine_features import CosineFeatures

    if isinstance(expert, Gaps):
        return f"{', '.join(map(str, key))}: missing or not"
    if isinstance(expert, CosineFeatures):
        return f"{'smooth' if expert.bandwidth < 1 else 'finer'} function of {len(key)} columns"
    if len(key) == 1:
        return f"{key[0]}, by itself"
    if len(key) == 2:
        return f"{key[0]} with {key[1]}"
    return f"{len(key)} columns {'in pairs, averaged' if isinstance(expert, Interactions) else 'together'}"


def _shown(value: Any) -> str:
    if value is None or value != value:
        return "missing"
    return f"{value:g}" if isinstance(value, float) else str(value)


def joined(found: Sequence[Parts]) -> Parts:
    """Return all parts, one after the other."""
    return Parts(
        [label for part in found for label in part.names],
        np.concatenate([part.log_density for part in found], axis=2),
        np.concatenate([np.asarray(part.values).astype(object) for part in found], axis=1),
        np.concatenate([part.block for part in found]).astype(np.intp),
        np.concatenate([part.factors for part in found]),
    )


def _column_parts(
    density: Density,
    X: Rows,
    table: Table,
    at: list[int],
    columns: list[str],
    labels: tuple[str, str],
    place: int,
    chain: bool,
) -> Parts:
    """Return one part per column where the density is a sum over columns, and the rest as a further part."""
    total = density.log_density(X)
    parts, selection = ability(density, HasParts), ability(density, HasSelection)
    if parts is not None and sp.issparse(X) and selection is not None:
        seen = np.unique(X.indices[X.data != 0])  # only the events that occur in these rows
        at, columns = [at[j] for j in seen], [columns[j] for j in seen]
        parts, X = selection.select(seen), X[:, seen].toarray()  # type: ignore[assignment]
    elif parts is None and chain and selection is not None and not sp.issparse(X):
        parts = Chained(density)
    names: list[str] = []
    terms, values = [], []
    rest, rest_name = total, labels[0]
    if parts is not None:
        names, each = list(columns), parts.parts(X)
        terms, values = [each], [table.pick(at)]
        rest, rest_name = log_ratio(total, each.sum(axis=2)), labels[1]  # the part that belongs to no single column
    if parts is None or np.abs(rest).max(initial=0) > 1e-12 * max(1, np.abs(total[np.isfinite(total)]).max(initial=0)):
        names.append(rest_name)
        terms.append(rest[:, :, None])
        values.append(np.full((len(table), 1), None, dtype=object))
    held = [np.asarray(v.toarray() if sp.issparse(v) else v).astype(object) for v in values]
    block = np.full(len(names), place)
    return Parts(names, np.concatenate(terms, axis=2), np.concatenate(held, axis=1), block, np.ones(len(names)))
