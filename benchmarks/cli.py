"""The command line as a process: its help, one answer, and a million of them beside the library's own loop."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from harness import REPEATS, Row, at_least, at_most, benchmark, leave_bytecode

ROWS = 1_000_000
PROGRAM = [sys.executable, "-m", "deciban"]
# what somebody would write who does it with the library: read, predict, write
LIBRARY = """
import sys
import pyarrow as pa
from pyarrow import csv
import deciban
from deciban.read.files import open_source
model, rows, answers = sys.argv[1:]
clf = deciban.load(model)
with open(answers, "wb") as file:
    for number, table in enumerate(open_source(rows).batches()):
        P = clf.predict_proba(table)
        columns = {"prediction": clf.classes_[P.argmax(axis=1)]}
        columns |= {f"P({name})": P[:, k] for k, name in enumerate(clf.classes_)}
        csv.write_csv(pa.table(columns), file, csv.WriteOptions(include_header=number == 0))
"""


@benchmark("cli")
def cli(share: float) -> Iterator[Row | str]:
    """`deciban` as a process: --help, one row, a million rows; here the ratio is the library's seconds over ours."""
    leave_bytecode()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = max(1000, int(share * ROWS))
        _write(folder, rows)
        _run(folder, "fit", "first.csv", "--label", "label", "-o", "model.deciban", "--quiet")
        times = [_spent(folder, "--help")[0] for _ in range(REPEATS)]
        yield Row("deciban --help, CPU", "", [], times, [], at_most(0.4, "s"))
        _run(folder, "predict", "model.deciban", "one.csv")  # whatever is compiled is compiled now
        both = [_spent(folder, "predict", "model.deciban", "one.csv") for _ in range(REPEATS)]
        yield Row("deciban predict, one row, wall", "", [], [wall for _, wall in both], [], at_most(1.5, "s"))
        yield Row("deciban predict, one row, CPU", "", [], [cpu for cpu, _ in both], [])
        ours: list[float] = []
        theirs: list[float] = []
        for _ in range(REPEATS):
            theirs.append(_of([sys.executable, "-c", LIBRARY, "model.deciban", "rows.csv", "library.csv"], folder)[0])
            ours.append(_spent(folder, "predict", "model.deciban", "rows.csv", "-o", "answers.csv")[0])
        ratios = [a / b for a, b in zip(theirs, ours)]
        job = f"deciban predict, {rows:,} rows of 10 columns, CPU"
        yield Row(job, "the library's own loop", theirs, ours, ratios, at_least(0.8))
        size = (folder / "rows.csv").stat().st_size / 1e6
        yield f"predict holds {_peak(folder):,.0f} MB at most, for {rows:,} rows of {size:,.0f} MB"


def _write(folder: Path, rows: int) -> None:
    """Six numbers and four names a row."""
    import pyarrow as pa
    from pyarrow import csv

    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, rows)
    colours = np.array(["red", "green", "blue", "white"])
    table = {f"x{j}": np.round(rng.normal(y * 0.5 * (j % 3), 1), 3) for j in range(6)}
    table |= {f"c{j}": colours[np.minimum(rng.poisson(0.4 + 0.5 * y * (j % 2)), 3)] for j in range(4)}
    whole = pa.table(table | {"label": np.array(["a", "b", "c"])[y]})
    for name, some in (("rows.csv", whole), ("first.csv", whole[:10_000]), ("one.csv", whole[:1])):
        csv.write_csv(some, folder / name)


def _run(folder: Path, *arguments: str) -> None:
    _of([*PROGRAM, *arguments], folder)


def _spent(folder: Path, *arguments: str) -> tuple[float, float]:
    """CPU and wall seconds of one command."""
    return _of([*PROGRAM, *arguments], folder)


def _of(command: Sequence[str], folder: Path) -> tuple[float, float]:
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, check=True)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


def _peak(folder: Path) -> float:
    """Megabytes that the largest of a few processes held: of `predict` alone, since it runs in a child of its own."""
    code = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)"
    )
    command = [*PROGRAM, "predict", "model.deciban", "rows.csv", "-o", "answers.csv"]
    done = subprocess.run(
        [sys.executable, "-c", code, *command], cwd=folder, capture_output=True, text=True, check=True
    )
    return float(done.stdout)
