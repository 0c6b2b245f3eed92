"""A source of mail: one message a row, with subject, sender and text; and a label, where there is a box per class."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from deciban.errors import InputError
from deciban.read.mail import FIELDS, fields_of, is_mail, is_maildir, raw_messages
from deciban.read.source import Source

if TYPE_CHECKING:
    import pyarrow as pa

LABEL = "label"
PIECE = 2**23  # bytes of mail read at a time


class MailSource(Source):
    """The messages of a file, an mbox, a Maildir or a folder of .eml files; or of a folder that has one such per class.

    The classes take turns, so that the first rows have them all.
    """

    def __init__(self, path: str | os.PathLike[str], *, skip_bad: bool = False) -> None:
        super().__init__()
        self.name, self.skip_bad = os.fspath(path), skip_bad
        place = Path(path)
        if not place.exists():
            raise InputError(f"there is no file {self.name!r}. Check the path.")
        self.boxes = {} if is_mail(place) or not place.is_dir() else boxes_of(place)
        self._places: list[str] = []  # of the rows so far

    @property
    def columns(self) -> tuple[str, ...]:
        return (*FIELDS, LABEL) if self.boxes else FIELDS

    def pieces(self) -> Iterator[pa.Table]:
        """Some megabytes at a time."""
        self._places, held = [], 0
        rows: list[dict[str, str]] = []
        for place, data, label in self._messages():
            rows.append(fields_of(data) | ({} if label is None else {LABEL: label}))
            self._places.append(place)
            self.read += len(data)
            held += len(data)
            if held > PIECE:
                yield self._table(rows)
                rows, held = [], 0
        if rows:
            yield self._table(rows)

    def where(self, row: int) -> str:
        """The message itself."""
        return self._places[row] if row < len(self._places) else super().where(row)

    def _messages(self) -> Iterator[tuple[str, bytes, str | None]]:
        if not self.boxes:
            yield from ((place, data, None) for place, data in raw_messages(self.name))
            return
        left = {label: raw_messages(box) for label, box in self.boxes.items()}
        while left:
            for label, box in list(left.items()):
                found = next(box, None)
                if found is None:
                    del left[label]
                else:
                    yield (*found, label)

    def _table(self, rows: list[dict[str, str]]) -> pa.Table:
        import pyarrow as pa

        return pa.table({name: pa.array([row[name] for row in rows], pa.large_string()) for name in self.columns})


def boxes_of(folder: Path) -> dict[str, Path]:
    """The mailbox of each class in a folder: its Maildirs, mbox files and sub-folders of .eml files, by name."""
    if not folder.is_dir() or is_maildir(folder):
        return {}
    found = {entry.stem: entry for entry in sorted(folder.iterdir()) if is_mail(entry)}
    return found if len(found) > 1 else {}
