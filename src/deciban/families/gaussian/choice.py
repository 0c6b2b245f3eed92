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
MOST_WORK = 1e9  # multiplications per candidate; of more rows an even selection is left out
TIE = 1e-9  # relative; a loss no lower than this is no reason for a richer structure


def candidates(family: Gaussian, stats: Any, rule: Rule) -> list[Gaussian]:
    """Structures from the simplest to the richest, each with the strengths worth trying.

    Diagonal and full covariances may lean on the pooled one, as if a tenth as many rows, or as many, had been seen of
    it as of a class: between the quadratic and the linear discriminant. A tied one may lean on its own diagonal.
    """
    K, strength = stats.weight.shape[0], family.strength
    each = [(name, strength, family.target) for name in ("tied spherical", "spherical", "tied diagonal", "diagonal")]
    rows = float(np.max(stats.weight.reshape(K, -1).sum(axis=0)))
    share = max(rows / K, 1.0)
    lean = [share / 10, share] if rule != "ml" else []
    each += [("diagonal", some, "diagonal") for some in lean]
    if not isinstance(stats, DiagonalStats):
        each += [("tied", strength, family.target)]
        each += [("tied", rows / 10, "diagonal")] if lean else []
        each += [("full", strength, family.target)]
        each += [("full", some, "tied") for some in lean]
    if K == 1:
        each = [one for one in each if not one[0].startswith("tied") and one[2] != "tied"]
    return [replace(family, structure=name, strength=s, target=t) for name, s, t in each]  # type: ignore[arg-type]


def choose_structure(family: Gaussian, stats: Any, X: Any, members: Members, rule: Rule, own_scale: bool) -> Gaussian:
    """The candidate with the least loss; the simplest of equals. `own_scale`: the user gave the prior's scale."""
    X, members, weight = _judged(stats, X, members)
    fallback = replace(family, structure="diagonal" if members.K == 1 else "tied diagonal")
    best, least = fallback, np.inf
    if not len(members):
        return best
    for one in candidates(family, stats, rule):
        if not own_scale:
            one = replace(one, scale=pooled_target(stats, one.target))
        try:
            scores = one.leave_one_out(stats, X, members, rule)
        except DecibanError:  # singular under ml: not a candidate
            continue
        loss = _loss(scores, stats, members, weight)
        if loss < least - TIE * abs(loss):
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
