"""The client: find an agent's card, choose one of its interfaces, call it.

Laws: a v1.0 message goes in and v1.0 messages come out whatever wire and version lie between; every error of the peer
is raised as a class of errors.py, told by reason or code before status (ERR-15). What a wire looks like is said by the
client ends of bindings/, who carries it by client_wires, which way is taken by client_dial, what is tried again by
client_retries and client_streams; here they come together, and here is one method for each operation.
"""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing
from types import TracebackType
from typing import Any, Final, Self, TypedDict, Unpack
from urllib.parse import urlsplit

from a2a_stubs import v1
from google.protobuf.message import Message

from a2a_grpc import telemetry
from a2a_grpc.bindings import wire
from a2a_grpc.call import GRPC, RESUME_EXTENSION, V03, V1, Call, Interceptor
from a2a_grpc.client_auth import Auth, Shown, Tls, auth_of
from a2a_grpc.client_cards import CardCache, Found, Verify, card_url, trusted
from a2a_grpc.client_dial import Dialer, chosen, spoken
from a2a_grpc.client_retries import IDEMPOTENT, NEVER, Retries, unsent
from a2a_grpc.client_streams import Events, Following, Source, Ways, number_of, settled
from a2a_grpc.client_wires import Wire
from a2a_grpc.errors import A2AError, UnauthenticatedError, UnavailableError, UnsupportedOperationError
from a2a_grpc.protojson import encode
from a2a_grpc.tasks.state import ENDS, state_of
from a2a_grpc.v03_names import METHOD_NAMES

__all__ = ["SCHEMES", "Client", "Events"]

SCHEMES: Final = ("http", "https", "grpc", "grpcs")
"""Schemes of the addresses that a client takes."""


class Told(TypedDict, total=False):
    """What may be said of one call: headers and extensions."""

    headers: Mapping[str, str] | None
    extensions: Iterable[str] | None


class More(Told, total=False):
    """What may be said of a call with one answer: its time, too."""

    timeout: float | None


class Client:
    """One agent, called on one of its interfaces: `async with Client(url) as agent`, or `await Client.connect(url)`.

    url: base URL of the agent, URL of its card (ending in `.json`), `grpc://host:port` (`grpcs://` with TLS) for gRPC
    without a card, or a card. binding: "JSONRPC", "HTTP+JSON" or "GRPC", the only one to use, or several in order of
    preference; default: the card's order (CARD-07). version: "1.0" (default) or "0.3" pins the version, None takes the
    newest that the card offers (VER-08). headers: sent with each request, as metadata on gRPC. auth: credentials that
    change: a bearer token or headers, a function (plain or async) that gives them, or an object such as
    ClientCredentials; after a 401 they are asked for once more. extensions: URIs to ask for (EXT-02). tenant: default:
    the one that the interface names (TENANT-01). timeout: seconds to wait for an answer or the next event, default
    forever, then TimeoutError. silence: seconds after which a stream that has begun and carries nothing is taken for
    dead and opened again, default never. retries: see Retries; None never repeats anything. repeat_sends: whether the
    agent tells a repeated message by its id; default: only if its card says that it is served by this package. tls: a
    Tls, or a context for HTTP only; default: the system's trust. A gRPC address without a scheme is called with TLS if
    the card came by https, or names https; gRPC trusts its own list of authorities, or SSL_CERT_FILE. interceptors:
    surround each call, the first outermost: as on a server, but `call.metadata` are the headers to send. verify:
    judges the card, and the extended one, before anything in it is used (SIGN-10); default: it is believed. cards:
    cards that are kept, to be shared between clients; default: an own cache.
    Every operation raises the A2AError that the agent answers with, and UnavailableError when nobody answers.
    """

    def __init__(
        self,
        url: str | v1.AgentCard,
        *,
        binding: str | Sequence[str] | None = None,
        version: str | None = V1,
        headers: Mapping[str, str] | None = None,
        auth: "Auth | Shown | Callable[[], Shown | Awaitable[Shown]] | None" = None,
        extensions: Iterable[str] = (),
        tenant: str | None = None,
        timeout: float | None = None,
        silence: float | None = None,
        retries: Retries | None = Retries(),  # noqa: B008 - it cannot change
        repeat_sends: bool | None = None,
        tls: ssl.SSLContext | Tls | None = None,
        interceptors: Sequence[Interceptor] = (),
        verify: Verify | None = None,
        cards: CardCache | None = None,
    ) -> None:
        self._given = Found(url, encode(url), "") if isinstance(url, v1.AgentCard) else None
        self._url = "" if isinstance(url, v1.AgentCard) else url
        self._binding, self._version = binding, version
        self._headers = {name.lower(): value for name, value in (headers or {}).items()}
        self._auth = auth_of(auth)
        self._extensions = tuple(extensions)
        self._tenant, self._timeout = tenant, timeout
        self._retries = retries or NEVER
        self._repeat_sends = repeat_sends
        self._interceptors, self._verify, self._cards = tuple(interceptors), verify, cards or CardCache()
        places = [entry.url for entry in url.supported_interfaces] if isinstance(url, v1.AgentCard) else [url]
        self._dialer = Dialer(any(place.startswith("https:") for place in places), tls, silence)
        self._wire: Wire | None = None
        self._seen: Found | None = None
        self.card: v1.AgentCard | None = None
        """The agent's card, once connected; None when it was reached without one."""
        self.interface = v1.AgentInterface()
        """The interface in use, once connected."""

    @classmethod
    async def connect(cls, url: str | v1.AgentCard, **settings: Any) -> Self:
        """A client that is ready to call; takes what `Client` takes. Close it when done."""
        return await cls(url, **settings).__aenter__()

    @classmethod
    def over(cls, carrier: Wire, interface: v1.AgentInterface, **settings: Any) -> Self:
        """A client over a wire of your own, to an interface that you know: ready at once, without a card."""
        client = cls(interface.url, **settings)
        client._wire, client.interface = carrier, interface
        return client

    @property
    def address(self) -> str:
        """The address that was given, or the name in the card that was."""
        return self._url or (self._given.card.name if self._given else "")

    @property
    def wire(self) -> Wire:
        """The way to the interface in use. Raises RuntimeError before a connection."""
        return self._ready()

    async def __aenter__(self) -> Self:
        if self._wire is None:
            try:
                await self._open()
            except BaseException:
                await self.close()
                raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Let go of all connections; tasks at the agent go on."""
        self._wire = None
        await self._dialer.close()

    # -- the way to the agent

    async def _open(self) -> None:
        scheme = urlsplit(self._url).scheme
        if self._given is None and scheme not in SCHEMES:
            raise ValueError(f"{self._url!r} is not an address with one of {', '.join(SCHEMES)}")
        if scheme.startswith("grpc"):
            entry = v1.AgentInterface(url=self._url, protocol_binding=GRPC, protocol_version=self._version or V1)
            self.interface, self._wire = await self._dialer.offer([entry])
        else:
            await self.refresh_card()

    async def refresh_card(self, *, force: bool = False) -> v1.AgentCard | None:
        """The card, asked for again unless it is still good by HTTP's rules (CARD-18); None if there is none to get.

        force: ask however good it is. When the card says something else, `verify` is asked, the interface is chosen
        anew, and what an extended card said is forgotten. Raises what the way to the card raises.
        """
        if not self._url.startswith("http") and self._given is None:
            return None
        async with asyncio.timeout(self._timeout):
            found = await self._find_card(force)
            if found is not self._seen or self._wire is None:
                card = await trusted(self._verify, found)
                self.interface, self._wire = await self._dialer.offer(chosen(card, self._binding, self._version))
                self.card, self._seen = card, found
        return self.card

    async def _find_card(self, force: bool) -> Found:
        if self._given is not None:
            return self._given
        headers = {wire.VERSION_HEADER: self._version or V1, **self._headers}
        if self._auth is not None:
            headers |= await self._auth.headers()
        return await self._cards.card(await self._dialer.session(), card_url(self._url), headers, fresh=force)

    async def _give_up(self, carrier: Wire, fault: ConnectionError) -> None:
        if carrier is not self._wire:
            return  # another call has moved on already
        more = self._dialer.give_up()
        if self._dialer.offers:
            self.interface, self._wire = await self._dialer.current()
        if not more:
            raise UnavailableError(str(fault)) from fault

    async def _prepare(
        self, operation: str, request: Any, more: Mapping[str, str] | None, extensions: Iterable[str] | None
    ) -> tuple[Any, dict[str, str]]:
        """The request as it goes to the interface in use, with its tenant (TENANT-01), and the headers beside it."""
        version = spoken(self.interface)
        if version == V03 and operation not in METHOD_NAMES:
            raise UnsupportedOperationError(f"version {V03} has no such operation")
        headers = {wire.VERSION_HEADER: version, **self._headers}
        if self._auth is not None:
            headers |= await self._auth.headers()
        headers |= more or {}
        if asked := self._extensions if extensions is None else tuple(extensions):
            headers[wire.EXTENSION_HEADERS[version].lower()] = ", ".join(asked)
        tenant = self.interface.tenant if self._tenant is None else self._tenant
        if tenant and not request.tenant:
            given, request = request, type(request)(tenant=tenant)
            request.MergeFrom(given)
        return request, headers

    def _ready(self) -> Wire:
        if self._wire is None:
            raise RuntimeError("this client is not connected; use `async with` or `connect`")
        return self._wire

    async def _surrounded(
        self, stack: AsyncExitStack, operation: str, request: Message, headers: dict[str, str]
    ) -> dict[str, str]:
        """Enter the interceptors; the headers as they leave them."""
        entry = self.interface
        call = Call(operation, entry.protocol_binding, spoken(entry), entry.tenant, metadata=headers)
        for interceptor in self._interceptors:
            await stack.enter_async_context(interceptor(call, request))
        return dict(call.metadata)

    async def _renewed(self, refused: Mapping[str, str]) -> bool:
        """After a 401: whether there are other credentials than those that were refused."""
        if self._auth is None:
            return False
        await self._auth.renew(refused)
        return any(refused.get(name) != value for name, value in (await self._auth.headers()).items())

    # -- any operation

    async def call(
        self,
        operation: str,
        request: Message,
        *,
        headers: Mapping[str, str] | None = None,
        extensions: Iterable[str] | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Call an operation with one answer, by its v1.0 name; request and answer are v1.0 messages.

        headers: for this call, names in lower case, over those of the client. extensions, timeout: in place of the
        client's; the time is for all attempts together. An interface that cannot be reached is given up for the next
        one in the card (CARD-08); what may be repeated is repeated as `retries` says.
        """
        async with asyncio.timeout(self._timeout if timeout is None else timeout):
            failures = 0
            while True:
                try:
                    return await self._once(operation, request, headers, extensions)
                except A2AError as fault:
                    pause = self._retries.pause(fault, failures, self._repeatable(operation, request))
                    if pause is None:
                        raise
                failures += 1
                await asyncio.sleep(pause)

    def _repeatable(self, operation: str, request: Message) -> bool:
        if operation in IDEMPOTENT:
            return True
        told_apart = self._numbers() if self._repeat_sends is None else self._repeat_sends
        return told_apart and isinstance(request, v1.SendMessageRequest)

    def _numbers(self) -> bool:
        """Whether the card says that events are numbered, as this package's servers do."""
        return self.card is not None and any(
            extension.uri == RESUME_EXTENSION for extension in self.card.capabilities.extensions
        )

    async def _once(
        self, operation: str, request: Message, more: Mapping[str, str] | None, extensions: Iterable[str] | None
    ) -> Any:
        renewed = False
        while True:
            carrier = self._ready()
            asked, headers = await self._prepare(operation, request, more, extensions)
            try:
                watched = telemetry.through(carrier, self.interface)
                if not self._interceptors:
                    return await watched.unary(operation, asked, headers)
                async with AsyncExitStack() as stack:
                    headers = await self._surrounded(stack, operation, asked, headers)
                    return await watched.unary(operation, asked, headers)
            except ConnectionError as fault:
                await self._give_up(carrier, fault)
            except UnauthenticatedError:
                if renewed or not await self._renewed(headers):
                    raise
                renewed = True

    def events(
        self,
        operation: str,
        request: Message,
        *,
        last_event_id: str = "",
        headers: Mapping[str, str] | None = None,
        extensions: Iterable[str] | None = None,
    ) -> Events:
        """Call an operation with many answers, on one connection; last_event_id: start after that event, where the
        agent can. headers, extensions: as of `call`."""
        self._ready()
        return Events(self._stream(operation, request, last_event_id, headers, extensions), self._timeout)

    async def _stream(
        self,
        operation: str,
        request: Message,
        last_event_id: str,
        more: Mapping[str, str] | None,
        extensions: Iterable[str] | None,
    ) -> Source:
        if last_event_id:
            more = {**(more or {}), "last-event-id": last_event_id}
        renewed = begun = False
        while True:
            carrier = self._ready()
            asked, headers = await self._prepare(operation, request, more, extensions)
            try:
                async with AsyncExitStack() as stack:
                    if self._interceptors:
                        headers = await self._surrounded(stack, operation, asked, headers)
                    watched = telemetry.through(carrier, self.interface)
                    source = await stack.enter_async_context(aclosing(watched.stream(operation, asked, headers)))
                    async for found in source:
                        begun = True
                        yield found
                return
            except ConnectionError as fault:
                await self._give_up(carrier, fault)
            except UnauthenticatedError:
                if begun or renewed or not await self._renewed(headers):
                    raise
                renewed = True

    def _followed(
        self,
        operation: str,
        request: Any,
        last_event_id: str,
        headers: Mapping[str, str] | None = None,
        extensions: Iterable[str] | None = None,
    ) -> Events:
        """A streaming call that is followed over any number of connections."""
        if self._retries.patience <= 0:
            return self.events(operation, request, last_event_id=last_event_id, headers=headers, extensions=extensions)
        self._ready()
        asked = self._extensions if extensions is None else tuple(extensions)
        declared: bool | None = self._numbers() if self.card is not None else None
        if declared is None and self.interface.protocol_binding != GRPC:
            declared = False
        adds = declared is not False and RESUME_EXTENSION not in asked

        async def numbered(called: str, message: Message, last: str) -> Source:
            grpc = self.interface.protocol_binding == GRPC
            wanted = (*asked, RESUME_EXTENSION) if adds and grpc else asked
            async with aclosing(self._stream(called, message, last, headers, wanted)) as source:
                async for ident, event in source:
                    number = number_of(event, keep=not adds) if grpc else 0
                    yield str(number) if number else ident, event

        def resume(task_id: str, last: str) -> Source:
            again = v1.SubscribeToTaskRequest(id=task_id, tenant=request.tenant)
            return numbered("SubscribeToTask", again, last)

        async def task(task_id: str) -> v1.Task:
            again = v1.GetTaskRequest(id=task_id, tenant=request.tenant)
            found: v1.Task = await self.call("GetTask", again, headers=headers, extensions=extensions)
            return found

        ways = Ways(
            first=lambda: numbered(operation, request, last_event_id),
            resume=resume,
            task=task,
            repeatable=self._repeatable(operation, request),
            sends=isinstance(request, v1.SendMessageRequest),
            answers=isinstance(request, v1.SendMessageRequest) and bool(request.message.task_id),
        )
        return Events(Following(ways, self._retries, declared, last_event_id).events(), self._timeout)

    # -- the operations

    async def send(self, request: v1.SendMessageRequest, **more: Unpack[More]) -> v1.SendMessageResponse:
        """Send a message and wait for the answer: a message, or a task that ended or wants something. more: headers,
        extensions and timeout, as of `call`."""
        answer: v1.SendMessageResponse = await self.call("SendMessage", request, **more)
        return answer

    def stream(self, request: v1.SendMessageRequest, **more: Unpack[Told]) -> Events:
        """Send a message and follow what comes of it. A connection that breaks is made anew: each event is told once,
        and none is left out where the agent numbers them; of other agents, each piece of an artifact and the latest
        status (see docs/client.md). more: headers and extensions, as of `call`."""
        return self._followed("SendStreamingMessage", request, "", **more)

    async def get(self, task_id: str, history_length: int | None = None, **more: Unpack[More]) -> v1.Task:
        """A task; history_length: most messages of history, 0 for none, default: the agent decides. more: as `send`."""
        request = v1.GetTaskRequest(id=task_id, history_length=history_length)
        answer: v1.Task = await self.call("GetTask", request, **more)
        return answer

    async def list(self, request: v1.ListTasksRequest | None = None) -> v1.ListTasksResponse:
        """A page of tasks, latest first; default: the first page of all."""
        answer: v1.ListTasksResponse = await self.call("ListTasks", request or v1.ListTasksRequest())
        return answer

    async def tasks(self, request: v1.ListTasksRequest | None = None) -> AsyncGenerator[v1.Task, None]:
        """All tasks that a request means, latest first, page by page as they are needed; default: every one."""
        asked = v1.ListTasksRequest()
        asked.CopyFrom(request or asked)
        while True:
            page = await self.list(asked)
            for task in page.tasks:
                yield task
            if page.next_page_token in ("", asked.page_token):
                return
            asked.page_token = page.next_page_token

    async def cancel(self, task_id: str, **more: Unpack[More]) -> v1.Task:
        """Cancel a task; the task as it then is. When the answer was lost and the task has been canceled meanwhile, so
        it is. more: as `send`."""
        try:
            answer: v1.Task = await self.call("CancelTask", v1.CancelTaskRequest(id=task_id), **more)
        except UnavailableError as fault:
            if unsent(fault) or self._retries is NEVER:
                raise
            answer = await self.get(task_id, **more)
            if answer.status.state != v1.TASK_STATE_CANCELED:
                raise
        return answer

    def subscribe(self, task_id: str, last_event_id: str = "", **more: Unpack[Told]) -> Events:
        """Follow a task that has not ended, from its snapshot or from after a known event, over any number of
        connections as `stream` does. more: headers and extensions, as of `call`."""
        return self._followed("SubscribeToTask", v1.SubscribeToTaskRequest(id=task_id), last_event_id, **more)

    async def wait(self, task: v1.Task | str, *, timeout: float | None = None) -> v1.Task:
        """The task, or the task of an id, once it has ended or waits for its caller: by subscription where the agent
        streams, else by asking now and then (AUTH-11). timeout: seconds for all of it, then TimeoutError; default:
        forever."""
        async with asyncio.timeout(timeout):
            found = await self.get(task) if isinstance(task, str) else task
            streams, asked = self.card is None or self.card.capabilities.streaming, 0
            while not settled(found):
                if streams:
                    try:
                        async with aclosing(self.subscribe(found.id)) as events:
                            async for event in events:
                                if state_of(event) in ENDS:
                                    break
                    # It ended just now, or its agent follows no task that it is not at work on, which one of the
                    # official servers tells by cutting the connection; whether there is an agent, the next look says.
                    except A2AError:
                        streams = False
                if not streams:
                    await asyncio.sleep(self._retries.growing(asked))
                    asked += 1
                found = await self.get(found.id)
            return found

    async def create_push_config(self, config: v1.TaskPushNotificationConfig) -> v1.TaskPushNotificationConfig:
        """Add a webhook to a task; the config as the agent keeps it, with its id."""
        answer: v1.TaskPushNotificationConfig = await self.call("CreateTaskPushNotificationConfig", config)
        return answer

    async def get_push_config(self, task_id: str, config_id: str) -> v1.TaskPushNotificationConfig:
        """One webhook of a task."""
        request = v1.GetTaskPushNotificationConfigRequest(task_id=task_id, id=config_id)
        answer: v1.TaskPushNotificationConfig = await self.call("GetTaskPushNotificationConfig", request)
        return answer

    async def list_push_configs(self, task_id: str) -> v1.ListTaskPushNotificationConfigsResponse:
        """The webhooks of a task, the first page."""
        request = v1.ListTaskPushNotificationConfigsRequest(task_id=task_id)
        answer: v1.ListTaskPushNotificationConfigsResponse = await self.call("ListTaskPushNotificationConfigs", request)
        return answer

    async def delete_push_config(self, task_id: str, config_id: str) -> None:
        """Take a webhook off a task."""
        request = v1.DeleteTaskPushNotificationConfigRequest(task_id=task_id, id=config_id)
        await self.call("DeleteTaskPushNotificationConfig", request)

    async def extended_card(self) -> v1.AgentCard:
        """The card for authenticated callers; from now on also this client's `card` (CARD-25)."""
        card: v1.AgentCard = await self.call("GetExtendedAgentCard", v1.GetExtendedAgentCardRequest())
        if self._verify is not None:
            card = await trusted(self._verify, Found(card, encode(card), self.interface.url))
        self.card = card
        return card
