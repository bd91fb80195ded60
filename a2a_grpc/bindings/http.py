"""HTTP: the host that carries the JSON-RPC and REST wires and the cards, on aiohttp, on a port or inside another app.

Laws: a request becomes an `HttpRequest` with its path still percent-encoded, goes to the wire that its path belongs to,
and the wire's answer is written as it stands; what a body means is not looked at here. Bodies are bounded before they
are read (BL-39). Streams are flushed chunk by chunk, never compressed (BL-37), released when their reader leaves
(SSE-06, BL-35) and cut off alone when it stalls (STREAM-06).
"""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from aiohttp import ClientPayloadError, web
from aiohttp.http_exceptions import HttpProcessingError

from a2a_grpc.bindings.cors import Cors
from a2a_grpc.bindings.jsonrpc import JsonRpc
from a2a_grpc.bindings.rest import Rest
from a2a_grpc.bindings.streams import Running, Streams
from a2a_grpc.bindings.tls import of_connection, tls_context
from a2a_grpc.bindings.wire import JSON, HttpReply, HttpRequest, HttpStream, outcome
from a2a_grpc.cards import WELL_KNOWN
from a2a_grpc.config import Options
from a2a_grpc.errors import (
    A2AError,
    InternalError,
    MediaTypeError,
    ParseError,
    PayloadTooLargeError,
    UnavailableError,
)
from a2a_grpc.protojson import dumps

JSONRPC_PATHS: Final = frozenset({"", "/", "/a2a/jsonrpc", "/a2a/jsonrpc/"})
"""Where JSON-RPC answers below a mount's prefix; every other path is REST."""

HEALTH: Final = "/healthz"
"""Answers 200 while the process can answer at all."""

READY: Final = "/readyz"
"""Answers 200 while new work is welcome, else 503."""

HSTS: Final = "max-age=31536000"
"""What Strict-Transport-Security says on a port with TLS (SEC-06)."""

_BACKLOG: Final = 1024
_LAST_WORDS: Final = 0.25
"""Seconds that connections have to close when the grace is over."""

_LOG: Final = logging.getLogger("a2a_grpc.http")
_LOG.addFilter(lambda record: not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError)))
"""The logger given to aiohttp; bytes that are no HTTP are answered with 400 and are no news."""

CardReader = Callable[[HttpRequest, str], Awaitable[HttpReply]]
"""Answers a request for a card or another page, given the origin under which this host was reached, such as
`http://127.0.0.1:8080`."""


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


class _EventStream(web.StreamResponse):
    """A response whose headers leave with the first chunk and that no middleware can compress."""

    _send_headers_immediately = False

    def enable_compression(self, *_: object, **__: object) -> None:
        """Leave the stream as it is (BL-37)."""


class _Connection(web.RequestHandler):
    """A connection that answers bytes that are no HTTP as REST answers errors; the library repeats them (ERR-11)."""

    __slots__ = ()

    def handle_error(
        self, request: web.BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        """The reply to a request that could not be read, or whose handler failed."""
        super().handle_error(request, status, exc, message)  # writes the log; raises when an answer has begun
        error = InternalError() if status >= 500 else ParseError("The bytes are not an HTTP request that is read here")
        code, number = error.status()
        shown = {"code": number, "status": code.name, "message": error.message, "details": error.details()}
        response = web.Response(status=number, content_type=JSON, body=dumps({"error": shown}))
        response.force_close()
        return response


class _Server(web.Server):
    def __call__(self) -> web.RequestHandler:
        settings: dict[str, Any] = {"access_log": None, "auto_decompress": False, "logger": _LOG}
        return _Connection(self, loop=asyncio.get_running_loop(), **settings)


class HttpHost:
    """Carries mounts on a port of its own (`start`) or in an aiohttp application (`application`, `handler`).

    mounts: the longest prefix that fits a path wins. options: address, TLS, limits. streams: where open streams are
    counted, shared with the other wires. ready: whether new work is welcome, for `/readyz`; default always.
    running: the requests in hand. address: `host:port` as bound, "" before `start`.
    """

    def __init__(
        self,
        mounts: Sequence[Mount],
        options: Options,
        streams: Streams,
        *,
        ready: Callable[[], bool] = lambda: True,
    ) -> None:
        self._mounts = {mount.prefix: mount for mount in mounts}
        longest_first = sorted(self._mounts, key=len, reverse=True)
        self._prefix = re.compile(f"(?:{'|'.join(map(re.escape, longest_first))})(?=/|$)")
        self._pages = {
            path: (mount, page)
            for mount in mounts
            for path, page in (
                *((path, mount.card) for path in (mount.prefix + WELL_KNOWN, *mount.aliases)),
                *mount.pages.items(),
            )
        }
        self._options = options
        self._streams = streams
        self._cors = Cors(options.cors_origins) if options.cors_origins else None
        self._fixed = {"strict-transport-security": HSTS} if options.tls_cert else {}
        self._probes = {HEALTH: lambda: True, READY: ready}
        self._runner: web.ServerRunner | None = None
        self._origin = ""
        self.running = Running()
        self.address = ""

    # -- life

    async def start(self) -> None:
        """Open the port and serve. Raises OSError when the address cannot be had or a TLS file cannot be read."""
        options = self._options
        server = _Server(self._serve, handler_cancellation=True)
        runner = web.ServerRunner(server, shutdown_timeout=_LAST_WORDS)
        await runner.setup()
        host, _, port = options.http.rpartition(":")
        try:
            tls = tls_context(options)
            site = web.TCPSite(
                runner,
                host.strip("[]"),
                int(port),
                ssl_context=tls,
                backlog=_BACKLOG,
                reuse_port=options.reuse_port or None,
            )
            await site.start()
        except BaseException:
            await runner.cleanup()
            raise
        self._runner = runner
        self.address = f"{host}:{runner.addresses[0][1]}"
        self._origin = f"{'https' if tls else 'http'}://{self.address}"

    async def stop(self, grace: float) -> None:
        """Take no new connections, let running requests end within `grace` seconds, then close (BL-34)."""
        if self._runner is None:
            return
        runner, self._runner = self._runner, None
        for site in list(runner.sites):
            await site.stop()
        if runner.server is not None:
            runner.server.pre_shutdown()
        await self.running.idle(grace)
        if len(self.running):  # streams are counted over all wires, and those of another may still be ending well
            self._streams.end(UnavailableError("The server is stopping"))
        await runner.cleanup()

    def application(self) -> web.Application:
        """An aiohttp application with this host's paths, to run or to mount with `add_subapp`."""
        application = web.Application()
        for path in ("", "/{tail:.*}"):
            application.router.add_route("*", path, self.handler)
        return application

    # -- one request

    async def handler(self, request: web.Request) -> web.StreamResponse:
        """An aiohttp handler for a route that ends in `/{tail:.*}`; what precedes that is taken off the path."""
        resource = request.match_info.route.resource
        outer = resource.canonical.removesuffix("/{tail}") if resource is not None else ""
        path = request.rel_url.raw_path.removeprefix(outer)
        return await self._answer(request, path, f"{request.scheme}://{request.host}{outer}")

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        return await self._answer(request, request.rel_url.raw_path, self._origin)

    async def _answer(self, request: web.BaseRequest, path: str, origin: str) -> web.StreamResponse:
        self.running.enter()
        try:
            if (probe := self._probes.get(path)) is not None:
                good = probe()
                return web.Response(status=200 if good else 503, text="ok\n" if good else "not ready\n")
            if self._cors is None:
                return self._marked(request, await self._dispatch(request, path, origin))
            early = self._cors.preflight(request.method, _read_head(request, path).headers)
            return _reply(early) if early else self._marked(request, await self._dispatch(request, path, origin))
        finally:
            self.running.leave()

    def _marked(self, request: web.BaseRequest, response: web.StreamResponse) -> web.StreamResponse:
        """The response with the headers that every answer of this host has, unless it is on its way already."""
        if response.prepared or not (self._fixed or self._cors):
            return response
        told = dict(self._fixed)
        if self._cors is not None:
            told |= self._cors.headers({"origin": request.headers.get("Origin", "")})
            told["vary"] = ", ".join(filter(None, (response.headers.get("vary"), told["vary"])))
        response.headers.update(told)
        return response

    async def _dispatch(self, request: web.BaseRequest, path: str, origin: str) -> web.StreamResponse:
        if (shown := self._pages.get(path)) is not None:
            return await self._page(*shown, request, path, origin)
        found = self._prefix.match(path)
        if found is None:
            return web.Response(status=404, text="nothing is served here\n")
        mount = self._mounts[found[0]]
        asked = self._head(request, path[found.end() :])
        wire = mount.jsonrpc if asked.path in JSONRPC_PATHS else mount.rest
        try:
            asked.body = await self._read_body(request)
        except A2AError as error:
            return _reply(wire.refuse(asked, error))
        answer = await wire.answer(asked)
        if isinstance(answer, HttpReply):
            return _reply(answer)
        try:
            return await self._stream(request, answer, path)
        except A2AError as error:
            return _reply(wire.refuse(asked, error))

    async def _page(
        self, mount: Mount, page: CardReader, request: web.BaseRequest, path: str, origin: str
    ) -> web.StreamResponse:
        asked = self._head(request, path)
        try:
            return _reply(await page(asked, origin))
        except (Exception, asyncio.CancelledError) as fault:
            return _reply(mount.rest.refuse(asked, outcome(fault)))

    def _head(self, request: web.BaseRequest, path: str) -> HttpRequest:
        asked = _read_head(request, path)
        if self._options.tls_client_ca and request.transport is not None:
            asked.certificate = of_connection(request.transport.get_extra_info("peercert"))
        return asked

    async def _read_body(self, request: web.BaseRequest) -> bytes:
        """The body, whole and bounded. Raises PayloadTooLargeError, MediaTypeError (compressed), or ParseError (broken,
        or stalled for `stall_timeout` seconds)."""
        limit, content = self._options.max_request_bytes, request.content
        if request.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise MediaTypeError("A compressed body is not accepted")
        if (request.content_length or 0) > limit:
            raise _too_large(limit)
        try:
            body = content.read_nowait() if content.is_eof() else await self._collect(request, limit)
        except (ClientPayloadError, HttpProcessingError):
            raise ParseError("The body is broken") from None
        except TimeoutError:
            raise ParseError("The rest of the body did not come") from None
        if len(body) > limit:
            raise _too_large(limit)
        return body

    async def _collect(self, request: web.BaseRequest, limit: int) -> bytes:
        """What arrives until the end of the body or past the limit."""
        if request.headers.get("Expect", "").lower() == "100-continue" and not isinstance(request, web.Request):
            await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        chunks, size = [], 0
        loop, patience = asyncio.get_running_loop(), self._options.stall_timeout
        async with asyncio.timeout(patience) as timer:
            while size <= limit and (chunk := await request.content.readany()):
                chunks.append(chunk)
                size += len(chunk)
                timer.reschedule(loop.time() + patience)
        return b"".join(chunks)

    async def _stream(self, request: web.BaseRequest, answer: HttpStream, path: str) -> web.StreamResponse:
        """Write a stream to its end. Raises ResourceExhaustedError, with nothing written, when too many are open."""

        def gone() -> bool:
            return request.transport is None or request.transport.is_closing()

        response = self._marked(request, _EventStream(status=answer.status, headers=answer.headers))
        try:
            with self._streams.open(path, self._options.stall_timeout, gone) as stream:
                try:
                    await response.prepare(request)
                    async for chunk in answer.chunks:
                        await stream.write(response.write(chunk))
                    await stream.write(response.write_eof())
                except ConnectionError:
                    pass
                except asyncio.CancelledError:
                    if stream.error is None:
                        raise
                    _abort(request)
        finally:
            await answer.chunks.aclose()
        return response


def _abort(request: web.BaseRequest) -> None:
    """Cut the connection of one request, whatever is still waiting to be written to it."""
    task = asyncio.current_task()
    assert task is not None
    task.uncancel()
    if request.transport is not None:
        request.transport.abort()


def _too_large(limit: int) -> PayloadTooLargeError:
    return PayloadTooLargeError(f"The request is larger than the limit of {limit} bytes")


def _read_head(request: web.BaseRequest, path: str) -> HttpRequest:
    headers: dict[str, str] = {}
    for name, value in request.headers.items():
        key = name.lower()
        if not value.isascii():  # bytes that are no text came as lone surrogates, which no answer could hold
            value = value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        headers[key] = f"{headers[key]}, {value}" if key in headers else value
    return HttpRequest(request.method, path, request.rel_url.raw_query_string, headers)


def _reply(answer: HttpReply) -> web.Response:
    return web.Response(status=answer.status, headers=answer.headers, body=answer.body)
