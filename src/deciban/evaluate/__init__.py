"""Evaluation of scores of any system: figures, curves and intervals, and calibrators.

Figures of two classes take (llr, is_h1), those of any number of classes (log_likelihood, codes, log_prior): plain
arrays, no model is needed. `Evaluation` computes all of them for one set of rows.
"""

from deciban.evaluate.calibration import (
    PAV,
    Affine,
    Blockwise,
    Calibrator,
    LengthAware,
    Offsets,
    calibrator_from_dict,
)
from deciban.evaluate.curves import convex_hull, det, llr_histogram, reliability, roc, tippett
from deciban.evaluate.intervals import bootstrap, jackknife
from deciban.evaluate.multiclass import (
    brier,
    cross_entropy,
    expected_calibration_error,
    log_loss,
    multiclass_calibration_loss,
    multiclass_cllr,
)
from deciban.evaluate.report import Evaluation
from deciban.evaluate.two_class import (
    bayes_error_curve,
    calibration_loss,
    cllr,
    dcf,
    eer,
    empirical_cross_entropy,
    min_cllr,
    min_dcf,
    pav,
)

__all__ = [
    "PAV",
    "Affine",
    "Blockwise",
    "Calibrator",
    "Evaluation",
    "LengthAware",
    "Offsets",
    "bayes_error_curve",
    "bootstrap",
    "brier",
    "calibration_loss",
    "calibrator_from_dict",
    "cllr",
    "convex_hull",
    "cross_entropy",
    "dcf",
    "det",
    "eer",
    "empirical_cross_entropy",
    "expected_calibration_error",
    "jackknife",
    "llr_histogram",
    "log_loss",
    "min_cllr",
    "min_dcf",
    "multiclass_calibration_loss",
    "multiclass_cllr",
    "pav",
    "reliability",
    "roc",
    "tippett",
]
