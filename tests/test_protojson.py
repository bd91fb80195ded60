"""ProtoJSON: what is read, what is refused and where, what is written."""

import base64
from typing import Any

import orjson
import pytest
from a2a_stubs import google, v03, v1
from google.protobuf import json_format, struct_pb2
from google.protobuf.message import Message

from a2a_grpc import protojson_write, ready
from a2a_grpc.errors import InvalidAgentResponseError, InvalidParamsError, ParseError
from a2a_grpc.protojson import (
    MAX_DEPTH,
    MAX_VIOLATIONS,
    decode,
    decode_query,
    dumps,
    encode,
    encoder,
    loads,
    to_json,
    value_of,
)


def refused(cls: type[Message], value: Any, path: str = "") -> dict[str, str]:
    with pytest.raises(InvalidParamsError) as caught:
        decode(cls, value, path)
    return {violation.field: violation.description for violation in caught.value.violations}


def objects(levels: int, leaf: Any = 1) -> Any:
    for _ in range(levels):
        leaf = {"a": leaf}
    return leaf


# Bytes


@pytest.mark.requirement("RPC-09", "JSON-19", "BL-26", "BL-27")
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"{'a':1}",
        b'{"a":1,}',
        b'"\xff"',
        b'"\\ud800"',
        "\ud800",
        b"NaN",
        b"[Infinity]",
        b"1e999",
        b"[-1e999]",
        b"[" * 2000 + b"]" * 2000,
        b"[" * 100_000,
        b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    ],
    ids=lambda body: repr(body[:12]),
)
def test_what_is_not_json_is_a_parse_error(body: bytes | str) -> None:
    with pytest.raises(ParseError):
        loads(body)


@pytest.mark.requirement("JSON-22", "L-19")
@pytest.mark.parametrize(
    "body",
    [
        '{"a":1,"a":1}',
        '{"a" : 1, "a" : 2}',
        '[{"b":[{"a":1,"a":{}}]}]',
        '{"a":"x:y","a":"z"}',
        r'{"a":"\":\"","a":2}',
        r'{"\\":"\\\":","\\":1}',
        '{"a":1,"\\u0061":2}',
        '{"a":1,"a":2,"b":"\\u003a"}',
        '{"a": 1, "a": 2, "\\u003A": "\\n"}',
        '{"a": "\\n", "b": 1, "a": "\\n"}',
    ],
)
def test_a_member_given_twice_is_refused(body: str) -> None:
    for form in (body, body.encode()):
        with pytest.raises(ParseError, match="twice"):
            loads(form)


@pytest.mark.requirement("JSON-22")
@pytest.mark.parametrize(
    "body",
    [
        '{"a":":","b":"::"}',
        '{"a" :\t1, "b"\n: {"a" : 1}}',
        r'{"\"":":\"","b\\":"\\\\\":"}',
        r'{"url":"http://x:1/\"a\":1","a":{"url":"\\"}}',
        "[1,2]",
        '"a:b"',
        "3",
        '{"":{"":{"":":"}}}',
        "[" * 900 + "]" * 900,
    ],
)
def test_colons_in_strings_are_no_second_member(body: str) -> None:
    assert loads(body) == orjson.loads(body)
    assert loads(body.encode()) == orjson.loads(body)


def test_what_json_does_not_have_is_not_written() -> None:
    assert dumps({"a": [1, None]}) == b'{"a":[1,null]}'
    with pytest.raises(InvalidAgentResponseError):
        dumps({"a": object()})


# Names, nulls, unknown members


@pytest.mark.requirement("JSON-01", "JSON-02", "JSON-06")
def test_both_spellings_are_read_and_unknown_members_ignored_at_every_level() -> None:
    told = {
        "kind": "x",
        "message": {
            "kind": "message",
            "message_id": "m",
            "contextId": "c",
            "parts": [{"kind": "text", "text": "t", "media_type": "text/plain", "new": {"deep": [1]}}],
        },
    }
    message = decode(v1.SendMessageRequest, told)
    assert encode(message) == {
        "message": {
            "messageId": "m",
            "contextId": "c",
            "role": "ROLE_UNSPECIFIED",
            "parts": [{"text": "t", "mediaType": "text/plain"}],
        }
    }


@pytest.mark.requirement("JSON-02")
def test_one_field_under_both_names_is_refused() -> None:
    assert list(refused(v1.Message, {"messageId": "a", "message_id": "a"})) == ["messageId"]
    assert decode(v1.Message, {"messageId": None, "message_id": "a"}).message_id == "a"


@pytest.mark.requirement("JSON-07", "DATA-03")
def test_null_is_absent_except_where_any_json_may_be() -> None:
    assert decode(v1.Message, {"messageId": None, "parts": None, "metadata": None, "role": None}) == v1.Message()
    assert decode(v1.Part, {"data": None}).WhichOneof("content") == "data"
    assert encode(decode(v1.Part, {"data": None})) == {"data": None}
    assert encode(decode(v1.Part, {"data": [None, {"a": None}]})) == {"data": [None, {"a": None}]}
    told = {"parts": [None, {"text": "x"}], "extensions": ["a", None]}
    assert list(refused(v1.Message, told)) == ["parts[0]", "extensions[1]"]


@pytest.mark.requirement("JSON-17", "OP-SEND-09")
def test_two_members_of_a_oneof_are_refused_unless_one_is_null() -> None:
    assert decode(v1.Part, {"text": "a", "url": None}).text == "a"
    found = refused(v1.SendMessageRequest, {"message": {"parts": [{"text": "a", "url": "b"}]}})
    assert found == {"message.parts[0].url": "only one of text, raw, url, data may be given"}
    assert list(refused(v1.Part, {"text": "a", "data": None})) == ["data"]
    assert list(refused(v1.SendMessageResponse, {"task": {}, "message": {}})) == ["message"]


@pytest.mark.requirement("JSON-08", "DATA-02", "HIST-02")
def test_presence_survives() -> None:
    assert decode(v1.Part, {"text": ""}).WhichOneof("content") == "text"
    assert decode(v1.GetTaskRequest, {"historyLength": 0}).HasField("history_length")
    assert not decode(v1.GetTaskRequest, {}).HasField("history_length")
    for value in ({}, {"unknown": 1}, {"acceptedOutputModes": []}):
        assert decode(v1.SendMessageRequest, {"configuration": value}).HasField("configuration")
    assert decode(v1.Message, {"metadata": {}}).HasField("metadata")
    for data in ({}, [], "", 0, False, {"a": {}, "b": []}):
        assert encode(decode(v1.Part, {"data": data})) == {"data": data}
    assert encode(v1.AgentCapabilities(streaming=False)) == {"streaming": False}


# Wrong values


@pytest.mark.requirement("ERR-06", "JSON-05", "JSON-15", "JSON-16")
def test_every_wrong_field_is_named_with_its_path() -> None:
    told = {
        "tenant": 1,
        "message": {
            "role": "user",
            "taskId": {},
            "parts": [{"text": 5}, {"raw": "****"}, 7, {"metadata": []}],
            "metadata": "x",
            "extensions": "x",
            "referenceTaskIds": False,
        },
        "configuration": {"historyLength": 1.5, "returnImmediately": "true", "taskPushNotificationConfig": []},
    }
    assert sorted(refused(v1.SendMessageRequest, told)) == [
        "configuration.historyLength",
        "configuration.returnImmediately",
        "configuration.taskPushNotificationConfig",
        "message.extensions",
        "message.metadata",
        "message.parts[0].text",
        "message.parts[1].raw",
        "message.parts[2]",
        "message.parts[3].metadata",
        "message.referenceTaskIds",
        "message.role",
        "message.taskId",
        "tenant",
    ]


def test_the_violations_of_one_error_are_limited() -> None:
    told = {"message": {"parts": [1] * 1000, "extensions": [1] * 1000}}
    assert len(refused(v1.SendMessageRequest, told)) == MAX_VIOLATIONS
    assert len(refused(v1.SecurityRequirement, {"schemes": dict.fromkeys(map(str, range(1000)), 1)})) == MAX_VIOLATIONS


@pytest.mark.parametrize("value", [None, 1, "x", [], True])
def test_a_body_that_is_no_object_is_refused(value: Any) -> None:
    assert refused(v1.GetTaskRequest, value) == {"body": "must be an object"}
    assert refused(v1.GetTaskRequest, value, "params") == {"params": "must be an object"}
    assert list(refused(v1.GetTaskRequest, {"id": 1}, "params")) == ["params.id"]


@pytest.mark.requirement("JSON-03", "JSON-04", "JSON-05", "LIST-12")
def test_enums_are_names_or_numbers_and_nothing_else() -> None:
    assert decode(v1.TaskStatus, {"state": "TASK_STATE_WORKING"}).state == v1.TASK_STATE_WORKING
    assert decode(v1.TaskStatus, {"state": 2}).state == v1.TASK_STATE_WORKING
    for wrong in ("working", "TASK_STATE_RUNNING", "TASK_STATE_CANCELLED", "", 99, -1, True, 2.5, [], {}):
        assert list(refused(v1.TaskStatus, {"state": wrong})) == ["state"]
    assert encode(v1.TaskStatus(state=3)) == {"state": "TASK_STATE_COMPLETED"}
    assert encode(v1.TaskStatus(state=99)) == {"state": 99}  # type: ignore[arg-type]


@pytest.mark.requirement("V03-22")
def test_both_spellings_of_canceled_are_read_in_v03_and_two_l_written() -> None:
    for spelling in ("TASK_STATE_CANCELED", "TASK_STATE_CANCELLED"):
        assert encode(decode(v03.TaskStatus, {"state": spelling})) == {"state": "TASK_STATE_CANCELLED"}


@pytest.mark.requirement("JSON-15")
def test_whole_numbers_are_read_in_every_form_and_written_as_numbers() -> None:
    for told in (10, 10.0, "10"):
        assert decode(v1.GetTaskRequest, {"historyLength": told}).history_length == 10
    for told in (10.5, True, 2**31, -(2**31) - 1, "1e1", " 1", "", "1.0", 1e300, float("inf"), [], "9" * 5000):
        assert list(refused(v1.GetTaskRequest, {"historyLength": told})) == ["historyLength"]
    assert to_json(v1.GetTaskRequest(id="t", history_length=10)) == b'{"id":"t","historyLength":10}'


@pytest.mark.requirement("JSON-16")
@pytest.mark.parametrize("wrong", ["true", 1, 0, "", [], 1.0])
def test_booleans_are_true_or_false(wrong: Any) -> None:
    assert list(refused(v1.SendMessageConfiguration, {"returnImmediately": wrong})) == ["returnImmediately"]


@pytest.mark.requirement("JSON-13", "DATA-04")
def test_bytes_are_base64_of_either_alphabet() -> None:
    raw = bytes(range(256)) + b"\xff\xfe"
    standard, urlsafe = base64.b64encode(raw).decode(), base64.urlsafe_b64encode(raw).decode()
    for told in (standard, urlsafe, standard.rstrip("="), urlsafe.rstrip("=")):
        assert decode(v1.Part, {"raw": told}).raw == raw
    assert encode(v1.Part(raw=raw)) == {"raw": standard}
    assert decode(v1.Part, {"raw": ""}).WhichOneof("content") == "raw"
    for wrong in ("****", "QUJDR", "QUI=QUI=", "QUI==", "Q=", "====", "QU I=", "QUI=\n", "QÜJD", 5, ["QUI="]):
        assert list(refused(v1.Part, {"raw": wrong})) == ["raw"]


@pytest.mark.requirement("JSON-19")
def test_an_unpaired_surrogate_is_refused_wherever_it_is() -> None:
    assert refused(v1.Part, {"text": "\ud800"}) == {"text": "holds an unpaired surrogate"}
    assert list(refused(v1.Message, {"extensions": ["a", "\udfff"]})) == ["extensions[1]"]
    assert list(refused(v1.Part, {"data": {"a": ["x", "\ud800"]}})) == ["data.a[1]"]
    assert list(refused(v1.Part, {"metadata": {"a": "\ud800"}})) == ["metadata.a"]
    with pytest.raises(InvalidAgentResponseError):
        value_of("\ud800")


# Writing


@pytest.mark.requirement("JSON-09", "LIST-06", "LIST-07", "LIST-09")
def test_required_members_are_written_empty_and_others_are_not() -> None:
    assert encode(v1.ListTasksResponse()) == {"tasks": [], "nextPageToken": "", "pageSize": 0, "totalSize": 0}
    assert encode(v1.Task(status=v1.TaskStatus())) == {"id": "", "status": {"state": "TASK_STATE_UNSPECIFIED"}}
    assert encode(v1.Task()) == {"id": ""}
    assert encode(v1.ClientCredentialsOAuthFlow()) == {"tokenUrl": "", "scopes": {}}
    assert encode(v1.ListTaskPushNotificationConfigsResponse()) == {}
    page = encode(v1.ListTasksResponse(tasks=[v1.Task(id="t")]))
    assert page["tasks"] == [{"id": "t"}]


@pytest.mark.requirement("LIST-10", "I-22")
def test_artifacts_are_written_empty_where_they_were_asked_for() -> None:
    page = v1.ListTasksResponse(tasks=[v1.Task(id="t"), v1.Task(id="u", artifacts=[v1.Artifact(artifact_id="a")])])
    written = encode(page, frozenset({"lf.a2a.v1.Task.artifacts"}))
    assert written["tasks"] == [
        {"id": "t", "artifacts": []},
        {"id": "u", "artifacts": [{"artifactId": "a", "parts": []}]},
    ]
    assert written["tasks"][0]["artifacts"] is not encode(page, frozenset({"lf.a2a.v1.Task.artifacts"}))["tasks"][0]


@pytest.mark.requirement("JSON-20", "JSON-21")
def test_google_types_have_their_own_forms() -> None:
    assert to_json(google.Empty()) == b"{}"
    assert decode(google.Empty, {"x": 1}) == google.Empty()
    info = google.ErrorInfo(reason="R", domain="d", metadata={"taskId": "t"})
    assert encode(info) == {"reason": "R", "domain": "d", "metadata": {"taskId": "t"}}
    assert decode(google.ErrorInfo, encode(info)) == info
    for text in ("1.500s", "-3s", "0.000000001s"):
        assert encode(decode(google.RetryInfo, {"retryDelay": text})) == {"retryDelay": text}
    for wrong in ("1.5", "s", 3, "1.0000000001s", "999999999999s"):
        assert list(refused(google.RetryInfo, {"retryDelay": wrong})) == ["retryDelay"]
    assert encode(decode(google.Struct, {"a": [1]})) == {"a": [1]}
    assert refused(google.Struct, {"a": objects(MAX_DEPTH)}, "x").popitem()[0].startswith("x.a.a")
    assert list(refused(google.Status, {"details": [{"@type": "x"}]})) == ["details[0]"]
    with pytest.raises(InvalidAgentResponseError, match=r"details\[0\]"):
        encode(google.Status(details=[google.Any(type_url="x")]))
    assert encode(google.QuotaFailure.Violation(quota_value=2**60))["quotaValue"] == str(2**60)


def test_maps_are_read_and_written() -> None:
    told = {"schemes": {"oauth": {"list": ["a", "b"]}, "key": {}}}
    assert encode(decode(v1.SecurityRequirement, told)) == told
    assert list(refused(v1.SecurityRequirement, {"schemes": {"x": None, "y": {"list": [1]}}})) == [
        "schemes.x",
        "schemes.y.list[0]",
    ]
    assert list(refused(v1.SecurityRequirement, {"schemes": []})) == ["schemes"]


def test_messages_of_the_default_pool_are_written_too() -> None:
    stock = struct_pb2.Struct()
    json_format.Parse('{"a": [1, {"b": null}]}', stock)
    assert encode(stock) == {"a": [1, {"b": None}]}


# Query parameters


@pytest.mark.requirement("REST-11", "REST-12", "REST-14", "BL-24")
def test_query_parameters_become_what_a_body_would_hold() -> None:
    pairs = [
        ("contextId", "c+1"),
        ("status", "TASK_STATE_WORKING"),
        ("page_size", "10"),
        ("includeArtifacts", "true"),
        ("statusTimestampAfter", "2025-01-31T12:00:00 02:00"),
        ("pageToken", ""),
        ("unknown", ""),
        ("A2A-Version", "1.0"),
    ]
    request = decode(v1.ListTasksRequest, decode_query(v1.ListTasksRequest, pairs))
    assert encode(request) == {
        "contextId": "c+1",
        "status": "TASK_STATE_WORKING",
        "pageSize": 10,
        "includeArtifacts": True,
        "statusTimestampAfter": "2025-01-31T10:00:00Z",
    }


@pytest.mark.requirement("REST-12", "REST-14", "BL-24", "LIST-12")
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pageSize", "abc"),
        ("pageSize", ""),
        ("pageSize", "1.5"),
        ("pageSize", "99999999999"),
        ("pageSize", " 5"),
        ("historyLength", "1e1"),
        ("status", "WORKING"),
        ("status", ""),
        ("status", "77"),
        ("includeArtifacts", "yes"),
        ("includeArtifacts", "True"),
        ("includeArtifacts", ""),
        ("statusTimestampAfter", "2025-01-31T12:00:00"),
        ("statusTimestampAfter", "2025-01-31 12:00:00Z"),
        ("statusTimestampAfter", ""),
    ],
)
def test_a_bad_query_value_is_refused_by_name(name: str, text: str) -> None:
    with pytest.raises(InvalidParamsError) as caught:
        decode_query(v1.ListTasksRequest, [("contextId", "c"), (name, text)])
    assert [violation.field for violation in caught.value.violations] == [name]


@pytest.mark.requirement("REST-13", "REST-16")
def test_repeated_query_parameters_are_lists_or_must_agree() -> None:
    for pairs in ([("acceptedOutputModes", "a,b")], [("acceptedOutputModes", "a"), ("accepted_output_modes", "b")]):
        assert decode_query(v1.SendMessageConfiguration, pairs) == {"acceptedOutputModes": ["a", "b"]}
    assert decode_query(v1.GetTaskRequest, [("historyLength", "1"), ("history_length", "1")]) == {"historyLength": 1}
    with pytest.raises(InvalidParamsError) as caught:
        decode_query(v1.GetTaskRequest, [("historyLength", "1"), ("history_length", "2")])
    assert caught.value.violations[0].field == "historyLength"


@pytest.mark.requirement("LIST-12", "JSON-04")
def test_an_enum_number_in_a_query_is_read() -> None:
    assert decode_query(v1.ListTasksRequest, [("status", "3")]) == {"status": 3}


def test_kept_json_is_that_of_the_message_as_it_is_now() -> None:
    kept, plain = encoder(v1.ListTasksResponse, kept=frozenset({"lf.a2a.v1.Task"})), encode
    answer = v1.ListTasksResponse(tasks=[v1.Task(id="a"), v1.Task(id="b")], total_size=2)
    for _ in range(2):
        assert dumps(kept(answer)) == dumps(plain(answer))
        answer.tasks[0].history.add(message_id="m", role=v1.ROLE_USER).parts.add(text="more")


def test_kept_json_stays_within_its_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ready, "MOST_KEPT", 1000)
    monkeypatch.setattr(ready, "LARGEST_KEPT", 502)
    written: list[str] = []
    kept = protojson_write._keeping(lambda task: written.append(task.id) or {"id": task.id})  # type: ignore[func-returns-value]
    for name in ("a", "a", "b" * 300, "a", "c" * 501, "c" * 501, "a"):
        assert orjson.loads(dumps(kept(v1.Task(id=name)))) == {"id": name}
    assert [name[:1] for name in written] == ["a", "b", "c", "c"]
    kept(v1.Task(id="d" * 300))  # no room beside the others, which are forgotten
    kept(v1.Task(id="a"))
    assert [name[:1] for name in written[4:]] == ["d", "a"]
