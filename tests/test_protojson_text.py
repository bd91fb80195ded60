"""JSON text: large base64 that never becomes a text says the same, wherever it stands and whatever is around it."""

from typing import Any

import orjson
import pytest
from a2a_stubs import v1
from hypothesis import given
from hypothesis import strategies as st

from a2a_grpc import protojson_text
from a2a_grpc.errors import InvalidParamsError, ParseError
from a2a_grpc.protojson import decode, json_of
from a2a_grpc.protojson_text import Held, loads
from tests.test_protojson_properties import FEW

pytest.importorskip("pybase64")

texts = st.one_of(
    st.sampled_from(["QUJDREVGR0hJSktM" * 2, "-_-_" * 8, "QUJD" * 7 + "QQ", "QUJD" * 7 + "QQ==", '"raw":"', "::"]),
    st.text(),
)
names = st.sampled_from(["raw", "text", '{"raw":"', "a:b", "ra\\w"])
values = st.recursive(
    st.one_of(st.none(), st.integers(-9, 9), texts),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(names, inner, max_size=4)),
    max_leaves=20,
)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protojson_text, "LARGE", 16)
    monkeypatch.setattr(protojson_text, "LONG", 8)


def told(value: Any) -> Any:
    """The value with texts for what was held."""
    if isinstance(value, Held):
        return value.text
    if isinstance(value, list):
        return [told(one) for one in value]
    return {name: told(one) for name, one in value.items()} if isinstance(value, dict) else value


def outcome(body: bytes, *, spare: bool) -> Any:
    try:
        return told(loads(body, spare=spare))
    except ParseError as error:
        return error.message


@pytest.mark.requirement("JSON-16", "RPC-09")
@FEW
@given(value=values, indent=st.booleans())
def test_what_is_spared_is_what_was_written(value: Any, indent: bool) -> None:
    body = orjson.dumps(value, option=orjson.OPT_INDENT_2 if indent else None)
    assert told(loads(body, spare=True)) == loads(body) == value


@pytest.mark.requirement("RPC-09", "BL-27")
@FEW
@given(
    value=values, at=st.integers(0, 400), put=st.sampled_from([b"", b'"', b"\\", b"{", b",", b':"', b'"raw":"', b"\n"])
)
def test_a_broken_text_is_as_broken_when_parts_of_it_are_spared(value: Any, at: int, put: bytes) -> None:
    body = orjson.dumps({"raw": "QUJD" * 9, "x": value, "y": {"raw": "QUJD" * 8}})
    body = body[:at] + put + body[at + 1 :]
    assert outcome(body, spare=True) == outcome(body, spare=False)


def test_a_member_given_twice_is_refused_though_it_is_spared() -> None:
    with pytest.raises(ParseError, match="twice"):
        loads(b'{"raw":"%b","raw":"%b"}' % (b"QUJD" * 9, b"QUJE" * 9), spare=True)


@pytest.mark.requirement("JSON-16", "DATA-10")
def test_bytes_are_read_from_what_was_spared_and_free_json_gets_its_text() -> None:
    text = "QUJD" * 9
    body = orjson.dumps({"parts": [{"raw": text}, {"data": {"raw": text}}], "metadata": {"raw": text}, "raw": text})
    value = loads(body, spare=True)
    assert isinstance(value["raw"], Held) and isinstance(value["parts"][0]["raw"], Held)
    message = decode(v1.Message, value)
    assert message.parts[0].raw == b"ABC" * 9
    assert json_of(message.parts[1].data) == json_of(message.metadata) == {"raw": text}
    assert decode(v1.Message, loads(body)) == message


@pytest.mark.parametrize("text", ["QUJD" * 9 + "Q", "QUJD" * 9 + "=", "QUJD" * 9 + "*", "QUJD\\n" * 9])
@pytest.mark.requirement("JSON-16")
def test_base64_with_a_flaw_is_read_or_refused_as_ever(text: str) -> None:
    found = []
    for spare in (True, False):
        try:
            found.append(decode(v1.Part, loads(f'{{"raw":"{text}"}}'.encode(), spare=spare)).raw)
        except InvalidParamsError as error:
            found.append(bytes(str(error.violations), "utf-8"))
    assert found[0] == found[1]


def test_colons_are_counted_alike_in_short_and_in_long_texts() -> None:
    for body in (b'{"a":"%b:"}' % (b"x" * 5000), b'{"a":"%b"}' % (b"x" * 5000), b'{"a":1,"b":"%b"}' % (b":" * 5000)):
        assert loads(body) == orjson.loads(body)
    with pytest.raises(ParseError):
        loads(b'{"a":1,"a":"%b"}' % (b"x" * 5000))


@pytest.mark.requirement("JSON-22", "BL-27")
@pytest.mark.parametrize("space", ["", " "])
@pytest.mark.parametrize("depth", [1, 200, 300, 900])
def test_a_member_given_twice_is_refused_in_any_depth_however_it_is_written(depth: int, space: str) -> None:
    """Also where it is nested deeper than can be written again."""
    once, twice = '{"b":1}', '{"b":1,"b":1}'
    made = [f'{{"a":{space}' * depth + inner + "}" * depth for inner in (once, twice)]
    assert loads(made[0].encode()) == orjson.loads(made[0])
    with pytest.raises(ParseError, match="twice"):
        loads(made[1].encode())
