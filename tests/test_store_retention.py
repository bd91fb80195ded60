"""What every store must let go, and what it may not: the same tests for each."""

import asyncio
from dataclasses import replace

import pytest

from a2a_grpc.tasks.store import Change, Dedupe, LeaseTaken, Retention, Scope, Snapshot, Store, TaskQuery
from tests import stores
from tests.stores import ANN, ASKING, COMPLETED, NOW, STRANGERS, WORKING, config, create, due, events, pages, text

every_store = stores.every_store


def keep(now: int, terminal: int = 10**9, stuck: int = 10**9, count: int = 10**9, batch: int = 500) -> Retention:
    return Retention(now, terminal, stuck, count, batch)


@pytest.mark.requirement("BL-44", "SEC-08")
async def test_old_tasks_go_with_everything_beside_them(store: Store) -> None:
    for name in ("old", "new"):
        at = NOW + (name == "new")
        await create(
            store,
            name,
            now_ms=at,
            snapshot=Snapshot(COMPLETED, at),
            push_configs=[config("p", name)],
            notify=1,
            dedupe=Dedupe(f"m-{name}", b"", NOW + 10**9, name),
        )
    assert await store.trim(keep(NOW + 100, terminal=100)) == []
    assert await store.trim(keep(NOW + 101, terminal=100)) == ["old"]
    assert await store.task(ANN, "old") is None
    assert await store.events(ANN, "old", 0, 9) == []
    assert await store.push_configs(ANN, "old", "", 9) is None
    assert await store.seen(ANN, "m-old", NOW) is None
    assert await store.seen(ANN, "m-new", NOW) is not None
    assert await due(store, NOW + 5000) == {"p": (0, 1, 0)}
    assert await pages(store) == ["new"] == await pages(store, context_id="c") == await pages(store, state=COMPLETED)
    await create(store, "old")


@pytest.mark.requirement("BL-44")
async def test_the_count_is_kept_for_each_owner_and_spares_unfinished_tasks(store: Store) -> None:
    for index in range(8):
        await create(store, f"t{index}", snapshot=Snapshot(COMPLETED if index else ASKING, NOW + index))
    await create(store, "other", STRANGERS[0], snapshot=Snapshot(COMPLETED, NOW))
    assert set(await store.trim(keep(NOW, count=3))) == {"t1", "t2", "t3", "t4"}
    assert await pages(store) == ["t7", "t6", "t5", "t0"]
    assert await store.task(STRANGERS[0], "other") is not None


@pytest.mark.requirement("BL-44")
async def test_unfinished_tasks_go_after_their_own_time_unless_a_turn_runs(store: Store) -> None:
    await create(store, "asking", snapshot=Snapshot(ASKING, NOW))
    await create(store, "running", take=LeaseTaken("me", NOW + 5000))
    await create(store, "lapsed", take=LeaseTaken("me", NOW + 500))
    assert await store.trim(keep(NOW + 1000, terminal=1, stuck=1000)) == []
    assert set(await store.trim(keep(NOW + 1001, terminal=1, stuck=1000))) == {"asking", "lapsed"}
    assert await pages(store) == ["running"]
    assert await store.renew("me", NOW + 9000, {"running": 1}) == set()


@pytest.mark.requirement("BL-44", "BL-51")
async def test_conversations_and_message_ids_go_when_unused(store: Store) -> None:
    for context, at in (("old", NOW), ("used", NOW), ("new", NOW + 50)):
        dedupe = Dedupe(context, b"", at + 1000, reply=b"r")
        await store.remember_reply(ANN, context, [context.encode()], {"k": b"1"}, dedupe, at)
    await create(store, context_id="used", now_ms=NOW + 50, take=LeaseTaken("me", NOW + 60))
    assert await store.trim(keep(NOW + 101, terminal=100)) == []
    assert await store.memory(ANN, "old") == {}
    assert await store.memory(ANN, "used") == await store.memory(ANN, "new") == {"k": b"1"}
    assert [await store.messages(ANN, name, 9) for name in ("old", "used", "new")] == [[], [], [b"new"]]
    assert await store.seen(ANN, "old", NOW) is not None
    await store.trim(keep(NOW + 1000))
    assert [await store.seen(ANN, name, NOW) is None for name in ("old", "used", "new")] == [True, True, False]


@pytest.mark.requirement("BL-44", "SEC-04", "SEC-08", "OP-SEND-14")
async def test_direct_exchanges_take_so_much_of_an_owner_and_of_all_and_the_oldest_go(store: Store) -> None:
    other = STRANGERS[0]
    for number, (scope, context) in enumerate([(ANN, "a"), (other, "a"), (ANN, "b"), (ANN, "a"), (other, "c")]):
        exchange, dedupe = [b"%d" % number * 50, b"%d" % number * 50], Dedupe(context + str(number), b"", NOW * 2)
        dedupe = dedupe._replace(reply=exchange[1])
        await store.remember_reply(scope, context, exchange, {"k": b"1"}, dedupe, NOW + number)

    async def kept(scope: Scope, *contexts: str) -> bytes:
        return b"".join([message[:1] for name in contexts for message in await store.messages(scope, name, 9)])

    await store.trim(replace(keep(NOW), reply_bytes=300, reply_bytes_all=500))
    assert (await kept(ANN, "a", "b"), await kept(other, "a", "c")) == (b"003322", b"1144")
    await store.trim(replace(keep(NOW), reply_bytes=240, reply_bytes_all=500))
    assert (await kept(ANN, "a", "b"), await kept(other, "a", "c")) == (b"3322", b"1144")
    await store.trim(replace(keep(NOW), reply_bytes=240, reply_bytes_all=250))
    assert (await kept(ANN, "a", "b"), await kept(other, "a", "c")) == (b"332", b"44")
    await store.trim(replace(keep(NOW), reply_bytes=0, batch=1))
    assert (await kept(ANN, "a", "b"), await kept(other, "a", "c")) == (b"", b"")
    # What agents note for themselves, and what a repeated message is answered with, is something else.
    assert await store.memory(ANN, "a") == {"k": b"1"}
    for scope, name, reply in ((ANN, "a0", b"0"), (other, "c4", b"4")):
        seen = await store.seen(scope, name, NOW)
        assert seen is not None and seen.reply == reply * 50


@pytest.mark.requirement("BL-44", "SEC-08")
async def test_five_thousand_tasks_are_trimmed_in_batches_to_nothing(store: Store) -> None:
    made = (create(store, f"t{index}", snapshot=Snapshot(COMPLETED, NOW + index)) for index in range(5000))
    await asyncio.gather(*made)
    assert (await store.tasks(ANN, TaskQuery(limit=1))).total == 5000
    gone: list[str] = []
    while found := await store.trim(keep(NOW + 5000, terminal=0, batch=400)):
        assert len(found) <= 400
        gone += found
    assert len(gone) == len(set(gone)) == 5000
    assert await pages(store) == []


@pytest.mark.requirement("BL-15", "BL-16")
async def test_ten_thousand_chunks_come_back_in_order(store: Store) -> None:
    await create(store, take=LeaseTaken("me", NOW + 10**9))
    for start in range(1, 10_001, 500):
        chunks = events(start, *(f"{index:05}" for index in range(start, start + 500)))
        await store.commit(Change(ANN, "t", start, NOW, token=1, events=chunks))
    found, after = [], 1
    while batch := await store.events(ANN, "t", after, 1000):
        found += [text(event) for event in batch]
        after = batch[-1].sequence
    assert found == [f"{index:05}" for index in range(1, 10_001)]
    row = await store.task(ANN, "t")
    assert row is not None and row.sequence == 10_001


@pytest.mark.requirement("BL-44")
async def test_events_that_the_snapshot_speaks_for_can_be_forgotten(store: Store) -> None:
    await create(store)
    await store.commit(Change(ANN, "t", 1, NOW, events=events(1, "a", "b", "c")))
    await store.shorten(ANN, "t", 3)
    assert len(await store.events(ANN, "t", 0, 9)) == 4  # nothing else speaks for them
    await store.commit(Change(ANN, "t", 4, NOW, snapshot=Snapshot(WORKING, NOW, b"", b"", 3)))
    await store.shorten(STRANGERS[0], "t", 3)
    await store.shorten(ANN, "t", 2)
    assert [event.sequence for event in await store.events(ANN, "t", 0, 9)] == [3, 4]
    await store.shorten(ANN, "t", 9)
    await store.commit(Change(ANN, "t", 4, NOW, events=events(4, "d", "e")))
    assert [event.sequence for event in await store.events(ANN, "t", 0, 9)] == [4, 5, 6]
    assert [event.sequence for event in await store.events(ANN, "t", 4, 1)] == [5]
    assert await store.put_push_config(ANN, config("p"), 9)
    await store.commit(Change(ANN, "t", 6, NOW, snapshot=Snapshot(WORKING, NOW, b"", b"", 6)))
    await store.shorten(ANN, "t", 6)
    assert len(await store.events(ANN, "t", 0, 9)) == 3  # a webhook may need them
