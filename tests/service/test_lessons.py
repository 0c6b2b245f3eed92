"""Lessons are in the journal before they are acknowledged, count once, and can be undone exactly."""

import concurrent.futures as futures
import json
import os
import shutil
import sqlite3
import subprocess
import threading
import time
from concurrent.futures import Future
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import deciban
from deciban.cli.process import run
from deciban.errors import (
    DecibanError,
    InputError,
    ModelFileError,
    NotLearntError,
    SingularError,
    UnknownLabelError,
)
from deciban.model.predictor import Predictor
from deciban.service import storage
from deciban.service import teacher as teaching
from deciban.service.answers import predictions, scores
from deciban.service.lessons import ConflictError, Lesson
from deciban.service.receipts import Receipt, same_sums, sums_digest
from deciban.service.storage import Journal, JournalError, Snapshots
from deciban.service.teacher import Teacher
from program import process
from service.running import Running, wait_until

ROW = {"weight": 3.5, "legs": 4, "coat": "grey"}


class Class:
    """A teacher in this process, and lessons given one after the other."""

    def __init__(self, path, **options):
        self.teacher = Teacher(path, **options)

    def give(self, kind, rows=(), labels=(), **more):
        return self.put(kind, rows, labels, **more).result(20)[0]

    def put(self, kind, rows=(), labels=(), **more):
        future = Future()
        self.teacher.submit(Lesson(kind, list(rows), list(labels), **more), future)
        return future

    def seen(self, lesson):
        assert self.teacher.wait_for(lesson.id, 10)
        return self.teacher.published

    def begin_snapshot(self):
        """Begin a snapshot of the last lesson in the other thread, as the teacher does when one is due."""
        state = self.teacher._state
        self.teacher.snapshots.seconds = 1e9  # the teacher begins no other one meanwhile
        self.teacher.snapshots.begin(state.model, state.id)

    def digest(self):
        return sums_digest(self.teacher._state.model.stats)

    def __enter__(self):
        return self

    def __exit__(self, *problem):
        self.teacher.close()


def answer(published, row):
    return predictions(published, scores(published, [row]))[0]


# -- learning ----------------------------------------------------------------------------------------------------------
def test_lessons_are_the_librarys_own(animals_model):
    clf = deciban.load(animals_model)
    rows = [ROW, {"weight": 30.0, "coat": "black"}, {"weight": 1.1, "legs": 2}]
    frame, labels = pl.DataFrame(rows), ["cat", "dog", "owl"]
    with Class(animals_model) as school:
        school.give("learn", rows, labels)
        clf.learn(frame, np.array(labels, dtype=object))
        assert school.digest() == sums_digest(clf.stats_)
        school.give("correct", [ROW], ["dog"], was=["cat"])
        clf.correct(frame[:1], np.array(["cat"], dtype=object), np.array(["dog"], dtype=object))
        assert school.digest() == sums_digest(clf.stats_)
        published = school.seen(school.give("unlearn", [ROW], ["dog"]))
        clf.unlearn(frame[:1], np.array(["dog"], dtype=object))
        assert school.digest() == sums_digest(clf.stats_)
        known = clf.predict_proba(frame)[0]
        np.testing.assert_allclose(list(answer(published, rows[0])["probabilities"].values()), known, rtol=1e-12)


def test_undo_is_exact(animals_model, texts_model):
    for path, row, label, new in ((animals_model, ROW, "owl", "wolf"), (texts_model, "zebra free lunch", "ham", "zoo")):
        with Class(path) as school:
            before, first = school.digest(), answer(school.teacher.published, row)
            for name in (label, new):
                lesson = school.give("learn", [row], [name])
                assert answer(school.seen(lesson), row) != first
                published = school.seen(school.give("undo", undoes=lesson.id))
                assert school.digest() == before
                assert answer(published, row) == first


def test_an_undo_can_be_undone_and_only_once(texts_model):
    with Class(texts_model) as school:
        lesson = school.give("learn", ["free lunch"], ["ham"])
        after = school.digest()
        undo = school.give("undo", undoes=lesson.id)
        with pytest.raises(ConflictError, match="was undone already"):
            school.give("undo", undoes=lesson.id)
        school.give("undo", undoes=undo.id)
        assert school.digest() == after
        with pytest.raises(ConflictError, match="no lesson 99"):
            school.give("undo", undoes=99)


def test_a_refused_lesson_leaves_no_trace(texts_model):
    with Class(texts_model) as school:
        before = school.digest()
        with pytest.raises(NotLearntError):
            school.give("unlearn", ["never seen before"], ["ham"])
        with pytest.raises(InputError):
            school.give("learn", ["one", "two"], ["ham"])
        with pytest.raises(DecibanError):
            school.give("learn", [{"text": 5}], ["ham"])
        assert school.teacher.journal.last == 0
        assert school.digest() == before


def test_in_a_group_only_the_bad_lesson_is_refused(animals_model, monkeypatch):
    with Class(animals_model) as school:
        clf = deciban.load(animals_model)
        gate, learn = threading.Event(), Teacher._group

        def wait_first(self, first):
            gate.wait(10)
            return learn(self, first)

        monkeypatch.setattr(Teacher, "_group", wait_first)
        rows = [{"weight": float(w), "coat": "grey"} for w in range(2, 12)]
        rows[4] = {"weight": "heavy"}
        given = [school.put("learn", [row], ["cat"]) for row in rows]
        gate.set()
        results = [future.exception(20) for future in given]
        assert [at for at, error in enumerate(results) if error is not None] == [4]
        assert school.teacher.groups <= 2
        kept = [row for at, row in enumerate(rows) if at != 4]
        frame = pl.DataFrame([{"weight": row["weight"], "legs": None, "coat": "grey"} for row in kept])
        clf.learn(frame, np.array(["cat"] * 9, dtype=object))
        assert same_sums(school.teacher._state.model.stats, clf.stats_)


def test_a_lesson_after_which_nothing_could_be_answered_is_refused(tmp_path):
    rng, path = np.random.default_rng(0), tmp_path / "pairs.deciban"
    clf = deciban.GenerativeClassifier(deciban.Gaussian(), rule="ml")
    clf.fit(rng.normal(size=(8, 2)), np.repeat([0, 1], 4)).save(path)
    with Class(path) as school:
        first = answer(school.teacher.published, [1.0, 2.0])
        with pytest.raises(SingularError, match="class 7"):  # one row has no covariance
            school.give("learn", [[1.0, 2.0]], [7])
        lesson = school.give("learn", rng.normal(size=(4, 2)).tolist(), [7] * 4)
        assert list(school.seen(lesson).model.classes) == [0, 1, 7]
        rows = school.teacher.journal.entry(lesson.id).rows
        with pytest.raises(SingularError, match="class 7"):
            school.give("unlearn", rows[:3], [7] * 3)
        school.seen(school.give("undo", undoes=lesson.id))
        assert answer(school.teacher.published, [1.0, 2.0]) == first
    with Class(path) as school:
        assert answer(school.teacher.published, [1.0, 2.0]) == first


def test_the_teacher_goes_on_after_an_internal_error(texts_model, monkeypatch, caplog):
    with Class(texts_model) as school:
        monkeypatch.setattr(Teacher, "_publish", lambda self: 1 / 0)
        school.give("learn", ["free lunch"], ["ham"])
        wait_until(lambda: school.teacher.problem == "division by zero")
        monkeypatch.undo()
        monkeypatch.setattr(Teacher, "_digest_steps", lambda self: iter([1 / 0]))
        school.seen(school.give("learn", ["free lunch"], ["ham"]))
        school.seen(school.give("learn", ["free lunch"], ["ham"]))
        wait_until(lambda: school.teacher.problem == "")
        assert school.teacher.alive
        monkeypatch.undo()
    assert "internal error after learning" in caplog.text


@pytest.mark.parametrize("label", ["²", "٣", "--5", "9" * 19, "1.5", "a\r\nb", "\x1b[31m", "\u202e7"])
def test_a_label_that_is_no_name_is_refused(tmp_path, texts_model, label):
    path = tmp_path / "numbers.deciban"
    deciban.GenerativeClassifier().fit(np.arange(8.0).reshape(4, 2), [0, 0, 1, 1]).save(path)
    with Class(path) as school, pytest.raises(UnknownLabelError, match=r"whole number|control character"):
        school.give("learn", [[1.0, 2.0]], [label])
    with Class(texts_model) as school:
        if label.isprintable():
            assert label in school.seen(school.give("learn", ["free lunch"], [label])).model.classes
        else:
            with pytest.raises(UnknownLabelError, match="control character"):
                school.give("learn", ["free lunch"], [label])


@pytest.mark.slow
def test_one_key_counts_once_also_when_sent_in_parallel(texts_model):
    with Running(texts_model) as service:

        def send(n):
            return service.client.post("/learn", json={"text": "free lunch", "label": "ham"},
                                       headers={"Idempotency-Key": "only once"[:4]}).json()  # fmt: skip

        with futures.ThreadPoolExecutor(20) as pool:
            given = list(pool.map(send, range(100)))
        assert {one["id"] for one in given} == {1}
        assert sorted(one["repeated"] for one in given) == [False] + [True] * 99
        assert service.get("/model?after=1")["rows"] == 301
        other = {"text": "another", "label": "ham"}
        problem = service.post("/learn", other, 409, headers={"Idempotency-Key": "only"})
        assert "another request" in problem["detail"]
        service.kill()
    with Running(texts_model) as service:
        again = service.post("/learn", {"text": "free lunch", "label": "ham"}, headers={"Idempotency-Key": "only"})
        assert (again["id"], again["repeated"]) == (1, True)
        assert service.get("/model")["rows"] == 301
        assert service.stop() == 0
        assert service.errors == []


# -- restart -----------------------------------------------------------------------------------------------------------
def test_a_restart_is_the_snapshot_and_the_lessons_after_it(texts_model, monkeypatch):
    with Class(texts_model) as school:
        for n in range(7):
            school.give("learn", [f"word{n} free"], ["spam"])
        school.give("undo", undoes=3)
        school.give("classes", labels=["spam", "junk"])
        middle = school.digest()
        school.give("learn", ["in the snapshot"], ["ham"])
        school.seen(school.give("learn", ["this, too"], ["ham"]))
        school.begin_snapshot()
        wait_until(lambda: school.teacher.saved)
        school.give("learn", ["only in the journal"], ["ham"])
        assert school.teacher.saved == 11 < school.teacher.journal.last
        digest = school.digest()
        assert digest != middle
        monkeypatch.setattr(Snapshots, "finish", lambda *given: None)
    with Class(texts_model) as school:
        assert school.digest() == digest
        assert school.teacher.published.version == 12
        assert school.teacher.published.names.name("spam") == "junk"
    assert deciban.load(texts_model).predict(["word0 free"])[0] == "spam"


class Held:
    """Snapshots that wait, once their model is written beside the file, until they are released."""

    def __init__(self, monkeypatch):
        self.begun, self.released = threading.Event(), threading.Event()

        def save(clf, path, **more):
            deciban.save(clf, path, **more)
            self.begun.set()
            assert self.released.wait(20)

        monkeypatch.setattr(storage, "save", save)


def test_lessons_go_on_while_a_snapshot_is_written(texts_model, monkeypatch):
    held = Held(monkeypatch)
    with Class(texts_model) as school:
        school.give("learn", ["before the snapshot"], ["ham"])
        first = school.digest()
        school.begin_snapshot()
        assert held.begun.wait(20)
        lessons = [school.give("learn", [f"lesson{n} free"], ["spam"]) for n in range(5)]
        school.give("undo", undoes=lessons[2].id)
        published = school.seen(school.give("learn", ["the last one"], ["ham"]))
        assert (published.version, school.teacher.saved) == (8, 0)
        school.begin_snapshot()  # one at a time
        held.released.set()
        wait_until(lambda: school.teacher.saved == 1)
        assert sums_digest(deciban.load(texts_model).stats_) == first
        digest = school.digest()
        monkeypatch.setattr(Snapshots, "finish", lambda *given: None)
    with Class(texts_model) as school:
        assert (school.digest(), school.teacher.published.version) == (digest, 8)


def test_a_process_that_ends_within_a_snapshot_leaves_every_lesson(texts_model, tmp_path, monkeypatch):
    copies, held, replace = [], Held(monkeypatch), os.replace

    def copied(act):
        def wrapped(*given, **more):
            result = act(*given, **more)
            if not held.released.is_set() or (act is replace and Path(given[1]) != texts_model):
                return result  # compiled code is put into its cache by os.replace, too
            copies.append(tmp_path / f"copy{len(copies)}")
            shutil.copytree(texts_model.parent, copies[-1], ignore=shutil.ignore_patterns("copy*"))
            return result

        return wrapped

    with Class(texts_model) as school:
        school.give("learn", ["before the snapshot"], ["ham"])
        monkeypatch.setattr(storage.os, "replace", copied(replace))
        for name in ("record_snapshot", "forget_snapshots"):
            monkeypatch.setattr(Journal, name, copied(getattr(Journal, name)))
        school.begin_snapshot()
        assert held.begun.wait(20)
        school.give("learn", ["while it is written"], ["ham"])
        school.give("undo", undoes=1)
        held.released.set()
        wait_until(lambda: school.teacher.saved)
        digest = school.digest()
        monkeypatch.undo()
    assert len(copies) == 3  # after each step of a snapshot
    for folder in copies:
        with Class(folder / texts_model.name) as school:
            assert (school.digest(), school.teacher.published.version) == (digest, 3)
            assert not list(folder.glob("*.snapshot"))


def test_rows_erased_while_a_snapshot_is_written_are_in_no_file(texts_model, monkeypatch):
    held = Held(monkeypatch)
    with Class(texts_model) as school:
        first = school.digest()
        school.give("learn", ["quixotic zeppelin"], ["ham"])
        school.begin_snapshot()
        assert held.begun.wait(20)
        assert b"zeppelin" in texts_model.with_name(f"{texts_model.name}.snapshot").read_bytes()
        erasure = school.put("erase", undoes=1)
        time.sleep(0.1)
        assert not erasure.done()  # it is acknowledged once the rows are gone
        held.released.set()
        assert erasure.result(20)[0].id == school.teacher.saved == 2
        assert b"zeppelin" not in b"".join(path.read_bytes() for path in texts_model.parent.iterdir())
        assert school.digest() == first == sums_digest(deciban.load(texts_model).stats_)
    with Class(texts_model) as school:
        assert school.digest() == first


def test_a_snapshot_that_fails_is_tried_again(texts_model, monkeypatch):
    def fail(*given, **more):
        raise OSError(28, "No space left on device")

    with Class(texts_model, save_every=0.2) as school:
        monkeypatch.setattr(storage, "save", fail)
        lesson = school.give("learn", ["free lunch"], ["ham"])
        wait_until(lambda: "No space left" in school.teacher.snapshot_error)
        assert school.seen(lesson).version == lesson.id
        assert school.teacher.saved == 0
        monkeypatch.undo()
        wait_until(lambda: school.teacher.saved == 1)
        assert school.teacher.snapshot_error == ""


def test_a_lesson_ends_other_work_of_the_teacher(texts_model, monkeypatch):
    steps, endless = [], threading.Event()

    def table_steps(predictor):
        while not endless.is_set():
            steps.append(predictor)
            yield

    monkeypatch.setattr(teaching, "IDLE_SECONDS", 0.01)
    with Class(texts_model) as school:
        monkeypatch.setattr(Predictor, "table_steps", table_steps)
        for n in range(3):
            published = school.seen(school.give("learn", [f"free lunch {n}"], ["ham"]))
            wait_until(lambda published=published: steps[-1:] == [published.predictor])
        endless.set()


def test_the_model_file_holds_every_lesson_after_an_orderly_end(texts_model):
    with Class(texts_model) as school:
        school.give("learn", ["free lunch"] * 3, ["ham"] * 3)
        digest = school.digest()
    assert sums_digest(deciban.load(texts_model).stats_) == digest


def test_a_journal_of_another_model_is_refused(texts_model, models):
    with Class(texts_model) as school:
        school.give("learn", ["free lunch"], ["ham"])
    texts_model.write_bytes((models / "texts.deciban").read_bytes())
    with pytest.raises(ModelFileError, match="is not the model that its journal"):
        Teacher(texts_model)


def test_a_served_file_is_locked_against_other_writers(texts_model):
    with Class(texts_model) as school:
        with pytest.raises(ModelFileError, match="used by another"):
            Teacher(texts_model)
        school.give("learn", ["free lunch"], ["ham"])
        school.teacher.snapshots.write(school.teacher._state.model, 1)
        done = process(texts_model.parent, "serve", "texts.deciban", "--check")
        assert "used by another deciban" in done.err


@pytest.mark.slow
def test_lessons_survive_sigkill(texts_model):
    """The long campaign is `make serve-kill`."""
    from service.kills import campaign

    assert campaign(texts_model, kills=2, seconds=0.4).lost == 0


# -- a disk that fails -------------------------------------------------------------------------------------------------
def test_a_full_disk_refuses_lessons_and_answers_go_on(texts_model):
    with Class(texts_model) as school:
        database = school.teacher.journal._database
        first = school.give("learn", ["free lunch"], ["ham"])
        pages = database.execute("pragma page_count").fetchone()[0]
        database.execute(f"pragma max_page_count={pages}")
        before = school.digest()
        with pytest.raises(JournalError) as refused:
            school.give("learn", ["x" * 20_000], ["ham"])
        assert refused.value.full
        assert school.digest() == before
        assert answer(school.teacher.published, "free lunch")["prediction"] in ("ham", "spam")
        database.execute("pragma max_page_count=1000000")
        assert school.give("learn", ["x" * 20_000], ["ham"]).id == first.id + 1


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 1 MB; needs the right to mount one."""
    folder = tmp_path / "small"
    folder.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], capture_output=True, check=False)
    if made.returncode:
        pytest.skip("needs the right to mount a file system")
    yield folder
    subprocess.run(["umount", folder], check=True)


@pytest.mark.slow
def test_a_disk_that_is_really_full_answers_507_until_there_is_room(texts_model, small_disk):
    with Running(Path(shutil.copy(texts_model, small_disk / "texts.deciban"))) as service:
        service.post("/learn", {"text": "free lunch", "label": "ham"})
        statuses = []
        for n in range(12):
            body = {"text": f"number{n} " + "free lunch " * 15_000, "label": "ham"}
            statuses.append(service.client.post("/learn", json=body).status_code)
        assert set(statuses) == {200, 507}
        rows = 301 + statuses.count(200)
        assert service.post("/predict", {"text": "free lunch"})["answers"]
        assert service.get("/model")["rows"] == rows
        assert service.get("/ready")["ready"]
        subprocess.run(["mount", "-o", "remount,size=20m", small_disk], check=True)
        assert service.post("/learn", {"text": "room again", "label": "ham"})["kind"] == "learn"
        service.kill()
        with Running(small_disk / "texts.deciban") as again:
            assert again.get("/model")["rows"] == rows + 1


def test_a_read_only_disk_refuses_lessons_and_answers_go_on(texts_model):
    with Class(texts_model) as school:
        school.teacher.journal._database.execute("pragma query_only=on")
        with pytest.raises(JournalError) as refused:
            school.give("learn", ["free lunch"], ["ham"])
        assert not refused.value.full
        assert answer(school.teacher.published, "free lunch")
        school.teacher.journal._database.execute("pragma query_only=off")
        assert school.give("learn", ["free lunch"], ["ham"]).id == 1


# -- receipts and erasure ----------------------------------------------------------------------------------------------
def test_a_journal_that_cannot_be_read_refuses_what_needs_it(texts_model, monkeypatch):
    with Class(texts_model) as school:
        school.give("learn", ["free lunch"], ["ham"], key="a", request=b"1")
        monkeypatch.setattr(storage, "SELECT", "select disk_error()")  # raises sqlite3.OperationalError
        with pytest.raises(JournalError, match="could not be read"):
            school.give("learn", ["free lunch"], ["ham"], key="a", request=b"1")
        with pytest.raises(JournalError, match="could not be read"):
            school.teacher.journal.entry(1)
        monkeypatch.undo()
        assert school.give("learn", ["free lunch"], ["ham"], key="a", request=b"1").id == 1


def test_a_clock_that_jumps_changes_times_only(texts_model, monkeypatch):
    with Class(texts_model) as school:
        first = school.digest()
        for at, now in enumerate((4e9, -1e6, 0.0, 1.8e9), 1):
            monkeypatch.setattr("deciban.service.lessons.time.time", lambda now=now: now)
            assert school.give("learn", [f"free lunch {now}"], ["ham"]).id == at
        receipt = school.give("undo", undoes=1).receipt
        assert receipt["time"] == "2027-01-15T08:00:00Z"
        school.give("undo", undoes=2)
        assert [one.entry.id for one in school.teacher.journal.history(None, 9)] == [6, 5, 4, 3, 2, 1]
    with Class(texts_model) as school:
        for id in (3, 4):
            school.give("undo", undoes=id)
        assert school.digest() == first


def test_receipts_are_checked_against_the_journal_and_by_refitting(
    animals_model, models, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)

    def verify(*options):
        code = run(["verify", "receipt.json", "animals.deciban", *options])
        return code, capsys.readouterr().out

    with Class(animals_model) as school:
        first = school.digest()
        learnt = school.give("learn", [ROW], ["dog"])
        lesson = school.give("undo", undoes=learnt.id)
        receipt = Receipt.of(lesson.receipt)
        assert receipt.sums_after == first != receipt.sums_before
        assert receipt.calibration is not None
    (tmp_path / "receipt.json").write_text(json.dumps(lesson.receipt))
    kept = str(models / "animals.csv")
    code, out = verify("--rows", kept, "--label", "kind")
    assert (code, out.count("yes"), out.count("NO")) == (0, 5, 0)
    assert "the model file has the sums that the receipt states" in out
    (tmp_path / "receipt.json").write_text(json.dumps({**lesson.receipt, "time": "2020-01-01T00:00:00Z"}))
    code, out = verify()
    assert (code, out.count("NO")) == (1, 2)
    fewer = (models / "animals.csv").read_text().splitlines()[:-1]
    (tmp_path / "fewer.csv").write_text("\n".join(fewer))
    (tmp_path / "receipt.json").write_text(json.dumps(lesson.receipt))
    code, out = verify("--rows", "fewer.csv", "--label", "kind")
    assert (code, out.count("NO")) == (1, 1)


def test_erased_rows_are_in_no_file(texts_model):
    secret = "quixotic zeppelin"
    with Class(texts_model) as school:
        first = school.digest()
        for label in ("ham", "spam"):
            school.give("learn", ["before " + label, secret], ["ham", label])
        school.give("unlearn", [secret], ["spam"])
        lesson = school.give("erase", [secret], ["ham"])
        assert Receipt.of(lesson.receipt).purged == (1, 2, 3)
        school.give("unlearn", ["before ham", "before spam"], ["ham", "ham"])
        assert school.digest() == first
        kept = [entry.rows for entry in school.teacher.journal.after(0)]
        assert kept == [["before ham", None], ["before spam", None], [None], None, ["before ham", "before spam"]]
        data = b"".join(path.read_bytes() for path in texts_model.parent.iterdir())
        assert b"quixotic" not in data
        assert b"zeppelin" not in data
        with pytest.raises(ConflictError, match="erased"):
            school.give("undo", undoes=1)
        assert school.teacher.journal.entry(lesson.id).receipt == lesson.receipt
    data = b"".join(path.read_bytes() for path in texts_model.parent.iterdir())
    assert b"zeppelin" not in data


def test_an_erasure_removes_every_copy_of_a_row(texts_model):
    with Class(texts_model) as school:
        first = school.digest()
        for label in ("ham", "ham", "spam"):
            school.give("learn", ["quixotic zeppelin"], [label])
        lesson = school.give("erase", undoes=1)
        assert school.digest() == first
        assert Receipt.of(lesson.receipt).purged == (1, 2, 3)
        assert len(Receipt.of(lesson.receipt).rows) == 3
        with pytest.raises(NotLearntError):
            school.give("erase", ["quixotic zeppelin"], ["ham"])
    with Class(texts_model) as school:
        assert school.digest() == first


def test_an_erasure_that_was_interrupted_is_finished_at_the_start(texts_model, monkeypatch):
    with Class(texts_model) as school:
        school.give("learn", ["quixotic zeppelin"], ["ham"])
        monkeypatch.setattr(
            Teacher, "_purge", lambda self, entry: (_ for _ in ()).throw(JournalError("full", full=True))
        )
        with pytest.raises(JournalError, match="traces could not be removed"):
            school.give("erase", undoes=1)
    monkeypatch.undo()
    assert b"zeppelin" in b"".join(path.read_bytes() for path in texts_model.parent.iterdir())
    with Class(texts_model):
        assert b"zeppelin" not in b"".join(path.read_bytes() for path in texts_model.parent.iterdir())


def test_an_erasure_without_room_to_overwrite_is_finished_at_the_start(texts_model):
    class Full:
        """A database whose disk has no room for the copy that `vacuum` makes."""

        def __init__(self, database):
            self.database = database

        def execute(self, text, *values):
            if text == "vacuum":
                raise sqlite3.OperationalError("database or disk is full")
            return self.database.execute(text, *values)

        def __getattr__(self, name):
            return getattr(self.database, name)

    school = Class(texts_model)
    school.give("learn", ["quixotic zeppelin"], ["ham"])
    school.teacher.journal._database = Full(school.teacher.journal._database)
    with pytest.raises(JournalError, match="traces could not be removed"):
        school.give("erase", undoes=1)
    held = shutil.copytree(texts_model.parent, texts_model.parent / "held")  # as a power failure leaves it
    school.teacher.journal._database = school.teacher.journal._database.database
    school.teacher.close()
    assert b"zeppelin" in b"".join(path.read_bytes() for path in held.iterdir())
    with Class(held / texts_model.name) as again:
        assert again.teacher.journal.unfinished_erasures() == []
        assert b"zeppelin" not in b"".join(path.read_bytes() for path in held.iterdir())


def test_the_history_shows_the_first_rows_of_each_lesson(animals_model, texts_model):
    with Class(animals_model) as school:
        rows = [{**ROW, "weight": 1.0 + at} for at in range(7)]
        school.give("learn", rows, ["cat"] * 7)
        school.give("correct", rows[:2], ["dog", "owl"], was=["cat", "cat"])
        school.give("classes", labels=["dog", 'hound "Ü"'])
        school.give("erase", rows[2:3], ["cat"])
        held = {entry.id: entry for entry in school.teacher.journal.after(0)}
        listed = school.teacher.journal.history(None, 10)
        assert [one.entry.id for one in listed] == [4, 3, 2, 1]
        assert [(one.count, one.erased) for one in listed] == [(0, True), (0, False), (2, False), (7, True)]
        for one in listed:
            entry = held[one.entry.id]
            for name in ("rows", "labels", "was"):
                values = getattr(entry, name)
                assert getattr(one.entry, name) == (None if values is None else values[:5])
            assert one.entry.receipt == entry.receipt
        assert [one.entry.id for one in school.teacher.journal.history(3, 1)] == [2]
    with Class(texts_model) as school:
        texts = ["free lunch", 'naïve "é" \x00 漢 😀']
        school.give("learn", texts, ["ham", "ham"])
        [one] = school.teacher.journal.history(None, 10)
        assert (one.entry.rows, one.count) == (texts, 2)


# -- classes, sample, prior --------------------------------------------------------------------------------------------
def test_merged_classes_have_the_sum_of_the_probabilities(animals_model):
    with Class(animals_model) as school:
        before = answer(school.teacher.published, ROW)["probabilities"]
        school.give("classes", labels=["dog", "pet"])
        lesson = school.give("classes", labels=["cat", "pet"])
        merged = answer(school.seen(lesson), ROW)["probabilities"]
        assert merged["pet"] == pytest.approx(before["cat"] + before["dog"], rel=1e-12)
        assert merged["owl"] == pytest.approx(before["owl"], rel=1e-9)
        taught = school.give("learn", [ROW], ["pet"])
        assert taught.labels[0] in ("cat", "dog")
        school.give("undo", undoes=taught.id)
        school.give("undo", undoes=lesson.id)
        published = school.seen(school.give("undo", undoes=1))
        assert answer(published, ROW)["probabilities"] == before


def test_offered_lessons_stay_out_of_the_class_prior(texts_model):
    with Class(texts_model) as school:
        prior = school.teacher.published.counts
        row = next(text for n in range(100) if not school.teacher.lessons.is_asked(text := f"free lunch {n}"))
        lesson = school.give("learn", [row], ["ham"], offered=True)
        published = school.seen(lesson)
        assert lesson.offered
        np.testing.assert_array_equal(published.counts, prior)
        assert published.model.weight == prior.sum() + 1
    with Class(texts_model) as school:
        np.testing.assert_array_equal(school.teacher.published.counts, prior)
        school.seen(school.give("undo", undoes=lesson.id))
        np.testing.assert_array_equal(school.teacher.published.counts, prior)


def test_one_row_in_twenty_is_asked_and_scored_before_it_is_learnt(texts_model):
    from deciban.service.lessons import live_figures

    with Class(texts_model) as school:
        rows = [f"free lunch {n}" for n in range(4000)]
        asked = [row for row in rows if school.teacher.lessons.is_asked(row)]
        assert 130 < len(asked) < 270
        published = school.teacher.published
        lesson = school.give("learn", asked[:50], ["ham"] * 50, offered=True)
        assert not lesson.offered
        scored = [answer(published, row)["probabilities"]["ham"] for row in asked[:50]]
        figures = live_figures(school.teacher.journal.asked())
        assert figures["rows"] == 50
        assert figures["log_loss"] == pytest.approx(-np.mean(np.log(scored)), rel=1e-9)
        assert figures["errors"] == sum(p < 0.5 for p in scored)


def test_readers_keep_one_model_while_lessons_are_learnt(texts_model):
    with Class(texts_model) as school:
        stop, seen = threading.Event(), []

        def read():
            while not stop.is_set():
                published = school.teacher.published
                seen.append((published.version, answer(published, "free lunch")["probability"]))

        thread = threading.Thread(target=read)
        thread.start()
        for _ in range(30):
            school.give("learn", ["free lunch"], ["ham"])
        stop.set()
        thread.join()
        by_version = {}
        for version, p in seen:
            assert by_version.setdefault(version, p) == p
        assert [version for version, _ in seen] == sorted(version for version, _ in seen)
        start = time.perf_counter()
        school.seen(school.give("learn", ["free lunch"], ["ham"]))
        assert time.perf_counter() - start < 5


def test_the_journal_is_durable_and_overwrites_what_it_removes(tmp_path):
    journal = Journal(tmp_path / "journal")
    settings = {
        name: journal._database.execute(f"pragma {name}").fetchone()[0]
        for name in ("journal_mode", "synchronous", "secure_delete")
    }
    assert settings == {"journal_mode": "wal", "synchronous": 2, "secure_delete": 1}
    journal.close()
    with sqlite3.connect(tmp_path / "journal") as database:
        database.execute("pragma user_version=99")
    database.close()
    with pytest.raises(ModelFileError, match="newer deciban"):
        Journal(tmp_path / "journal")
