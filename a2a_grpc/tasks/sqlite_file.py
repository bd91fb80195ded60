"""One SQLite file behind threads: taken, brought up to date, written in groups, read beside.

Laws: one thread writes, two read, each with a connection of its own; the event loop never touches the disk. What is
queued while a transaction runs shares the next one and its one flush (group commit), and where several pieces came
together, the next ones wait a moment for each other. Work refused by a StoreError has written nothing, so it leaves the
others of its transaction alone; after any other fault the transaction is undone and each piece of work runs again on
its own, so a fault reaches only who caused it. Nothing is acknowledged once the file, or the log beside it, is no
longer in its place: nobody would find it again. Nothing here knows what a task is.
"""

import asyncio
import fcntl
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from functools import partial
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, TypeVar
from urllib.parse import quote

from a2a_grpc.tasks import schema as sql
from a2a_grpc.tasks.store import OtherSchema, StoreBusy, StoreError

_T = TypeVar("_T")
_Job = tuple[Callable[[sqlite3.Connection], Any], "asyncio.Future[Any]"]
_Jobs = SimpleQueue[_Job | None]
_Outcome = tuple["asyncio.Future[Any]", Any, Exception | None]

_READERS = 2
_GROUP = 512  # most pieces of work in one transaction
_PATIENCE = 0.002  # most seconds that work waits for more that may share its transaction
_PRAGMAS = ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "journal_size_limit=67108864")


class SQLiteFile:
    """The database in the file at `path`, with the tables of schema.py. Used from the event loop that opened it.

    transactions: how many were flushed so far; with many concurrent writes fewer than those.
    """

    def __init__(self, path: str) -> None:
        self.transactions = 0
        self._path = path
        self._writes: _Jobs = SimpleQueue()
        self._reads: _Jobs = SimpleQueue()
        self._enough: SimpleQueue[None] = SimpleQueue()
        self._missing = 0  # pieces of work that the writer waits for
        self._company = 1, 0.0  # how many pieces of work the next transaction waits for, and for how many seconds
        self._threads: list[Thread] = []
        self._loop: asyncio.AbstractEventLoop

    async def open(self, alone: bool = True) -> None:
        """Take the file; raises StoreBusy, StoreError (see SQLiteStore.open). alone: not for `open_beside`."""
        self._loop = asyncio.get_running_loop()
        lock, connections = await asyncio.to_thread(_open if alone else _join, self._path)
        self._lock, self._places = lock, _places(self._path, alone)
        roles = ((self._gathered, self._write), *((partial(_single, self._reads), _answer),) * _READERS)
        self._threads = [
            Thread(target=self._run, args=(connection, *role), name="a2a-store", daemon=True)
            for connection, role in zip(connections, roles, strict=True)
        ]
        for thread in self._threads:
            thread.start()

    async def close(self) -> None:
        """Finish what was accepted, close the file, let go of the lock."""
        threads, self._threads = self._threads, []
        if threads:
            self._writes.put(None)
            for _ in range(_READERS):
                self._reads.put(None)
            # In a thread of its own, so that the lock is let go in order even if the caller stops waiting.
            await asyncio.to_thread(_finish, threads, self._lock)

    async def schema(self) -> int:
        """The number of the schema that is there, 0 for none; whoever serves from the file is not disturbed."""
        return await asyncio.to_thread(_schema, self._path)

    async def write(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        """Run the work in a transaction and answer when it is durable.

        The work may run twice, and must have written nothing when it raises a StoreError. Raises what the work
        raises, and sqlite3.Error from a failing disk; then nothing is written. It is done even if nobody waits.
        """
        result: _T = await self._submit(self._writes, work)
        return result

    async def read(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        """Run work that only reads, beside the writer; it sees everything acknowledged before."""
        result: _T = await self._submit(self._reads, work)
        return result

    async def rows(self, statement: str, values: Mapping[str, Any]) -> list[Any]:
        """All rows of one statement that only reads."""
        return await self.read(lambda connection: connection.execute(statement, values).fetchall())

    def _submit(self, jobs: _Jobs, work: Callable[[sqlite3.Connection], Any]) -> "asyncio.Future[Any]":
        if not self._threads:
            raise StoreError(f"the store in {self._path} is not open")
        future: asyncio.Future[Any] = self._loop.create_future()
        jobs.put((work, future))
        if self._missing and self._writes.qsize() >= self._missing:
            self._missing = 0
            self._enough.put(None)
        return future

    def _run(
        self,
        connection: sqlite3.Connection,
        batches: Callable[[], Iterator[list[_Job]]],
        serve: Callable[[sqlite3.Connection, list[_Job]], list[_Outcome]],
    ) -> None:
        with closing(connection):
            for jobs in batches():
                outcomes = serve(connection, jobs)
                with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                    self._loop.call_soon_threadsafe(_settle, outcomes)

    def _gathered(self) -> Iterator[list[_Job]]:
        """The work of each transaction. Where several pieces came together in the last one, as many are waited for, but
        no longer than that took: a transaction costs more than what is in it."""
        while jobs := _take(self._writes, _GROUP):
            expected, patience = self._company
            if len(jobs) < expected:
                self._missing = expected - len(jobs)
                if self._writes.qsize() < self._missing:  # looked at only now, as `_submit` looks only after it has put
                    with suppress(Empty):
                        self._enough.get(timeout=patience)
                self._missing = 0
                _take_more(self._writes, jobs, _GROUP)
            yield jobs

    def _write(self, connection: sqlite3.Connection, jobs: list[_Job]) -> list[_Outcome]:
        begun = time.monotonic()
        outcomes = self._transact(connection, jobs)
        # Counted before anybody hears of it: what they do next is no company that they had.
        self._company = len(jobs) + (not self._writes.empty()), min(time.monotonic() - begun, _PATIENCE)
        return outcomes

    def _transact(self, connection: sqlite3.Connection, jobs: list[_Job]) -> list[_Outcome]:
        try:
            for name, file in self._places.items():
                if _inode(name) != file:
                    raise OSError(f"{name} was moved or replaced; stop the server before you do that")
            connection.execute("BEGIN IMMEDIATE")
        except (OSError, sqlite3.Error) as error:
            return [(future, None, error) for _, future in jobs]
        try:
            outcomes = [_attempt(connection, job) for job in jobs]
            connection.execute("COMMIT")
        except Exception as error:
            with suppress(sqlite3.Error):  # SQLite may have undone it already
                connection.execute("ROLLBACK")
            if len(jobs) == 1:
                return [(jobs[0][1], None, error)]
            return [outcome for job in jobs for outcome in self._transact(connection, [job])]
        self.transactions += 1
        return outcomes


def _open(path: str) -> tuple[int, list[sqlite3.Connection]]:
    """The lock and the connections, that of the writer first."""
    folder = os.path.dirname(os.path.abspath(path))
    if path in ("", ":memory:"):
        raise StoreError("an SQLite store needs the path of a file; use memory: to keep nothing")
    if not os.path.isdir(folder):
        raise StoreError(f"cannot keep tasks in {path}: there is no folder {folder}; make it, or choose another path")
    lock, connections = -1, []
    try:
        lock = _lock(path)
        # Made here, since it holds secrets of push configs and SQLite would let the umask decide who reads them.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        for _ in range(1 + _READERS):
            connections.append(sqlite3.connect(path, isolation_level=None, check_same_thread=False))
            for pragma in _PRAGMAS:
                connections[-1].execute(f"PRAGMA {pragma}")
            if len(connections) == 1:
                _migrate(connections[0], path)
        return lock, connections
    except BaseException as error:
        for connection in connections:
            connection.close()
        if lock >= 0:
            os.close(lock)
        if isinstance(error, (OSError, sqlite3.Error)):
            raise StoreError(f"cannot keep tasks in {path}: {error}") from error
        raise


def _join(path: str) -> tuple[int, list[sqlite3.Connection]]:
    """As `_open`, without the lock: somebody else may have it."""
    if (found := _schema(path)) != len(sql.MIGRATIONS):
        raise OtherSchema(found, len(sql.MIGRATIONS))
    connections = [sqlite3.connect(path, isolation_level=None, check_same_thread=False) for _ in range(1 + _READERS)]
    for connection in connections:
        connection.execute("PRAGMA foreign_keys=ON")
    return -1, connections


def _places(path: str, alone: bool) -> dict[str, tuple[int, int]]:
    """Which files are there, by their paths: the database, and if it is served the log in which everything is before
    it is in that, and the index of the log, by which others know of us."""
    beside = (os.path.realpath(path) + suffix for suffix in ("-wal", "-shm") if alone)
    return {name: _inode(name) for name in (os.path.abspath(path), *filter(os.path.exists, beside))}


def _inode(path: str) -> tuple[int, int]:
    """Which file is there; raises OSError if there is none."""
    found = os.stat(path)
    return found.st_dev, found.st_ino


def _lock(path: str) -> int:
    lock = os.open(os.path.realpath(path) + ".lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.read(lock, 20).decode("ascii", "replace").strip()
        os.close(lock)
        raise StoreBusy(
            f"{path} is in use by process {holder}: stop that one, or give this one a file of its own"
        ) from None
    os.truncate(lock, 0)
    os.write(lock, b"%d\n" % os.getpid())
    return lock


def _migrate(connection: sqlite3.Connection, path: str) -> None:
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(sql.VERSION_TABLE)
    (version,) = connection.execute(sql.VERSION).fetchone() or (0,)
    newest = len(sql.MIGRATIONS)
    if version > newest:
        raise StoreError(
            f"{path} has schema {version} and this release knows {newest}: use a newer release of a2a-grpc"
        )
    if version < newest:
        for number, migration in enumerate(sql.MIGRATIONS[version:], version + 1):
            for statement in (*migration, *sql.SQLITE_ALSO.get(number, ())):
                connection.execute(statement)
        connection.execute(sql.VERSION_CLEAR)
        connection.execute(sql.VERSION_SET, {"version": newest})
    connection.execute(sql.FREE_CLAIMS)  # whoever claimed a delivery is gone: the lock is ours
    connection.execute("COMMIT")


def _schema(path: str) -> int:
    try:
        with closing(sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True)) as connection:
            found = connection.execute(sql.VERSION).fetchone()
    except sqlite3.OperationalError as error:
        if os.path.exists(path) and "no such table" in str(error):
            return 0
        raise StoreError(f"cannot look into {path}: {error}") from error
    return int(found[0]) if found else 0


def _finish(threads: list[Thread], lock: int) -> None:
    for thread in threads:
        thread.join()
    if lock >= 0:
        os.close(lock)


def _single(queue: _Jobs) -> Iterator[list[_Job]]:
    while jobs := _take(queue, 1):
        yield jobs


def _take(queue: _Jobs, most: int) -> list[_Job]:
    """Wait for a job and take what else is queued; empty when there will be none any more."""
    job = queue.get()
    if job is None:
        return []
    jobs = [job]
    _take_more(queue, jobs, most)
    return jobs


def _take_more(queue: _Jobs, jobs: list[_Job], most: int) -> None:
    """Take what is queued by now."""
    while len(jobs) < most:
        try:
            job = queue.get_nowait()
        except Empty:
            return
        if job is None:
            queue.put(None)  # nothing follows the end mark, so it keeps its place
            return
        jobs.append(job)


def _answer(connection: sqlite3.Connection, jobs: list[_Job]) -> list[_Outcome]:
    [(work, future)] = jobs
    try:
        return [(future, work(connection), None)]
    except Exception as error:
        return [(future, None, error)]


def _attempt(connection: sqlite3.Connection, job: _Job) -> _Outcome:
    work, future = job
    try:
        return future, work(connection), None
    except StoreError as refusal:
        return future, None, refusal


def _settle(outcomes: list[_Outcome]) -> None:
    for future, result, error in outcomes:
        if future.done():  # the caller gave up waiting; what was done stays done
            continue
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)
