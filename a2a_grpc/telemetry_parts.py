"""What is put around the parts of a server to watch them: service, gate, turns, store, poster, and wires of clients.

Laws: parts are wrapped once, when a server is made, and know nothing of it; what is off is not wrapped and costs
nothing. A wrapper adds nothing to what its part does and takes nothing away. No credential is shown, and what was said
at debug level only (SEC-05, SEC-07, BL-53).
"""

import asyncio
import hashlib
import logging
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import aclosing, contextmanager
from functools import lru_cache
from inspect import iscoroutinefunction, isfunction
from typing import Any, Final
from urllib.parse import quote, urlsplit

from a2a_stubs import v1, v1_grpc

from a2a_grpc.call import ANONYMOUS, JSONRPC, REST, V1, Call, Caller, Credentials, Gate, trace_of
from a2a_grpc.errors import scrubbed
from a2a_grpc.methods import METHODS
from a2a_grpc.push_hosts import Outcome
from a2a_grpc.python310_asyncio import timeout
from a2a_grpc.ready import Stored
from a2a_grpc.tasks.invoke import in_thread
from a2a_grpc.tasks.state import state_name
from a2a_grpc.tasks.store import Store
from a2a_grpc.telemetry import (
    AGENT,
    AT_STORE,
    BINDING,
    CALL,
    CODE,
    CONTEXT,
    HERE,
    HTTP_STATUS,
    LEASES_LOST,
    OK,
    OPERATION,
    PUSH,
    REMOTE,
    REQUESTS,
    RESULT,
    STATE,
    STORE,
    TASK,
    TRIMMED,
    TURN,
    VERSION,
    Act,
    Here,
    Recorder,
    code_of,
)

log: Final = logging.getLogger("a2a_grpc")
calls: Final = logging.getLogger("a2a_grpc.calls")
"""One line for each call, at debug level, with what was said in it."""

FLUSH_SECONDS: Final = 0.8
"""Seconds that a stopping server waits for a collector."""

UNREACHABLE: Final = "UNREACHABLE"
"""The code of a call of another agent to which there was no connection."""

LONGEST_ID: Final = 128
"""Most characters of an id that a caller has made up; ours have 36."""

LONGEST_PLACE: Final = 1000
"""Most characters of a host or a path that a caller has asked for."""

SHOWN: Final = 1000
"""Most characters of a message in a line at debug level."""


_VARIABLE: Final = re.compile(r"\{(\w+)(?:=[^}]*)?\}")

PORTS: Final[Mapping[str, int]] = {"http": 80, "https": 443}
"""Ports of addresses that name none."""

SPANNED: Final = frozenset({"commit", "remember_reply"})
"""The operations of a store that make a span; the others are measured only."""

COUNTED: Final[Mapping[str, tuple[str, Callable[[Any], int]]]] = {
    "trim": (TRIMMED, len),
    "renew": (LEASES_LOST, len),
}
"""Operations of a store whose answers are counted, and how."""

SUBJECTS: Final[Mapping[type, Callable[[Any], tuple[str, str]]]] = {
    v1.SendMessageRequest: lambda sent: (sent.message.task_id, sent.message.context_id),
    v1.GetTaskRequest: lambda asked: (asked.id, ""),
    v1.CancelTaskRequest: lambda asked: (asked.id, ""),
    v1.SubscribeToTaskRequest: lambda asked: (asked.id, ""),
    v1.ListTasksRequest: lambda asked: ("", asked.context_id),
    v1.TaskPushNotificationConfig: lambda config: (config.task_id, ""),
    v1.GetTaskPushNotificationConfigRequest: lambda asked: (asked.task_id, ""),
    v1.ListTaskPushNotificationConfigsRequest: lambda asked: (asked.task_id, ""),
    v1.DeleteTaskPushNotificationConfigRequest: lambda asked: (asked.task_id, ""),
    v1.SendMessageResponse: lambda got: (got.task.id, got.task.context_id or got.message.context_id),
    v1.Task: lambda task: (task.id, task.context_id),
    Stored: lambda stored: SUBJECTS[stored.kind](stored.message()),
    v1.StreamResponse: lambda event: (event.task.id, event.task.context_id or event.message.context_id),
}
"""Task and context that a message is about, "" for none."""


class Off:
    """Nothing is watched: every part stays as it is.

    hash_callers: show callers as the first 12 hex digits of the SHA-256 of their subject; default False.
    """

    recorder: Recorder | None = None
    around: Callable[[Any, Coroutine[Any, Any, None]], Coroutine[Any, Any, None]] | None = None

    def __init__(self, *, hash_callers: bool = False) -> None:
        self._hash = hash_callers

    def shown(self, subject: str) -> str:
        """How a caller is called in log lines, spans and views."""
        return hashlib.sha256(subject.encode()).hexdigest()[:12] if self._hash and subject else subject

    async def flush(self) -> None:
        """Send what is recorded and not sent yet."""

    def service(self, service: Any) -> Any:
        """A service with what watches its calls."""
        return service

    def gate(self, gate: Gate | None) -> Gate | None:
        """A gate with what counts whom it lets in."""
        return gate

    def store(self, store: Store) -> Store:
        """A store with what measures its work."""
        return store

    def poster(self, poster: Any) -> Any:
        """A poster, None for none, with what watches its requests."""
        return poster


class Telemetry(Off):
    """Watches what a server is made of.

    recorder: where spans and measures go; None (default): only log lines get their ids. hash_callers: as of Off.
    """

    def __init__(self, recorder: Recorder | None = None, *, hash_callers: bool = False) -> None:
        super().__init__(hash_callers=hash_callers)
        self.recorder = recorder
        self._turns: dict[str, Act] = {}
        self.around = self._turn

    async def flush(self) -> None:
        """Send what is recorded and not sent yet; what is not taken within `FLUSH_SECONDS` is lost."""
        parts = self.recorder.flushes() if self.recorder else ()
        try:
            async with timeout(FLUSH_SECONDS):
                await asyncio.gather(*map(in_thread, parts))
        except Exception as fault:
            log.warning("not everything that was recorded could be sent: %s", str(fault) or type(fault).__name__)

    @contextmanager
    def here(self) -> Iterator[None]:
        """Watch what is called within, such as clients outside of any agent."""
        token = HERE.set(Here(self, {}, None))
        try:
            yield
        finally:
            HERE.reset(token)

    def _heard(self, call: Call) -> dict[str, str]:
        """The trace that a caller has told, for log lines where nothing is traced."""
        told = trace_of(call.metadata)
        return {"trace_id": told.split("-")[1]} if told else {}

    # -- calls

    def service(self, service: Any) -> Any:
        """The service with a span, a measure and, at debug level, a log line around each call."""
        return _Service(self, service)

    def gate(self, gate: Gate | None) -> Gate | None:
        """The gate, counting; without a gate, everybody is let in and counted."""
        recorder = self.recorder
        if recorder is None:
            return gate

        async def watched(credentials: Credentials) -> Caller:
            labels = {BINDING: credentials.binding, CODE: OK}
            try:
                return ANONYMOUS if gate is None else await gate(credentials)
            except Exception as fault:
                labels[CODE] = code_of(fault)
                raise
            finally:
                recorder.count(REQUESTS, 1, labels)

        return watched

    def call(self, request: Any, call: Call) -> Act:
        """A call begins; it goes on from what came with it, and its own trace context goes on in its metadata."""
        shown: dict[str, str] = {}
        details: dict[str, Any] = {}
        if (about := SUBJECTS.get(type(request))) is not None:
            shown, details = _named(*about(request))
        if subject := self.shown(call.caller.subject):
            shown["caller"] = details["a2a.caller"] = subject
        if self.recorder is None:
            shown |= self._heard(call)
        if call.tenant:
            details["a2a.tenant"] = call.tenant[:LONGEST_ID]
        if call.path:
            details |= _server(call.metadata.get("host", "")[:LONGEST_PLACE])
            details["url.path"] = call.path[:LONGEST_PLACE]
        labels = {OPERATION: call.operation, BINDING: call.binding, VERSION: call.version}
        act = Act(self, CALL, call.operation, labels, details, headers=call.metadata, fields=shown)
        if headers := act.headers():
            call.metadata = {**call.metadata, **headers}
        return act

    # -- turns

    async def _turn(self, turn: Any, work: Coroutine[Any, Any, None]) -> None:
        """The function of a turn at work; the act ends with the turn, whose last commit comes later."""
        owner = self.shown(turn.scope.owner)
        fields = {"task": turn.task_id, "context": turn.context_id}
        if owner:
            fields["caller"] = owner
        if self.recorder is None:
            fields |= self._heard(turn.call)
        details = {TASK: turn.task_id, CONTEXT: turn.context_id, "a2a.attempt": str(turn.attempt)}
        agent = turn.agent.name
        act = Act(self, TURN, f"turn {agent}", {AGENT: agent}, details, earlier=turn.earlier, fields=fields)
        self._turns[turn.task_id] = act

        def over(_: object) -> None:
            if self._turns.get(turn.task_id) is act:
                del self._turns[turn.task_id]
            act.labels[STATE] = state_name(turn.ending).removeprefix("TASK_STATE_") if turn.ending else "LOST"
            act.end(failed=not turn.ending or turn.ending == v1.TASK_STATE_FAILED)

        turn.over.add_done_callback(over)
        with act:
            await work

    # -- the store

    def store(self, store: Store) -> Store:
        """The store with a measure around each method, and a span around what commits."""
        return store if self.recorder is None else _WatchedStore(self, store)

    def at_store(self, name: str, of: Any) -> Act:
        """A method of a store begins; of: its first argument; a change says which turn it belongs to."""
        turn = self._turns.get(getattr(of, "task_id", ""))
        parent = None if turn is None else turn.span
        return Act(self, STORE, f"store {name}", {AT_STORE: name}, parent=parent, spanned=name in SPANNED, whole=True)

    # -- webhooks and other agents

    def poster(self, poster: Any) -> Any:
        """The poster with a span and a measure around each request, which carries the span on (SEC-07)."""
        return None if poster is None else _WatchedPoster(self, poster)

    def through(self, wire: Any, entry: v1.AgentInterface) -> "_WatchedWire":
        """A client's wire to an interface with a span and a measure around each call, which carries the span on."""
        return _WatchedWire(self, wire, entry)


def _named(task: str, context: str) -> tuple[dict[str, str], dict[str, Any]]:
    """Ids of a task and a context as far as there are any: for log lines, and for spans."""
    shown: dict[str, str] = {}
    details: dict[str, Any] = {}
    if task:
        shown["task"] = details[TASK] = task[:LONGEST_ID]
    if context:
        shown["context"] = details[CONTEXT] = context[:LONGEST_ID]
    return shown, details


def _finish(act: Act, request: Any, fault: BaseException | None) -> None:
    act.labels[CODE] = code = code_of(fault)
    # Who leaves a stream, or asks for what is not there, is no fault of the server.
    seconds = act.end(failed=code != OK and code != "CANCELED")
    if calls.isEnabledFor(logging.DEBUG):
        said = " ".join(part.text for part in request.message.parts) if hasattr(request, "message") else ""
        what = act.labels[OPERATION], act.labels[BINDING], act.labels[VERSION], code, seconds * 1000
        with act:
            calls.debug("%s over %s %s: %s in %.1f ms%s", *what, f"; said: {said[:SHOWN]!r}" if said else "")


class _Service(v1_grpc.A2AServiceServicer):
    def __init__(self, telemetry: Telemetry, service: Any) -> None:
        for method in v1_grpc.METHODS:
            wrap = _streaming if method.server_streaming else _unary
            setattr(self, method.name, wrap(telemetry, getattr(service, method.name)))


def _unary(telemetry: Telemetry, method: Any) -> Any:
    async def called(request: Any, call: Call) -> Any:
        act, fault = telemetry.call(request, call), None
        try:
            with act:
                answer = await method(request, call)
            if act.span is not None and (about := SUBJECTS.get(type(answer))) is not None:
                act.more |= _named(*about(answer))[1]
            return answer
        except BaseException as raised:
            fault = raised
            raise
        finally:
            _finish(act, request, fault)

    return called


def _streaming(telemetry: Telemetry, method: Any) -> Any:
    async def called(request: Any, call: Call) -> AsyncIterator[Any]:
        act, number = telemetry.call(request, call), 0
        fault: BaseException | None = None
        try:
            async with aclosing(method(request, call)) as events:
                # Whoever takes the next event may do so in another context, so each step enters and leaves.
                while True:
                    with act:
                        event = await anext(events, None)
                    if event is None:
                        return
                    if not number and (about := SUBJECTS.get(type(event))) is not None:
                        act.more |= _named(*about(event))[1]
                    number += 1
                    yield event
        except BaseException as raised:
            fault = raised
            raise
        finally:
            act.more["a2a.events"] = str(number)
            _finish(act, request, fault)

    return called


class _WatchedStore:
    def __init__(self, telemetry: Telemetry, store: Store) -> None:
        self._store, self._telemetry = store, telemetry
        for name, method in vars(Store).items():
            if iscoroutinefunction(method) and name not in ("open", "close"):
                setattr(self, name, self._watched(name, getattr(store, name)))
            elif isfunction(method) and not name.startswith("_"):
                setattr(self, name, getattr(store, name))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def _watched(self, name: str, method: Any) -> Any:
        telemetry, (counter, amount) = self._telemetry, COUNTED.get(name, ("", len))
        recorder = telemetry.recorder

        async def called(*given: Any) -> Any:
            act = telemetry.at_store(name, given[0])
            try:
                answer = await method(*given)
            except BaseException as fault:
                act.labels[CODE] = type(fault).__name__
                act.end(fault)
                raise
            act.labels[CODE] = OK
            act.end()
            if counter and recorder is not None and (number := amount(answer)):
                recorder.count(counter, number, {})
            return answer

        return called


class _WatchedPoster:
    def __init__(self, telemetry: Telemetry, poster: Any) -> None:
        self._telemetry, self._poster = telemetry, poster

    def __getattr__(self, name: str) -> Any:
        return getattr(self._poster, name)

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> Outcome:
        """See Poster."""
        labels = {RESULT: "broken off"}
        details = {**_server(url), "http.request.method": "POST"}
        act = Act(self._telemetry, PUSH, "push", labels, details, headers=headers)
        try:
            with act:
                outcome: Outcome = await self._poster.post(url, {**headers, **act.headers()}, body)
            labels[RESULT] = _result(outcome)
            act.more["a2a.push.said"] = outcome.said
            if outcome.status:
                act.more[HTTP_STATUS] = outcome.status
            return outcome
        finally:
            act.end(failed=labels[RESULT] != "delivered")


def _result(outcome: Outcome) -> str:
    if outcome.delivered:
        return "delivered"
    return "gone" if outcome.gone else "failed" if outcome.ill else "refused"


class _WatchedWire:
    def __init__(self, telemetry: Telemetry, wire: Any, entry: v1.AgentInterface) -> None:
        self._telemetry, self._wire, self._entry = telemetry, wire, entry

    def _begin(self, operation: str, request: Any) -> Act:
        entry = self._entry
        version = ".".join(entry.protocol_version.split(".")[:2])
        labels = {OPERATION: operation, BINDING: entry.protocol_binding, VERSION: version}
        details = {**_server(entry.url), **_address(entry, version, operation, request)}
        return Act(self._telemetry, REMOTE, operation, labels, details)

    async def unary(self, operation: str, request: Any, headers: Mapping[str, str]) -> Any:
        """See Wire."""
        act, fault = self._begin(operation, request), None
        try:
            with act:
                return await self._wire.unary(operation, request, {**headers, **act.headers()})
        except BaseException as raised:
            fault = raised
            raise
        finally:
            _end(act, fault)

    async def stream(
        self, operation: str, request: Any, headers: Mapping[str, str]
    ) -> AsyncGenerator[tuple[str, v1.StreamResponse], None]:
        """See Wire."""
        act = self._begin(operation, request)
        fault: BaseException | None = None
        try:
            async with aclosing(self._wire.stream(operation, request, {**headers, **act.headers()})) as events:
                async for found in events:
                    yield found
        except BaseException as raised:
            fault = raised
            raise
        finally:
            _end(act, fault)


def _end(act: Act, fault: BaseException | None) -> None:
    act.labels[CODE] = code = UNREACHABLE if isinstance(fault, ConnectionError) else code_of(fault)
    act.end(failed=code not in (OK, "CANCELED"))


def _address(entry: v1.AgentInterface, version: str, operation: str, request: Any) -> Mapping[str, str]:
    """The address of a call over HTTP, without its query. That of REST in v0.3 only its wire knows."""
    if entry.protocol_binding == JSONRPC:
        return {"url.full": _base(entry.url)}
    method = METHODS[V1].get(operation)
    if entry.protocol_binding != REST or version != V1 or method is None:
        return {}
    route = next(
        each for each in method.routes if ("{tenant}" in each.template) == bool(getattr(request, "tenant", ""))
    )
    path = _VARIABLE.sub(lambda found: quote(str(getattr(request, found[1], "")), safe=""), route.template)
    return {"url.full": _base(entry.url).rstrip("/") + path}


@lru_cache(1024)
def _base(url: str) -> str:
    return scrubbed(url)


@lru_cache(1024)
def _server(url: str) -> Mapping[str, Any]:
    """Whom a request goes to, by its address or `host:port`; the rest of an address may hold secrets."""
    try:
        parts = urlsplit(url if "://" in url else f"//{url}")
        port = parts.port or PORTS.get(parts.scheme)
    except ValueError:
        return {}
    if not parts.hostname:
        return {}
    return {"server.address": parts.hostname} | ({"server.port": port} if port else {})
