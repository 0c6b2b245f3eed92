"""Classifiers with experts: pairs of columns, gaps, and blocks beside single columns."""

import numpy as np
import pandas as pd
import pytest

from deciban import Gaussian, GenerativeClassifier, load
from deciban.demo import write_table
from deciban.errors import HyperparameterError, InputError
from deciban.families.bernoulli import Gaps
from deciban.families.interactions import Interactions
from deciban.families.product import expert_columns
from deciban.model.judge import left_out_blocks
from deciban.model.predictor import Predictor
from deciban.read.batches import Batch

rng = np.random.default_rng(3)
N = 500
SIGN, SIDE = rng.choice(["plus", "minus"], N), rng.choice(["left", "right"], N)
LABELS = np.where(((SIGN == "plus") == (SIDE == "left")) ^ (rng.random(N) < 0.1), "even", "odd")
FRAME = pd.DataFrame(
    {"sign": SIGN, "side": SIDE, "size": rng.normal(size=N).round(2), "kind": rng.choice(list("uvw"), N)}
)
MODEL = GenerativeClassifier().fit(FRAME, LABELS)


def log_loss(model, frame, labels):
    p = model.predict_proba(frame)
    return float(-np.log(p[np.arange(len(labels)), np.searchsorted(model.classes_, labels)]).mean())


def test_a_class_that_only_a_pair_shows_is_found():
    """Neither column alone says anything about the label."""
    train, test = slice(0, 350), slice(350, N)
    alone = GenerativeClassifier(interactions=0).fit(FRAME[train], LABELS[train])
    pairs = GenerativeClassifier().fit(FRAME[train], LABELS[train])
    assert log_loss(alone, FRAME[test], LABELS[test]) > 0.68
    assert log_loss(pairs, FRAME[test], LABELS[test]) < 0.45
    assert max(pairs.interactions_, key=pairs.interactions_.get) in [("sign", "side"), ("sign", "side", "size", "kind")]


def test_weights_are_at_least_zero_and_noise_has_none():
    weights = MODEL.interactions_
    assert min(weights.values()) == 0.0
    assert weights["sign", "side"] > 0.3
    assert weights["size", "kind"] < 0.1


def test_raw_scores_samples_and_densities_are_those_of_the_columns():
    alone = GenerativeClassifier(interactions=0).fit(FRAME, LABELS)
    np.testing.assert_array_equal(MODEL.log_likelihood(FRAME, raw=True), alone.log_likelihood(FRAME, raw=True))
    np.testing.assert_array_equal(MODEL.log_marginal(FRAME), alone.log_marginal(FRAME))
    assert (MODEL.sample(20, 0)[0] == alone.sample(20, 0)[0]).all()


def test_the_parts_of_an_explanation_sum_to_the_answer():
    told = MODEL.explain(FRAME[:20], "odd", "even")
    assert "sign with side" in told.names
    np.testing.assert_allclose(told.total, MODEL.llr(FRAME[:20], "odd", "even"), atol=1e-9)


def test_leave_one_out_is_exact_for_experts():
    few = FRAME[:60].assign(size=np.where(np.arange(60) % 5 == 0, np.nan, FRAME["size"][:60]))
    clf = GenerativeClassifier().fit(few, LABELS[:60])
    assert {"pairs", "gaps"} <= set(clf.family_.experts)
    model, B = clf.model_, len(clf.model_.positions)
    lesson = model.lesson(Batch(clf._table(few), LABELS[:60]))
    left = left_out_blocks(clf.predictor_, lesson.rows, lesson.members)[B:]
    for row in range(0, 60, 9):
        others = model.unlearn(Batch(clf._table(few[row : row + 1]), LABELS[row : row + 1]))
        truth = Predictor(others).block_scores(lesson.rows[row : row + 1])[B:]
        assert len(truth) == len(left)
        for part, (expert, _), expected in zip(left, expert_columns(model.family), truth):
            if isinstance(expert, Interactions | Gaps):  # a Gaussian's prior follows the sums
                np.testing.assert_allclose(part[row], expected[0], atol=1e-9)


def test_learning_and_unlearning_give_the_same_sums():
    clf = GenerativeClassifier().fit(FRAME, LABELS)
    clf.learn(FRAME[:30], LABELS[:30]).unlearn(FRAME[:30], LABELS[:30])
    assert clf.stats_.same(MODEL.stats_)
    half = MODEL.blank().learn(FRAME[:250], LABELS[:250]) + MODEL.blank().learn(FRAME[250:], LABELS[250:])
    for name, sums in half.stats_.family.experts.items():
        if name in ("pairs", "gaps"):  # counts are exact
            assert sums.same(MODEL.stats_.family.experts[name])


def test_a_merge_keeps_the_pairs_that_both_have_summed():
    a = GenerativeClassifier(interactions=[("sign", "side"), ("sign", "kind")]).fit(FRAME[:250], LABELS[:250])
    b = GenerativeClassifier(interactions=[("kind", "side"), ("side", "sign")]).fit(FRAME[250:], LABELS[250:])
    both = a.merge(b, keep="left")
    assert list(both.interactions_) == [("sign", "side")]
    again = both.recalibrate(FRAME, LABELS)
    assert again.interactions_["sign", "side"] > 0.3


def test_reestimate_takes_some_of_the_pairs_that_were_summed():
    one = MODEL.reestimate(interactions=[("side", "sign")]).recalibrate(FRAME, LABELS)
    assert list(one.interactions_) == [("sign", "side")]
    assert log_loss(one, FRAME, LABELS) < 0.5
    assert list(MODEL.reestimate(interactions=1).interactions_) == [("sign", "side")]
    assert MODEL.reestimate(interactions=0).interactions_ == {}
    with pytest.raises(InputError, match="not summed"):
        MODEL.reestimate(interactions=[("sign", "colour")])
    some = MODEL.reestimate(columns=["side", "sign"])
    assert set(some.interactions_) == {("sign", "side")}


def test_a_file_holds_the_experts(tmp_path):
    for clf in (MODEL, MODEL.released()):
        clf.save(tmp_path / "m.deciban")
        again = load(tmp_path / "m.deciban")
        np.testing.assert_array_equal(again.predict_proba(FRAME), MODEL.predict_proba(FRAME))


def test_gaps_that_say_something_are_evidence():
    gone = (LABELS == "odd") & (rng.random(N) < 0.6)
    frame = FRAME.assign(size=np.where(gone, np.nan, FRAME["size"])).drop(columns=["sign", "side"])
    clf = GenerativeClassifier().fit(frame, LABELS)
    p = clf.predict_proba(frame)[:, list(clf.classes_).index("odd")]
    assert p[gone].min() > 0.8
    assert "size: missing or not" in clf.explain(frame[:5]).names


def test_what_is_no_pair_is_refused():
    for wrong in ("some", -1, 2.5, [("sign",)]):
        with pytest.raises(HyperparameterError, match="interactions"):
            GenerativeClassifier(interactions=wrong).fit(FRAME, LABELS)
    with pytest.raises(InputError, match="no column 'colour'"):
        GenerativeClassifier(interactions=[("sign", "colour")]).fit(FRAME, LABELS)


def test_families_that_were_named_have_no_experts_unless_asked_for():
    given = {"sign": "categorical", "side": "categorical", "size": Gaussian(), "kind": "categorical"}
    assert GenerativeClassifier(given).fit(FRAME, LABELS).interactions_ == {}
    assert GenerativeClassifier(calibrate=None).fit(FRAME, LABELS).interactions_ == {}


def test_noise_is_not_taken_for_evidence():
    for seed in range(1):
        draws = np.random.default_rng(seed)
        rows, new = (pd.DataFrame(draws.normal(size=(n, 12))).rename(columns=str) for n in (150, 500))
        labels, later = (draws.choice(["a", "b"], n) for n in (150, 500))
        assert log_loss(GenerativeClassifier().fit(rows, labels), new, later) < 0.72


def test_impossible_categories_of_a_candidate_without_weight_are_no_error(tmp_path):
    write_table(tmp_path)  # under rule "map", a category that a class never had is impossible
    clf = GenerativeClassifier(rule="map").fit(tmp_path / "tumours.csv", "diagnosis")
    assert np.isfinite(clf.predict_proba(tmp_path / "new.csv")).all()


def test_rows_with_gaps_are_learnt_by_a_model_with_a_block_beside_the_columns():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 300)
    X = pd.DataFrame({"x": rng.normal(y, 1.0), "y": rng.normal(2 * y, 2.0), "size": rng.gamma(2.0 + y, 3.0)})
    clf = GenerativeClassifier().fit(X, y)
    assert any(expert.whole_rows for expert in clf.family_.experts.values())
    before, gaps = clf.predict_proba(X), X[:40].mask(rng.random((40, 3)) < 0.3)
    for rows in (gaps, gaps[:1].assign(x=np.nan)):
        clf.learn(rows, y[: len(rows)]).unlearn(rows, y[: len(rows)])
        np.testing.assert_allclose(clf.predict_proba(X), before, atol=1e-9)
