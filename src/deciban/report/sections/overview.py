"""Sections of the model as a whole: its classes, its choices, and its calibration."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from deciban.evaluate.calibration import Affine, Blockwise, Offsets
from deciban.evidence.explanation import count
from deciban.report.drawing import (
    number_text,
    percent,
    share_bar,
    table_of,
)
from deciban.report.material import MOST_CLASSES, Material

RULES = {
    "mean": "posterior means (rule “mean”)",
    "map": "posterior modes (rule “map”)",
    "ml": "maximum likelihood (rule “ml”)",
    "predictive": "integrated out (rule “predictive”)",
}


def model_section(material: Material) -> str:
    """Classes with their rows and priors, and how the model was made."""
    clf = material.clf
    model = clf.model_
    prior = np.exp(clf.log_prior())
    largest = max(float(model.stats.rows.max()), 1e-300)
    order = np.argsort(-model.stats.rows, kind="stable")
    rows = [
        (model.classes[k], number_text(float(model.stats.rows[k])), percent(float(model.stats.rows[k]) / max(model.weight, 1e-300)),
         percent(float(prior[k])), share_bar(float(model.stats.rows[k]) / largest, int(k)))
        for k in order[:MOST_CLASSES]
    ]  # fmt: skip
    classes = table_of(("class", "rows learnt", "share", "prior", ""), rows, "Classes", (1, 2, 3))
    more = f"<p class='quiet'>and {len(order) - MOST_CLASSES:,} more classes</p>" if len(order) > MOST_CLASSES else ""
    ledger = (
        "holds a digest of every row, so that unlearning is checked"
        if model.ledger is not None
        else "none: unlearning checks only that sums stay valid"
    )
    changed = "made at the first fit, partly from rows unlearnt since" if model.unlearnt else "made at the first fit"
    facts = [
        ("Parameters", RULES.get(model.rule, f"rule “{model.rule}”")),
        ("Choices", changed),
        ("Ledger", ledger),
        ("Calibration", _calibration_text(model)),
    ]
    listed = "".join(f"<li><b>{escape(name)}:</b> {escape(text)}</li>" for name, text in facts)
    return (
        "<p>The model describes how each class produces its rows, and answers with evidence: the log-likelihood ratio "
        f"of the classes. Prior and costs are added afterwards.</p><div class='classes'>{classes}</div>{more}<ul class='notes'>{listed}</ul>"
    )


def _calibration_text(model: Any) -> str:
    calibration = model.calibration
    return "none" if calibration is None else f"{calibration.method}, {calibration.state(model.weight)}"


def _calibrator_text(calibrator: Any) -> str:
    """Return what the calibration does to the evidence."""
    if isinstance(calibrator, Affine):
        return f"The evidence is multiplied by {calibrator.a:.3g}, and {calibrator.b:+.3g} nats are added."
    if isinstance(calibrator, Blockwise):
        scales = np.exp(calibrator.log_scales)
        ends = f"{scales.min():.2g}" if len(scales) == 1 else f"between {scales.min():.2g} and {scales.max():.2g}"
        text = f"The evidence of each family is multiplied by a factor, {ends}; each class has an offset."
        used, all_ = int((np.asarray(calibrator.weights) > 0).sum()), len(calibrator.weights)
        return f"{text} {used} of {all_} further functions of columns have a weight." if all_ else text
    if isinstance(calibrator, Offsets):
        return "The evidence is multiplied by a factor, which may depend on the row's length; each class has an offset."
    return "The evidence is mapped by a function that was fitted to learnt rows, each left out in turn."


def calibration_section(material: Material) -> str:
    """The calibration, whether it is up to date, and what is lost by it on the judged rows."""
    model = material.clf.model_
    calibration = model.calibration
    if calibration is None:
        text = "<p>The evidence is not calibrated: it is that of the families.</p>"
    else:
        text = f"<p>Log-likelihoods are calibrated by the method “{escape(calibration.method)}”, {escape(calibration.state(model.weight))}.</p>"
        text += f"<p>{escape(_calibrator_text(calibration.calibrator))}</p>"
        if calibration.fitted_on != model.weight:
            text += "<p class='warn'>The calibration is out of date: fit it again on learnt rows.</p>"
    if material.judged is not None:
        evaluation = material.judged.evaluation
        if evaluation.figure("cllr") is not None and np.isfinite(evaluation.cllr):
            text += f"<p>On the judged rows, {evaluation.calibration_loss:.3f} of the Cllr of {evaluation.cllr:.3f} is lost by calibration.</p>"
    return text


def facts(material: Material) -> str:
    """The line below the title."""
    model = material.clf.model_
    facts = [f"learnt from {model.weight:,.15g} rows", count(len(model.classes), "class", "classes")]
    facts.append(count(len(model.reader.labels), "column"))
    if material.judged is not None:
        how = (
            "learnt rows, each scored as if it had not been learnt"
            if material.judged.evaluation.learnt
            else "rows taken as new"
        )
        facts.append(f"judged on {len(material.judged.evaluation):,} {how}")
    return " · ".join(facts)
