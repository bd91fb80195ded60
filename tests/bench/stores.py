"""`python -m tests.bench.stores`: what a store costs and what replicas that share one are worth; tables, and JSON.

Laws: services are private and end with the run; servers are processes of their own on one core, the client has another.
Rounds go through everything in one order and then in the other, and medians count. No test depends on a time. The wire
is gRPC throughout: it is stores that are compared.
"""

import argparse
import asyncio
import json
import os
import re
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import asyncpg
import grpc.aio
import uvloop
from a2a_stubs import v1, v1_grpc

from a2a_grpc.client import Client
from scripts import services
from tests.bench import lists, page, stores_page
from tests.bench.__main__ import cores, machine
from tests.faults.processes import Serving, channel_to, ended, message, serving

AGENT: Final = "tests.bench.servers:agent"
AT_ONCE: Final = 32
PAUSE: Final = 0.02
"""Seconds between the chunks whose way is timed, as between the tokens of a model."""
LEASE: Final = 2.0
WRITTEN: Final = "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')"
SEND, STREAM = "/lf.a2a.v1.A2AService/SendMessage", "/lf.a2a.v1.A2AService/SendStreamingMessage"

SERVICES: Final = {"PostgreSQL": ("postgres", "postgresql"), "NATS": ("nats-server", "nats-server")}
"""What replicas stand on: its program, and the Debian package that has it."""

Row = dict[str, Any]


class Place(NamedTuple):
    """A server that is measured. store: names what it keeps tasks in; database: the process whose children keep them, 0
    for none."""

    store: str
    server: Serving
    channel: grpc.aio.Channel
    database: int

    def cpu(self) -> float:
        """CPU seconds of the server so far."""
        return cpu_of(self.server.process.pid)[0]

    def written(self) -> int:
        """Bytes that the server has handed to the disk so far."""
        return int(Path(f"/proc/{self.server.process.pid}/io").read_text().split("write_bytes: ")[1].split()[0])

    async def send(self, text: str) -> None:
        """One message, answered."""
        await self.channel.unary_unary(SEND)(message(text).SerializeToString())

    def stream(self, text: str) -> Any:
        """The events of one message, as bytes."""
        return self.channel.unary_stream(STREAM)(message(text).SerializeToString())

    async def drained(self, text: str) -> int:
        """The number of events of one message."""
        return len([event async for event in self.stream(text)])


def cpu_of(pid: int) -> tuple[float, int]:
    """The CPU seconds of a process so far, and its parent."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), int(fields[1])


def cpu_below(parent: int) -> float:
    """The CPU seconds of the children of a process so far, as the server processes of PostgreSQL are."""
    total = 0.0
    for each in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            spent, above = cpu_of(int(each.name))
            total += spent if above == parent else 0
    return total


@contextmanager
def service(folder: Path, program: str, package: str, make: Callable[[services.Service], str]) -> Iterator[str]:
    """A private service in a folder; its address."""
    found = services.Service(package, services.find(program, package))
    found.folder, found.log = folder / package, folder / package / "log"
    found.folder.mkdir()
    try:
        yield make(found)
    finally:
        found.stop(signal.SIGINT)


@asynccontextmanager
async def place(folder: Path, name: str, store: str, *words: str) -> AsyncIterator[Place]:
    """A server with a store, on the core of the servers."""
    async with serving(folder, "--store", store, *words, agent=AGENT) as server, channel_to(server.grpc) as channel:
        if (core := cores()[0]) is not None:
            os.sched_setaffinity(server.process.pid, {core})
        database = 0
        if "@" in store:
            connection = await asyncpg.connect(store)
            database = cpu_of(await connection.fetchval("SELECT pg_backend_pid()"))[1]
            await connection.close()
        yield Place(name, server, channel, database)


async def in_turns(places: Sequence[Place], rounds: int, sample: Callable[[Place], Awaitable[Row]]) -> dict[str, Row]:
    """The medians of the samples of each place."""
    found: dict[str, list[Row]] = {each.store: [] for each in places}
    for number in range(rounds):
        for each in reversed(places) if number % 2 else places:
            found[each.store].append(await sample(each))
    return {store: {key: median(row[key] for row in rows) for key in rows[0]} for store, rows in found.items()}


# -- what is measured: each gives the rows of a table


async def events(places: Sequence[Place], args: argparse.Namespace) -> list[Row]:
    """Events of one stream at a time, written as fast as the store takes them, and of many written one by one."""
    rows = []
    for text, lanes in [(f"chunks {chunks}", 1) for chunks in args.chunks] + [("paced 200", 16)]:

        async def sample(each: Place, text: str = text, lanes: int = lanes) -> Row:
            return await fired(each, args.seconds, lanes, lambda: each.drained(text))

        found = await in_turns(places, args.rounds, sample)
        rows += [{"streams": lanes, "each": text, "store": store, **row} for store, row in found.items()]
    return rows


async def sends(places: Sequence[Place], rounds: int, seconds: float) -> list[Row]:
    """SendMessage, answered by a task with one artifact."""

    async def once(each: Place) -> int:
        await each.send("echo hello")
        return 1

    found = await in_turns(places, rounds, lambda each: fired(each, seconds, AT_ONCE, lambda: once(each)))
    memory = found["memory"]["per s"]
    return [{"store": store, **row, "of memory": row["per s"] / memory} for store, row in found.items()]


async def fired(each: Place, seconds: float, lanes: int, call: Callable[[], Awaitable[int]]) -> Row:
    """So many calls at a time for some seconds: what comes of them a second, and CPU for each, in us."""
    done, begun, cpu, below = 0, time.perf_counter(), each.cpu(), cpu_below(each.database)

    async def lane() -> None:
        nonlocal done
        while True:
            units = await call()
            done += units
            if time.perf_counter() > begun + seconds:
                return

    await asyncio.gather(*(lane() for _ in range(lanes)))
    wall = time.perf_counter() - begun
    behind = (cpu_below(each.database) - below) * 1e6 / done if each.database else 0.0
    return {"per s": done / wall, "CPU us": (each.cpu() - cpu) * 1e6 / done, "database CPU us": behind}


async def weight(places: Sequence[Place], url: str, chunks: int) -> list[Row]:
    """Bytes written for each chunk of 16 characters: by PostgreSQL into its log, or by the process to the disk."""
    rows, connection = [], await asyncpg.connect(url)
    for each in (found for found in places if found.store != "memory"):
        row: Row = {"store": each.store}
        for text, lanes in ((f"chunks {chunks}", 1), ("paced 200", 16)):
            before = each.written(), await connection.fetchval(WRITTEN)
            amounts = await asyncio.gather(*(each.drained(text) for _ in range(lanes)))
            after = each.written(), await connection.fetchval(WRITTEN)
            which = each.store == "postgresql"
            row[f"bytes, {lanes} x {text}"] = float(after[which] - before[which]) / sum(amounts)
        rows.append(row)
    await connection.close()
    return rows


async def lags(folder: Path, url: str, buses: dict[str, str], rounds: int, ticks: int) -> list[Row]:
    """Ms from the moment when an agent's function makes a chunk to that when a reader has it."""
    rows = []
    for name, bus in buses.items():
        async with AsyncExitStack() as stack:
            words = ("--bus", bus) if bus else ()
            one, two = [await stack.enter_async_context(place(folder, name, url, *words)) for _ in range(2)]
            found: dict[str, list[float]] = {"the same": [], "another": []}
            for _ in range(rounds):
                ticking = one.stream(f"ticks {ticks} {PAUSE}")
                first = v1.StreamResponse.FromString(await ticking.read())
                request = v1.SubscribeToTaskRequest(id=first.task.id)
                other = v1_grpc.A2AServiceStub(two.channel).SubscribeToTask(request)
                same, another = await asyncio.gather(ticked(ticking), ticked(other))
                found["the same"] += same
                found["another"] += another
        for where, times in found.items():
            rows.append({"hints by": name, "read at": f"{where} replica", **lists.spread(times)})
    return rows


async def ticked(call: Any) -> list[float]:
    """Seconds that the chunks of an agent that writes down the time were on their way."""
    times = []
    while (answer := await call.read()) is not grpc.aio.EOF:
        now = time.monotonic()
        event = v1.StreamResponse.FromString(answer) if isinstance(answer, bytes) else answer
        for part in event.artifact_update.artifact.parts:
            times.append(now - float(part.text))
    return times


async def takeover(folder: Path, url: str, rounds: int) -> list[Row]:
    """Seconds from the end of a replica by force until its task is settled, as another replica tells."""
    times = []
    for _ in range(rounds):
        async with AsyncExitStack() as stack:
            words = ("", url, "--lease", str(LEASE))
            one, two = [await stack.enter_async_context(place(folder, *words)) for _ in range(2)]
            task = v1.StreamResponse.FromString(await one.stream(f"ticks 100000 {PAUSE}").read()).task.id
            async with Client(f"grpc://{two.server.grpc}") as agent:
                await asyncio.sleep(LEASE)  # in the middle of a turn that renews its lease
                one.server.process.kill()
                begun = time.perf_counter()
                await ended(agent, task)
                times.append(time.perf_counter() - begun)
    return [{"lease s": LEASE, "median s": median(times), "most s": max(times)}]


async def listed(url: str, args: argparse.Namespace) -> list[Row]:
    """ListTasks, see lists.py: with many owners, and with one who has everything."""
    rows: list[Row] = []
    for name, tasks, owners in (
        ("many", args.tasks, args.owners),
        ("few", args.tasks // 10, 1),
        ("one", args.tasks, 1),
    ):
        connection = await asyncpg.connect(url)
        await connection.execute(f"CREATE SCHEMA {name}")
        await lists.fill(place := f"{url}?search_path={name}", tasks, owners)
        pages = args.pages if owners > 1 else -(-args.pages // 8)
        rows += [{"tasks": tasks, "owners": owners, **row} for row in await lists.measure(place, owners, pages, 1)]
        await connection.execute(f"SET client_min_messages = error; DROP SCHEMA {name} CASCADE")
        await connection.close()
    return rows


# -- the run


def releases() -> str:
    """Which releases of services are measured."""
    told = {
        name: subprocess.check_output([services.find(*program), "--version"], text=True)
        for name, program in SERVICES.items()
    }
    return ", ".join(f"{name} {found[0]}" for name, text in told.items() if (found := re.search(r"\d+(\.\d+)+", text)))


def shown(title: str, rows: Sequence[Row]) -> str:
    """Rows as a table."""
    head = list(rows[0])
    lines = [[_short(value) for value in row.values()] for row in rows]
    table = (f"| {' | '.join(line)} |" for line in [head, ["---"] * len(head), *lines])
    return "\n".join(["", f"### {title}", "", *table])


def _short(value: Any) -> str:
    return f"{value:.{0 if value >= 100 else 2}f}" if isinstance(value, float) else str(value)


async def run(args: argparse.Namespace, folder: Path) -> dict[str, list[Row]]:
    """Measure what is asked for, and print it."""
    found: dict[str, list[Row]] = {}

    async def part(name: str, work: Callable[[], Awaitable[list[Row]]]) -> None:
        if args.only in name:
            found[name] = await work()
            print(shown(name, found[name]), flush=True)

    with ExitStack() as stack:
        url = stack.enter_context(service(folder, *SERVICES["PostgreSQL"], services.postgres))
        nats = stack.enter_context(service(folder, *SERVICES["NATS"], services.nats))
        async with AsyncExitStack() as servers:
            await part("lists", lambda: listed(url, args))
            stores = {"memory": "memory:", "sqlite": f"sqlite:{folder / 'bench.db'}", "postgresql": url}
            wanted = any(args.only in name for name in ("events", "sends", "weight"))
            pairs = stores.items() if wanted else ()
            places = [await servers.enter_async_context(place(folder, *pair)) for pair in pairs]
            await part("events", lambda: events(places, args))
            await part("sends", lambda: sends(places, args.rounds, args.seconds))
            await part("weight", lambda: weight(places, url, max(args.chunks)))
        await part("lags", lambda: lags(folder, url, {"PostgreSQL": "", "NATS": nats}, args.rounds, args.ticks))
        await part("takeover", lambda: takeover(folder, url, args.rounds))
    return found


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.stores", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="how often each is measured, default 3")
    parser.add_argument("--seconds", type=float, default=2.0, help="how long each time, default 2")
    parser.add_argument("--chunks", type=int, nargs="+", default=[100, 1_000, 10_000], help="lengths of streams")
    parser.add_argument("--ticks", type=int, default=400, help="chunks whose way is timed in each round, default 400")
    parser.add_argument("--tasks", type=int, default=1_000_000, help="tasks that are listed, default a million")
    parser.add_argument("--owners", type=int, default=1_000, help="owners of them, default a thousand")
    parser.add_argument("--pages", type=int, default=400, help="pages that are read of each kind, default 400")
    parser.add_argument("--only", default="", metavar="TEXT", help="only parts with this in their name")
    parser.add_argument("--page", action="store_true", help="write the tables into docs/scaling.md, too")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything there, too")
    args = parser.parse_args()
    about = machine() | {"services": releases(), "rounds": args.rounds, "seconds": args.seconds}
    print(*(f"- {name}: {value}" for name, value in about.items()), sep="\n", flush=True)
    if (core := cores()[1]) is not None:
        os.sched_setaffinity(0, {core})
    with TemporaryDirectory() as folder:
        os.chmod(folder, 0o711)  # PostgreSQL runs as a user of its own, from a folder below
        found = uvloop.run(run(args, Path(folder)))
    if args.json:
        args.json.write_text(json.dumps({"about": about, "rows": found}))
    if args.page:
        place, parts, needs = stores_page.PAGE, stores_page.PARTS, stores_page.NEEDS
        place.write_text(page.written(place.read_text(), {"about": about, **found}, parts, needs))


if __name__ == "__main__":
    main()
