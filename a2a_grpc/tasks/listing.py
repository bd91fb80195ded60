"""Tasks on a page: each as the bytes that it has in the answer, with as much of it as was asked for.

Laws: a task that rests is what its row says, and is not read again while that is kept; a task at work is folded by who
asks. Nothing here does I/O.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from a2a_stubs import v1

from a2a_grpc.ready import Kept
from a2a_grpc.tasks.store import TaskRow


class Page(NamedTuple):
    """Tasks of a list, each as a serialised ListTasksResponse of it alone; how many match in all, whether more follow,
    and the place of the last one (see TaskQuery)."""

    entries: list[bytes]
    total: int
    more: bool
    last: tuple[int, str] | None


def cut(task: v1.Task, history: int) -> v1.Task:
    """The task itself with the last `history` messages at most, none for 0 (HIST-01 to HIST-05)."""
    if history <= 0:
        task.ClearField("history")
    elif len(task.history) > history:
        del task.history[:-history]
    return task


def entry_of(task: bytes | v1.Task, history: int) -> bytes:
    """A task, or a serialised one, as an entry of a page."""
    page = v1.ListTasksResponse()
    if isinstance(task, bytes):
        page.tasks.add().MergeFromString(task)
    else:
        page.tasks.add().CopyFrom(task)
    cut(page.tasks[0], history)
    return page.SerializeToString()


def entries_of(rows: Iterable[TaskRow], artifacts: bool, history: int) -> list[bytes]:
    """The entries of rows that say all of their tasks; without artifacts if False."""
    kept = _kept(history)
    find = kept.find
    bodies = [row.head + row.artifacts for row in rows] if artifacts else [row.head for row in rows]
    return [find(body) or _made(kept, body, history) for body in bodies]


def _made(kept: Kept[bytes], body: bytes, history: int) -> bytes:
    made = entry_of(body, history)
    return kept.keep(body, made, len(made))


@lru_cache(maxsize=4)
def _kept(history: int) -> Kept[bytes]:
    """What is kept for readers of that much history; few lengths are asked for."""
    return Kept()
