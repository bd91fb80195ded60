"""Streams that break: taken up again on every wire, each event told once and none left out."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from a2a_stubs import v1

from a2a_grpc import Agent, TaskHandle, errors
from a2a_grpc.client import Client
from a2a_grpc.client_auth import Channel
from a2a_grpc.client_retries import Retries
from a2a_grpc.client_streams import Following, Told, Ways, merged, remainder
from a2a_grpc.server import Server
from a2a_grpc.testing import serve, until
from tests.fronts import WIRES, asking
from tests.proxies import card_at, proxy

QUICK = Retries(first=0.01, most=0.05, patience=60.0)
PIECES = 60
HUSH: dict[str, asyncio.Event] = {}
"""By the text of a message: what its task waits for half-way, without a word."""
agent = Agent(name="Counter", description="Counts in pieces.", version="1", skills=[])


@agent.handle
async def count(task: TaskHandle) -> None:
    """Pieces of one artifact, at a pace."""
    async with task.artifact(name="numbers", id="numbers") as out:
        for number in range(PIECES):
            await asyncio.sleep(0.01)
            await out.write(f"{number} ")
            if number == PIECES // 2:
                await task.working("half")
                if task.text in HUSH:
                    await HUSH[task.text].wait()
    if task.text == "ask":
        await task.ask("More?")


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with serve(agent, heartbeat=0.2) as running:
        yield running


def address(server: Server, binding: str) -> str:
    return server.grpc_address if binding == "GRPC" else server.http_address


async def collected(events: Any, each: Any = None) -> tuple[str, list[int]]:
    """The text of the artifact and the states, as a reader puts them together."""
    words, states = "", []
    async for event in events:
        kind = event.WhichOneof("payload")
        if kind == "artifact_update":
            pieces = "".join(part.text for part in event.artifact_update.artifact.parts)
            words = words + pieces if event.artifact_update.append else pieces
        elif kind == "status_update":
            states.append(event.status_update.status.state)
        if each is not None:
            each()
    return words, states


WHOLE = "".join(f"{number} " for number in range(PIECES))


def every(number: int, act: Any) -> Any:
    """Something to do after each so many events."""
    seen = iter(range(1, 10_000))
    return lambda: act() if next(seen) % number == 0 else None


@pytest.mark.requirement("OP-STREAM-10", "STREAM-12")
@pytest.mark.parametrize("numbered", [True, False])
@pytest.mark.parametrize(("binding", "version"), WIRES)
async def test_a_stream_that_is_cut_again_and_again_loses_and_doubles_nothing(
    server: Server, binding: str, version: str, numbered: bool
) -> None:
    async with proxy(address(server, binding)) as between:
        card = card_at(binding, version, between.address, numbered=numbered)
        async with Client(card, version=version, retries=QUICK) as client:
            words, states = await collected(client.stream(asking("go")), every(15, between.cut))
            assert words == WHOLE and states[-1] == v1.TASK_STATE_COMPLETED
            assert states.count(v1.TASK_STATE_COMPLETED) == 1 and between.accepted >= 3


@pytest.mark.parametrize(("binding", "version"), WIRES)
async def test_a_subscriber_is_told_the_same_and_a_question_ends_a_send(
    server: Server, binding: str, version: str
) -> None:
    async with proxy(address(server, binding)) as between:
        card = card_at(binding, version, between.address, numbered=True)
        async with Client(card, version=version, retries=QUICK) as client:
            events = client.stream(asking("ask"))
            task = (await anext(events)).task
            (words, states), (others, _) = await asyncio.gather(
                collected(events, every(15, between.cut)), first_of(client.subscribe(task.id))
            )
            assert words == WHOLE and states[-1] == v1.TASK_STATE_INPUT_REQUIRED
            assert others == WHOLE
            waiting = await client.wait(task.id, timeout=30)
            assert waiting.status.state == v1.TASK_STATE_INPUT_REQUIRED


async def first_of(events: Any) -> tuple[str, list[int]]:
    """What a subscriber has put together when the task asks."""
    words = ""
    async for event in events:
        if event.HasField("task"):
            words = "".join(part.text for artifact in event.task.artifacts for part in artifact.parts)
        elif event.HasField("artifact_update"):
            words += "".join(part.text for part in event.artifact_update.artifact.parts)
        elif event.status_update.status.state == v1.TASK_STATE_INPUT_REQUIRED:
            break
    await events.aclose()
    return words, []


@pytest.mark.requirement("OP-STREAM-10")
@pytest.mark.parametrize("numbered", [True, False])
async def test_silent_streams_that_are_cut_on_the_way_go_on_on_every_wire(numbered: bool) -> None:
    async def followed(server: Server, binding: str, version: str) -> None:
        HUSH[text := f"think {binding} {version}"] = enough = asyncio.Event()

        async def cut_twice() -> None:
            await until(lambda: between.accepted >= 3, 60.0)
            enough.set()

        async with proxy(address(server, binding)) as between:
            card = card_at(binding, version, between.address, numbered=numbered)
            async with Client(card, version=version, retries=QUICK) as client:
                begun = partial(setattr, between, "patience", 0.6)  # not before: who asks may not be cut off in silence
                stream = collected(client.stream(asking(text)), begun)
                (words, states), _ = await asyncio.gather(stream, cut_twice())
                assert words == WHOLE and states[-1] == v1.TASK_STATE_COMPLETED
                assert states.count(v1.TASK_STATE_COMPLETED) == 1

    async with serve(agent, heartbeat=60.0) as server:
        await asyncio.gather(*(followed(server, *wire) for wire in WIRES))


@pytest.mark.parametrize(("binding", "version"), [("JSONRPC", "1.0"), ("HTTP+JSON", "1.0"), ("GRPC", "1.0")])
async def test_a_connection_that_has_died_in_silence_is_noticed(server: Server, binding: str, version: str) -> None:
    async with proxy(address(server, binding)) as between:
        card = card_at(binding, version, between.address, numbered=True)
        async with Client(card, version=version, retries=QUICK, silence=0.6) as client:
            frozen = iter([between.freeze])
            words, states = await collected(client.stream(asking("go")), every(20, lambda: next(frozen, int)()))
            assert words == WHOLE and states[-1] == v1.TASK_STATE_COMPLETED


@pytest.mark.parametrize("streams", ["h2", "grpcio"])
@pytest.mark.parametrize(("binding", "version"), [("JSONRPC", "1.0"), ("HTTP+JSON", "1.0"), ("GRPC", "1.0")])
async def test_a_reader_that_takes_its_time_is_no_silence_of_the_agent(
    server: Server, binding: str, version: str, streams: str
) -> None:
    async with proxy(address(server, binding)) as between:
        card = card_at(binding, version, between.address)
        async with Client(card, retries=None, silence=1.2, channel=Channel(streams=streams)) as client:
            found = []
            async for event in client.events("SendStreamingMessage", asking("go")):
                if len(found) in (0, 10):
                    await asyncio.sleep(2.0)
                found.append(event)
            assert found[-1].status_update.status.state == v1.TASK_STATE_COMPLETED
            assert between.accepted == 1 or binding == "GRPC"


async def test_an_agent_that_never_comes_back_is_unavailable(server: Server) -> None:
    async with proxy(server.http_address) as between:

        def end() -> None:
            between.refuses = True
            between.cut()

        card = card_at("JSONRPC", "1.0", between.address, numbered=True)
        async with Client(card, retries=Retries(first=0.01, most=0.02, patience=0.3)) as client:
            with pytest.raises(errors.UnavailableError):
                await collected(client.stream(asking("go")), every(5, end))


async def test_a_first_call_is_repeated_only_where_the_agent_tells_repetitions_apart(server: Server) -> None:
    async with proxy(server.http_address) as between:
        between.refuses = True

        async def opened() -> None:
            await until(lambda: between.accepted > 1)
            between.refuses = False

        for again in (True, False):
            between.refuses, between.accepted = True, 0
            settings: dict[str, Any] = {"retries": Retries(10, first=0.05, most=0.1), "repeat_sends": again}
            async with Client(card_at("JSONRPC", "1.0", between.address), **settings) as client:
                opening = asyncio.create_task(opened())
                if again:
                    words, _ = await collected(client.stream(asking("twice")))
                    assert words == WHOLE
                else:
                    with pytest.raises(errors.UnavailableError):
                        await collected(client.stream(asking("once")))
                    assert between.accepted == 1
                opening.cancel()


# -- the parts


def texts(*words: str) -> list[v1.Part]:
    return [v1.Part(text=word) for word in words]


DATA = v1.Part(url="https://example.org/x")


def test_what_is_new_is_told_however_an_agent_cuts_its_texts() -> None:
    assert merged([*texts("a", "b", ""), DATA, *texts("c")]) == [*texts("ab"), DATA, *texts("c")]
    assert remainder(texts("ab"), [*texts("abc"), DATA]) == [*texts("c"), DATA]
    assert remainder([*texts("a"), DATA], [*texts("a"), DATA]) == []
    assert remainder([*texts("a"), DATA], texts("a")) == [] == remainder(texts("abc"), texts("ab"))
    assert remainder(texts("ab"), texts("xy")) is None and remainder([DATA], texts("a")) is None


def test_an_artifact_that_was_replaced_is_told_anew_and_an_old_status_not_at_all() -> None:
    told = Told()
    first = v1.Task(id="t", context_id="c", artifacts=[v1.Artifact(artifact_id="a", parts=texts("old"))])
    first.status.state = v1.TASK_STATE_WORKING
    first.status.timestamp.FromSeconds(10)
    told.take(v1.StreamResponse(task=first), whole=True)
    assert told.news(first) == []
    now = v1.Task()
    now.CopyFrom(first)
    now.artifacts[0].parts[0].text = "new"
    now.status.state = v1.TASK_STATE_SUBMITTED
    now.status.timestamp.FromSeconds(9)
    (replaced,) = told.news(now)
    assert not replaced.artifact_update.append and replaced.artifact_update.artifact.parts[0].text == "new"


async def test_an_agent_that_cannot_be_subscribed_to_is_asked_for_its_task() -> None:
    states = iter([v1.TASK_STATE_WORKING, v1.TASK_STATE_WORKING, v1.TASK_STATE_COMPLETED])
    calls: list[str] = []

    async def first() -> Any:
        yield "", v1.StreamResponse(task=v1.Task(id="t", status=v1.TaskStatus(state="TASK_STATE_SUBMITTED")))
        raise errors.UnavailableError

    async def resume(task_id: str, last: str) -> Any:
        calls.append(last)
        raise errors.TaskNotFoundError
        yield

    async def task(task_id: str) -> v1.Task:
        return v1.Task(id="t", status=v1.TaskStatus(state=next(states)))

    following = Following(Ways(first, resume, task, False, True), QUICK, False)
    _, told = await collected(event async for _, event in following.events())
    assert told == [v1.TASK_STATE_WORKING, v1.TASK_STATE_COMPLETED] and calls == [""]


async def test_a_question_that_is_being_answered_is_not_the_end_of_the_stream() -> None:
    asked = v1.Task(id="t", status=v1.TaskStatus(state="TASK_STATE_INPUT_REQUIRED"))
    done = v1.Task(id="t", status=v1.TaskStatus(state="TASK_STATE_COMPLETED"))

    async def first() -> Any:
        yield "", v1.StreamResponse(task=asked)
        raise errors.UnavailableError

    async def resume(task_id: str, last: str) -> Any:
        yield "", v1.StreamResponse(task=done)

    async def task(task_id: str) -> v1.Task:
        return done

    for answers, states in ((True, [v1.TASK_STATE_COMPLETED]), (False, [])):
        following = Following(Ways(first, resume, task, False, True, answers), QUICK, False)
        assert (await collected(event async for _, event in following.events()))[1] == states


asker = Agent(name="Asker", description="Asks before it works.", version="1", skills=[])


@asker.handle
async def asks(task: TaskHandle) -> str | None:
    """One question, then the answer."""
    if task.answer is None:
        await task.ask("Which?")
        return None
    return f"got {task.answer}"


@pytest.mark.parametrize("numbered", [True, False])
@pytest.mark.parametrize(("binding", "version"), WIRES)
async def test_a_subscriber_outlives_a_server_that_starts_again(
    tmp_path: Path, binding: str, version: str, numbered: bool
) -> None:
    store = f"sqlite:{tmp_path}/tasks.db"
    async with proxy("127.0.0.1:1") as between:
        card = card_at(binding, version, between.address, numbered=numbered)
        async with Client(card, version=version, retries=QUICK) as client:
            async with serve(asker, store=store) as server:
                between.target = address(server, binding)
                task = (await client.send(asking("go"))).task
                events = client.subscribe(task.id)
                assert (await anext(events)).task.id == task.id
                following = asyncio.create_task(collected(events))
                await asyncio.sleep(0.05)
            async with serve(asker, store=store) as server:
                between.target = address(server, binding)
                answer = asking("this", task_id=task.id, context_id=task.context_id)
                async with Client(server.http_url, retries=QUICK) as other:
                    assert (await other.send(answer)).task.status.state == v1.TASK_STATE_COMPLETED
                async with asyncio.timeout(30):
                    words, states = await following
                assert words == "got this" and states[-1] == v1.TASK_STATE_COMPLETED
                assert states.count(v1.TASK_STATE_COMPLETED) == 1
