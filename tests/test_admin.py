"""The view for operators: what it shows while things go on, to whom it does not, and `a2a-grpc top`."""

import asyncio
import hashlib
import json
import os
import socket
import stat
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from a2a_stubs import v1
from aiohttp import web
from prometheus_client.parser import text_string_to_metric_families as families

from a2a_grpc import Agent, Client, Options, Server, TaskHandle, cli
from a2a_grpc.admin_views import MEASURES, VIEWS
from a2a_grpc.auth import ApiKey
from a2a_grpc.call import REST, Call, Caller
from a2a_grpc.commands.top import drawn
from a2a_grpc.config import OptionError
from a2a_grpc.errors import ResourceExhaustedError
from a2a_grpc.telemetry import CALL, STORE, TURN
from scripts.services import free_port
from tests.receivers import Got, receiver
from tests.terminals import CTRL_C, terminal
from tests.test_cli import run

PATIENCE = 60.0
SECRET = "s3cret-token"

agent = Agent(name="Busy", description="Works until it is stopped.", version="1", skills=[])


@agent.handle
async def work(task: TaskHandle) -> None:
    await task.add_artifact("begun")
    if task.text == "wait":
        await asyncio.Event().wait()


def said(text: str, url: str = "") -> v1.SendMessageRequest:
    request = v1.SendMessageRequest()
    request.message.message_id, request.message.role = uuid.uuid4().hex, v1.ROLE_USER
    request.message.parts.add(text=text)
    request.configuration.return_immediately = text == "wait"
    if url:
        request.configuration.task_push_notification_config.url = url
        request.configuration.task_push_notification_config.token = SECRET
    return request


@asynccontextmanager
async def serving(*places: str, **more: Any) -> AsyncIterator[Server]:
    given = {"grpc": "", "http": "127.0.0.1:0", "store": "memory:", "grace": 0.0, "cancel_grace": 0.1, **more}
    async with Server(agent, Options(admin=places or ("127.0.0.1:0",), **given)) as server:
        yield server


async def fetched(address: str, path: str = "/", **more: Any) -> tuple[int, Any]:
    place = address.removeprefix("unix:")
    connector = aiohttp.UnixConnector(place) if place != address else aiohttp.TCPConnector()
    url = f"http://localhost{path}" if place != address else f"http://{address}{path}"
    verb = more.pop("verb", "GET")
    async with aiohttp.ClientSession(connector=connector) as session, session.request(verb, url, **more) as reply:
        body = await reply.read()
    return reply.status, json.loads(body) if reply.content_type == "application/json" else body.decode()


async def until(enough: Any) -> Any:
    async with asyncio.timeout(PATIENCE):
        while not (found := await enough()):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    return found


@pytest.mark.requirement("SEC-05")
async def test_operators_see_what_goes_on_and_no_secret() -> None:
    async def refuse(_: Got) -> web.Response:
        return web.Response(status=410)

    push = {"push_notifications": True, "push_allow": ("127.0.0.1/32",)}
    async with receiver(refuse) as there, serving(hash_callers=True, **push) as server:
        [address] = server.admin.addresses
        call = Call("SendMessage", caller=Caller("alice", authenticated=True))
        waiting = (await server.service.SendMessage(said("wait", there.url + "/?key=" + SECRET), call)).task
        events = server.service.SubscribeToTask(v1.SubscribeToTaskRequest(id=waiting.id), call)
        await anext(events)

        async def given_up() -> Any:
            seen = (await fetched(address))[1]
            return seen["dead-letters"] and not seen["outbox"]["sending"] and seen  # it is noted, then let go of

        seen = await until(given_up)
        await events.aclose()
    assert list(seen) == list(VIEWS)
    [turn] = seen["turns"]
    assert (turn["taskId"], turn["contextId"], turn["agent"]) == (waiting.id, waiting.context_id, "Busy")
    assert turn["state"] in ("SUBMITTED", "WORKING") and turn["seconds"] >= 0 and len(turn["owner"]) == 12
    assert seen["leases"]["here"] == seen["leases"]["everywhere"] == 1 and not seen["leases"]["expired"]
    [letter] = seen["dead-letters"]
    assert letter["taskId"] == waiting.id and letter["said"] == "status 410" and letter["owner"] == turn["owner"]
    assert letter["host"] == there.url.removeprefix("http://") and letter["givenUp"]
    assert seen["outbox"] == {"behind": 0, "sending": 0, "resting": [], "webhooks": []}
    assert seen["limits"]["max_turns"] == {"used": 1, "limit": 1000}
    assert SECRET not in json.dumps(seen) and "alice" not in json.dumps(seen)


async def test_each_view_has_a_path_of_its_own_and_none_changes_anything() -> None:
    async with serving() as server:
        [address] = server.admin.addresses
        everything = (await fetched(address))[1]
        for name in VIEWS:
            assert await fetched(address, f"/{name}") == (200, everything[name])
        assert (await fetched(address, "/nothing"))[0] == 404
        assert (await fetched(address, "/turns", verb="POST"))[0] == 405
        assert (await fetched(address, "/metrics"))[0] == 404
        for path in ("/turns", "/metrics"):
            assert (await fetched(server.http_address, path))[0] in (404, 405)


@pytest.mark.requirement("SEC-05")
async def test_a_web_page_that_was_led_to_the_view_is_refused() -> None:
    async with serving() as server:
        [address] = server.admin.addresses
        for host, status in (("evil.example", 403), ("evil.example:80", 403), ("localhost:1", 200), ("[::1]:5", 200)):
            assert (await fetched(address, headers={"Host": host}))[0] == status, host


async def test_a_unix_socket_is_for_its_owner_and_goes_with_the_server(tmp_path: Path) -> None:
    path = tmp_path / "admin.sock"
    async with serving(f"unix:{path}") as server:
        assert server.admin.addresses == [f"unix:{path}"]
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert (await fetched(f"unix:{path}"))[1]["turns"] == []
        with pytest.raises(OSError, match="somebody answers there"):
            async with serving(f"unix:{path}"):
                pass
        assert (await fetched(f"unix:{path}"))[0] == 200
        async with serving(f"unix:{path}", reuse_port=True) as second:
            assert second.admin.addresses == [f"unix:{path}.1"]
    assert not os.listdir(tmp_path)
    for gone in (tmp_path / "gone" / "admin.sock", tmp_path / ("x" * 200)):
        with pytest.raises(OSError, match=str(gone)):
            async with serving(f"unix:{gone}"):
                pass


async def test_what_a_killed_server_left_behind_is_no_hindrance(tmp_path: Path) -> None:
    path, file = tmp_path / "admin.sock", tmp_path / "file"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    async with serving(f"unix:{path}"):
        assert (await fetched(f"unix:{path}"))[0] == 200
    file.write_text("precious")
    with pytest.raises(OSError):
        async with serving(f"unix:{file}"):
            pass
    assert file.read_text() == "precious"


async def test_of_several_workers_each_takes_the_next_free_port() -> None:
    async with serving() as first:
        [taken] = first.admin.addresses
        async with serving(taken, reuse_port=True) as second:
            [other] = second.admin.addresses
            assert other != taken and (await fetched(other))[0] == 200
        with pytest.raises(OSError):
            async with serving(taken):
                pass


@pytest.mark.parametrize("wrong", [{"admin": ("nowhere",)}, {"metrics": "admin"}, {"metrics": "http", "http": ""}])
def test_addresses_that_cannot_be_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(OptionError):
        Options(**wrong)


async def test_a_store_that_does_not_answer_hides_its_own_views_only(tmp_path: Path, caplog: Any) -> None:
    async with serving(metrics="admin") as server:
        [address] = server.admin.addresses

        async def broken(*_: Any) -> None:
            raise RuntimeError("no way to the store")

        server.store.counts = broken  # type: ignore[method-assign, assignment]
        status, shown = await fetched(address, "/leases")
        assert status == 503 and list(shown) == ["error"] and "no way" not in shown["error"]
        everything = (await fetched(address))[1]
        assert everything["leases"] == shown and everything["turns"] == [] and "no way to the store" in caplog.text
        assert "a2a_turns_running 0.0" in (await fetched(address, "/metrics"))[1]
        drawn = await run("top", address, "--once", cwd=tmp_path)
        assert drawn.code == 0 and "does not answer" in drawn.out


async def test_who_opens_the_view_to_everybody_is_told(caplog: pytest.LogCaptureFixture) -> None:
    async with serving("127.0.0.1:0", "localhost:0"):
        assert "for operators" not in caplog.text
    async with serving("0.0.0.0:0"):
        assert "the view for operators at 0.0.0.0:0 is seen by everybody" in caplog.text


@pytest.mark.parametrize("where", ["admin", "http"])
@pytest.mark.requirement("SEC-07")
async def test_prometheus_reads_every_measure(where: str) -> None:
    async with serving(metrics=where) as server, Client(server.http_url, binding=REST) as client:
        await client.send(said("hello"))
        address = server.admin.addresses[0] if where == "admin" else server.http_address
        status, text = await fetched(address, "/metrics")
        others = server.http_address if where == "admin" else server.admin.addresses[0]
        assert (await fetched(others, "/metrics"))[0] in (404, 405)
    assert status == 200
    seen = {sample.name: sample.labels for family in families(text) for sample in family.samples}
    for measure in MEASURES:
        labels = seen[measure.name.replace(".", "_") + "_total" * measure.grows]
        assert set(labels) == {label.replace(".", "_") for label in measure.labels}
    for kind in (CALL, TURN, STORE):
        labels = seen[kind.name.replace(".", "_") + "_duration_seconds_count"]
        assert set(labels) == {label.replace(".", "_") for label in kind.labels}
    wanted = 'a2a_binding="HTTP+JSON",a2a_code="OK",a2a_operation="SendMessage",a2a_version="1.0"'
    assert f"a2a_server_call_duration_seconds_count{{{wanted}}} 1.0" in text
    assert "process_resident_memory_bytes" in text


@pytest.mark.requirement("SEC-07", "BL-44")
async def test_what_goes_on_is_in_the_measures_while_it_does_and_what_is_over_stays_counted() -> None:
    async def refuse(_: Got) -> web.Response:
        return web.Response(status=410)

    push = {"push_notifications": True, "push_allow": ("127.0.0.1/32",)}
    keeps = {"retain_count": 1, "trim_interval": 0.1, "max_streams": 1}
    async with (
        receiver(refuse) as there,
        serving(metrics="admin", **push, **keeps) as server,
        Client(server.http_url, binding=REST, retries=None) as client,
    ):
        [address] = server.admin.addresses

        async def measured(wanted: dict[str, float]) -> bool:
            text = (await fetched(address, "/metrics"))[1]
            seen = {sample.name: sample.value for family in families(text) for sample in family.samples}
            return {name: seen.get(f"a2a_{name}") for name in wanted} == wanted

        waiting = (await client.send(said("wait", there.url))).task
        events = client.subscribe(waiting.id)
        await anext(events)
        with pytest.raises(ResourceExhaustedError):
            await anext(client.subscribe(waiting.id))
        now = {"turns_running": 1, "streams_open": 1, "readers": 1, "leases_held": 1, "push_given_up": 1}
        now |= {"streams_refused_total": 1, "push_behind": 0, "store_waiting": 0, "streams_dropped_total": 0}
        await until(lambda: measured(now))
        await events.aclose()
        await client.cancel(waiting.id)
        for _ in range(3):
            await client.send(said("hello"))
        after = {"turns_running": 0, "streams_open": 0, "readers": 0, "leases_held": 0, "streams_refused_total": 1}
        await until(lambda: measured(after | {"retention_deleted_total": 3}))


@pytest.mark.requirement("SEC-05", "SEC-07")
async def test_who_may_not_call_is_counted_and_still_reads_nothing() -> None:
    options = Options(grpc="", http="127.0.0.1:0", store="memory:", admin=("127.0.0.1:0",), metrics="admin")
    async with Server(
        agent, options, authenticators=ApiKey({hashlib.sha256(SECRET.encode()).hexdigest(): "alice"})
    ) as server:
        assert (await fetched(server.http_address, "/tasks", headers={"A2A-Version": "1.0"}))[0] == 401
        text = (await fetched(server.admin.addresses[0], "/metrics"))[1]
    assert 'a2a_server_requests_total{a2a_binding="HTTP+JSON",a2a_code="UNAUTHENTICATED"} 1.0' in text


async def test_top_draws_turns_and_webhooks_once(tmp_path: Path) -> None:
    async with serving() as server:
        [address] = server.admin.addresses
        task = (await server.service.SendMessage(said("wait"), Call("SendMessage"))).task
        shown = await run("top", address, "--once", cwd=tmp_path)
        assert shown.code == 0 and task.id in shown.out and "max_turns 1/1000" in shown.out
        assert "TURNS (1)" in shown.out and "TASKID" in shown.out
    gone = await run("top", address, "--once", cwd=tmp_path)
    assert gone.code == 2 and "nothing can be seen at" in gone.err and not gone.out


async def test_top_draws_anew_until_it_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving() as server:
        [address] = server.admin.addresses
        looks = []

        def interrupt(seconds: float) -> None:
            looks.append(seconds)
            if len(looks) == 2:
                raise KeyboardInterrupt

        monkeypatch.setattr("time.sleep", interrupt)
        assert await asyncio.to_thread(cli.main, ["top", address, "--every", "7"]) == 130
    assert looks == [7.0, 7.0]


async def test_top_goes_on_while_a_server_is_away_and_finds_it_again() -> None:
    place = f"127.0.0.1:{free_port()}"
    async with serving() as other, terminal("top", place, other.admin.addresses[0], "--every", "0.1") as screen:
        async with serving(place) as server:
            task = (await server.service.SendMessage(said("wait"), Call("SendMessage"))).task
            await screen.shows(task.id)
        await screen.shows(f"nothing can be seen at {place}")
        await screen.shows(f"{other.admin.addresses[0]}  max_turns 0/1000")
        async with serving(place):
            await screen.shows(f"{place}  max_turns 0/1000")
        screen.press(CTRL_C)
        assert await screen.ended() == 130


async def test_top_tells_what_it_cannot_see_and_shows_the_rest(tmp_path: Path) -> None:
    async def other(_: Got) -> web.Response:
        return web.json_response({"turns": []})

    async with serving() as server, receiver(other) as stranger:
        [address], elsewhere = server.admin.addresses, stranger.url.removeprefix("http://")
        task = (await server.service.SendMessage(said("wait"), Call("SendMessage"))).task

        async def broken(*_: Any) -> None:
            raise RuntimeError("no way to the store")

        server.store.counts = broken  # type: ignore[method-assign, assignment]
        shown = await run("top", address, "--once", cwd=tmp_path)
        assert shown.code == 0 and task.id in shown.out and "max_turns 1/1000" in shown.out
        assert "leases   the store does not answer" in shown.out and "streams  0 open" in shown.out
        both = await run("top", elsewhere, address, "--once", cwd=tmp_path)
        assert both.code == 2 and task.id in both.out and f"{elsewhere} is no admin view" in both.err
    for wrong in ("nan", "0", "-1", "soon"):
        refused = await run("top", address, "--every", wrong, cwd=tmp_path)
        assert refused.code == 2 and "--every" in refused.err and len(refused.err.splitlines()) == 1


@pytest.mark.parametrize("lines", [1, 3, 6, 10, 24, 60])
@pytest.mark.parametrize("columns", [1, 20, 80, 200])
async def test_top_fits_its_terminal(columns: int, lines: int) -> None:
    async with serving() as server:
        seen = (await fetched(server.admin.addresses[0]))[1]
        await server.service.SendMessage(said("wait"), Call("SendMessage"))
        [turn] = (await fetched(server.admin.addresses[0]))[1]["turns"]
    hook = {
        "taskId": "t",
        "host": "\u65e5\u672c",
        "state": "due",
        "attempts": 1,
        "sent": 1,
        "reached": 2,
        "said": "x" * 99,
    }
    for count in (0, 1, 7, 500):
        seen["turns"], seen["outbox"]["webhooks"] = [turn | {"agent": "\u65e5" * 40}] * count, [hook] * count
        rows = drawn("here:1", seen, columns, lines).split("\n")
        assert len(rows) <= lines and max(len(row.encode("gb18030")) for row in rows) <= columns
        if count and lines >= 10:
            assert f"TURNS ({count})"[:columns] in rows and f"WEBHOOKS BEHIND ({count})"[:columns] in rows
        if lines == 60 and count == 7:
            assert len(rows) == 4 + 1 + 2 * (2 + 7)
