"""Who receives push notifications with the kit: only what is meant for it, each once, of either version."""

import asyncio
import io
import json
from typing import Any

import pytest
from a2a_stubs import v1
from aiohttp import ClientSession, web
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_grpc.call import V03, V1
from a2a_grpc.client import Client
from a2a_grpc.protojson import to_json
from a2a_grpc.push_receiver import MOST_BYTES, REMEMBERED, Notification, PushReceiver
from a2a_grpc.testing import serve, webhook
from tests.faults.workers import worker
from tests.receivers import PATIENCE
from tests.test_push import said

URL = "https://hooks.example/in"
DONE = {"statusUpdate": {"taskId": "t", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"}}}


class Box(PushReceiver):
    """A receiver that keeps what it gets. faults: how often it fails first."""

    def __init__(self, faults: int = 0, **settings: Any) -> None:
        super().__init__(self.keep, **settings)
        self.got: list[Notification] = []
        self.faults = faults

    async def keep(self, notification: Notification) -> None:
        await asyncio.sleep(0)
        if self.faults:
            self.faults -= 1
            raise RuntimeError("the disk is full")
        self.got.append(notification)


async def post(
    box: PushReceiver, config: v1.TaskPushNotificationConfig | None, body: Any = DONE, number: str = "", **headers: str
) -> int:
    """The status that a request with the secrets of a config gets."""
    told = {name.replace("_", "-"): value for name, value in headers.items()}
    if config is not None and config.token:
        told.setdefault("x-a2a-notification-token", config.token)
    if config is not None and config.authentication.credentials:
        line = f"{config.authentication.scheme} {config.authentication.credentials}"
        told.setdefault("authorization", line)
    if number:
        told["x-a2a-notification-id"] = number
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return (await box.receive(told, data)).status


# -- from a server


@pytest.mark.parametrize("version", [V1, V03])
@pytest.mark.requirement("PUSH-24", "PUSH-26", "PUSH-28", "PUSH-29")
async def test_a_test_of_an_agent_gets_each_notification_once_whatever_fails_on_the_way(version: str) -> None:
    options = {"push_notifications": True, "push_allow": ("127.0.0.1",)}
    async with serve(worker, **options) as server, webhook() as hook:
        hook.status = 503
        async with Client(server.http_url, version=version) as agent:
            request = said("count 5 0", hook.config(), "", True)
            task = (await agent.send(request)).task
            await hook.until(lambda: hook.requests == 2)
            assert not hook.notifications
            hook.status = 0
            await hook.until(lambda: bool(hook.notifications) and ended(hook.notifications[-1]))
            full = await agent.get(task.id)
            assert full.status.state == v1.TASK_STATE_COMPLETED and full.artifacts
        assert {(one.task_id, one.version) for one in hook.notifications} == {(task.id, version)}
        ids = [one.id for one in hook.notifications]
        assert len(set(ids)) == len(ids) == hook.requests - 2
        kinds = {one.event.WhichOneof("payload") for one in hook.notifications}
        assert kinds == ({"task"} if version == V03 else {"task", "status_update", "artifact_update"})


def ended(one: Notification) -> bool:
    event = one.event
    status = event.task.status if event.HasField("task") else event.status_update.status
    return bool(status.state == v1.TASK_STATE_COMPLETED)


@pytest.mark.requirement("PUSH-27", "PUSH-25", "PUSH-30")
async def test_a_token_is_changed_while_notifications_come() -> None:
    options = {"push_notifications": True, "push_allow": ("127.0.0.1",)}
    async with serve(worker, **options) as server, webhook() as hook, Client(server.http_url) as agent:
        old = hook.config(config_id="mine")
        task = (await agent.send(said("ask", old, "", False))).task
        await hook.until(lambda: len(hook.notifications) == 2)
        new = hook.config(task.id, "mine")
        assert len({old.token, new.token, ""}) == 3
        await agent.create_push_config(new)
        hook.receiver.forget(old)
        await agent.send(said("parts 1 0", None, task.id, False))
        await hook.until(lambda: ended(hook.notifications[-1]))
        assert await post(hook.receiver, old, number=f"{task.id}.99") == 401


# -- who sends


@pytest.mark.requirement("PUSH-25", "PUSH-12", "PUSH-13", "SEC-05")
async def test_only_who_has_all_secrets_is_listened_to(caplog: pytest.LogCaptureFixture) -> None:
    box = Box()
    bare, both = box.config(URL, "t"), box.config(URL, "t", scheme="Bearer")
    alone = v1.TaskPushNotificationConfig(url=URL, task_id="t")
    alone.authentication.scheme, alone.authentication.credentials = "Basic", "dTpw"
    box.expect(alone)
    for config in (
        None,
        v1.TaskPushNotificationConfig(token=bare.token[:-1]),
        v1.TaskPushNotificationConfig(token="é"),
    ):
        assert await post(box, config) == 401
    secret = both.authentication.credentials
    for line in ("", "Bearer", f"Basic {secret}", f"Bearer {secret}x", secret):
        assert await post(box, both, authorization=line) == 401
    assert await post(box, v1.TaskPushNotificationConfig(authentication=both.authentication)) == 401
    assert await post(box, alone, authorization="Basic eDp5") == 401
    assert not box.got
    assert await post(box, bare) == await post(box, both, authorization=f"bearer  {secret}") == 204
    assert await post(box, alone) == await post(box, alone, x_a2a_notification_token="whatever") == 204
    assert len(box.got) == 4
    with pytest.raises(ValueError, match="token or credentials"):
        box.expect(v1.TaskPushNotificationConfig(url=URL))
    assert not [word for word in (bare.token, secret) if word in caplog.text or word in repr(vars(box))]


@pytest.mark.requirement("PUSH-25")
async def test_a_secret_stands_for_one_task() -> None:
    box = Box()
    known, first = box.config(URL, "other"), box.config(URL)
    assert await post(box, known) == 403
    assert await post(box, first) == 204
    other = {"task": {"id": "other", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}}}
    assert await post(box, first, other) == 403 and await post(box, known, other) == 204
    at_once = box.config(URL)
    assert sorted(await asyncio.gather(post(box, at_once), post(box, at_once, other))) == [204, 403]
    assert [one.task_id for one in box.got] == ["t", "other", "t"]


@pytest.mark.requirement("PUSH-26", "SEC-04")
async def test_requests_have_a_rate_and_what_is_expected_a_bound() -> None:
    box = Box(rate=2, kept=2)
    one, two = box.config(URL), box.config(URL)
    assert [await post(box, one) for _ in range(3)] == [204, 204, 429]
    assert [await post(box, None) for _ in range(3)] == [401, 401, 429]
    assert await post(box, two) == 204
    told = await box.receive({"x-a2a-notification-token": one.token}, b"{}")
    assert 0 < told.retry_after <= 1
    box.config(URL)
    assert await post(box, one) == 429  # forgotten, so one of the strangers
    unbounded = Box(rate=0)
    made = unbounded.config(URL)
    assert {await post(unbounded, made) for _ in range(2000)} == {204}


# -- what comes again


@pytest.mark.requirement("PUSH-26", "PUSH-24")
async def test_what_comes_again_is_thanked_for_and_dropped() -> None:
    box = Box()
    config = box.config(URL)
    numbers = ["t.1", "t.2", "t.1", "t.2", "t.9", "t.3", "t.10"]
    assert {await post(box, config, number=number) for number in numbers} == {204}
    assert [one.id for one in box.got] == ["t.1", "t.2", "t.9", "t.10"]
    for _ in range(2):  # numbered by others, or not at all
        assert await post(box, config, number="abc") == await post(box, config, number="x.1") == 204
        assert await post(box, config) == 204
    assert [one.id for one in box.got][4:] == ["abc", "x.1", "", ""]
    for number in range(REMEMBERED + 5):
        await post(box, config, number=f"n-{number}")
    assert len(next(iter(box._expected.values())).seen) == REMEMBERED


@pytest.mark.requirement("PUSH-24", "PUSH-26", "BL-28")
async def test_what_the_handler_failed_at_comes_again_and_at_once_is_handled_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    box = Box(faults=1)
    config = box.config(URL)
    told = await box.receive({"x-a2a-notification-token": config.token}, to_json(status()))
    assert told.status == 500 and "disk" not in told.text and "disk is full" in caplog.text
    answers = await asyncio.gather(*(post(box, config, number="t.1") for _ in range(5)))
    assert set(answers) == {204} and len(box.got) == 1


def status() -> v1.StreamResponse:
    return v1.StreamResponse(status_update={"task_id": "t", "status": {"state": v1.TASK_STATE_COMPLETED}})


# -- what it says

OLD_TASK = {"kind": "task", "id": "t", "contextId": "c", "status": {"state": "completed"}}
OLD_STATUS = {"kind": "status-update", "taskId": "t", "contextId": "c", "status": {"state": "working"}, "final": False}
OLD_PART = {"artifactId": "a", "parts": [{"kind": "text", "text": "hi"}]}
OLD_ARTIFACT = {"kind": "artifact-update", "taskId": "t", "contextId": "c", "artifact": OLD_PART}
OLD_SAID = {
    "kind": "message",
    "messageId": "m",
    "role": "agent",
    "taskId": "t",
    "parts": [{"kind": "text", "text": "x"}],
}
NEW_SAID = {"messageId": "m", "role": "ROLE_AGENT", "taskId": "t", "parts": [{"text": "x"}]}


def without_kind(value: dict[str, Any]) -> dict[str, Any]:
    return {name: member for name, member in value.items() if name != "kind"}


@pytest.mark.parametrize(
    ("body", "member", "version"),
    [
        (DONE, "status_update", V1),
        ({"task": {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}}}, "task", V1),
        (
            {"artifactUpdate": {"taskId": "t", "artifact": {"artifactId": "a", "parts": [{"text": "hi"}]}}},
            "artifact_update",
            V1,
        ),
        ({"message": NEW_SAID}, "message", V1),
        (OLD_TASK, "task", V03),
        (without_kind(OLD_TASK), "task", V03),
        (OLD_STATUS, "status_update", V03),
        (without_kind(OLD_STATUS), "status_update", V03),
        (OLD_ARTIFACT, "artifact_update", V03),
        (OLD_SAID, "message", V03),
    ],
)
@pytest.mark.requirement("PUSH-10", "PUSH-29", "V03-37", "I-50")
async def test_payloads_of_both_versions_become_events(body: Any, member: str, version: str) -> None:
    box = Box()
    assert await post(box, box.config(URL, "t"), body) == 204
    [found] = box.got
    assert (found.task_id, found.version, found.event.WhichOneof("payload")) == ("t", version, member)
    if version == V03:
        assert await post(box, box.config(URL, "t"), body, a2a_version="0.3") == 204


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"1", b"{}", b'{"task":1}', b'{"kind":"x"}', b'{"kind":"task"}', b'{"task":{},"message":{}}'],
)
@pytest.mark.requirement("SEC-03")
async def test_what_is_no_notification_is_refused(body: bytes) -> None:
    box = Box()
    assert await post(box, box.config(URL), body) == 400
    assert await post(box, box.config(URL), DONE, a2a_version="0.3, 1.0") == 400
    assert not box.got


@given(
    st.dictionaries(st.text(max_size=9), st.text(max_size=9), max_size=3), st.binary(max_size=99), st.text(max_size=30)
)
@settings(max_examples=200, deadline=None)
@pytest.mark.requirement("SEC-03", "PUSH-26")
def test_any_head_and_any_bytes_are_answered(headers: dict[str, str], body: bytes, number: str) -> None:
    box = Box(rate=0)
    told = {**headers, "x-a2a-notification-token": box.config(URL).token, "x-a2a-notification-id": number}
    assert asyncio.run(box.receive(told, body)).status in (204, 400)
    assert asyncio.run(box.receive({**told, "x-a2a-notification-token": number}, body)).status == 401
    assert asyncio.run(box.receive(told, json.dumps(DONE).encode())).status == 204


# -- over HTTP


@pytest.mark.requirement("PUSH-24", "PUSH-26", "SEC-04")
async def test_the_handler_reads_nothing_of_strangers_and_not_too_much_of_others() -> None:
    box = Box(rate=2)
    app = web.Application()
    app.router.add_route("*", "/in", box.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}/in"
    config = box.config(url)
    mine = {"X-A2A-Notification-Token": config.token}
    async with ClientSession() as session:

        async def sent(headers: dict[str, str], body: bytes) -> tuple[int, str]:
            async with session.post(url, headers=headers, data=io.BytesIO(body)) as reply:
                return reply.status, reply.headers.get("Retry-After", "")

        assert await sent(mine, json.dumps(DONE).encode()) == (204, "")
        # The answer comes although the body never does.
        reader, writer = await asyncio.open_connection("127.0.0.1", runner.addresses[0][1])
        writer.write(b"POST /in HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n")
        assert b" 401 " in await asyncio.wait_for(reader.readline(), PATIENCE)
        writer.close()
        assert await sent(mine, b" " * (MOST_BYTES + 1)) == (413, "")
        assert await sent(mine, b"{}") == (429, "1")
        async with session.get(url) as reply:
            assert reply.status == 405 and reply.headers["Allow"] == "POST"
    await runner.cleanup()
    assert len(box.got) == 1
