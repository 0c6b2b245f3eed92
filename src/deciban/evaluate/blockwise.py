"""A calibrator for models made of blocks: each block's evidence has a scale of its own.

    log f'(x|c) = Σ_b s_b(L_b)·log f_b(x|c) + b_c,      s_b(L) = e^(a_b)·(L/L₀_b)^(−γ_b)

Columns of one block repeat what others say, more in some blocks than in others: words more than measurements. Where a
block does not count events its γ is 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from deciban.errors import InputError
from deciban.evaluate.belief import Believe, considered
from deciban.evaluate.checks import class_prior, class_scores, row_lengths, score_table, shortest
from deciban.evaluate.scaled_softmax import fit_scaled_softmax
from deciban.score import Array

NUMBERS = ("log_scales", "shrinkages", "reference_lengths", "offsets", "shortest")


@dataclass(frozen=True, eq=False)
class Blockwise:
    """log f'(x|c) = Σ_b s_b·log f_b(x|c) + b_c.

    Of two blocks, the second says nothing that is true:

    >>> told, codes = np.array([[0.0, 2.0], [2.0, 0.0]] * 300), np.array([1, 0, 1, 0, 0, 1] * 100)
    >>> noise = np.random.default_rng(0).normal(0, 3, (600, 2))
    >>> fitted = Blockwise.fit([told, noise], codes)
    >>> fitted
    Blockwise(scales=0.354 0.0403, 2 offsets)
    >>> fitted.apply([[[0.0, 2.0]], [[1.0, 0.0]]]).round(1).tolist()
    [[0.0, 0.7]]
    """

    log_scales: Array  # (B,)  a: log of each block's scale at its reference length
    shrinkages: Array  # (B,)  γ: 0 where lengths do not matter
    reference_lengths: Array  # (B,)  L₀ ≥ 1
    offsets: Array  # (K,)  nats, 0 on average; 0 for classes without rows
    shortest: Array  # (B,)  ≥ 1: rows that are shorter count as long as this

    def __post_init__(self) -> None:
        numbers = [np.asarray(getattr(self, name), dtype=float) for name in NUMBERS]
        blocks = numbers[:3] + numbers[4:]
        alike = len({number.shape for number in blocks}) == 1 and all(number.ndim == 1 for number in numbers)
        long = alike and (np.stack(blocks[2:]) >= 1).all()
        if not (long and all(np.isfinite(number).all() for number in numbers)):
            raise InputError("this is no calibrator: each block needs a finite scale and a reference length ≥ 1.")

    @classmethod
    def fit(
        cls,
        tables: Sequence[ArrayLike],
        codes: ArrayLike,
        lengths: Sequence[ArrayLike | None] | None = None,
        prior: ArrayLike | None = None,
        believe: Believe = considered,
    ) -> Blockwise:
        """Scales and offsets of least cross-entropy at the given prior (K,), else an equal one; (n, K) scores a block.

        `lengths` has for each block the (n,) lengths of its rows, or None where it counts no events.
        """
        checked = [class_scores(table, codes) for table in tables]
        n, K = checked[0][0].shape
        counted = [None if long is None else row_lengths(long, n) for long in lengths or [None] * len(checked)]
        least = np.array([1.0 if long is None else shortest(long) for long in counted])
        logs = [None if long is None else np.log(np.maximum(long, low)) for long, low in zip(counted, least)]
        means = np.array([0.0 if log is None else log.mean() for log in logs])
        centred = [None if log is None else log - mean for log, mean in zip(logs, means)]
        scores = [table for table, _ in checked]
        fit = fit_scaled_softmax(scores, checked[0][1], class_prior(prior, K), centred, believe)
        return cls(fit.log_scales, fit.shrinkages, np.exp(means), fit.offsets, least)

    def scales(self, lengths: Sequence[ArrayLike | None], n: int) -> Array:
        """The factor (B, n) by which each block's evidence counts in each row."""
        logs = np.zeros((len(self.log_scales), n))
        for b in np.flatnonzero(self.shrinkages).tolist():
            counted = np.maximum(row_lengths(lengths[b], n), self.shortest[b])
            logs[b] = np.log(counted / self.reference_lengths[b])
        return np.exp(self.log_scales[:, None] - self.shrinkages[:, None] * logs)

    def apply(self, tables: Sequence[ArrayLike], lengths: Sequence[ArrayLike | None] | None = None) -> Array:
        """Calibrated log-likelihoods (n, K) from those of each block."""
        if len(tables) != len(self.log_scales):
            raise InputError(f"{len(tables)} blocks of scores for a calibrator of {len(self.log_scales)}.")
        checked = [score_table(table) for table in tables]
        scales = self.scales(lengths or [None] * len(checked), len(checked[0]))
        return sum(scale[:, None] * table for scale, table in zip(scales, checked)) + self.offsets

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "blockwise", **{name: getattr(self, name).tolist() for name in NUMBERS}}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Blockwise:
        return cls(*(np.array(values[name], dtype=float) for name in NUMBERS))

    def __repr__(self) -> str:
        scales = " ".join(f"{scale:.3g}" for scale in np.exp(self.log_scales))
        return f"Blockwise(scales={scales}, {len(self.offsets)} offsets)"
