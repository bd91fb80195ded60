"""What a replica does while it cannot know whether its turns are still its own."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from a2a_grpc.agent import TaskHandle
from a2a_grpc.tasks.store import Change
from tests.test_upkeep import Shared, replicas
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

    async with replicas(ends, Late()) as (one,):
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
    async with replicas(rerunning, whole, whole, lease=30.0) as (one, two):
        started = await begin(one)
        await until(lambda: one._runtime.turns[started.task_id].durable == 2)
        row = await whole.task(ALICE, started.task_id)
        assert row is not None
        one._runtime.turns[started.task_id].leased -= 30.0  # as if it had slept
        await whole.renew(row.holder, 0, {row.task_id: row.token})
        await until(lambda: two.running)
        ask.set()
        known = await two.settled(ALICE, started.task_id)
        assert known.sequence > 2 and (await one.view(ALICE, started.task_id)) == known
        reader = asyncio.ensure_future(read(one, started.task_id, known.sequence))
        answered = await send(one, "blue", started.task_id, message_id="answer")
        assert texts(answered.task) == ["blue"]
        assert [event.sequence for event in await asyncio.wait_for(reader, 10)][-1] == answered.sequence
