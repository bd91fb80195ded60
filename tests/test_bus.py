"""What a bus between processes does with hints: joins them, survives its service, and says when it cannot."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import asyncpg
import pytest

from a2a_grpc.config import OptionError, Options
from a2a_grpc.opening import open_bus
from a2a_grpc.tasks.bus import Bus, LocalBus
from a2a_grpc.tasks.bus_remote import RemoteBus
from tests.stores import nats_url, postgres_url
from tests.turns import until

Heard = list[tuple[str, int]]


@pytest.fixture(params=["postgresql", "nats"])
async def buses(request: pytest.FixtureRequest) -> AsyncIterator[list[Bus]]:
    """Three ends of one bus."""
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(postgres_url())
        url = nats_url(url) if request.param == "nats" else url
        made = [open_bus(Options(store="memory:", bus=url)) for _ in range(3)]
        for bus in made:
            await bus.open()
            stack.push_async_callback(bus.close)
        yield made


def hear(bus: Bus) -> Heard:
    heard: Heard = []
    bus.listen(lambda task_id, sequence: heard.append((task_id, sequence)))
    return heard


async def test_hints_reach_this_process_at_once_and_the_others_once(buses: list[Bus]) -> None:
    heard = [hear(bus) for bus in buses]
    buses[0].publish("t", 3)
    assert heard == [[("t", 3)], [], []]
    await until(lambda: heard[1] and heard[2])
    buses[1].publish("end", 1)
    await until(lambda: all(("end", 1) in each for each in heard))
    assert heard[0] == heard[2] == [("t", 3), ("end", 1)]


async def test_many_hints_of_a_task_become_few_and_the_last_one_comes(buses: list[Bus]) -> None:
    heard = hear(buses[1])
    for sequence in range(1, 1001):
        buses[0].publish("t", sequence)
        if sequence % 100 == 50:
            buses[0].publish("t", 0)
            await asyncio.sleep(0)
    await until(lambda: ("t", 1000) in heard)
    assert ("t", 0) in heard, "a look at a cancel request is not lost in newer events"
    assert len(heard) < 50
    numbers = [sequence for _, sequence in heard if sequence]
    assert numbers == sorted(numbers)


async def test_more_tasks_than_one_message_holds_are_all_told(buses: list[Bus]) -> None:
    heard = hear(buses[2])
    names = {f"{index:036}" for index in range(500)}
    for name in names:
        buses[0].publish(name, 2**40)
    await until(lambda: {name for name, _ in heard} == names)
    assert len(heard) == 500


async def test_listening_goes_on_after_the_connection_broke() -> None:
    async with postgres_url() as url:
        one, two = open_bus(Options(bus=url)), open_bus(Options(bus=url))
        heard = hear(two)
        await one.open()
        await two.open()
        connection = await asyncpg.connect(url)
        ours = "pid <> pg_backend_pid() AND query LIKE '%' || $1 || '%'"
        name = await connection.fetchval("SELECT 'a2a_' || left(md5(current_schema()), 16)")
        killed = await connection.fetch(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {ours}", name)
        assert len(killed) == 2
        await connection.close()
        sequence = 0
        while not heard:
            sequence += 1
            one.publish("t", sequence)
            await asyncio.sleep(0.05)
        await one.close()
        await two.close()


async def test_a_failing_carrier_is_told_once_and_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    class Failing:
        tries = 0

        async def open(self, receive: Any) -> None:
            self.receive = receive

        async def close(self) -> None:
            pass

        async def send(self, message: bytes) -> None:
            self.tries += 1
            if self.tries != 3:
                raise ConnectionError("cut")

    carrier = Failing()
    bus = RemoteBus(carrier)
    heard = hear(bus)
    await bus.open()
    with caplog.at_level(logging.WARNING):
        for tries in range(1, 5):
            bus.publish("t", tries)
            await until(lambda: carrier.tries == tries)  # noqa: B023
        assert [record.levelname for record in caplog.records] == ["WARNING"] * 2
        carrier.receive(b"nonsense")
        carrier.receive(b'["other", 7]')
    assert len(caplog.records) == 4
    assert heard == [("t", tries) for tries in range(1, 5)]
    await bus.close()
    bus.publish("t", 9)
    assert carrier.tries == 4


async def test_who_names_nats_otherwise_is_told_nothing() -> None:
    async with postgres_url() as database, AsyncExitStack() as stack:
        names = [nats_url(database), nats_url(database), f"{nats_url(database)}.other", os.environ["A2A_NATS_URL"]]
        heard = []
        for url in names:
            bus = open_bus(Options(store="memory:", bus=url))
            await bus.open()
            stack.push_async_callback(bus.close)
            heard.append((bus, hear(bus)))
        for number, (bus, _) in enumerate(heard):
            bus.publish(f"t{number}", 1)
        for number, (_, told) in enumerate(heard):
            there = {f"t{number}"} if number > 1 else {"t0", "t1"}
            await until(lambda: there <= {task for task, _ in told})  # noqa: B023
            assert {task for task, _ in told if task in {"t0", "t1", "t2", "t3"}} == there
    with pytest.raises(OptionError, match="bus: 'a b'"):
        open_bus(Options(store="memory:", bus="nats://127.0.0.1:1/a b"))


@pytest.mark.parametrize("url", ["postgresql://127.0.0.1:1/a2a", "nats://127.0.0.1:1"])
async def test_a_bus_that_is_not_there_is_told(url: str) -> None:
    bus = open_bus(Options(bus=url))
    with pytest.raises(ConnectionError, match=r"no hints through .*: ."):
        await bus.open()
    await bus.close()


async def test_the_store_says_which_bus_unless_an_option_does() -> None:
    assert isinstance(open_bus(Options(store="memory:")), LocalBus)
    assert isinstance(open_bus(Options(store="postgresql://h/d")), RemoteBus)
    with pytest.raises(OptionError, match=r"bus must start with one of postgresql:, nats:, not pigeon:"):
        open_bus(Options(bus="pigeon://loft"))
