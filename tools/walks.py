"""Counts how often five everyday runs move from one module of deciban to another, and how many files they touch.

    python tools/walks.py             the table
    python tools/walks.py --limits    the same; exit code 1 if a walk is above its limits
    python tools/walks.py --pairs 30  below each walk its 30 most frequent changes, with the functions that made them
    python tools/walks.py --only text the walks whose names contain "text"

Method: each run is made twice in this process, and the second, warm one is watched by `sys.setprofile`. Of its `call`
events those count whose function is defined in a file of the package. A change is two consecutive such calls from
different files; files is the number of different files.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import io
import os
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

PACKAGE = str(ROOT / "src" / "deciban") + os.sep
DOCUMENTS, WORDS = 600, 4_000
SHORT, LONG = 20, 60  # words in a document: short texts take the numpy kernels, long ones the compiled kernels
# walk → the most changes and files
LIMITS = {"Gaussian fit": (40, 15), "default text fit": (700, 30), "table fit by command": (1_200, 60)}


@dataclass
class Walk:
    """The calls of one run: its changes of file, with the functions called before and after, and the files touched."""

    changes: Counter[tuple[CodeType, CodeType]] = field(default_factory=Counter)
    files: set[str] = field(default_factory=set)
    last: CodeType | None = None

    def watch(self, frame: FrameType, event: str, _: Any) -> None:
        """The profile function of `sys.setprofile`."""
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGE):
            self.files.add(code.co_filename)
            if self.last is not None and code.co_filename != self.last.co_filename:
                self.changes[self.last, code] += 1
            self.last = code

    def most_frequent(self, number: int) -> list[str]:
        """Lines with the most frequent pairs of consecutive files, and the most frequent functions of each pair."""
        pairs: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        for (before, after), count in self.changes.items():
            pairs[short(before), short(after)][f"{before.co_name} → {after.co_name}"] += count
        ordered = sorted(pairs.items(), key=lambda item: -item[1].total())[:number]
        return [
            f"{functions.total():>9,}  {before} → {after}: "
            + ", ".join(f"{name} {count:,}" for name, count in functions.most_common(3))
            for (before, after), functions in ordered
        ]


def short(code: CodeType) -> str:
    """The file of a function, relative to the package."""
    return code.co_filename.removeprefix(PACKAGE)


def walked(act: Callable[[], Any]) -> Walk:
    """The second run of `act`."""
    act()
    walk = Walk()
    sys.setprofile(walk.watch)
    try:
        act()
    finally:
        sys.setprofile(None)
    return walk


# -- data --------------------------------------------------------------------------------------------------------------
def documents(length: int) -> tuple[list[str], np.ndarray]:
    """Texts of two classes over a Zipf vocabulary; word shares differ by log-normal factors with sd 0.5."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, DOCUMENTS)
    shares = np.exp(0.5 * rng.normal(size=(2, WORDS))) / np.arange(1, WORDS + 1)
    shares /= shares.sum(axis=1, keepdims=True)
    names = np.array([f"w{i}" for i in range(WORDS)])
    texts = [" ".join(rng.choice(names, rng.poisson(length) + 1, p=shares[code])) for code in codes]
    return texts, np.array(["ham", "spam"])[codes]


def write_table(path: Path, rows: int = 600) -> None:
    """A table of numbers that vary together, with gaps, counts, names and an identifier; two classes."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, rows)
    z = rng.normal(size=(rows, 2))
    height, weight = 170 + 8 * z[:, 0] + 5 * codes, 70 + 9 * (0.6 * z[:, 0] + 0.8 * z[:, 1]) + 6 * codes
    visits, gaps = rng.poisson(2 + codes), rng.random((rows, 2)) < 0.05
    colours = rng.choice(["red", "green", "blue"], rows)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "height", "weight", "visits", "colour", "state"])
        for i in range(rows):
            numbers = [f"{height[i]:.1f}", "" if gaps[i, 0] else f"{weight[i]:.1f}", visits[i]]
            colour = "" if gaps[i, 1] else colours[i]
            writer.writerow([f"row{i:04d}", *numbers, colour, ("ill", "well")[codes[i]]])


# -- walks -------------------------------------------------------------------------------------------------------------
def walks(folder: Path) -> dict[str, Callable[[], Any]]:
    """Name → function to run. The command comes last, because its start-up changes how this process imports."""
    from deciban import Gaussian, GenerativeClassifier, TopicModel, load

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1_000, 5)), rng.integers(0, 2, 1_000)
    (short, labels), (long, _) = documents(SHORT), documents(LONG)
    fitted = GenerativeClassifier().fit(short, labels)
    write_table(folder / "table.csv")

    def save_and_load() -> None:
        fitted.save(folder / "text.deciban")
        load(folder / "text.deciban")

    return {
        "Gaussian fit": lambda: GenerativeClassifier(Gaussian()).fit(X, y),
        "default text fit": lambda: GenerativeClassifier().fit(short, labels),
        "default text fit, long": lambda: GenerativeClassifier().fit(long, labels),
        "topics": lambda: TopicModel(10, random_state=0).fit(long),
        "save and load": save_and_load,
        "table fit by command": lambda: command(
            "fit", str(folder / "table.csv"), "--label", "state", "-o", str(folder / "table.deciban")
        ),
    }


def command(*arguments: str) -> None:
    """Run `deciban` in this process, as its console script does; an error is raised here."""
    from deciban.cli import run_program

    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        code = run_program(arguments)
    if code:
        raise RuntimeError(f"deciban {' '.join(arguments)} ended with {code}: {printed.getvalue()}")


def main() -> int:
    """Print the table and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limits", action="store_true", help="exit with 1 if a walk is above its limits")
    parser.add_argument("--pairs", type=int, default=0, metavar="N", help="print the N most frequent changes of a walk")
    parser.add_argument("--only", default="", metavar="NAME", help="only the walks whose names contain NAME")
    asked = parser.parse_args()
    above = []
    print(f"{'walk':<24}{'changes':>9}{'files':>7}{'limits':>14}")
    with tempfile.TemporaryDirectory() as folder:
        for name, act in walks(Path(folder)).items():
            if asked.only not in name:
                continue
            walk, most = walked(act), LIMITS.get(name)
            found = walk.changes.total(), len(walk.files)
            said = "" if most is None else f"{most[0]:,} / {most[1]}"
            print(f"{name:<24}{found[0]:>9,}{found[1]:>7}{said:>14}", flush=True)
            for line in walk.most_frequent(asked.pairs):
                print(line)
            if most is not None and (found[0] > most[0] or found[1] > most[1]):
                above.append(name)
    if above:
        print(f"above the limits: {', '.join(above)}", file=sys.stderr)
    return 1 if asked.limits and above else 0


if __name__ == "__main__":
    sys.exit(main())
