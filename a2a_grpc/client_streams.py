"""Streams that survive their connection: events of a task, each told once and none left out, however often it breaks.

Laws: where an agent numbers its events (the resume extension), the next connection begins after the last number. Where
it does not, the task itself says what is new: it is read, and what the reader was not told yet is told; then every
event is a hint to read again, since nobody knows what of it the task held already. What the reader was told is the only
state. The end of a stream that leaves its task at work is no end but a reason to ask again (OP-STREAM-10). No operation
is named here.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable
from contextlib import aclosing
from typing import Any, Final, NamedTuple

from a2a_stubs import v1

from a2a_grpc.call import RESUME_EXTENSION
from a2a_grpc.client_retries import Retries
from a2a_grpc.errors import A2AError, TaskNotFoundError, UnavailableError
from a2a_grpc.python310_asyncio import timeout, timeout_at
from a2a_grpc.tasks.state import ENDS, INTERRUPTED, TERMINAL, state_of

LOOK_SECONDS: Final = 30.0
"""Silence after which a task is looked at whose events are not numbered, on a stream that was opened in the middle of
it: official servers may hold such a stream although the task has ended, or nobody is at it."""

LAGS: Final = 5
"""How often a task is read again that has ended by its events and not yet by what its agent keeps: official servers
tell first and write then."""

Source = AsyncGenerator[tuple[str, v1.StreamResponse], None]
"""Events with their ids, "" where there is none."""


class Events:
    """The events of a streaming call, as an async iterator; `aclose` ends it early and leaves the task alone.

    last_event_id: what `subscribe` takes to go on after the latest event; "" when the agent does not tell.
    """

    def __init__(self, source: Source, timeout: float | None) -> None:
        self._source, self._timeout = source, timeout
        self.last_event_id = ""

    def __aiter__(self) -> AsyncIterator[v1.StreamResponse]:
        return self

    async def __anext__(self) -> v1.StreamResponse:
        if self._timeout is None:
            self.last_event_id, event = await anext(self._source)
        else:
            async with timeout(self._timeout):
                self.last_event_id, event = await anext(self._source)
        return event

    async def aclose(self) -> None:
        """Stop reading and let the connection go."""
        await self._source.aclose()


def number_of(event: v1.StreamResponse, keep: bool) -> int:
    """The number that the resume extension has put into an event, 0 for none; it is taken out unless it is to be
    kept."""
    body: Any = getattr(event, event.WhichOneof("payload") or "", None)
    if body is None or not body.HasField("metadata"):
        return 0
    fields = body.metadata.fields
    if (told := fields.get(RESUME_EXTENSION)) is None:
        return 0
    told = told.struct_value.fields.get("sequence")
    number = int(told.number_value) if told is not None and 1 <= told.number_value < 2**53 else 0
    if not keep:
        del fields[RESUME_EXTENSION]
        if not fields:
            body.ClearField("metadata")
    return number


Parts = list[v1.Part]


def _form(part: v1.Part) -> tuple[str, str] | None:
    """What two text parts must share to be one text; None for other parts."""
    if part.WhichOneof("content") != "text" or part.HasField("metadata"):
        return None
    return part.media_type, part.filename


def merged(parts: Iterable[v1.Part]) -> Parts:
    """The parts with texts that follow each other joined, since agents differ in that; empty texts left out."""
    found: list[tuple[Any, v1.Part, list[str]]] = []
    for part in parts:
        form = _form(part)
        if form is not None and found and found[-1][0] == form:
            found[-1][2].append(part.text)
        else:
            found.append((form, part, [part.text] if form is not None else []))
    made = []
    for form, part, texts in found:
        if form is not None:
            if not (text := "".join(texts)):
                continue
            part = v1.Part(text=text, media_type=form[0], filename=form[1])
        made.append(part)
    return made


def remainder(told: Parts, whole: Parts) -> Parts | None:
    """What must follow `told` to make it `whole`, nothing if `whole` is older; None if it is something else. Both
    merged."""
    for at, part in enumerate(told):
        if at >= len(whole):
            return []
        if part == whole[at]:
            continue
        if _form(part) is None or _form(part) != _form(whole[at]):
            return None
        if at == len(told) - 1 and whole[at].text.startswith(part.text):
            rest = v1.Part()
            rest.CopyFrom(whole[at])
            rest.text = rest.text[len(part.text) :]
            return [rest, *whole[at + 1 :]]
        return [] if at == len(whole) - 1 and part.text.startswith(whole[at].text) else None
    return whole[len(told) :]


class Told:
    """What the reader of a stream has been told of its task."""

    def __init__(self) -> None:
        self.task_id = self.context_id = ""
        self.status = v1.TaskStatus()
        self.replied = False
        self._artifacts: dict[str, Parts] = {}

    def take(self, event: v1.StreamResponse, whole: bool) -> None:
        """The reader gets this event. whole: whether artifacts need be known, too."""
        kind = event.WhichOneof("payload")
        if kind == "message":
            self.replied = True
        elif kind == "task":
            self.task_id, self.context_id, self.status = event.task.id, event.task.context_id, event.task.status
            if whole:
                self._artifacts = {artifact.artifact_id: list(artifact.parts) for artifact in event.task.artifacts}
        elif kind is not None:
            update = getattr(event, kind)
            self.task_id, self.context_id = update.task_id, update.context_id
            if kind == "status_update":
                self.status = update.status
            elif whole:
                self._grow(update)

    def _grow(self, update: v1.TaskArtifactUpdateEvent) -> None:
        parts = list(update.artifact.parts)
        if update.append:
            self._artifacts.setdefault(update.artifact.artifact_id, []).extend(parts)
        else:
            self._artifacts[update.artifact.artifact_id] = parts

    def knows(self, status: v1.TaskStatus) -> bool:
        """Whether a status is no news: told already, or older than what was told."""
        own = self.status
        if own.state in TERMINAL:
            return True
        timed = status.HasField("timestamp") and own.HasField("timestamp")
        if timed and status.timestamp.ToNanoseconds() < own.timestamp.ToNanoseconds():
            return True
        return status.state == own.state and status.message.message_id in ("", own.message.message_id)

    def news(self, task: v1.Task) -> list[v1.StreamResponse]:
        """The events that bring a reader from what was told to the task as it is now."""
        made = []
        about: dict[str, Any] = {"task_id": task.id, "context_id": task.context_id}
        for artifact in task.artifacts:
            whole, known = merged(artifact.parts), self._artifacts.get(artifact.artifact_id)
            rest = None if known is None else remainder(merged(known), whole)
            if known is not None and rest is not None and not rest:
                continue
            update = v1.TaskArtifactUpdateEvent(**about, append=rest is not None)
            update.artifact.CopyFrom(artifact)
            del update.artifact.parts[:]
            update.artifact.parts.extend(whole if rest is None else rest)
            made.append(v1.StreamResponse(artifact_update=update))
        if not self.knows(task.status):
            made.append(v1.StreamResponse(status_update=v1.TaskStatusUpdateEvent(**about, status=task.status)))
        return made


class Ways(NamedTuple):
    """How a followed stream reaches the agent. first: opens it; resume(task_id, last id): opens it again; task(id):
    reads a task; repeatable: whether `first` may be called twice; sends: whether it sends a message; answers: to a task
    that there is, whose first appearance may still show its question; about: the task that `first` subscribes to."""

    first: Callable[[], Source]
    resume: Callable[[str, str], Source]
    task: Callable[[str], Awaitable[v1.Task]]
    repeatable: bool
    sends: bool
    answers: bool = False
    about: str = ""


class Following:
    """One stream, followed to its end over any number of connections. numbered: whether ids of events are numbers to
    resume from; None: if the first event has one. Raises what the agent answers, UnavailableError once there was no
    sign of life for `retries.patience` seconds, and TimeoutError once nothing new was told for `retries.idle` seconds:
    while nobody held a stream open if events are numbered, whose agents end what nobody is at; else while a task was
    only looked at or subscribed to."""

    def __init__(self, ways: Ways, retries: Retries, numbered: bool | None, last_event_id: str = "") -> None:
        self._ways, self._retries, self._numbered = ways, retries, numbered
        self._told = Told()
        self._last = last_event_id
        self._resumed = self._poll = self._silent = False
        self._stale = ways.answers
        self._failures = 0
        self._since: float | None = None
        self._idle: float | None = None

    async def events(self) -> Source:
        """The events, each with its id."""
        clock = asyncio.get_running_loop().time
        while True:
            fault: A2AError | None = None
            opened = clock()
            try:
                async with aclosing(self._open()) as source:
                    async for ident, event in source:
                        for each in await self._heard(ident, event) if self._resumed else (event,):
                            self._hear(ident, each)
                            yield ident, each
                        if self._resumed and self._over(UnavailableError()):
                            return
            except A2AError as raised:
                fault = raised
            if self._numbered and clock() - opened > self._retries.most:
                self._idle = None
            if self._silent:
                self._told.task_id = self._told.task_id or self._ways.about
            if self._told.task_id:
                if self._over(fault):
                    return
                if fault is not None and not isinstance(fault, UnavailableError):
                    if self._numbered or not self._resumed:
                        raise fault
                    self._poll = True
                if self._resumed or self._silent:
                    for each in await self._catch_up():
                        self._hear("", each)
                        yield "", each
                    if self._over(None if self._poll else fault):
                        return
            elif self._told.replied or fault is None:
                return
            await self._pause(fault)

    def _open(self) -> Source:
        self._silent = False
        if not self._told.task_id:
            source = self._ways.first()
        else:
            self._resumed = True
            if self._poll:
                return _nothing()
            source = self._ways.resume(self._told.task_id, self._last if self._numbered else "")
        known = self._numbered or (self._ways.sends and not self._resumed)
        return source if known else self._watched(source)

    async def _watched(self, source: Source) -> Source:
        """The events of a stream, until it has been silent for so long that the task must be looked at."""
        clock, idle = asyncio.get_running_loop().time, self._retries.idle
        look = LOOK_SECONDS if idle is None else min(LOOK_SECONDS, idle)
        async with aclosing(source):
            while True:
                now = clock()
                self._idle = now if self._idle is None else self._idle
                try:
                    async with timeout_at(None if self._numbered else now + look) as end:
                        found = await anext(source, None)
                except TimeoutError:
                    if end.expired():
                        self._silent = True
                        return
                    raise
                if found is None:
                    return
                yield found

    def _tired(self) -> bool:
        """Whether nothing new was told for so long that the task is given up, unless a look finds some."""
        return self._idle is not None and self._retries.tired(asyncio.get_running_loop().time() - self._idle)

    async def _heard(self, ident: str, event: v1.StreamResponse) -> list[v1.StreamResponse]:
        """What the reader gets for an event of a stream that was opened again."""
        kind = event.WhichOneof("payload")
        if self._numbered:
            return [] if kind == "task" and ident == self._last else [event]
        if kind == "message":
            return [event]
        if kind == "task":
            return self._told.news(event.task)
        state, made = state_of(event), []
        if kind == "status_update" and state not in ENDS and not self._told.knows(event.status_update.status):
            made.append(event)
            self._told.status = event.status_update.status
        task = await self._ways.task(self._told.task_id)
        for lag in range(LAGS if state in ENDS else 0):
            if task.status.state in ENDS:
                break
            await asyncio.sleep(self._retries.growing(lag))
            task = await self._ways.task(self._told.task_id)
        made += self._told.news(task)  # which ends with the end: readers leave there
        return made if state not in ENDS or task.status.state in ENDS else [*made, event]

    def _hear(self, ident: str, event: v1.StreamResponse) -> None:
        if self._numbered is None:
            self._numbered = bool(ident)
        self._told.take(event, whole=not self._numbered)
        self._stale = self._stale and event.HasField("task")
        self._last = ident or self._last
        self._failures, self._since, self._idle = 0, None, None

    def _over(self, fault: A2AError | None) -> bool:
        """Whether the end of a connection, by a fault or in order, is the end of the stream."""
        state = self._told.status.state
        waits = self._ways.sends and state == v1.TASK_STATE_INPUT_REQUIRED and not self._stale
        return self._told.replied or state in TERMINAL or waits or (fault is None and state in INTERRUPTED)

    async def _catch_up(self) -> list[v1.StreamResponse]:
        """Look at the task, which is a sign of life while it is at work; its news, where nothing else tells them."""
        try:
            task = await self._ways.task(self._told.task_id)
        except TaskNotFoundError:
            raise
        except A2AError:
            return []
        if task.status.state not in ENDS:
            self._since = None
        return [] if self._numbered else self._told.news(task)

    async def _pause(self, fault: A2AError | None) -> None:
        """Wait before the next attempt, or raise the fault if there shall be none."""
        now = asyncio.get_running_loop().time()
        if self._told.task_id and self._idle is None:
            self._idle = now
        if self._tired():
            raise self._retries.given_up(self._told.task_id) from fault
        fault = fault or UnavailableError("the stream ended before its task did")
        if not self._told.task_id:
            pause = self._retries.pause(fault, self._failures, self._ways.repeatable)
            if pause is None:
                raise fault
        else:
            self._since = now if self._since is None else self._since
            if now - self._since >= self._retries.patience:
                raise fault if isinstance(fault, UnavailableError) else UnavailableError(fault.message) from fault
            pause = min(self._retries.growing(self._failures), self._retries.patience)
        self._failures += 1
        await asyncio.sleep(pause)


async def _nothing() -> Source:
    none: list[tuple[str, v1.StreamResponse]] = []
    for found in none:
        yield found


def settled(task: v1.Task) -> bool:
    """Whether a task has ended or waits for its caller."""
    return task.status.state in ENDS
