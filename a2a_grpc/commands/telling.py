"""What an agent says, told to a person in a terminal as it comes.

Laws: answers go to `out`, what happens meanwhile to `notes`; on a terminal the latest of those stands in one line that
goes away. What others wrote can move no cursor and colour nothing: control characters are taken out. Who reads with
a program asks for JSON instead.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TextIO

from a2a_stubs import v1
from google.protobuf.message import Message

from a2a_grpc import protojson
from a2a_grpc.protojson_values import json_of
from a2a_grpc.tasks.handle import SCHEMA_TYPE
from a2a_grpc.tasks.state import INTERRUPTED, TERMINAL, state_name

CONTROL: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f-\x9f]")

PREFIXES: Final[Mapping[int, str]] = {
    v1.TASK_STATE_INPUT_REQUIRED: "? ",
    v1.TASK_STATE_AUTH_REQUIRED: "? authorisation: ",
    v1.TASK_STATE_FAILED: "failed: ",
    v1.TASK_STATE_CANCELED: "canceled",
    v1.TASK_STATE_REJECTED: "rejected: ",
    v1.TASK_STATE_COMPLETED: "",
}
"""What stands before the words of a status; others are news of the work."""

LONGEST_NOTE: Final = 76


def plain(text: str) -> str:
    """The text without what a terminal would act on."""
    return CONTROL.sub("", text)


def part_words(part: v1.Part) -> str:
    """A part that is no text, in a line."""
    kind = part.WhichOneof("content")
    if kind == "data":
        return protojson.dumps(json_of(part.data)).decode()
    about = ", ".join(filter(None, (part.filename, part.media_type)))
    return f"[{about or 'file'}: {part.url or f'{len(part.raw)} bytes'}]"


class Teller:
    """Tells events, tasks and messages. live: whether notes are of the moment, on a terminal; ids: whether the id of a
    task that waits for an answer is told, for who will answer with another command; default True."""

    def __init__(self, out: TextIO, notes: TextIO, *, live: bool, ids: bool = True) -> None:
        self._out, self._notes, self._live, self._ids = out, notes, live, ids
        self._open = self._noted = False

    def event(self, event: v1.StreamResponse) -> None:
        """One event of a stream, or one answer that is a message or a task."""
        kind = event.WhichOneof("payload")
        if kind == "artifact_update":
            update = event.artifact_update
            self._parts(update.artifact.parts, goes_on=update.append)
        elif kind == "status_update":
            self._status(event.status_update.status, event.status_update.task_id)
        elif kind == "task":
            self.task(event.task)
        elif kind == "message":
            self._parts(event.message.parts)
            self.end()

    def task(self, task: v1.Task) -> None:
        """A task as it stands."""
        for artifact in task.artifacts:
            self._parts(artifact.parts)
        self._status(task.status, task.id)

    def told(self, found: Message) -> None:
        """Any answer of an agent; what has no words of its own as JSON."""
        words = next((words for kind, words in _WORDS.items() if isinstance(found, kind)), None)
        if words is not None:
            words(self, found)
        else:
            self.line(protojson.dumps(protojson.encode(found)).decode())

    def sent(self, found: v1.SendMessageResponse) -> None:
        """What a message was answered with."""
        if found.HasField("task"):
            self.task(found.task)
            if found.task.status.state not in TERMINAL | INTERRUPTED:
                self.lasting(f"task {found.task.id}")
        else:
            self._parts(found.message.parts)
            self.end()

    def page(self, found: v1.ListTasksResponse) -> None:
        """Tasks, one a line."""
        for task in found.tasks:
            when = task.status.timestamp.ToJsonString() if task.status.HasField("timestamp") else ""
            self.line(f"{task.id}  {state_name(task.status.state).removeprefix('TASK_STATE_').lower():15}{when}")
        if found.next_page_token:
            self.line(f"more: --page-token {found.next_page_token}")

    def card(self, found: v1.AgentCard) -> None:
        """An agent: who it is, where, and what it can do."""
        self.line(f"{found.name} {found.version}: {found.description}")
        for entry in found.supported_interfaces:
            self.line(f"  {entry.protocol_binding:9} {entry.protocol_version}  {entry.url}")
        for skill in found.skills:
            self.line(f"  {skill.id}: {skill.description or skill.name}")

    def line(self, text: str) -> None:
        """A line of its own."""
        self.end()
        self._out.write(plain(text) + "\n")
        self._out.flush()

    def note(self, text: str) -> None:
        """News that does not belong to the answer."""
        if self._live:
            first = plain(text).partition("\n")[0][:LONGEST_NOTE]
            if not self._open:
                self._notes.write(f"\r\x1b[K… {first}")
                self._noted = True
        else:
            self._notes.write(f"… {plain(text)}\n")
        self._notes.flush()

    def lasting(self, text: str) -> None:
        """News that are needed later, such as the id of a task that waits for an answer, and stay."""
        self.end()
        self._notes.write(f"… {plain(text)}\n")
        self._notes.flush()

    def end(self) -> None:
        """End the line that is being written, and take the note away."""
        self._clear()
        if self._open:
            self._out.write("\n")
            self._out.flush()
            self._open = False

    def _clear(self) -> None:
        if self._noted:
            self._notes.write("\r\x1b[K")
            self._notes.flush()
            self._noted = False

    def _parts(self, parts: Iterable[v1.Part], *, goes_on: bool = False) -> None:
        if not goes_on:
            self.end()
        for part in parts:
            if part.WhichOneof("content") == "text":
                self._clear()
                self._out.write(plain(part.text))
                self._open = (self._open or bool(part.text)) and not part.text.endswith("\n")
            elif part.media_type != SCHEMA_TYPE:
                self.line(part_words(part))
        self._out.flush()

    def _status(self, status: v1.TaskStatus, task_id: str) -> None:
        texts = [part.text for part in status.message.parts if part.WhichOneof("content") == "text"]
        others: list[Any] = [part for part in status.message.parts if part.WhichOneof("content") != "text"]
        words, prefix = "\n".join(texts), PREFIXES.get(status.state)
        if prefix is None:
            if words or self._live:
                self.note(words or state_name(status.state).removeprefix("TASK_STATE_").lower())
            return
        self.end()
        if words or prefix:
            self.line((f"{prefix}: {words}" if words and prefix.isalpha() else prefix + words).rstrip(": "))
        self._parts(others)
        self.end()
        if self._ids and status.state in INTERRUPTED and task_id:
            self.lasting(f"task {task_id}")


_WORDS: Final[Mapping[type[Message], Callable[[Teller, Any], None]]] = {
    v1.StreamResponse: Teller.event,
    v1.Task: Teller.task,
    v1.SendMessageResponse: Teller.sent,
    v1.ListTasksResponse: Teller.page,
    v1.AgentCard: Teller.card,
}
"""What is told in words, by its type."""
