"""Streams: what arrives, in which order, and when they end, in every cell."""

import asyncio
from collections.abc import Sequence

import pytest
from a2a_stubs import v1

from a2a_grpc.errors import InvalidParamsError, TaskNotFoundError, UnavailableError, UnsupportedOperationError
from tests.contract.agents import SECRET, gates
from tests.contract.cells import TERMINAL, Cell, fresh, said, spoken, texts

Kinds = Sequence[str | None]


def kinds(events: Sequence[v1.StreamResponse]) -> Kinds:
    return [event.WhichOneof("payload") for event in events]


def folded(events: Sequence[v1.StreamResponse]) -> v1.Task:
    """A task as a reader puts it together (STREAM-07, STREAM-12)."""
    task = v1.Task()
    for event in events:
        match event.WhichOneof("payload"):
            case "task":
                task.CopyFrom(event.task)
            case "status_update":
                if task.status.HasField("message"):
                    task.history.append(task.status.message)
                task.status.CopyFrom(event.status_update.status)
            case "artifact_update":
                _add(task, event.artifact_update)
    return task


def _add(task: v1.Task, update: v1.TaskArtifactUpdateEvent) -> None:
    known = [artifact for artifact in task.artifacts if artifact.artifact_id == update.artifact.artifact_id]
    if update.append and known:
        known[0].parts.extend(update.artifact.parts)
    elif known:
        known[0].CopyFrom(update.artifact)
    else:
        task.artifacts.add().CopyFrom(update.artifact)


async def until(events: object, state: int) -> list[v1.StreamResponse]:
    """Read a stream up to a state."""
    seen = []
    async for event in events:  # type: ignore[attr-defined]
        seen.append(event)
        status = event.task.status if event.HasField("task") else event.status_update.status
        if status.state == state:
            return seen
    raise AssertionError(f"the stream ended before {v1.TaskState.Name(state)}: {kinds(seen)}")


@pytest.mark.requirement(
    "OP-STREAM-03", "OP-STREAM-04", "OP-STREAM-09", "STREAM-01", "STREAM-09", "STREAM-10", "DATA-08", "RPC-13"
)
async def test_a_task_is_streamed_from_its_beginning_to_its_end(cell: Cell) -> None:
    events = [event async for event in cell.stream("states")]
    assert kinds(events)[0] == "task" and "task" not in kinds(events)[1:]
    task = events[0].task
    assert task.status.state in (v1.TASK_STATE_SUBMITTED, v1.TASK_STATE_WORKING)
    assert spoken(task) == ["states"]
    said_on_the_way = [
        event.status_update.status.message.parts[0].text
        for event in events
        if event.HasField("status_update") and event.status_update.status.HasField("message")
    ]
    assert said_on_the_way == ["one", "two", "done"]
    for event in events[1:]:
        body = getattr(event, str(event.WhichOneof("payload")))
        assert (body.task_id, body.context_id) == (task.id, task.context_id)
    assert events[-1].status_update.status.state == v1.TASK_STATE_COMPLETED
    assert sum(event.status_update.status.state in TERMINAL for event in events) == 1
    stored = await cell.client.get(task.id)
    built = folded(events)
    assert (texts(built), built.status) == (texts(stored), stored.status)
    assert [text for text in spoken(built) if text] == spoken(stored)


@pytest.mark.requirement("STREAM-01", "STREAM-07", "STREAM-08", "STREAM-09", "OP-STREAM-04", "BL-15")
async def test_chunks_arrive_in_order_once_each_and_make_the_stored_artifact(cell: Cell) -> None:
    events = [event async for event in cell.stream("chunks 40")]
    updates = [event.artifact_update for event in events if event.HasField("artifact_update")]
    assert "".join(update.artifact.parts[0].text for update in updates) == "".join(f"{n} " for n in range(40))
    assert [update.append for update in updates] == [False] + [True] * (len(updates) - 1)
    assert [update.last_chunk for update in updates] == [False] * (len(updates) - 1) + [True]
    assert len({update.artifact.artifact_id for update in updates}) == 1
    stored = await cell.client.get(events[0].task.id)
    assert texts(stored) == texts(folded(events)) == ["".join(f"{n} " for n in range(40))]


@pytest.mark.requirement("OP-STREAM-08", "SSE-04", "BL-37")
async def test_each_event_arrives_while_the_agent_works_on(cell: Cell) -> None:
    name, seen = fresh("gate"), []
    async for event in cell.stream(f"steps {name}"):
        if event.HasField("artifact_update") and event.artifact_update.artifact.parts[0].text:
            seen.append(event.artifact_update.artifact.parts[0].text)
            gates[f"{name}-{len(seen) - 1}"].set()  # the next one is made only now
    assert seen == ["0 ", "1 ", "2 "]


@pytest.mark.site(agent="talker")
@pytest.mark.requirement("OP-STREAM-02", "OP-SEND-19", "I-08")
async def test_a_direct_message_is_the_only_event(cell: Cell) -> None:
    events = [event async for event in cell.stream("reply hello")]
    assert kinds(events) == ["message"]
    message = events[0].message
    assert (message.parts[0].text, message.task_id, message.role) == ("hello", "", v1.ROLE_AGENT)
    assert message.context_id


@pytest.mark.requirement("OP-STREAM-05", "I-06", "V03-07")
async def test_a_sending_stream_closes_on_a_question(cell: Cell) -> None:
    events = [event async for event in cell.stream("ask")]
    states = [event.status_update.status.state for event in events if event.HasField("status_update")]
    assert states[-1] == v1.TASK_STATE_INPUT_REQUIRED and states.count(states[-1]) == 1
    assert events[-1].status_update.status.message.parts[0].text == "question 1"
    more = [event async for event in cell.stream("blue", task_id=events[0].task.id)]
    assert more[0].task.id == events[0].task.id
    assert more[-1].status_update.status.state == v1.TASK_STATE_COMPLETED


@pytest.mark.site(close_on_input_required=False)
@pytest.mark.requirement("I-06")
async def test_a_sending_stream_stays_open_on_a_question_if_the_server_is_told_so(cell: Cell) -> None:
    events = cell.stream("ask")
    asked = await until(events, v1.TASK_STATE_INPUT_REQUIRED)
    await cell.task("blue", task_id=asked[0].task.id)
    assert texts(folded(asked + await until(events, v1.TASK_STATE_COMPLETED)))


@pytest.mark.requirement("OP-STREAM-06", "I-06", "I-53", "V03-07")
async def test_a_sending_stream_stays_open_while_authorisation_is_awaited(cell: Cell) -> None:
    events = cell.stream("auth")
    asked = await until(events, v1.TASK_STATE_AUTH_REQUIRED)
    await cell.task("I have signed in", task_id=asked[0].task.id)
    more = [event async for event in events]
    assert more[-1].status_update.status.state == v1.TASK_STATE_COMPLETED
    assert texts(folded(asked + more)) == ["signed in"]


@pytest.mark.requirement("AUTH-10", "OP-SEND-02", "OP-STREAM-06", "V03-07", "V03-39")
async def test_work_goes_on_by_itself_when_a_caller_has_authorised_it(cell: Cell) -> None:
    name = fresh("gate")
    events = cell.stream(f"sign_in {name}")
    asked = await until(events, v1.TASK_STATE_AUTH_REQUIRED)
    other = await cell.task(f"sign_in {name}")
    assert other.status.state == v1.TASK_STATE_AUTH_REQUIRED
    gates[name].set()
    more = [event async for event in events]
    states = [event.status_update.status.state for event in more if event.HasField("status_update")]
    assert states == [v1.TASK_STATE_WORKING, v1.TASK_STATE_COMPLETED]
    assert texts(folded(asked + more)) == ["signed in"]
    await cell.reach(other.id, v1.TASK_STATE_COMPLETED)


@pytest.mark.site(agent="mute")
@pytest.mark.requirement("OP-STREAM-01", "SUB-01", "ERR-13", "CARD-26", "BL-19")
async def test_an_agent_that_does_not_stream_says_so_in_a_plain_error(cell: Cell) -> None:
    context = fresh("ctx")
    await cell.refuses(UnsupportedOperationError, "SendStreamingMessage", said(context_id=context))
    waiting = await cell.task("ask", context_id=context)
    await cell.refuses(UnsupportedOperationError, "SubscribeToTask", v1.SubscribeToTaskRequest(id=waiting.id))
    reader = await cell.over("rest", "1.0")
    assert (await reader.client.list(v1.ListTasksRequest(context_id=context))).total_size == 1


@pytest.mark.requirement("OP-STREAM-07", "BL-20", "GRPC-10", "RPC-14", "REST-20")
async def test_what_is_wrong_with_a_message_is_said_before_the_stream(cell: Cell) -> None:
    task = await cell.task("ask")
    for error, request in (
        (TaskNotFoundError, said(task_id=fresh("task"))),
        (InvalidParamsError, said(task_id=task.id, context_id=fresh("other"))),
        (InvalidParamsError, said(message_id="")),
    ):
        await cell.refuses(error, "SendStreamingMessage", request)
    await cell.refuses(TaskNotFoundError, "SubscribeToTask", v1.SubscribeToTaskRequest(id=fresh("task")))


@pytest.mark.parametrize(("scene", "artifacts"), [("crash", []), ("crash_late", ["first", "second"])])
@pytest.mark.requirement("ERR-17", "OP-STREAM-11", "BL-03", "BL-28", "ERR-11", "BL-21")
async def test_a_crash_of_the_agent_ends_the_task_without_its_text(
    cell: Cell, scene: str, artifacts: list[str]
) -> None:
    events = [event async for event in cell.stream(scene)]
    built = folded(events)
    assert (built.status.state, texts(built)) == (v1.TASK_STATE_FAILED, artifacts)
    stored = await cell.client.get(built.id)
    blocking = await cell.task(scene)
    for task in (built, stored, blocking):
        assert task.status.state == v1.TASK_STATE_FAILED and texts(task) == artifacts
        assert SECRET not in str(task) and "db://" not in str(task) and "RuntimeError" not in str(task)
        assert task.status.message.parts[0].text


@pytest.mark.requirement("BL-29", "ERR-17")
async def test_a_call_canceled_inside_the_agent_ends_the_task(cell: Cell) -> None:
    assert (await cell.task("crash_inside")).status.state == v1.TASK_STATE_FAILED


@pytest.mark.requirement("STREAM-04", "STREAM-05", "BL-01", "GRPC-11", "SSE-06")
async def test_a_reader_that_leaves_stops_nothing(cell: Cell) -> None:
    name = fresh("gate")
    leaving = cell.stream(f"hold {name}")
    first = await until(leaving, v1.TASK_STATE_WORKING)
    staying = cell.client.subscribe(first[0].task.id)
    await anext(staying)
    await leaving.aclose()
    gates[name].set()
    rest = [event async for event in staying]
    assert rest[-1].status_update.status.state == v1.TASK_STATE_COMPLETED
    assert texts(await cell.client.get(first[0].task.id)) == ["released"]


@pytest.mark.requirement("STREAM-02", "STREAM-03", "SUB-08")
async def test_all_readers_see_the_same_events(cell: Cell) -> None:
    name = fresh("gate")
    events = cell.stream(f"hold {name}")
    begun = await until(events, v1.TASK_STATE_WORKING)
    others = [cell.client.subscribe(begun[0].task.id) for _ in range(3)]
    for other in others:
        assert (await anext(other)).task.status.state == v1.TASK_STATE_WORKING
    gates[name].set()

    async def read(source: object) -> list[bytes]:
        return [event.SerializeToString(deterministic=True) async for event in source]  # type: ignore[attr-defined]

    seen = await asyncio.gather(*map(read, [events, *others]))
    assert seen[0] and all(other == seen[0] for other in seen)


@pytest.mark.site(own=True)
@pytest.mark.stores("memory")
@pytest.mark.requirement("BL-21", "STREAM-11", "BL-34")
async def test_a_server_that_stops_says_so_on_every_open_stream(cell: Cell) -> None:
    events = cell.stream(f"hold {fresh('gate')}")
    begun = await until(events, v1.TASK_STATE_WORKING)
    stopping = asyncio.ensure_future(cell.site.server.stop(0))
    rest: list[v1.StreamResponse] = []
    try:
        rest += [event async for event in events]
    except UnavailableError as fault:
        told = str(fault)
    else:
        told = v1.TaskState.Name(rest[-1].status_update.status.state)
    assert "stopping" in told or told == "TASK_STATE_FAILED", begun  # not merely a connection that broke
    await stopping
