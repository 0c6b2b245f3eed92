"""Families for the typed columns of a table: each column by itself, and numbers together where labels say so.

A column of numbers has the family that explains it best (`by_evidence`). Whether numbers without gaps are one Gaussian
block, in which they may vary together, changes decisions; so the labels decide, by the log loss of calibrated
leave-one-out scores.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from deciban.errors import DecibanError
from deciban.estimators.by_evidence import GAIN, Choice, choose_family, label_loss
from deciban.estimators.calibration import Calibration
from deciban.estimators.reservoir import chosen_rows
from deciban.estimators.streaming import Batch
from deciban.families.binned import Binned
from deciban.families.categorical import Categorical
from deciban.families.gaussian import Gaussian
from deciban.families.poisson import Poisson
from deciban.families.product import Product
from deciban.families.protocol import Family, Rule
from deciban.families.text import Text
from deciban.families.transformed import Transformed
from deciban.features.labels import encode_labels
from deciban.read.column import NUMBERS
from deciban.read.schema import Schema
from deciban.read.tables import Table
from deciban.statistics import Array, Members

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
