"""The store in PostgreSQL: for any number of processes, each of which may do everything.

Laws: every method is one statement, or one transaction of PostgresLink; what decides holds the lock of the task's row,
or is a condition of the statement that writes. The time is the server's: a process whose clock is wrong dates nothing
wrongly and takes nothing from others. SQL text lives in schema.py, the rules of a change in fence.py, the writing of
changes in postgres_commits.py, the reading of logs in postgres_reads.py.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeVar

import asyncpg

from a2a_grpc.tasks import schema as sql
from a2a_grpc.tasks import schema_postgres as pg
from a2a_grpc.tasks.postgres_commits import Commits, claim, remember
from a2a_grpc.tasks.postgres_link import Connection, PostgresLink, many, rows
from a2a_grpc.tasks.postgres_reads import Reads
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
    OtherSchema,
    Post,
    PushConfig,
    Report,
    Retention,
    Scope,
    TaskPage,
    TaskQuery,
    TaskRow,
    TooMany,
    Unreached,
)

_TRIM_EVENTS: Final = 20_000  # about as many events are deleted in one transaction
_T = TypeVar("_T")
_Victims = list[tuple[int, int, int]]


class PostgresStore:
    """A Store in the PostgreSQL database (14 or newer) at `url`; see Store for what each method does.

    url: as libpq takes it, such as `postgresql://user@host/name`; `?search_path=a2a` keeps the tables in that schema,
    which must be there. connections: most at a time, default 10. timeout: seconds that one statement may take, default
    10; a longer one raises the driver's QueryCanceledError. retry: seconds that a call waits for a server that is
    lost, default 15; then the driver's error is raised. Nothing is lost or done twice by a restart of the server.
    Used from the event loop that opened it. A call on a store that is not open raises StoreError.
    """

    exclusive = False

    def __init__(self, url: str, *, connections: int = 10, timeout: float = 10.0, retry: float = 15.0) -> None:
        self._link = PostgresLink(url, connections, timeout, retry)
        self._commits = Commits(self._link)
        self._reads = Reads(self._link)

    def now_ms(self) -> int:
        """The server's time (see Store.now_ms), once the store is open."""
        return now_ms() + self._link.ahead_ms()

    async def open(self) -> None:
        """Connect and bring the schema up to date; several processes may do so at once.

        Raises StoreError if there is no way to the server, or the schema is newer than this release.
        """
        await self._link.open()

    async def open_beside(self) -> None:
        """Connect beside whoever serves from the database, for a short look or a small change: nothing is brought up to
        date. Raises StoreError: no way to the server; OtherSchema."""
        await self._link.open(migrate=False)
        if (found := await self._link.schema()) != len(sql.MIGRATIONS):
            await self._link.close()
            raise OtherSchema(found, len(sql.MIGRATIONS))

    async def close(self) -> None:
        """Finish what was accepted, then disconnect."""
        await self._commits.finish()
        await self._link.close()

    async def schema(self) -> int:
        """The number of the schema in the database, 0 for none; opens and closes the store, changes nothing."""
        await self._link.open(migrate=False)
        try:
            return await self._link.schema()
        finally:
            await self._link.close()

    # -- tasks

    async def commit(self, change: Change) -> int:
        """Apply a change, durably (see Store.commit)."""
        return await self._commits.submit(change)

    async def task(self, scope: Scope, task_id: str) -> TaskRow | None:
        """The task (see Store.task)."""
        found = await self._link.rows(sql.TASK, sql.values_of(scope, task_id=task_id))
        return _row(found[0]) if found else None

    async def events(self, scope: Scope, task_id: str, after: int, limit: int) -> list[Event]:
        """Events after a number (see Store.events)."""
        return await self._reads.events(scope, task_id, after, limit)

    async def shorten(self, scope: Scope, task_id: str, upto: int) -> None:
        """Forget events (see Store.shorten)."""
        await self._link.rows(sql.SHORTEN, sql.values_of(scope, task_id=task_id, upto=upto))

    async def tasks(self, scope: Scope, query: TaskQuery) -> TaskPage:
        """A page of tasks and their number, both of one moment (see Store.tasks)."""
        filters = frozenset(name for name in sql.FILTERS if getattr(query, name))
        values = sql.values_of(scope, **query._asdict(), nothing=b"")
        values["before_ms"], values["before_id"] = values.pop("before") or (0, "")
        values["limit"] += 1
        found = await self._link.rows(pg.page_and_total(filters), values)
        listed = [row for row in found if row[4] is not None]
        return TaskPage([_row(row[1:]) for row in listed[: query.limit]], found[0][0], len(listed) > query.limit)

    # -- leases and cancel

    async def renew(self, holder: str, until_ms: int, tokens: Mapping[str, int]) -> frozenset[str]:
        """Lengthen leases (see Store.renew)."""
        values = {"holder": holder, "until_ms": until_ms}
        free = await self._link.rows(pg.RENEW_FREE, values | _columns(tokens))
        if not (left := tokens.keys() - {task_id for (task_id,) in free}):
            return frozenset()
        # Somebody else has them, or they are being written: by commits that are over soon, or one that takes long.
        values |= _columns({name: tokens[name] for name in left}) | {
            "patience": f"{max(until_ms - self.now_ms(), 300) // 3}ms"
        }
        try:
            kept = await self._link.transact(partial(_renew, values=values))
        except asyncpg.LockNotAvailableError:
            raise Unreached(frozenset(left)) from None
        return frozenset(left - {task_id for (task_id,) in kept})

    async def cancels(self, holder: str) -> dict[str, bytes]:
        """Cancel requests that wait (see Store.cancels)."""
        return dict(await self._link.rows(sql.CANCELS, {"holder": holder}))

    async def lost(self, holder: str, now_ms: int, limit: int) -> list[TaskRow]:
        """Tasks whose turn has no owner any more (see Store.lost)."""
        await self._link.read_clock()
        found = await self._link.rows(sql.LOST, {"now_ms": now_ms, "limit": limit})
        return [_row(row) for row in found]

    async def places(self, task_ids: Sequence[str]) -> dict[str, tuple[Scope, int]]:
        """Where tasks are (see Store.places)."""
        found = await self._link.rows(pg.PLACES, {"task_ids": task_ids})
        return {task_id: (Scope(*scope), sequence) for task_id, *scope, sequence in found}

    async def request_cancel(self, scope: Scope, task_id: str, request: bytes) -> TaskRow | None:
        """Leave a cancel request if a turn is running (see Store.request_cancel)."""
        values = sql.values_of(scope, task_id=task_id, cancel=request)
        await self._link.rows(sql.REQUEST_CANCEL, values)
        return await self.task(scope, task_id)

    # -- messages for turns at work

    async def post(self, scope: Scope, task_id: str, token: int, message: bytes, digest: bytes, until_ms: int) -> int:
        """Leave a message for a turn (see Store.post)."""
        values = sql.values_of(scope, task_id=task_id, token=token, message=message, digest=digest, until_ms=until_ms)
        found = await self._link.transact(partial(rows, statement=sql.ADD_POST, values=values))
        return int(found[0][0]) if found else 0

    async def posts(self, holder: str) -> list[Post]:
        """Messages that wait (see Store.posts)."""
        return [Post(*row) for row in await self._link.rows(sql.POSTS, {"holder": holder})]

    async def refuse(self, holder: str, number: int) -> None:
        """Refuse a message (see Store.refuse)."""
        await self._link.rows(sql.REFUSE_POST, {"holder": holder, "number": number})

    async def posted(self, number: int) -> int | None:
        """What became of a message (see Store.posted)."""

        async def work(connection: Connection) -> int | None:
            dropped = await rows(connection, sql.DROP_POST, values)
            waits = not dropped and await rows(connection, sql.POST, values)
            return 0 if waits else (dropped and int(dropped[0][0])) or None

        values = {"number": number}
        return await self._link.transact(work)

    # -- repeated sends and conversations

    async def seen(self, scope: Scope, message_id: str, now_ms: int) -> Dedupe | None:
        """The first outcome of a messageId (see Store.seen)."""
        found = await self._link.rows(sql.SEEN, sql.values_of(scope, message_id=message_id, now_ms=now_ms))
        return Dedupe(*found[0]) if found else None

    async def claim_messages(self, claims: Sequence[tuple[Scope, Dedupe]], now_ms: int) -> Mapping[Claimed, Dedupe]:
        """Store claims (see Store.claim_messages)."""
        every = [(*each, now_ms) for each in claims]
        return await self._link.transact(partial(claim, every=every))

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

        async def work(connection: Connection) -> None:
            for first in (await claim(connection, [(scope, dedupe, now_ms)])).values():
                raise Duplicate(first)
            context = await remember(connection, scope, context_id, memory, now_ms)
            await many(connection, sql.ADD_MESSAGE, sql.exchange(context, messages, now_ms))

        await self._link.transact(work)

    async def messages(self, scope: Scope, context_id: str, limit: int) -> list[bytes]:
        """The last messages of direct exchanges (see Store.messages)."""
        found = await self._link.rows(sql.MESSAGES, sql.values_of(scope, context_id=context_id, limit=limit))
        return [message for (message,) in reversed(found)]

    async def memory(self, scope: Scope, context_id: str) -> dict[str, bytes]:
        """The memory of a context (see Store.memory)."""
        return dict(await self._link.rows(sql.MEMORY, sql.values_of(scope, context_id=context_id)))

    # -- push notification configs

    async def put_push_config(self, scope: Scope, config: PushConfig, most: int) -> bool:
        """Create or replace a config (see Store.put_push_config)."""

        async def work(connection: Connection) -> bool:
            found = await rows(connection, pg.TASK_LOCKED, sql.values_of(scope, task_id=config.task_id))
            for task, sequence in found:
                values = config._asdict() | {"task": task, "cursor": sequence}
                if (await rows(connection, sql.OTHER_CONFIGS, values))[0][0] >= most:
                    raise TooMany
                await rows(connection, sql.PUT_CONFIG, values)
            return bool(found)

        return await self._link.transact(work)

    async def push_configs(self, scope: Scope, task_id: str, after: str, limit: int) -> list[PushConfig] | None:
        """Configs of a task (see Store.push_configs)."""
        found = await self._link.rows(sql.CONFIGS, sql.values_of(scope, task_id=task_id, after=after, limit=limit))
        # The join answers a task without configs by one row without a config.
        return [PushConfig(*row) for row in found if row[1] is not None] if found else None

    async def push_config(self, scope: Scope, task_id: str, config_id: str) -> PushConfig | None:
        """One config (see Store.push_config)."""
        found = await self._link.rows(sql.CONFIG, sql.values_of(scope, task_id=task_id, config_id=config_id))
        return PushConfig(*found[0]) if found else None

    async def delete_push_config(self, scope: Scope, task_id: str, config_id: str) -> bool:
        """Remove a config (see Store.delete_push_config)."""
        found = await self._link.rows(sql.TASK_NUMBER, sql.values_of(scope, task_id=task_id))
        for task, _ in found:
            await self._link.rows(sql.DROP_CONFIG, {"task": task, "config_id": config_id})
        return bool(found)

    async def due(self, holder: str, now_ms: int, until_ms: int, limit: int) -> list[Delivery]:
        """Claim configs that have something to send; what another replica is claiming is passed over (Store.due)."""

        async def work(connection: Connection) -> list[Delivery]:
            found = await rows(connection, pg.DUE_TO_NOBODY, {"now_ms": now_ms, "limit": limit})
            mine = {"holder": holder, "until_ms": until_ms}
            await many(connection, sql.CLAIM, [mine | {"task": row[-1], "config_id": row[4]} for row in found])
            return [sql.delivery_of(row) for row in found]

        return await self._link.transact(work)

    async def delivered(self, delivery: Delivery, report: Report) -> None:
        """Report on a claimed delivery (see Store.delivered)."""
        config = delivery.config
        values = sql.values_of(delivery.scope, task_id=config.task_id, config_id=config.config_id, config=config.config)
        await self._link.rows(sql.DELIVERED, values | report._asdict())

    async def backlog(self, after: tuple[str, str], limit: int, given_up: bool) -> list[Backlog]:
        """Configs that are behind (see Store.backlog)."""
        values = {"task_id": after[0], "config_id": after[1], "limit": limit}
        return list(map(sql.backlog_of, await self._link.rows(sql.backlog(given_up), values)))

    async def revive(self, configs: Sequence[PushConfig]) -> int:
        """Take configs up again (see Store.revive)."""

        async def work(connection: Connection) -> int:
            return sum([len(await rows(connection, sql.REVIVE, config._asdict())) for config in configs])

        return await self._link.transact(work)

    async def every_config(self, after: tuple[str, str], limit: int) -> list[PushConfig]:
        """Configs of all scopes (see push_secrets.Keeps)."""
        values = {"task_id": after[0], "after": after[1], "limit": limit}
        return [PushConfig(*row) for row in await self._link.rows(sql.EVERY_CONFIG, values)]

    async def swap_configs(self, anew: Sequence[tuple[PushConfig, bytes]], now_ms: int) -> int:
        """Write configs in another form (see push_secrets.Keeps)."""
        values = [config._asdict() | {"anew": form, "now_ms": now_ms} for config, form in anew]

        async def work(connection: Connection) -> int:
            return sum([len(await rows(connection, sql.SWAP_CONFIG, each)) for each in values])

        return await self._link.transact(work)

    async def counts(self, now_ms: int) -> Counts:
        """How much there is to look after (see Store.counts)."""
        [row] = await self._link.rows(sql.COUNTS, {"now_ms": now_ms})
        return Counts(*row)

    # -- retention

    async def trim(self, retention: Retention) -> list[str]:
        """Delete what is no longer kept, in small transactions, by one replica at a time (see Store.trim)."""
        values = sql.kept(retention)
        turn = {"mark": self._link.number, "turn_ms": retention.turn_ms}
        gone: list[str] = []
        try:
            if not await self._alone(partial(rows, statement=pg.TRIM_TURN, values=turn)):
                return gone
            victims = await self._alone(partial(_victims, values=values))
            while victims:
                gone += await self._alone(partial(_drop, victims=_share(victims)))
            for statement in map(pg.counted, sql.DROP_EXPIRED):
                while (await self._alone(partial(rows, statement=statement, values=values)))[0][0] == retention.batch:
                    pass
            await sql.shed(retention, self._link.rows, self._drop_messages)
            await self._commits.sum_up()
            if gone:
                await self._link.rows(pg.DROP_TALLIES, {})
        except _Trimming:
            pass
        return gone

    async def _drop_messages(self, every: list[dict[str, Any]]) -> None:
        await self._alone(partial(many, statement=sql.DROP_MESSAGE, every=every))

    async def _alone(self, work: Callable[[Connection], Awaitable[_T]]) -> _T:
        """Run the work in a transaction that no other replica has at the same time; raises _Trimming if one does."""

        async def alone(connection: Connection) -> _T:
            if not await connection.fetchval(pg.TRIM_ALONE):
                raise _Trimming
            return await work(connection)

        return await self._link.transact(alone)


def _row(row: Sequence[Any]) -> TaskRow:
    return TaskRow(Scope(*row[:3]), *row[3:])


def _columns(tokens: Mapping[str, int]) -> dict[str, list[Any]]:
    return {"task_ids": [*tokens], "tokens": [*tokens.values()]}


async def _renew(connection: Connection, values: dict[str, Any]) -> list[Any]:
    await rows(connection, pg.PATIENCE, values)
    return await rows(connection, pg.RENEW_ALL, values)


class _Trimming(Exception):
    """Another replica deletes what is no longer kept."""


async def _victims(connection: Connection, values: dict[str, Any]) -> _Victims:
    """Tasks to delete, as (id, sequence, token): at most `limit`, the first to go last."""
    limit: int = values["limit"]
    found = [*await rows(connection, sql.AGED, values), *await rows(connection, sql.STUCK, values)]
    for agent, tenant, owner, excess in await rows(connection, sql.CROWDED, values):
        if len(found) >= 2 * limit:  # some may be there twice
            break
        crowd = sql.values_of(Scope(agent, tenant, owner), limit=min(excess, limit))
        found += await rows(connection, sql.OLDEST, crowd)
    return list(dict.fromkeys(map(tuple, found)))[:limit][::-1]


def _share(victims: _Victims) -> _Victims:
    """Take off the end as many as one transaction may delete, at least one."""
    weight = 0
    for count, (_, events, _) in enumerate(reversed(victims)):
        weight += events
        if count and weight > _TRIM_EVENTS:
            break
    else:
        count = len(victims)
    share = victims[-count:]
    del victims[-count:]
    return share


async def _drop(connection: Connection, victims: _Victims) -> list[str]:
    every = [dict(zip(("task", "sequence", "token"), victim, strict=True)) for victim in victims]
    gone: list[str] = [task_id for (task_id,) in await many(connection, sql.DROP_TASK, every)]
    await many(connection, sql.DROP_SENT, [{"task_id": task_id} for task_id in gone])
    return gone
