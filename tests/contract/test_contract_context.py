"""Contexts, ids and what an agent remembers, in every cell."""

import re

import pytest
from a2a_stubs import v1

from a2a_grpc.errors import InvalidParamsError
from tests.contract.cells import Cell, data, fresh, said, spoken

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@pytest.mark.requirement("CTX-01", "CTX-02", "CTX-06", "CTX-13", "DATA-09")
async def test_ids_are_made_by_the_server_and_unlike_each_other(cell: Cell) -> None:
    tasks = [await cell.task() for _ in range(3)]
    ids = [name for task in tasks for name in (task.id, task.context_id)]
    assert len(set(ids)) == 6 and all(UUID.fullmatch(name) for name in ids)


@pytest.mark.requirement("CTX-03", "CTX-04", "CTX-09")
async def test_a_context_of_the_caller_is_kept_for_every_new_task(cell: Cell) -> None:
    context = fresh("my context, with spaces & ü")
    first, second = await cell.task(context_id=context), await cell.task(context_id=context)
    assert first.context_id == second.context_id == context
    assert first.id != second.id


@pytest.mark.requirement("CTX-08", "BL-13", "ERR-06")
async def test_a_task_and_another_context_do_not_go_together(cell: Cell) -> None:
    asked = await cell.task("ask")
    request = said("blue", task_id=asked.id, context_id=fresh("other"))
    for operation in ("SendMessage", "SendStreamingMessage"):
        await cell.refuses(InvalidParamsError, operation, request, "message.contextId")
    unchanged = await cell.client.get(asked.id)
    assert unchanged == asked and "blue" not in spoken(unchanged)


@pytest.mark.requirement("CTX-07", "BL-13")
async def test_the_task_alone_tells_the_context(cell: Cell) -> None:
    asked = await cell.task("ask", context_id=fresh("ctx"))
    assert (await cell.task("blue", task_id=asked.id)).context_id == asked.context_id


@pytest.mark.requirement("CTX-14")
async def test_several_tasks_work_in_one_context_at_a_time(cell: Cell) -> None:
    context = fresh("ctx")
    held = [await cell.held(context_id=context) for _ in range(3)]
    assert len({task.id for task, _ in held}) == 3
    for task, gate in reversed(held):
        assert (await cell.release(task, gate)).status.state == v1.TASK_STATE_COMPLETED


@pytest.mark.requirement("CTX-09", "CTX-14")
async def test_an_agent_knows_what_was_said_in_its_context_before(cell: Cell) -> None:
    context = fresh("ctx")
    first = await cell.task("echo before", context_id=context)
    await cell.task("echo elsewhere")
    seen = data(await cell.task("around", context_id=context))
    assert (seen["tasks"], seen["messages"]) == ([first.id], ["echo before"])


@pytest.mark.requirement("CTX-12", "BL-04")
async def test_memory_and_tasks_of_a_context_are_its_callers_own(cell: Cell) -> None:
    ann, bob, context = await cell.caller("ann"), await cell.caller("bob"), fresh("ctx")
    await ann.task("remember colour blue", context_id=context)
    assert data(await ann.task("recall colour", context_id=context)) == {"value": "blue"}
    assert data(await ann.task("recall colour")) == {"value": None}
    assert data(await bob.task("recall colour", context_id=context)) == {"value": None}
    seen = data(await bob.task("around", context_id=context))
    assert "remember colour blue" not in seen["messages"] and len(seen["tasks"]) == 1


@pytest.mark.needs("references")
@pytest.mark.requirement("CTX-10")
async def test_references_to_other_tasks_reach_the_agent_if_the_caller_may_see_them(cell: Cell) -> None:
    own, theirs = await cell.task(), await (await cell.caller("ann")).task()
    task = await cell.task("around", reference_task_ids=[own.id, theirs.id, fresh("task")])
    assert data(task)["referenced"] == [own.id]
