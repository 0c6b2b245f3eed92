"""Start-up of the `deciban` process: the only code that changes how its process imports modules and frees memory.

A short command spends most of its time on imports. scikit-learn, scipy, joblib, numba and Arrow import large modules of
which a command uses little or nothing, so these are replaced by stand-ins here, and pandas is not found at all. The
library does nothing of the kind (docs/decisions/0018): `deciban.cli.main` calls `prepare_process` before anything else.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

# Imported by scipy, joblib, scikit-learn, numba and narwhals, and seldom used by a command.
DEFERRED = (
    *("numpy.f2py", "numpy.testing", "numpy.polynomial", "scipy.stats", "narwhals.stable.v2"),
    *("asyncio", "pydoc", "yaml"),
)
# Arrow and scikit-learn import it to recognise its frames. The command line reads files with Arrow and has none.
ABSENT = "pandas"
MMAP_THRESHOLD = -3  # the name of this parameter for glibc's `mallopt`
LARGE_BLOCK = 2**23  # bytes; larger blocks go back to the system when they are freed, whatever was freed before


class Deferred(ModuleType):
    """Stand-in for a module. The first use of one of its attributes imports the module itself."""

    def __getattr__(self, attribute: str) -> Any:
        name = self.__name__
        finder = self.__loader__
        if isinstance(finder, ImportFinder) and name in finder.deferred:
            finder.deferred.discard(name)
            sys.modules.pop(name, None)
        return getattr(importlib.import_module(name), attribute)


class ImportFinder:
    """Finder for `sys.meta_path`: gives stand-ins for `deferred` modules, and does not find the absent one."""

    def __init__(self, deferred: Sequence[str] = DEFERRED, absent: str = ABSENT) -> None:
        self.deferred, self.absent = set(deferred), absent

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:
        """Specification of a stand-in; None for every other module, which the next finder then looks for."""
        if name == "numpy":
            return_large_blocks()
        if name == self.absent:
            raise ModuleNotFoundError(f"the command line does not use {name}", name=name)
        if name not in self.deferred or PathFinder.find_spec(name, path, target) is None:
            return None
        return ModuleSpec(name, self)  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None:
        """An ordinary empty module, while the import system fills in its attributes."""

    def exec_module(self, module: ModuleType) -> None:
        """Make it a stand-in."""
        module.__class__ = Deferred


def return_large_blocks() -> None:
    """Let the C library return every large freed array to the system; only glibc keeps them, and only it has this."""
    import ctypes

    with contextlib.suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).mallopt(MMAP_THRESHOLD, LARGE_BLOCK)


def keep_objects() -> None:
    """Leave the objects that exist now out of later garbage collections: with a large model, each takes 0.1 s."""
    gc.collect()
    gc.freeze()


def prepare_process() -> None:
    """Make imports of this process quick and its memory small. Modules that are loaded already stay as they are."""
    gc.set_threshold(50_000, 20, 20)  # imports create very many objects and hardly any garbage
    sys.meta_path.insert(0, ImportFinder())
