"""The section of rows: the most typical, the most surprising, and the most wrong ones."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from deciban.errors import DecibanError
from deciban.evidence.explanation import decibans_text, plain, short
from deciban.model.predictor import block_lengths
from deciban.report.contract import Classifier
from deciban.report.drawing import (
    bar_cell,
    table_of,
)
from deciban.report.judged import (
    Judged,
    rows_to_show,
)
from deciban.report.material import Material
from deciban.statistics import Array

PARTS = 6  # features shown of a row


def rows_section(material: Material) -> str:
    """Rows of the sample, each with the evidence of its features."""
    judged, clf = material.judged, material.clf
    if judged is None or len(clf.classes_) < 2:
        return ""
    model = clf.model_
    lengths = _lengths(clf, judged) if len(model.positions) == len(material.words) else None
    shown = rows_to_show(clf, judged, lengths)
    made = []
    for heading, note, chosen in (
        ("Most typical", "the strongest evidence for their own class" if lengths is not None else "the highest density under the model", shown.typical),
        ("Most surprising", "the lowest density under the model" + (", a word" if lengths is not None else ""), shown.surprising),
        ("Most wrong", "the strongest evidence for a class that is not theirs", shown.wrong),
    ):  # fmt: skip
        inner = "".join(_row_article(material, judged, int(i), shown.nats, shown.rival) for i in chosen)
        made.append(
            f"<h3>{heading}</h3><p class='quiet'>Rows with {note}.</p>{inner or '<p>None: all rows favour their own class.</p>'}"
        )
    sampled = f" (a sample of {len(judged.positions):,} rows)" if len(judged.positions) < len(judged.evaluation) else ""
    return f"<p class='quiet'>Of the rows that were judged{sampled}.</p>{''.join(made)}"


def _lengths(clf: Classifier, judged: Judged) -> Array | None:
    model = clf.model_
    found = [each for each in block_lengths(model.family, model.encode(judged.rows)) if each is not None]
    return np.sum(found, axis=0) if found else None


def _row_article(material: Material, judged: Judged, i: int, nats: Array, rival: Array) -> str:
    clf, evaluation = material.clf, judged.evaluation
    at = int(judged.positions[i])
    own, other = evaluation.classes[evaluation.codes[at]], evaluation.classes[int(rival[i])]
    decided = evaluation.classes[int(evaluation.decided[at])]
    row = judged.rows.take([i])
    cells = "; ".join(
        f"{short(name, 30)} = {_cell_text(row, j)}" for j, name in enumerate(clf.model_.reader.labels[:12])
    )
    left = len(clf.model_.reader.labels) - 12
    cells += f"; and {left:,} more columns" if left > 0 else ""
    try:
        explained = clf.explain(row, own, other)
        parts = explained.parts[0]
        order = np.argsort(-np.abs(parts), kind="stable")[:PARTS]
        largest = float(np.abs(parts[order][np.isfinite(parts[order])]).max(initial=1e-9))
        lines = [
            (short(explained.names[p], 40), decibans_text(float(parts[p])), bar_cell(float(parts[p]), largest))
            for p in order
        ]
        table = table_of(("feature", "dban", ""), lines, f"Evidence for {short(own, 30)} over {short(other, 30)}", (1,))
    except DecibanError:
        table = ""
    text = f"{decibans_text(float(nats[i]))} dban for its class “{short(own, 40)}” over “{short(other, 40)}”"
    verdict = "predicted right" if decided == own else f"predicted “{short(decided, 40)}”"
    return (
        f"<article><p><b>Row {int(judged.numbers[i]) + 1:,}</b>, {escape(verdict)}: {escape(text)}</p><p class='cells'>{escape(cells)}</p>"
        f"<details><summary>Evidence of its features<span class='hidden'> in row {int(judged.numbers[i]) + 1:,}</span></summary>{table}</details></article>"
    )


def _cell_text(row: Any, j: int) -> str:
    value = plain(_cell(row, j))
    return "missing" if value is None else short(value, 300)


def _cell(row: Any, j: int) -> Any:
    values = row.column(j)
    if hasattr(values, "toarray"):
        return float(values.toarray().ravel()[0])
    one = values[0]
    return one.as_py() if hasattr(one, "as_py") else one
