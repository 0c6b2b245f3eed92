"""Paths of files and the limits of what is read from them.

A path may be a pattern such as `data/2026-*/*.parquet`, or an address such as `s3://bucket/rows.parquet`. Addresses are
opened by pyarrow.fs, or by fsspec for those that pyarrow does not know. Limits are checked before a parser without
limits gets the bytes: Arrow's JSON reader recurses until the stack overflows, and the parsers of mail and CSV take
memory and time that a small file can make arbitrarily large.
"""

from __future__ import annotations

import fnmatch
import glob
import os
import stat
from dataclasses import dataclass, fields
from math import inf
from typing import TYPE_CHECKING, Any

from deciban.errors import HERE, InputError

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

VARIABLE = "DECIBAN_LIMITS"  # environment variable: "record_bytes=200000000, seconds=60"
DEEPEST = 500  # the largest depth that the recursive readers of JSON and of mail take
SOME = 2**20  # bytes read of a file that gives no size
LARGEST_RECORD = 2**30  # Arrow counts the bytes of a block in 32 bits
SPECIAL = {stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}
SIGN = "://"


def is_address(path: str | os.PathLike[str]) -> bool:
    """Whether a path names a file system.

    >>> is_address("s3://bucket/rows.parquet"), is_address("rows.parquet")
    (True, False)
    """
    return isinstance(path, str) and SIGN in path


def is_pattern(path: str | os.PathLike[str]) -> bool:
    """Whether a path stands for several files: it has `*`, `?` or `[`, and is not itself a file.

    >>> is_pattern("logs/*.csv"), is_pattern("logs/a.csv")
    (True, False)
    """
    name = os.fspath(path)
    return isinstance(name, str) and glob.has_magic(name) and not (is_address(name) or os.path.exists(name))


def file_system(address: str) -> tuple[FileSystem, str]:
    """Return the file system of an address, and the path there."""
    from pyarrow import fs

    try:
        return fs.FileSystem.from_uri(address)
    except (ValueError, OSError):
        pass  # an error of pyarrow.ArrowInvalid, too: fsspec may know it
    try:
        import fsspec
    except ImportError:
        raise InputError(
            f"{address!r}: pyarrow has no file system for this address.",
            remedy="Install fsspec, which has more: pip install deciban[dask].",
        ) from None
    try:
        found, path = fsspec.core.url_to_fs(address)
    except (ValueError, ImportError, OSError) as error:
        raise InputError(f"{address!r} cannot be opened ({error}).", remedy="Check the address.") from None
    return fs.PyFileSystem(fs.FSSpecHandler(found)), path


def of_fsspec(system: FileSystem) -> Any:
    """Return the file system of fsspec that opens an address; None where it is one of pyarrow."""
    return getattr(getattr(system, "handler", None), "fs", None)


def expanded(pattern: str) -> list[str]:
    """Return the files that a pattern stands for, sorted; an error if there is none.

    A pattern may be an address: then its last part and its folders may have `*` and `?`.
    """
    if is_address(pattern):
        found = _addresses(pattern)
    else:
        found = [path for path in glob.glob(pattern, recursive=True) if not os.path.isdir(path)]
    if not found:
        raise InputError(f"no file matches {pattern!r}.", remedy="Check the pattern; the shell may need it in quotes.")
    return sorted(found)


def _addresses(pattern: str) -> list[str]:
    from pyarrow import fs

    scheme, _, rest = pattern.partition(SIGN)
    fixed = rest[: next(at for at, letter in enumerate(rest) if letter in "*?[")].rpartition("/")[0]
    system, base = file_system(f"{scheme}{SIGN}{fixed}")
    wanted = f"{base.rstrip('/')}/{rest[len(fixed) :].lstrip('/')}"
    try:
        entries = system.get_file_info(fs.FileSelector(base, recursive=True))
    except OSError:
        return []
    files = [entry.path for entry in entries if entry.type == fs.FileType.File]
    here = f"{scheme}{SIGN}{fixed}".rstrip("/")
    return [here + path[len(base.rstrip("/")) :] for path in files if _matches(path, wanted)]


def _matches(path: str, pattern: str) -> bool:
    """Whether a path matches, part by part: `*` does not stand for a slash.

    >>> _matches("a/b/c.csv", "a/*/c.csv"), _matches("a/b/c.csv", "a/*.csv")
    (True, False)
    """
    parts, wanted = path.split("/"), pattern.split("/")
    return len(parts) == len(wanted) and all(map(fnmatch.fnmatchcase, parts, wanted))


# -- limits ------------------------------------------------------------------------------------------------------------
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
            value, upper = getattr(self, field.name), most.get(field.name, inf)
            if not 0 < value <= upper:
                bound = f"above 0 and at most {upper:,}" if upper < inf else "above 0"
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
