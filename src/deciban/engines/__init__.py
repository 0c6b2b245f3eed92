"""Fits by other engines: the sums of a model computed by a cluster or where a table lies, by one plan.

This module selects the engine: that of a frame's own library, or the one that a `with` statement names.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from deciban.errors import InputError, NotAvailableError
from deciban.model.fit import Request
from deciban.model.predictor import Predictor
from deciban.read.batches import Rows
from deciban.read.files import PLACES

if TYPE_CHECKING:
    from deciban.engines.tasks import Passes

M = TypeVar("M", bound=Callable[..., Any])
# name of an engine, or of the library whose frames it takes → its module and class, which are imported at first use
ENGINES = {
    "dask": "dask.DaskEngine",
    "duckdb": "database.SqlEngine",
    "sql": "database.SqlEngine",
    "spark": "spark.SparkEngine",
    "pyspark": "spark.SparkEngine",
}
EXTRAS = {
    "duckdb": "sql",
    "pyspark": "spark",
}  # extras of engines with another name


class Backend(Protocol):
    """Methods of an engine that a classifier calls."""

    quiet: bool  # whether no progress bar is shown

    @classmethod
    def opened(cls, address: str) -> Any:
        """Return a context manager that yields the engine at an address; on this machine if it is empty."""

    @classmethod
    def of_frame(cls, X: Any) -> Backend:
        """Return the engine of a frame."""

    def fit(self, request: Request, X: Any, y: Any, sample_weight: Any) -> tuple[Predictor, Rows] | None:
        """Fit a model to a frame, files or a source; None if there is only one part, which this process fits."""

    def over_parts(self, work: Any, source: Any) -> Iterator[Any] | None:
        """Return `work(part, task)` of each part of files, in order; None if there is only one part."""

    def answers(self, clf: Any, method: str, X: Any, options: dict[str, Any]) -> Any:
        """Return the answers of a method of a classifier to the rows of a frame, as a frame of the same library."""


CURRENT: ContextVar[Backend | None] = ContextVar("deciban_engine", default=None)


@contextmanager
def engine(name: str) -> Iterator[Backend]:
    """Let an engine fit the files that are given to classifiers inside a `with` statement.

    Parameters
    ----------
    name : str
        "dask" for processes on this machine, "dask://host:8786" for the scheduler of a cluster, "spark" or
        "spark://host:7077" likewise; "duckdb" for the sums of Parquet files by SQL in this process.

    Yields
    ------
    Backend
        The engine. It is closed at the end of the `with` statement; a cluster that was running before goes on.

    Examples
    --------
    >>> import deciban
    >>> with deciban.engine("dask://localhost:8786"):  # doctest: +SKIP
    ...     clf = deciban.GenerativeClassifier().fit("logs/2026-*/*.parquet", "state")
    """
    kind, _, address = name.partition("://")
    with _backend(kind).opened(address) as opened:
        token = CURRENT.set(opened)
        try:
            yield opened
        finally:
            CURRENT.reset(token)


def elsewhere(X: Any) -> Backend | None:
    """Return the engine of rows: that of a frame's library, or the current one for files; None for this process."""
    library = library_of(X)
    if library in ENGINES:
        return _backend(library).of_frame(X)
    return CURRENT.get() if isinstance(X, PLACES) else None


def library_of(X: Any) -> str:
    """Return the name of the library of a frame; a table of this package has the attribute `deciban_engine`."""
    library: str = getattr(type(X), "deciban_engine", None) or type(X).__module__.partition(".")[0]
    return library.lstrip("_")


def parted(X: Any) -> tuple[Any, Passes | None]:
    """Return the first rows of a frame of an engine's library and passes over all its parts; other rows, and None."""
    library = library_of(X)
    if library not in ENGINES:
        return X, None
    backend = _backend(library).of_frame(X)
    if not hasattr(backend, "passes"):
        raise NotAvailableError(
            f"the engine {library!r} does not fit models with hidden variables.",
            remedy="Give a frame of Dask or Spark, or load the rows into a frame.",
        )
    return backend.passes(X)


def over_frames(method: M) -> M:
    """Decorate a method of a classifier that answers rows: the engine of a frame answers the rows of the frame."""

    @wraps(method)
    def answered(self: Any, X: Any, *args: Any, **options: Any) -> Any:
        library = library_of(X)
        if library not in ENGINES:
            return method(self, X, *args, **options)
        if args:
            raise InputError(f"{method.__name__} of a {library} frame takes its options by name, such as prior=….")
        return _backend(library).of_frame(X).answers(self, method.__name__, X, options)

    return answered  # type: ignore[return-value]


def _backend(kind: str) -> type[Backend]:
    if kind not in ENGINES:
        raise InputError(f"engine {kind!r} is not one of dask, duckdb, spark.")
    module, _, name = ENGINES[kind].partition(".")
    try:
        return getattr(importlib.import_module(f"deciban.engines.{module}"), name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "deciban":
            raise
        raise InputError(
            f"the engine {kind!r} needs the package {error.name!r}, which is not installed.",
            remedy=f"pip install 'deciban[{EXTRAS.get(kind, kind)}]'.",
        ) from None
