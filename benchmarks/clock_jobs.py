"""Jobs whose elapsed time is measured, with their peers and bounds (`clock.py`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.naive_bayes import CategoricalNB, GaussianNB, MultinomialNB

import hmm
import mixtures
import table_sets
import text
import topic_corpus
import topic_tuning
from deciban import PLSA, Categorical, Gaussian, GenerativeClassifier, Mixture, Multinomial
from deciban.sklearn import CountVectorizer
from harness import REPEATS
from workloads import bells, categories, documents

GAIN = 1.6  # of two threads over one, for jobs that are not bound by memory
NO_LOSS = 0.95  # the same for small tables, which one thread computes; 5 % are noise


@dataclass(frozen=True)
class Job:
    """What both sides do, and the ratios of elapsed times that must be shown."""

    name: str
    peer: str
    theirs: Callable[[], Any] | None
    ours: Callable[[], Any]
    reach: float | None = None
    read: Any = None  # array that both have to read, if the job is bound by memory
    peer_repeats: int = REPEATS
    gain: float | None = None  # of all threads over one
    calls: int = 1  # calls that are timed together


def dense_jobs(share: float) -> Iterator[Job]:
    """Gaussian classes, each with a covariance or with variances of its own."""
    yield from _gaussian_jobs(share, "full", QuadraticDiscriminantAnalysis(), {"predict_proba": 6.0}, 12.0)
    yield from _gaussian_jobs(share, "diagonal", GaussianNB(var_smoothing=0), {"predict_proba": 13.0}, 22.0)


def tied_jobs(share: float) -> Iterator[Job]:
    """Gaussian classes that share a covariance."""
    bounds = {"predict_proba": 2.0, "predict": 1.2, "decision_function": 1.2}
    yield from _gaussian_jobs(share, "tied", LinearDiscriminantAnalysis(), bounds, 30.0)


def _gaussian_jobs(share: float, structure: Any, peer: Any, methods: dict[str, float], reach: float) -> Iterator[Job]:
    n, D, K = int(400_000 * share), 50, 10
    X, y = bells(n, D, K, full=True)
    size, name = f"{n:,} × {D}, K = {K}", type(peer).__name__
    clf = GenerativeClassifier(Gaussian(structure), rule="ml", calibrate=None)
    bound_by_memory = structure == "diagonal"
    yield Job(
        f"{structure} fit, {size}",
        name,
        lambda: peer.fit(X, y),
        lambda: clf.fit(X, y),
        reach,
        X if bound_by_memory else None,
        gain=None if bound_by_memory else GAIN,
    )
    peer.fit(X, y)
    clf.fit(X, y)
    for method, bound in methods.items():
        light = structure == "tied"  # K products of a row, and K numbers to write: as much traffic as arithmetic
        yield Job(
            f"{structure} {method}, {size}",
            name,
            lambda method=method: getattr(peer, method)(X),
            lambda method=method: getattr(clf, method)(X),
            bound,
            X if light else None,
            gain=None if light else GAIN,
        )


def mixture_jobs(share: float) -> Iterator[Job]:
    """Four iterations of EM from the same start."""
    n, D, K = int(200_000 * share), 20, 8
    X, _ = bells(n, D, K, full=True)
    shares = np.random.default_rng(1).dirichlet(np.full(K, 0.1), 20_000)
    for structure, kind, reach in (("full", "full", 7.0), ("diagonal", "diag", 5.0)):
        start = mixtures._start(Gaussian(structure), X[:20_000], shares[: len(X)])
        yield Job(
            f"{structure} mixture, 4 iterations, {n:,} × {D}, K = {K}",
            f"GaussianMixture({kind!r})",
            lambda kind=kind, start=start: mixtures._peer(X, kind, start, 4),
            lambda structure=structure, start=start: Mixture(Gaussian(structure), K).fit(
                X, rule="ml", start=start, max_iter=4, tol=0
            ),
            reach,
            gain=GAIN,
        )


def hidden_jobs(share: float) -> Iterator[Job]:
    """EM of chains, of mixtures of words, and of PLSA where DECIBAN_DATA names the data sets."""
    rolls, lengths = hmm._rolls(int(1000 * share))
    yield Job(
        f"hidden Markov model, 10 iterations, {len(lengths):,} × {hmm.STEPS:,} steps, {hmm.S} states, {hmm.V} symbols",
        "hmmlearn CategoricalHMM",
        lambda: hmm._theirs(rolls, lengths, 10),
        lambda: hmm._ours(rolls, lengths, 10),
        gain=GAIN,
    )
    n, V, H = int(200_000 * share), mixtures.V, mixtures.H
    X, y = documents(n, V=V, K=H, tokens=66)
    shares = np.random.default_rng(1).dirichlet(np.ones(H), len(y[:20_000])) + 0.1 * np.eye(H)[y[:20_000]]
    start = mixtures._start(Multinomial(2.0), X[:20_000], shares)
    yield Job(
        f"multinomial mixture, 4 iterations, {n:,} × {V:,} CSR, H = {H}",
        "scipy sparse products",
        lambda: mixtures._products(X, start, 4),
        lambda: Mixture(Multinomial(2.0), H).fit(X, rule="map", start=start, max_iter=4, tol=0),
        gain=GAIN,
    )
    found = topic_corpus.corpus(share)
    if found is None:
        return
    counts = found.learnt
    yield Job(
        f"PLSA, K = 20, 20 iterations, {counts.shape[0]:,} documents",
        "NMF(kullback-leibler, mu)",
        lambda: topic_tuning.nmf(counts, 20),
        lambda: PLSA(20, max_iter=20, tol=0, held_out=0.001, random_state=0).fit(counts),
        peer_repeats=1,
        gain=GAIN,
    )


def count_jobs(share: float) -> Iterator[Job]:
    """Categories, and words as CSR."""
    C, y = categories(int(2_000_000 * share))
    X, z = documents(int(500_000 * share))
    for name, rows, labels, peer, family in (
        ("categorical", C, y, CategoricalNB(), Categorical(1.0)),
        ("multinomial", X, z, MultinomialNB(), Multinomial(1.0)),
    ):
        clf = GenerativeClassifier(family, calibrate=None)
        size = f"{rows.shape[0]:,} × {rows.shape[1]:,}"
        yield Job(
            f"{name} fit, {size}",
            type(peer).__name__,
            lambda peer=peer, rows=rows, labels=labels: peer.fit(rows, labels),
            lambda clf=clf, rows=rows, labels=labels: clf.fit(rows, labels),
            read=rows if isinstance(rows, np.ndarray) else rows.data,
        )
        peer.fit(rows, labels)
        clf.fit(rows, labels)
        yield Job(
            f"{name} predict_log_proba, {size}",
            type(peer).__name__,
            lambda peer=peer, rows=rows: peer.predict_log_proba(rows),
            lambda clf=clf, rows=rows: clf.predict_log_proba(rows),
            gain=GAIN,
        )


def left_out_jobs(share: float) -> Iterator[Job]:
    """Exact leave-one-out of all rows; the peer would refit each time, so that ours is shown alone."""
    n, D, K = int(400_000 * share), 50, 10
    X, y = bells(n, D, K, full=True)
    for structure in ("full", "diagonal", "tied"):
        clf = GenerativeClassifier(Gaussian(structure), calibrate=None).fit(X, y)
        yield Job(
            f"leave-one-out, {structure}, {n:,} × {D}, K = {K}",
            "",
            None,
            lambda clf=clf: clf.leave_one_out(X, y),
            gain=GAIN,
        )


def small_jobs(share: float) -> Iterator[Job]:
    """Tables below 10,000 rows; the peer is shown, the bound is on more threads against one."""
    for n, calls in ((500, 50), (2_000, 20), (9_000, 10)):
        X, y = bells(int(n * share), 20, 5, full=True)
        for structure, peer in (
            ("full", QuadraticDiscriminantAnalysis()),
            ("diagonal", GaussianNB()),
            ("tied", LinearDiscriminantAnalysis()),
        ):
            clf = GenerativeClassifier(Gaussian(structure), calibrate=None)
            yield Job(
                f"{structure} fit and predict_proba, {len(X):,} × 20, K = 5",
                type(peer).__name__,
                lambda peer=peer, X=X, y=y: peer.fit(X, y).predict_proba(X),
                lambda clf=clf, X=X, y=y: clf.fit(X, y).predict_proba(X),
                gain=NO_LOSS,
                calls=calls,
            )


def text_fit_jobs(share: float) -> Iterator[Job]:
    """Raw text to models, where DECIBAN_DATA names the data sets."""
    found = text.corpus(share)
    if found is None:
        return
    texts, y = found
    size = _megabytes(texts)
    yield Job(
        f"text fit from a list, {size}",
        text.PEER,
        lambda: text.theirs().fit(texts, y),
        lambda: text.plain().fit(texts, y),
        30.0,
        peer_repeats=2,
        gain=GAIN,
    )


def default_text_jobs(share: float) -> Iterator[Job]:
    """The default fit of raw text, and its answers, where DECIBAN_DATA names the data sets."""
    found = text.corpus(share)
    if found is None:
        return
    texts, y = found
    size, some = _megabytes(texts), texts[::10]
    GenerativeClassifier().fit(some, y[::10]).predict_proba(some)  # compiles
    yield Job(
        f"text fit as it is by default, {size}",
        text.PEER,
        lambda: text.theirs().fit(texts, y),
        lambda: GenerativeClassifier().fit(texts, y),
        10.0,
        peer_repeats=1,
    )
    yield Job(
        f"text fit as it is by default but for factors of words, {size}",
        text.PEER,
        lambda: text.theirs().fit(texts, y),
        lambda: GenerativeClassifier(calibrate="length").fit(texts, y),
        10.0,
        peer_repeats=1,
    )


def default_table_jobs(share: float) -> Iterator[Job]:
    """The default fit of tables: adult where DECIBAN_DATA names the data sets, and 400 × 200 numbers."""
    for name, (frame, labels) in table_sets.from_files({"adult": table_sets.SETS["adult"]}).items():
        some = slice(0, int(len(frame) * share))
        yield Job(
            f"default fit of {name}, {some.stop:,} rows",
            "",
            None,
            lambda frame=frame[some], labels=labels[some]: GenerativeClassifier().fit(frame, labels),
        )
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 200)), rng.integers(0, 2, 400)
    yield Job("default fit of 400 × 200 numbers", "", None, lambda: GenerativeClassifier().fit(X, y))


def text_score_jobs(share: float) -> Iterator[Job]:
    """Raw text to scores and to sparse rows, where DECIBAN_DATA names the data sets."""
    found = text.corpus(share)
    if found is None:
        return
    texts, y = found
    size = _megabytes(texts)
    pipeline, clf = text.theirs().fit(texts, y), text.plain().fit(texts, y)
    yield Job(
        f"text predict_log_proba, {size}",
        text.PEER,
        lambda: pipeline.predict_log_proba(texts),
        lambda: clf.predict_log_proba(texts),
        peer_repeats=2,
        gain=GAIN,
    )
    yield Job(
        f"CountVectorizer, {size}",
        "CountVectorizer",
        lambda: text.Theirs().fit_transform(texts),
        lambda: CountVectorizer().fit_transform(texts),
        peer_repeats=2,
        gain=GAIN,
    )


def _megabytes(texts: list[str]) -> str:
    return f"{sum(len(each.encode()) for each in texts) / 1e6:.0f} MB"
