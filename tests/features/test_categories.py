"""Names become codes and stay names."""

import numpy as np
import pytest
import scipy.sparse as sp

from deciban.errors import DomainError, InputError
from deciban.read.arrays import encode_categories
from deciban.read.codes import Codes


def spelt(codes):
    """The table with its names back."""
    named = codes.named()
    return [[None if v < 0 else named.names[j][v] for j, v in enumerate(row)] for row in named.values]


@pytest.mark.parametrize(
    ("X", "expected"),
    [
        ([["b", 1], ["a", 2]], [["b", 1], ["a", 2]]),
        ([["b", None], [None, "x"]], [["b", None], [None, "x"]]),
        ([["a", np.nan], ["b", 3]], [["a", None], ["b", 3]]),
        ([0.5, 1.5, np.nan], [[0.5], [1.5], [None]]),
        ([3, -1, 0], [[3], [None], [0]]),
        ([2.0, np.nan, 0.0], [[2], [None], [0]]),
        ([True, False], [[1], [0]]),
        ([True, None], [[True], [None]]),
        (np.array(["b", "a"]), [["b"], ["a"]]),
        (["", "a"], [[""], ["a"]]),
    ],
)
def test_names_survive(X, expected):
    assert spelt(encode_categories(X, [])) == expected


def test_a_table_of_integers_is_not_copied():
    X = np.arange(6).reshape(3, 2)
    codes = encode_categories(X, [])
    assert codes.values is X
    assert codes.names is None
    assert np.shares_memory(codes.on([{0: 0, 1: 1, 2: 2, 3: 3, 4: 4}] * 2), X)


def test_rows_are_selected_like_those_of_an_array():
    codes = encode_categories([["a", "x"], ["b", "y"], ["a", "y"]], [])
    assert spelt(codes[[2, 0]]) == [["a", "y"], ["a", "x"]]
    assert codes[1:].shape == (2, 2)
    assert len(codes) == 3
    assert codes.dtype.kind == "i"


def test_names_meet_the_codes_that_a_model_gives_them():
    places = [{"b": 0, "a": 1}]
    assert encode_categories(["a", "b", "z", None], []).on(places).ravel().tolist() == [1, 0, 2, -1]
    assert encode_categories([5, 7, -1, 6], []).on([{7: 0, 5: 1}]).ravel().tolist() == [1, 0, -1, 2]
    assert encode_categories([5, -1], []).on([{"five": 0}]).ravel().tolist() == [1, -1]
    assert encode_categories([1.0, 2.0], []).on([{1: 0, 2: 1}]).ravel().tolist() == [0, 1]


def test_combinations_are_tuples_in_order():
    table = encode_categories([["b", 1], ["a", 2], ["b", None], ["a", 2]], []).combined()
    assert table.names == ((("a", 2), ("b", 1)),)
    assert table.values.ravel().tolist() == [1, 0, -1, 0]
    assert Codes(np.array([[3, 0], [-1, 1]]), None).combined().names == (((3, 0),),)


@pytest.mark.parametrize(
    ("X", "error", "said"),
    [
        (
            np.array([["a"], [1]], dtype=object),
            InputError,
            r"column 'c' mixes numbers and strings .*Turn all its values",
        ),
        ([[{}], [{}]], InputError, "cannot be a name"),
        ([[np.inf]], DomainError, "infinite"),
        (np.array([[np.inf], [None]], dtype=object), DomainError, "'c' holds an infinite"),
        (sp.csr_array([[1]]), InputError, "dense"),
        (np.zeros((2, 2, 2)), InputError, "shape"),
    ],
)
def test_what_is_no_table_of_names_is_refused(X, error, said):
    with pytest.raises(error, match=said):
        encode_categories(X, ["c"])


def test_missing_values_of_pandas():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": pandas.array(["x", None], dtype="string"), "b": pandas.Categorical(["u", None])})
    assert spelt(encode_categories(frame, [])) == [["x", "u"], [None, None]]


def test_many_strings_are_quick():
    rng = np.random.default_rng(0)
    X = rng.choice(np.array([f"category {i}" for i in range(1000)]), (20_000, 2))
    codes = encode_categories(X, [])
    names = np.array(codes.names[0])
    np.testing.assert_array_equal(names[codes.values[:, 0]], X[:, 0])
