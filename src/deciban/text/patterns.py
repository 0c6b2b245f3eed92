r"""Patterns of words that `re` matches in time proportional to the text, for models from files.

`re` backtracks: `((?:a+)+)\b!` takes time exponential in the number of letters, `\w+!` quadratic. A pattern is linear
if, in short, it never gives up characters that a repeat has read:

- a repeat is of one class of characters, or of a group that begins with a class disjoint from the repeats within and
  before it: `\w+(?:[-']\w+)*`;
- what follows a repeat may be left out, or is a \b that always holds there; and a repeat that follows another has a
  class disjoint from it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

op: Any = import_module("re._constants")  # the parse tree of `re` has no public module
parser: Any = import_module("re._parser")
FEW = 64  # a repeat of at most this length is short; so many ways to match short repeats and alternatives are allowed
MOST_CLASSES = 32  # classes of characters of a pattern that are compared: finding their characters takes 10 ms each
LONGEST = 1_000  # characters of a pattern
CHARACTERS = 0x110000  # code points of Unicode
CHARACTER = (op.LITERAL, op.NOT_LITERAL, op.ANY, op.IN)
GROUPS = (op.SUBPATTERN, op.ATOMIC_GROUP)
REPEATS = (op.MAX_REPEAT, op.POSSESSIVE_REPEAT)


def is_linear(pattern: str) -> bool:
    r"""Whether `re` finds all matches of a pattern in time proportional to the text.

    >>> [is_linear(each) for each in (r"(?u)\b\w\w+\b", r"\S+", r"[a-z]+(?:-[a-z]+)*", r"\d{4}|\w+")]
    [True, True, True, True]
    >>> [is_linear(each) for each in (r"((?:a+)+)\b!", r"\w+!", r"\w+\w+", r"(\w)\1+")]
    [False, False, False, False]
    """
    if len(pattern) > LONGEST:
        return False
    try:
        tree = parser.parse(pattern)
        return _Reader(tree.state.flags).safe(list(tree))
    except (re.error, RecursionError, OverflowError, _UnknownError):
        return False


class _UnknownError(Exception):
    """A construct that is not known to take linear time."""


class _Reader:
    """Decides on the parse tree of a pattern; `flags` are those of the whole pattern."""

    def __init__(self, flags: int) -> None:
        self.flags = flags & ~(re.DEBUG | re.VERBOSE | re.LOCALE)
        self.ways = 1  # in which short repeats and alternatives can match
        self.members: dict[str, NDArray[np.uint8]] = {}  # class of characters → a bit for each character in it

    def safe(self, items: Sequence[Any]) -> bool:
        """Whether a sequence of items takes linear time."""
        words = self._starts_at_boundary(items)
        return self._sequence(items, frozenset(), words)[1] and self.ways <= FEW

    def _starts_at_boundary(self, items: Sequence[Any]) -> bool:
        r"""Whether matches begin at a \b, so that a run of word characters is read once."""
        return bool(items) and items[0] == (op.AT, op.AT_BOUNDARY)

    def _sequence(self, items: Sequence[Any], before: frozenset[str], words: bool) -> tuple[frozenset[str], bool]:
        """Return the characters of the last repeat, if one may end the sequence, and whether it takes linear time."""
        last, repeated = before, bool(before)
        for kind, value in items:
            if kind is op.AT:
                if repeated and not (value is op.AT_BOUNDARY and self._ends_a_word(last, words)):
                    return last, False
            elif kind in CHARACTER:
                if repeated:
                    return last, False  # the repeat would give up characters, and be read again
            elif kind in GROUPS:
                inner = value[-1] if kind is op.SUBPATTERN else value
                if kind is op.SUBPATTERN and (value[1] or value[2]):
                    raise _UnknownError  # flags of a group
                last, right = self._sequence(list(inner), last if repeated else frozenset(), words)
                repeated = repeated or bool(last)
                if not right:
                    return last, False
            elif kind is op.BRANCH:
                if repeated:
                    return last, False
                found = [self._sequence(list(branch), frozenset(), words) for branch in value[1]]
                if not all(right for _, right in found):
                    return last, False
                last = frozenset[str]().union(*(each for each, _ in found))
                self.ways *= len(found)
                repeated = bool(last)
            elif kind in REPEATS:
                last, right = self._repeat(value, last if repeated else frozenset(), words)
                repeated = repeated or bool(last)
                if not right:
                    return last, False
            else:
                raise _UnknownError  # back references, conditions, lazy repeats, looking ahead or behind
        return last, True

    def _repeat(self, value: Any, before: frozenset[str], words: bool) -> tuple[frozenset[str], bool]:
        """As `_sequence`, for a repeat."""
        least, most, body = value
        items = list(body)
        if len(items) == 1 and items[0][0] in CHARACTER:
            own = frozenset([self._class(items[0])])
            right = not before or (least == 0 and self._disjoint(own, before))
            if most <= FEW:
                self.ways *= int(most) - int(least) + 1
                return before, right
            return own | before, right
        if before and least > 0:
            return before, False
        while len(items) == 1 and items[0][0] in GROUPS:
            items = list(items[0][1][-1] if items[0][0] is op.SUBPATTERN else items[0][1])
        if not items or items[0][0] not in CHARACTER:
            return before, False
        first = frozenset([self._class(items[0])])
        last, right = self._sequence(items[1:], frozenset(), words)
        if not right or not self._disjoint(first, before | last):
            return before, False
        if not last and most > FEW and len(items) > 1:
            return before, False  # such as (?:ab)+: gives up whole groups
        return before | last | first, True

    def _ends_a_word(self, last: frozenset[str], words: bool) -> bool:
        r"""Whether a \b holds after a repeat of these classes, or the match began at a \b."""
        return last == {r"[\w]"} or (words and not any(self._meet(each, r"\W") for each in last))

    def _disjoint(self, one: frozenset[str], other: frozenset[str]) -> bool:
        return not any(self._meet(a, b) for a in one for b in other)

    def _meet(self, a: str, b: str) -> bool:
        """Whether a character is in both of two classes."""
        return bool((self._members(a) & self._members(b)).any())

    def _members(self, each: str) -> NDArray[np.uint8]:
        """Return the characters of a class, a bit for each."""
        if each not in self.members:
            if len(self.members) == MOST_CLASSES:
                raise _UnknownError
            found = np.zeros(CHARACTERS, bool)
            for run in re.finditer(f"{each}+", _all_characters(), self.flags):
                found[run.start() : run.end()] = True
            self.members[each] = np.packbits(found)
        return self.members[each]

    def _class(self, item: Any) -> str:
        """Return the class of characters of an item, as a pattern."""
        kind, value = item
        if kind is op.LITERAL:
            return f"[{re.escape(chr(value))}]"
        if kind is op.NOT_LITERAL:
            return f"[^{re.escape(chr(value))}]"
        return "." if kind is op.ANY else _spelt(value)


CATEGORIES = {
    op.CATEGORY_DIGIT: r"\d",
    op.CATEGORY_NOT_DIGIT: r"\D",
    op.CATEGORY_SPACE: r"\s",
    op.CATEGORY_NOT_SPACE: r"\S",
    op.CATEGORY_WORD: r"\w",
    op.CATEGORY_NOT_WORD: r"\W",
}


def _spelt(members: Sequence[Any]) -> str:
    """Return a class of characters as a pattern."""
    parts: list[str] = []
    for kind, value in members:
        if kind is op.NEGATE:
            parts.insert(0, "^")
        elif kind is op.LITERAL:
            parts.append(re.escape(chr(value)))
        elif kind is op.RANGE:
            parts.append(f"{re.escape(chr(value[0]))}-{re.escape(chr(value[1]))}")
        elif kind is op.CATEGORY:
            parts.append(CATEGORIES[value])
        else:
            raise _UnknownError
    return f"[{''.join(parts)}]"


@cache
def _all_characters() -> str:
    return "".join(map(chr, range(CHARACTERS)))
