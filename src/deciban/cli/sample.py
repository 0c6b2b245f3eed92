"""`deciban sample`: rows like the ones learnt."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from deciban.cli import command as options
from deciban.cli.command import command
from deciban.cli.models import open_model, prior_of
from deciban.cli.output import format_of, write_tables
from deciban.cli.terminal import Terminal

Count = Annotated[int, typer.Option("--rows", "-n", min=1, metavar="N", help="How many.")]


@command("deciban sample tumours.deciban -n 5 --seed 1", panel=options.ASK)
def sample(
    terminal: Terminal,
    model: options.ModelFile,
    rows: Count = 10,
    prior: options.Prior = None,
    seed: options.Seed = None,
    output: options.Output = None,
    format: options.Format = None,
) -> None:
    """Draw rows like the ones learnt, with their classes: what does the model believe the data look like?"""
    kind = format_of(output, format, terminal.json)
    clf = open_model(model, "GenerativeClassifier", "MixtureModel")
    if hasattr(clf, "stats_"):
        drawn, labels = clf.sample(rows, random_state=seed, prior=prior_of(prior or [], clf.stats_.classes))
    else:
        drawn, labels = clf.sample(rows, random_state=seed)
    write_tables(iter([_table(clf, drawn, labels)]), output, kind)


def _table(clf: Any, drawn: Any, labels: Any) -> Any:
    """Columns in the model's order, then the class."""
    import pyarrow as pa
    import scipy.sparse as sp

    columns = [str(name) for name in clf.columns_]
    if hasattr(clf, "model_"):  # blocks come side by side
        columns = [columns[j] for places in clf.model_.positions for j in places]
    cells = drawn.toarray() if sp.issparse(drawn) else drawn
    made = {name: _column(cells[:, j]) for j, name in enumerate(columns)}
    order = [str(name) for name in clf.columns_]
    return pa.table({name: made[name] for name in order} | {"class": [str(label) for label in labels.tolist()]})


def _column(values: Any) -> Any:
    """Numbers to as many figures as answers have; names as they are."""
    import numpy as np
    import pyarrow as pa

    from deciban.cli.answers import DIGITS, rounded

    plain = values.tolist()
    if any(isinstance(value, str) for value in plain):
        return pa.array(plain)
    return pa.array(rounded(np.asarray(plain, dtype=float), DIGITS))
