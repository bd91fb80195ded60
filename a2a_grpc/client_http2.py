"""gRPC streams of a client over the library h2: all that has come at a turn of the loop, where grpcio hands over one.

Laws: when connections are made, which call goes over which, and which are given up is said here; what goes on within
one is said in client_connection. What is called, and what it means, is not known.
"""

import asyncio
import itertools
import os
import re
import socket
import ssl
from collections.abc import Callable, Iterable
from typing import Any, Final

from aiohappyeyeballs import start_connection

from a2a_grpc import client_auth
from a2a_grpc.client_auth import Tls
from a2a_grpc.client_connection import FIXED, LAST_WORDS, Connection
from a2a_grpc.client_reading import Reading, Status, failure, text
from a2a_grpc.extras import needs
from a2a_grpc.python310_asyncio import timeout, timeout_at

with needs("gateway"):
    from h2.exceptions import ProtocolError

CONNECT_SECONDS: Final = 20.0
"""How long the making of a connection may take, as with grpcio."""

NEXT_ADDRESS: Final = 0.25
"""Seconds after which the next address of a name is tried, too, as with grpcio: the first may be dead."""

PAUSE: Final = 0.25
"""Seconds after a failed attempt to connect in which calls fail at once."""

PROXIES: Final = ("grpc_proxy", "https_proxy", "http_proxy")
"""Variables that make grpcio call by way of somebody else."""

_PLACE: Final = re.compile(r"(?:\[([0-9A-Fa-f:.]+)]|([^\[\]:/,@%]+)):(\d{1,5})")
_OURS: Final = {name for name, _ in FIXED} | {
    *("connection", "host", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"),
}
"""What no caller says: it is said here, or by nobody on HTTP/2."""


def fits(target: str, balance: str) -> bool:
    """Whether an address, as gRPC takes it, is one host and port that needs nothing of grpcio: no list of addresses, no
    choice among them, no proxy."""
    place = _PLACE.fullmatch(target)
    proxied = any(os.environ.get(name) or os.environ.get(name.upper()) for name in PROXIES)
    return place is not None and int(place[3]) < 65536 and balance == client_auth.BALANCES[0] and not proxied


def tls_for(tls: Tls) -> ssl.SSLContext:
    """What makes a connection safe, and as easily pleased as grpcio. Raises OSError, ValueError."""
    made = tls.context()
    made.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", 0)
    made.set_alpn_protocols(["h2"])
    return made


class Http2:
    """The connections to one address, which take turns and are made when they are needed. target: as `fits` likes it.
    tls: makes what protects them, None for none. keepalive: as of Channel. count: of connections."""

    def __init__(
        self, target: str, tls: Callable[[], ssl.SSLContext] | None, keepalive: float = 0.0, count: int = 1
    ) -> None:
        place = _PLACE.fullmatch(target)
        assert place is not None
        self._host, self._port, self._target = place[1] or place[2], int(place[3]), target
        self._tls, self._keepalive = tls, keepalive
        self._turns = itertools.cycle(range(count))
        self._ways: list[asyncio.Task[Connection] | None] = [None] * count
        self._left: set[Connection] = set()
        self._away, self._until = "", 0.0
        self._closed = False

    async def call(
        self, path: str, headers: Iterable[tuple[str, str | bytes]], body: bytes, seconds: float | None
    ) -> Reading:
        """Begin a call with one message. headers: beside those that every call has. seconds: until its deadline, None
        for none. Raises ConnectionError when the server cannot be reached, AioRpcError when it has no room in time, and
        after the end."""
        loop, turn = asyncio.get_running_loop(), next(self._turns)
        until = None if seconds is None else loop.time() + seconds
        sent = [(name, text(value)) for name, value in headers if name not in _OURS]
        in_vain = 0
        while True:
            try:
                async with timeout_at(until):
                    connection = await self._connection(turn)
                    if not await connection.room():
                        if (in_vain := in_vain + 1) > 4:
                            raise ConnectionError("the server takes no calls")
                        continue
                left = None if until is None else max(0.001, until - loop.time())
                reading = connection.begin(path, sent, left)
            except TimeoutError:
                raise failure(Status.DEADLINE_EXCEEDED, "Deadline Exceeded") from None
            except ProtocolError:  # it has no more numbers for streams
                connection.retire()
                continue
            try:
                await connection.send(reading, b"\0" + len(body).to_bytes(4, "big") + body)
            except BaseException:
                reading.close()
                raise
            return reading

    async def close(self) -> None:
        """Let go of all connections, and make no more; calls that they carry end."""
        self._closed = True
        for way in self._ways:
            if way is not None:
                way.cancel()
        self._ways = [None] * len(self._ways)
        if left := [*self._left]:
            for each in left:
                each.close()
            await asyncio.wait([each.lost for each in left], timeout=LAST_WORDS)
            for each in left:
                each.abort()

    async def _connection(self, turn: int) -> Connection:
        """The connection whose turn it is; those who want it together make it together."""
        if self._closed:
            raise failure(Status.UNAVAILABLE, "the connection was closed")
        way = self._ways[turn]
        if way is None or (way.done() and (way.cancelled() or way.exception() or not way.result().takes)):
            if asyncio.get_running_loop().time() < self._until:
                raise ConnectionError(self._away)
            way = self._ways[turn] = asyncio.create_task(self._dial())
            way.add_done_callback(_seen)
        try:
            return await asyncio.shield(way)
        except asyncio.CancelledError:
            if way.cancelled():
                raise ConnectionError("the connection was closed") from None
            raise

    async def _dial(self) -> Connection:
        loop = asyncio.get_running_loop()
        connection = Connection("https" if self._tls else "http", self._target, self._keepalive)
        try:
            async with timeout(CONNECT_SECONDS):
                safe: Any = {}
                if self._tls is not None:
                    safe = {"ssl": await asyncio.to_thread(self._tls), "server_hostname": self._host}
                # Not create_connection itself: that of uvloop tries one address after the other.
                found = await loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
                joined = await start_connection(found, happy_eyeballs_delay=NEXT_ADDRESS, interleave=1)
                joined.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                transport, _ = await loop.create_connection(lambda: connection, sock=joined, **safe)
                self._left.add(connection)
                connection.lost.add_done_callback(lambda _: self._left.discard(connection))
                if safe and transport.get_extra_info("ssl_object").selected_alpn_protocol() != "h2":
                    raise ConnectionError("the server does not offer HTTP/2")
                await connection.settled
        except (OSError, ValueError, asyncio.TimeoutError) as wrong:
            connection.abort()
            self._away = str(wrong) or f"nobody has answered in {CONNECT_SECONDS:g} seconds"
            self._until = loop.time() + PAUSE
            raise ConnectionError(self._away) from wrong
        except BaseException:
            connection.abort()
            raise
        return connection


def _seen(way: "asyncio.Task[Any]") -> None:
    """Nobody may be waiting any more."""
    if not way.cancelled():
        way.exception()
