"""`python -m tests.bench`: start the servers, measure in turns, print a table, write JSON if asked to.

Laws: servers share one core and the client has another, where the system lets one choose. Everything that is compared
is measured in turns, in one order and then in the other, and the median of the ratios of the rounds counts. plan.py
says what is measured, load.py how, servers.py on what; connections.py and
programs.py are the clients. No test depends on a time.
"""

import argparse
import base64
import json
import os
import platform
import time
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Final

import uvloop
from a2a_stubs import v1

from a2a_grpc.bindings import jsonrpc, rest
from a2a_grpc.call import GRPC, JSONRPC, V1
from tests.bench import page
from tests.bench.curves import about_curves
from tests.bench.idle import about_idle
from tests.bench.load import Battery, Sample, message_for, request_for
from tests.bench.plan import BELOW, GET, LIST, PREPARED, SCENARIOS, STREAM, Load, Ratio, groups, loads
from tests.bench.plan import STORED as LISTED
from tests.bench.process import Process, cores
from tests.bench.readers import about_readers
from tests.bench.servers import OFFICIAL
from tests.hosts import ENVOY

STORED: Final = 8
"""Tasks that calls about stored tasks ask for in turns."""

GATEWAYS: Final = {"gateway": GRPC, "apart": GRPC, "over-http": JSONRPC}
"""Servers that are gateways to `memory`, and the wire on which they call it."""

LIBRARIES: Final = ("grpcio", "aiohttp", "protobuf", "orjson", "uvloop")

HEAD: Final = (
    "| subject | base | wire | rate/s | base/s | ratio | from..to | goal | CPU us | base us | CPU ratio | p50 ms |"
    " p99/p50 | client |",
    "| --- | --- | --- | ---: | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
)


class Bench:
    """The servers of a run. args: as on the command line; folder: for files that are not kept."""

    def __init__(self, args: argparse.Namespace, folder: Path) -> None:
        self._args = args
        self._folder = folder
        self._core, self._own = cores()
        if self._own is not None:
            os.sched_setaffinity(0, {self._own})
        self._servers: dict[str, Process] = {}
        self._start("memory")

    def _start(self, name: str, *words: str) -> None:
        """Start a server, once; those with many tasks are filled later."""
        if name == "sqlite":
            words = (str(self._folder / "bench.db"),)
        if name in GATEWAYS:
            host = self._servers["memory"].host(GATEWAYS[name])
            words = (host if GATEWAYS[name] == GRPC else f"http://{host}",)
        if name not in self._servers:
            core = self._own if name == "apart" else self._core
            kind = "gateway" if name in GATEWAYS else "memory" if name == "listed" else name
            self._servers[name] = Process(core, kind, *words)

    def stop(self) -> None:
        """End the servers."""
        for server in self._servers.values():
            server.stop()

    async def run(self) -> list[dict[str, Any]]:
        """Measure everything; prints rows as they are ready."""
        left_out = set() if ENVOY else {"envoy"}
        left_out |= {
            name for name, (variable, *_) in OFFICIAL.items() if not (self._args.full and variable in os.environ)
        }
        plan = [
            [row for row in ratios if not {row.subject.server, row.base.server} & left_out]
            for ratios in groups(self._args.only)
        ]
        wanted = [load for ratios in plan for load in loads(ratios)]
        for name in dict.fromkeys(load.server for load in wanted if load.server not in PREPARED):
            self._start(name)
            if name == "listed":
                battery = await self._open(Load(name, "echo", JSONRPC))
                await battery.fire(0, LISTED)
                battery.close()
        await self._prepare(wanted)
        print(*HEAD, sep="\n", flush=True)
        return [row for ratios in plan for row in await self._group(ratios)]

    async def _prepare(self, wanted: Iterable[Load]) -> None:
        """Learn from our own server what the bare one has to answer, then start that."""
        known = {}
        for load in {load for load in wanted if load.server in PREPARED}:
            scenario = SCENARIOS[load.scenario]
            battery = await self._open(load._replace(server="listed" if scenario.operation == LIST else "memory"))
            battery.close()
            known[_path(load)] = {
                "operation": scenario.operation if load.wire == GRPC else "",
                "stream": scenario.operation == STREAM,
                "media": "text/event-stream" if scenario.operation == STREAM else "application/json",
                "answers": [base64.b64encode(answer).decode() for answer in battery.answers],
            }
        file = self._folder / "answers.json"
        file.write_text(json.dumps(known))
        for name in PREPARED:
            self._start(name, str(file))

    async def _open(self, load: Load) -> Battery:
        server = self._servers[load.server]
        host, bare = server.host(load.wire), load.server in PREPARED
        stored = SCENARIOS[load.scenario].operation == GET
        ids = [await self._store(load) for _ in range(STORED)] if stored and not bare else [""]
        ids = ["a"] if bare else ids
        below = BELOW.get(load.server, {}).get(load.wire, "")
        made = [request_for(load, message_for(load, name), host, _path(load) if bare else "", below) for name in ids]
        battery = Battery(load, made, server.cpu)
        await battery.open(host)
        return battery

    async def _store(self, load: Load) -> str:
        """The id of a new task."""
        load = load._replace(scenario="echo", version=V1)
        host, operation = self._servers[load.server].host(load.wire), SCENARIOS["echo"].operation
        below = BELOW.get(load.server, {}).get(load.wire, "")
        battery = Battery(load, [request_for(load, message_for(load), host, below=below)], float)
        await battery.open(host)
        battery.close()
        return _task_id(load.wire, operation, battery.answers[0])

    async def _group(self, ratios: list[Ratio]) -> list[dict[str, Any]]:
        batteries = {load: await self._open(load) for load in loads(ratios)}
        for battery in batteries.values():
            await battery.fire(self._args.seconds / 4)
        samples: dict[Load, list[Sample]] = {load: [] for load in batteries}
        for number in range(self._args.rounds):
            order = list(batteries)
            for load in reversed(order) if number % 2 else order:
                samples[load].append(await batteries[load].fire(self._args.seconds))
        for battery in batteries.values():
            battery.close()
        rows = [
            _row(ratio, *(samples[each] for each in (ratio.subject, ratio.base, ratio.unit) if each))
            for ratio in ratios
        ]
        for row in rows:
            print(_line(row), flush=True)
        return rows


def _path(load: Load) -> str:
    return f"/{load.scenario}/{load.wire}".replace(" ", "-").replace("+", "-")


def _task_id(wire: str, operation: str, answer: bytes) -> str:
    """The id of the task in an answer to a message."""
    if wire == GRPC:
        return v1.SendMessageResponse.FromString(answer).task.id
    found: Any = jsonrpc.result(operation, answer) if wire == JSONRPC else rest.result(operation, 200, {}, answer)
    return str(found.task.id)


def _row(ratio: Ratio, subject: list[Sample], base: list[Sample], unit: list[Sample] | None = None) -> dict[str, Any]:
    pairs = list(zip(subject, base, strict=True))
    shares = [one.rate / other.rate for one, other in pairs]
    if unit is not None:
        shares = [(one.middle - other.middle) / bare.middle for (one, other), bare in zip(pairs, unit, strict=True)]
    return {
        "subject": str(ratio.subject),
        "base": str(ratio.base) + (f", {ratio.base.wire}" if ratio.base.wire != ratio.subject.wire else ""),
        "wire": ratio.subject.wire,
        "rate": median(sample.rate for sample in subject),
        "base_rate": median(sample.rate for sample in base),
        "ratio": median(shares),
        "lowest": min(shares),
        "highest": max(shares),
        "goal": ratio.goal,
        "added": unit is not None,
        "server_us": median(sample.server_us for sample in subject),
        "base_server_us": median(sample.server_us for sample in base),
        "cpu_ratio": median(other.server_us / one.server_us for one, other in pairs),
        "middle_ms": median(sample.middle for sample in subject),
        "base_middle_ms": median(sample.middle for sample in base),
        "slow_ms": median(sample.slow for sample in subject),
        "client_busy": max(sample.client_busy for sample in (*subject, *base)),
    }


def _line(row: dict[str, Any]) -> str:
    added = "+" * row["added"]
    goal = "" if row["goal"] is None else f"{added}{row['goal']:.2f}"
    return (
        f"| {row['subject']} | {row['base']} | {row['wire']} | {row['rate']:.0f} | {row['base_rate']:.0f} |"
        f" {added}{row['ratio']:.2f} | {row['lowest']:.2f}..{row['highest']:.2f} | {goal} | {row['server_us']:.0f} |"
        f" {row['base_server_us']:.0f} | {row['cpu_ratio']:.2f} | {row['middle_ms']:.2f} |"
        f" {row['slow_ms'] / row['middle_ms']:.1f} | {row['client_busy']:.2f} |"
    )


def machine() -> dict[str, Any]:
    """What the numbers depend on besides the code."""
    return {
        "date": time.strftime("%Y-%m-%d"),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "load": [round(value, 1) for value in os.getloadavg()],
        "python": platform.python_version(),
        "libraries": {name: version(name) for name in LIBRARIES},
    }


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--full", action="store_true", help="5 rounds of 2 s instead of 2 of 0.3 s")
    parser.add_argument("--rounds", type=int, help="how often each load is measured")
    parser.add_argument("--seconds", type=float, help="how long each time")
    parser.add_argument("--only", default="", metavar="TEXT", help="only scenarios whose name has this in it")
    parser.add_argument("--page", action="store_true", help="write the tables into docs/performance.md, too")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything there, too")
    args = parser.parse_args()
    args.rounds = args.rounds or (5 if args.full else 2)
    args.seconds = args.seconds or (2.0 if args.full else 0.3)
    about = machine()
    found: dict[str, Any] = {"about": about, "rounds": args.rounds, "seconds": args.seconds}
    print(*(f"- {name}: {value}" for name, value in about.items()), "", sep="\n")
    with TemporaryDirectory() as folder:
        bench = Bench(args, Path(folder))
        try:
            found["rows"] = uvloop.run(bench.run())
        finally:
            bench.stop()
        if args.full:
            found["idle"] = about_idle()
            found["readers"] = uvloop.run(about_readers(Path(folder)))
            found["curves"] = uvloop.run(about_curves())
            print(*("\n" + page.PARTS[name](found) for name in ("idle", "readers", "curves")), sep="", flush=True)
            print(*(f"bends upwards: {curve}" for curve in page.bent(found)), sep="\n", flush=True)
    if args.json:
        args.json.write_text(json.dumps(found))
    if args.page:
        page.PAGE.write_text(page.written(page.PAGE.read_text(), found))


if __name__ == "__main__":
    main()
