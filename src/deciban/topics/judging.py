"""Held-out perplexity by document completion: one evaluator for the topics of any program.

Half of a document's tokens show its topics, the other half is predicted,

    θ_d    fold-in of the observed half by CVB0 with p(w|t) fixed and prior α
    exp(−Σ_d Σ_w c_dw log Σ_t θ_dt p(w|t) / Σ c)        c: counts of the other half

so that no topic–word matrix is favoured by how it was found. Less is better; V is what knowing nothing gives.
Reference: Wallach, Murray, Salakhutdinov and Mimno, Evaluation methods for topic models, 2009.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from deciban.errors import HyperparameterError, InputError
from deciban.kernels.choice import Array
from deciban.topics.kernels import Rows, ThreadPool, fold_in, row_log_likelihoods
from deciban.topics.kernels.layout import SINGLE_THREAD
from deciban.topics.reading import counts_of

STEPS, TOLERANCE = 50, 1e-4
ROUGH_STEPS, ROUGH = 20, 1e-3
SMOOTHING = 1e-4  # of each topic's mass is spread over all words, so that no word is impossible


def halves(X: Any, seed: int = 0) -> tuple[Any, Any]:
    """Each token goes to the first or the second half by the toss of a coin; so does a fraction, as a whole.

    >>> first, second = halves([[3.0, 0.0, 1.5]])
    >>> (first + second).toarray()
    array([[3. , 0. , 1.5]])
    """
    rng = np.random.default_rng(seed)
    X = counts_of(X)
    whole = np.floor(X.data)
    rest = (X.data - whole) * (rng.random(len(X.data)) < 0.5)
    first = X.copy()
    first.data = rng.binomial(whole.astype(np.int64), 0.5) + rest
    second = X.copy()
    second.data = X.data - first.data
    first.eliminate_zeros()
    second.eliminate_zeros()
    return first, second


def perplexity(
    topics: Any, observed: Any, held: Any, alpha: Any = None, *, smoothing: float = SMOOTHING, threads: int | None = 1
) -> float:
    """Of the counts `held`, for documents of which the counts `observed` are known. `topics` is (K, V), any scale.

    alpha : the prior of a document's topics, one number or K; without it min(.1, 5/K)

    >>> topics = [[8, 2, 0, 0], [0, 0, 2, 8]]
    >>> half = [[3, 1, 0, 0], [0, 0, 1, 3]]
    >>> round(perplexity(topics, half, half), 2)
    1.81
    """
    table = check_topics(topics)
    observed, held = counts_of(observed), counts_of(held)
    if not observed.shape == held.shape or observed.shape[1] != table.shape[1]:
        raise InputError(
            f"topics over {table.shape[1]} words, and halves of shapes {observed.shape} and {held.shape}. "
            "Count both halves with the vocabulary of the topics."
        )
    judge = Completion(observed, held, threads)
    used = table[:, judge.words].T
    return judge((1 - smoothing) * used + smoothing / table.shape[1], prior_of(alpha, len(table)))


def check_topics(topics: Any) -> Array:
    """(K, V), each row scaled to sum 1."""
    table = np.asarray(topics, dtype=float)
    if table.ndim != 2 or 0 in table.shape:
        raise InputError(f"topics must be a matrix of topics × words, not of shape {table.shape}.")
    bad = ~((table >= 0) & (table < np.inf))
    if bad.any():
        k, w = np.argwhere(bad)[0]
        raise InputError(f"topic {k} gives word {w} the weight {table[k, w]}; weights must be finite and ≥ 0.")
    total = table.sum(axis=1, keepdims=True)
    if not total.all():
        raise InputError(f"topic {int(np.argmin(total))} gives no word any weight. Leave it out.")
    return table / total


def prior_of(alpha: Any, K: int) -> Array:
    """(K,) the prior weight of each topic in a document."""
    if alpha is None:
        alpha = min(0.1, 5.0 / K)
    try:
        prior = np.broadcast_to(np.asarray(alpha, dtype=float), (K,)).copy()
    except (ValueError, TypeError):
        raise HyperparameterError(f"alpha={alpha!r:.60} is neither a number nor {K} numbers.") from None
    if not ((prior > 0) & (prior < np.inf)).all():
        raise HyperparameterError(f"alpha={alpha!r:.60} must be above 0 and finite.")
    return prior


class Completion:
    """Documents to be completed, with only the columns of words they use; made once, asked often."""

    def __init__(
        self,
        observed: Any,
        held: Any,
        threads: int | None = 1,
        steps: int = STEPS,
        tolerance: float = TOLERANCE,
        often: bool = False,
    ) -> None:
        used = np.zeros(observed.shape[1], dtype=bool)
        used[observed.indices] = used[held.indices] = True
        self.words = np.flatnonzero(used)  # the columns that `__call__` wants a row for
        place = np.cumsum(used) - 1
        self.observed, self.held = (
            Rows(part.indptr.astype(np.int64), place[part.indices].astype(np.int32), part.data.astype(float))
            for part in (observed, held)
        )
        self.tokens = float(self.held.data.sum())
        self.threads, self.steps, self.tolerance, self.often = threads, steps, tolerance, often
        if not self.tokens:
            raise InputError("no tokens are left to predict: the documents are too short. Hold out longer ones.")

    @classmethod
    def of(cls, X: Any, seed: int = 0, threads: int | None = 1) -> Completion:
        """Documents in two random halves."""
        return cls(*halves(X, seed), threads)

    @classmethod
    def rough(cls, X: Any, seed: int) -> Completion:
        """Documents to be completed after every pass: good enough to tell whether it gains anything."""
        return cls(*halves(X, seed), steps=ROUGH_STEPS, tolerance=ROUGH, often=True)

    def __call__(self, table: Array, prior: Array, pool: ThreadPool = SINGLE_THREAD) -> float:
        """The perplexity under p(w|t), (words used, K)."""
        table, prior = np.ascontiguousarray(table, dtype=float), np.asarray(prior, dtype=float)
        if self.threads == 1 or pool is not SINGLE_THREAD:
            return self._perplexity(table, prior, pool)
        with ThreadPool(self.threads) as own:
            return self._perplexity(table, prior, own)

    def _perplexity(self, table: Array, prior: Array, pool: ThreadPool) -> float:
        counts = fold_in(self.observed, table, prior, self.steps, self.tolerance, pool, self.often)
        shares = counts + prior
        shares /= shares.sum(axis=1, keepdims=True)
        total = row_log_likelihoods(self.held, table, shares, pool).sum()
        return float(np.exp(-total / self.tokens))


# -- coherence ----------
# Do the first words of a topic belong together? By the documents that hold them both.
#
#     NPMI    mean over pairs of  log p(a, b)/(p(a) p(b)) / −log p(a, b)        −1 never together … 1 always
#     UMass   mean over pairs of  log (D(a, b) + 1)/D(b)        b is the more probable of the two
#
# p and D count documents of a reference corpus. A word that no document holds pairs as never together.
#
# References: Lau, Newman and Baldwin, Machine reading tea leaves, 2014; Mimno et al., Optimizing semantic coherence in
# topic models, 2011.

Measure: TypeAlias = Literal["npmi", "umass"]


def coherence(first: Any, X: Any, measure: Measure = "npmi") -> Array:
    """(K,) coherence of topics whose first words are the columns first[k], most probable first, of documents X.

    >>> X = [[1, 1, 0], [2, 1, 0], [0, 0, 1], [0, 0, 4]]
    >>> coherence([[0, 1], [0, 2]], X)
    array([ 1., -1.])
    """
    if measure not in get_args(Measure):
        raise HyperparameterError(f"measure={measure!r} is not one of {', '.join(get_args(Measure))}.")
    first = np.asarray(first, dtype=np.intp)
    X = counts_of(X)
    if first.ndim != 2 or first.shape[1] < 2:
        raise InputError("coherence is about pairs of words: give at least two a topic.")
    if first.size and (first.min() < 0 or first.max() >= X.shape[1]):
        raise InputError(f"words run to column {first.max()}, but documents have {X.shape[1]}.")
    used, local = np.unique(first, return_inverse=True)
    present = X[:, used]
    present.data = np.ones_like(present.data)
    together = (present.T @ present).toarray()
    score = {"npmi": _npmi, "umass": _umass}[measure](together, X.shape[0])
    later, earlier = np.tril_indices(first.shape[1], -1)
    local = local.reshape(first.shape)
    return score[local[:, later], local[:, earlier]].mean(axis=1)


def _npmi(together: Array, documents: int) -> Array:
    p = together / documents
    alone = np.diag(p)
    with np.errstate(divide="ignore", invalid="ignore"):
        score = np.log(p / np.outer(alone, alone)) / -np.log(p)
    score[p >= 1] = 1.0  # in every document, both
    score[together == 0] = -1.0
    return score


def _umass(together: Array, documents: int) -> Array:
    held = np.maximum(np.diag(together), 1.0)
    return np.log((together + 1) / held[None, :])


def diversity(first: Any) -> float:
    """The share of distinct words among the first words of all topics: 1 if no two topics share any.

    >>> diversity([[0, 1], [1, 2]])
    0.75
    """
    first = np.asarray(first)
    return len(np.unique(first)) / first.size
