"""Atomic writing of files.

A temporary file is written in the folder of the target, synced to the disk, and renamed; the rename is atomic. A reader
therefore opens either the complete old file or the complete new one, even if the writer is killed or the disk
is full. A writer that is killed leaves a temporary file `.<target>.<16 hex digits>.deciban-tmp`; the next save to the
same target removes it if it is more than a day old.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from deciban.errors import SaveError

ENDING = ".deciban-tmp"
TEMPORARY_FILES: set[Path] = set()  # of this process, now; the command line removes them when it ends
ABANDONED = 24 * 3600  # seconds after which a temporary file is removed
REMEDIES = {
    errno.ENOSPC: "The disk is full: make room, or save elsewhere.",
    errno.EDQUOT: "Your quota is used up: make room, or save elsewhere.",
    errno.EFBIG: "The file would be larger than is allowed here: save elsewhere.",
    errno.EACCES: "You may not write there: change the permissions, or save elsewhere.",
    errno.EPERM: "You may not write there: change the permissions, or save elsewhere.",
    errno.EROFS: "That place is read-only: save elsewhere.",
    errno.ENOENT: "There is no such folder: make it first.",
    errno.ENOTDIR: "There is no such folder: make it first.",
    errno.EISDIR: "That is a folder: give the name of a file.",
    errno.ENAMETOOLONG: "The name is too long: choose a shorter one.",
}


def write_whole(path: str | os.PathLike[str], fill: Callable[[int], None]) -> None:
    """Write a file atomically: `fill` writes to a descriptor, and the file appears at `path` once it is complete."""
    target = Path(os.path.realpath(path))  # a symbolic link is kept; its target is replaced
    beside = target.with_name(f".{target.name[:180]}.{secrets.token_hex(8)}{ENDING}")
    TEMPORARY_FILES.add(beside)
    try:
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if target.exists() and not target.is_file():
            raise OSError(errno.EINVAL, "a device, a pipe or a socket is not replaced")
        mode = _mode(target)
        descriptor = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o666)
        try:
            try:
                if mode is not None:
                    os.chmod(beside, mode)
                fill(descriptor)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            os.replace(beside, target)
        except BaseException:
            with suppress(OSError):
                os.unlink(beside)
            raise
        _sync_folder(target.parent)
    except OSError as error:
        raise _failed(path, error) from error
    finally:
        TEMPORARY_FILES.discard(beside)
    for name in leftovers(target):
        with suppress(OSError):
            if time.time() - name.stat().st_mtime > ABANDONED:
                name.unlink()


def leftovers(path: str | os.PathLike[str]) -> list[Path]:
    """Return the temporary files of a target: those of killed writers, and of writers that are running.

    >>> leftovers("/nowhere/penguins.deciban")
    []
    """
    target = Path(os.path.realpath(path))
    pattern = re.compile(re.escape(f".{target.name[:180]}.") + r"[0-9a-f]{16}" + re.escape(ENDING))
    try:
        names = os.listdir(target.parent)
    except OSError:
        return []
    return sorted(target.parent / name for name in names if pattern.fullmatch(name))


def write_all(descriptor: int, data: memoryview | bytes) -> None:
    """Write all of the data; `os.write` may write only a part."""
    rest = memoryview(data)
    while len(rest):
        rest = rest[os.write(descriptor, rest) :]


def _mode(target: Path) -> int | None:
    """Return the permissions of a file; None if it does not exist."""
    try:
        return stat.S_IMODE(target.stat().st_mode)
    except FileNotFoundError:
        return None


def _sync_folder(folder: Path) -> None:
    """Sync a folder, so that a rename in it survives a power failure; ignored where this is not supported."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _failed(path: str | os.PathLike[str], error: OSError) -> SaveError:
    """Return the error for a file that could not be written, with a remedy."""
    remedy = REMEDIES.get(error.errno or 0, "Save elsewhere.")
    kept = " The old file is still there, unchanged." if os.path.isfile(path) else ""
    failure = SaveError(f"{os.fspath(path)} could not be written ({error.strerror or error}). {remedy}{kept}")
    failure.errno = error.errno
    return failure
