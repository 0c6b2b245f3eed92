"""Sections of the data: what looks wrong with it, and drift against a second file."""

from __future__ import annotations

import numpy as np

from deciban.errors import DecibanError
from deciban.evidence.explanation import short
from deciban.read.reservoir import chosen_rows
from deciban.report.drawing import (
    bar_cell,
    percent,
    table_of,
    text_of,
)
from deciban.report.findings import data_warnings
from deciban.report.material import MOST_CLASSES, MOST_LISTED, Material

CHECKED = 40_000  # values of the rows compared with samples of the model


def data_section(material: Material) -> str:
    """Warnings about columns and classes, and columns that samples of the model do not resemble."""
    clf, judged = material.clf, material.judged
    model = clf.model_
    schema = model.reader.schema
    classes = dict(zip(map(str, model.classes), model.stats.rows.tolist()))
    found = data_warnings(() if schema is None else schema.columns, classes, material.features, model.ledger)
    checked = ""
    if judged is not None and len(material.words) < len(model.positions):
        try:
            some = chosen_rows(len(judged.rows), max(300, CHECKED // max(len(model.reader.labels), 1)))
            report = clf.check_fit(judged.rows.take(some), judged.labels[some])
            found += [str(finding) for finding in report.findings[:20]]
            checked = f"{report.checked:,} pairs of column and class were compared with samples of the model."
        except (DecibanError, TypeError, ValueError):
            checked = "The columns cannot be compared with samples of the model."
    items = "".join(f"<li>{text_of(text, 400)}</li>" for text in found[:60])
    listed = f"<ul class='notes'>{items}</ul>" if items else "<p>Nothing was found.</p>"
    return listed + (f"<p class='quiet'>{checked}</p>" if checked else "")


def drift_section(material: Material) -> str:
    """Columns and classes that differ in a second file."""
    found = material.drift
    if found is None:
        return ""
    sums = [max(float(side.sum()), 1e-300) for side in (found.learnt, found.other)]
    classes = [
        (name, percent(float(a) / sums[0]), percent(float(b) / sums[1]))
        for name, a, b in zip(found.classes[:MOST_CLASSES], found.learnt, found.other)
    ]
    largest = max([abs(d) for _, d in found.columns if d is not None and np.isfinite(d)], default=1.0) or 1.0
    columns = [
        (
            short(name, 60),
            "–" if d is None else f"{d:+,.1f}".replace("-", "−"),
            "" if d is None else bar_cell(d, largest),
            _drift_text(d),
        )
        for name, d in found.columns[:MOST_LISTED]
    ]
    return (
        f"<p>The {found.rows:,.15g} rows of the second file against the rows learnt. Positive decibans: evidence that a "
        "column has other parameters there, given the class; negative: evidence that they are the same. Computed from the "
        "sums of both, with parameters integrated out.</p>"
        + table_of(("columns", "decibans", "", ""), columns, "Columns", (1,))
        + table_of(("class", "share learnt", "share in the second file"), classes, "Classes", (1, 2))
    )


def _drift_text(decibans: float | None) -> str:
    if decibans is None:
        return "the family cannot be compared by its sums"
    if abs(decibans) < 10:
        return "undecided"
    return "different" if decibans > 0 else "the same"
