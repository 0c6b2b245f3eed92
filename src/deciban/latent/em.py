"""One EM loop for every model with hidden variables.

    E   responsibilities, and from them the sums that complete data would have had
    M   the family's own `estimate` on those sums

The objective (log-likelihood under `ml`, plus log prior under `map`) never falls; the loop stops when a pass over the
data gains less than `tol` a row.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from deciban.errors import ConvergenceWarning, DecibanError


class Latent(Protocol):
    """What the loop needs of a model: a guess in, a better guess and the objective of the old one out."""

    def step(self, current: Any) -> tuple[Any, float]:
        """One E-step and one M-step; the objective is that of `current`."""


@dataclass
class Trace:
    """The objective after each iteration, and why the loop stopped."""

    objective: list[float] = field(default_factory=list)
    converged: bool = False

    @property
    def iterations(self) -> int:
        """How many steps were taken."""
        return len(self.objective)

    def __repr__(self) -> str:
        end = "converged" if self.converged else "not converged"
        last = f", objective {self.objective[-1]:.6g}" if self.objective else ""
        return f"Trace({self.iterations} iterations, {end}{last})"


def run(
    step: Callable[[Any], tuple[Any, float]], start: Any, weight: float, max_iter: int, tol: float, warn: bool = True
) -> tuple[Any, Trace]:
    """Iterate from `start`; an interruption keeps the best guess so far."""
    current, trace = start, Trace()
    try:
        for _ in range(max_iter):
            current, objective = step(current)
            if not np.isfinite(objective):
                raise DecibanError(
                    f"the objective became {objective} at iteration {trace.iterations}: a component has collapsed. "
                    "Use rule 'map', whose prior holds it, or fewer components."
                )
            trace.objective.append(objective)
            if trace.iterations > 1 and objective - trace.objective[-2] < tol * weight:
                trace.converged = True
                break
    except KeyboardInterrupt:
        return current, trace
    if warn and not trace.converged and tol > 0:
        gains = np.diff(trace.objective[-4:]) / weight
        warnings.warn(
            f"EM stopped after {trace.iterations} iterations, still gaining {', '.join(f'{g:.2g}' for g in gains)} "
            f"a row. Raise max_iter, or tol (now {tol:g}).",
            ConvergenceWarning,
            stacklevel=3,
        )
    return current, trace
