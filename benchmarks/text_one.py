"""One document at a time, and the first call of a process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from deciban import GenerativeClassifier
from first_call import start_rows
from harness import Reach, Row, at_least, at_most, benchmark, timed
from text import NOTHING, PEER, corpus, plain, theirs

SHORT = 200  # characters of a short document
FEW_WORDS, FEW_CLASSES, SOME = 5000, 2, 5000


@benchmark("text-one")
def text_one(share: float) -> Iterator[Row | str]:
    """Single documents in microseconds, and how long the first call takes."""
    found = corpus(share)
    if found is None:
        yield NOTHING
        return
    texts, y = found
    pipeline, clf = theirs().fit(texts, y), plain().fit(texts, y)
    V, K = clf.stats_.family.labels["word"].size, len(clf.classes_)
    short = [text[SHORT : 2 * SHORT] for text in texts[:: max(len(texts) // 500, 1)]]
    job = f"one document of {SHORT} characters, V = {V:,}, K = {K}"
    yield beside(f"{job}, scorer", pipeline, clf.scorer(), short, at_least(1000))
    yield beside(f"{job}, predict([…])", pipeline, lambda one: clf.predict([one]), short, at_most(150e-6, "s"))
    chosen = GenerativeClassifier().fit(texts, y)
    yield beside(f"{job}, scorer of the default", pipeline, chosen.scorer(), short, at_least(1000))
    step = max(len(texts) // SOME, 1)
    some, codes = texts[::step], y[::step] % FEW_CLASSES
    small = theirs(max_features=FEW_WORDS).fit(some, codes)
    ours = plain(vocabulary=small[0].get_feature_names_out().tolist()).fit(some, codes)
    yield beside(f"the same, V = {FEW_WORDS:,}, K = {FEW_CLASSES}, scorer", small, ours.scorer(), short, at_least(30))
    yield from start_rows()


def beside(job: str, pipeline: Any, ours: Callable[[str], Any], short: list[str], reach: Reach) -> Row:
    """Documents one by one, turn about; seconds are of one."""

    def each(score: Callable[[str], Any], some: list[str]) -> float:
        return timed(lambda: [score(one) for one in some])[0] / len(some)

    each(ours, short)  # compiles
    times = [(each(lambda one: pipeline.predict_log_proba([one]), short[:20]), each(ours, short)) for _ in range(7)]
    return Row(job, PEER, [a for a, _ in times], [b for _, b in times], [a / b for a, b in times], reach)
