"""Tables with nothing but the label's name, beside tuned classifiers: log loss, accuracy and CPU seconds.

Stratified folds, five for each of two rounds; tables of more than 3,000 rows are sampled. The rivals get gaps filled
(median, most frequent), numbers standardised and categories as indicators; identifiers and texts are left out for them.
Best or level: our log loss is at most 2 %, .005, or one standard error of the paired differences of rows above the
least of the rivals. EBM and Khiops take part where they are installed.
"""

from __future__ import annotations

import importlib.util
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.svm import LinearSVC

from deciban import GenerativeClassifier
from deciban.read.columns import NAMES, NUMBERS
from deciban.read.schema import Schema
from deciban.read.tables import Table
from harness import Row, benchmark
from table_sets import OTHER_LABELS, bundled, drawn, from_files

FOLDS, ROUNDS = 5, 2
MOST_ROWS = 3000
LEAST_P = 1e-15
OURS = "deciban"


class Judged(NamedTuple):
    """Answers of one side to the test rows of all folds."""

    losses: Any  # (n,) log loss of each test row
    right: Any  # (n,) whether the most probable class is true
    seconds: float  # CPU time of a fit with its answers, mean over folds


@benchmark("rivals")
def rivals(share: float) -> Iterator[Row | str]:
    """Log loss, accuracy and CPU time of the default fit beside tuned classifiers; files need DECIBAN_DATA"""
    sides = list(classifiers(pd.DataFrame({"x": [0.0, 1.0]})))
    yield "| table | rows | " + " | ".join(sides) + " | best or level |"
    yield "|---|---:|" + "---:|" * (len(sides) + 1)
    level = []
    for name, (X, y) in all_tables().items():
        found = judged(X, y, share)
        level.append(is_level({side: one.losses for side, one in found.items()}))
        cells = [f"{one.losses.mean():.4f} {one.right.mean():.3f} {one.seconds:.2f}s" for one in found.values()]
        yield f"| {name} | {len(y):,} | {' | '.join(cells)} | {'yes' if level[-1] else 'NO'} |"
    yield f"best or level on {sum(level)} of {len(level)} tables"


def all_tables() -> dict[str, tuple[pd.DataFrame, Any]]:
    """Return every table, at most MOST_ROWS rows of each, and classes of at least ten rows."""
    found = {}
    for name, (X, y) in (bundled() | from_files() | from_files(OTHER_LABELS) | drawn()).items():
        some = np.random.default_rng(0).permutation(len(y))[:MOST_ROWS]
        classes, counts = np.unique(y[some], return_counts=True)
        some = some[np.isin(y[some], classes[counts >= 10])]
        found[name] = X.iloc[some].reset_index(drop=True), y[some]
    return found


def judged(X: pd.DataFrame, y: Any, share: float = 1.0) -> dict[str, Judged]:
    """Judge every side in the same folds."""
    codes = np.unique(y, return_inverse=True)[1]
    splits = [
        split
        for turn in range(ROUNDS)
        for split in StratifiedKFold(FOLDS, shuffle=True, random_state=turn).split(X, codes)
    ]
    splits = splits[: max(1, round(share * len(splits)))]
    return {side: judge(make, X, codes, splits) for side, make in classifiers(X).items()}


def judge(make: Callable[[], Any], X: pd.DataFrame, codes: Any, splits: Any) -> Judged:
    """Return the losses of the test rows of all splits."""
    losses, right, began = [], [], time.process_time()
    for train, test in splits:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # rivals that have not converged
            p = make().fit(X.iloc[train], codes[train]).predict_proba(X.iloc[test])
        losses.append(-np.log(np.maximum(p[np.arange(len(test)), codes[test]], LEAST_P)))
        right.append(p.argmax(axis=1) == codes[test])
    return Judged(np.concatenate(losses), np.concatenate(right), (time.process_time() - began) / len(splits))


def is_level(losses: dict[str, Any]) -> bool:
    """Whether our losses (n,) are best, or level with the best of the others."""
    best = min((each for side, each in losses.items() if side != OURS), key=lambda each: each.mean())
    above = losses[OURS] - best
    return bool(above.mean() <= max(0.02 * best.mean(), 0.005, above.std() / np.sqrt(len(above))))


def classifiers(X: pd.DataFrame) -> dict[str, Callable[[], Any]]:
    """Return our default classifier and the rivals, each with the columns that it can read."""
    kinds = Schema.infer(Table.of(X)).kinds
    numbers = [name for name, kind in kinds.items() if kind in NUMBERS]
    names = [name for name, kind in kinds.items() if kind in NAMES]

    def model(last: Any, flags: bool = True, filled: bool = True) -> Any:
        of_numbers = [SimpleImputer(strategy="median"), StandardScaler()] if filled else ["passthrough"]
        of_names = [
            SimpleImputer(strategy="most_frequent"),
            OneHotEncoder(handle_unknown="ignore", sparse_output=False)
            if flags
            else OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan),
        ]
        parts = [(make_pipeline(*steps), on) for steps, on in ((of_numbers, numbers), (of_names, names)) if on]
        return make_pipeline(make_column_transformer(*parts), last)

    logistic = {"Cs": 6, "scoring": "neg_log_loss", "l1_ratios": (0.0,), "use_legacy_attributes": False}
    found: dict[str, Callable[[], Any]] = {
        OURS: GenerativeClassifier,
        "LogisticRegressionCV": lambda: model(LogisticRegressionCV(max_iter=150, **logistic)),
        "calibrated LinearSVC": lambda: model(CalibratedClassifierCV(LinearSVC(), cv=5)),
        "HistGradientBoosting": lambda: model(
            HistGradientBoostingClassifier(early_stopping=True, random_state=0), False, False
        ),
        "RandomForest": lambda: model(RandomForestClassifier(200, min_samples_leaf=2, random_state=0)),
    }
    if importlib.util.find_spec("interpret") is not None:
        from interpret.glassbox import ExplainableBoostingClassifier

        found["EBM"] = lambda: model(ExplainableBoostingClassifier(random_state=0, n_jobs=1), False, False)
    if importlib.util.find_spec("khiops") is not None:
        from khiops.sklearn import KhiopsClassifier

        found["Khiops"] = lambda: model(KhiopsClassifier(), False)
    return found
