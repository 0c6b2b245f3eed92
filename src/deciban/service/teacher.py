"""The teacher: the one thread that changes the model.

    lesson → checked on the next model → journal (one commit for many lessons) → acknowledged → published

A model is a value, so that the next model is computed before anything is written: a lesson that is refused leaves no
trace, and a lesson that cannot be written is not learnt. Readers use the published model, which is replaced by one
assignment; they take no lock.

While no lesson waits, the teacher computes what later requests need, in steps of a few milliseconds, and looks for a
lesson after each. Snapshots are written by a thread of their own.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from deciban.errors import DecibanError, ModelFileError, NotAvailableError
from deciban.families.fixed import is_released
from deciban.model.ledger import Key
from deciban.model.predictor import Predictor
from deciban.model.row_reader import Row, reader_of
from deciban.service.lessons import Lesson, Lessons, State, offered_weights, repeated
from deciban.service.published import Published
from deciban.service.storage import (
    SNAPSHOT_SECONDS,
    Entry,
    Journal,
    JournalError,
    ModelFile,
    Snapshots,
    file_digest,
    journal_path,
)
from deciban.store import describe, load

MOST_GROUPED = 1024  # lessons in one commit
MOST_WAITING = 20_000  # lessons in the queue
PUBLISH_SECONDS = 0.05  # longest time for which lessons are learnt before they are published
IDLE_SECONDS = 1.0  # pause after the last lesson, before tables for answers about many rows are computed
LARGE_FILE = 2**23  # bytes of a model for which kernels for many rows are loaded before the first request
REHEARSED = 512  # rows of the rehearsed request, and words of each row
LOG = logging.getLogger("deciban.service")
Result = Any  # (entry, whether it is a repetition), or an exception


class BusyError(DecibanError):
    """More lessons wait than the service accepts."""


@dataclass(frozen=True, eq=False)
class Ticket:
    """A lesson in the queue, and the future of its result."""

    lesson: Lesson
    future: Any


def deliver_here(results: list[tuple[Any, Result]]) -> None:
    """Set the results of futures in this thread."""
    for future, result in results:
        if future.done():  # cancelled
            continue
        if isinstance(result, BaseException):
            future.set_exception(result)
        else:
            future.set_result(result)


class Teacher:
    """Owner of the model of a service: takes lessons from a queue, and publishes models.

    Parameters
    ----------
    path : Path
        A model file; its journal is beside it.
    key : bytes, optional
        Key of the model's ledger, and of receipts.
    save_every : float, default=300
        Seconds after which lessons are written into the model file.
    """

    def __init__(self, path: Path, key: bytes | None = None, save_every: float = SNAPSHOT_SECONDS) -> None:
        self.deliver: Callable[[list[tuple[Any, Result]]], None] = deliver_here
        self.on_erase: Callable[[list[Row]], None] = lambda rows: None
        self.refused = 0
        self.groups = 0
        self.error = ""  # why the last lessons were not published; empty if they were
        self._queue: queue.Queue[Ticket | None] = queue.Queue(MOST_WAITING)
        self._changed = threading.Condition()
        self._lesson_steps: Iterator[None] | None = None  # work that a lesson interrupted
        self.file, self.save_every = ModelFile(path), save_every
        try:
            self._open(key)
        except BaseException:
            self.file.close()
            raise
        self._thread = threading.Thread(target=self._run, name="teacher", daemon=True)
        self._thread.start()

    # -- start and end ---------------------------------------------------------------------------------------------
    def _open(self, key: bytes | None) -> None:
        kind = describe(self.file.path)["kind"]
        if kind != "GenerativeClassifier":
            raise ModelFileError(f"{self.file.path} holds a {kind}; a service needs a GenerativeClassifier.")
        self.clf = load(self.file.path, key=key)
        self.reader = reader_of(self.clf.model_)
        self._is_large = self.file.size >= LARGE_FILE
        self._released = is_released(self.clf.model_.family)
        self.journal = Journal(journal_path(self.file.path))
        try:
            ledger_key, receipt_key = Key.of(self.clf.ledger or None), Key.of(key or self.journal.secret)
            self.lessons = Lessons(self.reader, self.journal, ledger_key, receipt_key)
            self._restore()
        except BaseException:
            self.journal.close()
            raise

    def _restore(self) -> None:
        """Start with the model of the file, then learn the lessons of the journal that it does not contain."""
        digest = file_digest(self.file.path)
        included = self.journal.snapshot(digest)
        if included is None:
            if self.journal.snapshots:
                raise ModelFileError(
                    f"{self.file.path} is not the model that its journal {self.journal.path.name} belongs to.",
                    remedy="Restore the model file, or move the journal away to start without its lessons.",
                )
            self.journal.record_snapshot(digest, 0)
            included = 0
        self.clf.predictor_.verify()
        state = State(self.clf.model_, included, tuple(self.journal.names()), offered_weights(self.journal))
        self._state = self.lessons.replayed(state, self.journal.after(included))
        self.snapshots = Snapshots(self.file, self.journal, self.clf, included, self.save_every)
        self._publish()
        if self.published.model.classes:
            self.published.predictor.complete()
        self._rehearse()
        for entry in self.journal.unfinished_erasures():
            self.snapshots.write(self._state.model, self._state.id)
            self._purge(entry)

    def close(self) -> None:
        """Finish the lessons in the queue, write a snapshot and release the files."""
        self._queue.put(None)
        self._thread.join()
        self.snapshots.finish(self._state.model, self._state.id)
        self.journal.close()
        self.file.close()

    # -- from other threads ----------------------------------------------------------------------------------------
    def submit(self, lesson: Lesson, future: Any) -> None:
        """Put a lesson into the queue; `future` gets its entry in the journal, and whether it is a repetition."""
        if self._released:
            raise NotAvailableError("this model was released: it has no sums, so it cannot learn or unlearn.")
        try:
            self._queue.put_nowait(Ticket(lesson, future))
        except queue.Full:
            raise BusyError(f"{MOST_WAITING:,} lessons wait to be learnt. Try again in a second.") from None

    @property
    def alive(self) -> bool:
        """Whether lessons are accepted."""
        return self._thread.is_alive()

    @property
    def waiting(self) -> int:
        """Approximate number of lessons in the queue."""
        return self._queue.qsize()

    @property
    def last(self) -> int:
        """The last lesson that is in the journal."""
        return self._state.id

    @property
    def saved(self) -> int:
        """The last lesson that the model file contains."""
        return self.snapshots.saved

    @property
    def problem(self) -> str:
        """What the operator should know: lessons that are not visible, or a snapshot that was not written."""
        return self.error or self.snapshot_error

    @property
    def snapshot_error(self) -> str:
        """Why the last snapshot was not written; empty if it was."""
        return self.snapshots.error

    def wait_for(self, version: int, seconds: float) -> bool:
        """Wait until a lesson is published."""
        with self._changed:
            return self._changed.wait_for(lambda: self.published.version >= version, seconds)

    # -- the thread ------------------------------------------------------------------------------------------------
    def _run(self) -> None:
        published, ending = time.monotonic(), False
        while not ending:
            group, ending = self._group(self._next())
            try:
                if group:
                    self._teach(group)
                due = ending or self._queue.empty() or time.monotonic() - published > PUBLISH_SECONDS
                if due and self.published.version < self._state.id:
                    self._publish()
                    published = time.monotonic()
                if not ending:
                    self.snapshots.begin_if_due(self._state.model, self._state.id)
                if self.published.version == self._state.id:
                    self.error = ""
            except Exception as error:  # lessons in the journal are kept; the thread goes on
                LOG.exception("internal error after learning")
                self.error = str(error)

    def _next(self) -> Ticket | None:
        """Wait for a lesson; do other work until one comes."""
        try:
            for seconds in self._other_work():
                with suppress(queue.Empty):
                    return self._queue.get(seconds > 0, seconds)
        except Exception:
            LOG.exception("internal error while no lesson waits")
            self._lesson_steps = None
        return self._queue.get()

    def _other_work(self) -> Iterator[float]:
        """Do other work in small steps; yield after each the seconds to wait for a lesson before the next one."""
        predictor = self.published.predictor
        if self._is_large:  # first: the changes of a lesson are known only until the table of counts is copied
            yield from self._digest_steps()
        if self.published.model.classes:
            steps = self._lesson_steps = self._lesson_steps or predictor.lesson_steps()
            for _ in steps:  # continues where a lesson interrupted it
                yield 0.0
            self._lesson_steps = None
            yield IDLE_SECONDS
            for _ in predictor.table_steps():
                yield 0.0
        yield from self._digest_steps()
        while True:
            self.snapshots.begin_if_due(self._state.model, self._state.id)
            yield self.save_every / 10

    def _digest_steps(self) -> Iterator[float]:
        """Compute the digest of the sums, which the next receipt needs."""
        if not self._released:
            for _ in self.lessons.sums_digests.steps(self._state.model):
                yield 0.0

    def _group(self, first: Ticket | None) -> tuple[list[Ticket], bool]:
        """Take lessons from the queue, up to a limit; return them, and whether the service stops."""
        group: list[Ticket] = []
        ticket = first
        while ticket is not None:
            group.append(ticket)
            if len(group) >= MOST_GROUPED:
                return group, False
            try:
                ticket = self._queue.get_nowait()
            except queue.Empty:
                return group, False
        return group, True

    def _teach(self, group: list[Ticket]) -> None:
        """Learn, write and acknowledge a group of lessons."""
        self.groups += 1
        try:
            made = Group(self.lessons, self._state, self.published)
            made.add(group)
            if made.entries:
                self.journal.append(made.entries)
        except Exception as error:  # nothing was written: no lesson of the group is learnt
            if not isinstance(error, DecibanError):
                LOG.exception("internal error while learning")
            self.refused += len(group)
            self.deliver([(ticket.future, error) for ticket in group])
            return
        self._state = made.state
        results = made.results
        self.refused += sum(isinstance(result, BaseException) for _, result in results)
        erasures = [entry for entry in made.entries if entry.kind == "erase"]
        if erasures:
            results = self._finish_erasures(erasures, results)
        self.deliver(results)

    # -- erasure ---------------------------------------------------------------------------------------------------
    def _finish_erasures(
        self, erasures: Sequence[Entry], results: list[tuple[Any, Result]]
    ) -> list[tuple[Any, Result]]:
        """Write a model file without the rows, then remove them from the journal."""
        try:
            self._publish()
            self.snapshots.write(self._state.model, self._state.id)
            for entry in erasures:
                self._purge(entry)
        except (DecibanError, OSError) as error:
            failure = JournalError(
                f"the rows were unlearnt, but their traces could not be removed from the disk ({error}). "
                "They are removed when the service starts again with a writable disk.",
                full=getattr(error, "full", False),
            )
            ids = {entry.id for entry in erasures}
            return [(f, failure if isinstance(r, tuple) and r[0].id in ids else r) for f, r in results]
        return results

    def _purge(self, entry: Entry) -> None:
        self.on_erase([row for row in entry.rows or [] if row is not None])
        self.journal.purge(list(self.lessons.purged(entry)))

    # -- publishing ------------------------------------------------------------------------------------------------
    def _publish(self) -> None:
        state = self._state
        predictor = Predictor(state.model)
        if state.model.classes:
            predictor.density  # noqa: B018  estimated here, so that readers do not wait for it
            self._warm(predictor)
        with self._changed:
            self.published = Published(
                predictor, state.id, state.names, dict(state.offered), self.reader, self.clf.prior, self.clf.cost
            )
            self._changed.notify_all()

    def _warm(self, predictor: Predictor, rows: int = 1) -> None:
        """Score texts, so that tables that a density computes at its first use are ready for the first request."""
        row = self._text_row(words=rows)
        if row is not None:
            predictor.scores(predictor.model.encode(self.reader.table([row] * rows)))

    def _rehearse(self) -> None:
        """Learn a text and discard the result, so that tables of words are ready before the first lesson."""
        row, model = self._text_row(), self._state.model
        if row is None or not model.classes:
            return
        if self._is_large:
            self._warm(self.published.predictor, REHEARSED)
        if not self._released:
            lesson = Lesson("learn", [row], [str(self._state.names.name(model.classes[0]))])
            state = self._state
            for _ in range(2):  # a model from a file and a model that has learnt run different code
                _, state = self.lessons.learn([lesson], state, self.published)
                self._warm(Predictor(state.model))

    def _text_row(self, words: int = 1) -> Row | None:
        """Return a row of a model that reads texts; None for other models."""
        text = " ".join("a" * words)
        if self.reader.texts:
            return text
        schema = self.reader.reader.schema
        texts = [] if schema is None else [column.name for column in schema.columns if column.kind == "text"]
        return dict.fromkeys(texts, text) if texts else None


class Group:
    """Lessons that are written together: the state after them, their entries, and the result of each."""

    def __init__(self, lessons: Lessons, state: State, published: Published) -> None:
        self.lessons, self.state, self.published = lessons, state, published
        self.entries: list[Entry] = []
        self.results: list[tuple[Any, Result]] = []

    def add(self, tickets: Sequence[Ticket]) -> None:
        """Learn lessons in their order; consecutive ones in one step."""
        firsts: dict[str, Ticket] = {}
        again: list[Ticket] = []
        run: list[Ticket] = []
        for ticket in tickets:
            key = ticket.lesson.key
            if key is not None:
                if key in firsts:
                    again.append(ticket)
                    continue
                firsts[key] = ticket
                earlier = self.lessons.journal.with_key(key)
                if earlier is not None:
                    self.results.append((ticket.future, repeated(ticket.lesson, earlier)))
                    continue
            if ticket.lesson.kind == "learn":
                run.append(ticket)
                continue
            self._learn(run)
            run = []
            self._change(ticket)
        self._learn(run)
        found = dict(self.results)
        for ticket in again:
            first = found[firsts[ticket.lesson.key or ""].future]
            self.results.append(
                (ticket.future, first if isinstance(first, BaseException) else repeated(ticket.lesson, first[0]))
            )

    def _learn(self, run: Sequence[Ticket]) -> None:
        """Learn several lessons in one step; if one of them is refused, one at a time."""
        if not run:
            return
        try:
            made, self.state = self.lessons.learn([ticket.lesson for ticket in run], self.state, self.published)
        except Exception as error:
            if len(run) > 1:
                for ticket in run:
                    self._learn([ticket])
                self.state = replace(self.state, before=None)
            else:
                self._refuse(run[0], error)
            return
        for ticket, entry in zip(run, made):
            self._accept(ticket, entry)

    def _change(self, ticket: Ticket) -> None:
        try:
            entry, self.state = self.lessons.change(ticket.lesson, self.state, self.entries)
        except Exception as error:
            self._refuse(ticket, error)
        else:
            self._accept(ticket, entry)

    def _accept(self, ticket: Ticket, entry: Entry) -> None:
        self.entries.append(entry)
        self.results.append((ticket.future, (entry, False)))

    def _refuse(self, ticket: Ticket, error: Exception) -> None:
        if isinstance(error, JournalError):
            raise error
        if not isinstance(error, DecibanError):  # an internal error refuses only this lesson
            LOG.error("internal error while learning", exc_info=error)
        self.results.append((ticket.future, error))
