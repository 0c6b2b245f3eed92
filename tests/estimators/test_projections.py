"""PCA and Fisher from sums: the same directions, the same decisions, one pass."""

import gzip
import os
from pathlib import Path

import numpy as np
import pytest
from scipy import stats as sps
from sklearn import decomposition
from sklearn.datasets import load_digits, load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.utils.estimator_checks import parametrize_with_checks

from cases import close
from deciban.errors import HyperparameterError, InputError, SingularError
from deciban.estimators.projections import PCA, Fisher
from deciban.families.gaussian import Gaussian
from deciban.statistics import Axis, Members
from gaussian_truth import blobs

STRUCTURES = ("tied diagonal", "tied", "diagonal", "full")


@parametrize_with_checks([PCA(), PCA(1), Fisher(), Fisher(1)])
def test_scikit_learn_takes_them_for_its_own(estimator, check):
    check(estimator)


# -- laws --------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("far", [0.0, 1e6])
def test_pca_is_scikit_learns_up_to_sign(far):
    X, _ = blobs(200, D=6, at=far)
    ours, theirs = PCA(4).fit(X), decomposition.PCA(4, svd_solver="full").fit(X)
    np.testing.assert_allclose(np.abs(ours.components_), np.abs(theirs.components_), atol=1e-7)
    np.testing.assert_allclose(ours.explained_variance_ * 200 / 199, theirs.explained_variance_, rtol=1e-7)
    np.testing.assert_allclose(np.abs(ours.transform(X)), np.abs(theirs.transform(X)), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(ours.components_ @ ours.components_.T, np.eye(4), atol=1e-12)


def test_pca_does_not_depend_on_the_classes():
    X, members = blobs(90, D=4)
    with_classes = PCA(3).fit_stats(Gaussian().collect(X, members))
    np.testing.assert_allclose(with_classes.matrix, PCA(3).fit(X).projection_.matrix, atol=1e-9)


def test_two_classes_are_parted_along_the_tied_models_own_direction():
    X, members = blobs(80, D=4, K=2)
    stats = Gaussian("tied").collect(X, members)
    direction = Fisher().fit_stats(stats).matrix[:, 0]
    _, b, _ = Gaussian("tied").estimate(stats, "ml").polynomial()
    discriminant = b[1] - b[0]
    cosine = direction @ discriminant / np.linalg.norm(direction) / np.linalg.norm(discriminant)
    assert abs(cosine) == pytest.approx(1.0, abs=1e-12)


def test_within_classes_the_projected_covariance_is_the_identity():
    X, members = blobs(90, D=5)
    stats = Gaussian().collect(X, members)
    projected = Fisher().fit_stats(stats).apply(stats)
    np.testing.assert_allclose(projected.scatter()[1].sum(axis=0) / 90, np.eye(2), atol=1e-10)


def test_after_fisher_tied_is_tied_diagonal_is_tied_without_it():
    X, members = blobs(120, D=6, K=4, apart=1.0)
    stats = Gaussian("tied").collect(X, members)
    projection = Fisher(3).fit_stats(stats)
    projected, Z = projection.apply(stats), projection.transform(X)
    scores = [
        Gaussian("tied").estimate(stats, "ml").log_density(X),
        Gaussian("tied").estimate(projected, "ml").log_density(Z),
        Gaussian("tied diagonal").estimate(projected, "ml").log_density(Z),
    ]
    evidence = [each - each[:, :1] for each in scores]
    np.testing.assert_allclose(evidence[1], evidence[0], rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(evidence[2], evidence[0], rtol=1e-7, atol=1e-9)


def test_rows_come_back_from_their_projections():
    X, y = load_iris(return_X_y=True)
    ours, theirs = PCA(n_components=2).fit(X), decomposition.PCA(2, svd_solver="full").fit(X)
    back = ours.inverse_transform(ours.transform(X))
    np.testing.assert_allclose(back, theirs.inverse_transform(theirs.transform(X)), atol=1e-9)
    np.testing.assert_allclose(ours.explained_variance_ratio_, theirs.explained_variance_ratio_, atol=1e-12)
    np.testing.assert_allclose(ours.mean_, X.mean(axis=0))
    fisher = Fisher(n_components=1).fit(X, y)
    np.testing.assert_allclose(fisher.transform(fisher.inverse_transform(fisher.transform(X))), fisher.transform(X))
    lda = LinearDiscriminantAnalysis().fit(X, y)
    np.testing.assert_allclose(fisher.explained_variance_ratio_, lda.explained_variance_ratio_[:1], atol=1e-9)
    with pytest.raises(InputError, match="3 columns, but there are 2 directions"):
        ours.inverse_transform(X[:, :3])


@pytest.mark.parametrize("route", [(PCA(3),), (Fisher(2),), (PCA(4), Fisher(2))], ids=repr)
def test_projecting_sums_is_summing_projections(route):
    X, members = blobs(90, D=5, at=1e3)
    stats = Gaussian().collect(X, members)
    for step in route:
        projection = step.fit_stats(stats)
        stats, X = projection.apply(stats), projection.transform(X)
    close(stats, Gaussian(origin=stats.origin).collect(X, members))


def test_empty_classes_do_not_count():
    X, members = blobs(60)
    wider = Members.hard(members.codes, Axis((0, 1, 2, 3), 4))
    one, other = (Fisher().fit_stats(Gaussian().collect(X, each)) for each in (members, wider))
    np.testing.assert_allclose(one.matrix, other.matrix)


def test_what_cannot_be_projected_is_refused():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(HyperparameterError, match="n_components=5 directions cannot be had from 4 columns"):
        PCA(5).fit(X)
    with pytest.raises(HyperparameterError, match=r"n_components=3 .* 4 columns and 3 classes\. Give 1 to 2"):
        Fisher(3).fit(X, y)
    with pytest.raises(InputError, match="only one class"):
        Fisher().fit(X, np.zeros(len(X), dtype=int))
    doubled = np.c_[X, X[:, 1] + X[:, 2], np.ones(len(X))]
    with pytest.raises(SingularError, match="Use PCA first") as caught:
        Fisher().fit(doubled, y)
    assert 5 in caught.value.columns
    assert Fisher().set_output(transform="default").fit(X, y).get_feature_names_out().tolist() == ["fisher0", "fisher1"]


# -- the table: four structures in four projected spaces, from one pass -----------------------------------------------
def error_table(stats, X, y, sizes, fisher):
    """Error % of every structure (rows) in every space (columns); the statistics are all there is of the training."""
    routes = [(PCA(size),) for size in sizes] + [(PCA(sizes[0]), Fisher(fisher))]
    table = np.empty((len(STRUCTURES), len(routes)))
    for column, route in enumerate(routes):
        sums, Z = stats, X
        for step in route:
            projection = step.fit_stats(sums)
            sums, Z = projection.apply(sums), projection.transform(Z)
        for row, structure in enumerate(STRUCTURES):
            scores = Gaussian(structure).estimate(sums, "ml").log_density(Z)
            table[row, column] = 100 * np.mean(scores.argmax(axis=1) != y)
    return table


def plain_errors(X, y, X_test, y_test, size):
    """A twin that knows nothing of sums: SVD, np.cov, SciPy."""
    mean = X.mean(axis=0)
    directions = np.linalg.svd(X - mean, full_matrices=False)[2][:size].T
    Z, T = (X - mean) @ directions, (X_test - mean) @ directions
    own = [np.cov(Z[y == k].T, bias=True) for k in range(10)]
    tied = np.einsum("k,kij->ij", np.bincount(y) / len(y), own)
    covariances = {
        "tied diagonal": [np.diag(np.diag(tied))] * 10,
        "tied": [tied] * 10,
        "diagonal": [np.diag(np.diag(S)) for S in own],
        "full": own,
    }
    errors = []
    for structure in STRUCTURES:
        densities = [sps.multivariate_normal(Z[y == k].mean(axis=0), S) for k, S in enumerate(covariances[structure])]
        errors.append(100 * np.mean(np.stack([d.logpdf(T) for d in densities]).argmax(axis=0) != y_test))
    return errors


def test_the_digits_table():
    X, y = load_digits(return_X_y=True)
    stats = Gaussian("full").collect(X[:1200], Members.hard(y[:1200], 10))
    table = error_table(stats, X[1200:], y[1200:], (40, 20, 9), 9)
    published = [[10.6, 11.4, 10.7, 9.5], [9.5, 9.7, 9.9, 9.5], [9.5, 10.1, 9.9, 9.0], [6.2, 4.9, 7.7, 7.0]]
    np.testing.assert_allclose(table, published, atol=0.051)
    for column, size in enumerate((40, 20, 9)):
        np.testing.assert_allclose(table[:, column], plain_errors(X[:1200], y[:1200], X[1200:], y[1200:], size))


def read_images(folder, name):
    return np.frombuffer(gzip.decompress((folder / name).read_bytes()), np.uint8, offset=16).reshape(-1, 784)


def read_labels(folder, name):
    return np.frombuffer(gzip.decompress((folder / name).read_bytes()), np.uint8, offset=8).astype(np.intp)


@pytest.mark.slow
@pytest.mark.skipif("DECIBAN_DATA" not in os.environ, reason="DECIBAN_DATA does not say where MNIST lies")
def test_the_mnist_table():
    folder = Path(os.environ.get("DECIBAN_DATA", "")) / "mnist"
    if not folder.is_dir():
        pytest.skip("DECIBAN_DATA holds no folder mnist")
    y = read_labels(folder, "train-labels-idx1-ubyte.gz")
    stats = Gaussian("full").collect(read_images(folder, "train-images-idx3-ubyte.gz"), Members.hard(y, 10))
    X_test = read_images(folder, "t10k-images-idx3-ubyte.gz").astype(float)
    table = error_table(stats, X_test, read_labels(folder, "t10k-labels-idx1-ubyte.gz"), (100, 50, 9), 9)
    published = [
        [13.72, 14.40, 25.00, 12.29],
        [12.29, 12.56, 23.68, 12.29],
        [12.19, 12.29, 23.40, 11.35],
        [4.30, 3.63, 12.21, 10.15],
    ]
    np.testing.assert_allclose(table, published, atol=0.021)
