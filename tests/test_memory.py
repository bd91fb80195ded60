"""What only the store in memory must do: hold nothing of what is gone."""

import pytest
from a2a_stubs import v1

from a2a_grpc.tasks.memory import MemoryStore
from a2a_grpc.tasks.store import Change, Retention, Snapshot
from tests.test_sqlite import ANN, NOW, whole


@pytest.mark.requirement("BL-44")
async def test_nothing_is_left_in_memory_of_tasks_that_were_trimmed() -> None:
    store = MemoryStore()
    for index in range(20):
        await store.commit(whole(f"t{index}"))
        if index % 2:
            done = Snapshot(v1.TASK_STATE_COMPLETED, NOW + index, b"head")
            await store.commit(Change(ANN, f"t{index}", 3, NOW, token=1, snapshot=done, release=True))
    assert len(await store.trim(Retention(NOW + 2000, 1, 1, 1))) == 20
    left = (store._tasks, store._held, store._pending, store._dedupe, store._contexts)
    assert not any((*left, store._order.lists, store._retire.lists))
