"""Sections of the model as a whole: its classes, its choices, and its calibration."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from deciban.evidence.explanation import count
from deciban.report.drawing import (
    number_text,
    percent,
    share_bar,
    table_of,
    text_of,
)
from deciban.report.material import MOST_CLASSES, Material


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
        ("Parameters", f"rule “{model.rule}”"),
        ("Choices", changed),
        ("Ledger", ledger),
        ("Calibration", _calibration_text(model)),
    ]
    listed = "".join(f"<li><b>{escape(name)}:</b> {escape(text)}</li>" for name, text in facts)
    return (
        "<p>The model describes how each class produces its rows, and answers with evidence: the log-likelihood ratio "
        f"of the classes. Prior and costs are added afterwards.</p>{classes}{more}<ul class='notes'>{listed}</ul>"
    )


def _calibration_text(model: Any) -> str:
    calibration = model.calibration
    return "none" if calibration is None else f"{calibration.method}, {calibration.state(model.weight)}"


def calibration_section(material: Material) -> str:
    """The calibration, whether it is up to date, and what is lost by it on the judged rows."""
    model = material.clf.model_
    calibration = model.calibration
    if calibration is None:
        text = "<p>The evidence is not calibrated: it is that of the families.</p>"
    else:
        text = f"<p>Log-likelihoods are calibrated by the method “{escape(calibration.method)}”, {escape(calibration.state(model.weight))}.</p>"
        text += f"<p class='quiet'>{text_of(repr(calibration.calibrator), 300)}</p>"
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
