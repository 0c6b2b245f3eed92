"""Fits over many files by Dask: workers against one by the clock, memory of each process, constants of the cost model.

Every job runs in a process of its own (`python benchmarks/engines.py JOB FOLDER …` prints JSON), so that the memory of
one job does not hide that of another.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from glob import glob
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from harness import Row, at_least, at_most, benchmark, peak_memory

FILES = 32
TABLE_ROWS, TEXT_ROWS, TEXT_WORDS = 4_000_000, 400_000, 200
COLUMNS = 20
DISTINCT, WORDS_OF_DOCUMENT = 10_000_000, 5
FLAT_BYTES = 20 * 10**9
MOST = 1_000  # MB of a process
REPEATS = 3
NAMES = 3  # of each file, where workers are compared


# -- files -------------------------------------------------------------------------------------------------------------
def write_tables(folder: Path, rows: int, files: int = FILES) -> None:
    """Numbers, counts and categories in Parquet files."""
    for file in range(files):
        rng, n = np.random.default_rng(file), rows // files
        code = rng.integers(0, 2, n)
        columns: dict[str, Any] = {f"x{j}": rng.normal(code * (j % 3) / 3, 1.0) for j in range(COLUMNS // 2)}
        columns |= {f"n{j}": rng.poisson(2.0 + code) for j in range(COLUMNS // 4)}
        names = np.array(["red", "white", "blue", "green"])
        columns |= {f"c{j}": names[rng.integers(0, 4 - code)] for j in range(COLUMNS - len(columns))}
        pq.write_table(pa.table(columns | {"label": np.array(["a", "b"])[code]}), folder / f"{file:03}.parquet")


def write_texts(folder: Path, rows: int, files: int = FILES) -> None:
    """Documents whose words follow Zipf's law, in Parquet files."""
    names = np.array([f"w{at:x}" for at in range(200_000)], dtype=object)
    heap = np.cumsum(1 / np.arange(1.0, len(names) + 1))
    for file in range(files):
        rng, n = np.random.default_rng(file), rows // files
        code = rng.integers(0, 2, n)
        drawn = np.searchsorted(heap, rng.random((n, TEXT_WORDS)) * heap[-1])
        drawn[:, ::10] = (drawn[:, ::10] * 2 + code[:, None]) % len(names)
        texts = [" ".join(words) for words in names[drawn]]
        pq.write_table(pa.table({"text": texts, "label": np.array(["a", "b"])[code]}), folder / f"{file:03}.parquet")


def write_distinct(folder: Path, words: int, files: int = FILES) -> None:
    """Documents in which every word is new."""
    for file in range(files):
        n = words // files // WORDS_OF_DOCUMENT
        at = np.arange(n * WORDS_OF_DOCUMENT) + file * n * WORDS_OF_DOCUMENT
        mixed = (at * 2_654_435_761) % 2**32  # words of a file are not neighbours in the alphabet
        texts = [" ".join(f"w{word:x}" for word in row) for row in mixed.reshape(n, -1).tolist()]
        pq.write_table(
            pa.table({"text": texts, "label": np.array(["a", "b"])[np.arange(n) % 2]}), folder / f"{file:03}.parquet"
        )


def links(folder: Path, times: int) -> Path:
    """Return a new folder in which the files of this one have so many names each."""
    made = Path(tempfile.mkdtemp(prefix=f"{times}-times-", dir=folder))
    for file in sorted(folder.glob("*.parquet")):
        for at in range(times):
            (made / f"{at:06}-{file.name}").symlink_to(file)
    return made


# -- jobs, each in a process of its own --------------------------------------------------------------------------------
def classifier(kind: str) -> Any:
    from deciban import GenerativeClassifier, Text

    if kind == "tables":
        families: dict[str, Any] = {f"x{j}": "gaussian" for j in range(COLUMNS // 2)}
        families |= {f"n{j}": "poisson" for j in range(COLUMNS // 4)}
        families |= {f"c{j}": "categorical" for j in range(COLUMNS - len(families))}
        return GenerativeClassifier(families, calibrate=None)
    return GenerativeClassifier({"text": Text(transform="counts", pseudo_count=1.0)}, calibrate=None)


def digest(clf: Any) -> str:
    """A digest of names and sums."""
    found = hashlib.blake2b()
    stats = clf.stats_
    found.update(np.ascontiguousarray(stats.rows).tobytes())
    for sums in stats.family.blocks.values():
        for names in sums.labels.values():
            source = getattr(getattr(names, "names", None), "source", None)
            if hasattr(source, "names"):
                for buffer in source.names.buffers()[1:]:
                    found.update(memoryview(buffer)[: source.names.nbytes])
        for field, values in sums.items():
            if isinstance(values, np.ndarray) and field.name not in ("first", "second"):
                found.update(np.ascontiguousarray(values).tobytes())
    return found.hexdigest()


def job_alone(kind: str, pattern: str) -> dict[str, Any]:
    """Fit on one machine, without an engine."""
    start, cpu = time.perf_counter(), time.process_time()
    clf = classifier(kind).fit(pattern, "label")
    spent = time.process_time() - cpu
    return {"seconds": time.perf_counter() - start, "cpu": spent, "peak": peak_memory(), "digest": digest(clf)}


def job_workers(kind: str, pattern: str, counts: str) -> dict[str, Any]:
    """Fit with so many workers, turn about; seconds of each fit, CPU seconds and memory of every process.

    A cluster waits while another one fits. If there are several, the first round is not counted.
    """
    from deciban.engines import CURRENT
    from deciban.engines.dask import DaskEngine, workers_here

    found: dict[str, Any] = {"seconds": {}, "cpu": {}, "program": {}, "peaks": {}}
    wanted = [int(each) for each in counts.split(",")]
    with ExitStack() as stack:
        clients = {workers: stack.enter_context(workers_here(workers)) for workers in wanted}
        for client in clients.values():
            client.run(_warm, kind, min(glob(pattern)))
        for repeat in range(1 + REPEATS if len(wanted) > 1 else 1):
            for workers, client in clients.items():
                CURRENT.set(DaskEngine(client, quiet=True))
                before, here = sum(client.run(time.process_time).values()), time.process_time()
                start = time.perf_counter()
                clf = classifier(kind).fit(pattern, "label")
                seconds = time.perf_counter() - start
                program = time.process_time() - here
                cpu = sum(client.run(time.process_time).values()) - before + program
                found["peaks"][workers] = [*client.run(peak_memory).values(), peak_memory()]
                if repeat or len(wanted) == 1:
                    found["seconds"].setdefault(workers, []).append(seconds)
                    found["cpu"].setdefault(workers, []).append(cpu)
                    found["program"].setdefault(workers, []).append(program)
    return found | {"digest": digest(clf)}


def _warm(kind: str, path: str) -> None:
    """Import and compile what a fit uses, so that it is not counted."""
    classifier(kind).fit(pa.table(pq.read_table(path).slice(0, 3_000)).to_pandas(), "label")


def job_constants(kind: str, pattern: str) -> dict[str, Any]:
    """Constants of the cost model: seconds per row of a fragment, bytes of its sums, seconds to add two of them."""
    from deciban.engines import plan, tasks
    from deciban.engines.tasks import Files, parts_of
    from deciban.read.files import open_source

    source = open_source(pattern)
    given = Files(source, "label", parts_of(source))
    rows = plan.GivenRows(source, "label", None, plan.schema_reader(classifier(kind).families, None, True))
    first = next(rows.batches())
    begun = plan.begin(classifier(kind)._request(None), first, rows, "label", True)
    work = tasks.Summing(begun.choices)
    items = given.items(0)[:4]
    work(*items[0])
    seconds, found, adding = [], [], []
    for data, task in items:
        start = time.process_time()
        found.append(work(data, task)[0])
        seconds.append(time.process_time() - start)
    for one, two in pairwise(found):
        start = time.process_time()
        _ = one + two
        adding.append(time.process_time() - start)
    counted = found[0].rows[0][1]
    sizes = [len(pickle.dumps(each, protocol=5)) for each in found]
    words = [
        next(iter(each.stats.family.blocks.values())).labels.get("word") for each in (found[0], found[0] + found[1])
    ]
    return {
        "rows": counted,
        "seconds per row": median(seconds) / counted,
        "bytes of sums": median(sizes),
        "seconds to add": median(adding),
        "words": [0 if each is None else each.size for each in words],
        "first rows, seconds": _head_seconds(kind, pattern),
    }


def _head_seconds(kind: str, pattern: str) -> float:
    from deciban.read.files import FirstRows, open_source

    start = time.process_time()
    classifier(kind).fit(FirstRows(open_source(pattern)), "label")
    return time.process_time() - start


def run_job(name: str, *arguments: str) -> dict[str, Any]:
    """Run a job in a process of its own."""
    script = [sys.executable, str(Path(__file__).resolve()), name, *arguments]
    done = subprocess.run(script, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


# -- benchmarks --------------------------------------------------------------------------------------------------------
@benchmark("engines")
def engines(share: float) -> Iterator[Row | str]:
    """Two Dask workers against one, by the clock, on tables and on texts; reading included.

    The first rows take the same time with any number of workers, and so the ratio grows with the input: every file is
    read under one name, then under `NAMES` names.
    """
    for kind, write, rows in (("tables", write_tables, TABLE_ROWS), ("texts", write_texts, TEXT_ROWS)):
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder), int(rows * share))
            for names in (1, NAMES):
                found = run_job("workers", kind, f"{links(Path(folder), names)}/*.parquet", "1,2")
                yield from compared(f"{kind}: {int(rows * share) * names:,} rows in {FILES * names} files", found)


def compared(what: str, found: dict[str, Any]) -> Iterator[Row | str]:
    """Two workers against one: seconds by the clock, memory, and what the CPU seconds of the program allow."""
    one, two = found["seconds"]["1"], found["seconds"]["2"]
    yield Row(f"{what}, elapsed", "one worker", one, two, [a / b for a, b in zip(one, two)], at_least(1.7))
    peaks = ", ".join(f"{peak:,.0f}" for peak in found["peaks"]["2"])
    cpu = {workers: round(median(each), 1) for workers, each in found["cpu"].items()}
    program, all_of_one = median(found["program"]["1"]), median(found["cpu"]["1"])
    bound = all_of_one / (program + (all_of_one - program) / 2)
    yield f"{what}: CPU seconds by workers {cpu}; memory of the processes {peaks} MB; {os.cpu_count()} cores"
    yield (
        f"{what}: {program:.1f} of {all_of_one:.1f} CPU seconds with one worker are the program's, which "
        f"two workers do not share: about {bound:.2f} times as fast at most"
    )


@benchmark("engines-scale")
def scale(share: float) -> Iterator[Row | str]:
    """Constants of the cost model, and fits with 1, 2, 4 and 8 workers (docs/explanation/scale.md)."""
    for kind, write, rows in (("tables", write_tables, TABLE_ROWS), ("texts", write_texts, TEXT_ROWS)):
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder), int(rows * share))
            pattern = f"{folder}/*.parquet"
            yield f"{kind}: constants {json.dumps(run_job('constants', kind, pattern))}"
            found = run_job("workers", kind, pattern, "1,2,4,8")
            seconds = {workers: round(median(each), 2) for workers, each in found["seconds"].items()}
            cpu = {workers: round(median(each), 2) for workers, each in found["cpu"].items()}
            yield f"{kind}: {int(rows * share):,} rows in {FILES} files: elapsed {seconds} s, CPU {cpu} s, by workers"


@benchmark("engines-words")
def words(share: float) -> Iterator[Row | str]:
    """Memory of every process where 10⁷ distinct words are added by two workers."""
    with tempfile.TemporaryDirectory() as folder:
        write_distinct(Path(folder), int(DISTINCT * share))
        pattern = f"{folder}/*.parquet"
        found, alone = run_job("workers", "texts", pattern, "2"), run_job("alone", "texts", pattern)
        peaks = found["peaks"]["2"]
        yield (
            f"{int(DISTINCT * share):,} distinct words, two classes: at most {max(peaks):,.0f} MB of a process "
            f"({', '.join(f'{peak:,.0f}' for peak in peaks)}; the last is the program), "
            f"{'within' if max(peaks) <= MOST else 'NOT within'} {MOST:,}; {found['seconds']['2'][0]:.0f} s; "
            f"one machine {alone['peak']:,.0f} MB; "
            f"result {'equal' if found['digest'] == alone['digest'] else 'NOT EQUAL'}"
        )


@benchmark("engines-flat")
def flat(share: float) -> Iterator[Row | str]:
    """Memory and time of two workers over 5, 10 and 20 GB: the same fragments under many names."""
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder, "kept")
        kept.mkdir()
        write_tables(kept, TABLE_ROWS // 4, 8)
        size = sum(file.stat().st_size for file in kept.iterdir())
        for part in (0.25, 0.5, 1.0):
            times = max(1, round(FLAT_BYTES * share * part / size))
            found = run_job("workers", "tables", f"{links(kept, times)}/*.parquet", "2")
            peaks = ", ".join(f"{peak:,.0f}" for peak in found["peaks"]["2"])
            seconds, cpu = found["seconds"]["2"][0], found["cpu"]["2"][0]
            yield (
                f"{times * size / 1e9:.2f} GB in {times * 8:,} files: {seconds:.1f} s elapsed, {cpu:.1f} CPU seconds "
                f"of all processes; memory {peaks} MB (the last is the program)"
            )


def job_sql(rows: str) -> dict[str, Any]:
    """Sums of 20 columns in DuckDB: the push-down, and the same aggregates written by hand, turn about."""
    import duckdb

    from deciban.engines import database, sql_sums
    from deciban.engines.plan import begin
    from deciban.model.fit import schema_reader
    from deciban.read.batches import Rows

    with tempfile.TemporaryDirectory() as folder, duckdb.connect(f"{folder}/rows.db") as connection:
        write_tables(Path(folder), int(rows), 2)
        connection.execute(f"CREATE TABLE given AS SELECT * FROM read_parquet('{folder}/*.parquet')")
        relation = connection.table("given")
        held = database.Relation(relation)
        clf = classifier("tables")
        given = Rows(database.TableSource(held, first=True), "label", None, schema_reader(clf.families, None, True))
        first = next(iter(given.batches()))
        begun = begin(clf._request(None), first, given, "label", True)
        choices = begun.choices
        known = sql_sums.Given(held, choices.reader.schema, "label", None, first)
        parts = sql_sums.parts_of(choices.family, choices.reader.columns)
        numbers = {
            column: float(part.family.origin[0]) for part in parts for column in part.columns if column[0] == "x"
        }
        sums = ", ".join(
            f"COUNT({x}), SUM({x} - {o!r}), SUM(({x} - {o!r}) * ({x} - {o!r}))" for x, o in numbers.items()
        )
        others = [column for part in parts for column in part.columns if column not in numbers]
        by_hand = [
            f"SELECT label, {sums} FROM given GROUP BY label",
            *(f"SELECT label, {each}, COUNT(*) FROM given GROUP BY label, {each}" for each in others),
        ]
        found: dict[str, Any] = {"pushed": [], "hand": [], "pushed, elapsed": [], "hand, elapsed": []}
        for _ in range(1 + REPEATS):
            start, clock = time.process_time(), time.perf_counter()  # of all threads; by the clock
            pushed = sql_sums.pushed(parts, known)
            found["pushed"].append(time.process_time() - start)
            found["pushed, elapsed"].append(time.perf_counter() - clock)
            start, clock = time.process_time(), time.perf_counter()
            for query in by_hand:
                connection.sql(query).to_arrow_table()
            found["hand"].append(time.process_time() - start)
            found["hand, elapsed"].append(time.perf_counter() - clock)
        assert len(pushed) == len(parts)
        start = time.perf_counter()
        clf.fit(relation, "label")
        found["fit"] = time.perf_counter() - start
    return {key: value[1:] if isinstance(value, list) else value for key, value in found.items()}


@benchmark("engines-sql")
def sql(share: float) -> Iterator[Row | str]:
    """Sums of 5 million rows of 20 columns in DuckDB, against the same aggregates written by hand."""
    rows = int(5_000_000 * share)
    found = run_job("sql", str(rows))
    for unit, end in (("CPU seconds", ""), ("elapsed", ", elapsed")):
        ours, theirs = found[f"pushed{end}"], found[f"hand{end}"]
        what = f"DuckDB: sums of {rows:,} rows of {COLUMNS} columns, {unit}"
        yield Row(what, "SQL by hand", theirs, ours, [a / b for a, b in zip(ours, theirs)], at_most(1.2))
    yield f"DuckDB: the whole fit, with the first rows and without calibration, {found['fit']:.1f} s"


if __name__ == "__main__":
    name, *given = sys.argv[1:]
    print(json.dumps(globals()[f"job_{name}"](*given)))
