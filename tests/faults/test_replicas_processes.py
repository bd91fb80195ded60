"""Three replicas on one PostgreSQL, and what may happen to them and to what they stand on: the history stays right.

Laws: the load is the same for every fault, and so is the checker, which is in history.py. A fault is a row of a table.
"""

import asyncio
import os
import signal
import sys
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import asyncpg
import pytest
from a2a_stubs import google, v1

from a2a_grpc.errors import UnsupportedOperationError
from scripts import services
from tests.faults.history import History, Kept
from tests.faults.processes import BINDINGS, ENDED, ENVIRONMENT, seeded, within
from tests.faults.replicas import Fleet
from tests.stores import postgres_url

LEASE = 1.0
CHUNKS = 60
WHOLE = "".join(f"{number} " for number in range(CHUNKS))
WAVE = 0.4
"""Seconds between new tasks."""


class Services(NamedTuple):
    """What the replicas of a test stand on, all its own."""

    postgres: services.Service
    url: str
    nats: services.Service
    bus: str


@asynccontextmanager
async def replicas(folder: Path, url: str, lease: float, *words: str, hours: Any = (0, 0, 0)) -> AsyncIterator[Fleet]:
    """Three of them, started at once on an empty database."""
    fleet = Fleet(folder, seeded(), "--store", url, "--lease", str(lease), "--deduplicate", "always", *words)
    try:
        await fleet.start(*hours)
        yield fleet
    finally:
        await fleet.close()


async def storm(fleet: Fleet, url: str, fault: Callable[[], Awaitable[None]]) -> list[Kept]:
    """Start tasks and follow each at two places while the fault happens, answer what was asked, check it all."""
    history, work = History(fleet.pick), list[asyncio.Future[Any]]()

    async def one(text: str, tenant: str) -> None:
        task_id = await history.send(text, tenant)
        readers = [asyncio.ensure_future(history.read(task_id, tenant)) for _ in range(2)]
        if text == "ask":
            await happening
            await answer(history, task_id, tenant)
        await asyncio.gather(*readers)

    async def happen() -> None:
        while not history.seen:  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.01)
        await fault()

    happening = asyncio.ensure_future(happen())
    while not happening.done():
        for tenant in ("once", "again"):
            work += [asyncio.ensure_future(one(text, tenant)) for text in (f"count {CHUNKS} 0.02", "ask")]
        await asyncio.wait({happening}, timeout=WAVE)
    await happening
    await within(asyncio.gather(*work))
    found = await history.check(url, fleet.ran)
    for task in found:
        if task.state == v1.TASK_STATE_COMPLETED:
            assert task.text() in (WHOLE, "you said one", "you said two")
    for agents in fleet.servers.values():
        request = v1.GetTaskRequest(id=found[-1].task_id, tenant=found[-1].agent)
        for binding in BINDINGS:
            assert await agents[binding].call("GetTask", request) == found[-1].folded()
    return found


async def answer(history: History, task_id: str, tenant: str) -> None:
    """Two rivals answer a question, unless its turn was lost before it was asked: one is taken, the other told so."""
    while v1.TASK_STATE_INPUT_REQUIRED not in (states := history.states(task_id)):
        if states & ENDED:
            return
        await asyncio.sleep(0.01)
    rivals = (history.send(text, tenant, task_id) for text in ("one", "two"))
    results = await asyncio.gather(*rivals, return_exceptions=True)
    assert sorted(map(type, results), key=str) == [UnsupportedOperationError, str], results


def settled(found: list[Kept], text: str = "count") -> list[str]:
    """How the tasks have ended that were run to the end without a question."""
    asked = {task.task_id for task in found if any(event.payload.HasField("message") for event in task.log)}
    return [v1.TaskState.Name(task.state) for task in found if task.task_id not in asked]


def began(task: Kept) -> google.Timestamp:
    """When the task was made, as the clock of its replica showed."""
    return task.log[0].payload.task.status.timestamp


# -- processes


async def kill(fleet: Fleet) -> None:
    """End owners without warning."""
    for _ in range(3):
        server = await fleet.working()
        server.process.kill()
        del fleet.servers[server]
        await server.exit_code()
        await fleet.start(0)


async def pause(fleet: Fleet) -> None:
    """Let owners stand still for so long that others have their tasks when they go on."""
    for _ in range(2):
        server = await fleet.working()
        server.process.send_signal(signal.SIGSTOP)
        await asyncio.sleep(2 * LEASE)
        server.process.send_signal(signal.SIGCONT)


async def roll(fleet: Fleet) -> None:
    """Put a new one in the place of each."""
    for server in list(fleet.servers):
        await fleet.start(0)
        server.process.send_signal(signal.SIGTERM)
        del fleet.servers[server]
        assert await server.exit_code() == 0


@pytest.mark.requirement("BL-08", "BL-10", "BL-48", "SUB-03", "STREAM-09")
@pytest.mark.parametrize("fault", [kill, pause])
async def test_tasks_of_a_replica_that_is_lost_are_settled_by_the_others(
    tmp_path: Path, fault: Callable[[Fleet], Awaitable[None]]
) -> None:
    async with postgres_url() as url, replicas(tmp_path, url, LEASE) as fleet:
        found = await storm(fleet, url, lambda: fault(fleet))
        lost = [task for task in found if task.state == v1.TASK_STATE_FAILED or task.attempt > 1]
        assert lost
        for task in lost:
            if task.state == v1.TASK_STATE_FAILED:
                assert "server stopped" in task.folded().status.message.parts[0].text


@pytest.mark.requirement("BL-34", "BL-48", "SUB-03")
async def test_a_rolling_restart_under_load_is_noticed_by_no_task_and_no_reader(tmp_path: Path) -> None:
    async with postgres_url() as url, replicas(tmp_path, url, 5.0) as fleet:
        found = await storm(fleet, url, lambda: roll(fleet))
        assert {(task.state, task.attempt) for task in found} == {(v1.TASK_STATE_COMPLETED, 1)}


@pytest.mark.requirement("BL-08", "BL-48")
async def test_clocks_an_hour_apart_change_nothing(tmp_path: Path) -> None:
    async with postgres_url() as url, replicas(tmp_path, url, 5.0, hours=(-1, 0, 1)) as fleet:

        async def nothing() -> None:
            while len({line.split()[-1] for line in fleet.ran.read_text().splitlines()}) < 3:  # noqa: ASYNC110
                await asyncio.sleep(0.01)

        found = await storm(fleet, url, nothing)
        hours = {round(state.ToSeconds() / 1800) for state in map(began, found)}
        assert max(hours) - min(hours) >= 3
        assert {(task.state, task.attempt) for task in found} == {(v1.TASK_STATE_COMPLETED, 1)}


# -- services


@pytest.fixture
def own() -> Iterator[Services]:
    """A PostgreSQL and a NATS of the test's own, which it may stop."""
    if not (os.environ.get("A2A_POSTGRES_URL") and os.environ.get("A2A_NATS_URL")):
        pytest.skip("needs PostgreSQL and NATS (make services)")
    with ExitStack() as stack:
        made = []
        for program, package, make in (
            ("postgres", "postgresql", services.postgres),
            ("nats-server", "nats-server", services.nats),
        ):
            service = services.Service(f"test-{uuid.uuid4().hex[:8]}", services.find(program, package))
            service.folder.mkdir(parents=True)
            stack.callback(service.stop, signal.SIGINT)
            made += [service, make(service)]
        yield Services(*made)


async def again(service: services.Service, number: signal.Signals) -> None:
    """Stop a service and start it: by another interpreter, as gRPC's threads bear no fork beside them."""
    await asyncio.to_thread(service.end, number)
    made = f"Service({service.name!r}, {service.program!r})"
    code = f"from scripts.services import Service; {made}.start(*{service._command!r})"
    starter = await asyncio.create_subprocess_exec(sys.executable, "-c", code, env=ENVIRONMENT)
    assert await within(starter.wait()) == 0


async def cut(url: str) -> None:
    """End every connection to the database, several times."""
    kill = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name LIKE 'a2a-grpc%'"
    connection = await asyncpg.connect(url)
    for _ in range(8):
        assert await connection.fetchval(kill)
        await asyncio.sleep(0.1)
    await connection.close()


@pytest.mark.requirement("BL-48", "SUB-03")
async def test_services_that_come_back_lose_and_double_nothing(tmp_path: Path, own: Services) -> None:
    async with replicas(tmp_path, own.url, 10.0, "--bus", own.bus) as fleet:

        async def fault() -> None:
            await again(own.nats, signal.SIGINT)
            await cut(own.url)
            await again(own.postgres, signal.SIGINT)
            await again(own.postgres, signal.SIGQUIT)

        found = await storm(fleet, own.url, fault)
        assert {(task.state, task.attempt) for task in found} == {(v1.TASK_STATE_COMPLETED, 1)}
