"""Tasks as a process reads them: alone, at the end of their turn, while it goes on, or many on a page.

Laws: reading decides nothing and writes nothing. A task that is worked on here is what its turn knows, any other is
what the store says; what is read comes through a Scope, and what is not found there is TaskNotFound (OP-GET-02,
AUTH-05). Which bytes a task has in an answer is said in listing.py.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence

from a2a_stubs import v1

from a2a_grpc.errors import TaskNotFoundError
from a2a_grpc.ready import Stored
from a2a_grpc.tasks.listing import Page, Pages, answer_of, cut, entries_of, entry_of
from a2a_grpc.tasks.run import Runtime, Turn
from a2a_grpc.tasks.start import joined
from a2a_grpc.tasks.state import ENDS, state_of
from a2a_grpc.tasks.store import Event, Scope, TaskQuery, TaskRow
from a2a_grpc.tasks.views import View, shown


class Reads:
    """What an engine reads. Every method may raise UnavailableError while the server stops, and InternalError when the
    store fails."""

    def __init__(self, runtime: Runtime) -> None:
        self.store, self.feeds = runtime.store, runtime.feeds
        self._runtime = runtime
        self._keep = runtime.options.keep_status_messages
        self._pages = Pages()

    async def view(self, scope: Scope, task_id: str, into: v1.Task | None = None, *, history: bool = True) -> View:
        """The task as it is, and the number to follow it from. into: an empty message that becomes the task, default a
        new one. history: False where nobody looks at it, which may then be left out. Raises TaskNotFoundError."""
        turn = self._runtime.local(scope, task_id)
        if turn is not None and turn.ending:
            await joined(turn.over)
            turn = None
        if turn is not None and turn.stored:
            return View(turn.fold.task(into=into, history=history), turn.durable)
        row = await self.store.task(scope, task_id)
        if row is None:
            raise TaskNotFoundError
        return await shown(self.store, row, self._keep, into=into)

    async def answer(self, scope: Scope, task_id: str, history: int) -> v1.Task | Stored:
        """The task as it is, with the last `history` messages at most. Raises TaskNotFoundError."""
        if self._runtime.local(scope, task_id) is not None:
            return cut((await self.view(scope, task_id, history=history > 0)).task, history)
        if (row := await self.store.task(scope, task_id)) is None:
            raise TaskNotFoundError
        if row.folded == row.sequence:
            return answer_of(row, history)
        return cut((await shown(self.store, row, self._keep)).task, history)

    async def settled(
        self,
        scope: Scope,
        task_id: str,
        turn: Turn | None = None,
        into: v1.Task | None = None,
        *,
        history: bool = True,
    ) -> View:
        """The task at the end of its turn, terminal or waiting for the caller (OP-SEND-02); waits for it. turn: the one
        that is meant, if it was started here; it may be over. into, history: as for `view`."""
        turn = turn or self._runtime.local(scope, task_id)
        if turn is not None:
            if not turn.over.done():
                await turn.halted()
            if turn.fault is not None:
                raise turn.fault
            if turn.stopped is None:
                return View(turn.fold.task(into=into, history=history), turn.durable)
        while (view := await self.view(scope, task_id, history=False)).task.status.state not in ENDS:
            async for event in self.follow(scope, task_id, view.sequence):
                if state_of(event.payload) in ENDS:
                    break
        return await self.view(scope, task_id, into)

    def follow(self, scope: Scope, task_id: str, after: int) -> AsyncIterator[Event]:
        """The events after a number, as they are committed, up to the terminal one; see Feeds.follow."""
        return self.feeds.follow(scope, task_id, after)

    def batches(self, scope: Scope, task_id: str, after: int) -> AsyncGenerator[Sequence[Event], None]:
        """As `follow`, as many events at a time as there are; see Feeds.batches."""
        return self.feeds.batches(scope, task_id, after)

    async def list(self, scope: Scope, query: TaskQuery, history: int) -> Page:
        """A page of tasks, each with the last `history` messages at most (LIST-*)."""
        rows, total, more = await self.store.tasks(scope, query)
        about = rows, query.artifacts, history
        entries = self._pages.find(*about) or await self._entries(*about)
        return Page(entries, total, more, (rows[-1].status_ms, rows[-1].task_id) if rows else None)

    async def _entries(self, rows: Sequence[TaskRow], artifacts: bool, history: int) -> Sequence[bytes]:
        entries = entries_of(rows, artifacts, history)
        # Tasks at work are read beside each other, since each may have events to be folded.
        if busy := [at for at, row in enumerate(rows) if row.folded != row.sequence]:
            tasks = await asyncio.gather(*[self._listed(rows[at], artifacts) for at in busy])
            for at, task in zip(busy, tasks, strict=True):
                entries[at] = entry_of(task, history)
        elif type(rows) is tuple:
            return self._pages.keep(rows, artifacts, history, entries)
        return entries

    async def _listed(self, row: TaskRow, artifacts: bool) -> v1.Task:
        turn = self._runtime.local(row.scope, row.task_id)
        if turn is not None and turn.fold.state == row.state and turn.durable >= row.sequence:
            return turn.fold.task(artifacts)
        return (await shown(self.store, row, self._keep, artifacts)).task
