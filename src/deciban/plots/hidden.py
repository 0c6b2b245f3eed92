"""Pictures of hidden variables: clusters with their ellipses, how EM climbed, and which state when."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from deciban.errors import InputError, NotAvailableError
from deciban.plots.canvas import MARKERS, PALETTE, canvas, finish
from deciban.plots.features import _ellipse, _gaussian


def clusters(
    mixture: Any,
    X: Any,
    features: tuple[int, int] = (0, 1),
    *,
    sds: tuple[float, ...] = (1.0, 2.0),
    ax: Axes | None = None,
) -> Axes:
    """Rows coloured by their most probable component, and each Gaussian component's ellipses.

    >>> from matplotlib.figure import Figure
    >>> from deciban import Gaussian, Mixture
    >>> X = np.random.default_rng(0).normal(size=(60, 2)) + np.repeat([[0, 0], [9, 9]], 30, axis=0)
    >>> ax = clusters(Mixture(Gaussian(), 2).fit(X, random_state=0), X, sds=(2,), ax=Figure().subplots())
    >>> len(ax.patches)
    2
    """
    X = np.asarray(X, dtype=float)
    fitted = getattr(mixture, "fitted_", mixture)
    moments = _gaussian(fitted.density().components)
    if moments is None:
        raise NotAvailableError("ellipses show components that are Gaussian. Plot the components of others as bars.")
    if X.ndim != 2 or max(features) >= X.shape[1]:
        raise InputError(f"features {features} of a table of shape {X.shape}. Give two of its columns by position.")
    ax, at = canvas(ax), np.array(features)
    component, weights = fitted.predict(X), fitted.weights
    for m, (mean, cov) in enumerate(zip(*moments)):
        colour, marker = PALETTE[m % len(PALETTE)], MARKERS[m % len(MARKERS)]
        ax.plot(*X[component == m][:, at].T, marker, color=colour, ms=3, mew=0, alpha=0.45, gid="rows")
        for number, reach in enumerate(sds):
            style = ("-", "--", ":")[number % 3]
            ax.add_patch(_ellipse(mean[at], cov[np.ix_(at, at)], reach, edgecolor=colour, fill=False, ls=style, lw=1.4))
        ax.plot(*mean[at], marker, color=colour, mec="black", ms=7, gid="mean", label=f"{weights[m]:.0%} of the rows")
    ax.autoscale_view()
    ax.set(xlabel=f"column {features[0]}", ylabel=f"column {features[1]}")
    return finish(ax)


def em_trace(trace: Any, *, rows: float | None = None, label: str | None = None, ax: Axes | None = None) -> Axes:
    """The objective after each iteration of EM, a row where `rows` is given; it never falls.

    >>> from matplotlib.figure import Figure
    >>> from deciban.latent.em import Trace
    >>> em_trace(Trace([-9.0, -5.0, -4.5], True), ax=Figure().subplots()).lines[0].get_ydata().tolist()
    [-9.0, -5.0, -4.5]
    """
    trace = getattr(trace, "trace_", getattr(trace, "trace", trace))
    if not trace.objective:
        raise InputError("the trace is empty: EM has taken no step.")
    ax = canvas(ax)
    climbed = np.asarray(trace.objective) / (rows or 1.0)
    ax.plot(
        np.arange(1, len(climbed) + 1), climbed, "-o", ms=3, color=PALETTE[len(ax.lines) % len(PALETTE)], label=label
    )
    ax.set(xlabel="iteration", ylabel="objective (nats a row)" if rows else "objective (nats)")
    return finish(ax)


def state_sequence(model: Any, X: Any, truth: Any = None, *, most: int = 400, ax: Axes | None = None) -> Axes:
    """The probability of each hidden state along one sequence, and, where it is known, the true state below."""
    probability = np.asarray(model.predict_proba(X))[:most]
    if not len(probability):
        raise InputError("the sequence is empty.")
    ax = canvas(ax, width=7.5, height=2.6)
    names = [str(name) for name in getattr(model, "classes_", range(probability.shape[1]))]
    steps = np.arange(len(probability))
    colours = [PALETTE[s % len(PALETTE)] for s in range(probability.shape[1])]
    ax.stackplot(steps, probability.T, colors=colours, labels=names, alpha=0.75, linewidth=0)
    if truth is not None:
        known = [str(name) for name in np.asarray(truth)[:most]]
        for s, name in enumerate(names):
            own = np.array([one == name for one in known])
            ax.fill_between(steps, -0.12, -0.04, where=own, color=colours[s], linewidth=0, step="mid")
        ax.set_yticks([-0.08, 0, 0.5, 1], ["truth", "0", "0.5", "1"])
    ax.set(xlabel="step", ylabel="probability of the state")
    ax.set(xlim=(0, len(probability) - 1), ylim=(0 if truth is None else -0.14, 1))
    return finish(ax, "center left")
