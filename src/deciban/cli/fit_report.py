"""The report of `deciban fit`: what was learnt, how good it is, what may be wrong with the data, what to do next."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deciban.cli.arguments import calibration_state
from deciban.cli.judging import evaluate_just_learnt
from deciban.cli.output import Terminal
from deciban.cli.rows import schema_of
from deciban.evaluate import Evaluation
from deciban.evidence.explanation import count, decibans_text
from deciban.read.columns import Column
from deciban.read.reservoir import Reservoir
from deciban.read.source import Source
from deciban.report.findings import FeatureEvidence, block_models, class_text, data_warnings, feature_evidence

if TYPE_CHECKING:
    from deciban.estimators.classifier import GenerativeClassifier
    from deciban.model.model import Model

SAMPLED = 4000  # rows of the whole file, for the evidence of features
MOST_FEATURES, MOST_CLASSES = 10, 12  # printed


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
        evaluation = evaluate_just_learnt(clf, source, str(schema.label), sample, progress=progress)
        skipped = source.skipped.rows
        classes = dict(zip(map(str, model.stats.classes), model.stats.rows.tolist()))
        rows, labels, _ = sample.rows()
        features = feature_evidence(clf, rows, labels)
        return cls(model, path, source.name, schema.columns, classes, evaluation, features, skipped)

    def warnings(self) -> list[str]:
        """What may be wrong with the data."""
        return data_warnings(self.columns, self.classes, self.features, self.model.ledger)

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
        listed = ", ".join(class_text(name, rows) for name, rows in classes[:MOST_CLASSES])
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


def _bar(share: float) -> str:
    return "█" * round(20 * abs(share))
