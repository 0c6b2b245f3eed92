"""Whether calibration on leave-one-out scores can be trusted: the Cllr of test rows, beside what was possible at best.

    uncalibrated   the model as it is
    ours           calibrated on exact leave-one-out scores of the training rows; no row is held out
    on the test    the same calibrator fitted on the test scores themselves: at best, and a little better than honest
    on the others  the same calibrator fitted on nine tenths of the test scores, judged on the last tenth, in turn
    easier         evidence of a class's test rows less that of its training rows, each left out, in standard errors

Kept: ours is at most 1.05 × that fitted on the test, or .01 above it; figures are means over the rounds, and "alone"
counts the rounds that keep it by themselves. Halved: at most half of the uncalibrated, where that exceeds .3.
Texts are read by `Text()` with its own choices; a word of one text alone leaves the vocabulary with that text.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import CategoricalNB, MultinomialNB

from deciban import GenerativeClassifier
from deciban.evaluate import Evaluation, LengthAware, Offsets, cllr
from harness import Row, benchmark
from trust_data import Task, polarity, r8, r8_shuffled, sms, votes

HEADINGS = [
    "Cllr of test rows",
    "rows",
    "uncalibrated",
    "ours",
    "on the test",
    "on the others",
    "kept",
    "alone",
    "halved",
    "easier",
    "scikit-learn's",
    "CalibratedClassifierCV",
]
WIDTHS = [28, 14, 12, 5, 11, 13, 4, 7, 6, 11, 14, 22]
SIDES = ("raw", "ours", "best", "others", "plain", "peer")


@dataclass(frozen=True)
class Figures:
    """Cllr of each side, in the order of SIDES, for one class against the rest."""

    name: str
    rows: str
    cllr: dict[str, float]
    alone: Sequence[bool] = ()  # whether each round, where there are several, keeps its own bound
    easier: Sequence[float] = ()  # for each round, how far test rows differ from the training rows left out

    @property
    def kept(self) -> bool:
        return self.cllr["ours"] <= max(1.05 * self.cllr["best"], self.cllr["best"] + 0.01)

    @property
    def halved(self) -> bool | None:
        return None if self.cllr["raw"] <= 0.3 else self.cllr["ours"] <= self.cllr["raw"] / 2

    def cells(self) -> list[str]:
        values = {side: f"{self.cllr[side]:.3f}" for side in SIDES}
        flags = ["yes" if flag else "" if flag is None else "NO" for flag in (self.kept, self.halved)]
        flags.insert(1, f"{sum(self.alone)} of {len(self.alone)}" if self.alone else "")
        return [
            self.name,
            self.rows,
            *(values[side] for side in ("raw", "ours", "best", "others")),
            *flags,
            _range(self.easier),
            *(values[side] for side in ("plain", "peer")),
        ]


@benchmark("trust")
def trust(share: float) -> Iterator[Row | str]:
    """Calibration by leave-one-out beside what the test rows themselves allow; needs DECIBAN_DATA."""
    folder = os.environ.get("DECIBAN_DATA")
    if folder is None:
        yield "DECIBAN_DATA is not set: it names the folder that holds sms_spam, house_votes_84, review_polarity and r8"
        return
    yield _line(HEADINGS)
    yield (
        "|"
        + "|".join("-" * (width + 2) if not at else "-" * (width + 1) + ":" for at, width in enumerate(WIDTHS))
        + "|"
    )
    for load in (sms, votes, polarity, r8, r8_shuffled):
        for figures in judge(load(Path(folder), share)):
            yield _line(figures.cells())


def _line(cells: Sequence[str]) -> str:
    words = [cell.rjust(width) if at else cell.ljust(width) for at, (cell, width) in enumerate(zip(cells, WIDTHS))]
    return "| " + " | ".join(words) + " |"


# -- the judgement ----------------------------------------------------------------------------------------------------
def judge(task: Task) -> Iterator[Figures]:
    """One line for two classes; for more, one for each class against the rest, and their mean."""
    rounds = [_round(task, folds) for folds in task.rounds]
    first = rounds[0]["ours"]
    if len(first.classes) == 2:
        yield _figures(task.name, f"{len(first):,}", [_cllr(told) for told in rounds])
        return
    each = {label: [_cllr(told, label) for told in rounds] for label in first.classes}
    for k, (label, figures) in enumerate(each.items()):
        name, rows = f"{task.name}: {label}", f"{(first.codes == k).sum():,} of {len(first):,}"
        yield _figures(name, rows, figures, [_easier(told, label) for told in rounds])
    yield _figures(f"{task.name}: mean", f"{len(first):,}", [_mean(list(one)) for one in zip(*each.values())])


def _figures(name: str, rows: str, rounds: list[dict[str, float]], easier: Sequence[float] = ()) -> Figures:
    alone = [Figures(name, rows, figures).kept for figures in rounds] if len(rounds) > 1 else ()
    return Figures(name, rows, _mean(rounds), alone, easier)


def _easier(told: dict[str, Evaluation], label: Any) -> float:
    """The difference of means of the evidence for a class in its own rows, in standard errors."""
    test, left = (llr[own] for llr, own in (told[side].scores(label) for side in ("ours", "left")))
    return float((test.mean() - left.mean()) / np.sqrt(test.var() / len(test) + left.var() / len(left)))


def _range(values: Sequence[float]) -> str:
    low, high = (f"{value:.1f}".replace("-", "−") for value in (min(values, default=0.0), max(values, default=0.0)))
    return "" if not values else low if len(values) == 1 else f"{low} to {high}"


def _cllr(told: dict[str, Evaluation], over: Any = None) -> dict[str, float]:
    return {side: cllr(*told[side].scores(over)) for side in SIDES}


def _mean(each: list[dict[str, float]]) -> dict[str, float]:
    return {side: float(np.mean([one[side] for one in each])) for side in SIDES}


def _round(task: Task, folds: list[tuple[Any, Any]]) -> dict[str, Evaluation]:
    """Every side's answers to the test rows of all folds."""
    held = [_fold(task, train, test) for train, test in folds]
    tables = {name: np.concatenate([fold[name] for fold in held]) for name in held[0]}
    codes, lengths, prior = tables["codes"], tables["lengths"], np.bincount(tables["codes"]) / len(tables["codes"])
    tables["best"] = _calibrator(task, tables["raw"], codes, lengths).apply(tables["raw"], lengths)
    tables["others"] = np.empty_like(tables["raw"])
    for rest, part in StratifiedKFold(10, shuffle=True, random_state=0).split(codes, codes):
        fitted = _calibrator(task, tables["raw"][rest], codes[rest], lengths[rest])
        tables["others"][part] = fitted.apply(tables["raw"][part], lengths[part])
    classes = np.unique(task.labels).tolist()
    judged = {side: Evaluation(tables[side], codes, classes, prior) for side in SIDES}
    return judged | {"left": Evaluation(tables["left"], tables["left codes"], classes, prior)}


def _calibrator(task: Task, scores: Any, codes: Any, lengths: Any) -> Any:
    if not task.words:
        return Offsets.fit(scores, codes)
    return LengthAware.fit(scores, codes, lengths, np.bincount(codes) / len(codes))  # at the proportions met, as ours


def _fold(task: Task, train: Any, test: Any) -> dict[str, Any]:
    """Log-likelihoods of the test rows, up to what a row's classes share, from each side."""
    ours, theirs = task.columns(train)
    y = task.labels[train]
    clf = GenerativeClassifier(task.family, calibrate="length" if task.words else "offsets").fit(ours[train], y)
    scores = clf.predict_log_proba(ours[test], prior="uniform", raw=True)
    plain = (MultinomialNB() if task.words else CategoricalNB(min_categories=3)).fit(theirs[train], y)
    peer = CalibratedClassifierCV(plain.__class__(**plain.get_params()), cv=5).fit(theirs[train], y)
    with np.errstate(divide="ignore"):
        answers = np.log(peer.predict_proba(theirs[test]))
    rows = clf.family_.encode(ours[test], ["words"], clf.stats_.family)
    length = clf.family_.lengths(rows) if task.words else np.ones(len(test))
    return {
        "raw": scores,
        "ours": clf.predict_log_proba(ours[test], prior="uniform"),
        "plain": plain.predict_log_proba(theirs[test]) - plain.class_log_prior_,
        "peer": answers - plain.class_log_prior_,
        "lengths": np.maximum(length, 1.0),
        "codes": np.searchsorted(clf.classes_, task.labels[test]),
        "left": clf.leave_one_out(ours[train], y, method="predict_log_proba", prior="uniform"),
        "left codes": np.searchsorted(clf.classes_, y),
    }
