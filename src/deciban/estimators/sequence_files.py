"""Hidden Markov models as files: what is stored of one, and how it is put together again."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from deciban.conventions import check_is_fitted
from deciban.families.protocol import Density, Family, check_rule
from deciban.latent.em import Trace
from deciban.latent.hmm import HMMDensity, HMMStats
from deciban.store import save
from deciban.store.checks import require

Check = Callable[[], None]


@dataclass(frozen=True, eq=False)
class StoredHMM:
    """A hidden Markov model as a file holds it: sums, or the density where its parameters were given."""

    parameters: dict[str, Any]
    family: Any
    stats: Any
    density: Any
    trace: Any
    exact: Any
    names: Any  # of the states

    @property
    def rows(self) -> float:
        """Σ w of the steps learnt."""
        return 0.0 if self.stats is None else float(self.stats.rows.sum())

    def restored(self, check: Check | None, key: Any = None) -> Any:
        """The model, estimated at once, so that sums and family that do not belong together are noticed."""
        from deciban.estimators.sequences import HiddenMarkovModel

        if check is not None:
            check()
        _parameters(HiddenMarkovModel, self.parameters)
        require(isinstance(self.family, Family) and isinstance(self.names, tuple), "a model", "a family and states")
        require(self.trace is None or isinstance(self.trace, Trace), "trace", "to be one")
        model = HiddenMarkovModel(**self.parameters)
        model.family_, model.trace_, model.exact_ = self.family, self.trace, bool(self.exact)
        if self.stats is not None:
            right = isinstance(self.stats, HMMStats) and self.stats.labels.get("next") == self.stats.axis
            require(right and tuple(self.stats.axis.names) == self.names, "stats", "the sums of the states")
            model._set(self.stats)
        else:
            model._known(self.names, self.density)
        _chain(model.density, len(self.names))
        return model


@dataclass(frozen=True, eq=False)
class StoredHMMClassifier:
    """One stored model for each class."""

    parameters: dict[str, Any]
    names: Any
    models: Any
    weights: Any  # (K,)

    @property
    def rows(self) -> float:
        """Σ w of the sequences learnt."""
        return float(np.sum(self.weights))

    def restored(self, check: Check | None, key: Any = None) -> Any:
        """The classifier."""
        from deciban.estimators.sequence_classifier import HMMClassifier

        if check is not None:
            check()
        _parameters(HMMClassifier, self.parameters)
        whole = isinstance(self.names, tuple) and isinstance(self.models, tuple)
        require(whole and all(isinstance(model, StoredHMM) for model in self.models), "models", "one for each class")
        require(len(self.names) == len(self.models) == np.size(self.weights), "models", "as many as there are classes")
        classifier = HMMClassifier(**self.parameters)
        models = [model.restored(None) for model in self.models]
        classifier._set(self.names, dict(zip(self.names, models)), np.asarray(self.weights, dtype=float))
        return classifier


class SavedSequences:
    """What models of sequences can do with files."""

    def save(self, path: str | os.PathLike[str], *, note: str = "") -> None:
        """Write the model to a file, whole or not at all; `deciban.load` reads it."""
        save(self, path, note=note)

    def stored(self) -> StoredHMM | StoredHMMClassifier:
        """As a file holds it."""
        model: Any = self
        check_is_fitted(model, "classes_")
        parameters, names = model.get_params(deep=False), tuple(model.classes_.tolist())
        if hasattr(model, "models_"):
            each = tuple(part.stored() for part in model.models_.values())
            return StoredHMMClassifier(parameters, names, each, model.rows_)
        density = model.density if model.stats_ is None else None
        return StoredHMM(parameters, model.family_, model.stats_, density, model.trace_, model.exact_, names)


def _parameters(cls: Any, given: Any) -> None:
    known = set(cls._get_param_names())
    require(isinstance(given, dict) and set(given) <= known, cls.__name__, "parameters that it has")
    check_rule(str(given.get("rule", "mean")))


def _chain(density: Any, S: int) -> None:
    right = isinstance(density, HMMDensity) and isinstance(density.emissions, Density) and density.emissions.K == S
    shapes = right and density.log_start.shape == (S,) and density.log_transitions.shape == (S, S)
    require(shapes, "a density", f"{S} states")
    sums = [np.exp(part).sum(axis=-1) for part in (density.log_start, density.log_transitions)]
    require(all(np.allclose(part, 1.0) for part in sums), "a density", "probabilities that sum to 1")
