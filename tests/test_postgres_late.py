"""What a store sent on a connection that then broke may come to PostgreSQL after it has begun again: it counts once.

Laws: what is held back comes in the worst moment, when the store has looked at what there is and is about to write.
"""

import asyncio
from typing import Any

import pytest

from a2a_grpc.tasks.store import Change, Conflict, Dedupe
from tests.stores import ANN, NOW
from tests.test_postgres import Relay, opened, url
from tests.test_sqlite import chunk, whole

__all__ = ["url"]


class Late(Relay):
    """The first piece from the store that holds `text` is held back while every other connection is cut, and comes to
    the server when the store begins its next transaction; which goes on when the server has dealt with it (`over`)."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.begun, self.over = asyncio.Event(), asyncio.Event()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await super()._relay(reader, writer)
        if self.begun.is_set():
            self.over.set()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, watched: bool) -> None:
        while piece := await reader.read(1 << 16):
            if watched and self.text and self.text in piece:
                self.text, self.cuts = b"", 1
                for other in self._writers - {writer}:
                    other.transport.abort()
                await self.begun.wait()
            elif watched and self.cuts and not self.begun.is_set() and b"BEGIN" in piece:
                self.begun.set()
                await self.over.wait()
            writer.write(piece)
            await writer.drain()
        raise ConnectionAbortedError


@pytest.mark.requirement("BL-48")
@pytest.mark.parametrize(("text", "light"), [(b"COMMIT", False), (b"chunk two", True)])
async def test_a_change_that_comes_late_is_written_once_and_is_no_conflict(url: str, text: bytes, light: bool) -> None:
    relay = Late(url)
    async with relay.listening() as place, opened(place) as [store]:
        assert await store.commit(whole("t")) == 1
        await store.commit(Change(ANN, "t", 3, NOW, token=1, events=[chunk(4, "chunk one")]))
        await store.commit(Change(ANN, "t", 4, NOW, token=1, events=[chunk(5)], cancel=b""))
        relay.text = text
        change = Change(ANN, "t", 5, NOW, token=1, events=[chunk(6, "chunk two")], cancel=None if light else b"")
        assert await asyncio.wait_for(store.commit(change), 60) == 1
        assert relay.over.is_set()
        assert [event.sequence for event in await store.events(ANN, "t", 0, 99)] == [1, 2, 3, 4, 5, 6]
        with pytest.raises(Conflict):
            await store.commit(change)


@pytest.mark.requirement("BL-48")
async def test_a_direct_reply_that_comes_late_is_kept_once(url: str) -> None:
    relay = Late(url)
    async with relay.listening() as place, opened(place) as [store]:
        relay.text = b"COMMIT"
        reply: Any = store.remember_reply(ANN, "c", [b"said"], {}, Dedupe("m", b"", NOW + 9), NOW)
        await asyncio.wait_for(reply, 60)
        assert relay.over.is_set()
        assert await store.messages(ANN, "c", 99) == [b"said"]
