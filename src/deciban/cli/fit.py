"""`deciban fit`: a model from a file, and what a person wants to know about it."""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer

from deciban.cli import command as options
from deciban.cli.command import command, flag, refuse_together
from deciban.cli.models import cost_of, ledger_key, open_model, pairs, prior_of
from deciban.cli.terminal import Terminal
from deciban.errors import UsageError

Rows = Annotated[str, typer.Argument(metavar="ROWS", help="A file, a folder, or - for stdin.", show_default=False)]
Target = Annotated[
    str | None,
    typer.Option("--output", "-o", metavar="FILE", help="The model; ROWS with the ending .deciban if not said."),
]
Column = Annotated[
    list[str] | None,
    typer.Option("--column", metavar="NAME=KIND", help="What a column is (gaussian, category, ignore, …). Repeatable."),
]
Block = Annotated[
    list[str] | None,
    typer.Option("--block", metavar="A,B=STRUCTURE", help="Columns that vary together: full, tied, … Repeatable."),
]
TextColumn = Annotated[list[str] | None, typer.Option("--text", metavar="NAME", help="A column of texts. Repeatable.")]
Rule = Annotated[str, typer.Option("--rule", metavar="mean|predictive|map|ml", help="How parameters are read.")]
Calibrate = Annotated[
    str, typer.Option("--calibrate", metavar="auto|none|…", help="On exact leave-one-out scores of these rows.")
]
NoLedger = Annotated[
    bool,
    flag("--no-ledger", help="Do not note which rows were learnt; unlearn then checks less."),
]
Like = Annotated[
    str | None,
    typer.Option("--like", metavar="MODEL", help="Begin with this model's choices, so that both can be merged."),
]
Note = Annotated[str | None, typer.Option("--note", metavar="TEXT", help="Kept in the model file.")]
IGNORE = {"ignore": "identifier", "ignored": "identifier"}  # how people call a column to be passed over


@command(
    "deciban fit tumours.csv --label diagnosis",
    "deciban fit tumours.csv --label diagnosis --column texture=log-gaussian --block radius,smoothness=diagonal -o t",
    "deciban fit languages -o languages.deciban",
    panel=options.LEARN,
)
def fit(
    terminal: Terminal,
    rows: Rows,
    label: options.Label = None,
    output: Target = None,
    column: Column = None,
    block: Block = None,
    text: TextColumn = None,
    prior: options.Prior = None,
    cost: options.Cost = None,
    rule: Rule = "mean",
    calibrate: Calibrate = "auto",
    no_ledger: NoLedger = False,
    key_file: options.KeyFile = None,
    like: Like = None,
    note: Note = None,
    read_as: options.ReadAs = None,
    skip_bad: options.SkipBad = False,
) -> None:
    """Learn a model from rows, and say what was learnt, how good it is, what looks wrong, and what to do next."""
    refuse_together(no_ledger=no_ledger, key_file=key_file)
    for name, given in {"column": column, "block": block, "text": text, "no_ledger": no_ledger}.items():
        refuse_together(like=like, **{name: given})
    from deciban.cli.fit_report import Report
    from deciban.cli.rows import open_rows, report_skipped
    from deciban.estimators.classifier import GenerativeClassifier

    source = open_rows(terminal, rows, read_as, skip_bad, again=True)
    of = _label(source, label)
    target = _target(rows, output)
    kinds = _kinds(source, column or [], block or [], text or [])
    if like is not None:
        clf = open_model(like, "GenerativeClassifier", key=ledger_key(key_file)).blank().learn(source, of)
    else:
        clf = GenerativeClassifier(
            rule=rule,  # type: ignore[arg-type]
            calibrate=None if calibrate == "none" else calibrate,
            ledger=False if no_ledger else ledger_key(key_file) or True,
            kinds=kinds,
        ).fit(source, of)
    _keep_wishes(clf, prior or [], cost or [])
    report_skipped(terminal, source)
    clf.save(target, note=note or f"fitted on {source.name}")
    if terminal.quiet and not terminal.json:
        return
    report = Report.of(clf, source, target)
    if terminal.json:
        terminal.dump(report.to_dict())
    else:
        report.show(terminal)


def _target(rows: str, output: str | None) -> str:
    """Where the model goes; a name of our own choosing never replaces a file."""
    if output is not None:
        return output
    if rows == "-":
        raise UsageError("rows from stdin have no name: say where the model goes with -o.")
    from deciban.cli.rows import stem

    target = f"{stem(rows)}.deciban"
    if os.path.exists(target):
        raise UsageError(
            f"{target!r} is there already. Write over it with -o {target}, or choose another name with -o."
        )
    return target


def _label(source: Any, wanted: str | None) -> str:
    from deciban.cli.models import column_named
    from deciban.read.folder import LABEL, FolderSource

    if wanted is None:
        if isinstance(source, FolderSource):
            return LABEL
        raise UsageError(
            f"which column of {source.name} holds the class? Say --label, one of: {', '.join(source.columns)}."
        )
    return column_named(wanted, source.columns, source.name)


def _kinds(source: Any, columns: list[str], blocks: list[str], texts: list[str]) -> dict[Any, str] | None:
    """What columns were said to be, and which of them vary together."""
    from deciban.cli.models import column_named
    from deciban.read.folder import TEXT, FolderSource

    kinds: dict[Any, str] = {}
    taken: dict[str, str] = {}

    def take(name: str, option: str) -> str:
        if name in taken:
            raise UsageError(f"column {name!r} is named by {taken[name]} and by {option}. Name it once.")
        taken[name] = option
        return column_named(name, source.columns, source.name)

    for name, kind in pairs(columns, "--column", "age=gaussian"):
        kinds[take(name, "--column")] = IGNORE.get(kind.lower(), kind)
    for names, structure in pairs(blocks, "--block", "'length,width=full'"):
        kinds[tuple(take(name.strip(), "--block") for name in names.split(","))] = structure
    for name in texts:
        kinds[take(name, "--text")] = "text"
    if isinstance(source, FolderSource) and TEXT not in taken:
        kinds[TEXT] = "text"  # a folder of texts is one, however few words they have
    return kinds or None


def _keep_wishes(clf: Any, prior: list[str], cost: list[str]) -> None:
    """Prior and costs become the model's own; whoever asks it may still give others."""
    classes = clf.stats_.classes
    if prior:
        clf.prior = prior_of(prior, classes)
        clf.log_prior()
    if cost:
        clf.cost = cost_of(cost, classes)
        clf.cost_matrix()
