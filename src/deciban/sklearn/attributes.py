"""Shapes of the fitted attributes of the drop-ins, by which a model file is checked (see `deciban.store.estimators`).

A drop-in that is not in `SHAPES` cannot be saved in a model file; pickle it instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from deciban.store.checks import require
from deciban.store.estimators import LARGEST

Shapes = dict[str, str]  # attribute → description

ROWS: Shapes = {"n_features_in_": "D size", "feature_names_in_": "optional D names"}
LABELLED: Shapes = {**ROWS, "classes_": "K labels"}
DISCRETE: Shapes = {**LABELLED, "class_count_": "K count", "class_log_prior_": "K log"}
COUNTED: Shapes = {**DISCRETE, "feature_count_": "K D count", "feature_log_prob_": "K D log"}


def _gaussian_nb(model: Any) -> Shapes:
    values = "K D count" if model.handle_missing == "ignore" else "optional K D count"
    own = {"theta_": "K D real", "var_": "K D count", "class_count_": "K count", "class_prior_": "K count"}
    return {**LABELLED, **own, "epsilon_": "number", "value_count_": values}


def _complement_nb(model: Any) -> Shapes:
    return {**COUNTED, "feature_log_prob_": "K D real", "feature_all_": "D count"}  # weights have either sign


def _categorical_nb(model: Any) -> Shapes:
    tables = {"category_count_": "D list", "feature_log_prob_": "D list", "n_categories_": "D whole"}
    encodes = model.categories == "auto" or model.handle_missing == "ignore"
    return {**DISCRETE, **tables, "categories_": "D list" if encodes else "optional D list"}


def _linear(model: Any) -> Shapes:
    own = {"priors_": "K count", "means_": "K D real", "coef_": "L D real", "intercept_": "L real"}
    kept = "" if model.solver != "svd" or model.store_covariance else "optional "
    own |= dict.fromkeys(("_max_components", "_n_features_out"), "optional C size")
    own |= {"covariance_": f"{kept}D D real", "_moments": "optional other"}
    if model.solver == "lsqr":
        return {**LABELLED, **own}
    own |= {"scalings_": "D R real", "explained_variance_ratio_": "V real"}
    return {**LABELLED, **own, **({"xbar_": "D real"} if model.solver == "svd" else {})}


def _quadratic(model: Any) -> Shapes:
    own = {"priors_": "K count", "means_": "K D real", "scalings_": "K list", "rotations_": "K list"}
    own |= {"covariance_": "K list" if model.store_covariance else "optional K list", "_moments": "optional other"}
    return {**LABELLED, **own}


def _pca(model: Any) -> Shapes:
    own = {"components_": "C D real", "mean_": "D real", "n_components_": "C size", "n_samples_": "number"}
    own |= dict.fromkeys(("explained_variance_", "explained_variance_ratio_", "singular_values_"), "C count")
    own |= {"_spectrum": "optional other", "_fit_svd_solver": "optional text"}
    return {**ROWS, **own, "noise_variance_": "number"}


def _mixture(model: Any) -> Shapes:
    shape = {"full": "K D D", "tied": "D D", "diag": "K D", "spherical": "K"}[model.covariance_type]
    own = {"weights_": "K positive", "means_": "K D real", "converged_": "flag", "n_iter_": "number"}
    own |= dict.fromkeys(("covariances_", "precisions_", "precisions_cholesky_"), f"{shape} real")
    return {**ROWS, **own, "lower_bound_": "number", "lower_bounds_": "optional T list"}


SHAPES: dict[str, Callable[[Any], Shapes]] = {
    "GaussianNB": _gaussian_nb,
    "MultinomialNB": lambda model: COUNTED,
    "ComplementNB": _complement_nb,
    "BernoulliNB": lambda model: COUNTED,
    "CategoricalNB": _categorical_nb,
    "LinearDiscriminantAnalysis": _linear,
    "QuadraticDiscriminantAnalysis": _quadratic,
    "PCA": _pca,
    "GaussianMixture": _mixture,
    # scikit-learn weighs by `idf_` where it is there, also if `use_idf` was set to False after a fit
    "TfidfTransformer": lambda model: {**ROWS, "idf_": "D factor" if model.use_idf else "optional D factor"},
}
MOST_EMPTY = 2**20  # counts of categories that a drop-in may have by `min_categories` alone


# -- what shapes cannot express ---------------------------------------------------------------------------------------
def check_fitted(model: Any, name: str) -> None:
    """Raise ModelFileError if attributes and parameters of a drop-in contradict each other."""
    for each in ("priors", "class_prior"):
        prior = getattr(model, each, None)
        require(prior is None or np.shape(prior) == model.classes_.shape, each, "a probability for each class")
    alpha = np.asarray(getattr(model, "alpha", 0.0))
    right = alpha.shape in ((), (model.n_features_in_,)) and alpha.dtype.kind in "fiu" and bool((alpha >= 0).all())
    require(right, "alpha", "a number of at least 0, or one for each column")
    CHECKS.get(name, lambda model: None)(model)


def _check_categorical_nb(model: Any) -> None:
    K, sizes = len(model.classes_), np.asarray(model.n_categories_)
    least = model.min_categories
    right = least is None or (np.shape(least) in ((), sizes.shape) and np.asarray(least).dtype.kind == "i")
    if right and least is not None:  # learning makes tables of this size
        right = K * sum(np.broadcast_to(least, sizes.shape).tolist()) <= max(MOST_EMPTY, 8 * K * int(sizes.sum()))
    require(right, "min_categories", "a whole number, or one for each column, and not far above the categories")
    shapes = [(K, size) for size in sizes.tolist()]
    _arrays(model.category_count_, shapes, "category_count_", lambda table: (table >= 0).all())
    _arrays(model.feature_log_prob_, shapes, "feature_log_prob_", lambda table: (table <= 0).all(), False)
    for names, size in zip(getattr(model, "categories_", ()), sizes):
        right = isinstance(names, np.ndarray) and names.ndim == 1 and names.dtype == object
        right = right and (len(names) <= size if model.categories == "auto" else not len(names))
        require(right and len(set(names.tolist())) == len(names), "categories_", "distinct names of categories")


def _check_moments(model: Any) -> None:
    """Check the sums that a discriminant analysis learns by, which a file holds as a plain tuple."""
    held = vars(model).get("_moments")
    if held is not None:
        K, D = model.means_.shape
        require(isinstance(held, tuple) and len(held) == 3, "_moments", "weights, means and sums of products")
        _arrays(held, [(K,), (K, D), (K, D, D)], "_moments")
        right = ((held[0] == 0) | (held[0] >= 1 / LARGEST)).all() and held[0].any()  # means divide by them
        require(right, "_moments", f"weights of 0, or of at least {1 / LARGEST:g}, and not all of 0")
        require((np.diagonal(held[2], axis1=1, axis2=2) >= 0).all(), "_moments", "sums of squares of at least 0")


def _check_linear(model: Any) -> None:
    K, D = model.means_.shape
    _check_moments(model)
    require(len(model.coef_) == (1 if K == 2 else K), "coef_", "a row for each class, or one for two classes")
    most = min(K - 1, D) if model.n_components is None else model.n_components
    model._max_components = model._n_features_out = vars(model).get("_max_components", most)  # not in former files


def _check_quadratic(model: Any) -> None:
    D = model.n_features_in_
    _check_moments(model)
    _arrays(model.scalings_, [None] * len(model.scalings_), "scalings_", lambda values: (values >= 0).all())
    _arrays(model.rotations_, [(D, len(values)) for values in model.scalings_], "rotations_")
    kept = getattr(model, "covariance_", [])
    _arrays(kept, [(D, D)] * len(kept), "covariance_")


def _check_pca(model: Any) -> None:
    held = vars(model).setdefault("_spectrum", None)  # not in former files
    vars(model).setdefault("_fit_svd_solver", model.svd_solver)
    variances = np.append(np.asarray(model.explained_variance_, dtype=float), model.noise_variance_)
    right = ((variances == 0) | (variances >= 1 / LARGEST)).all()  # their inverses are finite
    require(right and model.n_samples_ >= 1, "PCA", "a number of rows, and variances of at least 0")
    if held is not None:
        require(type(held) is tuple and len(held) == 2, "_spectrum", "singular values and directions")
        _arrays(held[:1], [None], "_spectrum", lambda values: (values >= 0).all())
        _arrays(held[1:], [(len(held[0]), model.n_features_in_)], "_spectrum")
        _check_orthonormal(held[1], "_spectrum")
    _check_orthonormal(model.components_, "components_")


def _check_orthonormal(rows: Any, name: str) -> None:
    products = np.asarray(rows, dtype=float) @ np.asarray(rows, dtype=float).T
    require(np.abs(products - np.eye(len(rows))).max(initial=0.0) < 1e-2, name, "orthonormal directions")


def _check_mixture(model: Any) -> None:
    root = model.precisions_cholesky_
    diagonal = np.diagonal(root, axis1=-2, axis2=-1) if model.covariance_type in ("full", "tied") else root
    require((diagonal > 0).all(), "precisions_cholesky_", "a positive diagonal")
    bounds = getattr(model, "lower_bounds_", [])
    require(all(isinstance(bound, int | float | np.floating) for bound in bounds), "lower_bounds_", "numbers")


CHECKS: dict[str, Callable[[Any], None]] = {
    "CategoricalNB": _check_categorical_nb,
    "LinearDiscriminantAnalysis": _check_linear,
    "QuadraticDiscriminantAnalysis": _check_quadratic,
    "PCA": _check_pca,
    "GaussianMixture": _check_mixture,
}


def _arrays(
    parts: Iterable[Any],
    shapes: Iterable[tuple[int, ...] | None],
    name: str,
    good: Callable[[Any], Any] = lambda array: True,
    finite: bool = True,
) -> None:
    """Check a list of arrays of floats; None stands for any length of an array of one axis."""
    for part, shape in zip(parts, shapes, strict=True):
        right = isinstance(part, np.ndarray) and part.dtype in (np.float64, np.float32)
        right = right and (part.ndim == 1 if shape is None else part.shape == shape)
        right = right and bool((np.abs(part) <= LARGEST).all() if finite else not np.isnan(part).any())
        require(right and good(part), name, "arrays of numbers that fit together")
