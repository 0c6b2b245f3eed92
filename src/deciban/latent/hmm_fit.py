"""Baum and Welch: EM for hidden Markov models, and where it starts from.

Under `ml` the objective is the log-likelihood, under `map` the log prior is added; neither ever falls. EM finds a
nearby maximum only, so several short runs on the first rows compete: each starts from emissions learnt from windows of
consecutive rows (neighbours may share a state) and from random transitions that prefer to stay, or do not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from deciban.errors import InputError
from deciban.families.fitted import collect_checked
from deciban.families.protocol import Rule
from deciban.latent import em
from deciban.latent.hmm import HMM, HMMDensity, HMMStats
from deciban.latent.hmm_passes import Passes
from deciban.latent.hmm_rows import Rows
from deciban.statistics import Array, Axis

HEAD = 65_536  # rows from which choices are taken, and on which starts compete
SHORT = 15  # iterations of a competing start
# in turn: rows that a state's first emissions are learnt from, and how much it prefers to stay
KINDS = ((1, 0.5), (1, 0.0), (8, 0.8), (1, 0.2), (32, 0.5), (4, 0.0))
EMPHASIS = 4.0  # of those rows against the prior, so that states differ from the start


class Guess(NamedTuple):
    """Where EM stands: the sums of the last E-step, and the density estimated from them."""

    stats: Any
    density: HMMDensity


@dataclass(frozen=True, eq=False)
class Task:
    """One model to be fitted to one set of sequences."""

    model: HMM
    rows: Rows
    states: Axis
    rule: Rule  # "ml" or "map"
    max_iter: int = 200
    threads: int = 1

    def step(self, guess: Guess) -> tuple[Guess, float]:
        """One EM step, and the objective of the density it started from."""
        passes = Passes(guess.density, self.rows, self.max_iter, self.threads)
        stats, objective = passes.expected(self.states)
        if self.rule == "map":
            objective += self.model.log_prior(guess.density)
        return Guess(stats, self.model.estimate(stats, self.rule)), objective

    @property
    def weight(self) -> float:
        """How many rows there are, weighed: gains are judged by the row."""
        return float(self.rows.sequences.weight @ self.rows.sequences.lengths)

    def run(self, start: Any, n_starts: int, tol: float, rng: np.random.Generator) -> tuple[Guess, em.Trace]:
        """EM from a given density or responsibilities (n, S), or from the best of several short runs."""
        reached: list[float] = []
        if isinstance(start, HMMDensity):
            first = Guess(None, start)
        elif start is not None:
            first = self.shared(np.asarray(start, dtype=float))
        elif self.rows.states is not None:
            first = self.labelled()
        else:
            first, reached = self.best_start(n_starts, rng)
        last, trace = em.run(self.step, first, self.weight, self.max_iter, tol, label="EM")
        trace.starts = reached
        return last, trace

    # -- where EM starts from ------------------------------------------------------------------------------------------
    def shared(self, shares: Array) -> Guess:
        """From responsibilities: as if steps were independent of each other."""
        S, sequences = self.states.size, self.rows.sequences
        if shares.shape != (self.rows.n, S) or not np.allclose(shares.sum(axis=1), 1.0) or shares.min() < 0:
            raise InputError(
                f"start has shape {shares.shape}; responsibilities are {(self.rows.n, S)}, ≥ 0, and each row sums to 1."
            )
        weight = np.repeat(sequences.weight, sequences.lengths)[:, None]
        follows = np.setdiff1d(np.arange(1, self.rows.n), sequences.begins)
        emissions = self.rows.collect(shares * weight, self.states, 0, self.rows.n)
        stats = HMMStats(
            {"class": self.states, "next": self.states},
            (shares * weight)[sequences.begins].sum(axis=0),
            (shares * weight)[follows - 1].T @ shares[follows],
            (shares * weight).sum(axis=0),
            emissions,
        )
        return Guess(stats, self.model.estimate(stats, self.rule))

    def labelled(self) -> Guess:
        """From the steps whose states are known."""
        stats = self.model.collect(self.rows, self.states)
        return Guess(stats, self.model.estimate(stats, "mean"))

    def best_start(self, n_starts: int, rng: np.random.Generator) -> tuple[Guess, list[float]]:
        """The best of several short runs on the first rows."""
        few = replace(self, rows=self.rows.head(HEAD))

        def attempt(turn: int) -> tuple[Guess, em.Trace]:
            return em.run(few.step, few.seed(*KINDS[turn % len(KINDS)], rng), few.weight, SHORT, 0.0, warn=False)

        return em.best_of(partial(attempt, turn) for turn in range(max(n_starts, 1)))

    def seed(self, width: int, stay: float, rng: np.random.Generator) -> Guess:
        """Emissions of each state from a window of rows drawn at random, held up by the prior; random transitions."""
        S, n = self.states.size, self.rows.n
        width = max(1, min(width, n // S))
        begins = rng.choice(n // width, S, replace=False) * width
        rows, codes = (begins[:, None] + np.arange(width)).ravel(), np.repeat(np.arange(S), width)
        seeds = self.rows.pick(rows, codes).collect_known(self.states) * EMPHASIS
        start, transition = (alpha > 0 for alpha in self.model.priors(S))
        moves = transition * (rng.dirichlet(np.ones(S), S) * (1 - stay) + stay * np.eye(S))
        moves = np.where(moves.sum(axis=1, keepdims=True) > 0, moves, transition)
        return Guess(
            None,
            HMMDensity.of(
                start / start.sum(), moves / moves.sum(axis=1, keepdims=True), self.rows.family.estimate(seeds, "mean")
            ),
        )


def choose(rows: Rows, states: Axis | None, rule: Rule) -> Any:
    """The family with what it left open frozen, from the first rows; by state where all of those are known."""
    head = rows.head(HEAD)
    known = head.states is not None and (head.states >= 0).all()
    if not known or states is None:
        head, states = replace(head, states=np.zeros(head.n, dtype=np.intp)), Axis.of(1)
    block, members = head.known(states)
    return rows.family.choose(collect_checked(rows.family, block, members, ()), (block, members), rule)
