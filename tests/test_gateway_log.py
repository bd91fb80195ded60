"""Streams that a gateway keeps, for upstreams that cannot resume them."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest
from a2a_stubs import v1

from a2a_grpc import errors, gateway_log
from a2a_grpc.call import GRPC, REST, RESUME_EXTENSION, V1, Call
from a2a_grpc.client import Client
from a2a_grpc.gateway_log import AHEAD, Log
from tests.fakes import FakeService, status, task
from tests.fronts import PATIENCE, WIRES, asking, eventually, failure, faked, gateway, wire_of


def piece(text: str) -> v1.StreamResponse:
    made = v1.StreamResponse(artifact_update=v1.TaskArtifactUpdateEvent(task_id="t1", context_id="c1"))
    made.artifact_update.artifact.parts.add(text=text)
    return made


class Agent(FakeService):
    """Starts a task, says three things, waits to be released, says two more and ends; knows no numbers. `follows`: how
    often it was subscribed to."""

    def __init__(self) -> None:
        super().__init__()
        self.released, self.follows = asyncio.Event(), 0

    async def _stream(self, method: Any, request: Any, call: Call) -> AsyncIterator[Any]:
        self._seen(request, call)
        self.follows += isinstance(request, v1.SubscribeToTaskRequest)
        yield v1.StreamResponse(task=task())
        for text in ("a", "b", "c"):
            yield piece(text)
        await self.released.wait()
        if self.fault:
            raise self.fault
        yield piece("d")
        yield status(v1.TASK_STATE_COMPLETED)


@asynccontextmanager
async def kept(service: FakeService, binding: str = REST, version: str = V1) -> AsyncIterator[Client]:
    extensions = [RESUME_EXTENSION] if binding == GRPC else []
    async with (
        faked(service) as address,
        gateway(address, buffer=1 << 20) as front,
        wire_of(front, binding, version, extensions=extensions) as client,
    ):
        yield client


def number_of(binding: str, events: Any, event: v1.StreamResponse) -> int:
    if binding != GRPC:
        return int(events.last_event_id)
    return int(getattr(event, event.WhichOneof("payload") or "").metadata[RESUME_EXTENSION]["sequence"])


async def taken(events: Any, binding: str = REST, most: int = 100) -> tuple[list[str], int]:
    """What some events say, and the number of the last."""
    said, last = [], 0
    async for event in events:
        last = number_of(binding, events, event)
        artifact = event.artifact_update.artifact
        said.append(artifact.parts[0].text if artifact.parts else event.WhichOneof("payload"))
        if len(said) == most:
            break
    return said, last


def again(client: Client, last: int) -> Any:
    """The same task, as a plain client resumes it, which repeats nothing by itself."""
    request = v1.SubscribeToTaskRequest(id="t1")
    return client.events("SubscribeToTask", request, last_event_id=str(last), headers={"last-event-id": str(last)})


async def leaves_and_comes_back(service: Agent, client: Client, binding: str) -> None:
    """A reader leaves in the middle, and resumes twice: before the end and after it."""
    events = client.stream(asking("x"))
    said, last = await taken(events, binding, 2)
    assert said == ["task", "a"]
    await events.aclose()
    resumed = again(client, last)
    said, last = await taken(resumed, binding, 1)
    assert said == ["b"]
    service.released.set()
    assert (await taken(resumed, binding))[0] == ["c", "d", "status_update"]
    assert (await taken(again(client, last), binding))[0] == ["c", "d", "status_update"]  # it has ended, too
    assert service.follows == 0


@pytest.mark.requirement("SUB-04")
@pytest.mark.parametrize(("binding", "version"), WIRES)
async def test_a_reader_that_comes_back_gets_what_it_missed_and_nothing_twice(binding: str, version: str) -> None:
    service = Agent()
    async with kept(service, binding, version) as client:
        await leaves_and_comes_back(service, client, binding)


@pytest.mark.requirement("SUB-04")
async def test_the_card_says_that_streams_can_be_resumed() -> None:
    async with kept(Agent()) as client:
        assert client.card and [each.uri for each in client.card.capabilities.extensions] == [RESUME_EXTENSION]


async def test_what_is_no_longer_kept_is_followed_anew_and_what_has_ended_is_shown() -> None:
    service = Agent()
    async with kept(service) as client:
        events = again(client, 12345 << 22 | 7)
        assert (await taken(events, most=2))[0] == ["task", "a"] and service.follows == 1
        service.answers["GetTask"] = task(state=v1.TASK_STATE_COMPLETED)
        events = again(client, 12345 << 22 | 7)
        assert [event.task.status.state async for event in events] == [v1.TASK_STATE_COMPLETED]


async def test_a_stream_that_broke_is_told_and_then_followed_anew() -> None:
    service = Agent()
    async with kept(service) as client:
        events = client.stream(asking("x"))
        _, last = await taken(events, most=3)
        service.fault = errors.InternalError("broken")
        service.released.set()
        with pytest.raises(errors.InternalError):
            await taken(events)
        service.fault = None
        said, _ = await taken(again(client, last))
        assert said == ["c", "task", "a", "b", "c", "d", "status_update"] and service.follows == 1


@pytest.mark.requirement("AUTH-06")
async def test_the_upstream_says_who_may_have_what_is_kept() -> None:
    service = Agent()
    async with kept(service) as client:
        events = client.stream(asking("x"))
        _, last = await taken(events, most=2)
        service.fault = errors.TaskNotFoundError()
        assert isinstance(await failure(anext(again(client, last))), errors.TaskNotFoundError)


# -- the log itself


async def numbers(count: int, made: list[int]) -> AsyncGenerator[v1.StreamResponse, None]:
    for number in range(count):
        made.append(number)
        yield piece("x" * 1000)


async def test_a_slow_reader_slows_the_upstream_down_and_one_that_leaves_does_not() -> None:
    made: list[int] = []
    log = Log(1 << 30)
    recording = log.record(numbers(1000, made))
    async with aclosing(recording.read()) as events:
        await anext(events)
        await asyncio.sleep(0.05)
        assert len(made) <= AHEAD + 2
    async with asyncio.timeout(PATIENCE):
        await recording.task
    assert len(made) == 1000
    await log.close()


async def test_a_stream_that_nobody_reads_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway_log, "ALONE_SECONDS", 0.05)
    forever = asyncio.Event()

    async def source() -> AsyncGenerator[v1.StreamResponse, None]:
        yield piece("a")
        await forever.wait()

    log = Log(1 << 20)
    recording = log.record(source())
    async with aclosing(recording.read()) as events:
        await anext(events)

    async def ended() -> bool:
        return recording.ended

    await eventually(ended)
    assert isinstance(recording.fault, errors.UnavailableError)
    await log.close()


async def test_all_that_is_kept_has_one_bound_and_the_oldest_goes_first() -> None:
    log = Log(20_000)
    first = log.record(numbers(5, []))
    number = [number async for number, _ in first.read()][-1]
    assert log.find(number - 2, "t1") == (first, 3) and log.find(number, "t2") is None
    second = log.record(numbers(500, []))
    latest = [number async for number, _ in second.read()][-1]
    assert log.find(number - 2, "t1") is None and not first.events and log.find(latest - 300, "t1") is None
    assert 5 < len(second.events) < 20 and log.find(latest, "t1") == (second, 500)
    assert isinstance(await failure(anext(second.read(3))), errors.UnavailableError)
    await log.close()
    assert log.find(latest, "t1") is None
