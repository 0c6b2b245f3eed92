"""The words of topics: which come first, by probability, relevance or lift; which topics are alike.

    relevance   λ log p(w|t) + (1 − λ) log p(w|t)/p(w)
    lift        p(w|t)/p(w)                              relevance with λ = 0

Reference: Sievert and Shirley, LDAvis: a method for visualizing and interpreting topics, 2014.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from scipy.special import xlogy

from deciban.errors import HyperparameterError
from deciban.kernels.choice import Array

Ranking: TypeAlias = Literal["probability", "relevance", "lift"]
LAMBDA = 0.6  # what readers found clearest, says the reference


def relevance(topics: Array, weights: Array, lam: float = LAMBDA) -> Array:
    """(K, V) relevance of words. `topics` is (K, V) p(w|t), `weights` (K,) p(t)."""
    if not 0 <= lam <= 1:
        raise HyperparameterError(f"lam={lam} must lie between 0 (lift) and 1 (probability).")
    marginal = weights @ topics
    with np.errstate(divide="ignore"):
        log_p, log_w = np.log(topics), np.log(marginal)
    lifts = np.where(marginal > 0, log_p - np.where(marginal > 0, log_w, 0.0), -np.inf)
    if lam == 0:
        return lifts
    return log_p if lam == 1 else lam * log_p + (1 - lam) * lifts


def ranked(topics: Array, weights: Array, number: int, by: Ranking = "probability", lam: float = LAMBDA) -> Array:
    """(K, number) the columns of the first words of each topic; of equals, the earlier column.

    >>> ranked(np.array([[0.5, 0.3, 0.2], [0.5, 0.1, 0.4]]), np.array([0.5, 0.5]), 2, "lift").tolist()
    [[1, 0], [2, 0]]
    """
    if by not in get_args(Ranking):
        raise HyperparameterError(f"by={by!r} is not one of {', '.join(get_args(Ranking))}.")
    if number < 1:
        raise HyperparameterError(f"n={number} words are none. Ask for at least one.")
    lam = {"probability": 1.0, "lift": 0.0}.get(by, lam)
    return np.argsort(-relevance(topics, weights, lam), axis=1, kind="stable")[:, :number]


def divergences(topics: Array) -> Array:
    """(K, K) Jensen–Shannon divergence between topics, in bits: 0 if they are equal, 1 if they share no word.

    >>> divergences(np.array([[1.0, 0.0], [0.0, 1.0]])).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    K = len(topics)
    own = xlogy(topics, topics).sum(axis=1)
    between = np.zeros((K, K))
    for k in range(K - 1):
        middle = (topics[k] + topics[k + 1 :]) / 2
        between[k, k + 1 :] = (own[k] + own[k + 1 :]) / 2 - xlogy(middle, middle).sum(axis=1)
    return np.clip(between + between.T, 0.0, np.log(2)) / np.log(2)


def places(topics: Array) -> Array:
    """(K, 2) topics on a plane, alike ones close: classical scaling of the root of their divergence."""
    K = len(topics)
    if K < 3:
        return np.column_stack([np.arange(K, dtype=float), np.zeros(K)])
    middle = np.eye(K) - 1 / K
    values, vectors = np.linalg.eigh(-0.5 * middle @ divergences(topics) @ middle)
    found = vectors[:, -2:][:, ::-1] * np.sqrt(np.maximum(values[-2:][::-1], 0.0))
    # an eigenvector and its negative are equally good: the same picture for the same topics on every machine
    sign = np.sign(found[np.abs(found).argmax(axis=0), [0, 1]])
    return found * np.where(sign == 0, 1.0, sign)


def matched(topics: Any, others: Any) -> tuple[Array, Array]:
    """Pairs of topics by least total variation: of each topic the other's number, and the distance between them.

    >>> matched([[0.9, 0.1], [0.2, 0.8]], [[0.0, 1.0], [1.0, 0.0]])
    (array([1, 0]), array([0.1, 0.2]))
    """
    from scipy.optimize import linear_sum_assignment

    mine, theirs = np.asarray(topics, dtype=float), np.asarray(others, dtype=float)
    apart = 0.5 * np.abs(mine[:, None] - theirs[None]).sum(axis=2)
    rows, columns = linear_sum_assignment(apart)
    return columns, apart[rows, columns]


# -- table ----------
# Topics as text.


@dataclass(frozen=True, repr=False)
class TopicTable:
    """Topics with their share of all tokens and their first words, one a line.

    >>> TopicTable(((3, 0.62, ("lamb", "snow")), (0, 0.38, ("be", "not"))))
     topic  share
         3  62.0%  ████████████  lamb, snow
         0  38.0%  ███████▍      be, not
    """

    rows: tuple[tuple[int, float, tuple[str, ...]], ...]

    BAR = 12
    EIGHTHS = " ▏▎▍▌▋▊▉"

    def __repr__(self) -> str:
        width = max(shutil.get_terminal_size().columns, 60)
        most = max((share for _, share, _ in self.rows), default=1.0)
        lines = [" topic  share"]
        for topic, share, words in self.rows:
            line = f"{topic:6}  {share:5.1%}  {self._bar(share / most)}  {', '.join(words)}"
            lines.append(line if len(line) <= width else line[: width - 1] + "…")
        return "\n".join(lines)

    __str__ = __repr__

    def _bar(self, share: float) -> str:
        eighths = round(share * self.BAR * 8)
        whole, rest = divmod(eighths, 8)
        return ("█" * whole + (self.EIGHTHS[rest] if rest else "")).ljust(self.BAR)
