"""The corpus of the topic benchmarks: documents to learn from, and halves of those held out."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from deciban.text.counting import count_rows
from deciban.text.tokens import Tokens
from deciban.text.vocabulary import Limits
from deciban.topics.documents import halves, perplexity
from deciban.topics.words import coherence, ranked

SETS = ("20newsgroups/20news_bydate.jsonl.gz", "r8/r8.jsonl.gz")
JUDGED, TUNED = 0, 1  # two divisions into learnt and held out: settings are chosen by one, figures come from the other


class Corpus(NamedTuple):
    """Documents to learn from, and the halves of those held out."""

    learnt: Any
    observed: Any
    held: Any

    def judge(self, topics: Any, alpha: float) -> float:
        """The perplexity of what is held out; less is better."""
        return perplexity(topics, self.observed, self.held, alpha, threads=None)

    def coherence(self, topics: Any) -> float:
        """The mean NPMI of the ten first words of each topic."""
        weights = np.full(len(topics), 1 / len(topics))
        return float(coherence(ranked(np.asarray(topics), weights, 10), self.learnt).mean())


def corpus(share: float, division: int = JUDGED) -> Corpus | None:
    """20 Newsgroups and R8, a tenth held out; None where no directory of data sets is named."""
    folder = os.environ.get("DECIBAN_DATA")
    if folder is None:
        return None
    texts = []
    for name in SETS:
        with gzip.open(Path(folder, name), "rt", encoding="utf-8") as lines:
            texts += [json.loads(line)["text"] for line in lines]
    texts = texts[:: max(round(1 / share), 1)]
    X, _ = count_rows(texts, Tokens(stop_words="english"), limits=Limits(min_df=5, max_df=0.5))
    X = sp.csr_array(X[np.flatnonzero(np.diff(X.indptr))], dtype=float)
    order = np.random.default_rng(division).permutation(X.shape[0])
    held = X.shape[0] // 10
    return Corpus(X[np.sort(order[held:])], *halves(X[np.sort(order[:held])]))
