"""Every exception and warning of deciban.

An error says what is wrong, where, with the value, and the remedy. All errors are `ValueError`s, so that code written
for scikit-learn catches them too.
"""

from __future__ import annotations

from collections.abc import Sequence


class DecibanError(ValueError):
    """Anything deciban refuses to do."""


class DomainError(DecibanError):
    """A value lies outside what the family can produce."""


class NotANumberError(DomainError, TypeError):
    """A value that is not a number where numbers are needed; a `TypeError` too, as float() would raise."""


class InputError(DecibanError):
    """The input's form is wrong: shape, columns, type, or labels."""


class WeightError(DecibanError):
    """Row weights must be finite, at least zero, and not all zero."""


class PriorError(DecibanError):
    """A class prior that is not one: negative, not summing to 1, or naming an unknown class."""


class CostError(DecibanError):
    """A cost matrix that does not describe costs."""


class HyperparameterError(DecibanError):
    """A parameter prior, a rule or a structure that the family does not have."""


class EmptyClassError(DecibanError):
    """A class has no rows, and the rule has no prior to fall back on."""


class SingularError(DecibanError):
    """A covariance cannot be inverted: too few rows, or columns that repeat each other."""


class NoModeError(DecibanError):
    """The posterior has no mode; its mean exists."""


class MergeError(DecibanError):
    """Two models that do not describe the same thing."""


class UnlearnError(DecibanError):
    """Rows cannot be taken back, because sums would fall below zero."""


class NotLearntError(UnlearnError):
    """Rows that this model never learnt."""


class NotAvailableError(DecibanError):
    """The model cannot do this, and says why."""


class ModelFileError(DecibanError):
    """A file that is no model, not whole, not as it was written or from a newer deciban; or what no file can hold."""


class SaveError(ModelFileError, OSError):
    """A model file could not be written; what was there before still is."""


class UsageError(DecibanError):
    """A command that cannot be meant: a file, column or class that is not there, options that contradict each other."""


class ImpossibleRowWarning(UserWarning):
    """Every class gives a row probability zero; the answer for it is the class prior."""


class PrecisionWarning(UserWarning):
    """Digits were lost, because classes lie many standard deviations from the origin of the sums."""


class ConvergenceWarning(UserWarning):
    """An iteration stopped before it settled."""


class EmptyComponentWarning(UserWarning):
    """A component of a mixture lost all its rows, and was dropped."""


def shortlist(items: Sequence[object], most: int = 5) -> str:
    """Some items as text, and how many more there are.

    >>> shortlist([3, 1, 4, 1, 5, 9, 2])
    '3, 1, 4, 1, 5 and 2 more'
    """
    shown = ", ".join(str(item) for item in items[:most])
    return shown if len(items) <= most else f"{shown} and {len(items) - most} more"
