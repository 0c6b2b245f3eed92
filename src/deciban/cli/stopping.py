"""Ctrl-C and the system's wish that we end: heard at once, and nothing half written stays behind.

Python hears a signal between two of its own steps. While Arrow waits for a pipe, or a long product is computed, there
are none; so a thread listens too. It gives the main thread a moment to unwind, then ends the process itself.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from contextlib import suppress
from typing import Any

MOMENT = 0.3  # seconds in which the main thread may end by itself
INTERRUPTED, TERMINATED = 130, 143
SAID = {
    INTERRUPTED: "stopped. Nothing half written is left.",
    TERMINATED: "ended by the system. Nothing half written is left.",
}


class Terminated(BaseException):
    """The system asks this process to end; files half written are removed on the way out."""


def listen() -> None:
    """From now on, in the main thread of the program."""

    def end(number: int, frame: Any) -> None:
        raise Terminated

    signal.signal(signal.SIGTERM, end)
    heard, told = socket.socketpair()
    told.setblocking(False)
    signal.set_wakeup_fd(told.fileno(), warn_on_full_buffer=False)
    threading.Thread(target=_wait, args=(heard, told), daemon=True).start()


def _wait(heard: socket.socket, told: socket.socket) -> None:
    """Until a signal comes; `told` is held so that it stays open."""
    while True:
        signals = heard.recv(16)
        if signal.SIGINT in signals or signal.SIGTERM in signals:
            break
    threading.Event().wait(MOMENT)
    end_now(INTERRUPTED if signal.SIGINT in signals else TERMINATED)


def end_now(code: int) -> None:
    """Without another step of the main thread: remove what is half written, say so, and leave."""
    files = sys.modules.get("deciban.store.files")
    for path in list(getattr(files, "HALF_WRITTEN", ())):
        with suppress(OSError):
            os.unlink(path)
    cursor = b"\x1b[?25h" if os.isatty(2) else b""  # a bar may have hidden it
    with suppress(OSError):
        os.write(2, cursor + b"deciban: " + SAID[code].encode() + b"\n")
    os._exit(code)
