"""Memory that was freed, handed back to the system: between the stages of a stream, of which each needs its own."""

from __future__ import annotations

import ctypes
import sys


def hand_back() -> None:
    """Let the system have what is free; the C library and Arrow would keep it for what may come."""
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].default_memory_pool().release_unused()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc has it, and is the one that keeps much
        if trim is not None:
            trim(0)
