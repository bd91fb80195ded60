"""The task engine: starts, continues and cancels tasks, whichever replica runs them.

Laws: the engine knows agents and a store, no wire and no request but a message to send and a cancel. What it is asked
for a task it does not find in the given Scope, it answers with TaskNotFound (OP-GET-02, AUTH-05). Everything that
decides is a commit: two that want the same thing cannot both get it. How tasks are read is said in reads.py.
"""

import asyncio
import hashlib
from collections.abc import Collection, Mapping
from typing import Any, Final

from a2a_stubs import v1

from a2a_grpc.agent import Agent
from a2a_grpc.call import Call, Caller, trace_of
from a2a_grpc.config import Options
from a2a_grpc.content import push_config
from a2a_grpc.errors import (
    STOPPING,
    InvalidParamsError,
    ResourceExhaustedError,
    TaskNotFoundError,
    UnavailableError,
    UnsupportedOperationError,
)
from a2a_grpc.push import Deliverer
from a2a_grpc.push_hosts import Poster
from a2a_grpc.tasks.bus import Bus
from a2a_grpc.tasks.cancels import Cancels
from a2a_grpc.tasks.feed import Feeds, Hold
from a2a_grpc.tasks.handle import TurnEnded
from a2a_grpc.tasks.posts import Posts
from a2a_grpc.tasks.reads import Reads
from a2a_grpc.tasks.relay import Relays
from a2a_grpc.tasks.run import Runtime, Started, Turn
from a2a_grpc.tasks.sends import Sends
from a2a_grpc.tasks.start import Start, joined, new_id, with_ids
from a2a_grpc.tasks.state import INTERRUPTED, TERMINAL, Fold, message_told, status_told
from a2a_grpc.tasks.store import (
    Change,
    Conflict,
    Dedupe,
    Duplicate,
    Event,
    LeaseLost,
    PushConfig,
    Scope,
    Store,
    TaskRow,
)
from a2a_grpc.tasks.upkeep import LOOK, Lost, Upkeep
from a2a_grpc.tasks.views import folded

RETRY_AFTER: Final = 1.0
"""Seconds after which a caller that met the limit of turns may come back."""


class Engine(Reads):
    """Runs the turns of some agents, by name, on a store that is open while the engine runs; reads tasks as Reads does.

    poster: calls webhooks; default None, and then what is due to them waits in the store for a server that has one.
    around: see Runtime.
    Every method may raise UnavailableError while the server stops, and InternalError when the store fails.
    """

    def __init__(
        self,
        store: Store,
        bus: Bus,
        agents: Mapping[str, Agent],
        options: Options,
        poster: Poster | None = None,
        around: Any = None,
    ) -> None:
        self.bus = bus
        self.agents = dict(agents)
        self.options = options
        self.holder = holder = new_id()
        """The name of this process in leases."""
        turns: dict[str, Turn] = {}
        feeds = Feeds(store, bus, holder, turns)
        super().__init__(Runtime(store, bus, options, feeds, holder, turns=turns, around=around))
        self.draining = False
        self._cancels = Cancels(self._runtime, self.view)
        self._posts = Posts(self._runtime)
        self._sends = Sends(self._runtime)
        hear = self._cancels.hear, self._posts.hear
        self.relays = Relays(self._runtime)
        """The tasks that others work on and that are kept here."""
        shared = (self._posts.look, LOOK), (self._sends.renew, options.lease / 3)
        self.upkeep = Upkeep(self._runtime, self.agents, self._rerun, hear, shared, self.relays)
        self.push = Deliverer(store, bus, options, holder, poster)

    # -- life

    @property
    def running(self) -> int:
        """Turns that are not over."""
        return len(self._runtime.turns)

    @property
    def strays(self) -> int:
        """Functions that go on although their turn was broken off."""
        return len(self._runtime.strays)

    @property
    def turns(self) -> Collection[Turn]:
        """The turns that are not over."""
        return self._runtime.turns.values()

    async def start(self) -> None:
        """Settle what an earlier process left behind, and keep leases, lost turns and retention in order from now on.
        The store must be open."""
        self.draining = False
        self.feeds.open()
        self._posts.open()
        self._sends.open()
        await self.bus.open()
        await self.upkeep.start()
        self.push.start()

    async def drain(self, grace: float) -> None:
        """Stop: no new turns, running ones have `grace` seconds, then their tasks are settled, or left to the next
        process if their agent reruns lost turns; readers end with UnavailableError (BL-34). The store stays open."""
        self.draining = True
        await self.upkeep.drain(grace)
        self._posts.close()
        self._sends.close()
        self.feeds.close(UnavailableError(STOPPING))
        await self.upkeep.stop()
        await self.push.stop()
        await self.bus.close()

    # -- sending

    async def begin(
        self, call: Call, scope: Scope, request: v1.SendMessageRequest, hold: Hold | None = None
    ) -> Started:
        """Take a message: start a task or continue the one it names (OP-SEND-06, OP-SEND-07, OP-SEND-14 to -17,
        CTX-01 to CTX-09). When it returns, the message is stored, unless the agent may still reply without a task.
        hold: of a reader, which takes the feed of the task that is started or continued.

        Raises TaskNotFoundError, InvalidParamsError (other context, messageId used with other content),
        UnsupportedOperationError (the task has ended or is being worked on), ResourceExhaustedError (`max_turns`,
        `turn_limit`).
        """
        if self.draining:
            raise UnavailableError(STOPPING)
        message = request.message
        digest = b""
        if self.options.deduplicate == "always" or (
            self.options.deduplicate == "authenticated" and call.caller.authenticated
        ):
            digest = hashlib.sha256(message.SerializeToString(deterministic=True)).digest()
        if message.task_id:
            return await self._continue(call, scope, request, digest, hold)
        return await self._create(call, scope, request, digest, hold)

    async def _create(
        self, call: Call, scope: Scope, request: v1.SendMessageRequest, digest: bytes, hold: Hold | None
    ) -> Started:
        replies, task_id = self.agents[scope.agent].handler.replies, new_id()
        sent = self._runtime.dedupe(request.message, digest, task_id)
        if not (replies and sent):
            started = self._begun(call, scope, request, task_id, sent, hold)
            if not replies:
                await started.outcome()
            return started
        if (earlier := await self._sends.earlier(scope, sent)) is not None:
            return earlier
        try:
            started = self._begun(call, scope, request, task_id, sent, hold)
        except BaseException:
            self._sends.give_up(scope, sent)
            raise
        assert started.turn is not None
        self._sends.remember(scope, sent, started.turn)
        return started

    def _begun(
        self,
        call: Call,
        scope: Scope,
        request: v1.SendMessageRequest,
        task_id: str,
        sent: Dedupe | None,
        hold: Hold | None,
    ) -> Started:
        """A new task, whose function is at work. sent: by what its message is known again."""
        self.check_room(call)
        now = self.store.now_ms()
        request = with_ids(call, request, task_id, request.message.context_id or new_id())
        message = request.message
        fold = Fold(self.options.keep_status_messages)
        opening = Change(
            scope,
            task_id,
            0,
            now,
            context_id=message.context_id,
            dedupe=sent,
            push_configs=self.push_configs(call, request, task_id),
        )
        context_id = message.context_id
        start = Start(
            scope,
            call,
            request,
            task_id,
            context_id,
            fold,
            opening,
            lambda fold, ids: (fold.open(message, ids, now),),
            trace=trace_of(call.metadata),
        )
        return Started(task_id, self._turn(start, hold), start, digest=sent.digest if sent else b"")

    async def _continue(
        self, call: Call, scope: Scope, request: v1.SendMessageRequest, digest: bytes, hold: Hold | None
    ) -> Started:
        message = request.message
        if request.configuration.HasField("task_push_notification_config"):
            name = request.configuration.task_push_notification_config.id or message.task_id
            await self.push.check_room(scope, message.task_id, name)
        while True:
            turn = self._runtime.local(scope, message.task_id)
            if turn is not None and not turn.accepting:
                await _next(turn)
                continue
            row = await self.store.task(scope, message.task_id)
            if row is None:
                raise TaskNotFoundError
            if message.context_id and message.context_id != row.context_id:
                raise InvalidParamsError(violations=[("message.contextId", "is not the context of the task")])
            waits = row.state in INTERRUPTED and not row.holder
            fold = await folded(self.store, row, self.options.keep_status_messages) if waits else None
            if self._runtime.local(scope, message.task_id) is not turn:
                continue
            if turn is None and fold is not None:
                try:
                    return await self._claim(call, row, fold, request, digest, hold)
                except Conflict:
                    continue
            if digest and (known := await self.store.seen(scope, message.message_id, self.store.now_ms())):
                return Started(row.task_id, known=known, digest=digest)
            if turn is not None and not turn.accepting:
                continue  # it has come to its end meanwhile, perhaps by this very message
            forward = turn is None and self._runtime.out_of_sight(row)
            if forward or (turn is not None and turn.takes_messages):
                work = self._post(call, turn, request, digest) if turn else self._forward(call, row, request, digest)
                if (sent := await work) is not None:
                    return sent
                continue
            ended = row.state in TERMINAL
            raise UnsupportedOperationError("The task has ended" if ended else "The task is being worked on")

    async def _claim(
        self,
        call: Call,
        row: TaskRow,
        fold: Fold,
        request: v1.SendMessageRequest,
        digest: bytes,
        hold: Hold | None,
    ) -> Started:
        """Take a waiting task for the next turn; raises Conflict if somebody else was faster (BL-10)."""
        self.check_room(call)
        if (stale := self._runtime.turns.get(row.task_id)) is not None:
            stale.stop(LeaseLost("another replica had the task"))
        request = with_ids(call, request, row.task_id, row.context_id)
        now = max(self.store.now_ms(), row.status_ms)
        opening = Change(
            row.scope,
            row.task_id,
            row.sequence,
            now,
            dedupe=self._runtime.dedupe(request.message, digest, row.task_id),
            push_configs=self.push_configs(call, request, row.task_id),
        )
        start = Start(
            row.scope,
            call,
            request,
            row.task_id,
            row.context_id,
            fold,
            opening,
            lambda fold, ids: _working(fold, ids, now, request.message),
            answering=True,
            trace=trace_of(call.metadata),
            author_state=row.author_state,
            earlier=row.trace,
        )
        started = Started(row.task_id, self._turn(start, hold), start, row, digest=digest)
        assert started.turn is not None
        await asyncio.wait((started.turn.outcome,))
        if isinstance(lost := started.turn.outcome.exception(), Conflict):
            raise lost
        await started.outcome()
        return started

    async def _post(self, call: Call, turn: Turn, request: v1.SendMessageRequest, digest: bytes) -> Started | None:
        """Hand a message to the function that is at work and reads its inbox; None if it came too late."""
        request = with_ids(call, request, turn.task_id, turn.context_id)
        try:
            work = turn.post(request.message, self._runtime.dedupe(request.message, digest, turn.task_id))
            await asyncio.shield(self._runtime.spawn(work, f"message for {turn.task_id}"))
        except TurnEnded:
            return None
        except Duplicate as first:
            return Started(turn.task_id, known=first.dedupe, digest=digest)
        return await self._posted(call, turn.scope, request)

    async def _forward(self, call: Call, row: TaskRow, request: v1.SendMessageRequest, digest: bytes) -> Started | None:
        """Send a message to the turn that another process runs; None if it is over, so that the task is to be looked at
        again."""
        request = with_ids(call, request, row.task_id, row.context_id)
        work = self._posts.send(row, request.message, digest)
        taken = await asyncio.shield(self._runtime.spawn(work, f"message for {row.task_id}"))
        if taken is None:
            return None
        if taken:
            return await self._posted(call, row.scope, request)
        if digest and (known := await self.store.seen(row.scope, request.message.message_id, self.store.now_ms())):
            return Started(row.task_id, known=known, digest=digest)
        raise UnsupportedOperationError("The task is being worked on")

    async def _posted(self, call: Call, scope: Scope, request: v1.SendMessageRequest) -> Started:
        for config in self.push_configs(call, request, request.message.task_id):
            await self.push.put(scope, config)
        return Started(request.message.task_id)

    def _rerun(self, row: TaskRow, fold: Fold, lost: Lost) -> None:
        """Run a lost turn again (see Upkeep); of its caller only the subject is known."""
        if self.draining:
            return
        now = max(self.store.now_ms(), row.status_ms)
        opening = Change(row.scope, row.task_id, row.sequence, now, over=True)
        caller = Caller(row.scope.owner, authenticated=row.scope.owner != "")
        call = Call("", tenant=row.scope.tenant, caller=caller)
        start = Start(
            row.scope,
            call,
            lost.request,
            row.task_id,
            row.context_id,
            fold,
            opening,
            lambda fold, ids: _working(fold, ids, now),
            lost.answering,
            row.trace,
            row.author_state,
            row.attempt + 1,
            row.trace,
            lost.heard,
        )
        self._turn(start)

    def _turn(self, start: Start, hold: Hold | None = None) -> Turn:
        if hold is not None:
            hold.take(start.scope, start.task_id)
        return Turn(self._runtime, self.agents[start.scope.agent], start).begin()

    def check_room(self, call: Call) -> None:
        """Whether one more task may be worked on for a caller. Raises ResourceExhaustedError."""
        if self.draining:
            raise UnavailableError(STOPPING)
        # A function that does not hear of its cancel keeps its room: else sends and cancels could make ever more.
        if len(self._runtime.turns) + len(self._runtime.strays) >= self.options.max_turns:
            raise ResourceExhaustedError("Too many tasks are being worked on", retry_after=RETRY_AFTER)
        if most := self.options.turn_limit:
            subject, turns = call.caller.subject, self._runtime.turns.values()
            if sum(turn.call.caller.subject == subject for turn in turns) >= most:
                text = f"Too many of your tasks are being worked on; the limit is {most}"
                raise ResourceExhaustedError(text, retry_after=RETRY_AFTER)

    def push_configs(self, call: Call, request: v1.SendMessageRequest, task_id: str) -> tuple[PushConfig, ...]:
        """The config inside a send; without an id it gets that of the task, so that repeating it replaces it (L-20)."""
        if not request.HasField("configuration"):
            return ()
        if not request.configuration.HasField("task_push_notification_config"):
            return ()
        config = v1.TaskPushNotificationConfig()
        config.CopyFrom(request.configuration.task_push_notification_config)
        config.ClearField("tenant")
        config.task_id, config.id = task_id, config.id or task_id
        self.push.watch(task_id)
        return (push_config(config, call, self.push.seal),)

    # -- canceling

    async def cancel(self, scope: Scope, task_id: str, request: v1.CancelTaskRequest) -> v1.Task:
        """Stop the task's turn and settle the task (see Cancels)."""
        return await self._cancels.cancel(scope, task_id, request)


def _working(fold: Fold, ids: bytes, now: int, *answers: v1.Message) -> list[Event]:
    """What a turn of a task that is there begins with. The status first: it moves the question that it replaces into
    the history, before the answer."""
    first = fold.sequence + 1
    working = status_told(first, ids, v1.TASK_STATE_WORKING, now)
    return [working, *[message_told(number, answer) for number, answer in enumerate(answers, first + 1)]]


async def _next(turn: Turn) -> None:
    """Wait until a turn that takes nothing is under way or over."""
    if turn.outcome.done() or turn.ending or turn.cancel_request is not None:
        await joined(turn.over)
    else:
        await asyncio.wait((turn.outcome,))
        if turn.outcome.exception() is not None:
            await joined(turn.over)
