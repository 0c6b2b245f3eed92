"""Hidden Markov models by brute force: every path of a short sequence, one after the other."""

from itertools import product

import numpy as np

from deciban.latent.hmm import HMMDensity
from deciban.statistics import Members


def enumerate_paths(start, A, likelihood):
    """(log-likelihood, posteriors (T, S), expected transitions (S, S), best path) from likelihoods (T, S)."""
    T, S = likelihood.shape
    total, shares, joint, best = 0.0, np.zeros((T, S)), np.zeros((S, S)), (-1.0, None)
    for path in product(range(S), repeat=T):
        p = start[path[0]] * likelihood[0, path[0]]
        for t in range(1, T):
            p *= A[path[t - 1], path[t]] * likelihood[t, path[t]]
        total += p
        best = max(best, (p, path), key=lambda each: each[0])
        for t, z in enumerate(path):
            shares[t, z] += p
            if t:
                joint[path[t - 1], z] += p
    with np.errstate(divide="ignore"):
        return np.log(total), shares / total, joint / total, best[1]


def path_probability(start, A, likelihood, path):
    """P(path, data): of several best paths, which happens with gaps, any is right."""
    moves = np.prod(A[path[:-1], path[1:]])
    return start[path[0]] * moves * np.prod(likelihood[np.arange(len(path)), path])


def categorical_chain(family, start, A, B):
    """A density of known parameters: B is (S, V), the categories are 0 … V − 1."""
    S, V = B.shape
    X = family.encode(np.tile(np.arange(V), S)[:, None], ())
    sums = family.collect(X, Members.hard(np.repeat(np.arange(S), V), S, B.ravel()))
    return HMMDensity.of(start, A, family.estimate(sums, "ml"))


def random_chain(rng, S, V=None):
    parts = rng.dirichlet(np.ones(S)), rng.dirichlet(np.ones(S), S)
    return parts if V is None else (*parts, rng.dirichlet(np.ones(V), S))
