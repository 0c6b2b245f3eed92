"""The model file of a service: locked while the service runs, and replaced whole by snapshots.

A snapshot is written beside the model file, its digest is noted in the journal, and only then it takes the place of the
model file by a rename. After a crash the model file is therefore one of two files that the journal knows, and the
journal knows which lessons each contains.

A snapshot is written by a thread of its own, of the immutable model of one moment; lessons go on meanwhile. Snapshots
are written one after the other, and their lessons only increase: the model that is written last contains the most.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from contextlib import suppress
from copy import copy
from hashlib import blake2b
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from deciban.errors import DecibanError, ModelFileError, SaveError
from deciban.model.model import Model
from deciban.model.predictor import Predictor
from deciban.service.journal import Journal
from deciban.store import describe, save
from deciban.store.container import open_container
from deciban.store.files import sync_folder

if TYPE_CHECKING:
    from deciban.estimators.classifier import GenerativeClassifier

try:
    import fcntl
except ImportError:  # a system without such locks: files are still replaced whole
    fcntl = None  # type: ignore[assignment]

ENDING = ".snapshot"
SNAPSHOT_LESSONS = 20_000  # after so many lessons
SNAPSHOT_SECONDS = 300.0  # and after so much time, if there were lessons


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
                sync_folder(self.path.parent)
            except SaveError:
                raise
            except OSError as error:
                raise SaveError(f"{self.path} could not be replaced ({error.strerror}).") from error
            self._held, old = held, self._held
            old.close()
            journal.forget_snapshots(but=digest)

    def close(self) -> None:
        """Release the lock."""
        self._held.close()

    def _is_ours(self) -> bool:
        try:
            return os.path.samestat(os.fstat(self._held.fileno()), os.stat(self.path))
        except FileNotFoundError:
            return False


class Snapshots:
    """Snapshots of one service: the model of a moment is written while lessons go on.

    The methods are called by one thread, the teacher's; the attributes may be read by any.

    Parameters
    ----------
    file : ModelFile
        The file.
    journal : Journal
        Its journal.
    clf : GenerativeClassifier
        The classifier whose parameters the file holds.
    saved : int
        The last lesson that the file contains.
    seconds : float
        After so much time with lessons, and after `SNAPSHOT_LESSONS`, a snapshot is due.
    """

    def __init__(
        self, file: ModelFile, journal: Journal, clf: GenerativeClassifier, saved: int, seconds: float
    ) -> None:
        self.file, self.journal, self.clf, self.saved, self.seconds = file, journal, clf, saved, seconds
        self.error = ""
        self._saved_at = time.monotonic()
        self._thread: threading.Thread | None = None

    def begin_if_due(self, model: Model, lesson: int) -> None:
        """Begin to write a model in another thread if many lessons are new, or if the last snapshot is long ago."""
        new, age = lesson - self.saved, time.monotonic() - self._saved_at
        if new and (new >= SNAPSHOT_LESSONS or age >= self.seconds):
            self.begin(model, lesson)

    def begin(self, model: Model, lesson: int) -> None:
        """Begin to write a model in another thread, unless one is being written."""
        if self.writing:
            return
        self._thread = threading.Thread(target=self._try, args=(model, lesson), name="snapshot", daemon=True)
        self._thread.start()

    @property
    def writing(self) -> bool:
        """Whether a snapshot is being written by the other thread."""
        return self._thread is not None and self._thread.is_alive()

    def write(self, model: Model, lesson: int) -> None:
        """Wait for the snapshot that is being written, then write this one before returning."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self._write(model, lesson)

    def finish(self, model: Model, lesson: int) -> None:
        """Write the last snapshot, if lessons are new; `error` says why it could not be written."""
        if self._thread is not None:
            self._thread.join()
        if self.saved < lesson:
            self._try(model, lesson)

    def _try(self, model: Model, lesson: int) -> None:
        try:
            self._write(model, lesson)
        except Exception as error:  # the journal has the lessons; the next attempt may succeed
            if not isinstance(error, DecibanError | OSError):
                logging.getLogger("deciban.service").exception("internal error while writing the model file")
            self.error, self._saved_at = str(error), time.monotonic()

    def _write(self, model: Model, lesson: int) -> None:
        self.file.save(copy(self.clf).use(Predictor(model)), self.journal, lesson)
        self.saved, self._saved_at, self.error = lesson, time.monotonic(), ""


def _locked(path: Path) -> IO[bytes]:
    file = open(path, "rb")  # noqa: SIM115  it holds the lock
    if fcntl is not None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise ModelFileError(
                f"{path} is used by another deciban process.", remedy="Stop that process, or serve a copy of the file."
            ) from None
    return file


def _changed(path: Path) -> ModelFileError:
    return ModelFileError(
        f"{path} was replaced by another process, so that it does not contain the lessons of this service.",
        remedy="Restore the file, or move it and its journal away and serve the new file.",
    )
