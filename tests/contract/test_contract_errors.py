"""Errors: one table for all wires, read from the bytes and through the client, in every cell."""

import random
from typing import Any

import pytest
from a2a_stubs import google, v1

from a2a_grpc.call import V03
from a2a_grpc.errors import (
    A2AError,
    ContentTypeNotSupportedError,
    InvalidParamsError,
    PushNotificationNotSupportedError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)
from tests.contract.cells import Cell, fresh, said

Failure = tuple[type[A2AError], str, Any]


async def failures(cell: Cell) -> list[Failure]:
    """Calls that fail, each in its own way."""
    done, asked = await cell.task(), await cell.task("ask")
    picture = v1.Part(raw=b"x", media_type="image/png")
    hook = v1.TaskPushNotificationConfig(task_id=done.id, id="c", url="https://hooks.example/1")
    return [
        (TaskNotFoundError, "GetTask", v1.GetTaskRequest(id=fresh("task"))),
        (TaskNotFoundError, "SubscribeToTask", v1.SubscribeToTaskRequest(id=fresh("task"))),
        (TaskNotCancelableError, "CancelTask", v1.CancelTaskRequest(id=done.id)),
        (UnsupportedOperationError, "SendMessage", said(task_id=done.id)),
        (UnsupportedOperationError, "SendStreamingMessage", said(task_id=done.id)),
        (PushNotificationNotSupportedError, "CreateTaskPushNotificationConfig", hook),
        (ContentTypeNotSupportedError, "SendMessage", said(parts=[v1.Part(text="echo"), picture])),
        (InvalidParamsError, "SendMessage", said(task_id=asked.id, context_id=fresh("other"))),
        (InvalidParamsError, "GetTask", v1.GetTaskRequest(id=done.id, history_length=-1)),
    ]


@pytest.mark.site(agent="picky")
@pytest.mark.requirement(
    *("ERR-01", "ERR-02", "ERR-03", "ERR-04", "ERR-05", "ERR-06", "GRPC-07", "RPC-08", "RPC-11", "REST-18", "EQ-03"),
    *("V03-18", "V03-25", "I-04", "I-05", "I-37", "I-47"),
)
async def test_each_error_has_its_row_of_the_table_on_the_wire(cell: Cell) -> None:
    for error, operation, request in await failures(cell):
        await cell.refuses(error, operation, request)


@pytest.mark.site(agent="picky")
@pytest.mark.requirement("ERR-15", "ERR-16", "EQ-03", "BL-14")
async def test_the_client_raises_the_error_that_the_agent_meant(cell: Cell) -> None:
    for error, operation, request in await failures(cell):
        with pytest.raises(A2AError) as told:
            if operation in ("SendStreamingMessage", "SubscribeToTask"):
                await anext(cell.client.events(operation, request))
            else:
                await cell.client.call(operation, request)
        assert type(told.value) is error and told.value.message, operation


@pytest.mark.site(error_profile="1.0.0")
@pytest.mark.requirement("I-02", "I-70", "ERR-15")
async def test_statuses_of_the_first_release_are_sent_on_request_and_understood(cell: Cell) -> None:
    done = await cell.task()
    found = await cell.refusal("CancelTask", v1.CancelTaskRequest(id=done.id))
    assert found.status == {"grpc": 9, "jsonrpc": 200, "rest": 409}[cell.binding]
    assert found.reason == TaskNotCancelableError.reason
    refused = await cell.refusal("SendMessage", said(task_id=done.id))
    assert refused.status == {"grpc": 12, "jsonrpc": 200, "rest": 400}[cell.binding]
    with pytest.raises(UnsupportedOperationError):
        await cell.client.send(said(task_id=done.id))


@pytest.mark.requirement("ERR-06")
async def test_nothing_is_done_of_a_call_that_is_refused(cell: Cell) -> None:
    context = fresh("ctx")
    await cell.refuses(InvalidParamsError, "SendMessage", said(context_id=context, history=-1))
    await cell.refuses(InvalidParamsError, "SendMessage", said(context_id=context, message_id=""))
    reader = await cell.over("grpc", "1.0")
    assert not (await reader.client.list(v1.ListTasksRequest(context_id=context))).total_size


UNUSABLE = (
    *("ftp://hooks.example", "http://", "http://hooks.example:port/", "http://hooks.example:99999/", "hooks.example/1"),
    *("http://hooks.example/a b", "http://hooks.example/\r\nX: y", "http://hooks\0.example/", " http://hooks.example"),
)
WEBHOOK_FIELDS = {
    ("grpc", V03): ("config.pushNotificationConfig", "configuration.pushNotification"),
    ("rest", V03): ("config.pushNotificationConfig", "configuration.pushNotification"),
    ("jsonrpc", V03): ("pushNotificationConfig", "configuration.pushNotificationConfig"),
}
"""What old callers call a webhook, set alone and in a send; in v1.0 the fields are at the top."""


@pytest.mark.site(push_notifications=True)
@pytest.mark.requirement("ERR-06", "PUSH-02", "SEC-03", "L-34")
async def test_a_webhook_that_no_delivery_could_use_is_refused_by_the_name_that_the_caller_gave_it(cell: Cell) -> None:
    task = await cell.task()
    alone, inline = WEBHOOK_FIELDS.get((cell.binding, cell.version), ("", "configuration.taskPushNotificationConfig"))
    old = cell.version == V03
    scheme = "authentication.schemes" if old else "authentication.scheme"
    wrong: list[tuple[dict[str, Any], str]] = [({"url": url}, "url") for url in UNUSABLE]
    wrong += [
        ({"token": "a\r\nX: y"}, "token"),
        ({"authentication": {"scheme": "Bearer", "credentials": "a\nb"}}, "authentication.credentials"),
        ({"authentication": {"scheme": "Bearer\r\nX:"}}, scheme),
    ]
    for fields, name in wrong:
        hook = v1.TaskPushNotificationConfig(**{"url": "https://hooks.example/1", "id": "c", **fields})
        await cell.refuses(InvalidParamsError, "SendMessage", said(push=hook), f"{inline}.{name}")
        hook.task_id = task.id
        full = f"{alone}.{name}" if alone else name
        await cell.refuses(InvalidParamsError, "CreateTaskPushNotificationConfig", hook, full)
    assert not (await cell.client.list_push_configs(task.id)).configs


@pytest.mark.wires("grpc")
@pytest.mark.requirement("GRPC-12", "LIST-12", "LIST-13", "JSON-04", "OP-SEND-09", "EQ-03", "BL-26")
async def test_values_that_only_a_binary_wire_can_carry_are_refused_there(cell: Cell) -> None:
    task = await cell.task("ask")
    role: Any = 99
    calls: list[tuple[str, Any, str]] = [("SendMessage", said(role=role), "message.role")]
    if cell.version != V03:
        late = v1.ListTasksRequest(status_timestamp_after=google.Timestamp(seconds=2**62))
        odd = v1.ListTasksRequest(status_timestamp_after=google.Timestamp(nanos=-5))
        calls += [("ListTasks", request, "statusTimestampAfter") for request in (late, odd)]
        calls.append(("ListTasks", v1.ListTasksRequest(status=role), "status"))
        endless = google.Struct(fields={"x": google.Value(number_value=float("inf"))})
        calls.append(("CancelTask", v1.CancelTaskRequest(id=task.id, metadata=endless), "metadata.x"))
    for operation, request, field in calls:
        await cell.refuses(InvalidParamsError, operation, request, field)
    assert (await cell.client.get(task.id)).status.state == v1.TASK_STATE_INPUT_REQUIRED


@pytest.mark.site(push_notifications=True, deduplicate="always")
@pytest.mark.requirement("CTX-04", "DATA-15", "SEC-04", "ERR-06")
async def test_ids_that_no_store_could_index_are_refused_and_those_of_the_full_length_kept(cell: Cell) -> None:
    # Characters of three bytes that do not repeat, so that no store can make them shorter.
    pool = "".join(chr(number) for number in random.Random(fresh()).sample(range(0x4E00, 0x9FFF), 342))
    long, full = pool, pool[:341]
    hook = v1.TaskPushNotificationConfig(id=long, url="https://hooks.example/1")
    for more, field in (({"context_id": long}, "message.contextId"), ({"message_id": long}, "message.messageId")):
        await cell.refuses(InvalidParamsError, "SendMessage", said(**more), field)
    await cell.refuses(InvalidParamsError, "SendMessage", said(push=hook))
    hook.id = full
    task = await cell.task(context_id=full, message_id=full, push=hook)
    assert task.context_id == full and (await cell.client.list_push_configs(task.id)).configs[0].id == full
