"""The gateway: an agent somewhere else, as a servicer that every wire and version can be put in front of.

Laws: the eleven methods are one loop over the method table, so that no operation is named here; a v1.0 message and a
`Call` come in, what the upstream answers goes out. Whatever wire and version the upstream speaks is the client's
business. What the agent means is not judged here: its errors are passed on as they are, only the way to it is kept to
ourselves, since callers shall not learn its address. Nothing of a task is kept but what `buffer` and `push` say.
"""

import logging
import ssl
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import aclosing, suppress
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any, Final

from a2a_stubs import v1, v1_grpc
from google.protobuf.message import Message

from a2a_grpc.call import GRPC, RESUME_EXTENSION, V03, VERSIONS, Call
from a2a_grpc.cards import RESOLVED
from a2a_grpc.client import Client, Events
from a2a_grpc.client_auth import BALANCES, Channel, Tls, plain
from a2a_grpc.client_cards import Found, Verify, trusted
from a2a_grpc.client_streams import number_of
from a2a_grpc.client_wires import DEADLINE
from a2a_grpc.config import OptionError, Options
from a2a_grpc.errors import (
    STOPPING,
    A2AError,
    InvalidAgentResponseError,
    UnavailableError,
    UnsupportedOperationError,
    scrubbed,
)
from a2a_grpc.gateway_log import Log, Source
from a2a_grpc.gateway_tasks import CONFIGS, READ, Asking, Keeper
from a2a_grpc.gateway_way import Way
from a2a_grpc.protojson import encode
from a2a_grpc.service import ENDED
from a2a_grpc.tasks.engine import Engine
from a2a_grpc.tasks.state import TERMINAL

log: Final = logging.getLogger("a2a_grpc.gateway")

FORWARDED: Final = ("traceparent", "tracestate")
"""Headers of a call, or metadata, that go on to the upstream by default, names in lower case."""

CREDENTIALS: Final = ("authorization",)
"""Headers that go on, too, unless the gateway itself has asked who is calling: then they were meant for the gateway."""

DOUBTED: Final = "The card of the agent behind this gateway is not to be trusted"
"""What callers read in place of an extended card that is refused; the log says more."""

H2: Final = "4."
"""Releases of h2 that are used where somebody else has installed them."""

PUSH: Final = ("pass", "own")
"""Whose push notification configs are: the upstream's, or the gateway's."""

_PLAIN_CARD: Final = v1.AgentCard(
    name="Agent",
    description="An agent behind a gateway.",
    version="0",
    default_input_modes=["text/plain"],
    default_output_modes=["text/plain"],
    capabilities=v1.AgentCapabilities(streaming=True, push_notifications=True),
)


class Upstream(v1_grpc.A2AServiceServicer):
    """An agent at an address: takes the place of an Agent in a Server, which then is a gateway to it.

    url: what Client takes, or `host:port` for gRPC without a card, with TLS if `tls` is given; also as gRPC's resolver
    takes it, such as `dns:///agents:50051`. channel: how connections are held, and shared among addresses. binding,
    version: the interface to use, default the first in its card that can be called, version 1.0 before 0.3. headers:
    sent with every call, such as the gateway's own credential. forward: names of headers of the caller that go on,
    default `FORWARDED`; see also `CREDENTIALS`. card: for an upstream that has none at its address; default a plain
    one. tls: authorities of one's own and a client certificate, as of Client. verify: judges each card of the upstream,
    as of Client; one that it refuses is never used, and a gateway without another is not ready.
    buffer: bytes of events that are kept for an upstream whose card does not say that its streams can be resumed, so
    that readers resume them here: all together in this process, or, where the server has a store that outlives it, of
    each task there, also after a restart and for other servers on that store; default 0: none. The default of the
    server's options is a file, as for agents.
    push: "pass" (default): push notification configs are the upstream's, which delivers; "own": they are kept and
    delivered by the server that this is in, with its option `push_notifications`, also where the upstream knows nothing
    of them.
    tenants: where the server has several agents, those that the first of them serves; alone, an upstream gets them all.
    present: how the server shows the upstream's card to a caller; set by the server.
    Each method raises what the upstream answers, and UnavailableError when it cannot be reached. Raises ValueError
    for what is no address, OptionError for `verify` where there is no card to judge.
    """

    def __init__(
        self,
        url: str,
        *,
        binding: str | None = None,
        version: str | None = None,
        headers: Mapping[str, str] | None = None,
        forward: Iterable[str] = FORWARDED,
        card: v1.AgentCard | None = None,
        tls: ssl.SSLContext | Tls | None = None,
        verify: Verify | None = None,
        buffer: int = 0,
        tenants: Iterable[str] = (),
        channel: Channel = Channel(),  # noqa: B008 - it cannot change
        push: str = "pass",
    ) -> None:
        schemeless = "://" not in url or url.startswith(RESOLVED)
        self.url = f"grpc{'s' * bool(tls)}://{url}" if schemeless else url
        if verify is not None and not self.url.startswith("http"):
            raise OptionError(f"{scrubbed(self.url)} has no card that could be verified")
        if push not in PUSH:
            raise OptionError(f"push must be one of {', '.join(PUSH)}, not {push!r}")
        self.push: Final = push
        self._keeper: Keeper | None = None
        self.buffer: Final = buffer
        self._log = Log(buffer) if buffer else None
        self._verify = verify
        self.tenants = tuple(tenants)
        self.present: Callable[[v1.AgentCard, Call], v1.AgentCard] = lambda card, _: card
        self.card = card or _PLAIN_CARD
        """The upstream's card as last seen; another object only when it says something else."""
        self._given = card
        self._declared: frozenset[str] = frozenset()
        told = {"binding": binding, "headers": headers, "tls": tls, "verify": verify, "channel": _channel(channel)}
        settings: Mapping[str, Any] = {**told, "retries": None}
        self._way = Way(self.url, (version,) if version else VERSIONS, settings, self._learn)
        fixed = {name.lower() for name in headers or ()}
        names = {name.lower(): None for name in forward}
        self._forward_known = tuple(name for name in names if name not in fixed)
        self._forward = tuple(name for name in (names | dict.fromkeys(CREDENTIALS)) if name not in fixed)
        for method in v1_grpc.METHODS:
            name = method.name
            setattr(self, name, self._streaming(name) if method.server_streaming else self._unary(method))

    # -- life

    def keep(self, name: str, engine: Engine, options: Options, lasting: bool) -> None:
        """Let the server keep what `push` and `buffer` say. name: of the upstream in its server; engine, options: of
        that; lasting: whether its store outlives the process, and is to have the events. Raises OptionError."""
        own, stores = self.push == "own", lasting and self.buffer > 0
        if own and not options.push_notifications:
            raise OptionError("push notifications of one's own need the option push_notifications")
        if own or stores:
            most = self.buffer if stores else 0
            self._keeper = Keeper(name, engine, options, self.connected, (*FORWARDED, DEADLINE), own, most)
        if stores:
            self._log = None

    @property
    def up(self) -> bool:
        """Whether the upstream could be reached at the last look."""
        return self._way.up

    async def open(self) -> None:
        """Look for the upstream, now and then again every few seconds; it need not be there yet."""
        await self._way.open()

    async def close(self, grace: float = 0.0) -> None:
        """Let go of the upstream once no call is left, after `grace` seconds in any case; tasks there go on. What is
        left then ends with UnavailableError, as does every later call until `open`."""
        await self._way.end(grace)
        if self._log is not None:
            await self._log.close()
        await self._way.close()

    async def connected(self) -> Client:
        """The client of the upstream, whose card is known from then on. Raises UnavailableError."""
        return await self._way.connected()

    def _learn(self, found: v1.AgentCard | None) -> None:
        card = self._given or found or _PLAIN_CARD
        if self.push == "own":
            known, card = card, v1.AgentCard()
            card.CopyFrom(known)
            card.capabilities.push_notifications = True
        self._declared = frozenset(extension.uri for extension in (found or card).capabilities.extensions)
        if self._logs:
            known, card = card, v1.AgentCard()
            card.CopyFrom(known)
            card.capabilities.extensions.add(uri=RESUME_EXTENSION)
        if card != self.card:
            self.card = card

    # -- calls

    @property
    def _logs(self) -> bool:
        """Whether streams are kept here, since the upstream cannot resume them."""
        return self.buffer > 0 and RESUME_EXTENSION not in self._declared

    def _unary(self, method: Any) -> Callable[[Any, Call], Awaitable[Any]]:
        operation, gives_card, is_config = method.name, method.output is v1.AgentCard, method.input in CONFIGS

        async def called(request: Message, call: Call) -> Any:
            with self._way.under_way():
                client = await self.connected()
                asked, told = self._carried(client, request, call)
                self._stir(request)
                if self.push != "own" or self._keeper is None or not (is_config or _has_config(asked)):
                    if is_config and call.version == V03:
                        asked = _with_id(asked)
                    answer = await client.call(operation, asked, **told)
                elif is_config:
                    answer = await self._keeper.configs(operation, asked, Asking(client, call, told), method.output)
                else:
                    answer = await self._keeper.send(operation, Asking(client, call, told, asked))
            return self.present(await self._judged(answer), call) if gives_card else answer

        return called

    def _stir(self, request: Any) -> None:
        if self._keeper is not None and isinstance(request, v1.SendMessageRequest):
            self._keeper.stir(request.message.task_id)

    async def _judged(self, card: v1.AgentCard) -> v1.AgentCard:
        """An extended card, if it may be believed."""
        try:
            return await trusted(self._verify, Found(card, encode(card), self.url)) if self._verify else card
        except InvalidAgentResponseError as fault:
            log.warning("%s", fault.message)
            raise InvalidAgentResponseError(DOUBTED) from fault

    def _streaming(self, operation: str) -> Callable[[Any, Call], AsyncGenerator[v1.StreamResponse, None]]:
        async def called(request: Message, call: Call) -> AsyncGenerator[v1.StreamResponse, None]:
            with self._way.under_way() as task:
                client = await self.connected()
                if not self.card.capabilities.streaming:
                    raise UnsupportedOperationError("The agent behind this gateway does not stream")
                if self._keeper is not None and (self._logs or (self.push == "own" and _has_config(request))):
                    source = self._stored(client, operation, request, call)
                else:
                    self._stir(request)
                    source = (self._kept if self._logs else self._passed)(client, operation, request, call)
                if isinstance(request, v1.SubscribeToTaskRequest):
                    old = call.version == V03
                    source = self._or_ended(source, client, request, call) if old else _unless_ended(source, call)
                async with aclosing(source) as events:
                    async for event in events:
                        self._way.waiting.discard(task)  # what waits for the reader does not wait for the upstream
                        yield event
                        if self._way.over:
                            raise UnavailableError(STOPPING)
                        self._way.waiting.add(task)

        return called

    async def _or_ended(self, source: Source, client: Client, request: Any, call: Call) -> Source:
        """What a subscription gives; in v0.3 a task that has ended is answered, and only v1.0 refuses it (V03-29)."""
        try:
            async with aclosing(source) as events:
                async for event in events:
                    yield event
        except UnsupportedOperationError:
            asked, told = self._carried(client, request, call)
            task = v1.Task()
            with suppress(A2AError):
                task = await client.call(READ, v1.GetTaskRequest(id=asked.id, tenant=asked.tenant), **told)
            if task.status.state not in TERMINAL:
                raise
            yield v1.StreamResponse(task=task)

    def _stored(self, client: Client, operation: str, request: Any, call: Call) -> Source:
        """A stream of a task that the server keeps."""
        assert self._keeper is not None
        asked, told = self._carried(client, request, call)
        if not self._logs:
            way = partial(self._passed, client, operation, call=call)
            return self._keeper.stream(Asking(client, call, told, asked), way, logged=False)
        told["headers"].pop(DEADLINE, None)  # what is kept outlives its first reader
        if RESUME_EXTENSION in call.extensions:
            call.activated = (*call.activated, RESUME_EXTENSION)
        begin: Any = partial(client.events, operation, **told)
        if isinstance(asked, v1.SendMessageRequest):
            events = self._keeper.stream(Asking(client, call, told, asked), begin, logged=True)
        else:
            events = self._keeper.subscribe(Asking(client, call, told), asked.id, partial(begin, asked))
        return _all_numbered(events, call)

    async def _passed(
        self, client: Client, operation: str, request: Any, call: Call
    ) -> AsyncGenerator[v1.StreamResponse, None]:
        """A stream as the upstream gives it, with its own numbers if it has any."""
        last = "" if call.resume is None else str(call.resume)
        shown = call.binding != GRPC or RESUME_EXTENSION in call.extensions
        numbered = shown and client.interface.protocol_binding == GRPC
        asked, told = self._carried(client, request, call, numbered=numbered)
        async with aclosing(client.events(operation, asked, last_event_id=last, **told)) as events:
            async for event in events:
                if shown:
                    _number(event, events.last_event_id, call)
                yield event

    async def _kept(
        self, client: Client, operation: str, request: Any, call: Call
    ) -> AsyncGenerator[v1.StreamResponse, None]:
        """A stream by way of the log; one that is resumed comes out of it as far as it is there. Who may read it is
        asked of the upstream each time."""
        assert self._log is not None
        asked, told = self._carried(client, request, call)
        told["headers"].pop(DEADLINE, None)  # what is kept outlives its first reader
        if RESUME_EXTENSION in call.extensions:
            call.activated = (*call.activated, RESUME_EXTENSION)
        if call.resume is not None and isinstance(asked, v1.SubscribeToTaskRequest):
            read = v1.GetTaskRequest(id=asked.id, tenant=asked.tenant)
            task = await client.call(READ, read, **told)
            if (found := self._log.find(call.resume, asked.id)) is not None:
                recording, after = found
                async with aclosing(recording.read(after)) as events:
                    async for call.position, event in events:
                        yield _numbered(event, call)
                if recording.over:
                    return
                task = await client.call(READ, read, **told)
            if task.status.state in TERMINAL:  # which nobody can subscribe to
                call.position = 0
                yield v1.StreamResponse(task=task)
                return
        recording = self._log.record(_without_ids(client.events(operation, asked, **told)))
        async with aclosing(recording.read()) as events:
            async for call.position, event in events:
                yield _numbered(event, call)
        if recording.fault is not None:
            raise recording.fault

    def _carried(
        self, client: Client, request: Any, call: Call, *, numbered: bool = False
    ) -> tuple[Any, dict[str, Any]]:
        """The request as it goes on, and what goes beside it: headers, extensions, the deadline. numbered: whether the
        upstream must be asked to number its events, as gRPC does not."""
        names = self._forward_known if call.caller.authenticated else self._forward
        headers = {name: value for name in names if (value := call.metadata.get(name)) and plain(value)}
        if call.deadline is not None and client.interface.protocol_binding == GRPC:
            headers[DEADLINE] = f"{max(1, int((call.deadline - time.monotonic()) * 1000))}m"
        call.activated = tuple(uri for uri in call.extensions if uri in self._declared)
        extensions = tuple(filter(plain, call.extensions))  # what is no URI is supported by nobody (EXT-04)
        if numbered and RESUME_EXTENSION not in extensions:
            extensions = (*extensions, RESUME_EXTENSION)
        if request.tenant != call.tenant:  # it has named one of the agents here
            given, request = request, type(request)()
            request.CopyFrom(given)
            request.tenant = call.tenant
        return request, {"headers": headers, "extensions": extensions}


def _channel(given: Channel) -> Channel:
    """How connections are held, where nobody has said by which library streams are read."""
    free = not given.streams and given.balance == BALANCES[0]
    fits = free and find_spec("h2") is not None and version("h2").startswith(H2)
    return replace(given, streams="h2") if fits else given


def _has_config(request: Any) -> bool:
    """Whether a message brings a push notification config."""
    return isinstance(request, v1.SendMessageRequest) and request.configuration.HasField(
        "task_push_notification_config"
    )


def _with_id(request: Any) -> Any:
    """A request about a push notification config of which a v0.3 caller has not said the id: that of the task is meant
    (L-20, I-56)."""
    if not getattr(request, "id", "-") and request.task_id:
        given, request = request, type(request)(id=request.task_id)
        request.MergeFrom(given)
    return request


async def _unless_ended(events: Source, call: Call) -> Source:
    """What a subscription of v1.0 gives, which refuses a task that has ended (SUB-04); see `_or_ended` for v0.3."""
    begun = call.resume is not None
    async with aclosing(events):
        async for event in events:
            if not begun and event.HasField("task") and event.task.status.state in TERMINAL:
                raise UnsupportedOperationError(ENDED)
            begun = True
            yield event


async def _all_numbered(events: Source, call: Call) -> Source:
    async with aclosing(events):
        async for event in events:
            yield _numbered(event, call)


async def _without_ids(events: Events) -> AsyncGenerator[v1.StreamResponse, None]:
    async with aclosing(events):
        async for event in events:
            number_of(event, keep=False)
            yield event


def _numbered(event: v1.StreamResponse, call: Call) -> v1.StreamResponse:
    """An event as the reader is to see it: with its number if the resume extension was asked for."""
    if RESUME_EXTENSION in call.activated:
        event = v1.StreamResponse.FromString(event.SerializeToString())
        body: Any = getattr(event, event.WhichOneof("payload") or "")
        body.metadata[RESUME_EXTENSION] = {"sequence": call.position}
    return event


def _number(event: v1.StreamResponse, ident: str, call: Call) -> None:
    """Learn an event's number from its id, or from what the resume extension adds, which only who asked for it sees."""
    if ident.isascii() and ident.isdigit() and len(ident) < 19:
        call.position = int(ident)
    call.position = number_of(event, RESUME_EXTENSION in call.extensions) or call.position
