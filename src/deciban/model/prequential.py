"""How well a model foretells what it is about to learn: each batch is scored before it is summed."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from deciban.statistics import Array


@dataclass(frozen=True)
class Prequential:
    """The log loss of labels that were foretold, over all batches since the first fit.

    >>> Prequential().told(np.log([0.5, 0.25]), None)
    Prequential(log loss 1.040 over 2 rows)
    """

    total: float = 0.0  # Σ −w·log P(label), of labels that the model knew
    rows: float = 0.0  # Σ w of those
    new: float = 0.0  # Σ w of rows whose class it had not met yet

    @property
    def log_loss(self) -> float:
        """In nats a row; NaN before anything was foretold."""
        return self.total / self.rows if self.rows else float("nan")

    def told(self, log_p: Array, weight: Array | None) -> Prequential:
        """With more rows, by the log probability of each label; NaN for a class that was not known."""
        weight = np.ones(len(log_p)) if weight is None else weight
        known = ~np.isnan(log_p)
        return replace(
            self,
            total=self.total - float(weight[known] @ log_p[known]),
            rows=self.rows + float(weight[known].sum()),
            new=self.new + float(weight[~known].sum()),
        )

    def __repr__(self) -> str:
        new = f", {self.new:g} of classes that were new" if self.new else ""
        return f"Prequential(log loss {self.log_loss:.3f} over {self.rows:g} rows{new})"
