"""Whether a server takes new work while its store is away: what `/readyz` says, and that it does not flap."""

import asyncio
from typing import Any

import aiohttp
import asyncpg
import pytest

from a2a_grpc import Options, Server, store_watch
from a2a_grpc.store_watch import StoreWatch
from a2a_grpc.tasks.memory import MemoryStore
from a2a_grpc.testing import until
from tests.fronts import HERE, eventually, make_agent
from tests.proxies import proxy
from tests.stores import postgres_url


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """All times are a tenth of what they are."""
    for name in ("LOOK_SECONDS", "PATIENCE_SECONDS", "AWAY_SECONDS"):
        monkeypatch.setattr(store_watch, name, getattr(store_watch, name) / 10)


@pytest.mark.requirement("BL-48")
@pytest.mark.parametrize("silent", [False, True], ids=["refuses", "says nothing"])
async def test_a_replica_that_cannot_reach_its_database_is_not_ready_until_it_can(silent: bool, hurried: None) -> None:
    async with postgres_url() as url, proxy(_place(url)) as way, aiohttp.ClientSession() as http:
        options = Options(store=url.replace(_place(url), way.address), **HERE)
        async with Server(make_agent(), options) as server:

            async def shown(path: str) -> tuple[int, str]:
                async with http.get(server.http_url + path) as reply:
                    return reply.status, await reply.text()

            async def says(status: int, text: str) -> bool:
                return await shown("/readyz") == (status, text)

            assert await shown("/readyz") == (200, "ok\n")
            if silent:
                way.freeze()
            way.refuses = True
            if not silent:
                way.cut()
            await eventually(lambda: says(503, "not ready: the store cannot be reached\n"))
            assert await shown("/healthz") == (200, "ok\n")
            way.refuses = False
            if silent:
                way.cut()
            await eventually(lambda: says(200, "ok\n"))


def _place(url: str) -> str:
    """`host:port` of an address."""
    return url.partition("://")[2].partition("/")[0].rpartition("@")[2]


class Moody(MemoryStore):
    """Gives the answers that it is told to give."""

    def __init__(self, *moods: BaseException | None) -> None:
        super().__init__()
        self.moods = list(moods)

    async def places(self, task_ids: Any) -> Any:
        if (mood := self.moods.pop(0) if self.moods else None) is not None:
            raise mood
        return {}


@pytest.mark.parametrize("away", [0.0, 60.0])
async def test_a_look_that_fails_alone_says_nothing_and_none_ends_the_looking(
    hurried: None, caplog: Any, monkeypatch: pytest.MonkeyPatch, away: float
) -> None:
    """Nor does it if the last one that did not is long ago: it is who looks that stood still."""
    monkeypatch.setattr(store_watch, "AWAY_SECONDS", away)
    alone: list[BaseException | None] = [OSError("gone"), None, asyncio.CancelledError(), None, KeyError("odd"), None]
    store, seen = Moody(*alone, *[OSError("gone"), OSError("gone"), None] * (away > 0)), set()
    watch = StoreWatch(store)
    watch.open()
    async with asyncio.timeout(30):
        while store.moods:
            seen.add(watch.away)
            await asyncio.sleep(0.01)
    assert seen == {False} and not caplog.records
    monkeypatch.setattr(store_watch, "AWAY_SECONDS", 0.0)
    store.moods = [asyncpg.InterfaceError("the connection is closed")] * 50
    await until(lambda: watch.away)
    store.moods.clear()
    await until(lambda: not watch.away)
    await watch.close()
    told = ["the store cannot be reached, new work is not welcome: the connection is closed"]
    assert caplog.messages == [*told, "the store can be reached again"]


async def test_only_stores_that_are_somewhere_else_are_watched() -> None:
    async with postgres_url() as url:
        for store, watched in (("memory:", False), (url, True)):
            assert (Server(make_agent(), Options(store=store, **HERE))._watch is not None) == watched
