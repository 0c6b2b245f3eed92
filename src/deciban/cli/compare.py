"""`deciban compare`: several models on the same rows."""

from __future__ import annotations

import os
from functools import partial
from typing import Annotated, Any

from deciban.cli import command as options
from deciban.cli.arguments import cost_of, ledger_key, open_model, prior_of
from deciban.cli.command import argument, command, flag
from deciban.cli.terminal import Terminal
from deciban.errors import UsageError

Files = Annotated[list[str], argument("MODEL… ROWS", "Two or more model files, then the rows.")]
Learnt = Annotated[bool, flag("--learnt", "The models learnt these rows: score each by models without its fold.")]


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
    from deciban.cli.judging import evaluate_rows
    from deciban.cli.rows import label_column, open_rows
    from deciban.model.compare import Comparison

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
