"""Hints by LISTEN and NOTIFY: for replicas that share a PostgreSQL store and no other service.

Laws: one connection of its own, beside those of the store, both to listen and to tell.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import asyncpg

from a2a_grpc.tasks import schema_postgres as pg
from a2a_grpc.tasks.postgres_link import BROKEN, rows

_PATIENCE = 10.0  # seconds for one statement or one try to connect
_PAUSE = 0.25  # seconds between tries to connect again


class PostgresCarrier:
    """A Carrier over the database at `url`; who shares its schema hears each other."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._receive: Callable[[bytes], None]
        self._connection: Any = None
        self._channel = ""
        self._again: asyncio.Task[None] | None = None
        self._closed = True

    async def open(self, receive: Callable[[bytes], None]) -> None:
        """Connect and listen; raises ConnectionError."""
        self._receive, self._closed = receive, False
        try:
            await self._connect()
        except (*BROKEN, asyncpg.PostgresError, ValueError) as fault:
            raise ConnectionError(f"no hints through PostgreSQL: {fault}") from fault

    async def close(self) -> None:
        """Disconnect."""
        self._closed = True
        if self._again is not None:
            self._again.cancel()
        if self._connection is not None:
            with suppress(*BROKEN):
                await self._connection.close(timeout=1.0)

    async def send(self, message: bytes) -> None:
        """Tell everybody who listens."""
        connection = self._connection
        try:
            await rows(connection, pg.NOTIFY, {"channel": self._channel, "message": message.decode()})
        except BROKEN:
            connection.terminate()  # which tells `_lost`, unless it was told already
            raise

    async def _connect(self) -> None:
        connection = await asyncpg.connect(
            self._url,
            timeout=_PATIENCE,
            command_timeout=_PATIENCE,
            server_settings={"application_name": "a2a-grpc bus"},
        )
        try:
            self._channel = await connection.fetchval(pg.CHANNEL)
            await connection.add_listener(self._channel, self._heard)
            connection.add_termination_listener(self._lost)
        except BaseException:
            connection.terminate()
            raise
        self._connection = connection

    def _heard(self, _connection: Any, _pid: int, _channel: str, message: str) -> None:
        self._receive(message.encode())

    def _lost(self, _: Any) -> None:
        if not self._closed and (self._again is None or self._again.done()):
            self._again = asyncio.create_task(self._reconnect(), name="bus: connect again")

    async def _reconnect(self) -> None:
        while True:
            try:
                return await self._connect()
            except (*BROKEN, asyncpg.PostgresError):
                await asyncio.sleep(_PAUSE)
