"""Compiles the kernels of the usual jobs: ``python -m deciban.precompile``, after the installation or in an image.

Without it, the first process that fits many texts or a large table waits for the compiler, for seconds. The machine
code is kept where numba keeps it: beside the source, or in the folder that NUMBA_CACHE_DIR names.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from deciban.estimators.classifier import GenerativeClassifier
from deciban.families.categorical import Categorical
from deciban.families.gaussian import Gaussian
from deciban.families.multinomial import Multinomial
from deciban.families.protocol import Family
from deciban.kernels import forced
from deciban.text.family import Text

ROWS = 300
MANY = 4  # times as many texts: from 1,000 short texts on, pairs of words are tried, too


def jobs() -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield small jobs by name, which use the kernels of large ones of their kind.

    Yields
    ------
    (str, callable)
        Name and function of a job.

    Examples
    --------
    >>> [name for name, _ in jobs()]
    ['texts', 'numbers', 'categories', 'counts']
    """
    rng = np.random.default_rng(0)
    y = np.arange(ROWS) % 3
    X = rng.normal(size=(ROWS, 8)) + y[:, None]
    words = [f"word{number}" for number in range(60)] + ["größer", "naïve"]
    texts = [" ".join([*rng.choice(words, 12), f"about{label}"]) for label in y]

    def use(family: Family[Any] | str, rows: object, labels: np.ndarray = y) -> None:
        clf = GenerativeClassifier(family).fit(rows, labels)
        clf.predict(rows)
        clf.predict_proba(rows)
        clf.leave_one_out(rows, labels)
        clf.learn(rows, labels).unlearn(rows, labels)

    def use_texts() -> None:
        options = {"transform": "counts", "pseudo_count": 1.0}
        use("auto", texts * MANY, np.tile(y, MANY))
        many = " ".join(f"number{number}" for number in range(10_000))  # a table of words that grows
        use(Text(transform="log", pseudo_count=1.0), texts)
        kinds: list[dict[str, Any]] = [{}, {"ngrams": (1, 2)}, {"unit": "char_wb", "ngrams": (2, 4)}]
        for family in (Text(**kind, **options) for kind in kinds):  # type: ignore[arg-type]
            use(family, texts)
            GenerativeClassifier(family, calibrate=None).fit([*texts, many], [*y, 0]).scorer()(texts[0])

    def use_numbers() -> None:
        for structure in ("diagonal", "full", "tied"):
            use(Gaussian(structure), X)
        gaps = X.copy()
        gaps[::7, 0] = np.nan
        use(Gaussian("diagonal"), gaps)

    yield "texts", use_texts
    yield "numbers", use_numbers
    yield "categories", lambda: use(Categorical(), rng.integers(0, 5, (ROWS, 4)))
    yield "counts", lambda: use(Multinomial(), sp.csr_array(rng.poisson(1 + y[:, None], (ROWS, 8)).astype(float)))


def main() -> None:
    """Run all jobs with compiled kernels, and print how long each took."""
    with forced("numba"):
        for name, job in jobs():
            start = time.perf_counter()
            job()
            print(f"{name}: {time.perf_counter() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main()
