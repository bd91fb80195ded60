"""The v0.3 side of the HTTP+JSON wire with bytes alone: routes, both dialects, errors and streams."""

import json

import pytest
from a2a_stubs import v1

from a2a_grpc import errors
from tests.fakes import FakeService, ask_rest, events_of, first_call, rest_events, rest_value, task

OLD_JSON = {"kind": "message", "messageId": "m1", "role": "user", "parts": [{"kind": "text", "text": "hi"}]}
OLD_PROTO = {"messageId": "m1", "role": "ROLE_USER", "content": [{"text": "hi"}]}
SENT = v1.SendMessageRequest(message=v1.Message(message_id="m1", role=v1.ROLE_USER, parts=[v1.Part(text="hi")]))


@pytest.fixture
def service():
    return FakeService()


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
    reply = await ask_rest(service, "POST", "/v1/message:send", body, content_type="application/json")
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
    reply = await ask_rest(service, verb, path, body)
    assert reply.status == 200
    request, call = await first_call(service, reply)
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
    await rest_value(service, "POST", path, body)
    request, call = service.calls[0]
    assert call.operation == "CreateTaskPushNotificationConfig"
    assert (request.task_id, request.id, request.url) == ("t1", "p1", "https://a.example")


@pytest.mark.requirement("V03-13", "V03-32")
async def test_the_old_extended_card_has_the_old_shape(service):
    entry = v1.AgentInterface(url="https://a.example", protocol_binding="HTTP+JSON", protocol_version="0.3")
    service.answers["GetExtendedAgentCard"] = v1.AgentCard(name="a", supported_interfaces=[entry])
    value = await rest_value(service, "GET", "/v1/card")
    assert value["protocolVersion"].startswith("0.3") and value["url"] == "https://a.example"


@pytest.mark.requirement("V03-25", "I-47")
async def test_old_errors_serve_every_old_reader(service):
    service.fault = errors.TaskNotFoundError()
    value = await rest_value(service, "GET", "/v1/tasks/t1", status=404)
    assert (value["code"], value["type"], value["message"]) == (-32001, "TaskNotFoundError", "Task not found")
    assert value["error"]["code"] == 404
    value = await rest_value(service, "GET", "/v1/nowhere", status=404)
    assert value["code"] == -32601 and "type" in value


@pytest.mark.requirement("BL-20", "V03-25")
async def test_an_early_error_of_an_old_stream_is_a_plain_reply(service):
    service.fault, service.events = errors.TaskNotFoundError(), []
    value = await rest_value(service, "GET", "/v1/tasks/t1:subscribe", status=404)
    assert (value["code"], value["type"]) == (-32001, "TaskNotFoundError")


@pytest.mark.requirement("BL-21", "STREAM-11", "V03-25")
async def test_a_late_error_of_an_old_stream_is_an_event_of_the_name_error(service):
    service.fault = errors.UnavailableError()
    reply = await ask_rest(service, "GET", "/v1/tasks/t1:subscribe")
    last = (await events_of(reply))[-1]
    assert last.name == "error" and json.loads(last.data)["error"]["code"] == 503


@pytest.mark.requirement("V03-06", "V03-29")
async def test_old_streams_end_with_a_final_event(service):
    events = await rest_events(service, "POST", "/v1/message:stream", {"message": OLD_PROTO})
    assert events[-1][1]["statusUpdate"]["final"] is True
    events = await rest_events(service, "POST", "/v1/message:stream", {"message": OLD_JSON})
    assert events[0][1]["task"]["kind"] == "task" and events[-1][1]["statusUpdate"]["final"] is True


@pytest.mark.requirement("L-09")
@pytest.mark.parametrize(("agent", "text"), [("python-httpx/0.28", "YUdrPQ=="), ("node", "aGk=")])
async def test_old_file_bytes_are_written_as_the_client_reads_them(service, agent, text):
    made = task()
    made.artifacts.add(artifact_id="a", parts=[v1.Part(raw=b"hi")])
    service.answers["GetTask"] = made
    value = await rest_value(service, "GET", "/v1/tasks/t1", user_agent=agent)
    assert value["artifacts"][0]["parts"][0]["file"]["fileWithBytes"] == text


@pytest.mark.requirement("REST-16", "ERR-06")
@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/v1/tasks/t1:cancel?name=tasks/t2", None, "name"),
        ("/v1/tasks/t1:cancel", {"name": "tasks/t2"}, "name"),
        ("/v1/tasks/t1:cancel", {"metadata": []}, "metadata"),
        ("/v1/tasks/t1/pushNotificationConfigs?parent=tasks/t2", {"url": "https://hooks.example"}, "parent"),
    ],
)
async def test_what_disagrees_with_the_path_or_has_a_wrong_type_is_refused_by_name(service, path, body, field):
    reply = await ask_rest(service, "POST", path, body)
    assert reply.status == 400 and not service.calls
    assert json.loads(reply.body)["data"][1]["fieldViolations"][0]["field"] == field


@pytest.mark.requirement("EQ-05", "V03-26")
async def test_a_config_whose_id_has_a_slash_can_be_named(service):
    reply = await ask_rest(service, "GET", "/v1/tasks/t1/pushNotificationConfigs/a%2Fb", None)
    request, _ = service.calls[0]
    assert reply.status == 200 and (request.task_id, request.id) == ("t1", "a/b")
