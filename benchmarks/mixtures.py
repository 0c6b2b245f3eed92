"""Mixtures by EM: seconds of one iteration, beside scikit-learn's GaussianMixture and scipy's sparse products.

An iteration is what four cost more than one, divided by three, on both sides, from the same start. Memory is what a fit
of two iterations needs beyond the table.
"""

from __future__ import annotations

import importlib.util
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from deciban import Gaussian, Members, Mixture, Multinomial
from deciban.latent.components import MixtureDensity
from harness import REPEATS, Row, at_least, at_most, benchmark, timed
from workloads import bells, documents

FEW, MANY = 1, 4
D, K = 20, 16
V, H = 50_000, 20
STRUCTURES = (("full", "full", 7), ("diagonal", "diag", 6), ("tied", "tied", 4), ("spherical", "spherical", 4))


@benchmark("mixtures")
def mixtures(share: float) -> Iterator[Row | str]:
    """Gaussian mixtures beside scikit-learn's, and of words beside scipy's products: one iteration of EM."""
    n = int(500_000 * share)
    X, _ = bells(n, D, K, full=True)
    shares = np.random.default_rng(1).dirichlet(np.full(K, 0.1), len(X[:20_000]))
    for structure, theirs, reach in STRUCTURES:
        start = _start(Gaussian(structure), X[:20_000], shares)

        def ours(steps: int, structure: Any = structure, start: Any = start) -> Any:
            return Mixture(Gaussian(structure), K).fit(X, rule="ml", start=start, max_iter=steps, tol=0)

        yield _iteration(
            f"{structure} mixture, {n:,} × {D}, K = {K}",
            f"GaussianMixture({theirs!r})",
            lambda steps, start=start, theirs=theirs: _peer(X, theirs, start, steps),
            ours,
            at_least(reach),
            lambda peer, ours: float(np.abs(peer.score_samples(X[:1000]) - ours.log_density(X[:1000])).max()),
        )
        yield f"{structure}: {_extra(lambda ours=ours: ours(2)):.1f} MB beside the table; reach {at_most(50, 'MB')}"
    yield from _pomegranate(X)
    yield from words(share)


def _pomegranate(X: Any) -> Iterator[Row | str]:
    """The other library of mixtures, once: it is slow."""
    if importlib.util.find_spec("pomegranate") is None:
        yield "pomegranate is not installed (it needs torch), so it was not measured"
        return
    import torch
    from pomegranate.distributions import Normal
    from pomegranate.gmm import GeneralMixtureModel

    torch.set_num_threads(1)
    rows = torch.tensor(X, dtype=torch.float64)
    shares = np.random.default_rng(1).dirichlet(np.full(K, 0.1), len(X[:20_000]))
    for structure, kind in (("full", "full"), ("diagonal", "diag")):  # its "sphere" refuses a start; it has no "tied"
        start = _start(Gaussian(structure), X[:20_000], shares)
        parts = start.components
        means, weights = torch.tensor(parts.mean), torch.tensor(np.exp(start.log_weights))
        spread = parts.scale / parts.divisor[:, None, None] if kind == "full" else parts.variance
        spreads = torch.tensor(np.ascontiguousarray(spread))

        def theirs(steps: int, means: Any = means, spreads: Any = spreads, kind: str = kind, w: Any = weights) -> Any:
            normals = [Normal(m.clone(), c.clone(), covariance_type=kind) for m, c in zip(means, spreads)]
            return GeneralMixtureModel(normals, priors=w.clone(), max_iter=steps, tol=-1e30).fit(rows)

        def ours(steps: int, structure: Any = structure, start: Any = start) -> Any:
            return Mixture(Gaussian(structure), K).fit(X, rule="ml", start=start, max_iter=steps, tol=0)

        job = f"{structure} mixture, {len(X):,} × {D}, K = {K}"
        yield _iteration(job, "pomegranate", theirs, ours, at_least(1), lambda peer, mine: float("nan"), repeats=1)


def words(share: float) -> Iterator[Row | str]:
    """A mixture of multinomials on CSR counts."""
    n = int(200_000 * share)
    X, y = documents(n, V=V, K=H, tokens=66)
    shares = np.random.default_rng(1).dirichlet(np.ones(H), len(y[:20_000])) + 0.1 * np.eye(H)[y[:20_000]]
    start = _start(Multinomial(2.0), X[:20_000], shares)
    yield _iteration(
        f"multinomial mixture, {n:,} × {V:,} CSR, H = {H}",
        "scipy sparse products",
        lambda steps: _products(X, start, steps),
        lambda steps: Mixture(Multinomial(2.0), H).fit(X, rule="map", start=start, max_iter=steps, tol=0),
        at_least(1.8),
        lambda peer, ours: float(np.abs(peer - ours.density().components.log_p).max()),
    )


def _start(family: Any, X: Any, shares: Any) -> MixtureDensity:
    """Components from responsibilities drawn at random for some of the rows."""
    shares = shares / shares.sum(axis=1, keepdims=True)
    stats = family.collect(X, Members.soft(shares))
    weights = shares.mean(axis=0)
    return MixtureDensity(np.log(weights), family.choose(stats).estimate(stats, "mean"))


def _iteration(
    job: str,
    peer: str,
    theirs: Callable[[int], Any],
    ours: Callable[[int], Any],
    reach: Any,
    difference: Callable[[Any, Any], float],
    repeats: int = REPEATS,
) -> Row:
    ours(FEW)  # compile
    times: dict[str, list[float]] = {"peer": [], "ours": []}
    answers = {}
    for _ in range(repeats):
        for name, act in (("peer", theirs), ("ours", ours)):
            (few, _), (many, answers[name]) = timed(lambda act=act: act(FEW)), timed(lambda act=act: act(MANY))
            times[name].append((many - few) / (MANY - FEW))
    ratios = [a / b for a, b in zip(times["peer"], times["ours"])]
    return Row(job, peer, times["peer"], times["ours"], ratios, reach, difference(answers["peer"], answers["ours"]))


def _peer(X: Any, kind: str, start: MixtureDensity, steps: int) -> GaussianMixture:
    parts = start.components
    means = parts.mean
    if kind in ("full", "tied"):
        precisions = np.linalg.inv(parts.scale / parts.divisor[: len(parts.scale), None, None])
    else:
        precisions = 1 / parts.variance
    precisions = {"tied": precisions[0], "spherical": precisions[:, 0]}.get(kind, precisions)
    model = GaussianMixture(
        len(means),
        covariance_type=kind,
        reg_covar=0.0,
        tol=0,
        max_iter=steps,
        weights_init=np.exp(start.log_weights),
        means_init=means,
        precisions_init=precisions,
        init_params="random_from_data",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X)


def _products(X: Any, start: MixtureDensity, steps: int) -> Any:
    """EM for a mixture of multinomials in plain scipy; α = 2 under map is one pseudo-count a word."""
    table, bias = start.components.log_p, start.log_weights
    for _ in range(steps):
        scores = X @ table
        scores += bias
        scores -= scores.max(axis=1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=1, keepdims=True)
        counts = X.T @ scores
        counts += 1.0
        table, bias = np.log(counts / counts.sum(axis=0)), np.log(scores.mean(axis=0))
    return table


def _extra(act: Callable[[], Any]) -> float:
    """Megabytes that were held at once beyond what was there before."""
    tracemalloc.start()
    act()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most / 2**20
