"""The weights of a mixture's components: Dirichlet posteriors of the rows that each has."""

import numpy as np
import pytest

from deciban import Mixture, Poisson

rng = np.random.default_rng(0)
X = np.r_[rng.poisson(2.0, (60, 2)), rng.poisson(20.0, (20, 2))]


@pytest.mark.parametrize("alpha", [1.0, 3.0])
@pytest.mark.parametrize("rule", ["ml", "map", "mean"])
def test_weights_are_those_of_the_rule(rule, alpha):
    fitted = Mixture(Poisson(2.0, 1.0), 2, alpha).fit(X, random_state=0)
    counts = np.asarray(fitted.counts)
    np.testing.assert_allclose(counts.sum(), len(X))
    more = {"ml": 0.0, "map": alpha - 1, "mean": alpha}[rule]
    expected = (counts + more) / (counts + more).sum()
    np.testing.assert_allclose(np.exp(fitted.density(rule).log_weights), expected, rtol=1e-12)


def test_the_best_of_several_starts_is_kept():
    fitted = Mixture(Poisson(2.0, 1.0), 4, n_starts=8).fit(X, random_state=0)
    starts = fitted.trace.starts
    assert len(starts) == 8
    assert max(starts) > min(starts)  # starts differ, so that it matters which is kept
    assert fitted.trace.objective[0] >= max(starts) - 1e-9 * abs(max(starts))
