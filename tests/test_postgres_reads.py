"""Logs that are read from PostgreSQL at the same time: each reader gets its own, however they were read."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from a2a_grpc.tasks import schema_postgres as pg
from a2a_grpc.tasks.postgres import PostgresStore
from a2a_grpc.tasks.store import StoreError
from tests.stores import ANN, STRANGERS, create, events, postgres_url, text

MANY = 150


@pytest.fixture
async def store() -> AsyncIterator[PostgresStore]:
    async with postgres_url() as url:
        made = PostgresStore(url, connections=4)
        await made.open()
        yield made
        await made.close()


def heard(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statements that the store runs from now on."""
    found: list[str] = []
    run = store._link.rows

    async def rows(statement: str, values: Any) -> list[Any]:
        found.append(statement)
        return await run(statement, values)

    monkeypatch.setattr(store._link, "rows", rows)
    return found


@pytest.mark.requirement("AUTH-04", "SUB-03")
async def test_readers_at_the_same_time_share_statements_and_each_gets_its_own_events(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(MANY):
        texts = [f"{number}.{each}" for each in range(number % 4)]
        await create(store, f"t{number}", events=events(0, *texts), scope=STRANGERS[0] if number % 10 == 9 else ANN)
    ran = heard(store, monkeypatch)
    found = await asyncio.gather(*(store.events(ANN, f"t{number}", 1, 2) for number in range(MANY)))
    for number, got in enumerate(found):
        there = [] if number % 10 == 9 else [f"{number}.{each}" for each in range(number % 4)]
        assert [text(event) for event in got] == there[1:3]
        assert [event.sequence for event in got] == [2, 3][: len(got)]
    assert ran.count(pg.EVENTS_OF_MANY) <= 4 and len(ran) < 10
    ran.clear()
    assert len(await store.events(ANN, "t3", 0, 10)) == 3 and pg.EVENTS_OF_MANY not in ran


async def test_a_reader_that_gives_up_leaves_the_others_what_they_asked_for(store: PostgresStore) -> None:
    await create(store)
    readers = [asyncio.ensure_future(store.events(ANN, "t", 0, 10)) for _ in range(20)]
    await asyncio.sleep(0)
    for reader in readers[::3]:
        reader.cancel()
    ended = await asyncio.gather(*readers, return_exceptions=True)
    for number, got in enumerate(ended):
        assert isinstance(got, asyncio.CancelledError) if number % 3 == 0 else [text(each) for each in got] == ["first"]
    assert [text(each) for each in await store.events(ANN, "t", 0, 10)] == ["first"]


async def test_a_fault_is_told_to_every_reader(store: PostgresStore) -> None:
    await store.close()
    ended = await asyncio.gather(*(store.events(ANN, "t", 0, 10) for _ in range(20)), return_exceptions=True)
    assert {type(fault) for fault in ended} == {StoreError}
    await store.open()
    assert await asyncio.gather(*(store.events(ANN, "t", 0, 10) for _ in range(20))) == [[]] * 20
