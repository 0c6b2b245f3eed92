"""Threads: rows in chunks, on one pool of threads for the whole process.

Work is cut into chunks whose limits depend on the data alone, and partial sums are added in the order of the chunks.
So a result is the same to the bit for any number of threads. Chunks run kernels and numpy calls, which release the
interpreter lock; BLAS uses one thread inside a chunk. The caller computes chunks too; callers in several threads share
the other threads, and wait for none of them. Calls made by a chunk run in its thread.

How many threads there are is decided at every call, by the first of these that applies:

- in a chunk, in a worker of joblib, in a task of Dask: one;
- `set_threads`, else the environment variable DECIBAN_NUM_THREADS;
- in a process made by `multiprocessing`: one;
- OMP_NUM_THREADS, if it is below the number of cores; the cores that this process may use.

A limit that threadpoolctl has set for BLAS is an upper bound of the second and of the last.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, nullcontext, suppress
from contextvars import ContextVar, copy_context
from functools import cache
from itertools import count, pairwise
from pathlib import Path
from threading import Condition, Lock
from typing import Generic, TypeVar

import numpy as np

from deciban.errors import HyperparameterError
from deciban.kernels.choice import Array, limited_blas, one_thread

Task = TypeVar("Task")
Result = TypeVar("Result")

VARIABLE = "DECIBAN_NUM_THREADS"

# Elementary operations of a chunk, of about a quarter of a nanosecond each: 2 ms. Starting a chunk takes 0.03 ms.
CHUNK_WORK = 2**23
SUM_WORK = 64  # elementary operations of a chunk for each number of its partial sums, which have to be added


# -- number of threads -------------------------------------------------------------------------------------------------
class _Setting:
    """The number that `set_threads` was given."""

    threads: int | None = None


_setting = _Setting()
_inside: ContextVar[bool] = ContextVar("inside a chunk", default=False)


def set_threads(n: int | None) -> None:
    """Set how many threads long computations use, in this process.

    Results are the same to the bit for any number. Tables of fewer than about 10,000 rows are computed in one thread.

    Parameters
    ----------
    n : int or None
        Number of threads, at least 1. None returns to the default: the environment variable DECIBAN_NUM_THREADS, or the
        number of cores that the process may use.

    See Also
    --------
    get_threads : The number in use.

    Examples
    --------
    >>> import deciban
    >>> deciban.set_threads(2)
    >>> deciban.get_threads()
    2
    >>> deciban.set_threads(None)
    """
    _setting.threads = None if n is None else _checked(n, f"set_threads({n!r})")


def get_threads() -> int:
    """Return how many threads a long computation uses if it starts here and now.

    One in a worker of joblib, in a task of Dask, and in a process made by `multiprocessing`, unless `set_threads` or
    DECIBAN_NUM_THREADS say otherwise for the latter; at most as many as threadpoolctl allows BLAS.

    Returns
    -------
    int
        Number of threads.

    See Also
    --------
    set_threads : Sets the number.

    Examples
    --------
    >>> import deciban
    >>> deciban.get_threads() >= 1
    True
    """
    if _inside.get() or _in_joblib() or _in_dask():
        return 1
    text = os.environ.get(VARIABLE, "")
    if _setting.threads is not None:
        wanted = _setting.threads
    elif text:
        wanted = _checked(text, f"the environment variable {VARIABLE}={text!r}")
    else:
        wanted = 1 if _is_child() else _usual(cores(), "OMP_NUM_THREADS")
    if wanted == 1 or "threadpoolctl" not in sys.modules:
        return wanted
    # BLAS has fewer threads than the environment gives it only if a limit was set in this process
    allowed = limited_blas(_usual(cores(), "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"))
    return wanted if allowed is None else min(wanted, allowed)


def _checked(value: object, what: str) -> int:
    try:
        n = int(value)  # type: ignore[call-overload]
    except (TypeError, ValueError):
        n = 0
    if n < 1 or (not isinstance(value, str) and n != value):
        raise HyperparameterError(f"{what} is not a number of threads. Use an integer from 1 on.")
    return n


def _usual(number: int, *variables: str) -> int:
    """Return the number, or the one in the first of these variables that is set, if that is less."""
    given = next((os.environ[name] for name in variables if os.environ.get(name)), "").split(",")[0].strip()
    return min(number, int(given)) if given.isdecimal() and int(given) else number


def cores() -> int:
    """Return the number of cores that this process may use: by its affinity, and by its quota of CPU time."""
    here = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(here, _quota() or here)


@cache
def _quota() -> int | None:
    """Return the CPU seconds per second that the control group of a container allows, rounded up; None without one."""
    folder = Path("/sys/fs/cgroup")
    try:
        if (folder / "cpu.max").exists():
            quota, period = (folder / "cpu.max").read_text().split()
        else:
            quota, period = ((folder / "cpu" / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
        return max(1, -(-int(quota) // int(period))) if int(quota) > 0 else None
    except (OSError, ValueError):
        return None  # no control groups, or no quota ("max")


def _is_child() -> bool:
    """Whether `multiprocessing` made this process, which then is one of several."""
    process = sys.modules.get("multiprocessing.process")
    return process is not None and process.parent_process() is not None


def _in_joblib() -> bool:
    parallel = sys.modules.get("joblib.parallel")
    return parallel is not None and bool(getattr(parallel.get_active_backend()[0], "nesting_level", 0))


def _in_dask() -> bool:
    worker = sys.modules.get("distributed.worker")
    return worker is not None and getattr(worker.thread_state, "key", None) is not None


# -- processors --------------------------------------------------------------------------------------------------------
@cache
def _asks_for_processor() -> Callable[[], int] | None:
    """Return the function of the C library that tells on which processor a thread runs; None where there is none."""
    import ctypes

    try:
        return ctypes.CDLL(None).sched_getcpu if hasattr(os, "sched_setaffinity") else None
    except (AttributeError, OSError, TypeError):  # another C library
        return None


class _Processors:
    """The processors that the caller may use, divided among the threads of a run.

    Linux in a virtual machine often wakes a thread on the processor of the thread that wakes it, although another one
    is idle; it then waits for some milliseconds. Threads wake each other several times in a millisecond, for the lock
    of the interpreter. So each thread keeps to processors of its own while it works (decision 0067).
    """

    def __init__(self, threads: int) -> None:
        asks = _asks_for_processor()
        self.allowed = set() if asks is None else os.sched_getaffinity(0)
        self.shares: list[set[int]] = []
        if asks is not None and len(self.allowed) >= threads:
            here = asks()
            order = sorted(self.allowed, key=lambda processor: (processor != here, processor))
            self.shares = [set(order[at::threads]) for at in range(threads)]

    def take(self, at: int) -> None:
        """Restrict the calling thread, number `at` of the run, to its share."""
        if self.shares:
            self._keep_to(self.shares[at % len(self.shares)])

    def give_back(self) -> None:
        """Let the calling thread use all processors that the caller could use before."""
        if self.shares:
            self._keep_to(self.allowed)

    @staticmethod
    def _keep_to(processors: set[int]) -> None:
        with suppress(OSError):  # the processors of the process have just been changed from outside
            os.sched_setaffinity(0, processors)


# -- the pool ----------------------------------------------------------------------------------------------------------
class _Helpers:
    """The threads of this process that help callers. A forked process starts its own."""

    MOST = 1024  # threads are started when they are needed, and kept

    def __init__(self) -> None:
        self.forget()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.forget)

    def forget(self) -> None:
        """Drop the threads, which a forked process does not have."""
        self.lock, self.busy = Lock(), 0
        self.executor: ThreadPoolExecutor | None = None

    def start(self, number: int, work: Callable[[], None]) -> list[Future[None]]:
        """Call `work` in as many threads, less those that help other callers."""
        futures = []
        with self.lock:
            if self.executor is None:
                self.executor = ThreadPoolExecutor(self.MOST, "deciban")
            for _ in range(max(0, number - self.busy)):
                try:
                    # the context holds the choice of kernels and numpy's handling of errors
                    futures.append(self.executor.submit(copy_context().run, work))
                except RuntimeError:  # the interpreter is shutting down
                    break
            self.busy += len(futures)
        return futures

    def end(self, futures: list[Future[None]]) -> None:
        """Wait for the end of the calls."""
        try:
            for future in futures:
                if not future.cancel():
                    future.result()
        finally:
            with self.lock:
                self.busy = max(0, self.busy - len(futures))


_helpers = _Helpers()


class _Run(Generic[Task, Result]):
    """Results of tasks in their order, computed by the caller and by helpers.

    At most `window` tasks are started whose results were not yielded yet: partial sums of large tables take memory.
    """

    def __init__(self, act: Callable[[Task], Result], tasks: Sequence[Task], threads: int) -> None:
        self.act, self.tasks, self.threads, self.window = act, tasks, threads, 2 * threads
        self.changed, self.processors, self.numbers = Condition(), _Processors(threads), count(1)
        self.started, self.yielded, self.end = 0, 0, len(tasks)  # numbers of tasks; no task is started from `end` on
        self.results: dict[int, Result] = {}
        self.error: BaseException | None = None  # of task `end`

    def _next(self) -> int | None:
        """Start the next task, if one may be started, and return its number; the caller holds the lock."""
        if self.started >= min(self.end, self.yielded + self.window):
            return None
        self.started += 1
        return self.started - 1

    def _compute(self, at: int) -> None:
        try:
            result = self.act(self.tasks[at])
        except BaseException as error:  # raised by the caller, in the order of the tasks
            with self.changed:
                if at < self.end:
                    self.end, self.error = at, error
                self.changed.notify_all()
        else:
            with self.changed:
                self.results[at] = result
                self.changed.notify_all()

    def help(self) -> None:
        """Compute results until all tasks are started."""
        _inside.set(True)
        self.processors.take(next(self.numbers))
        try:
            while True:
                with self.changed:
                    at = self._next()
                    while at is None and self.started < self.end:
                        self.changed.wait()
                        at = self._next()
                if at is None:
                    return
                self._compute(at)
        finally:
            self.processors.give_back()

    def __iter__(self) -> Iterator[Result]:
        helping = _helpers.start(self.threads - 1, self.help)
        try:
            self.processors.take(0)
            while self.yielded < self.end:
                with self.changed:
                    ready = self.yielded in self.results
                    at = None if ready else self._next()
                    if not ready and at is None:
                        self.changed.wait()
                        continue
                    if ready:
                        result = self.results.pop(self.yielded)
                        self.yielded += 1
                        self.changed.notify_all()
                if at is None:
                    self.processors.give_back()  # while the caller uses the result
                    yield result
                    self.processors.take(0)
                else:
                    token = _inside.set(True)
                    try:
                        self._compute(at)
                    finally:
                        _inside.reset(token)
            if self.error is not None:
                raise self.error
        finally:  # also after an error or Ctrl-C: no task may run when this call has ended
            with self.changed:
                self.end = min(self.end, self.started)
                self.changed.notify_all()
            self.processors.give_back()
            _helpers.end(helping)


def in_order(
    act: Callable[[Task], Result], tasks: Sequence[Task], *, threads: int | None = None, blas: bool = False
) -> Generator[Result, None, None]:
    """Yield the results of `each`; at most two of each thread are kept. Callers read all, or close the generator."""
    several = len(tasks) > 1
    most = 1 if not several or _inside.get() else min(get_threads() if threads is None else threads, len(tasks))
    with one_thread(0) if blas and several else nullcontext():
        yield from map(act, tasks) if most <= 1 else _Run(act, tasks, most)


def each(
    act: Callable[[Task], Result], tasks: Sequence[Task], *, threads: int | None = None, blas: bool = False
) -> list[Result]:
    """Return act(task) of each task, in order.

    Parameters
    ----------
    act : callable
        Called with each task, in several threads if there are several tasks. The first error, in the order of the
        tasks, is raised.
    tasks : sequence
        Tasks, which must not depend on the number of threads.
    threads : int, optional
        Number of threads; `get_threads()` if None.
    blas : bool, default=False
        Whether `act` calls BLAS, which then uses one thread.

    Returns
    -------
    list
        Results.

    Examples
    --------
    >>> each(lambda rows: rows.stop - rows.start, row_chunks(10_000, 4_096))
    [2048, 2048, 2048, 2048, 1808]
    """
    with closing(in_order(act, tasks, threads=threads, blas=blas)) as results:
        return list(results)


def added(act: Callable[[Task], tuple[Array, ...]], tasks: Sequence[Task], *, blas: bool = False) -> tuple[Array, ...]:
    """Return the sums of the arrays that act(task) returns, added in the order of the tasks; there is at least one.

    Parameters
    ----------
    act : callable
        Returns new arrays, of the same shapes for each task.
    tasks : sequence
        Tasks, which must not depend on the number of threads.
    blas : bool, default=False
        Whether `act` calls BLAS, which then uses one thread.

    Returns
    -------
    tuple of ndarray
        Sums.

    Examples
    --------
    >>> added(lambda rows: (np.arange(10_000)[rows].sum(keepdims=True),), row_chunks(10_000, 4_096))
    (array([49995000]),)
    """
    with closing(in_order(act, tasks, blas=blas)) as results:
        sums = next(results)
        for part in results:
            for total, more in zip(sums, part):
                total += more
    return sums


# -- chunks ------------------------------------------------------------------------------------------------------------
def row_chunks(n: int, work: float, sums: int = 0, multiple: int = 1) -> list[slice]:
    """Cut n rows into chunks; one without rows if n is 0.

    Parameters
    ----------
    n : int
        Number of rows.
    work : float
        Elementary operations of a row, about a quarter of a nanosecond each.
    sums : int, default=0
        Numbers of the partial sums of a chunk.
    multiple : int, default=1
        A chunk starts at a multiple of this many rows.

    Returns
    -------
    list of slice
        Consecutive rows.

    Examples
    --------
    >>> row_chunks(5_000, 4_096)
    [slice(0, 2048, None), slice(2048, 4096, None), slice(4096, 5000, None)]
    """
    rows = max(1, int(max(CHUNK_WORK, SUM_WORK * sums) / max(work, 1)) // multiple) * multiple
    return [slice(start, min(start + rows, n)) for start in range(0, max(n, 1), rows)]


def row_scores(act: Callable[[Array], Array], X: Array, K: int, work: float) -> Array:
    """Return act(X), shape (n, K), where each row of the result depends on its own row of X alone; in chunks.

    Parameters
    ----------
    act : callable
        Returns the scores of some rows.
    X : ndarray of shape (n, D)
        Rows.
    K : int
        Number of scores of a row.
    work : float
        Elementary operations of a row, about a quarter of a nanosecond each.

    Returns
    -------
    ndarray of shape (n, K)
        Scores.

    Examples
    --------
    >>> float(row_scores(lambda rows: rows.sum(axis=1, keepdims=True), np.ones((5_000, 2)), 1, 4_096).sum())
    10000.0
    """
    chunks = row_chunks(len(X), work)
    if len(chunks) == 1:
        return act(X)
    scores = np.empty((len(X), K))

    def score(rows: slice) -> None:
        scores[rows] = act(X[rows])

    each(score, chunks, blas=True)
    return scores


def entry_chunks(indptr: Array, work: float, sums: int = 0) -> list[slice]:
    """Cut the rows of a sparse matrix into chunks with about equal numbers of entries, of `work` operations each.

    Parameters
    ----------
    indptr : ndarray of shape (n + 1,)
        Limits of the rows.
    work : float
        Elementary operations of an entry.
    sums : int, default=0
        Numbers of the partial sums of a chunk.

    Returns
    -------
    list of slice
        Consecutive rows.

    Examples
    --------
    >>> entry_chunks(np.array([0, 2, 2, 4, 8, 9]), CHUNK_WORK / 4)
    [slice(0, 3, None), slice(3, 4, None), slice(4, 5, None)]
    """
    size = max(1, int(max(CHUNK_WORK, SUM_WORK * sums) / max(work, 1)))
    cuts = np.searchsorted(indptr, np.arange(indptr[0] + size, indptr[-1], size)).tolist()
    limits = sorted({0, *cuts, len(indptr) - 1})
    return [slice(begin, end) for begin, end in pairwise(limits)] or [slice(0, 0)]
