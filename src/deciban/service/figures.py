"""Live figures: how well the service predicted the random sample before it was taught.

One row in twenty is in the sample, chosen by a keyed digest of the row; people are asked for the class of these rows
whatever the prediction was. Lessons that people chose, or that were offered because they were unsure, are not in it.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import sqrt
from typing import Any

from deciban.service.journal import Entry

Z = 1.959964  # normal quantile of a 95 % interval
MOST_ROWS = 5000  # the latest rows of the sample


def live_figures(entries: Iterable[Entry]) -> dict[str, Any]:
    """Return rows, errors, error rate with its 95 % interval, and log loss of the latest rows of the sample."""
    scored = [line for entry in entries for line in entry.asked or ()][-MOST_ROWS:]
    n = len(scored)
    if not n:
        return {"rows": 0, "errors": 0, "error_rate": None, "interval": None, "log_loss": None}
    errors = sum(not right for _, _, right in scored)
    return {
        "rows": n,
        "errors": errors,
        "error_rate": errors / n,
        "interval": list(wilson(errors, n)),
        "log_loss": -sum(log_p for _, log_p, _ in scored) / n,
    }


def wilson(errors: int, n: int) -> tuple[float, float]:
    """Return the 95 % interval of a proportion (Wilson's score interval).

    >>> tuple(round(end, 3) for end in wilson(0, 20))
    (0.0, 0.161)
    """
    p = errors / n
    middle, spread = p + Z * Z / (2 * n), Z * sqrt(p * (1 - p) / n + Z * Z / (4 * n * n))
    scale = 1 + Z * Z / n
    return max(0.0, (middle - spread) / scale), min(1.0, (middle + spread) / scale)
