"""What readers of a service use: a model with its density, and the names of its classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from deciban.model.model import Model
from deciban.model.predictor import Predictor
from deciban.service.classes import ClassNames, Grouping
from deciban.service.rows import RowReader
from deciban.statistics import Array


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
