"""The HTTP+JSON wire with bytes alone: routes, merging, errors, streams, both versions; and the client's end."""

import json
import logging

import pytest
from a2a_stubs import v1

from a2a_grpc import errors
from a2a_grpc.bindings.rest import Rest
from a2a_grpc.bindings.wire import HttpRequest, HttpStream
from a2a_grpc.config import Options
from tests.fakes import FakeService, ask_rest, events_of, first_call, rest_events, rest_value

MESSAGE = {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "hi"}]}
SENT = v1.SendMessageRequest(message=v1.Message(message_id="m1", role=v1.ROLE_USER, parts=[v1.Part(text="hi")]))


@pytest.fixture
def service():
    return FakeService()


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
    reply = await ask_rest(service, verb, f"/{tenant}{path}" if tenant else path, body, a2a_version="1.0")
    assert reply.status == 200
    request, call = await first_call(service, reply)
    assert call.operation == operation and call.tenant == tenant.replace("%2F", "/") == request.tenant
    assert getattr(request, "task_id", getattr(request, "id", "t1")) in ("t1", "")
    assert (call.binding, call.version) == ("HTTP+JSON", "1.0")


@pytest.mark.requirement("REST-22", "I-18", "RPC-05")
async def test_answers_are_bare_objects(service):
    assert (await rest_value(service, "POST", "/message:send", {"message": MESSAGE}))["task"]["id"] == "t1"
    assert (await rest_value(service, "GET", "/tasks/t1"))["id"] == "t1"
    assert await rest_value(service, "DELETE", "/tasks/t1/pushNotificationConfigs/p1") == {}
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
    await rest_value(service, "GET", path)
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
    error = (await rest_value(service, verb, target, body, status=400))["error"]
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
    await rest_value(service, verb, target, body)
    assert service.calls[0][1].tenant == tenant


@pytest.mark.requirement("REST-11", "REST-13", "REST-23", "BL-23", "BL-24", "LIST-10")
async def test_query_values_become_fields(service):
    value = await rest_value(
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
    value = await rest_value(service, "GET", "/tasks")
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
    error = (await rest_value(service, "GET", f"/tasks?{query}", status=400))["error"]
    assert error["status"] == "INVALID_ARGUMENT" and error["details"][1]["fieldViolations"][0]["field"]
    assert not service.calls


@pytest.mark.requirement("REST-10", "BL-32")
async def test_bodies_of_get_and_delete_are_ignored(service):
    await rest_value(service, "GET", "/tasks/t1", b"{nonsense", content_type="text/plain")
    await rest_value(service, "DELETE", "/tasks/t1/pushNotificationConfigs/p1", b"\xff")
    assert service.calls[0][0].id == "t1"


@pytest.mark.requirement("REST-15")
@pytest.mark.parametrize("media", ["", "application/json", "text/plain"])
@pytest.mark.parametrize("body", [b"", b" \r\n", b"{}"])
async def test_an_empty_body_will_do_for_cancel_and_subscribe(service, media, body):
    if body == b"{}" and media == "text/plain":
        media = "application/json"
    await rest_value(service, "POST", "/tasks/t1:cancel", body, content_type=media)
    await rest_events(service, "POST", "/tasks/t1:subscribe", body, content_type=media)


@pytest.mark.requirement("BL-32", "BL-27", "JSON-18")
@pytest.mark.parametrize("body", [b"{", b"[]", b"5", b"null ", b"\xff", b'{"message":' + b"[" * 100_000])
async def test_bodies_that_are_no_object_are_bad_requests(service, body):
    status = 200 if body == b"null " else 400
    value = await rest_value(service, "POST", "/message:send", body, status=status)
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
    reply = await ask_rest(service, "POST", "/tasks/t1:cancel", {}, options=options, **headers)
    assert (reply.status, reply.headers["content-type"]) == (200, expected)
    reply = await ask_rest(service, "POST", "/nowhere", {}, options=options, **headers)
    assert (reply.status, reply.headers["content-type"]) == (404, expected)


@pytest.mark.requirement("REST-09", "I-62", "BL-32")
async def test_other_body_types_are_refused(service):
    value = await rest_value(service, "POST", "/message:send", b"<a/>", content_type="application/xml", status=415)
    assert value["error"]["details"][0]["reason"] == "CONTENT_TYPE_NOT_SUPPORTED"


# -- errors


@pytest.mark.requirement("REST-18", "ERR-01", "ERR-03", "ERR-04", "I-04", "I-02")
@pytest.mark.parametrize("profile", ["1.0.1", "1.0.0"])
@pytest.mark.parametrize("kind", sorted(errors.BY_REASON.values(), key=lambda kind: kind.__name__))
async def test_errors_have_their_status_and_object(service, kind, profile):
    service.fault = kind("told")
    code, status = service.fault.status(profile)
    options = Options(error_profile=profile)
    value = await rest_value(service, "GET", "/tasks/t9", options=options, status=status)
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
    reply = await ask_rest(service, verb, path)
    assert reply.status == status == json.loads(reply.body)["error"]["code"]
    assert allow is None or set(reply.headers["allow"].split(", ")) == allow


@pytest.mark.requirement("ERR-08", "ERR-10")
async def test_hints_are_headers_too(service):
    service.fault = errors.UnauthenticatedError(challenge="Basic")
    assert (await ask_rest(service, "GET", "/tasks/t1")).headers["www-authenticate"] == "Basic"
    service.fault = errors.ResourceExhaustedError(retry_after=4)
    assert (await ask_rest(service, "GET", "/tasks/t1")).headers["retry-after"] == "4"


@pytest.mark.requirement("BL-39")
@pytest.mark.parametrize(("path", "member"), [("/message:send", "error"), ("/v1/message:send", "type")])
def test_a_request_refused_by_the_host_has_the_form_of_its_path(service, path, member):
    reply = Rest(service, Options()).refuse(HttpRequest("POST", path), errors.PayloadTooLargeError())
    assert reply.status == 413 and member in json.loads(reply.body)


@pytest.mark.requirement("BL-28", "ERR-11", "ERR-17")
async def test_exception_texts_stay_in_the_log(service, caplog):
    service.fault = ValueError("dsn=db://user:pw@host")
    with caplog.at_level(logging.ERROR, "a2a_grpc"):
        value = await rest_value(service, "GET", "/tasks/t1", status=500)
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
    await rest_value(service, "GET", target, options=Options(strict_version=strict), a2a_version=header)
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
    value = await rest_value(service, "GET", target, a2a_version=header, status=400)
    assert value["error"]["details"][0]["reason"] == reason
    assert ("type" in value) == old


@pytest.mark.requirement("VER-04", "VER-11")
async def test_old_paths_are_refused_where_the_old_version_is_off(service):
    value = await rest_value(service, "GET", "/v1/tasks/t1", options=Options(versions=("1.0",)), status=400)
    assert value["error"]["details"][0]["metadata"] == {"supportedVersions": "1.0"}


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
    reply = await ask_rest(service, "GET", target, a2a_extensions="urn:a", x_a2a_extensions="urn:b,urn:a")
    assert reply.headers[name] == "urn:a, urn:b"
    assert sum("extensions" in header.lower() for header in reply.headers) == 1
    if isinstance(reply, HttpStream):
        await reply.chunks.aclose()


# -- streams


@pytest.mark.requirement("REST-19", "SSE-01")
async def test_each_event_is_a_bare_object_with_its_number(service):
    events = await rest_events(
        service, "POST", "/message:stream", {"message": MESSAGE}, content_type="application/json"
    )
    assert [(ident, next(iter(value))) for ident, value in events] == [("1", "task"), ("2", "statusUpdate")]
    assert service.closed == 1


@pytest.mark.requirement("REST-20", "BL-20")
async def test_an_early_stream_error_is_a_plain_reply_with_its_status(service):
    service.fault, service.events = errors.TaskNotFoundError(), []
    await rest_value(service, "POST", "/tasks/t9:subscribe", status=404)
    await rest_value(service, "POST", "/message:stream", {"message": 5}, status=400)


@pytest.mark.requirement("BL-21", "STREAM-11", "I-40")
async def test_a_late_stream_error_is_the_last_event(service):
    service.fault = errors.UnavailableError()
    last = (await events_of(await ask_rest(service, "GET", "/tasks/t1:subscribe")))[-1]
    assert last.name == "error" and json.loads(last.data)["error"]["code"] == 503 and service.closed == 1


async def test_last_event_id_reaches_the_service(service):
    await rest_events(service, "GET", "/tasks/t1:subscribe", last_event_id="12")
    assert service.calls[0][1].resume == 12
