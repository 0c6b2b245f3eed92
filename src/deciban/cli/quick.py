"""A quick start: what a command does not use is not imported on its behalf.

Arrow imports pandas wherever it is installed, to see whether it is given frames. In this process pandas is not there:
the command line reads Arrow, and asks for no frame of pandas.
"""

from __future__ import annotations

import gc
import sys
from typing import Any


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
