"""Every exception and warning of deciban.

An error says what is wrong, where, with the value, and the remedy; and carries them as attributes, so that code never
reads them back from the text. All errors are `ValueError`s, so that code written for scikit-learn catches them too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from enum import Enum
from typing import Any, Final, Literal, NamedTuple, Self, TypeVar

E = TypeVar("E", bound="DecibanError")


class _Placeholder(Enum):
    """The type of `HERE`; an enumeration, because its members stay the same object when they are pickled."""

    HERE = "here"


HERE: Final = _Placeholder.HERE  # stands in a message for the place of the error: "row 17", "train.csv, line 19"


class Argument(NamedTuple):
    """An argument that a remedy names; the command line writes it as an option.

    >>> str(Argument("skip_bad", True))
    'skip_bad=True'
    """

    name: str
    value: Any = None
    python: str = ""  # the Python code, where it is not name=value

    def __str__(self) -> str:
        return self.python or f"{self.name}={self.value!r}"


class Remedy(str):
    """What to do about an error: text, in which arguments can be written in the words of Python or of another face.

    >>> remedy = Remedy("Mend the row, or skip bad rows (", Argument("skip_bad", True), ").")
    >>> remedy
    'Mend the row, or skip bad rows (skip_bad=True).'
    >>> remedy.written(lambda argument: "--skip-bad")
    'Mend the row, or skip bad rows (--skip-bad).'
    """

    parts: tuple[str | Argument, ...]

    def __new__(cls, *parts: str | Argument) -> Self:
        remedy = super().__new__(cls, "".join(map(str, parts)))
        remedy.parts = parts
        return remedy

    def written(self, spell: Callable[[Argument], str]) -> str:
        """The text, with each argument as `spell` writes it."""
        return "".join(spell(part) if isinstance(part, Argument) else part for part in self.parts)


OR_GAUSSIAN = Remedy("Drop the row, or declare the column ", Argument("family", "gaussian", "Gaussian()"), ".")


class DecibanError(ValueError):
    """Base class of all errors.

    Parameters
    ----------
    *message : str or HERE
        What is wrong, in parts that are joined; `HERE` is replaced by the place of the error.
    row : int, optional
        The row at fault: counted from 0 in a table in memory; in a file by its line, or from 1 where it has no lines.
    columns : sequence, optional
        Names of the columns at fault, or their positions where they have no names.
    label : optional
        The class at fault.
    remedy : str, optional
        What to do; printed behind the message.
    place : str, optional
        Where the error is, in words. By default "row" and its number.

    Attributes
    ----------
    row, label, remedy, place
        As given; None where it is not known.
    columns : tuple or None
        As given.

    Examples
    --------
    >>> error = DomainError("column 'age' holds -3 (", HERE, ").", row=17, columns=["age"], remedy="Drop the row.")
    >>> print(error)
    column 'age' holds -3 (row 17). Drop the row.
    >>> print(error.at("train.csv, line 19", 19))
    column 'age' holds -3 (train.csv, line 19). Drop the row.
    """

    def __init__(
        self,
        *message: str | Literal[_Placeholder.HERE],
        row: int | None = None,
        columns: Sequence[Any] | None = None,
        label: Any = None,
        remedy: str | None = None,
        place: str | None = None,
    ) -> None:
        super().__init__(*message)
        self.row = row
        self.columns = None if columns is None else tuple(columns)
        self.label = label
        self.remedy = remedy
        self.place = place

    def at(self, place: str, row: int | None = None) -> Self:
        """The same error at a place, and the number of the row there; unchanged where it has a place already."""
        return self if self.place is not None else self.but(place=place, row=self.row if row is None else row)

    def but(self, *message: str | Literal[_Placeholder.HERE], **attributes: Any) -> Self:
        """The same error with another message, where one is given, and other attributes."""
        other = copy(self)
        other.args = message or self.args
        vars(other).update(attributes)
        return other

    def turned_into(self, kind: type[E]) -> E:
        """An error of another class with the same message and attributes."""
        other = kind(*self.args)
        vars(other).update(vars(self))
        return other

    def text(self, spell: Callable[[Argument], str] = str) -> str:
        """Message and remedy, the arguments that it names written by `spell`."""
        here = f"row {self.row}" if self.place is None else self.place
        what = "".join(here if part is HERE else str(part) for part in self.args)
        if self.place is not None and HERE not in self.args:
            what = f"{here}: {what}"
        if not self.remedy:
            return what
        return f"{what} {self.remedy.written(spell) if isinstance(self.remedy, Remedy) else self.remedy}"

    def __str__(self) -> str:
        return self.text()

    def __reduce__(self) -> tuple[type[Self], tuple[Any, ...], dict[str, Any]]:
        # as inherited; but tblib, which Dask imports, makes copies share attributes if there is none
        return type(self), self.args, dict(vars(self))


class DomainError(DecibanError):
    """A value that the family gives probability zero, or cannot take."""


class NotANumberError(DomainError, TypeError):
    """A value that is not a number where numbers are needed; a `TypeError` too, as float() would raise."""


class MissingValueError(DomainError):
    """A missing value where a family learns from complete rows only."""


class InputError(DecibanError):
    """Wrong form of the input: shape, columns, type, or labels."""


class NoRowsError(InputError):
    """A file or table without a row that can be read."""


class EngineError(DecibanError):
    """A cluster or database that could not do its part of the work; no model was made."""


class UnknownLabelError(InputError):
    """A label that is not one of the model's classes."""


class WeightError(DecibanError):
    """Row weights that are not finite, are below zero, or are all zero."""


class PriorError(DecibanError):
    """A class prior that is negative, does not sum to 1, or names an unknown class."""


class CostError(DecibanError):
    """A cost matrix of the wrong shape, or with values that are no costs."""


class HyperparameterError(DecibanError):
    """A parameter prior, a rule or a structure that the family does not have."""


class EmptyClassError(DecibanError):
    """A class without rows, under a rule that has no prior."""


class SingularError(DecibanError):
    """A covariance that cannot be inverted: too few rows, or linearly dependent columns."""


class NoModeError(DecibanError):
    """A posterior without a mode; its mean exists."""


class MergeError(DecibanError):
    """Two models whose columns, families or frozen choices differ, so that they cannot be added."""


class UnlearnError(DecibanError):
    """Rows that cannot be unlearnt, because sums would fall below zero."""


class NotLearntError(UnlearnError):
    """Rows that the model never learnt, so that they cannot be unlearnt or left out."""


class NotAvailableError(DecibanError):
    """An operation that this model or family does not have."""


class ModelFileError(DecibanError):
    """A model file that is damaged, incomplete, or of a newer version; or a model that cannot be stored."""


class SaveError(ModelFileError, OSError):
    """A model file that could not be written; an existing file is left as it was."""


class UsageError(DecibanError):
    """Wrong use of a command: a file, column or class that does not exist, or options that contradict each other."""


class ImpossibleRowWarning(UserWarning):
    """A row has probability zero under every class; its posterior is the class prior."""


class PrecisionWarning(UserWarning):
    """Loss of precision: a class lies many standard deviations from the origin of the sums."""


class AbsurdNumbersWarning(UserWarning):
    """Many rows have numbers so large that they count as missing."""


class ConvergenceWarning(UserWarning):
    """An iteration stopped before it converged."""


class EmptyComponentWarning(UserWarning):
    """A mixture component lost all its rows and was dropped."""


def column_error(
    kind: type[E],
    name: Any,
    what: str,
    remedy: str | None = None,
    row: int | None = None,
    why: str = ".",
    label: Any = None,
) -> E:
    """The error for a column, or for its value in a row; `why` follows the place.

    >>> print(column_error(DomainError, "age", "holds -3", "Drop the row.", 17, "; Poisson counts must be ≥ 0."))
    column 'age' holds -3 (row 17); Poisson counts must be ≥ 0. Drop the row.
    """
    what = f"column {str(name)!r} {what}"
    message = (what, why) if row is None else (what, " (", HERE, ")", why)
    return kind(*message, row=row, columns=[name], label=label, remedy=remedy)


def shortlist(items: Sequence[object], most: int = 5) -> str:
    """The first items as text, and the number of the others.

    >>> shortlist([3, 1, 4, 1, 5, 9, 2])
    '3, 1, 4, 1, 5 and 2 more'
    """
    shown = ", ".join(str(item) for item in items[:most])
    return shown if len(items) <= most else f"{shown} and {len(items) - most} more"
