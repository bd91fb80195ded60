"""What the delivery of push notifications needs of the world: who calls, and which hosts to leave alone for a while.

Laws: no I/O; one event loop. Hosts are known by name and port only.
"""

import asyncio
import random
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

TRIP: Final = 5
"""Failures in a row after which a host is left alone, at first for a second, at most for `LONGEST_REST`."""
LONGEST_REST: Final = 60.0
LINGER: Final = 0.25
"""Seconds that a delivery waits for others to the same host, before it comes back later."""
REMEMBERED: Final = 10_000
"""Hosts at most whose failures are remembered while nothing goes to them."""


class Outcome(NamedTuple):
    """What became of a request. delivered: it was answered with 2xx (PUSH-24). said: else what happened, for the log.
    wait: seconds for which the receiver wants to be left alone. gone: it wants nothing more. ill: the host is to blame,
    not this one request. status: of the answer, 0 for none."""

    delivered: bool = True
    said: str = ""
    wait: float = 0.0
    gone: bool = False
    ill: bool = False
    status: int = 0


class Poster(Protocol):
    """Calls webhooks while it is open; may be opened again."""

    def open(self) -> None:
        """Make ready; called in the event loop."""

    async def close(self) -> None:
        """Let all connections go."""

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> Outcome:
        """Send one request; what goes wrong is told by the outcome."""


@dataclass(slots=True)
class _Host:
    busy: int = 0
    failures: int = 0
    rests_until: float = 0.0
    waiting: deque[asyncio.Future[None]] = field(default_factory=deque)


class Hosts:
    """Keeps one host from holding up the others: at most `share` deliveries at a time go to it, and after `TRIP`
    failures in a row none until it had a rest, and then one to try (PUSH-19)."""

    def __init__(self, share: int) -> None:
        self._share = share
        self._hosts: dict[str, _Host] = {}

    def resting(self) -> dict[str, float]:
        """The hosts that are left alone now, and for how many seconds more."""
        now = time.monotonic()
        return {name: host.rests_until - now for name, host in self._hosts.items() if host.rests_until > now}

    def ill(self, name: str) -> bool:
        """Whether a host has failed so often that deliveries to it are left to a single one now and then."""
        return name in self._hosts and self._hosts[name].failures >= TRIP

    async def enter(self, name: str) -> float:
        """0 if a delivery to a host may begin, which then is to `leave`; else the seconds to come back after."""
        give_up = time.monotonic() + LINGER
        while True:
            host = self._hosts.setdefault(name, _Host())
            now, tripped = time.monotonic(), host.failures >= TRIP
            if tripped and now < host.rests_until:
                return host.rests_until - now + random.random()
            if host.busy < (1 if tripped else self._share):
                host.busy += 1
                return 0.0
            if now >= give_up:
                return 1 + 2 * random.random()
            waiter = asyncio.get_running_loop().create_future()
            host.waiting.append(waiter)
            try:
                await asyncio.wait((waiter,), timeout=give_up - now)
            finally:
                if not waiter.done():
                    host.waiting.remove(waiter)

    def leave(self, name: str, ill: bool | None) -> None:
        """A delivery is over; ill: it failed by the host's fault; None: it was broken off, which says nothing."""
        host = self._hosts[name]
        host.busy -= 1
        if ill is not None:
            host.failures = host.failures + 1 if ill else 0
        if ill and host.failures >= TRIP:
            host.rests_until = time.monotonic() + min(LONGEST_REST, 2.0 ** min(host.failures - TRIP, 10))
        if host.waiting:
            host.waiting.popleft().set_result(None)
        elif not (host.busy or host.failures):
            del self._hosts[name]
        if len(self._hosts) > REMEMBERED:
            idle = (name for name, host in self._hosts.items() if not (host.busy or host.waiting))
            self._hosts.pop(next(idle, ""), None)
