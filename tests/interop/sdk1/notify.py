"""Sends push notifications as servers on a2a-sdk 1.x do. Usage: notify.py URL TOKEN SCHEME CREDENTIALS."""

import asyncio
import sys
from typing import Any

import httpx
from a2a import types as a2a
from a2a.server.tasks import BasePushNotificationSender

URL, TOKEN, SCHEME, CREDENTIALS = sys.argv[1:]


class Configs:
    """One config, for every task."""

    async def get_info_for_dispatch(self, task_id: str) -> list[Any]:
        authentication = a2a.AuthenticationInfo(scheme=SCHEME, credentials=CREDENTIALS)
        return [a2a.TaskPushNotificationConfig(url=URL, token=TOKEN, authentication=authentication)]


async def main() -> None:
    status = a2a.TaskStatus(state=a2a.TaskState.TASK_STATE_COMPLETED)
    part = a2a.Artifact(artifact_id="a", parts=[a2a.Part(text="one")])
    events = [
        a2a.Task(id="t", context_id="c", status=a2a.TaskStatus(state=a2a.TaskState.TASK_STATE_WORKING)),
        a2a.TaskArtifactUpdateEvent(task_id="t", context_id="c", artifact=part),
        a2a.TaskStatusUpdateEvent(task_id="t", context_id="c", status=status),
    ]
    async with httpx.AsyncClient() as client:
        for event in events:
            await BasePushNotificationSender(client, Configs()).send_notification("t", event)


asyncio.run(main())
