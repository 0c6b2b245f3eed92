"""Plots of models with hidden variables: clusters, the objective of EM, and states along a sequence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from deciban.errors import InputError, NotAvailableError
from deciban.plots.canvas import canvas, colour_of, finish
from deciban.plots.features import draw_component, gaussian_moments

if TYPE_CHECKING:
    from deciban.estimators.clustering import MixtureModel
    from deciban.estimators.hidden_markov import HiddenMarkovModel
    from deciban.latent.mixture import FittedMixture


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
        raise NotAvailableError("ellipses show components that are Gaussian. Plot the components of others as bars.")
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
