"""Judging the answers: figures, curves and intervals for llrs and log-likelihoods, and calibrators fitted on them.

Two classes are judged by (llr, is_h1), any number by (log_likelihood, codes, log_prior): plain arrays, no model needed.
"""

from .blockwise import Blockwise
from .calibration import Affine, Calibrator, LengthAware, Offsets, calibrator_from_dict
from .cllr import calibration_loss, cllr, empirical_cross_entropy, min_cllr
from .curves import convex_hull, det, llr_histogram, reliability, roc, tippett
from .dcf import bayes_error_curve, dcf, eer, min_dcf
from .intervals import bootstrap, jackknife
from .multiclass import (
    brier,
    cross_entropy,
    expected_calibration_error,
    log_loss,
    multiclass_calibration_loss,
    multiclass_cllr,
)
from .pav import PAV, pav
from .report import Evaluation

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
