"""What a client shows of itself: credentials in headers, fresh when they are needed, and certificates; and how its
connections are held.

Laws: a secret is in no error, no log and no repr (SEC-05). Where credentials come from is one object with two methods;
a text, a mapping and a function are made into one. Tokens are fetched over TLS, or from this machine.
"""

import asyncio
import base64
import inspect
import re
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol, TypeGuard
from urllib.parse import quote, urlsplit

import aiohttp
import grpc
import orjson

from a2a_grpc.errors import UnauthenticatedError, UnavailableError
from a2a_grpc.extras import needs

Shown = str | Mapping[str, str]
"""A bearer token, or headers by name."""

LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})

BALANCES: Final = ("pick_first", "round_robin")
"""Ways of gRPC to choose among the addresses of a name."""

STREAMS: Final = ("h2", "grpcio")
"""Libraries that read streams over gRPC."""

PING_TIMEOUT_MS: Final = 20_000
"""How long the answer to a ping may take, in milliseconds."""

MOST_BYTES: Final = 1024 * 1024
"""Bytes of the largest answer of a token endpoint."""


class Auth(Protocol):
    """Where the credentials of a client come from."""

    async def headers(self) -> Mapping[str, str]:
        """The headers to send with the next request, names in lower case."""

    async def renew(self, refused: Mapping[str, str]) -> None:
        """These headers were refused with 401: whatever was kept of them is to be forgotten."""


HEADER_NAME: Final = re.compile(r"[0-9a-z_.-]+")
"""A name of a header, in lower case, that every wire can carry."""


def plain(value: object) -> TypeGuard[str]:
    """Whether every wire can carry this as the value of a header."""
    return isinstance(value, str) and value.isascii() and value.isprintable()


def fit(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers with their names in lower case. Raises ValueError, which names the header and not its value, for one
    that not every wire can carry: names are letters, digits, `_`, `.` and `-`, values printable ASCII."""
    made = {}
    for name, value in headers.items():
        made[low := name.lower()] = value
        if not HEADER_NAME.fullmatch(low):
            raise ValueError(f"{name!r} is not a name of a header that every wire can carry")
        if not plain(value):
            raise ValueError(f"header {low}: its value must be a text of printable ASCII characters")
    return made


def _as_headers(shown: Shown) -> dict[str, str]:
    return fit({"authorization": f"Bearer {shown}"} if isinstance(shown, str) else shown)


class Static:
    """Credentials that stay as they are: a bearer token or headers."""

    def __init__(self, shown: Shown) -> None:
        self._headers = _as_headers(shown)

    async def headers(self) -> Mapping[str, str]:
        """The headers, always the same."""
        return self._headers

    async def renew(self, refused: Mapping[str, str]) -> None:
        """There are no others."""


class Called:
    """Credentials that a function gives, plain or async: it is asked before each request, and again after a 401."""

    def __init__(self, function: Callable[[], Shown | Awaitable[Shown]]) -> None:
        self._function = function

    async def headers(self) -> Mapping[str, str]:
        """What the function gives now."""
        shown = self._function()
        return _as_headers(await shown if inspect.isawaitable(shown) else shown)

    async def renew(self, refused: Mapping[str, str]) -> None:
        """Nothing was kept."""


def auth_of(given: "Auth | Shown | Callable[[], Shown | Awaitable[Shown]] | None") -> Auth | None:
    """The credentials that a user of a client means. Raises TypeError for what can give none."""
    if given is None or hasattr(given, "renew"):
        return given  # type: ignore[return-value]
    if isinstance(given, str | Mapping):
        return Static(given)
    if not callable(given):
        raise TypeError(f"auth: a token, headers, a function or an object with headers and renew, not {type(given)}")
    return Called(given)


class ClientCredentials:
    """Access tokens by the OAuth 2 client credentials grant (RFC 6749, 4.4), each used until shortly before its end.

    token_url: https, or http on this machine. client_id, client_secret: sent as HTTP Basic, or in the form with
    `in_form=True`. scope, parameters: what is asked for, and more members of the form, such as `audience`.
    early: seconds before its end at which a token is renewed, default 30, at most half its life. tls: as of Client.
    timeout: seconds for one answer, default 30. Raises ValueError for a token_url in clear text.
    """

    def __init__(
        self,
        token_url: str,
        client_id: str,
        client_secret: str,
        *,
        scope: str = "",
        parameters: Mapping[str, str] | None = None,
        in_form: bool = False,
        early: float = 30.0,
        tls: "ssl.SSLContext | Tls | None" = None,
        timeout: float = 30.0,
    ) -> None:
        place = urlsplit(token_url)
        if place.scheme != "https" and not (place.scheme == "http" and place.hostname in LOOPBACK):
            raise ValueError(f"token_url {token_url!r} must begin with https://")
        self._url, self._early, self._timeout, self._tls = token_url, early, timeout, tls
        self._form = {"grant_type": "client_credentials", **({"scope": scope} if scope else {}), **(parameters or {})}
        self._basic: dict[str, str] = {}
        if in_form:
            self._form |= {"client_id": client_id, "client_secret": client_secret}
        else:  # as forms are written, says the RFC
            pair = f"{quote(client_id, safe='')}:{quote(client_secret, safe='')}"
            self._basic["authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        self._headers: dict[str, str] = {}
        self._until = 0.0
        self._asking = asyncio.Lock()

    async def headers(self) -> Mapping[str, str]:
        """A token that is good for a while. Raises UnauthenticatedError when there is none to be had, UnavailableError
        when nobody answers."""
        if time.monotonic() >= self._until:
            async with self._asking:
                if time.monotonic() >= self._until:
                    await self._fetch()
        return self._headers

    async def renew(self, refused: Mapping[str, str]) -> None:
        """Fetch another token next time, unless that has been done already."""
        if refused.get("authorization") == self._headers.get("authorization"):
            self._until = 0.0

    async def _fetch(self) -> None:
        asked = time.monotonic()
        told: dict[str, Any] = {"data": self._form, "headers": self._basic, "allow_redirects": False}
        try:
            async with (
                aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(self._timeout)) as session,
                session.post(self._url, ssl=http_tls(self._tls), **told) as reply,
            ):
                body = await reply.content.read(MOST_BYTES)
        except (aiohttp.ClientError, asyncio.TimeoutError, OSError) as fault:
            raise UnavailableError(f"no token from {self._url}: {type(fault).__name__}") from fault
        try:
            found = orjson.loads(body)
            token, kind, life = found["access_token"], found.get("token_type", "bearer"), found.get("expires_in")
            seconds = float("inf") if life is None else float(life)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise UnauthenticatedError(f"no token from {self._url}: HTTP status {reply.status}") from None
        if reply.status != 200 or not plain(token) or str(kind).lower() != "bearer":
            raise UnauthenticatedError(f"no bearer token from {self._url}: HTTP status {reply.status}")
        self._headers = _as_headers(token)
        self._until = asked + seconds - min(self._early, seconds / 2)


@dataclass(frozen=True, slots=True)
class Tls:
    """What TLS trusts and shows, on HTTP and gRPC alike. Each is a path of a PEM file or its bytes.

    ca: the authorities that vouch for agents, default those of the system. cert, key: the client's own certificate
    (mTLS) with its chain, and its key; default none. Files are read when a client connects; raises OSError.
    """

    ca: str | bytes | None = None
    cert: str | bytes | None = None
    key: str | bytes | None = field(default=None, repr=False)

    def context(self) -> ssl.SSLContext:
        """As the HTTP library takes it."""
        made = ssl.create_default_context(cadata=_read(self.ca).decode() if self.ca else None)
        made.minimum_version = ssl.TLSVersion.TLSv1_2
        if self.cert is not None:
            if isinstance(self.cert, bytes) or isinstance(self.key, bytes):
                raise ValueError("tls: on HTTP cert and key must be paths of files, which is all that ssl can read")
            made.load_cert_chain(self.cert, self.key)
        return made

    def credentials(self, roots: bytes | None) -> Any:
        """As gRPC takes it; roots: the authorities unless there are own ones, None for gRPC's own list."""
        chain = None if self.cert is None else _read(self.cert)
        key = None if self.key is None else _read(self.key)
        return grpc.ssl_channel_credentials(_read(self.ca) if self.ca else roots, key, chain)


@dataclass(frozen=True, slots=True)
class Channel:
    """How connections to an agent are made and held.

    keepalive: seconds of silence after which a gRPC connection that carries calls is tried by an HTTP/2 ping, so that
    one that died without a word is noticed; default 0: never, since servers may hang up on who pings more often than
    they allow. balance: how gRPC chooses among the addresses that its resolver finds for a name, such as
    `dns:///agents:50051`, or is given, as in `ipv4:10.0.0.1:50051,10.0.0.2:50051`: "pick_first" (default), or
    "round_robin" for all in turn, without those that do not answer. connections: on gRPC, how many connections share
    the calls, on HTTP, how many there are at most, and further calls wait; default 0: one, and any number. streams:
    the library that reads streams over gRPC: "h2", of the extra `gateway`, takes all events that are there together,
    on connections of its own, where an address is one host and port, called without a proxy, with `pick_first` and
    files in `tls`; "grpcio" takes one at a time, and whatever h2 does not; default "": h2 in a gateway, where it is
    installed, else grpcio. Raises ValueError for other values, ModuleNotFoundError for "h2" where there is none.
    """

    keepalive: float = 0.0
    balance: str = "pick_first"
    connections: int = 0
    streams: str = ""

    def __post_init__(self) -> None:
        if self.keepalive < 0 or self.connections < 0:
            raise ValueError("channel: keepalive and connections must not be negative")
        if self.balance not in BALANCES:
            raise ValueError(f"channel: balance must be one of {', '.join(BALANCES)}, not {self.balance!r}")
        if self.streams not in ("", *STREAMS):
            raise ValueError(f"channel: streams must be one of {', '.join(STREAMS)}, not {self.streams!r}")
        if self.streams == STREAMS[0]:
            with needs("gateway"):
                import h2  # noqa: F401

    def options(self) -> list[tuple[str, Any]]:
        """As gRPC takes it."""
        made: list[tuple[str, Any]] = [("grpc.lb_policy_name", self.balance)]
        if self.keepalive:
            made += [
                ("grpc.keepalive_time_ms", int(self.keepalive * 1000)),
                ("grpc.keepalive_timeout_ms", PING_TIMEOUT_MS),
                ("grpc.http2.ping_timeout_ms", PING_TIMEOUT_MS),  # else its own minute counts
                ("grpc.http2.max_pings_without_data", 0),
            ]
        return made


def _read(given: str | bytes) -> bytes:
    return given if isinstance(given, bytes) else Path(given).read_bytes()


def http_tls(given: ssl.SSLContext | Tls | None) -> ssl.SSLContext | bool:
    """What the HTTP library takes as `ssl`."""
    return given.context() if isinstance(given, Tls) else given or True
