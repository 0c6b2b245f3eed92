"""The evaluation: every figure equals the function of the same name; the lines of the summary."""

import json
import math
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import confusion_matrix

from deciban import evaluate
from deciban.errors import CostError, ImpossibleRowWarning, InputError, NotAvailableError, PriorError
from deciban.evaluate import Evaluation
from deciban.evidence.scores import llr
from evaluate.twins import some_likelihoods


def two_classes(spread=1.0, **options):
    table, codes, log_prior = some_likelihoods(400, K=2, spread=spread)
    return Evaluation(table, codes, ["f", "m"], np.exp(log_prior), **options)


def five_classes(spread=1.0, **options):
    table, codes, log_prior = some_likelihoods(500, K=5, spread=spread)
    return Evaluation(table, codes, list("abcde"), np.exp(log_prior), **options)


@pytest.mark.parametrize("make", [two_classes, five_classes])
def test_figures_are_those_of_the_functions(make):
    told = make()
    table, codes, log_prior = told.log_likelihood, told.codes, np.log(told.prior)
    assert_allclose(told.log_loss, evaluate.log_loss(table, codes, log_prior))
    assert_allclose(told.brier, evaluate.brier(table, codes, log_prior))
    error = evaluate.expected_calibration_error(table, codes, log_prior)
    assert_allclose(told.expected_calibration_error, error)
    assert_allclose(told.cllr, evaluate.multiclass_cllr(table, codes))
    decided = (table + log_prior).argmax(axis=1)
    assert told.error_rate == told.mean_cost == np.mean(decided != codes)
    assert_array_equal(told.confusion, confusion_matrix(codes, decided))
    for at, label in enumerate(told.classes):
        pair = llr(table, at, log_prior=log_prior), codes == at
        assert told.per_class[label] == (
            (codes == at).sum(),
            evaluate.cllr(*pair),
            evaluate.min_cllr(*pair),
            evaluate.eer(*pair),
        )
    assert 0 <= told.min_cllr <= told.cllr
    assert_allclose(told.calibration_loss, told.cllr - told.min_cllr)


def test_two_classes_have_everything_else_too():
    told = two_classes(cost=[[0, 5], [1, 0]])
    pair = told.log_likelihood[:, 1] - told.log_likelihood[:, 0], told.codes == 1
    assert_array_equal(told.scores()[0], pair[0])
    assert_allclose(told.cllr, evaluate.cllr(*pair))
    assert told.min_cllr == evaluate.min_cllr(*pair)
    assert told.eer == evaluate.eer(*pair)
    assert told.dcf == evaluate.dcf(*pair, told.prior[1], c_miss=1, c_fa=5)
    assert told.min_dcf == evaluate.min_dcf(*pair, told.prior[1], c_miss=1, c_fa=5)
    assert_allclose(told.mean_cost, np.mean(np.array([[0, 5], [1, 0]])[told.codes, told.decided]))
    assert evaluate.roc(*told.scores("f")).area == pytest.approx(evaluate.roc(*told.scores()).area)
    between = told.interval(evaluate.cllr, repeats=50)
    assert between.low < told.cllr < between.high


def test_a_prior_may_be_given_row_by_row_by_name_or_not_at_all():
    told = two_classes()
    by_row = Evaluation(told.log_likelihood, told.codes, told.classes, np.tile(told.prior, (400, 1)))
    by_name = Evaluation(told.log_likelihood, told.codes, told.classes, {"f": told.prior[0]})
    for other in (by_row, by_name):
        assert_allclose(other.log_loss, told.log_loss)
        assert_allclose(other.dcf, told.dcf)
    assert_allclose(Evaluation(told.log_likelihood, told.codes, told.classes).prior, 0.5)


def test_figures_are_computed_once_and_only_when_asked_for():
    told = two_classes()
    assert "log_posterior" not in vars(told)
    assert told.log_posterior is told.log_posterior
    with pytest.raises(AttributeError):
        told.learnt = True


def test_the_text_is_a_dozen_lines_that_say_what_they_mean():
    right, swollen = two_classes(), two_classes(spread=20)
    assert "worse than no evidence" not in str(right)
    assert "worse than no evidence (1.000)" in str(swollen)
    assert '"f" rows were predicted "m"' in str(right)
    for told in (right, five_classes(), five_classes(cost=1 - np.eye(5) + np.eye(5, k=1))):
        assert 7 <= len(str(told).splitlines()) <= 14
        assert all(len(line) <= 120 for line in str(told).splitlines())
        assert "\n" not in repr(told)
    assert "a row, at the given costs" in str(two_classes(cost=[[0, 5], [1, 0]]))
    assert "as if it had not been learnt" in str(two_classes(learnt=True))


def test_a_figure_that_was_selected_on_says_so():
    lines = str(two_classes(selected_on=["log_loss"])).splitlines()
    assert [line.split()[0] for line in lines if line.endswith("; chosen by it")] == ["log"]
    assert lines[-1] == "chosen on these rows: log_loss"
    assert two_classes(selected_on=["log_loss"]).to_dict()["selected_on"] == ["log_loss"]


@pytest.mark.parametrize("make", [two_classes, five_classes])
def test_to_dict_is_plain(make):
    told = json.loads(json.dumps(make().to_dict()))
    assert told["rows"] == len(make())
    assert {"error_rate", "log_loss", "cllr", "min_cllr", "per_class", "confusion"} <= set(told)
    assert ("eer" in told) == (make is two_classes)


def test_rows_of_one_class_have_errors_but_no_cllr():
    told = Evaluation([[0.0, 1.0], [1.0, 0.0]], [0, 0], ["f", "m"])
    assert told.error_rate == 0.5
    assert told.to_dict()["cllr"] is None
    assert told.per_class["m"] == (0, None, None, None)
    assert "needs rows of every class" in str(told)
    with pytest.raises(InputError, match="no row is of"):
        _ = told.eer


def test_one_class_alone_is_judged_without_complaint():
    told = Evaluation([[0.0], [1.0]], [0, 0], ["only"])
    assert (told.error_rate, told.log_loss) == (0, 0)
    assert str(told).startswith('2 rows, 1 class: "only" (2 rows)\n')


def test_impossible_rows_and_certain_mistakes_are_counted_and_warned_of_once():
    table = np.array([[0.0, -1, -2], [-math.inf] * 3, [-math.inf, 0, 0], [0, 0, 1], [2, 3, 1]])
    told = Evaluation(table, [0, 1, 0, 2, 1], ["a", "b", "c"])
    with pytest.warns(ImpossibleRowWarning) as caught:
        text = str(told)
    assert len(caught) == 1
    assert "1 row with probability zero under every class" in text
    assert "∞     worse than no evidence (1.000); a true class has likelihood zero" in text
    assert told.log_loss == told.cllr == told.min_cllr == told.calibration_loss == math.inf
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        two = Evaluation(table[[0, 2, 3], :2], [0, 0, 1], ["a", "b"])
        assert two.cllr == two.calibration_loss == math.inf
        assert two.min_cllr <= 1
        assert "nan" not in str(two).lower()


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"classes": ["f"]}, InputError, "1 classes for 2 columns"),
        ({"codes": [0, 3]}, InputError, "code 3"),
        ({"prior": [0.5, 0.6]}, PriorError, "sums to 1.1"),
        ({"prior": [[0.5, 0.6], [0.5, 0.5]]}, PriorError, "sum to 1"),
        ({"prior": {"x": 0.5}}, PriorError, "names class 'x'"),
        ({"cost": {("f", "m"): -1}}, CostError, "-1"),
    ],
)
def test_bad_evaluations_are_refused(options, error, words):
    good = {"log_likelihood": [[0.0, 1.0], [1.0, 0.0]], "codes": [0, 1], "classes": ["f", "m"]}
    with pytest.raises(error, match=words):
        Evaluation(**{**good, **options})


def test_one_llr_needs_two_classes_or_a_name():
    with pytest.raises(NotAvailableError, match="there are 5"):
        _ = five_classes().eer
    with pytest.raises(InputError, match="class 'z' is unknown"):
        five_classes().scores("z")
