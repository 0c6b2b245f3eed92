"""Calibrators: what turns scores into evidence that keeps its promises. Fit them on scores of rows not learnt from.

    Affine        llr'        = a·llr + b                          two classes
    Offsets       log f'(x|c) = s·log f(x|c) + b_c                 K classes
    LengthAware   log f'(x|c) = s(L)·log f(x|c) + b_c,             s(L) = e^a·(L/L₀)^(−γ)
    Blockwise     a scale for each block of columns (module blockwise)
    PAV           any monotone llr' (module pav)                   two classes

Naive Bayes counts every word as independent news, so its overconfidence grows with the length L of a document (tokens,
at least 1); L₀ is the geometric mean length. Rows shorter than nearly all that were seen count as long as those: what a
scale does there, nobody has seen. Rows are weighed so that the classes have a prior of your choice (equal
ones unless given), and the offsets leave it out: the result is a likelihood, into which any prior can be plugged.

Scales are positive: a calibrator never turns evidence round, and what was impossible stays so. Few rows, and rows that
scores tell apart without an error, leave the scale undetermined; what is believed beforehand fades as rows come (module
belief). Affine and Offsets have next to no such belief unless told: they are the logistic regression everybody knows.

Reference: Brümmer & van Leeuwen, On calibration of language recognition scores, Odyssey 2006.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp, isfinite
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from deciban.errors import InputError, PriorError
from deciban.evaluate.checks import (
    class_prior,
    class_scores,
    row_lengths,
    score_column,
    score_table,
    shortest,
    two_class_scores,
)
from deciban.evaluate.scale_fit import Believe, Blockwise, considered, fit_scaled_softmax, vague
from deciban.evaluate.two_class import PAV
from deciban.evidence.scores import Array


@dataclass(frozen=True)
class Affine:
    """llr' = a·llr + b, by logistic regression at a prior.

    Heights again, from a model that says everything twice:

    >>> llr = 2 * np.array([1.5, 0.2, -0.4, 2.0, -2.2, -1.0, 0.9, -1.9])
    >>> Affine.fit(llr, [1, 1, 1, 1, 0, 0, 0, 0])
    Affine(a=0.639, b=0.129)
    >>> Affine(.5, 0.0).apply([3.0, -np.inf]).tolist()
    [1.5, -inf]
    """

    a: float  # > 0
    b: float  # nats

    def __post_init__(self) -> None:
        _check_scale(self.a)

    @classmethod
    def fit(cls, llr: ArrayLike, is_h1: ArrayLike, prior: float = 0.5, believe: Believe = vague) -> Affine:
        """The a and b of least cross-entropy where h1 has the given prior."""
        llr, is_h1 = two_class_scores(llr, is_h1)
        if not 0 < prior < 1:
            raise PriorError(f"the prior of h1 is {prior!r}. Give a probability strictly between 0 and 1.")
        table = np.column_stack([np.where(llr == np.inf, -np.inf, 0.0), np.where(llr == np.inf, 0.0, llr)])
        fit = fit_scaled_softmax([table], is_h1.astype(np.intp), np.array([1 - prior, prior]), believe=believe)
        return cls(exp(fit.log_scales[0]), float(fit.offsets[1] - fit.offsets[0]))

    def apply(self, llr: ArrayLike, lengths: Any = None) -> Array:
        """Calibrated llrs; lengths do not matter."""
        return self.a * score_column(llr) + self.b

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "affine", "a": self.a, "b": self.b}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Affine:
        return cls(float(values["a"]), float(values["b"]))

    def __repr__(self) -> str:
        return f"Affine(a={self.a:.3g}, b={self.b:.3g})"


@dataclass(frozen=True, eq=False)
class Offsets:
    """log f'(x|c) = s·log f(x|c) + b_c: one scale for all classes, and an offset for each.

    >>> fitted = Offsets.fit([[0.0, 4.0], [4.0, 0.0]] * 300, [1, 0, 1, 0, 0, 1] * 100)
    >>> fitted
    Offsets(scale=0.173, 2 offsets)
    >>> fitted.apply([[1.0, 5.0]]).round(2).tolist()
    [[0.17, 0.87]]
    """

    scale: float  # > 0
    offsets: Array  # (K,)  nats, 0 on average; 0 for classes without rows

    def __post_init__(self) -> None:
        _check_scale(self.scale)

    @classmethod
    def fit(
        cls, log_likelihood: ArrayLike, codes: ArrayLike, prior: ArrayLike | None = None, believe: Believe = vague
    ) -> Offsets:
        """The scale and offsets of least cross-entropy where the classes have the given prior (K,), else equal ones."""
        table, numbers = class_scores(log_likelihood, codes)
        fit = fit_scaled_softmax([table], numbers, class_prior(prior, table.shape[1]), believe=believe)
        return cls(exp(fit.log_scales[0]), fit.offsets)

    def apply(self, log_likelihood: ArrayLike, lengths: Any = None) -> Array:
        """Calibrated log-likelihoods; lengths do not matter."""
        return self.scale * _columns(log_likelihood, self.offsets) + self.offsets

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "offsets", "scale": self.scale, "offsets": self.offsets.tolist()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Offsets:
        return cls(float(values["scale"]), np.array(values["offsets"], dtype=float))

    def __repr__(self) -> str:
        return f"Offsets(scale={self.scale:.3g}, {len(self.offsets)} offsets)"


@dataclass(frozen=True, eq=False)
class LengthAware:
    """log f'(x|c) = s(L)·log f(x|c) + b_c, where long rows, which repeat themselves, count less per token.

    >>> per_token = LengthAware(0.0, 1.0, 10.0, np.zeros(2))
    >>> per_token.apply([[-5.0, -7.0], [-50.0, -70.0]], lengths=[10, 100]).round(9).tolist()
    [[-5.0, -7.0], [-5.0, -7.0]]
    >>> per_token
    LengthAware(scale=1·(L/10)^−1.00, 2 offsets)
    """

    log_scale: float  # a: log of the scale at the reference length
    shrinkage: float  # γ: 0 is one scale for all lengths, 1 is evidence per token
    reference_length: float  # L₀ ≥ 1
    offsets: Array  # (K,)  nats, 0 on average; 0 for classes without rows
    shortest: float = 1.0  # rows that are shorter count as long as this

    def __post_init__(self) -> None:
        lengths = self.reference_length, self.shortest
        if not (isfinite(self.log_scale) and isfinite(self.shrinkage) and all(1 <= long < np.inf for long in lengths)):
            raise InputError(f"{self!r} is no calibrator: its scale must be finite and its reference length ≥ 1.")

    @classmethod
    def fit(
        cls,
        log_likelihood: ArrayLike,
        codes: ArrayLike,
        lengths: ArrayLike,
        prior: ArrayLike | None = None,
        believe: Believe = considered,
    ) -> LengthAware:
        """The scale, shrinkage and offsets of least cross-entropy at the given prior (K,), else an equal one."""
        table, numbers = class_scores(log_likelihood, codes)
        least = shortest(row_lengths(lengths, len(table)))
        logs = np.log(np.maximum(row_lengths(lengths, len(table)), least))
        share = class_prior(prior, table.shape[1])
        fit = fit_scaled_softmax([table], numbers, share, [logs - logs.mean()], believe)
        return cls(float(fit.log_scales[0]), float(fit.shrinkages[0]), float(np.exp(logs.mean())), fit.offsets, least)

    def scale(self, lengths: ArrayLike | None) -> Array:
        """The factor (n,) by which evidence of each length counts."""
        n = 0 if lengths is None else np.size(lengths)
        counted = np.maximum(row_lengths(lengths, n), self.shortest)
        return np.exp(self.log_scale - self.shrinkage * np.log(counted / self.reference_length))

    def apply(self, log_likelihood: ArrayLike, lengths: ArrayLike | None = None) -> Array:
        """Calibrated log-likelihoods of rows with so many tokens."""
        table = _columns(log_likelihood, self.offsets)
        row_lengths(lengths, len(table))
        return self.scale(lengths)[:, None] * table + self.offsets

    def to_dict(self) -> dict[str, Any]:
        numbers = {name: getattr(self, name) for name in ("log_scale", "shrinkage", "reference_length", "shortest")}
        return {"kind": "length-aware", **numbers, "offsets": self.offsets.tolist()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> LengthAware:
        a, shrinkage, length = (float(values[name]) for name in ("log_scale", "shrinkage", "reference_length"))
        return cls(a, shrinkage, length, np.array(values["offsets"], dtype=float), float(values.get("shortest", 1.0)))

    def __repr__(self) -> str:
        law = f"scale={exp(self.log_scale):.3g}·(L/{self.reference_length:.3g})^{-self.shrinkage:z.2f}"
        return f"LengthAware({law}, {len(self.offsets)} offsets)".replace("^-", "^−")


Calibrator = Affine | Offsets | LengthAware | Blockwise | PAV
KINDS: dict[str, Any] = {
    "affine": Affine,
    "offsets": Offsets,
    "length-aware": LengthAware,
    "blockwise": Blockwise,
    "pav": PAV,
}


def calibrator_from_dict(values: Mapping[str, Any]) -> Calibrator:
    """The calibrator whose `to_dict` gave these values.

    >>> calibrator_from_dict({"kind": "affine", "a": 0.5, "b": 0.0})
    Affine(a=0.5, b=0)
    """
    if values.get("kind") not in KINDS:
        raise InputError(
            f"calibrator kind {values.get('kind')!r} is unknown. It is one of {', '.join(map(repr, KINDS))}."
        )
    return KINDS[values["kind"]].from_dict(values)


def _check_scale(scale: float) -> None:
    if not 0 < scale < np.inf:
        raise InputError(f"the scale is {scale!r}. Evidence is scaled by a finite number > 0.")


def _columns(log_likelihood: ArrayLike, offsets: Array) -> Array:
    table = score_table(log_likelihood)
    if table.shape[1] != len(offsets):
        raise InputError(f"{table.shape[1]} columns of log-likelihoods for a calibrator of {len(offsets)} classes.")
    return table
