"""What a classifier is given, as it reads it: arrays as they are, frames and files by its schema."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from deciban.conventions import validate_data
from deciban.estimators.ledgered import Ledgered
from deciban.model import model
from deciban.read.batches import Batch, Rows, split_label, typed_rows
from deciban.read.files import is_place
from deciban.read.labels import encode_labels
from deciban.read.schema import Schema, TypedTable
from deciban.read.tables import Table
from deciban.statistics import Members


class Reading(Ledgered):
    """Rows and labels from whatever was given."""

    kinds: Any = None
    schema_: Schema | None = None  # how frames and files are read

    def _note_columns(self, X: Any, rows: Rows) -> None:
        """What scikit-learn's conventions ask for, and the schema where there is one."""
        vars(self).pop("schema_", None)
        if rows.schema is not None:
            self.schema_ = rows.schema
        if is_place(X) or isinstance(X, Table):
            vars(self).pop("feature_names_in_", None)
            names = rows.schema.names if rows.schema is not None else rows.X.columns
            self.n_features_in_ = len(names)
            if all(isinstance(name, str) for name in names):
                self.feature_names_in_ = np.array(names, dtype=object)
        else:
            validate_data(self, _as_given(X, rows.X), reset=True, skip_check_array=True)

    def _table(self, X: Any) -> Table:
        """The table, with the columns that the model knows, typed where it has a schema."""
        schema = self.schema_
        if isinstance(X, TypedTable) or (schema is None and isinstance(X, Table)):
            return X
        if schema is None:
            table = Table.of(X)
            if not (table.texts and self.n_features_in_ == 1):
                validate_data(self, _as_given(X, table), reset=False, skip_check_array=True)
            return table
        if is_place(X) or isinstance(X, Table):
            return typed_rows(X, schema)
        table = Table.of(X)
        if table.framed and schema.label in table.columns and schema.label not in schema.names:
            table, _ = split_label(table, str(schema.label))
        if not (table.texts and self.n_features_in_ == 1):
            validate_data(self, _as_given(X, table), reset=False, skip_check_array=True)
        return schema.apply(table)

    def _rows(self, X: Any, y: Any, sample_weight: Any) -> Rows:
        """Rows with labels, as batches that are read as the first ones were."""
        schema = self.schema_
        if isinstance(y, str) and schema is not None:
            return Rows(X, y, sample_weight, lambda table, label: replace(schema, label=label))
        if isinstance(y, str):
            table, y = split_label(Table.of(X), y)
            X = table.data.to_native()
        return Rows(self._table(X), y, sample_weight)

    def _labelled(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Rows and labels apart, where y is the name of a column."""
        if not isinstance(y, str):
            return X, y
        rows = self._rows(X, y, None).whole()
        return rows.table, rows.labels


def members_of(family: Any, batch: Batch, stats: Any, declared: Any = None) -> tuple[Any, Members]:
    """A batch as the family takes it, and who belongs to which class."""
    names, codes = encode_labels(batch.labels, len(batch.table))
    axis = model.class_axis(names, declared)
    if tuple(axis.names) != names:
        codes = axis.positions(model.class_axis(names, None))[codes]
    return model.encode(family, batch.table, stats), Members.hard(codes, axis, batch.weight)


def _as_given(X: Any, table: Table) -> Any:
    """A frame without its column of labels, where that was one of its own; a list of texts as a column."""
    if table.texts:
        return table.data
    return table.data.to_native() if table.framed and np.shape(X)[1] != table.shape[1] else X
