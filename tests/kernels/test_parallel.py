"""The pool of threads: order, errors, limits that others set, forks, signals and the end of the interpreter."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

import joblib
import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import deciban
from deciban.errors import HyperparameterError
from deciban.kernels import choice, parallel
from deciban.kernels.parallel import added, each, entry_chunks, in_order, row_chunks

ALLOWED = frozenset(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else frozenset()


@pytest.fixture(autouse=True)
def three_threads():
    deciban.set_threads(3)
    yield
    deciban.set_threads(None)


def thread_after_a_while(task):
    time.sleep(0.01)
    return threading.get_ident()


def test_tasks_run_in_as_many_threads_as_were_set_and_no_more():
    assert len(set(each(thread_after_a_while, range(12)))) == 3
    assert len(set(each(thread_after_a_while, range(12), threads=2))) == 2
    deciban.set_threads(1)
    assert set(each(thread_after_a_while, range(4))) == {threading.get_ident()}


def test_callers_in_several_threads_share_the_helpers():
    running, most, lock = 0, 0, threading.Lock()

    def act(task):
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.005)
        with lock:
            running -= 1

    callers = [threading.Thread(target=each, args=(act, range(20))) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert most <= 4 + 2  # each caller works, with two helpers among all


@pytest.mark.skipif(len(ALLOWED) < 2, reason="threads share the only processor")
def test_threads_of_a_run_keep_to_processors_of_their_own():
    both = threading.Barrier(2)

    def processors(_):
        both.wait(10)
        return threading.get_ident(), frozenset(os.sched_getaffinity(0))

    (first, its), (second, others) = each(processors, range(2), threads=2)
    assert first != second
    assert its
    assert others
    assert not its & others
    assert its | others == ALLOWED
    assert os.sched_getaffinity(0) == ALLOWED


@pytest.mark.skipif(len(ALLOWED) < 2, reason="there is one processor")
def test_the_reader_of_results_may_use_all_processors_also_after_errors():
    results = in_order(lambda at: at if at < 3 else 1 / 0, range(4), threads=2)
    assert next(results) == 0
    assert os.sched_getaffinity(0) == ALLOWED
    with pytest.raises(ZeroDivisionError):
        list(results)
    assert os.sched_getaffinity(0) == ALLOWED


def test_more_threads_than_processors_share_them():
    asked = getattr(os, "sched_getaffinity", lambda _: ALLOWED)
    assert set(each(lambda _: frozenset(asked(0)), range(50), threads=len(ALLOWED) + 1)) == {ALLOWED}


def test_results_come_in_the_order_of_the_tasks():
    def act(task):
        time.sleep(0.001 * (task % 3))
        return task

    assert each(act, range(40)) == list(range(40))


def test_few_results_are_kept_that_were_not_read():
    started = []
    results = in_order(lambda task: started.append(task) or task, range(100))
    assert next(results) == 0
    time.sleep(0.05)
    assert len(started) <= 1 + 2 * 3 + 3
    results.close()


def test_sums_of_floats_do_not_depend_on_the_number_of_threads():
    numbers, answers = np.random.default_rng(0).lognormal(0, 20, 20_000), []
    for threads in (1, 2, 3, 8):
        deciban.set_threads(threads)
        answers.append(added(lambda rows: (numbers[rows].sum(keepdims=True),), row_chunks(20_000, 2**15))[0][0])
    assert len(set(answers)) == 1


def test_the_error_of_the_first_task_that_fails_is_raised():
    def act(task):
        time.sleep(0.01 if task == 5 else 0.0)
        if task in (5, 6, 9):
            raise ValueError(task)
        return task

    with pytest.raises(ValueError, match="5"):
        each(act, range(30))
    assert each(lambda task: task, range(30)) == list(range(30))


def test_what_a_task_calls_runs_in_the_thread_of_the_task():
    def act(task):
        return deciban.get_threads(), set(each(thread_after_a_while, range(3))) == {threading.get_ident()}

    assert each(act, range(6)) == [(1, True)] * 6
    assert deciban.get_threads() == 3


def test_the_context_of_the_caller_holds_in_every_thread():
    with choice.forced("numba"):
        assert all(each(lambda task: choice.compiled(0), range(8)))
    assert not any(each(lambda task: choice.compiled(0), range(8)))


def test_blas_has_one_thread_inside_and_as_many_as_before_outside():
    def numbers():
        return [each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"]

    with threadpool_limits(2, user_api="blas"):
        assert all(set(found) == {1} for found in each(lambda task: numbers(), range(6), blas=True))
        assert set(numbers()) == {2}


def test_blas_contexts_of_several_threads_may_overlap():
    with threadpool_limits(2, user_api="blas"):
        first, second = threading.Event(), threading.Event()

        def other():
            with choice.one_thread(0):
                first.set()
                second.wait()

        thread = threading.Thread(target=other)
        with choice.one_thread(0):
            thread.start()
            first.wait()
        assert {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"} == {1}
        second.set()
        thread.join()
        assert {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"} == {2}


# -- limits ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("wrong", [0, -1, 1.5, "many", "2.5"])
def test_a_number_that_is_none_is_refused(wrong):
    with pytest.raises(HyperparameterError, match="not a number of threads"):
        deciban.set_threads(wrong)
    assert deciban.get_threads() == 3


def test_the_environment_sets_the_number_unless_the_program_does(monkeypatch):
    monkeypatch.setenv("DECIBAN_NUM_THREADS", "5")
    assert deciban.get_threads() == 3
    deciban.set_threads(None)
    assert deciban.get_threads() == 5
    monkeypatch.setenv("DECIBAN_NUM_THREADS", "all")
    with pytest.raises(HyperparameterError, match="DECIBAN_NUM_THREADS='all'"):
        deciban.get_threads()


def test_the_default_is_the_number_of_cores_or_that_of_openmp(monkeypatch):
    deciban.set_threads(None)
    monkeypatch.setattr(parallel, "cores", lambda: 6)
    monkeypatch.setattr(parallel, "limited_blas", lambda usual: None)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert deciban.get_threads() == 6
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    assert deciban.get_threads() == 4


def test_a_limit_of_threadpoolctl_holds():
    code = """
import deciban
from threadpoolctl import threadpool_limits
from deciban.kernels import choice, parallel

parallel.cores = lambda: 8
deciban.set_threads(3)
import scipy.linalg
with threadpool_limits(2):
    print(deciban.get_threads())
    with choice.one_thread(0):  # our own limit is none of the user's
        print(deciban.get_threads())
"""
    limits = {"OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"}  # Dask sets them in this process
    environment = {name: value for name, value in os.environ.items() if name not in limits}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["2", "2"]


@pytest.mark.parametrize("backend", ["threading", "loky", "multiprocessing"])
def test_a_worker_of_joblib_uses_one_thread(backend):
    found = joblib.Parallel(2, backend=backend)(joblib.delayed(deciban.get_threads)() for _ in range(2))
    assert found == [1, 1]
    assert joblib.Parallel(1)(joblib.delayed(deciban.get_threads)() for _ in range(2)) == [3, 3]


def test_a_task_of_dask_uses_one_thread():
    distributed = pytest.importorskip("distributed")
    with distributed.Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None) as client:
        assert client.submit(deciban.get_threads, pure=False).result() == 1
    assert deciban.get_threads() == 3


# -- processes ---------------------------------------------------------------------------------------------------------
def total(n):
    return added(lambda rows: (np.arange(n)[rows].sum(keepdims=True),), row_chunks(n, 2**18))[0][0]


def threads_and_total(pipe):
    deciban.set_threads(2)
    pipe.send((len(set(each(thread_after_a_while, range(6)))), total(1_000)))


def test_a_forked_process_starts_threads_of_its_own():
    assert total(1_000) == 499_500  # threads exist now
    fork = multiprocessing.get_context("fork")
    here, there = fork.Pipe()
    child = fork.Process(target=threads_and_total, args=(there,))
    child.start()
    assert here.poll(60)
    assert here.recv() == (2, 499_500)
    child.join(60)
    assert child.exitcode == 0


def run(program, **options):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "DECIBAN_NUM_THREADS": "3"}
    command = [sys.executable, "-c", program]
    return subprocess.Popen(command, env=environment, stdout=-1, stderr=-1, text=True, **options)


def test_tasks_still_run_while_the_interpreter_shuts_down():
    program = """
import atexit, threading
from deciban.kernels.parallel import each
each(abs, range(9))
threading._register_atexit(lambda: print(each(abs, range(-3, 0))))
atexit.register(lambda: print(each(abs, range(-5, 0))))
"""
    process = run(program)
    out, problem = process.communicate(timeout=120)
    assert (out.split("\n")[:2], problem, process.returncode) == (["[3, 2, 1]", "[5, 4, 3, 2, 1]"], "", 0)


def test_an_interrupt_ends_the_call():
    program = """
import time
from deciban.kernels.parallel import each
print("ready", flush=True)
try:
    each(lambda task: time.sleep(0.05), range(10_000))
except KeyboardInterrupt:
    print(each(abs, range(-4, 0)))
"""
    process = run(program)
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    out, problem = process.communicate(timeout=120)
    assert (out, problem) == ("[4, 3, 2, 1]\n", "")


# -- chunks ------------------------------------------------------------------------------------------------------------
def test_chunks_cover_all_rows_in_order_and_start_at_multiples():
    chunks = row_chunks(100_000, 1_000, multiple=64)
    assert np.concatenate([np.arange(100_000)[rows] for rows in chunks]).tolist() == list(range(100_000))
    assert len(chunks) > 5
    assert all(rows.start % 64 == 0 for rows in chunks)


def test_large_partial_sums_make_large_chunks():
    assert len(row_chunks(100_000, 1_000, sums=10**6)) < len(row_chunks(100_000, 1_000))


def test_a_table_of_ten_thousand_rows_is_one_chunk():
    assert len(row_chunks(10_000, 6 * 50)) == 1


def test_entries_are_cut_into_equal_parts_between_rows():
    indptr = np.concatenate([[3], 3 + np.cumsum(np.random.default_rng(0).integers(0, 9, 5_000))])
    chunks = entry_chunks(indptr, 2**12)
    assert [rows.start for rows in chunks[1:]] == [rows.stop for rows in chunks[:-1]]
    assert (chunks[0].start, chunks[-1].stop) == (0, 5_000)
    sizes = [indptr[rows.stop] - indptr[rows.start] for rows in chunks]
    assert max(sizes) <= 2**11 + 9
    assert entry_chunks(np.array([0]), 1) == [slice(0, 0)]
