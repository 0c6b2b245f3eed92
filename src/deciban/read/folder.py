"""A folder of text files with one sub-folder per class: columns `text` and `label`.

A file is one row, but an mbox file is all its messages: subject and body of each.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from deciban.errors import HERE, Argument, InputError, Remedy, shortlist
from deciban.read.limits import Limits, read_start, within_limit
from deciban.read.source import SKIP_BAD, DocumentSource

TEXT, LABEL = "text", "label"


class FolderSource(DocumentSource):
    """One row a text. The files of all classes are mixed evenly, so that the first rows hold every class."""

    texts = (TEXT,)

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        encoding: str = "utf-8",
        skip_bad: bool = False,
        limits: Limits | None = None,
    ) -> None:
        super().__init__(path, limits)
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

    def _texts(self, file: Path) -> Iterator[tuple[str, str]]:
        """Place and text of a file, or of each message of an mbox; none if it cannot be read and is skipped."""
        try:
            data = read_start(file, self.limits.record_bytes + 1)
            if data.startswith(b"From "):
                from deciban.read.mail import is_mbox  # lazy: the email package is slow to import

                if is_mbox(file):
                    yield from self._messages(file)
                    return
            self.read += len(data)
            text = within_limit(data, str(file), self.limits).decode(self.encoding)
        except InputError as error:
            reason = error
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
        else:
            yield str(file), text
            return
        self.raise_or_skip(reason)

    def _messages(self, file: Path) -> Iterator[tuple[str, str]]:
        """Place, subject and body of each message of an mbox."""
        from deciban.read.mail import raw_messages

        for message in raw_messages(file, self.limits):
            self.read += len(message.data)
            try:
                fields = message.fields(self.limits)
            except InputError as error:
                self.raise_or_skip(error)
            else:
                yield message.place, f"{fields['subject']}\n{fields['body']}"


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


def _files(folder: Path, above: tuple[Path, ...] = ()) -> Iterator[Path]:
    """Every file below a folder; unlike `rglob`, raises PermissionError. Links to folders above are not followed."""
    above = (*above, folder.resolve())
    for entry in folder.iterdir():
        if entry.is_dir():
            if entry.resolve() not in above:
                yield from _files(entry, above)
        elif not entry.name.startswith("."):
            yield entry


def _mixed(classes: dict[str, list[Path]]) -> list[tuple[Path, str]]:
    """All files with their class; those of each class are spread evenly over the whole list."""
    places = [
        ((at + 0.5) / len(files), label, file) for label, files in classes.items() for at, file in enumerate(files)
    ]
    return [(file, label) for _, label, file in sorted(places)]
