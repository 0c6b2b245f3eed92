"""All-but-one sums, for k-fold: prefix plus suffix, no subtraction, so nothing is lost to rounding."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from operator import add

from deciban.statistics.base import Stats


def all_but_one(parts: Sequence[Stats]) -> list[Stats]:
    """For each part the sum of all the others, in 3n additions.

    >>> all_but_one([1, 2, 3, 4])  # anything that adds
    [9, 8, 7, 6]
    """
    if len(parts) < 2:
        raise ValueError("all-but-one sums need at least two parts")
    before = list(accumulate(parts, add))
    after = list(accumulate(reversed(parts), lambda total, part: part + total))[::-1]
    inner = [left + right for left, right in zip(before, after[2:])]
    return [after[1], *inner, before[-2]]
