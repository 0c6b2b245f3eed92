"""Calibrators: functions that turn scores into calibrated evidence. Fit them on scores of rows not learnt from.

    Affine        llr'        = a·llr + b                                two classes
    Offsets       log f'(x|c) = s·log f(x|c) + b_c                       K classes
    LengthAware   log f'(x|c) = s(L)·log f(x|c) + b_c,                   s(L) = e^a·(L/L₀)^(−γ)
    Blockwise     log f'(x|c) = Σ_b s_b(L_b)·log f_b(x|c) + b_c          a scale for each block of columns;
                                + Σ_e w_e·g_e(x|c)                       a weight ≥ 0 for each part of experts
    PAV           any monotone function of the llr                       two classes

Naive Bayes treats every word as independent evidence, so its overconfidence grows with the length L of a document
(tokens, at least 1); L₀ is the geometric mean length. Rows shorter than 99 % of the fitted rows get the scale of the
shortest of these, since the fit says nothing about shorter ones. Rows are weighted so that the classes have a given
prior (equal if not given), and the offsets do not hold it: the result is a likelihood, to be used with any prior.

Scales are positive: a calibrator never reverses evidence, and what was impossible stays impossible. Few rows, or rows
that the scores separate without an error, do not determine the scale; the fit is then held by a penalty that vanishes
as rows are added (module scale_fit). Affine and Offsets have a weak one by default, and are then ordinary logistic
regression.

Reference: Brümmer & van Leeuwen, On calibration of language recognition scores, Odyssey 2006.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from math import exp, isfinite, log
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from deciban.errors import InputError, PriorError
from deciban.evaluate.checks import (
    Codes,
    class_prior,
    class_scores,
    row_lengths,
    score_column,
    score_table,
    two_class_scores,
)
from deciban.evaluate.figures import Tally, pool_llr
from deciban.evaluate.scale_fit import (
    Fit,
    MakePenalty,
    fit_each_scaled_softmax,
    fit_one_of_many,
    fit_scaled_softmax,
    fit_weights,
    informative_penalty,
    weak_penalty,
)
from deciban.evidence.explanation import count
from deciban.evidence.scores import Array
from deciban.kernels.choice import one_thread


class Calibrator(ABC):
    """A fitted calibrator; the base class of `Affine`, `Offsets`, `LengthAware`, `Blockwise` and `PAV`.

    Each is a frozen dataclass of its parameters, with a class method `fit`.

    Examples
    --------
    >>> Affine(0.5, 1.0).apply([3.0]).tolist(), Affine(0.5, 1.0).to_dict()
    ([2.5], {'kind': 'affine', 'a': 0.5, 'b': 1.0})
    """

    kind: ClassVar[str]

    @abstractmethod
    def apply(self, scores: Any, lengths: Any = None) -> Array:
        """Calibrate scores.

        Parameters
        ----------
        scores : array-like of shape (n,) or (n, K), or sequence of B array-likes of shape (n, K)
            Llrs for `Affine` and `PAV`, log-likelihoods for `Offsets` and `LengthAware`, log-likelihoods of each block
            for `Blockwise`.
        lengths : array-like of shape (n,), or sequence of B array-likes of shape (n,) or None, optional
            Number of tokens of each row for `LengthAware`, and in each block for `Blockwise`; ignored by the others.

        Returns
        -------
        ndarray of shape (n,) or (n, K)
            Calibrated llrs, or log-likelihoods of all blocks together.
        """

    def to_dict(self) -> dict[str, Any]:
        """Give the kind and the parameters as plain values; infinities are text, since JSON has none.

        Returns
        -------
        dict
            Values for `calibrator_from_dict`.
        """
        values = {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]  # a dataclass
        return {"kind": self.kind} | {
            name: [x if isfinite(x) else str(x) for x in value.tolist()] if isinstance(value, np.ndarray) else value
            for name, value in values.items()
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Make the calibrator of plain values.

        Parameters
        ----------
        values : mapping
            Values given by `to_dict`.

        Returns
        -------
        Calibrator
            The calibrator.
        """
        return cls(
            **{
                name: np.array([float(x) for x in value]) if isinstance(value, list) else float(value)
                for name, value in values.items()
                if name != "kind"
            }
        )


@dataclass(frozen=True)
class Affine(Calibrator):
    """Calibrator llr' = a·llr + b of two classes.

    Parameters
    ----------
    a : float
        Scale, > 0.
    b : float
        Offset in nats.

    Examples
    --------
    Evidence from heights, by a model that counts everything twice:

    >>> llr = 2 * np.array([1.5, 0.2, -0.4, 2.0, -2.2, -1.0, 0.9, -1.9])
    >>> Affine.fit(llr, [1, 1, 1, 1, 0, 0, 0, 0])
    Affine(a=0.639, b=0.129)
    >>> Affine(.5, 0.0).apply([3.0, -np.inf]).tolist()
    [1.5, -inf]
    """

    kind: ClassVar[str] = "affine"
    a: float
    b: float

    def __post_init__(self) -> None:
        _check_scale(self.a)

    @classmethod
    def fit(cls, llr: ArrayLike, is_h1: ArrayLike, prior: float = 0.5, penalty: MakePenalty = weak_penalty) -> Affine:
        """Fit by logistic regression.

        Parameters
        ----------
        llr : array-like of shape (n,)
            Scores.
        is_h1 : array-like of bool of shape (n,)
            Whether h1 is true for each row.
        prior : float, default=0.5
            Prior of h1 at which the cross-entropy is minimised.
        penalty : callable, default=weak_penalty
            Penalty on the parameters (module scale_fit).

        Returns
        -------
        Affine
            The calibrator of least penalised cross-entropy.
        """
        llr, is_h1 = two_class_scores(llr, is_h1)
        if not 0 < prior < 1:
            raise PriorError(f"the prior of h1 is {prior!r}. Give a probability strictly between 0 and 1.")
        table = np.column_stack([np.where(llr == np.inf, -np.inf, 0.0), np.where(llr == np.inf, 0.0, llr)])
        fit = fit_scaled_softmax([table], is_h1.astype(np.intp), np.array([1 - prior, prior]), penalty=penalty)
        return cls(exp(fit.log_scales[0]), float(fit.offsets[1] - fit.offsets[0]))

    def apply(self, scores: ArrayLike, lengths: object = None) -> Array:
        return self.a * score_column(scores) + self.b

    def __repr__(self) -> str:
        return f"Affine(a={self.a:.3g}, b={self.b:.3g})"


@dataclass(frozen=True, eq=False)
class Offsets(Calibrator):
    """Calibrator log f'(x|c) = s·log f(x|c) + b_c of K classes.

    Parameters
    ----------
    scale : float
        Scale s common to all classes, > 0.
    offsets : ndarray of shape (K,)
        Offsets b in nats; their mean is 0, and those of classes without rows are 0.

    Examples
    --------
    >>> fitted = Offsets.fit([[0.0, 4.0], [4.0, 0.0]] * 300, [1, 0, 1, 0, 0, 1] * 100)
    >>> fitted
    Offsets(scale=0.173, 2 offsets)
    >>> fitted.apply([[1.0, 5.0]]).round(2).tolist()
    [[0.17, 0.87]]
    """

    kind: ClassVar[str] = "offsets"
    scale: float
    offsets: Array

    def __post_init__(self) -> None:
        _check_scale(self.scale)

    @classmethod
    def fit(
        cls,
        log_likelihood: ArrayLike,
        codes: ArrayLike,
        prior: ArrayLike | None = None,
        penalty: MakePenalty = weak_penalty,
    ) -> Offsets:
        """Fit by multinomial logistic regression with one scale.

        Parameters
        ----------
        log_likelihood : array-like of shape (n, K)
            Scores.
        codes : array-like of int of shape (n,)
            True class of each row.
        prior : array-like of shape (K,), optional
            Class prior at which the cross-entropy is minimised, equal for all classes if not given.
        penalty : callable, default=weak_penalty
            Penalty on the parameters (module scale_fit).

        Returns
        -------
        Offsets
            The calibrator of least penalised cross-entropy.
        """
        return cls.fit_each([log_likelihood], codes, prior, penalty)[0]

    @classmethod
    def fit_each(
        cls,
        log_likelihoods: Sequence[ArrayLike],
        codes: ArrayLike,
        prior: ArrayLike | None = None,
        penalty: MakePenalty = weak_penalty,
    ) -> list[Offsets]:
        """Fit one calibrator for each of several scores of the same rows.

        Parameters
        ----------
        log_likelihoods : sequence of array-like of shape (n, K)
            Scores.
        codes : array-like of int of shape (n,)
            True class of each row.
        prior : array-like of shape (K,), optional
            Class prior at which the cross-entropy is minimised, equal for all classes if not given.
        penalty : callable, default=weak_penalty
            Penalty on the parameters (module scale_fit).

        Returns
        -------
        list of Offsets
            For each of the scores, the calibrator of least penalised cross-entropy.
        """
        checked = [class_scores(table, codes) for table in log_likelihoods]
        if not checked:
            return []
        prior = class_prior(prior, checked[0][0].shape[1])
        fits = fit_each_scaled_softmax([[table] for table, _ in checked], checked[0][1], prior, penalty=penalty)
        return [cls(exp(fit.log_scales[0]), fit.offsets) for fit in fits]

    def apply(self, scores: ArrayLike, lengths: object = None) -> Array:
        return self.scale * _columns(scores, self.offsets) + self.offsets

    def __repr__(self) -> str:
        return f"Offsets(scale={self.scale:.3g}, {len(self.offsets)} offsets)"


@dataclass(frozen=True, eq=False)
class LengthAware(Calibrator):
    """Calibrator log f'(x|c) = s(L)·log f(x|c) + b_c, whose scale falls with the length of the row.

    Parameters
    ----------
    log_scale : float
        Logarithm a of the scale at the reference length.
    shrinkage : float
        Exponent γ: 0 is one scale for all lengths, 1 is evidence per token.
    reference_length : float
        Length L₀ ≥ 1.
    offsets : ndarray of shape (K,)
        Offsets b in nats; their mean is 0, and those of classes without rows are 0.
    shortest : float, default=1.0
        Rows that are shorter get the scale of this length.

    Examples
    --------
    >>> per_token = LengthAware(0.0, 1.0, 10.0, np.zeros(2))
    >>> per_token.apply([[-5.0, -7.0], [-50.0, -70.0]], lengths=[10, 100]).round(9).tolist()
    [[-5.0, -7.0], [-5.0, -7.0]]
    >>> per_token
    LengthAware(scale=1·(L/10)^−1.00, 2 offsets)
    """

    kind: ClassVar[str] = "length-aware"
    log_scale: float
    shrinkage: float
    reference_length: float
    offsets: Array
    shortest: float = 1.0

    def __post_init__(self) -> None:
        lengths = self.reference_length, self.shortest
        if not (isfinite(self.log_scale) and isfinite(self.shrinkage) and all(1 <= long < np.inf for long in lengths)):
            raise InputError(
                f"{self!r} is not a valid calibrator: its scale must be finite and its reference length ≥ 1."
            )

    @classmethod
    def fit(
        cls,
        log_likelihood: ArrayLike,
        codes: ArrayLike,
        lengths: ArrayLike,
        prior: ArrayLike | None = None,
        penalty: MakePenalty = informative_penalty,
    ) -> LengthAware:
        """Fit scale, shrinkage and offsets.

        Parameters
        ----------
        log_likelihood : array-like of shape (n, K)
            Scores.
        codes : array-like of int of shape (n,)
            True class of each row.
        lengths : array-like of shape (n,)
            Number of tokens of each row.
        prior : array-like of shape (K,), optional
            Class prior at which the cross-entropy is minimised, equal for all classes if not given.
        penalty : callable, default=informative_penalty
            Penalty on the parameters (module scale_fit).

        Returns
        -------
        LengthAware
            The calibrator of least penalised cross-entropy.
        """
        table, numbers = class_scores(log_likelihood, codes)
        n, K = table.shape
        with one_thread(0):
            return cls.fit_from(table, numbers, row_lengths(lengths, n), class_prior(prior, K), None, penalty)

    @classmethod
    def fit_from(
        cls,
        scores: Array,
        codes: Codes,
        lengths: Array,
        prior: Array,
        near: LengthAware | None = None,
        penalty: MakePenalty = informative_penalty,
    ) -> LengthAware:
        """Do what `fit` does, with arrays that were checked and a prior; callers limit the threads of BLAS.

        Parameters
        ----------
        scores : ndarray of shape (n, K)
            Log-likelihoods.
        codes : ndarray of shape (n,)
            True class of each row.
        lengths : ndarray of shape (n,)
            Number of tokens of each row.
        prior : ndarray of shape (K,)
            Class prior.
        near : LengthAware, optional
            A fit of similar scores: near the minimum, fewer steps are needed.
        penalty : callable, default=informative_penalty
            Penalty on the parameters (module scale_fit).

        Returns
        -------
        LengthAware
            The calibrator of least penalised cross-entropy.
        """
        logs, mean, least = _centred_logs(lengths)
        start = None
        if near is not None:
            log_scale = near.log_scale - near.shrinkage * (mean - log(near.reference_length))
            start = Fit(np.array([log_scale]), np.array([near.shrinkage]), near.offsets)
        fit = fit_one_of_many([scores], codes, prior, [logs], penalty, start)
        return cls(float(fit.log_scales[0]), float(fit.shrinkages[0]), float(np.exp(mean)), fit.offsets, least)

    def scale(self, lengths: ArrayLike | None) -> Array:
        """Give the scale of rows of these lengths.

        Parameters
        ----------
        lengths : array-like of shape (n,)
            Number of tokens of each row.

        Returns
        -------
        ndarray of shape (n,)
            Scales.
        """
        return self.scale_of(row_lengths(lengths, 0 if lengths is None else np.size(lengths)))

    def scale_of(self, lengths: Array) -> Array:
        """Do what `scale` does, for lengths ≥ 1 that were checked.

        Parameters
        ----------
        lengths : ndarray of shape (n,)
            Number of tokens of each row.

        Returns
        -------
        ndarray of shape (n,)
            Scales.
        """
        counted = np.maximum(lengths, self.shortest)
        return np.exp(self.log_scale - self.shrinkage * np.log(counted / self.reference_length))

    def apply(self, scores: ArrayLike, lengths: ArrayLike | None = None) -> Array:
        table = _columns(scores, self.offsets)
        return self.scale_of(row_lengths(lengths, len(table)))[:, None] * table + self.offsets

    def __repr__(self) -> str:
        law = f"scale={exp(self.log_scale):.3g}·(L/{self.reference_length:.3g})^{-self.shrinkage:z.2f}"
        return f"LengthAware({law}, {len(self.offsets)} offsets)".replace("^-", "^−")


@dataclass(frozen=True, eq=False)
class Blockwise(Calibrator):
    """Calibrator log f'(x|c) = Σ_b s_b(L_b)·log f_b(x|c) + b_c, with a scale for each of B blocks of columns.

    Columns repeat each other more in some blocks than in others: words more than measurements.

    Parameters
    ----------
    log_scales : ndarray of shape (B,)
        Logarithm a of the scale of each block at its reference length.
    shrinkages : ndarray of shape (B,)
        Exponents γ; 0 where the scale does not depend on the length.
    reference_lengths : ndarray of shape (B,)
        Lengths L₀ ≥ 1.
    offsets : ndarray of shape (K,)
        Offsets b in nats; their mean is 0, and those of classes without rows are 0.
    shortest : ndarray of shape (B,)
        Rows that are shorter get the scale of this length, ≥ 1.
    weights : ndarray of shape (E,), optional
        Weights ≥ 0 of parts of the evidence that belong to no block, such as interactions of columns.

    Examples
    --------
    Two blocks, of which the second is noise:

    >>> scores, codes = np.array([[0.0, 2.0], [2.0, 0.0]] * 300), np.array([1, 0, 1, 0, 0, 1] * 100)
    >>> noise = np.random.default_rng(0).normal(0, 3, (600, 2))
    >>> fitted = Blockwise.fit([scores, noise], codes)
    >>> fitted
    Blockwise(scales=0.354 0.0403, 2 offsets)
    >>> fitted.apply([[[0.0, 2.0]], [[1.0, 0.0]]]).round(1).tolist()
    [[0.0, 0.7]]
    """

    kind: ClassVar[str] = "blockwise"
    log_scales: Array
    shrinkages: Array
    reference_lengths: Array
    offsets: Array
    shortest: Array
    weights: Array = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        numbers = [np.asarray(getattr(self, f.name), dtype=float) for f in fields(self)[:-1]]
        blocks = numbers[:3] + numbers[4:]  # all but the offsets
        alike = len({number.shape for number in blocks}) == 1 and all(number.ndim == 1 for number in numbers)
        long = alike and (np.stack(blocks[2:]) >= 1).all()
        if not (long and all(np.isfinite(number).all() for number in numbers)):
            raise InputError(
                "this is not a valid calibrator: each block needs a finite scale and a reference length ≥ 1."
            )
        if np.ndim(self.weights) != 1 or not ((np.asarray(self.weights) >= 0) & np.isfinite(self.weights)).all():
            raise InputError("this is not a valid calibrator: the weights of parts must be finite and ≥ 0.")

    @classmethod
    def fit(
        cls,
        tables: Sequence[ArrayLike],
        codes: ArrayLike,
        lengths: Sequence[ArrayLike | None] | None = None,
        prior: ArrayLike | None = None,
        penalty: MakePenalty = informative_penalty,
    ) -> Blockwise:
        """Fit scales, shrinkages and offsets.

        Parameters
        ----------
        tables : sequence of B array-likes of shape (n, K)
            Log-likelihoods of each block.
        codes : array-like of int of shape (n,)
            True class of each row.
        lengths : sequence of B array-likes of shape (n,) or None, optional
            Number of tokens of each row in each block; None for a block that does not count tokens.
        prior : array-like of shape (K,), optional
            Class prior at which the cross-entropy is minimised, equal for all classes if not given.
        penalty : callable, default=informative_penalty
            Penalty on the parameters (module scale_fit).

        Returns
        -------
        Blockwise
            The calibrator of least penalised cross-entropy.
        """
        checked = [class_scores(table, codes) for table in tables]
        n, K = checked[0][0].shape
        prior = class_prior(prior, K)
        counted = [None if long is None else row_lengths(long, n) for long in lengths or [None] * len(checked)]
        logs = [(None, 0.0, 1.0) if long is None else _centred_logs(long) for long in counted]
        scores, (centred, means, least) = [table for table, _ in checked], zip(*logs)
        fit = fit_scaled_softmax(scores, checked[0][1], prior, centred, penalty)
        return cls(fit.log_scales, fit.shrinkages, np.exp(means), fit.offsets, np.array(least))

    @classmethod
    def constant(cls, scale: float, B: int, offsets: Array) -> Blockwise:
        """Make the calibrator of B blocks that has the same scale for all of them and all rows.

        Parameters
        ----------
        scale : float
            The scale.
        B : int
            Number of blocks.
        offsets : ndarray of shape (K,)
            Offsets in nats.

        Returns
        -------
        Blockwise
            The calibrator.
        """
        return cls(np.full(B, log(scale)), np.zeros(B), np.ones(B), offsets, np.ones(B))

    def with_experts(
        self,
        tables: Sequence[ArrayLike],
        experts: Sequence[ArrayLike],
        codes: ArrayLike,
        lengths: Sequence[ArrayLike | None] | None = None,
        prior: ArrayLike | None = None,
        penalties: Sequence[float] = (3.0,),
    ) -> list[Blockwise]:
        """Fit weights of further parts, offsets, and one factor for the scales of all blocks.

        Parameters
        ----------
        tables : sequence of B array-likes of shape (n, K)
            Log-likelihoods of each block.
        experts : sequence of E array-likes of shape (n, K)
            Evidence of each part.
        codes : array-like of int of shape (n,)
            True class of each row.
        lengths : sequence of B array-likes of shape (n,) or None, optional
            Number of tokens of each row in each block.
        prior : array-like of shape (K,), optional
            Class prior at which the cross-entropy is minimised, equal for all classes if not given.
        penalties : sequence of float, default=(3.0,)
            Penalties on the weights (module scale_fit), decreasing.

        Returns
        -------
        list of Blockwise
            For each penalty, the calibrator of least penalised cross-entropy.
        """
        blocks = replace(self, offsets=np.zeros(len(self.offsets)), weights=np.zeros(0))
        counted = None if lengths is None else [None if n is None else np.maximum(1.0, np.asarray(n)) for n in lengths]
        main, numbers = class_scores(blocks.apply(tables, counted), codes)
        parts = [np.asarray(part, dtype=float) for part in experts]
        fits = fit_weights(main, parts, numbers, class_prior(prior, main.shape[1]), penalties)
        return [
            replace(self, log_scales=self.log_scales + log(fit.main), offsets=fit.offsets, weights=fit.parts)
            for fit in fits
        ]

    def scales(self, lengths: Sequence[ArrayLike | None], n: int) -> Array:
        """Give the scale of each block in rows of these lengths, then the weights of further parts.

        Parameters
        ----------
        lengths : sequence of B array-likes of shape (n,) or None
            Number of tokens of each row in each block.
        n : int
            Number of rows.

        Returns
        -------
        ndarray of shape (B + E, n)
            Scales.
        """
        logs = np.zeros((len(self.log_scales), n))
        for b in np.flatnonzero(self.shrinkages).tolist():
            counted = np.maximum(row_lengths(lengths[b], n), self.shortest[b])
            logs[b] = np.log(counted / self.reference_lengths[b])
        blocks = np.exp(self.log_scales[:, None] - self.shrinkages[:, None] * logs)
        if not len(self.weights):
            return blocks
        return np.concatenate([blocks, np.broadcast_to(np.asarray(self.weights)[:, None], (len(self.weights), n))])

    def apply(self, scores: Sequence[ArrayLike], lengths: Sequence[ArrayLike | None] | None = None) -> Array:
        parts = len(self.log_scales) + len(self.weights)
        if len(scores) != parts:
            raise InputError(f"{len(scores)} blocks of scores for a calibrator of {parts}.")
        tables = [score_table(table) for table in scores]
        scales = self.scales(lengths or [None] * len(tables), len(tables[0]))
        return sum(scale[:, None] * table for scale, table in zip(scales, tables)) + self.offsets

    def __repr__(self) -> str:
        scales = " ".join(f"{scale:.3g}" for scale in np.exp(self.log_scales))
        used = int((np.asarray(self.weights) > 0).sum())
        weights = f", {used} of {len(self.weights)} weights > 0" if len(self.weights) else ""
        return f"Blockwise(scales={scales}{weights}, {len(self.offsets)} offsets)"


@dataclass(frozen=True, eq=False, repr=False)
class PAV(Calibrator):
    """Calibrator by pool-adjacent-violators: the monotone function that fits best, for two classes.

    It is constant in each pool and beyond the outermost scores, and linear between two pools. Between a pool of
    infinite llr and its neighbour it has the value of the finite neighbour, so that evidence is infinite only where
    such scores were seen; between pools of −inf and +inf it is 0.

    Parameters
    ----------
    score : ndarray of shape (2B,)
        Lowest and highest score of each of B pools.
    calibrated : ndarray of shape (2B,)
        The llr of each pool, twice.

    Examples
    --------
    >>> fitted = PAV.fit([-2.2, 0.3, 1.5, 1.5, 4.0], [False, True, False, False, True])
    >>> fitted.apply([-3.0, -1.0, 0.9, 4.0]).round(3).tolist()
    [-inf, -0.288, -0.288, inf]
    >>> fitted
    PAV(3 pools, llr −inf to inf)
    """

    kind: ClassVar[str] = "pav"
    score: Array
    calibrated: Array

    def __post_init__(self) -> None:
        if self.score.shape != self.calibrated.shape or not len(self.score):
            raise InputError(
                f"{len(self.score)} scores and {len(self.calibrated)} calibrated llrs do not make a PAV calibrator."
            )

    @classmethod
    def fit(cls, llr: ArrayLike, is_h1: ArrayLike) -> PAV:
        """Fit by pooling scores.

        Parameters
        ----------
        llr : array-like of shape (n,)
            Scores.
        is_h1 : array-like of bool of shape (n,)
            Whether h1 is true for each row.

        Returns
        -------
        PAV
            The calibrator.
        """
        tally = Tally.of(llr, is_h1)
        edges = tally.pools()
        ends = np.column_stack([edges[:-1], edges[1:] - 1]).ravel()
        return cls(tally.score[ends], np.repeat(pool_llr(tally, edges), 2))

    def apply(self, scores: ArrayLike, lengths: object = None) -> Array:
        given, last = score_column(scores), len(self.score) - 1
        below = np.clip(np.searchsorted(self.score, given, side="right") - 1, 0, last)
        above = np.clip(np.searchsorted(self.score, given, side="left"), 0, last)
        low, high = self.calibrated[below], self.calibrated[above]
        answer = np.where(np.isinf(low), np.where(np.isinf(high), 0.0, high), low)
        between = np.isfinite(low) & np.isfinite(high) & (low != high)
        share = _share(given[between], self.score[below[between]], self.score[above[between]])
        answer[between] = (1 - share) * low[between] + share * high[between]
        return np.where(low == high, low, answer)

    def __repr__(self) -> str:
        ends = f"{self.calibrated[0]:.3g} to {self.calibrated[-1]:.3g}".replace("-", "−")
        return f"PAV({count(len(self.score) // 2, 'pool')}, llr {ends})"


def _share(scores: Array, low: Array, high: Array) -> Array:
    """Position of each score between low (0) and high (1); at the finite end where the other is infinite."""
    below_all, above_all = np.isneginf(low), np.isposinf(high)
    share = np.where(below_all & ~above_all, 1.0, np.where(above_all & ~below_all, 0.0, 0.5))
    way, whole = scores / 2 - low / 2, high / 2 - low / 2  # halves cannot overflow
    return np.divide(way, whole, out=share, where=~below_all & ~above_all & (whole > 0))


KINDS: dict[str, type[Calibrator]] = {cls.kind: cls for cls in (Affine, Offsets, LengthAware, Blockwise, PAV)}


def calibrator_from_dict(values: Mapping[str, Any]) -> Calibrator:
    """Make a calibrator from the values that its `to_dict` gave.

    Parameters
    ----------
    values : mapping
        Kind and parameters.

    Returns
    -------
    Affine, Offsets, LengthAware, Blockwise or PAV
        The calibrator.

    Examples
    --------
    >>> calibrator_from_dict({"kind": "affine", "a": 0.5, "b": 0.0})
    Affine(a=0.5, b=0)
    """
    if values.get("kind") not in KINDS:
        raise InputError(
            f"calibrator kind {values.get('kind')!r} is unknown. It is one of {', '.join(map(repr, KINDS))}."
        )
    return KINDS[values["kind"]].from_dict(values)


def _centred_logs(lengths: Array) -> tuple[Array, float, float]:
    """Return log L − mean (n,), the mean, and the least length that counts, of lengths (n,).

    This is the 1 % quantile of the lengths: too few rows are shorter to determine their scale.
    """
    low = np.quantile(lengths, 0.01, method="lower")
    logs = np.log(np.maximum(lengths, low))
    mean = logs.mean()
    return logs - mean, mean, max(float(low), 1.0)


def _check_scale(scale: float) -> None:
    if not 0 < scale < np.inf:
        raise InputError(f"the scale is {scale!r}. Evidence is scaled by a finite number > 0.")


def _columns(log_likelihood: ArrayLike, offsets: Array) -> Array:
    table = score_table(log_likelihood)
    if table.shape[1] != len(offsets):
        raise InputError(f"{table.shape[1]} columns of log-likelihoods for a calibrator of {len(offsets)} classes.")
    return table
