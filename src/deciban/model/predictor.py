"""Scores of rows: a model together with its density."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from deciban.errors import Argument, InputError, Remedy
from deciban.evidence.decisions import resolve_prior
from deciban.evidence.scores import log_posterior, log_probability
from deciban.families.abilities import Counts, HasCandidates, HasContrast, ability
from deciban.families.product import Key, blocks_of, expert_columns, expert_scores
from deciban.families.protocol import Density, Family, Rows
from deciban.families.word_scores import HasTable, HasWords, WordScores, rescaled
from deciban.kernels import all_finite
from deciban.kernels.parallel import each
from deciban.model.calibration import Calibration, total
from deciban.model.model import Lesson, Model, Prequential, label_array
from deciban.read.arrays import run_of_rows
from deciban.read.batches import Rows as GivenRows
from deciban.read.codes import encode_labels
from deciban.statistics import Array

PART_SCORES = 2**23  # scores of experts that are computed at a time
LEAST_BLOCKS, LEAST_ROWS = 3, 8_192  # blocks and rows from which on the blocks are scored in several threads


@dataclass(eq=False)
class Predictor:
    """A model and its density, which is estimated when it is first needed.

    A classifier replaces one predictor by the next in a single assignment, so that readers in other threads always see
    a model with its own density.

    Parameters
    ----------
    model : Model
        The model.
    known : Density, optional
        The density of the model, where it is known already.
    check : callable, optional
        Checks the numbers of a model that came from a file; called once, before the density is estimated.
    learnt : Rows, optional
        The rows that a fit in memory has learnt, or a sample of them; not written to files, and not kept once the model
        changes.
    """

    model: Model
    known: Density | None = None
    check: Callable[[Model], Density] | None = None
    learnt: GivenRows | None = None

    def next(self, model: Model) -> Predictor:
        """Return the predictor of another model, with the checks that are still to be made."""
        return Predictor(model, check=self.check)

    @property
    def density(self) -> Density:
        """The densities of all classes under the model's rule."""
        if self.known is None:
            self.verify()
            self.known = self.model.density()
        return self.known

    @cached_property
    def labels(self) -> Array:
        """The class labels as an array, shape (K,)."""
        return label_array(self.model.classes)

    @cached_property
    def learnt_log_prior(self) -> Array:
        """Logarithms of the learnt proportions of the classes, shape (K,); not to be changed."""
        return log_probability(resolve_prior("learnt", self.labels, self.model.stats.rows))

    def verify(self) -> None:
        """Check the numbers of a model that came from a file, if that was not done yet."""
        check = self.check
        if check is not None:
            self.known = check(self.model)
            self.check = None  # set last: another thread must not use numbers that are not checked yet

    def complete(self) -> None:
        """Compute tables that answers about many rows need, if that was not done yet."""
        for _ in self.table_steps():
            pass

    def table_steps(self) -> Iterator[None]:
        """Compute tables that answers about many rows need, if that was not done yet, in steps of a few milliseconds.

        If the iteration is not finished, the next one begins again.
        """
        for density in self._with_tables():
            yield from density.table_steps()

    def lesson_steps(self) -> Iterator[None]:
        """Compute tables that later models share, if that was not done yet, in steps of a few milliseconds."""
        for density in self._with_tables():
            yield from density.lesson_steps()

    def _with_tables(self) -> list[HasTable]:
        found = [ability(density, HasTable) for _, density in blocks_of(self.model.family, self.density)]
        return [density for density in found if density is not None]

    # -- scores ----------------------------------------------------------------------------------------------------
    def block_scores(
        self, rows: Rows, density: Density | None = None, experts: bool = True, contrast: bool = False
    ) -> list[Array]:
        """Return the log densities of each block, then the parts of the experts if asked for, shape (n, K) each.

        A bad value in the rows is reported. Experts have the density of the model, also where `density` is a draw from
        the posterior. With `contrast`, terms that all classes share may be left out.
        """
        pairs = blocks_of(self.model.family, self.density if density is None else density, rows)
        scores = self._reported(lambda pair: with_source(pair[1], pair[2], contrast), pairs, rows)
        if not experts:
            return scores
        held = density is not None and getattr(density, "experts", None)
        return scores + expert_scores(self.model.family, density if held else self.density, rows)  # type: ignore[arg-type]

    def scores(self, rows: Rows, raw: bool = False, contrast: bool = False) -> Array:
        """Return calibrated log-likelihoods without those of `log_base`, shape (n, K).

        With `contrast`, other terms that all classes share may be left out, too: only differences between classes have
        a meaning then.
        """
        calibration = None if raw else self.model.calibration
        if calibration is not None and calibration.by_word:
            blocks = self._rescaled_blocks(calibration, rows, contrast)
            return calibration.apply_rescaled(blocks, block_lengths(self.model.family, rows), self.model.classes)
        if not rows.shape[0]:
            return np.zeros((0, len(self.model.classes)))
        if calibration is None or not calibration.uses_experts:
            return self.calibrated(self.block_scores(rows, experts=False, contrast=contrast), rows, raw)
        step = max(1, PART_SCORES // (len(self.model.classes) * len(self.weighted_parts())))
        runs = (run_of_rows(rows, start, start + step) for start in range(0, rows.shape[0], step))
        return np.concatenate([self.calibrated(self.block_scores(run), run) for run in runs])

    def _rescaled_blocks(self, calibration: Calibration, rows: Rows, contrast: bool) -> list[Array]:
        """Return the log densities of each block, with the factors of its words: each document is read once."""
        pairs = blocks_of(self.model.family, self.density, rows)
        parts = [(*pair[:-1], calibration.word_factors(at), pair[-1]) for at, pair in enumerate(pairs)]

        def score(part: tuple[Any, ...]) -> Array:
            _, density, factors, own = part
            return with_source(density, own, contrast) if factors is None else rescaled(density, own, factors)

        return self._reported(score, parts, rows)

    def _reported(self, act: Callable[[tuple[Any, ...]], Array], parts: Sequence[Any], rows: Rows) -> list[Array]:
        """Return the scores of each block; a bad value in the rows is reported."""
        with np.errstate(invalid="ignore", over="ignore"):
            scores = by_block(act, parts)
            finite = all(all_finite(part) for part in scores)
        if not finite:
            self.model.family.check(rows, self.model.reader.labels)
        return scores

    def weighted_parts(self) -> list[tuple[Family[Any], Key]]:
        """Return family and columns of each part of the experts, for which the calibration has weights."""
        parts = expert_columns(self.model.family)
        if len(parts) != len(getattr(self.model.calibration.calibrator, "weights", ())):  # type: ignore[union-attr]
            raise InputError(
                "the calibration has weights of experts that the model does not have.",
                remedy=Remedy("Calibrate again: ", Argument("refit", python="recalibrate(X, y)"), "."),
            )
        return parts

    def log_likelihood(self, rows: Rows, raw: bool = False) -> Array:
        """Return calibrated log-likelihoods with every constant, shape (n, K)."""
        return self.scores(rows, raw) + np.reshape(self.density.log_base(rows), (-1, 1))

    def calibrated(self, scores: list[Array], rows: Rows, raw: bool = False) -> Array:
        """Add the scores of the blocks and the parts of the experts, calibrated; the blocks alone if `raw`."""
        model = self.model
        if raw or model.calibration is None:
            return total(scores[: len(blocks_of(model.family))])
        return model.calibration.apply(scores, block_lengths(model.family, rows), model.classes)

    @property
    def scores_batches_first(self) -> bool:
        """Whether batches are scored before they are learnt: only by models of text that have rows already."""
        return self.model.weight > 0 and any(
            ability(part, HasCandidates) is not None for (part,) in blocks_of(self.model.family)
        )

    def prequential(self, lesson: Lesson, log_prior: Array) -> Prequential:
        """Return the running log loss with a batch that is not learnt yet."""
        model = self.model
        log_p = log_posterior(self.scores(lesson.rows), log_prior)
        names, codes = encode_labels(lesson.batch.labels, len(log_p))
        known = {name: at for at, name in enumerate(model.classes)}
        place = np.array([known.get(name, -1) for name in names], dtype=np.intp)[codes]
        own = np.where(place < 0, np.nan, log_p[np.arange(len(place)), place])
        return (model.prequential or Prequential()).add(own, lesson.batch.weight)


def by_block(act: Callable[[tuple[Any, ...]], Array], blocks: Sequence[tuple[Any, ...]]) -> list[Array]:
    """Return act(block) of each block (family, density or other values, rows), in threads if there are many rows.

    Words are counted in threads of their own, so that a block of text stays in the caller's.
    """
    n = blocks[0][-1].shape[0]
    alone = len(blocks) < LEAST_BLOCKS or n < LEAST_ROWS or any(ability(part, Counts) for part, *_ in blocks)
    return [act(block) for block in blocks] if alone else each(act, blocks, blas=True)


def with_source(density: Density, rows: Rows, contrast: bool = False) -> Array:
    """Return the log densities of rows, shape (n, K), with their source where they are sums over words."""
    short = ability(density, HasContrast) if contrast else None
    scores, words = density.log_density(rows) if short is None else short.contrast(rows), ability(density, HasWords)
    return scores if words is None else WordScores.of(scores, words.word_source(rows))


def block_lengths(family: Family[Any], rows: Rows) -> list[Array | None]:
    """Return the lengths of each block's rows, shape (n,); None where the block does not count events."""
    lengths: list[Array | None] = []
    for part, encoded in blocks_of(family, rows):
        counts = ability(part, Counts)
        lengths.append(None if counts is None else counts.lengths(encoded))
    return lengths
