"""A remote agent as a local one: ask it, follow it, answer its questions, and let it work inside an agent of one's own.

Laws: what a run is, is known by the agent that does it; a run id, which is the id of its task, is all that is needed to
go on with it, in this process or another. However the agent answers, by streams, by polling, by a direct message, the
reader sees the same. No operation and no wire is named here: that is the client's. What the remote agent says is passed
on, never taken for an instruction.
"""

import asyncio
import hashlib
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypedDict

from a2a_stubs import v1

from a2a_grpc import telemetry
from a2a_grpc.agent import Failed, Rejected
from a2a_grpc.call import trace_headers, trace_of
from a2a_grpc.client import Client
from a2a_grpc.client_streams import settled
from a2a_grpc.errors import A2AError, InvalidAgentResponseError
from a2a_grpc.protojson_values import json_of, struct_of
from a2a_grpc.python310 import Self, Unpack
from a2a_grpc.python310_asyncio import timeout
from a2a_grpc.tasks.handle import SCHEMA_TYPE, Paused, TaskHandle
from a2a_grpc.tasks.parts import add_parts
from a2a_grpc.tasks.start import new_id
from a2a_grpc.tasks.state import INTERRUPTED, Fold, state_of
from a2a_grpc.tasks.store import Event

log: Final = logging.getLogger("a2a_grpc")

FINISHED: Final[Mapping[int, str]] = {
    v1.TASK_STATE_COMPLETED: "stop",
    v1.TASK_STATE_INPUT_REQUIRED: "suspended",
    v1.TASK_STATE_AUTH_REQUIRED: "suspended",
    v1.TASK_STATE_FAILED: "failed",
    v1.TASK_STATE_CANCELED: "canceled",
    v1.TASK_STATE_REJECTED: "rejected",
}
"""Why a run is over, or waits, by the state of its task; "" for one that is under way."""

LAST_WORDS: Final = 5.0
"""Seconds in which a run is canceled when who waited for it leaves, and in which its id is waited for before."""

DELEGATED: Final = "a2a.delegated"
"""Where an agent's state keeps the runs of its delegations, by their order."""

CONTEXTS: Final = "a2a.context:"
"""Before the name of a remote agent, the key under which a conversation remembers that agent's own context id."""


class Suspension(NamedTuple):
    """What a run waits for. kind: "input", or "auth" for an authorisation; prompt: the question as text; payload: a
    value shown beside it, or None; schema: the JSON Schema of the answer, or None."""

    kind: str
    prompt: str
    payload: Any
    schema: Any


@dataclass(frozen=True, slots=True)
class Result:
    """How a run stands.

    finish_reason: "stop", "suspended", "failed", "canceled", "rejected", or "" while it is under way. text: the texts
    of its artifacts, or what it said last if there are none; data: the first data part among them as a Python value,
    or None. artifacts, task, message: as the agent gave them; task is None for a direct message, else message is.
    suspended: what it waits for, None unless it waits. run_id: takes the run up again, "" for a direct message;
    context_id: continues the conversation.
    """

    finish_reason: str
    text: str
    data: Any
    artifacts: list[v1.Artifact] = field(repr=False)
    task: v1.Task | None = field(repr=False)
    message: v1.Message | None = field(repr=False)
    suspended: Suspension | None
    run_id: str
    context_id: str

    def checked(self) -> Self:
        """The result itself if the run has done its work or waits; else raises Rejected or Failed with its text, which
        end the task of an agent that does not catch them in the same way."""
        if self.finish_reason in ("stop", "suspended"):
            return self
        raise (Rejected if self.finish_reason == "rejected" else Failed)(
            self.text or f"The run is {self.finish_reason}"
        )


def _texts(parts: Iterable[v1.Part]) -> str:
    return "".join(part.text for part in parts if part.WhichOneof("content") == "text")


def _data(parts: Iterable[v1.Part], media_type: str | None = None) -> Any:
    """The first data part of a media type, None for any but that of schemas."""
    for part in parts:
        schema = part.media_type == SCHEMA_TYPE
        if part.WhichOneof("content") == "data" and schema == (media_type == SCHEMA_TYPE):
            return json_of(part.data)
    return None


def result_of(found: v1.Task | v1.Message) -> Result:
    """The result that a task or a direct message is."""
    if isinstance(found, v1.Message):
        said = _texts(found.parts), _data(found.parts)
        return Result("stop", *said, [], None, found, None, "", found.context_id)
    last, artifacts = found.status.message.parts, list(found.artifacts)
    parts = [part for artifact in artifacts for part in artifact.parts]
    pause = None
    if found.status.state in INTERRUPTED:
        kind = "auth" if found.status.state == v1.TASK_STATE_AUTH_REQUIRED else "input"
        pause = Suspension(kind, _texts(last), _data(last), _data(last, SCHEMA_TYPE))
    text = "\n".join(filter(None, (_texts(artifact.parts) for artifact in artifacts))) or _texts(last)
    reason, data = FINISHED.get(found.status.state, ""), _data(parts)
    return Result(reason, text, data, artifacts, found, None, pause, found.id, found.context_id)


class Update(NamedTuple):
    """One thing that a run tells. kind: "text" for a piece of an artifact's text, "artifact" for a piece of anything
    else, "status", or "message" for a direct one. text: what was added, or what the status says. artifact: the piece
    as it came, None for others; append: whether it follows what its artifact held. event: all of it."""

    kind: str
    text: str
    artifact: v1.Artifact | None
    append: bool
    event: v1.StreamResponse


def _updates(event: v1.StreamResponse) -> list[Update]:
    kind = event.WhichOneof("payload")
    if kind == "artifact_update":
        pieces = [(event.artifact_update.artifact, event.artifact_update.append)]
    elif kind == "task":
        pieces = [(artifact, False) for artifact in event.task.artifacts]
    elif kind == "message":
        return [Update("message", _texts(event.message.parts), None, False, event)]
    else:
        return [Update("status", _texts(event.status_update.status.message.parts), None, False, event)]
    made = []
    for artifact, append in pieces:
        plain = all(part.WhichOneof("content") == "text" for part in artifact.parts)
        made.append(Update("text" if plain else "artifact", _texts(artifact.parts), artifact, append, event))
    if kind == "task":
        made.append(Update("status", _texts(event.task.status.message.parts), None, False, event))
    return made


class Run:
    """A run that is followed: an async iterator of Update. `result` reads the rest, `aclose` leaves it alone (or
    cancels it, if that was asked for). run_id, context_id: "" until they are known."""

    def __init__(self, events: AsyncGenerator[v1.StreamResponse, None], known: Callable[[str, str], Any]) -> None:
        self._events, self._known = events, known
        self._waiting: list[Update] = []
        self._fold, self._count = Fold(), 0
        self._message: v1.Message | None = None
        self.run_id = self.context_id = ""

    def __aiter__(self) -> AsyncIterator[Update]:
        return self

    async def __anext__(self) -> Update:
        while not self._waiting:
            event = await anext(self._events)
            await self._take(event)
            self._waiting = _updates(event)
        return self._waiting.pop(0)

    async def _take(self, event: v1.StreamResponse) -> None:
        kind = event.WhichOneof("payload")
        body: Any = getattr(event, kind or "", None)
        if kind == "message":
            self._message, self.context_id = event.message, event.message.context_id
            return
        if body is None:
            return
        self._count += 1
        self._fold.apply(Event(self._count, event))
        if not self.run_id:
            self.run_id, self.context_id = body.id if kind == "task" else body.task_id, body.context_id
            await self._known(self.run_id, self.context_id)

    async def result(self) -> Result:
        """How the run stands at the end of its events; raises what they raise."""
        async with aclosing(self._events):
            async for event in self._events:
                await self._take(event)
        self._waiting.clear()
        if self._message is not None:
            return result_of(self._message)
        if not self.run_id:
            raise InvalidAgentResponseError("The agent said nothing")
        task = self._fold.task()
        task.id, task.context_id = self.run_id, self.context_id
        return result_of(task)

    async def aclose(self) -> None:
        """Stop reading."""
        await self._events.aclose()


class Overrides(TypedDict, total=False):
    """What may be said of one run.

    context_id: the conversation to continue, default a new one. metadata: of the send request. headers, extensions:
    as of Client.call. timeout: seconds for the run to end or to wait for its caller, in place of the agent's.
    output_modes: media types that can be read, default any. cancel_on_abort: whether to cancel the run when who waits
    for it is canceled, leaves, or has no more time; in place of the agent's.
    """

    context_id: str
    metadata: Mapping[str, Any]
    headers: Mapping[str, str]
    extensions: Iterable[str]
    timeout: float | None
    output_modes: Iterable[str]
    cancel_on_abort: bool


async def _unheard(run_id: str, context_id: str) -> None:
    """Nobody wants to know which run it is."""


class RemoteAgent:
    """An agent somewhere else: `async with RemoteAgent(url) as agent: print((await agent.generate("Hi")).text)`.

    url: what Client takes, or a Client of your own, which stays yours to close. timeout: seconds for each run, default
    forever. cancel_on_abort: see Overrides, default False. settings: of Client; the version is the newest in the card
    unless one is pinned. It connects when it is first used, and looks for a newer card when the one it has is stale.
    Methods raise what the agent answers, UnavailableError when nobody does, and TimeoutError. For one event loop.
    """

    def __init__(
        self,
        url: str | v1.AgentCard | Client,
        *,
        timeout: float | None = None,
        cancel_on_abort: bool = False,
        **settings: Any,
    ) -> None:
        self._own = not isinstance(url, Client)
        self._client = url if isinstance(url, Client) else Client(url, **{"version": None, **settings})
        self._timeout, self._cancel_on_abort = timeout, cancel_on_abort
        self._connecting = asyncio.Lock()
        self._ready = not self._own
        self._leaving: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        await self.client()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Let go of all connections, once runs that are being canceled are; others go on. It may be used again."""
        if self._leaving:
            await asyncio.wait(self._leaving)
        if self._own:
            self._ready = False
            await self._client.close()

    async def client(self) -> Client:
        """The client to this agent, connected, for everything that is not said here."""
        if not self._ready:
            async with self._connecting:
                if not self._ready:
                    await self._client.__aenter__()
                    self._ready = True
        elif self._own:
            with suppress(A2AError, TimeoutError):  # the card that is known will do
                await self._client.refresh_card()
        return self._client

    async def card(self, *, refresh: bool = False) -> v1.AgentCard | None:
        """The agent's card, None where there is none; refresh: ask for it however good the known one is."""
        client = await self.client()
        return await client.refresh_card(force=True) if refresh else client.card

    @property
    def name(self) -> str:
        """What tells this agent from others: its address."""
        return self._client.address

    # -- runs

    async def generate(self, prompt: Any, **overrides: Unpack[Overrides]) -> Result:
        """Let the agent work on a prompt (see `stream`) until it is done or wants something."""
        return await self.stream(prompt, **overrides).result()

    def stream(self, prompt: Any, **overrides: Unpack[Overrides]) -> Run:
        """Let the agent work, and hear what it says meanwhile. prompt: text, bytes, a JSON value, v1.Part, a list of
        them, or a whole v1.Message. Agents that do not stream tell everything at the end."""
        return self._run(prompt, "", _unheard, overrides)

    async def resume(self, answer: Any, *, run_id: str, **overrides: Unpack[Overrides]) -> Result:
        """Answer what a suspended run asked, and let it go on. answer: as a prompt."""
        return await self.resume_stream(answer, run_id=run_id, **overrides).result()

    def resume_stream(self, answer: Any, *, run_id: str, **overrides: Unpack[Overrides]) -> Run:
        """As `resume`, and hear what it says meanwhile."""
        return self._run(answer, run_id, _unheard, overrides)

    async def result(self, run_id: str, *, wait: bool = False) -> Result:
        """How a run stands; wait: until it is done or wants something."""
        client = await self.client()
        return result_of(await (client.wait(run_id, timeout=self._timeout) if wait else client.get(run_id)))

    async def abort(self, run_id: str) -> Result:
        """Cancel a run."""
        return result_of(await (await self.client()).cancel(run_id))

    def _run(self, content: Any, run_id: str, known: Any, overrides: Overrides) -> Run:
        message = v1.Message()
        if isinstance(content, v1.Message):
            message.CopyFrom(content)
        else:
            add_parts(message.parts, content)
        message.message_id, message.role = message.message_id or new_id(), v1.ROLE_USER
        message.task_id = run_id or message.task_id
        message.context_id = overrides.get("context_id") or message.context_id
        request = v1.SendMessageRequest(message=message)
        if metadata := overrides.get("metadata"):
            request.metadata.CopyFrom(struct_of(metadata))
        request.configuration.accepted_output_modes.extend(overrides.get("output_modes", ()))
        return Run(self._events(request, overrides), known)

    async def _events(
        self, request: v1.SendMessageRequest, overrides: Overrides
    ) -> AsyncGenerator[v1.StreamResponse, None]:
        """The events of a run in the time that it has."""
        limit = overrides.get("timeout", self._timeout)
        until = None if limit is None else time.monotonic() + limit
        run_id, over, told = request.message.task_id, False, False
        cancels = overrides.get("cancel_on_abort", self._cancel_on_abort)
        source = self._source(request, overrides)
        coming: asyncio.Future[v1.StreamResponse | None] | None = None

        def heard(event: v1.StreamResponse | None) -> None:
            nonlocal run_id, over, told  # the first look at a run that is answered may still show its question
            stale = not told and bool(request.message.task_id) and event is not None and event.HasField("task")
            over = event is None or event.HasField("message") or (state_of(event) in FINISHED and not stale)
            run_id, told = run_id or _run_id(event), True

        async def stop() -> None:
            if coming is not None and not coming.done():  # which run it is, is heard soon
                with suppress(A2AError, TimeoutError):
                    async with timeout(LAST_WORDS):
                        heard(await asyncio.shield(coming))
                coming.cancel()
                await asyncio.wait((coming,))
            await source.aclose()
            if run_id and not over:
                with suppress(A2AError, TimeoutError, OSError):
                    async with timeout(LAST_WORDS):
                        await self._client.cancel(run_id)

        try:
            while not over:
                async with timeout(None if until is None else max(0.0, until - time.monotonic())):
                    if run_id or not cancels:
                        event = await anext(source, None)
                    else:
                        coming = asyncio.ensure_future(anext(source, None))
                        event = await asyncio.shield(coming)
                heard(event)
                if event is not None:
                    yield event
        finally:
            await (source.aclose() if over or not cancels else self._outlasting(stop()))

    async def _outlasting(self, work: Coroutine[Any, Any, None]) -> None:
        """Let something be done although who waits for it leaves, and may be told to leave again and again."""
        task = asyncio.create_task(work)
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)
        await asyncio.shield(task)

    async def _source(
        self, request: v1.SendMessageRequest, overrides: Overrides
    ) -> AsyncGenerator[v1.StreamResponse, None]:
        client = await self.client()
        told: Any = {name: overrides.get(name) for name in ("headers", "extensions")}
        if client.card is None or client.card.capabilities.streaming:
            async with aclosing(client.stream(request, **told)) as events:
                async for event in events:
                    yield event
            return
        request.configuration.return_immediately = not request.message.task_id
        answer = await client.send(request, **told)
        if answer.HasField("message"):
            yield v1.StreamResponse(message=answer.message)
            return
        yield v1.StreamResponse(task=answer.task)
        if not settled(answer.task):
            yield v1.StreamResponse(task=await client.wait(answer.task))

    # -- inside another agent

    async def delegated(
        self,
        handle: TaskHandle,
        place: int,
        content: Any = None,
        *,
        pause: bool = True,
        key: str = "",
        **overrides: Unpack[Overrides],
    ) -> Result:
        """What `TaskHandle.delegate` does: let this agent work as a part of a task. place: which of the delegations
        of a turn it is."""
        given = list(handle.parts) if content is None else content
        runs: dict[str, Any] = handle.state.setdefault(DELEGATED, {})
        if not key:
            here = f"{place} {self.name} "
            key = here + ("" if content is None else _mark(content))
            if key not in runs and any(name.startswith(here) and run.get("asked") for name, run in runs.items()):
                log.warning("task %s: what %s asked is not answered: delegation %d was given something else this time; "
                            "give it what stays the same from turn to turn", handle.id, self.name, place)  # fmt: skip
        known, told, memory = runs.get(key), self._told(handle, overrides), handle.context.memory

        async def begun(run_id: str, context_id: str) -> None:
            runs[key] = {"run": run_id}
            if context_id and "context_id" not in overrides and await memory.get(CONTEXTS + self.name) != context_id:
                await memory.set(CONTEXTS + self.name, context_id)

        if known is None:
            if "context_id" not in told:
                told["context_id"] = await memory.get(CONTEXTS + self.name, "")
            found = await self._run(given, "", begun, told).result()
        elif known.pop("asked", False):
            found = await self._run(list(handle.parts), known["run"], begun, told).result()
        else:
            found = await self.result(known["run"], wait=True)
        if pause and found.suspended is not None:
            runs[key]["asked"] = True
            asks = handle.ask_auth if found.suspended.kind == "auth" else handle.ask
            await asks(found.suspended.prompt or None, data=found.suspended.payload, schema=found.suspended.schema)
            raise Paused(f"the task waits for what {self.name} asked")
        return found

    def _told(self, handle: TaskHandle, overrides: Overrides) -> Overrides:
        """What a delegation says of its run: the trace goes on, the run ends with the task, and in its time."""
        call = handle.call
        headers = {
            **trace_headers(trace_of(call.metadata)),
            **telemetry.outgoing_headers(),
            **overrides.get("headers", {}),
        }
        told: Overrides = {"cancel_on_abort": True, **overrides, "headers": headers}
        if call.deadline is not None and handle.waited_for:
            left, limit = max(0.0, call.deadline - time.monotonic()), told.get("timeout", self._timeout)
            told["timeout"] = left if limit is None else min(left, limit)
        return told


def _mark(content: Any) -> str:
    """A short mark of what was given."""
    message = v1.Message()
    add_parts(message.parts, content)
    return hashlib.sha256(message.SerializeToString(deterministic=True)).hexdigest()[:12]


def _run_id(event: v1.StreamResponse | None) -> str:
    body: Any = None if event is None else getattr(event, event.WhichOneof("payload") or "", None)
    return (
        "" if body is None or isinstance(body, v1.Message) else body.id if isinstance(body, v1.Task) else body.task_id
    )
