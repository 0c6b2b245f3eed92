"""Save, load: the same model to the bit, which goes on as if nothing had happened."""

import numpy as np
import pytest
from safetensors.numpy import load_file

import deciban
from cases import CASES, RULES
from deciban import (
    PCA,
    Bernoulli,
    Fisher,
    Gaussian,
    GenerativeClassifier,
    Mixture,
    MixtureModel,
    Multinomial,
    Poisson,
    load,
    release,
    save,
)
from deciban.errors import MergeError, ModelFileError, NotAvailableError, NotLearntError
from deciban.families.fitted import Fitted
from deciban.statistics import Axis
from deciban.store.registry import find, name_of
from store.models import COUNTS, DISCRETE, FAMILIES, LABELS, NUMBERS, N, fitted, some, y


def again(model, tmp_path, **options):
    """Saved and loaded."""
    path = tmp_path / "model.deciban"
    save(model, path)
    return load(path, **options)


@pytest.mark.parametrize("n", [60, 24])  # 24 rows: before there is an origin
@pytest.mark.parametrize("case", CASES, ids=repr)
def test_every_case_comes_back_to_the_bit(case, n, tmp_path):
    family, X, members = case.data(3, n=n + case.more, weighted=n == 60, gaps=case.gaps and n == 24)
    model = Fitted(family, family.collect(X, members))
    loaded = again(model, tmp_path)
    assert loaded.family == family
    assert loaded.stats.same(model.stats)
    for rule in case.rules:
        scores = family.estimate(model.stats, rule).log_density(X)
        np.testing.assert_array_equal(loaded.family.estimate(loaded.stats, rule).log_density(X), scores)
        released = again(release(model, rule), tmp_path)
        np.testing.assert_array_equal(released.density(rule).log_density(X), scores)


@pytest.mark.parametrize("released", [False, True])
@pytest.mark.parametrize("n", [20, 60])
@pytest.mark.parametrize("families", ["auto", Gaussian("diagonal"), Gaussian("full")], ids=repr)
def test_few_rows_gaps_and_far_values_come_back(families, n, released, tmp_path):
    """The values of the first rows are kept until there is an origin; far rows are summed apart."""
    X = np.random.default_rng(0).normal(size=(n, 3))
    X[3, 1], X[5, 0] = np.nan, 1e12
    clf = GenerativeClassifier(families).fit(X, np.arange(n) % 2)
    model = release(clf) if released else clf
    np.testing.assert_array_equal(again(model, tmp_path).predict_proba(X), clf.predict_proba(X))


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.filterwarnings("ignore::deciban.errors.PrecisionWarning")  # of a component with few rows
def test_a_classifier_comes_back_to_the_bit(name, rule, tmp_path):
    clf, X = fitted(name, rule)
    loaded = again(clf, tmp_path)
    assert loaded.stats_.same(clf.stats_)
    assert loaded.family_ == clf.family_
    assert loaded.get_params(deep=False).keys() == clf.get_params(deep=False).keys()
    assert loaded.families_ == clf.families_
    np.testing.assert_array_equal(loaded.log_likelihood(X), clf.log_likelihood(X))
    np.testing.assert_array_equal(loaded.predict_proba(X), clf.predict_proba(X))
    if name != "mixture":
        np.testing.assert_array_equal(
            loaded.leave_one_out(X, y, method="log_likelihood"), clf.leave_one_out(X, y, method="log_likelihood")
        )
    released = again(release(clf), tmp_path)
    np.testing.assert_array_equal(released.log_likelihood(X), clf.log_likelihood(X))
    np.testing.assert_array_equal(released.predict_proba(X), clf.predict_proba(X))
    assert str(released.explain(some(X, slice(3)))) == str(clf.explain(some(X, slice(3))))


@pytest.mark.parametrize("name", FAMILIES)
def test_a_loaded_model_goes_on_learning(name, tmp_path):
    families, X = FAMILIES[name]
    clf = GenerativeClassifier(families).fit(some(X, slice(60)), y[:60])
    loaded = again(clf, tmp_path)
    head, tail = (some(X, slice(60)), y[:60]), (some(X, slice(60, N)), y[60:])
    assert loaded.learn(*tail).stats_.same(clf.learn(*tail).stats_)
    if name != "mixture":
        assert loaded.unlearn(*head).stats_.same(clf.unlearn(*head).stats_)
    assert (loaded + again(clf, tmp_path)).stats_.same((clf + clf).stats_)
    assert loaded.decay(0.5).stats_.same(clf.decay(0.5).stats_)


@pytest.mark.parametrize("name", FAMILIES)
def test_the_same_model_gives_the_same_bytes(name, tmp_path):
    clf, X = fitted(name)
    paths = [tmp_path / f"{i}.deciban" for i in range(4)]
    clf.save(paths[0])
    clf.predict(X)  # what was computed on the way is not stored
    save(clf, paths[1])
    load(paths[0]).save(paths[2])
    fitted(name)[0].save(paths[3])
    assert len({path.read_bytes() for path in paths}) == 1


@pytest.mark.parametrize("name", DISCRETE)
def test_learning_and_unlearning_gives_the_same_file(name, tmp_path):
    clf, X = fitted(name)
    before, after = tmp_path / "before.deciban", tmp_path / "after.deciban"
    clf.save(before)
    clf.learn(some(X, slice(30)), LABELS[::-1][np.arange(30) % 3])
    clf.unlearn(some(X, slice(30)), LABELS[::-1][np.arange(30) % 3])
    clf.save(after)
    if clf.model_.asked == clf.model_.family and clf.prequential_ is None:
        assert after.read_bytes() == before.read_bytes()
    else:  # the choices are still those of the first fit, or texts were scored before they were learnt
        a, b = load_file(before), load_file(after)
        assert a.keys() == b.keys()
        assert all(a[name].tobytes() == b[name].tobytes() for name in a)


@pytest.mark.parametrize("name", ["frame", "full", "multinomial-csr"])
def test_files_are_safetensors(name, tmp_path):
    clf, _ = fitted(name)
    clf.save(tmp_path / "model.deciban")
    arrays = load_file(tmp_path / "model.deciban")
    np.testing.assert_array_equal(arrays["fitted.model_.stats.rows"], clf.stats_.rows)


def test_known_densities_come_back(tmp_path):
    known = {"m": Gaussian.of(175.33, 52.89), "f": Gaussian.of(161.82, 46.89)}
    clf = GenerativeClassifier.from_densities(known, prior={"m": 0.3}, cost={("m", "f"): 2.0})
    loaded = again(clf, tmp_path)
    np.testing.assert_array_equal(loaded.predict_proba([[170.0]]), clf.predict_proba([[170.0]]))
    assert loaded.prior == {"m": 0.3}
    assert loaded.cost == {("m", "f"): 2.0}
    assert loaded.model_.family is loaded.model_.asked  # stored once


def test_a_mixture_comes_back(tmp_path):
    mixture = Mixture(Poisson(), 2).fit(COUNTS, random_state=0)
    loaded = again(mixture, tmp_path)
    np.testing.assert_array_equal(loaded.log_density(COUNTS), mixture.log_density(COUNTS))
    np.testing.assert_array_equal(loaded.weights, mixture.weights)
    with pytest.raises(NotAvailableError, match="density"):
        release(mixture)
    rows = COUNTS.astype(float)
    np.testing.assert_array_equal(
        again(mixture.density(), tmp_path).log_density(rows), mixture.density().log_density(rows)
    )


ESTIMATORS = {
    "PCA": (lambda: PCA(2).fit(NUMBERS), "transform"),
    "Fisher": (lambda: Fisher().fit(NUMBERS, y), "transform"),
    "MixtureModel": (lambda: MixtureModel(n_components=2, random_state=0).fit(NUMBERS), "predict_proba"),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_goes_through_the_same_lines(name, tmp_path):
    make, method = ESTIMATORS[name]
    model = make()
    loaded = again(model, tmp_path)
    assert loaded.get_params() == model.get_params()
    np.testing.assert_array_equal(getattr(loaded, method)(NUMBERS), getattr(model, method)(NUMBERS))
    with pytest.raises(ModelFileError, match="not fitted"):
        save(type(model)(), tmp_path / "model.deciban")


def test_a_model_within_a_model_comes_back(tmp_path):
    outer, inner = PCA(2).fit(NUMBERS), fitted("poisson")[0]
    outer.inner_ = inner
    np.testing.assert_array_equal(again(outer, tmp_path).inner_.predict_proba(COUNTS), inner.predict_proba(COUNTS))


NAMES = [
    (True, False),
    (1, 2, 2**80),
    (1.5, float("inf"), -0.0),
    ("a", "\udcff", "日本", ""),
    (("a", 1), ("b", 2)),
    tuple(range(100)),
    tuple(f"wörd {i}" for i in range(100)),
    tuple(f"w{i}" * (i % 3) + str(i) for i in range(100)),
    tuple((f"w{i}", i, i / 3) for i in range(100)),
    tuple((i, "x") if i % 2 else (i,) for i in range(50)),
    (np.float64(1.5), np.int64(2), np.str_("x")),
]


@pytest.mark.parametrize("names", NAMES, ids=repr)
def test_names_of_every_kind_come_back(names, tmp_path):
    declared = len(names)  # names that are not declared have an order
    loaded = again(Axis(names, declared), tmp_path)
    assert loaded == Axis(names, declared)
    assert list(map(type, loaded.names)) == list(map(type, names))


def test_many_words_are_arrays_not_json(tmp_path):
    words = tuple(sorted(f"word{i}" for i in range(200_000)))
    save(Axis(words), tmp_path / "axis.deciban")
    assert int.from_bytes((tmp_path / "axis.deciban").read_bytes()[:8], "little") < 2000
    assert load(tmp_path / "axis.deciban").names == words


def test_what_a_file_cannot_hold_is_refused(tmp_path):
    clf = GenerativeClassifier(Multinomial(), prior=lambda: 0)
    clf.prior = {"ham": 1j}
    clf.fit(COUNTS, y)
    with pytest.raises(ModelFileError, match="complex"):
        clf.save(tmp_path / "model.deciban")
    with pytest.raises(ModelFileError, match="not a model"):
        save(object(), tmp_path / "model.deciban")
    assert not list(tmp_path.iterdir())


def test_a_released_model_says_what_it_cannot_do(tmp_path):
    clf, X = fitted("product")
    released = again(release(clf), tmp_path)
    acts = [
        lambda: released.learn(X, y),
        lambda: released.unlearn(X, y),
        lambda: released.correct(X, y, y),
        lambda: released.merge(clf),
        lambda: clf + released,
        lambda: released.decay(0.5),
        lambda: released.leave_one_out(X, y),
        lambda: released.reestimate(rule="ml"),
        lambda: released.reestimate(classes=["ham", "spam"]),
        lambda: released.reestimate(columns=[0, 3]),
        lambda: released.rechoose(),
    ]
    for act in acts:
        with pytest.raises(NotAvailableError, match="released"):
            act()
    assert released.fit(X, y).learn(X, y).stats_.rows.sum() == 2 * N  # from nothing it can


def test_a_released_file_is_smaller_and_says_so(tmp_path):
    clf, _ = fitted("full")
    clf.save(tmp_path / "whole.deciban", note="from the field")
    release(clf).save(tmp_path / "released.deciban")
    said = deciban.describe(tmp_path / "whole.deciban")
    assert (said["kind"], said["rows"], said["released"]) == ("GenerativeClassifier", N, False)
    assert (said["note"], said["deciban"], said["numpy"]) == ("from the field", deciban.__version__, np.__version__)
    assert deciban.describe(tmp_path / "released.deciban")["released"]


def test_a_fitted_coin_is_released_under_one_rule(tmp_path):
    coin = Bernoulli().fit([1, 1, 0])
    released = again(release(coin, "ml"), tmp_path)
    np.testing.assert_array_equal(released.log_density([[1.0]], "ml"), coin.log_density([[1.0]], "ml"))
    with pytest.raises(NotAvailableError, match="'mean'"):
        released.log_density([[1.0]])


def test_deciban_has_one_storable_class_of_each_name():
    assert find("MultinomialStats").__name__ == "MultinomialStats"
    for base in (deciban.Stats, deciban.families.protocol.Family, deciban.families.protocol.Density):
        own = [
            cls for cls in _below(base) if cls.__module__.startswith("deciban.") and "__dataclass_fields__" in vars(cls)
        ]
        assert [name_of(cls) for cls in own] == [cls.__name__ for cls in own]


def _below(cls):
    return [each for sub in cls.__subclasses__() for each in (sub, *_below(sub))]


def test_errors_of_a_loaded_model_are_those_of_the_first(tmp_path):
    clf, _ = fitted("multinomial")
    loaded = again(clf, tmp_path)
    with pytest.raises(NotLearntError):
        loaded.unlearn([[900, 0, 0, 0, 0]], ["ham"])
    with pytest.raises(MergeError):
        loaded.merge(again(fitted("poisson")[0], tmp_path))
