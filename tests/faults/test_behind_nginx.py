"""Replicas behind nginx as `deploy` sets both up: calls, streams, resuming, large bodies, and replicas that go.

Laws: one nginx and its replicas serve all tests of this module; two of the tests take a replica away, and each leaves
one that works.
"""

import asyncio
import json
import signal
from collections.abc import AsyncIterator

import aiohttp
import pytest
import pytest_asyncio
from a2a_stubs import v1

from a2a_grpc.bindings import rest
from a2a_grpc.bindings.mounts import READY
from a2a_grpc.call import GRPC, JSONRPC, REST, V1
from a2a_grpc.cards import WELL_KNOWN
from a2a_grpc.client import Client
from a2a_grpc.errors import PayloadTooLargeError, ResourceExhaustedError, UnavailableError
from a2a_grpc.testing import until
from tests.faults.processes import BINDINGS, fetch, message, numbered, texts, within
from tests.nginx import Proxy, behind_nginx, calling

pytestmark = pytest.mark.asyncio(loop_scope="module")
MIB = 1024 * 1024


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def proxy(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Proxy]:
    async with behind_nginx(tmp_path_factory.mktemp("nginx"), "worker") as found:
        yield found


async def sent(agent: Client, request: v1.SendMessageRequest, patient: bool) -> v1.SendMessageResponse:
    """The answer to a message; patient: repeated as long as the server is not available."""
    while True:
        try:
            return await agent.send(request)
        except UnavailableError:
            if not patient:
                raise
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("binding", BINDINGS)
async def test_calls_go_to_every_replica_and_each_knows_all_tasks(proxy: Proxy, binding: str) -> None:
    before = len(proxy.asked())  # nginx notes a call when it is over
    async with calling(proxy) as agents:
        tasks = [(await agents[binding].send(message("ask"))).task.id for _ in range(6)]
        answers = [await agents[binding].send(message("blue", task)) for task in tasks]
        found = {task.id for task in (await agents[binding].list()).tasks}
    assert {answer.task.status.state for answer in answers} == {v1.TASK_STATE_COMPLETED} and found >= set(tasks)
    await until(lambda: len({place for path, *_, place in proxy.asked()[before:] if path != WELL_KNOWN}) == 3)


@pytest.mark.requirement("BL-45")
async def test_the_card_shows_the_proxy_whatever_the_client_claims_to_have_come_by(proxy: Proxy) -> None:
    claims = {"X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "https", "X-Forwarded-Prefix": "/evil"}
    async with aiohttp.ClientSession() as session, session.get(proxy.url + WELL_KNOWN, headers=claims) as reply:
        card = json.loads(await reply.read())
    urls = {entry["protocolBinding"]: entry["url"] for entry in card["supportedInterfaces"]}
    assert urls == {JSONRPC: f"{proxy.url}/", REST: proxy.url, GRPC: proxy.grpc}


@pytest.mark.requirement("BL-36")
@pytest.mark.parametrize("binding", BINDINGS)
async def test_events_arrive_while_the_task_goes_on(proxy: Proxy, binding: str) -> None:
    async with calling(proxy) as agents:
        events = agents[binding].stream(message("count 100000 0.02"))
        task_id = (await within(anext(events))).task.id
        for _ in range(5):
            await within(anext(events))
        assert (await agents[REST].get(task_id)).status.state == v1.TASK_STATE_WORKING
        assert (await agents[GRPC].cancel(task_id)).status.state == v1.TASK_STATE_CANCELED
        rest, fault = await within(numbered(events))
    assert fault is None and rest[max(rest)].status_update.status.state == v1.TASK_STATE_CANCELED


@pytest.mark.requirement("SUB-05")
async def test_a_stream_is_resumed_by_its_last_event_id_on_another_replica(proxy: Proxy) -> None:
    async with calling(proxy) as agents:
        events = agents[REST].stream(message("count 60 0.05"))
        seen = [await within(anext(events)) for _ in range(4)]
        task_id, last = seen[0].task.id, int(events.last_event_id)
        await events.aclose()
        verb, path, headers, body = rest.request("SubscribeToTask", v1.SubscribeToTaskRequest(id=task_id), version=V1)
        found: list[list[int]] = []

        async def resume() -> None:
            asked = headers | {"Last-Event-ID": str(last)}
            async with session.request(verb, proxy.url + path, headers=asked, data=body) as reply:
                assert reply.status == 200
                text = await within(reply.text())
            found.append([int(line[4:]) for line in text.splitlines() if line.startswith("id: ")])

        async with aiohttp.ClientSession() as session:
            await asyncio.gather(*(resume() for _ in range(3)))
        task = await agents[GRPC].get(task_id)
    assert texts(task)[0].split() == [str(each) for each in range(60)]
    assert all(each == list(range(last + 1, found[0][-1] + 1)) for each in found)
    await until(lambda: len({entry[-1] for entry in proxy.asked() if entry[0] == path}) > 1)


@pytest.mark.requirement("BL-39")
@pytest.mark.parametrize("binding", BINDINGS)
async def test_large_messages_pass_and_too_large_ones_are_refused_by_the_server(proxy: Proxy, binding: str) -> None:
    async with calling(proxy) as agents:
        large = message("ask")
        large.message.metadata["padding"] = "x" * 10 * MIB
        assert (await agents[binding].send(large)).task.status.state == v1.TASK_STATE_INPUT_REQUIRED
        too_large = message("ask")
        too_large.message.metadata["padding"] = "x" * (16 * MIB + 1000)
        with pytest.raises(ResourceExhaustedError if binding == GRPC else PayloadTooLargeError):
            await agents[binding].send(too_large)


@pytest.mark.requirement("BL-34")
async def test_a_replica_that_stops_gets_no_new_work_and_shows_its_own_to_the_end(proxy: Proxy) -> None:
    leaving = proxy.replicas.pop()
    async with calling(proxy) as agents:
        streams = [agents[binding].stream(message("count 60 0.05")) for binding in BINDINGS for _ in range(3)]
        await asyncio.gather(*(within(anext(events)) for events in streams))
        leaving.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(60):
            while await fetch(leaving.url, READY) == 200:  # noqa: ASYNC110 - asked over the wire
                await asyncio.sleep(0.02)
        for binding in BINDINGS * 6:
            # What the proxy sees of a refusal is HTTP's status: callers of the other wires repeat their message.
            answer = await within(sent(agents[binding], message("parts 1 0"), patient=binding != REST))
            assert answer.task.status.state == v1.TASK_STATE_COMPLETED
        for events in streams:
            found, fault = await within(numbered(events))
            assert fault is None and found[max(found)].status_update.status.state == v1.TASK_STATE_COMPLETED
    assert await leaving.exit_code() == 0, leaving.log


@pytest.mark.requirement("BL-08")
async def test_a_replica_that_is_killed_costs_its_own_streams_and_no_other_call(proxy: Proxy) -> None:
    gone = proxy.replicas.pop()
    async with calling(proxy) as agents:
        gone.process.kill()
        await gone.exit_code()
        for _ in range(6):
            for binding in BINDINGS:
                assert (await agents[binding].send(message("parts 1 0"))).task.status.state == v1.TASK_STATE_COMPLETED
