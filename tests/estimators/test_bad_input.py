"""Bad input is a clear error or a correct answer; never NaN, never a traceback from inside numpy."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

from deciban import Bernoulli, Categorical, Gaussian, GenerativeClassifier, Multinomial, Poisson
from deciban.errors import (
    CostError,
    DecibanError,
    DomainError,
    HyperparameterError,
    ImpossibleRowWarning,
    InputError,
    PriorError,
    SingularError,
    WeightError,
)

rng = np.random.default_rng(0)
X = rng.poisson(3.0, (30, 3)).astype(float)
y = np.tile(["a", "b", "c"], 10)


def spoilt(value, row=17, column=1, dtype=float):
    bad = X.astype(dtype)
    bad[row, column] = value
    return bad


DOMAIN = [
    (Multinomial(), spoilt(-1), r"column '1' holds -1 \(row 17\)"),
    (Multinomial(), spoilt(np.nan), r"'1'.*row 17"),
    (Multinomial(), sp.csr_array(spoilt(-1)), r"column '1' holds -1 \(row 17\)"),
    (Multinomial(), spoilt(np.inf), r"'1'.*row 17"),
    (Poisson(), spoilt(-3), r"column '1' holds -3 \(row 17\); Poisson counts must be ≥ 0"),
    (Poisson(), spoilt(np.inf), r"'1'.*row 17"),
    (Bernoulli(), np.where(X > 2, 1.0, 0.0) + spoilt(0) * 0 + np.eye(30, 3) * 0.5, r"column '0' holds"),
    (Gaussian(), spoilt(np.inf), r"column '1' holds inf \(row 17\)"),
    (Gaussian("diagonal"), spoilt(-np.inf), r"column '1' holds -inf \(row 17\)"),
    (Gaussian("tied"), spoilt("high", dtype=object), r"column '1' holds 'high' \(row 17\)"),
]


@pytest.mark.parametrize(("family", "bad", "message"), DOMAIN)
def test_a_bad_value_is_named_with_its_row_and_column_when_learning(family, bad, message):
    with pytest.raises(DomainError, match=message):
        GenerativeClassifier(family).fit(bad, y)


@pytest.mark.parametrize("structure", ["full", "tied"])
def test_a_gap_is_learnt_by_em_where_columns_vary_together(structure):
    clf = GenerativeClassifier(Gaussian(structure)).fit(spoilt(np.nan), y)
    assert type(clf.model_.family).__name__ == "GaussianWithGaps"
    assert clf.stats_.rows.sum() == len(X)


@pytest.mark.parametrize(("family", "bad", "message"), [d for d in DOMAIN if "nan" not in str(d[1])])
def test_a_bad_value_is_named_with_its_row_and_column_when_asked(family, bad, message):
    good = (X > 2).astype(float) if isinstance(family, Bernoulli) else X
    clf = GenerativeClassifier(family).fit(sp.csr_array(good) if sp.issparse(bad) else good, y)
    with pytest.raises(DomainError, match=message):
        clf.predict(bad)


def test_the_column_is_called_by_its_name():
    frame = pd.DataFrame(spoilt(-3), columns=["age", "calls", "visits"])
    with pytest.raises(DomainError, match="column 'calls' holds -3"):
        GenerativeClassifier(Poisson()).fit(frame, y)


def test_fractional_counts_are_weights_and_never_rounded():
    halves = GenerativeClassifier(Multinomial()).fit(X / 2, y)
    np.testing.assert_allclose(
        halves.stats_.family.counts, GenerativeClassifier(Multinomial()).fit(X, y).stats_.family.counts / 2
    )


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.full(30, -1.0), r"holds -1.0 \(row 0\)"),
        (np.zeros(30), "zero in every row"),
        (np.ones(29), r"shape \(29,\)"),
        (np.r_[np.ones(29), np.nan], r"holds nan \(row 29\)"),
    ],
)
def test_weights_that_are_not_weights(weight, message):
    with pytest.raises(WeightError, match=message):
        GenerativeClassifier(Multinomial()).fit(X, y, sample_weight=weight)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([None] * 3 + ["a"] * 27, "3 of 30 labels are missing"),
        ([np.nan] * 2 + [1.0] * 28, "2 of 30 labels are missing"),
        (pd.Series([None] * 2 + ["a"] * 28, dtype="string"), "2 of 30 labels are missing"),
        (["a", 1] * 15, "mixed types .int and str."),
        (["a"] * 29, "30 rows, but y has 29"),
        (np.linspace(0, 1, 30), "Unknown label type"),
        (np.ones((30, 2)), "1d array"),
        (None, "y is None"),
    ],
)
def test_labels_that_are_not_labels(labels, message):
    with pytest.raises(InputError, match=message):
        GenerativeClassifier(Multinomial()).fit(X, labels)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (X[0], "Reshape your data"),
        (np.zeros((0, 3)), "0 sample"),
        (np.zeros((3, 0)), "0 feature"),
        ([[1, 2], [3]], "different lengths"),
        (X[:, :2] * 1j, "Complex data not supported"),
    ],
)
def test_tables_that_are_not_tables(bad, message):
    with pytest.raises(InputError, match=message):
        GenerativeClassifier(Gaussian()).fit(bad, y[: len(bad)])


def test_another_width_or_other_columns_are_refused():
    clf = GenerativeClassifier(Gaussian()).fit(X, y)
    with pytest.raises(ValueError, match="X has 2 features"):
        clf.predict(X[:, :2])
    named = GenerativeClassifier(Gaussian()).fit(pd.DataFrame(X, columns=list("uvw")), y)
    with pytest.raises(ValueError, match="feature names"):
        named.predict(pd.DataFrame(X, columns=list("uvz")))
    with pytest.raises(InputError, match="no column 'age'"):
        GenerativeClassifier({"age": Gaussian()}).fit(pd.DataFrame(X, columns=list("uvw")), y)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int8, np.uint16, object, bool])
@pytest.mark.parametrize("family", [Gaussian(), Gaussian("diagonal"), Multinomial(), Poisson()], ids=repr)
def test_every_numeric_type_gives_the_same_answer(dtype, family):
    small = np.minimum(X, 1 if dtype is bool else 100)
    expected = GenerativeClassifier(family).fit(small, y).predict_proba(small)
    typed = small.astype(dtype)
    np.testing.assert_allclose(
        GenerativeClassifier(family).fit(typed, y).predict_proba(typed), expected, rtol=1e-6, atol=1e-9
    )


def test_arrays_in_any_layout_give_the_same_answer():
    clf = GenerativeClassifier(Gaussian()).fit(X, y)
    frozen = np.asfortranarray(X)
    frozen.flags.writeable = False
    np.testing.assert_allclose(
        GenerativeClassifier(Gaussian()).fit(frozen, y).predict_proba(frozen), clf.predict_proba(X)
    )
    wide = np.repeat(X, 2, axis=1)[:, ::2]
    np.testing.assert_allclose(clf.predict_proba(wide), clf.predict_proba(X))


@pytest.mark.parametrize("make", [sp.csr_matrix, sp.csr_array, sp.csc_matrix, sp.coo_array])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_every_sparse_container_gives_the_same_answer(make, index):
    thin = make(X)
    for name in ("indices", "indptr"):
        if hasattr(thin, name):
            setattr(thin, name, getattr(thin, name).astype(index))
    dense = GenerativeClassifier(Multinomial()).fit(X, y)
    np.testing.assert_allclose(
        GenerativeClassifier(Multinomial()).fit(thin, y).predict_proba(thin), dense.predict_proba(X)
    )


def test_frames_of_pandas_and_polars_give_the_same_answer():
    data = {"age": X[:, 0], "calls": X[:, 1], "colour": np.where(X[:, 2] > 2, "red", "blue"), "member": X[:, 2] > 3}
    families = {"age": Gaussian(), "calls": Poisson(), "colour": Categorical(), "member": Bernoulli()}
    a, b = pd.DataFrame(data), pl.DataFrame(data)
    first = GenerativeClassifier(families).fit(a, pd.Series(y))
    second = GenerativeClassifier(families).fit(b, pl.Series(y))
    np.testing.assert_allclose(first.predict_proba(a), second.predict_proba(b), rtol=1e-12)
    assert first.feature_names_in_.tolist() == list(data)
    auto = GenerativeClassifier().fit(a, y)
    assert set(auto.families_) == set(data)
    np.testing.assert_allclose(GenerativeClassifier().fit(b, y).predict_proba(b), auto.predict_proba(a), rtol=1e-9)


def test_gaps_in_a_frame_add_nothing_and_say_nothing():
    a = pd.DataFrame({"age": X[:, 0], "colour": np.where(X[:, 2] > 2, "red", "blue")})
    holed = a.copy()
    holed.loc[3, "age"] = np.nan
    holed.loc[4, "colour"] = None
    clf = GenerativeClassifier().fit(holed, y)
    assert np.isfinite(clf.predict_proba(holed)).all()
    blank = pd.DataFrame({"age": [np.nan], "colour": [None]}, dtype=object).astype({"age": float})
    np.testing.assert_allclose(clf.predict_proba(blank)[0], 1 / 3)
    b = pl.DataFrame(
        {"age": holed["age"].to_list(), "colour": [None if i == 4 else v for i, v in enumerate(a["colour"])]}
    )
    np.testing.assert_allclose(GenerativeClassifier().fit(b, y).predict_proba(b), clf.predict_proba(holed), rtol=1e-9)


def test_one_class_is_a_correct_answer():
    for family in (Gaussian(), Multinomial(), Poisson(), Categorical()):
        clf = GenerativeClassifier(family).fit(X, ["only"] * 30)
        assert (clf.predict(X) == "only").all()
        np.testing.assert_array_equal(clf.predict_proba(X), 1.0)


def test_one_row_a_class_and_fewer_rows_than_columns():
    wide = rng.normal(size=(4, 9))
    for structure in ("full", "diagonal", "tied", "spherical", "auto"):
        clf = GenerativeClassifier(Gaussian(structure)).fit(wide, [0, 0, 1, 2])
        assert np.isfinite(clf.predict_log_proba(wide)).all()
    assert np.isfinite(GenerativeClassifier().fit(wide[:1], ["a"]).predict_proba(wide)).all()
    with pytest.raises(SingularError, match="class"):
        GenerativeClassifier(Gaussian(), rule="ml").fit(wide, [0, 0, 1, 1])


def test_constant_columns():
    flat = X.copy()
    flat[:, 1] = 7.0
    for structure in ("full", "diagonal", "tied", "tied diagonal", "spherical", "auto"):
        assert np.isfinite(GenerativeClassifier(Gaussian(structure)).fit(flat, y).predict_log_proba(flat)).all()
    frame = pd.DataFrame(flat, columns=["u", "flat", "w"])
    for structure in ("full", "diagonal", "tied"):
        with pytest.raises(SingularError, match="flat"):
            GenerativeClassifier(Gaussian(structure), rule="ml").fit(frame, y)


def test_an_unseen_category_has_a_defined_answer():
    clf = GenerativeClassifier(Categorical()).fit([["red"], ["blue"], ["red"]], ["a", "b", "a"])
    assert np.isfinite(clf.predict_log_proba([["mauve"]])).all()
    ints = GenerativeClassifier(Categorical()).fit([[0], [1], [0]], ["a", "b", "a"])
    np.testing.assert_allclose(ints.predict_proba([[99]]), clf.predict_proba([["mauve"]]))


def test_impossible_rows_get_the_prior_and_a_warning():
    clf = GenerativeClassifier(Multinomial(), rule="ml").fit([[1, 0, 0], [0, 1, 0], [0, 1, 0]], ["a", "b", "b"])
    with pytest.warns(ImpossibleRowWarning, match="1 row"):
        np.testing.assert_allclose(clf.predict_proba([[0, 0, 3]])[0], [1 / 3, 2 / 3])
    with pytest.warns(ImpossibleRowWarning):
        assert clf.predict([[0, 0, 3]])[0] == "b"
    with pytest.warns(ImpossibleRowWarning):
        assert clf.llr([[0, 0, 3]])[0] == 0
    assert (clf.log_likelihood([[0, 0, 3]]) == -np.inf).all()


def test_priors_and_costs_that_are_not():
    clf = GenerativeClassifier(Multinomial()).fit(X, y)
    with pytest.raises(PriorError, match="sum"):
        clf.predict(X, prior={"a": 0.5, "b": 0.5, "c": 0.5})
    with pytest.raises(PriorError, match="eggs"):
        clf.predict(X, prior={"eggs": 0.5})
    with pytest.raises(CostError):
        clf.predict(X, cost={("a", "b"): -1})
    with pytest.raises(HyperparameterError, match="rule"):
        GenerativeClassifier(Multinomial(), rule="best").fit(X, y)
    with pytest.raises(InputError, match="families"):
        GenerativeClassifier("gaussian").fit(X, y)
    with pytest.raises(InputError, match="not a family"):
        GenerativeClassifier({0: 3.5}).fit(X, y)
    with pytest.raises(HyperparameterError, match="not a family"):
        GenerativeClassifier({0: "gauss"}).fit(X, y)


def test_every_error_is_a_value_error():
    assert issubclass(DecibanError, ValueError)
