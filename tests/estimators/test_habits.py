"""Habits of scikit-learn's users: nested parameters, class weights, columns by name, sums, iterators, subpackages."""

from __future__ import annotations

import inspect
from collections import deque

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import deciban
from cases import CASES
from deciban import (
    PCA,
    PLSA,
    Categorical,
    Fisher,
    Gaussian,
    GenerativeClassifier,
    HiddenMarkovModel,
    HMMClassifier,
    MixtureModel,
    Text,
    TopicModel,
    Transformed,
)
from deciban.errors import DecibanError, HyperparameterError, InputError, PriorError

X, Y = load_iris(return_X_y=True)
FRAME = pd.DataFrame(X, columns=["a", "b", "c", "d"])
NAMES = np.array(["s", "v", "w"])[Y]
TEXTS, LABELS = ["aa bb cc", "cc dd ee", "aa aa", "dd dd"] * 6, [0, 1, 0, 1] * 6


# -- nested parameters ------------------------------------------------------------------------------------------------
def test_a_grid_search_reaches_into_families():
    grid = GridSearchCV(GenerativeClassifier(Text()), {"families__pseudo_count": [0.1, 5.0]}, cv=3).fit(TEXTS, LABELS)
    assert grid.best_estimator_.families.pseudo_count == grid.best_params_["families__pseudo_count"]
    columns = {"a": Gaussian("diagonal"), ("b", "c"): Gaussian()}
    grid = GridSearchCV(GenerativeClassifier(columns), {"families__a__structure": ["diagonal", "tied diagonal"]}, cv=3)
    grid.fit(FRAME, Y)
    assert grid.best_estimator_.families["a"].structure == grid.best_params_["families__a__structure"]
    assert columns["a"].structure == "diagonal"  # families are values, and the dict of the user is not changed


def test_parameters_of_families_inside_families_and_dicts():
    clf = GenerativeClassifier({"a": Transformed("log"), ("b", "c"): Gaussian(), "c__d": Gaussian("diagonal")})
    clf.set_params(
        **{"families__a__inner__strength": 3.0, "families__b,c__structure": "tied", "families__c__d__kappa": 0.5}
    )
    assert clf.families["a"].inner.strength == 3.0
    assert clf.families["b", "c"].structure == "tied"
    assert clf.families["c__d"].kappa == 0.5
    assert clf.get_params()["families__a__inner__strength"] == 3.0
    copy = clone(clf)
    assert copy.get_params() == clf.get_params()
    assert copy.set_params(families=Gaussian(), families__structure="tied").families == Gaussian("tied")
    assert clf.families["a"].inner.strength == 3.0
    pipe = make_pipeline(MixtureModel(2, Gaussian())).set_params(mixturemodel__family__structure="tied")
    assert pipe[0].family == Gaussian("tied")
    assert HiddenMarkovModel(Categorical()).set_params(family__pseudo_count=0.5).family.pseudo_count == 0.5


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_family_is_made_again_of_its_parameters(case):
    family = case.family
    assert type(family)(**family.get_params(deep=False)) == family
    assert set(family.get_params(deep=False)) <= set(inspect.signature(type(family)).parameters)
    assert clone(family) is family
    assert "gaps" in family.accepts or not case.gaps
    assert case.gaps or "gaps" not in family.accepts or sp.issparse(case.rows(np.random.default_rng(0), 9))


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("families__z__structure", "no such column"),
        ("families__a__strenght", "has no hyper-parameter 'strenght'"),
        ("families__a__structure__x", "is not a family"),
        ("prior__x", "is not a family"),
    ],
)
def test_wrong_names_of_parameters_are_named(path, message):
    clf = GenerativeClassifier({"a": Gaussian()})
    with pytest.raises(HyperparameterError, match=message):
        clf.set_params(**{path: 1})
    assert clf.families == {"a": Gaussian()}


# -- class weights ----------------------------------------------------------------------------------------------------
def test_class_weights_are_a_prior_and_leave_densities_alone():
    rows, labels = X[30:120], NAMES[30:120]  # 20, 50 and 20 rows
    plain = GenerativeClassifier(Gaussian("tied")).fit(rows, labels)
    weighted = clone(plain).set_params(class_weight={"s": 3.0, "w": 0.5}).fit(rows, labels)
    np.testing.assert_array_equal(weighted.llr(rows, "s", "v"), plain.llr(rows, "s", "v"))
    prior = np.array([20 * 3, 50, 20 * 0.5])
    np.testing.assert_allclose(weighted.predict_proba(rows), plain.predict_proba(rows, prior=prior / prior.sum()))
    np.testing.assert_array_equal(weighted.predict_proba(rows, prior="learnt"), plain.predict_proba(rows))
    balanced = clone(plain).set_params(class_weight="balanced").fit(rows, labels)
    np.testing.assert_allclose(balanced.predict_proba(rows), plain.predict_proba(rows, prior="uniform"))
    for method in ("leave_one_out", "cross_val_predict"):
        found = getattr(balanced, method)(rows, labels)
        np.testing.assert_allclose(found, getattr(plain, method)(rows, labels, prior="uniform"))
    others = np.arange(len(rows)) != 7
    left = clone(weighted).fit(rows[others], labels[others]).predict_proba(rows[7:8])
    np.testing.assert_allclose(weighted.leave_one_out(rows, labels)[7:8], left, atol=1e-10)


@pytest.mark.parametrize(
    "options", [{"class_weight": {"x": 1}}, {"class_weight": {"s": -1}}, {"class_weight": "equal"},
                {"class_weight": "balanced", "prior": "uniform"}, {"class_weight": {"s": 0, "v": 0, "w": 0}}]
)  # fmt: skip
def test_class_weights_that_mean_nothing_are_refused(options):
    with pytest.raises(PriorError):
        GenerativeClassifier(Gaussian(), **options).fit(X, NAMES).predict(X)


# -- columns, labels, rows --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("families", ["auto", Gaussian("tied"), {"a": Gaussian(), ("b", "c"): Gaussian()}], ids=str)
def test_columns_are_found_by_name_in_any_order(families):
    clf = GenerativeClassifier(families).fit(FRAME, NAMES)
    np.testing.assert_array_equal(clf.predict_proba(FRAME[["d", "b", "a", "c"]]), clf.predict_proba(FRAME))
    with pytest.raises(ValueError, match="unseen at fit time:\n- e"):
        clf.predict(FRAME.assign(e=1.0))
    with pytest.raises(ValueError, match="now missing:\n- a"):
        clf.predict(FRAME[["b", "c", "d"]])


def test_columns_that_no_family_uses_may_be_absent(tmp_path):
    clf = GenerativeClassifier({"a": Gaussian(), "c": Gaussian()}).fit(FRAME, NAMES)
    np.testing.assert_array_equal(clf.predict_proba(FRAME[["c", "a"]]), clf.predict_proba(FRAME))
    FRAME.assign(label=NAMES).to_csv(tmp_path / "iris.csv", index=False)
    clf = GenerativeClassifier({"a": Gaussian(), "c": Gaussian()}).fit(str(tmp_path / "iris.csv"), "label")
    np.testing.assert_array_equal(clf.predict_proba(FRAME[["c", "a"]]), clf.predict_proba(FRAME))


def test_scores_take_the_name_of_the_label_column(tmp_path):
    table = FRAME.assign(label=NAMES)
    clf = GenerativeClassifier().fit(table, "label")
    expected = float((clf.predict(FRAME) == NAMES).mean())
    assert clf.score(table, "label") == clf.score(FRAME, NAMES) == expected
    table.to_csv(tmp_path / "iris.csv", index=False)
    assert clf.score(str(tmp_path / "iris.csv"), "label") == expected


@pytest.mark.parametrize("families", [Gaussian(), {"a": Gaussian(), "b": Gaussian("diagonal")}])
def test_the_label_column_of_the_fit_may_stay_in_the_frame(families):
    frame = FRAME.assign(kind=NAMES)
    clf = GenerativeClassifier(families).fit(frame, "kind")
    np.testing.assert_array_equal(clf.predict(frame), clf.predict(FRAME))
    lazy = pl.from_pandas(frame).lazy()
    np.testing.assert_array_equal(clone(clf).fit(lazy, "kind").predict(lazy), clf.predict(FRAME))
    with pytest.raises(ValueError, match="unseen at fit time"):
        clf.fit(FRAME, NAMES).predict(frame)


def test_iterators_and_lazy_frames_are_read_once():
    clf = GenerativeClassifier().fit((text for text in TEXTS), (label for label in LABELS))
    np.testing.assert_array_equal(clf.predict(text for text in TEXTS), clf.predict(TEXTS))
    by_name = dict(enumerate(TEXTS))
    np.testing.assert_array_equal(clf.predict(by_name.values()), clf.predict(TEXTS))
    np.testing.assert_array_equal(clone(clf).fit(deque(TEXTS), deque(LABELS)).predict(TEXTS), clf.predict(TEXTS))
    lazy = pl.DataFrame(FRAME.assign(label=NAMES)).lazy()
    clf = GenerativeClassifier().fit(lazy, "label").learn(lazy, "label")
    assert clf.class_count_.sum() == 300
    np.testing.assert_array_equal(clf.predict_proba(lazy.drop("label")), clf.predict_proba(FRAME))
    with pytest.raises(InputError, match=r"Give X\.collect"):
        MixtureModel().fit(lazy)
    with pytest.raises(InputError, match=r"Give list\(X\)"):
        MixtureModel().fit(row for row in X)


@pytest.mark.parametrize("kind", [PLSA, TopicModel])
def test_topics_read_iterators_of_texts(kind):
    one, other = kind(2, random_state=0).fit(iter(TEXTS)), kind(2, random_state=0).fit(TEXTS)
    np.testing.assert_array_equal(one.transform(text for text in TEXTS), other.transform(TEXTS))
    assert one.perplexity(iter(TEXTS)) == other.perplexity(TEXTS)
    if kind is TopicModel:
        one.partial_fit(text for text in TEXTS)
        np.testing.assert_array_equal(one.topics_, other.partial_fit(TEXTS).topics_)


def test_projections_and_sequences_read_lazy_frames_and_iterators():
    frame = pl.DataFrame(X, schema=list("abcd"))
    lazy = frame.lazy()
    for kind, labels in ((PCA, ()), (Fisher, (Y,))):
        one, other = kind(1).fit(lazy, *labels), kind(1).fit(frame, *labels)
        np.testing.assert_array_equal(one.transform(lazy), other.transform(frame))
        assert one.feature_names_in_.tolist() == list("abcd")
    options = {"random_state": 0, "n_starts": 1, "max_iter": 5}
    one, other = (HiddenMarkovModel(Gaussian(), 2, **options).fit(rows, [50, 100]) for rows in (lazy, frame))
    assert one.score(lazy, [50, 100]) == other.score(frame, [50, 100])
    parts = [X[:50], X[50:]]
    chain = HiddenMarkovModel(Gaussian(), 2, **options).fit(iter(parts))
    assert chain.score(iter(parts)) == chain.score(parts) == chain.score(X, [50, 100])
    known = HiddenMarkovModel(Gaussian()).fit(iter(parts), iter([Y[:50], Y[50:]]))
    np.testing.assert_array_equal(known.transmat_, HiddenMarkovModel(Gaussian()).fit(parts, [Y[:50], Y[50:]]).transmat_)
    sorter = HMMClassifier(Gaussian(), 1).fit(iter([*parts, X[:70], X[70:]]), ["a", "b", "a", "b"])
    assert sorter.predict(iter(parts)).shape == (2,)


def test_sums_of_several_classifiers():
    parts = [GenerativeClassifier(Gaussian()).fit(X[i::3], Y[i::3]) for i in range(3)]
    np.testing.assert_allclose(
        sum(parts).predict_proba(X), GenerativeClassifier(Gaussian()).fit(X, Y).predict_proba(X), atol=1e-12
    )
    assert sum(part.stats_ for part in parts).rows.sum() == 150
    with pytest.raises(TypeError):
        1 + parts[0]


def test_subpackages_are_attributes():
    assert deciban.plots.__name__ == "deciban.plots"
    assert deciban.sklearn.GaussianNB.__name__ == "GaussianNB"
    with pytest.raises(AttributeError, match="nothing_like_it"):
        deciban.nothing_like_it  # noqa: B018


# -- tags -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("structure", ["full", "tied", "diagonal", "spherical", "auto"])
def test_tags_say_what_a_family_takes(structure):
    tags = GenerativeClassifier(Gaussian(structure)).__sklearn_tags__().input_tags
    gaps = X.copy()
    gaps[3, 1] = np.nan
    for rows, taken in ((sp.csr_array(X), tags.sparse), (gaps, tags.allow_nan)):
        clf = GenerativeClassifier(Gaussian(structure))
        if taken:
            assert clf.fit(rows, Y).predict(rows).shape == (150,)
        else:
            with pytest.raises(DecibanError):
                clf.fit(rows, Y)


def test_a_dict_of_columns_is_a_table():
    columns = {"colour": ["red", "white"] * 10, "age": [31.0, None] * 10}
    labels = ["a", "b"] * 10
    clf = GenerativeClassifier().fit(columns, labels)
    assert list(clf.feature_names_in_) == ["colour", "age"]
    one = {"colour": ["red", "white"], "age": [30.0, None]}
    assert clf.predict(one).tolist() == ["a", "b"]
    np.testing.assert_array_equal(
        GenerativeClassifier().fit({**columns, "kind": labels}, "kind").predict_proba(one), clf.predict_proba(one)
    )
    with pytest.raises(InputError, match=r"a dict is read as columns, and these are none: .*length"):
        clf.predict({"colour": ["red", "white"], "age": [30.0]})
