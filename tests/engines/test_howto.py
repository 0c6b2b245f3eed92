"""The Python blocks of docs/howto/many-machines.md run; Spark's are run by tests/engines/spark.py."""

import re
from pathlib import Path

import dask.dataframe as dd
import duckdb
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster

import deciban
from deciban import Gaussian, GenerativeClassifier, HiddenMarkovModel, MixtureModel, TopicModel

pytestmark = pytest.mark.slow

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "many-machines.md"
NAMES = {
    each.__name__: each
    for each in (Gaussian, GenerativeClassifier, HiddenMarkovModel, MixtureModel, TopicModel, deciban)
}


def blocks():
    found = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return [block for block in found if "fit(spark_df" not in block]


def logs(n=400):
    rng = np.random.default_rng(0)
    state = rng.integers(0, 2, n)
    return pd.DataFrame(
        {
            "size": rng.normal(2.0 * state, 1.0),
            "colour": rng.choice(["red", "blue"], n),
            "state": np.array(["ok", "late"])[state],
        }
    )


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for place in ("logs/2026-01", "logs/2026-02", "there"):
        (tmp_path / place).mkdir(parents=True)
        logs().to_parquet(tmp_path / place / "rows.parquet")
    rows = logs()
    with duckdb.connect(str(tmp_path / "logs.db")) as base:
        base.register("rows", rows)
        base.execute("CREATE TABLE logs AS SELECT * FROM rows")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def address():
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster:
        yield cluster.scheduler_address


def run(code, names):
    exec(compile(code, str(PAGE), "exec"), names)


def test_the_page_has_the_blocks_that_are_run_here():
    text = "".join(blocks())
    assert all(word in text for word in ("read_parquet", "HOST", "duckdb", "TopicModel"))


@pytest.mark.filterwarnings("ignore")  # of Dask
@pytest.mark.parametrize("block", [block for block in blocks() if "MixtureModel" not in block])
def test_a_block_of_the_page_runs(block, folder, address):
    code = block.replace("s3://bucket/logs/*.parquet", "logs/*/*.parquet")
    code = code.replace("dask://HOST:8786", address.replace("tcp://", "dask://"))
    names = {**NAMES, "a": GenerativeClassifier().fit(logs(), "state")}
    with Client(address):
        run(code, names)
    assert names.get("clf", names["a"]).classes_.tolist() == ["late", "ok"]


@pytest.mark.filterwarnings("ignore")  # of Dask, and of EM that ends early
def test_hidden_variables_are_found_in_frames(folder):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(300, 2)), columns=["a", "b"])
    frames = {
        "Mixture": rows,
        "Hidden": rows.assign(session=np.repeat(np.arange(10), 30)),
        "Topic": pd.DataFrame({"text": [" ".join(rng.choice(["red", "wine", "bread", "sea"], 5)) for _ in range(300)]}),
    }
    (block,) = (block for block in blocks() if "MixtureModel" in block)
    for line in block.strip().splitlines():
        frame = next(frame for kind, frame in frames.items() if line.startswith(kind))
        run(line, {**NAMES, "frame": dd.from_pandas(frame, npartitions=1)})
