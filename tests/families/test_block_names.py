"""A block is its columns, not their names joined by commas: names may hold commas themselves."""

import numpy as np
import pandas as pd
import pytest

from deciban import Gaussian, GenerativeClassifier, Poisson, Product, load, release

N = 200
rng = np.random.default_rng(0)
y = np.array(["ill", "well"])[rng.integers(0, 2, N)]
PLAIN = pd.DataFrame(
    {
        "a": rng.normal(size=N) + (y == "ill"),
        "b": rng.normal(size=N),
        "c": rng.poisson(2 + 3 * (y == "ill"), N),
    }
)
COMMAS = PLAIN.rename(columns={"c": "a,b"})


@pytest.fixture
def plain():
    """What the model with commas must be equal to."""
    return GenerativeClassifier({("a", "b"): Gaussian("full"), "c": Poisson()}).fit(PLAIN, y)


@pytest.fixture
def commas():
    return GenerativeClassifier({("a", "b"): Gaussian("full"), "a,b": Poisson()}).fit(COMMAS, y)


def test_two_blocks_whose_names_join_alike_keep_their_columns(plain, commas):
    assert len(commas.families_) == len(plain.families_) == 2
    np.testing.assert_array_equal(commas.log_likelihood(COMMAS), plain.log_likelihood(PLAIN))
    np.testing.assert_array_equal(
        commas.leave_one_out(COMMAS, y, method="log_likelihood"), plain.leave_one_out(PLAIN, y, method="log_likelihood")
    )


def test_the_order_of_columns_does_not_matter(plain):
    swapped = COMMAS[["a,b", "b", "a"]]
    clf = GenerativeClassifier({"a,b": Poisson(), ("a", "b"): Gaussian("full")}).fit(swapped, y)
    np.testing.assert_allclose(clf.log_likelihood(swapped), plain.log_likelihood(PLAIN), rtol=1e-12)


def test_they_learn_unlearn_and_merge_apart(plain, commas):
    more, fewer = slice(0, 30), slice(10, 20)
    plain.learn(PLAIN[more], y[more]).unlearn(PLAIN[fewer], y[fewer])
    commas.learn(COMMAS[more], y[more]).unlearn(COMMAS[fewer], y[fewer])
    np.testing.assert_array_equal((commas + commas).log_likelihood(COMMAS), (plain + plain).log_likelihood(PLAIN))


def test_they_are_explained_apart(plain, commas):
    expected, found = plain.explain(PLAIN[:3]).to_frame(), commas.explain(COMMAS[:3]).to_frame()
    assert len(found) == len(expected)
    np.testing.assert_array_equal(found["evidence"], expected["evidence"])


def test_columns_are_selected_apart(plain, commas):
    counts, numbers = commas.reestimate(columns=["a,b"]), commas.reestimate(columns=["a", "b"])
    np.testing.assert_array_equal(
        counts.log_likelihood(COMMAS[["a,b"]]), plain.reestimate(columns=["c"]).log_likelihood(PLAIN[["c"]])
    )
    np.testing.assert_array_equal(
        numbers.log_likelihood(COMMAS[["a", "b"]]),
        plain.reestimate(columns=["a", "b"]).log_likelihood(PLAIN[["a", "b"]]),
    )
    one = commas.reestimate(columns=["a,b", "b"])  # the numbers lose a column, the counts none
    np.testing.assert_array_equal(
        one.log_likelihood(COMMAS[["a,b", "b"]]),
        plain.reestimate(columns=["c", "b"]).log_likelihood(PLAIN[["c", "b"]]),
    )


@pytest.mark.parametrize("released", [False, True])
def test_they_are_stored_apart(plain, commas, released, tmp_path):
    (release(commas) if released else commas).save(tmp_path / "model.deciban")
    loaded = load(tmp_path / "model.deciban")
    np.testing.assert_array_equal(loaded.log_likelihood(COMMAS), plain.log_likelihood(PLAIN))
    assert str(loaded.families_) == str(commas.families_ if not released else release(commas).families_)


def test_a_product_without_classes_keeps_them_apart():
    commas = Product({("a", "b"): Gaussian("full"), "a,b": Poisson()}).fit(COMMAS)
    plain = Product({("a", "b"): Gaussian("full"), "c": Poisson()}).fit(PLAIN)
    np.testing.assert_array_equal(commas.log_density(COMMAS), plain.log_density(PLAIN))
    assert commas.log_evidence() == plain.log_evidence()
    assert len(list(commas.posterior())) == len(list(plain.posterior()))


HEAD = 65_536  # rows from which families are chosen


def late_gap(name):
    """Two columns that vary together in the first rows, and a gap behind them."""
    n = HEAD + 4
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, n)
    z = rng.normal(size=(n, 2))
    height = z[:, 0] + codes
    height[-2] = np.nan
    frame = pd.DataFrame({name: height, "weight": 0.9 * z[:, 0] + 0.4 * z[:, 1] - codes})
    return frame, np.array(["m", "f"])[codes]


def test_a_name_with_a_comma_and_a_gap_after_the_first_rows(tmp_path):
    frame, labels = late_gap("height_cm")
    whole = GenerativeClassifier().fit(frame[:-4], labels[:-4])
    assert len(whole.families_) == 1  # the columns vary together, so that a gap matters
    plain = GenerativeClassifier().fit(frame, labels)
    named = frame.rename(columns={"height_cm": "height, cm"})
    commas = GenerativeClassifier().fit(named, labels)
    assert list(commas.families_) == ["height, cm", "weight"]
    assert list(commas.families_.values()) == list(plain.families_.values())
    np.testing.assert_array_equal(commas.log_likelihood(named[-9:]), plain.log_likelihood(frame[-9:]))
    path = tmp_path / "late.csv"
    named.assign(sex=labels).to_csv(path, index=False)
    streamed = GenerativeClassifier().fit(path, "sex")
    assert streamed.families_ == commas.families_
    np.testing.assert_array_equal(streamed.predict_proba(named[-9:]), commas.predict_proba(named[-9:]))
