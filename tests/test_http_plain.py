"""The short way of plain HTTP requests: it answers as aiohttp would, and reads nothing that it should not."""

import asyncio
import contextlib
import contextvars
import re
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest
import uvloop

from a2a_grpc.bindings import http_plain
from a2a_grpc.bindings.http import HttpHost
from a2a_grpc.bindings.jsonrpc import JsonRpc
from a2a_grpc.bindings.mounts import Mount
from a2a_grpc.bindings.rest import Rest
from a2a_grpc.bindings.streams import Streams
from a2a_grpc.bindings.wire import HttpReply
from a2a_grpc.config import Options
from tests.fakes import FakeService
from tests.turns import until

BODY = b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"t"}}'
LAST = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"


def post(*lines: bytes, body: bytes = BODY, first: bytes = b"POST / HTTP/1.1", size: bytes = b"") -> bytes:
    told = (b"content-length: " + (size or b"%d" % len(body)),) if size != b"none" else ()
    head = [first, b"host: localhost", b"a2a-version: 1.0", b"content-type: application/json", *told, *lines]
    return b"\r\n".join([*head, b"", body])


CHUNKED = b"%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY)
PLAIN = {
    "a post": post(),
    "a get": b"GET /tasks/t?historyLength=1 HTTP/1.1\r\nhost: localhost\r\na2a-version: 1.0\r\n\r\n",
    "a card": b"GET /.well-known/agent-card.json HTTP/1.1\r\nhost: localhost\r\n\r\n",
    "a stream": post(body=BODY.replace(b"GetTask", b"SubscribeToTask")),
    "no body": post(body=b"", size=b"none"),
    "odd spaces and letters": post(b"X-Odd:\t  a b \t", first=b"POST /a2a/jsonrpc HTTP/1.1"),
    "an unknown path": b"GET /nothing HTTP/1.1\r\nhost: localhost\r\na2a-version: 1.0\r\n\r\n",
}
OTHER = {
    "two at once": post() + post(),
    "chunks": post(b"transfer-encoding: chunked", body=CHUNKED, size=b"none"),
    "chunks and a length": post(b"transfer-encoding: chunked", body=CHUNKED),
    "two lengths": post(b"content-length: 3"),
    "a signed length": post(size=b"+5"),
    "no number as length": post(size=b"5, 5"),
    "a header twice": post(b"a2a-version: 1.0"),
    "a folded header": post(b"x-long: a", b" b"),
    "a space before the colon": post(b"x-odd : a"),
    "a zero byte": post(b"x-odd: a\0b"),
    "a lone line feed": post(b"x-odd: a\nx-more: b"),
    "text that is not ascii": post(b"x-odd: \xc3\xa4\xff"),
    "an expectation": post(b"expect: 100-continue"),
    "an upgrade": post(b"upgrade: h2c", b"connection: upgrade"),
    "compression": post(b"content-encoding: gzip"),
    "an older version": post(first=b"POST / HTTP/1.0"),
    "another verb": post(first=b"PUT / HTTP/1.1"),
    "no verb at all": post(first=b"post / HTTP/1.1"),
    "a whole address": post(first=b"POST http://other/ HTTP/1.1"),
    "an address without its scheme": post(first=b"POST //other/ HTTP/1.1"),
    "a fragment": post(first=b"POST /#a HTTP/1.1"),
    "a preflight": b"OPTIONS / HTTP/1.1\r\nhost: localhost\r\norigin: o\r\naccess-control-request-method: POST\r\n\r\n",
    "a head": b"HEAD /.well-known/agent-card.json HTTP/1.1\r\nhost: localhost\r\n\r\n",
    "no HTTP": b"\x16\x03\x01hello\r\n\r\n",
    "a body past the limit": post(body=b" " * 3000),
}


def chunked(body: bytes, *lines: bytes) -> bytes:
    return post(*(lines or (b"transfer-encoding: chunked",)), body=body, size=b"none")


SMUGGLED = {
    "a length in hexadecimal": post(size=b"0x3f"),
    "a length with an underscore": post(size=b"6_3"),
    "a length below nothing": post(size=b"-1"),
    "a length without an end": post(size=b"9" * 30),
    "chunks behind a vertical tab": post(b"transfer-encoding:\x0bchunked", body=CHUNKED),
    "chunks behind a tab, and a length": post(b"transfer-encoding:\tchunked", body=CHUNKED),
    "no known coding": post(b"transfer-encoding: xchunked", body=CHUNKED),
    "no coding, and a length": post(b"transfer-encoding: identity"),
    "two codings": chunked(CHUNKED, b"transfer-encoding: chunked", b"transfer-encoding: identity"),
    "chunks that are not the last coding": chunked(CHUNKED, b"transfer-encoding: chunked, identity"),
    "chunks with lone line feeds": chunked(CHUNKED.replace(b"\r", b"")),
    "a chunk below nothing": chunked(b"-" + CHUNKED),
    "a signed chunk": chunked(b"+" + CHUNKED),
    "a chunk in hexadecimal twice": chunked(b"0x" + CHUNKED),
    "a chunk without an end": chunked(b"f" * 20 + CHUNKED),
    "two hosts": post(b"host: other"),
    "no host": b"GET /healthz HTTP/1.1\r\na2a-version: 1.0\r\n\r\n",
    "a lone carriage return": post(b"x-odd: a\rb: c"),
    "lone line feeds": post().replace(b"\r", b""),
    "a long header": post(b"x-odd: " + b"a" * 9000),
    "a header without a name": post(b": a"),
}
ODD = {
    "leading zeros": post(size=b"000%d" % len(BODY)),
    "an underscore in a name": post(b"transfer_encoding: chunked"),
    "a chunk with more to say": chunked(CHUNKED.replace(b"\r", b";a=b\r", 1)),
    "a body that is a request": post(first=b"GET /tasks/t HTTP/1.1", body=LAST),
    "a request in place of a body": b"GET /tasks/t HTTP/1.1\r\nhost: localhost\r\na2a-version: 1.0\r\n\r\n" + post(),
    "a way out of the path": post(first=b"GET /tasks/../inspector HTTP/1.1"),
}

CLOSING = {
    *SMUGGLED,
    "chunks and a length",
    "two lengths",
    "a signed length",
    "no number as length",
    "a folded header",
    "a space before the colon",
    "a zero byte",
    "a lone line feed",
    "no verb at all",
    "no HTTP",
    "an older version",
}
"""After these aiohttp closes the connection by itself."""


@contextlib.asynccontextmanager
async def serving(service: FakeService | None = None, most: int = 2000, **more: Any) -> AsyncIterator[HttpHost]:
    options, service = Options(http="127.0.0.1:0", max_request_bytes=most, **more), service or FakeService()

    async def card(request: Any, origin: str) -> HttpReply:
        return HttpReply(200, {"content-type": "application/json", "etag": '"e"', "content-length": "2"}, b"{}")

    host = HttpHost([Mount("", JsonRpc(service, options), Rest(service, options), card)], options, Streams(10))
    await host.start()
    try:
        yield host
    finally:
        await host.stop(0)


async def exchange(host: HttpHost, pieces: list[bytes]) -> list[tuple[bytes, bytes]]:
    """Status and body of each answer until the connection closes."""
    reader, writer = await asyncio.open_connection(*host.address.split(":"))
    with contextlib.suppress(ConnectionError):
        for piece in pieces:
            writer.write(piece)
            await asyncio.sleep(0.001 if len(pieces) > 1 else 0)
    got = bytearray()
    with contextlib.suppress(ConnectionError):
        while more := await reader.read(65536):
            got += more
    writer.close()
    answers = re.split(rb"(?=HTTP/1\.[01] \d{3} )", bytes(got))[1:]
    return [(answer[9:12], answer.partition(b"\r\n\r\n")[2]) for answer in answers]


async def both(monkeypatch: pytest.MonkeyPatch, pieces: list[bytes]) -> tuple[Any, Any, int]:
    """The answers of the short way, those of aiohttp alone, and how many connections went over to it by themselves."""
    async with serving() as host:
        given: list[object] = []
        make = host._plain.other
        host._plain.other = lambda: given.append(1) or make()  # type: ignore[func-returns-value]
        short = await exchange(host, pieces)
    monkeypatch.setattr(http_plain, "_read_line", lambda line: None)
    async with serving() as host:
        return short, await exchange(host, pieces), len(given)


def run(loop: str, work: Coroutine[Any, Any, Any]) -> Any:
    runners: dict[str, Callable[..., Any]] = {"asyncio": asyncio.run, "uvloop": uvloop.run}
    return runners[loop](work)


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize("name", [*PLAIN, *OTHER, *SMUGGLED, *ODD])
@pytest.mark.requirement("SEC-03")
def test_every_request_is_answered_as_aiohttp_would(monkeypatch: pytest.MonkeyPatch, name: str, loop: str) -> None:
    data = (PLAIN | OTHER | SMUGGLED | ODD)[name]
    short, judge, given = run(loop, both(monkeypatch, [data] if name in CLOSING else [data, LAST]))
    assert short == judge
    assert judge
    assert given or name in PLAIN
    if name in SMUGGLED:
        assert [status for status, _ in judge] == [b"400"]


LARGE_HERE = pytest.mark.parametrize("large", [http_plain.LARGE, 5])
"""Bytes of a rest from which on it is received in one place."""


@LARGE_HERE
@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize("name", PLAIN)
def test_a_body_may_come_in_pieces(monkeypatch: pytest.MonkeyPatch, name: str, loop: str, large: int) -> None:
    monkeypatch.setattr(http_plain, "LARGE", large)
    head, _, body = PLAIN[name].partition(b"\r\n\r\n")
    pieces = [head + b"\r\n\r\n", *(body[at : at + 9] for at in range(0, len(body), 9))]
    short, judge, _ = run(loop, both(monkeypatch, [*pieces, LAST]))
    assert short == judge
    assert run(loop, both(monkeypatch, [*pieces[:-1], pieces[-1] + LAST]))[:2] == (short, judge)


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.requirement("BL-39")
def test_a_large_body_is_what_was_sent_and_the_connection_goes_on(loop: str) -> None:
    """Each as it comes from the system, in whatever pieces: more than there is room for at first."""

    async def work() -> None:
        ids = ["t" * size for size in (3, 3_000_000, 70_000, 400_000, 3)]
        bodies = [BODY.replace(b'"t"', b'"%b"' % ident.encode()) for ident in ids]
        service = FakeService()
        async with serving(service, 2**24) as host:
            reader, writer = await asyncio.open_connection(*host.address.split(":"))
            for body in bodies:
                writer.write(post(body=body))
                head = await reader.readuntil(b"\r\n\r\n")
                await reader.readexactly(int(re.findall(rb"content-length: (\d+)", head)[0]))
            assert len(host._plain.connections) == 1 and not host._aside.connections
            writer.close()
        assert [request.id for request, _ in service.calls] == ids

    run(loop, work())


async def test_who_announces_a_large_body_is_given_no_room_for_what_has_not_come() -> None:
    async with serving(most=2**24) as host:
        _, writer = await asyncio.open_connection(*host.address.split(":"))
        writer.write(post(body=b"[" * 100_000, size=b"16000000"))
        await until(lambda: [one for one in host._plain.connections if one._parts])
        [connection] = host._plain.connections
        await until(lambda: connection._missing == 16_000_000 - 100_000)
        assert sum(map(len, connection._parts)) == 100_000
        writer.write(b"[" * 2_000_000)
        await until(lambda: connection._missing == 16_000_000 - 2_100_000)
        assert [len(part) for part in connection._parts] == [16_000_000]
        writer.transport.abort()
        await until(lambda: not host._plain.connections and not host.running)


async def test_a_connection_with_plain_requests_stays_on_the_short_way() -> None:
    async with serving() as host:
        reader, writer = await asyncio.open_connection(*host.address.split(":"))
        for _ in range(3):
            writer.write(PLAIN["a post"])
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n")
            await reader.readexactly(int(re.findall(rb"content-length: (\d+)", head)[0]))
        assert len(host._plain.connections) == 1 and not host._aside.connections
        writer.close()


async def test_requests_of_a_connection_may_differ_in_their_line_alone_or_in_their_headers_alone() -> None:
    get = b"GET /%b HTTP/1.1\r\nhost: localhost\r\na2a-version: %b\r\n\r\n"
    words = (b"tasks/t", b"1.0"), (b"nothing", b"1.0"), (b"nothing", b"9.9"), (b"tasks/t", b"1.0")
    asked = [get % told for told in words]
    asked.append(PLAIN["a post"])
    alone = []
    async with serving() as host:
        for request in asked:
            alone += (await exchange(host, [request, LAST]))[:1]
        reader, writer = await asyncio.open_connection(*host.address.split(":"))
        together = []
        for request in asked:
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            size = int(re.findall(rb"content-length: (\d+)", head)[0])
            together.append((head[9:12], await reader.readexactly(size)))
        assert len(host._plain.connections) == 1 and not host._aside.connections
        writer.close()
    assert together == alone
    assert len(set(together)) == 4 and together[0] == together[3]


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize(
    ("waits", "counts"), [(0, [1, 1, 2, 1]), (0.001, [1, 2, 1]), (0, [http_plain.AHEAD // 100])], ids=str
)
@pytest.mark.requirement("AUTH-05")
def test_what_a_request_leaves_in_its_context_is_not_seen_by_those_that_follow_on_its_connection(
    loop: str, waits: float, counts: list[int]
) -> None:
    """One after the other, two at once, so many that reading stops, and those that aiohttp answers then."""
    left: contextvars.ContextVar[str] = contextvars.ContextVar("left", default="")
    seen: list[tuple[str, str]] = []

    async def leaves(request: Any, call: Any) -> Any:
        seen.append((request.id, left.get()))
        left.set(request.id)
        await asyncio.sleep(waits)
        return FakeService().answers["GetTask"]

    async def work() -> None:
        service: Any = FakeService()
        service.GetTask = leaves
        async with serving(service) as host:
            _, writer = await asyncio.open_connection(*host.address.split(":"))
            last = 0
            for many in counts:
                numbers = range(last + 1, last + 1 + many)
                writer.write(b"".join(post(body=BODY.replace(b'"t"', b'"%d"' % number)) for number in numbers))
                last += many
                await until(lambda: len(seen) == last)  # noqa: B023 - it is called here
            writer.close()

    run(loop, work())
    assert [int(ident) for ident, _ in seen] == [*range(1, sum(counts) + 1)]
    assert {found for _, found in seen} == {""}


async def test_a_large_answer_is_written_as_a_small_one_is(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving() as host:
        small = await exchange(host, [PLAIN["a post"], LAST])
        monkeypatch.setattr(http_plain, "LARGE", 1)
        assert await exchange(host, [PLAIN["a post"], LAST]) == small


@LARGE_HERE
@pytest.mark.requirement("BL-39")
async def test_a_body_whose_rest_stays_away_is_a_bad_request(monkeypatch: pytest.MonkeyPatch, large: int) -> None:
    monkeypatch.setattr(http_plain, "LARGE", large)
    async with serving(stall_timeout=0.1) as host:
        [(status, body)] = await exchange(host, [post()[:-9]])
    assert status == b"200" and b"The rest of the body did not come" in body


def test_a_header_cannot_become_two() -> None:
    with pytest.raises(ValueError, match="line break"):
        http_plain._head_lines(200, (("etag", "a\r\nset-cookie: b"),))
