"""Limits of what is read: nesting, bytes of a row, parts and seconds of a mail, and compression ratio.

They are applied before a library that trusts its input sees the rows: Arrow's JSON reader recurses until the stack
overflows, and the parsers of mail and CSV take memory and time that a small file can make arbitrarily large.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deciban.errors import HERE, InputError

VARIABLE = "DECIBAN_LIMITS"  # environment variable: "record_bytes=200000000, seconds=60"
DEEPEST = 500  # the largest depth that the recursive readers of JSON and of mail take
SOME = 2**20  # bytes read of a file that gives no size
LARGEST_RECORD = 2**30  # Arrow counts the bytes of a block in 32 bits
SPECIAL = {stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}


@dataclass(frozen=True)
class Limits:
    """Limits of what is read. What exceeds one is an `InputError`, and with `skip_bad` a skipped row.

    Parameters
    ----------
    depth : int, default=64
        Arrays and objects within one another in JSON; parts within one another in a mail. At most 500.
    record_bytes : int, default=67108864
        Bytes of a row: a line of JSON, a row of CSV, a mail, a text file. Memory is at most about three times as much.
        Also the bytes of the texts and lists of a row of Parquet or Arrow, which are decoded before.
    header_bytes : int, default=16384
        Bytes of each header of a mail that is read: subject, sender, and type, encoding and disposition of parts.
    parts : int, default=1000
        Parts of a mail.
    seconds : float, default=10.0
        Time to read one mail.
    ratio : float, default=1500.0
        Bytes of a compressed file after decompression, over those before. The ratio of gzip is at most 1,032.
    unpacked_bytes : int, default=4294967296
        Bytes of a compressed Parquet or Arrow file after decompression, which is held in memory.
    cells : int, default=33554432
        Columns times rows of JSON that are read at once, and of a workbook: a key that one line has, and a name in the
        last column of a sheet, take memory in every other row.

    Examples
    --------
    >>> Limits(depth=10)
    Limits(depth=10, record_bytes=67108864, header_bytes=16384, parts=1000, seconds=10.0, ratio=1500.0,
           unpacked_bytes=4294967296, cells=33554432)
    >>> Limits.parse("depth=10, seconds=60").seconds
    60.0
    """

    depth: int = 64
    record_bytes: int = 2**26
    header_bytes: int = 2**14
    parts: int = 1000
    seconds: float = 10.0
    ratio: float = 1500.0
    unpacked_bytes: int = 2**32
    cells: int = 2**25

    def __post_init__(self) -> None:
        most = {"depth": DEEPEST, "record_bytes": LARGEST_RECORD}
        for field in fields(self):
            value, upper = getattr(self, field.name), most.get(field.name, np.inf)
            if not 0 < value <= upper:
                bound = f"above 0 and at most {upper:,}" if upper < np.inf else "above 0"
                raise InputError(f"the limit {field.name}={value!r} must be {bound}.", remedy="Choose another value.")

    @classmethod
    def parse(cls, text: str) -> Limits:
        """Limits written as "depth=100, seconds=60"; those that are not named have their default."""
        kinds = {field.name: type(getattr(cls, field.name)) for field in fields(cls)}
        given: dict[str, Any] = {}
        for part in filter(None, (part.strip() for part in text.split(","))):
            name, _, value = (piece.strip() for piece in part.partition("="))
            try:
                given[name] = kinds[name](float(value))
            except (KeyError, ValueError, OverflowError):
                raise InputError(
                    f"{VARIABLE} holds {part!r}, which is not a limit and its value.",
                    remedy=f"Write it as in {VARIABLE}='depth=100, seconds=60'; limits are {', '.join(kinds)}.",
                ) from None
        return cls(**given)

    @classmethod
    def from_environment(cls) -> Limits:
        """The limits of the environment variable DECIBAN_LIMITS, or the default."""
        return cls.parse(os.environ.get(VARIABLE, ""))

    def remedy(self, name: str, instead: str) -> str:
        """Return the remedy for input that exceeds a limit: what to do instead, or raising the limit."""
        return f"{instead}, or raise the limit: {VARIABLE}={name}={2 * getattr(self, name):.15g}."


# -- files -------------------------------------------------------------------------------------------------------------
def refuse_special_file(path: str | os.PathLike[str]) -> None:
    """Raise an InputError for a named pipe, a socket or a device: reading one may wait forever.

    A path that does not exist, or that cannot be examined, passes: opening it gives the error.
    """
    try:
        kind = SPECIAL.get(stat.S_IFMT(os.stat(path).st_mode))
    except OSError:
        return
    if kind is not None:
        raise InputError(
            HERE,
            f" is {kind}, not a file.",
            place=os.fspath(path),
            remedy="Save its contents to a file first, or pass them on standard input ('-').",
        )


def read_start(path: str | os.PathLike[str], size: int) -> bytes:
    """Return the first bytes of a file, at most `size`; an InputError for a named pipe, a socket or a device."""
    refuse_special_file(path)
    file = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    try:
        # a buffer is allocated of as many bytes as are asked for; some files of the system have no size
        return _read(file, min((os.fstat(file).st_size or SOME) + 1, size))
    finally:
        os.close(file)


def _read(file: int, size: int) -> bytes:
    """Return bytes of an open file, `size` of them or all."""
    found = os.read(file, size)
    while len(found) < size and (more := os.read(file, size - len(found))):
        found += more
    return found


def read_record(path: str | os.PathLike[str], limits: Limits) -> bytes:
    """Return the bytes of a file that is one row; an InputError if it is not a file, or too long."""
    return within_limit(read_start(path, limits.record_bytes + 1), os.fspath(path), limits)


def within_limit(data: bytes, place: str, limits: Limits) -> bytes:
    """Return the bytes of a file; an InputError if they are more than a row may have."""
    if len(data) > limits.record_bytes:
        raise too_long(place, "the file", limits)
    return data


def too_long(place: str, what: str, limits: Limits, row: int | None = None) -> InputError:
    """Return the error for a row of more bytes than the limit."""
    return InputError(
        f"{what} is longer than {limits.record_bytes:,} bytes.",
        place=place,
        row=row,
        remedy=limits.remedy("record_bytes", "Split or remove it"),
    )


# -- nesting of JSON ---------------------------------------------------------------------------------------------------
CHUNK = 2**17  # bytes examined at a time: they and what is computed of them fit into the cache
_STEP = np.zeros(256, np.int8)
_STEP[list(b"[{")], _STEP[list(b"]}")] = 1, -1


def nests_deeper(text: bytes, depth: int) -> bool:
    r"""Whether arrays and objects are nested more deeply than `depth` in JSON; brackets within strings do not count.

    >>> nests_deeper(rb'{"a": [[1], {}], "b": "[[[[\"[[["}', 2), nests_deeper(rb'{"a": [[1], {}], "b": "[[[[\"[[["}', 3)
    (True, False)
    """
    begin, level, quoted = 0, 0, 0
    while begin < len(text):
        end = min(begin + CHUNK, len(text))
        while text[end - 1 : end] == b"\\" and end < len(text):  # an escape sequence is not split
            end += 1
        part = text[begin:end]
        if b"\\" in part:
            part = part.replace(rb"\\", b"  ").replace(rb"\"", b"  ")
        letters = np.frombuffer(part, np.uint8)
        brackets, quotes = np.flatnonzero(_STEP[letters]), np.flatnonzero(letters == ord('"'))
        outside = (np.searchsorted(quotes, brackets) + quoted) % 2 == 0
        levels = level + np.cumsum(_STEP[letters[brackets[outside]]], dtype=np.int64)
        if levels.max(initial=0) > depth:
            return True
        begin, level, quoted = end, int(levels[-1]) if len(levels) else level, (quoted + len(quotes)) % 2
    return False


def _most_openings(text: bytes, letters: NDArray[np.uint8]) -> int:
    """An upper bound of the brackets that open in one object: all of them, but one for each line after the first.

    Lines are counted where "{" follows "}" and a line feed. In lines without nesting the bound is 1. Counting needs no
    positions, and takes a third of the time of finding them.
    """
    total = lines = 0
    is_end, is_feed, is_open = np.empty((3, CHUNK + 2), bool)
    for begin in range(0, len(text), CHUNK):
        part = letters[max(begin - 2, 0) : begin + CHUNK]  # two letters of the chunk before
        size = max(len(part) - 2, 0)
        opens = np.equal(part, ord("{"), out=is_open[: len(part)])
        ends, feeds = is_end[:size], is_feed[:size]
        np.equal(part[:-2], ord("}"), out=ends)
        np.equal(part[1:-1], ord("\n"), out=feeds)
        ends &= feeds
        ends &= opens[2:]
        lines += int(np.count_nonzero(ends))
        total += int(np.count_nonzero(opens[2 * (begin > 0) :]))
        if text.find(b"[", begin, begin + CHUNK) >= 0:
            total += int(np.count_nonzero(letters[begin : begin + CHUNK] == ord("[")))
    return total - lines


def block_nests_deeper(text: bytes, depth: int) -> bool:
    r"""`nests_deeper` of lines of JSON, quicker where most lines have few brackets.

    Where a line begins with "{" and the line before ends with "}", all objects are closed, or a parser stops there. So
    the depth is at most the number of brackets that open between two such places.

    >>> block_nests_deeper(b'{"a": 1}\n{"a": [[1]]}\n', 3), block_nests_deeper(b'{"a": 1}\n{"a": [[[1]]]}\n', 3)
    (False, True)
    """
    letters = np.frombuffer(text, np.uint8)
    if _most_openings(text, letters) <= depth:
        return False
    found = []
    folded, opens = np.empty(CHUNK, np.uint8), np.empty(CHUNK, bool)
    for begin in range(0, len(text), CHUNK):
        part = letters[begin : begin + CHUNK]
        np.bitwise_or(part, 0x20, out=folded[: len(part)])  # "[" | 0x20 is "{"
        np.equal(folded[: len(part)], ord("{"), out=opens[: len(part)])
        found.append(opens[: len(part)].nonzero()[0] + begin)
        if len(found[-1]) > max(len(part) // 8, depth):  # so many that their positions take much memory
            return nests_deeper(text, depth)
    opening = np.concatenate(found) if found else np.empty(0, np.int64)
    if len(opening) <= depth:
        return False
    lines = np.flatnonzero(letters[opening - 1] == ord("\n"))  # of one at 0 the last byte is read, and it is not closed
    last, second, third = (letters[np.maximum(opening[lines] - back, 0)] for back in (0, 2, 3))
    closed = (second == ord("}")) | ((second == ord("\r")) & (third == ord("}")))
    lines = lines[closed & (last == ord("{"))]
    most = np.diff(lines, prepend=0, append=len(opening)).max()
    return bool(most > depth) and nests_deeper(text, depth)
