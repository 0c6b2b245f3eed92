"""Plots of hidden variables show the numbers of the models."""

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

from deciban import Categorical, Gaussian, HiddenMarkovModel, Mixture, Multinomial, plots
from deciban.errors import InputError, NotAvailableError
from deciban.latent.em import Trace

mpl.use("Agg")


@pytest.fixture(scope="module")
def two():
    X = np.random.default_rng(0).normal(size=(80, 3)) + np.repeat([[0, 0, 0], [7, 7, 7]], 40, axis=0)
    return Mixture(Gaussian(), 2).fit(X, random_state=0), X


def test_clusters_show_every_row_and_the_ellipses_of_every_component(two):
    fitted, X = two
    ax = plots.clusters(fitted, X, (0, 2), ax=Figure().subplots())
    rows = [line for line in ax.lines if line.get_gid() == "rows"]
    assert sum(len(line.get_xdata()) for line in rows) == len(X)
    assert len(ax.patches) == 4
    assert ax.get_xlabel() == "column 0"
    with pytest.raises(InputError, match="features"):
        plots.clusters(fitted, X, (0, 9))


def test_components_that_are_not_gaussian_have_no_ellipses():
    X = np.random.default_rng(0).multinomial(20, [0.5, 0.3, 0.2], 30)
    with pytest.raises(NotAvailableError, match="Gaussian"):
        plots.clusters(Mixture(Multinomial(), 2).fit(X, random_state=0), X)


def test_a_trace_is_drawn_as_it_was(two):
    fitted, X = two
    ax = plots.em_trace(fitted, rows=len(X), ax=Figure().subplots())
    np.testing.assert_allclose(ax.lines[0].get_ydata(), np.array(fitted.trace.objective) / len(X))
    with pytest.raises(InputError, match="no step"):
        plots.em_trace(Trace())


def test_states_fill_the_height_at_every_step():
    dice = {"fair": Categorical.of([1 / 6] * 6), "loaded": Categorical.of([0.1] * 5 + [0.5])}
    casino = HiddenMarkovModel.from_densities(dice, start=[0.5, 0.5], transitions=[[0.98, 0.02], [0.05, 0.95]])
    rolls, rolled = casino.sample(120, random_state=3)
    ax = plots.state_sequence(casino, rolls, rolled, ax=Figure().subplots())
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["fair", "loaded"]
    assert ax.get_xlim() == (0, 119)
