"""The Typer application, the decorator that registers commands, and options that several commands share."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any, get_type_hints

import typer

from deciban.cli.completion import Complete, class_pairs, class_values, columns, one_of
from deciban.cli.terminal import Terminal
from deciban.errors import UsageError

LEARN, ASK, LOOK, OTHER_MODELS = "Learn", "Ask", "Look", "Clusters, topics, tags"  # headings in the program's help
EXAMPLES: dict[str, tuple[str, ...]] = {}  # command → examples in its help; a test runs each

app = typer.Typer(
    name="deciban",
    help="Generative classification that answers with evidence, and can take it back.",
    epilog="[dim]Start with:[/dim]  deciban demo  [dim]or[/dim]  deciban fit yours.csv --label COLUMN",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def argument(metavar: str, help: str, complete: Complete | None = None, **more: Any) -> Any:
    """A positional argument."""
    return typer.Argument(metavar=metavar, help=help, autocompletion=complete, **{"show_default": False, **more})


def option(names: str, metavar: str | None, help: str, complete: Complete | None = None, **more: Any) -> Any:
    """An option with a value; names are separated by spaces."""
    return typer.Option(*names.split(), metavar=metavar, help=help, autocompletion=complete, **more)


def flag(names: str, help: str, **more: Any) -> Any:
    """An option without a value; its help shows no type."""
    return option(names, " ", help, **more)


# -- options of every command ------------------------------------------------------------------------------------------
PANEL = "Every command"
Json = Annotated[bool, flag("--json", "Print JSON.", rich_help_panel=PANEL)]
Quiet = Annotated[bool, flag("--quiet -q", "No progress bar and no notes.", rich_help_panel=PANEL)]
Threads = Annotated[int | None, option("--threads", "N", "Use at most N cores.", min=1, rich_help_panel=PANEL)]
Debug = Annotated[bool, flag("--debug", "Print the traceback of an error.", rich_help_panel=PANEL)]
COMMON = {"json": (Json, False), "quiet": (Quiet, False), "threads": (Threads, None), "debug": (Debug, False)}

# -- options of several commands ---------------------------------------------------------------------------------------
ModelFile = Annotated[str, argument("MODEL", "A model file.")]
Rows = Annotated[str, argument("ROWS", "A file, a folder, or - for stdin.", show_default="stdin, if piped")]
Output = Annotated[str | None, option("--output -o", "FILE", "Write to FILE, not to stdout.")]
Force = Annotated[bool, flag("--force", "Replace an existing FILE that is not deciban's own output.")]
Format = Annotated[
    str | None,
    option(
        "--format",
        "csv|jsonl|parquet",
        "Format of the output.",
        complete=one_of("csv", "jsonl", "parquet", "tsv"),
    ),
]
SpreadsheetSafe = Annotated[
    bool, flag("--spreadsheet-safe", "Put ' before texts in CSV that a spreadsheet would run as formulas.")
]
Append = Annotated[bool, flag("--append", "Write the columns of the input, too, before the answers.")]
Label = Annotated[str | None, option("--label -l", "COLUMN", "The column that holds the class.", columns)]
Prior = Annotated[
    list[str] | None,
    option("--prior", "CLASS=P", "Prior of a class; the others share the rest. Repeatable.", class_values),
]
Cost = Annotated[
    list[str] | None,
    option("--cost", "TRUE:DECIDED=C", "Cost of deciding one class for another. Repeatable.", class_pairs),
]
Unit = Annotated[
    str,
    option(
        "--unit",
        "decibans|nats|bits",
        "Unit of the evidence.",
        complete=one_of("decibans", "nats", "bits", "bans"),
    ),
]
SkipBad = Annotated[bool, flag("--skip-bad", "Skip rows that cannot be read, and count them.")]
ReadAs = Annotated[str | None, option("--read-as", "FORMAT", "Format of ROWS: csv, jsonl, …; 'csv,delimiter=;'.")]
KeyFile = Annotated[
    str | None, option("--key-file", "FILE", "Holds the ledger's key. Default: DECIBAN_KEY, or a public key.")
]
Wait = Annotated[float, option("--wait", "SECONDS", "Time to wait for another writer of the model.", min=0)]
Seed = Annotated[int | None, option("--seed", "N", "Seed of the random numbers.")]
SaveModel = Annotated[str | None, option("--save", "FILE", "Save the model.")]
Engine = Annotated[
    str | None,
    option("--engine", "NAME", "What reads files: dask, dask://HOST:8786, spark, spark://HOST:7077 or duckdb."),
]
Verbose = Annotated[bool, flag("--verbose -v", "Show how each column's family compares with the next best.")]


# -- registration ------------------------------------------------------------------------------------------------------
def command(*examples: str, panel: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a function as a command. Its first parameter is the `Terminal`; the others are its options."""

    def register(function: Callable[..., None]) -> Callable[..., None]:
        name = function.__name__.rstrip("_")
        hints = get_type_hints(function, include_extras=True)
        own = list(inspect.signature(function).parameters.values())[1:]

        @wraps(function)
        def run(*, json: bool, quiet: bool, threads: int | None, debug: bool, **options: Any) -> None:
            _limit_threads(threads)
            function(Terminal(quiet, json), **options)

        keyword = inspect.Parameter.KEYWORD_ONLY
        parameters = [parameter.replace(kind=keyword, annotation=hints[parameter.name]) for parameter in own]
        parameters += [
            inspect.Parameter(key, keyword, default=default, annotation=hint) for key, (hint, default) in COMMON.items()
        ]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        EXAMPLES[name] = examples
        app.command(name, help=inspect.getdoc(function), epilog=_as_epilog(examples), rich_help_panel=panel)(run)
        return function

    return register


def _as_epilog(examples: tuple[str, ...]) -> str:
    """Examples below the options of a command's help, one per line."""
    return "\n\n".join(["[dim]Examples[/dim]", *(f"  {example}".replace("[", "\\[") for example in examples)])


def _limit_threads(threads: int | None) -> None:
    """Limit the threads of libraries that are imported from here on."""
    if threads is None:
        return
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ[name] = str(threads)
    import pyarrow as pa

    pa.set_cpu_count(threads)
    pa.set_io_thread_count(max(1, threads))


def refuse_together(**given: object) -> None:
    """Raise UsageError if more than one option is given; those not given are None, False or empty."""
    named = [f"--{name.replace('_', '-')}" for name, value in given.items() if value not in (None, False, [], "")]
    if len(named) > 1:
        raise UsageError(f"{' and '.join(named)} contradict each other. Give one of them.")
