"""The algebra: sums with named axes, who belongs to which class, and all-but-one sums."""

from deciban.statistics.axes import Array, Axis, Labels, Ragged
from deciban.statistics.base import Stats, align, all_but_one, fixed, nested, summed
from deciban.statistics.members import Members

__all__ = [
    "Array",
    "Axis",
    "Labels",
    "Members",
    "Ragged",
    "Stats",
    "align",
    "all_but_one",
    "fixed",
    "nested",
    "summed",
]
