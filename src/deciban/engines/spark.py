"""The engine of Spark: partitions of a DataFrame, or files, as tasks of `mapInArrow`.

    pip install 'deciban[spark]'        and Java 17

Every task returns one row: its partition and the value of the work, or the error. Spark uses one result of each task,
also if the task ran twice. The tree of the plan adds the values in this process. A DataFrame must give the same rows in
the same partitions each time it is computed; cache a DataFrame that does not, for example after a shuffle.
"""

from __future__ import annotations

import pickle
import re
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BooleanType, DoubleType, LongType, StringType, StructField, StructType

from deciban.engines.plan import Serial, check_label, fit, fit_files, over_parts
from deciban.engines.tasks import Addition, Passes, Task, Work
from deciban.errors import DecibanError, EngineError, InputError, NotAvailableError
from deciban.model.fit import Request
from deciban.model.predictor import Predictor
from deciban.read.batches import Rows
from deciban.read.source import Source
from deciban.read.tables import HEAD
from deciban.terminal import watched

RESULT = "place long, value binary"
ANSWERS = {"b": BooleanType(), "i": LongType(), "u": LongType(), "f": DoubleType()}  # types of class labels


class Partition(NamedTuple):
    """Reference to the rows of a partition of a DataFrame."""

    place: int


class Kept:
    """Reference to values of tasks that executors keep in a DataFrame; freed with the last reference."""

    def __init__(self, values: DataFrame) -> None:
        self.values = values
        weakref.finalize(self, _free, values).atexit = False  # Spark frees all values when it ends


def _free(values: DataFrame) -> None:
    """Free values on the executors; nothing is left to free after the end of the session."""
    with suppress(Exception):  # of Java
        values.unpersist()


@dataclass(frozen=True, eq=False)
class _Tasks:
    """The function of a Spark task: the work of its partition, or of the fragment whose number the partition holds."""

    work: Work
    items: dict[int, tuple[Any, Task]]  # by partition; None in place of a value that is kept
    schema: pa.Schema  # schema of the partitions

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        place = TaskContext.get().partitionId()
        if place not in self.items:
            return
        data, task = self.items[place]
        try:
            if isinstance(data, Partition):
                data = pa.Table.from_batches(list(batches), self.schema)
            elif data is None:
                data = _kept(batches, task)
            found: Any = self.work(data, task)
        except DecibanError as error:
            found = error
        except Exception as error:  # its type may not exist in the other process
            what = f"{type(error).__name__}: {str(error)[:300]}"
            found = EngineError(f"{task.name}: a worker failed ({what}). No model was made.")
        yield pa.RecordBatch.from_pydict({"place": [place], "value": [pickle.dumps(found)]})


def _kept(batches: Iterable[pa.RecordBatch], task: Task) -> Any:
    """Return the value that is kept in a partition; raise the error that was found instead of it."""
    values = [value for batch in batches for value in batch.column("value")]
    if len(values) != 1:
        raise EngineError(f"{task.name}: Spark kept {len(values)} values instead of one. No model was made.")
    found = pickle.loads(values[0].as_py())
    if isinstance(found, DecibanError):
        raise found
    return found


class SparkEngine:
    """Runs the plan of a fit by Spark.

    Parameters
    ----------
    session : pyspark.sql.SparkSession
        The session.
    frame : pyspark.sql.DataFrame, optional
        Rows; without it, files are read.
    quiet : bool, default=False
        Whether no progress bar is shown.
    """

    def __init__(self, session: SparkSession, frame: DataFrame | None = None, quiet: bool = False) -> None:
        self.session, self.frame, self.quiet = session, frame, quiet

    @classmethod
    @contextmanager
    def opened(cls, address: str) -> Iterator[SparkEngine]:
        """Start a session on this machine, or at the address of a cluster's master, such as HOST:7077."""
        active = SparkSession.getActiveSession()
        builder = SparkSession.builder.appName("deciban").config("spark.ui.showConsoleProgress", "false")
        try:
            session = active or builder.master(f"spark://{address}" if address else "local[*]").getOrCreate()
        except Exception as error:
            raise EngineError(
                f"Spark does not start ({_reason(error)}).", remedy="Is Java 17 installed, and the address right?"
            ) from None
        try:
            yield cls(session)
        finally:
            if active is None:
                session.stop()

    @classmethod
    def of_frame(cls, X: Any) -> SparkEngine:
        """Return the engine of a DataFrame: its own session."""
        if not isinstance(X, DataFrame):
            raise InputError(f"rows of Spark must be a DataFrame, not a {type(X).__name__}.", remedy="Give a frame.")
        return cls(X.sparkSession, X)

    # -- methods that a classifier calls ---------------------------------------------------------------------------
    def fit(self, request: Request, X: Any, y: Any, sample_weight: Any) -> tuple[Predictor, Rows] | None:
        """Fit a model to a DataFrame or to files; None for files that are one fragment."""
        label = check_label(y, sample_weight)
        if isinstance(X, DataFrame):
            return fit(request, Partitions(label, self), self)
        return fit_files(request, X, label, self)

    def over_parts(self, work: Work, source: Source) -> Iterator[Any] | None:
        """Return `work(part, task)` of each part of files, in order; None for files that are one fragment."""
        return over_parts(work, source, self)  # without a bar: all values come at once, and `_values` has one

    def answers(self, clf: Any, method: str, X: Any, options: dict[str, Any]) -> Any:
        """Return the DataFrame with the answers added as columns."""
        classes = clf.classes_
        if method not in ("predict", "predict_proba"):
            raise NotAvailableError(f"{method} does not answer a Spark DataFrame.", remedy="Use predict_proba.")
        if method == "predict":
            added = {"prediction": ANSWERS.get(classes.dtype.kind, StringType())}
        else:
            added = {f"P({each})": DoubleType() for each in classes.tolist()}
        kept = [field for field in X.schema.fields if field.name not in added]
        schema = StructType([*kept, *(StructField(label, kind) for label, kind in added.items())])
        names = [field.name for field in kept]

        def answered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                table = pa.Table.from_batches([batch]).select(names)
                values = getattr(clf, method)(table, **options).reshape(len(table), -1)
                for label, column in zip(added, values.T):
                    table = table.append_column(label, pa.array(column.tolist()))
                yield from table.to_batches()

        return X.mapInArrow(answered, schema)

    def passes(self, X: Any) -> tuple[Any, Passes]:
        """Return the first rows of the DataFrame, and passes over all of its partitions."""
        given = Partitions("", self)
        return given.first.slice(0, HEAD), Passes(self, given.items(0))

    # -- tasks -----------------------------------------------------------------------------------------------------
    def total(self, work: Work, items: Sequence[tuple[Any, Task]], addition: Addition) -> Iterator[Any]:
        """Return the sum of all items, for each part; this process adds."""
        here = {task.place: work(data, task) for data, task in items if task.place < 0}  # sums of the first rows
        there = self._values(work, [item for item in items if item[1].place >= 0])
        found = here | there
        return Serial().total(lambda data, task: found[task.place], items, addition)

    def each(self, work: Work, items: Sequence[tuple[Any, Task]]) -> Iterator[Any]:
        """Return the values in order."""
        found = self._values(work, items)
        return (found[task.place] for _, task in items)

    def keep(self, work: Work, items: Sequence[tuple[Any, Task]]) -> list[tuple[Kept, Task]]:
        """Compute values that executors keep, on disk where memory is short; those that are lost are computed again."""
        kept = Kept(self._mapped(work, items)[0].persist())
        return [(kept, task) for _, task in items]

    def _mapped(self, work: Work, items: Sequence[tuple[Any, Task]]) -> tuple[DataFrame, dict[int, Task]]:
        """Return a DataFrame whose partitions have the value of one item each, and the tasks by partition."""
        data = items[0][0]
        schema = pa.schema([])
        by_place = {task.place: (data, task) for data, task in items}
        if isinstance(data, Kept):
            frame, by_place = data.values, {place: (None, task) for place, (_, task) in by_place.items()}
        elif isinstance(data, Partition):
            assert self.frame is not None
            frame, schema = self.frame, _schema(self.frame)
        else:
            frame, by_place = self.session.range(0, len(items), 1, len(items)), dict(enumerate(items))
        made = frame.mapInArrow(_Tasks(work, by_place, schema), RESULT)
        return made, {place: task for place, (_, task) in by_place.items()}

    def _values(self, work: Work, items: Sequence[tuple[Any, Task]]) -> dict[int, Any]:
        """Return the values of all items by their places; the first error, in the order of the items, is raised."""
        if not items:
            return {}
        tasks: dict[int, Task] = {}
        try:
            made, tasks = self._mapped(work, items)
            with watched(None if self.quiet else "tasks of Spark", len(items), self._completed):
                rows = made.collect()
        except Exception as error:  # of Spark, of Java, or of pickle
            raise _failed(error, tasks) from error
        found = {tasks[row["place"]].place: pickle.loads(row["value"]) for row in rows}
        for _, task in items:
            if isinstance(found.get(task.place), DecibanError):
                raise found[task.place]
            if task.place not in found:
                raise EngineError(f"{task.name}: Spark returned nothing for it. No model was made.")
        return found

    def _completed(self) -> int:
        """Return how many tasks of the jobs that run now are done."""
        tracker = self.session.sparkContext.statusTracker()
        jobs = filter(None, map(tracker.getJobInfo, tracker.getActiveJobsIds()))
        stages = filter(None, (tracker.getStageInfo(stage) for job in jobs for stage in job.stageIds))
        return sum(stage.numCompletedTasks for stage in stages)


def _schema(frame: DataFrame) -> pa.Schema:
    """Return the Arrow schema of a DataFrame."""
    return frame.limit(0).toArrow().schema


def _failed(error: Exception, tasks: Mapping[int, Task]) -> EngineError:
    """Return the error of a failed Spark job; it names the fragment whose task failed repeatedly."""
    reason = _reason(error)
    if reason.startswith("ModuleNotFoundError"):
        return EngineError(
            f"Spark's executors cannot import deciban ({reason}). No model was made.",
            remedy="Install the same version of deciban on all machines, for the Python of PYSPARK_PYTHON.",
        )
    task = re.search(r"Task (\d+) in stage", str(error))
    if task is not None and int(task[1]) in tasks:
        return EngineError(
            f"{tasks[int(task[1])].name}: Spark could not finish its task ({reason}). No model was made.",
            remedy="Look at the logs of the executors; the usual cause is too little memory: use smaller fragments.",
        )
    return EngineError(f"Spark failed ({reason}). No model was made.")


def _reason(error: BaseException) -> str:
    """Return the first line of an error; of one in a worker, the line below its traceback."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    begun = [at for at, line in enumerate(lines) if line.startswith("Traceback (")]
    below = [line for line in lines[begun[-1] + 1 :] if not line.startswith(" ")] if begun else []
    return (below or [line.strip() for line in lines] or [type(error).__name__])[0][:300]


# -- partitions --------------------------------------------------------------------------------------------------------
class Partitions:
    """The partitions of a DataFrame as the input of a plan."""

    def __init__(self, label: str, engine: SparkEngine) -> None:
        assert engine.frame is not None
        self.label = label
        places = range(engine.frame.rdd.getNumPartitions())
        self.tasks = [(Partition(at), Task(at, f"partition {at}")) for at in places]
        self.sizes = [int(rows) for rows in engine.each(_rows, self.tasks)]
        starts = np.cumsum([0, *self.sizes])
        needed = [item for item, start, rows in zip(self.tasks, starts, self.sizes) if start <= HEAD and rows]
        heads = list(engine.each(_head, needed or self.tasks[:1]))
        self.first = pa.concat_tables(heads).slice(0, HEAD + 1)

    def items(self, read: int) -> list[tuple[Partition, Task]]:
        """Return the partitions, with the rows to skip."""
        starts = np.cumsum([0, *self.sizes]).tolist()
        return [(data, task._replace(skip=max(0, read - start))) for (data, task), start in zip(self.tasks, starts)]

    def rows(self) -> list[int] | None:
        """Return the rows of each partition."""
        return self.sizes


def _rows(data: pa.Table, task: Task) -> int:
    return len(data)


def _head(data: pa.Table, task: Task) -> pa.Table:
    return data.slice(0, HEAD + 1)
