"""Intervals cover as often as they say; influence is what unlearning does; chains sum to the whole."""

import numpy as np
import pytest

from deciban import Bernoulli, Categorical, Gaussian, GenerativeClassifier, Multinomial, Poisson
from deciban.errors import InputError, NotAvailableError, NotLearntError
from deciban.statistics import Members

D = 3
KNOWN = {"strength": 6, "kappa": 1, "mean": np.zeros(D), "scale": np.ones(D), "origin": np.zeros(D)}
WORLDS = {
    "bernoulli": Bernoulli(1.5, 2.0),
    "multinomial": Multinomial(2.0),
    "diagonal": Gaussian("diagonal", **KNOWN),
    "full": Gaussian("full", **KNOWN),
}


@pytest.mark.parametrize("world", WORLDS)
def test_intervals_cover_as_often_as_they_say(world):
    """Parameters from the prior, data from the parameters: 90 % intervals hold the true llr 90 ± 3 % of the time."""
    family = WORLDS[world]
    rng = np.random.default_rng(7)
    empty = family.collect(np.zeros((0, D)), Members.hard(np.zeros(0, dtype=int), 2))
    hits = []
    codes = np.arange(64) % 2
    for _ in range(150):
        truth = family.draw(empty, rng)
        if world == "multinomial":
            rows = np.stack([rng.multinomial(8, truth.p[k]) for k in codes]).astype(float)
        else:
            rows = truth.sample(codes, rng)
        clf = GenerativeClassifier(family, classes=[0, 1]).fit(rows[:24], codes[:24])
        told = clf.llr_interval(rows[24:], draws=400, random_state=rng)
        scores = truth.log_density(rows[24:])
        llr = scores[:, 1] - scores[:, 0]
        hits.append((told.low <= llr) & (llr <= told.high))
    assert abs(np.mean(hits) - 0.9) < 0.03


@pytest.mark.slow
@pytest.mark.parametrize("structure", ["full", "tied"])
@pytest.mark.parametrize(("n", "least", "most"), [(3, 0.85, 0.96), (5, 0.86, 0.96), (10, 0.86, 0.94)])
def test_intervals_of_covariances_cover_where_the_prior_is_derived(structure, n, least, most):
    """True classes one standard deviation apart, n rows of each."""
    hits = []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        factors = rng.normal(size=(2, D, D))
        covariances = [factor @ factor.T / D + np.eye(D) / 2 for factor in factors]
        covariances[1] = covariances[0] if structure == "tied" else covariances[1]
        truth = [Gaussian.of(mean * np.ones(D) / np.sqrt(D), each) for mean, each in enumerate(covariances)]
        codes = np.arange(2 * n + 4) % 2
        rows = np.stack([truth[k].sample(np.zeros(1, dtype=int), rng)[0] for k in codes])
        told = (
            GenerativeClassifier(Gaussian(structure)).fit(rows[4:], codes[4:]).llr_interval(rows[:4], 1, 0, draws=200)
        )
        llr = truth[1].log_density(rows[:4])[:, 0] - truth[0].log_density(rows[:4])[:, 0]
        hits.append((told.low <= llr) & (llr <= told.high))
    assert least <= np.mean(hits) <= most


def test_what_the_target_determines_costs_draws_no_degrees_of_freedom():
    """ν of the draws: with a strong target that of a variance, after many rows less by (D − 1)/2."""
    rng = np.random.default_rng(0)
    for n, strength, lost in ((4, 1e6, 0.0), (400, 1.0, 1.0)):
        codes = np.arange(2 * n) % 2
        clf = GenerativeClassifier(Gaussian("full", strength=strength)).fit(rng.normal(size=(2 * n, D)), codes)
        found = clf.family_._corrected(clf.stats_.family)
        of_a_variance, drawn = found.nu - (D - 1), found.for_scores()
        np.testing.assert_allclose(drawn.learnt, lost, atol=0.01)
        np.testing.assert_allclose(of_a_variance - drawn.nu, lost * (D - 1) / 2, atol=0.02)


def test_an_interval_shrinks_with_data():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 4000)
    X = rng.normal(y[:, None], 1.0, (4000, 2))
    widths = []
    for n in (40, 4000):
        told = GenerativeClassifier(Gaussian()).fit(X[:n], y[:n]).llr_interval(X[:5], unit="decibans")
        assert (told.low <= told.median).all()
        assert (told.median <= told.high).all()
        widths.append((told.high - told.low).mean())
    assert widths[1] < widths[0] / 4
    with pytest.raises(InputError, match="level"):
        GenerativeClassifier(Gaussian()).fit(X, y).llr_interval(X[:1], level=90)


FAMILIES = [Gaussian(), Gaussian("diagonal"), Gaussian("tied"), Gaussian("spherical"), Poisson(), Multinomial()]
FAMILIES += [Categorical(), {0: Gaussian(), 1: Poisson(), 2: Categorical()}]


@pytest.mark.parametrize("families", FAMILIES, ids=repr)
def test_influence_is_what_unlearning_does(families):
    rng = np.random.default_rng(3)
    y = np.array(["a", "b", "c"])[np.arange(30) % 3]
    X = rng.poisson(3, (30, 3)) + (y == "a")[:, None] * rng.poisson(1, (30, 3))
    clf = GenerativeClassifier(families).fit(X, y)
    told = clf.influence(X[:1], X, y, "a", "b")
    held = clf.family_.resolve(clf.stats_.family)  # the prior of all rows
    for i in range(30):
        without = GenerativeClassifier(held).fit(np.delete(X, i, 0), np.delete(y, i))
        np.testing.assert_allclose(told[i], without.llr(X[:1], "a", "b") - clf.llr(X[:1], "a", "b"), atol=1e-8)


def test_influence_of_strangers_is_refused():
    X, y = np.arange(12.0).reshape(6, 2), [0, 1, 0, 1, 0, 1]
    clf = GenerativeClassifier(Gaussian("diagonal")).fit(X, y)
    with pytest.raises(NotLearntError):
        clf.influence(X[:1], X + 50, y)
    with pytest.raises(InputError, match="one row"):
        clf.influence(X[:2], X, y)


def test_a_chain_splits_a_block_and_sums_to_it():
    rng = np.random.default_rng(4)
    y = rng.integers(0, 2, 60)
    X = rng.normal(size=(60, 4)) @ rng.normal(size=(4, 4)) + y[:, None]
    for rule in ("ml", "mean", "predictive"):
        clf = GenerativeClassifier(Gaussian(), rule=rule).fit(X, y)
        whole, chain = clf.explain(X[:9]), clf.explain(X[:9], chain=True)
        assert whole.parts.shape == (9, 1)
        assert chain.parts.shape == (9, 4)
        np.testing.assert_allclose(chain.total, whole.total, atol=1e-9)
        alone = clf.reestimate(columns=[0])
        np.testing.assert_allclose(chain.parts[:, 0], alone.llr(X[:9, :1]), atol=1e-9 if rule == "ml" else 0.5)


def test_families_that_cannot_draw_say_so():
    from toy_family import Geometric

    clf = GenerativeClassifier(Geometric()).fit([[1.0], [2.0]], [0, 1])
    with pytest.raises(NotAvailableError, match="Geometric"):
        clf.llr_interval([[1.0]])


@pytest.mark.parametrize(("n", "least", "most"), [(3, 0.85, 0.96), (10, 0.86, 0.94)])
def test_intervals_of_the_llr_hold_the_llr_of_the_true_densities(n, least, most):
    """Two classes, one standard deviation apart; 30 fits of n rows each, 20 rows judged."""
    inside = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        y = np.repeat([0, 1], n)
        family = Gaussian("diagonal", origin=[0.0])
        clf = GenerativeClassifier(family).fit(rng.normal(size=(2 * n, 1)) + y[:, None], y)
        new = rng.normal(size=(20, 1)) + rng.integers(0, 2, 20)[:, None]
        found, true = clf.llr_interval(new, draws=60), new[:, 0] - 0.5
        inside.append((found.low < true) & (true < found.high))
    assert least < np.mean(inside) < most
