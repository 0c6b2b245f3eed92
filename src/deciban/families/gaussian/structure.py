"""Choice of the covariance structure and its shrinkage, by the exact leave-one-out log loss of the labels.

One set of full sums serves every candidate, and leaving a row out is an identity, so that a candidate costs one pass
over the rows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from deciban import kernels
from deciban.errors import DecibanError
from deciban.families.gaussian.sums import DiagonalStats, GaussianStats, far_rows
from deciban.families.protocol import Rule, sums_without_each
from deciban.read.arrays import Matrix
from deciban.statistics import Array, Members

if TYPE_CHECKING:
    from deciban.families.gaussian.family import Gaussian, Structure

AnyGaussianStats: TypeAlias = GaussianStats | DiagonalStats
Target: TypeAlias = Literal["diagonal", "spherical", "tied"]
AUTO_FEATURES = 200  # with more features, only diagonal structures are candidates: products of columns cost too much
MOST_WORK = 3e8  # multiplications per candidate; with more rows, an even selection of them is left out
MOST_KEPT = 2**22  # numbers in the sums without each far row that are kept for all candidates
ROWS_PER_FEATURE = 2  # of every class, without which a class has no covariance of its own that is not shrunk
ROWS_OF_TARGET = 8  # for each feature, beyond one of each class; with fewer, the tied covariance is no target
GAIN = 1.0  # nats, over all rows: the least gain for which a structure with more parameters is preferred


def candidates(family: Gaussian, stats: AnyGaussianStats, rule: Rule) -> list[Gaussian]:
    """Return structures from the fewest to the most parameters, each with the given prior and with stronger ones.

    A target covariance is worth a tenth of the rows of a class, or as many; for tied structures a hundredth or a tenth
    of all rows. Shrinkage to the tied covariance lies between a quadratic and a linear discriminant; shrinkage to the
    spherical one helps where columns hardly vary. A scale that was given is the only target. The covariance of a class
    is a candidate without shrinkage only if every class has twice as many rows as it has columns.

    Leave-one-out holds the prior of all rows. The tied covariance contains each row in the direction of its own class:
    with few rows for each column, the own class is then told from the others although fresh rows are not.
    """
    own_scale = family.scale is not None
    K, full = stats.weight.shape[0], not isinstance(stats, DiagonalStats)
    each_class = stats.weight.reshape(K, -1).max(axis=1, initial=0.0)
    rows = float(np.max(stats.weight.reshape(K, -1).sum(axis=0), initial=0.0))
    some, many = max(rows / K / 10, 0.1), max(rows / K, 1.0)
    targets: list[Target] = [family.target] if own_scale else ["diagonal", "spherical"]
    shrinkage: list[tuple[Structure, list[float], list[Target]]] = [("tied spherical", [], []), ("spherical", [], [])]
    shrinkage += [("tied diagonal", [], []), ("diagonal", [some, many], targets)]
    if full:
        shrinkage += [("tied", [rows / 100, rows / 10], targets)]
        pooled = not own_scale and rows - K >= ROWS_OF_TARGET * len(stats.origin)
        shrinkage += [("full", [some, many], targets), ("full", [some, many, 4 * many], ["tied"] if pooled else [])]
    found: list[Gaussian] = []
    for structure, strengths, aims in shrinkage:
        tied = structure.startswith("tied")
        if K == 1 and (tied or "tied" in aims):
            continue
        needed = ROWS_PER_FEATURE * (len(stats.origin) if structure == "full" else 1)
        alone = tied or K == 1 or bool((each_class > needed).all())
        each: list[tuple[float, Target]] = [(family.strength, family.target)] if alone or rule == "ml" else []
        each += [(strength, aim) for aim in aims for strength in strengths if rule != "ml" and strength > 0]
        found += [replace(family, structure=structure, strength=s, target=t) for s, t in each]
    return found


def choose_structure(family: Gaussian, stats: AnyGaussianStats, X: Matrix, members: Members, rule: Rule) -> Gaussian:
    """Return the candidate with the least loss."""
    whole = stats.whole()
    if family.limit is not None and isinstance(X, np.ndarray):
        X, members = family.learnt(stats, X, members)
    X, members, weight = _judged(whole, X, members)
    fallback = replace(family, structure="diagonal" if members.K == 1 else "tied diagonal")
    best, least = fallback, np.inf
    if not len(members):
        return best
    far, without = far_rows(X, stats.frame), None
    if len(far) * whole.second.size <= MOST_KEPT:  # otherwise they are computed again for each candidate
        each = sums_without_each(fallback, stats, X[far], members.take(far)) if len(far) else ()
        without = [left.whole() for left in each]
    log_prior = _log_prior_without(whole, members)
    for one in candidates(family, whole, rule):
        try:
            if without is None:
                scores = one.leave_one_out(stats, X, members, rule)
            else:
                scores = one.score_left_out(whole, far, without, X, members, rule)
        except DecibanError:  # singular under rule "ml"
            continue
        loss = _loss(scores, log_prior, members, weight)
        if loss < least - GAIN / weight.sum():
            best, least = one, loss
    return best


def _judged(stats: AnyGaussianStats, X: Matrix, members: Members) -> tuple[Matrix, Members, Array]:
    """Return the rows to leave out, their members, and the weights of their losses.

    A row of weight 3 stands for three rows: one copy is left out, and its loss counts three times. Rows that are alone
    in their class are not used.
    """
    weight = members.row_weights()
    copy = np.minimum(weight, 1.0)
    classes = stats.weight.reshape(members.K, -1).max(axis=1, initial=0.0)
    fit = (weight > 0) & (classes[members.codes] - copy > 1e-9)
    D = X.shape[1]
    work = members.K * (D if isinstance(stats, DiagonalStats) else D * D + 16)
    rows = np.flatnonzero(fit)
    most = max(1000, int(MOST_WORK / max(work, 1)))
    if len(rows) > most:
        rows = rows[np.linspace(0, len(rows) - 1, most).astype(np.intp)]
    if len(rows) < len(weight):
        X = X[rows]
    return X, Members.hard(members.codes[rows], members.classes, copy[rows]), weight[rows]


def _log_prior_without(stats: AnyGaussianStats, members: Members) -> Array:
    """Return the logarithms of the weights of the classes without each row, shape (n, K)."""
    counts = np.tile(stats.weight.reshape(members.K, -1).max(axis=1), (len(members), 1))
    counts[np.arange(len(members)), members.codes] -= members.row_weights()
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(counts))


def _loss(scores: Array, log_prior: Array, members: Members, weight: Array) -> float:
    """Return the log loss of the labels; of a single class −log f."""
    if members.K > 1:
        scores = kernels.log_softmax(scores + log_prior)
    losses = -scores[np.arange(len(members)), members.codes]
    return float(np.average(losses, weights=weight)) if np.isfinite(losses).all() else np.inf
