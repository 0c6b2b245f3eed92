"""Pairs of columns that were summed: those that two models have in common, and some of those of one model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from deciban.errors import HyperparameterError, InputError
from deciban.families.interactions import Interactions
from deciban.families.product import Key, Product, ProductStats
from deciban.model.calibration import Calibration

Summed: TypeAlias = tuple[Product, ProductStats]  # a product and its sums


def common_experts(one: Summed, two: Summed) -> tuple[Summed, Summed]:
    """Return two products with the experts that both have; of pairs of columns, those with the same levels."""
    mine, theirs = _experts(one), _experts(two)
    kept: tuple[dict[Key, Any], dict[Key, Any]] = {}, {}
    for key in [key for key in mine if key in theirs]:
        (family, sums), (other, their_sums) = mine[key], theirs[key]
        if family == other:
            kept[0][key], kept[1][key] = mine[key], theirs[key]
        elif isinstance(family, Interactions) and isinstance(other, Interactions):
            same = [j for j, (a, b) in enumerate(zip(family.cuts, other.cuts)) if a == b]
            pairs = [pair for pair in family.pairs if pair in other.pairs and set(pair) <= set(same)]
            if pairs and (family.strength, family.pseudo_count) == (other.strength, other.pseudo_count):
                columns = np.array(sorted({j for pair in pairs for j in pair}))
                names = tuple(key[j] for j in columns)
                for place, (each, held) in enumerate(((family, sums), (other, their_sums))):
                    some = each.among(held, [each.pairs.index(pair) for pair in pairs])
                    kept[place][names] = some[0].restricted(some[1], columns)
    return _with(one, kept[0]), _with(two, kept[1])


def kept_pairs(
    family: Product, stats: ProductStats, wanted: int | Sequence[tuple[Any, Any]], calibration: Calibration | None
) -> Summed:
    """Return a product with some of its pairs of columns: so many, those of the greatest weights first, or these."""
    experts = _experts((family, stats))
    found = next((key for key, (expert, _) in experts.items() if isinstance(expert, Interactions)), None)
    if isinstance(wanted, int) and wanted == 0:
        experts.pop(found, None)  # type: ignore[arg-type]
        return _with((family, stats), experts)
    if found is None:
        raise InputError("no pairs of columns were summed.", remedy="Fit with interactions='auto' or a list of pairs.")
    expert, sums = experts[found]
    if isinstance(wanted, int):
        if wanted < 0:
            raise HyperparameterError(f"interactions={wanted}: give a number ≥ 0, or a list of pairs of columns.")
        weights = np.zeros(len(expert.pairs))
        if calibration is not None and calibration.uses_experts and next(iter(experts)) == found:
            weights = calibration.calibrator.weights[: len(expert.pairs)]  # type: ignore[union-attr]
        kept = sorted(np.argsort(-weights, kind="stable")[:wanted].tolist())
    else:
        summed = {frozenset((found[i], found[j])): p for p, (i, j) in enumerate(expert.pairs)}
        kept = []
        for pair in wanted:
            if frozenset(pair) not in summed:
                raise InputError(
                    f"the pair {tuple(pair)} was not summed.", remedy="Fit again with a list that has it: interactions=[…]."
                )
            kept.append(summed[frozenset(pair)])
    experts[found] = expert.among(sums, kept)
    return _with((family, stats), experts)


def _experts(summed: Summed) -> dict[Key, tuple[Any, Any]]:
    """Return the experts and their sums, by their columns."""
    family, stats = summed
    return {key: (expert, (stats.experts or {})[key]) for key, expert in family.experts.items()}


def _with(summed: Summed, experts: dict[Key, Any]) -> Summed:
    """Return a product and its sums with other experts."""
    family, stats = summed
    sums = {key: held for key, (_, held) in experts.items()}
    return replace(family, experts={key: part for key, (part, _) in experts.items()}), replace(
        stats, experts=sums or None
    )
