"""Follows a page literally: saves its scripts, runs its Python and its commands, and compares what they print.

`python tools/pages.py docs/tutorial.md` uses the deciban of that Python, in an empty folder. The exit code is 1 if
something else is printed than the page shows. The tests of the pages use the same functions.
"""

from __future__ import annotations

import argparse
import doctest
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)
SCRIPT = re.compile(r"<!-- file: (\S+) -->\n```python\n(.*?)```", re.DOTALL)  # a script that the reader saves
VERSIONS = re.compile(r"^(written +).*$", re.MULTILINE)  # of what wrote a model
TERMINAL = ("NO_COLOR", "FORCE_COLOR", "COLUMNS")  # variables of a terminal that change what is printed


def examples(page: Path) -> tuple[int, str]:
    """Run the Python examples of a page; return how many there are, and what differs."""
    text = page.read_text(encoding="utf-8").replace("```python\n", "\n").replace("```\n", "\n")
    test = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    report: list[str] = []
    return runner.run(test, out=report.append).attempted, "\n".join(report)


def transcript(block: str) -> list[tuple[str, str]]:
    """Return commands and answers of a block."""
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    return [(command, answer) for command, _, answer in (part.partition("\n") for part in parts)]


def commands(page: Path) -> Iterator[tuple[str, str]]:
    """Yield the commands of a page, with what the page shows as their output."""
    for block in BLOCK.findall(page.read_text(encoding="utf-8")):
        yield from transcript(block)


def session(folder: Path, page: Path) -> Callable[[str], str]:
    """Return a function that runs a command as a shell would, in the folder, and returns what it prints.

    `deciban` and `python` are those of this Python; the scripts of the page, and the table that some pages use, are in
    the folder.
    """
    from deciban.demo import write_table

    write_table(folder)
    for name, code in SCRIPT.findall(page.read_text(encoding="utf-8")):
        (folder / name).write_text(code)
    tools = folder / ".tools"
    tools.mkdir()
    for name, words in (("deciban", "-m deciban"), ("python", "")):
        (tools / name).write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {words} "$@"\n')
        (tools / name).chmod(0o755)
    plain = {name: value for name, value in os.environ.items() if name not in TERMINAL}
    given = {**plain, "OPENBLAS_NUM_THREADS": "1", "PATH": f"{tools}{os.pathsep}{plain['PATH']}"}

    def run(command: str) -> str:
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=folder,
            env=given,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        return VERSIONS.sub(r"\1…", done.stdout.decode())

    return run


def main() -> None:
    """Follow the pages, and report what differs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("pages", nargs="+", type=Path)
    wrong = False
    for page in (given.resolve() for given in parser.parse_args().pages):
        with tempfile.TemporaryDirectory(prefix="deciban-page-") as folder:
            os.chdir(folder)
            count, differs = examples(page)
            run = session(Path(folder), page)
            answers = [(command, shown, run(command)) for command, shown in commands(page)]
            os.chdir(page.parent)
        for command, shown, found in answers:
            if found != shown:
                differs += f"\n$ {command}\nshown:\n{shown}\nfound:\n{found}"
        verdict = f"differs{differs}" if differs else "as shown"
        print(f"{page.name}: {count} examples, {len(answers)} commands, {verdict}", flush=True)
        wrong |= bool(differs) or not count + len(answers)
    raise SystemExit(wrong)


if __name__ == "__main__":
    main()
