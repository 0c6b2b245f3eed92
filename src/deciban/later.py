"""Imports that take less time: of modules that wait until something of them is asked for, and without collections."""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from types import ModuleType
from typing import Any


class Later(ModuleType):
    """Stands for a module until something of it is asked for.

    >>> colours = Later("colorsys")
    >>> colours.rgb_to_hsv(0, 0, 1)
    (0.6666666666666666, 1.0, 1)
    """

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(importlib.import_module(self.__name__), name)


@contextmanager
def waiting(*names: str) -> Iterator[None]:
    """What is imported in here gets stand-ins for these modules, unless they are loaded already or not installed.

    Afterwards everything is as it was: whoever imports one of them gets the module itself.
    """
    stand_ins = {name: Later(name) for name in names if name not in sys.modules and _installed(name)}
    sys.modules.update(stand_ins)
    try:
        yield
    finally:
        for name, stand_in in stand_ins.items():
            if sys.modules.get(name) is stand_in:
                del sys.modules[name]


@contextmanager
def uncollected() -> Iterator[None]:
    """Without looking for garbage, of which importing makes none: it makes so many objects that a tenth is looking."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def _installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ImportError:  # its package is not there, or it is kept from being found
        return False
