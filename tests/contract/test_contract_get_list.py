"""Reading one task and listing many, in every cell that can."""

from datetime import datetime, timezone
from typing import Any

import pytest
from a2a_stubs import v1

from a2a_grpc.errors import InvalidParamsError, TaskNotFoundError
from tests.contract.cells import Cell, fresh, said, spoken, texts

LISTS = pytest.mark.needs("ListTasks")


async def three_turns(cell: Cell, **more: Any) -> v1.Task:
    """A task whose history has five messages."""
    task = await cell.task("ask 2", **more)
    await cell.task("one", task_id=task.id)
    return await cell.task("two", task_id=task.id)


ALL = ["ask 2", "question 1", "one", "question 2", "two"]


@pytest.mark.requirement("OP-GET-01", "OP-GET-05", "STREAM-09", "EQ-02")
async def test_a_task_is_read_as_the_send_gave_it(cell: Cell) -> None:
    task = await three_turns(cell)
    assert await cell.client.get(task.id) == task
    assert await cell.client.get(task.id) == task
    assert texts(task) or task.artifacts


@pytest.mark.requirement("OP-GET-02", "ERR-07")
async def test_an_unknown_task_is_not_found(cell: Cell) -> None:
    found = await cell.refuses(TaskNotFoundError, "GetTask", v1.GetTaskRequest(id=fresh("task")))
    assert "task" in found.text.lower()


@pytest.mark.requirement("OP-GET-02", "OP-GET-04", "ERR-07", "BL-04", "SUB-05", "OP-CANCEL-03")
async def test_a_task_of_somebody_else_is_as_unknown_as_one_made_up(cell: Cell) -> None:
    ann = await cell.caller("ann")
    task, gate = await ann.held()
    calls: dict[str, Any] = {
        "GetTask": v1.GetTaskRequest(id=task.id),
        "CancelTask": v1.CancelTaskRequest(id=task.id),
        "SubscribeToTask": v1.SubscribeToTaskRequest(id=task.id),
        "SendMessage": said(task_id=task.id),
        "SendStreamingMessage": said(task_id=task.id),
    }
    for operation, request in calls.items():
        theirs = await cell.refuses(TaskNotFoundError, operation, request, x_caller="bob")
        if operation.startswith("Send"):
            request.message.task_id = fresh("task")
        else:
            request.id = fresh("task")
        nobodys = await cell.refuses(TaskNotFoundError, operation, request, x_caller="bob")
        assert theirs._replace(headers={}) == nobodys._replace(headers={})
    assert (await ann.release(task, gate)).status.state == v1.TASK_STATE_COMPLETED


@pytest.mark.needs("empty id")
@pytest.mark.requirement("OP-GET-03", "GRPC-12")
async def test_an_empty_id_is_an_invalid_parameter(cell: Cell) -> None:
    for operation, kind in (
        ("GetTask", v1.GetTaskRequest),
        ("CancelTask", v1.CancelTaskRequest),
        ("SubscribeToTask", v1.SubscribeToTaskRequest),
    ):
        await cell.refuses(InvalidParamsError, operation, kind(), "id")


@pytest.mark.requirement("HIST-01", "HIST-03", "HIST-04", "HIST-05", "BL-23", "I-67")
async def test_history_is_the_latest_messages_oldest_first(cell: Cell) -> None:
    task = await three_turns(cell)
    assert spoken(await cell.client.get(task.id)) == ALL
    for count in (1, 2, 5, 99):
        assert spoken(await cell.client.get(task.id, count)) == ALL[-count:]
    assert spoken(await cell.client.get(task.id)) == ALL


@pytest.mark.needs("no history")
@pytest.mark.requirement("HIST-02", "BL-23")
async def test_history_of_length_zero_is_left_out(cell: Cell) -> None:
    task = await three_turns(cell)
    assert not (await cell.client.get(task.id, 0)).history


@pytest.mark.requirement("OP-GET-03", "BL-23")
async def test_a_negative_history_length_is_an_invalid_parameter(cell: Cell) -> None:
    task = await cell.task()
    await cell.refuses(InvalidParamsError, "GetTask", v1.GetTaskRequest(id=task.id, history_length=-1), "historyLength")


@pytest.mark.site(default_history=2)
@pytest.mark.requirement("HIST-01", "BL-23")
async def test_without_a_wish_the_server_gives_its_own_amount(cell: Cell) -> None:
    task = await three_turns(cell)
    assert spoken(task) == spoken(await cell.client.get(task.id)) == ALL[-2:]
    assert spoken(await cell.client.get(task.id, 4)) == ALL[-4:]


# -- lists


async def page(cell: Cell, **query: Any) -> v1.ListTasksResponse:
    return await cell.client.list(v1.ListTasksRequest(**query))


async def many(cell: Cell, count: int, *scenes: str) -> tuple[str, list[v1.Task]]:
    """Some finished tasks of one context, the latest first."""
    context = fresh("ctx")
    words = scenes or ("echo x",)
    tasks = [await cell.task(words[number % len(words)], context_id=context) for number in range(count)]
    tasks.sort(key=lambda task: (task.status.timestamp.ToMilliseconds(), task.id), reverse=True)
    return context, tasks


@LISTS
@pytest.mark.requirement("LIST-02", "LIST-05", "LIST-06", "LIST-08", "LIST-11", "LIST-18", "I-24")
async def test_tasks_are_listed_latest_first(cell: Cell) -> None:
    context, tasks = await many(cell, 4)
    found = await page(cell, context_id=context)
    assert [task.id for task in found.tasks] == [task.id for task in tasks]
    assert (found.total_size, found.page_size, found.next_page_token) == (4, 50, "")


@LISTS
@pytest.mark.requirement("LIST-09", "LIST-10", "I-22")
async def test_artifacts_are_listed_only_on_request(cell: Cell) -> None:
    context, _ = await many(cell, 2, "echo x", "silent")
    assert not any(task.artifacts for task in (await page(cell, context_id=context)).tasks)
    assert not any(task.artifacts for task in (await page(cell, context_id=context, include_artifacts=False)).tasks)
    whole = await page(cell, context_id=context, include_artifacts=True)
    assert sorted(texts(task) for task in whole.tasks) == [[], ["x"]]


@LISTS
@pytest.mark.requirement("LIST-03", "LIST-04", "LIST-06", "LIST-08", "LIST-17")
async def test_pages_neither_repeat_nor_skip_a_task(cell: Cell) -> None:
    context, tasks = await many(cell, 7)
    found, token, pages = [], "", 0
    while token or not pages:
        answer = await page(cell, context_id=context, page_size=3, page_token=token)
        assert (answer.total_size, answer.page_size) == (7, 3)
        found += [task.id for task in answer.tasks]
        token, pages = answer.next_page_token, pages + 1
    assert (found, pages) == ([task.id for task in tasks], 3)


@LISTS
@pytest.mark.requirement("LIST-06", "LIST-17")
async def test_a_page_that_holds_the_last_task_is_the_last(cell: Cell) -> None:
    context, _ = await many(cell, 2)
    assert (await page(cell, context_id=context, page_size=2)).next_page_token == ""


@LISTS
@pytest.mark.parametrize("size", [0, -1, 101])
@pytest.mark.requirement("LIST-05", "BL-24", "REST-23")
async def test_a_page_size_out_of_range_is_an_invalid_parameter(cell: Cell, size: int) -> None:
    await cell.refuses(InvalidParamsError, "ListTasks", v1.ListTasksRequest(page_size=size), "pageSize")


@LISTS
@pytest.mark.requirement("LIST-15", "LIST-16")
async def test_a_page_token_fits_one_caller_and_one_list(cell: Cell) -> None:
    context, _ = await many(cell, 2)
    token = (await page(cell, context_id=context, page_size=1)).next_page_token
    assert token
    own = {"context_id": context, "page_token": token}
    refused: list[tuple[dict[str, Any], dict[str, str]]] = [
        ({"page_token": "made up"}, {}),
        ({"page_token": token}, {}),
        ({**own, "status": v1.TASK_STATE_COMPLETED}, {}),
        (own, {"x_caller": "bob"}),
        ({**own, "page_token": "A" + token[1:] if token[0] != "A" else "B" + token[1:]}, {}),
    ]
    for query, headers in refused:
        request = v1.ListTasksRequest(page_size=1, **query)
        await cell.refuses(InvalidParamsError, "ListTasks", request, "pageToken", **headers)
    assert (await page(cell, page_size=1, **own)).tasks


@LISTS
@pytest.mark.requirement("LIST-11", "LIST-01", "CTX-12")
async def test_an_unknown_or_foreign_context_is_an_empty_page(cell: Cell) -> None:
    context, _ = await many(cell, 1)
    bob = await cell.caller("bob")
    for listed in (await page(cell, context_id=fresh("ctx")), await page(bob, context_id=context)):
        assert (len(listed.tasks), listed.total_size, listed.next_page_token) == (0, 0, "")


@LISTS
@pytest.mark.requirement("LIST-12")
async def test_a_list_is_filtered_by_state(cell: Cell) -> None:
    context, _ = await many(cell, 4, "echo x", "fail x", "ask", "reject x")
    for state in (v1.TASK_STATE_COMPLETED, v1.TASK_STATE_FAILED, v1.TASK_STATE_INPUT_REQUIRED, v1.TASK_STATE_REJECTED):
        found = await page(cell, context_id=context, status=state)
        assert [task.status.state for task in found.tasks] == [state] and found.total_size == 1
    assert not (await page(cell, context_id=context, status=v1.TASK_STATE_WORKING)).tasks
    assert (await page(cell, context_id=context, status=v1.TASK_STATE_UNSPECIFIED)).total_size == 4


@LISTS
@pytest.mark.requirement("LIST-12", "LIST-02")
async def test_a_running_task_is_listed_as_it_is(cell: Cell) -> None:
    context = fresh("ctx")
    task, gate = await cell.held(context_id=context)
    found = await page(cell, context_id=context, status=v1.TASK_STATE_WORKING)
    assert [listed.id for listed in found.tasks] == [task.id]
    await cell.release(task, gate)
    assert (await page(cell, context_id=context)).tasks[0].status.state == v1.TASK_STATE_COMPLETED


@LISTS
@pytest.mark.requirement("LIST-13", "I-24", "JSON-12")
async def test_the_time_filter_is_inclusive(cell: Cell) -> None:
    context, tasks = await many(cell, 3)
    times = [task.status.timestamp.ToMilliseconds() for task in tasks]
    for moment in (times[1], times[1] + 1):
        after = v1.ListTasksRequest(context_id=context)
        after.status_timestamp_after.FromDatetime(datetime.fromtimestamp(moment / 1000, timezone.utc))
        found = await cell.client.list(after)
        assert found.total_size == sum(time >= moment for time in times)


@LISTS
@pytest.mark.requirement("LIST-13", "JSON-12")
async def test_a_time_between_two_milliseconds_leaves_out_the_earlier(cell: Cell) -> None:
    context, tasks = await many(cell, 3)
    times = [task.status.timestamp.ToNanoseconds() for task in tasks]
    for moment in (times[1] - 1, times[1], times[1] + 1, times[1] + 999_999):
        after = v1.ListTasksRequest(context_id=context)
        after.status_timestamp_after.FromNanoseconds(moment)
        found = await cell.client.list(after)
        assert found.total_size == sum(time >= moment for time in times), moment


@LISTS
@pytest.mark.requirement("LIST-14", "HIST-01", "HIST-02", "HIST-03", "BL-23")
async def test_history_in_a_list_follows_the_same_rules(cell: Cell) -> None:
    context = fresh("ctx")
    await three_turns(cell, context_id=context)
    for asked, expected in ((None, ALL), (0, []), (2, ALL[-2:]), (99, ALL)):
        found = await page(cell, context_id=context, history_length=asked)
        assert spoken(found.tasks[0]) == expected
    await cell.refuses(InvalidParamsError, "ListTasks", v1.ListTasksRequest(history_length=-1), "historyLength")


@LISTS
@pytest.mark.requirement("LIST-01", "OP-GET-04", "BL-04")
async def test_everybody_lists_their_own_tasks_only(cell: Cell) -> None:
    ann, bob = await cell.caller(fresh("ann")), await cell.caller(fresh("bob"))
    mine, theirs = await ann.task("echo mine"), await bob.task("echo theirs")
    assert [task.id for task in (await page(ann)).tasks] == [mine.id]
    assert [task.id for task in (await page(bob)).tasks] == [theirs.id]


@LISTS
@pytest.mark.requirement("LIST-01", "LIST-02", "LIST-08", "LIST-09", "LIST-14", "OP-GET-04")
async def test_what_is_read_again_is_fresh_and_of_its_caller_alone(cell: Cell) -> None:
    ann, bob = await cell.caller(fresh("ann")), await cell.caller(fresh("bob"))
    context = fresh("ctx")
    tasks: dict[str, v1.Task] = {}

    async def looks() -> None:
        for _ in range(3):  # read, given again, kept
            found = await page(ann, context_id=context, include_artifacts=True)
            assert {task.id: task for task in found.tasks} == tasks
            bare = await page(ann, context_id=context, history_length=0)
            assert {task.id: task.status for task in bare.tasks} == {name: tasks[name].status for name in tasks}
            assert not any(task.history or task.artifacts for task in bare.tasks)
            assert found.total_size == bare.total_size == len(tasks)
            for name, told in tasks.items():
                assert await ann.client.get(name) == told
                assert spoken(await ann.client.get(name, 1)) == spoken(told)[-1:]
                await bob.refuses(TaskNotFoundError, "GetTask", v1.GetTaskRequest(id=name))
            assert [task.context_id for task in (await page(bob)).tasks] == [foreign.context_id]

    foreign = await bob.task("echo theirs")
    for words in ("echo one", "ask", "echo two"):
        told = await ann.task(words, context_id=context)
        tasks[told.id] = told
        await looks()
    asking = next(task for task in tasks.values() if task.status.state == v1.TASK_STATE_INPUT_REQUIRED)
    tasks[asking.id] = await ann.task("done", task_id=asking.id)
    await looks()


@LISTS
@pytest.mark.requirement("LIST-07", "LIST-08")
async def test_a_caller_without_tasks_has_an_empty_list(cell: Cell) -> None:
    nobody = await cell.caller(fresh("new"))
    found = await page(nobody)
    assert (len(found.tasks), found.total_size, found.page_size, found.next_page_token) == (0, 0, 50, "")


@LISTS
@pytest.mark.wires("jsonrpc", "rest")
@pytest.mark.requirement("LIST-07", "LIST-09", "LIST-10", "RPC-04")
async def test_required_members_are_written_even_when_empty(cell: Cell) -> None:
    context, _ = await many(cell, 1, "silent")
    empty = await cell.json("ListTasks", v1.ListTasksRequest(context_id=fresh("ctx")))
    assert empty == {"tasks": [], "nextPageToken": "", "pageSize": 50, "totalSize": 0}
    plain = await cell.json("ListTasks", v1.ListTasksRequest(context_id=context))
    assert "artifacts" not in plain["tasks"][0]
    whole = await cell.json("ListTasks", v1.ListTasksRequest(context_id=context, include_artifacts=True))
    assert whole["tasks"][0]["artifacts"] == []
    bare = await cell.json("ListTasks", v1.ListTasksRequest(context_id=context, history_length=0))
    assert "history" not in bare["tasks"][0]
