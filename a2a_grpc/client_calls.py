"""Calls of a client to one agent: the way there, what goes beside each request, and what becomes of failures.

Laws: a v1.0 message goes in and v1.0 messages come out whatever wire and version lie between; every error of the peer
is raised as a class of errors.py, told by reason or code before status (ERR-15). What a wire looks like is said by the
client ends of bindings/, who carries it by client_wires, which way is taken by client_dial, what is tried again by
client_retries. An operation is a name that is passed on: what they mean to a caller is the client's affair.
"""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing
from types import TracebackType
from typing import Any, Final
from urllib.parse import urlsplit

from a2a_stubs import v1
from google.protobuf.message import Message

from a2a_grpc import python310_asyncio, telemetry
from a2a_grpc.bindings import wire
from a2a_grpc.call import GRPC, RESUME_EXTENSION, V03, V1, Call, Interceptor
from a2a_grpc.client_auth import Auth, Channel, Shown, Tls, auth_of, fit
from a2a_grpc.client_cards import CardCache, Found, Verify, card_url, trusted
from a2a_grpc.client_dial import Dialer, chosen, spoken
from a2a_grpc.client_retries import IDEMPOTENT, NEVER, Retries
from a2a_grpc.client_streams import Events, Source
from a2a_grpc.client_wires import Wire
from a2a_grpc.errors import A2AError, UnauthenticatedError, UnavailableError, UnsupportedOperationError
from a2a_grpc.protojson import encode
from a2a_grpc.python310 import Self
from a2a_grpc.v03_names import METHOD_NAMES

SCHEMES: Final = ("http", "https", "grpc", "grpcs")
"""Schemes of the addresses that a client takes."""

LOOK_SECONDS: Final = 5.0
"""Pause between two looks for a fresh card of an agent that cannot be reached, and the longest that one may take."""


class Calls:
    """The calls of one agent on one of its interfaces; its settings are told by Client, which is what callers use."""

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
        channel: Channel = Channel(),  # noqa: B008 - it cannot change
    ) -> None:
        self._given = Found(url, encode(url), "") if isinstance(url, v1.AgentCard) else None
        self._url = "" if isinstance(url, v1.AgentCard) else url
        self._binding, self._version = binding, version
        self._headers = fit(headers or {})
        self._auth = auth_of(auth)
        self._extensions = tuple(extensions)
        self._tenant, self._timeout = tenant, timeout
        self._retries = retries or NEVER
        self._repeat_sends = repeat_sends
        self._interceptors, self._verify, self._cards = tuple(interceptors), verify, cards or CardCache()
        places = [entry.url for entry in url.supported_interfaces] if isinstance(url, v1.AgentCard) else [url]
        self._dialer = Dialer(any(place.startswith("https:") for place in places), tls, silence, channel)
        self._wire: Wire | None = None
        self._seen: Found | None = None
        self._looking, self._look_after = asyncio.Lock(), 0.0
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
        async with python310_asyncio.timeout(self._timeout):
            await self._learn(await self._find_card(force))
        return self.card

    async def _learn(self, found: Found, *, anew: bool = False) -> bool:
        """Use a card; whether it was another one. anew: begin with its first interface, whatever is in use."""
        if found is self._seen and self._wire is not None:
            return False
        card = await trusted(self._verify, found)
        entries = chosen(card, self._binding, self._version)
        self.interface, self._wire = await self._dialer.offer(entries, anew=anew)
        self.card, self._seen = card, found
        return True

    async def _find_card(self, force: bool) -> Found:
        if self._given is not None:
            return self._given
        headers = {wire.VERSION_HEADER: self._version or V1, **self._headers}
        if self._auth is not None:
            headers |= fit(await self._auth.headers())
        return await self._cards.card(await self._dialer.session(), card_url(self._url), headers, fresh=force)

    async def _give_up(self, carrier: Wire, fault: ConnectionError, moved: bool) -> bool:
        """Turn to another interface, after the last one to those of a fresh card, in which the agent may have moved.
        Nothing of the call was sent. moved: whether this call did so before; returns whether it has now."""
        if carrier is not self._wire:
            return moved  # another call has moved on already
        more = self._dialer.give_up()
        if self._dialer.offers:
            self.interface, self._wire = await self._dialer.current()
        if not more and (moved or not await self._moved()):
            raise UnavailableError(str(fault)) from fault
        return moved or not more

    async def _moved(self) -> bool:
        """Whether the agent's card is another one by now. Calls that fail together ask once, and those that go on
        failing not all the time."""
        known, clock = self._seen, asyncio.get_running_loop().time
        if known is None or self._given is not None:
            return False
        async with self._looking:
            if self._seen is not known:
                return True
            if self._wire is None or clock() < self._look_after:
                return False
            try:
                async with python310_asyncio.timeout(LOOK_SECONDS):
                    return await self._learn(await self._find_card(True), anew=True)
            except (A2AError, OSError, TimeoutError):
                return False  # what is said is that the agent cannot be reached
            finally:
                self._look_after = clock() + LOOK_SECONDS

    async def _prepare(
        self, operation: str, request: Any, more: Mapping[str, str] | None, extensions: Iterable[str] | None
    ) -> tuple[Any, dict[str, str]]:
        """The request as it goes to the interface in use, with its tenant (TENANT-01), and the headers beside it."""
        version = spoken(self.interface)
        if version == V03 and operation not in METHOD_NAMES:
            raise UnsupportedOperationError(f"version {V03} has no such operation")
        headers = {wire.VERSION_HEADER: version, **self._headers}
        if self._auth is not None:
            headers |= fit(await self._auth.headers())
        headers |= fit(more or {})
        if asked := self._extensions if extensions is None else tuple(extensions):
            headers |= fit({wire.EXTENSION_HEADERS[version]: ", ".join(asked)})
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
        return fit(call.metadata)

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

        headers: for this call, over those of the client. extensions, timeout: in place of the
        client's; the time is for all attempts together. An interface that cannot be reached is given up for the next
        one in the card (CARD-08), and after the last one the card is asked for anew, in case the agent has moved;
        what may be repeated is repeated as `retries` says.
        """
        async with python310_asyncio.timeout(self._timeout if timeout is None else timeout):
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
        renewed = moved = False
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
                moved = await self._give_up(carrier, fault, moved)
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
        renewed = moved = begun = False
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
                moved = await self._give_up(carrier, fault, moved)
            except UnauthenticatedError:
                if begun or renewed or not await self._renewed(headers):
                    raise
                renewed = True
