"""Plots of scores show the numbers of the functions of deciban.evaluate."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import ndtri

from deciban import evaluate, plots
from deciban.errors import InputError, NotAvailableError
from deciban.evaluate import Evaluation
from deciban.evidence.scores import convert

RNG = np.random.default_rng(0)
IS_H1 = np.repeat([True, False], [60, 90])
LLR = np.where(IS_H1, 1.0, -1.0) + RNG.normal(size=150)
JUDGING = [plots.bayes_error, plots.det, plots.roc, plots.tippett, plots.llr_histogram, plots.reliability]
JUDGING.append(plots.empirical_cross_entropy)
AWKWARD = {
    "infinite": np.where(np.arange(150) % 10 == 0, np.where(IS_H1, np.inf, -np.inf), LLR),
    "certain mistakes": np.where(np.arange(150) % 50 == 0, np.where(IS_H1, -np.inf, np.inf), LLR),
    "only infinite": np.where(IS_H1, np.inf, -np.inf),
    "all equal": np.zeros(150),
    "separated": np.where(IS_H1, 2.0, -2.0),
    "turned round": -LLR,
    "huge": 1e4 * LLR,
}


def line(ax, gid):
    (found,) = [line for line in ax.lines if line.get_gid() == gid]
    return np.asarray(found.get_xdata()), np.asarray(found.get_ydata())


def decibans(nats):
    return convert(nats, "decibans")


def test_bayes_error_draws_the_normalised_dcf():
    ax, curve = plots.bayes_error(LLR, IS_H1), evaluate.bayes_error_curve(LLR, IS_H1)
    x, y = line(ax, "actual")
    assert_allclose(x, decibans(curve.prior_log_odds))
    assert_allclose(y, curve.actual / curve.default)
    assert_allclose(line(ax, "minimum")[1], curve.minimum / curve.default)
    assert_allclose(y[60], evaluate.dcf(LLR, IS_H1, 0.5))


def test_bayes_error_as_error_rates():
    ax, curve = plots.bayes_error(LLR, IS_H1, normalised=False), evaluate.bayes_error_curve(LLR, IS_H1)
    assert_allclose(line(ax, "actual")[1], curve.actual)
    assert ax.get_ylabel() == "error rate"


def test_roc_and_its_hull():
    ax, curve, hull = plots.roc(LLR, IS_H1), evaluate.roc(LLR, IS_H1), evaluate.convex_hull(LLR, IS_H1)
    assert_allclose(line(ax, "roc"), (curve.false_alarm, curve.hit))
    assert_allclose(line(ax, "hull"), (hull.false_alarm, hull.hit))


def test_det_is_in_probits_with_a_dot_at_the_eer():
    ax, curve = plots.det(LLR, IS_H1), evaluate.det(LLR, IS_H1)
    x, y = line(ax, "det")
    inside = np.isfinite(curve.false_alarm) & np.isfinite(curve.miss)
    assert_allclose((x[inside], y[inside]), (curve.false_alarm[inside], curve.miss[inside]))
    assert np.isfinite(x).all()
    assert_allclose(line(ax, "eer")[0], [ndtri(evaluate.eer(LLR, IS_H1))])
    ticks = dict(zip(ax.get_xticks(), [label.get_text() for label in ax.get_xticklabels()]))
    assert ticks[ndtri(0.1)] == "10"
    low, high = ax.get_xlim()
    assert all(low <= tick <= high for tick in ticks)


def test_the_hull_of_the_det_is_never_above_it():
    ax = plots.det(LLR, IS_H1)
    (x, y), (hx, hy) = line(ax, "det"), line(ax, "hull")
    inside = (np.abs(x) < 3) & (np.abs(y) < 3)
    assert (np.interp(x[inside], hx[::-1], hy[::-1]) <= y[inside] + 0.02).all()


def test_tippett_draws_the_share_of_each_class_and_tells_what_misleads():
    ax, told = plots.tippett(LLR, IS_H1), evaluate.tippett(LLR, IS_H1)
    for gid, share in (("h1", told.h1), ("h0", told.h0)):
        x, y = line(ax, gid)
        assert_allclose(x[1:-1], decibans(told.llr))
        assert_allclose(y, np.r_[1, share, 0])
    wrong = 100 * np.mean(LLR[IS_H1] < 0)
    assert f"{wrong:.2g} % misleading" in ax.get_legend().get_texts()[0].get_text()


def test_infinite_evidence_stays_at_the_edge_of_the_tippett_plot():
    ax = plots.tippett([np.inf, 1.0, -1.0, -np.inf], [True, True, False, False])
    assert line(ax, "h1")[1][-1] == 0.5
    assert line(ax, "h0")[1][-1] == 0


def test_the_histogram_counts_every_row_once():
    ax = plots.llr_histogram(AWKWARD["infinite"], IS_H1, bins=12)
    (ones, edges, _), (zeros, _, _) = (stairs.get_data() for stairs in ax.patches)
    assert len(edges) == 13
    assert_allclose(ones.sum(), np.isfinite(AWKWARD["infinite"][IS_H1]).mean())
    assert_allclose(zeros.sum(), np.isfinite(AWKWARD["infinite"][~IS_H1]).mean())
    assert any("+∞: 6 h1, 0 h0" in text.get_text() for text in ax.texts)


def test_reliability_draws_bins_and_bands():
    ax, kept = plots.reliability(LLR, IS_H1, bins=5), evaluate.reliability(LLR, IS_H1, bins=5)
    assert_allclose(line(ax, "reliability"), (kept.predicted, kept.observed))
    bands = np.array([segment[:, 1] for segment in ax.collections[0].get_segments()])
    assert_allclose(bands, np.column_stack([kept.low, kept.high]))


def test_cross_entropy_at_even_odds_is_the_cllr():
    ax, curve = plots.empirical_cross_entropy(LLR, IS_H1), evaluate.empirical_cross_entropy(LLR, IS_H1)
    x, y = line(ax, "actual")
    assert_allclose(y, curve.actual)
    assert_allclose(np.interp(0, x, y), evaluate.cllr(LLR, IS_H1))
    assert_allclose(line(ax, "calibrated")[1], curve.calibrated)


@pytest.mark.parametrize("draw", JUDGING, ids=lambda draw: draw.__name__)
@pytest.mark.parametrize("llr", AWKWARD.values(), ids=AWKWARD)
def test_awkward_scores_are_drawn_without_a_warning(draw, llr):
    draw(llr, IS_H1).figure.canvas.draw()


@pytest.mark.parametrize("draw", JUDGING, ids=lambda draw: draw.__name__)
def test_an_evaluation_names_its_classes(draw):
    table = np.column_stack([np.zeros(150), LLR])
    ax = draw(Evaluation(table, IS_H1.astype(int), ["ham", "spam"]))
    said = ax.get_xlabel() + ax.get_ylabel()
    assert "spam" in said or "probability" in said
    assert "h1" not in said


@pytest.mark.parametrize("draw", JUDGING, ids=lambda draw: draw.__name__)
def test_one_class_of_three_stands_against_the_rest(draw):
    told = Evaluation(RNG.normal(size=(90, 3)) + 2 * np.eye(3)[np.arange(90) % 3], np.arange(90) % 3, ["a", "b", "c"])
    assert draw(told, over="b").get_xlabel()
    with pytest.raises(NotAvailableError, match="two classes"):
        draw(told)


@pytest.mark.parametrize("draw", JUDGING[:4] + JUDGING[5:], ids=lambda draw: draw.__name__)
def test_two_models_share_the_axes_they_are_given(draw):
    ax = draw(LLR, IS_H1, label="one")
    assert draw(2 * LLR, IS_H1, label="two", ax=ax) is ax
    told = [text.get_text() for text in ax.get_legend().get_texts()]
    assert any("one" in text for text in told)
    assert any("two" in text for text in told)
    assert len(told) == len(set(told))
    ax.figure.canvas.draw()


@pytest.mark.parametrize("draw", JUDGING, ids=lambda draw: draw.__name__)
def test_bad_scores_are_refused(draw):
    with pytest.raises(InputError, match="is_h1"):
        draw(LLR)
    with pytest.raises(InputError, match="h0"):
        draw(LLR, np.ones(150, dtype=bool))
    with pytest.raises(InputError, match="Leave is_h1 out"):
        draw(Evaluation(np.zeros((2, 2)), [0, 1], ["a", "b"]), [0, 1])
