"""Places of files: paths, patterns such as `data/2026-*/*.parquet`, and addresses such as `s3://bucket/rows.parquet`.

Addresses are opened by pyarrow.fs, or by fsspec for what pyarrow does not know.
"""

from __future__ import annotations

import fnmatch
import glob
import os
from typing import TYPE_CHECKING, Any

from deciban.errors import InputError

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

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
