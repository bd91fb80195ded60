"""How a webhook is called over HTTP: one POST, and what became of it.

Laws: the address that was judged is the one that is dialed, so no name server can change its mind in between (BL-05).
Redirects are not followed, proxies of the environment not used, cookies not kept. Nothing here knows a task or a store.
No text that leaves here holds a path, a token or credentials (PUSH-23).
"""

import asyncio
import io
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from functools import partial
from ipaddress import ip_address
from typing import Any, Final

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from a2a_grpc.push_guard import Guard
from a2a_grpc.push_hosts import Outcome
from a2a_grpc.tasks.invoke import in_thread

Lookup = Callable[..., list[Any]]
"""As socket.getaddrinfo; called in a thread."""

ANSWER_BYTES: Final = 64 * 1024
"""How much of an answer is read, so that its connection can be used again."""
PIECE: Final = 256 * 1024
"""Bytes of a body from which on it is sent in pieces."""
LONGEST_WAIT: Final = 86_400.0
"""Most seconds that a Retry-After is believed."""
GONE: Final = 410


class AddressRefused(OSError):
    """A name stands for nothing that webhooks may reach; the text says so."""


class Resolver(AbstractResolver):
    """Looks names up and gives only addresses that the guard admits; raises AddressRefused when there are none."""

    def __init__(self, guard: Guard, lookup: Lookup) -> None:
        self._guard = guard
        self._lookup = lookup

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """The addresses of a host (see the class)."""
        found = await in_thread(partial(self._lookup, host, port, family=family, type=socket.SOCK_STREAM), set())
        trusted = self._guard.trusts(host)
        flags = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
        results = [
            ResolveResult(hostname=host, host=place[0], port=port, family=kind, proto=proto, flags=flags)
            for kind, _, proto, _, place in found
            if trusted or self._guard.admits(ip_address(place[0]))
        ]
        if not results:
            raise AddressRefused(f"{host} stands for no address that webhooks may have")
        return results

    async def close(self) -> None:
        """Nothing to do."""


class HttpPoster:
    """Calls webhooks while it is open. guard: which addresses; timeout: seconds that one request may take; lookup: how
    names are looked up, default the system's way."""

    def __init__(self, guard: Guard, timeout: float, lookup: Lookup = socket.getaddrinfo) -> None:
        self._guard = guard
        self._timeout = aiohttp.ClientTimeout(total=timeout)
        self._lookup = lookup
        self._session: aiohttp.ClientSession | None = None

    def open(self) -> None:
        """Make ready; to be called in the event loop."""
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, resolver=Resolver(self._guard, self._lookup)),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": "a2a-grpc"},
            timeout=self._timeout,
            auto_decompress=False,
            trust_env=False,
        )

    async def close(self) -> None:
        """Let all connections go."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> Outcome:
        """Send one request; raises nothing but RuntimeError when it is not open."""
        if self._session is None:
            raise RuntimeError("the poster is not open")
        if why := self._guard.refusal(url):
            return Outcome(False, f"its address {why}")
        data = io.BytesIO(body) if len(body) > PIECE else body  # large ones go in pieces, between which others run
        try:
            async with self._session.post(URL(url), data=data, headers=headers, allow_redirects=False) as answer:
                outcome = _judge(answer.status, answer.headers.get("Retry-After", ""))
                with suppress(aiohttp.ClientError, asyncio.TimeoutError, OSError):
                    await answer.content.read(ANSWER_BYTES)
                return outcome
        except (aiohttp.ClientError, asyncio.TimeoutError, OSError, ValueError) as fault:
            refused = getattr(fault, "os_error", None)
            if isinstance(refused, AddressRefused):
                return Outcome(False, str(refused))
            return Outcome(False, type(fault).__name__, ill=True)


def _judge(status: int, retry_after: str) -> Outcome:
    if 200 <= status < 300:
        return Outcome(status=status)
    ill = status >= 500 or status == 429
    return Outcome(False, f"status {status}", _seconds(retry_after), status == GONE, ill, status)


def _seconds(retry_after: str) -> float:
    """The seconds of a Retry-After, a number or a date; 0 for none that can be read."""
    seconds = 0.0
    with suppress(ValueError):
        if retry_after.isdecimal():
            seconds = float(retry_after)
        elif retry_after:
            seconds = parsedate_to_datetime(retry_after).timestamp() - time.time()
    return min(max(seconds, 0.0), LONGEST_WAIT)
