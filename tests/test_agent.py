"""What an author declares, and how what the function gives becomes parts."""

import functools
from typing import Any

import pytest
from a2a_stubs import v1
from google.protobuf import struct_pb2

from a2a_grpc.agent import Agent, Extension, Kind, Skill
from a2a_grpc.errors import InvalidAgentResponseError
from a2a_grpc.tasks.parts import add_parts, agent_message

GOOD = {"name": "n", "description": "d", "version": "1", "skills": []}


@pytest.mark.requirement("CARD-02", "DATA-13")
@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"name": ""}, "name"),
        ({"description": " "}, "description"),
        ({"version": 1}, "version"),
        ({"skills": ["lookup"]}, "skills"),
        ({"skills": [Skill("a", "A"), Skill("a", "B")]}, "skill id 'a'"),
        ({"extensions": [Extension("u"), Extension("u")]}, "extension 'u'"),
        ({"provider_url": "https://agent.example"}, "provider_organization"),
        ({"default_input_modes": ["text"]}, "default_input_modes"),
        ({"default_output_modes": "text/plain"}, "default_output_modes"),
        ({"tenants": [""]}, "tenants"),
    ],
)
def test_a_wrong_description_is_refused_when_the_agent_is_made(wrong: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        Agent(**GOOD | wrong)


@pytest.mark.requirement("CARD-13")
@pytest.mark.parametrize(
    "wrong", [{"id": ""}, {"name": ""}, {"tags": "orders"}, {"input_modes": ["x"]}, {"output_modes": [""]}]
)
def test_a_wrong_skill_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Skill(**{"id": "a", "name": "A", **wrong})


@pytest.mark.parametrize("uri", ["", "urn:a, urn:b", "urn:a b", "urn:\xfc", "urn:a\n"])
@pytest.mark.requirement("EXT-01", "EXT-02")
def test_an_extension_needs_a_uri_that_callers_can_ask_for(uri: str) -> None:
    with pytest.raises(ValueError, match="uri"):
        Extension(uri)


async def coroutine(task: Any) -> None: ...


async def stream(task: Any) -> Any:
    yield 1


def plain(task: Any) -> None: ...


def plain_stream(task: Any) -> Any:
    yield 1


class Callable:
    async def __call__(self, task: Any) -> None: ...

    async def method(self, task: Any) -> Any:
        yield task.reply


@functools.wraps(coroutine)
def wrapped(task: Any) -> Any:
    return coroutine(task)


@pytest.mark.requirement("BL-17")
@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (coroutine, Kind.COROUTINE),
        (stream, Kind.STREAM),
        (plain, Kind.PLAIN),
        (plain_stream, Kind.PLAIN_STREAM),
        (functools.partial(coroutine), Kind.COROUTINE),
        (functools.partial(functools.partial(plain_stream)), Kind.PLAIN_STREAM),
        (Callable(), Kind.COROUTINE),
        (Callable().method, Kind.STREAM),
        (wrapped, Kind.COROUTINE),
        (print, Kind.PLAIN),
    ],
)
def test_every_kind_of_function_is_told_apart(function: Any, kind: Kind) -> None:
    agent = Agent(**GOOD)
    assert agent.handle(function) is function
    assert agent.handler.kind is kind


@pytest.mark.requirement("OP-SEND-05")
def test_a_function_that_mentions_reply_may_reply() -> None:
    async def mentions(task: Any) -> None:
        await task.reply("hi")

    async def hides(task: Any) -> None:
        async def inner() -> None:
            await task.reply("hi")

        await inner()

    def made(function: Any, **more: Any) -> bool:
        agent = Agent(**GOOD)
        agent.handle(**more)(function)
        return agent.handler.replies

    assert made(mentions) and made(hides) and made(Callable().method) and made(coroutine, replies=True)
    assert not made(coroutine) and not made(print) and not made(mentions, replies=False)


def test_an_agent_has_exactly_one_function() -> None:
    agent = Agent(**GOOD)
    with pytest.raises(ValueError, match=r"@agent\.handle"):
        _ = agent.handler
    agent.handle(coroutine)
    with pytest.raises(ValueError, match="already"):
        agent.handle(plain)
    with pytest.raises(TypeError):
        Agent(**GOOD).handle(3)


@pytest.mark.parametrize("function", [lambda: None, lambda task, order: None, lambda *, task: None, Callable.method])
def test_a_function_that_cannot_take_the_task_is_refused_at_once(function: Any) -> None:
    with pytest.raises(TypeError, match=r": [\w.<>]+ must take one argument, the task"):
        Agent(**GOOD).handle(function)


def parts(value: Any, media_type: str = "") -> list[v1.Part]:
    message = v1.Message()
    add_parts(message.parts, value, media_type)
    return list(message.parts)


class Foreign:
    """A Struct from protobuf's default pool."""

    struct = struct_pb2.Struct()
    struct["n"] = 1


@pytest.mark.requirement("DATA-01", "DATA-02", "DATA-03", "DATA-05")
def test_values_become_the_parts_they_look_like() -> None:
    assert parts("")[0].WhichOneof("content") == "text"
    assert parts("x", "text/html") == [v1.Part(text="x", media_type="text/html")]
    assert parts(b"x") == [v1.Part(raw=b"x", media_type="application/octet-stream")]
    assert parts(bytearray(b"x"), "image/png") == [v1.Part(raw=b"x", media_type="image/png")]
    assert parts({"n": 1})[0].data.struct_value["n"] == 1
    assert parts([1, 2])[0].data.WhichOneof("kind") == "list_value"
    assert parts([])[0].data.WhichOneof("kind") == "list_value"
    assert parts(None)[0].data.WhichOneof("kind") == "null_value"
    assert parts(Foreign.struct)[0].data.struct_value["n"] == 1
    two = [v1.Part(text="a"), v1.Part(url="https://agent.example/f")]
    assert parts(two) == two == parts(v1.Message(parts=two)) == parts(v1.Artifact(parts=two))


@pytest.mark.requirement("DATA-14", "BL-26", "BL-31")
@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"a": {"b": float("nan")}}, r"a\.b"),
        (float("inf"), "finite"),
        (object(), "object"),
        ({"when": {1, 2}}, "when"),
        (v1.Part(), "no content"),
        ([v1.Part(text="x"), v1.Part()], r"parts\[1\]"),
        (v1.Message(), "at least one part"),
        (v1.Artifact(), "at least one part"),
    ],
)
def test_what_breaks_the_data_model_is_refused_with_its_place(value: Any, text: str) -> None:
    message = v1.Message()
    with pytest.raises(InvalidAgentResponseError, match=text):
        add_parts(message.parts, value)
    assert not message.parts


@pytest.mark.requirement("BL-26")
def test_a_ready_made_part_with_nan_is_refused() -> None:
    part = v1.Part()
    part.data.struct_value.fields["x"].number_value = float("nan")
    with pytest.raises(InvalidAgentResponseError, match=r"parts\[0\]"):
        parts(part)


@pytest.mark.requirement("OP-SEND-19", "DATA-06")
def test_a_message_of_the_agent_is_complete() -> None:
    assert agent_message(None, "c", "t") is None
    made = agent_message("hi", "c", "t")
    assert made is not None and made.message_id and made.role == v1.ROLE_AGENT
    assert (made.context_id, made.task_id, made.parts[0].text) == ("c", "t", "hi")
    own = v1.Message(message_id="own", role=v1.ROLE_USER, task_id="other", parts=[v1.Part(text="x")])
    own.metadata["k"] = "v"
    made = agent_message(own, "c", "t")
    assert made is not None and (made.message_id, made.task_id, made.role) == ("own", "t", v1.ROLE_AGENT)
    assert made.metadata["k"] == "v" and len(made.parts) == 1
    assert own.task_id == "other"
