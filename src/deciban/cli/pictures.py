"""Plots as files: those of `evaluate --plots` and of `explain --svg`."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from deciban.cli.output import write_file
from deciban.errors import DecibanError, UsageError
from deciban.read.columns import NUMBERS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from deciban.estimators.classifier import GenerativeClassifier
    from deciban.evaluate import Evaluation
    from deciban.read.tables import TypedTable

Plot = Callable[..., Any]  # draws on the axes `ax`
FORMATS = ("svg", "png", "pdf")
MOST_COLUMNS = 8  # whose densities are drawn
OF_EVALUATION = ("bayes_error", "det", "roc", "tippett", "llr_histogram", "reliability", "empirical_cross_entropy")


def draw(path: str | os.PathLike[str], plot: Callable[[Axes], Any]) -> None:
    """Draw on new axes and write a file, in the format that the path ends in."""
    _plots_module()
    from matplotlib.figure import Figure

    ending = Path(path).suffix.lstrip(".").lower() or "svg"
    if ending not in FORMATS:
        raise UsageError(f"{os.fspath(path)!r}: the name of a plot ends in .{', .'.join(FORMATS)}.")
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    plot(figure.subplots())
    drawn = BytesIO()
    figure.savefig(drawn, format=ending)
    write_file(path, drawn.getvalue())


def plots_folder(folder: str) -> Path:
    """The folder for plots; checked before anything long begins."""
    place = Path(folder)
    if place.exists() and not place.is_dir():
        raise UsageError(f"--plots {folder!r} is a file. Give a folder; it is created if it does not exist.")
    _plots_module()
    return place


def draw_evaluation(evaluation: Evaluation, place: Path) -> list[str]:
    """Draw all plots of an evaluation, with more than two classes each class against the rest; their paths."""
    plots = _plots_module()
    wanted: dict[str, Plot] = {}
    for over in [None] if len(evaluation.classes) == 2 else evaluation.classes:
        ending = "" if over is None else f"-{_file_name(str(over))}"
        for name in OF_EVALUATION:
            wanted[f"{name}{ending}"] = partial(getattr(plots, name), evaluation, over=over)
    return _draw_all(wanted, place)


def draw_model(clf: GenerativeClassifier, rows: TypedTable | None, place: Path) -> list[str]:
    """Draw densities of number columns, decision regions and ellipses of the first two, and a nomogram; their paths."""
    plots = _plots_module()
    columns = [] if clf.schema_ is None else clf.schema_.columns
    numbers = [column.name for column in columns if column.kind in NUMBERS][:MOST_COLUMNS]
    wanted: dict[str, Plot] = {
        f"class_densities-{_file_name(name)}": partial(plots.class_densities, clf, name) for name in numbers
    }
    if len(numbers) > 1:
        for plot in (plots.decision_regions, plots.covariance_ellipses):
            wanted[plot.__name__] = partial(plot, clf, (numbers[0], numbers[1]))
    if rows is not None:
        wanted["nomogram"] = partial(plots.nomogram, clf, rows, *clf.stats_.classes[1::-1])
    return _draw_all(wanted, place)


def _draw_all(wanted: dict[str, Plot], place: Path) -> list[str]:
    """Draw the plots that can be drawn: a class without rows has no curve, a text no density."""
    place.mkdir(parents=True, exist_ok=True)
    written = []
    for name, plot in wanted.items():
        path = place / f"{name}.svg"
        try:
            draw(path, lambda ax, plot=plot: plot(ax=ax))  # type: ignore[misc]
        except DecibanError:
            continue
        written.append(str(path))
    return written


def _plots_module() -> ModuleType:
    try:
        from deciban import plots
    except ImportError as error:
        raise UsageError(str(error)) from None
    return plots


def _file_name(label: str) -> str:
    return "".join(character if character.isalnum() or character in "-_" else "_" for character in label)[:60]
