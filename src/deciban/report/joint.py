"""Evidence of several columns together, packed for the script of the page, which computes it for the values set.

Columns that the page does not show stay at their typical values: their parts are added to the constants.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np

from deciban.evidence.scores import convert
from deciban.model.joint_evidence import CosineTerm, JointTerm, PolynomialTerm, Waves
from deciban.report.columns import ColumnScale, Scales
from deciban.statistics import Array

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
    """Return of how many of the columns, from the first on, the formulas fit into `share` of their room."""
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
