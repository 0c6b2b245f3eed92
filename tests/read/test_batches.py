"""Where tables end: by rows and by bytes of text, however they came."""

import itertools
import threading
import time

import numpy as np
import pyarrow as pa
import pytest

from deciban.errors import DomainError
from deciban.read import source
from deciban.read.arrow import taken, whole_numbers
from deciban.read.batches import prefetched
from deciban.read.source import regrouped, text_slices

TEXTS = ["x" * n for n in (3, 9, 1, 1, 1, 20, 0, 0, 4, 5, 5, 1)] + [None, "ü" * 4]


@pytest.fixture(autouse=True)
def few_bytes(monkeypatch):
    monkeypatch.setattr(source, "BATCH_TEXT", 10)


def test_items_are_computed_in_advance_and_errors_come_in_their_place():
    made, asked = [], threading.Event()

    def items():
        for n in range(6):
            if n == 2:
                asked.set()
            if n == 5:
                raise DomainError("five")
            made.append(n)
            yield n

    found = prefetched(items())
    assert next(found) == 0
    assert asked.wait(5)
    assert list(itertools.islice(found, 4)) == [1, 2, 3, 4]
    with pytest.raises(DomainError, match="five"):
        next(found)
    assert made == [0, 1, 2, 3, 4]


def test_reading_has_ended_when_the_batches_are_closed():
    ended = []

    def items():
        for n in range(100):
            time.sleep(0.01)
            yield n
            ended.append(n)

    found = prefetched(items())
    assert next(found) == 0
    found.close()
    seen = len(ended)
    time.sleep(0.05)
    assert len(ended) == seen < 10
    assert "deciban-reader" not in " ".join(thread.name for thread in threading.enumerate())


def test_batches_can_be_closed_by_the_thread_that_reads_them():
    """As the garbage collector does when it runs there."""
    suspended, closed = threading.Event(), threading.Event()

    def items():
        yield 0
        assert suspended.wait(5)
        found.close()
        closed.set()
        yield 1

    found = prefetched(items())
    assert next(found) == 0
    suspended.set()
    assert closed.wait(5)


def tables(sizes):
    """The texts in pieces of these sizes."""
    whole, at = pa.table({"text": TEXTS, "row": range(len(TEXTS))}), 0
    for size in sizes:
        yield whole.slice(at, size)
        at += size


@pytest.mark.parametrize("sizes", [[14], [1] * 14, [5, 0, 9], [6, 1, 7]])
def test_tables_end_where_the_rows_say_however_they_come(sizes):
    found = [table["row"].to_pylist() for table in regrouped(tables(sizes), 4, lambda: ["text"])]
    assert found == [[0, 1, 2, 3], [4], [5], [6, 7], [8, 9], [10, 11], [12, 13]]


def test_without_texts_tables_end_by_rows_alone():
    assert [len(table) for table in regrouped(tables([3, 11]), 4)] == [4, 4, 4, 2]


def test_the_parts_of_a_frame_are_those_of_a_file():
    after = pa.chunked_array([TEXTS[4:6], TEXTS[6:8]])
    assert list(text_slices([after], 4)) == [slice(0, 1), slice(1, 2), slice(2, 4)]


@pytest.mark.parametrize("rows", [[0, 3, 9], [9, 3, 3], [], [13]])
def test_rows_of_a_column_in_chunks_are_those_of_the_whole(rows):
    column = pa.chunked_array([TEXTS[:4], TEXTS[4:4], TEXTS[4:]])
    assert taken(column, np.array(rows, int)).to_pylist() == [TEXTS[row] for row in rows]


def test_rows_that_are_not_there_are_refused():
    for rows in ([3, 14], [-1, 3]):
        with pytest.raises(IndexError):
            taken(pa.chunked_array([TEXTS[:4], TEXTS[4:]]), np.array(rows))


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint8(), pa.int32(), pa.int64()])
def test_whole_numbers_are_read_from_their_buffers(kind):
    column = pa.chunked_array([pa.array([9, 1, 120], kind).slice(1), pa.array([], kind), pa.array([3], kind)])
    assert whole_numbers(column).tolist() == [1, 120, 3]
