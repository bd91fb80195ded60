"""Single values of ProtoJSON: timestamps, free JSON, and what user code hands in."""

from datetime import datetime, timedelta, timezone
from types import MappingProxyType
from typing import Any

import pytest
from a2a_stubs import google, v03, v1
from google.protobuf import struct_pb2, timestamp_pb2
from google.protobuf.descriptor import FieldDescriptor

from a2a_grpc import protojson_text, protojson_values
from a2a_grpc.errors import InvalidAgentResponseError
from a2a_grpc.protojson import MAX_DEPTH, decode, encode, json_of, loads, struct_of, to_json, unfit, value_of
from tests.test_protojson import objects, refused


def lists(levels: int, leaf: Any = 1) -> Any:
    for _ in range(levels):
        leaf = [leaf]
    return leaf


# Timestamps


@pytest.mark.requirement("JSON-10", "JSON-11", "JSON-12", "I-23")
@pytest.mark.parametrize(
    ("told", "written"),
    [
        ("2025-01-31T12:00:00Z", "2025-01-31T12:00:00Z"),
        ("2025-01-31T12:00:00.5Z", "2025-01-31T12:00:00.500Z"),
        ("2025-01-31T12:00:00.123456Z", "2025-01-31T12:00:00.123456Z"),
        ("2025-01-31T12:00:00.123456789Z", "2025-01-31T12:00:00.123456789Z"),
        ("2025-01-31T01:30:00+02:00", "2025-01-30T23:30:00Z"),
        ("2025-01-30T23:30:00.250-05:30", "2025-01-31T05:00:00.250Z"),
        ("1969-12-31T23:59:59.750Z", "1969-12-31T23:59:59.750Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
        ("9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z"),
        ("1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z"),
    ],
)
def test_timestamps_are_read_with_any_offset_and_written_in_utc(told: str, written: str) -> None:
    assert encode(decode(v1.TaskStatus, {"timestamp": told}))["timestamp"] == written


@pytest.mark.requirement("JSON-12")
@pytest.mark.parametrize(
    "wrong",
    [
        "2025-01-31T12:00:00",
        "2025-01-31T12:00:00.1234567890Z",
        "2025-01-31 12:00:00Z",
        "2025-02-30T12:00:00Z",
        "2025-01-31T24:00:00Z",
        "2025-01-31T12:00:60Z",
        "2025-01-31T12:00:00.Z",
        "2025-01-31T12:00:00+2:00",
        "2025-01-31T12:00:00+24:00",
        "0001-01-01T00:00:00+01:00",
        "9999-12-31T23:59:59-00:01",
        "0000-01-01T00:00:00Z",
        "٢٠٢٥-01-31T12:00:00Z",
        "2025-01-31T12:00:00Z ",
        "",
        1738324800,
        {},
    ],
)
def test_other_timestamps_are_refused(wrong: Any) -> None:
    assert list(refused(v1.TaskStatus, {"timestamp": wrong})) == ["timestamp"]


@pytest.mark.requirement("V03-31")
def test_v03_timestamps_without_zone_are_utc() -> None:
    status = decode(v03.TaskStatus, {"timestamp": "2025-01-31T12:00:00.123456"})
    assert encode(status)["timestamp"] == "2025-01-31T12:00:00.123456Z"
    assert list(refused(v03.TaskStatus, {"timestamp": "2025-01-31"})) == ["timestamp"]


# Free JSON


@pytest.mark.requirement("JSON-14", "BL-25")
def test_whole_numbers_stay_whole() -> None:
    body = b'{"data":[1,0,-0.0,-7,1.5,1000.0,1e3,9007199254740991,9007199254740993,1e300]}'
    written = b'{"data":[1,0,-0.0,-7,1.5,1000,1000,9007199254740991,9007199254740992,1e+300]}'
    assert to_json(decode(v1.Part, loads(body))) == written


@pytest.mark.requirement("JSON-18", "BL-27", "DATA-15")
@pytest.mark.parametrize("make", [objects, lists])
def test_the_deepest_json_that_is_read_survives_every_wire(make: Any) -> None:
    limit = MAX_DEPTH if make is objects else MAX_DEPTH * 3 // 2
    part = {"data": make(limit), "metadata": objects(MAX_DEPTH)}
    task = {"id": "t", "status": {"message": {"parts": [part]}}, "artifacts": [{"parts": [part]}]}
    message = decode(v1.ListTasksResponse, {"tasks": [task]})
    assert v1.ListTasksResponse.FromString(message.SerializeToString()) == message
    assert encode(message)["tasks"][0]["artifacts"][0]["parts"] == [part]
    for levels in (limit + 1, 200, 1000):
        (path,) = refused(v1.SendMessageRequest, {"message": {"parts": [{"text": "x"}, {"data": make(levels)}]}})
        assert path.startswith("message.parts[1].data" + (".a" if make is objects else "[0]"))


@pytest.mark.requirement("BL-26", "JSON-14")
@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_numbers_that_are_not_finite_are_refused_with_their_path(number: float) -> None:
    assert list(refused(v1.Part, {"data": {"x": [0, number]}})) == ["data.x[1]"]
    poisoned = v1.Task(id="t", artifacts=[v1.Artifact(artifact_id="a", parts=[v1.Part(text=""), v1.Part()])])
    poisoned.artifacts[0].parts[1].data.struct_value.fields["x"].number_value = number
    path = "artifacts[0].parts[1].data.x"
    assert [violation.field for violation in unfit(poisoned)] == [path]
    with pytest.raises(InvalidAgentResponseError, match="not a finite number") as caught:
        encode(poisoned)
    assert caught.value.violations[0].field == path
    with pytest.raises(InvalidAgentResponseError, match=r"^a\[1\]\.b is not a finite number"):
        value_of({"a": [1, {"b": number}]})
    with pytest.raises(InvalidAgentResponseError, match=r"^x is not"):
        json_of(poisoned.artifacts[0].parts[1].data)


@pytest.mark.requirement("BL-26", "JSON-04", "JSON-18")
def test_what_a_binary_wire_brings_and_json_has_not_is_found() -> None:
    status = v1.TaskStatus(timestamp=google.Timestamp(seconds=2**40))
    assert [violation.field for violation in unfit(status, "status")] == ["status.timestamp"]
    part = v1.Part()
    value = part.data
    for _ in range(MAX_DEPTH + 1):
        value = value.struct_value.fields["a"]
    value.bool_value = True
    assert [v.description for v in unfit(part)] == [f"is nested deeper than {MAX_DEPTH} levels"]
    sent = v1.SendMessageRequest(message=v1.Message(role=99))
    assert unfit(sent) == [("message.role", "must be a value of Role")]
    card = v1.AgentCard(capabilities=v1.AgentCapabilities(extensions=[v1.AgentExtension(params=struct_of({"a": 1}))]))
    assert unfit(card) == [] and unfit(v1.GetTaskRequest()) == []
    with pytest.raises(InvalidAgentResponseError, match="timestamp"):
        encode(status)


@pytest.mark.requirement("DATA-03", "DATA-10")
def test_values_of_user_code_are_taken_in_every_usual_form() -> None:
    class Text(str):
        __slots__ = ()

    stock = struct_pb2.Struct()
    stock.update({"n": 1, "l": [True, None]})
    stamp = timestamp_pb2.Timestamp()
    stamp.FromDatetime(datetime(2025, 1, 31, tzinfo=timezone.utc))
    given = {
        "t": (1, 2.5),
        "s": Text("x"),
        "m": MappingProxyType({"k": None}),
        "p": stock,
        "at": stamp,
        "on": datetime(2025, 1, 31, 2, tzinfo=timezone(timedelta(hours=2))),
    }
    plain = {
        "t": [1, 2.5],
        "s": "x",
        "m": {"k": None},
        "p": {"n": 1, "l": [True, None]},
        "at": "2025-01-31T00:00:00Z",
        "on": "2025-01-31T00:00:00Z",
    }
    assert json_of(struct_of(given)) == plain
    assert json_of(value_of(given)) == plain
    assert struct_of(stock) == struct_of({"n": 1, "l": [True, None]})
    assert isinstance(struct_of(stock), google.Struct)
    assert json_of(stock) == {"n": 1, "l": [True, None]}
    assert json_of(stamp) == "2025-01-31T00:00:00Z"
    for scalar in (None, True, 0, "", 1.5, [], {}):
        assert json_of(value_of(scalar)) == scalar


@pytest.mark.requirement("DATA-14")
@pytest.mark.parametrize(
    ("wrong", "where"),
    [
        ({"a": object()}, "a is of the type object"),
        ({"a": {"b": {1, 2}}}, "a.b is of the type set"),
        ({"a": [b"x"]}, r"a\[0\] is of the type bytes"),
        ({"a": {1: 2}}, "a has a member name"),
        ({"a": datetime(2025, 1, 31)}, "a is a datetime without a time zone"),
        ({"a": {1, 2}}, "a is of the type set"),
        ({"a": 10**400}, "a is too large"),
        ({"a": v1.Part()}, "a is of the type Part"),
        (objects(MAX_DEPTH + 1), "deeper than"),
    ],
)
def test_values_of_user_code_that_are_not_json_are_refused_with_their_path(wrong: Any, where: str) -> None:
    for make in (value_of, struct_of):
        with pytest.raises(InvalidAgentResponseError, match=where):
            make(wrong)


def test_a_value_that_holds_itself_is_refused() -> None:
    loop: dict[str, Any] = {}
    loop["a"] = [loop]
    with pytest.raises(InvalidAgentResponseError, match="deeper"):
        struct_of(loop)
    with pytest.raises(InvalidAgentResponseError, match="object"):
        struct_of([1])


@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize("text", ["QUJD", "QUI=", "QUI", "QUJD====", "QU=D", "QUJ!", "QUJD QUJD", "-_+/", "Q", "é"])
def test_long_base64_is_read_as_short_one(monkeypatch: pytest.MonkeyPatch, text: str, quick: bool) -> None:
    if not quick:
        monkeypatch.setattr(protojson_text, "pybase64", None)
    read, write = protojson_values.READ[FieldDescriptor.TYPE_BYTES], protojson_values.WRITE[FieldDescriptor.TYPE_BYTES]
    lead = "AAAA" * 300
    try:
        wanted: bytes | None = bytes(900) + read(text)
    except ValueError:
        wanted = None
    if wanted is None:
        with pytest.raises(ValueError, match="must be base64"):
            read(lead + text)
    else:
        assert read(lead + text) == wanted
        assert read(write(wanted)) == wanted
