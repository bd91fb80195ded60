"""Streams that a gateway keeps in a store: they are taken up again at any event, also after a restart, anywhere."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from a2a_stubs import v1

from a2a_grpc import errors
from a2a_grpc.call import GRPC, JSONRPC, REST, RESUME_EXTENSION, V1
from a2a_grpc.client import Client
from a2a_grpc.server import Server
from a2a_grpc.tasks.store import Scope
from tests.fakes import FakeService, status, task
from tests.fronts import WIRES, asking, eventually, failure, faked, gateway, wire_of
from tests.receivers import receiver
from tests.stores import postgres_url
from tests.test_gateway_log import Agent, again, leaves_and_comes_back, piece, taken

HERE = Scope("", "", "")


@asynccontextmanager
async def stored(address: str, store: str, buffer: int = 1 << 20, **more: Any) -> AsyncIterator[Server]:
    async with gateway(address, buffer=buffer, server={"options": {"store": store, **more}}) as front:
        yield front


def reader(front: Server, binding: str = REST, version: str = V1) -> Client:
    return wire_of(front, binding, version, extensions=[RESUME_EXTENSION] if binding == GRPC else [])


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"sqlite:{tmp_path / 'gateway.db'}"


@pytest.mark.requirement("SUB-04")
@pytest.mark.parametrize(("binding", "version"), WIRES)
async def test_a_reader_that_comes_back_gets_what_it_missed(store: str, binding: str, version: str) -> None:
    service = Agent()
    async with faked(service) as address, stored(address, store) as front, reader(front, binding, version) as client:
        await leaves_and_comes_back(service, client, binding)
        assert client.card and RESUME_EXTENSION in [each.uri for each in client.card.capabilities.extensions]


class Faithful(Agent):
    """Who subscribes gets the task as it is, and what comes after."""

    async def _stream(self, method: Any, request: Any, call: Any) -> AsyncIterator[Any]:
        async for event in super()._stream(method, request, call):
            if event.HasField("status_update"):
                self.answers["GetTask"] = self.whole("abcd", v1.TASK_STATE_COMPLETED)
            elif event.HasField("task"):
                event = v1.StreamResponse(task=self.answers["GetTask"])
                self.answers["GetTask"] = self.whole("abc", v1.TASK_STATE_WORKING)
            elif (
                isinstance(request, v1.SubscribeToTaskRequest) and event.artifact_update.artifact.parts[0].text in "abc"
            ):
                continue
            if event.HasField("artifact_update"):
                event.artifact_update.append = event.artifact_update.artifact.parts[0].text != "a"
            yield event

    def whole(self, texts: str, state: Any) -> v1.Task:
        made = task(state=state)
        made.artifacts.add().parts.extend(v1.Part(text=text) for text in texts)
        return made


@pytest.mark.requirement("SUB-04", "BL-08")
async def test_a_stream_goes_on_after_a_restart_of_the_gateway(store: str) -> None:
    service = Faithful()
    async with faked(service) as address:
        async with stored(address, store) as front, reader(front) as client:
            _, last = await taken(client.stream(asking("x")), most=3)
            assert (await taken(again(client, last), most=1))[0] == ["c"]
        async with stored(address, store) as front, reader(front) as client:
            events = again(client, last)
            assert (await taken(events, most=1))[0] == ["c"]
            service.released.set()
            assert (await taken(events))[0] == ["d", "status_update"]


async def test_replicas_on_one_database_tell_the_same_stream() -> None:
    service = Agent()
    async with (
        faked(service) as address,
        postgres_url() as store,
        stored(address, store) as left,
        stored(address, store) as right,
        reader(left) as first,
        reader(right) as second,
    ):
        _, last = await taken(first.stream(asking("x")), most=2)
        events = again(second, last)
        assert (await taken(events, most=2))[0] == ["b", "c"]
        service.released.set()
        assert (await taken(events))[0] == ["d", "status_update"]
    assert service.follows == 0


async def test_a_number_that_nobody_gave_is_not_guessed(store: str) -> None:
    service = Agent()
    async with faked(service) as address, stored(address, store) as front, reader(front) as client:
        assert (await taken(again(client, 12345), most=2))[0] == ["task", "a"]
        service.answers["GetTask"] = task("t2", state=v1.TASK_STATE_COMPLETED)
        request = v1.SubscribeToTaskRequest(id="t2")
        ended = client.events("SubscribeToTask", request, last_event_id="7", headers={"last-event-id": "7"})
        assert [event.task.id async for event in ended] == ["t2"]


@pytest.mark.requirement("AUTH-06")
async def test_the_agent_says_who_may_read_what_is_kept(store: str) -> None:
    service = Agent()
    async with faked(service) as address, stored(address, store) as front, reader(front) as client:
        _, last = await taken(client.stream(asking("x")), most=2)
        service.fault = errors.TaskNotFoundError()
        assert isinstance(await failure(anext(again(client, last))), errors.TaskNotFoundError)


async def test_a_direct_answer_and_an_early_error_come_as_they_are(store: str) -> None:
    service = FakeService()
    service.events = [v1.StreamResponse(message=v1.Message(message_id="m"))]
    async with faked(service) as address, stored(address, store) as front, reader(front, JSONRPC) as client:
        assert [event.message.message_id async for event in client.stream(asking("x"))] == ["m"]
        service.events, service.fault = [], errors.ContentTypeNotSupportedError("no")
        assert isinstance(await failure(anext(client.stream(asking("x")))), errors.ContentTypeNotSupportedError)
        assert front.engine.running == 0


async def test_a_task_that_has_ended_at_once_is_told_and_kept(store: str) -> None:
    service = FakeService()
    service.events = [v1.StreamResponse(task=task(state=v1.TASK_STATE_COMPLETED))]
    async with faked(service) as address, stored(address, store) as front, reader(front) as client:
        events = [event async for event in client.stream(asking("x"))]
        assert [event.task.status.state for event in events] == [v1.TASK_STATE_COMPLETED]
        assert front.engine.running == 0 and await front.store.task(HERE, "t1")


@pytest.mark.requirement("BL-44")
async def test_of_one_task_no_more_is_kept_than_may_be(store: str) -> None:
    service = FakeService()
    pieces = [piece("x" * 1000) for _ in range(400)]
    service.events = [v1.StreamResponse(task=task()), *pieces, status(v1.TASK_STATE_WORKING)]
    service.wait = asyncio.Event().wait()
    async with faked(service) as address, stored(address, store, buffer=100_000) as front, reader(front) as client:
        events = client.stream(asking("x"))
        first = await taken(events, most=1)

        async def all_told() -> bool:
            row = await front.store.task(HERE, "t1")
            return row is not None and row.sequence == 402

        await eventually(all_told)
        kept = await front.store.events(HERE, "t1", 0, 1000)
        assert 40 < len(kept) < 110 and kept[-1].sequence == 402
        assert (await taken(again(client, first[1]), most=1))[0] == ["task"]  # as it is, since the rest is gone
        assert (await taken(again(client, kept[0].sequence), most=2))[0] == ["x" * 1000] * 2


async def test_a_config_of_the_agents_own_goes_on_to_it(store: str) -> None:
    service = Agent()
    async with receiver() as hooks, faked(service) as address, stored(address, store) as front, reader(front) as client:
        request = asking("x")
        request.configuration.task_push_notification_config.url = hooks.url
        await taken(client.stream(request), most=2)
    assert service.calls[0][0].configuration.task_push_notification_config.url == hooks.url
