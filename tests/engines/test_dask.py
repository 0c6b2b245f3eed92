"""The engine of Dask, on a cluster of real processes."""

import glob
import os
import signal
import subprocess
import sys
import threading
import time

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

import deciban
from deciban import Gaussian, GenerativeClassifier
from deciban.engines.dask import KEPT_BYTES, DaskEngine, workers_here
from deciban.engines.tasks import Adding, Task
from deciban.errors import DomainError, EngineError, InputError
from engine_rows import ROWS, assert_equal_models, columns, planned, write

distributed = pytest.importorskip("distributed")
FAMILIES = {"size": "gaussian", "colour": "categorical", "calls": "poisson"}
pytestmark = [
    pytest.mark.xdist_group("dask"),
    pytest.mark.filterwarnings(
        "ignore::ResourceWarning",  # sockets of processes that were killed
        "ignore::pytest.PytestUnraisableExceptionWarning",
        "ignore:The inplace keyword:DeprecationWarning",  # Dask with pandas 3.1
    ),
]


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def pattern(tmp_path_factory):
    return write(tmp_path_factory.mktemp("rows"), columns(ROWS), 4, 1_000)


@pytest.fixture(scope="module")
def one_machine(pattern):
    return GenerativeClassifier(FAMILIES, calibrate="offsets").fit(pattern, "label")


def test_a_frame_is_fitted_and_answered_where_its_partitions_are(client, pattern, one_machine):
    frame = dd.read_parquet(pattern)
    with client.as_current():
        clf = GenerativeClassifier(FAMILIES, calibrate="offsets").fit(frame, "label")
        answers = clf.predict_proba(frame.drop(columns="label"))
        classes = clf.predict(frame, prior="uniform")
        assert isinstance(answers, dd.DataFrame)
        found, decided = answers.compute(), classes.compute()
    assert_equal_models(one_machine.model_, clf.model_)
    rows = pd.read_parquet(sorted(glob.glob(pattern)))
    assert list(found.columns) == ["high", "low"]
    np.testing.assert_allclose(found, one_machine.predict_proba(rows), atol=1e-12)
    assert (decided.to_numpy() == one_machine.predict(rows, prior="uniform")).all()
    assert len(found) == len(rows)


def test_empty_partitions_add_nothing(pattern, one_machine):
    frame = dd.read_parquet(pattern)
    some = frame[frame["calls"] > 100]
    clf = GenerativeClassifier(FAMILIES, calibrate="offsets").fit(dd.concat([some, frame, some]), "label")
    assert_equal_models(one_machine.model_, clf.model_)
    assert len(clf.predict_proba(some).compute()) == 0


def test_fragments_that_a_task_sums_together_change_no_bit(client, tmp_path):
    many = write(tmp_path, columns(ROWS), 70, 1_000)  # more than a block, and no multiple of 8
    clf = GenerativeClassifier({**FAMILIES, "size": Gaussian("diagonal")}, calibrate=None)
    alone, found = planned(clf, many), planned(clf, many, DaskEngine(client, quiet=True))
    assert found.model.stats.same(alone.model.stats)


@pytest.mark.slow
def test_a_worker_that_is_killed_changes_no_bit(client, pattern):
    clf = GenerativeClassifier(FAMILIES, calibrate="offsets")
    alone = planned(clf, pattern)
    victim = next(iter(client.run(os.getpid).values()))
    killed = threading.Event()

    def kill():
        while not any("deciban-sums" in str(key) for keys in client.has_what().values() for key in keys):
            time.sleep(0.002)
        os.kill(victim, signal.SIGKILL)
        killed.set()

    threading.Thread(target=kill, daemon=True).start()
    found = planned(clf, pattern, DaskEngine(client, quiet=True))
    assert killed.wait(10)
    assert found.model.stats.same(alone.model.stats)
    assert found.model.calibration.agrees(alone.model.calibration)


class Tuples(Adding):
    """Adds tuples; the first part has all of them in the end."""

    def add(self, values):
        return sum(values, ())

    def cuts(self, first):
        return None

    def split(self, value, cuts):
        return [value, *[()] * (self.parts - 1)]

    def join(self, pieces):
        return sum(pieces, ())


@pytest.mark.parametrize("parts", [1, 3])
def test_a_cluster_has_the_tasks_of_few_fragments_at_a_time(client, monkeypatch, parts):
    monkeypatch.setattr("deciban.engines.dask.BLOCK", 8)
    items = [(at, Task(at, f"part {at}")) for at in range(300)]
    fragments, ended = [], threading.Event()

    def look():
        while not ended.wait(0.002):
            groups = [str(key[0]) for key in list(client.cluster.scheduler.tasks) if isinstance(key, tuple)]
            fragments.append(len([group for group in groups if "deciban-sums" in group and "part" not in group]))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        found = list(DaskEngine(client, quiet=True).total(_pieces_of(parts), items, Tuples(parts)))
    finally:
        ended.set()
        thread.join()
    assert found[0] == (*range(300), *([0] * 300 * (parts - 1)))
    assert len(found) == parts
    assert max(fragments) > 0
    if parts == 1:
        assert max(fragments) <= 4 * 8


def _pieces_of(parts):
    return lambda data, task: [(data,), *[(0,)] * (parts - 1)]


class Together:
    """Work that ends when so many processes have begun to do it: the process."""

    def __init__(self, folder, processes):
        self.folder, self.processes = folder, processes

    def __call__(self, data, task):
        (self.folder / str(os.getpid())).touch()
        _wait(lambda: len(list(self.folder.iterdir())) >= self.processes)
        return [(os.getpid(),)]


class Slow:
    """Work that ends in one process when so many fragments are done by others: the process."""

    def __init__(self, folder, slow, others):
        self.folder, self.slow, self.others = folder, slow, others

    def __call__(self, data, task):
        if os.getpid() == self.slow:
            _wait(lambda: len(list(self.folder.iterdir())) >= self.others)
        else:
            (self.folder / str(task.place)).touch()
        return [(os.getpid(),)]


def _wait(reached):
    end = time.monotonic() + 60
    while not reached():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.parametrize("fragments", [2, 3, 40])
@pytest.mark.parametrize("method", ["total", "each", "keep"])
def test_workers_share_the_fragments(client, tmp_path, method, fragments):
    items = [(at, Task(at, f"part {at}")) for at in range(fragments)]
    engine, work = DaskEngine(client, quiet=True), Together(tmp_path, 2)
    if method == "keep":
        items, work = engine.keep(work, items), lambda data, task: data
    found = engine.total(work, items, Tuples(1)) if method == "total" else engine.each(work, items)
    processes = next(found) if method == "total" else [process for [(process,)] in found]
    assert len(processes) == fragments
    assert len(set(processes)) == 2


def test_a_worker_that_is_slow_does_fewer_fragments(client, tmp_path):
    items = [(at, Task(at, f"part {at}")) for at in range(64)]
    slow = next(iter(client.run(os.getpid).values()))
    [processes] = DaskEngine(client, quiet=True).total(Slow(tmp_path, slow, 44), items, Tuples(1))
    assert processes.count(slow) <= 20


def test_a_cluster_has_as_many_workers_as_were_asked_for_and_they_keep_freed_memory(monkeypatch):
    limits = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_")
    for name in limits:
        monkeypatch.delenv(name, raising=False)  # clusters of other tests leave them in this process
    with workers_here(1) as client:
        assert len(client.scheduler_info()["workers"]) == 1
        assert [*client.run(lambda: [os.environ[name] for name in limits]).values()] == [[str(KEPT_BYTES)] * 2]


def test_the_environment_of_workers_is_not_that_of_the_program(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setenv("MKL_NUM_THREADS", "3")
    before = dict(os.environ)
    with workers_here(1) as client:
        assert dict(os.environ) == before
        assert [*client.run(lambda: os.environ["OMP_NUM_THREADS"]).values()] == ["1"]


def test_the_engine_of_a_with_statement_reads_files_by_pattern(client, pattern, one_machine):
    with deciban.engine(client.scheduler.address.replace("tcp", "dask")) as engine:
        assert isinstance(engine, DaskEngine)
        clf = GenerativeClassifier(FAMILIES, calibrate="offsets").fit(pattern, "label")
    assert_equal_models(one_machine.model_, clf.model_)
    assert clf.feature_names_in_.tolist() == ["size", "colour", "calls"]


@pytest.mark.slow
def test_commands_fit_and_predict_by_an_engine(client, pattern, tmp_path):
    place = client.scheduler.address.replace("tcp", "dask")
    model, answers = (str(tmp_path / name) for name in ("m.deciban", "answers.csv"))

    def run(*arguments):
        return subprocess.run([sys.executable, "-m", "deciban", *arguments], capture_output=True, text=True)

    fit = run("fit", pattern, "--label", "label", "--engine", place, "--no-ledger", "--quiet", "-o", model)
    assert fit.returncode == 0, fit.stderr
    predict = run("predict", model, pattern, "--engine", place, "-o", answers)
    assert predict.returncode == 0, predict.stderr
    found = pd.read_csv(answers)
    alone = deciban.load(model).predict_proba(pattern)
    np.testing.assert_allclose(found[["P(high)", "P(low)"]], alone, rtol=1e-3)


@pytest.mark.slow
def test_a_partition_of_another_kind_is_named_and_nothing_is_written(client, pattern, tmp_path):
    frame = dd.read_parquet(pattern)

    def spoilt(part, partition_info=None):
        return part.assign(calls="many") if partition_info and partition_info["number"] == 2 else part

    clf = GenerativeClassifier(FAMILIES, calibrate=None)
    with client.as_current(), pytest.raises(InputError, match=r"partition 2: column 'calls' is of type"):
        clf.fit(frame.map_partitions(spoilt, meta=frame._meta), "label")
    assert not clf.__sklearn_is_fitted__()

    for file in glob.glob(pattern):
        os.symlink(file, tmp_path / os.path.basename(file))
    (tmp_path / "004.parquet").write_bytes(b"PAR1 cut off PAR1")
    model, place = tmp_path / "m.deciban", client.scheduler.address.replace("tcp", "dask")
    arguments = ["fit", f"{tmp_path}/*.parquet", "--label", "label", "--engine", place, "-o", str(model)]
    run = subprocess.run([sys.executable, "-m", "deciban", *arguments], capture_output=True, text=True)
    assert run.returncode != 0
    assert "004.parquet" in run.stderr
    assert sorted(os.listdir(tmp_path)) == [f"{at:03}.parquet" for at in range(5)]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda part: part.drop(columns="calls"), r"partition 4 has other columns than the first partition: it lacks"),
        (lambda part: part.assign(more=1), r"partition 4 has other columns than the first partition: it has also"),
        (lambda part: part.assign(calls="many"), r"column 'calls' holds 'many' \(partition 4, row 0\)"),
        (lambda part: part.assign(label=None), r"partition 4, row 0: \d+ of \d+ labels are missing"),
    ],
)
def test_a_partition_behind_the_first_rows_is_named(change, said):
    table = columns(ROWS + 500).to_pandas()
    parts = [table.iloc[:ROWS].iloc[at * 20_000 :][:20_000] for at in range(4)]
    frame = dd.from_map(lambda part: part, [*parts, change(table.iloc[ROWS:])], meta=table.iloc[:0])
    with pytest.raises(InputError if "holds" not in said else DomainError, match=said):
        GenerativeClassifier(FAMILIES, calibrate=None).fit(frame, "label")


def test_workers_without_deciban_or_of_another_version_are_named():
    class Cluster:
        def __init__(self, found):
            self.found = found

        def run(self, function, *args, **options):
            assert function(*args) == deciban.__version__
            return self.found

    with pytest.raises(EngineError, match="worker tcp://b cannot import deciban"):
        DaskEngine(
            Cluster({"tcp://a": deciban.__version__, "tcp://b": ModuleNotFoundError("No module named 'deciban'")})
        )
    with pytest.raises(EngineError, match=r"worker tcp://b has deciban 0\.0\.1"):
        DaskEngine(Cluster({"tcp://b": "0.0.1"}))
    with pytest.raises(EngineError, match="no workers"):
        DaskEngine(Cluster({}))


def test_no_scheduler_no_labels_and_no_such_engine_are_said(monkeypatch):
    monkeypatch.setattr("deciban.engines.dask.CONNECT", 0.5)
    with pytest.raises(EngineError, match="no Dask scheduler answers"), deciban.engine("dask://127.0.0.1:9"):
        pass
    with pytest.raises(InputError, match="engine 'flink' is not one of"), deciban.engine("flink"):
        pass
    frame = dd.from_pandas(columns(10).to_pandas(), npartitions=1)
    with pytest.raises(InputError, match="labels in a column"):
        GenerativeClassifier().fit(frame, np.zeros(10))
    with pytest.raises(InputError, match="has no column 'colur'"):
        GenerativeClassifier().fit(frame, "colur")
