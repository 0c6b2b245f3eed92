"""The program: all commands, and how their arguments are read."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from deciban import __version__
from deciban.cli import (  # noqa: F401  importing a module registers its commands
    cluster,
    demo,
    evaluate,
    explain,
    fit,
    inspect,
    learn,
    predict,
    sample,
    tag,
    topics,
)
from deciban.cli.command import app, flag

ORDER = (
    "fit", "learn", "unlearn", "correct", "merge", "predict", "explain", "evaluate", "sample", "inspect", "demo",
    "cluster", "topics", "tag",
)  # fmt: skip
app.registered_commands.sort(key=lambda one: ORDER.index(str(one.name)))
# Typer does not export the exception it raises for wrong arguments. This is the only use of Typer's internals.
UsageException: Any = next(parent for parent in typer.BadParameter.__mro__ if parent.__name__ == "UsageError")
Version: Any = Annotated[bool, flag("--version", help="The version, and nothing else.", is_eager=True)]


@app.callback(invoke_without_command=True, help=app.info.help)
def program(version: Version = False) -> None:
    """What can be asked without a command."""
    if version:
        print(f"deciban {__version__}")
        raise typer.Exit


def invoke(arguments: list[str]) -> int:
    """Read the arguments and run the command; errors are the caller's to report."""
    code = app(arguments, prog_name="deciban", standalone_mode=False)
    return code if isinstance(code, int) else 0


def usage_text(error: BaseException) -> str | None:
    """What is wrong with the arguments, in one paragraph; None where the error is another one."""
    if not isinstance(error, UsageException):
        return None
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "deciban"
    said = error.format_message().strip()
    return f"{said if said.endswith(('.', '?', '!')) else said + '.'} See: {path} --help"
