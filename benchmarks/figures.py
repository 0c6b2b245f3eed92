"""Whether the figures that a model prints about itself hold for fresh rows.

Noise: columns that have nothing to do with the class. Printed is `evaluate(learnt=True)`, the cross-validation of the
fit; fresh are 4,000 rows that were not learnt. Met: the mean difference is within two standard errors of that mean, for
log loss and error; the fresh log loss is on average at most .01 above that of the class proportions, and never more
than .03.

Sets: random splits, four fifths learnt (at most 2,000 rows), the others fresh (at most 2,000). Met: the geometric mean
of the ratios of their mean log losses is within 1 ± .03 (sets below .02 are shown, and are not part of the mean).
Ratios above 1 are pessimistic: a fold's model has learnt four fifths of the rows.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from deciban import GenerativeClassifier
from harness import Row, benchmark
from table_sets import bundled, from_files

NOISE = {"300 × 60": (300, 60), "400 × 200": (400, 200)}
BALANCE = {"equal": 0.5, "40/60": 0.4}
SEEDS = SPLITS = 20
MOST_ROWS = 2000  # learnt of a set in each split
FRESH = 4000
TEXTS = {"SMS spam": "sms_spam/sms_spam.jsonl.gz", "WebKB": "webkb/webkb_stemmed.jsonl.gz", "R8": "r8/r8.jsonl.gz"}


@benchmark("noise-figures")
def noise_figures(share: float) -> Iterator[Row | str]:
    """Printed and fresh figures of models of noise."""
    yield "| noise | classes | log loss printed | fresh | difference | error printed | fresh | difference | worst |"
    yield "|---|---|---:|---:|---:|---:|---:|---:|---:|"
    for size, (n, d) in NOISE.items():
        for balance, first in BALANCE.items():
            each = np.array([_noise(n, d, first, seed) for seed in range(max(2, round(SEEDS * share)))]).T
            cells = [size, balance, _compared(*each[:2]), _compared(*each[2:]), f"{each[1].max():.4f}"]
            yield f"| {' | '.join(cells)} |"


def _noise(n: int, d: int, first: float, seed: int) -> tuple[float, float, float, float]:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n + FRESH, d))).rename(columns=str)
    y = np.r_[_codes(n, first, rng), _codes(FRESH, first, rng)]
    clf = GenerativeClassifier().fit(X[:n], y[:n])
    printed, fresh = clf.evaluate(X[:n], y[:n], learnt=True), clf.evaluate(X[n:], y[n:])
    return printed.log_loss, fresh.log_loss, printed.error_rate, fresh.error_rate


def _codes(n: int, first: float, rng: np.random.Generator) -> Any:
    return rng.permutation((np.arange(n) >= first * n).astype(int))


def _compared(printed: Any, fresh: Any) -> str:
    away = printed - fresh
    error = away.std(ddof=1) / np.sqrt(len(away))
    return f"{printed.mean():.4f} | {fresh.mean():.4f} | {away.mean():+.4f} ± {error:.4f}"


@benchmark("set-figures")
def set_figures(share: float) -> Iterator[Row | str]:
    """Printed and fresh log loss of bundled and shared sets; shared ones need DECIBAN_DATA."""
    yield "| set | rows learnt | printed | fresh | ratio | error printed | fresh |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    ratios = []
    for name, (X, y) in _sets().items():
        each = np.array([_split(X, y, seed) for seed in range(max(2, round(SPLITS * share)))])
        loss, fresh, error, wrong = each.mean(axis=0)
        if fresh >= 0.02:
            ratios.append(loss / fresh)
        n = min(4 * len(y) // 5, MOST_ROWS)
        yield f"| {name} | {n:,} | {loss:.4f} | {fresh:.4f} | {loss / fresh:.3f} | {error:.3f} | {wrong:.3f} |"
    yield f"geometric mean of {len(ratios)} ratios: {np.exp(np.mean(np.log(ratios))):.4f}"


def _split(X: Any, y: Any, seed: int) -> tuple[float, float, float, float]:
    order = np.random.default_rng(seed).permutation(len(y))
    n = min(4 * len(y) // 5, MOST_ROWS)
    some, others = order[:n], order[n : n + MOST_ROWS]
    some, others = some[np.isin(y[some], y[others])], others[np.isin(y[others], y[some])]
    take = X.iloc.__getitem__ if hasattr(X, "iloc") else lambda rows: [X[i] for i in rows]
    clf = GenerativeClassifier().fit(take(some), y[some])
    printed, fresh = clf.evaluate(take(some), y[some], learnt=True), clf.evaluate(take(others), y[others])
    return printed.log_loss, fresh.log_loss, printed.error_rate, fresh.error_rate


def _sets() -> dict[str, tuple[Any, Any]]:
    found: dict[str, tuple[Any, Any]] = bundled() | from_files()
    folder = os.environ.get("DECIBAN_DATA")
    if folder is None:
        return found
    for name, path in TEXTS.items():
        with gzip.open(Path(folder) / path, "rt") as file:
            rows = [json.loads(line) for line in file]
        found[name] = [row["text"] for row in rows], np.array([row["label"] for row in rows])
    return found
