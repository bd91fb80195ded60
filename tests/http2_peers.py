"""A server of HTTP/2 that says what a test tells it to, right or wrong, frame by frame.

Laws: it knows nothing of A2A; what it says to each call stands in the tests.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, cast

from h2 import events
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.exceptions import ProtocolError
from h2.settings import SettingCodes, Settings

HEAD = ((":status", "200"), ("content-type", "application/grpc"))
GOOD = (("grpc-status", "0"),)


def packed(*messages: bytes, flag: int = 0) -> bytes:
    """Messages as gRPC puts them into a body."""
    return b"".join(bytes([flag]) + len(message).to_bytes(4, "big") + message for message in messages)


class Talk(asyncio.Protocol):
    """One connection. sent: bytes of bodies; left: whether the caller has said good-bye; gone: whether it has left."""

    def __init__(self, peer: "Peer") -> None:
        self.peer = peer
        told = {"validate_outbound_headers": False, "normalize_outbound_headers": False}
        self.h2 = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8", **told))
        self.transport: asyncio.Transport
        self.tasks: set[asyncio.Task[None]] = set()
        self.asked: dict[int, bytearray] = {}
        self.sent = 0
        self.left = False
        self.gone = asyncio.Event()
        self.moved = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.peer.talks.append(self)
        if self.peer.silent:
            return
        self.h2.local_settings = Settings(client=False, initial_values=self.peer.settings)
        self.h2.initiate_connection()
        self.flush()

    def connection_lost(self, fault: Exception | None) -> None:
        self.gone.set()
        for task in self.tasks:
            task.cancel()

    def data_received(self, data: bytes) -> None:
        if self.peer.silent:
            return
        for event in self.h2.receive_data(data):
            self.moved.set()
            if isinstance(event, events.RequestReceived):
                self.peer.seen.append(dict(cast(Any, event.headers)))
                self.asked[event.stream_id] = bytearray()
                if self.peer.early is not None:
                    self.run(self.peer.early, event.stream_id)
            elif isinstance(event, events.DataReceived):
                self.asked[event.stream_id] += event.data
                if self.peer.reads:
                    self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            elif isinstance(event, events.StreamEnded):
                self.peer.bodies.append(bytes(self.asked[event.stream_id]))
                self.run(self.peer.answer, event.stream_id)
            elif isinstance(event, events.StreamReset):
                self.peer.resets.append(int(event.error_code))
            elif isinstance(event, events.ConnectionTerminated):
                self.left = True
            elif isinstance(event, events.PingReceived):
                self.peer.pings += 1
        self.flush()

    def run(self, say: Callable[["Talk", int], Awaitable[None]], stream: int) -> None:
        """Answer a call, beside the others."""

        async def answer() -> None:
            with suppress(ProtocolError):  # the caller has left
                await say(self, stream)
                self.flush()

        task = asyncio.create_task(answer())
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def flush(self) -> None:
        self.transport.write(self.h2.data_to_send())

    # -- what a test says

    def head(self, stream: int, headers: Sequence[tuple[str, str]] = HEAD, end: bool = False) -> None:
        self.h2.send_headers(stream, headers, end_stream=end)
        self.flush()

    def body(self, stream: int, data: bytes, **more: Any) -> None:
        self.sent += len(data)
        self.h2.send_data(stream, data, **more)
        self.flush()

    def tail(self, stream: int, trailers: Sequence[tuple[str, str]] = GOOD) -> None:
        self.h2.send_headers(stream, trailers, end_stream=True)
        self.flush()

    async def stream(self, stream: int, data: bytes) -> None:
        """A body of any size, as fast as the reader lets it."""
        at = 0
        while at < len(data):
            room = min(self.h2.local_flow_control_window(stream), self.h2.max_outbound_frame_size, len(data) - at)
            if room:
                self.body(stream, data[at : at + room])
                at += room
                await asyncio.sleep(0)
            else:
                self.moved.clear()
                await self.moved.wait()

    def goaway(self, last: int, code: int = 0) -> None:
        """Take no calls after `last`, as servers do that stop; h2 would say nothing more after it."""
        self.raw(7, 0, 0, last.to_bytes(4, "big") + code.to_bytes(4, "big"))

    def raw(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        """A frame that no library would write."""
        self.flush()
        self.transport.write(
            len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload
        )


class Peer:
    """All connections. answer: what is said to each call once it is there, early: before; talk: what makes one of them;
    settings: said at the beginning; silent: says nothing more; reads: whether requests are given room. seen, bodies:
    headers and body of each call; resets: codes by which calls were left; pings: how many came."""

    def __init__(
        self, answer: Callable[[Talk, int], Awaitable[None]], settings: dict[SettingCodes, int] | None = None
    ) -> None:
        self.answer, self.settings = answer, settings or {}
        self.silent, self.reads = False, True
        self.talk = Talk
        self.early: Callable[[Talk, int], Awaitable[None]] | None = None
        self.talks: list[Talk] = []
        self.seen: list[dict[str, str]] = []
        self.bodies: list[bytes] = []
        self.resets: list[int] = []
        self.pings = 0
        self.address = ""

    @asynccontextmanager
    async def listening(self, context: ssl.SSLContext | None = None, port: int = 0) -> AsyncIterator[str]:
        """The address, while it listens."""
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: self.talk(self), "127.0.0.1", port, ssl=context)
        self.address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield self.address
        finally:
            server.close()
            for talk in self.talks:
                talk.transport.abort()
