"""Products of families: what is true of blocks side by side."""

import numpy as np
import pandas as pd
import pytest

from deciban import Categorical, Gaussian, GenerativeClassifier, Poisson
from deciban.errors import InputError
from deciban.families.product import Product

rng = np.random.default_rng(0)
N = 120
y = np.array(["ill", "well"])[rng.integers(0, 2, N)]
X = rng.normal(3.0, 1.0, (N, 6)) @ (np.eye(6) + 0.4 * rng.normal(size=(6, 6)))
X[:, :4] += (y == "ill")[:, None] * np.array([1.0, -1.0, 0.5, 2.0])
X[:, 5] = rng.poisson(2.0 + (y == "ill"), N)
BLOCKS = {
    "a pair and three": {(0, 1): Gaussian("full"), (2, 3, 4): Gaussian("full")},
    "three structures": {(0, 1, 2): Gaussian("full"), 3: Gaussian("diagonal"), 4: Gaussian("tied diagonal")},
    "counts behind numbers": {(0, 1): Gaussian("full"), (2, 3): Gaussian("tied"), 4: Gaussian(), 5: Poisson()},
    "linear blocks": {(0, 1, 2): Gaussian("tied"), (3, 4): Gaussian("tied"), 5: Poisson()},
}


@pytest.mark.parametrize("rule", ["ml", "map", "mean"])
@pytest.mark.parametrize("name", BLOCKS)
def test_the_discriminant_of_a_product_is_its_llr(name, rule):
    D = 5 + (5 in BLOCKS[name])
    clf = GenerativeClassifier(BLOCKS[name], rule=rule).fit(X[:, :D], y)
    A, b, c = clf.discriminant("ill", "well")
    rows = X[:, :D]
    quadratic = 0.0 if A is None else np.einsum("nd,de,ne->n", rows, A, rows)
    np.testing.assert_allclose(quadratic + rows @ b + c, clf.llr(rows, "ill", "well"), rtol=1e-9, atol=1e-9)
    assert (A is None) == (name == "linear blocks")


def test_columns_of_different_blocks_do_not_meet_in_the_discriminant():
    A = GenerativeClassifier(BLOCKS["a pair and three"]).fit(X[:, :5], y).discriminant("ill", "well").A
    assert (A[:2, 2:] == 0).all()
    assert (A[2:, :2] == 0).all()
    assert (np.abs(A[:2, :2]) > 0).all()
    assert (np.abs(A[2:, 2:]) > 0).all()


def test_a_block_names_a_column_once():
    with pytest.raises(InputError, match=r"\('a', 'a'\) names a column twice"):
        Product({("a", "a"): Gaussian(), "b": Gaussian()})


def test_rows_are_encoded_for_experts_when_these_are_used(monkeypatch):
    from deciban.families.product import Expert

    product = Product({"a": Gaussian(), "b": Gaussian()}, {"a with b": Expert(("a", "b"), Gaussian("full"))})
    encoded = []
    original = Expert.encode
    monkeypatch.setattr(Expert, "encode", lambda expert, table: encoded.append(1) or original(expert, table))
    table = {"a": [1.0, 2.0, 4.0], "b": [0.5, 0.25, 3.0]}
    rows = product.encode(table, ["a", "b"])
    assert rows.parts[0].shape == (3, 1)
    assert len(rows.experts) == 1
    assert encoded == []
    np.testing.assert_array_equal(rows.experts[0], np.column_stack([table["a"], table["b"]]))
    np.testing.assert_array_equal(rows[1:].experts[0], rows.experts[0][1:])
    assert encoded == [1]


def test_drawn_rows_of_a_product_can_be_learnt():
    frame = pd.DataFrame(
        {"size": X[:, 0], "colour": np.where(X[:, 1] > np.median(X[:, 1]), "red", "blue"), "visits": X[:, 5]}
    )
    fitted = Product({"visits": Poisson(), "colour": Categorical(), "size": Gaussian()}).fit(frame)
    drawn = fitted.sample(50, random_state=0)
    assert list(drawn) == ["visits", "colour", "size"]
    assert set(drawn["colour"]) == {"red", "blue"}
    both = fitted.learn(drawn)
    np.testing.assert_array_equal(both.stats.blocks["visits",].weight, [[N + 50]])
    np.testing.assert_allclose(both.unlearn(drawn).stats.blocks["visits",].total, fitted.stats.blocks["visits",].total)
    by_position = Product({1: Gaussian(), 0: Poisson()}).fit(X[:, [5, 0]])
    rows = by_position.sample(4000, random_state=0)
    np.testing.assert_allclose(rows.mean(axis=0), X[:, [5, 0]].mean(axis=0), atol=0.2)


def test_drawn_rows_of_a_classifier_have_its_columns_in_their_order():
    clf = GenerativeClassifier({5: Poisson(), (3, 0): Gaussian("full"), 1: Gaussian()}).fit(X, y)
    rows, labels = clf.sample(4000, random_state=0, prior="learnt")
    for j, column in enumerate([0, 1, 3, 5]):  # those that the model uses
        for label in ("ill", "well"):
            drawn, learnt = rows[labels == label, j].astype(float), X[y == label, column]
            assert abs(drawn.mean() - learnt.mean()) < 0.25
