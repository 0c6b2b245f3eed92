"""Whether the machine code of a kernel is at hand, found out without importing numba (0.4 s)."""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path

VERSION = f"py{sys.version_info.major}{sys.version_info.minor}"  # part of the names of numba's files


def at_hand(module: str, kernel: str) -> bool:
    """Whether a kernel is loaded in this process, or lies on disk from an earlier one."""
    loaded = getattr(sys.modules.get(module), kernel, None)
    return (loaded is not None and loaded.loaded) or on_disk(module, kernel, os.environ.get("NUMBA_CACHE_DIR"))


@cache  # as it was at the first question: what this process compiles is loaded
def on_disk(module: str, kernel: str, folder: str | None) -> bool:
    """Whether numba has written a kernel to disk since its source was installed; `folder` is where it was told to.

    A wrong answer costs time only: a compilation, or the numpy version where the compiled one is there.
    """
    *packages, name = module.split(".")
    source = Path(__file__).parents[1].joinpath(*packages[1:], f"{name}.py")
    form = f"{name}.{kernel}-*.{VERSION}*.nbi"
    try:
        beside = [] if folder else list((source.parent / "__pycache__").glob(form))
        elsewhere = Path(folder) if folder else Path.home() / ".cache" / "numba"
        found = [*beside, *elsewhere.glob(f"*/{form}")]
        return any(file.stat().st_mtime >= source.stat().st_mtime for file in found)
    except (OSError, RuntimeError):
        return False
