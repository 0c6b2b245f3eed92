"""Mutation tests: makes small deliberate faults, one at a time, and runs the tests that must fail.

    python tools/mutants.py               all mutations of tools/mutants.toml
    python tools/mutants.py idf PAV       those whose name contains one of these texts
    python tools/mutants.py --list        print the names, run nothing

A mutation replaces a text that occurs exactly once in src/deciban, in any file; its tests are named by function, in any
file under tests. The working tree is never edited: each mutation is made in a temporary copy of src, against which the
tests run. Before the first mutation all named tests must pass on the copy. The exit code is 1 if a mutation survives,
if its text or one of its tests is not found, or if tests fail without a mutation.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

ROOT = Path(__file__).resolve().parents[1]
SOURCE, TESTS = ROOT / "src", ROOT / "tests"
MUTANTS = Path(__file__).with_suffix(".toml")
PATIENCE = 120  # seconds; a mutation whose tests run longer is stopped and counts as caught

# Hypothesis would search for the smallest failing example, which takes minutes; here any failure is enough.
PLUGIN = """
from hypothesis import Phase, settings

settings.register_profile(
    "mutants", phases=[Phase.explicit, Phase.generate], derandomize=True, database=None, deadline=None
)
settings.load_profile("mutants")
"""


@dataclass(frozen=True)
class Mutant:
    """A fault, and the tests that must fail."""

    name: str  # what is wrong in the mutated program
    package: str  # shown in the summary
    find: str  # occurs exactly once in the source
    replace: str
    tests: tuple[str, ...]  # names of test functions, perhaps with parameters in brackets


@dataclass(frozen=True)
class Fate:
    """The result of one mutation."""

    mutant: Mutant
    caught: bool
    said: str  # the reason and the remedy, if it was not caught
    seconds: float = 0.0


def read_mutants(wanted: Sequence[str]) -> list[Mutant]:
    """The mutations whose name contains one of the texts; all if there are none."""
    with MUTANTS.open("rb") as file:
        listed = [Mutant(**{**entry, "tests": tuple(entry["tests"])}) for entry in tomllib.load(file)["mutant"]]
    return [one for one in listed if not wanted or any(text.lower() in one.name.lower() for text in wanted)]


def places(text: str, files: dict[Path, str]) -> list[Path]:
    """The files in which a text occurs, one entry for each occurrence."""
    return [file for file, source in files.items() for _ in range(source.count(text))]


def node_ids(names: Iterable[str], tests: dict[Path, str]) -> list[str]:
    """The pytest node ids of test functions; raises ValueError for a name that does not exist, or is not unique.

    >>> node_ids(["test_b[one]"], {Path("tests/test_x.py"): "def test_b(name): ..."})
    ['tests/test_x.py::test_b[one]']
    """
    found = []
    for name in names:
        function, _, parameters = name.partition("[")
        pattern = re.compile(rf"^(class (\w+)|(    )?def {re.escape(function)}\()", re.MULTILINE)
        here = []
        for file, source in tests.items():
            owner = ""
            for match in pattern.finditer(source):
                if match[2]:
                    owner = f"{match[2]}::"
                else:
                    here.append(f"{file}::{owner if match[3] else ''}{function}{'[' * bool(parameters)}{parameters}")
        if not here:
            raise ValueError(f"there is no test {function}: update its name in {MUTANTS.name}")
        if parameters and len(here) > 1:  # pytest refuses parameters that one of the tests does not have
            raise ValueError(f"several tests are named {function}: give them different names")
        found += here
    return found


class Copy:
    """A temporary copy of the source, in which one file at a time is changed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "src"
        shutil.copytree(SOURCE, self.folder)  # includes numba's cache, which is valid while times are kept
        (folder / "no_shrinking.py").write_text(PLUGIN)
        self.files = {file: file.read_text(encoding="utf-8") for file in sorted(self.folder.rglob("*.py"))}
        self.tests = {
            file.relative_to(ROOT): file.read_text(encoding="utf-8") for file in sorted(TESTS.rglob("test_*.py"))
        }
        path = os.pathsep.join(map(str, (self.folder, TESTS, folder)))
        self.environment = {**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"}

    def run(self, tests: Iterable[str], patience: float | None = PATIENCE) -> subprocess.CompletedProcess[str]:
        """Pytest on some tests of the repository, against the copy, until one fails."""
        options = ["-q", "-x", "--tb=short", "-p", "no:cacheprovider", "-p", "no_shrinking", "-m", ""]  # slow ones, too
        return subprocess.run(
            [sys.executable, "-m", "pytest", *options, *tests],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=patience,
        )

    def fate(self, mutant: Mutant) -> Fate:
        """Make one mutation, run its tests, and undo it."""
        where = places(mutant.find, self.files)
        if len(where) != 1:
            said = f"its text occurs {len(where)} times in the source instead of once: update it in {MUTANTS.name}"
            return Fate(mutant, False, said)
        try:
            tests = node_ids(mutant.tests, self.tests)
        except ValueError as error:
            return Fate(mutant, False, str(error))
        file, started = where[0], time.monotonic()
        written = file.stat()
        try:
            file.write_text(self.files[file].replace(mutant.find, mutant.replace), encoding="utf-8")
            done = self.run(tests)
        except subprocess.TimeoutExpired:
            return Fate(mutant, True, "", time.monotonic() - started)
        finally:
            file.write_text(self.files[file], encoding="utf-8")
            os.utime(file, ns=(written.st_atime_ns, written.st_mtime_ns))
        seconds = time.monotonic() - started
        if done.returncode == 0:
            return Fate(mutant, False, f"survived: {', '.join(mutant.tests)} passed", seconds)
        if done.returncode != 1:
            return Fate(mutant, False, f"pytest could not run: {done.stdout[-800:]}{done.stderr[-800:]}", seconds)
        return Fate(mutant, True, "", seconds)


def main() -> int:
    """Run the mutations and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="run only mutations whose name contains one of these")
    parser.add_argument("--list", action="store_true", help="print the names, and run nothing")
    parser.add_argument("--slow", action="store_true", help="print how long each took, slowest last")
    options = parser.parse_args()
    mutants = read_mutants(options.names)
    if options.list or not mutants:
        print("\n".join(f"{one.package:<14}{one.name}" for one in mutants) or "no mutation has this name")
        return 0 if mutants else 1
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    fates: list[Fate] = []
    with (
        tempfile.TemporaryDirectory(prefix="deciban-mutants-") as folder,
        Progress(*columns, console=Console(stderr=True), transient=True) as progress,
    ):
        task = progress.add_task("the tests without mutations", total=len(mutants) + 1)
        copy = Copy(Path(folder))
        named = dict.fromkeys(name for one in mutants for name in one.tests)
        known = [name for name in named if _is_there(name, copy)]
        clean = copy.run(sorted(set(node_ids(known, copy.tests))), patience=None) if known else None
        if clean is not None and clean.returncode:
            print(f"tests fail without any mutation:\n{clean.stdout[-3000:]}{clean.stderr[-3000:]}")
            return 1
        progress.advance(task)
        for one in mutants:
            progress.update(task, description=one.name)
            fates.append(copy.fate(one))
            progress.advance(task)
    for fate in fates:
        if not fate.caught:
            print(f"{fate.mutant.package}: {fate.mutant.name}: {fate.said}")
    if options.slow:
        for fate in sorted(fates, key=lambda fate: fate.seconds):
            print(f"{fate.seconds:6.1f} s  {fate.mutant.name}")
    caught = sum(fate.caught for fate in fates)
    print(f"{caught} of {len(fates)} mutations caught, {len(fates) - caught} not")
    return 0 if caught == len(fates) else 1


def _is_there(name: str, copy: Copy) -> bool:
    try:
        return bool(node_ids([name], copy.tests))
    except ValueError:
        return False


if __name__ == "__main__":
    sys.exit(main())
