"""Differences between classes with one covariance: a linear discriminant, without the term that all classes share."""

import numpy as np
import pytest

from deciban import Gaussian, GenerativeClassifier, kernels

TIED = ["tied", "tied diagonal", "tied spherical"]


def table(n, at, gaps):
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, n)
    X = at + rng.normal(size=(n, 4)) @ (np.eye(4) + 0.3) + 0.7 * y[:, None]
    seen = X.copy()
    if gaps:
        seen[rng.random(X.shape) < 0.1] = np.nan
    return X, y, seen


@pytest.mark.parametrize("structure", TIED)
@pytest.mark.parametrize("at", [0.0, 1e6])
@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("body", ["numba", "numpy"])
def test_the_contrast_differs_from_the_density_by_a_number_of_each_row(structure, at, gaps, body):
    X, y, seen = table(200, at, gaps)
    with kernels.forced(body):
        clf = GenerativeClassifier(Gaussian(structure), calibrate=None).fit(X, y)
        whole, short = clf.log_likelihood(seen), clf.log_likelihood(seen, constant=False)
        difference = whole - short
        np.testing.assert_allclose(difference, np.broadcast_to(difference[:, :1], difference.shape), atol=1e-11)
        if not gaps:
            assert np.ptp(difference[:, 0]) > 1  # the quadratic term is not computed
        joint = whole + np.log(clf.class_count_ / clf.class_count_.sum())
        np.testing.assert_array_equal(clf.predict(seen), clf.classes_[joint.argmax(axis=1)])
        np.testing.assert_allclose(clf.predict_proba(seen), kernels.softmax(joint), rtol=1e-10)


@pytest.mark.parametrize("structure", ["full", "diagonal"])
def test_other_structures_answer_by_their_density(structure):
    X, y, _ = table(60, 0.0, False)
    clf = GenerativeClassifier(Gaussian(structure), calibrate=None).fit(X, y)
    np.testing.assert_array_equal(clf.log_likelihood(X), clf.log_likelihood(X, constant=False))


def test_linear_scores_in_chunks_equal_one_product():
    rng = np.random.default_rng(0)
    X, weights, bias, origin = (rng.normal(size=shape) for shape in ((5_000, 7), (7, 3), 3, 7))
    for rows in (X, X.astype(np.float32), np.asfortranarray(X)):
        with kernels.forced("numba"):
            chunked = kernels.linear_scores(rows, weights, bias, origin)
        np.testing.assert_allclose(chunked, (rows - origin) @ weights + bias, atol=1e-12)
