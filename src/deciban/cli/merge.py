"""`deciban merge`: the sum of several models."""

from __future__ import annotations

from typing import Annotated

import typer

from deciban.cli import options
from deciban.cli.command import command, flag
from deciban.cli.models import ledger_key, open_model
from deciban.cli.terminal import Terminal
from deciban.errors import UsageError

Models = Annotated[list[str], typer.Argument(metavar="MODEL…", help="Two or more model files.", show_default=False)]
Target = Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="The merged model.", show_default=False)]
Keep = Annotated[
    bool,
    flag("--keep-first", help="Where the models froze different choices, those of the first hold."),
]


@command("deciban merge paris.deciban oslo.deciban -o both.deciban", panel=options.LEARN)
def merge(
    terminal: Terminal, models: Models, output: Target, keep_first: Keep = False, key_file: options.KeyFile = None
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
