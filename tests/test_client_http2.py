"""Streams over gRPC that are read by h2: from a server that says right and wrong things frame by frame, and from real
ones. Where grpcio is asked, too, both tell the same."""

import asyncio
import base64
import gzip
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from a2a_stubs import google, v1

from a2a_grpc import errors
from a2a_grpc.bindings import sse
from a2a_grpc.call import V1
from a2a_grpc.client import Client
from a2a_grpc.client_auth import Channel
from a2a_grpc.testing import until
from tests.fakes import status
from tests.fronts import PATIENCE, asking, failure
from tests.http2_peers import GOOD, HEAD, Peer, Talk, packed
from tests.test_client_grpc_faults import GARBAGE

EVENT = status(v1.TASK_STATE_WORKING)
ONE = EVENT.SerializeToString()
BOTH = pytest.mark.parametrize("streams", ["h2", "grpcio"])

Say = Callable[[Talk, int], Awaitable[None]]


@asynccontextmanager
async def calling(address: str, streams: str = "h2", **more: Any) -> AsyncIterator[Client]:
    told = {"timeout": PATIENCE, "retries": None, **more}
    async with Client(
        f"grpc://{address}", channel=Channel(streams=streams, **told.pop("channel", {})), **told
    ) as client:
        yield client


@asynccontextmanager
async def told(say: Say, streams: str = "h2", **more: Any) -> AsyncIterator[tuple[Peer, Client]]:
    peer = Peer(say)
    async with peer.listening() as address, calling(address, streams, **more) as client:
        yield peer, client


async def read(client: Client, **more: Any) -> list[v1.StreamResponse]:
    return [event async for event in client.events("SendStreamingMessage", asking("x"), **more)]


async def good(talk: Talk, stream: int) -> None:
    talk.head(stream)
    talk.body(stream, packed(ONE))
    talk.tail(stream)


def holding(go: asyncio.Event) -> Say:
    """Say an event, and the same again when told to go on."""

    async def holds(talk: Talk, stream: int) -> None:
        talk.head(stream)
        talk.body(stream, packed(ONE))
        await go.wait()
        talk.body(stream, packed(ONE))
        talk.tail(stream)

    return holds


# -- what is right


async def in_pieces(talk: Talk, stream: int) -> None:
    talk.head(stream)
    for byte in packed(ONE, ONE):
        talk.body(stream, bytes([byte]))
        await asyncio.sleep(0)
    talk.tail(stream)


async def together(talk: Talk, stream: int) -> None:
    talk.head(stream)
    talk.body(stream, packed(ONE, ONE))
    talk.tail(stream)


async def by_gzip(talk: Talk, stream: int) -> None:
    talk.head(stream, (*HEAD, ("grpc-encoding", "gzip")))
    talk.body(stream, packed(gzip.compress(ONE), flag=1) + packed(ONE))
    talk.tail(stream)


async def by_deflate(talk: Talk, stream: int) -> None:
    talk.head(stream, (*HEAD, ("grpc-encoding", "deflate")))
    talk.body(stream, packed(ONE) + packed(zlib.compress(ONE), flag=1))
    talk.tail(stream)


async def of_another_type(talk: Talk, stream: int) -> None:
    talk.head(stream, ((":status", "200"), ("content-type", "text/plain")))
    talk.body(stream, packed(ONE, ONE))
    talk.tail(stream)


async def leaving(talk: Talk, stream: int) -> None:
    talk.head(stream)
    talk.body(stream, packed(ONE))
    talk.goaway(stream)
    await asyncio.sleep(0.05)
    talk.body(stream, packed(ONE))
    talk.tail(stream)


async def reset_at_the_end(talk: Talk, stream: int) -> None:
    await together(talk, stream)
    talk.raw(3, 0, stream, bytes(4))


async def padded(talk: Talk, stream: int) -> None:
    talk.head(stream)
    talk.body(stream, packed(ONE), pad_length=255)
    talk.body(stream, b"", pad_length=9)
    talk.body(stream, packed(ONE))
    talk.tail(stream)


async def announced(talk: Talk, stream: int) -> None:
    talk.head(stream, ((":status", "103"),))
    await together(talk, stream)


RIGHT: tuple[Say, ...] = (in_pieces, together, by_gzip, by_deflate, of_another_type, leaving, reset_at_the_end)
"""Ways to say two events."""


@pytest.mark.parametrize(
    ("say", "streams"),
    [*((say, streams) for say in RIGHT for streams in ("h2", "grpcio")), (padded, "h2"), (announced, "h2")],
)
async def test_events_arrive_whole_however_they_are_put_into_frames(say: Say, streams: str) -> None:
    async with told(say, streams) as (_, client):
        assert await read(client) == [EVENT, EVENT]


# -- what is wrong


def heads(*headers: tuple[str, str]) -> Say:
    async def say(talk: Talk, stream: int) -> None:
        talk.head(stream, headers, end=True)

    return say


def tails(*trailers: tuple[str, str], body: bytes = packed(ONE)) -> Say:
    async def say(talk: Talk, stream: int) -> None:
        talk.head(stream)
        talk.body(stream, body)
        talk.tail(stream, trailers)

    return say


def resets(code: int) -> Say:
    async def say(talk: Talk, stream: int) -> None:
        talk.head(stream)
        talk.body(stream, packed(ONE))
        talk.raw(3, 0, stream, code.to_bytes(4, "big"))

    return say


def begins(body: bytes, *headers: tuple[str, str]) -> Say:
    """Says a part, and no more."""

    async def say(talk: Talk, stream: int) -> None:
        talk.head(stream, (*HEAD, *headers))
        talk.body(stream, body)

    return say


async def html(talk: Talk, stream: int) -> None:
    talk.head(stream, ((":status", "200"), ("content-type", "text/html")))
    talk.body(stream, b"<html>hello</html>", end_stream=True)


async def unended(talk: Talk, stream: int) -> None:
    talk.head(stream)
    talk.body(stream, packed(ONE), end_stream=True)


async def cut(talk: Talk, stream: int) -> None:
    talk.head(stream)
    talk.body(stream, packed(ONE))
    await asyncio.sleep(0.05)
    talk.transport.abort()


async def hung_up(talk: Talk, stream: int) -> None:
    talk.head(stream)
    talk.body(stream, packed(ONE)[:-2])
    await asyncio.sleep(0.05)
    talk.transport.close()


async def told_off(talk: Talk, stream: int) -> None:
    talk.head(stream)
    talk.goaway(stream, 11)
    await asyncio.sleep(0.05)
    talk.transport.close()


async def unruly(talk: Talk, stream: int) -> None:
    talk.head(stream)
    talk.raw(8, 0, stream, b"xx")


DETAILS = google.Status(code=5, message="no such task")
DETAILS.details.add().Pack(google.ErrorInfo(reason="TASK_NOT_FOUND", domain="a2a-protocol.org"))

FAULTS: dict[str, tuple[Say, type[errors.A2AError]]] = {
    "no trailers": (heads(*HEAD, ("grpc-status", "5"), ("grpc-message", "no%20such%20task%")), errors.NotFoundError),
    "no status": (heads(*HEAD), errors.InternalError),
    "no status, HTTP 401": (heads((":status", "401")), errors.UnauthenticatedError),
    "no status, HTTP 403": (heads((":status", "403")), errors.PermissionDeniedError),
    "no status, HTTP 404": (heads((":status", "404")), errors.MethodNotFoundError),
    "no status, HTTP 500": (heads((":status", "500")), errors.InternalError),
    "no status, HTTP 503": (heads((":status", "503"), ("content-type", "text/html")), errors.UnavailableError),
    "a status, HTTP 503": (heads((":status", "503"), ("grpc-status", "7")), errors.PermissionDeniedError),
    "trailers without a status": (tails(("x", "y")), errors.InternalError),
    "an unknown status": (tails(("grpc-status", "99")), errors.InternalError),
    "a status that is no number": (tails(("grpc-status", "-1")), errors.InternalError),
    "UNAVAILABLE": (tails(("grpc-status", "14"), ("grpc-message", "away")), errors.UnavailableError),
    "CANCELLED": (tails(("grpc-status", "1")), errors.InternalError),
    "no end": (unended, errors.InternalError),
    "a page": (html, errors.InternalError),
    "a page, HTTP 401": (heads((":status", "401"), ("content-type", "text/html")), errors.UnauthenticatedError),
    "a failure within a message": (tails(("grpc-status", "5"), body=packed(ONE)[:-2]), errors.NotFoundError),
    **{f"reset by {code}": (resets(code), errors.InternalError) for code in (0, 1, 2, 3, 5, 8, 13, 99)},
    "reset by REFUSED_STREAM": (resets(7), errors.UnavailableError),
    "reset by ENHANCE_YOUR_CALM": (resets(11), errors.ResourceExhaustedError),
    "reset by INADEQUATE_SECURITY": (resets(12), errors.PermissionDeniedError),
    "cut off": (cut, errors.UnavailableError),
    "hung up within a message": (hung_up, errors.UnavailableError),
    "told off": (told_off, errors.UnavailableError),
    "against the rules": (unruly, errors.InternalError),
    "no message": (tails(*GOOD, body=packed(GARBAGE)), errors.InvalidAgentResponseError),
    "compressed, without a word": (tails(*GOOD, body=packed(gzip.compress(ONE), flag=1)), errors.InternalError),
    "compressed badly": (begins(packed(ONE, flag=1), ("grpc-encoding", "gzip")), errors.InternalError),
    "compressed, and more": (
        begins(packed(gzip.compress(ONE) + b"x", flag=1), ("grpc-encoding", "gzip")),
        errors.InternalError,
    ),
    "compressed otherwise": (begins(packed(ONE, flag=1), ("grpc-encoding", "snappy")), errors.InternalError),
    "too large": (begins(bytes([0, 0xFF, 0, 0, 0]) + ONE), errors.InvalidAgentResponseError),
}


@BOTH
@pytest.mark.parametrize("name", FAULTS)
async def test_a_stream_that_goes_wrong_ends_with_the_same_error_whatever_reads_it(name: str, streams: str) -> None:
    say, kind = FAULTS[name]
    async with told(say, streams) as (_, client):
        assert type(await failure(asyncio.wait_for(read(client), PATIENCE))) is kind


async def test_what_came_before_a_failure_is_told_before_it() -> None:
    for say in (cut, resets(2), tails(("grpc-status", "13")), unended):
        async with told(say) as (_, client):
            events = client.events("SendStreamingMessage", asking("x"))
            assert await anext(events) == EVENT
            await failure(anext(events))


async def test_an_answer_that_ends_in_order_but_within_a_message_is_no_good_end() -> None:
    async with told(tails(*GOOD, body=packed(ONE)[:-2])) as (_, client):
        assert type(await failure(read(client))) is errors.InternalError


@pytest.mark.parametrize("code", [400, 404, 429, 503])
async def test_a_page_of_a_proxy_means_what_its_http_status_says(code: int) -> None:
    async def page(talk: Talk, stream: int) -> None:
        talk.head(stream, ((":status", str(code)), ("content-type", "text/html")))
        talk.body(stream, b"<html>" * 1000, end_stream=True)

    kinds = {400: errors.InternalError, 404: errors.MethodNotFoundError}
    async with told(page) as (_, client):
        assert type(await failure(read(client))) is kinds.get(code, errors.UnavailableError)
        assert type(await failure(read(client))) is kinds.get(code, errors.UnavailableError)


@BOTH
async def test_details_of_an_error_are_read(streams: str) -> None:
    packed_details = base64.b64encode(DETAILS.SerializeToString()).rstrip(b"=").decode()
    say = tails(("grpc-status", "5"), ("grpc-message", "no such task"), ("grpc-status-details-bin", packed_details))
    async with told(say, streams) as (_, client):
        assert type(await failure(read(client))) is errors.TaskNotFoundError


async def test_a_message_may_not_grow_beyond_the_limit_when_it_is_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "LIMIT", 1 << 16)
    bomb = gzip.compress(bytes(1 << 24))
    async with told(begins(packed(bomb, flag=1), ("grpc-encoding", "gzip"))) as (peer, client):
        fault = await failure(read(client))
        assert type(fault) is errors.InvalidAgentResponseError and "larger" in fault.message
        await until(lambda: len(peer.resets) == 1)


# -- what is asked


@BOTH
async def test_a_call_says_what_grpc_says(streams: str) -> None:
    async with told(good, streams) as (peer, client):
        headers = {"authorization": "Bearer x", "own-bin": "bytes", "grpc-timeout": "9000m"}
        await read(client, headers=headers, extensions=("urn:x",))
    (seen,), (body,) = peer.seen, peer.bodies
    limit = seen.pop("grpc-timeout")
    assert 8.0 < (int(limit[:-1]) / {"m": 1000, "S": 1}[limit[-1]]) <= 9.1
    assert seen.pop("user-agent").startswith("grpc-python")
    assert seen == {
        ":method": "POST",
        ":scheme": "http",
        ":authority": peer.address,
        ":path": "/lf.a2a.v1.A2AService/SendStreamingMessage",
        "te": "trailers",
        "content-type": "application/grpc",
        "grpc-accept-encoding": "identity, deflate, gzip",
        "a2a-version": V1,
        "a2a-extensions": "urn:x",
        "authorization": "Bearer x",
        "own-bin": "Ynl0ZXM",
    }
    assert v1.SendMessageRequest.FromString(body[5:]).message.parts[0].text == "x" and body[0] == 0


@BOTH
async def test_a_large_request_goes_as_fast_as_the_server_takes_it(streams: str) -> None:
    async with told(good, streams) as (peer, client):
        text = "x" * 3_000_000
        assert [event async for event in client.events("SendStreamingMessage", asking(text))] == [EVENT]
    assert len(peer.bodies[0]) > len(text)


async def test_a_server_that_answers_before_it_has_read_everything_is_heard() -> None:
    async with told(good) as (peer, client):
        peer.reads, peer.early = False, heads(*HEAD, ("grpc-status", "8"))
        assert type(await failure(client.stream(asking("x" * 3_000_000)).__anext__())) is errors.ResourceExhaustedError
        await until(lambda: peer.resets == [8])


@BOTH
async def test_a_deadline_ends_a_stream_here_and_there(streams: str) -> None:
    async with told(begins(packed(ONE)), streams) as (peer, client):
        events = client.events("SendStreamingMessage", asking("x"), headers={"grpc-timeout": "200m"})
        assert await anext(events) == EVENT
        fault = await failure(anext(events))
        assert type(fault) is errors.InternalError and "Deadline" in fault.message
        await until(lambda: peer.resets == [8])


@BOTH
async def test_a_reader_that_leaves_is_told_to_the_server(streams: str) -> None:
    async with told(begins(packed(ONE)), streams) as (peer, client):
        events = client.events("SendStreamingMessage", asking("x"))
        assert await anext(events) == EVENT
        await events.aclose()
        await until(lambda: peer.resets == [8])
        task = asyncio.create_task(read(client))
        await until(lambda: len(peer.bodies) == 2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: peer.resets == [8, 8])


@BOTH
async def test_silence_gives_up_the_stream_and_its_connection(streams: str) -> None:
    async with told(begins(packed(ONE)), streams, silence=1.0) as (peer, client):
        fault = await failure(read(client))
        assert type(fault) is errors.UnavailableError and "silent" in fault.message
        peer.answer = good
        assert await read(client) == [EVENT]
    assert len(peer.talks) == 2
