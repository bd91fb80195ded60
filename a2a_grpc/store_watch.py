"""An eye on a store that is somewhere else: whether it can be reached, for who asks whether a server takes new work.

Laws: what is looked at costs the store next to nothing, and is no task of anybody. One look that fails says nothing:
who is away for a moment is waited for by the work itself. Whatever goes wrong with one look, the next is taken.
"""

import asyncio
import logging
from contextlib import suppress
from typing import Final

from a2a_grpc.python310_asyncio import cancelling, timeout
from a2a_grpc.tasks.store import Store

log: Final = logging.getLogger("a2a_grpc")

LOOK_SECONDS: Final = 2.0
"""Time between two looks."""

PATIENCE_SECONDS: Final = 3.0
"""The longest that one look may take."""

AWAY_SECONDS: Final = 6.0
"""How long no look may have succeeded before one more that fails says that the store is away: never the first that
fails, as this process itself may have stood still for as long."""


class StoreWatch:
    """Looks at an open store from `open` to `close`. Stores of this process alone need none: they are where it is."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._watcher: asyncio.Task[None] | None = None
        self._seen = 0.0
        self.away = False
        """Whether the store has not been reached for longer than `AWAY_SECONDS`."""

    def open(self) -> None:
        """Begin to look; the store was there just now."""
        self._seen, self.away = asyncio.get_running_loop().time(), False
        self._watcher = asyncio.create_task(self._watch())

    async def close(self) -> None:
        """Look no more."""
        watcher, self._watcher = self._watcher, None
        if watcher is not None:
            watcher.cancel()
            with suppress(asyncio.CancelledError):
                await watcher

    async def _watch(self) -> None:
        fault: BaseException | None = None
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            before, fault, now = fault, await self._look(), asyncio.get_running_loop().time()
            if fault is None:
                if self.away:
                    log.warning("the store can be reached again")
                self._seen, self.away = now, False
            elif before is not None and not self.away and now - self._seen > AWAY_SECONDS:
                self.away, why = True, str(fault) or type(fault).__name__
                log.error("the store cannot be reached, new work is not welcome: %s", why)

    async def _look(self) -> BaseException | None:
        """Ask for what nobody has; why there was no answer."""
        looking = asyncio.current_task()
        asked = cancelling(looking) if looking else 0
        try:
            async with timeout(PATIENCE_SECONDS):
                await self._store.places(("",))
        except asyncio.CancelledError as fault:
            if looking is None or cancelling(looking) > asked:
                raise
            return fault
        except Exception as fault:
            return fault
        return None
