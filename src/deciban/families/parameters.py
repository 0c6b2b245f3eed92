"""Hyper-parameters of families by name; those of an inner family are named `inner__structure`, as scikit-learn does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

SEPARATOR = "__"


class HasParameters:
    """A frozen dataclass whose fields are hyper-parameters. What holds it sets them, by replacing it."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the hyper-parameters, as scikit-learn's estimators do.

        Parameters
        ----------
        deep : bool, default=True
            Whether to include those of families inside this one, named ``inner__structure``.

        Returns
        -------
        dict of {str: object}
            Hyper-parameters by name. A family is frozen: the estimator that holds it sets them, by replacing it.

        Examples
        --------
        >>> from deciban import Poisson
        >>> Poisson(shape=2.0).get_params()
        {'shape': 2.0, 'rate': 1.0, 'limit': None}
        """
        frozen = getattr(self, "FROZEN", ())  # estimates, which are no parameters
        named = (f.name for f in fields(self) if f.init and f.compare and f.name not in frozen)  # type: ignore[arg-type]
        own = {name: getattr(self, name) for name in named}
        if deep:
            for name, value in list(own.items()):
                own |= inner_parameters(name, value)
        return own


def inner_parameters(name: str, value: Any) -> dict[str, Any]:
    """Return the parameters of a family, or of the families in a dict of columns, named `name__…`."""
    found: dict[str, Any] = {}
    if isinstance(value, HasParameters):
        found = value.get_params()
    elif isinstance(value, Mapping):
        for column, family in value.items():
            if isinstance(family, HasParameters):
                found[column_text(column)] = family
                found |= inner_parameters(column_text(column), family)
    return {f"{name}{SEPARATOR}{each}": inner for each, inner in found.items()}


def column_text(column: Any) -> str:
    """Return the name of a column, or of several in a tuple, in names of parameters."""
    return ",".join(map(str, column)) if isinstance(column, tuple) else str(column)
