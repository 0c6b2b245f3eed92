"""A nomogram for either class: the evidence of the calibration has the sign for that class."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_breast_cancer

from deciban import Gaussian, GenerativeClassifier, plots

DATA = load_breast_cancer(as_frame=True)
ROWS, Y = DATA.data.iloc[:, :5], DATA.target_names[DATA.target]


@pytest.mark.parametrize("calibrate", ["affine", "offsets"])
@pytest.mark.parametrize("structure", ["tied", "diagonal"])
@pytest.mark.parametrize(("over", "against"), [("benign", "malignant"), ("malignant", "benign")])
def test_the_scales_and_the_constant_sum_to_the_llr_of_either_class(structure, calibrate, over, against):
    clf = GenerativeClassifier(Gaussian(structure), calibrate=calibrate).fit(ROWS, Y)
    ax = plots.nomogram(clf, ROWS, over, against, row=13)
    marked = [float(line.get_xdata()[0]) for line in ax.lines if line.get_gid() == "marked"]
    constant = ax.get_yticklabels()[-2].get_text().removeprefix("sum of evidence").replace(" ", "").replace("−", "-")
    row = ROWS.iloc[[13]]
    assert_allclose(sum(marked) + float(constant or 0), clf.llr(row, over, against, unit="decibans"), atol=0.06)
    assert_allclose(clf.llr(row, over, against), -clf.llr(row, against, over))


@pytest.mark.parametrize("structure", ["tied", "diagonal"])
def test_calibration_moves_the_evidence_by_more_than_can_be_misread(structure):
    """The calibration is not 0, so that a wrong sign fails the test above."""
    clf = GenerativeClassifier(Gaussian(structure), calibrate="affine").fit(ROWS, Y)
    assert 10 / np.log(10) * abs(clf.calibration_.calibrator.b) > 1
