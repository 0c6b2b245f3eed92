"""A mixture that was fitted without classes: clusters, densities and outliers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from deciban import kernels
from deciban.errors import HyperparameterError, NotAvailableError
from deciban.families.protocol import Rule
from deciban.features.weights import row_weights
from deciban.latent import em
from deciban.latent.components import NOT_EXACT, MixtureDensity, MixtureSums, read
from deciban.latent.expectation import Rows
from deciban.latent.parameters import free_parameters
from deciban.statistics import Array


@dataclass(frozen=True, eq=False, repr=False)
class FittedMixture:
    """A mixture that was fitted; `mean` and `predictive` are readings of its final sums."""

    family: Any  # of the components, its choices frozen
    sums: MixtureSums  # of the components, at the end
    rule: Rule
    pseudo_count: float
    trace: em.Trace
    criteria: dict[int, float] = field(default_factory=dict)  # number of components → criterion, where it was chosen

    @property
    def stats(self) -> Any:
        """The family's sums of each component."""
        return self.sums.components

    @property
    def counts(self) -> Array:
        """(M,) how many rows each component has."""
        return self.sums.counts

    @property
    def n_components(self) -> int:
        """How many components there are; fewer than asked for where some lost all their rows."""
        return len(self.sums.counts)

    def density(self, rule: Rule | None = None) -> MixtureDensity:
        """The mixture under a rule."""
        return read(self.family, self.sums, rule or self.rule, self.pseudo_count)

    @property
    def weights(self) -> Array:
        """(M,) how often each component is drawn."""
        return np.exp(self.density().log_weights)

    # -- answers -----------------------------------------------------------------------------------------------------
    def predict_proba(self, X: Any, rule: Rule | None = None) -> Array:
        """(n, M) which component drew each row."""
        density, rows = self.density(rule), self._rows(X)
        blocks = [kernels.softmax(density.log_joint(x)) for x, _ in rows.blocks(self.n_components)]
        return np.concatenate(blocks) if blocks else np.zeros((0, self.n_components))

    def predict(self, X: Any, rule: Rule | None = None) -> Array:
        """(n,) the most probable component."""
        density, rows = self.density(rule), self._rows(X)
        blocks = [density.log_joint(x).argmax(axis=1) for x, _ in rows.blocks(self.n_components)]
        return np.concatenate(blocks) if blocks else np.zeros(0, dtype=np.intp)

    def log_density(self, X: Any, rule: Rule | None = None) -> Array:
        """(n,) log f(x)."""
        return self._rows(X).log_density(self.density(rule))

    def sample(self, n: int, random_state: Any = None) -> Any:
        """N rows like the ones learnt."""
        return self.density().sample(np.zeros(n, dtype=np.intp), np.random.default_rng(random_state))

    # -- judging -------------------------------------------------------------------------------------------------------
    @property
    def n_parameters(self) -> int:
        """Free parameters: those of the components, and M − 1 weights."""
        return free_parameters(self.family, self.stats) + self.n_components - 1

    def bic(self, X: Any, sample_weight: Any = None) -> float:
        """−2 log L + p log n: less is better."""
        total, n = self._likelihood(X, sample_weight)
        return -2 * total + self.n_parameters * float(np.log(n))

    def aic(self, X: Any, sample_weight: Any = None) -> float:
        """−2 log L + 2p: less is better."""
        return -2 * self._likelihood(X, sample_weight)[0] + 2 * self.n_parameters

    def icl(self, X: Any, sample_weight: Any = None) -> float:
        """BIC + twice the entropy of the responsibilities: it asks for clusters that are apart."""
        rows, density, entropy = self._rows(X, sample_weight), self.density(), 0.0
        for x, w in rows.blocks(self.n_components):
            log_share = kernels.log_softmax(density.log_joint(x))
            share = np.exp(log_share)
            entropy -= float(w @ (share * np.where(share > 0, log_share, 0.0)).sum(axis=1))
        return self.bic(X, sample_weight) + 2 * entropy

    def _likelihood(self, X: Any, sample_weight: Any) -> tuple[float, float]:
        rows = self._rows(X, sample_weight)
        scores = rows.log_density(self.density())
        return float(scores.sum() if rows.weight is None else rows.weight @ scores), rows.total_weight

    # -- more rows -----------------------------------------------------------------------------------------------------
    def learn(self, X: Any, sample_weight: Any = None, *, step: float | None = None) -> FittedMixture:
        """Add the sums of more rows, collected under the present guess: stepwise EM.

        step : None adds rows, so each counts once; a number in (0, 1] moves the sums that far towards the new rows',
               and forgets as much of the old
        """
        if step is not None and not 0 < step <= 1:
            raise HyperparameterError(f"learn(step={step}): the step must be > 0 and at most 1.")
        rows = self._rows(X, sample_weight)
        self.family.check(rows.X, (), learning=True)
        found, _ = rows.expect(self.density(), self.sums.labels["class"])  # type: ignore[arg-type]
        if found is None:
            raise NotAvailableError("no component explains some of these rows at all. Refit with them, under 'map'.")
        if step is not None:
            found = found * (step * self.counts.sum() / rows.total_weight)
        return replace(self, sums=(self.sums if step is None else self.sums * (1 - step)) + found)

    def unlearn(self, *_: Any) -> None:
        """Refused: the sums of a mixture depend on the guess they were collected with."""
        raise NotAvailableError(NOT_EXACT)

    def _rows(self, X: Any, sample_weight: Any = None) -> Rows:
        block = self.family.encode(X, (), self.stats)
        return Rows(self.family, block, row_weights(sample_weight, block.shape[0]))

    def __repr__(self) -> str:
        return f"FittedMixture({self.n_components} × {type(self.family).__name__}, {self.trace!r})"
