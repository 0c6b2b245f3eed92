"""What every code point is: its lower case, and whether it is a word character or white space.

One number per code point: the lower case in the low 21 bits, flags above. It is asked of this Python's own `str.lower`
and `re`, so kernels agree with them whatever their version of Unicode.
"""

from __future__ import annotations

import re
from functools import cache

import numpy as np

from ..choice import Array

LOWER = 0x1FFFFF  # mask of the lower case
WORD = 1 << 24  # \w
SPACE = 1 << 25  # \s
CARE = 1 << 26  # a text that holds it must be prepared in Python

_ALL = 0x110000
_COMMON = 0x20000  # the first two planes: nearly everything that is written, and asked for in an eighth of the time
_PIECE = 4096


@cache
def code_points(lowercase: bool = True, strip_accents: bool = False) -> Array:
    """The table, int32, of all code points, or of the first two planes if texts with characters beyond get care.

    A character needs care when its lower case takes another number of bytes or depends on its neighbours, or when it
    is beyond the table; every character outside ASCII does when accents are to be stripped. What was prepared in Python
    is read by the table of all, code_points(lowercase=False).

    >>> table = code_points()
    >>> chr(table[ord("Ä")] & LOWER), bool(table[ord("Ä")] & WORD), bool(table[ord("Σ")] & CARE)
    ('ä', True, True)
    """
    numbers = np.arange(_COMMON if lowercase or strip_accents else _ALL, dtype=np.int32)
    characters = numbers.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")
    table = numbers.copy()
    for flag, pattern in ((WORD, r"\w+"), (SPACE, r"\s+")):
        for run in re.finditer(pattern, characters):
            table[run.start() : run.end()] |= flag
    if lowercase:
        _lower(table, characters)
    if strip_accents:
        table[128:] |= CARE
    return table


def _lower(table: Array, characters: str) -> None:
    for start in range(0, len(table), _PIECE):
        piece = characters[start : start + _PIECE]
        if piece == piece.lower():
            continue
        for at, character in enumerate(piece, start):
            small = character.lower()
            if small == character:
                continue
            if character == "Σ" or len(small) > 1 or len(small.encode()) != len(character.encode()):
                table[at] |= CARE
            else:
                table[at] = table[ord(small)]
