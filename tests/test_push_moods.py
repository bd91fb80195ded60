"""Receivers that are slow, broken, cut off, hang, send elsewhere or talk nonsense: what becomes of their messages."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from email.utils import formatdate
from time import time

import pytest

from a2a_grpc.push_guard import Guard
from a2a_grpc.push_hosts import Outcome
from a2a_grpc.push_post import HttpPoster
from tests.receivers import PATIENCE, receiver
from tests.test_push import LOCAL, create, hook, log_of, send, serving

Mood = Callable[[asyncio.StreamWriter], Awaitable[None]]
FINE = b"HTTP/1.1 204 No Content\r\n\r\n"


def says(*pieces: bytes, pause: float = 0.0) -> Mood:
    """Sends some bytes, with pauses between, then closes."""

    async def mood(writer: asyncio.StreamWriter) -> None:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(pause)

    return mood


async def hang(_: asyncio.StreamWriter) -> None:
    await asyncio.sleep(PATIENCE)


async def flood(writer: asyncio.StreamWriter) -> None:
    """An answer without an end."""
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"1000\r\n" + b"x" * 4096 + b"\r\n")
        await writer.drain()


async def long_head(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n")
    while True:
        writer.write(b"X-Y: " + b"z" * 4000 + b"\r\n")
        await writer.drain()


def moved(status: int) -> Mood:
    return says(b"HTTP/1.1 %d Moved\r\nLocation: /elsewhere\r\nConnection: close\r\nContent-Length: 0\r\n\r\n" % status)


AGAIN: dict[str, Mood] = {
    "broken": says(b"HTTP/1.1 500 Broken\r\nContent-Length: 0\r\n\r\n"),
    "cut before it answers": says(),
    "cut in the head": says(b"HTTP/1.1 20"),
    "hanging": hang,
    "hanging in the head": says(b"HTTP/1.1 200 OK\r\nX: ", pause=PATIENCE),
    "no HTTP": says(b"SSH-2.0-OpenSSH_9.2\r\n"),
    "a head without an end": long_head,
    "no modified": says(b"HTTP/1.1 304 Not Modified\r\n\r\n"),
    **{f"redirecting {status}": moved(status) for status in (301, 302, 303, 307, 308)},
}
"""What is a failure: the same notification comes again."""
DONE: dict[str, Mood] = {
    "slow": says(*(FINE[at : at + 1] for at in range(len(FINE))), pause=0.01),
    "an early hint first": says(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", FINE),
    "created": says(b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok"),
    "accepted": says(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"),
    "cut in the body": says(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n", b"a"),
    "an answer without an end": flood,
}
"""What is a success: the next notification comes."""


class Moody:
    """A receiver made by hand. paths: of all requests; numbers: of their notifications; body: of the last."""

    def __init__(self, mood: Mood, times: int) -> None:
        self.mood, self.times = mood, times
        self.paths: list[str] = []
        self.numbers: list[int] = []
        self.body = b""
        self.news = asyncio.Event()

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                self.paths.append(head.split()[1])
                length = re.search(r"(?i)content-length: (\d+)", head)
                self.body = await reader.readexactly(int(length[1]) if length else 0)
                self.numbers += map(int, re.findall(r"(?i)notification-id: \S+\.(\d+)\r", head))
                self.news.set()
                if self.times:
                    self.times -= 1
                    await self.mood(writer)
                    await writer.drain()
                    break
                writer.write(FINE)
                await writer.drain()
            writer.close()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            if not writer.is_closing():
                writer.transport.abort()

    async def until(self, enough: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not enough():
                self.news.clear()
                await self.news.wait()


@asynccontextmanager
async def moody(mood: Mood, times: int = 1) -> AsyncIterator[tuple[Moody, str]]:
    """A receiver that is in a mood for some requests, then fine; and its address."""
    made, tasks = Moody(mood, times), set[asyncio.Task[None]]()

    def taken(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.create_task(made.take(reader, writer)))

    server = await asyncio.start_server(taken, "127.0.0.1", 0)
    try:
        yield made, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/in"
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.parametrize(("name", "mood"), [*AGAIN.items(), *DONE.items()])
@pytest.mark.requirement("PUSH-14", "PUSH-15", "PUSH-16", "PUSH-18", "PUSH-19", "PUSH-21", "PUSH-24")
async def test_a_receiver_in_a_mood_gets_everything_in_order_and_holds_up_nobody(
    name: str, mood: Mood, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("a2a_grpc.push.FIRST_WAIT", 0.1)
    async with (
        moody(mood) as (there, url),
        receiver() as well,
        serving(push_timeout=1.0) as server,
    ):
        task = await send(server, "ask", hook(url))
        await create(server, task.id, hook(f"{well.url}/well", "well"))
        await there.until(lambda: bool(there.numbers))
        await send(server, "count 10 0", task_id=task.id)
        log = await log_of(server, task.id)
        await well.until(lambda: len(well.got) == len([number for number in log if number > 2]))
        again = [1] if name in AGAIN else []
        await there.until(lambda: len(there.numbers) >= len(again) + len(log))
        assert there.numbers == [*again, *log]
        assert set(there.paths) == {"/in"}


@asynccontextmanager
async def poster() -> AsyncIterator[HttpPoster]:
    made = HttpPoster(Guard(LOCAL), 1.0)
    made.open()
    try:
        yield made
    finally:
        await made.close()


def answer(status: int, *lines: str) -> Mood:
    head = "".join(f"{line}\r\n" for line in (f"HTTP/1.1 {status} Word", "Content-Length: 0", *lines, ""))
    return says(head.encode())


@pytest.mark.parametrize(
    "status", [200, 201, 202, 204, 206, 226, 299, 300, 304, 400, 401, 403, 404, 410, 413, 418, 429, 500, 503, 599]
)
@pytest.mark.requirement("PUSH-24", "PUSH-15")
async def test_2xx_alone_is_success_and_tells_whose_fault_it_was(status: int) -> None:
    async with moody(answer(status)) as (_, url), poster() as made:
        outcome = await made.post(url, {}, b"{}")
    assert outcome.delivered == (200 <= status < 300)
    assert outcome.status == status
    if not outcome.delivered:
        ill = status >= 500 or status == 429
        assert outcome == Outcome(False, f"status {status}", gone=status == 410, ill=ill, status=status)


@pytest.mark.parametrize(
    ("told", "least", "most"),
    [
        ("7", 7, 7),
        ("0", 0, 0),
        (str(10**9), 86_400, 86_400),
        ("-3", 0, 0),
        ("1.5", 0, 0),
        ("soon", 0, 0),
        ("", 0, 0),
        ("{date}", 50, 61),
        ("{past}", 0, 0),
        ("Sun, 99 Nov 2099 99:99:99 GMT", 0, 0),
    ],
)
@pytest.mark.requirement("PUSH-15", "SEC-03")
async def test_a_receiver_says_when_to_come_back_in_seconds_or_by_a_date(told: str, least: int, most: int) -> None:
    text = told.format(date=formatdate(time() + 60, usegmt=True), past=formatdate(time() - 60, usegmt=True))
    async with moody(answer(503, f"Retry-After: {text}")) as (_, url), poster() as made:
        outcome = await made.post(url, {}, b"{}")
    assert least <= outcome.wait <= most


@pytest.mark.requirement("PUSH-14", "BL-39")
async def test_a_large_notification_arrives_whole() -> None:
    body = bytes(range(256)) * 20_000
    async with moody(hang, 0) as (there, url), poster() as made:
        assert (await made.post(url, {"Content-Type": "x/y"}, body)).delivered
        assert there.body == body


@pytest.mark.requirement("PUSH-15")
async def test_the_log_tells_each_cause_for_which_a_webhook_fails(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("a2a_grpc.push.FIRST_WAIT", 0.05)
    monkeypatch.setattr("a2a_grpc.push.LONGEST_WAIT", 0.05)
    moods = iter([500, 500, 403, 403, 403, 500])

    async def mood(writer: asyncio.StreamWriter) -> None:
        await answer(next(moods), "Connection: close")(writer)

    async with moody(mood, 6) as (there, url), serving() as server:
        await send(server, "ask", hook(url))
        await there.until(lambda: len(there.paths) > 6)
    told = [record.getMessage() for record in caplog.records if "failed and is tried again" in record.getMessage()]
    assert [line.rpartition(": ")[2] for line in told] == ["status 500", "status 403", "status 500"]
