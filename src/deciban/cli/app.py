"""The Typer application: completion, options that several commands share, registration of commands, and calls.

`deciban --install-completion` makes the shell ask for completions: columns of a file, classes and features of a model,
names of formats. A file that cannot be read completes nothing: errors are for the command itself.
"""

from __future__ import annotations

import inspect
import io
import os
import re
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from contextlib import redirect_stdout
from functools import wraps
from importlib import import_module
from typing import Annotated, Any, get_type_hints

import typer

from deciban import __version__
from deciban.cli.output import Terminal, write_text
from deciban.errors import UsageError

# -- completion of values in the shell ---------------------------------------------------------------------------------
MOST = 200  # names that are offered
Complete = Callable[[typer.Context, str], list[str]]


def one_of(*names: str) -> Complete:
    """Complete one of these names."""

    def complete(context: typer.Context, incomplete: str) -> list[str]:
        return _matching(names, incomplete)

    return complete


def columns(context: typer.Context, incomplete: str) -> list[str]:
    """Complete a column of the rows."""
    return _matching(_columns(context), incomplete)


def column_families(context: typer.Context, incomplete: str) -> list[str]:
    """Complete COLUMN=KIND."""
    from deciban.families import named_families
    from deciban.read.columns import DECLARABLE

    return _with_values(_columns(context), [*DECLARABLE, *named_families()], incomplete)


def classes(context: typer.Context, incomplete: str) -> list[str]:
    """Complete a class of the model."""
    return _matching(_classes(context), incomplete)


def class_values(context: typer.Context, incomplete: str) -> list[str]:
    """Complete CLASS=P, with examples of P."""
    return _with_values(_classes(context), ("0.5", "0.1", "0.01"), incomplete)


def class_pairs(context: typer.Context, incomplete: str) -> list[str]:
    """Complete TRUE:DECIDED=C, with examples of C."""
    known = _classes(context)
    pairs = [f"{true}:{decided}" for true in known for decided in known if true != decided]
    return _with_values(pairs, ("1", "10", "100"), incomplete)


def features(context: typer.Context, incomplete: str) -> list[str]:
    """Complete a feature of the model."""
    return _matching(_of_model(context, lambda clf: clf.model_.reader.labels), incomplete)


def _with_values(names: Iterable[str], values: Iterable[str], incomplete: str) -> list[str]:
    """Complete NAME=VALUE: the names first. A single name comes with its values, so that no space is added to it."""
    name, sign, value = incomplete.rpartition("=")
    found = [name] if sign else _matching(names, incomplete)
    if len(found) > 1:
        return [f"{one}=" for one in found]
    return [f"{one}={each}" for one in found for each in _matching(values, value if sign else "")]


def _matching(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)][:MOST]


def _columns(context: typer.Context) -> list[str]:
    path = next((path for path in reversed(_paths(context, "rows")) if not path.endswith(".deciban")), None)
    if path is None:
        return []
    from deciban.read.files import open_source

    try:
        return list(open_source(path).columns)
    except Exception:  # the command itself reports what is wrong with the file
        return []


def _paths(context: typer.Context, name: str) -> list[str]:
    """The files that the unfinished command names; while an option lacks its value, arguments have no names yet."""
    given = [context.params.get(name), *context.args]
    return [path for path in given if isinstance(path, str) and os.path.exists(path)]


def _classes(context: typer.Context) -> list[str]:
    return _of_model(context, lambda clf: clf.stats_.classes)


def _of_model(context: typer.Context, names: Callable[..., Iterable[object]]) -> list[str]:
    path = next(iter(_paths(context, "model")), None)
    if path is None:
        return []
    from deciban.store import load

    try:
        return [str(name) for name in names(load(path))]
    except Exception:
        return []


# bash splits words at = and :, which values of deciban contain, and replaces only the last piece. The completion of
# `age=ga` must therefore be `gamma` and not `age=gamma`.
# -- words of an unfinished command in bash ----------------------------------------------------------------------------
BREAKS = re.compile("[=:]+")
BEFORE = "DECIBAN_COMPLETED_BEFORE"  # variable for the part of the completed word in front of its last piece
SPECIAL = re.compile(r"([\s\"'\\$`!&|;<>()\[\]{}*?~#])")


def join_words(environment: MutableMapping[str, str]) -> None:
    r"""Join the pieces of words, and store the part of the last word that bash keeps.

    >>> given = {"COMP_WORDS": "deciban\nfit\na.csv\n--column\nage\n=\nga", "COMP_CWORD": "6"}
    >>> join_words(given)
    >>> given["COMP_WORDS"].split("\n"), given["COMP_CWORD"], given[BEFORE]
    (['deciban', 'fit', 'a.csv', '--column', 'age=ga'], '4', 'age=')
    """
    if "\n" not in environment.get("COMP_WORDS", "") or not environment.get("COMP_CWORD", "").isdigit():
        return
    joined, before, at, glue = list[str](), "", 0, False
    for place, piece in enumerate(environment["COMP_WORDS"].split("\n")):
        breaks = BREAKS.fullmatch(piece) is not None
        if joined and (glue or breaks):
            start, joined[-1] = joined[-1], joined[-1] + piece
        else:
            start = ""
            joined.append(piece)
        if place == int(environment["COMP_CWORD"]):
            at, before = len(joined) - 1, start + (piece if breaks else "")
        glue = breaks
    environment.update({"COMP_WORDS": "\n".join(joined), "COMP_CWORD": str(at), BEFORE: before})


def bash_completions(values: Iterable[str], environment: Mapping[str, str]) -> list[str]:
    r"""Return completions without the part that bash keeps, and with a backslash before special characters.

    >>> bash_completions(["age=gamma", "age=gaussian"], {BEFORE: "age="})
    ['gamma', 'gaussian']
    >>> bash_completions(["bill length"], {BEFORE: ""})
    ['bill\\ length']
    """
    before = environment.get(BEFORE)
    if before is None:
        return list(values)
    left = (value.removeprefix(before) for value in values)
    return [SPECIAL.sub(r"\\\1", value) for value in left]


def _complete_in_bash() -> None:
    """Print the completions for bash, then end the process."""
    join_words(os.environ)
    shown = io.StringIO()
    try:
        with redirect_stdout(shown):
            program_with(None)([], prog_name="deciban", standalone_mode=False)
    finally:
        write_text("".join(f"{one}\n" for one in bash_completions(shown.getvalue().splitlines(), os.environ)))


# -- the application, arguments and options ----------------------------------------------------------------------------
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
ReadAs = Annotated[
    str | None, option("--read-as", "FORMAT", "Format of ROWS: csv, jsonl, lines, …; 'csv,delimiter=;'.")
]
KeyFile = Annotated[
    str | None, option("--key-file", "FILE", "Holds the ledger's key. Default: DECIBAN_KEY, or a public key.")
]
Wait = Annotated[float, option("--wait", "SECONDS", "Time to wait for another writer of the model.", min=0)]
Seed = Annotated[int | None, option("--seed", "N", "Seed of the random numbers.")]
SaveModel = Annotated[str | None, option("--save", "FILE", "Save the model.")]
Engine = Annotated[
    str | None,
    option("--engine", "NAME", "Engine that reads files: dask, dask://HOST:8786, spark, spark://HOST:7077 or duckdb."),
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


# -- the program -------------------------------------------------------------------------------------------------------
# every command, in the order of the program's help, and the module of this package that registers it
COMMANDS = {
    "fit": "fit", "learn": "learn", "unlearn": "learn", "correct": "learn", "recalibrate": "learn", "merge": "learn",
    "predict": "predict", "explain": "predict", "evaluate": "evaluate", "compare": "evaluate", "filter": "service",
    "sample": "predict", "serve": "service", "inspect": "inspect", "report": "inspect", "export": "inspect",
    "verify": "service", "demo": "docs", "docs": "docs", "cluster": "other_models", "topics": "other_models",
    "tag": "other_models",
}  # fmt: skip

# Typer does not export the exception it raises for wrong arguments. This is the only use of Typer's internals.
UsageException: Any = next(parent for parent in typer.BadParameter.__mro__ if parent.__name__ == "UsageError")
Version = Annotated[bool, flag("--version", "Print the version.", is_eager=True)]


@app.callback(invoke_without_command=True, help=app.info.help)
def program(version: Version = False) -> None:
    """Handle the options of the program itself."""
    if version:
        write_text(f"deciban {__version__}\n")
        raise typer.Exit


def program_with(name: str | None) -> typer.Typer:
    """Return the program with a command and those of its module; with all commands if none has this name.

    Importing and declaring all commands takes as long as a short command.
    """
    for module in dict.fromkeys([COMMANDS[name]] if name in COMMANDS else COMMANDS.values()):
        import_module(f"deciban.cli.{module}")
    order = list(COMMANDS)
    app.registered_commands.sort(key=lambda one: order.index(str(one.name)))
    return app


def invoke(arguments: list[str]) -> int:
    """Parse the arguments, run the command and return its exit code. Errors are raised."""
    if os.environ.get("_DECIBAN_COMPLETE") == "complete_bash":
        _complete_in_bash()
    code = program_with(arguments[0] if arguments else None)(arguments, prog_name="deciban", standalone_mode=False)
    return code if isinstance(code, int) else 0


def usage_text(error: BaseException) -> str | None:
    """What is wrong with the arguments, empty if only the help was printed; None if the error is another one."""
    if not isinstance(error, UsageException):
        return None
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "deciban"
    message = error.format_message().strip()
    if not message:
        return ""
    return f"{message if message.endswith(('.', '?', '!')) else message + '.'} See: {path} --help"
