"""A server that is told to stop: nothing new, running work may finish, every reader is told, and it ends in time."""

import asyncio
import json
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import grpc.aio
import pytest
from a2a_stubs import v1, v1_grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from a2a_grpc.bindings import sse
from a2a_grpc.bindings.mounts import HEALTH, READY
from a2a_grpc.call import GRPC, JSONRPC, REST, V03
from a2a_grpc.client import Client
from a2a_grpc.errors import A2AError, UnavailableError
from tests.faults.processes import (
    BINDINGS,
    PATIENCE,
    Dialed,
    Serving,
    at_work,
    catches,
    channel_to,
    clients,
    dial,
    ended,
    fetch,
    joined,
    message,
    numbered,
    read_grpc,
    reason_of,
    serving,
    texts,
    within,
)

READERS, TURNS = 20, 5
SPARE = 15.0
"""Seconds past the grace in which a slow machine must have ended the process."""


async def begin(agents: dict[str, Client], text: str) -> list[str]:
    """Start some tasks; their ids."""
    sent = [agents[GRPC].send(message(text, now=True)) for _ in range(TURNS)]
    return [answer.task.id for answer in await within(asyncio.gather(*sent))]


async def read_sse(dialed: Dialed, begun: bytes, rpc: bool) -> list[dict[str, Any]]:
    """The JSON of each event of a stream whose body must end as HTTP wants it. begun: what was read of it before."""
    raw = begun + await within(dialed.reader.read())
    dialed.drop()
    head, _, body = raw.partition(b"\r\n\r\n")
    assert b"text/event-stream" in head
    found = [json.loads(event.data) for event in sse.Parser().feed(joined(body))]
    if rpc:
        assert {value["jsonrpc"] for value in found} == {"2.0"} and {value["id"] for value in found} == {1}
        found = [value.get("result", value) for value in found]
    return found


def is_unavailable(error: dict[str, Any]) -> bool:
    """Whether the last event of a stream tells in its wire's form that the server stops."""
    details = error.get("details") or error.get("data") or ()
    return any(detail.get("reason") == UnavailableError.reason for detail in details)


async def stopping(server: Serving) -> None:
    """Tell the server to stop, and wait until it says that it does."""
    assert await fetch(server.url, READY) == 200
    server.process.send_signal(signal.SIGTERM)
    async with asyncio.timeout(PATIENCE):
        while await fetch(server.url, READY) == 200:  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.02)


class Readers:
    """Readers of tasks on both ports, half of them on each; all have had their first event."""

    def __init__(self) -> None:
        self._dialed: list[tuple[str, Dialed]] = []
        self._begun: list[bytes] = []
        self._calls: list[Any] = []

    async def subscribe(self, server: Serving, channel: grpc.aio.Channel, tasks: Sequence[str]) -> None:
        stub = v1_grpc.A2AServiceStub(channel)
        for index in range(READERS):
            request = v1.SubscribeToTaskRequest(id=tasks[index % len(tasks)])
            binding = (JSONRPC, REST)[index % 2]
            self._dialed.append((binding, await dial(server.url, binding, "SubscribeToTask", request)))
            self._calls.append(stub.SubscribeToTask(request))
        for call in self._calls:
            assert (await within(call.read())).HasField("task")
        for _, dialed in self._dialed:
            self._begun.append(await within(dialed.reader.readuntil(b"data: ")))

    async def read(self) -> tuple[list[list[dict[str, Any]]], list[Any]]:
        """What each reader has got at the end, on HTTP and on gRPC."""
        sse_ends = await asyncio.gather(
            *(
                read_sse(dialed, begun, binding == JSONRPC)
                for (binding, dialed), begun in zip(self._dialed, self._begun, strict=True)
            )
        )
        return sse_ends, await within(asyncio.gather(*map(read_grpc, self._calls)))


async def refused(agents: dict[str, Client]) -> list[A2AError]:
    """What each binding says to new work."""
    found = []
    for agent in agents.values():
        with pytest.raises(A2AError) as told:
            await agent.send(message("count 1"))
        found.append(told.value)
    return found


@pytest.mark.requirement("BL-34", "BL-08", "STREAM-11", "BL-21")
@pytest.mark.parametrize("grace", [0, 1, 3])
async def test_a_stopping_server_tells_everybody_and_ends_in_time(tmp_path: Path, grace: int) -> None:
    loop, readers = asyncio.get_running_loop(), Readers()
    async with serving(tmp_path, "--grace", str(grace)) as server, clients(server) as agents:
        tasks = await begin(agents, "sleep 600")
        async with channel_to(server.grpc) as channel:
            await readers.subscribe(server, channel, tasks)
            assert await fetch(server.url, READY) == 200
            server.process.send_signal(signal.SIGTERM)
            begun = loop.time()
            by_sse, by_grpc = await readers.read()
            assert await server.exit_code() == 0, server.log
            assert loop.time() - begun < grace + SPARE
        assert "Traceback" not in server.log
    for events in by_sse:
        assert is_unavailable(events[-1].get("error", {})) or "FAILED" in str(events[-1]["statusUpdate"])
    for events, fault in by_grpc:
        if fault is None:
            assert events[-1].status_update.status.state == v1.TASK_STATE_FAILED
        else:
            assert fault.code() == grpc.StatusCode.UNAVAILABLE and reason_of(fault) == UnavailableError.reason
    async with serving(tmp_path) as server, clients(server) as agents:
        for name in tasks:
            task = await agents[GRPC].get(name)
            assert task.status.state == v1.TASK_STATE_FAILED
            assert "server stopped" in task.status.message.parts[0].text


@pytest.mark.requirement("BL-34")
async def test_a_stopping_server_is_not_ready_and_takes_nothing_new(tmp_path: Path) -> None:
    async with serving(tmp_path, "--grace", "600") as server, clients(server) as agents:
        async with channel_to(server.grpc) as channel:
            task = (await agents[GRPC].send(message("sleep 600", now=True))).task
            await at_work(agents, 1)
            await stopping(server)
            assert await fetch(server.url, READY) == 503 and await fetch(server.url, HEALTH) == 200
            assert {type(fault) for fault in await refused(agents)} == {UnavailableError}
            health = await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest())
            assert health.status == health_pb2.HealthCheckResponse.NOT_SERVING
            dialed = await dial(server.url, REST, "SendMessage", message("ask"), connection="close")
            assert (await within(dialed.reader.read())).startswith(b"HTTP/1.1 503 ")
            dialed.drop()
            with pytest.raises(grpc.aio.AioRpcError) as told:
                await v1_grpc.A2AServiceStub(channel).SendMessage(message("ask"))
            assert told.value.code() == grpc.StatusCode.UNAVAILABLE
            # What runs can still be read and canceled, and with its end the server ends.
            assert (await agents[JSONRPC].get(task.id)).status.state == v1.TASK_STATE_WORKING
            assert (await agents[REST].cancel(task.id)).status.state == v1.TASK_STATE_CANCELED
        assert await server.exit_code() == 0, server.log


@pytest.mark.requirement("BL-34", "OP-STREAM-04")
async def test_work_that_ends_within_the_grace_is_shown_to_its_end(tmp_path: Path) -> None:
    readers = Readers()
    async with serving(tmp_path, "--grace", "60") as server, clients(server) as agents:
        tasks = await begin(agents, "parts 3 1")
        async with channel_to(server.grpc) as channel:
            await readers.subscribe(server, channel, tasks)
            server.process.send_signal(signal.SIGTERM)
            by_sse, by_grpc = await readers.read()
        assert await server.exit_code() == 0, server.log
        assert "Traceback" not in server.log
    assert {events[-1]["statusUpdate"]["status"]["state"] for events in by_sse} == {"TASK_STATE_COMPLETED"}
    for events, fault in by_grpc:
        assert fault is None and events[-1].status_update.status.state == v1.TASK_STATE_COMPLETED
    async with serving(tmp_path) as server, clients(server) as agents:
        for name in tasks:
            assert texts(await agents[JSONRPC].get(name)) == ["part 0", "part 1", "part 2"]


@pytest.mark.requirement("BL-34", "BL-08")
async def test_readers_of_an_idle_task_are_told_that_the_server_stops(tmp_path: Path) -> None:
    readers = Readers()
    async with serving(tmp_path, "--grace", "1") as server, clients(server) as agents:
        asking = (await agents[REST].send(message("ask"))).task.id
        async with channel_to(server.grpc) as channel:
            await readers.subscribe(server, channel, [asking])
            server.process.send_signal(signal.SIGINT)
            by_sse, by_grpc = await readers.read()
        assert await server.exit_code() == 0, server.log
    assert all(is_unavailable(events[-1]["error"]) for events in by_sse)
    assert {fault.code() for _, fault in by_grpc} == {grpc.StatusCode.UNAVAILABLE}
    async with serving(tmp_path) as server, clients(server) as agents:
        answer = await agents[GRPC].send(message("this one", asking))
        assert texts(answer.task) == ["you said this one"]


@pytest.mark.requirement("BL-34", "BL-08")
@pytest.mark.parametrize("binding", BINDINGS)
async def test_a_second_signal_ends_the_process_at_once_and_loses_nothing(tmp_path: Path, binding: str) -> None:
    async with serving(tmp_path, "--grace", "600", agent="stubborn") as server, clients(server) as agents:
        task = (await agents[binding].send(message("count 5 0.2", now=True))).task
        await stopping(server)
        server.process.send_signal(signal.SIGTERM)
        assert await server.exit_code() == -signal.SIGTERM
    async with serving(tmp_path, agent="stubborn") as server, clients(server) as agents:
        task = await ended(agents[binding], task.id)
        assert task.status.state == v1.TASK_STATE_COMPLETED
        assert texts(task)[-1] == "0 1 2 3 4 "


@pytest.mark.requirement("BL-34", "BL-08", "OP-SEND-02")
async def test_blocking_sends_are_answered_when_the_server_stops(tmp_path: Path) -> None:
    async with serving(tmp_path, "--grace", "1") as server, clients(server) as agents:
        sends = [asyncio.create_task(agent.send(message("sleep 600"))) for agent in agents.values()]
        await at_work(agents, len(sends))
        server.process.send_signal(signal.SIGTERM)
        for told in await within(asyncio.gather(*sends, return_exceptions=True)):
            if isinstance(told, v1.SendMessageResponse):
                assert told.task.status.state == v1.TASK_STATE_FAILED
            else:
                assert type(told) is UnavailableError, repr(told)
        assert await server.exit_code() == 0, server.log
        assert "Traceback" not in server.log


@pytest.mark.requirement("BL-34", "BL-08")
async def test_a_turn_that_the_stop_cut_short_is_run_again_where_the_agent_wants_that(tmp_path: Path) -> None:
    async with serving(tmp_path, "--grace", "0", agent="stubborn") as server, clients(server) as agents:
        events = agents[REST].stream(message("count 60 0.05"))
        first = await anext(events)
        server.process.send_signal(signal.SIGTERM)
        seen, fault = await numbered(events)
        assert isinstance(fault, UnavailableError)
        assert await server.exit_code() == 0, server.log
    async with serving(tmp_path, agent="stubborn") as server, clients(server) as agents:
        last = max(seen, default=1)
        rest, fault = await numbered(agents[GRPC].subscribe(first.task.id, str(last)))
        assert fault is None and min(rest) == last + 1
        task = await agents[GRPC].get(first.task.id)
        assert task.status.state == v1.TASK_STATE_COMPLETED and task.artifacts[-1].name == "attempt 2"


@pytest.mark.requirement("BL-34", "STREAM-06")
async def test_clients_that_do_nothing_do_not_hold_up_the_end(tmp_path: Path) -> None:
    """Requests that are never sent to their end, readers that never read, and watchers of the server itself."""
    loop = asyncio.get_running_loop()
    async with (
        serving(tmp_path, "--grace", "1", "--store", "memory:") as server,
        clients(server) as agents,
        channel_to(server.grpc) as channel,
    ):
        stalled = [
            await dial(server.url, binding, "SendStreamingMessage", message("count 500 0 20000"), window=4096)
            for binding in (JSONRPC, REST)
        ]
        halves = [await dial(server.url, REST, "SendMessage", message("x"), most=most) for most in (0, 9, 40, 200)]
        watcher = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest())
        assert (await watcher.read()).status == health_pb2.HealthCheckResponse.SERVING
        reflection = channel.stream_stream("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo")()
        await reflection.write(b"\x3a\x01*")  # list_services
        assert await within(reflection.read())
        await at_work(agents, 0, 2)
        server.process.send_signal(signal.SIGTERM)
        begun = loop.time()
        assert await server.exit_code() == 0, server.log
        assert loop.time() - begun < 1 + SPARE
        assert "Traceback" not in server.log
        for dialed in (*stalled, *halves):
            dialed.drop()


@pytest.mark.requirement("BL-34", "STREAM-11", "V03-21")
async def test_older_readers_are_told_in_their_own_form(tmp_path: Path) -> None:
    async with serving(tmp_path, "--grace", "0") as server, clients(server, V03) as agents:
        asking = (await agents[REST].send(message("ask"))).task.id
        streams = [agent.subscribe(asking) for agent in agents.values()]
        for events in streams:
            assert (await anext(events)).task.id == asking
        server.process.send_signal(signal.SIGTERM)
        for events in streams:
            with pytest.raises(UnavailableError, match="stopping"):
                await anext(events)
        assert await server.exit_code() == 0, server.log


@pytest.mark.requirement("BL-34", "BL-17")
async def test_a_second_signal_ends_the_process_even_while_an_agent_holds_the_loop(tmp_path: Path) -> None:
    async with serving(tmp_path, agent="hogger") as server, channel_to(server.grpc) as channel:
        call = v1_grpc.A2AServiceStub(channel).SendMessage(message("600"))
        async with asyncio.timeout(PATIENCE):
            while "event loop is held" not in server.log:  # noqa: ASYNC110 - another process's log
                await asyncio.sleep(0.1)
        server.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(PATIENCE):
            while catches(server.process.pid, signal.SIGTERM):  # noqa: ASYNC110 - two at once may arrive as one
                await asyncio.sleep(0.02)
        server.process.send_signal(signal.SIGTERM)
        assert await server.exit_code() == -signal.SIGTERM
        call.cancel()
    async with serving(tmp_path) as server, clients(server) as agents:
        [task] = (await agents[GRPC].list()).tasks
        assert task.status.state == v1.TASK_STATE_FAILED
