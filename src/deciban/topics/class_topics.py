"""Word counts of classes that have several topics each.

    θ | class  ~  Dirichlet(α_c)           a document's shares of the T topics of its class
    word       ~  Σ_t θ_t p(w|t, class)

The topics of each class are found by stochastic CVB0 and frozen (`guess`), as a mixture's components are; the sums of
later rows are collected under them, so they add. A document is scored word by word, each word predicted from those
before it,

    p(w_i | w_1 … w_i−1, class) = Σ_t a_t p(w_i|t) / Σ a,   a = α_c + Σ γ of the words before

which is a probability for every order of the words, and approximates the integral over θ. Like every model with hidden
variables it has neither exact unlearning nor exact leave-one-out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from deciban.errors import HyperparameterError, NotAvailableError
from deciban.families.dirichlet import GivenLength, draw_tokens
from deciban.families.protocol import Rows, Rule, require_rows
from deciban.kernels.choice import Array
from deciban.latent.em import ExpectedSums, FrozenEstimate
from deciban.statistics import Axis, Members, summed
from deciban.topics.documents import counts_of
from deciban.topics.kernels import SINGLE_THREAD, prequential, used_words
from deciban.topics.lda import DocumentBatch, Priors, StochasticCVB0, TopicSums, expect


@dataclass(frozen=True, eq=False, repr=False)
class ClassTopicStats(ExpectedSums):
    """Expected counts of words in the topics of each class."""

    counts: Array = summed("class", "topic", "word", floor=True)  # Σ w·c·γ
    rows: Array = summed("class", floor=True)  # Σ w


@dataclass(frozen=True, eq=False)
class ClassTopics(FrozenEstimate):
    """Word counts drawn from several topics in each class.

    Parameters
    ----------
    n_components : int, default=5
        Number of topics of each class.
    alpha : float, default=0.1
        Mean of the Dirichlet prior α over the topics; a topic with a larger share of the class has a larger α.
    pseudo_count : float, default=0.1
        Dirichlet prior β of each word in each topic.
    max_iter : int, default=30
        Passes over the documents of a class.
    random_state : int, default=0
        Seed of the inference.
    guess : ClassTopicStats, optional
        The frozen topics under which later rows are collected. Set at the first fit.

    Examples
    --------
    >>> from deciban import ClassTopics, GenerativeClassifier
    >>> X = [[5, 0, 0, 1], [0, 5, 0, 1], [5, 1, 0, 0], [0, 0, 6, 1], [0, 1, 6, 0]] * 4
    >>> clf = GenerativeClassifier(ClassTopics(2)).fit(X, ["pets", "pets", "pets", "cars", "cars"] * 4)
    >>> clf.predict([[3, 3, 0, 0], [0, 0, 2, 1]]).tolist()
    ['pets', 'cars']
    """

    n_components: int = 5
    alpha: float = 0.1
    pseudo_count: float = 0.1
    max_iter: int = 30
    random_state: int = 0
    guess: ClassTopicStats | None = field(default=None, repr=False)

    @property
    def accepts(self) -> frozenset[str]:
        return frozenset({"sparse"})

    def __post_init__(self) -> None:
        for name in ("n_components", "alpha", "pseudo_count", "max_iter"):
            if not getattr(self, name) > 0:
                raise HyperparameterError(f"{name}={getattr(self, name)!r} must be above 0.")

    def check_sums(self, stats: ClassTopicStats) -> None:
        """Check that sums from a file have the topics of this family.

        Parameters
        ----------
        stats : ClassTopicStats
            Sums from a file.

        Raises
        ------
        HyperparameterError
            If they have another number of topics.
        """
        for each in (stats, self.guess):
            if each is not None and each.labels["topic"].size != self.n_components:
                raise HyperparameterError(
                    f"the sums do not have the n_components={self.n_components} topics of the family."
                )

    def encode(self, X: Any, columns: Sequence[str], stats: ClassTopicStats | None = None) -> sp.csr_array:
        return counts_of(X, columns)

    def check(self, X: Rows, columns: Sequence[str], learning: bool = False) -> None:
        counts_of(X, columns)

    def lengths(self, X: Rows) -> Array:
        """Return the number of tokens of each row.

        Parameters
        ----------
        X : csr_array of shape (n_samples, n_words)
            Counts.

        Returns
        -------
        ndarray of shape (n_samples,)
            Sums of the counts.
        """
        return np.asarray(X.sum(axis=1)).ravel()

    # -- sums --------------------------------------------------------------------------------------------------------
    def collect(self, X: Rows, members: Members) -> ClassTopicStats:
        guess = self.guess
        if guess is None:
            return self._each_class(X, members, self._infer)
        return self._each_class(X, members, lambda own, name: self._expect(own, name, guess))

    def choose(self, stats: ClassTopicStats, rows: tuple[Rows, Members] | None = None, rule: Rule = "mean") -> Self:
        return self if self.guess is not None else replace(self, guess=stats)

    def refine(self, stats: ClassTopicStats, X: Rows, members: Members) -> tuple[Self, ClassTopicStats]:
        """Find the topics of all rows, if the frozen topics are those of the first rows only.

        Parameters
        ----------
        stats : ClassTopicStats
            Sums under the frozen topics.
        X : csr_array of shape (n_samples, n_words)
            All rows.
        members : Members
            Their classes and weights.

        Returns
        -------
        family : ClassTopics
            The family with the new topics frozen.
        stats : ClassTopicStats
            The sums under them.
        """
        if self.guess is None or np.array_equal(self.guess.rows, members.weights()):
            return self, stats
        better = self._each_class(X, members, self._infer)
        return replace(self, guess=better), better

    def _each_class(self, X: Rows, members: Members, act: Callable[[sp.csr_array, Any], Array]) -> ClassTopicStats:
        """Call act(weighted counts of the class, its name) for each class, and join the sums."""
        labels = {"class": members.classes, "topic": Axis.of(self.n_components), "word": Axis.of(X.shape[1])}
        counts = np.zeros((members.K, self.n_components, X.shape[1]))
        for k, at, weight in members.groups():
            here = at[weight > 0]
            own = sp.csr_array(X[here])
            if own.nnz:
                own.data = own.data * np.repeat(weight[weight > 0], np.diff(own.indptr))
                counts[k] = act(own, members.classes.names[k]).T
        return ClassTopicStats(labels, counts, members.weights())

    def _infer(self, X: sp.csr_array, name: object) -> Array:
        """Counts at the end of inference on the documents of one class, shape (V, T)."""
        engine = StochasticCVB0(X, self.n_components, self._priors(), self.random_state, SINGLE_THREAD)
        for _ in range(self.max_iter):
            engine.step()
        return engine.whole().final()

    def _expect(self, X: sp.csr_array, name: object, guess: ClassTopicStats) -> Array:
        """Return the expected counts of documents under the frozen topics of their class, shape (V, T)."""
        names = list(guess.labels["class"].names)  # type: ignore[union-attr]
        counts = np.zeros((X.shape[1], self.n_components), np.float32)
        if name not in names:
            raise NotAvailableError(
                f"class {name!r} is new, and its topics are found from all its rows. Refit with it."
            )
        known = guess.counts[names.index(name)].T
        counts[: len(known)] = known
        words, found, _ = expect(DocumentBatch.of(X), TopicSums(counts), self._priors(), SINGLE_THREAD)
        out = np.zeros_like(counts)
        out[words] = found
        return out

    def _priors(self) -> Priors:
        return Priors(np.full(self.n_components, self.alpha), self.pseudo_count, False, False)

    # -- densities ---------------------------------------------------------------------------------------------------
    def estimate(self, stats: ClassTopicStats, rule: Rule) -> ClassTopicsDensity:
        totals = stats.counts.sum(axis=2)
        size = totals.sum(axis=1, keepdims=True)
        classes: Any = stats.labels["class"]
        beta = self.pseudo_count
        if rule == "ml":
            require_rows(size[:, 0], classes, "ClassTopics")
            beta = 1e-12 * self.pseudo_count  # so that no word is impossible
        V = stats.counts.shape[2]
        tables = (stats.counts + beta) / (totals + V * beta)[:, :, None]
        share = np.where(size > 0, totals / np.where(size > 0, size, 1), 1 / self.n_components)
        prior = self.alpha * (0.5 + 0.5 * self.n_components * share)  # half equal, so that no topic is impossible
        length = np.divide(size[:, 0], stats.rows, out=np.zeros(len(size)), where=stats.rows > 0)
        return ClassTopicsDensity(np.ascontiguousarray(tables.transpose(0, 2, 1)), prior, length)


@dataclass(frozen=True, eq=False)
class ClassTopicsDensity(GivenLength):
    """Densities of documents under the topics of every class."""

    shapes: ClassVar = {"tables": "K D T count", "prior": "K T positive", "length": "K count"}

    tables: Array  # (K, V, T) p(w|t)
    prior: Array  # (K, T) α
    length: Array  # (K,) mean number of tokens

    @property
    def K(self) -> int:
        return len(self.tables)

    def log_density(self, X: Rows) -> Array:
        """Return log f(x|class), shape (n, K), each word predicted from those before it."""
        counts = sp.csr_array(X)
        words, rows = used_words(counts)
        return np.column_stack(
            [
                prequential(rows, np.ascontiguousarray(table[words]), prior)
                for table, prior in zip(self.tables, self.prior)
            ]
        )

    def sample(self, codes: Array, rng: np.random.Generator) -> Rows:
        """Draw a Poisson number of tokens for each row, from topics with shares drawn for it."""
        shares = rng.standard_gamma(self.prior[codes])
        shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)
        p = np.einsum("nt,nvt->nv", shares, self.tables[codes])
        return draw_tokens(
            p / p.sum(axis=1, keepdims=True), rng.poisson(self.length[codes]), np.arange(len(codes)), rng
        )
