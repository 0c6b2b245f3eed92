"""Buffers of compiled loops, with room around them.

A compiler makes two bodies of a loop over topics that sums and stores: a vectorised one, and one that goes number by
number for arrays that may overlap. Which one runs it decides by how far apart the arrays lie, and small ones may lie
so close that it doubts. The two add in different orders: the same input would then give other last bits from run to
run. What such loops store to therefore lies away from everything else.
"""

from __future__ import annotations

from ..choice import Array
from ..jit import part

AROUND = 256  # numbers: more than a compiler looks ahead, whatever the width of its vectors


@part
def inside(padded: Array) -> Array:
    """A buffer without the room around it."""
    return padded[AROUND : padded.size - AROUND]
