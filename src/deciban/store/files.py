"""Atomic writing of files: models, pages, plots and tables.

A temporary file is written in the folder of the target, synced to the disk, and renamed; the rename is atomic. A reader
therefore opens either the complete old file or the complete new one, even if the writer is killed or the disk
is full. A writer that is killed leaves a temporary file `.<target>.<16 hex digits>.deciban-tmp`. A writer holds a lock
on its temporary file, and the system releases the lock when the writer ends: a temporary file without a lock was
abandoned. The next command that names the same target, and the next save to it, removes abandoned files. Where files
cannot be locked, they are removed after a day.
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
from types import ModuleType

from deciban.errors import SaveError

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # a system without such locks
    fcntl = None

ENDING = ".deciban-tmp"
TEMPORARY_FILES: set[Path] = set()  # of this process, now; the command line removes them when it ends
ABANDONED = 24 * 3600  # seconds after which a temporary file is removed where files cannot be locked
ATTEMPTS = 100  # to create a temporary file; another process may remove it before it is locked
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
        if target.exists() and not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, "the file is read-only")
        mode = _mode(target)
        try:
            descriptor, lock = create_locked(beside, 0o666)
            try:
                try:
                    if mode is not None:
                        os.chmod(beside, mode)
                    fill(descriptor)
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)
                os.replace(beside, target)
            finally:
                unlock(lock)
        except BaseException:
            with suppress(OSError):
                os.unlink(beside)
            raise
    except OSError as error:
        raise _failed(path, error) from error
    finally:
        TEMPORARY_FILES.discard(beside)
    with suppress(MemoryError):  # the file is written: from here on nothing is an error
        sync_folder(target.parent)
        remove_abandoned(path)


def write_bytes(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file atomically from bytes in memory."""
    write_whole(path, lambda descriptor: write_all(descriptor, data))


def create_locked(path: Path, mode: int) -> tuple[int, int | None]:
    """Create a file; return its descriptor and one that holds a lock on it, which is None where there are no locks.

    The second descriptor keeps the lock when the first is closed.
    """
    for _ in range(ATTEMPTS):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), mode)
        try:
            if fcntl is None:
                return descriptor, None
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:  # another process is about to remove it
                removed = True
            except OSError:  # a file system without locks
                return descriptor, None
            else:
                removed = os.fstat(descriptor).st_nlink == 0
            if not removed:
                return descriptor, os.dup(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        with suppress(OSError):
            os.unlink(path)
    raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))


def unlock(lock: int | None) -> None:
    """Release a lock of `create_locked`, also that of copies of its descriptor in processes forked meanwhile."""
    if lock is None or fcntl is None:
        return
    with suppress(OSError):
        fcntl.flock(lock, fcntl.LOCK_UN)
    with suppress(OSError):
        os.close(lock)


def remove_abandoned(path: str | os.PathLike[str]) -> None:
    """Remove the temporary files of a target whose writers were killed."""
    for name in leftovers(path):
        remove_if_abandoned(name)


def remove_if_abandoned(path: Path) -> None:
    """Remove a temporary file of this user if no process holds a lock on it."""
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
        try:
            found = os.fstat(descriptor)
            mine = not hasattr(os, "geteuid") or found.st_uid == os.geteuid()
            if mine and stat.S_ISREG(found.st_mode) and not _is_in_use(descriptor, found.st_mtime):
                os.unlink(path)
        finally:
            os.close(descriptor)


def _is_in_use(descriptor: int, changed: float) -> bool:
    """Whether a process holds a lock on a file; where files cannot be locked, whether it was changed within a day."""
    if fcntl is not None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return False
        except BlockingIOError:
            return True
        except OSError:
            pass
    return time.time() - changed <= ABANDONED


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


def sync_folder(folder: Path) -> None:
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
