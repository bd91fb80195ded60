"""Servers on the official SDKs send push notifications to a receiver of ours."""

import asyncio
from pathlib import Path

import pytest
from a2a_stubs import v1

from a2a_grpc.call import V1
from a2a_grpc.push_receiver import Notification
from a2a_grpc.testing import Webhook, webhook
from tests.interop.conftest import made, output

HERE = Path(__file__).parent
SENDERS = {
    "sdk1": ("A2A_SDK1_PYTHON", "notify.py"),
    "node1": ("A2A_NODE1_MODULES", "notify.mjs"),
    "sdk03": ("A2A_SDK03_PYTHON", "notify.py"),
    "node03": ("A2A_NODE03_MODULES", "notify.mjs"),
}
"""Folder -> the variable that names its environment, its program."""


async def told(name: str, hook: Webhook, *words: str) -> list[Notification]:
    variable, file = SENDERS[name]
    environment, before = made(variable), len(hook.notifications)
    runner = environment if file.endswith(".py") else "node"
    await asyncio.to_thread(output, runner, HERE / name / file, hook.url, *words)
    return hook.notifications[before:]


@pytest.mark.parametrize("name", ["sdk1", "node1"])
@pytest.mark.requirement("PUSH-10", "PUSH-12", "PUSH-13", "PUSH-25")
async def test_a_server_on_a_newer_sdk_is_understood(name: str) -> None:
    async with webhook() as hook:
        python = name == "sdk1"  # the other language sends no credentials
        config = hook.config("t", scheme="Bearer" if python else "")
        secrets = (config.authentication.scheme, config.authentication.credentials) if python else ()
        got = await told(name, hook, config.token, *secrets)
        assert [one.event.WhichOneof("payload") for one in got] == ["task", "artifact_update", "status_update"]
        assert got[1].event.artifact_update.artifact.parts[0].text == "one" and {one.version for one in got} == {V1}
        assert not await told(name, hook, *(config.token, "Bearer", "wrong") if python else ("wrong",))


@pytest.mark.parametrize("name", ["sdk03", "node03"])
@pytest.mark.requirement("PUSH-25", "PUSH-29", "V03-37")
async def test_a_server_on_an_older_sdk_is_understood(name: str) -> None:
    async with webhook() as hook:
        config = hook.config()
        got = await told(name, hook, config.token)
        states = [one.event.task.status.state for one in got]
        assert states == [v1.TASK_STATE_WORKING, v1.TASK_STATE_COMPLETED]
        assert {(one.task_id, one.version) for one in got} == {("t", "0.3")}
        assert not await told(name, hook, "wrong")
