"""How a model sees one feature, or two: densities, and where decisions change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from deciban.plots.canvas import GREY, MARKERS, PALETTE, canvas, finish
from deciban.plots.table import axis_name, column, drawn, position, scores, span_of
from deciban.score import log_joint, log_probability
from deciban.statistics import Array

POINTS = 600  # along a curve
GRID = 240  # along each side of a plane
STYLES = ("-", "--", "-.", ":")


def class_densities(
    clf: Any,
    feature: Any = 0,
    *,
    prior: Any = None,
    at: float | None = None,
    span: ArrayLike | None = None,
    ax: Axes | None = None,
) -> Axes:
    """How each class produces one feature, whatever the others; with a prior, weighed by it, with the boundaries.

    `at` marks a value. Counts and yes/no answers are drawn as points.

    >>> from matplotlib.figure import Figure
    >>> from deciban import Gaussian, GenerativeClassifier
    >>> men, women = Gaussian.of(175.33, 52.89), Gaussian.of(161.82, 46.89)
    >>> clf = GenerativeClassifier.from_densities({"m": men, "f": women})
    >>> ax = class_densities(clf, at=174, ax=Figure().subplots())
    >>> ax.get_ylabel(), [text.get_text() for text in ax.get_legend().get_texts()]
    ('density', ['m', 'f'])
    """
    ax, place = canvas(ax), position(clf, feature)
    values = drawn(clf, place)
    low, high = span_of(values, span)
    whole = bool((values == np.rint(values)).all())
    grid = np.arange(np.ceil(low), high + 1e-9) if whole else np.linspace(low, high, POINTS)
    weight = log_probability(np.ones(len(clf.classes_))) if prior is None else clf._log_prior(prior)
    curves = log_joint(scores(clf, [place], grid[:, None]), weight)
    for k, name in enumerate(clf.classes_):
        style = STYLES[k % len(STYLES)] + ("o" if whole else "")
        ax.plot(grid, np.exp(curves[:, k]), style, color=PALETTE[k % len(PALETTE)], gid="density", label=str(name))
        if at is not None:
            height = np.exp(log_joint(scores(clf, [place], np.array([[float(at)]])), weight))[0, k]
            ax.plot([at], [height], "o", color=PALETTE[k % len(PALETTE)], gid="at", ms=5)
    if at is not None:
        ax.axvline(at, color=GREY, lw=0.8)
    for boundary in _changes(grid, curves) if prior is not None else ():
        ax.axvline(boundary, color="black", ls=(0, (1, 2)), gid="boundary", label=f"decision changes at {boundary:.4g}")
    kind = "probability" if whole else "density"
    ax.set(xlabel=axis_name(clf, place), ylabel=kind if prior is None else f"prior × {kind}")
    ax.set_ylim(bottom=0)
    return finish(ax)


def decision_regions(
    clf: Any,
    features: tuple[Any, Any] = (0, 1),
    X: Any = None,
    y: Any = None,
    *,
    prior: Any = None,
    cost: Any = None,
    also: Mapping[str, Any] | None = None,
    spans: Any = (None, None),
    ax: Axes | None = None,
) -> Axes:
    """What is decided where, on two features, whatever the others; `also` adds the boundaries of other priors.

    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import load_iris
    >>> from deciban import Gaussian, GenerativeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = GenerativeClassifier(Gaussian("full")).fit(X, y)
    >>> decision_regions(clf, (2, 3), X, y, ax=Figure().subplots()).get_xlabel()
    'feature 2'
    """
    ax, places = canvas(ax), [position(clf, feature) for feature in features]
    shown = [drawn(clf, at) if X is None else column(X, at) for at in places]
    sides = [np.linspace(*span_of(values, span), GRID) for values, span in zip(shown, spans)]
    plane = np.stack(np.meshgrid(*sides), axis=-1).reshape(-1, 2)
    evidence = scores(clf, places, plane)
    losses = _log_cost(clf, evidence, prior, cost)
    K = len(clf.classes_)
    extent = (sides[0][0], sides[0][-1], sides[1][0], sides[1][-1])
    decided = losses.argmin(axis=1).reshape(GRID, GRID)
    tints = ListedColormap([PALETTE[k % len(PALETTE)] for k in range(K)])
    ax.imshow(
        decided, cmap=tints, vmin=-0.5, vmax=K - 0.5, origin="lower", extent=extent, aspect="auto", alpha=0.18, zorder=0
    )
    _boundaries(ax, sides, losses, "black", "-")
    for number, (label, other) in enumerate((also or {}).items()):
        style = ("--", "-.", ":")[number % 3]
        _boundaries(ax, sides, _log_cost(clf, evidence, other, cost), "black", style)
        ax.plot([], [], "k", ls=style, label=label)
    _rows(ax, clf, shown if X is not None else None, y)
    ax.set(xlim=extent[:2], ylim=extent[2:], xlabel=axis_name(clf, places[0]), ylabel=axis_name(clf, places[1]))
    finish(ax).grid(False)
    return ax


def _rows(ax: Axes, clf: Any, shown: list[Array] | None, y: Any) -> None:
    """The rows as points; without rows, the classes in the legend alone."""
    labels = None if y is None else np.asarray(y)
    for k, name in enumerate(clf.classes_):
        colour, marker = PALETTE[k % len(PALETTE)], MARKERS[k % len(MARKERS)]
        if shown is None or labels is None:
            ax.plot([], [], "s", color=colour, alpha=0.35, ms=9, label=str(name))
        else:
            own = labels == name
            points = [values[own] for values in shown]
            ax.plot(*points, marker, color=colour, ms=4, mew=0.4, mec="white", gid="rows", label=str(name))


def _log_cost(clf: Any, evidence: Array, prior: Any, cost: Any) -> Array:
    """(n, K) log expected cost of deciding each class, up to what a row's classes share."""
    joint = log_joint(evidence, clf._log_prior(prior))
    return logsumexp(joint[:, :, None] + log_probability(clf._cost(cost))[None], axis=1)


def _boundaries(ax: Axes, sides: list[Array], losses: Array, colour: str, style: str) -> None:
    """Where the cheapest decision changes: a class's lead over the others passes 0."""
    K = losses.shape[1]
    for k in range(K if K > 2 else 1):
        lead = (np.delete(losses, k, axis=1).min(axis=1) - losses[:, k]).reshape(GRID, GRID)
        if lead.min() < 0 < lead.max():
            ax.contour(*sides, lead, levels=[0.0], colors=colour, linestyles=style, linewidths=1.0)


def _changes(grid: Array, curves: Array) -> list[float]:
    """Where another curve becomes the highest, by linear interpolation of logs."""
    best, found = curves.argmax(axis=1), []
    for i in np.flatnonzero(best[1:] != best[:-1]):
        gap = curves[i : i + 2, best[i]] - curves[i : i + 2, best[i + 1]]
        found.append(float(grid[i] + (grid[i + 1] - grid[i]) * gap[0] / (gap[0] - gap[1])))
    return found
