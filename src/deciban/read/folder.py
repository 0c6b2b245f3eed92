"""A folder of text files with one sub-folder per class: columns `text` and `label`.

A file is one row, but an mbox file is all its messages: subject and body of each.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from deciban.errors import HERE, Argument, InputError, Remedy, shortlist
from deciban.read.source import SKIP_BAD, DocumentSource

TEXT, LABEL = "text", "label"


class FolderSource(DocumentSource):
    """One row a text. The files of all classes are mixed evenly, so that the first rows hold every class."""

    def __init__(self, path: str | os.PathLike[str], *, encoding: str = "utf-8", skip_bad: bool = False) -> None:
        super().__init__(path)
        self.encoding, self.skip_bad = encoding, skip_bad
        self.files = _mixed(_classes(Path(path)))
        self.size = sum(file.stat().st_size for file, _ in self.files)

    @property
    def columns(self) -> tuple[str, ...]:
        return TEXT, LABEL

    def documents(self) -> Iterator[tuple[str, dict[str, str]]]:
        """The texts of all files."""
        for file, label in self.files:
            for place, text in self._texts(file):
                yield place, {TEXT: text, LABEL: label}

    def _texts(self, file: Path) -> list[tuple[str, str]]:
        """Place and text of a file, or of each message of an mbox; none if it cannot be read and is skipped."""
        try:
            data = file.read_bytes()
            self.read += len(data)
            if data.startswith(b"From "):
                from deciban.read.mail import (  # lazy: the email package is slow to import
                    fields_of,
                    is_mbox,
                    raw_messages,
                )

                if is_mbox(file):
                    found = [(place, fields_of(message)) for place, message in raw_messages(file)]
                    return [(place, f"{fields['subject']}\n{fields['body']}") for place, fields in found]
            return [(str(file), data.decode(self.encoding))]
        except UnicodeDecodeError as error:
            shown = f"byte {error.start} ({data[error.start : error.start + 8]!r})"
            encoding = Argument("encoding", "latin-1")
            reason = InputError(
                f"{shown} is not {self.encoding.upper()}.",
                place=str(file),
                remedy=Remedy("Give the encoding, as in ", encoding, ", or skip bad files (", SKIP_BAD, ")."),
            )
        except OSError as error:
            reason = InputError(
                HERE,
                f" cannot be read ({error.strerror}).",
                place=str(file),
                remedy=Remedy("Check it, or skip bad files (", SKIP_BAD, ")."),
            )
        if not self.skip_bad:
            raise reason
        self.skipped.add(reason)
        return []


def _classes(folder: Path) -> dict[str, list[Path]]:
    """The files of each class, sorted, without hidden ones."""
    try:
        subfolders = sorted(entry for entry in folder.iterdir() if entry.is_dir() and not entry.name.startswith("."))
        found = {sub.name: sorted(_files(sub)) for sub in subfolders}
    except PermissionError as error:
        raise InputError(
            "no permission to read it.", place=str(error.filename), remedy="Ask for it, or copy the folder."
        ) from None
    empty = [name for name, files in found.items() if not files]
    if not found or len(empty) == len(found):
        raise InputError(
            HERE,
            " has no sub-folders with files in them.",
            place=str(folder),
            remedy=f"A folder of texts has one sub-folder per class: {folder}/spam/1.txt, {folder}/ham/2.txt.",
        )
    if empty:
        raise InputError(f"no files in {shortlist(empty)}.", place=str(folder), remedy="Remove the empty sub-folders.")
    return found


def _files(folder: Path) -> Iterator[Path]:
    """Every file below a folder; unlike `rglob`, raises PermissionError."""
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _files(entry)
        elif not entry.name.startswith("."):
            yield entry


def _mixed(classes: dict[str, list[Path]]) -> list[tuple[Path, str]]:
    """All files with their class; those of each class are spread evenly over the whole list."""
    places = [
        ((at + 0.5) / len(files), label, file) for label, files in classes.items() for at, file in enumerate(files)
    ]
    return [(file, label) for _, label, file in sorted(places)]
