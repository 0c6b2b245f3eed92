"""Two sides timed on the same data, turn about: by how much one is ahead, and whether they agree.

CPU seconds of the whole process, every thread counted, BLAS kept to one. The ratio is the median over the repeats.
"""

from __future__ import annotations

import compileall
import operator
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import deciban

REPEATS = 5


@dataclass(frozen=True)
class Reach:
    """What must be shown: a bound on the ratio, or on our own seconds."""

    sign: str  # "≥" or "≤"
    bound: float
    unit: str = ""  # "s" where our seconds are bounded

    def met(self, ratio: float, seconds: float) -> bool:
        compare = {"≥": operator.ge, "≤": operator.le}[self.sign]
        return compare(seconds if self.unit else ratio, self.bound)

    def __str__(self) -> str:
        return f"{self.sign} {self.bound:,g} {self.unit}".rstrip()


def at_least(bound: float) -> Reach:
    return Reach("≥", bound)


def at_most(bound: float, unit: str = "") -> Reach:
    return Reach("≤", bound, unit)


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    job: str
    peer: str
    theirs: list[float]  # seconds of each repeat; empty where there is no peer
    ours: list[float]
    ratios: list[float]
    reach: Reach | None = None
    difference: float | None = None
    their_elapsed: list[float] = field(default_factory=list)  # seconds by the clock; empty where not measured
    our_elapsed: list[float] = field(default_factory=list)
    by_clock: bool = False  # the table shows seconds by the clock, of which the ratios are; else CPU seconds

    @property
    def shown(self) -> tuple[list[float], list[float]]:
        """Seconds of the peer and of ours that the table shows."""
        return (self.their_elapsed, self.our_elapsed) if self.by_clock else (self.theirs, self.ours)

    @property
    def met(self) -> str:
        if self.reach is None:
            return ""
        return "yes" if self.reach.met(median(self.ratios or [0.0]), median(self.shown[1])) else "NO"

    def cells(self) -> list[str]:
        """As printed; the order of HEADINGS."""
        ratios, (theirs, ours) = self.ratios, self.shown
        return [
            self.job,
            self.peer,
            seconds(median(theirs)) if theirs else "",
            seconds(median(ours)),
            figure(median(ratios)) if ratios else "",
            f"{figure(min(ratios))}–{figure(max(ratios))}" if ratios else "",
            "" if self.reach is None else str(self.reach),
            self.met,
            "" if self.difference is None else f"{self.difference:.0e}",
        ]


HEADINGS = ["job", "peer", "peer, s", "ours, s", "ratio", "spread", "reach", "met", "difference"]
WIDTHS = [56, 27, 8, 8, 7, 13, 8, 3, 10]


def line(cells: list[str]) -> str:
    """A line of the table, aligned as text and valid as Markdown."""
    words = [cell.ljust(width) if at < 2 else cell.rjust(width) for at, (cell, width) in enumerate(zip(cells, WIDTHS))]
    return "| " + " | ".join(words) + " |"


def rule() -> str:
    """The line below the headings."""
    dashes = ["-" * (width + 2) if at < 2 else "-" * (width + 1) + ":" for at, width in enumerate(WIDTHS)]
    return "|" + "|".join(dashes) + "|"


def seconds(value: float) -> str:
    """Three figures."""
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def figure(value: float) -> str:
    """Two or three figures, thousands apart."""
    return f"{value:.2g}" if value < 10 else f"{value:,.0f}"


def peak_memory() -> float:
    """Megabytes that this process held at most, by Linux; what getrusage says begins with the parent's."""
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def timed(act: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of all threads, and the result."""
    start = time.process_time()
    result = act()
    return time.process_time() - start, result


def versus(
    job: str,
    peer: str,
    theirs: Callable[[], Any],
    ours: Callable[[], Any],
    reach: Reach | None = None,
    difference: Callable[[Any, Any], float] | None = None,
    repeats: int = REPEATS,
    peer_repeats: int | None = None,
) -> Row:
    """Both sides turn about; a slow peer may run fewer times than we do, its last time then serving for the rest."""
    times: dict[str, list[float]] = {"theirs": [], "ours": [], "their_elapsed": [], "our_elapsed": []}
    ratios: list[float] = []
    their_answer = our_answer = None
    for turn in range(repeats):
        if turn < (peer_repeats or repeats):
            their_answer = None  # free the last answer before the next is made
            began = time.perf_counter()
            spent, their_answer = timed(theirs)
            times["their_elapsed"].append(time.perf_counter() - began)
            times["theirs"].append(spent)
        our_answer = None
        began = time.perf_counter()
        spent, our_answer = timed(ours)
        times["our_elapsed"].append(time.perf_counter() - began)
        times["ours"].append(spent)
        ratios.append(times["theirs"][-1] / spent)
    gap = None if difference is None else difference(their_answer, our_answer)
    return Row(job, peer, ratios=ratios, reach=reach, difference=gap, **times)


def first_call(act: Callable[[], Any]) -> float:
    """What the first call costs beyond the second: importing and compiling. Leaves everything compiled."""
    first, _ = timed(act)
    second, _ = timed(act)
    return first - second


def leave_bytecode() -> None:
    """Python's bytecode of deciban on disk, as an installer leaves it, even where processes are told to write none."""
    compileall.compile_dir(Path(deciban.__file__).parent, quiet=2)


def largest_difference(theirs: Any, ours: Any) -> float:
    """Max |a − b| over all entries; equal infinities do not differ."""
    with np.errstate(invalid="ignore"):
        gaps = np.where(theirs == ours, 0.0, np.abs(theirs - ours))
    return float(np.max(gaps))


# -- benchmarks by name -----------------------------------------------------------------------------------------------
Benchmark = Callable[[float], Iterator[Row | str]]  # takes the share of the rows to use; yields rows, and remarks
BENCHMARKS: dict[str, Benchmark] = {}


def benchmark(name: str) -> Callable[[Benchmark], Benchmark]:
    """Register under a name, with the docstring as its description."""

    def keep(run: Benchmark) -> Benchmark:
        BENCHMARKS[name] = run
        return run

    return keep
