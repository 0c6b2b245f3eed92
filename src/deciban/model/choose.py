"""Which family a column of numbers has, by leave-one-out density: every row is judged by the others of its class.

All candidates are compared in one measure. Numbers that were rounded are measured by the mass of the cell they stand
for (else a density that has found a repeated value could be as high as it likes); others by density. Powers and
logarithms count with their slope, bins by mass over width.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from deciban.errors import DecibanError, InputError
from deciban.evidence.scores import convert, log_posterior
from deciban.families.bernoulli import Bernoulli
from deciban.families.binned import Binned
from deciban.families.categorical import Categorical
from deciban.families.gaussian import Gaussian
from deciban.families.multinomial import Multinomial
from deciban.families.names import named
from deciban.families.poisson import Poisson
from deciban.families.product import Product
from deciban.families.protocol import Family, Rule
from deciban.families.transformed import Transformed
from deciban.model.calibration import Calibration
from deciban.read.batches import Batch
from deciban.read.columns import KINDS, NUMBERS
from deciban.read.labels import encode_labels
from deciban.read.numbers import grid_of
from deciban.read.reservoir import chosen_rows
from deciban.read.schema import Schema
from deciban.read.tables import Table
from deciban.statistics import Array, Members
from deciban.text import Text

BINS = (5, 10, 20, 40)
GAIN = 2.0  # nats over all rows that the less simple must be better by
ROWS_A_BIN = 4  # and class: fewer say nothing about its height
POINTS = (np.arange(9) - 4) / 9  # of a cell, over which a density is averaged


@dataclass(frozen=True)
class Choice:
    """The family that explains a column best, and by how much."""

    family: Family
    name: str
    decibans: float  # over the runner-up, all rows together
    runner_up: str
    rows: int  # that were judged

    def __str__(self) -> str:
        if self.decibans < 0:
            return f"{self.name}, as good as {self.runner_up} and simpler ({self.rows:,} rows)"
        return f"{self.name}, by {self.decibans:,.0f} dban over {self.runner_up} ({self.rows:,} rows)"


def choose_family(x: Array, members: Members, kind: str) -> Choice:
    """The candidate with the highest leave-one-out density; the simpler of near equals.

    >>> rng = np.random.default_rng(0)
    >>> members = Members.hard(rng.integers(0, 2, 500), 2)
    >>> choose_family(np.exp(rng.normal(3.0, 1.0, 500)), members, "number").name
    'log-Gaussian'
    """
    X = np.asarray(x, dtype=float)[:, None]
    seen = x[~np.isnan(x)]
    grid = grid_of(seen) if len(seen) else None
    scores = {}
    families = candidates(X, members, kind)
    for name, family in families.items():
        try:
            scores[name] = density_score(family, X, members, grid)
        except DecibanError:  # not a candidate for these rows
            continue
    best = next(iter(scores))
    for name in scores:
        if scores[name] > scores[best] + GAIN:
            best = name
    second = max((name for name in scores if name != best), key=lambda name: scores[name], default=best)
    gain = float(convert(scores[best] - scores[second], "decibans"))
    return Choice(families[best], best, gain, second, len(seen))


def candidates(X: Array, members: Members, kind: str) -> dict[str, Family]:
    """What may explain a column; the simpler ones first."""
    seen = X[~np.isnan(X)]
    found: dict[str, Family] = {"Gaussian": Gaussian("diagonal")}
    if kind == "number" and len(seen) and seen.min() > 0:
        found["log-Gaussian"] = Transformed("log", outside="gap")  # later rows may hold a zero: it says nothing
    found["Yeo–Johnson–Gaussian"] = Transformed("yeo-johnson")
    if kind == "count":
        found["Poisson"] = Poisson()
    bins = best_bins(X, members)
    found[f"{bins} bins"] = Binned(bins)
    return found


def best_bins(X: Array, members: Members) -> int:
    """How many bins tell the labels best, each row left out in turn; the fewer of near equals."""
    best, least = BINS[0], np.inf
    for bins in BINS:
        if bins > BINS[0] and (bins >= 2 * len(np.unique(X)) or bins * ROWS_A_BIN * members.K > len(X)):
            break
        family = Binned(bins)
        stats: Any = family.collect(X, members)
        loss = label_loss(family.leave_one_out(stats, X, members, "mean"), members)
        if loss < least - GAIN / len(X):
            best, least = bins, loss
    return best


def label_loss(scores: Array, members: Members) -> float:
    """Mean log loss of the labels, by left-out scores and the proportions of the classes."""
    weight = members.row_weights()
    with np.errstate(divide="ignore"):
        posterior = log_posterior(scores, np.log(members.weights()) - np.log(weight.sum()))
    return float(np.average(-posterior[np.arange(len(scores)), members.codes], weights=weight))


def density_score(family: Family, X: Array, members: Members, grid: float | None) -> float:
    """Σ w · log density, or mass of the cell, of each value in its own class without itself."""
    stats: Any = family.collect(X, members)
    family = family.choose(stats, (X, members))
    own = np.arange(len(X)), members.codes
    base = np.reshape(family.estimate(stats, "mean").log_base(X), -1)
    each = family.leave_one_out(stats, X, members, "mean")[own] + base
    if grid is not None and not isinstance(family, Poisson):
        each = np.minimum(each + np.log(grid) + _within_cell(family, stats, X, members, grid), 0.0)
    seen = ~np.isnan(X[:, 0])
    return float(members.row_weights()[seen] @ each[seen])


def _within_cell(family: Family, stats: Any, X: Array, members: Members, grid: float) -> Array:
    """The log of the mean density over a cell, relative to its middle."""
    if isinstance(family, Binned):
        return np.zeros(len(X))  # a cell never crosses an edge
    density = family.estimate(stats, "mean")
    own = np.arange(len(X)), members.codes

    def at(step: float) -> Array:
        moved = X + step * grid
        with np.errstate(invalid="ignore", divide="ignore"):
            return density.log_density(moved)[own] + np.reshape(density.log_base(moved), -1)

    middle = at(0.0)
    with np.errstate(invalid="ignore"):
        relative = np.stack([at(step) - middle for step in POINTS])
    return np.log(np.mean(np.exp(np.minimum(np.nan_to_num(relative, nan=-np.inf), 700.0)), axis=0))


# -- typed families ----------
# Families for the typed columns of a table: each column by itself, and numbers together where labels say so.
#
# A column of numbers has the family that explains it best (`by_evidence`). Whether numbers without gaps are one
# Gaussian
# block, in which they may vary together, changes decisions; so the labels decide, by the log loss of calibrated
# leave-one-out scores.

JUDGED = 4096  # of the first rows, on which families are compared
TOGETHER = "varying together"
WIDEST = 40  # columns of a block
DISTINCT = 10  # values that a column of a block must have: fewer are steps, not measurements
ROWS_A_COLUMN = 5  # of a block: fewer do not tell how its columns vary together


def typed_families(
    first: Batch, schema: Schema, by_hand: Mapping[Any, Family], rule: Rule, blocks: bool = True
) -> tuple[dict[Any, Family], dict[str, str]]:
    """Column, or tuple of columns, → family; and for each the reason. `blocks`: whether there may be any."""
    families: dict[Any, Family] = dict(by_hand)
    reasons = {",".join(_names(key)): "named by you" for key in by_hand}
    taken = {name for key in by_hand for name in _names(key)}
    names, codes = encode_labels(first.labels, len(first.table))
    rows = chosen_rows(len(codes), JUDGED)
    sample = Sample(first.table.take(rows), Members.hard(codes, len(names), first.weight).take(rows))
    choices: dict[str, Choice] = {}
    for name, kind in schema.kinds.items():
        if name in taken:
            continue
        if kind in NUMBERS:
            choices[name] = choose_family(sample.column(name), sample.members, kind)
            families[name], reasons[name] = choices[name].family, str(choices[name])
        elif kind == "text":
            families[name], reasons[name] = Text(), "texts: words"
        else:
            families[name], reasons[name] = Categorical(), "names" if kind == "category" else "yes or no"
    whole = [name for name in choices if not np.isnan(first.table.pick([schema.features.index(name)])).any()]
    if not blocks:
        return families, reasons
    block = best_block(sample, families, {name: choices[name] for name in whole}, "mean" if rule == "ml" else rule)
    if block is None:
        return families, reasons
    columns, family, why = block
    kept = {name: families[name] for name in families if name not in columns}
    said = {name: reasons[name] for name in reasons if name not in columns}
    return kept | {columns: family}, said | {",".join(columns): why}


def needs_every_row(family: Any) -> bool:
    """Whether choices take all rows, not the first alone: hidden variables, which have no exact leave-one-out."""
    parts = family.families.values() if isinstance(family, Product) else [family]
    return any(type(part).refined is not Family.refined for part in parts)


class Sample:
    """Rows on which families are compared, and what each column says of them when a row is left out."""

    def __init__(self, table: Table, members: Members) -> None:
        self.table, self.members = table, members

    def column(self, name: str) -> Array:
        """The numbers of a column."""
        return self.table.pick([self.table.columns.index(name)])[:, 0]

    def left_out(self, columns: tuple[str, ...], family: Family, rule: Rule) -> Array:
        """(n, K) leave-one-out scores of some columns."""
        at = [self.table.columns.index(name) for name in columns]
        X = family.encode(self.table.pick(at), columns)
        stats: Any = family.collect(X, self.members)
        return family.choose(stats, (X, self.members), rule).leave_one_out(stats, X, self.members, rule)

    def loss(self, scores: list[Array]) -> float:
        """Log loss of the labels, each block calibrated with a scale of its own."""
        classes = tuple(range(self.members.K))
        lengths = [None] * len(scores)
        made = Calibration.fit("blocks", scores, self.members.codes, lengths, classes, len(self.members))
        return label_loss(made.apply(scores, lengths, classes), self.members)


def best_block(
    sample: Sample, families: Mapping[Any, Family], choices: Mapping[str, Choice], rule: Rule
) -> tuple[tuple[str, ...], Family, str] | None:
    """The block of numbers that tells labels better than the same columns by themselves; None where there is none."""
    offered = _blocks(sample, choices)
    if not offered or sample.members.K < 2:
        return None
    alone = {
        key: sample.left_out(tuple(_names(key)), family, rule)
        for key, family in families.items()
        if not isinstance(family, Text) and not needs_every_row(family)
    }
    apart = least = sample.loss(list(alone.values()))
    best = None
    for columns, family in offered:
        others = [scores for key, scores in alone.items() if key not in columns]
        try:
            loss = sample.loss([*others, sample.left_out(columns, family, rule)])
        except DecibanError:  # such as a singular covariance
            continue
        if loss < least - GAIN / len(sample.members):
            best, least = (columns, family), loss
    if best is None:
        return None
    return *best, f"{TOGETHER}: log loss {least:.4f}, and {apart:.4f} for each by itself"


def _blocks(sample: Sample, choices: Mapping[str, Choice]) -> list[tuple[tuple[str, ...], Family]]:
    """Candidates: all measurements as they are, or transformed; and those that are Gaussian by themselves."""
    many = tuple(name for name in choices if len(np.unique(sample.column(name))) > DISTINCT)[:WIDEST]
    smooth = tuple(name for name in many if not isinstance(choices[name].family, Binned | Poisson))
    found: list[tuple[tuple[str, ...], Family]] = []
    for columns in dict.fromkeys((smooth, many)):
        if len(columns) > 1 and len(sample.members) >= ROWS_A_COLUMN * len(columns):
            found.append((columns, Gaussian("auto")))
            by = tuple(_transform(choices[name].family) for name in columns)
            if set(by) != {"none"}:
                found.append((columns, Transformed(by, inner=Gaussian("auto"), outside="gap")))
    return found


def _transform(family: Family) -> str:
    """How a column goes into a block: as it goes by itself, and by a power where it is in bins."""
    if isinstance(family, Transformed):
        return str(family.by)
    return "none" if isinstance(family, Gaussian) else "yeo-johnson"


def _names(key: Any) -> tuple[str, ...]:
    return key if isinstance(key, tuple) else (key,)


# -- auto ----------
# Families for a table when none are named: what and why.

WANTS = {"Categorical": "category", "Text": "text"}  # what a column must be for a family; numbers otherwise


def reader(families: Any, kinds: Any, place: bool) -> Callable[[Table, str | None], Schema] | None:
    """How the columns of a frame or file are read; None where families were named for a table in memory."""
    automatic = isinstance(families, str) and families == "auto"
    if not automatic and not place:
        return None
    if automatic:
        return lambda table, label: Schema.infer(table, label, _kinds(kinds or {}))
    families = families.families if isinstance(families, Product) else families
    if isinstance(families, Mapping):
        return lambda table, label: Schema.infer(table, label, _kinds(families))
    wanted = WANTS.get(type(families).__name__, "number")
    return lambda table, label: Schema.infer(
        table, label, {str(name): wanted for name in table.columns if str(name) != label}
    )


def resolve(
    families: Any, first: Batch, schema: Schema | None, kinds: Any, rule: Rule, blocks: bool = True
) -> tuple[Family, dict[str, str]]:
    """The family that `families` names for these first rows, and for each block the reason."""
    table = first.table
    if isinstance(families, Family):
        return families, {_all(table): "named by you"}
    if isinstance(families, Mapping):
        product = Product({key: _family(value) for key, value in families.items()})
        return product, dict.fromkeys(product.names, "named by you")
    if isinstance(families, str) and families == "auto":
        if schema is None:
            return _array(table)
        by_hand = {key: _family(value) for key, value in (kinds or {}).items() if not _is_kind(value)}
        found, reasons = typed_families(first, schema, by_hand, rule, blocks)
        return Product(found), reasons
    raise InputError(
        f"families={families!r} is neither a family such as Gaussian(), nor a dict of column → family, nor 'auto'."
    )


def gap_in_block(table: Table, reasons: Mapping[str, str]) -> bool:
    """Whether a value is missing that a block chosen here needs."""
    needed = {name for key, why in reasons.items() if why.startswith(TOGETHER) for name in key.split(",")}
    return any(np.isnan(table.pick([j])).any() for j, name in enumerate(table.columns) if name in needed)


def by_type(families: Any, table: Table) -> Family:
    """The same for rows without labels: a frame's columns are what their types say."""
    if not (table.framed and isinstance(families, str) and families == "auto"):
        return resolve(families, Batch(table, None), None, None, "mean")[0]
    kinds = [table.kind(j) for j in range(table.shape[1])]
    gaps = [kind == "number" and _has_gaps(table.pick([j])) for j, kind in enumerate(kinds)]
    wishes: list[tuple[str, bool, Family]] = [
        ("number", False, Gaussian("auto")),
        ("number", True, Gaussian("diagonal")),
        ("yes/no", False, Bernoulli()),
        ("category", False, Categorical()),
    ]
    found: dict[Any, Any] = {}
    for kind, gappy, family in wishes:
        columns = tuple(table.columns[j] for j in range(len(kinds)) if kinds[j] == kind and gaps[j] == gappy)
        if columns:
            found[columns] = family
    return next(iter(found.values())) if len(found) == 1 and kinds[0] == "number" else Product(found)


def _array(table: Table) -> tuple[Family, dict[str, str]]:
    if table.texts:
        return Text(), {_all(table): "texts: words, their transform and pseudo-count by leave-one-out log loss"}
    if table.sparse:
        return Multinomial(), {_all(table): "sparse input: counts of events"}
    if _has_gaps(table.pick()):
        return Gaussian("diagonal"), {_all(table): "numbers with gaps: one Gaussian a column"}
    return Gaussian("auto"), {_all(table): "numbers: one Gaussian block, its structure by leave-one-out log loss"}


def _family(value: Any) -> Any:
    return named(value) if isinstance(value, str) else value


def _is_kind(value: Any) -> bool:
    return isinstance(value, str) and value in KINDS


def _kinds(wishes: Mapping[Any, Any]) -> dict[str, str]:
    """What columns must be for what somebody wishes them to be."""
    found: dict[Any, Any] = {}
    for key, value in wishes.items():
        kind = value if _is_kind(value) else WANTS.get(type(_family(value)).__name__, "number")
        found |= dict.fromkeys([str(name) for name in (key if isinstance(key, tuple) else (key,))], kind)
    return found


def _has_gaps(X: Any) -> bool:
    return X.dtype.kind == "O" or (X.dtype.kind == "f" and bool(np.isnan(X).any()))


def _all(table: Table) -> str:
    return "all texts" if table.texts else f"all {table.shape[1]} columns"
