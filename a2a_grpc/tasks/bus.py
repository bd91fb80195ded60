"""Wake-up hints between replicas: "task T has reached event n".

Laws: a hint is never the truth, only a reason to look at the store; one that is lost makes things slower, never wrong.
Publishing never waits and never fails.
"""

from collections.abc import Callable
from typing import Protocol

Listener = Callable[[str, int], None]
"""Called in the event loop with a task id and the number of its newest event; 0: look at the task's cancel request."""


class Bus(Protocol):
    """Carries hints. Methods are called in the event loop only."""

    async def open(self) -> None:
        """Connect; raises when the service behind it cannot be reached."""

    async def close(self) -> None:
        """Disconnect."""

    def publish(self, task_id: str, sequence: int) -> None:
        """Tell everybody; returns at once."""

    def listen(self, listener: Listener) -> None:
        """Call `listener` with hints from now on: with all of this process, and those of others for watched tasks."""

    def watch(self, task_id: str) -> None:
        """Take hints of other replicas about a task; calls are counted."""

    def unwatch(self, task_id: str) -> None:
        """Undo one `watch`."""


class LocalBus:
    """Hints within this process only: enough for a store that only one process serves from."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []

    async def open(self) -> None:
        """Nothing to do."""

    async def close(self) -> None:
        """Nothing to do."""

    def publish(self, task_id: str, sequence: int) -> None:
        """Call every listener."""
        for listener in self._listeners:
            listener(task_id, sequence)

    def listen(self, listener: Listener) -> None:
        """Add a listener."""
        self._listeners.append(listener)

    def watch(self, task_id: str) -> None:
        """Nothing to do."""

    def unwatch(self, task_id: str) -> None:
        """Nothing to do."""
