"""The answers to one gRPC call as HTTP/2 brings them: messages in frames, compression, and how a call ends.

Laws: what bytes and headers mean in gRPC is said here, and how a call ends is told as grpcio tells it, by an
`AioRpcError`. What brings them is a `Carrier`, what is in a message is not known. A reader is given all messages that
are there; the room that they took is given back once it asks for more, so that nobody keeps more than `WINDOW` bytes
and one message for it.
"""

import asyncio
import base64
import binascii
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Protocol
from urllib.parse import unquote

import grpc
import grpc.aio

from a2a_grpc.bindings import sse

WINDOW: Final = 262_144
"""Bytes of one stream that may be here, or on their way, before its reader has taken them."""

_HEAD: Final = 5
_NOT_SHOWN: Final = {":status", "content-type", "grpc-status", "grpc-message"}
"""What of trailers is told otherwise."""

_INFLATE: Final = {"gzip": 31, "deflate": 15}
"""Compressions that are read, as zlib numbers them."""

Status = grpc.StatusCode
_STATUS: Final = {code.value[0]: code for code in Status}
_OF_HTTP: Final[Mapping[str, grpc.StatusCode]] = {
    "400": Status.INTERNAL,
    "401": Status.UNAUTHENTICATED,
    "403": Status.PERMISSION_DENIED,
    "404": Status.UNIMPLEMENTED,
    **dict.fromkeys(("429", "502", "503", "504"), Status.UNAVAILABLE),
}
"""What an answer means that is not gRPC's, by its HTTP status; with every other one it is UNKNOWN."""

OF_RESET: Final[Mapping[int, grpc.StatusCode]] = {
    7: Status.UNAVAILABLE,
    8: Status.CANCELLED,
    11: Status.RESOURCE_EXHAUSTED,
    12: Status.PERMISSION_DENIED,
}
"""What a reset stream means, by the number of HTTP/2; with every other one it is INTERNAL."""

Pairs = Sequence[tuple[str, Any]]


class Carrier(Protocol):
    """What brings the answers. takes: whether new calls may go over it."""

    takes: bool

    def give_back(self, reading: "Reading", size: int) -> None:
        """Let so many bytes more come."""

    def leave(self, reading: "Reading") -> None:
        """Bring no more, and tell the server."""


def failure(code: grpc.StatusCode, text: str, trailers: Pairs = ()) -> grpc.aio.AioRpcError:
    """How a call ends, in the words of grpcio."""
    shown = [pair for pair in trailers if pair[0] not in _NOT_SHOWN]
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(*shown), text)


def pair(name: bytes, value: bytes) -> tuple[str, Any]:
    """A header as grpcio gives it."""
    key = name.decode("utf-8", "replace")
    if not key.endswith("-bin"):
        return key, value.decode("utf-8", "replace")
    with suppress(binascii.Error):
        return key, base64.b64decode(value + b"=" * (-len(value) % 4))
    return key, b""


def text(value: str | bytes) -> str:
    """The value of a header as it is sent."""
    return value if isinstance(value, str) else base64.b64encode(value).rstrip(b"=").decode()


def limit(seconds: float) -> str:
    """Seconds as gRPC writes them, in eight digits at most."""
    thousandths = max(1, int(seconds * 1000))
    return f"{thousandths}m" if thousandths < 10**8 else f"{min(int(seconds), 10**8 - 1)}S"


class Reading:
    """The answers to one call, as they come; begun by `Http2.call`.

    unseen: whether the server has said that it will not look at the call.
    """

    __slots__ = ("_buffer", "_connection", "_deadline", "_ended", "_failed", "_first", "_given", "_last", "_loop",
                 "_waiter", "ident", "unseen")  # fmt: skip

    def __init__(self, connection: Carrier, ident: int, seconds: float | None) -> None:
        self._connection, self.ident = connection, ident
        self._loop = asyncio.get_running_loop()
        self._buffer = bytearray()
        self._given = 0
        self._first: dict[str, Any] | None = None
        self._last: Pairs = ()
        self._waiter: asyncio.Future[None] | None = None
        self._ended = self.unseen = False
        self._failed: grpc.aio.AioRpcError | None = None
        self._deadline = None if seconds is None else self._loop.call_later(seconds, self._expire)

    # -- what the connection tells

    def heard(self, data: bytes, size: int) -> None:
        """A piece of the body, and what it takes of the window."""
        self._buffer += data
        self._given += size
        self._wake()

    def headed(self, found: Pairs) -> None:
        """Headers, or trailers."""
        self._last = found
        if self._first is None:
            self._first = dict(found)
            if self._first.get(":status") != "200" and "grpc-status" not in self._first:  # what follows is no gRPC
                self.end()
                self._connection.leave(self)

    def end(self, fault: grpc.aio.AioRpcError | None = None) -> None:
        """Nothing more will come. fault: why, None when the server has said the last word."""
        if not self._ended:
            self._ended, self._failed = True, fault or self._told()
            if self._deadline is not None:
                self._deadline.cancel()
            self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _expire(self) -> None:
        self.end(failure(Status.DEADLINE_EXCEEDED, "Deadline Exceeded"))
        self._connection.leave(self)

    def _told(self) -> grpc.aio.AioRpcError | None:
        """What the last word says."""
        last = dict(self._last)
        number, status = last.get("grpc-status"), (self._first or {}).get(":status", "")
        if number is not None:
            if not (number.isascii() and number.isdigit()):
                return failure(Status.INTERNAL, f"grpc-status is {number[:20]!r}", self._last)
            if number.strip("0"):
                code = _STATUS.get(int(number[:9]), Status.UNKNOWN)
                return failure(code, unquote(last.get("grpc-message", "")), self._last)
            return None
        if status != "200":
            return failure(_OF_HTTP.get(status, Status.UNKNOWN), f"the answer has the HTTP status {status}", self._last)
        return failure(Status.UNKNOWN, "the answer has no status", self._last)

    # -- what the reader does

    async def messages(self) -> list[bytes]:
        """What is there, or what comes next; nothing at the end. Raises AioRpcError."""
        self._give_back(self._given - len(self._buffer))
        while not (self._buffer and (found := self._split())):
            if self._ended:
                if self._failed is not None:
                    raise self._failed
                if self._buffer:
                    raise failure(Status.INTERNAL, "the answer ends within a message")
                return []
            self._give_back(self._given)  # of a message, too, of which there is only a part
            self._waiter = self._loop.create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        return found

    def _give_back(self, size: int) -> None:
        if size >= WINDOW // 2 and not self._ended:
            self._given -= size
            self._connection.give_back(self, size)

    def cut(self) -> None:
        """Have no more to do with this connection, which has died without a word."""
        self.end(failure(Status.CANCELLED, "the stream was cut"))
        self._connection.takes = False
        self._connection.leave(self)

    def close(self) -> None:
        """Read no more."""
        if self._deadline is not None:
            self._deadline.cancel()
        self._buffer.clear()
        self._connection.leave(self)

    def _split(self) -> list[bytes]:
        """The messages that are whole. One that is compressed comes alone, since it may be a thousand times larger."""
        buffer, at, end = self._buffer, 0, len(self._buffer)
        found: list[bytes] = []
        while end - at >= _HEAD:
            size = int.from_bytes(buffer[at + 1 : at + _HEAD], "big")
            if size > sse.LIMIT and not found:
                raise self._too_large(size)
            after = at + _HEAD + size
            packed = buffer[at]
            if after > end or size > sse.LIMIT or (packed and found):
                break
            found.append(bytes(buffer[at + _HEAD : after]))
            at = after
            if packed & 1:
                found = [self._inflated(found[0])]
                break
        del buffer[:at]
        return found

    def _too_large(self, size: int) -> grpc.aio.AioRpcError:
        if not str((self._first or {}).get("content-type", "")).startswith("application/grpc"):
            return failure(Status.UNKNOWN, "the answer is no gRPC")
        text = f"CLIENT: Received message larger than max ({size} vs. {sse.LIMIT})"
        return failure(Status.RESOURCE_EXHAUSTED, text)

    def _inflated(self, data: bytes) -> bytes:
        kind = str((self._first or {}).get("grpc-encoding", "identity"))
        if kind not in _INFLATE:
            raise failure(Status.INTERNAL, f"a message is compressed, but not as {' or '.join(_INFLATE)}")
        try:
            inflater = zlib.decompressobj(_INFLATE[kind])
            found = inflater.decompress(data, sse.LIMIT + 1)
        except zlib.error as wrong:
            raise failure(Status.INTERNAL, f"a message is not {kind}: {wrong}") from None
        if len(found) > sse.LIMIT:
            raise self._too_large(len(found))
        if not inflater.eof or inflater.unused_data:
            raise failure(Status.INTERNAL, f"a message is not all of its {kind}, or more than it")
        return found
