"""JSON as the standard has it: what Python accepts beyond it is refused."""

from __future__ import annotations

import json
from math import isfinite
from typing import Any


def parse_json(text: str | bytes) -> Any:
    """JSON without duplicate keys, NaN or infinities; ValueError where it is not that."""
    return json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse, parse_float=_finite)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ValueError("a key occurs twice")
    return values


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is not a number")


def _finite(digits: str) -> float:
    number = float(digits)
    if not isfinite(number):
        raise ValueError(f"{digits[:20]} is too large")
    return number
