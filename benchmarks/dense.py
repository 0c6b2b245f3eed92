"""Dense tables of numbers: Gaussian classes beside scikit-learn's."""

from __future__ import annotations

from collections.abc import Iterator

from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.naive_bayes import GaussianNB

from harness import Row, at_least, benchmark
from side_by_side import Peer, fit_and_scores
from workloads import DIAGONAL, FULL, TIED


@benchmark("diagonal")
def diagonal(share: float) -> Iterator[Row | str]:
    """Gaussian features, independent given the class, beside GaussianNB."""
    yield from fit_and_scores(
        DIAGONAL, share, Peer("GaussianNB(var_smoothing=0)", GaussianNB(var_smoothing=0), at_least(12), at_least(7))
    )


@benchmark("full")
def full(share: float) -> Iterator[Row | str]:
    """A covariance matrix for each class, beside quadratic discriminant analysis."""
    yield from fit_and_scores(
        FULL,
        share,
        Peer("QDA, svd", QuadraticDiscriminantAnalysis(), at_least(12), at_least(3)),
        Peer("QDA, eigen", QuadraticDiscriminantAnalysis(solver="eigen")),
    )


@benchmark("tied")
def tied(share: float) -> Iterator[Row | str]:
    """One covariance matrix for all classes, beside linear discriminant analysis."""
    yield from fit_and_scores(
        TIED,
        share,
        Peer("LDA, svd", LinearDiscriminantAnalysis(), at_least(15)),
        Peer("LDA, lsqr", LinearDiscriminantAnalysis(solver="lsqr"), at_least(3)),
    )
