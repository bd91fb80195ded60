"""What every store must do, whatever keeps it: the same tests for each."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from a2a_stubs import v1

from a2a_grpc.tasks.memory import MemoryStore
from a2a_grpc.tasks.store import (
    NEVER,
    Backlog,
    Change,
    Conflict,
    Counts,
    Dedupe,
    Delivery,
    LeaseLost,
    LeaseTaken,
    Report,
    Retention,
    Scope,
    Snapshot,
    Store,
    TaskQuery,
    TaskRow,
    TooMany,
)
from tests import stores
from tests.stores import ANN, ASKING, COMPLETED, NOW, STRANGERS, WORKING, config, create, due, events, pages, text

every_store = stores.every_store


# -- commits


@pytest.mark.requirement("OP-GET-01")
async def test_a_task_comes_back_as_it_was_committed(store: Store) -> None:
    token = await create(
        store,
        events=events(0, "a", "b"),
        take=LeaseTaken("me", NOW + 1000, 2),
        snapshot=Snapshot(WORKING, NOW + 5, b"head", b"artifacts", 2),
        author_state=b"{}",
    )
    row = await store.task(ANN, "t")
    assert row is not None and token == row.token == 1
    assert (row.scope, row.context_id, row.state, row.status_ms, row.created_ms) == (ANN, "c", WORKING, NOW + 5, NOW)
    assert (row.sequence, row.folded, row.head, row.artifacts, row.author_state) == (2, 2, b"head", b"artifacts", b"{}")
    assert (row.holder, row.lease_until_ms, row.attempt, row.cancel) == ("me", NOW + 1000, 2, None)
    assert await store.task(ANN, "other") is None


async def test_a_row_in_the_readers_hands_stays_as_it_was_read(store: Store) -> None:
    await create(store, take=LeaseTaken("me", NOW + 1000))
    snapshot = Snapshot(COMPLETED, NOW + 5, b"head", b"", 2)

    async def read() -> list[TaskRow | None]:
        page, lost = await store.tasks(ANN, TaskQuery()), await store.lost("other", NOW, 9)
        return [await store.task(ANN, "t"), *page.rows, *lost]

    changes: list[Callable[[], Any]] = [
        lambda: store.renew("me", NOW + 2000, {"t": 1}),
        lambda: store.request_cancel(ANN, "t", b"cancel"),
        lambda: store.commit(Change(ANN, "t", 1, NOW, token=1, events=events(1, "x"), snapshot=snapshot)),
    ]
    for change in changes:
        rows = await read()
        before = [str(row) for row in rows]
        await change()
        assert [str(row) for row in rows] == before and str((await read())[0]) != before[0]


@pytest.mark.requirement("BL-48")
async def test_a_writer_who_missed_an_event_is_refused_and_writes_nothing(store: Store) -> None:
    await create(store)
    await store.commit(Change(ANN, "t", 1, NOW, events=events(1, "second")))
    late = Change(
        ANN, "t", 1, NOW, events=events(1, "other"), memory={"k": b"1"}, push_configs=[config("p")], author_state=b"x"
    )
    with pytest.raises(Conflict):
        await store.commit(late)
    assert [text(event) for event in await store.events(ANN, "t", 0, 10)] == ["first", "second"]
    assert await store.memory(ANN, "c") == {}
    assert await store.push_configs(ANN, "t", "", 10) == []
    row = await store.task(ANN, "t")
    assert row is not None and row.author_state == b""


async def test_a_task_can_be_made_once_and_continued_only_where_it_is(store: Store) -> None:
    await create(store)
    for scope in (ANN, *STRANGERS):
        with pytest.raises(Conflict):
            await create(store, scope=scope)
    with pytest.raises(Conflict):
        await store.commit(Change(ANN, "missing", 3, NOW, events=events(3, "x")))


async def test_a_change_that_makes_no_sense_is_a_fault_of_the_writer(store: Store) -> None:
    await create(store)
    for change in (
        Change(ANN, "t", 1, NOW, events=events(4, "x")),
        Change(ANN, "new", 0, NOW, events=events(0, "x"), snapshot=Snapshot(WORKING, NOW)),
        Change(ANN, "new", 0, NOW, events=events(0, "x"), context_id="c"),
    ):
        with pytest.raises(ValueError):
            await store.commit(change)
    assert await store.task(ANN, "new") is None
    assert len(await store.events(ANN, "t", 0, 10)) == 1


@pytest.mark.requirement("BL-16")
async def test_a_status_without_a_snapshot_leaves_the_stored_one(store: Store) -> None:
    await create(store, snapshot=Snapshot(WORKING, NOW, b"head", b"artifacts", 1), author_state=b"{}")
    await store.commit(Change(ANN, "t", 1, NOW, events=events(1, "x"), snapshot=Snapshot(ASKING, NOW + 1)))
    row = await store.task(ANN, "t")
    assert row is not None and (row.state, row.status_ms, row.sequence, row.folded) == (ASKING, NOW + 1, 2, 1)
    assert (row.head, row.artifacts, row.author_state) == (b"head", b"artifacts", b"{}")


@pytest.mark.requirement("STREAM-04")
async def test_events_are_read_in_order_from_any_number(store: Store) -> None:
    await create(store, events=events(0, *"abc"))
    await store.commit(Change(ANN, "t", 3, NOW, events=events(3, *"de")))
    for after, limit, expected in ((0, 9, "abcde"), (2, 2, "cd"), (5, 9, ""), (9, 9, "")):
        found = await store.events(ANN, "t", after, limit)
        assert "".join(map(text, found)) == expected
        assert [event.sequence for event in found] == list(range(after + 1, after + 1 + len(expected)))


# -- leases


async def claim(store: Store, holder: str, now: int = NOW, **more: Any) -> int:
    row = await store.task(ANN, "t")
    assert row is not None
    return await store.commit(Change(ANN, "t", row.sequence, now, take=LeaseTaken(holder, now + 1000), **more))


@pytest.mark.requirement("BL-10", "BL-48")
async def test_of_two_claims_at_once_one_wins(store: Store) -> None:
    await create(store, snapshot=Snapshot(ASKING, NOW))
    change = [
        Change(ANN, "t", 1, NOW, events=events(1, who), take=LeaseTaken(who, NOW + 1000)) for who in ("one", "two")
    ]
    results = await asyncio.gather(*map(store.commit, change), return_exceptions=True)
    assert sorted(type(result).__name__ for result in results) == ["Conflict", "int"]
    row = await store.task(ANN, "t")
    assert row is not None and row.token == 1
    assert [text(event) for event in await store.events(ANN, "t", 1, 9)] == [row.holder]


async def test_a_living_lease_keeps_others_out_until_it_ends(store: Store) -> None:
    await create(store, take=LeaseTaken("one", NOW + 1000))
    with pytest.raises(Conflict):
        await claim(store, "two", NOW + 999)
    with pytest.raises(Conflict):
        await store.commit(Change(ANN, "t", 1, NOW, events=events(1, "from outside")))
    assert await claim(store, "two", NOW + 1000) == 2
    with pytest.raises(LeaseLost):
        await store.commit(Change(ANN, "t", 1, NOW, token=1, events=events(1, "late")))
    assert await store.commit(Change(ANN, "t", 1, NOW, token=2, events=events(1, "x"), release=True)) == 2
    row = await store.task(ANN, "t")
    assert row is not None and (row.holder, row.token) == ("", 2)
    assert await claim(store, "three") == 3


@pytest.mark.requirement("BL-09", "OP-CANCEL-08")
async def test_a_broken_lease_fences_its_owner_off(store: Store) -> None:
    await create(store, take=LeaseTaken("one", NOW + 1000))
    over = Change(ANN, "t", 1, NOW, over=True, snapshot=Snapshot(v1.TASK_STATE_CANCELED, NOW), events=events(1, "x"))
    assert await store.commit(over) == 2
    with pytest.raises(LeaseLost):
        await store.commit(Change(ANN, "t", 1, NOW, token=1, snapshot=Snapshot(COMPLETED, NOW)))
    row = await store.task(ANN, "t")
    assert row is not None and (row.state, row.holder) == (v1.TASK_STATE_CANCELED, "")


async def test_recovery_takes_a_living_lease_over(store: Store) -> None:
    await create(store, take=LeaseTaken("one", NOW + 1000))
    assert await claim(store, "two", over=True) == 2
    row = await store.task(ANN, "t")
    assert row is not None and row.holder == "two"


async def test_renewal_lengthens_and_tells_what_is_lost(store: Store) -> None:
    for name in ("kept", "broken", "released"):
        await create(store, name, take=LeaseTaken("me", NOW + 1000))
    await store.commit(Change(ANN, "broken", 1, NOW, over=True, take=LeaseTaken("you", NOW + 1000)))
    await store.commit(Change(ANN, "released", 1, NOW, token=1, release=True))
    lost = await store.renew("me", NOW + 5000, {"kept": 1, "broken": 1, "released": 1, "missing": 1})
    assert lost == {"broken", "released", "missing"}
    row = await store.task(ANN, "kept")
    assert row is not None and row.lease_until_ms == NOW + 5000
    assert not await store.renew("me", NOW + 6000, {"kept": 1})


async def test_where_tasks_are_is_told_of_many_at_once(store: Store) -> None:
    await create(store, "one")
    await create(store, "two", STRANGERS[0], events=events(0, "a", "b"))
    assert await store.places(["one", "none", "two"]) == {"one": (ANN, 1), "two": (STRANGERS[0], 2)}


async def test_cancel_requests_are_told_to_the_holder_until_they_are_met(store: Store) -> None:
    for name, holder in (("mine", "me"), ("left", "me"), ("other", "you")):
        await create(store, name, take=LeaseTaken(holder, NOW + 1000))
        if name != "left":
            assert (await store.request_cancel(ANN, name, b"stop")) is not None
    assert await store.cancels("me") == {"mine": b"stop"}
    await store.commit(Change(ANN, "mine", 1, NOW, token=1, cancel=b""))
    assert await store.cancels("me") == {}


async def test_lost_turns_are_those_without_a_living_owner(store: Store) -> None:
    await create(store, "mine", take=LeaseTaken("me", NOW + 1000))
    await create(store, "theirs", STRANGERS[0], take=LeaseTaken("gone", NOW + 1000))
    await create(store, "over", take=LeaseTaken("me", NOW + 10))
    await create(store, "idle")
    found = {row.task_id: row for row in await store.lost("me", NOW + 10, 10)}
    assert found.keys() == {"over"} | ({"theirs"} if store.exclusive else set())
    assert all(row.sequence == 1 for row in found.values())
    assert len(await store.lost("me", NOW + 5000, 2)) == 2


@pytest.mark.requirement("OP-CANCEL-07")
async def test_a_cancel_request_waits_for_a_running_turn_only(store: Store) -> None:
    await create(store, "t")
    row = await store.request_cancel(ANN, "t", b"stop")
    assert row is not None and row.cancel is None
    await claim(store, "me")
    row = await store.request_cancel(ANN, "t", b"stop")
    assert row is not None and (row.cancel, row.holder) == (b"stop", "me")
    assert await store.request_cancel(ANN, "missing", b"stop") is None


# -- lists


@pytest.mark.requirement("LIST-02", "LIST-03", "LIST-08", "LIST-11", "LIST-12", "LIST-13", "LIST-17")
async def test_lists_page_through_every_task_once_newest_first(store: Store) -> None:
    made = []
    for index in range(60):
        state = (WORKING, COMPLETED, ASKING)[index % 3]
        key = (NOW + index // 7, f"t{index:02}", f"c{index % 2}", state)  # seven tasks share each time
        made.append(key)
        await create(store, key[1], context_id=key[2], snapshot=Snapshot(state, key[0]))
    made.sort(reverse=True)

    def ids(keep: Callable[[int, str, str, int], bool] = lambda *_: True) -> list[str]:
        return [key[1] for key in made if keep(*key)]

    for limit in (1, 7, 20, 60, 100):
        assert await pages(store, limit=limit) == ids()
    for limit in (3, 10):
        assert await pages(store, limit=limit, context_id="c1") == ids(lambda at, task, context, state: context == "c1")
        assert await pages(store, limit=limit, state=ASKING) == ids(lambda at, task, context, state: state == ASKING)
        assert await pages(store, limit=limit, since_ms=NOW + 4) == ids(lambda at, *_: at >= NOW + 4)
        assert await pages(store, limit=limit, since_ms=NOW + 4, context_id="c0", state=COMPLETED) == ids(
            lambda at, task, context, state: at >= NOW + 4 and context == "c0" and state == COMPLETED
        )
    assert await pages(store, context_id="unknown") == []
    assert await pages(store, state=v1.TASK_STATE_REJECTED) == []


@pytest.mark.requirement("LIST-03", "LIST-04")
async def test_pages_neither_repeat_nor_skip_when_tasks_come_and_move_between_them(store: Store) -> None:
    for index in range(10):
        await create(store, f"t{index}", snapshot=Snapshot(WORKING, NOW + index))
    first = await store.tasks(ANN, TaskQuery(limit=4))
    await create(store, "newer", snapshot=Snapshot(WORKING, NOW + 99))
    await store.commit(Change(ANN, "t9", 1, NOW, snapshot=Snapshot(COMPLETED, NOW + 100)))
    last = first.rows[-1]
    rest = await store.tasks(ANN, TaskQuery(limit=100, before=(last.status_ms, last.task_id)))
    assert [row.task_id for row in first.rows] == ["t9", "t8", "t7", "t6"]
    assert [row.task_id for row in rest.rows] == ["t5", "t4", "t3", "t2", "t1", "t0"]
    assert rest.total == 11 and not rest.more
    assert await pages(store, state=COMPLETED) == ["t9"]


@pytest.mark.requirement("LIST-09")
async def test_a_list_without_artifacts_does_not_read_them(store: Store) -> None:
    await create(store, snapshot=Snapshot(COMPLETED, NOW, b"head", b"artifacts", 1))
    for wanted, expected in ((True, b"artifacts"), (False, b"")):
        [row] = (await store.tasks(ANN, TaskQuery(artifacts=wanted))).rows
        assert row.head == b"head" and (row.artifacts == expected or isinstance(store, MemoryStore))
    row = await store.task(ANN, "t")
    assert row is not None and row.artifacts == b"artifacts"


# -- scope


@pytest.mark.parametrize("stranger", STRANGERS)
@pytest.mark.requirement("AUTH-04", "TENANT-05", "LIST-01", "PUSH-09")
async def test_nothing_of_a_task_is_seen_or_changed_from_another_scope(store: Store, stranger: Scope) -> None:
    dedupe = Dedupe("m", b"digest", NOW + 1000, "t")
    await create(store, dedupe=dedupe, push_configs=[config("p")], memory={"k": b"1"}, take=LeaseTaken("me", NOW + 9))
    await store.remember_reply(ANN, "c", [b"hello"], {}, None, NOW)
    assert await store.task(stranger, "t") is None
    assert await store.events(stranger, "t", 0, 10) == []
    assert await store.tasks(stranger, TaskQuery()) == ([], 0, False)
    assert await store.tasks(stranger, TaskQuery(context_id="c")) == ([], 0, False)
    assert await store.request_cancel(stranger, "t", b"stop") is None
    assert await store.seen(stranger, "m", NOW) is None
    assert await store.messages(stranger, "c", 10) == []
    assert await store.memory(stranger, "c") == {}
    assert not await store.put_push_config(stranger, config("p", body=b"evil"), 9)
    assert await store.push_configs(stranger, "t", "", 10) is None
    assert await store.push_config(stranger, "t", "p") is None
    assert not await store.delete_push_config(stranger, "t", "p")
    with pytest.raises(Conflict):
        await store.commit(Change(stranger, "t", 1, NOW, token=1, events=events(1, "evil")))
    await create(store, "u", stranger, dedupe=dedupe._replace(task_id="u"), memory={"k": b"2"})
    assert await store.push_config(ANN, "t", "p") == config("p")
    assert await store.memory(ANN, "c") == {"k": b"1"}
    assert await store.seen(ANN, "m", NOW) == dedupe
    row = await store.task(ANN, "t")
    assert row is not None and (row.cancel, row.sequence) == (None, 1)


# -- conversations


@pytest.mark.requirement("CTX-01")
async def test_a_context_remembers_messages_and_values(store: Store) -> None:
    await store.remember_reply(ANN, "c", [b"1", b"2"], {"a": b"1", "b": b"2"}, None, NOW)
    await store.remember_reply(ANN, "c", [b"3", b"4"], {"a": None, "b": b"3"}, None, NOW)
    await create(store, memory={"c": b"4", "missing": None})
    assert await store.memory(ANN, "c") == {"b": b"3", "c": b"4"}
    assert await store.messages(ANN, "c", 3) == [b"2", b"3", b"4"]
    assert await store.messages(ANN, "c", 100) == [b"1", b"2", b"3", b"4"]
    assert await store.messages(ANN, "d", 3) == [] and await store.memory(ANN, "d") == {}


# -- push notification configs


@pytest.mark.requirement("PUSH-04", "PUSH-05", "PUSH-06", "PUSH-08", "PUSH-30")
async def test_push_configs_are_kept_listed_replaced_and_removed(store: Store) -> None:
    await create(store)
    for name in "cab":
        assert await store.put_push_config(ANN, config(name), 9)
    assert await store.push_configs(ANN, "t", "", 2) == [config("a"), config("b")]
    assert await store.push_configs(ANN, "t", "b", 2) == [config("c")]
    assert await store.push_configs(ANN, "t", "c", 2) == []
    assert await store.push_configs(ANN, "missing", "", 2) is None
    changed = config("b", body=b"https://example.org")
    assert await store.put_push_config(ANN, changed, 9)
    assert await store.push_config(ANN, "t", "b") == changed
    assert await store.push_config(ANN, "t", "z") is None
    assert await store.delete_push_config(ANN, "t", "b") and await store.delete_push_config(ANN, "t", "b")
    assert await store.push_configs(ANN, "t", "", 9) == [config("a"), config("c")]
    assert not await store.put_push_config(ANN, config("a", "missing"), 9)
    assert not await store.delete_push_config(ANN, "missing", "a")


@pytest.mark.requirement("OP-SEND-11", "PUSH-14", "PUSH-18")
async def test_a_config_hears_of_every_event_after_it_was_made(store: Store) -> None:
    await create(store, push_configs=[config("inline")], notify=1)
    assert await store.put_push_config(ANN, config("later"), 9)
    assert await due(store) == {"inline": (0, 1, 0)}
    await store.commit(Change(ANN, "t", 1, NOW, events=events(1, "x")))  # not worth a notification
    await store.commit(Change(ANN, "t", 2, NOW, events=events(2, "y", "z"), push_configs=[config("next")], notify=4))
    assert await due(store) == {"later": (1, 4, 0), "next": (2, 4, 0)}
    assert await due(store) == {}
    assert await due(store, NOW + 1000) == {"inline": (0, 4, 0), "later": (1, 4, 0), "next": (2, 4, 0)}


@pytest.mark.requirement("PUSH-14", "PUSH-15", "PUSH-19")
async def test_a_delivery_is_claimed_reported_and_tried_again(store: Store) -> None:
    await create(store, push_configs=[config("p"), config("q")], notify=1)
    claims = await asyncio.gather(*(store.due(name, NOW, NOW + 1000, 1) for name in ("one", "two")))
    assert sorted(delivery.config.config_id for found in claims for delivery in found) == ["p", "q"]
    [first] = claims[0]
    await store.delivered(first, Report(first.cursor, 3, NOW + 500))
    assert await due(store, NOW + 499) == {}
    assert await due(store, NOW + 500) == {first.config.config_id: (0, 1, 3)}
    await store.delivered(first, Report(1, 0, 0))
    assert first.config.config_id not in await due(store, NOW + 9000)
    await store.commit(Change(ANN, "t", 1, NOW, events=events(1, "x"), notify=2))
    assert (await due(store, NOW + 9001))[first.config.config_id] == (1, 2, 0)


@pytest.mark.requirement("PUSH-07", "PUSH-30")
async def test_a_late_report_disturbs_neither_a_newer_one_nor_a_new_config(store: Store) -> None:
    await create(store, push_configs=[config("p")], notify=1)
    [late] = await store.due("late", NOW, NOW + 10, 1)
    [prompt] = await store.due("prompt", NOW + 10, NOW + 20, 1)
    await store.delivered(prompt, Report(1, 0, 0))
    await store.delivered(late, Report(0, 5, NOW + 99_999))
    await store.commit(Change(ANN, "t", 1, NOW, events=events(1, "x"), notify=2))
    assert await due(store, NOW + 20) == {"p": (1, 2, 0)}
    await store.put_push_config(ANN, config("p", body=b"new"), 9)
    assert await due(store, NOW + 99_999) == {"p": (1, 2, 0)}
    await store.delivered(prompt, Report(9, 0, 0))
    await store.commit(Change(ANN, "t", 2, NOW, events=events(2, "x"), notify=3))
    assert await due(store, NOW + 999_999) == {"p": (1, 3, 0)}
    await store.delete_push_config(ANN, "t", "p")
    await store.delivered(prompt, Report(3, 0, 0))
    await store.commit(Change(ANN, "t", 3, NOW, events=events(3, "x"), notify=4))
    assert await due(store, NOW + 99_999) == {}


async def dead(store: Store, **more: Any) -> dict[str, Backlog]:
    return {found.delivery.config.config_id: found for found in await store.backlog(("", ""), 10, **more)}


@pytest.mark.requirement("PUSH-15", "PUSH-18")
async def test_what_was_given_up_lies_in_the_backlog_until_it_is_taken_up_again(store: Store) -> None:
    await create(
        store, push_configs=[config("p"), config("q")], notify=1, take=LeaseTaken("me", NOW + 1, 1, "00-trace")
    )
    claims = {delivery.config.config_id: delivery for delivery in await store.due("me", NOW, NOW + 9, 10)}
    assert {delivery.trace for delivery in claims.values()} == {"00-trace"}
    await store.delivered(claims["p"], Report(0, 7, NEVER, "status 500", NOW + 1, NOW + 5))
    await store.delivered(claims["q"], Report(0, 2, NOW + 70, "status 503", NOW + 2))
    await store.commit(Change(ANN, "t", 1, NOW, token=1, events=events(1, "x"), notify=2))
    found = await dead(store, given_up=True)
    assert found == {
        "p": Backlog(Delivery(ANN, config("p"), 0, 2, 7, "00-trace", NOW + 1), NEVER, NOW + 5, "status 500")
    }
    behind = await dead(store, given_up=False)
    assert behind["p"] == found["p"]
    assert behind["q"] == Backlog(Delivery(ANN, config("q"), 0, 2, 2, "00-trace", NOW + 2), NOW + 70, 0, "status 503")
    assert [one.delivery.config.config_id for one in await store.backlog(("t", "p"), 10, False)] == ["q"]
    assert len(await store.backlog(("", ""), 1, False)) == 1
    assert await due(store, NOW + 10**12) == {"q": (0, 2, 2)}
    assert await store.revive([config("p", body=b"other"), config("q"), config("z")]) == 0
    assert await store.revive([config("p")]) == 1 and await store.revive([config("p")]) == 0
    assert await dead(store, given_up=True) == {}
    assert await due(store, NOW) == {"p": (0, 2, 0)}


async def test_what_there_is_to_look_after_is_counted(store: Store) -> None:
    assert await store.counts(NOW) == Counts(0, 0, 0, 0)
    lease, configs = LeaseTaken("me", NOW + 100), [config("p"), config("q"), config("r")]
    await create(store, push_configs=configs, notify=1, take=lease)
    await create(store, "u", trace="00-over")
    row = await store.task(ANN, "u")
    assert row is not None and row.trace == "00-over"
    assert await store.counts(NOW) == Counts(3, 0, 1, 0)
    claims = {delivery.config.config_id: delivery for delivery in await store.due("me", NOW, NOW + 9, 10)}
    await store.delivered(claims["p"], Report(1, 0, 0))
    await store.delivered(claims["q"], Report(0, 7, NEVER, "status 500", NOW + 1, NOW + 5))
    assert await store.counts(NOW + 50) == Counts(1, 1, 1, 0)
    assert await store.counts(NOW + 100_000) == Counts(1, 1, 1, 1)


@pytest.mark.requirement("PUSH-07", "PUSH-30", "SEC-08")
async def test_a_webhook_that_was_given_up_goes_with_its_config_and_with_its_task(store: Store) -> None:
    for name in ("t", "u"):
        await create(store, name, push_configs=[config("p", name), config("q", name)], notify=1)
    for delivery in await store.due("me", NOW, NOW + 9, 10):
        await store.delivered(delivery, Report(0, 1, NEVER, "status 410", NOW, NOW))
    await store.put_push_config(ANN, config("p"), 9)
    await store.delete_push_config(ANN, "t", "q")
    assert [one.delivery.config.task_id for one in await store.backlog(("", ""), 9, True)] == ["u", "u"]
    await store.trim(Retention(NOW + 10, terminal_ms=1, stuck_ms=1, count=9))
    assert await store.backlog(("", ""), 9, False) == []


@pytest.mark.requirement("SEC-04", "PUSH-08", "PUSH-30")
async def test_a_task_has_at_most_so_many_configs_also_when_they_come_at_once(store: Store) -> None:
    await create(store)
    made = [store.put_push_config(ANN, config(f"c{number}"), 3) for number in range(8)]
    outcomes = await asyncio.gather(*made, return_exceptions=True)
    assert outcomes.count(True) == 3 and sum(isinstance(one, TooMany) for one in outcomes) == 5
    kept = await store.push_configs(ANN, "t", "", 9)
    assert kept is not None and len(kept) == 3
    assert await store.put_push_config(ANN, kept[0]._replace(config=b"new"), 3)
