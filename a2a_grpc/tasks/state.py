"""The states of a task, and the fold of its events.

Laws: pure, no I/O, no clock. A task is the fold of its events and nothing else (STREAM-09): whoever needs a task
folds. Which state may follow which is the table `TRANSITIONS`. Folding an event costs what the event weighs, never
what the task weighs; text is joined only when somebody looks.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from a2a_stubs import google, v1
from google.protobuf.message import Message

from a2a_grpc.tasks.store import Event, TaskRow

log: Final = logging.getLogger("a2a_grpc")

TERMINAL: Final = frozenset(
    {v1.TASK_STATE_COMPLETED, v1.TASK_STATE_FAILED, v1.TASK_STATE_CANCELED, v1.TASK_STATE_REJECTED}
)
"""States that never change again (DATA-11)."""

INTERRUPTED: Final = frozenset({v1.TASK_STATE_INPUT_REQUIRED, v1.TASK_STATE_AUTH_REQUIRED})
"""States in which the task waits for its caller; the next message goes on with it."""

ENDS: Final = TERMINAL | INTERRUPTED
"""States in which nobody waits for more of a turn; in none of them does one run, but where it waits for what a caller
authorises elsewhere."""

_FROM_WAITING: Final = frozenset(
    {v1.TASK_STATE_WORKING, v1.TASK_STATE_FAILED, v1.TASK_STATE_CANCELED, v1.TASK_STATE_REJECTED}
)

TRANSITIONS: Final[Mapping[int, frozenset[int]]] = {
    v1.TASK_STATE_SUBMITTED: ENDS | {v1.TASK_STATE_WORKING},
    v1.TASK_STATE_WORKING: ENDS | {v1.TASK_STATE_WORKING},
    v1.TASK_STATE_INPUT_REQUIRED: _FROM_WAITING,
    v1.TASK_STATE_AUTH_REQUIRED: _FROM_WAITING,
    **{state: frozenset[int]() for state in TERMINAL},
}
"""Which state may follow which. A task begins in SUBMITTED; a waiting one is WORKING before it is anything else that
is good, and WORKING may follow itself with a new message."""


def status_of(payload: v1.StreamResponse) -> v1.TaskStatus | None:
    """The status that an event gives the task, None if it leaves the status alone."""
    kind = payload.WhichOneof("payload")
    if kind == "status_update":
        return payload.status_update.status
    return payload.task.status if kind == "task" else None


def state_of(payload: v1.StreamResponse) -> int:
    """The state that an event brings the task into, 0 if it leaves the state alone."""
    status = status_of(payload)
    return 0 if status is None else status.state


def state_after(event: Event) -> int:
    """As `state_of`; the event is only read if nothing else tells."""
    if event.told is not None:
        return event.told.state
    return 0 if event.body[:1] == ARTIFACT_UPDATE else state_of(event.payload)


def status_ms(status: v1.TaskStatus) -> int:
    """The time of a status, in ms since 1970."""
    return status.timestamp.seconds * 1000 + status.timestamp.nanos // 1_000_000


def status_event(
    task_id: str, context_id: str, state: int, at_ms: int, message: v1.Message | None = None
) -> v1.StreamResponse:
    """A status event with its time in ms since 1970 (LIST-18, STREAM-10); `message` may be None."""
    payload = v1.StreamResponse()
    update = payload.status_update
    update.task_id, update.context_id = task_id, context_id
    set_status(update.status, state, at_ms)
    if message is not None:
        update.status.message.CopyFrom(message)
    return payload


def state_name(state: int) -> str:
    """The name of a state, for texts and logs."""
    return v1.TaskState.Name(v1.TaskState.ValueType(state))


def set_status(status: v1.TaskStatus, state: int, at_ms: int) -> None:
    """Write state and time, in ms since 1970, into a status."""
    status.state = v1.TaskState.ValueType(state)
    status.timestamp.seconds, status.timestamp.nanos = at_ms // 1000, at_ms % 1000 * 1_000_000


_UNKNOWN: Final = "task %s: chunk for an unknown artifact %s begins it (I-68)"


class _Artifact:
    """An artifact that grows: text that only continues its last part waits in `pieces` until it is looked at. What is
    given first is a message, which is copied when something is appended, for it belongs to an event; or it is the bytes
    of one, which then are read."""

    __slots__ = ("_first", "_form", "_pieces", "_whole")

    def __init__(self, first: v1.Artifact | bytes) -> None:
        self._first: v1.Artifact | bytes | None = first
        self._pieces: list[str] = []
        self._form: tuple[str, str] | None = None

    def _grow(self) -> None:
        """Have the artifact to oneself."""
        first, self._first, self._whole = self._first, None, v1.Artifact()
        if isinstance(first, bytes):
            self._whole.MergeFromString(first)
        elif first is not None:
            self._whole.CopyFrom(first)
        self._form = _text_form(self._whole.parts[-1]) if self._whole.parts else None

    def add(self, text: str, form: tuple[str, str]) -> None:
        """Append a part that is text."""
        if self._first is not None:
            self._grow()
        if self._form == form:
            self._pieces.append(text)
        else:
            self._joined().parts.add(text=text, media_type=form[0], filename=form[1])
            self._form = form

    def append(self, chunk: v1.Artifact) -> None:
        if self._first is not None:
            self._grow()
        parts: Sequence[v1.Part] = chunk.parts
        if self._form is not None and parts and _text_form(part := parts[0]) == self._form:
            self._pieces.append(part.text)
            parts = parts[1:] if len(parts) > 1 else ()
        if parts:
            whole = self._joined()
            whole.parts.extend(parts)
            self._form = _text_form(whole.parts[-1])
        if chunk.name:
            self._whole.name = chunk.name
        if chunk.description:
            self._whole.description = chunk.description
        if chunk.HasField("metadata"):
            self._whole.metadata.MergeFrom(chunk.metadata)
        if chunk.extensions:
            self._whole.extensions.extend(uri for uri in chunk.extensions if uri not in self._whole.extensions)

    def _joined(self) -> v1.Artifact:
        """What is one's own."""
        if self._pieces:
            last = self._whole.parts[-1]
            last.text = "".join((last.text, *self._pieces))
            self._pieces.clear()
        return self._whole

    def body(self) -> bytes:
        """The serialised artifact."""
        first = self._first
        if first is None:
            return self._joined().SerializeToString()
        return first if isinstance(first, bytes) else first.SerializeToString()


def tag_of(kind: type[Message], name: str, wire_type: int = 2) -> bytes:
    """What stands before a field in bytes."""
    return bytes((kind.DESCRIPTOR.fields_by_name[name].number << 3 | wire_type,))


_ID, _CONTEXT = tag_of(v1.Task, "id"), tag_of(v1.Task, "context_id")  # the same in each event about a task
_STATUS, _HISTORY = tag_of(v1.Task, "status"), tag_of(v1.Task, "history")
_ARTIFACTS, _METADATA = tag_of(v1.Task, "artifacts"), tag_of(v1.Task, "metadata")
_ABOUT: Final = (_ID, _CONTEXT, _METADATA)
_STATE, _TIMESTAMP = tag_of(v1.TaskStatus, "state", 0), tag_of(v1.TaskStatus, "timestamp")
_WORDS: Final = tag_of(v1.TaskStatus, "message")
_SECONDS, _NANOS = tag_of(google.Timestamp, "seconds", 0), tag_of(google.Timestamp, "nanos", 0)
_NEW_STATUS, _ABOUT_STATUS = (tag_of(v1.TaskStatusUpdateEvent, name) for name in ("status", "metadata"))
TASK, MESSAGE, STATUS_UPDATE, ARTIFACT_UPDATE = (
    tag_of(v1.StreamResponse, name) for name in ("task", "message", "status_update", "artifact_update")
)
"""What the bytes of an event begin with, by its kind."""


class _Sizes(dict[int, bytes]):
    """Numbers as they stand in bytes. Those that are often there, the lengths of small messages, are kept."""

    def __missing__(self, size: int) -> bytes:
        rest, lead = size, bytearray()
        while rest > 127:
            lead.append(rest & 127 | 128)
            rest >>= 7
        found = bytes((*lead, rest))
        if size < _KEPT_SIZES:
            self[size] = found
        return found


_KEPT_SIZES: Final = 4096

SIZES: Final = _Sizes()
"""By a number its bytes, such as those of a length before a message."""


def field_of(tag: bytes, *pieces: bytes) -> bytes:
    """The bytes of a message, or of a text, in a field."""
    body = b"".join(pieces)
    return tag + SIZES[len(body)] + body


@lru_cache(maxsize=4)
def _seconds(seconds: int) -> bytes:
    return _SECONDS + SIZES[seconds] if seconds else b""


@lru_cache(maxsize=1000)
def _nanos(ms: int) -> bytes:
    return _NANOS + SIZES[ms * 1_000_000] if ms else b""


def _span(body: bytes, at: int) -> tuple[int, int]:
    """Where the bytes begin and end whose length stands there."""
    size = shift = 0
    while True:
        byte = body[at]
        at += 1
        size |= (byte & 127) << shift
        if byte < 128:
            return at, at + size
        shift += 7


def ids_of(task_id: str, context_id: str) -> bytes:
    """The ids of a task as they stand in it, and in each event about it."""
    return field_of(_ID, task_id.encode()) + field_of(_CONTEXT, context_id.encode())


class _Status:
    """A status: state and time, its bytes, and those of its message."""

    __slots__ = ("at_ms", "body", "message", "state")

    def __init__(self, state: int, at_ms: int, message: bytes | None, body: bytes | None = None) -> None:
        self.state, self.at_ms, self.message = state, at_ms, message
        if body is None:
            seconds, nanos = _seconds(at_ms // 1000), _nanos(at_ms % 1000)
            time = _TIMESTAMP + SIZES[len(seconds) + len(nanos)] + seconds + nanos
            words = field_of(_WORDS, message) if message is not None else b""
            body = _STATE + SIZES[state] + words + time
        self.body = body

    @classmethod
    def of(cls, status: v1.TaskStatus) -> "_Status":
        message = status.message.SerializeToString() if status.HasField("message") else None
        return cls(status.state, status_ms(status), message, status.SerializeToString())

    def join(self, fold: "Fold") -> None:
        fold._replace(self)


class _Said:
    """What a user said later."""

    __slots__ = ("body",)
    state = at_ms = 0

    def __init__(self, body: bytes) -> None:
        self.body = body

    def join(self, fold: "Fold") -> None:
        fold._said += (_HISTORY + SIZES[len(self.body)], self.body)


def status_told(
    sequence: int,
    ids: bytes,
    state: int,
    at_ms: int,
    message: v1.Message | None = None,
    metadata: google.Struct | None = None,
) -> Event:
    """The event of a new status; as `status_event`, without the message nobody may want. ids: see `ids_of`."""
    status = _Status(state, at_ms, None if message is None else message.SerializeToString())
    about = b"" if metadata is None else field_of(_ABOUT_STATUS, metadata.SerializeToString())
    body = status.body
    return Event(sequence, None, field_of(STATUS_UPDATE, ids, _NEW_STATUS, SIZES[len(body)], body, about), status)


def message_told(sequence: int, message: v1.Message) -> Event:
    """The event of what a user says later."""
    body = message.SerializeToString()
    return Event(sequence, None, field_of(MESSAGE, body), _Said(body))


def _text_form(part: v1.Part) -> tuple[str, str] | None:
    """Media type and file name of a part if it is text that more text may continue."""
    if part.WhichOneof("content") != "text" or part.HasField("metadata"):
        return None
    return part.media_type, part.filename


class Fold:
    """A task in the making: `apply` its events in order, then look.

    keep_status_messages: put a status message into the history when the next status replaces it, in the place where
    it was said (I-67, HIST-04); default True, later `keep`. `sequence` is the number of the last event applied.

    What is only passed on is kept as bytes, so that a turn costs what it says and not what was said before: the
    history is read when somebody looks. Statuses and artifacts are those of the events, which nobody changes.
    """

    __slots__ = ("_about", "_artifacts", "_head", "_mark", "_said", "_status", "_tail", "keep", "sequence")

    def __init__(self, keep_status_messages: bool = True) -> None:
        self.keep = keep_status_messages
        self._about = b""  # what is neither status nor artifact nor history: the ids above all
        self._status: _Status | None = None
        self._said: list[bytes] = []  # the history: any number of messages in each piece
        self._artifacts: dict[str, _Artifact] = {}
        self._mark = 0  # how many pieces the history had when the current status came
        self._head: bytes | None = None  # what `head` and `artifacts` have said, until the next event
        self._tail: bytes | None = None
        self.sequence = 0

    def open(self, message: v1.Message, ids: bytes, at_ms: int) -> Event:
        """Begin with the task that a message makes, SUBMITTED at a time in ms since 1970; the event that says so. ids:
        see `ids_of`."""
        self._about = ids
        self._status = _Status(v1.TASK_STATE_SUBMITTED, at_ms, None)
        said = message.SerializeToString()
        self._said = [_HISTORY + SIZES[len(said)], said]
        self._mark, self.sequence = 2, 1
        whole = *self._lead(), *self._said  # which may be large, and is not joined twice
        return Event(1, None, b"".join((TASK, SIZES[sum(map(len, whole))], *whole)), self._status)

    @classmethod
    def of(cls, row: TaskRow, keep_status_messages: bool = True) -> "Fold":
        """The fold as it stands in a stored snapshot; the events after `row.folded` are still to be applied."""
        fold = cls(keep_status_messages)
        fold._begin(row.head)
        for artifact in v1.Task.FromString(row.artifacts).artifacts if row.artifacts else ():
            fold._artifacts[artifact.artifact_id] = _Artifact(artifact)
        fold.sequence = row.folded
        return fold

    def _begin(self, head: bytes) -> None:
        """Take over a serialised task without artifacts. What `head` writes begins with the status, then the ids, and
        ends with the history, so it is taken apart and not read; anything else, such as what earlier releases wrote,
        is read. Those have the ids first, and where there are none, more may come after the history."""
        at, about = _span(head, 1) if head[:1] == _STATUS else (0, 0)
        if about and head[about : about + 1] == _ID:
            status = head[at:about]
            at = about
            while head[at : at + 1] in _ABOUT:
                _, at = _span(head, at + 1)
            if head[at : at + 1] in (_HISTORY, b""):
                self._status, self._about = _Status.of(v1.TaskStatus.FromString(status)), head[about:at]
                self._said = [head[at:]]
                self._mark = 1
                return
        self._read(v1.Task.FromString(head))

    def _read(self, task: v1.Task) -> None:
        """Take over a task without artifacts, which is used up."""
        self._status = _Status.of(task.status) if task.HasField("status") else None
        self._said, self._mark = [v1.Task(history=task.history).SerializeToString()], 1
        for name in ("status", "history"):
            task.ClearField(name)
        self._about = task.SerializeToString()

    def apply(self, event: Event) -> None:
        """Take the next event in; one that was applied already is passed over."""
        if event.sequence <= self.sequence:
            return
        self.sequence, self._head, self._tail = event.sequence, None, None
        told: Any = event.told
        if told is not None:
            told.join(self)
        elif apply := self._APPLY.get(event.payload.WhichOneof("payload")):
            apply(self, event.payload)

    @property
    def state(self) -> int:
        """The current state."""
        return 0 if self._status is None else self._status.state

    @property
    def history(self) -> Sequence[v1.Message]:
        """What was said so far, oldest first; not to be changed."""
        return v1.Task.FromString(b"".join(self._said)).history

    def task(self, artifacts: bool = True, into: v1.Task | None = None, history: bool = True) -> v1.Task:
        """A copy of the task, the caller's to change; without artifacts or history if False. into: what is filled,
        default a new message."""
        task = v1.Task() if into is None else into
        task.MergeFromString(self.head() if history else b"".join(self._lead()))
        if artifacts and self._artifacts:
            task.MergeFromString(self.artifacts())
        return task

    def _lead(self) -> Sequence[bytes]:
        if self._status is None:
            return (self._about,)
        status = self._status.body
        return _STATUS, SIZES[len(status)], status, self._about

    def head(self) -> bytes:
        """The serialised task without artifacts."""
        if self._head is None:
            self._head = b"".join((*self._lead(), *self._said))
        return self._head

    def artifacts(self) -> bytes:
        """A serialised task of nothing but the artifacts."""
        if self._tail is None:
            self._tail = b"".join([field_of(_ARTIFACTS, artifact.body()) for artifact in self._artifacts.values()])
        return self._tail

    def begin(self, artifact_id: str, artifact: bytes) -> None:
        """Have a serialised artifact, in the place of one that has the same id."""
        self._artifacts[artifact_id] = _Artifact(artifact)

    def write(self, task_id: str, artifact_id: str, text: str, form: tuple[str, str]) -> None:
        """Let an artifact go on with a text. form: media type and file name."""
        known = self._artifacts.get(artifact_id)
        if known is None:
            log.warning(_UNKNOWN, task_id, artifact_id)
            known = self._artifacts[artifact_id] = _Artifact(v1.Artifact(artifact_id=artifact_id))
        known.add(text, form)

    def _task(self, payload: v1.StreamResponse) -> None:
        task = v1.Task()
        task.CopyFrom(payload.task)
        task.ClearField("artifacts")
        self._read(task)
        self._artifacts = {artifact.artifact_id: _Artifact(artifact) for artifact in payload.task.artifacts[:]}

    def _message(self, payload: v1.StreamResponse) -> None:
        _Said(payload.message.SerializeToString()).join(self)

    def _status_update(self, payload: v1.StreamResponse) -> None:
        self._replace(_Status.of(payload.status_update.status))

    def _replace(self, status: _Status) -> None:
        if self.keep and self._status is not None and self._status.message is not None:
            self._said.insert(self._mark, field_of(_HISTORY, self._status.message))
        self._status, self._mark = status, len(self._said)

    def _artifact(self, payload: v1.StreamResponse) -> None:
        update = payload.artifact_update
        artifact = update.artifact
        name = artifact.artifact_id
        if update.append:
            if (known := self._artifacts.get(name)) is not None:
                known.append(artifact)
                return
            log.warning(_UNKNOWN, update.task_id, name)
        self._artifacts[name] = _Artifact(artifact)

    _APPLY: Final[Mapping[str | None, Callable[["Fold", v1.StreamResponse], None]]] = {
        "task": _task,
        "message": _message,
        "status_update": _status_update,
        "artifact_update": _artifact,
    }
