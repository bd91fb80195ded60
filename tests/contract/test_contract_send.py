"""Sending a message and getting the answer, in every cell."""

import asyncio

import pytest
from a2a_stubs import v1

from a2a_grpc.errors import (
    ContentTypeNotSupportedError,
    InvalidParamsError,
    PushNotificationNotSupportedError,
    TaskNotFoundError,
    UnsupportedOperationError,
)
from a2a_grpc.protojson_values import value_of
from a2a_grpc.tasks.state import state_of
from tests.contract.agents import gates
from tests.contract.cells import Cell, data, eventually, fresh, said, spoken, texts


@pytest.mark.requirement("OP-SEND-01", "OP-SEND-02", "OP-SEND-03", "OP-SEND-18", "DATA-08", "DATA-09", "CTX-02")
async def test_a_message_becomes_a_task_with_its_result(cell: Cell) -> None:
    task = await cell.task("echo hello there")
    assert task.status.state == v1.TASK_STATE_COMPLETED
    assert texts(task) == ["hello there"]
    assert task.artifacts[0].name == "echo" and task.artifacts[0].artifact_id
    assert task.id and task.context_id
    assert task.status.timestamp.seconds > 1_700_000_000
    assert spoken(task) == ["echo hello there"]
    assert (task.history[0].task_id, task.history[0].context_id) == (task.id, task.context_id)


@pytest.mark.site(agent="talker")
@pytest.mark.requirement("OP-SEND-01", "OP-SEND-19", "OP-SEND-05", "CTX-02")
@pytest.mark.parametrize("now", [False, True])
async def test_an_agent_may_answer_with_a_message(cell: Cell, now: bool) -> None:
    answer = await cell.client.send(said("reply nice to meet you", now=now))
    assert answer.WhichOneof("payload") == "message"
    message = answer.message
    assert (message.parts[0].text, message.role) == ("nice to meet you", v1.ROLE_AGENT)
    assert message.message_id and message.context_id and not message.task_id


@pytest.mark.site(agent="talker")
@pytest.mark.requirement("OP-SEND-01")
async def test_an_agent_that_may_reply_makes_a_task_when_it_does_not(cell: Cell) -> None:
    assert texts(await cell.task("echo a task")) == ["a task"]
    waiting = await cell.task("ask")
    task = await cell.task("reply", task_id=waiting.id)
    assert task.id == waiting.id


@pytest.mark.requirement("OP-SEND-20")
@pytest.mark.site(agent="talker")
async def test_replies_within_a_task_are_tasks(cell: Cell) -> None:
    task, name = await cell.held()
    done = await cell.release(task, name)
    assert done.status.state == v1.TASK_STATE_COMPLETED


@pytest.mark.requirement("OP-SEND-04", "OP-SEND-22")
async def test_return_immediately_answers_while_the_work_goes_on(cell: Cell) -> None:
    name = fresh("gate")
    task = await cell.task(f"hold {name}", now=True)
    assert task.status.state in (v1.TASK_STATE_SUBMITTED, v1.TASK_STATE_WORKING)
    done = await cell.release(task, name)
    assert (done.status.state, texts(done)) == (v1.TASK_STATE_COMPLETED, ["released"])


@pytest.mark.requirement("OP-SEND-02")
async def test_a_blocking_send_waits_for_the_end(cell: Cell) -> None:
    name = fresh("gate")
    waiting = asyncio.ensure_future(cell.task(f"hold {name}"))
    await asyncio.wait((waiting,), timeout=0.05)
    assert not waiting.done()
    gates[name].set()
    assert (await waiting).status.state == v1.TASK_STATE_COMPLETED


@pytest.mark.requirement("OP-SEND-02", "OP-SEND-15", "BL-12", "CTX-07")
async def test_a_question_is_answered_on_the_same_task(cell: Cell) -> None:
    asked = await cell.task("ask 2")
    assert asked.status.state == v1.TASK_STATE_INPUT_REQUIRED
    assert asked.status.message.parts[0].text == "question 1"
    assert asked.status.message.role == v1.ROLE_AGENT and asked.status.message.task_id == asked.id
    again = await cell.task("blue", task_id=asked.id)
    assert again.status.message.parts[0].text == "question 2"
    seven = [v1.Part(data=value_of({"n": 7}))]
    done = await cell.task(parts=seven, task_id=asked.id, context_id=asked.context_id)
    assert (done.id, done.context_id) == (asked.id, asked.context_id)
    assert (done.status.state, data(done)) == (v1.TASK_STATE_COMPLETED, ["blue", {"n": 7}])
    assert spoken(done)[:4] == ["ask 2", "question 1", "blue", "question 2"]


@pytest.mark.requirement("OP-SEND-02", "OP-SEND-16", "V03-39")
async def test_a_task_that_wants_authorisation_takes_a_message(cell: Cell) -> None:
    asked = await cell.task("auth")
    assert asked.status.state == v1.TASK_STATE_AUTH_REQUIRED
    done = await cell.task("I have signed in", task_id=asked.id)
    assert (done.status.state, texts(done)) == (v1.TASK_STATE_COMPLETED, ["signed in"])


ENDS = {
    "echo x": v1.TASK_STATE_COMPLETED,
    "fail no luck": v1.TASK_STATE_FAILED,
    "reject not my job": v1.TASK_STATE_REJECTED,
}


@pytest.mark.requirement("OP-SEND-06", "BL-14", "V03-30", "DATA-11")
@pytest.mark.parametrize("scene", ENDS)
async def test_a_finished_task_takes_no_message(cell: Cell, scene: str) -> None:
    task = await cell.task(scene)
    assert task.status.state == ENDS[scene]
    for operation in ("SendMessage", "SendStreamingMessage"):
        await cell.refuses(UnsupportedOperationError, operation, said("more", task_id=task.id))
    assert await cell.client.get(task.id) == task


@pytest.mark.requirement("OP-SEND-06", "BL-14")
async def test_a_canceled_task_takes_no_message(cell: Cell) -> None:
    task, _ = await cell.held()
    await cell.client.cancel(task.id)
    await cell.refuses(UnsupportedOperationError, "SendMessage", said("more", task_id=task.id))


@pytest.mark.requirement("OP-SEND-07", "BL-12", "L-38", "CTX-06")
async def test_a_task_id_of_the_caller_makes_no_task(cell: Cell) -> None:
    made_up = fresh("task")
    for operation in ("SendMessage", "SendStreamingMessage"):
        await cell.refuses(TaskNotFoundError, operation, said(task_id=made_up))
    await cell.refuses(TaskNotFoundError, "GetTask", v1.GetTaskRequest(id=made_up))


@pytest.mark.requirement("OP-SEND-17", "BL-10")
async def test_a_working_task_refuses_a_message_and_remembers_nothing_of_it(cell: Cell) -> None:
    task, name = await cell.held()
    await cell.refuses(UnsupportedOperationError, "SendMessage", said("hurry up", task_id=task.id))
    done = await cell.release(task, name)
    assert "hurry up" not in spoken(done)


@pytest.mark.requirement("OP-SEND-17", "BL-10")
async def test_an_agent_that_reads_its_inbox_hears_what_is_sent_while_it_works(cell: Cell) -> None:
    task = await cell.task("listen", now=True)
    await cell.reach(task.id, v1.TASK_STATE_WORKING)
    assert (await cell.task("one", task_id=task.id, now=True)).id == task.id
    events = aiter(cell.stream("two", task_id=task.id))
    assert (await anext(events)).task.id == task.id
    done = await cell.task("stop", task_id=task.id)
    rest = [event async for event in events]
    assert state_of(rest[-1]) == v1.TASK_STATE_COMPLETED
    assert (done.status.state, texts(done)) == (v1.TASK_STATE_COMPLETED, ["one two "])
    assert [word for word in spoken(done) if word in ("one", "two", "stop")] == ["one", "two", "stop"]


@pytest.mark.site(agent="picky")
@pytest.mark.requirement("OP-SEND-08", "I-62")
async def test_a_part_of_an_unwanted_type_is_refused(cell: Cell) -> None:
    picture = v1.Part(raw=b"\x89PNG", media_type="image/png")
    for operation in ("SendMessage", "SendStreamingMessage"):
        await cell.refuses(ContentTypeNotSupportedError, operation, said(parts=[v1.Part(text="echo"), picture]))
    assert texts(await cell.task(parts=[v1.Part(text="echo fine", media_type="text/plain")])) == ["fine"]


@pytest.mark.requirement("OP-SEND-10")
async def test_the_agent_sees_what_the_caller_can_read(cell: Cell) -> None:
    task = await cell.task("facts", modes=["text/html", "text/plain"], metadata={"k": {"n": 1}})
    seen = data(task)
    assert seen["modes"] == ["text/html", "text/plain"]
    assert seen["metadata"] == {"k": {"n": 1}}


@pytest.mark.requirement("OP-SEND-12", "I-61", "ERR-12")
async def test_a_webhook_in_a_send_is_refused_where_push_is_off(cell: Cell) -> None:
    hook = v1.TaskPushNotificationConfig(url="https://hooks.example/1")
    context = fresh("ctx")
    for operation in ("SendMessage", "SendStreamingMessage"):
        await cell.refuses(PushNotificationNotSupportedError, operation, said(push=hook, context_id=context))


@pytest.mark.requirement("OP-SEND-13", "HIST-03", "HIST-05")
async def test_history_of_the_answer_is_limited_and_the_stored_one_is_not(cell: Cell) -> None:
    asked = await cell.task("ask")
    done = await cell.task("blue", task_id=asked.id, history=1)
    assert spoken(done) == ["blue"]
    assert spoken(await cell.client.get(asked.id)) == ["ask", "question 1", "blue"]


@pytest.mark.needs("no history")
@pytest.mark.requirement("OP-SEND-13", "HIST-02", "BL-23")
async def test_a_history_length_of_zero_gives_no_history(cell: Cell) -> None:
    task = await cell.task("echo x", history=0)
    assert not task.history and texts(task) == ["x"]


@pytest.mark.requirement("OP-SEND-21", "STREAM-05", "BL-01")
async def test_a_task_outlives_the_caller_that_waits_for_it(cell: Cell) -> None:
    name, context = fresh("gate"), fresh("ctx")
    waiting = asyncio.ensure_future(cell.task(f"hold {name}", context_id=context))
    reader = await cell.over("grpc", "1.0")
    request = v1.ListTasksRequest(context_id=context, status=v1.TASK_STATE_WORKING)

    async def look() -> list[v1.Task]:
        return list((await reader.client.list(request)).tasks)

    found = await eventually(look)
    waiting.cancel()
    await asyncio.wait((waiting,))
    done = await cell.release(found[0], name)
    assert (done.status.state, texts(done)) == (v1.TASK_STATE_COMPLETED, ["released"])


@pytest.mark.requirement("OP-SEND-14", "BL-51")
async def test_the_same_message_of_a_known_caller_gives_the_first_task(cell: Cell) -> None:
    ann, bob = await cell.caller("ann"), await cell.caller("bob")
    message = {"message_id": fresh("same"), "context_id": fresh("ctx")}
    first = await ann.task("echo once", **message)
    assert (await ann.task("echo once", **message)).id == first.id
    assert (await bob.task("echo once", **message)).id != first.id
    with pytest.raises(InvalidParamsError):
        await ann.task("echo twice", **message)


@pytest.mark.site(agent="plain")
@pytest.mark.requirement("BL-17")
async def test_a_plain_function_works_in_a_thread(cell: Cell) -> None:
    assert texts(await cell.task("text")) == ["a text", "returned"]


@pytest.mark.site(agent="generator")
@pytest.mark.requirement("BL-15")
async def test_what_a_generator_yields_is_one_artifact(cell: Cell) -> None:
    assert texts(await cell.task("Hel lo wor ld")) == ["Hel lo wor ld "]


@pytest.mark.site(agent="picky")
@pytest.mark.requirement("OP-SEND-08", "OP-SEND-10")
async def test_a_caller_who_can_read_nothing_of_what_is_offered_is_told_so_first(cell: Cell) -> None:
    for operation in ("SendMessage", "SendStreamingMessage"):
        request = said(modes=["image/png", "video/*"], context_id=fresh("context"))
        path = ("configuration.acceptedOutputModes",)
        await cell.refuses(ContentTypeNotSupportedError, operation, request, *path)
    for modes in (["image/png", "text/plain"], ["text/*"], ["*/*"], ["TEXT/PLAIN; charset=utf-8"], ["text"]):
        assert texts(await cell.task("echo fine", modes=modes)) == ["fine"]
