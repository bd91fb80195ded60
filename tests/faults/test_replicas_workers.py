"""`serve --workers`: several processes behind one pair of ports, one of which may die, and which stop together."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from a2a_stubs import v1

from a2a_grpc.call import GRPC
from a2a_grpc.telemetry_logs import SWITCH
from a2a_grpc.testing import until
from scripts.services import free_port
from tests.faults.history import History
from tests.faults.processes import ENVIRONMENT, PATIENCE, Serving, clients, launch, message, seeded, serving, within
from tests.fronts import eventually
from tests.stores import postgres_url

COUNT = 3


def place() -> list[str]:
    return ["--http", f"127.0.0.1:{free_port()}", "--grpc", f"127.0.0.1:{free_port()}"]


@asynccontextmanager
async def family(folder: Path, *more: str) -> AsyncIterator[tuple[Serving, str]]:
    """Workers that note what they run, and the address of their store."""
    (folder / "ran").touch()
    async with postgres_url() as url:
        words = ("--workers", str(COUNT), "--store", url, "--lease", "1", *place(), *more)
        async with serving(folder, *words, agent="tests.faults.replicas:agents") as server:
            yield server, url


def ran(folder: Path) -> set[int]:
    """The processes that have run something."""
    return {int(line.split()[-1]) for line in (folder / "ran").read_text().splitlines()}


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def spread(folder: Path, server: Serving, history: History, count: int = COUNT) -> set[int]:
    """Send on new connections until so many processes have taken something; which."""
    while len(ran(folder)) < count:
        async with clients(server) as agents:
            history.pick = lambda: agents[GRPC]
            await asyncio.gather(*(history.send("count 3 0", tenant) for tenant in ("once", "again")))
    return ran(folder)


@pytest.mark.requirement("SEC-07")
async def test_each_worker_shows_itself_to_operators_and_takes_signals_from_the_parent(tmp_path: Path) -> None:
    (tmp_path / "ran").touch()
    watched = ("--admin", f"unix:{tmp_path}/admin", "--metrics", "admin", "--log-format", "json")
    async with postgres_url() as url:
        words = ("--workers", str(COUNT), "--store", url, *watched, *place())
        async with serving(tmp_path, *words, agent="tests.faults.replicas:agents") as server:
            places = [f"{tmp_path}/admin", *(f"{tmp_path}/admin.{number}" for number in range(1, COUNT))]
            holders = {(await seen(path, "/leases"))["holder"] for path in places}
            assert len(holders) == COUNT and f"admin.{COUNT}" not in os.listdir(tmp_path)
            server.process.send_signal(SWITCH)
            await until(lambda: server.log.count('"logger": "a2a_grpc.telemetry_logs"') >= COUNT, PATIENCE)
            history = History(lambda: agents[GRPC])
            await within(spread(tmp_path, server, history))
            async with clients(server) as agents:
                history.pick = lambda: agents[GRPC]
                await history.send("count 3 0", "once")
            for path in places:  # a call is counted when its caller may have its answer already
                await eventually(partial(counted, path))
            server.process.send_signal(signal.SIGTERM)
            assert await server.exit_code() == 0, server.log
    assert '"logger": "a2a_grpc.calls"' in server.log


async def counted(path: str) -> bool:
    """Whether the worker there has answered over gRPC."""
    return 'a2a_server_call_duration_seconds_count{a2a_binding="GRPC"' in await seen(path, "/metrics")


async def seen(path: str, view: str) -> Any:
    connector = aiohttp.UnixConnector(path)
    async with aiohttp.ClientSession(connector=connector) as session, session.get(f"http://localhost{view}") as reply:
        return await (reply.json() if reply.content_type == "application/json" else reply.text())


@pytest.mark.requirement("BL-08", "BL-34", "BL-48")
async def test_workers_share_the_ports_one_that_dies_is_replaced_and_all_stop_at_once(tmp_path: Path) -> None:
    chance = seeded()
    async with family(tmp_path) as (server, url):
        history = History(lambda: agents[GRPC])
        first = await within(spread(tmp_path, server, history))
        os.kill(chance.choice(sorted(first)), signal.SIGKILL)
        found = await within(spread(tmp_path, server, history, COUNT + 1))
        async with clients(server) as agents:
            history.pick = lambda: chance.choice(list(agents.values()))
            task_id = await history.send("count 100 0.01", "once")
            reader = asyncio.ensure_future(history.read(task_id, "once"))
            await until(lambda: any(seen for _, seen in history.seen), PATIENCE)
            server.process.send_signal(signal.SIGTERM)
            assert await server.exit_code() == 0, server.log
            reader.cancel()
        assert not any(map(lives, found))
        assert "another one takes its place" in server.log
        history.seen.clear()
        tasks = {task.task_id: task for task in await history.check(url, tmp_path / "ran")}
        assert tasks[task_id].state == v1.TASK_STATE_COMPLETED  # within the grace


@pytest.mark.requirement("BL-34")
async def test_a_second_signal_ends_all_workers_at_once(tmp_path: Path) -> None:
    async with family(tmp_path, "--grace", "600") as (server, _):
        history = History(lambda: agents[GRPC])
        found = await within(spread(tmp_path, server, history))
        async with clients(server) as agents:
            history.pick = lambda: agents[GRPC]
            await history.send("sleep 600", "once")
            server.process.send_signal(signal.SIGINT)
            await until(lambda: sum(map(lives, found)) == 1, PATIENCE)  # the one that is at work has its grace
            server.process.send_signal(signal.SIGINT)
            assert await server.exit_code() == 128 + signal.SIGKILL, server.log
        assert not any(map(lives, found))


@pytest.mark.requirement("BL-34")
async def test_workers_end_with_the_process_that_started_them(tmp_path: Path) -> None:
    async with family(tmp_path) as (server, _):
        found = await within(spread(tmp_path, server, History(lambda: None)))  # type: ignore[arg-type, return-value]
        server.process.kill()
        await server.exit_code()
        await until(lambda: not any(map(lives, found)), PATIENCE)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--store", "sqlite:a2a.db"], "workers: a store in sqlite: cannot be shared by processes; use postgresql:"),
        (["--store", "memory:"], "workers: a store in memory: cannot be shared by processes; use postgresql:"),
        (["--store", "postgresql://h/d", "--http", "127.0.0.1:0"], "workers: http needs a port that all can share"),
        (["--store", "postgresql://h/d", "--grpc", "127.0.0.1:0"], "workers: grpc needs a port that all can share"),
        (["--workers", "257", "--store", "postgresql://h/d"], "workers must be between 1 and 256, not 257"),
    ],
)
async def test_what_several_processes_cannot_share_is_refused(tmp_path: Path, words: list[str], told: str) -> None:
    process, log = await launch(tmp_path, "--workers", "2", *place(), *words)
    await within(process.communicate())
    assert process.returncode == 2 and log.read_text().startswith(f"a2a-grpc: {told}")


@pytest.mark.parametrize("words", [["--buffer", "1"], ["--push", "own"], ["--buffer", "1", "--store", "sqlite:a2a.db"]])
async def test_workers_of_a_gateway_that_keeps_something_need_a_store_that_they_can_share(
    tmp_path: Path, words: list[str]
) -> None:
    command = (sys.executable, "-m", "a2a_grpc", "gateway", "--upstream", "http://127.0.0.1:1", "--workers", "2")
    process = await asyncio.create_subprocess_exec(
        *command, *place(), *words, cwd=tmp_path, env=ENVIRONMENT, stdout=PIPE, stderr=PIPE
    )
    said, log = await within(process.communicate())
    store = "sqlite" if "--store" in words else "memory"
    told = f"a2a-grpc: workers: a store in {store}: cannot be shared by processes; use postgresql:\n"
    assert (process.returncode, said, log.decode()) == (2, b"", told)


async def test_workers_that_cannot_start_say_so_once(tmp_path: Path) -> None:
    words = ("--workers", "3", *place(), "--store", "postgresql://127.0.0.1:1/none")
    process, log = await launch(tmp_path, *words)
    await within(process.communicate())
    assert process.returncode == 2 and log.read_text().count("a2a-grpc: cannot keep tasks") == 1


async def test_a_port_of_another_program_is_not_shared(tmp_path: Path) -> None:
    async with serving(tmp_path) as other:
        words = ("--workers", "2", *place(), "--grpc", other.grpc, "--store", "postgresql://127.0.0.1:1/none")
        process, log = await launch(tmp_path, *words)
        await within(process.communicate())
        assert process.returncode == 2 and "ddress already in use" in log.read_text()
        async with clients(other) as agents:
            assert (await agents[GRPC].send(message("parts 1 0"))).task.id
