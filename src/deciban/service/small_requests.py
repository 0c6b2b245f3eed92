"""Small requests for predictions, answered together."""

from __future__ import annotations

import asyncio
from typing import Any

from deciban.errors import DecibanError
from deciban.service import answers
from deciban.service.answers import PLAIN
from deciban.service.published import Published
from deciban.service.requests import Asked
from deciban.service.teacher import Teacher

SMALL_ROWS, SMALL_BYTES = 64, 2**16  # requests up to this size are answered together, in the event loop


class SmallRequests:
    """Answers small requests for predictions together: those that arrive in one turn of the event loop.

    Prior and costs of requests without options are resolved once for each published model.
    """

    def __init__(self, teacher: Teacher) -> None:
        self.teacher = teacher
        self._waiting: list[tuple[Asked, asyncio.Future[Any]]] = []
        self._plain: tuple[Published, answers.Setting] | None = None

    def ask(self, asked: Asked) -> asyncio.Future[Any]:
        """Return the future of (version, answers)."""
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        if not self._waiting:
            loop.call_soon(self._answer)
        self._waiting.append((asked, future))
        return future

    def _answer(self) -> None:
        waiting, self._waiting = self._waiting, []
        published = self.teacher.published
        start = 0
        while start < len(waiting):
            end, rows = start, 0
            while end < len(waiting) and (end == start or rows + len(waiting[end][0].rows) <= SMALL_ROWS):
                rows += len(waiting[end][0].rows)
                end += 1
            self._answer_some(waiting[start:end], published)
            start = end

    def _answer_some(self, group: list[tuple[Asked, asyncio.Future[Any]]], published: Published) -> None:
        try:
            likelihood = answers.scores(published, [row for asked, _ in group for row in asked.rows])
            plain = all(asked.options == PLAIN for asked, _ in group)
            together = answers.predictions(published, likelihood, PLAIN, self._setting(published)) if plain else None
        except DecibanError as error:
            if len(group) == 1:
                self._settle(group[0][1], error)
                return
            for one in group:
                self._answer_some([one], published)
            return
        except Exception as error:
            for _, future in group:
                self._settle(future, error)
            return
        at = 0
        for asked, future in group:
            rows = slice(at, at + len(asked.rows))
            at = rows.stop
            try:
                made = (
                    together[rows]
                    if together is not None
                    else answers.predictions(published, likelihood[rows], asked.options)
                )
                self._settle(future, (published, made))
            except DecibanError as error:
                self._settle(future, error)

    def _setting(self, published: Published) -> answers.Setting:
        """Return prior and costs of requests without options."""
        if self._plain is None or self._plain[0] is not published:
            self._plain = published, answers.Setting.of(published, PLAIN)
        return self._plain[1]

    @staticmethod
    def _settle(future: asyncio.Future[Any], result: Any) -> None:
        if future.done():
            return
        if isinstance(result, BaseException):
            future.set_exception(result)
        else:
            future.set_result(result)
