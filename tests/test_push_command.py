"""`a2a-grpc push`: what an operator sees of webhooks that are behind, and how they get what they missed."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from a2a_grpc.cli import main
from a2a_grpc.config import Options
from a2a_grpc.opening import lasting_store
from a2a_grpc.push_secrets import Seal, new_key, reseal
from a2a_grpc.tasks.start import now_ms
from a2a_grpc.tasks.store import Report
from tests.receivers import PATIENCE, Got, Receiver, receiver
from tests.stores import config, postgres_url
from tests.stores import create as fill
from tests.test_push import create, given_up, heard, hook, send, serving
from tests.test_push_secrets import shown


@pytest.fixture(params=["sqlite", "postgresql"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:{tmp_path / 'a2a.db'}"
    else:
        async with postgres_url() as url:
            yield url


async def push(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, list[dict[str, Any]], str]:
    """Exit code, documents, and what was said."""
    code = await asyncio.to_thread(main, ["push", *words])
    said = capsys.readouterr()
    return code, [json.loads(line) for line in said.out.splitlines()], said.err


class Moody:
    """Says `status` until told otherwise."""

    status = 500

    async def __call__(self, _: Got) -> web.Response:
        return web.Response(status=self.status)


@pytest.mark.requirement("PUSH-15", "PUSH-18", "PUSH-14", "PUSH-23")
async def test_what_was_given_up_is_listed_and_replayed_in_order_while_the_server_serves(
    store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    mood = Moody()
    async with serving(store, push_give_up=0.0) as server, receiver(mood) as there, receiver() as well:
        one, two = [await send(server, "count 30 0", hook(f"{there.url}/hush{n}?hush", "a")) for n in (1, 2)]
        await create(server, two.id, hook(f"{there.url}/hush3", "b"))
        await send(server, "count 3 0", hook(well.url))
        await given_up(server, 2)
        host = there.url.removeprefix("http://")
        code, lines, said = await push(capsys, "list", "--given-up", "--store", store)
        assert (code, said) == (0, "") and sorted(line["taskId"] for line in lines) == sorted((one.id, two.id))
        assert all(line["state"] == "given up" and line["givenUp"] and line["next"] is None for line in lines)
        assert {(line["host"], line["said"], line["attempts"], line["sent"]) for line in lines} == {
            (host, "status 500", 1, 0)
        }
        assert "hush" not in str(lines)
        mood.status = 204
        assert (await push(capsys, "replay", "--store", store))[0] == 2
        assert (await push(capsys, "replay", "--store", store, "--host", "other.example"))[0] == 1
        code, lines, said = await push(capsys, "replay", "--store", store, "--task", one.id)
        assert (code, said, [line["taskId"] for line in lines]) == (0, "1 taken up again\n", [one.id])
        await replayed(server, there, one.id, "/hush1")
        assert not there.at("/hush2")[1:]
        assert (await push(capsys, "replay", "--store", store, "--host", host.partition(":")[0]))[0] == 0
        await replayed(server, there, two.id, "/hush2")
        assert (await push(capsys, "list", "--given-up", "--store", store))[1] == []


async def replayed(server: Any, there: Receiver, task_id: str, path: str) -> None:
    """The first request failed; after it comes everything, from the first event on."""
    await there.until(lambda: len(there.at(path)) > 1)
    del there.at(path)[0]
    await heard(server, there, task_id, path)


@pytest.mark.requirement("PUSH-15", "PUSH-23")
async def test_what_still_waits_is_listed_too_and_hosts_are_told_with_the_key_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, key = f"sqlite:{tmp_path / 'a2a.db'}", new_key()
    async with receiver(Moody()) as there, serving(store, secret_keys=(key,)) as server:
        task = await send(server, "count 3 0", hook(there.url))
        async with asyncio.timeout(PATIENCE):
            while not [one for one in await server.store.backlog(("", ""), 9, False) if one.said]:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
    _, [line], _ = await push(capsys, "list", "--store", store)
    assert (line["state"], line["host"], line["said"]) in (
        ("waiting", None, "status 500"),
        ("due", None, "status 500"),
    )
    assert line["taskId"] == task.id and line["reached"] > line["sent"] == 0
    assert (await push(capsys, "list", "--given-up", "--store", store))[1] == []
    monkeypatch.setenv("A2A_GRPC_SECRET_KEYS", key)
    _, [line], _ = await push(capsys, "list", "--store", store)
    assert line["host"] == there.url.removeprefix("http://")


async def test_a_key_is_made_and_fits(capsys: pytest.CaptureFixture[str]) -> None:
    assert await asyncio.to_thread(main, ["push", "key"]) == 0
    key = capsys.readouterr().out.strip()
    seal = Seal((key,))
    assert seal.open(seal.close(b"x", "t", "c"), "t", "c") == b"x"


@pytest.mark.requirement("PUSH-23", "PUSH-14", "SEC-05")
async def test_a_new_key_seals_what_is_kept_while_the_server_serves_and_the_old_one_can_go(
    store: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = new_key(), new_key()
    async with receiver() as there:
        async with serving(store) as server:
            bare = await send(server, "ask", hook(f"{there.url}/bare", "one", token="hush"))
        async with serving(store, secret_keys=(old,)) as server:
            tasks = [await send(server, "ask", hook(f"{there.url}/{n}", "one", token="hush")) for n in range(3)]
            await there.until(lambda: len(there.got) == 8)
        async with serving(store, secret_keys=(new, old)) as server:
            monkeypatch.setenv("A2A_GRPC_SECRET_KEYS", f"{new},{old}")
            assert await push(capsys, "reseal", "--store", store) == (0, [], "4 sealed anew\n")
            assert await push(capsys, "reseal", "--store", store) == (0, [], "0 sealed anew\n")
            for task in (bare, *tasks):  # nothing that was sent is sent again, and what comes is
                await send(server, "on", task_id=task.id)
            await there.until(lambda: len(there.got) >= 20)
        async with serving(store, secret_keys=(new,)) as server:
            assert [(await shown(server, task.id)).token for task in (bare, *tasks)] == ["hush"] * 4
    assert {got.headers["x-a2a-notification-token"] for got in there.got} == {"hush"}
    numbers = [got.headers["x-a2a-notification-id"] for got in there.got]
    assert len(numbers) == len({*numbers}) == 20


@pytest.mark.requirement("PUSH-23")
async def test_what_no_key_opens_is_listed_and_stays_as_it_is(
    store: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lost, old, new = new_key(), new_key(), new_key()
    tasks = []
    for key in (lost, old):
        async with serving(store, secret_keys=(key,)) as server:
            tasks.append(await send(server, "ask", hook("http://127.0.0.1:9", "a")))
    monkeypatch.setenv("A2A_GRPC_SECRET_KEYS", f"{new},{old}")
    code, lines, said = await push(capsys, "reseal", "--store", store)
    assert (code, lines) == (1, [{"taskId": tasks[0].id, "id": "a"}])
    assert said.startswith("1 sealed anew; 1 opened by none of the secret_keys") and lost not in said
    monkeypatch.setenv("A2A_GRPC_SECRET_KEYS", f"{new},{lost}")
    assert await push(capsys, "reseal", "--store", store) == (0, [], "1 sealed anew\n")


@pytest.mark.requirement("PUSH-23", "PUSH-14")
async def test_a_webhook_that_is_being_called_is_waited_for_but_not_for_ever(store: str) -> None:
    kept, hour, old = lasting_store(Options(store=store)), now_ms() + 3_600_000, new_key()
    await kept.open()
    try:
        await fill(kept, push_configs=[config("p")], notify=1, now_ms=now_ms())
        for patience, done, names in ((PATIENCE, True, (old,)), (0.0, False, (new_key(), old))):
            [claim] = await kept.due("somebody", now_ms(), hour, 9)
            sealing = asyncio.create_task(reseal(kept, Seal(names), patience))
            if done:
                await asyncio.sleep(0.5)
                assert not sealing.done()
                await kept.delivered(claim, Report(0))
            assert await asyncio.wait_for(sealing, PATIENCE) == (1, [])
        await kept.delivered(claim, Report(claim.due))  # of a claim that has lost its config: it is sent again
        [behind] = await kept.backlog(("", ""), 9, False)
        assert (behind.delivery.cursor, behind.delivery.due) == (0, 1)
    finally:
        await kept.close()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("replay",), "replay needs --task, --host or --all"),
        (("list", "--store", "memory:"), "does not outlive its process"),
        (("list", "--store", "sqlite:/nowhere/a.db"), "cannot look into /nowhere/a.db"),
        (("list", "--store", "sqlite:{folder}/empty.db"), "schema 0, this release needs"),
        (("reseal",), "reseal needs secret_keys"),
    ],
)
async def test_what_cannot_be_done_is_told_in_one_line(
    words: tuple[str, ...], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty.db").touch()
    code, lines, said = await push(capsys, *(word.format(folder=tmp_path) for word in words))
    assert code == 2 and not lines and told in said and said.count("\n") == 1
