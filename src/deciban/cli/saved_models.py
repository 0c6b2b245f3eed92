"""Saved clusters and topics: their answers to rows, and what `deciban inspect` shows of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from deciban.cli.arguments import column_named
from deciban.cli.output import Terminal
from deciban.cli.tables import beside, rounded
from deciban.errors import UsageError
from deciban.read.arrow import arrow_table
from deciban.read.batches import with_progress
from deciban.read.schema import Schema
from deciban.read.source import Source
from deciban.read.tables import Table

if TYPE_CHECKING:
    from deciban.estimators.clustering import MixtureModel
    from deciban.topics.estimator import TopicEstimator

DRAWN = 20_000  # rows drawn from a mixture for the profiles of its clusters
MOST_NAMES = 3  # of a category, in a profile


# -- answers -----------------------------------------------------------------------------------------------------------
def saved_answers(model: Any, path: str, source: Source, text: str | None, append: bool) -> Iterator[pa.Table]:
    """The answers of clusters or topics to rows, batch by batch; behind the columns of the input if wanted."""
    for given in with_progress(source):
        if hasattr(model, "n_components_"):
            answers = cluster_answers(model, typed_columns(given, _schema(model, path)))
        else:
            answers = _topic_answers(model, texts_of(given, source.name, text))
        yield beside(arrow_table(given), answers) if append else answers


def cluster_answers(model: MixtureModel, frame: pa.Table) -> pa.Table:
    """The cluster of each row, counted from 1, its probability, and whether the row is an outlier."""
    p = model.predict_proba(frame)
    outlier = model.outliers(frame)
    return pa.table({"cluster": p.argmax(axis=1) + 1, "probability": rounded(p.max(axis=1)), "outlier": outlier})


def _topic_answers(model: TopicEstimator, texts: list[str]) -> pa.Table:
    """The topic with the largest share in each text, counted from 0 as in the table of topics, and all shares."""
    shares = model.transform(texts)
    best = {"topic": shares.argmax(axis=1), "share": rounded(shares.max(axis=1))}
    return pa.table(best | {f"topic {k}": rounded(shares[:, k]) for k in range(shares.shape[1])})


def _schema(model: Any, path: str) -> Schema:
    schema = getattr(model, "schema_", None)
    if schema is None:
        raise UsageError(
            f"{path} does not say how files are read: it was not saved by deciban cluster. Use it from Python, or save "
            "it with: deciban cluster ROWS --save MODEL"
        )
    return schema


def typed_columns(given: Table, schema: Schema) -> pa.Table:
    """The columns of numbers and names."""
    typed = schema.apply(given)
    return pa.table({name: typed.column(j) for j, name in enumerate(typed.columns) if typed.kind(j) != "text"})


def texts_of(given: Table, name: str, wanted: str | None) -> list[str]:
    """The texts of a column: the named one, or the only column of texts."""
    if wanted is None:
        kinds = {column.name: column.kind for column in Schema.infer(given).columns}
        found = [column for column, kind in kinds.items() if kind == "text"]
        if len(found) != 1:
            columns = ", ".join(kinds)
            raise UsageError(f"which column of {name} holds the texts? Name it with --text. Columns: {columns}.")
        wanted = found[0]
    column = given.data[column_named(wanted, list(given.columns), name)].to_list()
    return ["" if value is None else str(value) for value in column]


# -- inspection --------------------------------------------------------------------------------------------------------
def profiles(model: MixtureModel) -> list[dict[str, Any]]:
    """The share of each cluster, and its typical values of each column, from rows drawn from the model."""
    drawn, codes = model.sample(DRAWN, random_state=0)
    cells = np.asarray(drawn.toarray() if hasattr(drawn, "toarray") else drawn)
    found = []
    for k, share in enumerate(model.weights_.tolist()):
        own = cells[np.asarray(codes) == k]
        columns = {str(name): _typical(own[:, j]) for j, name in enumerate(model.columns_)} if len(own) else {}
        found.append({"cluster": k + 1, "share": share, "columns": columns})
    return found


def _typical(values: Any) -> str:
    """The median and the middle 80 % of numbers; the most frequent names."""
    try:
        numbers = values.astype(float)
    except (TypeError, ValueError):
        names, counts = np.unique([str(value) for value in values], return_counts=True)
        order = np.argsort(-counts, kind="stable")[:MOST_NAMES]
        return ", ".join(f"{names[i]} {counts[i] / len(values):.0%}" for i in order)
    low, middle, high = np.nanquantile(numbers, (0.1, 0.5, 0.9))
    return f"{middle:.4g} ({low:.4g} to {high:.4g})".replace("-", "−")


def show_clusters(terminal: Terminal, model: MixtureModel) -> None:
    """Print the profiles: a line for each column, a column for each cluster."""
    found = profiles(model)
    terminal.heading("Clusters: share, and the median (80 % of the values) or the most frequent names")
    heads = ("column", *(f"{one['cluster']}: {one['share']:.0%}" for one in found))
    rows = [(name, *(one["columns"].get(name, "–") for one in found)) for name in map(str, model.columns_)]
    terminal.table(heads, rows)
