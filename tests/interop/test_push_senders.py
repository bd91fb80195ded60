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


async def told(name: str, variable: str, hook: Webhook, *words: str) -> list[Notification]:
    before = len(hook.notifications)
    await asyncio.to_thread(output, made(variable), HERE / name / "notify.py", hook.url, *words)
    return hook.notifications[before:]


@pytest.mark.requirement("PUSH-10", "PUSH-12", "PUSH-13", "PUSH-25")
async def test_a_server_on_the_newer_sdk_is_understood() -> None:
    async with webhook() as hook:
        config = hook.config("t", scheme="Bearer")
        secrets = config.authentication.scheme, config.authentication.credentials
        got = await told("sdk1", "A2A_SDK1_PYTHON", hook, config.token, *secrets)
        assert [one.event.WhichOneof("payload") for one in got] == ["task", "artifact_update", "status_update"]
        assert got[1].event.artifact_update.artifact.parts[0].text == "one" and {one.version for one in got} == {V1}
        assert not await told("sdk1", "A2A_SDK1_PYTHON", hook, config.token, "Bearer", "wrong")


@pytest.mark.requirement("PUSH-25", "PUSH-29", "V03-37")
async def test_a_server_on_the_older_sdk_is_understood() -> None:
    async with webhook() as hook:
        config = hook.config()
        got = await told("sdk03", "A2A_SDK03_PYTHON", hook, config.token)
        states = [one.event.task.status.state for one in got]
        assert states == [v1.TASK_STATE_WORKING, v1.TASK_STATE_COMPLETED]
        assert {(one.task_id, one.version) for one in got} == {("t", "0.3")}
        assert not await told("sdk03", "A2A_SDK03_PYTHON", hook, "wrong")
