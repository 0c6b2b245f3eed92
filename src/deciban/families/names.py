"""Families by name, as the command line and schemas write them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import partial
from typing import Any

import numpy as np

from deciban.errors import HyperparameterError
from deciban.families.bernoulli import Bernoulli
from deciban.families.binned import Binned
from deciban.families.categorical import Categorical
from deciban.families.gamma import Gamma
from deciban.families.gaussian import STRUCTURES, Gaussian
from deciban.families.multinomial import Multinomial
from deciban.families.poisson import Poisson
from deciban.families.protocol import Family
from deciban.families.transformed import Transformed

NAMED: dict[str, Callable[[], Family[Any]]] = {
    "gaussian": lambda: Gaussian("diagonal"),
    **{structure: partial(Gaussian, structure) for structure in STRUCTURES if structure != "auto"},
    "poisson": Poisson,
    "gamma": Gamma,
    "categorical": Categorical,
    "bernoulli": Bernoulli,
    "log-gaussian": lambda: Transformed("log"),
    "yeo-johnson": Transformed,
    "binned": Binned,
    "multinomial": Multinomial,
}


def named(name: str) -> Family[Any]:
    """Return the family of this name, with its default prior.

    >>> named("tied")
    Gaussian('tied')
    """
    if name.lower() not in NAMED:
        raise HyperparameterError(f"{name!r} is not a family. Choose one of {', '.join(sorted(NAMED))}.")
    return NAMED[name.lower()]()


def brief(family: Family[Any]) -> str:
    """Return a short text for a family, without defaults and without arrays that were frozen at the first fit.

    >>> brief(Categorical(2.0))
    'Categorical(pseudo_count=2.0)'
    """
    if "__repr__" in vars(type(family)) and not getattr(type(family).__repr__, "__wrapped__", None):
        return repr(family)
    plain = [(f.name, getattr(family, f.name), f.default) for f in fields(family) if f.repr]
    shown = [f"{name}={value!r}" for name, value, default in plain if not _usual(value, default)]
    return f"{type(family).__name__}({', '.join(shown)})"


def _usual(value: Any, default: object) -> bool:
    return isinstance(value, np.ndarray) or bool(value == default)
