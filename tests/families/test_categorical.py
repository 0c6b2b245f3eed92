"""Categories by any name: dice, cats, joint tables, unknown names, and what is refused."""

import numpy as np
import pytest
from scipy import stats as sps

from deciban import Axis, Categorical, Members
from deciban.errors import (
    DomainError,
    EmptyClassError,
    HyperparameterError,
    InputError,
    MergeError,
    NoModeError,
    NotAvailableError,
)

CATS = [
    *[("black", "m"), ("orange", "m"), ("black", "f"), ("orange", "m"), ("white", "m")],
    *[("white", "f"), ("white", "m"), ("white", "f"), ("black", "f"), ("calico", "f")],
]
COLOURS, SEXES = [colour for colour, _ in CATS], [sex for _, sex in CATS]
SEX = Members.hard([sex == "m" for sex in SEXES], Axis.of(["f", "m"]))
TABLE = [(0, 0)] * 4 + [(0, 1)] * 1 + [(1, 0)] * 3 + [(1, 1)] * 2


def learnt(family, X, members):
    block = family.encode(X, [])
    return family.collect(block, members)


def scored(family, stats, X, rule="mean"):
    return family.estimate(stats, rule).log_density(family.encode(X, [], stats))


# -- worked examples ---------------------------------------------------------------------------------------------------
def test_a_loaded_die():
    die = Categorical().fit([1, 6, 2, 6, 3, 6, 4, 6, 5, 6])
    np.testing.assert_allclose(die.density("ml").p, [[0.1, 0.1, 0.1, 0.1, 0.1, 0.5]])
    assert die.density("ml").names == ((1, 2, 3, 4, 5, 6),)


def test_the_joint_table_comes_back_and_the_product_does_not():
    every = [(0, 0), (0, 1), (1, 0), (1, 1)]
    joint, product = (Categorical(joint=how).fit(TABLE).log_density(every, "ml") for how in (True, False))
    np.testing.assert_allclose(np.exp(joint), [0.4, 0.1, 0.3, 0.2])
    np.testing.assert_allclose(np.exp(product), [0.35, 0.15, 0.35, 0.15])


def test_colours_of_cats():
    family = Categorical()
    stats = learnt(family, COLOURS, SEX)
    density = family.estimate(stats, "ml")
    assert density.names == (("black", "calico", "orange", "white"),)
    np.testing.assert_allclose(density.p, [[0.4, 0.2, 0.0, 0.4], [0.2, 0.0, 0.4, 0.4]])
    assert scored(family, stats, ["orange"], "ml")[0, 0] == -np.inf
    orange = scored(family, stats, ["orange"])
    np.testing.assert_allclose(np.exp(orange), [[1 / 9, 3 / 9]])
    assert orange[0, 1] - orange[0, 0] == pytest.approx(np.log(3))


def test_the_posterior_is_a_dirichlet_with_beta_marginals():
    alpha = (2.0, 1.0, 1.5, 3.0)
    posterior = Categorical(alpha).fit(COLOURS).posterior()
    A = np.array(alpha) + np.array([3, 1, 2, 4])
    truth = sps.dirichlet(A)
    np.testing.assert_allclose(posterior.mean[0], truth.mean())
    np.testing.assert_allclose(posterior.variance[0], truth.var())
    np.testing.assert_allclose(posterior.mode[0], (A - 1) / (A.sum() - 4))
    np.testing.assert_allclose(posterior.interval(0.9)[1][0], sps.beta(A, A.sum() - A).ppf(0.95))


def test_the_mode_under_one_more_pseudo_count_is_the_mean():
    np.testing.assert_allclose(Categorical(2.0).fit(COLOURS).posterior().mode, Categorical().fit(COLOURS).density().p)


# -- unknown names -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("known", [["a", "b", "a"], [0, 1, 0]])
@pytest.mark.parametrize("unknown", ["zebra", 7])
def test_a_category_never_seen_scores_by_the_prior_and_never_fails(known, unknown):
    die = Categorical(0.5).fit(known)
    assert die.log_density([unknown])[0] == pytest.approx(np.log(0.5 / (3 + 1)))
    assert die.log_density([unknown], "ml")[0] == -np.inf
    opened = Categorical(0.5, open=True).fit(known)
    assert opened.log_density([unknown])[0] == pytest.approx(np.log(0.5 / (3 + 1.5)))


def test_a_mode_gives_nothing_to_what_it_does_not_know():
    assert Categorical(1.0).fit(["a", "b"]).log_density(["z"], "map")[0] == -np.inf
    assert Categorical(3.0).fit(["a", "b"]).log_density(["z"], "map")[0] == pytest.approx(np.log(2 / (2 + 4)))


def test_an_open_cell_counts_in_the_evidence_too():
    closed, opened = (Categorical(open=how).fit(["a", "b", "a"]).log_evidence() for how in (False, True))
    assert closed == pytest.approx(np.log(1 / 2 * 1 / 3 * 2 / 4))
    assert opened == pytest.approx(np.log(1 / 3 * 1 / 4 * 2 / 5))


def test_new_categories_are_learnt_and_forgotten():
    before = Categorical().fit([["a", 1], ["b", 1]])
    after = before.learn([["c", 2], [None, 1]])
    assert after.density().names == (("a", "b", "c"), (1, 2))
    assert after.unlearn([["c", 2], [None, 1]]).stats.same(before.stats)


def test_declared_categories_stay_and_keep_their_order():
    family = Categorical(categories=["white", "orange", "black"])
    cat = family.fit(["black", "calico"])
    assert cat.density().names == (("white", "orange", "black", "calico"),)
    np.testing.assert_allclose(cat.density().p, [[1 / 6, 1 / 6, 2 / 6, 2 / 6]])
    assert cat.unlearn(["calico"]).density().names == (("white", "orange", "black"),)
    each = Categorical(categories=[["a"], [3, 4]]).fit([["b", 3]])
    assert each.density().names == (("a", "b"), (3, 4))


def test_selecting_features_selects_their_categories():
    family = Categorical([[1.0, 2.0], [3.0, 4.0, 5.0]], categories=[["a", "b"], [1, 2, 3]])
    stats = learnt(family, [["a", 1], ["b", 2]], Members.one_group(2))
    only = family.select(np.array([1]))
    assert only == Categorical([[3.0, 4.0, 5.0]], categories=[[1, 2, 3]])
    np.testing.assert_allclose(only.estimate(stats.select("feature", [1]), "mean").p, [[4 / 14, 5 / 14, 5 / 14]])


# -- the same names, however they come ---------------------------------------------------------------------------------
def test_numbers_give_the_same_statistics_in_every_form():
    rng = np.random.default_rng(0)
    X = rng.choice([0, 3, 4, 9], (60, 3))
    X[rng.random(X.shape) < 0.1] = -1
    members = Members.hard(rng.integers(0, 3, 60), 3, rng.integers(1, 4, 60).astype(float))
    truth = learnt(Categorical(), X, members)
    gaps = np.where(X < 0, np.nan, X)
    objects = np.where(X < 0, None, X.astype(object))
    soft = Members.soft(members.matrix().toarray())
    for form in (X.astype(np.int8), X.astype(np.int16), np.asfortranarray(X), gaps, objects, objects.tolist()):
        assert learnt(Categorical(), form, members).same(truth)
        assert learnt(Categorical(), form, soft).same(truth)


def test_numbers_too_large_to_count_by_position_are_names():
    family = Categorical()
    fit = family.fit([[5_000_000], [3], [5_000_000]])
    assert fit.density().names == ((3, 5_000_000),)
    np.testing.assert_allclose(np.exp(fit.log_density([5_000_000, 3, 4])), [3 / 5, 2 / 5, 1 / 5])


def test_truth_values_and_strings_of_any_kind():
    assert Categorical().fit(np.array([True, False, True])).density("ml").p.tolist() == [[1 / 3, 2 / 3]]
    for strings in (np.array(["a", "b", "a"]), ["a", "b", "a"], np.array(["a", "b", "a"], dtype=object)):
        np.testing.assert_allclose(Categorical().fit(strings).density("ml").p, [[2 / 3, 1 / 3]])


# -- joint tables ------------------------------------------------------------------------------------------------------
def test_a_joint_prior_is_spread_over_every_combination():
    fit = Categorical(0.5, joint=True).fit([("a", 1), ("b", 2), ("a", 2)])
    every = [("a", 1), ("a", 2), ("b", 1), ("b", 2)]
    np.testing.assert_allclose(np.exp(fit.log_density(every)), np.array([1.5, 1.5, 0.5, 1.5]) / 5)
    wider = Categorical(0.5, joint=True, categories=[["a", "b", "c"], [1, 2]]).fit([("a", 1), ("b", 2)])
    assert np.exp(wider.log_density([("c", 2)])[0]) == pytest.approx(0.5 / (2 + 3))


def test_a_joint_row_with_a_gap_is_not_counted_and_summed_over_what_it_misses():
    fit = Categorical(joint=True).fit([("a", 1), ("b", None), ("b", 2)])
    assert fit.stats.counts.sum() == 2
    assert fit.log_density([(None, 1)])[0] == pytest.approx(np.log((2 + 1) / 6))  # (a, 1) was counted, (b, 1) was not
    assert fit.log_density([(None, None)])[0] == 0.0


def test_features_of_a_joint_table_can_be_summed_out():
    family = Categorical(joint=True)
    stats = learnt(family, [("a", 1, "x"), ("a", 2, "x"), ("b", 2, "y")], Members.one_group(3))
    fewer = stats.select("feature", np.array([2, 0]))
    assert fewer.same(learnt(family, [("x", "a"), ("x", "a"), ("y", "b")], Members.one_group(3)))


def test_a_joint_table_too_large_is_refused():
    X = np.tile(np.arange(120)[:, None], (1, 3))
    with pytest.raises(NotAvailableError, match=r"120 × 120 × 120 .* 1,728,000 cells.*joint=False"):
        Categorical(joint=True).fit(X)


def test_joint_samples_reach_combinations_never_seen():
    density = Categorical(5.0, joint=True).fit([("a", 1), ("b", 2)]).density()
    rows = density.sample(np.zeros(500, dtype=int), np.random.default_rng(0))
    assert set(map(tuple, rows)) == {("a", 1), ("a", 2), ("b", 1), ("b", 2)}


def test_joint_and_separate_counts_are_not_mistaken_for_each_other():
    stats = learnt(Categorical(joint=True), TABLE, Members.one_group(10))
    with pytest.raises(HyperparameterError, match="fit again"):
        Categorical().estimate(stats, "mean")
    with pytest.raises(MergeError):
        _ = stats + learnt(Categorical(), TABLE, Members.one_group(10))


# -- priors ------------------------------------------------------------------------------------------------------------
def test_a_base_and_a_strength_are_pseudo_counts():
    base = {"base": [0.1, 0.2, 0.3, 0.4]}
    a, b = (Categorical(10, **base).fit(COLOURS), Categorical([1.0, 2.0, 3.0, 4.0]).fit(COLOURS))
    np.testing.assert_allclose(a.density().p, b.density().p)
    np.testing.assert_allclose(a.log_evidence(), b.log_evidence())


def test_a_prior_by_category_knows_its_categories_from_the_first_fit():
    fit = Categorical([1.0, 2.0]).fit(["b", "a"])
    assert fit.family.categories == (("a", "b"),)
    np.testing.assert_allclose(fit.learn(["a"]).density().p, [[3 / 6, 3 / 6]])
    with pytest.raises(HyperparameterError, match=r"feature 0 has 2 numbers, but there are 3 categories"):
        fit.learn(["c"]).density()


def test_an_open_prior_by_category_ends_with_anything_else():
    fit = Categorical([1.0, 2.0, 5.0], open=True).fit(["a", "b"])
    np.testing.assert_allclose(np.exp(fit.log_density(["a", "b", "z"])), np.array([2, 3, 5]) / 10)


@pytest.mark.parametrize("by", ["evidence", "loo"])
def test_the_strength_is_the_best_one(by):
    rng = np.random.default_rng(1)
    X, members = np.stack([rng.choice(6, 400), rng.choice(3, 400)], axis=1), Members.hard(rng.integers(0, 8, 400), 8)
    stats = learnt(Categorical(), X, members)
    chosen = Categorical(by).resolve(stats)

    def score(strength):
        family = Categorical(strength)
        if by == "evidence":
            return family.log_evidence(stats).sum()
        scores = family.leave_one_out(stats, family.encode(X, []), members, "mean")
        return scores[np.arange(400), members.codes].sum()

    best = score(chosen.pseudo_count)
    assert best >= max(score(chosen.pseudo_count * factor) for factor in (0.5, 0.9, 1.1, 2.0))


@pytest.mark.parametrize(
    ("hyper", "said"),
    [
        ({"pseudo_count": -1}, "> 0"),
        ({"pseudo_count": "most"}, "evidence"),
        ({"base": [0.2, 0.2]}, "sum to 1"),
        ({"pseudo_count": [1, 2], "base": [0.5, 0.5]}, "single number"),
        ({"pseudo_count": [1, 2], "joint": True}, "one pseudo-count"),
    ],
)
def test_priors_that_are_none_are_refused(hyper, said):
    with pytest.raises(HyperparameterError, match=said):
        Categorical(**hyper)


def test_lists_for_other_features_are_refused():
    with pytest.raises(HyperparameterError, match="2 features, but lists for 3"):
        Categorical(categories=[["a"], ["b"], ["c"]]).fit([["a", "b"]])


# -- where a rule has no answer ----------------------------------------------------------------------------------------
def test_empty_classes_have_no_ml_and_flat_ones_no_mode():
    stats = learnt(Categorical(), [["a"], ["b"]], Members.hard([0, 0], 2))
    with pytest.raises(EmptyClassError, match="class 1, feature 0"):
        Categorical().estimate(stats, "ml")
    with pytest.raises(NoModeError, match=r"class 1 .*'mean'"):
        Categorical().estimate(stats, "map")
    with pytest.raises(NoModeError, match="class 0"):
        Categorical(0.5, open=True).estimate(stats.select("class", [0]), "map")
    assert np.isnan(Categorical(0.5, open=True).posterior(stats).modes).all()


@pytest.mark.parametrize("joint", [False, True])
def test_columns_without_a_single_value_say_nothing(joint):
    fit = Categorical(joint=joint).fit(np.array([[None], [None]], dtype=object))
    assert fit.log_density([["a"], [None]]).tolist() == [0.0, 0.0]
    assert fit.log_evidence() == 0.0
    assert fit.sample(2).tolist() == [[None], [None]]
    np.testing.assert_array_equal(fit.leave_one_out(np.array([[None], [None]], dtype=object)), 0.0)


def test_the_only_row_can_be_left_out():
    fit = Categorical().fit([["a", 1]])
    assert fit.leave_one_out([["a", 1]])[0] == 0.0  # nothing is known of either feature any more
    assert fit.leave_one_out([["a", 1]], "ml")[0] == -np.inf


# -- input -------------------------------------------------------------------------------------------------------------
def test_numbers_below_minus_one_are_refused():
    for X in ([[3], [-2]], [[3.0], [-2.0]], np.array([[3], [-2]], dtype=object)):
        with pytest.raises(DomainError, match=r"holds -2.*strings"):
            Categorical().fit(X)


def test_another_number_of_columns_is_refused():
    with pytest.raises(InputError, match="the rows have 3 columns, and 2 were learnt"):
        Categorical().fit([["a", "b"]]).log_density([["a", "b", "c"]])


# -- known probabilities -----------------------------------------------------------------------------------------------
def test_known_probabilities_by_name_and_by_number():
    density = Categorical.of({"m": 0.3, "f": 0.7}, [0.5, 0.25, 0.25])
    rows = Categorical().encode([["f", 2], ["m", 5], [None, 0]], [])
    np.testing.assert_allclose(np.exp(density.log_density(rows)[:, 0]), [0.7 * 0.25, 0.0, 0.5])
    with pytest.raises(HyperparameterError, match="sum to 1"):
        Categorical.of([0.5, 0.6])


def test_samples_are_names_that_can_be_learnt_again():
    density = Categorical.of({"m": 0.3, "f": 0.7}, [0.5, 0.25, 0.25])
    rows = density.sample(np.zeros(4000, dtype=int), np.random.default_rng(0))
    again = Categorical().fit(rows).density("ml")
    assert again.names == (("f", "m"), (0, 1, 2))
    np.testing.assert_allclose(again.p, [[0.7, 0.3, 0.5, 0.25, 0.25]], atol=0.03)


def test_the_log_prior_is_a_dirichlet_density_up_to_a_constant():
    family, truth = Categorical([2.0, 3.0, 1.5]), sps.dirichlet([2.0, 3.0, 1.5])
    p, q = [0.2, 0.5, 0.3], [0.6, 0.3, 0.1]
    difference = family.log_prior(Categorical.of(p)) - family.log_prior(Categorical.of(q))
    assert difference == pytest.approx(truth.logpdf(p) - truth.logpdf(q))
