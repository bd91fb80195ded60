"""The way to a PostgreSQL database: a pool, transactions whose outcome is always known, reconnection, migrations.

Laws: nothing here knows what a task is. What the server is known not to have done is tried again, for a bounded time,
when a connection breaks or the server undoes a transaction in favour of another; when a connection breaks while a
commit is on its way, the server is asked what became of that transaction, and settles it, before anything is tried
again. Who compares times with other processes does so on the server's clock, the one that all share.
"""

import asyncio
import itertools
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, TypeVar
from urllib.parse import parse_qs, urlsplit

import asyncpg

from a2a_grpc.tasks import schema as sql
from a2a_grpc.tasks import schema_postgres as pg
from a2a_grpc.tasks.store import StoreError

_T = TypeVar("_T")
Connection = Any
"""A connection of asyncpg, which is not typed."""

BROKEN: Final = (
    OSError,
    asyncio.TimeoutError,  # a server that went away without a word
    asyncpg.PostgresConnectionError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.CannotConnectNowError,
    asyncpg.TooManyConnectionsError,
    asyncpg.ReadOnlySQLTransactionError,  # the server is no longer the primary
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.InternalClientError,
    asyncpg.InterfaceError,
)
"""The connection is of no use any more."""


class Again(Exception):
    """What the work saw has changed meanwhile: the transaction is to be undone and tried again."""


FULL: Final = asyncpg.InsufficientResourcesError
"""The server is out of disk or memory for now."""
UNDONE: Final = (Again, asyncpg.DeadlockDetectedError, asyncpg.SerializationError, asyncpg.UniqueViolationError, FULL)
"""The server undid the transaction, mostly because of another one; it may succeed now."""

_IDLE_MS = 1000  # how long a replica that stands still may keep others from rows that it has locked
_PAUSES = (0.02, 0.5)
_AGREE_MS = 50  # clocks that are no further apart count as one


class PostgresLink:
    """The database at `url`, with the tables of schema.py in the first schema of its search path.

    url: as libpq takes it; further parameters such as `search_path` become settings of each session. connections:
    most at a time. timeout: seconds that one statement may take. retry: seconds that work waits for a lost server;
    then the error of the driver is raised. Used from the event loop that opened it.
    """

    def __init__(self, url: str, connections: int, timeout: float, retry: float) -> None:
        place = urlsplit(url)
        settings = {
            "application_name": "a2a-grpc",
            "statement_timeout": f"{timeout * 1000:.0f}",
            "idle_in_transaction_session_timeout": str(_IDLE_MS),
            "jit": "off",
        }
        self._settings = {name: text for name, text in settings.items() if name not in parse_qs(place.query)}
        self.name = f"{place.scheme}://{place.hostname or ''}{place.path}"
        self._url, self._connections, self._timeout, self._retry = url, connections, timeout, retry
        self._pool: Any = None
        self._clock_ms = _own_clock_ms()
        self.number = random.SystemRandom().getrandbits(62)
        """Tells this process from others."""
        self._marks, self._slots = itertools.count(1), list[str]()

    async def open(self, migrate: bool = True) -> None:
        """Connect and bring the schema up to date; raises StoreError: no way to the server, a newer schema."""
        try:
            self._pool = await asyncpg.create_pool(
                self._url,
                min_size=0,
                max_size=self._connections,
                command_timeout=self._timeout + 1,
                timeout=self._timeout,
                init=_speak,
                reset=_leave_alone,
                server_settings=self._settings,
            )
            # No way to the server is told at once; one that starts up is waited for.
            await self.read_clock((asyncpg.CannotConnectNowError,))
            if migrate:
                await self._retrying(self._migrate)
                await self.rows(pg.DROP_MARKS, {})
        except (ValueError, *BROKEN, asyncpg.PostgresError) as error:
            await self.close()
            raise StoreError(f"cannot keep tasks in {self.name}: {error}") from error
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Let the connections finish, then close them."""
        pool, self._pool = self._pool, None
        if pool is not None:
            try:
                await asyncio.wait_for(pool.close(), self._timeout)
            except BROKEN:
                pool.terminate()

    # -- work

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """A connection of the pool; given up when it breaks."""
        if (pool := self._pool) is None:
            raise StoreError(f"the store in {self.name} is not open")
        try:
            connection = await pool.acquire(timeout=self._timeout)
        except asyncpg.InternalServerError as fault:  # all that it says when its disk is full
            raise ConnectionError(f"the server begins no session: {fault}") from fault
        try:
            yield connection
        except BROKEN:
            with suppress(asyncpg.InterfaceError):  # the pool has seen it break first and let it go
                connection.terminate()
            raise
        finally:
            await pool.release(connection)

    async def rows(self, statement: str, values: Mapping[str, Any]) -> list[Any]:
        """All rows of one statement that may run twice."""
        return await self._retrying(lambda: self.rows_once(statement, values))

    async def rows_once(self, statement: str, values: Mapping[str, Any]) -> list[Any]:
        """All rows of one statement, in a transaction of its own; of an error of BROKEN nobody knows what it did."""
        async with self.connection() as connection:
            return await rows(connection, statement, values)

    async def transact(self, work: Callable[[Connection], Awaitable[_T]]) -> _T:
        """Run the work in a transaction and answer when it is durable. The work may run several times, each time on
        what the last try left undone. Raises what the work raises, and the driver's errors; then nothing is written,
        unless the server was lost in the moment of the commit and did not come back in time."""
        return await self._retrying(lambda: self._transact(work))

    async def _transact(self, work: Callable[[Connection], Awaitable[_T]]) -> _T:
        ending = False
        try:
            async with self.connection() as connection:
                await connection.execute("BEGIN")
                mark = next(self._marks)
                slot = self._slots.pop() if self._slots else f"{self.number:x}x{mark}"
                try:
                    result = await work(connection)
                    ending = True
                    await connection.execute(pg.commit(slot, mark))
                except BaseException:
                    if not ending:
                        self._slots.append(slot)
                    with suppress(*BROKEN, asyncpg.PostgresError):
                        await connection.execute("ROLLBACK")
                    raise
        except BROKEN:
            if not (ending and await self._committed(slot, mark)):
                raise
        # A slot whose last transaction is in doubt is not used again.
        self._slots.append(slot)
        return result

    async def _committed(self, slot: str, mark: int) -> bool:
        """Whether the last transaction of a slot was committed; waits for it while it goes on. One that was not never
        will be."""
        faults = (*BROKEN, *UNDONE, asyncpg.QueryCanceledError)
        [(last,)] = await self._retrying(lambda: self.rows_once(pg.OUTCOME, {"slot": slot, "mark": mark}), faults)
        return bool(last == mark)

    async def _retrying(
        self, attempt: Callable[[], Awaitable[_T]], faults: tuple[type[Exception], ...] = (*BROKEN, *UNDONE)
    ) -> _T:
        clock, pause = asyncio.get_running_loop().time, _PAUSES[0]
        end = clock() + self._retry
        while True:
            try:
                return await attempt()
            except faults:
                if self._pool is None or clock() + pause > end:
                    raise
            await asyncio.sleep(pause)
            pause = min(2 * pause, _PAUSES[1])

    # -- time

    async def read_clock(self, faults: tuple[type[Exception], ...] = (*BROKEN, *UNDONE)) -> None:
        """Learn the server's time, for `ahead_ms`; to be done now and then, as clocks drift and are set. faults: what
        is tried again."""
        asked = time.monotonic()
        [(there,)] = await self._retrying(lambda: self.rows_once(pg.CLOCK, {}), faults)
        # It was so late at some moment since: an answer that took long tells little, and changes little.
        self._clock_ms = min(max(self._clock_ms, there - 1000 * time.monotonic()), there - 1000 * asked)

    def ahead_ms(self) -> int:
        """How far the server's clock is ahead of this process's, in ms, negative when behind; 0 when they agree as
        well as can be told. True also right after this process's clock was set."""
        ahead = self._clock_ms - _own_clock_ms()
        return int(ahead) if abs(ahead) > _AGREE_MS else 0

    # -- schema

    async def schema(self) -> int:
        """The number of the schema that is there, 0 for none; nothing is changed."""
        [(there,)] = await self.rows(pg.VERSION_FOUND, {})
        found = await self.rows(sql.VERSION, {}) if there else []
        return int(found[0][0]) if found else 0

    async def _migrate(self) -> None:
        newest = len(sql.MIGRATIONS)
        if await self.schema() == newest:
            return
        async with self.connection() as connection, connection.transaction():
            await connection.execute(pg.MIGRATE_ALONE)
            await connection.execute(pg.for_postgres(sql.VERSION_TABLE))
            version = await connection.fetchval(sql.VERSION) or 0
            if version > newest:
                raise StoreError(
                    f"{self.name} has schema {version} and this release knows {newest}: use a newer release of a2a-grpc"
                )
            for number, migration in enumerate(sql.MIGRATIONS[version:], version + 1):
                for statement in (*map(pg.for_postgres, migration), *pg.ALSO.get(number, ())):
                    await connection.execute(statement)
            await connection.execute(sql.VERSION_CLEAR)
            await rows(connection, sql.VERSION_SET, {"version": newest})


async def rows(connection: Connection, statement: str, values: Mapping[str, Any]) -> list[Any]:
    """All rows of one statement on a connection."""
    text, names = pg.numbered(statement)
    found: list[Any] = await connection.fetch(text, *[values[name] for name in names])
    return found


async def many(connection: Connection, statement: str, every: Iterable[Mapping[str, Any]]) -> list[Any]:
    """Run one statement for each of the values, in one round trip; all rows of all of them, in order."""
    text, names = pg.numbered(statement)
    if not (arguments := [[values[name] for name in names] for values in every]):
        return []
    found: list[Any] = await connection.fetchmany(text, arguments)
    return found


def _own_clock_ms() -> float:
    """What this process's clock shows in ms, less its monotonic one."""
    return time.time_ns() / 1e6 - 1000 * time.monotonic()


# -- sessions


async def _speak(connection: Connection) -> None:
    """PostgreSQL's text cannot hold the code point 0, which callers may well use in an id: it is written otherwise."""
    try:
        await connection.set_type_codec("text", schema="pg_catalog", format="binary", encoder=_written, decoder=_read)
    except BaseException:
        connection.terminate()  # the pool would only ask it to close
        raise


def _written(text: str) -> bytes:
    if "\0" in text or "\x1a" in text:
        text = text.replace("\x1a", "\x1a1").replace("\0", "\x1a0")
    return text.encode()


def _read(written: bytes) -> str:
    text = written.decode()
    return text.replace("\x1a0", "\0").replace("\x1a1", "\x1a") if "\x1a" in text else text


async def _leave_alone(_: Connection) -> None:
    """Nothing that a session would keep is ever set: a given back connection needs no cleaning, no round trip."""
