"""What happens beside the turns: dead and slow replicas, restarts, stopping, retention, blocked loops."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from a2a_stubs import v1

from a2a_grpc.agent import Agent, TaskHandle
from a2a_grpc.config import Options
from a2a_grpc.errors import TaskNotCancelableError, TaskNotFoundError, UnavailableError, UnsupportedOperationError
from a2a_grpc.tasks.bus import LocalBus
from a2a_grpc.tasks.engine import Engine
from a2a_grpc.tasks.memory import MemoryStore
from a2a_grpc.tasks.state import status_event
from a2a_grpc.tasks.store import Change, Event, LeaseTaken, Scope, Snapshot, Store, TaskRow
from tests.stores import STORES, every_store  # noqa: F401
from tests.turns import (
    ALICE,
    BOB,
    CANCELED,
    COMPLETED,
    FAILED,
    INPUT,
    SUBMITTED,
    WORKING,
    agent,
    begin,
    engine,
    forever,
    read,
    said,
    send,
    states,
    texts,
    until,
)

LEASE = 30.0
"""Seconds that no pause of the machine lasts: a turn is lost where a test wants that."""
SHORT = 1.5
"""Of replicas that die, and are waited for."""


class Shared(MemoryStore):
    """A store that several replicas may serve from."""

    exclusive = False

    async def lost(self, holder: str, now_ms: int, limit: int) -> list[TaskRow]:
        return [row for row in await super().lost(holder, now_ms, limit) if row.lease_until_ms <= now_ms]


class Cut(Shared):
    """The same, seen by a replica that can be cut off from it."""

    def __init__(self, whole: Shared) -> None:
        self.__dict__ = whole.__dict__ | {"cut": False, "hangs": False}

    async def renew(self, holder: str, until_ms: int, tokens: Mapping[str, int]) -> frozenset[str]:
        if self.__dict__["cut"]:
            await asyncio.sleep(3600 * self.__dict__["hangs"])
            raise OSError("no route to host")
        return await super().renew(holder, until_ms, tokens)


@pytest.fixture(params=["memory", "postgresql"])
async def shared(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """Each store that several replicas may serve from, open."""
    if request.param == "memory":
        yield Shared()
        return
    async with STORES[request.param](tmp_path) as store:
        await store.open()
        yield store
        await store.close()


@asynccontextmanager
async def replicas(function: Any, *stores: Store, **options: Any) -> AsyncIterator[list[Engine]]:
    """An engine for each store, all with one bus."""
    bus = LocalBus()
    settings = Options(**{"store": "memory:", "lease": LEASE, "cancel_grace": 0.1, "deduplicate": "off", **options})
    agents = {"": function if isinstance(function, Agent) else agent(function)}
    made = [Engine(store, bus, agents, settings) for store in stores]
    for one in made:
        await one.start()
    try:
        yield made
    finally:
        for one in made:
            await one.drain(0)


async def die(made: Engine) -> None:
    """End a replica as a killed process would: nothing is settled or released."""
    for work in list(made._runtime.work):
        work.cancel()
    for turn in list(made._runtime.turns.values()):
        turn.stop(RuntimeError("killed"))


@pytest.mark.requirement("BL-48", "SUB-08", "STREAM-02")
async def test_another_replica_sees_and_continues_everything(shared: Store) -> None:
    go = asyncio.Event()

    async def asks(task: TaskHandle) -> Any:
        if task.answer is None:
            await task.working("hm")
            await go.wait()
            task.state["n"] = 1
            return await task.ask("which?")
        return f"{task.answer} {task.state}"

    async with replicas(asks, shared, shared) as (one, two):
        started = await begin(one)
        events = await two.view(ALICE, started.task_id)
        assert events.task.status.state in (SUBMITTED, WORKING)
        reader = asyncio.ensure_future(read(two, started.task_id))
        with pytest.raises(UnsupportedOperationError):
            await begin(two, "too early", started.task_id)
        go.set()
        assert (await two.settled(ALICE, started.task_id)).task.status.state == INPUT
        await begin(two, "blue", started.task_id)
        task = (await one.settled(ALICE, started.task_id)).task
        assert texts(task) == ["blue {'n': 1}"]
        assert states(await reader) == [SUBMITTED, WORKING, INPUT, WORKING, COMPLETED]


@pytest.mark.requirement("BL-10", "BL-48")
async def test_two_replicas_never_run_one_answer_each(shared: Store) -> None:
    async def asks(task: TaskHandle) -> Any:
        await asyncio.sleep(0)
        return task.text if task.answer else await task.ask("which?")

    async with replicas(asks, shared, shared) as (one, two):
        for _ in range(100):
            task = (await send(one)).task
            tries = (begin(made, name, task.id) for made, name in ((one, "1"), (two, "2")))
            found = await asyncio.gather(*tries, return_exceptions=True)
            assert sum(isinstance(lost, UnsupportedOperationError) for lost in found) == 1
            after = (await one.settled(ALICE, task.id)).task
            assert len(texts(after)) == 1 and said(after) == ["hi", "which?", texts(after)[0]]


@pytest.mark.requirement("BL-48", "BL-09", "OP-CANCEL-07")
async def test_a_cancel_at_another_replica_stops_the_turn(shared: Store) -> None:
    seen: list[Any] = []

    async def waits(task: TaskHandle) -> None:
        try:
            await forever(task)
        finally:
            seen.append(task.cancel_metadata)

    async with replicas(waits, shared, shared) as (one, two):
        started = await begin(one)
        request = v1.CancelTaskRequest(id=started.task_id)
        request.metadata["why"] = "k"
        task = await asyncio.wait_for(two.cancel(ALICE, started.task_id, request), 10)
        assert task.status.state == CANCELED and seen == [{"why": "k"}] and one.running == 0
        with pytest.raises(TaskNotFoundError):
            await two.cancel(BOB, started.task_id, request)


@pytest.mark.requirement("BL-48")
async def test_a_cancel_arrives_without_hints_too(shared: Store) -> None:
    async with replicas(forever, shared, shared) as (one, two):
        started = await begin(one)
        two.bus = LocalBus()
        task = await asyncio.wait_for(two.cancel(ALICE, started.task_id, v1.CancelTaskRequest()), 10)
        assert task.status.state == CANCELED


@pytest.mark.requirement("BL-08", "BL-48", "SUB-09")
async def test_the_task_of_a_dead_replica_fails_with_a_reason(shared: Store) -> None:
    async with replicas(forever, shared, shared, lease=SHORT) as (one, two):
        started = await begin(one)
        reader = asyncio.ensure_future(read(two, started.task_id))
        await until(lambda: two.feeds.readers)
        await die(one)
        assert states(await asyncio.wait_for(reader, 10))[-1] == FAILED
        status = (await two.view(ALICE, started.task_id)).task.status
        assert status.message.parts[0].text == "The server stopped before the task was done"


@pytest.mark.requirement("BL-48", "OP-CANCEL-04")
async def test_canceling_the_task_of_a_dead_replica_settles_it(shared: Store) -> None:
    async with replicas(forever, shared, shared, lease=SHORT) as (one, two):
        started = await begin(one)
        await die(one)
        task = await asyncio.wait_for(two.cancel(ALICE, started.task_id, v1.CancelTaskRequest()), 10)
        assert task.status.state == CANCELED


@pytest.mark.requirement("BL-08")
async def test_a_lost_turn_is_run_again_where_the_agent_says_so(shared: Store) -> None:
    attempts: list[Any] = []

    async def tries(task: TaskHandle) -> Any:
        if task.answer is None and task.attempt == 1:
            return await task.ask("which?")
        attempts.append((task.attempt, task.text, task.answer, len(task.history)))
        if task.attempt == 1:
            await task.working("first try")
            await asyncio.Event().wait()
        return "done"

    again = agent(tries, rerun_lost_turns=True)
    bus = LocalBus()
    settings = Options(store="memory:", lease=SHORT, deduplicate="off")
    one, two = (Engine(shared, bus, {"": again}, settings) for _ in range(2))
    await one.start()
    await two.start()
    task = (await send(one)).task
    await begin(one, "blue", task.id)
    async for event in one.follow(ALICE, task.id, 0):
        if event.payload.status_update.status.message.parts[:1] == [v1.Part(text="first try")]:
            break
    await die(one)
    reader = asyncio.ensure_future(read(two, task.id))
    assert states(await asyncio.wait_for(reader, 10))[-1] == COMPLETED
    assert attempts == [(1, "blue", "blue", 3), (2, "blue", "blue", 4)]
    assert said((await two.view(ALICE, task.id)).task) == ["hi", "which?", "blue", "first try"]
    await one.drain(0)
    await two.drain(0)


@pytest.mark.requirement("BL-08")
async def test_a_turn_that_kills_every_server_is_given_up() -> None:
    attempts: list[int] = []

    async def kills(task: TaskHandle) -> None:
        attempts.append(task.attempt)
        await asyncio.Event().wait()

    again = agent(kills, rerun_lost_turns=True)
    store = MemoryStore()
    task_id = ""
    for _ in range(5):
        made = Engine(store, LocalBus(), {"": again}, Options(store="memory:"))
        await made.start()
        task_id = task_id or (await begin(made)).task_id
        await asyncio.sleep(0.01)
        await die(made)
    assert attempts == [1, 2, 3]
    assert (await made.view(ALICE, task_id)).task.status.state == FAILED


@pytest.mark.requirement("BL-08", "SUB-09")
async def test_a_restart_settles_what_ran_and_keeps_what_waits(store: Store) -> None:
    async def either(task: TaskHandle) -> Any:
        if task.text == "ask":
            return await task.ask("which?")
        return task.answer or await forever(task)

    first = Engine(store, LocalBus(), {"": agent(either)}, Options(store="memory:", lease=SHORT))
    await first.start()
    waiting = (await send(first, "ask")).task
    started = await begin(first, "run", message_id="2")
    await die(first)
    async with engine(store, either, lease=SHORT) as made:
        assert (await asyncio.wait_for(made.settled(ALICE, started.task_id), 10)).task.status.state == FAILED
        assert (await made.view(ALICE, waiting.id)).task == waiting
        assert texts((await send(made, "blue", waiting.id)).task) == ["blue"]


@pytest.mark.requirement("BL-48")
@pytest.mark.parametrize("hangs", [False, True])
async def test_a_replica_that_cannot_renew_stops_before_its_lease_ends(
    caplog: pytest.LogCaptureFixture, hangs: bool
) -> None:
    whole = Shared()
    cut = Cut(whole)
    cut.__dict__["hangs"] = hangs
    stopped: list[float] = []

    async def waits(task: TaskHandle) -> None:
        try:
            await forever(task)
        finally:
            stopped.append(time.time() * 1000)

    async with replicas(waits, cut, whole, lease=4 * SHORT) as (one, two):
        started = await begin(one)
        cut.__dict__["cut"] = True
        assert states(await asyncio.wait_for(read(two, started.task_id), 10))[-1] == FAILED
        row = await whole.task(ALICE, started.task_id)
        assert row is not None and stopped and stopped[0] <= row.status_ms and one.running == 0
        assert "could not be renewed" in caplog.text


@pytest.mark.requirement("BL-08", "BL-09", "BL-48")
@pytest.mark.parametrize("canceled", [False, True])
async def test_a_lost_task_that_another_replica_has_just_settled_is_left_as_it_is(canceled: bool) -> None:
    class Late(Shared):
        """Another replica is faster, just when this one reads the log."""

        faster = False

        async def events(self, scope: Scope, task_id: str, after: int, limit: int) -> list[Event]:
            if self.faster:
                self.faster = False
                end = [Event(3, status_event(task_id, "c", COMPLETED, 3))]
                await self.commit(Change(scope, task_id, 2, 3, events=end, snapshot=Snapshot(COMPLETED, 3), over=True))
            return await super().events(scope, task_id, after, limit)

    store, lost = Late(), LeaseTaken("gone", 2)
    log = [Event(number, status_event("t", "c", WORKING, number)) for number in (1, 2)]
    change = Change(ALICE, "t", 0, 1, "c", events=log, snapshot=Snapshot(WORKING, 2), take=lost)
    if not canceled:
        await store.commit(change)
        store.faster = True
    async with engine(store, agent(None), lease=60.0) as made:
        if canceled:
            await store.commit(change)
            store.faster = True
            with pytest.raises(TaskNotCancelableError):
                await made.cancel(ALICE, "t", v1.CancelTaskRequest())
        assert not store.faster
        assert states(await store.events(ALICE, "t", 0, 9)) == [WORKING, WORKING, COMPLETED]


@pytest.mark.requirement("BL-48", "OP-CANCEL-08")
async def test_a_replica_that_lost_its_task_writes_nothing_more(caplog: pytest.LogCaptureFixture) -> None:
    go = asyncio.Event()

    async def late(task: TaskHandle) -> None:
        await go.wait()
        await task.add_artifact("late")

    whole = Shared()
    async with replicas(late, whole, whole) as (one, two):
        started = await begin(one)
        row = await whole.task(ALICE, started.task_id)
        assert row is not None
        await whole.renew(row.holder, 0, {row.task_id: row.token})  # as if it had slept through its lease
        canceled = await two.cancel(ALICE, started.task_id, v1.CancelTaskRequest())
        go.set()
        await until(lambda: not one.running)
        assert (await one.view(ALICE, started.task_id)).task == canceled
        assert not canceled.artifacts and "late events dropped" in caplog.text


@pytest.mark.requirement("BL-48", "BL-10")
async def test_a_function_whose_task_was_taken_over_is_stopped() -> None:
    stopped = asyncio.Event()

    async def waits(task: TaskHandle) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    whole = Shared()
    async with replicas(waits, whole, whole, lease=2 * SHORT) as (one, two):
        started = await begin(one)
        await until(lambda: started.turn and started.turn.durable == 2)  # nothing of it is on its way any more
        row = await whole.task(ALICE, started.task_id)
        assert row is not None
        await whole.renew(row.holder, 0, {row.task_id: row.token})
        await two.cancel(ALICE, started.task_id, v1.CancelTaskRequest())
        await asyncio.wait_for(stopped.wait(), 10)
        assert one.running == 0


@pytest.mark.requirement("BL-34", "BL-08")
@pytest.mark.parametrize("grace", [0.0, 10.0])
async def test_a_stop_lets_turns_end_within_the_grace_and_fails_the_rest(store: Store, grace: float) -> None:
    go = asyncio.Event()

    async def works(task: TaskHandle) -> str:
        await go.wait()
        return "done"

    async with engine(store, works) as made:
        started = await begin(made)
        reader = asyncio.ensure_future(read(made, started.task_id))
        await until(lambda: made.feeds.readers)
        stopping = asyncio.ensure_future(made.drain(grace))
        await asyncio.sleep(0)
        with pytest.raises(UnavailableError):
            await begin(made)
        if grace:
            go.set()
        await asyncio.wait_for(stopping, 10)
        assert states(await reader)[-1] == (COMPLETED if grace else FAILED)
        assert made.running == 0 and not made._runtime.work


@pytest.mark.requirement("BL-34", "BL-21")
async def test_readers_of_waiting_tasks_are_told_that_the_server_stops(store: Store) -> None:
    async def asks(task: TaskHandle) -> None:
        await task.ask("which?")

    async with engine(store, asks) as made:
        task = (await send(made)).task
        reader = asyncio.ensure_future(read(made, task.id))
        await until(lambda: made.feeds.readers)
        await made.drain(0)
        with pytest.raises(UnavailableError):
            await asyncio.wait_for(reader, 10)
    row = await store.task(ALICE, task.id)
    assert row is not None and row.state == INPUT


@pytest.mark.requirement("BL-34", "BL-08")
async def test_a_turn_that_is_run_again_hears_again_what_it_was_told(store: Store) -> None:
    async def listens(task: TaskHandle) -> str:
        if task.answer is None:
            return str(await task.ask("which?"))
        inbox, heard = task.inbox, list[str]()
        for number in range(3):
            await task.working(f"{task.attempt} {number}")
            heard.append((await anext(inbox)).parts[0].text)
        return f"{task.answer}: {' '.join(heard)}, attempt {task.attempt}"

    again = agent(listens, rerun_lost_turns=True)
    async with engine(store, again) as made:
        task_id = (await send(made)).task.id
        await begin(made, "blue", task_id)
        for word in ("one", "two"):
            await begin(made, word, task_id)
    async with engine(store, again) as made:
        await begin(made, "three", task_id)
        assert texts((await made.settled(ALICE, task_id)).task) == ["blue: one two three, attempt 2"]


async def test_a_stop_leaves_turns_that_may_run_again_to_the_next_process(store: Store) -> None:
    async def works(task: TaskHandle) -> str:
        if task.attempt == 1:
            await asyncio.Event().wait()
        return f"attempt {task.attempt}"

    again = agent(works, rerun_lost_turns=True)
    async with engine(store, again) as made:
        started = await begin(made)
    async with engine(store, again) as made:
        assert texts((await made.settled(ALICE, started.task_id)).task) == ["attempt 2"]


@pytest.mark.requirement("BL-44", "SEC-08")
async def test_finished_tasks_are_forgotten_and_their_readers_told(store: Store) -> None:
    async def ends(task: TaskHandle) -> None:
        if task.text == "ask":
            await task.ask("which?")

    async with engine(store, ends, retain_count=3, trim_interval=0.05, retain_stuck=1.0) as made:
        ids = [(await send(made)).task.id for _ in range(10)]
        waiting = (await send(made, "ask")).task.id
        reader = asyncio.ensure_future(read(made, waiting))
        with pytest.raises(TaskNotFoundError):
            await asyncio.wait_for(reader, 20)
        left = [task_id for task_id in ids if await store.task(ALICE, task_id)]
        assert len(left) == 3
        for task_id in {*ids, waiting} - set(left):
            with pytest.raises(TaskNotFoundError):
                await made.view(ALICE, task_id)


@pytest.mark.requirement("BL-44", "SEC-04")
async def test_direct_exchanges_are_forgotten_before_they_take_much_more_than_they_may(store: Store) -> None:
    async def replies(task: TaskHandle) -> None:
        await task.reply("r" * 200_000)

    limits: dict[str, Any] = {"retain_reply_bytes": 500_000, "deduplicate": "always"}
    async with engine(store, agent(replies, replies=True), **limits) as made:  # the next look is in a minute
        for number in range(8):
            answer = await (await begin(made, message_id=str(number), context_id="c")).outcome()
        while sum(map(len, await store.messages(ALICE, "c", 99))) > 500_000:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        assert len(await store.messages(ALICE, "c", 99)) > 2
        assert await (await begin(made, message_id="7", context_id="c")).outcome() == answer
        again = await (await begin(made, message_id="0", context_id="c")).outcome()
        assert isinstance(again, v1.Message) and again.parts[0].text == "r" * 200_000 and again != answer


@pytest.mark.requirement("BL-17")
async def test_an_agent_that_holds_the_loop_is_named(caplog: pytest.LogCaptureFixture) -> None:
    async def blocks(task: TaskHandle) -> None:
        time.sleep(0.6)  # noqa: ASYNC251

    with caplog.at_level(logging.WARNING, "a2a_grpc"):
        async with engine(MemoryStore(), blocks, block_warning=0.1) as made:
            task = (await send(made)).task
    (warning,) = [record.getMessage() for record in caplog.records if "event loop is held" in record.getMessage()]
    assert f"Tester, task {task.id}" in warning and "test_upkeep.py" in warning
