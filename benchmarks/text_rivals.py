"""Texts of several regimes, beside tuned rivals: few and many rows, short and long texts, few and many classes.

Each regime is a sample of a data set, so that a decision is about the regime and not about one set: 500 or 2,000 rows
to learn, and at most 1,500 others to judge. Short texts are subject lines and first sentences. "Skewed" classes have 1
to about 200 rows, and test rows in the same proportions; classes that were not learnt are left out of the test rows.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.dummy import DummyClassifier
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import ComplementNB
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from deciban import GenerativeClassifier, Text
from harness import Row, benchmark

JUDGED = 1_500
LEAST = 1e-12  # probability
FILES = {
    "20ng": "20newsgroups/20news_bydate.jsonl.gz",
    "imdb": "imdb/imdb.jsonl.gz",
    "r8": "r8/r8.jsonl.gz",
    "webkb": "webkb/webkb_stemmed.jsonl.gz",
    "sms": "sms_spam/sms_spam.jsonl.gz",
    "polarity": "review_polarity/review_polarity_v2.jsonl.gz",
    "code": "c_or_python/c_or_python.jsonl.gz",
    "ewt": "ud_english_ewt/ewt_pos.jsonl.gz",
}
Pair = tuple[str, str]  # a text and its label


class Regime(NamedTuple):
    """Rows to learn and rows to judge."""

    name: str
    train: list[Pair]
    test: list[Pair]


def load(folder: str, name: str) -> list[dict[str, Any]]:
    """Return the rows of a data set."""
    with gzip.open(Path(folder, FILES[name]), "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def first_sentence(text: str) -> str:
    """Return the text up to its first full stop."""
    return re.split(r"(?<=[.!?])\s", text, maxsplit=1)[0]


def subject(text: str) -> str:
    """Return the subject line of a posting."""
    found = re.search(r"^Subject: (?:Re: )?(.*)$", text, re.M)
    return found[1] if found else ""


def body(text: str) -> str:
    """Return a posting without its header."""
    return text.partition("\n\n")[2]


def sample(name: str, pairs: list[Pair], n: int, seed: int, skewed: bool = False) -> Regime:
    """Draw rows to learn and rows to judge; with `skewed`, the k-th class has at most a share of about 1/k."""
    rng = np.random.default_rng(seed)
    labels = np.array([label for _, label in pairs])
    order = rng.permutation(len(pairs))
    if skewed:
        names = rng.permutation(np.unique(labels))
        shares = 1 / np.arange(1, len(names) + 1)
        most = dict(zip(names, np.maximum(2, 1.5 * (n + JUDGED) * shares / shares.sum())))
        seen = dict.fromkeys(names, 0)
        kept = []
        for at in order:
            seen[labels[at]] += 1
            if seen[labels[at]] <= most[labels[at]]:
                kept.append(at)
        order = np.array(kept)
    train = [pairs[at] for at in order[:n]]
    known = {label for _, label in train}
    test = [pairs[at] for at in order[n:] if pairs[at][1] in known][:JUDGED]
    return Regime(f"{name}, {n:,}", train, test)


def regimes(folder: str, seed: int = 0) -> Iterator[Regime]:
    """Yield the regimes, short ones first."""
    every = {name: load(folder, name) for name in FILES}
    of = {name: [(row["text"], str(row["label"])) for row in rows] for name, rows in every.items() if name != "ewt"}
    genre = [(" ".join(row["words"]), row["id"].split("-")[0]) for row in every["ewt"]]
    project = [(row["text"][:1_500], row["project"]) for row in every["code"]]
    topics = [pair for name in ("20ng", "r8", "webkb", "sms") for pair in of[name]] + project
    for n in (500, 2_000):
        yield sample("SMS", of["sms"], n, seed)
        yield sample("R8", of["r8"], n, seed)
        yield sample("WebKB", of["webkb"], n, seed)
        yield sample("subject lines, 20 groups", [(subject(t), y) for t, y in of["20ng"]], n, seed)
        yield sample("sentences, 5 genres", genre, n, seed)
        yield sample("first sentences, IMDB", [(first_sentence(t), y) for t, y in of["imdb"]], n, seed)
        yield sample("R8, ten words", [(" ".join(t.split()[:10]), y) for t, y in of["r8"]], n, seed)
        yield sample("50 skewed topics", [(t[:2_000], y) for t, y in topics], n, seed, skewed=True)
        yield sample("20 skewed groups", [(body(t), y) for t, y in of["20ng"]], n, seed, skewed=True)
        yield sample("20 groups", [(body(t), y) for t, y in of["20ng"]], n, seed)
        yield sample("IMDB", of["imdb"], n, seed)
    yield sample("16 projects", project, 400, seed)
    yield sample("polarity", of["polarity"], 1_400, seed)


def rivals(train: list[Pair]) -> dict[str, Callable[[], Any]]:
    """Return what is fitted beside deciban; the number of folds is what the classes allow."""
    fewest = np.unique([label for _, label in train], return_counts=True)[1].min()
    folds = StratifiedKFold(int(max(2, min(3, fewest))), shuffle=True, random_state=0)
    words: dict[str, Any] = {"sublinear_tf": True, "ngram_range": (1, 2)}

    def logistic() -> Any:
        options: dict[str, Any] = {"cv": folds, "scoring": "neg_log_loss", "max_iter": 200, "tol": 1e-3}
        return make_pipeline(TfidfVectorizer(**words), LogisticRegressionCV(Cs=[1, 10, 100, 1000], **options))

    return {
        "logistic": logistic,
        "SVM": lambda: make_pipeline(
            TfidfVectorizer(**words), CalibratedClassifierCV(LinearSVC(), cv=folds, method="sigmoid")
        ),
        "ComplementNB": lambda: make_pipeline(CountVectorizer(), ComplementNB()),
        "prior": lambda: DummyClassifier(strategy="prior"),
    }


def ours() -> dict[str, Callable[[], Any]]:
    """Return deciban's own sides."""
    return {
        "Text()": lambda: GenerativeClassifier(Text()),
        'ngrams="auto"': lambda: GenerativeClassifier(Text(ngrams="auto")),
    }


class Figures(NamedTuple):
    """Test log losses of each row, accuracy, and CPU seconds of the fit."""

    losses: np.ndarray
    accuracy: float
    seconds: float


def judged(make: Callable[[], Any], regime: Regime) -> Figures:
    """Fit a model and judge it on the other rows; without losses where it refuses classes of one row."""
    texts, labels = zip(*regime.train)
    start = time.process_time()
    try:
        model = make().fit(list(texts), np.array(labels))
    except ValueError:
        return Figures(np.zeros(0), np.nan, np.nan)
    seconds = time.process_time() - start
    texts, truth = zip(*regime.test)
    p = model.predict_proba(list(texts))
    own = np.searchsorted(model.classes_, np.array(truth))
    losses = -np.log(np.maximum(p[np.arange(len(own)), own], LEAST))
    return Figures(losses, float((p.argmax(axis=1) == own).mean()), seconds)


@benchmark("text-rivals")
def text_rivals(share: float) -> Iterator[Row | str]:
    """Test log loss and accuracy of texts of several regimes, beside tuned rivals; needs DECIBAN_DATA."""
    folder = os.environ.get("DECIBAN_DATA")
    if folder is None:
        yield "DECIBAN_DATA names no directory of data sets: nothing was run"
        return
    names = [*ours(), "logistic", "SVM", "ComplementNB", "prior"]
    yield f"| log loss (accuracy) | {' | '.join(names)} | best or level |\n|{'---|' * (len(names) + 2)}"
    for regime in regimes(folder):
        if share < 1 and len(regime.train) > 500:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # classes with fewer rows than folds
            found = {name: judged(make, regime) for name, make in {**ours(), **rivals(regime.train)}.items()}
        shown = " | ".join(
            f"{each.losses.mean():.3f} ({each.accuracy:.3f})" if len(each.losses) else "" for each in found.values()
        )
        yield f"| {regime.name} | {shown} | {level(found)} |"


def level(found: dict[str, Figures]) -> str:
    """Whether the default is best, or within 2 %, .005 or one paired standard error of the best rival."""
    own = found["Text()"].losses
    others = [each.losses for name, each in found.items() if name not in ours() and len(each.losses)]
    best = min(others, key=lambda each: float(each.mean()))
    above = own - best
    margin = max(0.02 * best.mean(), 0.005, above.std() / np.sqrt(len(above)))
    return "yes" if above.mean() <= margin else "NO"
