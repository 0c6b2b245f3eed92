"""Hyper-parameters of families by name, as scikit-learn names nested parameters: `inner__structure`, `age__structure`.

A family is frozen, so a parameter is set by replacing the family, and the families or the dict around it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from deciban.errors import HyperparameterError, shortlist
from deciban.families.protocol import Family, replaced

SEPARATOR = "__"


def parameters(family: Family[Any], deep: bool = True) -> dict[str, Any]:
    """Return the hyper-parameters of a family; with `deep`, also those of the families that it holds.

    >>> from deciban import Poisson
    >>> parameters(Poisson(shape=2.0))
    {'shape': 2.0, 'rate': 1.0, 'limit': None}
    """
    frozen = getattr(family, "FROZEN", ())  # estimates, which are no parameters
    named = (f.name for f in fields(family) if f.init and f.compare and f.name not in frozen)
    own = {name: getattr(family, name) for name in named}
    if deep:
        for name, value in list(own.items()):
            own |= inner_parameters(name, value)
    return own


def inner_parameters(name: str, value: Any) -> dict[str, Any]:
    """Return the parameters of a family, or of the families in a dict of columns, named `name__…`."""
    found: dict[str, Any] = {}
    if isinstance(value, Family):
        found = value.get_params()
    elif isinstance(value, Mapping):
        for column, family in value.items():
            if isinstance(family, Family):
                found[column_text(column)] = family
                found |= inner_parameters(column_text(column), family)
    return {f"{name}{SEPARATOR}{each}": inner for each, inner in found.items()}


def with_parameters(value: Any, changes: Mapping[str, Any]) -> Any:
    """Return a family, or a dict of families by column, with other hyper-parameters.

    >>> from deciban import Gaussian, Transformed
    >>> with_parameters({"age": Transformed("log"), "size": Gaussian()}, {"age__inner__structure": "tied diagonal"})
    {'age': Transformed('log', inner=Gaussian('tied diagonal')), 'size': Gaussian('full')}
    """
    if isinstance(value, Mapping):
        return _with_columns(value, changes)
    if not isinstance(value, Family):
        raise HyperparameterError(f"{value!r} is not a family, so it has no parameter {next(iter(changes))!r}.")
    whole = {path: new for path, new in changes.items() if SEPARATOR not in path}
    family = replaced(value, **whole) if whole else value
    return replaced(
        family, **{name: with_parameters(getattr(family, name, None), part) for name, part in _parts(changes)}
    )


def column_text(column: Any) -> str:
    """Return the name of a column, or of several in a tuple, in names of parameters."""
    return ",".join(map(str, column)) if isinstance(column, tuple) else str(column)


def _parts(changes: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return the changes within each parameter, by its name."""
    found: dict[str, dict[str, Any]] = {}
    for path, new in changes.items():
        name, separator, rest = path.partition(SEPARATOR)
        if separator:
            found.setdefault(name, {})[rest] = new
    return list(found.items())


def _with_columns(families: Mapping[Any, Any], changes: Mapping[str, Any]) -> dict[Any, Any]:
    names = {column_text(column): column for column in families}
    changed, inner = dict(families), dict[Any, dict[str, Any]]()
    for path, new in changes.items():
        # a name of a column may contain the separator, so the longest one that fits is meant
        fits = [name for name in names if path == name or path.startswith(name + SEPARATOR)]
        if not fits:
            raise HyperparameterError(f"{path!r}: there is no such column; there are {shortlist(list(names), 10)}.")
        name = max(fits, key=len)
        if path == name:
            changed[names[name]] = new
        else:
            inner.setdefault(names[name], {})[path[len(name + SEPARATOR) :]] = new
    for column, part in inner.items():
        changed[column] = with_parameters(changed[column], part)
    return changed
