"""Values that add: `a + b`, and `sum([a, b, c])`, which begins with 0 + a."""

from __future__ import annotations

from typing import Self


class Additive:
    """Base of values that define `+`; 0 is the neutral element, so that Python's `sum` works."""

    def __radd__(self, other: int) -> Self:
        return self if isinstance(other, int) and other == 0 else NotImplemented
