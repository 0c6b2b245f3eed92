"""The report: one self-contained page of bounded size, whose numbers are the library's."""

import base64
import json
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from scipy.special import gammaln
from sklearn.datasets import load_iris

from deciban import Binned, Gaussian, GenerativeClassifier, Text
from deciban.errors import SaveError
from deciban.families.product import blocks_of
from deciban.model.nomogram import CosineTerm, PolynomialTerm
from deciban.read.tables import Table
from deciban.report.columns import bin_probabilities, bin_steps, packed_terms, room_for, uneven
from deciban.report.figures import tally
from deciban.report.material import column_scales, drift
from deciban.report.page import report_page
from report.tables import NASTY, mixed_model, mixed_table, table_with_pairs


@pytest.fixture(scope="module")
def mixed():
    table = mixed_table()
    return mixed_model(table), table


@pytest.fixture(scope="module")
def page(mixed, tmp_path_factory):
    clf, table = mixed
    path = tmp_path_factory.mktemp("report") / "report.html"
    clf.report(path, table, "state", other=(table[:60], "state"), title="A </title><script>alert(1)</script> report")
    return path.read_text()


def data_of(page):
    return json.loads(
        re.search(r'<script id="report-data" type="application/json">(.*?)</script>', page, re.S).group(1)
    )


class Elements(HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.tags, self.ids, self.attributes = [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        self.ids += [value for name, value in attrs if name == "id"]


def test_it_loads_nothing_and_runs_only_its_own_script(page):
    found = Elements(page)
    assert found.tags.count("script") == 2  # the data, and the program
    assert found.tags.count("style") == 1
    assert not {"link", "img", "iframe", "object", "embed", "base"} & set(found.tags)
    assert not [one for one in found.attributes if one[1].startswith("on") or one[1] in ("src", "style", "action")]
    assert all(value.startswith("#") for _, name, value in found.attributes if name == "href")
    assert "@import" not in page
    assert "url(" not in page
    assert "default-src 'none'" in page


def test_its_ids_are_unique_and_its_references_exist(page):
    found = Elements(page)
    assert len(found.ids) == len(set(found.ids))
    wanted = [v for _, name, value in found.attributes if name in ("for", "aria-labelledby") for v in value.split()]
    wanted += [value[1:] for _, name, value in found.attributes if name == "href"]
    assert set(wanted) <= set(found.ids)


def test_names_from_the_data_are_text(page):
    assert NASTY in mixed_table().columns
    assert "<img" not in page
    assert "<script>alert" not in page
    assert "&lt;img src=x" in page


def test_figures_are_those_of_the_evaluation(mixed, page):
    clf, table = mixed
    judged = clf.evaluate(table, "state", learnt=True)  # found in the ledger
    assert f"<dt>Error</dt><dd>{100 * judged.error_rate:.1f} %" in page
    assert f"<dt>Log loss</dt><dd>{judged.log_loss:.3f}" in page
    assert f"<dt>Cllr</dt><dd>{judged.cllr:.3f}" in page
    assert f"<dt>EER</dt><dd>{100 * judged.eer:.1f} %" in page


def test_rows_outside_the_ledger_are_taken_as_new(mixed):
    clf, _ = mixed
    new = mixed_table(seed=1)
    page = report_page(clf, clf._rows(new, "state", None).batches()).decode()
    judged = clf.evaluate(new, "state")
    assert "The rows are taken as new" in page
    assert f"<dt>Log loss</dt><dd>{judged.log_loss:.3f}" in page


def test_the_llrs_of_the_sliders_are_those_of_the_evaluation(mixed, page):
    clf, table = mixed
    judged = clf.evaluate(table, "state", learnt=True)
    ratio, is_h1 = judged.scores()
    [held] = data_of(page)["decide"]
    evidence, ones, zeros = (np.array(column) for column in zip(*held["scores"]))
    assert ones.sum() == is_h1.sum()
    assert zeros.sum() == (~is_h1).sum()
    np.testing.assert_allclose(np.repeat(evidence, ones), np.sort(ratio[is_h1]) * 10 / np.log(10), atol=1e-5)


def test_many_llrs_are_joined_within_one_part_of_the_rows():
    rng = np.random.default_rng(0)
    is_h1 = rng.random(50_000) < 0.3
    ratio = rng.normal(size=50_000) + 2 * is_h1
    held = np.array(tally(ratio, is_h1, 500))
    assert len(held) <= 501
    assert held[:, 1:].sum() == 50_000
    for threshold in (-1.0, 0.0, 1.5):
        missed = held[held[:, 0] < threshold * 10 / np.log(10), 1].sum() / is_h1.sum()
        assert missed == pytest.approx((ratio[is_h1] < threshold).mean(), abs=50_000 / 500 / is_h1.sum())


@pytest.mark.parametrize("family", ["auto", Gaussian("tied"), Gaussian("diagonal")], ids=str)
def test_scales_add_up_to_the_llr(family):
    X, y = load_iris(return_X_y=True)
    if family == "auto":
        table = mixed_table().drop(columns="note")
        clf = mixed_model(table)
    else:
        clf = GenerativeClassifier(family).fit(X, y)
    scales = column_scales(clf.predictor_, 21)
    assert scales.reason == ""
    for place in (0, 1):
        at = [min(place, len(one.values) - 1) for one in scales.columns]
        sums = sum(one.decibans[i] for one, i in zip(scales.columns, at)) + scales.base + scales.offsets
        row = [one.values[i] for one, i in zip(scales.columns, at)]
        rows = pd.DataFrame([row], columns=[one.name for one in scales.columns]) if family == "auto" else [row]
        expected = clf.llr(rows, clf.classes_[1], clf.classes_[0], unit="decibans")[0]
        assert sums[1] - sums[0] == pytest.approx(expected, abs=1e-9)


def test_curves_are_the_marginal_densities():
    X, y = load_iris(return_X_y=True)
    clf = GenerativeClassifier(Gaussian("full")).fit(X, y)
    scales = column_scales(clf.predictor_, 21)
    assert [len(one.decibans) for one in scales.columns] == [21] * 4
    alone = clf.reestimate(columns=[2])
    values = np.array(scales.columns[2].values)[:, None]
    np.testing.assert_allclose(scales.columns[2].log_density, alone.log_likelihood(values), rtol=1e-9)


def test_curves_of_mapped_columns_are_densities_of_the_column(mixed):
    clf, _ = mixed
    [income] = [one for one in column_scales(clf.predictor_, 49).columns if one.name == "income"]
    x = np.array(income.values)
    alone = clf.reestimate(columns=["income"]).predictor_
    rows = alone.model.encode(Table.of(pd.DataFrame({"income": x})))
    np.testing.assert_allclose(income.log_density, alone.log_likelihood(rows, raw=True), rtol=1e-9)


@pytest.fixture(scope="module")
def together():
    """Frames whose default fits have evidence of several columns together, and their models."""
    rng = np.random.default_rng(0)
    frame = load_iris(as_frame=True).frame
    several = table_with_pairs(300).assign(weight=rng.normal(size=300))
    return [
        (GenerativeClassifier().fit(table, label), table.columns.drop(label))
        for table, label in ((frame, "target"), (several, "class"))
    ]


@pytest.mark.parametrize("which", [0, 1])
def test_evidence_of_columns_pairs_and_terms_is_the_llr_of_default_fits(together, which):
    clf, columns = together[which]
    scales = column_scales(clf.predictor_, 15)
    assert scales.reason == ""
    assert any(isinstance(term, CosineTerm) for term in scales.terms)
    assert which or any(isinstance(term, PolynomialTerm) for term in scales.terms)
    rng, n = np.random.default_rng(0), 20
    places = np.full((n, len(columns)), -1)
    sums, rows = np.tile(scales.base + scales.offsets, (n, 1)), {}
    for one in scales.columns:
        at = rng.integers(0 if one.missing is None else -1, len(one.values), n)
        places[:, one.position] = at
        sums += np.where(at[:, None] < 0, 0.0 if one.missing is None else one.missing, one.decibans[at])
        rows[one.name] = [None if i < 0 else one.values[i] for i in at]
    unit = 10 / np.log(10)
    sums += unit * sum(term.evidence(places) for term in scales.terms)
    if scales.pairs is not None:
        own = places[:, scales.pairs.columns]
        levels = np.take_along_axis(scales.pairs.levels, np.maximum(own, 0), axis=0)
        sums += unit * scales.pairs.evidence(np.where(own < 0, -1, levels))
    frame = pd.DataFrame({name: rows[name] for name in columns})
    frame = frame.astype({one.name: float for one in scales.columns if one.kind != "category"})
    expected = clf.llr(frame, clf.classes_[1], clf.classes_[0], unit="decibans")
    np.testing.assert_allclose(sums[:, 1] - sums[:, 0], expected, rtol=1e-9, atol=1e-9)


def test_columns_without_room_stay_typical(together):
    clf, _ = together[0]
    scales = column_scales(clf.predictor_, 15)
    shown, fixed = scales.columns[:2], scales.columns[2:]
    held = packed_terms(scales.terms, shown, fixed, 3)
    [of_block] = [one for one in held["terms"] if one["kind"] == "polynomial"]
    [term] = [one for one in scales.terms if isinstance(one, PolynomialTerm)]
    assert of_block["columns"] == [0, 1]
    places = np.array([[3, 5, *(one.middle for one in fixed)]])
    t = np.array([of_block["numbers"][0][3], of_block["numbers"][1][5]])
    A, b = (np.frombuffer(base64.b64decode(of_block[name])) for name in ("quadratic", "linear"))
    found = of_block["constant"] + b.reshape(3, 2) @ t + t @ A.reshape(3, 2, 2) @ t
    np.testing.assert_allclose(found, term.evidence(places)[0], rtol=1e-9)
    assert room_for(scales.columns, scales.terms, 3, 1.0) == 4
    assert room_for(scales.columns, scales.terms, 3, 0.01) == 3


def test_words_carry_their_evidence(mixed, page):
    clf, _ = mixed
    [held] = data_of(page)["words"]
    found = {word: numbers for word, _, *numbers in held["words"]}
    text = clf.reestimate(columns=["note"])
    once, twice = (text.llr(pd.DataFrame({"note": [note]}), unit="decibans")[0] for note in ("win", "win lose"))
    assert found["win"][1] == pytest.approx(once, abs=0.06)
    assert found["lose"][1] == pytest.approx(twice - once, abs=0.06)
    assert found["win"][1] < -5 < 5 < found["lose"][1]  # the second class is "well"


def test_drift_is_a_bayes_factor_of_sums(mixed):
    clf, _ = mixed
    same = dict(drift(clf, mixed_table(seed=2)[:150], "state").columns)
    moved = mixed_table(seed=2)[:150]
    other = dict(drift(clf, moved.assign(age=moved["age"] + 15), "state").columns)
    assert same["age"] < -10
    assert other["age"] > 50
    assert other["visits"] == same["visits"]
    alone, others = (one.reestimate(columns=["visits"]).model_ for one in (clf, clf.blank().learn(moved, "state")))
    [(family, own, new, both)] = blocks_of(
        alone.family, *(stats.family for stats in (alone.stats, others.stats, alone.stats + others.stats))
    )
    one, two, together = (family.log_evidence(stats).sum() for stats in (own, new, both))
    assert same["visits"] == pytest.approx((one + two - together) * 10 / np.log(10))


def test_words_that_became_more_frequent_are_named():
    rng = np.random.default_rng(0)
    words = np.array([f"word{i}" for i in range(60)])
    texts = [" ".join(rng.choice(words, 12)) for _ in range(400)]
    labels = np.array(["a", "b"])[np.arange(400) % 2]
    clf = GenerativeClassifier(Text()).fit(texts[:200], labels[:200])
    [same] = drift(clf, texts[200:], labels[200:]).words
    assert same.decibans.max() < 10
    assert same.decibans_of_all < 0
    moved = [text.replace("word7", "fresh").replace("word30", "word31") for text in texts[200:]]
    found = drift(clf, moved, labels[200:])
    assert found.columns[0][1] > 10
    [own] = found.words
    assert set(own.words[:3]) == {"fresh", "word7", "word30"}
    more = dict(zip(own.words, own.found > own.expected))
    assert [more[word] for word in ("fresh", "word31", "word7", "word30")] == [True, True, False, False]
    page = report_page(clf, other=(moved, labels[200:])).decode()
    assert re.search(r"More frequent.*fresh.*Less frequent.*word30", page, re.S)


def test_a_page_without_rows_has_columns_and_words_but_no_figures(mixed):
    clf, _ = mixed
    page = report_page(clf).decode()
    assert "No rows were given" in page
    assert set(data_of(page)) == {"nomogram", "words"}


def test_two_hundred_columns_and_ten_classes_fit_into_a_megabyte():
    rng = np.random.default_rng(0)
    y = np.arange(400) % 10
    X = rng.normal(size=(400, 200)) + (y[:, None] == np.arange(200) % 10)
    clf = GenerativeClassifier(Gaussian("diagonal"), classes=list(range(10))).fit(X, y)
    page = report_page(clf)
    assert 100_000 < len(page) <= 1_000_000
    assert len(data_of(page.decode())["nomogram"]["columns"]) > 50


def test_a_page_that_cannot_be_written_leaves_nothing(mixed, tmp_path):
    clf, _ = mixed
    with pytest.raises(SaveError):
        clf.report(tmp_path / "absent" / "report.html")
    assert list(tmp_path.iterdir()) == []


def test_families_chosen_automatically_make_a_page(tmp_path):
    table = mixed_table()
    clf = GenerativeClassifier(ledger=True).fit(table, "state")
    clf.report(tmp_path / "report.html", table, "state")
    page = (tmp_path / "report.html").read_text()
    assert page.count("<figure>") > 4
    assert ("nomogram" in data_of(page)) == (column_scales(clf.predictor_, 9).reason == "")


def histogram_model():
    rng = np.random.default_rng(0)
    kind = np.array(["low", "high"])[np.arange(400) % 2]
    fare = np.round(rng.lognormal(2 + (kind == "high"), 1.0), 2)
    fare[::4] = 8.05  # a value with its own bin
    table = pd.DataFrame({"fare": fare, "children": rng.poisson(1 + (kind == "high")), "kind": kind})
    return GenerativeClassifier({"fare": Binned(10), "children": Binned(5)}).fit(table, "kind"), table


def test_histograms_are_drawn_within_their_edges_as_steps_and_as_bars():
    clf, table = histogram_model()
    fare, children = sorted(column_scales(clf.predictor_, 49).columns, key=lambda one: one.name != "fare")
    assert fare.edges[0] == min(fare.values)
    assert max(fare.values) < fare.edges[-1]
    assert len(fare.edges) > 5
    # within a bin the density is constant, and the steps of the figure integrate to what is not in the tails
    along, curves = bin_steps(fare.edges, np.array(fare.values), np.exp(fare.log_density))
    width = np.diff(along)
    areas = (width[:, None] * (curves[1:] + curves[:-1]) / 2).sum(axis=0)
    assert (areas > 0.97).all()
    assert (areas < 1.0).all()
    # bins of fares differ much in width, so that the page shows the probability of each
    assert uneven(fare.edges)
    assert not uneven(np.linspace(0, 5, 11))
    shares = bin_probabilities(fare.edges, np.array(fare.values), np.exp(fare.log_density))
    assert shares.shape == (len(fare.edges) - 1, 2)
    np.testing.assert_allclose(shares.sum(axis=0), areas)
    own = table["fare"][table["kind"] == "low"]
    seen = np.histogram(own, fare.edges)[0] / len(own)
    np.testing.assert_allclose(shares[:, clf.classes_.tolist().index("low")], seen, atol=0.03)  # with a prior
    assert children.kind == "count"
    assert children.values == list(range(int(table["children"].max()) + 1))
    assert (np.exp(children.log_density).sum(axis=0) < 1.0).all()
    assert (np.exp(children.log_density).sum(axis=0) > 0.97).all()


def test_drift_of_histograms_is_the_bayes_factor_of_their_bins():
    clf, table = histogram_model()
    same = dict(drift(clf, table[:150], "kind").columns)
    moved = dict(drift(clf, table[:150].assign(fare=table["fare"] * 3), "kind").columns)
    assert same["fare"] < -10 < 50 < moved["fare"]
    assert moved["children"] == same["children"]
    # Dirichlet-multinomial evidence of the counts of one column, counted here
    edges = np.array(dict(zip(*_edges_by_column(clf)))["children"])
    bins = np.searchsorted(edges, table["children"], side="right")
    nats = 0.0
    for label in ("low", "high"):
        own = table["kind"].to_numpy() == label
        a = np.bincount(bins[own], minlength=len(edges) + 1)
        b = np.bincount(bins[:150][own[:150]], minlength=len(edges) + 1)
        nats += _bin_evidence(a) + _bin_evidence(b) - _bin_evidence(a + b)
    assert same["children"] == pytest.approx(nats * 10 / np.log(10))


def _edges_by_column(clf):
    model = clf.model_
    families = [(family, at) for (family,), at in zip(blocks_of(model.family), model.positions)]
    names = [model.reader.labels[j] for _, at in families for j in at]
    return names, [edges for family, _ in families for edges in family.edges]


def _bin_evidence(counts):
    """Log evidence with a pseudo-count of one a bin."""
    return gammaln(len(counts)) - gammaln(len(counts) + counts.sum()) + gammaln(1 + counts).sum()


def test_words_without_drift_are_not_listed():
    rng = np.random.default_rng(0)
    words = np.array([f"word{i}" for i in range(60)])
    texts = [" ".join(rng.choice(words, 12)) for _ in range(200)]
    labels = np.array(["a", "b"])[np.arange(200) % 2]
    page = report_page(GenerativeClassifier(Text()).fit(texts, labels), other=(texts[:100], labels[:100])).decode()
    assert "None of 60 words has 10 dban or more" in page
    assert "Less frequent" not in page


def test_the_heading_names_what_is_predicted():
    table = pd.DataFrame({"size": np.sqrt(np.arange(40.0)), "Survived": np.arange(40) % 2})
    page = report_page(GenerativeClassifier().fit(table, "Survived")).decode()
    assert "<h1>Survived: “0”, “1”</h1>" in page
