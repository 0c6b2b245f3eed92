"""Parameters of estimators that hold families, by scikit-learn's nested names: `families__age__structure`.

A family is frozen, so a parameter is set by replacing the family, and the families or the dict around it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from sklearn.base import BaseEstimator

from deciban.errors import HyperparameterError, shortlist
from deciban.families.parameters import SEPARATOR, column_text, inner_parameters
from deciban.families.protocol import Family, replaced


class FamilyParameters(BaseEstimator):
    """Base of estimators whose parameters are families, or dicts of families by column.

    `families__pseudo_count` and `families__age__structure` name a hyper-parameter of a family, as in a grid search.
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters.

        Parameters
        ----------
        deep : bool, default=True
            Whether to include hyper-parameters of families, named ``families__pseudo_count``, or
            ``families__age__structure`` in a dict of columns.

        Returns
        -------
        dict of {str: object}
            Parameters by name.
        """
        found: dict[str, Any] = super().get_params(deep=deep)
        for name, value in list(found.items()) if deep else ():
            if isinstance(value, Mapping) and SEPARATOR not in name:  # scikit-learn asks a family itself
                found |= inner_parameters(name, value)
        return found

    def set_params(self, **params: Any) -> Self:
        """Set parameters.

        Parameters
        ----------
        **params : dict
            Parameters by name. ``families__pseudo_count=0.5`` replaces the family, which is frozen, by another one.

        Returns
        -------
        estimator
            The estimator itself.
        """
        nested: dict[str, dict[str, Any]] = {}
        own = super().get_params(deep=False)
        for path in list(params):
            name, separator, rest = path.partition(SEPARATOR)
            value = params.get(name, own.get(name))
            if separator and name in own and not hasattr(value, "set_params"):
                if not isinstance(value, Family | Mapping):
                    raise HyperparameterError(
                        f"{path!r} cannot be set, because {name}={value!r} is not a family. Give {name} a family first."
                    )
                nested.setdefault(name, {})[rest] = params.pop(path)
        super().set_params(**params)
        for name, changes in nested.items():
            setattr(self, name, with_parameters(getattr(self, name), changes))
        return self


# -- parameters of families --------------------------------------------------------------------------------------------
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
