"""Tables with nothing but the label's name: log loss beside naive Bayes as people set it up, and speed from files.

Ten stratified folds, three times over. The naive Bayes models get gaps filled (median, most frequent), numbers in ten
bins where they need bins, and alpha tuned on a fifth of the training rows; identifiers and texts are left out for them.
Met: our log loss is at most that of the best of them, and one standard error of the paired differences.
"""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, KBinsDiscretizer, OneHotEncoder, OrdinalEncoder, StandardScaler

from deciban import Categorical, Gaussian, GenerativeClassifier, Multinomial, load
from deciban.read.columns import NAMES, NUMBERS
from deciban.read.schema import Schema
from deciban.read.tables import Table
from harness import Row, at_least, at_most, benchmark, peak_memory, versus
from mixed_csv import write_mixed
from table_sets import SETS, Data

HEADINGS = ["log loss", "rows", "ours", "GaussianNB", "CategoricalNB", "BernoulliNB", "best + 1 se", "met", "logistic"]
WIDTHS = [16, 6, 6, 10, 13, 11, 11, 3, 8]
ALPHAS = (0.01, 0.1, 0.3, 1.0, 3.0, 10.0)
PEERS = ("GaussianNB", "CategoricalNB", "BernoulliNB")
ROUNDS = 3


@benchmark("tables")
def tables(share: float) -> Iterator[Row | str]:
    """Log loss on seven tables beside naive Bayes, and the speed of fitting from files"""
    folder = os.environ.get("DECIBAN_DATA")
    if folder is None:
        yield "set DECIBAN_DATA to the folder of data sets for the seven tables"
    else:
        yield _line(HEADINGS)
        yield "|" + "|".join("-" * (width + 2) for width in WIDTHS) + "|"
        for name, data in SETS.items():
            yield _line(_judged(name, Path(folder), data, share))
        yield from _adult_from_csv(Path(folder) / SETS["adult"].path)
    yield from _large_model(share)
    yield from _large_file(share)


# -- log loss ---------------------------------------------------------------------------------------------------------
def _judged(name: str, folder: Path, data: Data, share: float) -> list[str]:
    frame = pd.read_csv(folder / data.path, na_values="?").drop(columns=list(data.drop))
    if share < 1:
        frame = frame.sample(max(200, int(share * len(frame))), random_state=0)
    y, X = frame[data.label].to_numpy(), frame.drop(columns=data.label)
    sides = {"ours": GenerativeClassifier} | peers(X)
    losses: dict[str, list[float]] = {side: [] for side in sides}
    for turn in range(ROUNDS):
        for train, test in StratifiedKFold(10, shuffle=True, random_state=turn).split(X, y):
            for side, make in sides.items():
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # bins that are too narrow for the peers
                    model = _tuned(make, X.iloc[train], y[train])
                    losses[side].append(log_loss(model, X.iloc[test], y[test]))
    means = {side: float(np.mean(each)) for side, each in losses.items()}
    best = min(PEERS, key=lambda peer: means[peer])
    paired = np.array(losses["ours"]) - np.array(losses[best])
    bound = means[best] + paired.std(ddof=1) / np.sqrt(len(paired))
    shown = [f"{means[side]:.4f}" for side in ("ours", *PEERS)]
    met = "yes" if means["ours"] <= bound else "NO"
    return [name, f"{len(y):,}", *shown, f"{bound:.4f}", met, f"{means['logistic']:.4f}"]


def peers(X: pd.DataFrame) -> dict[str, Callable[..., Any]]:
    """Naive Bayes and logistic regression; each takes alpha where it has one."""
    kinds = Schema.infer(Table.of(X)).kinds
    numbers = [name for name, kind in kinds.items() if kind in NUMBERS]
    names = [name for name, kind in kinds.items() if kind in NAMES]
    sizes = [10] * len(numbers) + [int(X[name].nunique()) + 2 for name in names]
    middle = partial(SimpleImputer, strategy="median")
    usual = partial(SimpleImputer, strategy="most_frequent")
    bins = partial(KBinsDiscretizer, 10, strategy="quantile", quantile_method="averaged_inverted_cdf")

    def codes() -> Any:
        unknown = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
        return make_pipeline(usual(), unknown, FunctionTransformer(lambda codes: codes + 1))

    def flags() -> Any:
        return make_pipeline(usual(), OneHotEncoder(handle_unknown="ignore", sparse_output=False))

    def model(of_numbers: Any, of_names: Any, last: Any) -> Any:
        parts = [(part, columns) for part, columns in ((of_numbers, numbers), (of_names, names)) if columns]
        return make_pipeline(make_column_transformer(*parts), last)

    return {
        "GaussianNB": lambda: model(middle(), codes(), GaussianNB()),
        "CategoricalNB": lambda alpha: model(
            make_pipeline(middle(), bins(encode="ordinal")), codes(), CategoricalNB(alpha=alpha, min_categories=sizes)
        ),
        "BernoulliNB": lambda alpha: model(
            make_pipeline(middle(), bins(encode="onehot-dense")), flags(), BernoulliNB(alpha=alpha)
        ),
        "logistic": lambda: model(
            make_pipeline(middle(), StandardScaler()), flags(), LogisticRegression(max_iter=3000)
        ),
    }


def _tuned(make: Callable[..., Any], X: pd.DataFrame, y: Any) -> Any:
    """Fitted; with the alpha that does best on a fifth of the rows, where there is one."""
    if "alpha" not in getattr(getattr(make, "__code__", None), "co_varnames", ()):
        return make().fit(X, y)
    some, rest = train_test_split(np.arange(len(y)), test_size=0.2, random_state=0, stratify=y)
    losses = {}
    for alpha in ALPHAS:
        model = make(alpha).fit(X.iloc[some], y[some])
        losses[alpha] = log_loss(model, X.iloc[rest], y[rest])
    return make(min(losses, key=lambda alpha: losses[alpha])).fit(X, y)


def log_loss(model: Any, X: pd.DataFrame, y: Any) -> float:
    place = {name: at for at, name in enumerate(model.classes_)}
    p = model.predict_proba(X)[np.arange(len(y)), [place[name] for name in y]]
    return float(-np.log(np.maximum(p, 1e-15)).mean())


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, WIDTHS)) + " |"


# -- speed ------------------------------------------------------------------------------------------------------------
def _adult_from_csv(packed: Path) -> Iterator[Row]:
    numbers = ["age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"]
    names = ["workclass", "education", "marital-status", "occupation", "relationship", "race", "sex", "native-country"]
    families = {tuple(numbers): Gaussian("diagonal"), tuple(names): Categorical()}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "adult.csv"
        path.write_bytes(gzip.decompress(packed.read_bytes()))

        def theirs() -> Any:
            frame = pd.read_csv(path, na_values="?")
            X = SimpleImputer(strategy="median").fit_transform(frame[numbers])
            codes = OrdinalEncoder().fit_transform(SimpleImputer(strategy="most_frequent").fit_transform(frame[names]))
            return GaussianNB().fit(X, frame["income"]), CategoricalNB().fit(codes, frame["income"])

        def ours() -> Any:
            return GenerativeClassifier(families).fit(path, "income")

        theirs(), ours()
        job = "adult.csv to model, 48,842 × 14, families given"
        yield versus(job, "pandas + imputers + NBs", theirs, ours, at_least(5), repeats=11)


def _large_model(share: float) -> Iterator[Row]:
    """A released model of a gigabyte, from its file to the first score; the file is in the cache of the system."""
    V, K = int(6_600_000 * share), 20
    words = np.random.default_rng(0).integers(0, V, K * 50)
    X = sp.csr_array((np.ones(K * 50), (np.repeat(np.arange(K), 50), words)), shape=(K, V))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.deciban"
        GenerativeClassifier(Multinomial()).fit(X, np.arange(K)).released().save(path)
        job, times = f"released model of {path.stat().st_size / 1e9:.2f} GB, open to first score", []
        for _ in range(7):
            start = time.perf_counter()
            load(path).predict_proba(X[:1])
            times.append(time.perf_counter() - start)
        yield Row(job, "", [], times, [], at_most(0.05, "s"))


def _large_file(share: float) -> Iterator[str]:
    """Streaming a mixed CSV in a process of its own: seconds by the clock, and the most memory it had."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mixed.csv"
        rows = write_mixed(path, share * 1e9)
        run = [sys.executable, __file__, "stream", str(path)]
        for _ in range(3):
            seconds, cpu, memory = subprocess.run(run, check=True, capture_output=True, text=True).stdout.split()
            speed, size = path.stat().st_size / 1e6 / float(seconds), path.stat().st_size / 1e6
            yield (
                f"a mixed CSV of {size:,.0f} MB, {rows:,} rows, to a calibrated model: {speed:.0f} MB/s by the clock "
                f"({float(seconds):.1f} s; {float(cpu):.1f} CPU s, {size / float(cpu):.0f} MB a CPU second), at most "
                f"{float(memory):.0f} MB of memory; to reach: 60 MB/s on two cores, 500 MB"
            )


def _stream(path: str) -> None:
    start, cpu = time.perf_counter(), time.process_time()
    GenerativeClassifier().fit(path, "label")
    most = peak_memory()
    print(time.perf_counter() - start, time.process_time() - cpu, most)


if __name__ == "__main__" and sys.argv[1:2] == ["stream"]:
    _stream(sys.argv[2])
