"""The HTTP+JSON wire with bytes alone: routes, merging, errors, streams, both versions; and the client's end."""

import json
import logging

import pytest
from a2a_stubs import v1, v1_grpc

from a2a_grpc import errors
from a2a_grpc.bindings import rest, sse
from a2a_grpc.bindings.rest import Rest
from a2a_grpc.bindings.wire import HttpReply, HttpRequest, HttpStream
from a2a_grpc.config import Options
from tests.fakes import FakeService, task

MESSAGE = {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "hi"}]}
OLD_JSON = {"kind": "message", "messageId": "m1", "role": "user", "parts": [{"kind": "text", "text": "hi"}]}
OLD_PROTO = {"messageId": "m1", "role": "ROLE_USER", "content": [{"text": "hi"}]}
SENT = v1.SendMessageRequest(message=v1.Message(message_id="m1", role=v1.ROLE_USER, parts=[v1.Part(text="hi")]))


@pytest.fixture
def service():
    return FakeService()


async def answer(service, verb, target, body=None, *, options=None, tenant="", prefixless=True, **headers):
    """Send a request line and an object (or raw bytes); headers with _ for -."""
    path, _, query = target.partition("?")
    raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    wire = Rest(service, options or Options(), prefixless)
    return await wire.answer(HttpRequest(verb, path, query, named, raw), tenant)


async def ask(service, verb, target, body=None, *, status=200, **more):
    """The JSON of a plain reply with that status."""
    reply = await answer(service, verb, target, body, **more)
    assert isinstance(reply, HttpReply) and reply.status == status, reply
    return json.loads(reply.body)


async def stream(service, verb, target, body=None, **more):
    reply = await answer(service, verb, target, body, **more)
    assert isinstance(reply, HttpStream) and reply.status == 200
    assert reply.headers["content-type"] == "text/event-stream"
    parser = sse.Parser()
    events = [event for chunk in [chunk async for chunk in reply.chunks] for event in parser.feed(chunk)]
    await reply.chunks.aclose()
    return [(event.id, json.loads(event.data)) for event in events]


ROUTES = [
    ("POST", "/message:send", "SendMessage"),
    ("POST", "/message:stream", "SendStreamingMessage"),
    ("GET", "/tasks/t1", "GetTask"),
    ("GET", "/tasks", "ListTasks"),
    ("POST", "/tasks/t1:cancel", "CancelTask"),
    ("GET", "/tasks/t1:subscribe", "SubscribeToTask"),
    ("POST", "/tasks/t1:subscribe", "SubscribeToTask"),
    ("POST", "/tasks/t1/pushNotificationConfigs", "CreateTaskPushNotificationConfig"),
    ("GET", "/tasks/t1/pushNotificationConfigs/p1", "GetTaskPushNotificationConfig"),
    ("GET", "/tasks/t1/pushNotificationConfigs", "ListTaskPushNotificationConfigs"),
    ("DELETE", "/tasks/t1/pushNotificationConfigs/p1", "DeleteTaskPushNotificationConfig"),
    ("GET", "/extendedAgentCard", "GetExtendedAgentCard"),
]


@pytest.mark.requirement("REST-01", "REST-02", "REST-03", "BL-18", "I-01", "I-11", "EQ-01")
@pytest.mark.parametrize("tenant", ["", "acme", "v1", "a%2Fb"])
@pytest.mark.parametrize(("verb", "path", "operation"), ROUTES)
async def test_every_route_answers_plain_and_below_a_tenant(service, verb, path, operation, tenant):
    body = {"message": MESSAGE} if "message" in path else None
    reply = await answer(service, verb, f"/{tenant}{path}" if tenant else path, body, a2a_version="1.0")
    assert reply.status == 200
    request, call = service.calls[0] if isinstance(reply, HttpReply) else await first_call(service, reply)
    assert call.operation == operation and call.tenant == tenant.replace("%2F", "/") == request.tenant
    assert getattr(request, "task_id", getattr(request, "id", "t1")) in ("t1", "")
    assert (call.binding, call.version) == ("HTTP+JSON", "1.0")


async def first_call(service, reply):
    await reply.chunks.aclose()
    return service.calls[0]


@pytest.mark.requirement("REST-22", "I-18", "RPC-05")
async def test_answers_are_bare_objects(service):
    assert (await ask(service, "POST", "/message:send", {"message": MESSAGE}))["task"]["id"] == "t1"
    assert (await ask(service, "GET", "/tasks/t1"))["id"] == "t1"
    assert await ask(service, "DELETE", "/tasks/t1/pushNotificationConfigs/p1") == {}
    assert service.calls[0][0] == SENT


@pytest.mark.requirement("REST-04", "REST-05", "REST-06", "I-13")
@pytest.mark.parametrize(
    ("path", "operation", "ident"),
    [
        ("/tasks/t1%3Acancel", "GetTask", "t1:cancel"),
        ("/tasks/a:b", "GetTask", "a:b"),
        ("/tasks/a%2Fb%20c%25", "GetTask", "a/b c%"),
        ("/tasks/t%253A", "GetTask", "t%3A"),
        ("/tasks/tasks", "GetTask", "tasks"),
        ("/tasks/t1/", "GetTask", "t1"),
    ],
)
async def test_path_variables_are_decoded_once_and_verbs_are_only_verbs_at_the_end(service, path, operation, ident):
    await ask(service, "GET", path)
    request, call = service.calls[0]
    assert (call.operation, request.id) == (operation, ident)


# -- one request out of path, query and body


@pytest.mark.requirement("REST-16", "TENANT-03", "I-11")
@pytest.mark.parametrize(
    ("verb", "target", "body", "field"),
    [
        ("POST", "/tasks/t1:cancel", {"id": "t2"}, "id"),
        ("POST", "/tasks/t1:cancel", {"id": 1}, "id"),
        ("GET", "/tasks/t1?id=t2", None, "id"),
        ("POST", "/acme/message:send", {"message": MESSAGE, "tenant": "other"}, "tenant"),
        ("GET", "/acme/tasks?tenant=other", None, "tenant"),
        ("POST", "/message:send?tenant=a", {"message": MESSAGE, "tenant": "b"}, "tenant"),
        ("POST", "/tasks/t1/pushNotificationConfigs", {"task_id": "t2", "url": "https://a"}, "taskId"),
    ],
)
async def test_a_field_said_twice_must_agree(service, verb, target, body, field):
    error = (await ask(service, verb, target, body, status=400))["error"]
    assert error["details"][1]["fieldViolations"][0]["field"] == field and not service.calls


@pytest.mark.requirement("REST-16", "REST-17", "TENANT-03")
@pytest.mark.parametrize(
    ("verb", "target", "body", "tenant"),
    [
        ("POST", "/tasks/t1:cancel", {"id": "t1", "tenant": None}, ""),
        ("POST", "/acme/tasks/t1:cancel", {"id": "t1", "tenant": "acme"}, "acme"),
        ("POST", "/tasks/t1:cancel", {"tenant": "acme"}, "acme"),
        ("GET", "/tasks/t1?tenant=acme", None, "acme"),
        ("POST", "/tasks/t1/pushNotificationConfigs", {"task_id": "t1", "url": "https://a", "tenant": "x"}, "x"),
    ],
)
async def test_a_field_said_twice_alike_is_fine(service, verb, target, body, tenant):
    await ask(service, verb, target, body)
    assert service.calls[0][1].tenant == tenant


@pytest.mark.requirement("TENANT-03")
async def test_an_address_may_stand_for_a_tenant(service):
    await ask(service, "GET", "/tasks/t1", tenant="acme")
    assert service.calls[0][1].tenant == "acme"
    await ask(service, "GET", "/other/tasks/t1", tenant="acme", status=400)


@pytest.mark.requirement("REST-11", "REST-13", "REST-23", "BL-23", "BL-24", "LIST-10")
async def test_query_values_become_fields(service):
    value = await ask(
        service,
        "GET",
        "/tasks?contextId=c%201&status=TASK_STATE_WORKING&pageSize=7&historyLength=0&includeArtifacts=true"
        "&statusTimestampAfter=2026-01-02T03:04:05.678Z&nonsense=1",
    )
    request = service.calls[0][0]
    assert (request.context_id, request.status, request.page_size) == ("c 1", v1.TASK_STATE_WORKING, 7)
    assert request.HasField("history_length") and request.include_artifacts
    assert request.status_timestamp_after.ToMilliseconds() == 1767323045678
    assert value["tasks"][0]["artifacts"] == []


@pytest.mark.requirement("LIST-09", "LIST-07")
async def test_artifacts_are_left_out_unless_asked_for(service):
    value = await ask(service, "GET", "/tasks")
    assert "artifacts" not in value["tasks"][0] and value["nextPageToken"] == ""


@pytest.mark.requirement("REST-12", "REST-14", "BL-24")
@pytest.mark.parametrize(
    "query",
    [
        "pageSize=abc",
        "pageSize=",
        "pageSize=1&pageSize=2",
        "status=WORKING",
        "includeArtifacts=yes",
        "historyLength=1.5",
        "statusTimestampAfter=yesterday",
        "contextId=%ff",
    ],
)
async def test_bad_query_values_are_named(service, query):
    error = (await ask(service, "GET", f"/tasks?{query}", status=400))["error"]
    assert error["status"] == "INVALID_ARGUMENT" and error["details"][1]["fieldViolations"][0]["field"]
    assert not service.calls


@pytest.mark.requirement("REST-10", "BL-32")
async def test_bodies_of_get_and_delete_are_ignored(service):
    await ask(service, "GET", "/tasks/t1", b"{nonsense", content_type="text/plain")
    await ask(service, "DELETE", "/tasks/t1/pushNotificationConfigs/p1", b"\xff")
    assert service.calls[0][0].id == "t1"


@pytest.mark.requirement("REST-15")
@pytest.mark.parametrize("media", ["", "application/json", "text/plain"])
@pytest.mark.parametrize("body", [b"", b" \r\n", b"{}"])
async def test_an_empty_body_will_do_for_cancel_and_subscribe(service, media, body):
    if body == b"{}" and media == "text/plain":
        media = "application/json"
    await ask(service, "POST", "/tasks/t1:cancel", body, content_type=media)
    await stream(service, "POST", "/tasks/t1:subscribe", body, content_type=media)


@pytest.mark.requirement("BL-32", "BL-27", "JSON-18")
@pytest.mark.parametrize("body", [b"{", b"[]", b"5", b"null ", b"\xff", b'{"message":' + b"[" * 100_000])
async def test_bodies_that_are_no_object_are_bad_requests(service, body):
    status = 200 if body == b"null " else 400
    value = await ask(service, "POST", "/message:send", body, status=status)
    assert status == 200 or value["error"]["code"] == 400


# -- media types


@pytest.mark.requirement("REST-07", "REST-08", "I-03")
@pytest.mark.parametrize(
    ("accept", "content_type", "default", "expected"),
    [
        ("", "", "application/a2a+json", "application/a2a+json"),
        ("", "", "application/json", "application/json"),
        ("*/*", "application/json; charset=utf-8", "application/a2a+json", "application/json"),
        ("application/json", "application/a2a+json", "application/a2a+json", "application/json"),
        ("application/a2a+json, application/json", "application/json", "application/json", "application/a2a+json"),
        ("application/a2a+json;q=0.5, Application/JSON", "", "application/a2a+json", "application/json"),
        ("application/json;q=0", "", "application/a2a+json", "application/a2a+json"),
        ("text/event-stream", "", "application/json", "application/json"),
        ("application/json;q=nonsense", "", "application/a2a+json", "application/a2a+json"),
    ],
)
async def test_the_reply_type_is_what_the_client_prefers(service, accept, content_type, default, expected):
    options = Options(rest_media_type=default)
    headers = {"accept": accept, "content_type": content_type}
    reply = await answer(service, "POST", "/tasks/t1:cancel", {}, options=options, **headers)
    assert (reply.status, reply.headers["content-type"]) == (200, expected)
    reply = await answer(service, "POST", "/nowhere", {}, options=options, **headers)
    assert (reply.status, reply.headers["content-type"]) == (404, expected)


@pytest.mark.requirement("REST-09", "I-62", "BL-32")
async def test_other_body_types_are_refused(service):
    value = await ask(service, "POST", "/message:send", b"<a/>", content_type="application/xml", status=415)
    assert value["error"]["details"][0]["reason"] == "CONTENT_TYPE_NOT_SUPPORTED"


# -- errors


@pytest.mark.requirement("REST-18", "ERR-01", "ERR-03", "ERR-04", "I-04", "I-02")
@pytest.mark.parametrize("profile", ["1.0.1", "1.0.0"])
@pytest.mark.parametrize("kind", sorted(errors.BY_REASON.values(), key=lambda kind: kind.__name__))
async def test_errors_have_their_status_and_object(service, kind, profile):
    service.fault = kind("told")
    code, status = service.fault.status(profile)
    options = Options(error_profile=profile)
    value = await ask(service, "GET", "/tasks/t9", options=options, status=status)
    details = value["error"].pop("details")
    assert value == {"error": {"code": status, "status": code.name, "message": "told"}}
    assert details[0]["reason"] == kind.reason and details[0]["domain"] == "a2a-protocol.org"


@pytest.mark.requirement("REST-24")
@pytest.mark.parametrize(
    ("verb", "path", "status", "allow"),
    [
        ("GET", "/nowhere", 404, None),
        ("GET", "/", 404, None),
        ("POST", "/a/b/c/d/e", 404, None),
        ("GET", "/message:send", 405, {"POST"}),
        ("DELETE", "/tasks/t1", 405, {"GET"}),
        ("PUT", "/tasks/t1:subscribe", 405, {"GET", "POST"}),
    ],
)
async def test_wrong_paths_and_verbs_are_told_in_the_same_form(service, verb, path, status, allow):
    reply = await answer(service, verb, path)
    assert reply.status == status == json.loads(reply.body)["error"]["code"]
    assert allow is None or set(reply.headers["allow"].split(", ")) == allow


@pytest.mark.requirement("ERR-08", "ERR-10")
async def test_hints_are_headers_too(service):
    service.fault = errors.UnauthenticatedError(challenge="Basic")
    assert (await answer(service, "GET", "/tasks/t1")).headers["www-authenticate"] == "Basic"
    service.fault = errors.ResourceExhaustedError(retry_after=4)
    assert (await answer(service, "GET", "/tasks/t1")).headers["retry-after"] == "4"


@pytest.mark.requirement("BL-39")
@pytest.mark.parametrize(("path", "member"), [("/message:send", "error"), ("/v1/message:send", "type")])
def test_a_request_refused_by_the_host_has_the_form_of_its_path(service, path, member):
    reply = Rest(service, Options()).refuse(HttpRequest("POST", path), errors.PayloadTooLargeError())
    assert reply.status == 413 and member in json.loads(reply.body)


@pytest.mark.requirement("BL-28", "ERR-11", "ERR-17")
async def test_exception_texts_stay_in_the_log(service, caplog):
    service.fault = ValueError("dsn=db://user:pw@host")
    with caplog.at_level(logging.ERROR, "a2a_grpc"):
        value = await ask(service, "GET", "/tasks/t1", status=500)
    assert "pw@host" not in str(value) and "pw@host" in caplog.text
    assert value["error"]["details"][0]["metadata"]["reference"] in caplog.text


# -- versions


@pytest.mark.requirement("VER-02", "VER-06", "VER-09", "VER-11", "VER-12", "I-09", "I-12")
@pytest.mark.parametrize(
    ("target", "header", "strict", "version", "tenant"),
    [
        ("/tasks/t1", "", False, "1.0", ""),
        ("/tasks/t1", "1.0.3", True, "1.0", ""),
        ("/tasks/t1", "", True, "0.3", ""),
        ("/tasks/t1", "0.3", False, "0.3", ""),
        ("/v1/tasks/t1", "", False, "0.3", ""),
        ("/v1/tasks/t1", "0.3.0", False, "0.3", ""),
        ("/v1/tasks/t1?A2A-Version=0.3", "", False, "0.3", ""),
        ("/v1/tasks/t1", "1.0", False, "1.0", "v1"),
        ("/v1/tasks/t1?a2a-version=1.0", "", False, "1.0", "v1"),
    ],
)
async def test_the_version_picks_the_table(service, target, header, strict, version, tenant):
    await ask(service, "GET", target, options=Options(strict_version=strict), a2a_version=header)
    request, call = service.calls[0]
    assert (call.version, call.tenant, request.id) == (version, tenant, "t1")


@pytest.mark.requirement("VER-04", "VER-09", "VER-10", "ERR-18")
@pytest.mark.parametrize(
    ("target", "header", "reason", "old"),
    [
        ("/tasks/t1", "99.0", "VERSION_NOT_SUPPORTED", False),
        ("/nowhere", "abc", "VERSION_NOT_SUPPORTED", False),
        ("/v1/tasks/t1", "1", "VERSION_NOT_SUPPORTED", True),
        ("/tasks/t1?A2A-Version=0.3", "1.0", "INVALID_PARAMS", False),
    ],
)
async def test_versions_that_cannot_be_served_are_refused_in_the_form_of_the_path(service, target, header, reason, old):
    value = await ask(service, "GET", target, a2a_version=header, status=400)
    assert value["error"]["details"][0]["reason"] == reason
    assert ("type" in value) == old


@pytest.mark.requirement("VER-04", "VER-11")
async def test_old_paths_are_refused_where_the_old_version_is_off(service):
    value = await ask(service, "GET", "/v1/tasks/t1", options=Options(versions=("1.0",)), status=400)
    assert value["error"]["details"][0]["metadata"] == {"supportedVersions": "1.0"}


async def test_the_prefix_of_the_old_version_can_be_made_a_must(service):
    await ask(service, "GET", "/tasks/t1", a2a_version="0.3", prefixless=False, status=404)


@pytest.mark.requirement("EXT-05", "EXT-14", "V03-36", "REST-21")
@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("/tasks/t1", "A2A-Extensions"),
        ("/tasks/t1:subscribe", "A2A-Extensions"),
        ("/v1/tasks/t1", "X-A2A-Extensions"),
        ("/v1/tasks/t1:subscribe", "X-A2A-Extensions"),
    ],
)
async def test_activated_extensions_are_told_under_the_versions_name(service, target, name):
    reply = await answer(service, "GET", target, a2a_extensions="urn:a", x_a2a_extensions="urn:b,urn:a")
    assert reply.headers[name] == "urn:a, urn:b"
    assert sum("extensions" in header.lower() for header in reply.headers) == 1
    if isinstance(reply, HttpStream):
        await reply.chunks.aclose()


# -- v0.3


@pytest.mark.requirement("V03-20", "V03-21", "I-42")
@pytest.mark.parametrize(
    ("body", "kind", "state"),
    [
        ({"message": OLD_JSON}, "task", "working"),
        ({"message": OLD_PROTO}, None, "TASK_STATE_WORKING"),
        ({"request": OLD_PROTO}, None, "TASK_STATE_WORKING"),
        (
            {"request": {"message_id": "m1", "role": "ROLE_USER", "content": [{"text": "hi"}]}},
            None,
            "TASK_STATE_WORKING",
        ),
    ],
)
async def test_old_bodies_are_read_in_both_dialects_and_answered_in_theirs(service, body, kind, state):
    reply = await answer(service, "POST", "/v1/message:send", body, content_type="application/json")
    value = json.loads(reply.body)["task"]
    assert (value.get("kind"), value["status"]["state"]) == (kind, state)
    assert reply.headers["content-type"] == "application/json"
    assert service.calls[0][0].message == SENT.message


@pytest.mark.requirement("V03-20", "V03-22", "V03-23", "I-41", "I-44", "BL-18")
@pytest.mark.parametrize(
    ("verb", "path", "body", "operation"),
    [
        ("GET", "/v1/tasks/t1", None, "GetTask"),
        ("POST", "/v1/tasks/t1:cancel", None, "CancelTask"),
        ("POST", "/v1/tasks/t1:cancel", {"name": "tasks/t1"}, "CancelTask"),
        ("POST", "/v1/tasks/t1:cancel", {"id": "t1"}, "CancelTask"),
        ("POST", "/v1/tasks/t1:subscribe", {}, "SubscribeToTask"),
        ("GET", "/v1/tasks/t1:subscribe", None, "SubscribeToTask"),
        ("GET", "/v1/tasks/t1/pushNotificationConfigs/p1", None, "GetTaskPushNotificationConfig"),
        ("GET", "/v1/tasks/t1/pushNotificationConfigs", None, "ListTaskPushNotificationConfigs"),
        ("DELETE", "/v1/tasks/t1/pushNotificationConfigs/p1", None, "DeleteTaskPushNotificationConfig"),
    ],
)
async def test_every_old_route_answers(service, verb, path, body, operation):
    reply = await answer(service, verb, path, body)
    assert reply.status == 200
    request, call = service.calls[0] if isinstance(reply, HttpReply) else await first_call(service, reply)
    assert call.operation == operation
    assert "t1" in (getattr(request, "task_id", ""), getattr(request, "id", ""))


PUSH = {"pushNotificationConfig": {"id": "p1", "url": "https://a.example"}}


@pytest.mark.requirement("I-44", "V03-20")
@pytest.mark.parametrize(
    "body",
    [
        {"parent": "tasks/t1", "configId": "p1", "config": PUSH},
        {"parent": "tasks/t1", "config_id": "p1", "config": PUSH},
        {"config": PUSH},
        PUSH,
    ],
)
@pytest.mark.parametrize("path", ["/v1/tasks/t1/pushNotificationConfigs", "/v1/task/t1/pushNotificationConfigs"])
async def test_an_old_push_config_is_taken_in_every_form(service, path, body):
    await ask(service, "POST", path, body)
    request, call = service.calls[0]
    assert call.operation == "CreateTaskPushNotificationConfig"
    assert (request.task_id, request.id, request.url) == ("t1", "p1", "https://a.example")


@pytest.mark.requirement("V03-13", "V03-32")
async def test_the_old_extended_card_has_the_old_shape(service):
    entry = v1.AgentInterface(url="https://a.example", protocol_binding="HTTP+JSON", protocol_version="0.3")
    service.answers["GetExtendedAgentCard"] = v1.AgentCard(name="a", supported_interfaces=[entry])
    value = await ask(service, "GET", "/v1/card")
    assert value["protocolVersion"].startswith("0.3") and value["url"] == "https://a.example"


@pytest.mark.requirement("V03-25", "I-47")
async def test_old_errors_serve_every_old_reader(service):
    service.fault = errors.TaskNotFoundError()
    value = await ask(service, "GET", "/v1/tasks/t1", status=404)
    assert (value["code"], value["type"], value["message"]) == (-32001, "TaskNotFoundError", "Task not found")
    assert value["error"]["code"] == 404
    value = await ask(service, "GET", "/v1/nowhere", status=404)
    assert value["code"] == -32601 and "type" in value


@pytest.mark.requirement("BL-20", "V03-25")
async def test_an_early_error_of_an_old_stream_is_one_event(service):
    service.fault, service.events = errors.TaskNotFoundError(), []
    events = await stream(service, "GET", "/v1/tasks/t1:subscribe")
    assert len(events) == 1 and events[0][1]["code"] == -32001
    service.fault = errors.UnauthenticatedError()
    assert (await answer(service, "GET", "/v1/tasks/t1:subscribe")).status == 401


@pytest.mark.requirement("V03-06", "V03-29")
async def test_old_streams_end_with_a_final_event(service):
    events = await stream(service, "POST", "/v1/message:stream", {"message": OLD_PROTO})
    assert events[-1][1]["statusUpdate"]["final"] is True
    events = await stream(service, "POST", "/v1/message:stream", {"message": OLD_JSON})
    assert events[0][1]["task"]["kind"] == "task" and events[-1][1]["statusUpdate"]["final"] is True


@pytest.mark.requirement("L-09")
@pytest.mark.parametrize(("agent", "text"), [("python-httpx/0.28", "YUdrPQ=="), ("node", "aGk=")])
async def test_old_file_bytes_are_written_as_the_client_reads_them(service, agent, text):
    made = task()
    made.artifacts.add(artifact_id="a", parts=[v1.Part(raw=b"hi")])
    service.answers["GetTask"] = made
    value = await ask(service, "GET", "/v1/tasks/t1", user_agent=agent)
    assert value["artifacts"][0]["parts"][0]["file"]["fileWithBytes"] == text


# -- streams


@pytest.mark.requirement("REST-19", "SSE-01")
async def test_each_event_is_a_bare_object_with_its_number(service):
    events = await stream(service, "POST", "/message:stream", {"message": MESSAGE}, content_type="application/json")
    assert [(ident, next(iter(value))) for ident, value in events] == [("1", "task"), ("2", "statusUpdate")]
    assert service.closed == 1


@pytest.mark.requirement("REST-20", "BL-20")
async def test_an_early_stream_error_is_a_plain_reply_with_its_status(service):
    service.fault, service.events = errors.TaskNotFoundError(), []
    await ask(service, "POST", "/tasks/t9:subscribe", status=404)
    await ask(service, "POST", "/message:stream", {"message": 5}, status=400)


@pytest.mark.requirement("BL-21", "STREAM-11", "I-40")
async def test_a_late_stream_error_is_the_last_event(service):
    service.fault = errors.UnavailableError()
    events = await stream(service, "GET", "/tasks/t1:subscribe")
    assert events[-1][1]["error"]["code"] == 503 and service.closed == 1


async def test_last_event_id_reaches_the_service(service):
    await stream(service, "GET", "/tasks/t1:subscribe", last_event_id="12")
    assert service.calls[0][1].resume == 12


# -- the client's end

INFO = {"@type": "type.googleapis.com/google.rpc.ErrorInfo"}
REQUESTS = {
    "SendMessage": SENT,
    "SendStreamingMessage": SENT,
    "GetTask": v1.GetTaskRequest(id="a/b:c d%", history_length=0),
    "ListTasks": v1.ListTasksRequest(context_id="c&1", status=v1.TASK_STATE_CANCELED, include_artifacts=True),
    "CancelTask": v1.CancelTaskRequest(id="t1:cancel"),
    "SubscribeToTask": v1.SubscribeToTaskRequest(id="t1"),
    "CreateTaskPushNotificationConfig": v1.TaskPushNotificationConfig(task_id="t1", id="p", url="https://a.example"),
    "GetTaskPushNotificationConfig": v1.GetTaskPushNotificationConfigRequest(task_id="t1", id="p"),
    "ListTaskPushNotificationConfigs": v1.ListTaskPushNotificationConfigsRequest(task_id="t1", page_size=3),
    "GetExtendedAgentCard": v1.GetExtendedAgentCardRequest(),
    "DeleteTaskPushNotificationConfig": v1.DeleteTaskPushNotificationConfigRequest(task_id="t1", id="p"),
}


@pytest.mark.requirement("REST-01", "REST-07", "REST-11", "VER-01", "TENANT-01", "TENANT-09", "I-11")
@pytest.mark.parametrize("tenant", ["", "ac/me"])
@pytest.mark.parametrize("method", v1_grpc.METHODS, ids=lambda method: method.name)
async def test_both_ends_of_the_wire_fit(service, method, tenant):
    message = type(REQUESTS[method.name])()
    message.CopyFrom(REQUESTS[method.name])
    message.tenant = tenant
    verb, target, headers, body = rest.request(method.name, message)
    path, _, query = target.partition("?")
    reply = await Rest(service, Options()).answer(HttpRequest(verb, path, query, headers, body))
    request, call = service.calls[0] if isinstance(reply, HttpReply) else await first_call(service, reply)
    assert request == message and call.operation == method.name
    if isinstance(reply, HttpReply):
        got = rest.result(method.name, reply.status, reply.headers, reply.body)
        assert got == (service.answers.get(method.name) or method.output())


@pytest.mark.requirement("I-44", "V03-20")
@pytest.mark.parametrize("operation", sorted(REQUESTS.keys() - {"ListTasks", "GetExtendedAgentCard"}))
async def test_both_ends_of_the_old_wire_fit(service, operation):
    message = type(REQUESTS[operation])()
    message.CopyFrom(REQUESTS[operation])
    if operation == "GetTask":
        message = v1.GetTaskRequest(id="t1", history_length=2)
    verb, target, headers, body = rest.request(operation, message, version="0.3")
    path, _, query = target.partition("?")
    assert path.startswith("/v1/") and headers["a2a-version"] == "0.3"
    reply = await Rest(service, Options()).answer(HttpRequest(verb, path, query, headers, body))
    request, call = service.calls[0] if isinstance(reply, HttpReply) else await first_call(service, reply)
    assert call.operation == operation and call.version == "0.3"
    if isinstance(message, v1.SendMessageRequest):
        assert request.message == message.message
    elif operation != "ListTaskPushNotificationConfigs":
        assert request == message
    if isinstance(reply, HttpReply) and operation in ("SendMessage", "GetTask", "CancelTask"):
        assert rest.result(operation, 200, reply.headers, reply.body, "0.3") == service.answers[operation]


@pytest.mark.requirement("I-01", "BL-18")
def test_a_client_subscribes_with_post_and_can_be_told_to_get():
    message = v1.SubscribeToTaskRequest(id="t1")
    assert rest.request("SubscribeToTask", message)[:2] == ("POST", "/tasks/t1:subscribe")
    assert rest.request("SubscribeToTask", message, "GET")[:2] == ("GET", "/tasks/t1:subscribe")


def test_a_client_does_not_ask_for_an_empty_id():
    with pytest.raises(errors.InvalidParamsError):
        rest.request("GetTask", v1.GetTaskRequest())


@pytest.mark.parametrize("target", ["/tasks/t1:subscribe", "/v1/tasks/t1:subscribe"])
async def test_a_client_reads_streams_and_the_errors_in_them(service, target):
    version = "0.3" if target.startswith("/v1") else "1.0"
    service.fault = errors.UnavailableError("soon back")
    reply = await answer(service, "GET", target)
    parser = sse.Parser()
    events = [event for chunk in [chunk async for chunk in reply.chunks] for event in parser.feed(chunk)]
    assert [rest.event("SubscribeToTask", event.data, version) for event in events[:-1]] == service.events
    with pytest.raises(errors.UnavailableError, match="soon back"):
        rest.event("SubscribeToTask", events[-1].data, version)


@pytest.mark.requirement("ERR-15", "ERR-16", "I-04", "I-47", "I-02")
@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (
            409,
            {"error": {"code": 409, "details": [INFO | {"reason": "TASK_NOT_CANCELABLE"}]}},
            "TaskNotCancelableError",
        ),
        (404, {"code": 5, "message": "m", "details": [INFO | {"reason": "TASK_NOT_FOUND"}]}, "TaskNotFoundError"),
        (404, {"code": -32001, "message": "m"}, "TaskNotFoundError"),
        (400, {"type": "TaskNotCancelableError", "message": "m"}, "TaskNotCancelableError"),
        (404, {"type": "about:blank", "title": "m", "detail": "d"}, "NotFoundError"),
        (503, "<html>", "UnavailableError"),
        (500, [], "InternalError"),
        (302, {}, "InternalError"),
    ],
)
def test_a_client_reads_every_error_form(status, body, kind):
    error = rest.fault(json.dumps(body).encode() if not isinstance(body, str) else body.encode(), status, {})
    assert type(error).__name__ == kind
    with pytest.raises(type(error)):
        rest.result("GetTask", status, {}, json.dumps(body).encode())


@pytest.mark.requirement("REST-22", "I-18", "ERR-16")
def test_a_client_takes_any_form_of_an_empty_answer_and_refuses_nonsense():
    for status, body in ((200, b"{}"), (204, b"")):
        assert rest.result("DeleteTaskPushNotificationConfig", status, {}, body).ByteSize() == 0
    for body in (b"<html>", b"[]", b'{"id":5}'):
        with pytest.raises(errors.InvalidAgentResponseError):
            rest.result("GetTask", 200, {}, body)
