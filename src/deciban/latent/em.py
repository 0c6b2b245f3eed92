"""The EM loop of every model with hidden variables.

    E   responsibilities, and from them the sums that complete data would have had
    M   the family's own `estimate` on those sums

The objective (the log-likelihood under rule "ml", plus the log prior under "map") never decreases; the loop stops when
an iteration gains less than `tol` per row. In stepwise mode (Cappé & Moulines, On-line EM, 2009) each batch moves the
sums,

    s ← (1 − η_t) s + η_t (N/N_t) s_t        η_t = (t + 2)^−power, ½ < power ≤ 1

No random numbers are drawn here, and the result does not depend on the number of threads.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from deciban.errors import ConvergenceWarning, DecibanError, HyperparameterError, NotAvailableError
from deciban.families.protocol import Density, Family, Rows, Rule, check_rule
from deciban.statistics import Array, Members, Stats
from deciban.terminal import progress_bar

Sums = TypeVar("Sums", bound=Stats)
Batch = TypeVar("Batch")
Estimate = TypeVar("Estimate")  # the current parameters, with the sums they were estimated from

NOT_EXACT = (
    "a model with hidden variables cannot be unlearnt exactly and has no exact leave-one-out, because its sums hold "
    "expected values, which depend on the estimate under which they were collected: refit it without those rows. To "
    "evaluate on learnt rows use k-fold (cross_val_predict)."
)


@dataclass
class Trace:
    """The objective after each iteration, and why the loop stopped."""

    objective: list[float] = field(default_factory=list)
    converged: bool = False
    interrupted: bool = False
    starts: list[float] = field(default_factory=list)  # objectives of the short runs, if several starts competed

    @property
    def iterations(self) -> int:
        """Number of iterations."""
        return len(self.objective)

    def __repr__(self) -> str:
        end = "interrupted" if self.interrupted else "converged" if self.converged else "not converged"
        last = f", objective {self.objective[-1]:.6g}" if self.objective else ""
        return f"Trace({self.iterations} iterations, {end}{last})"


def run(
    step: Callable[[Estimate], tuple[Estimate, float]],
    start: Estimate,
    weight: float,
    max_iter: int,
    tol: float,
    warn: bool = True,
    *,
    monotone: bool = True,
    label: str | None = None,
) -> tuple[Estimate, Trace]:
    """Iterate `step` from `start`; an interruption keeps the last estimate.

    step     : takes an estimate, returns the next one and the objective of the one it was given
    weight   : total weight of the rows, which gains are divided by
    monotone : False if steps may lower the objective slightly; the loop then stops at small changes of either sign
    label    : heading of the progress bar; None shows none
    """
    current, trace = start, Trace()
    try:
        with progress_bar(label, max_iter) as update:
            for _ in range(max_iter):
                current, objective = step(current)
                if not np.isfinite(objective):
                    raise DecibanError(
                        f"the objective became {objective} at iteration {trace.iterations}: a component has collapsed. "
                        "Use rule 'map' with pseudo-counts of at least 1, or fewer components."
                    )
                trace.objective.append(objective)
                gain = objective - trace.objective[-2] if trace.iterations > 1 else np.inf
                update(trace.iterations, f"gain {gain / weight:.1e} per row")
                if (gain if monotone else abs(gain)) < tol * weight:
                    trace.converged = True
                    break
    except KeyboardInterrupt:
        trace.interrupted = True
        _warn(f"EM was interrupted after {trace.iterations} iterations; the last estimate is kept.")
        return current, trace
    if warn and not trace.converged and tol > 0:
        gains = np.diff(trace.objective[-4:]) / weight
        _warn(
            f"EM stopped after {trace.iterations} iterations, still gaining {', '.join(f'{g:.2g}' for g in gains)} "
            f"per row. Raise max_iter, or tol (now {tol:g})."
        )
    return current, trace


def best_of(attempts: Iterable[Callable[[], tuple[Estimate, Trace]]]) -> tuple[Estimate, list[float]]:
    """Return the estimate with the highest objective, and the objective of each attempt.

    Attempts that collapse are skipped. An interruption keeps the best of the attempts made so far.
    """
    best: list[Estimate] = []
    reached: list[float] = []
    failure: DecibanError | None = None
    try:
        for attempt in attempts:
            try:
                estimate, trace = attempt()
            except DecibanError as error:
                failure = error
                continue
            if not best or trace.objective[-1] > max(reached):
                best = [estimate]
            reached.append(trace.objective[-1])
            if trace.interrupted:
                break
    except KeyboardInterrupt:
        if not best:
            raise
    if not best:
        raise failure or DecibanError("no start was made. Ask for at least one start.")
    return best[0], reached


def stepwise(
    collect: Callable[[Batch, Sums], Sums],
    start: Sums,
    batches: Iterable[tuple[Batch, float]],
    weight: float,
    power: float,
) -> Sums:
    """Move the sums `start` towards collect(batch, sums), batch by batch; `weight` is the weight of all rows."""
    sums = start
    for t, (batch, batch_weight) in enumerate(batches):
        eta = (t + 2.0) ** -power
        sums = sums * (1 - eta) + collect(batch, sums) * (eta * weight / batch_weight)
    return sums


def check_em_rule(rule: Rule) -> None:
    """Refuse a rule under which EM has no objective."""
    check_rule(rule)
    if rule not in ("ml", "map"):
        raise HyperparameterError(
            f"rule={rule!r}: EM maximises under 'ml' or 'map'; other rules apply to the sums at its end."
        )


def _warn(message: str) -> None:
    warnings.warn(message, ConvergenceWarning, stacklevel=4)


# -- families with hidden variables ------------------------------------------------------------------------------------
class ExpectedSums(Stats):
    """Sums that depend on the estimate under which they were collected, so they cannot be subtracted."""

    def _refuse_negative(self, other: Self, error: type[DecibanError]) -> None:
        raise NotAvailableError(NOT_EXACT)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self.same(other)

    __hash__ = None  # type: ignore[assignment]


class FrozenEstimate(Family[Any]):
    """Family with hidden variables: rows are collected under a frozen estimate, its field `guess`."""

    FROZEN: ClassVar[tuple[str, ...]] = ("guess",)  # fields that sums alone cannot make again

    def chosen_by_labels(self) -> list[str]:
        """Return the choices that labels make.

        Returns
        -------
        list of str
            Empty: hidden variables are inferred without labels.
        """
        return []

    def keep_choices(self, chosen: Any, with_rows: bool) -> Self:
        """Copy the frozen estimate, which sums alone cannot make again.

        Parameters
        ----------
        chosen : Family
            The family whose choices are kept.
        with_rows : bool
            Whether the rows are given, so that the estimate can be made again.

        Returns
        -------
        Family
            This family, with the estimate of `chosen` if there are no rows.
        """
        return self if with_rows else replace(self, **{name: getattr(chosen, name) for name in self.FROZEN})

    def leave_one_out(self, stats: Any, X: Rows, members: Members, rule: Rule, density: Density | None = None) -> Array:
        raise NotAvailableError(NOT_EXACT)
