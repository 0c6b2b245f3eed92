"""Topic models as files: parameters, and what was learnt."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from deciban.errors import HyperparameterError, InputError
from deciban.kernels.choice import Array
from deciban.store import save
from deciban.store.checks import require
from deciban.store.estimators import Estimator
from deciban.text.tokens import Tokens
from deciban.text.vocabulary import Limits
from deciban.topics import judging
from deciban.topics.judging import Completion
from deciban.topics.kernels import ThreadPool
from deciban.topics.reading import TextCounting, check_words, counts_of, extended, is_texts, require_words
from deciban.topics.words import LAMBDA, Ranking, TopicTable, divergences, ranked

Check = Callable[[], None]


@dataclass(frozen=True, eq=False)
class StoredTopics:
    """An estimator whose arrays belong together."""

    estimator: Any

    @classmethod
    def of(cls, model: Any) -> StoredTopics:
        """A fitted topic model."""
        check_is_fitted(model)
        return cls(Estimator.of(model))

    @property
    def rows(self) -> float:
        """Documents learnt."""
        return float(self.estimator.fitted.get("documents_", 0))

    def restored(self, check: Check | None, key: Any = None) -> Any:
        """The model; sizes and ranges are looked at before anything is answered."""
        if check is not None:
            check()
        require(isinstance(self.estimator, Estimator), "topics", "an estimator")
        model = self.estimator.put_together({})
        words, K = model.vocabulary_, model.n_topics_
        require(isinstance(words, np.ndarray) and words.ndim == 1 and words.dtype == object, "vocabulary_", "words")
        require(len(set(words.tolist())) == len(words), "vocabulary_", "words that differ")
        require(type(K) is int and K >= 1, "n_topics_", "a number of topics")
        shapes = {"components_": (K, len(words)), "counts_": (len(words), K), "alpha_": (K,), "weights_": (K,)}
        for name, shape in shapes.items():
            held = vars(model).get(name)
            if held is None:
                continue
            right = isinstance(held, np.ndarray) and held.shape == shape and held.dtype.kind == "f"
            require(right, name, f"the shape {shape}")
            require(bool((held >= 0).all() and np.isfinite(held).all()), name, "finite numbers of at least 0")
        model.topics_  # noqa: B018  what cannot be read is noticed now
        return model


# -- face ----------
# What topic models share: reading, answering for new documents, judging and showing.

HELD_OUT = 0.05  # of the documents, at most MOST_HELD, watch over the others
MOST_HELD, LEAST_DOCUMENTS = 500, 100


class TopicFace(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC):
    """A topic model as scikit-learn knows them; `_topics()` and `_weights()` are what a kind of model adds."""

    n_topics: Any
    threads: int | None
    random_state: Any
    ngrams: tuple[int, int]
    stop_words: Any
    stem: str | None
    min_df: float
    max_df: float
    max_words: int | None
    held_out: Any

    # -- reading -----------------------------------------------------------------------------------------------------
    def _counting(self) -> TextCounting:
        tokens = Tokens(ngrams=tuple(self.ngrams), stop_words=self.stop_words, stem=self.stem)  # type: ignore[arg-type]
        return TextCounting(tokens, Limits(self.min_df, self.max_df, self.max_words), self.threads)

    def _learn_counts(self, X: Any, words: Any) -> Any:
        """Counts of what is learnt first; the words become columns."""
        if is_texts(X):
            if words is not None:
                raise InputError("words name the columns of a table of counts; texts bring their own. Leave them out.")
            X, self.vocabulary_ = self._counting().learn(X)
            self.texts_ = True
            self.n_features_in_ = X.shape[1]
            if hasattr(self, "feature_names_in_"):
                del self.feature_names_in_
        else:
            X = self._table(X, reset=True)
            named = getattr(self, "feature_names_in_", None) if words is None else words
            self.texts_ = False
            self.vocabulary_ = np.array([f"word{w}" for w in range(X.shape[1])], dtype=object)
            if named is not None:
                self.vocabulary_ = check_words(named, X.shape[1])
        X = counts_of(X, self.vocabulary_)
        require_words(X)
        return X

    def _more_counts(self, X: Any, words: Any) -> Any:
        """Counts of what is learnt later: new words get new columns."""
        if is_texts(X):
            X, self.vocabulary_ = self._counting().grow(X, self.vocabulary_)
        elif words is not None:
            X = counts_of(X)
            X, self.vocabulary_ = extended(X, check_words(words, X.shape[1]), self.vocabulary_)
        else:
            X = self._table(X, reset=False)
        self.n_features_in_ = X.shape[1]
        return counts_of(X, self.vocabulary_)

    def _counts(self, X: Any) -> Any:
        """Counts of new documents, in the columns learnt."""
        check_is_fitted(self)
        if is_texts(X):
            if not self.texts_ and not hasattr(self, "feature_names_in_") and self.vocabulary_[0] == "word0":
                raise InputError("the model learnt columns without names, so it cannot read texts. Name words in fit.")
            return counts_of(self._counting().count(X, self.vocabulary_))
        return counts_of(self._table(X, reset=False), self.vocabulary_)

    def _table(self, X: Any, reset: bool) -> Any:
        try:
            return validate_data(self, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32])
        except TypeError:
            raise
        except ValueError as problem:
            raise InputError(str(problem)) from None

    def count_words(self, X: Any) -> Any:
        """(n, V) CSR counts of the words learnt; others are left out."""
        return self._counts(X)

    # -- fitting -----------------------------------------------------------------------------------------------------
    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31))

    def _sizes(self) -> list[int]:
        given = self.n_topics
        sizes = list(given) if np.iterable(given) else [given]
        if not sizes:
            raise HyperparameterError("n_topics is empty. Give a number, or several such as (10, 20, 50).")
        for size in sizes:
            if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1:
                raise HyperparameterError(f"n_topics={size!r} must be a whole number of at least 1.")
        return [int(size) for size in sizes]

    def _parted(self, X: Any, seed: int, several: bool) -> tuple[Any, Any]:
        """Documents to learn from, and those that watch over it; None where all are learnt."""
        n, share = X.shape[0], self.held_out
        if share == "auto":
            share = HELD_OUT if n >= LEAST_DOCUMENTS else 0.1 if several else 0.0
        if isinstance(share, str) or not 0 <= share < 1:
            raise HyperparameterError(f"held_out={self.held_out!r} must be 'auto' or a share of documents below 1.")
        number = min(max(round(share * n), 1), MOST_HELD, n - 1) if share else 0
        order = np.random.default_rng([seed, 0]).permutation(n)
        held = X[np.sort(order[:number])]
        if number == 0 or held.data.sum() < 2:
            return X, None
        return X[np.sort(order[number:])], held

    def _judge(self, learnt: Any, held: Any, seed: int) -> Completion:
        """Held-out documents to be completed; without any, some of those that are learnt."""
        if held is None:
            held = learnt[: MOST_HELD if learnt.shape[0] > MOST_HELD else learnt.shape[0]]
        try:
            return Completion.rough(held, seed)
        except InputError:  # too short to be cut in two: then the same tokens are shown and predicted
            return Completion(held, held)

    # -- answers -----------------------------------------------------------------------------------------------------
    @abstractmethod
    def _topics(self) -> Array:
        """(K, V) the probabilities of the words of each topic."""

    @abstractmethod
    def _weights(self) -> Array:
        """(K,) how much of the tokens each topic has."""

    @abstractmethod
    def _prior(self) -> Array:
        """(K,) the prior of a document's shares."""

    @property
    def topics_(self) -> Array:
        """(K, V) p(w|t)."""
        check_is_fitted(self)
        return self._topics()

    @property
    def prevalence_(self) -> Array:
        """(K,) the share of the learnt tokens that each topic drew."""
        check_is_fitted(self)
        return self._weights()

    @property
    def _n_features_out(self) -> int:
        return self.n_topics_

    def perplexity(self, X: Any) -> float:
        """Of half of each document's tokens, given the other half: less is better (`deciban.topics.judging`)."""
        X = self._counts(X)
        require_words(X)
        judge = Completion.of(X, 0, self.threads)
        return judge(self._topics()[:, judge.words].T, self._prior())

    def score(self, X: Any, y: Any = None) -> float:
        """The mean log probability of a held-out token: −log perplexity."""
        return -float(np.log(self.perplexity(X)))

    # -- judging and showing -----------------------------------------------------------------------------------------
    def top_words(self, n: int = 10, by: Ranking = "probability", lam: float = LAMBDA) -> list[list[str]]:
        """The first words of each topic, by probability, relevance (with λ = `lam`) or lift."""
        first = ranked(self.topics_, self.prevalence_, n, by, lam)
        return [[str(word) for word in self.vocabulary_[topic]] for topic in first]

    def coherence(self, X: Any, n: int = 10, measure: judging.Measure = "npmi") -> Array:
        """(K,) do the first words of a topic belong together, by the documents X that hold them?"""
        return judging.coherence(ranked(self.topics_, self.prevalence_, n), self._counts(X), measure)

    def diversity(self, n: int = 25) -> float:
        """The share of distinct words among the first n of all topics."""
        return judging.diversity(ranked(self.topics_, self.prevalence_, n))

    def similarity(self) -> Array:
        """(K, K) 1 − Jensen–Shannon divergence in bits: 1 for equal topics, 0 for topics that share no word."""
        return 1.0 - divergences(self.topics_)

    def table(self, n: int = 10, by: Ranking = "relevance", most: int | None = None) -> TopicTable:
        """Topics as text with n words each, the largest first, `most` of them: print it."""
        words = self.top_words(n, by)
        order = np.argsort(-self.prevalence_, kind="stable")[:most]
        return TopicTable(tuple((int(k), float(self.prevalence_[k]), tuple(words[k])) for k in order))

    def to_html(self, path: str | os.PathLike[str], texts: Any = None, *, title: str = "Topics") -> None:
        """Write one self-contained page: a map of topics, their words, and of `texts` some with coloured words."""
        from deciban.topics.page import write_page

        check_is_fitted(self)
        write_page(self, path, texts, title)

    def save(self, path: str | os.PathLike[str], *, note: str = "") -> None:
        """Write the model to a file, whole or not at all; `deciban.load` reads it."""
        save(self, path, note=note)

    def _pool(self) -> ThreadPool:
        if self.threads is not None and self.threads < 1:
            raise HyperparameterError(f"threads={self.threads} must be at least 1, or None for as many as there are.")
        return ThreadPool(self.threads)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.input_tags.string = True
        tags.transformer_tags.preserves_dtype = []
        return tags
