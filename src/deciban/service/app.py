"""The application: routes, their endpoints, and metrics of requests."""

from __future__ import annotations

import asyncio
import logging
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from deciban import __version__
from deciban.errors import DecibanError
from deciban.read.mail import HEADER, UNREAD, MailAnswer, with_header
from deciban.service import answers
from deciban.service.answers import PLAIN, SMALL_BYTES, SMALL_ROWS, SmallRequests, UnsureRows, lessons_to_change
from deciban.service.lessons import ASK_ONE_IN, Lesson, live_figures
from deciban.service.messages import (
    CSV,
    JSON,
    LINES,
    MOST_WHO,
    Asked,
    Json,
    RequestError,
    acknowledgement,
    as_csv,
    header,
    history_line,
    idempotency_key,
    json_object,
    lines,
    media_type,
    member,
    no_other,
    parse,
    problem,
    problem_of,
    problem_response,
    read_body,
)
from deciban.service.openapi import MAIL_TYPES, MESSAGE, ROUTES, description
from deciban.service.published import Published, describe_model
from deciban.service.teacher import Teacher, deliver_here

if TYPE_CHECKING:
    from deciban.service.server import Policy

WAIT_SECONDS = 5.0  # for a lesson to be visible, if the request asks for it
MOST_EXPLAINED = 100  # rows
MOST_HELD = 2**28  # bytes of large bodies of all requests that are not answered yet
UNSURE_BELOW = 0.9  # rows that are collected go to the unsure pile if their prediction is less probable
MOST_HISTORY = 200
PAGE = {"/": "index.html", "/page/app.js": "app.js", "/page/view.js": "view.js", "/page/service.js": "service.js",
        "/page/style.css": "style.css"}  # fmt: skip
TYPES = {"html": "text/html; charset=utf-8", "js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8"}
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)  # seconds
EDGES = (*BUCKETS, float("inf"))
log = logging.getLogger("deciban.service")
NO_QUERY: Mapping[str, str] = {}
Answer = Callable[[Request], Awaitable[Response]]


class Posts:
    """ASGI application that calls the endpoints of POST requests directly, and leaves other requests to Starlette.

    Starlette's routing and its two exception handlers take a fifth of the time of an answer about one row. The
    endpoints handle their own exceptions.
    """

    def __init__(self, app: Any, endpoints: dict[str, Answer]) -> None:
        self.app, self.endpoints = app, endpoints

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request."""
        endpoint = self.endpoints.get(scope["path"]) if scope.get("method") == "POST" else None
        if endpoint is None:
            await self.app(scope, receive, send)
            return
        response = await endpoint(Request(scope, receive, send))
        await response(scope, receive, send)


class Service:
    """The endpoints of a service for one model."""

    def __init__(self, teacher: Teacher, policy: Policy, threads: int = 2) -> None:
        self.teacher, self.policy = teacher, policy
        self.limits = policy.limits
        self.pool = ThreadPoolExecutor(threads, thread_name_prefix="answers")
        self.metrics = Metrics()
        self.held = 0  # bytes reserved for the large bodies of requests that are not answered yet
        self.unsure = UnsureRows()
        self.small = SmallRequests(teacher)
        self.started = time.monotonic()
        self.assets = _assets()
        teacher.on_erase = self.unsure.remove

    # -- the application -------------------------------------------------------------------------------------------
    def application(self) -> Any:
        """Return the ASGI application; the guard of the server checks requests before."""
        made = {info.path: self._handlers(info.path) for info in ROUTES}
        routes = [
            Route(path, self._endpoint(path, handlers), methods=list(handlers)) for path, handlers in made.items()
        ]
        routes += [Route(path, self._endpoint(path, {"GET": self._page}), methods=["GET"]) for path in PAGE]
        routes.append(Route("/favicon.ico", self._endpoint("/favicon.ico", {"GET": self._no_icon}), methods=["GET"]))
        app = Starlette(
            routes=routes,
            exception_handlers={404: _not_found, 405: _not_allowed},
        )
        app.router.redirect_slashes = False
        posts = {route.path: route.endpoint for route in routes if "POST" in (route.methods or ())}
        return Posts(app, posts)

    def attach(self) -> None:
        """Deliver the results of lessons in the running event loop."""
        loop = asyncio.get_running_loop()

        def deliver(results: list[tuple[Any, Any]]) -> None:
            loop.call_soon_threadsafe(deliver_here, results)

        self.teacher.deliver = deliver

    def _handlers(self, path: str) -> dict[str, Answer]:
        return {info.method: getattr(self, f"_{info.name}") for info in ROUTES if info.path == path}

    def _endpoint(self, path: str, handlers: dict[str, Answer]) -> Answer:
        async def answer(request: Request) -> Response:
            begun = time.perf_counter()
            handler = handlers.get(request.method) or handlers["GET"]
            try:
                response = await handler(request)
            except RequestError as refusal:
                response = problem_response(refusal.status, refusal.content(), refusal.headers)
            except DecibanError as error:
                response = problem_response(*problem_of(error))
            except ClientDisconnect:
                response = Response(status_code=400)
            except (TimeoutError, asyncio.CancelledError):
                raise
            except Exception:
                log.exception("internal error at %s", path)
                detail = "this is a bug in deciban; the log of the service has the details."
                response = problem_response(500, problem(500, detail), {})
            finally:
                self.held -= request.scope.get("deciban.held", 0)
            self.metrics.count(path, response.status_code, time.perf_counter() - begun)
            return response

        return answer

    async def _asked(self, request: Request, with_id: bool = False) -> Asked:
        """Return the rows and options of a request; with `with_id`, the id of a lesson may stand for its rows."""
        form = media_type(header(request.scope, b"content-type"))
        body = await self._body(request)
        if with_id and form == JSON:
            given = json_object(body)
            if "id" in given:
                return Asked([], given=given, body=body)
        if len(body) <= SMALL_BYTES:
            return parse(body, form, query_of(request), self.limits)
        return await self._thread(parse, body, form, query_of(request), self.limits)

    async def _thread(self, work: Callable[..., Any], *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self.pool, work, *arguments)

    async def _published(self, given: Any) -> Published:
        """Return the published model; with `after`, wait until it contains that lesson."""
        after = given.get("after")
        if after is None:
            return self.teacher.published
        if isinstance(after, str) and after.isdigit() and len(after) < 16:
            after = int(after)
        if isinstance(after, bool) or not isinstance(after, int):
            raise RequestError(422, "'after' is not the id of a lesson.")
        if after > self.teacher.last:
            raise RequestError(409, f"there is no lesson {after}; the last one is {self.teacher.last}.")
        until = time.monotonic() + WAIT_SECONDS
        while self.teacher.published.version < after:
            if time.monotonic() > until:
                raise RequestError(503, f"lesson {after} is not visible yet.", **{"Retry-After": "1"})
            await asyncio.sleep(0.003)
        return self.teacher.published

    async def _body(self, request: Request) -> bytes:
        """Return the body of a request; room for a large one is reserved until the request is answered."""
        declared = request.scope["deciban.headers"].get(b"content-length")
        size = min(int(declared), self.limits.body) if declared is not None and declared.isdigit() else self.limits.body
        if size > SMALL_BYTES:
            if self.held + size > max(MOST_HELD, self.limits.body):
                detail = f"requests under way hold {self.held:,} bytes."
                raise RequestError(
                    503, detail, remedy="Try again later.", **{"Retry-After": "1", "Connection": "close"}
                )
            self.held += size
            request.scope["deciban.held"] = size
        return await read_body(request.receive, declared, self.limits)

    def _is_small(self, asked: Asked) -> bool:
        return len(asked.rows) <= SMALL_ROWS and len(asked.body) <= SMALL_BYTES

    # -- answers ---------------------------------------------------------------------------------------------------
    async def _predict(self, request: Request) -> Response:
        asked = await self._asked(request)
        no_other(asked.given, {"after", "collect"})
        given = asked.given or query_of(request)
        collect = given.get("collect") in (True, "true")
        if collect:
            self.policy.require_teacher(request.scope)
        await self._published(given)
        if self._is_small(asked) and asked.form != CSV:
            published, made = await self.small.ask(asked)
        else:
            published = self.teacher.published
            made = await self._thread(self._predicted, published, asked)
        self.metrics.rows += len(made)
        asks = [self.teacher.lessons.is_asked(row) for row in asked.rows]
        if collect:
            doubtful = [row for row, one in zip(asked.rows, made) if one["probability"] < UNSURE_BELOW]
            await self._thread(self.unsure.add, doubtful, published)
        if asked.form == CSV and CSV in (header(request.scope, b"accept") or ""):
            text = await self._thread(as_csv, asked, made)
            return Response(text, media_type=f"{CSV}; charset=utf-8", headers={"X-Deciban-Rows": str(len(made))})
        answered = [{**one, "asked": True} if ask else one for one, ask in zip(made, asks)]
        if asked.form == LINES:
            return lines(answered, published.version)
        return Json({"version": published.version, "answers": answered})

    @staticmethod
    def _predicted(published: Published, asked: Asked) -> list[dict[str, Any]]:
        strict = asked.form != CSV
        return answers.predictions(published, answers.scores(published, asked.rows, strict=strict), asked.options)

    async def _decide(self, request: Request) -> Response:
        asked = await self._asked(request)
        no_other(asked.given, {"after"})
        published = await self._published(asked.given or query_of(request))

        def work() -> list[dict[str, Any]]:
            strict = asked.form != CSV
            return answers.decisions(published, answers.scores(published, asked.rows, strict=strict), asked.options)

        made = await self._thread(work)
        self.metrics.rows += len(made)
        if asked.form == LINES:
            return lines(made, published.version)
        return Json({"version": published.version, "answers": made})

    async def _filter(self, request: Request) -> Response:
        if (header(request.scope, b"content-type") or "").split(";")[0].strip().lower() not in MAIL_TYPES:
            raise RequestError(415, "a mail is expected.", remedy=f"Send it with Content-Type: {MESSAGE}.")
        message = await self._body(request)
        unsure = _share(request, "unsure", UNSURE_BELOW)
        text = message.decode("utf-8", "surrogateescape")  # as `deciban filter` reads other bytes
        published = self.teacher.published

        def work() -> str:
            if b"\0" in message or not message.strip():
                return UNREAD
            try:
                [made] = answers.decisions(published, answers.scores(published, [text]), PLAIN)
            except DecibanError:
                return UNREAD
            answer = MailAnswer(str(made["label"]), float(made["llr"] or 0.0), made["posterior"])
            return answer.header(answer.posterior < unsure)

        value = await self._thread(work)
        self.metrics.rows += 1
        return Response(with_header(message, value), media_type=MESSAGE, headers={HEADER: value})

    async def _explain(self, request: Request) -> Response:
        asked = await self._asked(request)
        no_other(asked.given, {"after"})
        if len(asked.rows) > MOST_EXPLAINED:
            raise RequestError(413, f"at most {MOST_EXPLAINED} rows are explained at a time.")
        published = await self._published(asked.given or query_of(request))
        made = await self._thread(answers.explanations, published, asked.rows, asked.options)
        if asked.form == LINES:
            return lines(made, published.version)
        return Json({"version": published.version, "answers": made})

    async def _evaluate(self, request: Request) -> Response:
        asked = await self._asked(request)
        no_other(asked.given, {"after"})
        if asked.labels is None or len(asked.labels) != len(asked.rows):
            raise RequestError(422, "evaluate needs one label for each row.", remedy='Send "labels": […].')
        published = await self._published(asked.given or query_of(request))

        def work() -> dict[str, Any]:
            likelihood = answers.scores(published, asked.rows, strict=asked.form != CSV)
            return answers.evaluation(published, likelihood, asked.labels or [], asked.options)

        return Json({"version": published.version, **await self._thread(work)})

    async def _change(self, request: Request) -> Response:
        asked = await self._asked(request)
        no_other(asked.given, {"to", "after"})
        name = member(asked.given, "to", (str, int))
        if len(asked.rows) != 1 or name is None:
            raise RequestError(422, "one row and 'to', the name of a class, are needed.")
        published = await self._published(asked.given)
        made = await self._thread(lessons_to_change, published, asked.rows[0], str(name))
        return Json({"version": published.version, "lessons": made})

    # -- lessons ---------------------------------------------------------------------------------------------------
    async def _learn(self, request: Request) -> Response:
        return await self._taught(request, "learn", {"offered"})

    async def _unlearn(self, request: Request) -> Response:
        return await self._taught(request, "unlearn", set())

    async def _correct(self, request: Request) -> Response:
        return await self._taught(request, "correct", set())

    async def _erase(self, request: Request) -> Response:
        return await self._taught(request, "erase", {"id"})

    async def _undo(self, request: Request) -> Response:
        return await self._taught(request, "undo", {"id"})

    async def _classes(self, request: Request) -> Response:
        return await self._taught(request, "classes", {"rename", "to"})

    async def _taught(self, request: Request, kind: str, members: set[str]) -> Response:
        self.policy.require_teacher(request.scope)
        key = idempotency_key(header(request.scope, b"idempotency-key"))
        lesson = await self._lesson(request, kind, members, key)
        future = asyncio.get_running_loop().create_future()
        self.teacher.submit(lesson, future)
        entry, repeated = await asyncio.shield(future)
        if lesson.rows and entry.kind == "learn" and len(self.unsure):
            self.unsure.remove([self.teacher.reader.kept(row) for row in lesson.rows])
        return Json(acknowledgement(entry, repeated))

    async def _lesson(self, request: Request, kind: str, members: set[str], key: str | None) -> Lesson:
        """Return the lesson that a request asks for."""
        if kind in ("undo", "classes"):
            media_type(header(request.scope, b"content-type"))
            body = await self._body(request)
            given = json_object(body)
            asked = Asked([], given=given, body=body)
        else:
            asked = await self._asked(request, "id" in members)
            given = dict(asked.given)
        no_other(given, {"who", *members})
        held = request.scope.get("deciban.token")
        who = (held.name if held is not None else "") or member(given, "who", str, "")
        if len(who) > MOST_WHO or not who.isprintable():
            raise RequestError(422, f"'who' must be a name of at most {MOST_WHO} characters.")
        digest = kind.encode() + asked.digest
        id = member(given, "id", int)
        if kind == "undo" and id is None:
            raise RequestError(422, "the id of the lesson to undo is missing.")
        if id is not None and not 0 < id < 2**53:
            raise RequestError(422, "'id' is not the number of a lesson.")
        if kind == "classes":
            was, now = (member(given, name, (str, int)) for name in ("rename", "to"))
            if was is None or now is None:
                raise RequestError(422, "'rename' and 'to' are needed: the name of a class, and its new name.")
            return Lesson(kind, labels=[str(was), str(now)], who=who, key=key, request=digest)
        if id is not None:
            return Lesson(kind, who=who, undoes=id, key=key, request=digest)
        if asked.labels is None or (kind == "correct" and asked.was is None):
            need = '"was" and "now"' if kind == "correct" else '"label"'
            raise RequestError(422, f"the class of the rows is missing: {need}.")
        offered = member(given, "offered", bool, False)
        return Lesson(kind, asked.rows, asked.labels, asked.was or [], who, offered, None, key, digest)

    # -- unsure rows -----------------------------------------------------------------------------------------------
    async def _next_unsure(self, request: Request) -> Response:
        most = _number(request, "most", 1, 100)
        published = await self._published(request.query_params)
        rows = await self._thread(self.unsure.next, published, most)
        return Json({"version": published.version, "rows": len(self.unsure), "next": rows})

    async def _add_unsure(self, request: Request) -> Response:
        self.policy.require_teacher(request.scope)
        asked = await self._asked(request)
        no_other(asked.given, set())
        published = self.teacher.published
        await self._thread(
            lambda: published.reader.table(asked.rows, strict=asked.form != CSV)
        )  # an error for rows that the model cannot read
        return Json({"rows": await self._thread(self.unsure.add, asked.rows, published)})

    # -- state of the service --------------------------------------------------------------------------------------
    async def _model(self, request: Request) -> Response:
        known = describe_model(await self._published(request.query_params))
        name = self.teacher.file.path.name.removesuffix(".deciban")
        held = {"asked_one_in": ASK_ONE_IN, "unsure": len(self.unsure), "tokens": bool(self.policy.tokens)}
        return Json({"name": name, **known, **held})

    async def _history(self, request: Request) -> Response:
        most = _number(request, "most", 50, MOST_HISTORY)
        before = _number(request, "before", 0, 2**53) or None
        found = await self._thread(self.teacher.journal.history, before, most)
        return Json({"lessons": [history_line(entry) for entry in found]})

    async def _figures(self, request: Request) -> Response:
        return Json(await self._thread(lambda: live_figures(self.teacher.journal.asked())))

    async def _health(self, request: Request) -> Response:
        return Json({"status": "ok", "version": __version__})

    async def _ready(self, request: Request) -> Response:
        alive = self.teacher.alive
        content = {
            "ready": alive,
            "lesson": self.teacher.published.version,
            "problem": self.teacher.problem or None,
        }
        return Json(content, status_code=200 if alive else 503)

    async def _metrics(self, request: Request) -> Response:
        teacher, published = self.teacher, self.teacher.published
        gauges = {
            "deciban_lesson": ("gauge", "Id of the last published lesson.", published.version),
            "deciban_lessons_waiting": ("gauge", "Lessons in the queue.", teacher.waiting),
            "deciban_lessons_refused_total": ("counter", "Lessons that were refused.", teacher.refused),
            "deciban_commits_total": ("counter", "Groups of lessons that were processed.", teacher.groups),
            "deciban_snapshot_lesson": ("gauge", "Last lesson in the model file.", teacher.saved),
            "deciban_learnt_rows": ("gauge", "Weight of the rows learnt.", float(published.model.weight)),
            "deciban_unsure_rows": ("gauge", "Rows in the unsure pile.", len(self.unsure)),
            "deciban_uptime_seconds": ("gauge", "Seconds since the start.", time.monotonic() - self.started),
        }
        return Response(self.metrics.text(gauges), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def _openapi(self, request: Request) -> Response:
        return Json(description(__version__))

    async def _page(self, request: Request) -> Response:
        content, kind = self.assets[request.url.path]
        return Response(content, media_type=kind)

    async def _no_icon(self, request: Request) -> Response:
        return Response(status_code=204)


# -- parts of requests, and other responses ----------------------------------------------------------------------------
def query_of(request: Request) -> Mapping[str, str]:
    """Return the query of a request, without parsing it if it is empty."""
    return request.query_params if request.scope["query_string"] else NO_QUERY


def _share(request: Request, name: str, default: float) -> float:
    text = request.query_params.get(name)
    if text is None:
        return default
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise RequestError(422, f"{name} must be a number from 0 to 1.")
    return value


def _number(request: Request, name: str, default: int, most: int) -> int:
    text = request.query_params.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 17 and int(text) <= most):
        raise RequestError(422, f"{name} must be a whole number from 0 to {most}.")
    return int(text)


def _assets() -> dict[str, tuple[bytes, str]]:
    """Read the files of the page at the start; no part of a request becomes a file name."""
    folder = files("deciban.service") / "page"
    return {path: ((folder / name).read_bytes(), TYPES[name.rsplit(".", 1)[1]]) for path, name in PAGE.items()}


async def _not_found(request: Request, error: Exception) -> Response:
    return problem_response(404, problem(404, "there is no such address.", remedy="See /openapi.json."), {})


async def _not_allowed(request: Request, error: Any) -> Response:
    return problem_response(
        405, problem(405, f"{request.method[:20]} is not answered here."), dict(error.headers or {})
    )


# -- metrics -----------------------------------------------------------------------------------------------------------
class Metrics:
    """Counts of requests in the text format of Prometheus; changed by the event loop only."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()
        self.rows = 0
        self.buckets: Counter[float] = Counter()
        self.seconds = 0.0
        self.answered = 0

    def count(self, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        self.requests[route, status] += 1
        self.answered += 1
        self.seconds += seconds
        self.buckets[EDGES[bisect_left(BUCKETS, seconds)]] += 1

    def text(self, gauges: Mapping[str, tuple[str, str, float]]) -> str:
        """Return all metrics; `gauges` are name → (kind, help, value)."""
        lines = ["# HELP deciban_requests_total Requests by route and status.", "# TYPE deciban_requests_total counter"]
        lines += [
            f'deciban_requests_total{{route="{route}",status="{status}"}} {n}'
            for (route, status), n in sorted(self.requests.items())
        ]
        lines += ["# HELP deciban_request_seconds Time to answer.", "# TYPE deciban_request_seconds histogram"]
        total = 0
        for edge in BUCKETS:
            total += self.buckets[edge]
            lines.append(f'deciban_request_seconds_bucket{{le="{edge:g}"}} {total}')
        lines.append(f'deciban_request_seconds_bucket{{le="+Inf"}} {self.answered}')
        lines += [f"deciban_request_seconds_sum {self.seconds:.6f}", f"deciban_request_seconds_count {self.answered}"]
        lines += ["# HELP deciban_rows_total Rows answered.", "# TYPE deciban_rows_total counter"]
        lines.append(f"deciban_rows_total {self.rows}")
        for name, (kind, help, value) in gauges.items():
            lines += [f"# HELP {name} {help}", f"# TYPE {name} {kind}", f"{name} {value:g}"]
        return "\n".join(lines) + "\n"
