"""The process: uvicorn with one worker, connections that must send their headers in time, and an orderly end."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from deciban.service.app import Service

HEADER_SECONDS = 10.0  # for the head of a request
MOST_HEAD = 64 * 2**10  # bytes of the head of a request
IDLE_SECONDS = 15  # between two requests on a connection

try:
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol as Protocol
except ImportError:  # httptools is not installed
    Protocol = H11Protocol  # type: ignore[assignment, misc]


class TimedProtocol(Protocol):
    """HTTP, where a client that opens a connection and does not send the head of a request is disconnected."""

    head_timer: asyncio.TimerHandle | None = None
    head_bytes = 0

    def connection_made(self, transport: Any) -> None:
        """Start the clock of a new connection."""
        super().connection_made(transport)
        self.head_timer = self.loop.call_later(HEADER_SECONDS, self._close_if_idle)

    def data_received(self, data: bytes) -> None:
        """Start the clock with the first bytes of a request."""
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
        """Stop the clock."""
        self._stop_timer()
        super().connection_lost(exc)

    def _between_requests(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _close_if_idle(self) -> None:
        self.head_timer = None
        if self._between_requests():
            self.transport.close()

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
        service.application(),
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

    signal.set_wakeup_fd(-1)  # the command line's own handler would end the process before the last snapshot
    with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
        runner.run(run())
