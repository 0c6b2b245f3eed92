"""Pictures as files: what `evaluate --plots` and `explain --svg` write."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from deciban.errors import DecibanError, UsageError

JUDGING = ("bayes_error", "det", "roc", "tippett", "llr_histogram", "reliability", "empirical_cross_entropy")


def draw(path: str | os.PathLike[str], act: Callable[[Any], Any]) -> None:
    """A picture on new axes, in the format that the path ends in."""
    _plots()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    act(figure.subplots())
    figure.savefig(path)


def judging_plots(told: Any, folder: str) -> list[str]:
    """Every picture that judges answers, of each class against the rest where there are more than two; their paths."""
    plots = _plots()
    place = Path(folder)
    if place.exists() and not place.is_dir():
        raise UsageError(f"--plots {folder!r} is a file. Give a folder; it is made if it is not there.")
    place.mkdir(parents=True, exist_ok=True)
    sides = [None] if len(told.classes) == 2 else list(told.classes)
    written = []
    for over in sides:
        for name in JUDGING:
            end = "" if over is None else f"-{_file_name(str(over))}"
            path = place / f"{name}{end}.svg"
            try:
                draw(path, partial(_judge, getattr(plots, name), told, over))
            except DecibanError:  # a class without rows has no such picture
                continue
            written.append(str(path))
    return written


def _judge(picture: Any, told: Any, over: Any, ax: Any) -> None:
    picture(told, over=over, ax=ax)


def _plots() -> Any:
    try:
        from deciban import plots
    except ImportError as error:
        raise UsageError(str(error)) from None
    return plots


def _file_name(label: str) -> str:
    return "".join(sign if sign.isalnum() or sign in "-_" else "_" for sign in label)[:60]
