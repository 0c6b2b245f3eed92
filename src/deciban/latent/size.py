"""The number of components: by an information criterion, or by the likelihood of rows held out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np

from deciban.errors import DecibanError, HyperparameterError
from deciban.features.weights import row_weights
from deciban.latent.fitted_mixture import FittedMixture

if TYPE_CHECKING:
    from deciban.latent.mixture import Mixture

Criterion: TypeAlias = Literal["bic", "icl", "heldout"]
FOLDS = 5


def best_size(
    mixture: Mixture, X: Any, sizes: Iterable[int], sample_weight: Any, by: Criterion, options: dict[str, Any]
) -> FittedMixture:
    """Fit every size, and keep the one with the least criterion; sizes that collapse are passed over."""
    if by not in get_args(Criterion):
        raise HyperparameterError(f"by={by!r} is not one of {', '.join(get_args(Criterion))}.")
    wanted = list(sizes)
    if not wanted:
        raise HyperparameterError("there are no sizes to choose from. Give some, such as range(1, 9).")
    criteria: dict[int, float] = {}
    fits: dict[int, FittedMixture] = {}
    failure: DecibanError | None = None
    for M in wanted:
        sized = replace(mixture, n_components=M)
        try:
            fits[M] = sized.fit(X, sample_weight, **options)
            if by == "heldout":
                criteria[M] = held_out(sized, X, sample_weight, options)
            else:
                criteria[M] = getattr(fits[M], by)(X, sample_weight)
        except DecibanError as error:
            failure = error
    if not criteria and failure is not None:
        raise failure
    best = min(criteria, key=lambda M: criteria[M])
    return replace(fits[best], criteria=criteria)


def held_out(mixture: Mixture, X: Any, sample_weight: Any, options: dict[str, Any]) -> float:
    """−log-likelihood a row, each fold scored by the mixture of the others; read by `mean`, so that nothing is 0."""
    whole = mixture.component.encode(X, ())
    n = whole.shape[0]
    weight = row_weights(sample_weight, n)
    weight = np.ones(n) if weight is None else weight
    fold = np.random.default_rng(0).permutation(n) % min(FOLDS, n)
    total = 0.0
    for k in range(fold.max() + 1):
        rest, out = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        if weight[rest].any() and weight[out].any():
            fitted = mixture.fit(whole[rest], weight[rest], **options)
            total += float(weight[out] @ fitted.log_density(whole[out], "mean"))
    return -total / float(weight.sum())
