"""Two servers on one PostgreSQL: whichever is asked, the task is the same, and one of them may vanish.

Laws: servers are whole, but for their ports; which bus is between them, or none that works, is a parameter.
"""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any, NamedTuple

import pytest
from a2a_stubs import v1

from a2a_grpc.agent import Agent, TaskHandle
from a2a_grpc.call import Call, Caller
from a2a_grpc.config import Options
from a2a_grpc.errors import InvalidParamsError, TaskNotCancelableError, UnavailableError, UnsupportedOperationError
from a2a_grpc.server import Server
from a2a_grpc.tasks.engine import Engine
from a2a_grpc.tasks.store import LeaseLost, Retention, TaskQuery
from tests.replicas import BUSES, vanish
from tests.stores import postgres_url
from tests.turns import (
    ALICE,
    AUTH,
    CANCELED,
    COMPLETED,
    FAILED,
    INPUT,
    WORKING,
    begin,
    message,
    read,
    said,
    send,
    states,
    texts,
    until,
)

LEASE = 3.0
"""Seconds that no pause of the machine lasts: a turn is lost where a server vanishes."""


class Stage:
    """What the agents of a test share: gates that a test opens, and what was done."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.done: list[str] = []
        self.stopped = 0

    async def play(self, task: TaskHandle) -> Any:
        """By the message's first word: ask, run until canceled, or stream so many chunks."""
        word, _, rest = task.text.partition(" ")
        self.done.append(task.text)
        if task.answer is not None:
            return f"got {task.answer}"
        if word == "ask":
            return await task.ask("which?")
        if word == "auth":
            async with task.awaiting_auth("sign in"):
                await self.gate.wait()
            return "signed in"
        if word == "listen":
            return await self.listen(task)
        if word == "wait":
            try:
                await task.working("at it")
                await self.gate.wait()
            except asyncio.CancelledError:
                self.stopped += 1
                raise
            return "after the wait"
        async with task.artifact(name="chunks") as out:
            for number in range(int(rest)):
                await out.write(f"{number} ")
                await asyncio.sleep(0)
        return None

    async def listen(self, task: TaskHandle) -> Any:
        """Hear messages until the gate opens or one says stop; some tasks then ask."""
        inbox, heard = task.inbox, list[str]()
        await task.working("listening")
        gate = asyncio.ensure_future(self.gate.wait())
        while "stop" not in heard:
            coming = asyncio.ensure_future(anext(inbox))
            await asyncio.wait((coming, gate), return_when=asyncio.FIRST_COMPLETED)
            if not coming.done():
                coming.cancel()
                break
            heard.append(coming.result().parts[0].text)
        gate.cancel()
        return await task.ask("and?") if task.text == "listen ask" else " ".join(heard)


class Pair(NamedTuple):
    one: Server
    two: Server
    stage: Stage


@pytest.fixture(params=BUSES)
async def pair(request: pytest.FixtureRequest) -> AsyncIterator[Pair]:
    """Two servers with one agent on one store."""
    stage = Stage()
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(postgres_url())
        servers = []
        for _ in range(2):
            agent = Agent(name="Tester", description="d", version="1", skills=[])
            agent.handle(stage.play)
            options = Options(
                store=url,
                grpc="",
                http="",
                lease=LEASE,
                cancel_grace=0.2,
                grace=0.0,
                store_connections=4,
                store_retry=1.0,
            )
            server = Server(agent, options, bus=BUSES[request.param](url))
            await server.start()
            stack.push_async_callback(server.stop)
            servers.append(server)
        yield Pair(*servers, stage)


async def running(engine: Engine, text: str = "wait") -> str:
    started = await begin(engine, text, message_id=uuid.uuid4().hex)
    return str(await started.outcome())


@pytest.mark.requirement("BL-48", "SUB-03", "LIST-01")
async def test_a_task_is_read_followed_and_listed_wherever_it_runs(pair: Pair) -> None:
    task_id = await running(pair.one.engine, "stream 300")
    readers = [read(server.engine, task_id) for server in (pair.one, pair.two, pair.two)]
    found = await asyncio.gather(*readers)
    assert [event.sequence for event in found[0]] == list(range(1, len(found[0]) + 1))
    for events in found[1:]:
        assert events == found[0]
    assert await read(pair.two.engine, task_id, found[0][5].sequence) == found[0][6:]
    view = await pair.two.engine.view(ALICE, task_id)
    assert texts(view.task) == ["".join(f"{number} " for number in range(300))]
    page = await pair.two.engine.list(ALICE, TaskQuery(), 100)
    assert page.total == 1 and v1.ListTasksResponse.FromString(page.entries[0]).tasks[0] == view.task


@pytest.mark.requirement("BL-48", "OP-CANCEL-02")
async def test_a_cancel_elsewhere_stops_the_function_before_it_answers(pair: Pair) -> None:
    for _ in range(5):
        task_id = await running(pair.one.engine)
        await until(lambda: pair.one.engine.running)
        before = pair.stage.stopped
        task = await pair.two.engine.cancel(ALICE, task_id, v1.CancelTaskRequest())
        assert task.status.state == CANCELED
        assert pair.stage.stopped == before + 1 and not pair.one.engine.running
        with pytest.raises(TaskNotCancelableError):
            await pair.one.engine.cancel(ALICE, task_id, v1.CancelTaskRequest())


@pytest.mark.requirement("BL-10", "BL-48")
async def test_of_two_answers_at_two_replicas_one_is_run(pair: Pair) -> None:
    for number in range(20):
        view = await send(pair.one.engine, "ask", message_id=f"q{number}")
        assert view.task.status.state == INPUT
        pair.stage.done.clear()
        answers = [
            send(server.engine, f"answer {index}", view.task.id, message_id=f"a{number}-{index}")
            for index, server in enumerate((pair.one, pair.two))
        ]
        results = await asyncio.gather(*answers, return_exceptions=True)
        refused = [result for result in results if isinstance(result, BaseException)]
        assert [type(result) for result in refused] == [UnsupportedOperationError], results
        assert len(pair.stage.done) == 1
        seen = await asyncio.gather(*(server.engine.view(ALICE, view.task.id) for server in (pair.one, pair.two)))
        assert seen[0].task == seen[1].task and seen[0].task.status.state == COMPLETED
        assert texts(seen[0].task) == [f"got {pair.stage.done[0]}"]


@pytest.mark.requirement("BL-08", "BL-48")
async def test_the_turn_of_a_replica_that_is_gone_is_settled_by_another_in_time(pair: Pair) -> None:
    task_id = await running(pair.one.engine)
    asked = await send(pair.one.engine, "ask", message_id="q")
    reader = asyncio.ensure_future(read(pair.two.engine, task_id))
    loop = asyncio.get_running_loop()
    await vanish(pair.one)
    gone = loop.time()
    events = await reader
    assert loop.time() - gone < LEASE + 1.0 + 20.0  # the last is for a busy machine
    assert states(events)[-1] == FAILED
    pair.stage.gate.set()
    view = await pair.two.engine.view(ALICE, task_id)
    assert view.task.status.state == FAILED and not texts(view.task)
    assert await read(pair.two.engine, task_id) == events
    answered = await send(pair.two.engine, "blue", asked.task.id, message_id="a")
    assert texts(answered.task) == ["got blue"]


async def listening(pair: Pair, text: str = "listen") -> str:
    """A task of the first server that reads its inbox."""
    task_id = await running(pair.one.engine, text)
    turn = next(turn for turn in pair.one.engine.turns if turn.task_id == task_id)
    await until(lambda: turn.takes_messages)
    return task_id


@pytest.mark.requirement("OP-SEND-17", "BL-48")
async def test_a_turn_hears_what_is_sent_to_another_replica_in_order(pair: Pair) -> None:
    task_id = await listening(pair)
    for number in range(5):
        started = await begin(
            (pair.two, pair.one)[number % 3 == 2].engine, f"{number}", task_id, message_id=f"{number}"
        )
        assert await started.outcome() == task_id and started.opening is None
    many = [begin(pair.two.engine, f"many {number}", task_id, message_id=f"many {number}") for number in range(20)]
    await asyncio.gather(*many)
    view = await send(pair.two.engine, "stop", task_id, message_id="stop")  # waits for the end of the turn
    heard = texts(view.task)[0]
    assert heard.startswith("0 1 2 3 4 many ") and heard.endswith(" stop")
    assert sorted(heard.split()[6:-1:2]) == sorted(map(str, range(20)))
    assert [text for text in said(view.task) if text not in ("listen", "listening")] == [*said_of(heard)]


def said_of(heard: str) -> list[str]:
    """The messages that a listening function has joined."""
    return heard.replace("many ", "many-").replace(" ", ",").replace("many-", "many ").split(",")


@pytest.mark.requirement("AUTH-10", "OP-SEND-16", "BL-48")
async def test_a_turn_that_waits_for_its_caller_elsewhere_is_one_to_every_replica(pair: Pair) -> None:
    task_id = (await send(pair.one.engine, "auth")).task.id
    asked = await send(pair.two.engine, "where?", task_id, message_id="m2")
    assert asked.task.status.state == AUTH and said(asked.task) == ["auth", "where?"]
    canceled = (await send(pair.one.engine, "auth", message_id="m3")).task.id
    await pair.two.engine.cancel(ALICE, canceled, v1.CancelTaskRequest(id=canceled))
    reader = asyncio.ensure_future(read(pair.two.engine, task_id))
    pair.stage.gate.set()
    assert states(await reader)[-3:] == [AUTH, WORKING, COMPLETED]
    assert states(await read(pair.one.engine, canceled))[-2:] == [AUTH, CANCELED]


@pytest.mark.requirement("OP-SEND-17", "BL-10", "BL-48")
async def test_a_turn_that_does_not_listen_refuses_what_is_sent_to_another_replica(pair: Pair) -> None:
    task_id = await running(pair.one.engine)
    for server in (pair.two, pair.one):
        with pytest.raises(UnsupportedOperationError, match="being worked on"):
            await begin(server.engine, "more", task_id, message_id="more")
    pair.stage.gate.set()
    view = await pair.two.engine.settled(ALICE, task_id)
    assert said(view.task) == ["wait", "at it"]
    with pytest.raises(UnsupportedOperationError, match="has ended"):
        await begin(pair.two.engine, "more", task_id, message_id="more")


@pytest.mark.requirement("OP-SEND-14", "OP-SEND-17", "BL-51")
async def test_a_message_that_comes_to_several_replicas_at_once_is_heard_once(pair: Pair) -> None:
    task_id = await listening(pair)
    for number in range(4):
        copies = [
            begin(server.engine, f"{number}", task_id, message_id=f"{number}") for server in (pair.one, pair.two) * 2
        ]
        assert {await started.outcome() for started in await asyncio.gather(*copies)} == {task_id}
    for server in (pair.two, pair.one):
        with pytest.raises(InvalidParamsError):
            await (await begin(server.engine, "other", task_id, message_id="1")).outcome()
    view = await send(pair.two.engine, "stop", task_id, message_id="stop")
    assert texts(view.task) == [f"{' '.join(map(str, range(4)))} stop"]


@pytest.mark.requirement("OP-SEND-17", "BL-10", "BL-48")
async def test_a_message_against_the_end_of_its_turn_is_heard_or_answers_or_is_refused(pair: Pair) -> None:
    """A hundred rounds, a few at a time, of messages that would not be recognised if they came again."""
    somebody = Call("send", caller=Caller(ALICE.owner))
    for batch in range(5):
        pair.stage.gate.clear()
        kinds = ["listen", "listen ask"] * 10
        ids = await asyncio.gather(*(listening(pair, kind) for kind in kinds))
        sends = [
            asyncio.ensure_future(pair.two.engine.begin(somebody, ALICE, message("late", task_id))) for task_id in ids
        ]
        for _ in range(batch):  # the race; hints that mean nothing make senders look
            await asyncio.sleep(0.003)
            for task_id in ids:
                pair.two.engine.bus.publish(task_id, 10_000)
        pair.stage.gate.set()
        results = await asyncio.gather(*sends, return_exceptions=True)
        for task_id, kind, result in zip(ids, kinds, results, strict=True):
            view = await pair.two.engine.settled(ALICE, task_id)
            assert said(view.task).count("late") == (not isinstance(result, BaseException)), (result, view.task)
            if isinstance(result, BaseException):
                assert isinstance(result, UnsupportedOperationError) and kind == "listen", result
    assert not await leftovers(pair)


async def leftovers(pair: Pair) -> int:
    """Messages that lie in the store."""
    rows = await pair.two.store._link.rows("SELECT id FROM posts", {})  # type: ignore[attr-defined]
    return len(rows)


@pytest.mark.requirement("OP-SEND-17", "BL-08", "BL-48")
async def test_who_has_a_message_for_a_replica_that_is_gone_hears_that_the_task_has_ended(pair: Pair) -> None:
    task_id = await listening(pair)
    await vanish(pair.one)
    with pytest.raises(UnsupportedOperationError, match="has ended"):
        await begin(pair.two.engine, "late", task_id, message_id="late")
    view = await pair.two.engine.view(ALICE, task_id)
    assert view.task.status.state == FAILED and "late" not in said(view.task)
    assert not await leftovers(pair)


@pytest.mark.requirement("OP-SEND-17", "BL-08", "BL-48")
async def test_a_message_that_is_stored_is_not_refused_though_its_turn_lost_its_lease_meanwhile(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    task_id = await listening(pair)
    [turn] = pair.one.engine.turns
    store: Any = pair.one.store
    commit, slow, go_on = store.commit, asyncio.Event(), asyncio.Event()

    async def slowly(change: Any) -> Any:
        slow.set()
        await go_on.wait()
        return await commit(change)

    async def nothing(*_: Any) -> list[Any]:
        return []

    monkeypatch.setattr(store, "commit", slowly)
    for server in (pair.one, pair.two):
        monkeypatch.setattr(server.store, "lost", nothing)
    sending = asyncio.ensure_future(begin(pair.one.engine, "late", task_id, message_id="late"))
    await slow.wait()
    turn.stop(LeaseLost("the lease could not be renewed"))
    again = asyncio.ensure_future(begin(pair.one.engine, "late", task_id, message_id="late"))
    done, _ = await asyncio.wait((sending, again), timeout=0.3)
    assert not done
    go_on.set()
    await until(lambda: turn.durable == turn.sequence)
    monkeypatch.undo()  # now the turn may be settled
    for started in await asyncio.gather(sending, again):
        assert await started.outcome() == task_id
    view = await pair.two.engine.settled(ALICE, task_id)
    assert view.task.status.state == FAILED and said(view.task).count("late") == 1


@pytest.mark.requirement("OP-SEND-17", "BL-44")
async def test_a_message_whose_sender_died_is_deleted_soon_after(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    task_id = await listening(pair)
    [turn] = pair.one.engine.turns
    monkeypatch.setattr(pair.two.store, "posted", lambda _: asyncio.Event().wait())  # it never asks
    sending = asyncio.ensure_future(begin(pair.two.engine, "hi", task_id, message_id="hi"))
    await until(lambda: "hi" in [entry.parts[0].text for entry in turn.history])
    left = list[int]()
    for age in (0, 60_000):
        await pair.two.store.trim(Retention(pair.two.store.now_ms() + age, 1 << 40, 1 << 40, 100))
        left.append(await leftovers(pair))
    assert left == [1, 0]
    sending.cancel()


@pytest.mark.requirement("OP-SEND-17", "BL-48")
async def test_a_sender_that_stood_still_does_not_send_again_what_may_have_been_taken(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    task_id = await listening(pair)
    store: Any = pair.two.store
    posted, asked = store.posted, list[int]()

    async def stand_still(number: int) -> int | None:
        """Ask so late that the message, which was taken, is no longer kept."""
        asked.append(number)
        await until(lambda: "late" in heard())
        await posted(number)
        monkeypatch.setattr("time.monotonic", lambda: monotonic() + 3600)
        return None

    def heard() -> list[str]:
        [turn] = pair.one.engine.turns
        return [entry.parts[0].text for entry in turn.history]

    monotonic = time.monotonic
    monkeypatch.setattr(store, "posted", stand_still)
    with pytest.raises(UnavailableError):
        await pair.two.engine.begin(Call("send", caller=Caller(ALICE.owner)), ALICE, message("late", task_id))
    assert len(asked) == 1 and heard().count("late") == 1


@pytest.mark.requirement("BL-34", "BL-48")
async def test_a_server_that_stops_leaves_its_readers_a_place_to_go_on_from(pair: Pair) -> None:
    view = await send(pair.one.engine, "ask", message_id="q")
    await pair.one.stop()
    answered = await send(pair.two.engine, "red", view.task.id, message_id="a")
    assert texts(answered.task) == ["got red"]
    assert [event.sequence for event in await read(pair.two.engine, view.task.id, view.sequence)][
        -1
    ] == answered.sequence
