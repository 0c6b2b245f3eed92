"""Errors as problem+json (RFC 9457): what is wrong, in which row and column, and the remedy."""

from __future__ import annotations

from typing import Any

from deciban.errors import DecibanError, ModelFileError, NotAvailableError, SaveError, UnlearnError
from deciban.service.journal import JournalError
from deciban.service.lessons import ConflictError
from deciban.service.teacher import BusyError

TITLES = {
    400: "The request is malformed",
    401: "A token is needed",
    403: "Not allowed",
    404: "No such resource",
    405: "Method not allowed",
    406: "No such representation",
    408: "The request came too slowly",
    409: "The request contradicts what was learnt",
    413: "The request is too large",
    415: "Unsupported media type",
    421: "Wrong host",
    422: "The request cannot be answered",
    429: "Too many requests",
    500: "Internal error",
    503: "Not available now",
    507: "No space left",
}
MOST_DETAIL = 2000  # characters
KINDS: tuple[tuple[type[DecibanError], int], ...] = (
    (BusyError, 503),
    (ConflictError, 409),
    (UnlearnError, 409),
    (NotAvailableError, 409),
    (SaveError, 503),
    (ModelFileError, 503),
)


class RequestError(Exception):
    """An answer other than success."""

    def __init__(self, status: int, detail: str, *, remedy: str | None = None, **headers: str) -> None:
        super().__init__(detail)
        self.status, self.detail, self.remedy, self.headers = status, detail, remedy, headers

    def content(self) -> dict[str, Any]:
        """Return the body of the answer."""
        return problem(self.status, self.detail, remedy=self.remedy)


def problem(status: int, detail: str, **more: Any) -> dict[str, Any]:
    """Return the body of a problem; fields that are None are left out."""
    content = {"type": "about:blank", "title": TITLES.get(status, "Error"), "status": status}
    content["detail"] = detail[:MOST_DETAIL]
    return content | {name: value for name, value in more.items() if value is not None}


def of_error(error: DecibanError) -> tuple[int, dict[str, Any], dict[str, str]]:
    """Return status, body and headers of an error of the library."""
    if isinstance(error, JournalError):
        status = 507 if error.full else 503
    else:
        status = next((code for kind, code in KINDS if isinstance(error, kind)), 422)
    more = {
        "row": error.row,
        "columns": None if error.columns is None else [str(name) for name in error.columns],
        "label": None if error.label is None else str(error.label),
        "remedy": None if error.remedy is None else str(error.remedy),
        "kind": type(error).__name__,
    }
    return status, problem(status, str(error), **more), {"Retry-After": "1"} if status == 503 else {}
