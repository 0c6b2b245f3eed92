"""`deciban cluster`: groups that nobody named."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from deciban.cli import command as options
from deciban.cli.command import command, flag
from deciban.cli.models import column_named
from deciban.cli.output import format_of, write_tables
from deciban.cli.terminal import Terminal
from deciban.errors import UsageError

Sizes = Annotated[str, typer.Option("--clusters", "-k", metavar="N|FROM-TO", help="How many; of a range, BIC chooses.")]
Save = Annotated[str | None, typer.Option("--save", metavar="FILE", help="Keep the model.")]
Ignore = Annotated[list[str] | None, typer.Option("--ignore", metavar="COLUMN", help="Not this column. Repeatable.")]
Append = Annotated[bool, flag("--append", help="Keep the columns of the input, before the answers.")]


@command("deciban cluster tumours.csv -k 1-4 --ignore diagnosis --append -o clusters.csv", panel=options.MORE)
def cluster(
    terminal: Terminal,
    rows: options.Rows = "-",
    clusters: Sizes = "1-8",
    ignore: Ignore = None,
    append: Append = False,
    seed: options.Seed = 0,
    save: Save = None,
    output: options.Output = None,
    format: options.Format = None,
    read_as: options.ReadAs = None,
    skip_bad: options.SkipBad = False,
) -> None:
    """Find clusters in a table by a mixture model: each row's cluster, how surely, and whether it is an outlier."""
    kind = format_of(output, format, terminal.json)
    sizes = sizes_of(clusters, "--clusters")
    from deciban.cli.rows import open_rows, report_skipped
    from deciban.estimators.clustering import MixtureModel

    source = open_rows(terminal, rows, read_as, skip_bad)
    for name in ignore or []:
        column_named(name, source.columns, source.name)
    given, frame = _frame(source, ignore or [])
    several = len(sizes) > 1
    model = MixtureModel(sizes if several else sizes[0], random_state=seed, progress=terminal.watched).fit(frame)
    write_tables(_answers(model, frame, given if append else None), output, kind)
    report_skipped(terminal, source)
    if save is not None:
        from deciban.store import save as write

        write(model, save, note=f"clusters of {source.name}")
    by = f", chosen by BIC among {sizes[0]} to {sizes[-1]}" if several else ""
    shares = ", ".join(f"{share:.0%}" for share in model.weights_)
    terminal.note(f"{model.n_components_} clusters{by}: {shares} of {len(given):,} rows")


def sizes_of(text: str, option: str) -> list[int]:
    """A number, or a range of them.

    >>> sizes_of("2-4", "-k")
    [2, 3, 4]
    """
    try:
        ends = [int(part) for part in text.split("-")]
    except ValueError:
        ends = []
    if len(ends) not in (1, 2) or ends[0] < 1 or ends[-1] < ends[0]:
        raise UsageError(f"{option} {text!r} is not a number of groups, nor a range such as 2-8.")
    return list(range(ends[0], ends[-1] + 1))


def _frame(source: Any, ignore: list[str]) -> tuple[Any, Any]:
    """All rows as they were read, and their columns as the schema types them; texts say nothing here."""
    import pyarrow as pa

    from deciban.read.batches import with_progress
    from deciban.read.schema import Schema
    from deciban.read.tables import stacked

    given = stacked(list(with_progress(source)))
    declared = dict.fromkeys(ignore, "identifier")
    typed = Schema.infer(given, None, declared).apply(given)
    columns = {name: typed.column(j) for j, name in enumerate(typed.columns) if typed.kind(j) != "text"}
    if not columns:
        raise UsageError(f"{source.name} has no column of numbers or names. Texts have topics: deciban topics --help")
    return given, pa.table(columns)


def _answers(model: Any, frame: Any, given: Any) -> Iterator[Any]:
    """Cluster, probability, outlier; after the columns as they were read, where wanted."""
    import pyarrow as pa

    from deciban.cli.answers import DIGITS, rounded
    from deciban.read.arrow import arrow_table

    shares = model.predict_proba(frame)
    best = shares.argmax(axis=1)
    found = {
        "cluster": best + 1,
        "probability": rounded(shares.max(axis=1), DIGITS),
        "outlier": model.outliers(frame),
    }
    answers = pa.table(found)
    if given is None:
        yield answers
        return
    whole = arrow_table(given)
    for name, column in zip(answers.column_names, answers.columns):
        whole = whole.append_column(name if name not in whole.column_names else f"{name} (deciban)", column)
    yield whole
