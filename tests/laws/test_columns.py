"""Rows with more or fewer columns than those learnt are refused by families that were fitted without classes."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from cases import CASES
from deciban import Gaussian, Mixture
from deciban.errors import InputError
from deciban.families.fitted import number_of_columns


@pytest.mark.parametrize("case", CASES, ids=repr)
@pytest.mark.parametrize("change", [-1, 1])
def test_rows_of_another_width_are_refused(case, change):
    rows = case.rows(np.random.default_rng(0), 40)
    fitted = case.family.fit(rows)
    if number_of_columns(fitted.stats) is None:
        pytest.skip("a product takes its columns by name")
    whole = rows.toarray() if sp.issparse(rows) else np.asarray(rows)
    others = whole[:, :change] if change < 0 else np.concatenate([whole, whole[:, :1]], axis=1)
    if not others.shape[1]:
        pytest.skip("the case has a single column")
    others = type(rows)(others) if sp.issparse(rows) else others
    before, said = repr(fitted), f"the rows have {others.shape[1]} columns, and {whole.shape[1]} were learnt"
    if "text" in fitted.family.accepts:
        said = "not a text but list"
    for use in (fitted.log_density, fitted.learn, fitted.unlearn):
        with pytest.raises(InputError, match=said):
            use(others)
    assert repr(fitted) == before


@pytest.mark.parametrize("others", [np.zeros((2, 1)), np.zeros(2), [[0.0], [1.0]], [0.0, 1.0], np.zeros((2, 3))])
def test_a_mixture_refuses_rows_of_another_width(others):
    clusters = Mixture(Gaussian(), 2).fit(np.random.default_rng(0).normal(size=(40, 2)))
    for use in (clusters.log_density, clusters.predict, clusters.learn):
        with pytest.raises(InputError, match="and 2 were learnt"):
            use(others)
