"""The page: sections of HTML with figures, the data of its sliders as JSON, one style sheet and one script.

Nothing is loaded from elsewhere: a content security policy allows the style sheet and the script of the page alone. The
size is bounded: lists, texts and numbers of points have limits that do not depend on the rows.
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

from deciban.errors import InputError
from deciban.read.batches import Batch
from deciban.report.contract import Classifier
from deciban.report.drawing import (
    text_of,
)
from deciban.report.material import Material, gather
from deciban.report.sections.columns import columns_section, features_section
from deciban.report.sections.data import data_section, drift_section
from deciban.report.sections.decisions import decide_section
from deciban.report.sections.figures import figures_section
from deciban.report.sections.nomogram import nomogram_section
from deciban.report.sections.overview import calibration_section, facts, model_section
from deciban.report.sections.rows import rows_section
from deciban.report.sections.words import words_section
from deciban.store.files import write_bytes

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
        ("figures", "How good it is", figures_section(material)),
        ("decide", "Prior and costs", decide_section(material, data, share)),
        ("features", "Most telling features", features_section(material)),
        ("columns", "Columns", columns_section(material, share)),
        ("nomogram", "Nomogram", nomogram_section(material, data, share)),
        ("words", "Words by evidence", words_section(material, data, share)),
        ("rows", "Rows", rows_section(material)),
        ("findings", "What looks wrong with the data", data_section(material)),
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
