"""Hints by NATS: for many replicas with many streams.

Laws: one core subject, no persistence: a hint that nobody hears is worth nothing a moment later.
"""

import logging
import re
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urlsplit

import nats
import nats.errors

from a2a_grpc.config import OptionError
from a2a_grpc.python310_asyncio import timeout

log: Final = logging.getLogger("a2a_grpc")

SUBJECT: Final = "a2a.hints"
"""What is spoken on, with a dot and the name in the address behind it, if there is one. Shared by all who name the
same: hints of tasks that a replica does not know mean nothing to it, but it has to read them."""
_NAME: Final = re.compile(r"[\w-]+(\.[\w-]+)*", re.ASCII)
_PATIENCE = 5.0  # seconds for the first connection


class NatsCarrier:
    """A Carrier over the NATS server at `url`, such as `nats://host:4222`, or `nats://host:4222/shop` beside others who
    use that server; several servers with commas in between, the name behind the last. Raises OptionError for a name
    that is none."""

    def __init__(self, url: str) -> None:
        places = [urlsplit(place) for place in url.split(",")]
        name = places[-1].path.strip("/")
        if name and not _NAME.fullmatch(name):
            raise OptionError(f"bus: {name!r} must be words of letters, digits, - and _ with dots in between")
        self._urls = [place._replace(path="").geturl() for place in places]
        self._subject = f"{SUBJECT}.{name}" if name else SUBJECT
        self._client: Any = None

    async def open(self, receive: Callable[[bytes], None]) -> None:
        """Connect and subscribe; raises ConnectionError."""

        async def heard(message: Any) -> None:
            receive(message.data)

        try:
            async with timeout(_PATIENCE):
                self._client = await nats.connect(
                    self._urls, name="a2a-grpc", max_reconnect_attempts=-1, reconnect_time_wait=0.25, error_cb=_told
                )
                await self._client.subscribe(self._subject, cb=heard)
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
        await self._client.publish(self._subject, message)


async def _told(fault: Exception) -> None:
    log.debug("NATS: %r", fault)
