"""MLlib's NaiveBayes, GaussianMixture and LDA in `local[2]` beside deciban on two Dask workers.

Both sides read the same Parquet files. Reading, counting of words and fitting are timed; the start of Spark and of Dask
is not, and each side fits a small part first. The sides take turns. Both are judged on the same test rows, by the same
code: log loss of classifiers, mean log density of mixtures, perplexity of topics by document completion.

Spark needs an environment of its own: SPARK_PYTHON names its Python, `.venv-spark/bin/python` otherwise, which
`make test-spark` makes.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from engines import TEXT_ROWS, write_texts
from harness import Row, at_least, benchmark
from topic_corpus import Corpus, corpus

ROOT = Path(__file__).resolve().parents[1]
FILES, REPEATS = 16, 3
NUMBERS, COMPONENTS, TOPICS = 10, 8, 50  # columns; mllib_side.py has the same sizes
NUMBER_ROWS, MIXTURE_ROWS = 4_000_000, 1_000_000
TEST_ROWS = 10_000
LEAST_P = 1e-15  # probabilities below it are raised to it, on both sides
ALPHA = 0.1  # of document completion, for both sides


# -- files -------------------------------------------------------------------------------------------------------------
def write(folder: Path, table: pa.Table, test: pa.Table) -> None:
    """Write rows to learn from in files, the test rows in one more, and a few rows to warm up with."""
    step = -(-len(table) // FILES)
    for at in range(FILES):
        pq.write_table(table.slice(at * step, step), folder / f"{at:03}.parquet")
    for at in range(2):  # an engine is used for two fragments and more
        pq.write_table(table.slice(at * 1_500, 1_500), folder / f"warm-{at}.parquet")
    pq.write_table(test, folder / "test.parquet")


def number_rows(n: int, seed: int) -> pa.Table:
    """Two classes of normal numbers."""
    rng = np.random.default_rng(seed)
    code = rng.integers(0, 2, n)
    columns = {f"x{j}": rng.normal(code * (j % 3) / 3, 1.0 + code * (j % 2)) for j in range(NUMBERS)}
    return pa.table(columns | {"label": np.array(["a", "b"])[code]})


def mixture_rows(n: int, seed: int) -> pa.Table:
    """Clusters of normal numbers that overlap, each with a covariance of its own."""
    rng, shapes = np.random.default_rng(seed), np.random.default_rng(0)
    means = shapes.normal(0, 2.5, (COMPONENTS, NUMBERS))
    roots = shapes.normal(0, 0.4, (COMPONENTS, NUMBERS, NUMBERS)) + np.eye(NUMBERS)
    code = rng.choice(COMPONENTS, n, p=shapes.dirichlet(np.full(COMPONENTS, 5.0)))
    x = means[code] + np.einsum("nij,nj->ni", roots[code], rng.normal(size=(n, NUMBERS)))
    return pa.table({f"x{j}": x[:, j] for j in range(NUMBERS)})


def text_files(folder: Path, share: float) -> str:
    """Documents whose words follow Zipf's law."""
    rows = int(TEXT_ROWS * share)
    with tempfile.TemporaryDirectory() as made:
        write_texts(Path(made), rows + rows // 10, 11)
        tables = [pq.read_table(file) for file in sorted(Path(made).iterdir())]
    write(folder, pa.concat_tables(tables[:-1]), tables[-1].slice(0, TEST_ROWS))
    return f"{rows:,} generated texts of 200 words"


def film_files(folder: Path, share: float) -> str | None:
    """Reviews of films, as they are divided into learnt and test rows; None where no folder of data sets is named."""
    data = os.environ.get("DECIBAN_DATA")
    if data is None:
        return None
    with gzip.open(Path(data, "imdb", "imdb.jsonl.gz"), "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    order = np.random.default_rng(0).permutation(len(rows))[: max(4_000, int(len(rows) * share))]
    table = pa.Table.from_pylist([{name: rows[at][name] for name in ("text", "label", "split")} for at in order])
    learnt, test = (table.filter(pa.compute.equal(table["split"], name)).drop(["split"]) for name in ("train", "test"))
    write(folder, learnt, test)
    return f"IMDB, {len(learnt):,} texts"


def number_files(folder: Path, share: float) -> str:
    rows = int(NUMBER_ROWS * share)
    write(folder, number_rows(rows, 1), number_rows(TEST_ROWS, 2))
    return f"{rows:,} rows of {NUMBERS} numbers"


def mixture_files(folder: Path, share: float) -> str:
    rows = int(MIXTURE_ROWS * share)
    write(folder, mixture_rows(rows, 1), mixture_rows(TEST_ROWS, 2))
    return f"{rows:,} rows of {NUMBERS} numbers, {COMPONENTS} components"


def topic_files(folder: Path, data: Corpus) -> str:
    """The documents of a corpus, of which only the words in its vocabulary are left."""
    names = np.array([f"w{at}" for at in range(data.learnt.shape[1])])
    X = data.learnt
    counts = X.data.astype(int)
    texts = [" ".join(np.repeat(names[X.indices[a:b]], counts[a:b])) for a, b in zip(X.indptr, X.indptr[1:])]
    table = pa.table({"text": texts})
    write(folder, table, table.slice(0, 10))
    return f"20 Newsgroups and R8, {len(texts):,} documents, {TOPICS} topics"


# -- our side: a process with two workers ------------------------------------------------------------------------------
def our_fit(job: str, files: str) -> Any:
    import dask.dataframe as dd

    from deciban import Gaussian, GenerativeClassifier, MixtureModel, Text, TopicModel

    if job.startswith("words"):
        # calibrated, as by default: the words of a text are not independent, and HashingTF's collisions soften that
        family = Text(transform="counts", pseudo_count=1.0)
        return GenerativeClassifier({"text": family}, ledger=False).fit(files, "label")
    if job == "numbers":
        return GenerativeClassifier(Gaussian("diagonal"), calibrate=None, ledger=False).fit(files, "label")
    frame = dd.read_parquet(files)
    if job == "mixture":
        # maximum likelihood, as MLlib's: the prior of the default rule costs log density of narrow components
        return MixtureModel(COMPONENTS, Gaussian("full"), rule="ml", max_iter=100, random_state=1).fit(frame)
    return TopicModel(n_components=TOPICS, stop_words=None, random_state=1).fit(frame["text"])


def our_judgement(job: str, model: Any, folder: Path) -> dict[str, Any]:
    if job == "mixture":
        return {
            "weights": model.weights_.tolist(),
            "means": model.means_.tolist(),
            "covariances": model.covariances_.tolist(),
            "passes": model.n_iter_,
        }
    if job.startswith("topics"):
        np.savez(folder / "ours.npz", topics=model.topics_.T, words=np.array(model.vocabulary_, dtype=str))
        return {"passes": model.n_iter_}
    test = pq.read_table(folder / "test.parquet")
    labels, answers = np.array(test["label"]), model.predict_proba(test.drop(["label"]))
    return {"probabilities": answers[np.arange(len(labels)), np.searchsorted(model.classes_, labels)].tolist()}


def our_side(job: str, folder: Path) -> None:
    """As mllib_side.py: a pattern of files on each line of standard input, seconds on standard output."""
    from deciban.engines import CURRENT
    from deciban.engines.dask import DaskEngine, workers_here

    with workers_here(2) as client, client.as_current():
        CURRENT.set(DaskEngine(client, quiet=True))

        def cpu() -> float:
            return sum(client.run(time.process_time).values()) + time.process_time()

        model = None
        for line in sys.stdin:
            if line.strip() == "judge":
                print(json.dumps(our_judgement(job, model, folder)), flush=True)
                break
            clock, spent = time.perf_counter(), cpu()
            model = our_fit(job, line.strip())
            print(json.dumps({"elapsed": time.perf_counter() - clock, "cpu": cpu() - spent}), flush=True)


# -- both sides, turn about --------------------------------------------------------------------------------------------
class Side:
    """A process that fits when it is told to."""

    def __init__(self, *command: str) -> None:
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, line: str) -> dict[str, Any]:
        """Send a line, and return the next line of JSON."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(line, file=self.process.stdin, flush=True)
        for answer in self.process.stdout:
            if answer.startswith("{"):
                return json.loads(answer)
        raise RuntimeError(f"{self.process.args} ended with code {self.process.wait()}")

    def end(self) -> None:
        """Close the input, at which the process ends."""
        self.process.communicate()


def beside(job: str, folder: Path, spark: Path) -> tuple[list[Any], list[Any], Any, Any]:
    """Seconds of each fit of MLlib and of ours, and what the last ones are judged by."""
    files, warm = f"{folder}/[0-9]*.parquet", f"{folder}/warm-*.parquet"
    theirs = Side(str(spark), str(ROOT / "benchmarks" / "mllib_side.py"), job, str(folder))
    ours = Side(sys.executable, __file__, job, str(folder))
    try:
        for side in (theirs, ours):
            side.ask(warm)
        pairs = [(theirs.ask(files), ours.ask(files)) for _ in range(REPEATS)]
        return [a for a, _ in pairs], [b for _, b in pairs], theirs.ask("judge"), ours.ask("judge")
    finally:
        theirs.end()
        ours.end()


def rows_of(what: str, peer: str, theirs: list[Any], ours: list[Any]) -> Iterator[Row]:
    """CPU seconds of all processes, and seconds by the clock."""
    for unit, said in (("cpu", "CPU seconds"), ("elapsed", "elapsed")):
        a, b = [each[unit] for each in theirs], [each[unit] for each in ours]
        yield Row(f"{what}, {said}", peer, a, b, [x / y for x, y in zip(a, b)], at_least(1.0))


def log_loss(judged: dict[str, Any]) -> float:
    return float(-np.log(np.maximum(judged["probabilities"], LEAST_P)).mean())


def log_density(judged: dict[str, Any], rows: Any) -> float:
    """The mean log density of rows under a mixture of normal distributions."""
    parts = zip(judged["weights"], judged["means"], judged["covariances"])
    each = [np.log(weight) + multivariate_normal(mean, covariance).logpdf(rows) for weight, mean, covariance in parts]
    return float(logsumexp(each, axis=0).mean())


def perplexity(data: Corpus, file: Path) -> float:
    """The perplexity of held-out halves of documents; words by their names."""
    found = np.load(file)
    topics = np.zeros((found["topics"].shape[1], data.learnt.shape[1]))
    topics[:, [int(word[1:]) for word in found["words"]]] = found["topics"].T
    topics += 1e-12 * topics.sum(axis=1, keepdims=True)  # words of which a topic has nothing
    return data.judge(topics / topics.sum(axis=1, keepdims=True), ALPHA)


def spark() -> Path | None:
    """The Python of an environment with Spark; None if there is none."""
    found = Path(os.environ.get("SPARK_PYTHON", ROOT / ".venv-spark" / "bin" / "python"))
    return found if found.exists() else None


NO_SPARK = "no environment with Spark: `make test-spark` makes one, or SPARK_PYTHON names its Python; nothing was run"


@benchmark("mllib-bayes")
def bayes(share: float) -> Iterator[Row | str]:
    """MLlib's NaiveBayes in local[2] beside two Dask workers: log loss and seconds; needs Spark"""
    python = spark()
    if python is None:
        yield NO_SPARK
        return
    classified: list[tuple[str, str, Callable[[Path, float], str | None]]] = [
        ("words-hashed", "NaiveBayes, HashingTF", text_files),
        ("words-counted", "NaiveBayes, CountVectorizer", text_files),
        ("words-hashed", "NaiveBayes, HashingTF", film_files),
        ("words-counted", "NaiveBayes, CountVectorizer", film_files),
        ("numbers", "NaiveBayes, gaussian", number_files),
    ]
    for job, peer, files in classified:
        with tempfile.TemporaryDirectory() as folder:
            what = files(Path(folder), share)
            if what is None:
                continue
            theirs, ours, their_answers, our_answers = beside(job, Path(folder), python)
        yield from rows_of(what, peer, theirs, ours)
        yield f"{what}: log loss {log_loss(their_answers):.4f} of {peer}, {log_loss(our_answers):.4f} of ours"


@benchmark("mllib-mixture")
def mixture(share: float) -> Iterator[Row | str]:
    """MLlib's GaussianMixture in local[2] beside two Dask workers: log density and seconds; needs Spark"""
    python = spark()
    if python is None:
        yield NO_SPARK
        return
    with tempfile.TemporaryDirectory() as folder:
        what = mixture_files(Path(folder), share)
        theirs, ours, their_answers, our_answers = beside("mixture", Path(folder), python)
        test = np.column_stack(pq.read_table(Path(folder, "test.parquet")).columns)
    yield from rows_of(what, "GaussianMixture", theirs, ours)
    yield (
        f"{what}: mean log density of test rows {log_density(their_answers, test):.4f} of GaussianMixture, "
        f"{log_density(our_answers, test):.4f} of ours ({our_answers['passes']} passes)"
    )


@benchmark("mllib-topics")
def topics(share: float) -> Iterator[Row | str]:
    """MLlib's LDA in local[2] beside two Dask workers: perplexity and seconds; needs Spark"""
    python, data = spark(), corpus(share)
    if python is None:
        yield NO_SPARK
        return
    for optimizer in ("em", "online") if data is not None else ():
        assert data is not None
        with tempfile.TemporaryDirectory() as folder:
            what = topic_files(Path(folder), data)
            theirs, ours, _, our_answers = beside(f"topics-{optimizer}", Path(folder), python)
            found = [perplexity(data, Path(folder, name)) for name in (f"topics-{optimizer}.npz", "ours.npz")]
        yield from rows_of(what, f"LDA, {optimizer}", theirs, ours)
        yield (
            f"{what}: perplexity of held-out words {found[0]:,.0f} of LDA, {optimizer}, {found[1]:,.0f} of ours "
            f"({our_answers['passes']} passes; {median(each['elapsed'] for each in ours):.0f} s elapsed)"
        )


if __name__ == "__main__":
    our_side(sys.argv[1], Path(sys.argv[2]))
