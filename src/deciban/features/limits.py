"""Which words to keep: not too rare, not too common, the most frequent, or those that say most about the class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from deciban.errors import HyperparameterError, InputError
from deciban.features.vocabulary import Vocabulary

Array = NDArray[Any]


def mutual_information(documents: Array, rows: Array) -> Array:
    """What the presence of each word says about the class, in nats: (V,).

        I(C; W) = Σ_c Σ_w P(c, w) log P(c, w) / (P(c) P(w)),   w is present or absent

    `documents` is (K, V), of each class the documents that hold a word; `rows` (K,), its documents.
    Reference: McCallum and Nigam, A comparison of event models for naive Bayes text classification, 1998.

    >>> mutual_information(np.array([[2.0, 1.0], [0.0, 1.0]]), np.array([2.0, 2.0])).round(3) + 0.0
    array([0.693, 0.   ])
    """
    from scipy.special import xlogy

    n = rows.sum()
    total = np.zeros(documents.shape[1])
    for present in (documents, rows[:, None] - documents):
        joint = present / n
        expected = (rows[:, None] / n) * joint.sum(axis=0)
        total += (xlogy(joint, joint) - xlogy(joint, expected)).sum(axis=0)
    return np.maximum(total, 0.0)


@dataclass(frozen=True)
class Limits:
    """Words to keep by the number of documents that hold them (a share of all if not whole), and how many at most."""

    min_df: float = 1
    max_df: float = 1.0
    most: int | None = None
    by: Literal["frequency", "information"] = "frequency"

    def __post_init__(self) -> None:
        for name in ("min_df", "max_df"):
            value = getattr(self, name)
            if value < 0 or (not isinstance(value, Integral) and value > 1):
                raise HyperparameterError(f"{name}={value} must be a whole number of documents, or a share of them.")
        if self.most is not None and self.most < 1:
            raise HyperparameterError(f"at most {self.most} words would leave none; it must be at least 1.")
        if self.by not in ("frequency", "information"):
            raise HyperparameterError(f"by must be 'frequency' or 'information', not {self.by!r}.")

    @property
    def none(self) -> bool:
        return self.min_df in (0, 1) and isinstance(self.min_df, Integral) and self.max_df == 1.0 and self.most is None

    def kept(self, n: float, counts: Array, documents: Array, rows: Array | None = None) -> Array:
        """Columns to keep, in order. `counts` is (V,) of tokens, `documents` (K, V), n and `rows` (K,) of documents.

        >>> Limits(min_df=2).kept(3, np.array([5, 2, 9]), np.array([[1, 2, 3]]))
        array([1, 2])
        """
        frequency = documents.sum(axis=0)
        least = self.min_df if isinstance(self.min_df, Integral) else self.min_df * n
        most = self.max_df if isinstance(self.max_df, Integral) else self.max_df * n
        if most < least:
            raise InputError(f"max_df corresponds to < documents than min_df: {most:g} < {least:g}.")
        inside = np.flatnonzero((frequency >= least) & (frequency <= most))
        if self.most is not None and len(inside) > self.most:
            if self.by == "frequency":
                worth = counts[inside]
            elif rows is None:
                raise InputError("mutual information with the class needs class labels.")
            else:
                worth = mutual_information(documents[:, inside], rows)
            # the very call of scikit-learn, so that ties fall alike
            inside = np.sort(inside[(-worth).argsort()[: self.most]])
        if not len(inside):
            raise InputError("After pruning, no terms remain. Try a lower min_df or a higher max_df.")
        return inside


NO_LIMITS = Limits()


def restricted(
    known: Vocabulary, kept: Array, places: Sequence[Sequence[Array]], limits: Limits
) -> tuple[Vocabulary, list[list[Array]]]:
    """A vocabulary of some columns: what is outside is unk where their number was capped, else dropped."""
    smaller = replace(known.take(kept), kind="learnt" if limits.most is None else "capped")
    new = np.full(len(known), len(kept) if smaller.unk else -1, np.int32)
    new[kept] = np.arange(len(kept))
    return smaller, [[new[level] for level in levels] for levels in places]
