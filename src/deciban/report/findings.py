"""Findings about a model and its data, in words: evidence of features, families of columns, and warnings."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from deciban.evidence.explanation import Explanation
from deciban.evidence.scores import convert
from deciban.families.gaussian import Gaussian
from deciban.families.product import ASKED, blocks_of
from deciban.families.transformed import Transformed
from deciban.model.ledger import Ledger
from deciban.model.model import Model
from deciban.read.codes import place_labels
from deciban.read.columns import IGNORED, Column
from deciban.read.tables import Table
from deciban.report.rows import Classifier
from deciban.statistics import Array

LARGEST_NATS = 50.0  # evidence of one row is clipped here, so that certainty does not hide the rest
SUSPICIOUS_ACCURACY, SUSPICIOUS_ROWS = 0.98, 50  # of one feature alone: it may be derived from the class
MAIN_SHARE = 0.8  # of a feature's evidence, from which a class is named as the one it favours
GAPPY = 0.5  # share of missing values that is worth a warning
FEW_ROWS, CELLS = 32, 2**20  # rows that are explained at first, and parts of rows at a time
RARE = 5  # rows of a class, below which it is worth a warning


# -- evidence of features ----------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class FeatureEvidence:
    """Evidence of a feature, averaged over a sample of rows."""

    name: str
    nats: float  # mean evidence for a row's class over the most probable other class
    accuracy: float  # share of the rows whose class this feature alone favours; left out, where it is suspicious
    rows: int
    favours: str | None  # the class whose rows get most of the evidence, if there is one
    left_out: bool = False  # whether the accuracy is that of rows left out in turn

    def to_dict(self) -> dict[str, Any]:
        """Values for JSON."""
        decibans = convert(self.nats, "decibans")
        found = {"feature": self.name, "decibans": decibans, "accuracy": self.accuracy, "favours": self.favours}
        return found | {"rows": self.rows}


def feature_evidence(clf: Classifier, rows: Table, labels: Array) -> list[FeatureEvidence]:
    """Evidence of all features on a sample of rows, the largest first."""
    known = clf.model_.stats.classes
    classes = [str(name) for name in known]
    codes = place_labels(labels, len(rows), known)
    if len(classes) < 2:
        return []
    position: dict[str, int] = {}  # feature → column of the sums
    parts = []
    for names, nats, k in _explained(clf, rows, codes, known):
        clipped = np.clip(nats, -LARGEST_NATS, LARGEST_NATS)
        evidence = np.array([clipped[k == j].sum(axis=0) for j in range(len(classes))])
        columns = [position.setdefault(name, len(position)) for name in names]
        parts.append((columns, evidence, (clipped > 0).sum(axis=0)))
    evidence, favourable = np.zeros((len(classes), len(position))), np.zeros(len(position))
    for columns, of_classes, rows_for in parts:
        evidence[:, columns] += of_classes
        favourable[columns] += rows_for
    n, total = len(codes), evidence.sum(axis=0)
    best = evidence.argmax(axis=0)
    clear = evidence.max(axis=0) > MAIN_SHARE * np.abs(evidence).sum(axis=0)
    found = [
        FeatureEvidence(name, total[j] / n, favourable[j] / n, n, classes[best[j]] if clear[j] else None)
        for name, j in position.items()
    ]
    found = [_left_out_accuracy(clf, feature, rows, labels) for feature in found]
    return sorted(found, key=lambda feature: -abs(feature.nats))


def _left_out_accuracy(clf: Classifier, feature: FeatureEvidence, rows: Table, labels: Array) -> FeatureEvidence:
    """A feature that nearly always favours the class: how often it predicts it alone, each row left out in turn."""
    if feature.accuracy < SUSPICIOUS_ACCURACY or feature.name not in rows.columns:
        return feature
    alone = clf.reestimate(columns=[feature.name])
    accuracy = float((alone.leave_one_out(rows, labels, method="predict") == labels).mean())
    return replace(feature, accuracy=accuracy, left_out=True)


def _explained(
    clf: Classifier, rows: Table, codes: Array, classes: Sequence[Any]
) -> Iterator[tuple[Sequence[str], Array, Array]]:
    """Names of parts, their evidence (n, P) for each row's class over the most probable other one, and class codes."""
    if len(classes) == 2:  # one explanation serves both
        for at, explanation in _in_pieces(clf, rows, np.arange(len(codes)), classes[1], classes[0]):
            yield explanation.names, explanation.parts * np.where(codes[at] == 1, 1.0, -1.0)[:, None], codes[at]
        return
    probability = clf.predict_proba(rows)
    for k in np.unique(codes):
        own = np.flatnonzero(codes == k)
        mean = probability[own].mean(axis=0)
        mean[k] = -1.0
        for at, explanation in _in_pieces(clf, rows, own, classes[k], classes[int(mean.argmax())]):
            yield explanation.names, explanation.parts, codes[at]


def _in_pieces(
    clf: Classifier, rows: Table, chosen: Array, one: Any, other: Any
) -> Iterator[tuple[Array, Explanation]]:
    """Explanations of some rows, few enough at a time that they have about `CELLS` parts: each word is a part."""
    begin, size = 0, FEW_ROWS
    while begin < len(chosen):
        at = chosen[begin : begin + size]
        explanation = clf.explain(rows.take(at), one, other)
        yield at, explanation
        begin, size = begin + size, max(FEW_ROWS, CELLS // max(1, len(explanation.names)))


# -- models of columns -------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class BlockModel:
    """The model of a block of features, in words."""

    features: tuple[str, ...]
    model: str  # "log-normal (fits best)"
    comparison: str  # with the next best model; empty if none was compared


def block_models(model: Model) -> list[BlockModel]:
    """The model of each block of features."""
    names, found = model.reader.labels, []
    for (family,), positions, reason in zip(blocks_of(model.family), model.positions, model.reasons):
        features = tuple(names[j] for j in positions)
        if len(features) == 1 and reason.detail:
            text = reason.text
        else:
            more = f", {reason.text}" if len(features) > 1 or reason.text == ASKED else ""
            text = f"{family_name(family)}{more}"
        found.append(BlockModel(features, text, reason.detail))
    return found


def family_name(family: object) -> str:
    """The name of a family, with the structure of a Gaussian or the transform.

    >>> from deciban import Categorical
    >>> family_name(Gaussian("tied")), family_name(Categorical())
    ('Gaussian (tied)', 'Categorical')
    """
    name = type(family).__name__
    if isinstance(family, Gaussian):
        return f"{name} ({family.structure})"
    if isinstance(family, Transformed) and isinstance(family.by, tuple):
        return f"{family_name(family.inner)} of transformed columns"
    return f"{name} ({family.by})" if isinstance(family, Transformed) else name


# -- warnings ----------------------------------------------------------------------------------------------------------
def data_warnings(
    columns: Sequence[Column], classes: Mapping[str, float], features: Sequence[FeatureEvidence], ledger: Ledger | None
) -> list[str]:
    """What may be wrong with the data; `classes` holds the rows of each class."""
    used = [column for column in columns if column.kind not in IGNORED]
    found = [f"column {c.name!r} is ignored: {c.reason}" for c in columns if c.kind in IGNORED]
    found += [
        f"column {c.name!r}: {c.assumed} (otherwise --column {shlex.quote(f'{c.name}={c.otherwise}')})"
        for c in columns
        if c.assumed
    ]
    found += [
        f"column {c.name!r} is missing in {c.missing / c.rows:.0%} of the rows"
        for c in used
        if c.rows and c.missing > GAPPY * c.rows
    ]
    found += [
        f"{feature.name!r} alone predicts the class of {_percent_below(feature.accuracy)} of {feature.rows:,} "
        "rows, each left out in turn. Is it known when you predict?"
        for feature in features
        if feature.left_out and feature.accuracy >= SUSPICIOUS_ACCURACY and feature.rows >= SUSPICIOUS_ROWS
    ]
    rare = [class_text(name, rows) for name, rows in classes.items() if rows < RARE]
    if rare:
        found.append(f"classes with fewer than {RARE} rows: {', '.join(rare)}")
    repeated = 0 if ledger is None else int((ledger.count - 1).sum())
    if repeated:
        copies = "1 row is an exact copy" if repeated == 1 else f"{repeated:,} rows are exact copies"
        found.append(f"{copies} of another: drop copies that were made by mistake")
    return found


def class_text(name: str, rows: float) -> str:
    """A class with its number of rows, as text."""
    return f'"{name}" ({rows:,.15g} {"row" if rows == 1 else "rows"})'


def _percent_below(share: float) -> str:
    """Per cent with one decimal, rounded down, so that 100 % means all.

    >>> _percent_below(0.99996)
    '99.9 %'
    """
    return f"{np.floor(1000 * share) / 10:g} %"
