"""Results of a run as JSON: rows and remarks, with the machine, the versions and the commit they belong to."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any, Self

from harness import Row

ROOT = Path(__file__).parents[1]
PACKAGES = (
    "deciban", "numpy", "scipy", "scikit-learn", "numba", "pyarrow", "pandas", "hmmlearn", "tomotopy", "pomegranate",
    "torch",
)  # fmt: skip


@dataclass(frozen=True)
class Result:
    """One row of a table of results."""

    benchmark: str
    job: str
    peer: str
    ours: float  # CPU seconds, median
    theirs: float | None  # None where there is no peer
    ratio: float | None  # theirs/ours, or as the benchmark says; median over the repeats
    least: float | None  # of the repeats
    greatest: float | None
    our_elapsed: float | None  # seconds by the clock, median; None where they were not measured
    their_elapsed: float | None
    reach: str  # the bound, such as "≥ 12"
    met: str  # "yes", "NO", or "" where there is no bound
    difference: float | None  # of the answers

    @classmethod
    def of(cls, benchmark: str, row: Row) -> Self:
        """Return the medians of a row."""
        ratios = row.ratios
        return cls(
            benchmark, row.job, row.peer, median(row.ours), median(row.theirs) if row.theirs else None,
            median(ratios) if ratios else None, min(ratios, default=None), max(ratios, default=None),
            median(row.our_elapsed) if row.our_elapsed else None,
            median(row.their_elapsed) if row.their_elapsed else None,
            "" if row.reach is None else str(row.reach), row.met, row.difference,
        )  # fmt: skip


def machine() -> dict[str, Any]:
    """Return what the results depend on: processor, cores, memory, system, versions, load at the start."""
    installed = {}
    for name in PACKAGES:
        try:
            installed[name] = version(name)
        except PackageNotFoundError:
            continue
    return {
        "processor": _first("/proc/cpuinfo", "model name") or platform.processor(),
        "cores": os.cpu_count(),
        "memory": _first("/proc/meminfo", "MemTotal"),
        "system": platform.platform(),
        "python": platform.python_version(),
        "packages": installed,
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
    }


def _first(path: str, name: str) -> str | None:
    """The first value of this name in a file of `name : value` lines."""
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return None
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith(name)), None)


def commit() -> str:
    """Return the commit of the tree, with "+" where files were changed since; "" outside a repository."""
    try:
        known = ["git", "-C", str(ROOT)]
        head = subprocess.run([*known, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=True)
        changed = subprocess.run([*known, "status", "--porcelain", "src"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return head.stdout.strip() + ("+" if changed.stdout.strip() else "")


def write(path: Path, results: list[Result], remarks: list[str], share: float, where: dict[str, Any]) -> None:
    """Write a run; `where` is the machine before the run. Other benchmarks of the same commit and share are kept."""
    now, done = commit(), {result.benchmark for result in results}
    if path.exists():
        before, others = read(path)
        if (before["commit"], before["share"]) == (now, share):
            results = [*(each for each in others if each.benchmark not in done), *results]
            kept = [remark for remark in before["remarks"] if remark.split(":")[0] not in done]
            remarks = [*kept, *remarks]
    run = {
        "commit": now,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "share": share,
        "machine": where,
        "remarks": remarks,
        "results": [asdict(result) for result in results],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(run, indent=1, ensure_ascii=False) + "\n")


def read(path: Path) -> tuple[dict[str, Any], list[Result]]:
    """Return what a run says of itself, and its results."""
    run = json.loads(path.read_text())
    return run, [Result(**result) for result in run.pop("results")]
