"""Which body runs, and arrays made ready for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike, NDArray

Array = NDArray[Any]
Body = Literal["numba", "numpy"]

# Elementary operations below which the numpy twin runs: it needs about ten milliseconds for this many, while importing
# numba takes four hundred and compiling a kernel a second or more.
SMALL_WORK = 1_000_000

# Rows converted at a time when an array is not of a kind that kernels read directly.
CONVERTED_ROWS = 4096

_forced: ContextVar[Body | None] = ContextVar("forced", default=None)


@contextmanager
def forced(body: Body) -> Iterator[None]:
    """Let one body do everything, however small or large the input: for tests that compare the two."""
    if body not in ("numba", "numpy"):
        raise ValueError(f"the body must be 'numba' or 'numpy', not {body!r}")
    token = _forced.set(body)
    try:
        yield
    finally:
        _forced.reset(token)


def compiled(work: float) -> bool:
    """Whether this much work is worth the compiled kernel."""
    body = _forced.get()
    return work >= SMALL_WORK if body is None else body == "numba"


class _Borrowed:
    """Another array's memory, described as writable."""

    def __init__(self, array: Array) -> None:
        self.__array_interface__ = {**array.__array_interface__, "data": (array.ctypes.data, False)}
        self.owner = array  # keeps the memory alive


def readable(array: Array, dtype: DTypeLike | None = None) -> Array:
    """The array as plain, C-ordered and aligned; copied only when it is not.

    numba compiles a kernel once more for read-only arguments. A read-only array, such as a memory map, is therefore
    passed on under a description that says writable; kernels never write to their inputs.
    """
    plain = np.require(array, dtype, ["C", "A"])
    if type(plain) is not np.ndarray:
        plain = plain.view(np.ndarray)
    if not plain.flags.writeable and plain.size:
        plain = np.asarray(_Borrowed(plain))
    return plain


def pieces(X: Array, native: tuple[str, ...], otherwise: DTypeLike) -> Iterator[tuple[slice, Array]]:
    """Blocks of rows that a kernel can read, with their positions: all at once if X is native and C-ordered.

    Anything else is converted a block at a time, so that a Fortran-ordered table costs no second copy of itself.
    """
    X = np.asarray(X)
    dtype = X.dtype if X.dtype.name in native and X.dtype.isnative else np.dtype(otherwise)
    if X.dtype == dtype and X.flags.c_contiguous and X.flags.aligned:
        yield slice(0, len(X)), readable(X)
        return
    for start in range(0, len(X), CONVERTED_ROWS):
        rows = slice(start, min(start + CONVERTED_ROWS, len(X)))
        yield rows, readable(X[rows], dtype)


def class_codes(codes: Array, K: int) -> Array:
    """Class numbers as intp, all in [0, K)."""
    codes = readable(codes, np.intp)
    # Seen as unsigned, a negative number is huge: one pass checks both ends.
    if codes.size and codes.view(np.uintp).max() >= K:
        raise IndexError(f"class codes run from {codes.min()} to {codes.max()}; they must lie in [0, {K})")
    return codes


def row_weights(weight: Array | None) -> Array | None:
    """Weights as float64, or None."""
    return None if weight is None else readable(weight, np.float64)


_UNWEIGHTED = np.empty(0)


def or_unweighted(weight: Array | None, rows: slice = slice(None)) -> Array:
    """The weights of these rows as kernels take them: an empty array stands for None, to compile for both at once."""
    return _UNWEIGHTED if weight is None else weight[rows]


# -- blas ----------
# BLAS on small blocks: one thread is faster than two, and leaves the other to somebody else.

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
