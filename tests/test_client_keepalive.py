"""When a client that reads streams by h2 tries a quiet connection, and when it gives it up: by a clock that the test
turns on."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from a2a_grpc import client_auth, client_connection
from a2a_grpc.errors import UnavailableError
from tests.fronts import PATIENCE, asking, eventually, failure
from tests.http2_peers import Peer, packed
from tests.proxies import proxy
from tests.test_client_http2 import BOTH, EVENT, ONE, begins, calling

KEEPALIVE = 10.0
SETTINGS = bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
PING = bytes([0, 0, 8, 6, 0, 0, 0, 0, 0]) + b"a2a-grpc"
PONG = bytes([0, 0, 8, 6, 1, 0, 0, 0, 0]) + b"a2a-grpc"
NEWS = bytes([0, 0, 8, 6, 1, 0, 0, 0, 0]) + b"whatever"


class Clock:
    """Time, and what is to happen later."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.later: list[tuple[float, Callable[..., None], tuple[Any, ...], list[bool]]] = []

    def time(self) -> float:
        return self.now

    def call_later(self, seconds: float, does: Callable[..., None], *args: Any) -> Any:
        off = [False]
        self.later.append((self.now + seconds, does, args, off))
        return type("Timer", (), {"cancel": lambda _: off.__setitem__(0, True)})()

    def turn(self, seconds: float) -> None:
        """Let so much time pass."""
        end = self.now + seconds
        while due := [each for each in self.later if each[0] <= end and not each[3][0]]:
            first = min(due, key=lambda each: each[0])
            self.later.remove(first)
            self.now = max(self.now, first[0])
            first[1](*first[2])
        self.now = end


class Line(asyncio.Transport):
    """What was said, and when: pings, and the end."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.clock, self.pings, self.aborted = clock, list[float](), 0.0

    def write(self, data: Any) -> None:
        self.pings += [self.clock.now] * bytes(data).count(PING)

    def is_closing(self) -> bool:
        return self.aborted > 0

    def get_write_buffer_size(self) -> int:
        return 0

    def abort(self) -> None:
        self.aborted = self.aborted or self.clock.now


def connected() -> tuple[Any, Clock, Line]:
    clock = Clock()
    made: Any = client_connection.Connection("http", "x:1", KEEPALIVE)
    made._loop, line = clock, Line(clock)
    made.connection_made(line)
    made.data_received(SETTINGS)
    return made, clock, line


PING_SECONDS = client_auth.PING_TIMEOUT_MS / 1000


@pytest.mark.parametrize("phase", [0.0, 0.1, 5.0, 9.9, 10.0, 10.1, 17.0, 29.9])
async def test_a_peer_that_vanished_is_noticed_once_its_silence_and_a_ping_were_waited_for(phase: float) -> None:
    made, clock, line = connected()
    reading = made.begin("/a/b", [], None)
    for _ in range(int(phase * 10)):
        clock.turn(0.1)
        made.data_received(NEWS)
    last = clock.now
    line.pings.clear()
    clock.turn(KEEPALIVE + PING_SECONDS + 1.0)
    assert line.pings == [pytest.approx(last + KEEPALIVE)]
    assert line.aborted == pytest.approx(last + KEEPALIVE + PING_SECONDS)
    with pytest.raises(Exception, match="ping was not answered"):
        await reading.messages()


async def test_a_quiet_peer_that_answers_is_tried_once_in_so_many_seconds() -> None:
    made, clock, line = connected()
    reading = made.begin("/a/b", [], None)
    begun, answered = clock.now, 0
    while clock.now < begun + 100.0:
        clock.turn(0.1)
        if len(line.pings) > answered:
            answered += 1
            made.data_received(PONG)
    gaps = [after - before for before, after in zip([begun, *line.pings], line.pings, strict=False)]
    assert 9 <= len(line.pings) <= 10 and min(gaps) > 0.99 * KEEPALIVE and not line.aborted
    reading.close()
    clock.turn(100.0)
    assert len(line.pings) == answered  # nobody waits for anything


async def test_anything_that_comes_answers_a_ping() -> None:
    made, clock, line = connected()
    reading = made.begin("/a/b", [], None)
    clock.turn(KEEPALIVE + 1.0)
    made.data_received(SETTINGS)
    clock.turn(KEEPALIVE + PING_SECONDS - 2.0)
    assert not line.aborted
    reading.close()


async def test_a_stream_on_a_connection_that_died_unused_is_not_waited_for_longer() -> None:
    made, clock, line = connected()
    clock.turn(1_003.0)
    reading = made.begin("/a/b", [], None)
    begun = clock.now
    clock.turn(KEEPALIVE + PING_SECONDS + 1.0)
    assert line.aborted <= begun + KEEPALIVE + PING_SECONDS
    with pytest.raises(Exception, match="ping was not answered"):
        await reading.messages()


@BOTH
async def test_a_connection_through_which_nothing_comes_any_more_ends_its_streams(
    streams: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_auth, "PING_TIMEOUT_MS", 200)
    peer = Peer(begins(packed(ONE)))
    async with (
        peer.listening() as address,
        proxy(address) as between,
        calling(between.address, streams, channel={"keepalive": 0.2}) as client,
    ):
        events = [client.events("SendStreamingMessage", asking("x")) for _ in range(3)]
        assert [await anext(each) for each in events] == [EVENT] * 3
        between.freeze()
        faults = await asyncio.wait_for(asyncio.gather(*(failure(anext(each)) for each in events)), PATIENCE)
        assert {type(fault) for fault in faults} == {UnavailableError}

        async def there() -> bool:
            with suppress(UnavailableError):  # grpcio may still give out the dead one
                return await anext(client.events("SendStreamingMessage", asking("x"))) == EVENT
            return False

        await eventually(there)
        assert between.accepted >= 2
