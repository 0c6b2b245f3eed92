"""Rows and truths of the discrete families, for tests/cases.py."""

from __future__ import annotations

from itertools import product

import numpy as np
import scipy.sparse as sp
from scipy import stats as sps
from scipy.special import gammaln, xlogy

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


COLOURS, SIZES = np.array(["black", "orange", "white"]), np.array(["L", "S"])


def cats(rng, n):
    """Two columns of strings, as a user has them."""
    return np.stack([rng.choice(COLOURS, n, p=[0.5, 0.2, 0.3]), rng.choice(SIZES, n)], axis=1).astype(object)


def every_cat(*others):
    return np.array(list(product([*COLOURS, *others], [*SIZES, *others])), dtype=object)


def numbers(rng, n):
    """Integers that are their own names, some of them never used."""
    return np.stack([rng.choice([0, 2, 5], n), rng.choice([1, 0], n), rng.choice(4, n)], axis=1)


def rare(rng, n):
    """Names that often occur once, so that leaving the row out leaves the name unknown."""
    return np.stack([rng.geometric(0.3, n), rng.geometric(0.5, n)], axis=1).astype(str).astype(object)


def every_number():
    return np.array(list(product([0, 2, 5], [0, 1], range(4))))


def one_of(counts, prior, rule, onehot):
    """(n, K) by SciPy: one draw from each class's table."""
    A = counts + {"ml": 0.0, "map": prior - 1}.get(rule, prior)
    if rule == "predictive":
        return np.stack([sps.dirichlet_multinomial.logpmf(onehot.astype(int), a, 1) for a in A], 1)
    return np.stack([sps.multinomial.logpmf(onehot, 1, a / a.sum()) for a in A], 1)


def categorical_truth(family, stats, X, rule):
    X, scores = X.named(), np.zeros((len(X), len(stats.counts)))
    for j, (start, part) in enumerate(zip(stats.labels["category"].starts, stats.labels["category"].parts)):
        cells = part.size + family.open
        table = np.zeros((len(scores[0]), cells))
        table[:, : part.size] = stats.counts[:, start : start + part.size]
        onehot = np.eye(cells)[[part.names.index(X.names[j][v]) for v in X.values[:, j]]]
        scores += one_of(table, family.pseudo_count, rule, onehot)
    return scores


def joint_truth(family, stats, X, rule):
    X = X.named()
    cells = list(product(*X.names))
    table = np.zeros((len(stats.counts), len(cells)))
    table[:, [cells.index(name) for name in stats.labels["combination"].names]] = stats.counts
    onehot = np.eye(len(cells))[[cells.index(tuple(X.names[j][v] for j, v in enumerate(row))) for row in X.values]]
    return one_of(table, family.pseudo_count, rule, onehot)


SPOKEN = np.array(["red", "blue", "green", "white", "black", "pink", "violet", "ochre"])


def documents(rng, n):
    """Short documents, some empty, whose rarer words are often in one of them only."""
    p = np.array([0.4, 0.25, 0.15, 0.1, 0.04, 0.03, 0.02, 0.01])
    each = [" ".join(rng.choice(SPOKEN, rng.integers(0, 9), p=p)) for _ in range(n - 1)]
    return np.array(["red blue", *each], dtype=object)[:n, None]


def text_truth(family, stats, X, rule):
    """Word by word, as the words stand."""
    names = list(stats.labels["word"].names)
    rows = np.array([[text.split().count(name) for name in names] for text in X.documents.texts])
    alpha = family.pseudo_count
    if family.reading == "bernoulli":
        prior = {"ml": 0.0, "map": alpha - 1}.get(rule, alpha)
        p = (stats.counts + prior) / (stats.rows[:, None] + 2 * prior)
        return sps.bernoulli.logpmf((rows > 0)[:, None, :], p).sum(axis=2)
    A = stats.counts + {"ml": 0.0, "map": alpha - 1}.get(rule, alpha)
    if rule == "predictive" or family.reading == "polya":
        A, length = stats.counts + alpha, rows.sum(axis=1)
        ways = gammaln(length + 1) - gammaln(rows + 1).sum(axis=1)
        some = np.maximum(length, 1)  # scipy 1.13 refuses rows without words, whose density is 1
        truth = [sps.dirichlet_multinomial.logpmf(rows, a, some) - ways for a in A]
        return np.where(length[:, None] > 0, np.stack(truth, 1), 0.0)
    return np.stack([xlogy(rows, a / a.sum()).sum(axis=1) for a in A], 1)
