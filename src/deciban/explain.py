"""Which part of a row said how much: the weight of evidence, taken apart and put on paper.

    llr(x)              = Σ_p part_p(x)               features, then parts such as calibration
    posterior log-odds  = llr(x) + log prior odds

Numbers are kept in nats and printed in decibans (`dban`): 10 dban = ten to one.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from copy import copy
from html import escape
from math import fsum, inf, isinf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from deciban.errors import InputError, NotAvailableError
from deciban.score import Array, convert, decibans_text, odds_text, probability_text

BLOCKS = 30  # the longest bar; where it suffices, a block is a deciban
MOST_ROWS = 20  # rows that are printed


class Line(NamedTuple):
    """One line of a printed explanation: evidence with its bar, or a sum with a remark."""

    name: str
    value: str
    nats: float
    remark: str = ""


class Explanation:
    """What each part of each row says for one class over another; prints itself, with bars.

    `parts` (n, P) are nats for `over`, `values` (n, P) what the row held, None where a part has no value. `prior_part`
    (n,) are the log prior odds. `other` maps names to (n,) nats that belong to no feature, such as calibration.
    `exhaustive` says that the two sides are all classes, so that the odds are the probability of `over`.

    >>> told = Explanation(["height"], [[1.505]], "male", "female", values=[[174]], prior_part=[np.log(.1 / .9)])
    >>> print(told)
    height     174  +6.5 dban  ███████
    evidence        +6.5 dban  4.5 to 1 for male
    prior           −9.5       9.0 to 1 for female
    posterior       −3.0       2.0 to 1 for female, P(male) = .334
    >>> told
    Explanation(1 row, 'male' over 'female', 1 part)
    """

    def __init__(
        self,
        names: Sequence[str],
        parts: ArrayLike,
        over: Any,
        against: Any,
        *,
        values: Any = None,
        prior_part: ArrayLike | None = None,
        other: Mapping[str, ArrayLike] | None = None,
        rows: Any = None,
        exhaustive: bool = True,
    ) -> None:
        self.names = tuple(map(str, names))
        self.parts: Array = np.asarray(parts, dtype=float)
        if self.parts.ndim != 2 or self.parts.shape[1] != len(self.names):
            raise InputError(f"{len(self.names)} names for {self.parts.shape} parts. Give one name per column.")
        n = len(self.parts)
        self.over, self.against, self.exhaustive = str(over), str(against), exhaustive
        self.values = np.full(self.parts.shape, None, dtype=object)
        if values is not None:
            self.values[...] = values
        self.prior_part = None if prior_part is None else np.broadcast_to(np.asarray(prior_part, dtype=float), n)
        self.other = {name: np.broadcast_to(np.asarray(part, dtype=float), n) for name, part in (other or {}).items()}
        self.rows = np.arange(n) if rows is None else np.asarray(rows)

    @property
    def total(self) -> Array:
        """The llr in nats: the exact sum of features and other parts, in whatever order they come."""
        return np.array([_total(row) for row in np.column_stack([self.parts, *self.other.values()]).tolist()])

    @property
    def log_odds(self) -> Array:
        """The posterior log-odds in nats; those of an impossible row are the prior's."""
        if self.prior_part is None:
            raise NotAvailableError("this explanation has no prior, so there are no posterior odds. Give prior_part.")
        return np.add(self.total, self.prior_part, out=self.prior_part.copy(), where=np.isfinite(self.prior_part))

    @property
    def posterior_odds(self) -> Array:
        """The posterior odds of `over`, as a ratio; inf where too large to be represented."""
        with np.errstate(over="ignore"):
            return np.exp(self.log_odds)

    def to_frame(self, unit: str = "nats") -> Any:
        """A pandas DataFrame with a line per row and part; evidence and prior add up to the posterior log-odds."""
        prior = {} if self.prior_part is None else {"prior": self.prior_part}
        extra = {**self.other, **prior}
        evidence = convert(np.column_stack([self.parts, *extra.values()]), unit)
        n, width = evidence.shape
        values = np.full((n, width), None, dtype=object)
        values[:, : len(self.names)] = self.values
        kinds = ["feature"] * len(self.names) + ["other"] * len(self.other) + ["prior"] * len(prior)
        return frame_of(
            {
                "row": np.repeat(self.rows, width),
                "feature": [*self.names, *extra] * n,
                "kind": kinds * n,
                "value": values.ravel(),
                "evidence": evidence.ravel(),
            }
        )

    def to_dict(self, unit: str = "nats") -> dict[str, Any]:
        """Plain lists and numbers, for JSON."""
        told: dict[str, Any] = {"over": self.over, "against": self.against, "unit": unit, "rows": self.rows.tolist()}
        told |= {"names": list(self.names), "parts": convert(self.parts, unit).tolist()}
        told["values"] = [[plain(value) for value in row] for row in self.values]
        told["other"] = {name: convert(part, unit).tolist() for name, part in self.other.items()}
        told["evidence"] = convert(self.total, unit).tolist()
        if self.prior_part is not None:
            told["prior"] = convert(self.prior_part, unit).tolist()
            told["posterior"] = convert(self.log_odds, unit).tolist()
        return told

    def text(self, most: int = 20) -> str:
        """The printed explanation, with the `most` telling parts of each row."""
        tables = [_as_text(self[i]._lines(most)) for i in range(min(len(self), MOST_ROWS))]
        if len(self) > 1:
            tables = [f"row {row}\n{table}" for row, table in zip(self.rows, tables)]
        return "\n\n".join(tables + self._unprinted())

    def _repr_html_(self) -> str:
        tables = [_as_html(self[i]._lines(20), f"row {self.rows[i]}") for i in range(min(len(self), MOST_ROWS))]
        return "\n".join(tables + [f"<p>{rest}</p>" for rest in self._unprinted()])

    def _unprinted(self) -> list[str]:
        return [f"… and {len(self) - MOST_ROWS:,} more rows"] if len(self) > MOST_ROWS else []

    def _lines(self, most: int) -> list[Line]:
        """What is printed of the first row: features by weight, other parts, and the sums with their odds."""
        nats = self.parts[0].tolist()
        order = sorted(range(len(nats)), key=lambda p: -abs(nats[p]))
        lines = [Line(_short(self.names[p], 40), _short(self.values[0, p], 24), nats[p]) for p in order[:most]]
        if len(order) > most:
            lines.append(Line(f"… and {len(order) - most:,} more", "", _total([nats[p] for p in order[most:]])))
        lines += [Line(_short(name, 40), "", float(part[0])) for name, part in self.other.items()]
        lines.append(self._sum("evidence", float(self.total[0])))
        if self.prior_part is not None:
            log_odds = float(self.log_odds[0])
            sides = self.over if self.exhaustive else f"{self.over} | {self.over} or {self.against}"
            lines.append(self._sum("prior", float(self.prior_part[0])))
            lines.append(self._sum("posterior", log_odds, f", P({sides}) = {probability_text(log_odds)}"))
        return lines

    def _sum(self, name: str, nats: float, more: str = "") -> Line:
        winner = f" for {self.over if nats > 0 else self.against}" if nats else ""
        return Line(name, "", nats, odds_text(nats) + winner + more)

    def __len__(self) -> int:
        return len(self.parts)

    def __getitem__(self, rows: Any) -> Explanation:
        chosen = np.atleast_1d(np.arange(len(self))[rows])
        part = copy(self)
        part.parts, part.values, part.rows = self.parts[chosen], self.values[chosen], self.rows[chosen]
        part.other = {name: nats[chosen] for name, nats in self.other.items()}
        part.prior_part = None if self.prior_part is None else self.prior_part[chosen]
        return part

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        rows, parts = f"{len(self):,} row", f"{len(self.names):,} part"
        rows, parts = (text if text.startswith("1 ") else f"{text}s" for text in (rows, parts))
        return f"Explanation({rows}, {self.over!r} over {self.against!r}, {parts})"


def plain(label: Any) -> Any:
    """A label or value without numpy's wrapping.

    >>> plain(np.str_("spam")), plain(np.int64(3)), plain(None)
    ('spam', 3, None)
    """
    return label.item() if isinstance(label, np.generic) and label.dtype.kind not in "mM" else label


def frame_of(columns: Mapping[str, Any]) -> Any:
    """A pandas DataFrame; pandas is imported only here.

    >>> frame_of({"label": ["ham"], "posterior": [.9]}).shape
    (1, 2)
    """
    try:
        return importlib.import_module("pandas").DataFrame(columns)
    except ImportError:
        raise ImportError("to_frame needs pandas, which is not installed: pip install pandas.") from None


def _total(nats: list[float]) -> float:
    """The exact sum; 0 where both sides are impossible, as the llr is."""
    return 0.0 if inf in nats and -inf in nats else fsum(nats)


def _short(value: Any, most: int) -> str:
    """A name or value on one line of a table."""
    if isinstance(value, (float, np.floating)):
        return "missing" if np.isnan(value) else f"{value:.{4 if -1e4 < value < 1e4 else 6}g}".replace("-", "−")
    text = "" if value is None else " ".join(str(value).split())
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _bars(lines: list[Line]) -> list[tuple[str, str]]:
    """Bars of evidence against and for; a block is a deciban, or more where the longest would not fit."""
    weights: list[float] = [0.0 if line.remark else convert(line.nats, "decibans") for line in lines]
    block = max(1.0, max(abs(weight) for weight in weights if not isinf(weight)) / BLOCKS)
    bars = ["█" * (BLOCKS if isinf(weight) else round(abs(weight) / block)) for weight in weights]
    return [(bar, "") if weight < 0 else ("", bar) for weight, bar in zip(weights, bars)]


def _as_text(lines: list[Line]) -> str:
    bars, evidence = _bars(lines), [decibans_text(line.nats) for line in lines]
    names, values, numbers = (
        max(map(len, column)) for column in ([x.name for x in lines], [x.value for x in lines], evidence)
    )
    left = max(len(against) for against, _ in bars)
    units = ["dban" if i == 0 or line.name == "evidence" else "" for i, line in enumerate(lines)]
    return "\n".join(
        f"{line.name:<{names}}  {line.value:<{values}}{'  ' if values else ''}{number:>{numbers}} {unit:<4}  "
        f"{line.remark or against.rjust(left) + favour}".rstrip()
        for line, number, unit, (against, favour) in zip(lines, evidence, units, bars)
    )


def _as_html(lines: list[Line], caption: str) -> str:
    cells = []
    for line, (against, favour) in zip(lines, _bars(lines)):
        bars = f"<td style='text-align:right'>{against}</td><td style='text-align:left'>{favour}</td>"
        remark = f"<td colspan='2'>{escape(line.remark)}</td>"
        cells.append(
            f"<tr><td>{escape(line.name)}</td><td>{escape(line.value)}</td><td style='text-align:right'>"
            f"{decibans_text(line.nats)} dban</td>{remark if line.remark else bars}</tr>"
        )
    return f"<table><caption>{escape(caption)}</caption>{''.join(cells)}</table>"
