"""A mixture as the density of each class: a family like any other."""

import pickle

import numpy as np
import pytest
from sklearn.datasets import make_moons

from cases import CASES, close
from deciban import Gaussian, GaussianWithGaps, GenerativeClassifier, Mixture, MixtureModel, Multinomial, load, save
from deciban.errors import DomainError, InputError, MergeError, NotAvailableError
from deciban.families.abilities import Unmixable, ability
from deciban.read import tables
from deciban.statistics import Members

X, y = make_moons(500, noise=0.15, random_state=0)

MIXABLE = [c for c in CASES if not ability(c.family, Unmixable) and "toy" not in c.name and "joint" not in c.name]


def moons(structure="full", M=4):
    return GenerativeClassifier(Mixture(Gaussian(structure), M)).fit(X[:400], y[:400])


@pytest.mark.parametrize("structure", ["full", "tied", "diagonal", "spherical"])
def test_mixtures_follow_what_one_gaussian_cannot(structure):
    plain = GenerativeClassifier(Gaussian(structure)).fit(X[:400], y[:400])
    assert moons(structure).score(X[400:], y[400:]) > 0.96 > plain.score(X[400:], y[400:])


@pytest.mark.parametrize(
    "case",
    [c for c in CASES if not ability(c.family, Unmixable) and "toy" not in c.name and "joint" not in c.name],
    ids=repr,
)
def test_sums_under_a_guess_add_up(case):
    family, rows, members = case.data(3, 90)
    mixture = Mixture(family, 2, rule="map" if "map" in case.rules else "ml", n_starts=1, max_iter=5, tol=1e9)
    frozen = mixture.choose(mixture.collect(rows, members), (rows, members))
    whole = frozen.collect(rows, members)
    parts = [frozen.collect(rows[at], members.take(at)) for at in (np.arange(30), np.arange(30, 90))]
    close(parts[0] + parts[1], whole)
    soft = Members.soft(members.matrix().toarray(), members.classes)
    close(frozen.collect(rows, soft), whole)
    density = frozen.estimate(whole, "mean")
    assert density.log_density(rows).shape == (90, 3)
    order = np.array([2, 0, 1])
    shuffled = frozen.estimate(whole.select("class", order), "mean")
    np.testing.assert_allclose(shuffled.log_density(rows), density.log_density(rows)[:, order])


def test_one_component_is_the_family_itself():
    one = GenerativeClassifier(Mixture(Gaussian(), 1)).fit(X, y)
    np.testing.assert_allclose(one.log_likelihood(X), GenerativeClassifier(Gaussian()).fit(X, y).log_likelihood(X))


def test_what_a_classifier_of_mixtures_can_do():
    clf = moons()
    p = clf.cross_val_predict(X[:400], y[:400])
    assert (p.argmax(axis=1) == y[:400]).mean() > 0.96
    both = clf + pickle.loads(pickle.dumps(clf))
    np.testing.assert_allclose(both.predict_proba(X), clf.reestimate().predict_proba(X), atol=0.1)
    clf.learn(X[400:], y[400:]).decay(0.5)
    assert clf.stats_.rows.sum() == 250
    rows, labels = clf.sample(200, random_state=0)
    assert (clf.predict(rows) == labels).mean() > 0.95
    assert clf.reestimate(columns=[1]).predict(X[:3, 1:]).shape == (3,)
    assert clf.reestimate(rule="predictive").score(X, y) > 0.96
    assert clf.families_ == {"all 2 columns": "Mixture(Gaussian('full'), 4): named by you"}
    clf.rechoose()
    assert clf.score(X, y) > 0.96


def test_what_it_cannot_do_is_said():
    clf = moons()
    with pytest.raises(NotAvailableError, match="cannot be unlearnt exactly"):
        clf.unlearn(X[:2], y[:2])
    with pytest.raises(NotAvailableError, match="k-fold"):
        clf.leave_one_out(X[:400], y[:400])
    with pytest.raises(NotAvailableError, match="class 2 is new"):
        clf.learn(X[:3], [2, 2, 2])
    with pytest.raises(MergeError, match="different choices"):
        clf.merge(moons(M=3))
    with pytest.raises(InputError, match="class 1 has 3 rows for 4 components"):
        GenerativeClassifier(Mixture(Gaussian(), 4)).fit(X[:9], [0] * 6 + [1] * 3)
    with pytest.raises(DomainError, match="holds inf"):
        GenerativeClassifier(Mixture(Gaussian(), 1)).fit([[1.0], [np.inf], [3.0], [4.0]], [0, 0, 1, 1])


def test_a_second_model_may_share_the_guess_of_the_first():
    first = GenerativeClassifier(Mixture(Gaussian(), 3)).fit(X[:250], y[:250])
    second = GenerativeClassifier(first.family_).fit(X[250:], y[250:])
    both = first + second
    whole = GenerativeClassifier(first.family_).fit(X, y)
    np.testing.assert_allclose(both.predict_proba(X), whole.predict_proba(X), atol=1e-3)  # EM had settled


def test_all_rows_count_however_they_are_sorted(monkeypatch):
    from deciban.model import fit

    order = np.argsort(y, kind="stable")
    monkeypatch.setattr(tables, "HEAD", 100)
    monkeypatch.setattr(fit, "HEAD", 100)
    clf = GenerativeClassifier(Mixture(Gaussian(), 4)).fit(X[order], y[order])
    assert clf.score(X, y) > 0.96
    assert clf.stats_.rows.sum() == 500


def test_mixtures_are_blocks_of_a_product():
    clf = GenerativeClassifier({0: Mixture(Gaussian(), 3), 1: Mixture(Gaussian(), 2)}).fit(X, y)
    assert clf.score(X, y) > 0.9
    assert "0" in str(clf.explain(X[:1]))


def test_a_declared_class_without_rows_has_the_prior():
    clf = GenerativeClassifier(Mixture(Multinomial(), 2), classes=["a", "b", "c"]).fit(
        [[3, 1], [1, 3], [2, 2], [4, 0]], list("aabb")
    )
    assert np.isfinite(clf.log_likelihood([[1, 1]])).all()


@pytest.mark.parametrize("family", [Mixture(Gaussian(), 2), GaussianWithGaps()], ids=["mixture", "gaps"])
def test_a_model_file_gives_back_the_same_scores(family, tmp_path):
    clf = GenerativeClassifier(family).fit(X, y)
    save(clf, tmp_path / "model.deciban")
    again = load(tmp_path / "model.deciban")
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
    again.learn(X[:5], y[:5])
    assert again.stats_.rows.sum() == 505


def test_a_clustering_is_kept_in_a_file(tmp_path):
    model = MixtureModel(2, random_state=0).fit(X)
    save(model, tmp_path / "model.deciban")
    np.testing.assert_array_equal(load(tmp_path / "model.deciban").predict_proba(X), model.predict_proba(X))
