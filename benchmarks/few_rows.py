"""Few rows: what a model says after a dozen, a hundred, a thousand, on tables and texts, as it is by default.

Rows are drawn at random, and classes of which only one was drawn are left out. What is shown is the mean log loss of
at most a thousand other rows of the same classes. Beside it: the same model calibrated without any belief beforehand,
and not at all; logistic regression (on one-hot and scaled columns, or log counts of words), and the proportions of the
classes alone, which know nothing of the row. Of the texts that have a test part, the training part is used.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.dummy import DummyClassifier

from deciban import GenerativeClassifier
from deciban.errors import DecibanError
from deciban.evaluate import scale_fit
from harness import Row, benchmark
from tables import SETS, log_loss, peers
from text_quality import FILES, models, parts

SIZES = (12, 25, 50, 100, 300, 1000)
DRAWS = 8
JUDGED = 1000
WIDTHS = ("LOG_SCALE_SD", "SHARED_LOG_SCALE_SD", "ABOVE_CENTRE_SD", "SHRINKAGE_SD", "OFFSET_SD")


@benchmark("few-rows")
def few_rows(share: float) -> Iterator[Row | str]:
    """Log loss after 12 to 1,000 rows, beside knowing nothing; needs DECIBAN_DATA."""
    folder = os.environ.get("DECIBAN_DATA")
    if folder is None:
        yield "DECIBAN_DATA names no directory of data sets: nothing was run"
        return
    yield f"| log loss | side | {' | '.join(f'{n:,} rows' for n in SIZES)} |\n|{'---|' * (len(SIZES) + 2)}"
    draws = max(1, round(DRAWS * share))
    for name, data in SETS.items():
        frame = pd.read_csv(Path(folder, data.path), na_values="?").drop(columns=list(data.drop))
        X, y = frame.drop(columns=data.label), frame[data.label].to_numpy()
        yield from _lines(name, X, y, peers(X)["logistic"], draws)
    for name, file in FILES.items():
        texts, labels, _, _ = next(parts(Path(folder, file), 1.0))
        yield from _lines(name, pd.Series(texts), np.array(labels), models()[-1], draws)


def _lines(name: str, X: Any, y: Any, logistic: Callable[[], Any], draws: int) -> Iterator[str]:
    sides = {
        "as it is": GenerativeClassifier,
        "nothing believed": Unbelieving,
        "uncalibrated": lambda: GenerativeClassifier(calibrate=None),
        "logistic": logistic,
        "proportions": lambda: DummyClassifier(strategy="prior"),
    }
    rng = np.random.default_rng(0)
    found: dict[str, list[list[float]]] = {side: [[] for _ in SIZES] for side in sides}
    refused = []
    for at, n in enumerate(SIZES):
        for _ in range(draws if n <= 0.7 * len(y) else 0):
            train, test = _drawn(y, n, rng)
            try:
                losses = [_loss(make(), X, y, train, test) for make in sides.values()]
            except DecibanError as error:  # such as a column of numbers with a few words among them
                refused.append(f"{name}, {n} rows, refused: {error}")
                continue
            for side, loss in zip(sides, losses):
                found[side][at].append(loss)
    for side, each in found.items():
        yield f"| {name} | {side} | {' | '.join(f'{np.mean(some):.3f}' if some else '' for some in each)} |"
    yield from refused


def _loss(model: Any, X: Any, y: Any, train: Any, test: Any) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # categories that were not drawn
        return log_loss(model.fit(X.iloc[train], y[train]), X.iloc[test], y[test])


class Unbelieving(GenerativeClassifier):
    """Calibrated from rows alone: next to nothing is believed of scales and offsets beforehand."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        usual = {name: getattr(scale_fit, name) for name in WIDTHS}
        try:
            for name in WIDTHS:
                setattr(scale_fit, name, 100.0)
            return super().fit(X, y, sample_weight)
        finally:
            for name, width in usual.items():
                setattr(scale_fit, name, width)


def _drawn(y: Any, n: int, rng: Any) -> tuple[Any, Any]:
    """Rows to learn, of two classes at least, each twice at least; and others of those classes."""
    while True:
        order = rng.permutation(len(y))
        names, counts = np.unique(y[order[:n]], return_counts=True)
        if (counts > 1).sum() > 1:
            known = np.isin(y[order], names[counts > 1])
            return order[:n][known[:n]], order[n:][known[n:]][:JUDGED]
