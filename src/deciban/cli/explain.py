"""`deciban explain`: which part of a row said how much."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from deciban.cli import command as options
from deciban.cli.command import command, flag, refuse_together
from deciban.cli.models import class_named, open_model, prior_of
from deciban.cli.output import write_bytes
from deciban.cli.terminal import Terminal
from deciban.errors import UsageError

Which = Annotated[
    str | None,
    typer.Option("--row", "-r", metavar="N[,N…]", help="Which rows, counted from 1. The first five if not said."),
]
Over = Annotated[str | None, typer.Option("--over", metavar="CLASS", help="The class that the evidence is for.")]
Against = Annotated[str | None, typer.Option("--against", metavar="CLASS", help="The class it is compared with.")]
Chain = Annotated[bool, flag("--chain", help="Split a block of correlated columns: each given those before it.")]
Svg = Annotated[str | None, typer.Option("--svg", metavar="FILE", help="A picture of the first of these rows.")]
Html = Annotated[str | None, typer.Option("--html", metavar="FILE", help="A page with a table for each row.")]
Most = Annotated[int, typer.Option("--most", min=1, metavar="N", help="Parts that are shown of each row.")]


@command(
    "deciban explain tumours.deciban new.csv --row 2",
    "deciban explain tumours.deciban new.csv --row 4 --over malignant --svg why.svg",
    panel=options.ASK,
)
def explain(
    terminal: Terminal,
    model: options.ModelFile,
    rows: options.Rows = "-",
    row: Which = None,
    over: Over = None,
    against: Against = None,
    prior: options.Prior = None,
    unit: options.Unit = "decibans",
    chain: Chain = False,
    most: Most = 20,
    svg: Svg = None,
    html: Html = None,
    read_as: options.ReadAs = None,
) -> None:
    """Take the answer apart: the evidence of each feature, the prior and the calibration, which sum to it exactly."""
    refuse_together(json=terminal.json, svg=svg, html=html)
    if against is not None and over is None:
        raise UsageError("--against names the class to compare with: name the other one with --over.")
    if unit != "decibans" and not terminal.json:
        raise UsageError(f"--unit {unit}: bars are decibans. Other units are for --json.")
    wanted = _numbers(row)
    clf = open_model(model, "GenerativeClassifier")
    told = _explained(terminal, clf, rows, wanted, over, against, prior, chain, read_as)
    if svg is not None:
        from deciban.cli.pictures import draw
        from deciban.plots import evidence_bars

        draw(svg, lambda ax: evidence_bars(told, 0, most=most, ax=ax))
        terminal.note(f"row {told.rows[0]} in {svg}")
    elif html is not None:
        page = f"<!doctype html><meta charset='utf-8'><title>deciban explain</title>{told._repr_html_()}\n"
        write_bytes(html, page.encode())
        terminal.note(f"{len(told)} rows in {html}")
    elif terminal.json:
        terminal.dump(told.to_dict(unit))
    else:
        _show(terminal, told, most)


def _explained(
    terminal: Terminal,
    clf: Any,
    path: str,
    wanted: list[int] | None,
    over: str | None,
    against: str | None,
    prior: list[str] | None,
    chain: bool,
    read_as: str | None,
) -> Any:
    """The rows asked for, found in one pass, explained together."""
    import numpy as np

    from deciban.cli.rows import open_rows, typed_batches
    from deciban.read.tables import stacked

    classes = clf.stats_.classes
    sides = [None if name is None else class_named(name, classes) for name in (over, against)]
    if sides[0] is not None and sides[1] is None and len(classes) == 2:
        sides[1] = next(name for name in classes if name != sides[0])
    source = open_rows(terminal, path, read_as, clf=clf)
    found, seen = [], 0
    last = 5 if wanted is None else max(wanted)
    for some in typed_batches(source, clf):
        n = len(some.typed)
        inside = range(some.start, some.start + n) if wanted is None else [at - 1 for at in sorted(set(wanted))]
        chosen = [at - some.start for at in inside if some.start <= at < min(some.start + n, last)]
        if chosen:
            found.append(some.typed.take(chosen))
        seen = some.start + n
        if seen >= last:
            break
    if wanted is not None and seen < last:
        raise UsageError(f"--row {last}: {source.name} has {seen:,} rows.")
    told = clf.explain(stacked(found), *sides, prior=prior_of(prior or [], classes), chain=chain)
    told.rows = told.rows + 1 if wanted is None else np.array(sorted(set(wanted)))
    return told


def _numbers(text: str | None) -> list[int] | None:
    """Rows by number: 3, or 3,7,9."""
    if text is None:
        return None
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        numbers = [0]
    if min(numbers) < 1:
        raise UsageError(f"--row {text!r} is not a number of a row, counted from 1, or several such as 3,7.")
    return numbers


def _show(terminal: Terminal, told: Any, most: int) -> None:
    """Bars in colours where there are any."""
    from rich.text import Text

    for line in told.text(most).splitlines():
        text = Text(line)
        style = "red" if "−" in line.split("█")[0] else "green"
        text.highlight_regex("█+", style)
        if line.startswith(("evidence", "prior", "posterior", "row ")):
            text.stylize("bold")
        terminal.out.print(text, soft_wrap=True)
