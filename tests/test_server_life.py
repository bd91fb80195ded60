"""Servers that start, stop, start again, fail to start, live inside others, and meet what they cannot settle."""

import asyncio
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from a2a_grpc.agent import TaskHandle
from a2a_grpc.call import GRPC, REST
from a2a_grpc.client import Client
from a2a_grpc.config import Options
from a2a_grpc.server import Server
from a2a_grpc.tasks.bus import LocalBus
from a2a_grpc.tasks.memory import MemoryStore
from a2a_grpc.tasks.store import Event, Scope
from tests.test_upkeep import die
from tests.turns import ALICE, COMPLETED, FAILED, INPUT, agent, ask, begin, engine, forever, message, send, until


def options(folder: Path, **more: Any) -> Options:
    given = {"grpc": "127.0.0.1:0", "http": "127.0.0.1:0", "grace": 0.0, "cancel_grace": 0.1}
    return Options(**{**given, "store": f"sqlite:{folder}/a.db", **more})


@pytest.mark.requirement("BL-08", "BL-34", "BL-45")
async def test_a_server_that_starts_again_serves_as_before_and_leaves_nothing_behind(tmp_path: Path) -> None:
    server, waiting, files = Server(agent(ask), options(tmp_path)), "", []
    before = set(threading.enumerate())
    for _ in range(3):
        await server.start()
        await server.start()
        async with await Client.connect(server.http_url) as client:
            card = await client.refresh_card(force=True)
            assert card is not None
            assert {server.grpc_address, server.http_url} <= {
                place.url.rstrip("/") for place in card.supported_interfaces
            }
            if waiting:
                events = [event async for event in client.stream(message("x", waiting))]
                assert events[-1].status_update.status.state == COMPLETED
            waiting = (await client.send(message())).task.id
            subscription = client.subscribe(waiting)
            assert (await anext(subscription)).task.id == waiting
        await server.stop()
        await server.stop()
        files.append(len(os.listdir("/proc/self/fd")))
    assert files[2] <= files[0]
    await until(lambda: not [one for one in {*threading.enumerate()} - before if one.name.startswith("a2a-")])


class Unreachable(LocalBus):
    """A bus that is not there at first."""

    gone = True

    async def open(self) -> None:
        if self.gone:
            raise ConnectionError("no bus")


async def test_a_start_that_failed_leaves_nothing_open_and_may_be_tried_again(tmp_path: Path) -> None:
    bus = Unreachable()
    server = Server(agent(ask), options(tmp_path), bus=bus)
    for one in (server, server, Server(agent(ask), options(tmp_path), bus=bus)):
        with pytest.raises(ConnectionError):
            await one.start()
    bus.gone = False
    async with server:
        assert len(server.engine.upkeep._loops) == 3 and server.ready


@pytest.mark.requirement("BL-34", "BL-52")
async def test_an_application_that_stops_does_not_wait_for_open_streams(tmp_path: Path) -> None:
    server, application = Server(agent(forever), options(tmp_path, grpc="", http="")), web.Application()
    application.add_subapp("/agents/one", server.application())
    runner = web.AppRunner(application, shutdown_timeout=600)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    async with await Client.connect(f"http://127.0.0.1:{runner.addresses[0][1]}/agents/one") as client:
        events = client.stream(message())
        first = (await anext(events)).task
        sent = asyncio.create_task(client.send(message("again", message_id="n")))
        await until(lambda: server.engine.running == 2)
        await runner.cleanup()
        assert [event async for event in events][-1].status_update.status.state == FAILED
        assert (await sent).task.status.state == FAILED
    async with Server(agent(forever), options(tmp_path)) as again:
        assert (await again.engine.view(Scope("", "", ""), first.id)).task.status.state == FAILED


@pytest.mark.requirement("BL-08", "BL-48")
async def test_a_turn_that_thinks_long_before_its_first_word_is_not_taken_for_lost() -> None:
    async def thinks(task: TaskHandle) -> None:
        await asyncio.sleep(0.4)  # longer than the lease
        await forever(task)

    store = MemoryStore()
    async with engine(store, agent(thinks, replies=True), lease=0.3) as made:
        started = await begin(made)
        row = await store.task(ALICE, str(await started.outcome()))
        assert row is not None and row.lease_until_ms - row.status_ms >= 300  # counted from the first word


class Spoiled(MemoryStore):
    """A store in which the events of one task cannot be read, as if its bytes were broken."""

    spoiled = ""

    async def events(self, scope: Scope, task_id: str, after: int, limit: int) -> list[Event]:
        if task_id == self.spoiled:
            raise ValueError("broken bytes")
        return await super().events(scope, task_id, after, limit)


@pytest.mark.requirement("BL-08")
async def test_a_lost_turn_that_cannot_be_settled_holds_up_neither_the_start_nor_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = Spoiled()
    async with engine(store, forever) as dead:
        names = [(await begin(dead)).task_id for _ in range(3)]
        await until(lambda: all(dead._runtime.turns[name].durable > 1 for name in names))
        await die(dead)
    store.spoiled = names[0]
    async with engine(store, ask) as made:
        for name in names[1:]:
            assert (await made.view(ALICE, name)).task.status.state == FAILED
        assert f"task {names[0]}: its lost turn cannot be settled" in caplog.text
        assert (await send(made)).task.status.state == INPUT


@pytest.mark.requirement("BL-34")
@pytest.mark.parametrize("wire", ["http", "grpc"])
async def test_a_wire_that_stops_idle_leaves_streams_of_the_other_alone(tmp_path: Path, wire: str) -> None:
    go = asyncio.Event()

    async def waits(task: TaskHandle) -> str:
        await task.working("at it")
        await go.wait()
        return "done"

    async with Server(agent(waits), options(tmp_path)) as server:
        hosts = {"http": server._http_host, "grpc": server._grpc_host}
        other = f"grpc://{server.grpc_address}" if wire == "http" else server.http_url
        async with await Client.connect(other, binding=REST if wire == "grpc" else GRPC) as client:
            events = client.stream(message())
            await anext(events)
            stopped = hosts[wire]
            assert stopped is not None
            await stopped.stop(5.0)
            go.set()
            assert [event async for event in events][-1].status_update.status.state == COMPLETED
