"""Between replicas and their database: connections that break while what was said on them is still on its way.

Laws: it knows bytes only. What a replica says after a strike comes to the server, late or not so late; the answer goes
nowhere, and the replica hears of the break before or after.
"""

import asyncio
import random
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

DELAYS = (0.001, 0.005, 0.02, 0.1, 0.4)
"""Seconds by which something is late."""


class Lag:
    """The way to a database. late: how many things came late."""

    def __init__(self, chance: random.Random) -> None:
        self.late = 0
        self._chance = chance
        self._struck: dict[asyncio.StreamWriter, float] = {}
        """For each replica's side of a connection by how much the next thing said there is late; 0: not at all."""

    def strike(self) -> None:
        """Let some connections break with the next thing that is said on them."""
        for writer in self._struck:
            if self._chance.random() < 0.4:
                self._struck[writer] = self._chance.choice(DELAYS)

    async def carry(self, server: str, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        with suppress(OSError):
            back, there = await asyncio.open_connection(server, port)
            self._struck[writer] = 0.0
            ways = [asyncio.create_task(self._forth(reader, there, writer)), asyncio.create_task(_pour(back, writer))]
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait(ways[:1])  # what is late is carried though its answer goes nowhere
            ways[1].cancel()
            there.close()
        self._struck.pop(writer, None)
        writer.transport.abort()

    async def _forth(
        self, reader: asyncio.StreamReader, there: asyncio.StreamWriter, writer: asyncio.StreamWriter
    ) -> None:
        with suppress(OSError):
            while said := await reader.read(65536):
                if delay := self._struck[writer]:
                    self.late += 1
                    heard = self._chance.random() * DELAYS[2]
                    asyncio.get_running_loop().call_later(heard, writer.transport.abort)
                    await asyncio.sleep(delay)
                there.write(said)
                await there.drain()
                if delay:
                    await asyncio.sleep(DELAYS[-1])  # in which the server deals with it
                    return


async def _pour(back: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while said := await back.read(65536):
            writer.write(said)
            await writer.drain()
    writer.transport.abort()


@asynccontextmanager
async def lagging(url: str, chance: random.Random) -> AsyncIterator[tuple[str, Lag]]:
    """An address by which the database at another is reached through a Lag."""
    place, lag = urlsplit(url), Lag(chance)
    listening = await asyncio.start_server(
        lambda reader, writer: lag.carry(str(place.hostname), place.port or 5432, reader, writer), "127.0.0.1", 0
    )
    port = listening.sockets[0].getsockname()[1]
    try:
        yield place._replace(netloc=re.sub(r":\d+$", f":{port}", place.netloc)).geturl(), lag
    finally:
        listening.close()
