"""Generative classification that answers with evidence, and can take it back.

Names are loaded when they are first used, so that `import deciban` stays quick.
"""

from __future__ import annotations

TYPE_CHECKING = False  # `typing` is slow to import
if TYPE_CHECKING:
    from typing import Any

__version__ = "0.1.0.dev0"

_HOME = {
    # families: how one class produces data
    "Bernoulli": "families.bernoulli",
    "Binned": "families.binned",
    "Categorical": "families.categorical",
    "Gamma": "families.gamma",
    "Gaussian": "families.gaussian",
    "Multinomial": "families.multinomial",
    "Poisson": "families.poisson",
    "Product": "families.product",
    "Transformed": "families.transformed",
    "Text": "text",
    # hidden variables
    "Mixture": "latent.mixture",
    "GaussianWithGaps": "latent.gaussian_missing",
    "MixtureModel": "estimators.clustering",
    "SemiSupervised": "estimators.semi_supervised",
    "HiddenMarkovModel": "estimators.hidden_markov",
    "HMMClassifier": "estimators.hmm_classifier",
    # topics
    "PLSA": "topics.plsa",
    "TopicModel": "topics.topic_model",
    "ClassTopics": "topics.class_topics",
    # projections from statistics
    "PCA": "estimators.projections",
    "Fisher": "estimators.projections",
    # the classifier
    "GenerativeClassifier": "estimators.classifier",
    "compare": "model.evaluation",
    # engines that compute the sums of files and of tables in databases
    "SqlTable": "engines.database",
    "engine": "engines",
    # model files
    "describe": "store",
    "load": "store",
    "release": "store",
    "save": "store",
    # threads
    "get_threads": "kernels.parallel",
    "set_threads": "kernels.parallel",
    # the algebra, for those who add a family
    "Axis": "statistics",
    "Members": "statistics",
    "Stats": "statistics",
}

__all__ = [*_HOME, "__version__"]


def __getattr__(name: str) -> Any:
    import importlib  # here, for a mail that a service filters

    if name not in _HOME:
        from importlib.util import find_spec

        if not name.startswith("_") and find_spec(f"deciban.{name}") is not None:
            return importlib.import_module(f"deciban.{name}")  # a subpackage, such as deciban.plots
        raise AttributeError(f"module 'deciban' has no attribute {name!r}")
    return getattr(importlib.import_module(f"deciban.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
