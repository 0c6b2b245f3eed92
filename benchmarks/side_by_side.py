"""Fit and scores of one workload beside its peers, on the same data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from harness import Reach, Row, first_call, largest_difference, versus
from workloads import Workload

WARM_ROWS = 200_000  # enough for every kernel to be wanted
COMPARED_ROWS = 100_000
UNDERFLOW = -700.0  # some peers take the log of a probability that has become 0


@dataclass(frozen=True)
class Peer:
    """Somebody else's classifier, and by how much we must be ahead of it."""

    name: str
    estimator: Any
    fit: Reach | None = None
    scores: Reach | None = None


def fit_and_scores(work: Workload, share: float, *peers: Peer) -> Iterator[Row | str]:
    """Two rows for each peer: learning all rows, and the log posteriors of all rows."""
    n = int(work.rows * share)
    yield compiling(work, min(n, WARM_ROWS))
    X, y = work.make(n)
    for peer in peers:
        yield versus(
            f"{work.name} fit, {work.size(n)}",
            peer.name,
            lambda peer=peer: clone(peer.estimator).fit(X, y),
            lambda: work.classifier().fit(X, y),
            peer.fit,
            lambda theirs, ours: posterior_gap(
                theirs.predict_log_proba(X[:COMPARED_ROWS]), ours.predict_log_proba(X[:COMPARED_ROWS])
            ),
        )
        theirs, ours = clone(peer.estimator).fit(X, y), work.classifier().fit(X, y)
        yield versus(
            f"{work.name} scores, {work.size(n)}",
            peer.name,
            lambda theirs=theirs: theirs.predict_log_proba(X),
            lambda ours=ours: ours.predict_log_proba(X),
            peer.scores,
            posterior_gap,
        )


def compiling(work: Workload, rows: int) -> str:
    """Compile, and say what it took."""
    X, y = work.make(rows)
    spent = first_call(lambda: work.classifier().fit(X, y).predict_log_proba(X))
    return f"compiling what was not yet compiled took {spent:.1f} s CPU, once, not counted above"


def posterior_gap(theirs: Any, ours: Any) -> float:
    """Max |difference| of log posteriors, where the peer's probabilities have not become 0."""
    there = theirs > UNDERFLOW
    return largest_difference(theirs[there], np.asarray(ours)[there])
