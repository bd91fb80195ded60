"""Tasks as they are read: a row of the store and the events after its snapshot, folded.

Laws: reading changes nothing; whatever is read comes through a Scope.
"""

from typing import Final, NamedTuple

from a2a_stubs import v1

from a2a_grpc.tasks.state import Fold
from a2a_grpc.tasks.store import Store, TaskRow

PAGE: Final = 256
"""Events read at a time."""


class View(NamedTuple):
    """A task and the number of the last event in it. The task is the receiver's own."""

    task: v1.Task
    sequence: int


async def shown(
    store: Store, row: TaskRow, keep_status_messages: bool = True, artifacts: bool = True, into: v1.Task | None = None
) -> View:
    """The task of a row as a reader gets it, without artifacts if False; when no turn runs it is stored as such. into:
    an empty message that becomes the task, default a new one."""
    if row.folded == row.sequence:
        task = v1.Task() if into is None else into
        task.MergeFromString(row.head + row.artifacts if artifacts else row.head)
        return View(task, row.sequence)
    fold = await folded(store, row, keep_status_messages)
    return View(fold.task(artifacts, into), fold.sequence)


async def folded(store: Store, row: TaskRow, keep_status_messages: bool = True) -> Fold:
    """The task of a row with all events up to now."""
    fold = Fold.of(row, keep_status_messages)
    while fold.sequence < row.sequence:
        events = await store.events(row.scope, row.task_id, fold.sequence, PAGE)
        if not events:
            break  # deleted meanwhile
        for event in events:
            fold.apply(event)
    return fold
