"""Everything that a report shows, computed once: the sections only lay it out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from deciban.evidence.explanation import short
from deciban.model.model import Model
from deciban.read.batches import Batch
from deciban.report.columns import Scales, column_scales
from deciban.report.contract import Classifier
from deciban.report.drawing import COLOURS, class_text
from deciban.report.drift import Drift, drift
from deciban.report.findings import FeatureEvidence, feature_evidence
from deciban.report.judged import (
    Judged,
    judge_rows,
)
from deciban.report.words import Words, words_by_evidence

NUMBERS = 24_000  # of densities and scales of all columns; of words; of llrs: each at most so many
MOST_CLASSES = 40  # listed; with their own curves MOST_CURVES
MOST_CURVES = COLOURS
MOST_LISTED = 400  # columns, in tables
PLAIN_LABELS = ("label", "class", "target", "y")  # names of label columns that say nothing


@dataclass(frozen=True, eq=False)
class Material:
    """Everything that a report shows."""

    clf: Classifier
    title: str
    judged: Judged | None
    scales: Scales
    words: list[Words]
    features: list[FeatureEvidence]
    drift: Drift | None


def gather(
    clf: Classifier, batches: Iterable[Batch] | None, learnt: bool | None, other: tuple[Any, Any] | None, title: str
) -> Material:
    """Compute what the report shows."""
    predictor = clf.predictor_
    model = predictor.model
    K, D = len(model.classes), len(model.reader.labels)
    judged = None if batches is None else judge_rows(clf, batches, learnt)
    features = []
    if judged is not None:
        features = feature_evidence(clf, judged.rows, judged.labels)
    return Material(
        clf,
        title or _title(model),
        judged,
        column_scales(predictor, int(np.clip(2 * NUMBERS // (K * max(D, 1)), 9, 49))),
        words_by_evidence(predictor, min(3000, 2 * NUMBERS // (K + 2))),
        features,
        None if other is None else drift(clf, *other),
    )


def _title(model: Model) -> str:
    """The heading of the page: what is predicted, and the classes."""
    names = shortened(map(class_text, model.classes))
    label = None if model.reader.schema is None else model.reader.schema.label
    return (
        f"Classifier of {names}" if label is None or label.lower() in PLAIN_LABELS else f"{short(label, 40)}: {names}"
    )


def shortened(names: Iterable[Any]) -> str:
    """Up to four names in one line."""
    every = [short(name, 24) for name in names]
    return ", ".join(every[:4]) + (f" and {len(every) - 4:,} more" if len(every) > 4 else "")
