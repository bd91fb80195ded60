"""Webhooks that are named again, as callers do that send the same config with each message: nothing is lost for it."""

import pytest
from aiohttp import web

from a2a_grpc.tasks.store import NEVER, Change, Report, Store
from tests import stores
from tests.receivers import Got, receiver
from tests.stores import ANN, NOW, config, create, due, events
from tests.test_push import create as put
from tests.test_push import hook, log_of, send, serving

every_store = stores.every_store


@pytest.mark.parametrize("url", ["/one", "/two"])
@pytest.mark.parametrize("inline", [True, False])
@pytest.mark.requirement("PUSH-14", "PUSH-18", "PUSH-20", "PUSH-30")
async def test_a_webhook_that_is_named_again_hears_of_everything(inline: bool, url: str) -> None:
    statuses = iter([503, 503])

    async def answer(_: Got) -> web.Response:
        return web.Response(status=next(statuses, 200))

    async with serving() as server, receiver(answer) as there:
        task = await send(server, "ask", hook(f"{there.url}/one", "mine"))
        again = hook(f"{there.url}{url}", "mine")
        if not inline:
            await there.until(lambda: bool(there.got))  # which has failed
            await put(server, task.id, again)
        await send(server, "parts 1 0", again if inline else None, task_id=task.id)
        log = list(await log_of(server, task.id))
        await there.until(lambda: {got.number for got in there.got} == set(log))
        heard = [got.number for got in there.got]
        assert list(dict.fromkeys(heard)) == log and len(heard) <= len(log) + 2


@pytest.mark.parametrize("body", [b"same", b"other"])
@pytest.mark.requirement("PUSH-14", "PUSH-15", "PUSH-18", "PUSH-30")
async def test_a_config_that_is_put_again_goes_on_from_where_it_is(store: Store, body: bytes) -> None:
    await create(store, push_configs=[config("p", body=b"same"), config("q", body=b"same")], notify=1)
    await store.commit(Change(ANN, "t", 1, NOW, events=events(1, "x"), notify=2))
    for claim in await store.due("me", NOW, NOW + 10, 9):
        await store.delivered(claim, Report(1, 9, NEVER, "status 500", NOW, NOW))
    assert await due(store, NOW + 99) == {}
    anew = [config(name, body=body) for name in "pq"]
    assert await store.put_push_config(ANN, anew[0], 9)
    await store.commit(Change(ANN, "t", 2, NOW, events=events(2, "y"), push_configs=anew[1:], notify=3))
    assert await due(store, NOW + 99) == {"p": (1, 3, 0), "q": (1, 3, 0)}
    assert not await store.backlog(("", ""), 9, True)


@pytest.mark.requirement("PUSH-18", "PUSH-30", "BL-49")
async def test_who_is_sending_as_a_config_says_is_alone_when_it_is_put_again_unchanged(store: Store) -> None:
    await create(store, push_configs=[config("p")], notify=1)
    [claim] = await store.due("one", NOW, NOW + 1000, 9)
    await store.put_push_config(ANN, config("p"), 9)
    assert not await store.due("two", NOW, NOW + 1000, 9)
    await store.delivered(claim, Report(1, 0, 0))
    await store.put_push_config(ANN, config("p"), 9)
    await store.commit(Change(ANN, "t", 1, NOW, events=events(1, "x"), notify=2))
    [claim] = await store.due("one", NOW, NOW + 1000, 9)
    await store.put_push_config(ANN, config("p", body=b"other"), 9)
    [other] = await store.due("two", NOW, NOW + 1000, 9)
    assert (other.config.config, other.cursor) == (b"other", 1)
