"""The engine of Spark on executors that are processes of their own; one of them is killed during fits.

    python tests/engines/spark.py

Run by `make test-spark`, which needs Java 17 and installs pyspark (456 MB) in an environment of its own.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
import time
import warnings
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import deciban
from deciban import PLSA, Gaussian, GenerativeClassifier, HiddenMarkovModel, Mixture, MixtureModel, TopicModel
from deciban.engines.spark import SparkEngine
from deciban.errors import ConvergenceWarning, DecibanError, EngineError, InputError
from engine_rows import ROWS, assert_close_sums, assert_equal_models, columns, groups, planned, write

FAMILIES = {"size": "gaussian", "colour": "categorical", "calls": "poisson"}


def main() -> None:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local-cluster[2,1,1024]").appName("deciban-test")
    paths = os.pathsep.join(path for path in sys.path if path)
    settings = {
        "spark.ui.enabled": "false",
        "spark.executorEnv.PYTHONPATH": paths,
        "spark.rpc.askTimeout": "600s",  # of a busy machine
        "spark.network.timeout": "800s",
    }
    session = builder.config(map=settings).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    try:
        with tempfile.TemporaryDirectory() as folder:
            campaign(session, Path(folder))
    finally:
        session.stop()


def campaign(session: SparkSession, folder: Path) -> None:
    table = columns(ROWS)
    pattern = write(folder, table, 4, 4_000)
    clf = GenerativeClassifier(FAMILIES, calibrate="offsets")
    alone = GenerativeClassifier(FAMILIES, calibrate="offsets").fit(pattern, "label")
    frame = session.createDataFrame(table).coalesce(4).cache()
    rows = frame.toArrow()
    whole = GenerativeClassifier(FAMILIES, calibrate="offsets").fit(rows, "label")

    start = time.monotonic()
    clf.fit(frame, "label")
    say("a DataFrame is fitted", start)
    assert_equal_models(whole.model_, clf.model_)

    start = time.monotonic()
    answers = clf.predict_proba(frame.drop("label")).toArrow()
    assert answers.column_names == ["size", "colour", "calls", "P(high)", "P(low)"]
    found = np.column_stack([answers["P(high)"], answers["P(low)"]])
    np.testing.assert_allclose(found, whole.predict_proba(rows.drop(["label"])), atol=1e-12)
    decided = clf.predict(frame, prior="uniform").select("prediction").toArrow()["prediction"].to_pylist()
    assert decided == whole.predict(rows.drop(["label"]), prior="uniform").tolist()
    say("a DataFrame is answered", start)

    start = time.monotonic()
    with deciban.engine("spark"):
        files = GenerativeClassifier(FAMILIES, calibrate="offsets").fit(pattern, "label")
    assert_equal_models(alone.model_, files.model_)
    say("files are fitted", start)

    hidden(session)
    (folder / "groups").mkdir()
    mixtures_of_classes(session, folder / "groups")
    kills(session, clf, pattern)
    bad_input(session, frame, folder, pattern)


def hidden(session: SparkSession) -> None:
    """Passes over partitions: the objectives of one machine in every iteration."""
    rng = np.random.default_rng(0)
    code = np.repeat(rng.integers(0, 2, 300), 20)
    table = pa.table({"x": rng.normal(3.0 * code, 1.0), "y": rng.normal(code, 1.0), "session": np.arange(6_000) // 60})

    def parted(rows: pa.Table):
        return session.createDataFrame(rows).coalesce(1).repartitionByRange(3, "session").cache()

    start = time.monotonic()
    frame = parted(table)
    rows = frame.toArrow()
    pairs, alone = frame.select("x", "y"), rows.select(["x", "y"])
    one, two = (MixtureModel(2, Gaussian("full"), random_state=0).fit(each).fitted_ for each in (alone, pairs))
    np.testing.assert_allclose(two.trace.objective, one.trace.objective, rtol=1e-10)
    say(f"a mixture is fitted in {len(two.trace.objective)} passes", start)

    start = time.monotonic()
    options = {"family": Gaussian("diagonal"), "n_states": 2, "random_state": 0}
    two = HiddenMarkovModel(**options).fit(frame, lengths="session")
    one = HiddenMarkovModel(**options).fit(alone, lengths=[60] * 100)
    np.testing.assert_allclose(two.trace_.objective, one.trace_.objective, rtol=1e-10)
    say(f"a hidden Markov model is fitted in {len(two.trace_.objective)} passes", start)

    start = time.monotonic()
    words = rng.integers(0, 20, (400, 30)) + 20 * rng.integers(0, 2, (400, 1))
    texts = [" ".join(f"w{word:02}" for word in row) for row in words]
    shared = session.createDataFrame(pa.table({"text": texts})).coalesce(3).cache()
    for kind in (PLSA, TopicModel):
        found, alone = (kind(n_components=2, random_state=0, min_df=1).fit(each) for each in (shared, texts))
        assert (found.documents_, found.tokens_) == (400, 400 * 30)
        assert found.perplexity(texts) < 1.02 * alone.perplexity(texts)
        say(f"topics of {kind.__name__} are fitted", start)
    refused(InputError, "one column of texts", lambda: PLSA(n_components=2).fit(frame))


def mixtures_of_classes(session: SparkSession, folder: Path) -> None:
    """EM of each class over fragments: the sums of one machine."""
    start = time.monotonic()
    pattern = write(folder, groups(ROWS).drop(["colour"]), 3)
    clf = GenerativeClassifier(Mixture(Gaussian("full"), 2, max_iter=3, random_state=0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        alone = planned(clf, pattern, size=2**30)
        found = planned(clf, pattern, SparkEngine(session), size=2**30)
    assert_close_sums(alone.model.stats, found.model.stats)
    say("mixtures of a classifier are fitted", start)


def kills(session: SparkSession, clf: GenerativeClassifier, pattern: str) -> None:
    serial, engine = planned(clf, pattern), SparkEngine(session)
    for turn in range(3):
        victims = executors()
        killed = threading.Event()

        def kill(pid=victims[0], killed=killed, wait=0.3 + 0.5 * turn):
            time.sleep(wait)
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                killed.set()

        thread = threading.Thread(target=kill)
        start = time.monotonic()
        thread.start()
        found = planned(clf, pattern, engine)
        in_time = killed.is_set()
        thread.join()
        assert serial.model.stats.same(found.model.stats)
        assert serial.model.calibration.agrees(found.model.calibration)
        say(
            f"one of {len(victims)} executors was killed {'during' if in_time else 'after'} a fit: the same bits", start
        )


def executors() -> list[int]:
    """The processes of the executors that this program started."""
    found = []
    for process in Path("/proc").iterdir():
        with suppress(OSError):
            text = (process / "cmdline").read_bytes()
            if b"CoarseGrainedExecutorBackend" in text and _descends(int(process.name)):
                found.append(int(process.name))
    assert found, "there is no executor"
    return found


def _descends(pid: int) -> bool:
    while pid > 1:
        if pid == os.getpid():
            return True
        pid = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    return False


def bad_input(session: SparkSession, frame, folder: Path, pattern: str) -> None:
    refused(InputError, "has no column 'colur'", lambda: GenerativeClassifier().fit(frame, "colur"))
    bad = frame.selectExpr("size", "colour", "CASE WHEN calls > 8 THEN -3 ELSE calls END AS calls", "label")
    refused(DecibanError, "calls", lambda: GenerativeClassifier({"calls": "poisson"}, calibrate=None).fit(bad, "label"))
    items = [(part, task) for part, task in _files(pattern)]
    pq.write_table(columns(100, 1).drop(["calls"]), folder / "009.parquet")
    clf = GenerativeClassifier(FAMILIES, calibrate=None)
    refused(InputError, "009.parquet", lambda: planned(clf, pattern, SparkEngine(session)))

    def broken(data, task):
        raise MemoryError("too little memory")

    refused(EngineError, "a worker failed (MemoryError", lambda: list(SparkEngine(session).each(broken, items)))

    def dying(data, task):
        if task.place == 2:
            os._exit(1)

    said = f"{items[2][1].name}: Spark could not finish its task"
    refused(EngineError, said, lambda: list(SparkEngine(session).each(dying, items)))
    print("bad input is named, and no model is made")


def _files(pattern: str):
    from deciban.engines.tasks import Files, parts_of
    from deciban.read.files import open_source

    source = open_source(pattern)
    return Files(source, "label", parts_of(source)).items(0)


def refused(kind: type[Exception], text: str, act) -> None:
    try:
        act()
    except kind as error:
        if text in str(error):
            return
        raise
    raise SystemExit(f"nothing was refused: {text}")


def say(what: str, start: float) -> None:
    print(f"{what} ({time.monotonic() - start:.1f} s)", flush=True)


if __name__ == "__main__":
    main()
