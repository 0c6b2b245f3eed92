"""The program: all commands in the order of its help, and how arguments become a call."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from deciban import __version__
from deciban.cli import (  # noqa: F401  registers commands
    compare,
    docs,
    evaluate,
    explain,
    export,
    filter,
    fit,
    inspect,
    learn,
    other_models,
    predict,
    report,
    serve,
)
from deciban.cli.command import LOOK, app, command, flag, option
from deciban.cli.output import write_text
from deciban.cli.terminal import Terminal

ORDER = (
    "fit", "learn", "unlearn", "correct", "recalibrate", "merge", "predict", "explain", "evaluate", "compare",
    "filter", "sample", "serve", "inspect", "report", "export", "verify", "demo", "docs", "cluster", "topics", "tag",
)  # fmt: skip
# Typer does not export the exception it raises for wrong arguments. This is the only use of Typer's internals.
UsageException: Any = next(parent for parent in typer.BadParameter.__mro__ if parent.__name__ == "UsageError")
Version = Annotated[bool, flag("--version", "Print the version.", is_eager=True)]
Folder = Annotated[str, option("--folder", "DIR", "Folder for the files that it writes.")]


@command("deciban demo", panel=LOOK)
def demo(terminal: Terminal, folder: Folder = "demo") -> None:
    """Run a demonstration on files that every installation has: four ideas of the library, then these commands."""
    from deciban.demo.__main__ import main

    main(folder)


@app.callback(invoke_without_command=True, help=app.info.help)
def program(version: Version = False) -> None:
    """Handle the options of the program itself."""
    if version:
        write_text(f"deciban {__version__}\n")
        raise typer.Exit


app.registered_commands.sort(key=lambda one: ORDER.index(str(one.name)))


def invoke(arguments: list[str]) -> int:
    """Parse the arguments, run the command and return its exit code. Errors are raised."""
    code = app(arguments, prog_name="deciban", standalone_mode=False)
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
