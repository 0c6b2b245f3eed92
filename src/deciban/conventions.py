"""scikit-learn's conventions: what deciban's estimators have from it, imported in a third of the time."""

from deciban.later import quickly

with quickly():
    from sklearn.base import (
        BaseEstimator,
        ClassifierMixin,
        ClassNamePrefixFeaturesOutMixin,
        DensityMixin,
        TransformerMixin,
        clone,
    )
    from sklearn.utils import _safe_indexing, check_random_state
    from sklearn.utils.validation import check_is_fitted, validate_data

__all__ = [
    "BaseEstimator",
    "ClassNamePrefixFeaturesOutMixin",
    "ClassifierMixin",
    "DensityMixin",
    "TransformerMixin",
    "_safe_indexing",
    "check_is_fitted",
    "check_random_state",
    "clone",
    "validate_data",
]
