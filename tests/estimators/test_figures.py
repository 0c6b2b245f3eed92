"""Figures of learnt rows are those of fresh rows: nothing that labels have chosen was chosen with the judged rows."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from deciban import Categorical, Gaussian, GenerativeClassifier, Mixture, Text, compare
from deciban.errors import InputError
from deciban.model.judge import copied_rows, folds_in_time, k_folds, stratified, units
from deciban.read.tables import Table

WORDS = [f"{a}{b}" for a in ("lor", "ips", "dol", "sit", "ame") for b in ("em", "um", "or")]


@pytest.fixture(scope="module")
def columns():
    """A frame of numbers and names, some of which say something, and its labels."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 240)
    frame = pd.DataFrame(rng.normal(size=(240, 4)) + np.outer(y, [1.2, 0.5, 0, 0]), columns=list("abcd"))
    frame["d"] = np.exp(frame["d"])
    return frame.assign(e=np.where(rng.random(240) < 0.3 + 0.4 * y, "x", "z")), y


def _by_refits(clf, X, y, fold):
    """Scores of each fold by a classifier fitted to the other rows, without terms that all classes share."""
    scores = np.empty((len(y), len(clf.classes_)))
    for k in np.unique(fold):
        again = GenerativeClassifier(**clf.get_params()).fit(_take(X, fold != k), y[fold != k])
        scores[fold == k] = again.log_likelihood(_take(X, fold == k), constant=False)
    return _contrasts(scores)


def _contrasts(scores):
    return scores - scores[:, :1]


def _take(X, rows):
    return X[rows] if hasattr(X, "shape") else [x for x, wanted in zip(X, rows) if wanted]


def test_figures_of_a_table_are_those_of_complete_refits(columns):
    X, y = columns
    clf = GenerativeClassifier().fit(X, y)
    told = clf.evaluate(X, y, learnt=True)
    np.testing.assert_allclose(
        _contrasts(told.log_likelihood), _by_refits(clf, X, y, stratified(y)), rtol=1e-9, atol=1e-9
    )
    assert told.selected_on == ()
    raw = GenerativeClassifier(calibrate=None).fit(X, y)
    expected = _by_refits(raw, X, y, stratified(y))
    again = clf.evaluate(X, y, learnt=True, raw=True).log_likelihood
    np.testing.assert_allclose(_contrasts(again), expected, atol=1e-9)


@pytest.mark.parametrize("as_column", [pytest.param(False, marks=pytest.mark.slow), True])
def test_figures_of_texts_are_those_of_complete_refits(as_column):
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 150)
    texts = [" ".join(rng.choice(WORDS[5 * c : 5 * c + 10], rng.integers(3, 9))) + f" once{i}" for i, c in enumerate(y)]
    X = pd.DataFrame({"body": texts, "length": rng.normal(size=150)}) if as_column else texts
    kinds = {"body": "text"} if as_column else None
    clf = GenerativeClassifier(kinds=kinds).fit(X, y)
    told = clf.evaluate(X, y, learnt=True)
    np.testing.assert_allclose(
        _contrasts(told.log_likelihood), _by_refits(clf, X, y, stratified(y)), rtol=1e-7, atol=1e-7
    )


def test_with_more_rows_than_are_judged_sums_are_subtracted(columns, monkeypatch):
    X, y = columns
    families = {"a": Gaussian(), "b": Gaussian(), "e": Categorical()}
    clf = GenerativeClassifier(families, calibrate="blocks").fit(X[["a", "b", "e"]], y)
    whole = clf.evaluate(X[["a", "b", "e"]], y, learnt=True)
    monkeypatch.setattr("deciban.model.evaluation.JUDGED_ROWS", 200)
    told = clf.evaluate(X[["a", "b", "e"]], y, learnt=True)
    np.testing.assert_allclose(told.log_likelihood, whole.log_likelihood, rtol=1e-6, atol=1e-6)


def test_choices_are_made_again_in_each_fold():
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(60, 3)), np.arange(60) % 2
    asked = []

    class Watched(Gaussian):
        def choose(self, stats, rows=None, rule="mean"):
            asked.append(float(stats.weight.sum()) if hasattr(stats, "weight") else None)
            return super().choose(stats, rows, rule)

    clf = GenerativeClassifier(Watched("auto")).fit(X, y)
    before = len(asked)
    clf.evaluate(X, y, learnt=True)
    assert len(asked) - before >= 5


@pytest.mark.slow
def test_labels_that_are_noise_show_no_relation_however_much_is_chosen():
    printed, fresh = [], []
    for seed in range(2):
        rng = np.random.default_rng(seed)
        X = pd.DataFrame(rng.normal(size=(1100, 12))).rename(columns=str)
        y = np.arange(1100) % 2
        clf = GenerativeClassifier().fit(X[:100], y[:100])
        told = clf.evaluate(X[:100], y[:100], learnt=True)
        printed.append(told.log_loss)
        fresh.append(clf.evaluate(X[100:], y[100:]).log_loss)
        assert str(told).startswith("This model is no better than the class proportions alone")
        assert told.to_dict()["better_than_prior"] is False
    assert np.mean(printed) > np.log(2) - 0.01
    assert np.mean(printed) == pytest.approx(np.mean(fresh), abs=0.02)


def test_a_good_model_is_better_than_its_prior():
    X, y = load_iris(return_X_y=True)
    told = GenerativeClassifier(Gaussian()).fit(X, y).evaluate(X, y, learnt=True)
    assert told.verdict() is None
    assert str(told).startswith("150 rows, each scored as if it had not been learnt (k-fold);")


def test_rechoosing_shuffles_sorted_rows():
    X, y = load_iris(return_X_y=True)
    clf = GenerativeClassifier(Gaussian("tied")).fit(X, y)
    assert clf.evaluate(X, y, learnt=True, rechoose=5).log_loss < 0.1
    slowly = np.linspace(0, 20, 150)[:, None]  # folds of neighbouring rows would have to extrapolate
    drifting = GenerativeClassifier(Gaussian("tied")).fit(X + slowly, y)
    alike = drifting.evaluate(X + slowly, y, learnt=True).log_loss
    assert drifting.evaluate(X + slowly, y, learnt=True, rechoose=5).log_loss == pytest.approx(alike, abs=0.05)


def test_a_column_that_is_constant_without_a_fold_is_left_out_there():
    rng = np.random.default_rng(9)
    y = (np.arange(100) % 4 > 0).astype(int)
    b = np.where(np.arange(100) == 7, 5.0, 0.25)
    X = pd.DataFrame({"a": rng.normal(size=100) + 3 * y, "b": b, "c": rng.random(100) + y})
    told = GenerativeClassifier(kinds={"b": "number"}).fit(X, y).evaluate(X, y, learnt=True)
    assert told.log_loss < 0.2  # as a number without any variation, row 7 alone would cost millions


def test_mixtures_are_judged_by_refits():
    rng = np.random.default_rng(8)
    X, y = np.r_[rng.normal(size=(60, 2)), rng.normal(4, 1, (60, 2))], np.repeat([0, 1], 60)
    clf = GenerativeClassifier(Mixture(Gaussian("diagonal"), 2)).fit(X, y)
    assert clf.evaluate(X, y, learnt=True).error_rate < 0.05


def test_some_of_the_learnt_rows_are_judged_by_the_others(columns):
    X, y = columns
    clf = GenerativeClassifier(Gaussian("tied")).fit(X[["a", "b"]], y)
    told = clf.evaluate(X[["a", "b"]][:1], y[:1], learnt=True)
    expected = clf.unlearn(X[["a", "b"]][:1], y[:1]).log_likelihood(X[["a", "b"]][:1])
    np.testing.assert_allclose(told.log_likelihood, expected, rtol=1e-9)
    with pytest.raises(InputError, match="no rows are left"):
        GenerativeClassifier(Gaussian("diagonal")).fit([[1.0]], [0]).evaluate([[1.0]], [0], learnt=True)


# -- folds -------------------------------------------------------------------------------------------------------------
def test_folds_have_equal_shares_of_each_class_and_are_shuffled():
    codes = np.repeat([0, 1, 2], [50, 33, 17])  # sorted
    fold = stratified(codes)
    table = np.array([np.bincount(fold[codes == c], minlength=5) for c in range(3)])
    assert (np.ptp(table, axis=1) <= 1).all()
    assert len(np.unique(fold[:5])) > 1
    assert not np.array_equal(fold[:10], fold[10:20])


def test_groups_stay_together_and_folds_stay_even():
    rng = np.random.default_rng(0)
    codes, groups = rng.integers(0, 3, 600), np.r_[rng.integers(0, 40, 300), 100 + np.arange(300)]
    fold = stratified(codes, 5, groups)
    assert all(len(np.unique(fold[groups == g])) == 1 for g in np.unique(groups))
    table = np.array([np.bincount(fold[codes == c], minlength=5) for c in range(3)])
    assert (table.min(axis=1) > 0.7 * table.max(axis=1)).all()
    assert set(stratified(codes[:9], 5, [1] * 3 + [2] * 3 + [3] * 3)) <= set(range(5))


def test_rows_of_a_judged_group_leave_the_sums_even_if_they_are_not_judged():
    codes, groups = np.arange(40) % 2, np.arange(40) // 4
    splits = list(k_folds(codes, 5, groups, most=12))
    assert sorted(np.concatenate([split.test for split in splits])) == sorted({*splits[0].train, *splits[0].test})
    for split in splits:
        assert set(groups[split.out]) == set(groups[split.test])
        assert not set(groups[split.out]) & set(groups[split.train])
        assert len(split.out) == 4 * len(np.unique(groups[split.test]))


def test_the_judged_rows_of_a_group_are_scored_without_it():
    rng = np.random.default_rng(3)
    speaker = np.repeat(np.arange(30), 6)
    y = np.repeat(rng.integers(0, 2, 30), 6)
    X = rng.normal(size=(30, 8))[speaker] + 0.01 * rng.normal(size=(180, 8))  # a speaker sounds like itself alone
    clf = GenerativeClassifier(Gaussian("full")).fit(X, y)
    apart = clf.evaluate(X, y, learnt=True, groups=speaker)
    assert clf.evaluate(X, y, learnt=True).error_rate < 0.2 < apart.error_rate
    low, high = (float(end) for end in str(apart.interval("error_rate"))[:-1].split("[")[1].split(","))
    assert high - low > 0.2  # thirty speakers, not 180 rows
    with pytest.raises(InputError, match="Give one for each row"):
        clf.evaluate(X, y, learnt=True, groups=speaker[:5])


def test_copies_stay_in_one_fold_and_do_not_flatter():
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(80, 12)), np.arange(80) % 2
    twice, labels = np.repeat(X, 4, axis=0), np.repeat(y, 4)
    clf = GenerativeClassifier(Gaussian("full")).fit(twice, labels)
    assert clf.evaluate(twice, labels, learnt=True).error_rate > 0.35
    number = units(Table.of(twice), labels, None)
    assert len(np.unique(number)) == 80
    both = units(Table.of(twice), labels, np.repeat(np.arange(40), 8))
    assert len(np.unique(both)) == 40


def test_equal_rows_of_few_categories_are_different_cases():
    rng = np.random.default_rng(5)
    X = rng.integers(0, 3, (300, 3)).astype(float)  # 27 possible rows
    assert copied_rows(Table.of(X), rng.integers(0, 2, 300)) is None
    texts = ["free prize", "lunch at noon", "free prize", "see you"]
    assert copied_rows(Table.of(texts), np.array([0, 1, 0, 1])).tolist() == [0, 1, 0, 3]


def test_later_rows_are_judged_by_earlier_ones():
    rng = np.random.default_rng(6)
    time, y = rng.permutation(120), np.arange(120) % 2
    X = rng.normal(size=(120, 1)) + np.where(time[:, None] < 60, 1, -1) * (4 * y[:, None] - 2)  # the relation reverses
    clf = GenerativeClassifier(Gaussian()).fit(X, y)
    told = clf.evaluate(X, y, learnt=True, time=time)
    assert len(told) == 100
    assert told.error_rate > clf.evaluate(X, y, learnt=True).error_rate
    for split in folds_in_time(time, 120):
        assert time[split.train].max() < time[split.test].min()
        assert set(split.out) == set(np.flatnonzero(time >= time[split.test].min()))
    with pytest.raises(InputError, match="all rows of the model"):
        clf.evaluate(X[:100], y[:100], learnt=True, time=time[:100])
    with pytest.raises(InputError, match="too few"):
        clf.evaluate(X, y, learnt=True, time=np.zeros(120))
    with pytest.raises(InputError, match="both"):
        clf.evaluate(X, y, learnt=True, time=time, groups=time)


def test_rows_that_were_learnt_with_weights_are_left_out_with_them():
    rows, y = np.array([f"row {at}" for at in range(60)])[:, None], np.random.default_rng(0).integers(0, 2, 60)
    weight = np.where(np.arange(60) < 50, 5.0, 0.0)
    clf = GenerativeClassifier(Categorical()).fit(rows, y, weight)
    told = clf.evaluate(rows, y, learnt=True, sample_weight=weight)
    assert len(told) == 50  # a row of weight 0 is as if absent
    assert told.log_loss > 0.6  # a column with a name for each row tells nothing
    with pytest.raises(InputError, match="Leave it out"):
        clf.evaluate(rows, y, sample_weight=weight)


@pytest.mark.parametrize("rows", [["free prize", "lunch"], np.arange(12.0).reshape(2, 6)])
def test_two_rows_are_too_few_to_be_judged(rows):
    clf = GenerativeClassifier().fit(rows, [0, 1])
    with pytest.raises(InputError, match="2 rows are too few to be judged"):
        clf.evaluate(rows, [0, 1], learnt=True)


@pytest.mark.parametrize("family", ["auto", Gaussian("diagonal"), Gaussian("tied")])
def test_a_class_with_one_row_leaves_every_figure_finite(family):
    rng = np.random.default_rng(7)
    X, y = rng.normal(size=(41, 3)), np.r_[np.arange(40) % 2, 2]
    told = GenerativeClassifier(family).fit(X, y).evaluate(X, y, learnt=True)
    assert np.isfinite([told.log_loss, told.cllr, told.brier]).all()
    assert "∞" not in str(told)


def test_a_class_with_one_text_leaves_every_figure_finite():
    texts = ["free prize now", "win a prize", "lunch at noon", "see you at lunch"] * 8 + ["quarterly earnings report"]
    y = ["spam", "spam", "ham", "ham"] * 8 + ["news"]
    told = GenerativeClassifier(Text()).fit(texts, y).evaluate(texts, y, learnt=True)
    assert np.isfinite([told.log_loss, told.cllr, told.brier]).all()


def test_models_are_compared_in_the_same_folds():
    X, y = load_iris(return_X_y=True)
    full = GenerativeClassifier(Gaussian("full")).fit(X, y)
    told = compare({"full": full, "tied": full.reestimate(structure="tied")}, X, y)
    alone = GenerativeClassifier(Gaussian("tied")).fit(X, y).evaluate(X, y, learnt=True)
    np.testing.assert_allclose(told.evaluations["tied"].log_likelihood, alone.log_likelihood, atol=1e-6)


# -- intervals ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("figure", ["error_rate", "log_loss", "brier", "cllr", "eer"])
def test_intervals_hold_the_figure_of_the_population(figure):
    from deciban.evaluate import Evaluation

    def drawn(n, seed):
        rng = np.random.default_rng(seed)
        codes = rng.integers(0, 2, n)
        llr = rng.normal(2 * (2 * codes - 1), 2)
        return Evaluation(np.c_[np.zeros(n), llr], codes, ["f", "m"])

    truth = getattr(drawn(100_000, 99), figure)
    ends = [drawn(200, seed).interval(figure) for seed in range(60)]
    held = np.mean([each.low <= truth <= each.high for each in ends])
    assert held >= 0.85
