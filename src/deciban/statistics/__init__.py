"""The algebra of sums: statistics with named axes, membership of rows in groups, and all-but-one sums."""

from deciban.statistics.axes import Array, Axis, Labels, LazyNames, Ragged
from deciban.statistics.base import Additive, Stats, align, all_but_one, fixed, nested, peak, summed
from deciban.statistics.exact import ExactSums
from deciban.statistics.members import Members

__all__ = [
    "Additive",
    "Array",
    "Axis",
    "ExactSums",
    "Labels",
    "LazyNames",
    "Members",
    "Ragged",
    "Stats",
    "align",
    "all_but_one",
    "fixed",
    "nested",
    "peak",
    "summed",
]
