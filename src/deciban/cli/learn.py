"""`deciban learn`, `unlearn`, `correct`, `recalibrate` and `merge`: changes of a model file, one writer at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

from deciban.cli import app as options
from deciban.cli.app import argument, command, flag, one_of, option
from deciban.cli.arguments import calibration_state, ledger_key, locked, open_model, standing, unknown_name
from deciban.cli.output import Terminal, check_target, is_model
from deciban.errors import DecibanError, UsageError

if TYPE_CHECKING:
    from deciban.estimators.classifier import GenerativeClassifier
    from deciban.read.source import Source

Target = Annotated[str | None, option("--output -o", "FILE", "Write the changed model there; else in place.")]
Was = Annotated[str, option("--was", "COLUMN|CLASS", "The old label: a column, or a class.", show_default=False)]
Now = Annotated[str, option("--now", "COLUMN|CLASS", "The new label: a column, or a class.", show_default=False)]
Constant = Annotated[str | None, option("--class", "CLASS", "The class of all these rows; instead of --label.")]
Models = Annotated[list[str], argument("MODEL…", "Two or more model files.")]
Merged = Annotated[str, option("--output -o", "FILE", "The merged model.", show_default=False)]
METHODS = ("auto", "offsets", "length", "blocks", "features", "affine", "pav", "none")  # of --method
Method = Annotated[
    str,
    option(
        "--method",
        "NAME",
        "Calibrator: auto, offsets, affine, pav, …; none removes it.",
        complete=one_of(*METHODS),
    ),
]
New = Annotated[bool, flag("--new", "The rows were not learnt.")]
WITH_LEDGER = "checked: every row was in the ledger of learnt rows"
WITHOUT_LEDGER = (
    "not checked: the model keeps no ledger, so rows that were never learnt are noticed only where the sums would "
    "become impossible"
)
KeepFirst = Annotated[bool, flag("--keep-first", "Where choices of the models differ, keep those of the first.")]


@command(
    "deciban learn tumours.deciban ten.csv",
    "deciban learn languages.deciban mystery.txt --class Python",
    panel=options.LEARN,
)
def learn(
    terminal: Terminal,
    model: options.ModelFile,
    rows: options.Rows = "-",
    label: options.Label = None,
    class_: Constant = None,
    output: Target = None,
    force: options.Force = False,
    read_as: options.ReadAs = None,
    skip_bad: options.SkipBad = False,
    key_file: options.KeyFile = None,
    wait: options.Wait = 60,
) -> None:
    """Add rows to a model; they may be of new classes."""

    def change(clf: GenerativeClassifier, source: Source) -> None:
        from deciban.cli.rows import labelled

        clf.learn(*labelled(clf, source, label, class_, new=True))

    _change(terminal, model, rows, output, force, read_as, skip_bad, key_file, wait, change, "learnt")


@command("deciban unlearn tumours.deciban ten.csv", panel=options.LEARN)
def unlearn(
    terminal: Terminal,
    model: options.ModelFile,
    rows: options.Rows = "-",
    label: options.Label = None,
    class_: Constant = None,
    output: Target = None,
    force: options.Force = False,
    read_as: options.ReadAs = None,
    skip_bad: options.SkipBad = False,
    key_file: options.KeyFile = None,
    wait: options.Wait = 60,
) -> None:
    """Remove rows, as if they had never been learnt; if one was never learnt, nothing is changed."""

    def change(clf: GenerativeClassifier, source: Source) -> None:
        from deciban.cli.rows import labelled

        clf.unlearn(*labelled(clf, source, label, class_))

    _change(terminal, model, rows, output, force, read_as, skip_bad, key_file, wait, change, "unlearnt")


@command(
    "deciban correct tumours.deciban ten.csv --was diagnosis --now benign",
    "deciban correct languages.deciban mystery.txt --was Python --now C",
    panel=options.LEARN,
)
def correct(
    terminal: Terminal,
    model: options.ModelFile,
    rows: options.Rows = "-",
    was: Was = ...,  # type: ignore[assignment]
    now: Now = ...,  # type: ignore[assignment]
    output: Target = None,
    force: options.Force = False,
    read_as: options.ReadAs = None,
    key_file: options.KeyFile = None,
    wait: options.Wait = 60,
) -> None:
    """Change the labels of learnt rows. --was and --now name columns of the rows, or else one class for all of them."""

    def change(clf: GenerativeClassifier, source: Source) -> None:
        from deciban.cli.rows import label_values, typed_whole

        classes = clf.stats_.classes
        if was not in source.columns and was not in map(str, classes):
            raise unknown_name(was, [*source.columns, *classes], "column or class", source.name)
        typed, given = typed_whole(clf, source)
        clf.correct(typed, label_values(clf, given, was), label_values(clf, given, now, new=True))

    _change(terminal, model, rows, output, force, read_as, False, key_file, wait, change, "corrected")


def _change(
    terminal: Terminal,
    model: str,
    rows: str,
    output: str | None,
    force: bool,
    read_as: str | None,
    skip_bad: bool,
    key_file: str | None,
    wait: float,
    change: Callable[[GenerativeClassifier, Source], None],
    done: str,
) -> None:
    """Load a model, change it and save it, while the file is locked."""
    target = output or model
    check_target(output, [rows], force, is_model)
    with locked(terminal, model, wait):
        clf = open_model(model, "GenerativeClassifier", key=ledger_key(key_file))
        from deciban.cli.rows import open_rows, report_skipped
        from deciban.store import describe

        source = open_rows(terminal, rows, read_as, skip_bad, clf=clf)
        before, note = float(clf.stats_.rows.sum()), describe(model)["note"]
        try:
            change(clf, source)
        except UsageError:
            raise
        except DecibanError as error:
            raise source.located(error, None) from None
        clf.save(target, note=note)
    with terminal.reporting(target):
        report_skipped(terminal, source)
        after = float(clf.stats_.rows.sum())
        if terminal.json:
            checked = {"checked": clf.model_.ledger is not None} if done == "unlearnt" else {}
            changed = calibration_state(clf.model_, target) if done == "calibrated" else abs(after - before)
            terminal.dump({"model": target, done: changed, "rows": after, **checked})
        elif not terminal.quiet:
            difference = f" ({after - before:+,.15g})".replace("-", "−") if after != before else ""
            terminal.say(f"{target}: {done}; {after:,.15g} rows{difference}")
            if done == "unlearnt":
                terminal.say(WITHOUT_LEDGER if clf.model_.ledger is None else WITH_LEDGER)
                terminal.say(standing(clf.model_, target))
            else:
                terminal.say(f"calibration: {calibration_state(clf.model_, target)}")


@command(
    "deciban recalibrate tumours.deciban tumours.csv",
    "deciban recalibrate tumours.deciban test.csv --new --method offsets -o calibrated.deciban",
    panel=options.LEARN,
)
def recalibrate(
    terminal: Terminal,
    model: options.ModelFile,
    rows: options.Rows = "-",
    label: options.Label = None,
    method: Method = "auto",
    new: New = False,
    output: Target = None,
    force: options.Force = False,
    read_as: options.ReadAs = None,
    skip_bad: options.SkipBad = False,
    key_file: options.KeyFile = None,
    wait: options.Wait = 60,
) -> None:
    """Fit the calibration again: on the learnt rows, each scored without itself, or with --new on other rows."""
    if method not in METHODS:
        raise UsageError(f"--method {method!r} is not one of {', '.join(METHODS)}.")

    def change(clf: GenerativeClassifier, source: Source) -> None:
        from deciban.cli.rows import label_column

        chosen = None if method == "none" else method
        clf.recalibrate(source, label_column(clf, source, label), chosen, learnt=not new)

    _change(terminal, model, rows, output, force, read_as, skip_bad, key_file, wait, change, "calibrated")


@command("deciban merge paris.deciban oslo.deciban -o both.deciban", panel=options.LEARN)
def merge(
    terminal: Terminal,
    models: Models,
    output: Merged,
    keep_first: KeepFirst = False,
    force: options.Force = False,
    key_file: options.KeyFile = None,
) -> None:
    """Add models: the result has learnt the rows of all of them."""
    if len(models) < 2:
        raise UsageError(f"merge needs two models or more; {models[0]!r} is one.")
    check_target(output, models, force, is_model)
    key = ledger_key(key_file)
    merged = open_model(models[0], "GenerativeClassifier", key=key)
    for path in models[1:]:
        other = open_model(path, "GenerativeClassifier", key=key)
        merged = merged.merge(other, keep="left" if keep_first else None)
    merged.save(output, note=f"merged from {', '.join(models)}")
    with terminal.reporting(output):
        rows, classes = float(merged.stats_.rows.sum()), [str(name) for name in merged.stats_.classes]
        if terminal.json:
            terminal.dump({"model": output, "rows": rows, "classes": classes})
        elif not terminal.quiet:
            terminal.say(f"{output}: {rows:,.15g} rows of {len(classes)} classes, from {len(models)} models")
            if merged.calibration_ is None:
                terminal.say("calibration: none, because the models' calibrations differ")
