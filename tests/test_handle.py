"""What an author's function can know and do, and what comes of it."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from a2a_stubs import v1

from a2a_grpc.agent import TaskHandle, TurnEnded
from a2a_grpc.errors import InvalidAgentResponseError
from a2a_grpc.tasks.memory import MemoryStore
from tests.turns import (
    ALICE,
    BOB,
    COMPLETED,
    FAILED,
    INPUT,
    SUBMITTED,
    WORKING,
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

SEEN: dict[str, Any] = {}


@pytest.fixture(autouse=True)
def _forget() -> None:
    SEEN.clear()


async def run(function: Any, request: v1.SendMessageRequest | None = None, **options: Any) -> v1.Task:
    async with engine(MemoryStore(), function, **options) as made:
        started = await made.begin(call(), ALICE, request or message())
        return (await made.settled(ALICE, str(await started.outcome()))).task


@pytest.mark.requirement("OP-SEND-10", "DATA-03", "CTX-10", "AUTH-06")
async def test_the_handle_tells_everything_about_the_message() -> None:
    async def looks(task: TaskHandle) -> None:
        SEEN.update(
            text=task.text,
            data=task.data,
            files=[part.filename for part in task.files],
            parts=len(task.parts),
            message=task.message.message_id,
            ids=(task.id, task.context_id) == (task.message.task_id, task.message.context_id),
            caller=task.caller.subject,
            tenant=task.tenant,
            metadata=task.metadata,
            modes=task.accepted_output_modes,
            attempt=task.attempt,
            extensions=task.extensions,
            answer=task.answer,
            history=[entry.message_id for entry in task.history],
            canceled=(task.canceled, task.cancel_metadata),
        )

    request = message("one")
    request.message.parts.add(text="two")
    request.message.parts.add(raw=b"x", filename="f")
    request.message.parts.add(url="https://agent.example/g", filename="g")
    for value in (1.0, 2.0):
        request.message.parts.add().data.number_value = value
    request.metadata["k"] = [1, "v"]
    request.configuration.accepted_output_modes.append("text/plain")
    await run(looks, request)
    assert SEEN == {
        "text": "one\ntwo",
        "data": 1,
        "files": ["f", "g"],
        "parts": 6,
        "message": "m",
        "ids": True,
        "caller": "alice",
        "tenant": "",
        "metadata": {"k": [1, "v"]},
        "modes": ["text/plain"],
        "attempt": 1,
        "extensions": (),
        "answer": None,
        "history": ["m"],
        "canceled": (False, None),
    }


@pytest.mark.requirement("OP-SEND-15")
@pytest.mark.parametrize(
    ("text", "data", "answer"),
    [("blue", None, "blue"), ('{"n": 1}', None, {"n": 1}), ("5", 7.0, 7), ("", None, ""), ("", 0.0, 0)],
)
async def test_an_answer_is_data_else_json_else_words(text: str, data: float | None, answer: Any) -> None:
    async def asks(task: TaskHandle) -> None:
        SEEN["answer"] = task.answer
        if task.answer is None:
            task.state["asked"] = [*task.state.get("asked", []), "which"]
            await task.ask("which?", data={"choices": ["a", "b"]}, schema={"type": "string"})
        SEEN["state"] = task.state

    async with engine(MemoryStore(), asks) as made:
        first = (await send(made)).task
        prompt, choices, schema = first.status.message.parts
        assert prompt.text == "which?" and choices.data.struct_value["choices"][0] == "a"
        assert schema.data.struct_value["type"] == "string" and schema.media_type == "application/schema+json"
        request = message(text, first.id)
        if data is not None:
            request.message.parts.add().data.number_value = data
        await made.settled(ALICE, (await made.begin(call(), ALICE, request)).task_id)
        assert {"answer": answer, "state": {"asked": ["which"]}} == SEEN


@pytest.mark.requirement("OP-SEND-15")
async def test_an_author_state_that_is_too_large_or_no_json_is_refused_at_the_question() -> None:
    for value, text in (("x" * 65_536, "limit is 65536"), (float("nan"), "finite")):

        async def keeps(task: TaskHandle, value: Any = value, text: str = text) -> None:
            task.state["k"] = value
            with pytest.raises(InvalidAgentResponseError, match=text):
                await task.ask("?")
            await task.fail("could not ask")

        assert (await run(keeps)).status.state == FAILED


@pytest.mark.requirement("DATA-14", "BL-26", "BL-31")
@pytest.mark.parametrize("value", [{"x": float("nan")}, v1.Part(), v1.Artifact(), object()])
async def test_a_broken_result_fails_the_task_and_leaves_it_readable(value: Any) -> None:
    async def breaks(task: TaskHandle) -> Any:
        with pytest.raises(InvalidAgentResponseError):
            await task.add_artifact(value)
        await task.add_artifact("fine")
        return value

    task = await run(breaks)
    assert task.status.state == FAILED and texts(task) == ["fine"]
    assert task.status.message.parts[0].text.startswith("The agent failed")


@pytest.mark.requirement("DATA-14", "BL-26", "JSON-19")
async def test_text_that_is_no_unicode_is_refused_where_it_is_written_and_the_artifact_goes_on() -> None:
    half = "half an emoji: \ud83d"

    async def writes(task: TaskHandle) -> None:
        out = task.artifact(name="n")
        acts = (
            *(out.write, out.write, out.replace, task.working, task.ask, task.reply, task.add_artifact),
            lambda text: task.add_artifact("x", name=text),
            lambda text: task.add_artifact(b"x", media_type=text),
        )
        for number, act in enumerate(acts):
            with pytest.raises(InvalidAgentResponseError, match="unpaired surrogate"):
                await act(half)
            if number < 3:
                await out.write(f"{number} ")
        await out.close()

    task = await run(writes)
    assert task.status.state == COMPLETED and texts(task) == ["0 1 2 "]


@pytest.mark.requirement("OP-SEND-18", "DATA-07")
@pytest.mark.parametrize(
    ("value", "part"),
    [
        ("", v1.Part(text="")),
        (b"x", v1.Part(raw=b"x", media_type="application/octet-stream")),
        (v1.Message(parts=[v1.Part(text="m")]), v1.Part(text="m")),
        (v1.Part(url="https://agent.example/f"), v1.Part(url="https://agent.example/f")),
    ],
)
async def test_a_returned_value_is_the_one_artifact(value: Any, part: v1.Part) -> None:
    async def returns(task: TaskHandle) -> Any:
        return value

    task = await run(returns)
    assert task.status.state == COMPLETED and len(task.artifacts) == 1
    assert task.artifacts[0].artifact_id and list(task.artifacts[0].parts) == [part]


async def test_a_whole_artifact_keeps_what_it_says_about_itself() -> None:
    async def adds(task: TaskHandle) -> None:
        given = v1.Artifact(
            artifact_id="a1", name="n", description="d", extensions=["urn:x"], parts=[v1.Part(text="t")]
        )
        given.metadata["k"] = "v"
        await task.add_artifact(given)
        await task.add_artifact({"n": 1}, name="data", media_type="application/json", metadata={"k": 1})

    first, second = (await run(adds)).artifacts
    assert (first.artifact_id, first.name, first.description, first.metadata["k"]) == ("a1", "n", "d", "v")
    assert list(first.extensions) == ["urn:x"]
    assert (second.name, second.parts[0].media_type, second.metadata["k"]) == ("data", "application/json", 1)


@pytest.mark.requirement("DATA-07", "OP-SEND-18")
@pytest.mark.parametrize("text", ["", "ä\0😀", "x" * 100_000])
async def test_a_text_keeps_what_is_said_of_its_artifact(text: str) -> None:
    about: dict[str, Any] = {"name": "n", "description": "d", "metadata": {"k": "v"}, "extensions": ["urn:x"]}

    async def adds(task: TaskHandle) -> None:
        await task.add_artifact(text, id="a1", media_type="text/markdown", **about)
        out = task.artifact(id="a2", media_type="text/markdown", **about)
        await out.write(text)
        await out.write(" and more", last=True)

    first, second = (await run(adds)).artifacts
    part = v1.Part(text=text, media_type="text/markdown")
    assert first == v1.Artifact(artifact_id="a1", parts=[part], **about)
    part.text += " and more"
    assert second == v1.Artifact(artifact_id="a2", parts=[part], **about)


@pytest.mark.requirement("BL-26")
@pytest.mark.parametrize("where", ["value", "id", "name", "media_type"])
async def test_an_artifact_with_half_a_character_is_refused_at_the_call(where: str) -> None:
    async def breaks(task: TaskHandle) -> str:
        place = "text" if where in ("value", "media_type") else "artifact"
        with pytest.raises(InvalidAgentResponseError, match=f"{place} holds an unpaired surrogate"):
            await task.add_artifact(**{"value": "text", where: "\ud800"})
        return "fine"

    task = await run(breaks)
    assert task.status.state == COMPLETED and texts(task) == ["fine"]


@pytest.mark.requirement("STREAM-07", "STREAM-08", "BL-15", "BL-31")
async def test_an_artifact_can_be_written_replaced_and_marked_as_complete() -> None:
    async def writes(task: TaskHandle) -> None:
        async with task.artifact(name="text", media_type="text/markdown") as out:
            await out.write("wrong")
            await out.replace("right")
            await out.write(" answer")
        async with task.artifact(name="data") as out:
            await out.write({"n": 1})
            await out.write({"n": 2}, last=True)
            with pytest.raises(InvalidAgentResponseError, match="last chunk"):
                await out.write("more")
        async with task.artifact(name="nothing"):
            pass

    async with engine(MemoryStore(), writes) as made:
        started = await begin(made)
        events = await read(made, started.task_id)
        chunks = [event.payload.artifact_update for event in events if event.payload.HasField("artifact_update")]
        assert [(chunk.append, chunk.last_chunk) for chunk in chunks] == [
            (False, False),
            (False, False),
            (True, False),
            (True, True),
            (False, False),
            (True, True),
        ]
        first, second = (await made.view(ALICE, started.task_id)).task.artifacts
        assert [part.text for part in first.parts] == ["right answer"] and first.name == "text"
        assert first.parts[0].media_type == "text/markdown"
        assert len(second.parts) == 2


@pytest.mark.requirement("DATA-11", "OP-STREAM-04")
async def test_after_the_end_every_action_is_refused_in_the_agent() -> None:
    async def goes_on(task: TaskHandle) -> None:
        await task.complete("done")
        for action in (
            task.working("x"),
            task.add_artifact("x"),
            task.complete(),
            task.fail("x"),
            task.ask("x"),
            task.reply("x"),
        ):
            with pytest.raises(TurnEnded, match="COMPLETED"):
                await action
        SEEN["all"] = True

    assert (await run(goes_on)).status.state == COMPLETED
    await until(lambda: SEEN)


async def test_a_status_carries_text_and_metadata() -> None:
    async def tells(task: TaskHandle) -> None:
        await task.working("half", metadata={"percent": 50})
        await task.working()

    async with engine(MemoryStore(), tells) as made:
        started = await begin(made)
        events = await read(made, started.task_id)
        assert events[1].payload.status_update.metadata["percent"] == 50
        assert said((await made.view(ALICE, started.task_id)).task) == ["hi", "half"]
        assert said((await made.view(ALICE, started.task_id)).task)
    assert said(await run(tells, keep_status_messages=False)) == ["hi"]


async def stream(task: TaskHandle) -> AsyncIterator[Any]:
    for word in ("a", "b", None, "c"):
        yield word


def plain_stream(task: Any) -> Iterator[Any]:
    yield from ("a", "b", None, "c")


@pytest.mark.requirement("OP-STREAM-08", "STREAM-07", "BL-15", "BL-17")
@pytest.mark.parametrize("function", [stream, plain_stream])
async def test_yielded_values_stream_one_artifact(function: Any) -> None:
    async with engine(MemoryStore(), function) as made:
        started = await begin(made)
        events = await read(made, started.task_id)
        chunks = [event.payload.artifact_update for event in events if event.payload.HasField("artifact_update")]
        assert [chunk.artifact.parts[0].text for chunk in chunks] == ["a", "b", "c", ""]
        task = (await made.view(ALICE, started.task_id)).task
        assert texts(task) == ["abc"] and task.status.state == COMPLETED


@pytest.mark.requirement("BL-17")
async def test_a_plain_function_does_everything_without_await() -> None:
    def plain(task: Any) -> Any:
        SEEN["thread"] = threading.current_thread() is not threading.main_thread()
        if task.answer is None:
            task.working("begin")
            with task.artifact(name="a") as out:
                out.write("x")
                out.write("y")
            task.context.memory.set("k", task.text)
            task.state["n"] = 1
            return task.ask("which?")
        known = [task.answer, task.context.memory.get("k"), task.state, len(task.context.tasks())]
        return [*known, next(task.inbox).parts[0].text]

    async with engine(MemoryStore(), plain) as made:
        first = (await send(made)).task
        assert first.status.state == INPUT and texts(first) == ["xy"] and SEEN["thread"]
        started = await begin(made, "blue", first.id)
        turn = started.turn
        assert turn is not None
        await until(lambda: turn.takes_messages)
        await begin(made, "more", first.id)
        second = (await made.settled(ALICE, first.id)).task
        assert second.status.state == COMPLETED and said(second)[-1] == "more"
        found = list(second.artifacts[-1].parts[0].data.list_value)
        assert found[:2] == ["blue", "hi"] and found[3:] == [0, "more"]


@pytest.mark.requirement("BL-17")
@pytest.mark.parametrize("error", [ValueError, StopIteration, SystemExit])
async def test_an_error_in_a_plain_function_fails_its_task(error: type[BaseException]) -> None:
    def breaks(task: Any) -> None:
        raise error

    assert (await run(breaks)).status.state == FAILED


@pytest.mark.requirement("BL-17", "OP-CANCEL-06")
async def test_plain_functions_leave_the_loop_free_and_notice_a_cancel() -> None:
    def sleeps(task: Any) -> None:
        task.working("asleep")
        while not task.canceled:
            time.sleep(0.005)
        SEEN["noticed"] = True

    async with engine(MemoryStore(), sleeps) as made:
        started = [await begin(made) for _ in range(5)]
        for one in started:
            async for event in made.follow(ALICE, one.task_id, 0):
                if states([event]) == [WORKING]:
                    break
        await made.cancel(ALICE, started[0].task_id, v1.CancelTaskRequest())
        await until(lambda: SEEN)
        for one in started[1:]:
            await made.cancel(ALICE, one.task_id, v1.CancelTaskRequest())


@pytest.mark.requirement("OP-SEND-04")
async def test_a_function_that_works_before_it_says_anything_is_shown_as_working() -> None:
    go = asyncio.Event()

    async def silent(task: TaskHandle) -> str:
        await go.wait()
        return "done"

    async with engine(MemoryStore(), silent) as made:
        started = await begin(made)
        async for event in made.follow(ALICE, started.task_id, 1):
            if states([event]) == [WORKING]:
                break
        go.set()
        assert states(await read(made, started.task_id)) == [SUBMITTED, WORKING, COMPLETED]


@pytest.mark.requirement("CTX-10", "CTX-12", "CTX-14", "TENANT-05")
async def test_the_conversation_is_the_callers_own() -> None:
    async def remembers(task: TaskHandle) -> str:
        memory = task.context.memory
        earlier = [entry.text for text in await task.context.messages() for entry in text.parts]
        before = await memory.all()
        await memory.set("last", task.text)
        await memory.set("gone", 1)
        await memory.delete("gone")
        assert await memory.get("last") == task.text and await memory.get("gone", "no") == "no"
        referenced = [found.id for found in await task.context.referenced()]
        tasks = [texts(found) for found in await task.context.tasks()]
        SEEN["seen"] = (before, earlier, tasks, referenced)
        return task.text.upper()

    async with engine(MemoryStore(), remembers) as made:
        first = (await send(made, "one", context_id="c")).task
        assert SEEN["seen"] == ({}, [], [], [])
        request = message("two", context_id="c")
        request.message.reference_task_ids.extend([first.id, "unknown", first.id])
        second = await made.begin(call(), ALICE, request)
        await made.settled(ALICE, second.task_id)
        assert SEEN["seen"] == ({"last": "one"}, ["one"], [["ONE"]], [first.id])
        request.message.message_id = "bobs"
        foreign = await made.begin(call(BOB), BOB, request)
        await made.settled(BOB, foreign.task_id)
        assert SEEN["seen"] == ({}, [], [], [])
        await send(made, "three", context_id="d")
        assert SEEN["seen"] == ({}, [], [], [])


async def test_a_memory_value_that_is_too_large_is_refused() -> None:
    async def writes(task: TaskHandle) -> None:
        with pytest.raises(InvalidAgentResponseError, match="limit"):
            await task.context.memory.set("k", "x" * 65_536)

    assert (await run(writes)).status.state == COMPLETED
