"""What goes on beside the turns: leases, lost turns, retention, stopping, and an eye on blocked event loops.

Laws: nothing here is needed for a task to run; it keeps replicas from doing a turn twice, and settles what a dead one
left behind. A turn whose lease cannot be renewed is stopped before the lease runs out.
"""

import asyncio
import logging
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

from a2a_stubs import v1

from a2a_grpc.agent import Agent
from a2a_grpc.errors import STOPPING, UnavailableError
from a2a_grpc.python310_asyncio import timeout
from a2a_grpc.tasks.bus import Listener
from a2a_grpc.tasks.parts import agent_message
from a2a_grpc.tasks.relay import Relays
from a2a_grpc.tasks.run import Runtime, Turn
from a2a_grpc.tasks.state import INTERRUPTED, Fold, state_of, status_event, status_ms
from a2a_grpc.tasks.store import (
    Change,
    Conflict,
    Event,
    LeaseLost,
    Retention,
    Snapshot,
    TaskRow,
    Unreached,
)
from a2a_grpc.tasks.views import PAGE, folded

log: Final = logging.getLogger("a2a_grpc")

ATTEMPTS: Final = 3
"""How often a turn is run in all when its server keeps dying."""
LAST_STEPS: Final = 0.1
"""Seconds for what is about to end by itself when the process stops."""
LOOK: Final = 0.5
"""Seconds between looks for lost turns, so that one is taken over within a second after its lease."""
LOST_TEXT: Final = "The server stopped before the task was done"


class Lost(NamedTuple):
    """What a lost turn began with, as far as it is known, whether that answered a question, and the messages that the
    turn took while it worked."""

    request: v1.SendMessageRequest
    answering: bool
    heard: Sequence[v1.Message]


Rerun = Callable[[TaskRow, Fold, Lost], None]
"""Starts a lost turn of a task again."""


async def close_task(runtime: Runtime, row: TaskRow, fold: Fold, state: int, text: str) -> bool:
    """End a task without a running turn in a terminal state, breaking any lease; False if it has moved since `row`."""
    if fold.sequence != row.sequence:  # what came since may be its end
        return False
    now = max(runtime.store.now_ms(), row.status_ms)
    message = agent_message(text or None, row.context_id, row.task_id)
    event = Event(fold.sequence + 1, status_event(row.task_id, row.context_id, state, now, message))
    expected = fold.sequence
    fold.apply(event)
    change = Change(
        row.scope,
        row.task_id,
        expected,
        now,
        events=(event,),
        snapshot=Snapshot(
            state, status_ms(event.payload.status_update.status), fold.head(), fold.artifacts(), event.sequence
        ),
        over=True,
        cancel=b"",
        notify=event.sequence if runtime.options.push_notifications else 0,
    )
    try:
        await runtime.store.commit(change)
    except (Conflict, LeaseLost):
        return False
    if feed := runtime.feeds.find((row.scope, row.task_id)):
        feed.publish((event,), len(event.body))
        feed.wake()
    runtime.bus.publish(row.task_id, event.sequence)
    return True


class Upkeep:
    """The loops beside the turns of a process. shared: more of them for a store that others share, each with its
    seconds."""

    def __init__(
        self,
        runtime: Runtime,
        agents: Mapping[str, Agent],
        rerun: Rerun,
        hear: Sequence[Listener],
        shared: Iterable[tuple[Callable[[], Awaitable[None]], float]],
        relays: Relays,
    ) -> None:
        self._runtime = runtime
        self._shared = shared
        self._agents = agents
        self._rerun = rerun
        self._hear = hear
        self._relays = relays
        self._loops: list[asyncio.Task[Any]] = []
        self._watch: Watch | None = None
        self._listening = False
        self.taken_over = {"canceled": 0, "rerun": 0, "failed": 0, "followed": 0}
        """How many lost turns were settled here, by what became of them."""

    async def start(self) -> None:
        """Settle lost turns, then start the loops."""
        options = self._runtime.options
        while await self._recover():
            pass
        loops: list[tuple[Callable[[], Any], float]] = [
            (self._renew, options.lease / 3),
            (self._recover, min(options.lease, LOOK)),
        ]
        if not self._runtime.store.exclusive:
            loops += [(self._cancel, LOOK), *self._shared]
            if not self._listening:
                for listener in self._hear:
                    self._runtime.bus.listen(listener)
                self._listening = True
        for work, seconds in loops:
            self._loops.append(self._runtime.spawn(self._repeat(work, seconds), work.__name__))
        trimming = self._repeat(self._trim, options.trim_interval, self._filling)
        self._loops.append(self._runtime.spawn(trimming, "_trim"))
        if options.block_warning:
            self._watch = Watch(options.block_warning)

    async def _repeat(
        self, work: Callable[[], Any], seconds: float, pause: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        while True:
            await pause(seconds)
            try:
                await work()
            except Exception:
                log.exception("upkeep: %s failed; it is tried again in %g s", work.__name__, seconds)

    # -- leases

    async def _renew(self) -> None:
        """Lengthen the leases of all turns. Those that the store does not reach are asked for again and again, until
        they are about to run out: then the turns stop, as somebody else may take them over."""
        lease, turns = self._runtime.options.lease, self._runtime.turns
        enough = lease * 5 / 6  # the last sixth is left to stop in
        while held := {name: turn for name, turn in turns.items() if turn.token}:
            asked, first = time.monotonic(), min(turn.leased for turn in held.values())
            lost, left = frozenset[str](), frozenset(held)
            try:
                async with timeout(max(first + enough - asked, lease / 12)):
                    lost, left = await self._lengthened(held)
            except Exception:
                log.exception("leases could not be renewed")
            for name, turn in held.items():
                if name not in left:
                    turn.leased = max(turn.leased, asked)
                elif time.monotonic() >= turn.leased + enough:
                    turn.stop(LeaseLost("the lease could not be renewed"))
                # One that ends hears it from its last commit, which may be what has given the lease up.
                if name in lost and turns.get(name) is turn and not turn.ending:
                    turn.stop(LeaseLost("another replica has the task"))
            if not left:
                return
            await asyncio.sleep(lease / 12)

    async def _lengthened(self, held: Mapping[str, Turn]) -> tuple[frozenset[str], frozenset[str]]:
        """Lengthen the leases of these turns; those that are lost, and those that could not be reached."""
        store, tokens = self._runtime.store, {name: turn.token for name, turn in held.items()}
        until_ms = store.now_ms() + int(self._runtime.options.lease * 1000)
        try:
            return await store.renew(self._runtime.holder, until_ms, tokens), frozenset()
        except Unreached as some:
            return frozenset(), some.left

    async def _cancel(self) -> None:
        """Cancel what other replicas ask to; for the case that their hints were lost."""
        for name, request in (await self._runtime.store.cancels(self._runtime.holder)).items():
            if (turn := self._runtime.turns.get(name)) is not None:
                self._runtime.spawn(turn.cancel(v1.CancelTaskRequest.FromString(request)), f"cancel {name}")

    # -- lost turns

    async def _recover(self) -> bool:
        """Settle turns whose process is gone (BL-08); True if there may be more. One that cannot be settled holds up
        neither the others nor the start."""
        rows = await self._runtime.store.lost(self._runtime.holder, self._runtime.store.now_ms(), 100)
        rows = [row for row in rows if row.task_id not in self._runtime.turns]
        settled = False
        for row in rows:
            try:
                settled |= await self._settle(row)
            except Exception as fault:
                log.error("task %s: its lost turn cannot be settled now", row.task_id, exc_info=fault)
        return settled

    async def _settle(self, row: TaskRow) -> bool:
        """False if the task has moved: another replica was faster."""
        store, options = self._runtime.store, self._runtime.options
        agent = self._agents.get(row.scope.agent)
        fold = await folded(store, row, options.keep_status_messages)
        if row.scope.agent in self._relays:
            return self._counted("followed", await self._relays.again(row, fold))
        if row.cancel is not None:
            log.warning("task %s: its turn was lost; it is canceled as asked", row.task_id)
            return self._counted("canceled", await close_task(self._runtime, row, fold, v1.TASK_STATE_CANCELED, ""))
        if agent is not None and agent.rerun_lost_turns and row.attempt < ATTEMPTS:
            log.warning("task %s: its turn was lost and is run again", row.task_id)
            self._rerun(row, fold, await self._began(row))
            return self._counted("rerun", True)
        log.warning("task %s: its turn was lost; the task has failed", row.task_id)
        return self._counted("failed", await close_task(self._runtime, row, fold, v1.TASK_STATE_FAILED, LOST_TEXT))

    def _counted(self, what: str, done: bool) -> bool:
        self.taken_over[what] += done
        return done

    async def _began(self, row: TaskRow) -> Lost:
        """What the last turn began with: the message right after the WORKING that claimed the task, or the one that
        made it."""
        found, answering, claimed, state, after = v1.Message(), False, False, 0, 0
        heard = list[v1.Message]()
        while events := await self._runtime.store.events(row.scope, row.task_id, after, PAGE):
            for event in events:
                kind = event.payload.WhichOneof("payload")
                if kind == "task":
                    found = event.payload.task.history[-1]
                elif kind == "message" and claimed:
                    found, answering, heard = event.payload.message, True, []
                elif kind == "message":
                    heard.append(event.payload.message)
                claimed = state in INTERRUPTED and state_of(event.payload) == v1.TASK_STATE_WORKING
                state = state_of(event.payload) or state
            after = events[-1].sequence
        return Lost(v1.SendMessageRequest(message=found), answering, heard)

    # -- retention

    async def _filling(self, seconds: float) -> None:
        """Wait so long, or until direct exchanges may take too much."""
        with suppress(TimeoutError):
            async with timeout(seconds):
                await self._runtime.crowded.wait()
        self._runtime.crowded.clear()
        self._runtime.exchanged = 0

    async def _trim(self) -> None:
        """Delete what retention no longer keeps, a batch at a time (BL-44)."""
        options = self._runtime.options
        while True:
            retention = Retention(
                now_ms=self._runtime.store.now_ms(),
                terminal_ms=int(options.retain * 1000),
                stuck_ms=int(options.retain_stuck * 1000),
                count=options.retain_count,
                turn_ms=int(options.trim_interval * 2000),
                reply_bytes=options.retain_reply_bytes,
                reply_bytes_all=options.retain_reply_bytes_all,
            )
            gone = await self._runtime.store.trim(retention)
            for name in gone:
                self._runtime.feeds.gone(name)
            if len(gone) < retention.batch:
                return
            await asyncio.sleep(0)

    # -- stopping

    async def drain(self, grace: float) -> None:
        """Let running turns end within `grace` seconds, then settle what is left."""
        turns = list(self._runtime.turns.values())
        if grace > 0 and any(turn.awaited for turn in turns):
            await asyncio.wait([turn.over for turn in turns if turn.awaited], timeout=grace)
        left = [turn for turn in turns if not turn.over.done()]
        again = [turn for turn in left if turn.agent.rerun_lost_turns and turn.token]
        await asyncio.gather(*(turn.settle(LOST_TEXT) for turn in left if turn not in again))
        if again:
            tokens = {turn.task_id: turn.token for turn in again}
            stopping = UnavailableError(STOPPING)
            self._runtime.feeds.close(stopping)  # first, or their readers would hear that the task broke off
            for turn in again:
                turn.stop(stopping)
            store = self._runtime.store
            with suppress(Unreached):  # it ends by itself
                await store.renew(self._runtime.holder, store.now_ms(), tokens)  # the lease ends now

    async def stop(self) -> None:
        """End the loops, and whatever still runs when all who wait for an end have had the time to hear of it."""
        if self._watch is not None:
            self._watch.stop()
            self._watch = None
        work = [task for task in self._runtime.work if task is not asyncio.current_task()]
        for task in self._loops:
            task.cancel()
        self._loops.clear()
        for patience in (LAST_STEPS, 1.0):
            if work:
                _, left = await asyncio.wait(work, timeout=patience)
                work = list(left)
            for task in work:
                task.cancel()


class Watch:
    """Warns when a coroutine holds the event loop, and names the agent (BL-17): a thread that looks whether the loop
    still turns. Made in the loop; costs the loop one timer each `limit / 2` seconds."""

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._beat = time.monotonic()
        self._stopped = threading.Event()
        self._tick()
        threading.Thread(target=self._look, daemon=True, name="a2a-watch").start()

    def _tick(self) -> None:
        self._beat = time.monotonic()
        self._timer = self._loop.call_later(self._limit / 2, self._tick)

    def _look(self) -> None:
        warned = 0.0
        while not self._stopped.wait(self._limit / 2):
            beat = self._beat
            if beat == warned or time.monotonic() - beat <= self._limit * 1.5:
                continue
            task = asyncio.current_task(self._loop)
            if task is None:
                continue
            warned, frame = beat, sys._current_frames().get(self._loop_thread)
            place = f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else "an unknown place"
            log.warning(
                "the event loop is held for more than %g s by %s (at %s); use a plain function, or await more often",
                self._limit,
                task.get_name(),
                place,
            )

    def stop(self) -> None:
        """End the watch."""
        self._stopped.set()
        self._timer.cancel()
