"""Drop-in classes: scikit-learn's own names and arguments on deciban's kernels. Changing one import is enough.

    from deciban.sklearn import CountVectorizer, GaussianNB

`python -m deciban.sklearn script.py` runs an unchanged program with them; `patch_sklearn()` replaces scikit-learn's
classes in the running process.
"""

from __future__ import annotations

import importlib
import os
import sys
import warnings
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
}

__all__ = [*_HOME, "patch_sklearn", "unpatch_sklearn"]
VARIABLE = "DECIBAN_PATCH_SKLEARN"  # environment variable of a patched process, which its workers inherit
PUBLIC = (  # modules of scikit-learn with the classes that are replaced
    "sklearn.naive_bayes",
    "sklearn.discriminant_analysis",
    "sklearn.mixture",
    "sklearn.decomposition",
    "sklearn.feature_extraction.text",
)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'deciban.sklearn' has no attribute {name!r}")
    return getattr(importlib.import_module(f"deciban.sklearn.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)


# -- patching scikit-learn: in this process, and in the workers that it starts -----------------------------------------
def _pairs() -> list[tuple[type, type]]:
    """Scikit-learn's classes, each with its drop-in."""
    from deciban.sklearn.dropin import DropInType

    named = [__getattr__(name) for name in _HOME]
    return [(cls.original, cls) for cls in named if isinstance(cls, DropInType) and cls.original is not None]


def patch_sklearn() -> None:
    """Replace scikit-learn's classes by the drop-ins, until `unpatch_sklearn`.

    Modules that import the classes later get the drop-ins; no file is changed. Classes that a program derives from them
    are derived from scikit-learn's own. With a version of scikit-learn that was not tested, a warning is given and
    nothing is replaced.

    Examples
    --------
    >>> from deciban.sklearn import is_accelerated, patch_sklearn, unpatch_sklearn
    >>> patch_sklearn()
    >>> from sklearn.naive_bayes import GaussianNB
    >>> is_accelerated(GaussianNB())
    True
    >>> unpatch_sklearn()
    """
    import sklearn

    from deciban.sklearn.dropin import TESTED, supported

    if not supported():
        warnings.warn(
            f"scikit-learn {sklearn.__version__} is not patched: deciban was tested with {', '.join(TESTED)}.",
            stacklevel=2,
        )
        return
    for module in PUBLIC:
        importlib.import_module(module)
    for original, cls in _pairs():
        _replace(original, cls)
    os.environ[VARIABLE] = "1"


def unpatch_sklearn() -> None:
    """Restore scikit-learn's classes.

    Examples
    --------
    >>> from deciban.sklearn import unpatch_sklearn
    >>> unpatch_sklearn()
    """
    os.environ.pop(VARIABLE, None)
    for original, cls in _pairs():
        _replace(cls, original)


def _replace(old: type, new: type) -> None:
    """Replace a class in all modules of scikit-learn that hold it under its name."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "sklearn" and getattr(module, "__dict__", {}).get(old.__name__) is old:
            setattr(module, old.__name__, new)


if os.environ.get(VARIABLE):  # this process is a worker of a patched process
    patch_sklearn()
