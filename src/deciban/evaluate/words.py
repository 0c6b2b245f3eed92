"""An evaluation in a dozen lines that a person wants to read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from deciban.score import Array
from deciban.wording import decibans_text

if TYPE_CHECKING:
    from deciban.evaluate.report import Evaluation

MOST = 3  # confusions and classes that are named
FIGURES = {"error": "error_rate", "log loss": "log_loss", "Brier": "brier", "Cllr": "cllr", "EER": "eer"}


def summary(told: Evaluation) -> Iterator[str]:
    """Line by line: the size, each figure with what it means, the worst confusions, and warnings."""
    how = ", each scored as if it had not been learnt" if told.learnt else ""
    yield f"{count(len(told), 'row')}, {count(len(told.classes), 'class', 'classes')}{how}"
    wrong = int((told.decided != told.codes).sum())
    yield _line(told, "error", _percent(told.error_rate), f"{wrong:,} of {len(told):,}")
    if not np.array_equal(told.cost, 1 - np.eye(len(told.classes))):
        yield _line(told, "cost", f"{told.mean_cost:.3f}", "a row, at the given costs")
    yield _line(told, "log loss", f"{told.log_loss:.3f}", f"{told.log_loss_of_prior:.3f} for knowing only the prior")
    yield _line(told, "Brier", f"{told.brier:.3f}", "")
    yield _cllr_line(told)
    if len(told.classes) == 2:
        yield from _two_class_lines(told)
    else:
        yield from _class_lines(told)
    yield from _confusion_lines(told)
    if told.impossible:
        yield f"{count(told.impossible, 'row')} that no class could have produced: answered with the prior"
    if told.selected_on:
        yield f"selected on these very rows: {', '.join(told.selected_on)}; new rows may do worse"


def count(number: int, one: str, many: str = "") -> str:
    """A number of things.

    >>> count(1, "row"), count(1200, "class", "classes")
    ('1 row', '1,200 classes')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _cllr_line(told: Evaluation) -> str:
    cost = told.known("cllr")
    if cost is None:
        return _line(told, "Cllr", "–", "needs rows of every class")
    harm = "worse than saying nothing (1.00); " if cost > 1 else ""
    if cost == np.inf:
        return _line(told, "Cllr", "∞", f"{harm}a true class was held impossible")
    least, lost = told.min_cllr, told.calibration_loss
    remark = f"{harm}{least:.3f} if calibrated at its best, so at most {lost:.3f} is lost to calibration"
    return _line(told, "Cllr", f"{cost:.3f}", remark)


def _two_class_lines(told: Evaluation) -> Iterator[str]:
    if told.known("eer") is None:
        return
    ratio, is_second = told.scores()
    first, second = told.classes
    yield _line(told, "EER", _percent(told.eer), f"{second} against {first}")
    for_second, for_first = (decibans_text(_middle(ratio[side])) for side in (is_second, ~is_second))
    remark = f"typically for {second} where it is true; {for_first} where {first} is"
    yield _line(told, "evidence", f"{for_second} dban", remark)


def _class_lines(told: Evaluation) -> Iterator[str]:
    """The classes that are told from the rest least well."""
    judged = [(label, figures) for label, figures in told.per_class.items() if figures.cllr is not None]
    for label, figures in sorted(judged, key=lambda one: -one[1].cllr)[:MOST]:  # type: ignore[operator]
        remark = f"{label} against the rest; {figures.min_cllr:.3f} at best, EER {_percent(figures.eer or 0.0)}"
        yield _line(told, "  Cllr", f"{figures.cllr:.3f}", remark)


def _confusion_lines(told: Evaluation) -> Iterator[str]:
    off = told.confusion * (1 - np.eye(len(told.classes), dtype=int))
    worst = np.argsort(-off, axis=None, kind="stable")[:MOST]
    pairs = [divmod(int(at), len(told.classes)) for at in worst if off.flat[at]]
    for number, (true, decided) in enumerate(pairs):
        names = f"{told.classes[true]} taken for {told.classes[decided]}"
        share = f"{off[true, decided]:,} of {told.confusion[true].sum():,}"
        yield _line(told, "confused" if not number else "", "", f"{names} {share}")


def _line(told: Evaluation, name: str, value: str, remark: str) -> str:
    chosen = FIGURES.get(name, name) in told.selected_on or name in told.selected_on
    remark = "; ".join(part for part in (remark, "selected on" if chosen else "") if part)
    return f"{name:<9} {value:>10}     {remark}".rstrip()


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _middle(values: Array) -> float:
    """The median, and of an even number the lower middle one: the mean of −inf and +inf is nothing."""
    return float(np.sort(values)[(len(values) - 1) // 2])
