"""Families by name, for those who write no Python."""

from __future__ import annotations

from dataclasses import fields
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

NAMED: dict[str, Any] = {
    "gaussian": lambda: Gaussian("diagonal"),
    **{structure: (lambda chosen=structure: Gaussian(chosen)) for structure in STRUCTURES if structure != "auto"},
    "poisson": Poisson,
    "gamma": Gamma,
    "categorical": Categorical,
    "bernoulli": Bernoulli,
    "log-gaussian": lambda: Transformed("log"),
    "yeo-johnson": Transformed,
    "binned": Binned,
    "multinomial": Multinomial,
}


def named(name: str) -> Family:
    """The family of this name, with its usual prior.

    >>> named("tied")
    Gaussian('tied')
    """
    if name.lower() not in NAMED:
        raise HyperparameterError(f"{name!r} is not a family. Choose one of {', '.join(sorted(NAMED))}.")
    return NAMED[name.lower()]()


def brief(family: Family) -> str:
    """A family in few words: what is as usual is left out, and so are the numbers that were frozen.

    >>> brief(Categorical(2.0))
    'Categorical(pseudo_count=2.0)'
    """
    if "__repr__" in vars(type(family)) and not getattr(type(family).__repr__, "__wrapped__", None):
        return repr(family)
    plain = [(f.name, getattr(family, f.name), f.default) for f in fields(family) if f.repr]
    said = [f"{name}={value!r}" for name, value, usual in plain if not isinstance(value, np.ndarray) and value != usual]
    return f"{type(family).__name__}({', '.join(said)})"
