"""What readers of a service use: a model with its density, and the names of its classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from deciban.families.product import blocks_of
from deciban.model.model import Model
from deciban.model.predictor import Predictor
from deciban.model.row_reader import RowReader
from deciban.service.classes import ClassNames, Grouping
from deciban.statistics import Array, Ragged


@dataclass(frozen=True, eq=False)
class Published:
    """What readers use: a model with its density, names of classes, and which lessons it contains."""

    predictor: Predictor
    version: int  # id of the last lesson that it contains
    names: ClassNames
    offered: Mapping[Any, float]  # label → weight of learnt rows that were offered as unsure
    reader: RowReader
    prior: Any  # parameters of the classifier
    cost: Any

    @property
    def model(self) -> Model:
        """The model."""
        return self.predictor.model

    @property
    def grouping(self) -> Grouping:
        """The classes as they are shown."""
        return Grouping.of(self.names, self.model.classes)

    @property
    def counts(self) -> Array:
        """Weight of the rows of each class that the class prior rests on, (K,): without offered rows."""
        offered = np.array([self.offered.get(label, 0.0) for label in self.model.classes])
        rows = np.asarray(self.model.stats.rows, dtype=float)
        left = np.maximum(rows - offered, 0.0)
        return left if left.sum() > 0 else rows


def describe_model(published: Published) -> dict[str, Any]:
    """Return what the page and clients need to know of the model."""
    model, reader, grouping = published.model, published.reader, published.grouping
    schema = reader.reader.schema
    counts, trusted = (grouping.sums(each).tolist() for each in (model.stats.rows, published.counts))
    total = sum(trusted) or 1.0
    kinds = {column.name: column.kind for column in schema.columns} if schema is not None else {}
    reasons = {column.name: column.reason for column in schema.columns} if schema is not None else {}
    known = _category_names(model)
    return {
        "version": published.version,
        "form": reader.form,
        "columns": [
            {
                "name": name,
                "kind": kinds.get(name, "text" if reader.form == "text" else "number"),
                "names": known.get(name),
                "values": reasons.get(name),
            }
            for name in reader.columns[:1000]
        ],
        "label": None if schema is None else schema.label,
        "classes": [
            {"name": name, "rows": rows, "prior": share / total}
            for name, rows, share in zip(grouping.names, counts, trusted)
        ],
        "rows": float(model.weight),
        "lessons": published.version,
        "ledger": model.ledger is not None,
        "calibration": "none" if model.calibration is None else model.calibration.state(model.weight),
    }


def _category_names(model: Any, most: int = 200) -> dict[str, list[str]]:
    """Return the names that columns of categories have had, by column."""
    found: dict[str, list[str]] = {}
    for at, (_, sums) in zip(model.positions, blocks_of(model.family, model.stats.family)):
        axis = getattr(sums, "labels", {}).get("category")
        if isinstance(axis, Ragged):
            for j, part in zip(at, axis.parts):
                names = [str(name) for name in list(part.names)[:most]]
                found[str(model.reader.columns[j])] = names
    return found
