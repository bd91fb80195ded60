"""Each object of v0.3, in its JSON and its proto form, against its v1.0 form: the same triples read in both directions.

The files in tests/golden/v03 were written from the mapping by hand; a case without a form of one dialect has none.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from a2a_stubs import v03, v03_grpc, v1, v1_grpc
from google.protobuf.message import Message

from a2a_grpc import v03 as old
from a2a_grpc import v03_json, v03_proto, v03_write
from a2a_grpc.protojson import decode
from a2a_grpc.v03_names import BY_METHOD

GOLDEN = Path(__file__).resolve().parent / "golden" / "v03"
NEW = {row.name: row for row in v1_grpc.METHODS}
OLD = {BY_METHOD[row.name]: row for row in v03_grpc.METHODS}


def cases(dialect: str, direction: str) -> list[Any]:
    """The golden cases of a dialect that hold in a direction, each marked with its requirements."""
    found = []
    for file in sorted(GOLDEN.glob("*.json")):
        for case in json.loads(file.read_text()):
            if dialect in case and case.get("only", direction) == direction:
                mark = pytest.mark.requirement(*case["ids"])
                found.append(pytest.param(case, id=f"{file.stem}: {case['name']}", marks=mark))
    return found


def new(case: Any) -> Message:
    """The v1.0 message of a case."""
    types = {"part": v1.Part, "message": v1.Message, "event": v1.StreamResponse}
    row = NEW.get(case.get("operation", ""))
    cls = types.get(case["object"]) or (row.input if case["object"] == "request" else row.output)
    return decode(cls, case["v1"])


def proto(case: Any) -> Message:
    """The v0.3 proto's message of a case."""
    types = {"part": v03.Part, "message": v03.Message, "event": v03.StreamResponse}
    row = OLD.get(case.get("operation", ""))
    cls = types.get(case["object"]) or (row.input if case["object"] == "request" else row.output)
    return decode(cls, case["p03"])


@pytest.mark.parametrize("case", cases("j03", "up"))
def test_v03_json_is_understood(case: Any) -> None:
    operation = case.get("operation", "")
    up = {
        "part": lambda value: decode(v1.Part, v03_json.part_up(value, "part")),
        "message": lambda value: decode(v1.Message, v03_json.message_up(value, "message")),
        "event": old.up_event,
        "answer": lambda value: old.up_result(operation, value),
        "request": lambda value: old.up_params(operation, value)[0],
    }[case["object"]]
    given = json.dumps(case["j03"])
    value = json.loads(given)
    assert up(value) == new(case)
    assert json.dumps(value) == given, "the given value was changed"


@pytest.mark.parametrize("case", cases("j03", "down"))
def test_v03_json_is_written(case: Any) -> None:
    message: Any = new(case)
    before = message.SerializeToString(deterministic=True)
    down = {
        "part": lambda: v03_write.as_json(message),
        "message": lambda: v03_write.as_json(message),
        "event": lambda: old.StreamDown("SendStreamingMessage").event(message)[0],
        "answer": lambda: old.down_result(message),
        "request": lambda: old.down_params(message),
    }[case["object"]]
    assert down() == case["j03"]
    assert message.SerializeToString(deterministic=True) == before, "the message was changed"


@pytest.mark.parametrize("case", cases("p03", "up"))
def test_the_v03_proto_is_understood(case: Any) -> None:
    operation = case.get("operation", "")
    message = proto(case)
    up = {
        "part": lambda: v03_proto.up(message),
        "message": lambda: v03_proto.up(message),
        "event": lambda: old.up_event(message),
        "answer": lambda: old.up_result(operation, message),
        "request": lambda: old.up_message(message)[0],
    }[case["object"]]
    assert up() == new(case)


@pytest.mark.parametrize("case", cases("p03", "down"))
def test_the_v03_proto_is_written(case: Any) -> None:
    message: Any = new(case)
    down = {
        "part": lambda: v03_proto.down(message),
        "message": lambda: v03_proto.down(message),
        "event": lambda: old.StreamDown("SendStreamingMessage", old.P03).event(message)[0],
        "answer": lambda: old.down_message(message),
        "request": lambda: old.down_request(message),
    }[case["object"]]
    assert down() == proto(case)


@pytest.mark.parametrize("case", [case for case in cases("p03", "down") if case.values[0]["object"] == "answer"])
def test_rest_answers_hold_only_what_the_v03_proto_has(case: Any) -> None:
    """The reference reader is strict: one unknown field fails it."""
    from google.protobuf import json_format

    if case["operation"] == "GetExtendedAgentCard":
        assert old.down_rest(new(case)) == case["j03"]
        return
    answer = old.down_rest(new(case))
    cls = type(proto(case))
    assert json_format.ParseDict(answer, cls(), descriptor_pool=cls.DESCRIPTOR.file.pool) == proto(case)
