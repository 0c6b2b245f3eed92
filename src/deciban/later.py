"""Quick imports: modules that nobody asked for wait until something of them is, and nobody looks for garbage."""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from types import ModuleType
from typing import Any

# What scipy, joblib and scikit-learn import for the sake of completeness or of a few functions, pandas wherever it is
# installed: more than half of the second until an estimator is there.
UNASKED = ("numpy.f2py", "numpy.testing", "scipy.stats", "pandas", "asyncio")


class Later(ModuleType):
    """Stands for a module until something of it is asked for.

    >>> colours = Later("colorsys")
    >>> colours.rgb_to_hsv(0, 0, 1)
    (0.6666666666666666, 1.0, 1)
    """

    def __getattr__(self, name: str) -> Any:
        self.step_back()
        return getattr(importlib.import_module(self.__name__), name)

    def step_forward(self) -> None:
        """Be what others import, as the module would be."""
        package, _, name = self.__name__.rpartition(".")
        sys.modules[self.__name__] = self
        if package:
            setattr(sys.modules[package], name, self)

    def step_back(self) -> None:
        """Let others import the module itself."""
        package, _, name = self.__name__.rpartition(".")
        if sys.modules.get(self.__name__) is self:
            sys.modules.pop(self.__name__, None)
        parent = sys.modules.get(package)
        if parent is not None and vars(parent).get(name) is self:
            vars(parent).pop(name, None)


@contextmanager
def waiting(*names: str) -> Iterator[None]:
    """What is imported in here gets stand-ins for these modules, unless they are loaded already or not installed.

    Afterwards everything is as it was: whoever imports one of them gets the module itself.
    """
    stand_ins = [Later(name) for name in names if name not in sys.modules and _installed(name)]
    for stand_in in stand_ins:
        stand_in.step_forward()
    try:
        yield
    finally:
        for stand_in in stand_ins:
            stand_in.step_back()


@contextmanager
def uncollected() -> Iterator[None]:
    """Without looking for garbage, of which importing makes none: it makes so many objects that a tenth is looking."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            if not gc.get_freeze_count():  # else somebody has frozen objects that should stay so
                gc.freeze()
                gc.unfreeze()  # all are old now, so the next collection does not begin with everything imported
            gc.enable()


@contextmanager
def quickly() -> Iterator[None]:
    """Import something heavy without what it imports and nobody asked for."""
    with uncollected(), waiting(*UNASKED):
        yield


def _installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ImportError:  # its package is not there, or it is kept from being found
        return False
