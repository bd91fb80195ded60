"""What only a store in a file must do: outlive its process, keep others out, write in groups, survive its disk.

Laws: nothing here repeats test_store.py. Cost is asserted in bytes and transactions, never in time.
"""

import asyncio
import os
import re
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import closing
from itertools import count, pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from a2a_stubs import v1

from a2a_grpc.tasks import schema, sqlite_file
from a2a_grpc.tasks.sqlite import SQLiteStore
from a2a_grpc.tasks.store import (
    NEVER,
    Change,
    Conflict,
    Dedupe,
    Event,
    LeaseTaken,
    OtherSchema,
    PushConfig,
    Retention,
    Scope,
    Snapshot,
    StoreBusy,
    StoreError,
    TaskQuery,
)
from tests.turns import until

ROOT = Path(__file__).parent.parent
ANN = Scope("orders", "", "ann")
NOW = 1_700_000_000_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a2a.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SQLiteStore]:
    store = SQLiteStore(path)
    await store.open()
    yield store
    await store.close()


def chunk(number: int, text: str = "chunk") -> Event:
    return Event(number, v1.StreamResponse(artifact_update={"artifact": {"parts": [{"text": text}]}}))


def whole(task_id: str, **more: Any) -> Change:
    """A change that makes a task and writes to every table."""
    change: dict[str, Any] = {
        "context_id": task_id,
        "events": [chunk(1), chunk(2), chunk(3)],
        "snapshot": Snapshot(v1.TASK_STATE_WORKING, NOW, b"head", b"artifacts", 3),
        "push_configs": [PushConfig(task_id, "p", b"config", "1.0")],
        "notify": 3,
        "dedupe": Dedupe(task_id, b"digest", NOW + 10**9, task_id),
        "memory": {"k": b"1"},
        "take": LeaseTaken("me", NOW + 1000),
    }
    return Change(ANN, task_id, 0, NOW, **(change | more))


def log_size(path: Path) -> int:
    return os.path.getsize(f"{path}-wal")


def run(code: str, *args: object) -> "subprocess.Popen[str]":
    """Another process with our packages and `code` of this module's names."""
    return subprocess.Popen(
        [sys.executable, "-c", f"from tests.test_sqlite import *\nimport sys\n{code}", *map(str, args)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'generated'}"},
        stdout=subprocess.PIPE,
        text=True,
    )


# -- processes

WRITER = """
async def main():
    store = SQLiteStore(sys.argv[1])
    await store.open()
    async def write(name):
        for index in range(1_000_000):
            await store.commit(whole(f"{name}-{index}"))
            print(f"{name}-{index}", flush=True)
    await asyncio.gather(*(write(name) for name in range(20)))
asyncio.run(main())
"""


@pytest.mark.requirement("BL-48", "PUSH-03")
async def test_what_was_acknowledged_outlives_a_killed_process_and_nothing_is_half(path: Path) -> None:
    with run(WRITER, path) as writer:
        assert writer.stdout is not None
        known = [writer.stdout.readline().strip() for _ in range(300)]
        writer.kill()
        known += [line.strip() for line in writer.stdout if line.endswith("\n")]
    store = SQLiteStore(path)
    await store.open()  # the lock died with its holder
    try:
        counts = await store._file.rows(
            "SELECT (SELECT count(*) FROM tasks), (SELECT count(*) FROM snapshots), (SELECT count(*) FROM events),"
            "(SELECT count(*) FROM push_configs), (SELECT count(*) FROM dedupe), (SELECT count(*) FROM memory)",
            {},
        )
        tasks = counts[0][0]
        assert counts == [(tasks, tasks, 3 * tasks, tasks, tasks, tasks)]
        assert tasks >= len(known)
        for task_id in known:
            assert len(await store.events(ANN, task_id, 0, 9)) == 3
    finally:
        await store.close()


OPENER = """
async def main():
    try:
        await SQLiteStore(sys.argv[1]).open()
    except StoreBusy as error:
        print(error)
asyncio.run(main())
"""


async def test_a_second_process_is_told_who_serves_from_the_file(store: SQLiteStore, path: Path) -> None:
    with run(OPENER, path) as opener:
        assert opener.stdout is not None
        said = await asyncio.to_thread(opener.stdout.read)
    assert f"{path} is in use by process {os.getpid()}" in said
    again = SQLiteStore(path)
    with pytest.raises(StoreBusy):
        await again.open()
    await store.close()
    await again.open()
    await again.close()


async def test_a_link_to_the_file_is_the_same_file(store: SQLiteStore, path: Path) -> None:
    path.with_name("link.db").symlink_to(path)
    with pytest.raises(StoreBusy):
        await SQLiteStore(path.with_name("link.db")).open()


@pytest.mark.requirement("PUSH-03", "PUSH-14")
async def test_a_restart_keeps_everything_and_frees_deliveries_that_were_claimed(path: Path) -> None:
    first, second = SQLiteStore(path), SQLiteStore(path)
    await first.open()
    await first.commit(whole("t"))
    assert len(await first.due("gone", NOW, NOW + 60_000, 9)) == 1
    assert await first.due("gone", NOW, NOW + 60_000, 9) == []
    await first.close()
    await second.open()
    [delivery] = await second.due("new", NOW, NOW + 60_000, 9)
    assert (delivery.config.config_id, delivery.cursor, delivery.due) == ("p", 0, 3)
    assert [row.task_id for row in await second.lost("new", NOW, 9)] == ["t"]
    await second.close()


# -- files


async def test_the_schema_of_a_newer_release_is_refused_and_left_alone(path: Path) -> None:
    store = SQLiteStore(path)
    await store.open()
    await store.close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE schema SET version = 99")
    connection.close()
    with pytest.raises(StoreError, match=r"has schema 99 .* use a newer release"):
        await SQLiteStore(path).open()
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT version FROM schema").fetchall() == [(99,)]
    connection.close()


async def test_an_older_schema_is_brought_up_to_date_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = SQLiteStore(path)
    await store.open()
    await store.commit(whole("t"))
    await store.close()
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, ("ALTER TABLE tasks ADD COLUMN more TEXT",)))
    for _ in range(2):
        await store.open()
        assert await store._file.rows("SELECT version FROM schema", {}) == [(len(schema.MIGRATIONS),)]
        assert await store._file.rows("SELECT task_id, more FROM tasks", {}) == [("t", None)]
        await store.close()


async def test_a_path_that_cannot_be_is_refused_with_the_reason(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("This is not a database. " * 100)
    for path, reason in (
        (tmp_path / "no" / "a2a.db", "there is no folder"),
        (text, "not a database"),
        (tmp_path, "cannot keep tasks"),
        (":memory:", "use memory:"),
        ("", "needs the path"),
    ):
        for _ in range(2):  # a refusal leaves no lock behind
            with pytest.raises(StoreError, match=reason) as refusal:
                await SQLiteStore(path).open()
            assert not isinstance(refusal.value, StoreBusy)
    assert text.read_text().startswith("This is not a database.")


@pytest.mark.requirement("PUSH-23")
async def test_the_file_can_be_read_by_its_owner_alone(store: SQLiteStore, path: Path) -> None:
    await store.commit(whole("t"))
    for file in path.parent.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) & 0o077 == 0, file


async def test_a_closed_store_says_so_and_close_may_be_repeated(path: Path) -> None:
    store = SQLiteStore(path)
    with pytest.raises(StoreError, match="not open"):
        await store.task(ANN, "t")
    await store.open()
    accepted = [asyncio.ensure_future(store.commit(whole(f"t{index}"))) for index in range(50)]
    await asyncio.sleep(0)  # let them be handed over
    await store.close()
    await store.close()
    assert await asyncio.gather(*accepted) == [1] * 50
    with pytest.raises(StoreError, match="not open"):
        await store.commit(whole("late"))


# -- groups and faults


async def test_concurrent_commits_share_transactions_and_fail_alone(store: SQLiteStore) -> None:
    await store.commit(whole("taken"))
    before = store.transactions
    changes = [whole(f"t{index}" if index % 10 else "taken", dedupe=None) for index in range(500)]
    results = await asyncio.gather(*map(store.commit, changes), return_exceptions=True)
    assert store.transactions - before <= 50
    assert [type(result) for result in results] == [int if index % 10 else Conflict for index in range(500)]
    assert (await store.tasks(ANN, TaskQuery())).total == 451


async def test_writes_that_came_together_wait_for_each_other_the_next_time(
    store: SQLiteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_file, "_PATIENCE", 600.0)
    monkeypatch.setattr(sqlite_file, "time", SimpleNamespace(monotonic=count(step=600.0).__next__))
    loop, enough, told = asyncio.get_running_loop(), store._file._enough, list[None]()
    going, begun, waits, came = (threading.Event() for _ in range(4))

    def slow(connection: Any) -> None:
        begun.set()
        going.wait()

    def acknowledge(settle: Any, outcomes: list[Any]) -> None:
        loop.call_soon_threadsafe(settle, outcomes)
        if len(outcomes) > 1:  # what comes before the writer goes on is no company that these had
            came.wait(60)

    def wait(timeout: float) -> None:
        waits.set()
        enough.get(timeout=timeout)

    monkeypatch.setattr(store._file, "_enough", SimpleNamespace(get=wait, put=told.append))
    slow_loop = SimpleNamespace(create_future=loop.create_future, call_soon_threadsafe=acknowledge)
    monkeypatch.setattr(store._file, "_loop", slow_loop)
    held = asyncio.ensure_future(store._file.write(slow))
    await asyncio.to_thread(begun.wait)
    both = [asyncio.ensure_future(store.commit(whole(name))) for name in ("a", "b")]
    await asyncio.sleep(0)
    going.set()
    await asyncio.gather(held, *both)
    before, first = store.transactions, asyncio.ensure_future(store.commit(whole("c")))
    await asyncio.sleep(0)
    came.set()
    await until(lambda: waits.is_set() or first.done())
    missing, last = store._file._missing, asyncio.ensure_future(store.commit(whole("d")))
    await asyncio.sleep(0)
    enough.put(None)  # in the store's place: one that says nothing fails the test, and does not hold it up
    await first
    enough.put(None)  # nor does one that waits again
    await last
    assert (missing, told, store.transactions) == (1, [None], before + 1)


@pytest.mark.requirement("BL-03")
async def test_a_full_disk_reaches_whoever_needs_room_and_the_store_goes_on(store: SQLiteStore) -> None:
    await store.commit(whole("t0"))
    pages = (await store._file.rows("PRAGMA page_count", {}))[0][0]

    def limit(most: int) -> Any:
        return store._file.write(lambda connection: connection.execute(f"PRAGMA max_page_count={most}").fetchall())

    await limit(pages + 50)
    huge = whole("huge", events=[chunk(1, "x" * 1_000_000)])
    results = await asyncio.gather(*map(store.commit, (whole("t1"), huge, whole("t2"))), return_exceptions=True)
    assert results[0] == results[2] == 1
    assert isinstance(results[1], sqlite3.OperationalError)
    assert await store.task(ANN, "huge") is None and await store.seen(ANN, "huge", NOW) is None
    await limit(1_000_000)
    assert await store.commit(huge) == 1


@pytest.mark.requirement("BL-03", "BL-08")
@pytest.mark.parametrize("part", ["", "-wal", "-shm"])
async def test_nothing_is_acknowledged_while_the_file_is_not_in_its_place(
    store: SQLiteStore, path: Path, part: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir("/")
    await store.commit(whole("t0"))
    file = Path(f"{path}{part}")
    os.rename(file, tmp_path / "elsewhere")
    for made in (lambda: None, file.touch):
        made()
        with pytest.raises(OSError):
            await store.commit(whole("t1"))
    os.rename(tmp_path / "elsewhere", file)
    assert await store.commit(whole("t2")) == 1
    assert await store.task(ANN, "t1") is None and await store.task(ANN, "t0") is not None


async def test_a_caller_that_stops_waiting_leaves_a_whole_task_or_none(store: SQLiteStore) -> None:
    waiting = [asyncio.ensure_future(store.commit(whole(f"t{index}"))) for index in range(100)]
    await asyncio.sleep(0)
    for task in waiting[::2]:
        task.cancel()
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert results[1::2] == [1] * 50
    assert all(isinstance(result, asyncio.CancelledError) for result in results[::2])
    for index in range(100):
        row = await store.task(ANN, f"t{index}")
        found = await store.events(ANN, f"t{index}", 0, 9)
        assert len(found) == (3 if row else 0)
    assert await store.commit(whole("after")) == 1


@pytest.mark.requirement("BL-16")
async def test_the_cost_of_an_event_does_not_grow_with_the_task(store: SQLiteStore, path: Path) -> None:
    big = Snapshot(v1.TASK_STATE_WORKING, NOW, b"h" * 100_000, b"a" * 1_000_000, 3)
    await store.commit(whole("t", snapshot=big, author_state=b"s" * 60_000))
    await store._file.write(lambda connection: connection.execute("PRAGMA wal_autocheckpoint=0").fetchall())
    sizes = [log_size(path)]
    for start in range(3, 10_003, 1000):
        for expected in range(start, start + 1000):
            await store.commit(Change(ANN, "t", expected, NOW, token=1, events=[chunk(expected + 1)]))
        sizes.append(log_size(path))
    written = [after - before for before, after in pairwise(sizes)]
    assert len(written) == 10
    assert max(written) < 1.2 * min(written)
    # A transaction writes whole pages: one of the task, one or two of the log.
    assert sum(written) < 10_000 * 4 * 4096


# -- statements


@pytest.mark.requirement("LIST-08", "BL-44")
async def test_no_statement_looks_at_tasks_it_does_not_need(store: SQLiteStore) -> None:
    names = ("context_id", "state", "since_ms", "before")
    pages = [frozenset(name for bit, name in enumerate(names) if number >> bit & 1) for number in range(16)]
    statements = [
        *(value for name, value in vars(schema).items() if name[0].isupper() and isinstance(value, str)),
        *schema.DROP_EXPIRED,
        *(build(filters) for filters in pages for build in (schema.page, schema.total)),
    ]
    ours = [statement for statement in statements if re.match(r"\s*(SELECT|UPDATE|DELETE)", statement)]
    allowed = {
        schema.VERSION,
        schema.VERSION_CLEAR,
        schema.CROWDED,  # reads one index in order
        schema.COUNTS,  # reads indexes of what is behind and what is held, which is little
        schema.FREE_CLAIMS,  # once, at the start
        schema.LOST_TO_OTHERS,  # reads the index of running turns
        schema.POSTS,  # reads the index of what waits
        schema.WEIGHTS,  # reads two indexes in order, for each look of retention, and no message
        schema.SAID_FIRST_OF_ALL,  # reads from the first on, as many as go
    }
    for statement in ours:
        values = dict.fromkeys(re.findall(r":(\w+)", statement), 1)
        plan = await store._file.rows(f"EXPLAIN QUERY PLAN {statement}", values)
        steps = [step[-1] for step in plan]
        if statement not in allowed:
            assert not [step for step in steps if step.startswith("SCAN")], (statement, steps)
        if statement != schema.SAID_FIRST:  # sorts the messages of one who has too many, whose contexts they are
            assert not [step for step in steps if "TEMP B-TREE" in step], (statement, steps)
    crowded = await store._file.rows(f"EXPLAIN QUERY PLAN {schema.CROWDED}", {"count": 1})
    assert "COVERING INDEX" in crowded[0][-1]
    lost = await store._file.rows(f"EXPLAIN QUERY PLAN {schema.LOST_TO_OTHERS}", {"holder": 1, "now_ms": 1, "limit": 1})
    assert "tasks_held" in lost[0][-1]


@pytest.mark.requirement("BL-44")
async def test_no_row_is_left_of_tasks_that_were_trimmed(store: SQLiteStore) -> None:
    for index in range(20):
        await store.commit(whole(f"t{index}"))
    await store.remember_reply(ANN, "c", [b"message"], {"k": b"1"}, None, NOW)
    assert len(await store.trim(Retention(NOW + 2000, 1, 1, 1))) == 20
    tables = await store._file.rows("SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'schema'", {})
    assert len(tables) == 11
    for (table,) in tables:
        assert await store._file.rows(f"SELECT count(*) FROM {table}", {}) == [(0,)], table


@pytest.mark.requirement("PUSH-03", "PUSH-15")
async def test_a_file_of_an_earlier_release_is_brought_up_to_date_with_what_it_holds(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        for statement in (schema.VERSION_TABLE, *schema.MIGRATIONS[0], "INSERT INTO schema VALUES (1)"):
            connection.execute(statement)
        connection.execute(
            "INSERT INTO tasks VALUES (1, 't', 'orders', '', 'ann', 'c', 3, 9, 9, 5, 5, '', 1, 0, 1, NULL)"
        )
        for name, next_ms in (("dead", NEVER), ("alive", 0)):
            row = f"(1, '{name}', x'00', '1.0', x'', 2, 5, 9, {next_ms}, '')"
            connection.execute(f"INSERT INTO push_configs VALUES {row}")
        connection.commit()
    store = SQLiteStore(path)
    with pytest.raises(OtherSchema):
        await store.open_beside()
    await store.open()
    beside = SQLiteStore(path)
    await beside.open_beside()
    [found] = await beside.backlog(("", ""), 9, True)
    assert found.delivery.config.config_id == "dead" and found.given_up_ms
    assert await beside.revive([found.delivery.config]) == 1
    assert len(await store.due("me", NOW, NOW + 9, 9)) == 2
    await beside.close()
    await store.close()
