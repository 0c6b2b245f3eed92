"""Held-out documents: their perplexity by document completion, and fitting until it stops improving.

Half of a document's tokens determine its topics, the other half is predicted,

    θ_d    fold-in of the observed half by CVB0 with p(w|t) fixed and prior α
    exp(−Σ_d Σ_w c_dw log Σ_t θ_dt p(w|t) / Σ c)        c: counts of the other half

which applies equally to the topic–word matrices of all programs. Lower is better; a uniform distribution over the words
has perplexity V.

Reference: Wallach, Murray, Salakhutdinov and Mimno, Evaluation methods for topic models, 2009.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from deciban.errors import ConvergenceWarning, DecibanError, HyperparameterError, InputError
from deciban.kernels.choice import Array
from deciban.latent.em import Trace
from deciban.terminal import progress_bar
from deciban.topics.kernels.layout import SINGLE_THREAD, Rows, ThreadPool
from deciban.topics.kernels.passes import fold_in, row_log_likelihoods
from deciban.topics.reading import counts_of

STEPS, TOLERANCE = 50, 1e-4  # of fold-in
ROUGH_STEPS, ROUGH_TOLERANCE = 20, 1e-3  # of fold-in after every pass of a fit
SMOOTHING = 1e-4  # share of each topic that is spread over all words, so that no word is impossible
HELD_OUT = 0.05  # share of the documents that "auto" holds out
MOST_HELD, LEAST_DOCUMENTS = 500, 100  # held-out documents at most; documents below which "auto" holds out none
PATIENCE = 5  # passes that together must gain `tol`
LEAST_PASSES = 15  # before a fit may stop: topics separate first, then their priors are learnt
WORSE = 1.02  # times the best perplexity, at which a fit stops


# -- perplexity --------------------------------------------------------------------------------------------------------
def halves(X: ArrayLike, seed: int = 0) -> tuple[sp.csr_array, sp.csr_array]:
    """Divide the tokens of each document at random into two halves; a fraction of a count goes to one of them.

    >>> first, second = halves([[3.0, 0.0, 1.5]])
    >>> (first + second).toarray()
    array([[3. , 0. , 1.5]])
    """
    rng = np.random.default_rng(seed)
    counts = counts_of(X)
    whole = np.floor(counts.data)
    rest = (counts.data - whole) * (rng.random(len(counts.data)) < 0.5)
    first = counts.copy()
    first.data = rng.binomial(whole.astype(np.int64), 0.5) + rest
    second = counts.copy()
    second.data = counts.data - first.data
    first.eliminate_zeros()
    second.eliminate_zeros()
    return first, second


def perplexity(
    topics: ArrayLike,
    observed: ArrayLike,
    held: ArrayLike,
    alpha: ArrayLike | None = None,
    *,
    smoothing: float = SMOOTHING,
    threads: int | None = 1,
) -> float:
    """Perplexity of the counts `held` of documents, given their counts `observed`.

    topics : (K, V), on any scale
    alpha  : prior of a document's topics, one number or K; min(.1, 5/K) if None

    >>> topics = [[8, 2, 0, 0], [0, 0, 2, 8]]
    >>> half = [[3, 1, 0, 0], [0, 0, 1, 3]]
    >>> round(perplexity(topics, half, half), 2)
    1.81
    """
    table = check_topics(topics)
    given, predicted = counts_of(observed), counts_of(held)
    if not given.shape == predicted.shape or given.shape[1] != table.shape[1]:
        raise InputError(
            f"topics over {table.shape[1]} words, and halves of shapes {given.shape} and {predicted.shape}. "
            "Count both halves with the vocabulary of the topics."
        )
    completion = Completion(given, predicted)
    used = (1 - smoothing) * table[:, completion.words].T + smoothing / table.shape[1]
    return completion(used, document_prior(alpha, len(table)), ThreadPool(threads))


def check_topics(topics: ArrayLike) -> Array:
    """Return a topic–word matrix (K, V) with rows scaled to sum 1."""
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


def document_prior(alpha: ArrayLike | None, K: int) -> Array:
    """Return the Dirichlet prior of a document's topics, shape (K,)."""
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
    """Perplexity of documents of which half is observed, for many topic–word matrices.

    Only the columns of words that occur are kept; `words` names them.
    """

    def __init__(
        self,
        observed: sp.csr_array,
        held: sp.csr_array,
        steps: int = STEPS,
        tolerance: float = TOLERANCE,
        repeated: bool = False,
    ) -> None:
        used = np.zeros(observed.shape[1], dtype=bool)
        used[observed.indices] = used[held.indices] = True
        self.words = np.flatnonzero(used)
        position = np.cumsum(used) - 1
        self.observed, self.held = (
            Rows(part.indptr.astype(np.int64), position[part.indices].astype(np.int32), part.data.astype(float))
            for part in (observed, held)
        )
        self.tokens = float(self.held.data.sum())
        self.steps, self.tolerance, self.repeated = steps, tolerance, repeated
        if not self.tokens:
            raise InputError("no tokens are left to predict: the documents are too short. Hold out longer ones.")

    @classmethod
    def of(cls, X: ArrayLike, seed: int = 0) -> Completion:
        """Documents in two random halves."""
        return cls(*halves(X, seed))

    @classmethod
    def rough(cls, learnt: sp.csr_array, held: sp.csr_array | None, seed: int) -> Completion:
        """Held-out documents, or some of the learnt ones if there are none, for a rough evaluation in every pass."""
        documents = learnt[:MOST_HELD] if held is None else held
        try:
            return cls(*halves(documents, seed), steps=ROUGH_STEPS, tolerance=ROUGH_TOLERANCE, repeated=True)
        except InputError:  # too short to be divided: the same tokens are observed and predicted
            return cls(documents, documents)

    def __call__(self, table: ArrayLike, prior: ArrayLike, pool: ThreadPool = SINGLE_THREAD) -> float:
        """Return the perplexity under p(w|t), shape (words used, K)."""
        p, alpha = np.ascontiguousarray(table, dtype=float), np.asarray(prior, dtype=float)
        shares = fold_in(self.observed, p, alpha, self.steps, self.tolerance, pool, self.repeated) + alpha
        shares /= shares.sum(axis=1, keepdims=True)
        total = row_log_likelihoods(self.held, p, shares, pool).sum()
        return float(np.exp(-total / self.tokens))


def split(
    X: sp.csr_array, share: float | Literal["auto"], seed: int, several: bool
) -> tuple[sp.csr_array, sp.csr_array | None]:
    """Return the documents to learn from, and those held out, or None.

    several : whether a number of topics is to be chosen, for which "auto" always holds some out
    """
    n, given = X.shape[0], share
    if share == "auto":
        share = HELD_OUT if n >= LEAST_DOCUMENTS else 0.1 if several else 0.0
    if isinstance(share, str) or not 0 <= share < 1:
        raise HyperparameterError(f"held_out={given!r} must be 'auto' or a share of documents below 1.")
    number = min(max(round(share * n), 1), MOST_HELD, n - 1) if share else 0
    order = np.random.default_rng([seed, 0]).permutation(n)
    held = X[np.sort(order[:number])]
    if number == 0 or held.data.sum() < 2:
        return X, None
    return X[np.sort(order[number:])], held


# -- fitting until it stops improving ----------------------------------------------------------------------------------
class Engine(Protocol):
    """An inference method that finds topics in passes over all documents."""

    @property
    def priors(self) -> Any:
        """The priors α and β in use."""

    def step(self) -> None:
        """Pass over all documents once."""

    def table(self, words: Array) -> Array:
        """Return p(w|t) of some words, shape (words, K)."""

    def snapshot(self) -> Any:
        """Return a copy of the state."""

    def restore(self, kept: Any) -> None:
        """Return to a snapshot."""


class Pass(NamedTuple):
    """What a callback gets after each pass."""

    step: int  # number of the pass, from 1
    perplexity: float
    engine: Engine


E = TypeVar("E", bound=Engine)
Callback = Callable[[Pass], Any]


def fit_until_converged(
    engine: E,
    completion: Completion,
    max_iter: int,
    tol: float,
    label: str | None = None,
    callback: Callback | None = None,
    on_plateau: Callable[[E], bool] | None = None,
) -> Trace:
    """Step until PATIENCE passes reduce perplexity by less than a share `tol`; the best state is restored.

    on_plateau : called at a plateau; if it returns True, the fit goes on from the best state, as long as that helps

    The trace's objective is −log perplexity, the mean log probability of a token. An interruption keeps the best state.
    """
    trace, best, kept, since = Trace(), np.inf, None, 0
    try:
        with progress_bar(label, max_iter) as update:
            for number in range(1, max_iter + 1):
                engine.step()
                reached = completion(engine.table(completion.words), engine.priors.alpha)
                if not np.isfinite(reached):
                    raise DecibanError(f"perplexity became {reached} at step {number}. Raise alpha or beta.")
                trace.objective.append(-float(np.log(reached)))
                update(number, f"perplexity {reached:,.0f}")
                if reached < best:
                    best, kept = reached, engine.snapshot()
                if callback is not None:
                    callback(Pass(number, reached, engine))
                if number >= LEAST_PASSES and (_on_plateau(trace.objective, tol, since) or reached > WORSE * best):
                    gained = since == 0 or max(trace.objective[since:]) > max(trace.objective[:since])
                    if on_plateau is None or not gained or not on_plateau(engine):
                        trace.converged = True
                        break
                    engine.restore(kept)
                    since = number
    except KeyboardInterrupt:
        trace.interrupted = True
        warnings.warn(
            f"interrupted after {trace.iterations} iterations; the topics found so far are kept.",
            ConvergenceWarning,
            stacklevel=3,
        )
    if kept is not None:
        engine.restore(kept)
    return trace


def _on_plateau(objective: list[float], tol: float, since: int) -> bool:
    """Whether the last PATIENCE passes gained less than `tol`, by their best."""
    if tol <= 0 or len(objective) - since <= PATIENCE:
        return False
    return max(objective[-PATIENCE:]) - max(objective[:-PATIENCE]) < tol


def best_perplexity(trace: Trace) -> float:
    """Lowest perplexity of a fit."""
    return float(np.exp(-max(trace.objective, default=-np.inf)))
