"""Subscribing to a task: the snapshot, and everything after it, in every cell."""

import asyncio

import pytest
from a2a_stubs import v1

from a2a_grpc.call import RESUME_EXTENSION
from a2a_grpc.errors import InvalidParamsError, TaskNotFoundError, UnsupportedOperationError
from tests.contract.agents import gates
from tests.contract.cells import TERMINAL, Cell, eventually, fresh, said, texts


@pytest.mark.requirement("SUB-02", "SUB-03", "SUB-06", "RPC-13", "V03-29")
async def test_a_subscription_begins_with_the_task_and_ends_with_it(cell: Cell) -> None:
    name = fresh("gate")
    task = await cell.task(f"steps {name}", now=True)
    gates[f"{name}-0"].set()

    async def look() -> bool:
        return texts(await cell.client.get(task.id)) == ["0 1 "]

    await eventually(look)
    events = cell.client.subscribe(task.id)
    snapshot = await anext(events)
    assert snapshot.task.id == task.id and texts(snapshot.task) == ["0 1 "]
    for number in (1, 2):
        gates[f"{name}-{number}"].set()
    rest = [event async for event in events]
    chunks = [event.artifact_update.artifact.parts[0].text for event in rest if event.HasField("artifact_update")]
    assert "".join(chunks) == "2 "
    assert rest[-1].status_update.status.state == v1.TASK_STATE_COMPLETED


@pytest.mark.requirement("SUB-07", "SUB-09", "BL-06", "I-06")
@pytest.mark.parametrize(
    ("scene", "state"), [("ask", v1.TASK_STATE_INPUT_REQUIRED), ("auth", v1.TASK_STATE_AUTH_REQUIRED)]
)
async def test_a_subscription_to_a_waiting_task_stays_open_for_the_turns_to_come(
    cell: Cell, scene: str, state: int
) -> None:
    task = await cell.task(scene)
    events = cell.client.subscribe(task.id)
    assert (await anext(events)).task.status.state == state
    answered = asyncio.ensure_future(cell.task("blue", task_id=task.id))
    rest = [event async for event in events]
    assert [event.status_update.status.state for event in rest if event.HasField("status_update")] == [
        v1.TASK_STATE_WORKING,
        v1.TASK_STATE_COMPLETED,
    ]
    assert (await answered).status == rest[-1].status_update.status


@pytest.mark.requirement("SUB-07", "BL-06", "OP-STREAM-05")
async def test_a_subscription_stays_open_when_the_running_turn_asks(cell: Cell) -> None:
    task = await cell.task("ask 2")
    events = cell.client.subscribe(task.id)
    await anext(events)
    await cell.task("one", task_id=task.id)
    await cell.task("two", task_id=task.id)
    states = [event.status_update.status.state async for event in events if event.HasField("status_update")]
    working, asking, done = v1.TASK_STATE_WORKING, v1.TASK_STATE_INPUT_REQUIRED, v1.TASK_STATE_COMPLETED
    assert states == [working, asking, working, done]


@pytest.mark.needs("refused subscription")
@pytest.mark.parametrize("scene", ["echo x", "fail x", "reject x"])
@pytest.mark.requirement("SUB-04", "BL-14")
async def test_there_is_nothing_to_subscribe_to_when_a_task_has_ended(cell: Cell, scene: str) -> None:
    task = await cell.task(scene)
    await cell.refuses(UnsupportedOperationError, "SubscribeToTask", v1.SubscribeToTaskRequest(id=task.id))


@pytest.mark.versions("0.3")
@pytest.mark.parametrize("scene", ["echo x", "fail x", "reject x"])
@pytest.mark.requirement("V03-29", "I-55")
async def test_an_old_client_gets_an_ended_task_and_the_end(cell: Cell, scene: str) -> None:
    task = await cell.task(scene)
    events = [event async for event in cell.client.subscribe(task.id)]
    assert [event.task for event in events] == [await cell.client.get(task.id)]


@pytest.mark.requirement("SUB-05", "OP-GET-02")
async def test_an_unknown_task_cannot_be_followed(cell: Cell) -> None:
    await cell.refuses(TaskNotFoundError, "SubscribeToTask", v1.SubscribeToTaskRequest(id=fresh("task")))


@pytest.mark.requirement("OP-CANCEL-06", "SUB-06", "STREAM-03")
async def test_a_cancel_is_seen_on_every_stream_and_closes_it(cell: Cell) -> None:
    task, _ = await cell.held()
    readers = [cell.client.subscribe(task.id) for _ in range(2)]
    for reader in readers:
        await anext(reader)
    canceled = await cell.client.cancel(task.id)
    for reader in readers:
        rest = [event async for event in reader]
        assert rest[-1].status_update.status == canceled.status


@pytest.mark.stores("memory")
@pytest.mark.requirement("BL-07", "SUB-03", "SUB-04")
async def test_a_task_that_ends_meanwhile_leaves_no_reader_without_its_end(cell: Cell) -> None:
    for _ in range(15):
        task = await cell.task("chunks 3", now=True)
        try:
            events = [event async for event in cell.client.subscribe(task.id)]
        except UnsupportedOperationError:
            continue
        last = events[-1].task.status if events[-1].HasField("task") else events[-1].status_update.status
        assert last.state in TERMINAL


@pytest.mark.needs("event numbers")
@pytest.mark.requirement("SUB-03", "SUB-10", "STREAM-13")
async def test_a_reader_that_was_cut_off_goes_on_after_the_last_event_it_saw(cell: Cell) -> None:
    name = fresh("gate")
    events = cell.stream(f"steps {name}")
    async for event in events:
        if event.HasField("artifact_update"):
            break
    seen = events.last_event_id
    await events.aclose()
    assert seen
    for number in range(3):
        gates[f"{name}-{number}"].set()
    task_id = event.artifact_update.task_id
    await cell.reach(task_id)
    rest = [event async for event in cell.client.subscribe(task_id, seen)]
    chunks = [event.artifact_update.artifact.parts[0].text for event in rest if event.HasField("artifact_update")]
    assert "".join(chunks) == "1 2 "
    assert rest[-1].status_update.status.state == v1.TASK_STATE_COMPLETED


@pytest.mark.needs("event numbers")
@pytest.mark.requirement("SUB-03", "SUB-10")
async def test_a_reader_that_had_seen_everything_gets_only_what_is_new(cell: Cell) -> None:
    task, name = await cell.held()
    watching = cell.client.subscribe(task.id)
    await anext(watching)
    seen = watching.last_event_id
    await watching.aclose()
    again = cell.client.subscribe(task.id, seen)
    first = asyncio.ensure_future(anext(again))
    await cell.release(task, name)
    event = await first
    assert not event.HasField("task")
    assert int(again.last_event_id) == int(seen) + 1
    await again.aclose()


@pytest.mark.requirement("SUB-03", "EXT-03", "EXT-05")
async def test_event_numbers_are_in_the_metadata_for_who_asks_for_them(cell: Cell) -> None:
    asking = await cell.connect(extensions=[RESUME_EXTENSION])
    numbers = []
    async for event in asking.stream(said("chunks 4")):
        body = getattr(event, str(event.WhichOneof("payload")))
        numbers.append(int(body.metadata[RESUME_EXTENSION]["sequence"]))
    assert numbers == sorted(set(numbers)) and len(numbers) > 4
    silent = [event async for event in cell.stream("chunks 4")]
    assert RESUME_EXTENSION not in str(silent)


@pytest.mark.requirement("SUB-03", "ERR-06")
async def test_a_number_that_the_task_has_not_reached_is_refused(cell: Cell) -> None:
    task, name = await cell.held()
    request = v1.SubscribeToTaskRequest(id=task.id)
    await cell.refuses(InvalidParamsError, "SubscribeToTask", request, "Last-Event-ID", last_event_id="999999")
    await cell.release(task, name)
