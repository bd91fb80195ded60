"""What may happen to three replicas, or one server, and to what they stand on, while callers go on: the history stays
right.

Laws: the load is the same for every fault, and so is the checker, which is in history.py. A fault is a row of FAULTS;
what is chosen by chance can be had again by its seed.
"""

import asyncio
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import asyncpg
from a2a_stubs import v1

from a2a_grpc.errors import UnsupportedOperationError
from a2a_grpc.tasks.state import status_of
from scripts import services
from tests.faults.history import History, Kept
from tests.faults.late import Lag, lagging
from tests.faults.processes import BINDINGS, ENDED, ENVIRONMENT, limit_files, within
from tests.faults.replicas import Fleet
from tests.stores import postgres_url

LEASE = 1.0
CHUNKS = 60
WHOLE = "".join(f"{number} " for number in range(CHUNKS))
WORDS = [f"word-{number}" for number in range(6)]
"""What is said to a task while it works."""
WAVE = 0.4
"""Seconds between new tasks."""
MOST = 16
"""Tasks that are under way at a time."""
DISK = 320
"""Size in MiB of the file system that may be filled."""


class Services(NamedTuple):
    """What the replicas stand on, all of their own."""

    postgres: services.Service
    url: str
    nats: services.Service
    bus: str

    @property
    def small(self) -> bool:
        """Whether the database can run out of disk."""
        return os.path.ismount(self.postgres.folder)


@contextmanager
def own_services() -> Iterator[Services]:
    """A PostgreSQL and a NATS that may be stopped; the database lies in a small file system where one can be made."""
    with ExitStack() as stack:
        made: list[Any] = []
        for program, package, make in (
            ("postgres", "postgresql", services.postgres),
            ("nats-server", "nats-server", services.nats),
        ):
            service = services.Service(f"test-{uuid.uuid4().hex[:8]}", services.find(program, package))
            service.folder.mkdir(parents=True)
            stack.callback(shutil.rmtree, service.folder, ignore_errors=True)  # what a file system was mounted on
            if program == "postgres" and not subprocess.call(
                ["mount", "-t", "tmpfs", "-o", f"size={DISK}m,mode=711", "tmpfs", service.folder],
                stderr=subprocess.DEVNULL,
            ):
                stack.callback(subprocess.check_call, ["umount", "--lazy", service.folder])
            stack.callback(service.stop, signal.SIGINT)
            made += [service, make(service)]
        yield Services(*made)


class Scene(NamedTuple):
    """What a fault may touch. lag: the way from the replicas to the database, where it is one."""

    fleet: Fleet
    url: str
    services: Services | None
    lag: Lag | None = None

    @property
    def own(self) -> Services:
        """The services, where they are the replicas' own."""
        assert self.services is not None
        return self.services


# -- load


async def storm(scene: Scene, faults: Callable[[], Awaitable[Any]]) -> list[Kept]:
    """Start tasks and follow each at two places while the faults happen, answer what was asked, check it all."""
    fleet = scene.fleet
    history, work, begun = History(fleet.pick), list[asyncio.Future[Any]](), time.time()

    async def one(text: str, tenant: str) -> None:
        task_id = await history.send(text, tenant)
        readers = [asyncio.ensure_future(history.read(task_id, tenant)) for _ in range(2)]
        if text == "ask":
            await asyncio.wait({happening}, timeout=fleet.chance.random() * 10 * WAVE)
            await answer(history, task_id, tenant)
        elif text.startswith("listen"):
            await speak(history, task_id, tenant)
        await asyncio.gather(*readers)

    async def happen() -> None:
        while not history.seen:  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.01)
        await faults()

    happening = asyncio.ensure_future(happen())
    under_way = set[asyncio.Future[Any]]()
    while not happening.done():
        if len(under_way) < MOST:
            for tenant in ("once", "again"):
                texts = (f"count {CHUNKS} 0.02", "ask", f"listen {len(WORDS)}")
                under_way |= {asyncio.ensure_future(one(text, tenant)) for text in texts}
        done, under_way = await asyncio.wait(under_way, timeout=WAVE)
        work += done
        for ended in done:
            ended.result()
    await happening
    await within(asyncio.gather(*under_way), 120)
    found = await history.check(scene.url, fleet.ran)
    for task in found:
        assert all(begun - 60 < dated < time.time() + 60 for dated in dates(task)), task
        if task.state == v1.TASK_STATE_COMPLETED:
            assert task.text() in (WHOLE, "you said one", "you said two", f"{' '.join(WORDS)} ")
        elif task.state == v1.TASK_STATE_FAILED:
            assert "server stopped" in task.folded().status.message.parts[0].text
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
        await asyncio.sleep(0.05)
    rivals = (history.send(text, tenant, task_id) for text in ("one", "two"))
    results = await asyncio.gather(*rivals, return_exceptions=True)
    assert sorted(map(type, results), key=str) == [UnsupportedOperationError, str], results


async def speak(history: History, task_id: str, tenant: str) -> None:
    """Say one word after the other to a task at work. It takes each, but between two attempts; when it has ended, none
    is taken any more."""
    words = list(WORDS)
    while words and not (states := history.states(task_id)) & ENDED:
        if v1.TASK_STATE_WORKING in states:
            with suppress(UnsupportedOperationError):
                await history.send(words[0], tenant, task_id)
                del words[0]
                continue
        await asyncio.sleep(0.05)


def dates(task: Kept) -> list[int]:
    """The seconds of each status of a task."""
    found = (status_of(event.payload) for event in task.log)
    return [status.timestamp.seconds for status in found if status is not None]


# -- faults of replicas


async def kill(scene: Scene) -> None:
    """End an owner without warning; another replica takes its place."""
    server = await scene.fleet.working()
    server.process.kill()
    del scene.fleet.servers[server]
    await server.exit_code()
    await scene.fleet.start(1)


async def pause(scene: Scene) -> None:
    """Let an owner stand still for so long that others have its tasks when it goes on."""
    server = await scene.fleet.working()
    server.process.send_signal(signal.SIGSTOP)
    await asyncio.sleep(2 * LEASE)
    server.process.send_signal(signal.SIGCONT)


async def roll(scene: Scene) -> None:
    """Put a new one in the place of the oldest."""
    fleet = scene.fleet
    server = next(iter(fleet.servers))
    await fleet.start(1)
    server.process.send_signal(signal.SIGTERM)
    del fleet.servers[server]
    assert await server.exit_code() == 0, server.log


async def nothing(scene: Scene) -> None:
    """Let another replica begin a turn: what is wrong is so all the time."""
    await scene.fleet.working()


# -- faults of one server and its file


async def restart(scene: Scene) -> None:
    """End the one that serves from the file without warning, and start another."""
    server = await scene.fleet.working()
    server.process.kill()
    await server.exit_code()
    await scene.fleet.start(1)  # callers find nobody until then
    del scene.fleet.servers[server]


async def cramp(scene: Scene) -> None:
    """The file and the log beside it have no more room for a second."""
    server = await scene.fleet.working()
    limit_files(server.process.pid, scene.fleet.ran.stat().st_size + 65536)  # notes of runs still have room
    await asyncio.sleep(0.5 + scene.fleet.chance.random())
    limit_files(server.process.pid, -1)
    await scene.fleet.all_working()


# -- faults of services


async def again(service: services.Service, number: signal.Signals) -> None:
    """Stop a service and start it: by another interpreter, as gRPC's threads bear no fork beside them."""
    await asyncio.to_thread(service.end, number)
    await begin(service)


async def begin(service: services.Service) -> None:
    """Start a service that has ended."""
    made = f"Service({service.name!r}, {service.program!r})"
    code = f"from scripts.services import Service; {made}.start(*{service._command!r})"
    starter = await asyncio.create_subprocess_exec(sys.executable, "-c", code, env=ENVIRONMENT)
    assert await within(starter.wait()) == 0


async def stop(scene: Scene) -> None:
    """Stop the database and start it."""
    await again(scene.own.postgres, signal.SIGINT)
    await scene.fleet.all_working()


async def crash(scene: Scene) -> None:
    """The database loses what was not on its disk."""
    await again(scene.own.postgres, signal.SIGQUIT)
    await scene.fleet.all_working()


async def hush(scene: Scene) -> None:
    """Stop NATS and start it."""
    await again(scene.own.nats, signal.SIGINT)


async def cut(scene: Scene) -> None:
    """End every connection to the database, often those that are being made; every fourth time when all replicas have
    been at work since, so that a busy machine does not keep one from its leases for as long as they last."""
    kill = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name LIKE 'a2a-grpc%'"
    connection = await asyncpg.connect(scene.url)
    try:
        while not await connection.fetchval(kill):  # noqa: ASYNC110 - another server
            await asyncio.sleep(0.01)
    finally:
        await connection.close()
    await asyncio.sleep(scene.fleet.chance.random() / 5)
    if scene.fleet.chance.random() < 0.25:
        await scene.fleet.all_working()


async def delay(scene: Scene) -> None:
    """Connections to the database break while what was said on them is still on its way."""
    assert scene.lag is not None
    before, chance = scene.lag.late, scene.fleet.chance
    while scene.lag.late == before:
        scene.lag.strike()
        await asyncio.sleep(chance.random() / 5)
    if chance.random() < 0.25:
        await scene.fleet.all_working()


async def fill(scene: Scene) -> None:
    """The disk of the database is full for a second; a server that does not bear it is started again."""
    server = scene.own.postgres
    assert scene.own.small
    ballast = server.folder / "ballast"
    end = time.monotonic() + 0.5 + scene.fleet.chance.random()
    while time.monotonic() < end:
        place = os.statvfs(server.folder)
        with ballast.open("ab") as file, suppress(OSError):
            os.posix_fallocate(file.fileno(), file.tell(), place.f_bavail * place.f_frsize)
        await asyncio.sleep(0.02)
    ballast.unlink()
    await asyncio.sleep(0.2)
    if not server.pid:
        await begin(server)
    await asyncio.to_thread(services.until, lambda: server.ready(server.port), "PostgreSQL was not there", server.log)
    await scene.fleet.all_working()


class Fault(NamedTuple):
    """strike: one round of it. lease: of the replicas, in seconds. steady: whether no task may notice. hours: how far
    the replicas' clocks are ahead. loss: the share of hints that no replica hears. own: whether the services are the
    replicas' own. nats: whether hints go by NATS. late: whether the database is reached through a Lag. file: whether
    there is one server, with its tasks in a file."""

    strike: Callable[[Scene], Awaitable[None]]
    lease: float = 10.0
    steady: bool = True
    hours: tuple[float, ...] = (0, 0, 0)
    loss: float = 0.0
    own: bool = False
    nats: bool = False
    late: bool = False
    file: bool = False


FAULTS = {
    "kill": Fault(kill, LEASE, steady=False),
    "pause": Fault(pause, LEASE, steady=False),
    "roll": Fault(roll, 5.0),
    "clocks": Fault(nothing, hours=(-1, 0, 1)),
    "loss": Fault(nothing, loss=0.5),
    "nats loss": Fault(nothing, loss=0.5, nats=True),
    "deaf": Fault(nothing, loss=1.0),
    "nats": Fault(hush, 30.0, own=True, nats=True),
    "late": Fault(delay, 30.0, nats=True, late=True),
    "cut": Fault(cut, 30.0, own=True),
    "stop": Fault(stop, 30.0, own=True),
    "crash": Fault(crash, 30.0, own=True),
    "full": Fault(fill, 30.0, own=True),
    "file kill": Fault(restart, LEASE, steady=False, file=True),
    "file full": Fault(cramp, LEASE, steady=False, file=True),
}


@asynccontextmanager
async def replicas(
    folder: Path, url: str, fault: Fault, chance: random.Random, bus: str = "", *words: str
) -> AsyncIterator[Fleet]:
    """Three of them, started at once on an empty database; one on a file."""
    settings = ("--store", url, "--lease", str(fault.lease), "--deduplicate", "always", "--store-retry", "60")
    settings += ("--trim-interval", "1")
    hints = ("--bus", bus) if bus else ()
    fleet = Fleet(folder, chance, fault.hours, *settings, *hints, *words, A2A_TEST_LOSS=str(fault.loss))
    try:
        await fleet.start(1 if fault.file else 3)
        yield fleet
    finally:
        await fleet.close()


@asynccontextmanager
async def database(url: str, fault: Fault, folder: Path) -> AsyncIterator[str]:
    """An empty one for the replicas of a fault: at the PostgreSQL of the URL, or a file in the folder."""
    if fault.file:
        yield f"sqlite:{folder / 'a2a.db'}"
        return
    async with postgres_url(url) as place:
        yield place


@asynccontextmanager
async def reached(url: str, fault: Fault, chance: random.Random) -> AsyncIterator[tuple[str, Lag | None]]:
    """The database as replicas reach it that a fault is for."""
    if not fault.late:
        yield url, None
        return
    async with lagging(url, chance) as (place, lag):
        yield place, lag


async def suffered(scene: Scene, *faults: Iterable[Fault]) -> list[Kept]:
    """Let faults happen under load, of each series one after the other; the tasks there were, checked."""
    steady = True

    async def strikes(series: Iterable[Fault]) -> None:
        nonlocal steady
        for fault in series:
            steady = steady and fault.steady
            await fault.strike(scene)

    found = await storm(scene, lambda: asyncio.gather(*map(strikes, faults)))
    if steady:
        odd = [task[:4] for task in found if (task.state, task.attempt) != (v1.TASK_STATE_COMPLETED, 1)]
        assert not odd, odd
    return found
