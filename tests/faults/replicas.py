"""Agents that note each of their runs in the file `ran` of the working directory, and replicas that serve them.

Laws: `once` fails a task whose turn is lost, `again` has it run again; both do what workers.py does. With the variable
A2A_TEST_HOURS the process's clock is so many hours ahead.
"""

import asyncio
import os
import random
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from a2a_grpc.agent import TaskHandle
from a2a_grpc.client import Client
from tests.faults.processes import Serving, clients, serving
from tests.faults.workers import made, work

if hours := float(os.environ.get("A2A_TEST_HOURS", "0")):
    _time_ns = time.time_ns
    time.time_ns = lambda: _time_ns() + int(hours * 3_600_000_000_000)
    time.time = lambda: time.time_ns() / 1e9


async def noted(task: TaskHandle) -> Any:
    """Note the run, then do what the text says."""
    turn = "first" if task.answer is None else "answer"
    with Path("ran").open("a") as ran:  # noqa: ASYNC230 - one line, at once
        ran.write(f"{task.id} {turn} {task.attempt} {os.getpid()}\n")
    return await work(task)


agents = {"once": made(noted), "again": made(noted, rerun_lost_turns=True)}


class Fleet:
    """Replicas in processes of their own, which share a store. chance: what decides who is asked."""

    def __init__(self, folder: Path, chance: random.Random, *words: str) -> None:
        self.folder, self.chance, self._words = folder, chance, words
        self.servers: dict[Serving, dict[str, Client]] = {}
        self._stack = AsyncExitStack()
        self.ran = folder / "ran"
        self.ran.touch()

    async def start(self, *hours: float) -> None:
        """Start replicas at once, with clocks so many hours ahead."""

        async def one(ahead: float) -> None:
            place = serving(self.folder, *self._words, agent="tests.faults.replicas:agents", A2A_TEST_HOURS=str(ahead))
            server = await self._stack.enter_async_context(place)
            self.servers[server] = await self._stack.enter_async_context(clients(server))

        await asyncio.gather(*map(one, hours))

    async def close(self) -> None:
        """End every replica that still runs."""
        await self._stack.aclose()

    def pick(self) -> Client:
        """A way to call one of them."""
        return self.chance.choice(list(self.chance.choice(list(self.servers.values())).values()))

    async def working(self) -> Serving:
        """A replica by chance, once it has begun another turn."""
        server = self.chance.choice(list(self.servers))
        before = len(self.ran.read_text().splitlines())
        while f" {server.process.pid}" not in "\n".join(self.ran.read_text().splitlines()[before:]):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        return server
