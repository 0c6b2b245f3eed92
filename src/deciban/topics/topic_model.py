"""Latent Dirichlet allocation as an estimator, and the topic shares of new documents with their uncertainty.

The posterior of a short document under fixed topics is computed exactly. Given the topics z of its tokens, θ is
Dirichlet(α + n), and n holds the number of tokens of each topic:

    p(n | words)  ∝  Π_k Γ(α_k + n_k) · Σ_{z with counts n} Π_i p(w_i|z_i)

The inner sum is accumulated token by token over all vectors n. There are C(N + K, N) of them up to N tokens, so long
documents get approximate moments: CVB0 for the mean, and linear response for the variance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import comb
from typing import Any, ClassVar, Literal, NamedTuple, Self, TypeAlias, get_args

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.special import gammaln
from sklearn.utils.validation import check_is_fitted

from deciban.errors import HyperparameterError, InputError, NotAvailableError
from deciban.families.parameters import COUNT, POSITIVE, Ranges
from deciban.families.protocol import Passes
from deciban.kernels import softmax
from deciban.kernels.choice import Array
from deciban.kernels.rows import distinct_rows
from deciban.latent.em import Trace
from deciban.store.estimators import check_parameters
from deciban.topics.documents import DocumentInput, check_topics, check_words, document_prior
from deciban.topics.estimator import Callback, TopicEstimator, Words, column_names
from deciban.topics.kernels import Rows, ThreadPool, fold_in, used_words
from deciban.topics.lda import (
    CVB0,
    SMALL,
    Gibbs,
    PartedTopics,
    Priors,
    StochasticCVB0,
    TopicSums,
    add_documents,
    batches_of,
    expect,
    learning_rate,
)

Method: TypeAlias = Literal["auto", "scvb0", "cvb0", "gibbs"]
TopicEngine: TypeAlias = StochasticCVB0 | CVB0 | Gibbs
TOKENS = 1e6  # weight of imported topics when more documents are learnt


@dataclass(eq=False, repr=False, kw_only=True)
class TopicModel(TopicEstimator):
    """Latent Dirichlet allocation: documents are mixtures of topics, topics are distributions over words.

    Texts are counted by the model, or X is a table of word counts. An interruption keeps the topics found so far.

    Parameters
    ----------
    n_components : int or iterable of int, default=20
        Number of topics, or several numbers among which held-out documents choose.
    max_iter : int, default=100
        Largest number of passes over all documents.
    tol : float, default=1e-3
        The fit stops when five passes together reduce perplexity by less than this share.
    held_out : float or "auto", default="auto"
        Share of the documents that are held out to stop in time, and learnt at the end; "auto" is 5 %, of 100
        documents or more.
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
    method : {"auto", "scvb0", "cvb0", "gibbs"}, default="auto"
        Inference: stochastic or exact collapsed variational Bayes ("auto" takes the exact one for small corpora), or
        Gibbs sampling of `n_samples` states from the posterior.
    alpha : "learnt", float or array-like of shape (n_components,), default="learnt"
        Dirichlet prior of the topics in a document; "learnt" has one number for each topic.
    beta : "learnt" or float, default="learnt"
        Dirichlet prior of the words in a topic.
    batch : int, optional
        Documents between two updates of the topics.
    n_samples : int, default=10
        Number of states that method "gibbs" keeps.

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
        p(w|t), as in `PLSA`.
    counts_ : ndarray of shape (n_words, n_components)
        Expected counts of words in topics.
    alpha_ : ndarray of shape (n_components,)
        Dirichlet prior of the topics in a document.
    beta_ : float
        Dirichlet prior of the words in a topic.
    method_ : str
        Inference method used.
    samples_ : ndarray of shape (n_samples, n_words, n_components)
        Counts of the sampled states, of method "gibbs".

    See Also
    --------
    PLSA : Topics by maximum likelihood.
    ClassTopics : Topics of each class, as a family of a classifier.

    Examples
    --------
    >>> from deciban import TopicModel
    >>> texts = ["cats purr and cats sleep", "dogs bark and dogs run", "a cat may purr", "some dogs bark"] * 5
    >>> model = TopicModel(2, stop_words=["and", "may", "some"], random_state=0).fit(texts)
    >>> sorted(sorted(words) for words in model.top_words(2))
    [['bark', 'dogs'], ['cats', 'purr']]
    >>> model.transform(["dogs bark", "cats purr"]).max(axis=1).round(1)
    array([1., 1.])
    """

    RANGES: ClassVar[Ranges] = {**TopicEstimator.RANGES, "beta": POSITIVE, "batch": COUNT, "n_samples": COUNT}

    method: Method = "auto"
    alpha: ArrayLike = "learnt"
    beta: float | Literal["learnt"] = "learnt"
    batch: int | None = None
    n_samples: int = 10

    @classmethod
    def from_topics(
        cls,
        topics: ArrayLike,
        words: Words | None = None,
        *,
        alpha: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        tokens: float = TOKENS,
        **options: Any,
    ) -> Self:
        """Make a fitted model of a topic–word matrix of another program.

        gensim's `lda.get_topics()`, tomotopy's `[lda.get_topic_word_dist(k) for k in range(lda.k)]`, scikit-learn's
        `lda.components_` and MALLET's tables are such matrices; `topics_` is one for them.

        Parameters
        ----------
        topics : array-like of shape (n_components, n_words)
            Weights of words in topics, on any scale.
        words : sequence of str, optional
            Names of the columns.
        alpha : float or array-like of shape (n_components,), optional
            Dirichlet prior of the topics in a document; min(.1, 5/n_components) if None.
        weights : array-like of shape (n_components,), optional
            Share of the corpus of each topic; equal if None.
        tokens : float, default=1e6
            Number of tokens that the matrix stands for if the model learns more documents.
        **options
            Parameters of the model, such as stop_words.

        Returns
        -------
        TopicModel
            The fitted model.

        Examples
        --------
        >>> from deciban import TopicModel
        >>> model = TopicModel.from_topics([[8, 2, 0], [0, 1, 9]], ["sea", "fish", "wolf"])
        >>> model.transform(["fish sea sea"]).argmax()
        np.int64(0)
        """
        table = check_topics(topics)
        K, V = table.shape
        share = np.ones(K) if weights is None else np.asarray(weights, dtype=float)
        if share.shape != (K,) or not ((share >= 0) & (share < np.inf)).all() or not share.sum():
            raise InputError(f"weights must be {K} numbers of at least 0, not all 0.")
        model = cls(K, **options)
        model.counts_ = np.ascontiguousarray((table * (tokens * share / share.sum())[:, None]).T, dtype=np.float32)
        model.alpha_, model.beta_ = document_prior(alpha, K), 1e-6
        model.vocabulary_ = column_names(V) if words is None else check_words(words, V)
        model.texts_, model.n_features_in_, model.n_topics_ = words is not None, V, K
        model.trace_, model.n_iter_, model.steps_ = Trace(converged=True), 1, 0
        model.documents_, model.tokens_ = 0, float(tokens)
        model.method_, model.criteria_, model.perplexity_, model.held_out_ = "scvb0", {}, float("inf"), False
        return model

    # -- learning ----------------------------------------------------------------------------------------------------
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
        TopicModel
            The fitted model.
        """
        check_parameters(self)
        pool = self._pool()
        X, parts = self._documents(X, words)
        if parts is not None:
            return self._fit_parts(X, parts, callback)
        engine, _, held = self._search(X, words, callback, lambda X, K, seed: self._engine(X, K, seed, pool))
        self._set(engine, held, pool)
        return self

    def _fit_parts(self, first: Any, parts: Callable[[], Passes], callback: Callback | None) -> Self:
        """Fit documents that stay on the workers of a cluster."""
        if self.method == "gibbs":
            raise NotAvailableError("documents in partitions are not sampled.", remedy="Use method='auto'.")

        def make(X: sp.csr_array, K: int, seed: int) -> PartedTopics:
            return PartedTopics(parts(), X, K, Priors.given(self.alpha, self.beta, K), seed)

        engine, _, _ = self._search(first, None, callback, make, hold_out=False)
        self.__dict__.pop("samples_", None)
        self.documents_, self.tokens_ = int(engine.documents), engine.tokens
        self.method_, self.steps_ = "scvb0", engine.steps
        self._keep(engine.sums, engine.priors)
        return self

    def partial_fit(self, X: DocumentInput, y: object = None, *, words: Words | None = None) -> Self:
        """Learn more documents, whose words may be new. The first call is `fit`.

        Parameters
        ----------
        X : list of str, or array-like of shape (n_documents, n_words)
            Texts, or counts of words.
        y : object, optional
            Ignored.
        words : sequence of str, optional
            Names of the columns of counts; new names get new columns.

        Returns
        -------
        TopicModel
            The model itself.
        """
        if not hasattr(self, "counts_"):
            return self.fit(X, words=words)
        counts = self._more_counts(X, words)
        sums = TopicSums(self.counts_)
        sums.grow(counts.shape[1])
        priors = Priors(self.alpha_, self.beta_, isinstance(self.alpha, str), False)
        self.__dict__.pop("samples_", None)  # they do not include the new documents
        pool = self._pool()
        for batch in batches_of(counts, np.arange(counts.shape[0]), self.batch):
            found = expect(batch, sums, priors, pool)
            sums.stretch((self.tokens_ + batch.tokens) / self.tokens_)
            self.steps_, self.tokens_ = self.steps_ + 1, self.tokens_ + batch.tokens
            rate = min(max(learning_rate(self.steps_), batch.tokens / self.tokens_), 1.0)
            sums.move(*found, rate, self.tokens_ / batch.tokens, pool)
            assert batch.counts is not None
            priors = priors.learn_alpha_from(batch.counts, steps=1)
        self.documents_ += counts.shape[0]
        self._keep(sums, priors)
        return self

    def check_parameters(self) -> None:
        """Check the method, and how texts are to be read; numbers are checked by their ranges.

        Raises
        ------
        HyperparameterError
            If `fit` would refuse a parameter.
        """
        super().check_parameters()
        if self.method not in get_args(Method):
            raise HyperparameterError(f"method={self.method!r} is not one of {', '.join(get_args(Method))}.")

    def _engine(self, X: sp.csr_array, K: int, seed: int, pool: ThreadPool) -> TopicEngine:
        priors = Priors.given(self.alpha, self.beta, K)
        method = self.method
        if method == "auto":
            method = "cvb0" if X.nnz * K <= SMALL and self.batch is None else "scvb0"
        if method == "gibbs":
            return Gibbs(X, K, priors, seed)
        if method == "cvb0":
            return CVB0(X, K, priors, seed, pool)
        return StochasticCVB0(X, K, priors, seed, pool, self.batch)

    def _set(self, engine: TopicEngine, held: sp.csr_array | None, pool: ThreadPool) -> None:
        """Set the fitted attributes; the held-out documents are added to the counts."""
        if isinstance(engine, Gibbs) and not self.trace_.interrupted:
            self.samples_ = engine.samples(self.n_samples)
            sums = TopicSums(self.samples_.mean(axis=0))
        else:
            self.__dict__.pop("samples_", None)
            sums = engine.whole() if isinstance(engine, StochasticCVB0) else engine.sums
        if held is not None:
            add_documents(sums, held, engine.priors, pool)
            self.documents_, self.tokens_ = self.documents_ + held.shape[0], self.tokens_ + float(held.data.sum())
        self.method_ = {Gibbs: "gibbs", CVB0: "cvb0", StochasticCVB0: "scvb0"}[type(engine)]
        self.steps_ = int(getattr(engine, "steps", 0))
        self._keep(sums, engine.priors)

    def _keep(self, sums: TopicSums, priors: Priors) -> None:
        self.counts_ = sums.final()
        self.alpha_, self.beta_ = priors.alpha, priors.beta

    # -- answers -----------------------------------------------------------------------------------------------------
    def transform(self, X: DocumentInput) -> Array:
        """Return the expected topic shares of documents.

        Parameters
        ----------
        X : list of str, or array-like of shape (n_documents, n_words)
            Texts, or counts of words.

        Returns
        -------
        ndarray of shape (n_documents, n_components)
            Shares; those of the prior for a document without known words.
        """
        each = [expected_shares(found.counts, self.alpha_) for found in self._fold_in(X)]
        return np.mean(each, axis=0) if len(each) > 1 else each[0]

    def posterior(self, X: DocumentInput) -> TopicShares:
        """Return the posterior of the topic shares of documents.

        Short documents have exact means and standard deviations (with 20 topics up to 4 tokens, with 10 up to 6);
        those of longer ones are approximate, as the result's `exact` tells.

        Parameters
        ----------
        X : list of str, or array-like of shape (n_documents, n_words)
            Texts, or counts of words.

        Returns
        -------
        TopicShares
            Mean, standard deviation and interval of every share.
        """
        each = [shares_of(found, self.alpha_) for found in self._fold_in(X)]
        centres = np.array([shares.mean for shares in each])
        within = np.mean([shares.sd**2 for shares in each], axis=0)
        return TopicShares(centres.mean(axis=0), np.sqrt(within + centres.var(axis=0)), each[0].exact)

    def _fold_in(self, X: DocumentInput) -> list[FoldedIn]:
        """Fold documents in under the counts, or under those of each sampled state."""
        documents = self.count_words(X)
        states = getattr(self, "samples_", self.counts_[None])
        pool = self._pool()
        return [fold_in_documents(documents, counts, self.alpha_, self.beta_, pool) for counts in states]

    @property
    def components_(self) -> Array:  # type: ignore[override]
        """Probabilities p(w|t), as `topics_`, shape (n_components, n_words); expected counts are `counts_`."""
        return self.topics_

    @property
    def topics_(self) -> Array:
        """Probability of each word in each topic, p(w|t), shape (n_components, n_words)."""
        check_is_fitted(self)
        topics = self.counts_.T.astype(float) + self.beta_
        return topics / topics.sum(axis=1, keepdims=True)

    @property
    def prevalence_(self) -> Array:
        """Share of the learnt tokens that belong to each topic, shape (n_components,)."""
        check_is_fitted(self)
        totals = self.counts_.sum(axis=0, dtype=float)
        return totals / totals.sum()

    def _prior(self) -> Array:
        return self.alpha_


# -- topic shares of new documents, under fixed topics -----------------------------------------------------------------
STEPS, TOLERANCE = 200, 1e-5  # of fold-in
ENTRY_STEPS = 10  # fixed-point steps of γ given the counts
CHUNK = 2**21  # numbers held at a time
MOST_STATES = 2**14  # vectors of counts up to which a posterior is exact: 4 tokens with 20 topics, 6 with 10


@dataclass(frozen=True, eq=False)
class TopicShares:
    """Posterior of the topic shares θ of documents.

    The topics themselves, p(w|t), are taken as known. Short documents have exact moments; those of longer ones are
    approximate, which `exact` tells: the mean by CVB0, the variance by linear response. Where words fit several topics
    alike, an approximate standard deviation may be off by a quarter.

    Attributes
    ----------
    mean : ndarray of shape (n_documents, n_components)
        Expected shares.
    sd : ndarray of shape (n_documents, n_components)
        Standard deviations of the shares.
    exact : ndarray of bool of shape (n_documents,)
        Whether mean and standard deviation of a document are exact, given the topics.
    """

    mean: Array
    sd: Array
    exact: Array

    def interval(self, level: float = 0.95) -> tuple[Array, Array]:
        """Lower and upper bounds of each share: quantiles of the Beta distribution with this mean and variance."""
        from scipy.stats import beta

        if not 0 < level < 1:
            raise HyperparameterError(f"level={level} must lie between 0 and 1.")
        mean = np.clip(self.mean, 1e-12, 1 - 1e-12)
        size = np.maximum(mean * (1 - mean) / np.maximum(self.sd, 1e-9) ** 2 - 1, 1e-9)
        tail = (1 - level) / 2
        return beta.ppf(tail, mean * size, (1 - mean) * size), beta.ppf(1 - tail, mean * size, (1 - mean) * size)

    def __repr__(self) -> str:
        n, K = self.mean.shape
        exact = int(self.exact.sum())
        return f"TopicShares({n} documents, {K} topics; {exact} exact, {n - exact} approximate)"


class FoldedIn(NamedTuple):
    """Documents and their expected counts under fixed topics."""

    rows: Rows
    table: Array  # (words used, K) p(w|t)
    counts: Array  # (n, K) Σ c γ


def fold_in_documents(X: sp.csr_array, counts: Array, alpha: Array, beta: float, pool: ThreadPool) -> FoldedIn:
    """Fold documents in by CVB0 with p(w|t) = (n_wk + β)/(n_k + Vβ) fixed."""
    words, rows = used_words(X)
    table = (counts[words].astype(float) + beta) / (counts.sum(axis=0, dtype=float) + len(counts) * beta)
    return FoldedIn(rows, table, fold_in(rows, table, alpha, STEPS, TOLERANCE, pool))


def expected_shares(counts: Array, alpha: Array) -> Array:
    """Return E θ, shape (n, K)."""
    return (counts + alpha) / (counts + alpha).sum(axis=1, keepdims=True)


def shares_of(found: FoldedIn, alpha: Array) -> TopicShares:
    """Return mean and standard deviation of shares: exact for short documents, else by the law of total variance."""
    mean, variance = np.empty_like(found.counts), np.empty_like(found.counts)
    rows, K = found.rows, len(alpha)
    tokens = rows.lengths()
    most = 1
    while comb(most + 1 + K, K) <= MOST_STATES:
        most += 1
    whole = np.bincount(rows.owners(), rows.data % 1 > 0, len(rows)) == 0
    exact = whole & (tokens <= most)
    short, long = np.flatnonzero(exact), np.flatnonzero(~exact)
    mean[short], variance[short] = _exact_moments(found, alpha, short, tokens[short].astype(int))
    a = found.counts[long] + alpha
    size, spread = a.sum(axis=1, keepdims=True), count_variances(found, alpha, long)
    within = np.maximum(a * size - a**2 - spread, 0.0) / (size**2 * (size + 1))
    mean[long], variance[long] = a / size, within + spread / size**2
    return TopicShares(mean, np.sqrt(variance), exact)


def _exact_moments(found: FoldedIn, alpha: Array, documents: Array, tokens: Array) -> tuple[Array, Array]:
    """Return mean and variance of the shares of documents with these numbers of tokens, by summing over all topics."""
    rows, K = found.rows, len(alpha)
    mean, variance = np.empty((2, len(documents), K))
    states: list[Array] = [np.zeros((1, K), dtype=np.int64)]
    moves: list[Array] = []
    for _ in range(int(tokens.max(initial=0))):  # states[i]: counts of i tokens; moves[i]: their successors, by topic
        successors = (states[-1][:, None] + np.eye(K, dtype=np.int64)).reshape(-1, K)
        distinct, place = distinct_rows(successors)
        states.append(distinct)
        moves.append(place.reshape(-1, K))
    for n in np.unique(tokens):
        log_prior = gammaln(alpha + states[n]).sum(axis=1)
        a, size = alpha + states[n], alpha.sum() + n
        here = np.flatnonzero(tokens == n)
        for some in np.array_split(here, 1 + len(here) * len(states[n]) * K // CHUNK):
            entry = [np.arange(rows.indptr[d], rows.indptr[d + 1]) for d in documents[some]]
            each = [np.repeat(at, rows.data[at].astype(int)) for at in entry]
            p = found.table[rows.indices[np.concatenate(each, dtype=int)]].reshape(len(some), n, K)
            weight = np.ones((len(some), 1))  # Σ Π p(w|z) over topics z with these counts
            for i in range(n):
                grown = np.zeros((len(some), len(states[i + 1])))
                likelihood = p[:, i] / p[:, i].max(axis=1, keepdims=True)
                for k in range(K):
                    grown[:, moves[i][:, k]] += weight * likelihood[:, k : k + 1]
                weight = grown
            with np.errstate(divide="ignore"):
                share = softmax(np.log(weight) + log_prior)
            mean[some] = share @ a / size
            variance[some] = np.maximum(share @ (a * (a + 1)) / (size * (size + 1)) - mean[some] ** 2, 0.0)
    return mean, variance


def count_variances(found: FoldedIn, alpha: Array, documents: Array) -> Array:
    """Return the variance of the number of tokens of each topic, shape (documents, K).

    If the topics of tokens were independent, the covariance would be S = Σ c (diag γ − γγᵀ). They are not; the response
    of the fixed point of γ to a change of the counts (linear response) gives

        Cov(n) = (I − S D⁻¹)⁻¹ S,   D = diag(n + α)

    Reference: Opper and Saad, eds, Advanced mean field methods, 2001, on linear response.
    """
    K, lengths = len(alpha), np.diff(found.rows.indptr)[documents]
    variances, order, at = np.zeros((len(documents), K)), np.argsort(lengths, kind="stable"), 0
    while at < len(order):
        few = max(1, CHUNK // (K * max(K, int(lengths[order[at]]))))
        here = order[at : at + few]
        variances[here] = _responses(found, alpha, documents[here])
        at += few
    return variances


def _responses(found: FoldedIn, alpha: Array, documents: Array) -> Array:
    rows, n = found.rows, found.counts[documents]
    a, lengths = n + alpha, np.diff(rows.indptr)[documents]
    place = np.arange(lengths.max())
    valid = place < lengths[:, None]
    entry = np.where(valid, rows.indptr[documents][:, None] + place, 0)
    c, p = np.where(valid, rows.data[entry], 0.0), found.table[rows.indices[entry]]
    g = np.zeros_like(p)
    for _ in range(ENTRY_STEPS):  # γ of each entry, given the counts
        g = (np.maximum(n[:, None] - g, 0.0) + alpha) * p
        g /= g.sum(axis=2, keepdims=True)
    S = -np.matmul((g * c[:, :, None]).transpose(0, 2, 1), g)
    diagonal = np.arange(S.shape[1])
    S[:, diagonal, diagonal] += (g * c[:, :, None]).sum(axis=1)
    root = np.sqrt(a)
    B = S / (root[:, :, None] * root[:, None, :])
    inverse = np.linalg.inv(np.eye(len(alpha)) - B)  # exists, because S ≤ diag n
    response = a * (inverse[:, diagonal, diagonal] - 1)
    whole = n.sum(axis=1, keepdims=True)
    return np.clip(response, 0.0, n * np.maximum(whole - n, 0.0))  # the largest possible variance
