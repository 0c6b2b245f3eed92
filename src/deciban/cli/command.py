"""What every command has in common: its place in the program, four options, and examples in its help."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any, get_type_hints

import typer

from deciban.cli.terminal import Terminal
from deciban.errors import UsageError

app = typer.Typer(
    name="deciban",
    help="Generative classification that answers with evidence, and can take it back.",
    epilog="[dim]Start with:[/dim]  deciban demo  [dim]or[/dim]  deciban fit yours.csv --label COLUMN",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def flag(*names: str, help: str, **more: Any) -> Any:
    """An option that takes no value, and says none in the help."""
    return typer.Option(*names, metavar=" ", help=help, **more)


Panel = "Everywhere"
Json = Annotated[bool, flag("--json", help="Answer in JSON.", rich_help_panel=Panel)]
Quiet = Annotated[bool, flag("--quiet", "-q", help="No progress, no remarks.", rich_help_panel=Panel)]
Threads = Annotated[
    int | None,
    typer.Option("--threads", min=1, metavar="N", help="Use at most N cores.", rich_help_panel=Panel),
]
Debug = Annotated[bool, flag("--debug", help="A traceback where something fails.", rich_help_panel=Panel)]
COMMON = {"json": (Json, False), "quiet": (Quiet, False), "threads": (Threads, None), "debug": (Debug, False)}
EXAMPLES: dict[str, tuple[str, ...]] = {}  # by command, as its help shows them; a test runs each


def command(*examples: str, panel: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a function as a command. Its first parameter is the `Terminal`; the rest are its options."""

    def register(function: Callable[..., None]) -> Callable[..., None]:
        name = function.__name__.rstrip("_")
        hints = get_type_hints(function, include_extras=True)
        own = list(inspect.signature(function).parameters.values())[1:]

        @wraps(function)
        def run(*, json: bool, quiet: bool, threads: int | None, debug: bool, **options: Any) -> None:
            _limit(threads)
            function(Terminal(quiet, json), **options)

        keyword = inspect.Parameter.KEYWORD_ONLY
        mine = [parameter.replace(kind=keyword, annotation=hints[parameter.name]) for parameter in own]
        shared = [
            inspect.Parameter(key, keyword, default=default, annotation=hint) for key, (hint, default) in COMMON.items()
        ]
        run.__signature__ = inspect.Signature(mine + shared)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in mine + shared}
        EXAMPLES[name] = examples
        app.command(name, help=inspect.getdoc(function), epilog=_shown(examples), rich_help_panel=panel)(run)
        return function

    return register


def _shown(examples: tuple[str, ...]) -> str:
    """Examples below the options, one a line."""
    return "\n\n".join(["[dim]Examples[/dim]", *(f"  {example}".replace("[", "\\[") for example in examples)])


def _limit(threads: int | None) -> None:
    """As many threads, in all that is imported from here on."""
    if threads is None:
        return
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ[name] = str(threads)
    import pyarrow as pa

    pa.set_cpu_count(threads)
    pa.set_io_thread_count(max(1, threads))


def refuse_together(**given: Any) -> None:
    """Refuse options that contradict each other; those not given are None, False or empty."""
    named = [f"--{name.replace('_', '-')}" for name, value in given.items() if value not in (None, False, [], "")]
    if len(named) > 1:
        raise UsageError(f"{' and '.join(named)} contradict each other. Give one of them.")


# -- options ----------
# Options that several commands share, each said once.

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
