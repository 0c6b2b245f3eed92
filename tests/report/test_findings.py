"""Findings about a model: the evidence of features does not depend on how many rows are explained at a time."""

import numpy as np
import pytest

from deciban import GenerativeClassifier, Text
from deciban.read.tables import Table
from deciban.report import findings


@pytest.mark.parametrize("classes", [2, 3])
def test_evidence_of_words_is_the_same_in_pieces(classes, monkeypatch):
    rng = np.random.default_rng(0)
    labels = np.array(["alpha", "beta", "gamma"])[np.arange(30) % classes]
    texts = [" ".join(rng.choice(["one", "two", "three", str(label)], 6)) for label in labels]
    clf = GenerativeClassifier(Text()).fit(texts, labels)
    rows = Table.of(np.array(texts, dtype=object)[:, None])
    whole = {each.name: each for each in findings.feature_evidence(clf, rows, labels)}
    monkeypatch.setattr(findings, "FEW_ROWS", 4)
    monkeypatch.setattr(findings, "CELLS", 1)
    pieces = {each.name: each for each in findings.feature_evidence(clf, rows, labels)}
    assert pieces.keys() == whole.keys() >= {"one", "two", "three", "alpha", "beta"}
    for name, each in pieces.items():
        np.testing.assert_allclose(each.nats, whole[name].nats, rtol=1e-12, atol=1e-12)
        assert (each.accuracy, each.rows, each.favours) == (whole[name].accuracy, 30, whole[name].favours)
