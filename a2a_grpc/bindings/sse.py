"""Event streams as bytes, both ends: the framing, the pump behind a streaming answer, and a parser for clients.

Laws: what an event stream looks like on HTTP is said here and nowhere else (SSE-01 to SSE-06); nothing here knows what
an event holds, which wire asked or which host carries the bytes. One task drives the servicer's generator from its
first step to its last, so time limits and context variables inside it mean what they say. A reader is owed at most
`WINDOW` bytes and one event; past that the generator waits (STREAM-06).
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from typing import Any, Final, NamedTuple

from a2a_grpc.errors import InvalidAgentResponseError

HEADERS: Final = {
    "content-type": "text/event-stream",
    "cache-control": "no-cache",
    "x-accel-buffering": "no",
}
"""The headers of every event stream (SSE-05, BL-37)."""

HEARTBEAT: Final = b":\n"
"""What a silent stream carries: a comment line inside the next event's block, because a comment in a block of its own
breaks deployed readers (BL-36)."""

WINDOW: Final = 65_536
"""Bytes that may wait for a reader before the generator has to wait too."""

LIMIT: Final = 64 * 1024 * 1024
"""Bytes of the largest event that `Parser` takes by default."""

log = logging.getLogger("a2a_grpc")


def encode(data: bytes, ident: int | None = None) -> bytes:
    """One event: an `id:` line when a number is given, one `data: ` line, an empty line. data holds no line break."""
    return b"data: %b\n\n" % data if ident is None else b"id: %d\ndata: %b\n\n" % (ident, data)


def fault(data: bytes) -> bytes:
    """An event of the name `error`, by which deployed REST clients tell a failure from an answer."""
    return b"event: error\ndata: %b\n\n" % data


async def once(chunk: bytes) -> AsyncGenerator[bytes, None]:
    """A stream of a single chunk."""
    yield chunk


class EventStream:
    """The chunks of a streaming answer: an async iterator of bytes over a servicer's events.

    events: the servicer's generator; it is closed when the stream ends, whoever ends it (BL-35).
    frames: the bytes of one event, maybe none. finish: the bytes to say at the regular end, maybe none.
    fault: the bytes that tell of an exception in-band, as the last thing on the stream (BL-21, STREAM-11).
    heartbeat: seconds of silence after which `HEARTBEAT` is sent, 0 for never. A stream that is silent for so long from
    the start is opened by it: proxies must not cut it, and a later error is then told in-band.
    Call `started` first; then iterate; then `aclose`, always. Events that wait together come as one chunk.
    """

    __slots__ = (
        "_begun",
        "_chunks",
        "_due",
        "_early",
        "_heartbeat",
        "_loop",
        "_over",
        "_reader",
        "_room",
        "_size",
        "_task",
        "_timer",
    )

    def __init__(
        self,
        events: AsyncGenerator[Any, None],
        frames: Callable[[Any], bytes],
        finish: Callable[[], bytes],
        fault: Callable[[BaseException], bytes],
        heartbeat: float = 0,
    ) -> None:
        self._chunks: list[bytes] = []
        self._size = 0
        self._begun = self._over = False
        self._early: BaseException | None = None
        self._reader: asyncio.Future[bool] | None = None
        self._room: asyncio.Future[bool] | None = None
        self._heartbeat = heartbeat
        self._due = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self._task = self._loop.create_task(self._pump(events, frames, finish, fault))

    async def started(self) -> None:
        """Wait until the first event or the end is known, at most until a heartbeat is due. Raises what the generator
        raised before its first event."""
        try:
            while not (self._begun or self._over):
                if await self._arrival():
                    self._put(HEARTBEAT)
            if self._early is not None:
                raise self._early
        except BaseException:
            await self.aclose()
            raise

    def __aiter__(self) -> "EventStream":
        return self

    async def __anext__(self) -> bytes:
        while not self._chunks:
            if self._over:
                raise StopAsyncIteration
            if await self._arrival():
                return HEARTBEAT
        chunk = self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
        self._chunks.clear()
        self._size = 0
        _settle(self._room, False)
        return chunk

    async def aclose(self) -> None:
        """End the stream from the reader's side: the servicer's generator is closed when this returns."""
        if not self._over:
            self._over = True
            self._task.cancel()
        if self._timer is not None:
            self._timer.cancel()
        await asyncio.wait((self._task,))

    async def _arrival(self) -> bool:
        """Wait for a chunk or the end; True if a heartbeat is due before either."""
        self._reader = self._loop.create_future()
        if self._heartbeat:
            self._due = self._loop.time() + self._heartbeat
            if self._timer is None:
                self._timer = self._loop.call_at(self._due, self._look)
        try:
            return await self._reader and not (self._chunks or self._over)
        finally:
            self._reader = None

    def _look(self) -> None:
        """Wake a reader that has waited for a heartbeat's time. One timer serves the whole stream, not one a wait."""
        self._timer = None
        if self._loop.time() >= self._due:
            _settle(self._reader, True)
        else:
            self._timer = self._loop.call_at(self._due, self._look)

    async def _pump(
        self,
        events: AsyncGenerator[Any, None],
        frames: Callable[[Any], bytes],
        finish: Callable[[], bytes],
        fault: Callable[[BaseException], bytes],
    ) -> None:
        try:
            async for event in events:
                self._put(frames(event))
                del event  # the next one may be long in coming
                if self._size > WINDOW:
                    self._room = self._loop.create_future()
                    await self._room
            self._put(finish())
        except (Exception, asyncio.CancelledError) as cause:
            # A CancelledError that is not the reader's leaving is a failure inside (BL-29).
            if self._over:
                if not isinstance(cause, asyncio.CancelledError):
                    log.warning("a stream failed when its reader had left", exc_info=cause)
            elif self._begun:
                self._put(fault(cause))
            else:
                self._early = cause
        finally:
            self._over = True
            _settle(self._reader, False)
            try:
                await events.aclose()
            except Exception:
                log.exception("closing the events of a stream failed")

    def _put(self, chunk: bytes) -> None:
        if chunk:
            self._begun = True
            self._chunks.append(chunk)
            self._size += len(chunk)
            _settle(self._reader, False)


def _settle(waiter: "asyncio.Future[bool] | None", value: bool) -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(value)


class Event(NamedTuple):
    """One event as a reader gets it: its data, the last `id` seen ("" for none), and its `event` name ("" mostly)."""

    data: bytes
    id: str
    name: str


class Parser:
    """Turns the bytes of an event stream, cut anywhere, into events (SSE-02).

    Lines may end in LF, CRLF or CR; data lines are joined with LF; comments and unknown fields are skipped; a block
    without data, or without its final empty line, is no event. limit: bytes of the largest event, default `LIMIT`;
    past it `feed` raises InvalidAgentResponseError.
    """

    __slots__ = ("_after_cr", "_data", "_fresh", "_limit", "_name", "_partial", "_size", "last_id")

    def __init__(self, limit: int = LIMIT) -> None:
        self.last_id = ""
        self._limit = limit
        self._name = ""
        self._data: list[bytes] = []
        self._partial: list[bytes] = []
        self._size = 0
        self._fresh = True
        self._after_cr = False

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that these bytes complete, in order."""
        if self._after_cr and chunk:
            self._after_cr = False
            chunk = chunk.removeprefix(b"\n")
        if not chunk:
            return []
        self._after_cr = chunk.endswith(b"\r")
        lines = chunk.splitlines()
        rest = b"" if self._after_cr or chunk.endswith(b"\n") else lines.pop()
        events: list[Event] = []
        for line in lines:
            if self._partial:
                held = b"".join(self._partial)
                self._partial.clear()
                self._size -= len(held)
                line = held + line
            self._line(line, events)
        if rest:
            self._partial.append(rest)
            self._grow(len(rest))
        return events

    def _line(self, line: bytes, events: list[Event]) -> None:
        if self._fresh:
            self._fresh = False
            line = line.removeprefix(b"\xef\xbb\xbf")
        if not line:
            if self._data:
                events.append(Event(b"\n".join(self._data), self.last_id, self._name))
            self._data.clear()
            self._name, self._size = "", 0
            return
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
            self._grow(len(value) + 1)
        elif field == b"id" and b"\0" not in value:
            self.last_id = value.decode("utf-8", "replace")
        elif field == b"event":
            self._name = value.decode("utf-8", "replace")

    def _grow(self, size: int) -> None:
        self._size += size
        if self._size > self._limit:
            raise InvalidAgentResponseError(f"An event is larger than {self._limit} bytes")
