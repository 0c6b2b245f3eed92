"""Whole sequences told apart, and models of sequences as files."""

import numpy as np
import pytest

import deciban
from deciban import Categorical, Gaussian, HiddenMarkovModel, HMMClassifier, Multinomial
from deciban.errors import ImpossibleRowWarning, InputError, NotAvailableError
from estimators.test_sequences import DICE, MOVES, casino


# -- whole sequences ---------------------------------------------------------------------------------------------------
def walks(seed=0, n=30):
    rng = np.random.default_rng(seed)
    X, y = [], []
    for i in range(n):
        z = np.cumsum(rng.random(40) < (0.05 if i % 2 else 0.5)) % 2
        X.append(rng.normal(4 * z[:, None], 1, (40, 1)))
        y.append("slow" if i % 2 else "quick")
    return X, np.array(y)


def test_sequences_are_told_apart_by_how_they_move():
    X, y = walks()
    clf = HMMClassifier(Gaussian("diagonal"), 2, random_state=0).fit(X, y)
    new, truth = walks(1)
    assert clf.score(new, truth) > 0.95
    logs = clf.log_likelihood(new)
    np.testing.assert_allclose(clf.llr(new), logs[:, 1] - logs[:, 0])
    np.testing.assert_allclose(
        clf.llr(new, "quick", "slow", unit="decibans"), (logs[:, 0] - logs[:, 1]) * 10 / np.log(10)
    )
    np.testing.assert_allclose(clf.llr(new, "quick"), -clf.llr(new))
    np.testing.assert_allclose(clf.predict_proba(new).sum(axis=1), 1.0)
    joined, lengths = np.concatenate(new), [40] * 30
    np.testing.assert_array_equal(clf.predict(joined, lengths=lengths), clf.predict(new))
    assert set(clf.predict(new, prior={"slow": 0.0})) == {"quick"}
    assert set(clf.predict(new, cost={("slow", "quick"): 0.0})) == {"quick"}


def test_classes_share_their_categories_and_may_differ_in_states():
    X, y = [["a", "b"] * 4, ["a", "c"] * 4], ["x", "y"]
    clf = HMMClassifier(Categorical(), {"x": 1, "y": 2}, random_state=0, tol=1e-3).fit(X, y)
    assert [len(model.classes_) for model in clf.models_.values()] == [1, 2]
    assert {model.density.emissions.names for model in clf.models_.values()} == {(("a", "b", "c"),)}


def test_what_a_sequence_classifier_refuses():
    X, y = walks(n=4)
    clf = HMMClassifier(Gaussian("diagonal"), 2, random_state=0, tol=1e-3).fit(X, y)
    with pytest.raises(NotAvailableError, match="unlearnt"):
        clf.unlearn(X, y)
    with pytest.raises(InputError, match="no such class"):
        clf.llr(X, "fast")
    with pytest.raises(InputError, match="4 rows, but y has 3"):
        clf.fit(X, y[:3])
    with pytest.raises(InputError, match="no sequence of positive weight"):
        clf.fit(X, y, sequence_weight=[1, 0, 1, 0])
    ml = HMMClassifier(Categorical(), 1, rule="ml").fit([[0, 0], [1, 1]], ["x", "y"])
    with pytest.warns(ImpossibleRowWarning):
        np.testing.assert_allclose(ml.predict_proba([[0, 1]]), [[0.5, 0.5]])


# -- files -------------------------------------------------------------------------------------------------------------
def test_models_come_back_from_files_to_the_bit(tmp_path):
    rolls, dice = casino(300)
    few = np.where(np.arange(300) < 100, dice, None)
    models = {
        "em": HiddenMarkovModel(Categorical(), 2, random_state=0, tol=1e-3).fit(rolls),
        "some": HiddenMarkovModel(Categorical(), tol=1e-3).fit(rolls, few),
        "counted": HiddenMarkovModel(Categorical()).fit(rolls, dice),
        "known": HiddenMarkovModel.from_densities(DICE, [0.5, 0.5], MOVES),
        "classes": HMMClassifier(Categorical(), 2, random_state=0, tol=1e-3).fit(
            [rolls[:100], rolls[100:]], ["a", "b"]
        ),
    }
    for name, model in models.items():
        model.save(tmp_path / name)
        back = deciban.load(tmp_path / name)
        assert type(back) is type(model)
        assert back.get_params().keys() == model.get_params().keys()
        np.testing.assert_array_equal(back.classes_, model.classes_)
        if name == "classes":
            np.testing.assert_array_equal(back.log_likelihood([rolls]), model.log_likelihood([rolls]))
            continue
        np.testing.assert_array_equal(back.predict_proba(rolls), model.predict_proba(rolls))
        assert back.score(rolls) == model.score(rolls)
        assert repr(back.trace_) == repr(model.trace_)
    again = deciban.load(tmp_path / "counted").learn(rolls[:9], dice[:9]).unlearn(rolls[:9], dice[:9])
    assert again.stats_.same(models["counted"].stats_)
    with pytest.raises(NotAvailableError, match="EM"):
        deciban.load(tmp_path / "em").unlearn(rolls[:9], dice[:9])


def test_log_likelihoods_include_every_constant():
    rng = np.random.default_rng(0)
    X, y = [rng.multinomial(4, [0.2, 0.3, 0.5], 6).astype(float) for _ in range(12)], ["a", "b"] * 6
    clf = HMMClassifier(Multinomial(), 2, random_state=0, max_iter=5, tol=0).fit(X, y)
    pairs = np.array([[2, 0, 0], [0, 2, 0], [0, 0, 2], [1, 1, 0], [1, 0, 1], [0, 1, 1]], dtype=float)
    every = [pairs[[i, j]] for i in range(6) for j in range(6)]
    np.testing.assert_allclose(np.exp(clf.log_likelihood(every)).sum(axis=0), [1.0, 1.0])
