"""Families: statistics, prior, estimate, density and leave-one-out of the distributions of a class, one file each.

The names that the command line and schemas give to families are defined here. The modules of families are imported by
the functions, because they import this package.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from deciban.errors import HyperparameterError

if TYPE_CHECKING:
    from deciban.families.protocol import Family


def named_families() -> dict[str, Callable[[], Family[Any]]]:
    """Return the functions that make families with their default priors, by name."""
    from deciban.families.bernoulli import Bernoulli
    from deciban.families.binned import Binned
    from deciban.families.categorical import Categorical
    from deciban.families.gamma import Gamma
    from deciban.families.gaussian import STRUCTURES, Gaussian
    from deciban.families.multinomial import Multinomial
    from deciban.families.poisson import Poisson
    from deciban.families.transformed import Transformed

    return {
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
    known = named_families()
    if name.lower() not in known:
        raise HyperparameterError(f"{name!r} is not a family. Choose one of {', '.join(sorted(known))}.")
    return known[name.lower()]()
