"""A folder of text files with one sub-folder per class: columns `text` and `label`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from deciban.errors import InputError, shortlist
from deciban.read.source import Source

if TYPE_CHECKING:
    import pyarrow as pa

TEXT, LABEL = "text", "label"
PIECE = 2**23  # bytes of text read at a time


class FolderSource(Source):
    """One row a file. The classes take turns, in proportion to their sizes, so that the first rows have them all."""

    def __init__(self, path: str | os.PathLike[str], *, encoding: str = "utf-8", skip_bad: bool = False) -> None:
        super().__init__()
        self.name, self.encoding, self.skip_bad = os.fspath(path), encoding, skip_bad
        self.files = _in_turns(_classes(Path(path)))
        self.size = sum(file.stat().st_size for file, _ in self.files)
        self._kept: list[Path] = []  # of the rows so far

    @property
    def columns(self) -> tuple[str, ...]:
        return TEXT, LABEL

    def pieces(self) -> Iterator[pa.Table]:
        """Some megabytes at a time."""
        import pyarrow as pa

        texts: list[str] = []
        labels: list[str] = []
        self._kept, held = [], 0
        for file, label in self.files:
            text = self._text(file)
            if text is None:
                continue
            texts.append(text)
            labels.append(label)
            self._kept.append(file)
            held += len(text)
            if held > PIECE:
                yield pa.table({TEXT: texts, LABEL: labels})
                texts, labels, held = [], [], 0
        if texts:
            yield pa.table({TEXT: texts, LABEL: labels})

    def where(self, row: int) -> str:
        """The file itself."""
        return str(self._kept[row]) if row < len(self._kept) else super().where(row)

    def _text(self, file: Path) -> str | None:
        try:
            data = file.read_bytes()
            self.read += len(data)
            return data.decode(self.encoding)
        except UnicodeDecodeError as error:
            said = (
                f"{file}: byte {error.start} ({data[error.start : error.start + 8]!r}) is not {self.encoding.upper()}. "
                "Give the encoding, as in encoding='latin-1', or skip bad files (skip_bad=True)."
            )
        except OSError as error:
            said = f"{file} cannot be read ({error.strerror}). Mend it, or skip bad files (skip_bad=True)."
        if not self.skip_bad:
            raise InputError(said)
        self.skipped.add(said)
        return None


def _classes(folder: Path) -> dict[str, list[Path]]:
    """The files of each class, sorted; hidden ones are left out."""
    try:
        subfolders = sorted(entry for entry in folder.iterdir() if entry.is_dir() and not entry.name.startswith("."))
        found = {sub.name: sorted(_files(sub)) for sub in subfolders}
    except PermissionError as error:
        raise InputError(f"{error.filename}: no permission to read it. Ask for it, or copy the folder.") from None
    empty = [name for name, files in found.items() if not files]
    if not found or len(empty) == len(found):
        raise InputError(
            f"{folder} has no sub-folders with files in them. A folder of texts has one sub-folder per class: "
            f"{folder}/spam/1.txt, {folder}/ham/2.txt."
        )
    if empty:
        raise InputError(f"{folder}: no files in {shortlist(empty)}. Remove the empty sub-folders.")
    return found


def _files(folder: Path) -> Iterator[Path]:
    """Every file below; unlike `rglob`, says what it may not read."""
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _files(entry)
        elif not entry.name.startswith("."):
            yield entry


def _in_turns(classes: dict[str, list[Path]]) -> list[tuple[Path, str]]:
    places = [
        ((at + 0.5) / len(files), label, file) for label, files in classes.items() for at, file in enumerate(files)
    ]
    return [(file, label) for _, label, file in sorted(places)]
