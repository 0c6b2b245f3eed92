"""What one column of a table is taken to be, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from deciban.errors import HyperparameterError, MergeError

Kind = Literal["yes/no", "category", "count", "number", "text", "date", "identifier", "constant"]
KINDS: tuple[str, ...] = get_args(Kind)
NUMBERS = ("count", "number")
NAMES = ("yes/no", "category")
IGNORED = ("identifier", "constant")
PARTS = ("month", "weekday", "hour")  # of a date or time: what comes round again


@dataclass(frozen=True)
class Column:
    """A column's kind is frozen: later rows are read by it.

    >>> print(Column("age", "count", "whole numbers from 17 to 90", 0, 48842))
    age: count (whole numbers from 17 to 90; none missing)
    """

    name: str
    kind: Kind
    reason: str
    missing: int = 0  # of the rows looked at
    rows: int = 0  # looked at
    trim: bool = False  # spaces around values are not part of them
    thousands: bool = False  # 1,234 is a number
    format: str = ""  # of dates that are written out
    parts: tuple[str, ...] = ()  # of a date: those that vary

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise HyperparameterError(f"column {self.name!r}: {self.kind!r} is not one of {', '.join(KINDS)}.")

    @property
    def features(self) -> tuple[str, ...]:
        """The columns of the model that it becomes."""
        if self.kind in IGNORED:
            return ()
        return tuple(f"{self.name}.{part}" for part in self.parts) if self.kind == "date" else (self.name,)

    def union(self, other: Column) -> Column:
        """One column for the rows of both; kinds that differ cannot be one, unless one of them said nothing."""
        if self.kind == other.kind or other.kind == "constant":
            kept = self
        elif self.kind == "constant":
            kept = other
        elif {self.kind, other.kind} == {"count", "number"}:
            kept = self if self.kind == "number" else other
        elif {self.kind, other.kind} == {"yes/no", "category"}:
            kept = self if self.kind == "category" else other
        else:
            raise MergeError(
                f"column {self.name!r} is a {self.kind} in one ({self.reason}) and a {other.kind} in the other "
                f"({other.reason}). Say which when fitting: kinds={{{self.name!r}: {self.kind!r}}}."
            )
        return Column(
            kept.name, kept.kind, kept.reason, self.missing + other.missing, self.rows + other.rows,
            self.trim or other.trim, self.thousands or other.thousands, kept.format,
            tuple(part for part in PARTS if part in self.parts + other.parts),
        )  # fmt: skip

    def __str__(self) -> str:
        gaps = f"{self.missing:,} of {self.rows:,} missing" if self.missing else "none missing"
        return f"{self.name}: {self.kind} ({self.reason}; {gaps}){', ignored' if self.kind in IGNORED else ''}"
