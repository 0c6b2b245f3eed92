"""Plots of topic models: a map of the topics, the words of one topic, the topics of one document."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from deciban.errors import InputError
from deciban.plots.canvas import AGAINST, GREY, canvas, colour_of, finish
from deciban.topics.words import LAMBDA, Ranking, map_positions, ranked

if TYPE_CHECKING:
    from deciban.topics.plsa import PLSA
    from deciban.topics.topic_model import TopicModel


def topic_map(model: TopicModel | PLSA, *, words: int = 2, ax: Axes | None = None) -> Axes:
    """Draw topics as circles, whose areas are their shares of all tokens; similar topics are close together.

    Parameters
    ----------
    model : TopicModel or PLSA
        A fitted topic model.
    words : int, default=2
        Number of words of each topic to write into its circle.
    ax : matplotlib.axes.Axes, optional
        Where to draw, new axes if not given.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from deciban import TopicModel
    >>> model = TopicModel(3, random_state=0).fit(["ships sail the sea", "wolves hunt sheep", "cats purr"] * 5)
    >>> len(topic_map(model, ax=Figure().subplots()).collections)
    1
    """
    ax = canvas(ax, width=6.0, height=5.0)
    at, share = map_positions(model.topics_), model.prevalence_
    colours = [colour_of(k) for k in range(len(share))]
    ax.scatter(at[:, 0], at[:, 1], s=9000 * share, c=colours, alpha=0.5, linewidths=0.8, edgecolors=colours)
    for (x, y), named in zip(at, model.top_words(max(words, 1), "relevance")):
        if words:
            ax.annotate("\n".join(named), (x, y), ha="center", va="center", fontsize="x-small")
    ax.margins(0.2)
    ax.set(xticks=[], yticks=[], title="similar topics are close together")
    return finish(ax, None)


def topic_words(
    model: TopicModel | PLSA,
    topic: int,
    n: int = 15,
    *,
    by: Ranking = "relevance",
    lam: float = LAMBDA,
    ax: Axes | None = None,
) -> Axes:
    """Draw the first words of a topic as bars: their share of all tokens, in this topic and in all topics.

    Parameters
    ----------
    model : TopicModel or PLSA
        A fitted topic model.
    topic : int
        Number of the topic.
    n : int, default=15
        Number of words.
    by : str, default="relevance"
        Order of the words, as in `top_words`.
    lam : float, default=0.6
        Weight λ of the order by relevance.
    ax : matplotlib.axes.Axes, optional
        Where to draw, new axes if not given.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Examples
    --------
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


def topic_shares(model: TopicModel, X: ArrayLike, row: int = 0, *, level: float = 0.9, ax: Axes | None = None) -> Axes:
    """Draw the share of each topic in one document, with credible intervals.

    Parameters
    ----------
    model : TopicModel
        A fitted topic model.
    X : texts or counts
        Documents.
    row : int, default=0
        Position of the document.
    level : float, default=0.9
        Probability of the credible intervals.
    ax : matplotlib.axes.Axes, optional
        Where to draw, new axes if not given.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Examples
    --------
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
    colours = [colour_of(k) for k in range(len(mean))]
    ax.bar(np.arange(len(mean)), mean, yerr=around, color=colours, capsize=2, ecolor=GREY)
    ax.set(xlabel="topic", ylabel="share of the document", ylim=(0, 1))
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    return finish(ax, None)
