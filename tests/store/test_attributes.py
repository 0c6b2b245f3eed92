"""Fitted attributes of estimators in files: declared, checked, and complete enough for all that an estimator can do."""

import numpy as np
import pytest
import scipy.sparse as sp

from deciban import PCA, PLSA, Fisher, MixtureModel, SemiSupervised, TopicModel, load, save
from deciban import sklearn as drop_in
from deciban.errors import DecibanError, ModelFileError
from deciban.store import registry
from store.fuzz import Seed, drop_in_labels, drop_ins, fit_drop_in, uses
from store.models import COUNTS, NUMBERS
from versions import with_tested_sklearn


@with_tested_sklearn
def test_attributes_that_estimators_set_are_declared():
    """An attribute of a file that no annotation and no shape describes would be used without a check."""
    labels = np.where(np.arange(len(NUMBERS)) % 3, "a", "b")
    unlabelled = np.where(np.arange(len(NUMBERS)) % 2, labels.astype(object), None)
    models = [
        PCA(2).fit(NUMBERS),
        Fisher(1).fit(NUMBERS, labels),
        MixtureModel(2).fit(NUMBERS),
        SemiSupervised(unlabelled_weight="loo").fit(NUMBERS, unlabelled),
        TopicModel(2, max_iter=3).fit(COUNTS.astype(int)),
        PLSA(2, max_iter=3).fit(COUNTS.astype(int)),
    ]
    for model in [*models, *(fit_drop_in(estimator, rows) for _, estimator, rows in drop_ins())]:
        known = {*registry.attribute_types(type(model)), *getattr(model, "fitted_shapes", dict)()}
        set_by_fit = {name for name in vars(model) if name.endswith("_") and not name.startswith("_")}
        assert set_by_fit <= known, type(model)


@with_tested_sklearn
@pytest.mark.parametrize("name", [name for name, *_ in drop_ins()])
def test_drop_ins_come_back_with_all_that_they_can_do(name, tmp_path):
    _, estimator, rows = next(each for each in drop_ins() if each[0] == name)
    model = fit_drop_in(estimator, rows)
    path = tmp_path / "model.deciban"
    save(model, path)
    loaded = load(path)
    seed = Seed(name, b"", rows[:5], drop_in_labels(rows)[:5])
    asked = dict(uses(model, seed, path))
    for use, ask in uses(loaded, seed, path):
        found, expected = outcome_of(ask), outcome_of(asked[use])
        assert type(found) is type(expected), use
        if isinstance(expected, np.ndarray):
            np.testing.assert_array_equal(found, expected)
        elif isinstance(expected, DecibanError):
            assert str(found) == str(expected)
    assert len(asked) > 3


def outcome_of(ask):
    """The answer, as a dense array if it is sparse, or the error."""
    try:
        answer = ask()
    except DecibanError as error:
        return error
    return answer.toarray() if sp.issparse(answer) else answer


def test_a_drop_in_with_contradictory_attributes_is_refused(tmp_path):
    values, labels = NUMBERS[:, :2], np.where(np.arange(len(NUMBERS)) % 3, "a", "b")
    wrong = {
        "theta_": np.zeros((2, 3)),
        "var_": np.full((2, 2), np.nan),
        "classes_": np.array(["b", "a"]),
        "class_count_": np.array([3, 4]),
        "n_features_in_": 7,
        "epsilon_": "much",
    }
    for name, value in wrong.items():
        model = drop_in.GaussianNB().fit(values, labels)
        setattr(model, name, value)
        with pytest.raises(ModelFileError, match=rf"cannot be saved: GaussianNB.{name}|theta_"):
            save(model, tmp_path / "model.deciban")
    categorical = drop_in.CategoricalNB().fit(NUMBERS[:, :2] > 0, labels)
    for wrong_number in ([2, 2, 2], 2**31, [2, 2**31]):
        categorical.min_categories = wrong_number
        with pytest.raises(ModelFileError, match="min_categories"):
            save(categorical, tmp_path / "model.deciban")
    categorical.min_categories = 1_000
    save(categorical, tmp_path / "model.deciban")
    analysis = drop_in.LinearDiscriminantAnalysis().partial_fit(values, labels, ["a", "b"])
    analysis._moments[0][0] = 5e-324
    with pytest.raises(ModelFileError, match="_moments"):
        save(analysis, tmp_path / "model.deciban")
    counted = drop_in.BernoulliNB().fit(NUMBERS[:, :2] > 0, labels)
    counted.alpha = np.empty(0)
    with pytest.raises(ModelFileError, match="alpha"):
        save(counted, tmp_path / "model.deciban")
    with pytest.raises(ModelFileError, match="CountVectorizer cannot be saved in a model file"):
        save(drop_in.CountVectorizer().fit(["a text", "two texts"]), tmp_path / "model.deciban")


@pytest.mark.parametrize("idf", [-1e308, 1e16])
@pytest.mark.parametrize("use_idf", [True, False])
def test_weights_of_terms_cannot_overflow(tmp_path, idf, use_idf):
    model = drop_in.TfidfTransformer().fit(COUNTS)
    model.idf_ = np.full(COUNTS.shape[1], idf)
    model.set_params(use_idf=use_idf)
    with pytest.raises(ModelFileError, match="idf_"):
        save(model, tmp_path / "model.deciban")
