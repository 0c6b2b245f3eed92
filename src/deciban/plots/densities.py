"""Plots of densities: of features in each class, and of probabilities given counts.

In plots of a classifier over one or two features, the other features are missing, and so are integrated out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.patches import Ellipse
from matplotlib.tri import Triangulation
from numpy.typing import ArrayLike
from scipy import stats as sps
from scipy.special import gammaln, logsumexp

from deciban.errors import InputError, NotAvailableError, shortlist
from deciban.evidence.decisions import CostLike, PriorLike
from deciban.evidence.scores import log_joint, log_probability
from deciban.families.fitted import Fitted
from deciban.families.fixed import SideBySide
from deciban.families.gaussian.densities import AxisDensity, MatrixDensity
from deciban.families.product import blocks_of
from deciban.families.protocol import Density, Marginal, Posterior
from deciban.model.nomogram import sampled_columns
from deciban.plots.canvas import FOR, GREY, canvas, colour_of, finish, line_of, marker_of, write
from deciban.read.tables import Table
from deciban.statistics import Array

if TYPE_CHECKING:
    from deciban.estimators.classifier import GenerativeClassifier

SAMPLE = 4000  # rows sampled from the model to find the range to draw
POINTS = 600  # along a curve
GRID = 240  # along each side of a plane


def class_densities(
    clf: GenerativeClassifier,
    feature: str | int = 0,
    *,
    prior: PriorLike | None = None,
    at: float | None = None,
    span: ArrayLike | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the density of one feature in each class; counts and yes/no values are drawn as points.

    Parameters
    ----------
    clf : GenerativeClassifier
        A fitted classifier.
    feature : str or int, default=0
        Name or position of the column.
    prior : class prior, optional
        If given, densities are multiplied by it, and values at which the decision changes are marked.
    at : float, optional
        A value to mark.
    span : (float, float), optional
        Range to draw, that of the model if not given.
    ax : matplotlib.axes.Axes, optional
        Where to draw, new axes if not given.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from deciban import Gaussian, GenerativeClassifier
    >>> men, women = Gaussian.of(175.33, 52.89), Gaussian.of(161.82, 46.89)
    >>> clf = GenerativeClassifier.from_densities({"m": men, "f": women})
    >>> ax = class_densities(clf, at=174, ax=Figure().subplots())
    >>> ax.get_ylabel(), [text.get_text() for text in ax.get_legend().get_texts()]
    ('density', ['m', 'f'])
    """
    ax, place = canvas(ax), _position(clf, feature)
    values = _sampled(clf, place)
    low, high = _limits(values, span)
    whole = bool((values == np.rint(values)).all())
    grid = np.arange(np.ceil(low), high + 1e-9) if whole else np.linspace(low, high, POINTS)
    weight = np.zeros(len(clf.classes_)) if prior is None else clf.log_prior(prior)
    curves = log_joint(_scores(clf, [place], grid[:, None]), weight)
    for k, name in enumerate(clf.classes_):
        style = line_of(k) + ("o" if whole else "")
        ax.plot(grid, np.exp(curves[:, k]), style, color=colour_of(k), gid="density", label=str(name))
    if at is not None:
        heights = np.exp(log_joint(_scores(clf, [place], np.array([[float(at)]])), weight))[0]
        for k, height in enumerate(heights):
            ax.plot([at], [height], "o", color=colour_of(k), gid="at", ms=5)
        ax.axvline(at, color=GREY, lw=0.8)
    for boundary in _changes(grid, curves) if prior is not None else ():
        ax.axvline(boundary, color="black", ls=(0, (1, 2)), gid="boundary", label=f"decision changes at {boundary:.4g}")
    kind = "probability" if whole else "density"
    ax.set(xlabel=_axis_name(clf, place), ylabel=kind if prior is None else f"prior × {kind}")
    ax.set_ylim(bottom=0)
    return finish(ax)


def decision_regions(
    clf: GenerativeClassifier,
    features: tuple[str | int, str | int] = (0, 1),
    X: object = None,
    y: ArrayLike | None = None,
    *,
    prior: PriorLike | None = None,
    cost: CostLike = None,
    also: Mapping[str, PriorLike] | None = None,
    spans: Sequence[ArrayLike | None] = (None, None),
    ax: Axes | None = None,
) -> Axes:
    """Draw the decided class over two features.

    Parameters
    ----------
    clf : GenerativeClassifier
        A fitted classifier.
    features : pair of str or int, default=(0, 1)
        Names or positions of the columns.
    X : table of shape (n, D), optional
        Rows to draw as points.
    y : array-like of shape (n,), optional
        Classes of these rows.
    prior : class prior, optional
        The prior, that of the classifier if not given.
    cost : costs, optional
        The costs, those of the classifier if not given.
    also : mapping of str to class prior, optional
        Further priors, by their names in the legend, of which the boundaries are drawn.
    spans : pair of (float, float) or None, optional
        Range of each feature, that of X or of the model if None.
    ax : matplotlib.axes.Axes, optional
        Where to draw, new axes if not given.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import load_iris
    >>> from deciban import Gaussian, GenerativeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = GenerativeClassifier(Gaussian("full")).fit(X, y)
    >>> decision_regions(clf, (2, 3), X, y, ax=Figure().subplots()).get_xlabel()
    'feature 2'
    """
    ax, places = canvas(ax), [_position(clf, feature) for feature in features]
    shown = [_sampled(clf, at) if X is None else _column(X, at) for at in places]
    sides = [np.linspace(*_limits(values, span), GRID) for values, span in zip(shown, spans)]
    plane = np.stack(np.meshgrid(*sides), axis=-1).reshape(-1, 2)
    evidence = _scores(clf, places, plane)
    losses = _log_cost(clf, evidence, prior, cost)
    K = len(clf.classes_)
    extent = (sides[0][0], sides[0][-1], sides[1][0], sides[1][-1])
    decided = losses.argmin(axis=1).reshape(GRID, GRID)
    tints = ListedColormap([colour_of(k) for k in range(K)])
    ax.imshow(
        decided, cmap=tints, vmin=-0.5, vmax=K - 0.5, origin="lower", extent=extent, aspect="auto", alpha=0.18, zorder=0
    )
    _boundaries(ax, sides, losses, "-")
    for number, (label, other) in enumerate((also or {}).items()):
        style = ("--", "-.", ":")[number % 3]
        _boundaries(ax, sides, _log_cost(clf, evidence, other, cost), style)
        ax.plot([], [], "k", ls=style, label=label)
    _rows(ax, clf, shown if X is not None else None, y)
    ax.set(xlim=extent[:2], ylim=extent[2:], xlabel=_axis_name(clf, places[0]), ylabel=_axis_name(clf, places[1]))
    finish(ax).grid(False)
    return ax


def covariance_ellipses(
    model: GenerativeClassifier | ArrayLike,
    features: tuple[str | int, str | int] = (0, 1),
    X: object = None,
    y: ArrayLike | None = None,
    *,
    covariances: ArrayLike | None = None,
    names: Sequence[object] | None = None,
    sds: tuple[float, ...] = (1.0, 2.0),
    ax: Axes | None = None,
) -> Axes:
    """Draw the mean and covariance of each Gaussian class as ellipses.

    Parameters
    ----------
    model : GenerativeClassifier or array-like of shape (K, 2)
        A fitted classifier, or means, with `covariances`.
    features : pair of str or int, default=(0, 1)
        Names or positions of the columns of a classifier.
    X : table of shape (n, D), optional
        Rows to draw as points, for a classifier.
    y : array-like of shape (n,), optional
        Classes of these rows.
    covariances : array-like of shape (K, 2, 2), optional
        Covariances of given means.
    names : sequence of K labels, optional
        Names of given means.
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
    >>> ax = covariance_ellipses([[0, 0]], covariances=[[[4, 0], [0, 1]]], sds=(1,), ax=Figure().subplots())
    >>> ax.patches[0].get_width(), ax.patches[0].get_height()
    (4.0, 2.0)
    """
    ax = canvas(ax)
    points: list[Array] | None = None
    if covariances is not None:
        mean, cov = np.asarray(model, dtype=float), np.asarray(covariances, dtype=float)
        if mean.ndim != 2 or mean.shape[1] != 2 or cov.shape != (len(mean), 2, 2):
            raise InputError(f"means {mean.shape} with covariances {cov.shape}. Give shapes (K, 2) and (K, 2, 2).")
        labels, axis_names = list(names or range(len(mean))), ("", "")
    else:
        clf: Any = model
        places = [_position(clf, feature) for feature in features]
        mean, cov = _moments(clf, np.array(places))
        labels, axis_names = list(clf.classes_), (_axis_name(clf, places[0]), _axis_name(clf, places[1]))
        if X is not None and y is not None:
            points = [_column(X, at) for at in places]
    for k, name in enumerate(labels):
        own = None if points is None else [values[np.asarray(y) == name] for values in points]
        draw_component(ax, k, mean[k], cov[k], sds, own, str(name))
    ax.autoscale_view()
    ax.set(xlabel=axis_names[0], ylabel=axis_names[1])
    return finish(ax)


def draw_component(
    ax: Axes, k: int, mean: Array, cov: Array, sds: Sequence[float], points: Sequence[Array] | None, label: str
) -> None:
    """The mean and ellipses of class or component number k, and its rows as points."""
    colour, marker = colour_of(k), marker_of(k)
    if points is not None:
        ax.plot(*points, marker, color=colour, ms=3, mew=0, alpha=0.45, gid="rows")
    variances, axes = np.linalg.eigh(cov)
    tilt = float(np.degrees(np.arctan2(axes[1, 1], axes[0, 1])))
    for number, reach in enumerate(sds):
        width, height = (2 * reach * np.sqrt(variances[::-1])).tolist()
        style = ("-", "--", ":")[number % 3]
        centre = (float(mean[0]), float(mean[1]))
        ax.add_patch(Ellipse(centre, width, height, angle=tilt, edgecolor=colour, fill=False, ls=style, lw=1.4))
    ax.plot(*mean, marker, color=colour, mec="black", ms=7, gid="mean", label=label)


def gaussian_moments(density: Density) -> tuple[Array, Array] | None:
    """Means (K, D) and covariances (K, D, D) of a Gaussian density; None for other families."""
    if isinstance(density, SideBySide):
        each = [gaussian_moments(part) for part in density.parts_]
        return None if None in each else tuple(np.concatenate(parts) for parts in zip(*each))  # type: ignore[return-value]
    if not isinstance(density, (MatrixDensity, AxisDensity)):
        return None
    mean = density.mean
    K, D = mean.shape
    dof = getattr(density, "dof", None)
    if isinstance(density, AxisDensity):
        variance = density.variance * (1.0 if dof is None else np.reshape(_student_variance(dof), (K, -1)))
        return mean, np.eye(D) * variance[:, None, :]
    shape = np.broadcast_to(density.scale, (K, D, D)) / density.divisor[:, None, None]
    return mean, shape if dof is None else shape * np.reshape(_student_variance(dof), (K, 1, 1))


def _student_variance(dof: Array) -> Array:
    """Variance over squared scale of a Student density: ν/(ν−2), or 1 where there is no variance."""
    return np.where(dof > 2, dof / np.where(dof > 2, dof - 2, 1.0), 1.0)


def _moments(clf: GenerativeClassifier, features: Array) -> tuple[Array, Array]:
    """Means (K, d) and covariances (K, d, d) of these columns."""
    D = len(clf.columns_)
    mean, cov = np.full((len(clf.classes_), D), np.nan), np.zeros((len(clf.classes_), D, D))
    density: Any = clf.density
    for (_, block), at in zip(blocks_of(clf.family_, density), clf.model_.positions):
        own = gaussian_moments(block)
        if own is not None:
            mean[:, at], cov[:, np.array(at)[:, None], at] = own
    if np.isnan(mean[:, features]).any():
        raise NotAvailableError("ellipses show Gaussian classes, and these features have another family.")
    return mean[:, features], cov[:, features[:, None], features]


def _position(clf: GenerativeClassifier, feature: str | int) -> int:
    """The position of a column, given by name or position."""
    columns = list(clf.columns_)
    if feature in columns:
        return columns.index(feature)
    if isinstance(feature, int) and 0 <= feature < len(columns):
        return feature
    raise InputError(f"no such feature: {feature!r}; the columns are {shortlist(columns, 10)}.")


def _axis_name(clf: GenerativeClassifier, at: int) -> str:
    """The label of an axis."""
    name = clf.columns_[at]
    return str(name) if isinstance(name, str) else f"feature {name}"


def _scores(clf: GenerativeClassifier, features: list[int], values: Array) -> Array:
    """(n, K) calibrated log f(x|class) of rows (n, len(features)) in which all other features are missing."""
    rows = np.full((len(values), len(clf.columns_)), np.nan)
    rows[:, features] = values
    table = Table(rows, clf.columns_, all(isinstance(name, str) for name in clf.columns_))
    predictor = clf.predictor_
    return predictor.scores(predictor.model.encode(table))


def _column(X: object, at: int) -> Array:
    """One column of a table as numbers, (n,)."""
    return np.asarray(Table.of(X).pick([at]), dtype=float).ravel()


def _sampled(clf: GenerativeClassifier, at: int) -> Array:
    """Values of one feature sampled from the model, with equal class priors."""
    values = sampled_columns(clf.predictor_, SAMPLE).get(at)
    if values is None:
        raise NotAvailableError(f"feature {clf.columns_[at]!r} holds words: only numbers have a place on an axis.")
    try:
        return values.astype(float)
    except (TypeError, ValueError):
        raise NotAvailableError(
            f"feature {clf.columns_[at]!r} holds {values[0]!r}: only numbers have a place on an axis."
        ) from None


def _limits(values: Array, given: ArrayLike | None, margin: float = 0.08) -> tuple[float, float]:
    """The range to draw: as given, or that of the middle 99.8 % of the values with a margin."""
    if given is not None:
        low, high = np.asarray(given, dtype=float)
        return float(low), float(high)
    low, high = np.nanquantile(values, [0.001, 0.999])
    extra = margin * (high - low) or 1.0
    return float(low - extra), float(high + extra)


def _rows(ax: Axes, clf: GenerativeClassifier, shown: list[Array] | None, y: ArrayLike | None) -> None:
    """The rows as points; without rows, legend entries of the classes."""
    labels = None if y is None else np.asarray(y)
    for k, name in enumerate(clf.classes_):
        if shown is None or labels is None:
            ax.plot([], [], "s", color=colour_of(k), alpha=0.35, ms=9, label=str(name))
        else:
            points = [values[labels == name] for values in shown]
            ax.plot(*points, marker_of(k), color=colour_of(k), ms=4, mew=0.4, mec="white", gid="rows", label=str(name))


def _log_cost(clf: GenerativeClassifier, evidence: Array, prior: PriorLike | None, cost: CostLike) -> Array:
    """(n, K) log expected cost of deciding each class, up to a constant of each row."""
    joint = log_joint(evidence, clf.log_prior(prior))
    return logsumexp(joint[:, :, None] + log_probability(clf.cost_matrix(cost))[None], axis=1)


def _boundaries(ax: Axes, sides: list[Array], losses: Array, style: str) -> None:
    """Contours at which the lead of a class over the others is 0."""
    K = losses.shape[1]
    for k in range(K if K > 2 else 1):
        lead = (np.delete(losses, k, axis=1).min(axis=1) - losses[:, k]).reshape(GRID, GRID)
        if lead.min() < 0 < lead.max():
            ax.contour(*sides, lead, levels=[0.0], colors="black", linestyles=style, linewidths=1.0)


def _changes(grid: Array, curves: Array) -> list[float]:
    """Values at which another curve becomes the highest, by linear interpolation of the logarithms."""
    best, found = curves.argmax(axis=1), []
    for i in np.flatnonzero(best[1:] != best[:-1]):
        gap = curves[i : i + 2, best[i]] - curves[i : i + 2, best[i + 1]]
        found.append(float(grid[i] + (grid[i + 1] - grid[i]) * gap[0] / (gap[0] - gap[1])))
    return found


# -- posteriors of probabilities ---------------------------------------------------------------------------------------
Known: TypeAlias = Fitted | Posterior | Marginal | ArrayLike  # a posterior, or its parameters

PROBABILITIES = 801  # points along a curve over probabilities
SIDE = 90  # points along a side of the triangle


def beta(posteriors: Known | Mapping[str, Known], *, level: float = 0.9, ax: Axes | None = None) -> Axes:
    """Draw posterior densities of probabilities, each with its mean and credible interval.

    Parameters
    ----------
    posteriors : Fitted, Posterior, Marginal, pair (a, b), or mapping of str to these
        A fitted family such as `Bernoulli().fit(flips)`, its posterior, or the parameters of a Beta distribution.
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
    >>> from deciban import Bernoulli
    >>> flips = Bernoulli().fit([1, 1, 0, 0, 0, 1, 0, 1, 1, 1])
    >>> ax = beta({"no data": (1, 1), "ten flips": flips}, ax=Figure().subplots())
    >>> ax.get_legend().get_texts()[1].get_text()
    'ten flips: .58 [.35, .80]'
    """
    ax = canvas(ax)
    grid = np.linspace(0, 1, PROBABILITIES)[1:-1]
    for number, (name, distribution) in enumerate(_betas(posteriors)):
        colour = colour_of(number)
        density = distribution.pdf(grid)
        low, high = distribution.ppf([(1 - level) / 2, (1 + level) / 2])
        numbers = f"{distribution.mean():.2f} [{low:.2f}, {high:.2f}]".replace("0.", ".")
        ax.plot(
            grid, density, line_of(number), color=colour, gid="density", label=f"{name}: {numbers}" if name else numbers
        )
        inside = (grid >= low) & (grid <= high)
        ax.fill_between(grid[inside], density[inside], color=colour, alpha=0.15, lw=0)
    tallest = max(np.quantile(np.asarray(line.get_ydata(), dtype=float), 0.999) for line in ax.lines)
    ax.set(xlim=(0, 1), ylim=(0, 1.08 * tallest), xlabel="probability", ylabel="density")
    return finish(ax)


def dirichlet(
    alpha: Known,
    *,
    corners: Sequence[object] = ("1", "2", "3"),
    draws: int = 0,
    seed: int = 0,
    ax: Axes | None = None,
) -> Axes:
    """Draw the posterior density of three probabilities that sum to 1, on a triangle.

    Parameters
    ----------
    alpha : Fitted, Posterior, Marginal or array-like of shape (3,)
        A `Categorical` or `Multinomial` fitted to three categories, its posterior, or three pseudo-counts.
    corners : sequence of 3 names, default=("1", "2", "3")
        Names of the categories.
    draws : int, default=0
        Number of points sampled from the density.
    seed : int, default=0
        Seed of the sample.
    ax : matplotlib.axes.Axes, optional
        Where to draw, new axes if not given.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> dirichlet([2, 3, 4], corners=["a", "b", "c"], ax=Figure().subplots()).get_title()
    'Dirichlet(2, 3, 4)'
    """
    counts = _three(alpha)
    if len(corners) != 3:
        raise InputError(f"{len(corners)} corner names for a triangle. Give three.")
    ax = canvas(ax, 4.2, 3.9)
    points = _interior(SIDE)
    log_density = ((counts - 1) * np.log(points)).sum(axis=1) + gammaln(counts.sum()) - gammaln(counts).sum()
    density = np.exp(
        np.minimum(log_density, np.quantile(log_density, 0.995))
    )  # a pole at the edge would dominate the colours
    spread = np.ptp(density) > 1e-9 * density.max()
    levels = np.linspace(0, density.max(), 12) if spread else [0, density.max(), 2 * density.max()]
    ax.tricontourf(Triangulation(*_on_triangle(points).T), density, levels=levels, cmap="Blues", extend="max")
    ax.plot(*_on_triangle(np.eye(3)[[0, 1, 2, 0]]).T, color="black", lw=1, gid="edge")
    ax.plot(*_on_triangle(counts[None] / counts.sum()).T, "P", color=FOR, mec="white", ms=9, gid="mean", label="mean")
    if draws:
        drawn = np.random.default_rng(seed).dirichlet(counts, draws)
        ax.plot(*_on_triangle(drawn).T, ".", color="black", ms=2, alpha=0.6, gid="draws", label=f"{draws:,} draws")
    for name, (x, y), side in zip(corners, _on_triangle(np.eye(3)), ("right", "left", "center")):
        offset = {"right": (-6, -4), "left": (6, -4), "center": (0, 6)}[side]
        write(ax, str(name), (x, y), offset, side, "baseline", "medium")
    ax.set(xlim=(-0.12, 1.12), ylim=(-0.06, 0.98), aspect="equal")
    ax.set_axis_off()
    ax.set_title(f"Dirichlet({', '.join(f'{a:g}' for a in counts)})", fontsize="medium")
    ax.legend(loc="upper right", frameon=False, fontsize="small")
    return ax


def _betas(posteriors: Known | Mapping[str, Known], name: str = "") -> Iterator[tuple[str, Any]]:
    """Each probability: its name and its distribution."""
    if isinstance(posteriors, Mapping):
        for label, each in posteriors.items():
            yield from _betas(each, str(label))
        return
    if isinstance(posteriors, (Fitted, Posterior, Marginal)):
        a, b = _parameters(posteriors)
        for at in np.ndindex(a.shape):
            place = f"[{', '.join(map(str, at[1:]))}]" if a.size > 1 else ""
            yield f"{name}{place}", sps.beta(a[at], b[at])
        return
    a, b = np.asarray(posteriors, dtype=float)
    if not (a > 0 and b > 0):
        raise InputError(f"Beta({a:g}, {b:g}): both numbers must be > 0.")
    yield name, sps.beta(a, b)


def _parameters(known: Fitted | Posterior | Marginal) -> tuple[Array, Array]:
    """The parameters a and b of each Beta; refused for other posteriors."""
    posterior = known.posterior() if isinstance(known, Fitted) else known
    if isinstance(posterior, Posterior) and "p" not in posterior.marginals:
        raise NotAvailableError(
            f"{', '.join(posterior)}: none of these parameters is a probability with a Beta posterior."
        )
    distribution = (posterior["p"] if isinstance(posterior, Posterior) else posterior).distribution
    if getattr(getattr(distribution, "dist", None), "name", "") != "beta":
        raise NotAvailableError("this posterior is not a Beta. Draw its `distribution` yourself.")
    a, b = distribution.args
    return np.asarray(a), np.asarray(b)


def _three(alpha: Known) -> Array:
    """Three pseudo-counts."""
    counts = _parameters(alpha)[0].ravel() if isinstance(alpha, (Fitted, Posterior, Marginal)) else np.asarray(alpha)
    if counts.shape != (3,) or not (counts > 0).all():
        raise InputError(f"a triangle shows three pseudo-counts > 0, not {np.asarray(counts).tolist()}.")
    return counts.astype(float)


def _interior(side: int) -> Array:
    """A triangular grid of probabilities inside the edges, where a pseudo-count below 1 has a pole."""
    i, j = np.meshgrid(np.arange(side), np.arange(side), indexing="ij")
    kept = i + j < side
    first, second = i[kept], j[kept]
    inner = np.column_stack([first, second, side - 1 - first - second]) / (side - 1)
    return (inner + 1e-3) / (1 + 3e-3)


def _on_triangle(points: ArrayLike) -> Array:
    """Coordinates (n, 2) of probabilities (n, 3): the first corner is left, the second right, the third on top."""
    return np.asarray(points) @ np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(0.75)]])
