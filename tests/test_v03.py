"""v0.3 requests at the door, by JSON-RPC and gRPC: what is accepted, what is refused and under which name."""

import base64
from collections.abc import Callable
from typing import Any

import pytest
from a2a_stubs import v03, v1

from a2a_grpc import errors, v03_names
from a2a_grpc import v03 as old
from a2a_grpc.call import PUSH_EXTRAS
from a2a_grpc.protojson import MAX_DEPTH, decode, encode

SEND, SET, GET = "SendMessage", "CreateTaskPushNotificationConfig", "GetTask"
PUSH_GET, CARD = "GetTaskPushNotificationConfig", "GetExtendedAgentCard"
HOOK = "https://x.example/h"


def send(*parts: Any, **configuration: Any) -> dict[str, Any]:
    """v0.3 JSON params of a send."""
    message = {"kind": "message", "messageId": "m1", "role": "user", "parts": list(parts) or [{"text": "a"}]}
    return {"message": message} | ({"configuration": configuration} if configuration else {})


def proto_send(**configuration: Any) -> dict[str, Any]:
    """The same as ProtoJSON of the v0.3 proto."""
    message = {"messageId": "m1", "role": "ROLE_USER", "content": [{"text": "a"}]}
    return {"message": message} | ({"configuration": configuration} if configuration else {})


def fields(call: Callable[[], Any], error: type[errors.A2AError] = errors.InvalidParamsError) -> list[str]:
    """The fields that a refusal names."""
    with pytest.raises(error) as caught:
        call()
    return [violation.field for violation in caught.value.violations]


# -- names


@pytest.mark.requirement("V03-01", "I-45", "I-46")
def test_the_methods_of_v03_are_found_and_there_is_no_list() -> None:
    assert len(v03_names.NAMES) == 10
    assert v03_names.BY_JSONRPC["agent/authenticatedExtendedCard"] == CARD
    assert v03_names.BY_JSONRPC["tasks/resubscribe"] == v03_names.BY_METHOD["TaskSubscription"] == "SubscribeToTask"
    assert "tasks/list" not in v03_names.BY_JSONRPC
    assert set(v03_names.STATES) == set(v1.TaskState.keys())


@pytest.mark.requirement("V03-16", "V03-22", "I-41", "L-11")
@pytest.mark.parametrize("number", v1.TaskState.values())
def test_every_state_has_its_three_spellings(number: Any) -> None:
    task = v1.Task(id="t", context_id="c", status=v1.TaskStatus(state=number))
    name = v1.TaskState.Name(number)
    plain = old.down_result(task)
    assert plain["status"]["state"] == v03_names.STATES[name]
    assert old.up_result(GET, plain).status.state == number
    rest = old.down_rest(task)
    assert rest["status"].get("state", "TASK_STATE_UNSPECIFIED") == name.replace("CANCELED", "CANCELLED")
    assert old.up_result(GET, rest).status.state == number


@pytest.mark.requirement("V03-16", "L-12")
def test_roles_have_two_spellings_and_none_for_unspecified() -> None:
    for name, plain in v03_names.ROLES.items():
        message = decode(v1.Message, {"messageId": "m", "role": name, "parts": [{"text": "a"}]})
        assert old.down_result(v1.SendMessageResponse(message=message))["role"] == plain
    message.role = v1.ROLE_UNSPECIFIED
    for down in (old.down_result, old.down_message):
        with pytest.raises(errors.InternalError):
            down(v1.SendMessageResponse(message=message))
    assert fields(lambda: old.up_params(SEND, {"message": {**send()["message"], "role": "robot"}})) == ["message.role"]


# -- sending


@pytest.mark.requirement("V03-14", "I-54")
@pytest.mark.parametrize(
    ("given", "immediately"),
    [
        (send(), False),
        (send(historyLength=1), False),
        (send(blocking=True), False),
        (send(blocking=None, historyLength=1), False),
        (send(blocking=False), True),
        (send() | {"configuration": None, "blocking": False}, False),
        (proto_send(), False),
        (proto_send(historyLength=1), True),
        (proto_send(blocking=True), False),
        (proto_send(blocking=None, historyLength=1), True),
        (proto_send(blocking=False), True),
        (proto_send() | {"configuration": None, "blocking": False}, False),
    ],
)
def test_blocking_is_the_inverse_of_return_immediately(given: Any, immediately: bool) -> None:
    up = old.up_rest(SEND, {}, [], given)
    assert up.request.configuration.return_immediately is immediately
    assert up.dialect == (old.P03 if "content" in given["message"] else old.J03)
    if up.dialect == old.J03:
        assert old.up_params(SEND, given)[0] == up.request


@pytest.mark.requirement("V03-28", "L-26")
@pytest.mark.parametrize(("length", "json", "proto"), [(None, None, None), (0, 0, None), (3, 3, 3)])
def test_history_length_zero_is_unset_in_the_proto_alone(length: Any, json: Any, proto: Any) -> None:
    def seen(holder: Any) -> Any:
        return holder.history_length if holder.HasField("history_length") else None

    assert seen(old.up_params(SEND, send(historyLength=length))[0].configuration) == json
    assert seen(old.up_params(GET, {"id": "t", "historyLength": length})[0]) == json
    assert seen(old.up_rest(SEND, {}, [], proto_send(historyLength=length)).request.configuration) == proto
    query = [] if length is None else [("historyLength", str(length))]
    assert seen(old.up_rest(GET, {"name": "tasks/t"}, query, None).request) == proto
    assert seen(old.up_message(v03.GetTaskRequest(name="tasks/t", history_length=length or 0))[0]) == proto


@pytest.mark.requirement("V03-17", "L-33", "L-34", "L-35", "ERR-06", "L-09")
@pytest.mark.parametrize(
    ("part", "field"),
    [
        ("x", ""),
        ({}, ""),
        ({"text": "a", "data": {}}, ""),
        ({"kind": "text"}, ""),
        ({"kind": "text", "file": {"uri": HOOK}}, ""),
        ({"kind": "text", "text": "a", "data": {}}, ""),
        ({"kind": "data", "data": None}, ""),
        ({"kind": 5, "text": "a"}, ".kind"),
        ({"kind": "text", "text": 5}, ".text"),
        ({"kind": "data", "data": [1]}, ".data"),
        ({"kind": "file", "file": "x"}, ".file"),
        ({"kind": "file", "file": {}}, ".file"),
        ({"kind": "file", "file": {"bytes": "", "uri": HOOK}}, ".file"),
        ({"kind": "file", "file": {"uri": ""}}, ".file.uri"),
        ({"kind": "file", "file": {"bytes": "****"}}, ".file.bytes"),
        ({"kind": "file", "file": {"bytes": "aGk="[:1]}}, ".file.bytes"),
        ({"kind": "file", "file": {"bytes": "", "mimeType": 5}}, ".file.mimeType"),
        ({"kind": "file", "file": {"bytes": "", "name": []}}, ".file.name"),
        ({"kind": "text", "text": "a", "metadata": []}, ".metadata"),
    ],
)
def test_a_wrong_part_is_refused_by_its_v03_name(part: Any, field: str) -> None:
    assert fields(lambda: old.up_params(SEND, send({"text": "ok"}, part))) == [f"message.parts[1]{field}"]


@pytest.mark.requirement("L-33", "V03-17")
def test_an_unknown_kind_of_part_is_a_content_type_not_supported() -> None:
    part = {"kind": "video" * 1000, "text": "a"}
    refused = fields(lambda: old.up_params(SEND, send(part)), errors.ContentTypeNotSupportedError)
    assert refused == ["message.parts[0].kind"]
    with pytest.raises(errors.ContentTypeNotSupportedError) as caught:
        old.up_params(SEND, send(part))
    assert len(caught.value.message) < 100


@pytest.mark.requirement("ERR-06", "V03-17")
@pytest.mark.parametrize(
    ("params", "field"),
    [
        ([], "params"),
        ({}, "message"),
        ({"message": []}, "message"),
        ({"message": {**send()["message"], "kind": "task"}}, "message.kind"),
        ({"message": {**send()["message"], "parts": {}}}, "message.parts"),
        ({"message": {**send()["message"], "messageId": 5}}, "message.messageId"),
        (send() | {"configuration": []}, "configuration"),
        (send(blocking="true"), "configuration.blocking"),
        (send(blocking=1), "configuration.blocking"),
        (send(historyLength=1.5), "configuration.historyLength"),
        (send(pushNotificationConfig={}), "configuration.pushNotificationConfig.url"),
        (send(pushNotificationConfig={"url": 5}), "configuration.pushNotificationConfig.url"),
        (send() | {"metadata": []}, "metadata"),
    ],
)
def test_a_wrong_send_is_refused_by_its_v03_name(params: Any, field: str) -> None:
    assert fields(lambda: old.up_params(SEND, params)) == [field]


@pytest.mark.requirement("L-13", "L-36")
def test_members_that_only_v10_has_are_ignored() -> None:
    request, extra = old.up_params(SEND, send(returnImmediately=True) | {"tenant": "x"})
    assert (request.tenant, request.configuration.return_immediately, extra) == ("", False, {})
    assert old.up_params(GET, {"id": "t", "tenant": "x"})[0] == v1.GetTaskRequest(id="t")


@pytest.mark.requirement("L-40")
@pytest.mark.parametrize("depth", [29, MAX_DEPTH, MAX_DEPTH + 1, 50, 5000])
def test_deep_data_is_refused_beyond_the_limit(depth: int) -> None:
    data: Any = {}
    for _ in range(depth - 1):
        data = {"a": data}
    params = send({"kind": "data", "data": data})
    if depth > MAX_DEPTH:
        (field,) = fields(lambda: old.up_params(SEND, params))
        assert field.startswith("message.parts[0].data")
        return
    request = old.up_params(SEND, params)[0]
    answer = old.down_message(v1.SendMessageResponse(message=request.message))
    assert v03.SendMessageResponse.FromString(answer.SerializeToString()) == answer
    assert old.down_result(v1.SendMessageResponse(message=request.message))["parts"][0]["data"] == data


@pytest.mark.requirement("L-08")
def test_numbers_are_doubles_and_whole_ones_are_printed_whole() -> None:
    request, _ = old.up_params(SEND, send({"kind": "data", "data": {"a": 1.0, "b": 1, "c": 2**53 + 1, "d": 1.5}}))
    shown = old.down_result(v1.SendMessageResponse(message=request.message))["parts"][0]["data"]
    assert [repr(shown[key]) for key in "abd"] == ["1", "1", "1.5"]
    assert shown["c"] == 2.0**53


@pytest.mark.requirement("L-10", "V03-31")
@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("2025-10-28T10:30:00Z", "2025-10-28T10:30:00Z"),
        ("2025-10-28T10:30:00", "2025-10-28T10:30:00Z"),
        ("2025-10-28T10:30:00.5", "2025-10-28T10:30:00.500Z"),
        ("2025-10-28T10:30:00.123456", "2025-10-28T10:30:00.123456Z"),
        ("2025-10-28T10:30:00.123456789Z", "2025-10-28T10:30:00.123456789Z"),
        ("2025-10-28T10:30:00.1234567899Z", "2025-10-28T10:30:00.123456789Z"),
        ("2025-10-28T10:30:00+02:00", "2025-10-28T08:30:00Z"),
    ],
)
def test_old_timestamps_are_read_as_utc(given: str, read: str) -> None:
    task = {"kind": "task", "id": "t", "contextId": "c", "status": {"state": "working", "timestamp": given}}
    assert encode(old.up_result(GET, task))["status"]["timestamp"] == read
    task["status"]["timestamp"] = "yesterday"
    assert fields(lambda: old.up_result(GET, task), errors.InvalidAgentResponseError) == ["status.timestamp"]


# -- tasks and push configs by JSON-RPC


@pytest.mark.requirement("L-14", "V03-08")
def test_metadata_without_a_place_in_v10_is_handed_on() -> None:
    spoofed = {"k": 1, PUSH_EXTRAS: ["x"]}
    for operation in (GET, "SubscribeToTask", PUSH_GET, "ListTaskPushNotificationConfigs"):
        assert old.up_params(operation, {"id": "t", "metadata": spoofed})[1] == {"k": 1}
    assert old.up_params("CancelTask", {"id": "t", "metadata": {"k": 1}})[1] == {}
    assert fields(lambda: old.up_params(GET, {"id": "t", "metadata": 5})) == ["metadata"]
    assert old.up_params(CARD, None) == (v1.GetExtendedAgentCardRequest(), {})


@pytest.mark.requirement("V03-10", "ERR-06")
@pytest.mark.parametrize(
    ("operation", "params", "field"),
    [
        (GET, {}, "id"),
        (GET, {"id": ""}, "id"),
        (GET, {"id": 5}, "id"),
        (PUSH_GET, {"pushNotificationConfigId": "p"}, "id"),
        (PUSH_GET, {"id": "t", "pushNotificationConfigId": 5}, "pushNotificationConfigId"),
        (SET, {"pushNotificationConfig": {"url": HOOK}}, "taskId"),
        (SET, {"taskId": "t"}, "pushNotificationConfig"),
        (SET, {"taskId": "t", "pushNotificationConfig": {"token": "x"}}, "pushNotificationConfig.url"),
    ],
)
def test_a_missing_id_is_named_as_v03_names_it(operation: str, params: Any, field: str) -> None:
    assert fields(lambda: old.up_params(operation, params)) == [field]


def hook(schemes: list[str], credentials: str = "") -> dict[str, Any]:
    """A v0.3 push config with some schemes."""
    return {"id": "p", "url": HOOK, "authentication": {"schemes": schemes, "credentials": credentials}}


@pytest.mark.requirement("L-04", "L-39")
@pytest.mark.parametrize(
    ("schemes", "kept"),
    [(["Digest", "bearer"], "bearer"), (["BASIC", "Bearer"], "BASIC"), (["Digest", "Own"], "Digest"), (["Own"], "Own")],
)
def test_one_scheme_is_kept_and_the_list_is_given_back(schemes: list[str], kept: str) -> None:
    extras = {PUSH_EXTRAS: schemes} if len(schemes) > 1 else {}
    request, extra = old.up_params(SET, {"taskId": "t", "pushNotificationConfig": hook(schemes, "c")})
    assert (request.authentication.scheme, request.authentication.credentials, extra) == (kept, "c", extras)
    known = {("t", "p"): schemes} if extras else None
    whole = {"taskId": "t", "pushNotificationConfig": hook(schemes, "c")}
    assert old.down_result(request, known) == whole
    listed = v1.ListTaskPushNotificationConfigsResponse(configs=[request])
    assert old.down_result(listed, known) == [whole]
    message = old.down_message(request, schemes=known)
    assert message.push_notification_config.authentication.schemes == schemes
    assert old.up_params(SEND, send(pushNotificationConfig=hook(schemes, "c")))[1] == extras
    asked = v03.CreateTaskPushNotificationConfigRequest(parent="tasks/t", config=message)
    assert old.up_message(asked) == (request, extras)
    assert old.up_rest(SEND, {}, [], proto_send(pushNotification=hook(schemes))).metadata == extras
    assert old.up_rest(SET, {"parent": "tasks/t"}, [], encode(message)).metadata == extras


@pytest.mark.requirement("L-04")
def test_credentials_without_a_scheme_are_refused() -> None:
    params = {"taskId": "t", "pushNotificationConfig": hook([], "c")}
    assert fields(lambda: old.up_params(SET, params)) == ["pushNotificationConfig.authentication.schemes"]
    refused = fields(lambda: old.up_rest(SEND, {}, [], proto_send(pushNotification=hook([], "c"))))
    assert refused == ["configuration.pushNotification.authentication.schemes"]
    request, _ = old.up_params(SET, {"taskId": "t", "pushNotificationConfig": hook([])})
    assert not request.HasField("authentication")


# -- gRPC


@pytest.mark.requirement("V03-26")
@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (v03.GetTaskRequest(name="t"), "name"),
        (v03.GetTaskRequest(name=""), "name"),
        (v03.GetTaskRequest(name="tasks/"), "name"),
        (v03.GetTaskRequest(name="tasks/t/x"), "name"),
        (v03.CancelTaskRequest(name="Tasks/t"), "name"),
        (v03.GetTaskPushNotificationConfigRequest(name="tasks/t"), "name"),
        (v03.DeleteTaskPushNotificationConfigRequest(name="tasks/t/pushNotificationConfigs/"), "name"),
        (v03.ListTaskPushNotificationConfigRequest(parent="tasks/t/pushNotificationConfigs"), "parent"),
        (v03.CreateTaskPushNotificationConfigRequest(), "parent"),
        (v03.SendMessageRequest(request=v03.Message(content=[v03.Part(text="a"), v03.Part()])), "message.content[1]"),
        (v03.SendMessageRequest(request=v03.Message(content=[v03.Part(file={})])), "message.content[0].file"),
        (v03.SendMessageRequest(request=v03.Message(content=[v03.Part(data={})])), "message.content[0].data.data"),
        (
            v03.SendMessageRequest(request=v03.Message(content=[v03.Part(file={"file_with_uri": ""})])),
            "message.content[0].file",
        ),
    ],
)
def test_names_of_resources_are_read_strictly(request_: Any, field: str) -> None:
    assert fields(lambda: old.up_message(request_)) == [field]


@pytest.mark.requirement("V03-26", "L-20")
@pytest.mark.parametrize(
    ("config_id", "config", "field"),
    [
        ("p", {"push_notification_config": {"url": HOOK, "id": "q"}}, "configId"),
        ("p", {"push_notification_config": {"url": HOOK}, "name": "tasks/u/pushNotificationConfigs/p"}, "config.name"),
        ("p", {"push_notification_config": {"url": HOOK}, "name": "x"}, "config.name"),
        ("p", {}, "config.pushNotificationConfig.url"),
    ],
)
def test_a_set_request_that_contradicts_itself_is_refused(config_id: str, config: Any, field: str) -> None:
    request = v03.CreateTaskPushNotificationConfigRequest(parent="tasks/t", config_id=config_id, config=config)
    assert fields(lambda: old.up_message(request)) == [field]


@pytest.mark.requirement("L-09", "V03-26")
def test_file_bytes_are_read_raw_or_as_base64_text() -> None:
    def sent(content: bytes, form: bool | None = None) -> bytes:
        part = v03.Part(file=v03.FilePart(file_with_bytes=content))
        request = v03.SendMessageRequest(request=v03.Message(role=v03.ROLE_USER, content=[part]))
        read: bytes = old.up_message(request, form)[0].message.parts[0].raw
        return read

    raw = bytes(range(256))
    text = base64.b64encode(raw)
    assert [sent(raw), sent(text), sent(text, False), sent(b""), sent(b"ab=c")] == [raw, raw, text, b"", b"ab=c"]
    answer = v1.SendMessageResponse(message=v1.Message(role=v1.ROLE_AGENT, parts=[v1.Part(raw=raw)]))
    for form, written in ((False, raw), (True, text)):
        assert old.down_message(answer, form).msg.content[0].file.file_with_bytes == written
        rest = old.down_rest(answer, base64_bytes=form)["message"]["content"][0]["file"]["fileWithBytes"]
        assert base64.b64decode(rest) == written


# -- reading old servers


@pytest.mark.requirement("V03-17")
@pytest.mark.parametrize(
    ("operation", "value"),
    [
        (GET, None),
        (GET, {"kind": "message"}),
        (GET, {"kind": "task", "id": "t"}),
        (SEND, {}),
        (SEND, {"kind": "poem"}),
        (SEND, {"kind": "message", "messageId": "m", "role": "agent", "parts": [{"kind": "video"}]}),
        (PUSH_GET, {"name": "x", "pushNotificationConfig": {"url": HOOK}}),
        ("ListTaskPushNotificationConfigs", "x"),
        (CARD, []),
    ],
)
def test_an_answer_that_is_none_is_an_invalid_agent_response(operation: str, value: Any) -> None:
    with pytest.raises(errors.InvalidAgentResponseError):
        old.up_result(operation, value)
