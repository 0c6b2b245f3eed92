"""Judging the answers: figures, curves and intervals for llrs and log-likelihoods, and calibrators fitted on them.

Two classes are judged by (llr, is_h1), any number by (log_likelihood, codes, log_prior): plain arrays, no model needed.
"""

from deciban.evaluate.calibration import Affine, Calibrator, LengthAware, Offsets, calibrator_from_dict
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
from deciban.evaluate.scale_fit import Blockwise
from deciban.evaluate.two_class import (
    PAV,
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
