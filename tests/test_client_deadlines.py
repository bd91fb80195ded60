"""Calls that have no time, to servers that answer, answer late or never: they end when it is over, on every wire and
whatever reads their streams; nothing is left of them, and the connection goes on."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from a2a_stubs import v1
from h2.settings import SettingCodes

from a2a_grpc import errors, gateway_way
from a2a_grpc.call import GRPC, JSONRPC, REST, V1
from a2a_grpc.client import Client
from a2a_grpc.client_auth import Channel
from a2a_grpc.testing import serve, until
from tests.fronts import PATIENCE, asking, failure, gateway, make_agent, wire_of
from tests.http2_peers import Peer, Talk, packed
from tests.test_client_http2 import BOTH, EVENT, ONE, begins, calling, good, read

STREAM = "SendStreamingMessage"
SOON = 5.0
"""Seconds in which a call is surely over that had a moment; to connect may take 20."""


@pytest.fixture
def hole() -> Iterator[str]:
    """An address at which nobody takes connections, or refuses them."""
    listening, waiting = socket.create_server(("127.0.0.1", 0), backlog=0), []
    for _ in range(4):  # beyond what waits there, nobody is answered
        waiting.append(socket.socket())
        waiting[-1].setblocking(False)
        waiting[-1].connect_ex(listening.getsockname())
    yield "{}:{}".format(*listening.getsockname())
    for each in (listening, *waiting):
        each.close()


async def both_end(client: Client, limit: str) -> None:
    """A call and a stream end by their deadline."""
    told = {"headers": {"grpc-timeout": limit}}
    for call in (client.call("GetTask", v1.GetTaskRequest(id="t"), **told), read(client, **told)):
        fault = await failure(asyncio.wait_for(call, SOON))
        assert (type(fault), fault.message) == (errors.InternalError, "Deadline Exceeded")


@BOTH
@pytest.mark.parametrize("limit", ["1m", "100m"])
@pytest.mark.parametrize("scheme", ["grpc", "grpcs"])
async def test_the_time_to_connect_is_part_of_a_calls_own(hole: str, scheme: str, limit: str, streams: str) -> None:
    async with Client(f"{scheme}://{hole}", retries=None, channel=Channel(streams=streams)) as client:
        await both_end(client, limit)


@BOTH
async def test_a_server_that_takes_connections_and_says_nothing_has_no_more_time_either(streams: str) -> None:
    peer = Peer(good)
    peer.silent = True
    async with peer.listening() as address, calling(address, streams) as client:
        await both_end(client, "100m")


class Late(Talk):
    """Begins to speak when there has been time to give up."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport
        self.transport.pause_reading()
        asyncio.get_running_loop().call_later(0.3, self.begin)

    def begin(self) -> None:
        super().connection_made(self.transport)
        self.transport.resume_reading()


@BOTH
async def test_a_connection_that_comes_too_late_for_one_call_is_there_for_the_next(streams: str) -> None:
    peer = Peer(good)
    peer.talk = Late
    async with peer.listening() as address, calling(address, streams) as client:
        fault = await failure(read(client, headers={"grpc-timeout": "50m"}))
        assert "Deadline" in fault.message
        assert await read(client, headers={"grpc-timeout": "20000m"}) == [EVENT]
        assert len(peer.talks) == 1 and len(peer.bodies) == 1


@BOTH
@pytest.mark.parametrize("binding", [GRPC, JSONRPC, REST])
async def test_a_caller_of_a_gateway_waits_no_longer_for_an_agent_that_is_not_reached(
    hole: str, binding: str, streams: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway_way, "LOOK_SECONDS", 1.0)
    async with gateway(f"grpc://{hole}", channel=Channel(streams=streams)) as front:
        if binding == GRPC:
            async with wire_of(front, binding, V1) as client:
                await both_end(client, "100m")
        else:
            async with wire_of(front, binding, V1, timeout=0.1) as client:
                for call in (client.get("t"), anext(client.stream(asking("x")))):
                    with pytest.raises(TimeoutError):
                        await call


@BOTH
async def test_a_client_that_was_closed_meanwhile_makes_no_connection_for_who_still_calls(streams: str) -> None:
    peer = Peer(good)
    async with peer.listening() as address, calling(address, streams) as client:
        wire = client.wire
        assert await read(client) == [EVENT]
        await client.close()
        before = len(peer.talks)
        for call in (wire.unary("GetTask", v1.GetTaskRequest(id="t"), {}), anext(wire.stream(STREAM, asking("x"), {}))):
            with pytest.raises((ConnectionError, errors.UnavailableError), match="closed"):
                await call
        assert len(peer.talks) == before


async def test_who_waits_for_room_on_a_connection_that_is_closed_waits_for_no_other() -> None:
    peer = Peer(begins(packed(ONE)), {SettingCodes.MAX_CONCURRENT_STREAMS: 1})
    async with peer.listening() as address, calling(address) as client:
        await anext(client.events(STREAM, asking("x")))
        waiting = [asyncio.create_task(failure(read(client))) for _ in range(3)]
        await asyncio.sleep(0.05)
        await client.close()
        assert {type(await each) for each in waiting} == {errors.UnavailableError}
        assert len(peer.talks) == 1


async def hurried(client: Client, binding: str, operation: int) -> None:
    """A call that has a millisecond."""
    told = {"headers": {"grpc-timeout": "1m"}} if binding == GRPC else {}
    with suppress(errors.TaskNotFoundError):  # it was fast
        async with asyncio.timeout(SOON if binding == GRPC else 0.001):
            if operation % 2:
                await client.call("GetTask", v1.GetTaskRequest(id="t"), **told)
            else:
                await read(client, **told)


@BOTH
@pytest.mark.parametrize("way", ["agent", "gateway"])
@pytest.mark.parametrize("binding", [GRPC, JSONRPC, REST])
async def test_of_calls_that_had_a_millisecond_nothing_is_left(binding: str, way: str, streams: str) -> None:
    channel = Channel(streams=streams)
    async with (
        serve(make_agent()) as back,
        gateway(back.http_url, binding=GRPC, channel=channel) as front,
        wire_of(back if way == "agent" else front, binding, V1, channel=channel) as client,
    ):
        for _ in range(2):
            ends = await asyncio.gather(*(hurried(client, binding, at) for at in range(60)), return_exceptions=True)
            assert {type(end) for end in ends} <= {errors.InternalError, TimeoutError, type(None)}
            assert {str(end) for end in ends if isinstance(end, errors.A2AError)} <= {"Deadline Exceeded"}
        assert (await client.send(asking("hi"))).task.status.state == v1.TASK_STATE_COMPLETED
        assert [event async for event in client.stream(asking("a b"))]
        (upstream,) = front._upstreams
        wires: list[Any] = [(await upstream.connected()).wire, client.wire]
        for http2 in [wire._begin.__self__ for wire in wires if getattr(wire, "_begin", None)]:
            await until(lambda h=http2: all(not each._readings for each in h._left), PATIENCE)  # type: ignore[misc]
            assert len(http2._left) <= 1
        await until(lambda: not upstream._way.waiting)
