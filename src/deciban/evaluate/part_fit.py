"""The fit of weights ≥ 0 for parts of a score, beside a score whose scales were fitted before.

    P(c|x) = softmax_c( v·g_0(x|c) + Σ_e w_e·g_e(x|c) + b_c + log π_c ),      v ≥ v_least, w ≥ 0
    minimise  − Σ_i log P(c_i|x_i)  +  λ/2·(Σ_e w_e² + (v − 1)²)  +  Σ_c b_c²/(2·OFFSET_SD²)

Weights are ≥ 0: a negative weight on left-out evidence reads off the label, since a row that is taken out of the counts
of its own class makes the evidence for that class weaker. Parts enter in rounds: those along whose weights the loss
falls most, by gradient² / curvature, and then all weights are fitted by projected Newton steps. The objective is
convex.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from deciban.evaluate.checks import Codes
from deciban.evaluate.scale_fit import OFFSET_SD, WeightProblem, relative_scores
from deciban.evidence.scores import Array, log_probability
from deciban.kernels.choice import one_thread

ROUNDS = 3
PARTS_PER_ROUND = 10
LEAST_MAIN = 0.01  # weight v of the score that was fitted before
LEAST_GAIN = 3.0  # nats over all rows that a part must promise
SHARE_PENALTY, TOTAL_PENALTY = 1.0, 1000.0  # nats per squared unit: of each share, and of their sum less 1
HELD = 1e9  # precision of parameters that stay where they are


class Weights(NamedTuple):
    """Weights of the main score and of E parts, and offsets of K classes."""

    main: float
    parts: Array  # (E,) ≥ 0
    offsets: Array  # (K,) nats; mean 0, and 0 for classes without rows


def fit_weights(
    main: Array, parts: Sequence[Array], codes: Codes, prior: Array, penalties: Sequence[float]
) -> list[Weights]:
    """Fit weights of parts (n, K) beside a main score (n, K), for each of several penalties λ that decrease.

    Each fit begins with the parts of the one before.

    >>> rng = np.random.default_rng(0)
    >>> codes = rng.integers(0, 2, 500)
    >>> truth = np.where(np.eye(2)[codes] > 0, 1.0, 0.0) + rng.normal(0, 1, (500, 2))
    >>> parts = [truth, rng.normal(0, 1, (500, 2))]
    >>> fit_weights(np.zeros((500, 2)), parts, codes, np.array([.5, .5]), [100.0, 1.0])[-1].parts.round(1)
    array([1., 0.])
    """
    usable = np.isfinite(main[np.arange(len(codes)), codes]) & (prior[codes] > 0)
    kept, own = np.unique(codes[usable], return_inverse=True)
    given = main[usable][:, kept].T[None]  # (1, K, n)
    possible = np.where(np.isneginf(given[0]), -np.inf, 0.0) if np.isneginf(given).any() else None
    given = relative_scores(np.where(np.isneginf(given), 0.0, given))
    every = np.empty((len(parts), *given.shape[1:]))
    for into, part in zip(every, parts):
        of_class = part.T if usable.all() and len(kept) == len(prior) else part[usable][:, kept].T
        np.subtract(of_class[1:], of_class[:1], out=into)
    share = prior[kept] / prior[kept].sum()
    path = _Path(given, every, possible, own, np.log(share))
    found = []
    with np.errstate(all="ignore"), one_thread(0):
        for penalty in penalties:
            x = path.fit(penalty)
            weights, offsets = np.zeros(len(parts)), np.zeros(len(prior))
            P = 1 + len(path.chosen)
            weights[path.chosen] = x[1:P]
            offsets[kept] = x[P:] - x[P:].mean()
            found.append(Weights(float(x[0]), weights, offsets))
    return found


def fit_shares(scores: Sequence[Array], codes: Codes, prior: Array, surprise: float = 0.0) -> Array:
    """Fit shares ≥ 0 of several scores (n, K) of the same rows, by the log loss of their weighted sum.

    The sum of the shares is held near 1, by a penalty of TOTAL_PENALTY nats for each squared unit. `surprise` is how
    many wrong rows are expected beside these: where all rows are right, nothing else limits the evidence.

    >>> codes = np.array([0, 1] * 50)
    >>> truth, noise = 3.0 * np.eye(2)[codes], np.random.default_rng(0).normal(0, 3, (100, 2))
    >>> fit_shares([truth, noise], codes, np.array([.5, .5])).round(1)
    array([1., 0.])
    """
    P, K = len(scores), len(prior)
    own = np.arange(len(codes)), codes
    usable = np.isfinite(np.stack([each[own] for each in scores])).all(axis=0) & (prior[codes] > 0)
    kept, numbers = np.unique(codes[usable], return_inverse=True)
    given = np.stack([each[usable][:, kept].T for each in scores])
    possible = np.where(np.isneginf(given).any(axis=0), -np.inf, 0.0)
    given = np.where(np.isneginf(possible), 0.0, given)
    K = len(kept)
    precision = np.diag(np.r_[np.full(P, SHARE_PENALTY), np.full(K, HELD)])
    precision[:P, :P] += TOTAL_PENALTY
    first, least = np.r_[np.full(P, 1 / P), np.zeros(K)], np.r_[np.zeros(P), np.full(K, -np.inf)]
    share = log_probability(prior[kept] / prior[kept].sum())
    centre = first.copy()
    if surprise and K > 1:  # a linear term moves the centre of a quadratic penalty
        centre[:P] -= np.linalg.solve(precision[:P, :P], surprise * _mean_evidence(given, numbers, np.exp(share)))
    some = possible if possible.any() else None
    problem = WeightProblem(relative_scores(given), some, numbers, share, centre, precision, least)
    with np.errstate(all="ignore"), one_thread(0):
        found = problem.minimise(first)[:P]
    return np.asarray(found / max(1.0, found.sum()))


def _mean_evidence(scores: Array, own: Codes, prior: Array) -> Array:
    """Return the mean score of a row's own class less that of another class, drawn by the prior; (P,) of (P, K, n)."""
    of_own, whole = scores[:, own, np.arange(len(own))], np.einsum("k,pkn->pn", prior, scores)
    others = (whole - prior[own] * of_own) / (1.0 - prior[own])
    return np.asarray((of_own - others).mean(axis=1))


class _Path:
    """The parts chosen so far, and their weights; mutable."""

    def __init__(self, main: Array, every: Array, possible: Array | None, own: Codes, log_prior: Array) -> None:
        self.main, self.every, self.given = main, every, (possible, own, log_prior)
        self.chosen: list[int] = []
        self.x = np.r_[1.0, np.zeros(len(log_prior))]

    def fit(self, penalty: float) -> Array:
        """Return the weights under a penalty: of the main score, of the parts chosen, and the offsets."""
        for _ in range(ROUNDS):
            problem = self._problem(penalty)
            self.x = problem.minimise(self.x)
            gains = problem.gains(self.x, self.every)
            gains[self.chosen] = 0.0
            best = np.argsort(-gains, kind="stable")[:PARTS_PER_ROUND]
            more = [int(e) for e in best if gains[e] > LEAST_GAIN]
            if not more:
                return self.x
            P = 1 + len(self.chosen)
            used = np.flatnonzero(self.x[1:P] > 0)
            self.x = np.r_[self.x[0], self.x[1:P][used], np.zeros(len(more)), self.x[P:]]
            self.chosen = [self.chosen[at] for at in used] + more
        self.x = self._problem(penalty).minimise(self.x)
        return self.x

    def _problem(self, penalty: float) -> WeightProblem:
        P, K = 1 + len(self.chosen), len(self.given[2])
        scores = np.concatenate([self.main, self.every[self.chosen]])
        precision = np.diag(np.r_[np.full(P, penalty), np.full(K, 1 / OFFSET_SD**2)])
        least = np.r_[LEAST_MAIN, np.zeros(P - 1), np.full(K, -np.inf)]
        return WeightProblem(scores, *self.given, np.r_[1.0, np.zeros(P - 1 + K)], precision, least)
