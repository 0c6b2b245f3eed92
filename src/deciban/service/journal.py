"""The journal: every lesson in a SQLite database, durable before it is acknowledged.

    lessons      one line for each change: learn, unlearn, correct, classes, erase
    snapshots    digest of a model file → id of the last lesson that it contains
    settings     secret of the receipts

The database is in WAL mode with synchronous=FULL: a transaction that was committed survives a crash of the process and
of the machine, and one that was not leaves nothing. Many lessons share one transaction (group commit). With
secure_delete, content that is removed is overwritten with zeros.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from deciban.errors import DecibanError, ModelFileError
from deciban.model.row_reader import Row
from deciban.service.classes import Label

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
    """One change of the model, as it is kept."""

    id: int
    kind: str  # learn, unlearn, correct, classes or erase
    rows: list[Row] | None  # None where a lesson has none, or where they were erased; None in the list, likewise
    labels: list[Label] | None  # of the rows; for "classes", the old and the new name
    was: list[Label] | None  # for "correct": the labels before
    who: str
    time: float  # seconds since 1970
    asked: list[list[Any]] | None = (
        None  # random sample: for each row in it, [row, log P(label), correct] before learning
    )
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
ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))  # made once
INSERT = f"insert into lessons ({', '.join(COLUMNS)}) values ({', '.join('?' * len(COLUMNS))})"
SELECT = f"select {', '.join(COLUMNS)} from lessons"


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

    @property
    def secret(self) -> bytes:
        """Random bytes of this journal: the key of receipts where the ledger has none."""
        with self._lock:
            return self._database.execute("select value from settings where name='secret'").fetchone()[0]

    def close(self) -> None:
        """Close the database; the write-ahead log is moved into it."""
        with self._lock:
            self._database.close()

    # -- writing ---------------------------------------------------------------------------------------------------
    def append(self, entries: Sequence[Entry]) -> None:
        """Write lessons in one transaction; when it returns they are on the disk. JournalError: none was written."""
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
            database.executemany(
                "update lessons set rows=?, labels=?, was=?, request=null where id=?",
                [(_stored(rows), _stored(labels), _stored(was), id) for id, rows, labels, was in erased],
            )
        with self._lock, _refusing():
            self._database.execute("vacuum")
            self._database.execute("pragma wal_checkpoint(truncate)").fetchall()

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
        with self._lock:
            return self._database.execute("select coalesce(max(id), 0) from lessons").fetchone()[0]

    def snapshot(self, digest: str) -> int | None:
        """Return the last lesson in the model file with this digest; None if the file is unknown."""
        with self._lock:
            found = self._database.execute("select lesson from snapshots where digest=?", (digest,)).fetchone()
        return None if found is None else found[0]

    @property
    def snapshots(self) -> int:
        """Number of model files known."""
        with self._lock:
            return self._database.execute("select count(*) from snapshots").fetchone()[0]

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

    def history(self, before: int | None, most: int) -> list[Entry]:
        """Return the latest lessons, latest first; those before an id if one is given."""
        if before is None:
            return self._entries("order by id desc limit ?", most)
        return self._entries("where id < ? order by id desc limit ?", before, most)

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
        with self._lock:
            found = self._database.execute(f"{SELECT} {condition}", values).fetchall()
        return [_entry(line) for line in found]


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
def _refusing() -> Iterator[None]:
    """Turn failures of the disk into JournalError."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if isinstance(error, sqlite3.DatabaseError) and code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            raise ModelFileError(f"the journal is damaged ({error}). Restore a copy of it.") from error
        full = code == sqlite3.SQLITE_FULL
        remedy = "Make room on the disk, then try again." if full else "Check that its folder can be written."
        raise JournalError(
            f"the journal could not be written ({error}), so nothing was changed. {remedy}", full=full
        ) from error
