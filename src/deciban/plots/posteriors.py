"""Plots of posteriors of probabilities: a Beta for one, a Dirichlet on a triangle for three."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from matplotlib.axes import Axes
from matplotlib.tri import Triangulation
from numpy.typing import ArrayLike
from scipy import stats as sps
from scipy.special import gammaln

from deciban.errors import InputError, NotAvailableError
from deciban.families.fitted import Fitted
from deciban.families.protocol import Marginal, Posterior
from deciban.plots.canvas import FOR, canvas, colour_of, finish, line_of, write
from deciban.statistics import Array

Known: TypeAlias = Fitted | Posterior | Marginal | ArrayLike  # a posterior, or its parameters

POINTS = 801
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
    grid = np.linspace(0, 1, POINTS)[1:-1]
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
    density = np.exp(np.minimum(log_density, np.quantile(log_density, 0.995)))  # a pole at the edge would hide the rest
    spread = np.ptp(density) > 1e-9 * density.max()
    levels = np.linspace(0, density.max(), 12) if spread else [0, density.max(), 2 * density.max()]
    ax.tricontourf(Triangulation(*_place(points).T), density, levels=levels, cmap="Blues", extend="max")
    ax.plot(*_place(np.eye(3)[[0, 1, 2, 0]]).T, color="black", lw=1, gid="edge")
    ax.plot(*_place(counts[None] / counts.sum()).T, "P", color=FOR, mec="white", ms=9, gid="mean", label="mean")
    if draws:
        drawn = np.random.default_rng(seed).dirichlet(counts, draws)
        ax.plot(*_place(drawn).T, ".", color="black", ms=2, alpha=0.6, gid="draws", label=f"{draws:,} draws")
    for name, (x, y), side in zip(corners, _place(np.eye(3)), ("right", "left", "center")):
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


def _place(points: ArrayLike) -> Array:
    """Coordinates (n, 2) of probabilities (n, 3): the first corner is left, the second right, the third on top."""
    return np.asarray(points) @ np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(0.75)]])
