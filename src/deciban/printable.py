"""Control characters in names, shown escaped: text from a file must not send commands to a terminal."""

from __future__ import annotations

import re

# C0 and C1 controls, delete, line and paragraph separators, and characters that change the direction of text
_CONTROL = "\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff"
_IN_LINE = re.compile(f"[{_CONTROL}]")
_IN_LINES = re.compile(rf"(?![\n\t])[{_CONTROL}]")
_NAMED = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def one_line(name: object) -> str:
    r"""A name as text without control characters: they are written as Python and JSON write them.

    >>> print(one_line("spam\x1b]0;title\x07\n"), one_line("Zürich"))
    spam\x1b]0;title\x07\n Zürich
    """
    text = str(name)
    return text if text.isprintable() else _IN_LINE.sub(_escaped, text)


def lines(text: str) -> str:
    r"""Text of several lines with control characters escaped, except for line breaks and tabs.

    >>> print(lines("a\x1b[2J\nb"))
    a\x1b[2J
    b
    """
    return text if text.isprintable() else _IN_LINES.sub(_escaped, text)


def json_text(text: str) -> str:
    r"""JSON whose strings hold no control characters; it means the same.

    >>> print(json_text('{"a": "\x9b2J"}'))
    {"a": "\u009b2J"}
    """
    return text if text.isprintable() else _IN_LINES.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _escaped(match: re.Match[str]) -> str:
    character = match[0]
    code = ord(character)
    return _NAMED.get(character) or (f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}")
