"""Words of an unfinished command as bash gives them to a completion: split at = and :, which deciban's values hold.

bash replaces the last piece alone. Of a completion of `age=ga`, it must be given `gamma` and not `age=gamma`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, MutableMapping

BREAKS = re.compile("[=:]+")
BEFORE = "DECIBAN_COMPLETED_BEFORE"  # what stands before the last piece of the word that is completed
SPECIAL = re.compile(r"([\s\"'\\$`!&|;<>()\[\]{}*?~#])")


def join_words(environment: MutableMapping[str, str]) -> None:
    r"""Join the pieces of words, and note what bash does not replace.

    >>> given = {"COMP_WORDS": "deciban\nfit\na.csv\n--column\nage\n=\nga", "COMP_CWORD": "6"}
    >>> join_words(given)
    >>> given["COMP_WORDS"].split("\n"), given["COMP_CWORD"], given[BEFORE]
    (['deciban', 'fit', 'a.csv', '--column', 'age=ga'], '4', 'age=')
    """
    if "\n" not in environment.get("COMP_WORDS", "") or not environment.get("COMP_CWORD", "").isdigit():
        return
    joined, before, at, glue = list[str](), "", 0, False
    for place, piece in enumerate(environment["COMP_WORDS"].split("\n")):
        breaks = BREAKS.fullmatch(piece) is not None
        if joined and (glue or breaks):
            start, joined[-1] = joined[-1], joined[-1] + piece
        else:
            start = ""
            joined.append(piece)
        if place == int(environment["COMP_CWORD"]):
            at, before = len(joined) - 1, start + (piece if breaks else "")
        glue = breaks
    environment.update({"COMP_WORDS": "\n".join(joined), "COMP_CWORD": str(at), BEFORE: before})


def as_bash_takes_them(values: Iterable[str], environment: Mapping[str, str]) -> list[str]:
    r"""Return completions without what bash does not replace, and with a backslash before special characters.

    >>> as_bash_takes_them(["age=gamma", "age=gaussian"], {BEFORE: "age="})
    ['gamma', 'gaussian']
    >>> as_bash_takes_them(["bill length"], {BEFORE: ""})
    ['bill\\ length']
    """
    before = environment.get(BEFORE)
    if before is None:
        return list(values)
    left = (value.removeprefix(before) for value in values)
    return [SPECIAL.sub(r"\\\1", value) for value in left]
