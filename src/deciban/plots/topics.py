"""Pictures of topics: where they lie, their words, and the topics of one document."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from deciban.errors import InputError
from deciban.plots.canvas import AGAINST, GREY, PALETTE, canvas, finish
from deciban.topics.words import LAMBDA, Ranking, map_positions, ranked


def topic_map(model: Any, *, words: int = 2, ax: Axes | None = None) -> Axes:
    """Topics as circles: their area is their share of all tokens, alike ones lie close.

    words : how many words of each topic are written into its circle

    >>> from matplotlib.figure import Figure
    >>> from deciban import TopicModel
    >>> model = TopicModel(3, random_state=0).fit(["ships sail the sea", "wolves hunt sheep", "cats purr"] * 5)
    >>> len(topic_map(model, ax=Figure().subplots()).collections)
    1
    """
    ax = canvas(ax, width=6.0, height=5.0)
    at, share = map_positions(model.topics_), model.prevalence_
    colours = [PALETTE[k % len(PALETTE)] for k in range(len(share))]
    ax.scatter(at[:, 0], at[:, 1], s=9000 * share, c=colours, alpha=0.5, linewidths=0.8, edgecolors=colours)
    for (x, y), named in zip(at, model.top_words(max(words, 1), "relevance")):
        if words:
            ax.annotate("\n".join(named), (x, y), ha="center", va="center", fontsize="x-small")
    ax.margins(0.2)
    ax.set(xticks=[], yticks=[], title="alike topics lie close")
    return finish(ax, None)


def topic_words(
    model: Any, topic: int, n: int = 15, *, by: Ranking = "relevance", lam: float = LAMBDA, ax: Axes | None = None
) -> Axes:
    """The first words of a topic as bars: its own tokens, and behind them those of all topics.

    >>> from matplotlib.figure import Figure
    >>> from deciban import TopicModel
    >>> model = TopicModel(2, random_state=0).fit(["ships sail the sea", "wolves hunt sheep"] * 5)
    >>> len(topic_words(model, 0, 2, ax=Figure().subplots()).patches)
    4
    """
    K = len(model.prevalence_)
    if not 0 <= topic < K:
        raise InputError(f"topic {topic} of {K}: give a number from 0 to {K - 1}.")
    ax = canvas(ax, height=0.24 * n + 0.9)
    topics, share = model.topics_, model.prevalence_
    first = ranked(topics, share, n, by, lam)[topic][::-1]
    place, marginal = np.arange(len(first)), share @ topics
    ax.barh(place, marginal[first], color=GREY, alpha=0.45, label="in all topics")
    ax.barh(place, share[topic] * topics[topic, first], color=AGAINST, label=f"in topic {topic}")
    ax.set_yticks(place, [str(word) for word in model.vocabulary_[first]])
    ax.set(xlabel="share of all tokens", title=f"topic {topic}: {share[topic]:.0%} of tokens")
    ax.legend(loc="lower right", frameon=False, fontsize="small")
    return finish(ax, None)


def topic_shares(model: Any, X: Any, row: int = 0, *, level: float = 0.9, ax: Axes | None = None) -> Axes:
    """The topics of one document, with intervals that hold each share with probability `level`.

    >>> from matplotlib.figure import Figure
    >>> from deciban import TopicModel
    >>> model = TopicModel(2, random_state=0).fit(["ships sail the sea", "wolves hunt sheep"] * 5)
    >>> len(topic_shares(model, ["ships hunt"], ax=Figure().subplots()).patches)
    2
    """
    found = model.posterior(X)
    if not 0 <= row < len(found.mean):
        raise InputError(f"row {row} of {len(found.mean)} documents.")
    ax = canvas(ax)
    mean = found.mean[row]
    low, high = (bound[row] for bound in found.interval(level))
    around = np.array([np.maximum(mean - low, 0), np.maximum(high - mean, 0)])
    colours = [PALETTE[k % len(PALETTE)] for k in range(len(mean))]
    ax.bar(np.arange(len(mean)), mean, yerr=around, color=colours, capsize=2, ecolor=GREY)
    ax.set(xlabel="topic", ylabel="share of the document", ylim=(0, 1))
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    return finish(ax, None)
