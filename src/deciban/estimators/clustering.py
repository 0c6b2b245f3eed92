"""Mixtures with scikit-learn's mixture interface: clusters, densities and outliers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import DensityMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from deciban.engines import parted
from deciban.errors import DecibanError, HyperparameterError, InputError, NotAvailableError
from deciban.estimators.parameters import FamilyParameters
from deciban.families.gaussian import Gaussian
from deciban.families.gaussian.family import Structure
from deciban.families.moments import column_covariances, column_moments
from deciban.families.parameters import COUNT, POSITIVE, TOLERANCE, Ranges
from deciban.families.product import BlockRows, Product, places_of
from deciban.families.protocol import Density, Family, Rows, Rule, set_input_tags
from deciban.latent.em import NOT_EXACT, Trace
from deciban.latent.mixture import Criterion, Mixture
from deciban.latent.mixture_fit import FittedMixture
from deciban.model.fit import by_type
from deciban.read.tables import HEAD, Table
from deciban.statistics import Array
from deciban.store.checks import require
from deciban.store.estimators import check_parameters

STRUCTURES: tuple[Structure, ...] = ("full", "tied", "diagonal", "spherical")  # tried with several sizes


class MixtureModel(DensityMixin, FamilyParameters):
    """Mixture of any family, with scikit-learn's mixture interface.

    Parameters
    ----------
    n_components : int or iterable of int, default=1
        Number of components, or several numbers among which `criterion` chooses; with family "auto", also among the
        structures of the covariances.
    family : Family, dict of {column: Family} or "auto", default="auto"
        Family of the components. With "auto", families are chosen by the types of the columns.
    rule : {"map", "ml"}, default="map"
        Rule under which EM maximises; the prior of "map" keeps components from collapsing.
    start : {"k-means++", "random"}, default="k-means++"
        First estimate: models of single rows that are far apart, or random responsibilities.
    n_starts : int, default=5
        Number of short runs of EM from different starts; the best one is continued.
    max_iter : int, default=1000
        Largest number of iterations.
    tol : float, default=1e-7
        EM stops when an iteration gains less than this per row.
    pseudo_count : float, default=1.0
        Parameter of the Dirichlet prior of the weights; 1 is uniform.
    criterion : {"bic", "icl", "heldout"}, default="bic"
        How the number of components is chosen.
    random_state : int, numpy.random.RandomState or None, default=None
        Source of the random starts.
    progress : bool, default=False
        Whether to show a progress bar on a terminal.

    Attributes
    ----------
    n_components_ : int
        Number of components.
    weights_ : ndarray of shape (n_components,)
        Probability of each component; components are ordered by it.
    means_ : ndarray of shape (n_components, n_features)
        Mean of each column, in the units of the data; NaN for columns whose family has none.
    covariances_ : ndarray of shape (n_components, n_features, n_features)
        Covariances of the columns; 0 between the columns of different families.
    feature_log_prob_ : ndarray, list or dict
        Log probabilities of words, ones or categories, in the form that `GenerativeClassifier` has.
    categories_ : ndarray, list or dict
        Names along the last axis of `feature_log_prob_`.
    criteria_ : dict of {int: float}
        Criterion for each number of components, with the structure that was chosen; empty for a single number.
    converged_ : bool
        Whether EM converged.
    n_iter_ : int
        Number of iterations.
    lower_bound_ : float
        Objective per row at the end.
    trace_ : Trace
        Objective after each iteration.
    fitted_ : FittedMixture
        The fitted mixture.
    training_scores_ : ndarray
        Sorted log densities of the first 65,536 rows given to `fit`.
    columns_ : sequence
        Names of the columns.
    n_features_in_ : int
        Number of columns.

    Examples
    --------
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

    RANGES: ClassVar[Ranges] = {
        "n_components": COUNT,
        "n_starts": COUNT,
        "max_iter": COUNT,
        "tol": TOLERANCE,
        "pseudo_count": POSITIVE,
    }

    fitted_: FittedMixture
    columns_: Sequence[Any]
    n_components_: int
    criteria_: dict[int, float]
    converged_: bool
    n_iter_: int
    lower_bound_: float
    trace_: Trace
    training_scores_: Array
    n_features_in_: int
    feature_names_in_: Array

    def __init__(
        self,
        n_components: int | Iterable[int] = 1,
        family: Family | Mapping[Any, Family] | str = "auto",
        *,
        rule: Rule = "map",
        start: str = "k-means++",
        n_starts: int = 5,
        max_iter: int = 1000,
        tol: float = 1e-7,
        pseudo_count: float = 1.0,
        criterion: Criterion = "bic",
        random_state: np.random.RandomState | int | None = None,
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
    def fit(self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Find the components by EM.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            Rows. Those of a Dask frame stay on its workers: choices and starts are made from the first 65,536 rows, and
            every pass of EM returns sums.
        y : object, optional
            Ignored.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row.

        Returns
        -------
        MixtureModel
            The fitted model.
        """
        check_parameters(self)
        X, passes = parted(X)
        if passes is not None and (sample_weight is not None or isinstance(self.n_components, Iterable)):
            raise NotAvailableError(
                "rows in partitions have no weights, and the number of components is given.",
                remedy="Choose it with a sample of the rows in memory.",
            )
        table = Table.of(X)
        if len(table) == 0:
            raise InputError(f"Found array with 0 sample(s) (shape={table.shape}) while a minimum of 1 is required.")
        if table.sparse and isinstance(self.family, str):
            raise InputError("a sparse table may hold counts or flags; name the family, such as Multinomial().")
        asked = by_type(self.family, table)
        several = isinstance(self.n_components, Iterable)
        if isinstance(self.n_components, str):
            raise HyperparameterError(
                f"n_components={self.n_components!r} is no number. Give one, or several such as range(1, 9)."
            )
        sizes = list(self.n_components) if isinstance(self.n_components, Iterable) else [self.n_components]
        if not sizes:
            raise HyperparameterError("n_components is empty. Give a number, or several such as range(1, 9).")
        structures = STRUCTURES if several and _open(asked) else STRUCTURES[:1]
        mixtures = [
            Mixture(
                _structured(asked, structure),
                sizes[0],
                self.pseudo_count,
                rule=self.rule,
                start=self.start,
                n_starts=self.n_starts,
                max_iter=self.max_iter,
                tol=self.tol,
            )
            for structure in structures
        ]
        options: dict[str, Any] = {
            "random_state": check_random_state(self.random_state).randint(2**31),
            "progress": self.progress,
        }
        given = _given(asked, table)
        if several:
            fitted = _best_of(mixtures, given, sizes, sample_weight, self.criterion, options)
        else:
            fitted = mixtures[0].fit(given, sample_weight, passes=passes, **options)
        validate_data(self, X, reset=True, skip_check_array=True)
        self.columns_ = table.columns
        self._set(fitted)
        self.training_scores_ = np.sort(fitted.log_density(_given(asked, table.take(slice(0, HEAD)))))
        return self

    def partial_fit(self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Add the sums of one E-step over more rows. The first call is `fit`.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            Rows.
        y : object, optional
            Ignored.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row.

        Returns
        -------
        MixtureModel
            The model itself.
        """
        if not hasattr(self, "fitted_"):
            return self.fit(X, sample_weight=sample_weight)
        self._set(self.fitted_.learn(self._rows(X), sample_weight))
        return self

    def fit_predict(self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None) -> Array:
        """Fit, and return the most probable component of each row.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            Rows.
        y : object, optional
            Ignored.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row.

        Returns
        -------
        ndarray of shape (n_samples,)
            Components.
        """
        return self.fit(X, sample_weight=sample_weight).predict(X)

    def unlearn(self, X: ArrayLike, sample_weight: ArrayLike | None = None) -> None:
        """Raise NotAvailableError: the sums depend on the estimate under which they were collected.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            Rows.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row.
        """
        raise NotAvailableError(NOT_EXACT)

    # -- answers -----------------------------------------------------------------------------------------------------
    def predict(self, X: ArrayLike) -> Array:
        """Return the most probable component of each row.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Components.
        """
        return self._fitted.predict(self._rows(X))

    def predict_proba(self, X: ArrayLike) -> Array:
        """Return the responsibilities: the probability of each component given the row.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            Responsibilities.
        """
        return self._fitted.predict_proba(self._rows(X))

    def score_samples(self, X: ArrayLike) -> Array:
        """Return log f(x) of each row.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Log densities.
        """
        return self._fitted.log_density(self._rows(X))

    def score(self, X: ArrayLike, y: object = None) -> float:
        """Return the mean log density.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            Rows.
        y : object, optional
            Ignored.

        Returns
        -------
        float
            Mean of `score_samples`.
        """
        return float(np.mean(self.score_samples(X)))

    def threshold(self, quantile: float = 0.01) -> float:
        """Return a quantile of the log densities of the rows given to `fit`.

        Parameters
        ----------
        quantile : float, default=0.01
            Share of the rows (of the first 65,536) with a lower log density.

        Returns
        -------
        float
            The log density.
        """
        check_is_fitted(self)
        if not 0 <= quantile <= 1:
            raise HyperparameterError(f"quantile={quantile} is not a share of rows between 0 and 1.")
        return float(np.quantile(self.training_scores_, quantile))

    def outliers(self, X: ArrayLike, quantile: float = 0.01) -> Array:
        """Return which rows have a log density below the threshold.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            Rows.
        quantile : float, default=0.01
            Share of the rows given to `fit` that lie below the threshold.

        Returns
        -------
        ndarray of bool of shape (n_samples,)
            Whether each row is an outlier.
        """
        return self.score_samples(X) < self.threshold(quantile)

    def sample(self, n_samples: int = 1, random_state: np.random.Generator | int | None = None) -> tuple[Rows, Array]:
        """Draw rows.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.
        random_state : int, numpy.random.Generator or None, default=None
            Source of the random numbers.

        Returns
        -------
        X : ndarray or sparse matrix of shape (n_samples, n_features)
            Rows.
        components : ndarray of shape (n_samples,)
            Component of each row.
        """
        if n_samples < 1:
            raise InputError(f"n_samples={n_samples}: ask for at least one row.")
        density, rng = self._fitted.density(), np.random.default_rng(random_state)
        codes = np.sort(density.sample_components(n_samples, rng))
        rows = density.components.sample(codes, rng)
        if isinstance(rows, BlockRows):
            family: Any = self._fitted.family
            rows = rows.side_by_side(places_of(family.keys, self.columns_))
        return rows, codes

    # -- criteria ----------------------------------------------------------------------------------------------------
    def bic(self, X: ArrayLike) -> float:
        """Return the Bayesian information criterion −2 log L + p log n; lower is better.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        float
            The criterion.
        """
        return self._fitted.bic(self._rows(X))

    def aic(self, X: ArrayLike) -> float:
        """Return the Akaike information criterion −2 log L + 2p; lower is better.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        float
            The criterion.
        """
        return self._fitted.aic(self._rows(X))

    def icl(self, X: ArrayLike) -> float:
        """Return the integrated completed likelihood: BIC + 2 × the entropy of the responsibilities.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        float
            The criterion.
        """
        return self._fitted.icl(self._rows(X))

    @property
    def weights_(self) -> Array:
        """Probability of each component, shape (n_components,)."""
        return self._fitted.weights

    @property
    def means_(self) -> Array:
        """Mean of each column in each component, shape (n_components, n_features); NaN where the family has none."""
        return column_moments(*self._columns_of_components()).means

    @property
    def covariances_(self) -> Array:
        """Covariances, shape (n_components, n_features, n_features): 0 between families, NaN where one has none."""
        return column_covariances(*self._columns_of_components())

    @property
    def feature_log_prob_(self) -> Array | list[Array] | dict[Any, Any]:
        """Log probabilities of words, ones or categories: (n_components, n_features), or an array for each column."""
        from deciban.model.explain import log_probabilities  # lazy: a fit does not need it

        return log_probabilities(self._fitted.density().components)

    @property
    def categories_(self) -> Array | list[Array] | dict[Any, Any]:
        """Words or categories along the last axis of `feature_log_prob_`, in the same form."""
        from deciban.model.explain import category_names  # lazy: a fit does not need it

        return category_names(self._fitted.density().components)

    def _columns_of_components(self) -> tuple[Density, list[list[int]], int]:
        """Return the density of the components, the positions of the columns of its blocks, and their number."""
        fitted = self._fitted
        D = len(self.columns_)
        places = fitted.family.positions(self.columns_) if isinstance(fitted.family, Product) else [list(range(D))]
        return fitted.density().components, places, D

    def check_fitted(self) -> None:
        """Raise ModelFileError if fitted attributes that were read from a file contradict each other."""
        require(len(self.columns_) == self.n_features_in_, "columns_", "a name for each column")
        require(self.n_components_ == self.fitted_.n_components, "n_components_", "the number of components")
        named = getattr(self, "feature_names_in_", None)
        require(named is None or list(named) == list(self.columns_), "feature_names_in_", "the names of the columns")
        scores = getattr(self, "training_scores_", np.zeros(1))  # not in former files
        right = scores.ndim == 1 and scores.dtype == np.float64 and len(scores) and not np.isnan(scores).any()
        require(right, "training_scores_", "numbers")

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

    def _rows(self, X: ArrayLike) -> Any:
        check_is_fitted(self)
        table, names = Table.of(X), getattr(self, "feature_names_in_", None)
        if names is not None and table.framed and table.named and sorted(table.columns) == sorted(names):
            table = table.arranged(names.tolist(), ())
        else:
            validate_data(self, X, reset=False, skip_check_array=True)
        return _given(self.fitted_.family, table)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        set_input_tags(tags, self.family)
        tags.input_tags.sparse &= not isinstance(self.family, str)
        return tags


def _given(family: Family, table: Table) -> Any:
    """Return the table as the family's `encode` takes it."""
    return table if isinstance(family, Product) else table.pick()


def _structured(family: Any, structure: Structure) -> Any:
    """Replace structure "auto", which labels would choose, by another."""
    if isinstance(family, Product):
        parts = {key: _structured(part, structure) for key, part in family.families.items()}
        return replace(family, families=parts)
    return replace(family, structure=structure) if _open(family) else family


def _open(family: Any) -> bool:
    """Whether a family, or one of its blocks, has covariances whose structure is not given."""
    if isinstance(family, Product):
        return any(_open(part) for part in family.families.values())
    return isinstance(family, Gaussian) and family.structure == "auto"


def _best_of(
    mixtures: Sequence[Mixture], X: Any, sizes: Sequence[int], weight: Any, by: Criterion, options: dict[str, Any]
) -> FittedMixture:
    """Fit each size of each mixture and return the one of lowest criterion; of equal ones the first."""
    best: FittedMixture | None = None
    failure: DecibanError | None = None
    for mixture in mixtures:
        try:
            fitted = mixture.fit_size(X, sizes, weight, by=by, **options)
        except DecibanError as error:
            failure = error
            continue
        if best is None or min(fitted.criteria.values()) < min(best.criteria.values()):
            best = fitted
    if best is None and failure is not None:
        raise failure
    return best  # type: ignore[return-value]
