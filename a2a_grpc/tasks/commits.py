"""What a turn says, on its way into the store.

Laws: every event of a turn goes through its one queue and is committed in order, as many at a time as have gathered;
nobody sees an event before it is committed. Which function says it, and why, is not known here (see run.py).
"""

import asyncio
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import orjson
from a2a_stubs import v1
from google.protobuf.message import Message

from a2a_grpc.config import Options
from a2a_grpc.errors import InternalError, UnavailableError
from a2a_grpc.protojson_values import struct_of
from a2a_grpc.tasks.bus import Bus
from a2a_grpc.tasks.context import Context, to_json
from a2a_grpc.tasks.feed import Feed, Feeds
from a2a_grpc.tasks.handle import TurnEnded
from a2a_grpc.tasks.start import Start, failure
from a2a_grpc.tasks.state import (
    INTERRUPTED,
    TRANSITIONS,
    ids_of,
    state_name,
    status_ms,
    status_of,
    status_told,
)
from a2a_grpc.tasks.store import Change, Dedupe, Duplicate, Event, LeaseTaken, Snapshot, Store, StoreError
from a2a_grpc.tasks.told import First, Text

log: Final = logging.getLogger("a2a_grpc")

PENDING_EVENTS: Final = 128
PENDING_BYTES: Final = 1024 * 1024
"""What may wait for the store before the function has to wait, too (BL-02)."""
STATE_BYTES: Final = 64 * 1024
"""Largest `task.state`, as JSON."""


@dataclass(slots=True)
class Process:
    """What all work on tasks in a process shares. store, bus, options, feeds: those of the engine; holder: this
    process's name in leases; work: every asyncio task of the process's own."""

    store: Store
    bus: Bus
    options: Options
    feeds: Feeds
    holder: str
    work: set[asyncio.Task[Any]] = field(default_factory=set)

    def spawn(self, work: Any, name: str) -> asyncio.Task[Any]:
        """Start a coroutine that belongs to the process."""
        task: asyncio.Task[Any] = asyncio.get_running_loop().create_task(work, name=name)
        self.work.add(task)
        task.add_done_callback(self.work.discard)
        return task


class Commits(ABC):
    """The events of one turn. `outcome` has the task id once the task is stored, the direct Message, or the error
    that kept it from being stored. `durable`: number of the last committed event, `fold` the task up to there;
    `sequence`: of the last one emitted. `ending`: the state that ends the turn, once it is said; `stopped`: why the
    turn broke off. `leased`: when the lease was last renewed, by the monotonic clock. `start`: what the turn begins
    with; `driver`: the asyncio task that may commit in its own name."""

    __slots__ = (  # more attributes than a plain object has at their best
        "_author",
        "_author_state",
        "_batch",
        "_batch_size",
        "_context",
        "_feed",
        "_flusher",
        "_ids",
        "_last_ms",
        "_loop",
        "_opening",
        "_pending",
        "_posts",
        "_process",
        "_says",
        "_sent",
        "_size",
        "_soon",
        "_state",
        "_trace",
        "_waiters",
        "attempt",
        "call",
        "cancel_request",
        "context_id",
        "driver",
        "durable",
        "ending",
        "fold",
        "leased",
        "outcome",
        "request",
        "scope",
        "sequence",
        "stopped",
        "task_id",
        "token",
    )

    driver: asyncio.Task[Any]

    def __init__(self, process: Process, start: Start) -> None:
        self._loop = loop = asyncio.get_running_loop()
        self.scope, self.call, self.request = start.scope, start.call, start.request
        self.task_id, self.context_id, self.attempt = start.task_id, start.context_id, start.attempt
        self.fold = start.fold
        self.token, self.leased = 0, 0.0
        self.durable = self.sequence = start.opening.expected
        self.ending = 0
        self.stopped: Exception | None = None
        self.cancel_request: v1.CancelTaskRequest | None = None
        self.outcome: asyncio.Future[str | v1.Message] = loop.create_future()
        self._process = process
        self._opening: Change | None = start.opening
        self._says = start.says
        self._state = start.fold.state or v1.TASK_STATE_SUBMITTED
        self._last_ms = start.opening.now_ms
        self._author_state = start.author_state
        self._trace = start.trace
        self._ids = b""
        self._author: dict[str, Any] | None = None
        self._context: Context | None = None
        self._pending: list[Event] = []
        self._size = 0
        self._sent: dict[int, Dedupe] = {}
        self._posts: dict[int, int] = {}
        self._waiters: list[tuple[int, asyncio.Future[None]]] = []
        self._flusher: asyncio.Task[Any] | None = None
        self._soon = False
        self._batch: Sequence[Event] = ()  # of the last commit
        self._batch_size = 0
        self._feed = process.feeds.find((self.scope, self.task_id))
        if self._feed is not None:
            self.show(self._feed)

    def show(self, feed: Feed | None) -> None:
        """Tell a feed of the task from now on, of the last commit first; None when nobody reads any more."""
        self._feed = feed
        if feed is not None:
            feed.local = True
            feed.reach(self.durable - len(self._batch))
            feed.publish(self._batch, self._batch_size)

    @property
    def ids(self) -> bytes:
        """The ids of the task as its events have them."""
        if not self._ids:
            self._ids = ids_of(self.task_id, self.context_id)
        return self._ids

    @abstractmethod
    def stop(self, reason: Exception) -> None:
        """Break off (see Turn)."""

    @abstractmethod
    def _leave(self) -> None:
        """The turn is over (see Turn)."""

    @property
    def stored(self) -> bool:
        """Whether the first commit is made: until then others may be faster, and know more of the task."""
        return self._opening is None

    # -- what is stored beside events

    @property
    def author_state(self) -> dict[str, Any]:
        """What the author keeps from turn to turn."""
        if self._author is None:
            self._author = orjson.loads(self._author_state) if self._author_state else {}
        return self._author

    @property
    def context(self) -> Context:
        """The conversation around the task."""
        if self._context is None:
            process, references = self._process, self.request.message.reference_task_ids
            about = self.scope, self.context_id, self.task_id, references, process.options.keep_status_messages
            self._context = Context(process.store, *about, self._check)
        return self._context

    # -- events

    async def _check(self, state: int) -> None:
        """Refuse what comes too late. A function that does not listen still lets others have the loop."""
        if asyncio.get_running_loop() is not self._loop:
            raise RuntimeError("a task belongs to the event loop that runs it: use asyncio.run_coroutine_threadsafe")
        if self.ending or self.stopped or (state and self.cancel_request is not None):
            ended = self.ending or v1.TASK_STATE_CANCELED
            what = "was lost" if self.stopped else f"has ended with {state_name(ended)}"
            await asyncio.sleep(0)
            raise TurnEnded(f"the turn of task {self.task_id} {what}; nothing more can be done in it")
        if state and state not in TRANSITIONS[self._state]:
            raise TurnEnded(f"a task in {state_name(self._state)} cannot become {state_name(state)}")

    def _status(self, state: int, message: v1.Message | None, metadata: Mapping[str, Any] | None) -> Event:
        about = None if metadata is None else struct_of(metadata)
        return status_told(self.sequence + 1, self.ids, state, self._now(), message, about)

    def _now(self) -> int:
        """The time for a new status: never before that of an earlier one."""
        self._last_ms = max(self._process.store.now_ms(), self._last_ms)
        return self._last_ms

    def _open(self) -> None:
        """Say what the turn begins with; whoever comes first to speak does."""
        says, self._says = self._says, None
        for event in says(self.fold, self.ids) if says is not None else ():
            self._emit(event)

    def _emit(self, event: Event, state: int = 0) -> int:
        """Say the next event; state: what it brings the task into, 0 if it leaves that alone or tells it."""
        self.sequence = event.sequence
        self._pending.append(event)
        self._size += len(event.body)
        if event.told is not None:
            state = event.told.state
        if state:
            self._state = state
        return event.sequence

    async def put(self, said: v1.StreamResponse | First | Text) -> None:
        """Emit an event after which the function goes on; it waits here while too much waits for the store."""
        if self.ending or self.stopped or asyncio.get_running_loop() is not self._loop:
            await self._check(0)
        if self._says is not None:
            self._open()
        number = self.sequence + 1
        self._emit(Event(number, said) if isinstance(said, Message) else Event(number, None, said.body, said))
        if self._flush_soon():
            await self._until(self._pending[0].sequence)

    def _finish(self, state: int, message: v1.Message | None, metadata: Mapping[str, Any] | None) -> None:
        if state in INTERRUPTED and self._author is not None:
            author_state = to_json(self._author, "task.state", STATE_BYTES)
        else:
            author_state = self._author_state
        if self._says is not None:
            self._open()
        self._emit(self._status(state, message, metadata))
        self.ending, self._author_state = state, author_state

    async def _until(self, sequence: int) -> None:
        """Wait until an event is committed."""
        if self.durable >= sequence:
            return
        if self.stopped is not None:
            raise TurnEnded(f"the turn of task {self.task_id} was lost") from self.stopped
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append((sequence, waiter))
        await waiter

    def _wake(self) -> None:
        waiting, self._waiters = self._waiters, []
        for sequence, waiter in waiting:
            if waiter.done():
                continue
            if self.durable >= sequence:
                waiter.set_result(None)
            elif self.stopped is not None:
                waiter.set_exception(TurnEnded(f"the turn of task {self.task_id} was lost"))
            else:
                self._waiters.append((sequence, waiter))

    # -- commits

    def _flush_soon(self) -> bool:
        """Commit what is pending, once the function pauses; `_soon` while that is coming anyway. Whether so much waits
        for the store that the function has to, too."""
        if self._flusher is None and not self._soon:
            self._soon = True
            asyncio.get_running_loop().call_soon(self._begin_flush)
        return len(self._pending) > PENDING_EVENTS or self._size > PENDING_BYTES

    def _begin_flush(self) -> None:
        self._soon = False
        if self._flusher is None and self._pending:
            self._flusher = self._process.spawn(self._flush(), f"commit {self.task_id}")

    async def _flush_here(self) -> None:
        """Commit what is pending in the current task, which must be the turn's own; a running flush does it else."""
        if self._flusher is None:
            self._flusher = self.driver
            await self._flush()

    async def _flush(self) -> None:
        try:
            while self._pending:
                await self._commit(self._take_pending())
        except StoreError as refused:
            self.stop(refused)
        except Exception as fault:
            self.stop(self._broken(fault))
        except BaseException:
            self.stop(UnavailableError())
            raise
        finally:
            self._flusher = None

    def _broken(self, fault: BaseException) -> InternalError:
        reference = failure(f"task {self.task_id}: the store failed", fault)
        return InternalError(metadata={"reference": reference})

    def _take_pending(self) -> list[Event]:
        """The next events to commit: all, but at most one of those that carry a dedupe row."""
        batch, self._pending = self._pending, []
        if self._sent:
            count = next(iter(self._sent)) - self.durable
            self._pending = batch[count:]
            del batch[count:]
        return batch

    async def _commit(self, batch: list[Event]) -> None:
        last, size = batch[-1].sequence, self._size
        pending, options = self._pending, self._process.options
        self._size = sum([len(event.body) for event in pending]) if pending else 0
        ends = bool(self.ending) and not pending
        store, opening = self._process.store, self._opening
        change = opening or Change(self.scope, self.task_id, self.durable, 0, token=self.token)
        change.now_ms, change.events = store.now_ms(), batch
        if self._sent:
            change.dedupe = self._sent.pop(last, change.dedupe)
        if self._posts:
            change.posts = {number: at for number, at in self._posts.items() if at <= last}
            self._posts = {number: at for number, at in self._posts.items() if at > last}
        if options.push_notifications:
            change.notify = last
        if self._context is not None:
            change.memory = self._context.memory.take_unsaved()
        self._add_snapshot(change, ends)
        if opening is not None and ends:
            change.trace = self._trace or None
        elif opening is not None:  # from now on, however long the function thought before it said anything
            until = change.now_ms + int(options.lease * 1000)
            change.take = LeaseTaken(self._process.holder, until, self.attempt, self._trace)
            self.leased = time.monotonic()
        try:
            self.token = await store.commit(change)
        except Duplicate:
            if opening is not None:
                raise
            change.dedupe = None
            self.token = await store.commit(change)
        self._opening, self.durable = None, last
        if not ends:
            for event in batch:
                self.fold.apply(event)
        self._batch, self._batch_size = batch, size
        if self._feed is not None:
            self._feed.publish(batch, size)
        self._process.bus.publish(self.task_id, last)
        if not self.outcome.done():
            self.outcome.set_result(self.task_id)
        if ends:
            self._leave()
        if self._waiters:
            self._wake()

    def _add_snapshot(self, change: Change, ends: bool) -> None:
        """The status if it changes; at the end the whole task too, the author's state, and the lease given up: whoever
        sees the question may answer it at once (BL-11)."""
        if not ends:
            for event in reversed(change.events):
                if event.told is not None:
                    state, at_ms = event.told.state, event.told.at_ms
                elif (status := status_of(event.payload)) is not None:
                    state, at_ms = status.state, status_ms(status)
                else:
                    continue
                if state:
                    change.snapshot = Snapshot(state, at_ms)
                    return
            return
        state, fold = self.ending, self.fold
        for event in change.events:
            fold.apply(event)
        change.snapshot = Snapshot(state, self._last_ms, fold.head(), fold.artifacts(), fold.sequence)
        change.release, change.cancel = True, b""
        if state in INTERRUPTED:
            change.author_state = self._author_state
