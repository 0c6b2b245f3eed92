"""Do the first words of a topic belong together? By the documents that hold them both.

    NPMI    mean over pairs of  log p(a, b)/(p(a) p(b)) / −log p(a, b)        −1 never together … 1 always
    UMass   mean over pairs of  log (D(a, b) + 1)/D(b)        b is the more probable of the two

p and D count documents of a reference corpus. A word that no document holds pairs as never together.

References: Lau, Newman and Baldwin, Machine reading tea leaves, 2014; Mimno et al., Optimizing semantic coherence in
topic models, 2011.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from deciban.errors import HyperparameterError, InputError
from deciban.kernels.choice import Array
from deciban.topics.reading import counts_of

Measure: TypeAlias = Literal["npmi", "umass"]


def coherence(first: Any, X: Any, measure: Measure = "npmi") -> Array:
    """(K,) coherence of topics whose first words are the columns first[k], most probable first, of documents X.

    >>> X = [[1, 1, 0], [2, 1, 0], [0, 0, 1], [0, 0, 4]]
    >>> coherence([[0, 1], [0, 2]], X)
    array([ 1., -1.])
    """
    if measure not in get_args(Measure):
        raise HyperparameterError(f"measure={measure!r} is not one of {', '.join(get_args(Measure))}.")
    first = np.asarray(first, dtype=np.intp)
    X = counts_of(X)
    if first.ndim != 2 or first.shape[1] < 2:
        raise InputError("coherence is about pairs of words: give at least two a topic.")
    if first.size and (first.min() < 0 or first.max() >= X.shape[1]):
        raise InputError(f"words run to column {first.max()}, but documents have {X.shape[1]}.")
    used, local = np.unique(first, return_inverse=True)
    present = X[:, used]
    present.data = np.ones_like(present.data)
    together = (present.T @ present).toarray()
    score = {"npmi": _npmi, "umass": _umass}[measure](together, X.shape[0])
    later, earlier = np.tril_indices(first.shape[1], -1)
    local = local.reshape(first.shape)
    return score[local[:, later], local[:, earlier]].mean(axis=1)


def _npmi(together: Array, documents: int) -> Array:
    p = together / documents
    alone = np.diag(p)
    with np.errstate(divide="ignore", invalid="ignore"):
        score = np.log(p / np.outer(alone, alone)) / -np.log(p)
    score[p >= 1] = 1.0  # in every document, both
    score[together == 0] = -1.0
    return score


def _umass(together: Array, documents: int) -> Array:
    held = np.maximum(np.diag(together), 1.0)
    return np.log((together + 1) / held[None, :])


def diversity(first: Any) -> float:
    """The share of distinct words among the first words of all topics: 1 if no two topics share any.

    >>> diversity([[0, 1], [1, 2]])
    0.75
    """
    first = np.asarray(first)
    return len(np.unique(first)) / first.size
