"""Posteriors of parameters: mean, mode, standard deviation, credible interval.

A marginal holds a frozen SciPy distribution over an array of parameters where SciPy has it, and otherwise draws from
the posterior.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from deciban.errors import NoModeError
from deciban.statistics import Array


@dataclass(frozen=True, eq=False)
class Marginal:
    """Marginal posteriors of an array of parameters.

    Parameters
    ----------
    mean : ndarray
        Posterior means.
    sd : ndarray
        Posterior standard deviations.
    distribution : frozen SciPy distribution, optional
        The marginal distributions, over the same array.
    draws : ndarray of shape (n_draws, …), optional
        Draws from the posterior, where there is no distribution.
    modes : ndarray, optional
        Posterior modes; NaN where there is none.

    Examples
    --------
    >>> from scipy import stats
    >>> Marginal.exact(stats.beta(7, 5), mode=np.array(0.6))
    Marginal(mean 0.5833, sd 0.1367)
    """

    mean: Array
    sd: Array
    distribution: Any = None  # frozen SciPy distribution
    draws: Array | None = None
    modes: Array | None = None

    @classmethod
    def exact(cls, distribution: Any, mode: Array | None = None) -> Marginal:
        """Make a marginal from a frozen SciPy distribution."""
        return cls(np.asarray(distribution.mean()), np.asarray(distribution.std()), distribution, None, mode)

    @classmethod
    def sampled(cls, draws: Array, mode: Array | None = None, mean: Array | None = None) -> Marginal:
        """Make a marginal from draws of the posterior."""
        centre = draws.mean(axis=0) if mean is None else np.asarray(mean)
        return cls(centre, draws.std(axis=0), None, draws, mode)

    @property
    def variance(self) -> Array:
        """Posterior variances."""
        return self.sd**2

    @property
    def mode(self) -> Array:
        """Posterior modes; NoModeError if there is none."""
        if self.modes is None or np.isnan(self.modes).any():
            raise NoModeError("this posterior has no mode (a pseudo-count below 1 and a count of 0). Use the mean.")
        return self.modes

    def interval(self, level: float = 0.9) -> tuple[Array, Array]:
        """Return the equal-tailed credible interval."""
        tails = (1 - level) / 2, (1 + level) / 2
        if self.distribution is not None:
            low, high = (np.asarray(self.distribution.ppf(tail)) for tail in tails)
            return low, high
        low, high = np.quantile(np.asarray(self.draws), tails, axis=0)
        return low, high

    def __repr__(self) -> str:
        if np.ndim(self.mean) == 0 or np.size(self.mean) == 1:
            return f"Marginal(mean {float(np.squeeze(self.mean)):.4g}, sd {float(np.squeeze(self.sd)):.4g})"
        return f"Marginal({' × '.join(map(str, np.shape(self.mean)))} parameters)"


@dataclass(frozen=True, eq=False)
class Posterior:
    """Marginals of the parameters of a family by name; shape (K, D) unless the family documents another one."""

    marginals: Mapping[str, Marginal]

    def __getitem__(self, name: str) -> Marginal:
        return self.marginals[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.marginals)

    def __getattr__(self, name: str) -> Any:
        """Forward `.mean`, `.sd`, `.interval(.9)` … to the marginal where there is only one parameter."""
        marginals = self.__dict__.get("marginals", {})
        if len(marginals) == 1 and not name.startswith("_"):
            return getattr(next(iter(marginals.values())), name)
        raise AttributeError(f"{name!r}; the parameters are {', '.join(marginals)}: use posterior[name].{name}")

    def __repr__(self) -> str:
        return f"Posterior({', '.join(f'{name}: {marginal!r}' for name, marginal in self.marginals.items())})"
