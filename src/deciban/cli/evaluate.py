"""`deciban evaluate`: how good the answers are, on new rows, on the learnt ones, or those of any other system."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from deciban.cli import command as options
from deciban.cli.command import command, flag, refuse_together
from deciban.cli.models import cost_of, existing, ledger_key, open_model, prior_of
from deciban.cli.terminal import Terminal
from deciban.errors import UsageError

Model = Annotated[str | None, typer.Argument(metavar="MODEL", help="A model file; none with --scores.")]
LeaveOneOut = Annotated[
    bool,
    flag(
        "--leave-one-out",
        help="The rows were learnt: score each as if it had not been. Strangers are refused.",
    ),
]
Groups = Annotated[
    str | None,
    typer.Option("--groups", metavar="COLUMN", help="With --leave-one-out: leave out all rows of a group at a time."),
]
Raw = Annotated[bool, flag("--raw", help="Without the model's calibration.")]
Scores = Annotated[str | None, typer.Option("--scores", metavar="FILE", help="Judge the scores of any other system.")]
Llr = Annotated[str | None, typer.Option("--llr", metavar="COLUMN", help="With --scores: the llr, in --unit.")]
Is = Annotated[str | None, typer.Option("--target", metavar="COLUMN", help="With --scores: whether it was a target.")]
Positive = Annotated[str | None, typer.Option("--positive", metavar="VALUE", help="What a target's column holds.")]
Plots = Annotated[str | None, typer.Option("--plots", metavar="DIR", help="Write pictures there too (SVG).")]
ScoreUnit = Annotated[
    str, typer.Option("--unit", metavar="nats|bits|bans|decibans", help="With --scores: of the llrs.")
]


@command(
    "deciban evaluate tumours.deciban test.csv",
    "deciban evaluate tumours.deciban tumours.csv --leave-one-out --plots pictures",
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
    prior: options.Prior = None,
    cost: options.Cost = None,
    raw: Raw = False,
    scores: Scores = None,
    llr: Llr = None,
    target: Is = None,
    positive: Positive = None,
    unit: ScoreUnit = "nats",
    plots: Plots = None,
    read_as: options.ReadAs = None,
    skip_bad: options.SkipBad = False,
    key_file: options.KeyFile = None,
) -> None:
    """Judge answers: error, log loss, Cllr and what calibration costs, EER, and what is taken for what."""
    folder = None
    if plots is not None:
        from deciban.cli.pictures import judging_plots, model_plots, plots_folder

        folder = plots_folder(plots)
    drawn: list[str] = []
    if scores is not None:
        refuse_together(scores=scores, MODEL=model)
        if llr is None or target is None:
            raise UsageError(
                "--scores needs the columns --llr and --target. Write for example --llr score --target same."
            )
        from deciban.cli.judging import judged_scores

        told = judged_scores(existing(scores), llr, target, unit, positive, format=read_as)
    elif model is None:
        raise UsageError("name a model and rows, or --scores FILE. See: deciban evaluate --help")
    else:
        if groups is not None and not leave_one_out:
            raise UsageError("--groups leaves out learnt rows: add --leave-one-out.")
        clf = open_model(model, "GenerativeClassifier", key=ledger_key(key_file) if leave_one_out else None)
        told = _judged(terminal, clf, rows, label, leave_one_out, groups, prior, cost, raw, read_as, skip_bad)
        if folder is not None:
            drawn = model_plots(clf, _first_rows(terminal, clf, rows, read_as), folder)
    if folder is not None:
        drawn += judging_plots(told, folder)
    if terminal.json:
        terminal.dump(told.to_dict() | ({"plots": drawn} if plots is not None else {}))
        return
    terminal.say(str(told))
    if plots is not None:
        terminal.note(f"{len(drawn)} pictures in {plots}")


def _judged(
    terminal: Terminal,
    clf: Any,
    path: str,
    label: str | None,
    learnt: bool,
    groups: str | None,
    prior: list[str] | None,
    cost: list[str] | None,
    raw: bool,
    read_as: str | None,
    skip_bad: bool,
) -> Any:
    from deciban.cli.judging import judged
    from deciban.cli.rows import label_column, open_rows, report_skipped

    classes = clf.stats_.classes
    source = open_rows(terminal, path, read_as, skip_bad, clf=clf)
    options = {"prior": prior_of(prior or [], classes), "cost": cost_of(cost or [], classes), "raw": raw}
    told = judged(clf, source, label_column(clf, source, label), learnt, groups, **options)
    report_skipped(terminal, source)
    return told


def _first_rows(terminal: Terminal, clf: Any, path: str, read_as: str | None) -> Any:
    """Some rows for a picture; None where they came through a pipe, and are gone."""
    from deciban.cli.rows import open_rows, schema_of

    if path == "-":
        return None
    table = next(open_rows(terminal, path, read_as, True, clf=clf).batches(1000))
    return schema_of(clf).apply(table, [])
