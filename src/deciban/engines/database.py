"""Engines inside a database: DuckDB, and any other with a Python connection.

    pip install 'deciban[sql]'

The plan is that of all engines. The first 65,536 rows make the choices. The sums of all rows are computed by GROUP BY
in the database (`sql_sums.py`), and by a scan of columns where SQL cannot. Calibration uses the rows that one machine
would use, by their position in the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from deciban.engines import sql_sums
from deciban.engines.plan import Begun, begin, with_samples
from deciban.engines.sql_scores import name, to_sql, translated
from deciban.engines.sql_sums import ROWS, Given, Rows, Type
from deciban.engines.tasks import Choices, Partial, Sampled, Summing, Task
from deciban.errors import HERE, DecibanError, EngineError, InputError, NotAvailableError
from deciban.families.product import Product
from deciban.model.fit import Request, check_request, schema_reader
from deciban.model.fit import fit as fit_alone
from deciban.model.model import Reader
from deciban.model.predictor import Predictor
from deciban.read.batches import Batch
from deciban.read.batches import Rows as GivenRows
from deciban.read.binary_files import ParquetSource
from deciban.read.files import ManyFiles, check_columns, open_source
from deciban.read.paths import file_system, is_address, of_fsspec
from deciban.read.source import Source
from deciban.read.tables import HEAD
from deciban.terminal import watched

POSITION = "deciban_position"
HELD = {"integer": "BIGINT", "decimal": "DOUBLE"}  # types of columns in frames
ANSWERS = {"b": "BOOLEAN", "i": "BIGINT", "u": "BIGINT", "f": "DOUBLE"}  # types of class labels
FETCHED = 10_000  # rows that are fetched from a cursor at a time


class Database(Rows, Protocol):
    """Rows in a database, which can also be scanned."""

    @property
    def label(self) -> str:
        """Name of the rows in messages."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""

    @property
    def files(self) -> Sequence[ParquetSource]:
        """Files whose rows these are, one file after the other; none for rows that are in the database."""

    def scan(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield all rows in their order, in pieces of any size."""


# -- DuckDB ------------------------------------------------------------------------------------------------------------
class Relation:
    """A relation of DuckDB."""

    nan = True

    def __init__(
        self,
        relation: Any,
        label: str = "the relation",
        progress: Callable[[], float] | None = None,
        files: Sequence[ParquetSource] = (),
    ) -> None:
        self.relation, self.label, self.files = relation, label, files
        self.progress = progress  # percent of the running query; without it, no bar is shown
        self.columns = tuple(relation.columns)
        self.types: Mapping[str, Type] = dict(zip(self.columns, map(_duckdb_type, relation.types)))

    def query(self, text: str) -> pa.Table:
        """Return the result of a query."""
        try:
            with watched(None if self.progress is None else "query of DuckDB", 100, self.progress or float):
                return self.relation.query(ROWS, text).to_arrow_table()
        except Exception as error:
            raise _stopped(self.label, error) from error

    def scan(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield all rows in their order."""
        chosen = self.relation.project(", ".join(map(name, columns)))
        read = getattr(chosen, "to_arrow_reader", None) or chosen.fetch_arrow_reader
        try:
            with read(HEAD) as reader:
                for batch in reader:
                    yield pa.Table.from_batches([batch])
        except GeneratorExit:
            raise
        except Exception as error:
            raise _stopped(self.label, error) from error


def _duckdb_type(given: Any) -> Type:
    kind = str(given).upper()
    if kind in ("DOUBLE", "FLOAT"):
        return "real"
    if kind.startswith("DECIMAL"):
        return "decimal"
    if kind == "BOOLEAN":
        return "boolean"
    if kind == "VARCHAR" or kind.startswith("ENUM"):
        return "text"
    return "integer" if kind.endswith("INT") or kind == "INTEGER" or kind == "UINTEGER" else "other"


def _stopped(label: str, error: Exception) -> BaseException:
    """Return the error of a failed query of DuckDB; KeyboardInterrupt for Ctrl-C, which DuckDB reports as an error."""
    interrupted = type(error) is RuntimeError and str(error) == "Query interrupted"
    return KeyboardInterrupt() if interrupted else _failed(label, error)


def _failed(label: str, error: Exception) -> EngineError:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return EngineError(f"{label}: the database failed ({lines[0][:300]}). No model was made.")


# -- other databases ---------------------------------------------------------------------------------------------------
class SqlTable:
    """A table of a database, given by a connection of Python's database interface (PEP 249).

    Parameters
    ----------
    connection : connection
        Such as that of `sqlite3.connect`.
    table : str
        Name of the table or view.
    dialect : str, default="sqlite"
        Dialect of SQL, by sqlglot's name. "sqlite" is tested; queries of others are translated by sqlglot.

    Examples
    --------
    >>> import sqlite3
    >>> from deciban import GenerativeClassifier
    >>> rows = [("red", "a"), ("red", "a"), ("white", "b"), ("white", "b")] * 10
    >>> connection = sqlite3.connect(":memory:")
    >>> _ = connection.execute("CREATE TABLE wines (colour TEXT, kind TEXT)")
    >>> _ = connection.executemany("INSERT INTO wines VALUES (?, ?)", rows)
    >>> clf = GenerativeClassifier().fit(SqlTable(connection, "wines"), "kind")
    >>> clf.predict({"colour": ["red", "white"]})
    array(['a', 'b'], dtype='<U1')
    """

    deciban_engine = "sql"
    nan = False
    files: Sequence[ParquetSource] = ()

    def __init__(self, connection: Any, table: str, dialect: str = "sqlite") -> None:
        self.connection, self.table, self.dialect, self.label = connection, table, dialect, table
        first = self.query(f"SELECT * FROM {ROWS} LIMIT {HEAD}")
        self.columns = tuple(first.column_names)
        self.types: Mapping[str, Type] = {
            each: self._type(each, first.schema.field(each).type) for each in self.columns
        }

    def __repr__(self) -> str:
        return f"SqlTable({self.table!r}, {self.dialect!r})"

    def _type(self, column: str, first: pa.DataType) -> Type:
        """Return the type of a column; in SQLite, where each value has a type, the common type of its values."""
        if self.dialect != "sqlite":
            return _arrow_type(first)
        query = f"SELECT DISTINCT TYPEOF({name(column)}) FROM {name(self.table)}"
        found = {kind for (kind,) in self._cursor(query).fetchall()} - {"null"}
        if found <= {"integer"}:
            return "integer"
        return "real" if found <= {"integer", "real"} else "text" if found == {"text"} else "other"

    def query(self, text: str) -> pa.Table:
        """Run a query on the table.

        Parameters
        ----------
        text : str
            Query in DuckDB's dialect, which calls the table `deciban_rows`.

        Returns
        -------
        pyarrow.Table
            The result.
        """
        tables = list(self._pieces(self._cursor(self._written(text))))
        return pa.concat_tables(tables, promote_options="permissive")

    def scan(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Read all rows in their order.

        Parameters
        ----------
        columns : sequence of str
            Columns to read.

        Returns
        -------
        iterator of pyarrow.Table
            The rows, in pieces of any size.
        """
        return self._pieces(self._cursor(self._written(f"SELECT {', '.join(map(name, columns))} FROM {ROWS}")))

    def _written(self, text: str) -> str:
        return translated(text, self.dialect, pretty=False, tables={ROWS: self.table})

    def _cursor(self, text: str) -> Any:
        cursor = self.connection.cursor()
        try:
            cursor.execute(text)
        except Exception as error:
            raise _failed(self.label, error) from error
        return cursor

    def _pieces(self, cursor: Any) -> Iterator[pa.Table]:
        names, empty = [each[0] for each in cursor.description], True
        while rows := cursor.fetchmany(FETCHED):
            empty = False
            yield pa.table({each: _array(values) for each, values in zip(names, zip(*rows))})
        if empty:
            yield pa.table({each: pa.array([]) for each in names})


def _array(values: Sequence[Any]) -> pa.Array:
    """Return values as an Arrow array; of several types, as texts."""
    try:
        return pa.array(values, from_pandas=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        if all(value is None or isinstance(value, int | float) for value in values):
            return pa.array(values, pa.float64())
        return pa.array([None if value is None else str(value) for value in values], pa.string())


def _arrow_type(given: pa.DataType) -> Type:
    tests: list[tuple[Any, Type]] = [
        (pa.types.is_integer, "integer"),
        (pa.types.is_floating, "real"),
        (pa.types.is_decimal, "decimal"),
        (pa.types.is_boolean, "boolean"),
        (pa.types.is_string, "text"),
    ]
    return next((kind for test, kind in tests if test(given)), "other")


# -- rows of a database as a source ------------------------------------------------------------------------------------
class TableSource(Source):
    """The rows of a database as a source of batches, read by the thread of the connection."""

    prefetch = False

    def __init__(self, database: Database, columns: Sequence[str] | None = None, first: bool = False) -> None:
        super().__init__()
        self.database, self.name, self.first = database, database.label, first
        self._columns = tuple(database.columns if columns is None else columns)

    @property
    def columns(self) -> tuple[str, ...]:
        return self._columns

    def pieces(self) -> Iterator[pa.Table]:
        """All rows in their order; with `first`, one more than those from which choices are made."""
        if self.first:
            yield self.database.query(f"SELECT {', '.join(map(name, self._columns))} FROM {ROWS} LIMIT {HEAD + 1}")
            return
        schema = None
        for piece in self.database.scan(self._columns):
            schema = schema or piece.schema
            yield piece if piece.schema == schema else _cast(piece, schema)

    def place(self, row: int) -> tuple[str, int]:
        """The place of a row in its file, or in the table."""
        before = 0
        for file in self.database.files:
            rows = sum(n for n, _ in file.sizes())
            if row < before + rows:
                return file.place(row - before)
            before += rows
        return super().place(row)


def _cast(piece: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return a piece with the types of the first where possible; numbers may become wider."""
    columns = []
    for field, values in zip(schema, piece.columns):
        try:
            columns.append(values.cast(field.type))
        except pa.ArrowInvalid:
            columns.append(values)
    return pa.table(columns, names=schema.names)


# -- the engine --------------------------------------------------------------------------------------------------------
class SqlEngine:
    """Fits models to rows in a database, and answers them there.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection, optional
        For Parquet files that DuckDB reads.
    quiet : bool, default=False
        Whether no progress bar is shown.
    """

    def __init__(self, connection: Any = None, quiet: bool = False) -> None:
        self.connection, self.quiet = connection, quiet

    @classmethod
    @contextmanager
    def opened(cls, address: str) -> Iterator[SqlEngine]:
        """Connect to DuckDB in this process; an address is the path of a database."""
        import duckdb

        with duckdb.connect(address or ":memory:") as connection:
            # DuckDB measures the progress of queries only if its own progress bar is on
            connection.execute("SET enable_progress_bar = true; SET enable_progress_bar_print = false")
            yield cls(connection)

    @classmethod
    def of_frame(cls, X: Any) -> SqlEngine:
        """Return the engine of a relation or table."""
        database_of(X)
        return cls()

    def fit(self, request: Request, X: Any, y: Any, sample_weight: Any) -> tuple[Predictor, GivenRows] | None:
        """Fit a model to a relation, a table or Parquet files; None for other files."""
        if not isinstance(y, str):
            raise InputError("rows of a database have their labels in a column.", remedy="For y, give its name.")
        if sample_weight is not None:
            raise InputError("rows of a database cannot be weighted.", remedy="Load them into a frame first.")
        database = self._of_files(X) if isinstance(X, str | Source) or hasattr(X, "__fspath__") else database_of(X)
        return None if database is None else fit(request, database, y)

    def _of_files(self, X: Any) -> Database | None:
        """Return Parquet files as a relation; None for other files, which DuckDB would read by other rules."""
        source = open_source(X)
        first = source.first if isinstance(source, ManyFiles) else source
        if not isinstance(first, ParquetSource) or first.stdin or source.skip_bad or self.connection is None:
            return None
        files: list[Any] = [first]
        if isinstance(source, ManyFiles):  # all are Parquet files, as the first is
            files = [source.open_one(path) for path in source.paths]
        paths = [str(file.path) for file in files]
        if not self._reads(paths[0]):
            return None
        types = self._parquet(files[:1], paths[0]).types
        for file, path in zip(files[1:], paths[1:]):
            check_columns(file.columns, first.columns, path, paths[0])  # DuckDB would leave out columns
            for column, kind in self._parquet([file], path).types.items():
                if kind != types[column]:
                    raise InputError(
                        HERE,
                        f": column {column!r} is of type {kind} here and of type {types[column]} in {paths[0]}.",
                        place=path,
                        columns=[column],
                        remedy="Give files with the same types.",
                    )
        return self._parquet(files, source.name)

    def _reads(self, path: str) -> bool:
        """Whether DuckDB reads a path: of this machine, or an address of fsspec, whose file system it is then given.

        Addresses of pyarrow, such as s3://…, are read by this process, with the credentials that pyarrow finds.
        """
        if not is_address(path) or path.startswith("file://"):
            return True
        found = of_fsspec(file_system(path)[0])
        if found is not None and not self.connection.filesystem_is_registered(found.protocol):
            self.connection.register_filesystem(found)
        return found is not None

    def _parquet(self, files: Sequence[ParquetSource], label: str) -> Relation:
        try:
            rows = self.connection.read_parquet([str(file.path) for file in files])
            return Relation(rows, label, None if self.quiet else self._progress, files)
        except Exception as error:
            raise _failed(label, error) from error

    def _progress(self) -> float:
        """Return how many percent of the running query are done."""
        return float(self.connection.query_progress())

    def over_parts(self, work: Any, source: Source) -> Iterator[Any] | None:
        """Return None: this process answers rows of files."""
        return None

    def answers(self, clf: Any, method: str, X: Any, options: dict[str, Any]) -> Any:
        """Return the rows of a relation with the answers added, as a relation."""
        if isinstance(X, SqlTable):
            raise NotAvailableError(
                f"{method} answers relations of DuckDB, and not a {type(X).__name__}.",
                remedy=f"Run the query clf.to_sql({X.dialect!r}, table={X.table!r}) in the database.",
            )
        prior = options.pop("prior", None)
        if options or method not in ("predict", "predict_proba"):
            raise NotAvailableError(
                f"{method}({', '.join(options)}) does not answer a relation.",
                remedy="Use predict or predict_proba with prior=…, or load the rows into a frame.",
            )
        added = ["prediction"] if method == "predict" else [f"P({each})" for each in clf.classes_]
        keep = [each for each in X.columns if each not in added]
        try:
            query = to_sql(clf.model_, clf.density, clf.log_prior(prior), ROWS, "duckdb", keep)
        except NotAvailableError:  # for example of texts: this process answers the rows, piece by piece
            return _mapped(X, clf, method, prior, keep, added)
        return X.query(ROWS, query).project(", ".join(map(name, [*keep, *added])))


def _mapped(X: Any, clf: Any, method: str, prior: Any, keep: Sequence[str], added: Sequence[str]) -> Any:
    """Return a relation whose answers are computed by this process when it is read, in frames of pandas.

    Columns pass through types that frames can hold with missing values, and are cast back.
    """
    types = {each: str(kind) for each, kind in zip(X.columns, X.types) if each in keep}
    held = {each: HELD.get(_duckdb_type(kind), "TIMESTAMP" if kind == "DATE" else kind) for each, kind in types.items()}
    whole = {each: "Int64" for each, kind in held.items() if kind == HELD["integer"]}
    answer = ANSWERS.get(clf.classes_.dtype.kind, "VARCHAR") if method == "predict" else "DOUBLE"

    def answered(frame: Any) -> Any:
        frame = frame[list(keep)].astype(whole)
        values = getattr(clf, method)(frame, prior=prior) if len(frame) else np.zeros((0, len(added)))
        return frame.assign(**dict(zip(added, np.reshape(values, (len(frame), len(added))).T)))

    found = X.map(answered, schema={**held, **dict.fromkeys(added, answer)})
    kept = [f"CAST({name(each)} AS {kind}) AS {name(each)}" for each, kind in types.items()]
    return found.project(", ".join([*kept, *map(name, added)]))


def database_of(X: Any) -> Database:
    """Return the rows of a relation or table."""
    if isinstance(X, SqlTable):
        return X
    if not hasattr(X, "query") or not hasattr(X, "types"):
        raise InputError(f"rows of DuckDB must be a relation, not a {type(X).__name__}.", remedy="Give a relation.")
    return Relation(X)


# -- the fit -----------------------------------------------------------------------------------------------------------
def fit(request: Request, database: Database, label: str) -> tuple[Predictor, GivenRows]:
    """Fit a model to rows of a database; the result is that of one machine."""
    check_request(request)
    if request.key is not None:  # a ledger needs every row
        return _scanned(request, database, label)
    # None: a block of columns that vary together has a gap after the first rows; fit again without such blocks
    fitted = _fit(request, database, label, True) or _fit(request, database, label, False)
    assert fitted is not None
    return fitted


def _scanned(request: Request, database: Database, label: str) -> tuple[Predictor, GivenRows]:
    """Fit a model in this process, which reads all rows."""
    return fit_alone(request, TableSource(database), label)


def _fit(request: Request, database: Database, label: str, together: bool) -> tuple[Predictor, GivenRows] | None:
    source = TableSource(database, first=True)
    rows = GivenRows(source, label, None, schema_reader(request.families, request.kinds, True))
    first, *more = rows.batches()
    try:
        begun = begin(request, first, rows, label, together)
    except NotAvailableError:  # a family that needs all rows at once
        return _scanned(request, database, label)
    if not more:
        return begun.finish(Partial()), rows
    schema = begun.choices.reader.schema
    assert schema is not None  # rows of a database are read by one
    total = _total(begun, Given(database, schema, label, request.classes, first))
    return None if total is None else (begun.finish_total(total), rows)


def _total(begun: Begun, given: Given) -> Partial | None:
    """Return the sums of all rows and the sample for calibration; None if columns that vary together have a gap."""
    choices = begun.choices
    counts, found = None, {}
    try:
        counts = sql_sums.class_rows(given)
        found = sql_sums.pushed(sql_sums.parts_of(choices.family, choices.reader.columns), given)
    except EngineError:
        raise
    except DecibanError:  # a label that is missing or not of its kind: the scan names its row
        pass
    rest = _rest(choices, set(found))
    if rest is not None:
        source = TableSource(given.rows, rest.given)  # type: ignore[arg-type]
        scanned = Summing(rest)(source, Task(0, source.name))[0]
        if scanned.gap:
            return None
        counts, found = scanned.stats, {**sql_sums.sums_of_parts(rest.family, scanned.stats.family), **found}
    assert counts is not None  # by SQL, or by the scan
    stats = replace(counts, family=sql_sums.assembled(choices.family, counts.axis, found))
    after = int(stats.rows.sum()) - len(begun.first.table)
    sample = _sample(given, after, len(begun.first.table)) if begun.calibrates else ()
    return Partial(stats, None, ((0, after),), sample)


def _rest(choices: Choices, done: set[sql_sums.Place]) -> Choices | None:
    """Return the choices for the parts without sums; None if all have them."""
    family, schema = choices.family, choices.reader.schema
    left: Any = family
    if done:
        left = sql_sums.without(family, done) if isinstance(family, Product) else None
    if left is None or schema is None:
        return None
    columns = [str(each) for each in choices.reader.columns]
    used = {each for part in sql_sums.parts_of(left, columns) for each in part.columns}
    features = [each for each in columns if each in used]
    some = schema.select(features)
    known = choices.known
    if isinstance(left, Product) and done:
        known = replace(known, blocks={key: known.blocks[key] for key in left.keys}, experts=None)
    return replace(
        choices, family=left, known=known, reader=Reader(tuple(features), some), given=(*some.names, choices.label)
    )


def _sample(given: Given, after: int, before: int) -> tuple[Sampled, ...]:
    """Return the rows after the first ones that calibration uses, by their positions."""
    [(_, task)] = with_samples([(None, Task(0, ""))], [after], before)
    assert task.sample is not None
    if not len(task.sample):
        return ()
    columns = ", ".join(map(name, [*given.schema.names, given.label]))
    places = ", ".join(str(at) for at in (task.sample + before + 1).tolist())
    numbered = f"SELECT {columns}, ROW_NUMBER() OVER () AS {POSITION} FROM {ROWS}"
    found = given.rows.query(
        f"SELECT {columns} FROM ({numbered}) AS numbered WHERE {POSITION} IN ({places}) ORDER BY {POSITION}"
    )
    batch = given.batch(found, None)
    return (Sampled(0, Batch(batch.table, np.asarray(batch.labels), np.ones(len(found)))),)
