"""Families for the columns of a table: which, and why.

A column of numbers gets the family with the highest leave-one-out density of its class (`column_choice.py`).

Whether numbers without gaps are one Gaussian block, in which columns may vary together, changes decisions; so labels
decide, by the log loss of calibrated leave-one-out scores.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from deciban.errors import DecibanError
from deciban.families.abilities import HasCandidates, ability, needs_all_rows
from deciban.families.gaussian import Gaussian
from deciban.families.product import ASKED, Block, Key, as_key
from deciban.families.protocol import Family, Rule
from deciban.model.calibration import Calibration, Form
from deciban.model.candidates import clearly_worse
from deciban.read.batches import Batch
from deciban.read.labels import encode_labels
from deciban.read.reservoir import chosen_rows
from deciban.read.tables import Columns, Table
from deciban.statistics import Array, Members

if TYPE_CHECKING:
    from deciban.model.column_choice import Choice
    from deciban.read.schema import Schema

JUDGED = 4096  # of the first rows, on which families are compared
WIDEST = 40  # columns of a block
DISTINCT = 10  # values that a column of a block must have: fewer are steps, not measurements
ROWS_PER_COLUMN = 5  # of a block: fewer do not show how its columns vary together
STANDARD_ERRORS = 1.0  # by which a block must be better than its columns
FORMS: list[Form] = ["none", "scale"]  # calibrations under which blocks are compared


# -- all columns of a table ------------------------------------------------------------------------------------------
def choose_blocks(
    first: Batch, schema: Schema, asked: Mapping[Any, Family[Any]], rule: Rule, together: bool = True
) -> list[Block]:
    """Choose the blocks of a typed table from its first rows; `together`: whether columns may vary together."""
    from deciban.families.categorical import Categorical
    from deciban.read.columns import NUMBERS
    from deciban.text import Text

    blocks = [Block(as_key(key), family, ASKED) for key, family in asked.items()]
    taken = {name for block in blocks for name in block.columns}
    names, codes = encode_labels(first.labels, len(first.table))
    rows = chosen_rows(len(codes), JUDGED)
    sample = Sample(first.table.take(rows), Members.hard(codes, len(names), first.weight).take(rows))
    kinds = {name: kind for name, kind in schema.kinds.items() if name not in taken}
    choices = sample.choices({name: kind for name, kind in kinds.items() if kind in NUMBERS})
    for name, kind in kinds.items():
        if kind in NUMBERS:
            choice = choices[name]
            blocks.append(Block((name,), choice.family, choice.reason, detail=choice.comparison))
        elif kind == "text":
            blocks.append(Block((name,), Text(), "texts: words"))
        else:
            blocks.append(Block((name,), Categorical(), "categories" if kind == "category" else "yes or no"))
    if not together:
        return blocks
    place = {name: at for at, name in enumerate(schema.features)}
    whole = [name for name in choices if not np.isnan(first.table.pick([place[name]])).any()]
    block = best_block(sample, blocks, choices, whole, "mean" if rule == "ml" else rule)
    if block is None or block.expert:
        return blocks if block is None else [*blocks, block]
    inside = [each for each in blocks if set(each.columns) <= set(block.columns)]
    outside = [each for each in blocks if not set(each.columns) <= set(block.columns)]
    return [*outside, block, *(replace(each, expert=True) for each in inside if each.reason != ASKED)]


class Sample:
    """Rows on which families are compared."""

    def __init__(self, table: Table, members: Members) -> None:
        from deciban.model.column_choice import LabelLoss

        self.table, self.members, self.label_loss = table, members, LabelLoss(members)

    def numbers(self, names: Iterable[str]) -> Array:
        """Return the numbers of some columns, shape (n, D)."""
        place, names = {name: at for at, name in enumerate(self.table.columns)}, list(names)
        if not names:
            return np.empty((len(self.table), 0))
        return np.asarray(self.table.pick([place[name] for name in names]), dtype=float)

    def choices(self, kinds: Mapping[str, str]) -> dict[str, Choice]:
        """Choose the families of columns of numbers, by their kinds."""
        from deciban.model.column_choice import choose_families

        return dict(zip(kinds, choose_families(self.numbers(kinds), self.members, list(kinds.values()))))

    def left_out_numbers(self, choices: Mapping[str, Choice], rule: Rule) -> dict[Key, Array]:
        """Return leave-one-out scores of single columns without absurd numbers, shape (n, K) each."""
        from deciban.model.column_choice import left_out_columns

        families = {name: choice.family for name, choice in choices.items() if not choice.absurd}
        found = left_out_columns(self.numbers(families), self.members, list(families.values()), rule)
        return {(name,): scores for name, scores in zip(families, found)}

    def left_out(self, columns: Key, family: Family[Any], rule: Rule) -> Array:
        """Return leave-one-out scores of some columns, shape (n, K)."""
        at = [self.table.columns.index(name) for name in columns]
        X = family.encode(Columns(self.table, at), columns)
        stats: Any = family.collect(X, self.members)
        return family.choose(stats, (X, self.members), rule).leave_one_out(stats, X, self.members, rule)

    def losses(self, scores: Sequence[Array]) -> Array:
        """Return the log loss of each row's label, by the scores as they are, or with one scale if that is better.

        Leave-one-out scores of the full sums suffice for a calibrator of one scale.
        """
        classes, codes, lengths = tuple(range(self.members.K)), self.members.codes, [None] * len(scores)
        made = Calibration.fit_each(FORMS, "blocks", scores, codes, lengths, classes, len(codes))
        each = [self.label_loss.of_rows(one.apply(scores, lengths, classes)) for one in made.values()]
        return min(each, key=lambda losses: self.label_loss.mean(losses))


def best_block(
    sample: Sample, blocks: Sequence[Block], choices: Mapping[str, Choice], whole: Sequence[str], rule: Rule
) -> Block | None:
    """Return the block of numbers that predicts labels best, as an expert if its columns separately are better.

    `whole` names the columns without gaps. None if no block is possible.
    """
    from deciban.model.column_choice import GAIN

    offered = _offered_blocks(sample, {name: choices[name] for name in whole})
    if not offered or sample.members.K < 2:
        return None
    alone = sample.left_out_numbers(choices, rule)
    alone = {
        block.columns: alone[block.columns]
        if block.columns in alone
        else sample.left_out(block.columns, block.family, rule)
        for block in blocks
        if ability(block.family, HasCandidates) is None and not needs_all_rows(block.family)
    }
    apart, least = sample.losses(list(alone.values())), np.inf
    best: tuple[Key, Family[Any], Array] | None = None
    for columns, family in offered:
        others = [scores for key, scores in alone.items() if not set(key) <= set(columns)]
        try:
            losses = sample.losses([*others, sample.left_out(columns, family, rule)])
        except DecibanError:  # such as a singular covariance
            continue
        loss = sample.label_loss.mean(losses)
        if loss < least - GAIN / len(sample.members):
            best, least = (columns, family, losses), loss
    if best is None:
        return None
    columns, family, losses = best
    detail = f"log loss {least:.4f}, and {sample.label_loss.mean(apart):.4f} for each column separately"
    # the structure of the block was chosen on the same rows, so that a small difference may be due to the choice
    better = clearly_worse(apart, losses, STANDARD_ERRORS)
    return Block(columns, family, "vary together", together=better, detail=detail, expert=not better)


def _offered_blocks(sample: Sample, choices: Mapping[str, Choice]) -> list[tuple[Key, Family[Any]]]:
    """Return candidates: all measurements as they are, or transformed; and those that are smooth by themselves."""
    from deciban.families.binned import Binned
    from deciban.families.poisson import Poisson
    from deciban.families.transformed import Transformed

    columns_of = zip(choices, sample.numbers(choices).T)
    many = tuple(name for name, x in columns_of if len(np.unique(x)) > DISTINCT)[:WIDEST]
    smooth = tuple(name for name in many if not isinstance(choices[name].family, Binned | Poisson))
    found: list[tuple[Key, Family[Any]]] = []
    for columns in dict.fromkeys((smooth, many)):
        if len(columns) > 1 and len(sample.members) >= ROWS_PER_COLUMN * len(columns):
            limit = np.array([choices[name].limit for name in columns])
            by = tuple(_transform(choices[name].family) for name in columns)
            for each in dict.fromkeys((("none",) * len(by), by)):
                one = Transformed(each, inner=Gaussian("auto"), outside="gap", reach=limit)  # type: ignore[arg-type]
                found.append((columns, Gaussian("auto", limit=limit) if set(each) == {"none"} else one))
    return found


def _transform(family: Family[Any]) -> str:
    """Return how a column enters a block: as it is by itself; by a power where it is binned."""
    from deciban.families.transformed import Transformed

    if isinstance(family, Transformed):
        return str(family.by)
    return "none" if isinstance(family, Gaussian) else "yeo-johnson"
