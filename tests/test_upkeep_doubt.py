"""What a replica does while it cannot know whether its turns are still its own."""

import asyncio
from collections.abc import Mapping
from typing import Any

import asyncpg
import pytest

from a2a_grpc.agent import TaskHandle
from a2a_grpc.tasks.postgres import PostgresStore
from a2a_grpc.tasks.start import now_ms
from a2a_grpc.tasks.store import Change, LeaseTaken, Unreached
from tests.stores import ANN, create, postgres_url
from tests.test_upkeep import LEASE, SHORT, Shared, replicas
from tests.turns import ALICE, agent, begin, read, send, texts, until


class Late(Shared):
    """The same, which answers the last commit of a turn after the next renewal only."""

    def __init__(self) -> None:
        super().__init__()
        self.renewed = asyncio.Event()

    async def renew(self, holder: str, until_ms: int, tokens: Mapping[str, int]) -> frozenset[str]:
        lost = await super().renew(holder, until_ms, tokens)
        self.renewed.set()
        return lost

    async def commit(self, change: Change) -> int:
        token = await super().commit(change)
        if change.release:
            self.renewed.clear()
            await self.renewed.wait()
        return token


@pytest.mark.requirement("BL-48")
async def test_a_turn_whose_end_is_stored_but_not_yet_answered_is_not_lost(caplog: pytest.LogCaptureFixture) -> None:
    async def ends(task: TaskHandle) -> str:
        return "all of it"

    async with replicas(ends, Late(), lease=SHORT) as (one,):
        view = await asyncio.wait_for(send(one), 10)
        assert texts(view.task) == ["all of it"] and "late events dropped" not in caplog.text


@pytest.mark.requirement("BL-48", "SUB-03")
async def test_a_replica_that_slept_through_its_lease_tells_what_others_made_of_the_task() -> None:
    ask = asyncio.Event()

    async def play(task: TaskHandle) -> Any:
        if task.answer is not None:
            return task.answer
        await task.working("at it")
        if task.attempt == 1:
            await asyncio.Event().wait()
        await ask.wait()
        return await task.ask("which?")

    whole = Shared()
    rerunning = agent(play, rerun_lost_turns=True)
    async with replicas(rerunning, whole, whole, lease=LEASE) as (one, two):
        started = await begin(one)
        await until(lambda: one._runtime.turns[started.task_id].durable == 2)
        row = await whole.task(ALICE, started.task_id)
        assert row is not None
        one._runtime.turns[started.task_id].leased -= LEASE  # as if it had slept
        await whole.renew(row.holder, 0, {row.task_id: row.token})
        await until(lambda: two.running)
        ask.set()
        known = await two.settled(ALICE, started.task_id)
        assert known.sequence > 2 and (await one.view(ALICE, started.task_id)) == known
        reader = asyncio.ensure_future(read(one, started.task_id, known.sequence))
        answered = await send(one, "blue", started.task_id, message_id="answer")
        assert texts(answered.task) == ["blue"]
        assert [event.sequence for event in await asyncio.wait_for(reader, 10)][-1] == answered.sequence


class Stuck(Shared):
    """The same, where one task is always being written."""

    task_id = ""

    async def renew(self, holder: str, until_ms: int, tokens: Mapping[str, int]) -> frozenset[str]:
        lost = await super().renew(holder, until_ms, {name: tokens[name] for name in tokens if name != self.task_id})
        if self.task_id in tokens:
            raise Unreached(frozenset({self.task_id}))
        return lost


@pytest.mark.requirement("BL-48")
async def test_a_turn_whose_row_cannot_be_reached_stops_alone() -> None:
    go = asyncio.Event()

    async def works(task: TaskHandle) -> str:
        await task.working("at it")
        await go.wait()
        return task.text

    whole = Stuck()
    async with replicas(works, whole, whole, lease=2 * SHORT) as (one, two):
        stuck, free = await begin(one, "stuck", message_id="1"), await begin(one, "free", message_id="2")
        whole.task_id = stuck.task_id
        assert texts((await asyncio.wait_for(two.settled(ALICE, stuck.task_id), 10)).task) == []
        row = await whole.task(ALICE, free.task_id)
        assert row is not None and row.token == 1 and one.running == 1
        go.set()
        assert texts((await one.settled(ALICE, free.task_id)).task) == ["free"]


@pytest.mark.requirement("BL-48")
async def test_a_commit_that_takes_long_keeps_no_other_lease_from_being_renewed() -> None:
    async with postgres_url() as url:
        store, long = PostgresStore(url), await asyncpg.connect(url)
        await store.open()
        now = now_ms()
        for name in ("a", "b", "c"):
            await create(store, name, take=LeaseTaken("me", now + 60_000), now_ms=now)
        async with long.transaction():
            await long.execute("SELECT 1 FROM tasks WHERE task_id = 'b' FOR UPDATE")
            with pytest.raises(Unreached) as caught:
                await asyncio.wait_for(store.renew("me", now + 1500, {"a": 1, "b": 1, "c": 1}), 10)
            assert caught.value.left == {"b"}
        untils = [row.lease_until_ms for name in "abc" if (row := await store.task(ANN, name))]
        assert untils == [now + 1500, now + 60_000, now + 1500]
        assert await store.renew("me", now + 95_000, {"a": 1, "b": 1, "c": 2}) == {"c"}
        await long.close()
        await store.close()


@pytest.mark.requirement("BL-48")
async def test_a_lease_is_renewed_between_many_short_commits() -> None:
    async with postgres_url() as url:
        store, busy = PostgresStore(url), await asyncpg.connect(url)
        await store.open()
        now = now_ms()
        await create(store, "a", take=LeaseTaken("me", now + 60_000), now_ms=now)
        begun = asyncio.Event()

        async def write() -> None:
            while True:
                async with busy.transaction():
                    await busy.execute("SELECT 1 FROM tasks WHERE task_id = 'a' FOR UPDATE")
                    begun.set()
                    await asyncio.sleep(0.05)

        writing = asyncio.ensure_future(write())
        await begun.wait()
        for number in range(5):
            assert await store.renew("me", now + 90_000 + number, {"a": 1}) == set()
        row = await store.task(ANN, "a")
        assert row is not None and row.lease_until_ms == now + 90_004
        writing.cancel()
        await asyncio.wait([writing])
        await busy.close()
        await store.close()
