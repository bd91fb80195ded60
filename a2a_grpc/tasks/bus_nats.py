"""Hints by NATS: for many replicas with many streams.

Laws: one core subject, no persistence: a hint that nobody hears is worth nothing a moment later.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final

import nats
import nats.errors

log: Final = logging.getLogger("a2a_grpc")

SUBJECT: Final = "a2a.hints"
"""Shared by all who share a NATS server; hints of tasks that a replica does not know mean nothing to it."""
_PATIENCE = 5.0  # seconds for the first connection


class NatsCarrier:
    """A Carrier over the NATS server at `url`, such as `nats://host:4222`; several with commas in between."""

    def __init__(self, url: str) -> None:
        self._urls = url.split(",")
        self._client: Any = None

    async def open(self, receive: Callable[[bytes], None]) -> None:
        """Connect and subscribe; raises ConnectionError."""

        async def heard(message: Any) -> None:
            receive(message.data)

        try:
            async with asyncio.timeout(_PATIENCE):
                self._client = await nats.connect(
                    self._urls, name="a2a-grpc", max_reconnect_attempts=-1, reconnect_time_wait=0.25, error_cb=_told
                )
                await self._client.subscribe(SUBJECT, cb=heard)
                await self._client.flush()
        except (OSError, nats.errors.Error) as fault:
            raise ConnectionError(f"no hints through NATS: {str(fault) or 'no answer'}") from fault

    async def close(self) -> None:
        """Disconnect."""
        if self._client is not None:
            await self._client.close()

    async def send(self, message: bytes) -> None:
        """Publish; lost when there is no connection."""
        if not self._client.is_connected:
            raise ConnectionError("not connected to NATS")
        await self._client.publish(SUBJECT, message)


async def _told(fault: Exception) -> None:
    log.debug("NATS: %r", fault)
