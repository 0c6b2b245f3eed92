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
from workloads import CATEGORICAL, DIAGONAL, FULL, MULTINOMIAL, TIED, bells, count

# Beside scikit-learn, a ratio must be at least 80 % of the one that deciban's own interface must reach; beside that
# interface, CPU time must be at most 1 / 80 %.
SHARE = 0.8
PAIRS = [
    (CATEGORICAL, "CategoricalNB", sklearn.naive_bayes, 50 * SHARE, 8 * SHARE),
    (DIAGONAL, "GaussianNB", sklearn.naive_bayes, 12 * SHARE, 7 * SHARE),
    (FULL, "QuadraticDiscriminantAnalysis", sklearn.discriminant_analysis, 12 * SHARE, 3 * SHARE),
    (TIED, "LinearDiscriminantAnalysis", sklearn.discriminant_analysis, 15 * SHARE, 1.0),
    (MULTINOMIAL, "MultinomialNB", sklearn.naive_bayes, 3 * SHARE, 3 * SHARE),
    (MULTINOMIAL, "ComplementNB", sklearn.naive_bayes, None, None),
    (MULTINOMIAL, "BernoulliNB", sklearn.naive_bayes, None, None),
]
OWN = ("CategoricalNB", "GaussianNB", "QuadraticDiscriminantAnalysis", "LinearDiscriminantAnalysis", "MultinomialNB")
SMALL_FITS = 200  # fits of 50 rows that are timed together


@benchmark("dropins")
def dropins(share: float) -> Iterator[Row | str]:
    """Classifiers through scikit-learn's names: fits and log posteriors beside scikit-learn and our own interface."""
    made: dict[str, Any] = {}
    for work, name, home, fit, scores in PAIRS:
        n = int(work.rows * share)
        if work.name not in made:
            made = {work.name: work.make(n)}
        X, y = made[work.name]
        mine, peer, own = getattr(ours, name)(), getattr(home, name)(), work.classifier()
        first_call(lambda mine=mine, X=X, y=y: clone(mine).fit(X, y).predict_log_proba(X))
        first_call(lambda own=own, X=X, y=y: clone(own).fit(X, y).predict_log_proba(X))
        for other, bound in ((peer, fit), *([(own, SHARE)] if name in OWN else ())):
            job = f"fit, {work.size(n)}{', our interface' if other is own else ''}"
            yield versus(job, name, fitting(other, X, y), fitting(mine, X, y), at_least(bound) if bound else None)
        mine = mine.fit(X, y)
        for other, bound in ((peer, scores), *([(own, SHARE)] if name in OWN else ())):
            other.fit(X, y)
            yield versus(
                f"log posteriors, {work.size(n)}{', our interface' if other is own else ''}",
                name,
                lambda other=other, X=X: other.predict_log_proba(X),
                lambda mine=mine, X=X: mine.predict_log_proba(X),
                at_least(bound) if bound else None,
                posterior_gap,
            )


@benchmark("dropins-other")
def others(share: float) -> Iterator[Row | str]:
    """Mixtures, topics, principal components and vectorizers through scikit-learn's names."""
    yield from mixtures(share)
    yield from topics(share)
    yield from components(share)
    yield from texts(share)


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


@benchmark("dropins-few")
def few_rows(share: float) -> Iterator[Row]:
    """Fits of 50 rows: mostly scikit-learn's own code runs, and the drop-ins must add nothing that is felt."""
    X, y = bells(50, 5, 2, True)
    counts = np.abs(X).astype(int)
    documents = [" ".join(f"word{v}" for v in row) for row in counts]
    times = max(5, int(SMALL_FITS * share))
    cases: list[tuple[str, Any, Any, Any, int]] = []
    for _, name, home, *_ in PAIRS:
        cases.append((name, home, X if "Gaussian" in name or "Analysis" in name else counts, {}, times))
    cases.append(("GaussianMixture", sklearn.mixture, X, {"random_state": 0}, times // 4))
    cases.append(("PCA", sklearn.decomposition, X, {}, times))
    cases.append(("LatentDirichletAllocation", sklearn.decomposition, counts, {"random_state": 0}, times // 50 + 1))
    cases.append(("TfidfTransformer", sklearn.feature_extraction.text, sp.csr_array(counts), {}, times))
    texts = ("CountVectorizer", "TfidfVectorizer", "HashingVectorizer")
    cases += [(name, sklearn.feature_extraction.text, documents, {}, times) for name in texts]
    for name, home, rows, options, repeats in cases:
        method = "fit_transform" if name in texts else "fit"
        mine, peer = (getattr(getattr(lib, name)(**options), method) for lib in (ours, home))
        mine(rows, y)
        yield versus(
            f"{repeats} fits of 50 rows × 5",
            name,
            lambda peer=peer, rows=rows, repeats=repeats: [peer(rows, y) for _ in range(repeats)],
            lambda mine=mine, rows=rows, repeats=repeats: [mine(rows, y) for _ in range(repeats)],
            at_least(1.0),
            repeats=9,
        )
