"""The short way of plain HTTP requests: a connection that answers them itself and leaves everything else to aiohttp.

Laws: only what can be read in one way is read here (`_LINE`, `_HEADERS`): HTTP/1.1 with a head that arrives at once,
in visible ASCII, with a host, each header once, a body only with its length, and no word of chunks, upgrades or
expectations. A connection that brings anything else goes to the protocol that `other` gives, for good and with every
byte that was not answered; so do requests that come before the answer to the one before them. Which request means what
is for `Mounts` alone. A connection costs no task while it is quiet, an answer one.
"""

import asyncio
import logging
import re
import socket
import time
from collections.abc import Callable, Mapping
from contextvars import copy_context
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from types import MappingProxyType
from typing import Final, cast

from a2a_grpc.bindings.mounts import Mounts
from a2a_grpc.bindings.streams import Running, Streams
from a2a_grpc.bindings.tls import of_connection
from a2a_grpc.bindings.wire import KEPT_FOR, HttpReply, HttpRequest, HttpStream, Told
from a2a_grpc.config import Options
from a2a_grpc.errors import A2AError, ParseError
from a2a_grpc.python310_asyncio import EAGER, Task, uncancel

LONGEST_HEAD: Final = 8190
"""Bytes of a head that is read here."""

QUIET: Final = 3630.0
"""Seconds after which a quiet connection is closed; longer than proxies keep theirs."""

AHEAD: Final = 65_536
"""Bytes that may come before the answer to the request before them; then nothing is read until that is given."""

LARGE: Final = 65_536
"""Bytes of a body from which on it is written by itself, rather than copied behind its head; and of the rest of one
from which on it is received in one place."""

SHARE: Final = 8
"""What must be there of a body before there is room for all of it: so nobody is given more than eight times the memory
that they have paid for with bytes."""

_LINE: Final = re.compile(rb"(GET|POST|DELETE) (/(?!/)[!\"$-~]*) HTTP/1\.1")
_HEADERS: Final = re.compile(rb"(?:\r\n[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t -~]*)+")
_UNUSUAL: Final = frozenset({"transfer-encoding", "content-encoding", "expect", "upgrade", "trailer"})
_BODILESS: Final = frozenset({204, 304})

_LOG: Final = logging.getLogger("a2a_grpc.http")

_Line = tuple[str, str, str]
"""Verb, path, query."""

_Told = tuple[Mapping[str, str], int, Told]
"""Headers with names in lower case, length of the body, what else they tell. Those behind share them, so nobody may
write to them."""


class PlainHost:
    """What the connections of one port share: `mounts`, `options`, `streams` and `running` of the host; other: makes
    the protocol for what is not plain. origin: under which the host is reached. context: of no request."""

    def __init__(
        self,
        mounts: Mounts,
        options: Options,
        streams: Streams,
        running: Running,
        other: Callable[[], asyncio.BaseProtocol],
    ) -> None:
        self.mounts, self.options, self.streams, self.running, self.other = mounts, options, streams, running, other
        self.origin = ""
        self.context = copy_context()
        self.closing = False
        self.connections: set[PlainConnection] = set()
        self._timer: asyncio.TimerHandle | None = None

    def __call__(self) -> "PlainConnection":
        """A new connection."""
        if self._timer is None:
            self._look()
        return PlainConnection(self)

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        for connection in [*self.connections]:
            connection.rest(now)
        self._timer = loop.call_later(KEPT_FOR, self._look, context=self.context)

    def close(self) -> None:
        """Close what is quiet now, and all others after the answers that they are giving."""
        self.closing = True
        if self._timer is not None:
            self._timer.cancel()
        for connection in [*self.connections]:
            connection.leave()

    def abort(self) -> None:
        """Close every connection, whatever goes on there."""
        for connection in [*self.connections]:
            connection.transport.abort()


class PlainConnection(asyncio.Protocol):
    """See the module."""

    __slots__ = (
        "_ahead",
        "_body",
        "_busy",
        "_drained",
        "_headers",
        "_host",
        "_line",
        "_loop",
        "_missing",
        "_parts",
        "_read",
        "_size",
        "_task",
        "_told",
        "_used",
        "transport",
    )

    def __init__(self, host: PlainHost) -> None:
        self.transport: asyncio.Transport
        self._host = host
        self._loop = asyncio.get_running_loop()
        self._busy = False
        self._task: asyncio.Task[None] | None = None
        self._parts: list[bytes | bytearray] = []
        self._size = self._missing = 0
        self._body: asyncio.Future[None] | None = None
        self._ahead = b""
        # Callers mostly repeat themselves: what the last line and the last headers said is kept, and shared by all
        # requests that have them. They may hold credentials, so they go when none comes for a while.
        self._line = self._headers = b""
        self._read: _Line | None = None
        self._told: _Told | None = None
        self._drained: asyncio.Future[None] | None = None
        self._used = self._loop.time()

    # -- the connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self.transport = cast(asyncio.Transport, transport)  # those of uvloop are none by their class
        self._host.connections.add(self)
        if (own := transport.get_extra_info("socket")) is not None and own.family != getattr(socket, "AF_UNIX", None):
            own.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    def connection_lost(self, fault: Exception | None) -> None:
        """The caller has gone: so goes what it asked for (SSE-06, BL-35)."""
        self._host.connections.discard(self)
        if self._task is not None:
            self._task.cancel()
        _settle(self._drained)

    def leave(self) -> None:
        """Close if nothing is asked here."""
        if not self._busy:
            self.transport.close()

    def rest(self, now: float) -> None:
        """Forget the last request if that was a while ago, and close if it was very long ago. now: time of the loop."""
        quiet = now - self._used
        if quiet >= KEPT_FOR:
            self._line = self._headers = b""
            self._read = self._told = None
            if quiet >= QUIET:
                self.leave()

    def pause_writing(self) -> None:
        """The reader falls behind."""
        self._drained = self._loop.create_future()

    def resume_writing(self) -> None:
        """The reader has caught up."""
        _settle(self._drained)
        self._drained = None

    def data_received(self, data: bytes) -> None:
        """Take a request, or more of one."""
        asked: HttpRequest | None = None
        if not self._busy:
            end = data.find(b"\r\n\r\n", 0, LONGEST_HEAD)
            at = data.find(b"\r\n", 0, end) if end > 0 else -1
            if at < 0:
                self._hand_over(data)
                return
            if (line := data[:at]) != self._line:
                self._line, self._read = line, _read_line(line)
            if (lines := data[at:end]) != self._headers:
                self._headers, self._told = lines, _read_headers(lines)
            read, told = self._read, self._told
            if read is None or told is None or told[1] > self._host.options.max_request_bytes:
                self._hand_over(data)
                return
            headers, self._size, facts = told
            self._missing = self._size
            asked = HttpRequest(*read, headers, facts=facts)
            self._busy = True
            data = data[end + 4 :]
        if self._missing >= len(data) > 0:
            self._parts.append(data)
            self._missing -= len(data)
            if not self._missing:
                _settle(self._body)
            elif LARGE < self._missing < (self._size - self._missing) * SHARE:
                self.transport.set_protocol(_Room(self, self._room()))
        elif data:
            self._parts.append(data[: self._missing])
            self._ahead += data[self._missing :]
            self._missing = 0
            _settle(self._body)
            if len(self._ahead) > AHEAD:
                self.transport.pause_reading()
        if asked is not None:
            # It is begun here, and mostly answered: without a turn of the loop, and without a place among the tasks of
            # asyncio, which costs more than the task itself.
            task = Task(self._serve(asked, asked.path), loop=self._loop, **EAGER)
            if not task.done():
                self._task = task

    def _room(self) -> memoryview:
        """Have one place for the body, with what there is of it; where the rest of it belongs."""
        come = b"".join(self._parts)
        whole = bytearray(self._size)
        whole[: len(come)] = come
        self._parts = [whole]
        return memoryview(whole)[len(come) :]

    def received(self, count: int) -> None:
        """Learn that so many more bytes of the body are in their place."""
        self._missing -= count
        if not self._missing:
            self.transport.set_protocol(self)
            _settle(self._body)

    def _hand_over(self, data: bytes) -> None:
        """Let the other protocol go on, from these bytes."""
        host, transport, other = self._host, self.transport, self._host.other()
        host.connections.discard(self)
        transport.set_protocol(other)
        other.connection_made(transport)
        if self._drained is not None:
            other.pause_writing()
        other.data_received(data)  # type: ignore[attr-defined]

    # -- one request

    async def _serve(self, asked: HttpRequest, path: str) -> None:
        host = self._host
        host.running.enter()
        whole = True
        try:
            if host.options.tls_client_ca:
                asked.certificate = of_connection(self.transport.get_extra_info("peercert"))
            if host.options.failure_rate:
                asked.peer = str((self.transport.get_extra_info("peername") or ("",))[0])
            if self._missing:
                answer, refuse = await host.mounts.answer(asked, host.origin, self._rest)
            else:
                asked.body = self._whole()
                answer, refuse = await host.mounts.answer(asked, host.origin)
            if isinstance(answer, HttpStream):
                try:
                    whole = await self._stream(answer, path)
                    return
                except A2AError as error:
                    answer = refuse(asked, error)
            self._write(answer)
        except Exception as fault:
            whole = False
            _LOG.exception("a request could not be answered", exc_info=fault)
        except BaseException:
            whole = False
            raise
        finally:
            host.running.leave()
            self._next(whole)

    def _next(self, whole: bool) -> None:
        """Be ready for the next request, unless the last one or its answer was broken off."""
        self._busy, self._task = False, None
        self._parts.clear()
        if not whole or self._missing or self._host.closing:
            self.transport.close()
            return
        self._used = self._loop.time()
        if self._ahead and not self.transport.is_closing():
            # What the last request has put into its context is not for those that follow.
            self._host.context.copy().run(self._go_on)

    def _go_on(self) -> None:
        if len(self._ahead) > AHEAD:
            self.transport.resume_reading()
        ahead, self._ahead = self._ahead, b""
        self._hand_over(ahead)

    async def _rest(self) -> bytes | bytearray:
        """The body. Raises ParseError when its rest stays away for `stall_timeout` seconds."""
        before = -1
        while self._missing:
            if before == self._missing:
                raise ParseError("The rest of the body did not come")
            before = self._missing
            self._body = self._loop.create_future()
            await asyncio.wait((self._body,), timeout=self._host.options.stall_timeout)
        return self._whole()

    def _whole(self) -> bytes | bytearray:
        return self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)

    def _write(self, answer: HttpReply) -> None:
        body, headers = answer.body, answer.headers
        told = answer.status in _BODILESS or "content-length" in headers
        size = b"" if told else b"content-length: %d\r\n" % len(body)
        last = b"connection: close\r\n" if self._missing or self._host.closing else b""
        head = _head_lines(answer.status, tuple(headers.items())), size, last, _date(), b"\r\n"
        if len(body) < LARGE:
            self.transport.write(b"".join((*head, body)))
        else:
            self.transport.write(b"".join(head))
            self.transport.write(body)

    async def _stream(self, answer: HttpStream, path: str) -> bool:
        """Write a stream; whether that went to its end. Raises ResourceExhaustedError, with nothing written, when too
        many are open."""
        host, transport = self._host, self.transport
        try:
            with host.streams.open(path, host.options.stall_timeout, transport.is_closing) as stream:
                try:
                    head = _head_lines(answer.status, tuple(answer.headers.items()))
                    head += b"transfer-encoding: chunked\r\n%b\r\n" % _date()
                    async for chunk in answer.chunks:
                        transport.write(b"%b%x\r\n%b\r\n" % (head, len(chunk), chunk))
                        head = b""
                        if self._drained is not None:
                            await stream.write(self._drained)
                    transport.write(head + b"0\r\n\r\n")
                    return True
                except asyncio.CancelledError:
                    if stream.error is None:
                        raise
                    _uncancel()
                    transport.abort()
                    return False
        finally:
            await answer.chunks.aclose()


class _Room(asyncio.BufferedProtocol):
    """A connection while the rest of a large body comes, which the loop writes to where it stays."""

    __slots__ = ("_connection", "_rest")

    def __init__(self, connection: PlainConnection, rest: memoryview) -> None:
        self._connection = connection
        self._rest = rest

    def get_buffer(self, sizehint: int) -> memoryview:
        """Room for what comes next, and for nothing after the body."""
        return self._rest

    def buffer_updated(self, nbytes: int) -> None:
        """So much has come."""
        self._rest = self._rest[nbytes:]
        self._connection.received(nbytes)

    def connection_lost(self, exc: Exception | None) -> None:
        """The caller has gone."""
        self._connection.connection_lost(exc)

    def pause_writing(self) -> None:
        """The reader falls behind."""
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        """The reader has caught up."""
        self._connection.resume_writing()


def _uncancel() -> None:
    task = asyncio.current_task()
    assert task is not None
    uncancel(task)


def _settle(waiter: "asyncio.Future[None] | None") -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)


def _read_line(line: bytes) -> _Line | None:
    """What a request line says; None if it is not a plain one."""
    found = _LINE.fullmatch(line)
    if found is None:
        return None
    path, _, query = found[2].decode().partition("?")
    return found[1].decode(), path, query


def _read_headers(lines: bytes) -> _Told | None:
    """What the headers say, each after a line break; None if they are not plain ones."""
    if _HEADERS.fullmatch(lines) is None:
        return None
    headers: dict[str, str] = {}
    for line in lines.decode().split("\r\n")[1:]:
        name, _, value = line.partition(":")
        name = name.lower()
        if name in headers or name in _UNUSUAL:
            return None
        headers[name] = value.strip()
    length = headers.get("content-length", "0")
    if (
        "host" not in headers
        or not length.isdigit()
        or len(length) > 15
        or headers.get("connection", "keep-alive").lower() != "keep-alive"
    ):
        return None
    return MappingProxyType(headers), int(length), Told.by(headers)


@lru_cache(maxsize=64)
def _head_lines(status: int, headers: tuple[tuple[str, str], ...]) -> bytes:
    """Status line and headers. Raises ValueError for a header that would be more than one."""
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", *(f"{name}: {value}" for name, value in headers)]
    if any("\r" in line or "\n" in line for line in lines):
        raise ValueError("a header holds a line break")
    return "".join(f"{line}\r\n" for line in lines).encode()


def _date() -> bytes:
    return _date_of(int(time.time()))


@lru_cache(maxsize=1)
def _date_of(second: int) -> bytes:
    return f"date: {formatdate(second, usegmt=True)}\r\n".encode()
