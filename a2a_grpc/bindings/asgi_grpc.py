"""gRPC and gRPC-Web on an ASGI server: messages in their frames, deadlines, compression, and how a call ends.

Laws: no gRPC library and no operation; what a call means is said in `bindings.rpc`. gRPC ends with trailers, for which
the server must have an extension; gRPC-Web says the same in a last frame, which every server carries. An answer without
messages has the same form as any other, so that no client has to know another. The end of a call that cannot be told
any more is told to nobody.
"""

import asyncio
import base64
import re
import struct
import time
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from a2a_grpc.bindings.asgi_exchange import Exchange, Gone
from a2a_grpc.bindings.mounts import Mounts, too_large
from a2a_grpc.bindings.rpc import Refusal, Rpc, refusal
from a2a_grpc.call import Certificate
from a2a_grpc.config import Options
from a2a_grpc.errors import A2AError, Code, InvalidParamsError, MethodNotFoundError, UnavailableError
from a2a_grpc.python310_asyncio import timeout


class Form(NamedTuple):
    """How a call is carried. headers: of every answer; web: ends with a frame, not trailers; text: in base64."""

    headers: list[tuple[bytes, bytes]]
    web: bool = False
    text: bool = False


ENCODINGS: Final = "identity, gzip"
"""What may be done to messages of requests; answers are sent as they are."""


def _headers(media: bytes) -> list[tuple[bytes, bytes]]:
    return [(b"content-type", media), (b"grpc-accept-encoding", ENCODINGS.encode())]


_GRPC: Final = Form(_headers(b"application/grpc"))
_WEB: Final = Form(_headers(b"application/grpc-web+proto"), web=True)
_TEXT: Final = Form(_headers(b"application/grpc-web-text+proto"), web=True, text=True)

FORMS: Final[Mapping[bytes, Form]] = {
    b"application/grpc": _GRPC,
    b"application/grpc+proto": _GRPC,
    b"application/grpc-web": _WEB,
    b"application/grpc-web+proto": _WEB,
    b"application/grpc-web-text": _TEXT,
    b"application/grpc-web-text+proto": _TEXT,
}
"""Every Content-Type that is gRPC."""

NO_TRAILERS: Final = (
    "gRPC ends with trailers, which this server does not offer to ASGI applications (http.response.trailers); servers "
    "that do are pyvoy and, over HTTP/2, hypercorn. gRPC-Web works here."
)

WINDOW: Final = 65_536
"""Bytes of a stream that may wait for a reader before the handler has to wait, too."""

_HEAD: Final = struct.Struct(">BI")
_COMPRESSED: Final = 1
_TRAILERS: Final = 0x80
_UNITS: Final = {"H": 3600.0, "M": 60.0, "S": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9}
_TIMEOUT: Final = re.compile(r"([0-9]{1,8})([HMSmun])")
_BASE64: Final = re.compile(rb"[A-Za-z0-9+/]+={0,2}")
_SAFE: Final = " !\"#$&'()*+,-./:;<=>?@[\\]^_`{|}~"
_GOOD: Final = [(b"grpc-status", b"0")]
_LATE: Final = Refusal(Code.DEADLINE_EXCEEDED, "Deadline exceeded", ())


class GrpcCalls:
    """The gRPC calls of an application.

    rows: what is served. options: limits, error profile, patience with readers. mounts: what headers an answer to
    gRPC-Web has besides. serving: whether the engine runs.
    """

    def __init__(self, rows: Iterable[Rpc], options: Options, mounts: Mounts, serving: Callable[[], bool]) -> None:
        self._rows = {row.path: row for row in rows}
        self._options = options
        self._mounts = mounts
        self._serving = serving

    async def answer(self, exchange: Exchange, form: Form) -> None:
        """Take a call to its end. Raises Gone, TimeoutError: the end could not be told to a reader who has stalled."""
        headers = exchange.headers()
        call = _Call(exchange, form, headers, self._options)
        if form.web:
            self._mounts.mark(headers, call.told)
        try:
            self._mounts.browsers.check("POST", headers)
            row = call.row = self._found(exchange, form)
            remaining = _seconds(headers.get("grpc-timeout", ""))
            request = call.each() if row.asking else row.read(await call.one())
            if not self._serving():
                raise UnavailableError("The server has not been started, or is stopping")
        except A2AError as error:
            return await call.finish(refusal(error, self._options))
        except _Broken as broken:
            return await call.finish(broken.refusal)
        if not row.asking:
            exchange.listen()
        try:
            await self._run(call, request, remaining)
        finally:
            call.close()

    async def _run(self, call: "_Call", request: Any, remaining: float | None) -> None:
        if remaining is None:
            return await call.run(request)
        call.deadline = time.monotonic() + remaining
        try:
            async with timeout(remaining) as call.limit:
                await call.run(request)
        except TimeoutError:
            if call.ended:
                raise
            await call.finish(_LATE)

    def _found(self, exchange: Exchange, form: Form) -> Rpc:
        if not (form.web or exchange.trailers):
            raise _Broken(Code.UNIMPLEMENTED, NO_TRAILERS)
        row = self._rows.get(exchange.path)
        if row is None or exchange.scope["method"] != "POST":
            raise MethodNotFoundError
        if row.asking and form.web:
            raise _Broken(Code.UNIMPLEMENTED, "gRPC-Web has no calls with many requests")
        return row


async def refuse(context: Any, refusal: Refusal) -> None:
    """End a call of this host, for `bindings.rpc`."""
    await context.finish(refusal)


class _Broken(Exception):
    """What is wrong with a call as gRPC, beneath what A2A has errors for."""

    def __init__(self, code: Code, text: str) -> None:
        self.refusal = Refusal(code, text, ())


class _Outbox:
    """Messages of a stream on their way: those that come in one turn of the event loop leave together.

    send: sends bytes, and returns when the reader can take more. At most `WINDOW` bytes and one message wait.
    """

    __slots__ = ("_closing", "_held", "_send", "_size", "_task", "_wanted", "_written")

    def __init__(self, send: Callable[[bytes], Awaitable[None]]) -> None:
        self._send = send
        self._held: list[bytes] = []
        self._size = 0
        self._closing = False
        self._wanted, self._written = asyncio.Event(), asyncio.Event()
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def put(self, data: bytes) -> None:
        """Send soon; waits when too much does already."""
        self._held.append(data)
        self._size += len(data)
        self._wanted.set()
        if self._size > WINDOW and not self._task.done():
            self._written.clear()
            await self._written.wait()

    async def flush(self) -> None:
        """Return when everything has been sent; nothing may be put any more."""
        self._closing = True
        self._wanted.set()
        await self._task

    def close(self) -> None:
        """Send nothing more."""
        self._task.cancel()

    async def _run(self) -> None:
        try:
            while not self._closing or self._held:
                await self._wanted.wait()
                self._wanted.clear()
                if self._held:
                    data = b"".join(self._held)
                    self._held.clear()
                    self._size = 0
                    await self._send(data)
                    self._written.set()
        finally:
            self._written.set()


class _Call:
    """A call on its way: a `Context` of `bindings.rpc`. told: headers of the answer; ended: its end is being told, or
    has been; limit: ends it with its deadline."""

    __slots__ = ("_exchange", "_form", "_metadata", "_options", "_outbox", "deadline", "ended", "limit", "row", "told")

    def __init__(self, exchange: Exchange, form: Form, metadata: dict[str, str], options: Options) -> None:
        self._exchange, self._form, self._metadata, self._options = exchange, form, metadata, options
        self.row: Rpc | None = None
        self.deadline: float | None = None
        self.limit: Any = None
        self.ended = False
        self.told: dict[str, str] = {}
        self._outbox: _Outbox | None = None

    def close(self) -> None:
        """Nothing more is sent."""
        if self._outbox is not None:
            self._outbox.close()

    # -- for bindings.rpc

    def invocation_metadata(self) -> dict[str, str]:
        return self._metadata

    def time_remaining(self) -> float | None:
        return None if self.deadline is None else self.deadline - time.monotonic()

    async def send_initial_metadata(self, metadata: Iterable[tuple[str, str]]) -> None:
        self.told.update(metadata)

    async def write(self, message: Any) -> None:
        if self._outbox is None:
            await self._begin()
            self._outbox = _Outbox(self._out)
        await self._outbox.put(self._framed(message))

    async def _out(self, data: bytes) -> None:
        await self._exchange.write(self._shown(data))

    def certificate(self) -> Certificate | None:
        return self._exchange.certificate()

    def peer(self) -> str:
        return self._exchange.peer()

    # -- in

    async def one(self) -> bytes:
        """The bytes of the only request. Raises A2AError, _Broken."""
        limit = self._options.max_request_bytes
        most = limit + _HEAD.size
        body = await self._exchange.body(most * 4 // 3 + 4 if self._form.text else most)
        if self._form.text:
            body = _decoded(body)
        if len(body) < _HEAD.size:
            raise InvalidParamsError("The body holds no message")
        flag, size = _HEAD.unpack_from(body)
        if size > limit:
            raise too_large(limit)
        if len(body) != _HEAD.size + size:
            raise InvalidParamsError("The body is not one whole message")
        return self._plain(flag, body[_HEAD.size :])

    async def each(self) -> AsyncIterator[Any]:
        """The requests as they come."""
        assert self.row is not None
        limit, held = self._options.max_request_bytes, b""
        try:
            while (piece := await self._exchange.piece()) is not None:
                held += piece
                while len(held) >= _HEAD.size:
                    flag, size = _HEAD.unpack_from(held)
                    if size > limit:
                        raise too_large(limit)
                    end = _HEAD.size + size
                    if len(held) < end:
                        break
                    yield self.row.read(self._plain(flag, held[_HEAD.size : end]))
                    held = held[end:]
        except Gone:
            return
        except _Broken as broken:
            await self.finish(broken.refusal)
            return
        if held:
            raise InvalidParamsError("The body ends within a message")

    def _plain(self, flag: int, data: bytes) -> bytes:
        """The bytes of a message, inflated up to the limit."""
        if not flag:
            return data
        encoding = self._metadata.get("grpc-encoding", "identity")
        if flag != _COMPRESSED or encoding == "identity":
            raise _Broken(Code.INTERNAL, "A message is marked as compressed, but grpc-encoding names no encoding")
        if encoding != "gzip":
            raise _Broken(Code.UNIMPLEMENTED, f"grpc-encoding may be {ENCODINGS}, not {encoding[:40]}")
        limit, gzip = self._options.max_request_bytes, zlib.decompressobj(16 + zlib.MAX_WBITS)
        try:
            found = gzip.decompress(data, limit + 1)
        except zlib.error:
            raise InvalidParamsError("A message is not the gzip that grpc-encoding says it is") from None
        if len(found) > limit:
            raise too_large(limit)
        if data and (gzip.unused_data or not gzip.eof):
            raise InvalidParamsError("A message is not one whole gzip")
        return found

    # -- out

    async def run(self, request: Any) -> None:
        """Call the handler and tell how it ended."""
        assert self.row is not None
        answer = await self.row.handler(request, self)
        if not self.ended:
            if self.row.streaming:
                await self._last(_GOOD)
            else:
                self._end()
                await self._finish(_GOOD, self._framed(answer))

    async def finish(self, refusal: Refusal) -> None:
        """End a call that failed. Raises TimeoutError when the caller has stalled."""
        await self._last(_trailers(refusal))

    def _end(self) -> None:
        """From now on the end is told, which has the time of any write: a deadline would leave half an answer."""
        self.ended = True
        if self.limit is not None and not self.limit.expired():
            self.limit.reschedule(asyncio.get_running_loop().time() + self._options.stall_timeout)

    async def _last(self, trailers: list[tuple[bytes, bytes]]) -> None:
        self._end()
        async with timeout(self._options.stall_timeout):
            if self._outbox is not None:
                await self._outbox.flush()
            await self._finish(trailers, b"")

    async def _finish(self, trailers: list[tuple[bytes, bytes]], data: bytes) -> None:
        if self._form.web:
            lines = b"".join([b"%b: %b\r\n" % pair for pair in trailers])
            data += _HEAD.pack(_TRAILERS, len(lines)) + lines
        after = self._exchange.trailers and not self._form.web
        await self._begin(() if after or self._form.web else trailers)
        await self._exchange.write(self._shown(data), more=False)
        if after:
            await self._exchange.end(trailers)

    async def _begin(self, trailers: Iterable[tuple[bytes, bytes]] = ()) -> None:
        if not self._exchange.begun:
            headers = self._form.headers
            if self.told or trailers:
                told = [(name.lower().encode(), value.encode()) for name, value in self.told.items()]
                headers = [*headers, *trailers, *told]
            await self._exchange.start(200, headers, not self._form.web and self._exchange.trailers)

    def _framed(self, message: Any) -> bytes:
        assert self.row is not None
        data = self.row.write(message)
        return _HEAD.pack(0, len(data)) + data

    def _shown(self, data: bytes) -> bytes:
        return base64.b64encode(data) if self._form.text else data


def _decoded(body: bytes) -> bytes:
    """What base64 says, written in one piece or several. Raises InvalidParamsError."""
    try:
        return b"".join(map(base64.b64decode, _BASE64.findall(body)))
    except ValueError:
        raise InvalidParamsError("The body is not base64") from None


def _trailers(refusal: Refusal) -> list[tuple[bytes, bytes]]:
    found = [
        (b"grpc-status", b"%d" % refusal.code),
        (b"grpc-message", quote(refusal.text, safe=_SAFE).encode()),
    ]
    for name, value in refusal.trailers:
        told = base64.b64encode(value).rstrip(b"=") if isinstance(value, bytes) else value.encode()
        found.append((name.encode(), told))
    return found


def _seconds(timeout: str) -> float | None:
    """The time that `grpc-timeout` leaves, None for no end. Raises InvalidParamsError."""
    if not timeout:
        return None
    found = _TIMEOUT.fullmatch(timeout)
    if found is None:
        wrong = "must be at most eight digits and one of H, M, S, m, u, n"
        raise InvalidParamsError(violations=[("grpc-timeout", wrong)])
    return int(found[1]) * _UNITS[found[2]]
