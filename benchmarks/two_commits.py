"""The same jobs in two source trees, in turns: what a change of the code cost or gained.

    git worktree add ../before COMMIT
    python benchmarks/two_commits.py ../before/src src --times 15

Each tree has one process, which makes its data once and keeps its compiled code; the parent lets both do a job in turns
and prints medians of elapsed and of CPU seconds, and the ratio new/old. Only names that both trees have can be used.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

Job = Callable[[], object]


# -- in the process of a tree ------------------------------------------------------------------------------------------
def texts(n: int, words: int = 100_000, seed: int = 0) -> tuple[list[str], list[str]]:
    import numpy as np

    rng = np.random.default_rng(seed)
    names = np.array([f"w{j:x}" for j in range(words)], dtype=object)
    at = np.minimum(rng.zipf(1.15, (n, 120)) - 1, words * 40) % words
    return [" ".join(names[row]) for row in at], [f"c{k}" for k in rng.integers(0, 4, n)]


def text_jobs(folder: Path) -> Iterator[tuple[str, Job]]:
    from deciban import GenerativeClassifier, Text, load

    documents, labels = texts(20_000)

    def fitted() -> GenerativeClassifier:
        return GenerativeClassifier(Text(transform="log", pseudo_count=1.0), calibrate=None).fit(documents, labels)

    model = fitted()
    model.save(folder / "text.deciban")
    yield "text fit, 20,000 documents", fitted
    yield "text scores, 20,000 documents", lambda: model.predict_log_proba(documents)
    yield "text leave-one-out, 20,000 documents", lambda: model.leave_one_out(documents, labels)
    yield "load of a model of 100,000 words", lambda: load(folder / "text.deciban")


def dense_jobs(folder: Path) -> Iterator[tuple[str, Job]]:
    import numpy as np

    from deciban import Gaussian, GenerativeClassifier, MixtureModel

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100_000, 20)), rng.integers(0, 5, 100_000)
    X += y[:, None]
    for structure in ("full", "tied", "diagonal"):
        model = GenerativeClassifier(Gaussian(structure), calibrate=None).fit(X, y)
        yield (
            f"Gaussian fit, {structure}, 100,000 × 20",
            lambda s=structure: GenerativeClassifier(Gaussian(s), calibrate=None).fit(X, y),  # type: ignore[misc]
        )
        yield f"Gaussian scores, {structure}", lambda model=model: model.predict_log_proba(X)  # type: ignore[misc]
        yield f"Gaussian leave-one-out, {structure}", lambda model=model: model.leave_one_out(X, y)  # type: ignore[misc]
    yield (
        "mixture, 5 full components, 20,000 × 10",
        lambda: MixtureModel(5, random_state=0, max_iter=20).fit(X[:20_000, :10]),
    )


def file_jobs(folder: Path) -> Iterator[tuple[str, Job]]:
    import numpy as np

    rng = np.random.default_rng(0)
    n = 200_000
    y = rng.integers(0, 3, n)
    columns = {
        "a": (rng.normal(size=n) + y).round(4),
        "b": rng.gamma(2.0, size=n).round(3),
        "c": np.array(["red", "green", "blue"], dtype=object)[rng.integers(0, 3, n)],
        "label": np.array(["x", "y", "z"], dtype=object)[y],
    }
    rows = list(zip(*(column.tolist() for column in columns.values())))
    names = list(columns)
    with open(folder / "rows.csv", "w") as file:
        file.write(",".join(names) + "\n")
        file.writelines(",".join(map(str, row)) + "\n" for row in rows)
    with open(folder / "rows.jsonl", "w") as file:
        file.writelines(json.dumps(dict(zip(names, row))) + "\n" for row in rows)
    with open(folder / "first.csv", "w") as file:
        file.write(",".join(names) + "\n")
        file.writelines(",".join(map(str, row)) + "\n" for row in rows[:5_000])

    from deciban.read.batches import typed_rows
    from deciban.read.files import open_source
    from deciban.read.schema import Schema

    schema = Schema.infer(next(iter(open_source(folder / "first.csv").batches())), "label")
    yield "CSV read and typed, 200,000 rows", lambda: typed_rows(folder / "rows.csv", schema)
    yield "JSON lines read and typed, 200,000 rows", lambda: typed_rows(folder / "rows.jsonl", schema)

    def command(*arguments: str) -> None:
        subprocess.run([sys.executable, "-m", "deciban", *arguments], check=True, capture_output=True, cwd=folder)

    families = [part for column in ("a=gaussian", "b=gaussian", "c=categorical") for part in ("--column", column)]
    command("fit", "first.csv", "--label", "label", "--calibrate", "none", *families, "-o", "m.deciban")

    def predict(kind: str) -> None:
        (folder / "out.csv").unlink(missing_ok=True)
        command("predict", "m.deciban", f"rows.{kind}", "-o", "out.csv")

    yield "predict 200,000 rows of CSV by command", lambda: predict("csv")
    yield "predict 200,000 rows of JSON lines by command", lambda: predict("jsonl")


GROUPS = {"text": text_jobs, "dense": dense_jobs, "files": file_jobs}


def serve(groups: list[str]) -> None:
    """Make the jobs, name them, and do each that standard input names."""
    with tempfile.TemporaryDirectory() as folder:
        jobs = {name: job for group in groups for name, job in GROUPS[group](Path(folder))}
        for job in jobs.values():
            job()  # compiles
        print(json.dumps(list(jobs)), flush=True)
        for line in sys.stdin:
            job = jobs[line.rstrip("\n")]
            began, used = time.perf_counter(), cpu_seconds()
            job()
            print(json.dumps([time.perf_counter() - began, cpu_seconds() - used]), flush=True)


def cpu_seconds() -> float:
    """CPU seconds of this process and of its children that have ended; `os.times` counts hundredths of a second."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in both)


# -- the parent --------------------------------------------------------------------------------------------------------
def start(tree: Path, groups: list[str]) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(tree.resolve()), "OPENBLAS_NUM_THREADS": "1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # a command would compile its sources at every start
    arguments = [sys.executable, __file__, "--serve", *groups]
    return subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)


def ask(process: subprocess.Popen[str], job: str) -> list[float]:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(job + "\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", type=Path, nargs="?")
    parser.add_argument("new", type=Path, nargs="?")
    parser.add_argument("--times", type=int, default=15)
    parser.add_argument("--groups", nargs="+", choices=GROUPS, default=list(GROUPS))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--serve", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve(given.serve)
        return
    if given.new is None:
        parser.error("give two source trees")
    both = [start(tree, given.groups) for tree in (given.old, given.new)]
    jobs = [json.loads(process.stdout.readline()) for process in both][1]  # type: ignore[union-attr]
    found = {}
    for job in jobs:
        times = [[ask(process, job) for process in both] for _ in range(given.times)]
        old, new = ([statistics.median(one[side][at] for one in times) for at in (0, 1)] for side in (0, 1))
        found[job] = {"old": old, "new": new, "elapsed": new[0] / old[0], "cpu": new[1] / old[1]}
        print(
            f"{job:<48} {old[0]:8.3f} s → {new[0]:8.3f} s   ×{new[0] / old[0]:.3f}   "
            f"CPU {old[1]:7.3f} → {new[1]:7.3f}   ×{new[1] / old[1]:.3f}",
            flush=True,
        )
    for process in both:
        process.stdin.close()  # type: ignore[union-attr]
        process.wait()
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
