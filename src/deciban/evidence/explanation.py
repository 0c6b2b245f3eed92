"""Which part of a row said how much: the weight of evidence, taken apart and put on paper.

    llr(x)              = Σ_p part_p(x)               features, then parts such as calibration
    posterior log-odds  = llr(x) + log prior odds

Numbers are kept in nats and printed in decibans (`dban`): 10 dban = ten to one.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from copy import copy
from math import fsum, inf
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from deciban.errors import InputError, NotAvailableError
from deciban.evidence.scores import Array, convert
from deciban.evidence.wording import Line, as_html, as_text, odds_text, probability_text, short

MOST_ROWS = 20  # rows that are printed


class Explanation:
    """What each part of each row says for one class over another; prints itself, with bars.

    `parts` (n, P) are nats for `over`, `values` (n, P) what the row held, None where a part has no value. `prior_part`
    (n,) are the log prior odds. `other` maps names to (n,) nats that belong to no feature, such as calibration.
    `over` and `against` may be lists, one class for each row.
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
        self.sides = np.stack([_each(side, n) for side in (over, against)], axis=1)  # (n, 2) for and against
        self.exhaustive = exhaustive
        self.values = np.full(self.parts.shape, None, dtype=object)
        if values is not None:
            self.values[...] = values
        self.prior_part = None if prior_part is None else np.broadcast_to(np.asarray(prior_part, dtype=float), n)
        self.other = {name: np.broadcast_to(np.asarray(part, dtype=float), n) for name, part in (other or {}).items()}
        self.rows = np.arange(n) if rows is None else np.asarray(rows)

    @property
    def over(self) -> Any:
        """The class the evidence is for; a list where rows differ."""
        return _common(self.sides[:, 0])

    @property
    def against(self) -> Any:
        """The class it is compared with; a list where rows differ."""
        return _common(self.sides[:, 1])

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
        tables = [as_text(self[i]._lines(most)) for i in range(min(len(self), MOST_ROWS))]
        if len(self) > 1:
            tables = [f"row {row}\n{table}" for row, table in zip(self.rows, tables)]
        return "\n\n".join(tables + self._unprinted())

    def _repr_html_(self) -> str:
        tables = [as_html(self[i]._lines(20), f"row {self.rows[i]}") for i in range(min(len(self), MOST_ROWS))]
        return "\n".join(tables + [f"<p>{rest}</p>" for rest in self._unprinted()])

    def _unprinted(self) -> list[str]:
        return [f"… and {len(self) - MOST_ROWS:,} more rows"] if len(self) > MOST_ROWS else []

    def _lines(self, most: int) -> list[Line]:
        """What is printed of the first row: features by weight, other parts, and the sums with their odds."""
        nats = self.parts[0].tolist()
        order = sorted(range(len(nats)), key=lambda p: -abs(nats[p]))
        lines = [Line(short(self.names[p], 40), short(self.values[0, p], 24), nats[p]) for p in order[:most]]
        if len(order) > most:
            lines.append(Line(f"… and {len(order) - most:,} more", "", _total([nats[p] for p in order[most:]])))
        lines += [Line(short(name, 40), "", float(part[0])) for name, part in self.other.items()]
        lines.append(self._sum("evidence", float(self.total[0])))
        if self.prior_part is not None:
            log_odds = float(self.log_odds[0])
            over, against = self.sides[0]
            sides = over if self.exhaustive else f"{over} | {over} or {against}"
            lines.append(self._sum("prior", float(self.prior_part[0])))
            lines.append(self._sum("posterior", log_odds, f", P({sides}) = {probability_text(log_odds)}"))
        return lines

    def _sum(self, name: str, nats: float, more: str = "") -> Line:
        winner = f" for {self.sides[0, 0 if nats > 0 else 1]}" if nats else ""
        return Line(name, "", nats, odds_text(nats) + winner + more)

    def __len__(self) -> int:
        return len(self.parts)

    def __getitem__(self, rows: Any) -> Explanation:
        chosen = np.atleast_1d(np.arange(len(self))[rows])
        part = copy(self)
        part.parts, part.values, part.rows = self.parts[chosen], self.values[chosen], self.rows[chosen]
        part.sides = self.sides[chosen]
        part.other = {name: nats[chosen] for name, nats in self.other.items()}
        part.prior_part = None if self.prior_part is None else self.prior_part[chosen]
        return part

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        rows, parts = f"{len(self):,} row", f"{len(self.names):,} part"
        rows, parts = (text if text.startswith("1 ") else f"{text}s" for text in (rows, parts))
        one = isinstance(self.over, str) and isinstance(self.against, str)
        sides = f"{self.over!r} over {self.against!r}" if one else "each row's own two classes"
        return f"Explanation({rows}, {sides}, {parts})"


def _each(side: Any, n: int) -> Any:
    """One class for all rows, or a list of one for each."""
    names = [str(name) for name in side] if isinstance(side, (list, tuple, np.ndarray)) else [str(side)] * n
    if len(names) != n:
        raise InputError(f"{len(names)} classes to compare for {n} rows. Give one, or one for each row.")
    return np.array(names, dtype=object)


def _common(names: Any) -> Any:
    return names[0] if len(set(names)) == 1 else names.tolist()


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
