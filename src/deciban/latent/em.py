"""A progress bar for what takes longer than a second; on a terminal only, and on its standard error."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from deciban.errors import ConvergenceWarning, DecibanError

PATIENCE = 1.0  # seconds before a bar shows


def _gain(value: float) -> str:
    return f"gain {value:.1e} a row"


@contextmanager
def bar(label: str | None, total: int, wording: Callable[[float], str] = _gain) -> Iterator[Callable[[float], None]]:
    """A function to be told the gain of each step, or what `wording` puts into words; without a label it does nothing.

    >>> with bar(None, 10) as tell:
    ...     tell(0.5)
    """
    if label is None or not sys.stderr.isatty():
        yield lambda gain: None
        return
    shown = _Bar(label, total, wording)
    try:
        yield shown.tell
    finally:
        shown.close()


class _Bar:
    """Made when it is first needed: most runs end before."""

    def __init__(self, label: str, total: int, wording: Callable[[float], str]) -> None:
        self.label, self.total, self.steps, self.start = label, total, 0, time.monotonic()
        self.wording = wording
        self.progress: Any = None

    def tell(self, value: float) -> None:
        self.steps += 1
        if self.progress is None and time.monotonic() - self.start > PATIENCE:
            self._open()
        if self.progress is not None:
            self.progress.update(self.task, completed=self.steps, description=f"{self.label}, {self.wording(value)}")

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import Progress

        self.progress = Progress(console=Console(stderr=True), transient=True)
        self.task = self.progress.add_task(self.label, total=self.total)
        self.progress.start()

    def close(self) -> None:
        if self.progress is not None:
            self.progress.stop()


# -- em ----------
# One EM loop for every model with hidden variables.
#
#     E   responsibilities, and from them the sums that complete data would have had
#     M   the family's own `estimate` on those sums
#
# The objective (log-likelihood under `ml`, plus log prior under `map`) never falls; the loop stops when a pass over the
# data gains less than `tol` a row. In stepwise mode (Cappé & Moulines, On-line EM, 2009) each batch moves the sums,
#
#     s ← (1 − η_t) s + η_t (N/N_t) s_t        η_t = (t + 2)^−power, ½ < power ≤ 1
#
# and since sums are a vector space, that line is the whole algorithm. No random numbers are drawn here, and nothing
# depends on the number of threads.


class Latent(Protocol):
    """What the loop needs of a model: a guess in, a better guess and the objective of the old one out."""

    def step(self, current: Any) -> tuple[Any, float]:
        """One E-step and one M-step; the objective is that of `current`."""


@dataclass
class Trace:
    """The objective after each iteration, and why the loop stopped."""

    objective: list[float] = field(default_factory=list)
    converged: bool = False
    interrupted: bool = False
    starts: list[float] = field(default_factory=list)  # what the short runs reached, where there were several

    @property
    def iterations(self) -> int:
        """How many steps were taken."""
        return len(self.objective)

    def __repr__(self) -> str:
        end = "interrupted" if self.interrupted else "converged" if self.converged else "not converged"
        last = f", objective {self.objective[-1]:.6g}" if self.objective else ""
        return f"Trace({self.iterations} iterations, {end}{last})"


def run(
    step: Callable[[Any], tuple[Any, float]],
    start: Any,
    weight: float,
    max_iter: int,
    tol: float,
    warn: bool = True,
    *,
    climbs: bool = True,
    label: str | None = None,
) -> tuple[Any, Trace]:
    """Iterate from `start`; an interruption keeps the best guess so far.

    climbs : False where steps may lower the objective a little: the loop then stops at small changes either way
    label  : what a progress bar is headed with; it shows on a terminal, once a second has passed
    """
    current, trace = start, Trace()
    try:
        with bar(label, max_iter) as tell:
            for _ in range(max_iter):
                current, objective = step(current)
                if not np.isfinite(objective):
                    raise DecibanError(
                        f"the objective became {objective} at iteration {trace.iterations}: a component has collapsed. "
                        "Use rule 'map' with pseudo-counts of at least 1, whose prior holds it, or fewer components."
                    )
                trace.objective.append(objective)
                gain = objective - trace.objective[-2] if trace.iterations > 1 else np.inf
                tell(gain / weight)
                if (gain if climbs else abs(gain)) < tol * weight:
                    trace.converged = True
                    break
    except KeyboardInterrupt:
        trace.interrupted = True
        _say(f"EM was interrupted after {trace.iterations} iterations; the best guess so far is kept.")
        return current, trace
    if warn and not trace.converged and tol > 0:
        gains = np.diff(trace.objective[-4:]) / weight
        _say(
            f"EM stopped after {trace.iterations} iterations, still gaining {', '.join(f'{g:.2g}' for g in gains)} "
            f"a row. Raise max_iter, or tol (now {tol:g})."
        )
    return current, trace


def best_of(attempts: Iterable[Callable[[], tuple[Any, Trace]]]) -> tuple[Any, list[float]]:
    """The guess of the attempt that climbed highest, and how high each did; attempts that collapse are passed over.

    An interruption keeps the best of those that were made.
    """
    best, reached = None, []
    failure: DecibanError | None = None
    try:
        for attempt in attempts:
            try:
                guess, trace = attempt()
            except DecibanError as error:
                failure = error
                continue
            if best is None or trace.objective[-1] > max(reached):
                best = guess
            reached.append(trace.objective[-1])
            if trace.interrupted:
                break
    except KeyboardInterrupt:
        if best is None:
            raise
    if best is None:
        raise failure or DecibanError("there was nothing to start from. Ask for at least one start.")
    return best, reached


def stepwise(
    collect: Callable[[Any, Any], tuple[Any, float]],
    read: Callable[[Any], Any],
    start: Any,
    batches: Iterable[tuple[Any, float]],
    weight: float,
    power: float = 0.7,
) -> Any:
    """Online EM from the sums `start`: for each (batch, its weight) a step towards the sums of that batch.

    collect(batch, density) gives the batch's sums; `weight` is that of all rows together.
    """
    sums = start
    for t, (batch, its_weight) in enumerate(batches):
        eta = (t + 2.0) ** -power
        found, _ = collect(batch, read(sums))
        sums = sums * (1 - eta) + found * (eta * weight / its_weight)
    return sums


def _say(message: str) -> None:
    warnings.warn(message, ConvergenceWarning, stacklevel=4)
