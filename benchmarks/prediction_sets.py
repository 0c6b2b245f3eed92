"""Prediction sets: coverage and size on tables, texts and simulated rows, beside split conformal with the same score.

Rows are drawn at random: at most 300 are learnt, and at most 500 others are judged. Split conformal learns the first
half of the same rows and compares with the second half. Met: the coverage of cv+ is between .89 and .92 on average over
sets and seeds, and its sets are not larger than those of split conformal, apart from two standard errors of the
difference.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

from deciban import GenerativeClassifier
from deciban.model.prediction_sets import disagreement
from harness import Row, benchmark
from tables import SETS
from text_quality import FILES, parts

SEEDS = 20
LEARNT = 300
JUDGED = 500
COVERAGE = 0.9


@benchmark("prediction-sets")
def sets_of_classes(share: float) -> Iterator[Row | str]:
    """Coverage and size of prediction sets at 90 %, beside split conformal; needs DECIBAN_DATA for the shared sets."""
    yield "| set | rows | cv+ | size | empty | jackknife | size | split | size |\n|" + "---|" * 9
    seeds = max(2, round(SEEDS * share))
    means, gaps = [], []
    for name, X, y in data_sets():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # categories that were not drawn
            found = np.array([_judged(X, y, np.random.default_rng(seed)) for seed in range(seeds)])
        cover, size, empty, jack, jack_size, split, split_size = found.mean(axis=0)
        means.append(cover)
        gaps.append(size - split_size)
        n = min(LEARNT, len(y) // 2)
        cells = (
            f"{cover:.3f} | {size:.2f} | {empty:.3f} | {jack:.3f} | {jack_size:.2f} | {split:.3f} | {split_size:.2f}"
        )
        yield f"| {name} | {n} | {cells} |"
    error = np.std(gaps, ddof=1) / np.sqrt(len(gaps))
    yield f"mean coverage of cv+ {np.mean(means):.4f}: {'met' if 0.89 <= np.mean(means) <= 0.92 else 'not met'}"
    smaller = "met" if np.mean(gaps) <= 2 * error else "not met"
    yield f"size − split conformal's {np.mean(gaps):+.3f}, standard error {error:.3f}: {smaller}"


def data_sets() -> Iterator[tuple[str, Any, Any]]:
    """Yield name, rows as a frame or a series of texts, and labels."""
    for name, load in (
        ("iris", load_iris),
        ("wine", load_wine),
        ("breast", load_breast_cancer),
        ("digits", load_digits),
    ):
        yield name, *load(return_X_y=True, as_frame=True)
    yield from _simulated()
    folder = os.environ.get("DECIBAN_DATA")
    if folder is None:
        return
    for name, data in SETS.items():
        frame = pd.read_csv(Path(folder, data.path), na_values="?").drop(columns=list(data.drop))
        yield name, frame.drop(columns=data.label), frame[data.label]
    for name, file in FILES.items():
        texts, labels, _, _ = next(parts(Path(folder, file), 1.0))
        yield name, pd.Series(texts), pd.Series(labels)


def _simulated() -> Iterator[tuple[str, Any, Any]]:
    rng = np.random.default_rng(0)
    for name, distance, D in (("noise", 0.0, 5), ("two bells", 1.0, 2), ("lognormal", 1.0, 3), ("far apart", 8.0, 2)):
        y = rng.integers(0, 2 if D == 2 else 3, 3000)
        X = rng.normal(size=(3000, D)) + distance * y[:, None]
        X = np.exp(X) if name == "lognormal" else X
        yield name, pd.DataFrame(X, columns=[f"x{j}" for j in range(D)]), pd.Series(y)


def _judged(X: Any, y: Any, rng: Any) -> list[float]:
    """Return coverage, size and share of empty sets of cv+; coverage and size of jackknife and split conformal."""
    order = rng.permutation(len(y))
    n = min(LEARNT, len(y) // 2)
    train, test = order[:n], order[n : n + JUDGED]
    own = y.iloc[test].to_numpy()
    clf = _fitted(X, y, train)
    found = []
    for method in ("cv+", "jackknife"):
        made = clf.predict_set(_rows(X, test), COVERAGE, method)
        known = {label: at for at, label in enumerate(made.classes)}
        codes = np.array([known.get(label, -1) for label in own])
        inside = np.where(codes < 0, False, made.members[np.arange(len(codes)), codes])
        found += [inside.mean(), made.size.mean()] + [made.empty / len(made)] * (method == "cv+")
    return [*found, *_split(X, y, train, test, own)]


def _split(X: Any, y: Any, train: Any, test: Any, own: Any) -> list[float]:
    """Return coverage and size of split conformal."""
    half = len(train) // 2
    clf = _fitted(X, y, train[:half])
    known = {label: at for at, label in enumerate(clf.classes_.tolist())}

    def scores(rows: Any) -> Any:
        return disagreement(clf.log_likelihood(_rows(X, rows), constant=False), clf.log_prior())

    held = np.array([known.get(label, -1) for label in y.iloc[train[half:]]])
    each = scores(train[half:])[np.arange(len(held)), held]
    each = np.sort(np.where(held < 0, np.inf, each))
    made = scores(test)
    p = (1 + len(each) - np.searchsorted(each, made, side="left")) / (len(each) + 1)
    codes = np.array([known.get(label, -1) for label in own])
    members = p > 1 - COVERAGE + 1e-12
    inside = np.where(codes < 0, False, members[np.arange(len(codes)), codes])
    return [inside.mean(), members.sum(axis=1).mean()]


def _fitted(X: Any, y: Any, train: Any) -> GenerativeClassifier:
    return GenerativeClassifier().fit(_rows(X, train), y.iloc[train].to_numpy())


def _rows(X: Any, at: Any) -> Any:
    return X.iloc[at] if isinstance(X, pd.DataFrame) else X.iloc[at].tolist()
