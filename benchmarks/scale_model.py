"""A simulator of fits over many machines: the figures of docs/explanation/scale.md.

    python benchmarks/scale_model.py                  the tables
    python benchmarks/scale_model.py --workers 64     one more line

Fragments go to the worker that is free first; a fragment takes the time of its rows, times a random factor, and a few
of them are stragglers. Additions take their share of all workers. After the last fragment, its path to the root of the
tree remains: transfers and additions, one level after the other, the parts of a vocabulary side by side. The scheduler
is one process and needs some time for each task. Constants are those of `python benchmarks/run.py engines-scale`; the
network, the stragglers and the growth of the vocabulary (Heaps' law) are assumptions.
"""

from __future__ import annotations

import argparse
import heapq
from dataclasses import dataclass, replace
from math import ceil, log2

import numpy as np

FAN_IN = 8
WORKERS = (1, 2, 4, 8, 16, 64, 256, 1_000)


@dataclass(frozen=True)
class Job:
    """A fit, and the constants of the machines."""

    name: str
    rows: float  # of the whole input
    rows_of_fragment: float
    seconds_of_row: float  # CPU seconds to read a row and to sum it
    seconds_of_first_rows: float  # choices and sums of the first 65,536 rows, on one process
    bytes_of_sums: float  # of one fragment; without words
    tokens_of_row: float = 0.0
    bytes_of_word: float = 29.6  # of a word in the sums of two classes: name, offset, counts
    seconds_of_word: float = 2.3e-7  # to add two sums, for each word of the result
    seconds_of_add: float = 0.001  # to add two sums, without words
    heaps: tuple[float, float] = (40.0, 0.55)  # words = 40 · tokens^0.55
    seconds_of_task: float = 0.001  # of the scheduler
    bandwidth: float = 1e9  # bytes per second of one worker's network
    latency: float = 0.002  # seconds of a transfer
    spread: float = 0.1  # standard deviation of the logarithm of a fragment's time
    stragglers: float = 0.01  # share of fragments that take several times as long
    delay: float = 5.0  # how many times

    @property
    def fragments(self) -> int:
        return max(1, round(self.rows / self.rows_of_fragment))

    @property
    def parts(self) -> int:
        """Parts of the vocabulary, as engines/words.py has them."""
        return min(64, max(1, ceil(self.words(self.fragments) / 2**18)))

    @property
    def tasks(self) -> float:
        """Tasks that the scheduler sees: a fragment, its mark of completion, its parts, and nodes of the trees."""
        return self.fragments * (2 + self.parts * (1 + 1 / (FAN_IN - 1)))

    def words(self, fragments: float) -> float:
        """Words of the sums of so many fragments, by Heaps' law."""
        factor, power = self.heaps
        return factor * (fragments * self.rows_of_fragment * self.tokens_of_row) ** power if self.tokens_of_row else 0.0

    def size(self, fragments: float) -> float:
        """Bytes of the sums of so many fragments."""
        return self.bytes_of_sums + self.bytes_of_word * self.words(fragments)


@dataclass(frozen=True)
class Outcome:
    """What a fit takes."""

    seconds: float
    moved: float  # bytes through the tree
    last: float  # seconds after the last fragment
    memory: float  # bytes of sums that one process holds while it adds


def simulated(job: Job, workers: int, seed: int = 0) -> Outcome:
    """Seconds of a fit: first rows, fragments and additions, the path from the last fragment to the root."""
    rng = np.random.default_rng(seed)
    n = job.fragments
    times = job.rows_of_fragment * job.seconds_of_row * np.exp(job.spread * rng.standard_normal(n))
    times[rng.random(n) < job.stragglers] *= job.delay
    adding, moved, path, below, nodes = 0.0, 0.0, 0.0, 1.0, n
    side_by_side = min(job.parts, workers)
    while nodes > 1:
        above, groups = below * FAN_IN, ceil(nodes / FAN_IN)
        add = job.seconds_of_add + job.seconds_of_word * job.words(min(above, n))
        adding += (nodes - groups) * add
        moved += (nodes - groups) * job.size(below)
        width = min(FAN_IN, nodes)
        path += width * (job.size(below) / job.bandwidth / side_by_side + job.latency)
        path += ceil(log2(width)) * add / side_by_side
        below, nodes = above, groups
    share = adding / n  # additions are spread over the workers like fragments
    free = [job.seconds_of_first_rows] * workers
    heapq.heapify(free)
    pace = job.tasks / n * job.seconds_of_task  # the scheduler's time for a fragment and what belongs to it
    for at, seconds in enumerate(times):
        start = max(heapq.heappop(free), job.seconds_of_first_rows + at * pace)
        heapq.heappush(free, start + float(seconds) + share)
    end = max(free) + path + job.size(n) / job.bandwidth
    held = 3 * job.bytes_of_word * job.words(n) / job.parts  # two sums and their union, of one part
    return Outcome(end, moved, end - max(free), held + job.bytes_of_sums)


TABLES = Job("tables, 20 columns", 1e10, 2e6, 1.78e-6, 0.18, 6_450)
TEXTS = Job("texts of 200 words", 1e9, 1e6, 1.65e-5, 1.27, 200, tokens_of_row=200)
JOBS = (TABLES, TEXTS)


def table(job: Job, workers: tuple[int, ...]) -> None:
    """Print the seconds for each number of workers."""
    words = job.words(job.fragments)
    print(f"\n{job.name}: {job.rows:,.0f} rows in {job.fragments:,} fragments, {words:,.0f} words in {job.parts} parts")
    print(
        "| workers | seconds | speed-up | efficiency | GB through the tree | s after last fragment | MB while adding |"
    )
    print("|---:|---:|---:|---:|---:|---:|---:|")
    one = simulated(job, 1).seconds
    for count in workers:
        found = simulated(job, count)
        gain = one / found.seconds
        print(
            f"| {count:,} | {found.seconds:,.0f} | {gain:,.1f} | {gain / count:.0%} | {found.moved / 1e9:,.2f} | "
            f"{found.last:,.1f} | {found.memory / 1e6:,.2f} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, nargs="*", default=[])
    more = parser.parse_args().workers
    for job in JOBS:
        table(job, (*WORKERS, *more))
    print("\nwithout stragglers, and with fragments a quarter as large:")
    for job in JOBS:
        table(replace(job, stragglers=0.0), (1, 1_000))
        table(replace(job, rows_of_fragment=job.rows_of_fragment / 4), (1, 1_000))


if __name__ == "__main__":
    main()
