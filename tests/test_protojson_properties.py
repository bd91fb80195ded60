"""ProtoJSON against the stock implementation: where both must agree they agree."""

import json
from typing import Any

import orjson
import pytest
from a2a_stubs import descriptors, v03, v1
from google.protobuf import json_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from a2a_grpc.errors import InvalidParamsError, ParseError
from a2a_grpc.methods import METHODS, missing
from a2a_grpc.protojson import decode, encode, loads, to_json, unfit
from a2a_grpc.protojson_fields import MANY, MAP, REQUIRED, fields

TYPES = sorted(
    {cls for table in METHODS.values() for row in table.values() for cls in (row.request, row.response)},
    key=lambda cls: cls.DESCRIPTOR.full_name,
)
FEW = settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
numbers = st.one_of(st.integers(-(2**53), 2**53), st.floats(allow_nan=False, allow_infinity=False))
free = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, text),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(text, inner, max_size=3)),
    max_leaves=8,
)
SCALARS: dict[int, Any] = {
    FieldDescriptor.TYPE_STRING: text,
    FieldDescriptor.TYPE_BOOL: st.booleans(),
    FieldDescriptor.TYPE_INT32: st.integers(-(2**31), 2**31 - 1),
    FieldDescriptor.TYPE_BYTES: st.sampled_from(["", "QQ==", "QUI=", "QUJD", "-_-_", "QQ"]),
}
WELL_KNOWN: dict[str, Any] = {
    "google.protobuf.Struct": st.dictionaries(text, free, max_size=3),
    "google.protobuf.Value": free,
    "google.protobuf.Timestamp": st.datetimes().map(lambda moment: moment.isoformat() + "Z"),
    "google.protobuf.Empty": st.just({}),
}


def values_of(field: Any) -> Any:
    if field.message_type is not None:
        own = WELL_KNOWN.get(field.message_type.full_name)
        return st.deferred(lambda: members_of(field.message_type)) if own is None else own
    if field.enum_type is not None:
        return st.sampled_from([value.name for value in field.enum_type.values])
    return SCALARS[field.type]


def members_of(descriptor: Any) -> Any:
    """JSON objects of a type, with at most one member of each oneof and some members left out."""
    groups: dict[str, list[Any]] = {}
    for field, shape, item in fields(descriptor):
        value = values_of(item)
        if shape == MANY:
            value = st.lists(value, max_size=2)
        elif shape == MAP:
            value = st.dictionaries(text, value, max_size=2)
        name = field.containing_oneof.name if field.containing_oneof is not None else field.name
        groups.setdefault(name, []).append(st.tuples(st.sampled_from([field.json_name, field.name]), value))
    choices = [st.one_of(st.none(), *options) for options in groups.values()]
    return st.tuples(*choices).map(lambda chosen: dict(pair for pair in chosen if pair is not None))


def stock(cls: type[Message], value: Any) -> Message:
    return json_format.ParseDict(value, cls(), ignore_unknown_fields=True, descriptor_pool=descriptors.pool)


def agree(ours: Any, judge: Any, descriptor: Any) -> None:
    """The judge's members are ours; further ones of ours are required and at their default."""
    shapes = {field.json_name: (field, shape, item) for field, shape, item in fields(descriptor)}
    for name, value in ours.items():
        field, shape, item = shapes[name]
        if name not in judge:
            assert field.name in REQUIRED[descriptor.full_name]
            assert value in ("", 0, [], {}) or value.endswith("_UNSPECIFIED")
        elif item.message_type is None or item.message_type.full_name in WELL_KNOWN:
            assert value == judge[name]
        elif shape == MANY:
            assert len(value) == len(judge[name])
            for one, other in zip(value, judge[name], strict=True):
                agree(one, other, item.message_type)
        elif shape == MAP:
            assert value.keys() == judge[name].keys()
            for key in value:
                agree(value[key], judge[name][key], item.message_type)
        else:
            agree(value, judge[name], item.message_type)
    assert judge.keys() <= ours.keys()


@pytest.mark.requirement("JSON-01", "JSON-06", "JSON-09", "RPC-04")
@pytest.mark.parametrize("cls", TYPES, ids=lambda cls: cls.DESCRIPTOR.full_name)
@FEW
@given(data=st.data())
def test_what_the_stock_parser_reads_is_read_alike_and_comes_back(cls: type[Message], data: Any) -> None:
    value = data.draw(members_of(cls.DESCRIPTOR))
    message = decode(cls, loads(orjson.dumps(value)))
    assert message == stock(cls, value)
    assert unfit(message) == []
    missing(message)
    written = encode(message)
    agree(written, json_format.MessageToDict(message, descriptor_pool=descriptors.pool), cls.DESCRIPTOR)
    assert decode(cls, loads(to_json(message))) == message
    assert cls.FromString(message.SerializeToString()) == message


@pytest.mark.requirement("JSON-05", "JSON-13", "SEC-03")
@pytest.mark.parametrize("cls", [v1.SendMessageRequest, v1.ListTasksRequest, v1.AgentCard, v03.Task])
@settings(FEW, max_examples=100)
@given(data=st.data())
def test_arbitrary_json_is_read_as_the_stock_parser_does_or_refused(cls: type[Message], data: Any) -> None:
    value = data.draw(members_of(cls.DESCRIPTOR))
    spot = value
    while True:
        below = [child for child in spot.values() if isinstance(child, dict) and child]
        if not below or data.draw(st.booleans()):
            break
        spot = data.draw(st.sampled_from(below))
    odd = st.one_of(
        free, st.sampled_from(["10", "1.0", 3, 3.0, True, "2025-01-31T00:00:00+01:00", "ROLE_USER", [None]])
    )
    spot[data.draw(st.sampled_from(sorted(spot) or ["id"]))] = data.draw(odd)
    try:
        message = decode(cls, value)
    except InvalidParamsError:
        return
    assert message == stock(cls, value)


def pairs(told: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(told)
    if len(made) != len(told):
        raise KeyError
    return made


@pytest.mark.requirement("JSON-22", "RPC-09")
@settings(max_examples=400, deadline=None)
@given(
    keys=st.lists(st.text(st.sampled_from('a:"\\ {'), max_size=3), min_size=1, max_size=5),
    strings=st.lists(st.text(st.sampled_from('a:"\\{}, '), max_size=5), min_size=5, max_size=5),
    colon=st.sampled_from([":", " : ", "\n:"]),
)
def test_members_given_twice_are_found_whatever_the_strings_hold(
    keys: list[str], strings: list[str], colon: str
) -> None:
    members = [f"{json.dumps(key)}{colon}{json.dumps(value)}" for key, value in zip(keys, strings, strict=False)]
    body = "[{" + ",".join(members) + '},{"a":1}]'
    try:
        expected = json.loads(body, object_pairs_hook=pairs)
    except KeyError:
        with pytest.raises(ParseError):
            loads(body)
    else:
        assert loads(body) == expected


@pytest.mark.requirement("RPC-09", "SEC-03")
@given(st.binary(max_size=40))
def test_any_bytes_are_json_or_a_parse_error(body: bytes) -> None:
    try:
        loads(body)
    except ParseError:
        return
    json.loads(body)
