"""Whether calibration on leave-one-out scores can be trusted: the Cllr of test rows, beside what was possible at best.

    uncalibrated   the model as it is
    ours           calibrated on exact leave-one-out scores of the training rows; no row is held out
    on the test    the same calibrator fitted on the test scores themselves: at best, and a little better than honest
    on the others  the same calibrator fitted on nine tenths of the test scores, judged on the last tenth, in turn

Kept: ours is at most 1.05 × that fitted on the test, or .01 above it; figures are means over the rounds, and "alone"
counts the rounds that keep it by themselves. Halved: at most half of the uncalibrated, where that exceeds .3.
Texts are read by `Text()` with its own choices; a word of one text alone leaves the vocabulary with that text.
"""

from __future__ import annotations

import csv
import gzip
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit
from sklearn.naive_bayes import CategoricalNB, MultinomialNB

from deciban import Categorical, GenerativeClassifier, Text
from deciban.evaluate import Evaluation, LengthAware, Offsets, cllr
from harness import Row, benchmark

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
    "scikit-learn's",
    "CalibratedClassifierCV",
]
WIDTHS = [28, 14, 12, 5, 11, 13, 4, 7, 6, 14, 22]
SIDES = ("raw", "ours", "best", "others", "plain", "peer")


class Task(NamedTuple):
    """A data set, the rounds it is judged in (each a list of train and test rows), and how rows become columns."""

    name: str
    labels: Any
    rounds: list[list[tuple[Any, Any]]]
    columns: Callable[[Any], tuple[Any, Any]]  # training rows → our table and scikit-learn's, of all rows
    family: Any

    @property
    def words(self) -> bool:
        """Whether rows have a length, which calibration looks at."""
        return not isinstance(self.family, Categorical)


@dataclass(frozen=True)
class Figures:
    """Cllr of each side, in the order of SIDES, for one class against the rest."""

    name: str
    rows: str
    cllr: dict[str, float]
    alone: Sequence[bool] = ()  # whether each round, where there are several, keeps its own bound

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


# -- the data ---------------------------------------------------------------------------------------------------------
def sms(folder: Path, share: float) -> Task:
    """Ten random splits, 70/30."""
    held = _documents(folder / "sms_spam" / "sms_spam.jsonl.gz", share)
    orders = [np.random.default_rng(seed).permutation(len(held)) for seed in range(10)]
    cut = int(0.7 * len(held))
    rounds = [[(order[:cut], order[cut:])] for order in orders]
    return Task("SMS spam, 10 splits", *_labels(held), rounds, _counted(held), Text())


def votes(folder: Path, share: float) -> Task:
    """Ten folds, pooled; what was not voted is missing for us, and a third answer for scikit-learn."""
    with open(folder / "house_votes_84" / "house_votes_84.csv", newline="") as file:
        held = list(csv.reader(file))[1 :: _every(share)]
    labels = np.array([row[0] for row in held])
    gaps = np.array([[None if cell == "?" else cell for cell in row[1:]] for row in held], dtype=object)
    codes = np.array([["?ny".index(cell) for cell in row[1:]] for row in held])
    splitter = StratifiedKFold(10, shuffle=True, random_state=0)
    return Task(
        "house votes, 10 folds", labels, [list(splitter.split(codes, labels))], lambda _: (gaps, codes), Categorical()
    )


def polarity(folder: Path, share: float) -> Task:
    """The ten official folds, pooled."""
    held = _documents(folder / "review_polarity" / "review_polarity_v2.jsonl.gz", share)
    folds = np.array([str(row["fold"]) for row in held])
    rounds = [[(np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)) for fold in np.unique(folds)]]
    return Task("review polarity, 10 folds", *_labels(held), rounds, _counted(held), Text())


def r8(folder: Path, share: float) -> Task:
    """The official split; each class against the rest."""
    held = _documents(folder / "r8" / "r8.jsonl.gz", share)
    part = np.array([row["split"] for row in held])
    rounds = [[(np.flatnonzero(part == "train"), np.flatnonzero(part == "test"))]]
    return Task("R8", *_labels(held), rounds, _counted(held), Text())


def r8_shuffled(folder: Path, share: float) -> Task:
    """Four random splits of the same sizes, averaged: what is left when chance has less of a say than in one split."""
    official = r8(folder, share)
    tested = len(official.rounds[0][0][1])
    splits = StratifiedShuffleSplit(4, test_size=tested, random_state=0).split(official.labels, official.labels)
    return official._replace(name="R8 shuffled", rounds=[[split] for split in splits])


def _documents(path: Path, share: float) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(row) for row in file][:: _every(share)]


def _every(share: float) -> int:
    return max(1, round(1 / share))


def _labels(held: list[dict[str, Any]]) -> tuple[Any]:
    return (np.array([row["label"] for row in held]),)


def _counted(held: list[dict[str, Any]]) -> Callable[[Any], tuple[Any, Any]]:
    texts = [row["text"] for row in held]

    def columns(train: Any) -> tuple[Any, Any]:
        counts = CountVectorizer().fit([texts[i] for i in train]).transform(texts).tocsr()
        return np.array(texts, dtype=object), counts

    return columns


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
        yield _figures(f"{task.name}: {label}", f"{(first.codes == k).sum():,} of {len(first):,}", figures)
    yield _figures(f"{task.name}: mean", f"{len(first):,}", [_mean(list(one)) for one in zip(*each.values())])


def _figures(name: str, rows: str, rounds: list[dict[str, float]]) -> Figures:
    alone = [Figures(name, rows, figures).kept for figures in rounds] if len(rounds) > 1 else ()
    return Figures(name, rows, _mean(rounds), alone)


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
    return {side: Evaluation(tables[side], codes, classes, prior) for side in SIDES}


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
    }
