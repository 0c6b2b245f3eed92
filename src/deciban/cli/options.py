"""Options that several commands share, each said once."""

from __future__ import annotations

from typing import Annotated

import typer

from deciban.cli.command import flag

LEARN, ASK, LOOK, MORE = "Learn", "Ask", "Look", "Without labels"  # the parts of the program's help

ModelFile = Annotated[str, typer.Argument(metavar="MODEL", help="A model file.", show_default=False)]
Rows = Annotated[
    str, typer.Argument(metavar="ROWS", help="A file, a folder, or - for stdin.", show_default="stdin, if piped")
]
Output = Annotated[str | None, typer.Option("--output", "-o", metavar="FILE", help="Write there, not to stdout.")]
Format = Annotated[str | None, typer.Option("--format", metavar="csv|jsonl|parquet", help="Of what is written.")]
Label = Annotated[str | None, typer.Option("--label", "-l", metavar="COLUMN", help="The column that holds the class.")]
Prior = Annotated[
    list[str] | None,
    typer.Option("--prior", metavar="CLASS=P", help="The prior of a class; the others share the rest. Repeatable."),
]
Cost = Annotated[
    list[str] | None,
    typer.Option("--cost", metavar="TRUE:DECIDED=C", help="The cost of taking one class for another. Repeatable."),
]
Unit = Annotated[str, typer.Option("--unit", metavar="decibans|nats|bits", help="Of the evidence.")]
SkipBad = Annotated[bool, flag("--skip-bad", help="Pass over rows that cannot be read, and count them.")]
ReadAs = Annotated[
    str | None, typer.Option("--read-as", metavar="FORMAT", help="Of what is read: csv, jsonl, …; 'csv,delimiter=;'.")
]
KeyFile = Annotated[
    str | None,
    typer.Option("--key-file", metavar="FILE", help="Holds the ledger's key; else DECIBAN_KEY, else a public one."),
]
Wait = Annotated[
    float, typer.Option("--wait", min=0, metavar="SECONDS", help="For another writer of the model to finish.")
]
Seed = Annotated[int | None, typer.Option("--seed", metavar="N", help="The same number gives the same answer.")]
