"""Where topics start: around documents that are far apart, so that no two topics start with the same words.

From random counts alone, 4 runs in 10 on 2,000 simulated documents ended with two topics for one subject and one topic
for two, and none of 10 from here; with 500 documents it was 2 and 3 (decision 0012). Documents are picked as k-means++
picks them, by the angle between the roots of their counts; all that are closest to a picked one
are its topic's start, with random counts mixed in, so that every topic has every word.

Reference: Arthur and Vassilvitskii, k-means++: the advantages of careful seeding, 2007.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from deciban.kernels.choice import Array
from deciban.topics.batches import local_columns

MOST, EACH = 2000, 20  # documents looked at: this many a topic, but no more than that in all
SEEDED = 0.5  # share of the start that comes from documents
ROUNDS = 2  # of moving to the middle of one's documents


def start_counts(X: Any, K: int, rng: np.random.Generator) -> Array:
    """(V, K) float32 counts that sum to the tokens of X."""
    frequency = np.bincount(X.indices, X.data, X.shape[1])
    counts = rng.standard_gamma(1.0, (X.shape[1], K), dtype=np.float32)
    counts *= (frequency / K).astype(np.float32)[:, None]
    sample = _sample(X, K, rng)
    if K == 1 or sample.shape[0] < 2 * K:
        return counts
    own = _nearest(sample, K, rng)
    members = sp.csr_array((np.ones(len(own)), (own, np.arange(len(own)))), (K, len(own)))
    found = (members @ sample).tocoo()
    size = np.maximum(np.bincount(found.row, found.data, K), 1.0)
    counts *= np.float32(1 - SEEDED)
    counts[found.col, found.row] += (SEEDED * X.data.sum() / K * found.data / size[found.row]).astype(np.float32)
    return counts


def _sample(X: Any, K: int, rng: np.random.Generator) -> Any:
    """Documents that hold words."""
    there = np.flatnonzero(np.diff(X.indptr) > 0)
    return X[np.sort(rng.permutation(there)[: min(MOST, max(EACH * K, 500))])]


def _nearest(sample: Any, K: int, rng: np.random.Generator) -> Array:
    """(n,) which of K picked documents each document is closest to, after some rounds of k-means."""
    words, local = local_columns(sample.indices, sample.shape[1])
    unit = sp.csr_array((np.sqrt(sample.data), local, sample.indptr), (sample.shape[0], len(words)))  # length √tokens
    unit = sp.csr_array(sp.diags_array(1 / np.sqrt(np.asarray(sample.sum(axis=1)).ravel())) @ unit).astype(np.float32)
    n, tries = unit.shape[0], 2 + int(np.log(K))
    picked = [int(rng.integers(n))]
    apart = 1 - unit @ unit[[picked[0]]].toarray()[0]
    for _ in range(K - 1):
        chance = np.maximum(apart, 0.0).astype(float) + 1e-12
        some = rng.choice(n, tries, p=chance / chance.sum())
        left = np.minimum(apart[:, None], 1 - np.asarray(unit @ unit[some].toarray().T))
        best = int(left.sum(axis=0).argmin())  # the greedy variant: of several, the one that explains most
        picked.append(int(some[best]))
        apart = left[:, best]
    centres = unit[picked].toarray().T
    for _ in range(ROUNDS):
        own = np.asarray(unit @ centres).argmax(axis=1)
        members = sp.csr_array((np.ones(n, np.float32), (own, np.arange(n))), (K, n))
        middle = (members @ unit).toarray()
        length = np.linalg.norm(middle, axis=1, keepdims=True)
        centres = np.where(length > 0, middle / np.where(length > 0, length, 1), centres.T).T
    return np.asarray(unit @ centres).argmax(axis=1)
