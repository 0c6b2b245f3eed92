"""Topics of its own for each class: how a class that speaks of several things produces counts of words.

    θ | class  ~  Dirichlet(α_c)           a document's shares of the T topics of its class
    word       ~  Σ_t θ_t p(w|t, class)

The topics are found class by class (self-excluding CVB0) and frozen as a guess, as a mixture's components are; later
rows are shared out under it, so sums add. A document is scored word by word, each word predicted from those before it,

    p(w_i | w_1 … w_i−1, class) = Σ_t a_t p(w_i|t) / Σ a,   a = α_c + Σ γ of the words before

which is a probability for every order of the words, and approximates the integral over θ. Like every model with hidden
variables it has neither exact unlearning nor exact leave-one-out, and says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from deciban.errors import DecibanError, HyperparameterError, NotAvailableError
from deciban.families.counts import GivenLength, draw_tokens
from deciban.families.protocol import Family, Rule, require_rows
from deciban.kernels.choice import Array
from deciban.statistics import Axis, Members, Stats, summed
from deciban.topics.kernels import Rows, prequential
from deciban.topics.kernels.layout import SINGLE_THREAD
from deciban.topics.lda import Stochastic, share_out
from deciban.topics.reading import counts_of
from deciban.topics.state import DocumentBatch, Priors, TopicSums, local_columns

NOT_EXACT = (
    "topics of classes cannot be unlearnt exactly, nor left one out, since their sums depend on the guess they were "
    "collected with: refit without those rows. For honest answers about learnt rows use k-fold (cross_val_predict)."
)


@dataclass(frozen=True, eq=False, repr=False)
class ClassTopicStats(Stats):
    """Expected counts of words in the topics of each class."""

    counts: Array = summed("class", "topic", "word", floor=True)  # Σ w·c·γ
    rows: Array = summed("class", floor=True)  # Σ w

    def _refuse_negative(self, other: Self, error: type[DecibanError]) -> None:
        raise NotAvailableError(NOT_EXACT)


@dataclass(frozen=True, eq=False)
class ClassTopics(Family):
    """Counts of words, drawn from several topics in each class; dense or CSR.

    >>> from deciban import GenerativeClassifier
    >>> X = [[5, 0, 0, 1], [0, 5, 0, 1], [5, 1, 0, 0], [0, 0, 6, 1], [0, 1, 6, 0]] * 4
    >>> clf = GenerativeClassifier(ClassTopics(2)).fit(X, ["pets", "pets", "pets", "cars", "cars"] * 4)
    >>> clf.predict([[3, 3, 0, 0], [0, 0, 2, 1]]).tolist()
    ['pets', 'cars']
    """

    n_topics: int = 5
    alpha: float = 0.1  # mean of α over the topics; each topic's own is in proportion to its share of the class
    pseudo_count: float = 0.1  # β of each word in each topic
    max_iter: int = 30  # passes over the documents of a class
    seed: int = 0
    guess: Any = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for name in ("n_topics", "alpha", "pseudo_count", "max_iter"):
            if not getattr(self, name) > 0:
                raise HyperparameterError(f"{name}={getattr(self, name)!r} must be above 0.")

    def encode(self, X: Any, columns: Sequence[str], stats: Any = None) -> Any:
        """Counts as CSR, checked: finite and at least 0."""
        return counts_of(X, columns)

    def check(self, X: Any, columns: Sequence[str], learning: bool = False) -> None:
        """Counts are finite and at least 0."""
        counts_of(X, columns)

    def lengths(self, X: Any) -> Array:
        """(n,) tokens of each row."""
        return np.asarray(X.sum(axis=1)).ravel()

    # -- sums ----------------------------------------------------------------------------------------------------------
    def collect(self, X: Any, members: Members) -> ClassTopicStats:
        """Sums under the guess; where there is none, those at the end of inference."""
        return self._each_class(X, members, self._found if self.guess is None else self._under_guess)

    def choose(self, stats: Any, rows: tuple[Any, Members] | None = None, rule: Rule = "mean") -> Self:
        """Freeze the topics found as the guess for rows to come."""
        return self if self.guess is not None else replace(self, guess=stats)

    def refine(self, stats: Any, X: Any, members: Members) -> tuple[Self, ClassTopicStats]:
        """Topics of all rows, where the guess is of the first ones only."""
        if self.guess is None or np.array_equal(self.guess.rows, members.weights()):
            return self, stats
        better = self._each_class(X, members, self._found)
        return replace(self, guess=better), better

    def chosen_by_labels(self) -> list[str]:
        """Return nothing: EM does not look at labels."""
        return []

    def keep_choices(self, chosen: Any, with_rows: bool) -> Self:
        """Topics cannot be found anew from sums."""
        if with_rows:
            return self
        return replace(self, guess=chosen.guess)

    def _each_class(self, X: Any, members: Members, act: Any) -> ClassTopicStats:
        labels = {"class": members.classes, "topic": Axis.of(self.n_topics), "word": Axis.of(X.shape[1])}
        counts = np.zeros((members.K, self.n_topics, X.shape[1]))
        for k, at, weight in members.groups():
            here = at[weight > 0]
            own = sp.csr_array(X[here])
            if own.nnz:
                own.data = own.data * np.repeat(weight[weight > 0], np.diff(own.indptr))
                counts[k] = act(own, members.classes.names[k]).T
        return ClassTopicStats(labels, counts, members.weights())

    def _found(self, X: Any, name: Any) -> Array:
        """(V, T) the counts at the end of inference on the documents of one class."""
        engine = Stochastic(X, self.n_topics, self._priors(), self.seed, SINGLE_THREAD)
        for _ in range(self.max_iter):
            engine.step()
        return engine.whole().final()

    def _under_guess(self, X: Any, name: Any) -> Array:
        """(V, T) the counts of documents under the topics of the guess."""
        names = list(self.guess.labels["class"].names)
        counts = np.zeros((X.shape[1], self.n_topics), np.float32)
        if name not in names:
            raise NotAvailableError(
                f"class {name!r} is new, and its topics are found from all its rows. Refit with it."
            )
        known = self.guess.counts[names.index(name)].T
        counts[: len(known)] = known
        words, found, _ = share_out(DocumentBatch.of(X), TopicSums(counts), self._priors(), SINGLE_THREAD)
        out = np.zeros_like(counts)
        out[words] = found
        return out

    def _priors(self) -> Priors:
        return Priors(np.full(self.n_topics, self.alpha), self.pseudo_count, False, False)

    # -- readings -----------------------------------------------------------------------------------------------------
    def estimate(self, stats: ClassTopicStats, rule: Rule) -> ClassTopicsDensity:
        """p(w|t) of each class's topics: with pseudo-counts, under "ml" without."""
        totals = stats.counts.sum(axis=2)
        size = totals.sum(axis=1, keepdims=True)
        classes: Any = stats.labels["class"]
        beta = self.pseudo_count
        if rule == "ml":
            require_rows(size[:, 0], classes, "ClassTopics")
            beta = 1e-12 * self.pseudo_count  # what no topic has stays possible, but only just
        V = stats.counts.shape[2]
        tables = (stats.counts + beta) / (totals + V * beta)[:, :, None]
        share = np.where(size > 0, totals / np.where(size > 0, size, 1), 1 / self.n_topics)
        prior = self.alpha * (0.5 + 0.5 * self.n_topics * share)  # half alike, so that no topic is impossible
        length = np.divide(size[:, 0], stats.rows, out=np.zeros(len(size)), where=stats.rows > 0)
        return ClassTopicsDensity(np.ascontiguousarray(tables.transpose(0, 2, 1)), prior, length)

    def leave_one_out(self, stats: Any, X: Any, members: Members, rule: Rule, density: Any = None) -> Array:
        """Refused: other documents' topics would change with it."""
        raise NotAvailableError(NOT_EXACT)


@dataclass(frozen=True, eq=False)
class ClassTopicsDensity(GivenLength):
    """The topics of every class, ready to score documents."""

    tables: Array  # (K, V, T) p(w|t)
    prior: Array  # (K, T) α
    length: Array  # (K,)

    @property
    def K(self) -> int:
        return len(self.tables)

    def log_density(self, X: Any) -> Array:
        """(n, K) word by word."""
        X = sp.csr_array(X)
        words, local = local_columns(X.indices, X.shape[1])
        rows = Rows(X.indptr.astype(np.int64), local, X.data.astype(float))
        return np.column_stack(
            [
                prequential(rows, np.ascontiguousarray(table[words]), prior)
                for table, prior in zip(self.tables, self.prior)
            ]
        )

    def sample(self, codes: Array, rng: np.random.Generator) -> Any:
        """Poisson many tokens a row, of topics in shares drawn for it."""
        shares = rng.standard_gamma(self.prior[codes])
        shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)
        p = np.einsum("nt,nvt->nv", shares, self.tables[codes])
        return draw_tokens(
            p / p.sum(axis=1, keepdims=True), rng.poisson(self.length[codes]), np.arange(len(codes)), rng
        )
