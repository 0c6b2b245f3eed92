"""The program: all commands in the order of its help, and how arguments become a call."""

from __future__ import annotations

import io
import os
from contextlib import redirect_stdout
from importlib import import_module
from typing import Annotated, Any

import typer

from deciban import __version__
from deciban.cli.bash_words import as_bash_takes_them, join_words
from deciban.cli.command import LOOK, app, command, flag, option
from deciban.cli.output import Terminal, write_text

# every command, in the order of the program's help, and the module of this package that registers it
COMMANDS = {
    "fit": "fit", "learn": "learn", "unlearn": "learn", "correct": "learn", "recalibrate": "learn", "merge": "learn",
    "predict": "predict", "explain": "explain", "evaluate": "evaluate", "compare": "evaluate", "filter": "filter",
    "sample": "predict", "serve": "serve", "inspect": "inspect", "report": "report", "export": "export",
    "verify": "serve", "demo": "app", "docs": "docs", "cluster": "other_models", "topics": "other_models",
    "tag": "other_models",
}  # fmt: skip
# Typer does not export the exception it raises for wrong arguments. This is the only use of Typer's internals.
UsageException: Any = next(parent for parent in typer.BadParameter.__mro__ if parent.__name__ == "UsageError")
Version = Annotated[bool, flag("--version", "Print the version.", is_eager=True)]
Folder = Annotated[str, option("--folder", "DIR", "Folder for the files that it writes.")]


@command("deciban demo", panel=LOOK)
def demo(terminal: Terminal, folder: Folder = "demo") -> None:
    """Run a demonstration on files that every installation has: four ideas of the library, then these commands."""
    from deciban.demo import main

    main(folder)


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


def _complete_in_bash() -> None:
    """Print completions as bash takes them, and end."""
    join_words(os.environ)
    shown = io.StringIO()
    try:
        with redirect_stdout(shown):
            program_with(None)([], prog_name="deciban", standalone_mode=False)
    finally:
        write_text("".join(f"{one}\n" for one in as_bash_takes_them(shown.getvalue().splitlines(), os.environ)))


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
