"""A store that fails, over every wire: whoever waits is told at once, in neutral words, and the server goes on."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import grpc.aio
import pytest
from a2a_stubs import v1, v1_grpc

from a2a_grpc.call import GRPC, JSONRPC, REST
from a2a_grpc.config import Options
from a2a_grpc.errors import InternalError
from a2a_grpc.server import Server
from a2a_grpc.tasks.sqlite import SQLiteStore
from a2a_grpc.tasks.store import Store
from a2a_grpc.testing import until
from tests.faults import workers
from tests.faults.processes import (
    BINDINGS,
    PATIENCE,
    channel_to,
    clients,
    dial,
    ended,
    message,
    numbered,
    read_grpc,
    texts,
    within,
)


class Failing:
    """A store that fails once told to: the commit that is `good` commits away, and every other method while `deaf`.

    Everything else goes to the store behind it.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self.good = 1_000_000
        self.deaf = False

    def __getattr__(self, name: str) -> Any:
        return self._fail if self.deaf and name in ("task", "events", "tasks", "seen") else getattr(self._store, name)

    async def _fail(self, *_: object) -> Any:
        raise OSError(workers.SECRET)

    async def commit(self, change: Any) -> int:
        self.good -= 1
        if not self.good:
            await self._fail()
        return await self._store.commit(change)


@asynccontextmanager
async def failing(folder: Path, **options: Any) -> AsyncIterator[tuple[Server, Failing]]:
    store = Failing(SQLiteStore(folder / "a2a.db"))
    given = {"grpc": "127.0.0.1:0", "http": "127.0.0.1:0", "grace": 0.0, **options}
    async with Server(workers.worker, Options(**given), store=cast(Store, store)) as server:
        yield server, store


async def raw(server: Server, binding: str, operation: str, request: Any) -> str:
    """Every byte that the wire carries back, as text: body and head, or status text, details and trailers."""
    if binding != GRPC:
        dialed = await dial(server.http_url, binding, operation, request, connection="close")
        answer = await within(dialed.reader.read())
        dialed.drop()
        return answer.decode()
    async with channel_to(server.grpc_address) as channel:
        call = getattr(v1_grpc.A2AServiceStub(channel), operation)(request)
        if operation == "SendMessage" or not operation.startswith(("Send", "Sub")):
            try:
                return str(await within(call))
            except grpc.aio.AioRpcError as fault:
                return f"{fault.code()} {fault.details()} {fault.trailing_metadata()}"
        events, fault = await read_grpc(call)
        told = f"{fault.code()} {fault.details()} {fault.trailing_metadata()}" if fault else ""
        return f"{events} {told}"


@pytest.mark.requirement("BL-03", "BL-21", "OP-STREAM-11", "STREAM-11", "BL-28")
@pytest.mark.parametrize("good", [1, 2, 3, 5])
@pytest.mark.parametrize("binding", BINDINGS)
async def test_a_failing_commit_is_told_to_everybody_who_waits(tmp_path: Path, binding: str, good: int) -> None:
    async with failing(tmp_path) as (server, store), clients(server) as agents:
        agent = agents[binding]

        async def subscribe(task_id: str) -> None:
            _, fault = await numbered(agent.subscribe(task_id))
            assert isinstance(fault, InternalError)

        store.good = good
        events = agent.stream(message("parts 10 0.05"))
        subscribed: list[asyncio.Task[None]] = []
        with pytest.raises(InternalError) as told:
            async for event in events:
                if event.HasField("task"):
                    subscribed = [asyncio.create_task(subscribe(event.task.id)) for _ in range(3)]
        assert (good == 1) == (not subscribed)
        await within(asyncio.gather(*subscribed))
        store.good = good
        with pytest.raises(InternalError) as again:
            await agent.send(message("parts 10 0.05"))
        for fault in (told.value, again.value):
            # Who comes just after the break is told that it broke off, and not the reference, which went with the turn.
            assert fault.metadata.get("reference") or "broke off" in fault.message
            assert workers.SECRET not in f"{fault.message}{fault.metadata}"
        store.good = good
        blocking = await raw(server, binding, "SendMessage", message("parts 10 0.05"))
        store.good = good
        streaming = await raw(server, binding, "SendStreamingMessage", message("parts 10 0.05"))
        for answer in (blocking, streaming):
            assert "INTERNAL" in answer and "user:pw" not in answer and "OSError" not in answer

        store.good = 1_000_000
        answered = await agent.send(message("parts 2 0"))
        assert texts(answered.task) == ["part 0", "part 1"]
        assert server.engine.running == 0
        await until(lambda: not server.engine.feeds.readers and not len(server.streams), PATIENCE)


@pytest.mark.requirement("BL-03", "BL-08")
async def test_a_task_that_broke_off_is_settled_when_its_lease_runs_out(tmp_path: Path) -> None:
    async with failing(tmp_path, lease=0.5) as (server, store), clients(server) as agents:
        store.good = 3
        with pytest.raises(InternalError):
            await agents[JSONRPC].send(message("parts 10 0.05"))
        [broken] = (await agents[GRPC].list()).tasks
        task = await ended(agents[REST], broken.id)
        assert task.status.state == v1.TASK_STATE_FAILED
        assert "server stopped" in task.status.message.parts[0].text


@pytest.mark.requirement("BL-28", "BL-03")
@pytest.mark.parametrize("binding", BINDINGS)
async def test_a_store_that_cannot_be_read_is_an_internal_error_in_every_operation(
    tmp_path: Path, binding: str
) -> None:
    async with failing(tmp_path) as (server, store), clients(server) as agents:
        asking = (await agents[binding].send(message("ask"))).task.id
        store.deaf = True
        for operation, request in (
            ("SendMessage", message("this one", asking)),
            ("SendStreamingMessage", message("this one", asking)),
            ("GetTask", v1.GetTaskRequest(id=asking)),
            ("ListTasks", v1.ListTasksRequest()),
            ("CancelTask", v1.CancelTaskRequest(id=asking)),
            ("SubscribeToTask", v1.SubscribeToTaskRequest(id=asking)),
        ):
            answer = await raw(server, binding, operation, request)
            assert "INTERNAL" in answer and "user:pw" not in answer and "OSError" not in answer, operation
        store.deaf = False
        answered = await agents[binding].send(message("this one", asking))
        assert texts(answered.task) == ["you said this one"]


@pytest.mark.requirement("BL-28", "BL-03")
@pytest.mark.parametrize("operation", ["SendMessage", "SendStreamingMessage"])
@pytest.mark.parametrize("binding", BINDINGS)
async def test_what_an_agent_raises_stays_in_the_log(
    tmp_path: Path, binding: str, operation: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with failing(tmp_path) as (server, _), clients(server) as agents:
        answer = await raw(server, binding, operation, message("crash"))
        [task] = (await agents[binding].list()).tasks
        assert task.status.state == v1.TASK_STATE_FAILED
        stored = await raw(server, binding, "GetTask", v1.GetTaskRequest(id=task.id))
        reference = task.status.message.parts[0].text.rpartition(" ")[2]
        for told in (answer, stored):
            assert "FAILED" in told and reference in told and "user:pw" not in told and "RuntimeError" not in told
    assert f"reference {reference}" in caplog.text and workers.SECRET in caplog.text
