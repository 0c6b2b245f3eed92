"""Explanations: the parts sum to the answer; the printed text."""

import json
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from deciban.errors import InputError, NotAvailableError
from deciban.evidence.explanation import Explanation
from deciban.evidence.scores import convert

unhurried = settings(deadline=None)  # a busy machine is no failure
DECIBAN = np.log(10) / 10
FEATURES = ["mean concavity", "mean radius", "mean smoothness", "mean symmetry", "mean texture"]
MEASURED = [0.099, 15.85, 0.084, 0.185, 23.95]
EVIDENCE = np.array([-0.5, 6.3, -3.7, -0.3, 4.4]) * DECIBAN

evidence = arrays(float, st.tuples(st.integers(0, 4), st.integers(0, 6)), elements=st.floats(-10_000, 10_000))
with_infinite = arrays(
    float, st.tuples(st.integers(1, 3), st.integers(1, 30)), elements=st.sampled_from([-np.inf, np.inf, 0.0, 1.5, -1e4])
)


def explained(parts, **more):
    return Explanation([f"part {p}" for p in range(np.shape(parts)[1])], parts, "spam", "ham", **more)


def test_a_tumour_is_explained_as_on_the_first_screen():
    told = Explanation(
        FEATURES, [EVIDENCE], "malignant", "benign", values=[MEASURED], prior_part=[np.log(0.373 / 0.627)]
    )
    assert str(told).splitlines() == [
        "mean radius      15.85  +6.3 dban      ██████",
        "mean texture     23.95  +4.4           ████",
        "mean smoothness  0.084  −3.7       ████",
        "mean concavity   0.099  −0.5",
        "mean symmetry    0.185  −0.3",
        "evidence                +6.2 dban  4.2 to 1 for malignant",
        "prior                   −2.3       1.7 to 1 for benign",
        "posterior               +3.9       2.5 to 1 for malignant, P(malignant) = .713",
    ]


@unhurried
@given(evidence)
def test_the_parts_sum_to_the_total(parts):
    np.testing.assert_allclose(explained(parts).total, parts.sum(axis=1), atol=1e-9)


@unhurried
@given(evidence, st.randoms(use_true_random=False))
def test_the_total_does_not_depend_on_the_order_of_the_parts(parts, random):
    order = random.sample(range(parts.shape[1]), parts.shape[1])
    assert (explained(parts[:, order]).total == explained(parts).total).all()


@unhurried
@given(evidence)
def test_other_parts_belong_to_the_evidence_and_the_prior_does_not(parts):
    n = len(parts)
    told = explained(parts, other={"calibration": np.full(n, -1.0)}, prior_part=np.full(n, 0.5))
    np.testing.assert_allclose(told.total, parts.sum(axis=1) - 1, atol=1e-9)
    np.testing.assert_allclose(told.log_odds, parts.sum(axis=1) - 0.5, atol=1e-9)
    frame = told.to_frame()
    np.testing.assert_allclose(frame.groupby("row")["evidence"].sum(), told.log_odds, atol=1e-8)
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(told.posterior_odds, np.exp(told.log_odds))


@unhurried
@given(with_infinite)
def test_infinite_parts_print_and_never_give_nan(parts):
    told = explained(parts, prior_part=np.zeros(len(parts)))
    assert not np.isnan(told.total).any()
    assert not np.isnan(told.posterior_odds).any()
    assert "nan" not in str(told) + told._repr_html_()
    opposed = np.isposinf(parts).any(axis=1) & np.isneginf(parts).any(axis=1)
    assert (told.total[opposed] == 0).all()
    assert ("∞" in str(told)) == np.isinf(parts).any()


def test_infinite_evidence_is_certain():
    text = str(explained([[np.inf, 2.0]], prior_part=[0.0]))
    assert text.splitlines()[0].split() == ["part", "0", "+∞", "dban", "█" * 30]
    assert "certain for spam, P(spam) = 1" in text
    assert "certain for ham" in str(explained([[-np.inf]]))


def test_a_prior_of_zero_outweighs_any_evidence():
    told = explained([[np.inf], [3.0]], prior_part=[-np.inf, -np.inf])
    assert told.log_odds.tolist() == [-np.inf, -np.inf]
    assert told.posterior_odds.tolist() == [0.0, 0.0]


def test_without_a_prior_there_are_no_posterior_odds():
    told = explained([[1.0]])
    with pytest.raises(NotAvailableError, match="no prior"):
        _ = told.posterior_odds
    assert "posterior" not in str(told)


def test_the_weakest_parts_are_summed_in_one_line():
    told = explained(np.arange(123.0)[None, :] / 1000)
    lines = str(told).splitlines()
    assert len(lines) == 22
    assert lines[0].startswith("part 122")
    assert lines[20].split()[:4] == ["…", "and", "103", "more"]
    assert f"+{convert(sum(range(103)) / 1000, 'decibans'):.1f}" in lines[20]
    assert told.text(most=200).count("\n") == 123


def test_rows_are_headed_by_their_names_and_long_lists_are_cut():
    told = explained(np.ones((25, 1)), rows=[f"mail {i}" for i in range(25)])
    assert str(told).startswith("row mail 0\npart 0")
    assert str(told).endswith("\n\n… and 5 more rows")
    assert "row" not in str(told[3])
    assert told[3:5].rows.tolist() == ["mail 3", "mail 4"]
    assert str(told[:0]) == ""


def test_long_bars_are_scaled_to_fit():
    lines = str(explained([[1000 * DECIBAN, -500 * DECIBAN]])).splitlines()
    assert [line.count("█") for line in lines] == [30, 15, 0]
    assert lines[0].index("█") == lines[1].rindex("█") + 1


def test_between_two_of_many_classes_the_probability_is_conditional():
    assert "P(spam | spam or ham) = .500" in str(explained([[0.0]], prior_part=[0.0], exhaustive=False))
    assert "even" in str(explained([[0.0]]))


def test_values_of_any_kind_fit_on_a_line():
    values = [[None, "a\nb", np.nan, -1234567.891, 3, "x" * 99]]
    lines = explained([[6.0, 5, 4, 3, 2, 1]], values=values).text().splitlines()
    assert len(lines) == 7
    for shown, line in zip(["a b", "missing", "−1.23457e+06", "3"], lines[1:]):
        assert f"  {shown}  " in line
    assert "…" in lines[5]


def test_slices_and_rows_are_explanations():
    told = explained(np.arange(6.0).reshape(3, 2), prior_part=[1, 2, 3], other={"calibration": [0.1, 0.2, 0.3]})
    assert len(told) == 3
    assert repr(told) == "Explanation(3 rows, 'spam' over 'ham', 2 parts)"
    assert repr(told[-1]) == "Explanation(1 row, 'spam' over 'ham', 2 parts)"
    assert told[-1].total.tolist() == [told.total[2]]
    assert told[1:].log_odds.tolist() == told.log_odds[1:].tolist()
    assert [len(row) for row in told] == [1, 1, 1]
    with pytest.raises(IndexError):
        told[3]


def test_a_frame_has_a_line_per_row_and_part():
    told = explained([[1.0, -2.0]], values=[["x", 3]], prior_part=[0.5], other={"calibration": [0.25]})
    frame = told.to_frame("decibans")
    assert frame["feature"].tolist() == ["part 0", "part 1", "calibration", "prior"]
    assert frame["kind"].tolist() == ["feature", "feature", "other", "prior"]
    assert frame["value"].tolist() == ["x", 3, None, None]
    np.testing.assert_allclose(frame["evidence"], convert([1, -2, 0.25, 0.5], "decibans"))
    with pytest.raises(InputError, match="unit"):
        told.to_frame("dB")


def test_a_missing_pandas_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        explained([[1.0]]).to_frame()


def test_a_dict_survives_json():
    told = explained([[1.0, -2.0]], values=np.array([[1, 2]]), prior_part=[0.5], other={"calibration": [0.25]})
    back = json.loads(json.dumps(told.to_dict()))
    assert back == told.to_dict()
    assert back["evidence"] == [-0.75]
    assert back["posterior"] == [-0.25]
    assert "prior" not in explained([[1.0]]).to_dict()


class Cells(HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.tags, self.text = [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.text.append(data)


def test_html_escapes_names_and_values():
    told = Explanation(["<b>n</b>"], [[7.0]], "<i>a</i>", "b & c", values=[["<script>x</script>"]], prior_part=[-9.0])
    page = Cells(told._repr_html_())
    assert set(page.tags) == {"table", "caption", "tr", "td"}
    assert {"<b>n</b>", "<script>x</script>", "█" * 30} <= set(page.text)
    assert any(text.endswith("for b & c, P(<i>a</i>) = .119") for text in page.text)


def test_names_must_match_the_parts():
    with pytest.raises(InputError, match="one name per column"):
        Explanation(["a", "b"], [[1.0]], "spam", "ham")
