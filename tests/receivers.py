"""Receivers of webhooks: HTTP servers on the loopback that note what they get and answer as they are told."""

import asyncio
import json
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from aiohttp import web

from tests.peers import listening

PATIENCE = 60.0
"""Seconds without any news after which something hangs."""


class Got(NamedTuple):
    """One request: path, headers (names in lower case), body."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def number(self) -> int:
        """The number of the event in its task's log."""
        return int(self.headers["x-a2a-notification-id"].rpartition(".")[2])


Answer = Callable[[Got], Awaitable[web.Response]]


async def accept(_: Got) -> web.Response:
    return web.Response(status=204)


def in_turn(*responses: Callable[[], web.Response]) -> Answer:
    """Answers one after the other, then 204 for ever."""
    left = list(responses)

    async def answer(_: Got) -> web.Response:
        return left.pop(0)() if left else web.Response(status=204)

    return answer


class Receiver:
    """url: the base address. got: every request in the order of arrival. answer: what is said to one."""

    def __init__(self, answer: Answer) -> None:
        self.url = ""
        self.got: list[Got] = []
        self.answer = answer
        self._by_path: dict[str, list[Got]] = defaultdict(list)
        self._news = asyncio.Condition()

    def at(self, path: str) -> list[Got]:
        """The requests for one path."""
        return self._by_path[path]

    async def take(self, request: web.BaseRequest) -> web.StreamResponse:
        headers = {name.lower(): value for name, value in request.headers.items()}
        got = Got(request.path, headers, await request.read())
        async with self._news:
            self.got.append(got)
            self._by_path[got.path].append(got)
            self._news.notify_all()
        return await self.answer(got)

    async def until(self, enough: Callable[[], bool]) -> None:
        async with self._news:
            while not enough():
                async with asyncio.timeout(PATIENCE):
                    await self._news.wait()


@asynccontextmanager
async def receiver(answer: Answer = accept, port: int = 0) -> AsyncIterator[Receiver]:
    """A receiver that listens; default on a free port."""
    made = Receiver(answer)
    async with listening(made.take, port=port, handler_cancellation=True) as address:
        made.url = f"http://{address}"
        yield made
