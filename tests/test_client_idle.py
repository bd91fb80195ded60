"""Agents that are behind, or gone: a task said to be at work for ever is given up after a time without news, and
never while there is any."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from a2a_stubs import v1

from a2a_grpc import client_streams
from a2a_grpc.client import Client
from a2a_grpc.client_retries import Retries
from a2a_grpc.remote import RemoteAgent
from tests.fakes import FakeService, status, task
from tests.fronts import PATIENCE, WIRES, asking, faked, gateway, wire_of
from tests.proxies import card_at

IDLE = 0.5
QUICK = Retries(first=0.01, most=0.05, patience=PATIENCE, idle=IDLE)
GIVEN_UP = "nothing new of task t1 for 0.5 seconds"


@asynccontextmanager
async def clients_of(service: FakeService) -> AsyncIterator[list[Client]]:
    """Clients on all wires of an agent whose streams end although the task is at work."""
    service.events = [v1.StreamResponse(task=task())]
    async with faked(service) as address, gateway(address) as front, AsyncExitStack() as stack:
        yield [await stack.enter_async_context(wire_of(front, *wire, retries=QUICK)) for wire in WIRES]


async def read(events: Any) -> list[v1.StreamResponse]:
    return [event async for event in events]


async def given_up(waited: Any) -> None:
    begun = time.monotonic()
    with pytest.raises(TimeoutError, match=GIVEN_UP):
        await waited
    assert time.monotonic() - begun >= IDLE


@pytest.mark.requirement("OP-STREAM-10", "AUTH-11")
async def test_a_task_that_is_only_said_to_be_at_work_is_given_up_on_every_wire() -> None:
    async with clients_of(FakeService()) as clients:
        waits: list[Any] = []
        for client in clients:
            agent = RemoteAgent(client)
            waits += [client.wait("t1"), agent.generate("x"), agent.result("t1", wait=True)]
            waits += [read(client.stream(asking("x"))), read(client.subscribe("t1"))]
        await asyncio.gather(*map(given_up, waits))


@pytest.mark.parametrize("snapshot", [True, False])
@pytest.mark.parametrize("looks", [v1.TASK_STATE_WORKING, v1.TASK_STATE_COMPLETED])
async def test_a_task_whose_stream_is_held_open_without_a_word_is_looked_at(
    looks: Any, snapshot: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_streams, "LOOK_SECONDS", IDLE / 4)
    service = FakeService()

    async def hold(*_: Any) -> AsyncIterator[v1.StreamResponse]:
        if snapshot:
            yield v1.StreamResponse(task=task())
        await asyncio.sleep(PATIENCE)

    service.SubscribeToTask = hold  # type: ignore[attr-defined]
    service.answers["GetTask"] = task(state=looks)
    async with clients_of(service) as clients:
        if looks == v1.TASK_STATE_WORKING:
            waits: list[Any] = []
            for client in clients:
                waits += [client.wait(task()), read(client.subscribe("t1")), read(client.stream(asking("x")))]
            await asyncio.gather(*map(given_up, waits))
            return
        found = await asyncio.gather(*(read(client.subscribe("t1")) for client in clients))
        assert [events[-1].status_update.status.state for events in found] == [looks] * len(WIRES)


async def test_a_task_that_tells_something_new_now_and_then_is_not() -> None:
    service, begun = FakeService(), time.monotonic()

    async def look(*_: Any) -> v1.Task:
        """Another word every so often, until long after the time without news would have been over."""
        past = time.monotonic() - begun
        if past > 4 * IDLE:
            return task(state=v1.TASK_STATE_COMPLETED)
        told = task()
        told.status.message.MergeFrom(v1.Message(message_id=f"m{int(past / IDLE * 4)}", role="ROLE_AGENT"))
        told.status.message.parts.add(text="on it")
        return told

    async def follow(client: Client) -> None:
        waited, events = await asyncio.gather(client.wait("t1"), read(client.subscribe("t1")))
        states = [event.status_update.status.state for event in events]
        assert waited.status.state == states[-1] == v1.TASK_STATE_COMPLETED
        assert states.count(v1.TASK_STATE_WORKING) >= 2 and time.monotonic() - begun >= 4 * IDLE

    service.GetTask = look  # type: ignore[attr-defined]
    async with clients_of(service) as clients:
        await asyncio.gather(*map(follow, clients))


async def test_an_agent_that_is_polled_is_given_up_too() -> None:
    async with faked(FakeService()) as address:
        card = card_at("GRPC", "1.0", address)
        card.capabilities.streaming = False
        async with Client(card, retries=QUICK) as client:
            with pytest.raises(TimeoutError, match=GIVEN_UP):
                await client.wait("t1")
            with pytest.raises(TimeoutError, match=GIVEN_UP):
                await RemoteAgent(client).generate("x")


async def test_the_end_comes_after_everything_though_the_agent_tells_it_before_it_has_written_it() -> None:
    service = FakeService()
    looks = iter([("a", v1.TASK_STATE_WORKING)] * 3)

    async def look(*_: Any) -> v1.Task:
        text, state = next(looks, ("ab", v1.TASK_STATE_COMPLETED))
        kept = task(state=state)
        kept.artifacts.add(artifact_id="a", parts=[v1.Part(text=text)])
        return kept

    async def end(*_: Any) -> AsyncIterator[v1.StreamResponse]:
        yield status(v1.TASK_STATE_COMPLETED)

    service.GetTask, service.SubscribeToTask = look, end  # type: ignore[attr-defined]
    async with clients_of(service) as clients:
        for client in clients:
            looks = iter([("a", v1.TASK_STATE_WORKING)] * 3)
            events = await read(client.stream(asking("x")))
            pieces = [part.text for event in events for part in event.artifact_update.artifact.parts]
            assert "".join(pieces) == "ab"
            assert events[-1].status_update.status.state == v1.TASK_STATE_COMPLETED
