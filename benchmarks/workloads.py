"""What is classified: data of a given number of rows, and our model of them.

Class prior, smoothing and divisors agree with the peers': rule "ml" divides by n, as GaussianNB(var_smoothing=0) and
scikit-learn's discriminant analyses do; rule "mean" with pseudo-count 1 is alpha=1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from deciban import Categorical, Gaussian, GenerativeClassifier, Multinomial


@dataclass(frozen=True)
class Workload:
    """Data of any number of rows, and the classifier that learns them."""

    name: str
    rows: int
    shape: str  # of a row, in words
    make: Callable[[int], tuple[Any, Any]]
    family: Any
    rule: str

    def classifier(self) -> GenerativeClassifier:
        return GenerativeClassifier(self.family, rule=self.rule, calibrate=None)

    def size(self, rows: int) -> str:
        return f"{count(rows)} {self.shape}"


def count(rows: int) -> str:
    """5M, 250k, 2,000."""
    for unit, letter in ((10**6, "M"), (10**3, "k")):
        if rows >= 10 * unit or (rows >= unit and unit > 1000):
            return f"{rows / unit:g}{letter}"
    return f"{rows:,}"


def labels(n: int, K: int, rng: np.random.Generator) -> Any:
    return rng.integers(0, K, n)


def bells(n: int, D: int, K: int, full: bool, seed: int = 0) -> tuple[Any, Any]:
    """Gaussian classes that overlap; with `full`, each with a covariance matrix of its own."""
    rng = np.random.default_rng(seed)
    mean, spread = rng.normal(size=(K, D)), rng.uniform(0.5, 2.0, size=(K, D))
    mix = np.eye(D) + 0.1 * rng.normal(size=(K, D, D))
    y = labels(n, K, rng)
    X = rng.standard_normal((n, D))
    for at in range(0, n, 2**16):  # a block at a time, so that no second table is needed
        rows = slice(at, at + 2**16)
        block, own = X[rows] * spread[y[rows]], y[rows]
        for k in range(K) if full else ():
            block[own == k] = block[own == k] @ mix[k]
        X[rows] = mean[own] + block
    return X, y


def categories(n: int, D: int = 20, C: int = 50, K: int = 5, seed: int = 0) -> tuple[Any, Any]:
    """Codes of C categories whose frequencies differ by class and column."""
    rng = np.random.default_rng(seed)
    y = labels(n, K, rng)
    X = np.empty((n, D), dtype=np.int64)
    steps = np.cumsum(rng.dirichlet(np.ones(C), size=(K, D)), axis=2)
    for d in range(D):
        where = rng.random(n)
        for k in range(K):
            own = y == k
            X[own, d] = np.minimum(np.searchsorted(steps[k, d], where[own]), C - 1)
    return X, y


def documents(n: int, V: int = 100_000, K: int = 20, tokens: int = 66, seed: int = 0) -> tuple[Any, Any]:
    """CSR word counts by Zipf's law, a third of the words after the class; 66 tokens are about 60 different words."""
    rng = np.random.default_rng(seed)
    y = labels(n, K, rng)
    frequency = 1 / (np.arange(V) + 2.7) ** 1.05
    steps = np.cumsum(frequency / frequency.sum())
    called = rng.permutation(V).astype(np.int32)  # frequent words lie anywhere, as in an alphabet
    blocks = []
    for at in range(0, n, 50_000):
        own = y[at : at + 50_000]
        lengths = np.maximum(rng.poisson(tokens, len(own)), 1)
        word = np.minimum(np.searchsorted(steps, rng.random(lengths.sum())), V - 1)
        shift = np.repeat(own, lengths) * (V // K) * (rng.random(len(word)) < 1 / 3)
        word = called[(word + shift) % V]
        starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        block = sp.csr_array((np.ones(len(word)), word, starts), shape=(len(own), V))
        block.sum_duplicates()
        blocks.append(block)
    return sp.vstack(blocks, format="csr"), y


CATEGORICAL = Workload("categorical", 5_000_000, "× 20, K = 5", categories, Categorical(), "mean")
DIAGONAL = Workload(
    "diagonal", 1_000_000, "× 50, K = 10", lambda n: bells(n, 50, 10, False), Gaussian("diagonal"), "ml"
)
FULL = Workload("full", 500_000, "× 50, K = 10", lambda n: bells(n, 50, 10, True), Gaussian("full"), "ml")
TIED = Workload("tied", 500_000, "× 50, K = 10", lambda n: bells(n, 50, 10, True), Gaussian("tied"), "ml")
MULTINOMIAL = Workload("multinomial", 1_000_000, "× 100k CSR, K = 20", documents, Multinomial(), "mean")
WORKLOADS = (CATEGORICAL, DIAGONAL, FULL, TIED, MULTINOMIAL)
