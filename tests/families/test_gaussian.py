"""Gaussians: prior, posterior and readings, beyond what the laws cover."""

import numpy as np
import pytest
from scipy import optimize
from scipy import stats as sps
from scipy.integrate import quad

from cases import RULES, close
from deciban.errors import HyperparameterError
from deciban.families.abilities import HasDiscriminant, ability
from deciban.families.gaussian import Gaussian
from deciban.statistics import Members
from gaussian_truth import CONCRETE, DIAGONAL, blobs, fitted

each_structure = pytest.mark.parametrize("structure", CONCRETE)
each_diagonal = pytest.mark.parametrize("structure", DIAGONAL)
each_rule = pytest.mark.parametrize("rule", RULES)


@pytest.mark.parametrize("structure", ["full", "tied"])
def test_the_mean_rule_weighs_target_and_scatter_by_strength_and_rows(structure):
    X, members = blobs()
    family, stats = fitted(structure, X, members, strength=7.0, kappa=1e-12)
    density = family.estimate(stats, "mean")
    residual = X - np.stack([X[members.codes == k].mean(axis=0) for k in range(3)])[members.codes]
    groups = [np.arange(60)] * 3 if structure == "tied" else [np.flatnonzero(members.codes == k) for k in range(3)]
    for k, rows in enumerate(groups):
        covariance = (7 * np.diag(family.scale) + residual[rows].T @ residual[rows]) / (7 + len(rows))
        at = min(k, len(density.scale) - 1)
        np.testing.assert_allclose(density.scale[at] / density.divisor[k], covariance, rtol=1e-9)
    np.testing.assert_allclose(family.scale, (residual**2).mean(axis=0))


def log_joint(family, stats, mean, variance, structure):
    """Log posterior of means and variances, up to a constant, by SciPy."""
    stats = stats.whole()
    n, first, second = stats.weight, stats.first, stats.second
    K, D = first.shape
    likelihood = -0.5 * (n * np.log(variance) + (second - 2 * mean * first + n * mean**2) / variance).sum()
    prior = sps.norm.logpdf(mean, family.mean - stats.origin, np.sqrt(variance / family.kappa)).sum()
    spherical, tied = "spherical" in structure, "tied" in structure
    cells = np.broadcast_to(variance, (K, D))[: 1 if tied else K, : 1 if spherical else D]
    nu0 = family.strength * (D if spherical else 1) + family.dof
    psi0 = family.strength * (family.scale.sum() if spherical else family.scale)
    return likelihood + prior + sps.invgamma.logpdf(cells, nu0 / 2, scale=psi0 / 2).sum()


@each_diagonal
def test_map_is_the_joint_mode(structure):
    X, members = blobs(24, D=2)
    family, stats = fitted(structure, X, members, strength=2.0, kappa=0.5)
    density = family.estimate(stats, "map")
    shape = (1 if "tied" in structure else 3, 1 if "spherical" in structure else 2)

    def loss(theta):
        variance = np.broadcast_to(np.exp(theta[6:]).reshape(shape), (3, 2))
        return -log_joint(family, stats, theta[:6].reshape(3, 2), variance, structure)

    start = np.r_[density.shift.ravel(), np.log(density.variance[: shape[0], : shape[1]]).ravel()]
    found = optimize.minimize(loss, start + 0.3, method="BFGS", options={"gtol": 1e-8})
    # the mode in log σ² is not the mode in σ²; the Jacobian is not in `loss`, so this is the mode in σ²
    np.testing.assert_allclose(found.x, start, atol=1e-4)


@pytest.mark.parametrize("structure", ["full", "tied"])
def test_map_of_a_matrix_is_the_joint_mode(structure):
    X, members = blobs(30, D=2)
    family, stats = fitted(structure, X, members, strength=2.0, kappa=0.5)
    density = family.estimate(stats, "map")
    m0, P0 = family.mean - stats.origin, family.strength * np.diag(family.scale)

    def log_posterior(mean, covariances):
        total = 0.0
        for k, S in enumerate(covariances):
            own = X[members.codes == k] - stats.origin
            total += sps.multivariate_normal(mean[k], S).logpdf(own).sum()
            total += sps.multivariate_normal(m0, S / family.kappa).logpdf(mean[k])
        unique = covariances[:1] if structure == "tied" else covariances
        return total + sum(sps.invwishart(family.strength + 1 + family.dof, P0).logpdf(S) for S in unique)

    at = density.scale / density.divisor[: len(density.scale), None, None]
    best = log_posterior(density.shift, np.broadcast_to(at, (3, 2, 2)))
    rng = np.random.default_rng(0)
    for size in (1e-1, 1e-2, 1e-3):
        for _ in range(20):
            step = size * rng.normal(size=at.shape)
            moved = np.broadcast_to(at + step + step.transpose(0, 2, 1), (3, 2, 2))
            if np.linalg.eigvalsh(moved).min() > 0:
                assert log_posterior(density.shift + size * rng.normal(size=(3, 2)), moved) < best


@each_structure
@each_rule
def test_one_dimensional_densities_integrate_to_one(structure, rule):
    X, members = blobs(12, D=1)
    family, stats = fitted(structure, X, members)
    density = family.estimate(stats, rule)
    for k in range(3):
        middle = float(density.mean[k, 0])
        area = quad(lambda x, k=k: np.exp(density.log_density(np.array([[x]]))[0, k]), -np.inf, np.inf, points=None)[0]
        area = area if abs(area - 1) < 1e-6 else _area(density, k, middle)
        assert area == pytest.approx(1.0, abs=1e-6)


def _area(density, k, middle):
    score = lambda x: np.exp(density.log_density(np.array([[x]]))[0, k])  # noqa: E731
    return quad(score, -np.inf, middle)[0] + quad(score, middle, np.inf)[0]


@each_structure
def test_the_evidence_is_the_product_of_predictives(structure):
    X, members = blobs(12)
    family, _ = fitted(structure, X, members)
    nothing = family.collect(X[:0], members.take(slice(0, 0)))
    np.testing.assert_allclose(family.log_evidence(nothing), 0.0, atol=1e-12)
    total, sums = 0.0, nothing
    for i in range(12):
        row = slice(i, i + 1)
        total += family.estimate(sums, "predictive").log_density(X[row])[0, members.codes[i]]
        sums = sums + family.collect(X[row], members.take(row))
    evidence = family.log_evidence(sums)
    assert evidence.shape == ((1,) if "tied" in structure else (3,))
    assert evidence.sum() == pytest.approx(total, rel=1e-9)


@each_structure
def test_the_posterior_is_known(structure):
    X, members = blobs()
    family, stats = fitted(structure, X, members, dof=2.0)  # with which the mean rule is the mean of the covariance
    posterior = family.posterior(stats)
    density = family.estimate(stats, "mean")
    np.testing.assert_allclose(posterior["mean"].mean, density.mean)
    low, high = posterior["mean"].interval(0.9)
    assert (low < posterior["mean"].mean).all()
    assert (posterior["mean"].mean < high).all()
    variance = posterior["variance"]
    if structure in ("full", "tied"):
        plugged = density.scale / density.divisor[: len(density.scale), None, None]
        np.testing.assert_allclose(variance.mean, np.diagonal(plugged, axis1=1, axis2=2))
        np.testing.assert_allclose(posterior["covariance"].mean, plugged)
        np.testing.assert_allclose(posterior["covariance"].draws.mean(axis=0), plugged, rtol=0.1, atol=0.1)
        drawn = np.diagonal(posterior["covariance"].sd, axis1=1, axis2=2)
        np.testing.assert_allclose(drawn, variance.sd, rtol=0.15)
    else:
        shape = variance.mean.shape
        np.testing.assert_allclose(variance.mean, density.variance[: shape[0], : shape[1]])
    assert (variance.mode < variance.mean).all()


def test_known_densities_need_no_data():
    one, two = Gaussian.of(175.33, 52.89), Gaussian.of(161.82, 46.89)
    at = np.array([[174.0]])
    assert np.exp(one.log_density(at) - two.log_density(at))[0, 0] == pytest.approx(4.504, abs=5e-4)
    rows = np.random.default_rng(0).normal(size=(5, 2))
    mean, matrix = np.array([1.0, 2.0]), np.array([[2.0, 0.3], [0.3, 1.0]])
    for spread in (matrix, np.diag(matrix)):
        truth = sps.multivariate_normal(mean, spread if spread.ndim == 2 else np.diag(spread)).logpdf(rows)
        np.testing.assert_allclose(Gaussian.of(mean, spread).log_density(rows)[:, 0], truth)
    drawn = Gaussian.of(mean, matrix).sample(np.zeros(100_000, dtype=int), np.random.default_rng(0))
    np.testing.assert_allclose(np.cov(drawn.T), matrix, atol=0.03)
    np.testing.assert_allclose(drawn.mean(axis=0), mean, atol=0.02)
    for bad in ([1.0, -1.0], np.ones((2, 2)), np.ones((3, 3)), [[1.0, 0.5], [0.0, 1.0]]):
        with pytest.raises(HyperparameterError):
            Gaussian.of(mean, bad)


@each_structure
def test_plug_in_densities_are_polynomials(structure):
    X, members = blobs(at=5.0)
    family, stats = fitted(structure, X, members)
    density = family.estimate(stats, "mean")
    assert ability(density, HasDiscriminant)
    A, b, c = density.polynomial()
    assert (A is None) == ("tied" in structure)
    values = X @ b.T + c + (0 if A is None else np.einsum("nd,kde,ne->nk", X, A, X))
    scores = density.log_density(X)
    if A is None:
        values, scores = values - values[:, :1], scores - scores[:, :1]
    np.testing.assert_allclose(values, scores, rtol=1e-9, atol=1e-9)
    assert not ability(family.estimate(stats, "predictive"), HasDiscriminant)


def test_a_family_fits_without_classes():
    X, _ = blobs(200, K=1)
    fit = Gaussian("full").fit(X)
    again = fit.learn(X[:5]).unlearn(X[:5])
    close(again.stats, fit.stats)
    truth = sps.multivariate_normal(X.mean(axis=0), np.cov(X.T, bias=True)).logpdf(X)
    np.testing.assert_allclose(fit.log_density(X, "ml"), truth, rtol=1e-9)
    assert fit.sample(7, random_state=0).shape == (7, 3)


@each_structure
def test_the_mean_rule_is_the_inverse_of_the_mean_precision(structure):
    X, members = blobs()
    family, stats = fitted(structure, X, members)
    density = family.estimate(stats, "mean")
    variance = family.posterior(stats)["variance"].distribution
    shape, scale = variance.args[0], variance.kwds["scale"]  # 1/σ² ~ Gamma(shape, rate scale)
    if structure in ("full", "tied"):
        plugged = np.diagonal(density.scale, axis1=1, axis2=2) / density.divisor[: len(density.scale), None]
    else:
        plugged = density.variance[: scale.shape[0], : scale.shape[1]]
    np.testing.assert_allclose(plugged, scale / shape)


@each_structure
def test_the_interval_of_a_mean_is_students_where_there_is_one_class(structure):
    X = np.random.default_rng(0).normal(3.0, 2.0, (4, 1))
    low, high = Gaussian(structure, kappa=1e-9).fit(X).posterior()["mean"].interval(0.9)
    expected = sps.t.interval(0.9, 3, X.mean(), X.std(ddof=1) / 2)
    np.testing.assert_allclose([low.item(), high.item()], expected, rtol=1e-6)


@pytest.mark.parametrize("n", [2, 3, 5, 10])
@pytest.mark.parametrize("K", [1, 2, 5])
@pytest.mark.parametrize("structure", ["diagonal", "tied diagonal"])
def test_intervals_of_means_cover_after_few_rows(structure, K, n):
    """2,000 columns are as many repetitions; 90 % intervals, of which 52 % covered at n = 2 with two degrees more."""
    X = np.random.default_rng(n).normal(size=(K * n, 2000))
    members = Members.hard(np.repeat(np.arange(K), n), K)
    family = Gaussian(structure)
    low, high = family.posterior(family.collect(X, members))["mean"].interval(0.9)
    assert 0.88 < ((low < 0) & (high > 0)).mean() < 0.94


def test_a_given_scale_is_known_and_not_estimated():
    X = np.random.default_rng(0).normal(size=(3, 1))
    known = Gaussian("diagonal", scale=[1.0], strength=1e6).fit(X).posterior()["mean"].sd.item()
    assert known == pytest.approx(1 / np.sqrt(3.01), rel=1e-3)
