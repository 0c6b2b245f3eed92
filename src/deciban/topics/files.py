"""Topic models as files: parameters, and what was learnt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from deciban.conventions import check_is_fitted
from deciban.store.checks import require
from deciban.store.estimators import Estimator

Check = Callable[[], None]


@dataclass(frozen=True, eq=False)
class StoredTopics:
    """An estimator whose arrays belong together."""

    estimator: Any

    @classmethod
    def of(cls, model: Any) -> StoredTopics:
        """A fitted topic model."""
        check_is_fitted(model)
        return cls(Estimator.of(model))

    @property
    def rows(self) -> float:
        """Documents learnt."""
        return float(self.estimator.fitted.get("documents_", 0))

    def restored(self, check: Check | None, key: Any = None) -> Any:
        """The model; sizes and ranges are looked at before anything is answered."""
        if check is not None:
            check()
        require(isinstance(self.estimator, Estimator), "topics", "an estimator")
        model = self.estimator.put_together({})
        words, K = model.vocabulary_, model.n_topics_
        require(isinstance(words, np.ndarray) and words.ndim == 1 and words.dtype == object, "vocabulary_", "words")
        require(len(set(words.tolist())) == len(words), "vocabulary_", "words that differ")
        require(type(K) is int and K >= 1, "n_topics_", "a number of topics")
        shapes = {"components_": (K, len(words)), "counts_": (len(words), K), "alpha_": (K,), "weights_": (K,)}
        for name, shape in shapes.items():
            held = vars(model).get(name)
            if held is None:
                continue
            right = isinstance(held, np.ndarray) and held.shape == shape and held.dtype.kind == "f"
            require(right, name, f"the shape {shape}")
            require(bool((held >= 0).all() and np.isfinite(held).all()), name, "finite numbers of at least 0")
        model.topics_  # noqa: B018  what cannot be read is noticed now
        return model
