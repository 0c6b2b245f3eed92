"""Sequences whose states are known are counted: what was learnt can be added to, merged and taken back."""

from __future__ import annotations

from copy import copy
from typing import Any, Self

from deciban.conventions import check_is_fitted
from deciban.errors import MergeError, NotAvailableError, NotLearntError
from deciban.latent.hmm import HMMStats
from deciban.latent.hmm_reading import read_rows
from deciban.statistics import Axis


class Counting:
    """What a hidden Markov model can do with sequences of known states: + and −."""

    family_: Any
    stats_: HMMStats | None
    exact_: bool  # learnt by counting: can be taken back
    # the model's own
    fit: Any
    _model: Any
    _set: Any

    def learn(
        self, X: Any, y: Any, lengths: Any = None, *, sample_weight: Any = None, sequence_weight: Any = None
    ) -> Self:
        """Add sequences whose states are known; new states may arrive. The first call is `fit`."""
        if not hasattr(self, "stats_"):
            return self.fit(X, y, lengths, sample_weight=sample_weight, sequence_weight=sequence_weight)
        return self._set(self._sums("learnt") + self._batch(X, y, lengths, sample_weight, sequence_weight))

    def unlearn(
        self, X: Any, y: Any, lengths: Any = None, *, sample_weight: Any = None, sequence_weight: Any = None
    ) -> Self:
        """Take sequences back, as if they had never been learnt; refused where the sums show that they were not."""
        batch = self._batch(X, y, lengths, sample_weight, sequence_weight)
        return self._set(self._sums("unlearnt").without(batch, NotLearntError))

    def merge(self, other: Self) -> Self:
        """A model that has learnt the sequences of both."""
        if not isinstance(other, Counting) or self.family_ != other.family_:
            raise MergeError("the models show different families, or froze different choices at their first fit.")
        return copy(self)._set(self._sums("merged") + other._sums("merged"))

    __add__ = merge

    # -- the machinery -------------------------------------------------------------------------------------------------
    def _batch(self, X: Any, y: Any, lengths: Any, sample_weight: Any, sequence_weight: Any) -> HMMStats:
        stats = self._sums("learnt")
        rows, found = read_rows(self.family_, X, lengths, y, sample_weight, sequence_weight, stats.emissions)
        if rows.states is None or (rows.states < 0).any():
            raise NotAvailableError("steps whose states are not known need EM, which is not a sum: use fit.")
        return self._model(self.family_).collect(rows, Axis(found))

    def _sums(self, done: str) -> HMMStats:
        """The counts; refused where they are expectations."""
        check_is_fitted(self, "classes_")
        if not self.exact_ or self.stats_ is None:
            raise NotAvailableError(
                f"a model fitted by EM cannot be {done} exactly: its sums depend on the guess they were collected "
                "with. Refit it; or give `fit` every state, and it is a sum."
            )
        return self.stats_
