"""Which structure, how much shrinkage: by the exact leave-one-out log loss of the label.

Whatever changes decisions is judged by decisions. One set of full sums serves every candidate, and leaving a row out
is an identity, so that trying a candidate costs one pass over the rows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from deciban import kernels
from deciban.errors import DecibanError
from deciban.families.gaussian.prior import pooled_target
from deciban.families.gaussian.sums import DiagonalStats
from deciban.families.protocol import Rule
from deciban.statistics import Array, Members

if TYPE_CHECKING:
    from deciban.families.gaussian.family import Gaussian

AUTO_FEATURES = 200  # beyond this many, only the diagonal structures are tried: products of columns cost too much
MOST_WORK = 3e8  # multiplications per candidate; of more rows an even selection is left out
GAIN = 1.0  # nats, over all rows together: less is no reason for a richer structure


def candidates(family: Gaussian, stats: Any, rule: Rule, own_scale: bool = False) -> list[Gaussian]:
    """Structures from the simplest to the richest, each as given and leaning on its targets.

    A covariance leans on a target as if a tenth as many rows, or as many, had been seen of it as of a class; a tied
    one as if a hundredth or a tenth. Leaning on the tied covariance is between quadratic and linear; leaning on the
    spherical one helps where columns hardly vary. A scale that was given (`own_scale`) is the only target.
    """
    K, full = stats.weight.shape[0], not isinstance(stats, DiagonalStats)
    rows = float(np.max(stats.weight.reshape(K, -1).sum(axis=0), initial=0.0))
    some, many = max(rows / K / 10, 0.1), max(rows / K, 1.0)
    targets: list[str] = [family.target] if own_scale else ["diagonal", "spherical"]
    leaning: list[tuple[str, list[float], list[str]]] = [("tied spherical", [], []), ("spherical", [], [])]
    leaning += [("tied diagonal", [], []), ("diagonal", [some, many], targets)]
    if full:
        leaning += [("tied", [rows / 100, rows / 10], targets)]
        leaning += [("full", [some, many], targets), ("full", [some, many, 4 * many], [] if own_scale else ["tied"])]
    found: list[Gaussian] = []
    for structure, strengths, aims in leaning:
        if K == 1 and (structure.startswith("tied") or "tied" in aims):
            continue
        each: list[tuple[float, str]] = [(family.strength, family.target)]
        each += [(strength, aim) for aim in aims for strength in strengths if rule != "ml" and strength > 0]
        found += [replace(family, structure=structure, strength=s, target=t) for s, t in each]  # type: ignore[arg-type]
    return found


def choose_structure(family: Gaussian, stats: Any, X: Any, members: Members, rule: Rule, own_scale: bool) -> Gaussian:
    """The candidate with the least loss, the simpler of near equals. `own_scale`: the user gave the prior's scale."""
    X, members, weight = _judged(stats, X, members)
    fallback = replace(family, structure="diagonal" if members.K == 1 else "tied diagonal")
    best, least = fallback, np.inf
    if not len(members):
        return best
    for one in candidates(family, stats, rule, own_scale):
        if not own_scale:
            one = replace(one, scale=pooled_target(stats, stats.diagonal(), one.target))
        try:
            scores = one.leave_one_out(stats, X, members, rule)
        except DecibanError:  # singular under ml: not a candidate
            continue
        loss = _loss(scores, stats, members, weight)
        if loss < least - GAIN / weight.sum():
            best, least = one, loss
    return best


def _judged(stats: Any, X: Any, members: Members) -> tuple[Any, Members, Array]:
    """Rows to leave out, as members that lose one copy each, and what their loss weighs.

    A row of weight 3 stands for three rows: one copy is left out, and counts three times. Rows that are alone in
    their class say nothing about structures.
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


def _loss(scores: Array, stats: Any, members: Members, weight: Array) -> float:
    """Log loss of the labels, the class prior left one out too; of a single class the density itself."""
    each = np.arange(len(members))
    if members.K > 1:
        copy = members.row_weights()
        counts = np.tile(stats.weight.reshape(members.K, -1).max(axis=1), (len(each), 1))
        counts[each, members.codes] -= copy
        with np.errstate(divide="ignore"):
            scores = kernels.log_softmax(scores + np.log(counts))
    losses = -scores[each, members.codes]
    return float(np.average(losses, weights=weight)) if np.isfinite(losses).all() else np.inf
