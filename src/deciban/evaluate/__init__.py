"""Evaluation of scores of any system: figures, curves and intervals, and calibrators.

Figures of two classes take (llr, is_h1), those of any number of classes (log_likelihood, codes, log_prior): plain
arrays, no model is needed. `Evaluation` computes all of them for one set of rows. Names are loaded when they are first
used, so that a first fit does not import what it does not need.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOME = {
    "calibration": (
        "PAV",
        "Affine",
        "Blockwise",
        "Calibrator",
        "LengthAware",
        "Offsets",
        "calibrator_from_dict",
    ),
    "curves": (
        "bayes_error_curve",
        "convex_hull",
        "det",
        "empirical_cross_entropy",
        "llr_histogram",
        "reliability",
        "roc",
        "tippett",
    ),
    "figures": (
        "brier",
        "calibration_loss",
        "cllr",
        "cross_entropy",
        "dcf",
        "eer",
        "expected_calibration_error",
        "log_loss",
        "min_cllr",
        "min_dcf",
        "multiclass_calibration_loss",
        "multiclass_cllr",
        "pav",
    ),
    "intervals": (
        "bootstrap",
        "jackknife",
    ),
    "report": ("Evaluation",),
}
__all__ = sorted(name for names in _HOME.values() for name in names)


def __getattr__(name: str) -> Any:
    for module, names in _HOME.items():
        if name in names:
            return getattr(importlib.import_module(f"deciban.evaluate.{module}"), name)
    raise AttributeError(f"module 'deciban.evaluate' has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
