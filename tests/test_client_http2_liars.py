"""What servers may do over HTTP/2 and seldom do, and what none should: it harms its own call at most, and costs no more
than is set."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import uvloop
from h2.settings import SettingCodes

from a2a_grpc import client_connection, client_http2, errors
from a2a_grpc.client import Client
from a2a_grpc.client_auth import Channel, Tls
from a2a_grpc.testing import until
from tests.fronts import PATIENCE, asking, failure
from tests.http2_peers import HEAD, Peer, Talk, packed
from tests.test_client_auth import files  # noqa: F401 - a fixture
from tests.test_client_http2 import BOTH, EVENT, ONE, Say, begins, good, heads, holding, read, told
from tests.test_client_http2_connections import context


def string(value: bytes) -> bytes:
    """A text of a block of headers, as it is."""
    if len(value) < 127:
        return bytes([len(value)]) + value
    rest, made = len(value) - 127, b"\x7f"
    while rest > 127:
        made, rest = made + bytes([rest % 128 + 128]), rest // 128
    return made + bytes([rest]) + value


def ends(name: bytes, value: bytes) -> Say:
    """An event, and trailers with a header that no library would write."""

    async def say(talk: Talk, stream: int) -> None:
        talk.head(stream)
        talk.body(stream, packed(ONE))
        left = b"\0" + string(b"grpc-status") + string(b"5") + b"\0" + string(name) + string(value)
        kind, flags = 1, 1
        while len(left) > 16_384:
            talk.raw(kind, flags, stream, left[:16_384])
            kind, flags, left = 9, 0, left[16_384:]
        talk.raw(kind, flags | 4, stream, left)

    return say


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (b"grpc-message", b" no such task "),
        (b"grpc-message", b"no such\ntask"),
        (b"grpc-message", b"no such task\0"),
        (b"grpc-message", b"no such t\xe2sk"),
        (b"X-Upper", b"x"),
        (b"x y", b"x"),
        (b"", b"x"),
        (b":status", b"200"),
        (b"connection", b"close"),
        (b"te", b"gzip"),
        (b"x", b"y" * 100_000),
        (b"x", b"y" * 1_000_000),
    ],
    ids=lambda value: repr(value[:16]),
)
async def test_a_header_that_may_not_be_there_is_a_matter_of_its_call(name: bytes, value: bytes) -> None:
    go = asyncio.Event()

    async def holds(talk: Talk, stream: int) -> None:
        talk.head(stream)
        talk.body(stream, packed(ONE))
        await go.wait()
        talk.tail(stream)

    async with told(holds) as (peer, client):
        another = client.events("SendStreamingMessage", asking("x"))
        await anext(another)
        peer.answer = ends(name, value)
        assert type(await failure(read(client))) is errors.NotFoundError
        go.set()
        assert [event async for event in another] == []
    assert len(peer.talks) == 1


@asynccontextmanager
async def beside_another(say: Say, streams: str) -> AsyncIterator[tuple[Peer, Client]]:
    """A peer that says that to every call, and its client; another stream on the same connection goes on to its end."""
    go = asyncio.Event()

    async with told(holding(go), streams) as (peer, client):
        another = client.events("SendStreamingMessage", asking("x"))
        await anext(another)
        peer.answer = say
        yield peer, client
        go.set()
        assert [event async for event in another] == [EVENT]
    assert len(peer.talks) == 1


@BOTH
@pytest.mark.parametrize("lengths", [("0",), ("3",), ("9999",), ("x",), ("",), ("-1",), ("4", "5"), ("1" * 5_000,)])
async def test_a_length_of_an_answer_that_is_not_so_means_nothing(lengths: tuple[str, ...], streams: str) -> None:
    async def say(talk: Talk, stream: int) -> None:
        talk.head(stream, (*HEAD, *(("content-length", length) for length in lengths)))
        talk.body(stream, packed(ONE))
        talk.tail(stream)

    async with beside_another(say, streams) as (_, client):
        assert await read(client) == [EVENT]


async def test_an_answer_that_ends_before_its_length_has_no_status() -> None:
    async def say(talk: Talk, stream: int) -> None:
        talk.head(stream, (*HEAD, ("content-length", "9999")))
        talk.body(stream, packed(ONE), end_stream=True)

    async with beside_another(say, "h2") as (_, client):
        assert "no status" in (await failure(read(client))).message


def pushes(stream: int, pushed: int, answer: bytes) -> bytes:
    """Frames of a stream that nobody has asked for, and, if there is an answer, of that."""
    asked = b"".join(
        b"\0" + string(b":" + name) + string(b"x") for name in (b"method", b"path", b"scheme", b"authority")
    )
    said = [(5, 4, stream, pushed.to_bytes(4, "big") + asked)]
    if answer:
        said += [(1, 4, pushed, b"\x88"), (0, 1, pushed, answer)]
    return b"".join(
        len(text).to_bytes(3, "big") + bytes([kind, flags]) + ident.to_bytes(4, "big") + text
        for kind, flags, ident, text in said
    )


@BOTH
@pytest.mark.parametrize("answer", [b"", packed(ONE)])
async def test_what_nobody_asked_for_is_not_read_and_the_answer_goes_on(answer: bytes, streams: str) -> None:
    async def say(talk: Talk, stream: int) -> None:
        talk.head(stream)
        talk.transport.write(pushes(stream, 2, answer))
        talk.body(stream, packed(ONE))
        talk.tail(stream)

    async with beside_another(say, streams) as (_, client):
        assert await read(client) == [EVENT]


async def test_what_nobody_asked_for_is_refused_until_it_is_too_much() -> None:
    async def say(talk: Talk, stream: int) -> None:
        talk.head(stream)
        for pushed in range(2, 2 * client_connection.MOST_PUSHED + 2, 2):
            talk.transport.write(pushes(stream, pushed, b""))
        talk.body(stream, packed(ONE))
        await go.wait()
        talk.transport.write(pushes(stream, 2 * client_connection.MOST_PUSHED + 2, b""))

    class Listening(Talk):
        def data_received(self, data: bytes) -> None:
            answers.extend(data)
            super().data_received(data)

    answers, go = bytearray(), asyncio.Event()
    async with told(say) as (peer, client):
        peer.talk = Listening
        events = client.events("SendStreamingMessage", asking("x"))
        await anext(events)
        for pushed in (2, 2 * client_connection.MOST_PUSHED):
            refused = b"\0\0\4\3\0" + pushed.to_bytes(4, "big") + b"\0\0\0\7"
            await until(lambda frame=refused: frame in answers)  # type: ignore[misc]
        go.set()
        fault = await failure(anext(events))
        assert type(fault) is errors.InternalError and "nobody has asked for" in fault.message


def block(*headers: tuple[bytes, bytes]) -> bytes:
    """Headers as they are sent, by who remembers none."""
    return b"".join(b"\0" + string(name) + string(value) for name, value in headers)


ANSWER = block((b":status", b"200"), (b"content-type", b"application/grpc"))
DATA, HEADERS, WINDOW = 0, 1, 8

STRAY: dict[str, tuple[int, int, int, bytes]] = {
    "headers after the end": (HEADERS, 5, 0, block((b"grpc-status", b"5"))),
    "data after the end": (DATA, 0, 0, packed(ONE)),
    "headers of nobody": (HEADERS, 5, 100, ANSWER),
    "headers of the server's own": (HEADERS, 5, 1, ANSWER),
    "data of nobody": (DATA, 0, 100, packed(ONE)),
    "data of the server's own": (DATA, 0, 1, packed(ONE)),
    "room for nobody": (WINDOW, 0, 100, b"\0\0\0\1"),
    "room for the server's own": (WINDOW, 0, 1, b"\0\0\0\1"),
    "a reset of nobody": (3, 0, 100, bytes(4)),
}
"""Frames of streams that are over, or were never begun: kind, flags, how far from that of the call, and the rest."""


@BOTH
@pytest.mark.parametrize("name", STRAY)
async def test_what_comes_of_no_stream_that_is_open_means_nothing(name: str, streams: str) -> None:
    async def say(talk: Talk, stream: int) -> None:
        await good(talk, stream)
        kind, flags, apart, rest = STRAY[name]
        talk.raw(kind, flags, stream + apart, rest)

    async with beside_another(say, streams) as (_, client):
        assert await read(client) == [EVENT]
        assert await read(client) == [EVENT]


@BOTH
async def test_headers_that_come_too_late_are_remembered_for_later_ones(streams: str) -> None:
    async def say(talk: Talk, stream: int) -> None:
        await good(talk, stream)
        talk.raw(HEADERS, 5, stream, b"\x40" + string(b"grpc-message") + string(b"no such task"))

    async def refers(talk: Talk, stream: int) -> None:
        talk.raw(HEADERS, 5, stream, ANSWER + block((b"grpc-status", b"5")) + b"\xbe")  # the latest of all

    async with told(say, streams) as (peer, client):
        assert await read(client) == [EVENT]
        peer.answer = refers
        assert (await failure(read(client))).message == "no such task"
    assert len(peer.talks) == 1


BROKEN: dict[str, list[tuple[int, int, bytes]]] = {
    "data before headers": [(DATA, 0, packed(ONE))],
    "data alone": [(DATA, 1, packed(ONE))],
    "an interim answer that is all": [(HEADERS, 5, block((b":status", b"103")))],
    "an interim answer too late": [(HEADERS, 4, ANSWER), (HEADERS, 4, block((b":status", b"103")))],
    "trailers that are not the end": [(HEADERS, 4, ANSWER), (HEADERS, 4, block((b"grpc-status", b"0")))],
    "a stream that waits for itself": [(2, 0, b"\0\0\0\3\1")],
}
"""Frames that a stream may not have: kind, flags, and the rest."""


@pytest.mark.parametrize("name", BROKEN)
async def test_a_frame_that_a_stream_may_not_have_ends_it_and_no_other(name: str) -> None:
    async def say(talk: Talk, stream: int) -> None:
        for _ in range(2):
            for kind, flags, rest in BROKEN[name]:
                talk.raw(kind, flags, stream, rest)

    async with beside_another(say, "h2") as (peer, client):
        fault = await failure(read(client))
        assert type(fault) is errors.InternalError and "breaks the rules of HTTP/2" in fault.message
        await until(lambda: peer.resets[:1] == [1])
        peer.answer = good
        assert await read(client) == [EVENT]


async def test_more_than_has_room_on_a_stream_ends_it_and_the_room_of_all_is_given_back() -> None:
    async def say(talk: Talk, stream: int) -> None:
        talk.head(stream)
        for _ in range(2 * client_connection.WINDOW_OF_ALL // 100_000):
            talk.raw(DATA, 0, stream, b"\0\0\x40\0\0" + bytes(99_995))
            await asyncio.sleep(0)

    async with beside_another(say, "h2") as (peer, client):
        events = client.events("SendStreamingMessage", asking("x"))
        assert "breaks the rules of HTTP/2" in (await failure(anext(events))).message
        peer.answer = good
        assert await read(client) == [EVENT]


@pytest.mark.parametrize(
    ("kind", "flags", "rest"),
    [(9, 4, ANSWER), (HEADERS, 5, b"\xff" * 9)],
    ids=["headers that follow none", "headers that cannot be read"],
)
async def test_what_two_ends_cannot_agree_on_any_more_ends_all(kind: int, flags: int, rest: bytes) -> None:
    async def say(talk: Talk, stream: int) -> None:
        talk.raw(kind, flags, stream, rest)

    async with told(begins(packed(ONE))) as (peer, client):
        events = client.events("SendStreamingMessage", asking("x"))
        await anext(events)
        peer.answer = say
        for fault in (await failure(read(client)), await failure(anext(events))):
            assert type(fault) is errors.InternalError and "breaks the rules of HTTP/2" in fault.message


async def test_headers_without_end_are_no_answer() -> None:
    async with told(ends(b"x", b"y" * client_connection.MOST_HEADERS)) as (_, client):
        assert type(await failure(read(client))) is errors.InternalError


@BOTH
@pytest.mark.parametrize("details", ["////", "CAUSAwoBYQ"])
async def test_details_of_an_error_that_are_broken_are_as_good_as_none(details: str, streams: str) -> None:
    async with told(heads(*HEAD, ("grpc-status", "5"), ("grpc-status-details-bin", details)), streams) as (_, client):
        assert type(await failure(read(client))) is errors.NotFoundError


async def test_a_ping_that_comes_with_a_good_bye_is_answered() -> None:
    async def leaves(talk: Talk, stream: int) -> None:
        talk.head(stream)
        talk.body(stream, packed(ONE))
        ping, goaway = (8, 6, bytes(8)), (8, 7, stream.to_bytes(4, "big") + bytes(4))
        for size, kind, said in (ping, goaway):
            frames.extend(size.to_bytes(3, "big") + bytes([kind, 0]) + bytes(4) + said)
        talk.transport.write(frames)

    frames = bytearray()
    answers = []
    async with told(leaves) as (peer, client):
        events = client.events("SendStreamingMessage", asking("x"))
        await anext(events)
        talk, heard = peer.talks[0], peer.talks[0].data_received

        def listen(data: bytes) -> None:
            answers.append(data)
            heard(data)

        talk.data_received = listen  # type: ignore[method-assign]
        await until(lambda: any(data[3:5] == b"\x06\x01" for data in answers))
        await events.aclose()


@BOTH
async def test_a_server_may_take_back_room_that_it_gave(streams: str) -> None:
    async def narrows(talk: Talk, stream: int) -> None:
        await until(lambda: len(talk.asked[stream]) == 65_535)
        for window in (10, 1_000_000):
            talk.h2.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: window})
            talk.h2.increment_flow_control_window(1_000_000)
            talk.flush()
            await asyncio.sleep(0.05)

    async with told(good, streams) as (peer, client):
        peer.reads, peer.early = False, narrows
        async with asyncio.timeout(PATIENCE):
            assert [event async for event in client.events("SendStreamingMessage", asking("x" * 300_000))] == [EVENT]
    assert len(peer.bodies[0]) > 300_000


async def test_an_answer_before_the_end_of_a_request_makes_room_for_the_next_on_the_same_connection() -> None:
    async with told(good) as (peer, client):
        peer.settings = {SettingCodes.MAX_CONCURRENT_STREAMS: 1}
        peer.reads = False
        peer.early = heads(*HEAD, ("grpc-status", "8"))

        async def asks() -> errors.A2AError:
            return await failure(anext(client.events("SendStreamingMessage", asking("x" * 100_000))))

        faults = await asyncio.wait_for(asyncio.gather(*(asks() for _ in range(20))), PATIENCE)
        assert {type(fault) for fault in faults} == {errors.ResourceExhaustedError}
    assert len(peer.talks) == 1


async def test_a_server_that_says_good_bye_at_once_takes_no_calls() -> None:
    class Leaving(Talk):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            super().connection_made(transport)
            self.goaway(0)

    async with told(good, retries=None) as (peer, client):
        peer.talk = Leaving
        for _ in range(3):
            assert type(await failure(asyncio.wait_for(read(client), PATIENCE))) is errors.UnavailableError
        assert len(peer.talks) <= 15
        peer.talk = Talk
        await asyncio.sleep(client_http2.PAUSE)
        assert await read(client) == [EVENT]


@BOTH
@pytest.mark.parametrize("seconds", [60.0, 99_999.0, 100_000.0, 10_000_000.0])
async def test_a_deadline_has_eight_digits_at_most(seconds: float, streams: str) -> None:
    async with told(begins(packed(ONE)), streams) as (peer, client):
        events = client.events("SendStreamingMessage", asking("x"), headers={"grpc-timeout": f"{seconds * 1000:.0f}m"})
        await anext(events)
        number, unit = int(peer.seen[0]["grpc-timeout"][:-1]), peer.seen[0]["grpc-timeout"][-1]
        assert number < 10**8
        assert 0.9 < number * {"m": 0.001, "S": 1, "M": 60, "H": 3600}[unit] / seconds < 1.1
        await events.aclose()


async def test_a_server_that_offers_to_remember_all_headers_is_told_no_more_than_others() -> None:
    class Remembering(Talk):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            self.h2.decoder.max_allowed_table_size = 2**31
            super().connection_made(transport)

    async with told(good) as (peer, client):
        peer.talk, peer.settings = Remembering, {SettingCodes.HEADER_TABLE_SIZE: 2**31}
        for number in range(60):
            await read(client, headers={"authorization": f"Bearer {number}" + "x" * 1000})
        (connection,) = client.wire._begin.__self__._left  # type: ignore[attr-defined]
        assert connection._h2.encoder.header_table_size <= client_connection.LARGEST_TABLE


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_a_name_with_an_address_that_is_dead_is_reached_at_another(loop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    dead, full = socket.create_server(("127.0.0.1", 0), backlog=0), []
    for _ in range(4):  # beyond what waits there, nobody is answered
        full.append(socket.socket())
        full[-1].setblocking(False)
        full[-1].connect_ex(dead.getsockname())

    async def tried() -> None:
        peer = Peer(good)
        async with peer.listening():
            addresses[:] = [dead.getsockname(), ("127.0.0.1", int(peer.address.rpartition(":")[2]))]
            http2 = client_http2.Http2("localhost:50051", None)
            reading = await asyncio.wait_for(http2.call("/a/b", [], b"", None), 5.0)
            assert await reading.messages() == [ONE]
            reading.close()
            await http2.close()

    real: Any = client_http2.start_connection  # type: ignore[attr-defined]

    async def found(_: Any, **told: Any) -> socket.socket:
        return await real([(socket.AF_INET, socket.SOCK_STREAM, 6, "", address) for address in addresses], **told)

    addresses: list[Any] = []
    monkeypatch.setattr(client_http2, "start_connection", found)
    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(tried())
    for each in (dead, *full):
        each.close()


@pytest.mark.parametrize(
    ("kind", "ident"), [(0, 1), (2, 1), (4, 0), (6, 0), (8, 0), (0xFA, 1), (0, 101), (3, 101), (8, 101)]
)
async def test_a_server_that_only_keeps_its_reader_busy_is_left(kind: int, ident: int) -> None:
    said = {2: b"\0\0\0\3\0", 3: bytes(4), 6: bytes(8), 8: b"\0\0\0\1"}.get(kind, b"")

    async def floods(talk: Talk, stream: int) -> None:
        talk.head(stream)
        frame = bytes([0, 0, len(said), kind, 0]) + ident.to_bytes(4, "big") + said
        talk.transport.pause_reading()
        while not talk.transport.is_closing():
            talk.transport.write(frame * 5_000)
            await asyncio.sleep(0.001)

    async with told(floods) as (_, client):
        assert type(await failure(asyncio.wait_for(read(client), PATIENCE))) is errors.InternalError


async def test_a_client_leaves_a_server_over_tls_that_says_no_good_bye_as_fast_as_in_the_clear(
    files: Path,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def stands_still(talk: Talk, stream: int) -> None:
        await begins(packed(ONE))(talk, stream)
        talk.transport.pause_reading()

    for module in (client_connection, client_http2):
        monkeypatch.setattr(module, "LAST_WORDS", 2 * PATIENCE)
    peer = Peer(stands_still)
    async with peer.listening(context(files)) as address:
        told: dict[str, Any] = {"tls": Tls(str(files / "ca.pem")), "channel": Channel(streams="h2")}
        async with Client(f"grpcs://{address}", timeout=PATIENCE, retries=None, **told) as client:
            assert await anext(client.events("SendStreamingMessage", asking("x"))) == EVENT
            await asyncio.wait_for(client.close(), PATIENCE / 4)  # TLS itself waits for half a minute
        peer.talks[0].transport.resume_reading()
        await until(lambda: peer.talks[0].left)


async def test_a_connection_whose_server_does_not_read_is_left_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_connection, "LAST_WORDS", 0.05)

    async def unruly(talk: Talk, stream: int) -> None:
        talk.transport.pause_reading()
        talk.raw(4, 0, 0, b"\0\4\x7f\xff\xff\xff")
        talk.raw(8, 0, 0, (1 << 30).to_bytes(4, "big"))
        await asyncio.sleep(0.3)
        talk.raw(8, 0, stream, b"xx")

    async with told(good) as (peer, client):
        peer.early = unruly
        asked = asyncio.create_task(failure(anext(client.events("SendStreamingMessage", asking("x" * 20_000_000)))))
        assert type(await asyncio.wait_for(asked, PATIENCE)) is errors.InternalError
        await until(lambda: not client.wire._begin.__self__._left)  # type: ignore[attr-defined]
