"""The JSON of v0.3, written in one pass, against the long way: a walk over the JSON of v1.0, or a message of v0.3."""

from typing import Any

import pytest
from a2a_stubs import v1
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_grpc import v03 as old
from a2a_grpc.errors import InternalError, InvalidAgentResponseError
from a2a_grpc.protojson import decode, dumps, encode, loads
from a2a_grpc.v03_json import COMPAT, MARKER, PLAIN_TYPES
from a2a_grpc.v03_names import ROLES, STATES
from a2a_grpc.v03_proto import How, down
from a2a_grpc.v03_write import as_json, as_proto_json
from tests.test_protojson_properties import members_of, text

FEW = settings(max_examples=25, deadline=None)


def walked(value: Any, of: Any) -> Any:
    """The v0.3 JSON of a v1.0 JSON value of a type, made member by member after the mapping's tables."""
    made: dict[str, Any] = {}
    if of is v1.Part:
        return walked_part(value)
    for name, given_value in value.items():
        field = of.DESCRIPTOR.fields_by_camelcase_name[name]
        kind = field.message_type and getattr(v1, field.message_type.name, None)
        many = isinstance(given_value, list)
        if kind and not field.message_type.file.package.startswith("google"):
            given_value = [walked(item, kind) for item in given_value] if many else walked(given_value, kind)
        made[name] = STATES[given_value] if name == "state" else ROLES[given_value] if name == "role" else given_value
    status = made.get("status", {"state": "unknown"})
    made |= {
        v1.Task: {"kind": "task", "contextId": value.get("contextId") or value.get("id"), "status": status},
        v1.Message: {"kind": "message"},
        v1.TaskStatusUpdateEvent: {"kind": "status-update", "final": False, "status": status},
        v1.TaskArtifactUpdateEvent: {
            "kind": "artifact-update",
            "append": value.get("append", False),
            "lastChunk": value.get("lastChunk", False),
        },
    }.get(of, {})
    return made


def walked_part(value: Any) -> Any:
    """The v0.3 JSON of a v1.0 JSON part."""
    metadata = dict(value.get("metadata", {}))
    extras = {name: value[name] for name in ("mediaType", "filename") if name in value}
    made: dict[str, Any]
    if "raw" in value or "url" in value:
        file = {"bytes": value["raw"]} if "raw" in value else {"uri": value["url"]}
        names = {"mediaType": "mimeType", "filename": "name"}
        made = {"kind": "file", "file": file | {names[name]: told for name, told in extras.items()}}
    else:
        kind = "text" if "text" in value else "data"
        content = value[kind]
        if kind == "data" and not isinstance(content, dict):
            content, metadata[COMPAT] = {"value": content}, True
        made = {"kind": kind, kind: content}
        if extras.get("mediaType") == PLAIN_TYPES[kind]:
            del extras["mediaType"]
        if extras:
            metadata[MARKER] = extras
    return made | ({"metadata": metadata} if metadata or "metadata" in value else {})


def complete(message: Any) -> bool:
    """Whether it holds nothing that an agent must not produce."""
    if isinstance(message, v1.TaskArtifactUpdateEvent) and not message.HasField("artifact"):
        return False
    try:
        down(message)
    except (InternalError, InvalidAgentResponseError):
        return False
    return True


ANSWERS = (v1.Task, v1.SendMessageResponse, v1.StreamResponse)


@pytest.mark.requirement("V03-03", "V03-06", "V03-16", "L-05", "L-06", "L-07", "L-16")
@pytest.mark.parametrize("cls", [v1.Task, v1.Message, v1.TaskStatusUpdateEvent, v1.TaskArtifactUpdateEvent, v1.Part])
@FEW
@given(data=st.data())
def test_v03_json_is_that_of_v1_member_by_member(cls: Any, data: Any) -> None:
    message = decode(cls, data.draw(members_of(cls.DESCRIPTOR)))
    if complete(message):
        before = message.SerializeToString(deterministic=True)
        assert as_json(message) == walked(encode(message), cls)
        assert message.SerializeToString(deterministic=True) == before


@pytest.mark.requirement("V03-21", "V03-22", "L-27")
@pytest.mark.parametrize("cls", ANSWERS)
@pytest.mark.parametrize("base64_bytes", [False, True])
@FEW
@given(data=st.data())
def test_rest_answers_are_the_messages_of_the_v03_proto(cls: Any, base64_bytes: bool, data: Any) -> None:
    message = decode(cls, data.draw(members_of(cls.DESCRIPTOR)))
    if complete(message):
        assert as_proto_json(message, base64_bytes) == encode(down(message, How(base64_bytes)))


KEYS = st.sampled_from([MARKER, COMPAT, "referenceTaskIds", "mediaType"])
MARKED = st.dictionaries(KEYS, st.none() | text | st.dictionaries(KEYS, st.lists(text, max_size=2) | text, max_size=3))


@pytest.mark.requirement("L-05", "L-06", "L-27")
@given(metadata=MARKED, references=st.lists(text, max_size=2), more=st.sampled_from(["", "text/plain", "a/b"]))
@settings(max_examples=150, deadline=None)
def test_what_already_stands_under_the_marker_is_met_alike_by_both_ways(
    metadata: Any, references: list[str], more: str
) -> None:
    part = {"text": "a", "metadata": metadata, "mediaType": more, "filename": more}
    told = {"metadata": metadata, "referenceTaskIds": references, "extensions": ["x"]}
    value = {"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [part, {"data": [1], **part}], **told}}
    del value["message"]["parts"][1]["text"]
    answer = decode(v1.SendMessageResponse, value)
    assert as_proto_json(answer) == encode(down(answer))


@pytest.mark.requirement("L-12")
@pytest.mark.parametrize("message", [v1.Message(message_id="m"), v1.Message(role=v1.ROLE_AGENT, parts=[v1.Part()])])
def test_what_an_agent_must_not_produce_has_no_form_in_any_dialect(message: v1.Message) -> None:
    answer = v1.SendMessageResponse(message=message)
    seen = set()
    for show in (old.down_result, old.down_rest, old.down_message):
        with pytest.raises((InternalError, InvalidAgentResponseError)) as caught:
            show(answer)
        seen.add((type(caught.value), caught.value.message))
    assert len(seen) == 1


@pytest.mark.requirement("ERR-06")
def test_a_number_without_json_is_named_in_the_words_of_the_dialect() -> None:
    message = v1.Message(message_id="m", role=v1.ROLE_AGENT, parts=[v1.Part(text="a")])
    message.parts[0].metadata.fields["x"].number_value = float("inf")
    answer = v1.SendMessageResponse(message=message)
    for show, place in ((old.down_result, "parts[0]"), (old.down_rest, "message.content[0]")):
        with pytest.raises(InvalidAgentResponseError) as caught:
            show(answer)
        assert caught.value.violations[0].field == f"{place}.metadata.x"


# -- what is kept for the next reader


def task(state: Any = v1.TASK_STATE_COMPLETED) -> v1.Task:
    """A task with something to translate."""
    raw = v1.Part(raw=b"hi", media_type="a/b")
    said = v1.Message(message_id="m", role=v1.ROLE_USER, parts=[v1.Part(text="a", filename="f"), raw])
    return v1.Task(id="t", context_id="c", status=v1.TaskStatus(state=state), history=[said])


@pytest.mark.requirement("V03-16", "V03-21", "V03-27")
def test_a_task_that_is_read_again_is_the_same_and_a_changed_one_is_not_taken_for_it() -> None:
    for state in (v1.TASK_STATE_WORKING, v1.TASK_STATE_COMPLETED, v1.TASK_STATE_WORKING):
        for _ in range(3):
            read = task(state)
            assert loads(dumps(old.down_result(read, reads=True))) == old.down_result(read)
            for base64_bytes in (False, True):
                shown = old.down_rest(read, base64_bytes=base64_bytes, reads=True)
                assert loads(dumps(shown)) == old.down_rest(read, base64_bytes=base64_bytes)
                assert old.down_message(read, base64_bytes, reads=True) == old.down_message(read, base64_bytes)


@pytest.mark.requirement("V03-27")
def test_who_changes_the_message_of_a_read_task_changes_it_for_nobody_else() -> None:
    first = old.down_message(task(), reads=True)
    whole = type(first).FromString(first.SerializeToString())
    for _ in range(2):
        first.history[0].content[0].text = "changed"
        first = old.down_message(task(), reads=True)
        assert first == whole
