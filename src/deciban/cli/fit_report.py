"""The report of `deciban fit`: what was learnt, how good it is, what may be wrong with the data, what to do next."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from deciban.cli.arguments import calibration_state
from deciban.cli.judging import evaluate_rows
from deciban.cli.rows import schema_of
from deciban.cli.terminal import Terminal
from deciban.evaluate import Evaluation
from deciban.evidence.explanation import count, decibans_text
from deciban.evidence.scores import convert
from deciban.families.gaussian import Gaussian
from deciban.families.product import blocks_of
from deciban.families.transformed import Transformed
from deciban.model.choose import ASKED
from deciban.read.columns import IGNORED, Column
from deciban.read.labels import place_labels
from deciban.read.reservoir import Reservoir
from deciban.read.source import Source
from deciban.read.typed import TypedTable
from deciban.statistics import Array

if TYPE_CHECKING:
    from deciban.estimators.classifier import GenerativeClassifier
    from deciban.model.model import Model

SAMPLED = 4000  # rows of the whole file, for the evidence of features
LARGEST_NATS = 50.0  # evidence of one row is clipped here, so that certainty does not hide the rest
SUSPICIOUS_ACCURACY, SUSPICIOUS_ROWS = 0.98, 50  # of one feature alone: it may be derived from the class
MAIN_SHARE = 0.8  # of a feature's evidence, from which a class is named as the one it favours
GAPPY = 0.5  # share of missing values that is worth a warning
RARE = 5  # rows of a class, below which it is worth a warning
MOST_FEATURES, MOST_CLASSES = 10, 12  # printed


# -- evidence of features ----------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class FeatureEvidence:
    """Evidence of a feature, averaged over a sample of rows."""

    name: str
    nats: float  # mean evidence for a row's class over the most probable other class
    accuracy: float  # share of the rows whose class this feature alone favours; left out, where it is suspicious
    rows: int
    favours: str | None  # the class whose rows get most of the evidence, if there is one

    def to_dict(self) -> dict[str, Any]:
        """Values for JSON."""
        decibans = convert(self.nats, "decibans")
        found = {"feature": self.name, "decibans": decibans, "accuracy": self.accuracy, "favours": self.favours}
        return found | {"rows": self.rows}


def feature_evidence(clf: GenerativeClassifier, rows: TypedTable, labels: Array) -> list[FeatureEvidence]:
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


def _left_out_accuracy(
    clf: GenerativeClassifier, feature: FeatureEvidence, rows: TypedTable, labels: Array
) -> FeatureEvidence:
    """A feature that nearly always favours the class: how often it predicts it alone, each row left out in turn."""
    if feature.accuracy < SUSPICIOUS_ACCURACY or feature.name not in rows.columns:
        return feature
    alone = clf.reestimate(columns=[feature.name])
    return replace(feature, accuracy=float((alone.leave_one_out(rows, labels, method="predict") == labels).mean()))


def _explained(
    clf: GenerativeClassifier, rows: TypedTable, codes: Array, classes: Sequence[Any]
) -> Iterator[tuple[Sequence[str], Array, Array]]:
    """Names of parts, their evidence (n, P) for each row's class over the most probable other one, and class codes."""
    if len(classes) == 2:  # one explanation serves both
        explanation = clf.explain(rows, classes[1], classes[0])
        yield explanation.names, explanation.parts * np.where(codes == 1, 1.0, -1.0)[:, None], codes
        return
    probability = clf.predict_proba(rows)
    for k in np.unique(codes):
        at = np.flatnonzero(codes == k)
        mean = probability[at].mean(axis=0)
        mean[k] = -1.0
        explanation = clf.explain(rows.take(at), classes[k], classes[int(mean.argmax())])
        yield explanation.names, explanation.parts, codes[at]


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
    return f"{name} ({family.by})" if isinstance(family, Transformed) else name


# -- report ------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class Report:
    """A fitted model, its cross-validation, and the evidence of its features."""

    model: Model
    path: str  # of the model file
    source: str  # name of the file learnt
    columns: Sequence[Column]
    classes: dict[str, float]  # class → rows
    evaluation: Evaluation
    features: list[FeatureEvidence]
    skipped: int  # rows

    @classmethod
    def of(cls, clf: GenerativeClassifier, source: Source, path: str, progress: bool = False) -> Report:
        """Read the rows again: each is scored as if it had not been learnt."""
        model, schema = clf.model_, schema_of(clf)
        sample = Reservoir(SAMPLED)
        evaluation = evaluate_rows(clf, source, str(schema.label), learnt=True, sample=sample, progress=progress)
        skipped = source.skipped.rows
        classes = dict(zip(map(str, model.stats.classes), model.stats.rows.tolist()))
        rows, labels, _ = sample.rows()
        features = feature_evidence(clf, rows, labels)  # type: ignore[arg-type]
        return cls(model, path, source.name, schema.columns, classes, evaluation, features, skipped)

    def warnings(self) -> list[str]:
        """What may be wrong with the data."""
        used = [column for column in self.columns if column.kind not in IGNORED]
        found = [f"column {c.name!r} is ignored: {c.reason}" for c in self.columns if c.kind in IGNORED]
        found += [
            f"column {c.name!r}: {c.assumed} (otherwise --column {shlex.quote(f'{c.name}={c.otherwise}')})"
            for c in self.columns
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
            for feature in self.features
            if feature.accuracy >= SUSPICIOUS_ACCURACY and feature.rows >= SUSPICIOUS_ROWS
        ]
        rare = [_class_text(name, rows) for name, rows in self.classes.items() if rows < RARE]
        if rare:
            found.append(f"classes with fewer than {RARE} rows: {', '.join(rare)}")
        ledger = self.model.ledger
        repeated = 0 if ledger is None else int((ledger.count - 1).sum())
        if repeated:
            copies = "1 row is an exact copy" if repeated == 1 else f"{repeated:,} rows are exact copies"
            found.append(f"{copies} of another: drop copies that were made by mistake")
        return found

    def next_commands(self) -> list[str]:
        """Commands to type next."""
        endings = "".join(Path(self.source).suffixes[-2:])  # .csv, .csv.gz; none for a folder
        new, test = (f"new{endings}", f"test{endings}") if endings else ("NEW", "TEST")
        model = shlex.quote(self.path)
        explained = "" if self.source == "standard input" else f" {shlex.quote(self.source)} --row 1"
        return [
            f"deciban predict {model} {new}",
            f"deciban explain {model}{explained}",
            f"deciban inspect {model}",
            f"deciban evaluate {model} {test}",
        ]

    def to_dict(self) -> dict[str, Any]:
        """Values for JSON."""
        return {
            "model": self.path,
            "no_better_than_prior": self.evaluation.verdict() is not None,
            "rows": sum(self.classes.values()),
            "classes": self.classes,
            "columns": [
                {"name": c.name, "kind": c.kind, "reason": c.reason, "missing": c.missing, "of": c.rows}
                for c in self.columns
            ],
            "families": [
                {"features": block.features, "model": block.model, "comparison": block.comparison}
                for block in block_models(self.model)
            ],
            "leave_one_out": self.evaluation.to_dict(),
            "calibration": calibration_state(self.model, self.path),
            "features": [feature.to_dict() for feature in self.features[:MOST_FEATURES]],
            "warnings": self.warnings(),
            "skipped": self.skipped,
            "next": self.next_commands(),
        }

    def show(self, terminal: Terminal, verbose: bool = False) -> None:
        """Print the report."""
        classes = sorted(self.classes.items(), key=lambda one: -one[1])
        listed = ", ".join(_class_text(name, rows) for name, rows in classes[:MOST_CLASSES])
        more = f" and {len(classes) - MOST_CLASSES} more" if len(classes) > MOST_CLASSES else ""
        rows = f"{sum(self.classes.values()):,.15g} rows"
        verdict = self.evaluation.verdict()
        if verdict is not None:
            terminal.say(verdict, "bold yellow")
            terminal.say()
        terminal.say(f"{self.path}: {rows}, {count(len(classes), 'class', 'classes')}: {listed}{more}")
        terminal.heading("Columns")
        self._show_columns(terminal, verbose)
        judged = len(self.evaluation)
        some = f"{judged:,} rows are judged, " if judged < sum(self.classes.values()) else ""
        terminal.heading(
            f"Cross-validation ({some}each fold by a model fitted without it, with every choice made again)"
        )
        terminal.lines("\n".join(str(self.evaluation).splitlines()[1 + (verdict is not None) :]))
        error = f"expected calibration error {self.evaluation.expected_calibration_error:.3f}"
        terminal.say(f"calibration: {calibration_state(self.model, self.path)}; {error}")
        if self.features:
            terminal.heading("Most informative features (mean evidence for a row's class over the next most probable)")
            self._show_features(terminal)
        warnings = self.warnings()
        if warnings:
            terminal.heading("Warnings")
            for line in warnings:
                terminal.say(f"- {line}", "yellow")
        terminal.heading("Next commands")
        for line in self.next_commands():
            terminal.say(f"  {line}", "cyan")

    def _show_columns(self, terminal: Terminal, verbose: bool) -> None:
        models = {feature: block for block in block_models(self.model) for feature in block.features}
        headings, rows = ["column", "kind", "missing", "values", "model"], []
        for column in self.columns:
            missing = f"{column.missing / column.rows:.1%}" if column.missing else ""
            shown = {feature.removeprefix(f"{column.name}."): models[feature] for feature in column.features}
            if len(shown) > 1:  # the parts of a date
                model = "; ".join(f"{part}: {block.model}" for part, block in shown.items())
            else:
                model = next((block.model for block in shown.values()), "ignored")
            comparison = "; ".join(block.comparison for block in shown.values() if block.comparison)
            rows.append([column.name, column.kind, missing, column.reason, model, *[comparison] * verbose])
        terminal.table([*headings, "comparison"] if verbose else headings, rows, (2,))

    def _show_features(self, terminal: Terminal) -> None:
        largest = max(abs(feature.nats) for feature in self.features) or 1.0
        rows = [
            (feature.name, decibans_text(feature.nats), feature.favours or "", _bar(feature.nats / largest))
            for feature in self.features[:MOST_FEATURES]
        ]
        terminal.table(("feature", "decibans", "mostly for", ""), rows, (1,))


def _class_text(name: str, rows: float) -> str:
    return f'"{name}" ({rows:,.15g} {"row" if rows == 1 else "rows"})'


def _percent_below(share: float) -> str:
    """Per cent with one decimal, rounded down, so that 100 % means all.

    >>> _percent_below(0.99996)
    '99.9 %'
    """
    return f"{np.floor(1000 * share) / 10:g} %"


def _bar(share: float) -> str:
    return "█" * round(20 * abs(share))
