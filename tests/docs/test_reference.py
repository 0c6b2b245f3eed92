"""The reference has every public name, and the gallery runs."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
SCRIPTS = sorted((ROOT / "docs" / "gallery").glob("plot_*.py"))


def _listed(module: str) -> set[str]:
    found: set[str] = set()
    for page in REFERENCE.glob("*.md"):
        for block in re.findall(r"currentmodule:: (\S+)\n(.*?)```", page.read_text(), re.DOTALL):
            if block[0] == module:
                found |= set(re.findall(r"^   (\w+)$", block[1], re.MULTILINE))
    return found


@pytest.mark.parametrize("module", ["deciban", "deciban.evaluate", "deciban.plots"])
def test_every_public_name_is_in_the_reference(module):
    assert _listed(module) == set(importlib.import_module(module).__all__) - {"__version__"}


def test_every_error_is_in_the_reference():
    errors = importlib.import_module("deciban.errors")
    kinds = {name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, Exception)}
    own = {name for name in kinds if getattr(errors, name).__module__ == "deciban.errors"}
    assert _listed("deciban.errors") == own


def test_the_gallery_has_pictures():
    assert len(SCRIPTS) >= 12


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_script_of_the_gallery_runs(script):
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    mpl.use("agg")
    code = compile(script.read_text(), str(script), "exec")
    exec(code, {"__name__": "__main__"})
    assert plt.get_fignums()
    plt.close("all")
