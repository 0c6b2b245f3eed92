"""What is known of each parameter after the data: mean, mode, standard deviation, credible interval.

Marginals are frozen SciPy distributions over whole arrays of parameters where SciPy has them; otherwise draws from
the posterior stand in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from deciban.errors import NoModeError
from deciban.statistics import Array


@dataclass(frozen=True, eq=False)
class Marginal:
    """The posterior of an array of parameters, each by itself.

    >>> from scipy import stats
    >>> Marginal.exact(stats.beta(7, 5), mode=np.array(0.6))
    Marginal(mean 0.5833, sd 0.1367)
    """

    mean: Array
    sd: Array
    distribution: Any = None  # frozen SciPy distribution over the array, where there is one
    draws: Any = None  # (draws, …) otherwise
    modes: Any = None  # NaN where the density has no maximum

    @classmethod
    def exact(cls, distribution: Any, mode: Any = None) -> Marginal:
        """From a frozen SciPy distribution."""
        return cls(np.asarray(distribution.mean()), np.asarray(distribution.std()), distribution, None, mode)

    @classmethod
    def sampled(cls, draws: Array, mode: Any = None, mean: Any = None) -> Marginal:
        """From draws of the posterior."""
        centre = draws.mean(axis=0) if mean is None else np.asarray(mean)
        return cls(centre, draws.std(axis=0), None, draws, mode)

    @property
    def variance(self) -> Array:
        return self.sd**2

    @property
    def mode(self) -> Array:
        """Where the posterior is highest; an error where it has no highest point."""
        if self.modes is None or np.isnan(self.modes).any():
            raise NoModeError("this posterior has no mode (a pseudo-count below 1 with nothing counted). Use the mean.")
        return self.modes

    def interval(self, level: float = 0.9) -> tuple[Array, Array]:
        """Equal-tailed credible interval."""
        tails = (1 - level) / 2, (1 + level) / 2
        if self.distribution is not None:
            low, high = (np.asarray(self.distribution.ppf(tail)) for tail in tails)
            return low, high
        low, high = np.quantile(self.draws, tails, axis=0)
        return low, high

    def __repr__(self) -> str:
        if np.ndim(self.mean) == 0 or np.size(self.mean) == 1:
            return f"Marginal(mean {float(np.squeeze(self.mean)):.4g}, sd {float(np.squeeze(self.sd)):.4g})"
        return f"Marginal({' × '.join(map(str, np.shape(self.mean)))} parameters)"


@dataclass(frozen=True, eq=False)
class Posterior:
    """The marginals of a family's parameters by name; arrays are (K, D) or as the family says."""

    marginals: Mapping[str, Marginal]

    def __getitem__(self, name: str) -> Marginal:
        return self.marginals[name]

    def __iter__(self) -> Any:
        return iter(self.marginals)

    def __getattr__(self, name: str) -> Any:
        """A posterior of one parameter reads like that parameter: `.mean`, `.sd`, `.interval(.9)`."""
        marginals = self.__dict__.get("marginals", {})
        if len(marginals) == 1 and not name.startswith("_"):
            return getattr(next(iter(marginals.values())), name)
        raise AttributeError(f"{name!r}; the parameters are {', '.join(marginals)}: ask for posterior[name].{name}")

    def __repr__(self) -> str:
        return f"Posterior({', '.join(f'{name}: {marginal!r}' for name, marginal in self.marginals.items())})"
