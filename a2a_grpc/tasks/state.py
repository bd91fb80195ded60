"""The states of a task, and the fold of its events.

Laws: pure, no I/O, no clock. A task is the fold of its events and nothing else (STREAM-09): whoever needs a task
folds. Which state may follow which is the table `TRANSITIONS`. Folding an event costs what the event weighs, never
what the task weighs; text is joined only when somebody looks.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from a2a_stubs import v1

from a2a_grpc.tasks.store import Event, TaskRow

log: Final = logging.getLogger("a2a_grpc")

TERMINAL: Final = frozenset(
    {v1.TASK_STATE_COMPLETED, v1.TASK_STATE_FAILED, v1.TASK_STATE_CANCELED, v1.TASK_STATE_REJECTED}
)
"""States that never change again (DATA-11)."""

INTERRUPTED: Final = frozenset({v1.TASK_STATE_INPUT_REQUIRED, v1.TASK_STATE_AUTH_REQUIRED})
"""States in which the task waits for its caller; the next message goes on with it."""

ENDS: Final = TERMINAL | INTERRUPTED
"""States in which no turn runs."""

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


class _Artifact:
    """An artifact that grows: text that only continues its last part waits in `pieces` until it is looked at. What is
    given first is copied when something is appended, for it belongs to an event."""

    __slots__ = ("_form", "_own", "_pieces", "_whole")

    def __init__(self, first: v1.Artifact) -> None:
        self._whole = first
        self._own = False
        self._pieces: list[str] = []
        self._form: tuple[str, str] | None = None

    def append(self, chunk: v1.Artifact) -> None:
        if not self._own:
            first, self._whole, self._own = self._whole, v1.Artifact(), True
            self._whole.CopyFrom(first)
            self._form = _text_form(first.parts[-1]) if first.parts else None
        parts: Sequence[v1.Part] = chunk.parts
        if self._form is not None and parts and _text_form(part := parts[0]) == self._form:
            self._pieces.append(part.text)
            parts = parts[1:] if len(parts) > 1 else ()
        if parts:
            whole = self.whole()
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

    def whole(self) -> v1.Artifact:
        if self._pieces:
            last = self._whole.parts[-1]
            last.text = "".join((last.text, *self._pieces))
            self._pieces.clear()
        return self._whole


_ARTIFACTS: Final = bytes((v1.Task.DESCRIPTOR.fields_by_name["artifacts"].number << 3 | 2,))


def _sized(body: bytes) -> bytes:
    """The bytes of a message behind their length, as a field has them."""
    size = len(body)
    if size < 128:
        return bytes((size,)) + body
    lead = bytearray()
    while size > 127:
        lead.append(size & 127 | 128)
        size >>= 7
    return bytes((*lead, size)) + body


def _text_form(part: v1.Part) -> tuple[str, str] | None:
    """Media type and file name of a part if it is text that more text may continue."""
    if part.WhichOneof("content") != "text" or part.HasField("metadata"):
        return None
    return part.media_type, part.filename


class Fold:
    """A task in the making: `apply` its events in order, then look.

    keep_status_messages: put a status message into the history when the next status replaces it, in the place where
    it was said (I-67, HIST-04); default True. `sequence` is the number of the last event applied.
    """

    __slots__ = ("_artifacts", "_head", "_keep", "_mark", "sequence")

    def __init__(self, keep_status_messages: bool = True) -> None:
        self._keep = keep_status_messages
        self._head = v1.Task()
        self._artifacts: dict[str, _Artifact] = {}
        self._mark = 0  # how long the history was when the current status came
        self.sequence = 0

    @classmethod
    def of(cls, row: TaskRow, keep_status_messages: bool = True) -> "Fold":
        """The fold as it stands in a stored snapshot; the events after `row.folded` are still to be applied."""
        fold = cls(keep_status_messages)
        fold._head.MergeFromString(row.head)
        for artifact in v1.Task.FromString(row.artifacts).artifacts:
            fold._artifacts[artifact.artifact_id] = _Artifact(artifact)
        fold._mark = len(fold._head.history)
        fold.sequence = row.folded
        return fold

    def apply(self, event: Event) -> None:
        """Take the next event in; one that was applied already is passed over."""
        if event.sequence <= self.sequence:
            return
        self.sequence = event.sequence
        if apply := self._APPLY.get(event.payload.WhichOneof("payload")):
            apply(self, event.payload)

    @property
    def state(self) -> int:
        """The current state."""
        return self._head.status.state

    @property
    def history(self) -> Sequence[v1.Message]:
        """What was said so far, oldest first; not to be changed."""
        return self._head.history

    def task(self, artifacts: bool = True, into: v1.Task | None = None) -> v1.Task:
        """A copy of the task, the caller's to change; without artifacts if False. into: what is filled, default a new
        message."""
        task = v1.Task() if into is None else into
        task.CopyFrom(self._head)
        if artifacts:
            task.artifacts.extend(artifact.whole() for artifact in self._artifacts.values())
        return task

    def head(self) -> bytes:
        """The serialised task without artifacts."""
        return self._head.SerializeToString()

    def artifacts(self) -> bytes:
        """A serialised task of nothing but the artifacts."""
        return b"".join([_ARTIFACTS + _sized(one.whole().SerializeToString()) for one in self._artifacts.values()])

    def _task(self, payload: v1.StreamResponse) -> None:
        head, task = self._head, payload.task
        head.CopyFrom(task)
        self._artifacts = {artifact.artifact_id: _Artifact(artifact) for artifact in task.artifacts[:]}
        if self._artifacts:
            head.ClearField("artifacts")
        self._mark = len(head.history)

    def _message(self, payload: v1.StreamResponse) -> None:
        self._head.history.append(payload.message)

    def _status(self, payload: v1.StreamResponse) -> None:
        status, history = self._head.status, self._head.history
        if self._keep and status.HasField("message"):
            history.insert(self._mark, status.message)
        status.CopyFrom(payload.status_update.status)
        self._mark = len(history)

    def _artifact(self, payload: v1.StreamResponse) -> None:
        update = payload.artifact_update
        artifact = update.artifact
        name = artifact.artifact_id
        if update.append:
            if (known := self._artifacts.get(name)) is not None:
                known.append(artifact)
                return
            log.warning("task %s: chunk for an unknown artifact %s begins it (I-68)", update.task_id, name)
        self._artifacts[name] = _Artifact(artifact)

    _APPLY: Final[Mapping[str | None, Callable[["Fold", v1.StreamResponse], None]]] = {
        "task": _task,
        "message": _message,
        "status_update": _status,
        "artifact_update": _artifact,
    }
