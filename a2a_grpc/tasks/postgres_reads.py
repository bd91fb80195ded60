"""Reads of many logs from PostgreSQL: those that come while others are on their way share one statement.

Laws: a read that finds a free lane goes at once and alone; none waits for others to come. What those that shared a
statement get is what each would have got alone, faults too.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from a2a_grpc.tasks import schema as sql
from a2a_grpc.tasks import schema_postgres as pg
from a2a_grpc.tasks.postgres_link import PostgresLink
from a2a_grpc.tasks.store import Event, Scope

LANES: Final = 2
"""Statements on their way at a time."""
_TOGETHER = 64  # most logs in one statement


class _Asked(NamedTuple):
    scope: Scope
    task_id: str
    after: int
    limit: int


_Job = tuple[_Asked, "asyncio.Future[list[Event]]"]


class Reads:
    """Reads logs over `link`, as the module says."""

    def __init__(self, link: PostgresLink) -> None:
        self._link = link
        self._busy = 0
        self._waiting: list[_Job] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def events(self, scope: Scope, task_id: str, after: int, limit: int) -> list[Event]:
        """Events of one task after a number (see Store.events)."""
        if self._busy >= LANES:
            future: asyncio.Future[list[Event]] = asyncio.get_running_loop().create_future()
            self._waiting.append((_Asked(scope, task_id, after, limit), future))
            return await future
        self._busy += 1
        try:
            values = sql.values_of(scope, task_id=task_id, after=after, limit=limit)
            return _events(await self._link.rows(sql.EVENTS, values))
        finally:
            self._next()

    def _next(self) -> None:
        """A lane is free: those who wait have it, or nobody."""
        jobs = [job for job in self._waiting if not job[1].done()]  # who gave up is done
        self._waiting = jobs[_TOGETHER:]
        if not jobs:
            self._busy -= 1
            return
        task = asyncio.create_task(self._together(jobs[:_TOGETHER]), name="reads")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _together(self, jobs: Sequence[_Job]) -> None:
        try:
            found = defaultdict(list)
            for number, *event in await self._link.rows(pg.EVENTS_OF_MANY, _columns(asked for asked, _ in jobs)):
                found[number].append(event)
            for number, (_, future) in enumerate(jobs, 1):
                if not future.done():
                    future.set_result(_events(found[number]))
        except Exception as fault:
            for _, future in jobs:
                if not future.done():
                    future.set_exception(fault)
        finally:
            self._next()


def _events(rows: Iterable[Sequence[object]]) -> list[Event]:
    return [Event(sequence, body=payload) for sequence, payload in rows]  # type: ignore[arg-type]


def _columns(every: Iterable[_Asked]) -> dict[str, list[object]]:
    scopes, task_ids, after, limits = map(list, zip(*every, strict=True))
    agents, tenants, owners = map(list, zip(*scopes, strict=True))
    columns = {"task_ids": task_ids, "agents": agents, "tenants": tenants, "owners": owners}
    return columns | {"after": after, "limits": limits}
