"""Lessons: a requested change, the next model that it makes, and its entry in the journal.

`Lessons` computes and writes nothing. A request and the replay of the journal apply an entry by the same functions.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from json import dumps
from typing import Any

import numpy as np

from deciban.errors import HERE, DecibanError, InputError, NotLearntError
from deciban.evaluate.intervals import share_interval
from deciban.evaluate.report import LEVEL
from deciban.evidence.decisions import resolve_prior
from deciban.evidence.scores import log_posterior, log_probability
from deciban.model.ledger import Key
from deciban.model.model import Model
from deciban.model.row_reader import Row, RowReader
from deciban.read.batches import Batch
from deciban.service.published import ClassNames, Label, Published, class_label
from deciban.service.receipts import Receipt, SumsDigests, digest_of, row_digests, timestamp
from deciban.service.storage import Entry, Journal
from deciban.statistics import Array

MOST_FIGURED = 5000  # latest rows of the random sample, from which live figures are computed
ASK_ONE_IN = 20  # one row in this many is in the random sample; the service always asks for its class
SCANNED_ROWS = 4096  # rows of the journal that an erasure compares at a time
REPLAYED_ROWS = 4096  # rows learnt at a time when the journal is replayed
MOST_COPIES = 10_000  # copies of a row that one erasure removes


class ConflictError(DecibanError):
    """A request that contradicts an earlier one: a used key with another body, or an undo of an undone lesson."""


@dataclass(frozen=True, eq=False)
class Lesson:
    """A requested change."""

    kind: str  # learn, unlearn, correct, undo, classes or erase
    rows: list[Row] = field(default_factory=list)
    labels: list[Any] = field(default_factory=list)  # as they are shown; for "classes", the old and the new name
    was: list[Any] = field(default_factory=list)
    who: str = ""
    offered: bool = False
    undoes: int | None = None
    key: str | None = None
    request: bytes = b""

    def entry(self, id: int, kind: str, rows: list[Row] | None, labels: list[Any] | None, **more: Any) -> Entry:
        """Return the entry of the journal."""
        given = {"was": None, "key": self.key, "request": self.request} | more
        return Entry(id, kind, rows, labels, who=self.who, time=time.time(), **given)


@dataclass(frozen=True, eq=False)
class State:
    """The model after a lesson, with its names and offered rows; replaced after a group of lessons is written."""

    model: Model
    id: int  # id of the last lesson
    renames: tuple[Entry, ...] = ()  # changes of names that were not undone
    offered: Mapping[Any, float] = field(
        default_factory=dict
    )  # label → weight of learnt rows that were offered as unsure
    before: Model | None = None  # the model before the last lesson, if it was the only one of its group

    @property
    def names(self) -> ClassNames:
        """The names of the classes."""
        names = ClassNames()
        for entry in self.renames:
            for label in entry.was or ():
                names = names.shown_as(str(label), str((entry.labels or ["", ""])[1]))
        return names


class Lessons:
    """Computes states and entries for one model file."""

    def __init__(self, reader: RowReader, journal: Journal, ledger_key: Key, receipt_key: Key) -> None:
        self.reader, self.journal = reader, journal
        self.ledger_key, self.receipt_key = ledger_key, receipt_key
        self.sums_digests = SumsDigests()

    # -- learning --------------------------------------------------------------------------------------------------
    def learn(self, lessons: Sequence[Lesson], state: State, published: Published) -> tuple[list[Entry], State]:
        """Learn several lessons in one step; DecibanError if one is refused."""
        known: dict[tuple[type, Any], Label] = {}
        labels = [self._labels(lesson.labels, len(lesson.rows), state, new=True, known=known) for lesson in lessons]
        model = self._learnt(
            state.model,
            [row for lesson in lessons for row in lesson.rows],
            [label for some in labels for label in some],
        )
        _check_estimates(model)
        sampled = self._asked([(lesson.rows, some) for lesson, some in zip(lessons, labels)], published)
        offered = dict(state.offered)
        made = []
        for id, (lesson, some, asked) in enumerate(zip(lessons, labels, sampled), state.id + 1):
            biased = lesson.offered and asked is None
            if biased:
                for label in some:
                    offered[label] = offered.get(label, 0.0) + 1.0
            kept = [self.reader.kept(row) for row in lesson.rows]
            made.append(lesson.entry(id, "learn", kept, some, asked=asked, offered=biased))
        alone = state.model if len(made) == 1 else None
        return made, replace(state, model=model, id=made[-1].id, offered=offered, before=alone)

    def _learnt(self, model: Model, rows: Sequence[Row], labels: Sequence[Label]) -> Model:
        batch = Batch(self.reader.table(rows), _label_array(labels))
        return model.learn(model.lesson(batch), self.ledger_key)

    def _labels(
        self,
        given: Sequence[Any],
        n: int,
        state: State,
        *,
        new: bool,
        known: dict[tuple[type, Any], Label] | None = None,
    ) -> list[Label]:
        """Return labels of the model for labels as they are shown; `known` caches labels that were found."""
        if len(given) != n:
            raise InputError(f"{n} rows came with {len(given)} labels.", remedy="Give one label a row.")
        known = {} if known is None else known
        made = []
        for at, label in enumerate(given):
            key = type(label), label if isinstance(label, str | int) else None
            if key not in known:
                try:
                    known[key] = self._label(label, state, new)
                except DecibanError as error:
                    raise error.but(HERE, ": ", *error.args, row=at) from None
            made.append(known[key])
        if len({type(label) for label in made}) > 1:
            raise InputError("some labels are texts and others numbers.", remedy="Give all of them in one form.")
        return made

    def _label(self, given: Any, state: State, new: bool) -> Label:
        """Return the label of the model for a label as it is shown."""
        classes = state.model.classes
        known = state.names.label(str(given), classes) if isinstance(given, str | int) else None
        return class_label(given if known is None else known, classes, self.reader.reader.schema, new=new)

    # -- other changes ---------------------------------------------------------------------------------------------
    def change(self, lesson: Lesson, state: State, pending: Sequence[Entry]) -> tuple[Entry, State]:
        """Return the entry of a change, and the state after it; `pending` are entries that are not written yet."""
        id = state.id + 1
        if lesson.kind == "classes":
            return self._rename(lesson, state, id)
        undoes = None if lesson.undoes is None else self._undoable(lesson, pending)
        if undoes is not None and undoes.kind == "classes":
            return self._undo_rename(lesson, undoes, state, id)
        if lesson.kind == "erase":
            entry, after = self._erasure(lesson, undoes, state, id)
        else:
            entry = self._entry(lesson, undoes, state, id)
            if state.before is not None and entry.undoes == state.id:
                after = state.before  # equal to the bit
            else:
                after = self.applied(state.model, entry)
        _check_estimates(after)
        new = replace(state, model=after, id=id, offered=_offered_after(state.offered, undoes), before=None)
        if entry.kind == "learn":
            return entry, new
        return replace(entry, receipt=self._receipt(entry, undoes, state.model, after).content()), new

    def _undoable(self, lesson: Lesson, pending: Sequence[Entry]) -> Entry:
        """Return the lesson that is to be undone or erased."""
        id = lesson.undoes or 0
        found = next((entry for entry in pending if entry.id == id), None) or self.journal.entry(id)
        if found is None:
            raise ConflictError(f"there is no lesson {id}.", remedy="Give the id of a lesson.")
        undone = found.undone or next((entry.id for entry in pending if entry.undoes == id), None)
        if lesson.kind == "erase":
            if found.kind == "classes":
                raise ConflictError(f"lesson {id} has no rows to erase.", remedy="Undo it instead.")
            found = replace(found, undone=undone)
        elif undone is not None:
            raise ConflictError(f"lesson {id} was undone already, by lesson {undone}.", remedy="Undo that one instead.")
        elif found.kind == "erase":
            raise ConflictError(f"lesson {id} is an erasure, which cannot be undone.")
        if found.kind != "classes" and (found.rows is None or None in found.rows):
            raise ConflictError(f"rows of lesson {id} were erased.", remedy="Send the rows themselves.")
        return found

    def _entry(self, lesson: Lesson, undoes: Entry | None, state: State, id: int) -> Entry:
        """Return the entry of an unlearning, a correction or an undo, without its receipt."""
        if undoes is None:
            n = len(lesson.rows)
            labels = self._labels(lesson.labels, n, state, new=lesson.kind == "correct")
            was = self._labels(lesson.was, n, state, new=False) if lesson.kind == "correct" else None
            return lesson.entry(id, lesson.kind, [self.reader.kept(row) for row in lesson.rows], labels, was=was)
        kind = {"learn": "unlearn", "unlearn": "learn", "correct": "correct"}[undoes.kind]
        labels, was = undoes.labels or [], None
        if kind == "correct":
            labels, was = undoes.was or [], labels
        return lesson.entry(id, kind, list(undoes.rows or ()), list(labels), was=was, undoes=undoes.id)

    def applied(self, model: Model, entry: Entry) -> Model:
        """Return the model after an entry."""
        pairs = [(row, label) for row, label in zip(entry.rows or (), entry.labels or ()) if None not in (row, label)]
        if entry.kind == "classes" or not pairs:
            return model
        rows, labels = (list(each) for each in zip(*pairs))
        if entry.kind == "learn":
            return self._learnt(model, rows, labels)
        table = self.reader.table(rows, strict=False)
        if entry.kind == "correct":
            return model.correct(Batch(table, _label_array(entry.was or [])), _label_array(labels), self.ledger_key)
        return model.unlearn(Batch(table, _label_array(labels)), self.ledger_key)

    def replayed(self, state: State, entries: Iterator[Entry]) -> State:
        """Return the state after the entries of the journal, learnt many rows at a time."""
        model, waiting, id = state.model, list[Entry](), state.id
        for entry in entries:
            id = entry.id
            if waiting and entry.undoes == waiting[-1].id:  # a lesson and its undo cancel: neither is replayed
                waiting.pop()
                continue
            if entry.kind != "learn" or sum(len(each.rows or ()) for each in waiting) >= REPLAYED_ROWS:
                model, waiting = self._all_learnt(model, waiting), []
            if entry.kind == "learn":
                waiting.append(entry)
            else:
                model = self.applied(model, entry)
        return replace(state, model=self._all_learnt(model, waiting), id=id)

    def _all_learnt(self, model: Model, entries: Sequence[Entry]) -> Model:
        if not entries:
            return model
        rows = [row for entry in entries for row in entry.rows or ()]
        return self._learnt(model, rows, [label for entry in entries for label in entry.labels or ()])

    # -- names of classes ------------------------------------------------------------------------------------------
    def _rename(self, lesson: Lesson, state: State, id: int) -> tuple[Entry, State]:
        was, now = (str(label) for label in lesson.labels)
        class_label(now, [], None, new=True)  # checks the name
        names, classes = state.names, state.model.classes
        names.renamed(was, now, classes)  # raises an error if there is no such class
        labels = [label for label in map(str, classes) if names.name(label) == was]
        entry = lesson.entry(id, "classes", None, [was, now], was=labels)
        return entry, replace(state, id=id, renames=(*state.renames, entry), before=None)

    def _undo_rename(self, lesson: Lesson, undoes: Entry, state: State, id: int) -> tuple[Entry, State]:
        if undoes.undoes is not None:
            raise ConflictError(f"lesson {undoes.id} is an undo of a name.", remedy="Rename the class again.")
        was, now = undoes.labels or ["", ""]
        entry = lesson.entry(id, "classes", None, [now, was], was=undoes.was, undoes=undoes.id)
        left = tuple(each for each in state.renames if each.id != undoes.id)
        return entry, replace(state, id=id, renames=left, before=None)

    # -- erasure ---------------------------------------------------------------------------------------------------
    def _erasure(self, lesson: Lesson, undoes: Entry | None, state: State, id: int) -> tuple[Entry, Model]:
        """Return the entry of an erasure, and the model without any copy of its rows.

        The ledger holds how often a row was learnt, and under which labels; without a ledger, the rows are unlearnt as
        given. Rows that were unlearnt before have no label in the entry: only the journal still holds them.
        """
        model = state.model
        if undoes is None:
            rows = [self.reader.kept(row) for row in lesson.rows]
            labels = self._labels(lesson.labels, len(rows), state, new=False)
        else:
            rows, labels = list(undoes.rows or ()), list(undoes.labels or ())
        gone = undoes is not None and undoes.undone is not None
        pairs: list[tuple[Row, Any]] = []
        if model.ledger is None:
            pairs = [] if gone else list(zip(rows, labels))
            if pairs:
                table = self.reader.table(rows, strict=False)
                model = model.unlearn(Batch(table, _label_array(labels)), self.ledger_key)
        else:
            for row in {dumps(row, sort_keys=True): row for row in rows}.values():
                model, found = self._without_copies(model, row)
                pairs += found
            if not pairs and undoes is None:
                raise NotLearntError(
                    "none of these rows is learnt.", remedy="Check the rows, or give the id of a lesson."
                )
        held = {dumps(row, sort_keys=True) for row, _ in pairs}
        pairs += [(row, None) for row in rows if dumps(row, sort_keys=True) not in held]
        counts = undoes is not None and not gone
        entry = lesson.entry(
            id,
            "erase",
            [row for row, _ in pairs],
            [label for _, label in pairs],
            undoes=lesson.undoes if counts else None,
        )
        return entry, model

    def _without_copies(self, model: Model, row: Row) -> tuple[Model, list[tuple[Row, Any]]]:
        """Return the model without any copy of a row, under any label, and the copies that were removed."""
        table, removed = self.reader.table([row], strict=False), list[tuple[Row, Any]]()
        for label in model.classes:
            while len(removed) < MOST_COPIES:
                try:
                    model = model.unlearn(Batch(table, _label_array([label])), self.ledger_key)
                except NotLearntError:
                    break
                removed.append((row, label))
        return model, removed

    def traces(self, entry: Entry) -> list[int]:
        """Return the lessons in the journal that hold a row of an erasure, under any label."""
        wanted = set(self._digests([row for row in entry.rows or () if row is not None]))
        found: set[int] = set()
        waiting: list[tuple[int, Row]] = []

        def compare() -> None:
            digests = self._digests([row for _, row in waiting])
            found.update(id for (id, _), digest in zip(waiting, digests) if digest in wanted)
            waiting.clear()

        for other in self.journal.after(0):
            if other.id != entry.id:
                waiting += [(other.id, row) for row in other.rows or () if row is not None]
            if len(waiting) >= SCANNED_ROWS:
                compare()
        compare()
        return sorted(found)

    def purged(self, entry: Entry) -> Iterator[tuple[int, list[Row | None] | None, list[Any] | None, list[Any] | None]]:
        """Yield the lessons that an erasure changes, with the rows and labels that they keep."""
        wanted = set(self._digests([row for row in entry.rows or () if row is not None]))
        for id in (entry.receipt or {}).get("purged") or ():
            other = self.journal.entry(id)
            if other is None or other.rows is None:
                continue
            digests = iter(self._digests([row for row in other.rows if row is not None]))
            gone = [row is None or next(digests) in wanted for row in other.rows]
            yield id, _left(other.rows, gone), _left(other.labels, gone), _left(other.was, gone)
        yield entry.id, None, None, None

    def _digests(self, rows: Sequence[Row]) -> list[str]:
        """Return digests of rows without their labels."""
        if not rows:
            return []
        table = self.reader.table(rows, strict=False)
        return row_digests(table, self.reader.reader.columns, [0] * len(rows), self.receipt_key)

    # -- receipts --------------------------------------------------------------------------------------------------
    def _receipt(self, entry: Entry, undoes: Entry | None, before: Model, after: Model) -> Receipt:
        labels = list((entry.was if entry.kind == "correct" else entry.labels) or ())
        if None in labels:  # rows that were unlearnt before take the label of their lesson
            known = list((undoes.labels if undoes is not None else None) or [before.classes[0]])
            labels = [known[min(at, len(known) - 1)] if label is None else label for at, label in enumerate(labels)]
        table = self.reader.table(entry.rows or [], strict=False)
        first = self.sums_digests.of(before)
        receipt = Receipt(
            entry.id,
            entry.kind,
            timestamp(entry.time),
            tuple(row_digests(table, before.reader.columns, labels, self.receipt_key)),
            self.receipt_key.id,
            first,
            first if after is before else self.sums_digests.of(after),
            None if after.calibration is None else digest_of(after.calibration),
            entry.undoes,
            tuple(self.traces(entry)) if entry.kind == "erase" else None,
        )
        return receipt.sealed(self.receipt_key)

    # -- random sample ---------------------------------------------------------------------------------------------
    def is_asked(self, row: Row) -> bool:
        """Tell whether a row is in the random sample: one in twenty, by a keyed digest of its content."""
        kept = self.reader.kept(row)
        text = kept if isinstance(kept, str) else dumps(kept, sort_keys=True, ensure_ascii=False)
        digest = self.receipt_key.digest(b"asked" + text.encode("utf-8", "surrogatepass"))
        return int.from_bytes(digest[:8], "little") % ASK_ONE_IN == 0

    def _asked(
        self, lessons: Sequence[tuple[Sequence[Row], Sequence[Label]]], published: Published
    ) -> list[list[list[Any]] | None]:
        """Return for each lesson its rows in the random sample, with their scores before they were learnt."""
        places = [(at, j) for at, (rows, _) in enumerate(lessons) for j, row in enumerate(rows) if self.is_asked(row)]
        found: list[list[list[Any]] | None] = [None] * len(lessons)
        if not places:
            return found
        predictor, classes = published.predictor, published.model.classes
        rows = [lessons[at][0][j] for at, j in places]
        likelihood = predictor.scores(predictor.model.encode(self.reader.table(rows)))
        prior = resolve_prior(published.prior, np.array(classes), published.counts)
        log_p = log_posterior(likelihood, log_probability(prior))
        place = {label: k for k, label in enumerate(classes)}
        for (at, j), scores in zip(places, log_p):
            k = place.get(lessons[at][1][j])
            if k is not None:  # a new class has no score
                own = float(max(scores[k], -700.0))
                found[at] = [*(found[at] or []), [j, own, bool(scores.argmax() == k)]]
        return found


def live_figures(entries: Iterable[Entry]) -> dict[str, Any]:
    """Return rows, errors, error rate with its 95 % interval, and log loss of the latest rows of the random sample.

    Each row was scored before it was learnt. The sample is chosen by a digest of the rows, not by their predictions;
    lessons on other rows, which people choose or the service offers because it is unsure, are not in it.
    """
    scored = [line for entry in entries for line in entry.asked or ()][-MOST_FIGURED:]
    n = len(scored)
    if not n:
        return {"rows": 0, "errors": 0, "error_rate": None, "interval": None, "log_loss": None}
    wrong = np.array([not right for _, _, right in scored], dtype=float)
    found = share_interval(wrong, None, LEVEL)
    return {
        "rows": n,
        "errors": int(wrong.sum()),
        "error_rate": found.estimate,
        "interval": [found.low, found.high],
        "log_loss": -sum(log_p for _, log_p, _ in scored) / n,
    }


def repeated(lesson: Lesson, earlier: Entry) -> Any:
    """Return the result of a lesson that was sent before, or the error for another lesson with the same key."""
    if earlier.request != lesson.request and earlier.request is not None:
        return ConflictError(
            f"the Idempotency-Key was used before, for another request (lesson {earlier.id}).",
            remedy="Send a new key with a new request.",
        )
    return earlier, True


def _check_estimates(model: Model) -> None:
    """Raise a DecibanError if the parameters of a model cannot be estimated, as no request could be answered by it.

    Under the rules "ml" and "map", a class with too few rows may have no estimate. Other rules use proper priors.
    """
    if model.rule in ("ml", "map") and model.classes:
        model.density()


def offered_weights(journal: Journal) -> dict[Any, float]:
    """Return the weights of rows that were offered as unsure and are still learnt, by label."""
    found: dict[Any, float] = {}
    for entry in journal.offered():
        for label in entry.labels or ():
            if label is not None:
                found[label] = found.get(label, 0.0) + 1.0
    return found


def _offered_after(offered: Mapping[Any, float], undoes: Entry | None) -> Mapping[Any, float]:
    """Return the weights of offered rows after one of their lessons was undone."""
    if undoes is None or not undoes.offered or undoes.kind != "learn" or undoes.undone is not None:
        return offered
    left = dict(offered)
    for label in undoes.labels or ():
        left[label] = max(0.0, left.get(label, 0.0) - 1.0)
    return left


def _left(values: Sequence[Any] | None, gone: Sequence[bool]) -> list[Any] | None:
    """Return values with None in place of those that are removed."""
    return None if values is None else [None if out else value for value, out in zip(values, gone)]


def _label_array(labels: Sequence[Label]) -> Array:
    if labels and all(isinstance(label, int) for label in labels):
        return np.array(labels, dtype=np.int64)
    made = np.empty(len(labels), dtype=object)
    made[:] = labels
    return made
