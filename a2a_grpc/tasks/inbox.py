"""Messages for a function that is at work.

Laws: they come in order, each to one reader, and all that came before the end are read after it. Whether a message is
taken at all is the turn's affair.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator

from a2a_stubs import v1


class Inbox:
    """Messages that arrive while the function works; an async iterator that ends with the turn."""

    def __init__(self) -> None:
        self._messages: deque[v1.Message] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._closed = False

    def put(self, message: v1.Message) -> None:
        """Add a message."""
        self._messages.append(message)
        self._wake()

    def close(self) -> None:
        """End the iteration once the messages are read."""
        self._closed = True
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def __aiter__(self) -> AsyncIterator[v1.Message]:
        return self

    async def __anext__(self) -> v1.Message:
        while not self._messages:
            if self._closed:
                raise StopAsyncIteration
            if self._waiter is None or self._waiter.done():
                self._waiter = asyncio.get_running_loop().create_future()
            await asyncio.wait((self._waiter,))  # shared by all who wait, so that none can cancel it for the others
        return self._messages.popleft()
