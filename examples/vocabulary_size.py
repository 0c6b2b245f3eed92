"""How many words, and which reading of them: McCallum and Nigam's curve, from one counting pass.

Words are ranked by their mutual information with the class. With few words, whether a word is there at all says most:
the Bernoulli reading is ahead. With many, how often it is there says more, and absences only add noise: the multinomial
one is. Both readings of every size come from the same sums: how often each word occurs in each class, and in how many
of its documents.

    python examples/vocabulary_size.py --data DIR               20 Newsgroups and WebKB, whose folders are in DIR
    python examples/vocabulary_size.py --data DIR --plot curve.png

Reference: McCallum and Nigam, A comparison of event models for naive Bayes text classification, 1998.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from deciban import Axis, Bernoulli, Multinomial
from deciban.families.bernoulli import SparseBernoulliStats
from deciban.families.multinomial import MultinomialStats
from deciban.text.counting import count_classes, count_rows
from deciban.text.stats import once
from deciban.text.vocabulary import mutual_information

SETS = {"20 Newsgroups": "20newsgroups/20news_bydate.jsonl.gz", "WebKB": "webkb/webkb_stemmed.jsonl.gz"}
SIZES = (5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000)
Curves = dict[str, list[float]]  # reading → accuracy at each size


def read(file: Path) -> dict[str, tuple[list[str], np.ndarray]]:
    """Texts and labels of the training and of the test part."""
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    parts = {}
    for name in ("train", "test"):
        some = [row for row in rows if row["split"] == name]
        parts[name] = [row["text"] for row in some], np.array([row["label"] for row in some])
    return parts


def curves(train: list[str], labels: np.ndarray, test: list[str], truth: np.ndarray) -> tuple[list[int], Curves]:
    """Accuracy of both readings at each size; the training texts are read twice, those of the test once."""
    classes, codes = np.unique(labels, return_inverse=True)
    sums = count_classes(train, codes, len(classes))
    documents = count_classes(train, codes, len(classes), steps=once).counts  # each word once per document
    rows, _ = count_rows(test, vocabulary=sums.vocabulary)
    ranked = np.argsort(-mutual_information(documents, sums.rows), kind="stable")
    sizes = [size for size in SIZES if size < len(ranked)] + [len(ranked)]
    log_prior = np.log(sums.rows / sums.rows.sum())
    found: Curves = {"Bernoulli": [], "multinomial": []}
    for size in sizes:
        kept = np.sort(ranked[:size])
        X = rows[:, kept].astype(float)
        for reading, density in densities(sums, documents, kept).items():
            scores = density.log_density((X > 0).astype(float) if reading == "Bernoulli" else X) + log_prior
            found[reading].append(float((classes[scores.argmax(axis=1)] == truth).mean()))
    return sizes, found


def densities(sums: Any, documents: np.ndarray, kept: np.ndarray) -> dict[str, Any]:
    """Both readings of the sums of some words, with one added to each count."""
    K, V = len(sums.rows), len(kept)
    counts = MultinomialStats(
        {"class": Axis.of(K), "word": Axis.of(V)}, sums.counts[:, kept], sums.rows, np.zeros((K, 2))
    )
    there = SparseBernoulliStats({"class": Axis.of(K), "feature": Axis.of(V)}, documents[:, kept], sums.rows)
    return {"Bernoulli": Bernoulli().estimate(there, "mean"), "multinomial": Multinomial().estimate(counts, "mean")}


def print_table(name: str, sizes: list[int], found: Curves) -> None:
    print(f"{name}: accuracy by number of words\n{'words':>8}  Bernoulli  multinomial")
    for size, bernoulli, multinomial in zip(sizes, found["Bernoulli"], found["multinomial"]):
        ahead = "←" if bernoulli > multinomial else "        →" if multinomial > bernoulli else ""
        print(f"{size:8,}  {bernoulli:9.3f}  {multinomial:11.3f}  {ahead}".rstrip())
    print()


def plot(drawn: dict[str, tuple[list[int], Curves]], path: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, len(drawn), figsize=(5 * len(drawn), 3.5), squeeze=False)
    for axis, (name, (sizes, found)) in zip(axes[0], drawn.items()):
        for reading, line in (("Bernoulli", "o--"), ("multinomial", "s-")):
            axis.semilogx(sizes, found[reading], line, label=reading, markersize=4)
        axis.set(title=name, xlabel="words, by mutual information", ylabel="test accuracy")
        axis.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", default=os.environ.get("DECIBAN_DATA"), help="folder that holds the sets")
    parser.add_argument("--plot", help="file to draw the curves into")
    options = parser.parse_args()
    if options.data is None:
        parser.error("which folder holds 20newsgroups/ and webkb/? Give --data DIR, or set DECIBAN_DATA.")
    missing = [file for file in SETS.values() if not Path(options.data, file).exists()]
    if missing:
        sys.exit(f"{options.data} holds no {missing[0]}.")
    drawn = {}
    for name, file in SETS.items():
        parts = read(Path(options.data, file))
        drawn[name] = curves(*parts["train"], *parts["test"])
        print_table(name, *drawn[name])
    if options.plot:
        plot(drawn, options.plot)


if __name__ == "__main__":
    main()
