"""How much one caller may ask for: calls a second, and calls at a time.

Laws: it counts and refuses, and knows neither wire nor operation nor credential; memory is bounded.
"""

import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

from google.protobuf.message import Message

from a2a_grpc.call import Call
from a2a_grpc.errors import ResourceExhaustedError

KEPT: Final = 100_000
"""Callers that are counted at a time; beyond them the one that called longest ago is forgotten."""


class Rates:
    """A bucket for each caller, which holds `burst` calls and fills at `rate` calls a second (SEC-04).

    clock: seconds that never go back; default time.monotonic.
    """

    def __init__(self, rate: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, subject: str) -> None:
        """Count one call. Raises ResourceExhaustedError, with the time of waiting, when the bucket is empty."""
        now = self._clock()
        level, since = self._buckets.pop(subject, (float(self._burst), now))
        level = min(self._burst, level + (now - since) * self._rate)
        allowed = level >= 1
        self._buckets[subject] = (level - allowed, now)
        if len(self._buckets) > KEPT:
            del self._buckets[next(iter(self._buckets))]
        if not allowed:
            raise ResourceExhaustedError("Too many calls", retry_after=(1 - level) / self._rate)


class InHand:
    """The interceptor that lets each caller have `most` calls in hand at a time, open streams among them (SEC-04)."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._calls: Counter[str] = Counter()

    @asynccontextmanager
    async def __call__(self, call: Call, request: Message) -> AsyncIterator[None]:
        """Count the call while it lasts. Raises ResourceExhaustedError when there are too many."""
        subject = call.caller.subject
        if self._calls[subject] >= self._most:
            raise ResourceExhaustedError("Too many calls at a time", retry_after=1)
        self._calls[subject] += 1
        try:
            yield
        finally:
            self._calls[subject] -= 1
            if not self._calls[subject]:
                del self._calls[subject]
