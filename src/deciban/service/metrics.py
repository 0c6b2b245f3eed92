"""Metrics of a running service in the text format of Prometheus, and live figures of its predictions.

Live figures say how well the service predicted the random sample before it was taught. One row in twenty is in the
sample, chosen by a keyed digest of the row; people are asked for the class of these rows whatever the prediction was.
Lessons that people chose, or that were offered because they were unsure, are not in it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from deciban.evaluate.intervals import share_interval
from deciban.evaluate.report import LEVEL
from deciban.service.journal import Entry

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)  # seconds
EDGES = (*BUCKETS, float("inf"))
MOST_ROWS = 5000  # the latest rows of the sample


class Metrics:
    """Counts of requests; changed by the event loop only."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()
        self.rows = 0
        self.buckets: Counter[float] = Counter()
        self.seconds = 0.0
        self.answered = 0

    def count(self, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        self.requests[route, status] += 1
        self.answered += 1
        self.seconds += seconds
        self.buckets[EDGES[bisect_left(BUCKETS, seconds)]] += 1

    def text(self, gauges: Mapping[str, tuple[str, str, float]]) -> str:
        """Return all metrics; `gauges` are name → (kind, help, value)."""
        lines = ["# HELP deciban_requests_total Requests by route and status.", "# TYPE deciban_requests_total counter"]
        lines += [
            f'deciban_requests_total{{route="{route}",status="{status}"}} {n}'
            for (route, status), n in sorted(self.requests.items())
        ]
        lines += ["# HELP deciban_request_seconds Time to answer.", "# TYPE deciban_request_seconds histogram"]
        total = 0
        for edge in BUCKETS:
            total += self.buckets[edge]
            lines.append(f'deciban_request_seconds_bucket{{le="{edge:g}"}} {total}')
        lines.append(f'deciban_request_seconds_bucket{{le="+Inf"}} {self.answered}')
        lines += [f"deciban_request_seconds_sum {self.seconds:.6f}", f"deciban_request_seconds_count {self.answered}"]
        lines += ["# HELP deciban_rows_total Rows answered.", "# TYPE deciban_rows_total counter"]
        lines.append(f"deciban_rows_total {self.rows}")
        for name, (kind, help, value) in gauges.items():
            lines += [f"# HELP {name} {help}", f"# TYPE {name} {kind}", f"{name} {value:g}"]
        return "\n".join(lines) + "\n"


# -- live figures ------------------------------------------------------------------------------------------------------
def live_figures(entries: Iterable[Entry]) -> dict[str, Any]:
    """Return rows, errors, error rate with its 95 % interval, and log loss of the latest rows of the sample."""
    scored = [line for entry in entries for line in entry.asked or ()][-MOST_ROWS:]
    n = len(scored)
    if not n:
        return {"rows": 0, "errors": 0, "error_rate": None, "interval": None, "log_loss": None}
    wrong = np.array([not right for _, _, right in scored], dtype=float)
    found = share_interval(wrong, None, LEVEL)
    return {
        "rows": n,
        "errors": int(wrong.sum()),
        "error_rate": found.estimate,
        "interval": [found.low, found.high],
        "log_loss": -sum(log_p for _, log_p, _ in scored) / n,
    }
