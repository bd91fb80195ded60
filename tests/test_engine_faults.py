"""What a caller sees when something ends early: errors, failing stores, cancels, whichever store is below."""

import asyncio
import logging
from typing import Any, cast

import pytest
from a2a_stubs import v1

from a2a_grpc.agent import Failed, Rejected, TaskHandle
from a2a_grpc.errors import (
    InternalError,
)
from a2a_grpc.tasks.store import Store
from tests.stores import every_store  # noqa: F401
from tests.turns import (
    ALICE,
    CANCELED,
    COMPLETED,
    FAILED,
    INPUT,
    REJECTED,
    SUBMITTED,
    WORKING,
    ask,
    begin,
    engine,
    read,
    said,
    send,
    states,
    texts,
    until,
)


@pytest.mark.requirement("BL-03", "BL-28", "ERR-11")
@pytest.mark.parametrize("artifacts", [0, 2])
async def test_an_error_in_the_agent_fails_the_task_and_stays_in_the_log(
    store: Store, artifacts: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def breaks(task: TaskHandle) -> None:
        for _ in range(artifacts):
            await task.add_artifact("x")
        raise RuntimeError("dsn=db://user:pw@host")

    async with engine(store, breaks) as made:
        started = await begin(made)
        events = await read(made, started.task_id)
        task = (await made.settled(ALICE, started.task_id)).task
        text = task.status.message.parts[0].text
        assert task.status.state == FAILED and states(events)[-1] == FAILED and len(task.artifacts) == artifacts
        assert "pw" not in str(events) + str(task) and text.startswith("The agent failed. Reference: ")
        assert "pw@host" in caplog.text and text.rsplit(" ", 1)[1] in caplog.text


@pytest.mark.requirement("BL-28")
@pytest.mark.parametrize(("error", "state"), [(Failed, FAILED), (Rejected, REJECTED)])
async def test_public_errors_are_shown(store: Store, error: type[Exception], state: int) -> None:
    async def refuses(task: TaskHandle) -> None:
        raise error("not today")

    async with engine(store, refuses) as made:
        task = (await send(made)).task
        assert task.status.state == state and task.status.message.parts[0].text == "not today"


@pytest.mark.requirement("BL-29")
async def test_a_cancelled_error_inside_the_agent_fails_the_task_at_once(store: Store) -> None:
    async def inner_cancel(task: TaskHandle) -> None:
        inner = asyncio.ensure_future(asyncio.sleep(100))
        inner.cancel()
        await inner

    async with engine(store, inner_cancel) as made:
        assert (await asyncio.wait_for(send(made), 10)).task.status.state == FAILED


class Failing:
    """A store whose nth commit and later ones fail."""

    def __init__(self, store: Store, good: int) -> None:
        self._store, self._good = store, good

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def commit(self, change: Any) -> int:
        self._good -= 1
        if self._good < 0:
            raise OSError("disk full at /srv/secret")
        return await self._store.commit(change)


@pytest.mark.requirement("BL-03", "STREAM-11", "OP-STREAM-11", "BL-28")
@pytest.mark.parametrize("good", [0, 1, 2])
async def test_a_failing_store_is_told_to_everybody_who_waits(store: Store, good: int) -> None:
    async def slow(task: TaskHandle) -> None:
        await task.working("begin")
        await asyncio.sleep(0.05)
        await task.add_artifact("x")
        await task.complete()

    async with engine(cast(Store, Failing(store, good)), slow) as made:
        if not good:
            with pytest.raises(InternalError):
                await begin(made)
            return
        started = await begin(made)

        async def wait() -> None:
            await made.settled(ALICE, started.task_id)

        waits = [wait(), read(made, started.task_id), read(made, started.task_id, 1)]
        for ended in await asyncio.wait_for(asyncio.gather(*waits, return_exceptions=True), 10):
            assert isinstance(ended, InternalError) and "secret" not in str(ended)
        assert made.running == 0
        assert (await made.view(ALICE, started.task_id)).task.status.state in (SUBMITTED, WORKING)


@pytest.mark.requirement("OP-CANCEL-01", "OP-CANCEL-06", "OP-CANCEL-07", "OP-CANCEL-08")
async def test_a_cancel_stops_the_function_and_reaches_it(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    seen: list[Any] = []

    async def careful(task: TaskHandle) -> None:
        await task.working("at it")
        try:
            await asyncio.Event().wait()
        finally:
            seen.append((task.canceled, task.cancel_metadata))
            await task.add_artifact("half")
            await task.complete("too late")

    async with engine(store, careful) as made:
        started = await begin(made)
        events = made.follow(ALICE, started.task_id, 0)
        await anext(events)
        request = v1.CancelTaskRequest(id=started.task_id)
        request.metadata["why"] = "changed my mind"
        task = await made.cancel(ALICE, started.task_id, request)
        assert task.status.state == CANCELED and texts(task) == ["half"]
        assert seen == [(True, {"why": "changed my mind"})]
        assert states([event async for event in events]) == [WORKING, CANCELED]
        assert (await made.view(ALICE, started.task_id)).task == task


@pytest.mark.requirement("OP-CANCEL-06", "OP-CANCEL-08")
async def test_a_function_that_will_not_stop_is_not_waited_for(store: Store) -> None:
    go, late = asyncio.Event(), []

    async def stubborn(task: TaskHandle) -> None:
        while not go.is_set():
            try:
                await go.wait()
            except asyncio.CancelledError:
                continue
        try:
            await task.add_artifact("late")
        except Exception as error:
            late.append(type(error).__name__)

    async with engine(store, stubborn, cancel_grace=0.05) as made:
        started = await begin(made)
        task = await made.cancel(ALICE, started.task_id, v1.CancelTaskRequest())
        go.set()
        await until(lambda: late)
        assert task.status.state == CANCELED and late == ["TurnEnded"]
        assert (await made.view(ALICE, started.task_id)).task == task


@pytest.mark.requirement("OP-CANCEL-01", "OP-CANCEL-06")
async def test_a_waiting_task_can_be_canceled(store: Store) -> None:
    async with engine(store, ask) as made:
        task = (await send(made)).task
        reader = asyncio.ensure_future(read(made, task.id))
        await until(lambda: made.feeds.readers)
        canceled = await made.cancel(ALICE, task.id, v1.CancelTaskRequest())
        assert canceled.status.state == CANCELED and said(canceled) == ["hi", "which?"]
        assert states(await reader) == [SUBMITTED, INPUT, CANCELED]


async def test_a_late_failure_is_logged_and_changes_nothing(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    async def goes_on(task: TaskHandle) -> None:
        await task.complete("done")
        raise ValueError("afterwards")

    async with engine(store, goes_on) as made:
        with caplog.at_level(logging.WARNING, "a2a_grpc"):
            task = (await send(made)).task
            await until(lambda: "after its turn had ended" in caplog.text)
        assert task.status.state == COMPLETED
