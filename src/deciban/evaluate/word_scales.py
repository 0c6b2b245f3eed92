"""A calibrator with a scale for every word.

    log f'(x|c) = Σ_b s_b(L_b)·Σ_w u_bw·e_bwc(x) + b_c        e: evidence of word w for class c, u ≥ 0

The scales s and their dependence on lengths are those of `LengthAware` or `Blockwise`, and are held. The factors u of
the words and the offsets b are then fitted to leave-one-out evidence, with the penalty

    λ/2 Σ_w (s̄·u_w − s̄)² + b²/(2·4)                          s̄: root mean square of s over the rows

per fit, not per row: a word that occurs often may have a scale far from the common one. The scale that evidence has
after calibration is s·u, so that λ has the same meaning for collections whose common scales differ (0.04 to 0.6).
Factors are ≥ 0: on left-out evidence a negative one reads off the label, since leaving a document out lowers the counts
of its words in its own class. The objective is convex; it is minimised by L-BFGS with bounds, in coordinates in which
its diagonal curvature is about 1. Rows of classes that have no other row are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from deciban.errors import InputError
from deciban.evaluate.calibration import Blockwise, Calibrator, LengthAware, calibrator_from_dict
from deciban.evaluate.scale_fit import OFFSET_SD
from deciban.evidence.scores import Array, log_probability
from deciban.families.word_scores import source_of
from deciban.text.word_evidence import WordEvidence, WordFactors

PENALTY = 3.0  # λ
MAX_STEPS = 20
MEMORY = 6  # past steps that L-BFGS uses
TOLERANCE = 1e-3  # relative decrease of the objective in the last step
SUFFICIENT = 1e-4  # share of the expected decrease that a step must reach
SHORTEST_STEP = 1e-6


@dataclass(frozen=True, eq=False)
class WordScales(Calibrator):
    """Calibrator with a common scale for each block, and a factor for every word.

    Parameters
    ----------
    common : LengthAware or Blockwise
        Scales that all words of a block share, and the offsets.
    words : tuple of B WordFactors or None
        Factors of the words of each block; None for blocks without words.
    """

    kind: ClassVar[str] = "features"
    common: LengthAware | Blockwise
    words: tuple[WordFactors | None, ...]

    @classmethod
    def fit(
        cls,
        common: LengthAware | Blockwise,
        scales: Array,
        scores: Sequence[Array],
        codes: Array,
        prior: Array,
        penalty: float = PENALTY,
    ) -> WordScales:
        """Fit factors and offsets to scores that have a source (`WordScores`), given the common scales (B, n)."""
        sources = [source_of(score) for score in scores]
        if all(source is None for source in sources):
            raise InputError(
                "calibrate='features' needs a family whose score is a sum over words, each with a probability: "
                "Text() with reading='multinomial' and rule 'mean'. Use calibrate='auto'."
            )
        found = [None if source is None else source.evidence() for source in sources]
        scales = np.broadcast_to(scales, (len(scores), len(codes)))
        problem = Problem.of(found, scales, scores, codes, prior, penalty)
        factors, offsets = problem.minimum(common.offsets)
        words: list[WordFactors | None] = []
        start = 0
        for evidence in found:
            if evidence is None:
                words.append(None)
                continue
            own = factors[start : start + len(evidence.at)]
            words.append(WordFactors.kept(evidence.vocabulary, evidence.at, own))
            start += len(evidence.at)
        return cls(replace(common, offsets=offsets), tuple(words))

    @property
    def offsets(self) -> Array:
        """Offset of each class in nats, shape (K,)."""
        return self.common.offsets

    def rescaled(self, scores: Sequence[Array]) -> list[Array]:
        """Return the scores of each block, with the evidence of each word multiplied by its factor."""
        made = []
        for score, factors in zip(scores, [*self.words, *[None] * (len(scores) - len(self.words))]):
            source = None if factors is None else source_of(score)
            if factors is not None and source is None:
                raise InputError("scores of words cannot be calibrated word by word without the documents.")
            made.append(score if source is None else source.rescaled(factors))
        return made

    def apply(self, scores: Any, lengths: Any = None) -> Array:
        if isinstance(self.common, Blockwise):
            return self.common.apply(self.rescaled(scores), lengths)
        return self.common.apply(self.rescaled([scores])[0], lengths)

    def to_dict(self) -> dict[str, Any]:
        words = [
            None if each is None else {"words": list(each.words), "factors": each.factors.tolist(), "unk": each.unk}
            for each in self.words
        ]
        return {"kind": self.kind, "common": self.common.to_dict(), "words": words}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        words = tuple(
            None if each is None else WordFactors(tuple(each["words"]), np.array(each["factors"]), float(each["unk"]))
            for each in values["words"]
        )
        return cls(calibrator_from_dict(values["common"]), words)  # type: ignore[arg-type]

    def __repr__(self) -> str:
        number = sum(len(each.words) for each in self.words if each is not None)
        return f"WordScales({self.common!r}, factors of {number:,} words)"


@dataclass(frozen=True, eq=False)
class Problem:
    """The data of the objective: n rows, K classes, and U words of all blocks together."""

    evidence: list[tuple[WordEvidence, Array]]  # of each block with words, and the common scale of its rows (n,)
    rest: Array  # (n, K) scaled scores of the other blocks, and the log prior
    codes: Array  # (n,)
    weight: Array  # (n,) 1, or 0 for rows that are left out
    strength: Array  # (U,) λ s̄² of the word's block

    @classmethod
    def of(
        cls,
        found: Sequence[WordEvidence | None],
        scales: Array,
        scores: Sequence[Array],
        codes: Array,
        prior: Array,
        penalty: float,
    ) -> Problem:
        """Collect what does not depend on the factors."""
        n, K = scores[0].shape
        rest = np.repeat(log_probability(prior)[None, :], n, axis=0)
        for score, scale, each in zip(scores, scales, found):
            if each is None:
                rest += scale[:, None] * np.asarray(score)
        usable = (np.bincount(codes, minlength=K)[codes] > 1) & np.isfinite(rest[np.arange(n), codes])
        rest[~usable] = 0.0
        evidence = [(each, scale) for each, scale in zip(found, scales) if each is not None]
        strength = np.concatenate([np.full(len(e.at), penalty * np.mean(scale**2)) for e, scale in evidence])
        return cls(evidence, rest, codes, usable.astype(float), strength)

    def logits(self, factors: Array, offsets: Array) -> Array:
        """Return unnormalised log posteriors, shape (n, K)."""
        total, start = self.rest + offsets, 0
        for each, scale in self.evidence:
            total += scale[:, None] * each.scores(factors[start : start + len(each.at)])
            start += len(each.at)
        return total

    def objective(self, factors: Array, offsets: Array) -> tuple[float, Array, Array]:
        """Return the penalised cross-entropy, and its gradients by factors and offsets."""
        log_p = self._log_posterior(factors, offsets)
        own = np.arange(len(log_p)), self.codes
        loss = -self.weight @ log_p[own]
        residual = np.exp(log_p, out=log_p)
        residual[own] -= 1.0
        residual *= self.weight[:, None]
        by_offset = residual.sum(axis=0) + offsets / OFFSET_SD**2
        by_factor = [each.gradient(scale[:, None] * residual) for each, scale in self.evidence]
        away = factors - 1.0
        pulled = self.strength * away
        loss += (away @ pulled + offsets @ offsets / OFFSET_SD**2) / 2
        return float(loss), np.concatenate(by_factor) + pulled, by_offset

    def _log_posterior(self, factors: Array, offsets: Array) -> Array:
        logits = self.logits(factors, offsets)
        logits -= logits.max(axis=1, keepdims=True)
        return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))

    def curvature(self, factors: Array, offsets: Array) -> tuple[Array, Array]:
        """Return the approximate diagonal of the curvature, by factors and by offsets."""
        p = np.exp(self._log_posterior(factors, offsets))
        spread = self.weight[:, None] * p * (1 - p)
        by_factor = [each.curvature((scale**2)[:, None] * spread) for each, scale in self.evidence]
        return np.concatenate(by_factor) + self.strength, spread.sum(axis=0) + 1 / OFFSET_SD**2

    def minimum(self, offsets: Array) -> tuple[Array, Array]:
        """Return the factors (U,) and offsets (K,) of the minimum; offsets of classes without rows stay."""
        U = len(self.strength)
        ones = np.ones(U)
        unit = 1 / np.sqrt(np.concatenate(self.curvature(ones, offsets)))

        def value(x: Array) -> tuple[float, Array]:
            parameters = x * unit
            loss, by_factor, by_offset = self.objective(parameters[:U], parameters[U:])
            return loss, np.concatenate([by_factor, by_offset]) * unit

        start = np.concatenate([ones, offsets]) / unit
        found = _least(value, start, U) * unit
        factors, made = found[:U], found[U:]
        has_rows = np.bincount(self.codes, self.weight, len(offsets)) > 0
        made = np.where(has_rows, made - made[has_rows].mean(), offsets)
        return np.maximum(factors, 0.0), made


def _least(value: Callable[[Array], tuple[float, Array]], start: Array, U: int) -> Array:
    """Minimise by L-BFGS with the first U numbers ≥ 0; numbers that are 0 and would fall stay there in a step."""
    x, (loss, gradient) = start, value(start)
    memory: list[tuple[Array, Array, float]] = []  # steps, changes of the gradient, and 1 / their product
    for _ in range(MAX_STEPS):
        held = np.zeros(len(x), bool)
        held[:U] = (x[:U] <= 0) & (gradient[:U] > 0)
        direction = -_times_inverse(memory, np.where(held, 0.0, gradient))
        direction[held] = 0.0
        step = 1.0
        while True:
            further = x + step * direction
            np.maximum(further[:U], 0.0, out=further[:U])
            least, slope = value(further)
            expected = gradient @ (further - x)
            if least <= loss + SUFFICIENT * expected or step < SHORTEST_STEP:
                break
            step /= 4
        if not least < loss:
            return x
        moved, turned = further - x, slope - gradient
        product = moved @ turned
        if product > 0:
            memory = [*memory[1 - MEMORY :], (moved, turned, 1 / float(product))]
        gain, x, loss, gradient = loss - least, further, least, slope
        if gain < TOLERANCE * loss:
            return x
    return x


def _times_inverse(memory: Sequence[tuple[Array, Array, float]], gradient: Array) -> Array:
    """Multiply by the inverse curvature that past steps show (two-loop recursion)."""
    left, shares = gradient, []
    for moved, turned, inverse in reversed(memory):
        share = inverse * (moved @ left)
        left = left - share * turned
        shares.append(share)
    if memory:
        moved, turned, inverse = memory[-1]
        left = left / (inverse * (turned @ turned))
    for (moved, turned, inverse), share in zip(memory, reversed(shares)):
        left = left + (share - inverse * (turned @ left)) * moved
    return left
