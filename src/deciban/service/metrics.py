"""Metrics in the text format of Prometheus."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)  # seconds
EDGES = (*BUCKETS, float("inf"))


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
