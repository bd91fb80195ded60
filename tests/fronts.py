"""Gateways for tests, and what is behind them: an agent of our own, or a fake that says what it is told.

Laws: everything here runs on free ports of this machine in the loop of the test; nothing here checks anything but that
a call fails.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc.aio
import pytest
from a2a_stubs import v1

from a2a_grpc.agent import Agent, Extension, Skill, TaskHandle
from a2a_grpc.bindings.grpc import GrpcBinding
from a2a_grpc.bindings.streams import Streams
from a2a_grpc.call import GRPC, JSONRPC, REST, V03, V1
from a2a_grpc.client import Client
from a2a_grpc.config import Options
from a2a_grpc.errors import A2AError
from a2a_grpc.gateway import Upstream
from a2a_grpc.server import Server
from tests.fakes import FakeService

WIRES = [(binding, version) for version in (V1, V03) for binding in (JSONRPC, REST, GRPC)]
PATIENCE = 60.0
HERE = {"grpc": "127.0.0.1:0", "http": "127.0.0.1:0", "grace": 0.0}


def asking(text: str, **members: Any) -> v1.SendMessageRequest:
    message = v1.Message(message_id=f"m-{text}-{time.monotonic_ns()}", role="ROLE_USER", **members)
    message.parts.add(text=text)
    return v1.SendMessageRequest(message=message)


def make_agent() -> Agent:
    agent = Agent(
        name="Echo",
        description="Says what it is told.",
        version="1",
        skills=[Skill(id="echo", name="Echo", tags=["echo"])],
        extensions=[Extension(uri="urn:example:known")],
    )

    @agent.handle
    async def echo(task: TaskHandle) -> None:
        if task.text == "ask":
            await task.ask("What?")
            return
        await task.working("Listening...")
        if task.text == "hold":
            await asyncio.sleep(PATIENCE)
        async with task.artifact(name="answer") as out:
            for word in task.text.split():
                await out.write(word)

    return agent


@asynccontextmanager
async def gateway(*to: Any, **settings: Any) -> AsyncIterator[Server]:
    """A server in front of an upstream; further keywords are those of Upstream, or `server`: those of Server."""
    more = settings.pop("server", {})
    options = Options(**{"store": "memory:", **HERE, **more.pop("options", {})})
    async with Server(Upstream(*to, **settings), options, **more) as front:
        yield front


@asynccontextmanager
async def faked(service: FakeService, port: int = 0) -> AsyncIterator[str]:
    """A gRPC server that says what it is told, without a card; its address."""
    server = grpc.aio.server()
    GrpcBinding(service, Options(), Streams(100)).add_to_server(server)
    port = server.add_insecure_port(f"127.0.0.1:{port}")
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(None)


def wire_of(server: Server, binding: str, version: str, **settings: Any) -> Client:
    return Client(
        server.http_url, binding=binding, version=version, **{"timeout": PATIENCE, "retries": None, **settings}
    )


async def stands_still(count: Callable[[], int]) -> int:
    """A count once it has stopped to grow: what a writer got rid of before a reader who does not read held it up."""
    before = -1
    async with asyncio.timeout(PATIENCE):
        while (now := count()) != before:
            before = now
            await asyncio.sleep(0.3)
    return before


async def failure(answer: Any) -> A2AError:
    with pytest.raises(A2AError) as caught:
        await answer
    return caught.value


def told(fault: A2AError) -> tuple[Any, ...]:
    return type(fault), fault.message, fault.metadata, fault.violations, fault.retry_after


async def last_of(events: Any) -> A2AError:
    """The error that a stream ends with."""

    async def read() -> None:
        async for _ in events:
            pass

    return await failure(read())


async def eventually(look: Callable[[], Awaitable[bool]]) -> None:
    """Wait until `look` finds what it looks for."""
    async with asyncio.timeout(PATIENCE):
        while not await look():  # noqa: ASYNC110 - what is waited for is at the other end of a wire
            await asyncio.sleep(0.02)
