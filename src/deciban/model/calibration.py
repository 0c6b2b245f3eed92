"""Calibration as a classifier keeps it: fitted on leave-one-out scores, frozen, and stale when rows come or go.

Scores and lengths come block by block, as `Family.split` has them: lists of B tables (n, K), and of B lengths or None.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from deciban.errors import HyperparameterError, InputError
from deciban.evaluate.calibration import PAV, Affine, Blockwise, LengthAware, Offsets
from deciban.evaluate.scale_fit import informative_penalty
from deciban.statistics import Array

METHODS = ("offsets", "length", "blocks", "affine", "pav")


@dataclass(frozen=True, eq=False)
class Calibration:
    """A calibrator, the classes it speaks of, and how many rows the model had when it was fitted."""

    calibrator: Any
    classes: tuple[Any, ...]
    fitted_on: float  # Σ w of the model then

    @classmethod
    def fit(
        cls, method: str, scores: Sequence[Array], codes: Array, lengths: Sequence[Any], classes: Any, rows: float
    ) -> Calibration:
        """Fit a calibrator of log-likelihoods to true classes; no prior gets in.

        Classes weigh equally, so that every prior is served alike; by length and by blocks, which is how it is by
        default, they weigh as they are, with their log prior subtracted, which serves that prior best.
        """
        if method not in METHODS:
            raise HyperparameterError(f"calibrate={method!r} is not one of {', '.join(METHODS)}, 'auto' or None.")
        K, length = scores[0].shape[1], _total(lengths)
        if method in ("affine", "pav") and K != 2:
            raise HyperparameterError(f"calibrate={method!r} is for two classes, not {K}. Use 'offsets'.")
        if method == "length" and length is None:
            raise HyperparameterError("calibrate='length' needs rows with a length, such as counts of words.")
        if method == "blocks":
            return cls(Blockwise.fit(scores, codes, lengths, shares(codes, K)), tuple(classes), rows)
        whole = total(scores)
        if method == "length":
            made: Any = LengthAware.fit(whole, codes, np.maximum(1.0, length), shares(codes, K))  # type: ignore[arg-type]
        elif method == "offsets":
            made = Offsets.fit(whole, codes, penalty=informative_penalty)
        else:
            kind: Any = Affine if method == "affine" else PAV
            made = kind.fit(whole[:, 1] - whole[:, 0], codes == 1)
        return cls(made, tuple(classes), rows)

    def apply(self, scores: Sequence[Array], lengths: Sequence[Any], classes: Any) -> Array:
        """(n, K) calibrated log-likelihoods; a class that came later keeps its own offset of 0."""
        whole = total(scores)
        if isinstance(self.calibrator, (Affine, PAV)):
            self._refuse_others(classes)
            llr = self.calibrator.apply(np.where(whole[:, 1] == whole[:, 0], 0.0, whole[:, 1] - whole[:, 0]))
            return np.column_stack([np.where(llr == np.inf, -np.inf, 0.0), np.where(llr == np.inf, 0.0, llr)])
        silent = (whole == whole[:, :1]).all(axis=1)  # a row that says nothing still says nothing
        offsets = np.where(silent[:, None], 0.0, self.offsets(classes))
        scales = self.scales(lengths, len(whole))
        if len(scales) == 1:
            return scales[0][:, None] * whole + offsets
        return total([scale[:, None] * score for scale, score in zip(scales, scores)]) + offsets

    def scales(self, lengths: Sequence[Any], n: int) -> Array:
        """What each block's evidence is multiplied by in each row: (B, n), or (1, n) where it is the same for all."""
        if isinstance(self.calibrator, Blockwise):
            return self.calibrator.scales([None if long is None else np.maximum(1.0, long) for long in lengths], n)
        if isinstance(self.calibrator, LengthAware):
            return self.calibrator.scale(np.maximum(1.0, _total(lengths)))[None, :]  # type: ignore[arg-type]
        return np.full((1, n), self.calibrator.scale if isinstance(self.calibrator, Offsets) else self.calibrator.a)

    def offsets(self, classes: Any) -> Array:
        """(K,) what is added to the classes' log-likelihoods."""
        own = dict(zip(self.classes, self.calibrator.offsets))
        return np.array([own.get(name, 0.0) for name in classes])

    def state(self, rows: float) -> str:
        """Whether it still fits the model, in words."""
        if rows == self.fitted_on:
            return f"fitted on {self.fitted_on:,.0f} rows"
        return f"out of date: fitted on {self.fitted_on:,.0f} rows, the model now has {rows:,.0f}"

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


def shares(codes: Array, K: int) -> Array:
    """(K,) how much of the rows each class has."""
    return np.bincount(codes, minlength=K) / len(codes)


def total(scores: Sequence[Array]) -> Array:
    """(n, K) the sum over blocks."""
    return scores[0] if len(scores) == 1 else np.sum(scores, axis=0)


def _total(lengths: Sequence[Any]) -> Array | None:
    known = [long for long in lengths if long is not None]
    return np.sum(known, axis=0) if known else None
