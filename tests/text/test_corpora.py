"""The same vocabulary and counts as scikit-learn's on real texts. Large sets are thinned out."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest
from sklearn.feature_extraction.text import CountVectorizer as Theirs

from deciban.kernels import forced
from deciban.sklearn import CountVectorizer

DATA = os.environ.get("DECIBAN_DATA")
MOST_DOCUMENTS = 4000

pytestmark = pytest.mark.skipif(DATA is None, reason="DECIBAN_DATA names no directory of data sets")


def texts_of(path: Path) -> list[str]:
    """Every text of a set: lines of JSON with a text or a list of words, or plain lines."""
    if path.suffix != ".gz":
        return path.read_text(encoding="utf-8").splitlines()
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return [row["text"] if "text" in row else " ".join(row["words"]) for row in rows]


def sets() -> list[Path]:
    if DATA is None:
        return []
    return sorted([*Path(DATA).glob("*/*.jsonl.gz"), *Path(DATA).glob("*/*.titles")])


@pytest.mark.slow
@pytest.mark.parametrize("path", sets(), ids=lambda path: path.parent.name)
def test_vocabulary_and_counts_are_those_of_scikit_learn(path):
    texts = texts_of(path)
    texts = texts[:: -(-len(texts) // MOST_DOCUMENTS)]
    theirs, ours = Theirs(), CountVectorizer()
    expected = theirs.fit_transform(texts)
    with forced("numba"):
        got = ours.fit_transform(texts)
        again = ours.transform(texts)
    assert ours.vocabulary_ == theirs.vocabulary_
    assert (got != expected).nnz == 0
    assert (again != expected).nnz == 0
    assert type(got) is type(expected)
    assert got.dtype == expected.dtype
