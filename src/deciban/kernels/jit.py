"""Compilation with numba: options of all kernels, and their machine code on disk.

Importing this module imports numba (0.4 s), so modules that import it are themselves imported inside functions, when a
large input arrives. All private names of numba are used here and nowhere else: tests/kernels/test_compilation.py checks
that they exist and behave as expected.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numba
from numba import carray as carray
from numba import types as types
from numba.core import cgutils as cgutils
from numba.core.caching import FunctionCache
from numba.core.runtime import rtsys
from numba.extending import intrinsic as intrinsic

if TYPE_CHECKING:  # for annotations of intrinsics
    from numba.core.base import BaseContext as BaseContext
    from numba.core.typing import Context as Context
    from numba.core.typing import Signature as Signature

# LLVM may fuse multiplications and additions. Flags that assume away NaN or inf would break checks that rely on them.
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"contract"}}
# LLVM may do neither: for sums whose numpy version has the same bits.
AS_WRITTEN: dict[str, Any] = {**OPTIONS, "fastmath": False}
# LLVM may also reorder sums, which vectorises a sum along a row. Not for compensated arithmetic, such as that of `exp`.
ANY_ORDER: dict[str, Any] = {**OPTIONS, "fastmath": {"contract", "reassoc"}}

# Functions that are compiled into the kernels that call them. They have no machine code of their own to keep on disk.
inline = numba.njit(forceinline=True, **OPTIONS)
as_written_inline = numba.njit(forceinline=True, **AS_WRITTEN)
any_order_inline = numba.njit(forceinline=True, **ANY_ORDER)


@cache
def _source_digest() -> str:
    """Digest of the source files of all kernels: this package and every other folder named `kernels`."""
    files = sorted(Path(__file__).parents[1].rglob("kernels/*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


class KernelCache(FunctionCache):
    """Machine code of one kernel on disk; out of date when any kernel source file changes."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        # numba stamps the kernel's own file only, and would keep using code that inlines functions of other files.
        self._cache_file._source_stamp = (self._cache_file._source_stamp, _source_digest())

    def load_overload(self, signature: Signature, target: BaseContext) -> Any:
        """Return what was compiled for a signature, or None.

        numba's own method initialises the compiler first, 0.1 s in each process. Loading needs only the runtime; if
        nothing is found, numba initialises the compiler itself before it compiles.
        """
        rtsys.initialize(target)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(signature, target)


def _no_hook() -> None:
    """Do nothing, instead of the search for extensions."""


class Kernel:
    """A function that is compiled at its first call for each combination of argument types.

    Machine code is kept beside the source or in the user's cache directory. If neither is writable, numba raises,
    either when it looks for a directory or when it writes: the kernel is then compiled for this process only. The
    function has not run at that point, so the call is repeated.
    """

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self.function, self.options, self.cached = function, options, True
        try:
            self.run = numba.njit(cache=True, **options)(function)
            self.run._cache = KernelCache(function)
            # This hook searches all installed packages for numba extensions. numba repeats it before it compiles.
            self.run._compilation_chain_init_hook = _no_hook
        except (RuntimeError, OSError, AttributeError):
            self._disable_cache()

    def _disable_cache(self) -> None:
        self.cached = False
        self.run = numba.njit(**self.options)(self.function)

    @property
    def loaded(self) -> bool:
        """Whether there is machine code for some types of arguments."""
        return bool(self.run.signatures)

    def __call__(self, *args: Any) -> Any:
        if self.cached:
            try:
                return self.run(*args)
            except (RuntimeError, OSError, EOFError):
                self._disable_cache()
        return self.run(*args)


def kernel(function: Callable[..., Any]) -> Kernel:
    """Compile a function that Python code calls."""
    return Kernel(function, OPTIONS)


def as_written_kernel(function: Callable[..., Any]) -> Kernel:
    """Compile a function whose numpy version has the same bits."""
    return Kernel(function, AS_WRITTEN)


def any_order_kernel(function: Callable[..., Any]) -> Kernel:
    """Compile a function whose sums may be reordered."""
    return Kernel(function, ANY_ORDER)
