"""One turn: an author's function at work on a task.

Laws: what the function says becomes events, which commits.py brings into the store. The turn ends exactly once: with
the event that says so, or by losing the task (another replica has it, the store fails). Whichever of a cancel and an
end comes first here, wins (BL-09). The turn belongs to the engine, never to a connection (STREAM-05, BL-01).
"""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from a2a_stubs import v1

from a2a_grpc.agent import Agent, Failed, Rejected
from a2a_grpc.config import MIB
from a2a_grpc.errors import A2AError, InternalError, InvalidParamsError, UnavailableError, UnsupportedOperationError
from a2a_grpc.python310 import Self
from a2a_grpc.tasks.commits import Commits, Process
from a2a_grpc.tasks.handle import Paused, TaskHandle, TurnEnded
from a2a_grpc.tasks.inbox import Inbox
from a2a_grpc.tasks.invoke import at_once, begun, invoke
from a2a_grpc.tasks.parts import agent_message
from a2a_grpc.tasks.start import Start, failure, joined, without_task
from a2a_grpc.tasks.state import INTERRUPTED, Fold, ids_of, message_told
from a2a_grpc.tasks.store import CLAIM, Dedupe, Duplicate, Scope, StoreError, TaskRow
from a2a_grpc.tasks.views import View

log: Final = logging.getLogger("a2a_grpc")


Around = Callable[["Turn", Coroutine[Any, Any, None]], Coroutine[Any, Any, None]]
"""Takes a turn and the work of its function, and does the work."""


@dataclass(slots=True)
class Runtime(Process):
    """What all turns of a process share, too. turns: those not yet over, by task; strays: functions that go on
    although their turn was broken off; around: what is put around each function. exchanged: bytes of direct exchanges
    since retention looked last; crowded: set when it is to look soon."""

    turns: dict[str, "Turn"] = field(default_factory=dict)
    strays: set[object] = field(default_factory=set)
    around: Around | None = None
    exchanged: int = 0
    crowded: asyncio.Event = field(default_factory=asyncio.Event)

    def keep(self, exchange: Sequence[bytes]) -> None:
        """Count what a direct exchange takes in the store, so that retention looks before it is far too much."""
        self.exchanged += sum(map(len, exchange))
        if self.exchanged > max(self.options.retain_reply_bytes // 4, MIB):
            self.crowded.set()

    def elsewhere(self, row: TaskRow) -> bool:
        """Whether a turn of the task may be at work in another process, or was when that was lost."""
        return row.holder not in ("", self.holder) and not self.store.exclusive

    def out_of_sight(self, row: TaskRow) -> bool:
        """Whether a turn of the task, none of `turns`, may yet write: one elsewhere, or one that broke off here and
        whose last commit is on its way."""
        return row.holder != "" and not self.store.exclusive

    def dedupe(self, message: v1.Message, digest: bytes, task_id: str) -> Dedupe | None:
        """By what the message is known again from now on, None if nobody looks. digest: of the message as its caller
        sent it, b"" where nobody looks."""
        if not digest:
            return None
        until_ms = self.store.now_ms() + int(self.options.dedupe_window * 1000)
        return Dedupe(message.message_id, digest, until_ms, task_id, claim=CLAIM + task_id.encode())

    def local(self, scope: Scope, task_id: str) -> "Turn | None":
        """The turn of a task, if it runs in this process; None also when its lease may have run out, as while the
        process stood still: then the store knows better."""
        turn = self.turns.get(task_id)
        if turn is None or turn.scope != scope:
            return None
        sure = self.store.exclusive or not turn.token or time.monotonic() < turn.leased + self.options.lease
        return turn if sure else None


class Turn(Commits):
    """See the module, and Commits. `over` is done when the turn is over. `fault`: why it broke off, None if it ended
    well or another replica has it. `posted`: the numbers of the Posts that it was handed.
    `awaited`: whether a process that stops waits for its end."""

    awaited = True

    __slots__ = (
        "_before",
        "_canceler",
        "_halts",
        "_heard",
        "_inbox",
        "_listens",
        "_resumed",
        "_runtime",
        "agent",
        "answering",
        "began_ms",
        "earlier",
        "fault",
        "over",
        "posted",
    )

    def __init__(self, runtime: Runtime, agent: Agent, start: Start) -> None:
        super().__init__(runtime, start)
        self.agent, self.answering, self.earlier = agent, start.answering, start.earlier
        self.began_ms = start.opening.now_ms
        self.fault: A2AError | None = None
        self.over: asyncio.Future[None] = self._loop.create_future()
        self._runtime = runtime
        self._canceler: asyncio.Task[None] | None = None
        self._inbox: Inbox | None = None
        self._listens = False
        self._halts: Sequence[asyncio.Future[None]] = ()
        self._resumed = 0
        self.posted: set[int] = set()
        self._before = start.heard
        self._heard: dict[str, tuple[int, Dedupe]] = {}
        runtime.turns[self.task_id] = self

    def begin(self) -> Self:
        """Let the function work; the turn itself."""
        self.driver = at_once(self._drive(), self._loop, name=f"{self.agent.name}, task {self.task_id}")
        return self

    # -- what the engine does with it

    @property
    def accepting(self) -> bool:
        """Whether the turn is under way: stored, not ending, not canceled."""
        return self._opening is None and not (self.ending or self.stopped or self.cancel_request is not None)

    @property
    def waits(self) -> bool:
        """Whether the turn waits for what its caller authorises elsewhere, and the store knows that."""
        return self._opening is None and self.fold.state in INTERRUPTED and not self.ending

    @property
    def takes_messages(self) -> bool:
        """Whether the function reads its inbox, or waits, when its caller may have something to say (OP-SEND-16)."""
        return self._listens or self.waits

    async def halted(self) -> None:
        """Return when the turn is over, or waits."""
        while not (self.over.done() or self.waits):
            waiter: asyncio.Future[None] = self._loop.create_future()
            self._halts = [*self._halts, waiter]
            await waiter

    def _wake(self) -> None:
        super()._wake()
        if self._halts and self.waits:
            self._halt()

    def _halt(self) -> None:
        halts, self._halts = self._halts, ()
        for waiter in halts:
            if not waiter.done():
                waiter.set_result(None)

    async def post(self, message: v1.Message, dedupe: Dedupe | None, number: int = 0) -> None:
        """Hand a further message to the running function, and wait until it is stored. number: that of a Post. Raises
        TurnEnded if it can no longer be stored, Duplicate if it came before."""
        if dedupe is not None and (earlier := self._heard.get(dedupe.message_id)):
            await self._until(earlier[0])
            raise Duplicate(earlier[1])
        if not (self.takes_messages and self.accepting):
            raise TurnEnded("the turn takes no more messages")
        if self._resumed == self.sequence:  # a message behind that status is what a turn begins with
            self._emit(self._status(v1.TASK_STATE_WORKING, None, None))
        sequence = self._emit(message_told(self.sequence + 1, message))
        if dedupe is not None:
            self._sent[sequence] = dedupe
            self._heard[dedupe.message_id] = sequence, dedupe
        if number:
            self._posts[number] = sequence
        self._messages().put(message)
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
            self.driver.cancel()
            await asyncio.wait((self.driver,), timeout=self._runtime.options.cancel_grace)
        if not self.ending and not self.stopped:
            if not self.driver.done():
                log.warning("task %s: the function of %r goes on after its cancel", self.task_id, self.agent.name)
                self._runtime.strays.add(self.driver)
            self._finish(v1.TASK_STATE_CANCELED, None, None)
            self._flush_soon()
        await asyncio.shield(self.over)

    async def settle(self, text: str) -> None:
        """End the turn as FAILED with a public text and stop the function; nothing if it is over."""
        if not self.ending and not self.stopped:
            await asyncio.wait((self.outcome,), timeout=self._runtime.options.cancel_grace)
        if not self.ending and not self.stopped and self.outcome.done():
            self._finish(v1.TASK_STATE_FAILED, agent_message(text, self.context_id, self.task_id), None)
            self._flush_soon()
            self.driver.cancel()
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
            if self._feed is not None:
                self._feed.close(reason)
        if not self.outcome.done():
            self.outcome.set_exception(reason)
            self.outcome.exception()  # nobody may be waiting
        self._leave()
        if self.driver is not asyncio.current_task():
            self.driver.cancel()

    # -- what the handle needs (see Acts)

    @property
    def history(self) -> Sequence[v1.Message]:
        """What was said so far."""
        return self.fold.history or (self.request.message,)

    def open_inbox(self) -> Inbox:
        """Declare that the function takes messages."""
        self._listens = True
        return self._messages()

    def _messages(self) -> Inbox:
        if self._inbox is None:
            self._inbox = Inbox()
            for message in self._before:
                self._inbox.put(message)
            if self.over.done():
                self._inbox.close()
        return self._inbox

    async def work(self, message: v1.Message | None, metadata: Mapping[str, Any] | None) -> None:
        """Emit WORKING."""
        await self._check(v1.TASK_STATE_WORKING)
        self._open()
        waited = self._state in INTERRUPTED
        sequence = self._emit(self._status(v1.TASK_STATE_WORKING, message, metadata))
        if waited:
            self._resumed = sequence
        if self._flush_soon():
            await self._until(self._pending[0].sequence)

    async def wait(self, message: v1.Message | None) -> None:
        """Emit AUTH_REQUIRED, and return once that is stored: whoever waits for the turn is answered then."""
        await self._check(v1.TASK_STATE_AUTH_REQUIRED)
        self._open()
        sequence = self._emit(self._status(v1.TASK_STATE_AUTH_REQUIRED, message, None))
        self._flush_soon()
        await self._until(sequence)

    async def end(self, state: int, message: v1.Message | None, metadata: Mapping[str, Any] | None) -> None:
        """End the turn and return once that is stored."""
        await self._check(state)
        self._finish(state, message, metadata)
        self._flush_soon()
        await self._until(self.sequence)

    async def reply(self, message: v1.Message) -> None:
        """Answer without a task, or complete the one there is."""
        await self._check(v1.TASK_STATE_COMPLETED)
        opening = self._opening
        if opening is None or self._says is None:
            log.warning(
                "%r replied when its task %s was made already, so the reply became its last word; reply before anything"
                " else, and if the function calls something that replies, decorate it with @agent.handle(replies=True)",
                self.agent.name,
                self.task_id,
            )
            await self.end(v1.TASK_STATE_COMPLETED, message, None)
            return
        message.ClearField("task_id")
        exchange = [without_task(self.request.message), message.SerializeToString()]
        dedupe = opening.dedupe and opening.dedupe._replace(task_id="", reply=exchange[1])
        memory = self._context.memory.take_unsaved() if self._context is not None else {}
        self.ending, store = v1.TASK_STATE_COMPLETED, self._runtime.store
        try:
            await store.remember_reply(self.scope, self.context_id, exchange, memory, dedupe, store.now_ms())
            self._runtime.keep(exchange)
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
        driver = self._take()
        try:
            handler = self.agent.handler
            if self._opening is not None and (self._opening.expected or not handler.replies):
                self._open()
                await self._flush_here()
                await self._until(self.sequence)
            around, work = self._runtime.around, invoke(handler, TaskHandle(self), self._runtime.strays)
            self._soon = True  # what is said before the first pause is committed then, or at the end
            await begun(around(self, work) if around else work, self._paused)
            self._soon = False
            if self._running:
                self._finish(v1.TASK_STATE_COMPLETED, None, None)
                await self._flush_here()
        except BaseException as fault:
            self._soon = False
            self._conclude(fault)
        finally:
            self._runtime.strays.discard(driver)
            self._runtime.work.discard(driver)
            if self._running:
                self.stop(InternalError())

    def _take(self) -> asyncio.Task[Any]:
        """The running task as the driver, which may be at work before it is known as such."""
        driver = asyncio.current_task()
        assert driver is not None
        self.driver = driver
        self._runtime.work.add(driver)
        return driver

    @property
    def _running(self) -> bool:
        return not (self.ending or self.stopped) and self.cancel_request is None

    def _conclude(self, fault: BaseException) -> None:
        """The function raised: say so, if there is still something to say."""
        if isinstance(fault, KeyboardInterrupt):
            raise fault
        if not self._running:
            if not isinstance(fault, asyncio.CancelledError | Paused) and not self.stopped:
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
        self._flush_soon()

    def _paused(self) -> None:
        """The function has begun to wait: one that works before it says anything is WORKING."""
        if self._running and self._opening is None and self._state == v1.TASK_STATE_SUBMITTED:
            self._emit(self._status(v1.TASK_STATE_WORKING, None, None))
        self._begin_flush()

    def _leave(self) -> None:
        """The turn is over: let go of everything that is shared."""
        if self.over.done():
            return
        if self._runtime.turns.get(self.task_id) is self:
            del self._runtime.turns[self.task_id]
        self.over.set_result(None)
        if self._feed is not None:
            self._feed.local = False
            self._feed.wake()
        if self._inbox is not None:
            self._inbox.close()
        if self._halts:
            self._halt()
        if self._waiters:
            self._wake()


@dataclass(slots=True)
class Started:
    """What became of a message.

    task_id: its task, if it has or gets one. turn, start: the turn that it started, None if it joined what was there.
    row: the task before the message, None if the message made it. known: the first outcome of the same message, None
    if this is the first; digest: tells whether the content is the same, b"" where nobody looks.
    """

    task_id: str
    turn: Turn | None = None
    start: Start | None = None
    row: TaskRow | None = None
    known: Dedupe | None = None
    digest: bytes = b""

    async def outcome(self) -> v1.Message | str:
        """The direct Message, or the id of the task as soon as it is stored; raises what kept it from being stored."""
        if self.turn is not None:
            told = self.turn.outcome
            try:
                return told.result() if told.done() else await joined(told)
            except Duplicate as first:
                self.turn, self.start, self.known = None, None, first.dedupe
            except StoreError:
                raise UnsupportedOperationError("Another message is being worked on") from None
        if self.known is None:
            return self.task_id
        if self.known.digest != self.digest:
            text = "was used before for a message with other content"
            raise InvalidParamsError(violations=[("message.messageId", text)])
        if self.known.claims:
            raise UnavailableError("The message is being worked on elsewhere")
        return self.known.task_id or v1.Message.FromString(self.known.reply)

    @property
    def opening(self) -> View | None:
        """The task as the message found or made it: what a stream begins with. None if it joined what was there: then
        the stream begins with the task as it is. The task is the caller's own."""
        if self.start is None or (self.row is not None and self.row.folded != self.row.sequence):
            return None
        keep, says = self.start.fold.keep, self.start.says
        fold = Fold(keep) if self.row is None else Fold.of(self.row, keep)
        ids = ids_of(self.start.task_id, self.start.context_id)
        for event in says(fold, ids) if says else ():
            fold.apply(event)
        return View(fold.task(), fold.sequence)
