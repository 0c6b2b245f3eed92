"""Tables of which few columns change are equal to copies of them."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from deciban.statistics import changed_columns as module
from deciban.statistics.changed_columns import ChangedColumns, OlderTable, changed_columns

K = 3


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(module, "LEAST_CELLS", 4)


def assert_same(table, cells):
    """Columns, sums, the whole table and copies of it are those of an array; in this order, as the last makes it."""
    rng = np.random.default_rng(0)
    at = rng.integers(0, cells.shape[1], 20)
    assert table.made is None
    assert table.shape == cells.shape
    np.testing.assert_array_equal(table.take(at), cells[:, at])
    np.testing.assert_array_equal(table.column_sums(), cells.sum(axis=0))
    np.testing.assert_array_equal(table.row_sums(), cells.sum(axis=1))
    np.testing.assert_array_equal(copy.copy(table), cells)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(table)), cells)
    np.testing.assert_array_equal(table.cells(), cells)
    np.testing.assert_array_equal(table.take(at), cells[:, at])
    np.testing.assert_array_equal(table.made.column_sums, cells.sum(axis=0))
    np.testing.assert_array_equal(table.made.row_sums, cells.sum(axis=1))


@pytest.mark.parametrize("seed", range(30))
def test_a_course_of_additions_and_removals_gives_the_table_of_copies(seed):
    rng = np.random.default_rng(seed)
    cells = rng.integers(0, 9, (K, rng.integers(2, 12))) / 4.0
    first, held = cells.copy(), cells
    table = changed_columns(cells)
    for step in range(6):
        added = np.flatnonzero(rng.random(cells.shape[1] + 3) < 0.2)
        added = added[added - np.arange(len(added)) <= cells.shape[1]]
        cells = np.insert(cells, added - np.arange(len(added)), 0.0, axis=1)
        table = table.widened(added)
        at = np.flatnonzero(rng.random(cells.shape[1]) < 0.4)
        values = rng.integers(0, 5, (K, len(at))) / 4.0
        table = table.plus(ChangedColumns(None, cells.shape[1], at[:0], at, values))
        cells[:, at] += values
        removed = np.flatnonzero(rng.random(cells.shape[1]) < 0.2)
        cells, table = np.delete(cells, removed, axis=1), table.narrowed(removed)
        if step == 2:
            assert_same(copy_of(table), cells)
            table = changed_columns(folded(table)) if seed % 2 else table
    assert_same(table, cells)
    np.testing.assert_array_equal(held, first)  # the older table is not changed


@pytest.mark.parametrize("seed", range(30))
def test_without_the_columns_that_are_unlike_two_tables_are_equal(seed):
    rng = np.random.default_rng(seed)
    common = changed_columns(rng.integers(0, 9, (K, 12)) / 4.0)
    tables = []
    for _ in range(2):
        table = common.widened(np.flatnonzero(rng.random(12) < 0.15))
        table = table.narrowed(np.flatnonzero(rng.random(table.width) < 0.15))
        at = np.flatnonzero(rng.random(table.width) < 0.2)
        tables.append(table.plus(ChangedColumns(None, table.width, at[:0], at, np.ones((K, len(at))))))
    one, other = tables
    if seed % 3 == 0:
        one.cells()
        other = changed_columns(one).widened(np.array([3])).narrowed(np.array([0, 5]))
    found = one.unlike(other)
    left = [np.delete(copy_of(table).cells(), at, axis=1) for table, at in zip((one, other), found)]
    np.testing.assert_array_equal(*left)
    assert one.unlike(changed_columns(one.cells() + 1)) is None


def copy_of(table):
    return ChangedColumns(table.older, table.width, table.new, table.at, table.values, table.gone)


def folded(table):
    table.cells()
    return table


def test_a_table_that_was_made_is_the_older_table_of_the_next_changes():
    table = changed_columns(np.arange(12.0).reshape(K, 4)).widened(np.array([1]))
    table.cells()
    again = changed_columns(table)
    assert again.older is table.made
    assert len(again.at) == len(again.new) == 0


@pytest.mark.parametrize("odd", [0.1, 2.0**40, np.nan])
def test_numbers_whose_sums_depend_on_their_order_are_copied(odd):
    cells = np.ones((K, 4))
    assert changed_columns(cells) is not None
    at, values = np.array([1]), np.full((K, 1), odd)
    assert changed_columns(cells).plus(ChangedColumns(None, 4, at[:0], at, values)) is None
    cells[1, 2] = odd
    assert OlderTable.of(cells) is None
    assert changed_columns(cells) is None


def test_small_tables_and_many_changes_are_copied(monkeypatch):
    cells, at = np.ones((K, 4)), np.arange(3)
    few = ChangedColumns(None, 4, at[:0], at, np.ones((K, 3)))
    assert changed_columns(cells).plus(few) is not None
    monkeypatch.setattr(module, "MOST_CHANGED", 2)
    assert changed_columns(cells).plus(few) is None
    monkeypatch.setattr(module, "LEAST_CELLS", 13)
    assert changed_columns(cells) is None
