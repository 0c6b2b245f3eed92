"""The page: sections of HTML with figures, the data of its sliders as JSON, one style sheet and one script.

The page loads nothing from other addresses: its content security policy allows only its own style sheet and script. Its
size is bounded: lists, texts and numbers of points have limits that do not depend on the rows. The sections about the
model as a whole (classes, choices, calibration) are in this module, those about rows in `figures.py`, those about
columns in `columns.py`.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Iterable
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np

from deciban.errors import InputError
from deciban.evaluate.calibration import Affine, Blockwise, Offsets
from deciban.evidence.explanation import count
from deciban.read.batches import Batch
from deciban.report.columns import columns_section, features_section, nomogram_section, words_section
from deciban.report.drawing import percent, share_bar, table_of, text_of
from deciban.report.figures import data_section, decide_section, drift_section, figures_section, rows_section
from deciban.report.findings import Classifier
from deciban.report.material import MOST_CLASSES, Material, gather
from deciban.store.files import write_bytes

# -- sections of the model ---------------------------------------------------------------------------------------------
RULES = {
    "mean": "posterior means (rule “mean”)",
    "map": "posterior modes (rule “map”)",
    "ml": "maximum likelihood (rule “ml”)",
    "predictive": "integrated out (rule “predictive”)",
}


def model_section(material: Material) -> str:
    """Classes with their rows and priors; parameters, choices, ledger and calibration."""
    clf = material.clf
    model = clf.model_
    prior = np.exp(clf.log_prior())
    largest = max(float(model.stats.rows.max()), 1e-300)
    order = np.argsort(-model.stats.rows, kind="stable")
    rows = [
        (model.classes[k], f"{round(float(model.stats.rows[k]), 2):,.15g}", percent(float(model.stats.rows[k]) / max(model.weight, 1e-300)),
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
    """Return a description of the calibrator."""
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
    """The calibration, whether it is up to date, and the calibration loss on the judged rows."""
    model = material.clf.model_
    calibration = model.calibration
    if calibration is None:
        text = "<p>The evidence is not calibrated: it is the sum of the evidence of the families.</p>"
    else:
        text = f"<p>Log-likelihoods are calibrated by the method “{escape(calibration.method)}”, {escape(calibration.state(model.weight))}.</p>"
        text += f"<p>{escape(_calibrator_text(calibration.calibrator))}</p>"
        if calibration.fitted_on != model.weight:
            text += "<p class='warn'>The calibration is out of date: fit it again on learnt rows.</p>"
    if material.judged is not None:
        evaluation = material.judged.evaluation
        if evaluation.figure("cllr") is not None and np.isfinite(evaluation.cllr):
            text += f"<p>On the judged rows, {evaluation.calibration_loss:.3f} of the Cllr of {evaluation.cllr:.3f} is calibration loss.</p>"
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


# -- the page ----------------------------------------------------------------------------------------------------------
MOST_BYTES = 1_000_000


def write_report(
    clf: Classifier,
    path: str | os.PathLike[str],
    batches: Iterable[Batch] | None,
    learnt: bool | None,
    other: tuple[Any, Any] | None,
    title: str,
) -> None:
    """Write the page of a fitted classifier, whole or not at all; `other` are rows and labels to compare with."""
    write_bytes(path, report_page(clf, batches, learnt, other, title))


def report_page(
    clf: Classifier,
    batches: Iterable[Batch] | None = None,
    learnt: bool | None = None,
    other: tuple[Any, Any] | None = None,
    title: str = "",
) -> bytes:
    """Return the page as bytes."""
    material = gather(clf, batches, learnt, other, title)
    for share in (1.0, 0.5, 0.25, 0.1):
        page = _page(material, share)
        if len(page) <= MOST_BYTES:
            return page
    raise InputError(
        f"the report would have {len(page):,} bytes, more than {MOST_BYTES:,}. Give a model of fewer classes."
    )


def _page(material: Material, share: float) -> bytes:
    sections: list[tuple[str, str, str]] = []  # id, heading, HTML
    data: dict[str, Any] = {}
    for ident, heading, made in (
        ("model", "The model", model_section(material)),
        ("figures", "Figures", figures_section(material)),
        ("decide", "Prior and costs", decide_section(material, data, share)),
        ("features", "Features with the most evidence", features_section(material)),
        ("columns", "Columns", columns_section(material, share)),
        ("nomogram", "Nomogram", nomogram_section(material, data, share)),
        ("words", "Words by evidence", words_section(material, data, share)),
        ("rows", "Rows", rows_section(material)),
        ("findings", "Warnings about the data", data_section(material)),
        ("drift", "Drift", drift_section(material)),
        ("calibration", "Calibration", calibration_section(material)),
    ):
        if made:
            sections.append((ident, heading, made))
    style, script = (_asset(name) for name in ("page.css", "page.js"))
    # "<" may end a script element, so it is escaped
    held = json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    links = "".join(f'<li><a href="#{ident}">{escape(heading)}</a></li>' for ident, heading, _ in sections)
    body = "".join(
        f'<section id="{ident}" aria-labelledby="{ident}-h"><h2 id="{ident}-h">{escape(heading)}</h2>{made}</section>'
        for ident, heading, made in sections
    )
    policy = f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; base-uri 'none'; form-action 'none'"
    from deciban import __version__

    title = text_of(material.title, 120)
    page = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="generator" content="deciban report">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><title>{title}</title>'
        f'<style>{style}</style></head><body><a class="skip" href="#main">Skip to the report</a>'
        f'<header><h1>{title}</h1><p class="quiet">{text_of(facts(material), 400)}</p>'
        f'<nav aria-label="Sections"><ul>{links}</ul></nav></header><main id="main">{body}</main>'
        f"<footer><p>Written by deciban {escape(__version__)}. Evidence is in decibans (dban): 10 dban are odds of 10 to 1, "
        "3 dban of 2 to 1; positive evidence is for a class, negative evidence against it.</p></footer>"
        f'<script id="report-data" type="application/json">{held}</script><script>{script}</script></body></html>\n'
    )
    return page.encode("utf-8", "replace")


def _asset(name: str) -> str:
    return (files("deciban.report") / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
