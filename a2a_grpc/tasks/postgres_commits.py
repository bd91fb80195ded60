"""Changes of many turns on their way to PostgreSQL, written in groups.

Laws: what is waiting when a connection falls free shares one transaction, its round trips and its one flush; a group
holds a task and a messageId once. A refusal is found before anything of its change is written, so it leaves the others
alone; after any other fault each change is tried on its own. The rules of a change lie in fence.py.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, NamedTuple

import asyncpg

from a2a_grpc.tasks import schema as sql
from a2a_grpc.tasks import schema_postgres as pg
from a2a_grpc.tasks.fence import admit
from a2a_grpc.tasks.postgres_link import BROKEN, FULL, UNDONE, Again, Connection, PostgresLink, many, rows
from a2a_grpc.tasks.store import Change, Conflict, Dedupe, Duplicate, LeaseLost, Scope, TaskRow

LANES: Final = 2
"""Groups on their way at a time: while one waits for the disk, the next is made."""
_GROUP = 256  # most changes in one transaction
_COUNTED = 500  # after so many changes of tasks their tallies are summed up

Outcome = int | Exception
"""The task's token, or why the change was refused."""


class _Job(NamedTuple):
    """since: when the change was given, as the loop's clock showed. doubted: whether it may have been written, or may
    yet be, by a statement whose answer did not come."""

    change: Change
    future: "asyncio.Future[int]"
    since: float
    doubted: bool = False


class Commits:
    """Takes changes and writes them over `link`, as the module says."""

    def __init__(self, link: PostgresLink) -> None:
        self._link = link
        self._waiting: list[_Job] = []
        self._lanes: set[asyncio.Task[None]] = set()
        self._counted = 0

    def submit(self, change: Change) -> "asyncio.Future[int]":
        """The change's future: the token once it is durable. It is done even if nobody waits."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[int] = loop.create_future()
        self._waiting.append(_Job(change, future, loop.time()))
        if len(self._lanes) < LANES:
            self._lanes.add(asyncio.create_task(self._lane(), name="commits"))
        return future

    async def finish(self) -> None:
        """Wait until everything that was taken is settled."""
        while self._lanes:
            await asyncio.wait(self._lanes)

    async def _lane(self) -> None:
        try:
            while jobs := self._take():
                await self._settle(jobs)
                if self._counted >= _COUNTED:
                    await self.sum_up()
        finally:  # in the same step that found nothing, so that nothing is taken in between and left
            self._lanes.discard(asyncio.current_task())

    def _take(self) -> list[_Job]:
        taken: list[_Job] = []
        left: list[_Job] = []
        tasks: set[str] = set()
        sent: set[tuple[Scope, str]] = set()
        for job in self._waiting:
            change = job.change
            key = change.dedupe and (change.scope, change.dedupe.message_id)
            if len(taken) == _GROUP or change.task_id in tasks or key in sent:
                left.append(job)
                continue
            taken.append(job)
            tasks.add(change.task_id)
            if key:
                sent.add(key)
        self._waiting = left
        return taken

    async def _settle(self, jobs: list[_Job]) -> None:
        try:
            light = [job for job in jobs if not job.doubted and _only_adds(job.change)]
            reached = await self._append([job.change for job in light]) if light else frozenset[str]()
            if reached is None:
                jobs = [job._replace(doubted=job.doubted or job in light) for job in jobs]
            else:
                for job in light:
                    if job.change.task_id in reached and not job.future.done():
                        job.future.set_result(job.change.token or 0)
                jobs = [job for job in jobs if job.change.task_id not in reached]
            if not jobs:
                return
            # In one order everywhere, so that no two groups wait for each other.
            jobs.sort(key=lambda job: job.change.task_id)
            outcomes = await self._link.transact(partial(_write, jobs=jobs))
            self._counted += len(jobs)
        except Exception as error:
            if len(jobs) > 1 and not isinstance(error, (*BROKEN, FULL)):
                for job in jobs:
                    await self._settle([job])
                return
            outcomes = [error] * len(jobs)
        for job, outcome in zip(jobs, outcomes, strict=True):
            if job.future.done():  # the caller gave up waiting; what was done stays done
                continue
            if isinstance(outcome, Exception):
                job.future.set_exception(outcome)
            else:
                job.future.set_result(outcome)

    async def sum_up(self) -> None:
        """Sum the tallies up, which makes lists cheaper; what cannot be done now is left."""
        self._counted = 0
        with suppress(*BROKEN, asyncpg.PostgresError):
            await self._link.rows_once(pg.SUM_TALLIES, {})

    async def _append(self, changes: Sequence[Change]) -> frozenset[str] | None:
        """Write, by one statement, changes that only add events; the ids of the tasks where they fitted, None if nobody
        knows."""
        try:
            found = await self._link.rows_once(pg.APPEND, _columns(changes))
            return frozenset(task_id for (task_id,) in found)
        except UNDONE:
            return frozenset()
        except BROKEN:
            return None


def _only_adds(change: Change) -> bool:
    return not (
        change.token is None
        or not change.events
        or change.snapshot is not None
        or change.author_state is not None
        or change.take is not None
        or change.over
        or change.release
        or change.cancel is not None
        or change.dedupe is not None
        or change.push_configs
        or change.memory
        or change.posts
    ) and all(event.sequence == number for number, event in enumerate(change.events, change.expected + 1))


def _columns(changes: Sequence[Change]) -> dict[str, list[Any]]:
    events = [(change.task_id, event) for change in changes for event in change.events]
    return {
        "task_ids": [change.task_id for change in changes],
        "agents": [change.scope.agent for change in changes],
        "tenants": [change.scope.tenant for change in changes],
        "owners": [change.scope.owner for change in changes],
        "tokens": [change.token for change in changes],
        "expected": [change.expected for change in changes],
        "reached": [change.expected + len(change.events) for change in changes],
        "notify": [change.notify for change in changes],
        "of_tasks": [task_id for task_id, _ in events],
        "sequences": [event.sequence for _, event in events],
        "payloads": [event.body for _, event in events],
    }


class _Admitted(NamedTuple):
    task: int
    context_id: str
    change: Change
    columns: dict[str, Any]


async def _write(connection: Connection, jobs: Sequence[_Job]) -> list[Outcome]:
    """What became of each change; all that were not refused are written."""
    changes = [job.change for job in jobs]
    outcomes: list[Outcome] = [0] * len(changes)
    sent = [(change.scope, change.dedupe, change.now_ms) for change in changes]
    duplicates = await claim(connection, sent)
    found = await rows(connection, pg.GUARDS, {"task_ids": [change.task_id for change in changes]})
    there = {row["task_id"]: row for row in found}
    admitted: list[_Admitted] = []
    unused: list[dict[str, Any]] = []
    for index, change in enumerate(changes):
        if change.dedupe and (first := duplicates.get((change.scope, change.dedupe.message_id))):
            outcomes[index] = Duplicate(first)
            continue
        row = there.get(change.task_id)
        if jobs[index].doubted and row and _is_done(row, change):
            outcomes[index] = row["token"]
            continue
        try:
            columns = admit(_guard(row) if row else None, change)
        except (Conflict, LeaseLost, ValueError) as refusal:
            outcomes[index] = refusal
            if change.dedupe:
                unused.append(sql.values_of(change.scope, message_id=change.dedupe.message_id))
            continue
        if columns.get("lease_until_ms"):
            # Seconds that the change waited for a server that was lost do not count.
            waited = int(asyncio.get_running_loop().time() - jobs[index].since)
            columns["lease_until_ms"] += 1000 * waited
        outcomes[index] = columns["token"]
        admitted.append(
            _Admitted(row["id"], row["context_id"], change, columns)
            if row
            else _Admitted(0, change.context_id, change, columns)
        )
    await many(connection, pg.DROP_DEDUPE, unused)
    if admitted:
        await _apply(connection, await _set_tasks(connection, admitted))
    return outcomes


def _is_done(row: Any, change: Change) -> bool:
    """Whether a change that only adds events was written: only the holder of a token moves a task and leaves the token
    as it is. From now on, as the row is locked, it is not written by what is late."""
    return bool(row["sequence"] == change.expected + len(change.events) and row["token"] == change.token)


def _guard(row: Any) -> TaskRow:
    return TaskRow(
        Scope(row["agent"], row["tenant"], row["owner"]),
        row["task_id"],
        row["context_id"],
        0,
        0,
        0,
        row["sequence"],
        holder=row["holder"],
        token=row["token"],
        lease_until_ms=row["lease_until_ms"],
    )


async def claim(
    connection: Connection, every: Iterable[tuple[Scope, Dedupe | None, int]]
) -> dict[tuple[Scope, str], Dedupe]:
    """Store the dedupe rows, each with the time of its change, where none is alive; answers those that are."""
    wanted = {(scope, dedupe.message_id): (dedupe, now_ms) for scope, dedupe, now_ms in every if dedupe is not None}
    if not wanted:
        return {}
    stored = await many(
        connection,
        pg.CLAIM_DEDUPE,
        [
            sql.values_of(key[0], now_ms=now_ms, **dedupe._asdict())
            for key, (dedupe, now_ms) in sorted(wanted.items(), key=lambda item: item[0])
        ],
    )
    free = {(Scope(*row[:3]), row[3]) for row in stored}
    first: dict[tuple[Scope, str], Dedupe] = {}
    for key in wanted.keys() - free:
        values = sql.values_of(key[0], message_id=key[1], now_ms=wanted[key][1])
        if not (seen := await rows(connection, sql.SEEN, values)):
            raise Again  # it was deleted since
        first[key] = Dedupe(*seen[0])
    return first


async def _set_tasks(connection: Connection, admitted: Sequence[_Admitted]) -> list[_Admitted]:
    """Write the rows of tasks and snapshots; answers the changes with the numbers of their tasks."""
    new = [entry for entry in admitted if not entry.task]
    rows_of_new = [sql.new_task(entry.change, entry.columns) for entry in new]
    numbers = await many(connection, sql.ADD_TASK, rows_of_new)
    made = [entry._replace(task=number) for entry, (number,) in zip(new, numbers, strict=True)]
    snapshots = [row | {"task": entry.task} for row, entry in zip(rows_of_new, made, strict=True)]
    await many(connection, sql.ADD_SNAPSHOT, snapshots)
    old = [entry for entry in admitted if entry.task]
    updates: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for entry in old:
        heavy = entry.columns.keys() & set(sql.SNAPSHOT_COLUMNS)
        values = entry.columns | {"task": entry.task}
        updates[sql.set_task(entry.columns.keys() - heavy)].append(values)
        if heavy:
            updates[sql.set_snapshot(heavy)].append(values)
    for statement, values_of_all in updates.items():
        await many(connection, statement, values_of_all)
    return old + made


async def _apply(connection: Connection, admitted: Sequence[_Admitted]) -> None:
    """Write what lies beside the tasks."""
    work: dict[str, list[dict[str, Any]]] = defaultdict(list)
    remembered: list[tuple[Scope, str, Change]] = []
    for task, context_id, change, _ in admitted:
        work[pg.ADD_EVENT] += [
            {"task": task, "sequence": event.sequence, "payload": event.body} for event in change.events
        ]
        work[sql.PUT_CONFIG] += [
            config._asdict() | {"task": task, "cursor": change.expected} for config in change.push_configs
        ]
        if change.notify:
            work[sql.MOVE_DUE].append({"task": task, "notify": change.notify})
        work[sql.TAKE_POST] += [{"number": number, "taken": taken} for number, taken in change.posts.items()]
        if change.memory:
            remembered.append((change.scope, context_id, change))
        elif change.take is not None:
            values = sql.values_of(change.scope, context_id=context_id, now_ms=change.now_ms)
            work[sql.USE_CONTEXT].append(values)
    work[sql.USE_CONTEXT].sort(key=lambda values: tuple(values.values()))
    for statement, values_of_all in work.items():
        await many(connection, statement, values_of_all)
    for scope, context_id, change in sorted(remembered, key=lambda entry: entry[:2]):
        await remember(connection, scope, context_id, change.memory, change.now_ms)


async def remember(
    connection: Connection, scope: Scope, context_id: str, memory: Mapping[str, bytes | None], now_ms: int
) -> int:
    """Write to the memory of a context; answers the context's number."""
    values = sql.values_of(scope, context_id=context_id, now_ms=now_ms)
    [(context,)] = await rows(connection, sql.ADD_CONTEXT, values)
    writes: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for key, value in memory.items():
        statement = sql.DROP_MEMORY if value is None else sql.SET_MEMORY
        writes[statement].append({"context": context, "key": key, "value": value})
    for statement, values_of_all in writes.items():
        await many(connection, statement, values_of_all)
    return int(context)
