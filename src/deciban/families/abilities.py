"""What some families and densities can do besides, asked for by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from deciban.families.protocol import Density
from deciban.statistics import Array

if TYPE_CHECKING:
    from deciban.families.posterior import Posterior


@runtime_checkable
class HasEvidence(Protocol):
    """Families whose marginal likelihood has a closed form."""

    def log_evidence(self, stats: Any) -> Array:
        """(K,) log ∫ p(D|θ) p(θ) dθ; one number where classes share parameters."""


@runtime_checkable
class HasPosterior(Protocol):
    """Families that can describe the posterior of every parameter."""

    def posterior(self, stats: Any) -> Posterior:
        """Mean, mode, standard deviation and credible interval of every parameter."""


@runtime_checkable
class HasParts(Protocol):
    """Densities that are a sum over features."""

    def parts(self, X: Any) -> Array:
        """(n, K, D) log density per feature; sums over D to `log_density`."""


@runtime_checkable
class HasSelection(Protocol):
    """Densities that can be read for some of the features only."""

    def select(self, features: Array) -> Density:
        """The density of these features."""


@runtime_checkable
class HasPolynomial(Protocol):
    """Densities whose logarithm is a polynomial of degree two at most."""

    def polynomial(self) -> tuple[Array | None, Array, Array]:
        """A (K, D, D) or None, b (K, D), c (K,) with log f(x|k) = xᵀA x + xᵀb + c, up to what all k share."""
