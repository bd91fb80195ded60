"""Agents on stock stubs of other languages behind a gateway: they speak gRPC 1.0 alone, and get every wire and version,
streams that resume, cancel, and their own errors with all details."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
from a2a_stubs import v1

from a2a_grpc.call import JSONRPC, REST, V03, V1
from a2a_grpc.client import Client
from a2a_grpc.errors import ContentTypeNotSupportedError, TaskNotCancelableError, TaskNotFoundError
from tests.fronts import PATIENCE, WIRES, asking, failure, gateway, last_of, wire_of
from tests.interop import stubs
from tests.interop.conftest import steps
from tests.receivers import Receiver, receiver

DONE = {"state": "TASK_STATE_COMPLETED", "text": "hello"}
UNKNOWN = {"status": 5, "reason": "TASK_NOT_FOUND", "domain": "a2a-protocol.org"}
CALLED = {"send": DONE, "stream": DONE, "error": UNKNOWN}
CALLED |= {"send 0.3": DONE, "stream 0.3": {**DONE, "final": True}, "error 0.3": UNKNOWN}


@asynccontextmanager
async def stock(language: str) -> AsyncIterator[str]:
    """The agent in a language; its address."""
    process = await asyncio.create_subprocess_exec(*stubs.agent(language), stdout=asyncio.subprocess.PIPE)
    try:
        assert process.stdout is not None
        yield (await asyncio.wait_for(process.stdout.readline(), PATIENCE)).decode().strip()
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def work(client: Client) -> None:
    """What is sent, streamed and read."""
    done = (await client.send(asking("one two"))).task
    assert done.artifacts[0].parts[0].text == "one two"
    assert (await client.get(done.id)).status.state == v1.TASK_STATE_COMPLETED
    events = [event async for event in client.stream(asking("one two"))]
    pieces = [event.artifact_update.artifact.parts[0].text for event in events[1:-1]]
    assert len(pieces) == 2 and "".join(pieces) == "one two"
    assert events[-1].status_update.status.state == v1.TASK_STATE_COMPLETED
    assert type(await failure(client.cancel(done.id))) is TaskNotCancelableError


async def stop(client: Client) -> None:
    """A task that works until it is canceled."""
    events = client.stream(asking("wait"))
    task = (await anext(events)).task
    assert (await client.get(task.id)).status.state == v1.TASK_STATE_WORKING
    assert (await client.cancel(task.id)).status.state == v1.TASK_STATE_CANCELED
    assert [event.status_update.status.state async for event in events] == [v1.TASK_STATE_CANCELED]


async def fail(client: Client, version: str, language: str) -> None:
    """Errors of the agent's own."""
    assert type(await failure(client.get("nobody"))) is TaskNotFoundError
    for refused in (await failure(client.send(asking("refuse"))), await last_of(client.stream(asking("refuse")))):
        assert type(refused) is ContentTypeNotSupportedError
        if version == V1:
            assert (refused.message, refused.metadata) == ("not that", {"at": language.lower()})


@pytest.mark.requirement("GRPC-01", "ERR-15", "EQ-02", "OP-CANCEL-03")
@pytest.mark.parametrize("language", stubs.LANGUAGES)
async def test_an_agent_on_stock_stubs_answers_on_every_wire_and_version(language: str) -> None:
    async with stock(language) as address, gateway(address) as front:
        for binding, version in WIRES:
            async with wire_of(front, binding, version) as client:
                await work(client)
                await stop(client)
                await fail(client, version, language)


@pytest.mark.requirement("GRPC-01", "GRPC-07", "V03-26")
@pytest.mark.parametrize("language", stubs.LANGUAGES)
async def test_clients_on_stock_stubs_of_each_language_call_it_through_the_gateway(language: str) -> None:
    async with stock(language) as address, gateway(address) as front:
        for other in stubs.LANGUAGES:
            assert await asyncio.to_thread(steps, *stubs.client(other), front.grpc_address) == CALLED


@pytest.mark.parametrize("language", stubs.LANGUAGES)
async def test_its_streams_resume_at_the_gateway(language: str) -> None:
    async with (
        stock(language) as address,
        gateway(address, buffer=1 << 20) as front,
        wire_of(front, REST, V1) as client,
    ):
        events = client.stream(asking("a b c"))
        task_id = (await anext(events)).task.id
        await anext(events)
        last = events.last_event_id
        await events.aclose()
        rest = [event async for event in client.subscribe(task_id, last_event_id=last)]
        pieces = [event.artifact_update.artifact.parts[0].text for event in rest[:-1]]
        assert len(pieces) == 2 and "".join(pieces).strip() == "b c"
        assert rest[-1].status_update.status.state == v1.TASK_STATE_COMPLETED


@pytest.mark.parametrize("language", stubs.LANGUAGES)
@pytest.mark.requirement("PUSH-01", "PUSH-29")
async def test_it_gains_push_notifications_in_both_versions(language: str) -> None:
    told = {"push_notifications": True, "push_allow": ("127.0.0.1/32",)}
    async with (
        stock(language) as address,
        receiver() as hooks,
        gateway(address, push="own", server={"options": told}) as front,
        wire_of(front, REST, V1) as new,
        wire_of(front, JSONRPC, V03) as old,
    ):
        for client, path in ((new, "/new"), (old, "/old")):
            request = asking("one two")
            request.configuration.task_push_notification_config.url = hooks.url + path
            assert (await client.send(request)).task.status.state == v1.TASK_STATE_COMPLETED
        await hooks.until(lambda: all(b"ompleted" in _last(hooks, path).lower() for path in ("/new", "/old")))
        assert hooks.at("/new")[-1].headers["a2a-version"] == V1
        whole = hooks.at("/old")[-1]
        assert (whole.headers["a2a-version"], whole.json["artifacts"][0]["parts"][0]["text"]) == (V03, "one two")


def _last(hooks: Receiver, path: str) -> bytes:
    got = hooks.at(path)
    return got[-1].body if got else b""
