"""Messages, parts and artifacts arrive as they were sent, and what breaks the model is refused, in every cell."""

import math
import re
from typing import Any

import pytest
from a2a_stubs import google, v1

from a2a_grpc.errors import InvalidParamsError
from a2a_grpc.protojson_values import struct_of, value_of
from tests.contract.cells import Cell, data, said, spoken, texts

VALUES: list[Any] = [None, 0, 7, -7, 0.5, "", "text", True, [], [1, [2, None]], {}, {"a": {"b": [1, 2.5, None]}}]
PARTS = {
    "text": v1.Part(text="words with ü, 字 and 𝄞"),
    "empty text": v1.Part(text=""),
    "text with a name": v1.Part(text="# Title", media_type="text/markdown", filename="a.md"),
    "bytes": v1.Part(raw=bytes(range(256)), media_type="image/png", filename="a b.png"),
    "address": v1.Part(url="https://files.example/a%20b?x=1#y", media_type="application/pdf", filename="b.pdf"),
    "metadata": v1.Part(text="x", metadata=struct_of({"https://ext.example/v1": {"n": 1, "list": [None]}})),
    **{f"data {value!r}": v1.Part(data=value_of(value)) for value in VALUES},
}


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.requirement("DATA-01", "DATA-02", "DATA-03", "DATA-04", "DATA-05", "DATA-10", "L-05", "L-06", "L-07")
@pytest.mark.stores("memory")
async def test_a_part_comes_back_as_it_was_sent(cell: Cell, name: str) -> None:
    await check_part(cell, PARTS[name])


@pytest.mark.needs("bytes like base64")
@pytest.mark.requirement("DATA-04", "L-09")
async def test_bytes_that_look_like_base64_are_bytes(cell: Cell) -> None:
    await check_part(cell, v1.Part(raw=b"aGVsbG8=", media_type="application/octet-stream"))


@pytest.mark.site(v03_file_bytes="raw")
@pytest.mark.requirement("DATA-04", "L-09")
async def test_bytes_that_look_like_base64_stay_as_sent_where_the_server_is_told_that_they_are_raw(cell: Cell) -> None:
    sent = v1.Part(raw=b"aGVsbG8=", media_type="application/octet-stream")
    task = await cell.task(parts=[v1.Part(text="give_parts"), sent])
    newest = await cell.over("grpc", "1.0")
    assert (await newest.client.get(task.id)).history[0].parts[1] == sent


async def check_part(cell: Cell, part: v1.Part) -> None:
    task = await cell.task(parts=[v1.Part(text="give_parts"), part])
    assert list(task.artifacts[0].parts)[1:] == [part]
    assert task.history[0].parts[1] == part
    assert await cell.client.get(task.id) == task


@pytest.mark.requirement("DATA-05", "DATA-10")
async def test_metadata_and_extensions_of_a_message_are_kept(cell: Cell) -> None:
    about = {"https://ext.example/v1": {"n": 1, "whole": 2.0, "half": 0.5, "none": None, "deep": [{"a": []}]}}
    task = await cell.task("echo x", extensions=["https://ext.example/v1"])
    assert list(task.history[0].extensions) == ["https://ext.example/v1"]
    request = said("echo y")
    request.message.metadata.CopyFrom(struct_of(about))
    kept = (await cell.client.send(request)).task
    assert kept.history[0].metadata == struct_of(about)


@pytest.mark.requirement("JSON-14", "BL-25", "DATA-03")
async def test_values_of_the_agent_arrive_as_they_are(cell: Cell) -> None:
    task = await cell.task("give_data")
    expected = {"whole": 1, "half": 0.5, "nothing": None, "list": [1, [2, {"deep": True}]], "text": "ü€𝄞"}
    assert data(task) == expected


@pytest.mark.wires("jsonrpc", "rest")
@pytest.mark.requirement("JSON-14", "BL-25")
async def test_whole_numbers_are_written_without_a_fraction(cell: Cell) -> None:
    _, body, _ = await cell.post("SendMessage", said("give_data"))
    assert re.search(r"'whole': 1[,}]", str(body)) and re.search(r"'list': \[1, \[2, ", str(body))


WRONG = {
    "no message id": ({"message_id": ""}, "message.messageId"),
    "no parts": ({}, "message.parts"),
}


@pytest.mark.parametrize("operation", ["SendMessage", "SendStreamingMessage"])
@pytest.mark.parametrize("name", WRONG)
@pytest.mark.requirement("OP-SEND-09", "DATA-06", "DATA-13", "BL-31", "ERR-06", "GRPC-12", "OP-STREAM-07")
async def test_what_a_message_must_have_is_demanded(cell: Cell, name: str, operation: str) -> None:
    fields, place = WRONG[name]
    request = said(**fields)
    if name == "no parts":
        del request.message.parts[:]
    found = await cell.refuses(InvalidParamsError, operation, request)
    assert found.fields
    if cell.version == "1.0":
        assert any(field.startswith(place) for field in found.fields), found


@pytest.mark.needs("malformed messages")
@pytest.mark.requirement("OP-SEND-09", "DATA-06", "BL-31", "GRPC-12")
async def test_a_send_needs_a_message_with_a_role_and_no_empty_part(cell: Cell) -> None:
    request = said()
    request.message.ClearField("role")
    await cell.refuses(InvalidParamsError, "SendMessage", request, "message.role")
    await cell.refuses(InvalidParamsError, "SendMessage", v1.SendMessageRequest(), "message")
    found = await cell.refuses(InvalidParamsError, "SendMessage", said(parts=[v1.Part(text="x"), v1.Part()]))
    assert found.fields[0].startswith("message.parts[1]")


@pytest.mark.wires("grpc")
@pytest.mark.parametrize("number", [math.inf, -math.inf, math.nan])
@pytest.mark.requirement("BL-26", "JSON-14")
async def test_numbers_that_json_has_not_are_refused(cell: Cell, number: float) -> None:
    bad = google.Struct(fields={"x": google.Value(number_value=number)})
    for request in (
        said(parts=[v1.Part(data=google.Value(struct_value=bad))]),
        said(
            parts=[
                v1.Part(
                    data=google.Value(
                        struct_value=google.Struct(
                            fields={
                                "l": google.Value(list_value=google.ListValue(values=[google.Value(struct_value=bad)]))
                            }
                        )
                    )
                )
            ]
        ),
    ):
        await cell.refuses(InvalidParamsError, "SendMessage", request)


@pytest.mark.requirement("BL-31", "DATA-07", "DATA-14")
async def test_an_artifact_without_content_fails_the_task_not_the_reader(cell: Cell) -> None:
    task = await cell.task("misbehave")
    assert (task.status.state, len(task.artifacts)) == (v1.TASK_STATE_FAILED, 0)
    assert await cell.client.get(task.id) == task


@pytest.mark.requirement("DATA-12", "CTX-09")
async def test_a_refined_result_is_an_artifact_of_its_own_with_the_same_name(cell: Cell) -> None:
    first = await cell.task("echo draft")
    second = await cell.task("echo better", context_id=first.context_id, reference_task_ids=[first.id])
    old, new = first.artifacts[0], second.artifacts[0]
    assert old.name == new.name == "echo" and old.artifact_id != new.artifact_id
    assert await cell.client.get(first.id) == first


@pytest.mark.requirement("OP-SEND-03", "STREAM-09", "DATA-07")
async def test_every_artifact_of_a_task_has_its_own_id(cell: Cell) -> None:
    task = await cell.task("crash_late")
    assert texts(task) == ["first", "second"]
    assert len({artifact.artifact_id for artifact in task.artifacts}) == 2


@pytest.mark.parametrize("scene", ["fail the line is dead", "reject not my job"])
@pytest.mark.requirement("OP-SEND-19", "DATA-08")
async def test_the_words_of_an_end_are_the_agents(cell: Cell, scene: str) -> None:
    task = await cell.task(scene)
    message = task.status.message
    assert message.parts[0].text == scene.partition(" ")[2]
    assert (message.role, message.task_id, message.context_id) == (v1.ROLE_AGENT, task.id, task.context_id)
    assert message.message_id and spoken(task) == [scene]


@pytest.mark.requirement("JSON-10", "JSON-11", "I-23", "L-10")
async def test_times_have_milliseconds_and_are_the_same_on_every_wire(cell: Cell) -> None:
    task = await cell.task()
    assert task.status.timestamp.nanos % 1_000_000 == 0
    other = await cell.over("grpc", "1.0")
    assert (await other.client.get(task.id)).status.timestamp == task.status.timestamp
