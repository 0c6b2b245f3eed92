"""A family in one file, as CONTRIBUTING.md shows it; tests/cases.py gives it every law."""

from dataclasses import dataclass

import numpy as np
from scipy.special import betaln, xlog1py

from deciban.families.protocol import Density, Family, require_rows
from deciban.statistics import Array, Axis, Stats, summed


# the family starts here
@dataclass(frozen=True, eq=False, repr=False)
class GeometricStats(Stats):
    weight: Array = summed("class", "feature", floor=True)  # Σ w      rows that had a value
    total: Array = summed("class", "feature", floor=True)  # Σ w·x    failures before the first success


@dataclass(frozen=True, eq=False)
class Geometric(Family):
    a: float = 1.0  # p ~ Beta(a, b)
    b: float = 1.0

    def collect(self, X, members):
        seen, total, _ = members.moments(X, np.zeros(X.shape[1]))
        return GeometricStats({"class": members.classes, "feature": Axis.of(X.shape[1])}, seen, total)

    def estimate(self, stats, rule):
        if rule == "ml":
            require_rows(stats.weight, stats.labels["class"], "geometric")
        a, b = {"ml": (0, 0), "map": (self.a - 1, self.b - 1)}.get(rule, (self.a, self.b))
        return GeometricDensity(stats.weight + a, stats.total + b, integrated=rule == "predictive")


@dataclass(frozen=True, eq=False)
class GeometricDensity(Density):
    a: Array
    b: Array
    integrated: bool
    K = property(lambda self: len(self.a))

    def log_density(self, X):
        x, p = X[:, None, :], self.a / (self.a + self.b)
        if self.integrated:
            return np.nansum(betaln(self.a + 1, self.b + x) - betaln(self.a, self.b), axis=2)
        return np.nansum(np.log(p) + xlog1py(x, -p), axis=2)

    def sample(self, codes, rng):
        a, b = self.a[codes], self.b[codes]
        return rng.geometric(rng.beta(a, b) if self.integrated else a / (a + b)) - 1.0


# the family ends here
