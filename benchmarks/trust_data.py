"""What calibration is judged on: texts and votes, each with the rounds that it is judged in."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit

from deciban import Categorical, Text


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
