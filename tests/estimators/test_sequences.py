"""Hidden Markov models through their public faces."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from deciban import (
    Bernoulli,
    Categorical,
    Gaussian,
    HiddenMarkovModel,
    Mixture,
    Multinomial,
    Poisson,
    Product,
    load,
    save,
)
from deciban.errors import (
    ConvergenceWarning,
    DecibanError,
    DomainError,
    HyperparameterError,
    InputError,
    MergeError,
    NoModeError,
    NotAvailableError,
    NotLearntError,
    WeightError,
)

DICE = {"fair": Categorical.of([1 / 6] * 6), "loaded": Categorical.of([0.1] * 5 + [0.5])}
MOVES = [[0.95, 0.05], [0.1, 0.9]]


def casino(n=5000, seed=0):
    return HiddenMarkovModel.from_densities(DICE, [0.5, 0.5], MOVES).sample(n, random_state=seed)


WORDS = [["the", "dog", "barks"], ["a", "cat", "sleeps"], ["the", "cat", "barks"]]
TAGS = [["D", "N", "V"], ["D", "N", "V"], ["D", "N", "V"]]


# -- finding states ----------------------------------------------------------------------------------------------------
def test_the_dishonest_casino_is_found_out():
    rolls, dice = casino(10_000)
    found = HiddenMarkovModel(Categorical(), 2, rule="ml", random_state=0).fit(rolls)
    assert found.trace_.converged
    np.testing.assert_allclose(found.transmat_, MOVES, atol=0.03)
    np.testing.assert_allclose(found.density.emissions.p, [[1 / 6] * 6, [0.1] * 5 + [0.5]], atol=0.03)
    known = HiddenMarkovModel.from_densities(DICE, [0.5, 0.5], MOVES)
    assert found.score(rolls) >= known.score(rolls)
    right = [(model.predict_proba(rolls).argmax(axis=1) == (dice == "loaded")).mean() for model in (found, known)]
    assert right[0] > right[1] - 0.01 > 0.75  # nobody can do better than who knows the dice


def test_the_seed_alone_decides():
    rolls, _ = casino(600)
    a, b = (HiddenMarkovModel(Categorical(), 2, random_state=3).fit(rolls) for _ in range(2))
    assert a.stats_.same(b.stats_)
    assert len(a.trace_.starts) == 10


FAMILIES = {
    "gaussian": (Gaussian("diagonal"), lambda rng, z: rng.normal(5 * z[:, None], 1, (len(z), 2))),
    "poisson": (Poisson(), lambda rng, z: rng.poisson(2 + 10 * z[:, None], (len(z), 2)).astype(float)),
    "bernoulli": (Bernoulli(), lambda rng, z: (rng.random((len(z), 6)) < 0.2 + 0.6 * z[:, None]).astype(float)),
    "multinomial": (
        Multinomial(),
        lambda rng, z: sp.csr_array(
            rng.multinomial(20, [[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]][0], len(z)) * (1 - z[:, None])
            + rng.multinomial(20, [0.1, 0.1, 0.8], len(z)) * z[:, None]
        ),
    ),
    "product": (
        Product({0: Gaussian("diagonal"), 1: Poisson()}),
        lambda rng, z: np.c_[rng.normal(4 * z, 1), rng.poisson(1 + 6 * z)].astype(float),
    ),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_any_family_can_be_shown(name):
    family, make = FAMILIES[name]
    z = np.repeat([0, 1, 0, 1, 0], [80, 40, 100, 60, 40])
    X = make(np.random.default_rng(0), z)
    model = HiddenMarkovModel(family, 2, random_state=0).fit(X, lengths=[200, 120])
    found = model.predict(X, [200, 120])
    assert max((found == z).mean(), (found != z).mean()) > 0.97
    for rule in ("ml", "map", "mean", "predictive"):
        assert np.isfinite(model.reestimate(rule).score(X, [200, 120]))
    np.testing.assert_allclose(model.predict_proba(X, [200, 120]).sum(axis=1), 1.0)
    rows, states = model.sample([3, 4], random_state=0)
    assert len(states) == 7
    assert rows.shape == (7, X.shape[1])


def test_forbidden_transitions_stay_forbidden():
    rng = np.random.default_rng(1)
    X = np.concatenate([np.r_[rng.normal(0, 1, (20, 1)), rng.normal(5, 1, (20, 1)), rng.normal(10, 1, (20, 1))]] * 5)
    onward = np.triu(np.ones((3, 3))) - np.triu(np.ones((3, 3)), 2)
    model = HiddenMarkovModel(
        Gaussian("diagonal"), 3, start_pseudo_count=[1, 0, 0], transition_pseudo_count=onward, random_state=0
    ).fit(X, lengths=[60] * 5)
    assert (model.transmat_[onward == 0] == 0).all()
    assert model.startprob_.tolist() == [1, 0, 0]
    np.testing.assert_array_equal(model.predict(X[:60]), np.repeat([0, 1, 2], 20))


# -- known states ------------------------------------------------------------------------------------------------------
def test_known_states_are_counted():
    model = HiddenMarkovModel(Categorical()).fit(WORDS, TAGS)
    assert model.classes_.tolist() == ["D", "N", "V"]
    assert model.stats_.start.tolist() == [3, 0, 0]
    assert model.stats_.transition.tolist() == [[0, 3, 0], [0, 0, 3], [0, 0, 0]]
    np.testing.assert_allclose(model.transmat_[0], [1 / 6, 4 / 6, 1 / 6])
    assert model.predict([["a", "dog", "sleeps"]]).tolist() == ["D", "N", "V"]
    assert model.predict(np.array(["a", "dog", "flies"])).tolist() == ["D", "N", "V"]


def test_learning_unlearning_and_merging_are_sums():
    X, y = [*WORDS, ["ouch"]], [*TAGS, ["I"]]
    whole = HiddenMarkovModel(Categorical()).fit(X, y)
    grown = HiddenMarkovModel(Categorical()).learn(X[:2], y[:2]).learn(X[2:], y[2:])  # a state and words arrive
    merged = HiddenMarkovModel(Categorical()).fit(X[:1], y[:1]) + HiddenMarkovModel(Categorical()).fit(X[1:], y[1:])
    assert whole.stats_.same(grown.stats_)
    assert whole.stats_.same(merged.stats_)
    fewer = HiddenMarkovModel(Categorical()).fit(X, y).unlearn(X[2:], y[2:])
    assert fewer.stats_.same(HiddenMarkovModel(Categorical()).fit(X[:2], y[:2]).stats_)
    with pytest.raises(NotLearntError, match="never learnt"):
        fewer.unlearn(X[2:], y[2:])
    with pytest.raises(InputError, match="no states any more"):
        fewer.unlearn(X[:2], y[:2]).predict(X[:1])
    assert fewer.learn(X, y).stats_.same(whole.stats_)


def test_weights_of_known_sequences_count_as_copies():
    heavy = HiddenMarkovModel(Categorical()).fit(WORDS, TAGS, sequence_weight=[2, 0, 1])
    copies = HiddenMarkovModel(Categorical()).fit([WORDS[0], WORDS[0], WORDS[2]], [TAGS[0]] * 3)
    assert heavy.stats_.same(copies.stats_)


def test_unknown_states_are_summed_over():
    rolls, dice = casino(4000)
    few = np.where(np.arange(4000) < 400, dice, None)
    model = HiddenMarkovModel(Categorical(), random_state=0).fit(rolls, few)
    assert model.classes_.tolist() == ["fair", "loaded"]
    assert (model.predict(rolls) == dice).mean() > 0.75
    np.testing.assert_allclose(model.transmat_, MOVES, atol=0.05)
    assert not model.exact_
    codes = np.where(np.arange(4000) < 400, dice == "loaded", -1)
    np.testing.assert_allclose(HiddenMarkovModel(Categorical()).fit(rolls, codes).transmat_, model.transmat_)


def test_a_model_fitted_by_em_says_that_it_is_no_sum():
    rolls, _ = casino(200)
    model = HiddenMarkovModel(Categorical(), 2, random_state=0, tol=1e-3).fit(rolls)
    for act in (
        lambda: model.unlearn(rolls[:5], [0] * 5),
        lambda: model.learn(rolls, [0] * 200),
        lambda: model + model,
    ):
        with pytest.raises(NotAvailableError, match="EM"):
            act()
    counted = HiddenMarkovModel(Categorical()).fit(WORDS, TAGS)
    with pytest.raises(NotAvailableError, match="not known"):
        counted.learn([["a", "dog"]], [["D", None]])
    with pytest.raises(MergeError):
        counted.merge(HiddenMarkovModel(Categorical(2.0)).fit(WORDS, TAGS))


# -- bad input ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("act", "error", "says"),
    [
        (lambda m, X: m.fit(X, lengths=[3, 0, 2]), InputError, "sequence 1 is empty"),
        (lambda m, X: m.fit(X, lengths=[3, 3]), InputError, "lengths sum to 6, but X has 5 rows"),
        (lambda m, X: m.fit(X, lengths=[2.5, 2.5]), InputError, "whole numbers"),
        (lambda m, X: m.fit(X[:0]), InputError, "no rows"),
        (lambda m, X: m.fit([]), InputError, "no rows"),
        (lambda m, X: m.fit(X, [3, 1]), InputError, "fit\\(X, lengths="),
        (lambda m, X: m.fit(X, [[0, 1], [0, 1, 1]], [3, 2]), InputError, "not as long"),
        (lambda m, X: m.fit(X, [None] * 5), InputError, "no state at all"),
        (lambda m, X: m.set_params(n_states=6).fit(X), InputError, "not enough rows"),
        (lambda m, X: m.set_params(n_states=None).fit(X), HyperparameterError, "n_states"),
        (lambda m, X: m.set_params(n_states=3).fit(X, [0, 1, 0, 1, 1]), InputError, "y names 2 states"),
        (lambda m, X: m.fit(np.full((5, 1), -1)), InputError, "every row is missing"),
        (lambda m, X: m.fit(np.array([[0], [-3]])), DomainError, "-3"),
        (lambda m, X: m.set_params(family=Gaussian()).fit([1.0, 2.0, np.inf, 3.0, 0.0]), DomainError, "inf"),
        (lambda m, X: m.fit(X, sample_weight=[1, 1]), WeightError, "shape"),
        (lambda m, X: m.fit(X, sequence_weight=[-1.0]), WeightError, "sequence_weight"),
        (lambda m, X: m.fit(X, start=np.ones((5, 2))), InputError, "sums to 1"),
        (lambda m, X: m.set_params(transition_pseudo_count=-1.0).fit(X), HyperparameterError, "transition"),
        (lambda m, X: m.set_params(start_pseudo_count=[1, 1, 1]).fit(X), HyperparameterError, "2 states"),
        (lambda m, X: m.set_params(rule="best").fit(X), HyperparameterError, "best"),
        (lambda m, X: m.set_params(transition_pseudo_count=0.1).fit(X), NoModeError, "transition_pseudo_count"),
        (lambda m, X: m.fit([np.zeros((2, 1)), np.zeros((2, 2))]), InputError, "differ in columns"),
        (lambda m, X: HiddenMarkovModel.from_densities(DICE, [1, 0], [[1, 1], [0, 1]]), InputError, "sum to 1"),
        (lambda m, X: HiddenMarkovModel.from_densities(DICE, [1], [[1]]), InputError, "2 states"),
    ],
)
def test_bad_input_is_named(act, error, says):
    with pytest.raises(error, match=says):
        act(HiddenMarkovModel(Categorical(), 2, random_state=0), np.array([[0], [1], [0], [2], [1]]))


def test_stopping_early_is_said():
    rolls, _ = casino(300)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        HiddenMarkovModel(Categorical(), 2, max_iter=2, tol=1e-12, random_state=0).fit(rolls)


def test_impossible_sequences_score_minus_infinity_and_have_no_path():
    model = HiddenMarkovModel(Categorical(), rule="ml").fit([[0, 1], [0, 1, 1]], [["a", "b"], ["a", "b", "b"]])
    X, lengths = [0, 1, 1, 0, 0, 0], [3, 1, 2]
    scores = model.score_samples(np.array(X), lengths)
    assert np.isfinite(scores[[0, 1]]).all()
    assert scores[2] == -np.inf
    for act in (model.predict, model.predict_proba):
        with pytest.raises(DecibanError, match=r"step 1 of sequence 2 \(row 5\) is impossible"):
            act(np.array(X), lengths)
    assert model.reestimate("mean").predict(np.array(X), lengths).tolist()[:3] == ["a", "b", "b"]


def test_gaps_and_single_steps_and_one_state():
    X = np.array([[0.0], [np.nan], [1.0], [np.nan]])
    model = HiddenMarkovModel(Gaussian("diagonal"), 1, random_state=0).fit(X, lengths=[1, 1, 1, 1])
    assert model.score_samples(X, [1, 1, 1, 1])[[1, 3]].tolist() == [0, 0]
    np.testing.assert_array_equal(model.predict_proba(X), np.ones((4, 1)))


def test_clone_and_repr():
    model = HiddenMarkovModel(Categorical(), 2, n_starts=3)
    assert clone(model).n_starts == 3
    assert "n_starts=3" in repr(model)


# -- as hmmlearn's users write -----------------------------------------------------------------------------------------
def two_state_rows():
    known = HiddenMarkovModel.from_densities(
        {"low": Gaussian.of(0, 1), "high": Gaussian.of(4, 1)}, [0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]]
    )
    return known, *known.sample([60, 1, 90], random_state=1)


def test_decoding_returns_the_density_of_rows_and_path():
    known, X, _ = two_state_rows()
    lengths = [60, 1, 90]
    score, path = known.decode(X, lengths)
    np.testing.assert_array_equal(path, known.predict(X, lengths))
    codes, begins = (path == "high").astype(int), {0, 60, 61}
    start, steps, rows = known.density.log_start, known.density.log_transitions, known.density.emissions.log_density(X)
    expected = sum(
        (start[codes[t]] if t in begins else steps[codes[t - 1], codes[t]]) + rows[t, codes[t]] for t in range(len(X))
    )
    np.testing.assert_allclose(score, expected)
    total, states = known.decode(X, lengths, algorithm="map")
    posterior = known.predict_proba(X, lengths)
    np.testing.assert_allclose(total, posterior.max(axis=1).sum())
    np.testing.assert_array_equal(states, known.classes_[posterior.argmax(axis=1)])
    with pytest.raises(HyperparameterError, match="viterbi"):
        known.decode(X, lengths, algorithm="best")


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_columns_of_a_frame_are_found_by_name(library, tmp_path):
    frame = pd.DataFrame(np.random.default_rng(0).normal([0, 50], size=(60, 2)), columns=["a", "b"])
    given = frame if library == "pandas" else pl.from_pandas(frame)
    model = HiddenMarkovModel(Gaussian("diagonal"), 2, random_state=0, n_starts=1).fit(given, lengths=[20, 40])
    assert model.feature_names_in_.tolist() == ["a", "b"]
    save(model, tmp_path / "chain.deciban")
    for each in (model, load(tmp_path / "chain.deciban")):
        assert each.score(given[["b", "a"]]) == each.score(given) == each.score(frame.to_numpy())
        assert each.score([given[["b", "a"]][:20], given[["b", "a"]][20:]]) == each.score(given, lengths=[20, 40])
        with pytest.raises(InputError, match="has the columns a, but the model reads a, b"):
            each.predict(given[["a"]])
    states = np.arange(60) % 2
    counted = HiddenMarkovModel(Gaussian("diagonal")).fit(given, states)
    twice = HiddenMarkovModel(Gaussian("diagonal")).fit(given, states).learn(given[["b", "a"]], states)
    np.testing.assert_allclose(twice.means_, counted.means_, rtol=1e-3)
    assert not hasattr(model.fit(frame.to_numpy()), "feature_names_in_")


def test_a_number_of_states_that_is_none_is_refused():
    with pytest.raises(HyperparameterError, match=r"n_states='auto': give .* such as range\(1, 6\)"):
        HiddenMarkovModel(Gaussian(), "auto").fit(np.arange(9.0))


def test_states_that_are_mixtures_are_counted_by_bic():
    _, X, _ = two_state_rows()
    model = HiddenMarkovModel(Mixture(Gaussian("tied"), 2), [1, 2], random_state=0, n_starts=2).fit(X, [60, 1, 90])
    of_states = {1: 1 + 2 + 1, 2: 2 * (1 + 2 + 1)}  # a weight, two means and a variance
    parameters = of_states[model.n_states_] + model.n_states_**2 - 1  # start and transitions
    log_likelihood = model.score(X, [60, 1, 90])
    np.testing.assert_allclose(model.aic(X, [60, 1, 90]), -2 * log_likelihood + 2 * parameters)


def test_states_have_probabilities_of_categories_by_column():
    die = HiddenMarkovModel(Categorical(), 2, random_state=0, n_starts=1).fit(np.arange(30)[:, None] % 3)
    (table,) = die.feature_log_prob_
    assert table.shape == (2, 3)
    np.testing.assert_allclose(np.exp(table).sum(axis=1), 1.0)
    assert die.categories_[0].tolist() == [0, 1, 2]
    rows = pd.DataFrame({"face": list("abc") * 10, "height": np.arange(30.0)})
    both = HiddenMarkovModel({"face": Categorical(), "height": Gaussian()}, 2, random_state=0, n_starts=1).fit(rows)
    assert both.feature_log_prob_["face"].shape == (2, 3)
    assert both.categories_["face"].tolist() == ["a", "b", "c"]
    assert not hasattr(HiddenMarkovModel(Gaussian(), 1).fit(rows[["height"]].to_numpy()), "feature_log_prob_")


def test_the_number_of_states_is_chosen_by_bic_and_lengths_may_follow_the_rows():
    _, X, _ = two_state_rows()
    model = HiddenMarkovModel(Gaussian(), [1, 2, 3], random_state=0, n_starts=3).fit(X, [60, 1, 90])
    assert model.n_states == [1, 2, 3]
    assert model.n_states_ == min(model.criteria_, key=model.criteria_.get) == 2
    parameters = 1 + 2 + 2 * 2  # start, transitions, mean and variance of each state
    log_likelihood = model.score(X, [60, 1, 90])
    np.testing.assert_allclose(model.bic(X, [60, 1, 90]), -2 * log_likelihood + parameters * np.log(151))
    np.testing.assert_allclose(model.aic(X, [60, 1, 90]), -2 * log_likelihood + 2 * parameters)
    assert model.criteria_[2] == model.bic(X, [60, 1, 90])
    again = HiddenMarkovModel(Gaussian(), 2, random_state=0, n_starts=3).fit(X, lengths=[60, 1, 90])
    np.testing.assert_array_equal(again.transmat_, model.transmat_)
    with pytest.raises(HyperparameterError, match="n_states is empty"):
        HiddenMarkovModel(Gaussian(), []).fit(X)
