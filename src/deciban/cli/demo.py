"""`deciban demo`: what a newcomer sees first."""

from __future__ import annotations

from typing import Annotated

import typer

from deciban.cli import command as options
from deciban.cli.command import command
from deciban.cli.terminal import Terminal

Folder = Annotated[str, typer.Option("--folder", metavar="DIR", help="Where its files are written, to be tried again.")]


@command("deciban demo", panel=options.LOOK)
def demo(terminal: Terminal, folder: Folder = "demo") -> None:
    """Watch deciban at work on files that every installation has: four ideas, then these commands."""
    from deciban.demo.__main__ import main

    main(folder)
