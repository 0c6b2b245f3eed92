"""Families for a table when none are named: what and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from deciban.errors import InputError
from deciban.families.bernoulli import Bernoulli
from deciban.families.categorical import Categorical
from deciban.families.gaussian import Gaussian
from deciban.families.multinomial import Multinomial
from deciban.families.product import Product
from deciban.families.protocol import Family
from deciban.read.tables import HEAD, Table


def resolve(families: Any, table: Table) -> tuple[Family, dict[str, str]]:
    """The family that `families` names for this table, and for each block the reason."""
    if isinstance(families, Family):
        return families, {_all(table): "named by you"}
    if isinstance(families, Mapping):
        product = Product(families)
        return product, dict.fromkeys(product.names, "named by you")
    if isinstance(families, str) and families == "auto":
        return _frame(table) if table.framed else _array(table)
    raise InputError(
        f"families={families!r} is neither a family such as Gaussian(), nor a dict of column → family, nor 'auto'."
    )


def _array(table: Table) -> tuple[Family, dict[str, str]]:
    if table.sparse:
        return Multinomial(), {_all(table): "sparse input: counts of events"}
    if _has_gaps(table.data):
        return Gaussian("diagonal"), {_all(table): "numbers with gaps: one Gaussian a column"}
    return Gaussian("auto"), {_all(table): "numbers: one Gaussian block, its structure by leave-one-out log loss"}


def _frame(table: Table) -> tuple[Family, dict[str, str]]:
    kinds = [table.kind(j) for j in range(table.shape[1])]
    head = table.take(slice(0, HEAD))
    gaps = [kind == "number" and _has_gaps(head.pick([j])) for j, kind in enumerate(kinds)]
    wishes = [
        ("number", False, Gaussian("auto"), "numbers: one Gaussian block, its structure by leave-one-out log loss"),
        ("number", True, Gaussian("diagonal"), "numbers with gaps: one Gaussian a column"),
        ("yes/no", False, Bernoulli(), "true or false"),
        ("category", False, Categorical(), "names"),
    ]
    families: dict[Any, Family] = {}
    reasons = {}
    for kind, gappy, family, why in wishes:
        columns = tuple(table.columns[j] for j in range(len(kinds)) if kinds[j] == kind and gaps[j] == gappy)
        if columns:
            families[columns] = family
            reasons[",".join(map(str, columns))] = why
    product = Product(families)
    if len(families) == 1 and kinds[0] == "number":
        return next(iter(families.values())), {_all(table): next(iter(reasons.values()))}
    return product, reasons


def _has_gaps(X: Any) -> bool:
    return X.dtype.kind == "O" or (X.dtype.kind == "f" and bool(np.isnan(X).any()))


def _all(table: Table) -> str:
    return f"all {table.shape[1]} columns"
