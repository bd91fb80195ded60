"""What only the store in memory must do: hold nothing of what is gone, and give no page of before."""

from collections.abc import Callable
from typing import Any

import pytest
from a2a_stubs import v1

from a2a_grpc.tasks.memory import MOST_PAGES, MemoryStore
from a2a_grpc.tasks.store import Change, LeaseTaken, Retention, Scope, Snapshot, TaskPage, TaskQuery
from tests.stores import COMPLETED, WORKING, create, events
from tests.test_sqlite import ANN, NOW, whole


@pytest.mark.requirement("BL-44")
async def test_nothing_is_left_in_memory_of_tasks_that_were_trimmed() -> None:
    store = MemoryStore()
    for index in range(20):
        await store.commit(whole(f"t{index}"))
        if index % 2:
            done = Snapshot(v1.TASK_STATE_COMPLETED, NOW + index, b"head")
            await store.commit(Change(ANN, f"t{index}", 3, NOW, token=1, snapshot=done, release=True))
    assert (await store.tasks(ANN, TaskQuery())).total == 20 and store._order.pages
    assert len(await store.trim(Retention(NOW + 2000, 1, 1, 1))) == 20
    left = (store._tasks, store._held, store._pending, store._dedupe, store._contexts)
    assert not any((*left, store._order.lists, store._order.pages, store._retire.lists))


BOB = Scope(ANN.agent, ANN.tenant, "bob")
QUERIES = [
    TaskQuery(context, state, since, None, limit)
    for context in ("", "c")
    for state in (0, WORKING, COMPLETED)
    for since in (0, NOW + 2)
    for limit in (1, 9)
]


@pytest.mark.requirement("LIST-01", "LIST-02", "LIST-08", "LIST-11", "LIST-12")
@pytest.mark.parametrize("query", QUERIES)
async def test_a_page_that_is_read_again_is_the_same_until_something_of_it_changes(query: TaskQuery) -> None:
    store = MemoryStore()
    changes: list[Callable[[], Any]] = [
        lambda: create(store, "t1", take=LeaseTaken("me", NOW + 1000), snapshot=Snapshot(WORKING, NOW + 1)),
        lambda: create(store, "t2", context_id="d", snapshot=Snapshot(WORKING, NOW + 2)),
        lambda: create(store, "t3", snapshot=Snapshot(COMPLETED, NOW + 2, b"head", b"artifacts", 1)),
        lambda: store.renew("me", NOW + 2000, {"t1": 1}),
        lambda: store.request_cancel(ANN, "t1", b"cancel"),
        lambda: store.commit(Change(ANN, "t1", 1, NOW, token=1, events=events(1, "x"), author_state=b"{}")),
        lambda: store.commit(
            Change(ANN, "t1", 2, NOW, token=1, snapshot=Snapshot(COMPLETED, NOW + 3, b"h"), release=True)
        ),
        lambda: store.commit(Change(ANN, "t2", 1, NOW, snapshot=Snapshot(COMPLETED, NOW + 2, b"more"))),
        lambda: store.trim(Retention(NOW + 4, 1, 1000, 9)),
    ]

    def said(page: TaskPage) -> str:
        return str(([*page.rows], page.total, page.more))

    for change in changes:
        first, again = await store.tasks(ANN, query), await store.tasks(ANN, query)
        told = said(first)
        assert said(again) == told and await store.tasks(BOB, query) == ([], 0, False)
        assert not first.rows or (type(again.rows) is tuple and await store.tasks(ANN, query) is again)
        await change()
        after = await store.tasks(ANN, query)
        store._order.pages.clear()
        assert said(after) == said(await store.tasks(ANN, query)) and said(first) == said(again) == told
        assert type(after.rows) is list or after is again
    assert len(store._tasks) == 1


async def test_so_many_pages_are_kept_and_no_more() -> None:
    store = MemoryStore()
    for number in range(2 * MOST_PAGES):
        await create(store, f"t{number}", context_id=f"c{number}")
        assert (await store.tasks(ANN, TaskQuery(f"c{number}"))).total == 1
        assert len(store._order.pages) <= MOST_PAGES
