"""What only a store in PostgreSQL must do: share itself, know the outcome of every commit, come back after a restart.

Laws: nothing here repeats test_store.py. Connections break where a test says so, in a relay between store and server.
"""

import asyncio
import os
import re
import signal
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any
from unittest.mock import AsyncMock
from urllib.parse import urlsplit

import asyncpg
import pytest
from a2a_stubs import v1

from a2a_grpc.tasks import schema
from a2a_grpc.tasks.postgres import PostgresStore
from a2a_grpc.tasks.start import now_ms
from a2a_grpc.tasks.store import (
    Change,
    Conflict,
    Dedupe,
    Duplicate,
    LeaseTaken,
    Retention,
    Snapshot,
    StoreError,
    TaskQuery,
)
from scripts import services
from tests.faults.processes import seeded
from tests.stores import ANN, ASKING, COMPLETED, NOW, config, create, due, events, postgres_url
from tests.test_sqlite import chunk, whole


@pytest.fixture
async def url() -> AsyncIterator[str]:
    async with postgres_url() as made:
        yield made


@asynccontextmanager
async def opened(*urls: str, **more: Any) -> AsyncIterator[list[PostgresStore]]:
    """A store for each address, as different processes would have."""
    stores = [PostgresStore(url, **{"connections": 4, **more}) for url in urls]
    await asyncio.gather(*(store.open() for store in stores))
    yield stores
    await asyncio.gather(*(store.close() for store in stores))


async def query(url: str, statement: str, *values: Any) -> list[Any]:
    connection = await asyncpg.connect(url)
    try:
        found: list[Any] = await connection.fetch(statement, *values)
        return found
    finally:
        await connection.close()


# -- opening


@pytest.mark.requirement("BL-48")
async def test_replicas_that_start_at_once_on_an_empty_database_agree(url: str) -> None:
    async with opened(*[url] * 5) as stores:
        await create(stores[0])
        for store in stores:
            assert await store.task(ANN, "t") is not None
    assert await query(url, "SELECT version FROM schema") == [(len(schema.MIGRATIONS),)]


async def test_a_running_replica_goes_on_when_a_newer_one_adds_to_the_tables(url: str) -> None:
    async with opened(url) as [store]:
        token = await create(store)
        change = Change(ANN, "t", 1, NOW, token=token, events=events(1, "before"))
        await store.commit(change)
        for table in ("tasks", "snapshots", "events", "dedupe", "contexts", "push_configs"):
            await query(url, f"ALTER TABLE {table} ADD COLUMN newer TEXT NOT NULL DEFAULT ''")
        await query(url, "UPDATE schema SET version = version + 1")
        await create(
            store, "u", dedupe=Dedupe("m", b"d", NOW * 2, "u"), memory={"k": b"1"}, push_configs=[config("p", "u")]
        )
        await store.commit(Change(ANN, "t", 2, NOW, token=token, events=events(2, "after"), notify=3))
        assert [event.sequence for event in await store.events(ANN, "t", 0, 10)] == [1, 2, 3]
        assert (await store.tasks(ANN, TaskQuery())).total == 2
        assert await due(store) == {} and await store.seen(ANN, "m", NOW) is not None


async def test_a_newer_schema_is_refused_and_left_alone(url: str) -> None:
    store = PostgresStore(url)
    assert await store.schema() == 0
    await store.open()
    await store.close()
    assert await store.schema() == len(schema.MIGRATIONS)
    await query(url, "UPDATE schema SET version = 99")
    with pytest.raises(StoreError, match="has schema 99 and this release knows"):
        await store.open()
    assert await store.schema() == 99


@pytest.mark.requirement("BL-28")
async def test_a_server_that_is_not_there_is_told_without_the_password() -> None:
    store = PostgresStore("postgresql://me:secret@127.0.0.1:1/a2a")
    with pytest.raises(StoreError, match=re.escape("postgresql://127.0.0.1/a2a")) as told:
        await store.open()
    assert "secret" not in str(told.value)
    with pytest.raises(StoreError, match="is not open"):
        await store.task(ANN, "t")


async def test_a_server_that_goes_away_while_it_is_met_is_told_too(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    read = AsyncMock(side_effect=asyncpg.InternalClientError("cut"))
    monkeypatch.setattr("a2a_grpc.tasks.postgres_link.PostgresLink.read_clock", read)
    with pytest.raises(StoreError, match="cut"):
        await PostgresStore(url).open()


async def test_ids_may_hold_any_character(url: str) -> None:
    odd = "a\0b\x1a0c\x1a\U0001f600"
    async with opened(url) as [store]:
        await create(store, context_id=odd, push_configs=[config(odd)], dedupe=Dedupe(odd, b"", NOW + 9, "t"))
        row = await store.task(ANN, "t")
        assert row is not None and row.context_id == odd
        assert (await store.tasks(ANN, TaskQuery(context_id=odd))).total == 1
        assert [each.config_id for each in await store.push_configs(ANN, "t", "", 9) or ()] == [odd]
        assert await store.seen(ANN, odd, NOW) is not None
        assert await store.task(ANN, "\0") is None


# -- several replicas


@pytest.mark.requirement("OP-SEND-14", "BL-51", "BL-48")
async def test_of_equal_messages_at_several_replicas_one_makes_a_task(url: str) -> None:
    async with opened(*[url] * 3) as stores:
        for number in range(40):
            made = [
                store.commit(whole(f"{number}-{index}", dedupe=Dedupe(f"m{number}", b"", NOW + 9, f"{number}-{index}")))
                for index, store in enumerate(stores * 2)
            ]
            results = await asyncio.gather(*made, return_exceptions=True)
            [winner] = [index for index, result in enumerate(results) if result == 1]
            others = [result for result in results if result != 1]
            assert all(isinstance(each, Duplicate) for each in others), others
            assert {each.dedupe.task_id for each in others} == {f"{number}-{winner}"}
        assert (await stores[0].tasks(ANN, TaskQuery())).total == 40


@pytest.mark.requirement("BL-10", "BL-48")
async def test_of_claims_at_several_replicas_one_wins_and_the_others_write_nothing(url: str) -> None:
    async with opened(*[url] * 3) as stores:
        for number in range(40):
            name = f"t{number}"
            await create(stores[0], name, snapshot=Snapshot(ASKING, NOW))
            claims = [
                Change(
                    ANN, name, 1, NOW, events=events(1, holder), take=LeaseTaken(holder, NOW + 9), memory={holder: b""}
                )
                for holder in ("one", "two", "three")
            ]
            work = [store.commit(claim) for store, claim in zip(stores, claims, strict=True)]
            results = await asyncio.gather(*work, return_exceptions=True)
            assert sorted(isinstance(result, Conflict) for result in results) == [False, True, True]
            winner = claims[results.index(1)].take
            row = await stores[0].task(ANN, name)
            assert row is not None and winner is not None and row.holder == winner.holder and row.sequence == 2
        assert len(await stores[0].memory(ANN, "c")) <= 3


@pytest.mark.requirement("BL-48", "BL-08")
@pytest.mark.parametrize("hours", [-1, 1])
async def test_a_replica_whose_clock_is_wrong_takes_no_living_lease_and_gives_none_that_lasts(
    url: str, hours: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    shift, clock, now = hours * 3_600_000, time.time_ns, now_ms()
    async with opened(url, url) as [store, other]:
        await create(store, take=LeaseTaken("one", now + 20_000), push_configs=[config("p")], notify=1, now_ms=now)
        assert len(await store.due("one", now, now + 20_000, 9)) == 1
        monkeypatch.setattr(time, "time_ns", lambda: clock() + shift * 1_000_000)
        assert abs(other.now_ms() - now) < 10_000 < abs(now_ms() - now)
        assert await other.lost("two", other.now_ms(), 9) == []
        assert await other.due("two", other.now_ms(), other.now_ms() + 1, 9) == []
        with pytest.raises(Conflict):
            await other.commit(Change(ANN, "t", 1, other.now_ms(), take=LeaseTaken("two", other.now_ms() + 9)))
        taken = LeaseTaken("two", other.now_ms() + 60_000)
        assert await other.commit(Change(ANN, "t", 1, other.now_ms(), take=taken, over=True))
        await other.renew("two", other.now_ms() + 40_000, {"t": 2})
        monkeypatch.undo()
        assert await store.lost("one", now + 30_000, 9) == []
        [row] = await store.lost("one", now + 50_000, 9)
        assert abs(row.lease_until_ms - now - 40_000) < 10_000


@pytest.mark.requirement("BL-48", "BL-08")
async def test_a_lease_that_was_long_on_its_way_is_not_over_when_it_arrives(url: str) -> None:
    async with opened(url) as [store]:
        done = store._commits.submit(whole("t", take=LeaseTaken("me", now_ms() + 2000)))
        [job] = store._commits._waiting
        store._commits._waiting = [job._replace(since=job.since - 5)]
        await done
        assert await store.lost("you", now_ms() + 4000, 9) == []
        assert len(await store.lost("you", now_ms() + 8000, 9)) == 1


@pytest.mark.requirement("PUSH-14", "PUSH-18")
async def test_a_delivery_is_claimed_by_one_replica(url: str) -> None:
    async with opened(*[url] * 3) as stores:
        for index in range(30):
            await create(stores[0], f"t{index}", push_configs=[config("p", f"t{index}")], notify=1)
        found = await asyncio.gather(*(store.due("me", NOW, NOW + 1000, 10) for store in stores))
        claimed = [delivery.config.task_id for some in found for delivery in some]
        assert len(claimed) == len(set(claimed))
        while more := await stores[0].due("me", NOW, NOW + 1000, 10):
            claimed += [delivery.config.task_id for delivery in more]
        assert sorted(claimed) == sorted(f"t{index}" for index in range(30))
        assert await due(stores[1]) == {}


@pytest.mark.requirement("BL-44")
async def test_only_one_replica_trims_at_a_time(url: str) -> None:
    async with opened(url, url) as [store, other]:
        for index in range(20):
            await create(store, f"t{index}", snapshot=Snapshot(COMPLETED, NOW))
        connection = await asyncpg.connect(url)
        transaction = connection.transaction()
        await transaction.start()
        assert await connection.fetchval("SELECT pg_try_advisory_xact_lock(2, hashtext(current_schema()))")
        old = Retention(NOW + 1000, 1, 1, 100)
        assert await store.trim(old) == []
        await transaction.rollback()
        await connection.close()
        one, two = await asyncio.gather(store.trim(old), other.trim(old))
        assert sorted(one + two + await store.trim(old)) == sorted(f"t{index}" for index in range(20))


@pytest.mark.requirement("BL-44")
async def test_who_trims_keeps_the_others_from_it_as_long_as_it_does(url: str) -> None:
    async with opened(url, url) as [store, other]:
        old = Retention(NOW + 1000, 1, 1, 100, turn_ms=60_000)
        for number in range(3):
            await create(store, f"t{number}", snapshot=Snapshot(COMPLETED, NOW))
            assert await other.trim(old) == [] if number else True
            assert await store.trim(old) == [f"t{number}"]
        await create(store, "last", snapshot=Snapshot(COMPLETED, NOW))
        assert await other.trim(replace(old, turn_ms=0)) == ["last"]


@pytest.mark.requirement("BL-44", "OP-SEND-14")
async def test_a_wrong_clock_forgets_and_deletes_nothing_early(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = time.time_ns
    async with opened(url, url) as [store, other]:
        await create(store, dedupe=Dedupe("m", b"", now_ms() + 60_000, "t"), now_ms=now_ms())
        await store.commit(Change(ANN, "t", 1, now_ms(), snapshot=Snapshot(COMPLETED, now_ms())))
        monkeypatch.setattr(time, "time_ns", lambda: clock() + 3_600_000_000_000)
        assert await other.seen(ANN, "m", other.now_ms()) is not None
        assert await other.trim(Retention(other.now_ms(), 600_000, 600_000, 100)) == []
        again = Dedupe("m", b"", other.now_ms() + 60_000, "u")
        with pytest.raises(Duplicate):
            await other.commit(whole("u", dedupe=again))
        assert await other.seen(ANN, "m", other.now_ms() + 70_000) is None


@pytest.mark.requirement("BL-03")
async def test_concurrent_commits_fail_alone(url: str) -> None:
    async with opened(url) as [store]:
        await store.commit(whole("taken"))
        changes = [whole(f"t{index}" if index % 10 else "taken", dedupe=None) for index in range(300)]
        changes[55] = whole("t55", dedupe=None, memory={"k": "no bytes"})
        results = await asyncio.gather(*map(store.commit, changes), return_exceptions=True)
        kinds = [int if index % 10 else Conflict for index in range(300)]
        kinds[55] = asyncpg.DataError
        assert [type(result) for result in results] == kinds
        assert (await store.tasks(ANN, TaskQuery())).total == 1 + kinds.count(int)


async def test_a_caller_that_stops_waiting_leaves_a_whole_task(url: str) -> None:
    async with opened(url) as [store]:
        waiting = [asyncio.ensure_future(store.commit(whole(f"t{index}"))) for index in range(60)]
        await asyncio.sleep(0)
        for task in waiting[::2]:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        await store.commit(whole("after"))
        for index in range(60):
            row = await store.task(ANN, f"t{index}")
            assert len(await store.events(ANN, f"t{index}", 0, 9)) == (3 if row else 0)
            assert row or not index % 2


# -- connections that break


class Relay:
    """Between a store and its server: `cut` is asked of each piece from the store that holds `text`, once; True: it
    still reaches the server. Then every connection is cut before an answer."""

    def __init__(self, url: str) -> None:
        self._server = urlsplit(url)
        self._writers: set[asyncio.StreamWriter] = set()
        self.text = b""
        self.passes = True
        self.cuts = 0
        self.open = asyncio.Event()
        """Whether new connections reach the server; those that are there do."""
        self.open.set()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[str]:
        server = await asyncio.start_server(self._relay, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        try:
            yield self._server._replace(netloc=re.sub(r":\d+$", f":{port}", self._server.netloc)).geturl()
        finally:
            server.close()
            self.sever()

    def sever(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self.open.wait()
        up_reader, up = await asyncio.open_connection(self._server.hostname, self._server.port)
        self._writers |= {writer, up}
        with suppress(OSError):
            await asyncio.gather(self._pump(reader, up, watched=True), self._pump(up_reader, writer, watched=False))
        self._writers -= {writer, up}
        for each in (writer, up):
            each.transport.abort()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, watched: bool) -> None:
        while piece := await reader.read(1 << 16):
            if watched and self.text and self.text in piece:
                self.text, self.cuts = b"", self.cuts + 1
                if self.passes:
                    # The answer has nowhere to go; the server reads this, then the end.
                    writer.write(piece)
                    await writer.drain()
                    writer.write_eof()
                for other in self._writers - {writer}:
                    other.transport.abort()
                if not self.passes:
                    writer.transport.abort()
                return
            writer.write(piece)
            await writer.drain()
        raise ConnectionAbortedError


@pytest.mark.requirement("BL-48")
@pytest.mark.parametrize("reaches", [True, False], ids=["done", "not done"])
@pytest.mark.parametrize(("text", "light"), [(b"COMMIT", False), (b"chunk two", True), (b"BEGIN", False)])
async def test_a_connection_that_breaks_loses_and_doubles_nothing(
    url: str, text: bytes, light: bool, reaches: bool
) -> None:
    relay = Relay(url)
    async with relay.listening() as place, opened(place) as [store]:
        assert await store.commit(whole("t")) == 1
        await store.commit(Change(ANN, "t", 3, NOW, token=1, events=[chunk(4, "chunk one")]))
        await store.commit(Change(ANN, "t", 4, NOW, token=1, events=[chunk(5)], cancel=b""))
        relay.text, relay.passes = text, reaches
        change = Change(ANN, "t", 5, NOW, token=1, events=[chunk(6, "chunk two")], cancel=None if light else b"")
        assert await store.commit(change) == 1
        assert relay.cuts == 1
        assert [event.sequence for event in await store.events(ANN, "t", 0, 99)] == [1, 2, 3, 4, 5, 6]
        with pytest.raises(Conflict):
            await store.commit(change)


@pytest.mark.requirement("BL-48")
async def test_a_direct_reply_is_kept_once_when_the_connection_breaks_at_its_commit(url: str) -> None:
    relay = Relay(url)
    async with relay.listening() as place, opened(place) as [store]:
        for number in range(10):
            relay.text, relay.passes = b"COMMIT", bool(number % 2)
            await store.remember_reply(ANN, "c", [b"%d" % number], {}, Dedupe(f"m{number}", b"", NOW + 9), NOW)
        assert relay.cuts == 10
        assert await store.messages(ANN, "c", 99) == [b"%d" % number for number in range(10)]


async def stream(store: PostgresStore, name: str, length: int, told: Callable[[], None]) -> None:
    """A turn as the engine writes it: the task, chunks, the end."""
    assert await store.commit(whole(name)) == 1
    for expected in range(3, length):
        change = Change(ANN, name, expected, NOW, token=1, events=[chunk(expected + 1)])
        if not expected % 7:
            change.snapshot = Snapshot(v1.TASK_STATE_WORKING, NOW + expected)
        assert await store.commit(change) == 1
        told()
    end = Change(ANN, name, length, NOW, token=1, snapshot=Snapshot(COMPLETED, NOW + length), release=True)
    await store.commit(end)


async def check(store: PostgresStore, names: list[str], length: int) -> None:
    for name in names:
        found = await store.events(ANN, name, 0, length + 99)
        assert [event.sequence for event in found] == list(range(1, length + 1))
        row = await store.task(ANN, name)
        assert row is not None and (row.state, row.sequence, row.holder) == (COMPLETED, length, "")


@pytest.mark.requirement("BL-48")
async def test_killed_connections_lose_and_double_nothing(url: str) -> None:
    dice, name = seeded(), f"a2a-{uuid.uuid4().hex[:8]}"
    kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query <> '' AND application_name = $1"
    async with opened(f"{url}&application_name={name}") as [store]:
        names, told = [f"t{index}" for index in range(8)], asyncio.Event()
        work = asyncio.gather(*(stream(store, each, 150, told.set) for each in names))
        work.add_done_callback(lambda _: told.set())
        connection, killed = await asyncpg.connect(url), 0
        while not work.done():
            told.clear()
            killed += len(await connection.fetch(kill, name))
            await told.wait()  # on a busy machine too something gets through
            await asyncio.sleep(dice.random() / 50)
        await connection.close()
        await work
        assert killed > 10
        await check(store, names, 150)


@pytest.fixture
def cluster() -> Iterator[tuple[services.Service, str]]:
    """A PostgreSQL server of the test's own, which it may stop."""
    if not os.environ.get("A2A_POSTGRES_URL"):
        pytest.skip("needs PostgreSQL (make services)")
    service = services.Service(f"test-{uuid.uuid4().hex[:8]}", services.find("postgres", "postgresql"))
    service.folder.mkdir(parents=True)
    try:
        yield service, services.postgres(service)
    finally:
        service.stop(signal.SIGINT)


@pytest.mark.requirement("BL-48")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGQUIT], ids=["stopped", "crashed"])
async def test_turns_go_on_after_a_restart_of_the_server(
    cluster: tuple[services.Service, str], number: signal.Signals
) -> None:
    service, url = cluster
    async with opened(url, retry=60.0) as [store]:
        names, count = [f"t{index}" for index in range(5)], 0

        def told() -> None:
            nonlocal count
            count += 1

        work = asyncio.gather(*(stream(store, each, 200, told) for each in names))
        for reached in (100, 400):
            while count < reached:  # noqa: ASYNC110
                await asyncio.sleep(0.001)
            await asyncio.to_thread(service.end, number)
            await asyncio.to_thread(service.again)
        await work
        await check(store, names, 200)


@pytest.mark.requirement("BL-48")
async def test_a_commit_that_a_crash_has_lost_is_not_taken_for_another_with_its_number(
    cluster: tuple[services.Service, str],
) -> None:
    service, url = cluster
    relay = Relay(url)
    async with relay.listening() as place, opened(place, retry=60.0) as [store]:
        await store.commit(whole("before"))
        relay.text, relay.passes = b"COMMIT", False
        relay.open.clear()
        work = asyncio.ensure_future(store.commit(whole("t")))
        while not relay.cuts:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        await asyncio.to_thread(service.end, signal.SIGQUIT)
        await asyncio.to_thread(service.again)
        for _ in range(99):  # with the numbers that the server has given before the crash
            await query(url, "UPDATE schema SET version = version")
        relay.open.set()
        assert await work == 1
        assert [event.sequence for event in await store.events(ANN, "t", 0, 9)] == [1, 2, 3]


async def test_a_server_that_stays_away_is_a_fault_of_the_store_and_not_of_the_task(
    cluster: tuple[services.Service, str],
) -> None:
    service, url = cluster
    async with opened(url, retry=0.5) as [store]:
        await store.commit(whole("t"))
        await asyncio.to_thread(service.end, signal.SIGINT)
        for work in (store.commit(whole("u")), store.task(ANN, "t"), store.renew("me", NOW, {"t": 1})):
            with pytest.raises((OSError, asyncpg.PostgresError)):
                await work
        await asyncio.to_thread(service.again)
        assert await store.task(ANN, "t") is not None
        assert await store.commit(whole("u")) == 1
