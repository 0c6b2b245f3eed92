from dataclasses import dataclass

import numpy as np
import pytest

from deciban.errors import MergeError, UnlearnError
from deciban.statistics import Array, Axis, Stats, all_but_one, fixed, nested, summed


@dataclass(frozen=True, eq=False, repr=False)
class Tally(Stats):
    counts: Array = summed("class", "word", floor=True)


@dataclass(frozen=True, eq=False, repr=False)
class Other(Stats):
    counts: Array = summed("class", floor=True)


@dataclass(frozen=True, eq=False, repr=False)
class Shifted(Stats):
    total: Array = summed("class")
    origin: Array = fixed()


@dataclass(frozen=True, eq=False, repr=False)
class Pair(Stats):
    rows: Array = summed("class", floor=True)
    parts: dict = nested()


def tally(classes, words, counts):
    return Tally({"class": Axis(tuple(classes)), "word": Axis(tuple(words))}, np.array(counts, float))


def test_sums_with_different_names_find_their_places():
    both = tally("ab", ["hi", "no"], [[1, 2], [3, 4]]) + tally("bc", ["no", "so"], [[10, 20], [30, 40]])
    assert both.labels["class"].names == ("a", "b", "c")
    assert both.labels["word"].names == ("hi", "no", "so")
    np.testing.assert_array_equal(both.counts, [[1, 2, 0], [3, 14, 20], [0, 30, 40]])


def test_taking_back_prunes_words_that_are_counted_no_more():
    before = tally("ab", ["hi"], [[1], [3]])
    more = tally("ab", ["so"], [[2], [2]])
    assert (before + more).without(more).same(before)


def test_taking_back_what_was_never_there_names_the_place():
    with pytest.raises(UnlearnError, match=r"class 'b', word 'no' would have counts -1"):
        tally("ab", ["no"], [[5], [3]]).without(tally("b", ["no"], [[4]]))


def test_rounding_left_by_fractional_weights_is_zero():
    a = tally("a", ["x"], [[0.1 + 0.2]])
    left = a.without(tally("a", ["x"], [[0.3]]))
    assert left.labels["word"].size == 0


def test_statistics_of_different_families_do_not_add():
    with pytest.raises(MergeError, match="Tally and Other"):
        tally("a", ["x"], [[1]]) + Other({"class": Axis(("a",))}, np.ones(1))


def test_what_is_fixed_must_agree():
    a, b = (Shifted({"class": Axis(("a",))}, np.ones(1), np.array(o)) for o in (0.0, 1.0))
    with pytest.raises(MergeError, match="origin differs"):
        a + b
    assert (a + a).origin == 0


def test_nested_statistics_follow():
    def pair(classes, rows):
        inner = tally(classes, ["x"], [[r] for r in rows])
        return Pair({"class": Axis(tuple(classes))}, np.array(rows, float), {"t": inner})

    both = pair("ab", [1, 2]) + pair("bc", [10, 20])
    np.testing.assert_array_equal(both.rows, [1, 12, 20])
    np.testing.assert_array_equal(both.parts["t"].counts[:, 0], [1, 12, 20])
    np.testing.assert_array_equal((0.5 * both).parts["t"].counts[:, 0], [0.5, 6, 10])
    chosen = both.select("class", np.array([2, 0]))
    np.testing.assert_array_equal(chosen.parts["t"].counts[:, 0], [20, 1])
    with pytest.raises(MergeError, match="different blocks"):
        both + Pair({"class": Axis(("a",))}, np.ones(1), {"u": tally("a", ["x"], [[1]])})


def test_a_repr_is_one_line():
    assert repr(tally("ab", ["hi"], [[1], [3]])) == "Tally(class 2, word 1)"


def test_all_but_one_sums_leave_out_each_part():
    parts = [tally("a", ["x"], [[float(i)]]) for i in range(5)]
    assert [float(rest.counts[0, 0]) for rest in all_but_one(parts)] == [10, 9, 8, 7, 6]
