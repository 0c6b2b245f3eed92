"""Topics as one page that opens anywhere: a map, words with a slider of relevance, documents with coloured words."""

from __future__ import annotations

import json
import os
import re
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from deciban.errors import InputError
from deciban.kernels.choice import Array
from deciban.text.documents import Documents
from deciban.topics.reading import is_texts
from deciban.topics.words import LAMBDA, places, relevance

SHOWN = 24  # words of a topic at a time
STOPS = (0.0, 0.25, 0.5, 0.75, 1.0)  # of the slider: the first words at each are on the page
EXAMPLES, EACH = 300, 3  # documents that are looked at, and kept of each topic
LETTERS = 3000  # of a document that are shown
WORD = re.compile(r"\w\w+")


def write_page(model: Any, path: str | os.PathLike[str], texts: Any, title: str) -> None:
    """The page of a fitted topic model; `texts` are documents of which some are shown."""
    data = page_data(model, texts)
    # "<" may end a script, so JSON spells it another way
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    page = (files("deciban.topics") / "page.html").read_text(encoding="utf-8")
    page = page.replace("{{title}}", escape(title)).replace("{{data}}", text)
    Path(path).write_text(page, encoding="utf-8")


def page_data(model: Any, texts: Any) -> dict[str, Any]:
    """What the page draws."""
    topics, weights = model.topics_, model.prevalence_
    at, kept = places(topics), _candidates(topics, weights)
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


def _facts(model: Any) -> str:
    said = [f"{model.n_topics_} topics of {len(model.vocabulary_):,} words"]
    if getattr(model, "documents_", 0):
        said.append(f"{model.documents_:,} documents with {model.tokens_:,.0f} tokens")
    if np.isfinite(model.perplexity_):
        said.append(f"{'held-out ' if model.held_out_ else ''}perplexity {model.perplexity_:,.0f}")
    return " · ".join(said)


def _candidates(topics: Array, weights: Array) -> list[Array]:
    """Of each topic the words that come first at some place of the slider."""
    found: list[set[int]] = [set() for _ in topics]
    for lam in STOPS:
        ranked = np.argsort(-relevance(topics, weights, lam), axis=1, kind="stable")[:, :SHOWN]
        for own, first in zip(found, ranked):
            own.update(int(w) for w in first)
    return [np.array(sorted(own, key=lambda w: -topics[k, w])) for k, own in enumerate(found)]


def _documents(model: Any, texts: Any, topics: Array) -> list[dict[str, Any]]:
    """Some documents of each topic, with the topic of each word."""
    if not is_texts(texts):
        raise InputError("the page shows documents as texts. Give a list of texts, not counts.")
    texts = Documents.of(texts)
    some = np.unique(np.linspace(0, len(texts) - 1, min(EXAMPLES, len(texts))).astype(int))
    texts = [texts[int(i)] for i in some]
    shares = np.asarray(model.transform(texts))
    first = np.argsort(-shares, axis=0, kind="stable")[:EACH]
    word = {str(name): w for w, name in enumerate(model.vocabulary_)}
    return [_document(model, texts[i], shares[i], topics, word) for i in sorted({int(i) for i in first.ravel()})]


def _document(model: Any, text: str, shares: Array, topics: Array, word: dict[str, int]) -> dict[str, Any]:
    text = text[:LETTERS] + ("…" if len(text) > LETTERS else "")
    parts: list[list[Any]] = []
    end = 0
    tokens = model._counting().tokens
    for match in WORD.finditer(text):
        label = tokens.labels([tokens.prepare(match.group())])[0]
        if label is not None and label in word:
            parts += [[text[end : match.start()], None]] if match.start() > end else []
            parts.append([match.group(), int(np.argmax(shares * topics[:, word[label]]))])
            end = match.end()
    parts += [[text[end:], None]] if end < len(text) else []
    order = [int(k) for k in np.argsort(-shares, kind="stable")[:4] if shares[k] >= 0.05]
    return {"shares": [[k, round(float(shares[k]), 3)] for k in order], "parts": parts}
