"""Term transforms: how much a word counts that a document holds so often.

    counts   x                  binary   1 if x > 0                 log   log(1 + x)
    idf      times log((1 + n)/(1 + n_word)) + 1, frozen at the first fit        unit   divided by the row's length

What is summed is rounded to multiples of 2⁻²⁰, so that sums are exact in any order. The idf is a factor of each word:
it multiplies sums as well as rows, so it stays out of the sums and is not rounded.

Reference: Rennie et al., Tackling the poor assumptions of naive Bayes text classifiers, 2003.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from deciban.errors import HyperparameterError
from deciban.statistics import Array
from deciban.text.vocabulary import Vocabulary, text_array

UNITS = 2.0**20
AMOUNTS = ("counts", "binary", "log")
FACTORS = ("idf", "unit")


@dataclass(frozen=True)
class Terms:
    """A transform: an amount, and perhaps factors.

    >>> Terms.of("log+idf+unit")
    Terms(amount='log', idf=True, unit=True)
    """

    amount: str = "counts"
    idf: bool = False
    unit: bool = False

    @classmethod
    def of(cls, transform: str) -> Terms:
        """The transform that a text names: amounts and factors joined by +."""
        said = [part.strip() for part in transform.split("+")]
        amounts = [part for part in said if part in AMOUNTS]
        if len(amounts) > 1 or len(set(said)) < len(said) or not set(said) <= {*AMOUNTS, *FACTORS}:
            raise HyperparameterError(
                f"transform={transform!r}: one of {', '.join(AMOUNTS)}, perhaps with idf or unit: 'log+idf+unit'."
            )
        return cls(amounts[0] if amounts else "counts", "idf" in said, "unit" in said)

    @property
    def plain(self) -> bool:
        """Whether terms can be summed while documents are read: a row's length is known too late."""
        return not self.unit

    @property
    def steps(self) -> Callable[[int], Array] | None:
        """What the t-th occurrence of a word adds, for t up to a number; None where it adds 1, or nothing but once."""
        return log_steps if self.amount == "log" else None

    def amounts(self, most: int) -> Array:
        """(most + 1,) what a word counts that occurs t times, without factors.

        >>> Terms("log").amounts(2).round(3), Terms("binary").amounts(2)
        (array([0.   , 0.693, 1.099]), array([0., 1., 1.]))
        """
        if self.amount == "log":
            return np.cumsum(log_steps(most))  # exact: all are multiples of 2⁻²⁰
        times = np.arange(most + 1.0)
        return np.minimum(times, 1.0) if self.amount == "binary" else times

    def rows(self, counts: Any, idf: Array | None) -> Any:
        """Rows of counts (CSR) as rows of what is summed: rounded, and without the idf."""
        x = self.amounts(int(counts.data.max(initial=0)))[counts.data]
        if self.unit:
            row = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
            whole = x if idf is None else x * idf[counts.indices]
            norm = np.sqrt(np.bincount(row, whole * whole, counts.shape[0]))
            # a term that is there stays there, however long the row
            x = np.maximum(_rounded(x / norm[row]), 1 / UNITS)
        return _like(counts, x)


def weighed(rows: Any, idf: Array | None) -> Any:
    """Rows of terms (CSR) with each word's factor."""
    return rows if idf is None else _like(rows, rows.data * idf[rows.indices])


def log_steps(most: int) -> Array:
    """(most + 1,) what the t-th occurrence adds to log(1 + t), rounded; the sums are rounded logarithms, exactly.

    >>> log_steps(2).round(3)
    array([0.   , 0.693, 0.405])
    """
    return np.diff(_rounded(np.log1p(np.arange(most + 1.0))), prepend=0.0)


def _like(rows: Any, data: Array) -> Any:
    made = sp.csr_array((data, rows.indices, rows.indptr), rows.shape)
    made.has_sorted_indices, made.has_canonical_format = rows.has_sorted_indices, rows.has_canonical_format
    return made


def _rounded(x: Array) -> Array:
    return np.rint(x * UNITS) / UNITS


@dataclass(frozen=True, eq=False)
class Idf:
    """How much more a rare word counts, by the documents of the first fit.

    >>> Idf.of(Vocabulary.of(["and", "snow"], "learnt"), np.array([3.0, 1.0]), 3.0).of_words(["snow", "rain"]).round(3)
    array([1.693, 2.386])
    """

    words: tuple[str, ...]
    values: Array  # (V,)
    new: float  # of any other word

    @classmethod
    def of(cls, vocabulary: Vocabulary, documents: Array, n: float) -> Idf:
        """From the number of documents, of n, that hold each word."""
        values = np.log((1 + n) / (1 + documents)) + 1
        return cls(tuple(vocabulary), values, float(np.log(1 + n) + 1))

    def of_words(self, words: Any) -> Array:
        """(V,) the factor of each word."""
        at = Vocabulary(text_array(list(self.words)), "learnt").positions_of(text_array(words))
        return np.where(at < 0, self.new, np.append(self.values, self.new)[at])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Idf):
            return NotImplemented
        same = self.words == other.words and self.new == other.new
        return same and np.array_equal(self.values, other.values)

    __hash__ = None  # type: ignore[assignment]
