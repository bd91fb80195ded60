"""Whatever is said of a task, in whatever order: its fold is what a plain message, changed event by event, would be."""

import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from a2a_stubs import google, v1
from hypothesis import example, given, settings
from hypothesis import strategies as st

from a2a_grpc.tasks.state import Fold, ids_of, message_told, status_told
from a2a_grpc.tasks.store import Event, Scope, TaskRow
from a2a_grpc.tasks.told import First, Text, Texts, about_of

Step = tuple[str, Any]

UNKNOWN = bytes((0xFA, 0x3F, 1, 65))  # a field of some newer release
SIZES = [0, 1, 60, 100, 120, 127, 128, 300, 16_300, 16_383, 16_384]
YEAR_9999 = 253_402_300_799_999


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR, "a2a_grpc")  # chunks that begin an artifact are told


class Plain:
    """A task as one message, changed in place."""

    def __init__(self, keep: bool) -> None:
        self.keep, self.mark, self.task = keep, 0, v1.Task()

    def apply(self, payload: v1.StreamResponse) -> None:
        kind = payload.WhichOneof("payload")
        if kind == "task":
            self.task.CopyFrom(payload.task)
            self.mark = len(self.task.history)
        elif kind == "message":
            self.task.history.append(payload.message)
        elif kind == "status_update":
            if self.keep and self.task.status.HasField("message"):
                self.task.history.insert(self.mark, self.task.status.message)
            self.task.status.CopyFrom(payload.status_update.status)
            self.mark = len(self.task.history)
        elif kind == "artifact_update":
            self.grow(payload.artifact_update)

    def grow(self, update: v1.TaskArtifactUpdateEvent) -> None:
        chunk, kept = update.artifact, self.task.artifacts
        at = next((at for at, known in enumerate(kept) if known.artifact_id == chunk.artifact_id), None)
        if at is None:
            kept.append(chunk)
        elif not update.append:
            kept[at].CopyFrom(chunk)
        else:
            _append(kept[at], chunk)

    def stored(self) -> tuple[bytes, bytes]:
        """Two rows of a store, as every release before has written them."""
        self.mark = len(self.task.history)
        head, tail = v1.Task.FromString(self.task.SerializeToString()), v1.Task(artifacts=self.task.artifacts)
        head.ClearField("artifacts")
        return head.SerializeToString(), tail.SerializeToString()


def _append(known: v1.Artifact, chunk: v1.Artifact) -> None:
    for number, part in enumerate(chunk.parts):
        last = known.parts[-1] if known.parts and not number else None
        if last is not None and _goes_on(last, part):
            last.text += part.text
        else:
            known.parts.append(part)
    known.name, known.description = chunk.name or known.name, chunk.description or known.description
    if chunk.HasField("metadata"):
        known.metadata.MergeFrom(chunk.metadata)
    known.extensions.extend(uri for uri in chunk.extensions if uri not in known.extensions)


def _goes_on(last: v1.Part, part: v1.Part) -> bool:
    plain = all(one.WhichOneof("content") == "text" and not one.HasField("metadata") for one in (last, part))
    return plain and (last.media_type, last.filename) == (part.media_type, part.filename)


def _with_unknown(message: Any, more: bool) -> Any:
    return type(message).FromString(message.SerializeToString() + UNKNOWN) if more else message


TIMES = st.sampled_from([0, 1, 999, 1_000, 127_000, 128_000, 1_792_000_000_123, YEAR_9999]) | st.integers(0, YEAR_9999)
STRUCTS = st.none() | st.dictionaries(st.sampled_from(["", "n", "ä"]), st.booleans() | st.text(max_size=3), max_size=2)
TEXTS = st.sampled_from(SIZES).map(lambda size: "x" * size) | st.text(max_size=5)
IDS = st.sampled_from(["", "t", "c", "ä" * 70, "i" * 127, "i" * 128])
PARTS = st.builds(
    lambda text, about, media: v1.Part(text=text, metadata=about, media_type=media),
    TEXTS,
    STRUCTS,
    st.sampled_from(["", "", "text/html"]),
)
MESSAGES = st.builds(
    lambda ident, parts, about, more: _with_unknown(v1.Message(message_id=ident, parts=parts, metadata=about), more),
    IDS,
    st.lists(PARTS, max_size=2),
    STRUCTS,
    st.booleans(),
)
ABOUTS = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(["", "name"]),
        "description": st.text(max_size=3),
        "metadata": STRUCTS.filter(lambda about: about is not None),
        "extensions": st.just(["urn:x"]),
    },
)
STATES = st.integers(1, 8)
STATUSES = st.builds(
    lambda state, ms, words, more: _with_unknown(_status(state, ms, words), more),
    STATES,
    TIMES,
    st.none() | MESSAGES,
    st.booleans(),
)
ARTIFACTS = st.builds(
    lambda ident, parts, name, about, uris: v1.Artifact(
        artifact_id=ident, parts=parts, name=name, metadata=about, extensions=uris
    ),
    st.sampled_from(["", "a", "b"]),
    st.lists(PARTS, max_size=3),
    st.sampled_from(["", "", "name"]),
    STRUCTS,
    st.lists(st.sampled_from(["urn:x", "urn:y"]), max_size=2, unique=True),
)
TASKS = st.builds(
    lambda ident, context, status, history, artifacts, about, more: _with_unknown(
        v1.Task(id=ident, context_id=context, status=status, history=history, artifacts=artifacts, metadata=about), more
    ),
    IDS,
    IDS,
    st.none() | STATUSES,
    st.lists(MESSAGES, max_size=3),
    st.lists(ARTIFACTS, max_size=2, unique_by=lambda artifact: artifact.artifact_id),
    STRUCTS,
    st.booleans(),
)


def _step(name: str, *what: st.SearchStrategy[Any]) -> st.SearchStrategy[Step]:
    return st.tuples(st.just(name), st.tuples(*what))


OPENED = _step("open", MESSAGES, IDS, IDS, TIMES) | _step("task", TASKS)
LATER = st.one_of(
    _step("told", IDS, IDS, STATES, TIMES, st.none() | MESSAGES, STRUCTS),
    _step("status", STATUSES, STRUCTS),
    _step("said", MESSAGES),
    _step("message", MESSAGES),
    _step("chunk", ARTIFACTS, st.booleans()),
    _step("chunk", ARTIFACTS, st.just(True)),
    _step("text", IDS, st.sampled_from(["a", "b"]), st.sampled_from(["", "", "text/html"]), TEXTS, st.booleans()),
    _step("first", IDS, st.sampled_from(["a", "b"]), ABOUTS, st.sampled_from(["", "text/html"]), TEXTS, st.booleans()),
    _step("task", TASKS),
    st.sampled_from([("stored", ()), ("stored before", ()), ("again", ())]),
)


def _status(state: int, ms: int, words: v1.Message | None) -> v1.TaskStatus:
    time = google.Timestamp(seconds=ms // 1000, nanos=ms % 1000 * 1_000_000)
    return v1.TaskStatus(state=v1.TaskState.ValueType(state), timestamp=time, message=words)


def _opened(message: v1.Message, task_id: str, context_id: str, ms: int) -> v1.StreamResponse:
    status = _status(v1.TASK_STATE_SUBMITTED, ms, None)
    return v1.StreamResponse(task=v1.Task(id=task_id, context_id=context_id, status=status, history=[message]))


def _update(
    task_id: str, context_id: str, state: int, ms: int, words: v1.Message | None, about: Any
) -> v1.StreamResponse:
    status = _status(state, ms, words)
    update = v1.TaskStatusUpdateEvent(task_id=task_id, context_id=context_id, status=status, metadata=about)
    return v1.StreamResponse(status_update=update)


MEANT: dict[str, Callable[..., v1.StreamResponse]] = {
    "open": _opened,
    "told": _update,
    "said": lambda message: v1.StreamResponse(message=message),
    "status": lambda status, about: v1.StreamResponse(status_update={"status": status, "metadata": about}),
    "message": lambda message: v1.StreamResponse(message=message),
    "chunk": lambda artifact, append: v1.StreamResponse(artifact_update={"artifact": artifact, "append": append}),
    "text": lambda task_id, name, media, text, last: v1.StreamResponse(
        artifact_update={
            "task_id": task_id,
            "context_id": "c",
            "artifact": {"artifact_id": name, "parts": [{"text": text, "media_type": media}]},
            "append": True,
            "last_chunk": last,
        }
    ),
    "first": lambda task_id, name, about, media, text, last: v1.StreamResponse(
        artifact_update={
            "task_id": task_id,
            "context_id": "c",
            "artifact": {"artifact_id": name, "parts": [{"text": text, "media_type": media}], **about},
            "last_chunk": last,
        }
    ),
    "task": lambda task: v1.StreamResponse(task=task),
}
"""What each step means, as a message."""


def _event(fold: Fold, kind: str, number: int, what: Any) -> Event:
    """The event of a step: one that writes its own bytes, or one that is a message."""
    if kind == "open":
        message, task_id, context_id, at = what
        return fold.open(message, ids_of(task_id, context_id), at)
    if kind == "told":
        task_id, context_id, state, at, words, about = what
        more = v1.Task(metadata=about).metadata if about is not None else None
        return status_told(number, ids_of(task_id, context_id), state, at, words, more)
    if kind == "text":
        task_id, name, media, text, last = what
        written = Text(Texts(task_id, "c", name, media), text, last)
        return Event(number, None, written.body, written)
    if kind == "first":
        task_id, name, about, media, text, last = what
        begun = First(ids_of(task_id, "c"), name, about_of(about), text, media, last)
        return Event(number, None, begun.body, begun)
    return message_told(number, *what) if kind == "said" else Event(number, MEANT[kind](*what))


def _folds(steps: list[Step], keep: bool) -> Iterator[tuple[Fold, Plain]]:
    """The fold of these steps beside its judge, after each."""
    fold, plain, number, last = Fold(keep), Plain(keep), 0, None
    for kind, what in steps:
        if kind.startswith("stored"):
            head, tail = (fold.head(), fold.artifacts()) if kind == "stored" else plain.stored()
            plain.stored()
            fold = Fold.of(TaskRow(Scope("", "", ""), "t", "c", 0, 0, 0, number, number, head, tail), keep)
        elif kind == "again":
            if last is not None:
                fold.apply(last)
        else:
            number += 1
            last, meant = _event(fold, kind, number, what), MEANT[kind](*what)
            assert last.payload == v1.StreamResponse.FromString(last.body) == meant
            fold.apply(last)
            plain.apply(meant)
        assert fold.sequence == number
        yield fold, plain


def _alike(fold: Fold, plain: Plain) -> None:
    task = plain.task
    assert fold.state == task.status.state
    assert list(fold.history) == list(task.history)
    assert fold.task() == task
    assert fold.task(into=v1.SendMessageResponse().task) == task
    assert v1.Task.FromString(fold.head() + fold.artifacts()) == task  # as every release reads a row
    bare = v1.Task.FromString(task.SerializeToString())
    bare.ClearField("artifacts")
    assert fold.task(artifacts=False) == v1.Task.FromString(fold.head()) == bare
    bare.ClearField("history")
    assert fold.task(artifacts=False, history=False) == bare


@pytest.mark.requirement("STREAM-07", "STREAM-09", "HIST-04", "BL-15")
@pytest.mark.parametrize("keep", [True, False])
@settings(max_examples=100, deadline=None)
@example(  # a row of an earlier release without ids, which has more behind its history
    first=("task", (v1.Task(status={"state": 1}, history=[{"message_id": "u"}], metadata={"n": 1}),)),
    later=[("stored before", ()), ("said", (v1.Message(message_id="v"),)), ("stored", ())],
)
@example(  # a question that is stored stands behind what was said before it
    first=("open", (v1.Message(message_id="u"), "t", "c", 0)),
    later=[
        ("told", ("t", "c", v1.TASK_STATE_INPUT_REQUIRED, 1, v1.Message(message_id="q"), None)),
        ("stored", ()),
        ("told", ("t", "c", v1.TASK_STATE_WORKING, 2, None, None)),
        ("said", (v1.Message(message_id="v"),)),
    ],
)
@given(first=OPENED, later=st.lists(LATER, max_size=12))
def test_a_task_is_the_same_however_it_is_kept(keep: bool, first: Step, later: list[Step]) -> None:
    for fold, plain in _folds([first, *later], keep):
        _alike(fold, plain)


@pytest.mark.requirement("STREAM-09")
@settings(max_examples=100, deadline=None)
@given(first=OPENED, later=st.lists(LATER, max_size=12))
def test_a_task_that_is_only_looked_at_in_the_end_is_the_same(first: Step, later: list[Step]) -> None:
    [*_, (fold, plain)] = _folds([first, *later], keep=True)
    _alike(fold, plain)
