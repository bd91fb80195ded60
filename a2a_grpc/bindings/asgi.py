"""Every wire as one ASGI 3 application: gRPC, gRPC-Web, JSON-RPC, REST, event streams and cards, in both versions.

Laws: this is a host and nothing more. HTTP goes to `Mounts`, gRPC to `asgi_grpc`, told apart by the Content-Type; what
is said there is what the other hosts say. No library of a host is imported: framing is ours, and every server that
speaks ASGI 3 will do.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack

from a2a_grpc.bindings import health, reflection
from a2a_grpc.bindings.asgi_exchange import Exchange, Gone, Receive, Scope, Send, Watch
from a2a_grpc.bindings.asgi_grpc import FORMS, GrpcCalls, refuse
from a2a_grpc.bindings.mounts import Mount, Mounts
from a2a_grpc.bindings.rpc import Rpcs
from a2a_grpc.bindings.streams import LAST_WORDS, Running, Streams
from a2a_grpc.bindings.wire import HttpReply, HttpRequest, HttpStream
from a2a_grpc.call import Gate
from a2a_grpc.config import Options
from a2a_grpc.errors import STOPPING, A2AError, UnavailableError
from a2a_grpc.python310_asyncio import uncancel


class AsgiHost:
    """The application. servicer: any object with the eleven v1.0 methods `(request, call)`. mounts: what is where on
    HTTP. options: versions, limits, error profile, reflection. streams: where open streams are counted. gate: tells who
    is calling.

    life: what runs while the application does, entered and left with its lifespan. unready: why new work is not
    welcome, see Mounts. serving: whether the engine runs; calls before and after get UNAVAILABLE. base: the URL under
    which everything is reached, "" to take it from each request.
    """

    def __init__(
        self,
        servicer: object,
        mounts: Sequence[Mount],
        options: Options,
        streams: Streams,
        gate: Gate | None,
        *,
        life: Callable[[], AbstractAsyncContextManager[None]],
        unready: Callable[[], str],
        serving: Callable[[], bool],
        base: Callable[[], str],
    ) -> None:
        self._options, self._streams = options, streams
        self._life, self._serving, self._base = life, serving, base
        self._mounts = Mounts(mounts, options, unready)
        self._running = Running()
        self._watch = Watch(options.stall_timeout)
        self._rpcs = Rpcs(servicer, options, streams, gate, refuse, lambda call: call.certificate())
        self._health = health.Health(self._rpcs.names)
        rows = self._rpcs.rows() + health.rows(self._health, self._rpcs.plain)
        rows += reflection.rows(rows, self._rpcs.plain) if options.reflection else []
        self._grpc = GrpcCalls(rows, options, self._mounts, serving)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, or the lifespan of the application."""
        if scope["type"] == "lifespan":
            return await self._lifespan(receive, send)
        if scope["type"] != "http":
            await receive()
            return await send({"type": "websocket.close", "code": 1000})
        exchange = Exchange(scope, receive, send, self._watch)
        media = b""
        for name, value in scope["headers"]:
            if name == b"content-type":
                media = value
        try:
            if form := FORMS.get(media) or FORMS.get(media.partition(b";")[0].strip().lower()):
                await self._grpc.answer(exchange, form)
            else:
                await self._http(exchange)
        except Gone:
            pass
        except asyncio.CancelledError:
            if not exchange.gone:
                raise
            task = asyncio.current_task()
            assert task is not None
            uncancel(task)
        finally:
            exchange.close()

    # -- life

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        async with AsyncExitStack() as stack:
            await receive()
            try:
                await stack.enter_async_context(self._life())
            except Exception as fault:
                await send({"type": "lifespan.startup.failed", "message": f"{type(fault).__name__}: {fault}"})
                return
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})

    def resume(self) -> None:
        """Say SERVING to whoever asks for health."""
        self._health.resume()

    def drain(self) -> None:
        """Say NOT_SERVING to whoever asks for health. Calls are served as before."""
        self._health.drain()

    async def stop(self, grace: float) -> None:
        """Let running calls end within `grace` seconds, then tell the streams that are left that the server is
        unavailable (BL-34). Who serves the application closes its ports."""
        running = (self._running, self._rpcs.running)
        await asyncio.gather(*(each.idle(grace) for each in running))
        if any(map(len, running)):
            self._streams.end(UnavailableError(STOPPING))
            await asyncio.gather(*(each.idle(LAST_WORDS) for each in running))

    # -- HTTP

    async def _http(self, exchange: Exchange) -> None:
        scope = exchange.scope
        asked = HttpRequest(
            scope["method"], exchange.path, scope["query_string"].decode("latin-1"), headers := exchange.headers()
        )
        if self._options.tls_client_ca:
            asked.certificate = exchange.certificate()
        if self._options.failure_rate:
            asked.peer = exchange.peer()

        async def read() -> bytes:
            body = await exchange.body(self._options.max_request_bytes)
            if not self._serving():
                raise UnavailableError("The server has not been started, or is stopping")
            exchange.listen()
            return body

        origin = self._base() or f"{scope['scheme']}://{headers.get('host', 'localhost')}{exchange.root}"
        self._running.enter()
        try:
            answer, refused = await self._mounts.answer(asked, origin, read)
            if isinstance(answer, HttpStream):
                try:
                    return await self._stream(exchange, answer)
                except A2AError as error:
                    answer = refused(asked, error)
            await _reply(exchange, answer)
        finally:
            self._running.leave()

    async def _stream(self, exchange: Exchange, answer: HttpStream) -> None:
        """Write a stream to its end. Raises ResourceExhaustedError, with nothing written, when too many are open, and
        ConnectionAbortedError, by which the server cuts the connection, when this side has to end it."""
        try:
            with self._streams.open(exchange.path, self._options.stall_timeout) as stream:
                try:
                    await stream.write(exchange.start(answer.status, _pairs(answer.headers)))
                    async for chunk in answer.chunks:
                        await stream.write(exchange.write(chunk))
                    await stream.write(exchange.write(b"", more=False))
                except asyncio.CancelledError:
                    if stream.error is None or exchange.gone:
                        raise
                    task = asyncio.current_task()
                    assert task is not None
                    uncancel(task)
                    raise ConnectionAbortedError(stream.error.message) from None
        finally:
            await answer.chunks.aclose()


def _pairs(headers: dict[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.lower().encode("latin-1"), value.encode("utf-8")) for name, value in headers.items()]


async def _reply(exchange: Exchange, answer: HttpReply) -> None:
    headers = _pairs(answer.headers)
    if "content-length" not in answer.headers and answer.status not in (204, 304):
        headers.append((b"content-length", b"%d" % len(answer.body)))
    await exchange.start(answer.status, headers)
    await exchange.write(b"" if exchange.scope["method"] == "HEAD" else answer.body, more=False)
