"""Agents on stock stubs that are killed, stand still or are told too much behind a gateway: callers learn it at once,
on every wire and version, whatever reads the streams, and are served again when the agent is."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from a2a_stubs import v1

from a2a_grpc.call import JSONRPC
from a2a_grpc.client import Client
from a2a_grpc.client_auth import Channel
from a2a_grpc.errors import A2AError, ResourceExhaustedError, UnavailableError
from a2a_grpc.gateway_way import UNREACHABLE
from a2a_grpc.testing import until
from tests.fronts import PATIENCE, WIRES, asking, eventually, failure, gateway, last_of, wire_of
from tests.interop import stubs
from tests.proxies import Proxy, proxy
from tests.test_client_http2 import BOTH

LANGUAGES = pytest.mark.parametrize("language", stubs.LANGUAGES)


class Stock:
    """An agent on stock stubs, and another in its place when it was killed."""

    def __init__(self, language: str) -> None:
        self._language = language
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> str:
        self._process = await asyncio.create_subprocess_exec(
            *stubs.agent(self._language), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
        )
        assert self._process.stdout is not None
        return (await asyncio.wait_for(self._process.stdout.readline(), PATIENCE)).decode().strip()

    async def stand(self) -> None:
        """Let all of its threads stand still."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        threads = Path(f"/proc/{self._process.pid}/task")
        await until(lambda: all(_state(each) == "T" for each in threads.iterdir()))

    def go_on(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    async def kill(self) -> None:
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()


def _state(thread: Path) -> str:
    """What a thread does, in the letter of the system."""
    return (thread / "stat").read_text().rpartition(") ")[2][0]


@asynccontextmanager
async def stock(language: str) -> AsyncIterator[tuple[Stock, Proxy]]:
    made = Stock(language)
    try:
        async with proxy(await made.start()) as between:
            yield made, between
    finally:
        await made.kill()


async def done(client: Client) -> bool:
    """Whether a call and a stream are served."""
    with suppress(UnavailableError):
        assert (await client.send(asking("a"))).task.status.state == v1.TASK_STATE_COMPLETED
        events = [event async for event in client.stream(asking("a b"))]
        return events[-1].status_update.status.state == v1.TASK_STATE_COMPLETED
    return False


async def told_too_much(client: Client, text: str) -> list[A2AError]:
    return [await failure(client.send(asking(text))), await last_of(client.stream(asking(text)))]


@BOTH
@LANGUAGES
@pytest.mark.requirement("ERR-16")
async def test_an_agent_that_is_killed_ends_its_calls_at_once_and_is_used_again_when_it_is_back(
    language: str, streams: str
) -> None:
    async with (
        stock(language) as (agent, between),
        gateway(between.address, channel=Channel(streams=streams)) as front,
    ):
        clients = [wire_of(front, binding, version) for binding, version in WIRES]
        open_streams, calls = [], []
        for client in clients:
            await client.__aenter__()
            open_streams.append(client.stream(asking("wait")))
            await anext(open_streams[-1])
            calls.append(asyncio.create_task(failure(client.send(asking("wait")))))
        await asyncio.sleep(0.2)  # until they are there
        await agent.kill()
        async with asyncio.timeout(PATIENCE / 2):
            faults = [*[await last_of(events) for events in open_streams], *[await call for call in calls]]
            faults += [await failure(client.get("t")) for client in clients]
        assert {(type(fault), fault.message) for fault in faults} == {(UnavailableError, UNREACHABLE)}
        between.target = await agent.start()
        for client in clients:
            await eventually(lambda c=client: done(c))  # type: ignore[misc]
            await client.close()


@BOTH
@LANGUAGES
async def test_an_agent_that_stands_still_is_waited_for_as_long_as_its_callers_like(
    language: str, streams: str
) -> None:
    async with (
        stock(language) as (agent, between),
        gateway(between.address, channel=Channel(streams=streams)) as front,
    ):
        for binding, version in WIRES:
            async with wire_of(front, binding, version) as client:
                assert await done(client)
                await agent.stand()
                for call in (client.send(asking("a")), last_of(client.stream(asking("a")))):
                    with pytest.raises(TimeoutError):
                        await asyncio.wait_for(call, 0.1)
                agent.go_on()
                assert await done(client)
        assert between.accepted <= 2


@BOTH
@LANGUAGES
async def test_an_agent_that_stands_still_and_is_killed_then_ends_its_calls(language: str, streams: str) -> None:
    async with (
        stock(language) as (agent, between),
        gateway(between.address, channel=Channel(streams=streams)) as front,
        wire_of(front, JSONRPC, "1.0") as client,
    ):
        assert await done(client)
        await agent.stand()
        calls = [asyncio.create_task(failure(client.send(asking("a"))))]
        calls.append(asyncio.create_task(last_of(client.stream(asking("a")))))
        await asyncio.sleep(0.1)
        await agent.kill()
        for call in calls:
            assert (await asyncio.wait_for(call, PATIENCE / 2)).message == UNREACHABLE


@BOTH
@LANGUAGES
async def test_what_is_too_large_for_an_agent_is_its_own_error_and_harms_no_other_call(
    language: str, streams: str
) -> None:
    async with (
        stock(language) as (_, between),
        gateway(between.address, channel=Channel(streams=streams)) as front,
    ):
        for binding, version in WIRES:
            async with wire_of(front, binding, version) as client:
                events = client.stream(asking("wait"))
                task = (await anext(events)).task
                faults = await told_too_much(client, "x" * 5_000_000)
                assert {type(fault) for fault in faults} == {ResourceExhaustedError}
                large = (await client.send(asking("x" * 1_000_000))).task
                assert len(large.artifacts[0].parts[0].text) == 1_000_000
                await client.cancel(task.id)
                assert [event async for event in events]
        assert between.accepted <= 2
