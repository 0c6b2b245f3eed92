"""Gaussian classes as ellipses: where their means are, and how far they spread."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Ellipse
from numpy.typing import ArrayLike

from deciban.errors import InputError, NotAvailableError
from deciban.estimators.known import SideBySide
from deciban.families.blocks import ProductDensity
from deciban.families.gaussian.axis_densities import AxisDensity
from deciban.families.gaussian.densities import MatrixDensity
from deciban.plots.canvas import MARKERS, PALETTE, canvas, finish
from deciban.plots.table import axis_name, column, position
from deciban.statistics import Array


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
    blocks = density.blocks if isinstance(density, ProductDensity) else dict.fromkeys(clf._places(), density)
    for name, at in clf._places().items():
        own = _gaussian(blocks[name])
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
