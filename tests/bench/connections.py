"""Connections that write requests made in advance and look only at what frames the answers.

Laws: a client must cost a fraction of what it measures, so nothing is decoded here. Both kinds have `call(request,
done)`, and `done(good, body)` is called once for each. Requests are small (they fit into every window that a server
opens) and servers of HTTP/2 do not pad, which is all that these need to hold for.
"""

import asyncio
import re
import struct
from collections.abc import Callable, Mapping
from typing import Any, Final

Done = Callable[[bool, bytes], None]

_LENGTH: Final = re.compile(rb"content-length: *(\d+)")


def http1(verb: str, host: str, path: str, headers: Mapping[str, str], body: bytes) -> bytes:
    """The bytes of an HTTP/1.1 request."""
    lines = [f"{verb} {path} HTTP/1.1", f"host: {host}", f"content-length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join((*lines, "", "")).encode() + body


class Http1(asyncio.Protocol):
    """A kept-alive connection with one call at a time; a streamed body is handed on with its chunk marks."""

    def __init__(self) -> None:
        self._done: Done | None = None
        self._reset()

    @property
    def answering(self) -> int:
        """How many calls have got the first bytes of their answers and not the last."""
        return int(bool(self._pieces))

    def _reset(self) -> None:
        self._head = self._tail = b""
        self._pieces: list[bytes] = []
        self._left: int | None = None
        self._chunked = self._good = False

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def connection_lost(self, fault: Exception | None) -> None:
        self._finish(False)

    def call(self, request: bytes, done: Done) -> None:
        """Send a request."""
        self._done = done
        self.transport.write(request)

    def data_received(self, data: bytes) -> None:
        if self._left is None:
            self._head += data
            head, found, data = self._head.partition(b"\r\n\r\n")
            if not found:
                return
            length = _LENGTH.search(head.lower())
            self._good, self._chunked, self._left = (
                head[9:12] == b"200",
                length is None,
                int(length[1]) if length else 0,
            )
        self._pieces.append(data)
        if self._chunked:
            self._tail = (self._tail + data[-5:])[-5:]
            over = self._tail == b"0\r\n\r\n"
        else:
            self._left -= len(data)
            over = self._left <= 0
        if over:
            self._finish(self._good)

    def _finish(self, good: bool) -> None:
        done, self._done = self._done, None
        body = b"".join(self._pieces)
        self._reset()
        if done is not None:
            done(good, body)


_DATA, _HEADERS, _RESET, _SETTINGS, _PING, _GOAWAY, _WINDOW = 0, 1, 3, 4, 6, 7, 8
_END_STREAM = _ACK = 1
_END_HEADERS = 4
_MOST = 2**31 - 1


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload) << 8 | kind) + struct.pack(">BI", flags, stream) + payload


def _text(text: str) -> bytes:
    assert len(text) < 127, "longer texts need more than one byte of length"
    return bytes((len(text),)) + text.encode()


def grpc_request(host: str, path: str, metadata: Mapping[str, str], message: bytes) -> tuple[bytes, bytes]:
    """Header block and body of a gRPC call. The headers enter no table, so the block can be sent again and again."""
    headers = {":method": "POST", ":scheme": "http", ":path": path, ":authority": host, "te": "trailers"}
    headers |= {"content-type": "application/grpc", **metadata}
    block = b"".join(b"\0" + _text(name) + _text(value) for name, value in headers.items())
    return block, framed(message)


def framed(message: bytes) -> bytes:
    """A message as gRPC has it in a body."""
    return b"\0" + struct.pack(">I", len(message)) + message


class Http2(asyncio.Protocol):
    """A connection with any number of calls at a time. A call is good if any message came: gRPC errors bring none."""

    def __init__(self) -> None:
        self._calls: dict[int, tuple[Done, list[bytes]]] = {}
        self._rest = b""
        self._next = 1
        self._taken = 0

    @property
    def answering(self) -> int:
        """How many calls have got the first bytes of their answers and not the last."""
        return sum(bool(pieces) for _, pieces in self._calls.values())

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        transport.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        transport.write(_frame(_SETTINGS, 0, 0, struct.pack(">HI", 4, _MOST)))
        transport.write(_frame(_WINDOW, 0, 0, struct.pack(">I", _MOST - 65_535)))

    def connection_lost(self, fault: Exception | None) -> None:
        for number in [*self._calls]:
            self._finish(number, lost=True)

    def call(self, request: tuple[bytes, bytes], done: Done) -> None:
        """Send a request."""
        number, self._next = self._next, self._next + 2
        self._calls[number] = done, []
        head = _frame(_HEADERS, _END_HEADERS, number, request[0])
        self.transport.write(head + _frame(_DATA, _END_STREAM, number, request[1]))

    def data_received(self, data: bytes) -> None:
        data = self._rest + data
        at = 0
        while len(data) - at >= 9:
            word, flags, number = struct.unpack_from(">IBI", data, at)
            start, at = at + 9, at + 9 + (word >> 8)
            if at > len(data):
                at = start - 9
                break
            kind = word & 255
            if kind == _DATA:
                self._taken += at - start
                self._calls[number][1].append(data[start:at])
            elif kind in (_SETTINGS, _PING) and not flags & _ACK:
                self.transport.write(_frame(kind, _ACK, 0, data[start:at] if kind == _PING else b""))
            elif kind in (_RESET, _GOAWAY):
                self.transport.abort()
            if kind in (_DATA, _HEADERS) and flags & _END_STREAM:
                self._finish(number)
        self._rest = data[at:]
        if self._taken > _MOST // 4:
            self.transport.write(_frame(_WINDOW, 0, 0, struct.pack(">I", self._taken)))
            self._taken = 0

    def _finish(self, number: int, lost: bool = False) -> None:
        done, pieces = self._calls.pop(number)
        done(bool(pieces) and not lost, b"".join(pieces))


def grpc_messages(body: bytes) -> list[bytes]:
    """The messages in the body of a gRPC answer."""
    found, at = [], 0
    while at < len(body):
        start = at + 5
        at = start + int.from_bytes(body[at + 1 : start], "big")
        found.append(body[start:at])
    return found
