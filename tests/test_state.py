"""The table of states, row by row, and the fold of events."""

import logging
from typing import Any

import pytest
from a2a_stubs import google, v1

from a2a_grpc.tasks.state import (
    ENDS,
    INTERRUPTED,
    TERMINAL,
    TRANSITIONS,
    Fold,
    ids_of,
    message_told,
    set_status,
    state_after,
    state_name,
    state_of,
    status_event,
    status_ms,
    status_of,
    status_told,
)
from a2a_grpc.tasks.store import Event, Scope, TaskRow
from a2a_grpc.tasks.told import First, Text, Texts, about_of

STATES = range(1, 9)
S, W, C, F, X, N, R, A = STATES  # in the order of the proto: submitted, working ... input and auth required
ALLOWED = {
    S: {W, C, F, X, N, R, A},
    W: {W, C, F, X, N, R, A},
    N: {W, F, X, R},
    A: {W, F, X, R},
    C: set(),
    F: set(),
    X: set(),
    R: set(),
}


@pytest.mark.requirement("DATA-11", "OP-CANCEL-08")
@pytest.mark.parametrize("before", STATES)
@pytest.mark.parametrize("after", STATES)
def test_each_pair_of_states_is_allowed_or_refused(before: int, after: int) -> None:
    assert (after in TRANSITIONS[before]) == (after in ALLOWED[before])


@pytest.mark.requirement("DATA-08", "DATA-11")
def test_the_table_speaks_of_every_state_but_the_unspecified_one() -> None:
    numbers = {value.number for value in v1.TaskState.DESCRIPTOR.values}
    assert set(TRANSITIONS) == numbers - {0}
    assert all(0 not in row for row in TRANSITIONS.values())
    assert {state for state, row in TRANSITIONS.items() if not row} == TERMINAL
    assert ENDS == TERMINAL | INTERRUPTED and not TERMINAL & INTERRUPTED
    assert state_name(X) == "TASK_STATE_CANCELED"


def fold(*payloads: v1.StreamResponse, keep: bool = True) -> Fold:
    made = Fold(keep)
    for number, payload in enumerate(payloads, 1):
        made.apply(Event(number, payload))
    return made


def opened(*texts: str) -> v1.StreamResponse:
    task = v1.Task(id="t", context_id="c", history=[said(text).message for text in texts])
    set_status(task.status, S, 1000)
    return v1.StreamResponse(task=task)


def said(text: str) -> v1.StreamResponse:
    return v1.StreamResponse(message=v1.Message(message_id=text, parts=[v1.Part(text=text)]))


def chunk(text: str, append: bool = True, name: str = "a", **part: str) -> v1.StreamResponse:
    artifact = v1.Artifact(artifact_id=name, parts=[v1.Part(text=text, **part)])
    return v1.StreamResponse(artifact_update=v1.TaskArtifactUpdateEvent(artifact=artifact, append=append))


def status(state: int, text: str = "", at: int = 2000) -> v1.StreamResponse:
    return status_event("t", "c", state, at, said(text).message if text else None)


def ids(task: v1.Task) -> list[str]:
    return [message.message_id for message in task.history]


@pytest.mark.requirement("STREAM-07", "STREAM-09", "BL-15")
def test_streamed_text_is_kept_once_and_in_one_part() -> None:
    made = fold(opened(), chunk("Hel", append=False), chunk("lo, "))
    assert made.task().artifacts[0].parts[0].text == "Hello, "
    made.apply(Event(4, chunk("wor")))
    made.apply(Event(5, chunk("ld")))
    assert [part.text for part in made.task().artifacts[0].parts] == ["Hello, world"]
    made.apply(Event(6, chunk("all anew", append=False)))
    assert [part.text for part in made.task().artifacts[0].parts] == ["all anew"]


@pytest.mark.requirement("STREAM-07", "DATA-05")
def test_parts_that_differ_in_kind_stay_apart() -> None:
    made = fold(opened(), chunk("a", append=False), chunk("b", media_type="text/html"), chunk("c", filename="f"))
    data = v1.Part()
    data.data.number_value = 1
    made.apply(
        Event(5, v1.StreamResponse(artifact_update={"artifact": {"artifact_id": "a", "parts": [data]}, "append": True}))
    )
    made.apply(Event(6, chunk("d")))
    parts = made.task().artifacts[0].parts
    assert [part.WhichOneof("content") for part in parts] == ["text", "text", "text", "data", "text"]
    assert [part.text for part in parts] == ["a", "b", "c", "", "d"]


@pytest.mark.requirement("STREAM-07")
def test_what_a_chunk_says_about_its_artifact_is_taken_over() -> None:
    made = fold(opened(), chunk("a", append=False))
    update = chunk("b")
    update.artifact_update.artifact.name = "answer"
    update.artifact_update.artifact.description = "all of it"
    update.artifact_update.artifact.metadata["n"] = 1
    update.artifact_update.artifact.extensions.append("urn:x")
    made.apply(Event(3, update))
    made.apply(Event(4, update))
    artifact = made.task().artifacts[0]
    assert (artifact.name, artifact.description, artifact.metadata["n"]) == ("answer", "all of it", 1)
    assert list(artifact.extensions) == ["urn:x"] and artifact.parts[0].text == "abb"


@pytest.mark.requirement("I-68", "BL-15")
def test_a_chunk_for_an_unknown_artifact_begins_it_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "a2a_grpc"):
        made = fold(opened(), chunk("x", append=True))
    assert made.task().artifacts[0].parts[0].text == "x"
    assert "unknown artifact a" in caplog.text


@pytest.mark.requirement("I-67", "HIST-04", "HIST-06")
def test_a_replaced_status_message_stands_in_the_history_where_it_was_said() -> None:
    made = fold(opened("u1"), status(W, "s1"), said("u2"), status(W, "s2"), status(N, "s3"), status(W), said("u3"))
    assert ids(made.task()) == ["u1", "s1", "u2", "s2", "s3", "u3"]
    assert not made.task().status.HasField("message")
    kept_not = fold(opened("u1"), status(W, "s1"), said("u2"), status(W, "s2"), keep=False)
    assert ids(kept_not.task()) == ["u1", "u2"]


@pytest.mark.requirement("STREAM-09")
@pytest.mark.parametrize("cut", range(8))
def test_a_stored_snapshot_goes_on_as_if_it_had_never_been_stored(cut: int) -> None:
    payloads = [opened("u1"), status(W, "s1"), chunk("a", append=False), chunk("b"), status(N, "s2")]
    payloads += [status(W), said("u2"), chunk("c", name="z", append=False), chunk("d"), status(C, "s3", 3123)]
    whole, first = fold(*payloads), fold(*payloads[:cut])
    row = TaskRow(Scope("", "", ""), "t", "c", 0, 0, 0, cut, cut, first.head(), first.artifacts())
    second = Fold.of(row)
    for number, payload in enumerate(payloads, 1):  # those before the cut are passed over
        second.apply(Event(number, payload))
    assert v1.Task.FromString(whole.head() + whole.artifacts()) == whole.task()
    assert second.task().artifacts == whole.task().artifacts
    assert second.task().status == whole.task().status
    assert status_ms(second.task().status) == 3123


def _resumed(head: bytes) -> Fold:
    return Fold.of(TaskRow(Scope("", "", ""), "t", "c", 0, 0, 0, 7, 7, head, b""))


LONG = v1.Message(message_id="long", parts=[v1.Part(text="x" * size) for size in (1, 127, 128, 20_000)])


@pytest.mark.requirement("STREAM-09", "HIST-04")
@pytest.mark.parametrize(
    "task",
    [
        v1.Task(),
        v1.Task(id="t", context_id="c"),
        v1.Task(id="t", context_id="c" * 300, history=[LONG, said("u2").message]),
        v1.Task(id="t", status=v1.TaskStatus(state=v1.TASK_STATE_WORKING, message=LONG)),
        v1.Task(id="t", context_id="c", status=v1.TaskStatus(), metadata={"n": 1}, history=[LONG]),
        v1.Task.FromString(v1.Task(id="t", history=[LONG]).SerializeToString() + bytes((0xFA, 0x3F, 1, 65))),
    ],
    ids=["empty", "ids", "history", "status", "metadata", "unknown"],
)
def test_a_snapshot_of_any_release_goes_on_and_loses_nothing(task: v1.Task) -> None:
    first = _resumed(task.SerializeToString())  # as every other writer of the message does it
    assert first.task() == v1.Task.FromString(first.head()) == task
    second = _resumed(first.head())
    assert second.task() == task and list(second.history) == list(task.history)
    assert second.state == task.status.state
    for made in (first, second):
        made.apply(Event(8, said("u9")))
        made.apply(Event(9, status(C, "done", 3123)))
        assert (
            ids(made.task())[-1] == "u9" if task.status.message == v1.Message() else LONG.message_id in ids(made.task())
        )
        bare, whole = made.task(history=False), made.task()
        assert not bare.history and len(whole.history) > len(task.history)
        whole.ClearField("history")
        assert bare == whole
    assert first.head() == second.head()


@pytest.mark.requirement("STREAM-09", "LIST-18")
@pytest.mark.parametrize("at", [0, 999, 1_000, 1_792_000_000_123])
@pytest.mark.parametrize("message", [LONG, said("u1").message], ids=["long", "short"])
def test_the_task_that_a_message_makes_is_what_its_first_event_says(message: v1.Message, at: int) -> None:
    sent = v1.Message(task_id="t", context_id="c" * 200)
    sent.MergeFrom(message)
    made = Fold()
    event = made.open(sent, ids_of(sent.task_id, sent.context_id), at)
    told = event.payload.task
    assert made.task() == told and fold(event.payload).task() == told
    assert (told.id, told.context_id, told.history[0]) == ("t", "c" * 200, sent)
    assert (told.status.state, status_ms(told.status), told.status.HasField("message")) == (S, at, False)
    made.apply(event)  # which it has
    made.apply(Event(2, status(W, "s1")))
    assert ids(made.task()) == [sent.message_id] and made.sequence == 2


def _update(state: int, message: v1.Message | None, metadata: google.Struct | None, at: int) -> v1.StreamResponse:
    made = status_event("t", "c" * 200, state, at, message)
    if metadata is not None:
        made.status_update.metadata.CopyFrom(metadata)
    return made


def _told() -> list[tuple[Event, v1.StreamResponse]]:
    """Events made without a message, each beside the message that it stands for; numbers begin at 2."""
    named, about = ids_of("t", "c" * 200), google.Struct()
    about["n"] = 1
    statuses = [
        (W, None, None, 0),
        (W, LONG, about, 1_000),
        (N, v1.Message(), None, 999),
        (W, None, about, 1_792_000_000_123),
    ]
    made = [
        *[
            (status_told(0, named, state, at, words, more), _update(state, words, more, at))
            for state, words, more, at in statuses
        ],
        (message_told(0, LONG), v1.StreamResponse(message=LONG)),
        (status_told(0, named, C, 5_000, said("end").message), _update(C, said("end").message, None, 5_000)),
    ]
    return [(Event(number, None, event.body, event.told), told) for number, (event, told) in enumerate(made, 2)]


def _chunk(name: str, part: v1.Part, append: bool = True, last: bool = False) -> v1.StreamResponse:
    artifact = v1.Artifact(artifact_id=name, parts=[part])
    update = v1.TaskArtifactUpdateEvent(
        task_id="t", context_id="c" * 200, artifact=artifact, append=append, last_chunk=last
    )
    return v1.StreamResponse(artifact_update=update)


@pytest.mark.requirement("STREAM-07", "STREAM-09")
@pytest.mark.parametrize("before", [v1.Part(text="x"), v1.Part(raw=b"x"), v1.Part(text="x", media_type="text/html")])
@pytest.mark.parametrize("media_type", ["", "text/html"])
@pytest.mark.parametrize("size", [0, 1, 100, 127, 128, 16_384, 3_000_000])
def test_a_text_that_goes_on_is_the_same_event_as_its_message(before: v1.Part, media_type: str, size: int) -> None:
    texts = Texts("t", "c" * 200, "a", media_type)
    first = opened("u1"), _chunk("a", before, append=False)
    quick, slow = fold(*first), fold(*first)
    for number, (text, last) in enumerate([("ä" * size, False), ("", False), ("end", True)], 3):
        written = Text(texts, text, last)
        event, meant = Event(number, None, written.body, written), _chunk("a", v1.Part(text=text), last=last)
        meant.artifact_update.artifact.parts[0].media_type = media_type
        assert event.body == meant.SerializeToString() and event.payload == meant
        assert state_after(event) == state_after(Event(number, None, event.body)) == state_of(meant) == 0
        quick.apply(event)
        slow.apply(Event(number, meant))
        assert quick.task() == slow.task() and quick.artifacts() == slow.artifacts()


@pytest.mark.requirement("STREAM-07", "STREAM-09")
@pytest.mark.parametrize("about", [{}, {"name": "n", "description": "ä" * 200, "extensions": ["urn:x"]}])
@pytest.mark.parametrize("media_type", ["", "text/html"])
@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("text", ["", "x", "\0", "ä" * 64, "😀" * 5_000, "x" * 3_000_000])
def test_a_text_that_begins_an_artifact_is_the_same_event_as_its_message(
    about: dict[str, Any], media_type: str, last: bool, text: str
) -> None:
    first = opened("u1")
    quick, slow = fold(first), fold(first)
    begun = First(ids_of("t", "c" * 200), "a", about_of(about), text, media_type, last)
    event, meant = Event(2, None, begun.body, begun), _chunk("a", v1.Part(text=text), append=False, last=last)
    meant.artifact_update.artifact.parts[0].media_type = media_type
    meant.artifact_update.artifact.MergeFrom(v1.Artifact(**about))
    assert event.body == meant.SerializeToString() and event.payload == meant
    assert state_after(event) == state_after(Event(2, None, event.body)) == state_of(meant) == 0
    quick.apply(event)
    slow.apply(Event(2, meant))
    assert quick.task() == slow.task() and quick.artifacts() == slow.artifacts()
    written = Text(Texts("t", "c" * 200, "a", ""), " more", False)
    for number, later in enumerate([chunk("a"), chunk("b", name="b"), chunk("new", append=False)], 3):
        for one in (quick, slow):
            one.apply(Event(2 * number, later))
            one.apply(Event(2 * number + 1, None, written.body, written))
        assert quick.task() == slow.task() and quick.artifacts() == slow.artifacts()


@pytest.mark.requirement("STREAM-07", "STREAM-09", "LIST-18")
@pytest.mark.parametrize("keep", [True, False])
def test_what_is_told_without_a_message_is_the_same_as_with_one(keep: bool) -> None:
    first = opened("u1")
    quick, slow = fold(first, keep=keep), fold(first, keep=keep)
    for event, told in _told():
        assert event.body == told.SerializeToString() and event.payload == told
        assert event.told is not None and event.told.state == state_of(told)
        assert state_after(event) == state_after(Event(event.sequence, None, event.body)) == state_of(told)
        if (now := status_of(told)) is not None:
            assert event.told.at_ms == status_ms(now)
        quick.apply(event)
        slow.apply(Event(event.sequence, told))
        assert quick.task() == slow.task() and quick.state == slow.state
        assert quick.head() == slow.head() and quick.artifacts() == slow.artifacts()


@pytest.mark.requirement("HIST-05")
def test_a_task_that_was_looked_at_is_the_viewers_own() -> None:
    made = fold(opened("u1"), chunk("a", append=False))
    task = made.task()
    task.history[0].message_id = "other"
    task.artifacts[0].parts[0].text = "other"
    del task.history[:]
    assert ids(made.task()) == ["u1"] and made.task().artifacts[0].parts[0].text == "a"
    assert not made.task(artifacts=False).artifacts


@pytest.mark.requirement("BL-16")
def test_joining_text_costs_what_the_text_weighs() -> None:
    made = fold(opened(), chunk("", append=False))
    for number in range(3, 20_003):
        made.apply(Event(number, chunk("12345")))
    artifact = v1.Task.FromString(made.artifacts()).artifacts[0]
    assert len(artifact.parts) == 1 and artifact.parts[0].text == "12345" * 20_000


def test_an_event_tells_the_state_it_brings() -> None:
    assert state_of(opened()) == S and state_of(status(X)) == X
    assert state_of(chunk("")) == state_of(said("")) == 0
