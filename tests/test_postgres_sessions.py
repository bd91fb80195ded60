"""A PostgreSQL that begins no sessions for a while: work waits for it."""

from typing import Any
from unittest.mock import AsyncMock

import asyncpg
import pytest

from a2a_grpc.tasks.postgres import PostgresStore
from a2a_grpc.tasks.store import Change, LeaseTaken, StoreError
from tests.stores import ANN, NOW, create, events, postgres_url

REFUSED = asyncpg.InternalServerError("could not write init file")
"""What it says when its disk is full."""


@pytest.fixture
def refusals(monkeypatch: pytest.MonkeyPatch) -> list[Exception]:
    """What the next sessions are refused with."""
    left, acquire = list[Exception](), asyncpg.pool.Pool.acquire

    def begun(self: Any, **given: Any) -> Any:
        return AsyncMock(side_effect=left.pop())() if left else acquire(self, **given)

    monkeypatch.setattr(asyncpg.pool.Pool, "acquire", begun)
    return left


@pytest.mark.requirement("BL-48")
async def test_what_is_to_be_stored_and_read_waits_for_a_server_whose_disk_is_full(refusals: list[Exception]) -> None:
    async with postgres_url() as url:
        store = PostgresStore(url, connections=4)
        await store.open()
        refusals += [REFUSED] * 2
        token = await create(store, take=LeaseTaken("me", NOW + 10**9))
        refusals += [REFUSED] * 2
        await store.commit(Change(ANN, "t", 1, NOW, token=token, events=events(1, "second")))
        refusals += [REFUSED] * 2
        assert len(await store.events(ANN, "t", 0, 10)) == 2 and not refusals
        await store.close()


async def test_a_server_that_begins_no_session_at_the_start_is_told_with_its_words(refusals: list[Exception]) -> None:
    async with postgres_url() as url:
        refusals += [REFUSED] * 100
        with pytest.raises(StoreError, match="begins no session: could not write init file"):
            await PostgresStore(url, connections=4, retry=0.1).open()
