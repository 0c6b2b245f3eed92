"""Every picture of the documentation can be drawn, has names on its axes, and exists as a file."""

import importlib.util
import inspect
from pathlib import Path

import pytest
from matplotlib.axes import Axes

from deciban import plots

IMAGES = Path(__file__).parents[2] / "docs" / "images"
spec = importlib.util.spec_from_file_location("make_pictures", IMAGES / "make.py")
make = importlib.util.module_from_spec(spec)
spec.loader.exec_module(make)


@pytest.mark.parametrize("name", make.PICTURES)
def test_a_picture_is_drawn_with_labelled_axes(name):
    ax = make.PICTURES[name]()
    ax.figure.canvas.draw()  # layout and text are worked out only now; a warning is an error
    assert isinstance(ax, Axes)
    assert ax.get_title() or (ax.get_xlabel() and (ax.get_ylabel() or ax.get_yticklabels()))


def test_every_picture_is_in_the_folder_and_small():
    held = {path.stem: path.stat().st_size for path in IMAGES.glob("*.png")}
    assert set(held) == set(make.PICTURES)
    assert max(held.values()) <= 60_000


def test_every_plot_has_a_picture():
    drawn = inspect.getsource(make)
    assert [name for name in plots.__all__ if f"plots.{name}" not in drawn] == []


def test_every_picture_is_shown_on_a_page():
    pages = "".join(page.read_text() for page in IMAGES.parent.rglob("*.md"))
    assert [name for name in make.PICTURES if f"{name}.png" not in pages] == []
