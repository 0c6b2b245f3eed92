"""Sections of the data: rows with their evidence, what looks wrong with the data, and drift against a second file."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from deciban.errors import DecibanError
from deciban.evidence.explanation import count, decibans_text, plain, short
from deciban.evidence.scores import convert
from deciban.families.gaussian import Gaussian
from deciban.families.product import blocks_of
from deciban.model.fit_checks import Finding
from deciban.model.model import Model
from deciban.model.predictor import block_lengths
from deciban.read.batches import chosen_rows
from deciban.report.drawing import bar_cell, percent, table_of, text_of
from deciban.report.findings import data_warnings
from deciban.report.material import MOST_CLASSES, MOST_LISTED, Material, WordDrift
from deciban.report.rows import Classifier, Judged, rows_to_show
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


# -- findings and drift ------------------------------------------------------------------------------------------------
CLEAR = 10  # decibans from which a difference is called one
WORDS_SHOWN = 20  # of those that became more frequent, and of those that became less frequent
MOST_NAMED = 12  # columns of one finding
WHAT_DIFFERS = "Compared with samples of the model, the rows of some classes have a column that "
REMEDIES = {"has more repeated values": "Rounded measurements do so; it matters little where the figures are good."}
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
            found += _fit_findings(model, report.findings)
            checked = f"{report.checked:,} pairs of column and class were compared with samples of the model."
        except (DecibanError, TypeError, ValueError):
            checked = "The columns cannot be compared with samples of the model."
    items = "".join(f"<li>{text_of(text, 400)}</li>" for text in found[:60])
    listed = f"<ul class='notes'>{items}</ul>" if items else "<p>Nothing was found.</p>"
    return listed + (f"<p class='quiet'>{checked}</p>" if checked else "")


def _fit_findings(model: Model, findings: Sequence[Finding]) -> list[str]:
    """Differences from samples of the model, those of the same kind in one sentence."""
    gaussian = {
        model.reader.labels[j]
        for (family,), at in zip(blocks_of(model.family), model.positions)
        for j in at
        if isinstance(family, Gaussian)
    }
    kinds: dict[str, dict[str, list[Finding]]] = {}
    for one in findings:
        kinds.setdefault(one.what, {}).setdefault(one.column, []).append(one)
    texts = []
    for what, columns in kinds.items():
        names = []
        for column, each in columns.items():
            classes = ", ".join(short(one.label, 20) for one in each)
            better = each[0].better if column in gaussian else None  # it is better than a Gaussian
            names.append(f"{short(column, 30)} ({classes}{f'; {better} fits better' if better else ''})")
        more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
        texts.append(f"{WHAT_DIFFERS}{what}: {', '.join(names[:MOST_NAMED])}{more}. {REMEDIES.get(what, '')}".strip())
    return texts


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
        + "".join(_word_tables(one) for one in found.words)
    )


def _word_tables(found: WordDrift) -> str:
    """Words that became more and less frequent."""
    clear = int((found.decibans >= CLEAR).sum())
    column = f" of {short(found.column, 40)}" if found.column else ""
    title = f"<h3>{text_of(f'Words{column}', 60)}</h3>"
    if not clear:
        return f"{title}<p>None of {found.total:,} words has {CLEAR} dban or more for another frequency, given the class.</p>"
    text = (
        f"Words{column} whose frequency, given the class, is another in the second file: {count(clear, 'word')} of "
        f"{found.total:,}, with {CLEAR} dban or more. Expected: the amount if frequencies were those learnt."
    )
    made = f"{title}<p>{text_of(text, 400)}</p>"
    more = found.found > found.expected
    for heading, side in (("More frequent", more), ("Less frequent", ~more)):
        at = np.flatnonzero(side & (found.decibans >= CLEAR))[:WORDS_SHOWN]
        largest = float(found.decibans[at].max(initial=1.0))
        rows = [
            (found.words[i], decibans_text(found.decibans[i] / convert(1.0, "decibans")), bar_cell(float(found.decibans[i]), largest),
             f"{found.expected[i]:,.1f}", f"{found.found[i]:,.1f}")
            for i in at
        ]  # fmt: skip
        head = ("word", "decibans", "", "expected", "found")
        made += table_of(head, rows, heading, (1, 3, 4)) if rows else f"<p><b>{heading}:</b> no word.</p>"
    return f"<div>{made}</div>"


def _drift_text(decibans: float | None) -> str:
    if decibans is None:
        return "the family cannot be compared by its sums"
    if abs(decibans) < CLEAR:
        return "undecided"
    return "different" if decibans > 0 else "the same"
