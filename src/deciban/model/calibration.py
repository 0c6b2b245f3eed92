"""The calibration of a classifier: fitted on leave-one-out scores, and out of date once rows are learnt or unlearnt.

Scores and lengths are given for each of the B blocks of a family: a list of B arrays (n, K), and a list of B arrays
(n,) or None. The scores may be followed by those of the parts of experts, (n, K) each, which have no lengths.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import log
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from deciban.errors import Argument, HyperparameterError, InputError, NotAvailableError, Remedy
from deciban.families.word_scores import plain
from deciban.kernels import row_all
from deciban.read.batches import MOST_ROWS, chosen_rows
from deciban.statistics import Array

if TYPE_CHECKING:
    from deciban.evaluate.calibration import PAV, Affine, Blockwise, LengthAware, Offsets
    from deciban.evaluate.word_scales import WordScales
    from deciban.text.word_evidence import WordFactors

    Linear: TypeAlias = Affine | Offsets | LengthAware | Blockwise

BY_WORD = "features"  # the method by which words have scales of their own
METHODS = ("offsets", "length", "blocks", "features", "affine", "pav")
Form = Literal[
    "prior",
    "none",
    "scale",
    "fitted",
    "few parts",
    "parts",
    "many parts",
    "few words",
    "words",
    "many words",
    "alone",
    "combined",
]
# penalty λ on the scales of words, see word_scales
WORDS: dict[Form, float] = {"few words": 10.0, "words": 3.0, "many words": 1.0}
ROWS_OF_SCALES = MOST_ROWS  # rows to which the scales are fitted that all words of a block share
PARTS: dict[Form, float] = {"few parts": 30.0, "parts": 3.0, "many parts": 0.3}  # penalty λ on weights, see scale_fit
ROWS_PER_BLOCK_SCALE = 1.5  # with fewer rows for each block, blocks share one scale where parts have weights
FIXED: dict[Form, float] = {"none": 1.0, "prior": 2.0**-40}  # scales of the forms that are not fitted

Lengths: TypeAlias = Sequence[Array | None]  # (n,) for each block; None where the block does not count events


@dataclass(frozen=True, eq=False)
class Calibration:
    """A fitted calibrator, its classes, and the number of rows of the model at that time."""

    calibrator: Affine | Offsets | LengthAware | Blockwise | PAV | WordScales
    classes: tuple[Any, ...]
    fitted_on: float  # Σ w of the rows of the model when it was fitted
    form: Form = "fitted"

    @classmethod
    def fit(
        cls,
        method: str,
        scores: Sequence[Array],
        codes: Array,
        lengths: Lengths,
        classes: Sequence[Any],
        rows: float,
        form: Form = "fitted",
        near: Calibration | None = None,
    ) -> Calibration:
        """Fit a calibrator of log-likelihoods to the true classes; the result does not contain a prior.

        With "offsets", "affine" and "pav" all classes have the same weight, so that no prior is favoured. With "length"
        and "blocks" each row has the same weight and the log prior of the rows is subtracted: calibration is then best
        at that prior. Other forms than "fitted": "none" leaves scores as they are, "prior" removes all evidence,
        "scale" has one scale for all blocks, and "few parts", "parts" and "many parts" also have weights for the parts
        of experts. With "features", "scale" has no scales of words; "few words", "words" and "many words" have them,
        under weaker and weaker penalties. The steps towards scales that depend on lengths begin at those of `near`, a
        fit of similar scores.
        """
        from deciban.evaluate.calibration import PAV, Affine, Blockwise, Offsets
        from deciban.evaluate.scale_fit import informative_penalty

        if method not in METHODS:
            raise HyperparameterError(f"calibrate={method!r} is not one of {', '.join(METHODS)}, 'auto' or None.")
        B, K, length = len(lengths), scores[0].shape[1], _total(lengths)
        scores, experts = scores[:B], scores[B:]
        if method in ("affine", "pav") and K != 2:
            raise HyperparameterError(f"calibrate={method!r} is for two classes, not {K}. Use 'offsets'.")
        if method == "length" and length is None:
            raise HyperparameterError("calibrate='length' needs rows with a length, such as counts of words.")
        given = tuple(classes), rows, form
        if method == "features":
            return cls._with_words([form], scores, codes, lengths, classes, rows, near)[form]
        if form != "fitted":
            return cls.fit_each([form], method, [*scores, *experts], codes, lengths, classes, rows)[form]
        whole = total(scores)
        if method == "blocks":
            return cls(Blockwise.fit(scores, codes, lengths, shares(codes, K)), *given)
        if method == "length" and length is not None:
            return cls(_by_length(whole, codes, length, shares(codes, K), near), *given)
        if method == "offsets":
            return cls(Offsets.fit(whole, codes, penalty=informative_penalty), *given)
        with np.errstate(invalid="ignore"):
            llr = np.where(whole[:, 1] == whole[:, 0], 0.0, whole[:, 1] - whole[:, 0])
        return cls((Affine if method == "affine" else PAV).fit(llr, codes == 1), *given)

    @classmethod
    def fit_each(
        cls,
        forms: Sequence[Form],
        method: str,
        scores: Sequence[Array],
        codes: Array,
        lengths: Lengths,
        classes: Sequence[Any],
        rows: float,
        alone: Sequence[Sequence[int]] = (),
    ) -> dict[Any, Calibration]:
        """Fit calibrations of several forms, which share work.

        For each of the sets `alone` of blocks and parts of experts, there is also one with one scale and offsets for
        the set, and none for the others, by the key (set, True); and one with the set as it is, by (set, False).
        """
        from deciban.evaluate.calibration import Blockwise, Offsets
        from deciban.evaluate.scale_fit import informative_penalty

        if method == "features":
            return cls._with_words(forms, scores[: len(lengths)], codes, lengths, classes, rows)
        B, K, prior, given = len(lengths), scores[0].shape[1], shares(codes, scores[0].shape[1]), (tuple(classes), rows)
        found: dict[Any, Calibration] = {}
        if "fitted" in forms:
            found["fitted"] = cls.fit(method, scores, codes, lengths, classes, rows)
        some = [form for form in forms if form in PARTS]
        # with few rows, a scale of its own is not determined for each block
        few = len(codes) < ROWS_PER_BLOCK_SCALE * B and all(each is None for each in lengths)
        sets: dict[Any, Sequence[int]] = {"scale": range(B)} if "scale" in forms or (some and few) else {}
        sets |= {tuple(parts): parts for parts in alone}
        sums = [total([scores[at] for at in parts]) for parts in sets.values()]
        ones = dict(zip(sets, Offsets.fit_each(sums, codes, prior, informative_penalty)))
        common = Blockwise.constant(ones["scale"].scale, B, ones["scale"].offsets) if "scale" in ones else None
        if common is not None and "scale" in forms:
            found["scale"] = cls(common, *given, "scale")
        if some:
            every = list(PARTS)[: 1 + max(list(PARTS).index(form) for form in some)]
            fitted = found["fitted"].calibrator if method == "blocks" and "fitted" in found else None
            blocks: Any = common if few else fitted
            blocks = Blockwise.fit(scores[:B], codes, lengths, prior) if blocks is None else blocks
            penalties = [PARTS[form] for form in every]
            fits = blocks.with_experts(scores[:B], scores[B:], codes, lengths, prior, penalties)
            found |= {form: cls(fit, *given, form) for form, fit in zip(every, fits)}
        fixed = [form for form in forms if form in FIXED]
        if method == "blocks":
            found |= {form: cls(Blockwise.constant(FIXED[form], B, np.zeros(K)), *given, form) for form in fixed}
        else:
            found |= {form: cls(_fixed(method, FIXED[form], B, K), *given, form) for form in fixed}
        beside: dict[Any, Calibration] = {}
        every_part, none = np.arange(len(scores)), np.zeros(K)
        for parts in map(tuple, alone):
            for one in (ones[parts], None):
                scales = np.where(np.isin(every_part, parts), 1.0 if one is None else one.scale, 0.0)
                logs, offsets = np.log(np.maximum(scales[:B], FIXED["prior"])), none if one is None else one.offsets
                made = Blockwise(logs, np.zeros(B), np.ones(B), offsets, np.ones(B), scales[B:])
                beside[parts, one is not None] = cls(made, *given, "alone")
        return {form: found[form] for form in forms} | beside

    @classmethod
    def _with_words(
        cls,
        forms: Sequence[Form],
        scores: Sequence[Array],
        codes: Array,
        lengths: Lengths,
        classes: Sequence[Any],
        rows: float,
        near: Calibration | None = None,
    ) -> dict[Form, Calibration]:
        """Fit scales for each block, which all forms share, and factors of words for those that have them."""
        from deciban.evaluate.word_scales import PENALTY, WordScales

        method = "length" if len(lengths) == 1 and lengths[0] is not None else "blocks"
        given, K = (tuple(classes), rows), scores[0].shape[1]
        made: dict[Form, Any] = {form: _fixed(method, FIXED[form], len(lengths), K) for form in forms if form in FIXED}
        if len(made) < len(forms):
            few = chosen_rows(len(codes), ROWS_OF_SCALES)
            some = [plain(each)[few] for each in scores], codes[few], [None if n is None else n[few] for n in lengths]
            if method == "length":
                whole, own, (long,) = some
                common = cls(_by_length(total(whole), own, np.asarray(long), shares(own, K), near), *given)
            else:
                common = cls.fit(method, *some, classes, rows)
            words = [form for form in forms if form not in FIXED and form != "scale"]
            made["scale"] = common.calibrator
            if words:
                penalties = [WORDS.get(form, PENALTY) for form in words]
                scales, linear = common.scales(lengths, len(codes)), made["scale"]
                made |= zip(words, WordScales.fit_each(linear, scales, scores, codes, shares(codes, K), penalties))
        return {form: cls(made[form], *given, form) for form in forms}

    @classmethod
    def combined(cls, each: Sequence[Calibration], weights: Array, E: int) -> Calibration:
        """Return the calibration whose scores are weighted sums of those of others, of blocks without lengths.

        Each of them is linear in the scores of blocks and of E parts of experts, and so is their weighted sum.
        """
        from deciban.evaluate.calibration import Blockwise

        made: list[Any] = [one.calibrator for one in each]
        scales = sum(w * np.exp(one.log_scales) for w, one in zip(weights, made))
        offsets = sum(w * one.offsets for w, one in zip(weights, made))
        parts = sum((w * one.weights for w, one in zip(weights, made) if len(one.weights)), start=np.zeros(E))
        blocks = Blockwise.constant(1.0, len(made[0].log_scales), np.asarray(offsets))
        logs = np.log(np.maximum(scales, FIXED["prior"]))
        return cls(replace(blocks, log_scales=logs, weights=parts), each[0].classes, each[0].fitted_on, "combined")

    @property
    def method(self) -> str:
        """The method that it was fitted by."""
        return {"length-aware": "length", "blockwise": "blocks"}.get(self.calibrator.kind, self.calibrator.kind)

    def apply(self, scores: Sequence[Array], lengths: Lengths, classes: Sequence[Any]) -> Array:
        """Return calibrated log-likelihoods, shape (n, K); classes that are newer than the fit have offset 0."""
        return self.apply_rescaled(self.rescaled(scores), lengths, classes)

    @staticmethod
    def apply_each(
        each: Mapping[Any, Calibration], scores: Sequence[Array], lengths: Lengths, classes: Sequence[Any]
    ) -> dict[Any, Array]:
        """Do what `apply` does, for several calibrations of the same scores."""
        from deciban.evaluate.calibration import Blockwise

        made: list[Any] = [one.calibrator for one in each.values()]
        whole = total(scores[: len(lengths)])
        same = all(isinstance(one, Blockwise) and not one.shrinkages.any() for one in made)
        known = all(one.classes == tuple(classes) for one in each.values())
        if not (same and known) or row_all(whole == whole[:, :1]).any() or not np.isfinite(whole).all():
            return {name: one.apply(scores, lengths, classes) for name, one in each.items()}
        factors = np.zeros((len(made), len(scores)))  # rows with evidence, all factors the same in all rows
        for row, one in zip(factors, made):
            row[: len(lengths)] = np.exp(one.log_scales)
            row[len(lengths) : len(lengths) + len(one.weights)] = one.weights
        used = np.flatnonzero(factors.any(axis=0)).tolist()
        sums = factors[:, used] @ np.stack([np.ravel(scores[at]) for at in used])
        offsets = np.stack([one.offsets for one in made])
        return dict(zip(each, sums.reshape(len(made), *whole.shape) + offsets[:, None]))

    def apply_rescaled(self, scores: Sequence[Array], lengths: Lengths, classes: Sequence[Any]) -> Array:
        """Do what `apply` does, for scores that have the factors of words already."""
        from deciban.evaluate.calibration import PAV, Affine

        whole = total(scores[: len(lengths)])
        if isinstance(self.calibrator, (Affine, PAV)):
            self._refuse_others(classes)
            silent = whole[:, 1] == whole[:, 0]
            with np.errstate(invalid="ignore"):  # both may be −inf
                llr = self.calibrator.apply(np.where(silent, 0.0, whole[:, 1] - whole[:, 0]))
            llr[silent] = 0.0  # rows without evidence get none from the calibration
            return np.column_stack([np.where(llr == np.inf, -np.inf, 0.0), np.where(llr == np.inf, 0.0, llr)])
        scales = self.scales(lengths, len(whole))
        parts = np.flatnonzero(scales.any(axis=1)).tolist()
        if parts and parts[-1] >= len(scores):  # a file that was changed
            raise InputError(
                f"the calibration scales part {parts[-1]}, and the model has {len(scores)}.",
                remedy=Remedy("Calibrate again: ", Argument("refit", python="recalibrate(X, y)"), "."),
            )
        # rows without evidence, from blocks or from parts that are used, get none from the offsets
        silent = row_all(whole == whole[:, :1])
        beside = [scores[part] for part in parts if part >= len(lengths)]
        if beside and silent.any():
            silent &= np.logical_and.reduce([row_all(each == each[:, :1]) for each in beside])
        offsets = np.where(silent[:, None], 0.0, self.offsets(classes))
        if len(scales) == 1:
            return scales[0][:, None] * whole + offsets
        used = [scales[part][:, None] * scores[part] for part in parts]
        return total(used) + offsets

    @property
    def uses_experts(self) -> bool:
        """Whether a part of an expert has a weight above 0."""
        from deciban.evaluate.calibration import Blockwise

        return isinstance(self.calibrator, Blockwise) and bool((self.calibrator.weights > 0).any())

    def rescaled(self, scores: Sequence[Array]) -> Sequence[Array]:
        """Return the scores of each block with the factors of words, where the calibrator has them."""
        return self.calibrator.rescaled(scores) if self._words is not None else scores  # type: ignore[union-attr]

    @property
    def by_word(self) -> bool:
        """Whether words have factors of their own."""
        return self._words is not None

    def word_factors(self, block: int) -> WordFactors | None:
        """Return the factors of the words of a block; None where the calibrator has none."""
        return None if self._words is None or block >= len(self._words) else self._words[block]

    def factors_of(self, block: int, words: Sequence[str]) -> Array:
        """Return the factors of named words of a block, shape (P,)."""
        factors = self.word_factors(block)
        return np.ones(len(words)) if factors is None else factors.of_words(words)

    @property
    def _words(self) -> tuple[WordFactors | None, ...] | None:
        return getattr(self.calibrator, "words", None)

    @property
    def common(self) -> Linear | PAV:
        """The calibrator without the factors of words."""
        made: Any = self.calibrator
        return getattr(made, "common", made)

    def scales(self, lengths: Lengths, n: int) -> Array:
        """Return the factor of each part in each row, shape (B + E, n), or (1, n) if all blocks have the same."""
        from deciban.evaluate.calibration import PAV, Blockwise, LengthAware, Offsets

        made = self.common
        if isinstance(made, Blockwise):
            return made.scales([None if each is None else np.maximum(1.0, each) for each in lengths], n)
        if isinstance(made, LengthAware):
            whole = _total(lengths)
            return (made.scale(None) if whole is None else made.scale_of(np.maximum(1.0, whole)))[None, :]
        if isinstance(made, PAV):
            raise NotAvailableError("a PAV calibration has no scale: it is a step function of the llr. Use 'affine'.")
        return np.full((1, n), made.scale if isinstance(made, Offsets) else made.a)

    def offsets(self, classes: Sequence[Any] | Array) -> Array:
        """Return what is added to the log-likelihood of each class, shape (K,)."""
        from deciban.evaluate.calibration import PAV, Affine

        if isinstance(self.calibrator, (Affine, PAV)):
            raise NotAvailableError("an affine or PAV calibration maps llrs and has no offset for each class.")
        own = dict(zip(self.classes, self.calibrator.offsets))
        return np.array([own.get(name, 0.0) for name in classes])

    def state(self, rows: float) -> str:
        """Describe whether the calibration is up to date; `rows` is the number of rows of the model now."""
        if rows == self.fitted_on:
            return f"fitted on {self.fitted_on:,.0f} rows"
        return f"out of date: fitted on {self.fitted_on:,.0f} rows, the model now has {rows:,.0f}"

    def agrees(self, other: Calibration | None) -> bool:
        """Whether another calibration has the same classes and parameters."""
        if other is None or self.classes != other.classes:
            return False
        return self.calibrator.to_dict() == other.calibrator.to_dict()

    def _refuse_others(self, classes: Sequence[Any]) -> None:
        if tuple(classes) != self.classes:
            raise InputError(
                f"the calibration is for the classes {list(self.classes)}, and the model now has {list(classes)}.",
                remedy=Remedy("Calibrate again: ", Argument("refit", python="recalibrate(X, y)"), "."),
            )


def _by_length(scores: Array, codes: Array, lengths: Array, prior: Array, near: Calibration | None) -> LengthAware:
    """Fit a scale that depends on lengths, in steps that begin at those of `near`, where it has such a scale."""
    from deciban.evaluate.calibration import LengthAware

    counted, start = np.maximum(1.0, lengths), None if near is None else near.common
    if isinstance(start, LengthAware):
        return LengthAware.fit_from(scores, codes, counted, prior, start)
    return LengthAware.fit(scores, codes, counted, prior)


def _fixed(method: str, scale: float, B: int, K: int, offsets: Array | None = None) -> Linear:
    """Return the calibrator of a method that has the same scale for all blocks and rows."""
    from deciban.evaluate.calibration import Affine, Blockwise, LengthAware, Offsets

    offsets = np.zeros(K) if offsets is None else offsets
    if method == "affine":
        return Affine(scale, 0.0)
    if method == "offsets":
        return Offsets(scale, offsets)
    if method == "length":
        return LengthAware(log(scale), 0.0, 1.0, offsets)
    return Blockwise.constant(scale, B, offsets)


def shares(codes: Array, K: int) -> Array:
    """Return the share of each class in the rows, shape (K,)."""
    return np.bincount(codes, minlength=K) / len(codes)


def total(scores: Sequence[Array]) -> Array:
    """Return the sum of scores over blocks, shape (n, K)."""
    arrays = [each if type(each) is np.ndarray else plain(each) for each in scores]
    return arrays[0] if len(arrays) == 1 else np.asarray(np.sum(arrays, axis=0))


def _total(lengths: Lengths) -> Array | None:
    known = [each for each in lengths if each is not None]
    return np.sum(known, axis=0) if known else None
