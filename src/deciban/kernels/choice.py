"""Choice between the numpy and the compiled version of a function, arrays prepared for either, and threads of BLAS."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ContextDecorator, contextmanager, nullcontext
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from deciban.errors import HyperparameterError

F = TypeVar("F", bound=Callable[..., Any])
Array = NDArray[Any]
Body = Literal["numba", "numpy"]

# Elementary operations below which the numpy version runs. It takes about 10 ms for this many; importing numba takes
# 0.4 s, and compiling a kernel 1 s or more.
SMALL_WORK = 1_000_000

# Rows converted at a time if an array has a type or layout that kernels do not read.
CONVERTED_ROWS = 4096

WORK: dict[str, float] = {"numba": -1, "numpy": np.inf}  # the most operations for which numpy runs, if one is forced
VARIABLE = "DECIBAN_KERNELS"


def _default_work() -> float:
    """Return the most operations for which numpy runs, unless the environment variable forces one version."""
    body = os.environ.get(VARIABLE, "")
    if body and body not in WORK:
        raise HyperparameterError(f"the environment variable {VARIABLE}={body!r} must be 'numpy' or 'numba', or unset.")
    return WORK.get(body, SMALL_WORK - 1)


DEFAULT_WORK = _default_work()
numpy_work: ContextVar[float] = ContextVar("numpy_work", default=DEFAULT_WORK)


@contextmanager
def forced(body: Body) -> Iterator[None]:
    """Use only the compiled or only the numpy versions, for any size of input: for tests that compare the two."""
    if body not in WORK:
        raise ValueError(f"the body must be 'numba' or 'numpy', not {body!r}")
    token = numpy_work.set(WORK[body])
    try:
        yield
    finally:
        numpy_work.reset(token)


def compiled(work: float, times: float = 1.0) -> bool:
    """Whether the compiled version runs for this many elementary operations.

    For a numpy version that is nearly as fast, the limit is `times` as many operations.
    """
    return work > numpy_work.get() * (times if numpy_work.get() > 0 else 1.0)


# -- machine code from earlier calls, looked for without importing numba (0.4 s) ---------------------------------------
VERSION = f"py{sys.version_info.major}{sys.version_info.minor}"  # part of the names of numba's files


def at_hand(module: str, kernel: str) -> bool:
    """Whether a kernel is compiled: in this process, or on disk by an earlier one."""
    loaded = getattr(sys.modules.get(module), kernel, None)
    return (loaded is not None and loaded.loaded) or on_disk(module, kernel, os.environ.get("NUMBA_CACHE_DIR"))


@cache  # the first answer stays right: a kernel that this process compiles later is loaded
def on_disk(module: str, kernel: str, folder: str | None) -> bool:
    """Whether numba has written a kernel to disk since its source was installed; `folder` is NUMBA_CACHE_DIR.

    A wrong answer costs time only: a compilation, or the numpy version although the kernel is compiled.
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


# -- arguments of kernels ----------------------------------------------------------------------------------------------
class _WritableView:
    """Array interface of a read-only array that declares its memory writable."""

    def __init__(self, array: Array) -> None:
        self.__array_interface__ = {**array.__array_interface__, "data": (array.ctypes.data, False)}
        self.owner = array  # keeps the memory alive


def readable(array: Array, dtype: DTypeLike | None = None) -> Array:
    """Return a plain, C-ordered, aligned array; copied only if `array` is not one.

    numba compiles a kernel a second time if an argument is read-only, such as a memory map. Therefore a read-only array
    is passed as a view that declares itself writable. Kernels never write to their inputs.
    """
    plain = np.require(array, dtype, ["C", "A"])
    if type(plain) is not np.ndarray:
        plain = plain.view(np.ndarray)
    if not plain.flags.writeable and plain.size:
        plain = np.asarray(_WritableView(plain))
    return plain


def readable_csr(data: Array, indices: Array, indptr: Array) -> tuple[Array, Array, Array]:
    """Return the arrays of sparse rows as `readable` does, in types that kernels read."""
    return (
        readable(data, None if data.dtype in (np.float64, np.float32, np.int64, np.int32) else np.float64),
        readable(indices, None if indices.dtype in (np.int32, np.int64) else np.int64),
        readable(indptr, np.int64),
    )


def readable_floats(*arrays: Array) -> list[Array]:
    """Return each array as `readable` does, in float64."""
    return [readable(array, np.float64) for array in arrays]


def row_blocks(X: Array, chunk: slice, native: tuple[str, ...], otherwise: DTypeLike) -> Iterator[tuple[slice, Array]]:
    """Yield blocks of a chunk of rows that a kernel can read, with their positions: one if X is native and C-ordered.

    Any other array is converted block by block, so that a Fortran-ordered table is never copied as a whole.
    """
    X = np.asarray(X)
    dtype = X.dtype if X.dtype.name in native and X.dtype.isnative else np.dtype(otherwise)
    if X.dtype == dtype and X.flags.c_contiguous and X.flags.aligned:
        yield chunk, readable(X[chunk])
        return
    for start in range(chunk.start, chunk.stop, CONVERTED_ROWS):
        rows = slice(start, min(start + CONVERTED_ROWS, chunk.stop))
        yield rows, readable(X[rows], dtype)


def row_weights(weight: Array | None) -> Array | None:
    """Return weights as float64, or None."""
    return None if weight is None else readable(weight, np.float64)


_UNWEIGHTED = np.empty(0)


def weights_or_empty(weight: Array | None, rows: slice = slice(None)) -> Array:
    """Return the weights of some rows. An empty array stands for None, so that kernels are compiled once for both."""
    return _UNWEIGHTED if weight is None else weight[rows]


# -- what several numpy versions share ---------------------------------------------------------------------------------
quiet = np.errstate(invalid="ignore", over="ignore", divide="ignore")  # NaN and inf propagate without warnings


# -- threads of BLAS ---------------------------------------------------------------------------------------------------
# Blocks with this many columns or more gain from as many BLAS threads as the user allows; narrower ones are faster with
# one thread, and leave the other cores to other work.
WIDE = 256


@cache  # a new controller takes milliseconds
def _libraries() -> list[Any]:
    """Return the controllers of the BLAS libraries in this process."""
    # scipy loads a BLAS of its own, and a controller knows only the libraries that were loaded before it was made.
    import scipy.linalg  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas").lib_controllers


class _OneThread(ContextDecorator):
    """Keeps BLAS at one thread while at least one context is open, in any thread: the number holds for the process."""

    def __init__(self) -> None:
        self.forget()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.restore)

    def forget(self) -> None:
        self.lock, self.open = Lock(), 0
        self.before: list[int | None] = []  # numbers of threads outside of the contexts

    def restore(self) -> None:
        """Leave all contexts: those of other threads do not exist in a forked process."""
        self._set(self.before)
        self.forget()

    def __enter__(self) -> None:
        with self.lock:
            self.open += 1
            try:
                if self.open == 1:
                    self.before = [library.num_threads for library in _libraries()]
                    self._set([1] * len(self.before))
            except BaseException:  # an interruption: the context is not entered
                self.open -= 1
                raise

    def __exit__(self, *problem: object) -> None:
        with self.lock:
            self.open -= 1
            if not self.open:
                before, self.before = self.before, []
                self._set(before)

    @staticmethod
    def _set(numbers: Sequence[int | None]) -> None:
        for library, number in zip(_libraries() if numbers else [], numbers):
            if number is not None and number != library.num_threads:
                library.set_num_threads(number)
                # threadpoolctl lets one thread alone change the number until this is called
                getattr(library, "clear_controlling_thread", lambda: None)()


_one_thread = _OneThread()


def one_thread(columns: int) -> AbstractContextManager[Any]:
    """Limit BLAS to one thread inside the context if the blocks are narrow."""
    return nullcontext() if columns >= WIDE else _one_thread


def with_one_thread(function: F) -> F:
    """Limit BLAS to one thread during calls of a function.

    Between calls of BLAS, its threads wait in a loop that takes a core each. Where small products alternate with other
    work, they cost several times the time of the products.
    """
    return _one_thread(function)


def limited_blas(usual: int) -> int | None:
    """Return the number of BLAS threads outside of `one_thread` if it is below the usual one, else None."""
    with _one_thread.lock:
        numbers = _one_thread.before or [library.num_threads for library in _libraries()]
    least = min((number for number in numbers if number is not None), default=usual)
    return least if least < usual else None
