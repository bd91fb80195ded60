"""Limits answer as errors of the wire and harm nothing else, in every cell."""

import pytest
from a2a_stubs import google, v1

from a2a_grpc.call import V03
from a2a_grpc.errors import (
    A2AError,
    InvalidParamsError,
    ParseError,
    PayloadTooLargeError,
    ResourceExhaustedError,
    TaskNotFoundError,
)
from a2a_grpc.protojson_values import value_of
from tests.contract.agents import gates
from tests.contract.cells import Cell, fresh, said


@pytest.mark.site(max_parts=3)
@pytest.mark.requirement("DATA-15", "ERR-06")
async def test_too_many_parts_are_an_invalid_parameter(cell: Cell) -> None:
    parts = [v1.Part(text="silent")] * 4
    found = await cell.refuses(InvalidParamsError, "SendMessage", said(parts=parts))
    in_proto = cell.version == V03 and cell.binding != "jsonrpc"
    assert found.fields == ("message.content" if in_proto else "message.parts",)
    assert (await cell.task(parts=parts[:3])).id


@pytest.mark.site(max_depth=3)
@pytest.mark.requirement("DATA-15", "JSON-18", "SEC-04", "L-40")
async def test_a_lower_limit_of_depth_holds_for_all_free_json(cell: Cell) -> None:
    fits, deep = {"a": [{"b": {"c": 1}}]}, {"a": [{"b": [{"c": {}}]}]}
    assert (await cell.task(parts=[v1.Part(text="silent"), v1.Part(data=value_of(fits))], metadata=fits)).id
    for more in ({"metadata": deep}, {"parts": [v1.Part(data=value_of(deep))]}):
        found = await cell.refuses(InvalidParamsError, "SendMessage", said(**more))
        assert "nested deeper than 3 levels" in found.text


@pytest.mark.site(max_request_bytes=100_000)
@pytest.mark.wires("jsonrpc", "rest")
@pytest.mark.requirement("BL-39", "DATA-15", "RPC-12")
async def test_a_request_that_is_too_large_over_http_is_refused_by_name_of_the_limit(cell: Cell) -> None:
    found = await cell.refuses(PayloadTooLargeError, "SendMessage", said("echo " + "x" * 100_000))
    assert "100000" in found.text.replace(",", "").replace(" ", "")
    assert (await cell.task("echo small")).id


@pytest.mark.site(max_request_bytes=100_000)
@pytest.mark.wires("grpc")
@pytest.mark.requirement("BL-39", "GRPC-15")
async def test_a_request_that_is_too_large_over_grpc_is_refused(cell: Cell) -> None:
    with pytest.raises((ResourceExhaustedError, PayloadTooLargeError)):  # grpcio has no details
        await cell.client.send(said("echo " + "x" * 100_000))
    assert (await cell.task("echo small")).id


@pytest.mark.stores("memory")
@pytest.mark.requirement("BL-39")
async def test_large_files_go_in_and_out(cell: Cell) -> None:
    size = 4_500_000
    task = await cell.task(parts=[v1.Part(text="give_parts"), v1.Part(raw=b"\x00" * size)])
    assert len(task.artifacts[0].parts[1].raw) == size
    assert len((await cell.client.get(task.id)).history[0].parts[1].raw) == size
    assert len((await cell.task(f"big {size}")).artifacts[0].parts[0].raw) == size


@pytest.mark.site(own=True, max_turns=1)
@pytest.mark.requirement("ERR-10", "BL-02")
async def test_too_many_tasks_at_a_time_are_told_to_come_back(cell: Cell) -> None:
    task, gate = await cell.held()
    found = await cell.refuses(ResourceExhaustedError, "SendMessage", said())
    if cell.binding != "grpc":
        assert found.headers["retry-after"].isdigit()
    with pytest.raises(ResourceExhaustedError) as told:
        await cell.client.send(said())
    assert told.value.retry_after
    await cell.release(task, gate)
    assert (await cell.task()).id


@pytest.mark.site(own=True, max_streams=1)
@pytest.mark.stores("memory")
@pytest.mark.requirement("ERR-10", "STREAM-04")
async def test_too_many_streams_are_told_to_come_back(cell: Cell) -> None:
    name = fresh("gate")
    events = cell.stream(f"hold {name}")
    first = await anext(events)
    await cell.refuses(ResourceExhaustedError, "SubscribeToTask", v1.SubscribeToTaskRequest(id=first.task.id))
    gates[name].set()
    assert [event async for event in events][-1].status_update.status.state == v1.TASK_STATE_COMPLETED


@pytest.mark.wires("jsonrpc", "rest")
@pytest.mark.stores("memory")
@pytest.mark.parametrize("depth", [31, 200, 100_000])
@pytest.mark.parametrize("pair", [(b'{"a":', b"}"), (b"[", b"]")])
@pytest.mark.requirement("JSON-18", "BL-27", "DATA-15", "L-40")
async def test_json_that_is_nested_too_deeply_is_refused(cell: Cell, depth: int, pair: tuple[bytes, bytes]) -> None:
    if pair[0] == b"[" and depth == 31:
        depth = 100  # lists cost less than objects
    place = said(parts=[v1.Part(data=value_of({"PLACE": 1}))])
    verb, url, headers, body = cell.http_request("SendMessage", place)
    deep = pair[0] * depth + b"1" + pair[1] * depth
    status, answer, _ = await cell.fetch(verb, url, headers, body.replace(b'"PLACE":1', b'"PLACE":' + deep))
    assert status == (200 if cell.binding == "jsonrpc" else 400)
    assert any(error.reason in str(answer) for error in (InvalidParamsError, ParseError)), answer
    await cell.refuses(TaskNotFoundError, "GetTask", v1.GetTaskRequest(id=fresh("task")))


@pytest.mark.wires("grpc")
@pytest.mark.stores("memory")
@pytest.mark.requirement("JSON-18", "BL-27", "DATA-15", "L-40")
async def test_a_message_that_is_nested_too_deeply_is_refused(cell: Cell) -> None:
    value = google.Value(number_value=1)
    for _ in range(31):
        value = google.Value(struct_value=google.Struct(fields={"a": value}))
    with pytest.raises(A2AError):
        await cell.client.send(said(parts=[v1.Part(text="give_parts"), v1.Part(data=value)]))
    await cell.refuses(TaskNotFoundError, "GetTask", v1.GetTaskRequest(id=fresh("task")))


@pytest.mark.stores("memory")
@pytest.mark.requirement("JSON-18")
async def test_values_that_are_nested_as_deeply_as_is_allowed_pass(cell: Cell) -> None:
    value: object = 1
    for _ in range(28):
        value = {"a": value}
    part = v1.Part(data=value_of(value))
    task = await cell.task(parts=[v1.Part(text="give_parts"), part])
    assert task.artifacts[0].parts[1] == part
