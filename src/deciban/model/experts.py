"""Experts of a typed table, beside the families of columns: pairs of columns, smooth functions of all columns, gaps.

Levels and pairs are chosen from the first rows without their labels, so that figures on the same rows need not make
these choices again: frequent categories and quantiles of numbers are levels; all pairs are summed, or, of many columns,
those with the highest mutual information, all classes together. Labels weigh the experts when the model is calibrated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np

from deciban.errors import HyperparameterError, InputError
from deciban.families import limits
from deciban.families.cosine_features import CosineFeatures, Ramp
from deciban.families.interactions import Cut, Interactions
from deciban.families.product import Expert, Product, ProductStats, expert_columns
from deciban.model.calibration import Calibration
from deciban.model.model import InteractionsLike
from deciban.read.arrays import encode_categories
from deciban.read.batches import chosen_rows
from deciban.read.columns import NAMES, NUMBERS
from deciban.read.schema import Schema
from deciban.read.tables import Columns, Table
from deciban.statistics import Array

CUT_ROWS = 20_000  # rows from which levels are chosen
FEWEST_ROWS = 40  # with fewer, no pair is summed unless asked for
LEVELS = 24  # of a column, at most
ROWS_PER_LEVEL = 5  # of a category that has its own level
MOST_PAIRS = 120
ROWS_WITH_GAPS = 5  # in a column, and without, that are needed
GAPS = "gaps"  # the name of the expert of missing values
PAIR_SCORES = 2**23  # rows × classes × pairs in calibration
SMOOTH = "smooth"  # the names of the experts of all columns begin with it
BANDWIDTHS = (0.25, 1.0)
MOST_FEATURES = 200  # of an expert of all columns
FEATURE_SUMS = 2**20  # numbers in its sums: classes × features²
SMOOTH_ROWS = 50_000  # with more, sums of products of features cost too much
FEATURE_WORK = 2e8  # rows × features²
KNOTS = 33
Summed: TypeAlias = tuple[Product, ProductStats]  # a product and its sums
Held: TypeAlias = tuple[Expert, Any]  # an expert and its sums

PAIRS = "pairs"  # the name of the expert of pairs of columns


def check_interactions(asked: InteractionsLike) -> None:
    """Refuse what is neither "auto", nor a number ≥ 0, nor a list of pairs of columns."""
    if isinstance(asked, str) and asked == "auto":
        return
    if isinstance(asked, int) and not isinstance(asked, bool) and asked >= 0:
        return
    if isinstance(asked, str | bytes | int | float) or not all(len(tuple(pair)) == 2 for pair in asked):
        raise HyperparameterError(
            f"interactions={asked!r} is neither 'auto', nor a number of pairs, nor a list of pairs of columns."
        )


def table_experts(
    table: Table, weight: Array | None, schema: Schema, K: int, asked: InteractionsLike = "auto"
) -> dict[str, Expert]:
    """Return the experts of a typed table with K classes, by their names: pairs of columns, and gaps.

    Parameters
    ----------
    table : Table
        The first rows.
    weight : ndarray of shape (n,) or None
        Their weights.
    schema : Schema
        The kinds of the columns.
    K : int
        Number of classes.
    asked : "auto", int or list of pairs
        How many pairs are summed at most, or which.

    Returns
    -------
    dict of {str: Expert}
        The experts for which the table has columns.
    """
    rows = chosen_rows(len(table), CUT_ROWS)
    if K < 2 or (asked == "auto" and len(rows) < FEWEST_ROWS):
        return {}
    given = table.take(rows) if len(rows) < len(table) else table
    weights = np.ones(len(rows)) if weight is None else weight[rows]
    found = {PAIRS: interactions(given, weights, schema, K, asked), GAPS: gaps(given, weights, schema)}
    if asked == "auto" and len(table) <= SMOOTH_ROWS:
        found |= smooth(given, schema, K, len(table))
    return {name: expert for name, expert in found.items() if expert is not None}


def smooth(table: Table, schema: Schema, K: int, n: int) -> dict[str, Expert | None]:
    """Return experts that are smooth functions of all columns, of two bandwidths; none of a single column."""
    names, ramps = [], []
    for at, (name, kind) in enumerate(schema.kinds.items()):
        if kind in (*NUMBERS, *NAMES):
            ramp = ramp_of(table, at, kind in NUMBERS)
            if ramp is not None:
                names.append(name)
                ramps.append(ramp)
    if len(names) < 2:
        return {}
    M = min(MOST_FEATURES, n // 2, int(np.sqrt(FEATURE_SUMS / K)), int(np.sqrt(FEATURE_WORK / n)))
    made = {width: CosineFeatures(ramps=tuple(ramps), features=M, bandwidth=width) for width in BANDWIDTHS}
    return {f"{SMOOTH} {width:g}": Expert(tuple(names), family, alone=True) for width, family in made.items()}


def ramp_of(table: Table, column: int, numbers: bool) -> Ramp | None:
    """Choose how a column becomes numbers of a common scale, without labels; None if its values are all the same."""
    if not numbers:
        found = frequent_categories(table, column, np.ones(len(table)))
        names = tuple(name for name, _ in found)
        return Ramp(names=names, shares=tuple(float(count) / len(table) for _, count in found)) if names else None
    x, limit = _numbers(table, column)
    seen = np.sort(x[~np.isnan(x)])
    if not len(seen) or seen[0] == seen[-1]:
        return None
    from scipy.special import ndtri

    knots = np.unique(np.quantile(seen, np.linspace(0, 1, KNOTS)))
    rank = (np.searchsorted(seen, knots, "left") + np.searchsorted(seen, knots, "right")) / (2 * len(seen))
    scores = ndtri(np.clip(rank, 0.5 / len(seen), 1 - 0.5 / len(seen)))
    return Ramp(tuple(knots.tolist()), tuple(scores.tolist()), limit=limit)


def gaps(table: Table, weight: Array, schema: Schema) -> Expert | None:
    """Return the expert of missing values, of columns with some values missing; None where there are none."""
    from deciban.families.bernoulli import Gaps, missing

    names = []
    for at, (name, kind) in enumerate(schema.kinds.items()):
        if kind in (*NUMBERS, *NAMES):
            lost = weight @ missing(table, at)
            if min(lost, weight.sum() - lost) >= ROWS_WITH_GAPS:
                names.append(name)
    return Expert(tuple(names), Gaps()) if names else None


def interactions(
    table: Table, weight: Array, schema: Schema, K: int, asked: InteractionsLike = "auto"
) -> Expert | None:
    """Return the expert of pairs of columns; None where no pair is possible."""
    if isinstance(asked, int) and asked == 0:
        return None
    wanted = None if isinstance(asked, str | int) else _named(asked, schema)
    names, cuts = [], []
    for at, (name, kind) in enumerate(schema.kinds.items()):
        if kind in (*NUMBERS, *NAMES) and (wanted is None or any(name in pair for pair in wanted)):
            cut = cut_column(table, at, kind in NUMBERS, weight)
            if cut.levels > 1:
                names.append(name)
                cuts.append(cut)
    place = {name: at for at, name in enumerate(names)}
    if wanted is not None:
        known = [(place[a], place[b]) for a, b in wanted if a in place and b in place]
        pairs = [(min(pair), max(pair)) for pair in known]
    else:
        most = asked if isinstance(asked, int) else MOST_PAIRS
        most = min(most, max(1, PAIR_SCORES // (len(table) * K)))
        pairs = list(combinations(range(len(names)), 2))
        if len(pairs) > most:
            pairs = _most_dependent(table, schema, names, cuts, most)
    if not pairs:
        return None
    return Expert(tuple(names), Interactions(tuple(cuts), tuple(dict.fromkeys(pairs))))


def cut_column(table: Table, column: int, numbers: bool, weight: Array) -> Cut:
    """Choose the levels of a column: quantiles of numbers, or frequent categories."""
    most = levels_for(len(table))
    if numbers:
        from deciban.families.binned import find_edges

        x, limit = _numbers(table, column)
        return Cut(tuple(find_edges(x, weight, [most])[0][1:-1]), limit=limit)
    return Cut(names=tuple(name for name, _ in frequent_categories(table, column, weight)))


def _numbers(table: Table, column: int) -> tuple[Array, float | None]:
    """Return the numbers of a column without absurd ones, and their limit."""
    x = np.asarray(table.pick([column])[:, 0], dtype=float)
    limit = limits.limit_of(x)
    return limits.within(x, limit), limit


def frequent_categories(table: Table, column: int, weight: Array) -> list[tuple[Any, float]]:
    """Return the frequent categories of a column, with their weights."""
    found = encode_categories(Columns(table, [column]), [str(table.columns[column])]).named()
    codes, names = found.values[:, 0], (found.names or ((),))[0]
    counts = np.bincount(codes[codes >= 0], weight[codes >= 0], len(names))
    frequent = np.argsort(-counts, kind="stable")[:LEVELS]
    frequent = np.sort(frequent[counts[frequent] >= ROWS_PER_LEVEL])
    return [(names[at], float(counts[at])) for at in frequent]


def levels_for(n: int) -> int:
    """Return the number of levels that numbers are split into, for n rows."""
    return int(np.clip(np.sqrt(n) / 2, 4, LEVELS))


def _named(asked: Sequence[tuple[Any, Any]], schema: Schema) -> list[tuple[str, str]]:
    """Return pairs of columns that the table has."""
    pairs = [(str(a), str(b)) for a, b in asked]
    for pair in pairs:
        for name in pair:
            if name not in schema.kinds:
                raise InputError(f"interactions: the table has no column {name!r}.", columns=(name,))
    return pairs


def _most_dependent(
    table: Table, schema: Schema, names: Sequence[str], cuts: Sequence[Cut], most: int
) -> list[tuple[int, int]]:
    """Return the pairs of columns with the highest mutual information, all classes together."""
    features = list(schema.kinds)
    codes = [cut.codes(table, features.index(name), name) for name, cut in zip(names, cuts)]
    sizes = np.array([cut.levels for cut in cuts])
    starts = np.cumsum(sizes) - sizes
    flags = np.zeros((len(table), int(sizes.sum())), dtype=np.float32)
    for code, start in zip(codes, starts):
        seen = np.flatnonzero(code >= 0)
        flags[seen, start + code[seen]] = 1.0
    information = np.zeros((len(cuts), len(cuts)))
    share = flags.sum(axis=0, dtype=float) / len(table)
    for at, (start, size) in enumerate(zip(starts, sizes)):  # pairs with this column and the later ones
        together = (flags[:, start : start + size].T @ flags[:, start:]).astype(float) / len(table)
        present, expected = together > 0, share[start : start + size, None] * share[start:]
        ratio = np.divide(together, expected, out=together.copy(), where=present)
        terms = together * np.log(ratio, out=np.zeros_like(ratio), where=present)
        information[at, at:] = np.add.reduceat(terms.sum(axis=0), starts[at:] - start)
    # the expected information of independent columns, which is larger for more levels
    information -= np.outer(sizes - 1, sizes - 1) / (2 * len(table))
    first, second = np.triu_indices(len(names), 1)
    best = np.sort(np.argsort(-information[first, second], kind="stable")[:most])
    return [(int(first[p]), int(second[p])) for p in best]


# -- pairs that were summed --------------------------------------------------------------------------------------------
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
    """Return a product with some of its pairs of columns: a number of them, the greatest weights first, or a list."""
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
