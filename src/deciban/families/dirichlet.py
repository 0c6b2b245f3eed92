"""Tables of counts with a Dirichlet prior: what Bernoulli, categorical and multinomial share.

    N | θ  ~  θ_1^N_1 ⋯ θ_M^N_M
    θ      ~  Dirichlet(α)            α0 = Σα; a Beta where M = 2
    θ | N  ~  Dirichlet(α + N)        θ_j alone is Beta(α_j + N_j, the rest)
    p(N)   =  Π_j α_j^(N_j) / α0^(N)  with a^(x) = Γ(a + x)/Γ(a), the rising factorial

Everything works on whole arrays of cells; the arguments broadcast against each other.

Reference: Gelman et al., Bayesian Data Analysis, 3rd ed., sections 2.4 and 3.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import stats as sps
from scipy.special import gammaln

from deciban.errors import HyperparameterError, NoModeError
from deciban.families.posterior import Marginal, Posterior
from deciban.families.protocol import Rule
from deciban.statistics import Array

ROUNDING = 1e-12  # relative; what subtracting a sum of weights from itself may leave
LARGE = 64.0  # from here on Stirling's series beats a difference of log-gammas


def log_theta(counts: Any, total: Any, alpha: Any, alpha0: Any, cells: Any, rule: Rule) -> Array:
    """Log probability of a cell by a rule, from its count and its table's; NaN where the rule defines none.

    >>> np.exp(log_theta(np.array([3.0, 0.0]), 3.0, 1.0, 2.0, 2, "mean")).round(3)
    array([0.8, 0.2])
    """
    if rule == "ml":
        top, bottom = counts, total
    elif rule == "map":
        top, bottom = counts + (alpha - 1.0), total + (alpha0 - cells)
        top = np.where(top < 0, np.nan, top)
    else:  # one draw from the predictive has the posterior mean as its probability
        top, bottom = counts + alpha, total + alpha0
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.divide(top, bottom)
        return np.log(ratio, out=ratio) if np.ndim(ratio) else np.log(ratio)


def require_modes(log_p: Array, classes: Sequence[Any], family: str) -> None:
    """Refuse to name a mode where the posterior has none; log_p has classes along its last axis."""
    missing = np.argwhere(np.isnan(log_p))
    if len(missing):
        raise NoModeError(
            f"class {classes[missing[0][-1]]!r} has a {family} posterior without a mode: a pseudo-count plus its count "
            "is below 1, or the prior is flat and nothing was counted. Use rule 'mean', or larger pseudo-counts."
        )


def log_rising(a: Any, x: Any) -> Array:
    """Log Γ(a + x)/Γ(a) for a > 0 and x ≥ 0; digits are kept where both gammas are huge.

    >>> log_rising(2.0, 3.0), np.log(2 * 3 * 4)
    (array(3.17805383), np.float64(3.17805383...))
    """
    a, x = np.broadcast_arrays(np.asarray(a, dtype=float), np.asarray(x, dtype=float))
    large = a >= LARGE
    if not large.any():
        return np.asarray(gammaln(a + x) - gammaln(a))
    b = np.where(large, a, LARGE)
    # Stirling's series of both gammas, subtracted term by term
    series = (b - 0.5) * np.log1p(x / b) + x * np.log(b + x) - x + _stirling(b + x) - _stirling(b)
    return np.asarray(series if large.all() else np.where(large, series, gammaln(a + x) - gammaln(a)))


def _stirling(a: Array) -> Array:
    inverse = 1 / a
    square = inverse * inverse
    return inverse * (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680)))


def log_prior(log_p: Any, alpha: Any) -> float:
    """Σ (α − 1) log θ: what `map` adds to a log-likelihood, up to a constant; nothing where the prior is flat."""
    flat = np.equal(alpha, 1.0)
    return float(np.sum(np.where(flat, 0.0, (np.asarray(alpha) - 1.0) * np.where(flat, 0.0, log_p))))


def left_over(total: Any, part: Any) -> Array:
    """Total − part, where a remainder of pure rounding is exactly zero."""
    left = total - part
    return np.where(left <= ROUNDING * total, 0.0, left)


def marginals(A: Array, A0: Array, mode: Array) -> Posterior:
    """Beta marginals of cells with posterior pseudo-counts A in tables that hold A0; `mode` is the joint one."""
    rest = A0 - A
    mean = A / A0
    sd = np.sqrt(mean * (rest / A0) / (A0 + 1))
    return Posterior({"p": Marginal(mean, sd, sps.beta(A, np.where(rest > 0, rest, np.finfo(float).tiny)), None, mode)})


def check_strength(family: str, pseudo_count: Any, base: Any) -> None:
    """Refuse pseudo-counts that are not positive, and bases that are not probabilities."""
    for name, values in (("pseudo_count", pseudo_count), ("base", base)):
        if values is None or isinstance(values, str):
            continue
        values = np.asarray(values, dtype=float)
        if not (np.isfinite(values) & (values > 0)).all():
            raise HyperparameterError(f"{family}({name}={values.tolist()}): every number must be finite and > 0.")
        if name == "base" and abs(values.sum() - 1) > 1e-6:
            raise HyperparameterError(f"{family}(base=…) sums to {values.sum():.6g}; probabilities must sum to 1.")
    if isinstance(pseudo_count, str) and pseudo_count not in ("evidence", "loo"):
        raise HyperparameterError(f"{family}(pseudo_count={pseudo_count!r}): a number, 'evidence' or 'loo'.")
    if base is not None and np.ndim(pseudo_count):
        raise HyperparameterError(f"{family}: a base goes with one strength; give pseudo_count as a single number.")
