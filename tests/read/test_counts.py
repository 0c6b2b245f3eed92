"""Columns of whole numbers: counts begin at zero."""

import pandas as pd
import pytest

from deciban import GenerativeClassifier

LABELS = ["a", "b"] * 20


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([0, 1, 2, 5, 0, 3, 1, 7] * 5, "count"),
        ([1, 2, 2, 5, 9, 3, 1, 7] * 5, "count"),
        ([-1, 2, 2, 5, 9, 3, 1, 7] * 5, "number"),
        ([0, 1, 1, 0, 0, 1, 0, 1] * 5, "yes/no"),
        ([0, 1.5, 2, 5, 0, 3, 1, 7] * 5, "number"),
    ],
)
def test_whole_numbers_from_zero_are_counts(values, kind):
    clf = GenerativeClassifier().fit(pd.DataFrame({"x": values}), LABELS)
    assert clf.schema_["x"].kind == kind


@pytest.mark.parametrize("gap", ["", "?", "NA", None])
def test_an_empty_cell_of_names_is_missing(gap, tmp_path):
    frame = pd.DataFrame({"colour": ["red", "blue", gap, "blue", "red"] * 8, "label": ["a", "b", "a", "a", "b"] * 8})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    without = GenerativeClassifier(calibrate=None).fit(frame[frame["colour"] != gap].dropna(), "label")
    rows = pd.DataFrame({"colour": [gap, "red", "blue"]})
    for source in (frame, tmp_path / "rows.csv"):
        clf = GenerativeClassifier(calibrate=None).fit(source, "label")
        found = clf.llr(rows, "a", "b")
        assert found[0] == 0.0
        assert found[1:].tolist() == without.llr(rows[1:], "a", "b").tolist()
        assert clf.stats_.rows.sum() == 40  # the label counts all the same
