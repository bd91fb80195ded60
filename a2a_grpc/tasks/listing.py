"""Tasks that are read, alone or on a page: as the bytes that they have in the answer, with as much as was asked for.

Laws: a task that rests is what its row says, and is not read again while that is kept; a task at work is folded by who
asks. What is kept of a page is found by its very rows, which stay as they are. Nothing here does I/O.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from a2a_stubs import v1

from a2a_grpc.ready import LARGEST_KEPT, Bounded, Kept, Stored
from a2a_grpc.tasks.store import TaskRow


class Page(NamedTuple):
    """Tasks of a list, each as a serialised ListTasksResponse of it alone (see Ready); how many match in all, whether
    more follow, and the place of the last one (see TaskQuery)."""

    entries: Sequence[bytes]
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


def answer_of(row: TaskRow, history: int) -> v1.Task | Stored:
    """The task of a row that says all of it, with the last `history` messages at most: as it was told before, if that
    is kept."""
    body, kept = row.head + row.artifacts, _answers(history)
    small = len(body) <= LARGEST_KEPT
    if small and (told := kept.find(body)) is not None:
        return Stored(v1.Task, told)
    task = cut(v1.Task.FromString(body), history)
    if small:
        told = task.SerializeToString()
        kept.keep(body, told, len(told))
    return task


@lru_cache(maxsize=4)
def _answers(history: int) -> Kept[bytes]:
    return Kept()


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


ROW_BYTES: Final = 1024
"""What a row takes besides its task, twice as much as is usual."""


class Pages:
    """The entries of pages that were given before, by their rows, which a store gives again (see TaskPage)."""

    def __init__(self) -> None:
        self._kept: Bounded[tuple[int, bool, int], tuple[Sequence[TaskRow], tuple[bytes, ...]]] = Bounded()

    def find(self, rows: Sequence[TaskRow], artifacts: bool, history: int) -> tuple[bytes, ...] | None:
        """The entries of rows, None if they are not kept."""
        found = self._kept.find((id(rows), artifacts, history))  # the id of no other while these are kept
        return found[1] if found is not None else None

    def keep(
        self, rows: Sequence[TaskRow], artifacts: bool, history: int, entries: Iterable[bytes]
    ) -> tuple[bytes, ...]:
        """The entries of rows that say all of their tasks, kept if there is room."""
        made = tuple(entries)
        size = sum(map(len, made))
        for row in rows:
            size += ROW_BYTES + len(row.head) + len(row.artifacts) + len(row.author_state)
        self._kept.put((id(rows), artifacts, history), (rows, made), size)
        return made
