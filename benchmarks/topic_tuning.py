"""What the programs of `topics` are set to, and what else was tried: on another division of the corpus, K = 100.

A setting at a time is varied and the best kept, as one tunes by hand. scikit-learn and ours are compared by perplexity
after the same CPU seconds each, tomotopy, which has next to nothing to set, by sweeps and workers, and an iteration of
NMF by its seconds. The winners are constants of `topic_courses`, `topics` and `deciban.topics`.
"""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.decomposition import NMF

from deciban.topics import lda
from harness import Row, benchmark, timed
from topic_corpus import TUNED, Corpus, corpus
from topic_courses import Course, Online, ours, sklearn_online, tell, tomotopy

K, SEED = 100, 11
SECONDS = 20.0  # of CPU for each setting of scikit-learn
ONLINE = {
    "batch": (128, 512, 2048, 8192),
    "decay": (0.5, 0.7, 0.9),
    "offset": (1.0, 10.0, 64.0),
    "steps": (10, 20, 100),
}
SWEEPS = 100
SCHEMES = ("COPY_MERGE", "PARTITION")
OUR_SECONDS = 12.0  # what about 40 passes take
PASSES = 45
SETTINGS: dict[str, tuple[Any, str, tuple[float, ...]]] = {
    "documents in a batch": (lda, "MOST_DOCUMENTS", (256, 512, 1024)),
    "ρ's power": (lda, "POWER", (0.5, 0.6, 0.7)),
    "ρ's delay": (lda, "DELAY", (1.0, 10.0, 40.0)),
    "over-relaxation": (lda, "OVER_RELAXATION", (0.0, 0.5, 1.0)),
    "first passes": (lda, "FIRST_PASSES", (2, 5, 10)),
    "share from documents": (lda, "SEEDED", (0.0, 0.2, 0.5, 0.8)),
}


@benchmark("topic-tuning")
def topic_tuning(share: float) -> Iterator[Row | str]:
    """What the programs beside which topics are measured were tuned to, and ours; about half an hour."""
    data = corpus(share, TUNED)
    if data is None:
        yield "DECIBAN_DATA names no directory of data sets: nothing was run"
        return
    yield from _nmf(data.learnt)
    yield from _sklearn(data)
    yield from _tomotopy(data)
    yield from _ours(data)


def _sklearn(data: Corpus) -> Iterator[str]:
    """From its defaults, with batches of 512 (its own are of 128)."""
    best, known = Online(512, 0.7, 10.0, 100), {}
    for name, values in ONLINE.items():
        for value in values:
            tried = best._replace(**{name: value})
            if tried not in known:
                known[tried] = sklearn_online(data, K, SEED, SECONDS, tried).best.perplexity
                tell(f"scikit-learn {tried}: {known[tried]:,.0f}")
        said = ", ".join(f"{value:g} {known[best._replace(**{name: value})]:,.0f}" for value in values)
        best = min((best._replace(**{name: value}) for value in values), key=known.__getitem__)
        yield f"scikit-learn after {SECONDS:.0f} CPU s, by {name}: {said}"
    yield f"scikit-learn's best: {best}"


def _tomotopy(data: Corpus) -> Iterator[str]:
    if importlib.util.find_spec("tomotopy") is None:
        yield "tomotopy is not installed, so it was not tuned"
        return
    for scheme in SCHEMES:
        end = tomotopy(data, K, 2, SEED, SWEEPS, SWEEPS, scheme).last
        yield f"tomotopy, 2 workers, {scheme}: {end.perplexity:,.0f} after {SWEEPS} sweeps, {end.elapsed:.1f} s elapsed"
    course = tomotopy(data, K, 1, SEED, 4 * SWEEPS, SWEEPS)
    said = ", ".join(f"{point.perplexity:,.0f} after {point.step}" for point in course.points)
    yield f"tomotopy, 1 worker, by sweeps: {said}"


def _nmf(X: Any) -> Iterator[str]:
    """An iteration is what three cost more than one, divided by two."""
    for name, given in (("float64", X), ("float32", X.astype(np.float32))):
        for start in ("random", "nndsvda"):
            times = []
            for _ in range(3):
                few, many = (timed(lambda steps=steps: nmf(given, steps, start))[0] for steps in (1, 3))  # noqa: B023
                times.append((many - few) / 2)
            tell(f"NMF {name} {start}: {min(times):.3f}")
            yield f"NMF, {name}, started {start}: {min(times):.3f} s an iteration, the best of three"


def nmf(X: Any, steps: int, start: str = "random") -> Any:
    """Multiplicative updates for the Kullback–Leibler divergence: what EM of PLSA does."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return NMF(
            20, init=start, solver="mu", beta_loss="kullback-leibler", max_iter=steps, tol=0, random_state=0
        ).fit(X)


def _ours(data: Corpus) -> Iterator[str]:
    """Around what they are; each is set back before the next is tried."""
    for name, (module, attribute, values) in SETTINGS.items():
        usual, found = getattr(module, attribute), []
        for value in values:
            setattr(module, attribute, value)
            try:
                found.append(_after(ours(data, K, 1, SEED, PASSES), OUR_SECONDS))
            finally:
                setattr(module, attribute, usual)
            tell(f"ours, {name} {value:g}: {found[-1]:,.0f}")
        said = ", ".join(f"{value:g} {perplexity:,.0f}" for value, perplexity in zip(values, found))
        yield f"ours after {OUR_SECONDS:.0f} CPU s, by {name} (it is {usual:g}): {said}"


def _after(course: Course, seconds: float) -> float:
    """The perplexity after so many seconds, between the points that lie around them."""
    times, perplexities = zip(*((point.seconds, point.perplexity) for point in course.points))
    return float(np.interp(seconds, times, perplexities))
