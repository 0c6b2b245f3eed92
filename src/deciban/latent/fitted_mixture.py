"""A mixture fitted without classes: clusters, densities, outliers, and criteria for the number of components."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from deciban import kernels
from deciban.errors import HyperparameterError, InputError, NotAvailableError
from deciban.families.fitted import require_columns
from deciban.families.product import BlockRows
from deciban.families.protocol import Rows, Rule
from deciban.latent import em
from deciban.latent.components import MixtureDensity, MixtureSums, estimate_mixture, free_parameters
from deciban.latent.mixture_fit import WeightedRows
from deciban.read.arrays import row_weights
from deciban.statistics import Array


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
        """Number of components; less than asked for if components lost all their rows."""
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
        """Log π_m f(x|m) of each block of rows, shape (rows, M)."""
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
        """Bayesian information criterion −2 log L + p log n; lower is better."""
        total, n = self._log_likelihood(X, sample_weight)
        return -2 * total + self.n_parameters * float(np.log(n))

    def aic(self, X: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Akaike information criterion −2 log L + 2p; lower is better."""
        return -2 * self._log_likelihood(X, sample_weight)[0] + 2 * self.n_parameters

    def icl(self, X: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Integrated completed likelihood: BIC + 2 × the entropy of the responsibilities; lower is better."""
        rows, density, entropy = self._rows(X, sample_weight), self.density(), 0.0
        for x, w in rows.blocks(self.n_components):
            log_share = kernels.log_softmax(density.log_joint(x))
            share = np.exp(log_share)
            entropy -= float(w @ (share * np.where(share > 0, log_share, 0.0)).sum(axis=1))
        return self.bic(X, sample_weight) + 2 * entropy

    def _log_likelihood(self, X: ArrayLike, sample_weight: ArrayLike | None) -> tuple[float, float]:
        """Total log-likelihood and total weight."""
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
