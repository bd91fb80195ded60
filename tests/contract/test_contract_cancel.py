"""Canceling a task, in every cell."""

import asyncio

import pytest
from a2a_stubs import v1

from a2a_grpc.errors import TaskNotCancelableError, TaskNotFoundError
from tests.contract.agents import gates, notes
from tests.contract.cells import Cell, fresh, spoken, texts

CANCELED = v1.TASK_STATE_CANCELED


@pytest.mark.requirement("OP-CANCEL-01", "OP-CANCEL-06", "V03-22", "I-41")
async def test_a_running_task_is_canceled(cell: Cell) -> None:
    task, _ = await cell.held()
    canceled = await cell.client.cancel(task.id)
    assert (canceled.id, canceled.context_id, canceled.status.state) == (task.id, task.context_id, CANCELED)
    assert canceled.status.timestamp.seconds
    assert await cell.client.get(task.id) == canceled


@pytest.mark.parametrize("scene", ["ask", "auth"])
@pytest.mark.requirement("OP-CANCEL-01", "OP-CANCEL-06")
async def test_a_waiting_task_is_canceled(cell: Cell, scene: str) -> None:
    task = await cell.task(scene)
    canceled = await cell.client.cancel(task.id)
    assert canceled.status.state == CANCELED
    assert spoken(canceled)[0] == scene
    assert (await cell.client.get(task.id)).status == canceled.status


@pytest.mark.parametrize("scene", ["echo x", "fail x", "reject x"])
@pytest.mark.requirement("OP-CANCEL-02", "BL-14", "DATA-11", "I-02")
async def test_a_task_that_has_ended_cannot_be_canceled(cell: Cell, scene: str) -> None:
    task = await cell.task(scene)
    await cell.refuses(TaskNotCancelableError, "CancelTask", v1.CancelTaskRequest(id=task.id))
    assert await cell.client.get(task.id) == task


@pytest.mark.requirement("OP-CANCEL-02", "OP-CANCEL-04", "I-19")
async def test_a_second_cancel_changes_nothing(cell: Cell) -> None:
    task, _ = await cell.held()
    canceled = await cell.client.cancel(task.id)
    await cell.refuses(TaskNotCancelableError, "CancelTask", v1.CancelTaskRequest(id=task.id))
    assert await cell.client.get(task.id) == canceled


@pytest.mark.requirement("OP-CANCEL-03", "OP-GET-02")
async def test_an_unknown_task_cannot_be_canceled(cell: Cell) -> None:
    await cell.refuses(TaskNotFoundError, "CancelTask", v1.CancelTaskRequest(id=fresh("task")))


@pytest.mark.requirement("OP-CANCEL-08", "BL-09", "DATA-11")
async def test_an_agent_that_goes_on_cannot_undo_a_cancel(cell: Cell) -> None:
    task, name = await cell.held("stubborn")
    canceled = await cell.client.cancel(task.id)
    assert canceled.status.state == CANCELED
    gates[name].set()
    assert await cell.client.get(task.id) == canceled


@pytest.mark.needs("cancel metadata")
@pytest.mark.requirement("OP-CANCEL-07")
async def test_the_agent_hears_why_it_is_canceled(cell: Cell) -> None:
    task, name = await cell.held("stubborn")
    request = v1.CancelTaskRequest(id=task.id)
    request.metadata.update({"why": "changed my mind", "n": 3})
    await cell.client.call("CancelTask", request)
    assert notes[name] == [{"why": "changed my mind", "n": 3}]


@pytest.mark.requirement("OP-CANCEL-06", "OP-SEND-02")
async def test_a_caller_that_waits_for_the_task_is_told_of_the_cancel(cell: Cell) -> None:
    name = fresh("gate")
    events = cell.stream(f"hold {name}")
    first = await anext(events)
    waiting = asyncio.ensure_future(_to_end(events))
    canceled = await cell.client.cancel(first.task.id)
    assert (await waiting)[-1].status_update.status == canceled.status


async def _to_end(events: object) -> list[v1.StreamResponse]:
    return [event async for event in events]  # type: ignore[attr-defined]


@pytest.mark.stores("memory")
@pytest.mark.requirement("BL-09", "OP-CANCEL-05", "OP-CANCEL-08")
async def test_of_a_cancel_and_an_end_at_the_same_moment_one_wins(cell: Cell) -> None:
    for _ in range(10):
        task, name = await cell.held()
        gates[name].set()
        try:
            said_state = (await cell.client.cancel(task.id)).status.state
            assert said_state == CANCELED
        except TaskNotCancelableError:
            said_state = v1.TASK_STATE_COMPLETED
        done = await cell.client.get(task.id)
        assert done.status.state == said_state
        assert texts(done) == ["released"] or said_state == CANCELED
