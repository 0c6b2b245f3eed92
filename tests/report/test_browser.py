"""The report in a real browser: sliders, nomogram and search give the library's numbers."""

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from deciban import GenerativeClassifier
from deciban.evaluate import dcf, min_dcf
from deciban.report.material import column_scales
from report.tables import mixed_model, mixed_table, table_with_pairs
from topics.browser import NO_AXE, Browser, missing

pytestmark = [pytest.mark.slow, pytest.mark.skipif(missing() is not None, reason=missing() or "")]
RIGHT = "\ue014"  # arrow key, as WebDriver spells it
SET = """
const [id, value] = arguments, control = document.getElementById(id);
control.value = value;
control.dispatchEvent(new Event("input", {bubbles: true}));
control.dispatchEvent(new Event("change", {bubbles: true}));
return control.value;
"""


def strike(browser, selector, key):
    """Focus an element and strike a key."""
    browser.run("document.querySelector(arguments[0]).focus()", selector)
    keys = [{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]
    browser._call("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": keys}]})


@pytest.fixture(scope="module")
def browser():
    with Browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    table = mixed_table()
    clf = mixed_model(table)
    path = tmp_path_factory.mktemp("browser") / "report.html"
    clf.report(path, table, "state")
    return clf, table, path


def test_the_sliders_give_threshold_errors_and_costs_of_the_library(browser, mixed):
    clf, table, path = mixed
    llr, is_h1 = clf.evaluate(table, "state", learnt=True).scores()
    browser.open(path)
    for prior, ratio in ((0.5, 1.0), (0.1, 1.0), (0.02, 8.0), (0.9, 0.2)):
        browser.run(SET, "prior", 10 * math.log10(prior / (1 - prior)))
        browser.run(SET, "cost", 10 * math.log10(ratio))
        found = browser.run("return window.report.decision")
        alone = min(prior * ratio, 1 - prior)
        threshold = math.log((1 - prior) / prior / ratio)
        assert found["threshold"] == pytest.approx(threshold * 10 / math.log(10), abs=1e-6)
        assert found["miss"] == pytest.approx((llr[is_h1] < threshold).mean())
        assert found["alarm"] == pytest.approx((llr[~is_h1] >= threshold).mean())
        assert found["cost"] == pytest.approx(dcf(llr, is_h1, prior, ratio, 1.0) * alone)
        assert found["best"] == pytest.approx(min_dcf(llr, is_h1, prior, ratio, 1.0) * alone)
        assert f"{100 * found['miss']:.1f} %" in browser.text("#d-missed")


def test_the_sliders_start_with_the_prior_of_the_model(browser, mixed):
    clf, _, path = mixed
    browser.open(path)
    assert f"{100 * np.exp(clf.log_prior())[1]:.1f} %" in browser.text("#prior-text")
    before = browser.text("#prior-text")
    strike(browser, "#prior", RIGHT)
    moved = browser.text("#prior-text")
    assert moved != before
    browser.click("#reset")
    assert browser.text("#prior-text") == before


def test_the_nomogram_gives_the_llr_and_the_probability(browser, mixed):
    clf, table, path = mixed
    browser.open(path)
    chosen = {}
    columns = browser.run("return [...document.querySelectorAll('.scale')].map(one => one.innerText.split('\\n')[0])")
    for number in range(len(columns)):
        last = browser.run(f"return document.getElementById('scale-{number}').max || 2")
        browser.run(SET, f"scale-{number}", min(int(last), 3 + 2 * number))
        chosen[columns[number]] = None
    found = browser.run("return window.report.nomogram")
    scales = {one.name: one for one in column_scales(clf.predictor_, 49).columns}
    for number, name in enumerate(columns):
        at = int(browser.run(f"return document.getElementById('scale-{number}').value"))
        chosen[name] = scales[name].values[at]
    row = pd.DataFrame([{name: chosen.get(name) for name in table.columns.drop("state")}]).astype({"note": object})
    assert found["sum"] == pytest.approx(clf.llr(row, unit="decibans")[0], abs=2e-3)
    log_prior = np.diff(clf.log_prior())[0] * 10 / np.log(10)
    assert found["prior"] == pytest.approx(log_prior, abs=0.01)
    shown = browser.text("#nomogram-probability")
    assert float(shown.split()[0]) == pytest.approx(100 * clf.predict_proba(row)[0, 1], abs=0.1)


def test_keys_move_a_scale_and_missing_has_no_evidence(browser, mixed):
    _, _, path = mixed
    browser.open(path)
    before = browser.run("return document.querySelector('.scale input').value")
    strike(browser, ".scale input", RIGHT)
    assert int(browser.run("return document.querySelector('.scale input').value")) == int(before) + 1
    for number in range(browser.run("return document.querySelectorAll('.scale').length")):
        browser.run(SET, f"scale-{number}", -1)
    assert browser.run("return window.report.nomogram.sum") == 0


def test_words_are_found(browser, mixed):
    _, _, path = mixed
    browser.open(path)
    browser.press("#word-search", "ZET")
    assert browser.run("return [...document.querySelectorAll('#word-rows th')].map(one => one.innerText)") == ["zeta"]


def test_three_classes_are_chosen_against_the_rest(browser, tmp_path):
    X, y = load_iris(return_X_y=True)
    clf = GenerativeClassifier().fit(X, np.array(["setosa", "versicolor", "virginica"])[y])
    path = tmp_path / "iris.html"
    labels = np.array(["setosa", "versicolor", "virginica"])[y]
    clf.report(path, X, labels, learnt=True)
    judged = clf.evaluate(X, labels, learnt=True)
    browser.open(path)
    names = browser.run("return [...document.querySelectorAll('#class option')].map(one => one.innerText)")
    assert set(names) == {"setosa", "versicolor", "virginica"}
    browser.run(SET, "class", names.index("virginica"))
    browser.run(SET, "prior", 0)
    llr, is_h1 = judged.scores("virginica")
    found = browser.run("return window.report.decision")
    assert found["miss"] == pytest.approx((llr[is_h1] < 0).mean())
    assert found["alarm"] == pytest.approx((llr[~is_h1] >= 0).mean())


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "light"), (1280, "dark"), (390, "dark")])
def test_it_fits_the_window_and_axe_finds_nothing_serious(browser, mixed, width, scheme):
    _, _, path = mixed
    browser.resize(width)
    browser.colours(scheme)
    browser.open(path)
    assert browser.run("return document.documentElement.scrollWidth") <= width
    if not NO_AXE:
        assert browser.serious_violations() == []


@pytest.mark.parametrize("options", [{"interactions": 6}, {}], ids=["pairs", "default"])
def test_the_nomogram_adds_evidence_of_several_columns(browser, tmp_path, options):
    table = table_with_pairs()
    clf = GenerativeClassifier(**options).fit(table, "class")
    clf.report(tmp_path / "pairs.html", table, "class", learnt=False)
    browser.open(tmp_path / "pairs.html")
    columns = browser.run("return [...document.querySelectorAll('.scale')].map(one => one.innerText.split('\\n')[0])")
    found = column_scales(clf.predictor_, 49)
    assert options or any("function of" in term.label for term in found.terms)
    scales = {one.name: one for one in found.columns}
    rng = np.random.default_rng(0)
    for _ in range(6):
        row = {}
        for number, name in enumerate(columns):
            at = int(rng.integers(-1, len(scales[name].values)))
            browser.run(SET, f"scale-{number}", at)
            row[name] = None if at < 0 else scales[name].values[at]
        found = browser.run("return window.report.nomogram")
        given = pd.DataFrame([row])[[*table.columns.drop("class")]].astype({"size": float})
        assert found["sum"] == pytest.approx(clf.llr(given, unit="decibans")[0], abs=2e-3)
    assert "dban" in browser.text("#nomogram-pairs" if options else "#nomogram-term-0")
    browser.wait("return document.querySelector('.scale polyline').getAttribute('points').includes(',10.00')")
    assert [line for line in browser.log() if line["level"] == "SEVERE"] == []
