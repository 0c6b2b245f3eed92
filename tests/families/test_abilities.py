"""What only some families can do: asked for with `ability`, and composites answer for their parts."""

import numpy as np
import pytest

from deciban import Binned, Categorical, Gaussian, Mixture, Multinomial, Poisson, Product, Text, Transformed

rng = np.random.default_rng(0)
COUNTS = rng.poisson(3.0, (50, 3))


def has(family, name):
    """The ability of this name that a family has, or None."""
    from deciban.families import abilities

    return abilities.ability(family, getattr(abilities, name))


def test_a_product_with_a_block_without_evidence_has_none():
    assert has(Product({"size": Gaussian(), "note": Text()}), "HasEvidence") is None
    assert has(Product({"size": Gaussian(), "note": Text()}), "HasPosterior") is None
    assert has(Text(), "HasEvidence") is None


def test_a_product_within_a_product_answers_for_its_parts():
    inner = Product({1: Poisson(), 2: Text()})
    assert has(Product({0: Gaussian(), (1, 2): inner}), "HasEvidence") is None


def test_a_product_of_families_with_evidence_has_it():
    product = Product({0: Poisson(), (1, 2): Multinomial()}).fit(COUNTS)
    evidence = has(product.family, "HasEvidence")
    assert evidence is not None
    parts = Poisson().fit(COUNTS[:, :1]).log_evidence() + Multinomial().fit(COUNTS[:, 1:]).log_evidence()
    np.testing.assert_allclose(np.sum(evidence.log_evidence(product.stats)), parts, rtol=1e-12)


@pytest.mark.parametrize("family", [Gaussian(), Poisson(), Multinomial(), Categorical()], ids=repr)
def test_families_with_a_closed_form_have_evidence_and_a_posterior(family):
    assert has(family, "HasEvidence") is not None
    assert has(family, "HasPosterior") is not None


def test_what_a_family_lacks_is_refused_in_words_where_it_is_asked_for():
    from deciban.errors import NotAvailableError

    frame = {"size": rng.normal(size=50), "note": ["red blue", "blue green"] * 25}
    pandas = pytest.importorskip("pandas")
    fitted = Product({"size": Gaussian("diagonal"), "note": Text("multinomial", "counts", 1.0)}).fit(
        pandas.DataFrame(frame)
    )
    for ask in (fitted.log_evidence, fitted.posterior):
        with pytest.raises(NotAvailableError, match=r"note|Text"):
            ask()


def test_families_behind_a_transform_or_a_mixture_answer_for_themselves():
    assert has(Mixture(Poisson(), 2), "HasEvidence") is None
    for family in (Transformed("log"), Binned(5)):
        evidence = has(family, "HasEvidence")
        if evidence is not None:
            fitted = family.fit(COUNTS[:, :1] + 1.0)
            assert np.isfinite(evidence.log_evidence(fitted.stats)).all()
