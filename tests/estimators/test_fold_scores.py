"""Scores of folds: parts of a model that are scored together have the scores of each fold by itself."""

import numpy as np
import pytest

from deciban import Bernoulli, Binned, Categorical, Gaussian, GenerativeClassifier, Poisson
from deciban.families.transformed import Transformed
from deciban.model import cross_fit
from deciban.model.calibration import Calibration
from deciban.model.cross_fit import PartsTogether, folds_by_subtraction
from deciban.model.judge import stratified
from deciban.model.model import Lesson
from deciban.read.batches import Batch
from deciban.statistics import Members

rng = np.random.default_rng(7)
N = 160
Y = rng.integers(0, 3, N)
COLUMNS = {
    "height": rng.normal(170.0 + 5 * Y, 8.0),
    "weight": rng.normal(70.0, 9.0, N),
    "income": np.exp(rng.normal(Y / 2, 1.0)),
    "visits": rng.poisson(1.0 + Y).astype(float),
    "colour": rng.choice(["red", "green", "blue", "rare"], N, p=[0.5, 0.3, 0.19, 0.01]),
    "shade": rng.choice(["dark", "light"], N),
    "member": rng.integers(0, 2, N).astype(float),
    "ratio": rng.normal(size=N),
}
GAPS = rng.random(N) < 0.1
COLUMNS["weight"][GAPS], COLUMNS["visits"][np.roll(GAPS, 3)] = np.nan, np.nan
COLUMNS["colour"] = np.where(np.roll(GAPS, 7), None, COLUMNS["colour"])
FAMILIES = {
    "height": Gaussian("diagonal"),
    "weight": Gaussian("diagonal"),
    "income": Transformed("yeo-johnson"),
    "visits": Poisson(),
    "colour": Categorical(),
    "shade": Categorical(2.0, categories=["dark", "light"]),
    "member": Bernoulli(),
    "ratio": Binned(5),
}


def fitted(families, rule, weight):
    """The predictor of a table, and its rows as a lesson."""
    clf = GenerativeClassifier(families, rule=rule, calibrate=None).fit(COLUMNS, Y, sample_weight=weight)
    table, model = clf._table(COLUMNS), clf.model_
    members = Members.hard(Y, model.stats.axis, weight)
    return clf.predictor_, Lesson(Batch(table, Y, weight), model.encode(table), members)


def every_score(predictor, lesson):
    return [
        np.concatenate([fold.left_out, fold.scores], axis=1)
        for fold in folds_by_subtraction(predictor, lesson, stratified(Y))
    ]


@pytest.mark.parametrize("families", [FAMILIES, "auto"])
@pytest.mark.parametrize("rule", ["mean", "predictive"])
@pytest.mark.parametrize("weight", [None, rng.integers(1, 4, N).astype(float)], ids=["equal", "weighted"])
def test_folds_scored_together_are_those_scored_one_by_one(families, rule, weight, monkeypatch):
    predictor, lesson = fitted(families, rule, weight)
    parts = PartsTogether.of(predictor.model, lesson.rows)
    assert len(parts.features) + len(parts.others) >= 4
    together = every_score(predictor, lesson)
    monkeypatch.setattr(cross_fit, "CELLS", 1)  # one fold at a time
    by_turns = every_score(predictor, lesson)
    monkeypatch.setattr(
        cross_fit.PartsTogether, "of", lambda model, rows: PartsTogether([], [], (predictor.model, lesson.rows))
    )
    apart = every_score(predictor, lesson)
    for one, turn, other in zip(together, by_turns, apart, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(turn, one, rtol=1e-12, atol=1e-12)


def test_a_table_whose_blocks_are_all_scored_together_has_no_rest():
    predictor, lesson = fitted({name: FAMILIES[name] for name in FAMILIES}, "mean", None)
    parts = PartsTogether.of(predictor.model, lesson.rows)
    assert parts.rest is None
    assert sorted(place for part in parts.features for place in part.places) == list(range(len(FAMILIES)))


def test_priors_that_were_given_are_those_of_each_fold(monkeypatch):
    given = Gaussian("diagonal", mean=[100.0], scale=[400.0])
    families = {"height": given, "ratio": given, ("weight", "income"): given}
    predictor, lesson = fitted(families, "mean", None)
    together = every_score(predictor, lesson)
    monkeypatch.setattr(
        cross_fit.PartsTogether, "of", lambda model, rows: PartsTogether([], [], (predictor.model, lesson.rows))
    )
    for one, other in zip(together, every_score(predictor, lesson), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-8)


def test_families_that_share_parameters_are_scored_fold_by_fold():
    families = {
        "height": Gaussian("diagonal"),
        ("weight", "ratio"): Gaussian("spherical"),
        "colour": Categorical("loo"),
    }
    predictor, lesson = fitted(families, "mean", None)
    parts = PartsTogether.of(predictor.model, lesson.rows)
    assert [part.places for part in parts.features] == [[0]]
    assert parts.rest is not None
    assert len(parts.rest[0].family.families) == 2


@pytest.mark.parametrize("silent", [False, True])
def test_calibrations_applied_together_are_those_applied_one_by_one(silent):
    scores = [rng.normal(size=(90, 3)) for _ in range(4)]
    if silent:
        scores[0][:7] = scores[1][:7] = 0.0  # rows without evidence from blocks
        scores[2][:3] = scores[3][:3] = 0.0
    codes, lengths, classes = rng.integers(0, 3, 90), [None, None], ("a", "b", "c")
    forms = ["prior", "scale", "fitted", "parts", "none"]
    each = Calibration.fit_each(forms, "blocks", scores, codes, lengths, classes, 90.0, [[0, 2], [3]])
    assert list(each) == [*forms, ((0, 2), True), ((0, 2), False), ((3,), True), ((3,), False)]
    for name, found in Calibration.apply_each(each, scores, lengths, classes).items():
        np.testing.assert_allclose(found, each[name].apply(scores, lengths, classes), rtol=1e-12, atol=1e-12)
