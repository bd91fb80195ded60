"""`a2a-grpc db`: what an operator is told about the tables of a store, and with which exit code."""

import asyncio
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import asyncpg
import pytest

from a2a_grpc.cli import main
from a2a_grpc.tasks.schema import MIGRATIONS
from tests.stores import postgres_url

NEWEST = len(MIGRATIONS)


@pytest.fixture(params=["sqlite", "postgresql"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[str]:
    """The address of a store without tables."""
    if request.param == "sqlite":
        with closing(sqlite3.connect(tmp_path / "odd #1?.db")) as connection:
            connection.execute("PRAGMA user_version = 1")
        yield f"sqlite:{tmp_path / 'odd #1?.db'}"
    else:
        async with postgres_url() as url:
            yield url


async def db(*words: str) -> int:
    return await asyncio.to_thread(main, ["db", *words])


async def test_check_changes_nothing_and_upgrade_does(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        assert await db("check", "--store", store) == 1
        told = f"schema 0, this release needs {NEWEST}: run a2a-grpc db upgrade\n"
        assert capsys.readouterr().out == told
    for action in ("upgrade", "check", "upgrade"):
        assert await db(action, "--store", store) == 0
        assert capsys.readouterr().out == f"schema {NEWEST}, this release needs {NEWEST}: up to date\n"


async def test_tables_of_a_newer_release_are_not_touched_and_what_helps_is_told(
    store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    await db("upgrade", "--store", store)
    if store.startswith("sqlite"):
        with closing(sqlite3.connect(store.removeprefix("sqlite:"))) as connection:
            connection.execute("UPDATE schema SET version = 99")
            connection.commit()
    else:
        connection = await asyncpg.connect(store)
        await connection.execute("UPDATE schema SET version = 99")
        await connection.close()
    capsys.readouterr()
    words = {"db check": 1, "db upgrade": 2, "push list": 2, "push replay --all": 2}
    for command, code in words.items():
        assert await asyncio.to_thread(main, [*command.split(), "--store", store]) == code, command
        said = "".join(capsys.readouterr())
        assert "99" in said and "use a newer release" in said and said.count("\n") == 1, (command, said)


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("memory:", "this store has no tables to look after"),
        ("sqlite:/nowhere/a.db", "cannot look into /nowhere/a.db"),
        ("postgresql://me:secret@127.0.0.1:1/a2a", "cannot keep tasks in postgresql://127.0.0.1/a2a"),
        ("floppy:a", "store must start with one of memory:, sqlite:, postgresql:, not floppy:"),
    ],
)
async def test_a_store_that_cannot_be_looked_at_is_told_in_one_line(
    url: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await db("check", "--store", url) == 2
    said = capsys.readouterr().err
    assert told in said and said.count("\n") == 1 and "secret" not in said


async def test_a_missing_driver_is_told_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "asyncpg", None)
    for name in [name for name in sys.modules if name.startswith("a2a_grpc.tasks.postgres")]:
        monkeypatch.delitem(sys.modules, name)
    assert await db("check", "--store", "postgresql://h/d") == 2
    assert capsys.readouterr().err == "a2a-grpc: there is no asyncpg: install a2a-grpc[postgres]\n"
