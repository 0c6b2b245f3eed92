"""Returns freed memory to the system between the stages of a streamed fit."""

from __future__ import annotations

import ctypes
import sys


def hand_back() -> None:
    """Return free memory to the system; the C library and Arrow would keep it for later allocations."""
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].default_memory_pool().release_unused()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc only
        if trim is not None:
            trim(0)
