"""Hints that reach other processes: joined, sent by a carrier, handed to who listens.

Laws: a hint is never sent alone while others wait, and never more often than each few milliseconds, so that a stream of
tokens costs a few messages, whatever its speed. A carrier that fails loses hints, nothing else: readers then find out
by looking at the store. What a carrier is made of is not known here.
"""

import asyncio
import logging
import uuid
from collections.abc import Callable
from typing import Final, Protocol

import orjson

from a2a_grpc.tasks.bus import Listener

log: Final = logging.getLogger("a2a_grpc")

GAP: Final = 0.005
"""Seconds between two messages of a process: what comes in between shares the next one."""
_MOST = 100  # hints in one message: PostgreSQL takes less than 8,000 bytes


class Carrier(Protocol):
    """Takes messages to every process, this one included or not."""

    async def open(self, receive: Callable[[bytes], None]) -> None:
        """Connect and call `receive` with every message from now on; raises ConnectionError when there is no way.
        A connection that breaks later is made again without a word to the caller."""

    async def close(self) -> None:
        """Disconnect."""

    async def send(self, message: bytes) -> None:
        """Send a message of less than 8,000 bytes; raises anything when it is lost."""


class RemoteBus:
    """A Bus over a carrier."""

    def __init__(self, carrier: Carrier) -> None:
        self._carrier = carrier
        self._name = uuid.uuid4().hex
        self._listeners: list[Listener] = []
        self._waiting: dict[tuple[str, bool], int] = {}
        self._sender: asyncio.Task[None] | None = None
        self._open = self._failing = False

    async def open(self) -> None:
        """Connect; raises ConnectionError."""
        await self._carrier.open(self._receive)
        self._open = True

    async def close(self) -> None:
        """Send what waits, then disconnect."""
        self._open = False
        if sender := self._sender:
            await asyncio.wait((sender,), timeout=1.0)
            sender.cancel()
        await self._carrier.close()

    def publish(self, task_id: str, sequence: int) -> None:
        """Tell this process at once, the others in a few milliseconds."""
        for listener in self._listeners:
            listener(task_id, sequence)
        if not self._open:
            return
        # A look at a cancel request is news of its own, which no event number replaces.
        key = task_id, not sequence
        self._waiting[key] = max(sequence, self._waiting.get(key, 0))
        if self._sender is None:
            self._sender = asyncio.create_task(self._send(), name="bus")

    def listen(self, listener: Listener) -> None:
        """Add a listener."""
        self._listeners.append(listener)

    def watch(self, task_id: str) -> None:
        """Nothing to do: the hints of all tasks come to every process."""

    def unwatch(self, task_id: str) -> None:
        """Nothing to do."""

    async def _send(self) -> None:
        try:
            while self._waiting:
                keys = list(self._waiting)[:_MOST]
                hints = [(key[0], self._waiting.pop(key)) for key in keys]
                try:
                    await self._carrier.send(orjson.dumps([self._name, hints]))
                    self._failing = False
                except Exception as fault:
                    if not self._failing:
                        log.warning("hints to other replicas are lost, streams there are slower: %r", fault)
                    self._failing = True
                await asyncio.sleep(GAP)
        finally:
            self._sender = None

    def _receive(self, message: bytes) -> None:
        try:
            name, hints = orjson.loads(message)
            if name != self._name:
                for task_id, sequence in hints:
                    for listener in self._listeners:
                        listener(task_id, sequence)
        except (ValueError, TypeError) as fault:
            log.warning("the bus brought something that is no hint: %r", fault)
