"""Streams for v0.3 readers: which event is final, and what closes a stream that has none."""

from collections.abc import Iterable
from typing import Any

import pytest
from a2a_stubs import v03, v1

from a2a_grpc import errors
from a2a_grpc import v03 as old
from a2a_grpc.protojson import decode

STREAM, FOLLOW = "SendStreamingMessage", "SubscribeToTask"
MESSAGE = {"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "a"}]}}
ARTIFACT = {
    "artifactUpdate": {"taskId": "t", "contextId": "c", "artifact": {"artifactId": "a", "parts": [{"text": "x"}]}}
}


def task(state: str) -> dict[str, Any]:
    """A snapshot."""
    return {"task": {"id": "t", "contextId": "c", "status": {"state": f"TASK_STATE_{state}"}}}


def status(state: str) -> dict[str, Any]:
    """A status event."""
    return {"statusUpdate": {"taskId": "t", "contextId": "c", "status": {"state": f"TASK_STATE_{state}"}}}


def finals(down: old.StreamDown, events: Iterable[Any]) -> list[Any]:
    """What a v0.3 reader sees: the `final` of each status event, the kind of any other."""
    shown = [value for event in events for value in down.event(decode(v1.StreamResponse, event))]
    return [value.get("final", value["kind"]) for value in shown + down.finish()]


@pytest.mark.requirement("V03-06", "V03-07", "V03-29", "V03-39", "L-15", "L-31", "I-53", "I-55")
@pytest.mark.parametrize(
    ("operation", "events", "seen"),
    [
        (STREAM, [MESSAGE], ["message"]),
        (STREAM, [], []),
        (STREAM, [task("SUBMITTED"), status("WORKING"), status("COMPLETED")], ["task", False, True]),
        (STREAM, [task("SUBMITTED"), status("FAILED")], ["task", True]),
        (STREAM, [task("SUBMITTED"), status("CANCELED")], ["task", True]),
        (STREAM, [task("SUBMITTED"), status("REJECTED")], ["task", True]),
        (STREAM, [task("SUBMITTED"), status("INPUT_REQUIRED")], ["task", True]),
        (
            STREAM,
            [task("SUBMITTED"), status("AUTH_REQUIRED"), status("WORKING"), status("COMPLETED")],
            ["task", False, False, True],
        ),
        (STREAM, [task("WORKING"), status("AUTH_REQUIRED")], ["task", False, True]),
        (STREAM, [task("WORKING"), ARTIFACT], ["task", "artifact-update", True]),
        (STREAM, [ARTIFACT], ["artifact-update"]),
        (STREAM, [task("COMPLETED")], ["task", True]),
        (STREAM, [task("INPUT_REQUIRED")], ["task", True]),
        (FOLLOW, [task("COMPLETED")], ["task"]),
        (FOLLOW, [task("WORKING"), ARTIFACT, status("COMPLETED")], ["task", "artifact-update", True]),
        (FOLLOW, [task("WORKING"), status("INPUT_REQUIRED"), status("WORKING")], ["task", False, False, True]),
        (FOLLOW, [task("INPUT_REQUIRED"), status("COMPLETED")], ["task", True]),
        (FOLLOW, [task("WORKING"), task("COMPLETED")], ["task", "task", True]),
        (FOLLOW, [status("COMPLETED")], [True]),
    ],
)
def test_final_is_told_once_and_last(operation: str, events: list[Any], seen: list[Any]) -> None:
    assert finals(old.StreamDown(operation), events) == seen


@pytest.mark.requirement("V03-07", "I-06")
def test_input_required_is_not_final_where_the_stream_goes_on() -> None:
    down = old.StreamDown(STREAM, closes_on_input=False)
    assert finals(down, [task("WORKING"), status("INPUT_REQUIRED"), status("COMPLETED")]) == ["task", False, True]


@pytest.mark.requirement("L-31", "V03-06")
@pytest.mark.parametrize("rest", [False, True])
def test_the_closing_event_repeats_the_last_status(rest: bool) -> None:
    event = decode(v1.StreamResponse, task("WORKING"))
    event.task.status.message.CopyFrom(decode(v1.StreamResponse, MESSAGE).message)
    down = old.StreamDown(STREAM, rest=rest)
    down.event(event)
    (closing,) = down.finish()
    closing = closing["statusUpdate"] if rest else closing
    assert (closing["taskId"], closing["contextId"], closing["final"]) == ("t", "c", True)
    assert closing["status"]["state"] == "working"
    assert closing["status"]["message"]["parts"] == [{"kind": "text", "text": "a"}]
    assert down.finish() == []


@pytest.mark.requirement("V03-26", "V03-22", "V03-07")
def test_the_proto_says_final_too() -> None:
    down = old.StreamDown(STREAM, old.P03)
    (shown,) = down.event(decode(v1.StreamResponse, status("CANCELED")))
    assert isinstance(shown, v03.StreamResponse)
    assert (shown.status_update.final, shown.status_update.status.state) == (True, v03.TASK_STATE_CANCELLED)
    rest = old.StreamDown(STREAM, old.P03, rest=True)
    (value,) = rest.event(decode(v1.StreamResponse, status("CANCELED")))
    assert value["statusUpdate"]["final"] is True
    assert value["statusUpdate"]["status"] == {"state": "TASK_STATE_CANCELLED"}


@pytest.mark.requirement("I-42", "V03-21")
@pytest.mark.parametrize(
    ("event", "member"),
    [
        (MESSAGE, "message"),
        (task("WORKING"), "task"),
        (status("WORKING"), "statusUpdate"),
        (ARTIFACT, "artifactUpdate"),
    ],
)
def test_rest_wraps_each_event_in_the_name_of_its_kind(event: Any, member: str) -> None:
    for dialect in (old.J03, old.P03):
        (value,) = old.StreamDown(STREAM, dialect, rest=True).event(decode(v1.StreamResponse, event))
        assert [*value] == [member]
        assert ("kind" in value[member]) == (dialect == old.J03)
        assert old.up_event(value) == decode(v1.StreamResponse, event)


@pytest.mark.requirement("L-17")
def test_an_event_without_context_is_given_the_one_of_its_task() -> None:
    event = {"kind": "status-update", "taskId": "t", "status": {"state": "working"}}
    assert old.up_event(event, "c").status_update.context_id == "c"
    named = {**event, "contextId": "own"}
    assert old.up_event(named, "c").status_update.context_id == "own"


@pytest.mark.requirement("L-12")
def test_an_event_that_no_agent_may_send_is_an_error() -> None:
    event = decode(v1.StreamResponse, ARTIFACT)
    event.artifact_update.artifact.parts[0].ClearField("text")
    for dialect in (old.J03, old.P03):
        with pytest.raises(errors.InvalidAgentResponseError):
            old.StreamDown(STREAM, dialect).event(event)
    with pytest.raises(errors.InvalidAgentResponseError):
        old.up_event({"kind": "poem"})
