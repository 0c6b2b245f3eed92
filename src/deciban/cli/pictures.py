"""Pictures as files: what `evaluate --plots` and `explain --svg` write."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

from deciban.cli.output import write_bytes
from deciban.errors import DecibanError, UsageError
from deciban.read.columns import NUMBERS

Picture = Callable[..., Any]  # draws on `ax`
PICTURES = ("svg", "png", "pdf")
MOST = 8  # columns whose densities are drawn
JUDGING = ("bayes_error", "det", "roc", "tippett", "llr_histogram", "reliability", "empirical_cross_entropy")


def draw(path: str | os.PathLike[str], act: Callable[[Any], Any]) -> None:
    """A picture on new axes, in the format that the path ends in."""
    _plots()
    from matplotlib.figure import Figure

    ending = Path(path).suffix.lstrip(".").lower() or "svg"
    if ending not in PICTURES:
        raise UsageError(f"{os.fspath(path)!r}: a picture ends in .{', .'.join(PICTURES)}.")
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    act(figure.subplots())
    drawn = BytesIO()
    figure.savefig(drawn, format=ending)
    write_bytes(path, drawn.getvalue())


def plots_folder(folder: str) -> Path:
    """Where pictures will be; refused before anything long begins."""
    place = Path(folder)
    if place.exists() and not place.is_dir():
        raise UsageError(f"--plots {folder!r} is a file. Give a folder; it is made if it is not there.")
    _plots()
    return place


def judging_plots(told: Any, place: Path) -> list[str]:
    """Every picture that judges answers, of each class against the rest where there are more than two; their paths."""
    plots = _plots()
    wanted: dict[str, Picture] = {}
    for over in [None] if len(told.classes) == 2 else told.classes:
        for name in JUDGING:
            end = "" if over is None else f"-{_file_name(str(over))}"
            wanted[f"{name}{end}"] = partial(getattr(plots, name), told, over=over)
    return _drawn(wanted, place)


def model_plots(clf: Any, rows: Any, place: Path) -> list[str]:
    """How the model sees its numbers: densities of each, regions and ellipses of the first two; a nomogram of rows."""
    plots = _plots()
    numbers = [column.name for column in clf.schema_.columns if column.kind in NUMBERS][:MOST]
    wanted: dict[str, Picture] = {
        f"class_densities-{_file_name(name)}": partial(plots.class_densities, clf, name) for name in numbers
    }
    if len(numbers) > 1:
        for picture in (plots.decision_regions, plots.covariance_ellipses):
            wanted[picture.__name__] = partial(picture, clf, (numbers[0], numbers[1]))
    if rows is not None:
        wanted["nomogram"] = partial(plots.nomogram, clf, rows, *clf.stats_.classes[1::-1])
    return _drawn(wanted, place)


def _drawn(wanted: dict[str, Picture], place: Path) -> list[str]:
    """Those pictures that can be drawn: a class without rows has no curve, a text no density."""
    place.mkdir(parents=True, exist_ok=True)
    written = []
    for name, picture in wanted.items():
        path = place / f"{name}.svg"
        try:
            draw(path, lambda ax, picture=picture: picture(ax=ax))  # type: ignore[misc]
        except DecibanError:
            continue
        written.append(str(path))
    return written


def _plots() -> Any:
    try:
        from deciban import plots
    except ImportError as error:
        raise UsageError(str(error)) from None
    return plots


def _file_name(label: str) -> str:
    return "".join(sign if sign.isalnum() or sign in "-_" else "_" for sign in label)[:60]
