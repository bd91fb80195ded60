"""Canceling tasks, wherever their turns run.

Laws: a cancel is settled by a commit like anything else; whichever of a cancel and an end comes first, wins (BL-09).
"""

from collections.abc import Awaitable, Callable

from a2a_stubs import v1

from a2a_grpc.errors import TaskNotCancelableError, TaskNotFoundError
from a2a_grpc.python310_asyncio import timeout
from a2a_grpc.tasks.feed import POLL
from a2a_grpc.tasks.run import Runtime, Turn
from a2a_grpc.tasks.state import ENDS, TERMINAL, state_of
from a2a_grpc.tasks.store import Scope, TaskRow
from a2a_grpc.tasks.upkeep import close_task
from a2a_grpc.tasks.views import View, folded


class Cancels:
    """The cancels of an engine. view: reads a task (see Reads.view)."""

    def __init__(self, runtime: Runtime, view: Callable[[Scope, str], Awaitable[View]]) -> None:
        self._runtime = runtime
        self._view = view

    async def cancel(self, scope: Scope, task_id: str, request: v1.CancelTaskRequest) -> v1.Task:
        """Stop the task's turn wherever it runs and settle the task (OP-CANCEL-*). The function has `cancel_grace`
        seconds to stop. Raises TaskNotFoundError, TaskNotCancelableError (it has ended, or ends first)."""
        while True:
            turn = self._runtime.local(scope, task_id)
            if turn is not None:
                await turn.cancel(request)
                if turn.fault is not None:
                    raise turn.fault
                if turn.stopped is None and turn.ending == v1.TASK_STATE_CANCELED:
                    return turn.fold.task()
                continue
            row = await self._runtime.store.task(scope, task_id)
            if row is None:
                raise TaskNotFoundError
            if row.state in TERMINAL:
                raise TaskNotCancelableError
            if self._runtime.local(scope, task_id) is not None:
                continue
            if self._runtime.elsewhere(row) and row.lease_until_ms > self._runtime.store.now_ms():
                if (view := await self._cancel_elsewhere(row, request)) is not None:
                    return view.task
                continue
            fold = await folded(self._runtime.store, row, self._runtime.options.keep_status_messages)
            if await close_task(self._runtime, row, fold, v1.TASK_STATE_CANCELED, ""):
                return fold.task()

    async def _cancel_elsewhere(self, row: TaskRow, request: v1.CancelTaskRequest) -> View | None:
        """Ask the replica that runs the turn, and wait until it has canceled, or its lease is no longer renewed."""
        if await self._runtime.store.request_cancel(row.scope, row.task_id, request.SerializeToString()) is None:
            raise TaskNotFoundError
        self._runtime.bus.publish(row.task_id, 0)
        events = self._runtime.feeds.follow(row.scope, row.task_id, row.sequence)
        try:
            async with timeout(max(row.lease_until_ms - self._runtime.store.now_ms(), 0) / 1000 + POLL):
                async for event in events:
                    state = state_of(event.payload)
                    if state == v1.TASK_STATE_CANCELED:
                        return await self._view(row.scope, row.task_id)
                    if state in ENDS:
                        return None
        except TimeoutError:
            pass
        return None

    def hear(self, task_id: str, sequence: int) -> None:
        """A hint from the bus: a task has moved, or (0) its turn is to look at a cancel request."""
        turn = self._runtime.turns.get(task_id)
        if turn is None:
            self._runtime.feeds.hint(task_id, sequence)
        elif not sequence:
            self._runtime.spawn(self._look_for_cancel(turn), f"look at {task_id}")

    async def _look_for_cancel(self, turn: Turn) -> None:
        row = await self._runtime.store.task(turn.scope, turn.task_id)
        if row is not None and row.cancel is not None:
            await turn.cancel(v1.CancelTaskRequest.FromString(row.cancel))
