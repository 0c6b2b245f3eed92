"""Topics found elsewhere, as plain arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from deciban.errors import InputError
from deciban.latent.em import Trace
from deciban.topics.completion import check_topics, prior_of
from deciban.topics.model import TopicModel
from deciban.topics.reading import check_words

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
