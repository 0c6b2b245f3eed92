"""Calibration as a classifier keeps it: fitted on leave-one-out scores, frozen, and stale when rows come or go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from deciban.errors import HyperparameterError, InputError
from deciban.evaluate.calibration import Affine, LengthAware, Offsets
from deciban.evaluate.pav import PAV
from deciban.statistics import Array

METHODS = ("offsets", "length", "affine", "pav")
MOST_ROWS = 20_000  # leave-one-out scores that calibration is fitted on


@dataclass(frozen=True, eq=False)
class Calibration:
    """A calibrator, the classes it speaks of, and how many rows the model had when it was fitted."""

    calibrator: Any
    classes: tuple[Any, ...]
    fitted_on: float  # Σ w of the model then

    @classmethod
    def fit(cls, method: str, scores: Array, codes: Array, lengths: Any, classes: Any, rows: float) -> Calibration:
        """Fit a calibrator of log-likelihoods (n, K) to true classes; classes weigh equally, so no prior gets in."""
        if method not in METHODS:
            raise HyperparameterError(f"calibrate={method!r} is not one of {', '.join(METHODS)}, 'auto' or None.")
        if method in ("affine", "pav") and scores.shape[1] != 2:
            raise HyperparameterError(f"calibrate={method!r} is for two classes, not {scores.shape[1]}. Use 'offsets'.")
        if method == "length" and lengths is None:
            raise HyperparameterError("calibrate='length' needs rows with a length, such as counts of words.")
        if method == "length":
            made: Any = LengthAware.fit(scores, codes, lengths)
        elif method == "offsets":
            made = Offsets.fit(scores, codes)
        else:
            kind: Any = Affine if method == "affine" else PAV
            made = kind.fit(scores[:, 1] - scores[:, 0], codes == 1)
        return cls(made, tuple(classes), rows)

    def apply(self, scores: Array, lengths: Array | None, classes: Any) -> Array:
        """(n, K) calibrated log-likelihoods; a class that came later keeps its own offset of 0."""
        if isinstance(self.calibrator, (Affine, PAV)):
            self._refuse_others(classes)
            llr = self.calibrator.apply(np.where(scores[:, 1] == scores[:, 0], 0.0, scores[:, 1] - scores[:, 0]))
            return np.column_stack([np.where(llr == np.inf, -np.inf, 0.0), np.where(llr == np.inf, 0.0, llr)])
        silent = (scores == scores[:, :1]).all(axis=1)  # a row that says nothing still says nothing
        offsets = np.where(silent[:, None], 0.0, self.offsets(classes))
        return self.scale(lengths, len(scores))[:, None] * scores + offsets

    def scale(self, lengths: Array | None, n: int) -> Array:
        """(n,) what a row's evidence is multiplied by."""
        if isinstance(self.calibrator, LengthAware):
            return self.calibrator.scale(np.maximum(1.0, np.asarray(lengths)))
        return np.full(n, self.calibrator.scale if isinstance(self.calibrator, Offsets) else self.calibrator.a)

    def offsets(self, classes: Any) -> Array:
        """(K,) what is added to the classes' log-likelihoods."""
        own = dict(zip(self.classes, self.calibrator.offsets))
        return np.array([own.get(name, 0.0) for name in classes])

    def state(self, rows: float) -> str:
        """Whether it still fits the model, in words."""
        if rows == self.fitted_on:
            return f"fitted on {self.fitted_on:,.0f} rows"
        return f"stale (fitted on {self.fitted_on:,.0f} of {rows:,.0f} rows)"

    def agrees(self, other: Any) -> bool:
        """Whether another calibration says the same."""
        same = isinstance(other, Calibration) and self.classes == other.classes
        return same and self.calibrator.to_dict() == other.calibrator.to_dict()

    def _refuse_others(self, classes: Any) -> None:
        if tuple(classes) != self.classes:
            raise InputError(
                f"the calibration is for the classes {list(self.classes)}, and the model now has {list(classes)}. "
                "Calibrate again."
            )
