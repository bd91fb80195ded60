"""What stands between a client and its agent in the tests: a TCP proxy that can cut, hold back and refuse.

Laws: it knows bytes only; nothing happens but what the test asks for.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from ssl import SSLContext

from a2a_stubs import v1


class Proxy:
    """Carries bytes between whoever connects and a target `host:port`, which may change. patience: seconds after which
    a connection over which nothing comes from the target is cut, None for never; what it is when something has come is
    how long the next may take."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.address = ""
        self.accepted = 0
        self.refuses = False
        self.patience: float | None = None
        self._flows = asyncio.Event()
        self._flows.set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def cut(self) -> None:
        """End every connection at once, without a word."""
        for writer in self._writers:
            writer.transport.abort()

    def freeze(self) -> None:
        """From now on nothing comes through the connections there are."""
        flows, self._flows = self._flows, asyncio.Event()
        flows.clear()
        self._flows.set()

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        self.accepted += 1
        if self.refuses:
            writer.transport.abort()
            return
        host, _, port = self.target.rpartition(":")
        try:
            there = await asyncio.open_connection(host, int(port))
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, there[1]}
        flows = self._flows
        one = asyncio.create_task(self._pour(reader, there[1], flows, lambda: None))
        two = asyncio.create_task(self._pour(there[0], writer, flows, lambda: self.patience))
        self._tasks |= {one, two}

    async def _pour(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        flows: asyncio.Event,
        patience: Callable[[], float | None],
    ) -> None:
        with suppress(OSError, asyncio.TimeoutError, asyncio.CancelledError):
            while chunk := await asyncio.wait_for(reader.read(65536), patience()):
                await flows.wait()
                writer.write(chunk)
                await writer.drain()
        self._writers.discard(writer)
        writer.transport.abort()

    async def close(self) -> None:
        """Let go of everything."""
        self.cut()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@asynccontextmanager
async def proxy(target: str, context: SSLContext | None = None) -> AsyncIterator[Proxy]:
    """A running proxy before `host:port`; context: for TLS up to there."""
    made = Proxy(target)
    server = await asyncio.start_server(made.carry, "127.0.0.1", 0, ssl=context)
    made.address = "{}:{}".format(*server.sockets[0].getsockname())
    try:
        yield made
    finally:
        server.close()
        await made.close()
        await server.wait_closed()


def card_at(binding: str, version: str, address: str, *, numbered: bool = False) -> v1.AgentCard:
    """A card with one interface at `host:port`. numbered: say that events are numbered."""
    url = address if binding == "GRPC" else f"http://{address}/"
    card = v1.AgentCard(name="Behind a proxy", capabilities=v1.AgentCapabilities(streaming=True))
    card.supported_interfaces.add(url=url, protocol_binding=binding, protocol_version=version)
    if numbered:
        card.capabilities.extensions.add(uri="urn:a2a-grpc:extension:resume:v1")
    return card
