"""The gateway when something goes away: the agent behind it, the way to it, the caller."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import aiohttp
import pytest
from a2a_stubs import v1

from a2a_grpc import errors
from a2a_grpc.call import V1, Call
from a2a_grpc.client_wires import GrpcWire
from a2a_grpc.gateway import Upstream
from a2a_grpc.gateway_way import UNREACHABLE
from a2a_grpc.testing import serve, until
from tests.fakes import FakeService, status
from tests.fronts import (
    PATIENCE,
    WIRES,
    asking,
    eventually,
    failure,
    faked,
    gateway,
    last_of,
    make_agent,
    stands_still,
    told,
    wire_of,
)


class Relay:
    """Bytes between the gateway and its upstream, until they are cut."""

    def __init__(self) -> None:
        self._writers: list[asyncio.StreamWriter] = []
        self._copies: set[asyncio.Task[None]] = set()
        self._to = self._to_grpc = ""

    async def open(self) -> int:
        self._server = await asyncio.start_server(self._join, "127.0.0.1", 0)
        return int(self._server.sockets[0].getsockname()[1])

    def lead_to(self, http: str, grpc: str) -> None:
        self._to, self._to_grpc = http, grpc

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.read(65536)
        to = self._to_grpc if head.startswith(b"PRI ") else self._to
        there, back = await asyncio.open_connection("127.0.0.1", int(to.rpartition(":")[2]))
        back.write(head)
        self._writers += [writer, back]
        for source, sink in ((reader, back), (there, writer)):
            self._copies.add(asyncio.create_task(self._copy(source, sink)))

    async def _copy(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        try:
            while chunk := await source.read(65536):
                sink.write(chunk)
                await sink.drain()
        except ConnectionError:
            pass
        sink.close()

    async def cut(self) -> None:
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()
        await asyncio.wait(self._copies)


@pytest.mark.requirement("BL-21", "STREAM-11", "ERR-11")
@pytest.mark.parametrize(("binding", "version"), WIRES)
async def test_a_stream_that_is_cut_behind_the_gateway_ends_with_an_error(binding: str, version: str) -> None:
    relay = Relay()
    port = await relay.open()
    public = {"public_url": f"http://127.0.0.1:{port}", "public_grpc": f"127.0.0.1:{port}"}
    async with AsyncExitStack() as stack:
        back = await stack.enter_async_context(serve(make_agent(), **public))
        relay.lead_to(back.http_address, back.grpc_address)
        front = await stack.enter_async_context(gateway(f"http://127.0.0.1:{port}", binding=binding, version=version))
        streams = []
        for wire in WIRES:
            client = await stack.enter_async_context(wire_of(front, *wire))
            streams.append(client.stream(asking("hold")))
            assert (await anext(streams[-1])).task.id
        await relay.cut()
        for events in streams:
            fault = await last_of(events)
            assert type(fault) is errors.UnavailableError and UNREACHABLE in fault.message, fault.message
            assert str(port) not in fault.message


@pytest.mark.requirement("BL-35", "GRPC-11", "SSE-06")
@pytest.mark.parametrize(("binding", "version"), WIRES)
async def test_a_caller_that_leaves_ends_the_call_behind_the_gateway(binding: str, version: str) -> None:
    service = FakeService()
    service.events = [v1.StreamResponse(task=v1.Task(id="t1")), status(v1.TASK_STATE_WORKING)]
    service.wait = asyncio.Event().wait()
    async with faked(service) as address, gateway(address) as front, wire_of(front, binding, version) as client:
        events = client.stream(asking("x"))
        assert (await anext(events)).task.id == "t1"
        assert service.closed == 0
        await events.aclose()
        await until(lambda: service.closed == 1)


class Patient(FakeService):
    """Plain calls have no end of their own."""

    async def _one(self, method: Any, request: Any, call: Call) -> Any:
        self._seen(request, call)
        try:
            await asyncio.Event().wait()
        finally:
            self.closed += 1


@pytest.mark.requirement("BL-35", "GRPC-11")
@pytest.mark.parametrize(("binding", "version"), WIRES)
async def test_a_caller_that_waits_no_longer_ends_the_call_behind_the_gateway(binding: str, version: str) -> None:
    service = Patient()
    async with faked(service) as address, gateway(address) as front, wire_of(front, binding, version) as client:
        waiting = asyncio.create_task(client.send(asking("x")))
        await until(lambda: len(service.calls) == 1)
        waiting.cancel()
        await until(lambda: service.closed == 1)


async def test_a_gateway_that_stops_tells_who_waits_for_an_answer() -> None:
    service = Patient()
    async with faked(service) as address, gateway(address) as front:
        clients = [await wire_of(front, *wire).__aenter__() for wire in WIRES]
        waiting = [asyncio.create_task(client.send(asking("x"))) for client in clients]
        await until(lambda: len(service.calls) == len(WIRES))
        await front.stop(0)
        for answer in waiting:
            fault = await failure(answer)
            assert type(fault) is errors.UnavailableError and fault.message.endswith("The server is stopping")
        for client in clients:
            await client.close()


async def test_a_stream_goes_on_during_the_grace_and_ends_after_it() -> None:
    service, more = FakeService(), asyncio.Event()
    service.wait = more.wait()
    async with faked(service) as address:
        upstream = Upstream(address)
        await upstream.open()
        events: Any = upstream.SendStreamingMessage(asking("x"), Call("SendStreamingMessage"))
        await anext(events)
        closing = asyncio.create_task(upstream.close(PATIENCE))
        await asyncio.sleep(0)
        assert isinstance(await failure(upstream.GetTask(v1.GetTaskRequest(id="t"), Call("GetTask"))), errors.A2AError)
        assert (await anext(events)).HasField("status_update")
        more.set()
        with pytest.raises(StopAsyncIteration):
            await anext(events)
        await closing

        service.wait = None
        await upstream.open()
        events = upstream.SendStreamingMessage(asking("x"), Call("SendStreamingMessage"))
        await anext(events)
        await upstream.close()  # while nobody waits for the next event
        fault = await failure(anext(events))
        assert told(fault) == told(errors.UnavailableError("The server is stopping"))


async def test_a_reader_that_is_slow_slows_the_agent_down() -> None:
    """What is not read is not fetched: an endless stream does not pile up in the gateway."""
    service, made = FakeService(), 0

    def endless() -> Any:
        nonlocal made
        while True:
            made += 1
            event = status(v1.TASK_STATE_WORKING)
            event.status_update.status.message.parts.add(text="x" * 100_000)
            yield event

    service.events = endless()  # type: ignore[assignment]
    async with faked(service) as address:
        upstream = Upstream(address)
        await upstream.open()
        events: Any = upstream.SendStreamingMessage(asking("x"), Call("SendStreamingMessage"))
        await anext(events)
        assert await stands_still(lambda: made) < 2000
        await events.aclose()
        await upstream.close()


@pytest.mark.requirement("ERR-11")
async def test_without_its_upstream_a_gateway_says_so_and_goes_on_when_it_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("a2a_grpc.gateway_way.LOOK_SECONDS", 0.2)
    service = FakeService()
    async with faked(service) as taken:
        port = int(taken.rpartition(":")[2])
    async with aiohttp.ClientSession() as http, gateway(f"127.0.0.1:{port}") as front:

        async def shown(path: str, **headers: str) -> int:
            async with http.get(front.http_url + path, headers={"a2a-version": V1, **headers}) as reply:
                return reply.status

        async def all_is_well() -> bool:
            return await shown("/readyz") == 200 == await shown("/tasks/t1")

        async def all_is_lost() -> bool:
            return await shown("/readyz") == 503

        assert [await shown("/healthz"), await shown("/readyz"), await shown("/tasks/t1")] == [200, 503, 503]
        for wire in WIRES:
            async with wire_of(front, *wire) as client:
                for fault in (await failure(client.get("t1")), await last_of(client.stream(asking("x")))):
                    assert type(fault) is errors.UnavailableError and fault.message.endswith(UNREACHABLE)
        async with faked(service, port):
            await eventually(all_is_well)
        await eventually(all_is_lost)


@pytest.mark.requirement("ERR-11")
async def test_a_gateway_whose_look_fails_as_nobody_thought_says_so_and_looks_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("a2a_grpc.gateway_way.LOOK_SECONDS", 0.1)
    looks: list[Any] = []

    async def check(self: Any) -> None:
        looks.append(self)
        if len(looks) > 1 and faults:
            raise faults.pop()

    monkeypatch.setattr(GrpcWire, "check", check)
    faults: list[BaseException] = [asyncio.CancelledError(), RuntimeError("odd"), RuntimeError("odd"), KeyError("odd")]
    async with faked(FakeService()) as address:
        upstream = Upstream(address)
        await upstream.open()
        assert upstream.up
        await until(lambda: not faults and upstream.up)
        await upstream.close()
    told = [each.exc_info[0].__name__ for each in caplog.records if each.exc_info and each.exc_info[0]]
    assert told == ["KeyError", "RuntimeError", "CancelledError"]  # each kind once in a row


async def test_a_gateway_to_what_is_no_address_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match=r"'ftp'.*http, https, grpc, grpcs"):
        Upstream("ftp://me:secret@127.0.0.1:9")


async def test_without_its_card_a_gateway_has_none() -> None:
    async with aiohttp.ClientSession() as http, gateway("http://127.0.0.1:9") as front:
        async with http.get(f"{front.http_url}/.well-known/agent-card.json") as reply:
            assert reply.status == 503 and "127.0.0.1:9" not in await reply.text()
        async with http.get(f"{front.http_url}/tasks", headers={"a2a-version": V1}) as reply:
            assert (reply.status, (await reply.json())["error"]["message"]) == (503, UNREACHABLE)
