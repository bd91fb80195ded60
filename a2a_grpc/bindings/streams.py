"""What is under way on the hosts of a server: running calls, and open streams with their limit and their end.

Laws: what gRPC and HTTP hosts share about running work lives here and knows neither of them. A stream is run by one
task; it is ended by cancelling that task, and the reason stays on the stream for the host to report. One timer looks
after all streams, so a stream costs nothing while it flows (STREAM-06, BL-02, BL-35).
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Final

from a2a_grpc.errors import A2AError, ResourceExhaustedError, UnavailableError

_LOG: Final = logging.getLogger("a2a_grpc")
_LONGEST_INTERVAL: Final = 1.0

LAST_WORDS: Final = 1.0
"""Seconds that calls and streams have, when the grace is over, to tell whoever reads them so, and that connections then
have to hand over what was said. Only readers that do not read take them."""


class Stream:
    """One open stream, made by `Streams.open`; a context manager that closes it.

    error: why this side ended the stream; None while it has not. waiting_since: the `time.monotonic()` at which the
    write began that is being awaited, 0.0 for none; set by `write`, or by hosts that spare themselves its call.
    """

    __slots__ = ("_gone", "_label", "_others", "_stall_timeout", "_task", "error", "waiting_since")

    def __init__(
        self,
        others: "set[Stream]",
        task: asyncio.Task[object],
        label: str,
        stall_timeout: float,
        gone: Callable[[], bool] | None,
    ) -> None:
        self._others = others
        self._task = task
        self._label = label
        self._stall_timeout = stall_timeout
        self._gone = gone
        self.waiting_since = 0.0
        self.error: A2AError | None = None

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """The stream is open no more."""
        self._others.discard(self)

    async def write(self, pending: Awaitable[object]) -> None:
        """Await a write; while it lasts the reader counts as stalling."""
        self.waiting_since = time.monotonic()
        await pending
        self.waiting_since = 0.0

    def end(self, error: A2AError) -> None:
        """Cancel the stream's task with `error` as the reason. The first reason stays."""
        if self.error is None:
            self.error = error
            self._task.cancel()

    def look(self, now: float) -> bool:
        """End the stream if its reader has stalled for too long, which is the answer, or has gone; now:
        `time.monotonic()`."""
        if self.error is not None:
            return False
        if self.waiting_since and now - self.waiting_since >= self._stall_timeout:
            _LOG.warning("stream %s: nothing was read for %g s, cut off", self._label, self._stall_timeout)
            text = f"Nothing was read for {self._stall_timeout:g} s; the stream was cut off"
            self.end(ResourceExhaustedError(text))
            return True
        if self._gone is not None and self._gone():
            self.end(UnavailableError("The reader has gone"))
        return False


class Streams:
    """All open streams of a server, over every wire; used on one event loop.

    limit: most streams at a time, the option `max_streams`.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._interval = _LONGEST_INTERVAL
        self._open: set[Stream] = set()
        self._timer: asyncio.TimerHandle | None = None
        self.dropped = 0
        """How many streams were cut off because nothing was read."""
        self.refused = 0
        """How many were not opened because the limit was reached."""

    def __len__(self) -> int:
        return len(self._open)

    def waiting(self) -> list[tuple[str, float]]:
        """For each open stream its label, and for how many seconds its reader has not read; 0 while it does."""
        now = time.monotonic()
        return [(stream._label, now - since if (since := stream.waiting_since) else 0.0) for stream in [*self._open]]

    def open(self, label: str, stall_timeout: float, gone: Callable[[], bool] | None = None) -> Stream:
        """A stream that the current task runs, open until it is closed.

        label: its name in the log. stall_timeout: seconds that a write may wait for the reader before the stream is
        ended with ResourceExhaustedError, noticed with a quarter of it, at most a second, of delay.
        gone: tells whether the reader has left; None (default) when the host hears of it otherwise.
        Raises ResourceExhaustedError, naming the limit, when it is reached.
        """
        self.check_room()
        task = asyncio.current_task()
        assert task is not None
        stream = Stream(self._open, task, label, stall_timeout, gone)
        self._open.add(stream)
        self._interval = min(self._interval, stall_timeout / 4)
        if self._timer is None:
            self._timer = task.get_loop().call_later(self._interval, self._look)
        return stream

    def check_room(self) -> None:
        """Raise ResourceExhaustedError, naming the limit, when no more streams may be opened."""
        if len(self._open) >= self._limit:
            self.refused += 1
            raise ResourceExhaustedError(f"The limit of {self._limit} open streams is reached", retry_after=1)

    def end(self, error: A2AError) -> None:
        """End every open stream with `error`."""
        for stream in [*self._open]:
            stream.end(error)

    def _look(self) -> None:
        now = time.monotonic()
        for stream in [*self._open]:
            self.dropped += stream.look(now)
        again = asyncio.get_running_loop().call_later
        self._timer = again(self._interval, self._look) if self._open else None


class Running:
    """How many calls a host has in hand, and the moment when there are none."""

    __slots__ = ("_count", "_idle")

    def __init__(self) -> None:
        self._count = 0
        self._idle: asyncio.Future[None] | None = None

    def __len__(self) -> int:
        return self._count

    def enter(self) -> None:
        """A call begins."""
        self._count += 1

    def leave(self) -> None:
        """A call is over, however it went."""
        self._count -= 1
        if self._idle is not None and not self._count:
            self._idle.set_result(None)
            self._idle = None

    async def idle(self, timeout: float) -> None:
        """Wait until no call is running, at most `timeout` seconds."""
        if self._count:
            self._idle = self._idle or asyncio.get_running_loop().create_future()
            await asyncio.wait((self._idle,), timeout=timeout)
