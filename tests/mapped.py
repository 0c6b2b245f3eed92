"""Rows and truth for the families behind a map: SciPy's transforms and histograms."""

import numpy as np
from scipy import stats as sps

from gaussian_truth import gaussian_truth


def incomes(rng, n):
    return np.exp(rng.normal(2.0, 0.7, (n, 2)) @ np.array([[1.0, 0.4], [0.0, 0.8]]))


def skewed(rng, n):
    return np.stack([rng.gamma(2.0, 3.0, n), rng.normal(-1.0, 2.0, n), -rng.gamma(1.5, 2.0, n)], axis=1)


def with_absurd_numbers(rng, n):
    X = rng.normal(-1.0, 2.0, (n, 3)) @ np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 0.5], [0.0, 0.0, 1.0]])
    X[5::20, 1] = 99999999.0
    return X


def absurd_counts(rng, n):
    X = rng.poisson([0.5, 4.0, 30.0], (n, 3)).astype(float)
    X[5::20, 1] = 2.0**54
    return X


def waits(rng, n):
    return np.stack([rng.gamma(2.0, 3.0, n).round(1), rng.integers(0, 5, n).astype(float)], axis=1)


def transformed_truth(family, stats, X, rule):
    """Normal or Student of z = t(x), times dz/dx by a difference quotient of SciPy's own transform."""

    def forth(X):
        each = [family.by] * X.shape[1] if isinstance(family.by, str) else family.by
        columns = []
        for by, x, power, unit in zip(each, X.T, family.power, family.unit):
            if by == "yeo-johnson":
                columns.append(sps.yeojohnson(x / unit, power))
            else:
                columns.append(np.log(x) if by == "log" else x)
        return np.stack(columns, axis=1)

    step = 1e-5 * np.maximum(np.abs(X), 1e-3)
    slope = np.log((forth(X + step) - forth(X - step)) / (2 * step)).sum(axis=1)
    return gaussian_truth(family.inner, stats.inner, forth(X), rule) + slope[:, None]


def binned_truth(family, stats, X, rule):
    scores = np.zeros((len(X), len(stats.inner.counts)))
    at = 0
    for x, edges, tail in zip(X.T, family.edges, family.tails):
        counts = stats.inner.counts[:, at : at + len(edges) + 1]
        alpha = {"ml": 0.0, "map": family.pseudo_count - 1}.get(rule, family.pseudo_count)
        with np.errstate(divide="ignore"):
            p = np.log((counts + alpha) / (counts + alpha).sum(axis=1, keepdims=True))
        cell = np.array([sum(value >= edge for edge in edges) for value in x])
        inside = -np.log(np.r_[1.0, np.diff(edges), 1.0])[cell]
        below, above = sps.expon.logpdf(edges[0] - x, scale=tail), sps.expon.logpdf(x - edges[-1], scale=tail)
        shape = np.where(cell == 0, below, np.where(cell == len(edges), above, inside))
        scores += p[:, cell].T + shape[:, None]
        at += len(edges) + 1
    return scores
