"""Drop-ins of deciban.sklearn beside the classes of scikit-learn that they replace, at their defaults."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn.decomposition
import sklearn.discriminant_analysis
import sklearn.feature_extraction.text
import sklearn.mixture
import sklearn.naive_bayes
from sklearn.base import clone

import deciban.sklearn as ours
from harness import Row, at_least, benchmark, first_call, largest_difference, versus
from side_by_side import posterior_gap
from workloads import CATEGORICAL, DIAGONAL, FULL, MULTINOMIAL, bells, count

# Each ratio must be at least 80 % of the one that deciban's own interface must reach.
SHARE = 0.8
PAIRS = [
    (CATEGORICAL, "CategoricalNB", sklearn.naive_bayes, 50 * SHARE, 8 * SHARE),
    (DIAGONAL, "GaussianNB", sklearn.naive_bayes, 12 * SHARE, 7 * SHARE),
    (FULL, "QuadraticDiscriminantAnalysis", sklearn.discriminant_analysis, 12 * SHARE, 3 * SHARE),
    (FULL, "LinearDiscriminantAnalysis", sklearn.discriminant_analysis, 15 * SHARE, None),
    (MULTINOMIAL, "MultinomialNB", sklearn.naive_bayes, 3 * SHARE, 3 * SHARE),
    (MULTINOMIAL, "ComplementNB", sklearn.naive_bayes, None, None),
    (MULTINOMIAL, "BernoulliNB", sklearn.naive_bayes, None, None),
]
SMALL_FITS = 200  # fits of 50 rows that are timed together


@benchmark("dropins")
def dropins(share: float) -> Iterator[Row | str]:
    """Fits and scores through scikit-learn's own names, and fits of 50 rows."""
    made: dict[str, Any] = {}
    for work, name, home, fit, scores in PAIRS:
        n = int(work.rows * share)
        if work.name not in made:
            made = {work.name: work.make(n)}
        X, y = made[work.name]
        mine, peer = getattr(ours, name)(), getattr(home, name)()
        first_call(lambda mine=mine, X=X, y=y: clone(mine).fit(X, y).predict_log_proba(X))
        yield versus(
            f"fit, {work.size(n)}", name, fitting(peer, X, y), fitting(mine, X, y), at_least(fit) if fit else None
        )
        mine, peer = mine.fit(X, y), peer.fit(X, y)
        yield versus(
            f"log posteriors, {work.size(n)}",
            name,
            lambda peer=peer, X=X: peer.predict_log_proba(X),
            lambda mine=mine, X=X: mine.predict_log_proba(X),
            at_least(scores) if scores else None,
            posterior_gap,
        )
    made.clear()
    yield from mixtures(share)
    yield from topics(share)
    yield from components(share)
    yield from texts(share)
    yield from few_rows()


def fitting(estimator: Any, X: Any, y: Any = None) -> Callable[[], Any]:
    return lambda: clone(estimator).fit(X, y)


def mixtures(share: float) -> Iterator[Row]:
    n = int(200_000 * share)
    X, _ = bells(n, 20, 16, True)
    start = {"means_init": X[:16], "weights_init": np.full(16, 1 / 16), "max_iter": 5, "tol": 0.0}
    for kind, precisions in (("full", np.repeat(np.eye(20)[None], 16, axis=0)), ("diag", np.ones((16, 20)))):
        options = {**start, "covariance_type": kind, "precisions_init": precisions}
        mine, peer = (lib.GaussianMixture(16, **options) for lib in (ours, sklearn.mixture))
        job = f"5 EM iterations, {count(n)} × 20, K = 16, {kind}"
        yield versus(
            job, "GaussianMixture", quiet(fitting(peer, X)), quiet(fitting(mine, X)), None, means_gap, repeats=3
        )


def quiet(act: Callable[[], Any]) -> Callable[[], Any]:
    """Without the warning that EM has not converged."""

    def run() -> Any:
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return act()

    return run


def means_gap(theirs: Any, mine: Any) -> float:
    return largest_difference(theirs.means_, mine.means_)


def topics(share: float) -> Iterator[Row]:
    """Two passes over documents of 120 words, 4,000 words, 20 topics."""
    n, V = int(10_000 * share), 4_000
    rng, shares = np.random.default_rng(0), 1 / np.arange(1, V + 1)
    tokens = rng.choice(V, n * 120, p=shares / shares.sum())
    rows = sp.csr_array((np.ones(n * 120), tokens, np.arange(0, n * 120 + 1, 120)), shape=(n, V))
    rows.sum_duplicates()
    for method in ("batch", "online"):
        options = {"max_iter": 2, "random_state": 0, "learning_method": method}
        mine, peer = (lib.LatentDirichletAllocation(20, **options) for lib in (ours, sklearn.decomposition))
        first_call(lambda mine=mine: clone(mine).fit(rows[:200]))
        job = f"2 passes, {count(n)} documents, 20 topics, {method}"
        yield versus(
            job, "LatentDirichletAllocation", fitting(peer, rows), fitting(mine, rows), None, topics_gap, repeats=3
        )


def components(share: float) -> Iterator[Row]:
    """Principal components of a tall table by the solver that decomposes the rows."""
    n = int(200_000 * share)
    X, _ = bells(n, 50, 2, True)
    mine, peer = (lib.PCA(10, svd_solver="full") for lib in (ours, sklearn.decomposition))
    first_call(lambda: clone(mine).fit(X))
    yield versus(f"fit, {count(n)} × 50, solver full", "PCA", fitting(peer, X), fitting(mine, X), None, repeats=3)


def topics_gap(one: Any, other: Any) -> float:
    return largest_difference(one.components_, other.components_)


def texts(share: float) -> Iterator[Row]:
    rng = np.random.default_rng(0)
    words = np.array([f"word{i}" for i in range(20_000)])
    n = max(10, int(20_000 * share))
    documents = [" ".join(words[rng.zipf(1.3, 150) % len(words)]) for _ in range(n)]
    for name in ("CountVectorizer", "TfidfVectorizer", "HashingVectorizer"):
        mine, peer = (getattr(lib, name)() for lib in (ours, sklearn.feature_extraction.text))
        first_call(lambda mine=mine: mine.fit_transform(documents))
        yield versus(
            f"fit_transform, {count(n)} documents of 150 words",
            name,
            lambda peer=peer: peer.fit_transform(documents),
            lambda mine=mine: mine.fit_transform(documents),
            None,
            lambda theirs, mine: float(abs(theirs - mine).max()),
            repeats=3,
        )


def few_rows() -> Iterator[Row]:
    """Small inputs run scikit-learn's own code: what is added must not be felt."""
    X, y = bells(50, 5, 2, True)
    counts = np.abs(X).astype(int)
    for _, name, home, *_ in PAIRS:
        rows = X if "Gaussian" in name or "Analysis" in name else counts
        mine, peer = getattr(ours, name)(), getattr(home, name)()
        yield versus(
            f"{SMALL_FITS} fits of 50 rows × 5",
            name,
            lambda peer=peer, rows=rows: [peer.fit(rows, y) for _ in range(SMALL_FITS)],
            lambda mine=mine, rows=rows: [mine.fit(rows, y) for _ in range(SMALL_FITS)],
            at_least(0.95),
        )
