"""What unlabelled documents are worth when labels are few: accuracy against the number of labels, with and without.

    python examples/few_labels.py --data DIR        DIR holds 20newsgroups/ and imdb/, each a .jsonl.gz of
                                                    {"text": …, "label": …, "split": "train" or "test"}

Some training documents keep their labels, all the others lose theirs; the same test documents judge both classifiers.
The third column lets leave-one-out on the labelled documents choose what an unlabelled document weighs.

What to see: twenty newsgroups are twenty clusters of words: unlabelled posts show where the clusters lie, and most so
when labels are fewest. Praise and blame are only one of the ways in which reviews of films differ: unlabelled reviews
help while labels are few, harm once there are many, and a weight chosen by leave-one-out keeps the better of both.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from deciban import GenerativeClassifier, Multinomial, SemiSupervised

CORPORA = {
    "20 Newsgroups": ("20newsgroups", (40, 100, 200, 400, 1000)),
    "IMDB": ("imdb", (20, 50, 100, 400, 1000)),
}
POOL, TEST = 6000, 3000  # documents to learn from, with and without labels, and to be judged by
SEEDS = 3


class Corpus(NamedTuple):
    """Counts of words, and labels."""

    X: Any
    y: Any
    X_test: Any
    y_test: Any


def read(folder: Path, rng: np.random.Generator) -> Corpus:
    """A sample of each part; words that occur in three documents of the first at least."""
    files = sorted(folder.glob("*.jsonl.gz"))
    if not files:
        sys.exit(f"{folder}: there is no .jsonl.gz file. Give the folder that holds {folder.name}/ as --data.")
    with gzip.open(files[0], "rt", encoding="utf-8") as lines:
        documents = [json.loads(line) for line in lines]
    parts = []
    for split, most in (("train", POOL), ("test", TEST)):
        own = [document for document in documents if document["split"] == split]
        chosen = rng.permutation(len(own))[:most]
        parts.append(([own[i]["text"] for i in chosen], np.array([str(own[i]["label"]) for i in chosen])))
    (texts, y), (test_texts, y_test) = parts
    words = CountVectorizer(min_df=3, stop_words="english", binary=True)
    return Corpus(words.fit_transform(texts).astype(float), y, words.transform(test_texts).astype(float), y_test)


def keep_labels(y: Any, labels: int, rng: np.random.Generator) -> Any:
    """The labels of as many documents, evenly over the classes; None for all others."""
    kept = np.full(len(y), None, dtype=object)
    classes = np.unique(y)
    for k, name in enumerate(classes):
        own = rng.permutation(np.flatnonzero(y == name))
        each = labels // len(classes) + (k < labels % len(classes))
        kept[own[:each]] = name
    return kept


def accuracies(corpus: Corpus, labels: int, rng: np.random.Generator) -> list[float]:
    """Without unlabelled documents, with them, and with a weight chosen by leave-one-out."""
    classifier = GenerativeClassifier(Multinomial(0.1), prior="uniform")
    y = keep_labels(corpus.y, labels, rng)
    found = []
    for weight in (0.0, 1.0, "loo"):
        model = SemiSupervised(classifier, unlabelled_weight=weight, max_iter=100, tol=0.01).fit(corpus.X, y)
        found.append(float((model.predict(corpus.X_test) == corpus.y_test).mean()))
    return found


def table(name: str, corpus: Corpus, counts: tuple[int, ...], seeds: int) -> dict[int, list[float]]:
    """The learning curves, as a table."""
    print(f"\n{name}: {corpus.X.shape[0]:,} documents, {corpus.X.shape[1]:,} words, accuracy % over {seeds} draws")
    print(f"{'labels':>8} {'labelled only':>14} {'all documents':>14} {'weight by loo':>14}")
    curve = {}
    for labels in counts:
        each = [accuracies(corpus, labels, np.random.default_rng(seed)) for seed in range(seeds)]
        curve[labels] = (100 * np.mean(each, axis=0)).tolist()
        print(f"{labels:8,}" + "".join(f"{value:15.1f}" for value in curve[labels]), flush=True)
    return curve


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", default=os.environ.get("DECIBAN_DATA"), help="the folder of the corpora")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="draws of the labels that are averaged")
    parser.add_argument("--corpus", choices=list(CORPORA), action="append", help="only this one")
    parser.add_argument("--labels", type=int, action="append", help="only this many")
    options = parser.parse_args()
    if options.data is None:
        sys.exit("say where the corpora are: --data DIR, or the environment variable DECIBAN_DATA.")
    start = time.process_time()
    for name in options.corpus or CORPORA:
        folder, counts = CORPORA[name]
        corpus = read(Path(options.data) / folder, np.random.default_rng(0))
        table(name, corpus, tuple(options.labels or counts), options.seeds)
    print(f"\n{time.process_time() - start:.0f} s CPU")


if __name__ == "__main__":
    main()
