"""Weights of words by class, (V, K): a whole table, or the rows of the words that are asked for.

The logarithms of 200,000 words in 20 classes take 30 ms. A model that has just learnt a lesson answers about a few
texts at once: it needs the rows of their words only. The whole table is computed when many texts are scored, or when
nothing else is to do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from deciban.families.multinomial import WORDS_AT_A_TIME
from deciban.statistics import Array


class WordWeights:
    """Weights of words, computed when they are needed; mutable: the whole table is kept once it was computed.

    >>> weights = WordWeights.fixed(np.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> weights.complete, weights.rows(np.array([1])), weights.scaled(np.array([2.0, 0.5])).table()
    (True, array([[3., 4.]]), array([[2. , 4. ],
           [1.5, 2. ]]))
    """

    def __init__(
        self, shape: tuple[int, int], some: Callable[[Array], Array], every: Callable[[], Array] | None = None
    ) -> None:
        """`some` returns the rows of columns of the vocabulary, `every` the whole table where that is faster."""
        self.shape, self._some, self._every = shape, some, every
        self._table: Array | None = None

    @classmethod
    def fixed(cls, table: Array) -> WordWeights:
        """Return weights whose table is known."""
        table = np.ascontiguousarray(table, np.float64)
        made = cls(table.shape, lambda at: table[at], lambda: table)
        made._table = table
        return made

    @property
    def complete(self) -> bool:
        """Whether the whole table was computed."""
        return self._table is not None

    def table(self) -> Array:
        """Return all weights, (V, K)."""
        table = self._table
        if table is None:
            for _ in self.steps():
                pass
            table = self._table
        return table  # type: ignore[return-value]

    def steps(self) -> Iterator[None]:
        """Compute the whole table in steps of about a millisecond; it is kept at the end."""
        if self._table is not None:
            return
        if self._every is not None:
            self._table = np.ascontiguousarray(self._every(), np.float64)
            return
        table = np.empty(self.shape)
        for start in range(0, len(table), WORDS_AT_A_TIME):
            at = np.arange(start, min(start + WORDS_AT_A_TIME, len(table)))
            table[at] = self._some(at)
            yield
        self._table = table

    def rows(self, at: Array) -> Array:
        """Return the weights of some columns of the vocabulary, (n, K)."""
        table = self._table
        return self._some(at) if table is None else table[at]

    def scaled(self, factors: Array) -> WordWeights:
        """Return the weights, each word's multiplied by its factor, (V,)."""
        if self.complete:
            return WordWeights.fixed(self.table() * factors[:, None])
        return WordWeights(self.shape, lambda at: self.rows(at) * factors[at, None])

    def __reduce__(self) -> Any:
        return WordWeights.fixed, (self.table(),)
