"""Which interface of an agent a client calls, and the connections that lead there.

Laws: the order is the card's, the user's wishes before it (CARD-07); each interface is given up for the next only when
nobody can be reached there (CARD-08), and never for one that anybody on the way could read: what was to go over TLS
goes over TLS. Connections are made when they are first needed and kept until the end. What is said over them is the
wires' affair.
"""

import os
import ssl
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

import aiohttp
import grpc
import grpc.aio
from a2a_stubs import v1

from a2a_grpc import cards
from a2a_grpc.bindings import sse
from a2a_grpc.call import GRPC, V03, V1, VERSIONS, major_minor
from a2a_grpc.client_auth import Channel, Tls, http_tls
from a2a_grpc.client_wires import CALLABLE, HTTP_WIRES, Begin, GrpcWire, Wire
from a2a_grpc.errors import VersionNotSupportedError

CONNECT_SECONDS: Final = 30.0
"""How long the making of one connection may take."""

FIRST_RECONNECT_MS: Final = 250
RECONNECT_MS: Final = 500
"""First and longest pause, in milliseconds, before a lost gRPC connection is tried again. Calls fail at once meanwhile,
so the longest must fit between the attempts of one call (`Retries`): else a server that is back seems to be away."""


def chosen(card: v1.AgentCard, binding: str | Sequence[str] | None, version: str | None) -> list[v1.AgentInterface]:
    """The interfaces of a card that can be called, best first: by version, newest first, by the order of the wanted
    bindings, and by the card's own order. A binding as text is the only one wanted. Raises VersionNotSupportedError
    when none is left."""
    wanted = [binding] if isinstance(binding, str) else list(binding or ())
    found = [
        entry
        for entry in cards.choices(card, CALLABLE, None, version)
        if not wanted or entry.protocol_binding in wanted
    ]
    if not found:
        offered = ", ".join(f"{entry.protocol_binding} {entry.protocol_version}" for entry in card.supported_interfaces)
        raise VersionNotSupportedError(f"no interface of the card fits; it offers: {offered or 'none'}")

    def rank(entry: v1.AgentInterface) -> tuple[int, int]:
        place = wanted.index(entry.protocol_binding) if wanted else 0
        return VERSIONS.index(major_minor(entry.protocol_version or V1)), place

    return sorted(found, key=rank)


def spoken(entry: v1.AgentInterface) -> str:
    """The version that is spoken at an interface."""
    return V03 if entry.protocol_version.startswith(V03) else V1


def _roots() -> bytes | None:
    """The authorities that the environment names for every other program; None is for gRPC's own."""
    with suppress(KeyError, OSError):
        return Path(os.environ["SSL_CERT_FILE"]).read_bytes()
    return None


class Dialer:
    """The connections of one client. secure: whether the card came by https; tls, silence, channel: as of Client."""

    def __init__(
        self,
        secure: bool,
        tls: ssl.SSLContext | Tls | None,
        silence: float | None,
        channel: Channel = Channel(),  # noqa: B008 - it cannot change
    ) -> None:
        self._secure, self._tls, self._silence, self._channel = secure, tls, silence, channel
        self._session: aiohttp.ClientSession | None = None
        self._entries: list[v1.AgentInterface] = []
        self._wires: dict[bytes, Wire] = {}
        self._at = 0
        self._resources = AsyncExitStack()

    async def close(self) -> None:
        """Let go of all connections."""
        self._session = None
        self._wires.clear()
        await self._resources.aclose()

    async def session(self) -> aiohttp.ClientSession:
        """The HTTP session of this client."""
        if self._session is None:
            self._session = await self._resources.enter_async_context(
                aiohttp.ClientSession(
                    timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
                    # A cookie that came for one caller of a gateway must not go with the calls of another.
                    cookie_jar=aiohttp.DummyCookieJar(),
                    connector=aiohttp.TCPConnector(limit=self._channel.connections, ssl=http_tls(self._tls)),
                )
            )
        return self._session

    async def offer(
        self, entries: Sequence[v1.AgentInterface], *, anew: bool = False
    ) -> tuple[v1.AgentInterface, Wire]:
        """The first of these interfaces, unless the one in use is still among them. anew: the first in any case, since
        nobody is there any more; raises VersionNotSupportedError when none is as safe as what was in use."""
        current = self._entries[self._at] if self._entries else None
        if anew and current is not None:
            safe = self._protected(current)
            entries, current = [each for each in entries if not safe or self._protected(each)], None
            if not entries:
                raise VersionNotSupportedError("no interface of the fresh card is as safe as the one that is away")
        self._entries = list(entries)
        self._at = self._entries.index(current) if current in self._entries else 0
        return await self.current()

    @property
    def offers(self) -> bool:
        """Whether there is any interface."""
        return bool(self._entries)

    def give_up(self) -> bool:
        """Turn to the interface after the one in use; False when that was the last, and the first is next."""
        count = len(self._entries)
        safe = count > 0 and self._protected(self._entries[self._at])
        while (at := self._at + 1) < count:
            self._at = at
            if not safe or self._protected(self._entries[at]):
                return True
        self._at = 0
        return False

    def _protected(self, entry: v1.AgentInterface) -> bool:
        if entry.protocol_binding == GRPC:
            return cards.grpc_target(entry.url, self._secure)[1]
        return entry.url.startswith("https:")

    async def current(self) -> tuple[v1.AgentInterface, Wire]:
        """The interface in use and the way there."""
        entry = self._entries[self._at]
        key = entry.SerializeToString(deterministic=True)
        if key not in self._wires:
            self._wires[key] = await self._wire(entry)
        return entry, self._wires[key]

    async def _wire(self, entry: v1.AgentInterface) -> Wire:
        version = spoken(entry)
        if entry.protocol_binding != GRPC:
            return HTTP_WIRES[entry.protocol_binding](await self.session(), entry, version, self._silence)
        target, secure = cards.grpc_target(entry.url, self._secure)
        options = [
            ("grpc.max_receive_message_length", sse.LIMIT),
            ("grpc.max_send_message_length", -1),
            ("grpc.initial_reconnect_backoff_ms", FIRST_RECONNECT_MS),
            ("grpc.max_reconnect_backoff_ms", RECONNECT_MS),
            *self._channel.options(),
        ]
        count = self._channel.connections or 1
        if self._silence is not None or count > 1:  # else channels would share a connection, a dead one, too
            options.append(("grpc.use_local_subchannel_pool", 1))

        def dial() -> grpc.aio.Channel:
            if secure:
                channel = grpc.aio.secure_channel(target, self._credentials(), options=options)
            else:
                channel = grpc.aio.insecure_channel(target, options=options)
            self._resources.push_async_callback(channel.close)
            return channel

        return GrpcWire(dial, entry.url, version, self._silence, count, self._beginner(target, secure, count), secure)

    def _beginner(self, target: str, secure: bool, count: int) -> Begin | None:
        """What begins streams in place of grpcio, where that is wanted and can be."""
        readable = self._tls is None or (isinstance(self._tls, Tls) and not isinstance(self._tls.cert, bytes))
        if self._channel.streams != "h2" or (secure and not readable):
            return None
        from a2a_grpc import client_http2  # which is an extra

        if not client_http2.fits(target, self._channel.balance):
            return None
        context = partial(client_http2.tls_for, self._tls if isinstance(self._tls, Tls) else Tls()) if secure else None
        made = client_http2.Http2(target, context, self._channel.keepalive, count)
        self._resources.push_async_callback(made.close)
        return made.call

    def _credentials(self) -> Any:
        if isinstance(self._tls, Tls):
            return self._tls.credentials(_roots())
        return grpc.ssl_channel_credentials(_roots())
