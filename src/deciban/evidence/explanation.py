"""Explanations: the evidence of a row as a sum of parts, and evidence written as text.

    llr(x)              = Σ_p part_p(x)               features, then parts such as the calibration
    posterior log-odds  = llr(x) + log prior odds

Numbers are kept in nats and printed in decibans (`dban`): 10 dban are ten to one.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from html import escape
from math import exp, floor, fsum, inf, isinf, log, log1p
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deciban.errors import InputError, NotAvailableError
from deciban.evidence.scores import Array, convert
from deciban.terminal import one_line

MAX_PRINTED_ROWS = 20
BAR_LENGTH = 30  # characters of the longest bar; where it suffices, a character is a deciban


class Explanation:
    """The evidence of each part of each row for one class over another; printed as a table with bars.

    Parameters
    ----------
    names : sequence of P str
        Names of the parts.
    parts : array-like of shape (n, P)
        Evidence of each part for `over`, in nats.
    over, against : object or list of n objects
        The class that the evidence is for, and the one it is compared with; for each row its own if a list.
    values : array-like of shape (n, P), optional
        What the row held; None where a part has no value.
    prior_part : float or array-like of shape (n,), optional
        Log prior odds of `over`.
    other : mapping of str to array-like of shape (n,), optional
        Evidence that belongs to no feature, in nats, such as that of the calibration.
    rows : array-like of shape (n,), optional
        Names of the rows, their positions if not given.
    exhaustive : bool, default=True
        Whether `over` and `against` are all classes, so that the posterior odds give the probability of `over`.

    Attributes
    ----------
    names, parts, values, prior_part, other, rows, exhaustive
        As given.
    sides : ndarray of shape (n, 2)
        The two classes of each row.

    Examples
    --------
    >>> explained = Explanation(["height"], [[1.505]], "male", "female", values=[[174]], prior_part=np.log(.1 / .9))
    >>> print(explained)
    height     174  +6.5 dban  ███████
    evidence        +6.5 dban  4.5 to 1 for male
    prior           −9.5       9.0 to 1 for female
    posterior       −3.0       2.0 to 1 for female, P(male) = .334
    >>> explained
    Explanation(1 row, 'male' over 'female', 1 part)
    """

    def __init__(
        self,
        names: Sequence[str],
        parts: ArrayLike,
        over: object,
        against: object,
        *,
        values: ArrayLike | None = None,
        prior_part: ArrayLike | None = None,
        other: Mapping[str, ArrayLike] | None = None,
        rows: ArrayLike | None = None,
        exhaustive: bool = True,
    ) -> None:
        self.names = tuple(map(str, names))
        self.parts: Array = np.asarray(parts, dtype=float)
        if self.parts.ndim != 2 or self.parts.shape[1] != len(self.names):
            raise InputError(f"{len(self.names)} names for {self.parts.shape} parts. Give one name per column.")
        n = len(self.parts)
        self.sides = np.stack([_each(side, n) for side in (over, against)], axis=1)
        self.exhaustive = exhaustive
        self.values = np.full(self.parts.shape, None, dtype=object)
        if values is not None:
            self.values[...] = values
        self.prior_part = None if prior_part is None else np.broadcast_to(np.asarray(prior_part, dtype=float), n)
        self.other = {name: np.broadcast_to(np.asarray(part, dtype=float), n) for name, part in (other or {}).items()}
        self.rows = np.arange(n) if rows is None else np.asarray(rows)

    @property
    def over(self) -> Any:
        """The class that the evidence is for; a list where rows differ."""
        return _common(self.sides[:, 0])

    @property
    def against(self) -> Any:
        """The class that it is compared with; a list where rows differ."""
        return _common(self.sides[:, 1])

    @property
    def total(self) -> Array:
        """The llr of each row in nats, (n,): the sum of features and other parts, exact in any order."""
        return np.array([_total(row) for row in np.column_stack([self.parts, *self.other.values()]).tolist()])

    @property
    def log_odds(self) -> Array:
        """Posterior log-odds of each row in nats, (n,); a prior of 0 or 1 stays as it is."""
        if self.prior_part is None:
            raise NotAvailableError("this explanation has no prior, so there are no posterior odds. Give prior_part.")
        return np.add(self.total, self.prior_part, out=self.prior_part.copy(), where=np.isfinite(self.prior_part))

    @property
    def posterior_odds(self) -> Array:
        """Posterior odds of `over`, (n,), as a ratio; inf where too large for a float."""
        with np.errstate(over="ignore"):
            return np.exp(self.log_odds)

    def to_frame(self, unit: str = "nats") -> Any:
        """Give the explanation as a table.

        Parameters
        ----------
        unit : {"nats", "bits", "bans", "decibans"}, default="nats"
            Unit of the evidence.

        Returns
        -------
        pandas.DataFrame
            A line for each row and part. The evidence of all parts and of the prior sums to the posterior log-odds.
        """
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
        """Give the explanation as lists and numbers, for JSON.

        Parameters
        ----------
        unit : {"nats", "bits", "bans", "decibans"}, default="nats"
            Unit of the evidence.

        Returns
        -------
        dict
            The explanation.
        """
        content: dict[str, Any] = {"over": self.over, "against": self.against, "unit": unit, "rows": self.rows.tolist()}
        content |= {"names": list(self.names), "parts": convert(self.parts, unit).tolist()}
        content["values"] = [[plain(value) for value in row] for row in self.values]
        content["other"] = {name: convert(part, unit).tolist() for name, part in self.other.items()}
        content["evidence"] = convert(self.total, unit).tolist()
        if self.prior_part is not None:
            content["prior"] = convert(self.prior_part, unit).tolist()
            content["posterior"] = convert(self.log_odds, unit).tolist()
        return content

    def text(self, most: int = 20) -> str:
        """Write the explanation as text, as `print` does.

        Parameters
        ----------
        most : int, default=20
            Number of parts to show of each row, those of strongest evidence; the others are summed in one line.

        Returns
        -------
        str
            A table for each row, of at most 20 rows.
        """
        tables = [as_text(self[i].lines(most)) for i in range(min(len(self), MAX_PRINTED_ROWS))]
        if len(self) > 1:
            tables = [f"row {row}\n{table}" for row, table in zip(self.rows, tables)]
        return "\n\n".join(tables + self._unprinted())

    def _repr_html_(self) -> str:
        tables = [as_html(self[i].lines(20), f"row {self.rows[i]}") for i in range(min(len(self), MAX_PRINTED_ROWS))]
        return "\n".join(tables + [f"<p>{rest}</p>" for rest in self._unprinted()])

    def _unprinted(self) -> list[str]:
        more = len(self) - MAX_PRINTED_ROWS
        return [f"… and {more:,} more rows"] if more > 0 else []

    def lines(self, most: int) -> list[Line]:
        """The lines of the first row: features by strength, other parts, and the sums with their odds."""
        nats = self.parts[0].tolist()
        order = sorted(range(len(nats)), key=lambda p: -abs(nats[p]))
        lines = [Line(short(self.names[p], 40), short(self.values[0, p], 24), nats[p]) for p in order[:most]]
        if len(order) > most:
            lines.append(Line(f"… and {len(order) - most:,} more", "", _total([nats[p] for p in order[most:]])))
        lines += [Line(short(name, 40), "", float(part[0])) for name, part in self.other.items()]
        lines.append(self._sum("evidence", float(self.total[0])))
        if self.prior_part is not None:
            log_odds = float(self.log_odds[0])
            over, against = map(one_line, self.sides[0])
            sides = over if self.exhaustive else f"{over} | {over} or {against}"
            lines.append(self._sum("prior", float(self.prior_part[0])))
            lines.append(self._sum("posterior", log_odds, f", P({sides}) = {probability_text(log_odds)}"))
        return lines

    def _sum(self, name: str, nats: float, more: str = "") -> Line:
        favoured = f" for {one_line(self.sides[0, 0 if nats > 0 else 1])}" if nats else ""
        return Line(name, "", nats, odds_text(nats) + favoured + more)

    def __len__(self) -> int:
        return len(self.parts)

    def __getitem__(self, rows: int | slice | NDArray[Any]) -> Explanation:
        chosen = np.atleast_1d(np.arange(len(self))[rows])
        return Explanation(
            self.names,
            self.parts[chosen],
            *self.sides[chosen].T,
            values=self.values[chosen],
            prior_part=None if self.prior_part is None else self.prior_part[chosen],
            other={name: nats[chosen] for name, nats in self.other.items()},
            rows=self.rows[chosen],
            exhaustive=self.exhaustive,
        )

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        one = isinstance(self.over, str) and isinstance(self.against, str)
        sides = f"{self.over!r} over {self.against!r}" if one else "two classes for each row"
        return f"Explanation({count(len(self), 'row')}, {sides}, {count(len(self.names), 'part')})"


def _each(side: object, n: int) -> NDArray[Any]:
    """One class for all rows, or a list of one for each."""
    names = [str(name) for name in side] if isinstance(side, (list, tuple, np.ndarray)) else [str(side)] * n
    if len(names) != n:
        raise InputError(f"{len(names)} classes to compare for {n} rows. Give one, or one for each row.")
    return np.array(names, dtype=object)


def _common(names: NDArray[Any]) -> Any:
    return names[0] if len(set(names)) == 1 else names.tolist()


def _total(nats: list[float]) -> float:
    """The exact sum; 0 where both sides are impossible, as the llr is."""
    return 0.0 if inf in nats and -inf in nats else fsum(nats)


# Evidence as text
class Line(NamedTuple):
    """One line of a printed explanation: evidence with its bar, or a sum with a remark."""

    name: str
    value: str
    nats: float
    remark: str = ""


def decibans_text(nats: float) -> str:
    """Write evidence in decibans, with its sign.

    Parameters
    ----------
    nats : float
        Evidence in nats.

    Returns
    -------
    str
        The text.

    Examples
    --------
    >>> decibans_text(1.505), decibans_text(-2.197), decibans_text(inf)
    ('+6.5', '−9.5', '+∞')
    """
    return f"{convert(nats, 'decibans'):+z,.1f}".replace("inf", "∞").replace("-", "−")


def odds_text(nats: float) -> str:
    """Write log-odds as odds in favour of the side that they favour.

    Parameters
    ----------
    nats : float
        Log-odds in nats.

    Returns
    -------
    str
        The text.

    Examples
    --------
    >>> [odds_text(nats) for nats in (0, 1.505, -7.1, 29.28, -inf)]
    ['even', '4.5 to 1', '1,200 to 1', '5.2e12 to 1', 'certain']
    """
    nats = abs(nats)
    if nats in (0, inf):
        return "certain" if nats else "even"
    if nats > log(1e6):
        return f"{_scientific(nats / log(10))} to 1"
    odds = exp(nats)
    return f"{odds:.1f} to 1" if odds < 9.95 else f"{float(f'{odds:.2g}'):,.0f} to 1"


def probability_text(log_odds: float) -> str:
    """Write a probability with the digits that distinguish it from 0 and 1.

    Parameters
    ----------
    log_odds : float
        Log-odds of the probability, in nats.

    Returns
    -------
    str
        The text.

    Examples
    --------
    >>> [probability_text(nats) for nats in (.89, -20, 20, inf)]
    ['.709', '2.1e−9', '1 − 2.1e−9', '1']
    """
    if isinf(log_odds):
        return "1" if log_odds > 0 else "0"
    least = -abs(log_odds) - log1p(exp(-abs(log_odds)))  # log of the smaller of P and 1 − P
    if least < log(0.0005):
        return _scientific(least / log(10)) if log_odds < 0 else f"1 − {_scientific(least / log(10))}"
    return f"{exp(least) if log_odds < 0 else 1 - exp(least):.3f}".removeprefix("0")


def _scientific(log10: float) -> str:
    """A number given by its log10, which may be too large or small for a float."""
    exponent = floor(log10)
    mantissa = f"{10 ** (log10 - exponent):.1f}"
    if mantissa == "10.0":
        mantissa, exponent = "1.0", exponent + 1
    return f"{mantissa}e{exponent}".replace("-", "−")


def count(number: int, one: str, many: str = "") -> str:
    """Write a number with its noun.

    >>> count(1, "row"), count(1200, "class", "classes")
    ('1 row', '1,200 classes')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def short(value: object, most: int) -> str:
    """A name or value in one line of at most `most` characters."""
    if isinstance(value, (float, np.floating)):
        return "missing" if np.isnan(value) else f"{value:.{4 if -1e4 < value < 1e4 else 6}g}".replace("-", "−")
    text = "" if value is None else one_line(" ".join(str(value).split()))
    return text if len(text) <= most else f"{text[: most - 1]}…"


def as_text(lines: list[Line]) -> str:
    """Lines as a table for a terminal."""
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


def as_html(lines: list[Line], caption: str) -> str:
    """Lines as an HTML table."""
    cells = []
    for line, (against, favour) in zip(lines, _bars(lines)):
        bars = f"<td style='text-align:right'>{against}</td><td style='text-align:left'>{favour}</td>"
        remark = f"<td colspan='2'>{escape(line.remark)}</td>"
        cells.append(
            f"<tr><td>{escape(line.name)}</td><td>{escape(line.value)}</td><td style='text-align:right'>"
            f"{decibans_text(line.nats)} dban</td>{remark if line.remark else bars}</tr>"
        )
    return f"<table><caption>{escape(caption)}</caption>{''.join(cells)}</table>"


def _bars(lines: list[Line]) -> list[tuple[str, str]]:
    """Bars of evidence against and for; a character is a deciban, or more where the longest bar would not fit."""
    weights = [0.0 if line.remark else convert(line.nats, "decibans") for line in lines]
    block = max(1.0, max(abs(weight) for weight in weights if not isinf(weight)) / BAR_LENGTH)
    bars = ["█" * (BAR_LENGTH if isinf(weight) else round(abs(weight) / block)) for weight in weights]
    return [(bar, "") if weight < 0 else ("", bar) for weight, bar in zip(weights, bars)]


# Values and tables without numpy types
def plain(label: Any) -> Any:
    """A label or value as a Python object instead of a numpy scalar.

    >>> plain(np.str_("spam")), plain(np.int64(3)), plain(None)
    ('spam', 3, None)
    """
    return label.item() if isinstance(label, np.generic) and label.dtype.kind not in "mM" else label


def frame_of(columns: Mapping[str, Any]) -> Any:
    """A pandas DataFrame; pandas is imported here and nowhere else.

    >>> frame_of({"label": ["ham"], "posterior": [.9]}).shape
    (1, 2)
    """
    try:
        return importlib.import_module("pandas").DataFrame(columns)
    except ImportError:
        raise ImportError("to_frame needs pandas, which is not installed: pip install pandas.") from None
