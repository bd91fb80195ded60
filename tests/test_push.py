"""Push notifications as receivers see them: everything, in order, in the right form, whatever goes wrong."""

import asyncio
import logging
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from a2a_stubs import v1
from aiohttp import web

from a2a_grpc.call import V03, Call, trace_headers, trace_of
from a2a_grpc.config import Options
from a2a_grpc.errors import InvalidParamsError
from a2a_grpc.protojson import encode
from a2a_grpc.push import RESTS, attempts_within
from a2a_grpc.push_hosts import TRIP, Hosts
from a2a_grpc.server import Server
from a2a_grpc.tasks.start import now_ms
from a2a_grpc.tasks.store import Backlog, Report, Scope
from scripts.services import free_port
from tests.faults.workers import worker
from tests.receivers import PATIENCE, Got, Receiver, in_turn, receiver

NOBODY = Scope("", "", "")
LOCAL = ("127.0.0.1/32",)


@asynccontextmanager
async def serving(store: str = "memory:", **more: Any) -> AsyncIterator[Server]:
    """A server without ports that may call the loopback."""
    options = {"push_notifications": True, "push_allow": LOCAL, "grace": 0.1, **more}
    async with Server(worker, Options(grpc="", http="", store=store, **options)) as server:
        yield server


def hook(url: str, name: str = "", **more: Any) -> v1.TaskPushNotificationConfig:
    return v1.TaskPushNotificationConfig(url=url, id=name, **more)


def said(text: str, config: v1.TaskPushNotificationConfig | None, task_id: str, now: bool) -> v1.SendMessageRequest:
    request = v1.SendMessageRequest()
    request.message.message_id, request.message.role = uuid.uuid4().hex, v1.ROLE_USER
    request.message.task_id = task_id
    request.message.parts.add(text=text)
    request.configuration.return_immediately = now
    if config is not None:
        request.configuration.task_push_notification_config.CopyFrom(config)
    return request


async def send(
    server: Server,
    text: str,
    config: v1.TaskPushNotificationConfig | None = None,
    *,
    task_id: str = "",
    now: bool = False,
    **call: Any,
) -> v1.Task:
    request = said(text, config, task_id, now)
    task: v1.Task = (await server.service.SendMessage(request, Call("SendMessage", **call))).task
    return task


async def create(server: Server, task_id: str, config: v1.TaskPushNotificationConfig, **call: Any) -> None:
    request = v1.TaskPushNotificationConfig(task_id=task_id)
    request.MergeFrom(config)
    await server.service.CreateTaskPushNotificationConfig(request, Call("CreateTaskPushNotificationConfig", **call))


async def delete(server: Server, task_id: str, name: str) -> None:
    request = v1.DeleteTaskPushNotificationConfigRequest(task_id=task_id, id=name)
    await server.service.DeleteTaskPushNotificationConfig(request, Call("DeleteTaskPushNotificationConfig"))


async def log_of(server: Server, task_id: str) -> dict[int, Any]:
    """What receivers are to hear of a task: the JSON of each event by number."""
    events = await server.store.events(NOBODY, task_id, 0, 100_000)
    return {event.sequence: encode(event.payload) for event in events if not event.payload.HasField("message")}


async def heard(server: Server, there: Receiver, task_id: str, path: str = "/") -> None:
    """Wait until a receiver has got everything of a task that has ended, exactly, in order, and once."""
    log = await log_of(server, task_id)
    await there.until(lambda: len(there.at(path)) >= len(log))
    assert {got.number: got.json for got in there.at(path)} == log
    assert [got.number for got in there.at(path)] == [*log]


# -- what arrives


@pytest.mark.parametrize("how", ["waiting", "at once", "streaming", "reader gone"])
@pytest.mark.requirement("BL-49", "PUSH-08", "PUSH-10", "PUSH-14", "PUSH-18", "PUSH-20", "PUSH-17")
async def test_every_update_reaches_every_webhook_in_order_however_it_was_sent(how: str) -> None:
    async with serving() as server, receiver() as there:
        config = hook(f"{there.url}/a", "a")
        if how in ("waiting", "at once"):
            task = await send(server, "count 50 0", config, now=how == "at once")
        else:
            stream = server.service.SendStreamingMessage(
                said("count 50 0", config, "", False), Call("SendStreamingMessage")
            )
            task = (await anext(stream)).task
            if how == "streaming":
                assert len([event async for event in stream]) > 50
            await stream.aclose()
        await there.until(lambda: any("COMPLETED" in str(got.json) for got in there.at("/a")))
        await heard(server, there, task.id, "/a")
        assert set(there.got[0].json) == {"task"} and set(there.got[-1].json) == {"statusUpdate"}


@pytest.mark.requirement("BL-49", "PUSH-08", "PUSH-18", "OP-SEND-11")
async def test_a_webhook_made_later_hears_of_what_comes_later() -> None:
    async with serving() as server, receiver() as there:
        task = await send(server, "ask", hook(f"{there.url}/first"))
        await there.until(lambda: len(there.got) == 2)  # the task and the question
        await create(server, task.id, hook(f"{there.url}/later", "later"))
        await send(server, "blue", hook(f"{there.url}/answer", "answer"), task_id=task.id)
        await heard(server, there, task.id, "/first")
        later = [got.number for got in there.at("/first")][2:]
        for path in ("/later", "/answer"):
            await there.until(lambda path=path: len(there.at(path)) == len(later))
            assert [got.number for got in there.at(path)] == later


@pytest.mark.requirement("BL-50", "PUSH-11", "PUSH-12", "PUSH-13", "I-69", "L-04")
@pytest.mark.parametrize("version", ["1.0", "0.3"])
async def test_a_receiver_gets_its_token_its_credentials_and_a_media_type(version: str) -> None:
    async with serving() as server, receiver() as there:
        secret = v1.AuthenticationInfo(scheme="Bearer", credentials="s3cr3t")
        await send(
            server, "parts 1 0", hook(f"{there.url}/?a=b", token="t0k3n", authentication=secret), version=version
        )
        await there.until(lambda: len(there.got) >= 2)
        kind = {"1.0": "application/a2a+json", "0.3": "application/json"}[version]
        for got in there.got:
            assert got.headers["content-type"] == kind and got.headers["a2a-version"] == version
            assert got.headers["authorization"] == "Bearer s3cr3t"
            assert got.headers["x-a2a-notification-token"] == "t0k3n"
    async with serving() as server, receiver() as there:
        await send(server, "parts 1 0", hook(there.url), version=version)
        await there.until(lambda: bool(there.got))
        assert not {"authorization", "x-a2a-notification-token", "cookie"} & set(there.got[0].headers)


@pytest.mark.requirement("PUSH-29", "V03-37", "I-50", "BL-50")
async def test_an_old_config_gets_the_bare_old_task_as_it_was_at_each_status() -> None:
    async with serving() as server, receiver() as there:
        task = await send(server, "ask", hook(f"{there.url}/old"), version=V03)
        await create(server, task.id, hook(f"{there.url}/new", "new"))
        await send(server, "parts 3 0", task_id=task.id)
        await there.until(lambda: any("completed" in str(got.json) for got in there.at("/old")))
        seen = [got.json for got in there.at("/old")]
        states = [one["status"]["state"] for one in seen]
        assert states == ["submitted", "input-required", "working", "completed"]
        assert all(one["kind"] == "task" and one["id"] == task.id for one in seen)
        assert [len(one.get("artifacts", ())) for one in seen] == [0, 0, 0, 3]
        assert [part["text"] for one in seen[-1]["artifacts"] for part in one["parts"]] == [
            "part 0",
            "part 1",
            "part 2",
        ]
        await there.until(lambda: len(there.at("/new")) == 5)
        assert "kind" not in there.at("/new")[0].json


@pytest.mark.requirement("I-50", "PUSH-29")
async def test_an_old_config_gets_bare_old_events_where_the_operator_wants_it() -> None:
    async with serving(v03_push="event") as server, receiver() as there:
        task = await send(server, "parts 2 0", hook(there.url), version=V03)
        log = await log_of(server, task.id)
        await there.until(lambda: len(there.got) >= len(log))
        assert [got.number for got in there.got] == [*log]
        kinds = [got.json["kind"] for got in there.got]
        assert kinds[0] == "task" and kinds[-1] == "status-update" and kinds.count("artifact-update") == 2
        assert [got.json["final"] for got in there.got if "final" in got.json][-1] is True
        assert sum(got.json.get("final", False) for got in there.got) == 1


PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
ODD = ("", "00-1-2-01", PARENT.upper(), PARENT.replace("00-", "ff-"), PARENT + "\r\nX: y")


@pytest.mark.requirement("SEC-07")
async def test_a_receiver_hears_which_trace_the_update_belongs_to() -> None:
    async with serving() as server, receiver() as there:
        heads = {"traceparent": PARENT, "tracestate": "a=1, b=2"}
        task = await send(server, "ask", hook(there.url), metadata=heads)
        await there.until(lambda: len(there.got) == 2)
        assert all(got.headers.items() >= heads.items() for got in there.got)
        later = PARENT.replace("b7", "c8")
        await send(server, "parts 1 0", task_id=task.id, metadata={"traceparent": later})
        await there.until(lambda: len(there.got) > 4)
        assert {got.headers["traceparent"] for got in there.got[2:]} == {later}
        assert "tracestate" not in there.got[-1].headers


@pytest.mark.parametrize("parent", [*ODD, *(f"{PARENT}-{more}" for more in ("\udcff", "x a=2", "x" * 7000))])
@pytest.mark.requirement("SEC-07", "SEC-03")
async def test_a_trace_that_is_none_is_not_passed_on(parent: str) -> None:
    assert trace_of({"traceparent": parent, "tracestate": "a=1"}) == ""
    assert trace_of({"traceparent": PARENT, "tracestate": "x" * 513}) == PARENT
    assert trace_headers("") == {}


# -- what goes wrong


@pytest.mark.requirement("PUSH-14", "PUSH-15", "PUSH-18")
async def test_a_failure_is_repeated_under_its_number_and_the_order_stays() -> None:
    fails = in_turn(*[lambda: web.Response(status=500), lambda: web.Response(status=404)])
    async with serving() as server, receiver(fails) as there:
        task = await send(server, "count 5 0", hook(there.url))
        log = await log_of(server, task.id)
        await there.until(lambda: len(there.got) == len(log) + 2)
        assert [got.number for got in there.got] == [1, 1, *log]
        assert there.got[0].body == there.got[1].body == there.got[2].body


@pytest.mark.requirement("PUSH-15")
async def test_a_receiver_that_wants_to_be_left_alone_is() -> None:
    times: list[float] = []

    async def answer(_: Got) -> web.Response:
        times.append(time.monotonic())
        return web.Response(status=204) if len(times) > 1 else web.Response(status=429, headers={"Retry-After": "3"})

    async with serving() as server, receiver(answer) as there:
        await send(server, "parts 1 0", hook(there.url))
        await there.until(lambda: len(there.got) >= 2)
        assert times[1] - times[0] >= 2.99


@pytest.mark.requirement("PUSH-15", "PUSH-19")
async def test_a_receiver_that_was_away_gets_everything_when_it_is_back() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    async with serving() as server:
        task = await send(server, "count 5 0", hook(url))
        async with receiver(port=int(url.rpartition(":")[2])) as there:
            await heard(server, there, task.id)


@pytest.mark.requirement("PUSH-21", "BL-05")
async def test_a_redirect_is_a_failure_and_not_followed() -> None:
    elsewhere = in_turn(lambda: web.Response(status=307, headers={"Location": "/elsewhere"}))
    async with serving() as server, receiver(elsewhere) as there:
        task = await send(server, "parts 1 0", hook(there.url + "/in"))
        log = await log_of(server, task.id)
        await there.until(lambda: len(there.got) == len(log) + 1)
        assert {got.path for got in there.got} == {"/in"}


@pytest.mark.requirement("PUSH-16", "PUSH-18")
async def test_a_receiver_that_never_answers_is_asked_again_after_the_timeout() -> None:
    async def hang(_: Got) -> web.Response:
        if len(there.got) == 1:
            await asyncio.sleep(PATIENCE)
        return web.Response(status=200)

    async with serving(push_timeout=0.3) as server, receiver(hang) as there:
        task = await send(server, "parts 1 0", hook(there.url))
        log = await log_of(server, task.id)
        await there.until(lambda: len(there.got) == len(log) + 1)
        assert [got.number for got in there.got] == [1, *log]


@pytest.mark.requirement("PUSH-19", "PUSH-20")
async def test_a_webhook_that_hangs_delays_no_stream_no_task_and_no_other_webhook() -> None:
    release = asyncio.Event()

    async def hang(_: Got) -> web.Response:
        await release.wait()
        return web.Response()

    async with serving(push_concurrency=4) as server, receiver(hang) as slow, receiver() as quick:
        held = [await send(server, "parts 1 0", hook(slow.url)) for _ in range(3)]
        await slow.until(lambda: bool(slow.got))
        stream = server.service.SendStreamingMessage(
            said("count 100 0", hook(quick.url), "", False), Call("SendStreamingMessage")
        )
        events = [event async for event in stream]
        assert events[-1].status_update.status.state == v1.TASK_STATE_COMPLETED
        await heard(server, quick, events[0].task.id)
        assert len(slow.got) == 1 and not release.is_set()
        release.set()
        await slow.until(
            lambda: {got.headers["x-a2a-notification-id"] for got in slow.got} >= {f"{t.id}.1" for t in held}
        )


@pytest.mark.requirement("PUSH-07", "BL-49")
async def test_after_a_delete_nothing_is_sent() -> None:
    async def hang(got: Got) -> web.Response:
        if got.path == "/gone":
            await asyncio.sleep(PATIENCE)
        return web.Response()

    async with serving() as server, receiver(hang) as there:
        task = await send(server, "ask", hook(f"{there.url}/gone", "gone"))
        await there.until(lambda: bool(there.at("/gone")))
        await create(server, task.id, hook(f"{there.url}/stays", "stays"))
        await delete(server, task.id, "gone")
        before = len(there.at("/gone"))
        await send(server, "count 20 0", task_id=task.id)
        await there.until(lambda: any("COMPLETED" in str(got.json) for got in there.at("/stays")))
        assert len(there.at("/gone")) == before == 1


@pytest.mark.requirement("PUSH-30", "PUSH-07")
async def test_a_replaced_webhook_is_called_at_its_new_address_only() -> None:
    async def hang(got: Got) -> web.Response:
        if got.path == "/old":
            await asyncio.sleep(PATIENCE)
        return web.Response()

    async with serving() as server, receiver(hang) as there:
        task = await send(server, "ask", hook(f"{there.url}/old", "one"))
        await there.until(lambda: bool(there.at("/old")))
        await create(server, task.id, hook(f"{there.url}/new", "one"))
        await send(server, "count 20 0", task_id=task.id)
        await there.until(lambda: any("COMPLETED" in str(got.json) for got in there.at("/new")))
        assert len(there.at("/old")) == 1
        assert [got.number for got in there.at("/new")] == list(await log_of(server, task.id))


@pytest.mark.parametrize("status", [500, 410])
@pytest.mark.requirement("PUSH-15")
async def test_a_webhook_is_given_up_after_its_time_or_at_once_if_it_is_gone(status: int) -> None:
    dead = True

    async def answer(_: Got) -> web.Response:
        return web.Response(status=status if dead else 200)

    give_up = 0.0 if status == 500 else 86_400.0
    async with serving(push_give_up=give_up) as server, receiver(answer) as there, receiver() as other:
        task = await send(server, "ask", hook(f"{there.url}/", "one"))
        await there.until(lambda: bool(there.got))
        dead = False
        await create(server, task.id, hook(other.url, "two"))
        await send(server, "ask", task_id=task.id)
        await other.until(lambda: len(other.got) == 2)
        assert len(there.got) == 1
        await create(server, task.id, hook(f"{there.url}/again", "one"))  # made anew, it is alive again
        await send(server, "parts 1 0", task_id=task.id)
        await there.until(lambda: any("COMPLETED" in str(got.json) for got in there.got))


@pytest.mark.parametrize(("attempts", "dies"), [(1, False), (9, True)])
@pytest.mark.requirement("PUSH-15")
async def test_a_webhook_is_given_up_for_failing_long_and_more_than_now_and_then(attempts: int, dies: bool) -> None:
    async with serving(push_give_up=60.0) as server, receiver(in_turn(lambda: web.Response(status=500))) as there:
        await server.engine.push.stop()
        task = await send(server, "count 5 0", hook(there.url))
        now = now_ms()
        [claim] = await server.store.due("dead", now, now + 1000, 9)
        await server.store.delivered(claim, Report(0, attempts, 0, "status 500", now - 61_000))
        server.engine.push.start()
        if dies:
            await given_up(server, 1)
        else:
            log = await log_of(server, task.id)
            await there.until(lambda: [got.number for got in there.got] == [1, *log])


@pytest.mark.requirement("PUSH-15", "PUSH-19", "BL-44")
async def test_of_many_webhooks_at_a_dead_host_all_are_given_up_in_time_though_few_are_called(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in ("push", "push_hosts"):
        monkeypatch.setattr(f"a2a_grpc.{module}.LONGEST_REST", 0.5)

    async def broken(_: Got) -> web.Response:
        return web.Response(status=503)

    async with serving(push_give_up=0.5) as server, receiver(broken) as there:
        for _ in range(40):
            await send(server, "ask", hook(there.url))
        dead = await given_up(server, 40)
        assert len(there.got) < 2 * len(dead)
        assert RESTS in {found.said for found in dead}


async def given_up(server: Server, count: int) -> list[Backlog]:
    async with asyncio.timeout(PATIENCE):
        while len(found := await server.store.backlog(("", ""), 99, True)) < count:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    return found


@pytest.mark.requirement("PUSH-03", "PUSH-14", "PUSH-18")
async def test_what_could_not_be_sent_before_a_restart_is_sent_after_it(tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    async with serving(f"sqlite:{tmp_path / 'a2a.db'}") as server:
        task = await send(server, "count 30 0", hook(url))
    port = int(url.rpartition(":")[2])
    async with receiver(port=port) as there, serving(f"sqlite:{tmp_path / 'a2a.db'}") as server:
        await heard(server, there, task.id)


@pytest.mark.requirement("PUSH-14", "PUSH-19")
async def test_what_another_replica_had_claimed_is_sent_when_its_claim_is_over() -> None:
    async with serving() as server, receiver() as there:
        await server.engine.push.stop()
        task = await send(server, "count 5 0", hook(there.url))
        claimed = now_ms()
        assert len(await server.store.due("dead", claimed, claimed + 2000, 10)) == 1
        server.engine.push.start()
        await heard(server, there, task.id)
        assert now_ms() >= claimed + 2000


@pytest.mark.requirement("PUSH-07")
async def test_a_config_that_another_replica_deletes_is_sent_nothing_more() -> None:
    async def answer(_: Got) -> web.Response:
        await server.store.delete_push_config(NOBODY, task_id, "one")
        return web.Response()

    task_id = ""
    async with serving() as server, receiver(answer) as there, receiver() as other:
        task_id = (await send(server, "ask")).id
        for url, name in ((there.url, "one"), (other.url, "two")):
            await create(server, task_id, hook(url, name))
        await send(server, "count 20 0", task_id=task_id)
        await other.until(lambda: any("COMPLETED" in str(got.json) for got in other.got))
        assert len(there.got) == 1


@pytest.mark.requirement("PUSH-23", "SEC-05")
async def test_no_secret_of_a_config_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    secret = v1.AuthenticationInfo(scheme="Bearer", credentials="hush-credentials")
    async with receiver(in_turn(lambda: web.Response(status=410))) as there, serving() as server:
        for url in (f"{there.url}/hush-path?hush=query", "http://127.0.0.1:9/hush-path", "https://hooks.example/hush"):
            await send(server, "parts 1 0", hook(url, token="hush-token", authentication=secret))
        await there.until(lambda: len(there.got) == 1)
        async with asyncio.timeout(PATIENCE):
            while caplog.text.count("webhook") < 2:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
    assert "hush" not in caplog.text


# -- who may be called, and how often


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/", "http://169.254.169.254/latest", "http://2130706433/"])
@pytest.mark.requirement("PUSH-02", "PUSH-21", "BL-05", "SEC-03")
async def test_an_inside_address_is_refused_when_a_config_is_made(url: str) -> None:
    async with serving(push_allow=()) as server:
        task = await send(server, "ask")
        with pytest.raises(InvalidParamsError) as alone:
            await create(server, task.id, hook(url))
        with pytest.raises(InvalidParamsError) as within:
            await send(server, "ask", hook(url))
        assert [found.field for found in alone.value.violations] == ["url"]
        path = "configuration.taskPushNotificationConfig.url"
        assert [found.field for found in within.value.violations] == [path]


@pytest.mark.requirement("PUSH-19")
async def test_a_host_that_fails_is_left_alone_and_then_tried_once() -> None:
    hosts = Hosts(2)
    assert await hosts.enter("a") == await hosts.enter("a") == 0
    assert await hosts.enter("a") > 0 and await hosts.enter("b") == 0
    third = asyncio.create_task(hosts.enter("a"))
    await asyncio.sleep(0)
    hosts.leave("a", ill=True)
    assert await third == 0
    for _ in range(2):
        hosts.leave("a", ill=True)
    for _ in range(TRIP - 3):
        assert await hosts.enter("a") == 0
        hosts.leave("a", ill=True)
    assert await hosts.enter("a") > 0
    assert [*hosts.resting()] == ["a"] and 0 < hosts.resting()["a"] <= 1
    hosts._hosts["a"].rests_until = 0
    assert hosts.resting() == {}
    assert await hosts.enter("a") == 0 and await hosts.enter("a") > 0
    hosts.leave("a", ill=None)
    hosts._hosts["a"].failures = 10_000
    assert await hosts.enter("a") == 0
    hosts.leave("a", ill=True)
    assert 1 < await hosts.enter("a") < 62
    hosts._hosts["a"].rests_until = 0
    assert await hosts.enter("a") == 0
    hosts.leave("a", ill=False)
    assert await hosts.enter("a") == await hosts.enter("a") == 0


@pytest.mark.requirement("PUSH-15")
def test_attempts_double_their_distance_up_to_a_quarter_of_an_hour() -> None:
    assert [attempts_within(seconds) for seconds in (0, 0.5, 1, 1.5, 3, 7)] == [1, 2, 2, 3, 3, 4]
    assert attempts_within(86_400) == attempts_within(86_400 - 900) + 1
