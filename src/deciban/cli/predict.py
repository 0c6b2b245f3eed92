"""`deciban predict`: answers with evidence, row by row, in the order in which rows come."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from deciban.cli import command as options
from deciban.cli.command import command, flag
from deciban.cli.models import open_model
from deciban.cli.output import format_of, write_tables
from deciban.cli.terminal import Terminal

Append = Annotated[bool, flag("--append", help="Keep the columns of the input, before the answers.")]
Unsure = Annotated[
    float | None, typer.Option("--unsure", metavar="P", help="No prediction where its probability is below P.")
]


@command(
    "deciban predict tumours.deciban new.csv",
    "deciban predict tumours.deciban new.csv --prior malignant=.01 --append -o answers.parquet",
    "deciban predict languages.deciban --unsure .9 < mystery.txt",
    panel=options.ASK,
)
def predict(
    terminal: Terminal,
    model: options.ModelFile,
    rows: options.Rows = "-",
    prior: options.Prior = None,
    cost: options.Cost = None,
    unsure: Unsure = None,
    unit: options.Unit = "decibans",
    append: Append = False,
    output: options.Output = None,
    format: options.Format = None,
    read_as: options.ReadAs = None,
    skip_bad: options.SkipBad = False,
) -> None:
    """Answer rows: prediction, probability, evidence over the runner-up, then the probability of every class."""
    kind = format_of(output, format, terminal.json)
    clf = open_model(model, "GenerativeClassifier")
    from deciban.cli.answers import DIGITS, Asked
    from deciban.cli.rows import open_rows, report_skipped

    asked = Asked.of(clf, prior, cost, unsure, unit)
    source = open_rows(terminal, rows, read_as, skip_bad, clf=clf)
    write_tables(_answers(source, asked, append, None if kind == "parquet" else DIGITS), output, kind)
    report_skipped(terminal, source)


def _answers(source: Any, asked: Any, append: bool, digits: int | None) -> Iterator[Any]:
    from deciban.cli.rows import FILE, DocumentSource, typed_batches
    from deciban.read.arrow import arrow_table

    for some in typed_batches(source, asked.clf):
        with some.typed.located():
            answers = asked.table(some.typed, digits)
        if not append:
            yield answers
            continue
        whole = arrow_table(some.given)
        if isinstance(source, DocumentSource):
            whole = whole.select([FILE])  # a text is no column of a table
        for name, column in zip(answers.column_names, answers.columns):
            own = name if name not in whole.column_names else f"{name} (deciban)"
            whole = whole.append_column(own, column)
        yield whole
