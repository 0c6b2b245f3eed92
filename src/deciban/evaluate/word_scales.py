"""A calibrator with a scale for every word.

    log f'(x|c) = Σ_b s_b(L_b)·Σ_w u_bw·e_bwc(x) + b_c        e: evidence of word w for class c, u ≥ 0

The scales s and their dependence on lengths are those of `LengthAware` or `Blockwise`, and are held. The factors u of
the words and the offsets b are then fitted to leave-one-out evidence, with the penalty

    λ/2 Σ_w (s̄·u_w − s̄)² + b²/(2·4)                          s̄: root mean square of s over the rows

per fit, not per row: a word that occurs often may have a scale far from the common one. The scale that evidence has
after calibration is s·u, so that λ has the same meaning for collections whose common scales differ (0.04 to 0.6).
Factors are ≥ 0: on left-out evidence a negative one would reveal the label, because leaving a document out lowers the
counts of its words in its own class. Rows of classes that have no other row are left out. The fit is in
`text/word_evidence.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from deciban.errors import InputError
from deciban.evaluate.calibration import Blockwise, Calibrator, LengthAware, calibrator_from_dict
from deciban.evaluate.scale_fit import OFFSET_SD
from deciban.evidence.scores import Array, log_probability
from deciban.families.word_scores import rescaled_by, source_of
from deciban.text.word_evidence import FactorProblem, WordFactors

PENALTY = 3.0  # λ


@dataclass(frozen=True, eq=False)
class WordScales(Calibrator):
    """Calibrator with a common scale for each block, and a factor for every word.

    Parameters
    ----------
    common : LengthAware or Blockwise
        Scales that all words of a block share, and the offsets.
    words : tuple of B WordFactors or None
        Factors of the words of each block; None for blocks without words. In folds, they may be `ColumnFactors`.
    """

    kind: ClassVar[str] = "features"
    common: LengthAware | Blockwise
    words: tuple[WordFactors | None, ...]

    @classmethod
    def fit_each(
        cls,
        common: LengthAware | Blockwise,
        scales: Array,
        scores: Sequence[Array],
        codes: Array,
        prior: Array,
        penalties: Sequence[float] = (PENALTY,),
    ) -> list[WordScales]:
        """Fit factors and offsets under each penalty.

        The scores have a source (`WordScores`); the common scales (B, n) are given.
        """
        sources = [source_of(score) for score in scores]
        if all(source is None for source in sources):
            raise InputError(
                "calibrate='features' needs a family whose score is a sum over words, each with a probability: "
                "Text() with reading='multinomial' and rule 'mean'. Use calibrate='auto'."
            )
        found = [None if source is None else source.evidence() for source in sources]
        scales = np.broadcast_to(scales, (len(scores), len(codes)))
        problem = FactorProblem.of(found, scales, scores, codes, log_probability(prior), 1.0, OFFSET_SD)
        fits = problem.fits(common.offsets, penalties)
        return [cls(replace(common, offsets=offsets), words) for words, offsets in fits]  # type: ignore[arg-type]

    @property
    def offsets(self) -> Array:
        """Offset of each class in nats, shape (K,)."""
        return self.common.offsets

    def rescaled(self, scores: Sequence[Array]) -> list[Array]:
        """Return the scores of each block, with the evidence of each word multiplied by its factor."""
        made = []
        for score, factors in zip(scores, [*self.words, *[None] * (len(scores) - len(self.words))]):
            made.append(score if factors is None else rescaled_by(source_of(score), factors))
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
