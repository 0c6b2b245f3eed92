"""Base class of topic estimators: reading documents, fitting until convergence, evaluation, words, pages and files."""

from __future__ import annotations

import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, TypeVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from deciban.engines import parted
from deciban.errors import ConvergenceWarning, DecibanError, HyperparameterError, InputError
from deciban.families.parameters import COUNT, HELD_OUT, THREADS, TOLERANCE, Ranges
from deciban.families.protocol import Passes
from deciban.kernels.choice import Array
from deciban.latent.em import Trace
from deciban.read.tables import in_memory
from deciban.store import save
from deciban.store.checks import require
from deciban.store.estimators import Estimator
from deciban.terminal import progress_bar
from deciban.text.tokens import Tokens
from deciban.text.vocabulary import Limits
from deciban.topics.documents import (
    Completion,
    CountedPart,
    DocumentInput,
    TextCounting,
    check_words,
    counts_of,
    extended,
    is_texts,
    require_words,
    split,
    texts_of_part,
)
from deciban.topics.kernels import ThreadPool
from deciban.topics.words import LAMBDA, Measure, Ranking, TopicTable, coherence, divergences, diversity, ranked

Words = Sequence[str] | Array  # names of columns
PATIENCE = 5  # passes that together must gain `tol`
LEAST_PASSES = 15  # before a fit may stop: topics separate first, then their priors are learnt
WORSE = 1.02  # times the best perplexity, at which a fit stops


class FittedTopics:
    """Attributes that `fit` sets."""

    n_topics_: int
    vocabulary_: Array  # (V,) words
    texts_: bool  # whether texts were learnt, not counts
    trace_: Trace
    n_iter_: int
    criteria_: dict[int, float]  # number of topics → perplexity
    perplexity_: float
    held_out_: bool
    documents_: int
    tokens_: float
    n_features_in_: int
    feature_names_in_: Array
    steps_: int  # batches learnt, of a TopicModel
    method_: str
    counts_: Array  # (V, K)
    samples_: Array  # (samples, V, K)
    alpha_: Array  # (K,)
    beta_: float
    components_: Array  # (K, V), of a PLSA; a property of a TopicModel
    weights_: Array  # (K,), of a PLSA
    power_: float
    log_likelihood_: float


@dataclass(eq=False, repr=False, kw_only=True)
class TopicEstimator(FittedTopics, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC):
    """Estimator of topics with the parameters that all models have; a model implements the abstract methods."""

    RANGES: ClassVar[Ranges] = {
        "n_components": COUNT,
        "max_iter": COUNT,
        "tol": TOLERANCE,
        "held_out": HELD_OUT,
        "max_words": COUNT,
        "threads": THREADS,
    }

    n_components: int | Iterable[int] = field(default=20, kw_only=False)
    max_iter: int = 100
    tol: float = 1e-3
    held_out: float | Literal["auto"] = "auto"
    ngrams: tuple[int, int] = (1, 1)
    stop_words: str | Iterable[str] | None = "english"
    stem: str | None = None
    min_df: float = 1
    max_df: float = 1.0
    max_words: int | None = None
    random_state: np.random.RandomState | int | None = None
    threads: int | None = None
    progress: bool = False

    @abstractmethod
    def transform(self, X: DocumentInput) -> Array:
        """Return the topic shares of documents, shape (n, K)."""

    @property
    @abstractmethod
    def topics_(self) -> Array:
        """Probability of each word in each topic, p(w|t), shape (n_components, n_words)."""

    @property
    @abstractmethod
    def prevalence_(self) -> Array:
        """Share of the learnt tokens that belong to each topic, shape (n_components,)."""

    @abstractmethod
    def _prior(self) -> Array:
        """Return the prior of a document's shares, shape (K,)."""

    def check_parameters(self) -> None:
        """Check how texts are to be read; numbers are checked by their ranges.

        Raises
        ------
        HyperparameterError
            If `fit` would refuse a parameter.
        """
        self.text_counting()

    # -- documents ---------------------------------------------------------------------------------------------------
    def text_counting(self) -> TextCounting:
        """Return how texts are counted: tokens, limits of the vocabulary, and threads.

        Returns
        -------
        TextCounting
            Its `tokens` divide and normalise texts.
        """
        tokens = Tokens(ngrams=tuple(self.ngrams), stop_words=self.stop_words, stem=self.stem)  # type: ignore[arg-type]
        return TextCounting(tokens, Limits(self.min_df, self.max_df, self.max_words), self.threads)

    def count_words(self, X: DocumentInput) -> sp.csr_array:
        """Count the words of the vocabulary in documents; other words are left out.

        Parameters
        ----------
        X : list of str, or array-like of shape (n_documents, n_words)
            Texts, or counts of words.

        Returns
        -------
        csr_array of shape (n_documents, n_words)
            Counts.
        """
        check_is_fitted(self)
        X = in_memory(X)
        if is_texts(X):
            if not self.texts_ and not hasattr(self, "feature_names_in_") and self.vocabulary_[0] == "word0":
                raise InputError("the model learnt columns without names, so it cannot read texts. Name words in fit.")
            return counts_of(self.text_counting().count(X, self.vocabulary_))
        return counts_of(self._table(X, reset=False), self.vocabulary_)

    def _learn_counts(self, X: DocumentInput, words: Words | None) -> sp.csr_array:
        """Counts of the documents learnt first; sets the vocabulary."""
        table: Any
        if is_texts(X):
            if words is not None:
                raise InputError("words name the columns of a table of counts; texts bring their own. Leave them out.")
            table, self.vocabulary_ = self.text_counting().learn(X)
            self.texts_ = True
            self.n_features_in_ = table.shape[1]
            if hasattr(self, "feature_names_in_"):
                del self.feature_names_in_
        else:
            table = self._table(X, reset=True)
            named = getattr(self, "feature_names_in_", None) if words is None else words
            self.texts_, V = False, table.shape[1]
            self.vocabulary_ = column_names(V) if named is None else check_words(named, V)
        counts = counts_of(table, self.vocabulary_)
        require_words(counts)
        return counts

    def _more_counts(self, X: DocumentInput, words: Words | None) -> sp.csr_array:
        """Counts of documents learnt later; new words get new columns."""
        X = in_memory(X)
        table: Any = X
        if is_texts(X):
            table, self.vocabulary_ = self.text_counting().grow(X, self.vocabulary_)
        elif words is not None:
            counts = counts_of(table)
            table, self.vocabulary_ = extended(counts, check_words(words, counts.shape[1]), self.vocabulary_)
        else:
            table = self._table(X, reset=False)
        self.n_features_in_ = table.shape[1]
        return counts_of(table, self.vocabulary_)

    def _table(self, X: DocumentInput, reset: bool) -> Any:
        try:
            return validate_data(self, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32])
        except TypeError:
            raise
        except ValueError as problem:
            raise InputError(str(problem)) from None

    # -- fitting -----------------------------------------------------------------------------------------------------
    def _search(
        self,
        X: DocumentInput,
        words: Words | None,
        callback: Callback | None,
        make: Callable[[sp.csr_array, int, int], E],
        on_plateau: Callable[[E], bool] | None = None,
        hold_out: bool = True,
    ) -> tuple[E, sp.csr_array, sp.csr_array | None]:
        """Fit make(documents, K, seed) for each number of topics, and return the fit of lowest perplexity.

        Also return the documents learnt and those held out; with hold_out=False, none are held out.
        """
        sizes = self._sizes()
        counts, seed = self._learn_counts(X, words), int(check_random_state(self.random_state).randint(2**31))
        learnt, held = split(counts, self.held_out if hold_out else 0.0, seed, hold_out and len(sizes) > 1)
        completion = Completion.rough(learnt, held, seed)
        criteria: dict[int, float] = {}
        for K in sizes:
            engine = make(learnt, K, seed)
            label = f"{K} topics" if self.progress else None
            trace = fit_until_converged(engine, completion, self.max_iter, self.tol, label, callback, on_plateau)
            reached = best_perplexity(trace)
            if all(reached < other for other in criteria.values()):
                best, self.trace_, self.n_topics_ = engine, trace, K
            criteria[K] = reached
            if trace.interrupted:
                break
        self.criteria_, self.perplexity_ = criteria, best_perplexity(self.trace_)
        self.n_iter_, self.held_out_ = max(self.trace_.iterations, 1), held is not None
        self.documents_, self.tokens_ = learnt.shape[0], float(learnt.data.sum())
        return best, learnt, held

    def _documents(self, X: Any, words: Words | None) -> tuple[Any, Callable[[], Passes] | None]:
        """Return documents and None; of partitions, the first documents, and f() that counts those of all parts."""
        X, passes = parted(X)
        if passes is None:
            return in_memory(X), None
        if words is not None:
            raise InputError("documents in partitions are texts, whose words are found.", remedy="Leave out words.")
        return texts_of_part(X), lambda: passes.kept(CountedPart(self.text_counting(), self.vocabulary_))

    def _sizes(self) -> list[int]:
        given = self.n_components
        sizes = list(given) if isinstance(given, Iterable) and not isinstance(given, str) else [given]
        if not sizes:
            raise HyperparameterError("n_components is empty. Give a number, or several such as (10, 20, 50).")
        for size in sizes:
            if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1:
                raise HyperparameterError(f"n_components={size!r} must be a whole number of at least 1.")
        return [int(size) for size in sizes]

    def _pool(self) -> ThreadPool:
        return ThreadPool(self.threads)

    # -- evaluation --------------------------------------------------------------------------------------------------
    @property
    def _n_features_out(self) -> int:
        return self.n_topics_

    def perplexity(self, X: DocumentInput) -> float:
        """Return the perplexity of half of each document's tokens, given the other half.

        Parameters
        ----------
        X : list of str, or array-like of shape (n_documents, n_words)
            Texts, or counts of words.

        Returns
        -------
        float
            Perplexity; lower is better.
        """
        counts = self.count_words(X)
        require_words(counts)
        completion = Completion.of(counts)
        pool = self._pool()
        return completion(self.topics_[:, completion.words].T, self._prior(), pool)

    def score(self, X: DocumentInput, y: object = None) -> float:
        """Return the mean log probability of a held-out token.

        Parameters
        ----------
        X : list of str, or array-like of shape (n_documents, n_words)
            Texts, or counts of words.
        y : object, optional
            Ignored.

        Returns
        -------
        float
            Negative logarithm of the perplexity.
        """
        return -float(np.log(self.perplexity(X)))

    def coherence(self, X: DocumentInput, n: int = 10, measure: Measure = "npmi") -> Array:
        """Return the coherence of each topic: how often its first words occur in the same documents.

        Parameters
        ----------
        X : list of str, or array-like of shape (n_documents, n_words)
            Reference documents.
        n : int, default=10
            Number of words of each topic.
        measure : {"npmi", "umass"}, default="npmi"
            Normalised pointwise mutual information, or log conditional probability.

        Returns
        -------
        ndarray of shape (n_components,)
            Coherence.
        """
        return coherence(ranked(self.topics_, self.prevalence_, n), self.count_words(X), measure)

    def diversity(self, n: int = 25) -> float:
        """Return the share of distinct words among the first words of all topics.

        Parameters
        ----------
        n : int, default=25
            Number of words of each topic.

        Returns
        -------
        float
            1 if no two topics share a word.
        """
        return diversity(ranked(self.topics_, self.prevalence_, n))

    def similarity(self) -> Array:
        """Return the similarity of all pairs of topics: 1 − Jensen–Shannon divergence in bits.

        Returns
        -------
        ndarray of shape (n_components, n_components)
            1 for equal topics, 0 for topics that share no word.
        """
        return 1.0 - divergences(self.topics_)

    # -- words, pages and files --------------------------------------------------------------------------------------
    def top_words(self, n: int = 10, by: Ranking = "probability", lam: float = LAMBDA) -> list[list[str]]:
        """Return the first words of each topic.

        Parameters
        ----------
        n : int, default=10
            Number of words of each topic.
        by : {"probability", "relevance", "lift"}, default="probability"
            Order of the words.
        lam : float, default=0.6
            Weight λ of the probability in the relevance λ log p(w|t) + (1 − λ) log p(w|t)/p(w).

        Returns
        -------
        list of list of str
            Words of each topic.
        """
        first = ranked(self.topics_, self.prevalence_, n, by, lam)
        return [[str(word) for word in self.vocabulary_[topic]] for topic in first]

    def table(self, n: int = 10, by: Ranking = "relevance", most: int | None = None) -> TopicTable:
        """Return the topics as a table to print, the largest first.

        Parameters
        ----------
        n : int, default=10
            Number of words of each topic.
        by : {"probability", "relevance", "lift"}, default="relevance"
            Order of the words.
        most : int, optional
            Number of topics; all if None.

        Returns
        -------
        TopicTable
            Its repr is the table.
        """
        words = self.top_words(n, by)
        order = np.argsort(-self.prevalence_, kind="stable")[:most]
        return TopicTable(tuple((int(k), float(self.prevalence_[k]), tuple(words[k])) for k in order))

    def to_html(
        self, path: str | os.PathLike[str], texts: DocumentInput | None = None, *, title: str = "Topics"
    ) -> None:
        """Write one self-contained page: a map of the topics, their words, and some documents with coloured words.

        Parameters
        ----------
        path : str or path-like
            Where to write.
        texts : list of str, optional
            Documents of which some are shown.
        title : str, default="Topics"
            Title of the page.
        """
        from deciban.topics.words import write_page

        check_is_fitted(self)
        write_page(self, path, texts, title)

    def save(self, path: str | os.PathLike[str], *, note: str = "") -> None:
        """Write the model to a file, which `deciban.load` reads.

        Parameters
        ----------
        path : str or path-like
            Where to write. An existing file is replaced, or left unchanged if writing fails.
        note : str, default=""
            Text kept in the file.
        """
        save(self, path, note=note)

    def stored(self) -> StoredTopics:
        """Return the dataclass that stands for the model in a file.

        Returns
        -------
        StoredTopics
            Parameters and fitted attributes.
        """
        check_is_fitted(self)
        return StoredTopics(Estimator.of(self))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.input_tags.string = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def column_names(V: int) -> Array:
    """Return the names of columns without names, shape (V,)."""
    return np.array([f"word{w}" for w in range(V)], dtype=object)


@dataclass(frozen=True, eq=False)
class StoredTopics:
    """A topic model in a file: an estimator whose arrays must fit together."""

    estimator: Any

    @property
    def rows(self) -> float:
        """Number of documents learnt."""
        return float(self.estimator.fitted.get("documents_", 0))

    def restored(self, check: Callable[[], None] | None, key: bytes | None = None) -> TopicEstimator:
        """Return the model, after a check of the sizes and ranges of its arrays."""
        if check is not None:
            check()
        require(isinstance(self.estimator, Estimator), "topics", "an estimator")
        model = self.estimator.put_together({})
        for name in ("vocabulary_", "n_topics_", "texts_", "n_features_in_"):
            require(name in vars(model), type(model).__name__, f"its attribute {name!r}")
        words, K = model.vocabulary_, model.n_topics_
        require(type(vars(model).get("documents_", 0)) in (int, float), "documents_", "a number")
        require(isinstance(words, np.ndarray) and words.ndim == 1 and words.dtype == object, "vocabulary_", "words")
        require(set(map(type, words.tolist())) <= {str}, "vocabulary_", "words that are texts")
        require(len(set(words.tolist())) == len(words), "vocabulary_", "words that differ")
        require(type(K) is int and K >= 1, "n_topics_", "a number of topics")
        require(
            type(model.n_features_in_) is int and model.n_features_in_ == len(words), "n_features_in_", "a word each"
        )
        shapes = {"components_": (K, len(words)), "counts_": (len(words), K), "alpha_": (K,), "weights_": (K,)}
        samples = vars(model).get("samples_")
        if samples is not None:
            shapes["samples_"] = (*np.shape(samples)[:1], len(words), K)
        for name, shape in shapes.items():
            held = vars(model).get(name)
            if held is None:
                continue
            right = isinstance(held, np.ndarray) and held.shape == shape and held.dtype.kind == "f"
            require(right, name, f"the shape {shape}")
            require(bool((held >= 0).all() and np.isfinite(held).all()), name, "finite numbers of at least 0")
        model.topics_, model.prevalence_, model._prior()  # raises an error now if they cannot be computed
        return model


# -- passes over documents until they stop improving -------------------------------------------------------------------
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
    """Step until PATIENCE passes reduce perplexity by less than a share `tol`; then restore the best state.

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
    """Whether the best of the last PATIENCE passes gained less than `tol` over the passes before."""
    if tol <= 0 or len(objective) - since <= PATIENCE:
        return False
    return max(objective[-PATIENCE:]) - max(objective[:-PATIENCE]) < tol


def best_perplexity(trace: Trace) -> float:
    """Return the lowest perplexity of a fit."""
    return float(np.exp(-max(trace.objective, default=-np.inf)))
