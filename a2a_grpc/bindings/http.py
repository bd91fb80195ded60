"""HTTP: the host that carries the JSON-RPC and REST wires and the cards, on aiohttp, on a port or inside another app.

Laws: a request becomes an `HttpRequest` with its path still percent-encoded, `Mounts` answers it, and the answer is
written as it stands. Bodies are bounded while they are read (BL-39). Streams are flushed chunk by chunk, never
compressed (BL-37), released when their reader leaves (SSE-06, BL-35) and cut off alone when it stalls (STREAM-06).
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any, Final

from aiohttp import ClientPayloadError, web
from aiohttp.http_exceptions import HttpProcessingError

from a2a_grpc.bindings.browsers import Browsers
from a2a_grpc.bindings.http_plain import PlainHost
from a2a_grpc.bindings.mounts import Mount, Mounts
from a2a_grpc.bindings.streams import LAST_WORDS, Running, Streams
from a2a_grpc.bindings.tls import of_connection, tls_context
from a2a_grpc.bindings.wire import JSON, HttpReply, HttpRequest, HttpStream
from a2a_grpc.config import Options
from a2a_grpc.errors import (
    STOPPING,
    A2AError,
    InternalError,
    ParseError,
    UnavailableError,
)
from a2a_grpc.protojson import dumps
from a2a_grpc.python310_asyncio import timeout, uncancel

_BACKLOG: Final = 1024

_LOG: Final = logging.getLogger("a2a_grpc.http")
_LOG.addFilter(lambda record: not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError)))
"""The logger given to aiohttp; bytes that are no HTTP are answered with 400 and are no news."""


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
    counted, shared with the other wires. unready: why new work is not welcome, see Mounts.
    running: the requests in hand. address: `host:port` as bound, "" before `start`.
    """

    def __init__(
        self,
        mounts: Sequence[Mount],
        options: Options,
        streams: Streams,
        *,
        unready: Callable[[], str] = str,
    ) -> None:
        self._mounts = Mounts(mounts, options, unready)
        self._options = options
        self._streams = streams
        self._server: asyncio.AbstractServer | None = None
        self._origin = ""
        self.running = Running()
        self.address = ""

    # -- life

    async def start(self) -> None:
        """Open the port and serve. Raises OSError when the address cannot be had or a TLS file cannot be read."""
        options = self._options
        host, _, port = options.http.rpartition(":")
        tls = tls_context(options)
        self._mounts.browsers = Browsers(options, options.http)
        aside = _Server(self._serve, handler_cancellation=True)
        plain = PlainHost(self._mounts, options, self._streams, self.running, aside)
        try:
            server = await asyncio.get_running_loop().create_server(
                plain,
                host.strip("[]") or None,
                int(port),
                ssl=tls,
                backlog=_BACKLOG,
                reuse_port=options.reuse_port or None,
            )
        except OSError as fault:
            why = "in use, or not an address of this host"
            raise OSError(fault.errno, f"HTTP cannot listen on {options.http}: {why}") from fault
        self._plain, self._aside, self._server = plain, aside, server
        self.address = f"{host}:{server.sockets[0].getsockname()[1]}"
        self._origin = plain.origin = f"{'https' if tls else 'http'}://{self.address}"

    async def stop(self, grace: float) -> None:
        """Take no new connections, let running requests end within `grace` seconds, then close (BL-34)."""
        if self._server is None:
            return
        server, self._server = self._server, None
        server.close()
        self._plain.close()
        self._aside.pre_shutdown()
        await self.running.idle(grace)
        if len(self.running):  # streams are counted over all wires, and those of another may still be ending well
            self._streams.end(UnavailableError(STOPPING))
            await self.running.idle(LAST_WORDS)
        self._plain.abort()
        await self._aside.shutdown(LAST_WORDS)

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
            asked = self._head(request, path)
            answer, refuse = await self._mounts.answer(asked, origin, lambda: self._read_body(request))
            if isinstance(answer, HttpReply):
                return _reply(answer)
            try:
                return await self._stream(request, answer, path)
            except A2AError as error:
                return _reply(refuse(asked, error))
        finally:
            self.running.leave()

    def _head(self, request: web.BaseRequest, path: str) -> HttpRequest:
        asked = _read_head(request, path)
        if self._options.tls_client_ca and request.transport is not None:
            asked.certificate = of_connection(request.transport.get_extra_info("peercert"))
        if self._options.failure_rate:
            asked.peer = request.remote or ""
        return asked

    async def _read_body(self, request: web.BaseRequest) -> bytes:
        """The body, bounded. Raises ParseError: broken, or stalled for `stall_timeout` seconds."""
        limit, content = self._options.max_request_bytes, request.content
        try:
            return content.read_nowait() if content.is_eof() else await self._collect(request, limit)
        except (ClientPayloadError, HttpProcessingError):
            raise ParseError("The body is broken") from None
        except TimeoutError:
            raise ParseError("The rest of the body did not come") from None

    async def _collect(self, request: web.BaseRequest, limit: int) -> bytes:
        """What arrives until the end of the body or past the limit."""
        if request.headers.get("Expect", "").lower() == "100-continue" and not isinstance(request, web.Request):
            await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        chunks, size = [], 0
        loop, patience = asyncio.get_running_loop(), self._options.stall_timeout
        async with timeout(patience) as timer:
            while size <= limit and (chunk := await request.content.readany()):
                chunks.append(chunk)
                size += len(chunk)
                timer.reschedule(loop.time() + patience)
        return b"".join(chunks)

    async def _stream(self, request: web.BaseRequest, answer: HttpStream, path: str) -> web.StreamResponse:
        """Write a stream to its end. Raises ResourceExhaustedError, with nothing written, when too many are open."""

        def gone() -> bool:
            return request.transport is None or request.transport.is_closing()

        response = _EventStream(status=answer.status, headers=answer.headers)
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
    uncancel(task)
    if request.transport is not None:
        request.transport.abort()


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
