"""HTTP messages: bodies of requests as rows, labels and options; responses; and errors as problem+json (RFC 9457)."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import re
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from types import TracebackType
from typing import Any

from starlette.requests import ClientDisconnect
from starlette.responses import Response

from deciban.errors import DecibanError, ModelFileError, NotAvailableError, SaveError, UnlearnError
from deciban.model.row_reader import Row
from deciban.service.answers import PLAIN, Options
from deciban.service.lessons import ConflictError
from deciban.service.storage import Entry, JournalError, Listed
from deciban.service.teacher import BusyError
from deciban.store.container import parse_json

# -- problems ----------------------------------------------------------------------------------------------------------
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
    """A request that is not answered, with the status, detail and headers of the response."""

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


def problem_of(error: DecibanError) -> tuple[int, dict[str, Any], dict[str, str]]:
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


# -- requests ----------------------------------------------------------------------------------------------------------
JSON, LINES, CSV = "application/json", "application/x-ndjson", "text/csv"
FORMS = (JSON, LINES, CSV)
OPTIONS = ("prior", "cost", "unsure", "reject_cost", "unit", "over", "against")
KEY = re.compile(r"[\x21-\x7e]{1,200}")
MOST_WHO = 100  # characters in the name of a teacher


@dataclass(frozen=True)
class Limits:
    """Limits of one request."""

    body: int = 8 * 2**20  # bytes
    rows: int = 10_000
    body_seconds: float = 10.0  # until the body has arrived
    seconds: float = 30.0  # until the answer is sent
    rate: float = 200.0  # requests per second and client; 0 for no limit
    burst: float = 1000.0
    connections: int = 4096


@dataclass(frozen=True, eq=False)
class Asked:
    """A request about rows."""

    rows: list[Row]
    labels: list[Any] | None = None
    was: list[Any] | None = None
    options: Options = PLAIN
    form: str = JSON  # media type of the body
    given: Mapping[str, Any] = field(default_factory=dict)  # the other members of a JSON object
    body: bytes = b""
    columns: tuple[str, ...] = ()  # header of a CSV body

    @property
    def digest(self) -> bytes:
        """Digest of the body, which tells whether a request with a used key is a repetition."""
        return blake2b(self.body, digest_size=16).digest()


def header(scope: Any, name: bytes) -> str | None:
    """Return a header of a request that the guard admitted; of several with this name, the first."""
    value = scope["deciban.headers"].get(name)
    return None if value is None else value.decode("latin-1")


async def read_body(receive: Callable[[], Awaitable[Any]], declared: bytes | None, limits: Limits) -> bytes:
    """Return the body; RequestError if it is too large or arrives too slowly."""
    if declared is not None and declared.isdigit() and int(declared) > limits.body:
        raise _too_large(limits)
    parts, size, more = [], 0, True
    try:
        with Deadline(limits.body_seconds):
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientDisconnect
                parts.append(message.get("body", b""))
                size, more = size + len(parts[-1]), message.get("more_body", False)
                if size > limits.body:
                    raise _too_large(limits)
    except TimeoutError:
        raise RequestError(
            408, f"the body did not arrive within {limits.body_seconds:g} seconds.", Connection="close"
        ) from None
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _too_large(limits: Limits) -> RequestError:
    detail = f"the body is larger than {limits.body:,} bytes."
    return RequestError(413, detail, remedy="Send fewer rows at a time.", Connection="close")


def media_type(header: str | None) -> str:
    """Return the form of a body by its Content-Type; RequestError if the type is not supported."""
    if header == JSON:
        return JSON
    name = (header or "").split(";")[0].strip().lower()
    if name in ("application/jsonl", "application/jsonlines", "application/x-jsonlines"):
        name = LINES
    if name not in FORMS:
        raise RequestError(415, f"a body of type {name[:60]!r} is not read.", remedy=f"Send {', '.join(FORMS)}.")
    return name


def parse(body: bytes, form: str, query: Mapping[str, str], limits: Limits) -> Asked:
    """Return the rows, labels and options of a body and its query."""
    if form == JSON:
        asked = _of_object(json_object(body), body, limits)
    elif form == LINES:
        asked = _of_lines(body, query, limits)
    else:
        asked = _of_csv(body, query, limits)
    if not asked.rows:
        raise RequestError(422, "the request has no rows.", remedy='Send for example {"rows": [{"column": 1}]}.')
    return asked


def json_object(body: bytes) -> dict[str, Any]:
    """Parse a body as a JSON object; RequestError if it is not one."""
    content = _json(body)
    if not isinstance(content, dict):
        raise RequestError(400, "the body is not a JSON object.", remedy='Send for example {"rows": [{"column": 1}]}.')
    return content


def _json(text: bytes | str, line: int | None = None) -> Any:
    where = "the body" if line is None else f"line {line}"
    try:
        return parse_json(text if isinstance(text, str) else text.decode("utf-8"))
    except UnicodeDecodeError:
        raise RequestError(400, f"{where} is not UTF-8.") from None
    except RecursionError:
        raise RequestError(400, f"{where} is nested too deeply.") from None
    except ValueError as error:
        raise RequestError(400, f"{where} is not JSON ({str(error)[:200]}).") from None


def _of_object(given: dict[str, Any], body: bytes, limits: Limits) -> Asked:
    """Take rows, labels and options out of a JSON object; the result holds its other members as `given`."""
    named = [name for name in ("row", "rows", "text", "texts") if name in given]
    if len(named) > 1:
        raise RequestError(422, f"{' and '.join(named)} are given.", remedy="Give one of them.")
    rows: list[Row] = []
    one = bool(named) and named[0] in ("row", "text")
    if named:
        value = given.pop(named[0])
        rows = [value] if one else value
        if not isinstance(rows, list):
            raise RequestError(422, f"{named[0]} is not a list.")
        _check_rows(rows, limits)
    if not given:
        return Asked(rows, body=body)
    labels = _labels(given, "label", "labels", rows)
    was = _labels(given, "was", None, rows)
    now = _labels(given, "now", None, rows)
    asked = {name: given.pop(name) for name in OPTIONS if name in given}
    options = options_of(asked) if asked else PLAIN
    return Asked(rows, labels if now is None else now, was, options, given=given, body=body)


def _labels(given: dict[str, Any], single: str, several: str | None, rows: list[Row]) -> list[Any] | None:
    """Return one label for each row, from one label for all rows or a list."""
    if several is not None and several in given:
        if single in given:
            raise RequestError(422, f"{single} and {several} are given.", remedy="Give one of them.")
        value = given.pop(several)
    elif single in given:
        value = given.pop(single)
    else:
        return None
    if isinstance(value, list):
        return value
    return [value] * len(rows)


def _check_rows(rows: list[Any], limits: Limits) -> None:
    if len(rows) > limits.rows:
        raise RequestError(413, f"the request has {len(rows):,} rows; at most {limits.rows:,} are allowed.")
    for at, row in enumerate(rows):
        if not isinstance(row, dict | list | str):
            raise RequestError(422, f"row {at} is neither an object, a list nor a text.")


def options_of(given: Mapping[str, Any]) -> Options:
    """Return checked options."""
    made = dict(given)
    for name in ("unsure", "reject_cost"):
        value = made.get(name)
        if value is not None and not _is_number(value):
            raise RequestError(422, f"{name!r} is not a number.")
    for name in ("over", "against"):
        if made.get(name) is not None:
            if isinstance(made[name], bool) or not isinstance(made[name], str | int):
                raise RequestError(422, f"{name!r} is not the name of a class.")
            made[name] = str(made[name])
    prior = made.get("prior")
    if prior is not None and not isinstance(prior, str | dict):
        raise RequestError(422, "'prior' is not an object.", remedy='Give "learnt", "uniform" or {"class": p}.')
    if isinstance(prior, str) and prior not in ("learnt", "uniform"):
        raise RequestError(422, f"prior {prior[:60]!r} is unknown.", remedy='Give "learnt", "uniform" or {"class": p}.')
    if isinstance(prior, dict) and not all(map(_is_number, prior.values())):
        raise RequestError(422, "'prior' holds a value that is not a number.")
    cost = made.get("cost")
    if cost is not None:
        right = isinstance(cost, list) and all(
            isinstance(line, list)
            and len(line) == 3
            and all(isinstance(name, str | int) for name in line[:2])
            and _is_number(line[2])
            for line in cost
        )
        if not right:
            remedy = 'Give for example [["ham", "spam", 10]]: true class, decided class, cost.'
            raise RequestError(422, "'cost' is not a list of [true, decided, cost].", remedy=remedy)
    if "unit" in made and not isinstance(made["unit"], str):
        raise RequestError(422, "'unit' is not a text.")
    return Options(**made)


def _is_number(value: Any) -> bool:
    """Return whether a value of JSON is a number that a float can hold."""
    return type(value) in (int, float) and abs(value) <= sys.float_info.max


def _query_options(query: Mapping[str, str]) -> Options:
    """Return the options of a query; prior and cost are JSON."""
    given: dict[str, Any] = {}
    for name in OPTIONS:
        if name in query:
            text = query[name]
            plain = name in ("unit", "over", "against") or (name == "prior" and not text.startswith("{"))
            given[name] = text if plain else _json(text)
    return options_of(given)


def _of_lines(body: bytes, query: Mapping[str, str], limits: Limits) -> Asked:
    """Return the rows of JSON lines: each a row, or an object with row and label."""
    rows: list[Row] = []
    labels: list[Any] = []
    for number, line in enumerate(body.split(b"\n"), 1):
        if not line.strip():
            continue
        if len(rows) >= limits.rows:
            raise RequestError(413, f"the request has more than {limits.rows:,} rows.")
        value = _json(line, number)
        if isinstance(value, dict) and set(value) == {"row", "label"}:
            labels.append(value["label"])
            value = value["row"]
        elif isinstance(value, dict) and set(value) == {"row"}:
            value = value["row"]
        rows.append(value)
    _check_rows(rows, limits)
    if labels and len(labels) != len(rows):
        raise RequestError(
            422, f"{len(rows)} rows came with {len(labels)} labels.", remedy="Give every row a label, or none."
        )
    return Asked(rows, labels or None, None, _query_options(query), LINES, body=body)


def _of_csv(body: bytes, query: Mapping[str, str], limits: Limits) -> Asked:
    """Return the rows of a table with a header; the query may name the column of labels (`label`)."""
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = body.decode("latin-1")
    first = text.split("\n", 1)[0]
    delimiter = max(",;\t|", key=first.count)
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    rows: list[Row] = []
    labels: list[Any] = []
    try:
        header = tuple(name.strip() for name in next(lines, []))
        if len(set(header)) < len(header):
            raise RequestError(422, "a column occurs twice in the header.")
        label = query.get("label")
        for line in lines:
            if not line:
                continue
            if len(line) != len(header):
                detail = f"line {lines.line_num} has {len(line)} fields; the header has {len(header)}."
                raise RequestError(422, detail, remedy="Correct the line.")
            if len(rows) >= limits.rows:
                raise RequestError(413, f"the table has more than {limits.rows:,} rows.", remedy="Send it in parts.")
            row = dict(zip(header, line))
            if label in row:
                labels.append(row.pop(str(label)))
            rows.append({name: value if value.strip() else None for name, value in row.items()})
    except csv.Error as error:
        raise RequestError(422, f"line {lines.line_num} is not CSV ({error}).") from None
    return Asked(rows, labels or None, None, _query_options(query), CSV, body=body, columns=header)


def idempotency_key(header: str | None) -> str | None:
    """Return the Idempotency-Key of a request."""
    if header is None:
        return None
    if not KEY.fullmatch(header):
        raise RequestError(400, "the Idempotency-Key must have 1 to 200 visible ASCII characters.")
    return header


def member(given: Mapping[str, Any], name: str, kind: type | tuple[type, ...], default: Any = None) -> Any:
    """Return a member of a JSON object, of the right type."""
    value = given.get(name)
    if value is None:
        return default
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise RequestError(422, f"{name!r} has the wrong type.")
    return value


def no_other(given: Mapping[str, Any], allowed: set[str]) -> None:
    """Refuse unknown members, so that a misspelt option is not ignored."""
    unknown = [name for name in given if name not in allowed]
    if unknown:
        raise RequestError(422, f"the request has a member {unknown[0][:60]!r}, which is not known.")


# -- limit of time -----------------------------------------------------------------------------------------------------
class Deadline:
    """Context that cancels the current task after some seconds, and raises TimeoutError.

    Like `asyncio.timeout`, in a quarter of its time; every request uses two deadlines.
    """

    __slots__ = ("_expired", "_handle", "_seconds", "_task")

    def __init__(self, seconds: float) -> None:
        self._seconds, self._expired = seconds, False

    def __enter__(self) -> None:
        loop = asyncio.get_running_loop()
        self._task: asyncio.Task[Any] | None = asyncio.current_task(loop)
        self._handle = loop.call_later(self._seconds, self._expire)

    def _expire(self) -> None:
        self._expired = True
        if self._task is not None:
            self._task.cancel()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._handle.cancel()
        task, self._task = self._task, None
        if self._expired and task is not None and task.uncancel() <= 0 and kind is asyncio.CancelledError:
            raise TimeoutError from error


# -- responses ---------------------------------------------------------------------------------------------------------
ENCODER = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":")
)  # `json.dumps` makes a new one in each call
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
    """Return the rows of a table as CSV, followed by columns of the answers."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = list(made[0]["probabilities"]) if made else []
    writer.writerow([*asked.columns, "prediction", "probability", "evidence", *(f"P({name})" for name in names)])
    for at, (row, one) in enumerate(zip(asked.rows, made)):
        given = [_given(row, name, asked, at) for name in asked.columns]
        shares = [f"{p:.6g}" for p in one["probabilities"].values()]
        evidence = f"{one['evidence']:.6g}" if isinstance(one["evidence"], float) else one["evidence"] or ""
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


def history_line(listed: Listed) -> dict[str, Any]:
    """Return a lesson as the history shows it; long rows are shortened."""
    entry = listed.entry
    return {
        "id": entry.id,
        "kind": entry.kind,
        "rows": [_shortened(row) for row in entry.rows or ()],
        "count": listed.count,
        "labels": entry.labels or [],
        "was": entry.was,
        "who": entry.who,
        "time": entry.time,
        "asked": entry.asked is not None,
        "offered": entry.offered,
        "undoes": entry.undoes,
        "undone": entry.undone,
        "erased": listed.erased,
        "receipt": entry.receipt,
    }


def _shortened(row: Any, most: int = 300) -> Any:
    if isinstance(row, str):
        return row if len(row) <= most else f"{row[:most]}…"
    if isinstance(row, dict):
        return {name: _shortened(value) for name, value in list(row.items())[:50]}
    return row[:50] if isinstance(row, list) else row
