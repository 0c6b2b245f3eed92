"""`deciban evaluate` and `deciban compare`: how good answers are, of one model, of several, or of another system."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from deciban.cli import app as options
from deciban.cli.app import argument, command, flag, one_of, option, refuse_together
from deciban.cli.arguments import cost_of, existing, ledger_key, open_model, prior_of
from deciban.cli.output import Terminal
from deciban.errors import UsageError

if TYPE_CHECKING:
    from deciban.estimators.classifier import GenerativeClassifier
    from deciban.read.tables import TypedTable

FIRST_ROWS = 1000  # of the file, for plots of the model
Model = Annotated[str | None, argument("MODEL", "A model file; not with --scores.")]
LeaveOneOut = Annotated[
    bool,
    flag("--learnt --leave-one-out", "The rows were learnt: score each by a model without its fold. Refuses others."),
]
Groups = Annotated[str | None, option("--groups", "COLUMN", "With --learnt: rows of a group are in the same fold.")]
Time = Annotated[str | None, option("--time", "COLUMN", "With --learnt: judge rows by models of earlier rows.")]
Raw = Annotated[bool, flag("--raw", "Without the model's calibration.")]
Scores = Annotated[str | None, option("--scores", "FILE", "Evaluate the scores of another system.")]
Llr = Annotated[str | None, option("--llr", "COLUMN", "With --scores: the llr, in --unit.")]
Target = Annotated[str | None, option("--target", "COLUMN", "With --scores: whether the row is a target.")]
Positive = Annotated[str | None, option("--positive", "VALUE", "With --scores: the value that means target.")]
Thresholds = Annotated[
    bool, flag("--thresholds", "Print the threshold, the errors and the cost for several costs of a miss.")
]
Plots = Annotated[str | None, option("--plots", "DIR", "Also write plots there (SVG).")]
ScoreUnit = Annotated[
    str,
    option(
        "--unit",
        "UNIT",
        "With --scores: unit of the llrs: nats, bits, bans, decibans.",
        complete=one_of("nats", "bits", "bans", "decibans"),
    ),
]
Files = Annotated[list[str], argument("MODEL… ROWS", "Two or more model files, then the rows.")]
Learnt = Annotated[bool, flag("--learnt", "The models learnt these rows: score each by models without its fold.")]


@command(
    "deciban evaluate tumours.deciban test.csv",
    "deciban evaluate tumours.deciban tumours.csv --learnt --plots pictures",
    "deciban evaluate tumours.deciban test.csv --thresholds --prior malignant=.01",
    "deciban evaluate --scores other.csv --llr score --target same --unit bans",
    panel=options.ASK,
)
def evaluate(
    terminal: Terminal,
    model: Model = None,
    rows: options.Rows = "-",
    label: options.Label = None,
    leave_one_out: LeaveOneOut = False,
    groups: Groups = None,
    time: Time = None,
    prior: options.Prior = None,
    cost: options.Cost = None,
    raw: Raw = False,
    scores: Scores = None,
    llr: Llr = None,
    target: Target = None,
    positive: Positive = None,
    unit: ScoreUnit = "nats",
    thresholds: Thresholds = False,
    plots: Plots = None,
    read_as: options.ReadAs = None,
    skip_bad: options.SkipBad = False,
    key_file: options.KeyFile = None,
) -> None:
    """Evaluate answers: error, log loss, Cllr and its calibration loss, EER, and confusions."""
    refuse_together(scores=scores, MODEL=model)
    if model is None and scores is None:
        raise UsageError("MODEL and ROWS are missing, or --scores FILE. See: deciban evaluate --help")
    if scores is not None and (llr is None or target is None):
        raise UsageError("--scores needs the columns --llr and --target. Write for example --llr score --target same.")
    refuse_together(groups=groups, time=time)
    if (groups is not None or time is not None) and not leave_one_out:
        raise UsageError("--groups and --time are for learnt rows: add --learnt.")
    from deciban.cli.figures import evaluate_rows, evaluate_scores, show_thresholds, threshold_table

    drawn: list[str] = []
    folder = None
    if plots is not None:
        from deciban.cli.figures import draw_evaluation, draw_model, plots_folder

        folder = plots_folder(plots)
    if model is None:
        evaluation = evaluate_scores(existing(str(scores)), str(llr), str(target), unit, positive, format=read_as)
    else:
        clf = open_model(model, "GenerativeClassifier", key=ledger_key(key_file) if leave_one_out else None)
        from deciban.cli.rows import label_column, open_rows, report_skipped

        classes = clf.stats_.classes
        source = open_rows(terminal, rows, read_as, skip_bad, clf=clf, gaps=not leave_one_out)
        column = label_column(clf, source, label)
        settings = {"prior": prior_of(prior, classes), "cost": cost_of(cost, classes), "raw": raw}
        if leave_one_out:
            settings["progress"] = terminal.progress
        evaluation = evaluate_rows(clf, source, column, leave_one_out, groups, None, time, terminal.warn, **settings)
        report_skipped(terminal, source)
        if folder is not None:
            drawn = draw_model(clf, _first_rows(terminal, clf, rows, read_as), folder)
    if folder is not None:
        drawn += draw_evaluation(evaluation, folder)
    table = threshold_table(evaluation) if thresholds else None
    if terminal.json:
        found = {} if table is None else {"thresholds": [line._asdict() for line in table]}
        terminal.dump(evaluation.to_dict() | found | ({"plots": drawn} if plots is not None else {}))
        return
    terminal.lines(str(evaluation))
    if table is not None:
        show_thresholds(terminal, evaluation, table)
    if plots is not None:
        terminal.note(f"{plots}: {len(drawn)} plots")


def _first_rows(terminal: Terminal, clf: GenerativeClassifier, path: str, read_as: str | None) -> TypedTable | None:
    """Some rows for plots of the model; None if they came through a pipe, which cannot be read again."""
    from deciban.cli.rows import open_rows, schema_of

    if path == "-":
        return None
    table = next(open_rows(terminal, path, read_as, True, clf=clf).batches(FIRST_ROWS))
    return schema_of(clf).apply(table, [])


# -- several models ----------------------------------------------------------------------------------------------------
@command(
    "deciban compare paris.deciban oslo.deciban test.csv",
    "deciban compare paris.deciban oslo.deciban tumours.csv --learnt",
    panel=options.ASK,
)
def compare(
    terminal: Terminal,
    files: Files,
    label: options.Label = None,
    learnt: Learnt = False,
    prior: options.Prior = None,
    cost: options.Cost = None,
    read_as: options.ReadAs = None,
    key_file: options.KeyFile = None,
) -> None:
    """Compare models on the same rows: error, log loss and Cllr, and the paired difference from the best model."""
    *paths, rows = files
    if len(paths) < 2:
        raise UsageError("compare needs two models or more, then the rows. See: deciban compare --help")
    if rows == "-":
        raise UsageError("compare reads the rows once for each model. Give a file, not stdin.")
    key = ledger_key(key_file) if learnt else None
    models = [open_model(path, "GenerativeClassifier", key=key) for path in paths]
    from deciban.cli.figures import evaluate_rows
    from deciban.cli.rows import label_column, open_rows
    from deciban.model.evaluation import Comparison

    names = [os.path.basename(path).removesuffix(".deciban") for path in paths]
    names = paths if len(set(names)) < len(names) else names
    if len(set(names)) < len(names):
        raise UsageError(f"{max(paths, key=paths.count)!r} is given twice. Give different models.")
    found = {}
    for name, clf in zip(names, models):
        classes = clf.stats_.classes
        source = open_rows(terminal, rows, read_as, clf=clf, gaps=not learnt)
        settings: dict[str, Any] = {"prior": prior_of(prior, classes), "cost": cost_of(cost, classes)}
        settings["warn"] = partial(_warn_of, terminal, name)
        found[name] = evaluate_rows(clf, source, label_column(clf, source, label), learnt, **settings)
    comparison = Comparison(found)
    if terminal.json:
        terminal.dump(comparison.to_dict())
    else:
        terminal.lines(str(comparison))


def _warn_of(terminal: Terminal, name: str, message: str) -> None:
    """Print a warning about one of the models."""
    terminal.warn(f"{name}: {message}")
