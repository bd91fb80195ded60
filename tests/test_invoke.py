"""How a function is run: the first pause of what runs, and what reaches it from then on."""

import asyncio
from typing import Any

import pytest

from a2a_grpc.agent import TaskHandle
from a2a_grpc.tasks.invoke import begun
from a2a_grpc.tasks.memory import MemoryStore
from a2a_grpc.tasks.store import Change
from tests.turns import COMPLETED, engine, send


async def test_what_never_waits_has_no_pause_and_what_waits_has_one() -> None:
    pauses: list[str] = []

    async def works(times: int) -> None:
        for _ in range(times):
            await asyncio.sleep(0)

    for times in (0, 1, 3):
        await begun(works(times), lambda: pauses.append("pause"))
        assert len(pauses) == (times > 0)
        pauses.clear()


async def test_errors_and_cancels_pass_through_before_and_after_the_first_pause() -> None:
    heard: list[str] = []

    async def works(first: str) -> None:
        if first == "fail":
            raise ValueError(first)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            heard.append("canceled")
            await asyncio.sleep(0)
            heard.append("cleaned up")
            raise ValueError("after the cancel") from None

    with pytest.raises(ValueError, match="fail"):
        await begun(works("fail"), lambda: heard.append("pause"))
    assert not heard
    waiting = asyncio.ensure_future(begun(works("wait"), lambda: heard.append("pause")))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(ValueError, match="after the cancel"):
        await waiting
    assert heard == ["pause", "canceled", "cleaned up"]


@pytest.mark.requirement("OP-SEND-18", "STREAM-09")
@pytest.mark.parametrize(("waits", "commits"), [(False, 1), (True, 2)])
async def test_a_function_that_may_reply_is_committed_at_its_first_pause_and_at_its_end(
    waits: bool, commits: int
) -> None:
    class Counted(MemoryStore):
        changes: list[Change]

        async def commit(self, change: Change) -> int:
            self.changes.append(change)
            return await super().commit(change)

    async def works(task: TaskHandle) -> Any:
        if task.text == "reply":
            await task.reply("no task")
        await task.add_artifact("one")
        if waits:
            await asyncio.sleep(0)
        return "two"

    store = Counted()
    store.changes = []
    async with engine(store, works) as made:
        task = (await send(made)).task
    assert task.status.state == COMPLETED and [one.parts[0].text for one in task.artifacts] == ["one", "two"]
    assert len(store.changes) == commits
    assert [event.sequence for change in store.changes for event in change.events] == [1, 2, 3, 4]
