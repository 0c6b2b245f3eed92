"""EM for one mixture and one set of rows: starts, M-steps, stepwise EM, and the fitted mixture.

A start is responsibilities drawn at random, or one model per seed row. Seed rows are spread out as k-means++ spreads
its centres, for any family: a model estimated from one row and the prior takes the place of a centre, and the
difference between a row's score under its own model and under the best seed so far takes the place of the squared
distance.

Reference: Arthur & Vassilvitskii, k-means++: the advantages of careful seeding, 2007.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from deciban import kernels
from deciban.errors import (
    EmptyClassError,
    EmptyComponentWarning,
    HyperparameterError,
    InputError,
    NoModeError,
    NotAvailableError,
    SingularError,
)
from deciban.families.fitted import require_columns
from deciban.families.product import BlockRows
from deciban.families.protocol import Density, Family, Rows, Rule
from deciban.kernels.choice import one_thread
from deciban.latent import em
from deciban.latent.components import (
    MixtureDensity,
    MixtureSums,
    PartedRows,
    WeightedRows,
    choose_within,
    estimate_mixture,
    free_parameters,
    mixture_log_prior,
    open_within,
)
from deciban.read.arrays import row_weights
from deciban.statistics import Array, Axis, Members

Start: TypeAlias = str | ArrayLike | MixtureDensity  # a name of STARTS, responsibilities (n, M), or a density

# -- starts and steps --------------------------------------------------------------------------------------------------
STARTS = ("k-means++", "random")
CANDIDATES = 32  # rows among which each seed is chosen
CANDIDATE_NUMBERS = 2**23  # parameters of the models of all candidates together, at most
AT_ONCE = 16  # candidates whose own models are estimated together
EMPTY = 1e-12  # share of the total weight below which a component is empty
PASSES, POWER = 3, 0.7  # of stepwise EM: passes over all rows, and exponent of the step size
SHORT = 15  # iterations of each competing start
START_ROWS = 2**14  # rows on which starts compete


class Estimate(NamedTuple):
    """The state of EM: a density, and the sums of the E-step from which it was estimated."""

    density: MixtureDensity
    names: Axis  # of the components
    sums: MixtureSums | None = None
    family: Family | None = None  # with the choices made within components; that of the rows if None


@dataclass(frozen=True, eq=False)
class MixtureFit:
    """One mixture to be fitted to one set of rows."""

    rows: WeightedRows
    rule: Rule
    pseudo_count: float
    asked: Family  # of the components, before choices were made
    parts: PartedRows | None = None  # rows in other places, over which EM runs; `rows` are the first of them

    @property
    def all_rows(self) -> WeightedRows | PartedRows:
        """The rows over which EM runs; starts are made from `rows`."""
        return self.rows if self.parts is None else self.parts

    def fit(
        self,
        names: Axis,
        start: Start,
        n_starts: int,
        max_iter: int,
        tol: float,
        rng: np.random.Generator,
        label: str | None = None,
    ) -> tuple[MixtureSums, em.Trace]:
        """Return the sums at the end of EM and the trace; empty components are dropped."""
        if len(self.rows) < names.size:
            raise InputError(
                f"{names.size} components for {len(self.rows)} rows: there are not enough rows. Ask for fewer."
            )
        with one_thread(0):  # the same bits for any number of threads
            first, reached = self.start(names, start, n_starts, rng)
            last, trace = em.run(self.step, first, self.all_rows.total_weight, max_iter, tol, label=label)
            trace.starts = reached
            sums = last.sums if last.sums is not None else _expect(self.all_rows, last.density, last.names)
        sums = _drop_empty(sums)
        dropped = names.size - len(sums.counts)
        if dropped:
            warnings.warn(
                f"{dropped} of {names.size} components lost all their rows and {'was' if dropped == 1 else 'were'} "
                "dropped. Ask for fewer components, or give other starts.",
                EmptyComponentWarning,
                stacklevel=3,
            )
        return sums, trace

    def stepwise(
        self, names: Axis, start: Start, n_starts: int, rng: np.random.Generator, batch: int
    ) -> MixtureDensity:
        """Run stepwise EM: PASSES passes over the rows, in batches of a random order."""
        with one_thread(0):
            first, _ = self.start(names, start, n_starts, rng)
            sums = _expect(self.rows.take(slice(0, batch)), first.density, first.names)
            weight = self.rows.total_weight
            orders = [rng.permutation(len(self.rows)) for _ in range(PASSES)]
            some = (np.sort(order[at : at + batch]) for order in orders for at in range(0, len(order), batch))
            batches = ((rows, rows.total_weight) for rows in map(self.rows.take, some))
            sums = em.stepwise(
                lambda rows, sums: _expect(rows, self.maximise(sums).density, first.names),
                sums * (weight / sums.counts.sum()),
                batches,
                weight,
                POWER,
            )
            return self.maximise(sums).density

    # -- steps -------------------------------------------------------------------------------------------------------
    def step(self, estimate: Estimate) -> tuple[Estimate, float]:
        """Make one EM step; return the next estimate and the objective of the given one."""
        sums, total = self.all_rows.expect(estimate.density, estimate.names)
        if sums is None:
            return estimate, -np.inf
        return self.maximise(sums), total + self.log_prior(estimate)

    def maximise(self, sums: MixtureSums) -> Estimate:
        """Make an M-step. An empty component without an estimate is dropped, which leaves the likelihood unchanged."""
        try:
            family = choose_within(self.asked, self.rows.family, sums.components, self.rule)
            density = estimate_mixture(family, sums, self.rule, self.pseudo_count)
        except (SingularError, EmptyClassError, NoModeError) as error:
            fewer = _drop_empty(sums)
            if fewer is not sums:
                return self.maximise(fewer)
            remedy = "" if self.rule == "map" else " Rule 'map' has a prior that prevents it; or ask for fewer."
            raise type(error)(f"a component of the mixture has collapsed: {error}{remedy}") from None
        return Estimate(density, sums.labels["class"], sums, family)  # type: ignore[arg-type]

    def log_prior(self, estimate: Estimate) -> float:
        """Return the log prior that rule "map" adds to the log-likelihood, up to a constant."""
        if self.rule == "ml":
            return 0.0
        return mixture_log_prior(estimate.family or self.rows.family, estimate.density, self.pseudo_count)

    # -- starts ------------------------------------------------------------------------------------------------------
    def start(self, names: Axis, start: Start, n_starts: int, rng: np.random.Generator) -> tuple[Estimate, list[float]]:
        """Return the first estimate and the objectives of the starts that competed for it.

        A density or responsibilities are taken as given; of named starts the best of `n_starts` short runs is taken.
        """
        check_start(start)
        if isinstance(start, MixtureDensity):
            return Estimate(start, names), []
        if not isinstance(start, str):
            return self.maximise(given_sums(self.rows, names, start)), []
        sample = replace(self, parts=None)
        if len(self.rows) > START_ROWS:
            sample = replace(sample, rows=self.rows.take(np.sort(rng.permutation(len(self.rows))[:START_ROWS])))
        if n_starts <= 1:
            return sample._named_start(names, start, rng), []
        weight = sample.rows.total_weight
        return em.best_of(
            lambda: em.run(sample.step, sample._named_start(names, start, rng), weight, SHORT, 0.0, warn=False)
            for _ in range(n_starts)
        )

    def _named_start(self, names: Axis, start: str, rng: np.random.Generator) -> Estimate:
        if start == "random":  # uniform over all ways to divide a row among components
            shares = self.rows.collect_shares(names, lambda begin, end: rng.dirichlet(np.ones(names.size), end - begin))
            return self.maximise(shares)
        seeds = seed_components(self.rows, names, rng)
        if not open_within(self.asked):
            return Estimate(seeds, names)
        # rows belong to their best seed: the shape chosen from all rows is too small to tell seeds apart
        best = np.concatenate([seeds.log_joint(x).argmax(axis=1) for x, _ in self.rows.blocks(names.size)])
        return self.maximise(self.rows.collect_shares(names, lambda begin, end: np.eye(names.size)[best[begin:end]]))


def _expect(rows: WeightedRows | PartedRows, density: MixtureDensity, names: Axis) -> MixtureSums:
    """Make an E-step; SingularError if a row has density 0 under every component."""
    sums, _ = rows.expect(density, names)
    if sums is None:
        raise SingularError(
            "some rows have density 0 under every component. Use rule 'map', another start, or larger batches."
        )
    return sums


def seed_components(rows: WeightedRows, names: Axis, rng: np.random.Generator) -> MixtureDensity:
    """Return a mixture whose components are each a model of one row, with rows chosen far from one another."""
    M, n = names.size, len(rows)
    some = int(np.clip(CANDIDATE_NUMBERS // max(1, rows.X.shape[1]), 4 * M, CANDIDATES * M))
    pool = rng.choice(n, min(n, max(some, M)), replace=False, p=_probabilities(rows.weight))
    X, weight = rows.X[pool], np.ones(len(pool)) if rows.weight is None else rows.weight[pool]
    some_rows = [X[at : at + AT_ONCE] for at in range(0, len(pool), AT_ONCE)]
    own = np.concatenate([np.diagonal(_models(rows.family, x).log_density(x)) for x in some_rows])
    chosen = [int(rng.choice(len(pool), p=_probabilities(weight)))]
    best = _models(rows.family, X[chosen]).log_density(X)[:, 0]
    while len(chosen) < M:
        far = np.maximum(own - best, 0.0) * weight
        far[chosen] = 0.0
        if not far.any() or not np.isfinite(far).all():  # only duplicates are left: any other row is as good
            far = np.where(np.isin(np.arange(len(pool)), chosen), 0.0, weight)
        chosen.append(int(rng.choice(len(pool), p=far / far.sum())))
        best = np.maximum(best, _models(rows.family, X[chosen[-1:]]).log_density(X)[:, 0])
    return MixtureDensity(np.full(M, -np.log(M)), _models(rows.family, X[np.array(chosen)], names))


def given_sums(rows: WeightedRows, names: Axis, given: ArrayLike) -> MixtureSums:
    """Return the sums under given responsibilities (n, M)."""
    shares = np.asarray(given, dtype=float)
    if shares.shape != (len(rows), names.size):
        raise InputError(
            f"start has shape {shares.shape}, but there are {len(rows)} rows and {names.size} components. "
            "Give one responsibility for each row and component, or the name of a start."
        )
    if not np.isfinite(shares).all() or (shares < 0).any():
        raise InputError("start holds responsibilities that are not finite or below 0; they must be at least 0.")
    return rows.collect_shares(names, lambda begin, end: shares[begin:end])


def check_start(start: Start) -> None:
    """Refuse an unknown name of a start."""
    if isinstance(start, str) and start not in STARTS:
        raise HyperparameterError(f"start={start!r} is not one of {', '.join(STARTS)}, nor responsibilities (n, M).")


def _models(family: Family, X: Rows, names: Axis | None = None) -> Density:
    """Return one group per row, estimated from that row and the prior."""
    names = names or Axis.of(X.shape[0])
    return family.estimate(family.collect(X, Members.hard(np.arange(names.size), names)), "mean")


def _probabilities(weight: Array | None) -> Array | None:
    return None if weight is None else weight / weight.sum()


def _drop_empty(sums: MixtureSums) -> MixtureSums:
    kept = np.flatnonzero(sums.counts > EMPTY * sums.counts.sum())
    return sums if len(kept) == len(sums.counts) else sums.select("class", kept)


# -- the fitted mixture ------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False, repr=False)
class FittedMixture:
    """A mixture and the sums at the end of EM; a value: learning returns another one.

    Attributes
    ----------
    family : Family
        Family of the components, with its choices made.
    sums : MixtureSums
        Sums of the last E-step; every rule reads them.
    rule : {"ml", "map"}
        Rule under which EM maximised, the default of every method.
    pseudo_count : float
        Dirichlet prior of the weights.
    trace : Trace
        Objective after each iteration.
    criteria : dict of {int: float}
        Criterion for each number of components, if that number was chosen.
    """

    family: Any
    sums: MixtureSums
    rule: Rule
    pseudo_count: float
    trace: em.Trace
    criteria: dict[int, float] = field(default_factory=dict)

    @property
    def stats(self) -> Any:
        """Statistics of the family, one group for each component."""
        return self.sums.components

    @property
    def counts(self) -> Array:
        """Expected number of rows of each component, shape (M,)."""
        return self.sums.counts

    @property
    def n_components(self) -> int:
        """Number of components; smaller than requested if components lost all their rows."""
        return len(self.sums.counts)

    def density(self, rule: Rule | None = None) -> MixtureDensity:
        """Return the mixture's density under a rule."""
        return estimate_mixture(self.family, self.sums, rule or self.rule, self.pseudo_count)

    def validate(self) -> None:
        """Raise an error if the density cannot be estimated, or does not have the components of the sums."""
        if self.density().K != 1 or len(self.weights) != len(self.sums.counts):
            raise InputError("the family of a mixture does not fit its sums.")

    @property
    def weights(self) -> Array:
        """Probability of each component, shape (M,)."""
        return np.exp(self.density().log_weights)

    # -- answers -----------------------------------------------------------------------------------------------------
    def predict_proba(self, X: ArrayLike, rule: Rule | None = None) -> Array:
        """Return the responsibilities, shape (n, M): the probability of each component given the row."""
        return np.concatenate([np.zeros((0, self.n_components)), *map(kernels.softmax, self._log_joints(X, rule))])

    def predict(self, X: ArrayLike, rule: Rule | None = None) -> Array:
        """Return the most probable component of each row, shape (n,)."""
        blocks = (joint.argmax(axis=1) for joint in self._log_joints(X, rule))
        return np.concatenate([np.zeros(0, dtype=np.intp), *blocks])

    def _log_joints(self, X: ArrayLike, rule: Rule | None) -> Iterator[Array]:
        """Return the log π_m f(x|m) of each block of rows, shape (rows, M)."""
        density = self.density(rule)
        return (density.log_joint(x) for x, _ in self._rows(X).blocks(self.n_components))

    def log_density(self, X: ArrayLike, rule: Rule | None = None) -> Array:
        """Return log f(x), shape (n,)."""
        return self._rows(X).log_density(self.density(rule))

    def sample(self, n: int, random_state: np.random.Generator | int | None = None) -> Rows:
        """Draw n rows; of a product with named columns, a dict of columns."""
        rows = self.density().sample(np.zeros(n, dtype=np.intp), np.random.default_rng(random_state))
        return rows.by_name(self.family.keys) if isinstance(rows, BlockRows) else rows

    # -- criteria ----------------------------------------------------------------------------------------------------
    @property
    def n_parameters(self) -> int:
        """Number of free parameters: those of the components, and M − 1 weights."""
        return free_parameters(self.family, self.stats) + self.n_components - 1

    def bic(self, X: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the Bayesian information criterion −2 log L + p log n; lower is better."""
        total, n = self._log_likelihood(X, sample_weight)
        return -2 * total + self.n_parameters * float(np.log(n))

    def aic(self, X: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the Akaike information criterion −2 log L + 2p; lower is better."""
        return -2 * self._log_likelihood(X, sample_weight)[0] + 2 * self.n_parameters

    def icl(self, X: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the integrated completed likelihood, BIC + 2 × entropy of the responsibilities; lower is better."""
        rows, density, entropy = self._rows(X, sample_weight), self.density(), 0.0
        for x, w in rows.blocks(self.n_components):
            log_share = kernels.log_softmax(density.log_joint(x))
            share = np.exp(log_share)
            entropy -= float(w @ (share * np.where(share > 0, log_share, 0.0)).sum(axis=1))
        return self.bic(X, sample_weight) + 2 * entropy

    def _log_likelihood(self, X: ArrayLike, sample_weight: ArrayLike | None) -> tuple[float, float]:
        """Return the total log-likelihood and total weight."""
        rows = self._rows(X, sample_weight)
        scores = rows.log_density(self.density())
        return float(scores.sum() if rows.weight is None else rows.weight @ scores), rows.total_weight

    # -- learning ----------------------------------------------------------------------------------------------------
    def learn(
        self, X: ArrayLike, sample_weight: ArrayLike | None = None, *, step: float | None = None
    ) -> FittedMixture:
        """Add the sums of more rows, collected under the present estimate (stepwise EM).

        Parameters
        ----------
        X : array-like, sparse matrix or frame
            Rows to learn.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row.
        step : float in (0, 1], optional
            Step size: the sums move this far towards those of the new rows. With None rows are added, and each row
            counts once.

        Returns
        -------
        FittedMixture
            The mixture with the new sums.
        """
        if step is not None and not 0 < step <= 1:
            raise HyperparameterError(f"learn(step={step}): the step must be > 0 and at most 1.")
        rows = self._rows(X, sample_weight)
        self.family.check(rows.X, (), learning=True)
        found, _ = rows.expect(self.density(), self.sums.labels["class"])  # type: ignore[arg-type]
        if found is None:
            raise NotAvailableError("some rows have density 0 under every component. Refit with them, by rule 'map'.")
        if step is not None:
            found = found * (step * self.counts.sum() / rows.total_weight)
        return replace(self, sums=(self.sums if step is None else self.sums * (1 - step)) + found)

    def unlearn(self, *_: object) -> None:
        """Raise NotAvailableError: the sums depend on the estimate under which they were collected."""
        raise NotAvailableError(em.NOT_EXACT)

    def _rows(self, X: ArrayLike, sample_weight: ArrayLike | None = None) -> WeightedRows:
        require_columns(self.family, self.stats, X)
        block = self.family.encode(X, (), self.stats)
        return WeightedRows(self.family, block, row_weights(sample_weight, block.shape[0]))

    def __repr__(self) -> str:
        return f"FittedMixture({self.n_components} × {type(self.family).__name__}, {self.trace!r})"
