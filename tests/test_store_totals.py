"""How many tasks match a list: the exact number, whatever happens to tasks, and told without counting them.

Laws: as in test_store.py; what only one database has is looked at here all the same, where it is the same question.
"""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from a2a_grpc.tasks import schema
from a2a_grpc.tasks.postgres import PostgresStore
from a2a_grpc.tasks.sqlite import SQLiteStore
from a2a_grpc.tasks.store import Change, Retention, Snapshot, Store, TaskQuery
from tests import stores
from tests.faults.processes import seeded
from tests.stores import ANN, ASKING, COMPLETED, NOW, STRANGERS, WORKING, create, pages, postgres_url

every_store = stores.every_store

STATES = (WORKING, COMPLETED, ASKING)


async def totals(store: Store) -> dict[tuple[Any, int], int]:
    """What lists say, by scope and state, all states as 0."""
    asked = [(scope, state) for scope in (ANN, *STRANGERS) for state in (0, *STATES)]
    return {key: (await store.tasks(key[0], TaskQuery(state=key[1]))).total for key in asked}


@pytest.mark.requirement("LIST-12", "LIST-17")
async def test_totals_are_exact_while_tasks_come_move_and_go(store: Store) -> None:
    chance, there, number = seeded(), dict[str, tuple[Any, int, int]](), 0
    for _ in range(6):
        new = {
            f"t{number + index}": (chance.choice((ANN, *STRANGERS)), 1, chance.choice(STATES)) for index in range(30)
        }
        number += 30
        await asyncio.gather(
            *(create(store, name, scope, snapshot=Snapshot(state, NOW)) for name, (scope, _, state) in new.items())
        )
        there |= new
        for name in chance.choices(list(there), k=30):
            (scope, sequence, _), state = there[name], chance.choice(STATES)
            change = Change(scope, name, sequence, NOW, events=stores.events(sequence, "more"))
            change.snapshot = Snapshot(state, NOW)
            await store.commit(change)
            there[name] = scope, sequence + 1, state
        expected = dict.fromkeys(await totals(store), 0)
        for scope, _, state in there.values():
            expected[scope, state] += 1
            expected[scope, 0] += 1
        assert await totals(store) == expected
        for name in await store.trim(Retention(NOW + 10_000, 10**9, 10**9, chance.randrange(2, 20))):
            del there[name]
        assert len(await pages(store, limit=7)) == sum(scope == ANN for scope, *_ in there.values())


@pytest.mark.requirement("LIST-17")
async def test_totals_are_exact_at_each_moment_of_many_replicas_at_work() -> None:
    async with postgres_url() as url:
        replicas = [PostgresStore(url, connections=4) for _ in range(3)]
        await asyncio.gather(*(store.open() for store in replicas))
        done = 0

        async def work(store: PostgresStore, names: range) -> None:
            nonlocal done
            for name in names:
                await create(store, f"t{name}")
                change = Change(
                    ANN, f"t{name}", 1, NOW, events=stores.events(1, "e"), snapshot=Snapshot(COMPLETED, NOW)
                )
                await store.commit(change)
                done += 1

        async def look() -> None:
            while done < 1200:
                before = done
                await replicas[0]._commits.sum_up()
                page = await replicas[1].tasks(ANN, TaskQuery(limit=1))
                ended = await replicas[2].tasks(ANN, TaskQuery(state=COMPLETED, limit=1))
                assert before <= page.total <= done + 12 and before <= ended.total <= done + 12

        lanes = [(store, range(lane, 1200, 12)) for lane, store in enumerate(replicas * 4)]
        await asyncio.gather(look(), *(work(*lane) for lane in lanes))
        assert (await replicas[0].tasks(ANN, TaskQuery())).total == 1200
        assert (await replicas[0].tasks(ANN, TaskQuery(state=WORKING))).total == 0
        left = await replicas[0]._link.rows("SELECT count(*) FROM tally_changes", {})
        assert left[0][0] < 1200  # they are summed up on the way, without anybody who asks
        await asyncio.gather(*(store.close() for store in replicas))


async def test_tasks_of_earlier_releases_are_counted_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def filled(store: Store, newest: int) -> None:
        with monkeypatch.context() as older:
            older.setattr(schema, "MIGRATIONS", schema.MIGRATIONS[:newest])
            await store.open()
            for index in range(6):
                await create(store, f"t{index}", snapshot=Snapshot(STATES[index % 3], NOW))
            await store.close()

    async with postgres_url() as url:
        for store in (SQLiteStore(tmp_path / "a.db"), PostgresStore(url)):
            await filled(store, 5)
            await store.open()
            await create(store, "new")
            assert (await store.tasks(ANN, TaskQuery())).total == 7
            assert (await store.tasks(ANN, TaskQuery(state=COMPLETED))).total == 2
            await store.close()
