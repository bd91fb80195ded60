"""Many short tasks under a small limit: what is kept stays bounded, beside tasks too, and what went is not found."""

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from a2a_stubs import v1

from a2a_grpc.call import GRPC, JSONRPC, REST
from a2a_grpc.client import Client
from a2a_grpc.errors import TaskNotFoundError
from a2a_grpc.server import Server
from a2a_grpc.tasks.memory import MemoryStore
from a2a_grpc.testing import serve
from tests.faults import workers
from tests.faults.processes import PATIENCE, clients, message, numbered, within

ROUNDS, AT_A_TIME, KEPT = 20, 20, 25


def sizes(server: Server, folder: Path) -> dict[str, int]:
    """How many rows each table of the store has."""
    store: Any = server.store
    if isinstance(store, MemoryStore):
        return {
            "tasks": len(store._tasks),
            "events": sum(len(entry.events) for entry in store._tasks.values()),
            "push": sum(len(entry.push) for entry in store._tasks.values()),
            "pending": len(store._pending),
            "dedupe": len(store._dedupe),
            "contexts": len(store._contexts),
            "held": len(store._held),
        }
    with sqlite3.connect(folder / "a2a.db") as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        found = {name: connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in names}
    connection.close()
    return found


async def many(agents: dict[str, Client]) -> list[str]:
    """Short tasks, each with a webhook of its own in the send and one more; their ids, oldest first."""
    found = []
    for index in range(ROUNDS):
        agent = agents[(JSONRPC, REST, GRPC)[index % 3]]
        requests = [message("parts 2 0") for _ in range(AT_A_TIME)]
        for request in requests:
            request.configuration.task_push_notification_config.url = "http://127.0.0.1:9/hook"
        answers = await within(asyncio.gather(*map(agent.send, requests)))
        found += [answer.task.id for answer in answers]
        config = v1.TaskPushNotificationConfig(task_id=found[-1], url="http://127.0.0.1:9/more")
        try:
            await agent.create_push_config(config)
        except TaskNotFoundError:  # retention was faster
            assert index
    return found


@pytest.mark.requirement("BL-44", "SEC-08", "OP-GET-02")
@pytest.mark.parametrize("kind", ["memory:", "sqlite:"])
async def test_what_is_kept_is_bounded_and_the_rest_is_not_found(kind: str, tmp_path: Path) -> None:
    store = kind if kind == "memory:" else f"sqlite:{tmp_path / 'a2a.db'}"
    hooks = {"push_notifications": True, "push_allow": ("127.0.0.1/32",)}
    limits: dict[str, Any] = {"retain_count": KEPT, "trim_interval": 0.05, "dedupe_window": 1.0}
    async with (
        serve(workers.worker, store=store, **hooks, deduplicate="always", **limits) as server,
        clients(server) as agents,
    ):
        asking = (await agents[GRPC].send(message("ask"))).task.id
        ids = await many(agents)
        async with asyncio.timeout(PATIENCE):
            while (found := sizes(server, tmp_path)) and found["tasks"] > KEPT + 1:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
            while (found := sizes(server, tmp_path)) and found["dedupe"]:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        assert max(found.values()) <= 6 * (KEPT + 1), found
        for agent in agents.values():
            page = await agent.list(v1.ListTasksRequest(page_size=100))
            assert page.total_size == KEPT + 1 and {task.id for task in page.tasks} >= {asking}
            gone = next(name for name in ids if name not in {task.id for task in page.tasks})
            calls = [
                agent.get(gone),
                agent.cancel(gone),
                agent.send(message("more", gone)),
                agent.list_push_configs(gone),
                anext(aiter(agent.subscribe(gone))),
            ]
            told: list[Any] = await asyncio.gather(*calls, return_exceptions=True)
            assert {type(fault) for fault in told} == {TaskNotFoundError}, told
        assert not len(server.engine.feeds) and not server.engine.running
        answered = await agents[REST].send(message("this one", asking))
        assert answered.task.status.state == v1.TASK_STATE_COMPLETED


@pytest.mark.requirement("BL-44", "STREAM-11", "SUB-05")
async def test_readers_of_a_task_that_is_deleted_are_told_so(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 'a2a.db'}"
    made = serve(workers.worker, store=store, retain_stuck=3, trim_interval=0.1)
    async with made as server, clients(server) as agents:
        asking = (await agents[GRPC].send(message("ask"))).task.id
        told = await within(asyncio.gather(*(numbered(agent.subscribe(asking)) for agent in agents.values())))
        assert {type(fault) for _, fault in told} == {TaskNotFoundError}
        assert {len(seen) for seen, _ in told} == {1}
        assert not len(server.engine.feeds)
