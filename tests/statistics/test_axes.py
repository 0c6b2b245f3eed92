import pickle

import numpy as np
import pytest

from deciban.errors import MergeError
from deciban.statistics import Axis, LazyNames, Ragged


def test_declared_names_keep_their_order_and_others_are_sorted():
    a, b = Axis.of(("z", "a")), Axis(("q", "c"))
    assert a.union(b).names == ("z", "a", "c", "q")
    assert a.union(b).declared == 2


def test_a_union_does_not_depend_on_the_order_of_undeclared_sides():
    a, b = Axis(("b", "d")), Axis(("a", "d"))
    assert a.union(b) == b.union(a)


def test_columns_without_names_must_be_as_many():
    with pytest.raises(MergeError, match="3 and 4 columns"):
        Axis.of(3).union(Axis.of(4))


def test_names_of_mixed_types_have_no_order():
    with pytest.raises(MergeError, match="int and str"):
        Axis(("a",)).union(Axis((1,)))


def test_positions_find_each_name():
    whole = Axis(("a", "b", "c"))
    np.testing.assert_array_equal(whole.positions(Axis(("c", "a"))), [2, 0])


def test_ragged_axes_unite_feature_by_feature():
    a = Ragged((Axis(("x", "z")), Axis((1,))))
    b = Ragged((Axis(("y",)), Axis((0, 1))))
    both = a.union(b)
    assert [part.names for part in both.parts] == [("x", "y", "z"), (0, 1)]
    np.testing.assert_array_equal(both.positions(a), [0, 2, 4])
    np.testing.assert_array_equal(both.positions(b), [1, 3, 4])


def test_taking_categories_keeps_every_feature():
    axis = Ragged((Axis(("x", "y")), Axis((0, 1, 2))))
    taken = axis.take(np.array([1, 4]))
    assert [part.names for part in taken.parts] == [("y",), (2,)]
    fewer, flat = axis.of_features(np.array([1]))
    assert fewer.parts == (Axis((0, 1, 2)),)
    np.testing.assert_array_equal(flat, [2, 3, 4])


def test_a_selection_in_another_order_is_declared():
    assert Axis(("a", "b", "c")).take(np.array([2, 0])).declared == 2
    assert Axis(("a", "b", "c")).take(np.array([0, 2])).declared == 0


class Unread:
    """A collection whose names must not be read."""

    def __len__(self):
        return 3

    def __iter__(self):
        raise AssertionError("the names were read")

    def __contains__(self, name):
        raise AssertionError("the names were searched")


def test_lazy_names_are_not_read_for_sizes_and_for_axes_of_one_source():
    source = Unread()
    axis = Axis(LazyNames(source))
    again = Axis(LazyNames(source))
    assert axis.size == 3
    assert axis == again
    assert axis.union(again) is axis
    np.testing.assert_array_equal(axis.positions(again), [0, 1, 2])
    assert axis.undeclared.all()


def test_lazy_names_are_the_names_of_their_source():
    lazy, plain = Axis(LazyNames(["a", "c"])), Axis(("a", "c"))
    assert lazy == plain
    assert plain == lazy
    assert hash(lazy) == hash(plain)
    assert lazy != Axis(LazyNames(["a", "b"]))
    assert lazy.union(Axis(("b",))) == Axis(("a", "b", "c"))
    assert pickle.loads(pickle.dumps(lazy)).names == ("a", "c")
    assert type(pickle.loads(pickle.dumps(lazy)).names) is tuple
