"""The files of a service: the journal of its lessons, and the model file, which snapshots replace.

The journal is a SQLite database beside the model file:

    lessons      one line for each change: learn, unlearn, correct, classes, erase
    snapshots    digest of a model file → id of the last lesson that it contains
    settings     secret of the receipts; whether removed rows are still in freed pages

It is in WAL mode with synchronous=FULL: a committed transaction survives a crash of the process and of the machine, and
an uncommitted one leaves nothing. Many lessons share one transaction (group commit). With secure_delete, removed
content is overwritten with zeros.

A snapshot is written beside the model file, its digest is noted in the journal, and then it replaces the model file by
a rename. After a crash the model file is therefore one of two files that the journal knows, and the journal knows which
lessons each contains.

A snapshot is written by a separate thread, from an immutable model; lessons continue meanwhile. Snapshots are written
one after the other, each with at least the lessons of the one before.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import dataclass, fields, replace
from hashlib import blake2b
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from deciban.errors import DecibanError, ModelFileError, SaveError
from deciban.model.model import Model
from deciban.model.predictor import Predictor
from deciban.model.row_reader import Row
from deciban.service.published import Label
from deciban.store import describe, save
from deciban.store.container import open_container
from deciban.store.files import sync_folder

if TYPE_CHECKING:
    from deciban.estimators.classifier import GenerativeClassifier

try:
    import fcntl
except ImportError:  # the system has no such locks; files are still replaced whole
    fcntl = None  # type: ignore[assignment]

SCHEMA = """
create table if not exists lessons (
    id integer primary key, kind text not null, rows text, labels text, was text, who text, time real not null,
    asked text, offered integer not null, undoes integer, undone integer, key text unique, request blob, receipt text
) strict;
create table if not exists snapshots (digest text primary key, lesson integer not null) strict;
create table if not exists settings (name text primary key, value blob not null) strict;
"""
FORMAT = 1
CHUNK = 1000  # lessons read at a time


class JournalError(DecibanError):
    """The journal cannot be written, so that nothing was learnt; `full` tells whether the disk is full."""

    def __init__(self, *message: str, full: bool = False) -> None:
        super().__init__(*message)
        self.full = full


@dataclass(frozen=True, eq=False)
class Entry:
    """One change of the model, as the journal holds it."""

    id: int
    kind: str  # learn, unlearn, correct, classes or erase
    rows: list[Row] | None  # None if the lesson has none or all were erased; an erased row is None in the list
    labels: list[Label] | None  # labels of the rows; for "classes", the old and the new name
    was: list[Label] | None  # for "correct": the labels before
    who: str
    time: float  # seconds since 1970
    asked: list[list[Any]] | None = None  # for rows in the random sample: [row, log P(label), correct], before learning
    offered: bool = False  # the row was offered as unsure: a biased sample
    undoes: int | None = None
    undone: int | None = None  # id of the lesson that undid this one
    key: str | None = None  # Idempotency-Key
    request: bytes | None = None  # digest of the request that the key came with
    receipt: dict[str, Any] | None = None

    def line(self) -> tuple[Any, ...]:
        """Return the values of the columns."""
        return tuple([_stored(getattr(self, name)) for name in COLUMNS])


COLUMNS = tuple(f.name for f in fields(Entry))
JSON_COLUMNS = {"rows", "labels", "was", "asked", "receipt"}
ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))  # `json.dumps` makes a new one in each call
INSERT = f"insert into lessons ({', '.join(COLUMNS)}) values ({', '.join('?' * len(COLUMNS))})"
SELECT = f"select {', '.join(COLUMNS)} from lessons"


CUT = ("rows", "labels", "was")  # columns with a value for each row
LISTED_ROWS = 5
_FIRST = ", ".join(f"'$[{at}]'" for at in range(LISTED_ROWS))  # of several paths, json_extract returns a list
_LISTED = [f"json_extract({name}, {_FIRST})" if name in CUT else name for name in COLUMNS]
LIST = f"""
select {", ".join(_LISTED)}, {", ".join(f"json_array_length({name})" for name in CUT)},
    case when kind = 'classes' then 0 when rows is null then 1 when instr(rows, 'null') = 0 then 0
    else exists (select 1 from json_each(rows) where type = 'null') end
from lessons where id = ?
"""


@dataclass(frozen=True, eq=False)
class Listed:
    """A lesson as the history shows it."""

    entry: Entry  # with the first rows only
    count: int  # all rows
    erased: bool  # whether some of the rows were erased


class Journal:
    """The journal of one model; its methods may be called from any thread, one runs at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.RLock()
        with _refusing():
            self._open()

    def _open(self) -> None:
        self._database = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=5)
        execute = self._database.execute
        execute("pragma secure_delete=on")
        execute("pragma journal_mode=wal")
        execute("pragma synchronous=full")
        version = execute("pragma user_version").fetchone()[0]
        if version > FORMAT:
            raise ModelFileError(f"{self.path} was written by a newer deciban. Upgrade with pip install -U deciban.")
        self._database.executescript(SCHEMA)
        execute(f"pragma user_version={FORMAT}")
        execute("insert or ignore into settings values ('secret', ?)", (secrets.token_bytes(32),))
        if execute("select 1 from settings where name='purging'").fetchone():
            with suppress(sqlite3.OperationalError):  # a full disk: tried again at the next start
                self._overwrite()

    @property
    def secret(self) -> bytes:
        """Random bytes of this journal: the key of receipts if the ledger has no key."""
        with self._reading() as database:
            return database.execute("select value from settings where name='secret'").fetchone()[0]

    def close(self) -> None:
        """Close the database; the write-ahead log is moved into it."""
        with self._lock:
            self._database.close()

    # -- writing ---------------------------------------------------------------------------------------------------
    def append(self, entries: Sequence[Entry]) -> None:
        """Write lessons in one transaction, durably before this returns; with a JournalError, none is written."""
        with self._transaction() as database:
            database.executemany(INSERT, [entry.line() for entry in entries])
            undone = [(entry.id, entry.undoes) for entry in entries if entry.undoes is not None]
            database.executemany("update lessons set undone=? where id=?", undone)

    def record_snapshot(self, digest: str, lesson: int) -> None:
        """Note that the model file with this digest contains all lessons up to this one."""
        with self._transaction() as database:
            database.execute("insert or replace into snapshots values (?, ?)", (digest, lesson))

    def forget_snapshots(self, but: str) -> None:
        """Remove the notes of all model files but one."""
        with self._transaction() as database:
            database.execute("delete from snapshots where digest <> ?", (but,))

    def purge(self, erased: Iterable[tuple[int, list[Row | None] | None, list[Any] | None, list[Any] | None]]) -> None:
        """Replace rows and labels of lessons, and remove every trace of the former ones from the files."""
        with self._transaction() as database:
            database.execute("insert or ignore into settings values ('purging', x'01')")
            database.executemany(
                "update lessons set rows=?, labels=?, was=?, request=null where id=?",
                [(_stored(rows), _stored(labels), _stored(was), id) for id, rows, labels, was in erased],
            )
        with self._lock, _refusing():
            self._overwrite()

    def _overwrite(self) -> None:
        """Remove freed pages from the database and its log, then the setting `purging`: none are left."""
        execute = self._database.execute
        execute("vacuum")
        execute("pragma wal_checkpoint(truncate)").fetchall()
        execute("delete from settings where name='purging'")

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self._lock, _refusing("read"):
            yield self._database

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock, _refusing():
            database = self._database
            database.execute("begin immediate")
            try:
                yield database
                database.execute("commit")
            except BaseException:
                if database.in_transaction:
                    database.execute("rollback")
                raise

    # -- reading ---------------------------------------------------------------------------------------------------
    @property
    def last(self) -> int:
        """Id of the last lesson; 0 if there is none."""
        with self._reading() as database:
            return database.execute("select coalesce(max(id), 0) from lessons").fetchone()[0]

    def snapshot(self, digest: str) -> int | None:
        """Return the last lesson in the model file with this digest; None if the file is unknown."""
        with self._reading() as database:
            found = database.execute("select lesson from snapshots where digest=?", (digest,)).fetchone()
        return None if found is None else found[0]

    @property
    def snapshots(self) -> int:
        """Number of model files known."""
        with self._reading() as database:
            return database.execute("select count(*) from snapshots").fetchone()[0]

    def after(self, lesson: int) -> Iterator[Entry]:
        """Yield the lessons after one, in order."""
        while True:
            chunk = self._entries("where id > ? order by id limit ?", lesson, CHUNK)
            yield from chunk
            if len(chunk) < CHUNK:
                return
            lesson = chunk[-1].id

    def entry(self, id: int) -> Entry | None:
        """Return a lesson; None if there is none with this id."""
        return next(iter(self._entries("where id = ?", id)), None)

    def with_key(self, key: str) -> Entry | None:
        """Return the lesson that was sent with an Idempotency-Key."""
        return next(iter(self._entries("where key = ?", key)), None)

    def history(self, before: int | None, most: int) -> list[Listed]:
        """Return the first rows of the latest lessons, latest first; of lessons before an id if one is given.

        SQLite cuts the rows of one lesson at a time: there may be 10,000, and the teacher waits for the lock.
        """
        condition, values = ("", (most,)) if before is None else ("where id < ?", (before, most))
        with self._reading() as database:
            ids = database.execute(f"select id from lessons {condition} order by id desc limit ?", values).fetchall()
        return [self._listed(id) for (id,) in ids]

    def _listed(self, id: int) -> Listed:
        with self._reading() as database:
            *line, rows, labels, was, erased = database.execute(LIST, (id,)).fetchone()
        entry = _entry(line)
        lengths = zip(CUT, (rows, labels, was))  # json_extract adds null for a value that is not there
        cut = {name: getattr(entry, name)[:length] for name, length in lengths if length is not None}
        return Listed(replace(entry, **cut), rows or 0, bool(erased))

    def unfinished_erasures(self) -> list[Entry]:
        """Return erasures whose rows are still in the journal, because the process ended before they were purged."""
        return self._entries("where kind = 'erase' and rows is not null order by id")

    def offered(self) -> Iterator[Entry]:
        """Yield lessons that were offered as unsure and are still learnt."""
        yield from self._entries("where offered = 1 and kind = 'learn' and undone is null")

    def asked(self) -> Iterator[Entry]:
        """Yield lessons of the random sample that are still learnt."""
        yield from self._entries("where asked is not null and undone is null order by id")

    def names(self) -> list[Entry]:
        """Return the changes of names of classes that were not undone, in order."""
        return self._entries("where kind = 'classes' and undone is null and undoes is null order by id")

    def _entries(self, condition: str, *values: Any) -> list[Entry]:
        with self._reading() as database:
            found = database.execute(f"{SELECT} {condition}", values).fetchall()
        return [_entry(line) for line in found]


def journal_path(model: Path) -> Path:
    """Return the path of the journal of a model file."""
    return model.with_name(f"{model.name}.journal")


def open_journal_of(model: Path) -> Journal:
    """Open the journal beside a model file; ModelFileError if there is none."""
    path = journal_path(model)
    if not path.exists():
        raise ModelFileError(f"there is no journal {path}. Give the model file that the service was started with.")
    return Journal(path)


def _stored(value: Any) -> Any:
    kind = type(value)
    if kind is list or kind is dict:
        return ENCODER.encode(value)
    return int(value) if kind is bool else value


def _entry(line: Sequence[Any]) -> Entry:
    values = dict(zip(COLUMNS, line))
    for name in JSON_COLUMNS:
        if values[name] is not None:
            values[name] = json.loads(values[name])
    return Entry(**{**values, "offered": bool(values["offered"])})


@contextmanager
def _refusing(done: str = "written") -> Iterator[None]:
    """Turn failures of the disk into JournalError; `done` says what could not be done with the journal."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if isinstance(error, sqlite3.DatabaseError) and code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            raise ModelFileError(f"the journal is damaged ({error}). Restore a copy of it.") from error
        full = code == sqlite3.SQLITE_FULL
        remedy = "Make room on the disk, then try again." if full else f"Check that its folder can be {done}."
        raise JournalError(
            f"the journal could not be {done} ({error}), so nothing was changed. {remedy}", full=full
        ) from error


# -- the model file ----------------------------------------------------------------------------------------------------
ENDING = ".snapshot"
SNAPSHOT_LESSONS = 20_000  # new lessons after which a snapshot is written
SNAPSHOT_SECONDS = 300.0  # time after which one is written if there are new lessons


def file_digest(path: Path) -> str:
    """Return the digest of a model file: of its header, which holds the digest of the arrays."""
    container = open_container(path)
    return blake2b(container.model.encode() + container.digest.encode(), digest_size=32).hexdigest()


class ModelFile:
    """A model file that only this process changes; a lock on it keeps others away."""

    def __init__(self, path: Path) -> None:
        self.path = Path(os.path.realpath(path))
        self.beside = self.path.with_name(f"{self.path.name}{ENDING}")
        self.note = describe(self.path)["note"]
        self._held = _locked(self.path)
        if not self._is_ours():
            raise _changed(self.path)
        self._lock = threading.Lock()
        with suppress(OSError):
            self.beside.unlink()  # left by a process that was killed

    @property
    def size(self) -> int:
        """Size of the file in bytes."""
        return self.path.stat().st_size

    def save(self, clf: Any, journal: Journal, lesson: int) -> None:
        """Replace the file by a model that contains all lessons up to this one."""
        with self._lock:
            if not self._is_ours():
                raise _changed(self.path)
            try:
                save(clf, self.beside, note=self.note)
                held = _locked(self.beside)  # the lock stays on the file when it is renamed
                digest = file_digest(self.beside)
                journal.record_snapshot(digest, lesson)
                os.replace(self.beside, self.path)
                sync_folder(self.path.parent)
            except SaveError:
                raise
            except OSError as error:
                raise SaveError(f"{self.path} could not be replaced ({error.strerror}).") from error
            self._held, old = held, self._held
            old.close()
            journal.forget_snapshots(but=digest)

    def close(self) -> None:
        """Release the lock."""
        self._held.close()

    def _is_ours(self) -> bool:
        try:
            return os.path.samestat(os.fstat(self._held.fileno()), os.stat(self.path))
        except FileNotFoundError:
            return False


class Snapshots:
    """Snapshots of one service, written by a separate thread while lessons continue.

    Only the thread of the teacher calls the methods; any thread may read the attributes.

    Parameters
    ----------
    file : ModelFile
        The file.
    journal : Journal
        Its journal.
    clf : GenerativeClassifier
        The classifier whose parameters the file holds.
    saved : int
        The last lesson that the file contains.
    seconds : float
        After so much time with lessons, and after `SNAPSHOT_LESSONS`, a snapshot is due.
    """

    def __init__(
        self, file: ModelFile, journal: Journal, clf: GenerativeClassifier, saved: int, seconds: float
    ) -> None:
        self.file, self.journal, self.clf, self.saved, self.seconds = file, journal, clf, saved, seconds
        self.error = ""
        self._saved_at = time.monotonic()
        self._thread: threading.Thread | None = None

    def begin_if_due(self, model: Model, lesson: int) -> None:
        """Begin to write a model in another thread if many lessons are new, or if the last snapshot is old."""
        new, age = lesson - self.saved, time.monotonic() - self._saved_at
        if new and (new >= SNAPSHOT_LESSONS or age >= self.seconds):
            self.begin(model, lesson)

    def begin(self, model: Model, lesson: int) -> None:
        """Begin to write a model in another thread, unless one is being written."""
        if self.writing:
            return
        self._thread = threading.Thread(target=self._try, args=(model, lesson), name="snapshot", daemon=True)
        self._thread.start()

    @property
    def writing(self) -> bool:
        """Whether a snapshot is being written by the other thread."""
        return self._thread is not None and self._thread.is_alive()

    def write(self, model: Model, lesson: int) -> None:
        """Wait for the snapshot that is being written, then write this one before returning."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self._write(model, lesson)

    def finish(self, model: Model, lesson: int) -> None:
        """Write the last snapshot, if lessons are new; `error` says why it could not be written."""
        if self._thread is not None:
            self._thread.join()
        if self.saved < lesson:
            self._try(model, lesson)

    def _try(self, model: Model, lesson: int) -> None:
        try:
            self._write(model, lesson)
        except Exception as error:  # the journal has the lessons; the next attempt may succeed
            if not isinstance(error, DecibanError | OSError):
                logging.getLogger("deciban.service").exception("internal error while writing the model file")
            self.error, self._saved_at = str(error), time.monotonic()

    def _write(self, model: Model, lesson: int) -> None:
        self.file.save(copy(self.clf).use(Predictor(model)), self.journal, lesson)
        self.saved, self._saved_at, self.error = lesson, time.monotonic(), ""


def _locked(path: Path) -> IO[bytes]:
    file = open(path, "rb")  # noqa: SIM115  it holds the lock
    if fcntl is not None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise ModelFileError(
                f"{path} is used by another deciban process.", remedy="Stop that process, or serve a copy of the file."
            ) from None
    return file


def _changed(path: Path) -> ModelFileError:
    return ModelFileError(
        f"{path} was replaced by another process, so that it does not contain the lessons of this service.",
        remedy="Restore the file, or move it and its journal away and serve the new file.",
    )
