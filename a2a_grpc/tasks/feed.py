"""Live views of tasks: what was committed lately, and who waits for more.

Laws: a feed never tells what is not committed. A reader is a position and nothing else: it takes events from the
feed's tail while they are there and from the store when it has fallen behind, so a reader that stalls costs nothing
and holds up nobody (STREAM-06, BL-02). Nothing is lost or doubled between snapshot, log and end (SUB-03, BL-07).
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final, Protocol

from a2a_grpc.errors import A2AError, InternalError, TaskNotFoundError
from a2a_grpc.tasks.bus import Bus
from a2a_grpc.tasks.state import ARTIFACT_UPDATE, MESSAGE, TERMINAL, state_after
from a2a_grpc.tasks.store import Event, Scope, Store, TaskRow
from a2a_grpc.tasks.views import PAGE

TAIL_EVENTS: Final = 256
TAIL_BYTES: Final = 256 * 1024
POLL: Final = 1.0
"""Seconds between looks at tasks that other replicas may write, should their hints be lost."""
POLLED: Final = 1000
"""Tasks that are looked at in one query."""


class Feed:
    """The newest events of one task. `local`: its turn runs in this process, so `sequence` is exact. `hinted`: how far
    the task is as another replica says, which need not be so. `changes`: grows when the task itself is to be looked
    at. `fault`: why there will be no more events, None while there may be."""

    __slots__ = ("_size", "_tail", "_waiting", "changes", "fault", "hinted", "holders", "local", "sequence")

    def __init__(self) -> None:
        self._tail: list[Event] = []
        self._size = 0
        self._waiting: set[asyncio.Future[None]] = set()
        self.sequence = self.hinted = self.changes = 0
        self.local = False
        self.fault: A2AError | None = None
        self.holders = 0

    def publish(self, events: Sequence[Event], size: int) -> None:
        """Take in events that were committed, `size` bytes in all, and wake the readers. Older ones are ignored."""
        if not events or events[-1].sequence <= self.sequence:
            return
        if events[0].sequence != self.sequence + 1:
            self._tail, self._size = [], 0
        self._tail += events
        self._size += size
        self.sequence = events[-1].sequence
        if len(self._tail) > 2 * TAIL_EVENTS or self._size > 2 * TAIL_BYTES:
            self._shorten()
        self._stir()

    def _shorten(self) -> None:
        kept, self._size = len(self._tail), 0
        while kept > len(self._tail) - TAIL_EVENTS and kept and self._size <= TAIL_BYTES:
            kept -= 1
            self._size += len(self._tail[kept].body)
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
            self._stir()

    def passed(self, sequence: int) -> None:
        """Learn that a reader has come so far by the store, which is news to nobody who waits."""
        if sequence > self.sequence and not self.local:
            self.sequence, self._tail, self._size = sequence, [], 0

    @property
    def waits(self) -> bool:
        """Whether somebody waits for what another replica may write."""
        return bool(self._waiting) and not self.local

    def close(self, fault: A2AError) -> None:
        """Let every reader end with `fault` once it has read what there is."""
        self.fault = fault
        self._stir()

    def wake(self) -> None:
        """Let every reader look at the task itself."""
        self.changes += 1
        self._stir()

    def _stir(self) -> None:
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)

    async def wait(self) -> None:
        """Wait for the next `wake`."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.add(waiter)
        try:
            await waiter
        finally:
            self._waiting.discard(waiter)


def _shown(events: Sequence[Event]) -> tuple[Sequence[Event], bool]:
    """What readers get of some events, which end with the terminal one; and whether that is among them."""
    shown = []
    for event in events:
        kind = event.body[:1]
        if kind == MESSAGE:
            continue
        shown.append(event)
        if kind != ARTIFACT_UPDATE and state_after(event) in TERMINAL:
            return shown, True
    return shown, False


class Hold:
    """Keeps the feed of one task, from before its turn begins, so that what is said at once need not be read from the
    store: a context manager; nothing is kept before `take`."""

    __slots__ = ("_feeds", "_key")

    def __init__(self, feeds: "Feeds") -> None:
        self._feeds = feeds
        self._key: tuple[Scope, str] | None = None

    def take(self, scope: Scope, task_id: str) -> None:
        """Keep this feed from now on."""
        if self._key is None:
            self._key = scope, task_id
            self._feeds.hold(scope, task_id)

    def __enter__(self) -> "Hold":
        return self

    def __exit__(self, *_: object) -> None:
        if self._key is not None:
            self._feeds.release(*self._key)


class Source(Protocol):
    """A turn that runs in this process, as feeds know it. `scope`: whose task it works on."""

    scope: Scope

    def show(self, feed: Feed | None) -> None:
        """Tell a feed of the task from now on, None: nobody."""


class Feeds:
    """The feeds of this process, by scope and task; a feed lives while a reader holds it. `holder`: the name of this
    process in leases. `turns`: what runs here, by task; default nothing. `find`: a feed, if somebody
    holds it."""

    def __init__(self, store: Store, bus: Bus, holder: str, turns: Mapping[str, Source] | None = None) -> None:
        self._store = store
        self._bus = bus
        self._holder = holder
        self._turns = turns if turns is not None else {}
        self._feeds: dict[tuple[Scope, str], Feed] = {}
        self.find: Callable[[tuple[Scope, str]], Feed | None] = self._feeds.get
        self._by_task: dict[str, list[Feed]] = {}
        self._fault: A2AError | None = None
        self._poller: asyncio.Task[None] | None = None
        self.readers = 0

    def __len__(self) -> int:
        return len(self._feeds)

    def hold(self, scope: Scope, task_id: str) -> Feed:
        """The feed, made if need be; to be given back with `release`."""
        feed = self._feeds.get((scope, task_id))
        if feed is None:
            feed = self._feeds[scope, task_id] = Feed()
            feed.fault = self._fault
            self._by_task.setdefault(task_id, []).append(feed)
            if (turn := self._source(scope, task_id)) is not None:
                turn.show(feed)
        feed.holders += 1
        return feed

    def ahead(self) -> Hold:
        """For who will read a task that is not known yet."""
        return Hold(self)

    def release(self, scope: Scope, task_id: str) -> None:
        """Give a held feed back."""
        feed = self._feeds[scope, task_id]
        feed.holders -= 1
        if not feed.holders:
            del self._feeds[scope, task_id]
            if (turn := self._source(scope, task_id)) is not None:
                turn.show(None)
            same = self._by_task[task_id]
            same.remove(feed)
            if not same:
                del self._by_task[task_id]

    def _source(self, scope: Scope, task_id: str) -> Source | None:
        turn = self._turns.get(task_id)
        return turn if turn is not None and turn.scope == scope else None

    def hint(self, task_id: str, sequence: int) -> None:
        """Another replica says that a task has moved: let its readers look."""
        for feed in self._by_task.get(task_id, ()):
            if not feed.local and sequence > feed.hinted:
                feed.hinted = sequence
                feed._stir()

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
        if self._poller is not None:
            self._poller.cancel()
            self._poller = None
        for feed in self._feeds.values():
            feed.close(fault)

    async def follow(self, scope: Scope, task_id: str, after: int) -> AsyncIterator[Event]:
        """`batches`, event by event."""
        batches = self.batches(scope, task_id, after)
        try:
            async for events in batches:
                for event in events:
                    yield event
        finally:
            await batches.aclose()

    async def batches(self, scope: Scope, task_id: str, after: int) -> AsyncGenerator[Sequence[Event], None]:
        """Every event with a number above `after`, in order, as it is committed, as many at a time as there are; ends
        after the terminal one.

        What the user said in later turns is passed over (I-08). Raises TaskNotFoundError when there is no such task
        or it is deleted, InternalError when the store failed the task's turn in this process (BL-03), and what the
        feed was closed with.
        """
        feed = self.hold(scope, task_id)
        self.readers += 1
        self._bus.watch(task_id)
        try:
            position = after
            if feed.local and after > feed.sequence:  # or another replica has gone on with the task
                row = await self._store.task(scope, task_id)
                position = min(after, row.sequence if row else 0)
            heard, looked = 0, -1
            while True:
                hint = 0 if feed.local else feed.hinted
                events = feed.after(position)
                if events is None or (not events and hint > max(position, heard)):
                    known = events is None
                    events = await self._store.events(scope, task_id, position, PAGE)
                    if not events:
                        if known:
                            raise TaskNotFoundError
                        heard, looked = hint, -1  # it was not so
                if events:
                    position = events[-1].sequence
                    shown, over = _shown(events)
                    if shown:
                        yield shown
                    if over:
                        return
                    feed.passed(position)
                    looked = -1 if self._store.exclusive else looked
                elif feed.fault is not None:
                    raise feed.fault
                elif feed.local or looked == feed.changes:
                    if self._poller is None and not (feed.local or self._store.exclusive):
                        self._poller = asyncio.create_task(self._poll(), name="poll")
                    await feed.wait()
                else:
                    looked = feed.changes  # what changes while it looks is looked at, too
                    row = await self._look(feed, scope, task_id, position)
                    if row is None:
                        return
                    position = min(position, row.sequence)
                    if row.holder == self._holder:  # a turn that may have broken off, which is told last
                        looked = -1
        finally:
            self.readers -= 1
            self._bus.unwatch(task_id)
            self.release(scope, task_id)

    async def _poll(self) -> None:
        """Look, while somebody waits, whether tasks of other replicas have moved although no hint has come. All at
        once, so that a thousand readers without news cost one small query now and then."""
        try:
            while self.readers:
                await asyncio.sleep(POLL)
                waiting = [(*key, feed) for key, feed in self._feeds.items() if feed.waits]
                for some in (waiting[start : start + POLLED] for start in range(0, len(waiting), POLLED)):
                    places: Mapping[str, tuple[Scope, int]] = {}
                    with suppress(Exception):  # then they look for themselves, and are told
                        places = await self._store.places([task_id for _, task_id, _ in some])
                    for scope, task_id, feed in some:
                        owner, sequence = places.get(task_id, (None, 0))
                        if owner == scope:
                            feed.reach(sequence)
                        else:
                            feed.wake()
        finally:
            if self._poller is asyncio.current_task():
                self._poller = None

    async def _look(self, feed: Feed, scope: Scope, task_id: str, position: int) -> TaskRow | None:
        """Look at the task itself for what follows `position`: its row, None if nothing ever will."""
        row = await self._store.task(scope, task_id)
        if row is None:
            raise TaskNotFoundError
        feed.reach(row.sequence)
        if not (feed.local or feed.fault is not None or position < feed.sequence):
            if row.state in TERMINAL:
                return None
            if row.holder == self._holder:
                raise InternalError("The task broke off; it is settled when its lease runs out")
        return row
