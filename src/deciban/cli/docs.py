"""`deciban demo` and `deciban docs`: a demonstration, and the documentation that was installed with the program."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Annotated

import typer

from deciban.cli import app as options
from deciban.cli.app import LOOK, argument, command, option
from deciban.cli.arguments import unknown_name
from deciban.cli.output import Terminal, is_terminal, print_markdown, write_text
from deciban.errors import NotAvailableError

INSTALLED = "share/doc/deciban/"  # data files of the wheel
SECTIONS = ("tutorial.md", "howto/", "explanation/", "reference/", "maths/")
Folder = Annotated[str, option("--folder", "DIR", "Folder for the files that it writes.")]


@command("deciban demo", panel=LOOK)
def demo(terminal: Terminal, folder: Folder = "demo") -> None:
    """Run a demonstration on files that every installation has: four ideas of the library, then these commands."""
    from deciban.demo import main

    main(folder)


def _pages(context: typer.Context, incomplete: str) -> list[str]:
    return [name for name in pages() if name.startswith(incomplete)]


Page = Annotated[str | None, argument("PAGE", "A page, such as howto/tables.", complete=_pages)]


@command("deciban docs", "deciban docs howto/command-line", panel=options.LOOK)
def docs(terminal: Terminal, page: Page = None) -> None:
    """Show the documentation: the list of its pages, or one of them."""
    found = pages()
    if not found:
        raise NotAvailableError("this installation has no documentation. Install deciban from its wheel.")
    if page is None:
        titles = {name: title_of(path) for name, path in found.items()}
        if terminal.json:
            terminal.dump(titles)
            return
        terminal.table(("page", "title"), list(titles.items()))
        terminal.say()
        terminal.say("Read one: deciban docs PAGE")
        return
    ends = [name for name in found if name.endswith(f"/{page}")]
    page = ends[0] if page not in found and len(ends) == 1 else page  # service: howto/service
    if page not in found:
        raise unknown_name(page, list(found), "page", "the documentation")
    text = found[page].read_text(encoding="utf-8")
    if terminal.json:
        terminal.dump({"page": page, "text": text})
    elif is_terminal():
        print_markdown(text)
    else:
        write_text(text)


def pages() -> dict[str, Path]:
    """Return the pages by name, in the order of the sections; from the source tree, else from the installed wheel."""
    folder = Path(__file__).parents[3] / "docs"
    if (folder / "tutorial.md").is_file():
        files = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*.md"))}
    else:
        files = _installed()
    known = {name: path for part in SECTIONS for name, path in files.items() if name.startswith(part)}
    return {name.removesuffix(".md"): path for name, path in known.items() if not name.endswith("index.md")}


def _installed() -> dict[str, Path]:
    try:
        held = distribution("deciban").files or []
    except PackageNotFoundError:
        return {}
    found = {}
    for file in held:
        _, sign, name = file.as_posix().partition(INSTALLED)
        if sign and name.endswith(".md"):
            found[name] = Path(str(file.locate()))
    return dict(sorted(found.items()))


def title_of(path: Path) -> str:
    """The first heading of a page."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return next((line.removeprefix("# ") for line in lines if line.startswith("# ")), path.stem)
