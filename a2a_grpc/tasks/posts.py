"""Messages for turns at work in other processes: left in the store, taken by whoever runs the turn.

Laws: a message is taken by the commit that puts it into the log, under the turn's own token; so who sees that turn over
knows that it never will be, and asks again what the task is. A sender that died never asks, so messages are kept for
little longer than senders ask. The bus only tells of messages: both sides look now and then. What the answer of a
sender is, is said in engine.py.
"""

import asyncio
import time
from contextlib import suppress
from typing import Final

from a2a_stubs import v1

from a2a_grpc.errors import STOPPING, UnavailableError
from a2a_grpc.python310_asyncio import timeout
from a2a_grpc.tasks.feed import POLL
from a2a_grpc.tasks.handle import TurnEnded
from a2a_grpc.tasks.run import Runtime, Turn
from a2a_grpc.tasks.store import Dedupe, Duplicate, Post, TaskRow

GAP: Final = 0.02
"""Seconds between two looks for what became of a message, however often the bus tells of its task."""


class Posts:
    """The messages of an engine to turns elsewhere, and of others to the turns here."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._senders: dict[str, set[asyncio.Event]] = {}
        self._looking = self._again = self._closed = False

    def open(self) -> None:
        """Take messages again after a `close`."""
        self._closed = False

    def close(self) -> None:
        """Let all who wait for the turns of others end with UnavailableError."""
        self._closed = True
        for task_id in self._senders:
            self._wake(task_id)

    # -- who has a message

    async def send(self, row: TaskRow, message: v1.Message, digest: bytes) -> bool | None:
        """Leave a message for the turn that the row shows, and wait for what becomes of it: whether it was taken; None
        if that turn is over and never took it. digest: as in Dedupe. Raises UnavailableError if nobody says, as when
        this process stops: then it may still be taken."""
        store, bus, moved = self._runtime.store, self._runtime.bus, asyncio.Event()
        patience = 2 * self._runtime.options.lease + POLL
        end, until_ms = time.monotonic() + patience, store.now_ms() + int(2000 * patience)
        number = await store.post(row.scope, row.task_id, row.token, message.SerializeToString(), digest, until_ms)
        if not number:
            return None
        senders = self._senders.setdefault(row.task_id, set())
        senders.add(moved)
        bus.watch(row.task_id)
        bus.publish(row.task_id, 0)
        try:
            while not self._closed:
                with suppress(TimeoutError):
                    async with timeout(POLL):
                        await moved.wait()
                moved.clear()
                taken = await store.posted(number)
                if not taken and time.monotonic() > end:  # whatever became of it, it may have been deleted since
                    raise UnavailableError("The task's turn does not answer")
                if taken != 0:
                    return None if taken is None else taken > 0
                await asyncio.sleep(GAP)
            raise UnavailableError(STOPPING)
        finally:
            bus.unwatch(row.task_id)
            senders.discard(moved)
            if not senders:
                self._senders.pop(row.task_id, None)

    def _wake(self, task_id: str) -> None:
        for moved in self._senders.get(task_id, ()):
            moved.set()

    # -- who runs the turn

    def hear(self, task_id: str, sequence: int) -> None:
        """A hint from the bus: a task has moved, or (0) somebody has something for its turn, or has heard of it."""
        self._wake(task_id)
        if not sequence and task_id in self._runtime.turns:
            self._runtime.spawn(self.look(), f"messages for {task_id}")

    async def look(self) -> None:
        """Hand the messages that wait to the turns here, in order, and refuse those that are not taken. A turn that
        ends answers none: its end does."""
        self._again = True
        if self._looking:
            return
        self._looking = True
        try:
            while self._again and self._runtime.turns:
                self._again = False
                for post in await self._runtime.store.posts(self._runtime.holder):
                    await self._hand_over(post)
        finally:
            self._looking = False

    async def _hand_over(self, post: Post) -> None:
        runtime, message = self._runtime, v1.Message.FromString(post.message)
        turn = runtime.turns.get(post.task_id)
        if turn is None or turn.token != post.token or not turn.accepting or post.number in turn.posted:
            return
        dedupe, known = runtime.dedupe(message, post.digest, post.task_id), None
        if dedupe is not None:
            known = await runtime.store.seen(turn.scope, message.message_id, runtime.store.now_ms())
        if known is not None or not turn.takes_messages:
            await self._refuse(post)
            return
        turn.posted.add(post.number)
        runtime.spawn(self._take(turn, message, dedupe, post), f"message for {post.task_id}")

    async def _take(self, turn: Turn, message: v1.Message, dedupe: Dedupe | None, post: Post) -> None:
        try:
            await turn.post(message, dedupe, post.number)
        except TurnEnded:
            pass
        except Duplicate:  # who left it asks for the first
            await self._refuse(post)

    async def _refuse(self, post: Post) -> None:
        await self._runtime.store.refuse(self._runtime.holder, post.number)
        self._runtime.bus.publish(post.task_id, 0)
