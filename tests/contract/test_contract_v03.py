"""What clients of v0.3 send and see, as bytes on the wire, against a whole server with either store."""

import asyncio
import json
from typing import Any

import grpc.aio
import pytest
from a2a_stubs import v03, v03_grpc, v1

from tests.contract.agents import gates
from tests.contract.cells import Cell, fresh, said

pytestmark = pytest.mark.versions("0.3")
RPC, REST, GRPC = (pytest.mark.wires(name) for name in ("jsonrpc", "rest", "grpc"))
JSON = {"content-type": "application/json"}
DIALECTS = {
    "kind": {"kind": "message", "messageId": "m", "role": "user", "parts": [{"kind": "text", "text": "WORDS"}]},
    "no kind": {"messageId": "m", "role": "user", "parts": [{"text": "WORDS"}]},
    "proto": {"messageId": "m", "role": "ROLE_USER", "content": [{"text": "WORDS"}]},
}


def message(words: str, dialect: str = "kind", **more: Any) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(json.dumps(DIALECTS[dialect]).replace("WORDS", words))
    return {**made, "messageId": fresh("m"), **more}


async def rpc(cell: Cell, method: str, params: Any) -> dict[str, Any]:
    """The response object to a call, without a version header as old clients make it."""
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    status, answer, headers = await cell.fetch("POST", "/", JSON, json.dumps(body).encode())
    assert status == 200 and headers["content-type"].startswith("application/json")
    return answer  # type: ignore[no-any-return]


async def events(cell: Cell, path: str, body: Any) -> list[dict[str, Any]]:
    url = cell.site.server.http_url + path
    async with cell.site.http.post(url, headers=JSON, data=json.dumps(body).encode()) as reply:
        assert reply.content_type == "text/event-stream"
        lines = (await reply.text()).split("\n")
    return [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]


@RPC
@pytest.mark.parametrize("dialect", ["kind", "no kind"])
@pytest.mark.requirement("V03-03", "V03-04", "V03-14", "V03-16", "V03-17", "VER-02", "I-54")
async def test_a_send_gives_a_bare_task_with_kinds(cell: Cell, dialect: str) -> None:
    task = (await rpc(cell, "message/send", {"message": message("echo x", dialect)}))["result"]
    assert (task["kind"], task["status"]["state"], task["history"][0]["role"]) == ("task", "completed", "user")
    assert task["artifacts"][0]["parts"] == [{"kind": "text", "text": "x"}]
    assert task["history"][0]["kind"] == "message"
    read = await rpc(cell, "tasks/get", {"id": task["id"]})
    assert read["result"] == task


@RPC
@pytest.mark.site(agent="talker")
@pytest.mark.requirement("V03-04", "L-32")
async def test_a_direct_message_is_bare_too(cell: Cell) -> None:
    found = (await rpc(cell, "message/send", {"message": message("reply hi")}))["result"]
    assert (found["kind"], found["role"], found["parts"]) == ("message", "agent", [{"kind": "text", "text": "hi"}])


@RPC
@pytest.mark.requirement("V03-08", "V03-28", "L-26", "BL-23")
async def test_an_explicit_history_length_of_zero_is_zero(cell: Cell) -> None:
    task = await cell.task()
    for asked, count in (({}, 1), ({"historyLength": 0}, 0), ({"historyLength": 5}, 1)):
        found = (await rpc(cell, "tasks/get", {"id": task.id, **asked}))["result"]
        assert len(found.get("history", [])) == count


@RPC
@pytest.mark.requirement("V03-14", "V03-15", "I-54", "OP-SEND-02")
async def test_blocking_true_waits_for_the_end(cell: Cell) -> None:
    name = fresh("gate")
    request = {"message": message(f"hold {name}"), "configuration": {"blocking": True}}
    waiting = asyncio.ensure_future(rpc(cell, "message/send", request))
    await asyncio.wait((waiting,), timeout=0.05)
    assert not waiting.done()
    gates[name].set()
    assert (await waiting)["result"]["status"]["state"] == "completed"


@RPC
@pytest.mark.requirement("V03-14", "I-54", "OP-SEND-02", "OP-SEND-04")
async def test_blocking_false_answers_at_once(cell: Cell) -> None:
    name = fresh("gate")
    request = {"message": message(f"hold {name}"), "configuration": {"blocking": False}}
    task = (await rpc(cell, "message/send", request))["result"]
    assert task["status"]["state"] in ("submitted", "working")
    canceled = (await rpc(cell, "tasks/cancel", {"id": task["id"]}))["result"]
    assert canceled["status"]["state"] == "canceled"


@RPC
@pytest.mark.parametrize(
    ("words", "state"), [("states", "completed"), ("ask", "input-required"), ("fail x", "failed"), ("crash", "failed")]
)
@pytest.mark.requirement("V03-05", "V03-06", "V03-07", "L-15", "OP-STREAM-05")
async def test_a_stream_says_which_event_is_the_last(cell: Cell, words: str, state: str) -> None:
    body = {"jsonrpc": "2.0", "id": "s", "method": "message/stream", "params": {"message": message(words)}}
    seen = [event["result"] for event in await events(cell, "/", body)]
    assert seen[0]["kind"] == "task" and seen[-1]["kind"] == "status-update"
    assert [event["final"] for event in seen if event["kind"] == "status-update"][-1] is True
    assert sum(event.get("final", False) for event in seen) == 1
    states = [event["status"]["state"] for event in seen if event["kind"] == "status-update"]
    assert states[-1] == state and states.count(state) == 1
    assert all(event["append"] in (True, False) for event in seen if event["kind"] == "artifact-update")


@RPC
@pytest.mark.requirement("V03-29", "V03-30", "V03-18", "I-55", "BL-14")
async def test_an_ended_task_can_be_followed_but_not_spoken_to(cell: Cell) -> None:
    task = await cell.task()
    body = {"jsonrpc": "2.0", "id": 1, "method": "tasks/resubscribe", "params": {"id": task.id}}
    found = await events(cell, "/", body)
    assert [event["result"]["kind"] for event in found] == ["task"]
    refused = await rpc(cell, "message/send", {"message": message("more", taskId=task.id)})
    assert refused["error"]["code"] == -32004
    refused = await rpc(cell, "tasks/cancel", {"id": task.id})
    assert (refused["error"]["code"], refused["error"]["message"]) == (-32002, "Task cannot be canceled")


@RPC
@pytest.mark.site(push_notifications=True)
@pytest.mark.requirement("V03-09", "V03-10", "V03-11", "V03-12", "L-04", "L-20", "I-56")
async def test_push_configs_have_their_old_shapes(cell: Cell) -> None:
    task = await cell.task("ask")
    prefix = "tasks/pushNotificationConfig/"
    webhook = {
        "url": "https://hooks.example/1",
        "authentication": {"schemes": ["Custom", "Bearer"], "credentials": "c"},
    }
    made = await rpc(cell, prefix + "set", {"taskId": task.id, "pushNotificationConfig": webhook})
    expected = {"taskId": task.id, "pushNotificationConfig": {**webhook, "id": task.id}}
    assert made["result"] == expected
    assert (await rpc(cell, prefix + "get", {"id": task.id}))["result"] == expected
    both = {"id": task.id, "pushNotificationConfigId": task.id}
    assert (await rpc(cell, prefix + "get", both))["result"] == expected
    assert (await rpc(cell, prefix + "list", {"id": task.id}))["result"] == [expected]
    deleted = await rpc(cell, prefix + "delete", both)
    assert "error" not in deleted and deleted["result"] is None
    assert (await rpc(cell, prefix + "get", {"id": task.id}))["error"]["code"] == -32001


@RPC
@pytest.mark.requirement("V03-17", "L-33", "L-34", "OP-SEND-09")
async def test_messages_that_contradict_themselves_are_refused(cell: Cell) -> None:
    file = {"kind": "file", "file": {"bytes": "aGk=", "uri": "https://files.example/x"}}
    for parts, code in (
        ([{"kind": "text", "data": {}}], -32602),
        ([{"kind": "video", "video": {}}], -32005),
        ([file], -32602),
        ([], -32602),
    ):
        refused = await rpc(cell, "message/send", {"message": message("", parts=parts)})
        assert refused["error"]["code"] == code, parts
    for wrong in ({"role": "robot"}, {"kind": "task"}, {"messageId": ""}):
        refused = await rpc(cell, "message/send", {"message": message("x", **wrong)})
        assert refused["error"]["code"] == -32602, wrong


@RPC
@pytest.mark.requirement("V03-01", "I-45", "I-46", "V03-18", "I-35")
async def test_methods_that_there_are_and_are_not(cell: Cell) -> None:
    assert (await rpc(cell, "tasks/list", {}))["error"]["code"] == -32601
    for name in ("agent/getAuthenticatedExtendedCard", "agent/authenticatedExtendedCard"):
        assert (await rpc(cell, name, {}))["error"]["code"] == -32007


@REST
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.requirement("V03-20", "V03-21", "I-42", "VER-11", "VER-02")
async def test_rest_answers_in_the_dialect_of_the_request(cell: Cell, dialect: str) -> None:
    body = json.dumps({"message": message("echo x", dialect), "configuration": {"blocking": True}}).encode()
    status, answer, headers = await cell.fetch("POST", "/v1/message:send", JSON, body)
    assert (status, headers["content-type"].partition(";")[0]) == (200, "application/json")
    task = answer["task"]
    old = dialect == "proto"
    assert task["status"]["state"] == ("TASK_STATE_COMPLETED" if old else "completed")
    assert ("content" if old else "parts") in task["history"][0]
    assert ("kind" in task) is not old
    _, read, _ = await cell.fetch("GET", f"/v1/tasks/{task['id']}")
    assert read["status"]["state"] == "TASK_STATE_COMPLETED"


@REST
@pytest.mark.requirement("V03-21", "V03-40", "OP-SEND-09", "L-34")
async def test_data_in_the_wrong_place_is_refused_and_not_lost(cell: Cell) -> None:
    for held, field in (({"data": {"city": "Oslo"}}, "data.data"), ({"file": {"bytes": "aGk="}}, "file")):
        body = json.dumps({"message": message("", "proto", content=[held])}).encode()
        status, answer, _ = await cell.fetch("POST", "/v1/message:send", JSON, body)
        fields = [entry["field"] for detail in answer["data"] for entry in detail.get("fieldViolations", ())]
        assert (status, fields) == (400, [f"message.content[0].{field}"])
    body = json.dumps({"message": message("", "proto", content=[{"data": {"data": {}}}])}).encode()
    assert (await cell.fetch("POST", "/v1/message:send", JSON, body))[0] == 200


@REST
@pytest.mark.requirement("V03-22", "I-41", "V03-20", "REST-15")
async def test_rest_spells_canceled_as_the_old_proto_does(cell: Cell) -> None:
    task = await cell.task("ask")
    for body in (b"",):
        status, answer, _ = await cell.fetch("POST", f"/v1/tasks/{task.id}:cancel", JSON, body)
        assert (status, answer["status"]["state"]) == (200, "TASK_STATE_CANCELLED")
    _, read, _ = await cell.fetch("GET", f"/v1/tasks/{task.id}")
    assert read["status"]["state"] == "TASK_STATE_CANCELLED"
    other = await cell.over("rest", "1.0")
    assert (await other.client.get(task.id)).status.state == v1.TASK_STATE_CANCELED


@REST
@pytest.mark.requirement("V03-25", "I-47", "V03-24", "V03-18")
async def test_rest_errors_can_be_read_by_every_old_client(cell: Cell) -> None:
    status, answer, headers = await cell.fetch("GET", f"/v1/tasks/{fresh('task')}")
    assert status == 404 and headers["content-type"].startswith("application/json")
    assert (answer["code"], answer["type"], answer["message"]) == (-32001, "TaskNotFoundError", "Task not found")
    assert answer["error"]["code"] == 404
    status, _, _ = await cell.fetch("GET", "/v1/tasks")
    assert status == 404


@GRPC
@pytest.mark.requirement("V03-26", "V03-27", "V03-28", "I-43", "L-26")
async def test_resource_names_are_what_old_grpc_clients_say(cell: Cell) -> None:
    task = await cell.task()
    stub = v03_grpc.A2AServiceStub(cell.site.channel)
    found = await stub.GetTask(v03.GetTaskRequest(name=f"tasks/{task.id}", history_length=0))
    assert (found.id, len(found.history)) == (task.id, 1)
    for name in (task.id, f"task/{task.id}", f"tasks/{task.id}/x", "tasks/", ""):
        with pytest.raises(grpc.aio.AioRpcError) as told:
            await stub.GetTask(v03.GetTaskRequest(name=name))
        assert told.value.code() is grpc.StatusCode.INVALID_ARGUMENT, name
    with pytest.raises(grpc.aio.AioRpcError) as told:
        await stub.GetTask(v03.GetTaskRequest(name=f"tasks/{fresh('task')}"))
    assert (told.value.details() or "").startswith("TaskNotFoundError: ")


@GRPC
@pytest.mark.requirement("V03-06", "V03-07", "V03-26", "I-54", "L-15")
async def test_old_grpc_streams_say_which_event_is_the_last(cell: Cell) -> None:
    stub = v03_grpc.A2AServiceStub(cell.site.channel)
    old = v03.Message(message_id=fresh("m"), role=v03.ROLE_USER, content=[v03.Part(text="states")])
    seen = [event async for event in stub.SendStreamingMessage(v03.SendMessageRequest(request=old))]
    assert seen[0].WhichOneof("payload") == "task"
    assert [event.status_update.final for event in seen] == [False] * (len(seen) - 1) + [True]


@pytest.mark.requirement("V03-31", "JSON-10", "L-10")
async def test_times_end_in_z(cell: Cell) -> None:
    if cell.binding == "grpc":
        assert (await cell.task()).status.timestamp.seconds
        return
    _, answer, _ = await cell.post("SendMessage", said())
    stamps = [word for word in json.dumps(answer).split('"') if word[:2] == "20" and "T" in word]
    assert stamps and all(stamp.endswith("Z") for stamp in stamps)
