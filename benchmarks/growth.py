"""Cost grows with the rows and no faster: four times the rows take about four times as long."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from harness import REPEATS, Row, benchmark, timed
from side_by_side import WARM_ROWS, compiling
from workloads import WORKLOADS, Workload


@benchmark("growth")
def growth(share: float) -> Iterator[Row | str]:
    """Ours alone, at a quarter of the rows and at all of them: the ratio should be about 4."""
    for work in WORKLOADS:
        compiling(work, WARM_ROWS)
        yield from _grown(work, int(work.rows * share))


def _grown(work: Workload, n: int) -> Iterator[Row]:
    X, y = work.make(n)
    few = n // 4
    X_few, y_few = X[:few], y[:few]  # beforehand, for sparse rows are copied
    model = work.classifier().fit(X, y)
    yield _four_times(
        f"{work.name} fit, {work.size(n)}",
        work.size(few),
        lambda: work.classifier().fit(X_few, y_few),
        lambda: work.classifier().fit(X, y),
    )
    yield _four_times(
        f"{work.name} scores, {work.size(n)}",
        work.size(few),
        lambda: model.predict_log_proba(X_few),
        lambda: model.predict_log_proba(X),
    )


def _four_times(job: str, fewer: str, few: Callable[[], Any], all_: Callable[[], Any]) -> Row:
    """The peer is ourselves with fewer rows, so the ratio is the other way up."""
    times = [(timed(few)[0], timed(all_)[0]) for _ in range(REPEATS)]
    small, large = ([pair[at] for pair in times] for at in (0, 1))
    return Row(job, f"ours at {fewer}", small, large, [b / a for a, b in times])
