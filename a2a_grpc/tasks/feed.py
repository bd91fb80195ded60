"""Live views of tasks: what was committed lately, and who waits for more.

Laws: a feed never tells what is not committed. A reader is a position and nothing else: it takes events from the
feed's tail while they are there and from the store when it has fallen behind, so a reader that stalls costs nothing
and holds up nobody (STREAM-06, BL-02). Nothing is lost or doubled between snapshot, log and end (SUB-03, BL-07).
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Final

from a2a_grpc.errors import A2AError, InternalError, TaskNotFoundError
from a2a_grpc.tasks.bus import Bus
from a2a_grpc.tasks.state import TERMINAL, state_of
from a2a_grpc.tasks.store import Event, Scope, Store
from a2a_grpc.tasks.views import PAGE

TAIL_EVENTS: Final = 256
TAIL_BYTES: Final = 256 * 1024
POLL: Final = 1.0
"""Seconds between looks at a task that another replica may write, should its hints be lost."""


class Feed:
    """The newest events of one task. `local`: its turn runs in this process, so `sequence` is exact. `hinted`: how far
    the task is as another replica says, which need not be so. `fault`: why there will be no more events, None while
    there may be."""

    __slots__ = ("_size", "_tail", "_waiting", "fault", "hinted", "holders", "local", "sequence")

    def __init__(self) -> None:
        self._tail: list[Event] = []
        self._size = 0
        self._waiting: set[asyncio.Future[None]] = set()
        self.sequence = self.hinted = 0
        self.local = False
        self.fault: A2AError | None = None
        self.holders = 0

    def publish(self, events: Sequence[Event], size: int) -> None:
        """Take in events that were committed, `size` bytes in all, and wake the readers. Older ones are ignored."""
        if events[-1].sequence <= self.sequence:
            return
        if events[0].sequence != self.sequence + 1:
            self._tail, self._size = [], 0
        self._tail += events
        self._size += size
        self.sequence = events[-1].sequence
        if len(self._tail) > 2 * TAIL_EVENTS or self._size > 2 * TAIL_BYTES:
            self._shorten()
        self.wake()

    def _shorten(self) -> None:
        kept, self._size = len(self._tail), 0
        while kept > len(self._tail) - TAIL_EVENTS and kept and self._size <= TAIL_BYTES:
            kept -= 1
            self._size += self._tail[kept].payload.ByteSize()
        del self._tail[:kept]

    def after(self, position: int) -> Sequence[Event] | None:
        """Events after a position; None when they have to be read from the store."""
        if position >= self.sequence:
            return ()
        behind = self.sequence - position
        return self._tail[-behind:] if behind <= len(self._tail) else None

    def reach(self, sequence: int) -> None:
        """Learn that the store has events up to `sequence`."""
        if sequence > self.sequence:
            self.sequence, self._tail, self._size = sequence, [], 0
            self.wake()

    def close(self, fault: A2AError) -> None:
        """Let every reader end with `fault` once it has read what there is."""
        self.fault = fault
        self.wake()

    def wake(self) -> None:
        """Let every reader look again."""
        for waiter in self._waiting:
            _settle(waiter)

    async def wait(self, timeout: float | None) -> None:
        """Wait for the next `wake`, at most `timeout` seconds."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        timer = loop.call_later(timeout, _settle, waiter) if timeout is not None else None
        self._waiting.add(waiter)
        try:
            await waiter
        finally:
            self._waiting.discard(waiter)
            if timer is not None:
                timer.cancel()


def _settle(waiter: "asyncio.Future[None]") -> None:
    if not waiter.done():
        waiter.set_result(None)


class Feeds:
    """The feeds of this process, by scope and task; a feed lives while a turn or a reader holds it. `holder`: the name
    of this process in leases."""

    def __init__(self, store: Store, bus: Bus, holder: str) -> None:
        self._store = store
        self._bus = bus
        self._holder = holder
        self._feeds: dict[tuple[Scope, str], Feed] = {}
        self._by_task: dict[str, list[Feed]] = {}
        self._fault: A2AError | None = None
        self.readers = 0

    def __len__(self) -> int:
        return len(self._feeds)

    def find(self, scope: Scope, task_id: str) -> Feed | None:
        """The feed if somebody holds it."""
        return self._feeds.get((scope, task_id))

    def hold(self, scope: Scope, task_id: str) -> Feed:
        """The feed, made if need be; to be given back with `release`."""
        feed = self._feeds.get((scope, task_id))
        if feed is None:
            feed = self._feeds[scope, task_id] = Feed()
            feed.fault = self._fault
            self._by_task.setdefault(task_id, []).append(feed)
        feed.holders += 1
        return feed

    def release(self, scope: Scope, task_id: str) -> None:
        """Give a held feed back."""
        feed = self._feeds[scope, task_id]
        feed.holders -= 1
        if not feed.holders:
            del self._feeds[scope, task_id]
            same = self._by_task[task_id]
            same.remove(feed)
            if not same:
                del self._by_task[task_id]

    def hint(self, task_id: str, sequence: int) -> None:
        """Another replica says that a task has moved: let its readers look."""
        for feed in self._by_task.get(task_id, ()):
            if not feed.local and sequence > feed.hinted:
                feed.hinted = sequence
                feed.wake()

    def gone(self, task_id: str) -> None:
        """The task was deleted: let its readers find out."""
        for feed in self._by_task.get(task_id, ()):
            feed.wake()

    def open(self) -> None:
        """Take readers again after a `close`."""
        self._fault = None

    def close(self, fault: A2AError) -> None:
        """Let every reader end with `fault`, now and from now on."""
        self._fault = fault
        for feed in self._feeds.values():
            feed.close(fault)

    async def follow(self, scope: Scope, task_id: str, after: int) -> AsyncIterator[Event]:
        """Every event with a number above `after`, in order, as it is committed; ends after the terminal one.

        What the user said in later turns is passed over (I-08). Raises TaskNotFoundError when there is no such task
        or it is deleted, InternalError when the store failed the task's turn in this process (BL-03), and what the
        feed was closed with.
        """
        feed = self.hold(scope, task_id)
        self.readers += 1
        self._bus.watch(task_id)
        try:
            position = min(after, feed.sequence) if feed.local else after
            heard, looked = 0, False
            while True:
                hint = 0 if feed.local else feed.hinted
                events = feed.after(position)
                if events is None or (not events and hint > max(position, heard)):
                    known = events is None
                    events = await self._store.events(scope, task_id, position, PAGE)
                    if not events:
                        if known:
                            raise TaskNotFoundError
                        heard, looked = hint, False  # it was not so
                for event in events:
                    position = event.sequence
                    kind = event.payload.WhichOneof("payload")
                    if kind == "message":
                        continue
                    yield event
                    if kind != "artifact_update" and state_of(event.payload) in TERMINAL:
                        return
                if events:
                    looked = looked and not self._store.exclusive
                elif feed.fault is not None:
                    raise feed.fault
                elif feed.local or looked:
                    await feed.wait(None if feed.local or self._store.exclusive else POLL)
                    # Woken by a hint, the log is all there is to read; else the task itself may have changed.
                    looked = not feed.local and feed.hinted > max(position, heard)
                else:
                    there = await self._look(feed, scope, task_id, position)
                    if there is None:
                        return
                    position, looked = min(position, there), True
        finally:
            self.readers -= 1
            self._bus.unwatch(task_id)
            self.release(scope, task_id)

    async def _look(self, feed: Feed, scope: Scope, task_id: str, position: int) -> int | None:
        """Look at the task itself for what follows `position`: its newest number, None if nothing ever will."""
        row = await self._store.task(scope, task_id)
        if row is None:
            raise TaskNotFoundError
        feed.reach(row.sequence)
        if not (feed.local or feed.fault is not None or position < feed.sequence):
            if row.state in TERMINAL:
                return None
            if row.holder == self._holder:
                raise InternalError("The task broke off; it is settled when its lease runs out")
        return row.sequence
