"""Plots of models with hidden variables: clusters, the objective of EM, states along a sequence, and topics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from deciban.errors import InputError, NotAvailableError
from deciban.plots.canvas import AGAINST, GREY, canvas, colour_of, finish
from deciban.plots.densities import draw_component, gaussian_moments
from deciban.topics.words import LAMBDA, Ranking, map_positions, ranked

if TYPE_CHECKING:
    from deciban.estimators.clustering import MixtureModel
    from deciban.estimators.hidden_markov import HiddenMarkovModel
    from deciban.latent.mixture import FittedMixture
    from deciban.topics.plsa import PLSA
    from deciban.topics.topic_model import TopicModel


def clusters(
    mixture: MixtureModel | FittedMixture,
    X: ArrayLike,
    features: tuple[int, int] = (0, 1),
    *,
    sds: tuple[float, ...] = (1.0, 2.0),
    ax: Axes | None = None,
) -> Axes:
    """Draw rows coloured by their most probable component, and the ellipses of each Gaussian component.

    Parameters
    ----------
    mixture : MixtureModel or FittedMixture
        A fitted mixture of Gaussians.
    X : array-like of shape (n, D)
        Rows.
    features : pair of int, default=(0, 1)
        Positions of the columns to draw.
    sds : tuple of float, default=(1.0, 2.0)
        Sizes of the ellipses in standard deviations.
    ax : matplotlib.axes.Axes, optional
        Where to draw, new axes if not given.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from deciban import Gaussian, Mixture
    >>> X = np.random.default_rng(0).normal(size=(60, 2)) + np.repeat([[0, 0], [9, 9]], 30, axis=0)
    >>> ax = clusters(Mixture(Gaussian(), 2).fit(X, random_state=0), X, sds=(2,), ax=Figure().subplots())
    >>> len(ax.patches)
    2
    """
    X = np.asarray(X, dtype=float)
    fitted: Any = getattr(mixture, "fitted_", mixture)
    moments = gaussian_moments(fitted.density().components)
    if moments is None:
        raise NotAvailableError("ellipses show Gaussian components, and these have another family.")
    if X.ndim != 2 or max(features) >= X.shape[1]:
        raise InputError(f"features {features} of a table of shape {X.shape}. Give two of its columns by position.")
    ax, at = canvas(ax), np.array(features)
    component, weights = fitted.predict(X), fitted.weights
    for m, (mean, cov) in enumerate(zip(*moments)):
        own = X[component == m][:, at].T
        draw_component(ax, m, mean[at], cov[np.ix_(at, at)], sds, own, f"{weights[m]:.0%} of the rows")
    ax.autoscale_view()
    ax.set(xlabel=f"column {features[0]}", ylabel=f"column {features[1]}")
    return finish(ax)


def em_trace(trace: object, *, rows: float | None = None, label: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw the objective after each iteration of EM.

    Parameters
    ----------
    trace : Trace, or an estimator or fitted mixture that has one
        The objective after each iteration, in nats.
    rows : float, optional
        Number of rows to divide the objective by.
    label : str, optional
        Name of the curve in the legend.
    ax : matplotlib.axes.Axes, optional
        Where to draw, new axes if not given.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from deciban.latent.em import Trace
    >>> em_trace(Trace([-9.0, -5.0, -4.5], True), ax=Figure().subplots()).lines[0].get_ydata().tolist()
    [-9.0, -5.0, -4.5]
    """
    course: Any = getattr(trace, "trace_", getattr(trace, "trace", trace))
    if not course.objective:
        raise InputError("the trace is empty: EM has taken no step.")
    ax = canvas(ax)
    values = np.asarray(course.objective) / (rows or 1.0)
    ax.plot(np.arange(1, len(values) + 1), values, "-o", ms=3, color=colour_of(len(ax.lines)), label=label)
    ax.set(xlabel="iteration", ylabel="objective (nats a row)" if rows else "objective (nats)")
    return finish(ax)


def state_sequence(
    model: HiddenMarkovModel,
    X: ArrayLike,
    truth: ArrayLike | None = None,
    *,
    most: int = 400,
    ax: Axes | None = None,
) -> Axes:
    """Draw the posterior probability of each hidden state along one sequence.

    Parameters
    ----------
    model : HiddenMarkovModel
        A fitted hidden Markov model.
    X : sequence
        The observations.
    truth : array-like of shape (T,), optional
        True states, drawn below the probabilities.
    most : int, default=400
        Number of steps to draw.
    ax : matplotlib.axes.Axes, optional
        Where to draw, new axes if not given.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from deciban import Categorical, HiddenMarkovModel
    >>> dice = {"fair": Categorical.of([1 / 6] * 6), "loaded": Categorical.of([0.1] * 5 + [0.5])}
    >>> casino = HiddenMarkovModel.from_densities(dice, start=[0.5, 0.5], transitions=[[0.98, 0.02], [0.05, 0.95]])
    >>> rolls, states = casino.sample(120, random_state=3)
    >>> ax = state_sequence(casino, rolls, states, ax=Figure().subplots())
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['fair', 'loaded']
    """
    probability = np.asarray(model.predict_proba(X))[:most]
    if not len(probability):
        raise InputError("the sequence is empty.")
    ax = canvas(ax, width=7.5, height=2.6)
    names = [str(name) for name in getattr(model, "classes_", range(probability.shape[1]))]
    steps = np.arange(len(probability))
    colours = [colour_of(s) for s in range(probability.shape[1])]
    ax.stackplot(steps, probability.T, colors=colours, labels=names, alpha=0.75, linewidth=0)
    if truth is not None:
        known = np.array([str(name) for name in np.asarray(truth)[:most]])
        for s, name in enumerate(names):
            ax.fill_between(steps, -0.12, -0.04, where=known == name, color=colours[s], linewidth=0, step="mid")
        ax.set_yticks([-0.08, 0, 0.5, 1], ["truth", "0", "0.5", "1"])
    ax.set(xlabel="step", ylabel="probability of the state")
    ax.set(xlim=(0, len(probability) - 1), ylim=(0 if truth is None else -0.14, 1))
    return finish(ax, "center left")


# -- topics ------------------------------------------------------------------------------------------------------------
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
