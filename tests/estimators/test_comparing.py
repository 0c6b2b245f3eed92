"""Models side by side, and whether the data look like the model."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from deciban import Gaussian, GenerativeClassifier, Poisson, compare
from deciban.errors import InputError


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


def test_models_are_ranked_by_log_loss_with_paired_differences(iris):
    X, y = iris
    full = GenerativeClassifier(Gaussian()).fit(X, y)
    models = {s: full.reestimate(structure=s) for s in ("full", "tied", "diagonal", "spherical")}
    told = compare(models, X, y)
    losses = [told.evaluations[name].log_loss for name in told.ranking]
    assert losses == sorted(losses)
    mean, low, high = told.difference(told.ranking[-1], told.ranking[0])
    np.testing.assert_allclose(mean, losses[-1] - losses[0])
    assert low < mean < high
    assert "best" in str(told)
    assert set(told.to_dict()) == set(models)


def test_fewer_columns_are_taken_by_name(iris):
    X, y = iris
    frame = pd.DataFrame(X, columns=list("abcd"))
    clf = GenerativeClassifier(Gaussian()).fit(frame, y)
    told = compare({"all": clf, "two": clf.reestimate(columns=["a", "b"])}, frame, y)
    assert told.ranking[0] == "all"


def test_names_must_tell_models_apart(iris):
    X, y = iris
    clf = GenerativeClassifier(Gaussian()).fit(X, y)
    with pytest.raises(InputError, match="same name"):
        compare([clf, clf], X, y)
    with pytest.raises(InputError, match="no model"):
        compare({}, X, y)


def test_a_skewed_column_is_found_and_its_logarithm_proposed():
    rng = np.random.default_rng(0)
    y = np.repeat(["fraud", "honest"], 300)
    frame = pd.DataFrame({"age": rng.normal(40, 9, 600), "amount": np.exp(rng.normal(3, 1, 600))})
    clf = GenerativeClassifier(Gaussian("diagonal")).fit(frame, y)
    told = clf.check_fit(frame, y)
    assert {f.column for f in told.findings} == {"amount"}
    assert all("log-Gaussian" in str(f) for f in told.findings)
    assert all(f.decibans > 100 for f in told.findings)


def test_data_of_the_model_are_not_suspected():
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1], 400)
    X = rng.normal(size=(800, 3)) @ rng.normal(size=(3, 3)) + y[:, None]
    told = GenerativeClassifier(Gaussian()).fit(X, y).check_fit(X, y)
    assert told.findings == ()
    assert told.checked == 6
    counts = rng.poisson(4, (800, 2))
    assert GenerativeClassifier(Poisson()).fit(counts, y).check_fit(counts, y).findings == ()


def test_a_constant_column_is_compared_without_a_warning():
    rng = np.random.default_rng(3)
    y = np.repeat([0, 1], 60)
    X = np.column_stack([rng.normal(size=120), 2.0 * y])
    told = GenerativeClassifier(Gaussian("diagonal")).fit(X, y).check_fit(X, y)
    assert all(np.isfinite(finding.surprise) for finding in told.findings)


def test_overdispersed_counts_are_found():
    rng = np.random.default_rng(2)
    counts = rng.poisson(rng.gamma(0.5, 8, (400, 1)))
    told = GenerativeClassifier(Poisson()).fit(counts, np.repeat([0, 1], 200)).check_fit(counts, np.repeat([0, 1], 200))
    assert {f.column for f in told.findings} == {"0"}


def test_known_densities_sample_each_row_from_its_own():
    clf = GenerativeClassifier.from_densities({"low": Gaussian.of(0, 1), "high": Gaussian.of(100, 1)})
    X, y = clf.sample(500, random_state=0)
    assert X.shape == (500, 1)
    assert ((X[:, 0] > 50) == (y == "high")).all()
    assert 150 < (y == "high").sum() < 350
