"""Probabilistic latent semantic analysis by EM, without keeping p(t|d,w).

    p(w|d) = Σ_t p(w|t) p(t|d)                    γ = p(t|d,w) ∝ [p(w|t) p(t|d)]^b

    p(t|d) ∝ Σ_w c_dw γ                           then, with the new p(t|d),
    p(w|t) ∝ Σ_d c_dw γ

With b = 1 the likelihood never decreases. b < 1 is tempered EM: a flatter γ, which over-fits less.

Reference: Hofmann, Unsupervised learning by probabilistic latent semantic analysis, 2001.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from deciban.errors import HyperparameterError, NotAvailableError
from deciban.families.parameters import SHARE, Ranges
from deciban.families.protocol import Passes
from deciban.kernels.choice import Array
from deciban.store.estimators import check_parameters
from deciban.topics.documents import SMOOTHING, DocumentInput, document_prior, size_of_part
from deciban.topics.estimator import Callback, TopicEstimator, Words
from deciban.topics.kernels import SINGLE_THREAD, Rows, ThreadPool, plain_counts, row_log_likelihoods, transposed
from deciban.topics.lda import Priors, start_counts

LEAST = 1e-19  # smaller shares become 0: products of two of them would be denormal, at ten times the cost
FOLD_STEPS = 50
DOCUMENT_STEPS = 10  # for p(t|d) in each pass over documents in parts
COOLING, LEAST_POWER = 0.9, 0.5  # tempering multiplies b by this, down to this


@dataclass(eq=False, repr=False, kw_only=True)
class PLSA(TopicEstimator):
    """Probabilistic latent semantic analysis: topics by maximum likelihood, p(w|d) = Σ_t p(w|t) p(t|d).

    Texts are counted by the model, or X is a table of word counts. For new documents p(w|t) is held fixed.

    Parameters
    ----------
    n_components : int or iterable of int, default=20
        Number of topics, or several numbers among which held-out documents choose.
    max_iter : int, default=100
        Largest number of passes over all documents.
    tol : float, default=1e-3
        The fit stops when five passes together reduce perplexity by less than this share.
    held_out : float or "auto", default="auto"
        Share of the documents that are held out to stop in time, and not learnt; "auto" is 5 %, of 100 documents or
        more.
    ngrams : tuple of (int, int), default=(1, 1)
        Shortest and longest run of words that is counted.
    stop_words : str, iterable of str or None, default="english"
        Language whose stop words are left out, or the words themselves.
    stem : str, optional
        Language by whose rules words are stemmed.
    min_df : float, default=1
        Least number, or share, of the documents that a word occurs in.
    max_df : float, default=1.0
        Largest number, or share, of the documents that a word occurs in.
    max_words : int, optional
        Largest size of the vocabulary.
    random_state : int, numpy.random.RandomState or None, default=None
        Source of the random numbers.
    threads : int, optional
        Number of threads; `deciban.get_threads()` if None. Results do not depend on it.
    progress : bool, default=False
        Whether to show a progress bar on a terminal.
    temper : float or "auto", default=1.0
        Exponent b of tempered EM, γ ∝ [p(w|t) p(t|d)]^b; "auto" lowers it as long as held-out perplexity improves.

    Attributes
    ----------
    topics_ : ndarray of shape (n_components, n_words)
        Probability of each word in each topic.
    prevalence_ : ndarray of shape (n_components,)
        Share of the learnt tokens that belong to each topic.
    vocabulary_ : ndarray of shape (n_words,)
        Words of the columns.
    n_topics_ : int
        Number of topics.
    perplexity_ : float
        Lowest perplexity of the fit, of held-out documents if there are any.
    held_out_ : bool
        Whether documents were held out.
    criteria_ : dict of {int: float}
        Perplexity for each number of topics.
    trace_ : Trace
        Negative log perplexity after each pass.
    n_iter_ : int
        Number of passes.
    documents_ : int
        Number of documents learnt.
    tokens_ : float
        Number of tokens learnt.
    components_ : ndarray of shape (n_components, n_words)
        p(w|t).
    weights_ : ndarray of shape (n_components,)
        p(t).
    power_ : float
        Exponent b at the end.
    log_likelihood_ : float
        Mean log p(w|d) of the learnt tokens.

    See Also
    --------
    TopicModel : The same with Dirichlet priors.

    Examples
    --------
    >>> from deciban import PLSA
    >>> texts = ["cats purr and cats sleep", "dogs bark and dogs run", "a cat may purr", "some dogs bark"] * 5
    >>> model = PLSA(2, stop_words=["and", "may", "some"], random_state=0).fit(texts)
    >>> sorted(sorted(words) for words in model.top_words(2))
    [['bark', 'dogs'], ['cats', 'purr']]
    >>> model.transform(["dogs bark", "cats purr", "dogs and cats"]).max(axis=1).round(1).tolist()
    [1.0, 1.0, 0.5]
    """

    RANGES: ClassVar[Ranges] = {**TopicEstimator.RANGES, "temper": SHARE}

    temper: float | Literal["auto"] = 1.0

    def fit(
        self, X: DocumentInput, y: object = None, *, words: Words | None = None, callback: Callback | None = None
    ) -> Self:
        """Find the topics of documents.

        Parameters
        ----------
        X : list of str, or array-like of shape (n_documents, n_words)
            Texts, or counts of words (best CSR); fractions count as weights. Texts of a Dask series stay on its
            workers, and every pass returns sums; the vocabulary is that of the first 65,536 documents.
        y : object, optional
            Ignored.
        words : sequence of str, optional
            Names of the columns of counts.
        callback : callable, optional
            Called after each pass with a `Pass`: its number, the perplexity, and the engine.

        Returns
        -------
        PLSA
            The fitted model.
        """
        check_parameters(self)
        power = self._power()
        pool = self._pool()
        cool = _cool if self.temper == "auto" else None
        X, parts = self._documents(X, words)
        if parts is None:
            make: Any = partial(AspectModel, pool=pool, power=power)
            found, _, _ = self._search(X, words, callback, make, cool)
        elif self.temper != 1:
            raise NotAvailableError("documents in partitions are fitted without tempering.", remedy="Use temper=1.")
        else:
            found, _, _ = self._search(
                X, None, callback, lambda first, K, seed: PartedAspects(parts(), first, K, seed), hold_out=False
            )
            self.documents_, self.tokens_ = int(found.documents), found.tokens
        self.log_likelihood_ = found.log_likelihood()
        self.components_ = np.ascontiguousarray(found.words.T)
        self.weights_, self.power_ = found.weights, found.power
        return self

    def _power(self) -> float:
        if isinstance(self.temper, str) and self.temper != "auto":
            raise HyperparameterError(f"temper={self.temper!r} must be 'auto' or above 0 and at most 1.")
        return 1.0 if self.temper == "auto" else float(self.temper)

    def transform(self, X: DocumentInput) -> Array:
        """Return the topic shares p(t|d) of documents.

        Parameters
        ----------
        X : list of str, or array-like of shape (n_documents, n_words)
            Texts, or counts of words.

        Returns
        -------
        ndarray of shape (n_documents, n_components)
            Shares; equal ones for a document without known words.
        """
        counts = self.count_words(X)
        pool = self._pool()
        return fold_in_shares(counts, np.ascontiguousarray(self.components_.T), FOLD_STEPS, pool)

    @property
    def topics_(self) -> Array:
        """Probability of each word in each topic, p(w|t), shape (n_components, n_words)."""
        check_is_fitted(self)
        topics = self.components_.astype(float)
        return (1 - SMOOTHING) * topics / topics.sum(axis=1, keepdims=True) + SMOOTHING / topics.shape[1]

    @property
    def prevalence_(self) -> Array:
        """Share of the learnt tokens that belong to each topic, shape (n_components,)."""
        check_is_fitted(self)
        return self.weights_

    def _prior(self) -> Array:
        return document_prior(None, self.n_topics_)


# -- EM ----------------------------------------------------------------------------------------------------------------
class AspectModel:
    """EM of the aspect model: p(t|d) and p(w|t)."""

    def __init__(
        self, X: sp.csr_array, K: int, seed: int, pool: ThreadPool = SINGLE_THREAD, power: float = 1.0
    ) -> None:
        rng = np.random.default_rng(seed)
        self.rows = Rows.of(X)
        self.by_word = transposed(self.rows, X.shape[1])
        self.documents = np.full((X.shape[0], K), 1 / K, np.float32)  # p(t|d)
        words = start_counts(X, K, rng)
        self.words = words / words.sum(axis=0)  # p(w|t)
        self.weights = np.full(K, 1 / K)  # p(t)
        self.priors = Priors(document_prior(None, K), 0.0, False, False)  # for the fold-in of held-out documents
        self.pool, self.power = pool, power

    def step(self) -> None:
        """Update p(t|d), then p(w|t)."""
        table, shares = self._powered(self.words), self._powered(self.documents)
        counts = plain_counts(self.rows, table, shares, self.pool)
        self.documents = normalised(counts, counts.sum(axis=1, keepdims=True), self.documents)
        shares = self._powered(self.documents)
        sums = plain_counts(self.by_word, shares, table, self.pool)
        totals = sums.sum(axis=0, dtype=float)
        self.weights = totals / totals.sum()
        self.words = normalised(sums, totals, self.words)

    def log_likelihood(self) -> float:
        """Return the mean of log p(w|d) over the learnt tokens."""
        total, tokens = log_likelihoods(self.rows, self.words, self.documents, self.pool)
        return total / tokens

    def _powered(self, probabilities: Array) -> Array:
        return probabilities if self.power == 1 else probabilities ** np.float32(self.power)

    def table(self, words: Array) -> Array:
        """Return the smoothed p(w|t) of some words, shape (words, K)."""
        return smoothed(self.words, words)

    def snapshot(self) -> tuple[Array, Array, Array]:
        """Return the state."""
        return self.documents, self.words, self.weights

    def restore(self, kept: tuple[Array, Array, Array]) -> None:
        """Return to a snapshot."""
        self.documents, self.words, self.weights = kept


def log_likelihoods(rows: Rows, words: Array, shares: Array, pool: ThreadPool) -> tuple[float, float]:
    """Return Σ c_dw log p(w|d), and the number of tokens."""
    rows = Rows(rows.indptr, rows.indices, rows.data.astype(float))
    each = row_log_likelihoods(rows, words.astype(float), shares.astype(float), pool)
    return float(each.sum()), float(rows.data.sum())


def smoothed(table: Array, words: Array) -> Array:
    """Return p(w|t) of some words, with a small probability for each word, shape (words, K)."""
    return (1 - SMOOTHING) * table[words] + SMOOTHING / len(table)


def normalised(counts: Array, totals: Array, otherwise: Array) -> Array:
    """Divide by totals; where the total is 0 take `otherwise`. Shares below LEAST become 0."""
    totals = totals.astype(counts.dtype)
    if not totals.all():
        counts = np.where(totals > 0, counts, otherwise)
        totals = np.where(totals > 0, totals, 1)
    shares = counts / totals
    shares *= shares >= LEAST
    return shares


def fold_in_shares(X: sp.csr_array, words: Array, steps: int, pool: ThreadPool) -> Array:
    """Return p(t|d) of new documents, shape (n, K), by EM from equal shares with p(w|t) fixed."""
    rows = Rows.of(X)
    shares = np.full((len(rows), words.shape[1]), 1 / words.shape[1], np.float32)
    for _ in range(steps):
        counts = plain_counts(rows, words, shares, pool)
        shares = normalised(counts, counts.sum(axis=1, keepdims=True), shares)
    return shares


def _cool(found: AspectModel) -> bool:
    """Lower the exponent; return whether it is still at least LEAST_POWER."""
    found.power *= COOLING
    return found.power >= LEAST_POWER


# -- documents in parts ------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class AspectExpectation:
    """Returns Σ_d c_dw p(t|d,w), shape (V, K), of the documents of a part; and Σ c_dw log p(w|d) with the tokens."""

    words: Array  # (V, K) p(w|t)

    def __call__(self, X: sp.csr_array) -> tuple[Array, float, float]:
        shares, rows = fold_in_shares(X, self.words, DOCUMENT_STEPS, SINGLE_THREAD), Rows.of(X)
        sums = plain_counts(transposed(rows, X.shape[1]), shares, self.words, SINGLE_THREAD).astype(float)
        return sums, *log_likelihoods(rows, self.words, shares, SINGLE_THREAD)


class PartedAspects:
    """EM of the aspect model for documents in parts.

    Nothing is kept of a document between passes, so that a pass which runs twice gives the same sums: p(t|d) is found
    again by DOCUMENT_STEPS steps. The first topics are those of the first documents.
    """

    power = 1.0

    def __init__(self, passes: Passes, first: sp.csr_array, K: int, seed: int) -> None:
        self.parts = passes
        self.documents, self.tokens = passes.total(size_of_part)
        words = start_counts(first, K, np.random.default_rng(seed))
        self.words = words / words.sum(axis=0)  # p(w|t)
        self.weights = np.full(K, 1 / K)  # p(t)
        self.priors = Priors(document_prior(None, K), 0.0, False, False)

    def step(self) -> None:
        """Make one pass over all parts: p(t|d) of every document, then p(w|t)."""
        sums, _, _ = self.parts.total(AspectExpectation(self.words))
        totals = sums.sum(axis=0)
        self.weights = totals / totals.sum()
        self.words = normalised(sums.astype(np.float32), totals, self.words)

    def log_likelihood(self) -> float:
        """Return the mean of log p(w|d) over the tokens of all parts."""
        _, total, tokens = self.parts.total(AspectExpectation(self.words))
        return float(total / tokens)

    def table(self, words: Array) -> Array:
        """Return the smoothed p(w|t) of some words, shape (words, K)."""
        return smoothed(self.words, words)

    def snapshot(self) -> tuple[Array, Array]:
        """Return the state."""
        return self.words, self.weights

    def restore(self, kept: tuple[Array, Array]) -> None:
        """Return to a snapshot."""
        self.words, self.weights = kept
