"""Real numbers: normal densities with a normal–inverse-Wishart prior.

    x | μ, Σ  ~  Normal(μ, Σ)
    μ | Σ     ~  Normal(m0, Σ/κ0)
    Σ         ~  InverseWishart(ν0, Ψ0)              ν0 = strength + D − 1 + dof, Ψ0 = strength × target
    Σ | D     ~  InverseWishart(ν0 + n, Ψ)           Ψ = Ψ0 + Σ(x−x̄)(x−x̄)ᵀ + κ0n/(κ0+n)·(x̄−m0)(x̄−m0)ᵀ
    μ | Σ, D  ~  Normal(m, Σ/κ)                      κ = κ0 + n, m = (κ0·m0 + n·x̄)/κ
    x | D     ~  Student(ν−D+1, m, Ψ(κ+1)/(κ(ν−D+1)))

Six structures are estimated from the same sums: full, diagonal and spherical covariances, per class or tied. A diagonal
structure is the case D = 1 for each feature; a spherical variance is shared by D means, with D values per row.

Reference: Murphy, Conjugate Bayesian analysis of the Gaussian distribution (2007).
"""

from deciban.families.gaussian.family import STRUCTURES, Gaussian
from deciban.families.gaussian.sums import DiagonalStats, GaussianStats

__all__ = ["STRUCTURES", "DiagonalStats", "Gaussian", "GaussianStats"]
