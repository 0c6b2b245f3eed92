"""The server: the process with uvicorn, connections that must send their headers in time, and the guard.

The guard refuses requests by Host, Origin, token, rate and time, and adds headers to every answer.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import signal
import socket
import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from hmac import compare_digest
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from deciban.errors import UsageError
from deciban.service.app import PAGE, Service
from deciban.service.messages import Deadline, Limits, RequestError, problem

try:
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol as Protocol
except ImportError:  # httptools is not installed
    Protocol = H11Protocol  # type: ignore[assignment, misc]

# -- the guard ---------------------------------------------------------------------------------------------------------
READ, TEACH = "read", "teach"
OPEN = {"/health", "/ready", "/favicon.ico", *PAGE}  # addresses that need no token
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
RAW_HEADERS = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
MOST_CLIENTS = 10_000  # clients whose rate is kept
FEWEST_CHARACTERS = 16  # characters of a token


@dataclass(frozen=True)
class Token:
    """A bearer token: what it allows, and the name of its holder."""

    role: str  # read or teach
    digest: bytes = field(repr=False)
    name: str = ""


def read_tokens(path: Path) -> tuple[Token, ...]:
    """Read tokens from a file: a line is `read TOKEN [name]` or `teach TOKEN [name]`; # begins a comment."""
    tokens = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        parts = line.split("#")[0].split(maxsplit=2)
        if not parts:
            continue
        if len(parts) < 2 or parts[0] not in (READ, TEACH):
            raise UsageError(f"{path}, line {number}: a line is `read TOKEN [name]` or `teach TOKEN [name]`.")
        tokens.append(token(parts[0], parts[1], parts[2].strip() if len(parts) > 2 else ""))
    if not tokens:
        raise UsageError(f"{path} holds no token. Write a line such as `teach {'x' * FEWEST_CHARACTERS} ada`.")
    return tuple(tokens)


def token(role: str, secret: str, name: str = "") -> Token:
    """Make a token of a role."""
    if len(secret) < FEWEST_CHARACTERS:
        raise UsageError(f"a token has {len(secret)} characters; use at least {FEWEST_CHARACTERS}.")
    return Token(role, blake2b(secret.encode()).digest(), name)


@dataclass(frozen=True)
class Policy:
    """Access rules: host names, tokens and limits."""

    hosts: frozenset[str]  # names in the Host header, without port, in lower case
    tokens: tuple[Token, ...] = ()  # if empty, every client may read and teach
    limits: Limits = field(default_factory=Limits)

    def require_teacher(self, scope: Any) -> None:
        """Refuse a request whose token does not allow teaching."""
        held = scope.get("deciban.token")
        if self.tokens and (held is None or held.role != TEACH):
            raise RequestError(403, "the token allows reading, not teaching.")


def is_loopback(host: str) -> bool:
    """Return whether an address to listen on can be reached from this machine only.

    >>> is_loopback("127.0.0.1"), is_loopback("0.0.0.0")
    (True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def allowed_hosts(host: str, more: Sequence[str] = ()) -> frozenset[str]:
    """Return the names that a Host header may have."""
    names = {"localhost", "127.0.0.1", "[::1]", *(name.lower() for name in more)}
    if host not in ("0.0.0.0", "::"):  # these listen on all addresses and are not host names
        names.add(f"[{host}]" if ":" in host else host.lower())
    return frozenset(names)


class Rate:
    """Rate limit of each client: a token bucket."""

    def __init__(self, rate: float, burst: float) -> None:
        self.rate, self.burst = rate, burst
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # client → (tokens, time)

    def seconds_to_wait(self, client: str, now: float) -> float:
        """Count a request; return 0, or the seconds after which the client may ask again."""
        if not self.rate:
            return 0.0
        left, since = self._left.pop(client, (self.burst, now))
        left = min(self.burst, left + (now - since) * self.rate)
        wait = 0.0 if left >= 1 else (1 - left) / self.rate
        self._left[client] = (left - 1 if left >= 1 else left, now)
        if len(self._left) > MOST_CLIENTS:
            self._left.popitem(last=False)
        return wait


class Guard:
    """ASGI middleware that refuses requests before they reach the application."""

    def __init__(self, app: Any, policy: Policy) -> None:
        self.app, self.policy = app, policy
        self.rate = Rate(policy.limits.rate, policy.limits.burst)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Check a request, then let the application answer within the time limit."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        started = False

        async def send_guarded(message: Any) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                message["headers"] = [*message.get("headers", ()), *RAW_HEADERS]
            await send(message)

        try:
            scope["deciban.token"] = self._admit(scope)
            with Deadline(self.policy.limits.seconds):
                await self.app(scope, receive, send_guarded)
        except RequestError as refusal:
            if not started:
                await respond(send_guarded, refusal.status, refusal.content(), refusal.headers)
        except TimeoutError:
            if not started:
                detail = f"the answer took longer than {self.policy.limits.seconds:g} seconds."
                await respond(send_guarded, 503, problem(503, detail, remedy="Send fewer rows."), {"Retry-After": "5"})

    def _admit(self, scope: Any) -> Token | None:
        """Return the token of a request that is admitted; RequestError if it is refused."""
        headers: dict[bytes, bytes] = {}
        for name, value in scope["headers"]:
            if name in (b"host", b"origin", b"authorization") and name in headers:
                raise RequestError(400, f"the header {name.decode()} is given twice.")
            headers.setdefault(name, value)
        scope["deciban.headers"] = headers
        host = headers.get(b"host", b"").decode("latin-1").lower()
        if _without_port(host) not in self.policy.hosts:
            raise RequestError(421, "this service is not known by that host name.", remedy="Use --allow-host NAME.")
        origin = headers.get(b"origin")
        if origin is not None and origin.decode("latin-1").lower() not in (f"http://{host}", f"https://{host}"):
            raise RequestError(403, "the request comes from a page of another origin.")
        site = headers.get(b"sec-fetch-site", b"same-origin")
        if scope["path"] not in OPEN and site not in (b"same-origin", b"none"):
            raise RequestError(403, "the request comes from a page of another site.")
        client = (scope.get("client") or ("",))[0]
        wait = self.rate.seconds_to_wait(client, time.monotonic())
        if wait:
            detail = f"more than {self.policy.limits.rate:g} requests per second came from this address."
            raise RequestError(429, detail, **{"Retry-After": str(max(1, round(wait)))})
        return self._token(scope, headers)

    def _token(self, scope: Any, headers: dict[bytes, bytes]) -> Token | None:
        if not self.policy.tokens or scope["path"] in OPEN:
            return None
        scheme, _, secret = headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() != b"bearer" or not secret:
            raise RequestError(401, "this service needs a token.", **{"WWW-Authenticate": "Bearer"})
        digest = blake2b(secret.strip()).digest()
        found = [one for one in self.policy.tokens if compare_digest(one.digest, digest)]
        if not found:
            raise RequestError(401, "the token is not known.", **{"WWW-Authenticate": 'Bearer error="invalid_token"'})
        return found[0]


def _without_port(host: str) -> str:
    name, separator, port = host.rpartition(":")
    return name if separator and (port.isdigit() or not port) and not name.endswith(":") else host


async def respond(send: Any, status: int, content: Any, headers: dict[str, str]) -> None:
    """Send a problem."""
    body = json.dumps(content, ensure_ascii=False).encode()
    raw = [(b"content-type", b"application/problem+json"), (b"content-length", str(len(body)).encode())]
    raw += [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body})


# -- the process -------------------------------------------------------------------------------------------------------
HEADER_SECONDS = 10.0  # for the head of a request
MOST_HEAD = 64 * 2**10  # bytes of the head of a request
IDLE_SECONDS = 15  # between two requests on a connection
UNREAD_SECONDS = 30.0  # for a client to read some of an answer


class TimedProtocol(Protocol):
    """HTTP protocol that ends a connection whose client does not send a head, or does not read an answer, in time."""

    head_timer: asyncio.TimerHandle | None = None
    head_bytes = 0
    unread_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Start the timer of a new connection."""
        super().connection_made(transport)
        self.head_timer = self.loop.call_later(HEADER_SECONDS, self._close_if_idle)

    def data_received(self, data: bytes) -> None:
        """Start the timer with the first bytes of a request, and stop it after the head."""
        if self._between_requests():
            if self.head_timer is None:
                self.head_timer = self.loop.call_later(HEADER_SECONDS, self._close_if_idle)
            self.head_bytes += len(data)
            if self.head_bytes > MOST_HEAD and len(data) < self.head_bytes:
                self.transport.close()
                return
        super().data_received(data)
        if not self._between_requests():
            self._stop_timer()
            self.head_bytes = 0

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers."""
        self._stop_timer()
        self._stop_unread_timer()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Start to watch an answer that the client does not read as fast as it is written."""
        super().pause_writing()
        self._watch_unread()

    def resume_writing(self) -> None:
        """Stop to watch: the client has read."""
        self._stop_unread_timer()
        super().resume_writing()

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection, and watch that the rest of its answer is read."""
        super().timeout_keep_alive_handler()
        self._watch_unread()

    def _between_requests(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _close_if_idle(self) -> None:
        self.head_timer = None
        if self._between_requests():
            self.transport.close()

    def _watch_unread(self) -> None:
        """Abort the connection unless some bytes of the answer are read in time; then watch the rest."""
        self._stop_unread_timer()
        unread = self.transport.get_write_buffer_size()
        if unread:
            self.unread_timer = self.loop.call_later(UNREAD_SECONDS, self._abort_if_unread, unread)

    def _abort_if_unread(self, before: int) -> None:
        if self.transport.get_write_buffer_size() >= before:
            self.transport.abort()  # `close` would wait for the client for ever
        else:
            self._watch_unread()

    def _stop_unread_timer(self) -> None:
        if self.unread_timer is not None:
            self.unread_timer.cancel()
            self.unread_timer = None

    def _stop_timer(self) -> None:
        if self.head_timer is not None:
            self.head_timer.cancel()
            self.head_timer = None


class Server(uvicorn.Server):
    """A uvicorn server that leaves signals to `serve`."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle no signals here."""
        yield


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on an address; port 0 is any free port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
    except OSError:
        made.close()
        raise
    made.listen(1024)
    made.setblocking(False)
    return made


def serve(service: Service, listening: socket.socket) -> None:
    """Answer requests until SIGINT or SIGTERM."""
    config = uvicorn.Config(
        Guard(service.application(), service.policy),
        http=TimedProtocol,
        loop="auto",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        lifespan="off",
        limit_concurrency=service.limits.connections,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=5,
        h11_max_incomplete_event_size=64 * 2**10,
    )
    server = Server(config)

    async def run() -> None:
        service.attach()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            with suppress(NotImplementedError, ValueError):
                loop.add_signal_handler(number, lambda: setattr(server, "should_exit", True))
        await server.serve(sockets=[listening])

    signal.set_wakeup_fd(-1)  # otherwise the handler of the command line ends the process before the last snapshot
    with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
        runner.run(run())
