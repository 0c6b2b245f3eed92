"""From nothing to a first answer, each time in a new process: CPU seconds of the process, its start included."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import deciban
from harness import REPEATS, Reach, Row, at_most, benchmark, leave_bytecode

THEIR_IMPORT = "import sklearn.naive_bayes"
OUR_IMPORT = "from deciban import GenerativeClassifier, Gaussian"
FIRST_ANSWER = """
import numpy as np
{load}
rng = np.random.default_rng(0)
X, y = rng.normal(size=({rows}, 20)), rng.integers(0, 3, {rows})
{model}.fit(X, y).predict(X)
"""


@benchmark("startup")
def startup(share: float) -> Iterator[Row | str]:
    """Importing, and a first answer with nothing compiled, in new processes; here the ratio is ours over the peer's."""
    leave_bytecode()
    yield _beside("import deciban", THEIR_IMPORT, THEIR_IMPORT, "import deciban", at_most(1.2))
    yield _beside(OUR_IMPORT, THEIR_IMPORT, THEIR_IMPORT, OUR_IMPORT)
    with tempfile.TemporaryDirectory() as folder:
        caches = {"nothing compiled": _nothing_compiled(Path(folder)), "nowhere to write": _nowhere(Path(folder))}
        for rows, reach in ((1000, at_most(2.5, "s")), (100_000, None)):
            theirs = FIRST_ANSWER.format(
                load="from sklearn.naive_bayes import GaussianNB", rows=rows, model="GaussianNB()"
            )
            ours = FIRST_ANSWER.format(load=OUR_IMPORT, rows=rows, model="GenerativeClassifier(Gaussian('diagonal'))")
            for place, cache in caches.items():
                yield _beside(f"first answer, {rows:,} × 20, {place}", "GaussianNB", theirs, ours, reach, cache)


def _beside(
    job: str, peer: str, theirs: str, ours: str, reach: Reach | None = None, cache: dict[str, str] | None = None
) -> Row:
    times = [(_process(theirs, cache), _process(ours, cache)) for _ in range(REPEATS)]
    return Row(job, peer, [a for a, _ in times], [b for _, b in times], [b / a for a, b in times], reach)


def _process(code: str, cache: dict[str, str] | None) -> float:
    """CPU seconds of a new process that runs this."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", **(cache or {})}
    compiled = Path(environment["NUMBA_CACHE_DIR"])
    if compiled.is_dir():
        shutil.rmtree(compiled)  # what the last process left
        compiled.mkdir()
    before = _children()
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    return _children() - before


def _children() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def _nothing_compiled(folder: Path) -> dict[str, str]:
    """An empty place for what numba compiles."""
    place = folder / "empty"
    place.mkdir()
    return {"NUMBA_CACHE_DIR": str(place)}


def _nowhere(folder: Path) -> dict[str, str]:
    """A copy of the package with no place for compiled code: in it, at home, or where numba is told to."""
    place = folder / "copy" / "deciban"
    shutil.copytree(Path(deciban.__file__).parent, place, ignore=shutil.ignore_patterns("__pycache__"))
    for part in [place, *(path for path in place.rglob("*") if path.is_dir())]:
        (part / "__pycache__").touch()  # a file where a folder is wanted stops even an administrator
    unusable = str(place / "__pycache__" / "deeper")
    return {
        "PYTHONPATH": str(place.parent),
        "PYTHONDONTWRITEBYTECODE": "1",
        **dict.fromkeys(("NUMBA_CACHE_DIR", "HOME", "XDG_CACHE_HOME"), unusable),
    }
