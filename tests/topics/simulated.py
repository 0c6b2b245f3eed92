"""Corpora whose topics are known."""

import numpy as np
import scipy.sparse as sp


def corpus(D=2000, V=300, K=8, length=80, alpha=0.1, beta=0.05, seed=0, phi=None):
    """Counts (D, V) drawn as LDA says, and the topics (K, V) that drew them."""
    rng = np.random.default_rng(seed)
    phi = rng.dirichlet(np.full(V, beta), K) if phi is None else phi
    theta = rng.dirichlet(np.full(len(phi), alpha), D)
    X = rng.multinomial(rng.poisson(length, D) + 1, (theta @ phi) / (theta @ phi).sum(axis=1, keepdims=True))
    return sp.csr_array(X.astype(float)), phi


def near_identical(D=1500, V=200, K=20, seed=0):
    """Topics that differ by little: each is a common topic with a tenth of its mass moved."""
    rng = np.random.default_rng(seed)
    common = rng.dirichlet(np.full(V, 0.5))
    phi = 0.9 * common + 0.1 * rng.dirichlet(np.full(V, 0.5), K)
    return corpus(D, V, K, 30, seed=seed, phi=phi)
