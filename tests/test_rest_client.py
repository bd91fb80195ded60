"""The client's end of the HTTP+JSON wire, against the server's end and against every form of error."""

import json

import pytest
from a2a_stubs import v1, v1_grpc

from a2a_grpc import errors
from a2a_grpc.bindings import rest
from a2a_grpc.bindings.rest import Rest
from a2a_grpc.bindings.wire import HttpReply, HttpRequest
from a2a_grpc.config import Options
from tests.fakes import FakeService, ask_rest, events_of, first_call

SENT = v1.SendMessageRequest(message=v1.Message(message_id="m1", role=v1.ROLE_USER, parts=[v1.Part(text="hi")]))


@pytest.fixture
def service():
    return FakeService()


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
    request, call = await first_call(service, reply)
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
    request, call = await first_call(service, reply)
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
    reply = await ask_rest(service, "GET", target)
    events = await events_of(reply)
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
        (502, "<html>", "UnavailableError"),
        (503, "<html>", "UnavailableError"),
        (504, "", "UnavailableError"),
        (502, {"error": {"details": [INFO | {"reason": "INVALID_AGENT_RESPONSE"}]}}, "InvalidAgentResponseError"),
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
    for body in (b"<html>", b"[]", b'{"id":5}', b""):
        with pytest.raises(errors.InvalidAgentResponseError):
            rest.result("GetTask", 200, {}, body)
