"""Families for a table when none are named: what and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from deciban.errors import InputError
from deciban.estimators.streaming import Batch
from deciban.estimators.typed_families import TOGETHER, typed_families
from deciban.families.bernoulli import Bernoulli
from deciban.families.categorical import Categorical
from deciban.families.gaussian import Gaussian
from deciban.families.multinomial import Multinomial
from deciban.families.named import named
from deciban.families.product import Product
from deciban.families.protocol import Family, Rule
from deciban.families.text import Text
from deciban.read.column import KINDS
from deciban.read.schema import Schema
from deciban.read.tables import Table

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
        return lambda table, label: Schema.infer(table, label, _kinds(families), only=True)
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
