"""A model is one immutable value that is swapped: in threads, in forked processes, and when a signal interrupts."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from deciban import GenerativeClassifier, load
from estimators.kinds import KINDS
from program import environment

pytestmark = pytest.mark.slow

SECONDS = 30  # after which a forked process is taken to hang


class Taught:
    """A classifier, a lesson, and the answers before and after the lesson."""

    def __init__(self, kind):
        family, make = KINDS[kind]
        self.first, self.lesson, self.asked = make(60), make(7), make(4)
        self.labels, self.new = ["a", "b"] * 30, ["c", "a", "b", "c", "a", "b", "c"]
        self.clf = GenerativeClassifier(family(), ledger=True).fit(self.first, self.labels)
        self.without = self.answers()
        self.learn()
        self.with_lesson = self.answers()
        self.unlearn()
        assert self.without[0].shape != self.with_lesson[0].shape  # the lesson brings a class

    def learn(self):
        self.clf.learn(self.lesson, self.new)

    def unlearn(self):
        self.clf.unlearn(self.lesson, self.new)

    def answers(self, clf=None):
        clf = clf or self.clf
        return clf.predict_proba(self.asked), clf.log_likelihood(self.asked), clf.predict_proba(self.asked[:1])

    def is_known(self, answer, at):
        """Whether an answer is that of one of the two models."""
        known = (self.without[at], self.with_lesson[at])
        return any(answer.shape == one.shape and np.allclose(answer, one, rtol=1e-9, atol=1e-12) for one in known)


def in_fork(work):
    """Run a function in a forked process; it must return, within a time, and raise nothing."""
    child = os.fork()
    if not child:
        try:
            work()
            os._exit(0)
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(1)
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "it hung"


# -- threads -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
def test_answers_are_those_of_the_old_or_the_new_model(kind, often, tmp_path):
    """Writers learn and unlearn one lesson, so that there are two models; readers ask, copy and save them."""
    taught, done, failures = Taught(kind), threading.Event(), []

    def write():
        for _ in range(25):
            taught.learn()
            taught.unlearn()

    def read():
        while not done.is_set():
            for at, answer in enumerate(taught.answers()):
                assert taught.is_known(answer, at)
            labels = taught.clf.predict(taught.asked)
            assert set(labels) <= {"a", "b", "c"}

    def save():
        path = tmp_path / "model.deciban"
        while not done.is_set():
            taught.clf.save(path)
            loaded = load(path)
            assert loaded.stats_.rows.sum() in (60, 67)
            assert len(loaded.ledger_) == loaded.stats_.rows.sum()
            for at, answer in enumerate(taught.answers(loaded)):
                assert taught.is_known(answer, at)

    def guarded(work):
        try:
            work()
        except BaseException as error:
            failures.append(error)
            done.set()

    writer = threading.Thread(target=guarded, args=(write,))
    others = [threading.Thread(target=guarded, args=(work,)) for work in (read, read, save)]
    for thread in (*others, writer):
        thread.start()
    writer.join()
    done.set()
    for thread in others:
        thread.join()
    if failures:
        raise failures[0]
    for at, answer in enumerate(taught.answers()):
        np.testing.assert_allclose(answer, taught.without[at], rtol=1e-9)


# -- forks -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
def test_a_fork_after_use_answers_and_learns(kind):
    """The compiled kernels ran before the fork, as did those with threads."""
    taught = Taught(kind)
    many = KINDS[kind][1](5000)
    expected = taught.clf.predict_proba(many)

    def child():
        assert np.array_equal(taught.clf.predict_proba(many), expected)
        taught.learn()
        for at, answer in enumerate(taught.answers()):
            np.testing.assert_allclose(answer, taught.with_lesson[at], rtol=1e-9)
        GenerativeClassifier(KINDS[kind][0]()).fit(many, ["a", "b"] * 2500).predict_proba(many)

    assert in_fork(child) == 0
    for at, answer in enumerate(taught.answers()):  # the lesson of the child is not ours
        np.testing.assert_array_equal(answer, taught.without[at])


def test_a_fork_while_another_thread_learns_can_learn():
    """The thread that held the lock does not exist in the child."""
    taught, inside, leave = Taught("multinomial"), threading.Event(), threading.Event()

    def hold():
        with taught.clf._writing():
            inside.set()
            leave.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    inside.wait()
    try:

        def child():
            taught.learn()
            for at, answer in enumerate(taught.answers()):
                np.testing.assert_allclose(answer, taught.with_lesson[at], rtol=1e-9)

        assert in_fork(child) == 0
    finally:
        leave.set()
        holder.join()


def test_forks_at_any_moment_of_a_lesson_see_one_model(often):
    taught, done = Taught("text"), threading.Event()

    def write():
        while not done.is_set():
            taught.learn()
            taught.unlearn()

    writer = threading.Thread(target=write)
    writer.start()
    try:

        def child():
            before = taught.answers()
            for at, answer in enumerate(before):
                assert taught.is_known(answer, at)
            (taught.learn if before[0].shape[1] == 2 else taught.unlearn)()

        assert [in_fork(child) for _ in range(15)] == [0] * 15
    finally:
        done.set()
        writer.join()


# -- end of the interpreter --------------------------------------------------------------------------------------------
ENDING = """
import sys, threading, time
import numpy as np
from deciban import GenerativeClassifier, Text
texts = [f"word{i % 7} word{i % 11} word{i % 13}" for i in range(200)]
clf = GenerativeClassifier(Text("multinomial", "counts", 1.0, vocabulary="growing")).fit(texts, ["a", "b"] * 100)
def read():
    while True:
        clf.predict_proba(texts * 20)
def write():
    while True:
        clf.learn(texts, ["a", "b"] * 100)
for work in (read, read, write):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.2)
print("end", flush=True)
"""


def test_the_interpreter_ends_with_threads_at_work():
    done = subprocess.run(
        [sys.executable, "-c", ENDING], env=environment(), capture_output=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"end\n", b"")


# -- signals -----------------------------------------------------------------------------------------------------------
# Python reports, and does not raise, an exception in a callback of the garbage collector (Hypothesis has one)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_an_interrupted_lesson_leaves_the_old_or_the_new_model(kind):
    """A KeyboardInterrupt at many moments of `learn`, `unlearn` and `fit`; afterwards the lock is free."""
    taught = Taught(kind)
    for _ in range(2):  # the second time everything is imported and compiled
        start = time.perf_counter()
        taught.learn()
        taught.unlearn()
        seconds = time.perf_counter() - start

    def interrupt(number, frame):
        raise KeyboardInterrupt

    before, seen = signal.signal(signal.SIGALRM, interrupt), set()
    try:
        for moment in np.linspace(0.02, 1.2, 60):
            try:
                signal.setitimer(signal.ITIMER_REAL, moment * seconds)
                taught.learn()
                taught.unlearn()
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                pass
            signal.setitimer(signal.ITIMER_REAL, 0)
            rows = taught.clf.stats_.rows.sum()
            assert rows in (60, 67)
            assert len(taught.clf.ledger_) == rows
            seen.add(rows)
            for at, answer in enumerate(taught.answers()):
                assert taught.is_known(answer, at)
            if rows == 67:
                taught.unlearn()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert seen == {60, 67}
    free = threading.Thread(target=taught.learn, daemon=True)  # the lock is free for another thread
    free.start()
    free.join(SECONDS)
    assert not free.is_alive()
