"""The OpenAPI description of the service, generated from the table of its routes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class RouteInfo:
    """One operation: its address, its input and its answer."""

    method: str
    path: str
    name: str  # name of the method of `Service` that answers it, without the underscore
    summary: str
    body: str | None = None  # name of a schema
    answer: str | None = None  # name of a schema; None for text
    lines: bool = False  # also takes JSON lines and CSV
    query: tuple[tuple[str, str], ...] = ()  # name, JSON type
    key: bool = False  # takes an Idempotency-Key
    message: bool = False  # takes and gives a mail


MESSAGE = "message/rfc822"
MAIL_TYPES = (MESSAGE, "text/plain")  # media types of mails in requests
AFTER = (("after", "integer"),)
ROUTES = (
    RouteInfo("POST", "/predict", "predict", "Classify rows.", "Rows", "Predictions", True),
    RouteInfo(
        "POST",
        "/explain",
        "explain",
        "Evidence of each column or word.",
        "Rows",
        "Explanations",
        True,
    ),
    RouteInfo("POST", "/decide", "decide", "Decide rows by their expected costs.", "Rows", "Decisions", True),
    RouteInfo(
        "POST",
        "/filter",
        "filter",
        "A mail, with the header X-Deciban in front, as `deciban filter` writes it.",
        query=(("unsure", "number"),),
        message=True,
    ),
    RouteInfo(
        "POST",
        "/evaluate",
        "evaluate",
        "Figures of rows whose classes are known.",
        "Labelled",
        "Figures",
        True,
    ),
    RouteInfo(
        "POST",
        "/learn",
        "learn",
        "Learn rows of known classes.",
        "Labelled",
        "Acknowledgement",
        True,
        key=True,
    ),
    RouteInfo(
        "POST",
        "/unlearn",
        "unlearn",
        "Remove learnt rows; the answer holds a receipt.",
        "Labelled",
        "Acknowledgement",
        True,
        key=True,
    ),
    RouteInfo(
        "POST", "/correct", "correct", "Move learnt rows to another class.", "Correction", "Acknowledgement", key=True
    ),
    RouteInfo("POST", "/undo", "undo", "Undo a lesson by its id.", "Undo", "Acknowledgement", key=True),
    RouteInfo(
        "POST",
        "/erase",
        "erase",
        "Unlearn rows and remove every trace of them; the receipt stays.",
        "Erasure",
        "Acknowledgement",
        key=True,
    ),
    RouteInfo(
        "POST",
        "/classes",
        "classes",
        "Rename a class; with the name of another class, show both as one.",
        "Renaming",
        "Acknowledgement",
        key=True,
    ),
    RouteInfo(
        "POST", "/change", "change", "How many lessons of a row would change its prediction.", "Change", "Lessons"
    ),
    RouteInfo(
        "GET",
        "/unsure",
        "next_unsure",
        "The rows of the pile that are least certain.",
        None,
        "Unsure",
        query=(("most", "integer"), *AFTER),
    ),
    RouteInfo("POST", "/unsure", "add_unsure", "Add rows to the pile of unsure rows.", "Rows", "Count", True),
    RouteInfo("GET", "/model", "model", "Classes, columns and state of the model.", None, "Model", query=AFTER),
    RouteInfo(
        "GET",
        "/history",
        "history",
        "The latest lessons, with their receipts.",
        None,
        "History",
        query=(("before", "integer"), ("most", "integer")),
    ),
    RouteInfo(
        "GET",
        "/figures",
        "figures",
        "Figures of the random sample, each row scored before it was learnt.",
        None,
        "LiveFigures",
    ),
    RouteInfo("GET", "/health", "health", "Whether the process answers.", None, "Health"),
    RouteInfo(
        "GET",
        "/ready",
        "ready",
        "Whether lessons are taken, and the last one that is visible.",
        None,
        "Ready",
    ),
    RouteInfo("GET", "/metrics", "metrics", "Metrics in the text format of Prometheus."),
    RouteInfo("GET", "/openapi.json", "openapi", "This description.", None, "Any"),
)

TEXT, NUMBER, WHOLE, TRUTH = {"type": "string"}, {"type": "number"}, {"type": "integer"}, {"type": "boolean"}
EVIDENCE = {"type": ["number", "string", "null"], "description": 'In decibans unless `unit` is given; "inf" or "-inf".'}
LABEL = {"type": ["string", "integer"], "maxLength": 200}
CELL = {"type": ["string", "number", "boolean", "null"]}
ROW = {
    "description": "An object by column, a text, or a list of numbers, as the model reads them.",
    "anyOf": [{"type": "object", "additionalProperties": CELL}, TEXT, {"type": "array", "items": CELL}],
}
SHARES = {"type": "object", "additionalProperties": NUMBER}


def _object(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"type": "object", "properties": properties}
    return made | ({"required": list(required)} if required else {})


def _closed(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    return _object(required, **properties) | {"additionalProperties": False}


OPTIONS: dict[str, Any] = {
    "prior": {"anyOf": [{"enum": ["learnt", "uniform"]}, SHARES]},
    "cost": {
        "type": "array",
        "items": {"type": "array", "prefixItems": [LABEL, LABEL, NUMBER], "minItems": 3, "maxItems": 3},
        "description": "[true class, decided class, cost]",
    },
    "unsure": {"type": "number", "minimum": 0, "maximum": 1},
    "reject_cost": {"type": "number", "minimum": 0},
    "unit": {"enum": ["decibans", "nats", "bits", "bans"]},
    "over": LABEL,
    "against": LABEL,
    "after": {"type": "integer", "description": "Answer with a model that contains this lesson."},
}
GIVEN: dict[str, Any] = {
    "row": ROW,
    "rows": {"type": "array", "items": ROW, "minItems": 1},
    "text": TEXT,
    "texts": {"type": "array", "items": TEXT, "minItems": 1},
}
LABELS: dict[str, Any] = {"label": LABEL, "labels": {"type": "array", "items": LABEL}}
WHO: dict[str, Any] = {"who": {"type": "string", "maxLength": 100}}
SCHEMAS: dict[str, Any] = {
    "Any": {},
    "Rows": _closed(**GIVEN, **OPTIONS, collect=TRUTH),
    "Labelled": _closed(**GIVEN, **LABELS, **OPTIONS, **WHO, offered=TRUTH),
    "Correction": _closed(("was", "now"), **GIVEN, **WHO, was=LABEL, now=LABEL),
    "Undo": _closed(("id",), id=WHOLE, **WHO),
    "Erasure": _closed(**GIVEN, **LABELS, **WHO, id=WHOLE),
    "Renaming": _closed(("rename", "to"), rename=LABEL, to=LABEL, **WHO),
    "Change": _closed(("to",), row=ROW, text=TEXT, to=LABEL, after=WHOLE),
    "Predictions": _object(
        ("version", "answers"),
        version=WHOLE,
        answers={
            "type": "array",
            "items": _object(
                prediction={"type": ["string", "null"]},
                probability=NUMBER,
                evidence=EVIDENCE,
                probabilities=SHARES,
                unsure=TRUTH,
                asked=TRUTH | {"description": "The row is in the random sample: please teach its class."},
            ),
        },
    ),
    "Decisions": _object(("version", "answers"), version=WHOLE, answers={"type": "array", "items": {"type": "object"}}),
    "Explanations": _object(
        ("version", "answers"),
        version=WHOLE,
        answers={
            "type": "array",
            "items": _object(
                over=TEXT,
                against=TEXT,
                unit=TEXT,
                evidence=EVIDENCE,
                prior=EVIDENCE,
                posterior=EVIDENCE,
                parts={"type": "array", "items": _object(name=TEXT, value=CELL, evidence=EVIDENCE)},
            ),
        },
    ),
    "Figures": {"type": "object"},
    "Acknowledgement": _object(
        ("id", "kind", "repeated"), id=WHOLE, kind=TEXT, rows=WHOLE, repeated=TRUTH, receipt={"type": "object"}
    ),
    "Lessons": _object(("lessons",), version=WHOLE, lessons={"type": ["integer", "null"]}),
    "Unsure": _object(("rows", "next"), version=WHOLE, rows=WHOLE, next={"type": "array"}),
    "Count": _object(("rows",), rows=WHOLE),
    "Model": _object(("version", "classes", "columns", "form"), version=WHOLE, classes={"type": "array"}),
    "History": _object(("lessons",), lessons={"type": "array", "items": {"type": "object"}}),
    "LiveFigures": _object(("rows",), rows=WHOLE, errors=WHOLE),
    "Health": _object(("status",), status=TEXT),
    "Ready": _object(("ready",), ready=TRUTH, lesson=WHOLE),
    "Problem": _object(
        ("title", "status", "detail"),
        type=TEXT,
        title=TEXT,
        status=WHOLE,
        detail=TEXT,
        row=WHOLE,
        columns={"type": "array", "items": TEXT},
        label=TEXT,
        remedy=TEXT,
        kind=TEXT,
    ),
}
POSSIBLE = {  # status → what it means
    "400": "malformed",
    "401": "a token is needed",
    "403": "not allowed",
    "408": "too slow",
    "409": "contradicts what was learnt",
    "413": "too large",
    "415": "unsupported media type",
    "421": "wrong host",
    "422": "cannot be answered; the body says which row and column, and the remedy",
    "429": "too many requests",
    "503": "not available now",
    "507": "no space left",
}


def description(version: str) -> dict[str, Any]:
    """Return the description as a JSON object."""
    paths: dict[str, Any] = {}
    for info in ROUTES:
        paths.setdefault(info.path, {})[info.method.lower()] = _operation(info)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "deciban",
            "version": version,
            "description": "Predictions with their evidence, and lessons that are kept in a journal.",
        },
        "paths": paths,
        "components": {
            "schemas": SCHEMAS,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


def _operation(info: RouteInfo) -> dict[str, Any]:
    content = (
        {"text/plain": {"schema": TEXT}} if info.answer is None else {"application/json": {"schema": _ref(info.answer)}}
    )
    if info.lines and info.answer in ("Predictions", "Decisions", "Explanations"):
        content |= {"application/x-ndjson": {"schema": TEXT}}
    if info.name == "predict":
        content |= {"text/csv": {"schema": TEXT}}
    if info.message:
        content = {MESSAGE: {"schema": TEXT}}
    operation: dict[str, Any] = {
        "operationId": info.name,
        "summary": info.summary,
        "responses": {"200": {"description": "success", "content": content}},
    }
    problems = {"application/problem+json": {"schema": _ref("Problem")}}
    operation["responses"] |= {
        status: {"description": meaning, "content": problems} for status, meaning in POSSIBLE.items()
    }
    if info.body is not None:
        bodies = {"application/json": {"schema": _ref(info.body)}}
        if info.lines:
            bodies |= {"application/x-ndjson": {"schema": TEXT}, "text/csv": {"schema": TEXT}}
        operation["requestBody"] = {"required": True, "content": bodies}
    if info.message:
        operation["requestBody"] = {"required": True, "content": {kind: {"schema": TEXT} for kind in MAIL_TYPES}}
    parameters = [
        {"name": name, "in": "query", "schema": {"type": kind, "minimum": 0}, "required": False}
        for name, kind in info.query
    ]
    if info.key:
        schema = {"type": "string", "pattern": "^[!-~]{1,200}$"}
        parameters.append({"name": "Idempotency-Key", "in": "header", "schema": schema, "required": False})
    return operation | ({"parameters": parameters} if parameters else {})


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}
