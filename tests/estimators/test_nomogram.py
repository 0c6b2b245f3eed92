"""Scales of a nomogram: columns, pairs of columns and constants add up to the calibrated evidence."""

import numpy as np
import pytest

from deciban import GenerativeClassifier
from deciban.model.nomogram import nomogram
from report.tables import table_with_pairs


@pytest.fixture(scope="module")
def fitted():
    table = table_with_pairs()
    return GenerativeClassifier(interactions=6).fit(table, "class"), table.drop(columns="class")[:60]


def scales(clf, rows, known):
    found = nomogram(clf.predictor_, clf._table(rows), known)
    assert found.reason == ""
    return found


def test_columns_pairs_and_offsets_add_up_to_the_evidence_of_each_row(fitted):
    clf, rows = fitted
    found = scales(clf, rows, range(4))
    total = sum(found.evidence.values()) + found.pairs.evidence(found.pairs.levels) + found.offsets
    np.testing.assert_allclose(total[:, 1] - total[:, 0], clf.llr(rows), atol=1e-9)


def test_pairs_carry_most_of_the_evidence_here(fitted):
    clf, rows = fitted
    found = scales(clf, rows, range(4))
    of_pairs = np.abs(np.diff(found.pairs.evidence(found.pairs.levels))).mean()
    assert of_pairs > np.abs(np.diff(sum(found.evidence.values()))).mean()


def test_a_column_without_values_counts_as_missing_in_its_pairs(fitted):
    clf, rows = fitted
    given = rows.assign(two=None)
    found = scales(clf, given, (0, 2, 3))
    total = sum(found.evidence.values()) + found.pairs.evidence(found.pairs.levels) + found.offsets + found.missing[1]
    np.testing.assert_allclose(total[:, 1] - total[:, 0], clf.llr(given), atol=1e-9)
