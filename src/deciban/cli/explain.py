"""`deciban explain`: the evidence of each feature of a row."""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import TYPE_CHECKING, Annotated, Any

from deciban.cli import command as options
from deciban.cli.arguments import class_named, open_model, prior_of
from deciban.cli.command import classes, command, flag, option, refuse_together
from deciban.cli.output import Terminal, begins_like, check_target, write_file
from deciban.errors import UsageError

if TYPE_CHECKING:
    from deciban.estimators.classifier import GenerativeClassifier
    from deciban.evidence.explanation import Explanation
    from deciban.read.source import Source
    from deciban.read.tables import TypedTable
    from deciban.statistics import Array

FIRST_ROWS = 5  # explained if --row is not given
Which = Annotated[str | None, option("--row -r", "N[,N…]", "Rows to explain, counted from 1. Default: the first five.")]
Over = Annotated[str | None, option("--over", "CLASS", "The class that the evidence is for.", complete=classes)]
Against = Annotated[str | None, option("--against", "CLASS", "The class to compare with.", complete=classes)]
Chain = Annotated[bool, flag("--chain", "Split a block of correlated columns: each given those before it.")]
Svg = Annotated[str | None, option("--svg", "FILE", "Draw the first of these rows.")]
Html = Annotated[str | None, option("--html", "FILE", "Write a page with a table for each row.")]
Most = Annotated[int, option("--most", "N", "Largest number of features per row.", min=1)]


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
    force: options.Force = False,
    read_as: options.ReadAs = None,
) -> None:
    """Show the evidence of each feature, the prior and the calibration; their sum is the answer, exactly."""
    refuse_together(json=terminal.json, svg=svg, html=html)
    check_target(svg, [model, rows], force, begins_like("matplotlib", "PNG", "%PDF"))
    check_target(html, [model, rows], force, begins_like("deciban"))
    if against is not None and over is None:
        raise UsageError("--against names the class to compare with: name the other one with --over.")
    if unit != "decibans" and not terminal.json:
        raise UsageError(f"--unit {unit}: bars are in decibans. Other units need --json.")
    wanted = _row_numbers(row)
    clf = open_model(model, "GenerativeClassifier")
    import numpy as np

    from deciban.cli.rows import open_rows

    source = open_rows(terminal, rows, read_as, clf=clf, gaps=True)
    numbers, typed = _find_rows(source, clf, wanted)
    classes = clf.stats_.classes
    pair = [None if name is None else class_named(name, classes) for name in (over, against)]
    if pair[0] is not None and pair[1] is None and len(classes) == 2:
        pair[1] = next(name for name in classes if name != pair[0])
    explanation = clf.explain(typed, *pair, prior=prior_of(prior, classes), chain=chain)
    explanation.rows = np.array(numbers)
    if svg is not None:
        from deciban.cli.pictures import draw
        from deciban.plots import evidence_bars

        draw(svg, lambda ax: evidence_bars(explanation, 0, most=most, ax=ax))
        terminal.note(f"{svg}: row {numbers[0]}")
    elif html is not None:
        page = f"<!doctype html><meta charset='utf-8'><title>deciban explain</title>{explanation._repr_html_()}\n"
        write_file(html, page.encode())
        terminal.note(f"{html}: {len(explanation)} rows")
    elif terminal.json:
        terminal.dump(explanation.to_dict(unit))
    else:
        decided = clf.predict_proba(typed, prior=prior_of(prior, classes))
        for at in range(len(explanation)):
            terminal.say(_headline(explanation, at, classes, decided[at]), "bold")
            terminal.say(_legend(explanation, at))
            _show(terminal, explanation[at], most)
            if at + 1 < len(explanation):
                terminal.say()


def _headline(explanation: Explanation, at: int, classes: Sequence[Any], probabilities: Array) -> str:
    """The prediction of a row and its probability."""
    from deciban.evidence.explanation import probability_text, short

    best = int(probabilities.argmax())
    p = float(probabilities[best])
    odds = float("inf") if p >= 1 else log(p / (1 - p))
    return f'row {explanation.rows[at]}: predicted "{short(classes[best], 40)}", probability {probability_text(odds)}'


def _legend(explanation: Explanation, at: int) -> str:
    """What the signs mean."""
    from deciban.evidence.explanation import short

    over, against = (short(side, 30) for side in explanation.sides[at])
    return f'+ is evidence for "{over}", − for "{against}"; 10 dban are odds of 10 to 1'


def _find_rows(source: Source, clf: GenerativeClassifier, wanted: list[int] | None) -> tuple[list[int], TypedTable]:
    """The numbers of the wanted rows, counted from 1, and the rows; read until the last of them."""
    from deciban.cli.rows import typed_batches
    from deciban.read.tables import stacked

    last = FIRST_ROWS if wanted is None else wanted[-1]
    numbers: list[int] = []
    found, seen = [], 0
    for batch in typed_batches(source, clf):
        seen = batch.start + len(batch.typed)
        inside = [at for at in wanted or range(1, last + 1) if batch.start < at <= seen]
        if inside:
            found.append(batch.typed.take([at - 1 - batch.start for at in inside]))
            numbers += inside
        if seen >= last:
            break
    if wanted is not None and seen < last:
        raise UsageError(f"--row {last}: {source.name} has {seen:,} rows.")
    return numbers, stacked(found)


def _row_numbers(text: str | None) -> list[int] | None:
    """The numbers of 3 or 3,7,9 in order."""
    if text is None:
        return None
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        numbers = [0]
    if min(numbers) < 1:
        raise UsageError(f"--row {text!r} is not the number of a row, counted from 1, or several such as 3,7.")
    return sorted(set(numbers))


def _show(terminal: Terminal, explanation: Explanation, most: int) -> None:
    """Print bars: red for evidence against, green for evidence for."""
    from rich.text import Text

    for line in explanation.text(most).split("\n"):
        text = Text(line)
        text.highlight_regex("█+", "red" if "−" in line.split("█")[0] else "green")
        if line.startswith(("evidence", "prior", "posterior", "row ")):
            text.stylize("bold")
        terminal.say(text)
