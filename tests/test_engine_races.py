"""Races, many rounds each: ends against readers, cancels against ends, sends against sends."""

import asyncio
import random
from collections import Counter
from typing import Any

import pytest
from a2a_stubs import v1

from a2a_grpc.agent import TaskHandle
from a2a_grpc.errors import InvalidParamsError, TaskNotCancelableError, UnsupportedOperationError
from a2a_grpc.tasks.memory import MemoryStore
from a2a_grpc.tasks.state import TERMINAL, state_of
from a2a_grpc.tasks.store import Scope, Store, TaskQuery, TaskRow
from tests.stores import every_store  # noqa: F401
from tests.turns import (
    ALICE,
    BOB,
    CANCELED,
    COMPLETED,
    INPUT,
    SUBMITTED,
    WORKING,
    agent,
    begin,
    call,
    engine,
    message,
    read,
    said,
    send,
    states,
    texts,
    until,
)

DICE = random.Random(7)


async def pause() -> None:
    """Let the loop turn a few times, or none."""
    for _ in range(DICE.randrange(12)):
        await asyncio.sleep(0)


@pytest.mark.requirement("BL-07", "SUB-03", "SUB-04", "SUB-06")
async def test_a_subscriber_at_the_very_end_gets_the_end_or_learns_that_it_came_late(store: Store) -> None:
    async def brief(task: TaskHandle) -> str:
        await pause()
        await task.working("nearly")
        await pause()
        return "done"

    async with engine(store, brief) as made:

        async def round_of() -> str:
            started = await begin(made)
            await pause()
            view = await made.view(ALICE, started.task_id)
            if view.task.status.state in TERMINAL:
                return "late"
            events = [event async for event in made.follow(ALICE, started.task_id, view.sequence)]
            numbers = [event.sequence for event in events]
            assert numbers == list(range(view.sequence + 1, view.sequence + 1 + len(numbers)))
            assert states(events)[-1] == COMPLETED
            return "seen"

        rounds = 2000
        found: Counter[str] = Counter()
        for _ in range(rounds // 50):
            found += Counter(await asyncio.gather(*(round_of() for _ in range(50))))
        assert found.total() == rounds and found["seen"]
        assert made.running == len(made.feeds) == 0


@pytest.mark.requirement("BL-09", "OP-CANCEL-02", "OP-CANCEL-08", "DATA-11")
async def test_either_the_cancel_or_the_end_wins_and_the_other_knows(store: Store) -> None:
    async def brief(task: TaskHandle) -> None:
        await pause()
        await task.complete()

    async with engine(store, brief) as made:

        async def round_of() -> int:
            started = await begin(made)
            reader = asyncio.ensure_future(read(made, started.task_id))
            await pause()
            try:
                claimed = (await made.cancel(ALICE, started.task_id, v1.CancelTaskRequest())).status.state
                assert claimed == CANCELED
            except TaskNotCancelableError:
                claimed = COMPLETED
            events = await reader
            ends = [state for state in states(events) if state in TERMINAL]
            assert ends == [claimed] and state_of(events[-1].payload) == claimed
            assert (await made.view(ALICE, started.task_id)).task.status.state == claimed
            return claimed

        found: Counter[int] = Counter()
        for _ in range(20):
            found += Counter(await asyncio.gather(*(round_of() for _ in range(50))))
        assert found.total() == 1000 and found[CANCELED] and found[COMPLETED]


@pytest.mark.requirement("BL-11", "OP-SEND-15")
async def test_an_answer_in_the_moment_of_the_question_is_always_taken(store: Store) -> None:
    async def asks(task: TaskHandle) -> Any:
        if task.answer is None:
            await task.ask("which?")
            await pause()  # cleaning up does not hold up the next turn
            return None
        return task.answer

    async with engine(store, asks) as made:

        async def round_of() -> None:
            started = await begin(made)
            async for event in made.follow(ALICE, started.task_id, 0):
                if state_of(event.payload) == INPUT:
                    break
            answered = await begin(made, "blue", started.task_id)
            assert answered.task_id == started.task_id
            task = (await made.settled(ALICE, started.task_id)).task
            assert task.status.state == COMPLETED and texts(task) == ["blue"]

        for _ in range(20):
            await asyncio.gather(*(round_of() for _ in range(25)))


@pytest.mark.requirement("BL-10", "OP-SEND-15")
async def test_of_answers_sent_at_once_one_is_run_and_the_others_leave_no_trace(store: Store) -> None:
    at_work: Counter[tuple[int, int]] = Counter()
    running = 0

    async def asks(task: TaskHandle) -> Any:
        nonlocal running
        if task.answer is None:
            return await task.ask("which?")
        running += 1
        for _ in range(20):
            await asyncio.sleep(0)
        at_work[running, made.running] += 1
        running -= 1
        return task.text

    async with engine(store, asks) as made:
        for _ in range(50):
            task = (await send(made)).task

            async def answer(text: str, task_id: str = task.id) -> str | None:
                await pause()
                try:
                    await begin(made, text, task_id)
                except UnsupportedOperationError:
                    return None
                return text

            taken = [text for text in await asyncio.gather(*(answer(str(n)) for n in range(4))) if text]
            after = (await made.settled(ALICE, task.id)).task
            assert len(taken) == 1 and texts(after) == taken and said(after) == ["hi", "which?", *taken]
        assert at_work == {(1, 1): 50}


@pytest.mark.requirement("BL-02", "STREAM-06", "BL-01")
async def test_a_burst_of_tasks_with_readers_that_never_read_all_end(store: Store) -> None:
    async def chatty(task: TaskHandle) -> None:
        for number in range(300):
            await task.working(str(number))

    async with engine(store, chatty) as made:
        started = [await begin(made) for _ in range(40)]
        stalled = [made.follow(ALICE, one.task_id, 0) for one in started[::2]]
        for events in stalled:
            await anext(events)
        tasks = [(await made.settled(ALICE, one.task_id)).task for one in started]
        assert all(task.status.state == COMPLETED and len(task.history) == 301 for task in tasks)
        rest = [event async for event in stalled[0]]
        assert [event.sequence for event in rest] == list(range(2, 303))  # fell behind, missed nothing
        for events in stalled:
            await events.aclose()  # type: ignore[attr-defined]
        assert made.feeds.readers == len(made.feeds) == made.running == 0


@pytest.mark.requirement("BL-16", "STREAM-06", "STREAM-09")
async def test_a_long_stream_arrives_whole_at_fast_slow_and_late_readers(store: Store) -> None:
    async def tokens(task: TaskHandle) -> Any:
        for number in range(3000):
            yield f"{number} "
            if number % 100 == 0:
                await asyncio.sleep(0)

    async with engine(store, tokens) as made:
        started = await begin(made)

        async def slow() -> list[Any]:
            found = []
            async for event in made.follow(ALICE, started.task_id, 0):
                found.append(event)
                if event.sequence % 500 == 0:
                    await asyncio.sleep(0.01)
            return found

        fast, behind = await asyncio.gather(read(made, started.task_id), slow())
        task = (await made.settled(ALICE, started.task_id)).task
        assert fast == behind == await read(made, started.task_id)
        assert texts(task) == ["".join(f"{number} " for number in range(3000))]
        assert len(task.artifacts[0].parts) == 1


@pytest.mark.requirement("BL-51", "OP-SEND-14")
@pytest.mark.parametrize("replies", [False, True])
async def test_a_message_sent_again_gives_the_first_outcome(store: Store, replies: bool) -> None:
    runs = 0

    async def works(task: TaskHandle) -> Any:
        nonlocal runs
        runs += 1
        await pause()
        if replies:
            return await task.reply(f"run {runs}")
        return f"run {runs}"

    async def outcome(text: str = "hi", scope: Any = ALICE) -> Any:
        found = await (await begin(made, text, scope=scope)).outcome()
        return found if isinstance(found, v1.Message) else texts((await made.settled(scope, found)).task)

    async with engine(store, agent(works, replies=replies), deduplicate="authenticated") as made:
        at_once = await asyncio.gather(*(outcome() for _ in range(8)))
        assert runs == 1 and all(found == at_once[0] for found in at_once)
        assert await outcome() == at_once[0] and runs == 1
        with pytest.raises(InvalidParamsError) as refused:
            await outcome("something else")
        assert refused.value.violations[0].field == "message.messageId"
        await outcome(scope=BOB)
        assert runs == 2
        total = (await made.list(ALICE, TaskQuery(), 0)).total
        assert total == (0 if replies else 1)


@pytest.mark.requirement("BL-51", "OP-SEND-14")
async def test_a_message_sent_again_while_the_first_is_answered_is_not_answered_twice(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second is looked for before the answer is stored, and hears of that when the first is over. In a store that
    others share the first says that it is at work."""
    runs, looked, over = 0, asyncio.Event(), asyncio.Event()
    name = "seen" if store.exclusive else "claim_messages"
    ask, asked = getattr(store, name), list[int]()

    async def works(task: TaskHandle) -> None:
        nonlocal runs
        runs += 1
        await looked.wait()
        await task.reply("once")

    async def late(*words: Any) -> Any:
        found = await ask(*words)
        asked.append(len(asked))
        if len(asked) == (1 if store.exclusive else 2):
            looked.set()
            await over.wait()
        return found

    monkeypatch.setattr(store, name, late)
    async with engine(store, agent(works, replies=True), deduplicate="authenticated") as made:
        sends = [asyncio.create_task(begin(made, "hi"))]
        await until(lambda: looked.is_set() or runs)
        sends.append(asyncio.create_task(begin(made, "hi")))
        await looked.wait()
        first = await sends[store.exclusive]
        told = await first.outcome()
        assert first.turn is not None
        await first.turn.over
        await pause()
        over.set()
        assert await (await sends[not store.exclusive]).outcome() == told and runs == 1
        assert not made._sends


@pytest.mark.requirement("BL-51", "OP-SEND-14")
async def test_an_answer_sent_again_joins_what_came_of_it(store: Store) -> None:
    async def asks(task: TaskHandle) -> Any:
        if task.answer != "end":
            return await task.ask("which?")
        return "done"

    async with engine(store, asks, deduplicate="always") as made:
        task = (await send(made, message_id="1")).task
        for _ in range(3):
            joined = await begin(made, "blue", task.id, message_id="2")
            assert await joined.outcome() == task.id
        again = (await made.settled(ALICE, task.id)).task
        assert again.status.state == INPUT and said(again) == ["hi", "which?", "blue"]
        with pytest.raises(InvalidParamsError):
            await (await begin(made, "green", task.id, message_id="2")).outcome()
        for _ in range(2):
            await send(made, "end", task.id, message_id="3")
        with pytest.raises(UnsupportedOperationError):
            await begin(made, "more", task.id, message_id="4")


@pytest.mark.requirement("BL-10", "OP-SEND-15")
async def test_an_answer_that_was_sent_just_before_the_question_is_taken() -> None:
    go = asyncio.Event()

    async def asks(task: TaskHandle) -> None:
        if task.answer is None:
            await go.wait()
            await task.ask("which?")

    class Slow(MemoryStore):
        async def task(self, scope: Scope, task_id: str) -> TaskRow | None:
            row = await super().task(scope, task_id)
            if not go.is_set():
                go.set()
                for _ in range(50):  # meanwhile the turn ends, so the row is out of date
                    await asyncio.sleep(0)
            return row

    async with engine(Slow(), asks) as made:
        started = await begin(made)
        await begin(made, "blue", started.task_id)
        task = (await made.settled(ALICE, started.task_id)).task
        assert task.status.state == COMPLETED and said(task) == ["hi", "which?", "blue"]


@pytest.mark.requirement("BL-51", "OP-SEND-17")
async def test_a_message_that_came_twice_at_once_does_not_break_the_turn_it_joins(store: Store) -> None:
    async def listens(task: TaskHandle) -> str:
        return (await anext(task.inbox)).parts[0].text

    async with engine(store, listens, deduplicate="always") as made:
        started = await begin(made, message_id="1")
        turn = started.turn
        assert turn is not None
        await until(lambda: turn.takes_messages)
        known = await store.seen(ALICE, "1", 0)
        await turn.post(message("twice", started.task_id, "1").message, known)
        assert texts((await made.settled(ALICE, started.task_id)).task) == ["twice"]


@pytest.mark.requirement("OP-SEND-14")
async def test_whose_messages_are_recognised_is_an_option(store: Store) -> None:
    async def works(task: TaskHandle) -> None: ...

    for option, anonymous, known in (("off", 2, 2), ("authenticated", 2, 1), ("always", 1, 1)):
        async with engine(store, works, deduplicate=option) as made:
            for authenticated, expected in ((False, anonymous), (True, known)):
                asking = call()
                asking.caller = type(asking.caller)("alice", authenticated=authenticated)
                request = message(message_id=f"{option}{authenticated}")
                ids = {await (await made.begin(asking, ALICE, request)).outcome() for _ in range(2)}
                assert len(ids) == expected


@pytest.mark.requirement("OP-CANCEL-04", "I-19")
async def test_cancels_at_once_settle_the_task_once(store: Store) -> None:
    async def forever(task: TaskHandle) -> None:
        await asyncio.Event().wait()

    async with engine(store, forever) as made:
        for _ in range(50):
            started = await begin(made)
            cancels = [made.cancel(ALICE, started.task_id, v1.CancelTaskRequest()) for _ in range(3)]
            found = await asyncio.gather(*cancels, return_exceptions=True)
            won = [task for task in found if isinstance(task, v1.Task)]
            assert won and all(task.status.state == CANCELED for task in won)
            assert all(isinstance(lost, v1.Task | TaskNotCancelableError) for lost in found)
            assert states(await read(made, started.task_id)).count(CANCELED) == 1


@pytest.mark.requirement("STREAM-03", "SUB-08")
async def test_readers_that_come_and_go_leave_nothing_behind(store: Store) -> None:
    async def works(task: TaskHandle) -> None:
        for number in range(200):
            await task.working(str(number))
            await asyncio.sleep(0)

    async with engine(store, works) as made:
        started = await begin(made)

        async def visit() -> None:
            await pause()
            reader = asyncio.ensure_future(read(made, started.task_id))
            await pause()
            reader.cancel()
            await asyncio.wait((reader,))

        await asyncio.gather(*(visit() for _ in range(100)))
        await made.settled(ALICE, started.task_id)
        await until(lambda: not made.feeds.readers)
        assert len(made.feeds) == 0
        assert states(await read(made, started.task_id))[:2] == [SUBMITTED, WORKING]
