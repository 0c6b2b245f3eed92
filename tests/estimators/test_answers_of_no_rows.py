"""A frame without rows has answers without rows."""

import numpy as np
import pandas as pd
import pytest

from deciban import GenerativeClassifier


@pytest.mark.parametrize("kind", ["table", "texts"])
def test_no_rows_have_no_answers(kind):
    rng = np.random.default_rng(0)
    y = np.array(["a", "b", "c"])[np.arange(150) % 3]
    X = pd.DataFrame(rng.normal(size=(150, 4)) + (np.arange(150) % 3)[:, None], columns=list("pqrs"))
    X["colour"] = np.where(rng.random(150) < 0.3 + 0.2 * (y == "a"), "red", "blue")
    texts = [f"word{i % 3} and then more{i % 7} or other{i}" for i in range(150)]
    rows = X if kind == "table" else pd.DataFrame({"body": texts})
    clf = GenerativeClassifier().fit(rows, y)
    assert clf.predict_proba(rows[:0]).shape == (0, 3)
    assert len(clf.predict(rows[:0])) == 0
    assert clf.llr(rows[:0], "a").shape == (0,)
