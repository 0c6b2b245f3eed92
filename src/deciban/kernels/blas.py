"""BLAS on small blocks: one thread is faster than two, and leaves the other to somebody else."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

# From this many columns on a block is large enough to gain from as many threads as the user allows.
WIDE = 256


@cache
def _controller() -> Any:
    # scipy brings a BLAS of its own; a controller made before that is loaded would not know it.
    import scipy.linalg  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def one_thread(columns: int) -> AbstractContextManager[Any]:
    """Keep BLAS to one thread within, if the blocks are narrow. Making the controller anew would cost milliseconds."""
    return nullcontext() if columns >= WIDE else _controller().limit(limits=1, user_api="blas")
