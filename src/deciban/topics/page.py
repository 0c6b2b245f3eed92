"""Topics as one self-contained page: a map, words with a slider of relevance, documents with coloured words."""

from __future__ import annotations

import json
import os
import re
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from deciban.errors import InputError
from deciban.kernels.choice import Array
from deciban.store.files import write_bytes
from deciban.text.documents import Documents
from deciban.text.tokens import Tokens
from deciban.topics.reading import DocumentInput, is_texts
from deciban.topics.words import LAMBDA, map_positions, relevance

if TYPE_CHECKING:
    from deciban.topics.estimator import TopicEstimator

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
    """Words of each topic that come first at some position of the slider."""
    found: list[set[int]] = [set() for _ in topics]
    for lam in STOPS:
        ranked = np.argsort(-relevance(topics, weights, lam), axis=1, kind="stable")[:, :SHOWN]
        for own, first in zip(found, ranked):
            own.update(int(w) for w in first)
    return [np.array(sorted(own, key=lambda w: -topics[k, w])) for k, own in enumerate(found)]


def _documents(model: TopicEstimator, given: DocumentInput, topics: Array) -> list[dict[str, Any]]:
    """Some documents of each topic, with the topic of each word."""
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
