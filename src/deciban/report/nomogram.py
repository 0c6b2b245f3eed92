"""The section of the nomogram: a scale of evidence for each column, set by the reader of the page.

Evidence of several columns together is packed for the script of the page, which computes it for the values that are
set. Columns that the page does not show stay at their typical values: their parts are added to the constants.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from deciban.evidence.explanation import short
from deciban.evidence.scores import convert
from deciban.model.nomogram import CosineTerm, JointTerm, Pairs, PolynomialTerm, Waves
from deciban.report.drawing import rounded, text_of, value_text
from deciban.report.material import MOST_CURVES, NUMBERS, Material, shortened
from deciban.report.scales import ColumnScale, Scales
from deciban.statistics import Array

# -- evidence of several columns together ------------------------------------------------------------------------------
JOINT_NUMBERS = 30_000  # of eight bytes each, for all formulas of a page
LARGEST = 200.0  # decibans, beyond which columns are not told apart


def most_telling(scales: Scales) -> list[ColumnScale]:
    """Return the columns with scales, first those that change the evidence most while others are typical."""
    columns = [one for one in scales.columns if one.decibans is not None]
    unit, D = convert(1.0, "decibans"), 1 + max((one.position for one in columns), default=0)
    typical = np.full(D, -1)
    typical[[one.position for one in columns]] = [one.middle for one in columns]
    spread = []
    for one in columns:
        places = np.tile(typical, (len(one.values), 1))
        places[:, one.position] = np.arange(len(one.values))
        found = np.asarray(one.decibans) + unit * sum(term.evidence(places) for term in scales.terms)
        found = np.clip(found - found[:, :1], -LARGEST, LARGEST)
        spread.append(float(np.ptp(found, axis=0).max()))
    return [columns[i] for i in np.argsort(-np.array(spread), kind="stable")]


def room_for(columns: Sequence[ColumnScale], terms: Sequence[JointTerm], K: int, share: float) -> int:
    """Return the largest number of columns, from the first on, whose formulas fit into `share` of the page's limit."""
    each = {id(term.waves): term.waves for term in terms if isinstance(term, CosineTerm)}.values()
    used, inside = 0.0, [0] * len(terms)
    for n, one in enumerate(columns):
        vectors = [waves.vectors[one.position] for waves in each if one.position in waves.vectors]
        used += sum(min(len(own), len(one.values)) * own.shape[1] for own in vectors)
        inside = [size + (one.position in term.columns) for size, term in zip(inside, terms)]
        squares = sum(K * size**2 for size, term in zip(inside, terms) if isinstance(term, PolynomialTerm))
        if used + squares > share * JOINT_NUMBERS:
            return n
    return len(columns)


def packed_terms(
    terms: Sequence[JointTerm], shown: Sequence[ColumnScale], fixed: Sequence[ColumnScale], K: int
) -> dict[str, Any]:
    """Return the formulas for JSON: arrays of numbers as base64, columns by their numbers on the page."""
    waves: list[Waves] = []
    found = []
    for term in terms:
        if isinstance(term, PolynomialTerm):
            found.append(_polynomial(term, shown, fixed, K))
            continue
        if not any(term.waves is one for one in waves):
            waves.append(term.waves)
        place = next(at for at, one in enumerate(waves) if one is term.waves)
        found.append(_cosines(term, place, fixed, K))
    return {"terms": found, "waves": [[_wave(one, column) for column in shown] for one in waves]}


def _wave(waves: Waves, column: ColumnScale) -> dict[str, Any] | None:
    j, m = column.position, len(column.values)
    if j not in waves.vectors:
        return None
    if j in waves.numbers:
        return {"numbers": [float(z) for z in waves.numbers[j][:m]], "vectors": packed(waves.vectors[j])}
    vectors = waves.vectors[j][:m]
    absent = np.asarray(np.isnan(vectors).any(axis=1, keepdims=True))
    return {"absent": absent[:, 0].astype(int).tolist(), "vectors": packed(np.where(absent, 0.0, vectors))}


def _cosines(term: CosineTerm, waves: int, fixed: Sequence[ColumnScale], K: int) -> dict[str, Any]:
    phases, seen = term.phases.copy(), False
    for column in fixed:
        if column.position in term.waves.vectors:
            own = term.waves.of(column.position, np.array([column.middle]))[0]
            seen = seen or not np.isnan(own[0])
            phases += term.factor * np.nan_to_num(own)
    held = {"phases": packed(phases), "linear": packed(term.linear[:K]), "constant": term.constant[:K].tolist()}
    return {"label": term.label, "kind": "cosines", "waves": waves, "factor": term.factor, "seen": seen, **held}


def _polynomial(
    term: PolynomialTerm, shown: Sequence[ColumnScale], fixed: Sequence[ColumnScale], K: int
) -> dict[str, Any]:
    place = {j: d for d, j in enumerate(term.columns)}
    numbers = [number for number, column in enumerate(shown) if column.position in place]
    free = [place[shown[number].position] for number in numbers]
    rest = [(place[column.position], column.middle) for column in fixed if column.position in place]
    held = [d for d, _ in rest]
    t = np.array([term.numbers[middle, d] for d, middle in rest])
    A, b, c = term.quadratic[:K], term.linear[:K], term.constant[:K]
    constant = c + b[:, held] @ t + np.einsum("d,kde,e->k", t, A[:, held][:, :, held], t)
    linear = b[:, free] + 2 * np.einsum("kde,e->kd", A[:, free][:, :, held], t)
    values = [
        [None if np.isnan(x) else float(x) for x in term.numbers[: len(shown[number].values), d]]
        for number, d in zip(numbers, free)
    ]
    return {
        "label": term.label,
        "kind": "polynomial",
        "columns": numbers,
        "numbers": values,
        "quadratic": packed(A[:, free][:, :, free]),
        "linear": packed(linear),
        "constant": constant.tolist(),
    }


def packed(numbers: Array) -> str:
    """Return numbers of eight bytes each, row by row, as base64.

    >>> packed(np.array([[1.0]]))
    'AAAAAAAA8D8='
    """
    return base64.b64encode(np.ascontiguousarray(numbers, dtype="<f8").tobytes()).decode()


# -- the section -------------------------------------------------------------------------------------------------------
def nomogram_section(material: Material, data: dict[str, Any], share: float) -> str:
    """Scales of the columns, which go into `data`, too; the script adds their evidence."""
    scales, clf = material.scales, material.clf
    columns = [one for one in scales.columns if one.decibans is not None]
    if scales.reason or not columns or len(clf.classes_) < 2:
        why = scales.reason or "no column has a scale"
        return "" if not scales.columns else f"<p>There is no nomogram: {escape(why)}.</p>"
    K = min(len(clf.classes_), MOST_CURVES)
    columns = most_telling(scales)
    most = max(5, int(share * NUMBERS / K / max(len(one.values) for one in columns)))
    most = min(most, room_for(columns, scales.terms, K, share))
    left = columns[most:]
    columns = columns[:most]
    if not columns:
        return "<p>There is no nomogram: the formulas of several columns together are too large for this page.</p>"
    offsets = scales.offsets[:K]
    base = scales.base[:K].copy()
    for one in left:
        base += one.decibans[one.middle, :K]  # type: ignore[index]
    pairs: dict[str, Any] | None = None
    levels: dict[int, list[int]] = {}
    if scales.pairs is not None:
        pairs, levels = _pair_tables(scales.pairs, columns, left, K)
        numbers = sum(np.size(one["table"]) for one in pairs["tables"])
        if numbers > 2 * share * NUMBERS:
            return f"<p>There is no nomogram: the tables of pairs of columns would hold {numbers:,} numbers.</p>"
    names = [short(name, 40) for name in clf.classes_[:K]]
    prior = convert(np.maximum(clf.log_prior()[:K], -300.0), "decibans")
    data["nomogram"] = {
        "classes": names,
        "prior": [rounded(p, 4) for p in prior],
        "offsets": [rounded(o, 6) for o in offsets],
        "base": [rounded(b, 6) for b in base],
        "always": bool(left or base.any() or any(one.missing is not None and one.missing.any() for one in columns)),
        "pairs": pairs,
        "joint": packed_terms(scales.terms, columns, left, K) if scales.terms else None,
        "columns": [
            {
                "values": [value_text(value) for value in one.values],
                "decibans": [[rounded(e, 4) for e in row[:K]] for row in np.asarray(one.decibans)],
                "missing": None if one.missing is None else [rounded(e, 4) for e in one.missing[:K]],
                "own": bool(np.asarray(one.decibans).any()),
                "levels": levels.get(one.position),
            }
            for one in columns
        ],
    }
    rows = "".join(_scale_row(number, one) for number, one in enumerate(columns))
    choice = ""
    if len(clf.classes_) > 2:
        for ident, text, first in (("over", "Evidence for", 1), ("against", "over", 0)):
            options = "".join(
                f'<option value="{k}"{" selected" if k == first else ""}>{escape(name)}</option>'
                for k, name in enumerate(names)
            )
            choice += f'<div><label for="{ident}">{text}</label><br><select id="{ident}">{options}</select></div>'
    start = rounded(prior[1] - prior[0], 2)
    notes = []
    if left:
        notes.append(f"{len(left):,} more columns stay at their typical values.")
    if scales.left_out:
        notes.append(f"Without a scale, and so without evidence here: {shortened(scales.left_out)}.")
    if len(clf.classes_) > K:
        notes.append(f"The first {K} classes.")
    several = [("nomogram-pairs", "pairs of columns")] if pairs is not None else []
    several += [(f"nomogram-term-{number}", term.label) for number, term in enumerate(scales.terms)]
    listed = "".join(f"<li><b>{escape(label)}:</b> <span id='{ident}'></span></li>" for ident, label in several)
    together = f"<h3>Several columns together</h3><ul class='notes'>{listed}</ul>" if several else ""
    if several:
        text = (
            "Set the value of each column: the number beside it is the evidence of this column by itself. Its curve shows "
            "how the evidence of the whole row changes with this value while the others stay: above the middle line it "
            "is more for the class than now. The evidence of several columns together depends on all their values and is "
            "computed for those that are set. All of it is added; with the prior it gives the probability."
        )
    else:
        text = (
            "Set the value of each column: its curve shows the evidence of every value, above the middle line for the "
            "class. The evidence of all columns is added; with the prior it gives the probability."
        )
    return (
        f"<p>{text}</p>"
        f"<div class='controls'>{choice}<div><label for='nomogram-prior'>Prior odds</label>"
        f"<input id='nomogram-prior' type='range' min='-60' max='60' step='any' value='{start}'>"
        f"<output id='nomogram-prior-text' for='nomogram-prior'></output></div></div>"
        "<div class='sum' role='status'><span id='nomogram-sum'></span> → P = <span id='nomogram-probability'></span></div>"
        f"{rows}{together}"
        f"<p class='quiet'>{escape(' '.join(notes))}</p>"
    )


def _pair_tables(
    pairs: Pairs, shown: list[ColumnScale], fixed: list[ColumnScale], K: int
) -> tuple[dict[str, Any], dict[int, list[int]]]:
    """Tables of pairs over the levels that values have, and the level of each value, by the position of the column.

    A fixed column has one level, that of its typical value. Pairs with a column that is missing have no evidence.
    """
    place = {one.position: number for number, one in enumerate(shown)}
    middles = {one.position: one.middle for one in fixed}
    used: list[Array] = []  # levels of each column that occur
    levels: dict[int, list[int]] = {}
    for c, j in enumerate(pairs.columns):
        m = len(shown[place[j]].values) if j in place else 0
        own = pairs.levels[:m, c] if j in place else pairs.levels[[middles[j]], c] if j in middles else np.array([-1])
        found, at = np.unique(own, return_inverse=True)
        used.append(found)
        if j in place:
            levels[j] = at.tolist()
    tables = []
    for (a, b), table, weight in zip(pairs.pairs, pairs.tables, pairs.weights):
        if min(used[a][0], used[b][0]) < 0:
            continue
        cells = table[np.ix_(used[a], used[b])][:, :, :K]
        columns = [place.get(pairs.columns[c], -1) for c in (a, b)]
        nats = [[[rounded(e, 6) for e in cell] for cell in row] for row in cells]
        tables.append({"parents": [int(a), int(b)], "columns": columns, "weight": rounded(weight, 6), "table": nats})
    return {"parents": len(pairs.columns), "averaged": rounded(pairs.averaged, 6), "tables": tables}, levels


def _scale_row(number: int, column: ColumnScale) -> str:
    name, last, ident = short(column.name, 60), len(column.values) - 1, f"scale-{number}"
    curve = '<svg viewBox="0 0 100 20" preserveAspectRatio="none" aria-hidden="true"><path class="grid" d="M0 10H100"/><polyline class="line" points=""/><line class="mark" y1="0" y2="20"/></svg>'
    if column.kind == "category":
        options = "".join(f'<option value="{i}">{text_of(value, 40)}</option>' for i, value in enumerate(column.values))
        gap = "" if column.missing is None else '<option value="-1">missing</option>'
        control = f'<select id="{ident}">{options}{gap}</select>'
    else:
        least = 0 if column.missing is None else -1
        control = f'<input id="{ident}" type="range" min="{least}" max="{last}" step="1" value="{column.middle}">'
    return f'<div class="scale" data-column="{number}"><label for="{ident}">{escape(name)}</label><div class="track-cell">{curve}{control}</div><output for="{ident}"></output></div>'
