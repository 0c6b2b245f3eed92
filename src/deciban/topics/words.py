"""The words of topics: rankings, coherence and diversity, similarity of topics, a table and a page of them.

    relevance   λ log p(w|t) + (1 − λ) log p(w|t)/p(w)
    lift        p(w|t)/p(w)                              relevance with λ = 0

Reference: Sievert and Shirley, LDAvis: a method for visualizing and interpreting topics, 2014.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import xlogy

from deciban.errors import HyperparameterError, InputError
from deciban.kernels.choice import Array
from deciban.read.tables import in_memory
from deciban.store.files import write_bytes
from deciban.text.documents import Documents
from deciban.text.tokens import Tokens
from deciban.topics.documents import DocumentInput, counts_of, is_texts

if TYPE_CHECKING:
    from deciban.topics.estimator import TopicEstimator


Ranking: TypeAlias = Literal["probability", "relevance", "lift"]
Measure: TypeAlias = Literal["npmi", "umass"]
LAMBDA = 0.6  # the value whose lists were easiest to interpret in the study of the reference


def relevance(topics: Array, weights: Array, lam: float = LAMBDA) -> Array:
    """Return the relevance of words, shape (K, V); `topics` is p(w|t), shape (K, V), and `weights` p(t), shape (K,)."""
    if not 0 <= lam <= 1:
        raise HyperparameterError(f"lam={lam} must lie between 0 (lift) and 1 (probability).")
    marginal = weights @ topics
    with np.errstate(divide="ignore"):
        log_p, log_w = np.log(topics), np.log(marginal)
    lifts = np.where(marginal > 0, log_p - np.where(marginal > 0, log_w, 0.0), -np.inf)
    if lam == 0:
        return lifts
    return log_p if lam == 1 else lam * log_p + (1 - lam) * lifts


def ranked(topics: Array, weights: Array, number: int, by: Ranking = "probability", lam: float = LAMBDA) -> Array:
    """Return the columns of the first words of each topic, shape (K, number); of equals, the earlier column.

    >>> ranked(np.array([[0.5, 0.3, 0.2], [0.5, 0.1, 0.4]]), np.array([0.5, 0.5]), 2, "lift").tolist()
    [[1, 0], [2, 0]]
    """
    if by not in get_args(Ranking):
        raise HyperparameterError(f"by={by!r} is not one of {', '.join(get_args(Ranking))}.")
    if number < 1:
        raise HyperparameterError(f"n={number}: ask for at least one word.")
    lam = {"probability": 1.0, "lift": 0.0}.get(by, lam)
    return np.argsort(-relevance(topics, weights, lam), axis=1, kind="stable")[:, :number]


def divergences(topics: Array) -> Array:
    """Return the Jensen–Shannon divergences between topics in bits, shape (K, K): 0 if equal, 1 if they share no word.

    >>> divergences(np.array([[1.0, 0.0], [0.0, 1.0]])).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    K = len(topics)
    own = xlogy(topics, topics).sum(axis=1)
    between = np.zeros((K, K))
    for k in range(K - 1):
        middle = (topics[k] + topics[k + 1 :]) / 2
        between[k, k + 1 :] = (own[k] + own[k + 1 :]) / 2 - xlogy(middle, middle).sum(axis=1)
    return np.clip(between + between.T, 0.0, np.log(2)) / np.log(2)


def map_positions(topics: Array) -> Array:
    """Return positions of topics on a plane, shape (K, 2): classical scaling of the square root of their divergence."""
    K = len(topics)
    if K < 3:
        return np.column_stack([np.arange(K, dtype=float), np.zeros(K)])
    middle = np.eye(K) - 1 / K
    values, vectors = np.linalg.eigh(-0.5 * middle @ divergences(topics) @ middle)
    found = vectors[:, -2:][:, ::-1] * np.sqrt(np.maximum(values[-2:][::-1], 0.0))
    # fix the signs of the eigenvectors, so that the map is the same on every machine
    sign = np.sign(found[np.abs(found).argmax(axis=0), [0, 1]])
    return found * np.where(sign == 0, 1.0, sign)


def matched(topics: ArrayLike, others: ArrayLike) -> tuple[Array, Array]:
    """Match topics to others by least total variation: the number of each one's match, and their distances.

    >>> matched([[0.9, 0.1], [0.2, 0.8]], [[0.0, 1.0], [1.0, 0.0]])
    (array([1, 0]), array([0.1, 0.2]))
    """
    from scipy.optimize import linear_sum_assignment

    mine, theirs = np.asarray(topics, dtype=float), np.asarray(others, dtype=float)
    distance = 0.5 * np.abs(mine[:, None] - theirs[None]).sum(axis=2)
    rows, columns = linear_sum_assignment(distance)
    return columns, distance[rows, columns]


def coherence(first: ArrayLike, X: ArrayLike, measure: Measure = "npmi") -> Array:
    """Return the coherence of topics, shape (K,), whose first words are the columns first[k], most probable first.

    npmi   mean over pairs of  log p(a, b)/(p(a) p(b)) / −log p(a, b)        −1 never together … 1 always
    umass  mean over pairs of  log (D(a, b) + 1)/D(b)        b is the more probable of the two

    p and D count the documents X. A pair with a word that is in no document counts as never together. References: Lau,
    Newman and Baldwin, Machine reading tea leaves, 2014; Mimno et al., Optimizing semantic coherence in topic models,
    2011.

    >>> X = [[1, 1, 0], [2, 1, 0], [0, 0, 1], [0, 0, 4]]
    >>> coherence([[0, 1], [0, 2]], X)
    array([ 1., -1.])
    """
    if measure not in get_args(Measure):
        raise HyperparameterError(f"measure={measure!r} is not one of {', '.join(get_args(Measure))}.")
    columns, documents = np.asarray(first, dtype=np.intp), counts_of(X)
    if columns.ndim != 2 or columns.shape[1] < 2:
        raise InputError("coherence compares pairs of words: give at least two words for each topic.")
    if columns.size and (columns.min() < 0 or columns.max() >= documents.shape[1]):
        raise InputError(f"words include column {columns.max()}, but documents have {documents.shape[1]} columns.")
    used, local = np.unique(columns, return_inverse=True)
    present = documents[:, used]
    present.data = np.ones_like(present.data)
    together = (present.T @ present).toarray()
    score = {"npmi": _npmi, "umass": _umass}[measure](together, documents.shape[0])
    later, earlier = np.tril_indices(columns.shape[1], -1)
    local = local.reshape(columns.shape)
    return score[local[:, later], local[:, earlier]].mean(axis=1)


def _npmi(together: Array, documents: int) -> Array:
    p = together / documents
    alone = np.diag(p)
    with np.errstate(divide="ignore", invalid="ignore"):
        score = np.log(p / np.outer(alone, alone)) / -np.log(p)
    score[p >= 1] = 1.0  # both words are in every document
    score[together == 0] = -1.0
    return score


def _umass(together: Array, documents: int) -> Array:
    held = np.maximum(np.diag(together), 1.0)
    return np.log((together + 1) / held[None, :])


def diversity(first: ArrayLike) -> float:
    """Return the share of distinct words among the first words of all topics; 1 if no two topics share a word.

    >>> diversity([[0, 1], [1, 2]])
    0.75
    """
    columns = np.asarray(first)
    return len(np.unique(columns)) / columns.size


def words_within(words: Sequence[str], room: int) -> str:
    """Join the first words that fit into `room` characters; a single word that is too long is cut.

    >>> words_within(("lamb", "snow", "fleece"), 20), words_within(("lamb", "snow", "fleece"), 13)
    ('lamb, snow, fleece', 'lamb, snow, …')
    """
    text, kept = ", ".join(words), len(words)
    while len(text) > room and kept > 1:
        kept -= 1
        text = ", ".join([*words[:kept], "…"])
    return text if len(text) <= room else text[: room - 1] + "…"


@dataclass(frozen=True, repr=False)
class TopicTable:
    """Topics as text: one line each with its share of all tokens and its first words.

    >>> TopicTable(((3, 0.62, ("lamb", "snow")), (0, 0.38, ("be", "not"))))
     topic  share
         3  62.0%  ████████████  lamb, snow
         0  38.0%  ███████▍      be, not
    """

    rows: tuple[tuple[int, float, tuple[str, ...]], ...]

    BAR = 12
    EIGHTHS = " ▏▎▍▌▋▊▉"

    def __repr__(self) -> str:
        width = max(shutil.get_terminal_size().columns, 60)
        most = max((share for _, share, _ in self.rows), default=1.0)
        lines = [" topic  share"]
        for topic, share, words in self.rows:
            front = f"{topic:6}  {share:5.1%}  {self._bar(share / most)}  "
            lines.append(front + words_within(words, width - len(front)))
        return "\n".join(lines)

    __str__ = __repr__

    def _bar(self, share: float) -> str:
        eighths = round(share * self.BAR * 8)
        whole, rest = divmod(eighths, 8)
        return ("█" * whole + (self.EIGHTHS[rest] if rest else "")).ljust(self.BAR)


# -- the page ----------------------------------------------------------------------------------------------------------
SHOWN = 24  # words of a topic at a time
STOPS = (0.0, 0.25, 0.5, 0.75, 1.0)  # of the slider: the page holds the first words at each
EXAMPLES, EACH = 300, 3  # documents considered, and shown of each topic
LETTERS = 3000  # shown of a document
WORD = re.compile(r"\w\w+")


def write_page(model: TopicEstimator, path: str | os.PathLike[str], texts: DocumentInput | None, title: str) -> None:
    """Write the page of a fitted topic model; `texts` are documents of which some are shown."""
    data = page_data(model, texts)
    # "<" may end a script element, so it is escaped
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    page = (files("deciban.topics") / "page.html").read_text(encoding="utf-8")
    page = page.replace("{{title}}", escape(title)).replace("{{data}}", text)
    write_bytes(path, page.encode())


def page_data(model: TopicEstimator, texts: DocumentInput | None) -> dict[str, Any]:
    """Return the data of the page."""
    topics, weights = model.topics_, model.prevalence_
    at, kept = map_positions(topics), _candidates(topics, weights)
    marginal = weights @ topics
    listed = [
        {
            "x": round(float(x), 5),
            "y": round(float(y), 5),
            "share": float(weights[k]),
            "words": [[str(model.vocabulary_[w]), _short(topics[k, w]), _short(marginal[w])] for w in own],
        }
        for k, ((x, y), own) in enumerate(zip(at, kept))
    ]
    return {
        "facts": _facts(model),
        "lambda": LAMBDA,
        "shown": SHOWN,
        "first": int(np.argmax(weights)),
        "topics": listed,
        "documents": [] if texts is None else _documents(model, texts, topics),
    }


def _short(p: float) -> float:
    return float(f"{p:.4g}")


def _facts(model: TopicEstimator) -> str:
    facts = [f"{model.n_topics_} topics of {len(model.vocabulary_):,} words"]
    if getattr(model, "documents_", 0):
        facts.append(f"{model.documents_:,} documents with {model.tokens_:,.0f} tokens")
    if np.isfinite(model.perplexity_):
        facts.append(f"{'held-out ' if model.held_out_ else ''}perplexity {model.perplexity_:,.0f}")
    return " · ".join(facts)


def _candidates(topics: Array, weights: Array) -> list[Array]:
    """Return the words of each topic that are among its first words at some position of the slider."""
    found: list[set[int]] = [set() for _ in topics]
    for lam in STOPS:
        ranked = np.argsort(-relevance(topics, weights, lam), axis=1, kind="stable")[:, :SHOWN]
        for own, first in zip(found, ranked):
            own.update(int(w) for w in first)
    return [np.array(sorted(own, key=lambda w: -topics[k, w])) for k, own in enumerate(found)]


def _documents(model: TopicEstimator, given: DocumentInput, topics: Array) -> list[dict[str, Any]]:
    """Return some documents of each topic, with the topic of each word."""
    given = in_memory(given)
    if not is_texts(given):
        raise InputError("the page shows documents as texts. Give a list of texts, not counts.")
    documents = Documents.of(given)
    some = np.unique(np.linspace(0, len(documents) - 1, min(EXAMPLES, len(documents))).astype(int))
    texts = [documents[int(i)] for i in some]
    shares = np.asarray(model.transform(texts))
    first = np.argsort(-shares, axis=0, kind="stable")[:EACH]
    word = {str(name): w for w, name in enumerate(model.vocabulary_)}
    tokens = model.text_counting().tokens
    return [_document(tokens, texts[i], shares[i], topics, word) for i in sorted({int(i) for i in first.ravel()})]


def _document(tokens: Tokens, text: str, shares: Array, topics: Array, word: dict[str, int]) -> dict[str, Any]:
    text = text[:LETTERS] + ("…" if len(text) > LETTERS else "")
    parts: list[list[Any]] = []
    end = 0
    for match in WORD.finditer(text):
        label = tokens.labels([tokens.prepare(match.group())])[0]
        if label is not None and label in word:
            parts += [[text[end : match.start()], None]] if match.start() > end else []
            parts.append([match.group(), int(np.argmax(shares * topics[:, word[label]]))])
            end = match.end()
    parts += [[text[end:], None]] if end < len(text) else []
    order = [int(k) for k in np.argsort(-shares, kind="stable")[:4] if shares[k] >= 0.05]
    return {"shares": [[k, round(float(shares[k]), 3)] for k in order], "parts": parts}
