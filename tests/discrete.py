"""Rows and truths of the discrete families, for tests/cases.py."""

from __future__ import annotations

from itertools import product

import numpy as np
import scipy.sparse as sp
from scipy import stats as sps

FLAGS = np.array([0.2, 0.5, 0.9])
WORDS = np.array([0.6, 0.3, 0.1])


def flags(rng, n):
    return (rng.random((n, 3)) < FLAGS).astype(float)


def tokens(rng, n):
    return rng.multinomial(rng.integers(1, 9, n), WORDS).astype(float)


def every(values, D):
    """Every row of D values."""
    return np.array(list(product(values, repeat=D)))


def four_tokens():
    """Every row of four tokens over three words."""
    rows = every(range(5), 3).astype(float)
    return rows[rows.sum(axis=1) == 4]


def dense(X):
    return X.toarray() if sp.issparse(X) else X


def bernoulli_truth(family, stats, X, rule):
    X, ones, zeros = dense(X)[:, None, :], stats.ones, stats.zeros
    if rule == "predictive":
        return sps.betabinom.logpmf(X, 1, ones + family.a, zeros + family.b).sum(axis=2)
    a, b = {"ml": (0.0, 0.0), "map": (family.a - 1, family.b - 1)}.get(rule, (family.a, family.b))
    p = (ones + a) / (ones + zeros + a + b)
    return sps.bernoulli.logpmf(X, p).sum(axis=2)


def multinomial_truth(family, stats, X, rule):
    X = dense(X)
    alpha = family.pseudo_count * (np.ones(X.shape[1]) if family.base is None else family.base)
    A = stats.counts + {"ml": 0.0, "map": alpha - 1}.get(rule, alpha)
    if rule == "predictive":
        return np.stack([sps.dirichlet_multinomial.logpmf(X.astype(int), a, X.sum(axis=1).astype(int)) for a in A], 1)
    return np.stack([sps.multinomial.logpmf(X, X.sum(axis=1), a / a.sum()) for a in A], 1)
