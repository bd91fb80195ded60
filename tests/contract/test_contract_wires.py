"""What each HTTP wire promises besides its messages, against a whole server with either store."""

import json
from typing import Any

import pytest
from a2a_stubs import v1

from tests.contract.cells import Cell, fresh, http_refusal, said

NEW = pytest.mark.versions("1.0")
RPC, REST = pytest.mark.wires("jsonrpc"), pytest.mark.wires("rest")
JSON = {"content-type": "application/json"}


def method(cell: Cell, name: str = "GetTask") -> str:
    return name if cell.version == "1.0" else {"GetTask": "tasks/get"}[name]


async def rpc(cell: Cell, body: Any, **headers: str) -> tuple[int, Any]:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    told = {**JSON, "a2a-version": cell.version, **{name.replace("_", "-"): text for name, text in headers.items()}}
    status, answer, _ = await cell.fetch("POST", "/", told, content)
    return status, answer


@RPC
@pytest.mark.parametrize("ident", [0, 7, -1, "", "seven", "7"])
@pytest.mark.requirement("RPC-01", "RPC-07", "RPC-08")
async def test_the_answer_repeats_the_id_with_its_type(cell: Cell, ident: object) -> None:
    task = await cell.task()
    request = {"jsonrpc": "2.0", "id": ident, "method": method(cell), "params": {"id": task.id}}
    status, answer = await rpc(cell, request)
    assert (status, set(answer), type(answer["id"])) == (200, {"jsonrpc", "id", "result"}, type(ident))
    assert answer["id"] == ident and answer["result"]["id"] == task.id
    status, answer = await rpc(cell, {**request, "params": {"id": fresh("task")}})
    assert (set(answer), answer["id"], answer["error"]["code"]) == ({"jsonrpc", "id", "error"}, ident, -32001)


ODD: list[tuple[Any, int]] = [
    (b"{", -32700),
    (b"\xff\xfe", -32700),
    (b"", -32700),
    ([], -32600),
    ([{"jsonrpc": "2.0", "id": 1, "method": "GetTask"}], -32600),
    ({"id": 1, "method": "GetTask"}, -32600),
    ({"jsonrpc": "1.0", "id": 1, "method": "GetTask"}, -32600),
    ({"jsonrpc": "2.0", "id": {}, "method": "GetTask"}, -32600),
    ({"jsonrpc": "2.0", "id": 1, "method": 5}, -32600),
    ({"jsonrpc": "2.0", "id": 1, "method": ""}, -32600),
    ({"jsonrpc": "2.0", "id": 1, "method": "gettask"}, -32601),
    ({"jsonrpc": "2.0", "id": 1, "method": "tasks/list"}, -32601),
    ({"jsonrpc": "2.0", "id": 1, "method": "METHOD", "params": "x"}, -32600),
    ({"jsonrpc": "2.0", "id": 1, "method": "METHOD", "params": {"id": 5}}, -32602),
    ({"jsonrpc": "2.0", "id": 1, "method": "METHOD"}, -32602),
]


@RPC
@pytest.mark.parametrize(("body", "code"), ODD)
@pytest.mark.requirement("RPC-09", "RPC-10", "RPC-12", "RPC-17", "BL-22", "V03-01", "V03-08")
async def test_requests_that_are_none_have_their_own_codes(cell: Cell, body: Any, code: int) -> None:
    if isinstance(body, dict) and body.get("method") == "METHOD":
        body = {**body, "method": method(cell)}
    status, answer = await rpc(cell, body)
    assert (status, answer["error"]["code"]) == (200, code), answer
    assert "result" not in answer and answer["error"]["message"]


@RPC
@pytest.mark.requirement("RPC-02", "RPC-12", "V03-19", "BL-32")
async def test_json_rpc_is_posted_as_json(cell: Cell) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": method(cell), "params": {"id": (await cell.task()).id}}
    for kind in ("application/json", "application/json; charset=utf-8", "application/a2a+json"):
        assert "result" in (await rpc(cell, body, content_type=kind))[1]
    assert (await rpc(cell, body, content_type="text/plain"))[0] == 415
    status, answer, headers = await cell.fetch("GET", "/", {"a2a-version": cell.version})
    assert status == 405 and headers["allow"] == "POST" and answer


@NEW
@RPC
@pytest.mark.requirement("RPC-04", "RPC-05", "RPC-06", "OP-SEND-01", "OP-GET-01", "JSON-01", "JSON-03", "JSON-06")
async def test_results_are_the_json_of_the_output_messages(cell: Cell) -> None:
    message = {"messageId": fresh("m"), "role": "ROLE_USER", "kind": "message", "parts": [{"text": "echo x"}]}
    request = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
    _, sent = await rpc(cell, request)
    assert set(sent["result"]) == {"task"}
    task = sent["result"]["task"]
    assert task["status"]["state"] == "TASK_STATE_COMPLETED" and task["history"][0]["role"] == "ROLE_USER"
    assert task["status"]["timestamp"].endswith("Z") and "kind" not in task
    _, read = await rpc(cell, {"jsonrpc": "2.0", "id": 2, "method": "GetTask", "params": {"id": task["id"]}})
    assert read["result"] == task
    _, card = await rpc(cell, {"jsonrpc": "2.0", "id": 3, "method": "GetExtendedAgentCard"})
    assert card["error"]["code"] == -32004
    _, both = await rpc(cell, {**request, "params": {"message": {**message, "parts": [{"text": "x", "url": "y"}]}}})
    assert both["error"]["code"] == -32602


# -- REST


@NEW
@REST
@pytest.mark.requirement("REST-03", "BL-18", "I-01", "REST-15", "REST-04")
async def test_both_verbs_subscribe(cell: Cell) -> None:
    task = await cell.task("ask")
    for verb in ("GET", "POST"):
        url = f"{cell.site.server.http_url}/tasks/{task.id}:subscribe"
        async with cell.site.http.request(verb, url, headers={**JSON, "a2a-version": "1.0"}) as reply:
            assert (reply.status, reply.content_type) == (200, "text/event-stream")
            line = b""
            while not line.startswith(b"data: "):
                line = await reply.content.readline()
        assert json.loads(line.removeprefix(b"data: "))["task"]["id"] == task.id


@pytest.mark.versions("0.3")
@REST
@pytest.mark.requirement("V03-23", "V03-20", "BL-18")
async def test_both_verbs_subscribe_below_the_old_prefix(cell: Cell) -> None:
    task = await cell.task("echo x")
    for verb in ("GET", "POST"):
        url = f"{cell.site.server.http_url}/v1/tasks/{task.id}:subscribe"
        async with cell.site.http.request(verb, url) as reply:
            assert (reply.status, reply.content_type) == (200, "text/event-stream")
            assert task.id in (await reply.text())


@NEW
@REST
@pytest.mark.requirement("REST-04", "REST-06", "REST-12", "REST-14", "REST-15", "REST-22", "REST-24", "BL-24", "BL-32")
async def test_paths_verbs_and_query_values_that_are_wrong(cell: Cell) -> None:
    task = await cell.task("ask")
    told = {"a2a-version": "1.0"}
    for path, status in (
        ("/nothing/here", 404),
        ("/tasks/x%3Acancel", 404),
        (f"/tasks/{task.id}?historyLength=1.5", 400),
        (f"/tasks/{task.id}?historyLength=-1", 400),
        (f"/tasks/{task.id}?historyLength=2&unknown=1", 200),
        ("/tasks?pageSize=abc", 400),
        ("/tasks?pageSize=0", 400),
        ("/tasks?pageSize=101", 400),
        ("/tasks?status=WORKING", 400),
        ("/tasks?status=TASK_STATE_WORKING", 200),
        ("/tasks?includeArtifacts=yes", 400),
        ("/tasks?includeArtifacts=true", 200),
        ("/tasks?statusTimestampAfter=2020-01-01T00:00:00Z", 200),
        ("/tasks?statusTimestampAfter=2020-01-01T00:00:00%2B02:00", 200),
        ("/tasks?statusTimestampAfter=yesterday", 400),
        ("/tasks?statusTimestampAfter=2020-01-01T00:00:00+02:00", 200),  # a plus sign that has become a space
    ):
        found, body, _ = await cell.fetch("GET", path, told)
        assert found == status, (path, body)
        if status != 200:
            assert body["error"]["code"] == status and body["error"]["details"]
    status, body, headers = await cell.fetch("DELETE", f"/tasks/{task.id}", told)
    assert status == 405 and "GET" in headers["allow"] and body["error"]["code"] == 405
    status, body, _ = await cell.fetch("POST", f"/tasks/{task.id}:cancel", {**told, **JSON}, b"")
    assert (status, body["status"]["state"]) == (200, "TASK_STATE_CANCELED")


@REST
@pytest.mark.requirement("CARD-24", "AUTH-04", "OP-GET-01")
async def test_no_cache_on_the_way_keeps_what_a_caller_has_read(cell: Cell) -> None:
    task, told = await cell.task("ask"), {"a2a-version": cell.version}
    paths = [f"/tasks/{task.id}", f"/tasks/{fresh('task')}", "/card" if cell.version == "0.3" else "/extendedAgentCard"]
    for path in paths if cell.version == "0.3" else [*paths, "/tasks", "/nowhere"]:
        _, _, headers = await cell.fetch("GET", f"/v1{path}" if cell.version == "0.3" else path, told)
        assert headers["cache-control"] == "private, no-cache", path
    assert (await cell.client.cancel(task.id)).id == task.id


@pytest.mark.wires("jsonrpc", "rest")
@pytest.mark.requirement("ERR-01", "EQ-03", "REST-09", "RPC-12", "I-62")
async def test_a_body_of_another_type_is_one_error_on_every_wire(cell: Cell) -> None:
    _, url, sent, body = cell.http_request("SendMessage", said())
    found = await cell.fetch("POST", url, {**sent, "content-type": "text/plain"}, body)
    refusal = http_refusal(*found)
    assert (found[0], refusal.reason) == (415, "CONTENT_TYPE_NOT_SUPPORTED")
    if (cell.binding, cell.version) != ("rest", "1.0"):  # which has no such code
        assert refusal.code == -32005


@NEW
@REST
@pytest.mark.requirement("REST-07", "REST-08", "REST-09", "I-03", "I-62", "BL-32")
async def test_media_types_of_requests_and_answers(cell: Cell) -> None:
    _, _, sent, body = cell.http_request("SendMessage", said())
    for kind, accept, answer in (
        ("application/a2a+json", "", "application/a2a+json"),
        ("application/json", "", "application/json"),
        ("application/json; charset=utf-8", "", "application/json"),
        ("application/json", "application/a2a+json", "application/a2a+json"),
        ("application/a2a+json", "application/json", "application/json"),
    ):
        told = {"content-type": kind, "a2a-version": "1.0"} | ({"accept": accept} if accept else {})
        status, _, headers = await cell.fetch("POST", "/message:send", told, body)
        assert (status, headers["content-type"].partition(";")[0]) == (200, answer)
    status, value, _ = await cell.fetch("POST", "/message:send", {**sent, "content-type": "text/plain"}, body)
    assert (status, value["error"]["details"][0]["reason"]) == (415, "CONTENT_TYPE_NOT_SUPPORTED")
    for wrong in (b"{", b"[]", b"", b"5"):
        status, value, _ = await cell.fetch("POST", "/message:send", sent, wrong)
        assert (status, value["error"]["status"]) == (400, "INVALID_ARGUMENT")


@pytest.mark.wires("jsonrpc", "rest")
@pytest.mark.requirement("SSE-01", "SSE-03", "SSE-05", "REST-19", "RPC-13", "BL-37", "V03-05", "V03-06")
async def test_a_stream_is_one_line_of_json_for_each_event(cell: Cell) -> None:
    verb, url, headers, body = cell.http_request("SendStreamingMessage", said("states"))
    sent = {**headers, "accept-encoding": "gzip, br"}
    async with cell.site.http.request(verb, url, headers=sent, data=body) as reply:
        assert (reply.status, reply.content_type) == (200, "text/event-stream")
        assert "content-encoding" not in reply.headers and reply.headers["cache-control"] == "no-cache"
        assert reply.headers["x-accel-buffering"] == "no"
        text = (await reply.read()).decode()
    events = [json.loads(line.removeprefix("data: ")) for line in text.split("\n") if line.startswith("data: ")]
    assert len(events) == 5 and "[DONE]" not in text and "\r" not in text
    if cell.binding == "jsonrpc":
        assert all(event["id"] == 7 and event["jsonrpc"] == "2.0" for event in events)
        events = [event["result"] for event in events]
    if cell.version == "0.3":
        finals = [event.get("statusUpdate", event) for event in events]
        assert [bool(event.get("final")) for event in finals] == [False] * 4 + [True]
        return
    assert [next(iter(event)) for event in events] == [
        *("task", "statusUpdate", "artifactUpdate", "statusUpdate", "statusUpdate")
    ]
    assert "final" not in text


@pytest.mark.wires("jsonrpc", "rest")
@pytest.mark.site(heartbeat=0.1)
@pytest.mark.stores("memory")
@pytest.mark.requirement("SSE-04", "BL-36", "SSE-02")
async def test_a_silent_stream_carries_comments_that_readers_pass_over(cell: Cell) -> None:
    task, gate = await cell.held()
    verb, url, headers, _ = cell.http_request("SubscribeToTask", v1.SubscribeToTaskRequest(id=task.id))
    events = cell.client.subscribe(task.id)
    await anext(events)
    body = cell.http_request("SubscribeToTask", v1.SubscribeToTaskRequest(id=task.id))[3]
    async with cell.site.http.request(verb, url, headers=headers, data=body) as reply:
        seen = b""
        while seen.count(b"\n:") < 2:
            seen += await reply.content.readany()
    await cell.release(task, gate)
    assert [event async for event in events][-1].status_update.status.state == v1.TASK_STATE_COMPLETED
