"""The teacher: the one thread that changes the model.

    lesson → checked on the next model → journal (one commit for many lessons) → acknowledged → published

A model is a value, so that the next model is computed before anything is written: a lesson that is refused leaves no
trace, and a lesson that cannot be written is not learnt. Readers use the published model, which is replaced by one
assignment; they take no lock.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from json import dumps
from pathlib import Path
from typing import Any

import numpy as np

from deciban.errors import HERE, DecibanError, InputError, ModelFileError, NotAvailableError
from deciban.evidence.decisions import resolve_prior
from deciban.evidence.scores import log_posterior, log_probability
from deciban.families.released import is_released
from deciban.model.ledger import Key
from deciban.model.model import Model
from deciban.model.predictor import Predictor
from deciban.read.batches import Batch
from deciban.service.classes import ClassNames, Grouping
from deciban.service.journal import Entry, Journal, JournalError
from deciban.service.receipts import Receipt, digest_of, journal_path, row_digests, sums_digest, timestamp
from deciban.service.rows import Label, Row, RowReader, class_label, reader_of
from deciban.service.snapshots import ModelFile, file_digest
from deciban.statistics import Array
from deciban.store import load

MOST_GROUPED = 1024  # lessons in one commit
MOST_WAITING = 20_000  # lessons in the queue
PUBLISH_SECONDS = 0.05  # at most this long are lessons learnt before they are published
SNAPSHOT_LESSONS = 20_000
SNAPSHOT_SECONDS = 300.0
ASK_ONE_IN = 20  # rows whose class is asked of everybody: a random sample
REPLAYED_ROWS = 4096  # rows learnt at a time when the journal is replayed


class BusyError(DecibanError):
    """More lessons wait than the service accepts."""


class ConflictError(DecibanError):
    """A request that contradicts an earlier one: a key with another body, or an undo of what is undone."""


@dataclass(frozen=True, eq=False)
class Published:
    """What readers use: a model with its density, names of classes, and which lessons it contains."""

    predictor: Predictor
    version: int  # id of the last lesson that it contains
    names: ClassNames
    offered: Mapping[Any, float]  # label → weight of learnt rows that were offered as unsure
    reader: RowReader
    prior: Any  # parameters of the classifier
    cost: Any

    @property
    def model(self) -> Model:
        """The model."""
        return self.predictor.model

    @property
    def grouping(self) -> Grouping:
        """The classes as they are shown."""
        return Grouping.of(self.names, self.model.classes)

    @property
    def counts(self) -> Array:
        """Weight of the rows of each class that the class prior rests on, (K,): without offered rows."""
        offered = np.array([self.offered.get(label, 0.0) for label in self.model.classes])
        rows = np.asarray(self.model.stats.rows, dtype=float)
        left = np.maximum(rows - offered, 0.0)
        return left if left.sum() > 0 else rows


@dataclass(frozen=True, eq=False)
class Lesson:
    """A change that is asked for."""

    kind: str  # learn, unlearn, correct, undo, classes or erase
    rows: list[Row] = field(default_factory=list)
    labels: list[Any] = field(default_factory=list)
    was: list[Any] = field(default_factory=list)
    who: str = ""
    offered: bool = False
    undoes: int | None = None
    key: str | None = None
    request: bytes = b""


@dataclass(frozen=True, eq=False)
class State:
    """The model of the teacher and what belongs to it; replaced when a group of lessons was written."""

    model: Model
    names: ClassNames
    offered: Mapping[Any, float]


@dataclass(eq=False)
class Ticket:
    """A lesson in the queue, and the future of its result: an `Entry`, and whether it is a repetition."""

    lesson: Lesson
    future: Any


Deliver = Callable[[list[tuple[Any, Any]]], None]


def deliver_here(results: list[tuple[Any, Any]]) -> None:
    """Set the results of futures that any thread may set."""
    for future, result in results:
        settle(future, result)


def settle(future: Any, result: Any) -> None:
    """Set the result or the exception of a future that nobody cancelled."""
    if future.done():
        return
    if isinstance(result, BaseException):
        future.set_exception(result)
    else:
        future.set_result(result)


class Teacher:
    """The model of a service: lessons come in, published models go out."""

    def __init__(self, path: Path, key: bytes | None = None, *, deliver: Deliver = deliver_here) -> None:
        self.deliver = deliver
        self.file = ModelFile(path)
        try:
            self._open(key)
        except BaseException:
            self.file.close()
            raise
        self._thread = threading.Thread(target=self._run, name="teacher", daemon=True)
        self._thread.start()

    # -- start and end ---------------------------------------------------------------------------------------------
    def _open(self, key: bytes | None) -> None:
        self.clf = load(self.file.path, key=key)
        self.reader = reader_of(self.clf)
        self.ledger_key = Key.of(self.clf.ledger or None)
        self.journal = Journal(journal_path(self.file.path))
        self.receipt_key = Key.of(key or self.journal.secret)
        self.refused = 0
        self.groups = 0
        self.snapshot_error = ""
        self.on_erase: Callable[[list[Row]], None] = lambda rows: None
        self._queue: queue.Queue[Ticket | None] = queue.Queue(MOST_WAITING)
        self._last_digest: tuple[Model, str] | None = None
        self._changed = threading.Condition()
        self._alone: tuple[int, Model] | None = None
        try:
            self._restore()
        except BaseException:
            self.journal.close()
            raise

    def _restore(self) -> None:
        """Load the snapshot, then learn the lessons of the journal that it does not contain."""
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
        self._state = State(self.clf.model_, ClassNames(), {})
        self._id = included
        self._replay(included)
        self._saved, self._saved_at = included, time.monotonic()
        self._state = replace(self._state, names=self._names(), offered=self._offered())
        self._publish()
        for entry in self.journal.unfinished_erasures():
            self._snapshot()
            self._purge(entry)

    def _replay(self, included: int) -> None:
        model, waiting = self._state.model, []
        size = 0
        for entry in self.journal.after(included):
            self._id = entry.id
            if waiting and entry.undoes == waiting[-1].id:  # learnt and undone at once: as if neither had been
                waiting.pop()
                continue
            if entry.kind == "learn" and size < REPLAYED_ROWS:
                waiting.append(entry)
                size += len(entry.rows or ())
                continue
            model = self._replayed(model, waiting)
            waiting, size = [], 0
            if entry.kind == "learn":
                waiting, size = [entry], len(entry.rows or ())
            else:
                model = self._changed_model(model, entry)
        self._state = replace(self._state, model=self._replayed(model, waiting))

    def _replayed(self, model: Model, entries: Sequence[Entry]) -> Model:
        if not entries:
            return model
        rows = [row for entry in entries for row in entry.rows or ()]
        labels = [label for entry in entries for label in entry.labels or ()]
        return self._learnt(model, rows, labels)

    def close(self) -> None:
        """Finish the lessons in the queue, write a snapshot and give the files back."""
        self._queue.put(None)
        self._thread.join()
        try:
            if self._saved < self._id:
                self._snapshot()
        except (DecibanError, OSError) as error:
            self.snapshot_error = str(error)
        self.journal.close()
        self.file.close()

    # -- from other threads ----------------------------------------------------------------------------------------
    def submit(self, lesson: Lesson, future: Any) -> None:
        """Put a lesson into the queue; `future` is given its result when it is in the journal."""
        if is_released(self.published.model.family):
            raise NotAvailableError("this model was released: it has no sums, so it cannot learn or unlearn.")
        try:
            self._queue.put_nowait(Ticket(lesson, future))
        except queue.Full:
            raise BusyError(f"{MOST_WAITING:,} lessons wait to be learnt. Try again in a second.") from None

    @property
    def alive(self) -> bool:
        """Whether lessons are taken."""
        return self._thread.is_alive()

    @property
    def waiting(self) -> int:
        """Number of lessons in the queue, about."""
        return self._queue.qsize()

    @property
    def saved(self) -> int:
        """The last lesson that the model file contains."""
        return self._saved

    def wait_for(self, version: int, seconds: float) -> bool:
        """Wait until a lesson is published."""
        with self._changed:
            return self._changed.wait_for(lambda: self.published.version >= version, seconds)

    # -- the thread ------------------------------------------------------------------------------------------------
    def _run(self) -> None:
        published = time.monotonic()
        while True:
            try:
                first = self._queue.get(timeout=SNAPSHOT_SECONDS / 10)
            except queue.Empty:
                self._snapshot_if_due()
                continue
            group, ending = self._group(first)
            if group:
                self._teach(group)
            now = time.monotonic()
            if self.published.version < self._id and (
                ending or self._queue.empty() or now - published > PUBLISH_SECONDS
            ):
                self._publish()
                published = time.monotonic()
            if ending:
                return
            self._snapshot_if_due()

    def _group(self, first: Ticket | None) -> tuple[list[Ticket], bool]:
        """Take the lessons that wait, up to a limit."""
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
        state, id = self._state, self._id
        entries: list[Entry] = []
        results: list[tuple[Any, Any]] = []
        firsts: dict[str, Ticket] = {}
        repeated: list[Ticket] = []
        run: list[Ticket] = []

        def finish_run() -> None:
            nonlocal state, id
            if run:
                state, id = self._learn_run(run, state, id, entries, results)
                run.clear()

        try:
            for ticket in group:
                key = ticket.lesson.key
                if key is not None:
                    if key in firsts:
                        repeated.append(ticket)
                        continue
                    firsts[key] = ticket
                    earlier = self.journal.with_key(key)
                    if earlier is not None:
                        results.append((ticket.future, _repeated(ticket.lesson, earlier)))
                        continue
                if ticket.lesson.kind == "learn":
                    run.append(ticket)
                    continue
                finish_run()
                try:
                    entry, state = self._changed_by(ticket.lesson, state, id + 1, entries)
                except DecibanError as error:
                    results.append((ticket.future, error))
                    continue
                id = entry.id
                entries.append(entry)
                results.append((ticket.future, (entry, False)))
            finish_run()
            if entries:
                self.journal.append(entries)
        except DecibanError as error:  # nothing was written: no lesson of the group is learnt
            self.refused += len(group)
            self.deliver([(ticket.future, error) for ticket in group])
            return
        except Exception as error:
            logging.getLogger("deciban.service").exception("internal error while learning")
            self.deliver([(ticket.future, error) for ticket in group])
            return
        one = len(entries) == 1 and entries[0].kind == "learn"
        if entries:
            self._alone = (id, self._state.model) if one else None
        self._state, self._id = state, id
        found = dict(results)
        for ticket in repeated:
            first = found[firsts[ticket.lesson.key or ""].future]
            again = first if isinstance(first, BaseException) else _repeated(ticket.lesson, first[0])
            results.append((ticket.future, again))
        self.refused += sum(isinstance(result, BaseException) for _, result in results)
        erasures = [entry for entry in entries if entry.kind == "erase"]
        if erasures:
            results = self._finish_erasures(erasures, results)
        self.deliver(results)

    def _learn_run(
        self,
        run: list[Ticket],
        state: State,
        id: int,
        entries: list[Entry],
        results: list[tuple[Any, Any]],
    ) -> tuple[State, int]:
        """Learn several lessons in one step; if one is refused, each by itself."""
        try:
            made, state = self._learn_all([ticket.lesson for ticket in run], state, id)
            outcomes: list[Any] = list(made)
        except Exception as error:
            if len(run) == 1:
                outcomes = [error]
            else:
                outcomes = []
                for ticket in run:
                    try:
                        made, state = self._learn_all([ticket.lesson], state, id)
                        outcomes += made
                        id = made[0].id
                    except Exception as own:  # an internal error of one lesson is not that of the others
                        outcomes.append(own)
        for ticket, outcome in zip(run, outcomes):
            if isinstance(outcome, Entry):
                id = outcome.id
                entries.append(outcome)
                results.append((ticket.future, (outcome, False)))
            else:
                results.append((ticket.future, outcome))
        return state, id

    def _learn_all(self, lessons: Sequence[Lesson], state: State, id: int) -> tuple[list[Entry], State]:
        labels = [self._labels(lesson.labels, len(lesson.rows), state, new=True) for lesson in lessons]
        rows = [row for lesson in lessons for row in lesson.rows]
        model = self._learnt(state.model, rows, [label for some in labels for label in some])
        sampled = self._asked([(lesson.rows, some) for lesson, some in zip(lessons, labels)], state)
        now, offered = time.time(), dict(state.offered)
        made = []
        for lesson, some, asked in zip(lessons, labels, sampled):
            id += 1
            kept = [self.reader.kept(row) for row in lesson.rows]
            biased = lesson.offered and asked is None
            if biased:
                for label in some:
                    offered[label] = offered.get(label, 0.0) + 1.0
            made.append(
                Entry(
                    id,
                    "learn",
                    kept,
                    some,
                    None,
                    lesson.who,
                    now,
                    asked,
                    biased,
                    key=lesson.key,
                    request=lesson.request,
                )
            )
        return made, replace(state, model=model, offered=offered)

    # -- single changes --------------------------------------------------------------------------------------------
    def _changed_by(self, lesson: Lesson, state: State, id: int, pending: Sequence[Entry]) -> tuple[Entry, State]:
        """Return the journal's entry of a change, and the state after it."""
        if lesson.kind == "classes":
            return self._change_names(lesson, state, id)
        undoes = None
        if lesson.undoes is not None:
            undoes = next((e for e in pending if e.id == lesson.undoes), None) or self.journal.entry(lesson.undoes)
            if undoes is None:
                raise ConflictError(f"there is no lesson {lesson.undoes}.", remedy="Give the id of a lesson.")
            undone = undoes.undone or next((e.id for e in pending if e.undoes == undoes.id), None)
            if undone is not None and lesson.kind != "erase":
                raise ConflictError(
                    f"lesson {undoes.id} was undone already, by lesson {undone}.", remedy="Undo that one instead."
                )
            if lesson.kind == "undo" and undoes.kind == "classes":
                return self._undo_names(lesson, undoes, state, id)
        entry = self._entry(lesson, undoes, state, id)
        gone = entry.kind == "erase" and undoes is not None and undoes.undone is not None
        if gone:
            after = state.model
        elif self._alone is not None and lesson.undoes == self._alone[0] == id - 1:
            after = self._alone[1]  # the lesson before this one: the model before it is known to the bit
        else:
            after = self._changed_model(state.model, entry)
        new = replace(state, model=after, offered=_offered_after(state.offered, undoes))
        if entry.kind == "learn":
            return entry, new
        receipt = self._receipt(entry, state.model, after).content()
        # without labels, an erasure removes traces of rows that were unlearnt before
        return replace(entry, receipt=receipt, labels=None if gone else entry.labels), new

    def _entry(self, lesson: Lesson, undoes: Entry | None, state: State, id: int) -> Entry:
        """Return the entry of a change, without its receipt."""
        kind, rows, was = lesson.kind, lesson.rows, None
        if undoes is not None:
            if undoes.rows is None or None in undoes.rows:
                raise ConflictError(f"the rows of lesson {undoes.id} were erased.", remedy="Send the rows themselves.")
            if undoes.kind == "erase":
                raise ConflictError(f"lesson {undoes.id} is an erasure, which cannot be undone.")
            rows, labels = undoes.rows, undoes.labels or []
            if kind == "undo":
                kind = {"learn": "unlearn", "unlearn": "learn", "correct": "correct"}[undoes.kind]
            if undoes.kind == "correct" and kind == "correct":
                labels, was = undoes.was or [], undoes.labels
        else:
            labels = self._labels(lesson.labels, len(rows), state, new=kind == "correct")
            if kind == "correct":
                was = self._labels(lesson.was, len(rows), state, new=False)
            rows = [self.reader.kept(row) for row in rows]
        return Entry(
            id,
            kind,
            list(rows),
            list(labels),
            was,
            lesson.who,
            time.time(),
            undoes=None if undoes is None or (lesson.kind == "erase" and undoes.undone is not None) else undoes.id,
            key=lesson.key,
            request=lesson.request,
        )

    def _changed_model(self, model: Model, entry: Entry) -> Model:
        """Return the model after an entry; also when the journal is replayed."""
        if entry.kind == "classes":
            return model
        rows, labels = entry.rows or [], entry.labels or []
        if not labels or None in rows:
            return model
        if entry.kind == "learn":
            return self._learnt(model, rows, labels)
        table = self.reader.table(rows, strict=False)
        if entry.kind == "correct":
            return model.correct(Batch(table, _label_array(entry.was or [])), _label_array(labels), self.ledger_key)
        return model.unlearn(Batch(table, _label_array(labels)), self.ledger_key)

    def _learnt(self, model: Model, rows: Sequence[Row], labels: Sequence[Label]) -> Model:
        batch = Batch(self.reader.table(rows), _label_array(labels))
        return model.learn(model.lesson(batch), self.ledger_key)

    def _labels(self, given: Sequence[Any], n: int, state: State, *, new: bool) -> list[Label]:
        """Return labels of the model for labels as they are shown."""
        if len(given) != n:
            raise InputError(f"{n} rows came with {len(given)} labels.", remedy="Give one label a row.")
        schema, classes = self.reader.reader.schema, state.model.classes
        made = []
        for at, label in enumerate(given):
            known = state.names.label(str(label), classes) if isinstance(label, str | int) else None
            try:
                made.append(class_label(label if known is None else known, classes, schema, new=new))
            except DecibanError as error:
                raise error.but(HERE, ": ", *error.args, row=at) from None
        if len({type(label) for label in made}) > 1:
            raise InputError("some labels are texts and others numbers.", remedy="Give all of them in one form.")
        return made

    def _receipt(self, entry: Entry, before: Model, after: Model) -> Receipt:
        table = self.reader.table(entry.rows or [], strict=False)
        labels = entry.was if entry.kind == "correct" else entry.labels
        first = self._digest(before)
        second = first if after is before else self._digest(after)
        receipt = Receipt(
            entry.id,
            entry.kind,
            timestamp(entry.time),
            tuple(row_digests(table, before.reader.columns, labels or [], self.receipt_key)),
            self.receipt_key.id,
            first,
            second,
            None if after.calibration is None else digest_of(after.calibration),
            entry.undoes,
            tuple(self._traces(entry)) if entry.kind == "erase" else None,
        )
        return receipt.sealed(self.receipt_key)

    def _digest(self, model: Model) -> str:
        """Return the digest of a model's sums; that of the last model asked for is kept, the next receipt needs it."""
        if self._last_digest is not None and self._last_digest[0] is model:
            return self._last_digest[1]
        made = sums_digest(model.stats)
        self._last_digest = model, made
        return made

    # -- names of classes ------------------------------------------------------------------------------------------
    def _change_names(self, lesson: Lesson, state: State, id: int) -> tuple[Entry, State]:
        was, now = (str(label) for label in lesson.labels)
        class_label(now, [], None, new=True)  # checks the name
        names = state.names.renamed(was, now, state.model.classes)
        labels = [label for label in map(str, state.model.classes) if state.names.name(label) == was]
        entry = Entry(
            id,
            "classes",
            None,
            [was, now],
            list(labels),
            lesson.who,
            time.time(),
            key=lesson.key,
            request=lesson.request,
        )
        return entry, replace(state, names=names)

    def _undo_names(self, lesson: Lesson, undoes: Entry, state: State, id: int) -> tuple[Entry, State]:
        was, now = undoes.labels or ["", ""]
        left = [entry for entry in self.journal.names() if entry.id != undoes.id]
        entry = Entry(
            id, "classes", None, [now, was], undoes.was, lesson.who, time.time(), undoes=undoes.id, key=lesson.key,
            request=lesson.request,
        )  # fmt: skip
        return entry, replace(state, names=_names_of(left))

    def _names(self) -> ClassNames:
        return _names_of(self.journal.names())

    def _offered(self) -> dict[Any, float]:
        found: dict[Any, float] = {}
        for entry in self.journal.offered():
            for label in entry.labels or ():
                if label is not None:
                    found[label] = found.get(label, 0.0) + 1.0
        return found

    # -- erasure ---------------------------------------------------------------------------------------------------
    def _traces(self, entry: Entry) -> list[int]:
        """Return the lessons that hold a row of an erasure, under any label."""
        return [id for id, *_ in self._without(entry)]

    def _without(self, entry: Entry) -> list[tuple[int, list[Row | None], list[Any] | None, list[Any] | None]]:
        """Return the lessons that hold a row of an erasure, with rows and labels that are left."""
        wanted = set(self._unlabelled(entry.rows or []))
        found = []
        for other in self.journal.after(0):
            if other.rows is None or other.id == entry.id:
                continue
            held = [row for row in other.rows if row is not None]
            if not held or not wanted & set(self._unlabelled(held)):
                continue
            digests = iter(self._unlabelled(held))
            gone = [row is None or next(digests) in wanted for row in other.rows]
            found.append((other.id, _left(other.rows, gone) or [], _left(other.labels, gone), _left(other.was, gone)))
        return found

    def _unlabelled(self, rows: Sequence[Row]) -> list[str]:
        table = self.reader.table(rows, strict=False)
        return row_digests(table, self._state.model.reader.columns, [0] * len(rows), self.receipt_key)

    def _finish_erasures(self, erasures: Sequence[Entry], results: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        """Write a model file without the rows, then remove them from the journal."""
        failure: DecibanError | None = None
        try:
            self._publish()
            self._snapshot()
            for entry in erasures:
                self._purge(entry)
        except DecibanError as error:
            failure = JournalError(
                f"the rows were unlearnt, but their traces could not be removed from the disk ({error}). "
                "They are removed when the service starts again with a writable disk.",
                full=getattr(error, "full", False),
            )
        if failure is None:
            return results
        ids = {entry.id for entry in erasures}
        return [(f, failure if isinstance(r, tuple) and r[0].id in ids else r) for f, r in results]

    def _purge(self, entry: Entry) -> None:
        self.on_erase([row for row in entry.rows or [] if row is not None])
        lines = self._without(entry)
        self.journal.purge([*lines, (entry.id, None, None, None)])  # type: ignore[list-item]

    # -- random sample ---------------------------------------------------------------------------------------------
    def is_asked(self, row: Row) -> bool:
        """Tell whether a row is in the random sample, whose class is asked of everybody: by a keyed digest."""
        return is_asked(self.receipt_key, self.reader.kept(row))

    def _asked(
        self, lessons: Sequence[tuple[Sequence[Row], Sequence[Label]]], state: State
    ) -> list[list[list[Any]] | None]:
        """Return for each lesson its rows in the random sample, with their scores before they were learnt."""
        places = [(at, j) for at, (rows, _) in enumerate(lessons) for j, row in enumerate(rows) if self.is_asked(row)]
        found: list[list[list[Any]] | None] = [None] * len(lessons)
        if not places:
            return found
        published = self.published
        predictor, classes = published.predictor, published.model.classes
        rows = [lessons[at][0][j] for at, j in places]
        likelihood = predictor.scores(predictor.model.encode(self.reader.table(rows)))
        prior = resolve_prior(published.prior, np.array(classes), published.counts)
        log_p = log_posterior(likelihood, log_probability(prior))
        place = {label: k for k, label in enumerate(classes)}
        for (at, j), scores in zip(places, log_p):
            k = place.get(lessons[at][1][j])
            if k is not None:
                own = float(max(scores[k], -700.0))
                found[at] = [*(found[at] or []), [j, own, bool(scores.argmax() == k)]]
        return found

    # -- publishing and snapshots ----------------------------------------------------------------------------------
    def _publish(self) -> None:
        state = self._state
        predictor = Predictor(state.model)
        if state.model.stats.rows.sum() > 0 or is_released(state.model.family):
            predictor.density  # noqa: B018  estimated here, so that readers do not wait for it
            self._warm(predictor)
        with self._changed:
            self.published = Published(
                predictor, self._id, state.names, dict(state.offered), self.reader, self.clf.prior, self.clf.cost
            )
            self._changed.notify_all()

    def _warm(self, predictor: Predictor) -> None:
        """Score a row, so that tables that a density makes at first use are made before readers need them."""
        form = self.reader.form
        row: Row = "a" if self.reader.texts else [0.0] * len(self.reader.columns) if form == "numbers" else {}
        if isinstance(row, dict):
            row = dict.fromkeys(self.reader.columns)
            schema = self.reader.reader.schema
            text = next((c.name for c in schema.columns if c.kind == "text"), None) if schema is not None else None
            if text is None:
                return
            row[text] = "a"
        predictor.scores(predictor.model.encode(self.reader.table([row])))

    def _snapshot_if_due(self) -> None:
        new = self._id - self._saved
        if new and (new >= SNAPSHOT_LESSONS or time.monotonic() - self._saved_at >= SNAPSHOT_SECONDS):
            try:
                self._snapshot()
            except (DecibanError, OSError) as error:  # the journal has the lessons; the next attempt may succeed
                self.snapshot_error = str(error)
                self._saved_at = time.monotonic()

    def _snapshot(self) -> None:
        lesson = self._id
        self.clf.use(Predictor(self._state.model))
        self.file.save(self.clf, self.journal, lesson)
        self._saved, self._saved_at, self.snapshot_error = lesson, time.monotonic(), ""


def is_asked(key: Key, row: Row) -> bool:
    """Tell whether a row is in the random sample: one in twenty, by a keyed digest of its content."""
    text = row if isinstance(row, str) else dumps(row, sort_keys=True, ensure_ascii=False)
    digest = key.digest(b"asked" + text.encode("utf-8", "surrogatepass"))
    return int.from_bytes(digest[:8], "little") % ASK_ONE_IN == 0


def _repeated(lesson: Lesson, earlier: Entry) -> Any:
    """Return the result of a lesson that was sent before, or the error for another lesson with the same key."""
    if earlier.request != lesson.request and earlier.request is not None:
        return ConflictError(
            f"the Idempotency-Key was used before, for another request (lesson {earlier.id}).",
            remedy="Send a new key with a new request.",
        )
    return earlier, True


def _offered_after(offered: Mapping[Any, float], undoes: Entry | None) -> Mapping[Any, float]:
    """Return the weights of offered rows after an unlearning of some."""
    if undoes is None or not undoes.offered or undoes.kind != "learn":
        return offered
    left = dict(offered)
    for label in undoes.labels or ():
        left[label] = max(0.0, left.get(label, 0.0) - 1.0)
    return left


def _left(values: Sequence[Any] | None, gone: Sequence[bool]) -> list[Any] | None:
    """Return values with None in the places of those that go."""
    return None if values is None else [None if out else value for value, out in zip(values, gone)]


def _names_of(entries: Sequence[Entry]) -> ClassNames:
    names = ClassNames()
    for entry in entries:
        for label in entry.was or ():
            names = names.shown_as(str(label), str((entry.labels or ["", ""])[1]))
    return names


def _label_array(labels: Sequence[Label]) -> Array:
    if labels and all(isinstance(label, int) for label in labels):
        return np.array(labels, dtype=np.int64)
    made = np.empty(len(labels), dtype=object)
    made[:] = labels
    return made
