"""The benchmark of calibration judges as it says it does, on simulated data."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from deciban import GenerativeClassifier, Multinomial
from deciban.evaluate import cllr

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def trust():
    sys.path.append(str(FOLDER))
    spec = importlib.util.spec_from_file_location("benchmark_of_trust", FOLDER / "trust.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    sys.path.remove(str(FOLDER))


def bursty(n, K, seed=0):
    """Counts in which a word that occurs comes three times: naive Bayes takes it for news each time."""
    rng = np.random.default_rng(seed)
    words = rng.dirichlet(np.full(60, 0.5), K) + 0.004
    y = rng.integers(0, K, n)
    lengths = rng.integers(2, 20, n)
    return 3 * np.array([rng.multinomial(m, words[k] / words[k].sum()) for m, k in zip(lengths, y)]), y


def task(trust, X, y, folds):
    return trust.Task("simulated", y, folds, lambda train: (X, X), Multinomial())


def test_leave_one_out_calibration_is_kept_and_halves_the_cost_of_overconfidence(trust):
    X, y = bursty(3000, 2)
    rows = np.arange(3000)
    (figures,) = trust.judge(task(trust, X, y, [[(rows[:1500], rows[1500:])]]))
    assert figures.kept
    assert figures.cllr["best"] <= min(figures.cllr["ours"], figures.cllr["others"])
    assert_allclose(figures.cllr["raw"], figures.cllr["plain"], rtol=1e-9)  # the same model as scikit-learn's
    clf = GenerativeClassifier(Multinomial(), calibrate="length").fit(X[:1500], y[:1500])
    assert_allclose(figures.cllr["ours"], cllr(clf.llr(X[1500:]), y[1500:] == 1))


def test_more_classes_are_judged_one_against_the_rest_and_rounds_are_averaged(trust):
    X, y = bursty(900, 3)
    order = np.arange(900)
    split = [(order[:600], order[600:])], [(order[300:], order[:300])]
    lines = list(trust.judge(task(trust, X, y, list(split))))
    assert [one.name for one in lines] == ["simulated: 0", "simulated: 1", "simulated: 2", "simulated: mean"]
    assert_allclose(lines[3].cllr["ours"], np.mean([one.cllr["ours"] for one in lines[:3]]))
    first, second = (list(trust.judge(task(trust, X, y, [one]))) for one in split)
    assert_allclose(lines[1].cllr["ours"], np.mean([first[1].cllr["ours"], second[1].cllr["ours"]]))
    assert list(lines[1].alone) == [first[1].kept, second[1].kept]


def test_a_bound_that_is_missed_says_so(trust):
    figures = {"raw": 0.5, "ours": 0.4, "best": 0.3, "others": 0.35, "plain": 0.5, "peer": 0.4}
    assert trust.Figures("x", "1", figures).cells()[6:9] == ["NO", "", "NO"]
    assert trust.Figures("x", "1", figures | {"raw": 0.2, "ours": 0.309}).cells()[6:9] == ["yes", "", ""]


def test_without_data_it_says_what_is_missing(trust, monkeypatch):
    monkeypatch.delenv("DECIBAN_DATA", raising=False)
    assert "DECIBAN_DATA" in next(trust.trust(1.0))
