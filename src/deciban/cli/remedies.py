"""Remedies in the words of the command line, where the library names arguments of Python."""

from __future__ import annotations

import re

WORDS = (
    (r"\bskip_bad=True\b", "--skip-bad"),
    (r"kinds=\{'([^']*)': '([^']*)'\}", r"--column '\1=\2'"),
    (r"\bformat='(\w+)'", r"--read-as \1"),
    (r"\bencoding='([^']+)'", r"--read-as encoding=\1"),
    (r"\(quote=False\)", "(--read-as quote=none)"),
    (r"deciban\.load\(path, key=…\)", "--key-file FILE, or DECIBAN_KEY"),
    (r"let the second begin with the first's: a\.blank\(\)\.learn\(…\)", "fit the second with --like FIRST"),
    (r"a\.merge\(b, keep='left'\)", "--keep-first"),
)


def in_our_words(text: str) -> str:
    """The same advice, as it is typed here.

    >>> in_our_words("Mend the row, or skip bad rows (skip_bad=True).")
    'Mend the row, or skip bad rows (--skip-bad).'
    >>> in_our_words("declare the column: kinds={'age': 'category'}.")
    "declare the column: --column 'age=category'."
    """
    for pattern, ours in WORDS:
        text = re.sub(pattern, ours, text)
    return text
