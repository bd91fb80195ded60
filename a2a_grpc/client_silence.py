"""How long a stream may carry nothing before its client takes it for dead.

Laws: a stream is silent while its reader waits for it, and not while the reader is busy with what has come. No wire is
known here.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from a2a_grpc.errors import UnavailableError, scrubbed


class Silence:
    """An eye on a stream that has begun: `cut` is called when nothing was heard for so many seconds, None for never.
    One timer serves the whole stream."""

    def __init__(self, seconds: float | None, cut: Callable[[], Any]) -> None:
        self._seconds, self._cut = seconds, cut
        self._loop = asyncio.get_running_loop()
        self._since: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.broken = False

    def heard(self) -> None:
        """Something has come, and the reader is given it."""
        self._since = None
        if self._seconds is not None and self._timer is None:
            self._timer = self._loop.call_later(self._seconds, self._look)

    def awaits(self) -> None:
        """The reader wants more."""
        if self._seconds is not None:
            self._since = self._loop.time()

    def _look(self) -> None:
        assert self._seconds is not None
        self._timer = None
        left = self._seconds if self._since is None else self._since + self._seconds - self._loop.time()
        if left > 0:
            self._timer = self._loop.call_later(left, self._look)
        else:
            self.broken = True
            self._cut()

    def close(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()

    def fault(self, url: str) -> UnavailableError:
        """What to raise when it was too quiet."""
        return UnavailableError(f"the stream from {scrubbed(url)} was silent for {self._seconds:g} seconds")
