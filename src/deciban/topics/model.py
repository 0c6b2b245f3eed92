"""Latent Dirichlet allocation as an estimator."""

from __future__ import annotations

from typing import Any, Literal, Self, TypeAlias, get_args

import numpy as np
from sklearn.utils.validation import check_is_fitted

from deciban.errors import HyperparameterError, InputError
from deciban.kernels.choice import Array
from deciban.latent.em import Trace
from deciban.topics.course import Watch, run
from deciban.topics.face import StoredTopics, TopicFace
from deciban.topics.folding import TopicShares, folded, means, shares_of
from deciban.topics.judging import check_topics, prior_of
from deciban.topics.kernels import ThreadPool
from deciban.topics.lda import SMALL, Exact, Gibbs, Stochastic, absorb, falling_rate, share_out
from deciban.topics.reading import check_words
from deciban.topics.state import Priors, TopicSums, batches_of

Method: TypeAlias = Literal["auto", "scvb0", "cvb0", "gibbs"]


class TopicModel(TopicFace):
    """Latent Dirichlet allocation: documents mix topics, topics mix words, both with Dirichlet priors.

    n_topics : how many; or several numbers, of which held-out documents choose
    method   : "scvb0", self-excluding and stochastic; "cvb0", exact, for small corpora; "auto" takes one of them by
               size; "gibbs" draws `n_samples` states from the posterior
    alpha    : of topics in a document: "learnt" (a number for each topic), a number, or an array
    beta     : of words in a topic: "learnt" (one number), or a number
    max_iter : passes over all documents, at most; they end when five gain less than a share `tol` of perplexity
    held_out : the share of documents that watch for over-fitting, and are learnt at the end; "auto" is 5 %, of 100 or
               more documents
    batch    : documents between two updates of the topics
    threads  : None for as many as there are cores; the answer does not depend on it

    Texts are counted here (ngrams, stop_words, stem, min_df, max_df, max_words), or X is a table of counts, best CSR;
    fractions count as weights. An interruption keeps the topics found so far.

    >>> from deciban import TopicModel
    >>> texts = ["cats purr and cats sleep", "dogs bark and dogs run", "a cat may purr", "some dogs bark"] * 5
    >>> model = TopicModel(2, stop_words=["and", "may", "some"], random_state=0).fit(texts)
    >>> sorted(sorted(words) for words in model.top_words(2))
    [['bark', 'dogs'], ['cats', 'purr']]
    >>> model.transform(["dogs bark", "cats purr"]).max(axis=1).round(1)
    array([1., 1.])
    """

    def __init__(
        self,
        n_topics: Any = 20,
        *,
        method: Method = "auto",
        alpha: Any = "learnt",
        beta: Any = "learnt",
        max_iter: int = 100,
        tol: float = 1e-3,
        held_out: Any = "auto",
        batch: int | None = None,
        n_samples: int = 10,
        ngrams: tuple[int, int] = (1, 1),
        stop_words: Any = "english",
        stem: str | None = None,
        min_df: float = 1,
        max_df: float = 1.0,
        max_words: int | None = None,
        random_state: Any = None,
        threads: int | None = None,
        progress: bool = False,
    ) -> None:
        self.n_topics = n_topics
        self.method = method
        self.alpha = alpha
        self.beta = beta
        self.max_iter = max_iter
        self.tol = tol
        self.held_out = held_out
        self.batch = batch
        self.n_samples = n_samples
        self.ngrams = ngrams
        self.stop_words = stop_words
        self.stem = stem
        self.min_df = min_df
        self.max_df = max_df
        self.max_words = max_words
        self.random_state = random_state
        self.threads = threads
        self.progress = progress

    # -- learning ----------------------------------------------------------------------------------------------------
    def fit(self, X: Any, y: Any = None, *, words: Any = None, watch: Watch | None = None) -> Self:
        """Find the topics of documents.

        words : names of X's columns, if it is a table without any
        watch : called after each pass with a `Moment`: its number, the perplexity, and the state
        """
        sizes = self._sizes()
        self._check()
        X, seed = self._learn_counts(X, words), self._seed()
        learnt, held = self._parted(X, seed, len(sizes) > 1)
        judge = self._judge(learnt, held, seed)
        criteria: dict[int, float] = {}
        with self._pool() as pool:
            for K in sizes:
                engine = self._engine(learnt, K, seed, pool)
                label = f"{K} topics" if self.progress else None
                trace = run(engine, judge, self.max_iter, self.tol, label, watch)
                reached = float(np.exp(-max(trace.objective, default=-np.inf)))
                if all(reached < other for other in criteria.values()):
                    best = engine, trace
                criteria[K] = reached
                if trace.interrupted:
                    break
            self._set(*best, learnt, held, pool)
        self.criteria_ = criteria
        return self

    def _check(self) -> None:
        if self.method not in get_args(Method):
            raise HyperparameterError(f"method={self.method!r} is not one of {', '.join(get_args(Method))}.")
        for name in ("max_iter", "n_samples"):
            if getattr(self, name) < 1:
                raise HyperparameterError(f"{name}={getattr(self, name)} must be at least 1.")
        if self.batch is not None and self.batch < 1:
            raise HyperparameterError(f"batch={self.batch} must be at least one document, or None.")

    def _engine(self, X: Any, K: int, seed: int, pool: ThreadPool) -> Any:
        priors = Priors.asked(self.alpha, self.beta, K)
        method = self.method
        if method == "auto":
            method = "cvb0" if X.nnz * K <= SMALL and self.batch is None else "scvb0"
        if method == "gibbs":
            return Gibbs(X, K, priors, seed)
        return Exact(X, K, priors, seed, pool) if method == "cvb0" else Stochastic(X, K, priors, seed, pool, self.batch)

    def _set(self, engine: Any, trace: Any, learnt: Any, held: Any, pool: ThreadPool) -> None:
        if isinstance(engine, Gibbs) and not trace.interrupted:
            self.samples_ = engine.samples(self.n_samples)  # (S, V, K)
            sums = TopicSums(self.samples_.mean(axis=0))
        else:
            self.__dict__.pop("samples_", None)
            sums = engine.whole() if isinstance(engine, Stochastic) else engine.sums
        if held is not None:
            absorb(sums, held, engine.priors, pool)
        self.method_ = {Gibbs: "gibbs", Exact: "cvb0", Stochastic: "scvb0"}[type(engine)]
        self.n_topics_, self.n_iter_, self.trace_ = len(engine.priors.alpha), max(trace.iterations, 1), trace
        self.perplexity_ = float(np.exp(-max(trace.objective, default=-np.inf)))
        self.held_out_ = held is not None
        more = (0, 0.0) if held is None else (held.shape[0], float(held.data.sum()))
        self.documents_, self.tokens_ = learnt.shape[0] + more[0], float(learnt.data.sum()) + more[1]
        self.steps_ = int(getattr(engine, "steps", 0))
        self._keep(sums, engine.priors)

    def _keep(self, sums: TopicSums, priors: Priors) -> None:
        self.counts_ = sums.final()  # (V, K) Σ c γ
        self.alpha_, self.beta_ = priors.alpha, priors.beta

    def partial_fit(self, X: Any, y: Any = None, *, words: Any = None) -> Self:
        """Learn more documents, whose words may be new. The first call is `fit`.

        words : names of X's columns, if it is a table: those not known yet are added
        """
        if not hasattr(self, "counts_"):
            return self.fit(X, words=words)
        X = self._more_counts(X, words)
        sums = TopicSums(self.counts_)
        sums.grow(X.shape[1])
        priors = Priors(self.alpha_, self.beta_, isinstance(self.alpha, str), False)
        self.__dict__.pop("samples_", None)  # they know nothing of the new documents
        with self._pool() as pool:
            for batch in batches_of(X, np.arange(X.shape[0]), self.batch):
                found = share_out(batch, sums, priors, pool)
                sums.stretch((self.tokens_ + batch.tokens) / self.tokens_)
                self.steps_, self.tokens_ = self.steps_ + 1, self.tokens_ + batch.tokens
                rate = min(max(falling_rate(self.steps_), batch.tokens / self.tokens_), 1.0)
                sums.move(*found, rate, self.tokens_ / batch.tokens, pool)
                assert batch.counts is not None
                priors = priors.for_documents(batch.counts, steps=1)
        self.documents_ += X.shape[0]
        self._keep(sums, priors)
        return self

    # -- answers -----------------------------------------------------------------------------------------------------
    def transform(self, X: Any) -> Array:
        """(n, K) the expected share of each topic in documents; the prior's where no word is known."""
        X = self._counts(X)
        with self._pool() as pool:
            each = [means(folded(X, counts, *self._priors(), pool).counts, self.alpha_) for counts in self._states()]
        return np.mean(each, axis=0) if len(each) > 1 else each[0]

    def posterior(self, X: Any) -> TopicShares:
        """The topics of documents with their uncertainty: mean, sd and interval of every share."""
        X = self._counts(X)
        with self._pool() as pool:
            found = [folded(X, counts, *self._priors(), pool) for counts in self._states()]
        each = [shares_of(one, self.alpha_) for one in found]
        centres = np.array([shares.mean for shares in each])
        within = np.mean([shares.sd**2 for shares in each], axis=0)
        return TopicShares(centres.mean(axis=0), np.sqrt(within + centres.var(axis=0)))

    def _states(self) -> Any:
        """Counts of words in topics: those of every sample, where there are any."""
        return getattr(self, "samples_", self.counts_[None])

    def _priors(self) -> tuple[Array, float]:
        return self.alpha_, self.beta_

    @property
    def components_(self) -> Array:
        """(K, V) n_wk + β: pseudo-counts of words in topics, as scikit-learn's."""
        check_is_fitted(self)
        return (self.counts_ + np.float32(self.beta_)).T

    def _topics(self) -> Array:
        topics = self.counts_.T.astype(float) + self.beta_
        return topics / topics.sum(axis=1, keepdims=True)

    def _weights(self) -> Array:
        totals = self.counts_.sum(axis=0, dtype=float)
        return totals / totals.sum()

    def _prior(self) -> Array:
        return self.alpha_

    def stored(self) -> StoredTopics:
        """As a file holds it."""
        return StoredTopics.of(self)


# -- imports ----------
# Topics found elsewhere, as plain arrays.

TOKENS = 1e6  # that imported topics are worth, unless it is said: later documents move them a little


def topic_model(
    topics: Any, words: Any = None, *, alpha: Any = None, weights: Any = None, tokens: float = TOKENS, **options: Any
) -> TopicModel:
    """A fitted `TopicModel` of a topic–word matrix (K, V) on any scale.

    gensim's `lda.get_topics()`, tomotopy's `[lda.get_topic_word_dist(k) for k in range(lda.k)]`, scikit-learn's
    `lda.components_` and MALLET's tables are such matrices; `model.topics_` is one for them.

    words   : names of the columns
    alpha   : the prior of topics in a document, one number or K
    weights : (K,) how much of the corpus each topic drew
    tokens  : how many tokens the matrix stands for when the model goes on learning
    options : of `TopicModel`, such as stop_words

    >>> model = topic_model([[8, 2, 0], [0, 1, 9]], ["sea", "fish", "wolf"])
    >>> model.transform(["fish sea sea"]).argmax()
    np.int64(0)
    """
    table = check_topics(topics)
    K, V = table.shape
    share = np.ones(K) if weights is None else np.asarray(weights, dtype=float)
    if share.shape != (K,) or not ((share >= 0) & (share < np.inf)).all() or not share.sum():
        raise InputError(f"weights must be {K} numbers of at least 0, not all 0.")
    model = TopicModel(K, **options)
    model.counts_ = np.ascontiguousarray((table * (tokens * share / share.sum())[:, None]).T, dtype=np.float32)
    model.alpha_, model.beta_ = prior_of(alpha, K), 1e-6
    model.vocabulary_ = np.array([f"word{w}" for w in range(V)], dtype=object)
    if words is not None:
        model.vocabulary_ = check_words(words, V)
    model.texts_, model.n_features_in_, model.n_topics_ = words is not None, V, K
    model.trace_, model.n_iter_, model.steps_ = Trace(converged=True), 1, 0
    model.documents_, model.tokens_ = 0, float(tokens)
    model.method_, model.criteria_, model.perplexity_, model.held_out_ = "scvb0", {}, float("inf"), False
    return model
