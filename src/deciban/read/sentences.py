"""Reads sentences: words, and their tags if a file has them.

Formats: one word a line, followed by a tab and its tag, with a blank line between sentences; CoNLL-U, which is the same
with ten columns; JSON lines with "words" and optionally "tags" (or "upos" and "xpos"); plain text, a sentence a line.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import IO, NamedTuple

import pyarrow as pa

from deciban.errors import HERE, InputError
from deciban.read.limits import Limits, nests_deeper, refuse_special_file, too_long

TAGS = ("tags", "upos")  # keys of JSON lines
NO_VALUE = "_"  # in CoNLL-U


class Sentence(NamedTuple):
    """Words, and a tag of each, to which `|` and a finer tag may be added."""

    words: list[str]
    tags: list[str] | None


def read_sentences(path: str, tagged: bool) -> list[Sentence]:
    """All sentences of a file, or of "-" for standard input; with `tagged`, words must have tags."""
    name, limits = "standard input" if path == "-" else path, Limits.from_environment()
    with _opened(path) as lines:
        try:
            found = list(_sentences(_lines(lines, name, limits), name, tagged, limits))
        except UnicodeDecodeError as error:
            what = f" is not UTF-8 (byte {error.start})."
            raise InputError(HERE, what, place=name, remedy="Convert it first.") from None
        except OSError as error:
            what = f" cannot be read ({error.strerror or error})."
            raise InputError(HERE, what, place=name, remedy="Is it whole?") from None
    if not found:
        remedy = "Give a word and a tag a line, or a sentence a line."
        raise InputError(HERE, " holds no sentences.", place=name, remedy=remedy)
    return found


def _lines(stream: IO[str], name: str, limits: Limits) -> Iterator[str]:
    """The lines of a file; one that is too long is an error."""
    number = 1
    while line := stream.readline(limits.record_bytes + 1):
        if len(line) > limits.record_bytes:
            raise too_long(f"{name}, line {number}", "the line", limits, number)
        yield line
        number += 1


def _sentences(lines: Iterable[str], name: str, tagged: bool, limits: Limits) -> Iterator[Sentence]:
    words: list[str] = []
    tags: list[str] = []
    for number, line in enumerate(lines, 1):
        text = line.rstrip("\r\n")
        if text.startswith("{"):
            yield _of_json(text, f"{name}, line {number}", number, tagged, limits)
        elif not text.strip():
            if words:
                yield Sentence(words, tags or None)
            words, tags = [], []
        elif "\t" in text:
            _add(text.split("\t"), words, tags)
        elif tagged and not text.startswith("#"):
            raise InputError(
                f"{text[:60]!r} has no tag.",
                row=number,
                place=f"{name}, line {number}",
                remedy="Write the word, a tab, and its tag.",
            )
        elif not text.startswith("#"):
            yield Sentence(text.split(), None)
    if words:
        yield Sentence(words, tags or None)


def _add(cells: list[str], words: list[str], tags: list[str]) -> None:
    """Add the word of a line; CoNLL-U lists the parts of a contraction after it, so its own line is skipped."""
    if len(cells) < 8:
        words.append(cells[0])
        tags.append(cells[1])
    elif cells[0].isdigit():
        words.append(cells[1])
        tags.append(cells[3] if cells[4] in (NO_VALUE, "") else f"{cells[3]}|{cells[4]}")


def _of_json(text: str, place: str, row: int, tagged: bool, limits: Limits) -> Sentence:
    try:
        if nests_deeper(text.encode("utf-8", "replace"), limits.depth):
            raise ValueError(f"arrays and objects are nested more than {limits.depth} deep")
        found = json.loads(text)
    except ValueError as error:
        raise InputError(f"not JSON ({error}).", row=row, place=place, remedy="Correct the line.") from None
    words = found.get("words")
    if not isinstance(words, list) or not all(isinstance(word, str) and word for word in words):
        what = f'a sentence needs a list of "words". It has {", ".join(found)}.'
        raise InputError(what, row=row, place=place)
    tags = next((found[key] for key in TAGS if key in found), None)
    if tags is None and tagged:
        raise InputError('a sentence to learn from needs "tags" beside its "words".', row=row, place=place)
    if tags is not None and len(tags) != len(words):
        what = f"{len(words)} words, but {len(tags)} tags."
        raise InputError(what, row=row, place=place, remedy="Give each word one.")
    finer = found.get("xpos")
    if tags is not None and isinstance(finer, list) and len(finer) == len(words):
        tags = [f"{tag}|{more}" for tag, more in zip(tags, finer)]
    return Sentence(words, tags)


@contextmanager
def _opened(path: str) -> Iterator[IO[str]]:
    """Lines of a file, compressed or not, or of standard input."""
    if path == "-":
        yield sys.stdin
        return
    refuse_special_file(path)
    try:
        stream = pa.input_stream(path, compression="detect")
    except OSError as error:
        what = f" cannot be read ({error.strerror or error})."
        raise InputError(HERE, what, place=path, remedy="Check the path and its permissions.") from None
    with io.TextIOWrapper(stream, "utf-8") as lines:
        yield lines
