"""Figures as SVG text: lines, points and bars on two axes, with a title, a description and a table of the numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from deciban.evidence.explanation import short
from deciban.statistics import Array

COLOURS = 8  # classes of the style sheet that colour a curve: c0, c1, …
LARGE = 1e9  # stands for infinity in JSON
WIDEST_TICK = 5  # letters of a tick label; if one is longer, the name of the axis is left out
DASHES = ("", "6 3", "2 3", "8 3 2 3")


def text_of(value: object, most: int = 60) -> str:
    """A name or value as HTML text of one line: escaped, without control characters, shortened.

    >>> text_of("<b>", 9)
    '&lt;b&gt;'
    """
    return escape(short(value, most), quote=True)


def class_text(name: object, most: int = 30) -> str:
    """The name of a class within a sentence or a heading: shortened, and in quotes if it is a number.

    >>> class_text("spam"), class_text(1)
    ('spam', '“1”')
    """
    text = short(name, most)
    return f"“{text}”" if text.strip("-+.,0123456789") == "" else text


def number_text(value: float) -> str:
    """A number with four digits, and a minus sign; numbers such as years have no separator of thousands.

    >>> number_text(-0.123456), number_text(2008.0), number_text(1234567.0), number_text(float("inf"))
    ('−0.1235', '2008', '1,234,567', '∞')
    """
    if not np.isfinite(value):
        return "–" if np.isnan(value) else "∞" if value > 0 else "−∞"
    large = abs(value) >= 9999.5
    return (f"{value:,.0f}" if large else f"{value:.4g}").replace("-", "−")


def percent(share: float) -> str:
    """A share as a percentage.

    >>> percent(0.1234)
    '12.3 %'
    """
    return f"{100 * share:.1f} %"


def value_text(value: Any) -> str:
    """A number with four digits, or a shortened name."""
    return number_text(float(value)) if isinstance(value, (int, float)) else short(value, 40)


def rounded(value: Any, digits: int) -> float:
    """A number for JSON, which has no infinity and no NaN.

    >>> rounded(float("inf"), 2), rounded(0.126, 2)
    (1000000000.0, 0.13)
    """
    number = float(value)
    return 0.0 if number != number else round(max(-LARGE, min(LARGE, number)), digits)


@dataclass(frozen=True)
class Frame:
    """The plane of a figure: its size in pixels, and the ranges of both axes."""

    x: tuple[float, float]
    y: tuple[float, float]
    width: int = 360
    height: int = 220
    left: int = 52
    bottom: int = 38

    def across(self, values: Any) -> Any:
        """Pixels from the left."""
        low, high = self.x
        return self.left + (np.asarray(values, dtype=float) - low) / (high - low or 1.0) * (self.width - self.left - 10)

    def down(self, values: Any) -> Any:
        """Pixels from the top."""
        low, high = self.y
        room = self.height - self.bottom - 10
        return 10 + room - (np.asarray(values, dtype=float) - low) / (high - low or 1.0) * room

    def axes(
        self, label: str, ylabel: str, xticks: Sequence[tuple[float, str]], yticks: Sequence[tuple[float, str]]
    ) -> str:
        """Both axes with ticks and names."""
        base, right = self.height - self.bottom, self.width - 10
        ylabel = "" if max((len(name) for _, name in yticks), default=0) > WIDEST_TICK else ylabel
        drawn = [f'<path class="axis" d="M{self.left} 10V{base}H{right}"/>']
        for at, name in xticks:
            x = _px(self.across(at))
            drawn.append(
                f'<path class="tick" d="M{x} {base}v4"/><text x="{x}" y="{base + 15}" class="mid">{text_of(name, 14)}</text>'
            )
        for at, name in yticks:
            y = _px(self.down(at))
            drawn.append(
                f'<path class="grid" d="M{self.left} {y}H{right}"/><text x="{self.left - 5}" y="{float(y) + 3.5:g}" class="end">{text_of(name, 10)}</text>'
            )
        middle = (self.left + right) / 2
        drawn.append(f'<text x="{middle:g}" y="{self.height - 5}" class="mid name">{text_of(label, 44)}</text>')
        if ylabel:
            drawn.append(
                f'<text transform="translate(11 {(10 + base) / 2:g}) rotate(-90)" class="mid name">{text_of(ylabel, 32)}</text>'
            )
        return "".join(drawn)

    def line(self, x: Array, y: Array, k: int, more: str = "") -> str:
        """A curve in the colour and dashes of class k; gaps where a value is not finite."""
        x, y = np.asarray(x, dtype=float), np.clip(np.asarray(y, dtype=float), self.y[0], self.y[1])
        kept = np.isfinite(x) & np.isfinite(y)
        points = " ".join(f"{_px(a)},{_px(b)}" for a, b in zip(self.across(x[kept]), self.down(y[kept])))
        dash = DASHES[k // COLOURS % len(DASHES)]
        style = f' stroke-dasharray="{dash}"' if dash else ""
        return f'<polyline class="line c{k % COLOURS}"{style} points="{points}"{more}/>'

    def bar(self, at: float, height: float, width: float, k: int, shift: float = 0.0) -> str:
        """A bar of a width in pixels, in the colour of class k."""
        x, top, base = self.across(at) + shift - width / 2, float(self.down(height)), float(self.down(self.y[0]))
        return f'<rect class="fill c{k % COLOURS}" x="{_px(x)}" y="{_px(top)}" width="{_px(width)}" height="{_px(max(base - top, 0))}"/>'

    def point(self, x: float, y: float, k: int) -> str:
        """A point in the colour of class k."""
        return f'<circle class="fill c{k % COLOURS}" cx="{_px(self.across(x))}" cy="{_px(self.down(y))}" r="3.2"/>'


def figure(frame: Frame, body: str, title: str, description: str, table: str, ident: str, legend: str = "") -> str:
    """A figure with its title and description for screen readers, a legend, and the numbers in a section that opens."""
    size = f'viewBox="0 0 {frame.width} {frame.height}"'
    named = f'role="img" aria-labelledby="{ident}-t {ident}-d"'
    svg = f'<svg {size} {named}><title id="{ident}-t">{escape(title)}</title><desc id="{ident}-d">{escape(description)}</desc>{body}</svg>'
    fold = (
        f'<details><summary>Numbers<span class="hidden"> of {escape(title)}</span></summary>{table}</details>'
        if table
        else ""
    )
    return f"<figure><figcaption>{escape(title)}</figcaption>{legend}{svg}{fold}</figure>"


def table_of(
    head: Sequence[object], rows: Iterable[Sequence[object]], caption: str = "", numbers: Sequence[int] = ()
) -> str:
    """An HTML table; cells are escaped unless they are `Markup`. Columns in `numbers` are aligned to the right."""
    cap = f"<caption><span>{escape(caption)}</span></caption>" if caption else ""

    def cell(value: object, j: int, tag: str = "td", scope: str = "") -> str:
        kind = ' class="n"' if j in numbers else ""
        if tag == "th" and value == "":
            value = Markup('<span class="hidden">bar or remark</span>')
        inner = value.html if isinstance(value, Markup) else text_of(value, 160)
        if j == 0:
            inner = inner.replace("_", "_<wbr>")  # long names may be broken after underscores
        return f"<{tag}{scope}{kind}>{inner}</{tag}>"

    top = "".join(cell(name, j, "th", ' scope="col"') for j, name in enumerate(head))
    body = "".join(
        "<tr>"
        + "".join(cell(v, j, "th", ' scope="row"') if j == 0 else cell(v, j) for j, v in enumerate(row))
        + "</tr>"
        for row in rows
    )
    return f'<div class="scroll" tabindex="0" role="group" aria-label="{escape(caption or "table", quote=True)}"><table>{cap}<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'


@dataclass(frozen=True)
class Markup:
    """HTML that is already escaped."""

    html: str


def legend_of(names: Sequence[object], numbers: Sequence[int] | None = None, remark: str = "") -> str:
    """Names of classes with their colours; `numbers` are the numbers of the classes, 0, 1, … if not given."""
    items = "".join(
        f'<li><i class="key c{k % COLOURS}" aria-hidden="true"></i>{text_of(name, 40)}</li>'
        for k, name in zip(numbers or range(len(names)), names)
    )
    more = f"<li>{escape(remark)}</li>" if remark else ""
    return f'<ul class="legend">{items}{more}</ul>'


def ticks(low: float, high: float, most: int = 5) -> list[tuple[float, str]]:
    """Round numbers between two ends, with their texts.

    >>> ticks(0.0, 1.0)
    [(0.0, '0'), (0.2, '0.2'), (0.4, '0.4'), (0.6, '0.6'), (0.8, '0.8'), (1.0, '1')]
    """
    span = high - low
    if not np.isfinite(span) or span <= 0:
        return [(low, number_text(low))]
    rough = span / most
    size = 10.0 ** np.floor(np.log10(rough))
    step = float(min((m * size for m in (1, 2, 5, 10) if m * size >= rough * 0.999), default=10 * size))
    first = np.ceil(low / step - 1e-9)
    return [
        (round(float(i * step), 12) + 0.0, number_text(round(float(i * step), 12) + 0.0))
        for i in np.arange(first, np.floor(high / step + 1e-9) + 1)
    ]


def bar_cell(value: float, largest: float) -> Markup:
    """A bar of evidence to the right of the middle for positive values, to the left for negative ones."""
    share = 50 * min(abs(value) / largest, 1.0) if largest else 0.0
    side = "for" if value >= 0 else "against"
    return Markup(
        f'<svg class="track" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true"><path class="tick" d="M50 0V10"/><rect class="{side}" x="{50 if value >= 0 else 50 - share:.1f}" y="1" width="{share:.1f}" height="8"/></svg>'
    )


def cards(items: Iterable[tuple[str, str, str]], idents: Sequence[str] = ()) -> str:
    """Figures with their names and remarks, side by side; `idents` are ids of the figures, for the script."""
    cells = []
    for at, (name, value, remark) in enumerate(items):
        ident = f' id="{idents[at]}"' if idents else ""
        cells.append(
            f"<div><dt>{escape(name)}</dt><dd{ident}>{escape(value)}<small>{escape(remark)}</small></dd></div>"
        )
    return f'<dl class="cards">{"".join(cells)}</dl>'


def share_bar(share: float, k: int) -> Markup:
    """A bar from the left, in the colour of class k."""
    return Markup(
        f'<svg class="track" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true"><rect class="fill c{k % COLOURS}" x="0" y="1" width="{100 * share:.1f}" height="8"/></svg>'
    )


def _px(value: Any) -> str:
    return f"{float(value):.1f}".removesuffix(".0")
