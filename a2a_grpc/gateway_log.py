"""What a gateway keeps of streams that their upstream cannot resume: the latest events, each with a number.

Laws: nothing is known here of wires, callers or operations; who may read is asked elsewhere. A stream is read by a task
of its own, no further ahead of its slowest reader than `AHEAD`, and read on for a while when all of them have left. All
that is kept has one bound in bytes, and what is oldest goes first. Numbers of other streams and runs are never taken
for one's own: each recording has a name by chance, which is a part of them.
"""

import asyncio
import logging
import secrets
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import aclosing
from itertools import islice
from typing import Final

from a2a_stubs import v1

from a2a_grpc.errors import A2AError, InternalError, UnavailableError
from a2a_grpc.tasks.state import TERMINAL

log: Final = logging.getLogger("a2a_grpc.gateway")

Source = AsyncGenerator[v1.StreamResponse, None]

AHEAD: Final = 64
"""Events that are read before the slowest reader has taken them."""

ALONE_SECONDS: Final = 60.0
"""How long a stream without a reader is read on."""

EVENT_BYTES: Final = 500
"""What an event costs in memory beside its own bytes, roughly."""

_PLACES: Final = 22
"""Bits of a number that say which event of its recording it is; the rest, up to the 53 of JSON, are the recording's."""


class Recording:
    """One stream of an upstream, kept as it comes.

    task_id: what it is about, "" while nothing has come. over: whether it has told the end of its task. fault: why it
    has broken off, None if it has not. Made by `Log.record`.
    """

    def __init__(self, kept: "Log", ident: int, source: Source) -> None:
        self._log, self.ident = kept, ident
        self.task_id, self.over, self.ended = "", False, False
        self.fault: A2AError | None = None
        self.events: deque[v1.StreamResponse] = deque()
        self._last = 0
        self._readers: list[deque[v1.StreamResponse]] = []
        self._news, self._room = asyncio.Event(), asyncio.Event()
        self._alone: asyncio.TimerHandle | None = None
        self.task = asyncio.create_task(self._run(source))

    async def read(self, after: int = 0) -> AsyncGenerator[tuple[int, v1.StreamResponse], None]:
        """The events behind a position, each with its number, until the stream has ended or broken off. Raises
        UnavailableError when what comes next is no longer kept."""
        left = self._last - len(self.events)
        if after < left:
            raise UnavailableError(f"events up to {left} are no longer kept")
        if self._alone is not None:
            self._alone.cancel()
        owed = deque(islice(self.events, after - left, None))  # which the reader gets even when the log lets them go
        self._readers.append(owed)
        try:
            while True:
                if owed:
                    event = owed.popleft()
                    self._room.set()
                    after += 1
                    yield self.ident << _PLACES | min(after, (1 << _PLACES) - 1), event
                elif self.ended:
                    return
                else:
                    self._news.clear()
                    await self._news.wait()
        finally:
            self._readers = [reader for reader in self._readers if reader is not owed]
            self._room.set()
            if not self._readers and not self.ended:
                self._alone = asyncio.get_running_loop().call_later(ALONE_SECONDS, self.task.cancel)

    def follows(self, place: int) -> bool:
        """Whether everything after a position is kept."""
        return self._last - len(self.events) <= place <= self._last

    async def _run(self, source: Source) -> None:
        try:
            async with aclosing(source):
                async for event in source:
                    self._take(event)
                    while any(len(owed) >= AHEAD for owed in self._readers):
                        self._room.clear()
                        await self._room.wait()
        except A2AError as fault:
            self.fault = fault
        except asyncio.CancelledError:
            self.fault = UnavailableError("the stream was let go")
        except Exception:
            log.exception("a stream of the upstream failed")
            self.fault = InternalError()
        finally:
            self.ended = True
            self._news.set()
            self._log.settle(self)

    def _take(self, event: v1.StreamResponse) -> None:
        kind = event.WhichOneof("payload")
        if kind == "task":
            self.task_id, self.over = event.task.id, event.task.status.state in TERMINAL
        elif kind == "status_update":
            self.task_id, self.over = event.status_update.task_id, event.status_update.status.state in TERMINAL
        elif kind == "artifact_update":
            self.task_id = event.artifact_update.task_id
        self._last += 1
        self.events.append(event)
        for owed in self._readers:
            owed.append(event)
        self._log.took(self, event.ByteSize() + EVENT_BYTES)
        self._news.set()


class Log:
    """The recordings of an upstream. most: bytes that all of them may have together; the last event is kept anyway."""

    def __init__(self, most: int) -> None:
        self._most, self._bytes = most, 0
        self._order: deque[tuple[Recording, int]] = deque()
        self._recordings: dict[int, Recording] = {}

    def record(self, source: Source) -> Recording:
        """Keep what a stream says from now on."""
        while not (ident := secrets.randbits(53 - _PLACES)) or ident in self._recordings:
            pass
        made = self._recordings[ident] = Recording(self, ident, source)
        return made

    def find(self, number: int, task_id: str) -> tuple[Recording, int] | None:
        """The recording with an event of this number, about this task, and the event's position in it; None when what
        follows it is not kept."""
        found, place = self._recordings.get(number >> _PLACES), number & ((1 << _PLACES) - 1)
        if found is None or found.task_id != task_id or not found.follows(place):
            return None
        return found, place

    def took(self, recording: Recording, size: int) -> None:
        """Count an event, and let go of the oldest for it."""
        self._order.append((recording, size))
        self._bytes += size
        while self._bytes > self._most and len(self._order) > 1:
            oldest, size = self._order.popleft()
            self._bytes -= size
            oldest.events.popleft()
            self.settle(oldest)

    def settle(self, recording: Recording) -> None:
        """Forget a recording of which nothing is left."""
        if recording.ended and not recording.events:
            self._recordings.pop(recording.ident, None)

    async def close(self) -> None:
        """End all recordings and forget them."""
        tasks = [recording.task for recording in self._recordings.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks)
        self._recordings.clear()
        self._order.clear()
        self._bytes = 0
