"""One turn: an author's function at work on a task, and the events that come of it.

Laws: every event of a turn goes through its one queue and is committed in order, as many at a time as have gathered;
nobody sees an event before it is committed. The turn ends exactly once: with the event that says so, or by losing the
task (another replica has it, the store fails). Whichever of a cancel and an end comes first here, wins (BL-09).
The turn belongs to the engine, never to a connection (STREAM-05, BL-01).
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import orjson
from a2a_stubs import v1

from a2a_grpc.agent import Agent, Failed, Rejected
from a2a_grpc.config import Options
from a2a_grpc.errors import A2AError, InternalError, UnavailableError
from a2a_grpc.protojson_values import struct_of
from a2a_grpc.tasks.bus import Bus
from a2a_grpc.tasks.context import Context, to_json
from a2a_grpc.tasks.feed import Feeds
from a2a_grpc.tasks.handle import Inbox, TaskHandle, TurnEnded
from a2a_grpc.tasks.invoke import invoke
from a2a_grpc.tasks.parts import agent_message
from a2a_grpc.tasks.start import Start, failure, now_ms
from a2a_grpc.tasks.state import (
    INTERRUPTED,
    TRANSITIONS,
    state_name,
    status_event,
    status_ms,
    status_of,
)
from a2a_grpc.tasks.store import Change, Dedupe, Duplicate, Event, Snapshot, Store, StoreError

log: Final = logging.getLogger("a2a_grpc")

PENDING_EVENTS: Final = 128
PENDING_BYTES: Final = 1024 * 1024
"""What may wait for the store before the function has to wait, too (BL-02)."""
STATE_BYTES: Final = 64 * 1024
"""Largest `task.state`, as JSON."""


@dataclass(slots=True)
class Runtime:
    """What all turns of a process share. store, bus, options, feeds: those of the engine; holder: this process's name
    in leases; turns: those not yet over, by task; work: every asyncio task of the process's own; strays: functions
    that go on although their turn was broken off."""

    store: Store
    bus: Bus
    options: Options
    feeds: Feeds
    holder: str
    turns: dict[str, "Turn"] = field(default_factory=dict)
    work: set[asyncio.Task[Any]] = field(default_factory=set)
    strays: set[object] = field(default_factory=set)

    def spawn(self, work: Any, name: str) -> asyncio.Task[Any]:
        """Start a coroutine that belongs to the process."""
        task: asyncio.Task[Any] = asyncio.get_running_loop().create_task(work, name=name)
        self.work.add(task)
        task.add_done_callback(self.work.discard)
        return task


class Turn:
    """See the module. Futures: `outcome` has the task id once the task is stored, the direct Message, or the error
    that kept it from being stored; `over` is set when the turn is over. `fault`: why it broke off, None if it ended
    well or another replica has it. `durable`: number of the last committed event, `fold` the task up to there."""

    def __init__(self, runtime: Runtime, agent: Agent, start: Start) -> None:
        self._loop = loop = asyncio.get_running_loop()
        self.agent, self.scope, self.call, self.request = agent, start.scope, start.call, start.request
        self.task_id, self.context_id, self.attempt = start.task_id, start.context_id, start.attempt
        self.answering = start.answering
        self.fold = start.fold
        self.token = 0
        self.durable = self.sequence = start.opening.expected
        self.ending = 0
        self.stopped: Exception | None = None
        self.fault: A2AError | None = None
        self.cancel_request: v1.CancelTaskRequest | None = None
        self.outcome: asyncio.Future[str | v1.Message] = loop.create_future()
        self.over: asyncio.Future[None] = loop.create_future()
        self._runtime = runtime
        self._opening: Change | None = start.opening
        self._payloads = start.payloads
        self._state = start.fold.state or v1.TASK_STATE_SUBMITTED
        opened = [status for payload in start.payloads if (status := status_of(payload)) is not None]
        self._last_ms = status_ms(opened[-1]) if opened else 0
        self._author_state = start.author_state
        self._pending: list[Event] = []
        self._size = 0
        self._sent: dict[int, Dedupe] = {}
        self._waiters: list[tuple[int, asyncio.Future[None]]] = []
        self._flusher: asyncio.Task[Any] | None = None
        self._soon = False
        self._canceler: asyncio.Task[None] | None = None
        self._inbox: Inbox | None = None
        self._feed = runtime.feeds.hold(self.scope, self.task_id)
        self._feed.reach(self.sequence)
        self._feed.local = True
        runtime.turns[self.task_id] = self
        self._driver = runtime.spawn(self._drive(), f"{agent.name}, task {self.task_id}")

    # -- what the engine does with it

    @property
    def accepting(self) -> bool:
        """Whether the turn is under way: stored, not ending, not canceled."""
        return self._opening is None and not (self.ending or self.stopped or self.cancel_request is not None)

    @property
    def takes_messages(self) -> bool:
        """Whether the function reads its inbox."""
        return self._inbox is not None

    async def post(self, message: v1.Message, dedupe: Dedupe | None) -> None:
        """Hand a further message to the running function; raises TurnEnded if it can no longer be stored."""
        if self._inbox is None or not self.accepting:
            raise TurnEnded("the turn takes no more messages")
        sequence = self._emit(v1.StreamResponse(message=message))
        if dedupe is not None:
            self._sent[sequence] = dedupe
        self._inbox.put(message)
        self._flush_soon()
        await self._until(sequence)

    async def cancel(self, request: v1.CancelTaskRequest) -> None:
        """Stop the function, at the latest after the grace, and settle the task as CANCELED, unless it ends first."""
        if self._canceler is None:
            self._canceler = self._runtime.spawn(self._cancel(request), f"cancel {self.task_id}")
        await asyncio.shield(self._canceler)

    async def _cancel(self, request: v1.CancelTaskRequest) -> None:
        await asyncio.wait((self.outcome,))
        if not self.ending and not self.stopped:
            self.cancel_request = request
            self._driver.cancel()
            await asyncio.wait((self._driver,), timeout=self._runtime.options.cancel_grace)
        if not self.ending and not self.stopped:
            if not self._driver.done():
                log.warning("task %s: the function of %r goes on after its cancel", self.task_id, self.agent.name)
                self._runtime.strays.add(self._driver)
            self._finish(v1.TASK_STATE_CANCELED, None, None)
        await asyncio.shield(self.over)

    async def settle(self, text: str) -> None:
        """End the turn as FAILED with a public text and stop the function; nothing if it is over."""
        if not self.ending and not self.stopped:
            await asyncio.wait((self.outcome,), timeout=self._runtime.options.cancel_grace)
        if not self.ending and not self.stopped and self.outcome.done():
            self._finish(v1.TASK_STATE_FAILED, agent_message(text, self.context_id, self.task_id), None)
            self._driver.cancel()
        elif not self.ending:
            self.stop(UnavailableError())
        await asyncio.wait((self.over,), timeout=self._runtime.options.cancel_grace + 1)

    def stop(self, reason: Exception) -> None:
        """Break off: whatever is not committed is dropped. An A2AError is what everybody who waits gets; anything
        else means that the task lives on elsewhere."""
        if self.over.done():
            return
        self.stopped = reason
        if self._opening is None and self.sequence > self.durable:
            log.warning("task %s: %d late events dropped: %r", self.task_id, self.sequence - self.durable, reason)
        self._pending.clear()
        if isinstance(reason, A2AError):
            self.fault = reason
            self._feed.close(reason)
        if not self.outcome.done():
            self.outcome.set_exception(reason)
            self.outcome.exception()  # nobody may be waiting
        self._leave()
        if self._driver is not asyncio.current_task():
            self._driver.cancel()

    # -- what the handle needs (see Acts)

    @property
    def history(self) -> Sequence[v1.Message]:
        """What was said so far."""
        return self.fold.history or (self.request.message,)

    @cached_property
    def author_state(self) -> dict[str, Any]:
        """What the author keeps from turn to turn."""
        found: dict[str, Any] = orjson.loads(self._author_state) if self._author_state else {}
        return found

    @cached_property
    def context(self) -> Context:
        """The conversation around the task."""
        references = self.request.message.reference_task_ids
        keep = self._runtime.options.keep_status_messages
        return Context(self._runtime.store, self.scope, self.context_id, self.task_id, references, keep, self._check)

    def open_inbox(self) -> Inbox:
        """Declare that the function takes messages."""
        if self._inbox is None:
            self._inbox = Inbox()
            if self.over.done():
                self._inbox.close()
        return self._inbox

    async def work(self, message: v1.Message | None, metadata: Mapping[str, Any] | None) -> None:
        """Emit WORKING."""
        await self._check(v1.TASK_STATE_WORKING)
        await self._act(self._status(v1.TASK_STATE_WORKING, message, metadata))

    async def put_artifact(self, payload: v1.StreamResponse) -> None:
        """Emit an artifact event."""
        await self._check(0)
        await self._act(payload)

    async def end(self, state: int, message: v1.Message | None, metadata: Mapping[str, Any] | None) -> None:
        """End the turn and return once that is stored."""
        await self._check(state)
        self._finish(state, message, metadata)
        await self._until(self.sequence)

    async def reply(self, message: v1.Message) -> None:
        """Answer without a task, or complete the one there is."""
        await self._check(v1.TASK_STATE_COMPLETED)
        opening = self._opening
        if opening is None or not self._payloads:
            log.warning(
                "%r replied when its task %s was made already, so the reply became its last word; reply before anything"
                " else, and if the function calls something that replies, decorate it with @agent.handle(replies=True)",
                self.agent.name,
                self.task_id,
            )
            await self.end(v1.TASK_STATE_COMPLETED, message, None)
            return
        message.ClearField("task_id")
        asked = v1.Message()
        asked.CopyFrom(self.request.message)
        asked.ClearField("task_id")
        exchange = [asked.SerializeToString(), message.SerializeToString()]
        dedupe = opening.dedupe and opening.dedupe._replace(task_id="", reply=exchange[1])
        memory = self.context.memory.take_unsaved() if "context" in self.__dict__ else {}
        self.ending = v1.TASK_STATE_COMPLETED
        try:
            await self._runtime.store.remember_reply(self.scope, self.context_id, exchange, memory, dedupe, now_ms())
        except Duplicate as first:
            self.stop(first)
            raise TurnEnded("the message was answered before") from None
        except BaseException as fault:
            self.stop(self._broken(fault))
            raise
        self.outcome.set_result(message)
        self._leave()

    # -- the function

    async def _drive(self) -> None:
        try:
            handler = self.agent.handler
            if self._opening is not None and (self._opening.expected or not handler.replies):
                self._open()
                await self._flush_here()
                await self._until(self.sequence)
            asyncio.get_running_loop().call_soon(self._announce)
            handle = TaskHandle(self)
            result = await invoke(handler, handle, self._runtime.strays)
            if result is not None:
                await handle.add_artifact(result)
            if self._running:
                self._finish(v1.TASK_STATE_COMPLETED, None, None)
                await self._flush_here()
        except BaseException as fault:
            self._conclude(fault)
        finally:
            self._runtime.strays.discard(self._driver)
            if self._running:
                self.stop(InternalError())

    @property
    def _running(self) -> bool:
        return not (self.ending or self.stopped) and self.cancel_request is None

    def _conclude(self, fault: BaseException) -> None:
        """The function raised: say so, if there is still something to say."""
        if isinstance(fault, KeyboardInterrupt):
            raise fault
        if not self._running:
            if not isinstance(fault, asyncio.CancelledError) and not self.stopped:
                log.warning(
                    "task %s: %r failed after its turn had ended", self.task_id, self.agent.name, exc_info=fault
                )
            return
        try:
            public = isinstance(fault, Failed | Rejected)
            message = agent_message(str(fault) or None, self.context_id, self.task_id) if public else None
        except Exception as unfit:  # what the error says is no text
            public, fault = False, unfit
        if not public:
            reference = failure(f"task {self.task_id}: {self.agent.name!r} raised", fault)
            message = agent_message(f"The agent failed. Reference: {reference}", self.context_id, self.task_id)
        rejected = public and isinstance(fault, Rejected)
        self._finish(v1.TASK_STATE_REJECTED if rejected else v1.TASK_STATE_FAILED, message, None)

    def _announce(self) -> None:
        """Called when the function has begun to wait: a function that works before it says anything is WORKING."""
        if self._running and self._opening is None and self._state == v1.TASK_STATE_SUBMITTED:
            self._emit(self._status(v1.TASK_STATE_WORKING, None, None))
            self._flush_soon()

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

    def _status(self, state: int, message: v1.Message | None, metadata: Mapping[str, Any] | None) -> v1.StreamResponse:
        payload = status_event(self.task_id, self.context_id, state, self._now(), message)
        if metadata is not None:
            payload.status_update.metadata.CopyFrom(struct_of(metadata))
        return payload

    def _now(self) -> int:
        """The time for a new status: never before that of an earlier one."""
        self._last_ms = max(now_ms(), self._last_ms)
        return self._last_ms

    def _open(self) -> None:
        payloads, self._payloads = self._payloads, ()
        for payload in payloads:
            self._emit(payload)

    def _emit(self, payload: v1.StreamResponse) -> int:
        self.sequence += 1
        self._pending.append(Event(self.sequence, payload))
        self._size += payload.ByteSize()
        if (status := status_of(payload)) is not None:
            self._state = status.state
        return self.sequence

    async def _act(self, payload: v1.StreamResponse) -> None:
        self._open()
        self._emit(payload)
        self._flush_soon()
        if len(self._pending) > PENDING_EVENTS or self._size > PENDING_BYTES:
            await self._until(self._pending[0].sequence)

    def _finish(self, state: int, message: v1.Message | None, metadata: Mapping[str, Any] | None) -> None:
        payload = self._status(state, message, metadata)
        if state in INTERRUPTED and "author_state" in self.__dict__:
            self._author_state = to_json(self.author_state, "task.state", STATE_BYTES)
        self._open()
        self._emit(payload)
        self.ending = state
        self._flush_soon()

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

    def _flush_soon(self) -> None:
        """Commit what is pending, once the function pauses."""
        if self._flusher is None and not self._soon:
            self._soon = True
            asyncio.get_running_loop().call_soon(self._begin_flush)

    def _begin_flush(self) -> None:
        self._soon = False
        if self._flusher is None and self._pending:
            self._flusher = self._runtime.spawn(self._flush(), f"commit {self.task_id}")

    async def _flush_here(self) -> None:
        """Commit what is pending in the current task, which must be the turn's own; a running flush does it else."""
        if self._flusher is None:
            self._flusher = self._driver
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
        count = next(iter(self._sent)) - self.durable if self._sent else len(self._pending)
        batch = self._pending[:count]
        del self._pending[:count]
        return batch

    async def _commit(self, batch: list[Event]) -> None:
        last, size = batch[-1].sequence, self._size
        self._size = sum(event.payload.ByteSize() for event in self._pending)
        ends = bool(self.ending) and not self._pending
        change = self._opening or Change(self.scope, self.task_id, self.durable, 0, token=self.token)
        change.now_ms, change.events = now_ms(), batch
        if change.take is not None:  # from now on, however long the function thought before it said anything
            change.take = change.take._replace(until_ms=change.now_ms + int(self._runtime.options.lease * 1000))
        change.dedupe = self._sent.pop(last, change.dedupe)
        if self._runtime.options.push_notifications:
            change.notify = last
        if "context" in self.__dict__:
            change.memory = self.context.memory.take_unsaved()
        self._add_snapshot(change, ends)
        try:
            self.token = await self._runtime.store.commit(change)
        except Duplicate:
            if change is self._opening:
                raise
            change.dedupe = None
            self.token = await self._runtime.store.commit(change)
        self._opening, self.durable = None, last
        if not ends:
            for event in batch:
                self.fold.apply(event)
        self._feed.publish(batch, size)
        self._runtime.bus.publish(self.task_id, last)
        if not self.outcome.done():
            self.outcome.set_result(self.task_id)
        if ends:
            self._leave()
        self._wake()

    def _add_snapshot(self, change: Change, ends: bool) -> None:
        """The status if it changes; at the end the whole task too, the author's state, and the lease given up: whoever
        sees the question may answer it at once (BL-11)."""
        found = (status_of(event.payload) for event in reversed(change.events))
        status = next((status for status in found if status is not None), None)
        if status is None:
            return
        if not ends:
            change.snapshot = Snapshot(status.state, status_ms(status))
            return
        for event in change.events:
            self.fold.apply(event)
        change.snapshot = Snapshot(
            status.state, status_ms(status), self.fold.head(), self.fold.artifacts(), change.events[-1].sequence
        )
        change.take, change.release, change.cancel = None, True, b""
        if status.state in INTERRUPTED:
            change.author_state = self._author_state

    def _leave(self) -> None:
        """The turn is over: let go of everything that is shared."""
        if self.over.done():
            return
        if self._runtime.turns.get(self.task_id) is self:
            del self._runtime.turns[self.task_id]
        self.over.set_result(None)
        self._feed.local = False
        self._feed.wake()
        self._runtime.feeds.release(self.scope, self.task_id)
        if self._inbox is not None:
            self._inbox.close()
        self._wake()
