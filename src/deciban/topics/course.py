"""Steps until held-out documents are predicted no better; the best state is kept, also when interrupted."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from deciban.errors import ConvergenceWarning, DecibanError
from deciban.kernels.choice import Array
from deciban.latent.em import Trace
from deciban.progress import progress_bar
from deciban.topics.judging import Completion
from deciban.topics.state import Priors

PATIENCE = 5  # steps that together must gain `tol`
LEAST = 15  # steps before stopping is thought of: topics part first, and their priors are learnt after that
WORSE = 1.02  # times the best perplexity: no use going on


class Engine(Protocol):
    """Something that finds topics step by step."""

    priors: Priors

    def step(self) -> None:
        """Go over all documents once."""

    def table(self, words: Array) -> Array:
        """p(w|t) of some words."""

    def snapshot(self) -> Any:
        """What to go back to."""

    def restore(self, kept: Any) -> None:
        """Back to a snapshot."""


class Moment(NamedTuple):
    """What can be seen after a step."""

    step: int
    perplexity: float
    engine: Engine


Watch = Callable[[Moment], Any]


def run(
    engine: Engine,
    judge: Completion,
    max_iter: int,
    tol: float,
    label: str | None = None,
    watch: Watch | None = None,
    relax: Callable[[], bool] | None = None,
) -> Trace:
    """Step until PATIENCE steps gain less than a share `tol` of perplexity, and go back to the best.

    relax : called when nothing is gained any more; while it says True, and helps, the best state goes on

    The trace's objective is −log perplexity: the mean log probability of a token.
    """
    trace, best, kept, since = Trace(), np.inf, None, 0
    try:
        with progress_bar(label, max_iter) as update:
            for number in range(1, max_iter + 1):
                engine.step()
                perplexity = judge(engine.table(judge.words), engine.priors.alpha)
                if not np.isfinite(perplexity):
                    raise DecibanError(f"perplexity became {perplexity} at step {number}. Raise alpha or beta.")
                trace.objective.append(-float(np.log(perplexity)))
                update(number, f"perplexity {perplexity:,.0f}")
                if perplexity < best:
                    best, kept = perplexity, engine.snapshot()
                if watch is not None:
                    watch(Moment(number, perplexity, engine))
                if number >= LEAST and (_settled(trace.objective, tol, since) or perplexity > WORSE * best):
                    gained = since == 0 or max(trace.objective[since:]) > max(trace.objective[:since])
                    if relax is None or not gained or not relax():
                        trace.converged = True
                        break
                    engine.restore(kept)
                    since = number
    except KeyboardInterrupt:
        trace.interrupted = True
        warnings.warn(
            f"interrupted after {trace.iterations} iterations; the topics found so far are kept.",
            ConvergenceWarning,
            stacklevel=3,
        )
    if kept is not None:
        engine.restore(kept)
    return trace


def _settled(objective: list[float], tol: float, since: int = 0) -> bool:
    """Whether the last steps have gained next to nothing, by their best."""
    if tol <= 0 or len(objective) - since <= PATIENCE:
        return False
    return max(objective[-PATIENCE:]) - max(objective[:-PATIENCE]) < tol
