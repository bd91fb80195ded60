"""Live views of a task: what a reader gets from the tail, what it must read, and who is woken."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from a2a_stubs import v1

from a2a_grpc.agent import TaskHandle
from a2a_grpc.errors import TaskNotFoundError, UnavailableError
from a2a_grpc.tasks.bus import LocalBus
from a2a_grpc.tasks.feed import TAIL_BYTES, TAIL_EVENTS, Feed, Feeds
from a2a_grpc.tasks.memory import MemoryStore
from a2a_grpc.tasks.state import status_event
from a2a_grpc.tasks.store import Change, Event, Scope, Snapshot, TaskRow
from a2a_grpc.tasks.views import PAGE
from tests.turns import ALICE, BOB, COMPLETED, WORKING, begin, call, engine, message, read, states, until


def events(first: int, last: int) -> list[Event]:
    return [Event(number, status_event("t", "c", WORKING, number)) for number in range(first, last + 1)]


def numbers(found: Any) -> list[int] | None:
    return None if found is None else [event.sequence for event in found]


@pytest.mark.requirement("SUB-03", "STREAM-01")
async def test_the_tail_gives_exactly_what_follows_a_position() -> None:
    feed = Feed()
    feed.publish(events(1, 5), 100)
    assert numbers(feed.after(0)) == [1, 2, 3, 4, 5] and numbers(feed.after(3)) == [4, 5]
    assert numbers(feed.after(5)) == numbers(feed.after(9)) == []
    feed.publish(events(3, 5), 100)  # published before
    assert feed.sequence == 5 and numbers(feed.after(4)) == [5]


@pytest.mark.requirement("SUB-03", "STREAM-02")
async def test_events_that_come_out_of_turn_are_read_from_the_store() -> None:
    feed = Feed()
    feed.publish(events(1, 2), 100)
    feed.publish(events(5, 6), 100)  # 3 and 4 are stored, their writer has not come to publish them
    assert feed.after(2) is None and numbers(feed.after(4)) == [5, 6]
    feed.publish(events(3, 4), 100)
    assert feed.sequence == 6 and feed.after(2) is None
    feed.reach(8)
    assert feed.after(6) is None and numbers(feed.after(8)) == []


@pytest.mark.requirement("STREAM-06", "BL-02", "BL-44")
async def test_the_tail_is_bounded_in_number_and_in_bytes() -> None:
    feed = Feed()
    for number in range(1, 5 * TAIL_EVENTS):
        feed.publish(events(number, number), 10)
        assert len(feed._tail) <= 2 * TAIL_EVENTS
    assert feed.after(0) is None and len(feed.after(feed.sequence - TAIL_EVENTS) or ()) == TAIL_EVENTS
    large = v1.StreamResponse(message=v1.Message(parts=[v1.Part(raw=b"x" * (TAIL_BYTES // 4))]))
    for number in range(feed.sequence + 1, feed.sequence + 40):
        feed.publish([Event(number, large)], large.ByteSize())
    assert sum(event.payload.ByteSize() for event in feed._tail) <= 2 * TAIL_BYTES
    assert feed.after(feed.sequence - 1)


async def follow(feeds: Feeds) -> list[Event]:
    return [event async for event in feeds.follow(ALICE, "t", 0)]


async def stored(store: MemoryStore, first: int, last: int, state: int = WORKING) -> None:
    batch = [*events(first, last - 1), Event(last, status_event("t", "c", state, last))]
    await store.commit(Change(ALICE, "t", first - 1, last, "c", events=batch, snapshot=Snapshot(state, last)))


class Elsewhere(MemoryStore):
    """A store that other processes write, too. `looks`: how often a whole task was read."""

    exclusive = False
    looks = 0

    async def task(self, scope: Scope, task_id: str) -> TaskRow | None:
        self.looks += 1
        return await super().task(scope, task_id)


@pytest.mark.requirement("BL-48", "BL-07")
@pytest.mark.parametrize("hinted", [True, False])
async def test_a_reader_finds_what_another_process_wrote(hinted: bool) -> None:
    store = Elsewhere()
    await stored(store, 1, PAGE + 3)
    feeds = Feeds(store, LocalBus(), "here")
    reader = asyncio.ensure_future(follow(feeds))
    await until(lambda: feeds.find((ALICE, "t")) and feeds.find((ALICE, "t"))._waiting)  # type: ignore[union-attr]
    await stored(store, PAGE + 4, PAGE + 6, COMPLETED)
    if hinted:
        feeds.hint("t", PAGE + 6)
        for _ in range(20):
            await asyncio.sleep(0)
        assert reader.done()
    assert numbers(await asyncio.wait_for(reader, 20)) == list(range(1, PAGE + 7))
    assert len(feeds) == feeds.readers == 0


@pytest.mark.requirement("BL-48")
async def test_a_hint_costs_one_read_of_what_is_new_and_one_that_lies_nothing_more() -> None:
    store = Elsewhere()
    await stored(store, 1, 3)
    feeds = Feeds(store, LocalBus(), "here")
    reader = asyncio.ensure_future(follow(feeds))
    await until(lambda: feeds.find((ALICE, "t")) and feeds.find((ALICE, "t"))._waiting)  # type: ignore[union-attr]
    looks = store.looks
    for number in range(4, 40):
        await stored(store, number, number)
        feeds.hint("t", number)
        for _ in range(10):
            await asyncio.sleep(0)
    assert store.looks == looks
    feeds.hint("t", 1000)  # of another store with the same bus
    for _ in range(10):
        await asyncio.sleep(0)
    assert store.looks == looks + 1 and not reader.done()
    await stored(store, 40, 41, COMPLETED)
    assert numbers(await asyncio.wait_for(reader, 20)) == list(range(1, 42))


@pytest.mark.requirement("BL-34")
async def test_closed_feeds_let_readers_take_what_there_is_and_then_say_why() -> None:
    store = MemoryStore()
    await stored(store, 1, 3)
    feeds = Feeds(store, LocalBus(), "here")
    reader = feeds.follow(ALICE, "t", 0)
    found = [await anext(reader)]
    feeds.close(UnavailableError("stopping"))
    with pytest.raises(UnavailableError, match="stopping"):
        async for event in reader:
            found.append(event)
    assert numbers(found) == [1, 2, 3]
    with pytest.raises(UnavailableError, match="stopping"):
        await follow(feeds)


class Gated(MemoryStore):
    """A store that commits when it is told to: `gate` is asked with each change."""

    def __init__(self) -> None:
        super().__init__()
        self.gate: Callable[[Change], Any] = lambda change: asyncio.sleep(0)
        self.commits: list[int] = []

    async def commit(self, change: Change) -> int:
        await self.gate(change)
        self.commits.append(len(change.events))
        return await super().commit(change)


@pytest.mark.requirement("BL-07", "STREAM-09", "BL-03")
async def test_nobody_sees_an_end_that_is_not_stored() -> None:
    store, tried = Gated(), asyncio.Event()

    async def ends(task: TaskHandle) -> None:
        await task.working("at it")
        await task.complete("done")

    async def refuse_the_end(change: Change) -> None:
        if change.release:
            tried.set()
            for _ in range(20):
                await asyncio.sleep(0)
            raise OSError("disk full")

    store.gate = refuse_the_end
    async with engine(store, ends) as made:
        started = await begin(made)
        await tried.wait()
        assert states([Event(0, v1.StreamResponse(task=(await made.view(ALICE, started.task_id)).task))]) != [COMPLETED]


@pytest.mark.requirement("BL-02", "STREAM-06")
async def test_a_function_that_outruns_the_store_has_to_wait() -> None:
    store, go, told = Gated(), asyncio.Event(), 0

    async def chatty(task: TaskHandle) -> None:
        nonlocal told
        for told in range(1, 2001):
            await task.working(str(told))

    async def wait(change: Change) -> None:
        if change.expected:
            await go.wait()

    store.gate = wait
    async with engine(store, chatty) as made:
        started = await begin(made)
        for _ in range(100):
            await asyncio.sleep(0)
        assert told < 300
        go.set()
        assert len(await read(made, started.task_id)) == 2002
        assert max(store.commits) > 100  # what gathers while a commit runs goes together


@pytest.mark.requirement("BL-11")
async def test_an_answer_to_a_question_seen_in_the_store_is_taken_too() -> None:
    async def asks(task: TaskHandle) -> None:
        if task.answer is None:
            await task.ask("which?")

    class Late(MemoryStore):
        async def commit(self, change: Change) -> int:
            token = await super().commit(change)
            for _ in range(10):  # stored, but the writer has not heard of it
                await asyncio.sleep(0)
            return token

    store = Late()
    async with engine(store, asks) as made:
        started = await begin(made)
        while True:
            row = await store.task(ALICE, started.task_id)
            if row is not None and row.state == v1.TASK_STATE_INPUT_REQUIRED:
                break
            await asyncio.sleep(0)
        assert made.running == 1
        await begin(made, "blue", started.task_id)
        assert (await made.settled(ALICE, started.task_id)).task.status.state == COMPLETED


@pytest.mark.requirement("SUB-03")
async def test_a_position_beyond_the_end_of_a_running_task_misses_nothing() -> None:
    go = asyncio.Event()

    async def waits(task: TaskHandle) -> None:
        await go.wait()

    async with engine(MemoryStore(), waits) as made:
        started = await begin(made)
        reader = asyncio.ensure_future(read(made, started.task_id, 1000))
        await until(lambda: made.feeds.readers)
        go.set()
        assert states(await asyncio.wait_for(reader, 10))[-1] == COMPLETED


@pytest.mark.requirement("CTX-12", "BL-04")
async def test_feeds_of_two_scopes_are_never_the_same() -> None:
    feeds = Feeds(MemoryStore(), LocalBus(), "here")
    mine, theirs = feeds.hold(ALICE, "t"), feeds.hold(BOB, "t")
    assert mine is not theirs and feeds.hold(ALICE, "t") is mine
    for scope in (ALICE, ALICE, BOB):
        feeds.release(scope, "t")
    assert len(feeds) == 0


@pytest.mark.requirement("BL-48", "SUB-03")
async def test_readers_without_news_cost_one_look_for_all_and_hear_of_what_no_hint_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Counting(MemoryStore):
        exclusive = False
        looks = places_asked = 0

        async def task(self, scope: Scope, task_id: str) -> TaskRow | None:
            self.looks += 1
            return await super().task(scope, task_id)

        async def places(self, task_ids: Any) -> Any:
            self.places_asked += 1
            return await super().places(task_ids)

    monkeypatch.setattr("a2a_grpc.tasks.feed.POLL", 0.01)
    store = Counting()
    feeds = Feeds(store, LocalBus(), "me")
    for name in ("t", "u"):
        change = Change(ALICE, name, 0, 1, context_id="c", events=events(1, 1), snapshot=Snapshot(WORKING, 1))
        await store.commit(change)

    async def follow(name: str) -> list[int]:
        return [event.sequence async for event in feeds.follow(ALICE, name, 0)]

    readers = [asyncio.ensure_future(follow(name)) for name in ("t", "t", "u")]
    await until(lambda: store.places_asked == 2)
    looks = store.looks
    await until(lambda: store.places_asked == 10)
    assert store.looks == looks <= 6
    ends = [Event(2, status_event("t", "c", WORKING, 2)), Event(3, status_event("t", "c", COMPLETED, 3))]
    await store.commit(Change(ALICE, "t", 1, 2, events=ends, snapshot=Snapshot(COMPLETED, 3)))
    assert await asyncio.gather(*readers[:2]) == [[1, 2, 3]] * 2
    feeds.close(UnavailableError())
    with pytest.raises(UnavailableError):
        await readers[2]


class Counting(MemoryStore):
    """Counts how often events are read."""

    reads = 0

    async def events(self, scope: Scope, task_id: str, after: int, limit: int) -> list[Event]:
        self.reads += 1
        return await super().events(scope, task_id, after, limit)


@pytest.mark.requirement("SUB-03", "STREAM-02")
async def test_who_comes_after_a_commit_gets_it_without_the_store() -> None:
    more = asyncio.Event()

    async def works(task: TaskHandle) -> None:
        async with task.artifact() as out:
            await out.write("one")
            await out.write("two")
            await more.wait()
            await out.write("three")

    store = Counting()
    async with engine(store, works) as made:
        started = await begin(made)
        await until(lambda: made.turns and next(iter(made.turns)).durable == 4)
        assert len(made.feeds) == 0  # until somebody reads
        reader = asyncio.ensure_future(read(made, started.task_id, 1))
        await until(lambda: made.feeds.readers)
        more.set()
        assert numbers(await reader) == [2, 3, 4, 5, 6, 7]
        assert not store.reads and len(made.feeds) == 0


@pytest.mark.requirement("STREAM-01", "OP-STREAM-02")
async def test_who_waits_for_a_turn_from_before_it_begins_reads_nothing_from_the_store() -> None:
    async def speak(task: TaskHandle) -> None:
        async with task.artifact() as out:
            for number in range(TAIL_EVENTS):
                await out.write(str(number))

    async with engine(store := Counting(), speak) as made:
        for ahead, reads in ((True, False), (False, True)):  # who comes when all is said has to read
            with made.feeds.ahead() as hold:
                started = await made.begin(call(), ALICE, message("hi"), hold if ahead else None)
                await until(lambda: not made.running)
                store.reads = 0
                found = await read(made, str(await started.outcome()))
            assert len(found) > TAIL_EVENTS and (store.reads > 0) == reads
            assert not len(made.feeds)
        with pytest.raises(TaskNotFoundError), made.feeds.ahead() as hold:
            await made.begin(call(), ALICE, message("hi", "t-none"), hold)
        assert not len(made.feeds)
