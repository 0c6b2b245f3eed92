"""Sequences as given: one table with lengths or a list of sequences, states known or not, weights."""

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
from deciban.latent.sequences import Rows, Sequences, is_list_of_sequences, join
from deciban.read.labels import encode_labels
from deciban.read.numbers import row_weights
from deciban.statistics import Array, Axis


def read_rows(
    family: Any,
    X: Any,
    lengths: Any,
    y: Any = None,
    sample_weight: Any = None,
    sequence_weight: Any = None,
    stats: Any = None,
) -> tuple[Rows, tuple[Any, ...]]:
    """Encoded rows, and the names of the states where some are known; sequences of weight 0 are as if absent."""
    X, sizes = join(X, lengths)
    block = family.encode(X, (), stats) if stats is not None else family.encode(X, ())
    sequences = Sequences.of(sizes, block.shape[0], sequence_weight)
    if is_list_of_sequences(y):
        y, theirs = join(y, None)
        if list(theirs) != sequences.lengths.tolist():
            raise InputError("the sequences of y are not as long as those of X. Give one state a step.")
    weight = row_weights(sample_weight, sequences.n)
    names, states = ((), None) if y is None else read_states(y, sequences.n)
    if not sequences.weight.all():
        kept = np.repeat(sequences.weight > 0, sequences.lengths)
        block, some = block[np.flatnonzero(kept)], sequences.weight > 0
        sequences = Sequences(np.cumsum(sequences.lengths[some]), sequences.weight[some])
        weight = None if weight is None else weight[kept]
        if states is not None:
            used = np.unique(states[kept & (states >= 0)])
            states = np.where(states >= 0, np.searchsorted(used, states), -1)[kept]
            names = tuple(names[at] for at in used)
    return Rows(family, block, sequences, weight, states), names


def read_states(y: Any, n: int) -> tuple[tuple[Any, ...], Array]:
    """The sorted names of the states that are known, and each step's place among them; −1 where it is not known.

    >>> read_states(["b", None, "a"], 3)
    (('a', 'b'), array([ 1, -1,  0]))
    """
    given = np.asarray(y) if isinstance(y, np.ndarray) or hasattr(y, "dtype") else np.asarray(list(y), dtype=object)
    if given.shape != (n,):
        raise InputError(
            f"y has shape {given.shape}, but there are {n} steps: give one state a step, None where it is not known. "
            "Lengths go by name: fit(X, lengths=…)."
        )
    if given.dtype.kind == "f":
        unknown = np.isnan(given)
    elif given.dtype.kind in "iu":
        unknown = given == -1
    else:
        unknown = np.array([name is None or name != name or (type(name) is int and name == -1) for name in given])
    codes = np.full(n, -1, dtype=np.intp)
    if unknown.all():
        raise InputError("y names no state at all. Leave y out to find the states.")
    names, codes[~unknown] = encode_labels(given[~unknown].tolist(), int((~unknown).sum()))
    return names, codes


# -- hmm fit ----------
# Baum and Welch: EM for hidden Markov models, and where it starts from.
#
# Under `ml` the objective is the log-likelihood, under `map` the log prior is added; neither ever falls. EM finds a
# nearby maximum only, so several short runs on the first rows compete: each starts from emissions learnt from windows
# of
# consecutive rows (neighbours may share a state) and from random transitions that prefer to stay, or do not.

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
