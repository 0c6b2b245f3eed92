"""Words of scripts that are written without spaces, and emoji.

A run of such a script is cut into overlapping pairs of characters, each with its combining marks; a run of one
character is a word itself. An emoji is a word; characters that are joined to it belong to it.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from itertools import pairwise

# first and last code points of blocks; only letters, digits and combining marks of them are used
WITHOUT_SPACES = (
    (0x0E00, 0x0EFF),  # Thai and Lao
    (0x1000, 0x109F),  # Burmese
    (0x1780, 0x17FF),  # Khmer
    (0x2E80, 0x2FDF),  # Chinese radicals
    (0x3005, 0x3007),
    (0x3021, 0x3029),
    (0x3031, 0x3035),
    (0x3040, 0x30FF),  # Japanese syllables
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),  # Chinese characters
    (0x4E00, 0x9FFF),
    (0xAA60, 0xAA7F),  # Burmese, extended
    (0xF900, 0xFAFF),
    (0xFF66, 0xFF9F),  # half-width Japanese syllables
    (0x20000, 0x323AF),  # Chinese characters, extended
)
EMOJI = (
    (0x231A, 0x231B),
    (0x23E9, 0x23F3),
    (0x23F8, 0x23FA),
    (0x2600, 0x27BF),  # symbols and dingbats
    (0x2B05, 0x2B07),
    (0x2B1B, 0x2B1C),
    (0x2B50, 0x2B50),
    (0x2B55, 0x2B55),
    (0x1F000, 0x1F0FF),  # tiles and cards
    (0x1F18E, 0x1F19A),
    (0x1F1E6, 0x1F1FF),  # letters of flags
    (0x1F300, 0x1FAFF),
)
LONE = 0x800  # from this code point on, a word may have one character


def _class(ranges: tuple[tuple[int, int], ...]) -> str:
    """Return ranges of code points as the inside of a class of characters."""
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)


@cache
def marks() -> str:
    r"""Return the combining marks of scripts without spaces: parts of words that are not \w."""
    small = (chr(point) for first, last in WITHOUT_SPACES if last - first < 0x100 for point in range(first, last + 1))
    return "".join(c for c in small if unicodedata.category(c).startswith("M"))


@cache
def _unspaced() -> re.Pattern[str]:
    """Return the pattern of an emoji with what is joined to it, or of a run of a script without spaces."""
    emoji, inside = f"[{_class(EMOJI)}]", f"(?=[\\w{marks()}])[{_class(WITHOUT_SPACES)}]"
    flag = "[\U0001f1e6-\U0001f1ff]{2}"
    whole = f"{emoji}\ufe0f?[\U0001f3fb-\U0001f3ff]?"
    return re.compile(f"(?P<emoji>{flag}|{whole}(?:\u200d{whole})*)|(?:{inside})+")


@cache
def _characters() -> re.Pattern[str]:
    """Return the pattern of a character with its combining marks."""
    return re.compile(f".[{marks()}]*", re.S)


@cache
def words_pattern() -> re.Pattern[str]:
    """Return the pattern of a word of a text whose scripts and emoji are separated."""
    letter = f"[\\w{marks()}{_class(EMOJI)}]"
    lone = f"(?![\0-{chr(LONE - 1)}]){letter}"
    return re.compile(f"{letter}{{2,}}|{lone}")


def separated(text: str) -> str:
    """Put spaces around emoji, and between the pairs of characters of scripts without spaces.

    >>> separated("go 👍👍 北京大学").split()
    ['go', '👍', '👍', '北京', '京大', '大学']
    """
    return text if text.isascii() else _unspaced().sub(_spaced, text)


def _spaced(found: re.Match[str]) -> str:
    if found["emoji"]:
        whole = found[0].replace("\ufe0f", "").replace("\u200d", "")
        return f" {whole} "
    parts = _characters().findall(found[0])
    pairs = [one + two for one, two in pairwise(parts)] or parts
    return f" {' '.join(pairs)} "
