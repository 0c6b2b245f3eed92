"""Counts of events: punctuation, documents, tokens, and what is refused."""

from math import fsum, log

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats as sps
from scipy.optimize import minimize_scalar
from scipy.special import gammaln

from deciban import Members, Multinomial, kernels
from deciban.errors import DomainError, EmptyClassError, HyperparameterError, NoModeError, NotAvailableError
from deciban.families.dirichlet import log_factorial, log_rising, log_rising_counts

C = [(6, 8, 14, 1, 10, 1, 7), (8, 10, 14, 0, 11, 1, 7), (12, 22, 34, 1, 21, 2, 13), (4, 6, 10, 1, 6, 1, 4)]
PYTHON = [(6, 14, 30, 6, 2, 16, 16), (2, 8, 14, 3, 1, 9, 8), (4, 14, 26, 7, 2, 15, 14)]
SCRIPTS, LANGUAGE = np.array(PYTHON + C, dtype=float), Members.hard([0, 0, 0, 1, 1, 1, 1], 2)
TEST = np.array([(2, 10, 12, 0, 1, 1, 0), (2, 18, 16, 3, 0, 1, 1)], dtype=float)
DOCUMENTS = np.array([(9, 0, 6, 2), (3, 5, 2, 5), (1, 3, 2, 1), (0, 0, 2, 0)])


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array, sp.csr_matrix])
def test_c_or_python_by_punctuation(make):
    density = Multinomial().estimate(Multinomial().collect(make(SCRIPTS), LANGUAGE), "ml")
    _, b, c = density.polynomial()
    expected = [0.8366, 0.1654, -0.0515, -1.7537, 2.1821, -2.1591, -0.2833]
    np.testing.assert_allclose(b[1] - b[0], expected, atol=5e-5)
    assert (c == 0).all()
    scores = density.log_density(make(TEST))
    np.testing.assert_allclose(scores[:, 1] - scores[:, 0], [2.7323, -3.8767], atol=5e-5)


def test_four_documents_as_counts():
    density = Multinomial().fit(DOCUMENTS).density("ml")
    np.testing.assert_allclose(density.p, [np.array([13, 8, 12, 8]) / 41], rtol=1e-15)


def test_marginals_are_betas_against_scipy():
    alpha = np.array([2.0, 1.5, 4.0, 1.0])
    posterior = Multinomial(alpha).fit(DOCUMENTS).posterior()
    A = alpha + np.array([13, 8, 12, 8])
    truth = sps.dirichlet(A)
    np.testing.assert_allclose(posterior.mean[0], truth.mean())
    np.testing.assert_allclose(posterior.variance[0], truth.var())
    np.testing.assert_allclose(posterior.mode[0], (A - 1) / (A.sum() - 4))
    np.testing.assert_allclose(posterior.interval(0.8)[0][0], sps.beta(A, A.sum() - A).ppf(0.1))


@pytest.mark.parametrize(("alpha", "K"), [(1.0, 2), (3.0, 5), (0.2, 10)])
def test_the_symmetric_dirichlet_before_any_data(alpha, K):
    family = Multinomial(alpha / K)
    posterior = family.posterior(family.collect(np.zeros((1, K)), Members.one_group(1)))
    np.testing.assert_allclose(posterior.mean, 1 / K)
    np.testing.assert_allclose(posterior.variance, (K - 1) / (K**2 * (alpha + 1)))


def test_a_base_and_a_strength_are_pseudo_counts():
    stats = Multinomial().collect(SCRIPTS, LANGUAGE)
    base = np.arange(1, 8) / 28
    a = Multinomial(5.0, base=base).estimate(stats, "mean").p
    np.testing.assert_allclose(a, Multinomial(5.0 * base).estimate(stats, "mean").p)
    some = Multinomial(5.0, base=base).select(np.array([0, 6]))
    np.testing.assert_allclose(some.pseudo_count * some.base, 5.0 * base[[0, 6]])
    assert some.base.sum() == pytest.approx(1)


def test_repeats_surprise_less_once_the_probabilities_are_integrated_out():
    stats = Multinomial().collect(np.array([[1.0, 1.0]]), Members.one_group(1))
    rows = np.array([[1.0, 0.0], [2.0, 0.0]])
    polya, plug_in = (Multinomial().estimate(stats, rule).log_density(rows)[:, 0] for rule in ("predictive", "mean"))
    assert polya[0] == pytest.approx(plug_in[0])
    assert polya[1] > plug_in[1]


@pytest.mark.parametrize("rule", ["ml", "map", "mean", "predictive"])
def test_zero_probability_matters_only_where_something_was_counted(rule):
    family = Multinomial()
    stats = family.collect(np.array([[3.0, 0.0], [1.0, 1.0]]), Members.hard([0, 1], 2))
    for make in (np.asarray, sp.csr_array):
        scores = family.estimate(stats, rule).log_density(make(np.array([[2.0, 0.0], [1.0, 1.0], [0.0, 0.0]])))
        assert not np.isnan(scores).any()
        assert np.isneginf(scores).sum() == (rule in ("ml", "map"))
        assert (scores[2] == 0).all()


def test_every_form_of_sparse_matrix_is_the_same_data():
    family, dense = Multinomial(), DOCUMENTS.astype(float)
    wide = sp.csr_array(dense)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    words = [3, 0, 0, 2, 1, 2, 0, 1, 3, 3, 0, 1, 2, 3, 2]  # unsorted, repeated, with a stored zero
    messy = sp.csr_array(([2, 4, 5, 6, 0, 2, 3, 5, 2, 3, 1, 3, 2, 1, 2], words, [0, 5, 10, 14, 15]), shape=(4, 4))
    np.testing.assert_array_equal(messy.toarray(), dense)
    truth = family.collect(dense, Members.one_group(4))
    forms = [sp.csr_array(dense), sp.csr_matrix(dense), sp.csc_array(dense), sp.coo_array(dense), wide, messy]
    for X in [*forms, sp.csr_array(dense.astype(np.int32)), sp.csr_array(dense.astype(np.float32))]:
        before = X.copy()
        encoded = family.encode(X, [])
        assert family.collect(encoded, Members.one_group(4)).same(truth)
        np.testing.assert_allclose(
            family.leave_one_out(truth, encoded, Members.one_group(4), "predictive"),
            family.leave_one_out(truth, dense, Members.one_group(4), "predictive"),
        )
        assert (before != X).nnz == 0
        assert X.nnz == before.nnz


def test_documents_longer_than_the_table_of_factorials_are_summed_exactly():
    rng = np.random.default_rng(3)
    X = sp.csr_array(rng.poisson(0.4, (40, 9)).astype(float))
    X.data[::7], X.data[3] = 700.0, 1023.0  # some rows have more than 1,023 words, no word comes as often
    members = Members.hard(rng.integers(0, 3, 40), 3, rng.integers(0, 3, 40).astype(float))
    truth = Multinomial().collect(X.toarray(), members)
    for body in ("numba", "numpy"):
        with kernels.forced(body):
            assert Multinomial().collect(X, members).same(truth)


def test_fractions_are_weights_and_never_rounded():
    stats = Multinomial().collect(np.array([[0.25, 1.5]]), Members.one_group(1))
    np.testing.assert_array_equal(stats.counts, [[0.25, 1.5]])
    np.testing.assert_allclose(Multinomial().estimate(stats, "ml").p, [[0.25 / 1.75, 1.5 / 1.75]])


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf])
def test_what_is_not_a_count_is_refused(make, value):
    X = np.ones((3, 2))
    X[2, 1] = value
    with pytest.raises(DomainError, match=r"column 'b' holds .* \(row 2\)"):
        Multinomial().encode(make(X), ["a", "b"])


def test_classes_without_words_have_no_ml_and_flat_ones_no_mode():
    stats = Multinomial().collect(np.array([[1.0, 1.0], [0.0, 0.0]]), Members.hard([0, 1], 2))
    with pytest.raises(EmptyClassError, match="class 1"):
        Multinomial().estimate(stats, "ml")
    with pytest.raises(NoModeError, match=r"class 1 .*'mean'"):
        Multinomial().estimate(stats, "map")
    with pytest.raises(NoModeError, match="class 0"):
        Multinomial(0.5).estimate(stats.select("class", np.array([0])) - stats.select("class", np.array([0])), "map")


@pytest.mark.parametrize(
    "hyper",
    [
        {"pseudo_count": 0.0},
        {"pseudo_count": [1.0, -1.0]},
        {"pseudo_count": "best"},
        {"base": [0.5, 0.6]},
        {"pseudo_count": [1.0, 2.0], "base": [0.5, 0.5]},
    ],
)
def test_priors_that_are_none_are_refused(hyper):
    with pytest.raises(HyperparameterError):
        Multinomial(**hyper)


def test_a_prior_of_the_wrong_length_is_refused():
    with pytest.raises(HyperparameterError, match="3 numbers, but there are 4 words"):
        Multinomial([1.0, 2.0, 3.0]).fit(DOCUMENTS).density()
    with pytest.raises(HyperparameterError, match="not 1"):
        Multinomial.of([0.5, 0.6])


@pytest.mark.parametrize("by", ["evidence", "loo"])
@pytest.mark.parametrize("base", [None, np.array([0.1, 0.2, 0.3, 0.4])])
def test_the_strength_is_the_best_one(by, base):
    rng = np.random.default_rng(5)
    theta = rng.dirichlet(np.full(4, 2.0), 30)
    X, members = rng.multinomial(50, theta).astype(float), Members.hard(np.arange(30), 30)
    stats = Multinomial().collect(X, members)

    def score(s):
        family = Multinomial(s, base=base)
        if by == "evidence":
            return family.log_evidence(stats).sum()
        alpha, alpha0 = family.alpha(stats)
        left = np.maximum(X - 1, 0) + alpha
        return np.sum(X * np.log(left / (X.sum(axis=1, keepdims=True) - 1 + alpha0)))

    best = minimize_scalar(lambda at: -score(np.exp(at)), bounds=(-6, 6), method="bounded", options={"xatol": 1e-8})
    chosen = Multinomial(by, base=base).resolve(stats)
    assert chosen.pseudo_count == pytest.approx(np.exp(best.x), rel=1e-3)
    assert chosen == Multinomial(chosen.pseudo_count, base=base)


def test_nothing_counted_leaves_the_strength_at_one():
    stats = Multinomial().collect(np.zeros((2, 3)), Members.one_group(2))
    assert Multinomial("evidence").resolve(stats).pseudo_count == 1.0


@pytest.mark.parametrize("rule", ["mean", "predictive"])
@pytest.mark.parametrize("V", [5, 2000])
def test_samples_have_the_length_and_the_words_of_their_class(rule, V):
    rng = np.random.default_rng(0)
    X = sp.csr_array(rng.multinomial(20, rng.dirichlet(np.ones(V), 2)).astype(float))
    family, members = Multinomial(0.1), Members.hard([0, 1], 2)
    drawn = family.estimate(family.collect(X, members), rule).sample(np.repeat([0, 1], 3000), rng)
    assert sp.issparse(drawn) == (V > 1000)
    assert drawn.sum() / 6000 == pytest.approx(20, abs=0.5)
    stats = family.collect(X, members)
    expected = (stats.counts + 0.1) / (stats.counts + 0.1).sum(axis=1, keepdims=True)
    found = family.collect(drawn, Members.hard(np.repeat([0, 1], 3000), 2)).counts
    np.testing.assert_allclose(found / found.sum(axis=1, keepdims=True), expected, atol=0.02)


def test_known_probabilities_and_a_known_length():
    density = Multinomial.of([0.2, 0.3, 0.5], length=7)
    rows = density.sample(np.zeros(4000, dtype=int), np.random.default_rng(0))
    assert rows.sum(axis=1).mean() == pytest.approx(7, abs=0.2)
    x = np.array([[1.0, 2.0, 4.0]])
    total = density.log_density(x)[:, 0] + density.log_base(x)
    np.testing.assert_allclose(total, sps.multinomial.logpmf([1, 2, 4], 7, [0.2, 0.3, 0.5]))


def test_parts_of_very_many_rows_are_refused():
    density = Multinomial.of(np.full(1000, 1e-3))
    with pytest.raises(NotAvailableError, match="fewer rows"):
        density.parts(sp.csr_array((200_000, 1000)))


def test_log_factorials_add_exactly_and_are_right():
    rng = np.random.default_rng(0)
    for x in (rng.integers(0, 2000, 5000).astype(float), rng.uniform(0, 50, 5000)):
        digits = log_factorial(x)
        np.testing.assert_allclose(digits.sum(axis=1), gammaln(x + 1), rtol=0, atol=1e-11)
        total = digits.sum(axis=0)
        order = rng.permutation(len(x))
        np.testing.assert_array_equal(digits[order].cumsum(axis=0)[-1], total)
        np.testing.assert_array_equal(total - digits[:100].sum(axis=0), digits[100:].sum(axis=0))


def test_rising_factorials_keep_their_digits():
    for a in (0.5, 3.0, 63.0, 64.0, 1e3, 1e6, 1e9):
        for x in (0, 1, 2, 5, 16, 17, 40):
            exact = fsum(log(a + t) for t in range(x))
            assert log_rising(a, float(x)) == pytest.approx(exact, rel=1e-12, abs=1e-12)
            assert log_rising_counts(np.array([a]), np.array([float(x)]))[0] == pytest.approx(exact, rel=1e-12)
    a, x = np.array([0.7, 1.2, 100.0]), np.array([0.5, 20.0, 2.5])
    np.testing.assert_allclose(log_rising_counts(a, x), gammaln(a + x) - gammaln(a), rtol=1e-12)
