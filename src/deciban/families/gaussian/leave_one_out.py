"""Leave-one-out scores of diagonal and spherical Gaussians: the row is subtracted from each variance.

κ' = κ − w        x − m' = (κ/κ')·u, u = x − m        ψ' = ψ − wκ/κ'·u², summed over the features that share ψ
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from deciban import kernels
from deciban.families.gaussian.densities import BLOCK_CELLS, axis_scores, elliptical
from deciban.families.protocol import Rule, own_codes
from deciban.linalg import EPS
from deciban.read.numbers import Matrix, is_sparse
from deciban.statistics import Array, Members

if TYPE_CHECKING:
    from deciban.families.gaussian.posteriors import CellPosterior

ALONE = 1e-12  # share of κ, or of ψ, below which a difference is only rounding


def leave_one_out(posterior: CellPosterior, X: Matrix, members: Members, rule: Rule) -> Array:
    """Return the scores, shape (n, K); sparse rows are made dense block by block, since every zero is a value."""
    own_codes(members)
    scores = posterior.density(rule).log_density(X)
    separate = not posterior.tied and not posterior.pooled and posterior.kappa.shape[1] == 1
    if separate and rule != "predictive" and not is_sparse(X) and _leave_complete(posterior, X, members, rule, scores):
        return scores
    block = max(16, BLOCK_CELLS // max(1, X.shape[1]))
    for at in range(0, X.shape[0], block):
        rows = slice(at, at + block)
        Z = X[rows].toarray() if is_sparse(X) else X[rows]
        _leave(posterior, Z - posterior.stats.origin, members.take(rows), rule, scores[rows])
    return scores


def _leave_complete(posterior: CellPosterior, X: Array, members: Members, rule: Rule, scores: Array) -> bool:
    """Score rows without missing values by normals with a variance per class and feature, in one pass.

    Return False, without changing the scores, if a value is missing. With v = u²/ψ, ψ'/ψ = f = 1 − wκ/κ'·v, and the
    squared distance is (κ/κ')²·Σ v/f in units of ψ'.
    """
    own, w, D = own_codes(members), members.row_weights(), X.shape[1]
    kappa, least = posterior.kappa[own, 0], ALONE if posterior.prior is None else EPS
    left = kappa - w
    alone = left <= ALONE * kappa  # no other row has a value here
    step = np.where(alone, 0.0, kappa / np.where(alone, 1.0, left))
    distance, log_left, smallest = kernels.diagonal_left_out(
        X, own, posterior.stats.origin, posterior.mean, 1 / posterior.psi, w * step, least
    )
    if np.isnan(distance).any():
        return False
    nu = posterior.nu[own, 0] - w
    divisor, _ = posterior.read(rule, left, np.where(nu > 0, nu, 1.0) if posterior.prior is None else nu)
    mine = elliptical(distance * step**2 * divisor, posterior.log_psi[own] + log_left - D * np.log(divisor), None, D)
    undefined = posterior.prior is None and (alone | (smallest <= least))
    scores[np.arange(len(own)), own] = np.where(undefined, -np.inf, mine)
    return True


def _leave(posterior: CellPosterior, Z: Array, members: Members, rule: Rule, scores: Array) -> None:
    """Overwrite the scores that change: of the row's own class, and of all classes if variances are tied."""
    own, w = own_codes(members), members.row_weights()[:, None]
    share = np.zeros_like(own) if posterior.tied else own
    seen = ~np.isnan(Z)
    mask = None if seen.all() else seen
    weight = w if mask is None else w * seen
    kappa, psi = posterior.kappa[own], posterior.psi[share]
    left = kappa - weight
    alone = left <= ALONE * kappa  # no other row has a value here
    step = np.where(alone, 0.0, kappa / np.where(alone, 1.0, left))
    u = Z - posterior.mean[own]
    if mask is not None:
        u[~seen] = 0.0
    squares = u * u
    removed, gone = weight * step * squares, weight
    if posterior.pooled:
        removed = removed.sum(axis=1, keepdims=True)
        gone = np.broadcast_to(weight, Z.shape).sum(axis=1, keepdims=True)
    rest, nu = psi - removed, posterior.nu[share] - gone
    undefined = np.zeros(len(own), dtype=bool)
    if posterior.prior is None:
        constant = (rest <= ALONE * psi) & (gone > 0)
        undefined = alone.any(axis=1) | constant.any(axis=1)
        rest[constant], left[alone], nu = 1.0, 1.0, np.where(nu > 0, nu, 1.0)
    else:
        np.maximum(rest, EPS * psi, out=rest)  # the prior keeps ψ positive, also after rounding
    if posterior.tied:
        kept = scores[undefined]
        _rescore_all(posterior, Z, rest, nu, mask, rule, scores)
        scores[undefined] = kept
    divisor, dof = posterior.read(rule, left, nu)
    mine = axis_scores(squares * step**2, rest / divisor, dof, mask, posterior.pooled)
    scores[np.arange(len(own)), own] = np.where(undefined, -np.inf, mine)


def _rescore_all(
    posterior: CellPosterior, Z: Array, psi: Array, nu: Array, seen: Array | None, rule: Rule, scores: Array
) -> None:
    """Score every class, with the ψ of each row."""
    if rule == "predictive":
        for j, mean in enumerate(posterior.mean):
            divisor, dof = posterior.read(rule, posterior.kappa[j], nu)
            scores[:, j] = axis_scores((Z - mean) ** 2, psi / divisor, dof, seen, posterior.pooled)
        return
    divisor, _ = posterior.read(rule, posterior.kappa[0], nu)
    precision = np.broadcast_to(divisor / psi, Z.shape)
    if seen is not None:
        Z, precision = np.where(seen, Z, 0.0), np.where(seen, precision, 0.0)
    norm = axis_scores(np.zeros_like(Z), psi / divisor, None, seen, posterior.pooled)
    for j, mean in enumerate(posterior.mean):
        off = Z - mean
        off *= off
        scores[:, j] = norm - 0.5 * np.einsum("nd,nd->n", off, precision)
