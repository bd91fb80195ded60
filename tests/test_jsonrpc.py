"""The JSON-RPC wire with bytes alone: requests in, replies and streams out, both versions on one address."""

import json
import logging

import pytest
from a2a_stubs import v1, v1_grpc

from a2a_grpc import errors
from a2a_grpc.bindings import jsonrpc, rest, sse
from a2a_grpc.bindings.jsonrpc import JsonRpc
from a2a_grpc.bindings.wire import HttpReply, HttpRequest, HttpStream
from a2a_grpc.config import Options
from tests.fakes import FakeService, task

MESSAGE = {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "hi"}]}
OLD_MESSAGE = {"kind": "message", "messageId": "m1", "role": "user", "parts": [{"kind": "text", "text": "hi"}]}
ABSENT = object()


@pytest.fixture
def service():
    return FakeService()


async def answer(service, body, *, options=None, query="", verb="POST", **headers):
    """Send an object (or raw bytes) and give back the answer; headers with _ for -."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    named.setdefault("content-type", "application/json")
    wire = JsonRpc(service, options or Options())
    return await wire.answer(HttpRequest(verb, "/", query, named, raw))


def rpc(method, params=ABSENT, ident=1, **more):
    return {"jsonrpc": "2.0", "id": ident, "method": method, **more} | ({} if params is ABSENT else {"params": params})


async def ask(service, body, **more):
    """The JSON of a plain reply with status 200."""
    reply = await answer(service, body, **more)
    assert isinstance(reply, HttpReply) and reply.status == 200
    assert reply.headers["content-type"] == "application/json"
    value = json.loads(reply.body)
    assert value["jsonrpc"] == "2.0" and ("result" in value) != ("error" in value)
    return value


async def stream(service, body, **more):
    reply = await answer(service, body, **more)
    assert isinstance(reply, HttpStream) and reply.status == 200
    assert reply.headers["content-type"] == "text/event-stream"
    parser = sse.Parser()
    events = [event for chunk in [chunk async for chunk in reply.chunks] for event in parser.feed(chunk)]
    if hasattr(reply.chunks, "aclose"):
        await reply.chunks.aclose()
    return [(event.id, json.loads(event.data)) for event in events], reply


@pytest.mark.requirement("RPC-03", "RPC-04", "RPC-08", "EQ-01")
@pytest.mark.parametrize("method", v1_grpc.METHODS, ids=lambda method: method.name)
async def test_every_operation_answers_under_its_own_name_and_is_case_sensitive(service, method):
    params = {"message": MESSAGE} if "message" in method.input.DESCRIPTOR.fields_by_name else {"id": "t1"}
    call = stream if method.server_streaming else ask
    await call(service, rpc(method.name, params))
    assert service.calls[0][1].operation == method.name
    assert (await ask(service, rpc(method.name.lower(), params)))["error"]["code"] == -32601


@pytest.mark.requirement("RPC-05", "RPC-07")
async def test_results_are_bare_objects_and_send_results_say_what_they_hold(service):
    sent = await ask(service, rpc("SendMessage", {"message": MESSAGE}))
    assert sent["result"]["task"]["id"] == "t1"
    got = await ask(service, rpc("GetTask", {"id": "t1"}))
    assert got["result"] == {"id": "t1", "contextId": "c1", "status": {"state": "TASK_STATE_WORKING"}}


@pytest.mark.requirement("RPC-06")
@pytest.mark.parametrize("params", [ABSENT, {}, None])
async def test_params_may_be_absent(service, params):
    assert "result" in await ask(service, rpc("GetExtendedAgentCard", params))


@pytest.mark.requirement("RPC-15", "I-18")
async def test_a_delete_answers_an_empty_object_and_null_at_the_old_version(service):
    params = {"taskId": "t1", "id": "p1"}
    assert (await ask(service, rpc("DeleteTaskPushNotificationConfig", params)))["result"] == {}
    old = rpc("tasks/pushNotificationConfig/delete", {"id": "t1", "pushNotificationConfigId": "p1"})
    assert (await ask(service, old))["result"] is None


@pytest.mark.requirement("RPC-07", "BL-22")
@pytest.mark.parametrize("ident", ["a", "", 0, 1, -5, 2**53 + 1, 2**64 - 1, 1.5, None, "\u00e9\n"])
async def test_ids_come_back_as_they_went(service, ident):
    value = await ask(service, rpc("GetTask", {"id": "t1"}, ident=ident))
    assert value["id"] == ident and type(value["id"]) is type(ident)
    service.fault = errors.TaskNotFoundError()
    assert (await ask(service, rpc("GetTask", {"id": "t1"}, ident=ident)))["id"] == ident


@pytest.mark.requirement("RPC-09", "RPC-10", "RPC-17", "BL-22", "BL-32")
@pytest.mark.parametrize(
    ("body", "code", "ident"),
    [
        (b"{", -32700, None),
        (b"", -32700, None),
        (b"\xff\xfe", -32700, None),
        (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"GetTask"}', -32700, None),
        (b"[" * 100_000, -32700, None),
        ([], -32600, None),
        ([rpc("GetTask"), rpc("GetTask")], -32600, None),
        (5, -32600, None),
        (None, -32600, None),
        ({"id": 1, "method": "GetTask", "params": {}}, -32600, 1),
        (rpc("GetTask", {}, jsonrpc="1.0"), -32600, 1),
        (rpc("GetTask", {}, ident={"a": 1}), -32600, None),
        (rpc("GetTask", {}, ident=True), -32600, None),
        (rpc("GetTask", {}, ident=10**30), -32600, None),
        ({"jsonrpc": "2.0", "method": "GetTask", "params": {"id": "t1"}}, -32600, None),
        (rpc("", {}), -32600, 1),
        (rpc(5, {}), -32600, 1),
        ({"jsonrpc": "2.0", "id": "x"}, -32600, "x"),
        (rpc("NoSuchMethod", {}), -32601, 1),
        (rpc("no/such", {}), -32601, 1),
        (rpc("tasks/list", {}), -32601, 1),
        (rpc("GetTask", "t1"), -32600, 1),
        (rpc("GetTask", 5), -32600, 1),
        (rpc("GetTask", ["t1"]), -32602, 1),
        (rpc("GetTask", {"id": 5}), -32602, 1),
        (rpc("SendMessage", {"message": "hi"}), -32602, 1),
        (rpc("message/send", {"message": "hi"}), -32602, 1),
        (rpc("tasks/get", ["t1"]), -32602, 1),
    ],
)
async def test_bad_requests_get_the_number_they_deserve(service, body, code, ident):
    value = await ask(service, body)
    assert value["error"]["code"] == code and value["id"] == ident
    assert not service.calls


@pytest.mark.requirement("ERR-06", "RPC-11", "ERR-05")
async def test_bad_params_name_the_field_and_data_begins_with_the_reason(service):
    body = rpc("SendMessage", {"message": MESSAGE | {"parts": [{"text": "a", "url": "b"}]}})
    error = (await ask(service, body))["error"]
    info, request = error["data"]
    assert info["@type"] == "type.googleapis.com/google.rpc.ErrorInfo" and info["reason"] == "INVALID_PARAMS"
    assert request["fieldViolations"][0]["field"].startswith("message.parts[0]")


@pytest.mark.requirement("ERR-01", "ERR-02", "RPC-11", "RPC-12", "I-05", "I-37")
async def test_agent_errors_have_their_code_and_http_status_200(service):
    service.fault = errors.TaskNotFoundError(metadata={"taskId": "t9"})
    error = (await ask(service, rpc("GetTask", {"id": "t9"})))["error"]
    assert error["code"] == -32001 and error["message"] == "Task not found"
    assert error["data"][0] == {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": "TASK_NOT_FOUND",
        "domain": "a2a-protocol.org",
        "metadata": {"taskId": "t9"},
    }


@pytest.mark.requirement("RPC-12", "I-38", "ERR-08", "ERR-10")
@pytest.mark.parametrize("method", ["GetTask", "SubscribeToTask", "tasks/get", "tasks/resubscribe"])
@pytest.mark.parametrize(
    ("fault", "status", "code", "header"),
    [
        (errors.UnauthenticatedError(), 401, -32098, ("www-authenticate", "Bearer")),
        (errors.PermissionDeniedError(), 403, -32099, None),
        (errors.ResourceExhaustedError(retry_after=3), 429, -32097, ("retry-after", "3")),
        (errors.UnavailableError(retry_after=2), 503, -32603, ("retry-after", "2")),
    ],
)
async def test_http_level_failures_keep_their_status_with_a_json_rpc_body(service, method, fault, status, code, header):
    service.fault, service.events = fault, []
    reply = await answer(service, rpc(method, {"id": "t1"}, ident="q"))
    assert isinstance(reply, HttpReply) and reply.status == status
    value = json.loads(reply.body)
    assert value["id"] == "q" and value["error"]["code"] == code
    assert header is None or reply.headers[header[0]] == header[1]


@pytest.mark.requirement("RPC-02", "RPC-12", "BL-32", "I-62")
@pytest.mark.parametrize(
    ("media", "status"),
    [
        ("application/json", 200),
        ("application/json; charset=utf-8", 200),
        ("Application/A2A+JSON", 200),
        ("application/vnd.api+json", 200),
        ("", 200),
        ("text/plain", 415),
        ("application/xml", 415),
        ("application/x-www-form-urlencoded", 415),
    ],
)
async def test_json_bodies_are_read_under_any_json_type(service, media, status):
    reply = await answer(service, rpc("GetTask", {"id": "t1"}), content_type=media)
    assert reply.status == status and reply.headers["content-type"] == "application/json"
    assert ("result" in json.loads(reply.body)) == (status == 200)


@pytest.mark.requirement("RPC-01")
async def test_other_verbs_are_not_allowed(service):
    reply = await answer(service, b"", verb="GET")
    assert reply.status == 405 and reply.headers["allow"] == "POST" and "error" in json.loads(reply.body)


@pytest.mark.requirement("BL-39", "RPC-12")
def test_a_request_refused_by_the_host_has_the_wires_own_form(service):
    error = errors.PayloadTooLargeError("larger than 1024 bytes")
    reply = JsonRpc(service, Options()).refuse(HttpRequest("POST", "/"), error)
    value = json.loads(reply.body)
    assert reply.status == 413 and value["id"] is None and value["error"]["message"] == "larger than 1024 bytes"


# -- versions


@pytest.mark.requirement("RPC-18", "VER-02", "VER-06", "VER-12", "I-09", "I-36")
@pytest.mark.parametrize(
    ("method", "header", "strict", "outcome"),
    [
        ("GetTask", "", False, "1.0"),
        ("GetTask", "1.0", False, "1.0"),
        ("GetTask", "1.0.7", True, "1.0"),
        ("GetTask", "0.3", False, -32601),
        ("GetTask", "", True, -32601),
        ("tasks/get", "", False, "0.3"),
        ("tasks/get", "0.3.0", True, "0.3"),
        ("tasks/get", "", True, "0.3"),
        ("tasks/get", "1.0", False, -32601),
        ("GetTask", "99.0", False, -32009),
        ("tasks/get", "abc", False, -32009),
        ("NoSuch", "1", False, -32009),
    ],
)
async def test_version_and_name_pick_the_method_together(service, method, header, strict, outcome):
    options = Options(strict_version=strict)
    value = await ask(service, rpc(method, {"id": "t1"}, ident="v"), options=options, a2a_version=header)
    assert value["id"] == "v"
    if isinstance(outcome, str):
        assert service.calls[0][1].version == outcome
    else:
        assert value["error"]["code"] == outcome and not service.calls


@pytest.mark.requirement("VER-03", "VER-10")
async def test_the_version_may_come_in_the_query(service):
    assert "result" in await ask(service, rpc("tasks/get", {"id": "t1"}), query="A2A-Version=0.3")
    value = await ask(service, rpc("GetTask", {"id": "t1"}), query="a2a-version=0.3", a2a_version="1.0")
    assert value["error"]["code"] == -32602


@pytest.mark.requirement("VER-04", "VER-07", "ERR-18")
@pytest.mark.parametrize(
    ("method", "header", "versions", "code"),
    [
        ("tasks/get", "", ("1.0",), -32009),
        ("tasks/get", "0.3", ("1.0",), -32009),
        ("GetTask", "0.3", ("1.0",), -32009),
        ("GetTask", "", ("0.3",), -32009),
        ("no/such", "", ("1.0",), -32601),
    ],
)
async def test_a_version_that_is_off_is_refused_with_the_list(service, method, header, versions, code):
    options = Options(versions=versions)
    error = (await ask(service, rpc(method, {"id": "t1"}), options=options, a2a_version=header))["error"]
    assert error["code"] == code
    assert code != -32009 or error["data"][0]["metadata"] == {"supportedVersions": versions[0]}


@pytest.mark.requirement("V03-04", "V03-03", "V03-16", "V03-17")
@pytest.mark.parametrize("message", [OLD_MESSAGE, {"messageId": "m1", "role": "user", "parts": [{"text": "hi"}]}])
async def test_an_old_send_is_translated_both_ways(service, message):
    value = await ask(service, rpc("message/send", {"message": message}))
    assert value["result"]["kind"] == "task" and value["result"]["status"]["state"] == "working"
    request, call = service.calls[0]
    assert request == v1.SendMessageRequest(
        message=v1.Message(message_id="m1", role=v1.ROLE_USER, parts=[v1.Part(text="hi")])
    )
    assert (call.operation, call.version, call.binding) == ("SendMessage", "0.3", "JSONRPC")


@pytest.mark.requirement("V03-18", "V03-01")
async def test_old_errors_have_the_old_texts(service):
    service.fault = errors.ExtendedAgentCardNotConfiguredError()
    error = (await ask(service, rpc("agent/getAuthenticatedExtendedCard")))["error"]
    assert error["code"] == -32007 and error["message"] == "Authenticated Extended Card is not configured"


@pytest.mark.requirement("I-35")
async def test_an_undeclared_extended_card_is_not_configured_at_the_old_version(service):
    service.fault = errors.UnsupportedOperationError()
    assert (await ask(service, rpc("agent/getAuthenticatedExtendedCard")))["error"]["code"] == -32007
    assert (await ask(service, rpc("GetExtendedAgentCard")))["error"]["code"] == -32004
    assert (await ask(service, rpc("tasks/get", {"id": "t"})))["error"]["code"] == -32004


# -- what travels in headers


@pytest.mark.requirement("EXT-05", "EXT-14", "V03-36", "RPC-16", "I-33")
@pytest.mark.parametrize(
    ("method", "name"),
    [
        ("GetTask", "A2A-Extensions"),
        ("SubscribeToTask", "A2A-Extensions"),
        ("tasks/get", "X-A2A-Extensions"),
        ("tasks/resubscribe", "X-A2A-Extensions"),
    ],
)
async def test_activated_extensions_are_told_under_the_versions_name(service, method, name):
    reply = await answer(service, rpc(method, {"id": "t1"}), a2a_extensions="urn:a", x_a2a_extensions="urn:b")
    assert reply.headers[name] == "urn:a, urn:b"
    assert sum("extensions" in header.lower() for header in reply.headers) == 1
    if isinstance(reply, HttpStream):
        await reply.chunks.aclose()


@pytest.mark.requirement("TENANT-04")
async def test_the_tenant_is_a_member_of_params(service):
    await ask(service, rpc("GetTask", {"id": "t1", "tenant": "acme"}))
    assert service.calls[0][1].tenant == "acme"


async def test_headers_are_the_calls_metadata(service):
    await ask(service, rpc("GetTask", {"id": "t1"}), authorization="Bearer x")
    assert service.calls[0][1].metadata["authorization"] == "Bearer x"


# -- streams


@pytest.mark.requirement("RPC-13", "OP-STREAM-01")
async def test_each_event_is_a_complete_response_with_its_number(service):
    events, reply = await stream(service, rpc("SendStreamingMessage", {"message": MESSAGE}, ident="s"))
    assert [ident for ident, _ in events] == ["1", "2"]
    assert [value["id"] for _, value in events] == ["s", "s"]
    assert [next(iter(value["result"])) for _, value in events] == ["task", "statusUpdate"]
    assert reply.headers["x-accel-buffering"] == "no" and service.closed == 1


@pytest.mark.requirement("V03-05", "V03-06", "V03-07")
async def test_old_streams_hold_bare_objects_and_end_with_a_final_event(service):
    events, _ = await stream(service, rpc("message/stream", {"message": OLD_MESSAGE}))
    kinds = [(value["result"]["kind"], value["result"].get("final")) for _, value in events]
    assert kinds == [("task", None), ("status-update", True)]


@pytest.mark.requirement("L-31", "V03-06")
async def test_an_old_stream_without_a_last_status_gets_one(service):
    service.events = [v1.StreamResponse(task=task(state=v1.TASK_STATE_INPUT_REQUIRED))]
    events, _ = await stream(service, rpc("message/stream", {"message": OLD_MESSAGE}))
    assert events[-1][1]["result"]["final"] is True
    assert events[-1][1]["result"]["status"]["state"] == "input-required"


async def test_last_event_id_reaches_the_service(service):
    await stream(service, rpc("SubscribeToTask", {"id": "t1"}), last_event_id="17")
    assert service.calls[0][1].resume == 17


@pytest.mark.requirement("RPC-14", "BL-20")
@pytest.mark.parametrize("params", [{"message": MESSAGE}, {"message": 5}])
async def test_an_early_stream_error_is_one_plain_reply(service, params):
    service.fault, service.events = errors.InvalidParamsError(), []
    assert (await ask(service, rpc("SendStreamingMessage", params)))["error"]["code"] == -32602


@pytest.mark.requirement("BL-20", "V03-18")
@pytest.mark.parametrize("params", [{"message": OLD_MESSAGE}, {"message": 5}])
async def test_an_early_error_of_an_old_stream_is_one_event(service, params):
    service.fault, service.events = errors.InvalidParamsError(), []
    events, _ = await stream(service, rpc("message/stream", params, ident=7))
    assert len(events) == 1 and events[0][1]["error"]["code"] == -32602 and events[0][1]["id"] == 7


@pytest.mark.requirement("BL-21", "STREAM-11", "I-40")
@pytest.mark.parametrize("method", ["SubscribeToTask", "tasks/resubscribe"])
async def test_a_late_stream_error_is_the_last_event(service, method):
    service.fault = errors.UnavailableError()
    del service.events[1:]
    events, _ = await stream(service, rpc(method, {"id": "t1"}, ident="e"))
    assert events[-1][1]["error"]["code"] == -32603 and events[-1][1]["id"] == "e"
    assert service.closed == 1


@pytest.mark.requirement("BL-28", "BL-29", "ERR-17")
@pytest.mark.parametrize("method", ["GetTask", "tasks/get", "SubscribeToTask", "tasks/resubscribe"])
@pytest.mark.parametrize("fault", [ValueError("dsn=db://user:pw@host"), None])
async def test_exception_texts_stay_in_the_log(service, method, fault, caplog):
    import asyncio

    service.fault, service.events = fault or asyncio.CancelledError("pw@host"), []
    with caplog.at_level(logging.ERROR, "a2a_grpc"):
        reply = await answer(service, rpc(method, {"id": "t1"}))
    body = reply.body if isinstance(reply, HttpReply) else b"".join([chunk async for chunk in reply.chunks])
    assert b"-32603" in body and b"pw@host" not in body and b"reference" in body
    assert "pw@host" in caplog.text


@pytest.mark.requirement("LIST-09", "LIST-10", "LIST-07", "BL-23")
async def test_artifacts_are_written_when_asked_for_even_if_there_are_none(service):
    without = await ask(service, rpc("ListTasks", {}))
    assert "artifacts" not in without["result"]["tasks"][0] and without["result"]["nextPageToken"] == ""
    included = await ask(service, rpc("ListTasks", {"includeArtifacts": True}))
    assert included["result"]["tasks"][0]["artifacts"] == []


@pytest.mark.requirement("BL-23", "HIST-02")
@pytest.mark.parametrize(("params", "value"), [({}, None), ({"historyLength": 0}, 0), ({"historyLength": 2}, 2)])
async def test_a_history_length_of_zero_is_not_an_absent_one(service, params, value):
    await ask(service, rpc("GetTask", {"id": "t1"} | params))
    request = service.calls[0][0]
    assert (request.history_length if request.HasField("history_length") else None) == value


# -- the client's end


@pytest.mark.requirement("RPC-01", "RPC-02", "VER-01")
@pytest.mark.parametrize("version", ["1.0", "0.3"])
async def test_both_ends_of_the_wire_fit(service, version):
    message = v1.GetTaskRequest(id="t1", history_length=3)
    headers, body = jsonrpc.request("GetTask", message, "c1", version)
    assert headers["a2a-version"] == version and headers["content-type"] == "application/json"
    reply = await JsonRpc(service, Options()).answer(HttpRequest("POST", "/", "", headers, body))
    assert service.calls[0][0] == message
    got = jsonrpc.result("GetTask", reply.body, version, ident="c1", status=reply.status)
    assert got == service.answers["GetTask"]


@pytest.mark.requirement("ERR-15")
@pytest.mark.parametrize("version", ["1.0", "0.3"])
async def test_a_client_raises_what_the_server_raised(service, version):
    service.fault = errors.TaskNotCancelableError("It is over")
    headers, body = jsonrpc.request("CancelTask", v1.CancelTaskRequest(id="t1"), 1, version)
    reply = await JsonRpc(service, Options()).answer(HttpRequest("POST", "/", "", headers, body))
    with pytest.raises(errors.TaskNotCancelableError, match="It is over"):
        jsonrpc.result("CancelTask", reply.body, version)


@pytest.mark.parametrize("version", ["1.0", "0.3"])
async def test_a_client_reads_streams(service, version):
    headers, body = jsonrpc.request("SubscribeToTask", v1.SubscribeToTaskRequest(id="t1"), 1, version)
    assert headers["accept"] == "text/event-stream"
    reply = await JsonRpc(service, Options()).answer(HttpRequest("POST", "/", "", headers, body))
    parser = sse.Parser()
    events = [event for chunk in [chunk async for chunk in reply.chunks] for event in parser.feed(chunk)]
    assert [jsonrpc.result("SubscribeToTask", event.data, version) for event in events] == service.events


@pytest.mark.requirement("RPC-15", "I-18")
@pytest.mark.parametrize("result", ["{}", "null"])
def test_a_client_takes_either_result_of_a_delete(result):
    body = b'{"jsonrpc":"2.0","id":1,"result":%b}' % result.encode()
    assert jsonrpc.result("DeleteTaskPushNotificationConfig", body, ident=1).ByteSize() == 0


@pytest.mark.requirement("ERR-16")
@pytest.mark.parametrize(
    ("body", "status", "kind"),
    [
        (b"<html>", 500, errors.InternalError),
        (b"<html>", 502, errors.UnavailableError),
        (b"<html>", 504, errors.UnavailableError),
        (b'{"error":{"code":-32603}}', 502, errors.InternalError),
        (b"<html>", 401, errors.UnauthenticatedError),
        (b"<html>", 200, errors.InvalidAgentResponseError),
        (b"[]", 200, errors.InvalidAgentResponseError),
        (b"{}", 200, errors.InvalidAgentResponseError),
        (b'{"id":2,"result":{"id":"t"}}', 200, errors.InvalidAgentResponseError),
        (b'{"id":1,"result":{"id":5}}', 200, errors.InvalidAgentResponseError),
        (b'{"id":1,"error":{"code":-32001}}', 200, errors.TaskNotFoundError),
        (b'{"id":1,"error":{"code":-1,"message":5,"data":7}}', 200, errors.InternalError),
    ],
)
def test_a_client_copes_with_any_reply(body, status, kind):
    with pytest.raises(kind):
        jsonrpc.result("GetTask", body, ident=1, status=status)


@pytest.mark.requirement("V03-01", "I-46")
@pytest.mark.parametrize("wire", [jsonrpc, rest])
def test_a_client_cannot_list_tasks_at_the_old_version(wire):
    more = (1,) if wire is jsonrpc else ("",)
    with pytest.raises(errors.UnsupportedOperationError):
        wire.request("ListTasks", v1.ListTasksRequest(), *more, "0.3")
