"""Examples with known answers, through the public interface."""

import numpy as np
import pytest

from deciban import Bernoulli, Categorical, Gaussian, GenerativeClassifier, Multinomial


class TestCoin:
    def test_six_heads_of_ten(self):
        coin = Bernoulli().fit([1, 1, 0, 0, 0, 1, 0, 1, 1, 1])
        np.testing.assert_allclose(np.exp(coin.log_density([[1]], "ml")), 0.6)

    def test_three_tails_leave_laplace_one_in_five(self):
        coin = Bernoulli().fit([0, 0, 0])
        assert coin.log_density([[1]], "ml") == -np.inf
        np.testing.assert_allclose(np.exp(coin.log_density([[1]], "predictive")), 1 / 5)
        np.testing.assert_allclose(np.exp(coin.log_density([[1]], "mean")), 1 / 5)


class TestDie:
    def test_a_loaded_die(self):
        die = Categorical().fit([1, 6, 2, 6, 3, 6, 4, 6, 5, 6])
        p = np.exp(die.log_density(np.arange(1, 7)[:, None], "ml"))
        np.testing.assert_allclose(p, [0.1, 0.1, 0.1, 0.1, 0.1, 0.5])

    def test_a_joint_table_comes_back_and_a_product_does_not_give_it(self):
        rows = np.repeat([[0, 0], [0, 1], [1, 0], [1, 1]], [4, 1, 3, 2], axis=0)
        cells = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
        joint = np.exp(Categorical(joint=True).fit(rows).log_density(cells, "ml"))
        np.testing.assert_allclose(joint, [0.4, 0.1, 0.3, 0.2])
        product = np.exp(Categorical().fit(rows).log_density(cells, "ml"))
        np.testing.assert_allclose(product, [0.5 * 0.7, 0.5 * 0.3, 0.5 * 0.7, 0.5 * 0.3])


CATS = [
    ("black", "m"),
    ("orange", "m"),
    ("black", "f"),
    ("orange", "m"),
    ("white", "m"),
    ("white", "f"),
    ("white", "m"),
]
CATS += [("white", "f"), ("black", "f"), ("calico", "f")]


class TestCats:
    colour = np.array([[c] for c, _ in CATS], dtype=object)
    sex = np.array([s for _, s in CATS])

    def test_colours_by_maximum_likelihood(self):
        clf = GenerativeClassifier(Categorical(), rule="ml").fit(self.colour, self.sex)
        colours = np.array([["black"], ["orange"], ["white"], ["calico"]], dtype=object)
        p = np.exp(clf.log_likelihood(colours))
        np.testing.assert_allclose(p, [[0.4, 0.2], [0.0, 0.4], [0.4, 0.4], [0.2, 0.0]], atol=1e-12)
        np.testing.assert_allclose(clf.predict_proba([["orange"]])[0], [0.0, 1.0])

    def test_an_orange_cat_with_a_pseudo_count(self):
        clf = GenerativeClassifier(Categorical(pseudo_count=1)).fit(self.colour, self.sex)
        np.testing.assert_allclose(np.exp(clf.log_likelihood([["orange"]]))[0], [1 / 9, 3 / 9])
        np.testing.assert_allclose(clf.llr([["orange"]], "m", "f"), np.log(3))


class TestHeight:
    clf = GenerativeClassifier.from_densities({"m": Gaussian.of(175.33, 52.89), "f": Gaussian.of(161.82, 46.89)})

    def test_at_174(self):
        np.testing.assert_allclose(np.exp(self.clf.log_likelihood([[174.0]]))[0], [0.05395, 0.01198], atol=5e-6)
        np.testing.assert_allclose(np.exp(self.clf.llr([[174.0]], "m", "f")), 4.504, atol=5e-4)

    def test_where_nine_of_ten_are_women(self):
        p = self.clf.predict_proba([[174.0]], prior={"f": 0.9})[0]
        np.testing.assert_allclose(p[0] / p[1], 0.5005, atol=5e-5)

    def test_the_discriminant_is_the_llr(self):
        A, b, c = self.clf.discriminant("m", "f")
        x = np.array([150.0, 174.0, 190.0])
        np.testing.assert_allclose(A[0, 0] * x**2 + b[0] * x + c, self.clf.llr(x[:, None], "m", "f"), rtol=1e-9)


C = [(6, 8, 14, 1, 10, 1, 7), (8, 10, 14, 0, 11, 1, 7), (12, 22, 34, 1, 21, 2, 13), (4, 6, 10, 1, 6, 1, 4)]
PYTHON = [(6, 14, 30, 6, 2, 16, 16), (2, 8, 14, 3, 1, 9, 8), (4, 14, 26, 7, 2, 15, 14)]


class TestPunctuation:
    X, y = np.array(C + PYTHON), np.array(["C"] * 4 + ["Python"] * 3)
    tests = np.array([(2, 10, 12, 0, 1, 1, 0), (2, 18, 16, 3, 0, 1, 1)])
    clf = GenerativeClassifier(Multinomial(), rule="ml").fit(X, y)

    def test_weights_of_the_symbols(self):
        b = self.clf.discriminant("C", "Python").b
        np.testing.assert_allclose(b, [0.8366, 0.1654, -0.0515, -1.7537, 2.1821, -2.1591, -0.2833], atol=5e-5)

    def test_two_scripts(self):
        np.testing.assert_allclose(self.clf.llr(self.tests, "C", "Python"), [2.7323, -3.8767], atol=5e-5)

    def test_tokens_one_at_a_time_are_counts(self):
        tokens = np.repeat(np.tile(np.eye(7), (7, 1)), self.X.ravel(), axis=0)
        labels = np.repeat(np.repeat(self.y, 7), self.X.ravel())
        one_by_one = GenerativeClassifier(Multinomial(), rule="ml").fit(tokens, labels)
        llr = [one_by_one.llr(np.repeat(np.eye(7), row, axis=0), "C", "Python").sum() for row in self.tests]
        np.testing.assert_allclose(llr, self.clf.llr(self.tests, "C", "Python"), rtol=1e-12)


class TestFourDocuments:
    """Over the words the, hello, and, happy; documents are columns."""

    def test_present_or_absent(self):
        present = np.array([(1, 0, 1, 1), (0, 1, 1, 0), (1, 0, 0, 0), (1, 1, 1, 1)])
        p = np.exp(Bernoulli().fit(present.T).density("ml").parts(np.ones((1, 4)))[0, 0])
        np.testing.assert_allclose(p, [3 / 4, 1 / 2, 1 / 4, 1])
        rows = np.exp(Bernoulli().fit(present).density("ml").parts(np.ones((1, 4)))[0, 0])
        np.testing.assert_allclose(rows, [3 / 4, 1 / 2, 3 / 4, 1 / 2])

    def test_counts(self):
        counts = np.array([(9, 0, 6, 2), (3, 5, 2, 5), (1, 3, 2, 1), (0, 0, 2, 0)])
        p = np.exp(Multinomial().fit(counts).density("ml").log_density(np.eye(4)))[:, 0]
        np.testing.assert_allclose(p, np.array([13, 8, 12, 8]) / 41)


def test_two_departments():
    """Women do better in both departments, and worse overall."""
    accepted = np.array([[1.0]])
    for rates, applied, overall in [((0.4, 0.1), (0.6, 0.4), 0.28), ((0.5, 0.2), (0.1, 0.9), 0.23)]:
        departments = {"E": Bernoulli.of(rates[0]), "CS": Bernoulli.of(rates[1])}
        clf = GenerativeClassifier.from_densities(departments, prior=dict(zip(("E", "CS"), applied)))
        np.testing.assert_allclose(np.exp(clf.log_marginal(accepted)), overall)


class TestBetaAndDirichlet:
    def test_a_coins_error_bar(self):
        coin = Bernoulli(2.0, 3.0).fit([1, 1, 0, 1, 1])
        p = coin.posterior()["p"]
        a, b = 2 + 4, 3 + 1
        np.testing.assert_allclose(p.mean, a / (a + b))
        np.testing.assert_allclose(p.mode, (a - 1) / (a + b - 2))
        np.testing.assert_allclose(p.variance, a * b / ((a + b) ** 2 * (a + b + 1)))

    def test_the_error_bar_shrinks_as_the_square_root(self):
        coin = Bernoulli().fit(np.tile([1.0, 1.0, 1.0, 0.0], 10_000))
        np.testing.assert_allclose(coin.posterior()["p"].sd, np.sqrt(0.75 * 0.25 / 40_000), rtol=1e-3)

    @pytest.mark.parametrize(("alpha", "K"), [(1.0, 3), (6.0, 6)])
    def test_a_symmetric_dirichlet(self, alpha, K):
        family = Categorical(alpha / K, categories=list(range(K)))
        prior = family.fit(np.array([[-1]])).posterior()["p"]  # nothing but a missing value was seen
        np.testing.assert_allclose(prior.mean, 1 / K)
        np.testing.assert_allclose(prior.variance, (K - 1) / (K**2 * (alpha + 1)))
