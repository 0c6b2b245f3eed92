"""Yes or no: coins, documents as sets of words, and what is refused."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats as sps

from deciban import Axis, Bernoulli, Members
from deciban.errors import DomainError, EmptyClassError, HyperparameterError, MergeError, NoModeError
from deciban.families.bernoulli import SparseBernoulliStats

COIN = [1, 1, 0, 0, 0, 1, 0, 1, 1, 1]
DOCUMENTS = np.array([[1, 0, 1, 1], [0, 1, 1, 0], [1, 0, 0, 0], [1, 1, 1, 1]])  # the, hello, and, happy


def test_six_heads_in_ten_are_a_probability_of_six_tenths():
    assert Bernoulli().fit(COIN).density("ml").p == [[0.6]]


def test_three_tails_are_zero_by_ml_and_a_fifth_by_laplace():
    coin = Bernoulli().fit([0, 0, 0])
    assert coin.density("ml").p == [[0.0]]
    np.testing.assert_allclose(coin.density("mean").p, [[1 / 5]])
    np.testing.assert_allclose(coin.density("predictive").p, [[1 / 5]])
    assert coin.log_density([1.0, 0.0], "ml").tolist() == [-np.inf, 0.0]


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_four_documents_as_sets_of_words(make):
    density = Bernoulli().fit(make(DOCUMENTS)).density("ml")
    np.testing.assert_array_equal(density.p, [[3 / 4, 1 / 2, 3 / 4, 1 / 2]])


def test_the_posterior_is_a_beta():
    posterior = Bernoulli(2.0, 3.0).fit(COIN).posterior()
    truth = sps.beta(8, 7)
    np.testing.assert_allclose(posterior.mean, [[truth.mean()]])
    np.testing.assert_allclose(posterior.sd, [[truth.std()]])
    np.testing.assert_allclose(posterior.variance, [[truth.var()]])
    np.testing.assert_allclose(posterior.mode, [[7 / 13]])
    np.testing.assert_allclose(np.ravel(posterior.interval(0.9)), truth.ppf([0.05, 0.95]))


def test_the_error_bar_tends_to_that_of_a_frequency():
    n, p = 100_000, 0.3
    posterior = Bernoulli().fit(np.arange(n) < p * n).posterior()
    np.testing.assert_allclose(posterior.sd, np.sqrt(p * (1 - p) / n), rtol=1e-3)


def test_a_flat_prior_has_the_mode_of_ml():
    family = Bernoulli()
    X, members = DOCUMENTS.astype(float), Members.hard([0, 0, 1, 1], 2)
    stats = family.collect(X, members)
    np.testing.assert_array_equal(family.estimate(stats, "map").p, family.estimate(stats, "ml").p)


@pytest.mark.parametrize("family", [Bernoulli(), Bernoulli(0.5, 2.0), Bernoulli(0.3, 0.3)])
def test_where_there_is_no_mode_the_mean_is_offered(family):
    stats = family.collect(np.zeros((2, 1)), Members.hard([0, 0], 2))  # class 1 is empty
    with pytest.raises(NoModeError, match=r"class .*'mean'"):
        family.estimate(stats, "map")
    with pytest.raises(NoModeError):
        _ = family.posterior(stats).mode
    assert np.isfinite(family.estimate(stats, "mean").log_density(np.ones((1, 1)))).all()


def test_an_empty_class_has_no_ml():
    with pytest.raises(EmptyClassError, match="class 1"):
        Bernoulli().estimate(Bernoulli().collect(np.zeros((2, 1)), Members.hard([0, 0], 2)), "ml")


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array, sp.csr_matrix])
def test_probabilities_of_zero_and_one_never_make_nan(make):
    family = Bernoulli()
    X = make(np.array([[0.0, 1.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 1.0]]))
    stats = family.collect(X, Members.hard([0, 0, 1], 2))
    rows = make(np.array([[0.0, 1.0, 1.0], [0.0, 0.0, 1.0], [1.0, 1.0, 1.0], [1.0, 0.0, 1.0]]))
    half, no = np.log(0.5), -np.inf
    np.testing.assert_allclose(
        family.estimate(stats, "ml").log_density(rows), [[half, no], [no, no], [no, no], [no, 0.0]]
    )


def test_probabilities_of_zero_and_one_with_gaps():
    density = Bernoulli.of([0.0, 1.0, 0.5])
    rows = np.array([[np.nan, 1.0, 1.0], [0.0, np.nan, np.nan], [1.0, np.nan, 0.0], [np.nan, 0.0, 0.0]])
    np.testing.assert_allclose(density.log_density(rows)[:, 0], [np.log(0.5), 0.0, -np.inf, -np.inf])
    np.testing.assert_allclose(density.parts(rows).sum(axis=2), density.log_density(rows))


def test_log_of_one_minus_p_keeps_its_digits():
    stats = Bernoulli().collect(np.ones((1, 1)), Members.hard([0], 1, [1e17]))
    assert Bernoulli().estimate(stats, "mean").log_off[0, 0] == pytest.approx(-np.log(1e17), rel=1e-12)


def test_dense_and_sparse_give_the_same_scores():
    rng = np.random.default_rng(0)
    X, y = (rng.random((200, 50)) < 0.1).astype(float), rng.integers(0, 3, 200)
    for rule in ("ml", "map", "mean", "predictive"):
        for weight in (None, rng.uniform(0.5, 2, 200)):
            members = Members.hard(y, 3, weight)
            dense, sparse = Bernoulli().collect(X, members), Bernoulli().collect(sp.csr_array(X), members)
            for how in ("log_density", "leave_one_out"):
                a, b = (
                    Bernoulli().estimate(stats, rule).log_density(table)
                    if how == "log_density"
                    else Bernoulli().leave_one_out(stats, table, members, rule)
                    for stats, table in ((dense, X), (sparse, sp.csr_array(X)))
                )
                np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


def test_a_word_that_arrives_late_was_absent_before():
    def stats(words, ones, rows):
        return SparseBernoulliStats({"class": Axis.of(1), "feature": Axis(words)}, np.array([ones]), np.array([rows]))

    both = stats(("a", "b"), [2.0, 1.0], 3.0) + stats(("b", "new"), [1.0, 1.0], 2.0)
    assert both.labels["feature"].names == ("a", "b", "new")
    np.testing.assert_array_equal(both.zeros, [[3.0, 3.0, 4.0]])
    np.testing.assert_allclose(Bernoulli().estimate(both, "ml").p, [[2 / 5, 2 / 5, 1 / 5]])


def test_dense_and_sparse_statistics_do_not_add():
    members = Members.one_group(4)
    with pytest.raises(MergeError):
        Bernoulli().collect(DOCUMENTS.astype(float), members) + Bernoulli().collect(sp.csr_array(DOCUMENTS), members)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("value", [2.0, -1.0, 0.5, np.inf])
def test_other_values_are_refused_with_a_remedy(make, value):
    X = np.zeros((3, 2))
    X[1, 1] = value
    with pytest.raises(DomainError, match=r"column 'b' holds .* \(row 1\); .*Binarise.*Multinomial"):
        Bernoulli().encode(make(X), ["a", "b"])


def test_a_sparse_matrix_has_no_missing_values():
    with pytest.raises(DomainError, match="nan"):
        Bernoulli().encode(sp.csr_array([[np.nan, 1.0]]), [])


def test_repeated_entries_are_summed_and_stored_zeros_do_not_count():
    with pytest.raises(DomainError, match="holds 2"):
        Bernoulli().encode(sp.csr_array(([1, 1], [1, 1], [0, 2]), shape=(1, 2)), [])
    X = sp.csr_array(([0.0, 1.0], [0, 1], [0, 2]), shape=(1, 2))
    assert Bernoulli().encode(X, []).nnz == 1
    assert X.nnz == 2  # the caller's matrix stays as it was


def test_truth_values_are_taken():
    np.testing.assert_allclose(Bernoulli().fit(np.array([True, False, True])).density("ml").p, [[2 / 3]])


@pytest.mark.parametrize("hyper", [{"a": 0.0}, {"b": -1.0}, {"a": [1.0, np.nan]}, {"a": [[1.0]]}])
def test_priors_that_are_none_are_refused(hyper):
    with pytest.raises(HyperparameterError):
        Bernoulli(**hyper)
    with pytest.raises(HyperparameterError):
        Bernoulli.of(1.5)


def test_some_features_keep_their_priors():
    family = Bernoulli([1.0, 2.0, 3.0], 1.0).select(np.array([2, 0]))
    assert family == Bernoulli([3.0, 1.0], 1.0)


def test_the_polynomial_is_the_log_density():
    density = Bernoulli.of([0.2, 0.7])
    _, b, c = density.polynomial()
    x = np.array([[1.0, 0.0]])
    np.testing.assert_allclose(x @ b.T + c, density.log_density(x))


def test_the_log_prior_is_a_beta_density_up_to_a_constant():
    family = Bernoulli(2.0, 3.0)
    difference = family.log_prior(Bernoulli.of(0.3)) - family.log_prior(Bernoulli.of(0.6))
    assert difference == pytest.approx(sps.beta(2, 3).logpdf(0.3) - sps.beta(2, 3).logpdf(0.6))
    assert Bernoulli().log_prior(Bernoulli.of(0.0)) == 0.0
