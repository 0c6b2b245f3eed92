"""MLlib's side of the benchmark `engines-mllib`: a process with Spark in `local[2]` that fits when it is told to.

    python benchmarks/mllib_side.py JOB FOLDER

Run by benchmarks/mllib.py with the Python of an environment that has pyspark. Each line on standard input is a pattern
of Parquet files; the answer is a line of JSON with the seconds of a fit, by the clock and of the processor. The
line `judge` asks for what the last fit is judged by, and ends the process.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.ml import Pipeline, PipelineModel
from pyspark.ml.classification import NaiveBayes
from pyspark.ml.clustering import LDA, GaussianMixture
from pyspark.ml.feature import CountVectorizer, HashingTF, RegexTokenizer, StringIndexer, VectorAssembler
from pyspark.sql import DataFrame, SparkSession

MEMORY = "4g"
BUCKETS = 2**18  # of HashingTF
TOPICS, COMPONENTS = 50, 8  # mllib.py has the same
VOCABULARY = 2**20  # most words of CountVectorizer, whose default of 2**18 is less than some corpora have


def words(column: str = "text") -> RegexTokenizer:
    """Words of two letters or digits and more, as the other side has them."""
    return RegexTokenizer(inputCol=column, outputCol="words", pattern=r"(?U)\w\w+", gaps=False, toLowercase=True)


def numbers(frame: DataFrame) -> VectorAssembler:
    """All columns that are named x…, as one vector."""
    return VectorAssembler(inputCols=[name for name in frame.columns if name.startswith("x")], outputCol="features")


def counted(frame: DataFrame) -> list[Any]:
    return [words(), CountVectorizer(inputCol="words", outputCol="features", vocabSize=VOCABULARY)]


def hashed(frame: DataFrame) -> list[Any]:
    return [words(), HashingTF(inputCol="words", outputCol="features", numFeatures=BUCKETS)]


def classifier(stages: list[Any], kind: str) -> list[Any]:
    return [StringIndexer(inputCol="label", outputCol="code"), *stages, NaiveBayes(labelCol="code", modelType=kind)]


def topics(frame: DataFrame, optimizer: str, passes: int) -> list[Any]:
    return [*counted(frame), LDA(k=TOPICS, maxIter=passes, optimizer=optimizer, seed=1)]


STAGES: dict[str, Any] = {
    "words-counted": lambda frame: classifier(counted(frame), "multinomial"),
    "words-hashed": lambda frame: classifier(hashed(frame), "multinomial"),
    "numbers": lambda frame: classifier([numbers(frame)], "gaussian"),
    "mixture": lambda frame: [numbers(frame), GaussianMixture(k=COMPONENTS, maxIter=100, seed=1)],
    "topics-em": lambda frame: topics(frame, "em", 50),
    "topics-online": lambda frame: topics(frame, "online", 100),
}


def fitted(job: str, frame: DataFrame) -> list[Any]:
    """Return the fitted stages; what a fit reads many times is kept in memory."""
    *before, last = STAGES[job](frame)
    prepared = Pipeline(stages=before).fit(frame)
    rows = prepared.transform(frame)
    if not isinstance(last, LDA | GaussianMixture):
        return [*prepared.stages, last.fit(rows)]
    rows = rows.select("features").cache()
    try:
        return [*prepared.stages, last.fit(rows)]
    finally:
        rows.unpersist()


def cpu() -> float:
    """CPU seconds of this process and of its descendants, Java among them."""
    parents, spent = {}, {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
        except (OSError, IndexError):
            continue
        parents[int(entry.name)], spent[int(entry.name)] = int(fields[1]), int(fields[11]) + int(fields[12])
    family, found = {os.getpid()}, 1
    while found:
        more = {pid for pid, parent in parents.items() if parent in family} - family
        family, found = family | more, len(more)
    return sum(spent.get(pid, 0) for pid in family) / os.sysconf("SC_CLK_TCK")


def judged(job: str, stages: list[Any], session: SparkSession, folder: Path) -> dict[str, Any]:
    """Log loss of the test rows; of mixtures and topics, the parameters, by which the other process judges."""
    last = stages[-1]
    if job == "mixture":
        rows = last.gaussiansDF.collect()
        covariances = [np.asarray(row["cov"].toArray()).tolist() for row in rows]
        return {"weights": list(last.weights), "means": [list(row["mean"]) for row in rows], "covariances": covariances}
    if job.startswith("topics"):
        matrix = last.topicsMatrix().toArray()
        np.savez(folder / f"{job}.npz", topics=matrix, words=np.array(stages[1].vocabulary))
        return {}
    names = stages[0].labels
    answers = PipelineModel(stages).transform(session.read.parquet(str(folder / "test.parquet")))
    rows = answers.select("probability", "label").collect()
    chosen = np.array([row["probability"][names.index(row["label"])] for row in rows])
    return {"probabilities": chosen.tolist()}


def main() -> None:
    job, folder = sys.argv[1], Path(sys.argv[2])
    settings = {"spark.ui.enabled": "false", "spark.driver.memory": MEMORY, "spark.ui.showConsoleProgress": "false"}
    session = SparkSession.builder.master("local[2]").appName("mllib").config(map=settings).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    stages: list[Any] = []
    for line in sys.stdin:
        if line.strip() == "judge":
            print(json.dumps(judged(job, stages, session, folder)), flush=True)
            break
        clock, spent = time.perf_counter(), cpu()
        frame = session.read.parquet(line.strip())
        stages = fitted(job, frame)
        print(json.dumps({"elapsed": time.perf_counter() - clock, "cpu": cpu() - spent}), flush=True)
    session.stop()


if __name__ == "__main__":
    main()
