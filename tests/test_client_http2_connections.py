"""Connections on which h2 reads streams over gRPC: how they are made, shared, tried and left, and how fast read;
from a server that does as it likes, and from real ones."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc.aio
import pytest
from a2a_stubs import v1, v1_grpc
from h2.settings import SettingCodes

from a2a_grpc import client_auth, client_connection, client_http2, client_reading, errors
from a2a_grpc.bindings import sse
from a2a_grpc.call import GRPC, JSONRPC, REST, V1
from a2a_grpc.client import Client
from a2a_grpc.client_auth import Channel, Tls
from a2a_grpc.client_reading import WINDOW
from a2a_grpc.commands import gateway as command
from a2a_grpc.gateway import Upstream
from a2a_grpc.testing import until
from scripts.services import free_port
from tests.fakes import status
from tests.fronts import PATIENCE, asking, failure, gateway, stands_still, wire_of
from tests.http2_peers import HEAD, Peer, Talk, packed
from tests.test_client_auth import files  # noqa: F401 - a fixture
from tests.test_client_http2 import BOTH, EVENT, ONE, begins, calling, good, holding, read, told

# -- how fast


MANY = 40_000
"""Events of more than a megabyte."""


async def flood(talk: Talk, stream: int) -> None:
    talk.head(stream)
    await talk.stream(stream, packed(*[ONE] * MANY))
    talk.tail(stream)


async def test_a_slow_reader_holds_up_its_server_and_nobody_else() -> None:
    async with told(flood) as (peer, client):
        slow = client.events("SendStreamingMessage", asking("x"))
        assert await anext(slow) == EVENT
        (talk,) = peer.talks
        assert await stands_still(lambda: talk.sent) <= 2 * WINDOW
        peer.answer = good
        for _ in range(20):
            assert await read(client) == [EVENT]
        assert len(peer.talks) == 1
        count = 1
        async for _ in slow:
            count += 1
        assert count == MANY


async def test_readers_that_stand_still_never_hold_up_another_on_their_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client_connection, "WINDOW_OF_ALL", 4 * WINDOW)
    async with told(flood) as (peer, client):
        slow = [client.events("SendStreamingMessage", asking("x")) for _ in range(10)]
        await asyncio.gather(*(anext(each) for each in slow))
        await stands_still(lambda: sum(talk.sent for talk in peer.talks))
        count = 0
        async for _ in slow[0]:
            count += 1
        assert count == MANY - 1
        for each in slow[1:]:
            await each.aclose()


async def test_a_message_larger_than_the_window_comes_through() -> None:
    large = status(v1.TASK_STATE_WORKING)
    large.status_update.status.message.parts.add(raw=bytes(8 * WINDOW))

    async def say(talk: Talk, stream: int) -> None:
        talk.head(stream)
        await talk.stream(stream, packed(ONE, large.SerializeToString(), ONE))
        talk.tail(stream)

    async with told(say) as (_, client):
        assert await read(client) == [EVENT, large, EVENT]


async def test_what_comes_is_not_written_out_for_a_log_that_nobody_keeps() -> None:
    peer = Peer(good)
    async with peer.listening() as address:
        http2 = client_http2.Http2(address, None)
        reading = await http2.call("/a/b", [], b"", None)
        assert await reading.messages() == [ONE]
        (connection,) = http2._left
        assert isinstance(connection._h2.incoming_buffer, client_connection._Frames)
        connection._h2.incoming_buffer.add_data(bytes([0, 0, 9, 0, 0, 0, 0, 0, 1]) + b"123456789")
        assert "31323334" not in repr(next(connection._h2.incoming_buffer))
        reading.close()
        await http2.close()


async def test_events_that_are_there_are_read_together_and_none_waits_for_another() -> None:
    go = asyncio.Event()

    async def say(talk: Talk, stream: int) -> None:
        talk.head(stream)
        talk.body(stream, packed(*[ONE] * 10) + packed(ONE)[:5])
        await go.wait()
        talk.body(stream, packed(ONE)[5:])
        talk.tail(stream)

    peer = Peer(say)
    async with peer.listening() as address:
        http2 = client_http2.Http2(address, None)
        reading = await http2.call("/a/b", [], b"", None)
        assert await reading.messages() == [ONE] * 10
        go.set()
        assert await reading.messages() == [ONE]
        assert await reading.messages() == []
        reading.close()
        await http2.close()


class Counting(v1_grpc.A2AServiceServicer):
    """Streams as many events as it is asked for."""

    async def SendStreamingMessage(self, request: Any, context: Any) -> AsyncIterator[v1.StreamResponse]:
        for number in range(int(request.message.parts[0].text)):
            yield status(v1.TASK_STATE_WORKING, f"t{number}")


@asynccontextmanager
async def counting(**options: int) -> AsyncIterator[tuple[grpc.aio.Server, str]]:
    server = grpc.aio.server(options=list(options.items()))
    v1_grpc.add_A2AServiceServicer_to_server(Counting(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    yield server, f"127.0.0.1:{port}"
    await server.stop(None)


async def counted(client: Client, count: int) -> None:
    found = [event.status_update.task_id async for event in client.events("SendStreamingMessage", asking(str(count)))]
    assert found == [f"t{number}" for number in range(count)]


@pytest.mark.parametrize("most", [0, 3])
async def test_many_streams_at_once_from_a_real_server(most: int) -> None:
    options = {"grpc.max_concurrent_streams": most} if most else {}
    async with counting(**options) as (_, address), calling(address) as client:
        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(*(counted(client, 10 + number) for number in range(150)))


async def test_a_stream_waits_for_its_turn_where_a_server_takes_one_at_a_time() -> None:
    peer = Peer(begins(packed(ONE)), {SettingCodes.MAX_CONCURRENT_STREAMS: 1})
    async with peer.listening() as address, calling(address) as client:
        first = client.events("SendStreamingMessage", asking("x"))
        await anext(first)
        peer.answer = good
        fault = await failure(read(client, headers={"grpc-timeout": "100m"}))
        assert type(fault) is errors.InternalError and "Deadline" in fault.message
        waiting = [asyncio.create_task(read(client)) for _ in range(3)]
        await asyncio.sleep(0.1)
        assert len(peer.bodies) == 1
        waiting.pop().cancel()
        await first.aclose()
        assert await asyncio.gather(*waiting) == [[EVENT], [EVENT]]
        assert len(peer.bodies) == 3 and len(peer.talks) == 1


# -- connections


async def test_calls_share_a_connection_or_as_many_as_are_wanted() -> None:
    for wanted in (0, 1, 3):
        async with told(good, channel={"connections": wanted}) as (peer, client):
            await asyncio.gather(*(read(client) for _ in range(9)))
        assert len(peer.talks) == (wanted or 1)


async def test_a_call_that_a_leaving_server_did_not_look_at_is_made_again_elsewhere() -> None:
    async def leaves(talk: Talk, stream: int) -> None:
        peer.answer = good
        talk.goaway(0)

    async with told(leaves) as (peer, client):
        assert await read(client) == [EVENT]
    assert len(peer.talks) == 2


async def test_a_call_that_was_answered_is_not_made_again_whatever_a_leaving_server_says() -> None:
    async def leaves(talk: Talk, stream: int) -> None:
        talk.head(stream)
        talk.body(stream, packed(ONE))
        talk.goaway(0)

    async with told(leaves) as (peer, client):
        events = client.events("SendStreamingMessage", asking("x"))
        assert await anext(events) == EVENT
        assert type(await failure(anext(events))) is errors.UnavailableError
    assert len(peer.talks) == len(peer.bodies) == 1


async def test_a_call_that_nobody_ever_looks_at_fails() -> None:
    async def leaves(talk: Talk, stream: int) -> None:
        talk.goaway(0)

    async with told(leaves) as (peer, client):
        assert type(await failure(read(client))) is errors.UnavailableError
    assert len(peer.talks) == 2


async def test_running_streams_end_where_they_end_and_new_ones_go_elsewhere_when_a_server_leaves() -> None:
    go = asyncio.Event()

    async with told(holding(go)) as (peer, client):
        events = client.events("SendStreamingMessage", asking("x"))
        await anext(events)
        peer.talks[0].goaway(2**31 - 1)
        peer.talks[0].goaway(1)
        peer.answer = good
        await until(lambda: not client.wire._begin.__self__._ways[0].result().takes)  # type: ignore[attr-defined]
        assert await read(client) == [EVENT]
        assert len(peer.talks) == 2
        go.set()
        assert [event async for event in events] == [EVENT]
        await asyncio.wait_for(peer.talks[0].gone.wait(), PATIENCE)


async def test_a_real_server_that_stops_lets_streams_end() -> None:
    async with counting() as (server, address), calling(address) as client:
        events = client.events("SendStreamingMessage", asking("3000"))
        await anext(events)
        stopping = asyncio.create_task(server.stop(PATIENCE))
        assert len([event async for event in events]) == 2999
        await stopping


@BOTH
async def test_a_connection_that_was_lost_while_nobody_used_it_is_made_anew(streams: str) -> None:
    async with told(good, streams) as (peer, client):
        for count in range(1, 4):
            assert await read(client) == [EVENT]
            assert len(peer.talks) == count
            peer.talks[-1].transport.close()
            await asyncio.wait_for(peer.talks[-1].gone.wait(), PATIENCE)
            await asyncio.sleep(0.05)


async def test_nobody_there_is_no_connection_and_somebody_later_is_one() -> None:
    peer, port = Peer(good), free_port()
    async with calling(f"127.0.0.1:{port}") as client:
        for _ in range(3):
            assert type(await failure(read(client))) is errors.UnavailableError
        async with peer.listening(port=port):
            await asyncio.sleep(client_http2.PAUSE)
            assert await read(client) == [EVENT]


async def test_a_server_that_says_nothing_or_no_http2_is_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_http2, "CONNECT_SECONDS", 0.3)
    async with told(good) as (peer, client):
        peer.silent = True
        faults = await asyncio.gather(*(failure(read(client)) for _ in range(5)))
        assert {type(fault) for fault in faults} == {errors.UnavailableError}
        assert len(peer.talks) == 1


@pytest.mark.parametrize("words", [b"HTTP/1.1 400 Bad Request\r\n\r\n", bytes(64), b"\x00\x00\x02\x08" + bytes(99)])
async def test_a_server_of_something_else_is_no_connection(words: bytes) -> None:
    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(words)
        await reader.read()
        writer.close()

    server = await asyncio.start_server(speak, "127.0.0.1", 0)
    async with server, calling("{}:{}".format(*server.sockets[0].getsockname())) as client:
        assert type(await failure(asyncio.wait_for(read(client), PATIENCE))) is errors.UnavailableError


async def test_a_quiet_connection_is_tried_by_pings_only_where_that_is_wanted_and_streams_are_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with told(begins(packed(ONE)), channel={"keepalive": 0.1}) as (peer, client):
        events = client.events("SendStreamingMessage", asking("x"))
        await anext(events)
        await until(lambda: peer.pings >= 2)
        await events.aclose()
        await asyncio.sleep(0.15)
        before = peer.pings
        await asyncio.sleep(0.5)
        assert peer.pings == before
        monkeypatch.setattr(client_auth, "PING_TIMEOUT_MS", 100)
        events = client.events("SendStreamingMessage", asking("x"))
        await anext(events)
        peer.silent = True
        assert type(await failure(anext(events))) is errors.UnavailableError
    async with told(begins(packed(ONE))) as (peer, client):
        events = client.events("SendStreamingMessage", asking("x"))
        await anext(events)
        await asyncio.sleep(0.3)
        assert not peer.pings
        await events.aclose()


async def test_a_client_that_is_closed_ends_its_streams_and_leaves_in_order() -> None:
    async with told(begins(packed(ONE))) as (peer, client):
        tasks = [asyncio.create_task(failure(read(client))) for _ in range(3)]
        await until(lambda: len(peer.bodies) == 3)
        await client.close()
        assert {type(await task) for task in tasks} == {errors.UnavailableError}
        await asyncio.wait_for(peer.talks[0].gone.wait(), PATIENCE)
        assert peer.talks[0].left


async def test_a_server_that_asks_for_more_than_it_reads_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_connection, "MOST_UNSENT", 1 << 18)

    class Stuffed(asyncio.Transport):
        """Takes everything and gets rid of nothing."""

        size = 0
        aborted = False

        def write(self, data: Any) -> None:
            self.size += len(data)

        def is_closing(self) -> bool:
            return self.aborted

        def get_write_buffer_size(self) -> int:
            return self.size

        def abort(self) -> None:
            self.aborted = True

    made, transport = client_connection.Connection("http", "x:1", 0.0), Stuffed()
    made.connection_made(transport)
    ping = bytes([0, 0, 8, 6, 0, 0, 0, 0, 0]) + bytes(8)
    made.data_received(bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))
    while transport.size < client_connection.MOST_UNSENT:
        assert not transport.aborted
        made.data_received(ping * 1_000)
    assert transport.aborted
    made.connection_lost(None)


# -- where it is used


@pytest.mark.parametrize(
    ("target", "fit"),
    [
        ("127.0.0.1:1", True),
        ("agents.example:443", True),
        ("[::1]:50051", True),
        ("::1:50051", False),
        ("dns:///agents:50051", False),
        ("ipv4:10.0.0.1:1,10.0.0.2:1", False),
        ("unix:/tmp/x", False),
        ("agents:99999", False),
        ("agents", False),
    ],
)
def test_addresses_of_one_host_and_port_are_read_by_h2(target: str, fit: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in client_http2.PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    assert client_http2.fits(target, "pick_first") is fit
    assert not client_http2.fits(target, "round_robin")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    assert not client_http2.fits(target, "pick_first")


def test_limits_are_bounded_by_each_other() -> None:
    assert client_reading.WINDOW < client_connection.WINDOW_OF_ALL < sse.LIMIT


def test_a_gateway_reads_by_h2_unless_it_is_told_otherwise_or_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    def chosen(**settings: Any) -> str:
        channel: Channel = Upstream("127.0.0.1:1", channel=Channel(**settings))._way.settings["channel"]
        return channel.streams

    assert chosen() == chosen(keepalive=3.0, connections=2) == "h2"
    assert chosen(streams="grpcio") == "grpcio"
    assert chosen(balance="round_robin") == ""
    monkeypatch.setattr("a2a_grpc.gateway.version", lambda _: "5.0.0")
    assert chosen() == ""
    with pytest.raises(ValueError, match="streams"):
        Channel(streams="http2")


def test_the_command_line_says_what_reads() -> None:
    for flags, chosen in (((), "h2"), (("--upstream-streams=grpcio",), "grpcio"), (("--upstream-streams", "h2"), "h2")):
        upstream = command.ready(["--upstream", "127.0.0.1:1", *flags]).make()
        assert upstream._way.settings["channel"].streams == chosen


@BOTH
@pytest.mark.parametrize("binding", [GRPC, JSONRPC, REST])
async def test_a_gateway_passes_on_every_event_in_order(binding: str, streams: str) -> None:
    async with (
        counting() as (_, address),
        gateway(address, channel=Channel(streams=streams)) as front,
        wire_of(front, binding, V1) as client,
    ):
        await asyncio.gather(*(counted(client, 300 + number) for number in range(20)))


async def test_a_slow_caller_of_a_gateway_holds_up_the_agent_behind_it() -> None:
    async def endless(talk: Talk, stream: int) -> None:
        if "Streaming" not in peer.seen[-1][":path"]:
            return talk.head(stream, (*HEAD, ("grpc-status", "12")), end=True)
        talk.head(stream)
        while True:
            await talk.stream(stream, packed(*[ONE] * 1000))

    peer = Peer(endless)
    async with peer.listening() as address, gateway(address) as front:
        reader, writer = await asyncio.open_connection(*front.http_address.split(":"))
        body = b'{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x"}]}}'
        head = f"POST /message:stream HTTP/1.1\r\nhost: {front.http_address}\r\na2a-version: 1.0\r\n"
        writer.write(f"{head}content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)
        assert b"data: " in await reader.readuntil(b"data: ")
        await stands_still(lambda: sum(talk.sent for talk in peer.talks))
        writer.close()
        await until(lambda: peer.resets == [8])


# -- TLS


def context(folder: Path, *, alpn: bool = True, shown: bool = False) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(folder / "server.pem", folder / "server-key.pem")
    if alpn:
        made.set_alpn_protocols(["h2"])
    if shown:
        made.verify_mode = ssl.CERT_REQUIRED
        made.load_verify_locations(folder / "ca.pem")
    return made


@BOTH
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_streams_go_over_tls_to_who_is_vouched_for_with_a_certificate_of_ones_own(
    files: Path,  # noqa: F811
    streams: str,
    host: str,
) -> None:
    own = Tls(str(files / "ca.pem"), str(files / "client.pem"), str(files / "client-key.pem"))
    peer = Peer(good)
    async with peer.listening(context(files, shown=True)) as address:
        url = f"grpcs://{host}:{address.rpartition(':')[2]}"
        settings: dict[str, Any] = {"channel": Channel(streams=streams), "timeout": PATIENCE, "retries": None}
        async with Client(url, tls=own, **settings) as client:
            assert await read(client) == [EVENT]
            assert peer.seen[0][":scheme"] == "https"
        for bad in (Tls(str(files / "ca.pem")), Tls(), Tls(str(files / "client.pem"))):
            async with Client(url, tls=bad, **settings) as client:
                assert type(await failure(read(client))) is errors.UnavailableError


@BOTH
async def test_a_server_that_does_not_offer_http2_over_tls_is_no_connection(
    files: Path,  # noqa: F811
    streams: str,
) -> None:
    async with Peer(good).listening(context(files, alpn=False)) as address:
        settings: dict[str, Any] = {"channel": Channel(streams=streams), "timeout": PATIENCE, "retries": None}
        async with Client(f"grpcs://{address}", tls=Tls(str(files / "ca.pem")), **settings) as client:
            assert type(await failure(read(client))) is errors.UnavailableError


async def test_what_h2_cannot_use_of_tls_is_left_to_grpcio(files: Path) -> None:  # noqa: F811
    data = {name: (files / f"{name}.pem").read_bytes() for name in ("client", "client-key")}
    own = Tls(str(files / "ca.pem"), data["client"], data["client-key"])
    peer = Peer(good)
    async with peer.listening(context(files, shown=True)) as address:
        told: dict[str, Any] = {"channel": Channel(streams="h2"), "timeout": PATIENCE, "retries": None}
        async with Client(f"grpcs://{address}", tls=own, **told) as client:
            assert await read(client) == [EVENT]
    assert "grpc-c" in peer.seen[0]["user-agent"]
