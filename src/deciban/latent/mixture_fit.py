"""Where EM begins: models of single rows as seeds, or responsibilities drawn at random.

Seeds are spread out as k-means++ spreads its centres, for any family: a model of one row, held up by the prior, stands
for a centre, and what the best seed so far loses against the row's own model stands for the squared distance.

Reference: Arthur & Vassilvitskii, k-means++: the advantages of careful seeding, 2007.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from deciban.errors import (
    EmptyClassError,
    EmptyComponentWarning,
    HyperparameterError,
    InputError,
    NoModeError,
    SingularError,
)
from deciban.families.protocol import Rule
from deciban.kernels.choice import one_thread
from deciban.latent import em
from deciban.latent.components import MixtureDensity, MixtureSums, read
from deciban.latent.expectation import Rows
from deciban.statistics import Array, Axis, Members

STARTS = ("k-means++", "random")
CANDIDATES = 32  # rows among which each seed is chosen
CANDIDATE_NUMBERS = 2**23  # parameters of all candidates' models together, at most
AT_ONCE = 16  # candidates whose own models are made together


def seeds(rows: Rows, names: Axis, rng: np.random.Generator) -> MixtureDensity:
    """Components that are each a model of one row, far from one another."""
    M, n = names.size, len(rows)
    some = int(np.clip(CANDIDATE_NUMBERS // max(1, rows.X.shape[1]), 4 * M, CANDIDATES * M))
    pool = rng.choice(n, min(n, max(some, M)), replace=False, p=_chances(rows.weight))
    X, weight = rows.X[pool], np.ones(len(pool)) if rows.weight is None else rows.weight[pool]
    own = np.concatenate([_own_scores(rows.family, X[at : at + AT_ONCE]) for at in range(0, len(pool), AT_ONCE)])
    chosen = [int(rng.choice(len(pool), p=_chances(weight)))]
    best = _of_row(rows.family, X, chosen[0])
    while len(chosen) < M:
        far = np.maximum(own - best, 0.0) * weight
        far[chosen] = 0.0
        if not far.any() or not np.isfinite(far).all():  # duplicates: any other row will do
            far = np.where(np.isin(np.arange(len(pool)), chosen), 0.0, weight)
        chosen.append(int(rng.choice(len(pool), p=far / far.sum())))
        best = np.maximum(best, _of_row(rows.family, X, chosen[-1]))
    return MixtureDensity(np.full(M, -np.log(M)), _models(rows.family, X[np.array(chosen)], names))


def random_sums(rows: Rows, names: Axis, rng: np.random.Generator) -> MixtureSums:
    """Every row shared out at random, uniformly over all ways to share."""
    return rows.collect_shares(names, lambda begin, end: rng.dirichlet(np.ones(names.size), end - begin))


def given_sums(rows: Rows, names: Axis, shares: Any) -> MixtureSums:
    """Responsibilities as given, (n, M)."""
    shares = np.asarray(shares, dtype=float)
    if shares.shape != (len(rows), names.size):
        raise InputError(
            f"start has shape {shares.shape}, but there are {len(rows)} rows and {names.size} components. "
            "Give one responsibility for each, or the name of a start."
        )
    if not np.isfinite(shares).all() or (shares < 0).any():
        raise InputError("responsibilities must be finite and at least 0. Mend `start`.")
    return rows.collect_shares(names, lambda begin, end: shares[begin:end])


def check_start(start: Any) -> None:
    """Refuse the name of a start that is not one."""
    if isinstance(start, str) and start not in STARTS:
        raise HyperparameterError(f"start={start!r} is not one of {', '.join(STARTS)}, nor responsibilities (n, M).")


def _models(family: Any, X: Any, names: Axis) -> Any:
    return family.estimate(family.collect(X, Members.hard(np.arange(names.size), names)), "mean")


def _own_scores(family: Any, X: Any) -> Array:
    """(n,) how each row scores by its own model."""
    return np.diagonal(_models(family, X, Axis.of(X.shape[0])).log_density(X))


def _of_row(family: Any, X: Any, row: int) -> Array:
    """(n,) how all rows score by one row's model."""
    return _models(family, X[row : row + 1], Axis.of(1)).log_density(X)[:, 0]


def _chances(weight: Array | None) -> Array | None:
    return None if weight is None else weight / weight.sum()


# -- task ----------
# Fitting one mixture to one set of rows: what the EM loop iterates.

EMPTY = 1e-12  # of all rows: a component that has no more has none
PASSES = 3  # over all rows, in stepwise EM
SHORT = 15  # iterations of each start
START_ROWS = 2**14  # rows that starts are tried on


class Guess(NamedTuple):
    """Where EM stands: a density, and the sums of the E-step that it was estimated from."""

    density: MixtureDensity
    names: Axis
    sums: MixtureSums | None = None


@dataclass(frozen=True, eq=False)
class Task:
    """One mixture to be fitted to one set of rows."""

    rows: Rows
    rule: Rule
    pseudo_count: float

    def fit(
        self, names: Axis, start: Any, n_starts: int, max_iter: int, tol: float, rng: Any, label: str | None = None
    ) -> tuple[MixtureSums, em.Trace]:
        """The sums that EM ends with; components that lost all their rows are dropped."""
        if len(self.rows) < names.size:
            raise InputError(
                f"{names.size} components of {len(self.rows)} rows: there are not enough rows. Ask for fewer."
            )
        with one_thread(0):  # the same bits whatever the number of threads
            first, reached = self.begin(names, start, n_starts, rng)
            last, trace = em.run(self.step, first, self.rows.total_weight, max_iter, tol, label=label)
            trace.starts = reached
            sums = last.sums if last.sums is not None else self.rows.expect(last.density, last.names)[0]
        if sums is None:
            raise SingularError("no component explains some of the rows at all. Use rule 'map', or another start.")
        sums = _alive(sums)
        _say_lost(names.size - len(sums.counts), names.size)
        return sums, trace

    def begin(self, names: Axis, start: Any, n_starts: int, rng: np.random.Generator) -> tuple[Guess, list[float]]:
        """A density as given, responsibilities as given, or the best of several short runs."""
        check_start(start)
        if isinstance(start, MixtureDensity):
            return Guess(start, names), []
        if not isinstance(start, str):
            return self.maximise(given_sums(self.rows, names, start)), []
        small = self
        if len(self.rows) > START_ROWS:
            small = replace(self, rows=self.rows.take(np.sort(rng.permutation(len(self.rows))[:START_ROWS])))
        if n_starts <= 1:
            return small.seeded(names, start, rng), []
        weight = small.rows.total_weight
        return em.best_of(
            lambda: em.run(small.step, small.seeded(names, start, rng), weight, SHORT, 0.0, warn=False)
            for _ in range(n_starts)
        )

    def seeded(self, names: Axis, start: str, rng: np.random.Generator) -> Guess:
        """One start of a kind."""
        if start == "random":
            return self.maximise(random_sums(self.rows, names, rng))
        return Guess(seeds(self.rows, names, rng), names)

    def by_batches(
        self, names: Axis, start: Any, n_starts: int, rng: np.random.Generator, batch: int
    ) -> MixtureDensity:
        """Stepwise EM: passes over the rows in batches of a random order, each batch moving the sums."""
        with one_thread(0):
            first, _ = self.begin(names, start, n_starts, rng)
            sums, _ = self.rows.take(slice(0, batch)).expect(first.density, first.names)
            if sums is None:
                raise SingularError("no component explains some of the rows at all. Use rule 'map', or another start.")
            weight = self.rows.total_weight
            sums = em.stepwise(
                lambda rows, density: _expected(rows, density, sums.labels["class"]),
                lambda sums: self.maximise(sums).density,
                sums * (weight / sums.counts.sum()),
                self._batches(batch, rng),
                weight,
            )
        return self.maximise(sums).density

    def _batches(self, batch: int, rng: np.random.Generator) -> Iterator[tuple[Rows, float]]:
        for _ in range(PASSES):
            order = rng.permutation(len(self.rows))
            for at in range(0, len(order), batch):
                rows = self.rows.take(np.sort(order[at : at + batch]))
                yield rows, rows.total_weight

    def step(self, guess: Guess) -> tuple[Guess, float]:
        """One EM step, and the objective of the density it started from."""
        sums, total = self.rows.expect(guess.density, guess.names)
        if sums is None:
            return guess, -np.inf
        return self.maximise(sums), total + self.log_prior(guess.density)

    def maximise(self, sums: MixtureSums) -> Guess:
        """The M-step. An empty component that has no estimate goes, which changes no likelihood."""
        try:
            density = read(self.rows.family, sums, self.rule, self.pseudo_count)
        except (SingularError, EmptyClassError, NoModeError) as error:
            fewer = _alive(sums)
            if fewer is not sums:
                return self.maximise(fewer)
            held = "" if self.rule == "map" else " Rule 'map' has a prior that keeps components; or ask for fewer."
            raise error.but(
                "a component of the mixture has collapsed: ", *error.args, remedy=(error.remedy or "") + held
            ) from None
        return Guess(density, sums.labels["class"], sums)  # type: ignore[arg-type]

    def log_prior(self, density: MixtureDensity) -> float:
        """What `map` adds to the log-likelihood, up to a constant."""
        if self.rule == "ml":
            return 0.0
        mixing = 0.0
        if self.pseudo_count != 1:
            mixing = (self.pseudo_count - 1) * float(np.sum(density.log_weights))
        return mixing + self.rows.family.log_prior(density.components)


def _expected(rows: Rows, density: MixtureDensity, names: Any) -> tuple[MixtureSums, float]:
    sums, total = rows.expect(density, names)
    if sums is None:
        raise SingularError("no component explains some of the rows at all. Use rule 'map', or larger batches.")
    return sums, total


def _alive(sums: MixtureSums) -> MixtureSums:
    """Without the components that have no rows left."""
    kept = np.flatnonzero(sums.counts > EMPTY * sums.counts.sum())
    return sums if len(kept) == len(sums.counts) else sums.select("class", kept)


def _say_lost(lost: int, asked: int) -> None:
    if lost:
        warnings.warn(
            f"{lost} of {asked} components lost all their rows and {'was' if lost == 1 else 'were'} dropped. "
            "Ask for fewer components, or give other starts.",
            EmptyComponentWarning,
            stacklevel=4,
        )


def by_size(sums: MixtureSums) -> Array:
    """The order of the components, largest first."""
    return np.argsort(-sums.counts, kind="stable")
