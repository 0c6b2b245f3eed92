"""Parameters of estimators that hold families: nested names, and tags of the input that the families take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from sklearn.base import BaseEstimator

from deciban.errors import HyperparameterError
from deciban.families.parameters import SEPARATOR, inner_parameters, with_parameters
from deciban.families.protocol import Family


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
            if isinstance(value, Mapping) and SEPARATOR not in name:
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
