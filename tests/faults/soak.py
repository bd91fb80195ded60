"""`make soak`: hundreds of rounds of each fault, then several at once by chance for some minutes.

Laws: load, faults and checks are those of storms.py; a run can be had again by the seed that it prints. Ends with the
first history that is not right, and with a verdict in any case: how many rounds of each fault were borne.
"""

import argparse
import asyncio
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import repeat
from pathlib import Path

from a2a_stubs import v1

from tests.faults.history import History, Kept
from tests.faults.storms import FAULTS, Fault, Scene, Services, database, own_services, reached, replicas, suffered
from tests.stores import postgres_url

CHANCE = "by chance"
SPELL = 60.0
"""Seconds that one set of replicas bears what comes by chance."""
BORNE: Counter[str] = Counter()
"""Rounds after which the history was right, by fault."""
STRIKES = {False: ("kill", "pause", "roll"), True: ("nats", "cut", "stop", "crash", "full")}
"""What may come by chance: of replicas, and of services beside it."""


def told(name: str, rounds: int, found: list[Kept], began: float) -> None:
    """Print what became of the tasks."""
    BORNE[name] += rounds
    states = Counter(f"{v1.TaskState.Name(task.state)[11:].lower()} {task.attempt}" for task in found)
    events, seconds = sum(len(task.log) for task in found), time.monotonic() - began
    print(f"{name}: {rounds} rounds, {len(found)} tasks, {events} events, {dict(states)}, {seconds:.0f} s", flush=True)


async def bear(chance: random.Random, services: Services, name: str, fault: Fault, *faults: Iterable[Fault]) -> None:
    """Let replicas as one fault wants them suffer others."""
    began, rounds = time.monotonic(), 0

    def counted(each: Iterable[Fault]) -> Iterator[Fault]:
        nonlocal rounds
        for one in each:
            yield one
            rounds += 1

    folder, bus = Path(tempfile.mkdtemp()), services.bus if fault.nats else ""
    async with (
        database(services.url, fault, folder) as url,
        reached(url, fault, chance) as (place, lag),
        replicas(folder, place, fault, chance, bus) as fleet,
    ):
        try:
            found = await suffered(Scene(fleet, url, services, lag), *map(counted, faults))
        except BaseException:
            print(f"{name}: not right after {rounds} rounds; logs are in {folder}", flush=True)
            raise
        told(name, rounds, found, began)
    shutil.rmtree(folder)


async def start(chance: random.Random, services: Services, rounds: int) -> None:
    """Three replicas start at once on an empty database, again and again."""
    began, found = time.monotonic(), list[Kept]()
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            place = postgres_url(services.url)
            async with place as url, replicas(Path(folder), url, FAULTS["roll"], chance) as fleet:
                history = History(fleet.pick)
                tasks = [(await history.send("count 3 0", tenant), tenant) for tenant in ("once", "again") * 2]
                await asyncio.gather(*(history.read(*task) for task in tasks))
                found += await history.check(url, fleet.ran)
    told("start", rounds, found, began)


async def chances(chance: random.Random, services: Services, minutes: float) -> None:
    """Everything that may be wrong at once, as chance wants it."""
    end = time.monotonic() + 60 * minutes
    while (now := time.monotonic()) < end:
        hours = tuple(chance.choice((-1, 0, 1)) for _ in range(3))
        fault = Fault(FAULTS["kill"].strike, 1.5, False, hours, chance.choice((0, 0.5, 1)), True, chance.random() < 0.5)

        def spell(names: tuple[str, ...], end: float = min(end, now + SPELL)) -> Iterator[Fault]:
            while time.monotonic() < end:
                yield FAULTS[chance.choice(names)]

        print(f"clocks {hours}, loss {fault.loss}, {'NATS' if fault.nats else 'NOTIFY'}", flush=True)
        await bear(chance, services, CHANCE, fault, *map(spell, STRIKES.values()))


async def soak(names: list[str], rounds: int, minutes: float, chance: random.Random) -> None:
    """All of it."""
    BORNE.update(dict.fromkeys(names, 0))
    with own_services() as services:
        for name in names:
            if name == "start":
                await start(chance, services, rounds)
            else:
                await bear(chance, services, name, FAULTS[name], repeat(FAULTS[name], rounds))
        await chances(chance, services, minutes)


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(prog="make soak", description="Let three replicas suffer, and check what is left.")
    parser.add_argument("--fault", action="append", choices=[*FAULTS, "start", "none"], help="default: each in turn")
    parser.add_argument("--rounds", type=int, default=100, help="of each fault, default 100")
    parser.add_argument("--minutes", type=float, default=5, help="of what comes by chance, default 5")
    parser.add_argument("--seed", type=int, default=int(os.environ.get("A2A_SEED") or random.randrange(1 << 32)))
    words = parser.parse_args()
    print(f"A2A_SEED={words.seed}", flush=True)
    names = [name for name in words.fault or [*FAULTS, "start"] if name != "none"]
    verdict = "NOT RIGHT, or broken off; borne were"
    try:
        asyncio.run(soak(names, words.rounds, words.minutes, random.Random(words.seed)))
        verdict = "all is right"
    finally:
        rounds = ", ".join(f"{name} {count}" for name, count in BORNE.items())
        print(f"{verdict}: {rounds or 'nothing'} rounds, A2A_SEED={words.seed}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
