"""Parameters of families and estimators: their names, and the ranges of their numbers.

Parameters of an inner family are named `inner__structure`, as in scikit-learn. Ranges are checked by `fit`, and when a
file is read: a class lists them by name of the parameter in its attribute `RANGES`. Values that are not numbers, such
as "auto" or None, are left to the declared types.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, fields
from math import inf
from numbers import Real
from typing import Any, TypeAlias

from deciban.errors import HyperparameterError

# -- names -------------------------------------------------------------------------------------------------------------
SEPARATOR = "__"


class HasParameters:
    """A frozen dataclass whose fields are hyper-parameters; an estimator sets them by replacing the object."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the hyper-parameters, as scikit-learn's estimators do.

        Parameters
        ----------
        deep : bool, default=True
            Whether to include those of families inside this one, named ``inner__structure``.

        Returns
        -------
        dict of {str: object}
            Hyper-parameters by name. A family is frozen: an estimator sets them by replacing the family.

        Examples
        --------
        >>> from deciban import Poisson
        >>> Poisson(shape=2.0).get_params()
        {'shape': 2.0, 'rate': 1.0, 'limit': None}
        """
        frozen = getattr(self, "FROZEN", ())  # estimates, not parameters
        named = (f.name for f in fields(self) if f.init and f.compare and f.name not in frozen)  # type: ignore[arg-type]
        own = {name: getattr(self, name) for name in named}
        if deep:
            for name, value in list(own.items()):
                own |= inner_parameters(name, value)
        return own


def inner_parameters(name: str, value: Any) -> dict[str, Any]:
    """Return the parameters of a family, or of the families in a dict of columns, named `name__…`."""
    found: dict[str, Any] = {}
    if isinstance(value, HasParameters):
        found = value.get_params()
    elif isinstance(value, Mapping):
        for column, family in value.items():
            if isinstance(family, HasParameters):
                found[column_text(column)] = family
                found |= inner_parameters(column_text(column), family)
    return {f"{name}{SEPARATOR}{each}": inner for each, inner in found.items()}


def column_text(column: Any) -> str:
    """Return the name of a column, or of several in a tuple, in names of parameters."""
    return ",".join(map(str, column)) if isinstance(column, tuple) else str(column)


# -- ranges ------------------------------------------------------------------------------------------------------------
MOST_THREADS = 2**15  # more are taken for a mistake: each thread takes memory


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`, without those excluded.

    >>> 0 in COUNT, 1 in COUNT, 0.0 in POSITIVE
    (False, True, False)
    """

    words: str  # completes the sentence "the parameter must be …"
    low: float = -inf
    high: float = inf
    excluded: tuple[float, ...] = ()

    def __contains__(self, number: Any) -> bool:
        return bool(self.low <= number <= self.high) and number not in self.excluded


Ranges: TypeAlias = dict[str, Range]  # by name of the parameter

COUNT = Range("at least 1", low=1)
TOLERANCE = Range("at least 0 and finite", low=0, excluded=(inf,))
POSITIVE = Range("above 0 and finite", low=0, excluded=(0, inf))
HELD_OUT = Range("at least 0 and below 1", low=0, high=1, excluded=(1,))
SHARE = Range("above 0 and at most 1", low=0, high=1, excluded=(0,))
THREADS = Range(f"from 1 to {MOST_THREADS:,}", low=1, high=MOST_THREADS)
JOBS = Range(f"from 1 to {MOST_THREADS:,}, or negative: -1 for all cores", -MOST_THREADS, MOST_THREADS, (0,))


def check_ranges(owner: Any) -> None:
    """Raise HyperparameterError if a number of the owner, or one of several given as a sequence, is out of its range.

    Parameters
    ----------
    owner : object
        An estimator or family with the attribute `RANGES`.
    """
    for name, allowed in owner.RANGES.items():
        for number in _numbers(getattr(owner, name)):
            if number not in allowed:
                raise HyperparameterError(f"{type(owner).__name__}: {name}={number!r} must be {allowed.words}.")


def _numbers(value: Any) -> Iterator[Any]:
    """Yield the numbers of a parameter: itself, or those of a sequence or of a dict by class."""
    several: Any = value.values() if isinstance(value, Mapping) else value
    if isinstance(value, Mapping | Sequence | Set) and not isinstance(value, str):
        yield from (each for each in several if isinstance(each, Real))
    elif isinstance(value, Real):
        yield value
