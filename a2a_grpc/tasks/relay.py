"""Tasks that somebody else works on, and that are kept here: each in a turn that tells what happens there.

Laws: events are told as they came, and nothing is added to them; where they come from is said by a `Follow`. Such a
turn has a lease as any other, so of several processes one follows a task, and when that is gone another goes on. It is
let go of, not failed, when it cannot be followed any longer: what has become of the task is not ours to say.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple

from a2a_stubs import v1

from a2a_grpc.agent import Agent
from a2a_grpc.call import ANONYMOUS, Call, Caller, trace_of
from a2a_grpc.errors import TaskNotFoundError
from a2a_grpc.tasks.handle import TurnEnded
from a2a_grpc.tasks.run import Runtime, Turn
from a2a_grpc.tasks.start import Start, failure, joined
from a2a_grpc.tasks.state import TERMINAL, Fold, state_of
from a2a_grpc.tasks.store import (
    Change,
    Conflict,
    Event,
    LeaseLost,
    LeaseTaken,
    PushConfig,
    Scope,
    Snapshot,
    StoreError,
    TaskRow,
)
from a2a_grpc.tasks.views import folded

LET_GO: Final = LeaseLost("the task is followed no longer")


class Relay(Turn):
    """One task that is followed. follow: tells what happens; first: the task, where it is not kept yet; token: of the
    lease, where it has been taken already. kept: what was put beside the task for whoever follows it. most: bytes of
    its log, of which what is oldest is forgotten, 0 for all of it; tasks with push configs keep all."""

    awaited = False

    def __init__(
        self, runtime: Runtime, followed: "Followed", start: Start, first: v1.Task | None, token: int = 0
    ) -> None:
        super().__init__(runtime, followed.agent, start)
        self.kept = start.author_state
        self._follow, self._first, self._half = followed.follow, first, followed.most // 2
        self._grown, self._mark = 0, self.sequence
        if token:
            self.token, self.leased, self._opening = token, time.monotonic(), None
            self.outcome.set_result(self.task_id)

    async def tell(self, payload: v1.StreamResponse) -> None:
        """Take an event in; one that ends the task is stored when this returns. Raises TurnEnded after the end, and
        when the lease is lost."""
        state = state_of(payload)
        if state not in TERMINAL:
            await self._check(0)
            event = Event(self.sequence + 1, payload)
            self._emit(event, state)
            if self._flush_soon():
                await self._until(self._pending[0].sequence)
            if self._half:
                self._grown += len(event.body)
                if self._grown >= self._half:
                    await self._shorten()
            return
        await self._check(0)
        self._emit(Event(self.sequence + 1, payload), state)
        self.ending = state
        self._flush_soon()
        await self._until(self.sequence)

    async def known(self) -> v1.Task:
        """The task as it was told so far. Raises TurnEnded."""
        await self._until(self.sequence)
        return self.fold.task()

    async def _shorten(self) -> None:
        """Forget what had come before the log was as long the last time; the snapshot then speaks for it."""
        await self._until(self.sequence)
        store = self._runtime.store
        now = store.now_ms()
        folded = Snapshot(self.fold.state, now, self.fold.head(), self.fold.artifacts(), self.durable)
        await store.commit(Change(self.scope, self.task_id, self.durable, now, token=self.token, snapshot=folded))
        await store.shorten(self.scope, self.task_id, self._mark)
        self._grown, self._mark = 0, self.sequence

    async def _drive(self) -> None:
        driver = self._take()
        try:
            if self._first is not None:
                await self.tell(v1.StreamResponse(task=self._first))
                await self._until(self.sequence)
            if not self.ending:
                await self._follow(self)
        except (TurnEnded, LeaseLost, asyncio.CancelledError):
            pass
        except Exception as fault:
            failure(f"task {self.task_id}: following it failed", fault)
        finally:
            if not (self.ending or self.stopped):
                await self._let_go()
            self._runtime.work.discard(driver)

    async def _let_go(self) -> None:
        try:
            await self._until(self.sequence)
            store = self._runtime.store
            release = Change(self.scope, self.task_id, self.durable, store.now_ms(), token=self.token, release=True)
            await store.commit(release)
        except (TurnEnded, StoreError):
            pass
        finally:
            self.stop(LET_GO)

    def _add_snapshot(self, change: Change, ends: bool) -> None:
        """The time of a status, by which retention goes, is ours: clocks elsewhere may be wrong."""
        super()._add_snapshot(change, ends)
        if change.snapshot is not None:
            change.snapshot = change.snapshot._replace(status_ms=change.now_ms)


Follow = Callable[[Relay], Awaitable[None]]
"""Tells a relay what happens to its task, until that ends; returns before when it cannot be followed any longer."""


class Followed(NamedTuple):
    """How the tasks of an agent that is somewhere else are followed; see Relay."""

    agent: Agent
    follow: Follow
    most: int


class Relays:
    """The followed tasks of a process, by the agents that work on them elsewhere."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._agents: dict[str, Followed] = {}

    def add(self, name: str, follow: Follow, most: int = 0) -> Agent:
        """Tasks whose scope names this agent are followed from now on, also those that were followed by a process that
        is gone; what stands for the agent here. most: see Relay."""
        agent = Agent(name=name or "upstream", description="Somewhere else", version="0", skills=[])
        agent.rerun_lost_turns = True
        self._agents[name] = Followed(agent, follow, most)
        return agent

    def __contains__(self, name: str) -> bool:
        return name in self._agents

    def running(self, scope: Scope, task_id: str) -> bool:
        """Whether a task is followed by this process."""
        return self._runtime.local(scope, task_id) is not None

    async def begin(
        self, call: Call, scope: Scope, task: v1.Task, configs: Sequence[PushConfig] = (), kept: bytes = b""
    ) -> bool:
        """See to it that a task is kept and, unless it has ended, followed by somebody.

        configs: made with it, so that they hear everything; False if it was there before them, and they are not made.
        call: for whose caller, and in whose trace, that is done; kept: for whoever follows it. Raises TaskNotFoundError
        if its id is that of a task of another scope.
        """
        store, trace = self._runtime.store, trace_of(call.metadata)
        if self.running(scope, task.id):
            return False
        row = await store.task(scope, task.id)
        if row is None:
            context_id = task.context_id or task.id
            opening = Change(scope, task.id, 0, store.now_ms(), context_id, push_configs=configs)
            opening.author_state = kept
            fold = Fold(self._runtime.options.keep_status_messages)
            try:
                await joined(self._relay(call.caller, fold, opening, kept, trace, task).outcome)
                return True
            except StoreError:
                if (row := await store.task(scope, task.id)) is None:
                    raise TaskNotFoundError from None
        if row.state not in TERMINAL and not (row.holder and store.now_ms() < row.lease_until_ms):
            fold = await folded(store, row, self._runtime.options.keep_status_messages)
            await self._take(call.caller, row, fold, kept, trace)
        return False

    async def again(self, row: TaskRow, fold: Fold) -> bool:
        """Follow a task whose process is gone; False if somebody else was faster."""
        return await self._take(ANONYMOUS, row, fold, row.author_state, row.trace)

    async def _take(self, caller: Caller, row: TaskRow, fold: Fold, kept: bytes, trace: str) -> bool:
        if self.running(row.scope, row.task_id):
            return False
        store = self._runtime.store
        now = store.now_ms()
        lease = LeaseTaken(self._runtime.holder, now + int(self._runtime.options.lease * 1000), trace=trace)
        take = Change(row.scope, row.task_id, row.sequence, now, take=lease, author_state=kept)
        take.over = store.exclusive  # where every lease of others is dead
        try:
            token = await store.commit(take)
        except Conflict:
            return False
        opening = Change(row.scope, row.task_id, row.sequence, take.now_ms, row.context_id)
        self._relay(caller, fold, opening, kept, trace, None, token)
        return True

    def _relay(
        self,
        caller: Caller,
        fold: Fold,
        opening: Change,
        kept: bytes,
        trace: str,
        first: v1.Task | None,
        token: int = 0,
    ) -> Relay:
        scope, request = opening.scope, v1.SendMessageRequest()
        call, about = Call("", tenant=scope.tenant, caller=caller), (opening.task_id, opening.context_id)
        start = Start(scope, call, request, *about, fold, opening, None, trace=trace, author_state=kept)
        return Relay(self._runtime, self._agents[scope.agent], start, first, token).begin()
