"""The stores under test, and short ways to fill and read one.

Laws: a store is made by a row of STORES; no test of the suite knows which one it has. Times are given, never waited
for. A test module takes the fixture `store` by naming `every_store`.
"""

import os
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from a2a_stubs import v1

from a2a_grpc.tasks.memory import MemoryStore
from a2a_grpc.tasks.postgres import PostgresStore
from a2a_grpc.tasks.sqlite import SQLiteStore
from a2a_grpc.tasks.store import Change, Event, PushConfig, Scope, Snapshot, Store, TaskQuery


def nats_url(database: str) -> str:
    """Where hints of the replicas on a database of `postgres_url` go by NATS, apart from those of other tests."""
    if not (server := os.environ.get("A2A_NATS_URL", "")):
        pytest.skip("needs NATS (make services)")
    return f"{server}/{database.rpartition('=')[2]}"


@asynccontextmanager
async def postgres_url(server: str = "") -> AsyncIterator[str]:
    """The address of an empty schema of its own in a PostgreSQL, by default the one of `make services`."""
    server = server or os.environ.get("A2A_POSTGRES_URL", "")
    if not server:
        pytest.skip("needs PostgreSQL (make services)")
    name = f"test_{uuid.uuid4().hex}"

    async def run(statement: str) -> None:
        connection = await asyncpg.connect(server)
        try:
            await connection.execute(statement)
        finally:
            await connection.close()

    try:
        await run(f"CREATE SCHEMA {name}")
        yield f"{server}?search_path={name}"
    finally:
        await run(f"SET client_min_messages = error; DROP SCHEMA IF EXISTS {name} CASCADE")


@asynccontextmanager
async def _memory(_: Path) -> AsyncIterator[Store]:
    yield MemoryStore()


@asynccontextmanager
async def _sqlite(folder: Path) -> AsyncIterator[Store]:
    yield SQLiteStore(folder / "a2a.db")


@asynccontextmanager
async def _postgres(_: Path) -> AsyncIterator[Store]:
    async with postgres_url() as url:
        yield PostgresStore(url, connections=4)


STORES: dict[str, Callable[[Path], AbstractAsyncContextManager[Store]]] = {
    "memory": _memory,
    "sqlite": _sqlite,
    "postgresql": _postgres,
}
ANN = Scope("orders", "", "ann")
# Each differs from ANN in one member.
STRANGERS = (Scope("orders", "", "bob"), Scope("orders", "acme", "ann"), Scope("shop", "", "ann"))
WORKING, COMPLETED, ASKING = v1.TASK_STATE_WORKING, v1.TASK_STATE_COMPLETED, v1.TASK_STATE_INPUT_REQUIRED
NOW = 1_700_000_000_000


@pytest.fixture(params=STORES, name="store")
async def every_store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """Each store in turn, open."""
    async with STORES[request.param](tmp_path) as store:
        await store.open()
        yield store
        await store.close()


def events(after: int, *texts: str) -> list[Event]:
    """Artifact chunks numbered from after + 1."""
    return [
        Event(after + index, v1.StreamResponse(artifact_update={"artifact": {"parts": [{"text": text}]}}))
        for index, text in enumerate(texts, 1)
    ]


def text(event: Event) -> str:
    return str(event.payload.artifact_update.artifact.parts[0].text)


async def create(store: Store, task_id: str = "t", scope: Scope = ANN, **more: Any) -> int:
    change = {"events": events(0, "first"), "now_ms": NOW, "context_id": "c"} | more
    change.setdefault("snapshot", Snapshot(WORKING, change["now_ms"]))
    return await store.commit(Change(scope, task_id, 0, **change))


def config(name: str, task_id: str = "t", body: bytes = b"https://example.com") -> PushConfig:
    return PushConfig(task_id, name, body, "1.0", b'["Bearer"]')


async def pages(store: Store, **query: Any) -> list[str]:
    """Task ids of all pages; total and `more` are checked on the way."""
    found: list[str] = []
    before, more, totals = None, True, set()
    while more:
        page = await store.tasks(ANN, TaskQuery(before=before, **query))
        found += [row.task_id for row in page.rows]
        totals.add(page.total)
        more = page.more
        if page.rows:
            before = (page.rows[-1].status_ms, page.rows[-1].task_id)
    assert totals == {len(found)}
    return found


async def due(store: Store, now: int = NOW) -> dict[str, tuple[int, int, int]]:
    """Claim for a second: cursor, due and attempts by config id."""
    found = await store.due("me", now, now + 1000, 10)
    assert all(delivery.scope == ANN for delivery in found)
    return {each.config.config_id: (each.cursor, each.due, each.attempts) for each in found}
