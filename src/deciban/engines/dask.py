"""The engine of Dask: tasks on a cluster, or on Dask's scheduler in this process.

    pip install 'deciban[dask]'

Tasks are keyed by run and fragment. If a worker dies, Dask runs its tasks again elsewhere; a task is a pure function of
its fragment, so the result is the same.
"""

from __future__ import annotations

import logging
import os
import pkgutil
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import cycle, islice, repeat
from math import ceil
from operator import itemgetter
from typing import Any
from uuid import uuid4

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
from dask import delayed
from dask.delayed import Delayed
from pandas.api.types import is_numeric_dtype

import deciban
from deciban.engines.plan import FAN_IN, Tree, check_label, exchanged, fit, fit_files, grown, over_parts, tree
from deciban.engines.tasks import Addition, Items, Passes, Task, Work, columns_of
from deciban.errors import HERE, DecibanError, EngineError, InputError
from deciban.model.fit import Request
from deciban.model.predictor import Predictor
from deciban.read.batches import Rows
from deciban.read.files import check_columns
from deciban.read.source import Source
from deciban.read.tables import HEAD
from deciban.terminal import progress_bar

CONNECT = 10.0  # seconds within which a scheduler must answer
WINDOW = 3  # tasks that wait on the cluster, for each thread of its workers
QUEUED = 2  # tasks of a group for each thread above which Dask gives them to free workers, by its own rule
KEPT_BYTES = 2**26  # freed memory that a worker process keeps, and the largest array that uses it
BLOCK = FAN_IN**2  # fragments of a branch of the tree, whose tasks are submitted together
ROUNDS = 8  # least number of tasks for each thread if a task sums several fragments


class DaskEngine:
    """Runs the plan of a fit on a Dask cluster; without a client, by Dask's own scheduler in this process.

    Parameters
    ----------
    client : distributed.Client, optional
        The cluster.
    quiet : bool, default=False
        Whether no progress bar is shown.
    """

    def __init__(self, client: Any = None, quiet: bool = False) -> None:
        self.client, self.quiet = client, quiet
        if client is not None:
            check_workers(client)

    @classmethod
    @contextmanager
    def opened(cls, address: str) -> Iterator[DaskEngine]:
        """Connect to the scheduler at an address; without one, start processes on this machine."""
        from distributed import Client

        if address:
            try:
                client = Client(f"tcp://{address}", timeout=CONNECT, set_as_default=False)
            except OSError as error:
                raise EngineError(
                    f"no Dask scheduler answers at {address} ({type(error).__name__}).",
                    remedy="Start one: dask scheduler; and workers: dask worker tcp://HOST:8786.",
                ) from None
            with client:
                yield cls(client)
            return
        with workers_here() as client:
            yield cls(client)

    @classmethod
    def of_frame(cls, X: Any) -> DaskEngine:
        """Return the engine of a Dask frame or series: the cluster of the current client, if there is one."""
        if not isinstance(X, dd.DataFrame | dd.Series):
            raise InputError(f"rows of Dask must be a DataFrame, not a {type(X).__name__}.", remedy="Give a frame.")
        try:
            from distributed import get_client

            return cls(get_client())
        except (ImportError, ValueError):
            return cls()  # there is no client

    # -- methods that a classifier calls ---------------------------------------------------------------------------
    def fit(self, request: Request, X: Any, y: Any, sample_weight: Any) -> tuple[Predictor, Rows] | None:
        """Fit a model to a Dask frame or to files; None for files that are one fragment."""
        label = check_label(y, sample_weight)
        if isinstance(X, dd.Series):
            raise InputError("rows of Dask must be a DataFrame, not a Series.", remedy="Give a frame.")
        if isinstance(X, dd.DataFrame):
            return fit(request, Partitions(X, label, self), self)
        return fit_files(request, X, label, self)

    def over_parts(self, work: Work, source: Source) -> Iterator[Any] | None:
        """Return `work(part, task)` of each part of files, in order; None for files that are one fragment."""
        return over_parts(work, source, self, self.quiet)

    def answers(self, clf: Any, method: str, X: Any, options: dict[str, Any]) -> Any:
        """Return the answers to the rows of a Dask frame, as a frame or a series of Dask with the index of the rows."""
        classes = clf.classes_
        if method == "predict" or (method == "decision_function" and len(classes) == 2):
            kind = classes.dtype if method == "predict" else np.dtype(float)
            meta: Any = pd.Series(np.zeros(0, kind), name="prediction" if method == "predict" else method)
        else:
            meta = pd.DataFrame({name: np.zeros(0) for name in classes.tolist()})
        shared = delayed(clf, name=f"deciban-model-{uuid4().hex}", traverse=False)
        return X.map_partitions(_answers, shared, method, options, meta, meta=meta, enforce_metadata=False)

    # -- tasks -----------------------------------------------------------------------------------------------------
    def total(self, work: Work, items: Items, addition: Addition) -> Iterator[Any]:
        """Yield the sum of all items, for each part; a cluster sends one at a time.

        The tasks of a few blocks are submitted at a time. The sum of a block is a branch of the tree. It is sent to
        this process, which adds the branches, and the cluster releases the tasks. Sums in several parts are large: they
        stay on the workers and are added there.
        """
        if self.client is None:
            yield from exchanged(grown(self._blocks_here(work, items, addition), addition.add), addition)
        elif addition.parts == 1:
            blocks = self._blocks(work, items, addition)
            yield from grown(([self._fetched(each) for each in sums] for sums in blocks), addition.add)
        else:
            yield from self._ranges(grown(self._blocks(work, items, addition), self._adder(addition)), addition)

    def _blocks_here(self, work: Work, items: Items, addition: Addition) -> Iterator[Sequence[Any]]:
        """Yield the sums of each block, one for each part; without a client."""
        run = uuid4().hex
        shared = _shared(work, addition, run)
        for some in _in_blocks(items):
            with self._translated([task for _, task in some]):
                found = dask.compute(*_branches([_leaf(shared, *item, run) for item in some], addition))
            yield found

    def _blocks(self, work: Work, items: Items, addition: Addition) -> Iterator[list[Delayed]]:
        """Yield references to the sums of each block on the cluster, when all its fragments are done.

        A bar shows how many fragments are done; the first error ends the work. This process holds no reference to a
        finished task, so that the cluster releases its sums as soon as they are added.
        """
        from distributed import as_completed

        run, count = uuid4().hex, 0
        threads = self._threads()
        size = self._fragments_of_a_task(items, addition, sum(threads.values()))
        contexts = _contexts(ceil(len(items) / size), threads)
        shared = self._computed([_shared(work, addition, run)])[0]
        ahead = 1 + ceil(WINDOW * sum(threads.values()) * size / BLOCK)  # blocks on the cluster at the same time
        blocks = _in_blocks(items)
        waiting: deque[tuple[list[Delayed], set[Any]]] = deque()  # sums of blocks, and keys of tasks that are not done
        given: dict[Any, list[Task]] = {}
        fragments = sum(task.place >= 0 for _, task in items)  # the first rows are summed already
        tasks = as_completed(loop=self.client.loop)
        try:
            with progress_bar(None if self.quiet else "fragments", fragments) as update:
                while True:
                    made: list[tuple[list[Delayed], list[Delayed]]] = []
                    for some in islice(blocks, ahead - len(waiting)):
                        leaves = []
                        for part in (some[at : at + size] for at in range(0, len(some), size)):
                            with next(contexts):
                                leaves.append(_neighbours(shared, part, addition, run))
                            given[leaves[-1].key] = [task for _, task in part]
                        made.append((_branches(leaves, addition), leaves))
                    if made:
                        started = iter(self._computed([each for sums, leaves in made for each in (*sums, *leaves)]))
                        for sums, leaves in made:
                            waiting.append((list(islice(started, len(sums))), {leaf.key for leaf in leaves}))
                            tasks.update(_futures(list(islice(started, len(leaves)))))
                        del sums, leaves, started
                    del made
                    if not waiting:
                        return
                    while waiting[0][1]:
                        future = next(tasks)
                        done = given.pop(future.key)
                        if future.status != "finished":
                            with self._translated(done):
                                future.result()
                        for _, left in waiting:
                            left.discard(future.key)
                        del future
                        count += sum(task.place >= 0 for task in done)
                        update(count, f"{count:,} of {fragments:,}")
                    yield waiting.popleft()[0]
        except (Exception, KeyboardInterrupt):
            self.client.cancel([*tasks.futures, *_futures([each for sums, _ in waiting for each in sums])])
            raise

    @staticmethod
    def _fragments_of_a_task(items: Items, addition: Addition, threads: int) -> int:
        """Return how many neighbours a task sums: a power of 2, so that additions are those of the tree.

        Each thread should have some tasks, so that all threads end at about the same time. A task of data that Dask
        computes, or of sums in several parts, has one fragment, because several would take too much memory.
        """
        if addition.parts > 1 or any(isinstance(data, Delayed) for data, _ in items):
            return 1
        most = max(1, len(items) // (ROUNDS * max(1, threads)))
        return min(FAN_IN, 1 << (most.bit_length() - 1))

    def _computed(self, values: Sequence[Delayed]) -> list[Delayed]:
        """Start to compute values on the cluster; return references to them."""
        with warnings.catch_warnings():
            # choices and sums of the first rows are part of the graph; scattered data are lost if their worker dies
            warnings.filterwarnings("ignore", message="Sending large graph")
            return self.client.persist(list(values))

    def _adder(self, addition: Addition) -> Callable[[Sequence[Delayed]], Delayed]:
        """Return an addition that leaves the sum on the cluster."""

        def add(group: Sequence[Delayed]) -> Delayed:
            return self._computed([_added(group, addition)])[0]

        return add

    def _ranges(self, sums: list[Delayed], addition: Addition) -> Iterator[Any]:
        """Yield the sums of all parts, put in order by ranges; workers compute few ranges ahead."""
        run = uuid4().hex
        cuts = _on_worker(addition.cuts, f"deciban-cuts-{run}", sums[0])
        split = [_on_worker(addition.split, (f"deciban-split-{run}", at), each, cuts) for at, each in enumerate(sums)]
        sums.clear()
        split = self._computed(split)
        waiting: deque[Delayed] = deque()
        workers = len(self._threads())
        for at in range(addition.parts):
            pieces = [_part(each, at) for each in split]
            waiting += self._computed([_on_worker(addition.join, f"deciban-join-{run}-{at}", pieces)])
            if len(waiting) > workers:
                yield self._fetched(waiting.popleft())
        del split, pieces
        while waiting:
            yield self._fetched(waiting.popleft())

    def _threads(self) -> dict[str, int]:
        """Return the number of threads of each worker."""
        workers = self.client.scheduler_info(n_workers=-1)["workers"]
        return {address: about["nthreads"] for address, about in workers.items()}

    def _fetched(self, total: Delayed) -> Any:
        """Return a value of the cluster. It is sent through the scheduler, whose process may keep a copy."""
        with self._translated([Task(-1, "the sums of all fragments")]):
            return self.client.gather(_futures([total])[0])

    def each(self, work: Work, items: Items) -> Iterator[Any]:
        """Yield the values in order; a few are computed ahead."""
        run = uuid4().hex
        shared, threads = self._work(work, run)
        ahead = 1 if self.client is None else max(1, WINDOW * sum(threads.values()))
        leaves = self._leaves(shared, items, run, threads)
        waiting: deque[tuple[Any, Task]] = deque()
        while True:
            some = list(islice(leaves, ahead - len(waiting)))
            waiting.extend(some if self.client is None or not some else self._started(some))
            if not waiting:
                return
            yield self._result(*waiting.popleft())

    def keep(self, work: Work, items: Items) -> list[tuple[Any, Task]]:
        """Compute values that stay on the workers; those of a worker that dies are computed again."""
        run = uuid4().hex
        shared, threads = self._work(work, run)
        leaves = [leaf for leaf, _ in self._leaves(shared, items, run, threads)]
        with self._translated([task for _, task in items]):
            made = dask.persist(*leaves) if self.client is None else self._computed(leaves)
        return [(leaf, task) for leaf, (_, task) in zip(made, items)]

    def _work(self, work: Work, run: str) -> tuple[Delayed, dict[str, int]]:
        """Return the work that tasks share, sent to the cluster before them, and the threads of its workers."""
        shared = delayed(work, name=f"deciban-work-{run}", traverse=False)
        return (shared, {}) if self.client is None else (self._computed([shared])[0], self._threads())

    def _leaves(
        self, shared: Delayed, items: Items, run: str, threads: dict[str, int]
    ) -> Iterator[tuple[Delayed, Task]]:
        """Yield the task of each fragment for Dask, and for this program."""
        for (data, task), context in zip(items, _contexts(len(items), threads)):
            with context:
                leaf = _leaf(shared, data, task, run)
            yield leaf, task

    def _started(self, leaves: Sequence[tuple[Delayed, Task]]) -> Iterator[tuple[Any, Task]]:
        """Let the cluster compute tasks; return their futures."""
        return zip(self.client.compute([leaf for leaf, _ in leaves]), [task for _, task in leaves])

    def passes(self, X: Any) -> tuple[Any, Passes]:
        """Return the first rows of a frame, or documents of a series, and passes over all of its partitions."""
        if not isinstance(X, dd.DataFrame | dd.Series):
            raise InputError(f"rows of Dask must be a DataFrame or a Series, not a {type(X).__name__}.")
        given = Partitions(X, "", self)
        return given.first.iloc[:HEAD], Passes(self, given.items(0))

    def _result(self, found: Any, task: Task) -> Any:
        with self._translated([task]):
            return dask.compute(found)[0] if self.client is None else found.result()

    @contextmanager
    def _translated(self, tasks: Sequence[Task]) -> Iterator[None]:
        """Context in which errors of workers name the fragment."""
        try:
            yield
        except DecibanError:
            raise
        except Exception as error:
            raise _failed(error, tasks) from error


def _in_blocks(items: Items) -> Iterator[Items]:
    return (items[at : at + BLOCK] for at in range(0, len(items), BLOCK))


@dataclass(frozen=True, eq=False)
class _Fragment:
    """The task of a fragment; an opaque object, so that Dask does not search it for collections."""

    given: Any
    task: Task

    def __call__(self, work: Work, data: Any = None) -> Any:
        try:
            return work(self.given if data is None else data, self.task)
        except DecibanError:
            raise
        except Exception as error:
            raise _failed(error, [self.task]) from error


def _on_worker(work: Callable[..., Any], key: str | tuple[str, int], *given: Any) -> Delayed:
    """Return a task with a key; keys that are a name and a number are one group of tasks for Dask."""
    return delayed(work, name=f"{key}-work", traverse=False)(*given, dask_key_name=key)


def _contexts(tasks: int, threads: dict[str, int]) -> Iterator[AbstractContextManager[Any]]:
    """Yield the context in which each task of fragments is made, so that all workers take part.

    Dask gives a task to the next free worker if its group has many tasks and depends on few others; keys of other
    tasks must not belong to that group. If tasks are few, Dask would give all of them to the worker that holds what
    they share: they are assigned to the workers in turn, and Dask may move them.
    """
    if not threads or tasks > QUEUED * sum(threads.values()):
        return repeat(nullcontext())
    turns = cycle([address for most in range(max(threads.values())) for address in threads if threads[address] > most])
    return (dask.annotate(workers=[address], allow_other_workers=True) for address in turns)


def _leaf(shared: Delayed, data: Any, task: Task, run: str) -> Delayed:
    """Return the task of a fragment, keyed by run and fragment; data that are a Delayed are computed by Dask."""
    remote = isinstance(data, Delayed)
    work = _Fragment(None if remote else data, task)
    return _on_worker(work, (f"deciban-sums-{run}", task.place), shared, *([data] if remote else []))


def _neighbours(shared: Delayed, items: Items, addition: Addition, run: str) -> Delayed:
    """Return the task of neighbouring fragments, which adds their sums."""
    if len(items) == 1:
        return _leaf(shared, *items[0], run)
    work = _Neighbours([_Fragment(data, task) for data, task in items], addition)
    return _on_worker(work, (f"deciban-sums-{run}", items[0][1].place), shared)


@dataclass(frozen=True, eq=False)
class _Neighbours:
    """The task of neighbouring fragments: their sums, added as by the tree."""

    fragments: Sequence[_Fragment]
    addition: Addition

    def __call__(self, work: Work) -> Any:
        growing = Tree(self.addition.add, 2)
        for fragment in self.fragments:
            growing.put(fragment(work))
        return growing.total()


@dataclass(frozen=True, eq=False)
class _OnePart:
    """Work whose values have one part: returns that part, so that no further task takes it out of the list."""

    work: Work

    def __call__(self, data: Any, task: Task) -> Any:
        return self.work(data, task)[0]


def _shared(work: Work, addition: Addition, run: str) -> Delayed:
    """Return the work of all fragments of a sum, which is sent once to each worker."""
    return delayed(work if addition.parts > 1 else _OnePart(work), name=f"deciban-work-{run}", traverse=False)


def _branches(leaves: Sequence[Delayed], addition: Addition) -> list[Delayed]:
    """Return the sums of a block, one for each part."""
    add = partial(_added, addition=addition)
    if addition.parts == 1:
        return [tree(leaves, add)]
    return [tree((_part(leaf, part) for leaf in leaves), add) for part in range(addition.parts)]


def _added(group: Sequence[Delayed], addition: Addition) -> Delayed:
    return _on_worker(addition.add, f"deciban-tree-{uuid4().hex}", list(group))


def _futures(values: Sequence[Delayed]) -> list[Any]:
    """Return the futures of values that the cluster computes."""
    from distributed import futures_of

    return futures_of(list(values))


def _part(leaf: Delayed, part: int) -> Delayed:
    run, place = leaf.key
    return delayed(itemgetter(part))(leaf, dask_key_name=(f"{run}-part-{part}", place))


def _answers(frame: pd.DataFrame, clf: Any, method: str, options: dict[str, Any], meta: Any) -> Any:
    """Return the answers to one partition."""
    if not len(frame):
        return meta
    found = getattr(clf, method)(frame, **options)
    if found.ndim == 1:
        return pd.Series(found, index=frame.index, name=meta.name)
    return pd.DataFrame(found, index=frame.index, columns=meta.columns)


@contextmanager
def workers_here(number: int | None = None) -> Iterator[Any]:
    """Context of a client of processes on this machine, each with one thread; by default, as many as it has cores."""
    from distributed import Client, LocalCluster

    settings = {
        # the profiler of a worker records its stack every second for an hour: 300 MB for deep stacks
        "distributed.worker.profile.enabled": False,
        # each process would check its event loop 50 times a second: half of the CPU time of an idle cluster
        "distributed.admin.tick.interval": "1s",
        # with Dask's setting, the system allocates and clears pages for arrays of 128 kB and more in each task
        "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": KEPT_BYTES,
        "distributed.nanny.pre-spawn-environ.MALLOC_MMAP_THRESHOLD_": KEPT_BYTES,
    }
    before = dict(os.environ)
    with (
        dask.config.set(settings),
        # otherwise workers log closed connections as errors when the cluster ends, also by Ctrl-C
        LocalCluster(
            n_workers=number, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.CRITICAL
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        # Dask leaves variables of workers, such as OMP_NUM_THREADS=1, in this process
        for name in dask.config.get("distributed.nanny.pre-spawn-environ"):
            os.environ.pop(name, None)
            os.environ.update({name: before[name]} if name in before else {})
        yield client


# -- partitions --------------------------------------------------------------------------------------------------------
class Partitions:
    """A Dask frame as the input of a plan."""

    def __init__(self, frame: Any, label: str, engine: DaskEngine) -> None:
        self.frame, self.label, self.engine = frame, label, engine
        self.parts: list[Delayed] = list(frame.to_delayed())
        self.sizes: list[int] = []  # rows of the partitions that were counted
        self.first = self._first()

    def _first(self) -> pd.DataFrame:
        """Return the first rows of the frame: at most one more than those from which choices are made."""
        found: list[pd.DataFrame] = []
        left, step = HEAD + 1, 1
        while left > 0 and len(self.sizes) < len(self.parts):
            at = len(self.sizes)
            items = [(part, Task(at + i, _name(at + i))) for i, part in enumerate(self.parts[at : at + step])]
            for rows, head in self.engine.each(_Head(left), items):
                if rows and left > 0:
                    found.append(head.iloc[:left])
                    _check_alike(found[0], found[-1], _name(len(self.sizes)))
                    left -= len(found[-1])
                self.sizes.append(rows)
                empty = head.iloc[:0]
            step *= 2
        return pd.concat(found, ignore_index=True) if found else empty

    def items(self, read: int) -> list[tuple[Delayed, Task]]:
        """Return the partitions, with the rows to skip."""
        starts = np.cumsum([0, *self.sizes]).tolist()
        skips = [max(0, read - start) for start in starts[:-1]] + [0] * (len(self.parts) - len(self.sizes))
        return [(part, Task(at, _name(at), skip)) for at, (part, skip) in enumerate(zip(self.parts, skips))]

    def rows(self) -> list[int] | None:
        """Return the rows of each partition; None before all were counted."""
        return self.sizes if len(self.sizes) == len(self.parts) else None


def _check_alike(first: Any, other: Any, name: str) -> None:
    """Refuse a partition with other columns than the first, or with texts instead of numbers or the reverse."""
    if isinstance(first, pd.Series):
        return
    check_columns(columns_of(other), columns_of(first), name, "the first partition")
    for column, kind in other.dtypes.items():
        wanted = first.dtypes[column]
        unknown = first[column].isna().all() or other[column].isna().all()
        if is_numeric_dtype(kind) != is_numeric_dtype(wanted) and not unknown:
            raise InputError(
                HERE,
                f": column {str(column)!r} is of type {kind} here and of type {wanted} in the first partition.",
                place=name,
                columns=[column],
                remedy="Give the same types in all partitions.",
            )


class _Head:
    """The work of the first step: the number of rows of a partition, and the first of them."""

    def __init__(self, rows: int) -> None:
        self.rows = rows

    def __call__(self, data: pd.DataFrame, task: Task) -> tuple[int, pd.DataFrame]:
        return len(data), data.iloc[: self.rows]


def _name(index: int) -> str:
    return f"partition {index}"


# -- errors of a cluster -----------------------------------------------------------------------------------------------
def check_workers(client: Any) -> None:
    """Refuse a cluster without workers, or one of whose workers has another version of deciban or none."""
    versions = client.run(pkgutil.resolve_name, "deciban:__version__", on_error="return")
    if not versions:
        raise EngineError(
            "the Dask cluster has no workers.", remedy="Start some: dask worker tcp://HOST:8786, or cluster.scale(2)."
        )
    for worker, version in versions.items():
        if isinstance(version, BaseException):
            raise EngineError(
                f"the worker {worker} cannot import deciban ({type(version).__name__}: {version}).",
                remedy=f"Install deciban {deciban.__version__} on all workers.",
            )
        if version != deciban.__version__:
            raise EngineError(
                f"the worker {worker} has deciban {version}, and this program has {deciban.__version__}.",
                remedy="Install the same version on all machines.",
            )


def _failed(error: Exception, tasks: Sequence[Task]) -> EngineError:
    """Return the error of a task that failed on a worker."""
    name = tasks[0].name if len(tasks) == 1 else "the fragments"
    kind = type(error).__name__
    if kind == "KilledWorker":
        return EngineError(
            f"{name}: every worker that took it died. No model was made.",
            remedy="Look at the logs of the workers; the usual cause is too little memory: use smaller fragments.",
        )
    return EngineError(f"{name}: a worker failed ({kind}: {str(error)[:300]}). No model was made.")
