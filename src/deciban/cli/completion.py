"""Completion of values in the shell: columns of a file, classes and features of a model, names of formats.

`deciban --install-completion` makes the shell ask. A file that cannot be read completes nothing: errors are for the
command itself.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

import typer

MOST = 200  # names that are offered
Complete = Callable[[typer.Context, str], list[str]]


def one_of(*names: str) -> Complete:
    """Complete one of these names."""

    def complete(context: typer.Context, incomplete: str) -> list[str]:
        return _matching(names, incomplete)

    return complete


def columns(context: typer.Context, incomplete: str) -> list[str]:
    """Complete a column of the rows."""
    return _matching(_columns(context), incomplete)


def column_families(context: typer.Context, incomplete: str) -> list[str]:
    """Complete COLUMN=KIND."""
    from deciban.families.names import NAMED
    from deciban.read.columns import DECLARABLE

    name, sign, kind = incomplete.rpartition("=")
    if not sign:
        return [f"{column}=" for column in _matching(_columns(context), incomplete)]
    return [f"{name}={one}" for one in _matching([*DECLARABLE, *NAMED], kind)]


def classes(context: typer.Context, incomplete: str) -> list[str]:
    """Complete a class of the model."""
    return _matching(_classes(context), incomplete)


def class_values(context: typer.Context, incomplete: str) -> list[str]:
    """Complete CLASS=."""
    return [f"{name}=" for name in _matching(_classes(context), incomplete)]


def class_pairs(context: typer.Context, incomplete: str) -> list[str]:
    """Complete TRUE:DECIDED=."""
    known = _classes(context)
    return _matching([f"{true}:{decided}=" for true in known for decided in known if true != decided], incomplete)


def features(context: typer.Context, incomplete: str) -> list[str]:
    """Complete a feature of the model."""
    return _matching(_of_model(context, lambda clf: clf.model_.reader.labels), incomplete)


def _matching(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)][:MOST]


def _columns(context: typer.Context) -> list[str]:
    path = next((path for path in reversed(_paths(context, "rows")) if not path.endswith(".deciban")), None)
    if path is None:
        return []
    from deciban.read.files import open_source

    try:
        return list(open_source(path).columns)
    except Exception:  # the command itself reports what is wrong with the file
        return []


def _paths(context: typer.Context, name: str) -> list[str]:
    """The files that the unfinished command names; while an option lacks its value, arguments have no names yet."""
    given = [context.params.get(name), *context.args]
    return [path for path in given if isinstance(path, str) and os.path.exists(path)]


def _classes(context: typer.Context) -> list[str]:
    return _of_model(context, lambda clf: clf.stats_.classes)


def _of_model(context: typer.Context, names: Callable[..., Iterable[object]]) -> list[str]:
    path = next(iter(_paths(context, "model")), None)
    if path is None:
        return []
    from deciban.store import load

    try:
        return [str(name) for name in names(load(path))]
    except Exception:
        return []
