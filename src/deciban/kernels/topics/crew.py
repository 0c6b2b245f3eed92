"""Threads that are kept for many short calls."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, Self

import numpy as np

from ..choice import Array

MOST_THREADS = 4
LEAST_WORK = 200_000  # elementary operations of a part, below which another thread does not pay


class Crew:
    """Some threads, which share ranges of rows among themselves; results must not depend on how.

    >>> with Crew(2) as crew:
    ...     parts = []
    ...     crew.share(lambda begin, end: parts.append((begin, end)), np.array([0, 5, 6, 10]), work=10**6)
    >>> sorted(parts)
    [(0, 1), (1, 3)]
    """

    def __init__(self, threads: int | None = None) -> None:
        here = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self.threads = min(here, MOST_THREADS) if threads is None else threads
        self.pool: ThreadPoolExecutor | None = None

    def share(self, act: Callable[[int, int], Any], limits: Array, work: float) -> None:
        """Call act(begin, end) for ranges of all rows, with about as many entries each; `limits` is an indptr."""
        number = int(min(self.threads, max(work // LEAST_WORK, 1), max(len(limits) - 1, 1)))
        if number == 1:
            act(0, len(limits) - 1)
            return
        targets = limits[0] + (limits[-1] - limits[0]) * np.arange(1, number) // number
        cuts = [0, *np.searchsorted(limits, targets).tolist(), len(limits) - 1]
        if self.pool is None:
            self.pool = ThreadPoolExecutor(self.threads - 1)
        others = [self.pool.submit(act, begin, end) for begin, end in pairwise(cuts[1:])]
        act(cuts[0], cuts[1])
        for other in others:
            other.result()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def close(self) -> None:
        """Let the threads go."""
        if self.pool is not None:
            self.pool.shutdown()
            self.pool = None


ALONE = Crew(1)
