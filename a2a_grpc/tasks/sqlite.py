"""The store in one SQLite file: for one process that must not forget.

Laws: every method is one piece of work for SQLiteFile, which gives it a transaction; what may be refused is refused
before the first write. The file is written ahead (WAL) and flushed at every transaction (synchronous FULL): what was
acknowledged survives a killed process and a power cut. SQL text lives in schema.py, the rules of a change in fence.py.
"""

import os
import sqlite3
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from a2a_grpc.tasks import schema as sql
from a2a_grpc.tasks.fence import admit, claimed, free
from a2a_grpc.tasks.schema import values_of
from a2a_grpc.tasks.sqlite_file import SQLiteFile
from a2a_grpc.tasks.start import now_ms
from a2a_grpc.tasks.store import (
    Backlog,
    Change,
    Claimed,
    Counts,
    Dedupe,
    Delivery,
    Duplicate,
    Event,
    Post,
    PushConfig,
    Report,
    Retention,
    Scope,
    TaskPage,
    TaskQuery,
    TaskRow,
    TooMany,
)

_TRIM_EVENTS = 20_000  # about as many events are deleted in one transaction


class SQLiteStore:
    """A Store in the SQLite file at `path`; see Store for what each method does.

    The file is made, readable by its owner alone, if it is missing; its folder must be there. `<path>.lock` beside it
    is held while the store is open and falls free when the process ends, however it ends. Used from the event loop
    that opened it. A failing disk raises sqlite3.Error to the caller whose work failed; the store goes on. A call on
    a store that is not open raises StoreError.
    """

    exclusive = True

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = SQLiteFile(os.fspath(path))

    def now_ms(self) -> int:
        """This process's time (see Store.now_ms)."""
        return now_ms()

    async def open(self) -> None:
        """Take the file and bring its schema up to date.

        Raises StoreBusy if another store serves from the file; StoreError if there is no such folder, the file cannot
        be opened, is no SQLite database of ours, or has a newer schema than this release.
        """
        await self._file.open()

    async def open_beside(self) -> None:
        """Open the file beside whoever serves from it, for a short look or a small change: nothing is taken, nothing
        is brought up to date. Raises StoreError: no such database; OtherSchema."""
        await self._file.open(alone=False)

    async def close(self) -> None:
        """Finish what was accepted, close the file, let go of the lock."""
        await self._file.close()

    async def schema(self) -> int:
        """The number of the schema in the file, 0 for none; nothing is changed. Raises StoreError: no such database."""
        return await self._file.schema()

    @property
    def transactions(self) -> int:
        """Transactions flushed so far; with concurrent commits fewer than commits."""
        return self._file.transactions

    # -- tasks

    async def commit(self, change: Change) -> int:
        """Apply a change, durably (see Store.commit)."""
        return await self._file.write(lambda connection: _commit(connection, change))

    async def task(self, scope: Scope, task_id: str) -> TaskRow | None:
        """The task (see Store.task)."""
        rows = await self._file.rows(sql.TASK, values_of(scope, task_id=task_id))
        return _row(rows[0]) if rows else None

    async def events(self, scope: Scope, task_id: str, after: int, limit: int) -> list[Event]:
        """Events after a number (see Store.events)."""
        rows = await self._file.rows(sql.EVENTS, values_of(scope, task_id=task_id, after=after, limit=limit))
        return [Event(sequence, body=payload) for sequence, payload in rows]

    async def shorten(self, scope: Scope, task_id: str, upto: int) -> None:
        """Forget events (see Store.shorten)."""
        values = values_of(scope, task_id=task_id, upto=upto)
        await self._file.write(lambda connection: connection.execute(sql.SHORTEN, values).rowcount)

    async def tasks(self, scope: Scope, query: TaskQuery) -> TaskPage:
        """A page of tasks and their number, both of one moment (see Store.tasks)."""
        filters = frozenset(name for name in sql.FILTERS if getattr(query, name))
        values = values_of(scope, **query._asdict(), nothing=b"")
        values["before_ms"], values["before_id"] = values.pop("before") or (0, "")
        values["limit"] += 1

        def work(connection: sqlite3.Connection) -> TaskPage:
            connection.execute("BEGIN")
            try:
                rows = connection.execute(sql.page(filters), values).fetchall()
                (total,) = connection.execute(sql.total(filters), values).fetchone()
            finally:
                connection.execute("COMMIT")
            return TaskPage([_row(row) for row in rows[: query.limit]], total, len(rows) > query.limit)

        return await self._file.read(work)

    # -- leases and cancel

    async def renew(self, holder: str, until_ms: int, tokens: Mapping[str, int]) -> frozenset[str]:
        """Lengthen leases (see Store.renew)."""

        def work(connection: sqlite3.Connection) -> frozenset[str]:
            lost = set()
            for task_id, token in tokens.items():
                values = {"holder": holder, "until_ms": until_ms, "task_id": task_id, "token": token}
                if not connection.execute(sql.RENEW, values).fetchall():
                    lost.add(task_id)
            return frozenset(lost)

        return await self._file.write(work)

    async def cancels(self, holder: str) -> dict[str, bytes]:
        """Cancel requests that wait (see Store.cancels)."""
        return dict(await self._file.rows(sql.CANCELS, {"holder": holder}))

    async def lost(self, holder: str, now_ms: int, limit: int) -> list[TaskRow]:
        """Tasks whose turn has no owner any more (see Store.lost)."""
        rows = await self._file.rows(sql.LOST_TO_OTHERS, {"holder": holder, "now_ms": now_ms, "limit": limit})
        return [_row(row) for row in rows]

    async def places(self, task_ids: Sequence[str]) -> dict[str, tuple[Scope, int]]:
        """Where tasks are (see Store.places)."""
        found = [row for name in task_ids for row in await self._file.rows(sql.PLACE, {"task_id": name})]
        return {task_id: (Scope(*scope), sequence) for task_id, *scope, sequence in found}

    async def request_cancel(self, scope: Scope, task_id: str, request: bytes) -> TaskRow | None:
        """Leave a cancel request if a turn is running (see Store.request_cancel)."""
        values = values_of(scope, task_id=task_id, cancel=request)

        def work(connection: sqlite3.Connection) -> TaskRow | None:
            connection.execute(sql.REQUEST_CANCEL, values)
            found = connection.execute(sql.TASK, values).fetchone()
            return _row(found) if found else None

        return await self._file.write(work)

    # -- messages for turns at work

    async def post(self, scope: Scope, task_id: str, token: int, message: bytes, digest: bytes, until_ms: int) -> int:
        """Leave a message for a turn (see Store.post)."""
        values = values_of(scope, task_id=task_id, token=token, message=message, digest=digest, until_ms=until_ms)
        return await self._file.write(lambda connection: _first(connection, sql.ADD_POST, values) or 0)

    async def posts(self, holder: str) -> list[Post]:
        """Messages that wait (see Store.posts)."""
        return [Post(*row) for row in await self._file.rows(sql.POSTS, {"holder": holder})]

    async def refuse(self, holder: str, number: int) -> None:
        """Refuse a message (see Store.refuse)."""
        values = {"holder": holder, "number": number}
        await self._file.write(lambda connection: connection.execute(sql.REFUSE_POST, values).rowcount)

    async def posted(self, number: int) -> int | None:
        """What became of a message (see Store.posted)."""

        def work(connection: sqlite3.Connection) -> int | None:
            taken = _first(connection, sql.DROP_POST, values)
            return 0 if _first(connection, sql.POST, values) else taken or None

        values = {"number": number}
        return await self._file.write(work)

    # -- repeated sends and conversations

    async def seen(self, scope: Scope, message_id: str, now_ms: int) -> Dedupe | None:
        """The first outcome of a messageId (see Store.seen)."""
        rows = await self._file.rows(sql.SEEN, values_of(scope, message_id=message_id, now_ms=now_ms))
        return Dedupe(*rows[0]) if rows else None

    async def claim_messages(self, claims: Sequence[tuple[Scope, Dedupe]], now_ms: int) -> Mapping[Claimed, Dedupe]:
        """Store claims (see Store.claim_messages)."""

        def work(connection: sqlite3.Connection) -> Mapping[Claimed, Dedupe]:
            stored, keep = partial(_seen, connection, now_ms=now_ms), partial(_remember_sent, connection)
            return claimed(claims, stored, keep, now_ms)

        return await self._file.write(work)

    async def remember_reply(
        self,
        scope: Scope,
        context_id: str,
        messages: Sequence[bytes],
        memory: Mapping[str, bytes | None],
        dedupe: Dedupe | None,
        now_ms: int,
    ) -> None:
        """Keep a direct exchange (see Store.remember_reply)."""

        def work(connection: sqlite3.Connection) -> None:
            _refuse_duplicate(connection, scope, dedupe, now_ms)
            if dedupe is not None:
                _remember_sent(connection, scope, dedupe)
            context = _remember(connection, scope, context_id, memory, now_ms)
            connection.executemany(sql.ADD_MESSAGE, sql.exchange(context, messages, now_ms))

        await self._file.write(work)

    async def messages(self, scope: Scope, context_id: str, limit: int) -> list[bytes]:
        """The last messages of direct exchanges (see Store.messages)."""
        rows = await self._file.rows(sql.MESSAGES, values_of(scope, context_id=context_id, limit=limit))
        return [message for (message,) in reversed(rows)]

    async def memory(self, scope: Scope, context_id: str) -> dict[str, bytes]:
        """The memory of a context (see Store.memory)."""
        return dict(await self._file.rows(sql.MEMORY, values_of(scope, context_id=context_id)))

    # -- push notification configs

    async def put_push_config(self, scope: Scope, config: PushConfig, most: int) -> bool:
        """Create or replace a config (see Store.put_push_config)."""

        def work(connection: sqlite3.Connection) -> bool:
            if found := connection.execute(sql.TASK_NUMBER, values_of(scope, task_id=config.task_id)).fetchone():
                values = config._asdict() | {"task": found[0], "cursor": found[1]}
                if connection.execute(sql.OTHER_CONFIGS, values).fetchone()[0] >= most:
                    raise TooMany
                connection.execute(sql.PUT_CONFIG, values)
            return found is not None

        return await self._file.write(work)

    async def push_configs(self, scope: Scope, task_id: str, after: str, limit: int) -> list[PushConfig] | None:
        """Configs of a task (see Store.push_configs)."""
        rows = await self._file.rows(sql.CONFIGS, values_of(scope, task_id=task_id, after=after, limit=limit))
        # The join answers a task without configs by one row without a config.
        return [PushConfig(*row) for row in rows if row[1] is not None] if rows else None

    async def push_config(self, scope: Scope, task_id: str, config_id: str) -> PushConfig | None:
        """One config (see Store.push_config)."""
        rows = await self._file.rows(sql.CONFIG, values_of(scope, task_id=task_id, config_id=config_id))
        return PushConfig(*rows[0]) if rows else None

    async def delete_push_config(self, scope: Scope, task_id: str, config_id: str) -> bool:
        """Remove a config (see Store.delete_push_config)."""

        def work(connection: sqlite3.Connection) -> bool:
            if found := connection.execute(sql.TASK_NUMBER, values_of(scope, task_id=task_id)).fetchone():
                connection.execute(sql.DROP_CONFIG, {"task": found[0], "config_id": config_id})
            return found is not None

        return await self._file.write(work)

    async def due(self, holder: str, now_ms: int, until_ms: int, limit: int) -> list[Delivery]:
        """Claim configs that have something to send (see Store.due)."""

        def work(connection: sqlite3.Connection) -> list[Delivery]:
            rows = connection.execute(sql.DUE, {"now_ms": now_ms, "limit": limit}).fetchall()
            claim = {"holder": holder, "until_ms": until_ms}
            connection.executemany(sql.CLAIM, [claim | {"task": row[-1], "config_id": row[4]} for row in rows])
            return [sql.delivery_of(row) for row in rows]

        return await self._file.write(work)

    async def delivered(self, delivery: Delivery, report: Report) -> None:
        """Report on a claimed delivery (see Store.delivered)."""
        config = delivery.config
        values = values_of(delivery.scope, task_id=config.task_id, config_id=config.config_id, config=config.config)
        values |= report._asdict()
        await self._file.write(lambda connection: connection.execute(sql.DELIVERED, values).rowcount)

    async def backlog(self, after: tuple[str, str], limit: int, given_up: bool) -> list[Backlog]:
        """Configs that are behind (see Store.backlog)."""
        values = {"task_id": after[0], "config_id": after[1], "limit": limit}
        return list(map(sql.backlog_of, await self._file.rows(sql.backlog(given_up), values)))

    async def revive(self, configs: Sequence[PushConfig]) -> int:
        """Take configs up again (see Store.revive)."""

        def work(connection: sqlite3.Connection) -> int:
            return sum(len(connection.execute(sql.REVIVE, config._asdict()).fetchall()) for config in configs)

        return await self._file.write(work)

    async def every_config(self, after: tuple[str, str], limit: int) -> list[PushConfig]:
        """Configs of all scopes (see push_secrets.Keeps)."""
        values = {"task_id": after[0], "after": after[1], "limit": limit}
        return [PushConfig(*row) for row in await self._file.rows(sql.EVERY_CONFIG, values)]

    async def swap_configs(self, anew: Sequence[tuple[PushConfig, bytes]], now_ms: int) -> int:
        """Write configs in another form (see push_secrets.Keeps)."""
        values = [config._asdict() | {"anew": form, "now_ms": now_ms} for config, form in anew]

        def work(connection: sqlite3.Connection) -> int:
            return sum(len(connection.execute(sql.SWAP_CONFIG, each).fetchall()) for each in values)

        return await self._file.write(work)

    async def counts(self, now_ms: int) -> Counts:
        """How much there is to look after (see Store.counts)."""
        [row] = await self._file.rows(sql.COUNTS, {"now_ms": now_ms})
        return Counts(*row)

    # -- retention

    async def trim(self, retention: Retention) -> list[str]:
        """Delete what is no longer kept, in transactions small enough to let others in between (see Store.trim)."""
        values = sql.kept(retention)
        victims = await self._file.read(partial(_victims, values=values))
        gone: list[str] = []
        while victims:
            gone += await self._file.write(partial(_drop, victims=_share(victims)))
        for statement in sql.DROP_EXPIRED:
            while await self._file.write(partial(_delete, statement=statement, values=values)) == retention.batch:
                pass
        await sql.shed(retention, self._file.rows, self._drop_messages)
        return gone

    async def _drop_messages(self, every: list[dict[str, Any]]) -> None:
        await self._file.write(lambda connection: connection.executemany(sql.DROP_MESSAGE, every).rowcount)


# -- work on a connection


def _first(connection: sqlite3.Connection, statement: str, values: Mapping[str, Any]) -> Any:
    """The first value of the first row, None without rows."""
    found = connection.execute(statement, values).fetchall()
    return found[0][0] if found else None


def _row(row: tuple[Any, ...]) -> TaskRow:
    return TaskRow(Scope(*row[:3]), *row[3:])


def _commit(connection: sqlite3.Connection, change: Change) -> int:
    _refuse_duplicate(connection, change.scope, change.dedupe, change.now_ms)
    found = connection.execute(sql.GUARD, {"task_id": change.task_id}).fetchone()
    row = found and TaskRow(
        Scope(*found[1:4]),
        change.task_id,
        found[4],
        0,
        0,
        0,
        found[5],
        holder=found[6],
        token=found[7],
        lease_until_ms=found[8],
    )
    columns = admit(row, change)
    token: int = columns["token"]
    context_id = row.context_id if row else change.context_id
    task = _set(connection, found[0], columns) if row else _add(connection, change, columns)
    _add_events(connection, task, change.events)
    for config in change.push_configs:
        connection.execute(sql.PUT_CONFIG, config._asdict() | {"task": task, "cursor": change.expected})
    if change.notify:
        connection.execute(sql.MOVE_DUE, {"task": task, "notify": change.notify})
    if change.dedupe is not None:
        _remember_sent(connection, change.scope, change.dedupe)
    for number, taken in change.posts.items():
        connection.execute(sql.TAKE_POST, {"number": number, "taken": taken})
    if change.memory:
        _remember(connection, change.scope, context_id, change.memory, change.now_ms)
    elif change.take is not None:
        connection.execute(sql.USE_CONTEXT, values_of(change.scope, context_id=context_id, now_ms=change.now_ms))
    return token


def _add(connection: sqlite3.Connection, change: Change, columns: dict[str, Any]) -> int:
    values = sql.new_task(change, columns)
    task: int = connection.execute(sql.ADD_TASK, values).fetchone()[0]
    connection.execute(sql.ADD_SNAPSHOT, values | {"task": task})
    return task


def _add_events(connection: sqlite3.Connection, task: int, events: Sequence[Event]) -> None:
    for start in range(0, len(events), sql.EVENTS_AT_ONCE):
        values: list[Any] = []
        for event in events[start : start + sql.EVENTS_AT_ONCE]:
            values += task, event.sequence, event.body
        connection.execute(sql.ADD_EVENTS[len(values) // 3], values)


def _set(connection: sqlite3.Connection, task: int, columns: dict[str, Any]) -> int:
    heavy = columns.keys() & set(sql.SNAPSHOT_COLUMNS)
    columns["task"] = task
    connection.execute(sql.set_task(columns.keys() - heavy - {"task"}), columns)
    if heavy:
        connection.execute(sql.set_snapshot(heavy), columns)
    return task


def _refuse_duplicate(connection: sqlite3.Connection, scope: Scope, dedupe: Dedupe | None, now_ms: int) -> None:
    if dedupe and (first := _seen(connection, scope, dedupe, now_ms)) and not free(dedupe, first, now_ms):
        raise Duplicate(first)


def _seen(connection: sqlite3.Connection, scope: Scope, dedupe: Dedupe, now_ms: int) -> Dedupe | None:
    values = values_of(scope, message_id=dedupe.message_id, now_ms=now_ms)
    found = connection.execute(sql.SEEN, values).fetchone()
    return Dedupe(*found) if found else None


def _remember_sent(connection: sqlite3.Connection, scope: Scope, dedupe: Dedupe) -> None:
    connection.execute(sql.ADD_DEDUPE, values_of(scope, **dedupe._asdict()))


def _remember(
    connection: sqlite3.Connection, scope: Scope, context_id: str, memory: Mapping[str, bytes | None], now_ms: int
) -> int:
    values = values_of(scope, context_id=context_id, now_ms=now_ms)
    context: int = connection.execute(sql.ADD_CONTEXT, values).fetchone()[0]
    for key, value in memory.items():
        statement = sql.DROP_MEMORY if value is None else sql.SET_MEMORY
        connection.execute(statement, {"context": context, "key": key, "value": value})
    return context


def _victims(connection: sqlite3.Connection, values: dict[str, Any]) -> list[tuple[int, int, int]]:
    """Tasks to delete, as (id, sequence, token): at most `limit`, the first to go last."""
    limit: int = values["limit"]
    found = dict.fromkeys(connection.execute(sql.AGED, values).fetchall())
    found |= dict.fromkeys(connection.execute(sql.STUCK, values).fetchall())
    for agent, tenant, owner, excess in connection.execute(sql.CROWDED, values).fetchall():
        if len(found) >= limit:
            break
        crowd = values_of(Scope(agent, tenant, owner), limit=min(excess, limit))
        found |= dict.fromkeys(connection.execute(sql.OLDEST, crowd).fetchall())
    return list(found)[:limit][::-1]


def _share(victims: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Take off the end as many as one transaction may delete, at least one."""
    share, weight = [victims.pop()], 0
    while victims and (weight := weight + victims[-1][1]) < _TRIM_EVENTS:
        share.append(victims.pop())
    return share


def _drop(connection: sqlite3.Connection, victims: list[tuple[int, int, int]]) -> list[str]:
    gone: list[str] = []
    for task, sequence, token in victims:
        values = {"task": task, "sequence": sequence, "token": token}
        for (task_id,) in connection.execute(sql.DROP_TASK, values).fetchall():
            connection.execute(sql.DROP_SENT, {"task_id": task_id})
            gone.append(task_id)
    return gone


def _delete(connection: sqlite3.Connection, statement: str, values: dict[str, Any]) -> int:
    return connection.execute(statement, values).rowcount
