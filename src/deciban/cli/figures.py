"""Figures of a model: evaluations of whole files, thresholds, plots, and the report of `deciban fit`."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from io import BytesIO
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from deciban.cli.arguments import calibration_state, column_named, unknown_name
from deciban.cli.output import Terminal, write_file
from deciban.cli.rows import label_values, schema_of, typed_whole
from deciban.errors import DecibanError, InputError, UsageError, shortlist
from deciban.evaluate import Evaluation
from deciban.evidence.explanation import count, decibans_text
from deciban.evidence.scores import UNITS
from deciban.read.batches import Batch, Reservoir, Rows
from deciban.read.columns import NUMBERS, Column
from deciban.read.files import open_source
from deciban.read.schema import Schema
from deciban.read.source import Source
from deciban.read.tables import Table
from deciban.report.findings import (
    FeatureEvidence,
    block_models,
    class_text,
    data_warnings,
    evaluate_learnt,
    evaluated,
    feature_evidence,
    is_learnt,
    joined,
)
from deciban.statistics import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from deciban.estimators.classifier import GenerativeClassifier
    from deciban.model.model import Model
    from deciban.read.tables import TypedTable

TARGET_VALUES = ("1", "true", "yes", "y", "t", "target", "same", "h1")  # recognised without --positive
SAMPLED = 4000  # rows of the whole file, for the evidence of features
MOST_FEATURES, MOST_CLASSES = 10, 12  # printed
Plot = Callable[..., Any]  # draws on the axes `ax`
FORMATS = ("svg", "png", "pdf")
MOST_COLUMNS = 8  # whose densities are drawn
OF_EVALUATION = ("bayes_error", "det", "roc", "tippett", "llr_histogram", "reliability", "empirical_cross_entropy")


# -- evaluations -------------------------------------------------------------------------------------------------------
def evaluate_rows(
    clf: GenerativeClassifier,
    source: Source,
    label: str,
    learnt: bool,
    groups: str | None = None,
    sample: Reservoir | None = None,
    time: str | None = None,
    warn: Callable[[str], None] | None = None,
    **options: Any,
) -> Evaluation:
    """`clf.evaluate` over all rows of a source, some of which are put into `sample`.

    Rows of a group may be anywhere, so with groups or time all rows are read first. `warn` is called with a text if the
    ledger holds rows that are judged as new.
    """
    if groups is not None or time is not None:
        by = {"groups": groups, "time": time}
        for name in filter(None, by.values()):
            column_named(name, source.columns, source.name)
        typed, given = typed_whole(clf, source)
        values: dict[str, Any] = {key: None if name is None else _values(given, name) for key, name in by.items()}
        return clf.evaluate(typed, label_values(clf, given, label), learnt=learnt, **values, **options)
    batches = _batches(clf, source, label, sample)
    if learnt:
        return evaluate_learnt(clf, batches, options)
    options.pop("progress", None)
    first = next(batches)
    if warn is not None and is_learnt(clf, first):
        warn(f"{source.name}: the model learnt these rows, so that these figures are too good. Add --learnt.")
    return joined([evaluated(clf, batch, options) for batch in chain((first,), batches)])


def evaluate_just_learnt(
    clf: GenerativeClassifier, source: Source, label: str, sample: Reservoir, **options: Any
) -> Evaluation:
    """`evaluate_rows` of rows that a fit has just read: of many, only those that are judged are checked."""
    return evaluate_learnt(clf, _batches(clf, source, label, sample), options, only_judged=True)


def _batches(clf: GenerativeClassifier, source: Source, label: str, sample: Reservoir | None) -> Iterator[Batch]:
    schema = replace(schema_of(clf), label=label)
    for batch in Rows(source, label, None, lambda table, name: schema).batches():
        if sample is not None:
            sample.add(batch.table, batch.labels, None)
        yield batch


def _values(given: Table, name: str) -> Array:
    """The values of a column: numbers where all are, else text; dates as ISO 8601 are in order as text."""
    values = np.asarray(given.data[name].to_list(), dtype=object)
    try:
        return values.astype(float)
    except (TypeError, ValueError):
        return values.astype(str)


def evaluate_scores(path: str, llr: str, target: str, unit: str, positive: str | None, **options: Any) -> Evaluation:
    """Evaluate the llrs in a file, two classes: target and not."""
    if unit not in UNITS:
        raise UsageError(f"--unit {unit!r} is not one of {', '.join(UNITS)}.")
    source = open_source(path, **options)
    for name in (llr, target):
        column_named(name, source.columns, source.name)
    schema = Schema((Column(llr, "number", "an llr"),), target)
    ratios, labels = [], []
    for batch in source.batches():
        values = schema.apply(batch).pick([0])[:, 0]
        missing = np.flatnonzero(np.isnan(values))
        if len(missing):
            message, remedy = f"column {llr!r} is empty.", "Drop the row, or give its llr."
            with batch.located():
                raise InputError(message, row=int(missing[0]), columns=[llr], remedy=remedy)
        ratios.append(values)
        labels.append(np.asarray(schema.labels(batch)))
    ratio, label = np.concatenate(ratios) / UNITS[unit], np.concatenate(labels)
    h1, h0 = _target_and_other(sorted(set(label.tolist())), positive, target)
    return Evaluation(np.column_stack([np.zeros(len(ratio)), ratio]), (label == h1).astype(int), (h0, h1))


def _target_and_other(values: list[Any], positive: str | None, column: str) -> tuple[str, str]:
    """The value of the target column that means target, and the other one."""
    if len(values) != 2:
        names = shortlist([repr(value) for value in values])
        raise InputError(
            f"column {column!r} holds {len(values)} different values ({names}). A target column needs two, such as 1 "
            "and 0."
        )
    if positive is None:
        likely = [value for value in values if str(value).lower() in TARGET_VALUES]
        if len(likely) != 1:
            raise UsageError(
                f"column {column!r} holds {values[0]!r} and {values[1]!r}: name the one that means target with "
                "--positive."
            )
        positive = str(likely[0])
    elif positive not in values:
        raise unknown_name(positive, values, "value", f"column {column!r}")
    return positive, next(str(value) for value in values if value != positive)


# -- thresholds --------------------------------------------------------------------------------------------------------
COST_RATIOS = (0.01, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 100.0)  # cost of a miss over that of a false alarm


class Threshold(NamedTuple):
    """What happens at the threshold of least expected cost, for one ratio of costs."""

    cost_ratio: float  # cost of a miss over that of a false alarm
    decibans: float  # evidence from which on the class is decided
    probability: float  # the same as a probability, at the prior
    missed: float  # share of the rows of the class
    false_alarms: float  # share of the other rows
    cost: float  # expected cost a row at the prior; a false alarm costs 1
    cost_of_prior: float  # without the evidence


def threshold_table(evaluation: Evaluation) -> list[Threshold]:
    """The thresholds of several ratios of costs, for two classes; the second is the one to detect."""
    if len(evaluation.classes) != 2:
        raise UsageError(f"--thresholds is for two classes, and there are {len(evaluation.classes)}.")
    ratio, is_second = evaluation.scores()
    prior = float(np.atleast_2d(evaluation.prior).mean(axis=0)[1])
    if not 0 < prior < 1:
        raise UsageError(f"--thresholds needs a prior between 0 and 1, and it is {prior:g}.")
    found = []
    for cost in COST_RATIOS:
        threshold = float(np.log((1 - prior) / prior / cost))
        missed, alarms = float((ratio[is_second] < threshold).mean()), float((ratio[~is_second] >= threshold).mean())
        expected = prior * cost * missed + (1 - prior) * alarms
        alone = min(prior * cost, 1 - prior)
        found.append(Threshold(cost, UNITS["decibans"] * threshold, 1 / (1 + cost), missed, alarms, expected, alone))
    return found


def show_thresholds(terminal: Terminal, evaluation: Evaluation, table: list[Threshold]) -> None:
    """Print the thresholds as a table."""
    first, second = evaluation.classes
    terminal.heading(f'Thresholds for "{second}": decide it from this evidence or probability on')
    rows = [
        (
            f"{line.cost_ratio:g}",
            f"{round(line.decibans, 1) + 0.0:+.1f}".replace("-", "−"),
            f"{line.probability:.3f}",
            f"{line.missed:.1%}",
            f"{line.false_alarms:.1%}",
            f"{line.cost:.4f}",
            f"{line.cost_of_prior:.4f}",
        )
        for line in table
    ]
    heads = ("miss costs", "dban", "P", "missed", "false alarms", "cost a row", "prior alone")
    terminal.table(heads, rows, tuple(range(7)))
    terminal.say(f'a miss: a "{second}" row decided "{first}"; a false alarm costs 1')


# -- plots as files: `evaluate --plots` and `explain --svg` ------------------------------------------------------------
def draw(path: str | os.PathLike[str], plot: Callable[[Axes], Any]) -> None:
    """Draw on new axes and write a file, in the format that the path ends in."""
    _plots_module()
    from matplotlib.figure import Figure

    ending = Path(path).suffix.lstrip(".").lower() or "svg"
    if ending not in FORMATS:
        raise UsageError(f"{os.fspath(path)!r}: the name of a plot ends in .{', .'.join(FORMATS)}.")
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    plot(figure.subplots())
    drawn = BytesIO()
    figure.savefig(drawn, format=ending)
    write_file(path, drawn.getvalue())


def plots_folder(folder: str) -> Path:
    """The folder for plots; checked before anything long begins."""
    place = Path(folder)
    if place.exists() and not place.is_dir():
        raise UsageError(f"--plots {folder!r} is a file. Give a folder; it is created if it does not exist.")
    _plots_module()
    return place


def draw_evaluation(evaluation: Evaluation, place: Path) -> list[str]:
    """Draw all plots of an evaluation, with more than two classes each class against the rest; their paths."""
    plots = _plots_module()
    wanted: dict[str, Plot] = {}
    for over in [None] if len(evaluation.classes) == 2 else evaluation.classes:
        ending = "" if over is None else f"-{_file_name(str(over))}"
        for name in OF_EVALUATION:
            wanted[f"{name}{ending}"] = partial(getattr(plots, name), evaluation, over=over)
    return _draw_all(wanted, place)


def draw_model(clf: GenerativeClassifier, rows: TypedTable | None, place: Path) -> list[str]:
    """Draw densities of number columns, decision regions and ellipses of the first two, and a nomogram; their paths."""
    plots = _plots_module()
    columns = [] if clf.schema_ is None else clf.schema_.columns
    numbers = [column.name for column in columns if column.kind in NUMBERS][:MOST_COLUMNS]
    wanted: dict[str, Plot] = {
        f"class_densities-{_file_name(name)}": partial(plots.class_densities, clf, name) for name in numbers
    }
    if len(numbers) > 1:
        for plot in (plots.decision_regions, plots.covariance_ellipses):
            wanted[plot.__name__] = partial(plot, clf, (numbers[0], numbers[1]))
    if rows is not None:
        wanted["nomogram"] = partial(plots.nomogram, clf, rows, *clf.stats_.classes[1::-1])
    return _draw_all(wanted, place)


def _draw_all(wanted: dict[str, Plot], place: Path) -> list[str]:
    """Draw the plots that can be drawn: a class without rows has no curve, a text no density."""
    place.mkdir(parents=True, exist_ok=True)
    written = []
    for name, plot in wanted.items():
        path = place / f"{name}.svg"
        try:
            draw(path, lambda ax, plot=plot: plot(ax=ax))  # type: ignore[misc]
        except DecibanError:
            continue
        written.append(str(path))
    return written


def _plots_module() -> ModuleType:
    try:
        from deciban import plots
    except ImportError as error:
        raise UsageError(str(error)) from None
    return plots


def _file_name(label: str) -> str:
    return "".join(character if character.isalnum() or character in "-_" else "_" for character in label)[:60]


# -- the report of a fit -----------------------------------------------------------------------------------------------
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
