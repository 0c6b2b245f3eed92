"""A quick start: what a command does not use is not imported on its behalf.

scikit-learn imports all of scipy.stats for a few functions, and pandas wherever it is installed: together most of the
time until a first answer (benchmarks/cli.py). In this process scipy.stats is imported when something of it is asked
for, and pandas is not there: the command line reads Arrow, and asks for no frame of pandas.
"""

from __future__ import annotations

import gc
import importlib
import sys
from types import ModuleType
from typing import Any


class Later(ModuleType):
    """Stands for a module until something of it is asked for."""

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(importlib.import_module(self.__name__), name)


class WithoutPandas:
    """Finds no pandas, whoever asks."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> None:
        """The search for a module goes on, unless it is pandas."""
        if name == "pandas":
            raise ModuleNotFoundError("the command line does without pandas", name=name)


def start_quickly() -> None:
    """Before anything heavy is imported; what is there already stays."""
    gc.set_threshold(50_000, 20, 20)  # importing makes thousands of objects, none of them garbage
    sys.meta_path.insert(0, WithoutPandas)
    sys.modules.setdefault("scipy.stats", Later("scipy.stats"))
