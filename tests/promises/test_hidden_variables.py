"""Promises of mixtures, hidden Markov models, semi-supervised classifiers and topic models."""

from __future__ import annotations

from itertools import product
from math import lgamma

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from deciban import (
    PLSA,
    Bernoulli,
    Categorical,
    Gamma,
    Gaussian,
    GaussianWithGaps,
    GenerativeClassifier,
    HiddenMarkovModel,
    HMMClassifier,
    Mixture,
    MixtureModel,
    Multinomial,
    Poisson,
    Product,
    SemiSupervised,
    TopicModel,
    load,
)
from deciban.errors import DomainError, InputError
from deciban.latent.components import MixtureDensity
from deciban.latent.hmm import HMMDensity

rng = np.random.default_rng(0)
NUMBERS = np.r_[rng.normal(0, 1, (100, 2)), rng.normal(6, 1, (100, 2))]
SPARSE = np.c_[rng.poisson(np.repeat([2, 15], 100)), rng.poisson(0.03, (200, 4)), np.zeros(200)].astype(float)
RUNS, TURNS = [[0, 0, 0, 1, 1, 1], [1, 1, 0, 0, 0, 0]] * 9, [[0, 1, 0, 1, 0, 1], [1, 0, 1, 0, 1, 0]] * 9


def never_falls(trace):
    objective = np.array(trace.objective)
    return bool((np.diff(objective) >= -1e-9 * np.abs(objective[1:])).all())


# -- topic shares of short documents are exact -------------------------------------------------------------------------
def posterior_by_enumeration(topics, alpha, words):
    """Mean and standard deviation of θ, summed over the topics of all tokens."""
    weights, means, seconds = [], [], []
    for z in product(range(len(alpha)), repeat=len(words)):
        a = alpha + np.bincount(z, minlength=len(alpha))
        weights.append(np.prod([topics[k, w] for k, w in zip(z, words)]) * np.exp(sum(map(lgamma, a))))
        means.append(a / a.sum())
        seconds.append(a * (a + 1) / (a.sum() * (a.sum() + 1)))
    share = np.array(weights) / np.sum(weights)
    mean = share @ np.array(means)
    return mean, np.sqrt(share @ np.array(seconds) - mean**2)


@pytest.mark.parametrize("alpha", [0.003, 0.1, 1.0, [0.02, 0.3, 1.5]])
def test_the_posterior_of_a_short_document_is_exact(alpha):
    topics = np.random.default_rng(1).dirichlet(np.full(4, 0.5), 3)
    model = TopicModel.from_topics(topics, ["sea", "fish", "wolf", "tree"], alpha=alpha)
    X = np.array([[0, 1, 0, 0], [0, 2, 0, 0], [1, 1, 0, 0], [1, 0, 1, 1], [0, 5, 0, 0], [2, 0, 1, 2], [0, 0, 0, 0]])
    found = model.posterior(X)
    assert found.exact.all()
    for x, mean, sd in zip(X, found.mean, found.sd):
        truth = posterior_by_enumeration(model.topics_, model.alpha_, np.repeat(np.arange(4), x))
        np.testing.assert_allclose([mean, sd], truth, rtol=1e-6, atol=1e-9)


def test_one_token_of_two_topics_alike_is_one_of_them():
    """A word that fits both topics alike tells nothing: the posterior is the prior Beta(.006, .006), of sd .497."""
    model = TopicModel.from_topics([[5, 5, 0], [5, 0, 5]], ["shared", "first", "second"], alpha=0.006)
    assert model.posterior([[1, 0, 0], [3, 0, 0]]).sd == pytest.approx(0.497, abs=1e-4)


def test_one_token_that_two_topics_share_almost_alike_is_one_of_them():
    """Expected counts that are not exactly 0 count like pseudo-counts where α is as small: they gave .348, not .492."""
    topics = [[0.49, 0.51, 0.0], [0.51, 0.0, 0.49], [0.001, 0.4, 0.599]]
    model = TopicModel.from_topics(topics, ["shared", "first", "second"], alpha=[3e-5, 2e-5, 1e-6])
    found, (mean, sd) = model.posterior([[1, 0, 0]]), posterior_by_enumeration(model.topics_, model.alpha_, [0])
    np.testing.assert_allclose(found.mean[0], mean, rtol=1e-6)
    np.testing.assert_allclose(found.sd[0], sd, rtol=1e-5)
    assert found.sd[0, 0] == pytest.approx(0.49, abs=0.01)


def test_posteriors_say_which_documents_are_approximate():
    topics = np.random.default_rng(0).dirichlet(np.ones(30), 20)
    model = TopicModel.from_topics(topics, alpha=0.1)
    X = np.zeros((4, 30))
    X[0, 0], X[1, :4], X[2, :5], X[3, 0] = 1, 1, 1, 1.5
    found = model.posterior(X)
    assert found.exact.tolist() == [True, True, False, False]
    assert repr(found) == "TopicShares(4 documents, 20 topics; 2 exact, 2 approximate)"
    np.testing.assert_allclose(found.mean.sum(axis=1), 1.0)


# -- counts ------------------------------------------------------------------------------------------------------------
def test_poisson_refuses_what_is_not_a_whole_number():
    for act in (
        lambda: Poisson().fit([[2.0], [5.1]]),
        lambda: GenerativeClassifier(Poisson()).fit([[1.0], [2.0]], [0, 1]).predict([[2.0], [5.1]]),
        lambda: MixtureModel(2, Poisson()).fit([[2.0], [5.1]]),
    ):
        with pytest.raises(DomainError, match=r"holds 5\.1 \(row 1\); Poisson counts must be whole numbers") as error:
            act()
        assert error.value.row == 1


def test_mixtures_of_sparse_counts_fit_under_the_default_rule():
    model = MixtureModel(2, Poisson(), random_state=0).fit(SPARSE)
    assert np.isfinite(model.score_samples(SPARSE)).all()
    assert never_falls(model.trace_)
    clf = GenerativeClassifier(Mixture(Poisson(), 2)).fit(SPARSE, np.arange(200) % 2)
    assert np.isfinite(clf.predict_proba(SPARSE)).all()


@pytest.mark.parametrize("rule", ["mean", "map", "ml", "predictive"])
def test_hidden_markov_models_of_sparse_counts_fit(rule):
    model = HiddenMarkovModel(Poisson(), 2, rule=rule, random_state=0).fit(SPARSE)
    assert never_falls(model.trace_)
    assert np.isfinite(model.score(SPARSE))


# -- hidden Markov models take any family ------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("family", "X"),
    [
        (Gaussian("diagonal"), NUMBERS),
        (Gaussian("tied"), NUMBERS),
        (GaussianWithGaps(), np.where(rng.random(NUMBERS.shape) < 0.1, np.nan, NUMBERS)),
        (Bernoulli(), (NUMBERS > 3).astype(float)),
        (Categorical(), np.digitize(NUMBERS, [2, 4])),
        (Multinomial(), np.c_[rng.poisson(5, 200), rng.poisson(NUMBERS[:, 0] ** 2)]),
        (Poisson(), rng.poisson(NUMBERS**2)),
        (Gamma(), np.exp(NUMBERS / 3)),
        (Mixture(Gaussian(), 2), NUMBERS),
        (Mixture(Categorical(), 2), np.digitize(NUMBERS, [2, 4])[:, :1]),
        (Mixture(Poisson(), 2), rng.poisson(np.exp(NUMBERS / 1.5))),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, np.ndarray) else "",
)
def test_hidden_markov_models_take_every_family(family, X, tmp_path):
    model = HiddenMarkovModel(family, 2, random_state=0).fit(X)
    assert never_falls(model.trace_)
    true = np.repeat([0, 1], 100)
    assert max(np.mean(model.predict(X) == true), np.mean(model.predict(X) != true)) > 0.95
    model.save(tmp_path / "model.deciban")
    np.testing.assert_array_equal(load(tmp_path / "model.deciban").predict_proba(X), model.predict_proba(X))


def test_states_that_are_mixtures_score_as_states_of_single_components():
    """S states of M components are S·M states that choose a component anew at each step."""
    model = HiddenMarkovModel(Mixture(Gaussian("diagonal"), 2), 2, n_starts=3, random_state=0).fit(NUMBERS[::2])
    mixtures = model.density.emissions.each
    weights = np.exp([mixture.log_weights for mixture in mixtures])
    start = (model.startprob_[:, None] * weights).ravel()
    moves = np.repeat((model.transmat_[:, :, None] * weights).reshape(2, 4), 2, axis=0)
    singles = {
        (s, m): Gaussian.of(mean, covariance)
        for s, mixture in enumerate(mixtures)
        for m, (mean, covariance) in enumerate(zip(*moments(mixture)))
    }
    wide = HiddenMarkovModel.from_densities(singles, start, moves)
    assert model.score(NUMBERS) == pytest.approx(wide.score(NUMBERS), rel=1e-9)


def moments(mixture):
    parts = mixture.components
    return parts.mean, [np.diag(v) for v in np.broadcast_to(parts.variance, parts.mean.shape)]


def test_a_dict_gives_each_column_its_family(tmp_path):
    families = {"size": Gaussian(), "colour": Categorical()}
    frame = pd.DataFrame({"size": NUMBERS[:, 0], "colour": np.where(NUMBERS[:, 1] > 3, "red", "blue")})
    model = HiddenMarkovModel(families, 2, random_state=0).fit(frame)
    same = HiddenMarkovModel(Product(families), 2, random_state=0).fit(frame)
    np.testing.assert_array_equal(model.predict_proba(frame), same.predict_proba(frame))
    halves = [frame[:100], frame[100:]]
    assert HiddenMarkovModel(families, 2, random_state=0).fit(halves).predict(halves).shape == (200,)
    model.save(tmp_path / "model.deciban")
    np.testing.assert_array_equal(load(tmp_path / "model.deciban").predict(frame), model.predict(frame))
    clf = HMMClassifier(families, 1, random_state=0).fit(halves, ["small", "large"])
    assert clf.predict(halves).tolist() == ["small", "large"]


# -- before fit, and without columns -----------------------------------------------------------------------------------
UNFITTED = [
    (HiddenMarkovModel(Gaussian(), 2), "predict predict_proba score_samples score step_scores"),
    (HMMClassifier(Gaussian()), "predict predict_proba llr decide explain log_likelihood"),
    (SemiSupervised(), "predict predict_proba llr decide explain log_likelihood"),
    (MixtureModel(2), "predict predict_proba score_samples score outliers bic"),
    (TopicModel(2), "transform posterior perplexity coherence"),
    (PLSA(2), "transform perplexity coherence"),
]


@pytest.mark.parametrize(("model", "methods"), UNFITTED, ids=lambda value: type(value).__name__)
def test_a_model_that_is_not_fitted_says_so(model, methods):
    for method in methods.split():
        with pytest.raises(NotFittedError):
            getattr(model, method)(NUMBERS)


def test_a_hidden_markov_model_that_is_not_fitted_says_so_everywhere():
    model = HiddenMarkovModel(Gaussian(), 2)
    fitted = HiddenMarkovModel(Gaussian()).fit(NUMBERS, np.repeat([0, 1], 100))
    for act in (
        model.sample,
        lambda: model.merge(fitted),
        lambda: fitted.merge(model),
        lambda: model.reestimate("ml"),
        lambda: model.density,
        lambda: model.means_,
        lambda: model.unlearn(NUMBERS, np.repeat([0, 1], 100)),
    ):
        with pytest.raises(NotFittedError):
            act()


@pytest.mark.parametrize("family", [Gaussian(), Categorical(), Poisson(), Mixture(Gaussian(), 2)])
def test_rows_without_columns_are_refused(family):
    X = np.zeros((10, 0))
    acts = [
        lambda: HiddenMarkovModel(family, 2).fit(X),
        lambda: HMMClassifier(family, 2).fit([X, X], ["a", "b"]),
        lambda: Mixture(family, 2).fit(X),
        lambda: MixtureModel(2, family).fit(X),
    ]
    for act in acts:
        with pytest.raises(InputError, match=r"0 feature\(s\).*minimum of 1"):
            act()


# -- the shape of a Gamma belongs to the components ------------------------------------------------------------------
WAITS = np.r_[rng.gamma(20, 1 / 20, (300, 1)), rng.gamma(20, 10 / 20, (300, 1))]  # shape 20, means 1 and 10


def test_a_mixture_chooses_the_shape_of_a_gamma_within_components():
    model = MixtureModel(2, Gamma(), random_state=0).fit(WAITS)
    assert model.fitted_.family.shape == pytest.approx(20, rel=0.15)
    assert np.sort(model.predict_proba([[1.0], [10.0]]), axis=0)[1].min() > 0.99
    assert never_falls(model.trace_)
    blocks = MixtureModel(2, {"wait": Gamma(), "size": Gaussian()}, random_state=0)
    blocks.fit(pd.DataFrame({"wait": WAITS[:, 0], "size": rng.normal(size=600)}))
    assert blocks.fitted_.family.families["wait"].shape == pytest.approx(20, rel=0.15)


def test_a_hidden_markov_model_chooses_the_shape_of_a_gamma_within_states():
    model = HiddenMarkovModel(Gamma(), 2, random_state=0).fit(WAITS)
    assert model.family_.shape == pytest.approx(20, rel=0.15)
    assert never_falls(model.trace_)


def test_a_classifier_of_mixtures_chooses_the_shape_of_a_gamma_within_components():
    clf = GenerativeClassifier(Mixture(Gamma(), 2)).fit(WAITS, np.arange(600) % 2)
    assert clf.family_.component.shape == pytest.approx(20, rel=0.15)


# -- labelled and unlabelled rows --------------------------------------------------------------------------------------
def partly_labelled():
    y = np.full(200, None)
    y[:5], y[100:105] = "low", "high"
    return SemiSupervised(GenerativeClassifier(Gaussian("tied"))).fit(NUMBERS, y)


@pytest.mark.parametrize("n", [100, 199, 201, 300])
def test_labels_for_fewer_or_more_rows_are_refused(n):
    with pytest.raises(InputError, match=rf"X has 200 rows, but y has shape \({n},\)"):
        SemiSupervised().fit(NUMBERS, np.resize(["a", "b", None], n))


def test_a_semi_supervised_classifier_is_saved_and_loaded(tmp_path):
    model = partly_labelled()
    model.save(tmp_path / "model.deciban", note="partly labelled")
    loaded = load(tmp_path / "model.deciban")
    assert isinstance(loaded, SemiSupervised)
    np.testing.assert_array_equal(loaded.llr(NUMBERS), model.llr(NUMBERS))


def check_answers(model, X, y, first):
    """Prior → llr → posterior → decision → explanation → evaluation agree with one another."""
    likelihood, llr = model.log_likelihood(X), model.llr(X)
    np.testing.assert_allclose(llr, likelihood[:, 1] - likelihood[:, 0], atol=1e-9)
    prior = {first: 0.2}
    at = model.classes_.tolist().index(first)
    odds = np.log(0.2 / 0.8) + (llr if at == 1 else -llr)
    np.testing.assert_allclose(model.predict_proba(X, prior=prior)[:, at], 1 / (1 + np.exp(-odds)), atol=1e-9)
    np.testing.assert_array_equal(model.predict(X, prior=prior) == first, odds > 0)
    assert len(model.decide(X, unsure=0.9)) == len(llr)
    explained = model.explain(X)
    np.testing.assert_allclose(explained.total, llr, atol=1e-9)
    assert model.evaluate(X, y).error_rate == pytest.approx(np.mean(model.predict(X) != y))
    assert np.isfinite(model.log_marginal(X)).all()


def test_a_semi_supervised_classifier_has_all_answers():
    check_answers(partly_labelled(), NUMBERS, np.repeat(["low", "high"], 100), "low")


def test_a_classifier_of_sequences_has_all_answers():
    y = np.repeat(["runs", "turns"], 18)
    model = HMMClassifier(Categorical(), 2, random_state=0).fit(RUNS + TURNS, y)
    check_answers(model, RUNS + TURNS, y, "runs")


def test_the_evidence_of_a_sequence_is_that_of_its_steps():
    model = HiddenMarkovModel(Gaussian(), 2, n_starts=2, random_state=0).fit(NUMBERS)
    steps = model.step_scores(NUMBERS, [50, 150])
    np.testing.assert_allclose(np.add.reduceat(steps, [0, 50]), model.score_samples(NUMBERS, [50, 150]), rtol=1e-10)
    np.testing.assert_allclose(steps[:20].sum(), model.score(NUMBERS[:20]), rtol=1e-10)
    y = ["runs"] * 18 + ["turns"] * 18 + ["ones"] * 3
    clf = HMMClassifier(Categorical(), 2, random_state=0).fit([*RUNS, *TURNS, [1] * 6, [1] * 5, [1] * 7], y)
    explained = clf.explain([[1, 1, 1, 1], [0, 1, 0, 1, 0]], prior="uniform")
    assert explained.sides[:, 0].tolist() == ["ones", "turns"]
    assert explained.parts.shape == (2, 5)
    assert explained.parts[0, 4] == 0


# -- what people see is in their units ---------------------------------------------------------------------------------
FAR = 1e6


@pytest.mark.parametrize("structure", ["full", "tied", "diagonal", "tied diagonal", "spherical"])
def test_means_and_covariances_are_in_the_units_of_the_data(structure):
    start = np.repeat(np.eye(2), 100, axis=0)
    truth = [NUMBERS[:100], NUMBERS[100:]]
    within = np.mean([np.cov(part.T, ddof=0) for part in truth], axis=0)
    for model in (
        MixtureModel(2, Gaussian(structure), rule="ml", random_state=0).fit(NUMBERS + FAR),
        HiddenMarkovModel(Gaussian(structure), 2, rule="ml", random_state=0).fit(NUMBERS + FAR, start=start),
    ):
        order = np.argsort(model.means_[:, 0])
        np.testing.assert_allclose(
            model.means_[order], FAR + np.array([part.mean(axis=0) for part in truth]), rtol=1e-8
        )
        for covariance, part in zip(model.covariances_[order], truth):
            expected = within if structure.startswith("tied") else np.cov(part.T, ddof=0)
            if structure not in ("full", "tied"):
                expected = np.diag(np.diag(expected))
            if structure == "spherical":
                expected = np.eye(2) * np.trace(expected) / 2
            np.testing.assert_allclose(covariance, expected, atol=1e-3)


def test_densities_print_means_in_the_units_of_the_data():
    mixture = MixtureModel(2, Gaussian(), random_state=0).fit(NUMBERS + FAR)
    printed = repr(mixture.fitted_.density())
    assert "means=[1e+06, 1e+06; " in printed or "means=[1.00001e+06" in printed
    assert "origin" not in printed
    chain = HiddenMarkovModel(Gaussian(), 2, random_state=0).fit(NUMBERS + 100)
    for value in chain.means_.ravel():
        assert f"{value:.6g}" in repr(chain.density)
    assert isinstance(mixture.fitted_.density(), MixtureDensity)
    assert isinstance(chain.density, HMMDensity)


@pytest.mark.parametrize("make", [lambda family: MixtureModel(2, family), lambda family: HiddenMarkovModel(family, 2)])
def test_families_with_moments_have_means_and_others_say_so(make):
    counts = make(Poisson()).set_params(random_state=0).fit(SPARSE)
    assert sorted(counts.means_[:, 0]) == pytest.approx([2, 15], rel=0.15)
    np.testing.assert_allclose(np.diagonal(counts.covariances_, axis1=1, axis2=2), counts.means_)  # Poisson
    named = make(Categorical()).set_params(random_state=0).fit(SPARSE)
    for attribute in ("means_", "covariances_"):
        with pytest.raises(AttributeError, match="Gaussian or Poisson"):
            getattr(named, attribute)
