"""Mixtures behind scikit-learn's mixture interface."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.utils.estimator_checks import parametrize_with_checks

import deciban
from deciban import Bernoulli, Gaussian, MixtureModel, Multinomial
from deciban.errors import HyperparameterError, InputError, NotAvailableError


@pytest.mark.filterwarnings("ignore:.*:sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks([MixtureModel(random_state=0)])
def test_estimator_check(estimator, check):
    check(estimator)


def blobs(n=300, seed=0):
    rng = np.random.default_rng(seed)
    which = rng.integers(0, 3, n)
    return np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0]])[which] + rng.normal(size=(n, 2)), which


def test_the_number_of_clusters_is_found():
    X, which = blobs()
    model = MixtureModel(range(2, 5), random_state=0).fit(X)
    assert model.n_components_ == 3
    assert set(model.criteria_) == {2, 3, 4}
    assert adjusted_rand_score(which, model.predict(X)) > 0.97
    assert adjusted_rand_score(which, model.fit_predict(X)) > 0.97


def test_criteria_and_scores_are_scikit_learns():
    X = load_iris().data
    model = MixtureModel(3, Gaussian("full"), rule="ml", random_state=0, tol=1e-9).fit(X)
    density = model.fitted_.density("ml")
    parts = density.components
    peer = GaussianMixture(3, reg_covar=0.0)
    peer.weights_, peer.means_ = model.weights_, model.means_
    peer.covariances_ = parts.scale / parts.divisor[:, None, None]
    peer.precisions_cholesky_ = np.linalg.cholesky(np.linalg.inv(peer.covariances_))
    np.testing.assert_allclose(model.score_samples(X), peer.score_samples(X), rtol=1e-8)
    np.testing.assert_allclose(model.score(X), peer.score(X), rtol=1e-8)
    assert model.bic(X) == pytest.approx(peer.bic(X))
    assert model.aic(X) == pytest.approx(peer.aic(X))
    assert model.icl(X) >= model.bic(X)
    assert model.lower_bound_ == pytest.approx(peer.score(X), abs=1e-6)
    assert model.converged_
    assert model.n_iter_ == len(model.trace_.objective)


def test_a_row_that_no_cluster_expects_is_an_outlier():
    X, _ = blobs()
    model = MixtureModel(3, random_state=0).fit(X)
    assert 0.01 < model.outliers(X, 0.05).mean() <= 0.05
    assert model.outliers([[30.0, 30.0]]).all()
    with pytest.raises(HyperparameterError, match="share of rows"):
        model.threshold(2)


def test_samples_come_with_their_component():
    X, _ = blobs()
    model = MixtureModel(3, random_state=0).fit(X)
    rows, codes = model.sample(500, random_state=0)
    assert rows.shape == (500, 2)
    np.testing.assert_allclose(np.bincount(codes) / 500, model.weights_, atol=0.07)
    assert (model.predict(rows) == codes).mean() > 0.97


def test_more_rows_move_the_clusters():
    X, _ = blobs(900)
    model = MixtureModel(3, random_state=0).partial_fit(X[:300])
    before = model.fitted_.counts.sum()
    for at in range(300, 900, 100):
        model.partial_fit(X[at : at + 100])
    assert model.fitted_.counts.sum() == pytest.approx(before + 600)
    whole = MixtureModel(3, random_state=0).fit(X)
    assert abs(model.score(X) - whole.score(X)) < 0.01
    with pytest.raises(NotAvailableError, match="refit"):
        model.unlearn(X[:1])


def test_mixed_frames_with_gaps():
    rng = np.random.default_rng(0)
    which = rng.integers(0, 2, 400)
    frame = pd.DataFrame(
        {
            "size": rng.normal(which * 4.0, 1.0),
            "colour": np.where(rng.random(400) < 0.1 + 0.8 * which, "red", "blue"),
            "old": rng.random(400) < 0.2 + 0.6 * which,
        }
    )
    frame.loc[frame.index[::7], "size"] = np.nan
    model = MixtureModel(2, random_state=0).fit(frame)
    assert adjusted_rand_score(which, model.predict(frame)) > 0.8
    assert model.feature_names_in_.tolist() == ["size", "colour", "old"]
    assert model.sample(4, random_state=0)[0].shape == (4, 3)
    assert np.isfinite(model.bic(frame))
    assert model.bic(frame[["old", "size", "colour"]]) == model.bic(frame)
    with pytest.raises(ValueError, match="yet now missing"):
        model.bic(frame[["old", "size"]])


def test_counts_and_flags():
    rng = np.random.default_rng(1)
    which = rng.integers(0, 2, 300)
    topics = rng.dirichlet(np.full(30, 0.2), 2)
    X = sp.csr_array(np.stack([rng.multinomial(40, topics[k]) for k in which]))
    assert adjusted_rand_score(which, MixtureModel(2, Multinomial(), random_state=0).fit(X).predict(X)) > 0.95
    flags = sp.csr_array((rng.random((300, 30)) < topics[which] * 8).astype(float))
    model = MixtureModel(2, Bernoulli(1.5, 1.5), random_state=0).fit(flags)
    assert adjusted_rand_score(which, model.predict(flags)) > 0.8


def test_bad_input_is_said():
    with pytest.raises(InputError, match="not enough rows"):
        MixtureModel(4).fit([[1.0], [2.0]])
    with pytest.raises(HyperparameterError, match="n_components is empty"):
        MixtureModel([]).fit([[1.0], [2.0]])
    with pytest.raises(HyperparameterError, match=r"n_components='auto' is no number.*range\(1, 9\)"):
        MixtureModel("auto").fit([[1.0], [2.0]])
    with pytest.raises(AttributeError, match="Gaussian"):
        _ = MixtureModel(1, Multinomial()).fit([[1, 2], [2, 1]]).means_
    with pytest.raises(InputError, match="name the family"):
        MixtureModel(2).fit(sp.csr_array(np.eye(3)))
    with pytest.raises(InputError, match="at least one row"):
        MixtureModel().fit([[1.0], [2.0]]).sample(0)


def test_a_choice_of_sizes_is_stored_with_the_model(tmp_path):
    X = np.random.default_rng(0).normal(size=(80, 2)) + np.repeat([[0, 0], [9, 9]], 40, axis=0)
    model = MixtureModel(range(1, 3), random_state=0).fit(X)
    deciban.save(model, tmp_path / "m.deciban")
    again = deciban.load(tmp_path / "m.deciban")
    assert tuple(again.n_components) == (1, 2)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
