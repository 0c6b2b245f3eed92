"""The contract that every family keeps, and what it gets for keeping it.

A family says how one class produces data. It writes

    collect(X, members) → Stats            the sums it needs of the data, for all K classes at once
    estimate(stats, rule) → Density        parameters from the sums and the prior, never from the data

and inherits: fit with or without classes, learn, unlearn, merge, weights, growth, k-fold, leave-one-out (by
subtraction; most families override it with an identity), mixtures, and every law in tests/laws.

X inside a family is what its `encode` returned: a float array with NaN for missing values, a CSR matrix, or codes.
`encode` checks what can be checked cheaply; whatever else is bad shows as a sum or a score that is not finite, and
then `check` is called to say which value it was.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, get_args

import numpy as np

from deciban.errors import DecibanError, EmptyClassError, HyperparameterError
from deciban.read.numbers import dense_numbers, refuse_infinite
from deciban.statistics import Array, Axis, Members, Stats

if TYPE_CHECKING:
    from deciban.families.fitted import Fitted

Rule: TypeAlias = Literal["ml", "map", "mean", "predictive"]
RULES: tuple[Rule, ...] = get_args(Rule)
Rows: TypeAlias = Any  # what a family's `encode` returns: an array, a CSR matrix, codes, documents or blocks


class Density(ABC):
    """K densities side by side, ready to score rows."""

    @property
    @abstractmethod
    def K(self) -> int:
        """How many groups."""

    @abstractmethod
    def log_density(self, X: Any) -> Array:
        """(n, K) log f(x|k)."""

    @abstractmethod
    def sample(self, codes: Array, rng: np.random.Generator) -> Any:
        """One row from group codes[i] for each i."""

    def log_base(self, X: Any) -> Array | float:
        """(n,) what `log_density` leaves out because it is the same for every group, such as a coefficient."""
        return 0.0

    def encode(self, X: Any, columns: Sequence[str]) -> Any:
        """Turn columns as given into what this density scores; for densities that are known, not learnt."""
        return dense_numbers(X, columns)


@dataclass(frozen=True, eq=False)
class Family(ABC):
    """How one class produces data; frozen hyper-parameters only."""

    @abstractmethod
    def collect(self, X: Any, members: Members) -> Stats:
        """The sums this family needs, for every group at once."""

    @abstractmethod
    def estimate(self, stats: Any, rule: Rule) -> Density:
        """Parameters from sums and prior; `predictive` integrates them out and is just another density."""

    # -- derived; families override what they know a shorter way to -----------------------------------------------
    def leave_one_out(self, stats: Any, X: Any, members: Members, rule: Rule) -> Array:
        """(n, K) log f(x_i | k) from sums without row i, all of its weight removed; by subtraction, row by row."""
        scores = np.empty((len(members), members.K))
        for i in range(len(members)):
            row = X[i : i + 1]
            left = stats - self.collect(row, members.take(slice(i, i + 1)))
            try:
                scores[i] = self.estimate(left, rule).log_density(row)[0]
            except DecibanError:  # the class is undefined without the row: it has no density left to give
                scores[i] = self.estimate(stats, rule).log_density(row)[0]
                scores[i, own_codes(members)[i]] = -np.inf
        return scores

    def footprint(self, X: Any, members: Members) -> Stats:
        """The sums by which rows that were never learnt show; a family may leave at 0 what shows nothing."""
        return self.collect(X, members)

    def left_out_of(self, density: Any, stats: Any, X: Any, members: Members, rule: Rule) -> Array:
        """As `leave_one_out`, for who has the density of the sums at hand: families that begin with it override it."""
        return self.leave_one_out(stats, X, members, rule)

    def left_out_alike(self, stats: Any, X: Any, members: Members, rule: Rule) -> Callable[[Any, Array], Array]:
        """`leave_one_out` of some rows, by families that differ from this in the prior alone: they may share work."""
        return lambda other, rows: other.leave_one_out(stats, X[rows], members.take(rows), rule)

    def choose(self, stats: Any, rows: tuple[Any, Members] | None = None, rule: Rule = "mean") -> Self:
        """Freeze what was left open (origin, prior scale and strength, structure) from the first rows' statistics."""
        return self

    def begin(self, X: Any, members: Members, columns: Sequence[Any]) -> Any:
        """The first rows' sums, as the beginning of a stream's: what `running` describes."""
        from deciban.families.product import Running

        return Running(self, X, members, columns)

    def finished(self) -> Self:
        """As it is once the first fit is over: a vocabulary that was being learnt is then complete."""
        return self

    def refined(self, stats: Any, X: Any, members: Members) -> tuple[Self, Any]:
        """Choices that need every row, and the sums under them: families with hidden variables iterate here."""
        return self, stats

    def pick(self, table: Any, positions: Sequence[int] | None = None) -> Any:
        """The columns of a table that are to be encoded: numbers or names, side by side."""
        return table.pick(positions)

    def encode(self, X: Any, columns: Sequence[str], stats: Any = None) -> Any:
        """Turn columns as given into what this family works on; `stats` holds the names already known."""
        return dense_numbers(X, columns)

    def check(self, X: Any, columns: Sequence[str], learning: bool = False) -> None:
        """Raise a DomainError that names the first bad value, if there is one."""
        refuse_infinite(X, columns)

    @property
    def shared(self) -> bool:
        """Whether a row of one class moves the density of others too, as a tied covariance does."""
        return False

    def candidates(self, X: Any, members: Members) -> Sequence[Sequence[Self]]:
        """What this family could become, where that must be settled before rows are summed; labels judge them.

        Lines of families, along each of which the loss falls and then rises; of near equals the first line's is taken.
        """
        return [[self]]

    def ahead(self, X: Any, rows: Array, some: Any) -> Any:
        """Rows of X that are looked at ahead; a family may keep what it finds out for when they come again."""
        return some

    def unjudged(self, X: Any, members: Members) -> Self:
        """What it becomes where there are no labels to judge by."""
        return self

    def summed_as(self, chosen: Any) -> Self:
        """What was asked for, less the choices under which sums were made: they cannot be made again from sums."""
        return self

    @property
    def open(self) -> bool:
        """Whether `choose` must see the first rows before the others are summed; else one pass sums them all."""
        return True

    @property
    def mixes(self) -> bool:
        """Whether groups that nobody has named can be made of it: its sums under soft members are all it needs."""
        return True

    @property
    def calibration(self) -> str | None:
        """How answers are calibrated unless the asker says: by nothing, for most families."""
        return None

    def split(self, *values: Any) -> list[tuple[Any, ...]]:
        """(family, value, …) of each block: one, but for a product; values are its rows, statistics or densities."""
        return [(self, *values)]

    def lengths(self, X: Any) -> Array | None:
        """(n,) how many events each row counts, where it counts events; None otherwise."""
        return None

    def chosen_by_labels(self) -> list[str]:
        """What `choose` decides by looking at labels: figures on the same rows are then selected on."""
        return []

    def select(self, features: Array) -> Self:
        """The same prior for some of the features only."""
        return self

    def subset(self, stats: Any, features: Array, columns: Sequence[Any]) -> tuple[Self, Any]:
        """Family and statistics of some of the features, in the order given."""
        axis = "word" if "word" in stats.labels else "feature"
        return self.select(features), stats.select(axis, features)

    def settled(self, chosen: Any) -> Self:
        """What was asked for, less the choices that statistics alone cannot make again: they stay as chosen."""
        return self

    def rewritten(self, **hyper: Any) -> Self:
        """The same family with other hyper-parameters; the statistics it reads stay the same."""
        known = {f.name for f in fields(self)}
        for name in hyper:
            if name not in known:
                has = ", ".join(sorted(known)) or "none"
                raise HyperparameterError(f"{type(self).__name__} has no hyper-parameter {name!r}; it has {has}.")
        return replace(self, **hyper)

    def fit(self, X: Any, sample_weight: Any = None) -> Fitted:
        """Learn without classes: one coin, one die, one Gaussian."""
        from deciban.families.fitted import Fitted

        return Fitted.of(self, X, sample_weight)

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return False
        return all(_alike(getattr(self, f.name), getattr(other, f.name)) for f in fields(self))

    __hash__ = None  # type: ignore[assignment]


def check_rule(rule: str) -> None:
    """Refuse a rule that is not one of the four."""
    if rule not in RULES:
        raise HyperparameterError(f"rule={rule!r} is not a rule. Choose one of {', '.join(RULES)}.")


def own_codes(members: Members) -> Array:
    """The class of each row; leave-one-out makes sense for hard members alone."""
    if members.codes is None:
        raise HyperparameterError("rows that belong to several classes cannot be left out. Use hard labels.")
    return members.codes


def require_rows(weight: Array, classes: Axis, family: str) -> None:
    """Refuse a maximum-likelihood estimate of a class with nothing to estimate it from; weight is (K,) or (K, D)."""
    empty = np.argwhere(weight <= 0)
    if len(empty):
        at = empty[0]
        name = classes.names[at[0]]
        where = f"class {name!r}" if len(at) == 1 else f"class {name!r}, feature {at[1]}"
        raise EmptyClassError(
            f"{where} has no rows, so rule 'ml' has no {family} estimate for it. "
            "Use rule 'mean', 'map' or 'predictive', which fall back on the prior, or learn rows of that class."
        )


def _alike(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return a is b or (a is not None and b is not None and np.array_equal(a, b))
    return type(a) is type(b) and a == b
