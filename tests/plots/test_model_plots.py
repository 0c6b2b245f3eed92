"""Plots of models, answers and parameters show the numbers of the model."""

import subprocess
import sys

import numpy as np
import pytest
from matplotlib.figure import Figure
from numpy.testing import assert_allclose
from scipy import stats as sps
from sklearn.datasets import load_breast_cancer, load_iris

from deciban import Bernoulli, Categorical, Gaussian, GenerativeClassifier, Multinomial, Poisson, plots
from deciban.errors import InputError, NotAvailableError
from report.tables import table_with_pairs

X, Y = load_iris(return_X_y=True, as_frame=True)
HEIGHTS = {"man": Gaussian.of(175.33, 52.89), "woman": Gaussian.of(161.82, 46.89)}


def lines(ax, gid):
    return [(np.asarray(one.get_xdata()), np.asarray(one.get_ydata())) for one in ax.lines if one.get_gid() == gid]


def test_class_densities_are_the_densities():
    ax = plots.class_densities(GenerativeClassifier.from_densities(HEIGHTS), at=174)
    for (x, y), mean, variance in zip(lines(ax, "density"), (175.33, 161.82), (52.89, 46.89)):
        assert_allclose(y, sps.norm(mean, np.sqrt(variance)).pdf(x))
        assert_allclose(np.trapezoid(y, x), 1, atol=0.01)
    assert_allclose([y[0] for _, y in lines(ax, "at")], [0.05395, 0.01198], atol=5e-6)


def test_a_prior_moves_the_boundary_to_where_the_llr_is_the_threshold():
    clf = GenerativeClassifier.from_densities(HEIGHTS)
    ax = plots.class_densities(clf, prior={"woman": 0.9}, span=(150, 195))
    ((at, _),) = lines(ax, "boundary")
    assert_allclose(clf.llr([[at[0]]], "man", "woman"), np.log(9), atol=1e-4)


@pytest.mark.parametrize("structure", ["full", "tied", "diagonal", "spherical"])
def test_the_density_of_one_feature_leaves_the_others_out(structure):
    clf = GenerativeClassifier(Gaussian(structure), rule="ml").fit(X, Y)
    alone = clf.reestimate(columns=[X.columns[2]]) if structure != "spherical" else None
    (x, y), *_ = lines(plots.class_densities(clf, X.columns[2]), "density")
    assert_allclose(np.trapezoid(y, x), 1, atol=0.01)
    if alone is not None:
        assert_allclose(
            y,
            np.exp(
                alone.log_likelihood(X[[X.columns[2]]].iloc[:0].reindex(range(len(x))).assign(**{X.columns[2]: x}))[
                    :, 0
                ]
            ),
            atol=1e-9,
        )


def test_counts_are_drawn_at_whole_numbers():
    clf = GenerativeClassifier(Poisson()).fit([[1], [2], [9], [12]], [0, 0, 1, 1])
    (x, y), _ = lines(plots.class_densities(clf, span=(0, 20)), "density")
    assert_allclose(x, np.arange(21))
    assert_allclose(y, np.exp(clf.log_likelihood(x[:, None])[:, 0]))


@pytest.mark.parametrize("structure", ["full", "tied", "diagonal"])
def test_regions_are_what_predict_says(structure):
    clf = GenerativeClassifier(Gaussian(structure)).fit(X.iloc[:, 2:], Y)
    ax = plots.decision_regions(clf, (0, 1), prior={0: 0.2})
    image = ax.images[0]
    left, right, bottom, top = image.get_extent()
    rows, columns = image.get_array().shape
    i, j = np.random.default_rng(0).integers(0, rows, (2, 200))
    places = np.column_stack([left + (right - left) * j / (columns - 1), bottom + (top - bottom) * i / (rows - 1)])
    asked = X.iloc[:200, 2:].reindex(range(200)).assign(**dict(zip(X.columns[2:], places.T)))
    assert_allclose(image.get_array()[i, j], clf.predict(asked, prior={0: 0.2}))


def test_regions_at_a_cost_are_what_predict_says():
    clf = GenerativeClassifier(Gaussian("full")).fit(X.iloc[:, 2:].to_numpy(), Y)
    cost = {(1, 2): 30, (2, 1): 2}
    image = plots.decision_regions(clf, cost=cost, spans=((1, 7), (0, 3))).images[0]
    x, y = np.linspace(1, 7, 240)[::7], np.linspace(0, 3, 240)[::7]
    plane = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    assert (image.get_array()[::7, ::7].ravel() == clf.predict(plane, cost=cost)).mean() > 0.999  # ties on boundaries


def test_regions_show_rows_and_other_priors():
    clf = GenerativeClassifier(Gaussian("tied")).fit(X, Y)
    ax = plots.decision_regions(clf, (2, 3), X, Y, also={"rare": {2: 0.01}})
    assert sum(len(x) for x, _ in lines(ax, "rows")) == 150
    assert "rare" in [text.get_text() for text in ax.get_legend().get_texts()]
    assert ax.get_xlabel() == X.columns[2]


@pytest.mark.parametrize("structure", ["full", "tied", "diagonal", "spherical"])
def test_ellipses_hold_the_rows_they_should(structure):
    clf = GenerativeClassifier(Gaussian(structure), rule="ml").fit(X, Y)
    ax = plots.covariance_ellipses(clf, (2, 3), sds=(1,))
    means = [(x[0], y[0]) for x, y in lines(ax, "mean")]
    assert_allclose(means, X.groupby(Y.to_numpy()).mean().iloc[:, 2:], atol=1e-9)
    if structure == "full":
        cov = np.cov(X[Y == 1].iloc[:, 2:].T, bias=True)
        area = np.pi * ax.patches[1].get_width() * ax.patches[1].get_height() / 4
        assert_allclose(area, np.pi * np.sqrt(np.linalg.det(cov)))


def test_ellipses_of_a_product_and_of_known_densities():
    mixed = GenerativeClassifier({X.columns[2]: Gaussian(), X.columns[3]: Gaussian("diagonal")}).fit(X, Y)
    assert len(plots.covariance_ellipses(mixed, (2, 3)).patches) == 6
    known = GenerativeClassifier.from_densities({"a": Gaussian.of([0, 0], [1, 4]), "b": Gaussian.of([1, 1], np.eye(2))})
    assert_allclose(plots.covariance_ellipses(known).patches[0].get_width(), 4)
    with pytest.raises(NotAvailableError, match="another family"):
        plots.covariance_ellipses(GenerativeClassifier(Bernoulli()).fit([[0, 1], [1, 1]], [0, 1]))


def test_bars_are_the_parts_in_decibans():
    clf = GenerativeClassifier(Gaussian("diagonal")).fit(X, Y)
    told = clf.explain(X.iloc[[70]], 1, 2)
    ax = plots.evidence_bars(told, most=2)
    widths = [bar.get_width() for bar in ax.patches]
    parts = 10 / np.log(10) * told.parts[0][np.argsort(-abs(told.parts[0]))]
    assert_allclose(widths[:2], parts[:2])
    assert_allclose(widths[2], parts[2:].sum())
    assert_allclose(widths[3:], 10 / np.log(10) * np.r_[told.total, told.prior_part, told.log_odds])


def test_infinite_evidence_has_the_longest_bar():
    clf = GenerativeClassifier(Categorical(), rule="ml").fit([["a"], ["b"]], ["x", "y"])
    ax = plots.evidence_bars(clf.explain([["a"]], "x", "y"))
    assert ax.get_title().startswith("certain")
    ax.figure.canvas.draw()


@pytest.mark.parametrize("structure", ["tied", "tied diagonal", "diagonal"])
@pytest.mark.parametrize("calibrate", [None, "offsets", "affine"])
def test_a_nomogram_adds_up_to_the_posterior_of_the_marked_row(structure, calibrate):
    data = load_breast_cancer(as_frame=True)
    rows, y = data.data.iloc[:, :5], data.target_names[data.target]
    clf = GenerativeClassifier(Gaussian(structure), calibrate=calibrate).fit(rows, y)
    ax = plots.nomogram(clf, rows, "malignant", "benign", row=13)
    shown = [float(x[0]) for x, _ in lines(ax, "marked")]
    constant = ax.get_yticklabels()[-2].get_text().removeprefix("sum of evidence").replace(" ", "").replace("−", "-")
    total = sum(shown) + float(constant or 0)
    assert_allclose(total, clf.llr(rows.iloc[[13]], "malignant", "benign", unit="decibans"), atol=0.06)
    (answer, _), (chance, _) = lines(ax, "answer")
    assert_allclose(answer, chance)


def test_a_nomogram_of_categories_and_of_counts():
    colours = np.array([["red", "s"], ["red", "l"], ["blue", "s"], ["blue", "l"], ["blue", "l"]], dtype=object)
    clf = GenerativeClassifier(Categorical()).fit(colours, list("aabbb"))
    ax = plots.nomogram(clf, colours, "b", "a")
    assert {"red", "blue"} <= {text.get_text() for text in ax.texts}
    counts = [[3, 0, 1], [4, 1, 0], [0, 2, 5], [1, 3, 4]]
    words = GenerativeClassifier(Multinomial(), calibrate=None).fit(counts, list("aabb"))
    ax = plots.nomogram(words, counts, "b", "a", row=0, most=2)
    assert "(1 others)" in ax.get_yticklabels()[-2].get_text()


def test_models_without_scales_are_refused():
    with pytest.raises(NotAvailableError, match="not a sum over columns"):
        plots.nomogram(GenerativeClassifier(Gaussian("full")).fit(X, Y), X, 1, 2)
    with pytest.raises(InputError, match="Name both"):
        plots.nomogram(GenerativeClassifier(Gaussian("diagonal")).fit(X, Y), X, 1)


def test_betas_are_scipys():
    ax = plots.beta({"coin": Bernoulli().fit([1, 0, 1]), "prior": (1, 1)})
    (x, y), (_, flat) = lines(ax, "density")
    assert_allclose(y, sps.beta(3, 2).pdf(x))
    assert_allclose(flat, 1)
    assert len(lines(plots.beta(Categorical().fit([1, 2, 2, 3]).posterior()), "density")) == 3
    with pytest.raises(NotAvailableError, match="none of these parameters is a probability"):
        plots.beta(Gaussian().fit([[1.0], [2.0], [4.0]]))


@pytest.mark.parametrize("alpha", [(1, 1, 1), (0.5, 0.5, 0.5), (2, 3, 4), (1000, 1, 0.1)])
def test_a_dirichlet_has_its_mean_in_the_triangle(alpha):
    ax = plots.dirichlet(alpha, draws=20)
    ((x, y),) = lines(ax, "mean")
    share = np.array(alpha) / sum(alpha)
    assert_allclose([x[0], y[0]], [share[1] + share[2] / 2, share[2] * np.sqrt(0.75)])
    ax.figure.canvas.draw()


def test_only_three_corners_make_a_triangle():
    with pytest.raises(InputError, match="three"):
        plots.dirichlet([1, 2])
    assert plots.dirichlet(Categorical().fit(list("aabbcc"))).get_title() == "Dirichlet(3, 3, 3)"


def test_axes_that_are_given_are_drawn_on():
    ax = Figure().subplots()
    assert plots.beta((2, 3), ax=ax) is ax


def test_a_feature_the_model_lacks_is_named():
    with pytest.raises(InputError, match="no such feature: 'wings'"):
        plots.class_densities(GenerativeClassifier(Gaussian()).fit(X, Y), "wings")


def test_without_matplotlib_the_remedy_is_named():
    code = "import sys; sys.modules['matplotlib'] = None\ntry: import deciban.plots\nexcept ImportError as e: print(e)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "pip install deciban[plots]" in said


def test_the_classifier_does_not_load_matplotlib():
    code = "import sys; from deciban import GenerativeClassifier; print('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


@pytest.mark.parametrize("interactions", ["auto", 6])
def test_a_nomogram_with_several_columns_together_adds_up_to_the_posterior_of_the_marked_row(interactions):
    table = table_with_pairs()
    clf, rows = GenerativeClassifier(interactions=interactions).fit(table, "class"), table.drop(columns="class")
    ax = plots.nomogram(clf, rows, "odd", "even", row=3)
    assert "several columns" in [label.get_text() for label in ax.get_yticklabels()]
    marked = sum(x[0] for x, _ in lines(ax, "marked"))
    base = clf.llr(rows[3:4], "odd", "even", unit="decibans")[0] - marked
    offsets = clf.model_.calibration.offsets(clf.classes_)
    assert base == pytest.approx((offsets[1] - offsets[0]) * 10 / np.log(10), abs=1e-6)
