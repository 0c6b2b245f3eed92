"""Drop-in classes: scikit-learn's own names and arguments on deciban's kernels. Changing one import is enough.

    from deciban.sklearn import CountVectorizer, GaussianNB

`python -m deciban.sklearn script.py` runs a program with them, without a change; `patch_sklearn()` does so from within.
"""

from __future__ import annotations

import importlib
import os
from typing import Any

_HOME = {
    "GaussianNB": "gaussian_nb",
    "MultinomialNB": "naive_bayes",
    "ComplementNB": "naive_bayes",
    "BernoulliNB": "naive_bayes",
    "CategoricalNB": "categorical_nb",
    "LinearDiscriminantAnalysis": "discriminant_analysis",
    "QuadraticDiscriminantAnalysis": "discriminant_analysis",
    "GaussianMixture": "mixture",
    "LatentDirichletAllocation": "decomposition",
    "PCA": "decomposition",
    "CountVectorizer": "text",
    "HashingVectorizer": "text",
    "TfidfTransformer": "text",
    "TfidfVectorizer": "text",
    "from_sklearn": "convert",
    "to_sklearn": "convert",
    "is_accelerated": "dropin",
    "patch_sklearn": "patch",
    "unpatch_sklearn": "patch",
}

__all__ = [*_HOME]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'deciban.sklearn' has no attribute {name!r}")
    return getattr(importlib.import_module(f"deciban.sklearn.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)


if os.environ.get("DECIBAN_PATCH_SKLEARN"):  # a worker of a process that is patched
    __getattr__("patch_sklearn")()
