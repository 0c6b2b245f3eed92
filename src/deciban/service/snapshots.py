"""The model file of a service: locked while the service runs, and replaced whole by snapshots.

A snapshot is written beside the model file, its digest is noted in the journal, and only then it takes the place of the
model file by a rename. After a crash the model file is therefore one of two files that the journal knows, and the
journal knows which lessons each contains.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any

from deciban.errors import ModelFileError, SaveError
from deciban.service.journal import Journal
from deciban.store import describe, save
from deciban.store.container import open_container

try:
    import fcntl
except ImportError:  # a system without such locks: files are still replaced whole
    fcntl = None  # type: ignore[assignment]

ENDING = ".snapshot"


def file_digest(path: Path) -> str:
    """Return the digest of a model file: of its header, which holds the digest of the arrays."""
    container = open_container(path)
    return blake2b(container.model.encode() + container.digest.encode(), digest_size=32).hexdigest()


class ModelFile:
    """A model file that this process alone changes."""

    def __init__(self, path: Path) -> None:
        self.path = Path(os.path.realpath(path))
        self.beside = self.path.with_name(f"{self.path.name}{ENDING}")
        self.note = describe(self.path)["note"]
        self._held = _locked(self.path)
        if not self._is_ours():
            raise _changed(self.path)
        self._lock = threading.Lock()
        with suppress(OSError):
            self.beside.unlink()  # of a process that was killed

    @property
    def size(self) -> int:
        """Size of the file in bytes."""
        return self.path.stat().st_size

    def save(self, clf: Any, journal: Journal, lesson: int) -> None:
        """Replace the file by a model that contains all lessons up to this one."""
        with self._lock:
            if not self._is_ours():
                raise _changed(self.path)
            try:
                save(clf, self.beside, note=self.note)
                held = _locked(self.beside)  # the lock stays on the file when it is renamed
                digest = file_digest(self.beside)
                journal.record_snapshot(digest, lesson)
                os.replace(self.beside, self.path)
                _sync_folder(self.path.parent)
            except SaveError:
                raise
            except OSError as error:
                raise SaveError(f"{self.path} could not be replaced ({error.strerror}).") from error
            self._held, old = held, self._held
            old.close()
            journal.forget_snapshots(but=digest)

    def close(self) -> None:
        """Give the lock back."""
        self._held.close()

    def _is_ours(self) -> bool:
        try:
            return os.path.samestat(os.fstat(self._held.fileno()), os.stat(self.path))
        except FileNotFoundError:
            return False


def _locked(path: Path) -> IO[bytes]:
    file = open(path, "rb")  # noqa: SIM115  it holds the lock
    if fcntl is not None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise ModelFileError(
                f"{path} is used by another deciban.", remedy="Stop that process, or serve a copy of the file."
            ) from None
    return file


def _changed(path: Path) -> ModelFileError:
    return ModelFileError(
        f"{path} was replaced by another process, so that it does not contain the lessons of this service.",
        remedy="Restore the file, or move it and its journal away and serve the new file.",
    )


def _sync_folder(folder: Path) -> None:
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
