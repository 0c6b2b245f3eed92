"""Pairs of columns that were summed: those that two models have in common, and some of those of one model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from deciban.errors import HyperparameterError, InputError
from deciban.families.interactions import Interactions
from deciban.families.product import Expert, Product, ProductStats, expert_columns
from deciban.model.calibration import Calibration

Summed: TypeAlias = tuple[Product, ProductStats]  # a product and its sums
Held: TypeAlias = tuple[Expert, Any]  # an expert and its sums

PAIRS = "pairs"  # the name of the expert of pairs of columns


def common_experts(one: Summed, two: Summed) -> tuple[Summed, Summed]:
    """Return two products with the experts that both have; of pairs of columns, those with the same levels."""
    mine, theirs = _experts(one), _experts(two)
    kept: tuple[dict[str, Held], dict[str, Held]] = {}, {}
    for name in [name for name in mine if name in theirs]:
        ours, other = mine[name], theirs[name]
        if ours[0] == other[0]:
            kept[0][name], kept[1][name] = ours, other
            continue
        pairs = _common_pairs(ours[0], other[0])
        for held, into in zip((ours, other), kept):
            if pairs:
                into[name] = _only(held, pairs)
    return _with(one, kept[0]), _with(two, kept[1])


def _common_pairs(one: Expert, two: Expert) -> list[tuple[Any, Any]]:
    """Return the pairs of columns that two experts sum in the same way, by their names."""
    first, second = one.family, two.family
    if not isinstance(first, Interactions) or not isinstance(second, Interactions):
        return []
    if (first.strength, first.pseudo_count) != (second.strength, second.pseudo_count):
        return []
    cuts = [dict(zip(each.columns, each.family.cuts)) for each in (one, two)]  # type: ignore[attr-defined]
    pairs = [[(each.columns[i], each.columns[j]) for i, j in each.family.pairs] for each in (one, two)]  # type: ignore[attr-defined]
    same = {name for name, cut in cuts[0].items() if cuts[1].get(name) == cut}
    return [pair for pair in pairs[0] if pair in pairs[1] and same.issuperset(pair)]


def _only(held: Held, pairs: Sequence[tuple[Any, Any]]) -> Held:
    """Return the expert of some of its pairs of columns, and its sums; columns without a pair are left out."""
    expert, sums = held
    family: Any = expert.family
    place = {(expert.columns[i], expert.columns[j]): p for p, (i, j) in enumerate(family.pairs)}
    some, fewer = family.among(sums, [place[pair] for pair in pairs])
    columns = np.array(sorted({j for pair in some.pairs for j in pair}))
    found, left = some.restricted(fewer, columns)
    return Expert(tuple(expert.columns[j] for j in columns), found), left


def kept_pairs(
    family: Product, stats: ProductStats, wanted: int | Sequence[tuple[Any, Any]], calibration: Calibration | None
) -> Summed:
    """Return a product with some of its pairs of columns: so many, those of the greatest weights first, or these."""
    experts = _experts((family, stats))
    if isinstance(wanted, int) and wanted == 0:
        experts.pop(PAIRS, None)
        return _with((family, stats), experts)
    if PAIRS not in experts:
        raise InputError("no pairs of columns were summed.", remedy="Fit with interactions='auto' or a list of pairs.")
    expert = experts[PAIRS][0]
    names = [(expert.columns[i], expert.columns[j]) for i, j in expert.family.pairs]  # type: ignore[attr-defined]
    if isinstance(wanted, int):
        if wanted < 0:
            raise HyperparameterError(f"interactions={wanted}: give a number ≥ 0, or a list of pairs of columns.")
        weights = np.zeros(len(names))
        if calibration is not None and calibration.uses_experts:
            weigh: Any = calibration.calibrator
            parts = zip(expert_columns(family), weigh.weights)
            each = {key: weight for (part, key), weight in parts if isinstance(part, Interactions)}
            weights = np.array([each[pair] for pair in names])
        kept = [names[at] for at in sorted(np.argsort(-weights, kind="stable")[:wanted].tolist())]
    else:
        summed = {frozenset(pair): pair for pair in names}
        for pair in wanted:
            if frozenset(pair) not in summed:
                remedy = "Fit again with a list that has it: interactions=[…]."
                raise InputError(f"the pair {tuple(pair)} was not summed.", remedy=remedy)
        kept = [summed[frozenset(pair)] for pair in wanted]
    experts[PAIRS] = _only(experts[PAIRS], kept)
    return _with((family, stats), experts)


def _experts(summed: Summed) -> dict[str, Held]:
    """Return the experts and their sums, by their names."""
    family, stats = summed
    return {name: (expert, (stats.experts or {})[name]) for name, expert in family.experts.items()}


def _with(summed: Summed, experts: Mapping[str, Held]) -> Summed:
    """Return a product and its sums with other experts."""
    family, stats = summed
    sums = {name: held for name, (_, held) in experts.items()}
    chosen = replace(family, experts={name: expert for name, (expert, _) in experts.items()})
    return chosen, replace(stats, experts=sums or None)
