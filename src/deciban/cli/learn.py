"""`deciban learn`, `unlearn` and `correct`: a model changed in place, by one writer at a time, whole or not at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from deciban.cli import command as options
from deciban.cli.command import command, flag
from deciban.cli.models import changing, ledger_key, nearest, open_model
from deciban.cli.terminal import Terminal
from deciban.errors import DecibanError, UsageError

Target = Annotated[
    str | None, typer.Option("--output", "-o", metavar="FILE", help="Write the changed model there; else in place.")
]
Was = Annotated[
    str, typer.Option("--was", metavar="COLUMN|CLASS", help="The old label: a column, or a class.", show_default=False)
]
Now = Annotated[
    str, typer.Option("--now", metavar="COLUMN|CLASS", help="The new label: a column, or a class.", show_default=False)
]
Constant = Annotated[
    str | None, typer.Option("--class", metavar="CLASS", help="All these rows are of this class; instead of --label.")
]


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
    read_as: options.ReadAs = None,
    skip_bad: options.SkipBad = False,
    key_file: options.KeyFile = None,
    wait: options.Wait = 60,
) -> None:
    """Add rows to a model; new classes may arrive."""

    def act(clf: Any, source: Any) -> None:
        from deciban.cli.rows import labelled

        clf.learn(*labelled(clf, source, label, class_, new=True))

    _change(terminal, model, rows, output, read_as, skip_bad, key_file, wait, act, "learnt")


@command("deciban unlearn tumours.deciban ten.csv", panel=options.LEARN)
def unlearn(
    terminal: Terminal,
    model: options.ModelFile,
    rows: options.Rows = "-",
    label: options.Label = None,
    class_: Constant = None,
    output: Target = None,
    read_as: options.ReadAs = None,
    skip_bad: options.SkipBad = False,
    key_file: options.KeyFile = None,
    wait: options.Wait = 60,
) -> None:
    """Take rows back, as if they had never been learnt; strangers are refused, and then nothing is changed."""

    def act(clf: Any, source: Any) -> None:
        from deciban.cli.rows import labelled

        clf.unlearn(*labelled(clf, source, label, class_))

    _change(terminal, model, rows, output, read_as, skip_bad, key_file, wait, act, "unlearnt")


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
    read_as: options.ReadAs = None,
    key_file: options.KeyFile = None,
    wait: options.Wait = 60,
) -> None:
    """Move rows from one label to another. --was and --now name columns of the rows, or else classes for them all."""

    def act(clf: Any, source: Any) -> None:
        from deciban.cli.rows import label_values, typed_whole

        for name in (was, now):
            if name not in source.columns and name not in map(str, clf.stats_.classes) and name is was:
                raise nearest(name, [*source.columns, *clf.stats_.classes], "column or class", source.name)
        whole, given = typed_whole(clf, source)
        clf.correct(whole, label_values(clf, given, was), label_values(clf, given, now, new=True))

    _change(terminal, model, rows, output, read_as, False, key_file, wait, act, "corrected")


def _change(
    terminal: Terminal,
    model: str,
    rows: str,
    output: str | None,
    read_as: str | None,
    skip_bad: bool,
    key_file: str | None,
    wait: float,
    act: Callable[[Any, Any], None],
    done: str,
) -> None:
    """Read, change and replace a model, while nobody else does."""
    with changing(terminal, model, wait):
        clf = open_model(model, "GenerativeClassifier", key=ledger_key(key_file))
        from deciban.cli.rows import open_rows, report_skipped
        from deciban.store import describe

        source = open_rows(terminal, rows, read_as, skip_bad, clf=clf)
        before, note = float(clf.stats_.rows.sum()), describe(model)["note"]
        try:
            act(clf, source)
        except DecibanError as error:
            raise source.located(error, None) from None
        clf.save(output or model, note=note)
    report_skipped(terminal, source)
    after = float(clf.stats_.rows.sum())
    if terminal.json:
        terminal.dump({"model": output or model, done: abs(after - before), "rows": after})
    elif not terminal.quiet:
        change = f" ({after - before:+,.15g})".replace("-", "−") if after != before else ""
        terminal.say(f"{output or model}: {done}; {after:,.15g} rows{change}, {clf.calibration_state_}")


# -- merge ----------
# `deciban merge`: the sum of several models.

Models = Annotated[list[str], typer.Argument(metavar="MODEL…", help="Two or more model files.", show_default=False)]
MergeTarget = Annotated[
    str, typer.Option("--output", "-o", metavar="FILE", help="The merged model.", show_default=False)
]
Keep = Annotated[
    bool,
    flag("--keep-first", help="Where the models froze different choices, those of the first hold."),
]


@command("deciban merge paris.deciban oslo.deciban -o both.deciban", panel=options.LEARN)
def merge(
    terminal: Terminal, models: Models, output: MergeTarget, keep_first: Keep = False, key_file: options.KeyFile = None
) -> None:
    """Add models up: the result has learnt the rows of all of them."""
    if len(models) < 2:
        raise UsageError(f"merge needs two models or more, and got {models[0]!r} alone.")
    key = ledger_key(key_file)
    whole = open_model(models[0], "GenerativeClassifier", key=key)
    for path in models[1:]:
        other = open_model(path, "GenerativeClassifier", key=key)
        whole = whole.merge(other, keep="left" if keep_first else None)
    whole.save(output, note=f"merged from {', '.join(models)}")
    rows = float(whole.stats_.rows.sum())
    if terminal.json:
        terminal.dump({"model": output, "rows": rows, "classes": [str(name) for name in whole.stats_.classes]})
    elif not terminal.quiet:
        terminal.say(f"{output}: {rows:,.15g} rows of {len(whole.stats_.classes)} classes, from {len(models)} models")
        if whole.calibration_ is None:
            terminal.say("calibration: none, since the models' differ")
