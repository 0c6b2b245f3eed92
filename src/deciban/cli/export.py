"""`deciban export`: a model as a query for a database."""

from __future__ import annotations

from typing import Annotated

from deciban.cli import command as options
from deciban.cli.arguments import open_model, prior_of
from deciban.cli.command import command, option
from deciban.cli.output import Terminal, begins_like, check_target, write_file, write_text

TITLE = "-- deciban: answers of "  # first line of an output

Table = Annotated[str, option("--table", "NAME", "Table that holds the rows.")]
Dialect = Annotated[str, option("--dialect", "NAME", "Dialect of SQL: duckdb, sqlite, postgres, bigquery, …")]
Keep = Annotated[
    list[str] | None, option("--keep", "COLUMN", "Column to return beside the answers; repeat it for more.")
]


@command(
    "deciban export tumours.deciban --table tumours --keep patient -o tumours.sql",
    "deciban export tumours.deciban --table tumours --dialect sqlite -o tumours.sql --force",
    panel=options.LOOK,
)
def export(
    terminal: Terminal,
    model: options.ModelFile,
    table: Table = "rows",
    dialect: Dialect = "duckdb",
    keep: Keep = None,
    prior: options.Prior = None,
    output: options.Output = None,
    force: options.Force = False,
) -> None:
    """Write the model of a table as a SQL query, which answers where the rows are."""
    check_target(output, [model], force, begins_like(TITLE))
    clf = open_model(model, "GenerativeClassifier")
    query = clf.to_sql(dialect, table=table, keep=keep, prior=prior_of(prior, clf.stats_.classes))
    text = f"{TITLE}{model}\n{query};\n"
    if output is None:
        write_text(text)
        return
    write_file(output, text.encode())
    terminal.note(f"{output}: a query of {model} for the table {table!r}")
