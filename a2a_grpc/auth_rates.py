"""How much one caller may ask for: calls a second, of each operation or of all, and calls at a time.

Laws: it counts and refuses, and knows neither wire nor credential, nor an operation but by the name it is given; memory
is bounded.
"""

import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Iterable
from contextlib import asynccontextmanager
from typing import Final

from google.protobuf.message import Message

from a2a_grpc.call import V1, Call, Interceptor
from a2a_grpc.config import OptionError, Options
from a2a_grpc.errors import ResourceExhaustedError
from a2a_grpc.methods import METHODS

KEPT: Final = 100_000
"""Callers that are counted at a time; beyond them the one that called longest ago is forgotten."""


class Rates:
    """A bucket for each caller, which holds `burst` calls and fills at `rate` calls a second (SEC-04).

    clock: seconds that never go back; default time.monotonic.
    """

    def __init__(self, rate: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, subject: str, cost: int = 1) -> None:
        """Count one call. cost: what it takes; with 0 it is only seen whether there is room for one. Raises
        ResourceExhaustedError, with the time of waiting, when the bucket is empty."""
        now = self._clock()
        level, since = self._buckets.pop(subject, (float(self._burst), now))
        level = min(self._burst, level + (now - since) * self._rate)
        allowed = level >= 1
        self._buckets[subject] = (level - cost * allowed, now)
        if len(self._buckets) > KEPT:
            del self._buckets[next(iter(self._buckets))]
        if not allowed:
            raise ResourceExhaustedError("Too many calls", retry_after=(1 - level) / self._rate)


_RATE: Final = re.compile(r"([A-Za-z]+)=([0-9]+(?:\.[0-9]+)?)(?:/([0-9]+))?")


class OperationRates:
    """The interceptor that gives each caller a bucket for each of some operations (SEC-04).

    rows: texts `NAME=RATE/BURST`, such as `SendMessage=2/10`: calls a second, and how many at once; BURST may be left
    out and is then the rate, at least 1. Raises OptionError: of another form, no such operation, one twice.
    """

    def __init__(self, rows: Iterable[str]) -> None:
        self._rates: dict[str, Rates] = {}
        for row in rows:
            if not (found := _RATE.fullmatch(row)) or not (rate := float(found[2])):
                raise OptionError(f"operation_rates must be of the form NAME=RATE/BURST, not {row!r}")
            burst = int(found[3]) if found[3] else max(1, int(rate))
            if found[1] not in METHODS[V1] or found[1] in self._rates or not burst:
                known = ", ".join(METHODS[V1])
                raise OptionError(f"operation_rates must name operations of {known} once, with a burst, not {row!r}")
            self._rates[found[1]] = Rates(rate, burst)

    @asynccontextmanager
    async def __call__(self, call: Call, request: Message) -> AsyncIterator[None]:
        """Count the call. Raises ResourceExhaustedError when its bucket is empty."""
        if rates := self._rates.get(call.operation):
            rates.take(call.caller.subject)
        yield


class InHand:
    """The interceptor that lets each caller have `most` calls in hand at a time, open streams among them (SEC-04).
    only: names of the operations that count; default all. what: they are, for the error."""

    def __init__(self, most: int, only: Collection[str] = (), what: str = "calls") -> None:
        self._most, self._only, self._what = most, only, what
        self._calls: Counter[str] = Counter()

    @asynccontextmanager
    async def __call__(self, call: Call, request: Message) -> AsyncIterator[None]:
        """Count the call while it lasts. Raises ResourceExhaustedError when there are too many."""
        if self._only and call.operation not in self._only:
            yield
            return
        subject = call.caller.subject
        if self._calls[subject] >= self._most:
            raise ResourceExhaustedError(f"Too many {self._what} at a time; the limit is {self._most}", retry_after=1)
        self._calls[subject] += 1
        try:
            yield
        finally:
            self._calls[subject] -= 1
            if not self._calls[subject]:
                del self._calls[subject]


def limits(options: Options) -> list[Interceptor]:
    """The interceptors that hold callers to the options; none for those that are off. Raises OptionError."""
    found: list[Interceptor] = []
    if options.operation_rates:
        found.append(OperationRates(options.operation_rates))
    if options.stream_limit:
        streaming = frozenset(name for name, method in METHODS[V1].items() if method.streaming)
        found.append(InHand(options.stream_limit, streaming, "open streams"))
    if options.call_limit:
        found.append(InHand(options.call_limit))
    return found
