"""One draw of every parameter from its conjugate posterior, as a density that scores rows.

Scoring the same rows by many draws shows how sure an answer is. A family says how by registering a function here or in
its own file:

    @draw.register
    def _(family: Geometric, stats, rng): return GeometricDensity(...)
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from deciban.errors import NotAvailableError
from deciban.families.bernoulli import Bernoulli, BernoulliDensity
from deciban.families.categorical import Categorical
from deciban.families.category_tables import CategoricalDensity
from deciban.families.counts import MultinomialDensity
from deciban.families.gaussian import Gaussian
from deciban.families.gaussian.densities import DiagonalNormal, NormalDensity
from deciban.families.gaussian.posteriors import MatrixPosterior
from deciban.families.mapped import Through
from deciban.families.multinomial import Multinomial
from deciban.families.poisson import Poisson, PoissonDensity
from deciban.families.product import Product, ProductDensity
from deciban.families.protocol import Density
from deciban.linalg import whiten
from deciban.statistics import Array


@singledispatch
def draw(family: Any, stats: Any, rng: np.random.Generator) -> Density:
    """A density with parameters drawn from the posterior.

    >>> coin = Bernoulli().fit([1, 1, 0, 1])
    >>> rng = np.random.default_rng(0)
    >>> round(float(np.mean([draw(coin.family, coin.stats, rng).p for _ in range(2000)])), 1)    # 4/6, near enough
    0.7
    """
    raise NotAvailableError(f"{type(family).__name__} cannot draw parameters from its posterior.")


@draw.register
def _(family: Bernoulli, stats: Any, rng: np.random.Generator) -> BernoulliDensity:
    on, off = log_gamma(stats.ones + family.a, rng), log_gamma(stats.zeros + family.b, rng)
    both = np.logaddexp(on, off)
    return BernoulliDensity(on - both, off - both)


@draw.register
def _(family: Poisson, stats: Any, rng: np.random.Generator) -> PoissonDensity:
    a, b = stats.total + family.choose(stats).shape, stats.weight + family.rate
    return PoissonDensity(rng.gamma(a) / b)


@draw.register
def _(family: Multinomial, stats: Any, rng: np.random.Generator) -> MultinomialDensity:
    alpha, _ = family.alpha(stats)
    logs = log_gamma(stats.counts.T + alpha[:, None], rng)
    return MultinomialDensity(logs - np.logaddexp.reduce(logs, axis=0), family.estimate(stats, "mean").length)


@draw.register
def _(family: Categorical, stats: Any, rng: np.random.Generator) -> CategoricalDensity:
    support = family.support(stats)
    table, unlisted = support.table, support.unlisted[:, None]
    cells = log_gamma(support.counts + support.alpha[:, None], rng)
    rest = np.where(unlisted > 0, log_gamma(np.maximum(support.alpha_new[:, None] * unlisted, 1e-300), rng), -np.inf)
    rest = np.broadcast_to(rest, support.totals.shape)
    total = rest.copy()
    for j, (start, size) in enumerate(zip(support.axis.starts, support.axis.sizes)):
        total[j] = np.logaddexp(total[j], np.logaddexp.reduce(cells[start : start + size], axis=0))
    outside = np.log(support.alpha_new / np.maximum(support.alpha0, 1e-300))[:, None]  # a name the support lacks
    unseen = np.where(unlisted > 0, rest - total - np.log(np.maximum(unlisted, 1)), outside)
    return CategoricalDensity(support.axis, cells - total[table], unseen, support.unlisted, support.features)


@draw.register
def _(family: Gaussian, stats: Any, rng: np.random.Generator) -> Density:
    post = family._posterior(stats)
    if isinstance(post, MatrixPosterior):
        return _draw_matrices(post, rng)
    variance = post.psi / 2 / rng.gamma(np.broadcast_to(post.nu / 2, post.psi.shape))
    variance = np.broadcast_to(variance, post.mean.shape)
    mean = post.mean + rng.standard_normal(post.mean.shape) * np.sqrt(variance / post.kappa)
    return DiagonalNormal(stats.origin, mean, variance, post.tied)


def _draw_matrices(post: MatrixPosterior, rng: np.random.Generator) -> NormalDensity:
    """Σ from the inverse Wishart by Bartlett's decomposition, then μ given Σ."""
    K, D = post.mean.shape
    root = whiten(post.psi).whitener  # root·rootᵀ = Ψ⁻¹, so (root·B)(root·B)ᵀ is Wishart when B·Bᵀ is
    scale = np.empty_like(post.psi)
    for k, nu in enumerate(post.nu):
        bartlett = np.tril(rng.standard_normal((D, D)), -1)
        np.fill_diagonal(bartlett, np.sqrt(rng.chisquare(nu - np.arange(D))))
        inverse = solve_triangular(bartlett, np.linalg.inv(root[k]), lower=True)
        scale[k] = inverse.T @ inverse
    spread = np.linalg.cholesky(scale)
    noise = np.einsum("kde,ke->kd", np.broadcast_to(spread, (K, D, D)), rng.standard_normal((K, D)))
    mean = post.mean + noise / np.sqrt(post.kappa)[:, None]
    return NormalDensity(post.stats.origin, mean, scale, np.ones(K))


@draw.register
def _(family: Product, stats: Any, rng: np.random.Generator) -> ProductDensity:
    pairs = zip(family.names, family.families.values())
    return ProductDensity({name: draw(part, stats.blocks[name], rng) for name, part in pairs})


@draw.register
def _(family: Through, stats: Any, rng: np.random.Generator) -> Density:
    return family.behind(stats, draw(family.inside(stats.map), stats.inner, rng))


def log_gamma(shape: Array, rng: np.random.Generator) -> Array:
    """Logs of Gamma(shape) variates; a tiny shape gives a very negative log, not log 0."""
    return np.log(rng.gamma(shape + 1.0)) + np.log(rng.random(np.shape(shape))) / shape
