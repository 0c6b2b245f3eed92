"""Unlabelled rows join labelled ones in one EM loop.

    E   γ_nc ∝ P(c) f(x_n|c) for rows without a label; a row with a label keeps it
    M   the family's `estimate` on  Σ over labelled rows  +  λ · Σ over unlabelled rows, shared out by γ

To the loop the classes are the components of a mixture: the unlabelled rows' sums come from the same E-step. λ is what
one unlabelled row weighs against a labelled one. The objective, Σ log P(y)f(x|y) + λ Σ log Σ_c P(c)f(x|c), and the log
prior under `map`, never falls under `ml` and `map`; under `mean` the loop stops when it no longer moves.

Reference: Nigam, McCallum, Thrun & Mitchell, Text classification from labeled and unlabeled documents using EM, 2000.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from deciban.errors import DecibanError
from deciban.families.protocol import Rule
from deciban.kernels.choice import one_thread
from deciban.latent import em
from deciban.latent.components import MixtureDensity
from deciban.latent.expectation import WeightedRows
from deciban.statistics import Array, Members


class Labelling(NamedTuple):
    """Where the loop stands: the classes' densities, their prior, and the sums both were read from."""

    density: Any
    log_prior: Array  # (K,)
    counts: Array  # (K,) Σ w, unlabelled rows by their shares
    sums: Any


@dataclass(frozen=True, eq=False)
class PartlyLabelled:
    """Labelled and unlabelled rows, and the family that is to explain both."""

    family: Any  # its choices frozen on the labelled rows
    X: Any  # with labels
    members: Members
    unlabelled: WeightedRows
    rule: Rule
    prior: Array | None = None  # (K,) where it is given and not learnt

    @cached_property
    def labelled(self) -> Any:
        """The sums of the labelled rows, which no guess changes."""
        return self.family.collect(self.X, self.members)

    def run(
        self, factor: float, max_iter: int, tol: float, label: str | None = None, warn: bool = True
    ) -> tuple[Labelling, em.Trace]:
        """EM with unlabelled rows weighing `factor`, from what the labelled rows say alone."""
        start = self.read(self.labelled, self.members.weights())
        if factor == 0 or not len(self.unlabelled):
            return start, em.Trace([], True)
        weight = float(self.members.weights().sum()) + factor * self.unlabelled.total_weight
        with one_thread(0):
            return em.run(
                lambda guess: self.step(guess, factor),
                start,
                weight,
                max_iter,
                tol,
                warn,
                monotone=self.rule in ("ml", "map"),
                label=label,
            )

    def step(self, guess: Labelling, factor: float) -> tuple[Labelling, float]:
        """One EM step, and the objective of the guess it started from."""
        mixture = MixtureDensity(guess.log_prior, guess.density)
        found, total = self.unlabelled.expect(mixture, self.members.classes)
        if found is None:
            raise DecibanError(
                "no class explains some of the unlabelled rows at all. Use rule 'mean', whose prior leaves everything "
                "possible, or drop these rows."
            )
        objective = factor * total + self._of_labels(guess)
        if self.rule == "map":
            objective += self.family.log_prior(guess.density)
        counts = self.members.weights() + factor * found.counts
        return self.read(self.labelled + found.components * factor, counts), objective

    def read(self, sums: Any, counts: Array) -> Labelling:
        """Densities and prior from sums."""
        prior = counts / counts.sum() if self.prior is None else self.prior
        with np.errstate(divide="ignore"):
            return Labelling(self.family.estimate(sums, self.rule), np.log(prior), counts, sums)

    def _of_labels(self, guess: Labelling) -> float:
        """Σ w log P(y) f(x|y) of the labelled rows."""
        own, w = self.members.codes, self.members.row_weights()
        scores = guess.density.log_density(self.X)[np.arange(len(own)), own] + guess.density.log_base(self.X)
        return float(w @ (scores + guess.log_prior[own]))

    def judge(self, guess: Labelling) -> tuple[float, float]:
        """Error rate and log loss of the labelled rows, each left out of the sums; shares of the others stay."""
        scores = self.family.leave_one_out(guess.sums, self.X, self.members, self.rule)
        own, w = self.members.codes, self.members.row_weights()
        left = np.repeat(guess.counts[None, :], len(own), axis=0)
        at = np.arange(len(own)), own
        left[at] = np.maximum(left[at] - w, 0.0)
        with np.errstate(divide="ignore"):
            joint = scores + (np.log(left / left.sum(axis=1, keepdims=True)) if self.prior is None else guess.log_prior)
        top = joint.max(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            loss = top + np.log(np.exp(joint - top[:, None]).sum(axis=1)) - joint[at]
        loss = np.where(np.isfinite(loss), loss, 1e6)
        return float(np.average(joint.argmax(axis=1) != own, weights=w)), float(np.average(loss, weights=w))
