"""Event streams as bytes: framing, heartbeats, the end in every way there is, and the parser of the client's end."""

import asyncio
import gc
from collections.abc import AsyncIterator

import pytest

from a2a_grpc.bindings import sse
from a2a_grpc.errors import InvalidAgentResponseError, TaskNotFoundError


def stream(events, heartbeat=0.0, finish=b""):
    return sse.EventStream(
        events,
        lambda event: sse.encode(event),
        lambda: finish,
        lambda fault: sse.encode(repr(fault).encode()),
        heartbeat,
    )


async def collect(chunks: AsyncIterator[bytes]) -> list[bytes]:
    return [chunk async for chunk in chunks]


@pytest.mark.requirement("SSE-01", "SSE-03")
async def test_an_event_is_one_data_line_and_an_empty_line_and_the_end_has_no_mark():
    async def events():
        yield b'{"n":1}'
        yield b'{"n":2}'

    found = stream(events())
    await found.started()
    assert b"".join(await collect(found)) == b'data: {"n":1}\n\ndata: {"n":2}\n\n'
    assert sse.encode(b"{}", 7) == b"id: 7\ndata: {}\n\n"


@pytest.mark.requirement("SSE-05", "BL-37")
def test_headers_forbid_caching_and_buffering():
    assert sse.HEADERS == {
        "content-type": "text/event-stream",
        "cache-control": "no-cache",
        "x-accel-buffering": "no",
    }


@pytest.mark.requirement("SSE-04", "BL-36")
async def test_silence_is_filled_with_comment_lines_between_events_only():
    going = asyncio.Event()

    async def events():
        yield b"1"
        await going.wait()
        yield b"2"

    found = stream(events(), heartbeat=0.01)
    await found.started()
    assert await anext(found) == b"data: 1\n\n"
    assert [await anext(found) for _ in range(3)] == [b":\n"] * 3
    going.set()
    rest = await collect(found)
    assert rest[-1] == b"data: 2\n\n" and set(rest[:-1]) <= {b":\n"}


@pytest.mark.requirement("SSE-04", "BL-36", "BL-21")
async def test_a_stream_silent_from_the_start_is_opened_by_a_heartbeat_and_tells_later_errors_in_band():
    going = asyncio.Event()

    async def events():
        await going.wait()
        raise ValueError
        yield b""

    found = stream(events(), heartbeat=0.001)
    await found.started()
    assert await anext(found) == b":\n"
    going.set()
    assert b"ValueError" in (await collect(found))[-1]


@pytest.mark.requirement("BL-20", "RPC-14", "REST-20")
async def test_an_error_before_the_first_event_is_raised_not_streamed():
    closed = []

    async def events():
        try:
            raise TaskNotFoundError
            yield b""
        finally:
            closed.append(True)

    with pytest.raises(TaskNotFoundError):
        await stream(events()).started()
    assert closed


@pytest.mark.requirement("BL-21", "STREAM-11")
async def test_an_error_after_the_first_event_is_the_last_event():
    async def events():
        yield b"1"
        raise ValueError("x")

    found = stream(events(), finish=b"never said")
    await found.started()
    assert b"".join(await collect(found)) == b"data: 1\n\ndata: ValueError('x')\n\n"


@pytest.mark.requirement("BL-29")
async def test_an_inner_cancellation_is_an_error_like_any_other():
    async def events():
        yield b"1"
        raise asyncio.CancelledError

    found = stream(events())
    await found.started()
    assert b"CancelledError" in b"".join(await collect(found))

    async def early():
        raise asyncio.CancelledError
        yield b""

    with pytest.raises(asyncio.CancelledError):
        await stream(early()).started()


@pytest.mark.requirement("SSE-06", "BL-35", "STREAM-04")
@pytest.mark.parametrize("steps", [0, 1])
async def test_a_reader_that_leaves_closes_the_generator(steps):
    closed = []

    async def events():
        try:
            yield b"1"
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            closed.append(True)

    found = stream(events(), heartbeat=10)
    await found.started()
    for _ in range(steps):
        await anext(found)
    await found.aclose()
    assert closed == [True]
    await found.aclose()


async def test_a_failure_after_the_reader_left_is_told_once_in_the_log(caplog):
    async def events():
        yield b"1"
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            raise ValueError("too late")

    found = stream(events())
    await found.started()
    await found.aclose()
    del found
    gc.collect()
    assert [record.message for record in caplog.records] == ["a stream failed when its reader had left"]


@pytest.mark.requirement("SSE-06")
async def test_a_caller_that_gives_up_before_the_first_event_closes_the_generator():
    closed, entered = [], asyncio.Event()

    async def events():
        try:
            entered.set()
            await asyncio.Event().wait()
            yield b""
        finally:
            closed.append(True)

    waiting = asyncio.create_task(stream(events()).started())
    await entered.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert closed


@pytest.mark.requirement("STREAM-06")
async def test_a_reader_that_never_reads_holds_a_bounded_amount():
    made = 0

    async def events():
        nonlocal made
        while True:
            made += 1
            yield b"x" * 10_000

    found = stream(events())
    await found.started()
    for _ in range(50):
        await asyncio.sleep(0)
    assert made < 10
    assert len(await anext(found)) > sse.WINDOW
    await found.aclose()


async def test_one_task_drives_the_generator_so_time_limits_inside_hold():
    async def events():
        async with asyncio.timeout(0.05):
            yield b"1"
            await asyncio.Event().wait()

    found = stream(events())
    await found.started()
    assert b"TimeoutError" in b"".join(await collect(found))


async def test_closing_says_what_is_left_to_say():
    async def events():
        yield b"1"

    found = stream(events(), finish=sse.encode(b"last"))
    await found.started()
    assert b"".join(await collect(found)).endswith(b"data: last\n\n")


STREAM = (
    b"\xef\xbb\xbf: hello\n\n"
    b"id: 4\nevent: message\nretry: 5\ndata: {\ndata:  1}\nwhatever\n\n"
    b"data:no space\r\n\r\n"
    b":\ndata: after a comment\r\rid: 9\n\ndata\n\ndata: never finished"
)
EVENTS = [(b"{\n 1}", "4", "message"), (b"no space", "4", ""), (b"after a comment", "4", ""), (b"", "9", "")]


@pytest.mark.requirement("SSE-02")
@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_the_parser_reads_any_style_in_any_pieces(size):
    parser = sse.Parser()
    pieces = [STREAM[at : at + size] for at in range(0, len(STREAM), size)]
    assert [event for piece in pieces for event in parser.feed(piece)] == EVENTS
    assert parser.last_id == "9"


@pytest.mark.requirement("SSE-02")
def test_the_parser_reads_what_the_server_writes():
    parser = sse.Parser()
    written = sse.encode(b'{"a":"\xc3\xa9"}', 3) + sse.HEARTBEAT + sse.encode(b"{}", 4)
    assert parser.feed(written) == [(b'{"a":"\xc3\xa9"}', "3", ""), (b"{}", "4", "")]


@pytest.mark.parametrize("piece", [b"data: xxxxxxxx\n", b"x", b"data\n", b": x"])
def test_the_parser_holds_a_bounded_amount(piece):
    parser = sse.Parser(limit=1000)
    with pytest.raises(InvalidAgentResponseError):
        for _ in range(1001):
            parser.feed(piece)


def test_the_limit_is_for_one_event_not_for_the_stream():
    parser = sse.Parser(limit=100)
    assert sum(len(parser.feed(b"data: " + b"x" * 90)) + len(parser.feed(b"\n\n")) for _ in range(20)) == 20
