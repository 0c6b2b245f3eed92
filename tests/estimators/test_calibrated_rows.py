"""Which rows calibrate a classifier, and what calibration does to rows without evidence."""

import numpy as np
import pandas as pd
import pytest

from deciban import Gaussian, GenerativeClassifier, Multinomial, Text

rng = np.random.default_rng(0)


def test_the_same_rows_calibrate_from_a_file_and_from_memory(tmp_path):
    """Above 20,000 rows a sample calibrates, chosen by position alone; a file is read in several batches."""
    n = 70_000
    codes = rng.integers(0, 2, n)
    x, y = (rng.normal(size=n) + 0.7 * codes).round(3), np.array(["a", "b"])[codes]
    pd.DataFrame({"x": x, "y": y}).to_csv(tmp_path / "rows.csv", index=False)
    memory = GenerativeClassifier(Gaussian("diagonal"), calibrate="affine").fit(x[:, None], y)
    file = GenerativeClassifier({"x": Gaussian("diagonal")}, calibrate="affine").fit(tmp_path / "rows.csv", "y")
    rows = np.linspace(-4, 4, 9)[:, None]
    np.testing.assert_array_equal(memory.llr(rows), file.llr(pd.DataFrame(rows, columns=["x"])))


@pytest.mark.parametrize("calibrate", ["offsets", "blocks"])
def test_a_row_without_any_value_has_no_evidence(calibrate):
    X = rng.normal(size=(60, 1)) + np.array([0.0, 2.0])[np.arange(60) % 2, None] + [0.0, 0.5]  # one number, twice
    clf = GenerativeClassifier({0: Gaussian("diagonal"), 1: Gaussian("diagonal")}, calibrate=calibrate)
    clf.fit(X, ["a", "b"] * 30)
    assert np.abs(clf.calibration_.offsets(clf.classes_)).max() > 1e-3  # which would show
    assert clf.llr([[np.nan, np.nan]]).tolist() == [0.0]
    assert clf.llr([[np.nan, 1.0]]).tolist() != [0.0]


def test_a_document_without_a_known_word_has_no_evidence():
    words = np.array(["red", "green", "blue", "grey"])
    kinds = [(0.4, 0.3, 0.2, 0.1), (0.2, 0.2, 0.3, 0.3)] * 40
    texts = [" ".join(np.repeat(rng.choice(words, 4, p=p), 5)) for p in kinds]  # every word five times
    clf = GenerativeClassifier(Text("multinomial", "counts", 1.0)).fit(texts, ["a", "b"] * 40)
    assert np.abs(clf.calibration_.offsets(clf.classes_)).max() > 1e-3
    assert clf.llr(["", "mauve"]).tolist() == [0.0, 0.0]


def test_equal_rows_of_two_ages_are_taken_back_in_one_batch():
    X = rng.poisson(3.0, (6, 2))
    y = ["a", "b"] * 3
    clf = GenerativeClassifier(Multinomial(), ledger=True).fit(X, y).decay(0.5).learn(X, y).decay(0.5)
    again = GenerativeClassifier(Multinomial(), ledger=True).fit(X, y).decay(0.25)
    half = clf.reestimate()
    half.unlearn(X, y)  # of equal rows, the one that has decayed least goes first
    assert half.stats_.same(again.stats_)
    clf.unlearn(np.r_[X, X], y + y)
    assert clf.stats_.rows.sum() == 0
    assert len(clf.ledger_) == 0


def test_labels_are_foretold_before_they_are_learnt():
    words = np.array(["red", "green", "blue", "grey"])
    texts = [" ".join(rng.choice(words, 12, p=p)) for p in [(0.4, 0.3, 0.2, 0.1), (0.2, 0.2, 0.3, 0.3)] * 40]
    labels = np.array(["a", "b"] * 40)
    clf = GenerativeClassifier(Text("multinomial", "counts", 1.0)).fit(texts[:60], labels[:60])
    known = clf.predict_log_proba(texts[60:])[np.arange(20), (labels[60:] == "b").astype(int)]
    clf.learn(texts[60:], labels[60:])
    np.testing.assert_allclose(clf.prequential_.log_loss, -known.mean())
    assert clf.prequential_.rows == 20
