"""Documents of topic models: texts or counts of words as they are given, and the perplexity of documents held out.

Perplexity is computed by document completion. Half of a document's tokens determine its topics, the other half is
predicted,

    θ_d    fold-in of the observed half by CVB0 with p(w|t) fixed and prior α
    exp(−Σ_d Σ_w c_dw log Σ_t θ_dt p(w|t) / Σ c)        c: counts of the other half

which applies equally to the topic–word matrices of all programs. Lower is better; a uniform distribution over the words
has perplexity V.

Reference: Wallach, Murray, Salakhutdinov and Mimno, Evaluation methods for topic models, 2009.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import scipy.sparse as sp
from numpy.typing import ArrayLike

from deciban.errors import (
    DomainError,
    HyperparameterError,
    InputError,
    column_error,
    shortlist,
)
from deciban.kernels.choice import Array
from deciban.read.arrays import find_bad, plain_numbers
from deciban.read.codes import is_missing
from deciban.read.tables import column_name
from deciban.text.counting import count_rows
from deciban.text.documents import Documents
from deciban.text.tokens import Tokens
from deciban.text.vocabulary import Limits, Vocabulary
from deciban.topics.kernels import SINGLE_THREAD, Rows, ThreadPool, fold_in, row_log_likelihoods

DocumentInput: TypeAlias = ArrayLike | Sequence[str] | Documents  # texts, or counts of words

MOST_ENTRIES = 2**31 - 1  # that kernels index


def is_texts(X: DocumentInput) -> bool:
    """Whether X is texts, not a table of counts.

    >>> is_texts(["to be", "or not"]), is_texts(np.array([[1, 0]])), is_texts(np.array(["to be"]))
    (True, False, True)
    """
    if isinstance(X, Documents | str | bytes):
        return True
    if isinstance(X, list | tuple):
        return len(X) > 0 and isinstance(X[0], str | bytes | None)
    if isinstance(X, np.ndarray):
        return X.ndim == 1 and X.dtype.kind in "OUS" and len(X) > 0 and isinstance(X[0], str | bytes | None)
    if sp.issparse(X):
        return False
    if hasattr(X, "shape"):
        return len(X.shape) == 1 and (hasattr(X, "__arrow_c_stream__") or hasattr(X, "__array__"))
    return hasattr(X, "__arrow_c_stream__") or hasattr(X, "__arrow_c_array__")


@dataclass(frozen=True)
class TextCounting:
    """How texts are counted: tokens, limits of the vocabulary, and threads."""

    tokens: Tokens
    limits: Limits
    threads: int | None = None

    def learn(self, texts: DocumentInput) -> tuple[sp.csr_array, Array]:
        """Count words and return the counts with the vocabulary found."""
        X, vocabulary = count_rows(texts, self.tokens, limits=self.limits, threads=self.threads)
        return words_only(X, vocabulary), names_of(vocabulary)

    def count(self, texts: DocumentInput, words: Array) -> sp.csr_array:
        """Count known words; others are left out."""
        known = Vocabulary.of(words, "given")
        return words_only(count_rows(texts, self.tokens, known, threads=self.threads)[0], known)

    def grow(self, texts: DocumentInput, words: Array) -> tuple[sp.csr_array, Array]:
        """Count known words and, in columns behind them, new ones; returns the counts and all words."""
        try:
            X, found = count_rows(texts, self.tokens, threads=self.threads)
        except InputError:  # there is no word at all; after any other error, `count` raises it again
            return self.count(texts, words), np.asarray(words, dtype=object)
        return extended(X, names_of(found), words)


def words_only(X: sp.csr_array, vocabulary: Vocabulary) -> sp.csr_array:
    """Counts without the column of words outside the vocabulary."""
    return X[:, : len(vocabulary)] if vocabulary.unk else X


def names_of(vocabulary: Vocabulary) -> Array:
    """Return the words as an array of objects, shape (V,)."""
    return np.array(list(vocabulary), dtype=object)


def extended(X: ArrayLike, named: ArrayLike, words: ArrayLike) -> tuple[sp.csr_array, Array]:
    """Move the columns `named` to those of the known `words`; new words follow in their own order.

    >>> X, words = extended(sp.csr_array([[1, 2]]), ["lamb", "snow"], ["snow", "rain"])
    >>> X.toarray().tolist(), words.tolist()
    ([[2, 0, 1]], ['snow', 'rain', 'lamb'])
    """
    old, names = np.asarray(words, dtype=object), np.asarray(named, dtype=object)
    known = Vocabulary.of(old, "given")
    position = known.ids(list(names))
    new = np.flatnonzero(position < 0)
    position[new] = len(known) + np.arange(len(new))
    counts = sp.csr_array(X)
    moved = sp.csr_array(
        (counts.data, position[counts.indices], counts.indptr), (counts.shape[0], len(known) + len(new))
    )
    moved.sort_indices()
    return moved, np.concatenate([old, names[new]])


def counts_of(X: ArrayLike, columns: Sequence[str] | Array = ()) -> sp.csr_array:
    """Return a table of counts as CSR of float64 without stored zeros; fractions are weights."""
    counts = plain_numbers(X, columns)  # type: ignore[arg-type]
    counts = counts if sp.issparse(counts) else sp.csr_array(counts)
    if counts.data.min(initial=0.0) >= 0 and counts.data.max(initial=0.0) < np.inf:
        return sp.csr_array(counts)
    found = find_bad(counts, lambda values: ~((values >= 0) & (values < np.inf)))
    assert found is not None
    row, column, value = found
    said = "Negative values in data passed to a topic model: " if value < 0 else ""
    remedy, why = "Give counts, not differences or logarithms.", "; counts of words must be finite and ≥ 0."
    error = column_error(DomainError, column_name(list(columns), column), f"holds {value:.6g}", remedy, row, why)
    raise error.but(said, *error.args)


def require_words(X: sp.csr_array) -> None:
    """Refuse documents without any word."""
    if X.shape[0] == 0:
        raise InputError(f"Found array with 0 sample(s) (shape={X.shape}) while a minimum of 1 is required.")
    if X.nnz == 0:
        raise InputError("no document holds any word of the vocabulary. Give documents with words.")
    if X.nnz > MOST_ENTRIES:
        raise InputError(f"{X.nnz:,} entries are too many for one fit. Learn them in parts by partial_fit.")


def check_words(words: Sequence[str] | Array, V: int) -> Array:
    """Return names of the columns as an array of objects, shape (V,); refuse repeated names."""
    named = np.array([str(word) for word in words], dtype=object)
    if len(named) != V:
        raise InputError(f"{len(named)} words were named for {V} columns. Name each column once.")
    if len(set(named.tolist())) != V:
        seen: set[str] = set()
        twice = [word for word in named if word in seen or seen.add(word)]  # type: ignore[func-returns-value]
        raise InputError(f"words named twice: {shortlist(twice)}. Name each column once.")
    return named


# -- documents in parts ------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class CountedPart:
    """Counts the words of a vocabulary in the documents of a part; other words are left out."""

    counting: TextCounting
    vocabulary: Array

    def __call__(self, part: Any) -> sp.csr_array:
        return counts_of(self.counting.count(texts_of_part(part), self.vocabulary))


def texts_of_part(part: Any) -> list[str]:
    """Return the documents of a part: a series, or a table with one column; missing ones are empty.

    >>> texts_of_part(pa.table({"text": ["a lamb", None]}))
    ['a lamb', '']
    """
    if getattr(part, "ndim", 2) != 1:
        names = getattr(part, "column_names", None) or list(part.columns)
        if len(names) != 1:
            raise InputError(
                f"documents in partitions are one column of texts, and here are {len(names)} columns.",
                remedy="Give a column of the frame.",
            )
        part = part[names[0]].to_pylist() if isinstance(part, pa.Table) else part[names[0]]
    return ["" if is_missing(text) else str(text) for text in part]


def size_of_part(X: sp.csr_array) -> tuple[int, float]:
    """Return the documents and tokens of a part."""
    return X.shape[0], float(X.data.sum())


STEPS, TOLERANCE = 50, 1e-4  # of fold-in
ROUGH_STEPS, ROUGH_TOLERANCE = 20, 1e-3  # of fold-in after every pass of a fit
SMOOTHING = 1e-4  # share of each topic that is spread over all words, so that no word is impossible
HELD_OUT = 0.05  # share of the documents that "auto" holds out
MOST_HELD, LEAST_DOCUMENTS = 500, 100  # held-out documents at most; documents below which "auto" holds out none


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
    """Return the perplexity of the counts `held` of documents, given their counts `observed`.

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
        """Return the evaluation of documents that are divided into two random halves."""
        return cls(*halves(X, seed))

    @classmethod
    def rough(cls, learnt: sp.csr_array, held: sp.csr_array | None, seed: int) -> Completion:
        """Return a rough evaluation for every pass, on held-out documents, or on some learnt ones if there are none."""
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
