"""Prequential log loss: each batch is scored by the model before it is learnt.

Reference: Dawid, Statistical theory: the prequential approach, 1984.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from deciban.statistics import Array


@dataclass(frozen=True)
class Prequential:
    """Log loss of labels predicted before they were learnt, over all batches since the first fit.

    >>> Prequential().add(np.log([0.5, 0.25]), None)
    Prequential(log loss 1.040 over 2 rows)
    """

    total: float = 0.0  # Σ −w·log P(label), of labels that were classes of the model
    rows: float = 0.0  # Σ w of these rows
    new: float = 0.0  # Σ w of rows whose class was new to the model

    @property
    def log_loss(self) -> float:
        """Mean log loss in nats per row; NaN if no row was scored."""
        return self.total / self.rows if self.rows else float("nan")

    def add(self, log_p: Array, weight: Array | None) -> Prequential:
        """Return the loss with more rows; `log_p` is the log probability of each label, NaN for a new class."""
        weight = np.ones(len(log_p)) if weight is None else weight
        known = ~np.isnan(log_p)
        return replace(
            self,
            total=self.total - float(weight[known] @ log_p[known]),
            rows=self.rows + float(weight[known].sum()),
            new=self.new + float(weight[~known].sum()),
        )

    def __repr__(self) -> str:
        new = f", {self.new:g} rows of new classes" if self.new else ""
        return f"Prequential(log loss {self.log_loss:.3f} over {self.rows:g} rows{new})"
