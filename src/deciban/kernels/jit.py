"""How kernels are compiled: without the GIL, kept on disk where that is possible.

Importing this module imports numba, and other modules of kernels take from here what they use of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba import carray as carray
from numba import types as types
from numba.core import cgutils as cgutils
from numba.core.caching import FunctionCache
from numba.core.runtime import rtsys
from numba.extending import intrinsic as intrinsic

# Fused multiply-adds are welcome. Flags that assume away NaN or inf would break the checks that rely on them.
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"contract"}}
# Sums may be taken in any order: needed to vectorise a sum along a row, fatal to arithmetic that counts its roundings.
ANY_ORDER: dict[str, Any] = {**OPTIONS, "fastmath": {"contract", "reassoc"}}

# Part of a kernel: compiled into its callers, so there is nothing to keep.
part = numba.njit(forceinline=True, **OPTIONS)


@cache
def _sources() -> str:
    """Digest of the source files of all kernels, in this package and in the others' `kernels` folders."""
    files = sorted(Path(__file__).parents[1].rglob("kernels/*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


class Kept(FunctionCache):
    """A kernel's machine code on disk."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        # numba compares the kernel's own file only, and would go on using what it made of parts since changed.
        self._cache_file._source_stamp = (self._cache_file._source_stamp, _sources())

    def load_overload(self, signature: Any, target: Any) -> Any:
        """What was compiled for a signature, or None.

        numba makes ready to compile before it looks, a tenth of a second in each process; code that is there needs the
        runtime only, and when there is none numba makes ready as it begins to compile.
        """
        rtsys.initialize(target)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(signature, target)


def _nothing() -> None:
    pass


class Kernel:
    """A function compiled on its first call for each combination of argument types.

    Machine code is kept beside the source or in the user's cache directory. Where neither can be written to, numba
    refuses, either when it looks for a place or when it comes to write: the kernel is then compiled for this process
    alone. Nothing has run at that point, so the call is simply made again.
    """

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self.function, self.options, self.cached = function, options, True
        try:
            self.run = numba.njit(cache=True, **options)(function)
            self.run._cache = Kept(function)
            # Looks through everything installed for extensions of numba, which it does again before it compiles.
            self.run._compilation_chain_init_hook = _nothing
        except (RuntimeError, OSError, AttributeError):
            self._forgo_cache()

    def _forgo_cache(self) -> None:
        self.cached = False
        self.run = numba.njit(**self.options)(self.function)

    def __call__(self, *args: Any) -> Any:
        if self.cached:
            try:
                return self.run(*args)
            except (RuntimeError, OSError, EOFError):
                self._forgo_cache()
        return self.run(*args)


def kernel(function: Callable[..., Any]) -> Kernel:
    """Compile a function that the dispatching modules call."""
    return Kernel(function, OPTIONS)


def any_order_kernel(function: Callable[..., Any]) -> Kernel:
    """Compile a function whose sums may be taken in any order."""
    return Kernel(function, ANY_ORDER)
