"""Agents that note each of their runs in the file `ran` of the working directory, and replicas that serve them.

Laws: `once` fails a task whose turn is lost, `again` has it run again; both do what workers.py does. With the variable
A2A_TEST_HOURS the process's clock is so many hours ahead; with A2A_TEST_LOSS it loses this share of the hints.
"""

import asyncio
import itertools
import os
import random
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from a2a_grpc.agent import TaskHandle
from a2a_grpc.client import Client
from a2a_grpc.tasks.bus_remote import RemoteBus
from tests.faults.processes import Serving, clients, serving
from tests.faults.workers import made, work

if hours := float(os.environ.get("A2A_TEST_HOURS", "0")):
    _time_ns = time.time_ns
    time.time_ns = lambda: _time_ns() + int(hours * 3_600_000_000_000)
    time.time = lambda: time.time_ns() / 1e9
if loss := float(os.environ.get("A2A_TEST_LOSS", "0")):
    _receive = RemoteBus._receive

    def _lossy(bus: RemoteBus, message: bytes) -> None:
        if random.random() >= loss:
            _receive(bus, message)

    RemoteBus._receive = _lossy  # type: ignore[method-assign]


async def noted(task: TaskHandle) -> Any:
    """Note the run, then do what the text says."""
    turn = "first" if task.answer is None else "answer"
    with Path("ran").open("a") as ran:  # noqa: ASYNC230 - one line, at once
        ran.write(f"{task.id} {turn} {task.attempt} {os.getpid()}\n")
    return await work(task)


agents = {"once": made(noted), "again": made(noted, rerun_lost_turns=True)}


class Fleet:
    """Replicas in processes of their own, which share a store. chance: what decides who is asked. hours: how far their
    clocks are ahead, in turn."""

    def __init__(
        self, folder: Path, chance: random.Random, hours: Sequence[float], *words: str, **environment: str
    ) -> None:
        self.folder, self.chance, self._words, self._environment = folder, chance, words, environment
        self._hours = itertools.cycle(hours)
        self.servers: dict[Serving, dict[str, Client]] = {}
        self._stack = AsyncExitStack()
        self.ran = folder / "ran"
        self.ran.touch()

    async def start(self, count: int) -> None:
        """Start so many replicas at once."""

        async def one(hours: float) -> None:
            settings = {"A2A_TEST_HOURS": str(hours), **self._environment}
            while True:  # as whoever looks after them would
                place = serving(self.folder, *self._words, agent="tests.faults.replicas:agents", **settings)
                try:
                    server = await self._stack.enter_async_context(place)
                    break
                except AssertionError as log:
                    if "cannot keep tasks" not in str(log) and "no hints" not in str(log):
                        raise
            self.servers[server] = await self._stack.enter_async_context(clients(server))

        await asyncio.gather(*(one(next(self._hours)) for _ in range(count)))

    async def close(self) -> None:
        """End every replica that still runs."""
        await self._stack.aclose()

    def pick(self) -> Client:
        """A way to call one of them."""
        return self.chance.choice(list(self.chance.choice(list(self.servers.values())).values()))

    async def working(self) -> Serving:
        """A replica by chance, once it has begun another turn."""
        server = self.chance.choice(list(self.servers))
        await self._begin(server)
        return server

    async def all_working(self) -> None:
        """Wait until each replica has begun another turn, but for those that leave."""
        await asyncio.gather(*map(self._begin, self.servers))

    async def _begin(self, server: Serving) -> None:
        def begun() -> int:
            return self.ran.read_text().count(f" {server.process.pid}\n")

        before = begun()
        while begun() == before and server in self.servers:  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.02)
