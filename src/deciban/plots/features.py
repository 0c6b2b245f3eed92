"""Rows that hold some features only, for pictures of one feature or of two; what they lack is integrated out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.patches import Ellipse
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from deciban.errors import InputError, NotAvailableError, shortlist
from deciban.evidence.scores import log_joint, log_probability
from deciban.families.gaussian.densities import AxisDensity, MatrixDensity
from deciban.families.known import SideBySide
from deciban.families.product import blocks_of
from deciban.plots.canvas import GREY, MARKERS, PALETTE, canvas, finish
from deciban.read.tables import Table
from deciban.statistics import Array

DRAWS = 4000  # rows from which the model's own range is read


def position(clf: Any, feature: Any) -> int:
    """Where a column stands, by name or number."""
    columns = list(clf.columns_)
    if feature in columns:
        return columns.index(feature)
    if isinstance(feature, int) and 0 <= feature < len(columns):
        return feature
    raise InputError(f"no such feature: {feature!r}; the model knows {shortlist(columns, 10)}.")


def axis_name(clf: Any, at: int) -> str:
    """What to write beside an axis."""
    name = clf.columns_[at]
    return str(name) if isinstance(name, str) else f"feature {name}"


def scores(clf: Any, features: list[int], values: Array) -> Array:
    """(n, K) calibrated log f(x|class) of rows (n, len(features)) in which all other features are missing."""
    rows = np.full((len(values), len(clf.columns_)), np.nan)
    rows[:, features] = values
    table = Table(rows, clf.columns_, all(isinstance(name, str) for name in clf.columns_))
    predictor = clf.predictor_
    return predictor.scores(predictor.model.encode(table))


def column(X: Any, at: int) -> Array:
    """One column of a table as numbers."""
    return np.asarray(Table.of(X).pick([at]), dtype=float).ravel()


def drawn(clf: Any, at: int) -> Array:
    """Values of one feature as the model produces them, classes equally frequent."""
    rows, _ = clf.sample(DRAWS, 0, prior="uniform")
    order = [j for places in clf.model_.positions for j in places]
    values = np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows)[:, order.index(at)]
    try:
        return values.astype(float)
    except (TypeError, ValueError):
        raise NotAvailableError(
            f"feature {clf.columns_[at]!r} holds {values[0]!r}: only numbers have a place on an axis."
        ) from None


def span_of(values: Array, given: ArrayLike | None, margin: float = 0.08) -> tuple[float, float]:
    """The range to draw: as given, or that of the values and a little more; far outliers do not count."""
    if given is not None:
        low, high = np.asarray(given, dtype=float)
        return float(low), float(high)
    low, high = np.nanquantile(values, [0.001, 0.999])
    extra = margin * (high - low) or 1.0
    return float(low - extra), float(high + extra)


# -- features ----------
# How a model sees one feature, or two: densities, and where decisions change.

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
    weight = log_probability(np.ones(len(clf.classes_))) if prior is None else clf.log_prior(prior)
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
    joint = log_joint(evidence, clf.log_prior(prior))
    return logsumexp(joint[:, :, None] + log_probability(clf.cost_matrix(cost))[None], axis=1)


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


# -- ellipses ----------
# Gaussian classes as ellipses: where their means are, and how far they spread.


def covariance_ellipses(
    model: Any,
    features: tuple[Any, Any] = (0, 1),
    X: Any = None,
    y: Any = None,
    *,
    covariances: ArrayLike | None = None,
    names: Any = None,
    sds: tuple[float, ...] = (1.0, 2.0),
    ax: Axes | None = None,
) -> Axes:
    """Ellipses of so many standard deviations for each class of a Gaussian classifier, or for (K, 2) means.

    >>> from matplotlib.figure import Figure
    >>> ax = covariance_ellipses([[0, 0]], covariances=[[[4, 0], [0, 1]]], sds=(1,), ax=Figure().subplots())
    >>> ax.patches[0].get_width(), ax.patches[0].get_height()
    (4.0, 2.0)
    """
    ax = canvas(ax)
    if covariances is not None:
        mean, cov = np.asarray(model, dtype=float), np.asarray(covariances, dtype=float)
        if mean.ndim != 2 or mean.shape[1] != 2 or cov.shape != (len(mean), 2, 2):
            raise InputError(f"means {mean.shape} with covariances {cov.shape}. Give shapes (K, 2) and (K, 2, 2).")
        labels, axes_names = list(names or range(len(mean))), ("", "")
    else:
        places = [position(model, feature) for feature in features]
        mean, cov = moments(model, np.array(places))
        labels, axes_names = list(model.classes_), (axis_name(model, places[0]), axis_name(model, places[1]))
    for k, name in enumerate(labels):
        colour, marker = PALETTE[k % len(PALETTE)], MARKERS[k % len(MARKERS)]
        if X is not None and y is not None and covariances is None:
            own = np.asarray(y) == name
            points = [column(X, at)[own] for at in places]
            ax.plot(*points, marker, color=colour, ms=3, mew=0, alpha=0.45, gid="rows")
        for number, reach in enumerate(sds):
            style = ("-", "--", ":")[number % 3]
            ax.add_patch(_ellipse(mean[k], cov[k], reach, edgecolor=colour, fill=False, ls=style, lw=1.4))
        ax.plot(*mean[k], marker, color=colour, mec="black", ms=7, gid="mean", label=str(name))
    ax.autoscale_view()
    ax.set(xlabel=axes_names[0], ylabel=axes_names[1])
    return finish(ax)


def moments(clf: Any, features: Array) -> tuple[Array, Array]:
    """(K, d) means and (K, d, d) covariances of these columns."""
    D = len(clf.columns_)
    mean, cov = np.full((len(clf.classes_), D), np.nan), np.zeros((len(clf.classes_), D, D))
    density: Any = clf.density
    for (_, block), at in zip(blocks_of(clf.family_, density), clf.model_.positions):
        own = _gaussian(block)
        if own is not None:
            mean[:, at], cov[:, np.array(at)[:, None], at] = own
    if np.isnan(mean[:, features]).any():
        raise NotAvailableError("ellipses show Gaussian classes, and these features are modelled otherwise.")
    return mean[:, features], cov[:, features[:, None], features]


def _gaussian(density: Any) -> tuple[Array, Array] | None:
    """Means and covariances of a Gaussian block; None for other families."""
    if isinstance(density, SideBySide):
        each = [_gaussian(part) for part in density.parts_]
        return None if None in each else tuple(np.concatenate(parts) for parts in zip(*each))  # type: ignore[return-value]
    if not isinstance(density, (MatrixDensity, AxisDensity)):
        return None
    mean = density.origin + density.mean
    K, D = mean.shape
    dof = getattr(density, "dof", None)
    if isinstance(density, AxisDensity):
        variance = density.variance * (1.0 if dof is None else np.reshape(_stretch(dof), (K, -1)))
        return mean, np.eye(D) * variance[:, None, :]
    shape = np.broadcast_to(density.scale, (K, D, D)) / density.divisor[:, None, None]
    return mean, shape if dof is None else shape * np.reshape(_stretch(dof), (K, 1, 1))


def _stretch(dof: Array) -> Array:
    """What makes a Student density's squared scale its variance; heavy tails without one keep their scale."""
    return np.where(dof > 2, dof / np.where(dof > 2, dof - 2, 1.0), 1.0)


def _ellipse(centre: Array, cov: Array, reach: float, **look: Any) -> Ellipse:
    variances, axes = np.linalg.eigh(cov)
    width, height = 2 * reach * np.sqrt(variances[::-1])
    tilt = float(np.degrees(np.arctan2(axes[1, 1], axes[0, 1])))
    return Ellipse((float(centre[0]), float(centre[1])), float(width), float(height), angle=tilt, **look)
