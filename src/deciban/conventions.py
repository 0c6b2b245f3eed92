"""scikit-learn's conventions: what deciban's estimators have from it, imported without what they do not use.

For a few functions scikit-learn imports all of scipy.stats, and pandas wherever it is installed: two thirds of the
second that importing it takes. Both are imported when something of them is asked for; in a process that has them, or
has scikit-learn, nothing is different.
"""

from deciban.later import waiting

with waiting("scipy.stats", "pandas"):
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
