"""Reading ahead: the next batches are made in a thread of their own, while this one learns from the last."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

T = TypeVar("T")
END: Any = object()


def ahead(items: Iterable[T], depth: int = 1) -> Iterator[T]:
    """The same items, `depth` of them made before they are asked for; errors come where their item would.

    >>> list(ahead(n * n for n in range(4)))
    [0, 1, 4, 9]
    """
    ready: queue.Queue[tuple[Any, BaseException | None]] = queue.Queue(depth)
    stopped = threading.Event()

    def put(item: Any, error: BaseException | None = None) -> None:
        while not stopped.is_set():
            try:
                ready.put((item, error), timeout=0.1)
                return
            except queue.Full:
                continue

    def work() -> None:
        try:
            for item in items:
                put(item)
                if stopped.is_set():
                    return
            put(END)
        except BaseException as error:
            put(END, error)

    thread = threading.Thread(target=work, name="deciban-reader", daemon=True)
    thread.start()
    try:
        while True:
            item, error = ready.get()
            if error is not None:
                raise error
            if item is END:
                return
            yield item
    finally:
        stopped.set()
        thread.join()
