"""The client: find an agent's card, choose one of its interfaces, call it.

Laws: a v1.0 message goes in and v1.0 messages come out whatever wire and version lie between; every error of the peer
is raised as a class of errors.py, told by reason or code before status (ERR-15). What a wire looks like is said by the
client ends of bindings/; here is only what carries their bytes, and one method for each operation.
"""

import asyncio
import os
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, aclosing, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import urlsplit, urlunsplit

import aiohttp
import grpc
import grpc.aio
from a2a_stubs import v1
from google.protobuf.message import Message
from yarl import URL

from a2a_grpc import cards, protojson, telemetry, v03_cards
from a2a_grpc.bindings import wire
from a2a_grpc.call import GRPC, V03, V1
from a2a_grpc.client_wires import CALLABLE, HTTP_WIRES, GrpcWire, Wire
from a2a_grpc.errors import (
    A2AError,
    InvalidAgentResponseError,
    UnavailableError,
    UnsupportedOperationError,
    VersionNotSupportedError,
)
from a2a_grpc.v03_names import METHOD_NAMES

SCHEMES: Final = ("http", "https", "grpc", "grpcs")
"""Schemes of the addresses that a client takes."""

CONNECT_SECONDS: Final = 30.0
"""How long the making of one connection may take."""

RECONNECT_MS: Final = 5000
"""Longest pause, in milliseconds, before a lost gRPC connection is tried again."""

Verify = Callable[[Any, str], Awaitable[v1.AgentCard | None]]
"""Judges a card before it is believed: gets its JSON object and where it came from; gives the card to use in its
place, or None to use it as it is; raises InvalidAgentResponseError to refuse it. A `verification.Verifier` is one."""


def _roots() -> bytes | None:
    """The authorities that the environment names for every other program; None is for gRPC's own."""
    with suppress(KeyError, OSError):
        return Path(os.environ["SSL_CERT_FILE"]).read_bytes()
    return None


class Events:
    """The events of a streaming call, as an async iterator; `aclose` ends it early and leaves the task alone.

    last_event_id: what `subscribe` takes to go on after the latest event; "" when the wire does not tell.
    """

    def __init__(self, source: AsyncGenerator[tuple[str, v1.StreamResponse], None], timeout: float | None) -> None:
        self._source, self._timeout = source, timeout
        self.last_event_id = ""

    def __aiter__(self) -> AsyncIterator[v1.StreamResponse]:
        return self

    async def __anext__(self) -> v1.StreamResponse:
        async with asyncio.timeout(self._timeout):
            self.last_event_id, event = await anext(self._source)
        return event

    async def aclose(self) -> None:
        """Stop reading and let the connection go."""
        await self._source.aclose()


class Client:
    """One agent, called on one of its interfaces: `async with Client(url) as agent`, or `await Client.connect(url)`.

    url: base URL of the agent, URL of its card (ending in `.json`), or `grpc://host:port` (`grpcs://` with TLS) for
    gRPC without a card. binding: "JSONRPC", "HTTP+JSON" or "GRPC"; default: the first interface in the card that can
    be called (CARD-07). version: "1.0" (default), "0.3", or None for the first in the card; never another (VER-08).
    headers: sent with each request, as metadata on gRPC. extensions: URIs to ask for (EXT-02). tenant: default: the
    one that the interface names (TENANT-01). timeout: seconds to wait for an answer or the next event, default forever,
    then TimeoutError. tls: context for https and TLS on HTTP, default: the system's trust. A gRPC address without a
    scheme is called with TLS if the card came by https; gRPC trusts its own list of authorities, or SSL_CERT_FILE.
    verify: judges the card, and the extended one, before anything in it is used (SIGN-10); default: it is believed.
    Every operation raises the A2AError that the agent answers with, and UnavailableError when nobody answers.
    """

    def __init__(
        self,
        url: str,
        *,
        binding: str | None = None,
        version: str | None = V1,
        headers: Mapping[str, str] | None = None,
        extensions: Iterable[str] = (),
        tenant: str | None = None,
        timeout: float | None = None,
        tls: ssl.SSLContext | None = None,
        verify: Verify | None = None,
    ) -> None:
        self._url, self._binding, self._version = url, binding, version
        self._headers = {name.lower(): value for name, value in (headers or {}).items()}
        self._extensions = tuple(extensions)
        self._tenant, self._timeout, self._tls = tenant, timeout, tls
        self._verify = verify
        self._choices: list[v1.AgentInterface] = []
        self._wire: Wire | None = None
        self._session: aiohttp.ClientSession | None = None
        self._resources = AsyncExitStack()
        self.card: v1.AgentCard | None = None
        """The agent's card, once connected; None when it was reached without one."""
        self.interface = v1.AgentInterface()
        """The interface in use, once connected."""

    @classmethod
    async def connect(cls, url: str, **settings: Any) -> Self:
        """A client that is ready to call; takes what `Client` takes. Close it when done."""
        return await cls(url, **settings).__aenter__()

    @classmethod
    def over(cls, carrier: Wire, interface: v1.AgentInterface, **settings: Any) -> Self:
        """A client over a wire of your own, to an interface that you know: ready at once, without a card."""
        client = cls(interface.url, **settings)
        client._wire, client.interface = carrier, interface
        return client

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
        self._wire = self._session = None
        await self._resources.aclose()

    # -- the way to the agent

    async def _open(self) -> None:
        scheme = urlsplit(self._url).scheme
        if scheme not in SCHEMES:
            raise ValueError(f"{self._url!r} is not an address with one of {', '.join(SCHEMES)}")
        if scheme.startswith("grpc"):
            version = self._version or V1
            self._choices = [v1.AgentInterface(url=self._url, protocol_binding=GRPC, protocol_version=version)]
        else:
            async with asyncio.timeout(self._timeout):
                self.card = await self._fetch_card()
            self._choices = cards.choices(self.card, CALLABLE, self._binding, self._version)
            if not self._choices:
                entries = self.card.supported_interfaces
                offered = ", ".join(f"{entry.protocol_binding} {entry.protocol_version}" for entry in entries)
                raise VersionNotSupportedError(f"no interface of the card fits; it offers: {offered or 'none'}")
        await self._next_interface()

    async def _fetch_card(self) -> v1.AgentCard:
        parts = urlsplit(self._url)
        if not parts.path.endswith(".json"):
            parts = parts._replace(path=parts.path.rstrip("/") + cards.WELL_KNOWN)
        url = URL(urlunsplit(parts), encoded=True)
        headers = {wire.VERSION_HEADER: self._version or V1, "accept": wire.JSON, **self._headers}
        try:
            async with (await self._http()).get(url, headers=headers) as reply:
                body = await reply.read()
        except (aiohttp.ClientError, OSError) as fault:
            raise UnavailableError(f"cannot fetch {url}: {fault}") from fault
        if reply.status != 200:
            kind = wire.BY_HTTP.get(reply.status, UnavailableError)
            raise kind(f"there is no card at {url}: HTTP status {reply.status}")
        try:
            document = protojson.loads(body)
            card = v03_cards.card_up(document)
        except A2AError as fault:
            raise InvalidAgentResponseError(f"what is at {url} is not a card: {fault.message}") from None
        return await self._trusted(card, document, str(url))

    async def _trusted(self, card: v1.AgentCard, document: Any, url: str) -> v1.AgentCard:
        return card if self._verify is None else (await self._verify(document, url) or card)

    async def _http(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = await self._resources.enter_async_context(
                aiohttp.ClientSession(
                    timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
                    connector=aiohttp.TCPConnector(limit=0, ssl=self._tls or True),
                )
            )
        return self._session

    async def _next_interface(self) -> None:
        self.interface = entry = self._choices.pop(0)
        version = self._spoken
        if entry.protocol_binding != GRPC:
            self._wire = HTTP_WIRES[entry.protocol_binding](await self._http(), entry, version)
            return
        target, secure = cards.grpc_target(entry.url, self._url.startswith("https:"))
        limits = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
        limits.append(("grpc.max_reconnect_backoff_ms", RECONNECT_MS))
        if secure:
            channel = grpc.aio.secure_channel(target, grpc.ssl_channel_credentials(_roots()), options=limits)
        else:
            channel = grpc.aio.insecure_channel(target, options=limits)
        self._resources.push_async_callback(channel.close)
        self._wire = GrpcWire(channel, entry.url, version)

    @property
    def _spoken(self) -> str:
        return V03 if self.interface.protocol_version.startswith(V03) else V1

    def _prepare(
        self, operation: str, request: Any, more: Mapping[str, str] | None, extensions: Iterable[str] | None
    ) -> tuple[Any, dict[str, str]]:
        """The request as it goes to the interface in use, with its tenant (TENANT-01), and the headers beside it."""
        version = self._spoken
        if version == V03 and operation not in METHOD_NAMES:
            raise UnsupportedOperationError(f"version {V03} has no such operation")
        headers = {wire.VERSION_HEADER: version, **self._headers, **(more or {})}
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

    # -- any operation

    async def call(
        self,
        operation: str,
        request: Message,
        *,
        headers: Mapping[str, str] | None = None,
        extensions: Iterable[str] | None = None,
    ) -> Any:
        """Call an operation with one answer, by its v1.0 name; request and answer are v1.0 messages.

        headers: for this call, names in lower case, over those of the client. extensions: in place of the client's.
        An interface that cannot be reached is given up for the next one in the card (CARD-08).
        """
        async with asyncio.timeout(self._timeout):
            while True:
                carrier = self._ready()
                try:
                    watched = telemetry.through(carrier, self.interface)
                    return await watched.unary(operation, *self._prepare(operation, request, headers, extensions))
                except ConnectionError as fault:
                    await self._give_up(carrier, fault)

    def events(
        self,
        operation: str,
        request: Message,
        *,
        last_event_id: str = "",
        headers: Mapping[str, str] | None = None,
        extensions: Iterable[str] | None = None,
    ) -> Events:
        """Call an operation with many answers; last_event_id: start after that event, where the agent can.

        headers, extensions: as of `call`.
        """
        self._ready()
        if last_event_id:
            headers = {**(headers or {}), "last-event-id": last_event_id}
        return Events(self._stream(operation, request, headers, extensions), self._timeout)

    async def _stream(
        self,
        operation: str,
        request: Message,
        headers: Mapping[str, str] | None,
        extensions: Iterable[str] | None,
    ) -> AsyncGenerator[tuple[str, v1.StreamResponse], None]:
        while True:
            carrier, prepared = self._ready(), self._prepare(operation, request, headers, extensions)
            try:
                watched = telemetry.through(carrier, self.interface)
                async with aclosing(watched.stream(operation, *prepared)) as source:
                    async for found in source:
                        yield found
                return
            except ConnectionError as fault:
                await self._give_up(carrier, fault)

    async def _give_up(self, carrier: Wire, fault: ConnectionError) -> None:
        if carrier is not self._wire:
            return  # another call has moved on already
        if not self._choices:
            raise UnavailableError(str(fault)) from fault
        await self._next_interface()

    # -- the operations

    async def send(self, request: v1.SendMessageRequest) -> v1.SendMessageResponse:
        """Send a message and wait for the answer: a message, or a task that ended or wants something."""
        answer: v1.SendMessageResponse = await self.call("SendMessage", request)
        return answer

    def stream(self, request: v1.SendMessageRequest) -> Events:
        """Send a message and follow what comes of it."""
        return self.events("SendStreamingMessage", request)

    async def get(self, task_id: str, history_length: int | None = None) -> v1.Task:
        """A task; history_length: most messages of history, 0 for none, default: the agent decides."""
        request = v1.GetTaskRequest(id=task_id, history_length=history_length)
        answer: v1.Task = await self.call("GetTask", request)
        return answer

    async def list(self, request: v1.ListTasksRequest | None = None) -> v1.ListTasksResponse:
        """A page of tasks, latest first; default: the first page of all."""
        answer: v1.ListTasksResponse = await self.call("ListTasks", request or v1.ListTasksRequest())
        return answer

    async def cancel(self, task_id: str) -> v1.Task:
        """Cancel a task; the task as it then is."""
        answer: v1.Task = await self.call("CancelTask", v1.CancelTaskRequest(id=task_id))
        return answer

    def subscribe(self, task_id: str, last_event_id: str = "") -> Events:
        """Follow a task that has not ended, from its snapshot or from after a known event."""
        request = v1.SubscribeToTaskRequest(id=task_id)
        return self.events("SubscribeToTask", request, last_event_id=last_event_id)

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
            card = await self._trusted(card, protojson.encode(card), self.interface.url)
        self.card = card
        return card
