"""What is where on an HTTP port: agents with their wires and cards, probes, and what browsers ask.

Laws: no HTTP library. A request goes to the wire that its path belongs to; what its body means is not looked at here.
The body is read by the host, and only when a wire wants it; what is announced too large or compressed is refused before
(BL-39). The hosts are `bindings.http` and `bindings.asgi`.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from a2a_grpc.bindings.browsers import Browsers
from a2a_grpc.bindings.cors import Cors
from a2a_grpc.bindings.jsonrpc import JsonRpc
from a2a_grpc.bindings.rest import Rest
from a2a_grpc.bindings.wire import Answer, HttpReply, HttpRequest, outcome
from a2a_grpc.cards import WELL_KNOWN
from a2a_grpc.config import Options
from a2a_grpc.errors import A2AError, MediaTypeError, PayloadTooLargeError

JSONRPC_PATHS: Final = frozenset({"", "/", "/a2a/jsonrpc", "/a2a/jsonrpc/"})
"""Where JSON-RPC answers below a mount's prefix; every other path is REST."""

HEALTH: Final = "/healthz"
"""Answers 200 while the process can answer at all."""

READY: Final = "/readyz"
"""Answers 200 while new work is welcome, else 503."""

HSTS: Final = "max-age=31536000"
"""What Strict-Transport-Security says on a port with TLS (SEC-06)."""

CardReader = Callable[[HttpRequest, str], Awaitable[HttpReply]]
"""Answers a request for a card or another page, given the origin under which the host was reached, such as
`http://127.0.0.1:8080`."""

Refuse = Callable[[HttpRequest, A2AError], HttpReply]
"""The reply to a request that the host refuses."""


@dataclass(frozen=True, slots=True)
class Mount:
    """One agent's place on the host.

    prefix: raw path without a last slash, "" for the root. jsonrpc, rest: its wires. card: answers at
    `<prefix>/.well-known/agent-card.json` and at each of `aliases`, which are whole paths (BL-52). pages: what else is
    shown, by whole paths.
    """

    prefix: str
    jsonrpc: JsonRpc
    rest: Rest
    card: CardReader
    aliases: Sequence[str] = ()
    pages: dict[str, CardReader] = field(default_factory=dict)


class Mounts:
    """Everything on a host. mounts: the longest prefix that fits a path wins. options: TLS, origins, limits. unready:
    why new work is not welcome, for `/readyz`, "" while it is; default "". browsers: what pages may send; replaced by
    a host that has a port of its own."""

    def __init__(self, mounts: Sequence[Mount], options: Options, unready: Callable[[], str] = str) -> None:
        self.browsers = Browsers(options, options.http if options.engine == "envoy" else "")
        longest_first = sorted([mount.prefix for mount in mounts], key=len, reverse=True)
        self._prefix = re.compile(f"(?:{'|'.join(map(re.escape, longest_first))})(?=/|$)")
        self._wires: dict[tuple[str, bool], tuple[JsonRpc | Rest, Refuse]] = {}
        for mount in mounts:
            self._wires[mount.prefix, True] = mount.jsonrpc, self._refuser(mount.jsonrpc)
            self._wires[mount.prefix, False] = mount.rest, self._refuser(mount.rest)
        self._pages = {path: (mount, page) for mount in mounts for path, page in mount.pages.items()}
        for mount in mounts:
            self._pages |= dict.fromkeys((mount.prefix + WELL_KNOWN, *mount.aliases), (mount, mount.card))
        self._limit = options.max_request_bytes
        self._cors = Cors(options.cors_origins) if options.cors_origins else None
        self._fixed = {"strict-transport-security": HSTS} if options.tls_cert else {}
        self._probes: dict[str, Callable[[], str]] = {HEALTH: str, READY: unready}

    async def answer(
        self, asked: HttpRequest, origin: str, read: Callable[[], Awaitable[bytes | bytearray]] | None = None
    ) -> tuple[Answer, Refuse]:
        """The answer to a request, and how to refuse the request if a stream cannot be begun.

        origin: under which the host was reached. read: gives the body; may raise what `check` and `too_large` tell of.
        Default None: the request has its body, and the host knows that it is neither compressed nor too large.
        """
        if self._cors is not None and (early := self._cors.preflight(asked.verb, asked.headers)):
            early.headers |= self._fixed
            return early, self._refused
        path = asked.path
        found = None if path in self._probes or path in self._pages else self._prefix.match(path)
        refuse: Refuse = self._refused  # no page is a stream
        if found is None:
            answer = await self._beside(asked, origin)
        else:
            asked.path = below = path[found.end() :]
            wire, refuse = self._wires[found[0], below in JSONRPC_PATHS]
            try:
                self.browsers.check(asked.verb, asked.headers)
                if read is not None:
                    self._check(asked.headers)
                    asked.body = await read()
                    if len(asked.body) > self._limit:
                        raise too_large(self._limit)
            except A2AError as error:
                answer = wire.refuse(asked, error)
            else:
                answer = await wire.answer(asked)
        if self._fixed or self._cors:
            self.mark(asked.headers, answer.headers)
        return answer, refuse

    def mark(self, asked: Mapping[str, str], told: dict[str, str]) -> None:
        """Add to the headers of an answer what every answer of this host has. asked: the headers of the request."""
        told |= self._fixed
        if self._cors is not None:
            vary = told.get("vary")
            told |= self._cors.headers(asked)
            if vary:
                told["vary"] = f"{vary}, {told['vary']}"

    async def _beside(self, asked: HttpRequest, origin: str) -> Answer:
        """What is asked of no wire."""
        if (probe := self._probes.get(asked.path)) is not None:
            why = probe()
            return _text(503, f"{why}\n") if why else _text(200, "ok\n")
        if (shown := self._pages.get(asked.path)) is not None:
            return await self._page(*shown, asked, origin)
        return _text(404, "nothing is served here\n")

    def _refuser(self, wire: JsonRpc | Rest) -> Refuse:
        def refuse(asked: HttpRequest, error: A2AError) -> HttpReply:
            reply = wire.refuse(asked, error)
            self.mark(asked.headers, reply.headers)
            return reply

        return refuse

    async def _page(self, mount: Mount, page: CardReader, asked: HttpRequest, origin: str) -> HttpReply:
        try:
            self.browsers.check(asked.verb, asked.headers)
            return await page(asked, origin)
        except (Exception, asyncio.CancelledError) as fault:
            return mount.rest.refuse(asked, outcome(fault))

    def _check(self, headers: Mapping[str, str]) -> None:
        """Raise MediaTypeError for a compressed body, PayloadTooLargeError for one that is announced too large."""
        if headers.get("content-encoding", "identity").lower() != "identity":
            raise MediaTypeError("A compressed body is not accepted")
        length = headers.get("content-length", "")
        if length.isascii() and length.isdigit() and int(length) > self._limit:
            raise too_large(self._limit)

    def _refused(self, asked: HttpRequest, error: A2AError) -> HttpReply:
        raise error


def _text(status: int, text: str) -> HttpReply:
    return HttpReply(status, {"content-type": "text/plain; charset=utf-8"}, text.encode())


def too_large(limit: int) -> PayloadTooLargeError:
    """The refusal of a body of more bytes than the limit."""
    return PayloadTooLargeError(f"The request is larger than the limit of {limit} bytes")
