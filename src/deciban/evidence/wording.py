"""Evidence in words: decibans, odds and probabilities as people read them, and tables with bars."""

from __future__ import annotations

from html import escape
from math import exp, floor, inf, isinf, log, log1p
from typing import Any, NamedTuple

import numpy as np

from deciban.evidence.scores import convert

BLOCKS = 30  # the longest bar; where it suffices, a block is a deciban


class Line(NamedTuple):
    """One line of a printed explanation: evidence with its bar, or a sum with a remark."""

    name: str
    value: str
    nats: float
    remark: str = ""


def decibans_text(nats: float) -> str:
    """Evidence as people read it.

    >>> decibans_text(1.505), decibans_text(-2.197), decibans_text(inf)
    ('+6.5', '−9.5', '+∞')
    """
    return f"{convert(nats, 'decibans'):+z,.1f}".replace("inf", "∞").replace("-", "−")


def odds_text(nats: float) -> str:
    """Odds as people read them, in favour of whichever side they favour.

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
    """A probability as people read it, with the digits that tell it from 0 and 1.

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
    """A number too large or small for a float, by its log10."""
    exponent = floor(log10)
    mantissa = f"{10 ** (log10 - exponent):.1f}"
    if mantissa == "10.0":
        mantissa, exponent = "1.0", exponent + 1
    return f"{mantissa}e{exponent}".replace("-", "−")


def short(value: Any, most: int) -> str:
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
    """Lines as a table for a page."""
    cells = []
    for line, (against, favour) in zip(lines, _bars(lines)):
        bars = f"<td style='text-align:right'>{against}</td><td style='text-align:left'>{favour}</td>"
        remark = f"<td colspan='2'>{escape(line.remark)}</td>"
        cells.append(
            f"<tr><td>{escape(line.name)}</td><td>{escape(line.value)}</td><td style='text-align:right'>"
            f"{decibans_text(line.nats)} dban</td>{remark if line.remark else bars}</tr>"
        )
    return f"<table><caption>{escape(caption)}</caption>{''.join(cells)}</table>"
