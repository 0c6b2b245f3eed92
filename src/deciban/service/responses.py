"""Responses: JSON, JSON lines, tables and problems, and lessons as the sender and the history see them."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import Response

from deciban.model.row_reader import Row
from deciban.service.journal import Entry
from deciban.service.requests import LINES, Asked

ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))  # made once


JSON_TYPE = (b"content-type", b"application/json")


class Json(Response):
    """A response of JSON, or of problem+json."""

    media_type = "application/json"

    def init_headers(self, headers: Mapping[str, str] | None = None) -> None:
        """Set the headers; a successful answer without headers of its own always has the same two."""
        if headers or self.status_code != 200:
            super().init_headers(headers)
        else:
            self.raw_headers = [(b"content-length", b"%d" % len(self.body)), JSON_TYPE]

    def render(self, content: Any) -> bytes:
        """Encode the content."""
        return ENCODER.encode(content).encode()


def problem_response(status: int, content: dict[str, Any], headers: dict[str, str]) -> Response:
    """Return a problem as problem+json."""
    return Json(content, status_code=status, headers=headers, media_type="application/problem+json")


def lines(items: Sequence[Any], version: int) -> Response:
    """Return items as JSON lines."""
    text = "".join(json.dumps(item, ensure_ascii=False, allow_nan=False) + "\n" for item in items)
    return Response(text, media_type=LINES, headers={"X-Deciban-Version": str(version)})


def as_csv(asked: Asked, made: Sequence[dict[str, Any]]) -> str:
    """Return the rows of a table with the answers behind them."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = list(made[0]["probabilities"]) if made else []
    writer.writerow([*asked.columns, "prediction", "probability", "evidence", *(f"P({name})" for name in names)])
    for at, (row, one) in enumerate(zip(asked.rows, made)):
        given = [_given(row, name, asked, at) for name in asked.columns]
        shares = [f"{p:.6g}" for p in one["probabilities"].values()]
        evidence = one["evidence"] if isinstance(one["evidence"], str) else f"{one['evidence']:.6g}"
        writer.writerow([*given, one["prediction"] or "", f"{one['probability']:.6g}", evidence, *shares])
    return out.getvalue()


def _given(row: Row, name: str, asked: Asked, at: int) -> Any:
    if isinstance(row, dict) and name in row:
        return row[name] if row[name] is not None else ""
    return asked.labels[at] if asked.labels else ""


def acknowledgement(entry: Entry, repeated: bool) -> dict[str, Any]:
    """Return the answer to the sender of a lesson."""
    content = {
        "id": entry.id,
        "kind": entry.kind,
        "rows": len(entry.rows or ()),
        "repeated": repeated,
        "asked": entry.asked is not None,
        "offered": entry.offered,
        "undoes": entry.undoes,
        "receipt": entry.receipt,
    }
    return {name: value for name, value in content.items() if value is not None}


def history_line(entry: Entry) -> dict[str, Any]:
    """Return a lesson as the history shows it; long rows are shortened."""
    rows = [_shortened(row) for row in (entry.rows or [])[:5]]
    return {
        "id": entry.id,
        "kind": entry.kind,
        "rows": rows,
        "count": len(entry.rows or ()),
        "labels": (entry.labels or [])[:5],
        "was": None if entry.was is None else entry.was[:5],
        "who": entry.who,
        "time": entry.time,
        "asked": entry.asked is not None,
        "offered": entry.offered,
        "undoes": entry.undoes,
        "undone": entry.undone,
        "erased": entry.kind != "classes" and (entry.rows is None or None in entry.rows),
        "receipt": entry.receipt,
    }


def _shortened(row: Any, most: int = 300) -> Any:
    if isinstance(row, str):
        return row if len(row) <= most else f"{row[:most]}…"
    if isinstance(row, dict):
        return {name: _shortened(value) for name, value in list(row.items())[:50]}
    return row[:50] if isinstance(row, list) else row
