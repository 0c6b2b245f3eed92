"""Spreadsheets: a sheet of an Excel workbook; `pip install deciban[excel]`."""

from __future__ import annotations

import os
import zipfile
from typing import Any

from deciban.errors import InputError, NotAvailableError
from deciban.read.limits import Limits
from deciban.read.source import HeldSource


class WorkbookSource(HeldSource):
    """A sheet of a workbook, whose first row that is not empty names the columns; formulas have their last values."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        sheet: str | None = None,
        skip_bad: bool = False,
        limits: Limits | None = None,
    ) -> None:
        self.sheet = sheet
        super().__init__(path, skip_bad=skip_bad, limits=limits)

    def read_columns(self) -> dict[str, list[Any]]:
        """Return the values of each column."""
        try:
            from openpyxl import load_workbook  # type: ignore[import-untyped]
        except ImportError:
            raise NotAvailableError(
                f"{self.name} is a workbook, and openpyxl, which reads workbooks, is not installed. Install it: "
                "pip install deciban[excel]; or save the sheet as CSV."
            ) from None
        if self.stdin:
            raise self.refusal(" cannot be a workbook.", remedy="Save it to a file first.")
        self._check_size()
        try:
            book = load_workbook(os.fspath(self.path), read_only=True, data_only=True)
        except Exception as error:  # the parser raises errors of many kinds for files that are damaged
            raise self.unreadable(error) from None
        try:
            return self._cells(book)
        except InputError:
            raise
        except Exception as error:
            raise self.unreadable(error) from None
        finally:
            book.close()

    def _check_size(self) -> None:
        """Refuse a workbook that would be too large in memory."""
        try:
            with zipfile.ZipFile(os.fspath(self.path)) as packed:
                size = sum(entry.file_size for entry in packed.infolist())
        except (zipfile.BadZipFile, OSError) as error:
            raise self.unreadable(error) from None
        if size > self.limits.unpacked_bytes or size > max(2**20, self.limits.ratio * os.path.getsize(self.path)):
            raise self.refusal(
                f" holds {size:,} bytes after decompression.",
                remedy=self.limits.remedy("unpacked_bytes", "Save the sheet as CSV"),
            )

    def _cells(self, book: Any) -> dict[str, list[Any]]:
        if self.sheet is not None and self.sheet not in book.sheetnames:
            raise self.refusal(f" has no sheet {self.sheet!r}: {', '.join(book.sheetnames)[:200]}.")
        sheet = book[self.sheet or book.sheetnames[0]]
        names: list[str] | None = None
        rows: list[tuple[Any, ...]] = []
        for row in sheet.iter_rows(values_only=True):
            if row.count(None) == len(row):
                continue
            if names is None:
                width = max(at for at, value in enumerate(row, 1) if value is not None)
                names = ["" if value is None else str(value).strip() for value in row[:width]]
                continue
            if len(row) > width and row[width:].count(None) < len(row) - width:
                raise self.refusal(
                    f": row {len(rows) + 2} has cells beyond the last column that has a name.",
                    remedy="Name the columns in the first row.",
                )
            if width * len(rows) > self.limits.cells:
                raise self.refusal(
                    f" has more than {len(rows):,} rows of {width:,} columns.",
                    remedy=self.limits.remedy("cells", "Save the sheet as CSV"),
                )
            rows.append(row[:width] + (None,) * (width - len(row)))
        columns = [list(values) for values in zip(*rows)] if rows else [[] for _ in names or ()]
        return self.named(names or [], columns)
