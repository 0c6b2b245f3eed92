"""Clusters, densities and outliers: a mixture with scikit-learn's mixture interface."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from deciban.errors import HyperparameterError, InputError, NotAvailableError
from deciban.families.gaussian import Gaussian
from deciban.families.product import Blocks, Product
from deciban.families.protocol import Rule
from deciban.latent.components import NOT_EXACT
from deciban.latent.mixture import Criterion, FittedMixture, Mixture
from deciban.model import choose as auto
from deciban.read.tables import HEAD, Table
from deciban.statistics import Array


class MixtureModel(DensityMixin, BaseEstimator):
    """A mixture of any family, found without labels.

    n_components : how many; or several numbers, of which `criterion` chooses
    family       : of the components, such as `Gaussian("tied")`; a dict of column → family; or "auto"
    rule         : what EM climbs under: "map", whose prior keeps components from collapsing, or "ml"
    start        : "k-means++" or "random"; the best of `n_starts` short runs goes on
    criterion    : "bic", "icl" or "heldout"

    >>> import numpy as np
    >>> from deciban import MixtureModel
    >>> rng = np.random.default_rng(0)
    >>> X = np.r_[rng.normal(0, 1, (200, 2)), rng.normal(6, 1, (100, 2))]
    >>> model = MixtureModel(range(1, 5), random_state=0).fit(X)
    >>> model.n_components_, model.weights_.round(2)
    (2, array([0.67, 0.33]))
    >>> model.outliers([[0.0, 0.0], [3.0, 20.0]])
    array([False,  True])
    """

    def __init__(
        self,
        n_components: Any = 1,
        family: Any = "auto",
        *,
        rule: Rule = "map",
        start: str = "k-means++",
        n_starts: int = 5,
        max_iter: int = 1000,
        tol: float = 1e-7,
        pseudo_count: float = 1.0,
        criterion: Criterion = "bic",
        random_state: Any = None,
        progress: bool = False,
    ) -> None:
        self.n_components = n_components
        self.family = family
        self.rule = rule
        self.start = start
        self.n_starts = n_starts
        self.max_iter = max_iter
        self.tol = tol
        self.pseudo_count = pseudo_count
        self.criterion = criterion
        self.random_state = random_state
        self.progress = progress

    # -- learning ----------------------------------------------------------------------------------------------------
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the components by EM; `y` is ignored."""
        table = Table.of(X)
        if len(table) == 0:
            raise InputError(f"Found array with 0 sample(s) (shape={table.shape}) while a minimum of 1 is required.")
        if table.sparse and isinstance(self.family, str):
            raise InputError("a sparse table may hold counts or flags: name the family, such as Multinomial().")
        family = _plain(auto.by_type(self.family, table))
        several = isinstance(self.n_components, Iterable)
        sizes = list(self.n_components) if several else [self.n_components]
        if not sizes:
            raise HyperparameterError("n_components is empty. Give a number, or several such as range(1, 9).")
        mixture = Mixture(
            family,
            sizes[0],
            self.pseudo_count,
            rule=self.rule,
            start=self.start,
            n_starts=self.n_starts,
            max_iter=self.max_iter,
            tol=self.tol,
        )
        options = {"random_state": check_random_state(self.random_state).randint(2**31), "progress": self.progress}
        given = _given(family, table)
        if several:
            fitted = mixture.fit_size(given, sizes, sample_weight, by=self.criterion, **options)
        else:
            fitted = mixture.fit(given, sample_weight, **options)
        validate_data(self, X, reset=True, skip_check_array=True)
        self.columns_ = table.columns
        self._set(fitted)
        self.training_scores_ = np.sort(fitted.log_density(_given(family, table.take(slice(0, HEAD)))))
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn more rows: one E-step under the present components, whose sums are added. The first call is `fit`."""
        if not hasattr(self, "fitted_"):
            return self.fit(X, sample_weight=sample_weight)
        self._set(self.fitted_.learn(self._rows(X), sample_weight))
        return self

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """(n,) the most probable component of each row."""
        return self.fit(X, sample_weight=sample_weight).predict(X)

    def unlearn(self, X: Any, sample_weight: Any = None) -> None:
        """Refused: a mixture's sums depend on the guess they were collected with."""
        raise NotAvailableError(NOT_EXACT)

    # -- answers -----------------------------------------------------------------------------------------------------
    def predict(self, X: Any) -> Array:
        """(n,) the most probable component."""
        return self._fitted.predict(self._rows(X))

    def predict_proba(self, X: Any) -> Array:
        """(n, M) which component drew each row."""
        return self._fitted.predict_proba(self._rows(X))

    def score_samples(self, X: Any) -> Array:
        """(n,) log f(x): how expected each row is."""
        return self._fitted.log_density(self._rows(X))

    def score(self, X: Any, y: Any = None) -> float:
        """The mean of `score_samples`."""
        return float(np.mean(self.score_samples(X)))

    def threshold(self, quantile: float = 0.01) -> float:
        """The log density that this share of the rows learnt at `fit` (of the first 65,536) falls below."""
        check_is_fitted(self)
        if not 0 <= quantile <= 1:
            raise HyperparameterError(f"quantile={quantile} is not a share of rows between 0 and 1.")
        return float(np.quantile(self.training_scores_, quantile))

    def outliers(self, X: Any, quantile: float = 0.01) -> Array:
        """(n,) which rows are less expected than all but this share of the learnt ones."""
        return self.score_samples(X) < self.threshold(quantile)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[Any, Array]:
        """Rows like the ones learnt, and the component of each."""
        if n_samples < 1:
            raise InputError(f"n_samples={n_samples}: ask for at least one row.")
        density, rng = self._fitted.density(), np.random.default_rng(random_state)
        codes = np.sort(density.draw(n_samples, rng))
        rows = density.components.sample(codes, rng)
        return (np.column_stack(list(rows.parts.values())) if isinstance(rows, Blocks) else rows), codes

    # -- judging -----------------------------------------------------------------------------------------------------
    def bic(self, X: Any) -> float:
        """−2 log L + p log n: less is better."""
        return self._fitted.bic(self._rows(X))

    def aic(self, X: Any) -> float:
        """−2 log L + 2p: less is better."""
        return self._fitted.aic(self._rows(X))

    def icl(self, X: Any) -> float:
        """BIC + twice the entropy of the responsibilities: it asks for clusters that are apart."""
        return self._fitted.icl(self._rows(X))

    @property
    def weights_(self) -> Array:
        """(M,) how often each component is drawn."""
        return self._fitted.weights

    @property
    def means_(self) -> Array:
        """(M, D) the components' means, where they are Gaussian."""
        parts = self._fitted.density().components
        if not hasattr(parts, "mean") or not hasattr(parts, "origin"):
            raise AttributeError("means_ is there for Gaussian components only.")
        return np.asarray(parts.origin + parts.mean)

    def _set(self, fitted: FittedMixture) -> None:
        self.fitted_, trace = fitted, fitted.trace
        self.n_components_, self.criteria_ = fitted.n_components, fitted.criteria
        self.converged_, self.n_iter_ = trace.converged, trace.iterations
        self.lower_bound_ = trace.objective[-1] / fitted.counts.sum()
        self.trace_ = trace

    @property
    def _fitted(self) -> FittedMixture:
        check_is_fitted(self)
        return self.fitted_

    def _rows(self, X: Any) -> Any:
        check_is_fitted(self)
        table = Table.of(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        return _given(self.fitted_.family, table)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not isinstance(self.family, str)
        tags.input_tags.allow_nan = True
        return tags


def _given(family: Any, table: Table) -> Any:
    return table if isinstance(family, Product) else table.pick()


def _plain(family: Any) -> Any:
    """Without labels no structure can be chosen by them: full covariances."""
    if isinstance(family, Product):
        return replace(family, families={key: _plain(part) for key, part in family.families.items()})
    return replace(family, structure="full") if isinstance(family, Gaussian) and family.structure == "auto" else family
